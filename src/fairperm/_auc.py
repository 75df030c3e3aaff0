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

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._kernel import LANES, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AucLayout:
    """Units in the order in which their words lie, and the walk up their scores.

    Attributes
    ----------
    order
        The unit that each word is about. Words lie by block, inside a block by score.
    sizes
        Units in each block of exchangeable units: strata, or strata and labels (the negatives of
        a stratum, then its positives).
    position
        For every step of the walk (by stratum, score, and positives first) where the word is.
    positives, negatives
        Units of each label in each run.
    first_run
        Where each stratum's runs start, and the number of runs.
    """

    order: NDArray[np.int64]
    sizes: NDArray[np.int64]
    position: NDArray[np.int64]
    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]
    first_run: NDArray[np.int64]

    @classmethod
    def build(
        cls,
        scores: NDArray[np.float64],
        positive: NDArray[np.bool_],
        stratum: NDArray[np.int64] | None = None,
        n_strata: int = 1,
        *,
        within_label: bool = False,
    ) -> AucLayout:
        """Sort the units.

        Parameters
        ----------
        scores, positive
            Score and label of every unit.
        stratum, n_strata
            Stratum of every unit, from 0 to ``n_strata - 1``. Default: one stratum.
        within_label
            Whether labels of groups are exchanged among positives and negatives separately.
        """
        if stratum is None:
            walk = np.lexsort((~positive, scores))
            stratum = np.zeros(scores.size, np.int64)
        else:
            walk = np.lexsort((~positive, scores, stratum))
        block = 2 * stratum + positive if within_label else stratum
        n_blocks = 2 * n_strata if within_label else n_strata
        place = np.argsort(block[walk], kind="stable")
        position = np.empty_like(place)
        position[place] = np.arange(place.size)
        runs = _runs(scores[walk], positive[walk], stratum[walk])
        ends = np.append(runs, walk.size)
        below = np.append(0, np.cumsum(positive[walk]))[ends]
        return cls(
            order=walk[place],
            sizes=np.bincount(block, minlength=n_blocks),
            position=position,
            positives=np.diff(below),
            negatives=np.diff(ends - below),
            first_run=np.searchsorted(stratum[walk][runs], np.arange(n_strata + 1)),
        )

    def wanted(self, in_a: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return how many units of each block are in group A."""
        block = np.repeat(np.arange(self.sizes.size), self.sizes)
        return np.bincount(block[in_a[self.order]], minlength=self.sizes.size)


def _runs(
    scores: NDArray[np.float64], positive: NDArray[np.bool_], stratum: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return where the runs start, the units being sorted by stratum, score and positives first."""
    if scores.size == 0:
        return np.empty(0, np.int64)
    new_stratum = np.append(True, stratum[1:] != stratum[:-1])
    new_score = np.append(True, scores[1:] != scores[:-1])
    starts: NDArray[np.int64] = np.flatnonzero(new_stratum | new_score)
    first, last = positive[starts], positive[np.append(starts[1:], scores.size) - 1]  # of ties
    mixed = first != last
    new_run: NDArray[np.bool_] = new_stratum[starts]
    new_run[1:] |= mixed[1:] | mixed[:-1] | (first[1:] != last[:-1])
    return starts[new_run]


def auc_by_lane(
    words: NDArray[np.uint64], layout: AucLayout
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return AUC and DeLong variance by permutation, stratum and group (A, then B).

    A group with no positive or no negative has neither (NaN). With one positive or one negative
    the AUC is defined but a sample variance of one number is not: the variance is NaN.

    Notes
    -----
    Sums are of whole and half numbers, counted from a centre near their mean, in float64. They
    are exact while sums of squares stay below 2**51, which is so up to about 400,000 units in a
    stratum, whatever the data. Beyond that additions round: with 3 million units the variance
    was within 3e-12 of itself. The AUC comes from exact sums up to 10**8 units, so that equal
    tables give equal values to the last bit. The variance of a perfect separation is zero.
    """
    if words.shape != layout.order.shape:
        raise ValueError(f"words must hold {layout.order.size} words. Got {words.size} instead.")
    shape = (layout.first_run.size - 1, 2, LANES)
    value, variance = np.empty(shape), np.empty(shape)
    _walk_strata(
        words,
        layout.position,
        layout.positives,
        layout.negatives,
        layout.first_run,
        value,
        variance,
    )
    return np.moveaxis(value, -1, 0), np.moveaxis(variance, -1, 0)


@kernel
def _walk_strata(
    words: NDArray[np.uint64],
    position: NDArray[np.int64],
    positives: NDArray[np.int64],
    negatives: NDArray[np.int64],
    first_run: NDArray[np.int64],
    value: NDArray[np.float64],
    variance: NDArray[np.float64],
) -> None:
    passed = np.empty((2, LANES))  # of group A: negatives and positives passed, from their centres
    sums = np.empty((8, LANES))
    start = 0
    for s in range(first_run.size - 1):
        runs = slice(first_run[s], first_run[s + 1])
        m, n = positives[runs].sum(), negatives[runs].sum()
        steps = position[start : start + m + n]
        start += m + n
        centres = _centres(words, steps, positives[runs], negatives[runs])
        passed[0] = -centres[0, 0]
        passed[1] = -centres[1, 0]
        sums[:] = 0.0
        _walk(words, steps, positives[runs], negatives[runs], centres, passed, sums)
        for lane in range(LANES):
            m_a, n_a = passed[1, lane] + centres[1, 0], passed[0, lane] + centres[0, 0]
            for g in range(2):
                m_g, n_g = (m_a, n_a) if g == 0 else (m - m_a, n - n_a)
                wins, wins2 = sums[2 * g, lane], sums[2 * g + 1, lane]
                below, below2 = sums[4 + 2 * g, lane], sums[5 + 2 * g, lane]
                value[s, g, lane] = (wins + m_g * centres[0, g]) / (m_g * n_g)
                variance[s, g, lane] = _sample_variance(wins, wins2, m_g) / (
                    n_g * n_g * m_g
                ) + _sample_variance(below, below2, n_g) / (m_g * m_g * n_g)


@kernel
def _sample_variance(total: float, squares: float, count: float) -> float:
    """Return the sample variance, with total and squares counted from near the mean."""
    deviations = squares - total * (total / count)
    if deviations < 0:  # by rounding
        deviations = 0.0
    return deviations / (count - 1)


@kernel
def _centres(
    words: NDArray[np.uint64],
    steps: NDArray[np.int64],
    positives: NDArray[np.int64],
    negatives: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return whole numbers near the mean of w (first row) and of v, in groups A and B.

    Any number would do. One near the mean keeps the squares small and so exact for longer, which
    the variance of a nearly perfect score needs most. Lane 0 stands for all: the others have
    about as many units in A.
    """
    wins, m, n, i = 0.0, 0, 0, 0
    m_a, n_a = np.int64(0), np.int64(0)
    for r in range(positives.size):
        wins += positives[r] * (n + negatives[r] / 2)
        m += positives[r]
        n += negatives[r]
        for _ in range(positives[r]):
            m_a += np.int64(words[steps[i]] & np.uint64(1))
            i += 1
        for _ in range(negatives[r]):
            n_a += np.int64(words[steps[i]] & np.uint64(1))
            i += 1
    auc = wins / (max(m, 1) * max(n, 1))
    centres = np.empty((2, 2))
    centres[0, 0], centres[0, 1] = np.rint(auc * n_a), np.rint(auc * (n - n_a))
    centres[1, 0], centres[1, 1] = np.rint((1 - auc) * m_a), np.rint((1 - auc) * (m - m_a))
    return centres


@kernel
def _walk(
    words: NDArray[np.uint64],
    steps: NDArray[np.int64],
    positives: NDArray[np.int64],
    negatives: NDArray[np.int64],
    centres: NDArray[np.float64],
    passed: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    k, j = np.empty(LANES), np.empty(LANES)  # positives and negatives of A in the run
    i = 0
    # What A and B have passed together, from both centres.
    both_negatives, both_positives = -centres[0].sum(), -centres[1].sum()
    for r in range(positives.size):
        n_positives, n_negatives = positives[r], negatives[r]
        tied = n_positives > 0 and n_negatives > 0
        share = 0.5 if tied else 1.0  # half of a tied run is passed before, half after
        if n_positives:
            _count(words, steps[i : i + n_positives], k)
            i += n_positives
        if n_negatives:
            _count(words, steps[i : i + n_negatives], j)
            i += n_negatives
        if tied:
            _advance(passed[0], j, share)
            _advance(passed[1], k, share)
            both_negatives += share * n_negatives
            both_positives += share * n_positives
        if n_positives:
            _add_moments(k, n_positives, passed[0], both_negatives, sums[:4])
        if n_negatives:
            _add_moments(j, n_negatives, passed[1], both_positives, sums[4:])
            _advance(passed[0], j, share)
            both_negatives += share * n_negatives
        if n_positives:
            _advance(passed[1], k, share)
            both_positives += share * n_positives


@kernel
def _count(words: NDArray[np.uint64], steps: NDArray[np.int64], count: NDArray[np.float64]) -> None:
    """Count the units in A by lane."""
    count[:] = 0.0
    for i in range(steps.size):
        word = words[steps[i]]
        for lane in range(LANES):
            count[lane] += np.float64((word >> np.uint64(lane)) & np.uint64(1))


@kernel
def _advance(passed: NDArray[np.float64], count: NDArray[np.float64], share: float) -> None:
    for lane in range(LANES):
        passed[lane] += share * count[lane]


@kernel
def _add_moments(
    count: NDArray[np.float64],
    of_both: int,
    level: NDArray[np.float64],
    level_of_both: float,
    sums: NDArray[np.float64],
) -> None:
    """Add first and second moments of the level, once for each unit counted, for A and for B."""
    for lane in range(LANES):
        a, b = level[lane], level_of_both - level[lane]
        moment_a, moment_b = count[lane] * a, (of_both - count[lane]) * b
        sums[0, lane] += moment_a
        sums[1, lane] += moment_a * a
        sums[2, lane] += moment_b
        sums[3, lane] += moment_b * b
