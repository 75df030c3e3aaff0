"""Permutations of the labels of many groups, and the sums over each group.

With two groups a permutation is a random subset, kept as a bit (see ``subsets``); with more it is
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

from fairperm.engines.kernels.kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm._utils.arrays import Array, Integers, Words

_CHANCES = 256  # equally likely values of a random byte
_BYTES = 8  # of a random word
_GOLDEN = 0x9E3779B97F4A7C15
_DRAWS = 4  # that take turns
# What a walk up the scores keeps of every group's units of one label: how many are passed, the
# sum of the other label's passed before each, and the sum of their squares; a power of two of them.
_PASSED, _SUM, _SQUARES, _STATE = 0, 1, 2, 4


def random_groups(sizes: Integers, wanted: Integers, seeds: Words) -> NDArray[np.uint8]:
    """Return a group by draw and unit: ``wanted[b, g]`` of the ``sizes[b]`` units of each block."""
    # every draw has a seed of its own
    groups = np.empty((len(seeds), int(sizes.sum())), np.uint8)
    for state, draw in zip(seeds.reshape(-1, 1).copy(), groups, strict=True):
        _fill(sizes, wanted, state, draw)
    return groups


@kernel
def _next(state: Words) -> np.uint64:
    """Return the next random word: SplitMix64 (Steele, Lea and Flood 2014)."""
    state[0] += np.uint64(_GOLDEN)
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    last: np.uint64 = word ^ (word >> np.uint64(31))
    return last


@kernel
def _fill(sizes: Integers, wanted: Integers, state: Words, groups: NDArray[np.uint8]) -> None:
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
def _set_chances(wanted: Integers, table: NDArray[np.uint8]) -> None:
    """Give every group a share of the table, rounded down; the largest group has the rest."""
    # it alone then has too many units, where looking for one to move is quick
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
def _correct(block: NDArray[np.uint8], wanted: Integers, state: Words) -> None:
    """Move random units from groups that have too many to groups that have too few."""
    # A random position is the upper half of (32 random bits x size); the few products whose lower
    # half is below 2**32 mod size are drawn again, which makes it uniform (Lemire 2019)
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
def _counts(block: NDArray[np.uint8], n_groups: int) -> Integers:
    """Return the number of units of each group; eight counters take turns, which is faster."""
    counts = np.zeros((n_groups, _BYTES), np.int64)
    for i in range(block.size):
        counts[block[i], i & (_BYTES - 1)] += 1
    total: Integers = counts.sum(axis=1)
    return total


def group_ranks(
    groups: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    tied: Integers,
    stratum_starts: Integers,
    n_groups: int,
) -> Array:
    """Return by draw, stratum and group what AUC and DeLong's variance are made of.

    In a group, let x be a positive's number of negatives with lower scores, and y a negative's
    number of positives, ties counting half. Returned are the numbers of positives and of
    negatives, and the sums of x, of x² and of y².

    Units stand by stratum, negatives before positives, by score; ``labels`` are 1 or 0, by stratum
    and score, where scores tie negatives before positives. ``tied`` tells where among the labels
    runs of both with one score start, where positives follow the negatives in them, and where they
    stop. After the first unit of each stratum comes the number of units.
    """
    together = _together(groups)
    shape = (stratum_starts.size - 1, n_groups, 2, _STATE)
    states = np.zeros((*together.shape[:2], *shape))
    _walk_strata(together, labels, tied, stratum_starts, states)
    by_label = states.reshape(-1, *shape)[: len(groups)]
    negatives, positives = by_label[..., 0, :], by_label[..., 1, :]
    return np.stack(
        [
            *(positives[..., _PASSED], negatives[..., _PASSED]),
            *(positives[..., _SUM], positives[..., _SQUARES], negatives[..., _SQUARES]),
        ],
        axis=-1,
    )


def _together(groups: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the draws in fours, the last repeated where there are not enough."""
    # four take turns in every kernel, so that an addition need not wait for the one before it
    missing = -len(groups) % _DRAWS
    if missing:
        groups = np.concatenate([groups, np.repeat(groups[-1:], missing, axis=0)])
    return groups.reshape(-1, _DRAWS, groups.shape[1])


@kernel
def _walk_strata(
    together: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    tied: Integers,
    stratum_starts: Integers,
    states: Array,
) -> None:
    state = np.empty(_DRAWS * states[0, 0, 0].size)
    by_draw = state.reshape(states[0, :, 0].shape)
    for b in range(len(together)):
        tie = 0
        for s in range(stratum_starts.size - 1):
            start, stop = stratum_starts[s], stratum_starts[s + 1]
            first = tie
            while tie < len(tied) and tied[tie, 0] < stop:
                tie += 1
            state[:] = 0.0
            _walk(together[b], labels, start, stop, tied[first:tie], state)
            states[b, :, s] = by_draw


@kernel
def _walk(
    groups: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    start: int,
    stop: int,
    tied: Integers,
    state: Array,
) -> None:
    """Pass the units of a stratum by ascending score, those of both labels that tie together."""
    middle = int(stop - np.count_nonzero(labels[start:stop]))
    i = negative = start  # the next label; the next unit of each
    positive = middle
    for first, between, last in tied:
        positive = _pass(groups, labels[i:first], negative, positive, state)
        negative = first - (positive - middle)
        n, m = between - first, last - between
        _pass_tied(groups, negative, negative + n, positive, positive + m, state)
        i, negative, positive = last, negative + n, positive + m
    _pass(groups, labels[i:stop], negative, positive, state)


@kernel
def _pass(
    groups: NDArray[np.uint8], labels: NDArray[np.uint8], negative: int, positive: int, state: Array
) -> int:
    """Pass units of unlike scores, or of one label; return the next positive."""
    # without a branch on the label, whose outcome could not be foreseen
    one, next_negative, next_positive = np.uint64(1), np.uint64(negative), np.uint64(positive)
    of_draw = np.uint64(state.size // _DRAWS)
    for i in range(labels.size):
        label = np.uint64(labels[i])
        unit = next_positive if label else next_negative
        next_positive += label
        next_negative += one - label
        start = np.uint64(0)
        for d in range(_DRAWS):
            at = start + _place(groups[np.uint64(d), unit], label)
            _add(state, at)
            state[at] += 1.0
            start += of_draw
    return int(next_positive)


@kernel
def _pass_tied(
    groups: NDArray[np.uint8],
    negative: int,
    after_negatives: int,
    positive: int,
    after_positives: int,
    state: Array,
) -> None:
    """Pass units of one score: half of each label before the other label's, half after."""
    zero, one = np.uint64(0), np.uint64(1)
    _pass_half(groups, negative, after_negatives, zero, state)
    _add_each(groups, positive, after_positives, one, state)
    _pass_half(groups, positive, after_positives, one, state)
    _add_each(groups, negative, after_negatives, zero, state)
    _pass_half(groups, negative, after_negatives, zero, state)
    _pass_half(groups, positive, after_positives, one, state)


@kernel
def _pass_half(
    groups: NDArray[np.uint8], first: int, stop: int, label: np.uint64, state: Array
) -> None:
    of_draw = np.uint64(state.size // _DRAWS)
    for unit in range(np.uint64(first), np.uint64(stop)):
        start = np.uint64(0)
        for d in range(_DRAWS):
            state[start + _place(groups[np.uint64(d), unit], label)] += 0.5
            start += of_draw


@kernel
def _add_each(
    groups: NDArray[np.uint8], first: int, stop: int, label: np.uint64, state: Array
) -> None:
    of_draw = np.uint64(state.size // _DRAWS)
    for unit in range(np.uint64(first), np.uint64(stop)):
        start = np.uint64(0)
        for d in range(_DRAWS):
            _add(state, start + _place(groups[np.uint64(d), unit], label))
            start += of_draw


@kernel
def _place(group: np.uint8, label: np.uint64) -> np.uint64:
    """Return where the state of a group's units of one label starts."""
    place: np.uint64 = np.uint64(group) * np.uint64(2 * _STATE) + label * np.uint64(_STATE)
    return place


@kernel
def _add(state: Array, at: np.uint64) -> None:
    """Add how many of the group's other label have been passed, and its square."""
    passed = state[at ^ np.uint64(_STATE)]
    state[at + np.uint64(_SUM)] += passed
    state[at + np.uint64(_SQUARES)] += passed * passed


@kernel
def words_of_groups(groups: NDArray[np.uint8], first: int, width: int) -> Words:
    """Return a word for each unit, with a lane for each draw (axis 0) and each of some groups."""
    # these are ``width`` groups from the ``first`` on, side by side for each draw
    words = np.zeros(groups.shape[1], np.uint64)
    for draw in range(groups.shape[0]):
        for i in range(groups.shape[1]):
            place = np.int64(groups[draw, i]) - first
            if 0 <= place < width:
                words[i] |= np.uint64(1) << np.uint64(draw * width + place)
    return words
