"""The sample: distinct rows with a count per group and stratum.

A permutation of group labels changes only how many rows of each kind fall in each group, so
this small table is all that a test ever needs of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm.errors import InputError, did_you_mean, listed, problem

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

CELLS = ("tn", "fp", "fn", "tp")  # a row's cell is 2·label + prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Distinct rows of the data: label, prediction, group, stratum, and how often each occurs."""

    label: NDArray[np.bool_]
    prediction: NDArray[np.bool_]
    group: NDArray[np.intp]
    stratum: NDArray[np.intp]
    count: NDArray[np.int64]
    groups: tuple[Hashable, ...]
    strata: tuple[Hashable, ...]
    n_dropped: int = 0

    def choose_groups(self, groups: object) -> tuple[Hashable, Hashable]:
        """Return the two groups to compare: those asked for, or the only two there are."""
        if groups is None:
            return self._only_two()
        if isinstance(groups, np.ndarray):
            groups = list(np.atleast_1d(groups))
        pair: list[Hashable] = []
        for one in groups if isinstance(groups, (list, tuple)) else ():
            try:
                pair.append(self.groups[self.groups.index(one)])
            except (ValueError, TypeError):  # not there; or an array or NA: equal to nothing
                known = f"made of groups in sensitive_features ({listed(self.groups)})"
                hint = did_you_mean(one, self.groups)
                raise InputError(problem("groups", known, one, hint)) from None
        if len(pair) != 2 or pair[0] == pair[1]:
            rule = "a pair (first, second) of two different groups"
            raise InputError(problem("groups", rule, groups, "Use groups=(first, second)."))
        return pair[0], pair[1]

    def _only_two(self) -> tuple[Hashable, Hashable]:
        if len(self.groups) == 2:
            return self.groups[0], self.groups[1]
        found = f"sensitive_features has {len(self.groups):,} group"
        if len(self.groups) == 1:
            raise InputError(
                f"{found} ({listed(self.groups)}); a comparison needs two: "
                "pass the rows of both groups."
            )
        raise InputError(
            f"{found}s ({listed(self.groups)}); a comparison needs two: "
            f"pass groups=({listed(self.groups[:2])})."
        )

    def counts(self, pair: tuple[Hashable, Hashable]) -> NDArray[np.int64]:
        """Return counts by stratum, group of the pair, and cell of the confusion table."""
        counts = np.zeros((len(self.strata), 2, len(CELLS)), np.int64)
        for side, name in enumerate(pair):
            rows = self.group == self.groups.index(name)
            cell = 2 * self.label[rows] + self.prediction[rows]
            np.add.at(counts, (self.stratum[rows], side, cell), self.count[rows])
        return counts


@dataclass(frozen=True, slots=True)
class Cells:
    """What a test is computed from: counts of the kinds of row that its metric tells apart.

    Attributes
    ----------
    counts
        Rows by stratum, group and cell. The group order and the stratum order depend on the
        counts alone, never on names, so that swapping or renaming changes no random draw.
    contributions
        What one row of each cell contributes to the metric's totals.
    block
        Labels are exchanged among cells of equal block only.
    weights
        The user's weight of each stratum, or None for Mantel–Haenszel weights.
    swapped
        Whether the first group in ``counts`` is the user's second.
    """

    counts: NDArray[np.int64]
    contributions: NDArray[np.float64]
    block: NDArray[np.intp]
    weights: NDArray[np.float64] | None
    swapped: bool

    @classmethod
    def from_counts(
        cls,
        counts: NDArray[np.int64],
        contributions: NDArray[np.float64],
        block: NDArray[np.intp],
        weights: NDArray[np.float64] | None = None,
    ) -> Cells:
        """Merge the cells that neither metric nor scheme can tell apart; order by counts."""
        kinds: dict[tuple[float, ...], list[int]] = {}
        for cell, key in enumerate(np.column_stack([block, contributions]).tolist()):
            kinds.setdefault(tuple(key), []).append(cell)
        members = list(kinds.values())
        merged = np.stack([counts[:, :, cells].sum(axis=2) for cells in members], axis=2)
        merged, weights, swapped = _ordered(merged, weights)
        keep = [cells[0] for cells in members]
        return cls(merged, contributions[keep], block[keep], weights, swapped)

    @property
    def sign(self) -> int:
        """Return what turns a gap of ``counts``' first group into one of the user's first."""
        return -1 if self.swapped else 1

    def blocks(self) -> Sequence[NDArray[np.intp]]:
        """Return the cells of each exchangeable block."""
        return [np.flatnonzero(self.block == b) for b in np.unique(self.block)]


def _ordered(
    counts: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None, bool]:
    """Return the counts with groups and strata in an order that their names have no part in.

    The smaller group comes first: drawing its rows is the cheaper half of every permutation.
    """
    views = []
    for swapped in (False, True):
        view = counts[:, ::-1] if swapped else counts
        keys = view.reshape(len(view), -1).T
        order = np.lexsort(keys if weights is None else [*keys, weights])
        views.append((view[order], None if weights is None else weights[order], swapped))
    first, second = views
    if first[0][:, 0].sum() != first[0][:, 1].sum():
        chosen = min(views, key=lambda view: int(view[0][:, 0].sum()))
    else:
        chosen = min(first, second, key=lambda view: view[0].ravel().tolist())
    return np.ascontiguousarray(chosen[0]), chosen[1], chosen[2]
