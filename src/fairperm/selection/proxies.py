"""Groups of applicants that are known only as probabilities."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from fairperm._utils.arrays import Array, Booleans
from fairperm.data.sample import Sample
from fairperm.hypothesis_tests.proxies.gap import ProxySample, choose_proxied
from fairperm.inference.null import normal_pvalue, normal_quantile
from fairperm.metrics.registry import get_metric

NORMAL = "Groups are known only as probabilities: intervals and p are those of the normal limit."


@dataclass(frozen=True, slots=True)
class LikelyGroup:
    """The applicants who may belong to a group: expected numbers, and the rate's covariances."""

    selected: int
    applicants: int
    rate: float
    effective: float  # how many applicants of a known group would say as much
    place: int
    covariance: Array  # of the rates of all groups

    @classmethod
    def list_all(cls, table: Sample, is_selected: Booleans) -> dict[Hashable, LikelyGroup]:
        """Return every group of a table."""
        metric = choose_proxied(table, get_metric("selection_rate"), table.groups)
        of = ProxySample.of(replace(table, columns={"y_pred": is_selected}), metric).rows
        moved = of.leave_out(None)
        sizes = of.effective_sizes(np.ones(len(of.contributions)), None).tolist()
        found = {}
        for place, (name, n) in enumerate(table.sizes().items()):
            rate = min(max(float(of.estimate()[0][place]), 0.0), 1.0)
            found[name] = cls(round(rate * n), n, rate, sizes[place], place, moved @ moved.T)
        return found

    def rate_interval(self, level: float) -> tuple[float, float]:
        """Return the interval of the rate by itself."""
        reach = normal_quantile(level) * math.sqrt(self.covariance[self.place, self.place])
        return max(self.rate - reach, 0.0), min(self.rate + reach, 1.0)

    def times(self, factor: float) -> LikelyGroup:
        """Return a group so many times as large."""
        n, k = round(self.applicants * factor), round(self.selected * factor)
        return replace(self, applicants=n, selected=k, covariance=self.covariance / factor)

    def ratio_limit(self, other: LikelyGroup, direction: str, level: float) -> float:
        """Return the lower ("greater") or upper ("less") limit of the ratio: Fieller's."""
        z2, pair = normal_quantile(level, direction) ** 2, [self.place, other.place]
        own, shared, its = self.covariance[np.ix_(pair, pair)].ravel()[[0, 1, 3]].tolist()
        a = other.rate**2 - z2 * its
        b = self.rate * other.rate - z2 * shared
        c = self.rate**2 - z2 * own
        root = math.sqrt(max(b**2 - a * c, 0.0))
        if direction == "less":
            return (b + root) / a if a > 0 else math.inf
        return max(c, 0.0) / (b + root) if b + root > 0 else 0.0

    def equality_pvalue(self, other: LikelyGroup) -> float:
        """Return the two-sided p-value of equal rates, in the normal limit."""
        return normal_pvalue(self.deviations_from(other), "two-sided").value

    def deviations_from(self, other: LikelyGroup) -> float:
        """Return the difference in standard errors; 0 without any."""
        contrast = np.zeros(len(self.covariance))
        contrast[self.place] += 1
        contrast[other.place] -= 1
        error = math.sqrt(contrast @ self.covariance @ contrast)
        return (self.rate - other.rate) / error if error else 0.0
