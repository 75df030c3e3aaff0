"""Random permutations and bootstrap samples of a table of counts, in seeded blocks.

Each block of draws has a random stream of its own, named by the block's number. How many
blocks run at once, on how many threads, changes no number.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fairperm import _options as options
from fairperm._progress import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairperm._sample import Cells

T = TypeVar("T")

BLOCK = 1024  # draws that share a random stream; another number would give other draws
_NUMPY_LIMIT = 10**9  # NumPy refuses to draw from populations of this size and larger

PERMUTATIONS, BOOTSTRAP, OBSERVED = range(3)  # what a random stream is for


def stream(seed: int, purpose: int, block: int = 0) -> np.random.Generator:
    """Return the random stream of one block."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, block)))
    )


@dataclass(frozen=True, slots=True)
class Resampling:
    """How many draws to make, from which seed, on how many threads."""

    n_resamples: int
    seed: int
    n_jobs: int
    progress: bool | None

    @classmethod
    def checked(
        cls, n_resamples: object, rng: object, n_jobs: object, progress: object
    ) -> Resampling:
        """Return the options of a public function, checked."""
        return cls(
            options.resamples(n_resamples),
            options.seed(rng),
            options.jobs(n_jobs),
            options.switch("progress", progress),
        )

    def in_blocks(self, task: Callable[[int, np.random.Generator], T], purpose: int) -> list[T]:
        """Run ``task(draws, rng)`` for every block of draws and return the results in order."""
        starts = range(0, self.n_resamples, BLOCK)
        sizes = [min(BLOCK, self.n_resamples - start) for start in starts]

        def run(block: int) -> T:
            return task(sizes[block], stream(self.seed, purpose, block))

        blocks = range(len(sizes))
        if self.n_jobs == 1 or len(sizes) == 1:
            return list(counted(map(run, blocks), len(sizes), self.progress))
        with ThreadPoolExecutor(min(self.n_jobs, len(sizes))) as pool:
            return list(counted(pool.map(run, blocks), len(sizes), self.progress))


def permute(sample: Cells, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return counts by draw, stratum, group and cell, labels exchanged inside each block."""
    counts = np.empty((draws, *sample.counts.shape), np.int64)
    totals = sample.counts.sum(axis=1)
    for s, stratum in enumerate(sample.counts):
        for cells in sample.blocks():
            first = random_subset(totals[s, cells], int(stratum[0, cells].sum()), draws, rng)
            counts[:, s, 0, cells] = first
            counts[:, s, 1, cells] = totals[s, cells] - first
    return counts


def random_subset(
    totals: NDArray[np.int64], size: int, draws: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Count by kind the units of uniformly random subsets: multivariate hypergeometric draws."""
    if len(totals) == 1:
        return np.full((draws, 1), size)
    if totals.sum() < _NUMPY_LIMIT:
        return rng.multivariate_hypergeometric(totals, size, draws, method="marginals")
    return thinned_subset(totals, size, draws, rng)


def thinned_subset(
    totals: NDArray[np.int64], size: int, draws: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the same from populations of any size, by Bernoulli thinning and exact correction.

    Keeping every unit with the same probability gives a subset that is uniform given its size.
    Where it came out too large, a uniformly random subset of it, as large as the surplus, goes
    back; where too small, a random subset of the rest joins. Each correction is again such a
    subset, about the square root of the size of the one before, so a few rounds suffice.
    """
    chosen = np.zeros((draws, len(totals)), np.int64)
    active = np.arange(draws)
    pool = np.tile(totals, (draws, 1))
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


def bootstrap(counts: NDArray[np.int64], draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Resample each table of counts with replacement; the draws' axis stands before the cells'."""
    n = counts.sum(axis=-1, keepdims=True)
    share = counts / np.maximum(n, 1)
    share[..., -1:] += n == 0  # no rows are drawn from an empty table, but shares must add to one
    return rng.multinomial(n, share[..., None, :], size=(*counts.shape[:-1], draws))


def bootstrap_sample(sample: Cells, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return counts by draw, stratum, group and cell, each group resampled within its strata."""
    return np.moveaxis(bootstrap(sample.counts, draws, rng), 2, 0)
