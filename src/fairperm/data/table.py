"""The sample: distinct rows with a count per group and stratum.

A permutation of group labels changes only how many rows of each kind fall in each group, so
for a rate this small table is all that a test ever needs of the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.sorting import order_by
from fairperm.errors import InputError, did_you_mean, listed

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
        What the metric is made from: ``y_true``, ``y_pred``, ``y_score``, as numbers.
    group, stratum
        Of each row, as indices into ``groups`` and ``strata``.
    weight, cluster
        Of each row, if the user gave them.
    alike
        Of each row, for how many clusters its own stands, if equal clusters were counted: all their
        rows are in ``count``.
    score_bins
        Into how many bins scores were put; None if they are as they came.
    contributions
        What each row contributes to the metric, if that was added up where the rows are.
    notes
        What must be known of how the rows were read.
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

    def only(self, names: Collection[str]) -> Table:
        """Return the table of these columns alone, equal rows counted together if they are few."""
        columns = {name: column for name, column in self.columns.items() if name in names}
        kept = replace(self, columns=columns)
        truths = all(column.dtype == np.bool_ for column in columns.values())
        if len(columns) == len(self.columns) or not truths:
            return kept
        if any(one is not None for one in (self.weight, self.cluster, self.contributions)):
            return kept
        shape = (len(self.groups), len(self.strata), *(2 for _ in columns))
        codes = (self.group, self.stratum, *(column.view(np.uint8) for column in columns.values()))
        key = np.ravel_multi_index(tuple(code.astype(np.intp) for code in codes), shape)
        counts = np.bincount(key, self.count, math.prod(shape))
        there = np.flatnonzero(counts)
        group, stratum, *values = np.unravel_index(there, shape)
        return replace(
            self,
            columns={name: one.astype(bool) for name, one in zip(columns, values, strict=True)},
            group=group,
            stratum=stratum,
            count=counts[there].astype(np.int64),
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

    def by_score(self) -> Table:
        """Return the rows by their scores, if they have any: then no comparison need sort them."""
        if "y_score" not in self.columns:
            return self
        return self.take(order_by([self.columns["y_score"]]))

    def against_rest(self, group: Hashable, rest: Hashable) -> Table:
        """Return the table of one group and of all others together, called ``rest``."""
        others = (self.group != self.groups.index(group)).view(np.uint8)
        return replace(self, group=others, groups=(group, rest))

    def sizes(self) -> dict[Hashable, int]:
        """Return each group's number of rows."""
        counts = np.bincount(self.group, self.count, len(self.groups))
        return {group: int(n) for group, n in zip(self.groups, counts, strict=True)}

    def choose_groups(self, groups: object) -> tuple[Hashable, Hashable]:
        """Return the two groups to compare: those asked for, or the only two there are."""
        if groups is None:
            return self._only_two()
        groups = _as_list(groups)
        pair = self._found(groups)
        if len(pair) != 2 or pair[0] == pair[1]:
            rule = "a pair (first, second) of two different groups"
            raise InputError("groups", rule, groups, "Use groups=(first, second).")
        return pair[0], pair[1]

    def choose_several(self, groups: object) -> tuple[Hashable, ...]:
        """Return the groups to compare: those asked for, or all there are."""
        if groups is None:
            if len(self.groups) == 1:
                return self._only_two()
            return self.groups
        groups = _as_list(groups)
        found = self._found(groups)
        if len(found) < 2 or len(set(found)) < len(found):
            hint = "Leave it out to compare all groups."
            raise InputError("groups", "two or more different groups", groups, hint)
        return tuple(found)

    def _found(self, groups: object) -> list[Hashable]:
        """Return the groups of these names; say so if one is not there."""
        found: list[Hashable] = []
        for one in groups if isinstance(groups, (list, tuple)) else ():
            try:
                found.append(self.groups[self.groups.index(one)])
            except (ValueError, TypeError):  # not there; or an array or NA: equal to nothing
                known = f"made of groups in sensitive_features ({listed(self.groups)})"
                hint = did_you_mean(one, self.groups)
                raise InputError("groups", known, one, hint) from None
        return found

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
            f"pass groups=({listed(self.groups[:2])}), or use audit() for every pair and "
            "omnibus_test() for all at once."
        )


def _as_list(groups: object) -> object:
    return list(np.atleast_1d(groups)) if isinstance(groups, np.ndarray) else groups
