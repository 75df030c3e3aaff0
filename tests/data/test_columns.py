"""Counting rows by their codes equals counting them one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from fairperm.data.columns import as_column, count_rows, is_missing

RNG = np.random.default_rng(42)
LONG = 2**18 + 12_345  # more than the rows that are counted at a time


def counted(*columns: Any) -> Counter[tuple[Hashable, ...]]:
    """Count by codes, and spell the codes out; what is missing becomes None."""
    coded = [as_column(f"column {i}", column) for i, column in enumerate(columns)]
    rows, counts = count_rows(coded)
    result: Counter[tuple[Hashable, ...]] = Counter()
    everything = range(len(counts))
    indices = [everything if isinstance(one, slice) else one.tolist() for one in rows]
    for row, count in zip(zip(*indices, strict=True), counts.tolist(), strict=True):
        assert count > 0
        values = (column.values[i] for column, i in zip(coded, row, strict=True))
        result[tuple(None if is_missing(value) else value for value in values)] += count
    assert len(result) == len(counts)
    return result


def one_by_one(*columns: Any) -> Counter[tuple[Hashable, ...]]:
    rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    return Counter(tuple(None if is_missing(value) else value for value in row) for row in rows)


DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.unicode_string_dtypes(min_len=1, max_len=3),
    hnp.byte_string_dtypes(min_len=1, max_len=3),
)
OBJECTS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=2), st.binary(max_size=2)
).filter(lambda one: not str(one).endswith(("\0", "\\x00'")))  # which is refused


@given(st.data())
def test_arrays_of_any_type(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 40))
    columns = data.draw(st.lists(hnp.arrays(DTYPES, n), min_size=1, max_size=4))
    assert counted(*columns) == one_by_one(*columns)


@given(st.data())
def test_small_integers_of_any_width_and_place(data: st.DataObject) -> None:
    dtype = data.draw(hnp.integer_dtypes() | hnp.unsigned_integer_dtypes())
    limits = np.iinfo(dtype)
    low = data.draw(st.integers(int(limits.min), int(limits.max)))
    high = data.draw(st.integers(low, min(low + 300, int(limits.max))))
    elements = st.integers(low, high)
    columns = data.draw(st.lists(hnp.arrays(dtype, 30, elements=elements), min_size=1, max_size=4))
    assert counted(*columns) == one_by_one(*columns)


@given(st.lists(st.tuples(OBJECTS, OBJECTS), min_size=1, max_size=40))
def test_lists_of_anything(rows: list[tuple[Hashable, Hashable]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    expected = Counter(
        tuple(None if is_missing(value) else value for value in row)
        for row in zip(*columns, strict=True)
    )
    assert counted(*columns) == expected


def integers(size: int, n: int = 5000) -> NDArray[np.int64]:
    return RNG.integers(0, size, n)


MANY: dict[str, Sequence[Any]] = {
    "16 cells": [integers(2, LONG), integers(2, LONG), integers(4, LONG)],
    "256 cells": [integers(16), integers(16)],
    "256 values and one": [integers(256, LONG), np.full(LONG, 7)],
    "one and 256 values": [np.full(5000, 7), integers(256)],
    "257 cells": [integers(257)],
    "2**20 cells": [integers(2**10), integers(2**10)],
    "more than 2**20 cells": [integers(2**10), integers(2**10) - 5, integers(2)],
    "bytes, 2**24 cells": [(integers(256) - 128).astype(np.int8) for _ in range(3)],
    "above 2**63, many cells": [
        integers(2**11).astype(np.uint64) + np.uint64(2**63) for _ in range(2)
    ],
    "wide range": [integers(5) * 10**15, integers(2)],
    "wide range, many values": [RNG.integers(-(2**62), 2**62, 5000), integers(2)],
    "16 strings": [integers(16).astype("U2"), integers(2)],
    "17 strings": [integers(17, LONG).astype("U2"), integers(2, LONG)],
    "1000 byte strings": [integers(1000).astype("S3"), integers(2)],
    "floats": [integers(50) / 7, integers(2)],
    "32-bit floats": [(integers(50) / 7).astype(np.float32), integers(2)],
    "half and whole floats": [integers(5) / 2, integers(3).astype(np.float16)],
}


@pytest.mark.parametrize("columns", MANY.values(), ids=MANY)
def test_many_rows_and_many_cells(columns: Sequence[Any]) -> None:
    assert counted(*columns) == one_by_one(*columns)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS = {
    "read-only": read_only,
    "backwards": lambda array: array[::-1].copy()[::-1],
    "every third": lambda array: np.repeat(array, 3)[::3],
    "a column of a table": lambda array: np.stack([array, array], axis=1)[:, 1],
    "the other byte order": lambda array: array.astype(array.dtype.newbyteorder()),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "f2", "f4", "f8", "U3", "S3", "M8[D]"])
def test_the_layout_in_memory_does_not_matter(layout: Any, dtype: str) -> None:
    array = integers(2, 1000).astype(dtype)
    other = layout(array)
    before = other.copy()
    assert counted(other, array) == counted(array, array)
    np.testing.assert_array_equal(other, before)


@pytest.mark.parametrize("dtype", ["?", "i8", "f8", "U1", "M8[D]", "O"])
def test_no_rows_have_no_counts(dtype: str) -> None:
    empty: NDArray[Any] = np.array([], dtype)
    assert counted(empty, empty) == counted(empty.tolist(), empty) == Counter()


def test_every_way_to_be_missing_is_one_value() -> None:
    column = as_column(
        "x", [None, float("nan"), np.nan, np.float32("nan"), np.datetime64("NaT", "D"), 1]
    )
    assert list(column.values) == [None, 1]
    assert column.find_rows(column.find_missing(), 9) == [0, 1, 2, 3, 4]


def test_a_missing_value_among_integers_above_2_to_63_is_found_in_its_row() -> None:
    column = as_column("x", np.array([2**63, 2**63 + 1, 2**63], np.uint64))
    assert column.find_rows(np.array([False, True]), 9) == [1]
