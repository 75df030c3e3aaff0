"""The engine of metrics of ranks: rows are sorted by score once, and every draw walks through them.

It serves rows whose scores hardly repeat, or that have weights or clusters. A metric names its
walk, and turns what the walk finds into its value and variance; all else is the same for all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Booleans, Codes, Integers, Places, Words
from fairperm._utils.sorting import order_by
from fairperm.data.sample import Sample
from fairperm.engines.estimates import Estimates
from fairperm.engines.kernels.auc import AucLayout, auc_by_lane
from fairperm.engines.kernels.average_precision import SortedRows, average_precision_by_lane
from fairperm.engines.kernels.one_versus_rest import ClassRows, one_versus_rest_by_lane
from fairperm.engines.kernels.paired_auc import PairedRows, auc_changes_by_lane
from fairperm.engines.kernels.weighted_auc import WeightedRows, weighted_auc_by_lane
from fairperm.engines.units import Layout, UnitsEngine, order_units, resample_units
from fairperm.metrics.changes import RankChange
from fairperm.metrics.definition import Variance, WalkKind
from fairperm.metrics.ranks import RankMetric

Walk = Callable[[Words, int, Array], tuple[Array, Array]]


GROUP_WALKS = {WalkKind.AVERAGE_PRECISION, WalkKind.ONE_VERSUS_REST}


@dataclass(frozen=True, slots=True)
class GroupWalk:
    """A walk of one group, whose variance is made of the influences of its rows."""

    # values and squared influences by lane and stratum, of the units with a bit
    find_one: Callable[..., tuple[Array, Array]]
    has_factors: bool  # whether squared influences have factors for the number of units

    @classmethod
    def of(cls, part: Any, rows: Sample, unit: Integers) -> GroupWalk:
        """Sort rows whose units are numbered by stratum."""
        if part.walk is WalkKind.AVERAGE_PRECISION:
            by_score = SortedRows.of(rows, unit)
            return cls(partial(average_precision_by_lane, rows=by_score), has_factors=False)
        classes, weighted = ClassRows.of(rows, unit), part.is_weighted
        return cls(partial(one_versus_rest_by_lane, rows=classes, weighted=weighted), True)

    def find_variance(self, squares: Array, sizes: Array) -> Array:
        """Return the variance from the squared influences of so many units; one has none."""
        if self.has_factors:
            return squares
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(sizes > 1, squares * (sizes / (sizes - 1)), np.nan)

    def find_both(self, words: Words, lanes: int, sizes: Array) -> tuple[Array, Array]:
        """Walk for both groups."""
        both = [self.find_one(one, lanes=lanes) for one in (words, ~words)]
        value, squares = (np.stack(one, axis=-1) for one in zip(*both, strict=True))
        return value, self.find_variance(squares, np.broadcast_to(sizes, value.shape))


def _make_walk(part: RankMetric | RankChange, rows: Sample, unit: Integers) -> Walk:
    """Sort the rows by each score of the metric."""
    if part.walk in GROUP_WALKS:
        return GroupWalk.of(part, rows, unit).find_both
    if part.walk is WalkKind.AUC:
        return _all_lanes(partial(weighted_auc_by_lane, rows=walk_weighted_rows(rows, unit)))
    label, old, new = rows.contributions.T
    by_new, by_old = (
        order_by([rows.stratum, score, label, rows.weight_of_each(), unit]) for score in (new, old)
    )
    of_new = walk_weighted_rows(rows.take(by_new), unit[by_new], 2)
    of_old = walk_weighted_rows(rows.take(by_old), unit[by_old], 1)
    paired = PairedRows.build(of_new, of_old, by_new, by_old)
    return _all_lanes(partial(auc_changes_by_lane, rows=paired))


def _all_lanes(walk: Callable[[Words], tuple[Array, Array]]) -> Walk:
    """Return a walk that fills in all lanes."""
    return lambda words, _lanes, _sizes: walk(words)


@dataclass(frozen=True, slots=True)
class SortedRowsEngine(UnitsEngine):
    """Estimates from walks through sorted rows, of which whole clusters change groups."""

    part: RankMetric | RankChange  # the metric
    walk: Walk  # the walk through the rows
    # of each row; no weights if all are one
    contributions: Array
    weight: Array | None = None
    # the row of each unit if all have only one, else the unit of each row
    row: Codes | None = None
    unit: Integers | None = None

    @classmethod
    def from_rows(
        cls,
        part: RankMetric | RankChange,
        rows: Sample,
        weights: Array | None,
        variance: Variance | None,
        n_bootstrap: int,
    ) -> SortedRowsEngine:
        """Sort by score inside strata: neither the user's order of rows nor names matter."""
        if part.walk is WalkKind.AUC and rows.weight is None and rows.cluster is None:
            return cls._from_plain_rows(part, rows, weights, variance, n_bootstrap)
        rows, unit, units, keys = sort_rows(rows, label_first=part.walk is WalkKind.AUC_CHANGE)
        layout = Layout.of(
            units.group, units.stratum, units.block, rows.n_strata, lambda: np.stack(keys, axis=1)
        )
        return cls(
            layout=layout,
            weights=weights,
            variance=variance,
            n_bootstrap=n_bootstrap,
            part=part,
            walk=_make_walk(part, rows, unit),
            contributions=rows.contributions,
            weight=rows.weight,
            unit=unit,
        )

    @classmethod
    def _from_plain_rows(
        cls,
        part: RankMetric | RankChange,
        rows: Sample,
        weights: Array | None,
        variance: Variance | None,
        n_bootstrap: int,
    ) -> SortedRowsEngine:
        """Sort rows of an AUC that are units, of which there may be millions: without a copy."""
        label, score = rows.contributions.T
        sorted_units = AucLayout.build(
            score, label > 0, rows.stratum, rows.n_strata, within_label=bool(rows.block.any())
        )
        order = sorted_units.order
        layout = Layout.of(
            rows.group[order],
            rows.stratum[order],
            rows.block[order],
            rows.n_strata,
            lambda: rows.contributions[order],
        )
        centres = sorted_units.centres(float(layout.in_first.mean()))
        return cls(
            layout=layout,
            weights=weights,
            variance=variance,
            n_bootstrap=n_bootstrap,
            part=part,
            walk=_all_lanes(partial(auc_by_lane, layout=sorted_units, centres=centres)),
            contributions=rows.contributions,
            row=order,
        )

    def _of_words(self, words: Words, lanes: int) -> Estimates:
        found = self.walk(words, lanes, self.layout.sizes)
        value, variance = self.part.of_walk(*found)
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value[None], variance[None], size[None])

    def _resampled(self, in_first: Booleans, n: int, rng: np.random.Generator) -> Estimates:
        value = np.full((1, n, self.layout.n_strata, 2), np.nan)
        sides = []
        for s, g, members in self.layout.members(in_first):
            rows, unit = self._rows_of(members)
            if rows.size:
                weight = 1.0 if self.weight is None else self.weight[rows]
                value_of = self.part.value_of_counts(self.contributions[rows])
                sides.append((s, g, members, unit, weight, value_of))
        times = np.zeros(len(in_first))
        pairs = itertools.product(range(n), range(len(sides)))
        draws = sorted(pairs, key=lambda pair: pair[::-1] if self.unit is None else pair)
        for i, side in draws:  # of plain rows, one group after the other
            s, g, members, unit, weight, value_of = sides[side]
            times[members] = resample_units(len(members), rng)
            value[0, i, s, g] = value_of(weight * times[unit])
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value, np.zeros(value.shape), size)

    def _rows_of(self, members: Places) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows of some units, and the unit of each."""
        if self.unit is None:
            return members if self.row is None else self.row[members], members
        rows = np.flatnonzero(np.isin(self.unit, members))
        return rows, self.unit[rows]


def sort_rows(
    rows: Sample, *, label_first: bool = False
) -> tuple[Sample, Integers, Sample, list[Array]]:
    """Return the rows by score inside strata, their units, a row of each unit, and its keys."""
    # Units are ordered by their rows, not by their names. Rows of two scores have the label
    # first.
    rows = rows.expand()
    columns = rows.contributions.T[:: 1 if label_first else -1]
    rows = rows.take(order_by([rows.stratum, *columns, rows.weight_of_each(), rows.group]))
    weight = rows.weight_of_each()
    cluster = np.arange(len(weight)) if rows.cluster is None else rows.cluster
    unit, first, keys = order_units(rows, weight, cluster)
    units = rows.take(first)
    if rows.cluster is not None:  # equal rows in the order of their units
        again = order_by([rows.stratum, *rows.contributions.T[::-1], weight, unit])
        rows, unit = rows.take(again), unit[again]
    return rows, unit, units, keys


def walk_weighted_rows(rows: Sample, unit: Integers, score: int = 1) -> WeightedRows:
    """Return the walk up one of the scores of rows that are sorted by it."""
    return WeightedRows.build(
        rows.contributions[:, score],
        rows.contributions[:, 0] > 0,
        rows.weight_of_each(),
        unit,
        rows.stratum,
        rows.n_strata,
        is_clustered=rows.cluster is not None,
    )
