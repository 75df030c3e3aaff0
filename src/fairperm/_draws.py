"""Random permutations and bootstrap samples of a table of counts, in seeded blocks.

Each block of draws has a random stream of its own, named by the block's number. How many
blocks run at once, on how many threads or processes, changes no number.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fairperm import _options as options
from fairperm._broadcast import sent_once
from fairperm._progress import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from numpy.typing import NDArray

    from fairperm._sample import Cells

T = TypeVar("T")

BLOCK = 1024  # draws that share a random stream; another number would give other draws
_NUMPY_LIMIT = 10**9  # NumPy refuses to draw from populations of this size and larger
_QUICK = 0.1  # seconds of work after which, at the latest, Ctrl-C should be heard
_FEW = 1 << 16  # counts that are drawn in less time than that

PERMUTATIONS, BOOTSTRAP, OBSERVED, MAX_T, SAMPLE = range(5)  # what a random stream is for


def stream(seed: int, purpose: int, block: int = 0) -> np.random.Generator:
    """Return the random stream of one block."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, block)))
    )


def block_of(rng: np.random.Generator) -> int:
    """Return the number of the block that a random stream is for."""
    return int(rng.bit_generator.seed_seq.spawn_key[1])  # type: ignore[attr-defined]


def pieces(n: int, size: int) -> list[int]:
    """Return a number of draws in pieces of this size, the last of what is left."""
    return [min(size, n - start) for start in range(0, n, size)]


@dataclass(frozen=True, slots=True)
class Resampling:
    """How many draws to make, from which seed, on how many threads or processes."""

    n_resamples: int
    seed: int
    n_jobs: int | None
    progress: bool | None

    @classmethod
    def checked(
        cls, n_resamples: object, rng: object, n_jobs: object, progress: object, least: int = 1
    ) -> Resampling:
        """Return the options of a public function, checked; ``least`` 0 allows for no draws."""
        options.jobs(n_jobs)
        return cls(
            options.resamples(n_resamples, least),
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
        counts: float = math.inf,
    ) -> list[T]:
        """Run ``task(draws, rng)`` for every block of draws and return the results in order.

        Our own kernels run in threads. What runs a user's function goes through joblib: to
        processes, or to wherever ``joblib.parallel_config`` says. ``counts`` says of how many
        counts a draw is made, if it is made of them: few take less time than to start a thread.
        """
        sizes = pieces(self.n_resamples, size)
        blocks = range(len(sizes))
        run = partial(_run_block, task, sizes, self.seed, purpose)
        if through_joblib:
            results = _through_joblib(run, blocks, self.n_jobs)
        else:
            threads = min(options.jobs(self.n_jobs), len(sizes))
            are_few = threads == 1 and counts * sizes[0] <= _FEW
            results = _in_turn(run, blocks) if are_few else _in_threads(run, blocks, threads)
        with closing(results):  # on Ctrl-C, too, start no other block
            return list(counted(results, len(sizes), self.progress))


def _run_block(
    task: Callable[[int, np.random.Generator], T],
    sizes: Sequence[int],
    seed: int,
    purpose: int,
    block: int,
) -> T:
    return task(sizes[block], stream(seed, purpose, block))


def _through_joblib(
    run: Callable[[int], T], blocks: Sequence[int], n_jobs: int | None
) -> Generator[T]:
    """Run the blocks by joblib's backend; results come one by one if it can do that."""
    from joblib import Parallel, delayed

    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # multiprocessing and Spark return all results at once
        parallel = Parallel(n_jobs=n_jobs)
    with sent_once(run) as sent:
        yield from parallel(delayed(sent)(block) for block in blocks)


def _in_turn(run: Callable[[int], T], blocks: Sequence[int]) -> Generator[T]:
    """Run the blocks here, one after the other; Ctrl-C is heard between them."""
    yield from map(run, blocks)


def _in_threads(run: Callable[[int], T], blocks: Sequence[int], threads: int) -> Generator[T]:
    """Run the blocks on threads of our own and yield the results in order.

    Compiled code does not hear Ctrl-C. So the caller's thread only waits, and leaves the blocks
    under way to themselves when it hears it; the threads being daemons, Python does not wait for
    them either when it exits. Of one thread's blocks, only the first runs so if it is quick.
    """
    if threads == 1 and len(blocks) > 1:
        started = time.monotonic()
        yield from _in_threads(run, blocks[:1], 1)
        blocks = blocks[1:]
        if time.monotonic() - started < _QUICK:
            yield from _in_turn(run, blocks)
            return
    left, lock, stopped = iter(blocks), Lock(), Event()
    done: SimpleQueue[tuple[int, Future[T]]] = SimpleQueue()

    def work() -> None:
        while not stopped.is_set():
            with lock:
                block = next(left, None)
            if block is None:
                return
            result: Future[T] = Future()
            try:
                result.set_result(run(block))
            except BaseException as error:  # raised again by whoever asks for the result
                result.set_exception(error)
            done.put((block, result))

    early: dict[int, Future[T]] = {}
    try:
        for _ in range(threads):
            Thread(target=work, daemon=True).start()
        for block in blocks:
            while block not in early:
                try:
                    number, result = done.get(timeout=_QUICK)  # on Windows, deaf while it waits
                except Empty:
                    continue
                early[number] = result
            yield early.pop(block).result()
    finally:
        stopped.set()


def permute(sample: Cells, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
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


def random_subset(
    totals: NDArray[np.int64], size: int, draws: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Count by kind the units of uniformly random subsets: multivariate hypergeometric draws.

    The totals are those of one population, or of one for each draw.
    """
    if totals.shape[-1] == 1:
        return np.full((draws, 1), size)
    population = int(totals.sum(axis=-1).max())
    if population >= _NUMPY_LIMIT:
        return thinned_subset(totals, size, draws, rng)
    if totals.ndim == 1:
        return rng.multivariate_hypergeometric(totals, size, draws, method="marginals")
    return _subset_by_kind(totals, size, rng)


def _subset_by_kind(
    totals: NDArray[np.int64], size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a subset of each of many populations, one kind after the other."""
    chosen = np.empty_like(totals)
    others = totals.sum(axis=1)
    wanted = np.full(len(totals), size)
    for kind in range(totals.shape[1] - 1):
        others = others - totals[:, kind]
        chosen[:, kind] = rng.hypergeometric(totals[:, kind], others, wanted)
        wanted = wanted - chosen[:, kind]
    chosen[:, -1] = wanted
    return chosen


def thinned_subset(
    totals: NDArray[np.int64], size: int, draws: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the same from populations of any size, by Bernoulli thinning and exact correction.

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


def bootstrap(counts: NDArray[np.int64], draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Resample each table of counts with replacement; the draws' axis stands before the cells'."""
    n = counts.sum(axis=-1, keepdims=True)
    share = counts / np.maximum(n, 1)
    share[..., -1:] += n == 0  # no rows are drawn from an empty table, but shares must add to one
    return rng.multinomial(n, share[..., None, :], size=(*counts.shape[:-1], draws))


def bootstrap_sample(sample: Cells, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return counts by draw, stratum, group and cell, each group resampled within its strata."""
    return np.moveaxis(bootstrap(sample.counts, draws, rng), 2, 0)
