"""``fairperm test``: one metric, two groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from fairperm.cli import common as running
from fairperm.cli import options as arg
from fairperm.cli.files.wanted_columns import reading, values_of, weights_of
from fairperm.cli.terminal import say
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
            help="What to compare; `fairperm metrics` lists them.",
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
    """Test whether the gap between two groups in one metric is real or chance."""
    import fairperm
    from fairperm.cli.documents import as_json

    running.check_outputs({"--json": json})
    if metric is None:
        raise InputError("--metric must be given; `fairperm metrics` lists them.")
    loaded = ctx.with_resource(reading(ctx.params, [metric], with_hashes=json is not None))
    # which checks every word that it is given
    run_test: Callable[..., fairperm.PermutationTestResult] = fairperm.permutation_test
    with running.noted(quiet) as said:
        found = run_test(
            label,
            prediction,
            y_score=loaded.if_read(score),
            threshold=threshold,
            sensitive_features=group,
            metric=metric,
            data=loaded.data,
            groups=None if pair is None else tuple(values_of(loaded, group, one) for one in pair),
            pos_label=values_of(loaded, label, pos_label),
            control_features=control or None,
            stratum_weights=weights_of(loaded, control, stratum_weights),
            cluster=cluster,
            sample_weight=weight,
            missing=missing,
            score_bins=score_bins,
            sample_rows=sample_rows,
            scheme=scheme,
            variance=running.word_or_none(variance),
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
            command="test",
            options={**running.settings(ctx.params), "seed": found.seed},
            files=loaded.files,
            rows=loaded.n_rows,
        )
        running.write(json, text)
    if not quiet and json != "-":
        say(repr(replace(found, notes=running.unsaid(found.notes, said))))
        if not found.exact:
            running.tell_seed(found.seed)
    return 0
