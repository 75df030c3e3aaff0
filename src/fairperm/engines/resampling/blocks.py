"""Random permutations and bootstrap samples of a table of counts, in seeded blocks.

Each block of draws has a random stream of its own, named by the block's number. How many
blocks run at once, on how many threads or processes, changes no number.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fairperm._utils import checks
from fairperm._utils.progress import counted
from fairperm._utils.streams import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    import numpy as np


T = TypeVar("T")

BLOCK = 1024  # draws that share a random stream; another number would give other draws
_QUICK = 0.1  # seconds of work after which, at the latest, Ctrl-C should be heard
_FEW = 1 << 16  # counts that are drawn in less time than that


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
        checks.jobs(n_jobs)
        return cls(
            checks.resamples(n_resamples, least),
            checks.seed(rng),
            n_jobs,  # type: ignore[arg-type]  # as it came: None and -1 have a meaning to joblib
            checks.switch("progress", progress),
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
            threads = min(checks.jobs(self.n_jobs), len(sizes))
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


@contextmanager
def sent_once(run: Callable[[int], T]) -> Iterator[Callable[[int], T]]:
    """Yield the function as joblib's active backend should get it, with all that it holds.

    Processes of one machine get it from joblib. Spark would get it anew with every block; Spark
    Connect, which has no broadcasts, still does.
    """
    context = _spark_context()
    if context is None:
        yield run
        return
    from pyspark import cloudpickle

    # a broadcast is pickled as usual, which the functions of a notebook cannot be
    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    sent = context.broadcast(dumps(run))
    try:
        yield _Sent(sent)
    finally:
        sent.destroy()


@dataclass(frozen=True, slots=True)
class _Sent(Generic[T]):
    """A function that is where it runs already."""

    broadcast: Any

    def __call__(self, block: int) -> T:
        from pyspark import cloudpickle

        run: Callable[[int], T] = cloudpickle.loads(self.broadcast.value)
        return run(block)


def _spark_context() -> Any:
    """Return the context of Spark if its backend is the active one."""
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    if not type(backend).__module__.startswith("joblibspark"):
        return None
    from pyspark import SparkContext
    from pyspark.sql.utils import is_remote

    return None if is_remote() else SparkContext.getOrCreate()
