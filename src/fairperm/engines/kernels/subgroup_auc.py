"""AUC and DeLong's variance in many overlapping subgroups and in the rest of each.

Rows are sorted by score once. Walking up the scores, every row visits the subgroups that it is in,
so that a draw costs the rows of all subgroups together, never subgroups times rows.

Of all rows of a stratum, a positive i has X(i) negatives below it, a negative j has Y(j) positives
below it; of a subgroup g alone these are x(i) and y(j), for every row of the stratum; ties count
one half. Inside g the sums of x, x² and y² over its own rows are kept while walking. The rest needs

    Σ (X − x)  and  Σ (X − x)²  over the positives outside g,   Σ (Y − y)²  over the negatives,

which would mean to visit all rows for every g. But sums over *all* positives can be turned around:
Σ x is the sum, over the negatives of g, of the positives above each; Σ X·x that of the X of the
positives above; and Σ x² is a sum over pairs of negatives of g, of the positives above both. So
everything is a sum over rows of g, of numbers that no permutation changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.sorting import run_numbers, run_starts
from fairperm.engines.kernels.kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# What is kept of every subgroup: positives, negatives, Σx, Σx² and Σy² of its own; and what the
# totals of all rows lose to become those of the rest.
_SUMS = 8
# Of every row: its X or Y; the number of the other label above; the same with a quarter for ties,
# for pairs of rows with one score; and the sum of the X or Y of those above.
_OTHERS, _ABOVE, _ABOVE_TWICE, _SUM_ABOVE = range(4)


@dataclass(frozen=True, slots=True)
class ScoreOrder:
    """The rows by stratum and ascending score, and what no permutation changes.

    Attributes
    ----------
    label
        1 for positives, 0 for negatives.
    starts, strata
        Where runs of one score start, and where strata start among the runs; with their ends.
    fixed
        By row, the four numbers named above.
    totals
        By stratum: positives, negatives, ΣX, ΣX² and ΣY².
    """

    label: NDArray[np.uint8]
    starts: NDArray[np.int64]
    strata: NDArray[np.int64]
    fixed: Array
    totals: Array

    @classmethod
    def of(cls, label: NDArray[Any], score: Array, stratum: NDArray[Any], n_strata: int) -> Any:
        """Compute them for rows that are sorted by stratum and score."""
        positive = (label > 0).astype(np.float64)
        starts = run_starts(stratum, score)
        run = run_numbers(starts, len(label))
        of_stratum = np.searchsorted(stratum[starts], np.arange(n_strata + 1))
        fixed, totals = np.empty((len(label), 4)), np.empty((n_strata, 5))
        for s in range(n_strata):
            first, stop = of_stratum[s], of_stratum[s + 1]
            rows = slice(starts[first], starts[stop] if stop < len(starts) else len(label))
            mine, at = positive[rows], run[rows] - first
            sides = [np.bincount(at, one, stop - first) for one in (mine, 1 - mine)]
            below = [np.cumsum(one) - one / 2 for one in sides]  # of each label, ties half
            for side, other in ((0, 1), (1, 0)):
                wins = below[other]  # X of positives, Y of negatives
                above = sides[other].sum() - below[other]
                twice = above - sides[other] / 4
                product = sides[other] * below[side]  # the X or Y of the other label's rows
                sum_above = product.sum() - (np.cumsum(product) - product / 2)
                columns = np.stack([wins, above, twice, sum_above], axis=1)
                chosen = mine == 1 - side
                fixed[rows][chosen] = columns[at[chosen]]
            totals[s] = [
                *(sides[0].sum(), sides[1].sum(), (sides[0] * below[1]).sum()),
                *((sides[0] * below[1] ** 2).sum(), (sides[1] * below[0] ** 2).sum()),
            ]
        ends = np.append(starts, len(label)).astype(np.int64)
        return cls(positive.astype(np.uint8), ends, of_stratum.astype(np.int64), fixed, totals)

    def sums(
        self,
        cells: NDArray[np.int32],
        indptr: NDArray[np.int32],
        subgroups: NDArray[np.int32],
        n_subgroups: int,
    ) -> Array:
        """Return by draw, subgroup, stratum and side (subgroup, rest) what an AUC is made of.

        These are the numbers of positives and negatives, and the sums of x, x² and y².

        Parameters
        ----------
        cells
            The cell of every row, by draw.
        indptr, subgroups
            The subgroups of cell k are ``subgroups[indptr[k]:indptr[k + 1]]``.
        n_subgroups
            How many there are.
        """
        kept = np.zeros((len(cells), len(self.totals), n_subgroups, _SUMS))
        _walk(cells, self.label, self.starts, self.strata, self.fixed, indptr, subgroups, kept)
        inside = kept[..., :5]
        positives, negatives, wins, squares = (inside[..., j] for j in range(4))
        whole = self.totals[None, :, None]
        rest = np.stack(
            [
                whole[..., 0] - positives,
                whole[..., 1] - negatives,
                whole[..., 2] - kept[..., 5] + wins,
                whole[..., 3] - kept[..., 6] - squares,
                whole[..., 4] - kept[..., 7] - inside[..., 4],
            ],
            axis=-1,
        )
        return np.moveaxis(np.stack([inside, rest], axis=-2), 1, 2)


@kernel
def _walk(
    cells: NDArray[np.int32],
    label: NDArray[np.uint8],
    starts: NDArray[np.int64],
    strata: NDArray[np.int64],
    fixed: Array,
    indptr: NDArray[np.int32],
    subgroups: NDArray[np.int32],
    kept: Array,
) -> None:
    """Add every row to the sums of its subgroups, the rows of one score together."""
    in_run = np.zeros((kept.shape[2], 2))  # negatives and positives of this score
    for draw in range(len(cells)):
        cell = cells[draw]
        for s in range(strata.size - 1):
            sums = kept[draw, s]
            for r in range(strata[s], strata[s + 1]):
                first, stop = starts[r], starts[r + 1]
                if stop - first == 1:
                    k = cell[first]
                    mine = subgroups[indptr[k] : indptr[k + 1]]
                    _pass_one(sums, mine, label[first], fixed[first])
                    continue
                positive, negative = first, first  # a row of each label, if there is one
                for i in range(first, stop):
                    if label[i]:
                        positive = i
                    else:
                        negative = i
                    k = cell[i]
                    for at in range(indptr[k], indptr[k + 1]):
                        in_run[subgroups[at], label[i]] += 1.0
                for i in range(first, stop):
                    k = cell[i]
                    for at in range(indptr[k], indptr[k + 1]):
                        g = subgroups[at]
                        n, m = in_run[g, 0], in_run[g, 1]
                        if m + n > 0:
                            _pass(sums[g], fixed[positive], fixed[negative], m, n)
                            in_run[g, 0] = in_run[g, 1] = 0.0


@kernel
def _pass_one(sums: Array, mine: NDArray[np.int32], label: np.uint8, fixed: Array) -> None:
    """Add a row whose score no other row has to the sums of its subgroups."""
    others, above, twice, sum_above = fixed[0], fixed[1], fixed[2], fixed[3]
    square, last = others * others, 2 * sum_above - twice
    own, other = (0, 1) if label else (1, 0)
    squares, rest, rest_of_other = (3, 6, 7) if label else (4, 7, 6)
    for at in range(mine.size):
        g = mine[at]
        passed = sums[g, other]
        sums[g, rest_of_other] += last - 2 * sums[g, own] * above
        sums[g, own] += 1.0
        if label:
            sums[g, 2] += passed
            sums[g, 5] += others
        else:
            sums[g, 5] += above
        sums[g, squares] += passed * passed
        sums[g, rest] += square - 2 * others * passed


@kernel
def _pass(sums: Array, positive: Array, negative: Array, m: float, n: float) -> None:
    """Add ``m`` positives and ``n`` negatives of one score to the sums of a subgroup."""
    below_positives, below_negatives = sums[1], sums[0]
    x = below_positives + n / 2
    y = below_negatives + m / 2
    sums[0] += m
    sums[1] += n
    sums[2] += m * x
    sums[3] += m * x * x
    sums[4] += n * y * y
    sums[5] += m * positive[_OTHERS] + n * negative[_ABOVE]
    sums[6] += (
        m * positive[_OTHERS] * (positive[_OTHERS] - 2 * x)
        + 2 * n * negative[_SUM_ABOVE]
        - n * (2 * below_positives * negative[_ABOVE] + n * negative[_ABOVE_TWICE])
    )
    sums[7] += (
        n * negative[_OTHERS] * (negative[_OTHERS] - 2 * y)
        + 2 * m * positive[_SUM_ABOVE]
        - m * (2 * below_negatives * positive[_ABOVE] + m * positive[_ABOVE_TWICE])
    )
