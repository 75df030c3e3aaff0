"""Printing: to terminals wide and narrow, to pipes, and to screens that know only ASCII."""

from __future__ import annotations

import io
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

from fairperm.cli.state import NobodyReadsError

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH_OF_PIPES = 110
_IN_ASCII = str.maketrans(
    {
        "–": "-",
        "—": "-",
        "−": "-",
        "×": "x",
        "·": "|",
        "…": "...",
        "≥": ">=",
        "≤": "<=",
        "─": "-",
        "━": "-",
        "│": "|",
        "┃": "|",
        "╴": "-",
        "╶": "-",
        "╸": "-",
        "╺": "-",
        "→": "->",
        "±": "+-",
        "“": '"',
        "”": '"',
        "‘": "'",
        "’": "'",
        "\N{NO-BREAK SPACE}": " ",
        "✓": "v",
        "✗": "x",
        "•": "*",
        "√": "sqrt",
        "≈": "~",
        "▲": "^",
        "▼": "v",
        "●": "*",
    }
)


def width() -> int:
    """Return the columns that there are: those of the terminal, or what COLUMNS says."""
    return max(20, shutil.get_terminal_size((_WIDTH_OF_PIPES, 24)).columns)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a text, in ASCII where the screen knows no more."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"  # a file in memory has none
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        text = text.translate(_IN_ASCII)
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(text + "\n")
    except BrokenPipeError:
        raise NobodyReadsError from None


def complain(text: str) -> None:
    """Print a text for people, on standard error."""
    say(text, sys.stderr)


def rendered(*parts: Any) -> str:
    """Return what rich makes of its parts, in colour if a terminal that wants it looks on."""
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
    for part in parts:
        console.print(part, soft_wrap=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def fits(table: Any) -> bool:
    """Tell whether a table of rich's has room for its words."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(file=io.StringIO(), width=1000, color_system=None)
    return Measurement.get(console, console.options, table).minimum <= width()


def wrapped(text: str, indent: str = "") -> str:
    """Return a paragraph in lines that fit."""
    import textwrap

    return textwrap.fill(
        text, max(20, width() - 1), initial_indent=indent, subsequent_indent=indent
    )


def pairs(items: Sequence[tuple[str, str]]) -> str:
    """Return names and texts, one to a line; a long text hangs under its beginning."""
    import textwrap

    wide = max(len(name) for name, _ in items)
    lines = []
    for name, text in items:
        if width() < wide + 30:
            lines += [name, wrapped(text, "    ")]
            continue
        head = f"{name:<{wide}}  "
        lines.append(
            textwrap.fill(text, width() - 1, initial_indent=head, subsequent_indent=" " * len(head))
        )
    return "\n".join(lines)
