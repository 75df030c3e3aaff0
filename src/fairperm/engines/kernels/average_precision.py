"""Average precision of rows and its variance, for 64 permutations at a time.

A walk up the scores knows how many positives and negatives of a group score as high or higher: all
of them, minus those passed. So one walk gives the precision at every positive, and what each row
takes from or adds to the precisions of the positives below it (see ``metrics.ranks.Precisions``).
Negatives between two positives all take the same: their weights are added up, and their squared
influences at the next positive.

The walk is that of one group, whose rows have a bit: the other one walks with opposite bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairperm._utils.arrays import Array, Booleans, Integers, Words
from fairperm._utils.sorting import order_by, run_starts
from fairperm.data.sample import Sample
from fairperm.engines.kernels.kernel import LANES, bit_of, inlined, kernel

_ROUNDING = 1e-12  # squares of influences below it, relative to their terms, are rounding errors
_ONE = 1 + 1e-9  # effective number of positives of a single row or cluster, with rounding
# What is kept of every lane, as rows of one flat array: the compiler then sees that they do not
# overlap.
_TRUE, _FALSE = 0, 1  # weights of the positives and negatives that score as high or higher
_GAINED, _LOST = 2, 3  # what one more positive or negative adds or takes
_ERRORS = 4  # weights of positives, times one minus the precision
_FIRST, _SECOND, _SQUARES = 5, 6, 7  # moments of the positives' influences, with squared weights
_NEGATIVES = 8  # squared influences of negatives
_PASSED, _PASSED_SQUARES = 9, 10  # weights of the negatives since the last positive
_HERE, _HERE_SQUARES = 11, 12  # weights of the positives with the present score
_ALL = 13  # weight of all positives
_INFLUENCE = 14  # of a positive with the present score, from the centre
_ROWS = 15


class SortedRows(NamedTuple):
    """Rows by stratum and ascending score; rows of one tie stand together."""

    unit: Integers  # the cluster of each row: whose word says in which group the row is
    # of each row
    positive: Booleans
    weight: Array
    tie_starts: Integers  # where runs of equal scores start in each stratum, and the number of rows
    first_tie: Integers  # the first run of each stratum, and the number of runs
    n_units: int
    clustered: bool  # whether units have several rows

    @classmethod
    def of(cls, rows: Sample, unit: Integers) -> SortedRows:
        """Sort rows whose units are numbered by stratum, and find their ties."""
        order = order_by([rows.stratum, rows.contributions[:, 1]])
        rows, unit = rows.take(order), unit[order]
        label, score = rows.contributions.T
        starts = run_starts(rows.stratum, score)
        return cls(
            unit=unit,
            positive=label > 0,
            weight=rows.weight_of_each(),
            tie_starts=np.append(starts, len(score)),
            first_tie=np.searchsorted(rows.stratum[starts], np.arange(rows.n_strata + 1)),
            n_units=int(unit.max()) + 1,
            clustered=rows.cluster is not None,
        )


def average_precision_by_lane(
    words: Words, rows: SortedRows, lanes: int = LANES
) -> tuple[Array, Array]:
    """Return the value and the sum of squared influences, by lane and stratum."""
    # They are those of the units with a bit; NaN without positives. Of positives in a single row or
    # cluster, nothing shows how they vary: the squares are NaN.
    n_strata = len(rows.first_tie) - 1
    value, squares = np.full((2, n_strata, LANES), np.nan)
    own: Array = np.zeros(rows.n_units if rows.clustered else 0)
    if rows.clustered:
        np.add.at(own, rows.unit, rows.weight * rows.positive)
    for s in range(n_strata):
        ties = rows.tie_starts[rows.first_tie[s] : rows.first_tie[s + 1] + 1]
        _fill(words, rows, ties, own, value[s], squares[s])
    return value[:, :lanes].T, squares[:, :lanes].T


@kernel
def _fill(
    words: Words, rows: SortedRows, ties: Integers, own: Array, value: Array, squares: Array
) -> None:
    """Fill in the estimates of a stratum; ``own`` has the positives' weight of each cluster."""
    unit, positive, weight = rows.unit, rows.positive, rows.weight
    state = np.zeros(_ROWS * LANES)
    lowest, highest = 0, -1  # clusters of the stratum
    if len(own):
        of_stratum = unit[ties[0] : ties[-1]]
        lowest, highest = of_stratum.min(), of_stratum.max()
    sums = np.zeros((highest - lowest + 1, LANES))
    centre = _find_error(positive, weight, ties)
    for i in range(ties[0], ties[-1]):
        _add(words[unit[i]], weight[i], _TRUE if positive[i] else _FALSE, state)
    for lane in range(LANES):
        state[_ALL * LANES + lane] = state[_TRUE * LANES + lane]
    for t in range(len(ties) - 1):
        _pass_tie(words, rows, ties[t], ties[t + 1], centre, state)
        if len(own):
            for i in range(ties[t], ties[t + 1]):
                _add_to_cluster(positive[i], weight[i], state, sums[unit[i] - lowest])
    for lane in range(LANES):
        _settle_negatives(lane, state)
    _finish(centre, state, value, squares)
    if len(own):
        last = highest + 1
        _square_clusters(words[lowest:last], own[lowest:last], sums, state, squares)


@kernel
def _find_error(positive: Booleans, weight: Array, ties: Integers) -> float:
    """Return one minus the average precision of both groups together."""
    # moments about it keep their digits, as each group's own is near it
    true, false, errors = 0.0, 0.0, 0.0
    for t in range(len(ties) - 2, -1, -1):
        here = 0.0
        for i in range(ties[t], ties[t + 1]):
            if positive[i]:
                here += weight[i]
            else:
                false += weight[i]
        true += here
        if here > 0:
            errors += here * false / (true + false)
    return errors / true if true > 0 else 0.0


@inlined
def _add(word: np.uint64, weight: float, row: int, state: Array) -> None:
    """Add a weight in the lanes that have the bit."""
    for lane in range(LANES):
        state[row * LANES + lane] += bit_of(word, lane) * weight


@inlined
def _add_both(word: np.uint64, weight: float, row: int, state: Array) -> None:
    """Add a weight, and its square in the row after, in the lanes that have the bit."""
    for lane in range(LANES):
        mine = bit_of(word, lane) * weight
        state[row * LANES + lane] += mine
        state[(row + 1) * LANES + lane] += mine * weight


@inlined
def _pass_tie(
    words: Words, rows: SortedRows, start: int, stop: int, centre: float, state: Array
) -> None:
    """Pass the rows of one score: first its positives, if there are any."""
    unit, positive, weight = rows.unit, rows.positive, rows.weight
    if stop - start == 1 and positive[start]:  # most often, and then nothing has to be added up
        word, own = words[unit[start]], weight[start]
        for lane in range(LANES):
            here = bit_of(word, lane) * own
            _pass_positives(here, here * own, centre, lane, state)
        return
    has_positive = False
    for i in range(start, stop):
        if positive[i]:
            has_positive = True
            _add_both(words[unit[i]], weight[i], _HERE, state)
    if has_positive:
        for lane in range(LANES):
            here, squares = state[_HERE * LANES + lane], state[_HERE_SQUARES * LANES + lane]
            state[_HERE * LANES + lane] = 0.0
            state[_HERE_SQUARES * LANES + lane] = 0.0
            _pass_positives(here, squares, centre, lane, state)
    for i in range(start, stop):
        if not positive[i]:
            _add_both(words[unit[i]], weight[i], _PASSED, state)


@kernel
def _settle_negatives(lane: int, state: Array) -> None:
    """Square the influences of the negatives since the last positive, and take them away."""
    lost = state[_LOST * LANES + lane]
    state[_NEGATIVES * LANES + lane] += state[_PASSED_SQUARES * LANES + lane] * lost * lost
    state[_FALSE * LANES + lane] -= state[_PASSED * LANES + lane]
    state[_PASSED * LANES + lane] = 0.0
    state[_PASSED_SQUARES * LANES + lane] = 0.0


@kernel
def _pass_positives(here: float, squares: float, centre: float, lane: int, state: Array) -> None:
    """Pass positives of one score with this weight, and this sum of squared weights."""
    _settle_negatives(lane, state)
    true, false = state[_TRUE * LANES + lane], state[_FALSE * LANES + lane]
    true = true if true > here else here  # weights are rounded
    false = false if false > 0.0 else 0.0
    rows = true + false
    over = 1.0 / (rows if rows > 0.0 else 1.0)
    error = false * over
    gained = state[_GAINED * LANES + lane] + here * over * error
    influence = gained - error + centre
    state[_TRUE * LANES + lane] = true - here
    state[_GAINED * LANES + lane] = gained
    state[_LOST * LANES + lane] += here * over * (true * over)
    state[_ERRORS * LANES + lane] += here * error
    state[_INFLUENCE * LANES + lane] = influence
    state[_FIRST * LANES + lane] += squares * influence
    state[_SECOND * LANES + lane] += squares * influence * influence
    state[_SQUARES * LANES + lane] += squares


@inlined
def _add_to_cluster(is_positive: bool, weight: float, state: Array, sums: Array) -> None:
    """Add the influence of a row that was just passed; the sums of other groups are not used."""
    if is_positive:
        for lane in range(LANES):
            sums[lane] += weight * state[_INFLUENCE * LANES + lane]
    else:
        for lane in range(LANES):
            sums[lane] -= weight * state[_LOST * LANES + lane]


@kernel
def _finish(centre: float, state: Array, value: Array, squares: Array) -> None:
    """Fill in the values and the squares of rows; keep how far values are from the centre."""
    for lane in range(LANES):
        total = state[_ALL * LANES + lane]
        if total > 0.0:
            error = state[_ERRORS * LANES + lane] / total
            value[lane] = 1.0 - error
            off = error - centre
            terms = state[_SECOND * LANES + lane] + off * off * state[_SQUARES * LANES + lane]
            mine = terms + 2.0 * off * state[_FIRST * LANES + lane]
            mine = mine if mine > _ROUNDING * terms else 0.0
            if total * total > _ONE * state[_SQUARES * LANES + lane]:
                squares[lane] = (mine + state[_NEGATIVES * LANES + lane]) / (total * total)
            state[_FIRST * LANES + lane] = off


@kernel
def _square_clusters(words: Words, own: Array, sums: Array, state: Array, squares: Array) -> None:
    """Put the squared influences of whole clusters in place of those of rows."""
    terms = np.zeros(LANES)
    total = np.zeros(LANES)
    own_squares = np.zeros(LANES)
    for u in range(len(own)):
        word = words[u]
        for lane in range(LANES):
            bit = bit_of(word, lane)
            off = own[u] * state[_FIRST * LANES + lane]
            one = sums[u, lane] + off
            total[lane] += bit * one * one
            own_squares[lane] += bit * own[u] * own[u]
            terms[lane] += bit * (sums[u, lane] * sums[u, lane] + off * off)
    for lane in range(LANES):
        weight = state[_ALL * LANES + lane]
        if weight > 0.0:
            mine = total[lane] if total[lane] > _ROUNDING * terms[lane] else 0.0
            is_one = weight * weight <= _ONE * own_squares[lane]
            squares[lane] = np.nan if is_one else mine / (weight * weight)
