"""Lazy frames: equal rows are counted where they are, and only the counts are fetched.

One group-by in the engine that has the rows (DuckDB, Spark, Polars, …) makes the same table of
distinct rows as reading them would, so that every test gives the same numbers to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._columns import as_narwhals
from fairperm._inputs import check_cut, cut_of
from fairperm._options import integer, number
from fairperm._rank import RankMetric
from fairperm._source import Counted
from fairperm.errors import InputError, InputTypeError, did_you_mean, listed, problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairperm._inputs import Inputs
    from fairperm.metrics import AnyMetric

MOST_KINDS = 1 << 20  # distinct rows that are fetched; beyond that, scores are put into bins
DEFAULT_BINS = 1 << 14
_OF_LABELS = {"binary", "labels", "several"}
_OTHERS = ("sensitive_features", "control_features", "cluster", "sample_weight")
_PREDICTION, _COUNT = "prediction", "rows"
_LOWEST, _HIGHEST = "lowest score", "highest score"


def is_lazy(data: object) -> bool:
    """Tell whether rows are somewhere else."""
    return isinstance(as_narwhals("data", data), nw.LazyFrame)


def counted(inputs: Inputs, metric: AnyMetric) -> Inputs:
    """Return the inputs with their rows counted, as far as the metric tells them apart."""
    frame = as_narwhals("data", inputs.data)
    if not isinstance(frame, nw.LazyFrame):
        return inputs
    reading = _Reading.of(inputs, metric, frame.collect_schema())
    rows = frame.select(**reading.expressions())
    bins = None
    # the first rows show whether there are too many kinds, before the engine groups all of them
    found = reading.grouped(rows.head(2 * MOST_KINDS) if reading.keeps_numbers else rows)
    if reading.keeps_numbers and len(found) <= MOST_KINDS:
        found = reading.grouped(rows)
    if len(found) > MOST_KINDS:
        bins = _bins(inputs, metric)
        found = reading.grouped(_binned(rows, bins))
        if len(found) > MOST_KINDS:
            raise _too_many(metric)
    return reading.inputs(found, bins)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Which columns of a lazy frame stand for which arguments.

    ``cut`` is the threshold that makes predictions of the scores, if they are to be made.
    """

    given: Inputs
    columns: Mapping[str, str]
    keeps_scores: bool
    has_fractions: bool
    of_labels: bool
    cut: float | None

    @classmethod
    def of(cls, inputs: Inputs, metric: AnyMetric, schema: Mapping[str, Any]) -> _Reading:
        """Find the columns that the metric needs, and those of the groups, strata and so on."""
        of_labels = metric.kind in _OF_LABELS
        wanted = {"y_true", *metric.columns} if of_labels else {*metric.columns}
        makes = of_labels and inputs.y_pred is None and inputs.y_score is not None
        makes = makes and "y_pred" in wanted
        keeps = "y_score" in wanted
        columns: dict[str, str] = {}
        for name in ("y_true", "y_pred", "y_score"):
            value = getattr(inputs, name)
            if value is not None and (name in wanted or (makes and name == "y_score")):
                columns[name] = _column(name, value, schema)
        for name in _OTHERS:
            for i, one in enumerate(_as_list(getattr(inputs, name))):
                columns[f"{name} {i}"] = _column(name, one, schema)
        dtype = schema.get(columns.get("y_score", ""))
        cut = None
        if makes:
            kind = np.float32 if dtype == nw.Float32 else np.float64
            cut = cut_of(number("threshold", inputs.threshold), kind)
        has_fractions = dtype is not None and dtype.is_float()
        return cls(inputs, columns, keeps, has_fractions, of_labels, cut)

    @property
    def keeps_numbers(self) -> bool:
        """Tell whether rows are told apart by numbers that may differ from row to row."""
        return any(name in self.keys for name in ("y_score", "cluster 0", "sample_weight 0")) or (
            not self.of_labels
        )

    @property
    def keys(self) -> list[str]:
        """Return the columns by which rows are told apart."""
        kept = [name for name in self.columns if name != "y_score" or self.keeps_scores]
        return kept if self.cut is None else [*kept, _PREDICTION]

    def expressions(self) -> dict[str, Any]:
        """Return the columns by the arguments they stand for, and the predictions of scores.

        A score that is not a number is missing, and not above all others as some engines have it.
        """
        found: dict[str, Any] = {name: nw.col(column) for name, column in self.columns.items()}
        if "y_score" in found and self.has_fractions:
            score = found["y_score"]
            found["y_score"] = nw.when(~score.is_nan()).then(score)
        if self.cut is not None:
            found[_PREDICTION] = found["y_score"] >= self.cut
        return found

    def grouped(self, rows: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
        """Return the distinct rows with their counts, but not many more than can be used."""
        what = [nw.len().alias(_COUNT)]
        if self.cut is not None:
            score = nw.col("y_score")
            what += [score.min().alias(_LOWEST), score.max().alias(_HIGHEST)]
        return rows.group_by(*self.keys).agg(*what).head(MOST_KINDS + 1).collect()

    def inputs(self, found: nw.DataFrame[Any], bins: int | None) -> Inputs:
        """Return the arguments with the names that the counted rows have."""
        changed: dict[str, object] = {name: name for name in ("y_true", "y_pred")}
        changed |= {"y_pred": _PREDICTION, "threshold": 0.5} if self.cut is not None else {}
        changed |= {"y_score": "y_score" if self.keeps_scores else None}
        for name in _OTHERS:
            changed[name] = [one for one in self.columns if one.startswith(f"{name} ")] or None
        if self.cut is not None and bins is None:
            self._check_cut(found)
        count = found[_COUNT].to_numpy().astype(np.int64)
        data = {name: found[name] for name in self.keys}
        unused = [name for name in ("y_true", "y_pred") if changed[name] not in data]
        changed |= dict.fromkeys(unused)
        return replace(self.given, data=Counted(data, count, bins), **changed)

    def _check_cut(self, found: nw.DataFrame[Any]) -> None:
        low, high = (found[name].to_numpy().astype(float) for name in (_LOWEST, _HIGHEST))
        if self.cut is not None and not np.isnan(low).all():
            lowest, highest = float(np.nanmin(low)), float(np.nanmax(high))
            check_cut(lowest, highest, self.cut, self.given.threshold)


def _as_list(value: object) -> list[object]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _column(name: str, value: object, schema: Mapping[str, Any]) -> str:
    if not isinstance(value, str):
        hint = "Its rows stay where they are: nothing can be put beside them."
        rule = "the name of a column of data, which is lazy"
        raise InputTypeError(problem(name, rule, type(value), hint))
    if value not in schema:
        rule = f"a column of data ({listed(schema)})"
        raise InputError(problem(name, rule, value, did_you_mean(value, schema)))
    return value


def _bins(inputs: Inputs, metric: AnyMetric) -> int:
    """Return how many bins scores go into; refuse metrics that need the scores themselves."""
    scored = [part for part in metric.parts if "y_score" in part.columns]
    if not scored or not all(isinstance(part, RankMetric) for part in scored):
        raise _too_many(metric)
    if inputs.score_bins is None:
        return DEFAULT_BINS
    return integer("score_bins", inputs.score_bins, 2, MOST_KINDS)


def _binned(rows: nw.LazyFrame[Any], bins: int) -> nw.LazyFrame[Any]:
    """Return the rows with the number of a bin in place of the score: bins of equal width."""
    score = nw.col("y_score")
    ends = rows.select(score.min().alias(_LOWEST), score.max().alias(_HIGHEST)).collect()
    low, high = (float(ends[name].item()) for name in (_LOWEST, _HIGHEST))
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    place = ((score - low) / ((high - low) / bins)).floor().clip(0, bins - 1)
    return rows.with_columns(place.alias("y_score"))


def _too_many(metric: AnyMetric) -> InputError:
    return InputError(
        f"data must have at most {MOST_KINDS:,} distinct rows for {metric.name} where they are "
        "counted lazily; got more. Collect the rows, or a sample of them, and pass that."
    )
