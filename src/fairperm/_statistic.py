"""The studentized gap: one function for the observed sample and for every draw.

Counts have a leading axis of draws, and the observed sample is a block of one draw. That is
what makes it impossible to forget to recompute the standard error in a permutation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm._draws import bootstrap
from fairperm._metric import totals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fairperm._metric import AnyMetric, Metric
    from fairperm._sample import Cells

    Array = NDArray[np.float64]

_CLOSED_FORMS = ("score", "wald", "delta")
_ZERO_GAP = 1e-12  # of the metric's size: a smaller gap over no variance is rounding
_NUMBERS_AT_ONCE = 1 << 21  # of a nested bootstrap held in memory


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of a block of draws (axis 0) in the parts of a metric (axis 1)."""

    difference: Array
    standard_error: Array

    def studentized(self, scale: Array) -> Array:
        """Return the statistic of each draw: the gap over its error, the largest of the parts.

        No error and no gap make 0, no error and a gap ±∞. NaN where a gap is undefined.
        """
        gap, error = self.difference, self.standard_error
        with np.errstate(divide="ignore", invalid="ignore"):
            nothing = (error == 0) & (np.abs(gap) <= _ZERO_GAP * scale)
            ratio = np.where(nothing, 0.0, gap / error)
        return ratio[:, 0] if ratio.shape[1] == 1 else np.abs(ratio).max(axis=1)

    def over(self, error: Array) -> Gaps:
        """Return the same gaps, all with this standard error."""
        return Gaps(self.difference, np.broadcast_to(error, self.difference.shape))

    def spread(self) -> Array:
        """Return the standard deviation of each part's gap among the defined draws."""
        return np.sqrt(_variance(self.difference.T))


@dataclass(frozen=True, slots=True)
class GapStatistic:
    """Gaps between the two groups of a sample, with the standard error asked for.

    ``variance`` is "score", "wald", "delta", "bootstrap" (with ``n_bootstrap`` resamples of each
    group in every draw), or else an error of one, which leaves the gap as it is.
    """

    metric: AnyMetric
    sample: Cells
    variance: str | None
    n_bootstrap: int = 0

    def with_variance(self, variance: str | None) -> GapStatistic:
        """Return the same statistic with another standard error."""
        return replace(self, variance=variance)

    def values(self, counts: NDArray[np.int64]) -> Array:
        """Return each part's value by draw, stratum and group, parts first."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([part.estimate(counts.astype(float), u) for part, u in self._parts()])

    def __call__(self, counts: NDArray[np.int64], rng: np.random.Generator) -> Gaps:
        """Return the gaps of each draw; ``counts`` is by draw, stratum, group and cell."""
        if self.variance == "bootstrap":
            return self._bootstrapped(counts, rng)
        floats = counts.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = [self._variance(part, u, floats) for part, u in self._parts()]
            gaps = self._gaps(floats, variances)
        return gaps if self.variance in _CLOSED_FORMS else gaps.over(np.ones(1))

    def _gaps(self, counts: Array, variances: list[Array]) -> Gaps:
        """Combine the strata's gaps and variances, each by the square of its weight."""
        gaps, errors = [], []
        for (part, u), variance in zip(self._parts(), variances, strict=True):
            value = part.estimate(counts, u)
            weight = self._weights(part, u, counts)
            used = weight > 0
            gap = value[..., 0] - value[..., 1]
            gaps.append(self.sample.sign * np.where(used, weight * gap, 0.0).sum(axis=-1))
            errors.append(np.sqrt(np.where(used, weight**2 * variance, 0.0).sum(axis=-1)))
            undefined = ~used.any(axis=-1)
            gaps[-1][undefined] = np.nan
        return Gaps(np.array(gaps).T, np.array(errors).T)

    def _parts(self) -> Iterator[tuple[Metric, Array]]:
        """Yield each part of the metric with its columns of the contributions."""
        start = 0
        for part in self.metric.parts:
            stop = start + len(part.contributions)
            yield part, self.sample.contributions[:, start:stop]
            start = stop

    def _weights(self, part: Metric, u: Array, counts: Array) -> Array:
        """Return each stratum's share: the user's, or m_A·m_B/(m_A + m_B) as Mantel–Haenszel."""
        if self.sample.weights is not None:
            weight = np.broadcast_to(self.sample.weights, counts.shape[:-2])
        else:
            size = totals(counts, u)[..., 1] if part.is_rate else counts.sum(axis=-1)
            weight = size[..., 0] * size[..., 1] / _over_groups(size)
            weight = np.where(weight > 0, weight, 0.0)  # a stratum without rows has 0/0
        share: Array = weight / weight.sum(axis=-1, keepdims=True)
        return share

    def _variance(self, part: Metric, u: Array, counts: Array) -> Array:
        """Return the variance of each stratum's gap."""
        if self.variance not in _CLOSED_FORMS:
            return np.zeros(counts.shape[:-2])
        if self.variance == "delta":
            return _over_groups(part.delta_variance(counts, u))
        total = totals(counts, u)
        numerator, denominator = total[..., 0], total[..., 1]
        if self.variance == "score":
            p = _over_groups(numerator) / _over_groups(denominator)
            return p * (1 - p) * _over_groups(1 / denominator)
        p = numerator / denominator
        return _over_groups(p * (1 - p) / denominator)

    def _bootstrapped(self, counts: NDArray[np.int64], rng: np.random.Generator) -> Gaps:
        """Resample every group of every draw and take the variance of its values."""
        step = max(1, _NUMBERS_AT_ONCE // (self.n_bootstrap * counts[0].size))
        blocks = []
        for start in range(0, len(counts), step):
            block = counts[start : start + step]
            values = self.values(bootstrap(block, self.n_bootstrap, rng))
            variances = list(_over_groups(_variance(values)))
            with np.errstate(divide="ignore", invalid="ignore"):
                blocks.append(self._gaps(block.astype(float), variances))
        return concatenate(blocks)


def concatenate(blocks: list[Gaps]) -> Gaps:
    """Return the draws of all blocks as one."""
    return Gaps(
        np.concatenate([block.difference for block in blocks]),
        np.concatenate([block.standard_error for block in blocks]),
    )


def _over_groups(values: Array) -> Array:
    total: Array = values[..., 0] + values[..., 1]  # much faster than a sum over so short an axis
    return total


def _variance(values: Array) -> Array:
    """Return the variance over the last axis among defined values; NaN if fewer than two."""
    defined = ~np.isnan(values)
    n = defined.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(defined, values, 0.0).sum(axis=-1) / n
        squares = np.where(defined, (values - mean[..., None]) ** 2, 0.0).sum(axis=-1)
        return np.where(n > 1, squares / (n - 1), np.nan)
