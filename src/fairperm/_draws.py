"""Random permutations and bootstrap samples of a table of counts, in seeded blocks.

Each block of draws has a random stream of its own, named by the block's number. How many
blocks run at once, on how many threads or processes, changes no number.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fairperm import _options as options
from fairperm._progress import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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


def block_of(rng: np.random.Generator) -> int:
    """Return the number of the block that a random stream is for."""
    return int(rng.bit_generator.seed_seq.spawn_key[1])  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Resampling:
    """How many draws to make, from which seed, on how many threads or processes."""

    n_resamples: int
    seed: int
    n_jobs: int | None
    progress: bool | None

    @classmethod
    def checked(
        cls, n_resamples: object, rng: object, n_jobs: object, progress: object
    ) -> Resampling:
        """Return the options of a public function, checked."""
        options.jobs(n_jobs)
        return cls(
            options.resamples(n_resamples),
            options.seed(rng),
            n_jobs,  # type: ignore[arg-type]  # as it came: None and -1 have a meaning to joblib
            options.switch("progress", progress),
        )

    def in_blocks(
        self,
        task: Callable[[int, np.random.Generator], T],
        purpose: int,
        size: int = BLOCK,
        *,
        through_joblib: bool = False,
    ) -> list[T]:
        """Run ``task(draws, rng)`` for every block of draws and return the results in order.

        Our own kernels run in threads. What runs a user's function goes through joblib: to
        processes, or to wherever ``joblib.parallel_config`` says.
        """
        starts = range(0, self.n_resamples, size)
        sizes = [min(size, self.n_resamples - start) for start in starts]

        blocks = range(len(sizes))
        run = partial(_run_block, task, sizes, self.seed, purpose)
        if through_joblib:
            results = _through_joblib(run, blocks, self.n_jobs)
            return list(counted(results, len(sizes), self.progress))
        threads = min(options.jobs(self.n_jobs), len(sizes))
        if threads == 1:
            return list(counted(map(run, blocks), len(sizes), self.progress))
        pool = ThreadPoolExecutor(threads)
        try:
            return list(counted(pool.map(run, blocks), len(sizes), self.progress))
        finally:  # on Ctrl-C, wait for the blocks under way but not for those that are not
            pool.shutdown(cancel_futures=True)


def _run_block(
    task: Callable[[int, np.random.Generator], T],
    sizes: Sequence[int],
    seed: int,
    purpose: int,
    block: int,
) -> T:
    return task(sizes[block], stream(seed, purpose, block))


def _through_joblib(
    run: Callable[[int], T], blocks: Iterable[int], n_jobs: int | None
) -> Iterable[T]:
    """Run the blocks by joblib's backend; results come one by one if it can do that."""
    from joblib import Parallel, delayed

    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # multiprocessing and Spark return all results at once
        parallel = Parallel(n_jobs=n_jobs)
    results: Iterable[T] = parallel(delayed(run)(block) for block in blocks)
    return results


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
