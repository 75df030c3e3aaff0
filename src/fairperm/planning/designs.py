"""Designs: the power of tests as a function of the number of rows and the groups' values.

A design gives the precision of a gap for any number of rows n. At one n it becomes the power, a
function of the two groups' values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fairperm.inference.null import normal_quantile
from fairperm.planning.auc_power import auc_power

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]

Pair = tuple[float, float]
Power = Callable[[float, float], float]

MOST_CELLS = 10**6  # of the exact test's table: about 1,600 rows in each denominator
_ROUNDING = 1e-9  # of a p-value that equals alpha up to rounding, and is rejected
_FAR, _FARTHER = 9.0, 20  # deviations, plus counts, beyond which probabilities are negligible


@dataclass(frozen=True, slots=True)
class Level:
    """The level and direction of a test, which rejects if its p-value is at most alpha."""

    alpha: float
    alternative: str = "two-sided"

    @property
    def quantile(self) -> float:
        """Return the smallest normal statistic that is rejected."""
        return normal_quantile(1 - self.alpha, self.alternative)

    @property
    def tails(self) -> tuple[tuple[float, tuple[int, ...]], ...]:
        """Return the probability of each part of the rejection region, and the gaps' signs in it.

        A two-sided test has half its level in each tail, a symmetric one rejects statistics of one
        size on both sides.
        """
        if self.alternative == "two-sided":
            return (self.alpha / 2, (1,)), (self.alpha / 2, (-1,))
        sides = {"symmetric": (1, -1), "greater": (1,), "less": (-1,)}[self.alternative]
        return ((self.alpha, sides),)

    @property
    def sides(self) -> tuple[int, ...]:
        """Return the signs of the gaps that the test can detect."""
        return tuple(side for _, sides in self.tails for side in sides)


class Design(Protocol):
    """The precision of a gap for any number of rows."""

    @property
    def fewest(self) -> int:
        """Return the smallest n for which there is a test."""
        ...

    def at(self, n: int, level: Level) -> Power:
        """Return the power with n rows, as a function of the two groups' values."""
        ...


@dataclass(frozen=True, slots=True)
class RateDesign:
    """A rate, and the share of all rows that is in each group's denominator."""

    shares: Pair
    exact: bool  # whether labels are exchanged among the rows of the denominators

    @property
    def fewest(self) -> int:
        """Return the n with a row in each denominator."""
        return _rows_for(1, self.shares)

    def at(self, n: int, level: Level) -> Power:
        """Return the exact power if there are few outcomes, otherwise its normal limit."""
        return rate_power((n * self.shares[0], n * self.shares[1]), level, exact=self.exact)


@dataclass(frozen=True, slots=True)
class AUCDesign:
    """The AUC, and the shares of all rows that are each group's positives and negatives."""

    positives: Pair
    negatives: Pair
    pooled: bool  # whether rows of both labels are exchanged together

    @property
    def fewest(self) -> int:
        """Return the n with two rows of each label in each group, which the variance needs."""
        return _rows_for(2, (*self.positives, *self.negatives))

    def at(self, n: int, level: Level) -> Power:
        """Return the power for normal scores."""
        sizes = n * np.array([self.positives, self.negatives]).T
        return auc_power(sizes, level, pooled=self.pooled)


@dataclass(frozen=True, slots=True)
class PilotDesign:
    """Any metric: a variance of the gap that depends on n alone."""

    shares: Pair
    variance_of_one: float  # of the gap, times n

    @property
    def fewest(self) -> int:
        """Return the n with a row in each group."""
        return _rows_for(1, self.shares)

    def error(self, n: int) -> float:
        """Return the standard error of the gap with n rows."""
        return math.sqrt(self.variance_of_one / n)

    def at(self, n: int, level: Level) -> Power:
        """Return the power of the normal limit."""
        error = self.error(n)
        reach = level.quantile * error
        return lambda first, second: normal_power(first - second, reach, error, level)


def _rows_for(fewest: int, shares: tuple[float, ...]) -> int:
    return max(2, math.ceil(fewest / min(shares) - _ROUNDING))


def normal_power(gap: float, reach: float, error: float, level: Level) -> float:
    """Return the probability that a normal gap with this error lies beyond the reach."""
    beyond = [side * gap - reach for side in level.sides]
    if error == 0:  # the gap never varies
        return float(max(beyond) > 0)
    return sum(NormalDist().cdf(one / error) for one in beyond)


def rate_power(sizes: Pair, level: Level, *, exact: bool, most_cells: int = MOST_CELLS) -> Power:
    """Return the power of the test of a rate with denominators of these sizes.

    An ``exact`` test exchanges only the rows of the denominators. It has so few outcomes that its
    power is noticeably below that of its normal limit; if there are too many to sum over, a gap
    must reach half a step between outcomes more.
    """
    if exact and table_size(sizes) <= most_cells:
        first = round(sizes[0])  # the second has the rest of the rounded total
        return ExactTest.of((first, round(sizes[0] + sizes[1]) - first), level).power
    steps = 1 / sizes[0] + 1 / sizes[1]

    def power(first: float, second: float) -> float:
        both = (sizes[0] * first + sizes[1] * second) / (sizes[0] + sizes[1])
        null_error = math.sqrt(max(0.0, both * (1 - both)) * steps)
        reach = level.quantile * null_error + (steps / 2 if exact else 0.0)
        error = math.sqrt(first * (1 - first) / sizes[0] + second * (1 - second) / sizes[1])
        return normal_power(first - second, reach, error, level)

    return power


@dataclass(frozen=True, slots=True)
class ExactTest:
    """The test of a rate that exchanges the rows of the denominators.

    Given the total of both numerators, that of the first group is hypergeometric. The test rejects
    if it is at most ``low`` or at least ``high`` for that total.
    """

    sizes: tuple[int, int]
    low: Integers
    high: Integers

    @classmethod
    def of(cls, sizes: tuple[int, int], level: Level) -> ExactTest:
        """Find for every total which numerators of the first group are rejected."""
        a, n = sizes[0], sum(sizes)
        total = np.arange(n + 1)[:, None]
        reach = _reach(sizes)
        first = total * a // n + np.arange(-reach, reach + 1)
        probability = np.exp(_log_hypergeometric(first, total, sizes))
        below = np.cumsum(probability, axis=1)
        above = np.cumsum(probability[:, ::-1], axis=1)[:, ::-1]
        if len(level.sides) == 2:  # by the size of the gap: |first − total·a/n|
            mirrored = 2 * total * a - first * n
            start = first[:, :1]
            below, above = (
                below + _take(above, -(-mirrored // n) - start, beyond_end=0.0, before_start=1.0),
                above + _take(below, mirrored // n - start, beyond_end=1.0, before_start=0.0),
            )
        limit = level.alpha * (1 + _ROUNDING)
        low = np.where(below <= limit, first, -1).max(axis=1)
        high = np.where(above <= limit, first, n + 1).min(axis=1)
        nowhere = np.full(n + 1, n + 1)
        return cls(
            sizes,
            low if -1 in level.sides else -nowhere,
            high if 1 in level.sides else nowhere,
        )

    def power(self, first: float, second: float) -> float:
        """Return the probability that the test rejects if the groups have these rates."""
        (x, p_x), (y, p_y) = (
            _binomial(size, rate) for size, rate in zip(self.sizes, (first, second), strict=True)
        )
        total = x[:, None] + y
        rejected = (x[:, None] <= self.low[total]) | (x[:, None] >= self.high[total])
        return min(1.0, float(p_x @ rejected @ p_y))


def table_size(sizes: Pair) -> float:
    """Return the number of cells in the table of an exact test."""
    return (sum(sizes) + 1) * (2 * _reach(sizes) + 1)


def _reach(sizes: Pair) -> int:
    """Return the largest distance of the first group's numerator from its mean, given the total."""
    widest = math.sqrt(sizes[0] * sizes[1] / sum(sizes)) / 2
    return min(math.ceil(_FAR * widest) + _FARTHER, math.ceil(min(sizes)) + 1)


def _log_hypergeometric(first: Integers, total: Integers, sizes: tuple[int, int]) -> Array:
    """Return the log-probability that so many of the total are in the first group."""
    a, b = sizes
    low, high = np.maximum(0, total - b), np.minimum(a, total)
    inside = np.clip(first, low, high)
    ways = _log_choose(a)[inside] + _log_choose(b)[total - inside] - _log_choose(a + b)[total]
    return np.where(first == inside, ways, -np.inf)


def _binomial(size: int, rate: float) -> tuple[Integers, Array]:
    """Return the counts whose probabilities are not negligible, and the probabilities."""
    reach = _FAR * math.sqrt(size * rate * (1 - rate)) + _FARTHER
    low = max(0, math.floor(size * rate - reach))
    high = min(size, math.ceil(size * rate + reach))
    count = np.arange(low, high + 1)
    if rate in {0.0, 1.0}:
        return count, (count == round(size * rate)).astype(np.float64)
    logs = _log_choose(size)[count]
    return count, np.exp(logs + count * math.log(rate) + (size - count) * math.log1p(-rate))


def _log_choose(n: int) -> Array:
    """Return the logarithms of the numbers of ways to choose 0, 1, … n out of n.

    It sums logarithms, because importing SciPy would take a quarter of a small audit's time.
    """
    factorials = np.append(0.0, np.cumsum(np.log(np.arange(1, n + 1))))
    ways: Array = factorials[-1] - factorials - factorials[::-1]
    return ways


def _take(values: Array, index: Integers, *, before_start: float, beyond_end: float) -> Array:
    """Return the values at these places of each row, or given values outside of it."""
    last = values.shape[1] - 1
    found = np.take_along_axis(values, np.clip(index, 0, last), axis=1)
    return np.where(index < 0, before_start, np.where(index > last, beyond_end, found))


def normal_gap(error: float, level: Level, target: float) -> float:
    """Return the gap that one tail alone detects with this power."""
    return error * (level.quantile + NormalDist().inv_cdf(target))
