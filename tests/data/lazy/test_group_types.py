"""Groups of every type that engines have."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.lazy_data import LAZY, by_engine, run, same, sample

GROUPS: dict[str, tuple[Any, Any, Any]] = {
    "date": (dt.date(2020, 1, 1), dt.date(2021, 1, 1), None),
    "time": (dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1), None),
    "time with a zone": (
        dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2021, 1, 1, tzinfo=dt.UTC),
        pa.timestamp("us", tz="UTC"),
    ),
    "decimal": (Decimal("1.50"), Decimal("2.25"), None),
    "large": (2**53 + 1, 2**53 + 2, None),
    "unsigned": (2**63 + 1, 2**63 + 2, pa.uint64()),
    "truth": (True, False, None),
    "float": (1.5, 2.0, None),
    "single": (1.5, 2.1, pa.float32()),
    "small": (1, -1, pa.int8()),
    "bytes": (b"x", b"y", None),
    "empty": ("", "b", None),
}  # fmt: skip


@by_engine
@pytest.mark.parametrize("kind", GROUPS)
def test_groups_of_any_type(kind: str, form: str) -> None:
    table = sample(400)
    one, other, dtype = GROUPS[kind]
    values = [one if sex == "Female" else other for sex in table["sex"].to_pylist()]
    table = table.set_column(3, "sex", pa.array(values, dtype))
    expected = run(table, "accuracy", scheme="pooled")
    result = run(LAZY[form](table), "accuracy", scheme="pooled")
    assert result.groups == expected.groups
    assert same(result, expected)


@pytest.mark.parametrize("form", LAZY)
def test_a_group_that_is_not_a_number_is_missing(form: str) -> None:
    table = sample(400)
    group = np.where(table["sex"].to_numpy() == "Female", 1.0, 2.0)
    group[:5] = np.nan
    table = table.set_column(3, "sex", pa.array(group))
    result = run(LAZY[form](table), "accuracy", missing="drop")
    assert result.n_dropped == 5
    assert same(result, run(table, "accuracy", missing="drop"))
