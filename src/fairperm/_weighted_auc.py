"""AUC of weighted or clustered rows, with a variance that is right for them.

With weights w, the AUC is the weighted share of pairs in which the positive has the higher score.
A row's influence on it is w·(c − AUC)/W, where c is its structural component (the weighted share
of rows of the other label that it beats) and W the weight of its own label. The variance is the
sum of squared influences, added up over each cluster first (Obuchowski 1997). Weighting DeLong's
sums of squares by w instead of w² would understate it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._kernel import LANES, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Rows by stratum and ascending score; rows of one tie stand together.

    Attributes
    ----------
    unit
        The cluster of each row: whose word says in which group the row is.
    positive, weight
        Of each row.
    tie_starts
        Where runs of equal scores start in each stratum, and the number of rows.
    first_tie
        The first run of each stratum, and the number of runs.
    clustered
        Whether units have several rows. If not, the variance of unit weights is DeLong's.
    """

    unit: NDArray[np.int64]
    positive: NDArray[np.bool_]
    weight: Array
    tie_starts: NDArray[np.int64]
    first_tie: NDArray[np.int64]
    n_units: int
    clustered: bool


def weighted_auc_by_lane(
    words: NDArray[np.uint64], rows: WeightedRows, lanes: int = LANES
) -> tuple[Array, Array]:
    """Return AUC and variance by permutation, stratum and group, as ``auc_by_lane`` does."""
    shape = (lanes, len(rows.first_tie) - 1, 2)
    value, variance = np.full(shape, np.nan), np.full(shape, np.nan)
    _fill(
        words,
        rows.unit,
        rows.positive,
        rows.weight,
        rows.tie_starts,
        rows.first_tie,
        rows.n_units,
        rows.clustered,
        value,
        variance,
    )
    return value, variance


@kernel
def _fill(
    words: NDArray[np.uint64],
    unit: NDArray[np.int64],
    positive: NDArray[np.bool_],
    weight: Array,
    tie_starts: NDArray[np.int64],
    first_tie: NDArray[np.int64],
    n_units: int,
    clustered: bool,
    value: Array,
    variance: Array,
) -> None:
    influence = np.zeros(n_units)
    component = np.zeros(len(unit))
    for lane in range(value.shape[0]):
        for s in range(len(first_tie) - 1):
            ties = tie_starts[first_tie[s] : first_tie[s + 1] + 1]
            for g in range(2):
                wins, total = _components(words, lane, g, unit, positive, weight, ties, component)
                if total[0] == 0 or total[1] == 0:
                    continue
                auc = wins / (total[0] * total[1])
                value[lane, s, g] = auc
                variance[lane, s, g] = _variance(
                    words, lane, g, unit, positive, weight, ties, component,
                    total, auc, clustered, influence,
                )  # fmt: skip


@kernel
def _components(
    words: NDArray[np.uint64],
    lane: int,
    g: int,
    unit: NDArray[np.int64],
    positive: NDArray[np.bool_],
    weight: Array,
    ties: NDArray[np.int64],
    component: Array,
) -> tuple[float, Array]:
    """Fill in the weight of other-label rows that each row beats; return wins and totals."""
    passed = np.zeros(2)  # weight of negatives and of positives below, in this group
    wins = 0.0
    for t in range(len(ties) - 1):
        tied = np.zeros(2)
        for i in range(ties[t], ties[t + 1]):
            if ((words[unit[i]] >> np.uint64(lane)) & np.uint64(1)) == np.uint64(1 - g):
                tied[int(positive[i])] += weight[i]
        for i in range(ties[t], ties[t + 1]):
            other = 0 if positive[i] else 1
            component[i] = passed[other] + 0.5 * tied[other]
        wins += tied[1] * (passed[0] + 0.5 * tied[0])
        passed += tied
    return wins, passed


@kernel
def _variance(
    words: NDArray[np.uint64],
    lane: int,
    g: int,
    unit: NDArray[np.int64],
    positive: NDArray[np.bool_],
    weight: Array,
    ties: NDArray[np.int64],
    component: Array,
    total: Array,
    auc: float,
    clustered: bool,
    influence: Array,
) -> float:
    """Return the sum of squared influences of the units of one group."""
    squares = np.zeros(2)
    count = np.zeros(2)
    start, stop = ties[0], ties[-1]
    if clustered:
        for i in range(start, stop):
            influence[unit[i]] = 0.0
    for i in range(start, stop):
        if ((words[unit[i]] >> np.uint64(lane)) & np.uint64(1)) != np.uint64(1 - g):
            continue
        own = int(positive[i])
        share = component[i] / total[1 - own]
        beaten = share if own == 1 else 1 - share
        one = weight[i] * (beaten - auc) / total[own]
        squares[own] += one * one
        count[own] += 1
        influence[unit[i]] += one
    if not clustered:
        if count.min() < 2:  # one row has no variance, whatever rounding leaves of its influence
            return np.nan
        delong: float = (squares * count / (count - 1)).sum()
        return delong
    sum_of_squares, n = 0.0, 0.0
    for i in range(start, stop):
        u = unit[i]
        if ((words[u] >> np.uint64(lane)) & np.uint64(1)) == np.uint64(1 - g) and not np.isnan(
            influence[u]
        ):
            sum_of_squares += influence[u] * influence[u]
            n += 1
            influence[u] = np.nan  # counted; reset before the next group
    return sum_of_squares * n / (n - 1) if n > 1 else np.nan
