"""Two rates, or F1 scores: the likeliest ones with a given difference or ratio, and intervals.

For rates there are closed forms. An interval has the differences, or ratios, that the exact
unconditional test does not reject; of large samples, those whose score statistic is below the
critical value of the test at zero.

Miettinen and Nurminen, Comparative analysis of two rates, Statistics in Medicine 4, 1985;
Farrington and Manning, Test statistics and sample size formulae for comparative binomial trials
with null hypothesis of non-zero risk difference or non-unity relative risk, ibidem 9, 1990.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairperm.inference.errors_by_gap import ErrorsByGap
from fairperm.inference.rate_gaps import find_ends
from fairperm.inference.unconditional import TwoBinomials
from fairperm.metrics.confusion import F1_TOTALS, f1_of_jaccard, jaccard_of_f1

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from fairperm._utils.arrays import Array
    from fairperm.inference.rate_gaps import Gaps, Lines

Share = tuple[float, float]  # how many, of how many
Pair = tuple[float, float]

_PRECISION = 1e-12  # of an interval's end
_MAX_STATISTIC = 20.0  # standard errors
_HALVINGS = 80  # of an interval: beyond a float's precision
_MIN_SCORE, _MAX_SCORE = 1e-150, 1 - 2**-53  # of F1 scores whose likelihood is finite
_EPSILON = 2**-52
_MIRRORED = {"greater": "less", "less": "greater"}


@dataclass(frozen=True, slots=True)
class Rates(ErrorsByGap):
    """Two groups' counts of Bernoulli trials, and what they say of the groups' rates."""

    first: Share
    second: Share
    span: ClassVar[float] = 1.0
    has_trials: ClassVar[bool] = True

    @staticmethod
    def of(first: Mapping[str, float], second: Mapping[str, float]) -> Rates:
        """Return the rates, or F1 scores, of two groups with these totals."""
        is_rate = "denominator" in first
        counted, among = ("numerator", "denominator") if is_rate else F1_TOTALS
        both = (first[counted], first[among]), (second[counted], second[among])
        return Rates(*both) if is_rate else F1Scores(*both)

    @property
    def binomials(self) -> TwoBinomials:
        """The two samples under the null, with one rate."""
        (k, m), (j, n) = self.first, self.second
        return TwoBinomials(int(m), int(n), int(k + j))

    @property
    def counts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """How many successes of how many trials both groups have."""
        (k, m), (j, n) = self.first, self.second
        return (int(k), int(m)), (int(j), int(n))

    @property
    def statistic(self) -> float:
        """The score statistic of equal rates."""
        return self.binomials.statistic(int(self.first[0]))

    def with_half(self) -> Self:
        """Return them with ½ more of either outcome, if a group has none of one."""
        if not any(k in {0, n} for k, n in (self.first, self.second)):
            return self
        (k, m), (j, n) = self.first, self.second
        return replace(self, first=(k + 0.5, m + 1), second=(j + 0.5, n + 1))

    def values(self) -> Pair:
        """Return the values in the sample."""
        (k, m), (j, n) = self.first, self.second
        return k / m, j / n

    def errors(self, values: Pair) -> Pair:
        """Return the standard errors of the groups' values, were these the true ones."""
        return self._error(values[0], self.first[1]), self._error(values[1], self.second[1])

    def differing_by(self, gap: float) -> Pair:
        """Return the likeliest two values that differ by so much."""
        return restricted_by_difference(self.first, self.second, gap)

    def with_ratio(self, ratio: float) -> Pair:
        """Return the likeliest two values whose ratio it is."""
        return restricted_by_ratio(self.first, self.second, ratio)

    def interval(self, critical: Pair) -> Pair:
        """Return the differences whose score statistic lies between the critical values."""
        lower, upper = critical
        return (
            -1.0 if math.isinf(upper) else -self.swapped().largest_difference(upper),
            1.0 if math.isinf(lower) else self.largest_difference(-lower),
        )

    def ratio_interval(self, critical: Pair) -> Pair:
        """Return the ratios whose score statistic lies between the critical values."""
        lower, upper = critical
        return (
            0.0 if math.isinf(upper) else 1 / self.swapped().largest_ratio(upper),
            math.inf if math.isinf(lower) else self.largest_ratio(-lower),
        )

    def standard_error(self, gap: float) -> float:
        """Return Farrington and Manning's standard error of the gap, were it the true one."""
        return math.hypot(*self.errors(self.differing_by(gap)))

    def invert(self, ordering: str, level: float) -> Pair | None:
        """Return the differences that the unconditional test does not reject; None if large."""
        if self._is_turned():
            found = self.swapped().invert(_MIRRORED.get(ordering, ordering), level)
            return None if found is None else (-found[1], -found[0])
        return _difference_interval(self, ordering, level)

    def invert_ratio(self, ordering: str, level: float) -> Pair | None:
        """Return the ratios that the unconditional test does not reject; None if large."""
        if self._is_turned():
            found = self.swapped().invert_ratio(_MIRRORED.get(ordering, ordering), level)
            return None if found is None else (_reciprocal(found[1]), _reciprocal(found[0]))
        return _ratio_interval(self, ordering, level)

    def distance(self, values: Pair) -> float:
        """Return the size of the score statistic of a gap, whose likeliest values these are."""
        squares = (
            (k / n - rate) ** 2 * n / (rate * (1 - rate))
            for rate, (k, n) in zip(map(self.rate, values), (self.first, self.second), strict=True)
            if 0 < rate < 1
        )
        return math.sqrt(sum(squares))

    @staticmethod
    def rate(value: Any) -> Any:
        """Return the rate of successes with such a value."""
        return value

    @staticmethod
    def value(rate: Any) -> Any:
        """Return the value with such a rate of successes."""
        return rate

    @staticmethod
    def slope(value: Array) -> Array:
        """Return how fast the rate of successes rises with the value."""
        return np.ones_like(value)

    def largest_difference(self, critical: float) -> float:
        """Return the largest difference whose score statistic is not beyond a critical value."""
        first, second = self.values()

        def distance(gap: float) -> float:
            return critical + _studentize(first - second - gap, self.standard_error(gap))

        guess = first - second + critical * math.hypot(*self.errors((first, second)))
        return _find_crossing(distance, first - second, 1.0, guess)

    def largest_ratio(self, critical: float) -> float:
        """Return the largest ratio whose score statistic is not beyond a critical value."""
        # it is searched by its share u = first / (first + second)
        first, second = self.values()

        def distance(u: float) -> float:
            ratio = u / (1 - u)
            one, other = self.errors(self.with_ratio(ratio))
            return critical + _studentize(first - ratio * second, math.hypot(one, ratio * other))

        inside = min(max(first / (first + second), _MIN_SCORE), _MAX_SCORE)
        guess = self.with_half()._shift_ratio(critical)
        found = _find_crossing(distance, inside, _MAX_SCORE, guess)
        return math.inf if found >= _MAX_SCORE else found / (1 - found)

    def _shift_ratio(self, distance: float) -> float:
        """Return the share u of the ratio this many standard errors of its logarithm above."""
        first, second = self.values()
        one, other = self.errors((first, second))
        error = math.hypot(one / first, other / second)
        return 1 / (1 + second / first * math.exp(-distance * error))

    def swapped(self) -> Self:
        """Return them with the second group first."""
        return replace(self, first=self.second, second=self.first)

    def _is_turned(self) -> bool:
        """Whether the larger group is first: swapping groups must not change a digit."""
        return self.first[::-1] > self.second[::-1]

    def _error(self, rate: float, n: float) -> float:
        return math.sqrt(rate * (1 - rate) / n)


@dataclass(frozen=True, slots=True)
class _Differences:
    """The differences of two groups, by places from 0 for −1 to 1 for 1."""

    groups: Rates

    @property
    def estimate(self) -> float:
        first, second = self.groups.values()
        return (1 + (first - second)) / 2

    def left(self, direction: int, distance: float) -> float:
        groups = self.groups if direction > 0 else self.groups.swapped()
        return (1 - groups.largest_difference(distance)) / 2

    def distance(self, place: float) -> float:
        return self.groups.distance(self.groups.differing_by(2 * place - 1))

    def lines(self, places: Array) -> Lines:
        gaps = 2 * places - 1
        ends = np.maximum(0.0, -gaps), np.minimum(1.0, 1 - gaps)
        return _Lines(self.groups, gaps, np.ones_like(gaps), *ends)


@dataclass(frozen=True, slots=True)
class _Ratios:
    """The ratios of two groups, by their shares: first / (first + second)."""

    groups: Rates

    @property
    def estimate(self) -> float:
        first, second = self.groups.values()
        return first / (first + second)

    def left(self, direction: int, distance: float) -> float:
        groups = self.groups if direction > 0 else self.groups.swapped()
        return 1 / (1 + groups.largest_ratio(distance))

    def distance(self, place: float) -> float:
        return self.groups.distance(self.groups.with_ratio(_ratio_at(place)))

    def lines(self, places: Array) -> Lines:
        ratios = np.array([_ratio_at(place) for place in places.tolist()])
        start = np.zeros_like(ratios)
        return _Lines(self.groups, start, ratios, start, np.minimum(1.0, 1 / ratios))


def _reciprocal(ratio: float) -> float:
    return 1 / ratio if ratio > 0 else math.inf


def _ratio_at(place: float) -> float:
    place = min(max(place, _MIN_SCORE), _MAX_SCORE)
    return place / (1 - place)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Pairs of values, of which the first is ``start`` plus ``speed`` times the second.

    The second value goes from ``low`` to ``high``.
    """

    groups: Rates
    start: Array
    speed: Array
    low: Array
    high: Array

    def rates(self, sines: Array) -> tuple[Array, Array, Array]:
        start, speed, low, high = (
            one[:, None] for one in (self.start, self.speed, self.low, self.high)
        )
        second = low + (high - low) * sines
        first = np.minimum(np.maximum(start + speed * second, 0.0), 1.0)
        slope = speed * self.groups.slope(first) / self.groups.slope(second)
        return self.groups.rate(first), self.groups.rate(second), slope

    def angles(self, sample: int, rate: float) -> Array:
        value = self.groups.value(min(max(rate, 0.0), 1.0))
        second = (value - self.start) / self.speed if sample == 0 else value
        share = (second - self.low) / (self.high - self.low)
        return np.asarray(np.arcsin(np.sqrt(np.minimum(np.maximum(share, 0.0), 1.0))))


@lru_cache(1 << 14)  # simulations and audits meet the same tables again
def _difference_interval(groups: Rates, ordering: str, level: float) -> Pair | None:
    """Return the differences of groups in order that the unconditional test does not reject."""
    found = _find_ends(groups, _Differences(groups), ordering, level)
    if found is None:
        return None
    (first, second), (below, above) = groups.values(), found
    # rounded ends must not exclude the estimate
    return min(2 * below - 1, first - second), max(1 - 2 * above, first - second)


@lru_cache(1 << 14)
def _ratio_interval(groups: Rates, ordering: str, level: float) -> Pair | None:
    """Return the ratios of groups in order that the unconditional test does not reject."""
    found = _find_ends(groups, _Ratios(groups), ordering, level)
    if found is None:
        return None
    below, above = found
    return (
        below / (1 - below) if below < 1 else math.inf,
        (1 - above) / above if above > 0 else math.inf,
    )


def _find_ends(groups: Rates, gaps: Gaps, ordering: str, level: float) -> Pair | None:
    """Return what is left beyond both ends of an interval; None for large samples."""
    directions = {"greater": (-1,), "less": (1,)}.get(ordering, (-1, 1))
    found = find_ends(groups.binomials, groups.counts, gaps, directions, 1 - level)
    if found is None:
        return None
    if groups.first == groups.second and len(found) > 1:
        found = [min(found)] * 2  # where a step ends, rounding may stop one search before the other
    ends = dict(zip(directions, found, strict=True))
    return ends.get(-1, 0.0), ends.get(1, 0.0)


class F1Scores(Rates):
    """Two groups' counts of hits among hits and misses, and what they say of the F1 scores.

    Of a score F = 2J/(1 + J), J being the rate of hits, the likelihood is concave.
    """

    __slots__ = ()

    @staticmethod
    def rate(value: Any) -> Any:
        return jaccard_of_f1(value)

    @staticmethod
    def value(rate: Any) -> Any:
        return f1_of_jaccard(rate)

    @staticmethod
    def slope(value: Array) -> Array:
        return np.asarray(2 / (2 - value) ** 2)

    def values(self) -> Pair:
        first, second = Rates.values(self)
        return f1_of_jaccard(first), f1_of_jaccard(second)

    def differing_by(self, gap: float) -> Pair:
        second = self._likeliest(gap, 1.0, max(0.0, -gap), min(1.0, 1 - gap))
        return second + gap, second

    def with_ratio(self, ratio: float) -> Pair:
        second = self._likeliest(0.0, ratio, 0.0, min(1.0, 1 / ratio))
        return ratio * second, second

    def _likeliest(self, start: float, speed: float, low: float, high: float) -> float:
        """Return the likeliest second score if the first is ``start`` plus ``speed`` times it."""
        # by Newton's method, with halving where it would leave the interval that contains the score
        score = min(max(self.values()[1], low + (high - low) / 8), high - (high - low) / 8)
        for _ in range(_HALVINGS):
            first, second = (
                _derivatives(self.first, start + speed * score),
                _derivatives(self.second, score),
            )
            rise = speed * first[0] + second[0]
            low, high = (score, high) if rise > 0 else (low, score)
            before, score = score, score - rise / (speed**2 * first[1] + second[1])
            if not low < score < high:
                score = (low + high) / 2
            if abs(score - before) <= _EPSILON * score or score in {low, high}:
                break
        return score

    def _error(self, score: float, n: float) -> float:
        rate: float = jaccard_of_f1(min(max(score, 0.0), 1.0))
        return 2 / (1 + rate) ** 2 * Rates._error(self, rate, n)


@dataclass(frozen=True, slots=True)
class WeightedStrata(ErrorsByGap):
    """Counts of strata with given shares of the gap, and what they say of its error."""

    shares: tuple[float, ...]
    strata: tuple[Rates, ...]

    def standard_error(self, gap: float) -> float:
        errors = (one.errors(one.differing_by(gap)) for one in self.strata)
        pairs = zip(self.shares, errors, strict=True)
        return math.hypot(*(share * error for share, both in pairs for error in both))


def _derivatives(share: Share, score: float) -> tuple[float, float]:
    """Return the derivatives of the log-likelihood k log J + (n − k) log(1 − J) by F."""
    k, n = share
    f = min(max(score, _MIN_SCORE), _MAX_SCORE)
    hits, misses, both = k / f, (n - k) / (1 - f), n / (2 - f)
    return hits - misses + both, -hits / f - misses / (1 - f) + both / (2 - f)


def _studentize(excess: float, error: float) -> float:
    """Return the excess over its error; infinite over none."""
    if excess == 0:
        return 0.0
    return excess / error if error > 0 else math.copysign(math.inf, excess)


def _find_crossing(
    function: Callable[[float], float], inside: float, outside: float, guess: float
) -> float:
    """Return where a falling function becomes negative between two places; if nowhere, the second.

    By the secant through the last two places, and by halving where it would lead astray.
    """

    def bounded(at: float) -> float:  # an infinite value has no secant
        return min(max(function(at), -_MAX_STATISTIC), _MAX_STATISTIC)

    if bounded(outside) >= 0:
        return outside
    before, value = inside, bounded(inside)
    at = guess if inside < guess < outside else (inside + outside) / 2
    for _ in range(_HALVINGS):
        found = bounded(at)
        inside, outside = (at, outside) if found >= 0 else (inside, at)
        slope = (found - value) / (at - before)
        before, value = at, found
        at = before - value / slope if slope else inside
        if not inside <= at <= outside:
            at = (inside + outside) / 2
        if abs(at - before) < _PRECISION:
            break
    return at


def halved(inside: Callable[[float], bool], start: float, end: float) -> float:
    """Return where the inside ends on the way from start to end; if nowhere, the end."""
    for _ in range(_HALVINGS):
        middle = (start + end) / 2
        if middle in {start, end}:
            break
        if inside(middle):
            start = middle
        else:
            end = middle
    return end


def restricted_by_difference(first: Share, second: Share, gap: float) -> tuple[float, float]:
    """Return the likeliest two rates that differ by ``gap``, in closed form."""
    # the likelihood's derivative is a cubic in the second rate (Miettinen and Nurminen, 1985;
    # Farrington and Manning, 1990), whose one root in range its trigonometric solution picks
    (k, m), (j, n) = first, second
    total, hits = m + n, k + j
    square = ((m + 2 * n) * gap - total - hits) / (3 * total)
    linear = ((n * gap - total - 2 * j) * gap + hits) / (3 * total)
    constant = j * gap * (1 - gap) / total
    half = square**3 - 1.5 * linear * square + constant / 2
    radius = math.copysign(math.sqrt(max(square**2 - linear, 0.0)), half)
    cosine = min(max(half / radius**3, -1.0), 1.0) if radius else 0.0
    q = 2 * radius * math.cos((math.pi + math.acos(cosine)) / 3) - square
    q = min(max(q, -gap, 0.0), 1 - gap, 1.0)
    return min(max(q + gap, 0.0), 1.0), q


def restricted_by_ratio(first: Share, second: Share, ratio: float) -> tuple[float, float]:
    """Return the likeliest two rates whose ratio is ``ratio``, in closed form (ibidem)."""
    (k, m), (j, n) = first, second
    square, hits = (m + n) * ratio, k + j
    linear = m * ratio + k + n + j * ratio
    # the smaller root, in the form that loses no digits
    root = math.sqrt(max(linear**2 - 4 * square * hits, 0.0))
    q = min(2 * hits / (linear + root), 1.0, 1 / ratio)
    return min(ratio * q, 1.0), q
