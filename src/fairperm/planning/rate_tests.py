"""Exact tests of two rates, and their power: the probability of all tables that they reject."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairperm.inference.unconditional import SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairperm.planning.designs import Level

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Booleans = NDArray[np.bool_]

_SMALLEST = 1e-300  # odds
_NEGLIGIBLE = 1e-7  # probability of tails, relative to alpha
_ROUNDING = 1e-9  # of a p-value that equals alpha up to rounding, and is rejected
_TIED = 1e-9  # relative distance of statistics that are tied
_STEP = 0.125  # between rates, in standard errors of the rate
_HALVINGS = 24  # of the interval that contains a critical value
_HALVINGS_OF_RATES = 40
_EPSILON = float(np.finfo(np.float64).eps)
_FEW_RATES = 200  # which are cheaper to compute at once than when they are needed


@dataclass(frozen=True)
class RateTest(ABC):
    """A test of rates with denominators of these sizes."""

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

    @abstractmethod
    def rejects(self, x: Integers, y: Integers) -> Booleans:
        """Return whether the test rejects tables with these numerators, which are without gaps."""

    @classmethod
    @abstractmethod
    def cost(cls, sizes: tuple[float, float], alpha: float) -> float:
        """Return about the number of tables that have to be compared."""


@dataclass(frozen=True)
class ConditionalTest(RateTest):
    """The test that exchanges the rows of the denominators.

    Given the total of both numerators, that of the first group is hypergeometric.
    """

    def rejects(self, x: Integers, y: Integers) -> Booleans:
        """Return whether the numerator of the first group is too far out for the total."""
        total = np.arange(x.min() + y.min(), x.max() + y.max() + 1)
        low, high = self._critical_counts(total[:, None])
        place = x + y - total[0]
        rejected: Booleans = (x <= low[place]) | (x >= high[place])
        return rejected

    @classmethod
    def cost(cls, sizes: tuple[float, float], alpha: float) -> float:
        """Return about the number of tables that have to be compared."""
        tails = _NEGLIGIBLE * alpha
        totals = sum(2 * float(_reach(size, 0.5, tails)) for size in sizes)
        return min(totals, sum(sizes)) * 2 * _hypergeometric_reach(sizes, tails)

    def _critical_counts(self, total: Integers) -> tuple[Integers, Integers]:
        """Return for each total the largest and the smallest numerator that are rejected."""
        a, n = self.sizes[0], sum(self.sizes)
        reach = _hypergeometric_reach(self.sizes, _NEGLIGIBLE * self.level.alpha)
        first = total * a // n + np.arange(-reach, reach + 1)
        probability = np.exp(_log_hypergeometric(first, total, self.sizes))
        below = np.cumsum(probability, axis=1)
        above = np.cumsum(probability[:, ::-1], axis=1)[:, ::-1]
        if len(self.level.sides) == 2:  # by the size of the gap: |first − total·a/n|
            mirrored = 2 * total * a - first * n
            start = first[:, :1]
            below, above = (
                below + _take(above, -(-mirrored // n) - start, beyond_end=0.0, before_start=1.0),
                above + _take(below, mirrored // n - start, beyond_end=1.0, before_start=0.0),
            )
        limit = self.level.alpha * (1 + _ROUNDING)
        low = np.where(below <= limit, first, -1).max(axis=1)
        high = np.where(above <= limit, first, n + 1).min(axis=1)
        nowhere = np.full(len(total), n + 1)
        return (
            low if -1 in self.level.sides else -nowhere,
            high if 1 in self.level.sides else nowhere,
        )


def _hypergeometric_reach(sizes: tuple[float, float], negligible: float) -> int:
    """Return the largest distance of the first group's numerator from its mean, given the total."""
    spread = sizes[0] * sizes[1] / sum(sizes) / 4
    reach = -math.log(negligible) / 3 + math.sqrt(-2 * math.log(negligible) * spread)
    return min(math.ceil(1.2 * reach) + 2, math.ceil(min(sizes)) + 1)


def _log_hypergeometric(first: Integers, total: Integers, sizes: tuple[int, int]) -> Array:
    """Return the log-probability that so many of the total are in the first group."""
    a, b = sizes
    low, high = np.maximum(0, total - b), np.minimum(a, total)
    inside = np.clip(first, low, high)
    ways = _log_choose(a)[inside] + _log_choose(b)[total - inside] - _log_choose(a + b)[total]
    return np.where(first == inside, ways, -np.inf)


def _log_choose(n: int) -> Array:
    """Return the logarithms of the numbers of ways to choose 0, 1, … n out of n."""
    factorials = np.append(0.0, np.cumsum(np.log(np.arange(1, n + 1))))
    ways: Array = factorials[-1] - factorials - factorials[::-1]
    return ways


def _take(values: Array, index: Integers, *, before_start: float, beyond_end: float) -> Array:
    """Return the values at these places of each row, or given values outside of it."""
    last = values.shape[1] - 1
    found = np.take_along_axis(values, np.clip(index, 0, last), axis=1)
    return np.where(index < 0, before_start, np.where(index > last, beyond_end, found))


@dataclass(frozen=True)
class UnconditionalTest(RateTest):
    """The unconditional test: see ``fairperm.inference.unconditional``.

    It rejects a table whose statistic z reaches a critical value that depends on the total of both
    numerators: the largest, over the plausible rates for that total, of the quantile of z at a
    common rate. Quantiles are found for many rates at once, an eighth of a standard error apart.
    """

    def rejects(self, x: Integers, y: Integers) -> Booleans:
        """Return whether z reaches the critical value for the total."""
        total, n = np.arange(x.min() + y.min(), x.max() + y.max() + 1), sum(self.sizes)
        of_pairs = x + y
        critical = np.where((total > 0) & (total < n), self.critical_values(total), np.inf)
        spread = of_pairs * (n - of_pairs) * (self.sizes[0] * self.sizes[1] / n)
        excess = x * float(n) - of_pairs * float(self.sizes[0])
        z = excess / np.sqrt(np.maximum(spread, 1.0))
        towards = np.abs(z) if len(self.level.sides) == 2 else self.level.sides[0] * z
        rejected: Booleans = towards >= critical[of_pairs - total[0]]
        return rejected

    @classmethod
    def cost(cls, sizes: tuple[float, float], alpha: float) -> float:
        """Return about the number of tables that have to be compared."""
        widths = (min(2 * float(_reach(m, 0.5, _NEGLIGIBLE * alpha)), m) for m in sizes)
        return math.prod(widths)

    def critical_values(self, totals: Integers) -> Array:
        """Return for each total the least statistic, in the alternative's direction, rejected."""
        low, high = _rate_intervals(totals, sum(self.sizes), SHARE * self.level.alpha)
        first = np.ceil(np.arcsin(np.sqrt(low)) / self._angle).astype(np.intp)
        last = np.floor(np.arcsin(np.sqrt(high)) / self._angle).astype(np.intp)
        quantiles = self._quantiles_between(int(first.min()), int(last.max()))
        spans = zip(first - first.min(), last - first.min() + 1, strict=True)
        return np.array([quantiles[begin:end].max() for begin, end in spans])

    @cached_property
    def _angle(self) -> float:
        """Return the distance between rates, on the scale of the arcsine of their root."""
        return _STEP / (2 * math.sqrt(sum(self.sizes)))

    @cached_property
    def _quantiles(self) -> dict[int, float]:
        """Return the quantiles that are known, by the number of the rate."""
        number = math.ceil(math.pi / 2 / self._angle)
        return self._find_quantiles(range(number + 1)) if number <= _FEW_RATES else {}

    def _quantiles_between(self, first: int, last: int) -> Array:
        numbers, known = range(first, last + 1), self._quantiles
        missing = [number for number in numbers if number not in known]
        if missing:
            known.update(self._find_quantiles(missing))
        return np.array([known[number] for number in numbers])

    def _find_quantiles(self, numbers: Sequence[int]) -> dict[int, float]:
        """Return the least statistic that is reached with the level's probability at most."""
        angles = np.minimum(np.array(numbers) * self._angle, math.pi / 2)
        tables = _Tables.of(self.sizes, np.sin(angles) ** 2, _NEGLIGIBLE * self.level.alpha)
        alpha = self.level.alpha * (1 - SHARE)
        high = np.full(len(angles), math.sqrt(sum(self.sizes)) + 1)  # beyond the largest z
        low = np.zeros(len(angles)) if len(self.level.sides) == 2 else -high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_enough = tables.reached(middle, self.level.sides) <= alpha
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        return dict(zip(numbers, high.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _Tables:
    """The plausible tables of two samples at each of several common rates."""

    sizes: tuple[int, int]
    first: Array  # counts, by rate
    chances: Array  # of the first sample's counts, by rate
    start: Integers  # the least count of the second sample, by rate
    sums: Array  # probabilities of fewer than so many above the start

    @classmethod
    def of(cls, sizes: tuple[int, int], rates: Array, negligible: float) -> _Tables:
        """Return the tables at these rates except for negligible tails."""
        first, second = (_count_windows(size, rates, negligible) for size in sizes)
        sums = np.zeros((len(rates), second.shape[1] + 1))
        np.cumsum(_binomials(sizes[1], second, rates), axis=1, out=sums[:, 1:])
        chances = _binomials(sizes[0], first, rates)
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


def plausible_counts(size: int, rate: float, negligible: float) -> tuple[Integers, Array]:
    """Return the counts of a binomial sample except for negligible tails, and their chances."""
    rates = np.array([rate])
    counts = _count_windows(size, rates, negligible)
    return counts[0], _binomials(size, counts, rates)[0]


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


def _binomials(size: int, counts: Integers, rates: Array) -> Array:
    """Return the probabilities of the counts, a row for each rate.

    From the ratios of neighbours, which keep their digits for any size.
    """
    k = counts[:, :-1].astype(np.float64)
    logs = np.zeros(counts.shape)
    np.cumsum(np.log((size - k) / (k + 1)), axis=1, out=logs[:, 1:])
    odds = np.log(np.maximum(rates, _SMALLEST)) - np.log(np.maximum(1 - rates, _SMALLEST))
    logs += odds[:, None] * (counts - counts[:, :1])
    chances: Array = np.exp(logs - logs.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return chances


def _rate_intervals(totals: Integers, n: int, miss: float) -> tuple[Array, Array]:
    """Return for each total the interval of rates over which the test maximizes: Chernoff's.

    n times the divergence of the estimate from a rate of the interval is at most log(2/miss).
    """
    share, most = totals / n, math.log(2 / miss) / n

    def find_ends(outside: Array) -> Array:
        inside = share
        for _ in range(_HALVINGS_OF_RATES):
            middle = (inside + outside) / 2
            rates = np.clip(middle, _SMALLEST, 1 - _EPSILON)
            divergence = sum(
                part * np.log(np.maximum(part, _SMALLEST) / rate)
                for part, rate in ((share, rates), (1 - share, 1 - rates))
            )
            is_inside = divergence <= most
            inside, outside = (
                np.where(is_inside, middle, inside),
                np.where(is_inside, outside, middle),
            )
        return outside

    return find_ends(np.zeros(len(totals))), find_ends(np.ones(len(totals)))
