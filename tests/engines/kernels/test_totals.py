"""Totals of contributions by lane, against a product of matrices; and how kernels are cached."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from fairperm.engines.kernels.subsets import lane_bits, same_in_all_lanes
from fairperm.engines.kernels.totals import subset_totals


@pytest.mark.parametrize(
    ("starts", "columns"),
    [
        ([0, 1], 1),
        ([0, 2048], 1),
        ([0, 2049], 3),
        ([0, 10, 10, 5000, 9097, 9098], 2),
        ([0, 0], 2),
        ([0], 2),
        ([0, 50], 0),
    ],
)
def test_totals_are_sums_over_the_units_in_a(starts: list[int], columns: int) -> None:
    rng = np.random.default_rng(1)
    n = starts[-1]
    words = rng.integers(0, 2**64, n, np.uint64)
    contributions = rng.normal(size=(n, columns)) * 10.0 ** rng.integers(-3, 3, (n, columns))
    contributions[n // 3 : n // 2, :1] = 0.0
    totals = subset_totals(words, contributions, np.array(starts))
    assert totals.shape == (64, len(starts) - 1, columns)
    np.testing.assert_array_equal(
        subset_totals(words, contributions, np.array(starts), columns // 2),
        totals[..., : columns // 2],
    )
    bits = lane_bits(words)
    for s, (start, stop) in enumerate(pairwise(starts)):
        expected = bits[:, start:stop].astype(np.float64) @ contributions[start:stop]
        size = np.abs(contributions[start:stop]).sum(axis=0)  # sums may cancel, terms do not
        assert (np.abs(totals[:, s] - expected) <= 1e-12 * size).all()


def test_whole_numbers_are_summed_exactly() -> None:
    rng = np.random.default_rng(2)
    words = rng.integers(0, 2**64, 30_000, np.uint64)
    numbers = rng.integers(0, 2**30, 30_000)
    totals = subset_totals(words, numbers[:, None].astype(np.float64), np.array([0, 30_000]))
    np.testing.assert_array_equal(totals[:, 0, 0], lane_bits(words).astype(np.int64) @ numbers)


def test_many_equal_terms_do_not_lose_digits() -> None:
    # A plain running sum of a million times 0.1 is off by 1.3e-11 of itself.
    n = 1_000_000
    words = same_in_all_lanes(np.ones(n, np.bool_))
    totals = subset_totals(words, np.full((n, 1), 0.1), np.array([0, n]))
    np.testing.assert_allclose(totals, 0.1 * n, rtol=1e-12)


def test_units_outside_do_not_touch_a_total() -> None:
    in_a = np.array([True, False, False, True])
    contributions = np.array([[1.0], [np.nan], [np.inf], [2.0]])
    totals = subset_totals(same_in_all_lanes(in_a), contributions, np.array([0, 4]))
    assert (totals == 3).all()


def test_any_memory_layout_of_contributions() -> None:
    rng = np.random.default_rng(3)
    words = rng.integers(0, 2**64, 100, np.uint64)
    contributions = rng.normal(size=(100, 2))
    starts = np.array([0, 40, 100])
    np.testing.assert_array_equal(
        subset_totals(words, contributions, starts),
        subset_totals(words, np.asfortranarray(contributions), starts),
    )


def test_a_second_process_need_not_compile(tmp_path: Path) -> None:
    script = """
import numpy as np
from fairperm.engines.kernels import totals
totals.subset_totals(np.zeros(3, np.uint64), np.zeros((3, 1)), np.array([0, 3]))
stats = totals._add_strata.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def start() -> str:
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
        return done.stdout.strip()

    assert [start(), start()] == ["0 1", "1 0"]
