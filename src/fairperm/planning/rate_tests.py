"""The exact test of two rates, and its power: the probability of all tables that it rejects.

The test is that of ``fairperm.inference.unconditional``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fairperm.inference.unconditional import (
    SHARE,
    divergence,
    log_binomials,
    log_outcomes,
    log_ways,
    rate_interval,
)

if TYPE_CHECKING:
    from fairperm._utils.arrays import Array, Booleans, Integers
    from fairperm.planning.designs import Level

_NEGLIGIBLE = 1e-7  # probability of tails, relative to alpha
_ROUNDING = 1e-9  # of a p-value that equals alpha up to rounding, and is rejected
_TIED = 1e-9  # distance of statistics that are tied
_STEP = 0.125  # between rates, in standard errors of the rate
_HALVINGS = 24  # of the interval that contains a critical value
_FEW_TABLES = 20_000  # which are sorted
_MIN_BINS = 16
_CHUNK_SIZE = 1 << 18  # products of a sum, beyond which threads would wait for each other


@dataclass(frozen=True)
class UnconditionalTest:
    """The unconditional test of rates with denominators of these sizes.

    It rejects a table whose statistic z reaches a critical value that depends on the total of both
    numerators: the largest, over the plausible rates for that total, of the quantile of z at a
    common rate. Quantiles are found for many rates at once, an eighth of a standard error apart.
    """

    sizes: tuple[int, int]
    level: Level

    def power(self, first: float, second: float) -> float:
        """Return the probability that the test rejects if the groups have these rates."""
        negligible = _NEGLIGIBLE * self.level.alpha
        (x, p_x), (y, p_y) = (
            plausible_counts(size, rate, negligible)
            for size, rate in zip(self.sizes, (first, second), strict=True)
        )
        return min(1.0, float(p_x @ self.rejects(x[:, None], y) @ p_y))

    def rejects(self, x: Integers, y: Integers) -> Booleans:
        """Return whether z reaches the critical value for the total."""
        totals = np.arange(x.min() + y.min(), x.max() + y.max() + 1)
        unknown = totals[np.isnan(self._critical[totals])]
        if len(unknown):
            self._critical[unknown] = self._critical_values(unknown)
        rejected: Booleans = self._statistic(x, y) >= self._critical[x + y]
        return rejected

    @staticmethod
    def cost(sizes: tuple[float, float], alpha: float) -> float:
        """Return about the number of tables that have to be compared."""
        widths = (min(2 * float(_reach(m, 0.5, _NEGLIGIBLE * alpha)), m) for m in sizes)
        return math.prod(widths)

    @cached_property
    def _critical(self) -> Array:
        """Return the critical values by total, where they are known. No extreme total is rejected.

        The table with the largest statistic has a probability of a^a·b^b at the rates a and
        b = 1 − a that it suggests. If that is above alpha, nothing is rejected.
        """
        (m, n), known = self.sizes, np.full(sum(self.sizes) + 1, math.nan)
        log_most = m * math.log(m / (m + n)) + n * math.log(n / (m + n))
        known[[0, -1]] = math.inf
        return known if log_most <= math.log(self.level.alpha) else np.full_like(known, math.inf)

    def _statistic(self, x: Integers, y: Integers) -> Array:
        """Return z in the direction of the alternative, rounded: ties are equal."""
        (m, n), total = self.sizes, x + y
        spread = total * (m + n - total) * (m * n / (m + n))
        z = (x * float(m + n) - total * float(m)) / np.sqrt(np.maximum(spread, 1.0))
        z = np.abs(z) if len(self.level.sides) == 2 else self.level.sides[0] * z
        return np.asarray(np.round(z / _TIED) * _TIED)

    def _critical_values(self, totals: Integers) -> Array:
        """Return for each total the least statistic, in the alternative's direction, rejected."""
        n, miss = sum(self.sizes), SHARE * self.level.alpha
        low, high = (rate_interval(int(total), n, miss) for total in (totals[0], totals[-1]))
        first = math.ceil(math.asin(math.sqrt(low[0])) / self._angle)
        last = math.floor(math.asin(math.sqrt(high[1])) / self._angle)
        numbers = np.arange(first, last + 1)
        diverging = n * divergence(totals[:, None] / n, self._logs(numbers))
        is_plausible = diverging <= math.log(2 / miss)
        found: Array = np.where(is_plausible, self._quantiles_at(numbers), -math.inf).max(axis=1)
        return found

    def _logs(self, numbers: Integers) -> Array:
        return log_outcomes(np.sin(np.minimum(numbers * self._angle, math.pi / 2)) ** 2)

    @cached_property
    def _angle(self) -> float:
        """Return the distance between rates, on the scale of the arcsine of their root."""
        return _STEP / (2 * math.sqrt(sum(self.sizes)))

    @cached_property
    def _quantiles(self) -> dict[int, float]:
        """Return the quantiles that are known, by the number of the rate."""
        return {}

    def _quantiles_at(self, numbers: Integers) -> Array:
        known = self._quantiles
        missing = [number for number in numbers.tolist() if number not in known]
        if missing:
            found = self._find_quantiles(self._logs(np.array(missing)))
            known.update(zip(missing, found.tolist(), strict=True))
        return np.array([known[number] for number in numbers.tolist()])

    def _find_quantiles(self, logs: Array) -> Array:
        """Return the least statistic that is reached with the level's probability at most."""
        alpha, negligible = self.level.alpha * (1 - SHARE), _NEGLIGIBLE * self.level.alpha
        windows = [_count_windows(size, np.exp(logs[0]), negligible) for size in self.sizes]
        x, y = (np.arange(one[0, 0], one[-1, -1] + 1) for one in windows)
        if len(x) * len(y) <= _FEW_TABLES:
            return self._sort_tables(x, y, logs, alpha)
        tables = _Tables.of(self.sizes, logs, *windows)
        high = np.full(logs.shape[1], math.sqrt(sum(self.sizes)) + 1)  # beyond the largest z
        low = np.zeros(len(high)) if len(self.level.sides) == 2 else -high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_enough = tables.reached(middle, self.level.sides) <= alpha
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        return high

    def _sort_tables(self, x: Integers, y: Integers, logs: Array, alpha: float) -> Array:
        """Return at each rate the least statistic that is reached with probability alpha at most.

        Tables are put into bins by their statistic. The probabilities of the bins are summed from
        the largest statistic on, then those of the tables in the bin where alpha is reached.
        """
        n, totals = sum(self.sizes), np.arange(x[0] + y[0], x[-1] + y[-1] + 1)
        chances = np.exp(log_binomials(n, totals, logs))
        place = np.add.outer(x - x[0], y - y[0]).ravel()  # of the total
        ways = np.add.outer(
            log_ways(self.sizes[0], x[0], x[-1]), log_ways(self.sizes[1], y[0], y[-1])
        )
        share = np.exp(ways.ravel() - log_ways(n, totals[0], totals[-1])[place])  # of its total
        z = self._statistic(x[:, None], y).ravel()
        most, least, n_bins = float(z.max()), float(z.min()), max(math.isqrt(len(z)), _MIN_BINS)
        bins = ((most - z) * (n_bins / (most - least + _TIED))).astype(np.int64)
        sums = np.bincount(bins * len(totals) + place, share, n_bins * len(totals))
        sums = np.cumsum(sums.reshape(n_bins, -1), axis=0).T
        n_parts = math.ceil(len(chances) * sums.size / _CHUNK_SIZE)
        reached = np.concatenate([part @ sums for part in np.array_split(chances, n_parts)])
        full = (reached <= alpha).sum(axis=1)  # bins that are rejected as a whole
        before = np.where(full > 0, reached[np.arange(len(full)), full - 1], 0.0)
        order = np.argsort(-z)
        z, place, share = z[order], place[order], share[order]
        in_bins = np.bincount(bins, minlength=n_bins + 1)
        start = np.cumsum(in_bins)[full] - in_bins[full]
        tables = np.minimum(start[:, None] + np.arange(in_bins[full].max() + 1), len(z) - 1)
        chance = np.take_along_axis(chances, place[tables], axis=1) * share[tables]
        n_rejected = (before[:, None] + np.cumsum(chance, axis=1) <= alpha).sum(axis=1)
        # the first table that is not rejected; others with its statistic are not rejected either
        first = np.minimum(start + n_rejected, len(z) - 1)
        return np.where(full < n_bins, z[first] + _TIED / 2, least - 1)


@dataclass(frozen=True, slots=True)
class _Tables:
    """The plausible tables of two samples at each of several common rates."""

    sizes: tuple[int, int]
    first: Array  # counts, by rate
    chances: Array  # of the first sample's counts, by rate
    start: Integers  # the least count of the second sample, by rate
    sums: Array  # probabilities of fewer than so many above the start

    @classmethod
    def of(cls, sizes: tuple[int, int], logs: Array, first: Integers, second: Integers) -> _Tables:
        """Return the tables with these counts of each sample at each rate."""
        sums = np.zeros((len(second), second.shape[1] + 1))
        np.cumsum(np.exp(log_binomials(sizes[1], second, logs)), axis=1, out=sums[:, 1:])
        chances = np.exp(log_binomials(sizes[0], first, logs))
        return cls(sizes, first.astype(np.float64), chances, second[:, 0], sums)

    def reached(self, statistic: Array, sides: tuple[int, ...]) -> Array:
        """Return the probability that z reaches the statistic on these sides, at each rate."""
        # where z of the first sample's count is ± the statistic, the total is a root of a quadratic
        m, n = self.sizes
        total, count = m + n, self.first
        square = (statistic**2 * n)[:, None]
        root = np.sqrt(square * (4 * count * total * (1 - count / m) + square))
        far = total * (2 * count * total + square + root) / (2 * (total * m + square))
        product = count**2 * (total**3 / (m * (total * m + square)))
        near = product / np.where(count > 0, far, 1.0)
        found = np.zeros(len(statistic))
        for side in sides:
            is_far = side * np.sign(statistic)[:, None] < 0
            limit = np.where(is_far, far, near)
            # a first sample above reaches the statistic if the second's count is small
            if side > 0:
                bound = np.floor(limit * (1 + _TIED) + _TIED) - count
                bound = np.where((count == 0) & (statistic > 0)[:, None], -1, bound)
                tails = self._below(bound + 1)
            else:
                bound = np.ceil(limit * (1 - _TIED) - _TIED) - count
                bound = np.where((count == m) & (statistic > 0)[:, None], n + 1, bound)
                tails = self.sums[:, -1:] - self._below(bound)
            found += np.einsum("ij,ij->i", self.chances, tails)
        return found

    def _below(self, bound: Array) -> Array:
        """Return the probability that the second sample has fewer than so many."""
        place = np.clip(bound.astype(np.int64) - self.start[:, None], 0, self.sums.shape[1] - 1)
        return np.take_along_axis(self.sums, place, axis=1)


@lru_cache(16)  # a search for a gap moves one group only
def plausible_counts(size: int, rate: float, negligible: float) -> tuple[Integers, Array]:
    """Return the counts of a binomial sample except for negligible tails, and their chances."""
    rates = np.array([rate])
    (counts,) = _count_windows(size, rates, negligible)
    chances = np.exp(log_binomials(size, counts, log_outcomes(rates))[0])
    return counts, chances / chances.sum()


def _count_windows(size: int, rates: Array, negligible: float) -> Integers:
    """Return counts of a binomial sample, equally many at each rate, with all plausible ones."""
    width = min(size, math.ceil(2 * float(_reach(size, rates, negligible).max())) + 1)
    start = np.clip(np.floor(size * rates - width / 2), 0, size - width)
    return start.astype(np.int64)[:, None] + np.arange(width + 1)


def _reach(size: float, rates: float | Array, negligible: float) -> Array:
    """Return the distance from the mean beyond which counts are negligible: Bernstein's bound."""
    third = -math.log(negligible) / 3
    reach: Array = third + np.sqrt(third**2 + 6 * third * size * np.asarray(rates) * (1 - rates))
    return reach
