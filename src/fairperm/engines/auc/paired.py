"""The engine of the change of the AUC between two scores of the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.sorting import order_by
from fairperm.engines.estimates import Estimates
from fairperm.engines.kernels.paired_auc import PairedRows, auc_changes_by_lane
from fairperm.engines.kernels.sorted_rows import SortedRows
from fairperm.engines.kernels.subsets import same_in_all_lanes
from fairperm.engines.units import Layout, UnitsEngine, order_units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.engines.sample import Rows
    from fairperm.metrics.definition import Variance

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairedRankEngine(UnitsEngine):
    """Change of the AUC of rows, which may have weights, or clusters that change groups whole."""

    rows: PairedRows
    sign: int

    @classmethod
    def from_rows(
        cls,
        rows: Rows,
        weights: Array | None,
        variance: Variance | None,
        n_bootstrap: int,
        sign: int,
    ) -> PairedRankEngine:
        """Sort by either score inside strata; order units by their rows, not by their names."""
        rows = rows.expand()
        weight = np.ones(len(rows.count)) if rows.weight is None else rows.weight
        walk = order_by([rows.stratum, rows.block, *rows.contributions.T, weight])
        rows, weight = rows.take(walk), weight[walk]
        cluster = np.arange(len(walk)) if rows.cluster is None else rows.cluster
        unit, first, keys = order_units(rows, weight, cluster)
        units = rows.take(first)
        label, old, new = rows.contributions.T
        by_old, by_new = (
            order_by([rows.stratum, score, label, other, weight, unit])
            for score, other in ((old, new), (new, old))
        )
        sorted_rows = [
            SortedRows.of(
                score[order],
                label[order] > 0,
                weight[order],
                unit[order],
                rows.stratum[order],
                rows.n_strata,
                clustered=rows.cluster is not None,
            )
            for order, score in ((by_old, old), (by_new, new))
        ]
        place = np.empty(len(by_old), np.int64)
        place[by_old] = np.arange(len(by_old))
        layout = Layout.of(
            units.group, units.stratum, units.block, rows.n_strata, lambda: np.stack(keys, axis=1)
        )
        paired = PairedRows(sorted_rows[0], sorted_rows[1], place[by_new])
        return cls(layout, weights, variance, n_bootstrap, paired, sign)

    def _of_words(self, words: NDArray[np.uint64], lanes: int) -> Estimates:
        value, variance = auc_changes_by_lane(words, self.rows, lanes)
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(self.sign * value[None], variance[None], size[None])

    def _resampled(
        self, in_first: NDArray[np.bool_], n: int, rng: np.random.Generator
    ) -> Estimates:
        words = same_in_all_lanes(in_first)
        values = []
        for _ in range(n):
            times = np.zeros(self.rows.old.n_units)
            for _, _, members in self.layout.members(in_first):
                drawn = rng.integers(len(members), size=len(members))
                times[members] = np.bincount(drawn, minlength=len(members))
            values.append(auc_changes_by_lane(words, self.rows.reweighted(times), 1)[0][0])
        value = self.sign * np.stack(values)[None]
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value, np.zeros(value.shape), size)
