"""Checks of the plain options that the public functions share."""

from __future__ import annotations

import math
import numbers
import operator
import os
import secrets
from collections.abc import Sequence
from typing import Literal, SupportsIndex, TypeVar, cast

import numpy as np

from fairperm.errors import InputError, InputTypeError, argument, did_you_mean, shown

Word = TypeVar("Word", bound=str | None)

DIRECTIONS: Sequence[Literal["greater", "less"]] = ("greater", "less")
ALTERNATIVES: Sequence[Literal["two-sided", "symmetric", "greater", "less"]] = (
    "two-sided",
    "symmetric",
    *DIRECTIONS,
)
MAX_RESAMPLES = 10**8


def choice(name: str, value: object, allowed: Sequence[Word], hint: str = "") -> Word:
    """Return ``value`` if it is one of the allowed words; ``hint`` says what else to do."""
    for word in allowed:
        if value is word or (isinstance(value, str) and value == word):
            return word
    words = (argument("None") if word is None else shown(word) for word in allowed)
    rule = f"one of {', '.join(words)}"
    raise InputError(name, rule, value, hint or did_you_mean(value, allowed))


def integer(
    name: str, value: object, low: int, high: int, hint: str = "", rule: str | None = None
) -> int:
    """Return ``value`` as an int between ``low`` and ``high``; 99.0 and True are not integers."""
    rule = rule or f"an integer from {low:,} to {high:,}"
    if isinstance(value, (bool, np.bool_, np.ndarray)) or not hasattr(value, "__index__"):
        raise InputTypeError(name, rule, value, hint)
    number = operator.index(cast("SupportsIndex", value))
    if not low <= number <= high:
        raise InputError(name, rule, value, hint)
    return number


def number(name: str, value: object, rule: str = "a finite number") -> float:
    """Return ``value`` as a finite float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise InputTypeError(name, rule, value)
    try:
        result = float(value)
    except OverflowError:  # an integer of more than 308 digits
        result = math.inf
    if not math.isfinite(result):
        raise InputError(name, rule, value)
    return result


def fraction(name: str, value: object) -> float:
    """Return ``value`` as a float strictly between 0 and 1."""
    rule = "a number strictly between 0 and 1"
    share = number(name, value, rule)
    if 0 < share < 1:
        return share
    hint = f"Did you mean {share / 100:g}?" if 1 < share < 100 else ""
    raise InputError(name, rule, value, hint)


def resamples(value: object, least: int, *, or_auto: bool = False) -> int | None:
    """Return ``n_resamples`` if it is an integer from ``least`` on; None for "auto"."""
    if or_auto and isinstance(value, str) and value == "auto":
        return None
    hint = "9999 resolves p-values down to 0.0001."
    rule = f"an integer from {least} to {MAX_RESAMPLES:,}"
    if or_auto:
        rule = f"'auto' or {rule}"
    return integer("n_resamples", value, least, MAX_RESAMPLES, hint, rule=rule)


def jobs(value: object) -> int:
    """Return the number of threads that ``n_jobs`` means in scikit-learn's convention."""
    if value is None:
        return 1
    hint = "None means one thread, -1 all cores."
    asked = integer("n_jobs", value, -1024, 1024, hint)
    if asked == 0:
        raise InputError("n_jobs", "a positive or negative integer, or None", value, hint)
    return asked if asked > 0 else max(1, (os.cpu_count() or 1) + 1 + asked)


def seed(rng: object) -> int:
    """Return the integer that all random streams of a test are derived from."""
    # None takes fresh entropy, and a Generator gives its next integer. The result of a test keeps
    # the integer, so it can be computed again.
    if rng is None:
        return secrets.randbits(53)  # the widest integer that every JSON reader keeps exact
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**53))
    rule = "an integer from 0 to 2**128 - 1, a numpy Generator or None"
    return integer("rng", rng, 0, 2**128 - 1, rule=rule)


def switch(name: str, value: object) -> bool | None:
    """Return ``value`` if it is True, False or None."""
    if value is None or isinstance(value, bool):
        return value
    raise InputTypeError(name, "True, False or None", value)
