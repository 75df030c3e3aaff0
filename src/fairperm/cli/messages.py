"""The library's messages in the command line's words: its arguments are options here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm.errors import ArgumentError, in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

# Every other argument has the option of its own name: pos_label has --pos-label.
_OPTIONS = {
    "y_true": "--label",
    "y_pred": "--prediction",
    "y_score": "--score",
    "sensitive_features": "--group",
    "control_features": "--control",
    "sample_weight": "--weight",
    "data": "the data",
    "metrics": "--metric",
    "groups": "--pair",
    "n_resamples": "--resamples",
    "n_bootstrap": "--bootstraps",
    "n_jobs": "--jobs",
    "rng": "--seed",
    "values": "--first and --second",
    "value": "--second",
    "base_rates": "--base-rate",
    "names": "NAME",
    "audit()": "`fairperm audit`",
    "None": "'none'",
}


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
    bare = name.partition(" (")[0].partition(" column ")[0]  # as in "y_true (column 'y')"
    option = _OPTIONS.get(bare)
    if option is None:  # --label, FILE and the like are names of this package
        is_argument = bare.isidentifier() and not bare.isupper()
        option = f"--{bare.replace('_', '-')}" if is_argument else bare
    return " ".join([option + name.removeprefix(bare), *map(_write_value, values)])


def _write_value(value: str) -> str:
    """Return a value as one types it: without the quotes that no shell needs."""
    bare = value[1:-1] if value[:1] in "'\"" else value.lower()  # None is none
    is_plain = bare.isascii() and bare.replace("_", "").replace(".", "").isalnum()
    return bare if is_plain else value
