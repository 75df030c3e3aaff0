"""Totals of contributions over group A, for 64 permutations at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairperm.engines.kernels.kernel import LANES, choose, kernel

if TYPE_CHECKING:
    from fairperm._utils.arrays import Array, Integers, Words

_ROWS = 2048  # summed on their own before they join the running total
_UNROLL = 4  # rows of one addition
_UNITS = 128  # whose influences in all lanes stay in the cache


class Terms(NamedTuple):
    """What the leave-one-out influences of units are made of."""

    contributions: Array  # by column and unit
    bases: Array  # by base and unit
    columns: Integers  # the contributions that belong to the bases
    base_starts: Integers  # where those of each base start
    stratum_starts: Integers  # the first unit of each stratum, and the number of units


def subset_totals(
    words: Words, contributions: Array, stratum_starts: Integers, n_columns: int | None = None
) -> Array:
    """Add up the contributions of the units in group A, by permutation, stratum and column.

    There is a word for each unit, as ``random_subsets`` makes them, and a row of contributions, of
    whose columns the first ``n_columns`` are added up, by default all. Strata are consecutive;
    after their first units comes the number of all. In memory the lanes lie side by side.

    Sums of 2048 rows are added up on their own, so that the relative error of a total of terms
    of one sign is at most about (2048 + n/2048) 2**-53, and in practice far below. The order of
    the additions is fixed.
    """
    by_column = np.ascontiguousarray(contributions.T[:n_columns], np.float64)
    totals = np.zeros((stratum_starts.size - 1, len(by_column), LANES))
    _add_strata(words, by_column, stratum_starts, totals)
    return np.moveaxis(totals, -1, 0)


def squared_influences(words: Words, terms: Terms, lines: Array) -> Array:
    """Add up the squared leave-one-out influences of both groups' units, by stratum and lane.

    A unit's influence is the sum over bases of (intercept + slopes·contributions)/(1 − share·base),
    in which intercept, slopes and share are those of its group in the permutation. They change with
    every permutation, so the units are visited once more, after their totals. ``lines`` have them
    by stratum, line, group and lane: for each base its share, its intercept, and the slopes of its
    contributions. The group is the second axis of the result.
    """
    squares = np.zeros((terms.stratum_starts.size - 1, 2, LANES))
    flat = np.ascontiguousarray(lines).reshape(-1)  # slices of it are contiguous to the compiler
    _square_strata(words, terms, flat, squares)
    return squares


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
    """Add the numbers of the units in group A, some at a time, so that totals are loaded once."""
    # zeros are skipped: the bins of a calibration error have many
    whole = words.size // _UNROLL * _UNROLL
    for i in range(0, whole, _UNROLL):
        w0, w1, w2, w3 = words[i], words[i + 1], words[i + 2], words[i + 3]
        x0, x1, x2, x3 = first[i], first[i + 1], first[i + 2], first[i + 3]
        y0, y1, y2, y3 = second[i], second[i + 1], second[i + 2], second[i + 3]
        if not (x0 or x1 or x2 or x3 or y0 or y1 or y2 or y3):
            continue
        for lane in range(LANES):  # the loop that the compiler turns into masked adds
            of_first[lane] += (choose(w0, lane, x0, 0.0) + choose(w1, lane, x1, 0.0)) + (
                choose(w2, lane, x2, 0.0) + choose(w3, lane, x3, 0.0)
            )
            of_second[lane] += (choose(w0, lane, y0, 0.0) + choose(w1, lane, y1, 0.0)) + (
                choose(w2, lane, y2, 0.0) + choose(w3, lane, y3, 0.0)
            )
    for i in range(whole, words.size):
        word, x, y = words[i], first[i], second[i]
        for lane in range(LANES):
            of_first[lane] += choose(word, lane, x, 0.0)
            of_second[lane] += choose(word, lane, y, 0.0)


@kernel
def _square_strata(words: Words, terms: Terms, lines: Array, squares: Array) -> None:
    """Compute the influences of a few units at a time, which stay in the cache, base by base."""
    contributions, bases, columns, base_starts, starts = terms
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
            chosen = choose(words[i], lane, intercepts[lane], intercepts[LANES + lane])
            numerator[i * LANES + lane] = chosen


@kernel
def _add_slopes(words: Words, column: Array, slopes: Array, numerator: Array) -> None:
    for i in range(words.size):
        word, x = words[i], column[i]
        for lane in range(LANES):
            slope = choose(word, lane, slopes[lane], slopes[LANES + lane])
            numerator[i * LANES + lane] += slope * x


@kernel
def _divide(words: Words, base: Array, share: Array, numerator: Array, influence: Array) -> None:
    for i in range(words.size):
        word, x = words[i], base[i]
        for lane in range(LANES):
            leverage = x * choose(word, lane, share[lane], share[LANES + lane])
            influence[i * LANES + lane] += numerator[i * LANES + lane] / (1.0 - leverage)


@kernel
def _add_squares(words: Words, influence: Array, found: Array) -> None:
    for i in range(words.size):
        word = words[i]
        for lane in range(LANES):
            square = influence[i * LANES + lane] ** 2
            found[lane] += choose(word, lane, square, 0.0)
            found[LANES + lane] += choose(word, lane, 0.0, square)
