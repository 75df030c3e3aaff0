"""Variances of weighted rows and of clusters: squared leave-one-out influences.

A unit with most of its group's weight makes the group's value and shows no spread: its influence on
the value is near 0. What the value would be without the unit shows it. Let a value be unchanged by
a common factor of its totals U, as a ratio is, and let a unit add u to them and b to their base B,
the number of rows that the value rests on. Without the unit the totals are U − u, and their means
(U − u)/(B − b) are U/B − (u − b·U/B)/(B − b). To the first order the value falls by

    ψ = gradient·u / (1 − b/B),

since gradient·U = 0. For a ratio to its base (a weighted mean, a rate) that is exact. The sum of ψ²
over the n units times (n − 1)/n is then the jackknife's variance; of equal rows, s²/n. A value that
is a sum of ratios to several bases has the sum of these ψ, each with its own share of the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.arrays import Array, Integers, Places
from fairperm.engines.moments import Moments
from fairperm.metrics.definition import Metric, by_part

if TYPE_CHECKING:
    from fairperm.engines.kernels.totals import Terms

_ZERO_SUM = 1e-12  # of the sum of its terms' sizes: a smaller sum is a rounding error
_ROUNDING = 1e-14  # a standard error this small against its own terms is zero but for rounding


def list_bases(part: Metric) -> Iterator[tuple[Places, Array]]:
    """Yield the contributions that belong to each base, and what makes the base of them.

    Coefficients of 0 alone stand for the number of units.
    """
    of_each = part.base_of_contributions()
    for place, coefficients in enumerate(part.bases().values()):
        yield np.flatnonzero(of_each == place), coefficients


def leave_one_out_variance(part: Metric, u: Array, counts: Array, total: Array) -> Array:
    """Return the variance of a part, given how many units there are of each kind (last axis).

    It is undefined where a single unit has all of a base.
    """
    gradient = part.gradient(total)
    influence = np.zeros(np.broadcast_shapes(counts.shape, (*total.shape[:-1], len(u))))
    for members, coefficients in list_bases(part):
        base = u @ coefficients if coefficients.any() else np.ones(len(u))
        whole, n = counts @ base, counts @ (base != 0)
        along = gradient[..., members] @ u[:, members].T
        influence += shrink(n)[..., None] * along / (1 - base / whole[..., None])
    variance = np.where(counts > 0, counts * influence**2, 0.0).sum(axis=-1)
    return drop_rounding(variance, gradient, counts @ u**2)


def influences_through_bases(part: Metric, totals: Array, u: Array, cell: Places) -> list[Array]:
    """Return by base what each unit has of gradient·u, of the totals of its cell.

    Rounding errors are 0.
    """
    gradient, found = part.gradient(totals), []
    for members, _ in list_bases(part):
        along = gradient[:, members][cell] * u[:, members]
        total, size = along.sum(axis=1), np.abs(along).sum(axis=1)
        found.append(np.where(np.abs(total) <= _ZERO_SUM * size, 0.0, total))
    return found


def drop_rounding(variance: Array, gradient: Array, squares: Array) -> Array:
    """Return the variances, with 0 in place of rounding errors of influences of this gradient.

    ``squares`` are sums of the squared contributions. By Cauchy and Schwarz, the squared terms of
    an influence of k contributions add up to at most k times the sum of the terms' squares.
    """
    terms = gradient.shape[-1] * (gradient**2 * squares).sum(axis=-1)
    return np.where(variance <= _ROUNDING**2 * terms, 0.0, variance)


def shrink(n: Array) -> Array:
    """Return the root of (n − 1)/n; not a number for a single unit."""
    return np.sqrt(np.where(n > 1, (n - 1) / n, np.nan))


@dataclass(frozen=True, slots=True)
class PartOfUnits:
    """What the leave-one-out influences on one part of a metric are made of, for every unit."""

    part: Metric
    place: slice  # of its contributions among those of all parts
    bases: Array  # what units add to each base, by base and unit
    coefficients: Array  # by which the part's contributions add up to each base
    # the columns of ``LeaveOneOut.counted`` that count the units of each base; −1 if all have it
    counted: tuple[int, ...]
    members: tuple[Places, ...]  # the contributions that belong to each base
    # where their moving columns are among those of the moments, and where each base's start
    columns: Integers
    starts: Integers
    squares: Array  # sums of the squared contributions


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """The parts of a metric of weighted rows or clusters, and who has the bases that not all have.

    ``counted`` has a column of ones and zeros for each of these bases.
    """

    parts: tuple[PartOfUnits, ...]
    moments: Moments
    counted: Array

    @classmethod
    def of(cls, moments: Moments, contributions: Array, order: Places) -> LeaveOneOut:
        """Return those of units in this order, which is that of the moments."""
        found: list[PartOfUnits] = []
        counted: list[Array] = []
        at = {place: column for column, place in enumerate(moments.moving.tolist())}
        for part, place in by_part(moments.parts):
            mine, columns, starts, bases, counts = contributions[order, place], [], [0], [], []
            every = tuple(list_bases(part))
            for members, coefficients in every:
                base = mine @ coefficients if coefficients.any() else np.ones(len(mine))
                bases.append(base)
                counts.append(-1 if base.all() else len(counted))
                if not base.all():
                    counted.append((base != 0).astype(np.float64))
                columns += [at[j] for j in (place.start + members).tolist() if j in at]
                starts.append(len(columns))
            one = PartOfUnits(
                part=part,
                place=place,
                bases=np.array(bases),
                coefficients=np.array([coefficients for _, coefficients in every]),
                counted=tuple(counts),
                members=tuple(members for members, _ in every),
                columns=np.array(columns, np.int64),
                starts=np.array(starts),
                squares=(mine**2).sum(axis=0),
            )
            found.append(one)
        return cls(tuple(found), moments, np.reshape(counted, (len(counted), len(order))).T)

    def lines(self, part: PartOfUnits, totals: Array, sizes: Array, counts: Array) -> Array:
        """Return what turns a unit's contributions into its influence, on the first axis.

        A base has its share (1/B), an intercept and the slopes of its moving contributions. Other
        axes are those of ``sizes``, with draws before them; ``counts`` are totals of ``counted``.
        """
        whole = self.moments.whole(totals, sizes)[..., part.place]
        gradient = self.moments.gradient(part.part, part.place, whole)
        centre = self.moments.centre[part.place]
        moves = np.isin(np.arange(len(centre)) + part.place.start, self.moments.moving)
        found = []
        for members, coefficients, column in zip(
            part.members, part.coefficients, part.counted, strict=True
        ):
            n = np.broadcast_to(sizes, whole.shape[:-1]) if column < 0 else counts[..., column]
            base = whole @ coefficients if coefficients.any() else n
            own = shrink(n)[..., None] * gradient[..., members]
            slopes = own[..., moves[members]]
            found += [1 / base, own @ centre[members], *np.moveaxis(slopes, -1, 0)]
        return np.stack(found)

    def variances(
        self,
        totals: Array,
        sizes: Array,
        counts: Array,
        stratum_starts: Integers,
        square: Callable[[Terms, Array], Array],
    ) -> Array:
        """Return the variance of every part; ``square`` adds up the squares of units' influences.

        It is given what influences are made of, and lines by draw, stratum and group.
        """
        from fairperm.engines.kernels.totals import Terms

        found = []
        for part in self.parts:
            with np.errstate(divide="ignore", invalid="ignore"):
                lines = self.lines(part, totals, sizes, counts)
                terms = Terms(
                    self.moments.columns.T, part.bases, part.columns, part.starts, stratum_starts
                )
                whole = self.moments.whole(totals, sizes)[..., part.place]
                gradient = part.part.gradient(whole)
                found.append(drop_rounding(square(terms, lines), gradient, part.squares))
        return np.stack(found)
