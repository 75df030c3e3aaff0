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
from typing import TYPE_CHECKING

import numpy as np

from fairperm.hypothesis_tests.margins.restricted_rates import Rates
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.inference.reference import Unconditional

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_TIMES = 1 << 20  # as many applicants: beyond, no sample decides
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

    def times(self, factor: float) -> Group:
        """Return a group so many times as large, with about the same rate."""
        applicants = round(self.applicants * factor)
        return Group(round(self.rate * applicants), applicants)


@dataclass(frozen=True, slots=True)
class Impact:
    """The impact ratio of one of several groups.

    Attributes
    ----------
    ratio
        The group's rate over the highest.
    interval
        Simultaneous for all groups.
    pvalue
        Of equality with the best group: adjusted for all pairs; 1 for the best itself.
    standard_deviations
        The pooled two-proportion z against the group with the highest rate.
    shortfall
        Selections that the group lacks to the highest rate.
    flips
        Whether one selection more, or one fewer, moves the ratio across the bound.
    """

    ratio: float
    interval: Interval
    evidence: Evidence
    pvalue: float
    standard_deviations: float
    shortfall: float
    flips: bool


def find_best(groups: Sequence[Group]) -> int:
    """Return the place of the group with the highest rate; of several, the largest, then first."""
    return max(range(len(groups)), key=lambda i: (groups[i].rate, groups[i].applicants, -i))


def compare_with_best(groups: Sequence[Group], *, bound: float, level: float) -> list[Impact]:
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
                standard_deviations=_count_deviations(group, best),
                shortfall=(best.rate - group.rate) * group.applicants,
                flips=_flips(groups, group, bound),
            )
        )
    return found


def ratio_interval(groups: Sequence[Group], place: int, level: float) -> Interval:
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


def ratio_limit(group: Group, other: Group, direction: str, level: float) -> float:
    """Return the lower ("greater") or upper ("less") limit of a ratio of two rates."""
    is_upper = direction == "less"
    if not (group.selected or other.selected):
        return math.inf if is_upper else 0.0
    rates = group.against(other)
    interval = rates.invert_ratio(direction, level)
    if interval is None:  # large samples
        critical = Unconditional(rates.binomials).critical(direction, level)
        interval = rates.ratio_interval(critical)
    return interval[is_upper]


def equality_pvalues(groups: Sequence[Group]) -> list[float]:
    """Return for each group the p-value of being selected as often as the best.

    All pairs are tested exactly and adjusted by Holm's method, so it does not matter which group
    comes out best. A group differs from the best if it differs from any group above it.
    """
    k = len(groups)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    raw = [_equality_pvalue(groups[i], groups[j]) for i, j in pairs]
    found = [1.0] * k
    for (i, j), p in zip(pairs, adjust_pvalues(np.array(raw), "holm").tolist(), strict=True):
        if groups[i].rate != groups[j].rate:
            lower = i if groups[i].rate < groups[j].rate else j
            found[lower] = min(found[lower], p)
    return found


def applicants_to_decide(groups: Sequence[Group], place: int, bound: float, level: float) -> float:
    """Return about how many applicants would decide on which side of the bound a ratio lies.

    It supposes that shares and rates of the groups stay as they are; infinite for a ratio that is
    the bound itself.
    """
    n = sum(group.applicants for group in groups)

    def is_decided(factor: float) -> bool:
        return _is_decided([group.times(factor) for group in groups], place, bound, level)

    enough = 1.0
    while not is_decided(enough):
        enough *= 2
        if enough > _MOST_TIMES:
            return math.inf
    short = enough / 2
    while enough - short > enough / 50:
        middle = (short + enough) / 2
        short, enough = (short, middle) if is_decided(middle) else (middle, enough)
    return n * enough


def _is_decided(groups: Sequence[Group], place: int, bound: float, level: float) -> bool:
    """Return whether the interval of a ratio lies on one side of the bound.

    An interval holds the estimate, so that it can only lie on the side of that.
    """
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


def _equality_pvalue(group: Group, other: Group) -> float:
    """Return the exact two-sided p-value of two equal rates."""
    rates = group.against(other)
    return rates.binomials.pvalue(rates.statistic, "two-sided")


def _count_deviations(group: Group, best: Group) -> float:
    """Return z, the difference from the best rate in pooled standard errors; 0 without any."""
    pooled = (group.selected + best.selected) / (group.applicants + best.applicants)
    error = math.sqrt(pooled * (1 - pooled) * (1 / group.applicants + 1 / best.applicants))
    return (group.rate - best.rate) / error if error else 0.0


def _flips(groups: Sequence[Group], group: Group, bound: float) -> bool:
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
