"""What is written to files: JSON for machines, CSV for spreadsheets, Markdown for reviews."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
import textwrap
from importlib import metadata
from typing import TYPE_CHECKING, Any

from fairperm.auditing.text import footing, heading, name_of, number_of, pvalue_of

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
    head += ["sees", "verdict"]
    lines = [f"### {_escaped(heading(audit))}", ""]
    lines += [f"| {' | '.join(head)} |", "|---|---|---|--:|--:|--:|--:|--:|---|"]
    for row in audit.rows:
        low, high = row.confidence_interval or (None, None)
        cells = [
            escaped_name(row.attribute),
            escaped_name(row.metric),
            " – ".join(escaped_name(group) for group in row.groups),
            " / ".join(number_of(value) for value in row.values),
            number_of(row.difference, "+"),
            "–" if low is None else f"{number_of(low, '+')} to {number_of(high, '+')}",
            pvalue_of(row.adjusted_pvalue),
            "none" if row.detectable_gap == math.inf else number_of(row.detectable_gap),
            _MARKS[row.verdict] + (" ✗" if row in failed else ""),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", _escaped(footing(audit)), ""]
    return "\n".join(lines)


def escaped_name(group: object) -> str:
    """Return a group's name so that Markdown shows it as it is."""
    return _escaped(name_of(group))


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
            lines += ["", names(f"{name_of(row.attribute)} · {name_of(row.metric)}", "")]
        low, high = row.confidence_interval or (None, None)
        lines += [
            names(" – ".join(name_of(group) for group in row.groups), "  "),
            "    values   " + " / ".join(number_of(value) for value in row.values),
        ]
        if row.difference is not None and low is not None:
            lines += [
                f"    gap      {number_of(row.difference, '+')}",
                f"    interval {number_of(low, '+')} to {number_of(high, '+')}",
                f"    p        {pvalue_of(row.adjusted_pvalue)} adjusted",
            ]
        lines.append(f"    verdict  {row.verdict}")
    return "\n".join(lines[1:])
