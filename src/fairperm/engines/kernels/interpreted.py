"""Kernels without Numba: the same loops in plain Python, which are some hundred times slower."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np

from fairperm._utils.optional import install_command
from fairperm.errors import FairpermWarning, MissingPartError

Function = TypeVar("Function", bound="Callable[..., Any]")

_MAX_ROWS = 10_000  # 2,000 draws of so many take minutes: a row takes 4 to 8 microseconds a draw
_running = threading.local()
_reasons: list[str] = []


def tell_why(error: ImportError) -> None:
    """Keep the reason why Numba cannot be used."""
    _reasons.append(str(error))


def kernel(function: Function) -> Function:
    """Make a function run as compiled code would: integers overflow, and x/0 is infinite."""
    # raises MissingPartError for more rows than plain Python can walk through in minutes

    @functools.wraps(function)
    def run(*given: Any) -> Any:
        if getattr(_running, "yes", False):  # called by another kernel
            return function(*given)
        _check_size(given)
        _warn_of_slowness()
        _running.yes = True
        try:
            with np.errstate(all="ignore"):
                return function(*given)
        finally:
            _running.yes = False

    return cast("Function", run)


def inlined(function: Function) -> Function:
    """Return a part of kernels as it is."""
    return function


def _check_size(given: tuple[Any, ...]) -> None:
    rows = max(_lengths(given), default=0)
    if rows > _MAX_ROWS:
        raise MissingPartError(
            f"each draw walks through {rows:,} rows, which takes minutes in plain Python. Numba "
            f"compiles it: {install_command('fast')}"
        )


def _lengths(given: tuple[Any, ...]) -> Iterator[int]:
    """Yield the lengths of all arrays, also of those in named tuples."""
    for one in given:
        if isinstance(one, np.ndarray):
            yield from one.shape
        elif isinstance(one, tuple):
            yield from _lengths(one)


@cache
def _warn_of_slowness() -> None:
    warnings.warn(
        f"Numba cannot be loaded ({'; '.join(_reasons)}): this test runs in plain Python, which "
        f"takes some hundred times longer for the same result. {install_command('fast')}",
        FairpermWarning,
        stacklevel=3,
    )
