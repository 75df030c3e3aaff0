"""Mean AUC of each class against the rest and its variance, for 64 permutations at a time.

A row counts in the AUC of every class: as one of its own class, or as one of the rest. So its
influences on all of them are added up before they are squared (see ``metrics.one_versus_rest``).
Rows are sorted once by the scores of each class. A walk up the scores of a class knows the weight
of the class and of the rest that has been passed, and adds to the influence of each row what the
row beats; the walks of all classes share one array of influences.

The walk is that of one group, whose rows have a bit: the other one walks with opposite bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairperm._utils.sorting import order_by, run_starts
from fairperm.engines.kernels.kernel import LANES, bit_of, inlined, kernel

if TYPE_CHECKING:
    from fairperm._utils.arrays import Array, Integers, Words
    from fairperm.data.sample import Sample

_ROUNDING = 1e-12  # smaller influences, relative to their terms, are rounding errors
_LANES = 32  # lanes that walk side by side: influences of more of them leave the cache
# What a walk keeps of every lane, as rows of one flat array.
_REST, _OWN = 0, 1  # weights passed, of the rest and of the class
_WINS = 2  # weight that the rows of the class beat
_FACTOR = 3  # what a passed weight adds to an influence
_ROWS = 4


class ClassRows(NamedTuple):
    """Rows by stratum, unit and class, and their orders by the scores of each class."""

    # the unit of each row, whose word says in which group it is, its class and its weight
    unit: Integers
    label: Integers
    weight: Array
    first_row: Integers  # the first row of each stratum, and the number of rows
    order: Integers  # by class, the rows by stratum and ascending score
    # Where runs of equal scores start in the order of each class, one class after the other. Each
    # ends with the number of rows.
    ties: Integers
    # by class and stratum, the place of the first run in ``ties``; then that of the last end
    first_tie: Integers

    @classmethod
    def of(cls, rows: Sample, unit: Integers) -> ClassRows:
        """Sort rows whose units are numbered by stratum."""
        n_classes = rows.contributions.shape[1] // 2
        label = rows.contributions[:, :n_classes].argmax(axis=1)
        by_unit = order_by([unit, label, *rows.contributions[:, n_classes:].T])
        rows = rows.take(by_unit)
        strata = np.arange(rows.n_strata + 1)
        order, ties, first_tie, n_ties = [], [], [], 0
        for score in rows.contributions[:, n_classes:].T:
            order.append(order_by([rows.stratum, score]))
            stratum, score = rows.stratum[order[-1]], score[order[-1]]
            starts = run_starts(stratum, score)
            first_tie.append(n_ties + np.searchsorted(stratum[starts], strata))
            ties.append(np.append(starts, len(score)))
            n_ties += len(ties[-1])
        return cls(
            unit=unit[by_unit],
            label=label[by_unit],
            weight=rows.weight_of_each(),
            first_row=np.searchsorted(rows.stratum, strata),
            order=np.stack(order),
            ties=np.concatenate(ties),
            first_tie=np.stack(first_tie),
        )


class _Lanes(NamedTuple):
    """The rows of a stratum, and the lanes that walk side by side, from the bit ``shift`` on."""

    words: Words
    shift: np.uint64
    unit: Integers
    label: Integers
    weight: Array


def one_versus_rest_by_lane(
    words: Words, rows: ClassRows, lanes: int = LANES, *, weighted: bool
) -> tuple[Array, Array]:
    """Return the value and its variance, by lane and stratum."""
    # They are those of the units with a bit; NaN without rows of some class, and the variance also
    # if all rows of a class are of one unit. ``weighted`` classes count by the weights of their
    # rows.
    n_strata = len(rows.first_row) - 1
    value, variance = np.full((2, n_strata, LANES), np.nan)
    for s in range(n_strata):
        for start in range(0, lanes, _LANES):
            side = slice(start, start + _LANES)
            _fill(words, rows, s, np.uint64(start), weighted, value[s, side], variance[s, side])
    return value[:, :lanes].T, variance[:, :lanes].T


@kernel
def _fill(
    words: Words,
    rows: ClassRows,
    s: int,
    shift: np.uint64,
    weighted: bool,
    value: Array,
    variance: Array,
) -> None:
    """Fill in the estimates of a stratum."""
    n_classes, first, stop = len(rows.order), rows.first_row[s], rows.first_row[s + 1]
    lanes = _Lanes(
        words, shift, rows.unit[first:stop], rows.label[first:stop], rows.weight[first:stop]
    )
    totals = np.zeros((n_classes, _LANES))
    n_units = np.zeros((n_classes + 1, _LANES))  # with rows of each class, and all
    _count(lanes, totals, n_units)
    share, rest = _find_shares(totals, weighted)
    influence = np.zeros((stop - first, _LANES))
    state = np.empty(_ROWS * _LANES)
    auc = np.empty((n_classes, _LANES))
    for c in range(n_classes):
        state[:] = 0.0
        for lane in range(_LANES):
            pairs = totals[c, lane] * rest[c, lane]
            state[_FACTOR * _LANES + lane] = share[c, lane] / pairs if pairs > 0.0 else 0.0
        for t in range(rows.first_tie[c, s], rows.first_tie[c, s + 1]):
            tied = rows.order[c, rows.ties[t] : rows.ties[t + 1]]
            if len(tied) == 1:
                _pass_row(lanes, tied[0] - first, c, state, influence)
            else:
                _pass_tie(lanes, tied, first, c, state, influence)
        for lane in range(_LANES):
            auc[c, lane] = state[_WINS * _LANES + lane] / (totals[c, lane] * rest[c, lane])
    for lane in range(_LANES):
        value[lane] = (share[:, lane] * auc[:, lane]).sum()
    centre, largest = _find_centres(totals, rest, share, auc, value, weighted)
    _square(lanes, n_units, centre, largest, influence, variance)


@kernel
def _count(rows: _Lanes, totals: Array, n_units: Array) -> None:
    """Add up the weights of each class, its units, and all units."""
    all_units = len(n_units) - 1
    unit, label = rows.unit, rows.label
    for i in range(len(unit)):
        word = rows.words[unit[i]] >> rows.shift
        is_new = i == 0 or unit[i] != unit[i - 1]
        is_new_class = is_new or label[i] != label[i - 1]
        for lane in range(_LANES):
            bit = bit_of(word, lane)
            totals[label[i], lane] += bit * rows.weight[i]
            n_units[label[i], lane] += bit * is_new_class
            n_units[all_units, lane] += bit * is_new


@kernel
def _find_shares(totals: Array, weighted: bool) -> tuple[Array, Array]:
    """Return what each class counts, and the weight of all other classes."""
    rest = np.zeros_like(totals)
    for c in range(len(totals)):
        for other in range(len(totals)):
            if other != c:
                rest[c] += totals[other]
    if not weighted:
        return np.full_like(totals, 1.0 / len(totals)), rest
    return totals / totals.sum(axis=0), rest


@inlined
def _pass_row(rows: _Lanes, i: int, c: int, state: Array, influence: Array) -> None:
    """Pass a row that has a score of its own."""
    word, mine = rows.words[rows.unit[i]] >> rows.shift, rows.weight[i]
    if rows.label[i] == c:
        _compare_own(word, mine, i, state, influence)
        _add(word, mine, _OWN, state)
    else:
        _compare_rest(i, state, influence)
        _add(word, mine, _REST, state)


@kernel
def _pass_tie(
    rows: _Lanes, tied: Integers, first: int, c: int, state: Array, influence: Array
) -> None:
    """Pass rows of one score: half of each is passed before the others are compared with it."""
    for half in range(2):
        for k in range(len(tied)):
            i = tied[k] - first
            kind = _OWN if rows.label[i] == c else _REST
            _add(rows.words[rows.unit[i]] >> rows.shift, 0.5 * rows.weight[i], kind, state)
        if half == 0:
            for k in range(len(tied)):
                i = tied[k] - first
                if rows.label[i] == c:
                    word = rows.words[rows.unit[i]] >> rows.shift
                    _compare_own(word, rows.weight[i], i, state, influence)
                else:
                    _compare_rest(i, state, influence)


@inlined
def _add(word: np.uint64, weight: float, kind: int, state: Array) -> None:
    """Add a weight in the lanes that have the bit."""
    for lane in range(_LANES):
        state[kind * _LANES + lane] += bit_of(word, lane) * weight


@inlined
def _compare_own(word: np.uint64, weight: float, i: int, state: Array, influence: Array) -> None:
    """Add to the influence of a row of the class what it beats."""
    for lane in range(_LANES):
        passed = state[_REST * _LANES + lane]
        state[_WINS * _LANES + lane] += bit_of(word, lane) * weight * passed
        influence[i, lane] += state[_FACTOR * _LANES + lane] * passed


@inlined
def _compare_rest(i: int, state: Array, influence: Array) -> None:
    """Take from the influence of a row of the rest what it beats: it should beat none."""
    for lane in range(_LANES):
        influence[i, lane] -= state[_FACTOR * _LANES + lane] * state[_OWN * _LANES + lane]


@kernel
def _find_centres(
    totals: Array, rest: Array, share: Array, auc: Array, value: Array, weighted: bool
) -> tuple[Array, Array]:
    """Return by class what makes the influences of its rows add up to zero, and their largest size.

    A row of the class has the share of the rest that it beats, minus the AUC. A row of the rest has
    one minus the share of the class that it beats, minus the AUC: one minus it is still to be
    added. The AUC of a class whose rows count by their weight rises with this weight.
    """
    centre, largest = np.zeros_like(totals), np.zeros_like(totals)
    for c in range(len(totals)):
        centre[c] -= share[c] * auc[c] / totals[c]
        largest[c] += share[c] / totals[c]
        if weighted:
            centre[c] += (auc[c] - value) / totals.sum(axis=0)
        for other in range(len(totals)):
            if other != c:
                centre[c] += share[other] * (1.0 - auc[other]) / rest[other]
                largest[c] += share[other] / rest[other]
    return centre, largest


@kernel
def _square(
    rows: _Lanes, n_units: Array, centre: Array, largest: Array, influence: Array, variance: Array
) -> None:
    """Fill in the variance: the squares of units, in which the rows of each class are added up."""
    # as in Obuchowski's variance, squares of the rows of a class in a unit have a factor m/(m - 1)
    # for the m units that have such rows, and products of classes n/(n - 1) for all n units
    n_classes, unit, label, weight = len(centre), rows.unit, rows.label, rows.weight
    factor = n_units / (n_units - 1.0)
    part, whole, most, total = np.zeros((4, _LANES))
    for i in range(len(unit)):
        c, word = label[i], rows.words[unit[i]] >> rows.shift
        is_last = i + 1 == len(unit) or unit[i + 1] != unit[i]
        is_last_of_class = is_last or label[i + 1] != c
        for lane in range(_LANES):
            one = influence[i, lane] + centre[c, lane]
            one = one if abs(one) > _ROUNDING * largest[c, lane] else 0.0
            part[lane] += weight[i] * one
            most[lane] += weight[i] * largest[c, lane]
        if is_last_of_class:
            for lane in range(_LANES):
                bit, square = bit_of(word, lane), part[lane] * part[lane]
                total[lane] += bit * square * (factor[c, lane] - factor[n_classes, lane])
                whole[lane] += part[lane]
                part[lane] = 0.0
        if is_last:
            for lane in range(_LANES):
                one = whole[lane] if abs(whole[lane]) > _ROUNDING * most[lane] else 0.0
                total[lane] += bit_of(word, lane) * factor[n_classes, lane] * one * one
                whole[lane] = most[lane] = 0.0
    for lane in range(_LANES):
        if n_units[:n_classes, lane].min() > 1:
            variance[lane] = max(total[lane], 0.0)
