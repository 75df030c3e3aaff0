"""Totals of contributions over group A, for 64 permutations at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.kernels.kernel import LANES, kernel

if TYPE_CHECKING:
    from fairperm._utils.arrays import Array, Integers, Words

_ROWS = 2048  # summed on their own before they join the running total
_TOGETHER = 4  # rows of one addition
_UNITS = 128  # whose influences in all lanes stay in the cache


def subset_totals(
    words: Words, contributions: Array, stratum_starts: Integers, n_columns: int | None = None
) -> Array:
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
    Array
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


def squared_influences(
    words: Words,
    contributions: Array,
    bases: Array,
    columns: Integers,
    base_starts: Integers,
    stratum_starts: Integers,
    lines: Array,
) -> Array:
    """Add up the squared leave-one-out influences of the units of both groups.

    A unit's influence is the sum over bases of (intercept + slopes·contributions)/(1 − share·base),
    in which intercept, slopes and share are those of its group in the permutation. They change with
    every permutation, so the units are visited once more, after their totals.

    Parameters
    ----------
    words
        A word for each unit.
    contributions, bases
        By column and unit.
    columns, base_starts
        The contributions that belong to the bases, and where those of each base start.
    stratum_starts
        The first unit of each stratum, and the number of units.
    lines
        By stratum, line, group and lane. The lines of a base are its share, its intercept and the
        slopes of its contributions.

    Returns
    -------
    Array
        By stratum, group and lane.
    """
    squares = np.zeros((stratum_starts.size - 1, 2, LANES))
    flat = np.ascontiguousarray(lines).reshape(-1)  # slices of it are contiguous to the compiler
    _square_strata(words, contributions, bases, columns, base_starts, stratum_starts, flat, squares)
    return squares


def resampled_totals(drawn: Integers, contributions: Array) -> Array:
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
def _add_drawn(drawn: Integers, contributions: Array, totals: Array) -> None:
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
def _add_strata(words: Words, by_column: Array, starts: Integers, totals: Array) -> None:
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
def _add_rows(words: Words, first: Array, second: Array, of_first: Array, of_second: Array) -> None:
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


@kernel
def _square_strata(
    words: Words,
    contributions: Array,
    bases: Array,
    columns: Integers,
    base_starts: Integers,
    starts: Integers,
    lines: Array,
    squares: Array,
) -> None:
    """Compute the influences of a few units at a time, which stay in the cache, base by base."""
    found = np.empty(2 * LANES)
    influence, numerator = np.empty(_UNITS * LANES), np.empty(_UNITS * LANES)
    for s in range(starts.size - 1):
        for start in range(starts[s], starts[s + 1], _UNITS):
            units = slice(start, min(start + _UNITS, starts[s + 1]))
            here = words[units]
            influence[:] = 0.0
            at = s * (lines.size // (starts.size - 1))
            for b in range(len(bases)):
                share = lines[at : at + 2 * LANES]
                _set_intercepts(here, lines[at + 2 * LANES : at + 4 * LANES], numerator)
                at += 4 * LANES
                for c in range(base_starts[b], base_starts[b + 1]):
                    slopes = lines[at : at + 2 * LANES]
                    _add_slopes(here, contributions[columns[c], units], slopes, numerator)
                    at += 2 * LANES
                _divide(here, bases[b, units], share, numerator, influence)
            found[:] = 0.0
            _add_squares(here, influence, found)
            for lane in range(LANES):
                squares[s, 0, lane] += found[lane]
                squares[s, 1, lane] += found[LANES + lane]


@kernel
def _set_intercepts(words: Words, intercepts: Array, numerator: Array) -> None:
    for i in range(words.size):
        for lane in range(LANES):
            chosen = _choose(words[i], lane, intercepts[lane], intercepts[LANES + lane])
            numerator[i * LANES + lane] = chosen


@kernel
def _add_slopes(words: Words, column: Array, slopes: Array, numerator: Array) -> None:
    for i in range(words.size):
        word, x = words[i], column[i]
        for lane in range(LANES):
            slope = _choose(word, lane, slopes[lane], slopes[LANES + lane])
            numerator[i * LANES + lane] += slope * x


@kernel
def _divide(words: Words, base: Array, share: Array, numerator: Array, influence: Array) -> None:
    for i in range(words.size):
        word, x = words[i], base[i]
        for lane in range(LANES):
            leverage = x * _choose(word, lane, share[lane], share[LANES + lane])
            influence[i * LANES + lane] += numerator[i * LANES + lane] / (1.0 - leverage)


@kernel
def _add_squares(words: Words, influence: Array, found: Array) -> None:
    for i in range(words.size):
        word = words[i]
        for lane in range(LANES):
            square = influence[i * LANES + lane] ** 2
            found[lane] += _choose(word, lane, square, 0.0)
            found[LANES + lane] += _choose(word, lane, 0.0, square)


@kernel
def _choose(word: np.uint64, lane: int, of_a: float, of_b: float) -> float:
    """Return the first number if the unit is in group A, else the second."""
    return of_a if (word >> np.uint64(lane)) & np.uint64(1) else of_b
