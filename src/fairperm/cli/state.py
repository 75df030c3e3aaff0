"""What holds for the whole run of the command."""

from __future__ import annotations

debug = False


class NobodyReadsError(Exception):
    """The pipe that we print into was closed; typer would make exit code 1 of the usual error."""


def set_debug(value: bool) -> bool:
    """Remember that tracebacks are wanted."""
    global debug
    debug = debug or value
    return value
