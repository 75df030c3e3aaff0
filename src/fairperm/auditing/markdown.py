"""An audit as Markdown, such as for a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm._utils.formatting import escape_markdown, format_name
from fairperm.auditing.tables import (
    format_cells,
    list_columns,
    name_verdict,
    title_of,
)
from fairperm.auditing.text import changes_footnotes, footnotes, heading

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from fairperm.hypothesis_tests.results.audits import AuditData, AuditRow

_WORST = ("disparity", "widened")


def as_markdown(
    audit: AuditData,
    notes: Iterable[str],
    *,
    changes: bool = False,
    failed: Collection[AuditRow] = (),
) -> str:
    """Return the comparisons as a table for a pull request, with those marked that failed.

    With ``changes`` it is about what a new model does to the gaps.
    """
    head = f"### {escape_markdown(heading(audit, changes=changes))}\n\n"
    return head + describe_gaps(audit, notes, changes=changes, failed=failed)


def describe_gaps(
    audit: AuditData,
    notes: Iterable[str],
    *,
    changes: bool = False,
    failed: Collection[AuditRow] = (),
) -> str:
    """Return the answer, the table, what its columns and words mean, and the notes."""
    rows = [row for row in audit.rows if row.change is not None or not changes]
    name, *columns = list_columns(rows, changes=changes)
    heads = ["attribute", "metric", *(title_of(one, audit) for one in (name, *columns)), "verdict"]
    table = [f"| {' | '.join(heads)} |", f"|---|---|---|{'--:|' * len(columns)}---|"]
    for row in rows:
        cells = format_cells(row, changes=changes)
        names = (format_name(row.attribute), format_name(row.metric), cells[name])
        texts = [*map(escape_markdown, names), *(cells[one] for one in columns)]
        verdict = name_verdict(row, changes=changes)
        verdict = f"**{verdict}**" if verdict in _WORST else verdict
        table.append(f"| {' | '.join(texts)} | {verdict}{' ✗' if row in failed else ''} |")
    rules = changes_footnotes(audit) if changes else footnotes(audit, columns)
    below = [rules, *(f"Note: {note}" for note in notes)]
    lines = [escape_markdown(audit.answer), "", *table]
    return "\n".join([*lines, *(f"\n{escape_markdown(text)}" for text in below), ""])
