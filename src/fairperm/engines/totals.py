"""The engine of metrics of totals whose contributions hardly repeat."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairperm._utils.arrays import Array, Booleans, Integers, Words
from fairperm._utils.sorting import order_by
from fairperm.data.sample import Sample
from fairperm.engines.estimates import Estimates
from fairperm.engines.kernels.kernel import LANES
from fairperm.engines.kernels.totals import Terms, squared_influences, subset_totals
from fairperm.engines.leave_one_out import LeaveOneOut
from fairperm.engines.moments import Moments
from fairperm.engines.units import Layout, UnitsEngine, order_ties
from fairperm.metrics.definition import Metric, Variance

_ROWS_AT_ONCE = 1 << 18  # of bootstrap samples: no more stay in the cache


@dataclass(frozen=True, slots=True)
class TotalsEngine(UnitsEngine):
    """Estimates from totals of contributions over the units of each group.

    Weighted rows and clusters have leave-one-out influences (``alone``) in place of squares.
    """

    moments: Moments
    alone: LeaveOneOut | None
    whole: Array
    is_wide: bool
    stratum_starts: Integers

    @classmethod
    def from_rows(
        cls,
        parts: tuple[Metric, ...],
        rows: Sample,
        weights: Array | None,
        variance: Variance | None,
        n_bootstrap: int,
    ) -> TotalsEngine:
        """Sort by stratum, block and contributions: the user's order of rows must not matter."""
        keys = [rows.stratum, rows.block, *rows.contributions.T]
        order = order_ties(order_by(keys), rows.group, keys)
        moments = Moments.of(
            parts,
            rows.contributions,
            order,
            has_strata=rows.n_strata > 1,
            has_thirds=variance == Variance.HALL,
        )
        stratum = rows.stratum[order]
        numbers = np.arange(rows.n_strata).astype(stratum.dtype)  # of another type, rows are copied
        starts = np.append(np.searchsorted(stratum, numbers), len(stratum)).astype(np.int64)
        whole = np.zeros((rows.n_strata, moments.n_columns))
        whole[:, moments.moving] = np.add.reduceat(moments.columns, starts[:-1])
        alone = LeaveOneOut.of(moments, rows.contributions, order) if rows.are_sums else None
        return cls(
            layout=Layout.of(
                rows.group[order],
                stratum,
                rows.block[order],
                rows.n_strata,
                lambda: rows.contributions[order],
            ),
            weights=weights,
            variance=variance,
            n_bootstrap=n_bootstrap,
            moments=moments,
            alone=alone,
            whole=whole,
            is_wide=moments.is_wide(),
            stratum_starts=starts,
        )

    def _of_words(self, words: Words, lanes: int) -> Estimates:
        del lanes  # all are computed at once
        totals, sizes = self._totals(words), self.layout.sizes
        if self.alone is None or self.variance != Variance.DELTA:
            return self.moments.estimates(totals, sizes, self.variance)
        estimates = self.moments.estimates(totals, sizes, None)
        return replace(estimates, variance=self._leave_one_out(self.alone, words, totals))

    def _leave_one_out(self, alone: LeaveOneOut, words: Words, totals: Array) -> Array:
        """Return the variances of every part from the influences of single units."""
        starts = self.stratum_starts
        first = subset_totals(words, alone.counted, starts)
        every = np.add.reduceat(alone.counted, starts[:-1])
        counts = np.stack([first, every - first], axis=-2)

        def square(terms: Terms, lines: Array) -> Array:
            by_lane = np.moveaxis(lines, (0, 1), (1, 3))
            return np.moveaxis(squared_influences(words, terms, by_lane), -1, 0)

        return alone.variances(totals, self.layout.sizes, counts, starts, square)

    def _totals(self, words: Words) -> Array:
        """Return totals by draw, stratum, group and column."""
        first = self._totals_of(words)
        second = self._totals_of(~words) if self.is_wide else self.whole - first
        return np.stack([first, second], axis=-2)

    def _totals_of(self, words: Words) -> Array:
        """Return totals of the units in the words' subsets; columns of zeros cost nothing."""
        wanted = self.moments.n_wanted(None if self.alone else self.variance)
        totals = np.zeros((LANES, *self.whole.shape))
        totals[..., self.moments.moving[:wanted]] = subset_totals(
            words, self.moments.columns, self.stratum_starts, wanted
        )
        return totals

    def _resampled(self, in_first: Booleans, n: int, rng: np.random.Generator) -> Estimates:
        totals = np.zeros((n, self.layout.n_strata, 2, 2 * self.moments.width))
        wanted = self.moments.n_wanted(None)
        for s, g, members in self.layout.members(in_first):
            if not members.size:
                continue
            columns = self.moments.columns.T[:wanted, members]
            at_once = max(1, _ROWS_AT_ONCE // len(members))
            for start in range(0, n, at_once):
                drawn = rng.integers(len(members), size=(min(at_once, n - start), len(members)))
                sums = np.stack([column[drawn].sum(axis=1) for column in columns], axis=1)
                totals[start : start + at_once, s, g, self.moments.moving[:wanted]] = sums
        return self.moments.estimates(totals, self.layout.sizes, None)
