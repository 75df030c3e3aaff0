"""``fairperm compare``: test what a new model does to the gaps of an old one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from fairperm.cli import options as arg
from fairperm.cli.commands.audit import run_audit
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable


def compare(
    ctx: typer.Context,
    files: arg.Files = None,
    label: arg.Label = None,
    prediction: arg.Prediction = None,
    score: arg.Score = None,
    prediction_new: arg.PredictionNew = None,
    score_new: arg.ScoreNew = None,
    threshold: arg.Threshold = None,
    threshold_new: arg.ThresholdNew = None,
    group: arg.Group = None,
    pos_label: arg.PosLabel = None,
    control: arg.Control = None,
    stratum_weights: arg.StratumWeights = None,
    cluster: arg.Cluster = None,
    split_clusters: arg.SplitClusters = False,
    weight: arg.Weight = None,
    missing: arg.Missing = "error",
    metric: arg.Metrics = None,
    compare: arg.Compare = None,
    reference: arg.Reference = None,
    intersections: arg.Intersections = False,
    margin: arg.Margin = None,
    ratio: arg.Ratio = None,
    adjust: arg.Adjust = "holm",
    family: arg.Family = "audit",
    alpha: arg.Alpha = 0.05,
    min_group_size: arg.MinGroupSize = 50,
    group_size_by: arg.GroupSizeBy = "metric",
    scheme: arg.Scheme = "auto",
    variance: arg.Variance = "auto",
    alternative: arg.Alternative = "two-sided",
    resamples: arg.Resamples = "auto",
    bootstraps: arg.Bootstraps = 500,
    confidence_level: arg.ConfidenceLevel = 0.95,
    seed: arg.Seed = None,
    jobs: arg.Jobs = None,
    table: arg.Table = None,
    sql: arg.Sql = None,
    where: arg.Where = None,
    format_: arg.FormatOption = None,
    delimiter: arg.Delimiter = None,
    decimal: arg.Decimal = ".",
    encoding: arg.Encoding = None,
    skip: arg.Skip = 0,
    na: arg.Na = None,
    report: arg.Report = None,
    title: arg.Title = None,
    author: arg.Author = None,
    note: arg.ReportNote = None,
    positive_means: arg.PositiveMeans = None,
    rename: arg.Rename = None,
    short: arg.Short = False,
    json: arg.Json = None,
    csv: arg.Csv = None,
    raw_names: arg.RawNames = False,
    markdown: arg.Markdown = None,
    fail_on: arg.FailChange = None,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Test whether gaps between groups changed from an old model to a new one of the same rows.

    Verdicts: closed, narrowed, unchanged within margin, widened, inconclusive or too small.
    """
    if prediction_new is None and score_new is None:
        raise InputError(
            "--prediction-new or --score-new must be given: a column of the new model's output."
        )
    if arg.FailOnChange.widened in (fail_on or ()):
        _check_single(metric or ())
    return run_audit(ctx, "compare")


def _check_single(names: Iterable[str]) -> None:
    """Raise InputError if one of the metrics has several gaps, whose size is never judged."""
    from fairperm.metrics.registry import get_metric

    joint = [name for name in names if get_metric(name).is_joint]
    if joint:
        raise InputError(
            f"--fail-on widened cannot be evaluated for {joint[0]}: it has several gaps, and which "
            "of them are larger is not tested. Compare its parts one by one."
        )
