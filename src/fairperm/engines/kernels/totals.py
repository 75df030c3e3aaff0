"""Totals of contributions over group A, for 64 permutations at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.kernels.kernel import LANES, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS = 2048  # summed on their own before they join the running total
_TOGETHER = 4  # rows of one addition


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
    """Add up two columns at a time: a mean has two, and who is in group A is read only once."""
    of_first, of_second = np.empty(LANES), np.empty(LANES)
    for s in range(starts.size - 1):
        for start in range(starts[s], starts[s + 1], _ROWS):
            rows = slice(start, min(start + _ROWS, starts[s + 1]))
            for first in range(0, len(by_column), 2):
                second = min(first + 1, len(by_column) - 1)  # an odd last column goes twice
                of_first[:] = 0.0
                of_second[:] = 0.0
                columns = by_column[first, rows], by_column[second, rows]
                _add_rows(words[rows], columns[0], columns[1], of_first, of_second)
                for lane in range(LANES):
                    totals[s, first, lane] += of_first[lane]
                if second > first:
                    for lane in range(LANES):
                        totals[s, second, lane] += of_second[lane]


@kernel
def _add_rows(
    words: NDArray[np.uint64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    of_first: NDArray[np.float64],
    of_second: NDArray[np.float64],
) -> None:
    """Add the numbers of the units in group A, some at a time, so that totals are loaded once.

    Zeros are skipped: the bins of a calibration error have many.
    """
    whole = words.size // _TOGETHER * _TOGETHER
    for i in range(0, whole, _TOGETHER):
        w0, w1, w2, w3 = words[i], words[i + 1], words[i + 2], words[i + 3]
        x0, x1, x2, x3 = first[i], first[i + 1], first[i + 2], first[i + 3]
        y0, y1, y2, y3 = second[i], second[i + 1], second[i + 2], second[i + 3]
        if not (x0 or x1 or x2 or x3 or y0 or y1 or y2 or y3):
            continue
        for lane in range(LANES):  # the loop that the compiler turns into masked adds
            of_first[lane] += (_in_a(w0, lane, x0) + _in_a(w1, lane, x1)) + (
                _in_a(w2, lane, x2) + _in_a(w3, lane, x3)
            )
            of_second[lane] += (_in_a(w0, lane, y0) + _in_a(w1, lane, y1)) + (
                _in_a(w2, lane, y2) + _in_a(w3, lane, y3)
            )
    for i in range(whole, words.size):
        word, x, y = words[i], first[i], second[i]
        for lane in range(LANES):
            of_first[lane] += _in_a(word, lane, x)
            of_second[lane] += _in_a(word, lane, y)


@kernel
def _in_a(word: np.uint64, lane: int, x: float) -> float:
    """Return the number if the unit is in group A, else 0."""
    return x if (word >> np.uint64(lane)) & np.uint64(1) else 0.0
