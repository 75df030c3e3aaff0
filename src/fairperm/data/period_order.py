"""The order of periods: declared by their type, or sorted. Text that may sort wrongly is refused.

As text, "Q1 2024" comes before "Q4 2023", and every change would have the wrong sign.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.sorting import sort_key
from fairperm.data.columns import Source, are_names, as_narwhals, columns_of_frame
from fairperm.data.lazy.backends import BinnableRows, lazy_frame, read_schema
from fairperm.errors import InputError, argument, listed

Order = Sequence[Hashable]

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"(\d+)")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_DATE = re.compile(r"^\d{1,2}(?:([./-])\d{1,2}\1\d{4}|/\d{1,2}/\d{2})(?!\d)")  # the year is last
_PART = re.compile(  # a word by itself, or an abbreviation with a number
    r"(?<![^\W\d_])(?:(?P<quarters>quarters?\b|(?:q|qtr)[ ._-]*\d)|(?P<months>months?\b)"
    r"|(?P<weeks>weeks?\b|(?:w|cw|kw|wk)[ ._-]*\d))",
    re.IGNORECASE,
)
# a month or a half-year, and what may be the year: "11/22", "2H23", "H2 '23"
_SHORT_YEAR = re.compile(r"^(?:\d{1,2}\W+|[12] ?h\W*|h ?[12]\W+)(\d\d)$", re.IGNORECASE)
_LONG_NUMBER = re.compile(r"\d\d")  # a year; one digit is that of a quarter


def sort_periods(periods: Sequence[Hashable], orders: Sequence[Order | None]) -> list[Hashable]:
    """Return periods in the declared order of each of their columns, or else sorted."""
    # raises InputError for text whose order is not that of time
    ranks = [None if one is None else {value: i for i, value in enumerate(one)} for one in orders]

    def place(period: Hashable) -> tuple[Hashable, ...]:
        parts = period if len(ranks) > 1 and isinstance(period, tuple) else (period,)
        pairs = zip(parts, ranks, strict=True)
        return tuple(part if rank is None else rank.get(part, part) for part, rank in pairs)

    found = sorted(periods, key=lambda one: sort_key(place(one)))
    parts = _find_unordered([place(one) for one in found])
    if parts is None:
        return found
    rule = f"given, in their order, if {argument('period')} is text with {parts}"
    hint = (
        f"Sorted as text they would be {listed(found)}. In Python, a column with an order of its "
        "own, such as an ordered categorical, has no need of it."
    )
    raise InputError("periods", rule, None, hint)


def _find_unordered(periods: Sequence[tuple[Hashable, ...]]) -> str | None:
    """Return what makes the order of sorted text doubtful; None if nothing does."""
    texts = [
        " ".join(f"{part:04}" if isinstance(part, int) else str(part) for part in one)
        for one in periods
        if any(isinstance(part, str) for part in one)
    ]
    words = {word for text in texts for word in _WORD.findall(text.lower())}
    months = {name for name in _MONTHS for word in words if len(word) > 2 and name.startswith(word)}
    if len(months) > 1 or any(map(_DATE.match, texts)):
        return "months"
    for text in texts:
        found = _PART.search(text)
        if found is not None and not _LONG_NUMBER.search(text[: found.start()]):
            return found.lastgroup
    years = [found.group() for found in map(_YEAR.search, texts) if found is not None]
    if not years:
        years = [found.group(1) for found in map(_SHORT_YEAR.match, texts) if found is not None]
    if years != sorted(years):
        return "years that do not come first"
    if [*periods] != sorted(periods, key=_by_numbers):
        return "numbers of different lengths"
    return None


def _by_numbers(period: Hashable) -> tuple[Any, ...]:
    """Return a key by which numbers in texts count by their value."""
    if isinstance(period, tuple):
        return (2, *map(_by_numbers, period))
    if not isinstance(period, str):
        return sort_key(period)
    parts = _DIGITS.split(period)
    numbers = [int(one) if i % 2 else one for i, one in enumerate(parts)]
    return (1, str.__name__, numbers, period)


def declared_orders(data: object, given: object) -> list[Order | None]:
    """Return the order that the type of each column of periods declares, or None."""
    # These are ordered categoricals of pandas, enumerations of Polars and DuckDB, and ordered
    # dictionaries of Arrow. No row is read.
    if isinstance(data, Source):
        data = data.columns
    frame = None if data is None else lazy_frame(data)
    names: list[Any] = [*given] if are_names(given) else [given]
    if frame is not None:
        schema = read_schema(frame)
        return [_order_of_type(schema.get(name), frame) for name in names]
    if data is not None and all(isinstance(name, str) for name in names):
        rows = data.rows if isinstance(data, BinnableRows) else data
        columns = columns_of_frame("data", rows)
        return [_order_of_column(columns.get(name)) for name in names]
    if isinstance(given, np.ndarray) and given.ndim == 2:
        return [None] * given.shape[1]
    if isinstance(given, Mapping) or nw.dependencies.is_into_dataframe(given):
        return [_order_of_column(one) for one in columns_of_frame("period", given).values()]
    return [_order_of_column(given)]


def _order_of_type(dtype: Any, frame: nw.LazyFrame[Any]) -> Order | None:
    if dtype != nw.Enum:
        return None
    order = tuple(dtype.categories)
    # DuckDB makes an enumeration of any categorical of pandas, whose categories are sorted
    return None if frame.implementation.is_duckdb() and _is_sorted(order) else order


def _order_of_column(column: object) -> Order | None:
    series = as_narwhals("period", column)
    if not isinstance(series, nw.Series):
        return None
    native: Any = series.to_native()
    if series.implementation.is_pyarrow():
        return _order_of_arrow(native)
    if series.implementation.is_pandas_like():
        if getattr(native.dtype, "ordered", False):
            return tuple(native.dtype.categories)
        is_arrow = hasattr(native.dtype, "pyarrow_dtype")
        return _order_of_arrow(native.array.__arrow_array__()) if is_arrow else None
    return tuple(series.dtype.categories) if isinstance(series.dtype, nw.Enum) else None


def _order_of_arrow(column: Any) -> Order | None:
    """Return the values of an ordered dictionary, which chunks of a column may share in part."""
    if not getattr(column.type, "ordered", False):
        return None
    chunks = getattr(column, "chunks", [column])
    return tuple(dict.fromkeys(itertools.chain(*(one.dictionary.to_pylist() for one in chunks))))


def _is_sorted(values: Iterable[Hashable]) -> bool:
    return all(a <= b for a, b in itertools.pairwise(map(sort_key, values)))
