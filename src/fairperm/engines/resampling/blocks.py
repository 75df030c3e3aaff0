"""Blocks of draws: how the draws of a test are seeded, and where they run.

Each block has a random stream of its own, named by the block's number. So neither the number of
blocks that run at once nor the place where they run changes a result:

- compiled kernels run on threads, while the caller's thread waits and can be interrupted;
- a user's function runs in joblib's processes, or wherever joblib's active backend sends it;
  without joblib, in the caller's thread;
- draws so cheap that starting a thread would take longer run in the caller's thread.
"""

from __future__ import annotations

import ctypes
import math
import time
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from fairperm._utils import checks
from fairperm._utils.progress import show_progress
from fairperm._utils.streams import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    import numpy as np

T = TypeVar("T")

BLOCK = 1024  # draws that share a random stream; another number would give other draws
_MAX_DELAY_OF_CTRL_C_S = 0.1  # seconds of work after which, at the latest, Ctrl-C must be handled
_FEW = 1 << 16  # counts that are drawn in less time
_MORE = 8  # where draws may stop early, an eighth as many more are made at a time


def split_draws(n: int, size: int) -> list[int]:
    """Return the sizes of the blocks that ``n`` draws are made in, the last perhaps smaller."""
    return [min(size, n - start) for start in range(0, n, size)]


@dataclass(frozen=True, slots=True)
class Stop(Generic[T]):
    """Draws that suffice: at least so many, and until the results of their blocks are enough."""

    min_draws: int
    is_enough: Callable[[list[T]], bool]


@dataclass(frozen=True, slots=True)
class Resampling:
    """The number of draws, their seed, and the number of threads or processes.

    Draws may stop early if ``min_draws`` is a number, but not before so many, nor before as many as
    the test itself needs.
    """

    n_resamples: int
    seed: int
    n_jobs: int | None
    progress: bool | None
    min_draws: int | None = None

    @property
    def stops_early(self) -> bool:
        """Whether draws stop once the answer is clear."""
        return self.min_draws is not None

    def run_blocks(
        self,
        task: Callable[[int, np.random.Generator], T],
        purpose: int,
        size: int = BLOCK,
        *,
        through_joblib: bool = False,
        counts: float = math.inf,
        stop: Stop[T] | None = None,
    ) -> list[T]:
        """Run ``task(draws, rng)`` for every block of draws and return the results in order.

        Tasks that call a user's function run ``through_joblib``, where
        ``joblib.parallel_config`` says. ``counts`` is the number of counts in one draw, if it is
        made of counts: a few take less time than starting a thread. With ``stop``, no more blocks
        are run than it needs, but for some that were begun in parallel.
        """
        sizes = split_draws(self.n_resamples, size)
        run = partial(_run_block, task, sizes, self.seed, purpose)

        def run_some(blocks: range) -> Generator[T]:
            if through_joblib:
                return _run_through_joblib(run, blocks, self.n_jobs)
            threads = min(checks.jobs(self.n_jobs), len(blocks))
            are_few = threads == 1 and counts * sizes[0] <= _FEW
            return _run_here(run, blocks) if are_few else _run_on_threads(run, blocks, threads)

        if stop is None or not self.stops_early:
            results = run_some(range(len(sizes)))
        else:
            jobs = _count_workers(self.n_jobs) if through_joblib else checks.jobs(self.n_jobs)
            first = math.ceil(stop.min_draws / size)
            results = _run_until_enough(run_some, len(sizes), first, jobs, stop.is_enough)
        with closing(results):  # also on Ctrl-C: start no further block
            return list(show_progress(results, len(sizes), self.progress))


def _run_until_enough(
    run_some: Callable[[range], Generator[T]],
    n_blocks: int,
    first: int,
    jobs: int,
    is_enough: Callable[[list[T]], bool],
) -> Generator[T]:
    """Run the ``first`` blocks, then some more at a time until there are enough."""
    done: list[T] = []
    until = first
    while len(done) < n_blocks and not (done and is_enough(done)):
        with closing(run_some(range(len(done), min(until, n_blocks)))) as results:
            for result in results:
                done.append(result)
                yield result
        until = len(done) + max(jobs, len(done) // _MORE)


def _count_workers(n_jobs: int | None) -> int:
    try:
        from joblib import effective_n_jobs
    except ModuleNotFoundError:
        return 1
    return int(effective_n_jobs(n_jobs))


def _run_block(
    task: Callable[[int, np.random.Generator], T],
    sizes: Sequence[int],
    seed: int,
    purpose: int,
    block: int,
) -> T:
    return task(sizes[block], stream(seed, purpose, block))


def _run_through_joblib(
    run: Callable[[int], T], blocks: Sequence[int], n_jobs: int | None
) -> Generator[T]:
    """Run the blocks in joblib's active backend; yield results one by one if it can do that."""
    try:
        from joblib import Parallel, delayed
    except ModuleNotFoundError:
        yield from _run_here(run, blocks)
        return
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # multiprocessing and Spark return all results at once
        parallel = Parallel(n_jobs=n_jobs)
    yield from parallel(delayed(run)(block) for block in blocks)


def _run_here(run: Callable[[int], T], blocks: Sequence[int]) -> Generator[T]:
    """Run the blocks in the caller's thread; Ctrl-C is handled between them."""
    yield from map(run, blocks)


def _run_on_threads(run: Callable[[int], T], blocks: Sequence[int], threads: int) -> Generator[T]:
    """Run the blocks on daemon threads and yield the results in order.

    Compiled code does not handle Ctrl-C. So the caller's thread only waits, and on Ctrl-C stops the
    blocks that are running; as the threads are daemons, Python does not wait at exit for those that
    are too long in compiled code to be stopped. With one thread, a first block that is quick shows
    that the rest can run in the caller's.
    """
    if threads == 1 and len(blocks) > 1:
        started = time.monotonic()
        yield from _run_on_threads(run, blocks[:1], 1)
        blocks = blocks[1:]
        if time.monotonic() - started < _MAX_DELAY_OF_CTRL_C_S:
            yield from _run_here(run, blocks)
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
            except BaseException as error:  # result() raises it again
                result.set_exception(error)
            done.put((block, result))

    early: dict[int, Future[T]] = {}
    workers = [Thread(target=work, daemon=True) for _ in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for block in blocks:
            while block not in early:
                try:
                    # Windows handles Ctrl-C only between such waits
                    number, result = done.get(timeout=_MAX_DELAY_OF_CTRL_C_S)
                except Empty:
                    continue
                early[number] = result
            yield early.pop(block).result()
    except BaseException:
        stopped.set()
        _stop_threads(workers)
        raise


def _stop_threads(threads: Sequence[Thread]) -> None:
    """Let threads end at their next line of Python, and wait a moment for them."""
    # Python ends at exit the threads that still run, which aborts the process where one of them is
    # in compiled C++ code, as parts of NumPy are
    for thread in threads:
        if thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )
    deadline = time.monotonic() + _MAX_DELAY_OF_CTRL_C_S
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0, deadline - time.monotonic()))
