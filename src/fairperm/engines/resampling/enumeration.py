"""Every permutation of a table of counts, with its probability.

Group A's counts under a permutation are independent binomials given their total, so the
weight of a table is a product with one factor for each cell. Factors come from the ratios of
neighbouring counts, which stay accurate for any population, and are normalized at the end.

Only tables in the far tails are skipped: by Bernstein's inequality (which by Hoeffding's
comparison with sampling with replacement holds without replacement) their probability is less
than 10⁻²⁰ of that of the observed table, which every p-value contains. No reported digit depends
on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairperm._utils.arrays import Array, Integers, Places
from fairperm.engines.sample import Cells

_SKIPPED = math.log(1e-20)
POINTS_PER_DRAW = 4  # tables that can be enumerated in the time of one random draw
_MAX_CELLS = 64
_STEPS_PER_DRAW = 100  # multiply-adds of a convolution in the time of one random draw


@dataclass(frozen=True, slots=True)
class _Block:
    """The labels exchanged among some cells of one stratum."""

    stratum: int
    cells: Places
    totals: list[int]
    size: int
    low: list[int]
    high: list[int]

    @property
    def free(self) -> list[int]:
        """Return all cells but the one with the widest range, which the rest determine."""
        widest = max(range(len(self.totals)), key=lambda c: self.high[c] - self.low[c])
        return [c for c in range(len(self.totals)) if c != widest]

    @property
    def n_points(self) -> int:
        return math.prod(self.high[c] - self.low[c] + 1 for c in self.free)

    def points(self) -> tuple[Integers, Array]:
        """Return every way to draw ``size`` rows, and the logarithms of their weights."""
        free = self.free
        axes = [np.arange(self.low[c], self.high[c] + 1) for c in free]
        points = np.empty((self.n_points, len(self.totals)), np.int64)
        for c, grid in zip(free, np.meshgrid(*axes, indexing="ij"), strict=True):
            points[:, c] = grid.ravel()
        (rest,) = set(range(len(self.totals))) - set(free)
        points[:, rest] = self.size - points[:, free].sum(axis=1)
        points = points[(points[:, rest] >= self.low[rest]) & (points[:, rest] <= self.high[rest])]
        share = self.size / max(1, sum(self.totals))
        log_weights = np.zeros(len(points))
        for c, total in enumerate(self.totals):
            factors = _log_binomial(total, share, self.low[c], self.high[c])
            log_weights += factors[points[:, c] - self.low[c]]
        return points, log_weights - _log_sum(log_weights)


def enumerate_permutations(
    sample: Cells, n_resamples: int, *, by_sum: bool
) -> tuple[Integers, Array] | None:
    """Return all tables and their log-probabilities, or None if drawing would be faster."""
    # with ``by_sum``, tables with equal row totals over the strata have equal statistics, as for
    # Mantel–Haenszel gaps: one table for each total is enough
    if _are_too_many(sample):
        return None
    blocks = _blocks(sample)
    moving = [block for block in blocks if block.n_points > 1]
    limit = POINTS_PER_DRAW * n_resamples
    if math.prod(block.n_points for block in moving) <= limit:
        parts = [block.points() for block in blocks]
        log_weights = np.zeros(1)
        for _, part in parts:
            log_weights = (log_weights[:, None] + part).ravel()
        # np.indices of all blocks would have an axis for each, and NumPy has no more than 64
        place, each = np.arange(len(log_weights)), len(log_weights)
        chosen = []
        for points, _ in parts:
            each //= len(points)
            chosen.append(points[place // each % len(points)])
        return _tables(sample, blocks, chosen), log_weights
    if by_sum and _convolution_steps(moving) <= _STEPS_PER_DRAW * n_resamples * len(moving):
        return _tables_by_sum(sample, blocks)
    return None


def _are_too_many(sample: Cells) -> bool:
    """Whether so many cells move that there are too many permutations."""
    # each moving cell but one at least doubles their number
    if len(sample.block) <= _MAX_CELLS:
        return False
    for cells in sample.blocks():
        counts = sample.counts[:, :, cells]
        moves = (counts.sum(axis=2) > 0).all(axis=1)  # both groups have rows in that stratum
        if ((counts.sum(axis=1) > 0).sum(axis=1)[moves] > _MAX_CELLS).any():
            return True
    return False


def _blocks(sample: Cells) -> list[_Block]:
    among = sample.blocks()
    groups = [(s, cells) for s in range(len(sample.counts)) for cells in among]
    tables = [sample.counts[s][:, cells] for s, cells in groups]
    log_observed = sum(_log_probability(table) for table in tables)
    tails = 2 * sum(len(cells) for _, cells in groups)
    log_tail = _SKIPPED + log_observed - math.log(tails)
    blocks = []
    for (s, cells), table in zip(groups, tables, strict=True):
        totals, size = table.sum(axis=0).tolist(), int(table[0].sum())
        population = sum(totals)
        ranges = [_range(population, total, size, log_tail) for total in totals]
        low, high = [r[0] for r in ranges], [r[1] for r in ranges]
        blocks.append(_Block(s, cells, totals, size, low, high))
    return blocks


def _log_probability(table: Integers) -> float:
    """Return roughly the log-probability of a table: it only decides where the tails end."""
    first, total = table[0].tolist(), table.sum(axis=0).tolist()
    ways = sum(_log_choose(n, k) for n, k in zip(total, first, strict=True))
    return ways - _log_choose(sum(total), sum(first))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _range(population: int, total: int, size: int, log_tail: float) -> tuple[int, int]:
    """Return the counts of a cell beyond which lies at most ``exp(log_tail)`` at either end."""
    low, high = max(0, size - (population - total)), min(total, size)
    if low == high:
        return low, high
    mean = size * total / population
    variance = min(mean * (1 - total / population), mean * (1 - size / population))
    third = -log_tail / 3
    reach = third + math.sqrt(third**2 - 2 * log_tail * variance)
    return max(low, math.floor(mean - reach)), min(high, math.ceil(mean + reach))


def _log_binomial(n: int, share: float, low: int, high: int) -> Array:
    """Return log of C(n, k)·share^k·(1−share)^(n−k) for k from low to high, minus the first."""
    if low == high:
        return np.zeros(1)
    k = np.arange(low, high, dtype=float)
    return np.concatenate([[0.0], np.cumsum(np.log((n - k) / (k + 1) * (share / (1 - share))))])


def _log_sum(log_weights: Array) -> float:
    highest = log_weights.max()
    return float(highest + np.log(np.exp(log_weights - highest).sum()))


def _tables(sample: Cells, blocks: list[_Block], points: list[Integers]) -> Integers:
    """Return whole tables of counts, from each block's counts of the first group."""
    totals = sample.counts.sum(axis=1)
    tables = np.empty((len(points[0]), *sample.counts.shape), np.int64)
    for block, first in zip(blocks, points, strict=True):
        tables[:, block.stratum, 0, block.cells] = first
        tables[:, block.stratum, 1, block.cells] = totals[block.stratum, block.cells] - first
    return tables


def _convolution_steps(blocks: list[_Block]) -> int:
    steps, width = 0, 1
    for block in blocks:
        steps += width * block.n_points
        width += block.n_points - 1
    return steps


def _tables_by_sum(sample: Cells, blocks: list[_Block]) -> tuple[Integers, Array]:
    """Return one table for each total over the strata of the first cell of the moving blocks."""
    # Its probability is the convolution of the strata's. Which table stands for a total does not
    # matter; the strata are filled up one after the other.
    weights = np.ones(1)
    supports = []
    for block in blocks:
        points, log_weights = block.points()
        order = np.argsort(points[:, 0])
        supports.append(points[order])
        weights = np.convolve(weights, np.exp(log_weights[order]))
    extra = np.arange(len(weights))
    chosen = []
    for support in supports:
        here = np.minimum(extra, len(support) - 1)
        chosen.append(support[here])
        extra = extra - here
    with np.errstate(divide="ignore"):
        return _tables(sample, blocks, chosen), np.log(weights)
