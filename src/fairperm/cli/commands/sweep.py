"""``fairperm sweep``: test the gap at every threshold of a score."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairperm._utils.formatting import name_of_gap
from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.presenting import describe_run
from fairperm.cli.terminal import print_report, print_seed, print_text, show_warnings, write_message
from fairperm.data.arguments import DEFAULT_METRICS
from fairperm.errors import FairpermError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from fairperm.cli.files.loading import LoadedData
    from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult

_MOST_PAIRS = 45  # of ten groups


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
    from fairperm._utils.checks import fraction
    from fairperm.cli.files.loading import read_columns

    printed = outputs.check_outputs({"--report": report, "--json": json, "--csv": csv})
    if score is None:
        raise InputError("--score must be given: the column of scores.")
    if label is None:
        raise InputError("--label must be given: the column of true labels.")
    fraction("alpha", alpha)
    names = list(metric or DEFAULT_METRICS)
    with_hashes = json is not None or report is not None
    loaded = ctx.with_resource(read_columns(ctx.params, names, with_hashes=with_hashes, rows=True))
    run_sweep: Callable[..., ThresholdSweepResult] = (
        fairperm.threshold_sweep
    )  # it checks every word
    swept: list[ThresholdSweepResult] = []
    not_swept: dict[str, str] = {}
    with show_warnings(quiet), loaded.clear_errors():
        pairs = _list_pairs(loaded, group, pair, missing)
        for groups in pairs:
            try:
                found = run_sweep(
                    label,
                    score,
                    sensitive_features=group,
                    metric=names,
                    data=loaded.data,
                    groups=groups,
                    thresholds=_parse_thresholds(thresholds),
                    pos_label=loaded.find_value(label, pos_label),
                    control_features=control or None,
                    stratum_weights=loaded.find_stratum_weights(control, stratum_weights),
                    missing=missing,
                    scheme=scheme,
                    variance=arg.parse_word(variance),
                    alternative=alternative,
                    alpha=alpha / len(pairs),
                    n_resamples=resamples,
                    rng=swept[0].seed if swept else seed,
                    n_jobs=jobs,
                    progress=False if quiet else None,
                )
            except FairpermError as error:
                if groups is None or (groups == pairs[-1] and not swept):
                    raise
                not_swept[name_of_gap(*groups)] = write_message(error)
            else:
                swept.append(found)
    options = {**arg.collect_settings(ctx.params), "metric": names, "seed": swept[0].seed}
    if report is not None:
        from fairperm.report.page import sweeps_as_html

        run = describe_run("sweep", options, loaded.files, loaded.n_rows)
        sweeps_as_html(swept, report, alpha=alpha, not_swept=not_swept, provenance=run)

    def make_json() -> str:
        plain = [one.to_dict() for one in swept]
        is_one = len(pairs) == 1
        return outputs.as_json(
            "sweep",
            plain[0] if is_one else {"alpha": alpha, "sweeps": plain, "not_swept": not_swept},
            options=options,
            files=loaded.files,
            rows=loaded.n_rows,
        )

    def make_csv() -> str:
        rows = [row for one in swept for row in _make_rows(one, with_groups=len(pairs) > 1)]
        return outputs.as_csv(rows, raw_names=raw_names)

    outputs.write_outputs((json, make_json), (csv, make_csv))
    if not quiet and not printed:
        for one in swept:
            print_text(repr(one))
        for names_of_pair, reason in not_swept.items():
            print_text(f"{names_of_pair} was not tested: {reason}")
        if len(pairs) > 1:
            print_text(
                f"Bands of {len(pairs)} pairs: level {alpha / len(pairs):.2g} each, so that it is "
                f"{alpha:g} for all together."
            )
        print_seed(swept[0].seed)
        print_report(report)
    return 0


def _list_pairs(
    loaded: LoadedData, group: str | None, pair: tuple[str, str] | None, missing: str
) -> list[tuple[Hashable, Hashable] | None]:
    """Return the pairs of groups to sweep; None for the only two groups."""
    from fairperm.data.columns import is_missing
    from fairperm.data.reading import MISSING_GROUP, sort_key

    if pair is not None:
        first, second = (loaded.find_value(group, one) for one in pair)
        return [(first, second)]
    found = [value for (value,) in loaded.distinct_rows([group])] if group else []
    groups = sorted((one for one in found if not is_missing(one)), key=sort_key)
    if missing == "group" and any(map(is_missing, found)):
        groups.append(MISSING_GROUP)
    if len(groups) <= 2:
        return [None]
    pairs = list(itertools.combinations(groups, 2))
    if len(pairs) > _MOST_PAIRS:
        raise InputError(
            f"--pair must be given: --group has {len(groups):,} groups, which make "
            f"{len(pairs):,} pairs; at most {_MOST_PAIRS} are swept at once."
        )
    return [*pairs]


def _make_rows(found: ThresholdSweepResult, *, with_groups: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.to_frame("pyarrow").to_pylist()
    groups = {"first_group": str(found.groups[0]), "second_group": str(found.groups[1])}
    return [
        {name: None if isinstance(one, float) and one != one else one for name, one in row.items()}
        for row in ({**(groups if with_groups else {}), **row} for row in rows)
    ]


def _parse_thresholds(text: str) -> object:
    if text == "scores":
        return text
    if text.isdigit():
        return int(text)
    return [arg.parse_number("--thresholds", one) for one in text.split(",")]
