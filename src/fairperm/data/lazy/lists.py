"""Ranked lists of a lazy frame: the columns that a metric needs, fetched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw

from fairperm.data.arguments import Inputs
from fairperm.data.lazy.backends import (
    check_column,
    check_numbers,
    fetch,
    nan_to_null,
    quote_column,
    read_schema,
    stage,
)
from fairperm.errors import InputError, argument
from fairperm.metrics.rankings import RankingMetric

MAX_ITEMS = 1 << 24  # that are fetched
_QUERY, _SCORE, _RELEVANCE = "query", "score", "relevance"
_FEATURES = ("sensitive_features", "control_features", "cluster")


def count_rows(frame: nw.LazyFrame[Any]) -> int:
    """Return the number of rows of a lazy frame."""
    with stage("counting the items", frame):
        return int(fetch(frame.select(nw.len().alias("n")))["n"][0])


def fetch_items(
    frame: nw.LazyFrame[Any], inputs: Inputs, query: object, metric: RankingMetric, *, is_rank: bool
) -> Inputs:
    """Return the inputs with the items in memory, in the columns that are named."""
    n_items = count_rows(frame)
    if n_items > MAX_ITEMS:
        raise InputError(
            f"{argument('data')} must have at most {MAX_ITEMS:,} items for {metric.name}; it has "
            f"{n_items:,}. Draw some of the queries at random."
        )
    schema = read_schema(frame)
    source = "rank" if is_rank else _SCORE
    given = [(_QUERY, _QUERY, query), (_SCORE, source, inputs.y_pred)]
    if inputs.y_true is not None:
        given.append((_RELEVANCE, _RELEVANCE, inputs.y_true))
    for name in _FEATURES:
        value = getattr(inputs, name)
        some = value if isinstance(value, (list, tuple)) else [value]
        given += [(f"{name} {i}", name, one) for i, one in enumerate(some) if one is not None]
    columns = {role: check_column(name, one, frame, schema) for role, name, one in given}
    selected = {role: quote_column(one, frame) for role, one in columns.items()}
    for role in (_SCORE, _RELEVANCE):
        if role in columns:
            dtype = schema[columns[role]]
            if dtype != nw.Boolean:
                check_numbers(source if role == _SCORE else role, columns[role], dtype)
            numbers = nan_to_null(selected[role]) if dtype.is_float() else selected[role]
            if role == _RELEVANCE or not dtype.is_integer():  # floats would tie large integers
                numbers = numbers.cast(nw.Float64)
            selected[role] = numbers
    with stage("reading the items", frame):
        items = fetch(frame.select(**selected))
    return replace(inputs, data={column: items[role] for role, column in columns.items()})
