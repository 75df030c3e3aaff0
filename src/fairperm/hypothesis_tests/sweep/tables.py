"""Rows between neighbouring thresholds, and the confusion tables at all thresholds at once.

Rows that no threshold tells apart are one kind. Permuting labels draws how many of each kind the
smaller group gets, once for all thresholds and all metrics; adding up the kinds above a threshold
gives the confusion table there. So draws are joint, and a sweep costs hardly more than one test.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairperm._utils.arrays import Array, Booleans, Integers, Places
from fairperm.data.sample import Sample
from fairperm.engines.counts import CellsEngine
from fairperm.engines.estimates import Gaps
from fairperm.engines.resampling import blocks, draws
from fairperm.engines.sample import Cells
from fairperm.metrics.definition import ONE_ROW_OF_EACH, Metric, Variance

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.plan import Plan

    Confusion = tuple[
        Integers, Integers, Integers, Integers
    ]  # tn, fp, fn, tp; cuts on the last axis

_TABLES_AT_ONCE = 1 << 14  # of confusion counts in a block of draws: in cache, four times faster


def cut_rows(table: Sample, pair: tuple[Hashable, Hashable], cuts: Array) -> tuple[Sample, Places]:
    """Count the rows of two groups between neighbouring cuts.

    Returns the table, whose column "interval" numbers the intervals that have rows, in ascending
    order of scores, and for each cut how many of them lie below it. Every interval is there with
    both labels, if need be with a count of zero.
    """
    first, second = (table.group == table.groups.index(one) for one in pair)
    chosen = np.flatnonzero(first | second)
    label, score = table.columns["y_true"][chosen], table.columns["y_score"][chosen]
    counts = np.zeros((len(table.strata), 2, 2, len(cuts) + 1), np.int64)
    side = second[chosen].view(np.uint8)
    reached = np.searchsorted(cuts, score, side="right")  # cuts that are not above the score
    kind = (table.stratum[chosen], side, label.view(np.uint8), reached)
    np.add.at(counts, kind, table.count[chosen])

    has_rows = counts.any(axis=(0, 1, 2))
    counts = counts[..., has_rows]
    listed = counts > 0
    listed[counts.any(axis=(1, 2, 3)).argmax(), 0] = True
    stratum, group, positive, interval = np.nonzero(listed)
    rows = table.with_rows(
        columns={"y_true": positive == 1, "interval": interval, "y_pred": interval > 0},
        group=group,
        stratum=stratum,
        count=counts[listed],
        groups=pair,
    )
    return rows, np.cumsum(has_rows, dtype=np.intp)[:-1]


@dataclass(frozen=True, slots=True)
class Cuts:
    """The kinds of row, negatives before positives and each by ascending interval of scores."""

    sample: Cells
    # The confusion counts of the sample by cut, stratum, group and cell. Cuts are all there are:
    # below the first interval, between any two, above the last. The inner ones are those that leave
    # predictions to chance.
    tables: Integers

    @classmethod
    def from_rows(cls, rows: Sample, weights: Array | None) -> Cuts:
        """Merge the rows by label and interval, with groups and strata ordered by their counts."""
        columns = {name: rows.columns[name] for name in ("y_true", "interval")}
        kinds = np.column_stack(list(columns.values())).astype(np.float64)
        sample = Cells.from_rows(replace(rows, columns=columns, contributions=kinds), weights)
        return cls(sample, np.moveaxis(np.stack(_confusion(sample.counts), axis=-1), 2, 0))

    @property
    def n_strata(self) -> int:
        """Return the number of strata with rows."""
        return len(self.sample.counts)

    @property
    def n_intervals(self) -> int:
        """Return the number of intervals of scores with rows."""
        return int(self.sample.counts.shape[-1]) // 2

    @property
    def block_size(self) -> int:
        """Return the number of draws that are made at once, from one random stream."""
        tables = self.n_strata * (self.n_intervals + 1)
        return max(1, min(blocks.BLOCK, _TABLES_AT_ONCE // tables))

    def permuted(self, n: int, rng: np.random.Generator) -> Confusion:
        """Return the first group's confusion counts by draw, stratum and inner cut."""
        # the second group has what is left
        counts, totals = self.sample.counts, self.sample.counts.sum(axis=1)
        first = np.empty((n, *totals.shape), np.int64)
        for s, stratum in enumerate(counts):
            for cells in self.sample.blocks():
                size = int(stratum[0, cells].sum())
                first[:, s, cells] = draws.random_subset(totals[s, cells], size, n, rng)
        tn, fp, fn, tp = (cell[..., 1:-1] for cell in _confusion(first))
        return tn, fp, fn, tp

    def engine(self, metric: Metric, variance: Variance | None) -> CellsEngine:
        """Return the engine that estimates the metric in confusion tables of these rows."""
        confusion = Cells(
            counts=self.tables[0],
            contributions=metric.matrix(ONE_ROW_OF_EACH),
            block=np.zeros(4, np.uint8),
            weights=self.sample.weights,
            order=self.sample.order,
        )
        return CellsEngine((metric,), confusion, variance)


def _confusion(counts: Integers) -> Confusion:
    """Return the confusion counts at every cut, from counts of negatives and of positives."""
    # A row is predicted positive if its interval lies above the cut
    by_label = counts.reshape(*counts.shape[:-1], 2, -1)
    below = np.zeros((*by_label.shape[:-1], by_label.shape[-1] + 1), np.int64)
    np.cumsum(by_label, axis=-1, out=below[..., 1:])
    above = below[..., -1:] - below
    return below[..., 0, :], above[..., 0, :], below[..., 1, :], above[..., 1, :]


class CutGaps(NamedTuple):
    """The gap at each cut, the error that it is studentized by, the statistic, the gap's skewness.

    The statistic is without the skewness of the gap, which is zero if it is left in.
    """

    difference: Array
    error: Array
    statistic: Array
    skewness: Array


@dataclass(frozen=True, slots=True)
class Line:
    """The statistic of a rate whose denominators no permutation changes, by inner cut.

    Its error then stays as in the sample, and its gap is linear in the first group's counts.
    """

    counted: Places  # which cells of a confusion table the rate counts
    expected: Array  # how many of their rows the first group has on average, by stratum and cut
    slope: Array  # what one row more adds to the statistic: as ``expected``

    @classmethod
    def of(cls, engine: CellsEngine, tables: Integers, error: Array) -> Line:
        """Find the line at the cuts of these tables of the sample, with their errors."""
        counted, among = (np.flatnonzero(column) for column in engine.sample.contributions.T)
        size = tables[0][..., among].sum(axis=-1)  # by stratum and group, the same at every cut
        numerator = tables[..., counted].sum(axis=(2, 3)).T  # of both groups, by stratum and cut
        with np.errstate(divide="ignore", invalid="ignore"):
            per_row = (1 / size).sum(axis=1)  # what a row more in the first group adds to the gap
            weight = 1 / per_row if engine.weights is None else engine.weights
            slope = np.where(weight > 0, weight / weight.sum() * per_row, 0.0)
            expected = numerator * (size[:, 0] / size.sum(axis=1))[:, None]
        if engine.sample.order == (1, 0):  # the user's first group is the second here
            slope = -slope
        # where there is no error, all rows are alike and no permutation has a gap
        return cls(counted, expected, slope[:, None] / np.where(error > 0, error, np.inf))

    def statistics(self, first: Confusion) -> Array:
        """Return S by draw and cut, from the first group's counts in every draw."""
        total = np.zeros((len(first[0]), self.slope.shape[1]))
        for s in np.flatnonzero(self.slope.any(axis=1)):
            statistic = -self.expected[s]
            for cell in self.counted:
                statistic = statistic + first[cell][:, s]
            statistic *= self.slope[s]
            total += statistic
        return total


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric at every cut: in the sample, and its studentized gap in draws from it."""

    metric: Metric
    plan: Plan
    cuts: Cuts
    engine: CellsEngine

    @classmethod
    def of(cls, metric: Metric, plan: Plan, cuts: Cuts) -> Curve:
        """Prepare the curve of a metric."""
        return cls(metric, plan, cuts, cuts.engine(metric, plan.variance))

    def values(self) -> Array:
        """Return the metric by cut and group (in the user's order), strata taken together."""
        together = self.cuts.tables.sum(axis=1, keepdims=True)
        engine = self.engine.with_variance(None)
        value: Array = engine.estimates(together).value[0, :, 0]
        return value

    def gaps(self) -> CutGaps:
        """Return the gaps of the sample, first group minus second in the user's order."""
        gaps = self._studentizable(self.cuts.tables).drop_rounding(self.scale())
        statistic = gaps.studentized(self.scale())
        skewness = np.zeros(len(statistic)) if gaps.skewness is None else gaps.skewness[:, 0]
        return CutGaps(gaps.difference[:, 0], gaps.standard_error[:, 0], statistic, skewness)

    def standard_error(self) -> Array:
        """Return the error of the gap without the null: pooling both groups would assume it."""
        variance = self.plan.variance
        free = Variance.DELTA if variance in {Variance.SCORE, None} else variance
        engine = self.engine.with_variance(free)
        estimates = engine.estimates(self.cuts.tables)
        gaps = estimates.gaps(engine.weights)
        gap, error = gaps.difference[:, 0], gaps.standard_error[:, 0]
        if self.plan.is_binomial and self.metric.is_rate and engine.weights is None:
            variances = estimates.mantel_haenszel_variances(0)
            if variances:
                pairs = zip(variances, gap, strict=True)
                error = np.array([variance.standard_error(one) for variance, one in pairs])
        return np.where(np.isnan(gap), np.nan, error)

    def scale(self) -> Array:
        """Return the size of the values, which rounding errors are relative to."""
        span = self.metric.span
        return np.array([span if np.isfinite(span) else np.nanmax(np.abs(self.values()))])

    def is_trivial(self) -> Booleans:
        """Return at which thresholds all rows of some group have the same prediction."""
        tn, fp, fn, tp = np.moveaxis(self.cuts.tables.sum(axis=1), -1, 0)
        trivial: Booleans = ((tn + fn == 0) | (fp + tp == 0)).any(axis=1)
        return trivial

    def permuted(self, gaps: CutGaps) -> Callable[[Confusion, np.random.Generator], Array]:
        """Return a function from the first group's confusion counts to S by draw and inner cut."""
        # ``gaps`` are the sample's
        if self.plan.depends_on_sum:
            line = Line.of(self.engine, self.cuts.tables[1:-1], gaps.error[1:-1])
            return lambda first, _: line.statistics(first)
        return partial(self._statistics, self.cuts.tables[1:-1].sum(axis=2), self.scale())

    def _statistics(
        self, totals: Integers, scale: Array, first: Confusion, rng: np.random.Generator
    ) -> Array:
        """Return S where its error changes, from both groups' counts by cut, stratum and cell."""
        n, n_strata, n_cuts = first[0].shape
        tables = np.empty((n, n_cuts, n_strata, 2, 4), np.int64)
        for cell, counts in enumerate(first):
            tables[..., 0, cell] = np.swapaxes(counts, 1, 2)
        np.subtract(totals, tables[..., 0, :], out=tables[..., 1, :])
        gaps = self._studentizable(tables.reshape(-1, n_strata, 2, 4), rng)
        return gaps.studentized(scale).reshape(n, n_cuts)

    def _studentizable(self, tables: Integers, rng: np.random.Generator | None = None) -> Gaps:
        """Return the tables' gaps and standard errors; without a variance, the error is 1."""
        estimates = self.engine.estimates(tables, rng)
        gaps = estimates.gaps(self.engine.weights)
        return gaps.over(np.ones(1)) if self.plan.variance is None else gaps
