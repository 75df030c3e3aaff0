"""What goes wrong, said so that the reader can put it right.

Every message names the argument, the rule, what came and, where there is one, a hint.
"""

from __future__ import annotations

import difflib
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "FairpermError",
    "FairpermWarning",
    "InputError",
    "InputTypeError",
    "UndefinedMetricError",
]

_LONGEST_SHOWN = 80


class FairpermError(Exception):
    """Base of every error that fairperm raises on purpose."""


class InputError(FairpermError, ValueError):
    """An argument has a value that the question cannot be answered with."""


class UndefinedMetricError(InputError):
    """A group, or a stratum of it, is too small for the metric or its error to have a value."""


class InputTypeError(FairpermError, TypeError):
    """An argument is of a kind that the question cannot be answered with."""


class FairpermWarning(UserWarning):
    """The answer stands, but something about it must be known to read it rightly."""


def shown(value: object) -> str:
    """Return ``repr(value)`` on one line of readable length: names from data can be anything."""
    text = " ".join(repr(value).splitlines())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def listed(values: Iterable[object], most: int = 8) -> str:
    """Return the values as ``'a', 'b', 'c'``, with a count of those left out."""
    values = list(values)
    text = ", ".join(shown(value) for value in values[:most])
    return text if len(values) <= most else f"{text} and {len(values) - most} more"


def problem(name: str, rule: str, got: object, hint: str = "") -> str:
    """Return the one sentence (and hint) in which every bad argument is reported."""
    return f"{name} must be {rule}; got {shown(got)}. {hint}".rstrip()


def did_you_mean(value: object, known: Iterable[object]) -> str:
    """Return "Did you mean 'x'?" for the known value that looks most like this one, or ""."""
    by_text = {str(one).casefold(): one for one in known}
    near = difflib.get_close_matches(str(value).casefold(), by_text, n=1)
    return f"Did you mean {shown(by_text[near[0]])}?" if near else ""


def warn_of(notes: Iterable[str]) -> None:
    """Warn the caller of a public function of what a result's notes say."""
    for note in notes:
        warnings.warn(note, FairpermWarning, stacklevel=3)
