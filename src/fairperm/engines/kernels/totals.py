"""Totals of contributions over group A, for 64 permutations at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.kernels.kernel import LANES, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS = 2048  # summed on their own before they join the running total
_TOGETHER = 8  # rows of one addition


def subset_totals(
    words: NDArray[np.uint64],
    contributions: NDArray[np.float64],
    stratum_starts: NDArray[np.int64],
    n_columns: int | None = None,
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
    n_columns
        How many of the columns are added up; by default all.

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
    by_column = np.ascontiguousarray(contributions.T[:n_columns], np.float64)
    totals = np.zeros((stratum_starts.size - 1, len(by_column), LANES))
    _add_strata(words, by_column, stratum_starts, totals)
    return np.moveaxis(totals, -1, 0)


def resampled_totals(
    drawn: NDArray[np.int64], contributions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Add up the contributions of the units that are drawn, by draw and column.

    Parameters
    ----------
    drawn
        Places of units, by draw; as many as there are units.
    contributions
        A row for each unit.
    """
    totals = np.zeros((len(drawn), contributions.shape[1]))
    _add_drawn(drawn, np.ascontiguousarray(contributions, np.float64), totals)
    return totals


@kernel
def _add_drawn(
    drawn: NDArray[np.int64], contributions: NDArray[np.float64], totals: NDArray[np.float64]
) -> None:
    """Count how often each unit is drawn: visiting the units in order is faster than at random."""
    n_units, columns = contributions.shape
    times, partial = np.empty(n_units), np.empty(columns)
    for d in range(len(drawn)):
        times[:] = 0.0
        for i in drawn[d]:
            times[i] += 1.0
        for first in range(0, n_units, _ROWS):
            partial[:] = 0.0
            for i in range(first, min(first + _ROWS, n_units)):
                for c in range(columns):
                    partial[c] += times[i] * contributions[i, c]
            for c in range(columns):
                totals[d, c] += partial[c]


@kernel
def _add_strata(
    words: NDArray[np.uint64],
    by_column: NDArray[np.float64],
    starts: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> None:
    partial = np.empty(LANES)
    for s in range(starts.size - 1):
        for first in range(starts[s], starts[s + 1], _ROWS):
            rows = slice(first, min(first + _ROWS, starts[s + 1]))
            for c in range(len(by_column)):
                partial[:] = 0.0
                _add_rows(words[rows], by_column[c, rows], partial)
                for lane in range(LANES):
                    totals[s, c, lane] += partial[lane]


@kernel
def _add_rows(
    words: NDArray[np.uint64], column: NDArray[np.float64], totals: NDArray[np.float64]
) -> None:
    """Add the numbers of the units in group A, some at a time, so that totals are loaded once.

    Zeros are skipped: the bins of a calibration error have many.
    """
    whole = words.size // _TOGETHER * _TOGETHER
    for i in range(0, whole, _TOGETHER):
        w0, w1, w2, w3 = words[i], words[i + 1], words[i + 2], words[i + 3]
        w4, w5, w6, w7 = words[i + 4], words[i + 5], words[i + 6], words[i + 7]
        x0, x1, x2, x3 = column[i], column[i + 1], column[i + 2], column[i + 3]
        x4, x5, x6, x7 = column[i + 4], column[i + 5], column[i + 6], column[i + 7]
        if not (x0 or x1 or x2 or x3 or x4 or x5 or x6 or x7):
            continue
        for lane in range(LANES):  # the loop that the compiler turns into masked adds
            first = (_in_a(w0, lane, x0) + _in_a(w1, lane, x1)) + (
                _in_a(w2, lane, x2) + _in_a(w3, lane, x3)
            )
            second = (_in_a(w4, lane, x4) + _in_a(w5, lane, x5)) + (
                _in_a(w6, lane, x6) + _in_a(w7, lane, x7)
            )
            totals[lane] += first + second
    for i in range(whole, words.size):
        word, x = words[i], column[i]
        for lane in range(LANES):
            totals[lane] += _in_a(word, lane, x)


@kernel
def _in_a(word: np.uint64, lane: int, x: float) -> float:
    """Return the number if the unit is in group A, else 0."""
    return x if (word >> np.uint64(lane)) & np.uint64(1) else 0.0
