"""Sorting: the same order as NumPy's, whatever the numbers."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairperm._utils.sorting import equate_close, order_by, ranks, run_starts

FINITE = st.floats(allow_nan=False, allow_infinity=False)
FEW = st.sampled_from([-2.5, -0.0, 0.0, 1.0, 3.0])


@given(st.lists(st.tuples(st.integers(0, 2), FEW, st.booleans()), min_size=1, max_size=40))
def test_rows_are_ordered_by_all_columns(rows: list[tuple[int, float, bool]]) -> None:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    assert [rows[i] for i in order_by(columns)] == sorted(rows)


def test_text_and_numbers_can_be_ordered_together() -> None:
    mixed = np.array([1, "a", 2, "1", (1, 2)], object)
    again = mixed[[3, 4, 0, 2, 1]]
    assert mixed[order_by([mixed])].tolist() == again[order_by([again])].tolist()


def test_runs_start_where_any_column_changes() -> None:
    first, second = np.array([0, 0, 0, 1, 1], np.uint8), np.array([5.0, 5.0, 6.0, 6.0, 6.0])
    assert run_starts(first, second).tolist() == [0, 2, 3]
    assert run_starts(np.empty(0)).tolist() == []


def test_values_that_differ_by_rounding_become_equal() -> None:
    values = np.array([0.3, 1e12, 0.1 + 0.2, 0.3 + 1e-9, 1e12 + 1])
    found = equate_close(values, 1e-13 * np.abs(values))
    assert found.tolist() == [0.3, 1e12, 0.3, 0.3 + 1e-9, 1e12 + 1]


def test_objects_are_ranked_by_number_or_date_not_by_their_code() -> None:
    days = [date(2020, 1, 10), date(2020, 1, 9), date(2020, 1, 10)]
    mixture = [Decimal(10), "a b", 9.5, "a", (1, "x"), 10]
    for values, expected in ((days, [1, 0, 1]), (mixture, [1, 3, 0, 2, 4, 1])):
        column = np.empty(len(values), object)
        column[:] = values
        assert ranks(column).tolist() == expected
