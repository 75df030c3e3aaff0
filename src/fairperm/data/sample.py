"""The sample: rows of the data, each with its count, their groups, strata and clusters.

A permutation of group labels changes only how many rows of each kind fall in each group, so a
small table of distinct rows is all that a test of a rate needs.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.sorting import order_by, run_starts
from fairperm.data.score_bins import BINNED
from fairperm.errors import InputError, argument, listed, unknown_name

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm._utils.arrays import Array, Codes, Integers, Places
    from fairperm._utils.formatting import Units
    from fairperm.data.score_bins import ScoreRanges
    from fairperm.metrics.definition import AnyMetric

MAX_NUMBERS = 20  # groups named by numbers: more are measurements, such as ages
_NEXT_TO_NOTHING = 0.1  # of a standard error
_BY_ROW = (
    *("group", "stratum", "count", "weight", "cluster", "whole_cluster", "matched", "period"),
    *("alike", "contributions", "block", "probabilities", "proxy"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Rows of the data, each with its count: distinct rows where the columns take few values.

    A test chooses the rows of the groups that it compares, and adds ``contributions`` and
    ``block``. Labels are exchanged inside each stratum, only among rows of equal block, and whole
    clusters at a time.
    """

    # those that the metric is computed from: ``y_true``, ``y_pred``, ``y_score``
    columns: Mapping[str, NDArray[Any]]
    # each row's index into ``groups`` and ``strata``; group 0 is the user's first one
    group: Codes
    stratum: Codes
    count: Integers
    groups: tuple[Hashable, ...]
    strata: tuple[Hashable, ...]
    # each row's weight and index into ``clusters``, if the user gave them and they are not all
    # alike
    weight: Array | None = None
    cluster: Codes | None = None
    clusters: tuple[Hashable, ...] = ()
    # each row's cluster before clusters with rows of several groups or strata were split
    whole_cluster: Codes | None = None
    matched: Codes | None = None  # the number of each row's matched set, if the user gave them
    period: Codes | None = None  # each row's index into ``periods``, if the user gave them
    periods: tuple[Hashable, ...] = ()
    # the number of equal clusters that each row's cluster stands for, if clusters were counted;
    # ``count`` has the rows of all of them
    alike: Integers | None = None
    # whether the rows are units whose weights or clusters have gone into their contributions
    are_sums: bool = False
    n_dropped: int = 0
    # the bins whose middles are in place of the scores; None if scores are not put into bins
    bins: ScoreRanges | None = None
    # what each row adds to the totals of the metric; empty until the metric is known, unless an
    # engine has added them up
    contributions: Array = field(default_factory=lambda: np.empty((0, 0)))
    # labels are exchanged among rows of equal block; empty until the scheme is known
    block: Codes = field(default_factory=lambda: np.empty(0, np.uint8))
    # where groups are known only as probabilities: those of each row by group, what they are
    # assumed to say, and the cell of equal probabilities that the row is in
    probabilities: Array | None = None
    assumption: str = ""
    proxy: Codes | None = None
    attribute: str = ""  # the name of the column of groups, or ""
    units: Units = "rows"  # what the rows are in messages
    notes: tuple[str, ...] = ()  # remarks for the result

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.groups)

    @property
    def n_strata(self) -> int:
        """The number of strata, of which some may have no rows."""
        return len(self.strata)

    def count_strata(self, groups: Sequence[Hashable]) -> int:
        """Return the number of strata that have rows of these groups."""
        if len(self.strata) == 1:
            return 1
        rows = np.isin(self.group, [self.groups.index(group) for group in groups])
        return len(np.unique(self.stratum[rows]))

    def columns_of(self, groups: Sequence[Hashable]) -> dict[str, NDArray[Any]]:
        """Return the columns, with the rows of these groups only."""
        if self.probabilities is not None:
            return dict(self.columns)
        rows = np.isin(self.group, [self.groups.index(group) for group in groups])
        return {name: column[rows] for name, column in self.columns.items()}

    def keep_columns(self, names: Collection[str]) -> Sample:
        """Return the table with these columns only; equal rows are merged if all are boolean."""
        columns = {name: column for name, column in self.columns.items() if name in names}
        notes = self.notes
        if "y_score" not in columns:
            notes = tuple(note for note in notes if note != BINNED)
        kept = replace(self, columns=columns, notes=notes)
        are_boolean = all(column.dtype == np.bool_ for column in columns.values())
        if len(columns) == len(self.columns) or not are_boolean:
            return kept
        apart = (self.weight, self.cluster, self.matched, self.probabilities)
        if any(one is not None for one in apart) or self.contributions.size:
            return kept
        shape = (len(self.groups), len(self.strata), *(2 for _ in columns))
        codes = (self.group, self.stratum, *(column.view(np.uint8) for column in columns.values()))
        key = np.ravel_multi_index(tuple(code.astype(np.intp) for code in codes), shape)
        counts = np.bincount(key, self.count, math.prod(shape))
        present = np.flatnonzero(counts)
        group, stratum, *values = np.unravel_index(present, shape)
        return kept.with_rows(
            columns={name: one.astype(bool) for name, one in zip(columns, values, strict=True)},
            group=group,
            stratum=stratum,
            count=counts[present].astype(np.int64),
        )

    def with_rows(self, *, count: Integers, **others: Any) -> Sample:
        """Return other rows, as many as these counts, under the same names."""
        return replace(self.take(np.zeros(len(count), np.intp)), count=count, **others)

    def take(self, index: Places | slice) -> Sample:
        """Return some of the rows, or all in another order."""
        columns = {name: column[index] for name, column in self.columns.items()}
        arrays = {name: getattr(self, name) for name in _BY_ROW}
        taken = {name: one[index] for name, one in arrays.items() if one is not None and len(one)}
        return replace(self, columns=columns, **taken)

    def sort_by_score(self) -> Sample:
        """Return the rows sorted by score, if they have one: comparisons then need not sort."""
        if "y_score" not in self.columns:
            return self
        return self.take(order_by([self.columns["y_score"]]))

    def against_rest(self, group: Hashable, rest: Hashable) -> Sample:
        """Return the table with all groups but one merged into ``rest``, unless that is a group."""
        if rest in self.groups:
            return self
        others = (self.group != self.groups.index(group)).view(np.uint8)
        merged = replace(self, group=others, groups=(group, rest))
        return merged if self.whole_cluster is None else merged.split_clusters()

    def split_clusters(self) -> Sample:
        """Return the table with a cluster for each group, stratum and period of its rows."""
        whole = self.cluster if self.whole_cluster is None else self.whole_cluster
        if whole is None:
            return self
        parts = [whole, self.group, self.stratum, *([] if self.period is None else [self.period])]
        _, part = np.unique(np.stack(parts).astype(np.intp), axis=1, return_inverse=True)
        return replace(self, cluster=part.ravel(), whole_cluster=whole)

    def drop_alike(self) -> Sample:
        """Return the rows without weights that are all equal, and without clusters of one row each.

        They say nothing, and the tests of plain rows are sharper. Clusters that were split are
        whole again where groups are merged.
        """
        weight, cluster = self.weight, self.cluster
        if weight is not None and (weight == weight[:1]).all():
            weight = None
        whole = cluster if self.whole_cluster is None else self.whole_cluster
        of_each = 1 if self.alike is None else self.alike
        if whole is not None and (self.count == of_each).all():
            cluster = None if len(np.unique(whole)) == len(whole) else cluster
        if weight is self.weight and cluster is self.cluster:
            return self
        if cluster is self.cluster:
            return replace(self, weight=weight)
        return replace(
            self, weight=weight, cluster=None, clusters=(), whole_cluster=None, alike=None
        )

    def sizes(self) -> dict[Hashable, int]:
        """Return each group's number of rows; the expected one, of probabilities."""
        counts = self.sum_by_group(np.ones(1))
        return {group: round(n) for group, n in zip(self.groups, counts.tolist(), strict=True)}

    def sum_by_group(self, values: NDArray[Any]) -> Array:
        """Return the sum of values of rows in each group; the expected one, of probabilities."""
        if self.probabilities is not None:
            return np.asarray((self.count * values) @ self.probabilities)
        return np.bincount(self.group, self.count * values, len(self.groups)).astype(np.float64)

    def with_probabilities(
        self,
        groups: tuple[Hashable, ...],
        probabilities: Array,
        assumption: str,
        proxy: Codes | None,
    ) -> Sample:
        """Return the rows with probabilities of these groups in place of their group."""
        return replace(
            self, groups=groups, probabilities=probabilities, assumption=assumption, proxy=proxy
        )

    def has_fine_bins(self, metric: AnyMetric) -> bool:
        """Whether the binning error of each group's value is negligible; True without bins."""
        if self.bins is None:
            return True
        group, count = self.group.astype(np.intp), self.count.astype(np.float64)
        scored = [part for part in metric.parts if "y_score" in part.columns]
        find = self.bins.find_shares
        shares = [find(part, self.columns, count, group, len(self.groups)) for part in scored]
        return all(np.nanmax(one, initial=0.0) <= _NEXT_TO_NOTHING for one in shares)

    @property
    def has_measurements(self) -> bool:
        """Whether groups are named by so many numbers that these are measurements, such as ages."""
        are_numbers = (
            isinstance(group, (numbers.Real, Decimal)) and not isinstance(group, bool)
            for group in self.groups
        )
        return sum(are_numbers) > MAX_NUMBERS

    def choose_groups(
        self, groups: object, *, for_all: str = "audit()"
    ) -> tuple[Hashable, Hashable]:
        """Return the two groups to compare: the requested ones, or the only two."""
        # ``for_all`` is the function that compares all groups
        if groups is None:
            return self._require_two(for_all)
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
                rule = f"made of groups in {argument('sensitive_features')}"
                raise unknown_name("groups", rule, one, self.groups) from None
        return found

    def _require_two(self, for_all: str = "audit()") -> tuple[Hashable, Hashable]:
        """Return the two groups. Raises InputError if there are fewer or more."""
        if len(self.groups) == 2:
            return self.groups[0], self.groups[1]
        feature, names = argument("sensitive_features"), listed(self.groups)
        if len(self.groups) == 1:
            raise InputError(
                f"{feature} has 1 group ({names}); a comparison needs two: "
                "pass the rows of both groups."
            )
        advice = f"use {argument(for_all)} to compare all groups"
        if self.has_measurements:
            advice = f"cut numbers into bands, or use {argument('correlation_test')}"
        pair = argument("groups", *self.groups[:2])
        raise InputError(
            f"{feature} has {len(self.groups):,} groups ({names}); a comparison needs two: "
            f"pass {pair}, or {advice}."
        )

    def weight_of_each(self) -> Array:
        """Return the weight of every row: 1 unless the user gave one."""
        return np.ones(len(self.count)) if self.weight is None else self.weight

    def expand(self) -> Sample:
        """Return every row as often as it counts."""
        if (self.count == 1).all():
            return self
        rows = self.take(np.repeat(np.arange(len(self.count)), self.count))
        return replace(rows, count=np.ones(len(rows.count), np.int64))

    def sum_units(self) -> Sample:
        """Return the rows with weights multiplied into the contributions, clusters added up."""
        # A cluster then is one unit, and the sum of its contributions makes every variance robust
        # to whatever its rows have in common; likewise for a weighted row
        if self.weight is not None:
            scaled = self.contributions * self.weight[:, None]
            columns = _as_columns(scaled)
            rows = replace(self, contributions=scaled, columns=columns, weight=None, are_sums=True)
            return rows.sum_units()
        if self.cluster is None:
            return self
        order = order_by([self.cluster, *self.contributions.T, self.count])
        starts = run_starts(self.cluster[order])
        first = self.take(order[starts])
        alike = np.ones(len(starts), np.int64) if first.alike is None else first.alike
        each = self.count if self.alike is None else self.count // self.alike
        counted = self.contributions * each[:, None]
        totals = np.add.reduceat(counted[order], starts)
        clusters = replace(
            first,
            columns=_as_columns(totals),
            contributions=totals,
            count=alike,
            cluster=None,
            alike=None,
            are_sums=True,
        )
        return clusters.merge_equal()

    def merge_if_few(self, most: int) -> Sample:
        """Return equal rows counted as one if so few are distinct, else all rows."""
        columns = [*self.columns.values()]
        if len(self.count) <= most or any(_has_more(one[: 2 * most], most) for one in columns):
            return self
        merged = self.merge_equal(columns)
        return merged if len(merged.count) <= most else self

    def merge_equal(self, columns: Sequence[NDArray[Any]] | None = None) -> Sample:
        """Return rows with equal contributions, or columns, as one, in the order of their values.

        Sums of clusters have no other columns than contributions.
        """
        keys = [self.stratum, self.group, self.block, *(columns or self.contributions.T)]
        order = order_by(keys)
        starts = run_starts(*(key[order] for key in keys))
        return replace(self.take(order[starts]), count=np.add.reduceat(self.count[order], starts))

    def separate_clusters(self) -> Sample:
        """Return equal clusters as separate ones."""
        if self.alike is None or self.cluster is None:
            return self
        which = np.repeat(np.arange(len(self.count)), self.alike)
        first = np.append(0, np.cumsum(self.alike)[:-1])
        copy = np.arange(len(which)) - first[which]
        rows = replace(self, count=self.count // self.alike, alike=None).take(which)
        number = self.cluster[which].astype(np.int64) * self.alike.max() + copy
        return replace(rows, cluster=np.unique(number, return_inverse=True)[1].ravel())


def _has_more(values: NDArray[Any], most: int) -> bool:
    """Whether so many values are distinct: then nothing is gained by looking at the rest."""
    return values.dtype.kind == "f" and len(np.unique(values)) > most


def _as_columns(contributions: Array) -> dict[str, Array]:
    return {f"contribution {j}": column for j, column in enumerate(contributions.T)}


def _as_list(groups: object) -> object:
    return list(np.atleast_1d(groups)) if isinstance(groups, np.ndarray) else groups
