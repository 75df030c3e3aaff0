"""Where columns come from: the arguments of a public function, or a frame by their names."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    number_column,
    plain,
)
from fairperm.errors import InputError, InputTypeError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from typing import TypeGuard

    from numpy.typing import NDArray

    from fairperm.metrics.kinds import Kind


@dataclass(frozen=True, slots=True)
class Counted:
    """Data whose equal rows were counted already, by an engine that has more of them than we.

    ``alike`` is for how many clusters a row's own stands, if equal clusters were counted as well;
    ``sums`` are what rows contribute, if the engine has added that up.
    """

    data: object
    count: NDArray[np.int64]
    score_bins: int | None = None
    alike: NDArray[np.int64] | None = None
    sums: Sums | None = None


@dataclass(frozen=True, slots=True)
class Sums:
    """What rows contribute that stand for many, all the same in mean and variance.

    There may be two answers: of rows that turn out to be positive, and of those that do not.
    """

    positive: NDArray[np.float64]
    other: NDArray[np.float64]

    def of(self, label: NDArray[Any] | None, kept: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the contributions of the rows that are kept, whose labels these are."""
        if label is None or label.dtype != np.bool_:
            return self.other[kept]
        return np.where(label[:, None], self.positive[kept], self.other[kept])


@dataclass(frozen=True, slots=True)
class Sampled:
    """Some rows out of very many, and a note that says so."""

    data: object
    note: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """A column of data that has been read from it already; messages still tell its name."""

    column: str
    values: object


@dataclass(frozen=True, slots=True)
class Made(Fetched):
    """Predictions that were made of scores already, by the engine that counted the rows.

    The column is that of the scores.
    """


class Source:
    """Where columns come from: the arguments themselves, or ``data=`` by their names."""

    def __init__(self, data: object) -> None:
        self._read: dict[object, tuple[object, Column]] = {}
        self._columns: Mapping[Any, Any] | None = None
        self.count: NDArray[np.int64] | None = None
        self.score_bins: int | None = None
        self.alike: NDArray[np.int64] | None = None
        self.sums: Sums | None = None
        self.notes: tuple[str, ...] = ()
        if isinstance(data, Counted):
            self.count, self.score_bins = data.count, data.score_bins
            self.alike, self.sums, data = data.alike, data.sums, data.data
        if isinstance(data, Sampled):
            self.notes, data = (data.note,), data.data
        if data is not None:
            self._columns = columns_of_frame("data", data)

    def column(self, name: str, given: object) -> Column:
        """Return the column that was given for this argument."""
        if given is None:
            raise InputTypeError(name, "given", None)
        return self._once(name, given, lambda: as_column(*self.find(name, given)))

    def _once(self, name: str, given: object, read: Callable[[], Column]) -> Column:
        """Return a column, read no more than once."""
        key = name, given if isinstance(given, str) else id(given)
        if key not in self._read:
            self._read[key] = given, read()  # what was given is kept, so that no other has its id
        return self._read[key][1]

    def read(self, kind: Kind, name: str, given: object) -> Column:
        """Return a column as the metric's kind wants it: numbers, labels, or either."""
        if kind.keeps_values:
            values = as_sequence(*self.find(name, given))
            if isinstance(values, np.ndarray) and values.dtype.kind == "f":
                return self._numbers(self.find(name, given)[0], values.astype(np.float64))
            return self.column(name, given)
        return (
            self.numbers(name, given) if name in kind.number_columns else self.column(name, given)
        )

    def weights(self, given: object) -> list[Column]:
        """Return the column of weights, if there is one."""
        if given is None:
            return []
        column = self.numbers("sample_weight", given)
        values = np.asarray(column.values, np.float64)
        bad = values[values <= 0]
        if bad.size:
            hint = "Leave out rows that should not count."
            raise InputError(column.name, "made of numbers above 0", bad[0].item(), hint)
        return [column]

    def numbers(self, name: str, given: object) -> Column:
        """Return a column of finite numbers."""
        # labels may be counted as 0 and 1, scores not
        column, data = self.find(name, given)
        values = as_floats(column, data, truths=name != "y_score").astype(np.float64, copy=False)
        if np.isinf(values).any():
            bad = values[np.isinf(values)][0]
            raise InputError(column, "finite", float(bad), "Replace or drop infinite values.")
        return self._numbers(column, values)

    def _numbers(self, name: str, values: NDArray[np.float64]) -> Column:
        n_rows = len(values) if self.count is None else int(self.count.sum())
        return number_column(name, values, n_rows)

    def features(self, name: str, given: object) -> list[Column]:
        """Return the column, or the several columns, that an attribute is made of."""
        if given is None:
            if name == "sensitive_features":
                raise InputTypeError(name, "given", None)
            return []
        if self._columns is not None and are_names(given):
            hint = "A list of strings means columns of data; pass values as an array."
            return [as_column(*self.find(name, one, hint)) for one in given]
        parts: Mapping[Any, Any]
        if isinstance(given, np.ndarray) and given.ndim == 2:
            parts = dict(enumerate(given.T))
        elif isinstance(given, Mapping) or nw.dependencies.is_into_dataframe(given):
            parts = columns_of_frame(name, given)
        else:
            return [self.column(name, given)]
        if not parts:
            raise InputError(f"{name} must have at least one column; got none.")
        named = ((self.find(f"{name} column {shown(key)}", one)) for key, one in parts.items())
        return [as_column(*one) for one in named]

    def find(self, name: str, given: object, hint: str = "") -> tuple[str, object]:
        """Return what was given, or the column of that name, and what to call it in messages."""
        if isinstance(given, Fetched):
            return called(name, given.column), given.values
        if self._columns is None or not isinstance(given, str):
            return name, given
        if given not in self._columns:
            rule = f"a column of data ({listed(self._columns)})"
            hint = did_you_mean(given, self._columns) or hint
            raise InputError(name, rule, given, hint)
        return called(name, given), self._columns[given]


def called(name: str, column: str) -> str:
    """Return what messages call an argument that is a column of data."""
    return f"{name} (column {shown(column)})"


def are_names(given: object) -> TypeGuard[Sequence[str]]:
    """Tell whether columns are given by their names: in a list of texts."""
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
        hint = "Of a database, pass a table: connection.table('name')."
    rule = "a pandas, Polars or pyarrow frame, or a mapping of names to columns"
    raise InputTypeError(name, rule, type(data), hint)


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
    raise InputTypeError(name, "made of real numbers", plain(value), hint)
