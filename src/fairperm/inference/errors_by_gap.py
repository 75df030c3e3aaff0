"""Standard errors of a gap that depend on the true gap."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairperm._utils.arrays import Array


class ErrorsByGap:
    """The standard error of a gap as a function of the true gap, and what it rests on."""

    __slots__ = ()

    has_trials: ClassVar[bool] = False  # whether it rests on two groups' counts of Bernoulli trials
    is_paired: ClassVar[bool] = False
    """Whether it rests on the rows of a group that changed from one model to another."""

    @property
    def reason(self) -> str:
        """Why no claim is made at a margin, as the second half of a sentence; "" if one is."""
        return ""

    @abstractmethod
    def standard_error(self, gap: float) -> float:
        """Return the standard error of the estimate where this is the true gap."""


@dataclass(frozen=True, slots=True)
class GapVariance(ErrorsByGap):
    """The variance of a Mantel–Haenszel difference of rates, for strata large and small.

    Sato, Greenland and Robins (1989): the estimate is consistent when strata are few and large, and
    also when they are many and tiny, such as matched pairs. The sum of p(1 − p)/m over the strata
    is far too small there: it is zero where each group has one row.

    With x of m rows of the first group and y of n rows of the second counted in a stratum of N
    rows, the weighted gap is Σ (x·n − y·m)/N / Σ m·n/N, and where the gap is δ its variance is a
    straight line, (δ·ΣP + ΣQ) / (Σ m·n/N)², with

        P = (m²·y − n²·x + m·n·(n − m)/2) / N²        Q = (x·(n − y) + y·(m − x)) / (2·N).
    """

    slope: float
    at_zero: float

    @classmethod
    def of(cls, counted: Array, sizes: Array) -> GapVariance:
        """Return the variance from the rows counted and all rows, by stratum and group."""
        (x, y), (m, n) = counted.T, sizes.T
        both = m + n
        with np.errstate(divide="ignore", invalid="ignore"):
            p = (m**2 * y - n**2 * x + m * n * (n - m) / 2) / both**2
            q = (x * (n - y) + y * (m - x)) / (2 * both)
            weight = m * n / both
            used = weight > 0  # without any, nothing is known
            whole = weight[used].sum() ** 2
            return cls(float(p[used].sum() / whole), float(q[used].sum() / whole))

    def standard_error(self, gap: float) -> float:
        variance = self.slope * gap + self.at_zero
        return math.sqrt(variance) if variance > 0 else 0.0 * variance

    def interval(self, gap: float, quantile: float) -> tuple[float, float]:
        """Return the true gaps from which the estimate is at most ``quantile`` errors away."""
        centre = gap + quantile**2 * self.slope / 2
        reach = math.sqrt(max(0.0, centre**2 - gap**2 + quantile**2 * self.at_zero))
        low, high = min(centre - reach, gap), max(centre + reach, gap)  # rounding may leave it out
        return max(-1.0, low), min(1.0, high)
