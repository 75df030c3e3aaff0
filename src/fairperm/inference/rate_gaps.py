"""The exact unconditional test that two rates have a given gap, inverted for its interval.

All pairs of rates with one gap, a difference or a ratio, form a line. Tables are ordered by the
score statistic of the gap, their distance from the line (Miettinen and Nurminen 1985). A gap is
rejected if tables at least as far from its line as the observed one have a probability of at most α
at all plausible rates of the line (Agresti and Min, On small-sample confidence intervals for
parameters in discrete distributions, Biometrics 57, 2001; plausible as in Berger and Boos 1994). At
a gap of zero this is the test of :mod:`fairperm.inference.unconditional`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Protocol

import numpy as np

from fairperm._utils.arrays import Array, Booleans, Integers
from fairperm.inference.unconditional import (
    SHARE,
    PlausibleCounts,
    Region,
    TwoBinomials,
    log_outcomes,
    plausible_counts,
    rate_interval,
)

_MAX_FEWER_COUNTS = 64  # plausible ones of a sample: beyond, critical values at zero are as good
_MAX_SUMMED_COUNTS = 256  # of a sample at all gaps: beyond, the other has normal tails
_ANGLES = np.linspace(0, math.pi / 2, 65)
_SINES = np.sin(_ANGLES) ** 2
_CONTOUR_PLACES = np.linspace(0, 1, 129)  # between the angles at which a contour matters
_RATE_PLACES = np.linspace(0, 1, 33)  # between the plausible rates: a quarter of their error apart
_FEWER_RATE_PLACES = _RATE_PLACES[::2]  # for a first look
# standard errors from the normal end, within which nearly all ends of small samples are
_FIRST_STEPS = np.array([-0.4, -0.2, 0.0, 0.2, 0.4, 0.7, 1.0, 1.5, 2.2])
_FARTHER = np.array([1.2, 1.5, 2.0, 2.7, 3.7, 5.0, 7.0, 10.0])  # times the last of them
_INNER_PLACES = np.linspace(0, 1, 6)
_PRECISION = 0.01  # standard errors: an interval is 0.2 % too wide on average
_MIN_PLACE = 2**-53  # whose line is longer than a point
_NORMAL = NormalDist()


class Lines(Protocol):
    """The pairs of rates of each of some gaps, from end to end as an angle goes from 0 to π/2."""

    def rates(self, sines: Array) -> tuple[Array, Array, Array]:
        """Return the first rates, the second, and how fast the first rise with the second.

        At angles with these squared sines. There is a row for each gap, as there may be of them.
        """

    def angles(self, sample: int, rate: float) -> Array:
        """Return for each gap the angle at which a sample has this rate, or the nearest to it."""


class Gaps(Protocol):
    """What a sample says of all gaps, which have places from 0, the least, to 1, the largest."""

    @property
    def estimate(self) -> float:
        """The place of the gap in the sample."""

    def left(self, direction: int, distance: float) -> float:
        """Return what is left above (1) or below (−1) so many standard errors of the estimate."""

    def distance(self, place: float) -> float:
        """Return how many standard errors the sample is from the line of a gap."""

    def lines(self, places: Array) -> Lines:
        """Return the lines of gaps."""


def find_ends(
    binomials: TwoBinomials,
    counts: tuple[tuple[int, int], tuple[int, int]],
    gaps: Gaps,
    directions: Sequence[int],
    alpha: float,
) -> list[float] | None:
    """Return the ends beyond which all gaps are rejected, above (1) or below (−1) the estimate.

    ``counts`` are both groups' successes and trials. An end is said by what is left to the largest,
    or the least, place. With both directions the test is two-sided. None if both samples are large.
    As counts are discrete, some gaps may be rejected between others that are not. Many gaps on the
    way are tested at once, and the outermost that is not rejected is followed, up to the precision.
    """
    numbers = [len(plausible_counts(n, k / n, k / n, math.log(alpha))) for k, n in counts]
    if min(numbers) > _MAX_FEWER_COUNTS:
        return None
    order = (0, 1) if numbers[0] <= numbers[1] else (1, 0)
    z = _NORMAL.inv_cdf(1 - alpha / len(directions))
    searches = [_Search(gaps, direction, max(z, 0.0)) for direction in directions]
    sides = [-direction for direction in directions]  # a gap is too large for tables below its line
    rate_places = _FEWER_RATE_PLACES
    while still := [one for one in searches if len(one.steps)]:
        places = np.concatenate([one.places(one.steps) for one in still])
        places = np.clip(places, _MIN_PLACE, 1 - _MIN_PLACE)
        distances = np.array([gaps.distance(place) for place in places.tolist()])
        lines = gaps.lines(places)
        found = _probabilities(binomials, lines, distances, sides, alpha, order, rate_places)
        if found is None:
            return None
        rate_places, is_inside, start = _RATE_PLACES, found > alpha, 0
        for one in still:
            stop = start + len(one.steps)
            one.follow(is_inside[start:stop])
            start = stop
    return [one.room * math.exp(one.speed * one.outside) for one in searches]


class _Search:
    """The search for one end, by steps: distances from the estimate in about standard errors.

    Steps are equal on a logarithmic scale of what is left to the least or the largest gap.
    """

    def __init__(self, gaps: Gaps, direction: int, z: float) -> None:
        self.direction = direction
        self.room = 1 - gaps.estimate if direction > 0 else gaps.estimate
        unit = max(z, 1.0)
        left = max(gaps.left(direction, unit), np.finfo(float).tiny)
        self.speed = math.log(left / self.room) / unit if self.room > 0 else 0.0
        self.inside, self.outside, self.is_far = 0.0, math.inf, False
        scale = max(z, 2.0) / 2
        self.steps = np.unique(np.maximum(z + scale * _FIRST_STEPS, 0.0))
        if z == 0 or self.room == 0:  # at low levels, intervals end at the estimate
            self.outside, self.steps = 0.0, self.steps[:0]

    def places(self, steps: Array) -> Array:
        """Return the places at these steps."""
        left = self.room * np.exp(self.speed * steps)
        return np.asarray(1 - left if self.direction > 0 else left)

    def follow(self, is_inside: Booleans) -> None:
        """Choose the next steps, beyond the outermost that is not rejected."""
        steps = self.steps
        last = int(np.flatnonzero(is_inside)[-1]) if is_inside.any() else -1
        if last >= 0:
            self.inside = float(steps[last])
        if last + 1 < len(steps):
            self.outside = float(steps[last + 1])
        if math.isinf(self.outside):
            self.steps = steps[:0] if self.is_far else self.inside * _FARTHER
            self.is_far = True
        elif self.outside - self.inside > _PRECISION:
            self.steps = (self.inside + (self.outside - self.inside) * _INNER_PLACES)[1:-1]
        else:
            self.steps = steps[:0]


def _probabilities(
    binomials: TwoBinomials,
    lines: Lines,
    distances: Array,
    sides: Sequence[int],
    alpha: float,
    order: tuple[int, int],
    rate_places: Array,
) -> Array | None:
    """Return for each line the largest probability of tables so far above (1) or below (−1) it."""
    # It is the largest over the plausible rates, over 1 − SHARE. The first in ``order`` is the
    # sample with fewer plausible counts. None if that has too many.
    sizes = binomials.sizes
    ends = _plausible_ends(binomials, lines, alpha)
    rates = [one.ravel() for one in lines.rates(_between(ends, rate_places))[:2]]
    few, many = order
    ranges = [(float(rates[k].min()), float(rates[k].max())) for k in order]
    counts = PlausibleCounts.of(
        (sizes[few], sizes[many]), (ranges[0], ranges[1]), math.log(alpha), _MAX_SUMMED_COUNTS
    )
    if counts is None:
        return None
    # the contour of tables so far from the line is at most so far from it in this sample
    reach = float(distances.max()) / (2 * math.sqrt(sizes[many]))
    low, high = (one / sizes[many] for one in counts.range_of_second)
    window = np.array([lines.angles(many, low - reach), lines.angles(many, high + reach)]).T
    contours = _Contours(sizes, lines.rates(_between(window, _CONTOUR_PLACES)), distances)
    # between two angles it is off by at most half of the squared step, if its curvature is below 4
    tolerance = ((window[:, 1:] - window[:, :1]) / (len(_CONTOUR_PLACES) - 1)) ** 2 / 2
    limits: dict[bool, Integers] = {}
    for side in sides:
        # tables above a line have many successes in the first sample, and few in the second
        has_many = (side > 0) == (many == 0)
        pair = contours.shares(side)
        starts = _limits(counts, pair[few], pair[many], tolerance, has_many=has_many)
        # a line may begin without successes, or end without failures, where the statistic is 0
        edge, corner, none = (-1, 1, sizes[many] + 1) if has_many else (0, 0, -1)
        if counts.first[edge] == corner * sizes[few]:
            is_corner = contours.rates[0][:, edge] == contours.rates[1][:, edge]
            starts[is_corner & (contours.rates[0][:, edge] == corner), edge] = none
        limits[has_many] = starts
    tails = counts.tails(log_outcomes(rates[few]), log_outcomes(rates[many]))
    found = tails.probability(Region(limits.get(False), limits.get(True)))
    return np.asarray(found.reshape(len(ends), -1).max(axis=1) / (1 - SHARE))


def _plausible_ends(binomials: TwoBinomials, lines: Lines, alpha: float) -> Array:
    """Return the angles between which the rates of each line are plausible.

    Their mean rate is in the interval of a binomial rate. Chernoff's inequality, which it is made
    from, also holds for the total of two samples: by Jensen's inequality its moments are at most
    those of one sample with the mean rate.
    """
    first, second, _ = lines.rates(_SINES)
    mean = (binomials.first * first + binomials.second * second) / binomials.n
    interval = rate_interval(binomials.successes, binomials.n, SHARE * alpha)
    return np.array([np.interp(interval, one, _ANGLES) for one in mean])


def _between(ends: Array, places: Array) -> Array:
    """Return the squared sines of angles between both ends."""
    return np.asarray(np.sin(ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * places) ** 2)


class _Contours:
    """The shares of both samples at some distance from lines, as curves along them.

    The rates p and q of a line are the likeliest for shares x and y if (x − p)·s/V + (y − q)/W is
    zero, where s is the slope dp/dq, and V and W are the variances of x and y. The score statistic
    is then (x − p)/V·√(V + s²W).
    """

    def __init__(
        self, sizes: tuple[int, int], rates: tuple[Array, Array, Array], distances: Array
    ) -> None:
        first, second, slope = rates
        v, w = first * (1 - first) / sizes[0], second * (1 - second) / sizes[1]
        error = np.sqrt(v + slope**2 * w)
        step = distances[:, None] / np.where(error > 0, error, 1.0)
        self.rates, self.moves = (first, second), (step * v, -step * slope * w)

    def shares(self, side: int) -> tuple[Array, Array]:
        """Return the shares of both samples above (1) or below (−1) the lines."""
        (first, second), (one, other) = self.rates, self.moves
        return first + side * one, second + side * other


def _limits(
    counts: PlausibleCounts, few: Array, many: Array, tolerance: Array, *, has_many: bool
) -> Integers:
    """Return where the tables of a region begin, for each line and count of the first sample."""
    # They have so many successes or more in the second; if not ``has_many``, so many or less.
    # Outside of 0 to 1 a contour turns back.
    n, shares = counts.sizes[1], counts.first / counts.sizes[0]
    if has_many:
        few = np.minimum.accumulate(few[:, ::-1], axis=1)[:, ::-1]
        pairs = zip(few, many, strict=True)
        found = np.array([np.interp(shares, *pair) for pair in pairs])
        limits = np.ceil((found - tolerance) * n).astype(np.int64)
        limits[shares > few[:, -1:] + tolerance] = n + 1
        return limits
    few = np.maximum.accumulate(few, axis=1)
    found = np.array([np.interp(shares, *pair) for pair in zip(few, many, strict=True)])
    limits = np.floor((found + tolerance) * n).astype(np.int64)
    limits[shares < few[:, :1] - tolerance] = -1
    return limits
