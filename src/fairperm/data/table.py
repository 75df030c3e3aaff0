"""The table of distinct rows, with their groups, strata and counts.

A permutation of group labels changes only how many rows of each kind fall in each group, so
this small table is all that a test of a rate needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.sorting import order_by
from fairperm.errors import InputError, argument, did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of the data, each with its count: distinct rows where the columns take few values.

    Attributes
    ----------
    columns
        Those that the metric is computed from: ``y_true``, ``y_pred``, ``y_score``.
    group, stratum
        Each row's index into ``groups`` and ``strata``.
    weight, cluster
        Each row's weight and index into ``clusters``, if the user gave them.
    alike
        The number of equal clusters that each row's cluster stands for, if clusters were counted;
        ``count`` has the rows of all of them.
    score_bins
        The number of bins of scores; None if scores are exact.
    contributions
        Each row's contributions to the metric, if an engine has added them up.
    notes
        Remarks for the result.
    """

    columns: Mapping[str, NDArray[Any]]
    group: NDArray[np.integer[Any]]
    stratum: NDArray[np.integer[Any]]
    count: NDArray[np.int64]
    groups: tuple[Hashable, ...]
    strata: tuple[Hashable, ...]
    weight: Array | None = None
    cluster: NDArray[np.integer[Any]] | None = None
    clusters: tuple[Hashable, ...] = ()
    alike: NDArray[np.int64] | None = None
    n_dropped: int = 0
    score_bins: int | None = None
    contributions: Array | None = None
    notes: tuple[str, ...] = ()

    def columns_of(self, groups: Sequence[Hashable]) -> dict[str, NDArray[Any]]:
        """Return the columns, with the rows of these groups only."""
        rows = np.isin(self.group, [self.groups.index(group) for group in groups])
        return {name: column[rows] for name, column in self.columns.items()}

    def keep_columns(self, names: Collection[str]) -> Table:
        """Return the table with these columns only; equal rows are merged if all are boolean."""
        columns = {name: column for name, column in self.columns.items() if name in names}
        kept = replace(self, columns=columns)
        are_boolean = all(column.dtype == np.bool_ for column in columns.values())
        if len(columns) == len(self.columns) or not are_boolean:
            return kept
        if any(one is not None for one in (self.weight, self.cluster, self.contributions)):
            return kept
        shape = (len(self.groups), len(self.strata), *(2 for _ in columns))
        codes = (self.group, self.stratum, *(column.view(np.uint8) for column in columns.values()))
        key = np.ravel_multi_index(tuple(code.astype(np.intp) for code in codes), shape)
        counts = np.bincount(key, self.count, math.prod(shape))
        present = np.flatnonzero(counts)
        group, stratum, *values = np.unravel_index(present, shape)
        return replace(
            self,
            columns={name: one.astype(bool) for name, one in zip(columns, values, strict=True)},
            group=group,
            stratum=stratum,
            count=counts[present].astype(np.int64),
        )

    def take(self, index: NDArray[np.intp]) -> Table:
        """Return some of the rows, or all in another order."""
        return replace(
            self,
            columns={name: column[index] for name, column in self.columns.items()},
            group=self.group[index],
            stratum=self.stratum[index],
            count=self.count[index],
            weight=None if self.weight is None else self.weight[index],
            cluster=None if self.cluster is None else self.cluster[index],
            alike=None if self.alike is None else self.alike[index],
            contributions=None if self.contributions is None else self.contributions[index],
        )

    def sort_by_score(self) -> Table:
        """Return the rows sorted by score, if they have one: comparisons then need not sort."""
        if "y_score" not in self.columns:
            return self
        return self.take(order_by([self.columns["y_score"]]))

    def against_rest(self, group: Hashable, rest: Hashable) -> Table:
        """Return the table with all groups but one merged into a group called ``rest``."""
        others = (self.group != self.groups.index(group)).view(np.uint8)
        return replace(self, group=others, groups=(group, rest))

    def sizes(self) -> dict[Hashable, int]:
        """Return each group's number of rows."""
        counts = np.bincount(self.group, self.count, len(self.groups))
        return {group: int(n) for group, n in zip(self.groups, counts, strict=True)}

    def choose_groups(self, groups: object) -> tuple[Hashable, Hashable]:
        """Return the two groups to compare: the requested ones, or the only two."""
        if groups is None:
            return self._require_two()
        groups = _as_list(groups)
        pair = self._find_groups(groups)
        if len(pair) != 2 or pair[0] == pair[1]:
            rule = "a pair (first, second) of two different groups"
            hint = f"Use {argument('groups')}=(first, second)."
            raise InputError("groups", rule, groups, hint)
        return pair[0], pair[1]

    def choose_several(self, groups: object) -> tuple[Hashable, ...]:
        """Return the groups to compare: the requested ones, or all."""
        if groups is None:
            return self._require_two() if len(self.groups) == 1 else self.groups
        groups = _as_list(groups)
        found = self._find_groups(groups)
        if len(found) < 2 or len(set(found)) < len(found):
            hint = "Leave it out to compare all groups."
            raise InputError("groups", "two or more different groups", groups, hint)
        return tuple(found)

    def _find_groups(self, groups: object) -> list[Hashable]:
        """Return the groups of these names. Raises InputError if one does not exist."""
        found: list[Hashable] = []
        for one in groups if isinstance(groups, (list, tuple)) else ():
            try:
                found.append(self.groups[self.groups.index(one)])
            except (ValueError, TypeError):  # absent; or an array or NA, which equal nothing
                feature = argument("sensitive_features")
                rule = f"made of groups in {feature} ({listed(self.groups)})"
                raise InputError("groups", rule, one, did_you_mean(one, self.groups)) from None
        return found

    def _require_two(self) -> tuple[Hashable, Hashable]:
        """Return the two groups. Raises InputError if there are fewer or more."""
        if len(self.groups) == 2:
            return self.groups[0], self.groups[1]
        feature, names = argument("sensitive_features"), listed(self.groups)
        if len(self.groups) == 1:
            raise InputError(
                f"{feature} has 1 group ({names}); a comparison needs two: "
                "pass the rows of both groups."
            )
        pair = argument("groups", *self.groups[:2])
        raise InputError(
            f"{feature} has {len(self.groups):,} groups ({names}); a comparison needs two: "
            f"pass {pair}, or use {argument('audit()')} to compare all groups."
        )


def _as_list(groups: object) -> object:
    return list(np.atleast_1d(groups)) if isinstance(groups, np.ndarray) else groups
