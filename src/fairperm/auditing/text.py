"""An audit as a table for a terminal."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from fairperm.hypothesis_tests.results.gaps import noted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from fairperm.hypothesis_tests.results.audits import AuditData, AuditRow

_WIDEST = 10_000
_COLUMNS = {
    "values": 100,
    "gap": 0,
    "interval": 120,
    "p": 85,
    "adjusted p": 60,
}  # and from which width
_LARGE = 1e4
_LONGEST_NAME = 80
_SMALLEST_P = 1e-4
_BLIND, _SEES, _UNDEFINED = "may miss any", "sees ", "undefined"
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


def as_text(audit: AuditData) -> str:
    """Return the audit as plain text, as wide as it needs to be."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(  # in a notebook it would show the table by itself, and leave `out` empty
        file=out, width=_WIDEST, color_system=None, legacy_windows=False, force_jupyter=False
    )
    console.print(as_table(audit, _WIDEST))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join([heading(audit), *lines, footing(audit), *noted(audit.notes)])


def heading(audit: AuditData) -> str:
    """Return what was compared, in one line."""
    counts = {
        verdict: sum(row.verdict == verdict for row in audit.rows)
        for verdict in dict.fromkeys(row.verdict for row in audit.rows)
    }
    found = ", ".join(f"{n} {verdict}" for verdict, n in counts.items()) or "none"
    return f"Audit: {_counted(len(audit.rows), 'comparison')} ({found})"


def footing(audit: AuditData) -> str:
    """Return how the verdicts came about."""
    text = (
        f"Level {audit.alpha:g}, p {_ADJUSTMENT[audit.adjust]} for "
        f"{_counted(audit.n_hypotheses, 'hypothesis', 'hypotheses')}. "
        f"Groups of fewer than {audit.min_group_size:,} rows are not judged."
    )
    text += "".join(f" {one}" for one in _explained(audit))
    if audit.n_dropped:
        rows = _counted(audit.n_dropped, "row")
        text += f" {rows} with missing values {'was' if audit.n_dropped == 1 else 'were'} left out."
    return text


def _explained(audit: AuditData) -> Iterator[str]:
    """Yield what the words in the column of verdicts mean, of those that stand there."""
    cells = [_verdict(row) for row in audit.rows]
    margins = {row.margin for row in audit.rows if row.verdict == "equivalent"}
    if margins:
        which = f" ({margins.pop():g})" if len(margins) == 1 else ""
        yield f"Equivalent: shown to be within the margin{which}, by a test of its own, not by p."
    if any(cell.startswith("inconclusive") for cell in cells):
        yield "Inconclusive: no evidence of a gap, and none that there is no gap."
    if any(_SEES in cell for cell in cells):
        yield f"({_SEES}…): the gap that a sample like this one detects with 80 % power."
    if any(_BLIND in cell for cell in cells):
        yield f"({_BLIND}): no gap that is possible is large enough for 80 % power."
    undefined = [row for row in audit.rows if row.result is None]
    if undefined:
        yield f"({_UNDEFINED}), in the first case: {undefined[0].reason}"


def as_table(audit: AuditData, width: int = 120) -> Table:
    """Return the rows as a table that rich can print, a section for each attribute and metric.

    Where the terminal is narrow, the columns that can be spared are left out.
    """
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    shown_columns = [name for name, least in _COLUMNS.items() if width >= least]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("first – second group", overflow="fold", min_width=16)
    for name in shown_columns:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold", min_width=12)
    at_once = {(one.attribute, one.metric): one.result for one in audit.omnibus}
    for (attribute, metric), rows in _sections(audit):
        together = at_once.get((attribute, metric))
        title = Text(f"{name_of(attribute)} · {name_of(metric)}", style="bold")
        all_groups = "" if together is None else f"all groups: p {pvalue_of(together.pvalue)}"
        table.add_row(title, *("" for _ in shown_columns), all_groups)
        for row in rows:
            cells = _cells(row)
            groups = Text(" – ".join(map(name_of, row.groups)))
            table.add_row(
                Padding(groups, (0, 0, 0, 2)),  # when wrapped too
                *(Text(cells[name]) for name in shown_columns),
                Text(_verdict(row), _STYLES[row.verdict]),
            )
        table.add_section()
    return table


def _counted(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _sections(audit: AuditData) -> Iterator[tuple[tuple[str, str], list[AuditRow]]]:
    sections: dict[tuple[str, str], list[AuditRow]] = {}
    for row in audit.rows:
        sections.setdefault((row.attribute, row.metric), []).append(row)
    yield from sections.items()


def _cells(row: AuditRow) -> dict[str, str]:
    low, high = row.confidence_interval or (None, None)
    return {
        "values": " / ".join(number_of(value) for value in row.values),
        "gap": number_of(row.difference, "+"),
        "interval": "–" if low is None else f"[{number_of(low, '+')}, {number_of(high, '+')}]",
        "p": pvalue_of(row.pvalue),
        "adjusted p": pvalue_of(row.adjusted_pvalue),
    }


def _verdict(row: AuditRow) -> str:
    """Return the verdict; where nothing was found, with what could have been."""
    gap = row.detectable_gap
    if row.result is None:
        return f"{row.verdict} ({_UNDEFINED})"
    if row.verdict in {"disparity", "equivalent"} or gap is None or math.isnan(gap):
        return row.verdict
    return f"{row.verdict} ({_BLIND if math.isinf(gap) else f'{_SEES}{number_of(gap)}'})"


def name_of(group: object) -> str:
    """Return a group's name on one line of readable length."""
    if isinstance(group, tuple):
        return " × ".join(map(name_of, group))
    text = " ".join("".join(c if c.isprintable() else " " for c in str(group)).split())
    return text[: _LONGEST_NAME - 1] + "…" if len(text) > _LONGEST_NAME else text or "(empty)"


def number_of(value: Any, sign: str = "") -> str:
    """Return a number, or those of a joint metric's parts, with three decimals."""
    if isinstance(value, dict):
        return ", ".join(number_of(one) for one in value.values())
    if value is None or math.isnan(value):
        return "–"
    return f"{value:{sign}.4g}" if abs(value) >= _LARGE else f"{value:{sign}z.3f}"


def pvalue_of(value: float | None) -> str:
    """Return a p-value, which is never 0."""
    if value is None:
        return "–"
    return "<0.0001" if value < _SMALLEST_P else f"{value:.4f}"
