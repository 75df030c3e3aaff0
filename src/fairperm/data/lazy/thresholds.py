"""Scores of a lazy frame, counted between the thresholds of a sweep where they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm.data.lazy import counting as lazy
from fairperm.data.lazy.backends import fetched, floats_of, lazy_frame, schema_of, stage
from fairperm.data.reading import read_table
from fairperm.data.sources import Counted, Fetched, Source, as_floats
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairperm.data.arguments import Inputs
    from fairperm.data.lazy.counting import Reading
    from fairperm.data.table import Table
    from fairperm.metrics.definition import AnyMetric

    Array = NDArray[np.float64]
    Float = type[np.floating[Any]]

MOST_CUTS = 1_000  # every one is a comparison in the query
_HINT = "Collect the rows, or a sample of them, and pass that."
_LOWEST, _HIGHEST, _COUNT, _MISSING = "lowest", "highest", "rows", "missing"


def read_scores(
    inputs: Inputs,
    metric: AnyMetric,
    thresholds_of: Callable[[Table], Array],
    *,
    need_all: bool,
) -> tuple[Table, Array, Float]:
    """Read labels and scores, and find the thresholds; return the scores' own precision, too.

    ``need_all`` tells that the thresholds need all scores, not just the lowest and the highest.
    Of a lazy frame with very many distinct scores only the numbers of rows between thresholds are
    fetched: each row has the threshold below it, or the lowest score, for its score.
    """
    frame = lazy_frame(inputs.data)
    if frame is None:
        given = inputs.y_score
        scores = as_floats(*Source(inputs.data).find("y_score", given))
        read = Fetched(given, scores) if isinstance(given, str) else scores
        table = read_table(replace(inputs, y_score=read), metric)
        return table, thresholds_of(table), scores.dtype.type
    reading = lazy.Reading.of(inputs, metric, frame)
    kind = lazy.precision(schema_of(frame)[reading.columns["y_score"]])
    found = reading.few_kinds()
    if found is not None:
        table = _table(reading.inputs(found), metric)
        return table, thresholds_of(table), kind
    if need_all:
        raise lazy.too_many(metric, _HINT)
    thresholds, lowest = _thresholds(reading, metric, thresholds_of)
    with np.errstate(over="ignore"):
        cuts = thresholds.astype(kind).astype(np.float64)
    score = nw.col("y_score")
    between = nw.when(~score.is_null()).then(_between(score, cuts, lowest, 0, len(cuts)))
    cut = replace(reading, rows=reading.rows.with_columns(y_score=between))
    found = cut.grouped("counting rows between thresholds")
    if len(found) > lazy.MOST_KINDS:
        raise lazy.too_many(metric, _HINT)
    return _table(cut.inputs(found), metric), thresholds, kind


def _table(inputs: Inputs, metric: AnyMetric) -> Table:
    return read_table(inputs, metric, Source(inputs.data))


def _thresholds(
    reading: Reading, metric: AnyMetric, thresholds_of: Callable[[Table], Array]
) -> tuple[Array, float]:
    """Return the thresholds, from the lowest and the highest score of each kind of row."""
    score, kept = nw.col("y_score"), [name for name in reading.keys if name != "y_score"]
    with stage("finding the range of the scores", reading.rows):
        known = reading.rows.with_columns(score.is_null().alias(_MISSING))
        ends = fetched(
            known.group_by(*kept, _MISSING).agg(
                score.min().alias(_LOWEST), score.max().alias(_HIGHEST), nw.len().alias(_COUNT)
            )
        )
    twice = np.tile(np.arange(len(ends)), 2)
    count = ends[_COUNT].to_numpy().astype(np.int64)
    low, high = (floats_of(ends[name]) for name in (_LOWEST, _HIGHEST))
    columns = {reading.columns[name]: ends[name][twice.tolist()] for name in kept}
    both = Counted(columns, np.concatenate([count, np.zeros_like(count)]))
    scores = Fetched(reading.columns["y_score"], np.concatenate([low, high]))
    inputs = replace(reading.given, data=both, y_score=scores, y_pred=None)
    table = _table(inputs, metric)
    thresholds = thresholds_of(table)
    if len(thresholds) > MOST_CUTS:
        rule = f"at most {MOST_CUTS:,} for a lazy frame with so many distinct scores"
        raise InputError("thresholds", rule, len(thresholds), "101 show a curve well.")
    return thresholds, float(table.columns["y_score"].min())


def _between(score: nw.Expr, cuts: Array, lowest: float, first: int, last: int) -> nw.Expr:
    """Return the highest cut that a score reaches, of all from ``first`` to ``last``, by halves."""
    if first == last:
        return nw.lit(lowest if first == 0 else float(cuts[first - 1]))
    middle = (first + last + 1) // 2
    return (
        nw.when(score >= float(cuts[middle - 1]))
        .then(_between(score, cuts, lowest, middle, last))
        .otherwise(_between(score, cuts, lowest, first, middle - 1))
    )
