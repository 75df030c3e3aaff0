"""What goes wrong, said so that the reader can put it right.

Every message names the argument, the rule, what came and, where there is one, a hint.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

__all__ = [
    "FairpermError",
    "FairpermWarning",
    "InputError",
    "InputTypeError",
    "MissingPartError",
    "PredictError",
    "UndefinedMetricError",
]

_LONGEST_SHOWN = 80


class FairpermError(Exception):
    """Base of every error that fairperm raises on purpose."""


class ArgumentError(FairpermError):
    """What is wrong with an argument, as data: the command line names it by its own option.

    Attributes
    ----------
    argument : str
        Name of the argument; without a rule, the whole message.
    rule : str
        What it must be.
    got : object
        What was passed instead.
    hint : str
        What to do about it.
    """

    def __init__(self, argument: str, rule: str = "", got: object = None, hint: str = "") -> None:
        super().__init__(argument, rule, got, hint)
        self.argument, self.rule, self.got, self.hint = argument, rule, got, hint

    def marked_text(self) -> str:
        """Return the message in which :func:`argument` marks the names of arguments."""
        if not self.rule:
            return self.argument
        name = self.argument if _OPEN in self.argument else argument(self.argument)
        return f"{name} must be {self.rule}; got {shown(self.got)}. {self.hint}".rstrip()

    def __str__(self) -> str:
        return in_python(self.marked_text())

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, object, str]]:
        # joblib sends errors between processes: what was passed goes as its text
        return type(self), (self.argument, self.rule, Shown(shown(self.got)), self.hint)


class InputError(ArgumentError, ValueError):
    """An argument has a value that the question cannot be answered with."""


class UndefinedMetricError(InputError):
    """A group, or a stratum of it, is too small for the metric or its error to have a value."""


class PredictError(InputError):
    """A model failed, or returned what is no decision for each row.

    Attributes
    ----------
    outcomes : frame
        What it decided before: a row for each decision, with the columns row (its place in the
        data), value and decision.
    """

    outcomes: Any = None


class InputTypeError(ArgumentError, TypeError):
    """An argument is of a kind that the question cannot be answered with."""


class MissingPartError(FairpermError, ImportError):
    """A package is needed that is not installed; the message has the command that installs it."""


class FairpermWarning(UserWarning):
    """The answer stands, but something about it must be known to read it rightly."""


def shown(value: object) -> str:
    """Return ``repr(value)`` on one line of readable length: names from data can be anything."""
    text = " ".join(repr(value).splitlines())
    if isinstance(value, Shown):
        return text
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def listed(values: Iterable[object], most: int = 8) -> str:
    """Return the values as ``'a', 'b', 'c'``, with a count of those left out."""
    values = list(values)
    text = ", ".join(shown(value) for value in values[:most])
    return text if len(values) <= most else f"{text} and {len(values) - most} more"


class Shown(str):
    """A text that :func:`shown` leaves alone: what was passed, as it was shown once."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Note(str):
    """A remark on a result, in Python's words; ``marked`` still tells which of them are arguments.

    Examples
    --------
    >>> Note(f"More {argument('score_bins')} make it smaller.")
    'More score_bins make it smaller.'
    """

    __slots__ = ("marked",)
    marked: str

    def __new__(cls, marked: str) -> Self:
        """Return the text without its marks, which are kept beside it."""
        note = super().__new__(cls, in_python(marked))
        note.marked = marked
        return note

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.marked,)

    def rename(self, names: Mapping[str, str]) -> Note:
        """Return the note with other names of arguments."""
        return Note(_rename(self.marked, names))


# Around the name (and value) of an argument inside a message. repr() escapes such characters, so
# that no name from data can contain them.
_OPEN, _BETWEEN, _CLOSE = "\ue000", "\ue001", "\ue002"


def argument(name: str, *values: object) -> str:
    """Return the name of an argument, or ``name=value``, marked for :func:`in_words`.

    Examples
    --------
    >>> in_python(f"Pass {argument('groups', 'a', 'b')}, not {argument('pos_label')}.")
    "Pass groups=('a', 'b'), not pos_label."
    """
    return _OPEN + _BETWEEN.join([name, *map(shown, values)]) + _CLOSE


def in_words(text: str, word_for: Callable[[str, Sequence[str]], str]) -> str:
    """Return a message with ``word_for(name, values)`` in place of each marked argument."""
    first, *others = text.split(_OPEN)
    for other in others:
        marked, _, rest = other.partition(_CLOSE)
        name, *values = marked.split(_BETWEEN)
        first += word_for(name, values) + rest
    return first


def in_python(text: str) -> str:
    """Return a message in the words of the Python functions."""
    return in_words(text, _keyword)


def _keyword(name: str, values: Sequence[str]) -> str:
    if not values:
        return name
    return f"{name}={values[0]}" if len(values) == 1 else f"{name}=({', '.join(values)})"


@contextmanager
def rename_arguments(names: Mapping[str, str]) -> Iterator[None]:
    """Name the arguments in errors of what is called here as the caller's own arguments."""
    try:
        yield
    except ArgumentError as error:
        raise type(error)(_rename(error.marked_text(), names)) from None


def _rename(text: str, names: Mapping[str, str]) -> str:
    return in_words(text, lambda name, values: argument(names.get(name, name), *map(Shown, values)))


def did_you_mean(value: object, known: Iterable[object]) -> str:
    """Return "Did you mean 'x'?" for the known value that looks most like this one, or ""."""
    text = str(value).casefold()
    by_text = {str(one).casefold(): one for one in known}
    longer = [one for one in by_text if text in one] if len(text) > 2 else []
    near = difflib.get_close_matches(text, longer or by_text, n=1, cutoff=0 if longer else 0.6)
    return f"Did you mean {shown(by_text[near[0]])}?" if near else ""


def unknown_name(
    argument: str, rule: str, value: object, known: Iterable[object], hint: str = ""
) -> InputError:
    """Return the error for a name that is not known: with the one it may mean, or with all.

    Examples
    --------
    >>> raise unknown_name("metric", "one of these", "aucc", ["auc", "fpr"])
    Traceback (most recent call last):
    fairperm.errors.InputError: metric must be one of these; got 'aucc'. Did you mean 'auc'?
    >>> raise unknown_name("metric", "one of these", "x", ["auc", "fpr"])
    Traceback (most recent call last):
    fairperm.errors.InputError: metric must be one of these ('auc', 'fpr'); got 'x'.
    """
    known = list(known)
    near = did_you_mean(value, known)
    return InputError(argument, rule if near else f"{rule} ({listed(known)})", value, near or hint)


def warn_of(notes: Iterable[str]) -> None:
    """Warn the caller of a public function of what a result's notes say."""
    for note in notes:
        warnings.warn(note, FairpermWarning, stacklevel=3)
