"""The counts engine: estimates from tables of counts, permuted, bootstrapped or enumerated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fairperm._utils import streams
from fairperm._utils.arrays import Array, Integers
from fairperm.engines.estimates import (
    Estimates,
    join_estimates,
    score_variance,
    unbiased,
    variance_of_defined,
)
from fairperm.engines.leave_one_out import leave_one_out_variance
from fairperm.engines.resampling import blocks, draws
from fairperm.engines.resampling.enumeration import enumerate_permutations
from fairperm.engines.sample import Cells
from fairperm.metrics.definition import Metric, Variance, by_part, is_of_totals
from fairperm.metrics.ranks import RankMetric

_NUMBERS_AT_ONCE = 1 << 22  # counts of draws held in memory
_ROUNDING = 1e-28  # a variance this small against the largest possible is zero but for rounding


@dataclass(frozen=True, slots=True)
class CellsEngine:
    """Estimates of a metric's parts in tables of counts, by draw, stratum, group and cell.

    A bootstrap variance takes ``n_bootstrap`` samples of each group in every draw. Ranks always
    come with the variance of their influences.
    """

    parts: tuple[Metric | RankMetric, ...]
    sample: Cells
    variance: Variance | None
    n_bootstrap: int = 0

    block_size = blocks.BLOCK
    label_key = None
    draw_error = 0.0

    @property
    def counts_per_draw(self) -> float:
        resamples = self.n_bootstrap if self.variance == Variance.BOOTSTRAP else 0
        return self.sample.counts.size * (1 + resamples)

    @property
    def weights(self) -> Array | None:
        return self.sample.weights

    @property
    def order(self) -> tuple[int, ...]:
        return self.sample.order

    def with_variance(self, variance: Variance | None) -> CellsEngine:
        return replace(self, variance=variance)

    def observed(self, seed: int = 0) -> Estimates:
        is_random = self.variance == Variance.BOOTSTRAP
        rng = streams.stream(seed, streams.OBSERVED) if is_random else None
        return self.estimates(self.sample.counts[None], rng)

    def permuted(self, n: int, rng: np.random.Generator) -> Estimates:
        return self._in_pieces(n, lambda m: draws.permute(self.sample, m, rng), rng)

    def bootstrapped(self, n: int, rng: np.random.Generator) -> Estimates:
        return self._in_pieces(n, lambda m: draws.bootstrap_sample(self.sample, m, rng), rng)

    def _in_pieces(
        self, n: int, drawn: Callable[[int], Integers], rng: np.random.Generator
    ) -> Estimates:
        """Return the estimates of ``n`` draws, made in pieces that fit into memory."""
        step = max(1, _NUMBERS_AT_ONCE // self.sample.counts.size)
        if n <= step or self.variance == Variance.BOOTSTRAP:  # it draws from the same stream
            return self.estimates(drawn(n), rng)
        sizes = blocks.split_draws(n, step)
        return join_estimates([self.estimates(drawn(size), rng) for size in sizes])

    def enumerated(self, n_resamples: int, *, by_sum: bool) -> tuple[Estimates, Array] | None:
        if self.variance is not None and not self.variance.is_closed_form:
            return None
        every = enumerate_permutations(self.sample, n_resamples, by_sum=by_sum)
        return None if every is None else (self.estimates(every[0]), every[1])

    def pooled(self) -> Estimates:
        counts = self.sample.counts.sum(axis=1, keepdims=True)
        return self._estimates(counts[None])

    def estimates(self, counts: Integers, rng: np.random.Generator | None = None) -> Estimates:
        """Return the estimates of any tables of this sample's cells."""
        # A bootstrap variance needs ``rng``, without which all variances are 0
        if len(self.order) == 2:  # a bootstrap variance resamples them in the engine's order
            return self._estimates(counts, rng).in_order(self.order)
        return self._estimates(counts[:, :, np.argsort(self.order)], rng)

    def _estimates(self, counts: Integers, rng: np.random.Generator | None = None) -> Estimates:
        """Return the estimates with the groups in the order of the counts."""
        if self.variance == Variance.BOOTSTRAP and rng is not None:
            return self._bootstrap_variance(counts, rng)
        floats = counts.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = [self._part(part, u, floats) for part, u in self._parts()]
        return Estimates(*(np.stack(arrays) for arrays in zip(*parts, strict=True)))

    def _part(self, part: Metric | RankMetric, u: Array, counts: Array) -> tuple[Array, ...]:
        """Return one part's value, its variance, size, and third cumulant if that is wanted."""
        if not is_of_totals(part):
            return *part.estimate(counts, u), counts.sum(axis=-1)
        total = _totals(counts, u)
        size = total[..., 1] if part.sizes_groups else counts.sum(axis=-1)
        if self.variance == Variance.HALL:
            influence = _totals(part.gradient(total), u.T)
            third = (counts * influence * influence**2).sum(axis=-1)
            variance = _sum_squares(part, influence, counts, total)
            return part.estimate(total), _unbiased(variance, part, u, counts), size, third
        return part.estimate(total), self._variance(part, u, counts, total), size

    def _variance(self, part: Metric, u: Array, counts: Array, total: Array) -> Array:
        if self.variance not in {Variance.SCORE, Variance.WALD, Variance.DELTA}:
            return np.zeros(counts.shape[:-1])
        if self.sample.are_sums:
            return leave_one_out_variance(part, u, counts, total)
        if self.variance == Variance.DELTA or not part.has_denominator:
            influence = _totals(part.gradient(total), u.T)
            return _unbiased(_sum_squares(part, influence, counts, total), part, u, counts)
        numerator, denominator = total[..., 0], total[..., 1]
        if self.variance == Variance.SCORE:
            return score_variance(part, numerator, denominator)
        p = numerator / denominator
        return unbiased(p * (1 - p) / denominator, denominator, denominator, denominator)

    def _parts(self) -> Iterator[tuple[Metric | RankMetric, Array]]:
        """Yield each part of the metric with its columns of the contributions."""
        for part, place in by_part(self.parts):
            yield part, self.sample.contributions[:, place]

    def _bootstrap_variance(self, counts: Integers, rng: np.random.Generator) -> Estimates:
        """Resample every group of every draw and take the variance of its values."""
        plain = replace(self, variance=None)
        estimates = plain._estimates(counts, rng)
        step = max(1, _NUMBERS_AT_ONCE // (self.n_bootstrap * counts[0].size))
        variance = np.empty_like(estimates.variance)
        for start in range(0, len(counts), step):
            resampled = draws.bootstrap(counts[start : start + step], self.n_bootstrap, rng)
            values = plain._estimates(np.moveaxis(resampled, -2, 1), rng).value
            variance[:, start : start + step] = variance_of_defined(np.moveaxis(values, 2, -1))
        floats = counts.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            corrected = [
                _unbiased(one, part, u, floats)
                for one, (part, u) in zip(variance, self._parts(), strict=True)
            ]
        return replace(estimates, variance=np.stack(corrected))


def _totals(counts: Array, contributions: Array) -> Array:
    """Return the totals of the contributions: one matrix product for any number of samples."""
    flat = counts.reshape(-1, counts.shape[-1]) @ contributions
    return flat.reshape(*counts.shape[:-1], contributions.shape[-1])


def _unbiased(variance: Array, part: Metric | RankMetric, u: Array, counts: Array) -> Array:
    """Return a part's variance without the bias of few rows; the base with the fewest decides."""
    # one stratum keeps its variance
    if counts.shape[-3] == 1:
        return variance
    if is_of_totals(part):
        base = u @ np.array([*part.bases().values()]).T
    else:
        base = np.stack([*part.label_rows(u).values()], axis=-1)
    if not base.any():
        base = np.ones((len(u), 1))
    sums = (np.moveaxis(_totals(counts, base**power), -1, 0) for power in (1, 2, 3))
    every = [unbiased(variance, *one) for one in zip(*sums, strict=True)]
    largest: Array = np.max(every, axis=0)
    return largest


def _sum_squares(part: Metric, influence: Array, counts: Array, total: Array) -> Array:
    """Return the delta-method variance: the sum of the rows' squared influences."""
    variance = (counts * influence**2).sum(axis=-1)
    # an unbounded value can itself be zero: its terms show its size
    span = part.span
    if not np.isfinite(span):
        span = np.abs(part.gradient(total) * total).sum(axis=-1)
    largest = span**2 * ((counts > 0) / np.maximum(counts, 1)).sum(axis=-1)
    return np.where(variance <= _ROUNDING * largest, 0.0, variance)
