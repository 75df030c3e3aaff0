"""The source of columns: the arguments of a public function, or ``data`` by column names."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm.data.columns import (
    Column,
    as_column,
    as_narwhals,
    as_sequence,
    is_missing,
    make_number_column,
    to_python,
)
from fairperm.errors import InputError, InputTypeError, argument, did_you_mean, listed, shown

if TYPE_CHECKING:
    from typing import TypeGuard

    from numpy.typing import NDArray

    from fairperm.metrics.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRows:
    """Rows that an engine has counted, summed or sampled, passed on as ``data``.

    Attributes
    ----------
    columns
        A frame, or a mapping of column names to values.
    count
        The number of rows that each row stands for; None if that is one.
    alike
        The number of equal clusters that each row's cluster stands for, if clusters were counted.
    values
        By argument, the values to read in place of its column: bins of scores, for example. The
        column may also serve as another argument, and stays unchanged for that.
    predictions
        Predictions that the engine made from the scores.
    score_bins
        The number of bins of scores; None if scores are exact.
    contributions
        Each row's contributions if its label is positive, and if it is not; None if they are to be
        computed from the columns.
    notes
        Remarks for the result.
    """

    columns: object
    count: NDArray[np.int64] | None = None
    alike: NDArray[np.int64] | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    predictions: object = None
    score_bins: int | None = None
    contributions: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    notes: tuple[str, ...] = ()


class Source:
    """Where columns are read: the arguments themselves, or ``data`` by their names."""

    def __init__(self, data: object) -> None:
        self.rows = data if isinstance(data, CountedRows) else CountedRows(columns=data)
        self._read: dict[object, tuple[object, Column]] = {}
        self._columns: Mapping[Any, Any] | None = None
        if self.rows.columns is not None:
            self._columns = columns_of_frame("data", self.rows.columns)

    def column(self, name: str, given: object) -> Column:
        """Return the column for this argument, which is read only once."""
        if given is None:
            raise InputTypeError(name, "given", None)
        key = name, given if isinstance(given, str) else id(given)
        if key not in self._read:
            # the object is kept beside its column: its id cannot become that of another one
            self._read[key] = given, as_column(*self.find(name, given))
        return self._read[key][1]

    def read(self, kind: Kind, name: str, given: object) -> Column:
        """Return a column as this kind of metric needs it: numbers, labels, or either."""
        if kind.keeps_values:
            values = as_sequence(*self.find(name, given))
            if isinstance(values, np.ndarray) and values.dtype.kind == "f":
                return self._numbers(self.find(name, given)[0], values.astype(np.float64))
            return self.column(name, given)
        if name in kind.number_columns:
            return self.numbers(name, given)
        return self.column(name, given)

    def weights(self, given: object) -> list[Column]:
        """Return the column of weights, if there is one."""
        if given is None:
            return []
        column = self.numbers("sample_weight", given)
        values = np.asarray(column.values, np.float64)
        bad = values[values <= 0]
        if bad.size:
            hint = "Drop rows that should not count."
            raise InputError(column.name, "made of numbers above 0", bad[0].item(), hint)
        return [column]

    def numbers(self, name: str, given: object) -> Column:
        """Return a column of finite numbers. Booleans are numbers, unless they are scores."""
        column, data = self.find(name, given)
        values = as_floats(column, data, booleans=name != "y_score").astype(np.float64, copy=False)
        if np.isinf(values).any():
            bad = values[np.isinf(values)][0]
            raise InputError(column, "finite", float(bad), "Replace or drop infinite values.")
        return self._numbers(column, values)

    def _numbers(self, name: str, values: NDArray[np.float64]) -> Column:
        n_rows = len(values) if self.rows.count is None else int(self.rows.count.sum())
        return make_number_column(name, values, n_rows)

    def features(self, name: str, given: object) -> list[Column]:
        """Return the column or columns whose combinations are groups, strata or clusters."""
        if given is None:
            if name == "sensitive_features":
                raise InputTypeError(name, "given", None)
            return []
        if self._columns is not None and are_names(given):
            hint = (
                f"A list of strings means columns of {argument('data')}; pass values as an array."
            )
            return [as_column(*self.find(name, one, hint)) for one in given]
        parts: Mapping[Any, Any]
        if isinstance(given, np.ndarray) and given.ndim == 2:
            parts = dict(enumerate(given.T))
        elif isinstance(given, Mapping) or nw.dependencies.is_into_dataframe(given):
            parts = columns_of_frame(name, given)
        else:
            return [self.column(name, given)]
        if not parts:
            raise InputError(f"{argument(name)} must have at least one column; got none.")
        return [
            as_column(f"{argument(name)} column {shown(key)}", self.find(name, one)[1])
            for key, one in parts.items()
        ]

    def find(self, name: str, given: object, hint: str = "") -> tuple[str, object]:
        """Return the name for messages and the values of an argument, from ``data`` by a name."""
        if self._columns is None or not isinstance(given, str):
            return argument(name), given
        if name in self.rows.values:
            return describe_column(name, given), self.rows.values[name]
        if given not in self._columns:
            rule = f"a column of {argument('data')} ({listed(self._columns)})"
            hint = did_you_mean(given, self._columns) or hint
            raise InputError(name, rule, given, hint)
        return describe_column(name, given), self._columns[given]


def describe_column(name: str, column: str) -> str:
    """Return the name for messages of an argument that is a column of data."""
    return f"{argument(name)} (column {shown(column)})"


def are_names(given: object) -> TypeGuard[Sequence[str]]:
    """Whether columns are given by their names, in a list of strings."""
    return (
        isinstance(given, (list, tuple))
        and len(given) > 0
        and all(isinstance(one, str) for one in given)
    )


def columns_of_frame(name: str, data: object) -> Mapping[Any, Any]:
    """Return the columns of a frame or mapping by their names."""
    if isinstance(data, Mapping):
        return data
    frame = as_narwhals(name, data)
    if isinstance(frame, nw.DataFrame):
        return dict(zip(frame.columns, frame.iter_columns(), strict=True))
    hint = "Collect it first." if isinstance(frame, nw.LazyFrame) else ""
    if hasattr(data, "execute"):
        hint = "Pass a table of the database: connection.table('name')."
    rule = "a pandas, Polars or pyarrow frame, or a mapping of names to columns"
    raise InputTypeError(name, rule, type(data), hint)


def as_floats(name: str, data: object, *, booleans: bool = False) -> NDArray[np.floating[Any]]:
    """Return a column of numbers, NaN if missing; True is 1 if ``booleans`` are allowed."""
    sequence = as_sequence(name, data)
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in ("biuf" if booleans else "iuf"):
        return sequence if sequence.dtype.kind == "f" else sequence.astype(np.float64)
    floats = (_as_float(name, value, booleans=booleans) for value in sequence)
    return np.fromiter(floats, np.float64, len(sequence))


def _as_float(name: str, value: object, *, booleans: bool) -> float:
    if is_missing(value):
        return math.nan
    is_boolean = isinstance(value, (bool, np.bool_))
    is_number = isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, np.timedelta64)
    if booleans if is_boolean else is_number:
        try:
            return float(value)  # type: ignore[arg-type]
        except OverflowError:
            return math.inf
    is_score = name.startswith(argument("y_score"))
    is_label = is_boolean or isinstance(value, (str, bytes))
    hint = "Labels are not scores." if is_label and is_score else ""
    raise InputTypeError(name, "made of real numbers", to_python(value), hint)
