"""Lazy frames: equal rows are counted where they are, and only the counts are fetched.

One group-by in the engine that has the rows (DuckDB, Spark, Polars, …) makes the same table of
distinct rows as reading them would, so that every test gives the same numbers to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm.data.arguments import check_cut, cut_of
from fairperm.data.lazy.backends import (
    check_numbers,
    column_of,
    expression,
    fetched,
    schema_of,
    stage,
    without_nan,
)
from fairperm.data.sources import Counted, Fetched, Made, called
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairperm.data.arguments import Inputs
    from fairperm.metrics.definition import AnyMetric

MOST_KINDS = 1 << 20  # distinct rows that are fetched; beyond that, scores are put into bins
DEFAULT_BINS = 1 << 14
_OTHERS = ("sensitive_features", "control_features", "cluster", "sample_weight")
_PREDICTION, COUNT = "prediction", "rows"
_LOWEST, _HIGHEST = "lowest score", "highest score"


@dataclass(frozen=True, slots=True)
class Reading:
    """Which columns of a lazy frame stand for which arguments, and its rows with just those.

    Attributes
    ----------
    columns
        The user's names by those of the arguments.
    rows
        The frame's rows, with columns named as the arguments are.
    keeps_scores
        Whether rows are told apart by their scores.
    makes_predictions
        Whether rows are told apart by the predictions that ``cut`` makes of their scores.
    """

    given: Inputs
    columns: Mapping[str, str]
    rows: nw.LazyFrame[Any]
    has_labels: bool
    keeps_scores: bool
    makes_predictions: bool
    cut: float | None

    @classmethod
    def of(
        cls,
        inputs: Inputs,
        metric: AnyMetric,
        frame: nw.LazyFrame[Any],
        others: Mapping[str, nw.Expr] | None = None,
    ) -> Reading:
        """Find the columns that the metric needs, and those of the groups, strata and so on.

        ``others`` are kept in the rows beside them.
        """
        schema = schema_of(frame)
        has_labels = metric.kind.needs_labels
        wanted = {"y_true", *metric.columns} if has_labels else {*metric.columns}
        makes = has_labels and inputs.y_pred is None and inputs.y_score is not None
        makes = makes and "y_pred" in wanted
        columns: dict[str, str] = {}
        for name in ("y_true", "y_pred", "y_score"):
            value = getattr(inputs, name)
            if value is not None and (name in wanted or (makes and name == "y_score")):
                columns[name] = column_of(name, value, frame, schema)
        for name in _OTHERS:
            for i, one in enumerate(_as_list(getattr(inputs, name))):
                columns[f"{name} {i}"] = column_of(name, one, frame, schema)
        kind: Any = None
        if "y_score" in columns:
            kind = schema[columns["y_score"]]
            check_numbers("y_score", columns["y_score"], kind)
        cut = None
        if makes:
            cut = cut_of(inputs.threshold, precision(kind))
        found: dict[str, Any] = {arg: expression(name, frame) for arg, name in columns.items()}
        if kind is not None and kind.is_float():
            found["y_score"] = without_nan(found["y_score"])
        if cut is not None:
            found[_PREDICTION] = found["y_score"] >= cut
        keeps = "y_score" in wanted
        with stage("choosing the columns", frame):
            rows = frame.select(**found, **(others or {}))
        return cls(inputs, columns, rows, has_labels, keeps, makes and not keeps, cut)

    @property
    def keeps_numbers(self) -> bool:
        """Tell whether rows are told apart by numbers that may differ from row to row."""
        numbers = {"y_score", "cluster 0", "sample_weight 0"}
        return not self.has_labels or not numbers.isdisjoint(self.keys)

    @property
    def keys(self) -> list[str]:
        """Return the columns by which rows are told apart."""
        kept = [name for name in self.columns if name != "y_score" or self.keeps_scores]
        return [*kept, _PREDICTION] if self.makes_predictions else kept

    @property
    def score_called(self) -> str:
        """Return what messages call the scores."""
        return called("y_score", self.columns["y_score"])

    def few_kinds(self) -> nw.DataFrame[Any] | None:
        """Return the distinct rows with their counts; None if they are too many."""
        if self.keeps_numbers and self.begin_with_many():
            return None
        found = self.grouped("counting equal rows")
        return found if len(found) <= MOST_KINDS else None

    def begin_with_many(self) -> bool:
        """Tell whether the first rows show too many distinct ones, before all are grouped."""
        first = replace(self, rows=self.rows.head(2 * MOST_KINDS))
        return len(first.grouped("looking at the first rows")) > MOST_KINDS

    def grouped(self, doing: str) -> nw.DataFrame[Any]:
        """Return the distinct rows with their counts, but not many more than can be used."""
        what = [nw.len().alias(COUNT)]
        if self.makes_predictions and not self.keeps_scores:
            score = nw.col("y_score")
            what += [score.min().alias(_LOWEST), score.max().alias(_HIGHEST)]
        with stage(doing, self.rows):
            return fetched(self.rows.group_by(*self.keys).agg(*what).head(MOST_KINDS + 1))

    def ends(self) -> tuple[float, float]:
        """Return the lowest and the highest score; refuse what could not be put into bins."""
        score = nw.col("y_score")
        with stage("finding the range of the scores", self.rows):
            ends = fetched(
                self.rows.select(score.min().alias(_LOWEST), score.max().alias(_HIGHEST))
            )
        low, high = (ends[name].to_list()[0] for name in (_LOWEST, _HIGHEST))
        if low is None or high is None:
            return 0.0, 1.0  # there are no scores; that they are missing is said later
        low, high = float(low), float(high)
        if not np.isfinite([low, high]).all():
            hint = "Replace or drop infinite values."
            bad = high if np.isinf(high) else low
            raise InputError(self.score_called, "finite", bad, hint)
        if self.cut is not None:
            check_cut(self.score_called, low, high, self.cut, self.given.threshold)
        return low, high

    def binned(self, low: float, high: float, bins: int) -> Reading:
        """Return the rows with the number of a bin in place of the score: bins of equal width."""
        if low >= 0 and high <= 1:
            low, high = 0.0, 1.0
        score = nw.col("y_score").cast(nw.Float64)
        # halves, so that no difference of scores is too large for a number
        width = (high / 2 - low / 2) / bins
        place = nw.lit(0.0) * score
        if width > 0:
            place = ((score / 2 - low / 2) / width).floor().clip(0, bins - 1)
        return replace(self.with_predictions(), rows=self.rows.with_columns(y_score=place))

    def with_predictions(self) -> Reading:
        """Return the same, with rows told apart by their predictions beside their scores."""
        return replace(self, makes_predictions=self.cut is not None)

    def inputs(self, found: nw.DataFrame[Any], bins: int | None = None) -> Inputs:
        """Return the arguments with the counted rows as their data, columns named as they were."""
        if bins is None:
            self.check_cut(found)
        count = found[COUNT].to_numpy().astype(np.int64)
        return self.with_data({name: found[name] for name in self.keys}, Counted(None, count, bins))

    def with_data(self, values: Mapping[str, Any], counted: Counted) -> Inputs:
        """Return the arguments with these values, by their keys, as what was counted."""
        data = {self.columns[name]: values[name] for name in self.keys if name in self.columns}
        changed: dict[str, Any] = {"y_score": None, "score_bins": None}
        if self.keeps_scores:
            # by itself: a column that is used twice may also be something else than a score
            changed["y_score"] = Fetched(self.columns["y_score"], values["y_score"])
        if self.makes_predictions:
            made = Made(self.columns["y_score"], values[_PREDICTION])
            changed |= {"y_pred": made, "threshold": None}
        for name in ("y_true", "y_pred"):
            if name not in self.columns:
                changed.setdefault(name, None)
        return replace(self.given, data=replace(counted, data=data), **changed)

    def check_cut(self, found: nw.DataFrame[Any]) -> None:
        """Refuse a threshold that parts no scores, of rows counted by their predictions."""
        if not self.makes_predictions or self.keeps_scores:
            return
        low, high = (found[name].to_numpy().astype(float) for name in (_LOWEST, _HIGHEST))
        if self.cut is not None and not np.isnan(low).all():
            lowest, highest = float(np.nanmin(low)), float(np.nanmax(high))
            check_cut(self.score_called, lowest, highest, self.cut, self.given.threshold)


def precision(dtype: Any) -> type[np.floating[Any]]:
    """Return the type that reading scores of this type would make of them."""
    return np.float32 if dtype == nw.Float32 else np.float64


def too_many(metric: AnyMetric, hint: str) -> InputError:
    """Return the error of rows that cannot be counted in a table that fits into memory."""
    return InputError(
        f"data must have at most {MOST_KINDS:,} distinct rows for {metric.name} where they are "
        f"counted lazily; got more. {hint}"
    )


def _as_list(value: object) -> list[object]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
