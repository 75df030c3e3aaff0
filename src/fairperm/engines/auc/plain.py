"""The engine of the AUC of rows whose scores hardly repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.estimates import Estimates
from fairperm.engines.kernels.auc import AucLayout, auc_by_lane
from fairperm.engines.units import Layout, UnitsEngine, resample_units
from fairperm.metrics.ranks import SortedCells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.engines.sample import Rows
    from fairperm.metrics.definition import Variance
    from fairperm.metrics.ranks import AreaUnderCurve

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RankEngine(UnitsEngine):
    """AUC and DeLong's variance, from scores that are sorted once."""

    part: AreaUnderCurve
    auc_layout: AucLayout
    centres: Array
    label_and_score: Array

    @classmethod
    def from_rows(
        cls,
        part: AreaUnderCurve,
        rows: Rows,
        weights: Array | None,
        variance: Variance | None,
        n_bootstrap: int,
    ) -> RankEngine:
        """Sort by score inside strata and blocks: the user's order of rows must not matter."""
        positive, score = rows.contributions[:, 0] > 0, rows.contributions[:, 1]
        auc_layout = AucLayout.build(
            score, positive, rows.stratum, rows.n_strata, within_label=bool(rows.block.any())
        )
        order = auc_layout.order
        layout = Layout.of(
            rows.group[order],
            rows.stratum[order],
            rows.block[order],
            rows.n_strata,
            lambda: rows.contributions[order],
        )
        return cls(
            part=part,
            layout=layout,
            weights=weights,
            variance=variance,
            n_bootstrap=n_bootstrap,
            auc_layout=auc_layout,
            centres=auc_layout.centres(float(layout.in_first.mean())),
            label_and_score=rows.contributions,
        )

    def _of_words(self, words: NDArray[np.uint64], lanes: int) -> Estimates:
        del lanes  # all are computed at once
        value, variance = auc_by_lane(words, self.auc_layout, self.centres)
        size = np.broadcast_to(self.layout.sizes, value.shape)
        value, variance = self.part.of_auc(value), self.part.slope**2 * variance
        return Estimates(value[None], variance[None], size[None])

    def _resampled(
        self, in_first: NDArray[np.bool_], n: int, rng: np.random.Generator
    ) -> Estimates:
        value = np.full((1, n, self.layout.n_strata, 2), np.nan)
        for s, g, members in self.layout.members(in_first):
            if not members.size:
                continue
            cells = SortedCells.of(self._cells(members))
            for i in range(n):
                times = resample_units(len(members), rng)
                value[0, i, s, g] = cells.components(times).value()
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(self.part.of_auc(value), np.zeros(value.shape), size)

    def _cells(self, members: NDArray[np.intp]) -> Array:
        """Return the labels and scores of some units."""
        return self.label_and_score[self.auc_layout.order[members]]
