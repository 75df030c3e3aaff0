"""``fairperm test``: test one metric in two groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from fairperm.cli import common
from fairperm.cli import options as arg
from fairperm.cli.files.wanted_columns import find_stratum_weights, find_value, read_columns
from fairperm.cli.terminal import print_text
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def one_test(
    ctx: typer.Context,
    files: arg.Files = None,
    label: arg.Label = None,
    prediction: arg.Prediction = None,
    score: arg.Score = None,
    threshold: arg.Threshold = None,
    group: arg.OneGroup = None,
    pair: arg.Pair = None,
    pos_label: arg.PosLabel = None,
    control: arg.Control = None,
    stratum_weights: arg.StratumWeights = None,
    cluster: arg.Cluster = None,
    weight: arg.Weight = None,
    missing: arg.Missing = "error",
    score_bins: arg.ScoreBins = None,
    sample_rows: arg.SampleRows = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="Metric to test; `fairperm metrics` lists them.",
            metavar="NAME",
            rich_help_panel="Test",
            show_default=False,
        ),
    ] = None,
    scheme: arg.Scheme = "auto",
    variance: arg.Variance = "auto",
    alternative: arg.Alternative = "two-sided",
    resamples: arg.Resamples = 9999,
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
    na: arg.Na = None,
    json: arg.Json = None,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Test whether the gap between two groups in one metric is real or due to chance."""
    import fairperm
    from fairperm.cli.documents import as_json

    common.check_outputs({"--json": json})
    if metric is None:
        raise InputError("--metric must be given; `fairperm metrics` lists them.")
    loaded = ctx.with_resource(read_columns(ctx.params, [metric], with_hashes=json is not None))
    run_test: Callable[..., fairperm.PermutationTestResult] = (
        fairperm.permutation_test
    )  # it checks every word
    with common.show_warnings(quiet) as seen:
        found = run_test(
            label,
            prediction,
            y_score=loaded.column_if_read(score),
            threshold=threshold,
            sensitive_features=group,
            metric=metric,
            data=loaded.data,
            groups=None if pair is None else tuple(find_value(loaded, group, one) for one in pair),
            pos_label=find_value(loaded, label, pos_label),
            control_features=control or None,
            stratum_weights=find_stratum_weights(loaded, control, stratum_weights),
            cluster=cluster,
            sample_weight=weight,
            missing=missing,
            score_bins=score_bins,
            sample_rows=sample_rows,
            scheme=scheme,
            variance=common.parse_word(variance),
            alternative=alternative,
            n_resamples=resamples,
            n_bootstrap=bootstraps,
            confidence_level=confidence_level,
            rng=seed,
            n_jobs=jobs,
            progress=False if quiet else None,
        )
    if json is not None:
        text = as_json(
            "test",
            found.to_dict(),
            options={**common.collect_settings(ctx.params), "seed": found.seed},
            files=loaded.files,
            rows=loaded.n_rows,
        )
        common.write_output(json, text)
    if not quiet and json != "-":
        print_text(repr(replace(found, notes=common.select_unseen(found.notes, seen))))
        if not found.exact:
            common.print_seed(found.seed)
    return 0
