"""An audit as a table of a terminal: at most as wide as it, with no number and no name broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from fairperm._utils.formatting import (
    Unit,
    format_name,
    format_pvalue,
    shorten,
    state_pvalue,
    wrap_text,
)
from fairperm.auditing.verdicts import format_detectable_gap
from fairperm.hypothesis_tests.results.text import state_small

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.text import Text

    from fairperm.hypothesis_tests.results.audits import AuditData, AuditRow

    Layout: TypeAlias = Sequence[tuple[str, ...]]

_WIDEST_NAME = 40
_GAP = "  "  # between columns
# the columns of a table; of those with several names, a comparison has a line for each name
_ONE_LINE = tuple(
    (name,)
    for name in (
        *("first − second group", "values", "gap", "interval", "p", "p beyond", "p within"),
        *("ratio", "detects gaps"),
    )
)
_TWO_LINES = (
    ("first group", "second group"),
    ("value", "second value"),
    ("gap", "interval"),
    ("p", "detects gaps"),
    ("p beyond", "p within"),
)
_NARROW = (*_TWO_LINES[:3], ("p", "p beyond"))
_CHANGES_ONE_LINE = tuple(
    (name,)
    for name in (
        *("first − second group", "first", "second", "gap", "change", "interval", "p"),
        "p of size",
    )
)
_CHANGES_TWO_LINES = (
    ("first group", "second group"),
    ("value", "second value"),
    ("gap", "change"),
    ("interval", ""),
    ("p", "p of size"),
)
_CHANGES_NARROW = (
    ("first group", "second group", ""),
    ("value", "second value", ""),
    ("gap", "change", "interval"),
    ("p", "p of size", ""),
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
    "changed": "yellow",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Lines of text, each in parts with their styles, and the names of the columns."""

    lines: Sequence[Sequence[tuple[str, str]]]
    columns: Sequence[str]
    width: int

    def __str__(self) -> str:
        """Return the table without styles."""
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self.lines)

    def as_rich(self) -> Text:
        """Return the table with its styles."""
        from rich.text import Text

        lines = [Text.assemble(*((text, style) for text, style in line)) for line in self.lines]
        return Text("\n").join(lines)


def as_table(
    audit: AuditData, width: int, *, changes: bool = False, shows_small: bool = False
) -> Table:
    """Return the comparisons as a table, with a section for each attribute and metric.

    Of several layouts it has the first that fits the width, or the narrowest. With ``changes`` it
    is about what a new model does to the gaps. Comparisons that are too small are one line of their
    section, unless ``shows_small``.
    """
    layouts: Sequence[Layout] = (_ONE_LINE, _TWO_LINES, _NARROW)
    if changes:
        layouts = (_CHANGES_ONE_LINE, _CHANGES_TWO_LINES, _CHANGES_NARROW)
    for layout in layouts:
        table = _make_table(audit, layout, changes=changes, shows_small=shows_small)
        if table.width <= width:
            break
    return table


def verdict_of(row: AuditRow, *, changes: bool) -> str:
    """Return the verdict on a gap, or on its change."""
    return row.change.verdict if changes and row.change is not None else row.verdict


def select_shown(
    audit: AuditData, *, changes: bool = False, shows_small: bool = False
) -> list[AuditRow]:
    """Return the comparisons that have lines of their own."""
    return [
        row for row in audit.rows if shows_small or verdict_of(row, changes=changes) != "too small"
    ]


def list_columns(rows: Sequence[AuditRow], *, changes: bool = False) -> list[str]:
    """Return the columns of a table with one line for each of these comparisons."""
    layout = _drop_unused(_CHANGES_ONE_LINE if changes else _ONE_LINE, rows, changes=changes)
    return [name for (name,) in layout]


def _make_table(audit: AuditData, layout: Layout, *, changes: bool, shows_small: bool) -> Table:
    from rich.cells import cell_len

    shown = select_shown(audit, changes=changes, shows_small=shows_small)
    layout = _drop_unused(layout, shown, changes=changes)
    cells = {id(row): format_cells(row, changes=changes) for row in shown}
    n_lines = len(layout[0])
    has_ratios = not changes and any(row.ratio_bound is not None for row in shown)
    titles = [[title_of(name, audit) for name in column] for column in layout]

    def measure(place: int) -> int:
        texts = (one[name] for one in cells.values() for name in layout[place] if name)
        return max(map(cell_len, [*texts, *titles[place]]))

    wide = [measure(place) for place in range(len(layout))]
    wide[0] += 2  # rows are indented

    def write(parts: Sequence[str], verdict: tuple[str, str]) -> list[tuple[str, str]]:
        first, *numbers = parts
        line = first + " " * (wide[0] - cell_len(first))
        for text, columns in zip(numbers, wide[1:], strict=True):
            line += _GAP + " " * (columns - cell_len(text)) + text
        return [(line + _GAP, ""), verdict]

    verdicts = [name_verdict(row, changes=changes) for row in shown]
    total = sum(wide) + len(_GAP) * len(wide) + max(map(len, [*verdicts, "verdict"]))
    lines = [
        write([title[n] for title in titles], ("verdict" if n == n_lines - 1 else "", ""))
        for n in range(n_lines)
    ]
    lines.append([("─" * total, "")])
    for title, rows, together in _split_sections(audit, changes=changes):
        if len(lines) > n_lines + 1:
            lines.append([("", "")])
        lines.append([(title, "bold")])
        for row in (one for one in rows if id(one) in cells):
            by_name, verdict = cells[id(row)], name_verdict(row, changes=changes)
            style = _STYLES[verdict_of(row, changes=changes)]
            for n in range(n_lines):
                parts = [by_name[column[n]] if column[n] else "" for column in layout]
                parts[0] = f"  {parts[0]}"
                lines.append(write(parts, (verdict, style) if n == 0 else ("", "")))
            if has_ratios and n_lines > 1 and row.ratio_bound is not None:
                lines.append([(f"    ratio {row.ratio_text}", "")])
            if changes and row.change is not None and row.verdict != row.change.verdict_new:
                alone = f"{row.verdict} with the old model, {row.change.verdict_new} with the new"
                lines.append([(f"    {alone}", "")])
        folded = [row for row in rows if id(row) not in cells]
        for text in (_fold(folded, changes=changes), together):
            lines += [
                [(line, "dim" if text != together else "")]
                for line in wrap_text(text, total, "  ", "    ")
            ]
    columns = [name for column in layout for name in column]
    return Table(lines, [*columns, *(["ratio"] if has_ratios else [])], total)


def _drop_unused(layout: Layout, rows: Sequence[AuditRow], *, changes: bool) -> Layout:
    """Return the layout without columns that are empty in all rows."""
    unused: set[str] = set()
    if changes:
        return layout
    if all(row.margin is None for row in rows):
        unused |= {"p beyond", "p within"}
    if all(row.ratio_bound is None for row in rows):
        unused.add("ratio")
    if not any(map(format_detectable_gap, rows)):
        unused.add("detects gaps")
    blanked = (tuple("" if name in unused else name for name in column) for column in layout)
    return [column for column in blanked if any(column)]


def _split_sections(
    audit: AuditData, *, changes: bool
) -> Iterator[tuple[str, list[AuditRow], str]]:
    """Yield the title and the rows of each section, and what the test of all its groups says."""
    omnibus = {(one.attribute, one.metric): one for one in audit.omnibus if not changes}
    sections: dict[tuple[str, str], list[AuditRow]] = {}
    for row in audit.rows:
        sections.setdefault((row.attribute, row.metric), []).append(row)
    for section, rows in sections.items():
        found = omnibus.get(section)
        joint, together = None if found is None else found.result, ""
        if joint is not None:
            n_groups, p = len(joint.groups), state_pvalue(joint.pvalue)
            together = f"one test that all {n_groups} groups are equal: {p}, not adjusted"
            if found is not None and found.spread is not None:
                together += f"; {found.spread.describe(Unit(is_share=False))}"
        yield " · ".join(map(format_name, section)), rows, together


def _fold(rows: Sequence[AuditRow], *, changes: bool) -> str:
    """Return how many comparisons have no line of their own, and why; "" for none."""
    if not rows:
        return ""
    return state_small(
        row.change.reason if changes and row.change is not None else row.reason for row in rows
    )


def name_verdict(row: AuditRow, *, changes: bool) -> str:
    """Return the verdict, and whether the metric has no value."""
    tested = row.change if changes and row.change is not None else row
    return verdict_of(row, changes=changes) + (" (undefined)" if tested.result is None else "")


def _format_names(row: AuditRow) -> dict[str, str]:
    first, second = (shorten(name, _WIDEST_NAME) for name in row.names)
    return {"first − second group": row.gap_name, "first group": first, "second group": second}


def title_of(column: str, audit: AuditData) -> str:
    """Return what stands above a column."""
    if column == "second value":
        return ""
    return f"adjusted {column}" if audit.adjust and column in {"interval", "p"} else column


def format_cells(row: AuditRow, *, changes: bool) -> Mapping[str, str]:
    """Return the texts of a comparison, or of its change, by the names of columns."""
    if changes:
        return _format_change_cells(row)
    return _format_names(row) | {
        "values": row.values_text,
        "value": row.value_texts[0],
        "second value": row.value_texts[1],
        "gap": row.gap_text,
        "interval": row.adjusted_interval_text,
        "p": format_pvalue(row.adjusted_pvalue),
        "p beyond": format_pvalue(row.adjusted_exceedance_pvalue),
        "p within": format_pvalue(row.adjusted_equivalence_pvalue),
        "ratio": row.ratio_text,
        "detects gaps": format_detectable_gap(row),
    }


def _format_change_cells(row: AuditRow) -> Mapping[str, str]:
    change = row.change
    if change is None:
        raise ValueError("a row of two models has a change")
    first, second = change.value_texts
    return _format_names(row) | {
        "first": first,
        "second": second,
        "value": first,
        "second value": second,
        "gap": " → ".join(change.gap_texts),
        "change": change.change_text,
        "interval": change.adjusted_interval_text,
        "p": format_pvalue(change.adjusted_pvalue),
        "p of size": format_pvalue(change.adjusted_size_pvalue),
    }
