"""What is written to files: JSON for machines, CSV for spreadsheets, Markdown for reviews."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import textwrap
from importlib import metadata
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    format_interval,
    format_name,
    format_number,
    format_pvalue,
    name_of_gap,
)
from fairperm.auditing.text import footing, format_values, heading
from fairperm.auditing.verdicts import format_detectable_gap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairperm.auditing.result import Audit

SCHEMA_VERSION = 1
_LIBRARIES = ("numpy", "scipy", "numba", "duckdb", "pyarrow")
_MARKS = {
    "disparity": "**disparity**",
    "equivalent": "equivalent",
    "inconclusive": "inconclusive",
    "too small": "too small",
}


def as_json(
    kind: str,
    result: Mapping[str, Any],
    *,
    command: str,
    options: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    rows: int | None,
) -> str:
    """Return a result with all that is needed to compute it again, as docs/json.md describes."""
    document = {
        "schema": f"fairperm.{kind}",
        "schema_version": SCHEMA_VERSION,
        "versions": versions(),
        "command": command,
        "options": dict(options),
        "inputs": list(files),
        "rows_read": rows,
        "result": result,
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def versions() -> dict[str, str]:
    """Return the versions that numbers may depend on."""
    found = {"fairperm": metadata.version("fairperm"), "python": sys.version.split()[0]}
    return found | {name: metadata.version(name) for name in _LIBRARIES}


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of flat values as CSV; numbers with all their digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows[0] if rows else [])
    for row in rows:
        writer.writerow(["" if one is None else one for one in row.values()])
    return out.getvalue()


def as_markdown(audit: Audit, failed: Sequence[Any]) -> str:
    """Return an audit for a pull request."""
    head = ["attribute", "metric", "groups", "values", "gap", "interval", "adjusted p"]
    head += ["detects gaps", "verdict"]
    lines = [f"### {_escaped(heading(audit))}", ""]
    lines += [f"| {' | '.join(head)} |", "|---|---|---|--:|--:|--:|--:|--:|---|"]
    for row in audit.rows:
        cells = [
            escaped_name(row.attribute),
            escaped_name(row.metric),
            _escaped(name_of_gap(*row.groups)),
            format_values(row),
            format_number(row.difference, signed=True),
            format_interval(row.confidence_interval, signed=True),
            format_pvalue(row.adjusted_pvalue),
            format_detectable_gap(row),
            _MARKS[row.verdict] + (" ✗" if row in failed else ""),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", _escaped(footing(audit)), ""]
    return "\n".join(lines)


def escaped_name(group: object) -> str:
    """Return a group's name so that Markdown shows it as it is."""
    return _escaped(format_name(group))


def _escaped(text: str) -> str:
    # entities, since a backslash does not stop GitHub from linking @people, #1 and addresses
    text = re.sub(r"[&<>@#|`\[\]\\*~$!]", lambda found: f"&#{ord(found[0])};", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", "&#95;", text)
    return text.replace("://", "&#58;//").replace("www.", "www&#46;")


def in_lines(audit: Audit, width: int) -> str:
    """Return the comparisons one below the other, for screens too narrow for a table."""

    def names(text: str, indent: str) -> str:
        return textwrap.fill(
            text, max(width, 20), initial_indent=indent, subsequent_indent=f"{indent}  "
        )

    lines = []
    section = None
    for row in audit.rows:
        if section != (section := (row.attribute, row.metric)):
            lines += ["", names(f"{format_name(row.attribute)} · {format_name(row.metric)}", "")]
        lines += [
            names(name_of_gap(*row.groups), "  "),
            f"    values   {format_values(row)}",
        ]
        if row.result is not None:
            lines += [
                f"    gap      {format_number(row.difference, signed=True)}",
                f"    interval {format_interval(row.confidence_interval, signed=True)}",
                f"    p        {format_pvalue(row.adjusted_pvalue)} adjusted",
            ]
        lines.append(f"    verdict  {row.verdict}")
    return "\n".join(lines[1:])
