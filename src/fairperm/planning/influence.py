"""Metrics as statistical functionals, with the influence of each row or cluster on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.sorting import ranks
from fairperm.metrics.numbers import mean_metric
from fairperm.planning.populations import count_rows_per_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairperm._utils.arrays import Array, Integers, Places
    from fairperm.data.sample import Sample
    from fairperm.metrics.definition import Metric
    from fairperm.metrics.ranks import RankMetric

    Parts = Sequence[Metric | RankMetric]

_SHARE = mean_metric("label_share", "share of rows that have a label", lambda y_true: y_true)


@dataclass(frozen=True, slots=True)
class Functional:
    """A metric, or one part of it, as a function of the chances of rows or clusters.

    The scale of the chances does not matter. Clusters are drawn whole: ``cluster`` is that of each
    row, and ``count`` the number of such rows in one cluster.
    """

    part: Metric | RankMetric
    contributions: Array
    weight: Array | None
    cluster: Places | None
    count: Integers

    @classmethod
    def of(
        cls, table: Sample, part: Metric | RankMetric, contributions: Array, weight: Array | None
    ) -> Functional:
        """Return a part with these contributions as a functional of the table's units."""
        cluster = None if table.cluster is None else ranks(table.cluster)
        return cls(part, contributions, weight, cluster, count_rows_per_unit(table))

    def value(self, chance: Array) -> float:
        """Return the metric; NaN where it is undefined."""
        return float(self.part.value_of(self._weigh(self._rows(chance)), self.contributions))

    def size(self, count: Array) -> float:
        """Return the number of rows in its denominator, or of all rows."""
        rows = self._rows(count)
        if self.part.has_denominator:
            return float(self._weigh(rows) @ self.contributions[:, 1])
        return float(rows.sum())

    def influence(self, chance: Array) -> Array:
        """Return the influence of each unit, that of a cluster being the sum over its rows.

        Weighted by the chances, influences sum to zero.
        """
        rows = self._weigh(self._rows(chance))
        influence = self._weigh(self.part.influences(rows, self.contributions))
        if self.cluster is None:
            return influence
        return np.bincount(self.cluster, self.count * influence).astype(np.float64)

    def _rows(self, of_units: Array) -> Array:
        return of_units if self.cluster is None else of_units[self.cluster] * self.count

    def _weigh(self, rows: Array) -> Array:
        return rows if self.weight is None else self.weight * rows


def make_functionals(table: Sample, parts: Parts) -> list[Functional]:
    """Return each part of a metric as a functional of the table's units."""
    return [Functional.of(table, part, part.matrix(table.columns), table.weight) for part in parts]


def make_label_shares(table: Sample) -> list[Functional]:
    """Return the share of each label, except the last, as a functional of the table's units."""
    labels = table.columns["y_true"]
    every = (_SHARE.matrix({"y_true": labels == one}) for one in np.unique(labels)[:-1])
    return [Functional.of(table, _SHARE, one, None) for one in every]
