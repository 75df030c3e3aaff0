"""Designs: the power of tests as a function of the number of rows and the groups' values.

A design gives the precision of a gap for any number of rows n. At one n it becomes the power, a
function of the two groups' values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np

from fairperm._utils.formatting import format_count
from fairperm.inference.null import normal_quantile
from fairperm.planning.auc_power import auc_power
from fairperm.planning.rate_tests import UnconditionalTest

Pair = tuple[float, float]
Power = Callable[[float, float], float]

MAX_TABLES = 10**6  # of an exact test: about 25,000 rows in each denominator
_LARGEST_RATIO = 200  # of the sizes of two groups in an exact test
_NEIGHBOURS = 50  # numbers of rows in the denominators below one that is enough
_ROUNDING = 1e-9  # of a number of rows


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

    def at(self, n: int, level: Level) -> Power:
        """Return the power with n rows, as a function of the two groups' values."""

    def smaller(self, n: int, level: Level) -> Iterator[int]:
        """Yield smaller numbers of rows that may have as much power: none of a smooth power."""
        del n, level
        return iter(())

    def state(self, n: int) -> str:
        """Return what n counts, in words."""
        return format_count(n, "row")


@dataclass(frozen=True, slots=True)
class RateDesign(Design):
    """A rate, and the share of all rows that is in each group's denominator."""

    shares: Pair

    @property
    def fewest(self) -> int:
        return _rows_for(1, self.shares)

    def at(self, n: int, level: Level) -> Power:
        """Return the exact power if there are few outcomes, otherwise its normal limit."""
        return rate_power(self._sizes(n), level)

    def smaller(self, n: int, level: Level) -> Iterator[int]:
        if UnconditionalTest.cost(self._sizes(n), level.alpha) > MAX_TABLES:
            return
        start = max(self.fewest, n - math.ceil(_NEIGHBOURS / sum(self.shares)))
        before = None
        for fewer in range(start, n):
            sizes = round_sizes(self._sizes(fewer))
            if sizes != before:
                yield fewer
            before = sizes

    def _sizes(self, n: int) -> Pair:
        return n * self.shares[0], n * self.shares[1]


@dataclass(frozen=True, slots=True)
class AUCDesign(Design):
    """The AUC, and the shares of all rows that are each group's positives and negatives."""

    positives: Pair
    negatives: Pair

    @property
    def fewest(self) -> int:
        """Return the n with two rows of each label in each group, which the variance needs."""
        return _rows_for(2, (*self.positives, *self.negatives))

    def at(self, n: int, level: Level) -> Power:
        sizes = n * np.array([self.positives, self.negatives]).T
        return auc_power(sizes, level)


@dataclass(frozen=True, slots=True)
class PilotDesign(Design):
    """Any metric: a variance of the gap that depends on n alone, the number of rows or sets."""

    shares: Pair
    variance_of_one: float  # of the gap, times n
    rows_in_set: float | None = None  # of matched sets

    @property
    def fewest(self) -> int:
        return _rows_for(1, self.shares)

    def error(self, n: int) -> float:
        """Return the standard error of the gap with n rows."""
        return math.sqrt(self.variance_of_one / n)

    def state(self, n: int) -> str:
        if self.rows_in_set is None:
            return format_count(n, "row")
        return f"{format_count(n, 'set')} ({format_count(round(n * self.rows_in_set), 'row')})"

    def at(self, n: int, level: Level) -> Power:
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


def round_sizes(sizes: Pair) -> tuple[int, int]:
    """Return whole numbers of rows; the second group has the rest of the rounded total."""
    first = round(sizes[0])
    return first, round(sizes[0] + sizes[1]) - first


def rate_power(sizes: Pair, level: Level, most_tables: float = MAX_TABLES) -> Power:
    """Return the power of the test of a rate with denominators of these sizes."""
    # exact if there are not too many tables, otherwise that of the normal limit
    # a group that is larger still has no more to say: the rate is that of the smaller one
    most = _LARGEST_RATIO * min(sizes)
    enough = min(sizes[0], most), min(sizes[1], most)
    if UnconditionalTest.cost(enough, level.alpha) <= most_tables:
        return UnconditionalTest(round_sizes(enough), level).power
    steps = 1 / sizes[0] + 1 / sizes[1]
    quantile = level.quantile

    def power(first: float, second: float) -> float:
        both = (sizes[0] * first + sizes[1] * second) / (sizes[0] + sizes[1])
        null_error = math.sqrt(max(0.0, both * (1 - both)) * steps)
        reach = quantile * null_error
        error = math.sqrt(first * (1 - first) / sizes[0] + second * (1 - second) / sizes[1])
        return normal_power(first - second, reach, error, level)

    return power


def normal_gap(error: float, level: Level, target: float) -> float:
    """Return the gap that one tail alone detects with this power."""
    return error * (level.quantile + NormalDist().inv_cdf(target))
