"""Random draws of tables of counts: permutations and bootstrap samples.

Permuting labels changes only how many rows of each cell are in each group, so a permutation is a
multivariate hypergeometric draw, and a bootstrap sample a multinomial one.
"""

from __future__ import annotations

import numpy as np

from fairperm._utils.arrays import Integers
from fairperm.engines.sample import Cells

_NUMPY_LIMIT = 10**9  # NumPy refuses to draw from populations of this size and larger


def permute(sample: Cells, draws: int, rng: np.random.Generator) -> Integers:
    """Return counts by draw, stratum, group and cell, labels exchanged inside each block."""
    counts = np.empty((draws, *sample.counts.shape), np.int64)
    for s, stratum in enumerate(sample.counts):
        for cells in sample.blocks():
            left = stratum[:, cells].sum(axis=0)
            for g in range(len(stratum) - 1):
                drawn = random_subset(left, int(stratum[g, cells].sum()), draws, rng)
                counts[:, s, g, cells] = drawn
                left = left - drawn
            counts[:, s, -1, cells] = left
    return counts


def random_subset(totals: Integers, size: int, draws: int, rng: np.random.Generator) -> Integers:
    """Count by kind the units of uniformly random subsets: multivariate hypergeometric draws."""
    # the totals are those of one population, or of one for each draw
    if totals.shape[-1] == 1:
        return np.full((draws, 1), size)
    population = int(totals.sum(axis=-1).max())
    if population >= _NUMPY_LIMIT:
        return thinned_subset(totals, size, draws, rng)
    if totals.ndim == 1:
        return rng.multivariate_hypergeometric(totals, size, draws, method="marginals")
    return _subset_by_kind(totals, size, rng)


def _subset_by_kind(totals: Integers, size: int, rng: np.random.Generator) -> Integers:
    """Draw a subset of each of many populations, one kind after the other."""
    chosen = np.empty_like(totals)
    rest = totals.sum(axis=1)
    wanted = np.full(len(totals), size)
    for kind in range(totals.shape[1] - 1):
        rest = rest - totals[:, kind]
        chosen[:, kind] = rng.hypergeometric(totals[:, kind], rest, wanted)
        wanted = wanted - chosen[:, kind]
    chosen[:, -1] = wanted
    return chosen


def thinned_subset(totals: Integers, size: int, draws: int, rng: np.random.Generator) -> Integers:
    """Return such draws from populations of any size, by thinning and exact correction.

    Keeping every unit with the same probability gives a subset that is uniform given its size.
    Where it came out too large, a uniformly random subset of it, as large as the surplus, goes
    back; where too small, a random subset of the rest joins. Each correction is again such a
    subset, about the square root of the size of the one before, so a few rounds suffice.
    """
    pool = np.array(np.broadcast_to(totals, (draws, totals.shape[-1])))
    chosen = np.zeros_like(pool)
    active = np.arange(draws)
    wanted = np.full(draws, size)
    sign = np.ones(draws, np.int64)
    while active.size:
        kept = rng.binomial(pool, (wanted / pool.sum(axis=1))[:, None])
        chosen[active] += sign[:, None] * kept
        surplus = kept.sum(axis=1) - wanted
        pool = np.where(surplus[:, None] > 0, kept, pool - kept)
        sign = np.where(surplus > 0, -sign, sign)
        wanted = np.abs(surplus)
        unfinished = wanted > 0
        active, pool = active[unfinished], pool[unfinished]
        wanted, sign = wanted[unfinished], sign[unfinished]
    return chosen


def bootstrap(counts: Integers, draws: int, rng: np.random.Generator) -> Integers:
    """Resample each table of counts with replacement; the draws' axis stands before the cells'."""
    n = counts.sum(axis=-1, keepdims=True)
    share = counts / np.maximum(n, 1)
    share[..., -1:] += n == 0  # no rows are drawn from an empty table, but shares must add to one
    return rng.multinomial(n, share[..., None, :], size=(*counts.shape[:-1], draws))


def bootstrap_sample(sample: Cells, draws: int, rng: np.random.Generator) -> Integers:
    """Return counts by draw, stratum, group and cell, each group resampled within its strata."""
    return np.moveaxis(bootstrap(sample.counts, draws, rng), 2, 0)
