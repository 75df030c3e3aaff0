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
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.sorting import order_by, run_numbers, run_starts
from fairperm.engines.estimates import ZERO_GAP, Gaps
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
class _Sets:
    """What two and more groups share: sets of several strata, whose values are weighted means.

    A stratum has its ``n_sets``, and what is ``observed()``, as a block of one draw: contributions
    by draw, set, group and contribution, and by draw how many there are of each set, if not one.
    """

    part: Metric
    strata: tuple[Any, ...]
    share: Array
    leaves_one_out: bool

    @property
    def n_sets(self) -> int:
        """Return the number of sets, or of clusters of sets."""
        return sum(one.n_sets for one in self.strata)

    def values(self) -> tuple[Array, Array]:
        """Return the values of the groups, and their standard errors over sets."""
        values, squares = np.zeros(()), np.zeros(())
        for share, one in zip(self.share, self.strata, strict=True):
            arranged, count = one.observed()
            value, influence = self._influences(arranged, count)
            weight = 1.0 if count is None else count[0][:, None]
            values = values + share * value[0]
            square = (weight * influence[0] ** 2).sum(axis=0) * self._unbiased(one.n_sets)
            squares = squares + share**2 * square
        return values, np.sqrt(squares)

    def _influences(
        self, arranged: Array, count: Array | None, totals: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the values by draw and group, and the influences by draw, set and group.

        With a ``count`` by draw and set, all draws have the same sets.
        """
        if totals is None:
            each = np.ones((len(arranged), arranged.shape[1])) if count is None else count
            totals = np.einsum("bm,bmkc->bkc", each, arranged)
        with np.errstate(divide="ignore", invalid="ignore"):
            value, gradient = self.part.estimate(totals), self.part.gradient(totals)
            if not self.leaves_one_out:
                return value, _weigh(arranged, gradient)
            influence = np.zeros(())
            for members, coefficients in list_bases(self.part):
                base = np.ones(arranged.shape[:-1])
                if coefficients.any():
                    base = arranged @ coefficients
                each = np.ones((1, arranged.shape[1])) if count is None else count
                whole, n = (np.matmul(each[:, None], one)[:, 0] for one in (base, base != 0))
                own = shrink(n)[..., None] * gradient[..., members]
                along = _weigh(arranged[..., members], own)
                influence = influence + along / (1 - base / whole[:, None])
        return value, influence

    def _unbiased(self, n: int) -> float:
        """Return the factor of a variance of n sets that makes it unbiased for means.

        The variance of leave-one-out influences is.
        """
        return 1.0 if self.leaves_one_out else n / (n - 1)


def _weigh(arranged: Array, gradient: Array) -> Array:
    """Return the sums of contributions times derivatives, by draw, set and group."""
    return np.asarray(np.einsum("bnkc,bkc->bnk", arranged, gradient))


@dataclass(frozen=True, slots=True)
class MatchedSets(_Sets):
    """Sets with one side for each of two groups, exchanged inside each set.

    ``sign`` is −1 if the user's second group is first here: names change no draw.
    """

    strata: tuple[_Pairs, ...]
    sign: int
    variance: Variance | None

    @classmethod
    def of(cls, part: Metric, sides: Sides, variance: Variance | None) -> MatchedSets:
        """Count the kinds of sets in each stratum."""
        every, share = sides.strata()
        strata = tuple(map(_Pairs.of, every))
        sign = 1
        if next((tilt for one in strata if (tilt := one.tilt())), 0) > 0:
            strata, sign = tuple(one.swapped() for one in strata), -1
        return cls(part, strata, share, sides.leaves_one_out, sign, variance)

    @property
    def n_kinds(self) -> int:
        """Return the number of kinds of sets."""
        return sum(len(one.count) for one in self.strata)

    def observed(self) -> Gaps:
        """Return the gap of the sample itself."""
        return self._merge([self._moments(one, one.first_high[None]) for one in self.strata])

    def permuted(self, n: int, rng: np.random.Generator) -> Gaps:
        """Return the gaps of ``n`` random exchanges inside the sets."""
        found = []
        for one in self.strata:
            sizes = blocks.split_draws(n, max(1, _NUMBERS_AT_ONCE // len(one.count)))
            found.append(np.hstack([self._moments(one, one.draw(m, rng)) for m in sizes]))
        return self._merge(found)

    def enumerated(self, n_resamples: int) -> tuple[Gaps, Array] | None:
        """Return the gaps of all exchanges with their log-probabilities, if they are few."""
        most = max(n_resamples, _MAX_ENUMERATED)
        found = []
        for one in self.strata:
            every = one.enumerate(most)
            if every is None:
                return None
            found.append((self._moments(one, every[0]), every[1]))
        sizes = [len(ways) for _, ways in found]
        if len(sizes) > 1 and math.prod(sizes) > most:
            return None
        grid = np.indices(sizes).reshape(len(sizes), -1)
        pairs = [*zip(found, grid, strict=True)]
        log_probability = np.sum([ways[place] for (_, ways), place in pairs], axis=0)
        return self._merge([moments[:, place] for (moments, _), place in pairs]), log_probability

    def values(self) -> tuple[Array, Array]:
        values, errors = _Sets.values(self)
        return values[:: self.sign], errors[:: self.sign]

    def influences(self) -> tuple[Array, Array]:
        """Return the sizes of the influences of sets on the gap, and how many have them."""
        sizes, counts = [], []
        for share, one in zip(self.share, self.strata, strict=True):
            arranged, count = one.observed()
            _, influence = self._influences(arranged, count)
            sizes.append(share * np.abs(influence[0, :, 0] - influence[0, :, 1]))
            counts.append(count[0])
        return np.concatenate(sizes), np.concatenate(counts)

    def _moments(self, one: _Pairs, chosen: Integers) -> Array:
        """Return the gaps of draws of a stratum, their variances, and their third cumulants.

        ``chosen`` says how many of each kind have the higher side first.
        """
        from fairperm.engines.kernels.matched_sets import sum_powers

        mine, count = chosen.astype(float), one.count.astype(float)
        first = mine @ (one.high - one.low) + count @ one.low
        totals = np.stack([first, count @ (one.high + one.low) - first], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            values, gradient = self.part.estimate(totals), self.part.gradient(totals)
            if self.leaves_one_out:
                arranged, both = one.arrange(chosen)
                _, influence = self._influences(arranged, both, totals)
                squares = (both * (influence[..., 0] - influence[..., 1]) ** 2).sum(axis=1)
                cubes = np.zeros(len(squares))
            else:
                sides, slopes = (one.high, one.low), (gradient[:, 0], gradient[:, 1])
                squares, cubes = sum_powers(mine, count, sides, slopes)
            # the size of the terms that the squared influences are differences of
            largest = np.maximum(np.abs(one.low), np.abs(one.high)).max(axis=0)
            terms = one.n_sets * (np.abs(gradient).sum(axis=1) @ largest) ** 2
            variance = np.where(squares <= _ROUNDING * terms, 0.0, squares)
            gap = values[:, 0] - values[:, 1]
        return np.stack([gap, variance * self._unbiased(one.n_sets), cubes])

    def _merge(self, moments: Sequence[Array]) -> Gaps:
        """Return the mean of the strata's gaps, with its standard error and skewness."""
        powers = self.share[:, None] ** np.arange(1, 4)
        gap, variance, cubes = (powers[..., None] * np.array(moments)).sum(axis=0)
        gap, error = self.sign * gap, np.sqrt(variance)
        if self.variance is None:
            error = np.ones(len(gap))
        if self.variance != Variance.HALL:
            return Gaps(gap[:, None], error[:, None])
        return Gaps(gap[:, None], error[:, None], skewness(self.sign * cubes, error)[:, None])


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Kinds of sets of one stratum, and how many of each have their higher side first."""

    low: Array  # the sides of each kind: mean contributions, ordered by their values
    high: Array
    count: Integers  # sets of each kind, and those whose higher side is of the first group
    first_high: Integers

    @classmethod
    def of(cls, sides: Array) -> _Pairs:
        """Count the kinds of sets, from the sides of the first and the second group."""
        first, second = np.moveaxis(sides, 1, 0)
        is_high = _is_above(first, second)
        low = np.where(is_high[:, None], second, first)
        high = np.where(is_high[:, None], first, second)
        keys = [*low.T, *high.T]
        order = order_by(keys)
        starts = run_starts(*(key[order] for key in keys))
        kind = run_numbers(starts, len(order))
        first_high = np.bincount(kind, is_high[order]).astype(np.int64)
        return cls(low[order[starts]], high[order[starts]], np.bincount(kind), first_high)

    def tilt(self) -> int:
        """Return in which group the first kind that is unlike in both has more of its higher sides.

        1 for the first, −1 for the second, 0 if there is no such kind.
        """
        excess = np.sign(2 * self.first_high - self.count)[self._moves]
        unlike = excess[excess != 0]
        return int(unlike[0]) if unlike.size else 0

    def swapped(self) -> _Pairs:
        """Return the same with the other group first."""
        return replace(self, first_high=self.count - self.first_high)

    @property
    def n_sets(self) -> int:
        return int(self.count.sum())

    @property
    def _moves(self) -> Booleans:
        """Which kinds an exchange changes: sets with equal sides have no higher one."""
        return np.asarray((self.low != self.high).any(axis=1))

    def observed(self) -> tuple[Array, Array]:
        """Return the sample, as a block of one draw."""
        return self.arrange(self.first_high[None])

    def arrange(self, chosen: Integers) -> tuple[Array, Array]:
        """Return each kind with the higher side first, and second; and how many there are."""
        ways = np.stack([self.high, self.low], axis=1), np.stack([self.low, self.high], axis=1)
        return np.concatenate(ways)[None], np.hstack([chosen, self.count - chosen]).astype(float)

    def draw(self, n: int, rng: np.random.Generator) -> Integers:
        """Return how many sets of each kind have the higher side first: bits for single sets."""
        several = np.flatnonzero(self.count > 1)
        chosen = rng.integers(0, 2, (n, len(self.count)), dtype=np.bool_).astype(np.int64)
        if several.size:
            chosen[:, several] = rng.binomial(self.count[several], 0.5, (n, len(several)))
        return chosen

    def enumerate(self, most: int) -> tuple[Integers, Array] | None:
        """Return all exchanges of a stratum with their log-probabilities, if they are few."""
        from scipy.special import gammaln

        moving = np.flatnonzero(self._moves)
        support = math.prod(int(n) + 1 for n in self.count[moving])
        are_many = len(moving) > 1 and support > most
        if are_many or support * len(self.count) > _MAX_COUNTS:
            return None
        chosen = np.zeros((support, len(self.count)), np.int64)
        grid = np.indices([n + 1 for n in self.count[moving]]).reshape(len(moving), support)
        chosen[:, moving] = grid.T
        n, k = self.count[moving], chosen[:, moving]
        ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) - n * math.log(2)
        return chosen, ways.sum(axis=1)


@dataclass(frozen=True, slots=True)
class ManyMatchedSets(_Sets):
    """Sets with one side for each of several groups, exchanged inside each set.

    The statistic is the squared distance of the groups' values from each other in the metric of
    their covariance over sets; of two groups, the square of their studentized gap.
    """

    strata: tuple[_ArrangedSides, ...]
    is_studentized: bool

    @classmethod
    def of(cls, part: Metric, sides: Sides, *, is_studentized: bool) -> ManyMatchedSets:
        """Order the sides of each set, and the sets of each stratum, by their values."""
        strata, share = sides.strata()
        arranged = tuple(_ArrangedSides.of(one) for one in strata)
        return cls(part, arranged, share, sides.leaves_one_out, is_studentized)

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

    def observed(self, scale: float) -> float:
        """Return the statistic of the sample."""
        return float(self._statistics([one.observed() for one in self.strata], scale)[0])

    def permuted(self, n: int, rng: np.random.Generator, scale: float) -> Array:
        """Return the statistics of ``n`` random exchanges inside the sets."""
        step = max(1, _NUMBERS_AT_ONCE // sum(one.n_drawn for one in self.strata))
        sizes = blocks.split_draws(n, step)
        return np.concatenate(
            [self._statistics([one.draw(m, rng) for one in self.strata], scale) for m in sizes]
        )

    def _statistics(self, drawn: Sequence[tuple[Array, Array | None]], scale: float) -> Array:
        """Return the statistic of each draw, given the arrangement of every stratum."""
        gaps, covariance = np.zeros(()), np.zeros(())
        for share, one, (arranged, count) in zip(self.share, self.strata, drawn, strict=True):
            value, influence = self._influences(arranged, count)
            contrasts = _contrasts(value.shape[1])
            gaps, spread = gaps + share * (value @ contrasts), influence @ contrasts
            counted = spread if count is None else spread * count[..., None]
            squares = np.matmul(counted.swapaxes(1, 2), spread) * self._unbiased(one.n_sets)
            covariance = covariance + share**2 * squares
        if not self.is_studentized:
            return np.asarray((gaps**2).sum(axis=1))
        return _squared_distance(gaps, covariance, scale**2 / self.n_sets, scale)


@dataclass(frozen=True, slots=True)
class _ArrangedSides:
    """The sets of one stratum: mean contributions by set, side and contribution.

    Sides are ordered by their values, and so are sets: names change no draw. Where kinds of sets
    have fewer arrangements than there are sets, draws count these.
    """

    sides: Array
    place: Places  # the side of each group in the sample, by set
    ways: Array | None  # the arrangements of every kind
    count: Integers  # sets of each kind

    @classmethod
    def of(cls, totals: Array) -> _ArrangedSides:
        """Order the sides of each set, and the sets, by their values."""
        sides, place = _sort_sides(totals)
        kinds, count = np.unique(sides, axis=0, return_counts=True)
        k = sides.shape[1]
        if k > _MAX_COUNTED or len(kinds) * math.factorial(k) >= len(sides):
            return cls(sides, place, None, count)
        orders = np.array([*itertools.permutations(range(k))])
        return cls(sides, place, kinds[:, orders].reshape(-1, *kinds.shape[1:])[None], count)

    @property
    def n_sets(self) -> int:
        return len(self.sides)

    @property
    def n_drawn(self) -> int:
        """Return how many numbers a draw has."""
        return (self.sides if self.ways is None else self.ways).size

    def observed(self) -> tuple[Array, None]:
        """Return the sample, as a block of one draw."""
        return self._arrange(self.place[None]), None

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array | None]:
        """Return n random exchanges: of each set, or of the numbers of arranged kinds."""
        if self.ways is None:
            return self._arrange(rng.random((n, *self.place.shape)).argsort(axis=-1)), None
        n_ways = self.ways.shape[1] // len(self.count)
        even = np.full(n_ways, 1 / n_ways)
        drawn = np.hstack([rng.multinomial(one, even, n) for one in self.count])
        return self.ways, drawn.astype(float)

    def _arrange(self, place: Places) -> Array:
        """Return the contributions by draw, set, group and contribution."""
        return self.sides[np.arange(len(self.sides))[None, :, None], place]


def _sort_sides(sides: Array) -> tuple[Array, Places]:
    """Return the sides of each set, and the sets, by their values; and the place of each group."""
    inside = np.lexsort(np.moveaxis(sides, -1, 0)[::-1], axis=-1)
    ordered = np.take_along_axis(sides, inside[..., None], axis=1)
    order = order_by([*ordered.reshape(len(sides), -1).T])
    return ordered[order], np.argsort(inside, axis=1)[order]


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
