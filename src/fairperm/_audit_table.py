"""An audit as a table for a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from fairperm.errors import shown

if TYPE_CHECKING:
    from rich.table import Table

    from fairperm._audit_data import AuditData, AuditRow

_WIDTH = 120
_STYLES = {
    "disparity": "bold red",
    "equivalent": "green",
    "inconclusive": "yellow",
    "too small": "dim",
}
_ADJUSTMENT = {
    "holm": "Holm-adjusted",
    "bh": "Benjamini–Hochberg-adjusted",
    "by": "Benjamini–Yekutieli-adjusted",
    "maxt": "max-T-adjusted",
    None: "unadjusted",
}


def as_text(audit: AuditData, width: int = _WIDTH) -> str:
    """Return the audit as plain text."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, legacy_windows=False)
    console.print(as_table(audit))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join([heading(audit), *lines, footing(audit)])


def heading(audit: AuditData) -> str:
    """Return what was compared, in one line."""
    counts = {
        verdict: sum(row.verdict == verdict for row in audit.rows)
        for verdict in dict.fromkeys(row.verdict for row in audit.rows)
    }
    found = ", ".join(f"{n} {verdict}" for verdict, n in counts.items()) or "none"
    return f"Audit: {len(audit.rows)} comparisons ({found})"


def footing(audit: AuditData) -> str:
    """Return how the verdicts came about."""
    text = (
        f"Level {audit.alpha:g}, p {_ADJUSTMENT[audit.adjust]} for "
        f"{audit.n_hypotheses} hypotheses. "
        f"Groups of fewer than {audit.min_group_size:,} rows are not judged."
    )
    if audit.n_dropped:
        text += f" {audit.n_dropped:,} rows with missing values were left out."
    return text


def as_table(audit: AuditData) -> Table:
    """Return the rows as a table that rich can print."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("attribute", "metric", "groups"):
        table.add_column(name, overflow="fold")
    for name in ("values", "difference", "interval", "p", "adjusted p", "detectable"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in audit.rows:
        table.add_row(
            *(Text(one) for one in _cells(row)), Text(row.verdict, style=_STYLES[row.verdict])
        )
    return table


def _cells(row: AuditRow) -> list[str]:
    first, second = row.groups
    low, high = row.confidence_interval or (None, None)
    interval = "–" if low is None else f"[{_number(low, '+')}, {_number(high, '+')}]"
    return [
        row.attribute,
        row.metric,
        f"{_name(first)} – {_name(second)}",
        " / ".join(_number(value) for value in row.values),
        _number(row.difference, "+"),
        interval,
        _p(row.pvalue),
        _p(row.adjusted_pvalue),
        _number(row.detectable_gap),
    ]


def _name(group: object) -> str:
    """Return a group's name on one line of readable length."""
    return shown(group)[1:-1] if isinstance(group, str) else shown(group)


def _number(value: Any, sign: str = "") -> str:
    if isinstance(value, dict):  # the parts of a joint metric
        return "·".join(_number(one) for one in value.values())
    return (
        "–"
        if value is None
        else f"{value:{sign}.4g}"
        if abs(value) >= 1e4
        else f"{value:{sign}.3f}"
    )


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"
