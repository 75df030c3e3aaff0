"""Random streams, each named by a seed, its purpose and the number of a block of draws."""

from __future__ import annotations

import numpy as np

# Purposes of random streams.
PERMUTATIONS, BOOTSTRAP, OBSERVED, SAMPLE, RESAMPLED_ROWS, SIGNS, BATCHES = 0, 1, 2, 4, 5, 6, 7
HALVES = 8


def stream(seed: int, purpose: int, block: int = 0) -> np.random.Generator:
    """Return the random stream of one block."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, block)))
    )


def block_of(rng: np.random.Generator) -> int:
    """Return the number of the block that a random stream is for."""
    return int(rng.bit_generator.seed_seq.spawn_key[1])  # type: ignore[attr-defined]
