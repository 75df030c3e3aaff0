"""The null distribution of a statistic, and the p-value and the confidence interval it gives.

Exceedances are counted here and, for many thresholds or hypotheses at once, in ``bands`` and
``multiplicity``.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.checks import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairperm._utils.arrays import Array, Booleans

TIE = 1e-13  # relative rounding error of a gap or a statistic, with room
MANY_UNDEFINED = 0.01  # share of the draws
_ROUNDING = 1e-9  # of a number of draws


@dataclass(frozen=True, slots=True)
class Null:
    """The statistic of every draw: of equally likely draws or, if exact, with log-probabilities.

    Random draws may have stopped early.
    """

    statistic: Array
    log_probability: Array | None = None
    stopped_early: bool = False

    @property
    def undefined(self) -> Booleans:
        """Whether the statistic is undefined, for each draw."""
        return np.isnan(self.statistic)

    def share(self, chosen: Booleans) -> float:
        """Return the probability of the chosen draws."""
        if self.log_probability is None or np.ptp(self.log_probability) == 0:
            return float(chosen.mean())  # all are equally likely: no sum to round
        return float(np.exp(self.log_probability[chosen]).sum())

    def quantile(self, values: Array, level: float) -> float:
        """Return the value that a further draw stays at or below with probability ``level``."""
        # undefined draws count as infinite, and among B random draws the (B+1)-th is not yet known,
        # so the quantile errs to the far side
        values = np.where(np.isnan(values), np.inf, values)
        if self.log_probability is None:
            rank = math.ceil(level * (len(values) + 1) - _ROUNDING)
            if rank > len(values):
                return math.inf
            place = max(rank - 1, 0)
            return float(np.partition(values, place)[place])
        order = np.argsort(values)
        reached = np.cumsum(np.exp(self.log_probability[order]))
        place = int(np.searchsorted(reached, level - TIE))
        return float(values[order[min(place, len(values) - 1)]])


@dataclass(frozen=True, slots=True)
class PValue:
    """A p-value, and intervals for the one that infinitely many draws would give."""

    value: float
    interval: tuple[float, float]
    wilson_interval: tuple[float, float]

    def doubled(self) -> PValue:
        """Return twice the p-value and its intervals, at most 1."""

        def double(ends: tuple[float, float]) -> tuple[float, float]:
            return min(1.0, 2 * ends[0]), min(1.0, 2 * ends[1])

        return PValue(min(1.0, 2 * self.value), double(self.interval), double(self.wilson_interval))

    def at_least(self, least: float) -> PValue:
        """Return the p-value and its intervals, none of them below ``least``."""

        def raised(ends: tuple[float, float]) -> tuple[float, float]:
            return max(ends[0], least), max(ends[1], least)

        return PValue(max(self.value, least), raised(self.interval), raised(self.wilson_interval))


def tie_tolerance(statistic: float, span: Array, error: Array, skewness: float = 0.0) -> float:
    """Return the distance within which a draw counts as tied with the observed statistic.

    Rounding errors of a gap are relative to the metric's span, not to the gap: near zero a
    tolerance relative to the statistic alone would miss ties. Taking skewness out makes them larger
    by at most the square of 1 + |k·S|/3.
    """
    if not math.isfinite(statistic):
        return 0.0
    studentized_span = (span[error > 0] / error[error > 0]).max(initial=0.0)
    steepness = (1 + abs(skewness * statistic) / 3) ** 2
    return float(TIE * (abs(statistic) + studentized_span) * steepness)


def drop_rounding(gap: Array, size: Array | float) -> Array:
    """Return the gaps with zero in place of those that are rounding errors of values of this size.

    They are tied with zero. It is never the negative zero.
    """
    return np.where(np.abs(gap) <= TIE * size, 0.0, gap)


def find_extreme(statistic: Array, observed: float, alternative: str, tolerance: float) -> Booleans:
    """Return which draws are at least as extreme as the observed statistic."""
    # "symmetric" compares sizes, "greater" and "less" compare on one side. Undefined draws count as
    # extreme: a p-value may only err upwards.
    if alternative == "symmetric":
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


def pvalue(
    null: Null, observed: float, alternative: str, tolerance: float, confidence_level: float
) -> PValue:
    """Return the p-value of an observed statistic; random draws include the observed sample.

    "two-sided" is twice the smaller of the one-sided p-values. "symmetric" counts draws that are
    as large in size: where the null distribution is skewed, its longer tail alone may fill the
    level, and a gap on the other side is hardly ever found.
    """
    is_extreme = find_tail(null.statistic, observed, alternative, tolerance, null.share)
    found = _count(null, is_extreme, confidence_level)
    return found.doubled() if alternative == "two-sided" else found


def find_tail(
    statistic: Array,
    observed: float,
    alternative: str,
    tolerance: float,
    share: Callable[[Booleans], float],
) -> Booleans:
    """Return which draws the p-value counts: of a two-sided one, those of the smaller tail."""
    return min(list_tails(statistic, observed, alternative, tolerance), key=share)


def list_tails(
    statistic: Array, observed: float, alternative: str, tolerance: float
) -> list[Booleans]:
    """Return which draws are extreme, in each tail that the alternative has."""
    sides = DIRECTIONS if alternative == "two-sided" else (alternative,)
    return [find_extreme(statistic, observed, side, tolerance) for side in sides]


def snap_pvalue(p: float) -> float:
    """Return the decimal number of six digits that a p-value is but for rounding, or itself."""
    # A sum of probabilities that is 0.05 may be rounded to 0.05000000000000001, which is above 0.05
    decimal = float(f"{p:.6g}")
    return decimal if abs(p - decimal) <= TIE * p else p


def _count(null: Null, is_extreme: Booleans, confidence_level: float) -> PValue:
    if null.log_probability is not None:
        # below the smallest float a p-value is still not zero
        exact = min(1.0, max(snap_pvalue(null.share(is_extreme)), sys.float_info.min))
        return PValue(exact, (exact, exact), (exact, exact))
    b, n = int(is_extreme.sum()), len(is_extreme)
    return PValue(
        (b + 1) / (n + 1), clopper_pearson(b, n, confidence_level), wilson(b, n, confidence_level)
    )


def normal_limit() -> Null:
    """Return the normal limit of a studentized gap under the null, as a distribution of points."""
    # each point stands for the values from itself outwards to the next, so its quantiles never lie
    # beyond those of the normal distribution: callers that need at least these take the larger
    statistic, log_probability = _normal_points()
    return Null(statistic.copy(), log_probability)


@cache
def _normal_points() -> tuple[Array, Array]:
    """Return points of the normal distribution, and their log-probabilities."""
    points = np.arange(401) / 100
    tails = np.array([math.erfc(point / math.sqrt(2)) / 2 for point in points])
    share = np.append(tails[:-1] - tails[1:], tails[-1])
    statistic = np.concatenate([-points[:0:-1], points])
    probability = np.concatenate([share[:0:-1], [2 * share[0]], share[1:]])
    return statistic, np.log(probability)


def normal_pvalue(statistic: float, alternative: str) -> PValue:
    """Return the probability that a normal deviate is as extreme; never zero."""
    outwards = {"greater": statistic, "less": -statistic}.get(alternative, abs(statistic))
    tail = math.erfc(outwards / math.sqrt(2)) / 2
    p = max(tail if alternative in DIRECTIONS else 2 * tail, sys.float_info.min)
    return PValue(p, (p, p), (p, p))


def note_undefined(null: Null) -> list[str]:
    """Return a note if the metric is undefined in more than a few of the draws."""
    share = null.share(null.undefined)
    if share <= MANY_UNDEFINED:
        return []
    return [
        f"The metric is undefined in {share:.1%} of the permutations, each of which counts as "
        "extreme: the p-value errs upwards. The groups are small for this metric."
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
    tail = (1 - confidence_level) / (1 if alternative in DIRECTIONS else 2)
    return NormalDist().inv_cdf(1 - tail)


def wilson(successes: int, n: int, confidence_level: float) -> tuple[float, float]:
    """Return Wilson's score interval for a probability: its mean coverage is about the level."""
    z = normal_quantile(confidence_level)
    share = successes / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def anytime_interval(successes: int, n: int, confidence_level: float) -> tuple[float, float]:
    """Return an interval for a probability that covers it at every n at once, at this level.

    The likelihood of the outcomes under a share p, as a part of their mean likelihood under shares
    from Jeffreys' prior, is below alpha at any n with a probability of at most alpha if p is true
    (Ville's inequality; Robbins, Ann. Math. Stat. 41, 1970). The interval has the other shares.
    """
    from scipy.optimize import brentq
    from scipy.special import betaln, xlog1py, xlogy

    failures = n - successes
    mean = betaln(successes + 0.5, failures + 0.5) - betaln(0.5, 0.5)
    bound = math.log(1 / (1 - confidence_level))

    def evidence(share: float) -> float:
        return float(mean - xlogy(successes, share) - xlog1py(failures, -share) - bound)

    likeliest = successes / n
    low = brentq(evidence, 0, likeliest, xtol=1e-12) if successes else 0.0
    high = brentq(evidence, likeliest, 1, xtol=1e-12) if failures else 1.0
    return float(low), float(high)


def agree(
    interval: tuple[float, float],
    p: float,
    alternative: str,
    confidence_level: float,
    estimate: float,
    equal: float = 0.0,
) -> tuple[float, float]:
    """Return the interval without the value of equal groups exactly if the test rejects it."""
    # That value, ``equal``, is 0 for a difference and 1 for a ratio. There the interval's own test
    # makes way for the reported one; all other values are judged as before.
    low, high = interval
    if p > (1 - confidence_level) * (1 + TIE):
        return min(low, equal), max(high, equal)
    if not low <= equal <= high:
        return interval
    is_above = estimate > equal if alternative not in DIRECTIONS else alternative == "greater"
    nearest = math.nextafter(equal, math.inf if is_above else -math.inf)
    return (nearest, max(high, nearest)) if is_above else (min(low, nearest), nearest)


def agree_at_margin(
    interval: tuple[float, float],
    margin: float,
    estimate: float,
    *,
    is_beyond: bool,
    is_within: bool,
) -> tuple[float, float]:
    """Return the interval beyond ±margin, or within, exactly if that is what tests at it show."""
    low, high = (-one for one in interval[::-1]) if estimate < 0 else interval
    if is_beyond:
        low = max(low, math.nextafter(margin, math.inf))
        high = max(low, high)
    elif is_within:
        low = max(low, math.nextafter(-margin, 0.0))
        high = min(high, math.nextafter(margin, 0.0))
    else:
        low, high = min(low, margin), max(high, margin if low > -margin else high)
    return (-high, -low) if estimate < 0 else (low, high)


def critical_values(null: Null, alternative: str, confidence_level: float) -> tuple[float, float]:
    """Return the statistics between which, ends included, p is above 1 − confidence_level."""
    statistic = null.statistic
    if alternative == "symmetric":
        size = null.quantile(np.abs(statistic), confidence_level)
        return -size, size
    level = confidence_level if alternative in DIRECTIONS else (1 + confidence_level) / 2
    return (
        -math.inf if alternative == "greater" else -null.quantile(-statistic, level),
        math.inf if alternative == "less" else null.quantile(statistic, level),
    )


def gap_interval(
    gap: Array,
    reaches: Callable[[float], tuple[Array, Array]],
    critical: tuple[float, float],
    span: float,
) -> tuple[float, float]:
    """Return the interval of the gap for these critical values; for several, of the largest.

    ``reaches`` returns how far below and above the gap the interval extends for a critical value:
    below by the upper one, above by the lower. ``span`` is the largest possible gap, which bounds
    the interval. The critical size of the largest statistic covers several gaps at once.
    """
    lower, upper = critical
    unbounded = np.full_like(gap, math.inf)
    below = reaches(upper)[0] if math.isfinite(upper) else unbounded
    above = reaches(-lower)[1] if math.isfinite(lower) else unbounded
    low, high = np.maximum(gap - below, -span), np.minimum(gap + above, span)
    if len(gap) > 1:
        nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(abs(low), abs(high)))
        return float(nearest.max()), float(np.maximum(abs(low), abs(high)).max())
    return float(low[0]), float(high[0])


def share_of_a_labelling(m: float, n: float) -> float:
    """Return the probability of one choice of m out of m + n rows, or clusters."""
    return math.exp(math.lgamma(m + 1) + math.lgamma(n + 1) - math.lgamma(m + n + 1))


def on_sides(distance: float, ordering: str) -> tuple[float, float]:
    """Return this distance from zero on each side that the ordering has, and else infinity."""
    return (
        -math.inf if ordering == "greater" else -distance,
        math.inf if ordering == "less" else distance,
    )
