"""Estimates from totals of contributions and of their products, for any number of groups.

Contributions are centred, which changes no statistic but keeps second moments accurate where they
are small against the mean. The centre is near the median: one extreme row could move the mean so
far that the other rows would lose their digits. What units weigh (weights, sizes of clusters, or
labels) varies with their contributions, which are therefore centred by a multiple of it first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations

import numpy as np

from fairperm._utils.arrays import Array, Places
from fairperm._utils.pieces import split_rows
from fairperm.engines.estimates import Estimates, score_variance, unbiased
from fairperm.metrics.definition import Metric, Variance, by_part

_ROUNDING = 1e-13  # a variance this small against its own terms is zero but for rounding
_SAMPLED = 1 << 14  # sorted rows that locate the rest
_WIDE = 1e4  # times a lower quartile: few rows make a mean so far above it


@dataclass(frozen=True, slots=True)
class Moments:
    """The terms of each unit in the totals that a metric's parts are computed from.

    ``columns`` are those that are not all zero once centred, and ``moving`` has their places among
    all columns: contributions, counts of the units that contribute, products of two, with strata
    the cubes of what units weigh, for variances without bias, and products of three if skewness is
    taken out. Each contribution has ``shift`` times another one (``base``) subtracted from it, and
    then its ``centre``.
    """

    parts: tuple[Metric, ...]
    base: Places
    shift: Array
    centre: Array
    cubes: Array
    moving: Places
    columns: Array
    has_thirds: bool

    @classmethod
    def of(
        cls,
        parts: tuple[Metric, ...],
        contributions: Array,
        order: Places,
        *,
        has_strata: bool,
        has_thirds: bool = False,
    ) -> Moments:
        """Return the moments of the units in this order."""
        base, shift = _find_shifts(parts, contributions, order)
        if shift.any():
            contributions = contributions - shift * contributions[:, base]
        kinds = {"has_strata": has_strata, "has_thirds": has_thirds}
        centred = _centre(parts, contributions, order, **kinds)
        return cls(parts, base, shift, *centred, has_thirds)

    @property
    def width(self) -> int:
        """Return the number of contributions."""
        return len(self.centre)

    @property
    def n_columns(self) -> int:
        """Return the number of all columns, moving or not; products of three come last."""
        triples = len(_multisets(self.parts[0], 3)) if self.has_thirds else 0
        return self._first_triple + triples

    @property
    def _first_triple(self) -> int:
        products = sum(len(_multisets(part, 2)) for part in self.parts)
        return 2 * self.width + products + len(self.cubes)

    def is_wide(self) -> bool:
        """Whether few rows outweigh the rest so far that a sum of all loses the digits of the rest.

        Then the second group's total must not be computed as that of all rows minus the first's.
        A skewness has no such digits: it is compared with the errors of both groups.
        """
        for column in self.columns.T[: self.n_wanted(Variance.DELTA)]:
            some = np.abs(_sampled(column))
            lower = np.quantile(some[some > 0], 0.25) if some.any() else 0.0
            sums = (np.abs(column[rows]).sum() for rows in split_rows(len(column)))
            if sum(sums) > _WIDE * lower * len(column):
                return True
        return False

    def n_wanted(self, variance: Variance | None) -> int:
        """Return the number of moving columns needed: products only for variances."""
        if variance == Variance.HALL:
            return len(self.moving)
        if variance in {Variance.SCORE, Variance.DELTA}:
            return int((self.moving < self._first_triple).sum())
        return int((self.moving < 2 * self.width).sum())

    def estimates(self, totals: Array, sizes: Array, variance: Variance | None) -> Estimates:
        """Return value, variance and size of every part, from totals on the last axis."""
        # A single part has a third cumulant, too, if its variance is "hall"
        width, whole = self.width, self.whole(totals, sizes)
        results = []
        product, triple = 2 * width, self._first_triple
        cubes = totals[..., triple - len(self.cubes) : triple]
        cube = 0
        with np.errstate(divide="ignore", invalid="ignore"):
            for part, place in by_part(self.parts):
                mine = whole[..., place]
                n_products, n_bases = len(_multisets(part, 2)), len(_used_bases(part))
                spread = np.zeros(mine.shape[:-1])
                third: tuple[Array, ...] = ()
                if variance == Variance.SCORE and part.has_denominator:
                    spread = score_variance(part, mine[..., 0], mine[..., 1])
                elif variance in {Variance.SCORE, Variance.DELTA, Variance.HALL}:
                    products = totals[..., product : product + n_products]
                    centre, gradient = self.centre[place], self.gradient(part, place, mine)
                    spread = _delta_variance(gradient, products, sizes, centre)
                    if variance == Variance.HALL:
                        triples = totals[..., triple:]
                        third = (_third_cumulant(gradient, triples, products, sizes, centre),)
                    if totals.ndim > 2 and totals.shape[-3] > 1:
                        mine_cubed = slice(cube, cube + n_bases)
                        first = sizes[..., None] * self.cubes[mine_cubed]
                        of_part = cubes[..., mine_cubed] + first
                        spread = _unbiased(spread, part, mine, products, sizes, centre, of_part)
                size = np.broadcast_to(sizes, mine.shape[:-1])
                if part.sizes_groups:
                    size = mine[..., 1]
                value = np.where(sizes == 0, np.nan, part.estimate(mine))  # not a rounding error
                results.append((value, spread, size, *third))
                product += n_products
                cube += n_bases
        return Estimates(*(np.stack(arrays) for arrays in zip(*results, strict=True)))

    def whole(self, totals: Array, sizes: Array) -> Array:
        """Return the totals of the contributions themselves, neither shifted nor centred."""
        width = self.width
        whole = totals[..., :width] + sizes[..., None] * self.centre
        # without any contribution a total is zero, not a rounding error
        counted = np.isin(np.arange(width, 2 * width), self.moving)
        none = counted & (totals[..., width : 2 * width] == 0)
        whole = np.where(none, 0.0, whole)
        if self.shift.any():
            whole = whole + self.shift * whole[..., self.base]
        return whole

    def gradient(self, part: Metric, place: slice, totals: Array) -> Array:
        """Return the derivative of a part's value by the totals of shifted contributions."""
        gradient, shift = part.gradient(totals), self.shift[place]
        for j in np.flatnonzero(shift):
            gradient[..., self.base[place][j] - place.start] += shift[j] * gradient[..., j]
        return gradient


def _find_shifts(
    parts: tuple[Metric, ...], contributions: Array, order: Places
) -> tuple[Places, Array]:
    """Return by contribution what units weigh in it, if that varies, and the median per weight."""
    # labels and predictions are not shifted: they are small numbers
    width = contributions.shape[1]
    base, shift = np.arange(width), np.zeros(width)
    for part, place in by_part(parts):
        bases = _used_bases(part)
        single = [np.flatnonzero(one)[0] for one in bases if np.count_nonzero(one) == 1]
        if part.has_denominator or len(single) != 1 or len(bases) != 1:
            continue
        at = place.start + int(single[0])
        weight = contributions[:, at]
        some = _sampled(order[weight[order] != 0])
        if weight.min() == weight.max() or not some.size:
            continue
        for j in range(place.start, place.stop):
            if j != at:
                with np.errstate(over="ignore"):
                    middle = float(np.median(contributions[some, j] / weight[some]))
                base[j], shift[j] = at, middle if np.isfinite(middle) else 0.0
    return base, shift


def _sampled(ordered: Array) -> Array:
    """Return sorted rows at equal distances, which do not depend on the user's order of rows."""
    return ordered[:: max(1, len(ordered) // _SAMPLED)]


def _multisets(part: Metric, size: int) -> list[tuple[int, ...]]:
    """Return the places of so many contributions of a part, in every combination."""
    return [*combinations_with_replacement(range(len(part.contributions)), size)]


def _used_bases(part: Metric) -> Array:
    """Return the coefficients by which contributions add up to what a unit weighs."""
    bases = np.array([*part.bases().values()])
    return bases[bases.any(axis=1)]


def _centre(
    parts: tuple[Metric, ...],
    contributions: Array,
    order: Places,
    *,
    has_strata: bool,
    has_thirds: bool,
) -> tuple[Array, Array, Places, Array]:
    """Return the centres, the places of columns that are not all zero once centred, and these.

    After the contributions come counts of the rows that contribute, for contributions that are
    zero in some rows; then the products of every two contributions of a part: second
    moments; then with strata the cubes of what units weigh, whose centres come second; then the
    products of every three contributions, if these are wanted: third moments.
    """
    width = contributions.shape[1]
    constant = [column.min() == column.max() for column in contributions.T]
    varying = [j for j in range(width) if not constant[j]]
    counted = [j for j in varying if not contributions[:, j].all()]
    products: dict[int, tuple[int, ...]] = {}
    at = 2 * width

    def multiply(size: int) -> None:
        nonlocal at
        for part, place in by_part(parts):
            for multiset in _multisets(part, size):
                factors = tuple(place.start + j for j in multiset)
                if not any(constant[j] for j in factors):
                    products[at] = factors
                at += 1

    multiply(2)
    first_cubes, cubes = [], {}
    for part, place in by_part(parts) if has_strata else ():
        for base in _used_bases(part):
            cube = (contributions[order][:, place] @ base) ** 3
            first_cubes.append(cube[0])
            if (cube != cube[0]).any():
                cubes[at] = cube - cube[0]
            at += 1
    if has_thirds:
        multiply(3)
    moving = sorted([*varying, *(width + j for j in counted), *products, *cubes])
    # in memory, each column is on its own; filled in place, as there may be millions of rows
    columns = np.empty((len(moving), len(contributions)))
    at_place = dict(zip(moving, columns, strict=True))
    centre = contributions[0].copy()
    for j in varying:
        column = at_place[j]
        column[:] = contributions[:, j][order]
        centre[j] = np.median(_sampled(column))
        if j in counted:
            at_place[width + j][:] = column != 0
        column -= centre[j]
    for at, (j, k, *others) in products.items():
        np.multiply(at_place[j], at_place[k], out=at_place[at])
        for other in others:
            at_place[at] *= at_place[other]
    for at, cube in cubes.items():
        at_place[at][:] = cube
    return centre, np.array(first_cubes), np.array(moving, np.intp), columns.T


def _unbiased(
    variance: Array,
    part: Metric,
    whole: Array,
    products: Array,
    n: Array,
    centre: Array,
    cubes: Array,
) -> Array:
    """Return a part's variance without the bias of few units; the base with the fewest decides."""
    # ``whole`` are the totals of the contributions, ``products`` those of centred contributions
    every = []
    for i, base in enumerate(_used_bases(part)):
        shift = base @ centre
        total = whole @ base
        squares = _power_terms(base, products, 2).sum(axis=0) + shift * (2 * total - n * shift)
        every.append(unbiased(variance, total, squares, cubes[..., i]))
    largest: Array = np.max(every, axis=0) if every else unbiased(variance, n, n, n)
    return largest


def _power_terms(form: Array, products: Array, power: int) -> Array:
    """Return the terms of a linear form's sum of squares or cubes."""
    # ``products`` are of as many of the numbers that it is made of
    multisets = combinations_with_replacement(range(form.shape[-1]), power)
    return np.stack(
        [
            len({*permutations(places)})
            * math.prod(form[..., j] for j in places)
            * products[..., i]
            for i, places in enumerate(multisets)
        ]
    )


def _delta_variance(gradient: Array, products: Array, n: Array, centre: Array) -> Array:
    """Return the sum of the units' squared influences, from products of centred contributions."""
    # An influence is gradient·(c + centre), c being centred; over a group the influences add up to
    # zero. So the sum of their squares is Σ (gradient·c)² − n (gradient·centre)².
    terms = _power_terms(gradient, products, 2)
    shift = n * (gradient @ centre) ** 2
    variance = terms.sum(axis=0) - shift
    return np.where(variance <= _ROUNDING * (np.abs(terms).sum(axis=0) + shift), 0.0, variance)


def _third_cumulant(
    gradient: Array, triples: Array, products: Array, n: Array, centre: Array
) -> Array:
    """Return the sum of the units' cubed influences, from products of centred contributions."""
    # Influences gradient·c + s, s being gradient·centre, add up to zero over a group. So the sum of
    # their cubes is Σ (gradient·c)³ + 3s·Σ (gradient·c)² − 2n·s³.
    shift = gradient @ centre
    squares = _power_terms(gradient, products, 2).sum(axis=0)
    cubes = _power_terms(gradient, triples, 3).sum(axis=0)
    return np.asarray(cubes + 3 * shift * squares - 2 * n * shift**3)
