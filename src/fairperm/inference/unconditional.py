"""The exact unconditional test that two groups have the same rate.

Given their denominators, two groups are two binomial samples. All tables of two such samples are
ordered by the score statistic z. The p-value is the largest probability of a table at least as
extreme as the observed one, over all rates in a confidence interval of the common rate (Berger and
Boos, P values maximized over a confidence set for the nuisance parameter, JASA 89, 1994). The
probability is computed at many rates and bounded between them: no p-value rests on a grid that
could have missed the maximum. ``docs/method.md`` has the proofs.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from fairperm.inference.null import Null, normal_limit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

SHARE = 1e-3  # of the p-value: the probability that the interval misses the rate
_FINEST, _COARSEST = 0.02, 0.1  # steps between rates, in standard errors of the rate
_MOST_PROBABILITIES = 1 << 17  # to compute for steps finer than the coarsest
_AT_ONCE = 1 << 13  # probabilities that fit into the processor's cache
_MOST_COUNTS = 1 << 11  # plausible counts of a group: beyond, normal limits are as good
_FEW_COUNTS = 1000  # of which steps of the p-value are large enough to matter
_MOST_TABLES = 20_000  # that a null distribution lists one by one
_LEAST = 1e-300  # of a rate
_HALVINGS = 60  # of an interval: enough for all digits but those of tiny rates
_TIED = 1e-12  # relative rounding error of a total at which z is that of the sample, with room
_LOG_NEGLIGIBLE = math.log(1e-14)  # of a probability, relative to the p-value
_CONVERGED = 1e-6  # relative, of a p-value
_CLOSE = 0.99  # times alpha: a p-value that a critical value may have
_NORMAL = NormalDist()
_MIRRORED = {"greater": "less", "less": "greater"}


@dataclass(frozen=True, slots=True)
class TwoBinomials:
    """Two binomial samples with one unknown rate: their sizes, and their successes together."""

    first: int
    second: int
    successes: int

    @property
    def n(self) -> int:
        """The number of trials of both samples."""
        return self.first + self.second

    def statistic(self, first: int) -> float:
        """Return z if the first sample has ``first`` of the successes."""
        excess = first * self.n - self.successes * self.first
        spread = self.successes * (self.n - self.successes)
        return excess / math.sqrt(spread * self.first * self.second / self.n) if excess else 0.0

    def pvalue(self, z: float, alternative: str) -> float:
        """Return the p-value of the statistic z; never zero.

        It is the smallest α that is not below the largest probability of the region of z, over
        1 − SHARE, in an interval that misses the rate with a probability of at most α·SHARE.
        Beyond the largest statistic of a table it is the p-value of that table.
        """
        one, direction, sign = self._in_order(alternative)
        most = math.sqrt(self.n)  # of all tables: one sample has all successes
        return _pvalue(one, sign * min(max(z, -most), most), direction)

    def critical(self, alpha: float, alternative: str) -> float:
        """Return about the smallest distance from zero at which the p-value is at most alpha.

        If no table has so small a p-value, it is beyond the statistics of all. The p-value is a
        step function of the distance. The normal quantile is corrected until the step is found,
        with the probabilities at a few rates only.
        """
        one, direction, _ = self._in_order(alternative)
        return _critical(one, alpha, direction)

    def null(self) -> Null:
        """Return the distribution of z at the estimated rate; of large samples, its normal limit.

        It shows what chance does. The p-value is the largest over all plausible rates.
        """
        if (self.first + 1) * (self.second + 1) > _MOST_TABLES:
            return normal_limit()
        rate = np.array([min(max(self.successes, 0.5), self.n - 0.5) / self.n])
        a, b = np.arange(self.first + 1), np.arange(self.second + 1)
        with np.errstate(divide="ignore"):  # of probabilities below the smallest float
            log_first, log_second = (
                np.log(_binomials(size, counts, rate)[0])
                for size, counts in ((self.first, a), (self.second, b))
            )
        total = a[:, None] + b
        spread = total * (self.n - total) * (self.first * self.second / self.n)
        excess = a[:, None] * self.n - total * self.first
        z = excess / np.sqrt(np.where(spread > 0, spread, 1.0))
        return Null(z.ravel(), (log_first[:, None] + log_second).ravel())

    def _in_order(self, alternative: str) -> tuple[TwoBinomials, str, int]:
        """Return the samples with the smaller first and no more successes than failures.

        With them, the alternative and the sign of z: groups and outcomes may be exchanged without
        changing a digit.
        """
        first, second = sorted((self.first, self.second))
        successes = min(self.successes, self.n - self.successes)
        is_turned = (self.first > self.second) != (2 * self.successes > self.n)
        direction = alternative if alternative in _MIRRORED else "two-sided"
        if is_turned:
            direction = _MIRRORED.get(direction, direction)
        sign = -1 if is_turned else 1
        if direction == "less" and (first == second or 2 * successes == self.n):
            direction, sign = "greater", -sign
        return TwoBinomials(first, second, successes), direction, sign


@lru_cache(1 << 14)  # simulations and audits meet the same tables again
def _pvalue(binomials: TwoBinomials, z: float, alternative: str) -> float:
    """Return the p-value of a statistic of samples in order."""
    successes, n = binomials.successes, binomials.n
    if alternative == "two-sided" and z == 0:
        return 1.0
    region = _Region.of(binomials, z, alternative)
    if region is None:
        return _normal_pvalue(binomials, z, alternative)
    inside = np.array([(successes + 0.5) / (n + 1)])  # a rate in the interval for any α
    least = max(float(region.probability(inside)[0]), sys.float_info.min)  # α is not below it
    curve = region.curve(*_rate_interval(successes, n, SHARE * least))

    def largest(alpha: float) -> float:
        found = curve.largest(*_rate_interval(successes, n, SHARE * alpha))
        return max(found / (1 - SHARE), least)

    most = largest(least)
    least = max(least, largest(most))
    while most > least * (1 + _CONVERGED):  # the largest probability falls with α
        middle = math.sqrt(least) * math.sqrt(most)
        found = largest(middle)
        if found <= middle:
            least, most = max(least, found), middle
        else:
            least, most = middle, min(most, found)
    return min(1.0, most)


def _normal_pvalue(binomials: TwoBinomials, z: float, alternative: str) -> float:
    """Return the normal limit of the p-value, with half a step of the gap for continuity."""
    m, n, rate = binomials.first, binomials.second, binomials.successes / binomials.n
    error = math.sqrt(rate * (1 - rate) * (1 / m + 1 / n))
    outwards = {"two-sided": abs(z), "less": -z}.get(alternative, z) - 1 / (2 * n * error)
    sides = 2 if alternative == "two-sided" else 1
    return min(1.0, max(sides * _NORMAL.cdf(-outwards), sys.float_info.min))


@lru_cache(1 << 14)
def _critical(binomials: TwoBinomials, alpha: float, alternative: str) -> float:
    """Return the critical value of samples in order."""
    sides = 2 if alternative == "two-sided" else 1
    direction = -1 if alternative == "less" else 1
    z = _NORMAL.inv_cdf(1 - alpha / sides)
    interval = _rate_interval(binomials.successes, binomials.n, SHARE * alpha)
    outside = math.sqrt(binomials.n)
    inside = 0.0 if sides == 2 else -outside
    m, n = binomials.first, binomials.second
    # the largest probability of the table with that statistic, and of its mirror image
    log_most = math.log(2) + m * math.log(m / (m + n)) + n * math.log(n / (m + n))
    is_in_doubt = log_most > math.log(alpha / 2)
    if is_in_doubt and _pvalue(binomials, direction * outside, alternative) > alpha:
        return max(z, outside * (1 + _CONVERGED))
    for _ in range(12):
        if not inside < z < outside:
            z = (inside + outside) / 2
        region = _Region.of(binomials, direction * z, alternative)
        if region is None:
            return z
        steps = 32 if len(region.first) < _FEW_COUNTS else 8
        found = region.probability(_rates_between(*interval, steps)).max() / (1 - SHARE)
        if found > alpha:
            inside = z
        else:
            outside = z
        if _CLOSE * alpha <= found <= alpha or outside - inside < 1e-3:
            break
        # the probability has to change by this factor, and so about does the normal tail
        tail = (1 + _CLOSE) / 2 * alpha / max(found, sys.float_info.min) * _NORMAL.cdf(-z)
        z = -_NORMAL.inv_cdf(min(max(tail, 1e-300), 1 - 1e-9))
    return outside


@dataclass(frozen=True, slots=True)
class _Region:
    """The tables at least as extreme as a statistic; the first sample is the smaller.

    For each plausible count of ``first``, the extreme counts of the second sample are those up to
    ``below`` and those from ``above`` on. ``second`` has the plausible ones, if they are not too
    many to sum their probabilities one by one.
    """

    sizes: tuple[int, int]
    first: Counts
    second: Counts | None
    below: Counts | None
    above: Counts | None

    @classmethod
    def of(cls, binomials: TwoBinomials, z: float, alternative: str) -> _Region | None:
        """Return the region of a statistic; None if both samples have too many plausible counts."""
        m, n, total = binomials.first, binomials.second, binomials.n
        is_two_sided = alternative == "two-sided"
        z = abs(z) if is_two_sided else z
        log_p = _log_least(z if alternative != "less" else -z)
        low, high = _rate_interval(binomials.successes, total, SHARE * math.exp(log_p))
        a, b = (_plausible(size, low, high, log_p + _LOG_NEGLIGIBLE) for size in (m, n))
        if len(a) > _MOST_COUNTS:
            return None
        # the totals at which the first sample's count has the statistic |z| and −|z| are the roots
        # of a quadratic; the smaller is found from the larger, which keeps its digits
        count, square = np.asarray(a, dtype=float), z * z * n
        root = np.sqrt(square * (4 * count * total * (1 - count / m) + square))
        far = total * (2 * count * total + square + root) / (2 * (total * m + square))
        product = count**2 * (total**3 / (m * (total * m + square)))
        near = product / np.where(count > 0, far, 1.0)
        below = above = None
        if alternative != "less":
            limit = near if z > 0 else far
            below = np.floor(limit * (1 + _TIED) + _TIED).astype(np.int64) - a
            if z > 0:
                below[count == 0] = -1  # without any success the statistic is 0
        if alternative != "greater":
            limit = far if is_two_sided or z < 0 else near
            above = np.ceil(limit * (1 - _TIED) - _TIED).astype(np.int64) - a
            if is_two_sided or z < 0:
                above[count == m] = n + 1  # and without any failure
        second = np.asarray(b) if len(b) <= _MOST_COUNTS else None
        return cls((m, n), np.asarray(a), second, below, above)

    def probability(self, rates: Array) -> Array:
        """Return the region's probability at each common rate."""
        at_once = max(1, _AT_ONCE // len(self.first))
        parts = [rates[start : start + at_once] for start in range(0, len(rates), at_once)]
        return np.concatenate([self._probability(part) for part in parts])

    def curve(self, low: float, high: float) -> _Curve:
        """Return the probability as a function of the rate in an interval."""
        angle = math.asin(math.sqrt(high)) - math.asin(math.sqrt(low))
        errors = 2 * math.sqrt(sum(self.sizes)) * angle  # length of the interval in standard errors
        width = len(self.first) + (len(self.first) if self.second is None else len(self.second))
        step = errors * width / _MOST_PROBABILITIES
        steps = math.ceil(errors / min(max(step, _FINEST), _COARSEST))
        rates = _rates_between(low, high, steps)
        return _Curve.of(sum(self.sizes), rates, self.probability(rates))

    def _probability(self, rates: Array) -> Array:
        first = _binomials(self.sizes[0], self.first, rates)
        if self.second is None:
            tails = self._normal_tails(rates[:, None])
            return np.asarray(np.einsum("ij,ij->i", first, tails))
        second = _binomials(self.sizes[1], self.second, rates)
        start, n = int(self.second[0]), len(self.second)
        sums, tails = np.zeros((len(rates), n + 1)), np.zeros(1)
        if self.below is not None:
            np.cumsum(second, axis=1, out=sums[:, 1:])
            tails = sums.take(np.clip(self.below - start + 1, 0, n), axis=1)
        if self.above is not None:  # summed from the far end: small tails keep their digits
            np.cumsum(second[:, ::-1], axis=1, out=sums[:, 1:])
            tails = tails + sums.take(np.clip(n + start - self.above, 0, n), axis=1)
        return np.asarray(np.einsum("ij,ij->i", first, np.broadcast_to(tails, first.shape)))

    def _normal_tails(self, rates: Array) -> Array:
        """Return the tails of a large second sample: normal, corrected for skewness."""
        from scipy.special import ndtr

        n, tails = self.sizes[1], np.zeros(1)
        spread = np.sqrt(n * rates * (1 - rates))
        skewness = (1 - 2 * rates) / spread

        def tail(outwards: Array, skewness: Array) -> Array:
            density = np.exp(-(outwards**2) / 2) / math.sqrt(2 * math.pi)
            corrected = ndtr(-outwards) + skewness / 6 * (outwards**2 - 1) * density
            return np.asarray(np.maximum(corrected, 0.0))

        if self.below is not None:
            tails = tails + tail((n * rates - self.below - 0.5) / spread, -skewness)
        if self.above is not None:
            tails = tails + tail((self.above - 0.5 - n * rates) / spread, skewness)
        return tails


@dataclass(frozen=True, slots=True)
class _Curve:
    """A region's probability at some rates, and bounds between them.

    The probability is e^(K − N·A), where K and A are convex functions of the log-odds θ of the rate
    and A″ = π(1 − π). Between two rates its logarithm is therefore at most what the straight line
    says, plus N·max π(1 − π)·Δθ²/8.
    """

    rates: Array
    log_odds: Array
    log_probability: Array
    rise: Array

    @classmethod
    def of(cls, n: int, rates: Array, probability: Array) -> _Curve:
        """Return the curve of a region of n trials."""
        log_odds, variance = _log_odds(rates), rates * (1 - rates)
        widest = np.maximum(variance[1:], variance[:-1])
        widest[(rates[1:] > 0.5) & (rates[:-1] < 0.5)] = 0.25
        rise = np.exp(n * widest * np.diff(log_odds) ** 2 / 8)
        return cls(rates, log_odds, np.log(np.maximum(probability, sys.float_info.min)), rise)

    def largest(self, low: float, high: float) -> float:
        """Return a bound on the probability at all rates of an interval, close to the largest."""
        first, last = np.searchsorted(self.rates, [low, high], "right")
        ends = np.array([low, *self.rates[first:last], high])
        found = np.exp(np.interp(_log_odds(ends), self.log_odds, self.log_probability))
        rise = self.rise[np.clip(np.arange(first, last + 1) - 1, 0, len(self.rise) - 1)]
        return float((np.maximum(found[1:], found[:-1]) * rise).max())


def _log_least(outwards: float) -> float:
    """Return about the logarithm of the smallest p-value that a statistic can have.

    Far out, the exact p-value can be smaller than the normal one: for all against none of two
    equal groups its logarithm is 1.39 times as large.
    """
    if outwards <= 0:
        return math.log(0.5)
    return max(1.5 * (-(outwards**2) / 2 - math.log(2 * max(outwards, 1.0))), -600.0)


def _rate_interval(successes: int, n: int, miss: float) -> tuple[float, float]:
    """Return an interval that misses the rate with at most this probability.

    By Chernoff's inequality: n times the divergence of the estimate from the rate exceeds log(2/γ)
    with a probability of at most γ. It is a little wider than Clopper and Pearson's, and exact for
    any γ.
    """
    most = (math.log(2) - math.log(max(miss, sys.float_info.min))) / n
    share = successes / n

    def divergence(rate: float) -> float:
        first = share * math.log(share / rate) if successes else 0.0
        return first + ((1 - share) * math.log((1 - share) / (1 - rate)) if share < 1 else 0.0)

    def end(inside: float, outside: float) -> float:
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if divergence(middle) <= most else (inside, middle)
        return outside

    return (
        end(share, _LEAST) if successes else _LEAST,
        end(share, 1 - sys.float_info.epsilon) if share < 1 else 1 - sys.float_info.epsilon,
    )


def _plausible(n: int, low: float, high: float, log_tail: float) -> range:
    """Return the counts of n trials but for tails this improbable at any rate of the interval."""
    widest = min(max(low, 0.5), high)
    variance = n * widest * (1 - widest)
    third = -log_tail / 3
    reach = third + math.sqrt(third**2 - 2 * log_tail * variance)  # Bernstein's inequality
    return range(max(0, math.floor(n * low - reach)), min(n, math.ceil(n * high + reach)) + 1)


def _binomials(n: int, counts: Counts, rates: Array) -> Array:
    """Return the probabilities of the counts of n trials, a row for each rate.

    From the ratios of neighbours, which keep their digits for any n.
    """
    k = counts[:-1].astype(float)
    steps = np.concatenate([[0.0], np.cumsum(np.log((n - k) / (k + 1)))])
    logs = steps + _log_odds(rates)[:, None] * (counts - counts[0])
    logs -= logs.max(axis=1, keepdims=True)
    weights = np.exp(logs, out=logs)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights)


def _rates_between(low: float, high: float, steps: int) -> Array:
    """Return rates at steps of about equally many standard errors."""
    angles = np.linspace(math.asin(math.sqrt(low)), math.asin(math.sqrt(high)), steps + 1)
    return np.asarray(np.sin(angles) ** 2)


def _log_odds(rates: Array) -> Array:
    return np.log(rates) - np.log1p(-rates)
