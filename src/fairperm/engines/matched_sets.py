"""The engine of matched sets, whose two groups are exchanged inside each set.

A set has one side for each group: the mean contributions of its rows. Sets with the same two sides
are of one kind, and exchanging them is drawing how many have their higher side in the first group:
a binomial number of one half. One kind of pairs with different outcomes is McNemar's test.

The sets of one cluster are exchanged together: their sides, each times its set's weight, add up to
those of one unit. Each stratum has its own totals, and the gap is a weighted mean of the strata's.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.sorting import order_by, run_numbers, run_starts
from fairperm.engines.estimates import ZERO_GAP, Gaps, join_gaps, map_arrays
from fairperm.engines.leave_one_out import list_bases, shrink
from fairperm.engines.resampling import blocks
from fairperm.inference.skewness import skewness
from fairperm.metrics.definition import Variance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairperm._utils.arrays import Array, Booleans, Integers, Places
    from fairperm.metrics.definition import Metric

_NUMBERS_AT_ONCE = 1 << 18  # of draws and kinds: they stay in the processor's cache
_MAX_ENUMERATED = 10_000  # exchanges of several kinds, if no more draws are asked for
_MAX_COUNTS = 1 << 22  # of all exchanges, held in memory
_MAX_COUNTED = 5  # groups whose arrangements are counted: 120
_FLAT = 1e-12  # a variance this small against the largest is zero but for rounding
_ROUNDING = 1e-28  # a variance this small against its terms is zero but for rounding


@dataclass(frozen=True, slots=True)
class Sides:
    """What is exchanged: sides by set, or cluster of sets (axis 0), and group (axis 1)."""

    # mean contributions of a set's rows, or weighted sums of those of a cluster's sets
    totals: Array
    # the stratum of each unit, and the weight of each stratum's gap; the weights add up to 1
    stratum: Places
    share: Array
    leaves_one_out: bool  # whether units weigh differently: their influences are leave-one-out ones

    def strata(self) -> tuple[list[Array], Array]:
        """Return the sides of each stratum, and its share: names of strata change no draw."""
        sides = [self.totals[self.stratum == one] for one in range(len(self.share))]
        order = [*range(len(sides))]
        if len(sides) > 1:
            keys = [_sort_sides(one)[0].ravel().tolist() for one in sides]
            order.sort(key=lambda one: (self.share[one], keys[one]))
        return [sides[one] for one in order], self.share[order]


@dataclass(frozen=True, slots=True)
class MatchedSets:
    """Kinds of sets of one stratum, and how many of each have their higher side first."""

    part: Metric
    # the sides of each kind: mean contributions, ordered by their values
    low: Array
    high: Array
    # sets of each kind, and those whose higher side is of the group that is first here
    count: Integers
    first_high: Integers
    sign: int  # −1 if the user's second group is first here: names change no draw
    variance: Variance | None
    leaves_one_out: bool = False  # whether influences are leave-one-out ones

    @classmethod
    def of(cls, part: Metric, sides: Array, variance: Variance | None) -> MatchedSets:
        """Count the kinds of sets, from the sides of the user's first and second group."""
        first, second = np.moveaxis(sides, 1, 0)
        is_high = _is_above(first, second)
        low = np.where(is_high[:, None], second, first)
        high = np.where(is_high[:, None], first, second)
        keys = [*low.T, *high.T]
        order = order_by(keys)
        starts = run_starts(*(key[order] for key in keys))
        kind = run_numbers(starts, len(order))
        count = np.bincount(kind)
        first_high = np.bincount(kind, is_high[order]).astype(np.int64)
        return cls(
            part=part,
            low=low[order[starts]],
            high=high[order[starts]],
            count=count,
            first_high=first_high,
            sign=1,
            variance=variance,
        )

    def tilt(self) -> int:
        """Return in which group the first kind that is unlike in both has more of its higher sides.

        1 for the first, −1 for the second, 0 if there is no such kind.
        """
        moves = (self.low != self.high).any(axis=1)  # sets with equal sides have no higher one
        excess = np.sign(2 * self.first_high - self.count)[moves]
        unlike = excess[excess != 0]
        return int(unlike[0]) if unlike.size else 0

    def swapped(self) -> MatchedSets:
        """Return the same with the other group first."""
        return replace(self, first_high=self.count - self.first_high, sign=-self.sign)

    @property
    def n_sets(self) -> int:
        return int(self.count.sum())

    def observed(self) -> Gaps:
        return self._gaps(self.first_high[None])

    def permuted(self, n: int, rng: np.random.Generator) -> Gaps:
        step = max(1, _NUMBERS_AT_ONCE // len(self.count))
        sizes = blocks.split_draws(n, step)
        return join_gaps([self._gaps(self._draw(m, rng)) for m in sizes])

    def _draw(self, n: int, rng: np.random.Generator) -> Integers:
        """Return how many sets of each kind have the higher side first: bits for single sets."""
        several = np.flatnonzero(self.count > 1)
        chosen = rng.integers(0, 2, (n, len(self.count)), dtype=np.bool_).astype(np.int64)
        if several.size:
            chosen[:, several] = rng.binomial(self.count[several], 0.5, (n, len(several)))
        return chosen

    def enumerated(self, n_resamples: int) -> tuple[Gaps, Array] | None:
        from scipy.special import gammaln

        moving = np.flatnonzero((self.low != self.high).any(axis=1))
        support = math.prod(int(n) + 1 for n in self.count[moving])
        are_many = len(moving) > 1 and support > max(n_resamples, _MAX_ENUMERATED)
        if are_many or support * len(self.count) > _MAX_COUNTS:
            return None
        chosen = np.zeros((support, len(self.count)), np.int64)
        grid = np.indices([n + 1 for n in self.count[moving]]).reshape(len(moving), support)
        chosen[:, moving] = grid.T
        n, k = self.count[moving], chosen[:, moving]
        ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) - n * math.log(2)
        return self._gaps(chosen), ways.sum(axis=1)

    def values(self) -> tuple[Array, Array]:
        chosen = self.first_high.astype(float)
        values, errors = [], []
        for mine in (chosen, self.count - chosen):
            rest = self.count - mine
            total = mine @ self.high + rest @ self.low
            gradient = self.part.gradient(total)
            of_high, of_low = self._influences(mine[None], gradient[None])
            squares = mine @ of_high[0] ** 2 + rest @ of_low[0] ** 2
            values.append(float(self.part.estimate(total)))
            errors.append(math.sqrt(squares * self._unbiased()))
        return np.array(values[:: self.sign]), np.array(errors[:: self.sign])

    def influences(self) -> tuple[Array, Array]:
        mine = self.first_high[None].astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            _, gradients, _ = self._totals(mine)
            up, down = self._influences_on_gap(mine, gradients)
        sizes = np.abs(np.concatenate([up[0], down[0]]))
        return sizes, np.concatenate([self.first_high, self.count - self.first_high]).astype(float)

    def _gaps(self, chosen: Integers) -> Gaps:
        """Return the gaps of draws, given how many of each kind have the higher side first."""
        from fairperm.engines.kernels.matched_sets import sum_powers

        mine = chosen.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            (first, second), gradients, terms = self._totals(mine)
            gap = self.sign * (self.part.estimate(first) - self.part.estimate(second))
            count = self.count.astype(float)
            if self.leaves_one_out:
                up, down = self._influences_on_gap(mine, gradients)
                squares, rest = (mine * up**2).sum(axis=1), count - mine
                variance, cubes = squares + (rest * down**2).sum(axis=1), np.zeros(len(gap))
            else:
                variance, cubes = sum_powers(mine, count, (self.high, self.low), gradients)
            variance = np.where(variance <= _ROUNDING * terms, 0.0, variance) * self._unbiased()
            error = np.sqrt(variance) if self.variance is not None else np.ones(len(gap))
            if self.variance != Variance.HALL:
                return Gaps(gap[:, None], error[:, None])
        return Gaps(gap[:, None], error[:, None], skewness(self.sign * cubes, error)[:, None])

    def _totals(self, mine: Array) -> tuple[tuple[Array, Array], tuple[Array, Array], Array]:
        """Return the totals of both groups, and the derivatives of their values."""
        # then the size of the terms that the squared influences are differences of
        first = mine @ (self.high - self.low) + self.count @ self.low
        second = self.count @ (self.high + self.low) - first
        of_first, of_second = self.part.gradient(first), self.part.gradient(second)
        largest = np.maximum(np.abs(self.low), np.abs(self.high)).max(axis=0)
        terms = self.n_sets * ((np.abs(of_first) + np.abs(of_second)) @ largest) ** 2
        return (first, second), (of_first, of_second), terms

    def _influences_on_gap(
        self, mine: Array, gradients: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """Return the influences of sets of each kind with the higher side first, and second."""
        rest = self.count - mine
        sides = zip((mine, rest), gradients, strict=True)
        (high_first, low_first), (high_second, low_second) = (
            self._influences(*side) for side in sides
        )
        return high_first - low_second, low_first - high_second

    def _influences(self, mine: Array, gradient: Array) -> tuple[Array, Array]:
        """Return the influences of the higher and the lower side of each kind on a group's value.

        ``mine`` says how many of each kind have their higher side in the group, by draw.
        """
        if not self.leaves_one_out:
            return gradient @ self.high.T, gradient @ self.low.T
        of_high, of_low = np.zeros(mine.shape), np.zeros(mine.shape)
        for members, coefficients in list_bases(self.part):
            if coefficients.any():
                high, low = self.high @ coefficients, self.low @ coefficients
            else:
                high = low = np.ones(len(self.count))
            n = mine @ (high != 0) + (self.count - mine) @ (low != 0)
            whole = mine @ high + (self.count - mine) @ low
            own = shrink(n)[:, None] * gradient[:, members]
            of_high += own @ self.high[:, members].T / (1 - high / whole[:, None])
            of_low += own @ self.low[:, members].T / (1 - low / whole[:, None])
        return of_high, of_low

    def _unbiased(self) -> float:
        """Return the factor of a variance of n sets that makes it unbiased for means."""
        # the variance of leave-one-out influences is
        return 1.0 if self.leaves_one_out else self.n_sets / (self.n_sets - 1)


@dataclass(frozen=True, slots=True)
class StrataOfSets:
    """Matched sets of several strata, whose gap is a weighted mean; one stratum is its own."""

    strata: tuple[MatchedSets, ...]
    share: Array

    @classmethod
    def of(cls, part: Metric, sides: Sides, variance: Variance | None) -> StrataOfSets:
        """Count the kinds of sets in each stratum."""
        every, share = sides.strata()
        strata = [MatchedSets.of(part, one, variance) for one in every]
        strata = [replace(one, leaves_one_out=sides.leaves_one_out) for one in strata]
        tilts = [tilt for one in strata if (tilt := one.tilt())]
        if tilts and tilts[0] > 0:
            strata = [one.swapped() for one in strata]
        return cls(tuple(strata), share)

    def studentized_by(self, variance: Variance) -> StrataOfSets:
        """Return the same sets with another variance."""
        return StrataOfSets(
            tuple(replace(one, variance=variance) for one in self.strata), self.share
        )

    @property
    def n_kinds(self) -> int:
        """Return the number of kinds of sets."""
        return sum(len(one.count) for one in self.strata)

    @property
    def n_sets(self) -> int:
        """Return the number of sets, or of clusters of sets."""
        return sum(one.n_sets for one in self.strata)

    def observed(self) -> Gaps:
        """Return the gap of the sample itself."""
        return self._merge([one.observed() for one in self.strata])

    def permuted(self, n: int, rng: np.random.Generator) -> Gaps:
        """Return the gaps of ``n`` random exchanges inside the sets."""
        return self._merge([one.permuted(n, rng) for one in self.strata])

    def enumerated(self, n_resamples: int) -> tuple[Gaps, Array] | None:
        """Return the gaps of all exchanges with their log-probabilities, if they are few."""
        found = []
        for one in self.strata:
            every = one.enumerated(n_resamples)
            if every is None:
                return None
            found.append(every)
        if len(found) == 1:
            return found[0]
        sizes = [len(ways) for _, ways in found]
        if math.prod(sizes) > max(n_resamples, _MAX_ENUMERATED):
            return None
        grid = np.indices(sizes).reshape(len(sizes), -1)
        pairs = [*zip(found, grid, strict=True)]
        log_probability = np.sum([ways[place] for (_, ways), place in pairs], axis=0)
        return self._merge(
            [map_arrays(itemgetter(place), gaps) for (gaps, _), place in pairs]
        ), log_probability

    def values(self) -> tuple[Array, Array]:
        """Return the values of the user's groups, and their standard errors over sets."""
        if len(self.strata) == 1:
            return self.strata[0].values()
        found = zip(*(one.values() for one in self.strata), strict=True)
        values, errors = (np.stack(one) for one in found)
        return self.share @ values, np.sqrt(self.share**2 @ errors**2)

    def influences(self) -> tuple[Array, Array]:
        """Return the sizes of the influences of sets on the gap, and how many have them."""
        sizes, counts = zip(*(one.influences() for one in self.strata), strict=True)
        scaled = [share * one for share, one in zip(self.share, sizes, strict=True)]
        return np.concatenate(scaled), np.concatenate(counts)

    def _merge(self, gaps: Sequence[Gaps]) -> Gaps:
        """Return the mean of the strata's gaps, with its standard error and skewness."""
        if len(gaps) == 1:
            return gaps[0]
        share = self.share[:, None, None]
        difference = (share * [one.difference for one in gaps]).sum(axis=0)
        errors = share * [one.standard_error for one in gaps]
        if self.strata[0].variance is None:
            return Gaps(difference, np.ones_like(difference))
        error = np.sqrt((errors**2).sum(axis=0))
        if gaps[0].skewness is None:
            return Gaps(difference, error)
        cubes = np.array([one.skewness for one in gaps]) * errors**3
        return Gaps(difference, error, skewness(cubes.sum(axis=0), error))


@dataclass(frozen=True, slots=True)
class ManyMatchedSets:
    """Sets with one side for each of several groups, exchanged inside each set.

    The statistic is the squared distance of the groups' values from each other in the metric of
    their covariance over sets; of two groups, the square of their studentized gap.
    """

    part: Metric
    strata: tuple[_ArrangedSides, ...]
    share: Array
    is_studentized: bool
    leaves_one_out: bool

    @classmethod
    def of(cls, part: Metric, sides: Sides, *, is_studentized: bool) -> ManyMatchedSets:
        """Order the sides of each set, and the sets of each stratum, by their values."""
        strata, share = sides.strata()
        arranged = tuple(_ArrangedSides.of(one) for one in strata)
        return cls(part, arranged, share, is_studentized, sides.leaves_one_out)

    @property
    def n_numbers(self) -> int:
        """Return how many numbers a draw moves."""
        return sum(one.sides.size for one in self.strata)

    @property
    def n_unlike(self) -> int:
        """Return the number of sets whose sides are not all equal."""
        return sum(
            int((one.sides != one.sides[:, :1]).any(axis=(1, 2)).sum()) for one in self.strata
        )

    def values(self) -> tuple[Array, Array]:
        """Return the values of the groups, and their standard errors over sets."""
        values, squares = 0.0, 0.0
        for share, one in zip(self.share, self.strata, strict=True):
            value, influence = self._influences(one.observed(), None)
            values = values + share * value[0]
            squares = squares + share**2 * (influence[0] ** 2).sum(axis=0) * self._unbiased(one)
        return np.asarray(values), np.sqrt(squares)

    def observed(self, scale: float) -> float:
        """Return the statistic of the sample."""
        return float(self._statistics([(one.observed(), None) for one in self.strata], scale)[0])

    def permuted(self, n: int, rng: np.random.Generator, scale: float) -> Array:
        """Return the statistics of ``n`` random exchanges inside the sets."""
        drawing = [one.drawing() for one in self.strata]
        step = max(1, _NUMBERS_AT_ONCE // sum(one.n_numbers for one in drawing))
        sizes = blocks.split_draws(n, step)
        return np.concatenate(
            [self._statistics([one.draw(m, rng) for one in drawing], scale) for m in sizes]
        )

    def _influences(self, arranged: Array, count: Array | None) -> tuple[Array, Array]:
        """Return the values by draw and group, and the influences by draw, set and group."""
        # with a ``count`` by draw and arrangement, all draws have the same arrangements
        totals = arranged.sum(axis=1)
        if count is not None:
            totals = np.einsum("bm,mkc->bkc", count, arranged[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            value, gradient = self.part.estimate(totals), self.part.gradient(totals)
            if self.leaves_one_out:
                return value, self._leave_one_out(arranged, count, gradient)
            if count is not None:
                return value, np.einsum("mkc,bkc->bmk", arranged[0], gradient)
            return value, np.einsum("bnkc,bkc->bnk", arranged, gradient)

    def _leave_one_out(self, arranged: Array, count: Array | None, gradient: Array) -> Array:
        """Return the leave-one-out influences by draw, set and group."""
        influence = np.zeros(())
        for members, coefficients in list_bases(self.part):
            base = np.ones(arranged.shape[:-1])
            if coefficients.any():
                base = arranged @ coefficients
            each = np.ones((1, arranged.shape[1])) if count is None else count
            whole, n = ((each[..., None] * one).sum(axis=1) for one in (base, base != 0))
            own = shrink(n)[..., None] * gradient[..., members]
            along = np.einsum(
                "bnkc,bkc->bnk",
                np.broadcast_to(
                    arranged[..., members], (len(own), *arranged.shape[1:-1], len(members))
                ),
                own,
            )
            influence = influence + along / (1 - base / whole[:, None])
        return influence

    def _unbiased(self, one: _ArrangedSides) -> float:
        """Return the factor that makes the variance of a stratum unbiased for means."""
        n = len(one.sides)
        return 1.0 if self.leaves_one_out else n / (n - 1)

    def _statistics(self, drawn: Sequence[tuple[Array, Array | None]], scale: float) -> Array:
        """Return the statistic of each draw, given the arrangement of every stratum."""
        gaps, covariance, n = 0.0, 0.0, 0
        for share, one, (arranged, count) in zip(self.share, self.strata, drawn, strict=True):
            value, influence = self._influences(arranged, count)
            contrasts = _contrasts(value.shape[1])
            gaps, spread = gaps + share * (value @ contrasts), influence @ contrasts
            counted = spread if count is None else spread * count[..., None]
            squares = np.matmul(counted.swapaxes(1, 2), spread) * self._unbiased(one)
            covariance, n = covariance + share**2 * squares, n + len(one.sides)
        if not self.is_studentized:
            return np.asarray((np.asarray(gaps) ** 2).sum(axis=1))
        return _squared_distance(np.asarray(gaps), np.asarray(covariance), scale**2 / n, scale)


@dataclass(frozen=True, slots=True)
class _ArrangedSides:
    """The sets of one stratum."""

    # mean contributions by set, side and contribution, ordered by their values: names of groups and
    # sets change no draw
    sides: Array
    place: Places  # the side of each group in the sample, by set

    @classmethod
    def of(cls, sides: Array) -> _ArrangedSides:
        """Order the sides of each set, and the sets, by their values."""
        return cls(*_sort_sides(sides))

    def observed(self) -> Array:
        """Return the contributions of the sample, as a block of one draw."""
        return _arrange(self.sides, self.place[None])

    def drawing(self) -> _Drawing:
        """Return how to draw: by kinds, if these have fewer arrangements than there are sets."""
        kinds, count = np.unique(self.sides, axis=0, return_counts=True)
        k = self.place.shape[1]
        if k > _MAX_COUNTED:
            return _Drawing(self, None, count)
        ways = np.array([*itertools.permutations(range(k))])
        is_counted = len(kinds) * len(ways) < len(self.sides)
        arranged = kinds[:, ways].reshape(-1, *kinds.shape[1:])[None] if is_counted else None
        return _Drawing(self, arranged, count)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Random exchanges of one stratum: of each set, or of the numbers of arranged kinds."""

    stratum: _ArrangedSides
    arranged: Array | None
    count: Places

    @property
    def n_numbers(self) -> int:
        return (self.stratum.sides if self.arranged is None else self.arranged).size

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array | None]:
        """Return the contributions by draw, set, group and contribution; or counts of kinds."""
        if self.arranged is None:
            place = rng.random((n, *self.stratum.place.shape)).argsort(axis=-1)
            return _arrange(self.stratum.sides, place), None
        n_ways = self.arranged.shape[1] // len(self.count)
        even = np.full(n_ways, 1 / n_ways)
        drawn = [rng.multinomial(one, even, n) for one in self.count]
        return self.arranged, np.hstack(drawn).astype(float)


def _sort_sides(sides: Array) -> tuple[Array, Places]:
    """Return the sides of each set, and the sets, by their values; and the place of each group."""
    inside = np.lexsort(np.moveaxis(sides, -1, 0)[::-1], axis=-1)
    ordered = np.take_along_axis(sides, inside[..., None], axis=1)
    order = order_by([*ordered.reshape(len(sides), -1).T])
    return ordered[order], np.argsort(inside, axis=1)[order]


def _arrange(sides: Array, place: Places) -> Array:
    """Return the contributions by draw, set, group and contribution."""
    return sides[np.arange(len(sides))[None, :, None], place]


def _squared_distance(gaps: Array, covariance: Array, least: float, scale: float) -> Array:
    """Return the squared length of each draw's gaps by their covariance; infinite along a zero."""
    has_gaps, has_errors = np.isfinite(gaps).all(axis=1), np.isfinite(covariance).all(axis=(1, 2))
    is_defined = np.asarray(has_gaps & has_errors)
    size, axes = np.linalg.eigh(np.where(is_defined[:, None, None], covariance, 0.0))
    along = np.einsum("bi,bij->bj", np.where(is_defined[:, None], gaps, 0.0), axes)
    nothing = size <= np.maximum(_FLAT * size[:, -1:], _ROUNDING * least)
    certain: Array = np.where(np.abs(along) <= ZERO_GAP * scale, 0.0, np.inf)
    terms = np.where(nothing, certain, along**2 / np.where(nothing, 1.0, size))
    return np.where(is_defined, terms.sum(axis=1), np.nan)


def _contrasts(k: int) -> Array:
    """Return k − 1 orthonormal contrasts of k groups, as columns."""
    found = np.triu(np.ones((k, k - 1))) - np.eye(k, k - 1, -1) * np.arange(k)[:, None]
    normed: Array = found / np.linalg.norm(found, axis=0)
    return normed


def _is_above(first: Array, second: Array) -> Booleans:
    """Return where the first side comes after the second, in the order of their values."""
    unlike = first != second
    at = unlike.argmax(axis=1)
    rows = np.arange(len(first))
    above: Booleans = unlike.any(axis=1) & (first[rows, at] > second[rows, at])
    return above
