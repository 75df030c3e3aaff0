"""Metrics as functions of how likely each row is, or each cluster of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fairperm._utils.sorting import ranks
from fairperm.metrics.definition import Metric
from fairperm.metrics.ranks import Components
from fairperm.planning.populations import in_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairperm.data.table import Table
    from fairperm.metrics.ranks import RankMetric

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]
    Parts = Sequence[Metric | RankMetric]

_STEP = 1e-6  # of totals of which the largest is near one, where there is no derivative


class Measure(Protocol):
    """One part of a metric as a function of the chances of rows, or of other units.

    Only how the chances compare matters: twice all of them is the same.
    """

    def value(self, chance: Array) -> float:
        """Return the metric; NaN where it is undefined."""
        ...

    def size(self, count: Array) -> float:
        """Return how many rows it is made of."""
        ...

    def influence(self, chance: Array) -> Array:
        """Return by how much each unit moves it; of all by their chances, that is nothing."""
        ...


@dataclass(frozen=True, slots=True)
class OfTotals:
    """A function of totals of contributions, which weights have been multiplied into."""

    part: Metric
    contributions: Array

    def value(self, chance: Array) -> float:
        """Return the metric; NaN where it is undefined."""
        return float(self._of(chance @ self.contributions))

    def size(self, count: Array) -> float:
        """Return how many rows it is made of: those of a denominator, or all."""
        return float(count @ self.contributions[:, 1] if self.part.has_denominator else count.sum())

    def influence(self, chance: Array) -> Array:
        """Return by how much each row moves it."""
        totals = chance @ self.contributions
        if self.part.smooth:
            with np.errstate(divide="ignore", invalid="ignore"):
                gradient = self.part.gradient(totals)
        else:
            steps = _STEP * np.eye(len(totals))
            gradient = (self._of(totals + steps) - self._of(totals - steps)) / (2 * _STEP)
        influence: Array = self.contributions @ gradient
        return influence

    def _of(self, totals: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.part.estimate(totals)


@dataclass(frozen=True, slots=True)
class OfRanks:
    """The AUC; ``place`` is a row's score as its rank among the distinct ones."""

    positive: NDArray[np.bool_]
    place: Codes
    weight: Array

    def value(self, chance: Array) -> float:
        """Return the AUC; NaN without positives or without negatives."""
        return float(self._components(chance).value())

    def size(self, count: Array) -> float:
        """Return how many rows it is made of."""
        return float(count.sum())

    def influence(self, chance: Array) -> Array:
        """Return by how much each row moves it."""
        parts = self._components(chance)
        auc = parts.value()
        of_positives = (parts.of_positives - auc) / parts.positives.sum()
        of_negatives = (parts.of_negatives - auc) / parts.negatives.sum()
        among = np.where(self.positive, of_positives[self.place], of_negatives[self.place])
        influence: Array = self.weight * among
        return influence

    def _components(self, chance: Array) -> Components:
        width = int(self.place.max()) + 1
        chances = self.weight * chance
        of_positives = np.bincount(self.place, np.where(self.positive, chances, 0.0), width)
        of_negatives = np.bincount(self.place, np.where(self.positive, 0.0, chances), width)
        return Components(of_positives.astype(np.float64), of_negatives.astype(np.float64))


@dataclass(frozen=True, slots=True)
class OfLabel:
    """The share of rows that have a label."""

    has_it: Array

    def value(self, chance: Array) -> float:
        """Return the share."""
        return float(chance @ self.has_it / chance.sum())

    def size(self, count: Array) -> float:
        """Return how many rows it is made of."""
        return float(count.sum())

    def influence(self, chance: Array) -> Array:
        """Return by how much each row moves it."""
        influence: Array = (self.has_it - self.value(chance)) / chance.sum()
        return influence


@dataclass(frozen=True, slots=True)
class OfClusters:
    """A measure of rows where clusters are what has a chance: each has so many of some rows."""

    of_rows: Measure
    cluster: Codes
    count: NDArray[np.int64]

    def value(self, chance: Array) -> float:
        """Return the measure of the rows, each as likely as its cluster."""
        return self.of_rows.value(self._rows(chance))

    def size(self, count: Array) -> float:
        """Return how many rows it is made of."""
        return self.of_rows.size(self._rows(count))

    def influence(self, chance: Array) -> Array:
        """Return by how much each cluster moves it: the sum over its rows."""
        among = self.of_rows.influence(self._rows(chance))
        return np.bincount(self.cluster, self.count * among).astype(np.float64)

    def _rows(self, of_clusters: Array) -> Array:
        return of_clusters[self.cluster] * self.count


def measures(table: Table, parts: Parts) -> list[Measure]:
    """Return each part of the metric as a function of the chances of the table's units."""
    weight = np.ones(len(table.count)) if table.weight is None else table.weight
    found: list[Measure] = []
    for part in parts:
        matrix = part.matrix(table.columns)
        if isinstance(part, Metric):
            found.append(OfTotals(part, matrix * weight[:, None]))
        else:
            found.append(OfRanks(matrix[:, 0] > 0, ranks(matrix[:, 1]), weight))
    return _of_units(table, found)


def shares_of_labels(table: Table) -> list[Measure]:
    """Return the share of each label but the last, which has the rest, as such functions."""
    labels = table.columns["y_true"]
    of_each = [OfLabel((labels == one).astype(np.float64)) for one in np.unique(labels)[:-1]]
    return _of_units(table, of_each)


def _of_units(table: Table, of_rows: Sequence[Measure]) -> list[Measure]:
    if table.cluster is None:
        return list(of_rows)
    cluster, each = ranks(table.cluster), in_each(table)
    return [OfClusters(one, cluster, each) for one in of_rows]
