"""Distributions of a column in the first group, in 64 permutations at once.

Rows are sorted by section (a stratum and a label) and value. A row belongs to a unit, itself or
its cluster, which is in the first group of lane ``l`` if bit ``l`` of its word is set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairperm._utils.arrays import Array, Integers, Words
from fairperm.engines.kernels.kernel import LANES, choose, kernel


class SortedRows(NamedTuple):
    """Rows by section and value.

    ``cell`` numbers the values of all sections, ``step`` is the distance from the last row of a
    cell to the next value of its section, and NaN for other rows. Sections start at ``starts``,
    followed by the number of rows.
    """

    unit: Integers
    weight: Array
    cell: Integers
    step: Array
    starts: Integers
    totals: Array

    @property
    def section(self) -> Integers:
        """Return the section of each row."""
        return np.repeat(np.arange(len(self.totals)), np.diff(self.starts))


def weigh_cells(words: Words, rows: SortedRows, cell: Integers, n_cells: int) -> Array:
    """Return the weight of the first group's rows by cell and lane."""
    found = np.zeros((n_cells, LANES))
    _weigh(words, rows.unit, rows.weight, cell, found)
    return found


def weigh_units(words: Words, weight: Array, section: Integers, n_sections: int) -> Array:
    """Return the weight of both groups' units by group, section and lane."""
    found = np.zeros((2, n_sections, LANES))
    _weigh_both(words, weight, section, found)
    return found


def walk_gaps(
    words: Words,
    rows: SortedRows,
    first: Array,
    second: Array,
    share: Array | None = None,
    drift: Array | None = None,
) -> Array:
    """Return the largest |G|, the area of |G| and that of G, by section and lane (last axis).

    G is the gap between the cumulative shares. ``first`` and ``second`` are the weights of the
    groups by section and lane. ``share`` of each row times ``drift``, by section and lane, is
    taken off the gap.
    """
    found = np.zeros((len(rows.totals), 3, LANES))
    share = np.empty(0) if share is None else share
    drift = np.empty((0, 0)) if drift is None else drift
    _walk(words, rows, first, second, share, drift, found)
    return found


@kernel
def _weigh(words: Words, unit: Integers, weight: Array, cell: Integers, found: Array) -> None:
    for i in range(unit.size):
        word, own, here = words[unit[i]], weight[i], found[cell[i]]
        for lane in range(LANES):
            here[lane] += choose(word, lane, own, 0.0)


@kernel
def _weigh_both(words: Words, weight: Array, section: Integers, found: Array) -> None:
    for i in range(words.size):
        word, own = words[i], weight[i]
        first, second = found[0, section[i]], found[1, section[i]]
        for lane in range(LANES):
            added = choose(word, lane, own, 0.0)
            first[lane] += added
            second[lane] += own - added


@kernel
def _walk(
    words: Words,
    rows: SortedRows,
    first: Array,
    second: Array,
    share: Array,
    drift: Array,
    found: Array,
) -> None:
    unit, weight, step, starts = rows.unit, rows.weight, rows.step, rows.starts
    # Both groups are added up: a difference of totals would be lost beside very large weights.
    mine, others = np.empty(LANES), np.empty(LANES)
    for s in range(starts.size - 1):
        largest, area, signed = found[s, 0], found[s, 1], found[s, 2]
        mine[:] = 0.0
        others[:] = 0.0
        per_mine, per_other = 1 / first[s], 1 / second[s]
        for i in range(starts[s], starts[s + 1]):
            word, own = words[unit[i]], weight[i]
            for lane in range(LANES):
                added = choose(word, lane, own, 0.0)
                mine[lane] += added
                others[lane] += own - added
            width = step[i]
            if np.isnan(width):
                continue
            for lane in range(LANES):
                gap = mine[lane] * per_mine[lane] - others[lane] * per_other[lane]
                if share.size:
                    gap -= share[i] * drift[s, lane]
                size = abs(gap)
                largest[lane] = max(largest[lane], size)
                area[lane] += size * width
                signed[lane] += gap * width
