"""The engine of matched sets, whose two groups are exchanged inside each set.

A set has one side for each group: the mean contributions of its rows. Sets with the same two sides
are of one kind, and exchanging them is drawing how many have their higher side in the first group:
a binomial number of one half. One kind of pairs with different outcomes is McNemar's test.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.sorting import order_by, run_numbers, run_starts
from fairperm.engines.estimates import ZERO_GAP, Gaps, join_gaps
from fairperm.engines.resampling import blocks
from fairperm.inference.skewness import skewness
from fairperm.metrics.definition import Variance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.metrics.definition import Metric

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

_NUMBERS_AT_ONCE = 1 << 18  # of draws and kinds: they stay in the processor's cache
_MAX_ENUMERATED = 10_000  # exchanges of several kinds, if no more draws are asked for
_MAX_COUNTS = 1 << 22  # of all exchanges, held in memory
_MAX_COUNTED = 5  # groups whose arrangements are counted: 120
_FLAT = 1e-12  # a variance this small against the largest is zero but for rounding
_ROUNDING = 1e-28  # a variance this small against its terms is zero but for rounding


@dataclass(frozen=True, slots=True)
class MatchedSets:
    """Kinds of sets, and how many of each have their higher side in the first group.

    Attributes
    ----------
    low, high
        The sides of each kind: mean contributions, ordered by their values.
    count, first_high
        Sets of each kind, and those whose higher side is of the group that is first here.
    sign
        −1 if the user's second group is first here: names change no draw.
    """

    part: Metric
    low: Array
    high: Array
    count: Counts
    first_high: Counts
    sign: int
    variance: Variance | None

    @classmethod
    def of(
        cls, part: Metric, first: Array, second: Array, variance: Variance | None
    ) -> MatchedSets:
        """Count the kinds of sets, from the sides of the user's first and second group."""
        is_high = _is_above(first, second)
        low = np.where(is_high[:, None], second, first)
        high = np.where(is_high[:, None], first, second)
        keys = [*low.T, *high.T]
        order = order_by(keys)
        starts = run_starts(*(key[order] for key in keys))
        kind = run_numbers(starts, len(order))
        count = np.bincount(kind)
        first_high = np.bincount(kind, is_high[order]).astype(np.int64)
        others = count - first_high
        moves = (low != high).any(axis=1)[order[starts]]  # sets with equal sides have no higher one
        unlike = np.flatnonzero(moves & (first_high != others))
        is_swapped = bool(unlike.size and others[unlike[0]] < first_high[unlike[0]])
        return cls(
            part=part,
            low=low[order[starts]],
            high=high[order[starts]],
            count=count,
            first_high=others if is_swapped else first_high,
            sign=-1 if is_swapped else 1,
            variance=variance,
        )

    @property
    def n_sets(self) -> int:
        """Return the number of sets."""
        return int(self.count.sum())

    def observed(self) -> Gaps:
        """Return the gap of the sample itself."""
        return self._gaps(self.first_high[None])

    def permuted(self, n: int, rng: np.random.Generator) -> Gaps:
        """Return the gaps of ``n`` random exchanges inside the sets."""
        step = max(1, _NUMBERS_AT_ONCE // len(self.count))
        sizes = blocks.split_draws(n, step)
        return join_gaps([self._gaps(self._draw(m, rng)) for m in sizes])

    def _draw(self, n: int, rng: np.random.Generator) -> Counts:
        """Return how many sets of each kind have the higher side first: bits for single sets."""
        several = np.flatnonzero(self.count > 1)
        chosen = rng.integers(0, 2, (n, len(self.count)), dtype=np.bool_).astype(np.int64)
        if several.size:
            chosen[:, several] = rng.binomial(self.count[several], 0.5, (n, len(several)))
        return chosen

    def enumerated(self, n_resamples: int) -> tuple[Gaps, Array] | None:
        """Return the gaps of all exchanges with their log-probabilities, if they are few."""
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
        """Return the values of the user's groups, and their standard errors over sets."""
        chosen = self.first_high.astype(float)
        values, errors = [], []
        for mine in (chosen, self.count - chosen):
            total = mine @ self.high + (self.count - mine) @ self.low
            gradient = self.part.gradient(total)
            squares = mine @ (self.high @ gradient) ** 2
            squares += (self.count - mine) @ (self.low @ gradient) ** 2
            values.append(float(self.part.estimate(total)))
            errors.append(math.sqrt(squares * self._unbiased()))
        return np.array(values[:: self.sign]), np.array(errors[:: self.sign])

    def influences(self) -> tuple[Array, Array]:
        """Return the sizes of the influences of sets on the gap, and how many have them."""
        with np.errstate(divide="ignore", invalid="ignore"):
            _, (of_first, of_second), _ = self._totals(self.first_high[None].astype(float))
            up = self.high @ of_first[0] - self.low @ of_second[0]
            down = self.low @ of_first[0] - self.high @ of_second[0]
        sizes = np.abs(np.concatenate([up, down]))
        return sizes, np.concatenate([self.first_high, self.count - self.first_high]).astype(float)

    def _gaps(self, chosen: Counts) -> Gaps:
        """Return the gaps of draws, given how many of each kind have the higher side first."""
        from fairperm.engines.kernels.matched_sets import sum_powers

        mine = chosen.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            (first, second), gradients, terms = self._totals(mine)
            gap = self.sign * (self.part.estimate(first) - self.part.estimate(second))
            count = self.count.astype(float)
            variance, cubes = sum_powers(mine, count, (self.high, self.low), gradients)
            variance = np.where(variance <= _ROUNDING * terms, 0.0, variance) * self._unbiased()
            error = np.sqrt(variance) if self.variance is not None else np.ones(len(gap))
            if self.variance != Variance.HALL:
                return Gaps(gap[:, None], error[:, None])
        return Gaps(gap[:, None], error[:, None], skewness(self.sign * cubes, error)[:, None])

    def _totals(self, mine: Array) -> tuple[tuple[Array, Array], tuple[Array, Array], Array]:
        """Return the totals of both groups, and the derivatives of their values.

        Then the size of the terms that the squared influences are differences of.
        """
        first = mine @ (self.high - self.low) + self.count @ self.low
        second = self.count @ (self.high + self.low) - first
        of_first, of_second = self.part.gradient(first), self.part.gradient(second)
        largest = np.maximum(np.abs(self.low), np.abs(self.high)).max(axis=0)
        terms = self.n_sets * ((np.abs(of_first) + np.abs(of_second)) @ largest) ** 2
        return (first, second), (of_first, of_second), terms

    def _unbiased(self) -> float:
        """Return the factor of a variance of n sets that makes it unbiased for means."""
        return self.n_sets / (self.n_sets - 1)


@dataclass(frozen=True, slots=True)
class ManyMatchedSets:
    """Sets with one side for each of several groups, exchanged inside each set.

    The statistic is the squared distance of the groups' values from each other in the metric of
    their covariance over sets; of two groups, the square of their studentized gap.

    Attributes
    ----------
    sides
        Mean contributions by set, side and contribution, ordered by their values: names of groups
        and sets change no draw.
    place
        The side of each group in the sample, by set.
    """

    part: Metric
    sides: Array
    place: NDArray[np.intp]
    is_studentized: bool

    @classmethod
    def of(cls, part: Metric, sides: Array, *, is_studentized: bool) -> ManyMatchedSets:
        """Order the sides of each set, and the sets, by their values."""
        inside = np.lexsort(np.moveaxis(sides, -1, 0)[::-1], axis=-1)
        ordered = np.take_along_axis(sides, inside[..., None], axis=1)
        order = order_by([*ordered.reshape(len(sides), -1).T])
        return cls(part, ordered[order], np.argsort(inside, axis=1)[order], is_studentized)

    @property
    def n_unlike(self) -> int:
        """Return the number of sets whose sides are not all equal."""
        return int((self.sides != self.sides[:, :1]).any(axis=(1, 2)).sum())

    def values(self) -> tuple[Array, Array]:
        """Return the values of the groups, and their standard errors over sets."""
        value, influence = self._influences(self._arrange(self.place[None]), None)
        n = len(self.sides)
        return value[0], np.sqrt((influence[0] ** 2).sum(axis=0) * n / (n - 1))

    def observed(self, scale: float) -> float:
        """Return the statistic of the sample."""
        return float(self._statistics(self._arrange(self.place[None]), None, scale)[0])

    def permuted(self, n: int, rng: np.random.Generator, scale: float) -> Array:
        """Return the statistics of ``n`` random exchanges inside the sets.

        If there are fewer arrangements of kinds of sets than sets, their numbers are drawn.
        """
        kinds, count = np.unique(self.sides, axis=0, return_counts=True)
        k = self.place.shape[1]
        ways = np.array([*itertools.permutations(range(k))]) if k <= _MAX_COUNTED else None
        is_counted = ways is not None and len(kinds) * len(ways) < len(self.sides)
        arranged = kinds[:, ways].reshape(-1, *kinds.shape[1:])[None] if is_counted else None
        step = max(1, _NUMBERS_AT_ONCE // (self.sides if arranged is None else arranged).size)
        found = []
        for size in blocks.split_draws(n, step):
            if arranged is None or ways is None:
                place = rng.random((size, *self.place.shape)).argsort(axis=-1)
                found.append(self._statistics(self._arrange(place), None, scale))
                continue
            even = np.full(len(ways), 1 / len(ways))
            drawn = [rng.multinomial(one, even, size) for one in count]
            found.append(self._statistics(arranged, np.hstack(drawn).astype(float), scale))
        return np.concatenate(found)

    def _arrange(self, place: NDArray[np.intp]) -> Array:
        """Return the contributions by draw, set, group and contribution."""
        return self.sides[np.arange(len(self.sides))[None, :, None], place]

    def _influences(self, arranged: Array, count: Array | None) -> tuple[Array, Array]:
        """Return the values by draw and group, and the influences by draw, set and group.

        With a ``count`` by draw and arrangement, all draws have the same arrangements.
        """
        totals = arranged.sum(axis=1)
        if count is not None:
            totals = np.einsum("bm,mkc->bkc", count, arranged[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            value, gradient = self.part.estimate(totals), self.part.gradient(totals)
            if count is not None:
                return value, np.einsum("mkc,bkc->bmk", arranged[0], gradient)
            return value, np.einsum("bnkc,bkc->bnk", arranged, gradient)

    def _statistics(self, arranged: Array, count: Array | None, scale: float) -> Array:
        value, influence = self._influences(arranged, count)
        contrasts = _contrasts(value.shape[1])
        gaps, spread = value @ contrasts, influence @ contrasts
        if not self.is_studentized:
            squares: Array = (gaps**2).sum(axis=1)
            return squares
        n = len(self.sides)
        counted = spread if count is None else spread * count[..., None]
        covariance = np.matmul(counted.swapaxes(1, 2), spread) * n / (n - 1)
        is_defined = np.isfinite(gaps).all(axis=1) & np.isfinite(covariance).all(axis=(1, 2))
        size, axes = np.linalg.eigh(np.where(is_defined[:, None, None], covariance, 0.0))
        along = np.einsum("bi,bij->bj", np.where(is_defined[:, None], gaps, 0.0), axes)
        nothing = size <= np.maximum(_FLAT * size[:, -1:], _ROUNDING * scale**2 / n)
        certain = np.where(np.abs(along) <= ZERO_GAP * scale, 0.0, np.inf)
        terms = np.where(nothing, certain, along**2 / np.where(nothing, 1.0, size))
        return np.where(is_defined, terms.sum(axis=1), np.nan)


def _contrasts(k: int) -> Array:
    """Return k − 1 orthonormal contrasts of k groups, as columns."""
    found = np.triu(np.ones((k, k - 1))) - np.eye(k, k - 1, -1) * np.arange(k)[:, None]
    normed: Array = found / np.linalg.norm(found, axis=0)
    return normed


def _is_above(first: Array, second: Array) -> NDArray[np.bool_]:
    """Return where the first side comes after the second, in the order of their values."""
    unlike = first != second
    at = unlike.argmax(axis=1)
    rows = np.arange(len(first))
    above: NDArray[np.bool_] = unlike.any(axis=1) & (first[rows, at] > second[rows, at])
    return above
