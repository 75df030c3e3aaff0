"""What the user passed, as a table of distinct rows with counts.

Values are looked at after counting, when a handful of distinct rows is left: whether labels
are binary, which values are missing and which groups there are costs nothing per row.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._columns import (
    Column,
    as_column,
    as_narwhals,
    as_sequence,
    count_rows,
    is_missing,
    plain,
)
from fairperm._options import choice, number
from fairperm._sample import Table
from fairperm.errors import InputError, InputTypeError, did_you_mean, listed, problem, shown

if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import TypeGuard

    from numpy.typing import NDArray

_ROWS_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The data arguments of a public test function, as they came."""

    y_true: object
    y_pred: object = None
    y_score: object = None
    sensitive_features: object
    control_features: object = None
    data: object = None
    threshold: object = 0.5
    pos_label: object = None
    missing: object = "error"


def read_table(inputs: Inputs, *, needs_prediction: bool) -> Table:
    """Count the distinct rows (label, prediction, group, stratum) of the user's data."""
    policy = choice("missing", inputs.missing, ("error", "drop"))
    source = _Source(inputs.data)
    label = source.column("y_true", inputs.y_true)
    prediction = _prediction(source, inputs, needs_prediction)
    group = source.features("sensitive_features", inputs.sensitive_features)
    stratum = source.features("control_features", inputs.control_features)
    columns = [label, *prediction, *group, *stratum]
    _check_lengths(columns)

    rows, counts = count_rows(columns)
    known = _known_rows(columns, rows)
    if policy == "error" and not known.all():
        raise InputError(_where_missing(columns, rows, counts))
    if not known.any():
        hint = f"missing='drop' dropped all {counts.sum():,} rows." if counts.size else ""
        raise InputError(f"y_true must have at least one row; got none. {hint}".rstrip())

    dropped = int(counts[~known].sum())
    rows, counts = rows[known], counts[known]
    is_positive = _binary_columns([label, *prediction], rows, inputs.pos_label)
    n_labels = len(is_positive)
    groups, group_of = _named(group, rows[:, n_labels : n_labels + len(group)])
    strata, stratum_of = _named(stratum, rows[:, n_labels + len(group) :])
    return Table(
        label=is_positive[0],
        prediction=is_positive[1] if prediction else np.zeros(len(rows), bool),
        group=group_of,
        stratum=stratum_of,
        count=counts,
        groups=groups,
        strata=strata,
        n_dropped=dropped,
    )


class _Source:
    """Where columns come from: the arguments themselves, or ``data=`` by their names."""

    def __init__(self, data: object) -> None:
        self._columns: Mapping[Any, Any] | None = None
        if data is not None:
            self._columns = _columns_of("data", data)

    def column(self, name: str, given: object) -> Column:
        if given is None:
            raise InputTypeError(problem(name, "given", None))
        return as_column(*self._find(name, given))

    def scores(self, name: str, given: object) -> NDArray[np.floating[Any]]:
        return _as_floats(*self._find(name, given))

    def features(self, name: str, given: object) -> list[Column]:
        """Return the column, or the several columns, that an attribute is made of."""
        if given is None:
            if name == "sensitive_features":
                raise InputTypeError(problem(name, "given", None))
            return []
        if self._columns is not None and _are_names(given):
            hint = "A list of strings means columns of data; pass values as an array."
            return [as_column(*self._find(name, one, hint)) for one in given]
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

    def _find(self, name: str, given: object, hint: str = "") -> tuple[str, object]:
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


def _prediction(source: _Source, inputs: Inputs, needed: bool) -> list[Column]:
    threshold = number("threshold", inputs.threshold)
    if inputs.y_pred is not None and inputs.y_score is not None:
        hint = "Predictions are made from y_score with threshold; drop one of the two."
        raise InputError(problem("y_pred", "left out when y_score is given", "both", hint))
    if inputs.y_pred is not None:
        return [source.column("y_pred", inputs.y_pred)]
    if inputs.y_score is not None:
        return [_above(source.scores("y_score", inputs.y_score), threshold)]
    if needed:
        hint = "Or pass y_score with threshold."
        raise InputTypeError(problem("y_pred", "given for this metric", None, hint))
    return []


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


def _as_floats(name: str, data: object) -> NDArray[np.floating[Any]]:
    sequence = as_sequence(name, data)
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "iuf":
        return sequence if sequence.dtype.kind == "f" else sequence.astype(np.float64)
    floats = (_as_float(name, value) for value in sequence)
    return np.fromiter(floats, np.float64, len(sequence))


def _as_float(name: str, value: object) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    is_label = isinstance(value, (bool, np.bool_, str, bytes))
    hint = "Pass True/False and labels as y_pred." if is_label else ""
    raise InputTypeError(problem(name, "made of real numbers", plain(value), hint))


def _check_lengths(columns: Sequence[Column]) -> None:
    first = columns[0]
    for column in columns[1:]:
        if len(column) != len(first):
            rule = f"as long as {first.name} ({len(first):,} rows)"
            raise InputError(problem(column.name, rule, len(column), "Pass columns of one length."))


def _known_rows(columns: Sequence[Column], rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    known = np.ones(len(rows), bool)
    for column, values in zip(columns, rows.T, strict=True):
        known &= ~column.missing()[values]
    return known


def _where_missing(
    columns: Sequence[Column], rows: NDArray[np.intp], counts: NDArray[np.int64]
) -> str:
    parts = []
    for column, values in zip(columns, rows.T, strict=True):
        missing = column.missing()
        if total := int(counts[missing[values]].sum()):
            named = column.rows_with(missing, _ROWS_NAMED)
            more = ", …" if total > len(named) else ""
            parts.append(f"{column.name}: {total:,} (rows {', '.join(map(str, named))}{more})")
    hint = "Pass missing='drop' to leave these rows out; the result will say how many."
    found = "; ".join(parts)
    return f"every column must be without missing values; got missing values in {found}. {hint}"


def _binary_columns(
    columns: Sequence[Column], rows: NDArray[np.intp], pos_label: object
) -> list[NDArray[np.bool_]]:
    """Return for each column which of the rows are positive."""
    taken = [
        sorted((column.values[i] for i in np.unique(values)), key=_sort_key)
        for column, values in zip(columns, rows.T, strict=False)
    ]
    # predictions made from scores are True and False whatever the labels are called
    by_label = [i for i, column in enumerate(columns) if column.name != "y_score"]
    if pos_label is None:
        for i in by_label:
            _check_conventional(columns[i].name, taken[i])
    else:
        names = [columns[i].name for i in by_label]
        pos_label = _check_named(names, [taken[i] for i in by_label], pos_label)
    positive = []
    for i, column in enumerate(columns):
        target = pos_label if pos_label is not None and i in by_label else 1
        meaning = np.fromiter((value == target for value in column.values), bool)
        positive.append(meaning[rows[:, i]])
    return positive


def _check_conventional(name: str, taken: Sequence[Hashable]) -> None:
    if set(taken) <= {0, 1} or set(taken) <= {-1, 1}:
        return
    if name.startswith("y_pred") and any(isinstance(one, float) and one % 1 for one in taken):
        hint = "Pass scores as y_score=, with a threshold."
    elif len(taken) == 2:
        hint = f"Pass pos_label={shown(taken[1])} if that is the positive one."
    else:
        hint = "Turn it into two classes first, such as y == 'wanted class'."
    rule = "binary (0/1, -1/1 or False/True; or two other values and pos_label)"
    raise InputError(f"{name} must be {rule}; got the values {listed(taken)}. {hint}")


def _check_named(
    names: Sequence[str], taken: Sequence[Sequence[Hashable]], pos_label: object
) -> Hashable:
    every = list(dict.fromkeys(value for values in taken for value in values))
    try:
        pos_label = every[every.index(pos_label)]
    except (ValueError, TypeError):  # not there; or an array or NA, which are equal to nothing
        rule, hint = f"one of the labels ({listed(every)})", did_you_mean(pos_label, every)
        raise InputError(problem("pos_label", rule, pos_label, hint)) from None
    if len(every) > 2:
        where = " and ".join(names)
        others = listed(value for value in every if value != pos_label)
        raise InputError(
            f"{where} must be made of pos_label and one other value; "
            f"got {shown(pos_label)} and {others}. Turn them into two classes first."
        )
    return pos_label


def _named(
    columns: Sequence[Column], rows: NDArray[np.intp]
) -> tuple[tuple[Hashable, ...], NDArray[np.intp]]:
    """Return the sorted names of the groups (or strata) and each row's index among them."""
    if not columns:
        return ("all",), np.zeros(len(rows), np.intp)
    distinct, index = np.unique(rows, axis=0, return_inverse=True)
    names: list[Hashable] = []
    for row in distinct:
        values = tuple(column.values[i] for column, i in zip(columns, row, strict=True))
        names.append(values if len(values) > 1 else values[0])
    order = sorted(range(len(names)), key=lambda i: _sort_key(names[i]))
    rank = np.empty(len(names), np.intp)
    rank[order] = np.arange(len(names))
    return tuple(names[i] for i in order), rank[index.ravel()]


def _sort_key(name: Hashable) -> tuple[Any, ...]:
    """Order numbers by value and all else by kind and text, so that any mixture can be sorted."""
    if isinstance(name, tuple):
        return (2, *map(_sort_key, name))
    if isinstance(name, (numbers.Real, Decimal)):
        return (0, name)
    return (1, type(name).__name__, str(name))
