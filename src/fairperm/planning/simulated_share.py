"""A share of simulated samples, with the chance in the simulation and in the user's sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm.inference.null import clopper_pearson

if TYPE_CHECKING:
    from collections.abc import Sequence

_UPPER_LIMIT = 0.9  # confidence that the variance between samples is at most the one used


@dataclass(frozen=True, slots=True)
class SimulatedShare:
    """Rejections among simulated samples; ``resampled`` the same for bootstrap samples."""

    rejected: int
    n: int
    resampled: Sequence[tuple[int, int]]

    @property
    def value(self) -> float:
        """Return the share of samples in which the test rejects."""
        return self.rejected / self.n

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """Return an interval for the share in infinitely many samples of the user's rows."""
        return clopper_pearson(self.rejected, self.n, confidence_level)

    def total_interval(self, confidence_level: float) -> tuple[float, float]:
        """Return an interval for the share in the population that the user's rows come from.

        It is Clopper and Pearson's for a smaller number of simulations: that with which chance
        alone would be as large as the chance in the simulation and in the user's sample together.
        """
        between = self.variance_between()
        typical = (self.rejected + 0.5) / (self.n + 1)
        n = self.n / (1 + self.n * between / (typical * (1 - typical)))
        return clopper_pearson(self.value * n, n, confidence_level) if n > 0 else (0.0, 1.0)

    def variance_between(self) -> float:
        """Return an upper limit of the variance of the share between samples like the user's.

        The variance between bootstrap samples is that of their shares less that of a binomial
        distribution. A few samples estimate it roughly; hence the upper limit.
        """
        from scipy.special import gammaincinv

        counts = np.array([pair for pair in self.resampled if pair[1] > 0], np.float64)
        if len(counts) < 2:
            return math.inf
        rejected, n = counts.T
        mean = rejected.sum() / n.sum()
        freedom = len(counts) - 1
        largest = np.sum((rejected / n - mean) ** 2) / (
            2 * gammaincinv(freedom / 2, 1 - _UPPER_LIMIT)
        )
        return max(0.0, float(largest - np.mean(mean * (1 - mean) / n)))
