"""``fairperm sweep``: test the gap at every threshold of a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.terminal import print_seed, print_text, show_warnings
from fairperm.data.arguments import DEFAULT_METRICS
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
            help="Number of thresholds; 'scores' for every score; or a list separated by commas. "
            "Default: 101.",
            metavar="N",
            rich_help_panel="Test",
            show_default=False,
        ),
    ] = "101",
    alternative: arg.Alternative = "two-sided",
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
    skip: arg.Skip = 0,
    na: arg.Na = None,
    json: arg.Json = None,
    csv: arg.Csv = None,
    raw_names: arg.RawNames = False,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Test the gap between two groups at every threshold of a score, one by one and jointly."""
    import fairperm
    from fairperm.cli.files.loading import read_columns

    printed = outputs.check_outputs({"--json": json, "--csv": csv})
    if score is None:
        raise InputError("--score must be given: the column of scores.")
    if label is None:
        raise InputError("--label must be given: the column of true labels.")
    names = list(metric or DEFAULT_METRICS)
    loaded = ctx.with_resource(
        read_columns(ctx.params, names, with_hashes=json is not None, rows=True)
    )
    run_sweep: Callable[..., ThresholdSweepResult] = (
        fairperm.threshold_sweep
    )  # it checks every word
    with show_warnings(quiet), loaded.clear_errors():
        found = run_sweep(
            label,
            score,
            sensitive_features=group,
            metric=names,
            data=loaded.data,
            groups=None if pair is None else tuple(loaded.find_value(group, one) for one in pair),
            thresholds=_parse_thresholds(thresholds),
            pos_label=loaded.find_value(label, pos_label),
            control_features=control or None,
            stratum_weights=loaded.find_stratum_weights(control, stratum_weights),
            missing=missing,
            scheme=scheme,
            variance=arg.parse_word(variance),
            alternative=alternative,
            alpha=alpha,
            n_resamples=resamples,
            rng=seed,
            n_jobs=jobs,
            progress=False if quiet else None,
        )

    def make_json() -> str:
        return outputs.as_json(
            "sweep",
            found.to_dict(),
            options={**arg.collect_settings(ctx.params), "metric": names, "seed": found.seed},
            files=loaded.files,
            rows=loaded.n_rows,
        )

    outputs.write_outputs(
        (json, make_json), (csv, lambda: outputs.as_csv(_make_rows(found), raw_names=raw_names))
    )
    if not quiet and not printed:
        print_text(repr(found))
        print_seed(found.seed)
    return 0


def _make_rows(found: ThresholdSweepResult) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.to_frame("pyarrow").to_pylist()
    return [
        {name: None if isinstance(one, float) and one != one else one for name, one in row.items()}
        for row in rows
    ]


def _parse_thresholds(text: str) -> object:
    if text == "scores":
        return text
    if text.isdigit():
        return int(text)
    return [arg.parse_number("--thresholds", one) for one in text.split(",")]
