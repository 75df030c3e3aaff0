"""Sums of powers of the influences of matched sets, against sums in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from fairperm.engines.kernels.matched_sets import sum_powers


@pytest.mark.parametrize("n_kinds", [1, 7, 512, 1300])
@pytest.mark.parametrize("n_columns", [1, 2, 5])
def test_sums_are_those_of_all_sets(n_kinds: int, n_columns: int) -> None:
    rng = np.random.default_rng(n_kinds)
    count = rng.integers(1, 4, n_kinds).astype(float)
    mine = np.floor(rng.random((6, n_kinds)) * (count + 1))
    high, low = rng.normal(size=(2, n_kinds, n_columns))
    first, second = rng.normal(size=(2, 6, n_columns))
    up, down = first @ high.T - second @ low.T, first @ low.T - second @ high.T
    found = sum_powers(mine, count, (high, low), (first, second))
    for power, sums in zip((2, 3), found, strict=True):
        expected = (mine * up**power + (count - mine) * down**power).sum(axis=1)
        np.testing.assert_allclose(sums, expected, rtol=1e-10, atol=1e-10 * n_kinds)


def test_an_undefined_derivative_makes_undefined_sums() -> None:
    sides = np.ones((3, 1)), np.zeros((3, 1))
    gradients = np.array([[np.nan], [1.0]]), np.ones((2, 1))
    for sums in sum_powers(np.ones((2, 3)), np.ones(3), sides, gradients):
        assert np.isnan(sums[0])
        assert np.isfinite(sums[1])
