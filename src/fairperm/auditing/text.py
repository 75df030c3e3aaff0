"""An audit as a table for a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from fairperm._utils.formatting import (
    format_count,
    format_name,
    format_pvalue,
    state_pvalue,
)
from fairperm.auditing.verdicts import explain_verdicts, format_detectable_gap
from fairperm.hypothesis_tests.results.text import (
    state_dropped,
    state_hypotheses,
    state_min_group_size,
    wrap_notes,
)

if TYPE_CHECKING:
    from rich.table import Table

    from fairperm.hypothesis_tests.results.audits import AuditData, AuditRow

_WIDEST = 10_000
_COLUMNS = {  # and the terminal width from which they are shown
    "values": 100,
    "gap": 0,
    "interval": 135,
    "p": 115,
    "adjusted p": 60,
    "p beyond": 110,
    "p within": 110,
    "detects gaps": 75,
}
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
    return "\n".join([heading(audit), *lines, footing(audit), *wrap_notes(audit.notes)])


def heading(audit: AuditData) -> str:
    """Return the numbers of comparisons by verdict, in one line."""
    verdicts = [row.verdict for row in audit.rows]
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
    return f"Audit: {format_count(len(verdicts), 'comparison')} ({counts or 'none'})"


def footing(audit: AuditData) -> str:
    """Return the rules behind the verdicts, and the meanings of terms in the table."""
    sentences = [
        f"Level {audit.alpha:g}, p {_ADJUSTMENT[audit.adjust]} for {state_hypotheses(audit)}.",
        state_min_group_size(audit),
        *explain_verdicts(audit.rows),
    ]
    if audit.is_weighted:
        sentences.append("Values are weighted.")
    if audit.n_dropped:
        sentences.append(state_dropped(audit))
    return " ".join(sentences)


def as_table(audit: AuditData, width: int = 120) -> Table:
    """Return the rows as a table for rich, with a section for each attribute and metric.

    Narrow tables omit the least important columns.
    """
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    columns = [name for name, least in _COLUMNS.items() if width >= least]
    if all(row.margin is None for row in audit.rows):
        columns = [name for name in columns if name not in {"p beyond", "p within"}]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("first − second group", overflow="fold", min_width=16)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold", min_width=12)
    omnibus = {(one.attribute, one.metric): one.result for one in audit.omnibus}
    sections: dict[tuple[str, str], list[AuditRow]] = {}
    for row in audit.rows:
        sections.setdefault((row.attribute, row.metric), []).append(row)
    for section, rows in sections.items():
        title = Text(" · ".join(map(format_name, section)), style="bold")
        table.add_row(title)
        for row in rows:
            by_column = _format_cells(row)
            groups = Text(row.gap_name)
            verdict = f"{row.verdict} (undefined)" if row.result is None else row.verdict
            table.add_row(
                Padding(groups, (0, 0, 0, 2)),  # indents wrapped lines too
                *(Text(by_column[name]) for name in columns),
                Text(verdict, _STYLES[row.verdict]),
            )
        joint = omnibus.get(section)
        if joint is not None:
            cells = [format_pvalue(joint.pvalue) if name == "p" else "" for name in columns]
            verdict = "" if "p" in columns else state_pvalue(joint.pvalue)
            table.add_row(Padding("all groups", (0, 0, 0, 2)), *cells, verdict)
        table.add_section()
    return table


def _format_cells(row: AuditRow) -> dict[str, str]:
    return {
        "values": row.values_text,
        "gap": row.gap_text,
        "interval": row.interval_text,
        "p": format_pvalue(row.pvalue),
        "adjusted p": format_pvalue(row.adjusted_pvalue),
        "p beyond": format_pvalue(row.adjusted_exceedance_pvalue),
        "p within": format_pvalue(row.adjusted_equivalence_pvalue),
        "detects gaps": format_detectable_gap(row),
    }
