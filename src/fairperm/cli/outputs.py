"""Results as files: JSON for machines, CSV for spreadsheets, Markdown for reviews."""

from __future__ import annotations

import io
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fairperm._utils.files import check_target, write_whole
from fairperm._utils.formatting import UNSAFE, escape_markdown, neutralize
from fairperm.cli.terminal import print_text, write_message
from fairperm.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from fairperm.selection.result import SelectionAudit, SelectionRow

OUTPUTS = ("report", "json", "csv", "markdown", "junit", "xlsx", "state")  # options
SCHEMA_VERSION = 2
_LIBRARIES = ("numpy", "scipy", "numba", "duckdb", "pyarrow")


def as_json(
    command: str,
    result: Mapping[str, Any],
    *,
    options: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    rows: int | None,
) -> str:
    """Return a result and everything needed to compute it again, as docs/json.md describes."""
    import json

    document = {
        "schema": f"fairperm.{command}",
        "schema_version": SCHEMA_VERSION,
        "versions": versions(),
        "command": command,
        "options": dict(options),
        "inputs": list(files),
        "rows_read": rows,
        "result": result,
    }
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n"


def versions() -> dict[str, str]:
    """Return the versions of the software that the numbers may depend on."""
    from importlib import metadata

    found = {"fairperm": metadata.version("fairperm"), "python": sys.version.split()[0]}
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):  # an optional part
            found[name] = metadata.version(name)
    return found


def as_csv(rows: Sequence[Mapping[str, Any]], *, raw_names: bool = False) -> str:
    """Return rows as CSV, numbers with all their digits.

    Texts that a spreadsheet would run as a formula get an apostrophe, and control characters are
    written as escapes, unless ``raw_names`` asks for them unchanged.
    """
    lines = [_write_line(rows[0] if rows else [])]
    for row in rows:
        cells = ["" if one is None else one for one in row.values()]
        lines.append(_write_line(cells if raw_names else map(neutralize, cells)))
    return "".join(lines)


def as_xlsx(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows as an Excel workbook."""
    from fairperm._utils.workbook import Table, make_workbook

    return make_workbook([Table.of("Results", rows)])


def _write_line(cells: Iterable[object]) -> str:
    import csv

    out = io.StringIO()
    csv.writer(out).writerow(cells)  # quotes the characters of its own line end, "\r\n"
    return out.getvalue().removesuffix("\r\n") + "\n"


def selection_as_markdown(found: SelectionAudit, failed: Sequence[SelectionRow]) -> str:
    """Return an audit of selection as a table for a pull request, with the failed groups marked."""
    lines = [escape_markdown(found.answer), "", f"| {' | '.join(found.heads)} |"]
    lines += [f"|---|---|{'--:|' * (len(found.heads) - 3)}---|"]
    for row in found:
        *cells, evidence = map(escape_markdown, row.cells(in_strata=found.is_stratified))
        lines.append(f"| {' | '.join(cells)} | {evidence}{' ✗' if row in failed else ''} |")
    for note in found.footnotes:
        lines += ["", f"Note: {escape_markdown(write_message(note))}"]
    return "\n".join([*lines, ""])


def check_outputs(outputs: Mapping[str, str | Path | None]) -> bool:
    """Check the paths of outputs before any work; return whether one is standard output."""
    printed = [name for name, path in outputs.items() if str(path) == "-"]
    if len(printed) > 1:
        raise InputError(f"only one of {' and '.join(printed)} can be '-', standard output.")
    for name in {"--report", "--state", "--xlsx"} & {*printed}:
        raise InputError(f"{name} must be the name of a file; only text can go to '-'.")
    names = [str(path) for path in outputs.values() if path is not None and str(path) != "-"]
    seen: set[object] = set()
    for name in names:
        target = check_target(name).resolve()  # "./x" and a link to x are x
        identity: object = target
        if target.is_file():  # a hard link is the file, too
            found = target.stat()
            identity = found.st_dev, found.st_ino
        if identity in seen:
            raise InputError(f"two outputs cannot be the same file, {shown(name)}.")
        seen.add(identity)
    return bool(printed)


def write_output(path: str, text: str | bytes) -> None:
    """Write a file whole or not at all, or print it if the path is "-"."""
    if path == "-" and isinstance(text, str):
        sys.stdout.flush()
        print_text(text.rstrip("\n"))
    else:
        write_whole(path, text)


def write_outputs(*outputs: tuple[str | None, Callable[[], str | bytes]]) -> None:
    """Write the outputs that have a path; what is printed comes last, for its reader may leave."""
    for path, make_text in sorted(outputs, key=lambda one: one[0] == "-"):
        if path is not None:
            write_output(path, make_text())
