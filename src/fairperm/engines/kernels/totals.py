"""Totals of contributions over group A, for 64 permutations at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.kernels.kernel import LANES, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS = 2048  # summed on their own before they join the running total


def subset_totals(
    words: NDArray[np.uint64],
    contributions: NDArray[np.float64],
    stratum_starts: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Add up the contributions of the units in group A, by permutation, stratum and column.

    Parameters
    ----------
    words
        A word for each unit, as :func:`fairperm.engines.kernels.subsets.random_subsets` makes them.
    contributions
        A row for each unit, in the order of the words.
    stratum_starts
        The first unit of each stratum, and the number of units. Strata are consecutive.

    Returns
    -------
    NDArray[np.float64]
        Totals with shape (64, strata, columns); in memory the lanes lie side by side.

    Notes
    -----
    Sums of 2048 rows are added up on their own, so that the relative error of a total of terms
    of one sign is at most about (2048 + n/2048) 2**-53, and in practice far below. The order of
    the additions is fixed.
    """
    if not len(contributions) == stratum_starts[-1] == words.size:
        raise ValueError(
            f"contributions and stratum_starts must be for {words.size} units. "
            f"Got {len(contributions)} and {stratum_starts[-1]} instead."
        )
    totals = np.zeros((stratum_starts.size - 1, contributions.shape[1], LANES))
    _add_strata(words, np.ascontiguousarray(contributions, np.float64), stratum_starts, totals)
    return np.moveaxis(totals, -1, 0)


@kernel
def _add_strata(
    words: NDArray[np.uint64],
    contributions: NDArray[np.float64],
    starts: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> None:
    columns = contributions.shape[1]
    partial = np.empty((columns, LANES))
    for s in range(starts.size - 1):
        for first in range(starts[s], starts[s + 1], _ROWS):
            partial[:] = 0.0
            for i in range(first, min(first + _ROWS, starts[s + 1])):
                word = words[i]
                for c in range(columns):
                    x = contributions[i, c]
                    for lane in range(LANES):  # the loop that the compiler turns into masked adds
                        partial[c, lane] += x if (word >> np.uint64(lane)) & np.uint64(1) else 0.0
            for c in range(columns):
                for lane in range(LANES):
                    totals[s, c, lane] += partial[c, lane]
