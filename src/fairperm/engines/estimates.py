"""Values, variances and gaps of a block of draws: one shape for every engine.

The observed sample is a block of one draw. That is what makes it impossible to forget to
recompute the standard error in a permutation.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairperm.inference.errors_by_gap import GapVariance
from fairperm.inference.null import drop_rounding
from fairperm.inference.skewness import remove_skewness, skewness

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairperm._utils.arrays import Array
    from fairperm.metrics.definition import Metric

Block = TypeVar("Block", "Estimates", "Gaps")

ZERO_GAP = 1e-12  # times the metric's size: a smaller gap without variance is a rounding error
_MIN_DRAWS_FOR_TIES = 20
_ROUNDING = 1e-9  # of an effective number of rows


@dataclass(frozen=True, slots=True)
class Estimates:
    """The estimates of a block of draws."""

    value: Array  # by part of the metric, draw, stratum and group; NaN where undefined
    variance: Array  # variance of each value, in the same shape
    size: Array  # denominator of each rate, or number of rows, in the same shape
    # third cumulant of each value, in the same shape; None if skewness stays in
    third: Array | None = None

    def each(self, change: Callable[[Array], Array]) -> Estimates:
        """Return the estimates with this done to each of the arrays."""
        return map_arrays(change, self)

    def gaps(self, weights: Array | None) -> Gaps:
        """Combine the strata, each by its share; a stratum of negative weight is subtracted."""
        share = self._shares(weights)
        used = np.abs(share) > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.where(used, share * (self.value[..., 0] - self.value[..., 1]), 0.0)
            variances = self._gap_variances(weights, share)
            error = np.sqrt(np.where(used, share**2 * variances, 0.0).sum(axis=-1))
        difference = np.where(used.any(axis=-1), gap.sum(axis=-1), np.nan)
        if self.third is None:
            return Gaps(difference.T, error.T)
        third = np.where(used, share**3 * (self.third[..., 0] - self.third[..., 1]), 0.0)
        return Gaps(difference.T, error.T, skewness(third.sum(axis=-1), error).T)

    def _gap_variances(self, weights: Array | None, share: Array) -> Array:
        """Return the variance of the gap in each stratum.

        It is that of both groups together. Strata that have none (a group has a single row there)
        have the variance between them, as matched pairs have; a single such stratum has none, and
        the standard error is undefined, as it is in a contrast of strata.
        """
        variance, used = over_groups(self.variance), np.abs(share) > 0
        gaps = self.value[..., 0] - self.value[..., 1]
        between = used & np.isnan(variance) & ~np.isnan(gaps)
        if self.value.shape[-2] == 1 or is_contrast(weights) or not between.any():
            return variance
        with np.errstate(divide="ignore", invalid="ignore"):
            among = np.where(between, share, 0.0)
            total = among.sum(axis=-1, keepdims=True)
            mean = np.where(between, share * gaps, 0.0).sum(axis=-1, keepdims=True) / total
            size = np.nanmax(np.abs(self.value), axis=(-2, -1), initial=0.0)[..., None]
            apart = np.where(np.abs(gaps - mean) <= ZERO_GAP * size, 0.0, gaps - mean)
            # over one minus the leverage, which makes it unbiased if all vary alike
            return np.where(between, apart**2 / (1 - among / total), variance)

    def known_variance(self, weights: Array | None) -> Array:
        """Return the observed variance by part and group, without that between strata."""
        share = self._shares(weights)[:, 0, :, None]
        with np.errstate(invalid="ignore"):
            return np.asarray(np.nansum(share**2 * self.variance[:, 0], axis=1))

    def widen(self, extra: Array, weights: Array | None) -> Estimates:
        """Return variances that are ``extra``, by part and group, larger over all strata."""
        # Half of the variance between strata is taken for that of each group. With more than two
        # groups it depends on the pair, and is not widened.
        share, variance = self._shares(weights), self.variance
        spread = np.nansum(share**2, axis=-1)[..., None, None]
        if variance.shape[-1] == 2:
            of_both = self._gap_variances(weights, share)[..., None]
            variance = np.where(np.isnan(over_groups(variance))[..., None], of_both / 2, variance)
        return replace(self, variance=variance + extra[:, None, None] / spread)

    def merge_strata(self) -> Estimates:
        """Return the rates of all strata together that have a gap, without variances."""
        sizes = np.where(self._shares(None)[..., None] > 0, self.size, 0.0)
        size = sizes.sum(axis=-2, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.nansum(self.value * sizes, axis=-2, keepdims=True) / size
        return Estimates(value, np.zeros_like(value), size)

    def mantel_haenszel_variances(self, part: int) -> tuple[GapVariance, ...]:
        """Return the variance of a rate's gap over strata in each draw; nothing for one stratum."""
        if self.value.shape[2] == 1:
            return ()
        value, size = np.nan_to_num(self.value[part]), self.size[part]
        return tuple(GapVariance.of(x, n) for x, n in zip(value * size, size, strict=True))

    def rate_reaches(
        self, parts: Sequence[Metric], quantile: float | Array, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """Return how far below and above the observed gap of rates an interval reaches.

        Newcombe's (1998) squares-and-adds of Wilson limits, with the permutation quantile in
        place of the normal one. Gap ± quantile·SE would miss the gap too often (6 to 8 % of the
        time at nominal 5 %, in groups of 40), and have no width at all for rates of 0 and 1. The
        squares of strata add up, each by the square of its share.
        """
        value, size = self.value[:, 0], self.size[:, 0]
        share = self._shares(weights)[:, 0]
        rate = np.stack([part.rate_of(one) for part, one in zip(parts, value, strict=True)])
        with np.errstate(divide="ignore", invalid="ignore"):
            shrink = 1 + quantile**2 / size
            centre = (rate + quantile**2 / (2 * size)) / shrink
            half = (
                quantile / shrink * np.sqrt(rate * (1 - rate) / size + quantile**2 / (4 * size**2))
            )
            low, high = (
                np.stack([part.of_rate(one) for part, one in zip(parts, limit, strict=True)])
                for limit in (centre - half, centre + half)
            )
            down, up = (value - low) ** 2, (high - value) ** 2
        squares = down[..., 0] + up[..., 1], up[..., 0] + down[..., 1]
        below, above = (
            np.sqrt(np.where(share > 0, share**2 * one, 0.0).sum(axis=-1)) for one in squares
        )
        return below, above

    def in_order(self, order: tuple[int, ...]) -> Estimates:
        """Return the groups in the user's order, given the user's groups in the present one."""
        if order == (0, 1):
            return self
        if order == (1, 0):
            return self.each(lambda array: array[..., ::-1])
        place = np.argsort(order)
        return self.each(lambda array: array[..., place])

    def standardized(self, weights: Array | None) -> tuple[Array, Array]:
        """Return values and variances of every group with the strata in the same shares."""
        share = self._shares(weights)[..., None]
        with np.errstate(invalid="ignore"):
            value = np.where(share > 0, share * self.value, 0.0).sum(axis=-2)
            variance = np.where(share > 0, share**2 * self.variance, 0.0).sum(axis=-2)
        return np.where((share > 0).any(axis=-2), value, np.nan), variance

    def side_values(self, weights: Array | None) -> Array:
        """Return by part, draw, side and group the values of the strata that make this side."""
        # strata of negative weight are the second side of a contrast; others have one side
        share = self._shares(weights)[..., None]
        with np.errstate(invalid="ignore"):
            sides = [
                np.where(sign * share > 0, share * self.value, 0.0).sum(axis=-2)
                for sign in ((1, -1) if is_contrast(weights) else (1,))
            ]
        return np.stack(sides, axis=-2)

    def _shares(self, weights: Array | None) -> Array:
        """Return the strata's shares: by weight, or by Mantel–Haenszel's m·m′/(m + m′)."""
        # That is 1/(1/m + 1/m′), which extends to more groups. Shares above 0 add up to 1.
        with np.errstate(divide="ignore", invalid="ignore"):
            if weights is None:
                weight = 1 / over_groups(1 / self.size)
            else:
                weight = np.broadcast_to(weights, self.variance.shape[:-1])
            share: Array = weight / np.maximum(weight, 0.0).sum(axis=-1, keepdims=True)
        return share


def is_contrast(weights: Array | None) -> bool:
    """Whether some strata are subtracted from others."""
    return weights is not None and bool((weights < 0).any())


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of a block of draws (axis 0) in the parts of a metric (axis 1).

    Their statistic is without their ``skewness``, if that is not None.
    """

    difference: Array
    standard_error: Array
    skewness: Array | None = None

    def studentized(self, scale: Array) -> Array:
        """Return the statistic of each draw: the studentized gap, or the largest of the parts."""
        ratio = self.ratios(scale)
        return ratio[:, 0] if ratio.shape[1] == 1 else np.abs(ratio).max(axis=1)

    def ratios(self, scale: Array) -> Array:
        """Return the gap of each draw and part over its standard error, without its skewness."""
        # Over a standard error of zero, no gap gives 0 and a gap ±∞. NaN where a gap is undefined.
        gap, error = self.difference, self.standard_error
        with np.errstate(divide="ignore", invalid="ignore"):
            nothing = (error == 0) & (np.abs(gap) <= ZERO_GAP * scale)
            ratio = np.where(nothing, 0.0, gap / error)
        return ratio if self.skewness is None else remove_skewness(ratio, self.skewness)

    def over(self, error: Array) -> Gaps:
        """Return the same gaps, all with this standard error, and with their skewness."""
        return Gaps(self.difference, np.broadcast_to(error, self.difference.shape))

    def drop_rounding(self, scale: Array) -> Gaps:
        """Return the gaps with zero in place of rounding errors of values of this size."""
        return replace(self, difference=drop_rounding(self.difference, scale))

    def first(self, n: int | None) -> Gaps:
        """Return the first ``n`` draws; all for None."""
        return map_arrays(lambda array: array[:n], self)

    def spread(self) -> Array:
        """Return the standard deviation of each part's gap among the defined draws."""
        return np.sqrt(variance_of_defined(self.difference.T))


def join_estimates(blocks: Sequence[Estimates]) -> Estimates:
    """Return one block of the draws of all blocks."""
    return map_arrays(lambda *arrays: np.concatenate(arrays, axis=1), *blocks)


def join_gaps(blocks: Sequence[Gaps]) -> Gaps:
    """Return one block of the gaps of all blocks."""
    return map_arrays(lambda *arrays: np.concatenate(arrays), *blocks)


def map_arrays(change: Callable[..., Array], *blocks: Block) -> Block:
    """Return a block whose every array is made of the blocks' arrays of its name."""
    found: dict[str, Any] = {}
    for one in fields(blocks[0]):
        arrays = [getattr(block, one.name) for block in blocks]
        found[one.name] = None if arrays[0] is None else change(*arrays)
    return replace(blocks[0], **found)


def over_groups(values: Array) -> Array:
    """Return the sum over the last axis, faster than NumPy does over an axis so short."""
    total: Array = values[..., 0]
    for group in range(1, values.shape[-1]):
        total = total + values[..., group]
    return total


def score_variance(part: Metric, numerator: Array, denominator: Array) -> Array:
    """Return the variance of each group's value where all groups (the last axis) share one rate."""
    # of several strata (the axis before) each has the variance of its permutations, as Mantel and
    # Haenszel's test: N/(N − 1) times as large, which matters where strata are small
    both = over_groups(denominator)
    p = over_groups(numerator) / both
    variance: Array = (part.slope(p) ** 2 * p * (1 - p))[..., None] / denominator
    if denominator.shape[-2] > 1:
        variance = variance * (both / (both - 1))[..., None]
    return variance


def unbiased(variance: Array, total: Array, squares: Array, cubes: Array) -> Array:
    """Return the variances of strata without the bias of few rows; undefined for a single one.

    ``total``, ``squares`` and ``cubes`` are Σw, Σw² and Σw³ of the weights of the rows that the
    variance is made of, or of the sizes of clusters. If all rows vary alike, the squared influences
    w²(x − x̄)² add up to Σw² − 2·Σw³/Σw + (Σw²)²/(Σw)² of their variance, where Σw² is due; m − 1
    and m for m equal weights. The strata lie on the axis before the last; one stratum keeps its
    variance.
    """
    if variance.shape[-2] == 1:
        return variance
    with np.errstate(divide="ignore", invalid="ignore"):
        shortened = squares - 2 * cubes / total + (squares / total) ** 2
        has_several = total**2 > (1 + _ROUNDING) * squares
        return np.where(has_several, variance * (squares / shortened), np.nan)


def largest_ties(values: Array) -> Array:
    """Return the share of the most common value among the defined ones along the last axis."""
    # it is 0 if they are too few to show it
    rows = values.reshape(-1, values.shape[-1])
    found = np.zeros(len(rows))
    for place, row in enumerate(rows):
        defined = np.sort(row[~np.isnan(row)])
        if len(defined) >= _MIN_DRAWS_FOR_TIES:
            is_new = np.diff(defined) > ZERO_GAP * np.abs(defined).max()
            starts = np.flatnonzero(np.concatenate([[True], is_new, [True]]))
            found[place] = np.diff(starts).max() / len(defined)
    return found.reshape(values.shape[:-1])


def variance_of_defined(values: Array) -> Array:
    """Return the variance of the defined values along the last axis; NaN if fewer than two."""
    defined = ~np.isnan(values)
    n = defined.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(defined, values, 0.0).sum(axis=-1) / n
        squares = np.where(defined, (values - mean[..., None]) ** 2, 0.0).sum(axis=-1)
        return np.where(n > 1, squares / (n - 1), np.nan)
