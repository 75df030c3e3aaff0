"""What the rows of a lazy frame contribute to a metric, added up where they are.

The normal limit of a gap needs each group's number of rows, and mean and variance of what they
contribute; that is one group-by. Rows of two kinds which have the same mean and variance then stand
for all; and the same kurtosis, which tells whether the variance is that of a few rows only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm.data.lazy.backends import check_numbers, fetched, floats_of, stage, without_nan
from fairperm.data.lazy.numpy_expressions import Elsewhere
from fairperm.data.sources import Counted, Sums
from fairperm.errors import InputError
from fairperm.metrics.definition import columns_of, metrics_of_totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairperm.data.arguments import Inputs
    from fairperm.data.lazy.counting import Reading
    from fairperm.metrics.definition import AnyMetric, Metric

    Array = NDArray[np.float64]

_COUNT = "rows"
_POWERS = ("cube", "fourth")
_FAR = 1e6  # times the variance: a mean with such a square leaves fourth powers too few digits


def summed(reading: Reading, metric: AnyMetric) -> Inputs:
    """Return the arguments with two kinds of row for all that are equal but for their numbers."""
    if reading.given.sample_weight is not None:
        rule, hint = f"left out for sums of {metric.name}", "Pass sample_rows=1_000_000."
        raise InputError("sample_weight", rule, reading.given.sample_weight, hint)
    numbers = [name for name in metric.kind.number_columns if name in reading.columns]
    totals = metrics_of_totals([metric])
    if not totals or not numbers:
        raise _not_summed(metric)
    # of what a label makes of the numbers, both are added up: which label is which is seen later
    contributions = [_contributions(totals[0], numbers, label) for label in (1.0, 0.0)]
    with stage("adding up what rows contribute", reading.rows):
        found = fetched(_sums(reading, numbers, [one.varying for one in contributions]))
    return _inputs(reading, found, numbers, contributions)


@dataclass(frozen=True, slots=True)
class _Contributions:
    """What rows of one label contribute: numbers that are the same for all, and one that varies."""

    constant: list[float | None]
    varying: nw.Expr | None


def _sums(
    reading: Reading, numbers: Sequence[str], varying: Sequence[nw.Expr | None]
) -> nw.LazyFrame[Any]:
    """Return number, moments and ends of rows that differ in their numbers alone."""
    schema, known = reading.rows.collect_schema(), {}
    for name in numbers:
        check_numbers(name, reading.columns[name], schema[name])
        column = nw.col(name)
        if schema[name].is_float():
            column = without_nan(column)
        known[name] = column.cast(nw.Float64)
    rows = reading.rows.with_columns(**known)
    lacking = {f"no {name}": nw.col(name).is_null() for name in numbers}
    parts = {f"part {i}": one for i, one in enumerate(varying) if one is not None}
    what = [nw.len().alias(_COUNT)]
    for name in parts:
        # rows for which an engine has no number: a mean would leave them out
        what += [nw.col(name).count().alias(f"known {name}")]
        what += [nw.col(name).mean().alias(f"mean {name}")]
        what += [nw.col(name).var(ddof=0).alias(f"variance {name}")]
        what += [nw.col(f"{power} {name}").mean().alias(f"{power} {name}") for power in _POWERS]
    for name in numbers:
        what += [nw.col(name).min().alias(f"low {name}"), nw.col(name).max().alias(f"high {name}")]
    kept = [name for name in reading.keys if name not in numbers]
    powers = {
        f"{power} {name}": one ** (3 + i)
        for name, one in parts.items()
        for i, power in enumerate(_POWERS)
    }
    return rows.with_columns(**lacking, **parts, **powers).group_by(*kept, *lacking).agg(*what)


def _contributions(metric: Metric, numbers: Sequence[str], label: float) -> _Contributions:
    """Return what rows of this label contribute, as an engine can compute it."""
    varying: nw.Expr | None = None
    every: list[float | None] = []
    for one in metric.contributions.values():
        given = {
            name: Elsewhere(nw.col(name)) if name in numbers else label for name in columns_of(one)
        }
        try:
            value = one(**given)
            constant = None if isinstance(value, Elsewhere) else float(value)
        except Exception as error:  # a definition may use anything that NumPy has
            raise _not_summed(metric) from error
        if constant is None:
            if varying is not None:
                raise _not_summed(metric)
            varying = value.number()
        every.append(constant)
    return _Contributions(every, varying)


def _not_summed(metric: AnyMetric) -> InputError:
    rule = "one whose contributions an engine can add up (n_resamples=0, many distinct rows)"
    return InputError("metric", rule, metric.name, "Pass sample_rows=1_000_000 instead.")


def _inputs(
    reading: Reading,
    found: nw.DataFrame[Any],
    numbers: Sequence[str],
    contributions: Sequence[_Contributions],
) -> Inputs:
    """Return the arguments with rows of the lowest numbers, and fewer of the highest."""
    count = found[_COUNT].to_numpy().astype(np.int64)
    few = _few(found, count, contributions)
    counts = np.concatenate([count - few, few])
    there = np.flatnonzero(counts)
    twice = np.tile(np.arange(len(count)), 2)[there].tolist()
    points = (_points(found, count, few, i, one) for i, one in enumerate(contributions))
    sums = Sums(*(one[there] for one in points))
    values: dict[str, Any] = {
        name: found[name][twice] for name in reading.keys if name not in numbers
    }
    for name in numbers:
        ends = [floats_of(found[f"{end} {name}"]) for end in ("low", "high")]
        values[name] = np.concatenate(ends)[there]
    changed = reading.with_data(values, Counted(None, counts[there], sums=sums))
    # numbers by themselves: a column that is used twice may also be something else
    return replace(changed, **{name: values[name] for name in numbers})


def _few(
    found: nw.DataFrame[Any], count: NDArray[np.int64], contributions: Sequence[_Contributions]
) -> NDArray[np.int64]:
    """Return how many rows are of the rarer kind: so few that the kurtosis is that of all rows.

    Of two kinds with shares p and 1 − p it is 1/(p(1 − p)) − 3. Of both labels' it is the larger.
    """
    kurtosis = np.ones(len(count))  # of two equal shares; and where it is not known
    for i, one in enumerate(contributions):
        if one.varying is not None:
            kurtosis = np.fmax(kurtosis, _kurtosis(found, i))
    share = (1 - np.sqrt(1 - 4 / (kurtosis + 3))) / 2
    return np.minimum(np.maximum(np.round(share * count), 1), count // 2).astype(np.int64)


def _kurtosis(found: nw.DataFrame[Any], i: int) -> Array:
    """Return the kurtosis of what rows contribute, from mean powers; NaN where rounding rules."""
    mean, variance, cube, fourth = (
        floats_of(found[f"{what} part {i}"]) for what in ("mean", "variance", *_POWERS)
    )
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        square = variance + mean**2
        moment = fourth - 4 * mean * cube + 6 * mean**2 * square - 3 * mean**4
        return np.where(mean**2 < _FAR * variance, moment / variance**2, np.nan)


def _points(
    found: nw.DataFrame[Any],
    count: NDArray[np.int64],
    few: NDArray[np.int64],
    i: int,
    one: _Contributions,
) -> Array:
    """Return what rows of either kind contribute: together they have mean and variance of all.

    With m and n rows they are at mean − s·√(n/m) and mean + s·√(m/n), s being the deviation.
    """
    points = np.empty((2, len(count), len(one.constant)))
    low, high = count - few, np.maximum(few, 1)
    for j, constant in enumerate(one.constant):
        if constant is not None:
            points[:, :, j] = constant
            continue
        known, mean, variance = (
            floats_of(found[f"{what} part {i}"]) for what in ("known", "mean", "variance")
        )
        mean = np.where(known == count, mean, np.nan)
        spread = np.sqrt(np.maximum(variance, 0.0))  # of one row, an engine may know no variance
        single = count == 1
        points[0, :, j] = mean - np.where(single, 0.0, spread * np.sqrt(high / low))
        points[1, :, j] = mean + np.where(single, 0.0, spread * np.sqrt(low / high))
    return points.reshape(2 * len(count), len(one.constant))
