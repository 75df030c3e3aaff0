"""A random sample of the rows of a lazy frame, the same on every engine and in any order of rows.

Each row gets a draw from 0 to 1, which depends on the seed and on all its numeric columns, and the
rows with the lowest draws are taken. The draw is made by sums and products in double precision,
which every engine rounds in the same way. With clusters it depends on the cluster alone, and whole
clusters are taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.sorting import order_by, run_starts
from fairperm._utils.streams import SAMPLE
from fairperm.data.columns import CountedRows
from fairperm.data.lazy.backends import fetch, nan_to_null, quote_column, read_schema, stage
from fairperm.data.lazy.counting import LazyRows
from fairperm.errors import InputError, argument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.data.arguments import Inputs
    from fairperm.metrics.definition import AnyMetric

_SCALES = ([1e3, 1e-8, 1e-2, 1e11], [1e4, 1e-7, 1e-1, 1e12])  # factors are between these
_LARGEST = 1e290
_DRAWS = ("first draw", "second draw")
_MOST_EQUAL = 0.01  # the largest share of the sample's rows that may have equal rows


def draw_sample(inputs: Inputs, metric: AnyMetric, frame: nw.LazyFrame[Any], wanted: int) -> Inputs:
    """Return the inputs with a sample of the rows as their data."""
    schema = read_schema(frame)
    numbers = _choose_numbers(inputs, schema)
    named = {f"number {i}": name for i, name in enumerate(numbers)}
    extra = {name: quote_column(one, frame) for name, one in named.items()}
    lazy = LazyRows.select(inputs, metric, frame, extra)
    with stage("drawing a sample of the rows", frame):
        rows, lacking = _split_clustered(lazy)
        total = _count(rows)
        # a few more than wanted: then they are hardly ever too few
        share = min(1.0, (wanted + 6 * wanted**0.5 + 20) / max(total, 1))
        types = {name: schema[one] for name, one in named.items()}
        drawn = fetch(add_draws(rows, types, inputs.seed, share).select(*lazy.columns, *_DRAWS))
    taken, sizes = _take_lowest(drawn, wanted)
    if inputs.cluster is None:
        _check_distinct(sizes, numbers)
    sampled = drawn.select(*lazy.columns)[taken.tolist()]
    count = np.ones(len(sampled), np.int64)
    if lacking is not None:
        one, n_lacking = lacking
        sampled, count = nw.concat([sampled, one]), np.append(count, n_lacking)
    columns = {user: sampled[name] for name, user in lazy.columns.items()}
    note = f"Tested on a sample of {len(taken):,} of {total:,} rows, drawn by seed {inputs.seed}."
    return replace(inputs, data=CountedRows(columns=columns, count=count, notes=(note,)))


def _split_clustered(
    lazy: LazyRows,
) -> tuple[nw.LazyFrame[Any], tuple[nw.DataFrame[Any], int] | None]:
    """Return the rows to draw from, and one of those without a cluster with their number.

    A missing cluster is no cluster, of which all rows could be drawn together.
    """
    schema = lazy.rows.collect_schema()
    clusters = [name for name in lazy.columns if name.startswith("cluster ")]
    known = [
        nan_to_null(nw.col(name)) if schema[name].is_float() else nw.col(name) for name in clusters
    ]
    if not known:
        return lazy.rows, None
    is_known = nw.all_horizontal(*(~one.is_null() for one in known), ignore_nulls=False)
    lacking = lazy.rows.filter(~is_known)
    one = fetch(lacking.select(*lazy.columns).head(1))
    return lazy.rows.filter(is_known), (one, _count(lacking)) if len(one) else None


def _count(rows: nw.LazyFrame[Any]) -> int:
    return int(fetch(rows.select(nw.len().alias("rows")))["rows"].to_list()[0])


def _take_lowest(
    drawn: nw.DataFrame[Any], wanted: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows with the lowest draws, and the sizes of the sets of rows with equal draws."""
    draws = [drawn[name].to_numpy() for name in _DRAWS]
    order = order_by(draws)
    if not order.size:
        return order, order
    ends = np.append(run_starts(*(one[order] for one in draws))[1:], len(order))
    last = min(int(np.searchsorted(ends, wanted)), len(ends) - 1)
    return order[: ends[last]], np.diff(ends[: last + 1], prepend=0)


def _choose_numbers(inputs: Inputs, schema: Mapping[str, Any]) -> list[str]:
    """Return the columns that the draws depend on: all numeric ones, or those of the cluster."""
    given = inputs.cluster
    if given is None:
        return [name for name, dtype in schema.items() if dtype.is_numeric()]
    names = [str(one) for one in (given if isinstance(given, (list, tuple)) else [given])]
    for name in names:
        if not schema[name].is_numeric():
            rule = f"made of numbers with {argument('sample_rows')}"
            raise InputError("cluster", rule, name, "Whole clusters are drawn, by their numbers.")
    return names


def _check_distinct(sizes: NDArray[np.intp], numbers: Sequence[str]) -> None:
    """Raise InputError if many rows are equal: equal rows are taken together, not at random."""
    equal = int(sizes[sizes > 1].sum())
    if equal > _MOST_EQUAL * sizes.sum():
        raise InputError(
            f"{argument('data')} must have rows that differ in their numbers ({len(numbers)} "
            f"columns) with {argument('sample_rows')}, which takes all equal rows or none; got "
            f"{equal:,} equal ones among {sizes.sum():,}. Add a column that numbers the rows."
        )


def add_draws(
    rows: nw.LazyFrame[Any], numbers: Mapping[str, Any], seed: int, share: float
) -> nw.LazyFrame[Any]:
    """Return this share of the rows, with two draws from 0 to 1 that these columns determine.

    Each column enters on four scales: digits before and after the decimal point all matter. Three
    such sums are multiplied to mix them. Every engine rounds these operations in the same way, and
    no long expression is repeated, which would make queries grow.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(SAMPLE,)))
    plain: dict[str, nw.Expr] = {}
    for name, kind in numbers.items():
        plain[name], plain[f"{name} sign"] = _size_and_sign(nw.col(name), kind)
    rows = rows.with_columns(**plain)
    first, second = (_fraction(_product(list(numbers), rng)) for _ in _DRAWS)
    rows = rows.with_columns(first.alias(_DRAWS[0])).filter(nw.col(_DRAWS[0]) < share)
    return rows.with_columns(second.alias(_DRAWS[1]))  # orders rows with the same first draw


def _product(numbers: Sequence[str], rng: np.random.Generator) -> nw.Expr:
    product = nw.lit(float(rng.uniform(500, 1000)))
    for _ in range(3):
        total = nw.lit(float(rng.random()))
        for name in numbers:
            scales = np.exp(rng.uniform(*np.log(_SCALES))).tolist()
            for scale, weight in zip(scales, rng.uniform(1e4, 1e5, 4).tolist(), strict=True):
                total = total + _fraction(nw.col(name) * scale) * weight
            total = total + nw.col(f"{name} sign") * float(rng.random())
        product = product * (_fraction(total) + float(rng.uniform(0.5, 1)))
    return product


def _fraction(number: nw.Expr) -> nw.Expr:
    """Return the fractional part of a nonnegative number.

    One is added because engines define remainders differently below 1. From 1 on they agree: all
    fractions are multiples of 2⁻⁵². (Rounding down would not do: Spark returns 64-bit integers,
    which cannot hold large numbers.)
    """
    return (number + 1.0) % 1.0


def _size_and_sign(column: nw.Expr, kind: Any) -> tuple[nw.Expr, nw.Expr]:
    """Return the absolute value, and 1 for negative, 0.5 for missing and 0 for other values."""
    column = column.cast(nw.Float64)
    if kind.is_float():
        column = nan_to_null(column)
    sign = nw.when(column < 0.0).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    sign = nw.when(column.is_null()).then(nw.lit(0.5)).otherwise(sign)
    return column.fill_null(0.0).abs().clip(0.0, _LARGEST), sign
