"""From the observed statistic and its null distribution to p-values and intervals.

Exceedances are counted here and, of many thresholds or hypotheses at once, in ``_bands`` and
``_multiplicity``; nowhere else.
"""

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
    """Return the interval for a probability that covers it at least at this level."""
    from scipy.special import betaincinv

    tail = (1 - confidence_level) / 2
    low = betaincinv(successes, n - successes + 1, tail) if successes > 0 else 0.0
    high = betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    return float(low), float(high)


def normal_quantile(confidence_level: float, alternative: str = "two-sided") -> float:
    """Return how far a normal deviate lies at most, at this level, to both sides or to one."""
    tail = (1 - confidence_level) / (2 if alternative == "two-sided" else 1)
    return NormalDist().inv_cdf(1 - tail)


def wilson(successes: int, n: int, confidence_level: float) -> tuple[float, float]:
    """Return Wilson's score interval for a probability: on average at this level."""
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
    """Return the interval of the gap, one-sided if asked; of several, of the largest in size.

    ``reaches`` tells how far below and above the gap it goes for a quantile of the null
    distribution. ``most`` is the largest gap there can be, beyond which no interval reaches.
    Several gaps are covered all at once by the quantile of their largest statistic.
    """
    side = {"two-sided": np.abs(null.statistic), "less": -null.statistic}
    statistic = side.get(alternative, null.statistic)
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
