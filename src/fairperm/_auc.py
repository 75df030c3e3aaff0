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
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._kernel import LANES, kernel
from fairperm._order import order_by
from fairperm._radix import radix_argsort

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AucLayout:
    """Units in the order in which their words lie, and the walk up their scores.

    Attributes
    ----------
    order
        The unit that each word is about: by stratum, negatives before positives, by score.
    sizes
        Units in each block of exchangeable units: strata, or the labels of each stratum.
    positives, negatives
        Units of each label in each run.
    first_run
        Where each stratum's runs start, and the number of runs.
    """

    order: NDArray[np.intp]
    sizes: NDArray[np.int64]
    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]
    first_run: NDArray[np.int64]

    @classmethod
    def build(
        cls,
        scores: NDArray[np.float64],
        positive: NDArray[np.bool_],
        stratum: NDArray[np.integer[Any]] | None = None,
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
            stratum = np.zeros(scores.size, np.uint8)
        walk = order_by([stratum, scores, ~positive], radix_argsort)
        label, stratum = positive[walk], stratum[walk]
        runs = _runs(scores[walk], label, stratum)
        ends = np.append(runs, walk.size)
        below = np.append(0, np.cumsum(label))[ends]
        if n_strata > 1:
            block = 2 * stratum.astype(np.int64) + label
            order = walk[np.argsort(block, kind="stable")]
            by_label = np.bincount(block, minlength=2 * n_strata)
        else:
            order = np.concatenate([walk.compress(~label), walk.compress(label)])
            by_label = np.array([label.size - below[-1], below[-1]])
        return cls(
            order=order,
            sizes=by_label if within_label else by_label[0::2] + by_label[1::2],
            positives=np.diff(below),
            negatives=np.diff(ends - below),
            first_run=np.searchsorted(stratum[runs], np.arange(n_strata + 1)),
        )

    def wanted(self, in_a: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return how many units of each block are in group A."""
        block = np.repeat(np.arange(self.sizes.size), self.sizes)
        return np.bincount(block[in_a[self.order]], minlength=self.sizes.size)

    def centres(self, share: float) -> NDArray[np.float64]:
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
        rounded: NDArray[np.float64] = np.rint(centres)
        return rounded


def _over_runs(values: NDArray[Any], first_run: NDArray[np.int64]) -> NDArray[Any]:
    """Return the sum over each stratum's runs, of which there may be none."""
    return np.diff(np.append(0, np.cumsum(values))[first_run])


def _runs(
    scores: NDArray[np.float64], positive: NDArray[np.bool_], stratum: NDArray[np.integer[Any]]
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
    words: NDArray[np.uint64], layout: AucLayout, centres: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
    if words.shape != layout.order.shape:
        raise ValueError(f"words must hold {layout.order.size} words. Got {words.size} instead.")
    shape = (layout.first_run.size - 1, 2, LANES)
    value, variance = np.empty(shape), np.empty(shape)
    _walk_strata(
        words,
        layout.positives,
        layout.negatives,
        layout.first_run,
        centres,
        value,
        variance,
    )
    return np.moveaxis(value, -1, 0), np.moveaxis(variance, -1, 0)


@kernel
def _walk_strata(
    words: NDArray[np.uint64],
    positives: NDArray[np.int64],
    negatives: NDArray[np.int64],
    first_run: NDArray[np.int64],
    all_centres: NDArray[np.float64],
    value: NDArray[np.float64],
    variance: NDArray[np.float64],
) -> None:
    passed = np.empty((2, LANES))  # of group A: negatives and positives passed, from their centres
    sums = np.empty((8, LANES))
    start = 0
    for s in range(first_run.size - 1):
        runs = slice(first_run[s], first_run[s + 1])
        m, n = positives[runs].sum(), negatives[runs].sum()
        of_negatives, of_positives = words[start : start + n], words[start + n : start + n + m]
        start += m + n
        centres = all_centres[s]
        passed[0] = -centres[0, 0]
        passed[1] = -centres[1, 0]
        sums[:] = 0.0
        _walk(of_negatives, of_positives, positives[runs], negatives[runs], centres, passed, sums)
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
def _walk(
    of_negatives: NDArray[np.uint64],
    of_positives: NDArray[np.uint64],
    positives: NDArray[np.int64],
    negatives: NDArray[np.int64],
    centres: NDArray[np.float64],
    passed: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    k, j = np.empty(LANES), np.empty(LANES)  # positives and negatives of A in the run
    i = h = 0
    # What A and B have passed together, from both centres.
    both_negatives, both_positives = -centres[0].sum(), -centres[1].sum()
    for r in range(positives.size):
        n_positives, n_negatives = positives[r], negatives[r]
        tied = n_positives > 0 and n_negatives > 0
        share = 0.5 if tied else 1.0  # half of a tied run is passed before, half after
        if n_positives:
            _count(of_positives[i : i + n_positives], k)
            i += n_positives
        if n_negatives:
            _count(of_negatives[h : h + n_negatives], j)
            h += n_negatives
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
def _count(words: NDArray[np.uint64], count: NDArray[np.float64]) -> None:
    """Count the units in A by lane."""
    word = words[0]
    for lane in range(LANES):
        count[lane] = np.float64((word >> np.uint64(lane)) & np.uint64(1))
    for word in words[1:]:
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
