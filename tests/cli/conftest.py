"""Every text that DuckDB reads in these tests is read by Python alone, too: to the same values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from fairperm.cli.files import loading, plain, sql
from fairperm.data.lazy.backends import BinnableRows

_MAX_ROWS = 50_000


def count_rows(columns: Iterable[Iterable[Any]]) -> Counter[tuple[tuple[str, Any], ...]]:
    """Return how often each row occurs; a missing number is a missing value."""
    known = ([None if one is None or one != one else one for one in column] for column in columns)
    return Counter(
        tuple((type(one).__name__, one) for one in row) for row in zip(*known, strict=True)
    )


@pytest.fixture(autouse=True)
def _two_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    read = loading._open_data

    def read_twice(stack: Any, files: Any, folder: Any, options: Any, wanted: Any) -> Any:
        data, names = read(stack, files, folder, options, wanted)
        rows = data.rows if isinstance(data, BinnableRows) else data
        if not plain.can_read(files, options):
            return data, names
        table = rows.to_arrow_table() if hasattr(rows, "to_arrow_table") else rows
        if len(table) <= _MAX_ROWS and sql.Memory(None).limit > table.nbytes:
            columns = plain.read_texts(files, folder, options, wanted.columns)
            assert tuple(columns) == names
            lists = [one if isinstance(one, list) else one.tolist() for one in columns.values()]
            assert count_rows(lists) == count_rows(one.to_pylist() for one in table.columns)
        return data, names

    monkeypatch.setattr(loading, "_open_data", read_twice)
