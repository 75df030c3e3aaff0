"""Counts of equal rows in a lazy frame.

One group-by in the engine that has the rows (DuckDB, Spark, Polars, …) makes the same table of
distinct rows as reading them would: every test gives the same numbers to the last bit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm.data.arguments import Inputs
from fairperm.data.columns import (
    Source,
    as_numpy,
    check_threshold,
    describe_column,
    models_of,
    round_threshold,
)
from fairperm.data.lazy.backends import (
    check_column,
    check_numbers,
    fetch,
    nan_to_null,
    quote_column,
    read_schema,
    stage,
)
from fairperm.data.lazy.bins import FilledBins, find_bins
from fairperm.errors import InputError, argument
from fairperm.metrics.definition import NEW, AnyMetric

MAX_KINDS = 1 << 20  # distinct rows that are fetched; beyond that, scores are put into bins
DEFAULT_BINS = 1 << 17  # if that many fit with the labels, groups and strata
_MEASURED = ("values", "y_true", "y_pred", "y_score", f"y_pred{NEW}", f"y_score{NEW}")
_ATTRIBUTES = (
    *("sensitive_features", "control_features", "cluster", "sample_weight", "matched", "names"),
    "period",
)
COUNT = "rows"
SCORES = ("y_score", f"y_score{NEW}")
_PREDICTION_OF = {"y_score": "prediction", f"y_score{NEW}": f"prediction{NEW}"}
_LOWEST, _HIGHEST = "lowest score", "highest score"


@dataclass(frozen=True, slots=True)
class LazyRows:
    """The rows of a lazy frame, with only the columns that a test needs."""

    inputs: Inputs
    columns: Mapping[str, str]  # the user's column names, by argument
    rows: nw.LazyFrame[Any]  # the frame's rows, with columns named after the arguments
    has_labels: bool
    keeps_scores: bool  # whether rows with different scores are counted separately
    # whether rows are counted by the predictions that ``thresholds`` make from their scores
    makes_predictions: bool
    # by the name of the scores, in their precision, if predictions are made of them
    thresholds: Mapping[str, float]
    bins: FilledBins | None = None  # the bins whose numbers are in place of the scores, if they are

    @classmethod
    def select(cls, inputs: Inputs, metric: AnyMetric, frame: nw.LazyFrame[Any]) -> LazyRows:
        """Select the columns of the metric, groups, strata, clusters and weights."""
        schema = read_schema(frame)
        has_labels = metric.kind.needs_labels
        needed = {*metric.columns, "y_true"} if has_labels else {*metric.columns}
        keeps_scores = "y_score" in needed
        columns: dict[str, str] = {}
        cuts: dict[str, object] = {}
        for name in ("values", "y_true"):
            value = getattr(inputs, name)
            if value is not None and name in needed:
                columns[name] = check_column(name, value, frame, schema)
        for model, suffix in models_of(inputs):
            is_cut = has_labels and "y_pred" in needed and model.y_pred is None
            if is_cut and model.y_score is not None:
                cuts[f"y_score{suffix}"] = model.threshold
            for name, value in (("y_pred", model.y_pred), ("y_score", model.y_score)):
                if value is not None and (name in needed or name + suffix in cuts):
                    columns[name + suffix] = check_column(name + suffix, value, frame, schema)
        of_classes = [name for name in metric.columns if "[" in name]
        for i, name in enumerate(of_classes):
            columns[f"y_score {i}"] = check_column("y_score", inputs.find(name), frame, schema)
        for name in _ATTRIBUTES:
            for i, one in enumerate(_as_list(getattr(inputs, name, None))):
                columns[f"{name} {i}"] = check_column(name, one, frame, schema)
        selected = {name: quote_column(column, frame) for name, column in columns.items()}
        thresholds: dict[str, float] = {}
        for score in [name for name in columns if name.startswith("y_score")]:
            dtype = schema[columns[score]]
            check_numbers(score.split()[0], columns[score], dtype)
            if dtype.is_float():
                selected[score] = nan_to_null(selected[score])
            if score in cuts:
                thresholds[score] = round_threshold(cuts[score], precision(dtype))
                selected[_PREDICTION_OF[score]] = selected[score] >= thresholds[score]
        with stage("choosing the columns", frame):
            rows = frame.select(**selected)
        by_prediction = bool(thresholds) and not keeps_scores
        return cls(inputs, columns, rows, has_labels, keeps_scores, by_prediction, thresholds)

    @property
    def keys(self) -> list[str]:
        """The columns by which rows are counted."""
        kept = [name for name in self.columns if name not in SCORES or self.keeps_scores]
        return [*kept, *self._predictions.values()]

    @property
    def _predictions(self) -> dict[str, str]:
        """The names of predictions by which rows are counted, by those of their scores."""
        made = self.thresholds if self.makes_predictions else ()
        return {score: _PREDICTION_OF[score] for score in made}

    def count_if_few(self) -> nw.DataFrame[Any] | None:
        """Return the distinct rows with their counts; None if they are too many."""
        numbers = {*SCORES, "cluster 0", "sample_weight 0", "matched 0", "names 0"}
        may_be_many = not self.has_labels or not numbers.isdisjoint(self.keys)
        if may_be_many and self.starts_with_many():
            return None
        counted = self.count("counting equal rows")
        return counted if len(counted) <= MAX_KINDS else None

    def starts_with_many(self) -> bool:
        """Whether the first rows alone have too many distinct ones: then counting all is wasted."""
        first = replace(self, rows=self.rows.head(2 * MAX_KINDS))
        return len(first.count("looking at the first rows")) > MAX_KINDS

    def count(self, doing: str) -> nw.DataFrame[Any]:
        """Return the distinct rows with their counts, at most one more than can be used."""
        totals = [nw.len().alias(COUNT)]
        if not self.keeps_scores:
            totals += [one for score in self._predictions for one in _score_range(score)]
        with stage(doing, self.rows):
            return fetch(self.rows.group_by(*self.keys).agg(*totals).head(MAX_KINDS + 1))

    def bin_scores(self, n_bins: int) -> LazyRows:
        """Return the rows with the number of a bin for each score."""
        bins, filled = find_bins(self.rows, *self._find_score_range(), n_bins)
        rows = bins.add_places(self.rows, "y_score")
        return replace(self, rows=rows, makes_predictions=bool(self.thresholds), bins=filled)

    def choose_bins(self) -> int:
        """Return how many bins can be counted by label, prediction, group and stratum."""
        others = [name for name in self.keys if name not in SCORES]
        with stage("counting the groups", self.rows):
            kinds = fetch(self.rows.select(*others).unique().head(MAX_KINDS))
        doubled = 2 if self.thresholds and not self.makes_predictions else 1
        return max(2, min(DEFAULT_BINS, MAX_KINDS // (doubled * max(1, len(kinds)))))

    def _find_score_range(self) -> tuple[float, float]:
        """Return the lowest and the highest score. Raises InputError if one is infinite."""
        with stage("finding the range of the scores", self.rows):
            ends = fetch(self.rows.select(*_score_range("y_score")))
        low, high = (ends[f"{name} y_score"].to_list()[0] for name in (_LOWEST, _HIGHEST))
        if low is None or high is None:
            return 0.0, 1.0  # all scores are missing, which is reported later
        low, high = float(low), float(high)
        if not np.isfinite([low, high]).all():
            hint = "Replace or drop infinite values."
            name = describe_column("y_score", self.columns["y_score"])
            raise InputError(name, "finite", high if np.isinf(high) else low, hint)
        self._check_thresholds({"y_score": (low, high)})
        return low, high

    def make_inputs(self, counted: nw.DataFrame[Any]) -> Inputs:
        """Return the inputs with counted rows as their data."""
        if self.bins is None:
            self.check_predictions(counted)
        count = as_numpy(counted[COUNT]).astype(np.int64)
        rows = Source(count=count)
        return self.replace_data({name: counted[name] for name in self.keys}, rows)

    def replace_data(
        self, values: Mapping[str, Any], counted: Source, replaced: Collection[str] = SCORES
    ) -> Inputs:
        """Return the inputs with these values of the keys as the columns of ``counted``."""
        # values of the keys ``replaced`` belong to that argument only: its column may also serve as
        # another one, with its own values
        kept = [name for name in self.keys if name in self.columns]
        if self.bins is not None:
            score = np.asarray(values["y_score"], np.float64)
            values = {**values, "y_score": self.bins.score_of(score)}
        rows = replace(
            counted,
            bins=self.bins,
            columns={self.columns[name]: values[name] for name in kept if name not in replaced},
            values={name.split()[0]: values[name] for name in kept if name in replaced},
            predictions={
                score.replace("score", "pred"): values[name]
                for score, name in self._predictions.items()
            },
        )
        read = {name.split()[0] for name in self.columns}
        given: dict[str, Any] = {
            name: getattr(self.inputs, name) if name in read else None
            for name in _MEASURED
            if hasattr(self.inputs, name)
        }
        return replace(self.inputs, data=rows, **given)

    def check_predictions(self, counted: nw.DataFrame[Any]) -> None:
        """Raise InputError if rows counted by prediction all have the same prediction."""
        ends = {}
        for score in () if self.keeps_scores else self._predictions:
            low, high = (
                counted[f"{end} {score}"].to_numpy().astype(float) for end in (_LOWEST, _HIGHEST)
            )
            if not np.isnan(low).all():
                ends[score] = float(np.nanmin(low)), float(np.nanmax(high))
        self._check_thresholds(ends)

    def _check_thresholds(self, ends: Mapping[str, tuple[float, float]]) -> None:
        """Raise InputError if a threshold does not lie between the ends of its scores."""
        for model, suffix in models_of(self.inputs):
            score = f"y_score{suffix}"
            if score in self.thresholds and score in ends:
                name = describe_column(score, self.columns[score])
                cut = self.thresholds[score]
                check_threshold(name, *ends[score], cut, model.threshold, suffix)


def _score_range(name: str) -> list[nw.Expr]:
    score = nw.col(name)
    return [score.min().alias(f"{_LOWEST} {name}"), score.max().alias(f"{_HIGHEST} {name}")]


def precision(dtype: Any) -> type[np.floating[Any]]:
    """Return the NumPy type of scores of this type once they are read."""
    return np.float32 if dtype == nw.Float32 else np.float64


def too_many_rows(metric: AnyMetric, hint: str) -> InputError:
    """Return the error for distinct rows that do not fit into memory."""
    return InputError(
        f"{argument('data')} must have at most {MAX_KINDS:,} distinct rows for {metric.name} in a "
        f"lazy frame; it has more. {hint}"
    )


def _as_list(value: object) -> list[object]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
