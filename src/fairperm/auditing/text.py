"""An audit as text: its answer, its table, and the rules behind its verdicts."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_count
from fairperm.auditing.tables import as_table, select_shown, verdict_of
from fairperm.auditing.verdicts import explain_changes, explain_verdicts
from fairperm.hypothesis_tests.results.text import (
    state_hypotheses,
    state_min_group_size,
    state_threshold,
    state_used_rows,
    wrap_answer,
    wrap_notes,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from fairperm.hypothesis_tests.results.audits import AuditData, AuditRow

_WIDEST = 10_000  # columns of a terminal
_ADJUSTMENT = {
    "holm": "Holm-adjusted",
    "bh": "Benjamini–Hochberg-adjusted",
    "by": "Benjamini–Yekutieli-adjusted",
    None: "not adjusted",
}


def as_text(audit: AuditData) -> str:
    """Return the audit as plain text that fits the terminal, or as wide as it needs to be."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDEST
    table = as_table(audit, width)
    head = [*wrap_answer(audit.answer), heading(audit)]
    parts = [*head, "", str(table), "", footnotes(audit, table.columns, select_shown(audit))]
    if audit.compares_models:
        changes = str(as_table(audit, width, changes=True))
        parts += ["", heading(audit, changes=True), "", changes, "", changes_footnotes(audit)]
    return "\n".join([*parts, *wrap_notes(audit.notes)])


def heading(audit: AuditData, *, changes: bool = False) -> str:
    """Return the numbers of comparisons by verdict, in one line."""
    verdicts = [verdict_of(row, changes=changes) for row in audit.rows]
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
    name = "change" if changes else "comparison"
    return f"{format_count(len(verdicts), name)}: {counts or 'none'}"


def footnotes(
    audit: AuditData, columns: Collection[str], shown: Sequence[AuditRow] | None = None
) -> str:
    """Return the rules behind the verdicts, and what the columns and words of a table mean.

    ``shown`` are the comparisons that the table has, by default all.
    """
    adjusted = ""
    if audit.n_hypotheses:
        adjusted = f"; {_state_adjustment(audit)} for {state_hypotheses(audit)}"
    sentences = [
        f"Level {audit.alpha:g}{adjusted}.",
        state_min_group_size(audit),
        *state_threshold(audit),
        *explain_verdicts(
            audit.rows if shown is None else shown, columns, are_adjusted=bool(audit.adjust)
        ),
    ]
    return " ".join([*sentences, *_state_rows(audit)])


def changes_footnotes(audit: AuditData) -> str:
    """Return the rules behind the verdicts on changes."""
    rows = [row for row in audit.rows if row.change is not None]
    sentences = [
        f"Level {audit.alpha:g}; {_state_adjustment(audit)}.",
        *state_threshold(audit),
        "Change: the gap with the new model minus the gap with the old one.",
        *explain_changes(rows),
        "Verdicts with the old or the new model: those of an audit of that model alone.",
    ]
    return " ".join([*sentences, *_state_rows(audit)])


def _state_rows(audit: AuditData) -> Iterator[str]:
    """Yield which rows count, and how."""
    if audit.is_stratified and audit.units != "items":
        yield (
            "Compared within strata: each gap is a mean over them, and values are those of all "
            "strata together."
        )
    if audit.is_weighted:
        yield "Values are weighted."
    yield state_used_rows(audit)


def _state_adjustment(audit: AuditData) -> str:
    return f"intervals and p are {_ADJUSTMENT[audit.adjust]}"
