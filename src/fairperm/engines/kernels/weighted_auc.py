"""AUC of weighted or clustered rows, with a variance that is right for them.

With weights w, the AUC is the weighted share of pairs in which the positive has the higher score.
A row's influence on it is w·(c − AUC)/W, where c is its structural component (the weighted share
of rows of the other label that it beats) and W the weight of its own label. The variance is the
sum of squared influences, added up over each cluster first: Obuchowski's (1997), and DeLong's where
every cluster is one row. Weighting DeLong's sums of squares by w, not w², would understate it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.kernels.kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_ROUNDING = (8 * 2.0**-52) ** 2  # of a variance, for each row: sums of so many are rounded so


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
    words: NDArray[np.uint64], rows: WeightedRows, lanes: int
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
    # of each unit, by label: its influence, the most that it could be, and how many rows it has
    sums = np.zeros((n_units if clustered else 0, 2, 3))
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
                    total, auc, clustered, sums,
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
    sums: Array,
) -> float:
    """Return the sum of squared influences of the units of one group.

    Zero if it is so but for rounding; NaN with fewer than two units of a label.
    """
    squares, count = np.zeros(2), np.zeros(2)
    most, n = 0.0, 0
    if clustered:
        for i in range(ties[0], ties[-1]):
            sums[unit[i]] = 0.0
    for i in range(ties[0], ties[-1]):
        if ((words[unit[i]] >> np.uint64(lane)) & np.uint64(1)) != np.uint64(1 - g):
            continue
        own = int(positive[i])
        share = component[i] / total[1 - own]
        beaten = share if own == 1 else 1 - share
        largest = weight[i] / total[own]
        one = largest * (beaten - auc)
        n += 1
        if clustered:
            sums[unit[i], own, 0] += one
            sums[unit[i], own, 1] += largest
            sums[unit[i], own, 2] += 1
        else:
            squares[own] += one * one
            count[own] += 1
            most += largest * largest
    whole, n_units = 0.0, 0.0
    if clustered:
        whole, n_units, most = _over_clusters(ties, unit, sums, squares, count)
    if count.min() < 2:  # one unit has no variance, whatever rounding leaves of its influence
        return np.nan
    # what is common to the factors goes with squares of whole clusters: nothing then cancels out
    common = n_units / (n_units - 1) if clustered else 0.0
    variance: float = common * whole + (squares * (count / (count - 1) - common)).sum()
    return variance if variance > _ROUNDING * n * most else 0.0


@kernel
def _over_clusters(
    ties: NDArray[np.int64],
    unit: NDArray[np.int64],
    sums: Array,
    squares: Array,
    count: Array,
) -> tuple[float, float, float]:
    """Add up squares by label; return those of whole clusters, how many, and the most there can be.

    Obuchowski's variance of clusters with influences x of positives and y of negatives is
    a Σx² + b Σy² + 2c Σxy, with factors I/(I − 1) for the clusters that have such rows; which is
    c Σ(x + y)² + (a − c) Σx² + (b − c) Σy².
    """
    whole, n_units, most = 0.0, 0.0, 0.0
    for i in range(ties[0], ties[-1]):
        of_unit = sums[unit[i]]
        if of_unit[0, 2] + of_unit[1, 2] == 0:  # of the other group, or added already
            continue
        for label in range(2):
            squares[label] += of_unit[label, 0] * of_unit[label, 0]
            count[label] += 1 if of_unit[label, 2] > 0 else 0
        whole += (of_unit[0, 0] + of_unit[1, 0]) ** 2
        n_units += 1
        most += (of_unit[0, 1] + of_unit[1, 1]) ** 2
        of_unit[:, 2] = 0
    return whole, n_units, most
