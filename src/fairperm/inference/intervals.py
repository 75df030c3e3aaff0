"""Confidence intervals: of probabilities, and of a gap from its null distribution."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairperm.inference.null import Null

    Array = NDArray[np.float64]


def clopper_pearson(successes: int, n: int, confidence_level: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval for a probability: it covers at least at this level."""
    from scipy.special import betaincinv

    tail = (1 - confidence_level) / 2
    low = betaincinv(successes, n - successes + 1, tail) if successes > 0 else 0.0
    high = betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    return float(low), float(high)


def normal_quantile(confidence_level: float, alternative: str = "two-sided") -> float:
    """Return the two-sided or one-sided normal quantile for this level."""
    tail = (1 - confidence_level) / (2 if alternative == "two-sided" else 1)
    return NormalDist().inv_cdf(1 - tail)


def wilson(successes: int, n: int, confidence_level: float) -> tuple[float, float]:
    """Return Wilson's score interval for a probability: its mean coverage is about the level."""
    z = normal_quantile(confidence_level)
    share = successes / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def gap_interval(
    null: Null,
    gap: Array,
    reaches: Callable[[float], tuple[Array, Array]],
    alternative: str,
    confidence_level: float,
    most: float,
) -> tuple[float, float]:
    """Return the interval of the gap in the alternative's direction; for several, of the largest.

    ``reaches`` returns how far below and above the gap the interval extends for a quantile of the
    null distribution. ``most`` is the largest possible gap, which bounds the interval. The quantile
    of the largest statistic covers several gaps at once.
    """
    directed = {"two-sided": np.abs(null.statistic), "less": -null.statistic}
    statistic = directed.get(alternative, null.statistic)
    quantile = null.quantile(statistic, confidence_level)
    below = above = np.full_like(gap, math.inf)
    if math.isfinite(quantile):
        below, above = reaches(quantile)
    low, high = np.maximum(gap - below, -most), np.minimum(gap + above, most)
    if len(gap) > 1:
        nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(abs(low), abs(high)))
        return float(nearest.max()), float(np.maximum(abs(low), abs(high)).max())
    return (
        -most if alternative == "less" else float(low[0]),
        most if alternative == "greater" else float(high[0]),
    )
