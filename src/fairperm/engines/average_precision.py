"""The engine of the average precision of rows whose scores hardly repeat, or that have weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.auc.weighted import sort_weighted_rows
from fairperm.engines.estimates import Estimates
from fairperm.engines.kernels.average_precision import average_precision_by_lane
from fairperm.engines.kernels.sorted_rows import SortedRows
from fairperm.engines.units import Layout, UnitsEngine, resample_units
from fairperm.metrics.ranks import Precisions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fairperm.engines.sample import Rows
    from fairperm.metrics.definition import Variance

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AveragePrecisionEngine(UnitsEngine):
    """Average precision, and the sum of squared influences of rows or of whole clusters."""

    rows: SortedRows
    label_and_score: Array

    @classmethod
    def from_rows(
        cls, rows: Rows, weights: Array | None, variance: Variance | None, n_bootstrap: int
    ) -> AveragePrecisionEngine:
        """Sort by score inside strata; order units by their rows, not by their names."""
        rows, unit, units, keys = sort_weighted_rows(rows)
        layout = Layout.of(
            units.group, units.stratum, units.block, rows.n_strata, lambda: np.stack(keys, axis=1)
        )
        return cls(
            layout=layout,
            weights=weights,
            variance=variance,
            n_bootstrap=n_bootstrap,
            rows=sort_scores(rows, unit),
            label_and_score=rows.contributions,
        )

    def jackknife(self) -> Iterator[tuple[Estimates, NDArray[np.int64]]]:
        """Yield for each stratum's group the estimates without one of its units."""
        whole = self.observed()
        for s, g, members in self.layout.members(self.layout.in_first):
            cells = self.label_and_score[np.isin(self.rows.unit, members)]
            found = Precisions.by_score(np.ones(len(cells)), cells)
            value = found.value() - found.influences(cells)
            estimates = whole.replace_group(s, self.order[g], value[None], len(members) - 1)
            yield estimates, np.ones(len(members), np.int64)

    def _of_words(self, words: NDArray[np.uint64], lanes: int) -> Estimates:
        del lanes  # all are computed at once
        both = [average_precision_by_lane(one, self.rows) for one in (words, ~words)]
        value, squares = (np.stack(one, axis=-1) for one in zip(*both, strict=True))
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value[None], scale_squares(squares, size)[None], size[None])

    def _resampled(
        self, in_first: NDArray[np.bool_], n: int, rng: np.random.Generator
    ) -> Estimates:
        value = np.full((1, n, self.layout.n_strata, 2), np.nan)
        sides = []
        for s, g, members in self.layout.members(in_first):
            rows = np.flatnonzero(np.isin(self.rows.unit, members))
            if rows.size:
                sides.append((s, g, members, rows))
        times = np.zeros(len(in_first))
        for i in range(n):
            for s, g, members, rows in sides:
                times[members] = resample_units(len(members), rng)
                counts = self.rows.weight[rows] * times[self.rows.unit[rows]]
                found = Precisions.by_score(counts, self.label_and_score[rows])
                value[0, i, s, g] = found.value()
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value, np.zeros(value.shape), size)


def sort_scores(rows: Rows, unit: NDArray[np.int64]) -> SortedRows:
    """Return the walk up the scores of rows that are sorted by stratum and score."""
    label, score = rows.contributions.T
    return SortedRows.of(
        score,
        label > 0,
        rows.weight_of_each(),
        unit,
        rows.stratum,
        rows.n_strata,
        clustered=rows.cluster is not None,
    )


def scale_squares(squares: Array, size: Array) -> Array:
    """Return n/(n − 1) times the squared influences of n units; one has no variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size > 1, squares * (size / (size - 1)), np.nan)
