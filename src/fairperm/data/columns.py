"""Columns: where they are read, their small integer codes, distinct rows with counts, and frames.

A column is sorted or copied as a whole only as a last resort: booleans and integers in a small
range are their own codes, and strings are compared with the few values that occur.
"""

from __future__ import annotations

import math
import numbers
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.arrays import Codes
from fairperm._utils.checks import choice, number
from fairperm.errors import InputError, InputTypeError, Note, argument, listed, shown, unknown_name
from fairperm.metrics.definition import NEW, Kind

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from typing import TypeGuard

    from numpy.typing import NDArray

    from fairperm._utils.arrays import Array, Booleans, Integers
    from fairperm.data.arguments import Inputs
    from fairperm.data.score_bins import ScoreRanges
    from fairperm.metrics.definition import AnyMetric


MAX_REPEATED = 1 << 24  # counted rows that are repeated in memory
_CHUNK = 1 << 18  # rows counted at a time: their keys stay in the processor's cache
_SMALL_RANGE = 1 << 12  # integers spread no wider than this are their own codes
_FEW_STRINGS = 16  # fixed-width strings with more values than this are hashed instead
_FEW_CELLS = 16  # up to here comparing the keys with each cell is faster than np.bincount
_REPEATS = 200  # numbers that repeat this often on average are worth counting
_FEW_ROWS = 1 << 12
_SHOWN = 3  # equal values in a note
LARGEST_INTEGER = 2**53  # floats hold all integers up to here
_DENSE_CELLS = 1 << 20  # larger tables of possible rows are counted by sorting
Index = Codes | slice
_ROUNDING = 1e-6  # probabilities in 32 bits may be this much above 1
_ANY = (nw.DataFrame, nw.LazyFrame, nw.Series)
LIBRARIES = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the data: row ``i`` has the value ``values[codes[i] - low]``.

    Numbers that hardly repeat have no codes: ``values`` holds them row by row. ``name`` is how
    messages call the column; ``from_scores`` is True for predictions made by a threshold.
    ``notes`` are remarks for columns of names.
    """

    name: str
    codes: Codes
    low: int
    values: Sequence[Hashable] | Array
    from_scores: bool = False
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values) if self.is_unique else len(self.codes)

    @property
    def is_unique(self) -> bool:
        """Whether every row has a value of its own."""
        return isinstance(self.values, np.ndarray)

    def find_missing(self) -> Booleans:
        """Return for each of ``values`` whether it is a missing value."""
        if isinstance(self.values, np.ndarray):
            return np.isnan(self.values)
        return np.fromiter(map(is_missing, self.values), bool, len(self.values))

    def find_rows(self, chosen: Booleans, most: int) -> list[int]:
        """Return the first rows that have one of the chosen ``values``."""
        rows = np.flatnonzero(chosen if self.is_unique else chosen[self.indices()])
        return [int(row) for row in rows[:most]]

    def indices(self) -> Codes:
        """Return each row's index into ``values``; unsigned overflow wraps to the right index."""
        if len(self.values) <= 256:
            return self.codes.astype(np.uint8) - np.uint8(self.low % 2**8)
        return (self.codes.astype(np.uint64) - np.uint64(self.low % 2**64)).astype(np.intp)


IndexedColumn = tuple[Column, Index]  # a column, and each row's index into its values


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA, without importing pandas."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, tuple):
        return any(map(is_missing, value))
    return isinstance(value, (numbers.Number, np.generic)) and bool(value != value)


def as_sequence(name: str, data: object) -> NDArray[Any] | list[Any]:
    """Return one-dimensional data as a NumPy array, or as a list of any objects."""
    if isinstance(data, (list, tuple, range)):
        return list(data)
    data = as_narwhals(name, data)
    if isinstance(data, (nw.DataFrame, nw.LazyFrame)):
        hint = f"Pass one of its columns, or {argument('data')}=frame and the column's name."
        raise InputTypeError(name, "one column of values", type(data.to_native()), hint)
    if isinstance(data, nw.Series):
        return as_numpy(data) if _is_numpy_safe(data) else data.to_list()
    if isinstance(data, np.ma.MaskedArray):
        hint = "Use .filled() with a missing value, or .compressed() to drop the masked rows."
        raise InputTypeError(name, "a column without a mask", type(data), hint)
    if isinstance(data, (str, bytes, dict, set, frozenset)) or not hasattr(data, "__array__"):
        hint = f"Column names need {argument('data')}=frame." if isinstance(data, str) else ""
        rule = "a list, a NumPy array or a data frame's column"
        raise InputTypeError(name, rule, data, hint)
    array = np.asarray(data)
    if array.ndim != 1:
        hint = ""
        if array.ndim == 2 and array.shape[1] > 1:
            hint = "Take one column, such as [:, 1] for the probability of the second class."
        elif array.ndim == 2:
            hint = "Use .ravel() to make it one column."
        raise InputError(name, "one-dimensional", array.shape, hint)
    return array


def as_narwhals(name: str, data: object) -> object:
    """Return frames and series as narwhals objects, and anything else unchanged."""
    pandas, pyarrow = nw.dependencies.get_pandas(), nw.dependencies.get_pyarrow()
    if pandas and isinstance(data, (pandas.Index, pandas.api.extensions.ExtensionArray)):
        data = pandas.Series(data)
    if pyarrow and isinstance(data, pyarrow.Array):
        data = pyarrow.chunked_array([data])
    try:
        return nw.from_native(data, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{name} must have different column names: {reason}.") from error


def as_numpy(series: nw.Series[Any]) -> NDArray[Any]:
    """Return a series that NumPy can hold; Arrow would import pandas, which few rows are spared."""
    kind = str(series.dtype).lower().replace("boolean", "bool")
    if len(series) <= _FEW_ROWS and series.implementation.is_pyarrow() and hasattr(np, kind):
        return np.array(series.to_list(), kind)
    return series.to_numpy()


def _is_numpy_safe(series: nw.Series[Any]) -> bool:
    """Whether NumPy can hold the values unchanged."""
    # NumPy rounds integers if some are missing, pads strings to one length, and lacks 128-bit
    # integers, time zones and records
    dtype = series.dtype
    if dtype.is_float():
        return True
    plain_integer = dtype.is_integer() and dtype not in {nw.Int128, nw.UInt128}
    simple = plain_integer or dtype in {nw.Boolean, nw.Categorical, nw.Enum}
    return simple and not series.null_count()


def as_column(name: str, data: object) -> Column:
    """Return any one-dimensional data as a column of codes."""
    sequence = as_sequence(name, data)
    if isinstance(sequence, list):
        return _from_objects(name, sequence)
    kind = sequence.dtype.kind
    if kind == "b":
        return Column(name, sequence.view(np.uint8), 0, (False, True))
    if kind in "iu":
        return _from_integers(name, sequence)
    if kind == "f":
        return _from_floats(name, sequence)
    if kind in "US":
        return _from_strings(name, sequence)
    if kind in "mM":
        distinct, codes = np.unique(sequence, return_inverse=True)
        return Column(name, codes, 0, list(distinct))
    return _from_objects(name, sequence if kind == "O" else list(sequence))


def _from_integers(name: str, array: Codes) -> Column:
    if not array.size:
        return Column(name, array, 0, ())
    low, high = int(array.min()), int(array.max())
    if high - low < _SMALL_RANGE:
        return Column(name, array, low, range(low, high + 1))
    return _from_distinct(name, array)


def _from_floats(name: str, array: NDArray[np.floating[Any]]) -> Column:
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.int16)
    if not np.array_equal(whole, array):
        return _from_distinct(name, array)
    column = _from_integers(name, whole)
    return Column(name, column.codes, column.low, [float(value) for value in column.values])  # type: ignore[arg-type]


def _from_distinct(name: str, array: NDArray[Any]) -> Column:
    distinct, codes = np.unique(array, return_inverse=True)
    return Column(name, codes, 0, distinct.tolist())


def _from_strings(name: str, array: NDArray[Any]) -> Column:
    codes = np.zeros(len(array), np.uint8)
    unseen = np.ones(len(array), bool)
    values: list[Hashable] = []
    while len(values) < _FEW_STRINGS and unseen.any():
        value = array[unseen.argmax()]
        same = array == value
        codes += same.view(np.uint8) * np.uint8(len(values))
        unseen ^= same
        values.append(value.item())
    if unseen.any():
        return _from_objects(name, array.tolist())
    return Column(name, codes, 0, values)


def _from_objects(name: str, objects: Sequence[Any] | NDArray[np.object_]) -> Column:
    code_of: defaultdict[Hashable, int] = defaultdict()
    code_of.default_factory = code_of.__len__  # a value not seen before gets the next code
    try:
        codes = np.fromiter(map(code_of.__getitem__, objects), np.int32, len(objects))
    except TypeError as error:
        hint = "Turn lists into tuples or strings first."
        raise InputTypeError(name, "made of hashable values", str(error), hint) from error
    values = [None if is_missing(value) else to_python(value) for value in code_of]
    distinct = {value: i for i, value in enumerate(dict.fromkeys(values))}
    if len(distinct) < len(values):  # NaNs differ from each other, but all of them are missing
        codes = np.array([distinct[value] for value in values], np.int32)[codes]
    for value in distinct:
        if isinstance(value, (str, bytes)) and value[-1:] in {"\0", b"\0"}:
            hint = "NumPy's arrays of text drop it."
            raise InputError(name, "made of text that does not end in a NUL", value, hint)
    return Column(name, codes, 0, list(distinct), notes=_note_equal_numbers(name, objects))


def _note_equal_numbers(name: str, objects: Sequence[Any] | NDArray[np.object_]) -> tuple[str, ...]:
    """Return a note if numbers of different types are equal, such as 1, 1.0 and True."""
    types = {
        one for one in set(map(type, objects)) if issubclass(one, (numbers.Number, np.generic))
    }
    if len(types) < 2:
        return ()
    spellings: defaultdict[Hashable, dict[str, None]] = defaultdict(dict)
    for _, value in dict.fromkeys((type(one), one) for one in objects if type(one) in types):
        if not is_missing(value):
            spellings[value][repr(to_python(value))] = None
    merged = [" = ".join(texts) for texts in spellings.values() if len(texts) > 1]
    if not merged:
        return ()
    equal = ", ".join(merged[:_SHOWN])
    return (Note(f"{name} has equal values of different types, each of which is one: {equal}."),)


def to_python(value: Hashable) -> Hashable:
    """Return a NumPy scalar as a Python value, except times: their nanoseconds become integers."""
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        return value.item()  # type: ignore[no-any-return]
    return value


def make_number_column(name: str, values: Array, n_rows: int) -> Column:
    """Return numbers as codes of their distinct values, or row by row if they hardly repeat."""
    # ``n_rows`` is the number of rows of the data: more than there are values if they were counted
    if _REPEATS * _estimate_distinct(values) <= n_rows:
        distinct = np.unique(values)
        if _REPEATS * len(distinct) <= n_rows:
            return Column(name, np.searchsorted(distinct, values), 0, distinct.tolist())
    return Column(name, np.empty(0, np.intp), 0, values)


def _estimate_distinct(values: Array) -> int:
    """Estimate the number of distinct values from those whose hash is in one of 64 buckets."""
    # the hash depends on the values alone, never on the order of the rows
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)
    chosen = (bits * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58) == 0
    return 64 * len(np.unique(values[chosen]))


def count_rows(columns: Sequence[Column]) -> tuple[list[Index], Integers]:
    """Return the distinct rows, as each column's indices into its values, and their counts."""
    # if a column hardly repeats, every row counts as distinct, and that column's index is all of it
    if any(column.is_unique for column in columns):
        return index_rows(columns), np.broadcast_to(np.int64(1), len(columns[0]))
    shape = tuple(len(column.values) for column in columns)
    cells = math.prod(shape)
    if cells <= _DENSE_CELLS:
        counts = _count_dense(columns, shape, cells)
        present = np.flatnonzero(counts)
        return list(np.unravel_index(present, shape)), counts[present]
    rows = np.stack([column.indices() for column in columns], axis=1)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    return list(distinct.T), counts.astype(np.int64)


def index_rows(columns: Sequence[Column]) -> list[Index]:
    """Return for each column the index into its values of every row."""
    return [slice(None) if column.is_unique else column.indices() for column in columns]


def _count_dense(columns: Sequence[Column], shape: Iterable[int], cells: int) -> Integers:
    # a narrow key can hold every cell's number, so overflow wraps to the right number
    dtype: type[np.unsignedinteger[Any]] = np.uint8 if cells <= 256 else np.uint64
    wrap = 1 << (8 * np.dtype(dtype).itemsize)
    counts = np.zeros(cells, np.int64)
    for start in range(0, len(columns[0]), _CHUNK):
        keys: Any = dtype(0)
        for column, size in zip(columns, shape, strict=True):
            part = column.codes[start : start + _CHUNK].astype(dtype)
            if column.low:
                part -= dtype(column.low % wrap)
            keys = part + keys * dtype(size % wrap)
        counts += _count_keys(keys, cells)
    return counts


def _count_keys(keys: NDArray[np.unsignedinteger[Any]], cells: int) -> Integers:
    if cells > _FEW_CELLS:
        return np.bincount(keys.astype(np.intp), minlength=cells)
    return np.array([np.count_nonzero(keys == cell) for cell in range(cells)], np.int64)


@dataclass
class Source:
    """Where columns are read: the arguments themselves, or ``data`` by their names.

    Rows that an engine has counted, summed or sampled are passed on as ``data`` in this form.
    """

    columns: object = None  # a frame, or a mapping of column names to values
    # the number of rows that each row stands for; None if that is one
    count: Integers | None = None
    # the number of equal clusters that each row's cluster stands for, if clusters were counted
    alike: Integers | None = None
    # By argument, the values to read in place of its column: bins of scores, for example. The
    # column may also serve as another argument, and stays unchanged for that.
    values: Mapping[str, object] = field(default_factory=dict)
    # by argument, predictions that the engine made from the scores
    predictions: Mapping[str, object] = field(default_factory=dict)
    # the bins whose middles are in place of the scores; None if scores are not put into bins
    bins: ScoreRanges | None = None
    # each row's contributions if its label is positive, and if it is not; None if they are to be
    # computed from the columns
    contributions: tuple[Array, Array] | None = None
    # whether a user has counted them: they may be repeated, and stand for none
    are_copies: bool = False
    notes: tuple[str, ...] = ()  # remarks for the result
    _columns: Mapping[Any, Any] | None = field(default=None, init=False)
    _read: dict[object, tuple[object, Column]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, data: object) -> Source:
        """Return the rows of ``data``, each of which is one, or those that an engine counted."""
        return data if isinstance(data, Source) else cls(data)

    def __post_init__(self) -> None:
        """List the columns. Raises InputError for what is no frame."""
        if self.columns is not None:
            self._columns = columns_of_frame("data", self.columns)

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
        if kind.reads_numbers(name):
            return self.numbers(name, given)
        if kind.keeps_values:
            values = as_sequence(*self.find(name, given))
            if isinstance(values, np.ndarray) and values.dtype.kind == "f":
                return self._numbers(self.find(name, given)[0], values.astype(np.float64))
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
        booleans = not name.startswith("y_score")
        values = as_floats(column, data, booleans=booleans).astype(np.float64, copy=False)
        if np.isinf(values).any():
            bad = values[np.isinf(values)][0]
            raise InputError(column, "finite", float(bad), "Replace or drop infinite values.")
        return self._numbers(column, values)

    def _numbers(self, name: str, values: Array) -> Column:
        n_rows = len(values) if self.count is None else int(self.count.sum())
        return make_number_column(name, values, n_rows)

    def features(self, name: str, given: object) -> list[Column]:
        """Return the column or columns whose combinations are groups, strata or clusters."""
        if given is None:
            if name == "sensitive_features":
                raise InputTypeError(name, "given", None)
            return []
        if isinstance(given, list) and given and isinstance(given[0], Column):
            return given  # the caller has read them
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

    def measured(self, inputs: Inputs, metric: AnyMetric) -> dict[str, Column]:
        """Return the columns that the metric is computed from."""
        # several metrics get all columns that at least one of them needs
        columns: dict[str, Column] = {}
        for one, suffix in models_of(inputs):
            columns |= self._of_model(one, metric, suffix)
        return columns

    def _of_model(self, inputs: Inputs, metric: AnyMetric, suffix: str) -> dict[str, Column]:
        """Return the labels and the columns of one model, whose names get the suffix."""
        kind, score = metric.kind, f"y_score{suffix}"
        if kind.needs_labels:
            columns: dict[str, Column] = {}
            if inputs.y_true is not None:
                columns["y_true"] = self.column("y_true", inputs.y_true)
            if kind.makes_predictions or "y_pred" in metric.columns:
                columns |= self._predictions(inputs, suffix)
            if kind == Kind.SEVERAL and "y_score" in metric.columns:
                columns[score] = self.numbers(score, inputs.y_score)
        else:
            names = [name for name in metric.columns if not name.endswith(NEW)]
            columns = {}
            for name in names:
                of_model = name + suffix if name in {"y_pred", "y_score"} else name
                columns[of_model] = self.read(kind, of_model, inputs.find(name))
        if score in columns and any(one.kind == Kind.PROBABILITY for one in metric.parts):
            scores = np.asarray(columns[score].values, np.float64)
            outside = scores[(scores < 0) | (scores > 1)]
            if outside.size:
                rule, hint = (
                    "from 0 to 1 for this metric",
                    "Scale the scores to probabilities first.",
                )
                raise InputError(columns[score].name, rule, outside[0].item(), hint)
        return columns

    def _predictions(self, inputs: Inputs, suffix: str) -> dict[str, Column]:
        """Return the predictions, given or made from the scores, if there are any."""
        prediction, score = f"y_pred{suffix}", f"y_score{suffix}"
        if inputs.y_pred is not None:
            return {prediction: self.column(prediction, inputs.y_pred)}
        if inputs.y_score is None:
            return {}
        if prediction in self.predictions:
            name = describe_column(score, str(inputs.y_score))
            made = as_column(name, self.predictions[prediction])
            return {prediction: replace(made, from_scores=True)}
        name, scores = self.find(score, inputs.y_score)
        return {prediction: _predict(name, as_floats(name, scores), inputs.threshold, suffix)}

    def count_kinds(
        self, columns: Sequence[Column]
    ) -> tuple[list[Index], Integers, Integers | None]:
        """Return the distinct rows as indices into the columns, their counts, and ``alike``.

        Rows that an engine has counted are repeated if they hardly repeat, as if they had been read
        one by one: then the same engine draws the same numbers. Very many rows stay counted,
        because they may not fit into memory. If clusters were counted, the rows of one of each kind
        are repeated.
        """
        _check_lengths(columns)
        counts, alike = self.count, self.alike
        if counts is not None and len(counts) != len(columns[0]):
            rule = f"as long as {columns[0].name} ({len(columns[0]):,} rows)"
            raise InputError("count", rule, len(counts), "Pass columns of one length.")
        if counts is None:
            return *count_rows(columns), None
        rows = index_rows(columns)
        if self.are_copies:
            rows, counts = _merge_copies(rows, counts)
        if self.contributions is not None:
            return rows, counts, None
        each = counts if alike is None else counts // alike
        repeats = not any(one.is_unique for one in columns) or self.bins is not None
        if repeats or each.sum() > MAX_REPEATED:
            return rows, counts, alike
        again = np.repeat(np.arange(len(counts)), each)
        rows = [again if isinstance(one, slice) else one[again] for one in rows]
        if alike is None:
            return rows, np.broadcast_to(np.int64(1), len(again)), None
        return rows, alike[again], alike[again]

    def find(self, name: str, given: object, hint: str = "") -> tuple[str, object]:
        """Return the name for messages and the values of an argument, from ``data`` by a name."""
        if self._columns is None or not isinstance(given, str):
            return argument(name), given
        if name in self.values:
            return describe_column(name, given), self.values[name]
        if given not in self._columns:
            rule = f"a column of {argument('data')}"
            raise unknown_name(name, rule, given, self._columns, hint)
        return describe_column(name, given), self._columns[given]


def _merge_copies(rows: list[Index], counts: Integers) -> tuple[list[Index], Integers]:
    """Return equal rows once, in the order of their codes; rows that hardly repeat as they are."""
    kept = np.flatnonzero(counts)
    counts = counts[kept]
    if any(isinstance(one, slice) for one in rows):
        return [kept if isinstance(one, slice) else one[kept] for one in rows], counts
    codes = np.stack([one[kept] for one in rows if not isinstance(one, slice)], axis=1)
    distinct, place = np.unique(codes, axis=0, return_inverse=True)
    merged = np.bincount(place.ravel(), counts, len(distinct)).astype(np.int64)
    return list(distinct.T), merged


def models_of(inputs: Inputs) -> list[tuple[Inputs, str]]:
    """Return the data arguments of each model, and what ends the names of its own."""
    new = inputs.new_model
    return [(inputs, "")] if new is None else [(inputs, ""), (new, NEW)]


def check_one_score(name: str, given: object, *, in_data: bool) -> None:
    """Raise InputTypeError if several columns of ``data``, or a mapping, are given as a score."""
    if isinstance(given, Mapping) or (in_data and are_names(given)):
        hint = "Several, one for each class, are for metrics of classes, such as roc_auc_ovr."
        raise InputTypeError(name, "one column of scores", given, hint)


def split_scores(
    given: object, metric: str, *, in_data: bool
) -> tuple[dict[str, object], tuple[Hashable, ...] | None]:
    """Return several columns of scores by their names, and the classes they are named by."""
    if isinstance(given, Mapping) or nw.dependencies.is_into_dataframe(given):
        parts = columns_of_frame("y_score", given)
        return {f"y_score[{name!r}]": one for name, one in parts.items()}, tuple(parts)
    if in_data and are_names(given):
        return {f"y_score[{i}]": one for i, one in enumerate(given)}, None
    if getattr(given, "ndim", 0) == 2 and hasattr(given, "__array__"):
        return {f"y_score[:, {i}]": one for i, one in enumerate(np.asarray(given).T)}, None
    hint = "Pass an array with a column for each class, or a mapping of classes to columns."
    if in_data:
        hint = f"Pass a list of columns of {argument('data')}, or a mapping of classes to them."
    got = given if given is None or isinstance(given, str) else type(given)
    raise InputTypeError("y_score", f"several columns of scores for {metric}", got, hint)


def _predict(
    name: str, scores: NDArray[np.floating[Any]], threshold: object, suffix: str
) -> Column:
    """Return the predictions ``score >= threshold``, missing if the score is."""
    cut = round_threshold(threshold, scores.dtype.type)
    unknown = np.isnan(scores)
    if not unknown.all():
        low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
        check_threshold(name, low, high, cut, threshold, suffix)
    codes = (scores >= cut).view(np.uint8) | unknown.view(np.uint8) << 1
    return Column(name, codes, 0, (False, True, None, None), from_scores=True)


def parse_threshold(given: object, suffix: str = "") -> float:
    """Return the threshold, by default 0.5."""
    return 0.5 if given is None else number(f"threshold{suffix}", given)


def round_threshold(given: object, precision: type[np.floating[Any]]) -> float:
    """Return the threshold in the precision of the scores: 0.7 in 32 bits is at least 0.7."""
    with np.errstate(over="ignore"):
        return float(precision(parse_threshold(given)))


def check_threshold(
    name: str, low: float, high: float, cut: float, given: object, suffix: str = ""
) -> None:
    """Raise InputError if scores are infinite, or if all of them are on one side of the threshold.

    The default of 0.5 is the middle of probabilities; percentages or log-odds need a choice.
    """
    if not np.isfinite([low, high]).all():
        hint = "Replace infinite scores by the largest finite score you mean."
        raise InputError(name, "finite", high if np.isinf(high) else low, hint)
    threshold = f"threshold{suffix}"
    if given is None and not -_ROUNDING <= low <= high <= 1 + _ROUNDING:
        raise InputError(
            f"{argument(threshold)} must be given if {name} is not between 0 and 1; got scores "
            f"from {low:g} to {high:g}. The default of 0.5 is for probabilities."
        )
    if not low < cut <= high:
        outcome = "positive" if cut <= low else "negative"
        rule = f"above the lowest score ({low:g}) and not above the highest ({high:g})"
        raise InputError(threshold, rule, given, f"It would predict every row as {outcome}.")


def _check_lengths(columns: Sequence[Column]) -> None:
    first = columns[0]
    for column in columns[1:]:
        if len(column) != len(first):
            rule = f"as long as {first.name} ({len(first):,} rows)"
            raise InputError(column.name, rule, len(column), "Pass columns of one length.")


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
        if sequence.dtype.kind == "f":
            return sequence
        if sequence.dtype.itemsize == 8:
            is_large = (sequence > LARGEST_INTEGER) | (sequence < -LARGEST_INTEGER)
            for value in sequence[is_large].tolist():
                _check_exact(name, value)
        return sequence.astype(np.float64)
    floats = (_as_float(name, value, booleans=booleans) for value in sequence)
    return np.fromiter(floats, np.float64, len(sequence))


def _check_exact(name: str, value: int) -> None:
    if float(value) != value:
        raise inexact_error(name, value)


def inexact_error(name: str, value: int) -> InputError:
    """Return the error for an integer that a float cannot hold."""
    rule = "made of integers that a float can hold (all up to 2**53)"
    hint = "Subtract a common offset; or convert to floats if rounding does not matter."
    return InputError(name, rule, value, hint)


def _as_float(name: str, value: object, *, booleans: bool) -> float:
    if is_missing(value):
        return math.nan
    is_boolean = isinstance(value, (bool, np.bool_))
    is_number = isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, np.timedelta64)
    if booleans if is_boolean else is_number:
        try:
            number = float(value)  # type: ignore[arg-type]
        except OverflowError:
            return math.inf
        if abs(number) >= LARGEST_INTEGER and isinstance(value, numbers.Integral):
            _check_exact(name, int(value))
        return number
    hint = ""
    if name.startswith(argument("values")):
        hint = f"For categories, use a distance such as {argument('distance', 'total_variation')}."
    elif is_boolean or isinstance(value, (str, bytes)):
        is_score = name.startswith(argument("y_score")[:-1])  # also y_score_new, and one of several
        hint = "Labels are not scores." if is_score else ""
    raise InputTypeError(name, "made of real numbers", to_python(value), hint)


def library_of(data: object) -> str | None:
    """Return the library of a frame or column; None for anything else."""
    if isinstance(data, Source):
        data = data.columns
    if data is None:
        return None
    frame = as_narwhals("data", data)
    return str(frame.implementation.value) if isinstance(frame, _ANY) else None


def frame_of(columns: Mapping[str, Any], library: str | None, default: str | None) -> Any:
    """Return a frame of the library, by default that of the data or else pandas."""
    chosen = default if default in LIBRARIES else "pandas"
    if library is not None:
        chosen = choice("library", library, LIBRARIES)
    try:
        return nw.from_dict(dict(columns), backend=chosen).to_native()  # type: ignore[arg-type]
    except ModuleNotFoundError as error:
        hint = f"Install {chosen}, name one of {listed(LIBRARIES)}, or use to_dict()."
        rule = "a data-frame library that is installed"
        raise InputError("library", rule, chosen, hint) from error
