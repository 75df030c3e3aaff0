"""Printing to terminals of any width, to pipes, and to screens that show only ASCII."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH_OF_PIPES = 110
_IN_ASCII = str.maketrans(
    "–—−─━╴╶╸╺│┃·×✗✓▼▲≈•●“”‘’\N{NO-BREAK SPACE}", "---------|||xxvv^~**\"\"'' "
) | str.maketrans({"…": "...", "≥": ">=", "≤": "<=", "→": "->", "±": "+-", "√": "sqrt"})

_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")


class ClosedPipeError(Exception):
    """The reader closed our standard output; typer would make exit code 1 of BrokenPipeError."""


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
    """Return a rich table as text, in colour if it goes to a terminal."""
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
    console.print(table, soft_wrap=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def fits(table: Any) -> bool:
    """Return whether the terminal is wide enough for the words of a rich table."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(file=io.StringIO(), width=1000, color_system=None)
    return Measurement.get(console, console.options, table).minimum <= width()


def wrap(text: str, indent: str = "") -> str:
    """Return a paragraph in lines that fit the terminal."""
    import textwrap

    return textwrap.fill(
        text, max(20, width() - 1), initial_indent=indent, subsequent_indent=indent
    )


def format_pairs(items: Sequence[tuple[str, str]]) -> str:
    """Return names and texts, one pair to a line; a long text continues under its beginning."""
    import textwrap

    wide = max(len(name) for name, _ in items)
    lines = []
    for name, text in items:
        if width() < wide + 30:
            lines += [name, wrap(text, "    ")]
            continue
        head = f"{name:<{wide}}  "
        lines.append(
            textwrap.fill(text, width() - 1, initial_indent=head, subsequent_indent=" " * len(head))
        )
    return "\n".join(lines)
