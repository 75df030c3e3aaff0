"""A sample of the rows of a lazy frame: the same on every engine, in any order of the rows.

Each row has a number from 0 to 1 that all its numbers and the seed decide, and the rows with the
lowest ones are taken. The number is made by sums and products in double precision, which
are rounded in one way everywhere. With clusters it is made of the cluster alone, and whole clusters
are taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.sorting import order_by, run_starts
from fairperm._utils.streams import SAMPLE
from fairperm.data.lazy.backends import expression, fetched, schema_of, stage, without_nan
from fairperm.data.lazy.counting import Reading
from fairperm.data.sources import Sampled
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.data.arguments import Inputs
    from fairperm.metrics.definition import AnyMetric

_SCALES = ([1e3, 1e-8, 1e-2, 1e11], [1e4, 1e-7, 1e-1, 1e12])  # factors are between these
_LARGEST = 1e290
_DRAWS = ("first draw", "second draw")
_MOST_EQUAL = 0.01  # of the sample's rows may be equal to others


def sampled(inputs: Inputs, metric: AnyMetric, frame: nw.LazyFrame[Any], wanted: int) -> Inputs:
    """Return the arguments with a sample of the rows as their data."""
    schema = schema_of(frame)
    numbers = _numbers(inputs, schema)
    named = {f"number {i}": name for i, name in enumerate(numbers)}
    others = {name: expression(one, frame) for name, one in named.items()}
    reading = Reading.of(inputs, metric, frame, others)
    with stage("drawing a sample of the rows", frame):
        counted = fetched(reading.rows.select(nw.len().alias("rows")))
        total = int(counted["rows"].to_list()[0])
        # a few more than wanted, so that they are hardly ever too few
        share = min(1.0, (wanted + 6 * wanted**0.5 + 20) / max(total, 1))
        types = {name: schema[one] for name, one in named.items()}
        drawn = with_draws(reading.rows, types, inputs.seed, share)
        found = fetched(drawn.select(*reading.columns, *_DRAWS))
    taken, sizes = _taken(found, wanted)
    if inputs.cluster is None:
        _check_distinct(sizes, numbers)
    data = {user: found[name][taken.tolist()] for name, user in reading.columns.items()}
    note = f"Tested on a sample of {len(taken):,} of {total:,} rows, drawn by seed {inputs.seed}."
    return replace(inputs, data=Sampled(data, note), sample_rows=None)


def _taken(found: nw.DataFrame[Any], wanted: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows with the lowest draws, equal ones together, and how many are equal."""
    draws = [found[name].to_numpy() for name in _DRAWS]
    order = order_by(draws)
    if not order.size:
        return order, order
    ends = np.append(run_starts(*(one[order] for one in draws))[1:], len(order))
    last = min(int(np.searchsorted(ends, wanted)), len(ends) - 1)
    return order[: ends[last]], np.diff(ends[: last + 1], prepend=0)


def _numbers(inputs: Inputs, schema: Mapping[str, Any]) -> list[str]:
    """Return the columns that decide which rows are taken: all numbers, or the cluster's."""
    given = inputs.cluster
    if given is None:
        return [name for name, dtype in schema.items() if dtype.is_numeric()]
    names = [str(one) for one in (given if isinstance(given, (list, tuple)) else [given])]
    for name in names:
        if not schema[name].is_numeric():
            hint = "Whole clusters are drawn, by their numbers."
            raise InputError("cluster", "made of numbers with sample_rows", name, hint)
    return names


def _check_distinct(sizes: NDArray[np.intp], numbers: Sequence[str]) -> None:
    """Refuse a sample in which equal rows are many: they come together, and are no random rows."""
    equal = int(sizes[sizes > 1].sum())
    if equal > _MOST_EQUAL * sizes.sum():
        raise InputError(
            f"data must have rows that differ in their numbers ({len(numbers)} columns) with "
            f"sample_rows, which takes equal rows together or not at all; got {equal:,} equal ones "
            f"among {sizes.sum():,}. Add a column that numbers the rows."
        )


def with_draws(
    rows: nw.LazyFrame[Any], numbers: Mapping[str, Any], seed: int, share: float
) -> nw.LazyFrame[Any]:
    """Return this share of the rows, with two numbers from 0 to 1 made of these columns each.

    A column is looked at on four scales, so that digits before and after the point matter. What
    they add up to is stirred by multiplying three such sums; only operations that every engine
    rounds alike have a part in it, and no long one twice, by which queries would grow.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(SAMPLE,)))
    plain: dict[str, nw.Expr] = {}
    for name, kind in numbers.items():
        plain[name], plain[f"{name} sign"] = _size_and_sign(nw.col(name), kind)
    rows = rows.with_columns(**plain)
    first, second = (_fraction(_product(list(numbers), rng)) for _ in _DRAWS)
    rows = rows.with_columns(first.alias(_DRAWS[0])).filter(nw.col(_DRAWS[0]) < share)
    return rows.with_columns(second.alias(_DRAWS[1]))  # parts rows that have the same first one


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
    """Return what is left of a number from 0 on without its whole part.

    One is added because engines define remainders differently, which for numbers from 1 on is the
    same: all of their fractions are multiples of 2⁻⁵². (What is rounded down must be an integer of
    64 bits in Spark, and large numbers are not.)
    """
    return (number + 1.0) % 1.0


def _size_and_sign(column: nw.Expr, kind: Any) -> tuple[nw.Expr, nw.Expr]:
    """Return the column's size as a number from 0 on, and what its sign (or lack) adds."""
    column = column.cast(nw.Float64)
    if kind.is_float():
        column = without_nan(column)
    sign = nw.when(column < 0.0).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    sign = nw.when(column.is_null()).then(nw.lit(0.5)).otherwise(sign)
    return column.fill_null(0.0).abs().clip(0.0, _LARGEST), sign
