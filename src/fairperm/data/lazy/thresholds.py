"""Scores for a sweep of thresholds; those of a lazy frame are counted between thresholds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.arrays import Array
from fairperm.data.arguments import Inputs
from fairperm.data.columns import Source, as_floats
from fairperm.data.indexes import check_input_indexes
from fairperm.data.lazy import counting
from fairperm.data.lazy.backends import fetch, lazy_frame, read_schema, stage, to_floats
from fairperm.data.lazy.counting import LazyRows
from fairperm.data.reading import read_table
from fairperm.data.sample import Sample
from fairperm.errors import InputError
from fairperm.metrics.definition import AnyMetric

Float = type[np.floating[Any]]

MAX_THRESHOLDS = 1_000  # every one is a comparison in the query
_HINT = "Collect the rows, or a sample of them, and pass those."
_LOWEST, _HIGHEST, _COUNT, _MISSING = "lowest", "highest", "rows", "missing"


def read_scores(
    inputs: Inputs, metric: AnyMetric, thresholds_of: Callable[[Sample], Array], *, need_all: bool
) -> tuple[Sample, Array, Float]:
    """Return the table of labels and scores, the thresholds, and the precision of the scores.

    ``need_all`` is True if the thresholds depend on all scores, not just the lowest and the
    highest. From a lazy frame with very many distinct scores, only the numbers of rows between
    thresholds are fetched: each score is replaced by the threshold below it, or the lowest score.
    """
    frame = lazy_frame(inputs.data)
    if frame is None:
        check_input_indexes(inputs)
        source = Source.of(inputs.data)
        scores = as_floats(*source.find("y_score", inputs.y_score))
        if isinstance(inputs.y_score, str):
            inputs = replace(inputs, data=replace(source, values={"y_score": scores}))
        else:
            inputs = replace(inputs, y_score=scores)
        table = read_table(inputs, metric)
        return table, thresholds_of(table), scores.dtype.type
    lazy = counting.LazyRows.select(inputs, metric, frame)
    precision = counting.precision(read_schema(frame)[lazy.columns["y_score"]])
    counted = lazy.count_if_few()
    if counted is not None:
        table = _read_counted(lazy.make_inputs(counted), metric)
        return table, thresholds_of(table), precision
    if need_all:
        raise counting.too_many_rows(metric, _HINT)
    thresholds, lowest = _choose_thresholds(lazy, metric, thresholds_of)
    with np.errstate(over="ignore"):
        cuts = thresholds.astype(precision).astype(np.float64)
    score = nw.col("y_score")
    rounded = nw.when(~score.is_null()).then(_round_down(score, cuts, lowest, 0, len(cuts)))
    lazy = replace(lazy, rows=lazy.rows.with_columns(y_score=rounded))
    counted = lazy.count("counting rows between thresholds")
    if len(counted) > counting.MAX_KINDS:
        raise counting.too_many_rows(metric, _HINT)
    return _read_counted(lazy.make_inputs(counted), metric), thresholds, precision


def _read_counted(inputs: Inputs, metric: AnyMetric) -> Sample:
    return read_table(inputs, metric, Source.of(inputs.data))


def _choose_thresholds(
    lazy: LazyRows, metric: AnyMetric, thresholds_of: Callable[[Sample], Array]
) -> tuple[Array, float]:
    """Return the thresholds, from the lowest and highest score of each kind of row."""
    score, kept = nw.col("y_score"), [name for name in lazy.keys if name != "y_score"]
    with stage("finding the range of the scores", lazy.rows):
        known = lazy.rows.with_columns(score.is_null().alias(_MISSING))
        ends = fetch(
            known.group_by(*kept, _MISSING).agg(
                score.min().alias(_LOWEST), score.max().alias(_HIGHEST), nw.len().alias(_COUNT)
            )
        )
    twice = np.tile(np.arange(len(ends)), 2).tolist()
    count = ends[_COUNT].to_numpy().astype(np.int64)
    values: dict[str, Any] = {name: ends[name][twice] for name in kept}
    values["y_score"] = np.concatenate([to_floats(ends[name]) for name in (_LOWEST, _HIGHEST)])
    both = Source(count=np.concatenate([count, np.zeros_like(count)]))
    table = _read_counted(lazy.replace_data(values, both), metric)
    thresholds = thresholds_of(table)
    if len(thresholds) > MAX_THRESHOLDS:
        rule = f"at most {MAX_THRESHOLDS:,} for a lazy frame with so many distinct scores"
        raise InputError("thresholds", rule, len(thresholds), "101 are enough for a curve.")
    return thresholds, float(table.columns["y_score"].min())


def _round_down(score: nw.Expr, cuts: Array, lowest: float, first: int, last: int) -> nw.Expr:
    """Return the highest of the cuts ``first`` to ``last`` that a score reaches, by bisection."""
    if first == last:
        return nw.lit(lowest if first == 0 else float(cuts[first - 1]))
    middle = (first + last + 1) // 2
    return (
        nw.when(score >= float(cuts[middle - 1]))
        .then(_round_down(score, cuts, lowest, middle, last))
        .otherwise(_round_down(score, cuts, lowest, first, middle - 1))
    )
