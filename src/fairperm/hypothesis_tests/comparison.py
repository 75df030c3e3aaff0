"""The rows of the groups that a test compares, and their totals for its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Codes, Places
from fairperm._utils.formatting import drop_decimals
from fairperm._utils.pieces import split_rows
from fairperm._utils.progress import waiting
from fairperm.data.sample import Sample
from fairperm.engines.binned import BinnedEngine
from fairperm.engines.choice import Engine, choose_engine
from fairperm.engines.estimates import Estimates, is_contrast
from fairperm.engines.resampling.blocks import Resampling
from fairperm.errors import Note, argument, shown
from fairperm.hypothesis_tests.comparison_checks import (
    check_rows,
    find_compared_strata,
    read_stratum_weights,
)
from fairperm.metrics.definition import AnyMetric, Metric, Variance
from fairperm.metrics.ranks import RankMetric

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.plan import Plan


_MAX_BINNING_ERROR_IN_SE = 0.1
_OTHER = 255  # place of groups that are not compared


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows of two or more groups, their contributions to a metric, and the strata's weights."""

    metric: AnyMetric
    # The rows of the strata that are compared, and these strata's weights. Other strata change no
    # draw and no number of the test.
    rows: Sample
    weights: Array | None
    # the places of these strata among those of the table
    strata: Places = field(default_factory=lambda: np.zeros(1, np.intp))
    # the comparison of all strata, which describes the groups; None if all are compared
    every: Comparison | None = None

    @classmethod
    def of(
        cls,
        table: Sample,
        plan: Plan,
        groups: tuple[Hashable, ...],
        stratum_weights: object,
        *,
        all_strata: bool = False,
    ) -> Comparison:
        """Choose the rows of these groups. Raises InputError if they cannot be compared."""
        # with ``all_strata``, those that cannot be compared are kept
        place = np.full(len(table.groups), _OTHER, np.uint8)
        place[[table.groups.index(one) for one in groups]] = np.arange(len(groups))
        side = place[table.group]
        wanted = side != _OTHER
        chosen: Places | slice = slice(None) if wanted.all() else np.flatnonzero(wanted)
        weights = None
        if stratum_weights is not None:
            weights = read_stratum_weights(table, stratum_weights)
        every = cls._of_rows(table, plan, groups, side, chosen, weights)
        if all_strata or every.rows.n_strata == 1:
            return every
        compared = find_compared_strata(table, plan.metric, plan.scheme, groups, weights)
        kept = compared[table.stratum[chosen]]
        if kept.all() or not kept.any():  # without any, the check of strata raises an error
            return every
        chosen = np.arange(len(side))[chosen][kept]
        comparison = cls._of_rows(table, plan, groups, side, chosen, weights)
        return replace(comparison, every=every)

    @classmethod
    def _of_rows(
        cls,
        table: Sample,
        plan: Plan,
        groups: tuple[Hashable, ...],
        side: NDArray[np.uint8],
        chosen: Places | slice,
        weights: Array | None,
    ) -> Comparison:
        rows = table.take(chosen)
        present, stratum = _present(rows.stratum, len(table.strata))
        if not rows.contributions.size:
            added = _contributions(plan.metric.parts, rows.columns)
            rows = replace(rows, contributions=added)
        rows = replace(
            rows,
            group=side[chosen],
            groups=groups,
            stratum=stratum,
            strata=tuple(table.strata[one] for one in present),
            block=plan.scheme.block(plan.metric, rows.columns),
        )
        check_rows(rows, plan.metric, table, groups)
        weights = None if weights is None else weights[present]
        return cls(plan.metric, rows, weights, present)

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The groups that are compared, in the user's order."""
        return self.rows.groups

    @property
    def whole(self) -> Comparison:
        """The comparison of all strata, also of those that cannot be compared."""
        return self if self.every is None else self.every

    @property
    def n_strata(self) -> int:
        """The number of all strata."""
        return self.whole.rows.n_strata

    @property
    def parts(self) -> tuple[Metric | RankMetric, ...]:
        """The metrics whose gaps are compared: one, or those of a joint metric."""
        return self.metric.parts

    def engine(
        self, variance: Variance | None, n_bootstrap: int = 0, *, many: bool = False
    ) -> Engine:
        """Return the engine of two groups, or of ``many``."""
        units, weights = self.units(), self.weights
        if self.rows.bins is not None and weights is None:
            binned = BinnedEngine.of(self.parts, units, variance, n_bootstrap, many=many)
            if binned is not None:
                return binned
        given = self.parts, units, weights, self.groups, variance, n_bootstrap
        chosen: Engine = choose_engine(*given, many=many)
        return chosen

    def unstratified(self) -> Comparison:
        """Return the comparison of all rows, with all strata as one."""
        rows = self.whole.rows
        rows = replace(rows, stratum=np.zeros_like(rows.stratum), strata=("all",))
        return replace(self, rows=rows, weights=None, every=None)

    def units(self) -> Sample:
        """Return the rows; if the metric has totals, those of a cluster or with weights as sums."""
        if self.rows.weight is None and self.rows.cluster is None:
            return self.rows
        has_totals = all(part.has_totals for part in self.parts)
        return self.rows.sum_units() if has_totals else self.rows.separate_clusters()

    def merge_strata(self, estimates: Estimates, variance: Variance | None) -> Estimates:
        """Return the estimates of all strata as one, in the user's order of the groups."""
        if self.n_strata == 1:
            return estimates
        engine = self.unstratified().engine(variance)
        return engine.observed()

    def by_group(self, values: Array) -> dict[Hashable, Any]:
        """Return values by part and group as one number for each group, or one for each part."""
        if len(values) == 1:
            return {group: float(one) for group, one in zip(self.groups, values[0], strict=True)}
        return {
            group: {
                part.name: float(both[side]) for part, both in zip(self.parts, values, strict=True)
            }
            for side, group in enumerate(self.groups)
        }

    def scale(self, observed: Estimates) -> Array:
        """Return the size of each part's values, to which rounding errors are relative."""
        spans = np.array([part.span for part in self.parts])
        sizes = np.nanmax(np.abs(observed.value), axis=(1, 2, 3))
        return np.where(np.isfinite(spans), spans, sizes)

    def totals(self) -> dict[Hashable, dict[str, float]]:
        """Return the number of rows of each group, and the totals that its value is made of."""
        # With weights there are two of each: "numerator" counts rows, and "weighted numerator" is
        # the sum of their weights. "weight" is that of all rows.
        rows = self.rows
        counts: dict[str, tuple[NDArray[Any], ...]] = {"": (rows.count,)}
        if rows.weight is not None:
            counts["weighted "] = (rows.count, rows.weight)
        names = [(part.name, name) for part in self.parts for name in part.contributions]
        totals = {"rows": self.total(*counts[""])}
        if rows.cluster is not None:
            totals["clusters"] = np.array(count_clusters(rows, len(self.groups)))
        if rows.weight is not None:
            totals["weight"] = self.total(*counts["weighted "])
        for (part, name), column in zip(names, rows.contributions.T, strict=False):
            if name != "rows" and not name.startswith("_"):
                full_name = f"{part} {name}" if len(self.parts) > 1 else name
                for prefix, count in counts.items():
                    totals[prefix + full_name] = self.total(*count, column)
        return {
            group: {name: _as_count(total[side]) for name, total in totals.items()}
            for side, group in enumerate(self.groups)
        }

    def total(self, *factors: NDArray[Any]) -> Array:
        """Return by group the sum over its rows of the product of these columns."""
        # it is rounded once: the order of rows changes no digit
        side, n_groups = self.rows.group, len(self.groups)
        pieces = split_rows(len(side))

        def multiply(piece: slice) -> Array:
            return np.asarray(math.prod(factor[piece] for factor in factors), np.float64)

        if all((np.floor(values) == values).all() for values in map(multiply, pieces)):
            sums = np.zeros(n_groups)
            for piece in pieces:
                sums += np.bincount(side[piece], multiply(piece), n_groups)
            return sums

        def list_of(group: int) -> Iterator[list[float]]:
            for piece in pieces:
                values = multiply(piece)
                yield values[(side[piece] == group) & (values != 0)].tolist()

        return np.array([math.fsum(chain.from_iterable(list_of(g))) for g in range(n_groups)])

    def binning_errors(self) -> Array | None:
        """Return a bound on the error of each group's value from putting scores into bins."""
        # with strata, it is the largest bound of a stratum or of all rows; twice that if strata are
        # subtracted from others
        if self.rows.bins is None or len(self.parts) > 1 or "y_score" not in self.parts[0].columns:
            return None
        rows, n_groups = self.rows, len(self.groups)
        count = rows.count.astype(np.float64) * (1.0 if rows.weight is None else rows.weight)
        group, stratum = rows.group.astype(np.intp), rows.stratum.astype(np.intp)
        bound = partial(self.rows.bins.bound_errors, self.parts[0], rows.columns, count)
        by_stratum = bound(group + n_groups * stratum, n_groups * rows.n_strata)
        every = np.vstack([by_stratum.reshape(-1, n_groups), bound(group, n_groups)])
        largest: Array = np.nanmax(every, axis=0)
        return 2 * largest if is_contrast(self.weights) else largest

    def note_bins(self, bounds: Array | None, error: Array) -> list[str]:
        """Return a note if bins of scores may have moved the gap noticeably."""
        # ``bounds`` are the binning errors. ``error`` is the standard error of the gap, or those of
        # the groups' values, which are then compared one by one.
        if bounds is None:
            return []
        is_gap = error.size == 1
        moved = np.array([bounds.sum()]) if is_gap else bounds
        if not (moved > _MAX_BINNING_ERROR_IN_SE * error).any():
            return []
        worst = int(np.argmax(moved - _MAX_BINNING_ERROR_IN_SE * error))
        group = shown(drop_decimals(self.groups[worst]))
        what = "the gap" if is_gap else f"the value of group {group}"
        return [
            Note(
                f"Scores were put into bins, which may have moved {what} by up to "
                f"{moved[worst]:.2g}; its standard error is {error[worst]:.2g}. "
                f"More {argument('score_bins')} make it smaller."
            )
        ]


def count_clusters(rows: Sample, n_groups: int) -> list[int | None]:
    """Return the number of clusters in each group; None without clusters."""
    if rows.cluster is None:
        return [None] * n_groups
    alike = np.ones(len(rows.cluster), np.int64) if rows.alike is None else rows.alike
    counts: list[int | None] = []
    for side in range(n_groups):
        is_known = rows.probabilities is None  # else rows are of all groups, by their shares
        mine = np.flatnonzero(rows.group == (side if is_known else 0))
        _, first = np.unique(rows.cluster[mine], return_index=True)
        counts.append(int(alike[mine[first]].sum()))
    return counts


def _contributions(
    parts: Sequence[Metric | RankMetric], columns: Mapping[str, NDArray[Any]]
) -> Array:
    """Return what each row contributes to the parts."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        matrices = [part.checked_matrix(columns) for part in parts]
    return matrices[0] if len(matrices) == 1 else np.hstack(matrices)


def _present(stratum: Codes, n_strata: int) -> tuple[Places, Codes]:
    """Return the strata that have rows, and each row's place among them."""
    if n_strata == 1:
        return np.zeros(1, np.intp), stratum
    present, inverse = np.unique(stratum, return_inverse=True)
    return present.astype(np.intp), inverse.ravel()


def _as_count(total: float) -> float:
    """Return a whole number as an integer."""
    return int(total) if float(total).is_integer() else float(total)


def observe(make_engine: Callable[[], Engine], resampling: Resampling) -> tuple[Engine, Estimates]:
    """Return the engine of a comparison, and its estimates of the sample."""
    with waiting("preparing (the first time on a machine, compiling)", resampling.progress):
        engine = make_engine()
        return engine, engine.observed(resampling.seed)
