"""The null distribution of a statistic, and the p-value and the confidence interval it gives.

Exceedances are counted here and, for many thresholds or hypotheses at once, in ``bands`` and
``multiplicity``.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


TIE = 1e-13  # relative rounding error of a gap or a statistic, with room
MANY_UNDEFINED = 0.01  # share of the draws


@dataclass(frozen=True, slots=True)
class Null:
    """The statistic of every draw: of equally likely draws or, if exact, with log-probabilities."""

    statistic: Array
    log_probability: Array | None = None

    @property
    def undefined(self) -> NDArray[np.bool_]:
        """Whether the statistic is undefined, for each draw."""
        return np.isnan(self.statistic)

    def share(self, chosen: NDArray[np.bool_]) -> float:
        """Return the probability of the chosen draws."""
        if self.log_probability is None:
            return float(chosen.mean())
        return float(np.exp(self.log_probability[chosen]).sum())

    def quantile(self, values: Array, level: float) -> float:
        """Return the value that a further draw stays at or below with probability ``level``.

        Undefined draws count as infinite, and among B random draws the (B+1)-th is not yet
        known, so the quantile errs to the far side.
        """
        values = np.where(np.isnan(values), np.inf, values)
        order = np.argsort(values)
        if self.log_probability is None:
            rank = math.ceil(level * (len(values) + 1) - TIE)
            return float(values[order[rank - 1]]) if rank <= len(values) else math.inf
        reached = np.cumsum(np.exp(self.log_probability[order]))
        rank = int(np.searchsorted(reached, level - TIE))
        return float(values[order[min(rank, len(values) - 1)]])


@dataclass(frozen=True, slots=True)
class PValue:
    """A p-value, and intervals for the one that infinitely many draws would give."""

    value: float
    interval: tuple[float, float]
    wilson_interval: tuple[float, float]


def tie_tolerance(statistic: float, span: Array, error: Array) -> float:
    """Return the distance within which a draw counts as tied with the observed statistic.

    Rounding errors of a gap are relative to the metric's span, not to the gap: near zero a
    tolerance relative to the statistic alone would miss ties.
    """
    if not math.isfinite(statistic):
        return 0.0
    studentized_span = (span[error > 0] / error[error > 0]).max(initial=0.0)
    return float(TIE * (abs(statistic) + studentized_span))


def find_extreme(
    statistic: Array, observed: float, alternative: str, tolerance: float
) -> NDArray[np.bool_]:
    """Return which draws are at least as extreme as the observed statistic.

    Undefined draws count as extreme: a p-value may only err upwards.
    """
    if alternative == "two-sided":
        statistic, observed = np.abs(statistic), abs(observed)
    elif alternative == "less":
        statistic, observed = -statistic, -observed
    return np.isnan(statistic) | (statistic >= observed - tolerance)


def nearer_to_null(statistic: float, error: float, alternative: str) -> float:
    """Return the least extreme of the statistics that are at most ``error`` away."""
    if alternative == "greater":
        return statistic - error
    if alternative == "less":
        return statistic + error
    return math.copysign(max(abs(statistic) - error, 0.0), statistic)


def pvalue(null: Null, is_extreme: NDArray[np.bool_], confidence_level: float) -> PValue:
    """Return the share of extreme draws; random draws include the observed sample."""
    if null.log_probability is not None:
        # below the smallest float a p-value is still not zero
        exact = min(1.0, max(null.share(is_extreme), sys.float_info.min))
        return PValue(exact, (exact, exact), (exact, exact))
    b, n = int(is_extreme.sum()), len(is_extreme)
    return PValue(
        (b + 1) / (n + 1),
        clopper_pearson(b, n, confidence_level),
        wilson(b, n, confidence_level),
    )


def normal_limit() -> Null:
    """Return the normal limit of a studentized gap under the null, as a distribution of points.

    Each point stands for the values from itself outwards to the next, so its quantiles never lie
    beyond those of the normal distribution: callers that need at least these take the larger.
    """
    points = np.arange(401) / 100
    tails = np.array([math.erfc(point / math.sqrt(2)) / 2 for point in points])
    share = np.append(tails[:-1] - tails[1:], tails[-1])
    statistic = np.concatenate([-points[:0:-1], points])
    probability = np.concatenate([share[:0:-1], [2 * share[0]], share[1:]])
    return Null(statistic, np.log(probability))


def normal_pvalue(statistic: float, alternative: str) -> PValue:
    """Return the probability that a normal deviate is as extreme; never zero."""
    outwards = {"two-sided": abs(statistic), "less": -statistic}.get(alternative, statistic)
    tail = math.erfc(outwards / math.sqrt(2)) / 2
    p = max(2 * tail if alternative == "two-sided" else tail, sys.float_info.min)
    return PValue(p, (p, p), (p, p))


def note_undefined(null: Null, draws: str = "permutations", more: str = "") -> list[str]:
    """Return a note if the metric is undefined in more than a few of the draws."""
    share = null.share(null.undefined)
    if share <= MANY_UNDEFINED:
        return []
    return [
        f"The metric is undefined in {share:.1%} of the {draws}, each of which counts as "
        f"extreme: the p-value errs upwards.{more} The groups are small for this metric."
    ]


def clopper_pearson(successes: float, n: float, confidence_level: float) -> tuple[float, float]:
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


def agree(interval: tuple[float, float], gap: float, *, is_rejected: bool) -> tuple[float, float]:
    """Return the interval with 0 inside exactly if the test of no gap does not reject.

    At 0 the interval's own test makes way for the reported one; other gaps are judged as before.
    """
    low, high = interval
    if not is_rejected:
        return min(low, 0.0), max(high, 0.0)
    if gap > 0:
        return max(low, math.nextafter(0.0, 1.0)), high
    return low, min(high, math.nextafter(0.0, -1.0))


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
