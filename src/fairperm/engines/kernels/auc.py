"""AUC and its DeLong variance in both groups, for 64 permutations at a time.

The units are sorted by score once. From then on only numbers of units count: walking up the
scores, a positive wins against every negative of its own group passed so far. Positives that
follow one another with no negative between them have won equally often, so the walk goes by
*runs* of one label; units of both labels with the same score make one run, in which every pair
counts one half.

For group A with m positives and n negatives let w(i) be what positive i wins, and v(j) the
positives below negative j, ties counting one half in both. Then (DeLong, DeLong and
Clarke-Pearson 1988)

    AUC = sum of w / (m n),   V = var(w) / (n² m) + var(v) / (m² n),

with sample variances (divisors m - 1 and n - 1), which is what R's pROC computes. Sums of w, w²,
v and v² over the runs are all that is needed, and group B's follow from totals in the same walk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Booleans, Codes, Integers, Places, Words
from fairperm._utils.sorting import order_by
from fairperm.engines.kernels.kernel import LANES, bit_of, inlined, kernel

# What the walk keeps of every lane, as rows of one flat array: the compiler then sees that they
# do not overlap. Of group A the negatives and positives passed, from their centres; sums and sums
# of squares of w and of v, for A and for B.
_NEGATIVES, _POSITIVES, _WINS, _BELOW, _ROWS = 0, 1, 2, 6, 10
_FEW = 3  # units of a run that are counted while their moments are added


class AucLayout(NamedTuple):
    """Units in the order in which their words lie, and the walk up their scores."""

    # the unit that each word is about: by stratum, negatives before positives, by score
    order: NDArray[np.uint32]
    # units in each block of exchangeable units: strata, or the labels of each stratum
    sizes: Integers
    # units of each label in each run
    positives: NDArray[np.uint32]
    negatives: NDArray[np.uint32]
    first_run: Integers  # where each stratum's runs start, and the number of runs

    @classmethod
    def build(
        cls,
        scores: Array,
        positive: Booleans,
        stratum: Codes,
        n_strata: int,
        *,
        within_label: bool = False,
    ) -> AucLayout:
        """Sort the units."""
        # ``within_label``: labels of groups are exchanged among positives and negatives separately
        by_label = _by_label(positive, stratum, n_strata)
        walk = order_by([stratum, scores])
        scores, positive = np.ascontiguousarray(scores)[walk], positive[walk]
        order = np.empty(scores.size, np.uint32)  # half the memory of an index, for millions
        positives, negatives = np.zeros((2, scores.size), np.uint32)
        first_run = np.empty(n_strata + 1, np.int64)
        _lay_out(walk, scores, positive, by_label, order, positives, negatives, first_run)
        return cls(
            order=order,
            sizes=by_label.ravel() if within_label else by_label.sum(axis=1),
            positives=positives[: first_run[-1]],
            negatives=negatives[: first_run[-1]],
            first_run=first_run,
        )

    def labels(self) -> tuple[NDArray[np.uint8], Integers]:
        """Return the units' labels by stratum and score, and the runs in which both tie."""
        # in such a run negatives come before positives: it has a start, a middle and a stop
        runs = np.stack([self.negatives, self.positives], axis=1)
        labels = np.repeat(np.tile(np.array([0, 1], np.uint8), len(runs)), runs.ravel())
        stops = np.cumsum(runs, dtype=np.int64).reshape(runs.shape)  # of negatives, of positives
        starts = stops[:, :1] - runs[:, :1]
        return labels, np.concatenate([starts, stops], axis=1)[runs.all(axis=1)]

    def centres(self, share: float) -> Array:
        """Return by stratum whole numbers near the mean of w and of v, in groups A and B.

        ``share`` is about how many of the units are in A. Any numbers would do. Those near the
        mean keep the squares small and so exact for longer, which the variance of a nearly
        perfect score needs most.
        """
        wins = self.positives * (np.cumsum(self.negatives) - self.negatives / 2)
        m, n = (
            _over_runs(self.positives, self.first_run),
            _over_runs(self.negatives, self.first_run),
        )
        total = _over_runs(wins, self.first_run) - m * (np.cumsum(n) - n)  # not of earlier strata
        auc = total / np.maximum(m * n, 1)
        shares = np.array([share, 1 - share])
        centres = np.stack([np.outer(auc * n, shares), np.outer((1 - auc) * m, shares)], axis=1)
        rounded: Array = np.rint(centres)
        return rounded


def _over_runs(values: NDArray[Any], first_run: Integers) -> Array:
    """Return the sum over each stratum's runs, of which there may be none."""
    return np.diff(np.append(0.0, np.cumsum(values, dtype=np.float64))[first_run])


def _by_label(positive: Booleans, stratum: Codes, n_strata: int) -> Integers:
    """Return the number of negatives and positives in each stratum."""
    if n_strata == 1:
        m = np.count_nonzero(positive)
        return np.array([[positive.size - m, m]])
    counts = (np.bincount(stratum[chosen], minlength=n_strata) for chosen in (~positive, positive))
    return np.stack(list(counts), axis=1)


@kernel
def _lay_out(
    walk: Places,
    scores: Array,
    positive: Booleans,
    by_label: Integers,
    order: NDArray[np.uint32],
    positives: NDArray[np.uint32],
    negatives: NDArray[np.uint32],
    first_run: Integers,
) -> None:
    """Take the units, sorted by stratum and score, apart by label, and count them by run."""
    # labels are as good as random: what depends on them is computed rather than branched on
    i = runs = 0
    for s in range(len(by_label)):
        first_run[s] = runs
        place, apart = i, by_label[s, 0]  # of the next negative; from there to the next positive
        stop = i + by_label[s, 0] + by_label[s, 1]
        only_positives = only_negatives = False  # in the last run
        while i < stop:
            score, m, n = scores[i], 0, 0
            while i < stop and scores[i] == score:
                label = int(positive[i])
                order[place + label * apart] = walk[i]
                place += 1 - label
                apart += 2 * label - 1
                m += label
                n += 1 - label
                i += 1
            runs += 1 - int((only_positives & (n == 0)) | (only_negatives & (m == 0)))
            positives[runs - 1] += m
            negatives[runs - 1] += n
            only_positives, only_negatives = n == 0, m == 0
    first_run[-1] = runs


def auc_by_lane(words: Words, layout: AucLayout, centres: Array) -> tuple[Array, Array]:
    """Return AUC and DeLong variance by permutation, stratum and group (A, then B).

    A group with no positive or no negative has neither (NaN). With one positive or one negative
    the AUC is defined but a sample variance of one number is not: the variance is NaN.

    Sums are counted from ``centres``, which :meth:`AucLayout.centres` knows.

    Notes
    -----
    Sums are of whole and half numbers, counted from a centre near their mean, in float64. They
    are exact while sums of squares stay below 2**51, which is so up to about 400,000 units in a
    stratum, whatever the data. Beyond that additions round: with 3 million units the variance
    was within 3e-12 of itself. The AUC comes from exact sums up to 10**8 units, so that equal
    tables give equal values to the last bit. The variance of a perfect separation is zero.
    """
    shape = (layout.first_run.size - 1, 2, LANES)
    value, variance = np.empty(shape), np.empty(shape)
    _walk_strata(words, layout, centres, value, variance)
    return np.moveaxis(value, -1, 0), np.moveaxis(variance, -1, 0)


@kernel
def _walk_strata(
    words: Words, layout: AucLayout, all_centres: Array, value: Array, variance: Array
) -> None:
    positives, negatives, first_run = layout.positives, layout.negatives, layout.first_run
    flat = np.empty(_ROWS * LANES)
    state = flat.reshape(_ROWS, LANES)
    start = 0
    for s in range(first_run.size - 1):
        runs = slice(first_run[s], first_run[s + 1])
        m = n = 0
        for r in range(first_run[s], first_run[s + 1]):
            m += positives[r]
            n += negatives[r]
        of_negatives, of_positives = words[start : start + n], words[start + n : start + n + m]
        start += m + n
        centres = all_centres[s]
        state[:] = 0.0
        state[_NEGATIVES] = -centres[0, 0]
        state[_POSITIVES] = -centres[1, 0]
        _walk(of_negatives, of_positives, positives[runs], negatives[runs], centres, flat)
        for lane in range(LANES):
            n_a, m_a = (
                state[_NEGATIVES, lane] + centres[0, 0],
                state[_POSITIVES, lane] + centres[1, 0],
            )
            for g in range(2):
                m_g, n_g = (m_a, n_a) if g == 0 else (m - m_a, n - n_a)
                wins, wins2 = state[_WINS + 2 * g, lane], state[_WINS + 2 * g + 1, lane]
                below, below2 = state[_BELOW + 2 * g, lane], state[_BELOW + 2 * g + 1, lane]
                value[s, g, lane] = (wins + m_g * centres[0, g]) / (m_g * n_g)
                variance[s, g, lane] = _sample_variance(wins, wins2, m_g) / (
                    n_g * n_g * m_g
                ) + _sample_variance(below, below2, n_g) / (m_g * m_g * n_g)


@inlined
def _sample_variance(total: float, squares: float, count: float) -> float:
    """Return the sample variance, with total and squares counted from near the mean."""
    deviations = squares - total * (total / count)
    if deviations < 0:  # by rounding
        deviations = 0.0
    return deviations / (count - 1)


@inlined
def _walk(
    of_negatives: Words,
    of_positives: Words,
    positives: NDArray[np.uint32],
    negatives: NDArray[np.uint32],
    centres: Array,
    state: Array,
) -> None:
    k, j = np.empty(LANES), np.empty(LANES)  # positives and negatives of A in a run
    i = h = 0
    # What A and B have passed together, from both centres.
    both_negatives = -(centres[0, 0] + centres[0, 1])
    both_positives = -(centres[1, 0] + centres[1, 1])
    for r in range(positives.size):
        m, n = positives[r], negatives[r]
        tied = m > 0 and n > 0
        share = 0.5 if tied else 1.0  # half of a tied run is passed before, half after
        if tied:
            _count(of_negatives[h : h + n], j)
            _advance(state, _NEGATIVES, j, share)
            both_negatives += share * n
        if m > 0:
            run = of_positives[i : i + m]
            _add_run(run, k, share, both_negatives, state, _NEGATIVES, _POSITIVES, _WINS)
            both_positives += share * m
        if n > 0:
            run = of_negatives[h : h + n]
            _add_run(run, j, share, both_positives, state, _POSITIVES, _NEGATIVES, _BELOW)
            both_negatives += share * n
        if tied:
            _advance(state, _POSITIVES, k, share)
            both_positives += share * m
        i += m
        h += n


@inlined
def _add_run(
    words: Words,
    count: Array,
    share: float,
    level_of_both: float,
    state: Array,
    level: int,
    own: int,
    sums: int,
) -> None:
    """Add the moments of a run of one label, then pass it; most runs are of few units."""
    # only the units of a longer or tied run are left in ``count``
    size, none = words.size, np.uint64(0)
    if size <= _FEW and share == 1.0:
        first = words[0]
        second = words[1] if size > 1 else none
        third = words[2] if size > 2 else none
        for lane in range(LANES):
            in_a = bit_of(first, lane) + bit_of(second, lane) + bit_of(third, lane)
            _add_moments(lane, in_a, size, 1.0, level_of_both, state, level, own, sums)
    else:
        _count(words, count)
        for lane in range(LANES):
            _add_moments(lane, count[lane], size, share, level_of_both, state, level, own, sums)


@kernel
def _add_moments(
    lane: int,
    in_a: float,
    of_both: int,
    share: float,
    level_of_both: float,
    state: Array,
    level: int,
    own: int,
    sums: int,
) -> None:
    """Add first and second moments of the level, once for each unit, for A and for B."""
    a = state[level * LANES + lane]
    b = level_of_both - a
    moment_a, moment_b = in_a * a, (of_both - in_a) * b
    state[sums * LANES + lane] += moment_a
    state[(sums + 1) * LANES + lane] += moment_a * a
    state[(sums + 2) * LANES + lane] += moment_b
    state[(sums + 3) * LANES + lane] += moment_b * b
    state[own * LANES + lane] += share * in_a


@kernel
def _count(words: Words, count: Array) -> None:
    """Count the units in A by lane."""
    count[:] = 0.0
    for word in words:
        for lane in range(LANES):
            count[lane] += bit_of(word, lane)


@inlined
def _advance(state: Array, passed: int, count: Array, share: float) -> None:
    for lane in range(LANES):
        state[passed * LANES + lane] += share * count[lane]
