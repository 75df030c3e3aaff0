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
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from fairperm.inference.null import (
    Null,
    PValue,
    normal_limit,
    on_sides,
    share_of_a_labelling,
    snap_pvalue,
)

if TYPE_CHECKING:
    from typing import Self

    from fairperm._utils.arrays import Array, Integers

    Interval = tuple[float, float]

SHARE = 1e-3  # of the p-value: the probability that the interval misses the rate
_STEP = 0.125  # between the first rates, in standard errors of the rate
_MAX_AT_FIRST = 96  # steps: far tails have long intervals of rates, few of which matter
_MANY_COUNTS = 2500  # of both samples: the parts that steps are split into, times the counts
_MAX_PARTS = 16
_CHUNK_SIZE = 1 << 15  # probabilities that fit into the processor's cache
_MAX_COUNTS = 1 << 11  # plausible counts of a group: beyond, normal limits are as good
_MIN_NORMAL_VARIANCE = 25.0  # of a count whose tails are nearly normal
_FEW_COUNTS = 1000  # of which steps of the p-value are large enough to matter
_MAX_TABLES = 20_000  # that a null distribution lists one by one
_MIN_RATE = 1e-300
_MAX_STEPS = 50  # of Newton's method
_TIED = 1e-12  # relative rounding error of a total at which z is that of the sample, with room
_LOG_NEGLIGIBLE = math.log(1e-14)  # of a probability, relative to the p-value
CLOSE_SHARE = 0.99  # of alpha: a p-value that a critical value may have
_NORMAL = NormalDist()
_MIRRORED = {"greater": "less", "less": "greater"}


@dataclass(frozen=True)
class TwoBinomials:
    """Two binomial samples with one unknown rate: their sizes, and their successes together.

    It is what z is compared with, and nothing is drawn.
    """

    first: int
    second: int
    successes: int
    smallest: ClassVar[float] = 0.0
    exact: ClassVar[bool] = True

    @property
    def n(self) -> int:
        """The number of trials of both samples."""
        return self.first + self.second

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of trials."""
        return self.first, self.second

    def statistic(self, first: int) -> float:
        """Return z if the first sample has ``first`` of the successes."""
        excess = first * self.n - self.successes * self.first
        spread = self.successes * (self.n - self.successes)
        return excess / math.sqrt(spread * self.first * self.second / self.n) if excess else 0.0

    def pvalue(
        self, statistic: float, ordering: str, tolerance: float = 0.0, level: float = 0.95
    ) -> PValue:
        """Return the largest probability of tables as extreme, over all plausible rates."""
        del tolerance, level
        p = self.probability(statistic, ordering)
        return PValue(p, (p, p), (p, p))

    def critical(self, ordering: str, level: float) -> tuple[float, float]:
        """Return critical values of z; at low levels zero, so that intervals hold the estimate."""
        return on_sides(max(0.0, self.critical_distance(1 - level, ordering)), ordering)

    def most_extreme_pvalue(self, ordering: str, enough: float = 0.0) -> float:
        """Return the p-value of a table in which one sample has all successes."""
        # that table has less than twice the share of one labelling
        bound = 2 * share_of_a_labelling(self.first, self.second)
        if bound <= enough:
            return bound
        most = math.sqrt(self.n)
        tables = (
            (replace(self, successes=self.first), most),
            (replace(self, successes=self.second), -most),
        )
        return min(table.probability(z, ordering) for table, z in tables)

    def probability(self, z: float, alternative: str) -> float:
        """Return the p-value of the statistic z; never zero.

        It is the smallest α that is not below the largest probability of the region of z, over
        1 − SHARE, in an interval that misses the rate with a probability of at most α·SHARE.
        Beyond the largest statistic of a table it is the p-value of that table.
        """
        one, direction, sign = self._in_order(alternative)
        most = math.sqrt(self.n)  # of all tables: one sample has all successes
        return _pvalue(one, sign * min(max(z, -most), most), direction)

    def critical_distance(self, alpha: float, alternative: str) -> float:
        """Return about the smallest distance from zero at which the p-value is at most alpha.

        If no table has so small a p-value, it is beyond the statistics of all. The p-value is a
        step function of the distance. The normal quantile is corrected until the step is found,
        with the probabilities at a few rates only.
        """
        one, direction, _ = self._in_order(alternative)
        return _critical(one, alpha, direction)

    @property
    def n_resamples(self) -> int:
        return (self.first + 1) * (self.second + 1)

    @cached_property
    def null(self) -> Null:
        """Return the distribution of z at the estimated rate; of large samples, its normal limit.

        It shows what chance does. The p-value is the largest over all plausible rates.
        """
        if self.n_resamples > _MAX_TABLES:
            return normal_limit()
        a, b = np.arange(self.first + 1), np.arange(self.second + 1)
        share = min(max(self.successes, 0.5), self.n - 0.5) / self.n
        logs = log_outcomes(np.array([share]))
        first, second = (
            log_binomials(size, counts, logs)[0]
            for size, counts in ((self.first, a), (self.second, b))
        )
        total = a[:, None] + b
        spread = total * (self.n - total) * (self.first * self.second / self.n)
        excess = a[:, None] * self.n - total * self.first
        z = excess / np.sqrt(np.where(spread > 0, spread, 1.0))
        return Null(z.ravel(), (first[:, None] + second).ravel())

    def _in_order(self, alternative: str) -> tuple[TwoBinomials, str, int]:
        """Return the samples with the smaller first and no more successes than failures."""
        # with them, the alternative and the sign of z: groups and outcomes may be exchanged without
        # changing a digit
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
    if alternative == "two-sided" and z == 0:
        return 1.0
    log_least = _log_least(_outwards(z, alternative))
    while (log_p := _log_pvalue(binomials, z, alternative, log_least)) < log_least:
        log_least = log_p - 1  # plausible rates were left out
    return min(1.0, snap_pvalue(math.exp(log_p)))


def _log_pvalue(binomials: TwoBinomials, z: float, alternative: str, log_least: float) -> float:
    """Return the logarithm of a p-value that is not below ``log_least``.

    A rate is in the interval if α is at most 2·exp(−N·divergence) / SHARE. The smallest α that is
    not below the probabilities at the rates in the interval is therefore the largest, over all
    rates, of the smaller of the two. Steps between rates that may contain it are split until the
    bound between rates is close.
    """
    successes, n = binomials.successes, binomials.n
    interval = rate_interval(successes, n, SHARE * math.exp(log_least))
    counts = PlausibleCounts.of(binomials.sizes, (interval, interval), log_least)
    if counts is None:
        return math.log(_normal_pvalue(binomials, z, alternative))
    region = counts.region(z, alternative)
    n_parts = min(max(_MANY_COUNTS // counts.number, 2), _MAX_PARTS)
    parts, tolerance = np.arange(n_parts + 1) / n_parts, (_STEP / n_parts) ** 2 / 7.9
    first, last = (math.asin(math.sqrt(rate)) for rate in interval)
    n_steps = min(math.ceil(2 * math.sqrt(n) * (last - first) / _STEP), _MAX_AT_FIRST)
    angles = np.linspace(first, last, n_steps + 1)[None]
    known = bound_of_closed = -math.inf
    while True:
        logs = log_outcomes(np.sin(angles.ravel()) ** 2)
        level = np.log(np.maximum(counts.probability(logs, region), sys.float_info.min))
        level = level.reshape(angles.shape) - math.log1p(-SHARE)
        most = math.log(2 / SHARE) - n * divergence(successes / n, logs).reshape(angles.shape)
        rises = _rises(n, logs.reshape(2, *angles.shape))
        bound = np.minimum(_larger_ends(level) + rises, _larger_ends(most))
        known = max(known, float(np.minimum(level, most).max()))
        is_open = bound > known + tolerance
        bound_of_closed = max(bound_of_closed, float(bound[~is_open].max(initial=-math.inf)))
        if known > 0 or not is_open.any():
            return max(known, bound_of_closed)
        start, step = angles[:, :-1][is_open], np.diff(angles)[is_open]
        angles = start[:, None] + step[:, None] * parts


def _larger_ends(values: Array) -> Array:
    """Return the larger value at both ends of each step."""
    return np.maximum(values[..., 1:], values[..., :-1])


def _rises(n: int, logs: Array) -> Array:
    """Return how far the log-probability of a region may rise above both ends of each step.

    The probability is e^(K − N·A), where K and A are convex functions of the log-odds θ of the rate
    and A″ = π(1 − π). Between two rates its logarithm is therefore at most what the straight line
    says, plus N·max π(1 − π)·Δθ²/8.
    """
    log_odds = logs[0] - logs[1]
    widest = _larger_ends(np.exp(logs[0] + logs[1]))
    widest[(log_odds[..., 1:] > 0) & (log_odds[..., :-1] < 0)] = 0.25
    return np.asarray(n * widest * np.diff(log_odds) ** 2 / 8)


def _normal_pvalue(binomials: TwoBinomials, z: float, alternative: str) -> float:
    """Return the p-value of large samples: that of a normal deviate."""
    # it is half a step of the gap nearer to zero, for continuity, and corrected for the skewness of
    # z in samples of unequal size, by Cornish and Fisher's expansion to the second order
    m, n, rate = binomials.first, binomials.second, binomials.successes / binomials.n
    variance = rate * (1 - rate)
    half_a_step = 1 / (2 * n * math.sqrt(variance * (1 / m + 1 / n)))
    skewness = (1 - 2 * rate) * (n - m) / math.sqrt(variance * m * n * (m + n))

    def tail(outwards: float, skewness: float) -> float:
        x = outwards - half_a_step
        deviate = x - skewness * (x**2 - 1) / 6 + skewness**2 * (4 * x**3 - 7 * x) / 36
        return _NORMAL.cdf(-deviate)

    tails = {"greater": [tail(z, skewness)], "less": [tail(-z, -skewness)]}
    both = [tail(abs(z), skewness), tail(abs(z), -skewness)]
    return min(1.0, max(sum(tails.get(alternative, both)), sys.float_info.min))


@lru_cache(1 << 14)
def _critical(binomials: TwoBinomials, alpha: float, alternative: str) -> float:
    """Return the critical value of samples in order."""
    sides = 2 if alternative == "two-sided" else 1
    direction = -1 if alternative == "less" else 1
    z = _NORMAL.inv_cdf(1 - alpha / sides)
    interval = rate_interval(binomials.successes, binomials.n, SHARE * alpha)
    outside = math.sqrt(binomials.n)
    inside = 0.0 if sides == 2 else -outside
    m, n = binomials.first, binomials.second
    # the largest probability of the table with that statistic, and of its mirror image
    log_most = math.log(2) + m * math.log(m / (m + n)) + n * math.log(n / (m + n))
    is_in_doubt = log_most > math.log(alpha / 2)
    if is_in_doubt and _pvalue(binomials, direction * outside, alternative) > alpha:
        return max(z, outside * (1 + 1e-6))
    counts = PlausibleCounts.of(binomials.sizes, (interval, interval), math.log(alpha))
    if counts is None:
        # the p-value of the normal quantile is nearly alpha: one correction is enough
        p = _normal_pvalue(binomials, direction * z, alternative)
        return 2 * z + _NORMAL.inv_cdf(p / sides)
    steps = 32 if len(counts.first) < _FEW_COUNTS else 8
    first, last = (math.asin(math.sqrt(rate)) for rate in interval)
    tails = counts.tails(log_outcomes(np.sin(np.linspace(first, last, steps + 1)) ** 2))
    step, most, found = 0.01, outside, math.nan
    while outside - inside > 1e-3:
        if not inside < z < outside:
            z = (inside + outside) / 2
        before = found
        found = float(tails.probability(counts.region(direction * z, alternative)).max())
        found /= 1 - SHARE
        inside, outside = (z, outside) if found > alpha else (inside, z)
        if CLOSE_SHARE * alpha <= found <= alpha:
            break
        if found != before:
            # the probability has to change by this factor, and so about does the normal tail
            tail = (1 + CLOSE_SHARE) / 2 * alpha / max(found, sys.float_info.min) * _NORMAL.cdf(-z)
            z = -_NORMAL.inv_cdf(min(max(tail, 1e-300), 1 - 1e-9))
        elif outside == most:  # the same tables again: longer steps leave them
            z, step = inside + step, 2 * step
        else:
            z = (inside + outside) / 2
    return outside


@dataclass(frozen=True, slots=True)
class Region:
    """The tables at least as extreme as a statistic.

    For each count of the first sample, the extreme counts of the second are those up to ``below``
    and those from ``above`` on. If they have rows, each is for as many successive rates.
    """

    below: Integers | None
    above: Integers | None


@dataclass(frozen=True, slots=True)
class PlausibleCounts:
    """The plausible counts of two samples, the first of which has fewer.

    ``second`` has them if they are not too many to sum their probabilities one by one. ``terms``
    has for each of these counts the logarithm of the number of ways to choose it, the count, and
    what is left of the trials.
    """

    sizes: tuple[int, int]
    first: Integers
    second: Integers | None
    range_of_second: tuple[int, int]
    terms: Array

    @classmethod
    def of(
        cls,
        sizes: tuple[int, int],
        intervals: tuple[Interval, Interval],
        log_p: float,
        most: int | None = None,
    ) -> Self | None:
        """Return the counts that matter to a p-value; None if both samples have too many."""
        # They are those of rates in the intervals. Up to ``most`` of each sample are summed.
        pairs = zip(sizes, intervals, strict=True)
        ranges = [plausible_counts(n, *interval, log_p) for n, interval in pairs]
        most = _MAX_COUNTS if most is None else most
        if len(ranges[0]) > most:
            return None
        pairs_of_ranges = zip(sizes, ranges, strict=True)
        summed = [(n, one) for n, one in pairs_of_ranges if len(one) <= most]
        counts = [np.asarray(one) for _, one in summed]
        terms = np.empty((3, sum(map(len, counts))))
        terms[0] = np.concatenate([log_ways(n, one[0], one[-1]) for n, one in summed])
        terms[1] = np.concatenate(counts)
        terms[2] = np.repeat([n for n, _ in summed], [*map(len, counts)]) - terms[1]
        second, ends = counts[1] if len(counts) == 2 else None, (ranges[1][0], ranges[1][-1])
        return cls(sizes, counts[0], second, ends, terms)

    @property
    def number(self) -> int:
        """The number of probabilities to compute for each rate."""
        return len(self.terms[0])

    def region(self, z: float, alternative: str) -> Region:
        """Return the tables at least as extreme as a statistic."""
        (m, n), total = self.sizes, sum(self.sizes)
        is_two_sided = alternative == "two-sided"
        z = abs(z) if is_two_sided else z
        # the totals at which the first sample's count has the statistic |z| and −|z| are the roots
        # of a quadratic; the smaller is found from the larger, which keeps its digits
        count, square = self.first.astype(float), z * z * n
        root = np.sqrt(square * (4 * count * total * (1 - count / m) + square))
        far = total * (2 * count * total + square + root) / (2 * (total * m + square))
        product = count**2 * (total**3 / (m * (total * m + square)))
        near = product / np.where(count > 0, far, 1.0)
        below = above = None
        if alternative != "less":
            limit = near if z > 0 else far
            below = np.floor(limit * (1 + _TIED) + _TIED).astype(np.int64) - self.first
            if z > 0:
                below[count == 0] = -1  # without any success the statistic is 0
        if alternative != "greater":
            limit = far if is_two_sided or z < 0 else near
            above = np.ceil(limit * (1 - _TIED) - _TIED).astype(np.int64) - self.first
            if is_two_sided or z < 0:
                above[count == m] = n + 1  # and without any failure
        return Region(below, above)

    def probability(self, logs: Array, region: Region) -> Array:
        """Return the region's probability at each common rate."""
        at_once = max(1, _CHUNK_SIZE // len(self.first))
        starts = range(0, logs.shape[1], at_once)
        parts = (self.tails(logs[:, start : start + at_once]) for start in starts)
        return np.concatenate([part.probability(region) for part in parts])

    def tails(self, logs: Array, logs_of_second: Array | None = None) -> _Tails:
        """Return what gives the probability of any region at these rates."""
        # they are those of both samples, unless the second has its own
        n = len(self.first)
        if logs_of_second is None:
            chances = np.exp(_with_ones(logs) @ self.terms)
            first, second = chances[:, :n], chances[:, n:]
        else:
            first = np.exp(_with_ones(logs) @ self.terms[:, :n])
            logs = logs_of_second
            second = np.exp(_with_ones(logs) @ self.terms[:, n:])
        if self.second is None:
            return _NormalTails(first, self.sizes[1], np.exp(logs[0])[:, None])
        return _SummedTails(first, self.second, second)


def _with_ones(logs: Array) -> Array:
    return np.vstack([np.ones(logs.shape[1]), logs]).T


class _Tails(Protocol):
    """The probabilities of two samples' counts at some rates."""

    def probability(self, region: Region) -> Array:
        """Return the region's probability at each rate."""


class _SummedTails:
    """The first sample's probabilities, and the second's summed from both ends, by rate."""

    def __init__(self, first: Array, counts: Integers, second: Array) -> None:
        self.first = first
        self.start, self.n = int(counts[0]), len(counts)
        sums = np.zeros((2, len(second), self.n + 1))
        np.cumsum(second, axis=1, out=sums[0, :, 1:])
        np.cumsum(second[:, ::-1], axis=1, out=sums[1, :, 1:])  # small tails keep their digits
        self.below, self.above = sums

    def probability(self, region: Region) -> Array:
        parts = []
        if region.below is not None:
            place = np.minimum(np.maximum(region.below - self.start + 1, 0), self.n)
            parts.append(_take(self.below, place))
        if region.above is not None:
            place = np.minimum(np.maximum(self.n + self.start - region.above, 0), self.n)
            parts.append(_take(self.above, place))
        return np.asarray(sum(np.einsum("ij,ij->i", self.first, part) for part in parts))


def _take(sums: Array, place: Integers) -> Array:
    """Return the sums at places that all rows share, or at those of as many rows for each."""
    if place.ndim == 1:
        return sums.take(place, axis=1)
    cube = sums.reshape(len(place), -1, sums.shape[1])
    return np.take_along_axis(cube, place[:, None], axis=2).reshape(len(sums), -1)


@dataclass(frozen=True, slots=True)
class _NormalTails:
    """The first sample's probabilities, and a large second sample, by rate."""

    first: Array
    n: int
    rates: Array

    def probability(self, region: Region) -> Array:
        """Return the region's probability at each rate, by tails corrected for skewness."""
        # at rates near 0 or 1, where few counts are plausible, the tails are exact
        from scipy.special import betainc, ndtr

        n, rates, tails = self.n, self.rates, np.zeros(self.first.shape)
        variance = n * rates * (1 - rates)
        is_exact = variance[:, 0] < _MIN_NORMAL_VARIANCE
        spread = np.sqrt(np.maximum(variance, _MIN_NORMAL_VARIANCE))
        skewness = (1 - 2 * rates) / spread

        def add_tail(sign: int, counts: Integers) -> None:
            """Add the probability of these counts (or those from them on, if the sign is 1)."""
            outwards = (sign * (counts - n * rates) - 0.5) / spread
            density = np.exp(-(outwards**2) / 2) / math.sqrt(2 * math.pi)
            found = ndtr(-outwards) + sign * skewness / 6 * (outwards**2 - 1) * density
            found = np.maximum(found, 0.0)
            if is_exact.any():
                shape = found[is_exact].shape
                farthest = counts if sign > 0 else n - counts  # so many or more, of one outcome
                farthest = np.broadcast_to(farthest, found.shape)[is_exact]
                inner = np.minimum(np.maximum(farthest, 1), n)
                rate = rates[is_exact] if sign > 0 else 1 - rates[is_exact]
                exact = betainc(inner, n + 1 - inner, np.broadcast_to(rate, shape))
                found[is_exact] = np.where(farthest > n, 0.0, np.where(farthest < 1, 1.0, exact))
            tails[:] += found

        if region.below is not None:
            add_tail(-1, self._by_rate(region.below))
        if region.above is not None:
            add_tail(1, self._by_rate(region.above))
        return np.asarray(np.einsum("ij,ij->i", self.first, tails))

    def _by_rate(self, limits: Integers) -> Integers:
        """Return limits that all rates share, or a row for each if there is one for several."""
        n_each = len(self.first) // len(limits)
        return limits if limits.ndim == 1 else limits.repeat(n_each, axis=0)


def _outwards(z: float, alternative: str) -> float:
    """Return the distance of the statistic from zero in the direction of the alternative."""
    return {"two-sided": abs(z), "less": -z}.get(alternative, z)


def _log_least(outwards: float) -> float:
    """Return about the logarithm of the smallest p-value that a statistic can have."""
    # far out, the exact p-value can be smaller than the normal one: for all against none of two
    # equal groups its logarithm is 1.39 times as large
    if outwards <= 0:
        return math.log(0.5)
    return max(1.5 * (-(outwards**2) / 2 - math.log(2 * max(outwards, 1.0))), -600.0)


def rate_interval(successes: int, n: int, miss: float) -> Interval:
    """Return an interval that misses the rate with at most this probability.

    By Chernoff's inequality: n times the divergence of the estimate from the rate exceeds log(2/γ)
    with a probability of at most γ. It is a little wider than Clopper and Pearson's, and exact for
    any γ.
    """
    most = (math.log(2) - math.log(max(miss, sys.float_info.min))) / n
    return (
        _least_rate(successes / n, most),
        min(1 - _least_rate((n - successes) / n, most), 1 - sys.float_info.epsilon),
    )


def _least_rate(share: float, most: float) -> float:
    """Return the least rate from which a share diverges by so much at most."""
    # the divergence is a convex function of the log-odds: from outside, Newton's method never
    # passes the rate
    if share == 0:
        return _MIN_RATE
    of_failures = (1 - share) * math.log1p(-share) if share < 1 else 0.0
    entropy = -share * math.log(share) - of_failures
    theta = max(math.log(share) - (most - of_failures) / share, math.log(_MIN_RATE))
    for _ in range(_MAX_STEPS):
        rate = 1 / (1 + math.exp(-theta))
        excess = math.log1p(math.exp(theta)) - share * theta - entropy - most
        step = excess / (share - rate)
        if not step > abs(theta) * sys.float_info.epsilon:
            break
        theta += step
    return 1 / (1 + math.exp(-theta))


def divergence(share: float | Array, logs: Array) -> Array:
    """Return the Kullback–Leibler divergence of a share from each rate."""
    shares = np.array([share, 1 - share])
    entropy = -(shares * np.log(np.maximum(shares, _MIN_RATE))).sum(axis=0)
    cross = -shares[0] * logs[0] - shares[1] * logs[1]
    return np.asarray(cross - entropy)


def plausible_counts(n: int, low: float, high: float, log_p: float) -> range:
    """Return the counts of n trials that matter to a p-value, at any rate of the interval."""
    log_tail = log_p + _LOG_NEGLIGIBLE
    widest = min(max(low, 0.5), high)
    variance = n * widest * (1 - widest)
    third = -log_tail / 3
    reach = third + math.sqrt(third**2 - 2 * log_tail * variance)  # Bernstein's inequality
    return range(max(0, math.floor(n * low - reach)), min(n, math.ceil(n * high + reach)) + 1)


@lru_cache(256)
def log_ways(n: int, first: int, last: int) -> Array:
    """Return the logarithms of the numbers of ways to choose first, …, last out of n."""
    # from the ratios of neighbours, which keep their digits
    k = np.arange(first, last, dtype=float)
    ways = np.empty(last - first + 1)
    ways[0] = math.lgamma(n + 1) - math.lgamma(first + 1) - math.lgamma(n - first + 1)
    ways[1:] = ways[0] + np.cumsum(np.log((n - k) / (k + 1)))
    ways.flags.writeable = False
    return ways


def log_outcomes(rates: Array) -> Array:
    """Return the logarithms of the rates and of one minus them; finite also for 0 and 1."""
    return np.log(np.maximum([rates, 1 - rates], _MIN_RATE))


def log_binomials(n: int, counts: Integers, logs: Array) -> Array:
    """Return the log-probabilities of counts of n trials, a row for each rate."""
    # the counts are the same for all rates, or a row for each
    least, most = int(counts.min()), int(counts.max())
    ways = log_ways(n, least, most)[counts - least]
    return np.asarray(ways + logs[0][:, None] * counts + logs[1][:, None] * (n - counts))
