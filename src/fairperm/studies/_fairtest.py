"""FairTest's permutation test of a correlation, as its description has it, for comparison.

x and the errors are put into one pool; each permutation shuffles the pool and correlates its two
halves. That exchanges values of x with errors, so it tests whether both have one distribution,
which nobody asked. Compiled by Numba, so it is imported only when it is run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fairperm._kernel import kernel
from fairperm._shuffles import shuffle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def fairtest_pvalue(x: Floats, error: Floats, n_resamples: int, rng: np.random.Generator) -> float:
    """Return FairTest's p-value: the share of shuffles with a larger |r|, at least one."""
    state = rng.integers(2**64, size=4, dtype=np.uint64)
    exceeded = _larger(np.concatenate([x, error]), n_resamples, state)
    return max(exceeded, 1) / n_resamples


@kernel
def _larger(pool: Floats, draws: int, state: NDArray[np.uint64]) -> int:
    """Count the shuffles of the pool whose halves are more correlated than they are now."""
    observed = abs(correlation(pool))
    larger = 0
    for _ in range(draws):
        shuffle(pool, state)
        larger += abs(correlation(pool)) > observed
    return larger


@kernel
def correlation(pool: Floats) -> float:
    """Return Pearson's correlation of the two halves, centred before anything is squared."""
    n = len(pool) // 2
    first = second = 0.0
    for i in range(n):
        first += pool[i]
        second += pool[n + i]
    first /= n
    second /= n
    squares = other_squares = products = 0.0
    for i in range(n):
        one, other = pool[i] - first, pool[n + i] - second
        squares += one * one
        other_squares += other * other
        products += one * other
    return products / math.sqrt(squares * other_squares)
