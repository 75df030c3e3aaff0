"""``fairperm selection``: impact ratios to the group that is selected most."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_interval, format_name, format_number, join_words
from fairperm.cli import outputs
from fairperm.cli.command import command
from fairperm.cli.running import Run, print_failed
from fairperm.cli.terminal import warn_of_similar_names
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fairperm.selection.result import SelectionAudit, SelectionRow


@command(
    "selection",
    "files selected score@selection threshold@selection group@columns control count applicants "
    "report xlsx fail_on@selection",
    "group_probability proxy_assumption pos_label@selection unknown intersections@selection "
    "minimum_share four_fifths confidence_level source from_ to why_excluded READING title author "
    "note json csv raw_names markdown junit quiet config debug",
    example="fairperm selection applicants.xlsx --selected hired --group sex \\\n"
    "    --group race --report ratios.html",
)
def selection(ctx: click.Context) -> int:
    """Compare how often groups are selected with the group that is selected most.

    Impact ratios have intervals that hold for all groups at once. No labels needed.
    """
    import fairperm
    from fairperm.cli.files.loading import read_selection

    run = Run(ctx)
    run.use(read_selection(run.given, with_hashes=run.keeps_hashes))
    # it draws nothing, so that it has no progress to show
    found: SelectionAudit = run.call(lambda progress, **given: fairperm.selection_audit(**given))
    warn_of_similar_names(found, quiet=run.given["quiet"])
    failed = find_failed(found, run.given["fail_on"])
    settings = run.settings()
    run.write(
        found.to_dict,
        settings,
        lambda: found.to_frame("pyarrow").to_pylist(),
        (run.given["markdown"], lambda: outputs.selection_as_markdown(found, failed)),
        (run.given["junit"], lambda: _as_junit(found, failed)),
    )
    if run.given["xlsx"]:
        found.to_excel(run.given["xlsx"])
    if run.given["report"]:
        texts = {name: run.given[name] for name in ("title", "author", "note")}
        found.to_html(run.given["report"], **texts, provenance=run.describe(settings))
    run.say(repr(replace(found, notes=run.unseen(found.notes))), None)
    return report_failures(found, failed, run.given["fail_on"])


def find_failed(found: SelectionAudit, words: Sequence[str]) -> list[SelectionRow]:
    """Return the groups whose ratio is shown to be below the bound, or whose estimate is."""
    return [
        row
        for row in found
        if ("below" in words and row.evidence == "below")
        or (
            "estimate" in words
            and row.impact_ratio is not None
            and row.impact_ratio < found.four_fifths
        )
    ]


def _as_junit(found: SelectionAudit, failed: Sequence[SelectionRow]) -> str:
    """Return the groups as tests."""
    from fairperm.cli.junit import Case, as_junit

    cases = []
    for row in found:
        name, verdict = format_name(row.group), row.evidence or "too small"
        cases.append(Case(row.attribute, name, verdict, _tell(row), row in failed))
    return as_junit("selection", cases, lambda: _check(found))


def _tell(row: SelectionRow) -> str:
    ratio, interval = format_number(row.impact_ratio), format_interval(row.interval)
    return f"impact ratio {ratio}, interval {interval}"


def _check(found: SelectionAudit) -> None:
    """Raise InputError if some groups could not be compared at all."""
    unjudged = [format_name(one) for one in found.attributes if not found.compared(one)]
    if unjudged:
        raise InputError(
            f"--fail-on cannot judge {join_words(unjudged)}: fewer than two groups are large "
            "enough. Lower --minimum-share, or pass --intersections no."
        )


def report_failures(
    found: SelectionAudit, failed: Sequence[SelectionRow], words: Sequence[str]
) -> int:
    """Print the groups that failed, and return the exit code.

    Raises InputError if none did, and some groups could not be compared at all.
    """
    if not words:
        return 0
    if not failed:
        _check(found)
    lines = [
        f"{format_name(row.attribute)}, {format_name(row.group)}: {_tell(row)}" for row in failed
    ]
    return print_failed(lines, len(found), "groups", words[:1])
