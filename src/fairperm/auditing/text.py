"""An audit as a table for a terminal."""

from __future__ import annotations

import io
import shutil
import sys
from typing import TYPE_CHECKING

from fairperm._utils.formatting import (
    format_count,
    format_name,
    format_pvalue,
    shorten,
)
from fairperm.auditing.verdicts import (
    explain_changes,
    explain_verdicts,
    format_detectable_gap,
)
from fairperm.hypothesis_tests.results.text import (
    state_hypotheses,
    state_min_group_size,
    state_threshold,
    state_used_rows,
    wrap_answer,
    wrap_notes,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rich.table import Table

    from fairperm.hypothesis_tests.results.audits import AuditData, AuditRow

_WIDEST = 10_000  # columns of a terminal
_WIDEST_NAME = 40
_ONE_LINE = tuple(
    (name,)
    for name in (
        *("first − second group", "values", "gap", "interval", "p", "adjusted p"),
        *("p beyond", "p within", "ratio", "detects gaps"),
    )
)
# a comparison on two lines; the last columns are the first that a narrow terminal lacks
_TWO_LINES = (
    ("first group", "second group"),
    ("value", ""),
    ("gap", "interval"),
    ("p", "adjusted p"),
    ("p beyond", "p within"),  # a ratio is below the verdict
    ("detects gaps",),
)
_MIN_COLUMNS = 4
_CHANGES_ONE_LINE = tuple(
    (name,)
    for name in (
        *("first − second group", "first", "second", "gap", "change", "interval"),
        *("p", "adjusted p", "p of size"),
    )
)
_CHANGES_TWO_LINES = (
    ("first group", "second group"),
    ("value", ""),
    ("gap", "change"),
    ("p", "adjusted p"),
    ("interval", "p of size"),
)
_STYLES = {
    "disparity": "bold red",
    "equivalent": "green",
    "inconclusive": "yellow",
    "too small": "dim",
    "closed": "green",
    "narrowed": "green",
    "unchanged within margin": "default",
    "widened": "bold red",
}
_ADJUSTMENT = {
    "holm": "Holm-adjusted",
    "bh": "Benjamini–Hochberg-adjusted",
    "by": "Benjamini–Yekutieli-adjusted",
    None: "unadjusted",
}


def as_text(audit: AuditData) -> str:
    """Return the audit as plain text that fits the terminal, or as wide as it needs to be."""
    from rich.console import Console

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDEST
    out = io.StringIO()
    console = Console(  # in a notebook it would show the table by itself, and leave `out` empty
        file=out, width=width, color_system=None, legacy_windows=False, force_jupyter=False
    )

    def write(table: Table) -> list[str]:
        console.print(table)
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        out.seek(0)
        out.truncate()
        return lines

    table = as_table(audit, width)
    head = [*wrap_answer(audit.answer), heading(audit)]
    parts = [*head, *write(table), footing(audit, list_columns(table))]
    if audit.compares_models:
        changes = write(as_table(audit, width, changes=True))
        parts += ["", heading(audit, changes=True), *changes, changes_footing(audit)]
    return "\n".join([*parts, *wrap_notes(audit.notes)])


def heading(audit: AuditData, *, changes: bool = False) -> str:
    """Return the numbers of comparisons by verdict, in one line."""
    verdicts = [_verdict(row, changes=changes) for row in audit.rows]
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
    name = "change" if changes else "comparison"
    return f"{format_count(len(verdicts), name)}: {counts or 'none'}"


def _verdict(row: AuditRow, *, changes: bool) -> str:
    return row.change.verdict if changes and row.change is not None else row.verdict


def footing(audit: AuditData, columns: Collection[str]) -> str:
    """Return the rules behind the verdicts, and the meanings of terms in a table's columns."""
    adjusted = f", p {_ADJUSTMENT[audit.adjust]} for {state_hypotheses(audit)}"
    sentences = [
        f"Level {audit.alpha:g}{adjusted if audit.n_hypotheses else ''}.",
        state_min_group_size(audit),
        *state_threshold(audit),
        *explain_verdicts(audit.rows, columns),
    ]
    if audit.is_weighted:
        sentences.append("Values are weighted.")
    sentences.append(state_used_rows(audit))
    return " ".join(sentences)


def changes_footing(audit: AuditData) -> str:
    """Return the rules behind the verdicts on changes."""
    rows = [row for row in audit.rows if row.change is not None]
    sentences = [
        f"Level {audit.alpha:g}, p {_ADJUSTMENT[audit.adjust]}.",
        *state_threshold(audit),
        "Change: the gap with the new model minus the gap with the old one.",
        *explain_changes(rows),
    ]
    if audit.is_weighted:
        sentences.append("Values are weighted.")
    sentences.append(state_used_rows(audit))
    return " ".join(sentences)


def as_table(audit: AuditData, width: int, *, changes: bool = False) -> Table:
    """Return the rows as a table for rich, with a section for each attribute and metric.

    A comparison has two lines where one is too long for the width. Tables that are still too wide
    lack the last columns. With ``changes`` it is about what a new model does to the gaps.
    """
    one_line = _CHANGES_ONE_LINE if changes else _ONE_LINE
    two_lines: Sequence[tuple[str, ...]] = _CHANGES_TWO_LINES if changes else _TWO_LINES
    narrower = (two_lines[:n] for n in range(len(two_lines), _MIN_COLUMNS - 1, -1))
    for columns in (one_line, *narrower):
        table = _make_table(audit, columns, changes=changes)
        if measure_least_width(table) <= width:
            break
    return table


def list_columns(table: Table) -> list[str]:
    """Return the names of a table's columns."""
    return [name for column in table.columns for name in str(column.header).split("\n")]


def measure_least_width(table: Table) -> int:
    """Return the number of terminal columns that a table needs."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(file=io.StringIO(), width=_WIDEST, color_system=None)
    return Measurement.get(console, console.options, table).minimum


def _make_table(audit: AuditData, columns: Sequence[tuple[str, ...]], *, changes: bool) -> Table:
    """Return a table whose columns have these cells of a comparison below each other."""
    from rich import box
    from rich.cells import cell_len
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    if all(row.margin is None for row in audit.rows):
        columns = [one for one in columns if one[0] not in {"p beyond", "p within"}]
    if all(row.ratio_bound is None for row in audit.rows):
        columns = [one for one in columns if one[0] != "ratio"]
    names, *numbers = columns
    format_cells = _format_change_cells if changes else _format_cells
    cells = {id(row): format_cells(row) for row in audit.rows}

    def measure(column: tuple[str, ...]) -> int:
        texts = (one[name] for one in cells.values() for name in column)
        return max(map(cell_len, [*texts, *column]))

    words = (word for row in audit.rows for word in format_name(row.metric).split())
    least = max([measure(names) + 2, *map(cell_len, words)])
    is_one_line = len(names) == 1
    if is_one_line:  # its names may be wrapped; of two lines each has a value beside it
        least = min(least, _WIDEST_NAME)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=not is_one_line)
    table.add_column("\n".join(names), overflow="fold", min_width=least)
    for column in numbers:
        head = "\n".join(column).strip()
        table.add_column(head, justify="right", no_wrap=True, min_width=measure(column))
    has_ratio = not is_one_line and not changes and any(row.ratio_bound for row in audit.rows)
    head = "verdict\nratio" if has_ratio else "verdict"
    table.add_column(head, overflow="fold", min_width=12)
    omnibus = {(one.attribute, one.metric): one.result for one in audit.omnibus if not changes}
    sections: dict[tuple[str, str], list[AuditRow]] = {}
    for row in audit.rows:
        sections.setdefault((row.attribute, row.metric), []).append(row)
    for section, rows in sections.items():
        title = Text(" · ".join(map(format_name, section)), style="bold")
        table.add_row(title)
        for row in rows:
            by_name = cells[id(row)]
            first, *others = ("\n".join(by_name[name] for name in column) for column in columns)
            verdict = name = _verdict(row, changes=changes)
            tested = row.change if changes and row.change is not None else row
            if tested.result is None:
                name += " (undefined)"
            ratio = f"\n{by_name['ratio']}" if has_ratio else ""
            table.add_row(
                Padding(Text(first), (0, 0, 0, 2)),  # indents wrapped lines too
                *map(Text, others),
                Text(name, _STYLES[verdict]) + Text(ratio),
            )
        joint = omnibus.get(section)
        if joint is not None:
            p = format_pvalue(joint.pvalue)
            of_all = [p if column[0] == "p" else "" for column in numbers]
            table.add_row(Padding("all groups", (0, 0, 0, 2)), *of_all, "")
        table.add_section()
    return table


def _format_cells(row: AuditRow) -> dict[str, str]:
    (first, second), (first_value, second_value) = row.names, row.value_texts
    return {
        "first − second group": row.gap_name,
        "first group": shorten(first, _WIDEST_NAME),
        "second group": shorten(second, _WIDEST_NAME),
        "values": row.values_text,
        "value": first_value,
        "": second_value,
        "gap": row.gap_text,
        "interval": row.interval_text,
        "p": format_pvalue(row.pvalue),
        "adjusted p": format_pvalue(row.adjusted_pvalue),
        "p beyond": format_pvalue(row.adjusted_exceedance_pvalue),
        "p within": format_pvalue(row.adjusted_equivalence_pvalue),
        "ratio": row.ratio_text,
        "detects gaps": format_detectable_gap(row),
    }


def _format_change_cells(row: AuditRow) -> dict[str, str]:
    change = row.change
    if change is None:
        raise ValueError("a row of two models has a change")
    (first, second), (first_value, second_value) = row.names, change.value_texts
    return {
        "first − second group": row.gap_name,
        "first group": shorten(first, _WIDEST_NAME),
        "second group": shorten(second, _WIDEST_NAME),
        "first": first_value,
        "second": second_value,
        "value": first_value,
        "": second_value,
        "gap": " → ".join(change.gap_texts),
        "change": change.change_text,
        "interval": change.interval_text,
        "p": format_pvalue(change.pvalue),
        "adjusted p": format_pvalue(change.adjusted_pvalue),
        "p of size": format_pvalue(change.adjusted_size_pvalue),
    }
