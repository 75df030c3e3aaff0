"""The engine of the AUC of rows that have weights or clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.sorting import order_by
from fairperm.engines.estimates import Estimates
from fairperm.engines.kernels.weighted_auc import WeightedRows, weighted_auc_by_lane
from fairperm.engines.units import Layout, UnitsEngine, order_units, resample_units
from fairperm.metrics.ranks import SortedCells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.engines.sample import Rows
    from fairperm.metrics.definition import Variance
    from fairperm.metrics.ranks import AreaUnderCurve

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WeightedRankEngine(UnitsEngine):
    """AUC of weighted rows, whole clusters of which change groups."""

    part: AreaUnderCurve
    rows: WeightedRows
    label_and_score: Array
    weight: Array
    unit: NDArray[np.int64]

    @classmethod
    def from_rows(
        cls,
        part: AreaUnderCurve,
        rows: Rows,
        weights: Array | None,
        variance: Variance | None,
        n_bootstrap: int,
    ) -> WeightedRankEngine:
        """Sort by score inside strata; order units by their rows, not by their names."""
        rows, unit, units, keys = sort_weighted_rows(rows)
        weight = rows.weight_of_each()
        layout = Layout.of(
            units.group, units.stratum, units.block, rows.n_strata, lambda: np.stack(keys, axis=1)
        )
        return cls(
            part=part,
            layout=layout,
            weights=weights,
            variance=variance,
            n_bootstrap=n_bootstrap,
            rows=walk_weighted_rows(rows, unit),
            label_and_score=rows.contributions,
            weight=weight,
            unit=unit,
        )

    def _of_words(self, words: NDArray[np.uint64], lanes: int) -> Estimates:
        del lanes  # all are computed at once
        value, variance = weighted_auc_by_lane(words, self.rows)
        size = np.broadcast_to(self.layout.sizes, value.shape)
        value, variance = self.part.of_auc(value), self.part.slope**2 * variance
        return Estimates(value[None], variance[None], size[None])

    def _resampled(
        self, in_first: NDArray[np.bool_], n: int, rng: np.random.Generator
    ) -> Estimates:
        value = np.full((1, n, self.layout.n_strata, 2), np.nan)
        sides = []
        for s, g, members in self.layout.members(in_first):
            rows = np.flatnonzero(np.isin(self.unit, members))
            if rows.size:
                sides.append((s, g, members, rows, SortedCells.of(self.label_and_score[rows])))
        times = np.zeros(len(in_first))
        for i in range(n):
            for s, g, members, rows, cells in sides:
                times[members] = resample_units(len(members), rng)
                counts = self.weight[rows] * times[self.unit[rows]]
                value[0, i, s, g] = cells.components(counts).value()
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(self.part.of_auc(value), np.zeros(value.shape), size)


def sort_weighted_rows(rows: Rows) -> tuple[Rows, NDArray[np.int64], Rows, list[Array]]:
    """Return the rows by score inside strata, their units, a row of each unit, and its keys.

    Units are ordered by their rows, not by their names.
    """
    rows = rows.expand()
    columns = rows.contributions.T[::-1]  # of label and score, the score first
    rows = rows.take(order_by([rows.stratum, *columns, rows.weight_of_each(), rows.group]))
    weight = rows.weight_of_each()
    cluster = np.arange(len(weight)) if rows.cluster is None else rows.cluster
    unit, first, keys = order_units(rows, weight, cluster)
    units = rows.take(first)
    if rows.cluster is not None:  # equal rows in the order of their units
        again = order_by([rows.stratum, *rows.contributions.T[::-1], weight, unit])
        rows, unit = rows.take(again), unit[again]
    return rows, unit, units, keys


def walk_weighted_rows(rows: Rows, unit: NDArray[np.int64]) -> WeightedRows:
    """Return the walk up the scores of sorted rows."""
    label, score = rows.contributions.T
    return WeightedRows.build(
        score,
        label > 0,
        rows.weight_of_each(),
        unit,
        rows.stratum,
        rows.n_strata,
        is_clustered=rows.cluster is not None,
    )
