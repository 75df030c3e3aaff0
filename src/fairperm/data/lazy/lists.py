"""Ranked lists of a lazy frame: values of queries computed in the engine, or the items fetched.

A query has one value for metrics of quality, and only these are fetched. They are those of
``metrics.rankings`` but for rounding. Metrics of items exchange labels within lists, which needs
every item in memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.formatting import format_count
from fairperm.data.lazy.backends import (
    check_column,
    check_numbers,
    fetch,
    nan_to_null,
    quote_column,
    read_schema,
    stage,
)
from fairperm.errors import InputError, Shown, argument, shown
from fairperm.metrics.rankings import check_relevance, check_top, equate_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from fairperm.data.arguments import Inputs
    from fairperm.metrics.rankings import RankingMetric

    Array = NDArray[np.float64]

MOST_ITEMS = 1 << 24  # that are fetched if labels are exchanged within lists
_MOST_QUERIES = 1 << 22
_QUERY, _SCORE, _RELEVANCE = "query", "score", "relevance"
_POSITION, _END, _IDEAL, _GAIN = "position", "end", "ideal", "gain"
_FEATURES = ("sensitive_features", "control_features", "cluster")


def count_rows(frame: nw.LazyFrame[Any]) -> int:
    """Return the number of rows of a lazy frame."""
    with stage("counting the items", frame):
        return int(fetch(frame.select(nw.len().alias("n")))["n"][0])


@dataclass(frozen=True, slots=True)
class LazyLists:
    """The items of a lazy frame in their lists; ``columns`` are the user's, by their role here."""

    rows: nw.LazyFrame[Any]
    inputs: Inputs
    columns: Mapping[str, str]
    is_rank: bool

    @classmethod
    def select(
        cls, frame: nw.LazyFrame[Any], inputs: Inputs, query: object, *, is_rank: bool
    ) -> LazyLists:
        """Select the columns of items, queries and their features; drop items if asked to."""
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
        with stage("choosing the columns", frame):
            rows = frame.select(**selected)
        return cls(rows, inputs, columns, is_rank)

    def collect(self, n_items: int, metric: RankingMetric) -> Inputs:
        """Return the inputs with the items in memory."""
        if n_items > MOST_ITEMS:
            raise InputError(
                f"{argument('data')} must have at most {MOST_ITEMS:,} items for {metric.name}, "
                f"which exchanges labels within each list; it has {n_items:,}. "
                "Draw some of the queries at random."
            )
        with stage("reading the items", self.rows):
            items = fetch(self.rows)
        data = {column: items[role] for role, column in self.columns.items()}
        return replace(self.inputs, data=data)

    def value_queries(self, metric: RankingMetric, k: int) -> tuple[Inputs, Array, int]:
        """Return inputs with a row for each query, its values, and the number of dropped items.

        A value is NaN where it is undefined. ``y_true`` stands for the value.
        """
        complete, n_dropped = self._drop_missing()
        complete._check_items(metric, k)
        rows, above, below = _FORMULAS[metric.name](complete, k)
        keys = [name for name in self.columns if name not in {_SCORE, _RELEVANCE}]
        totals = rows.group_by(*keys).agg(above.alias("above"), below.alias("below"))
        with stage("computing the values of queries", self.rows):
            queries = fetch(totals.head(_MOST_QUERIES + 1))
        if len(queries) > _MOST_QUERIES:
            raise InputError(_QUERY, f"made of at most {_MOST_QUERIES:,} queries", len(queries))
        self._check_constant(queries, metric)
        top, bottom = (queries[name].to_numpy().astype(np.float64) for name in ("above", "below"))
        value = np.full(len(top), np.nan)
        np.divide(top, bottom, where=bottom > 0, out=value)
        value = equate_values(value)
        data = {self.columns[name]: queries[name] for name in keys}
        inputs = replace(self.inputs, y_true=np.nan_to_num(value), y_pred=None, data=data)
        return inputs, value, n_dropped

    def _drop_missing(self) -> tuple[LazyLists, int]:
        """Return the items without missing values, and how many had some, if they may be dropped.

        Raises InputError if they may not.
        """
        needed = [
            role
            for role in self.columns
            if self.inputs.missing != "group" or role.split()[0] != "sensitive_features"
        ]
        lacking = nw.any_horizontal(*(nw.col(role).is_null() for role in needed), ignore_nulls=True)
        with stage("looking for missing values", self.rows):
            found = int(fetch(self.rows.filter(lacking).select(nw.len().alias("n")))["n"][0])
        if not found:
            return self, 0
        if self.inputs.missing != "drop" or self.inputs.must_keep:
            drop = f"Pass {argument('missing', 'drop')} to drop them; the result counts them."
            group = argument("missing", "group")
            raise InputError(
                f"{argument('data')} has {format_count(found, 'item')} with missing values in the "
                f"columns used. {self.inputs.must_keep or drop} {group} makes a group of items "
                f"without {argument('sensitive_features')}."
            )
        return replace(self, rows=self.rows.filter(~lacking)), found

    def _check_items(self, metric: RankingMetric, k: int) -> None:
        """Raise InputError for relevance, scores and positions that the metric does not allow."""
        score, relevance = nw.col(_SCORE), nw.col(_RELEVANCE)
        tests = {
            "lowest": relevance.min(),
            "highest": relevance.max(),
            "graded": ((relevance != 0) & (relevance != 1)).any(),
            "low": score.min(),
            "high": score.max(),
            "whole": (score == score.floor()).all(),
        }
        by_query, by_tie = (
            self.rows.group_by(*keys).agg(nw.len().alias("n")).select(nw.col("n").max())
            for keys in ((_QUERY,), (_QUERY, _SCORE))
        )
        with stage("checking the items", self.rows):
            found = fetch(self.rows.select(**tests))
            longest, most = (fetch(one)["n"][0] for one in (by_query, by_tie))
        one = {name: found[name][0] for name in tests}
        if one["low"] is None:
            dropped = f"{argument('missing', 'drop')} dropped all rows."
            raise InputError(_RELEVANCE, "given in at least one row", Shown("none"), dropped)
        check_top(metric, k, longest, is_rank=self.is_rank)
        source = "rank" if self.is_rank else _SCORE
        for end in (one["low"], one["high"]):
            if math.isinf(end):
                raise InputError(source, "finite", end, "Replace or drop infinite values.")
        check_relevance(one["lowest"], one["highest"])
        if metric.is_binary and one["graded"]:
            hint = f"Graded relevance needs {argument('metric', 'ndcg')}."
            raise InputError(f"{argument(_RELEVANCE)} must be 0 or 1 for {metric.name}. {hint}")
        if self.is_rank and (one["low"] < 1 or not one["whole"] or most > 1):
            raise InputError("rank must be made of different positions 1, 2, 3, … in a query.")
        if metric.breaks_ties and most > 1:
            hint = f"Pass {argument('rank')} to say which item comes first."
            rule = f"made of different numbers within a query for {metric.name}"
            raise InputError(_SCORE, rule, Shown("equal scores"), hint)

    def _check_constant(self, queries: nw.DataFrame[Any], metric: RankingMetric) -> None:
        """Raise InputError if a query has several groups, strata or clusters."""
        twice = queries.filter(queries[_QUERY].is_duplicated())
        if not len(twice):
            return
        one = twice.filter(twice[_QUERY] == twice[_QUERY][0])
        roles = [role for role in self.columns if role.split()[0] in _FEATURES]
        split = next(role for role in roles if one[role].n_unique() > 1)
        role, hint = split.split()[0], ""
        if role == "sensitive_features":
            items = argument("metric", "exposure")
            hint = f" To compare kinds of items within lists, use {items}."
        raise InputError(
            f"{argument(role)} must be the same for all items of a query for {metric.name}, which "
            f"compares queries; got query {shown(one[_QUERY][0])} with several in "
            f"{shown(self.columns[split])}.{hint}"
        )

    def placed(self) -> nw.LazyFrame[Any]:
        """Return the items with their positions from the top; tied ones in any order."""
        if self.is_rank:
            return self.rows.with_columns(nw.col(_SCORE).alias(_POSITION))
        position = nw.col(_SCORE).rank(method="ordinal", descending=True).over(_QUERY)
        return self.rows.with_columns(position.cast(nw.Float64).alias(_POSITION))

    def share(self, gain: nw.Expr) -> nw.Expr:
        """Return the mean of what tied items get."""
        return gain if self.is_rank else gain.mean().over(_QUERY, _SCORE)


_Formula = tuple[nw.LazyFrame[Any], nw.Expr, nw.Expr]  # rows, and the sums that make a ratio


def _in_top(k: int, position: str = _POSITION) -> nw.Expr:
    return nw.when(nw.col(position) <= k).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def _discount(position: str = _POSITION) -> nw.Expr:
    return 1.0 / (nw.col(position) + 1.0).log(2.0)


def _ndcg(lists: LazyLists, k: int) -> _Formula:
    ideal = nw.col(_RELEVANCE).rank(method="ordinal", descending=True).over(_QUERY)
    rows = lists.placed().with_columns(
        (_discount() * _in_top(k)).alias(_GAIN), ideal.cast(nw.Float64).alias(_IDEAL)
    )
    rows = rows.with_columns(
        (nw.col(_RELEVANCE) * lists.share(nw.col(_GAIN))).alias(_GAIN),
        (nw.col(_RELEVANCE) * _discount(_IDEAL) * _in_top(k, _IDEAL)).alias(_IDEAL),
    )
    return rows, nw.col(_GAIN).sum(), nw.col(_IDEAL).sum()


def _hits(lists: LazyLists, k: int) -> nw.LazyFrame[Any]:
    rows = lists.placed().with_columns(_in_top(k).alias(_GAIN))
    return rows.with_columns((nw.col(_RELEVANCE) * lists.share(nw.col(_GAIN))).alias(_GAIN))


def _precision(lists: LazyLists, k: int) -> _Formula:
    end = nw.when(nw.col(_POSITION) < k).then(nw.col(_POSITION)).otherwise(nw.lit(float(k)))
    rows = _hits(lists, k).with_columns(end.alias(_END))
    return rows, nw.col(_GAIN).sum(), nw.col(_END).max()


def _recall(lists: LazyLists, k: int) -> _Formula:
    return _hits(lists, k), nw.col(_GAIN).sum(), nw.col(_RELEVANCE).sum()


def _average_precision(lists: LazyLists, k: int) -> _Formula:
    del k  # the whole list
    rows = lists.placed()
    found = nw.col(_RELEVANCE).cum_sum().over(_QUERY, order_by=_POSITION)
    rows = rows.with_columns(found.alias(_GAIN), nw.col(_POSITION).alias(_END))
    if not lists.is_rank:  # down to the end of a run of ties
        rows = rows.with_columns(
            nw.col(_GAIN).max().over(_QUERY, _SCORE), nw.col(_END).max().over(_QUERY, _SCORE)
        )
    gain = nw.col(_RELEVANCE) * nw.col(_GAIN) / nw.col(_END)
    return rows.with_columns(gain.alias(_GAIN)), nw.col(_GAIN).sum(), nw.col(_RELEVANCE).sum()


def _first_hit(lists: LazyLists, k: int, gain: nw.Expr) -> _Formula:
    is_hit = (nw.col(_RELEVANCE) > 0) & (nw.col(_POSITION) <= k)
    best = nw.when(is_hit).then(gain).otherwise(nw.lit(0.0))
    rows = lists.placed().with_columns(best.alias(_GAIN), nw.lit(1.0).alias(_END))
    return rows, nw.col(_GAIN).max(), nw.col(_END).max()


_FORMULAS: Mapping[str, Callable[[LazyLists, int], _Formula]] = {
    "ndcg": _ndcg,
    "precision": _precision,
    "recall": _recall,
    "average_precision": _average_precision,
    "reciprocal_rank": lambda lists, k: _first_hit(lists, k, 1.0 / nw.col(_POSITION)),
    "hit_rate": lambda lists, k: _first_hit(lists, k, nw.lit(1.0)),
}
