"""``fairperm periods``: test whether the gap changed from one period to another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.terminal import print_seed, print_text, select_unseen, show_warnings
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def periods(
    ctx: typer.Context,
    files: arg.Files = None,
    label: arg.Label = None,
    prediction: arg.Prediction = None,
    score: arg.Score = None,
    threshold: arg.Threshold = None,
    group: arg.OneGroup = None,
    pair: arg.Pair = None,
    period: arg.Period = None,
    periods: arg.Periods = None,
    against: arg.Against = "previous",
    pos_label: arg.PosLabel = None,
    control: arg.Control = None,
    stratum_weights: arg.StratumWeights = None,
    cluster: arg.Cluster = None,
    split_clusters: arg.SplitClusters = False,
    weight: arg.Weight = None,
    missing: arg.Missing = "error",
    score_bins: arg.ScoreBins = None,
    metric: arg.OneMetric = None,
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
    json: arg.Json = None,
    csv: arg.Csv = None,
    raw_names: arg.RawNames = False,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Test whether the gap between two groups changed between periods, sites or versions."""
    import fairperm
    from fairperm.cli.files.loading import read_columns

    printed = outputs.check_outputs({"--json": json, "--csv": csv})
    if metric is None:
        raise InputError("--metric must be given; `fairperm metrics` lists them.")
    if period is None:
        raise InputError("--period must be given: the column of periods.")
    loaded = ctx.with_resource(read_columns(ctx.params, [metric], with_hashes=json is not None))
    run_test: Callable[..., fairperm.PeriodComparisonResult] = (
        fairperm.compare_periods
    )  # it checks every word
    with show_warnings(quiet) as seen, loaded.clear_errors():
        found = run_test(
            label,
            prediction,
            y_score=loaded.column_if_read(score),
            threshold=threshold,
            sensitive_features=group,
            period=period,
            metric=metric,
            data=loaded.data,
            groups=None if pair is None else tuple(loaded.find_value(group, one) for one in pair),
            periods=[loaded.find_value(period, one) for one in periods or ()] or None,
            against=against,
            pos_label=loaded.find_value(label or prediction, pos_label),
            control_features=control or None,
            stratum_weights=loaded.find_stratum_weights(control, stratum_weights),
            cluster=cluster,
            split_clusters=split_clusters,
            sample_weight=weight,
            missing=missing,
            score_bins=score_bins,
            scheme=scheme,
            variance=arg.parse_word(variance),
            alternative=alternative,
            n_resamples=resamples,
            n_bootstrap=bootstraps,
            confidence_level=confidence_level,
            rng=seed,
            n_jobs=jobs,
            progress=False if quiet else None,
        )

    def make_json() -> str:
        return outputs.as_json(
            "periods",
            found.to_dict(),
            options={**arg.collect_settings(ctx.params), "seed": found.seed},
            files=loaded.files,
            rows=loaded.n_rows,
        )

    def make_csv() -> str:
        return outputs.as_csv(found.to_frame("pyarrow").to_pylist(), raw_names=raw_names)

    outputs.write_outputs((json, make_json), (csv, make_csv))
    if not quiet and not printed:
        print_text(repr(replace(found, notes=select_unseen(found.notes, seen))))
        if not all(one.exact for one in found.changes):
            print_seed(found.seed)
    return 0
