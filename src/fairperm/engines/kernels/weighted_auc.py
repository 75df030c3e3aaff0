"""AUC of weighted or clustered rows and its variance, for 64 permutations at a time.

With weights w, the AUC is the weighted share of pairs in which the positive has the higher score.
A row's influence on it is w·(c − AUC)/W, where c is its structural component (the weighted share
of rows of the other label that it beats) and W the weight of its own label. The variance is the
sum of squared influences, added up over each cluster first: Obuchowski's (1997), and DeLong's where
every cluster is one row. Weighting DeLong's sums of squares by w, not w², would understate it.

The rows are sorted by score once, and every lane walks up the scores by *runs* of rows that have
passed the same rows of the other label, in steps of a few rows. In a run of both labels with one
score, half of each label is passed before the other's rows are compared, half after. Group B has
passed what both groups have passed, which is the same in all lanes, minus what A has. Where a few
weights are so large that this difference would lose the digits of the rest, B's lanes are computed
as A's, of the opposite choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairperm._utils.sorting import run_numbers, run_starts
from fairperm.engines.kernels.kernel import LANES, bit_of, choose, inlined, kernel
from fairperm.engines.kernels.subsets import add_to_totals

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairperm._utils.arrays import Array, Booleans, Codes, Integers, Places, Words

_ROUNDING = (8 * 2.0**-52) ** 2  # of a variance, for each row: sums of so many are rounded so
_WIDE = 1e3  # times a lower quartile of the weights: few rows make a mean so far above it
_FEW = 4  # rows of a step
SIDE = 32  # lanes that walk side by side; what more of them have passed leaves the cache
_UNROLL = 16  # clusters whose rows are fetched one after the other, without waiting for them
# What is kept of every lane, as rows of one flat array: the compiler then sees that they do not
# overlap. The first of two rows is group A's, the second B's; rows by label are the negatives' and
# then the positives'.
PASSED = 0  # weights of group A, by label
WINS = 2  # weight won by the positives
SQUARES = 4  # of influences, by label
WEIGHTS = 8  # squares of weights, by label
_WHOLE, _MOST = 8, 10  # squares of the influences of whole clusters, and of the most they can be
SLOPE, MEAN, SHARE = 12, 14, 18  # what turns components into influences; the last two by label
STATE_ROWS = 22


class Steps(NamedTuple):
    """Steps of a walk up the scores. Units and runs are numbered within each stratum."""

    # by step and row; weights of 0 fill up steps of fewer rows
    unit: Integers
    weight: Array
    # weight, label and run of the rows of each step
    total: Array
    positive: Booleans
    run: Integers
    compares: Booleans  # whether the rows are compared with those passed: in one step for each row
    # whether only half of the rows are passed: of both labels with the same score
    is_half: Booleans
    # by run, the weight of the other label that it has passed, in both groups together
    passed: Array


class Clusters(NamedTuple):
    """The units that change groups, rows or clusters of them, and their rows."""

    # in the order of their first rows, of which many have then just been visited
    unit: Integers
    # where the negatives, and then the positives, of each unit start among its rows
    starts: Integers
    weights: Array  # the weight of the negatives, and then of the positives, of each unit
    run_of_row: Integers
    weight_of_row: Array


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """The steps of the walk, and the units that change groups."""

    steps: Steps
    clusters: Clusters
    by_cluster: Places  # the rows by cluster
    # of each stratum, and the number of all
    first_step: Integers
    first_unit: Integers
    first_run: Integers
    totals: Array  # the weight of each stratum's negatives and positives
    # Whether units have several rows. If not, the variance of unit weights is DeLong's.
    is_clustered: bool
    is_wide: bool  # whether few weights are much larger than the rest

    @classmethod
    def build(
        cls,
        score: Array,
        positive: Booleans,
        weight: Array,
        unit: Integers,
        stratum: Codes,
        n_strata: int,
        *,
        is_clustered: bool,
    ) -> WeightedRows:
        """Take steps through rows by stratum and ascending score, negatives first in a tie."""
        # units are numbered by stratum
        n = len(score)
        ties = run_starts(stratum, score)
        tie = run_numbers(ties, n)
        n_positives = np.add.reduceat(positive, ties, dtype=np.int64)
        has_both = ((n_positives > 0) & (n_positives < np.diff(np.append(ties, n))))[tie]
        runs = run_starts(stratum, positive, np.where(has_both, tie, -1))
        run = run_numbers(runs, n)
        passed, totals = _passed(weight, positive, has_both, runs, stratum, n_strata)
        first = np.flatnonzero((np.arange(n) - runs[run]) % _FEW == 0)
        size = np.diff(np.append(first, n))
        # where both labels tie: half of the negatives pass, then positives and negatives are
        # compared, half of them passing, then the other half of the positives pass
        step = np.append(np.arange(len(first)), np.flatnonzero(has_both[first]))
        compares = np.arange(len(step)) < len(first)
        phase = np.where(positive[first[step]], np.where(compares, 1, 3), np.where(compares, 2, 0))
        together = np.where(has_both[first], ties[tie[first]], first)[step]
        order = np.lexsort([first[step], phase, together])
        first, size, compares = first[step[order]], size[step[order]], compares[order]
        inside = np.arange(_FEW) < size[:, None]
        place = np.where(inside, first[:, None] + np.arange(_FEW), first[:, None])
        weights = np.where(inside, weight[place], 0.0)
        strata = np.arange(n_strata + 1)
        stratum_of_unit = np.empty(int(unit.max()) + 1, stratum.dtype)
        stratum_of_unit[unit] = stratum
        first_unit = np.searchsorted(stratum_of_unit, strata)
        first_run = np.searchsorted(stratum[runs], strata)
        first_row = np.full(len(stratum_of_unit), n)
        np.minimum.at(first_row, unit, np.arange(n))
        cluster = np.argsort(first_row)
        place_of_unit = np.argsort(cluster)
        label = 2 * place_of_unit[unit] + positive
        by_cluster = np.argsort(label, kind="stable")
        steps = Steps(
            unit=unit[place] - first_unit[stratum[first], None],
            weight=weights,
            total=weights.sum(axis=1),
            positive=positive[first],
            run=run[first] - first_run[stratum[first]],
            compares=compares,
            is_half=has_both[first],
            passed=passed,
        )
        weights = np.bincount(label[by_cluster], weight[by_cluster], minlength=2 * len(cluster))
        clusters = Clusters(
            unit=cluster - first_unit[stratum_of_unit[cluster]],
            starts=np.searchsorted(label[by_cluster], np.arange(2 * len(cluster) + 1)),
            weights=weights.astype(np.float64),
            run_of_row=(run - first_run[stratum])[by_cluster],
            weight_of_row=weight[by_cluster],
        )
        return cls(
            steps=steps,
            clusters=clusters,
            by_cluster=by_cluster,
            first_step=np.searchsorted(stratum[first], strata),
            first_unit=first_unit,
            first_run=first_run,
            totals=totals,
            is_clustered=is_clustered,
            is_wide=bool(weight.mean() > _WIDE * np.quantile(weight, 0.25)),
        )

    def steps_of(self, s: int) -> Steps:
        """Return the steps of a stratum."""
        inside = slice(self.first_step[s], self.first_step[s + 1])
        passed = self.steps.passed[self.first_run[s] : self.first_run[s + 1]]
        columns: dict[str, Any] = self.steps._asdict()
        return Steps(**{name: one[inside] for name, one in columns.items()} | {"passed": passed})

    def clusters_of(self, s: int) -> Clusters:
        """Return the units of a stratum."""
        first, stop = self.first_unit[s], self.first_unit[s + 1]
        return self.clusters._replace(
            unit=self.clusters.unit[first:stop],
            starts=self.clusters.starts[2 * first : 2 * stop + 1],
            weights=self.clusters.weights[2 * first : 2 * stop],
        )


def _passed(
    weight: Array,
    positive: Booleans,
    has_both: Booleans,
    runs: Places,
    stratum: Codes,
    n_strata: int,
) -> tuple[Array, Array]:
    """Return the other label's weight that each run has passed, and each stratum's weights."""
    is_positive, ties = positive[runs], has_both[runs]
    of_run = np.add.reduceat(weight, runs)
    by_label = np.where(np.stack([~is_positive, is_positive]), of_run, 0.0)
    sums = np.concatenate([np.zeros((2, 1)), np.cumsum(by_label, axis=1)], axis=1)
    ends = np.searchsorted(stratum[runs], np.arange(n_strata + 1))
    before = sums[:, :-1] - sums[:, ends[:-1]][:, stratum[runs]]
    other = np.where(is_positive, *before)
    # of two tied runs, the negatives come first: half of the next is passed, half of the last
    other[ties & ~is_positive] += of_run[ties & is_positive] / 2
    other[ties & is_positive] -= of_run[ties & ~is_positive] / 2
    return other, (sums[:, ends[1:]] - sums[:, ends[:-1]]).T


def weighted_auc_by_lane(words: Words, rows: WeightedRows) -> tuple[Array, Array]:
    """Return AUC and variance by permutation, stratum and group, as ``auc_by_lane`` does."""
    levels = np.empty((int(np.diff(rows.first_run).max()) if rows.is_clustered else 0, SIDE))

    def fill(s: int, words: Words, value: Array, variance: Array) -> None:
        _fill(words, rows.steps_of(s), rows.clusters_of(s), rows.totals[s], levels, value, variance)

    return fill_strata(words, rows, fill)


def fill_strata(
    words: Words, rows: WeightedRows, fill: Callable[[int, Words, Array, Array], None]
) -> tuple[Array, Array]:
    """Return values and variances, which ``fill`` fills in for a stratum and its words."""
    n_strata = len(rows.first_step) - 1
    value, variance = np.full((2, n_strata, 2, LANES), np.nan)
    for s in range(n_strata):
        mine = words[rows.first_unit[s] : rows.first_unit[s + 1]]
        fill(s, mine, value[s], variance[s])
        if rows.is_wide:
            of_b = np.full((2, 2, LANES), np.nan)
            fill(s, ~mine, *of_b)
            value[s, 1], variance[s, 1] = of_b[:, 0]
    return np.moveaxis(value, -1, 0), np.moveaxis(variance, -1, 0)


@kernel
def _fill(
    words: Words,
    steps: Steps,
    clusters: Clusters,
    totals: Array,
    levels: Array,
    value: Array,
    variance: Array,
) -> None:
    """Fill in the estimates of a stratum."""
    is_clustered = len(levels) > 0
    flat = np.empty(STATE_ROWS * SIDE)
    state = flat.reshape(STATE_ROWS, SIDE)
    n_rows = clusters.starts[-1] - clusters.starts[0]
    n_units = count_units(words, clusters)
    for start in range(0, LANES, SIDE):
        shift = np.uint64(start)
        lanes = slice(start, start + SIDE)
        state[:] = 0.0
        walk_up(words, steps, shift, flat, levels)
        set_influences(state, totals, n_units[:, :, lanes], 1.0, value[:, lanes])
        state[:SLOPE] = 0.0
        if is_clustered:
            add_clusters(words, clusters, steps.passed, levels, shift, flat)
        else:
            _walk_again(words, steps, shift, flat)
        set_variances(state, totals, n_units[:, :, lanes], n_rows, is_clustered, variance[:, lanes])


@kernel
def count_units(words: Words, clusters: Clusters) -> Integers:
    """Return how many units have negatives, have positives, and are there, by group and lane."""
    counts = np.zeros((3, 2, LANES), np.int64)
    chosen, starts = np.empty_like(words), clusters.starts
    for kind in range(3):
        n = 0
        for u in range(words.size):
            is_chosen = kind == 2 or starts[2 * u + kind + 1] > starts[2 * u + kind]
            chosen[u] = words[clusters.unit[u]] if is_chosen else np.uint64(0)
            n += int(is_chosen)
        add_to_totals(chosen, counts[kind, 0])
        counts[kind, 1] = n - counts[kind, 0]
    return counts


@kernel
def set_influences(
    state: Array, totals: Array, n_units: Integers, most: float, value: Array
) -> None:
    """Fill in the AUC or its change, and what turns components into influences on it.

    These add up to zero if a negative's component is ``most``, 1 or 0, minus the share of positives
    below it, and are 0 where the value is undefined. Units tell which labels a group has: what B's
    weights leave of all may be a rounding error.
    """
    for g in range(2):
        for lane in range(SIDE):
            n, m = state[PASSED, lane], state[PASSED + 1, lane]
            if g == 1:
                n, m = totals[0] - n, totals[1] - m
            if min(n_units[0, g, lane], n_units[1, g, lane]) > 0:
                found = state[WINS + g, lane] / (n * m)
                value[g, lane] = found
                state[SLOPE + g, lane] = 1 / (n * m)
                state[MEAN + g, lane], state[MEAN + 2 + g, lane] = (most - found) / n, found / m
                state[SHARE + g, lane], state[SHARE + 2 + g, lane] = 1 / n, 1 / m
            else:
                value[g, lane] = np.nan


@kernel
def set_variances(
    state: Array, totals: Array, n_units: Integers, n_rows: int, is_clustered: bool, variance: Array
) -> None:
    """Fill in the sums of squared influences.

    Zero if it is so but for rounding, which for B is that of both groups; NaN with fewer than two
    units of a label.

    Obuchowski's variance of clusters with influences x of positives and y of negatives is
    a Σx² + b Σy² + 2c Σxy, with factors I/(I − 1) for the clusters that have such rows; which is
    c Σ(x + y)² + (a − c) Σx² + (b − c) Σy². What is common to the factors goes with squares of
    whole clusters: nothing then cancels out.
    """
    for g in range(2):
        for lane in range(SIDE):
            first, second = n_units[0, g, lane], n_units[1, g, lane]
            if state[SLOPE + g, lane] == 0 or min(first, second) < 2:
                continue
            common = total = most = 0.0
            if is_clustered:
                common = n_units[2, g, lane] / (n_units[2, g, lane] - 1)
                total = common * state[_WHOLE + g, lane]
                most = state[_MOST + g, lane]
            for label in range(2):
                row, count = 2 * label + g, n_units[label, g, lane]
                total += state[SQUARES + row, lane] * (count / (count - 1) - common)
                if not is_clustered:
                    most += state[WEIGHTS + row, lane] * state[SHARE + row, lane] ** 2
            if g == 1:
                most *= (
                    max(totals[0] * state[SHARE + 1, lane], totals[1] * state[SHARE + 3, lane]) ** 2
                )
            variance[g, lane] = total if total > _ROUNDING * n_rows * most else 0.0


@kernel
def walk_up(words: Words, steps: Steps, shift: np.uint64, state: Array, levels: Array) -> None:
    """Add up what the positives win; with clusters, keep what group A has passed in each run."""
    unit, weight, total, positive, run, compares, is_half, passed = steps
    for t in range(total.size):
        w0, w1, w2, w3 = _words(words, unit[t], shift)
        x0, x1, x2, x3 = weight[t, 0], weight[t, 1], weight[t, 2], weight[t, 3]
        share, of_both, label = 0.5 if is_half[t] else 1.0, total[t], int(positive[t])
        if compares[t] and len(levels) > 0:
            levels[run[t]] = state[(1 - label) * SIDE : (2 - label) * SIDE]
        if label == 1 and compares[t]:
            level = passed[run[t]]
            for lane in range(SIDE):
                a = _sum(lane, w0, w1, w2, w3, x0, x1, x2, x3)
                below = state[PASSED * SIDE + lane]
                state[WINS * SIDE + lane] += a * below
                state[(WINS + 1) * SIDE + lane] += (of_both - a) * (level - below)
                state[(PASSED + 1) * SIDE + lane] += share * a
        else:
            own = (PASSED + label) * SIDE
            for lane in range(SIDE):
                state[own + lane] += share * _sum(lane, w0, w1, w2, w3, x0, x1, x2, x3)


@kernel
def _walk_again(words: Words, steps: Steps, shift: np.uint64, state: Array) -> None:
    """Add up the squared influences of rows, and the squares of their weights, by label."""
    unit, weight, total, positive, run, compares, is_half, passed = steps
    for t in range(total.size):
        w0, w1, w2, w3 = _words(words, unit[t], shift)
        x0, x1, x2, x3 = weight[t, 0], weight[t, 1], weight[t, 2], weight[t, 3]
        share = 0.5 if is_half[t] else 1.0
        if not compares[t]:
            own = (PASSED + int(positive[t])) * SIDE
            for lane in range(SIDE):
                state[own + lane] += share * _sum(lane, w0, w1, w2, w3, x0, x1, x2, x3)
        elif positive[t]:
            _add_squares(w0, w1, w2, w3, x0, x1, x2, x3, share, passed[run[t]], state, 0, 1)
        else:
            _add_squares(w0, w1, w2, w3, x0, x1, x2, x3, share, passed[run[t]], state, 1, 0)


@inlined
def _add_squares(
    w0: np.uint64,
    w1: np.uint64,
    w2: np.uint64,
    w3: np.uint64,
    x0: float,
    x1: float,
    x2: float,
    x3: float,
    share: float,
    level_of_both: float,
    state: Array,
    other: int,
    label: int,
) -> None:
    """Add the squares of a step's influences, then pass it."""
    y0, y1, y2, y3 = x0 * x0, x1 * x1, x2 * x2, x3 * x3
    of_both = y0 + y1 + y2 + y3
    for lane in range(SIDE):
        a = _sum(lane, w0, w1, w2, w3, x0, x1, x2, x3)
        square = _sum(lane, w0, w1, w2, w3, y0, y1, y2, y3)
        level = state[(PASSED + other) * SIDE + lane]
        of_a = level * state[SLOPE * SIDE + lane] - state[(MEAN + 2 * label) * SIDE + lane]
        of_b = (level_of_both - level) * state[(SLOPE + 1) * SIDE + lane] - state[
            (MEAN + 2 * label + 1) * SIDE + lane
        ]
        state[(SQUARES + 2 * label) * SIDE + lane] += square * (of_a * of_a)
        state[(SQUARES + 2 * label + 1) * SIDE + lane] += (of_both - square) * (of_b * of_b)
        state[(WEIGHTS + 2 * label) * SIDE + lane] += square
        state[(WEIGHTS + 2 * label + 1) * SIDE + lane] += of_both - square
        state[(PASSED + label) * SIDE + lane] += share * a


@kernel
def add_clusters(
    words: Words, clusters: Clusters, passed: Array, levels: Array, shift: np.uint64, state: Array
) -> None:
    """Add up the squared influences of clusters: of negatives, of positives and of all their rows.

    Products with 0 and 1 choose the group: the compiler makes no vectors of so many branches.
    """
    unit, starts, weights, run_of_row, weight_of_row = clusters
    sums = np.empty((_UNROLL, 2 * SIDE))
    for start in range(0, unit.size, _UNROLL):
        stop = min(start + _UNROLL, unit.size)
        sums[:] = 0.0
        for u in range(start, stop):
            word = words[unit[u]] >> shift
            for label in range(2):
                mine = sums[u - start, label * SIDE : (label + 1) * SIDE]
                for i in range(starts[2 * u + label], starts[2 * u + label + 1]):
                    run, weight = run_of_row[i], weight_of_row[i]
                    _add_row(word, weight, levels[run], passed[run], mine)
        for u in range(start, stop):
            word, mine = words[unit[u]] >> shift, sums[u - start]
            n, m = weights[2 * u], weights[2 * u + 1]
            for lane in range(SIDE):
                a = bit_of(word, lane)
                b = 1.0 - a
                slope = _of_group(a, b, SLOPE, lane, state)
                y = n * _of_group(a, b, MEAN, lane, state) - slope * mine[lane]
                x = slope * mine[SIDE + lane] - m * _of_group(a, b, MEAN + 2, lane, state)
                most = n * _of_group(a, b, SHARE, lane, state)
                most += m * _of_group(a, b, SHARE + 2, lane, state)
                _add_to_group(a, b, y * y, SQUARES, lane, state)
                _add_to_group(a, b, x * x, SQUARES + 2, lane, state)
                _add_to_group(a, b, (x + y) * (x + y), _WHOLE, lane, state)
                _add_to_group(a, b, most * most, _MOST, lane, state)


@inlined
def _add_row(
    word: np.uint64, weight: float, level: Array, level_of_both: float, sums: Array
) -> None:
    """Add a row's weight times what its group has passed."""
    for lane in range(SIDE):
        a = level[lane]
        b = level_of_both - a
        sums[lane] += weight * choose(word, lane, a, b)


@kernel
def _of_group(a: float, b: float, row: int, lane: int, state: Array) -> float:
    chosen: float = a * state[row * SIDE + lane] + b * state[(row + 1) * SIDE + lane]
    return chosen


@kernel
def _add_to_group(a: float, b: float, term: float, row: int, lane: int, state: Array) -> None:
    state[row * SIDE + lane] += a * term
    state[(row + 1) * SIDE + lane] += b * term


@kernel
def _words(
    words: Words, unit: Integers, shift: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    return (
        words[unit[0]] >> shift,
        words[unit[1]] >> shift,
        words[unit[2]] >> shift,
        words[unit[3]] >> shift,
    )


@kernel
def _sum(
    lane: int,
    w0: np.uint64,
    w1: np.uint64,
    w2: np.uint64,
    w3: np.uint64,
    x0: float,
    x1: float,
    x2: float,
    x3: float,
) -> float:
    """Return the sum of the numbers whose words have this lane's bit."""
    return (
        choose(w0, lane, x0, 0.0)
        + choose(w1, lane, x1, 0.0)
        + choose(w2, lane, x2, 0.0)
        + choose(w3, lane, x3, 0.0)
    )
