"""The one way in which this library makes a loop fast: compiled if Numba is there, else as it is.

Both return the same bits, which ``tests/engines/kernels/test_interpreted.py`` proves.
"""

from __future__ import annotations

import numpy as np

__all__ = ["LANES", "bit_of", "choose", "inlined", "kernel"]

LANES = 64  # permutations handled at once: lane l of a unit's word is bit l

try:
    from fairperm.engines.kernels.compiled import inlined, kernel
except ImportError as error:  # also a Numba that is too old for NumPy
    from fairperm.engines.kernels.interpreted import inlined, kernel, tell_why

    tell_why(error)


@kernel
def bit_of(word: np.uint64, lane: int) -> float:
    """Return 1 if the word has this lane's bit, else 0."""
    return 1.0 if (word >> np.uint64(lane)) & np.uint64(1) else 0.0


@kernel
def choose(word: np.uint64, lane: int, of_a: float, of_b: float) -> float:
    """Return the first number if the word has this lane's bit, else the second."""
    return of_a if (word >> np.uint64(lane)) & np.uint64(1) else of_b
