"""Tables of an audit of selection as rules lay them out: one for each attribute and combination."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import format_level, neutralize
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairperm.selection.result import SelectionAudit, SelectionRow

_TITLE_LETTERS = 31  # of a sheet's title, of which Excel forbids more
_FORBIDDEN = str.maketrans(dict.fromkeys("[]:*?/\\'", " "))
_WIDTHS = (18, 60)  # of a sheet's columns: least and most, in letters


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its title, the heads of its columns, and its rows of texts and numbers."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def make_tables(found: SelectionAudit) -> list[Table]:
    """Return a table for each attribute and for their combinations, with a column for each part."""
    rate = "selection rate" if found.threshold is None else "scoring rate"
    standardized = ("standardized rate",) if found.is_stratified else ()
    level = format_level(found.confidence_level)
    numbers = (
        *("applicants", "selected", rate, *standardized, "impact ratio"),
        *(f"{level} low", f"{level} high"),
        *(f"beside {found.four_fifths:g}", "adjusted p", "shortfall", "standard deviations"),
    )
    tables = []
    for attribute in found.attributes:
        rows = [row for row in found.rows if row.attribute == attribute]
        is_combined = isinstance(rows[0].group, tuple) and " × " in attribute
        parts = attribute.split(" × ") if is_combined else [attribute]
        if len(parts) != len(_parts(rows[0])):
            parts = [attribute, *[""] * (len(_parts(rows[0])) - 1)]
        cells = tuple((*map(str, _parts(row)), *_numbers(found, row)) for row in rows)
        tables.append(Table(attribute, (*parts, *numbers), cells))
    return tables


def _parts(row: SelectionRow) -> tuple[object, ...]:
    return row.group if isinstance(row.group, tuple) else (row.group,)


def _numbers(found: SelectionAudit, row: SelectionRow) -> tuple[Any, ...]:
    standardized = (row.standardized_rate,) if found.is_stratified else ()
    low, high = row.interval or (None, None)
    evidence = "too small" if row.evidence is None else row.evidence
    return (
        *(row.applicants, row.selected, row.rate, *standardized, row.impact_ratio),
        *(low, high, evidence, row.pvalue, row.shortfall, row.standard_deviations),
    )


def list_facts(found: SelectionAudit) -> Iterator[tuple[str, str]]:
    """Yield what a reader asks of the data: names, and texts."""
    details = found.details
    if details.source:
        yield "Source of the data", details.source
    if details.start or details.end:
        yield "Dates of the data", f"{details.start or '…'} to {details.end or '…'}"
    yield "Applicants", f"{found.applicants:,}, of whom {found.selected:,} were selected"
    if found.threshold is not None:
        yield "Selected", f"those with a score above {found.threshold:g}"
    for one in found.unknown:
        if one.applicants:
            yield f"Unknown {one.attribute}", f"{one.applicants:,} applicants"
    if any(row.impact_ratio is None for row in found.rows):
        share = format_level(found.minimum_share)
        why = details.why_excluded or f"groups with less than {share} of the applicants"
        yield "Left out of the ratios", why


def as_workbook(found: SelectionAudit) -> bytes:
    """Return an Excel workbook: a sheet of facts and notes, and a sheet for each table."""
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Font
    except ImportError as error:
        hint = "Install it: pip install 'fairperm[excel]'."
        raise InputError(f"Excel files need openpyxl, which is not installed. {hint}") from error

    book = Workbook()
    facts = [(name, text) for name, text in list_facts(found)]
    notes = [("", ""), *(("Note", note) for note in found.footnotes)]
    first = Table("About", ("Answer", found.answer), (*facts, *notes))
    titles: set[str] = set()
    for place, table in enumerate([first, *make_tables(found)]):
        sheet = book.active if place == 0 else book.create_sheet()
        sheet.title = _title_sheet(table.title, titles)
        for cells in (table.heads, *table.rows):
            sheet.append([neutralize(one) for one in cells])
        for cell in sheet[1]:
            cell.font = Font(bold=True)
        sheet.freeze_panes = "A2"
        for column in sheet.columns:
            longest = max(len(str(one.value or "")) for one in column)
            width = min(max(longest + 2, _WIDTHS[0]), _WIDTHS[1])
            sheet.column_dimensions[column[0].column_letter].width = width
    file = BytesIO()
    book.save(file)
    return file.getvalue()


def _title_sheet(title: str, used: set[str]) -> str:
    """Return a title that Excel takes, and that no other sheet has in any case."""
    plain = str(neutralize(title)).translate(_FORBIDDEN).strip() or "group"
    found, n = plain[:_TITLE_LETTERS], 1
    while found.casefold() in used:
        n += 1
        end = f" {n}"
        found = plain[: _TITLE_LETTERS - len(end)] + end
    used.add(found.casefold())
    return found
