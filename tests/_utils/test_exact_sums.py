"""Exact sums, against Python's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairperm._utils.sorting import exact_sums

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(st.lists(st.tuples(st.integers(0, 2), NUMBERS), max_size=40))
def test_sums_are_those_of_fsum(rows: list[tuple[int, float]]) -> None:
    place = np.array([one for one, _ in rows], np.intp)
    values = np.array([value for _, value in rows], float)
    expected = [math.fsum(value for one, value in rows if one == group) for group in range(3)]
    assert exact_sums(place, values, 3).tolist() == expected


@pytest.mark.parametrize("scale", [1.0, 1e-310, 1e290])
def test_many_values_of_unlike_size(scale: float) -> None:
    rng = np.random.default_rng(5)
    values = scale * rng.normal(size=100_000) * 10.0 ** rng.integers(-8, 8, 100_000)
    place = rng.integers(2, size=100_000)
    expected = [math.fsum(values[place == group]) for group in range(2)]
    assert exact_sums(place, values, 2).tolist() == expected
    order = rng.permutation(100_000)
    assert exact_sums(place[order], values[order], 2).tolist() == expected


def test_nothing_adds_up_to_zero() -> None:
    assert exact_sums(np.empty(0, np.intp), np.empty(0), 2).tolist() == [0.0, 0.0]
    assert exact_sums(np.zeros(3, np.intp), np.zeros(3), 2).tolist() == [0.0, 0.0]
