"""``fairperm sweep``: test the gap at every threshold of a score."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.presenting import describe_run
from fairperm.cli.terminal import (
    print_report,
    print_seed,
    print_text,
    select_unseen,
    show_warnings,
    write_message,
)
from fairperm.data.arguments import DEFAULT_METRICS
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairperm.auditing.pair_sweeps import PairSweeps


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
    resamples: arg.SweepResamples = 9999,
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
    json: arg.Json = None,
    csv: arg.Csv = None,
    raw_names: arg.RawNames = False,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Test the gap between two groups at every threshold of a score, one by one and jointly.

    Of more than two groups every pair is tested, at a level that holds for all pairs together.
    """
    import fairperm
    from fairperm.cli.files.loading import read_columns

    printed = outputs.check_outputs({"--report": report, "--json": json, "--csv": csv})
    if score is None:
        raise InputError("--score must be given: the column of scores.")
    if label is None:
        raise InputError("--label must be given: the column of true labels.")
    names = list(metric or DEFAULT_METRICS)
    with_hashes = json is not None or report is not None
    loaded = ctx.with_resource(read_columns(ctx.params, names, with_hashes=with_hashes, rows=True))
    run_sweeps: Callable[..., PairSweeps] = fairperm.sweep_pairs  # it checks every word
    with show_warnings(quiet) as seen, loaded.clear_errors():
        found = run_sweeps(
            label,
            score,
            sensitive_features=group,
            metric=names,
            data=loaded.data,
            groups=pair and tuple(loaded.find_value(group, one) for one in pair),
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
    reasons = {names: write_message(reason) for names, reason in found.not_swept.items()}
    unseen = select_unseen(found.notes, seen)
    found = replace(found, not_swept=reasons, notes=tuple(map(write_message, found.notes)))
    first = found.sweeps[0]
    shown = first if found.n_pairs == 1 else found  # the only pair is a sweep like any other
    options = {**arg.collect_settings(ctx.params), "metric": names, "seed": first.seed}
    if report is not None:
        run = describe_run("sweep", options, loaded.files, loaded.n_rows)
        found.to_html(report, provenance=run)

    def make_json() -> str:
        return outputs.as_json(
            "sweep", shown.to_dict(), options=options, files=loaded.files, rows=loaded.n_rows
        )

    def make_csv() -> str:
        rows = shown.to_frame("pyarrow").to_pylist()
        return outputs.as_csv([_leave_out_nan(row) for row in rows], raw_names=raw_names)

    outputs.write_outputs((json, make_json), (csv, make_csv))
    if not quiet and not printed:
        print_text(repr(shown if shown is first else replace(found, notes=unseen)))
        print_seed(first.seed)
        print_report(report)
    return 0


def _leave_out_nan(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(one, float) and one != one else one for name, one in row.items()
    }


def _parse_thresholds(text: str) -> object:
    if text == "scores":
        return text
    if text.isdigit():
        return int(text)
    return [arg.parse_number("--thresholds", one) for one in text.split(",")]
