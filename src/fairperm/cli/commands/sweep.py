"""``fairperm sweep``: the gap at every threshold of a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairperm.cli import common as running
from fairperm.cli import options as arg
from fairperm.cli.files.wanted_columns import reading, values_of, weights_of
from fairperm.cli.terminal import say
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult


def sweep(
    ctx: typer.Context,
    files: arg.Files = None,
    label: arg.Label = None,
    score: arg.Score = None,
    group: arg.OneGroup = None,
    pair: arg.Pair = None,
    pos_label: arg.PosLabel = None,
    control: arg.Control = None,
    stratum_weights: arg.StratumWeights = None,
    missing: arg.Missing = "error",
    metric: arg.Metrics = None,
    thresholds: Annotated[
        str,
        typer.Option(
            help="How many; or 'scores' for every score; or these, parted by commas. Default: 101.",
            metavar="N",
            rich_help_panel="Test",
            show_default=False,
        ),
    ] = "101",
    alpha: arg.Alpha = 0.05,
    scheme: arg.Scheme = "auto",
    variance: arg.Variance = "auto",
    resamples: arg.Resamples = 9999,
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
    csv: arg.Csv = None,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Test the gap between two groups at every threshold of a score, singly and all at once."""
    import fairperm
    from fairperm.cli.documents import as_csv, as_json

    printed = running.check_outputs({"--json": json, "--csv": csv})
    if score is None:
        raise InputError("--score must be given: the column of the model's score.")
    names = list(metric or arg.DEFAULT_METRICS)
    loaded = ctx.with_resource(reading(ctx.params, names, with_hashes=json is not None, rows=True))
    # which checks every word that it is given
    run_sweep: Callable[..., fairperm.ThresholdSweepResult] = fairperm.threshold_sweep
    with running.noted(quiet):
        found = run_sweep(
            label,
            score,
            sensitive_features=group,
            metric=names,
            data=loaded.data,
            groups=None if pair is None else tuple(values_of(loaded, group, one) for one in pair),
            thresholds=_thresholds(thresholds),
            pos_label=values_of(loaded, label, pos_label),
            control_features=control or None,
            stratum_weights=weights_of(loaded, control, stratum_weights),
            missing=missing,
            scheme=scheme,
            variance=running.word_or_none(variance),
            alpha=alpha,
            n_resamples=resamples,
            rng=seed,
            n_jobs=jobs,
            progress=False if quiet else None,
        )
    if json is not None:
        text = as_json(
            "sweep",
            found.to_dict(),
            command="sweep",
            options={**running.settings(ctx.params), "metric": names, "seed": found.seed},
            files=loaded.files,
            rows=loaded.n_rows,
        )
        running.write(json, text)
    if csv is not None:
        running.write(csv, as_csv(_rows(found)))
    if not quiet and not printed:
        say(repr(found))
        running.tell_seed(found.seed)
    return 0


def _rows(found: ThresholdSweepResult) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.to_frame("pyarrow").to_pylist()
    return [
        {name: None if isinstance(one, float) and one != one else one for name, one in row.items()}
        for row in rows
    ]


def _thresholds(text: str) -> object:
    if text == "scores":
        return text
    if text.isdigit():
        return int(text)
    return [running.number("--thresholds", one) for one in text.split(",")]
