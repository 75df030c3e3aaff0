"""Rows that are elsewhere: columns by the arguments they stand for, and what is fetched of them.

Everything goes through narwhals. What engines do differently, and was seen to matter, is here:
Spark reads dots and backticks in a column's name, Polars can group what does not fit into memory.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm.data.columns import as_narwhals
from fairperm.errors import (
    FairpermError,
    InputError,
    InputTypeError,
    did_you_mean,
    listed,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

_LONGEST_REASON = 300


def is_lazy(data: object) -> bool:
    """Tell whether rows are somewhere else."""
    return lazy_frame(data) is not None


def lazy_frame(data: object) -> nw.LazyFrame[Any] | None:
    """Return the frame if its rows are somewhere else."""
    if data is None:
        return None
    with stage("reading the names of the columns", None):
        frame = as_narwhals("data", data)
    return frame if isinstance(frame, nw.LazyFrame) else None


def schema_of(frame: nw.LazyFrame[Any]) -> Mapping[str, Any]:
    """Return the columns with their types."""
    with stage("reading the names of the columns", frame):
        return frame.collect_schema()


@contextmanager
def stage(doing: str, frame: nw.LazyFrame[Any] | None) -> Iterator[None]:
    """Say what an engine was doing when it failed; its own error is the cause."""
    try:
        yield
    except FairpermError:
        raise
    except Exception as error:
        engine = "its engine" if frame is None else frame.implementation.value
        raise FairpermError(
            f"data must be rows that can be counted; {engine} failed while {doing}: "
            f"{type(error).__name__}: {_reason(error)}"
        ) from error


def _reason(error: Exception) -> str:
    """Return the first line of what an engine says, and the last if the first announces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no reason"]
    reason = f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") else lines[0]
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"


def fetched(rows: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Return the rows, which are few, from wherever they are made."""
    if rows.implementation is nw.Implementation.POLARS:
        return rows.collect(engine="streaming")
    return rows.collect()


def floats_of(column: nw.Series[Any]) -> NDArray[np.float64]:
    """Return fetched numbers, NaN where there are none."""
    return np.array([np.nan if one is None else one for one in column.to_list()], np.float64)


def column_of(name: str, value: object, frame: nw.LazyFrame[Any], schema: Mapping[str, Any]) -> str:
    """Return the name of a column that stands for an argument; refuse anything else."""
    if not isinstance(value, str):
        hint = "Its rows stay where they are: nothing can be put beside them."
        rule = f"the name of a column of data, which is lazy ({frame.implementation.value})"
        raise InputTypeError(name, rule, type(value), hint)
    if value not in schema:
        rule = f"a column of data ({listed(schema)})"
        raise InputError(name, rule, value, did_you_mean(value, schema))
    return value


def check_numbers(name: str, column: str, dtype: Any) -> None:
    """Refuse scores that the engine knows to be no numbers."""
    if dtype.is_numeric() or dtype in {nw.Unknown, nw.Object}:
        return
    hint = "Labels are not scores." if dtype in {nw.Boolean, nw.String} else ""
    rule = "made of real numbers"
    raise InputTypeError(f"{name} (column {shown(column)})", rule, dtype, hint)


def expression(name: str, frame: nw.LazyFrame[Any]) -> nw.Expr:
    """Return a column by its name, whatever the engine would read into it."""
    is_plain = name.replace("_", "").isalnum()
    if not is_plain and frame.implementation.is_spark_like():
        quoted = name.replace("`", "``")
        return nw.col(f"`{quoted}`")
    return nw.col(name)


def without_nan(column: nw.Expr) -> nw.Expr:
    """Return what is not a number as missing, and not above all others as some engines have it."""
    return nw.when(~column.is_nan()).then(column)
