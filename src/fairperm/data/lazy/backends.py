"""The engines of lazy frames: their columns, their failures, and fetching rows.

Everything goes through narwhals. This module holds the differences between engines that matter:
Spark interprets dots and backticks in a column's name, and Polars groups data larger than memory
only by streaming.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.arrays import Array
from fairperm._utils.optional import describe_missing
from fairperm.data.columns import as_narwhals, describe_column
from fairperm.errors import FairpermError, InputTypeError, argument, unknown_name

_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class BinnableRows:
    """Rows in memory that may be counted by bins of their scores, if that hides next to nothing.

    ``relation`` is a lazy frame of the same rows.
    """

    rows: Any
    relation: Any


def is_lazy(data: object) -> bool:
    """Whether the data are a lazy frame."""
    return lazy_frame(data) is not None


def lazy_frame(data: object) -> nw.LazyFrame[Any] | None:
    """Return the data as a lazy frame; None if they are anything else."""
    if data is None or isinstance(data, Mapping):
        return None
    if isinstance(data, BinnableRows):
        data = data.relation
    with stage("reading the names of the columns", None):
        frame = as_narwhals("data", data)
    return frame if isinstance(frame, nw.LazyFrame) else None


def read_schema(frame: nw.LazyFrame[Any]) -> Mapping[str, Any]:
    """Return the types of the columns by name."""
    with stage("reading the names of the columns", frame):
        return frame.collect_schema()


@contextmanager
def stage(doing: str, frame: nw.LazyFrame[Any] | None) -> Iterator[None]:
    """Raise FairpermError that names the stage if the engine fails; its error is the cause."""
    try:
        yield
    except FairpermError:
        raise
    except Exception as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from None
        if missing := describe_missing(error, "This data frame"):
            raise missing from error
        engine = "the engine" if frame is None else frame.implementation.value
        raise FairpermError(
            f"The rows of data could not be read: {engine} failed while {doing}: "
            f"{type(error).__name__}: {_reason(error)}"
        ) from error


def is_interrupt(error: Exception) -> bool:
    """Return whether an error of DuckDB means that a signal, such as Ctrl-C, ended a query."""
    return type(error).__name__ == "InterruptException" or str(error) == "Query interrupted"


def _reason(error: Exception) -> str:
    """Return the first line of an engine's error, and the last if the first ends in a colon."""
    # Py4J says in the first line only which call failed, and in the second what Java says of it
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no reason"]
    reason = f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") else lines[0]
    if type(error).__module__.startswith("py4j.") and len(lines) > 1:
        reason = lines[1].removeprefix(": ")
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"


def fetch(rows: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Return the rows, which must be few, in memory."""
    if rows.implementation is nw.Implementation.POLARS:
        return rows.collect(engine="streaming")
    return rows.collect()


def to_floats(column: nw.Series[Any]) -> Array:
    """Return a column of numbers as an array, NaN if missing."""
    return np.array([np.nan if one is None else one for one in column.to_list()], np.float64)


def check_column(
    name: str, value: object, frame: nw.LazyFrame[Any], schema: Mapping[str, Any]
) -> str:
    """Return the column name that was passed for an argument. Raises InputError without one."""
    data = argument("data")
    if not isinstance(value, str):
        engine = frame.implementation.value
        rule = f"the name of a column of {data}, which is a lazy frame ({engine})"
        raise InputTypeError(name, rule, type(value), "Add the values to the frame first.")
    if value not in schema:
        raise unknown_name(name, f"a column of {data}", value, schema)
    return value


def check_numbers(name: str, column: str, dtype: Any) -> None:
    """Raise InputTypeError if the engine knows that a column is not numeric."""
    if dtype.is_numeric() or dtype in {nw.Unknown, nw.Object}:
        return
    hint = "Labels are not scores." if dtype in {nw.Boolean, nw.String} else ""
    raise InputTypeError(describe_column(name, column), "made of real numbers", dtype, hint)


def quote_column(name: str, frame: nw.LazyFrame[Any]) -> nw.Expr:
    """Return the column of this name, quoted if Spark would interpret the name."""
    is_plain = name.replace("_", "").isalnum()
    if not is_plain and frame.implementation.is_spark_like():
        quoted = name.replace("`", "``")
        return nw.col(f"`{quoted}`")
    return nw.col(name)


def nan_to_null(column: nw.Expr) -> nw.Expr:
    """Return the column with NaN as a missing value: some engines order NaN above all numbers."""
    return nw.when(~column.is_nan()).then(column)
