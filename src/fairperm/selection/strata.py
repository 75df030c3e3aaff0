"""Groups of applicants in strata, such as requisitions: like is compared with like.

A group's rate is standardized: the mean of its rates in the strata, weighted by how many applicants
of all groups a stratum has. Its ratio's limits are made from exact limits of the rates in every
stratum (MOVER: Donner and Zou 2012). Equality in every stratum has an exact conditional test;
whether the odds ratio is the same in all of them is what Breslow and Day's test asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import betaincinv
from scipy.stats import chi2, hypergeom

from fairperm._utils.arrays import Array
from fairperm.selection.impact import Group

_TIED = 1 + 1e-7  # probabilities so near to each other are equal, as in R
_SPREADS_KEPT = 40.0  # standard deviations: farther out, probabilities round to 0


@dataclass(frozen=True)
class StratifiedGroup:
    """The applicants of a group in every stratum, and how many of them were selected.

    ``weights`` are the strata's shares of all applicants; strata that lack a compared group have
    the weight 0.
    """

    parts: tuple[Group, ...]
    weights: tuple[float, ...]

    @property
    def selected(self) -> int:
        """How many were selected."""
        return sum(one.selected for one in self.parts)

    @property
    def applicants(self) -> int:
        """How many applied."""
        return sum(one.applicants for one in self.parts)

    @property
    def rate(self) -> float:
        """The standardized selection rate."""
        return math.fsum(w * one.rate for one, w in self._weighted)

    @property
    def _weighted(self) -> list[tuple[Group, float]]:
        return [(one, w) for one, w in zip(self.parts, self.weights, strict=True) if w]

    def times(self, factor: float) -> StratifiedGroup:
        """Return a group so many times as large in every stratum, with about the same rates."""
        parts = (one.times(factor) if one.applicants else one for one in self.parts)
        return StratifiedGroup(tuple(parts), self.weights)

    def rate_interval(self, level: float) -> tuple[float, float]:
        """Return the interval of the standardized rate by itself."""
        below, above = self.reaches((1 + level) / 2)
        return self.rate - below, self.rate + above

    def reaches(self, level: float) -> tuple[float, float]:
        """Return how far below and above the rate its limits are, each at this level."""
        selected, applicants, weights = self._arrays
        rates, alpha = selected / applicants, 1 - level
        with np.errstate(invalid="ignore"):
            low = betaincinv(selected, applicants - selected + 1, alpha)
            high = betaincinv(selected + 1, applicants - selected, level)
        low = np.where(selected == 0, 0.0, low)
        high = np.where(selected == applicants, 1.0, high)
        below, above = (math.sqrt(math.fsum((weights * (end - rates)) ** 2)) for end in (low, high))
        return min(below, self.rate), min(above, 1 - self.rate)

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array]:
        rows = [(one.selected, one.applicants, w) for one, w in self._weighted]
        selected, applicants, weights = np.array(rows, np.float64).T
        return selected, applicants, weights

    def ratio_limit(self, other: StratifiedGroup, direction: str, level: float) -> float:
        """Return the lower ("greater") or upper ("less") limit of the ratio to another's rate."""
        # it is the ratio at which a limit of ``rate - ratio * other.rate`` is 0
        first, second, is_upper = self.rate, other.rate, direction == "less"
        below, above = self.reaches(level)
        below_other, above_other = other.reaches(level)
        reach, reach_other = (above, below_other) if is_upper else (below, above_other)
        a = second**2 - reach_other**2
        c = first**2 - reach**2
        b = first * second
        root = math.sqrt(max(b**2 - a * c, 0.0))
        if is_upper:
            return (b + root) / a if a > 0 else math.inf
        return max(c, 0.0) / (b + root) if b + root > 0 else 0.0

    def equality_pvalue(self, other: StratifiedGroup) -> float:
        """Return the exact p-value of equal rates in every stratum, given all totals."""
        # it is R's ``mantelhaen.test(exact = TRUE)``: the probability of all numbers of selections
        # that are at most as probable as the one observed
        probabilities, lowest = np.ones(1), 0
        for own, its in zip(self.parts, other.parts, strict=True):
            selected = own.selected + its.selected
            if not (own.applicants and its.applicants and selected):
                lowest += own.selected  # which is all that it can be
                continue
            n = own.applicants + its.applicants
            mean, share = own.applicants * selected / n, its.applicants / n
            spread = math.sqrt(mean * share * (n - selected) / max(n - 1, 1))
            reach = _SPREADS_KEPT * spread + 1
            first = max(0, selected - its.applicants, math.floor(mean - reach))
            last = min(own.applicants, selected, math.ceil(mean + reach))
            possible = hypergeom.pmf(np.arange(first, last + 1), n, own.applicants, selected)
            probabilities = np.convolve(probabilities, possible)
            lowest += first
        observed = probabilities[min(max(self.selected - lowest, 0), len(probabilities) - 1)]
        p = math.fsum(probabilities[probabilities <= observed * _TIED])
        return min(1.0, max(p, np.finfo(float).tiny))

    def deviations_from(self, other: StratifiedGroup) -> float:
        """Return Cochran's z, the difference in pooled standard errors; 0 without any."""
        difference, variance = 0.0, 0.0
        for own, its in zip(self.parts, other.parts, strict=True):
            n = own.applicants + its.applicants
            if own.applicants and its.applicants:
                selected = own.selected + its.selected
                difference += own.selected - own.applicants * selected / n
                variance += own.applicants * its.applicants * selected * (n - selected) / n**3
        return difference / math.sqrt(variance) if variance else 0.0


def weigh_strata(applicants: Array) -> tuple[float, ...]:
    """Return the strata's shares of all applicants, by group and stratum, where no group lacks."""
    totals = np.where((applicants > 0).all(axis=0), applicants.sum(axis=0), 0.0)
    return tuple((totals / totals.sum()).tolist()) if totals.any() else tuple(totals.tolist())


def homogeneity_pvalue(first: StratifiedGroup, second: StratifiedGroup) -> float | None:
    """Return the p-value of one odds ratio in all strata: Breslow and Day's test."""
    # none if fewer than two strata have both groups and both outcomes, or if the common odds ratio
    # of Mantel and Haenszel is 0 or infinite
    tables = []
    for own, its in zip(first.parts, second.parts, strict=True):
        selected, n = own.selected + its.selected, own.applicants + its.applicants
        if own.applicants and its.applicants and 0 < selected < n:
            tables.append((own.selected, own.applicants, selected, n))
    if len(tables) < 2:
        return None
    a, m, k, n = np.array(tables, np.float64).T
    b, c = m - a, k - a
    d = n - m - c
    above, below = (a * d / n).sum(), (b * c / n).sum()
    if above == 0 or below == 0:
        return None
    ratio = above / below
    expected = _expected_selected(m, k, n, ratio)
    cells: Sequence[Array] = (expected, m - expected, k - expected, n - m - k + expected)
    variance = 1 / sum(1 / one for one in cells)
    statistic = ((a - expected) ** 2 / variance).sum()
    return float(chi2.sf(statistic, len(tables) - 1))


def _expected_selected(m: Array, k: Array, n: Array, ratio: float) -> Array:
    """Return the first group's selections at which each table has this odds ratio."""
    # a (n - m - k + a) = ratio (m - a)(k - a), of which the root in the table's range is wanted
    square, middle, last = 1 - ratio, n - m - k + ratio * (m + k), -ratio * m * k
    root = np.sqrt(middle**2 - 4 * square * last)
    return np.asarray(-2 * last / (middle + root))
