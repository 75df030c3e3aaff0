"""The engine protocol, and the choice of the fastest engine for a comparison, from the data alone.

Rows that repeat are counted, and permuting them is drawing counts; rows that hardly repeat are
units, each of which gets a label. A user's function has an engine of its own.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Protocol, cast

from fairperm._utils.arrays import Array
from fairperm.data.sample import Sample
from fairperm.engines.callables import CallableEngine
from fairperm.engines.counts import CellsEngine
from fairperm.engines.estimates import Estimates
from fairperm.engines.many_groups import ManyGroupsEngine
from fairperm.engines.resampling.shared_labels import Permuting
from fairperm.engines.sample import Cells, order_strata
from fairperm.metrics.callables import CallableMetric
from fairperm.metrics.changes import RankChange
from fairperm.metrics.definition import Metric, Variance, metrics_of_totals
from fairperm.metrics.ranks import RankMetric

if TYPE_CHECKING:
    import numpy as np

    Part = Metric | RankMetric | CallableMetric | RankChange

_FEW_CELLS = 16  # of a stratum: so few can always be drawn, and often enumerated
_FEW_COUNTS = 64  # of many groups: so few are always drawn
COUNT_COST = 50  # rows that a units engine visits in the time of drawing one count
MAX_ROWS = 1 << 24  # of rows that repeat, no more are taken one by one
_MAX_KINDS = 1 << 20  # of that many rows, so many distinct ones are counted, wherever they are
MERGEABLE = 20_000  # rows among which looking for equal ones costs nothing


class Engine(Permuting, Protocol):
    """Estimates of the sample and of its permutations, with the groups in the user's order.

    The ``seed`` of the observed estimates is that of a bootstrap variance.
    """

    @property
    def weights(self) -> Array | None:
        """Return the strata's weights."""

    @property
    def order(self) -> tuple[int, ...]:
        """Return the user's groups in the order of their sizes and rows, whatever their names."""

    @property
    def counts_per_draw(self) -> float:
        """Return how many counts one permutation is made of; infinite if not of counts."""

    @property
    def draw_error(self) -> float:
        """Return how many standard errors a draw may be off, if it is made from coarse bins."""

    def observed(self, seed: int = 0) -> Estimates:
        """Return the estimates of the sample itself: a block of one."""

    def pooled(self) -> Estimates:
        """Return the estimates of all groups as one, which no permutation changes."""

    def with_variance(self, variance: Variance | None) -> Engine:
        """Return the same engine of two groups with another variance."""

    def bootstrapped(self, n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` bootstrap samples of two groups."""

    def enumerated(self, n_resamples: int, *, by_sum: bool) -> tuple[Estimates, Array] | None:
        """Return the estimates of every permutation of two groups with its log-probability.

        None if they are too many.
        """


def choose_engine(
    parts: tuple[Part, ...],
    rows: Sample,
    weights: Array | None,
    groups: tuple[Hashable, ...],
    variance: Variance | None,
    n_bootstrap: int = 0,
    *,
    many: bool = False,
) -> Any:
    """Return the counts engine if rows repeat, else a units engine; a function has its own."""
    # Joint permutations of ``many`` groups need other random labels than those of two. Errors of a
    # user's function name one of the ``groups``.
    part, every = cast("tuple[Any, Any]", (parts[0], parts))
    can_count = part.has_counts and (many or (rows.weight is None and rows.cluster is None))
    cells = _cells(rows, weights, variance, many=many) if can_count else None
    if cells is not None:
        return CellsEngine(every, cells, variance, n_bootstrap)
    rows, weights = order_strata(rows.expand() if can_count else rows, weights)
    if part.is_function:
        return CallableEngine.from_rows(part, rows, weights, variance, n_bootstrap, groups)
    if many:
        return ManyGroupsEngine.from_rows(every, rows, weights, variance)
    # only engines of units load Numba
    if part.walk is None:
        from fairperm.engines.totals import TotalsEngine

        totalled = metrics_of_totals(parts)
        return TotalsEngine.from_rows(totalled, rows, weights, variance, n_bootstrap)
    from fairperm.engines.sorted_rows import SortedRowsEngine

    return SortedRowsEngine.from_rows(part, rows, weights, variance, n_bootstrap)


def _cells(
    rows: Sample, weights: Array | None, variance: Variance | None, *, many: bool
) -> Cells | None:
    """Return the counts of the distinct rows, if they are drawn faster than the rows."""
    n = rows.count.sum()
    if n > MAX_ROWS:
        rows = rows.merge_if_few(_MAX_KINDS)  # as a database would have counted them
    n_counts = len(rows.count) * (1 if many else 2)
    # rates have only a few kinds of row, and rows that a database counted may not fit into memory
    are_too_many = n > max(MAX_ROWS, 2 * len(rows.count))
    is_rate = variance is not None and variance.is_binomial
    must_count = not many and (is_rate or are_too_many)
    if must_count or len(rows.count) <= MERGEABLE or COUNT_COST * n_counts <= n:
        cells = Cells.count(rows, weights)
        size = cells.counts.size
        are_few = size <= _FEW_COUNTS if many else len(cells.block) <= _FEW_CELLS
        if must_count or are_few or COUNT_COST * size <= n:
            return cells.arrange(many=many)
    return None
