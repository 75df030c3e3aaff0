"""Printing: to terminals of any width, to pipes, to screens that show only ASCII.

The messages of the library are printed in the command line's words: its arguments are options.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from fairperm._utils.formatting import (
    NONE,
    escape_controls,
    format_name,
    wrap_text,
)
from fairperm._utils.progress import keep_silent
from fairperm.errors import ArgumentError, FairpermWarning, InputError, in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from fairperm.auditing.result import Audit
    from fairperm.hypothesis_tests.results.audits import AuditRow, GroupSummary
    from fairperm.selection.result import SelectionRow

_WIDTH_OF_PIPES = 110
_IN_ASCII = str.maketrans(
    "–—−─━╴╶╸╺│┃·×✗✓▼▲≈•●“”‘’\N{NO-BREAK SPACE}", "---------|||xxvv^~**\"\"'' "
) | str.maketrans({"…": "...", "≥": ">=", "≤": "<=", "→": "->", "±": "+-", "√": "sqrt"})
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")
_IN_OUR_WORDS = {  # what is neither an option nor called like one
    "data": "the data",
    "minus the position as y_score": "minus the position as --score",
    "values": "--first and --second",
    "value": "--second",
    "which": "NAME",
    "audit()": "`fairperm audit`",
    "ranking_test()": "`fairperm ranking`",
    "sweep_pairs()": "`fairperm sweep`",
    "the rows' result.notes": "--json and --report",
    "the rows' change.result.notes": "--json and --report",
    "None": "'none'",
    "correlation_test": "correlation_test in Python",
    "passed as text": 'made text. --sql does both: "SELECT *, age // 10 AS decade FROM data"',
}
_MERGE_NAMES = '--sql "SELECT * REPLACE (lower(trim(x)) AS x) FROM data" makes them equal.'


class ClosedPipeError(Exception):
    """The reader closed our standard output; click would make exit code 1 of BrokenPipeError."""


def width() -> int:
    """Return the number of columns of the terminal, or the value of COLUMNS."""
    return max(20, shutil.get_terminal_size((_WIDTH_OF_PIPES, 24)).columns)


def print_text(text: str, stream: TextIO | None = None) -> None:
    """Print a text, in ASCII if the stream cannot encode it."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"  # a stream in memory has none
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        text = text.translate(_IN_ASCII)
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(text + "\n")
    except BrokenPipeError:
        raise ClosedPipeError from None
    except OSError as error:
        discard(stream)
        raise InputError(describe_failure(error)) from error


def describe_failure(error: OSError) -> str:
    """Return a sentence about standard output, which could not be written."""
    return f"standard output cannot be written: {error.strerror or error}."


def discard(stream: TextIO) -> None:
    """Drop what a broken stream still holds: Python would fail to write it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_error(text: str) -> None:
    """Print a text on standard error; control characters, from names of files, as escapes."""
    text = _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    try:
        print_text(text, sys.stderr)
        sys.stderr.flush()
    except (ClosedPipeError, InputError, OSError):  # nobody is left to tell; the exit code says it
        discard(sys.stderr)


def render(table: Any) -> str:
    """Return a text of rich for output, in colour if it goes to a terminal."""
    from rich.console import Console

    out = io.StringIO()
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    console = Console(
        file=out,
        width=width(),
        force_terminal=coloured,
        no_color=not coloured,
        color_system="auto" if coloured else None,
        legacy_windows=False,
        highlight=False,
    )
    console.print(table, soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def wrap(text: str, indent: str = "") -> str:
    """Return a paragraph in lines that fit the terminal."""
    return "\n".join(wrap_text(text, max(20, width() - 1), indent, breaks_words=True))


def format_pairs(items: Sequence[tuple[str, str]]) -> str:
    """Return names and texts, one pair to a line; a long text continues under its beginning."""
    wide = max(len(name) for name, _ in items)
    lines = []
    for name, text in items:
        if width() < wide + 30:
            lines += [name, wrap(text, "    ")]
        else:
            lines += wrap_text(text, width() - 1, f"{name:<{wide}}  ", " " * (wide + 2))
    return "\n".join(lines)


def write_message(message: object) -> str:
    """Return an error or a note with ``pos_label='yes'`` as ``--pos-label yes`` and so on.

    Examples
    --------
    >>> from fairperm.errors import InputError, argument
    >>> hint = f"Pass {argument('pos_label', 'yes')}."
    >>> write_message(InputError("y_true (column 'y')", "made of 0 and 1", "no", hint))
    "--label (column 'y') must be made of 0 and 1; got 'no'. Pass --pos-label yes."
    """
    if isinstance(message, ArgumentError):
        return in_words(message.marked_text(), _write_option)
    return in_words(getattr(message, "marked", str(message)), _write_option)


def _write_option(name: str, values: Sequence[str]) -> str:
    if name.startswith("y_score["):  # of one of several classes
        _, mark, column = name.partition("] (")
        name = f"class_score ({column}" if mark else "class_score"
    bare = name.partition(" (")[0].partition(" column ")[0]  # as in "y_true (column 'y')"
    option = _IN_OUR_WORDS.get(bare) or _find_option(bare)
    if option is None:  # --label, FILE and the like are names of this package
        is_argument = bare.isidentifier() and not bare.isupper()
        option = f"--{bare.replace('_', '-')}" if is_argument else bare
    given = [] if values == ["True"] else map(_write_value, values)  # a switch has no value
    return " ".join([option + name.removeprefix(bare), *given])


def _find_option(argument: str) -> str | None:
    """Return the option that has another name than the argument that it sets."""
    from fairperm.cli.options import OPTIONS

    return next((one.spelt for one in OPTIONS.values() if one.argument == argument), None)


_IN_WORDS = str.maketrans("", "", "_.-")


def _write_value(value: str) -> str:
    """Return a value as one types it: without the quotes that no shell needs."""
    bare = value[1:-1] if value[:1] in "'\"" else value.lower()  # None is none
    is_plain = bare.isascii() and bare.translate(_IN_WORDS).isalnum() and bare[0] != "-"
    return bare if is_plain else value


@contextmanager
def show_warnings(quiet: bool) -> Iterator[set[str]]:
    """Print each warning of the library once, on standard error; yield those that were shown."""
    if quiet:
        keep_silent()
    seen: set[str] = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FairpermWarning)
        try:
            yield seen
        finally:
            for one in caught:
                note = one.message.args[0] if isinstance(one.message, FairpermWarning) else None
                if note is None or note in seen:
                    continue
                seen.add(note)
                if not quiet:
                    print_error(f"fairperm: note: {write_message(note)}")


def select_unseen(notes: Iterable[str], seen: set[str]) -> tuple[str, ...]:
    """Return the notes that were not shown as warnings, in the command line's words."""
    return tuple(write_message(note) for note in notes if note not in seen)


def warn_of_similar_names(groups: Iterable[GroupSummary | SelectionRow], *, quiet: bool) -> None:
    """Print which groups may be one group misspelt, and how to merge them."""
    from fairperm.report.view import find_look_alikes

    for text in () if quiet else find_look_alikes(groups):
        print_error(f"fairperm: note: {text} {_MERGE_NAMES}")


def print_audit(audit: Audit, *, changes: bool = False, shows_small: bool = False) -> None:
    """Print an audit, or its changes, as a table, or as lines if the terminal is narrow."""
    from fairperm.auditing import tables, text

    table = tables.as_table(audit, width(), changes=changes, shows_small=shows_small)
    shown = tables.select_shown(audit, changes=changes, shows_small=shows_small)
    fits = table.width <= width()
    for paragraph in (audit.answer, text.heading(audit, changes=changes)):
        print_text(wrap(paragraph) + "\n")
    print_text(render(table.as_rich()) if fits else _as_lines(shown, changes=changes))
    columns = table.columns if fits else tables.list_columns(shown, changes=changes)
    rules = text.changes_footnotes(audit) if changes else text.footnotes(audit, columns, shown)
    print_text("\n" + wrap(rules))


def _as_lines(rows: Sequence[AuditRow], *, changes: bool) -> str:
    """Return the comparisons one below the other, for terminals too narrow for a table."""
    from fairperm.auditing import tables

    def fill(text: str, indent: str) -> str:
        return "\n".join(wrap_text(text, width(), indent, f"{indent}  ", breaks_words=True))

    lines = []
    section = None
    columns = tables.list_columns(rows, changes=changes)[1:]
    wide = max(map(len, [*columns, "verdict"]))
    for row in rows:
        if section != (section := (row.attribute, row.metric)):
            names = f"{format_name(row.attribute)} · {format_name(row.metric)}"
            lines += ["", fill(names, "")]
        lines.append(fill(row.gap_name, "  "))
        cells = tables.format_cells(row, changes=changes)
        verdict = tables.verdict_of(row, changes=changes)
        for name, text in (*((one, cells[one]) for one in columns), ("verdict", verdict)):
            if text not in {"", NONE}:
                lines.append(fill(f"{name:<{wide}} {text}", "    "))
    return "\n".join(lines[1:])


def print_seed(seed: int) -> None:
    """Print how to get the same numbers again."""
    print_text(wrap(f"Seed {seed}: the same --seed gives the same numbers again."))


def print_report(path: Path | str | None) -> None:
    """Print what to do with the report, if one was written."""
    if path is not None:
        print_text(f"Open the report in a browser: {escape_controls(str(path))}")
