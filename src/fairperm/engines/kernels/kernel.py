"""The one way in which this library compiles a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Function = TypeVar("Function", bound="Callable[..., Any]")

LANES = 64  # permutations handled at once: lane l of a unit's word is bit l


def kernel(function: Function) -> Function:
    """Compile a function once per machine, to run without Python's global lock.

    Kernels use one thread: callers run blocks of permutations on a pool of threads. No fast-math:
    sums keep their order, so a result does not depend on the machine's vector width. Division by
    zero gives NaN or infinity, as in NumPy.
    """
    compiled = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return cast("Function", compiled)


def inlined(function: Function) -> Function:
    """Compile a part of kernels anew wherever it is called, for the constants passed to it."""
    return cast("Function", numba.njit(inline="always", error_model="numpy")(function))
