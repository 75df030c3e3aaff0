"""The engine of the AUC of rows that have weights or clusters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.sorting import content_keys, order_by, run_numbers, run_starts
from fairperm.engines.estimates import Estimates
from fairperm.engines.kernels.subsets import same_in_all_lanes
from fairperm.engines.kernels.weighted_auc import WeightedRows, weighted_auc_by_lane
from fairperm.engines.units import Layout, UnitsEngine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.engines.sample import Rows
    from fairperm.metrics.definition import Variance

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WeightedRankEngine(UnitsEngine):
    """AUC of weighted rows, whole clusters of which change groups."""

    rows: WeightedRows

    @classmethod
    def from_rows(
        cls, rows: Rows, weights: Array | None, variance: Variance | None, n_bootstrap: int
    ) -> WeightedRankEngine:
        """Sort by score inside strata; order units by their rows, not by their names."""
        rows = rows.expand()
        label, score = rows.contributions.T
        weight = np.ones(len(score)) if rows.weight is None else rows.weight
        walk = order_by([rows.stratum, score, label, weight])
        rows, weight = rows.take(walk), weight[walk]
        cluster = np.arange(len(walk)) if rows.cluster is None else rows.cluster
        unit, first, keys = _units_in_order(rows, weight, cluster)
        units = rows.take(first)
        if rows.cluster is not None:  # equal rows in the order of their units
            again = order_by([rows.stratum, *rows.contributions.T[::-1], weight, unit])
            rows, weight, unit = rows.take(again), weight[again], unit[again]
        score = rows.contributions[:, 1]
        starts = run_starts(rows.stratum, score)
        weighted = WeightedRows(
            unit=unit,
            positive=rows.contributions[:, 0] > 0,
            weight=weight,
            tie_starts=np.append(starts, len(score)),
            first_tie=np.searchsorted(rows.stratum[starts], np.arange(rows.n_strata + 1)),
            n_units=len(first),
            clustered=rows.cluster is not None,
        )
        layout = Layout.of(
            units.group, units.stratum, units.block, rows.n_strata, lambda: np.stack(keys, axis=1)
        )
        return cls(layout, weights, variance, n_bootstrap, weighted)

    def _of_words(self, words: NDArray[np.uint64], lanes: int) -> Estimates:
        value, variance = weighted_auc_by_lane(words, self.rows, lanes)
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value[None], variance[None], size[None])

    def _resampled(
        self, in_first: NDArray[np.bool_], n: int, rng: np.random.Generator
    ) -> Estimates:
        words = same_in_all_lanes(in_first)
        values = []
        for _ in range(n):
            times = np.zeros(self.rows.n_units)
            for _, _, members in self.layout.members(in_first):
                drawn = rng.integers(len(members), size=len(members))
                times[members] = np.bincount(drawn, minlength=len(members))
            weight = self.rows.weight * times[self.rows.unit]
            values.append(weighted_auc_by_lane(words, replace(self.rows, weight=weight), 1)[0][0])
        value = np.stack(values)[None]
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value, np.zeros(value.shape), size)


def _units_in_order(
    rows: Rows, weight: Array, cluster: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.intp], list[Array]]:
    """Return each row's unit, each unit's first row, and the keys that order the units.

    Units are ordered by stratum, block and the ranks of their rows: names and the user's order of
    rows change nothing.
    """
    starts = run_starts(rows.stratum, *rows.contributions.T, weight)
    rank = run_numbers(starts, len(weight)) + 1.0
    _, first, of_row = np.unique(cluster, return_index=True, return_inverse=True)
    of_row = of_row.ravel()
    keys = content_keys(of_row, rank)
    order = order_by([rows.stratum[first], rows.block[first], *keys])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[of_row], first[order], [key[order] for key in keys]
