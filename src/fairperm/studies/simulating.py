"""Many data sets, a random stream for each block of them, on any number of threads."""

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

_BLOCK = 10  # data sets that share a random stream; another number would give other data sets


def over_data_sets(
    task: Callable[[np.random.Generator], Array],
    n: int,
    *,
    seed: int,
    purpose: int,
    n_jobs: int | None,
    progress: bool | None,
    in_processes: bool = False,
) -> Array:
    """Return what ``task`` finds in each of ``n`` data sets that it draws, on the first axis.

    ``purpose`` tells the streams of one setting from those of all others. Where most of the time
    is Python's, processes share the work better than threads.
    """

    def block(size: int, rng: np.random.Generator) -> Array:
        return np.array([task(rng) for _ in range(size)])

    with warnings.catch_warnings():  # a setting is what it is: small groups need no telling
        warnings.simplefilter("ignore", FairpermWarning)
        blocks = Resampling(n, seed, n_jobs, progress).in_blocks(
            block, purpose, _BLOCK, through_joblib=in_processes
        )
    return np.concatenate(blocks)
