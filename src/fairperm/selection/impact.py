"""Impact ratios: each group's selection rate over that of the group that is selected most.

The data pick the group with the highest rate, so that its rate is too high by chance: of equal
groups some ratio is nearly always below 0.8. A ratio to the best group is the smallest of the
ratios to all groups, and its interval is made from one-sided limits of these: it holds for all
groups at once, whichever is truly the best. ``docs/method.md`` has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from scipy.special import betaincinv

from fairperm.hypothesis_tests.margins.restricted_rates import Rates
from fairperm.inference.multiplicity import adjust_pvalues

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_FACTOR = 1 << 20  # as many applicants: beyond, no sample decides
Interval = tuple[float, float]


class Evidence(StrEnum):
    """What the interval of an impact ratio says of the bound (the four-fifths rule's 0.8)."""

    BELOW = "below"
    AT_LEAST = "at least"
    UNDECIDED = "undecided"

    @classmethod
    def of(cls, interval: Interval, bound: float) -> Evidence:
        """Return on which side of the bound the whole interval lies."""
        low, high = interval
        if high < bound:
            return cls.BELOW
        return cls.AT_LEAST if low >= bound else cls.UNDECIDED


class Applicants(Protocol):
    """A group whose selection rate is compared with those of others of its kind."""

    @property
    def selected(self) -> int:
        """How many were selected."""

    @property
    def applicants(self) -> int:
        """How many applied."""

    @property
    def rate(self) -> float:
        """The selection rate."""

    def rate_interval(self, level: float) -> Interval:
        """Return the interval of the rate by itself."""

    def times(self, factor: float) -> Self:
        """Return a group so many times as large."""

    def ratio_limit(self, other: Any, direction: str, level: float) -> float:
        """Return the lower ("greater") or upper ("less") limit of the ratio to another's rate."""

    def equality_pvalue(self, other: Any) -> float:
        """Return the exact two-sided p-value of equal rates."""

    def deviations_from(self, other: Any) -> float:
        """Return z, the difference in pooled standard errors."""


@dataclass(frozen=True, slots=True)
class Group:
    """The applicants of a group, and how many of them were selected."""

    selected: int
    applicants: int

    @property
    def rate(self) -> float:
        """The selection rate."""
        return self.selected / self.applicants

    def against(self, other: Group) -> Rates:
        """Return this group's rate and another's as two binomial samples."""
        return Rates((self.selected, self.applicants), (other.selected, other.applicants))

    def rate_interval(self, level: float) -> Interval:
        """Return the interval of the rate by itself, of Clopper and Pearson."""
        k, n, tail = self.selected, self.applicants, (1 - level) / 2
        low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
        high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
        return low, high

    def times(self, factor: float) -> Group:
        """Return a group so many times as large, with about the same rate."""
        applicants = round(self.applicants * factor)
        return Group(round(self.rate * applicants), applicants)

    def ratio_limit(self, other: Group, direction: str, level: float) -> float:
        """Return the lower ("greater") or upper ("less") limit of the ratio to another's rate."""
        is_upper = direction == "less"
        rates = self.against(other)
        interval = rates.invert_ratio(direction, level)
        if interval is None:  # large samples
            critical = rates.binomials.critical(direction, level)
            interval = rates.ratio_interval(critical)
        return interval[is_upper]

    def equality_pvalue(self, other: Group) -> float:
        """Return the exact two-sided p-value of two equal rates."""
        rates = self.against(other)
        return rates.binomials.probability(rates.statistic, "two-sided")

    def deviations_from(self, other: Group) -> float:
        """Return z, the difference of the rates in pooled standard errors; 0 without any."""
        pooled = (self.selected + other.selected) / (self.applicants + other.applicants)
        error = math.sqrt(pooled * (1 - pooled) * (1 / self.applicants + 1 / other.applicants))
        return (self.rate - other.rate) / error if error else 0.0


@dataclass(frozen=True, slots=True)
class Impact:
    """The impact ratio of one of several groups."""

    ratio: float  # the group's rate over the highest
    interval: Interval  # simultaneous for all groups
    evidence: Evidence
    pvalue: float  # of equality with the best group: adjusted for all pairs; 1 for the best itself
    # the pooled two-proportion z against the group with the highest rate
    standard_deviations: float
    shortfall: float  # selections that the group lacks to the highest rate
    # whether one selection more, or one fewer, moves the ratio across the bound; None in strata,
    # where it depends on the stratum
    flips: bool | None


def find_best(groups: Sequence[Applicants]) -> int:
    """Return the place of the group with the highest rate; of several, the largest, then first."""
    return max(range(len(groups)), key=lambda i: (groups[i].rate, groups[i].applicants, -i))


def compare_with_best(groups: Sequence[Applicants], *, bound: float, level: float) -> list[Impact]:
    """Return every group's impact ratio. At least one group has a selection."""
    best = groups[find_best(groups)]
    intervals = [ratio_interval(groups, place, level) for place in range(len(groups))]
    pvalues = equality_pvalues(groups)
    found = []
    for group, interval, p in zip(groups, intervals, pvalues, strict=True):
        ratio = group.rate / best.rate
        found.append(
            Impact(
                ratio=ratio,
                interval=(min(interval[0], ratio), max(interval[1], ratio)),
                evidence=Evidence.of(interval, bound),
                pvalue=p,
                standard_deviations=group.deviations_from(best),
                shortfall=(best.rate - group.rate) * group.applicants,
                flips=_flips(groups, group, bound) if isinstance(group, Group) else None,
            )
        )
    return found


def ratio_interval(groups: Sequence[Applicants], place: int, level: float) -> Interval:
    """Return the interval of one impact ratio; those of all hold together at this level.

    The ratio of group g is the smallest of the ratios r_h to all groups h. Its lower end is the
    smallest of their lower limits: it can only fail where the limit for the truly best group does,
    one limit for each of the k groups, so that each may fail with probability α/(2k). Its upper end
    is the smallest of their upper limits, any of which may fail: α/(2k(k − 1)) each.
    """
    group, others = groups[place], (*groups[:place], *groups[place + 1 :])
    of_low, of_high = _levels(len(groups), level)
    low = min(ratio_limit(group, one, "greater", of_low) for one in others)
    high = min(ratio_limit(group, one, "less", of_high) for one in others)
    return min(low, 1.0), min(high, 1.0)  # the ratio to itself


def _levels(k: int, level: float) -> tuple[float, float]:
    """Return the levels of the lower and of the upper limits of ratios among k groups."""
    alpha = 1 - level
    return 1 - alpha / (2 * k), 1 - alpha / (2 * k * (k - 1))


def ratio_limit(group: Applicants, other: Applicants, direction: str, level: float) -> float:
    """Return the lower ("greater") or upper ("less") limit of a ratio of two rates."""
    if not (group.selected or other.selected):
        return math.inf if direction == "less" else 0.0
    return group.ratio_limit(other, direction, level)


def equality_pvalues(groups: Sequence[Applicants]) -> list[float]:
    """Return for each group the p-value of being selected as often as the best."""
    # All pairs are tested exactly and adjusted by Holm's method, so it does not matter which group
    # comes out best. A group differs from the best if it differs from any group above it.
    k = len(groups)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    raw = [groups[i].equality_pvalue(groups[j]) for i, j in pairs]
    found = [1.0] * k
    for (i, j), p in zip(pairs, adjust_pvalues(np.array(raw), "holm").tolist(), strict=True):
        if groups[i].rate != groups[j].rate:
            lower = i if groups[i].rate < groups[j].rate else j
            found[lower] = min(found[lower], p)
    return found


def applicants_to_decide(
    groups: Sequence[Applicants], place: int, bound: float, level: float
) -> float:
    """Return about how many applicants would decide on which side of the bound a ratio lies."""
    # it supposes that shares and rates of the groups stay as they are; infinite for a ratio that is
    # the bound itself
    n = sum(group.applicants for group in groups)

    def is_decided(factor: float) -> bool:
        return _is_decided([group.times(factor) for group in groups], place, bound, level)

    enough = 1.0
    while not is_decided(enough):
        enough *= 2
        if enough > _MAX_FACTOR:
            return math.inf
    short = enough / 2
    while enough - short > enough / 50:
        middle = (short + enough) / 2
        short, enough = (short, middle) if is_decided(middle) else (middle, enough)
    return n * enough


def _is_decided(groups: Sequence[Applicants], place: int, bound: float, level: float) -> bool:
    """Return whether the interval of a ratio lies on one side of the bound."""
    # an interval holds the estimate, so that it can only lie on the side of that
    group = groups[place]
    others = sorted((*groups[:place], *groups[place + 1 :]), key=lambda one: one.rate, reverse=True)
    of_low, of_high = _levels(len(groups), level)
    if group.rate < bound * others[0].rate:
        return any(
            ratio_limit(group, one, "less", of_high) < bound
            for one in others
            if group.rate < bound * one.rate
        )
    return all(ratio_limit(group, one, "greater", of_low) >= bound for one in others)


def _flips(groups: Sequence[Applicants], group: Group, bound: float) -> bool:
    """Return whether one selection more or fewer in the group moves its ratio across the bound."""
    best = max(one.rate for one in groups)
    others = max((one.rate for one in groups if one is not group), default=0.0)
    is_below = group.rate / best < bound
    changed = group.selected + (1 if is_below else -1)
    if not 0 <= changed <= group.applicants:
        return False
    rate = changed / group.applicants
    highest = max(rate, others)
    return highest > 0 and (rate / highest < bound) != is_below
