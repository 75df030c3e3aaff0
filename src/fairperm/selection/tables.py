"""Tables of an audit of selection as rules lay them out: one for each attribute and combination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import format_level
from fairperm._utils.workbook import Table, make_workbook

if TYPE_CHECKING:
    from fairperm.selection.result import SelectionAudit, SelectionRow


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
    facts = [(name, text) for name, text in list_facts(found)]
    notes = [("", ""), *(("Note", note) for note in found.footnotes)]
    first = Table("About", ("Answer", found.answer), (*facts, *notes))
    return make_workbook([first, *make_tables(found)])
