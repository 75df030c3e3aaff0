"""Totals of contributions by lane, against a product of matrices; and how kernels are cached."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fairperm.engines.kernels.subsets import same_in_all_lanes
from fairperm.engines.kernels.totals import subset_totals


def test_many_equal_terms_do_not_lose_digits() -> None:
    # A plain running sum of a million times 0.1 is off by 1.3e-11 of itself.
    n = 1_000_000
    words = same_in_all_lanes(np.ones(n, np.bool_))
    totals = subset_totals(words, np.full((n, 1), 0.1), np.array([0, n]))
    np.testing.assert_allclose(totals, 0.1 * n, rtol=1e-12)


@pytest.mark.validate
def test_a_second_process_need_not_compile(tmp_path: Path) -> None:
    script = """
import numpy as np
import pytest
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
