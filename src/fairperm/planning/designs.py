"""How often a test rejects, from what is known of the sample before there is one.

A design tells how the precision of a gap follows from the number of rows n. At one n it becomes
a function of the two groups' values: the power.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fairperm.inference.intervals import normal_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]

Pair = tuple[float, float]
Power = Callable[[float, float], float]

MOST_CELLS = 10**6  # of the exact test's table: about 1,600 rows in each of two denominators
_ROUNDING = 1e-9  # of a p-value: what is equal to alpha but for rounding is rejected
_CLOSE, _STEPS = 1e-12, 200  # how near a gap is looked for, and in how many steps at most
_FAR, _FARTHER = 9.0, 20  # deviations (and counts, where skewed) beyond which there is nothing


@dataclass(frozen=True, slots=True)
class Level:
    """When a test rejects: if its p-value is at most alpha."""

    alpha: float
    alternative: str = "two-sided"

    @property
    def quantile(self) -> float:
        """Return how far a normal statistic must lie from zero."""
        return normal_quantile(1 - self.alpha, self.alternative)

    @property
    def sides(self) -> tuple[int, ...]:
        """Return the signs of the gaps that the test looks for."""
        return {"two-sided": (1, -1), "greater": (1,), "less": (-1,)}[self.alternative]


class Design(Protocol):
    """How precisely a gap is known from n rows."""

    @property
    def fewest(self) -> int:
        """Return the smallest n with which there is a test."""
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
        """Return the exact power where there are few outcomes, else its normal limit."""
        return rate_power((n * self.shares[0], n * self.shares[1]), level, exact=self.exact)


@dataclass(frozen=True, slots=True)
class AUCDesign:
    """The AUC, and the shares of all rows that are each group's positives and negatives."""

    positives: Pair
    negatives: Pair

    @property
    def fewest(self) -> int:
        """Return the n with two rows of each label in each group: else there is no variance."""
        return _rows_for(2, (*self.positives, *self.negatives))

    def at(self, n: int, level: Level) -> Power:
        """Return the power of the normal limit."""

        def power(first: float, second: float) -> float:
            variance = sum(
                auc_variance(auc, n * positives, n * negatives)
                for auc, positives, negatives in zip(
                    (first, second), self.positives, self.negatives, strict=True
                )
            )
            error = math.sqrt(variance)
            return normal_power(first - second, level.quantile * error, error, level)

        return power


@dataclass(frozen=True, slots=True)
class PilotDesign:
    """Any metric: a variance of the gap that shrinks as rows are added, whatever the gap."""

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
    """Return how often a normal gap with this error lies farther from zero than the reach."""
    beyond = [side * gap - reach for side in level.sides]
    if error == 0:  # the gap never varies
        return float(max(beyond) > 0)
    return sum(NormalDist().cdf(one / error) for one in beyond)


def rate_power(sizes: Pair, level: Level, *, exact: bool, most_cells: int = MOST_CELLS) -> Power:
    """Return the power of the test of a rate with denominators of these sizes.

    An ``exact`` test exchanges the rows of the denominators only. Of these there are so few
    outcomes that its power is noticeably less than that of its normal limit; where there are too
    many to sum over, half a step from one outcome to the next is added to what a gap must reach.
    """
    if exact and table_size(sizes) <= most_cells:
        first = round(sizes[0])  # and with the second as many as there are
        return ExactTest.of((first, round(sizes[0] + sizes[1]) - first), level).power
    steps = 1 / sizes[0] + 1 / sizes[1]

    def power(first: float, second: float) -> float:
        both = (sizes[0] * first + sizes[1] * second) / (sizes[0] + sizes[1])
        null_error = math.sqrt(max(0.0, both * (1 - both)) * steps)
        reach = level.quantile * null_error + (steps / 2 if exact else 0.0)
        error = math.sqrt(first * (1 - first) / sizes[0] + second * (1 - second) / sizes[1])
        return normal_power(first - second, reach, error, level)

    return power


def auc_variance(auc: float, positives: float, negatives: float) -> float:
    """Return the variance of the AUC of normal scores that spread alike in both labels.

    Hanley and McNeil (1982) have it from the probability that one row scores right against two
    of the other label at once. Of normal scores this is a probability of two normals with
    correlation ½, which Owen's T function gives; by symmetry it is the same for both labels.
    """
    from scipy.special import ndtri, owens_t

    twice = auc - 2 * owens_t(ndtri(auc), math.sqrt(1 / 3))
    shared = (positives + negatives - 2) * (twice - auc**2)
    return max(0.0, float(auc * (1 - auc) + shared) / (positives * negatives))


@dataclass(frozen=True, slots=True)
class ExactTest:
    """The test of a rate in which the rows of the denominators are exchanged.

    Given the total of both numerators, the first group's is hypergeometric. The test rejects if
    it is at most ``low`` or at least ``high`` of that total.
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
        if level.alternative == "two-sided":  # by the size of the gap: |first − total·a/n|
            mirrored = 2 * total * a - first * n
            start = first[:, :1]
            below, above = (
                below + _at(above, -(-mirrored // n) - start, beyond_end=0.0, before_start=1.0),
                above + _at(below, mirrored // n - start, beyond_end=1.0, before_start=0.0),
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
        """Return the probability that the test rejects where the rates are these."""
        (x, p_x), (y, p_y) = (
            _binomial(size, rate) for size, rate in zip(self.sizes, (first, second), strict=True)
        )
        total = x[:, None] + y
        rejected = (x[:, None] <= self.low[total]) | (x[:, None] >= self.high[total])
        return min(1.0, float(p_x @ rejected @ p_y))


def table_size(sizes: Pair) -> float:
    """Return in how many cells the exact test looks for what it rejects."""
    return (sum(sizes) + 1) * (2 * _reach(sizes) + 1)


def _reach(sizes: Pair) -> int:
    """Return how far from its mean the first group's numerator can be, given the total."""
    widest = math.sqrt(sizes[0] * sizes[1] / sum(sizes)) / 2
    return min(math.ceil(_FAR * widest) + _FARTHER, math.ceil(min(sizes)) + 1)


def _log_hypergeometric(first: Integers, total: Integers, sizes: tuple[int, int]) -> Array:
    """Return the log-probability that so many of the total fall to the first group."""
    a, b = sizes
    low, high = np.maximum(0, total - b), np.minimum(a, total)
    inside = np.clip(first, low, high)
    ways = _log_choose(a)[inside] + _log_choose(b)[total - inside] - _log_choose(a + b)[total]
    return np.where(first == inside, ways, -np.inf)


def _binomial(size: int, rate: float) -> tuple[Integers, Array]:
    """Return the counts that are likely at all, and their probabilities."""
    reach = _FAR * math.sqrt(size * rate * (1 - rate)) + _FARTHER
    low = max(0, math.floor(size * rate - reach))
    high = min(size, math.ceil(size * rate + reach))
    count = np.arange(low, high + 1)
    if rate in {0.0, 1.0}:
        return count, (count == round(size * rate)).astype(np.float64)
    logs = _log_choose(size)[count]
    return count, np.exp(logs + count * math.log(rate) + (size - count) * math.log1p(-rate))


def _log_choose(n: int) -> Array:
    """Return in how many ways 0, 1, … n out of n can be chosen.

    By sums of logarithms: importing SciPy for them would take a quarter of a small audit's time.
    """
    factorials = np.append(0.0, np.cumsum(np.log(np.arange(1, n + 1))))
    ways: Array = factorials[-1] - factorials - factorials[::-1]
    return ways


def _at(values: Array, index: Integers, *, before_start: float, beyond_end: float) -> Array:
    """Return the values at these places of each row, and what there is outside of it."""
    last = values.shape[1] - 1
    found = np.take_along_axis(values, np.clip(index, 0, last), axis=1)
    return np.where(index < 0, before_start, np.where(index > last, beyond_end, found))


def smallest_n(is_enough: Callable[[int], bool], fewest: int, most: int) -> int | None:
    """Return an n that is enough, one less being not enough; None if the most is not."""
    low, high = fewest - 1, fewest
    while not is_enough(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def smallest_gap(power: Power, value: float, level: Level, target: float, limits: Pair) -> float:
    """Return the gap beyond which every one that is possible has the power; else infinity.

    ``limits`` are the lowest and the highest value that the first group can have; the second has
    this ``value``.
    """

    def excess(first: float) -> float:
        return power(first, value) - target

    ends = {end: excess(end) >= 0 for end in (limits[side > 0] for side in level.sides)}
    if not any(ends.values()):
        return math.inf
    # on a side where no gap has the power, only those that there is no room for are left out
    firsts = [_root(excess, value, end) if found else end for end, found in ends.items()]
    return max(abs(first - value) for first in firsts)


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return where an excess that is negative at ``low`` and not at ``high`` becomes zero.

    By false position, in the Illinois form: what an end has that stays twice is halved.
    """
    below, above = excess(low), excess(high)
    stayed = 0  # which end did: −1 the low one, 1 the high one
    for _ in range(_STEPS):
        if above == 0 or abs(high - low) < _CLOSE * max(1.0, abs(low)):
            break
        middle = (low * above - high * below) / (above - below)
        found = excess(middle)
        if found >= 0:
            high, above = middle, found
            below *= 0.5 if stayed == -1 else 1.0
            stayed = -1
        else:
            low, below = middle, found
            above *= 0.5 if stayed == 1 else 1.0
            stayed = 1
    return high


def normal_gap(error: float, level: Level, target: float) -> float:
    """Return the gap that one tail alone finds with this power."""
    return error * (level.quantile + NormalDist().inv_cdf(target))
