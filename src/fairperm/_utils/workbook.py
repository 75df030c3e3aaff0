"""Tables as an Excel workbook."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from fairperm._utils.formatting import neutralize
from fairperm._utils.optional import optional

_TITLE_LETTERS = 31  # of a sheet's title, of which Excel forbids more
_FORBIDDEN = str.maketrans(dict.fromkeys("[]:*?/\\'", " "))
_WIDTHS = (18, 60)  # of a sheet's columns: least and most, in letters


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its title, the heads of its columns, and its rows of texts and numbers."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Return a table of rows that have the same keys."""
        heads = tuple(rows[0]) if rows else ()
        return cls(title, heads, tuple(tuple(row.values()) for row in rows))


def make_workbook(tables: Sequence[Table]) -> bytes:
    """Return a workbook with a sheet for each table; no text of it is run as a formula."""
    with optional("A workbook"):
        from openpyxl import Workbook
        from openpyxl.styles import Font

    book = Workbook()
    titles: set[str] = set()
    for place, table in enumerate(tables):
        sheet = book.active if place == 0 else book.create_sheet()
        sheet.title = _title_sheet(table.title, titles)
        for cells in (table.heads, *table.rows):
            sheet.append([_as_cell(one) for one in cells])
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


def _as_cell(value: object) -> object:
    is_plain = value is None or isinstance(value, (bool, int))
    is_number = isinstance(value, float) and math.isfinite(value)
    return value if is_plain or is_number else neutralize(str(value))


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
