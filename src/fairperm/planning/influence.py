"""Metrics as statistical functionals, with the influence of each row or cluster on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fairperm._utils.sorting import ranks
from fairperm.planning.populations import count_rows_per_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairperm.data.reading import Table
    from fairperm.metrics.definition import Metric
    from fairperm.metrics.ranks import RankMetric

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]
    Parts = Sequence[Metric | RankMetric]


class Functional(Protocol):
    """A metric, or one part of it, as a function of the chances of rows or clusters.

    The scale of the chances does not matter.
    """

    def value(self, chance: Array) -> float:
        """Return the metric; NaN where it is undefined."""
        ...

    def size(self, count: Array) -> float:
        """Return the number of rows that it depends on."""
        ...

    def influence(self, chance: Array) -> Array:
        """Return the influence of each unit; weighted by the chances, influences sum to zero."""
        ...


@dataclass(frozen=True, slots=True)
class MetricFunctional:
    """A part of a metric, of rows that count by their sample weights."""

    part: Metric | RankMetric
    contributions: Array
    weight: Array

    def value(self, chance: Array) -> float:
        """Return the metric; NaN where it is undefined."""
        return float(self.part.value_of(self.weight * chance, self.contributions))

    def size(self, count: Array) -> float:
        """Return the number of rows in its denominator, or of all rows."""
        if self.part.has_denominator:
            return float((self.weight * count) @ self.contributions[:, 1])
        return float(count.sum())

    def influence(self, chance: Array) -> Array:
        """Return the influence of each row."""
        return self.weight * self.part.influences(self.weight * chance, self.contributions)


@dataclass(frozen=True, slots=True)
class LabelShare:
    """The share of rows that have a label."""

    has_it: Array

    def value(self, chance: Array) -> float:
        """Return the share."""
        return float(chance @ self.has_it / chance.sum())

    def size(self, count: Array) -> float:
        """Return the number of rows that it depends on."""
        return float(count.sum())

    def influence(self, chance: Array) -> Array:
        """Return the influence of each row."""
        influence: Array = (self.has_it - self.value(chance)) / chance.sum()
        return influence


@dataclass(frozen=True, slots=True)
class ClusterFunctional:
    """A functional of rows in clusters, which are drawn whole; ``count`` is of one cluster."""

    of_rows: Functional
    cluster: Codes
    count: NDArray[np.int64]

    def value(self, chance: Array) -> float:
        """Return the value for rows that are as likely as their clusters."""
        return self.of_rows.value(self._rows(chance))

    def size(self, count: Array) -> float:
        """Return the number of rows that it depends on."""
        return self.of_rows.size(self._rows(count))

    def influence(self, chance: Array) -> Array:
        """Return the influence of each cluster: the sum over its rows."""
        among = self.of_rows.influence(self._rows(chance))
        return np.bincount(self.cluster, self.count * among).astype(np.float64)

    def _rows(self, of_clusters: Array) -> Array:
        return of_clusters[self.cluster] * self.count


def make_functionals(table: Table, parts: Parts) -> list[Functional]:
    """Return each part of a metric as a functional of the table's units."""
    weight = np.ones(len(table.count)) if table.weight is None else table.weight
    found = [MetricFunctional(part, part.matrix(table.columns), weight) for part in parts]
    return _apply_to_units(table, found)


def make_label_shares(table: Table) -> list[Functional]:
    """Return the share of each label, except the last, as a functional of the table's units."""
    labels = table.columns["y_true"]
    of_each = [LabelShare((labels == one).astype(np.float64)) for one in np.unique(labels)[:-1]]
    return _apply_to_units(table, of_each)


def _apply_to_units(table: Table, of_rows: Sequence[Functional]) -> list[Functional]:
    if table.cluster is None:
        return list(of_rows)
    cluster, each = ranks(table.cluster), count_rows_per_unit(table)
    return [ClusterFunctional(one, cluster, each) for one in of_rows]
