"""What a statistic is compared with: permutations, the normal limit, or two binomial samples.

The samples are in ``unconditional``.
A reference gives p-values and critical values, and knows nothing of the sample's estimates: how far
an interval goes for a critical value is said by the sample (``hypothesis_tests/run.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fairperm._utils.checks import DIRECTIONS
from fairperm.inference.null import (
    TIE,
    Null,
    PValue,
    critical_values,
    normal_limit,
    normal_pvalue,
    normal_quantile,
    on_sides,
    pvalue,
)


class Reference(Protocol):
    """The distribution of a statistic under the null hypothesis."""

    @property
    def null(self) -> Null:
        """What charts show."""

    @property
    def n_resamples(self) -> int:
        """The number of draws, or of enumerated ones; 0 for a formula."""

    @property
    def exact(self) -> bool:
        """Whether a p-value has no Monte Carlo error, and is no limit."""

    @property
    def smallest(self) -> float:
        """The probability of one labelling of the rows: no p-value is smaller."""

    def pvalue(self, statistic: float, ordering: str, tolerance: float, level: float) -> PValue:
        """Return the probability of statistics as extreme, with intervals at this level."""

    def critical(self, ordering: str, level: float) -> tuple[float, float]:
        """Return the statistics between which, ends included, p is above 1 − level."""

    def most_extreme_pvalue(self, ordering: str, enough: float = 0.0) -> float:
        """Return the smallest p-value of samples of these sizes, or a bound up to ``enough``."""


@dataclass(frozen=True, slots=True)
class Permutations:
    """All permutations with their probabilities, or random ones."""

    null: Null
    smallest: float = 0.0
    # Whether no tail has a smaller p-value than the normal limit: permutations that hardly vary do
    # not show how far chance goes. Two-sided is twice the smaller tail, so that p-values and
    # critical values agree.
    are_at_least_normal: bool = False

    @property
    def n_resamples(self) -> int:
        return len(self.null.statistic)

    @property
    def exact(self) -> bool:
        return self.null.log_probability is not None

    def pvalue(self, statistic: float, ordering: str, tolerance: float, level: float) -> PValue:
        """Return the share of permutations that are as extreme; ties are."""
        if self.are_at_least_normal and ordering == "two-sided":
            tails = (self.pvalue(statistic, side, tolerance, level) for side in DIRECTIONS)
            return min(tails, key=lambda tail: tail.value).doubled()
        found = pvalue(self.null, statistic, ordering, tolerance, level)
        floor = normal_pvalue(statistic, ordering).value if self.are_at_least_normal else 0.0
        return found.at_least(floor)

    def critical(self, ordering: str, level: float) -> tuple[float, float]:
        found = critical_values(self.null, ordering, level)
        return at_least_normal(found, ordering, level) if self.are_at_least_normal else found

    def most_extreme_pvalue(self, ordering: str, enough: float = 0.0) -> float:
        del enough
        found = self.null.statistic[np.isfinite(self.null.statistic)]
        ends = (float(found.min()), float(found.max())) if found.size else ()
        tails = (pvalue(self.null, one, ordering, TIE * (1 + abs(one)), 0.95) for one in ends)
        return min((tail.value for tail in tails), default=0.0)


@dataclass(frozen=True, slots=True)
class NormalLimit:
    """The standard normal distribution: nothing is drawn."""

    smallest: float = 0.0
    n_resamples: int = 0
    exact: bool = False

    @property
    def null(self) -> Null:
        return normal_limit()

    def pvalue(self, statistic: float, ordering: str, tolerance: float, level: float) -> PValue:
        del tolerance, level
        return normal_pvalue(statistic, ordering)

    def critical(self, ordering: str, level: float) -> tuple[float, float]:
        """Return normal quantiles; at low levels zero, so that intervals hold the estimate."""
        return on_sides(max(0.0, normal_quantile(level, ordering)), ordering)

    def most_extreme_pvalue(self, ordering: str, enough: float = 0.0) -> float:
        """Return 0: every p-value is possible."""
        del ordering, enough
        return 0.0


def at_least_normal(
    critical: tuple[float, float], ordering: str, level: float
) -> tuple[float, float]:
    """Return critical values that are at least the normal ones."""
    # permutations of rates may hardly vary, and then do not show how far chance goes
    lower, upper = on_sides(max(0.0, normal_quantile(level, ordering)), ordering)
    return min(critical[0], lower), max(critical[1], upper)


def margin_pvalue(
    reference: Reference, statistic: float, direction: str, tolerance: float, level: float
) -> PValue:
    """Return the one-sided p-value of a distance from a bound; 1 if its error is zero (NaN).

    A reference shows how the statistic spreads without a gap. The sample's distance from a bound is
    not one of its draws, as it is in a test of no gap, and all may be smaller. The p-value is
    therefore never below the normal one, nor below that of a single labelling of the rows.
    """
    if math.isnan(statistic):
        return PValue(1.0, (1.0, 1.0), (1.0, 1.0))
    found = reference.pvalue(statistic, direction, tolerance, level)
    return found.at_least(max(normal_pvalue(statistic, direction).value, reference.smallest))


def margin_critical(reference: Reference, direction: str, level: float) -> float:
    """Return the distance from a bound beyond which that p-value is at most 1 − level."""
    if reference.smallest > 1 - level:
        return math.inf
    lower, upper = at_least_normal(reference.critical(direction, level), direction, level)
    return upper if direction == DIRECTIONS[0] else -lower
