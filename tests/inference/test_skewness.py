"""Hall's transformation: by hand, and by what it must keep."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairperm.inference.skewness import remove_skewness, restore_skewness, skewness

STATISTIC = st.floats(-20, 20)
SKEWNESS = st.floats(-1, 1)  # |Σψ³| is at most (Σψ²)^1.5


@pytest.mark.parametrize(
    ("s", "k", "h"),
    [
        (2.0, 0.0, 2.0),
        (0.0, 0.6, 0.1),
        (3.0, 1.0, 3 + 3 + 1 + 1 / 6),
        (-3.0, 1.0, -3 + 3 - 1 + 1 / 6),
        (1.5, -0.5, 1.5 - 0.375 + 0.25 * 3.375 / 27 - 0.5 / 6),
    ],
)
def test_by_hand(s: float, k: float, h: float) -> None:
    assert remove_skewness(np.array(s), np.array(k)) == pytest.approx(h, rel=1e-15)
    assert restore_skewness(np.array(h), np.array(k)) == pytest.approx(s, rel=1e-14, abs=1e-15)


@given(STATISTIC, SKEWNESS)
def test_is_the_cube_of_hall(s: float, k: float) -> None:
    if abs(k) > 1e-3:
        cube = ((1 + k * s / 3) ** 3 - 1) / k + k / 6
        found = remove_skewness(np.array(s), np.array(k))
        assert found == pytest.approx(cube, rel=1e-9, abs=1e-9)


@given(STATISTIC, SKEWNESS)
def test_is_odd_to_the_last_bit(s: float, k: float) -> None:
    for change in (remove_skewness, restore_skewness):
        assert change(np.array(-s), np.array(-k)) == -change(np.array(s), np.array(k))


@given(STATISTIC, STATISTIC, SKEWNESS)
def test_is_monotone(s: float, t: float, k: float) -> None:
    low, high = remove_skewness(np.sort([s, t]), np.array(k))
    assert low <= high + 1e-13 * (1 + abs(high))


@given(STATISTIC, SKEWNESS)
def test_is_undone(s: float, k: float) -> None:
    """Where it is flat, u = 0, the inverse has the cube root of the precision."""
    flat = abs(1 + k * s / 3)
    back = restore_skewness(remove_skewness(np.array(s), np.array(k)), np.array(k))
    assert back == pytest.approx(s, rel=1e-4 if flat < 0.01 else 1e-9, abs=1e-13)


@given(SKEWNESS)
def test_keeps_what_has_no_size(k: float) -> None:
    extreme = np.array([-math.inf, math.nan, math.inf])
    for change in (remove_skewness, restore_skewness):
        np.testing.assert_array_equal(change(extreme, np.array(k)), extreme)


def test_skewness_of_sums() -> None:
    third, error = np.array([8.0, 8.0, -1.0, 1e-300]), np.array([2.0, 0.0, math.nan, 1e-100])
    np.testing.assert_allclose(skewness(third, error), [1.0, 0.0, 0.0, 1.0], rtol=1e-15)


def test_removes_the_skewness_of_a_mean() -> None:
    """Tails of t of 40 exponential values are 0.02 and 0.11 at 0.05; those of H are nearly even."""
    rng = np.random.default_rng(0)
    values = rng.exponential(size=(20_000, 40)) - 1
    apart = values - values.mean(axis=1, keepdims=True)
    error = np.sqrt((apart**2).sum(axis=1)) / 40
    s = values.mean(axis=1) / error
    h = remove_skewness(s, skewness((apart**3).sum(axis=1) / 40**3, error))
    assert np.mean(s < -1.645) > 0.095
    assert np.mean(h < -1.645) == pytest.approx(0.06, abs=0.015)
    assert np.mean(h > 1.645) == pytest.approx(0.05, abs=0.015)
