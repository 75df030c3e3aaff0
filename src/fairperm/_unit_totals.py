"""Metrics of contributions that differ from unit to unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._estimates import Estimates, over_groups
from fairperm._kernel import LANES
from fairperm._order import order_by
from fairperm._radix import radix_argsort
from fairperm._subsets import same_in_all_lanes
from fairperm._totals import subset_totals
from fairperm._units import Layout, UnitsEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fairperm._metric import Metric
    from fairperm._sample import Rows

    Array = NDArray[np.float64]

_ROUNDING = 1e-13  # a variance this small against its own terms is zero but for rounding
_ROWS_AT_ONCE = 1 << 22  # of bootstrap samples held in memory


@dataclass(frozen=True, slots=True)
class TotalsEngine(UnitsEngine):
    """Estimates from totals of contributions over the units of each group.

    Contributions are centred, which changes no statistic but keeps second moments accurate where
    they are small against the mean.
    """

    parts: tuple[Metric, ...]
    centre: Array
    moving: NDArray[np.intp]
    columns: Array
    whole: Array
    stratum_starts: NDArray[np.int64]

    @classmethod
    def from_rows(
        cls,
        parts: tuple[Metric, ...],
        rows: Rows,
        weights: Array | None,
        variance: str | None,
        n_bootstrap: int,
    ) -> TotalsEngine:
        """Sort by stratum, block and contributions: the order of rows must not matter."""
        order = order_by([rows.stratum, rows.block, *rows.contributions.T], radix_argsort)
        centre, moving, columns = _centred(parts, rows.contributions, order)
        stratum_sizes = np.bincount(rows.stratum, minlength=rows.n_strata)
        starts = np.append(0, np.cumsum(stratum_sizes))
        width = 2 * len(centre) + sum(_n_products(part) for part in parts)
        whole = np.zeros((rows.n_strata, width))
        whole[:, moving] = np.add.reduceat(columns, starts[:-1])
        return cls(
            layout=Layout.of(
                rows.side[order],
                rows.stratum[order],
                rows.block[order],
                rows.n_strata,
                lambda: rows.contributions[order],
            ),
            weights=weights,
            variance=variance,
            n_bootstrap=n_bootstrap,
            parts=parts,
            centre=centre,
            moving=moving,
            columns=columns,
            whole=whole,
            stratum_starts=starts,
        )

    @property
    def _width(self) -> int:
        return len(self.centre)

    @property
    def _n_moving(self) -> int:
        """Return how many of the moving columns are not products."""
        return int((self.moving < 2 * self._width).sum())

    def left_out(self) -> Iterator[tuple[Estimates, NDArray[np.int64]]]:
        """Yield for each stratum's group the estimates without one of its units."""
        in_first = self.layout.in_first
        whole = self._totals(same_in_all_lanes(in_first))[:1]
        for s, g, members in self.layout.members(in_first):
            totals = np.repeat(whole, len(members), axis=0)
            totals[:, s, g, self.moving] -= self.columns[members]
            sizes = np.repeat(self.layout.sizes[None], len(members), axis=0)
            sizes[:, s, g] -= 1
            yield self._of_totals(totals, sizes), np.ones(len(members), np.int64)

    def _of_words(self, words: NDArray[np.uint64]) -> Estimates:
        return self._of_totals(self._totals(words), self.layout.sizes)

    def _totals(self, words: NDArray[np.uint64]) -> Array:
        """Return totals by draw, stratum, group and column; columns of zeros cost nothing."""
        wanted = len(self.moving) if self.variance == "delta" else self._n_moving
        first = np.zeros((LANES, *self.whole.shape))
        totals = subset_totals(words, self.columns[:, :wanted], self.stratum_starts)
        first[..., self.moving[:wanted]] = totals
        return np.stack([first, self.whole - first], axis=-2)

    def _of_totals(self, totals: Array, sizes: Array) -> Estimates:
        """Return value, variance and size of every part."""
        width = self._width
        whole = totals[..., :width] + sizes[..., None] * self.centre
        # what a group has none of adds up to zero, not to what rounding leaves
        counted = np.isin(np.arange(width, 2 * width), self.moving)
        none = counted & (totals[..., width : 2 * width] == 0)
        whole = np.where(none, 0.0, whole)
        results = []
        start, product = 0, 2 * width
        with np.errstate(divide="ignore", invalid="ignore"):
            for part in self.parts:
                stop = start + len(part.contributions)
                mine = whole[..., start:stop]
                n_products = _n_products(part)
                variance = np.zeros(mine.shape[:-2])
                if self.variance == "delta":
                    products = totals[..., product : product + n_products]
                    centre = self.centre[start:stop]
                    by_group = _delta_variance(part.gradient(mine), products, sizes, centre)
                    variance = over_groups(by_group)
                size = mine[..., 1] if part.is_rate else np.broadcast_to(sizes, mine.shape[:-1])
                results.append((part.estimate(mine), variance, size))
                start, product = stop, product + n_products
        return Estimates(*(np.stack(arrays) for arrays in zip(*results, strict=True)))

    def _resampled(
        self, in_first: NDArray[np.bool_], n: int, rng: np.random.Generator
    ) -> Estimates:
        totals = np.zeros((n, self.layout.n_strata, 2, 2 * self._width))
        contributions = self.columns[:, : self._n_moving]
        for s, g, members in self.layout.members(in_first):
            if not members.size:
                continue
            at_once = max(1, _ROWS_AT_ONCE // len(members))
            for start in range(0, n, at_once):
                size = (min(at_once, n - start), len(members))
                drawn = members[rng.integers(len(members), size=size)]
                total = contributions[drawn].sum(axis=1)
                totals[start : start + at_once, s, g, self.moving[: self._n_moving]] = total
        return self.with_variance(None)._of_totals(totals, self.layout.sizes)


def _n_products(part: Metric) -> int:
    n = len(part.contributions)
    return n * (n + 1) // 2


def _centred(
    parts: tuple[Metric, ...], contributions: Array, order: NDArray[np.intp]
) -> tuple[Array, NDArray[np.intp], Array]:
    """Return the means, which columns are not all zero once centred, and these columns in order.

    After the contributions come counts of the rows that contribute anything, for contributions
    that not all rows make; then products of every two of one part: the second moments.
    """
    width = contributions.shape[1]
    centre, constant = np.empty(width), np.empty(width, bool)
    columns, made = {}, {}
    for j, column in enumerate(contributions.T):  # one by one: much faster than along an axis
        constant[j] = column.min() == column.max()
        centre[j] = column[0]
        if not constant[j]:
            ordered = column[order]
            centre[j] = ordered.mean()
            columns[j] = ordered - centre[j]
            if not ordered.all():
                made[width + j] = (ordered != 0).astype(np.float64)
    columns |= made
    at, start = 2 * width, 0
    for part in parts:
        stop = start + len(part.contributions)
        for j in range(start, stop):
            for k in range(j, stop):
                if not (constant[j] or constant[k]):
                    columns[at] = columns[j] * columns[k]
                at += 1
        start = stop
    if not columns:
        return centre, np.empty(0, np.intp), np.empty((len(contributions), 0))
    return centre, np.array(list(columns)), np.stack(list(columns.values()), axis=1)


def _delta_variance(gradient: Array, products: Array, n: Array, centre: Array) -> Array:
    """Return the sum of the units' squared influences, from products of centred contributions.

    An influence is gradient·(c + centre), c being centred; over a group the influences add up to
    zero, so that the sum of their squares is Σ (gradient·c)² − n (gradient·centre)².
    """
    width = gradient.shape[-1]
    pairs = [(j, k) for j in range(width) for k in range(j, width)]
    terms = np.stack(
        [
            (1 if j == k else 2) * gradient[..., j] * gradient[..., k] * products[..., i]
            for i, (j, k) in enumerate(pairs)
        ]
    )
    shift = n * (gradient @ centre) ** 2
    variance = terms.sum(axis=0) - shift
    return np.where(variance <= _ROUNDING * (np.abs(terms).sum(axis=0) + shift), 0.0, variance)
