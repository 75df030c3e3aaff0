"""Simulate many data sets in blocks with random streams of their own, on any number of threads."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.resampling.blocks import Resampling
from fairperm.errors import FairpermWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_BLOCK = 10  # data sets per random stream; another number would give other data sets


def simulate_data_sets(
    task: Callable[[np.random.Generator], Array],
    n: int,
    *,
    seed: int,
    purpose: int,
    n_jobs: int | None,
    progress: bool | None,
    in_processes: bool = False,
) -> Array:
    """Return the results of ``n`` calls of ``task``, each of which draws a data set, on axis 0.

    ``purpose`` gives each setting random streams of its own. Processes are faster than threads
    if most of the time is spent in Python.
    """

    def block(size: int, rng: np.random.Generator) -> Array:
        return np.array([task(rng) for _ in range(size)])

    return simulate_blocks(
        block,
        n,
        size=_BLOCK,
        seed=seed,
        purpose=purpose,
        n_jobs=n_jobs,
        progress=progress,
        in_processes=in_processes,
    )


def simulate_blocks(
    block: Callable[[int, np.random.Generator], Array],
    n: int,
    *,
    size: int,
    seed: int,
    purpose: int,
    n_jobs: int | None,
    progress: bool | None,
    in_processes: bool = False,
) -> Array:
    """Return the results of ``n`` data sets, drawn and tested in blocks of this ``size``."""
    with warnings.catch_warnings():  # small groups are intended here
        warnings.simplefilter("ignore", FairpermWarning)
        blocks = Resampling(n, seed, n_jobs, progress).run_blocks(
            block, purpose, size, through_joblib=in_processes
        )
    return np.concatenate(blocks)
