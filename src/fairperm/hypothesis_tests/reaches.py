"""How far the interval of a gap goes, for critical values of its statistic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairperm._utils.arrays import Array
from fairperm.engines.estimates import Estimates
from fairperm.inference.errors_by_gap import GapVariance
from fairperm.inference.null import gap_interval
from fairperm.inference.skewness import restore_skewness
from fairperm.metrics.definition import Metric


class _QuantileReach:
    """What has critical values of the test at zero only."""

    __slots__ = ()

    def invert(self, ordering: str, level: float) -> None:
        """Return None: the test is not made at other values."""
        del ordering, level


@dataclass(frozen=True, slots=True)
class ErrorReach(_QuantileReach):
    """Critical values times the standard error of each part's gap.

    Bins of scores may have moved the gap by ``binning_error``. Critical values of a statistic
    without its ``skewness`` get that of the sample back: the interval is no longer symmetric.
    """

    gap: Array
    error: Array
    span: float
    binning_error: float = 0.0
    skewness: float = 0.0

    def interval(self, critical: tuple[float, float]) -> tuple[float, float]:
        return gap_interval(self.gap, self._reach, critical, self.span)

    def _reach(self, quantile: float) -> tuple[Array, Array]:
        below, above = (
            np.where(np.isnan(self.error), math.inf, quantile * self.error + self.binning_error)
            for quantile in restore_both_ways(quantile, self.skewness)
        )
        return below, above


def restore_both_ways(quantile: float, skewness: float) -> tuple[float, float]:
    """Return how many standard errors below and above a gap a critical value reaches."""
    # an interval holds its estimate, also where critical values are near zero and skewness is not
    if skewness == 0:
        return quantile, quantile
    size = np.array([skewness, -skewness])
    below, above = np.maximum(restore_skewness(np.array(quantile), size), 0.0).tolist()
    return below, above


@dataclass(frozen=True, slots=True)
class WilsonReach(_QuantileReach):
    """Wilson's limits of each group's rate, joined as Newcombe does."""

    gap: Array
    estimates: Estimates
    parts: Sequence[Metric]
    weights: Array | None
    span: float

    def interval(self, critical: tuple[float, float]) -> tuple[float, float]:
        return gap_interval(self.gap, self._reach, critical, self.span)

    def _reach(self, quantile: float) -> tuple[Array, Array]:
        return self.estimates.rate_reaches(self.parts, quantile, self.weights)


@dataclass(frozen=True, slots=True)
class StrataReach(_QuantileReach):
    """The gaps over strata that a score test with Mantel and Haenszel's weights accepts."""

    gap: Array
    variances: Sequence[GapVariance]
    estimates: Estimates
    parts: Sequence[Metric]
    span: float

    def interval(self, critical: tuple[float, float]) -> tuple[float, float]:
        return gap_interval(self.gap, self._reach, critical, self.span)

    def _reach(self, quantile: float) -> tuple[Array, Array]:
        pairs = zip(self.variances, self.gap, strict=True)
        ends = np.array([variance.interval(gap, quantile) for variance, gap in pairs])
        # where all rows of each stratum are alike, all strata together say how far chance goes
        is_alike = np.array([variance.at_zero == 0 for variance in self.variances])
        below, above = self.estimates.merge_strata().rate_reaches(self.parts, quantile)
        return (
            np.where(is_alike, below, self.gap - ends[:, 0]),
            np.where(is_alike, above, ends[:, 1] - self.gap),
        )
