"""The engine of metrics of ranks whose variance is made of the influences of rows.

It serves rows whose scores hardly repeat, or that have weights or clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fairperm._utils.sorting import order_by
from fairperm.engines.auc.weighted import sort_weighted_rows
from fairperm.engines.estimates import Estimates
from fairperm.engines.kernels.average_precision import average_precision_by_lane
from fairperm.engines.kernels.one_versus_rest import ClassRows, one_versus_rest_by_lane
from fairperm.engines.kernels.sorted_rows import SortedRows
from fairperm.engines.units import Layout, UnitsEngine, resample_units
from fairperm.metrics.one_versus_rest import OneVersusRest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.engines.sample import Rows
    from fairperm.metrics.definition import Variance
    from fairperm.metrics.ranks import InfluenceMetric

    Array = NDArray[np.float64]
    Words = NDArray[np.uint64]


class Walk(Protocol):
    """Rows in the order of their scores, through which 64 choices of a group walk at once."""

    def find_values(self, words: Words, lanes: int) -> tuple[Array, Array]:
        """Return values and squared influences by lane and stratum, of the units with a bit."""

    def find_variance(self, squares: Array, size: Array) -> Array:
        """Return the variance from the squared influences of so many units."""


@dataclass(frozen=True, slots=True)
class PrecisionWalk:
    """The walk of an average precision."""

    rows: SortedRows

    def find_values(self, words: Words, lanes: int) -> tuple[Array, Array]:
        """Return values and squared influences by lane and stratum, of the units with a bit."""
        return average_precision_by_lane(words, self.rows, lanes)

    def find_variance(self, squares: Array, size: Array) -> Array:
        """Return n/(n − 1) times the squared influences of n units; one has no variance."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size > 1, squares * (size / (size - 1)), np.nan)


@dataclass(frozen=True, slots=True)
class ClassWalk:
    """The walks of an AUC of each class against the rest."""

    rows: ClassRows
    is_weighted: bool

    def find_values(self, words: Words, lanes: int) -> tuple[Array, Array]:
        """Return values and squared influences by lane and stratum, of the units with a bit."""
        return one_versus_rest_by_lane(words, self.rows, lanes, weighted=self.is_weighted)

    def find_variance(self, squares: Array, size: Array) -> Array:
        """Return the squares, whose factors depend on the number of units of each class."""
        del size
        return squares


def make_walk(part: InfluenceMetric, rows: Rows, unit: NDArray[np.int64]) -> Walk:
    """Return the walk of rows whose units are numbered by stratum."""
    if isinstance(part, OneVersusRest):
        return ClassWalk(ClassRows.of(rows, unit), part.is_weighted)
    order = order_by([rows.stratum, rows.contributions[:, 1]])
    rows, unit = rows.take(order), unit[order]
    label, score = rows.contributions.T
    return PrecisionWalk(
        SortedRows.of(
            score,
            label > 0,
            rows.weight_of_each(),
            unit,
            rows.stratum,
            rows.n_strata,
            clustered=rows.cluster is not None,
        )
    )


@dataclass(frozen=True, slots=True)
class InfluenceEngine(UnitsEngine):
    """Values, and the squared influences of rows or of whole clusters."""

    part: InfluenceMetric
    walk: Walk
    contributions: Array
    weight: Array
    unit: NDArray[np.int64]

    @classmethod
    def from_rows(
        cls,
        part: InfluenceMetric,
        rows: Rows,
        weights: Array | None,
        variance: Variance | None,
        n_bootstrap: int,
    ) -> InfluenceEngine:
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
            part=part,
            walk=make_walk(part, rows, unit),
            contributions=rows.contributions,
            weight=rows.weight_of_each(),
            unit=unit,
        )

    def _of_words(self, words: Words, lanes: int) -> Estimates:
        both = [self.walk.find_values(one, lanes) for one in (words, ~words)]
        value, squares = (np.stack(one, axis=-1) for one in zip(*both, strict=True))
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value[None], self.walk.find_variance(squares, size)[None], size[None])

    def _resampled(
        self, in_first: NDArray[np.bool_], n: int, rng: np.random.Generator
    ) -> Estimates:
        value = np.full((1, n, self.layout.n_strata, 2), np.nan)
        sides = []
        for s, g, members in self.layout.members(in_first):
            rows = np.flatnonzero(np.isin(self.unit, members))
            if rows.size:
                sides.append((s, g, members, rows))
        times = np.zeros(len(in_first))
        for i in range(n):
            for s, g, members, rows in sides:
                times[members] = resample_units(len(members), rng)
                counts = self.weight[rows] * times[self.unit[rows]]
                value[0, i, s, g] = self.part.estimate(counts, self.contributions[rows])[0]
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value, np.zeros(value.shape), size)
