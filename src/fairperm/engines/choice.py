"""Which engine computes a comparison: the one that is faster, never the one that is named."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from fairperm.engines.callables import CallableEngine
from fairperm.engines.counts import CellsEngine
from fairperm.engines.resampling.shared_labels import Permuting
from fairperm.engines.sample import Cells, by_content
from fairperm.metrics.callables import CallableMetric
from fairperm.metrics.definition import Metric
from fairperm.metrics.variances import Variance

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from fairperm.engines.estimates import Estimates
    from fairperm.engines.sample import Rows
    from fairperm.metrics.ranks import RankMetric

    Array = NDArray[np.float64]
    Part = Metric | RankMetric | CallableMetric

_FEW_CELLS = 16  # so few can always be drawn, and often enumerated
_CELL_COST = 100  # rows that the units engine visits in the time of drawing one cell's count
_MOST_ROWS = 1 << 24  # of rows that repeat, no more are taken one by one
_MERGEABLE = 20_000  # rows among which looking for equal ones costs nothing


class Engine(Permuting, Protocol):
    """What every engine does: estimates of the sample, of permutations and of resamples."""

    @property
    def weights(self) -> Array | None:
        """Return the strata's weights."""

    @property
    def swapped(self) -> bool:
        """Tell whether the engine's first group is the user's second."""

    def with_variance(self, variance: Variance | None) -> Engine:
        """Return the same engine with another variance."""

    def observed(self, rng: np.random.Generator) -> Estimates:
        """Return the estimates of the sample itself: a block of one."""

    def bootstrapped(self, n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` bootstrap samples."""

    def enumerated(
        self, n_resamples: int, *, by_sum: bool, rng: np.random.Generator
    ) -> tuple[Estimates, Array] | None:
        """Return the estimates of every permutation with its log-probability, if few enough."""


class Jackknifing(Engine, Protocol):
    """An engine of rows without weights and clusters, which can go without one of them."""

    def left_out(self) -> Iterator[tuple[Estimates, NDArray[np.int64]]]:
        """Yield for each sample the estimates without one of its rows, and how many are so."""


def choose_engine(
    parts: tuple[Part, ...],
    rows: Rows,
    weights: Array | None,
    variance: Variance | None,
    n_bootstrap: int,
    names: tuple[str, ...],
) -> Engine:
    """Return the counts engine if rows repeat, else a units engine; a function has its own.

    ``names`` are the groups', for what a function may do wrong in one of them.
    """
    if isinstance(parts[0], CallableMetric):
        return CallableEngine.from_rows(parts[0], rows, weights, variance, n_bootstrap, names)
    built_in = tuple(part for part in parts if not isinstance(part, CallableMetric))
    if rows.weight is not None or rows.cluster is not None:
        from fairperm.engines.weighted_ranks import WeightedRankEngine

        rows, weights = by_content(rows, weights)
        return WeightedRankEngine.from_rows(rows, weights, variance, n_bootstrap)
    n = rows.count.sum()
    # rates have no more than a few kinds of row; and rows that were counted where they are may be
    # more than fit into memory
    are_too_many = n > max(_MOST_ROWS, 2 * len(rows.count))
    in_cells = are_too_many or (variance is not None and variance.is_binomial)
    if in_cells or len(rows.count) <= _MERGEABLE or _CELL_COST * len(rows.count) <= n:
        cells = Cells.from_rows(rows, weights)
        n_cells = cells.counts.shape[0] * cells.counts.shape[2]
        if in_cells or len(cells.block) <= _FEW_CELLS or _CELL_COST * n_cells <= n:
            return CellsEngine(built_in, cells, variance, n_bootstrap)
    rows, weights = by_content(rows.expanded(), weights)
    return _units_engine(built_in, rows, weights, variance, n_bootstrap)


def counts_in_a_draw(engine: Engine) -> float:
    """Return how many counts one permutation is made of; infinite if not of counts."""
    if not isinstance(engine, CellsEngine):
        return math.inf
    resamples = engine.n_bootstrap if engine.variance == Variance.BOOTSTRAP else 0
    return engine.sample.counts.size * (1 + resamples)


def _units_engine(
    parts: tuple[Metric | RankMetric, ...],
    rows: Rows,
    weights: Array | None,
    variance: Variance | None,
    n_bootstrap: int,
) -> Engine:
    """Return the engine of rows that hardly repeat; only it loads Numba."""
    contributing = tuple(part for part in parts if isinstance(part, Metric))
    if contributing:
        from fairperm.engines.totals import TotalsEngine

        return TotalsEngine.from_rows(contributing, rows, weights, variance, n_bootstrap)
    from fairperm.engines.ranks import RankEngine

    return RankEngine.from_rows(rows, weights, variance, n_bootstrap)
