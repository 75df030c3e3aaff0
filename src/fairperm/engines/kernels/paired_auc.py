"""Change of the AUC between two scores of the same rows, with DeLong's paired variance.

A row's influence on the change is that on the new AUC minus that on the old one, and the variance
is the sum of their squares, added up over each cluster first. Where both scores order the rows
alike, the influences cancel exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.kernels.kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.engines.kernels.sorted_rows import SortedRows

    Array = NDArray[np.float64]


_ROUNDING = (8 * 2.0**-52) ** 2  # of a variance, for each row: sums of so many are rounded so


@dataclass(frozen=True, slots=True)
class PairedRows:
    """The same rows sorted by either score; ``place`` has the rows of ``new`` among the ``old``."""

    old: SortedRows
    new: SortedRows
    place: NDArray[np.int64]

    def reweighted(self, by_unit: Array) -> PairedRows:
        """Return the rows with weights multiplied by a number of their unit."""
        old, new = (
            replace(one, weight=one.weight * by_unit[one.unit]) for one in (self.old, self.new)
        )
        return PairedRows(old, new, self.place)


def auc_changes_by_lane(
    words: NDArray[np.uint64], rows: PairedRows, lanes: int
) -> tuple[Array, Array]:
    """Return the change of the AUC and its variance by permutation, stratum and group."""
    shape = (lanes, len(rows.old.first_tie) - 1, 2)
    value, variance = np.full(shape, np.nan), np.full(shape, np.nan)
    old, new = (
        (one.unit, one.positive, one.weight, one.tie_starts, one.first_tie)
        for one in (rows.old, rows.new)
    )
    _fill(
        words,
        old,
        new,
        rows.place,
        rows.old.n_units,
        rows.old.clustered,
        value,
        variance,
    )
    return value, variance


@kernel
def _fill(
    words: NDArray[np.uint64],
    old: tuple[NDArray[np.int64], NDArray[np.bool_], Array, NDArray[np.int64], NDArray[np.int64]],
    new: tuple[NDArray[np.int64], NDArray[np.bool_], Array, NDArray[np.int64], NDArray[np.int64]],
    place: NDArray[np.int64],
    n_units: int,
    clustered: bool,
    value: Array,
    variance: Array,
) -> None:
    unit, positive, weight, tie_starts, first_tie = old
    sums = np.zeros((n_units if clustered else 0, 2, 3))
    component, component_new = np.zeros(len(unit)), np.zeros(len(unit))
    for lane in range(value.shape[0]):
        for s in range(len(first_tie) - 1):
            ties = tie_starts[first_tie[s] : first_tie[s + 1] + 1]
            ties_new = new[3][new[4][s] : new[4][s + 1] + 1]
            for g in range(2):
                wins, total = _fill_components(
                    words, lane, g, unit, positive, weight, ties, component
                )
                if total[0] == 0 or total[1] == 0:
                    continue
                wins_new, _ = _fill_components(
                    words, lane, g, new[0], new[1], new[2], ties_new, component_new
                )
                # of a negative, one minus the share counts: as many more keep that difference
                for i in range(ties_new[0], ties_new[-1]):
                    row = place[i]
                    component[row] = component_new[i] - component[row]
                    if not positive[row]:
                        component[row] += total[1]
                change = (wins_new - wins) / (total[0] * total[1])
                value[lane, s, g] = change
                variance[lane, s, g] = _sum_squared_influences(
                    words, lane, g, unit, positive, weight, ties, component,
                    total, change, clustered, sums,
                )  # fmt: skip


@kernel
def _fill_components(
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
def _sum_squared_influences(
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
