"""Moments of the contributions of rows in a lazy frame, by one group-by.

The normal limit of a gap needs each group's number of rows, and the mean and variance of their
contributions. Two kinds of rows with the same mean and variance then stand for all rows; they also
have the same kurtosis, which shows whether the variance comes from a few rows only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm.data.columns import LARGEST_INTEGER, Source, describe_column, inexact_error
from fairperm.data.lazy.backends import check_numbers, fetch, nan_to_null, stage, to_floats
from fairperm.data.lazy.numpy_expressions import ColumnExpression
from fairperm.errors import InputError, argument
from fairperm.metrics.definition import columns_of, metrics_of_totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairperm._utils.arrays import Array, Integers
    from fairperm.data.arguments import Inputs
    from fairperm.data.lazy.counting import LazyRows
    from fairperm.metrics.definition import AnyMetric, Metric

_COUNT = "rows"
_POWERS = ("cube", "fourth")
_MAX_SQUARED_MEAN = (
    1e6  # if mean² exceeds this times the variance, fourth powers have too few digits
)


def sum_contributions(lazy: LazyRows, metric: AnyMetric) -> Inputs:
    """Return the inputs with two rows in place of all that differ only in their numbers."""
    numbers, contributions = _express_metric(lazy, metric)
    with stage("adding up the contributions of rows", lazy.rows):
        sums = fetch(_query_moments(lazy, numbers, [one.varying for one in contributions]))
    return _make_inputs(lazy, sums, numbers, contributions)


def has_sums(lazy: LazyRows, metric: AnyMetric) -> bool:
    """Whether the contributions of these rows to the metric can be added up."""
    try:
        _express_metric(lazy, metric)
    except InputError:
        return False
    return True


def _express_metric(lazy: LazyRows, metric: AnyMetric) -> tuple[list[str], list[_Contributions]]:
    """Return the columns of numbers, and the contributions of rows of either label."""
    if lazy.inputs.sample_weight is not None:
        raise InputError(
            f"{argument('sample_weight')} cannot be used for sums of {metric.name}. "
            "Pass a random sample of the rows instead."
        )
    numbers = [name for name in metric.kind.number_columns if name in lazy.columns]
    totals = metrics_of_totals([metric])
    if not totals or not numbers:
        raise _cannot_sum(metric)
    # both are added up for every row: which labels are positive is decided later
    return numbers, [_express_contributions(totals[0], numbers, label) for label in (1.0, 0.0)]


@dataclass(frozen=True, slots=True)
class _Contributions:
    """The contributions of rows with one label: constants, and None for the one that varies."""

    constant: list[float | None]
    varying: nw.Expr | None


def _query_moments(
    lazy: LazyRows, numbers: Sequence[str], varying: Sequence[nw.Expr | None]
) -> nw.LazyFrame[Any]:
    """Return the count, moments and range of the rows that differ only in their numbers."""
    schema, known = lazy.rows.collect_schema(), {}
    for name in numbers:
        check_numbers(name, lazy.columns[name], schema[name])
        column = nw.col(name)
        if schema[name].is_float():
            column = nan_to_null(column)
        known[name] = column.cast(nw.Float64)
    rows = lazy.rows.with_columns(**known)
    lacking = {f"no {name}": nw.col(name).is_null() for name in numbers}
    parts = {f"part {i}": one for i, one in enumerate(varying) if one is not None}
    totals = [nw.len().alias(_COUNT)]
    for name in parts:
        part = nw.col(name)
        totals += [
            part.count().alias(f"known {name}"),  # the mean skips rows without a number
            part.mean().alias(f"mean {name}"),
            part.var(ddof=0).alias(f"variance {name}"),
        ]
        totals += [nw.col(f"{power} {name}").mean().alias(f"{power} {name}") for power in _POWERS]
    for name in numbers:
        column = nw.col(name)
        totals += [column.min().alias(f"low {name}"), column.max().alias(f"high {name}")]
    kept = [name for name in lazy.keys if name not in numbers]
    powers = {
        f"{power} {name}": one ** (3 + i)
        for name, one in parts.items()
        for i, power in enumerate(_POWERS)
    }
    return rows.with_columns(**lacking, **parts, **powers).group_by(*kept, *lacking).agg(*totals)


def _express_contributions(metric: Metric, numbers: Sequence[str], label: float) -> _Contributions:
    """Return the contributions of rows with this label, as expressions for the engine."""
    varying: nw.Expr | None = None
    constants: list[float | None] = []
    for contribution in metric.contributions.values():
        given = {
            name: ColumnExpression(nw.col(name)) if name in numbers else label
            for name in columns_of(contribution)
        }
        try:
            value = contribution(**given)
            constant = None if isinstance(value, ColumnExpression) else float(value)
        except Exception as error:  # a definition may use any function of NumPy
            raise _cannot_sum(metric) from error
        if constant is None:
            if varying is not None:
                raise _cannot_sum(metric)
            varying = value.number()
        constants.append(constant)
    return _Contributions(constants, varying)


def _cannot_sum(metric: AnyMetric) -> InputError:
    normal = argument("n_resamples", 0)
    rule = f"one whose contributions an engine can add up ({normal}, many distinct rows)"
    hint = "Pass a random sample of the rows instead."
    return InputError("metric", rule, metric.name, hint)


def _make_inputs(
    lazy: LazyRows,
    sums: nw.DataFrame[Any],
    numbers: Sequence[str],
    contributions: Sequence[_Contributions],
) -> Inputs:
    """Return the inputs with rows of the lowest numbers, and fewer rows of the highest."""
    count = sums[_COUNT].to_numpy().astype(np.int64)
    few = _count_rarer(sums, count, contributions)
    counts = np.concatenate([count - few, few])
    present = np.flatnonzero(counts)
    twice = np.tile(np.arange(len(count)), 2)[present].tolist()
    positive, other = (
        _place_points(sums, count, few, i, one)[present] for i, one in enumerate(contributions)
    )
    values: dict[str, Any] = {name: sums[name][twice] for name in lazy.keys if name not in numbers}
    schema = lazy.rows.collect_schema()
    for name in numbers:
        ends = [to_floats(sums[f"{end} {name}"]) for end in ("low", "high")]
        values[name] = np.concatenate(ends)[present]
        if schema[name].is_integer() and (np.abs(values[name]) > LARGEST_INTEGER).any():
            largest = values[name][np.nanargmax(np.abs(values[name]))]
            raise inexact_error(describe_column(name, lazy.columns[name]), int(largest))
    rows = Source(count=counts[present], contributions=(positive, other))
    return lazy.replace_data(values, rows, numbers)


def _count_rarer(
    sums: nw.DataFrame[Any], count: Integers, contributions: Sequence[_Contributions]
) -> Integers:
    """Return how many rows are of the rarer kind: few enough to have the kurtosis of all rows."""
    # Two kinds with shares p and 1 − p have kurtosis 1/(p(1 − p)) − 3. The larger kurtosis of the
    # two labels counts.
    kurtosis = np.ones(len(count))  # that of equal shares, also if it is unknown
    for i, one in enumerate(contributions):
        if one.varying is not None:
            kurtosis = np.fmax(kurtosis, _kurtosis(sums, i))
    share = (1 - np.sqrt(1 - 4 / (kurtosis + 3))) / 2
    return np.minimum(np.maximum(np.round(share * count), 1), count // 2).astype(np.int64)


def _kurtosis(sums: nw.DataFrame[Any], i: int) -> Array:
    """Return the kurtosis of contributions, from mean powers; NaN if rounding dominates it."""
    mean, variance, cube, fourth = (
        to_floats(sums[f"{moment} part {i}"]) for moment in ("mean", "variance", *_POWERS)
    )
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        square = variance + mean**2
        moment = fourth - 4 * mean * cube + 6 * mean**2 * square - 3 * mean**4
        return np.where(mean**2 < _MAX_SQUARED_MEAN * variance, moment / variance**2, np.nan)


def _place_points(
    sums: nw.DataFrame[Any], count: Integers, few: Integers, i: int, one: _Contributions
) -> Array:
    """Return the contributions of both kinds, which have the mean and variance of all rows."""
    # with m and n rows they are mean − s·√(n/m) and mean + s·√(m/n), where s is the standard
    # deviation
    points = np.empty((2, len(count), len(one.constant)))
    low, high = count - few, np.maximum(few, 1)
    for j, constant in enumerate(one.constant):
        if constant is not None:
            points[:, :, j] = constant
            continue
        known, mean, variance = (
            to_floats(sums[f"{moment} part {i}"]) for moment in ("known", "mean", "variance")
        )
        mean = np.where(known == count, mean, np.nan)
        spread = np.sqrt(np.maximum(variance, 0.0))  # an engine may have no variance for one row
        single = count == 1
        points[0, :, j] = mean - np.where(single, 0.0, spread * np.sqrt(high / low))
        points[1, :, j] = mean + np.where(single, 0.0, spread * np.sqrt(low / high))
    return points.reshape(2 * len(count), len(one.constant))
