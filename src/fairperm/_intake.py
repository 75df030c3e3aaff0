"""What the user passed, as a table of distinct rows with counts.

Values are looked at after counting, when a handful of distinct rows is left: whether labels
are binary, which values are missing and which groups there are costs nothing per row.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._columns import (
    Column,
    Index,
    as_column,
    as_narwhals,
    as_sequence,
    count_rows,
    is_missing,
    number_column,
    plain,
)
from fairperm._labels import (
    as_they_came,
    binary_columns,
    check_spelling,
    many_classes,
    sort_key,
)
from fairperm._options import choice, number
from fairperm._sample import Table
from fairperm.errors import InputError, InputTypeError, did_you_mean, listed, problem, shown

if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import TypeGuard

    from numpy.typing import NDArray

    from fairperm.metrics import AnyMetric

_ROWS_NAMED = 5
_NUMBERS: dict[str, tuple[str, ...]] = {
    "binary": (),
    "labels": (),
    "score": ("y_score",),
    "probability": ("y_score",),
    "regression": ("y_true", "y_pred", "y_score"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The data arguments of a public test function, as they came."""

    y_true: object
    y_pred: object = None
    y_score: object = None
    sensitive_features: object
    control_features: object = None
    cluster: object = None
    sample_weight: object = None
    data: object = None
    threshold: object = 0.5
    pos_label: object = None
    missing: object = "error"


def read_table(inputs: Inputs, metric: AnyMetric) -> Table:
    """Count the distinct rows of what the metric needs, with their groups and strata."""
    policy = choice("missing", inputs.missing, ("error", "drop"))
    source = Source(inputs.data)
    measured = _measured(source, inputs, metric)
    group = source.features("sensitive_features", inputs.sensitive_features)
    stratum = source.features("control_features", inputs.control_features)
    weight = source.weights(inputs.sample_weight)
    cluster = source.features("cluster", inputs.cluster)
    columns = [*measured.values(), *group, *stratum, *weight, *cluster]
    _check_lengths(columns)

    rows, counts = count_rows(columns)
    known = _known_rows(columns, rows, len(counts))
    if policy == "error" and not known.all():
        raise InputError(_where_missing(columns, rows, counts))
    if not known.any():
        hint = f"missing='drop' dropped all {counts.sum():,} rows." if counts.size else ""
        raise InputError(f"{columns[0].name} must have at least one row; got none. {hint}".rstrip())

    dropped = 0
    if not known.all():
        dropped = int(counts[~known].sum())
        counts = counts[known]
        rows = [np.flatnonzero(known) if isinstance(one, slice) else one[known] for one in rows]
    index = iter(rows)
    read = _understood(measured, index, metric.kind, inputs.pos_label)
    groups, group_of = _named(group, index, len(counts))
    strata, stratum_of = _named(stratum, index, len(counts))
    weights = [np.asarray(one.values, np.float64)[next(index)] for one in weight]
    clusters, cluster_of = _named(cluster, index, len(counts))
    return Table(
        columns=read,
        group=group_of,
        stratum=stratum_of,
        count=counts,
        groups=groups,
        strata=strata,
        weight=weights[0] if weights else None,
        cluster=cluster_of if cluster else None,
        clusters=clusters,
        n_dropped=dropped,
    )


def _measured(source: Source, inputs: Inputs, metric: AnyMetric) -> dict[str, Column]:
    """Return the columns that the metric is made from, as they came."""
    if metric.kind in {"binary", "labels"}:
        label = source.column("y_true", inputs.y_true)
        return {"y_true": label, **_prediction(source, inputs, needed="y_pred" in metric.columns)}
    given = {"y_true": inputs.y_true, "y_pred": inputs.y_pred, "y_score": inputs.y_score}
    columns = {}
    for name in metric.columns:
        if given[name] is None:
            instead = {"y_score": inputs.y_pred, "y_pred": inputs.y_score}.get(name)
            hint = f"Pass it as {name}." if instead is not None else ""
            raise InputTypeError(problem(name, f"given for {metric.name}", None, hint))
        columns[name] = source.read(metric.kind, name, given[name])
    if metric.kind == "probability":
        _check_probability(columns["y_score"])
    return columns


def _check_probability(column: Column) -> None:
    values = np.asarray(column.values, np.float64)
    outside = values[(values < 0) | (values > 1)]
    if outside.size:
        hint = "Scale the scores to probabilities first."
        raise InputError(
            problem(column.name, "from 0 to 1 for this metric", outside[0].item(), hint)
        )


def _understood(
    measured: Mapping[str, Column],
    index: Iterator[Index],
    kind: str,
    pos_label: object,
) -> dict[str, NDArray[Any]]:
    """Return the rows' labels as truth values and their numbers as floats.

    A metric of any kind gets its values as they came.
    """
    named = {name: (column, next(index)) for name, column in measured.items()}
    if kind == "classes":
        check_spelling(named)
    if kind in {"any", "classes"} or (
        kind == "labels" and pos_label is None and many_classes(named)
    ):
        return {name: as_they_came(column)[where] for name, (column, where) in named.items()}
    labels = {name: one for name, one in named.items() if name not in _NUMBERS[kind]}
    if pos_label is not None and not labels:
        raise InputError(problem("pos_label", "left out: this metric has no labels", pos_label))
    result: dict[str, NDArray[Any]] = dict(binary_columns(labels, pos_label))
    for name, (column, where) in named.items():
        if name not in labels:
            result[name] = np.asarray(column.values, np.float64)[where]
    return result


class Source:
    """Where columns come from: the arguments themselves, or ``data=`` by their names."""

    def __init__(self, data: object) -> None:
        self._columns: Mapping[Any, Any] | None = None
        if data is not None:
            self._columns = _columns_of("data", data)

    def column(self, name: str, given: object) -> Column:
        if given is None:
            raise InputTypeError(problem(name, "given", None))
        return as_column(*self.find(name, given))

    def scores(self, name: str, given: object) -> NDArray[np.floating[Any]]:
        return as_floats(*self.find(name, given))

    def read(self, kind: str, name: str, given: object) -> Column:
        """Return a column as the metric's kind wants it: numbers, labels, or either."""
        if kind in {"any", "classes"}:
            values = as_sequence(*self.find(name, given))
            if isinstance(values, np.ndarray) and values.dtype.kind == "f":
                return number_column(self.find(name, given)[0], values.astype(np.float64))
            return self.column(name, given)
        return self.numbers(name, given) if name in _NUMBERS[kind] else self.column(name, given)

    def weights(self, given: object) -> list[Column]:
        """Return the column of weights, if there is one."""
        if given is None:
            return []
        column = self.numbers("sample_weight", given)
        values = np.asarray(column.values, np.float64)
        bad = values[values <= 0]
        if bad.size:
            hint = "Leave out rows that should not count."
            raise InputError(problem(column.name, "made of numbers above 0", bad[0].item(), hint))
        return [column]

    def numbers(self, name: str, given: object) -> Column:
        """Return a column of finite numbers."""
        # labels may be counted as 0 and 1, scores not
        column, data = self.find(name, given)
        values = as_floats(column, data, truths=name != "y_score").astype(np.float64, copy=False)
        if np.isinf(values).any():
            bad = values[np.isinf(values)][0]
            raise InputError(
                problem(name, "finite", float(bad), "Replace or drop infinite values.")
            )
        return number_column(name, values)

    def features(self, name: str, given: object) -> list[Column]:
        """Return the column, or the several columns, that an attribute is made of."""
        if given is None:
            if name == "sensitive_features":
                raise InputTypeError(problem(name, "given", None))
            return []
        if self._columns is not None and _are_names(given):
            hint = "A list of strings means columns of data; pass values as an array."
            return [as_column(*self.find(name, one, hint)) for one in given]
        parts: Mapping[Any, Any]
        if isinstance(given, np.ndarray) and given.ndim == 2:
            parts = dict(enumerate(given.T))
        elif isinstance(given, Mapping) or nw.dependencies.is_into_dataframe(given):
            parts = _columns_of(name, given)
        else:
            return [self.column(name, given)]
        if not parts:
            raise InputError(f"{name} must have at least one column; got none.")
        return [as_column(f"{name} column {shown(key)}", one) for key, one in parts.items()]

    def find(self, name: str, given: object, hint: str = "") -> tuple[str, object]:
        """Return what was given, or the column of that name, and what to call it in messages."""
        if self._columns is None or not isinstance(given, str):
            return name, given
        if given not in self._columns:
            rule = f"a column of data ({listed(self._columns)})"
            hint = did_you_mean(given, self._columns) or hint
            raise InputError(problem(name, rule, given, hint))
        return f"{name} (column {shown(given)})", self._columns[given]


def _are_names(given: object) -> TypeGuard[Sequence[str]]:
    return (
        isinstance(given, (list, tuple))
        and len(given) > 0
        and all(isinstance(one, str) for one in given)
    )


def _columns_of(name: str, data: object) -> Mapping[Any, Any]:
    if isinstance(data, Mapping):
        return data
    frame = as_narwhals(name, data)
    if isinstance(frame, nw.DataFrame):
        return dict(zip(frame.columns, frame.iter_columns(), strict=True))
    hint = "Collect it first." if isinstance(frame, nw.LazyFrame) else ""
    rule = "a pandas, Polars or pyarrow frame, or a mapping of names to columns"
    raise InputTypeError(problem(name, rule, type(data), hint))


def _prediction(source: Source, inputs: Inputs, *, needed: bool) -> dict[str, Column]:
    threshold = number("threshold", inputs.threshold)
    if inputs.y_pred is not None and inputs.y_score is not None:
        hint = "Predictions are made from y_score with threshold; drop one of the two."
        raise InputError(problem("y_pred", "left out when y_score is given", "both", hint))
    if inputs.y_pred is not None:
        return {"y_pred": source.column("y_pred", inputs.y_pred)}
    if inputs.y_score is not None:
        return {"y_pred": _above(source.scores("y_score", inputs.y_score), threshold)}
    if needed:
        hint = "Or pass y_score with threshold."
        raise InputTypeError(problem("y_pred", "given for this metric", None, hint))
    return {}


def _above(scores: NDArray[np.floating[Any]], threshold: float) -> Column:
    """Return the predictions ``score >= threshold``, missing where the score is.

    They are compared in the scores' own precision: 0.7 in 32 bits is at least 0.7.
    """
    with np.errstate(over="ignore"):
        cut = float(scores.dtype.type(threshold))
    codes = (scores >= cut).view(np.uint8)
    unknown = np.isnan(scores)
    if unknown.all():
        return Column("y_score", codes | np.uint8(2), 0, (False, True, None, None))
    low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
    if not np.isfinite([low, high]).all():
        hint = "Replace them by the largest finite score you mean."
        raise InputError(problem("y_score", "finite", high if np.isinf(high) else low, hint))
    if not low < cut <= high:
        side = "positive" if cut <= low else "negative"
        rule = f"above the lowest score ({low:g}) and not above the highest ({high:g})"
        hint = f"As it stands, every row is predicted {side}."
        raise InputError(problem("threshold", rule, threshold, hint))
    return Column("y_score", codes | unknown.view(np.uint8) << 1, 0, (False, True, None, None))


def as_floats(name: str, data: object, *, truths: bool = False) -> NDArray[np.floating[Any]]:
    """Return a column of numbers, NaN where they are missing; True is 1 if ``truths`` may be."""
    sequence = as_sequence(name, data)
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in ("biuf" if truths else "iuf"):
        return sequence if sequence.dtype.kind == "f" else sequence.astype(np.float64)
    floats = (_as_float(name, value, truths=truths) for value in sequence)
    return np.fromiter(floats, np.float64, len(sequence))


def _as_float(name: str, value: object, *, truths: bool) -> float:
    if is_missing(value):
        return math.nan
    is_truth = isinstance(value, (bool, np.bool_))
    is_number = isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, np.timedelta64)
    if (is_number or is_truth) and (truths or not is_truth):
        try:
            return float(value)  # type: ignore[arg-type]
        except OverflowError:
            return math.inf
    is_label = isinstance(value, (bool, np.bool_, str, bytes))
    hint = "Labels are not scores." if is_label and name.startswith("y_score") else ""
    raise InputTypeError(problem(name, "made of real numbers", plain(value), hint))


def _check_lengths(columns: Sequence[Column]) -> None:
    first = columns[0]
    for column in columns[1:]:
        if len(column) != len(first):
            rule = f"as long as {first.name} ({len(first):,} rows)"
            raise InputError(problem(column.name, rule, len(column), "Pass columns of one length."))


def _known_rows(columns: Sequence[Column], rows: Sequence[Index], n_rows: int) -> NDArray[np.bool_]:
    known = np.ones(n_rows, bool)
    for column, values in zip(columns, rows, strict=True):
        known &= ~column.missing()[values]
    return known


def _where_missing(
    columns: Sequence[Column], rows: Sequence[Index], counts: NDArray[np.int64]
) -> str:
    parts = []
    for column, values in zip(columns, rows, strict=True):
        missing = column.missing()
        if total := int(counts[missing[values]].sum()):
            named = column.rows_with(missing, _ROWS_NAMED)
            more = ", …" if total > len(named) else ""
            parts.append(f"{column.name}: {total:,} (rows {', '.join(map(str, named))}{more})")
    hint = "Pass missing='drop' to leave these rows out; the result will say how many."
    found = "; ".join(parts)
    return f"every column must be without missing values; got missing values in {found}. {hint}"


def _named(
    columns: Sequence[Column], index: Iterator[Index], n_rows: int
) -> tuple[tuple[Hashable, ...], NDArray[np.integer[Any]]]:
    """Return the sorted names of the groups (or strata) and each row's index among them."""
    rows = [one for _, one in zip(columns, index, strict=False)]
    if not rows:
        return ("all",), np.zeros(n_rows, np.uint8)
    shape = [len(column.values) for column in columns]
    distinct, inverse = _present(rows, shape)
    names: list[Hashable] = []
    for row in zip(*np.unravel_index(distinct, shape), strict=True):
        values = tuple(column.values[i] for column, i in zip(columns, row, strict=True))
        names.append(values if len(values) > 1 else values[0])
    order = sorted(range(len(names)), key=lambda i: sort_key(names[i]))
    narrow: type[np.integer[Any]] = np.uint8 if len(names) <= 256 else np.intp
    rank = np.argsort(order).astype(narrow)
    return tuple(names[i] for i in order), rank[inverse]


def _present(
    rows: Sequence[Any], shape: Sequence[int]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the combinations that occur, as flat indices, and each row's place among them."""
    keys = rows[0] if len(rows) == 1 else np.ravel_multi_index(tuple(rows), shape)
    if math.prod(shape) > len(keys) + 2**16:
        distinct, inverse = np.unique(keys, return_inverse=True)
        return distinct, inverse.ravel()
    occurs = np.bincount(keys, minlength=math.prod(shape)) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[keys]
