"""Permutations of the labels of many groups, and what every group then adds up to.

With two groups a permutation is a random subset, kept as a bit (see ``_subsets``); with more it is
a group for every unit, kept as a byte. Units lie in consecutive blocks inside which labels are
exchanged.

A block is filled in two steps. *Drawing*: every unit gets a group at random, independently, with
chances near those wanted. *Correction*: while a group has too many units, a unit is picked at
random and, if it is of such a group, goes to one that has too few. Neither step treats one unit
unlike another, so all arrangements with the same number of units in each group are equally
likely; and in the end these numbers are exactly those wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm._kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_CHANCES = 256  # equally likely values of a random byte
_BYTES = 8  # of a random word
_GOLDEN = 0x9E3779B97F4A7C15


def random_groups(
    sizes: NDArray[np.int64], wanted: NDArray[np.int64], seed: np.uint64
) -> NDArray[np.uint8]:
    """Return a group for every unit: ``wanted[b, g]`` of the ``sizes[b]`` units of each block."""
    groups = np.empty(int(sizes.sum()), np.uint8)
    _fill(sizes, wanted, np.array([seed], np.uint64), groups)
    return groups


@kernel
def dealt(
    groups: NDArray[np.uint8], block: NDArray[np.int32], sizes: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return the groups of consecutive blocks for units that stand in any order.

    Every unit takes the next group of its block, so that memory is read in order.
    """
    following = np.zeros(sizes.size, np.int64)
    following[1:] = np.cumsum(sizes)[:-1]
    result = np.empty_like(groups)
    for i in range(groups.size):
        result[i] = groups[following[block[i]]]
        following[block[i]] += 1
    return result


@kernel
def _next(state: NDArray[np.uint64]) -> np.uint64:
    """Return the next random word: SplitMix64 (Steele, Lea and Flood 2014)."""
    state[0] += np.uint64(_GOLDEN)
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    last: np.uint64 = word ^ (word >> np.uint64(31))
    return last


@kernel
def _fill(
    sizes: NDArray[np.int64],
    wanted: NDArray[np.int64],
    state: NDArray[np.uint64],
    groups: NDArray[np.uint8],
) -> None:
    table = np.empty(_CHANCES, np.uint8)
    start = 0
    for b in range(sizes.size):
        block = groups[start : start + sizes[b]]
        start += sizes[b]
        _set_chances(wanted[b], table)
        whole = block.size // _BYTES * _BYTES
        for i in range(0, whole, _BYTES):
            word = _next(state)
            for j in range(_BYTES):
                block[i + j] = table[(word >> np.uint64(8 * j)) & np.uint64(255)]
        word = _next(state)
        for j in range(block.size - whole):
            block[whole + j] = table[(word >> np.uint64(8 * j)) & np.uint64(255)]
        _correct(block, wanted[b], state)


@kernel
def _set_chances(wanted: NDArray[np.int64], table: NDArray[np.uint8]) -> None:
    """Give every group a share of the table, rounded down; the largest group has the rest.

    It alone then has too many units, where looking for one to move is quick.
    """
    largest = np.argmax(wanted)
    total = wanted.sum()
    table[:] = largest
    at = 0
    for g in range(wanted.size):
        if g != largest:
            share = wanted[g] * _CHANCES // total
            table[at : at + share] = g
            at += share


@kernel
def _correct(
    block: NDArray[np.uint8], wanted: NDArray[np.int64], state: NDArray[np.uint64]
) -> None:
    """Move random units from groups that have too many to groups that have too few.

    A random position is the upper half of (32 random bits x size); the few products whose lower
    half is below 2**32 mod size are drawn again, which makes it uniform (Lemire 2019).
    """
    missing = wanted - _counts(block, wanted.size)
    size, half, low = np.uint64(block.size), np.uint64(32), np.uint64(2**32 - 1)
    redraw = np.uint64(2**32) % size
    for short in range(wanted.size):
        while missing[short] > 0:
            product = (_next(state) >> half) * size
            if product & low < redraw:
                continue
            i = product >> half
            if missing[block[i]] < 0:
                missing[block[i]] += 1
                missing[short] -= 1
                block[i] = short


@kernel
def _counts(block: NDArray[np.uint8], n_groups: int) -> NDArray[np.int64]:
    """Return the number of units of each group; four counters take turns, which is faster."""
    counts = np.zeros((n_groups, 4), np.int64)
    for i in range(block.size):
        counts[block[i], i & 3] += 1
    total: NDArray[np.int64] = counts.sum(axis=1)
    return total


@kernel
def group_totals(
    groups: NDArray[np.uint8],
    columns: Array,
    stratum_starts: NDArray[np.int64],
    n_groups: int,
) -> Array:
    """Return the totals of the columns by stratum, group and column."""
    n_strata = stratum_starts.size - 1
    totals = np.zeros((n_strata, n_groups, columns.shape[1]))
    for s in range(n_strata):
        here = totals[s]
        for i in range(stratum_starts[s], stratum_starts[s + 1]):
            g = groups[i]
            for j in range(columns.shape[1]):
                here[g, j] += columns[i, j]
    return totals


@kernel
def group_ranks(
    groups: NDArray[np.uint8],
    positive: Array,
    tie_starts: NDArray[np.int64],
    stratum_starts: NDArray[np.int64],
    n_groups: int,
) -> Array:
    """Return by stratum and group what AUC and DeLong's variance are made of.

    Units are sorted by stratum and score; ``tie_starts`` are where the score changes. In a group,
    let x be a positive's number of negatives with lower scores, and y a negative's number of
    positives, ties counting half. Returned are the numbers of positives and of negatives, and the
    sums of x, of x² and of y².
    """
    n_strata = stratum_starts.size - 1
    sums = np.zeros((n_strata, n_groups, 5))
    tied = np.zeros((n_groups, 2))
    tie = 0
    for s in range(n_strata):
        here = sums[s]
        stop = stratum_starts[s + 1]
        i = stratum_starts[s]
        while i < stop:
            end = tie_starts[tie + 1]
            tie += 1
            if end == i + 1:
                one = here[groups[i]]
                _add(one, positive[i], one[1], one[0])
                one[0] += positive[i]
                one[1] += 1 - positive[i]
                i = end
                continue
            for j in range(i, end):
                tied[groups[j], np.int64(positive[j])] += 1
            for j in range(i, end):
                one, ties = here[groups[j]], tied[groups[j]]
                _add(one, positive[j], one[1] + ties[0] / 2, one[0] + ties[1] / 2)
            for j in range(i, end):
                here[groups[j], 0] += positive[j]
                here[groups[j], 1] += 1 - positive[j]
                tied[groups[j]] = 0
            i = end
    return sums


@kernel
def _add(sums: Array, positive: float, below: float, above: float) -> None:
    """Add a unit with so many negatives below it, and positives not above it, to its group's.

    Without a branch, whose outcome could not be foreseen; ``positive`` is 1 or 0.
    """
    share = positive * below
    sums[2] += share
    sums[3] += share * below
    sums[4] += (1 - positive) * above * above
