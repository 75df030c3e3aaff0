"""Features: columns whose values, and ranges of ordered values, describe subgroups.

A feature of more numbers than there are bands is cut at its quantiles. The cuts depend on the
features alone, never on outcomes, so they do not affect the level of a test.
"""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Integers, Places
from fairperm._utils.formatting import format_name
from fairperm._utils.sorting import sort_key
from fairperm.data.columns import Column, Source, are_names, columns_of_frame, is_missing
from fairperm.data.lazy.backends import lazy_frame, read_schema
from fairperm.errors import InputError, InputTypeError, argument, unknown_name

__all__ = ["Band"]

_NAMES = (bool, np.bool_, np.timedelta64)  # though Python takes them for numbers
_LARGE, _HUGE = 1e6, 1e15  # numbers between them have more than six digits, all of them certain


@dataclass(frozen=True, slots=True)
class Band:
    """A range of numbers, both ends included.

    Attributes
    ----------
    low, high : float or None
        The smallest and the largest number; None at an open end.

    Examples
    --------
    >>> from fairperm import Band
    >>> print(Band(26, 45)), 30 in Band(26, None)
    26 to 45
    (None, True)
    """

    low: float | None
    high: float | None

    def __contains__(self, number: float) -> bool:
        above = self.low is None or number >= self.low
        return above and (self.high is None or number <= self.high)

    def __str__(self) -> str:
        low, high = (None if end is None else _write_number(end) for end in (self.low, self.high))
        if low is None:
            return f"at most {high}"
        if high is None:
            return f"at least {low}"
        return low if self.low == self.high else f"{low} to {high}"


@dataclass(frozen=True, slots=True)
class Item:
    """One condition on a feature: a level, or all ordered levels from ``first`` to ``last``."""

    first: int
    last: int
    condition: object


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of every row as a number of its level."""

    name: str  # what users call it
    column: Column  # codes of the levels, named for messages
    # the condition of each level, a value or a band; None, the last one, is a missing value
    levels: tuple[object, ...]
    # for ordered levels, the smallest and the largest number in each; else None
    bounds: tuple[tuple[float, float], ...] | None

    def items(self) -> Iterator[Item]:
        """Yield the conditions on this feature; ranges leave out at least one level."""
        for place, level in enumerate(self.levels):
            yield Item(place, place, level)
        if self.bounds is None:
            return
        n = len(self.bounds)
        for first in range(n):
            for last in range(first + 1, n):
                if last - first + 1 < n:
                    yield Item(first, last, self._band(first, last))

    def _band(self, first: int, last: int) -> Band:
        bounds = self.bounds or ()
        low = None if first == 0 else bounds[first][0]
        high = None if last == len(bounds) - 1 else bounds[last][1]
        return Band(low, high)


def read_features(source: Source, data: object, given: object, bands: int) -> list[Feature]:
    """Return the features, ordered by their names: the order of columns changes no result."""
    names = _name_features(data, given)
    columns = source.features("features", given)
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        raise InputError("features", "columns with different names", names)
    pairs = zip(names, columns, strict=True)
    found = [_make_feature(name, column, source.count, bands) for name, column in pairs]
    if not any(len(feature.levels) > 1 for feature in found):
        rule = "at least one column of different values"
        raise InputError("features", rule, names, "One value makes no subgroup.")
    return sorted(found, key=lambda feature: feature.name)


def _name_features(data: object, given: object) -> list[str]:
    if given is None:
        raise InputTypeError("features", "given", None)
    if data is not None and isinstance(given, str):
        return [given]
    if data is not None and are_names(given):
        return list(given)
    if isinstance(given, np.ndarray) and given.ndim == 2:
        return [f"column {i}" for i in range(given.shape[1])]
    if isinstance(given, Mapping) or nw.dependencies.is_into_dataframe(given):
        return [str(name) for name in columns_of_frame("features", given)]
    name = getattr(given, "name", None)
    return [name if isinstance(name, str) else "feature"]


def check_names(data: object, given: object) -> None:
    """Raise an error if features of a lazy frame are no names of its columns."""
    frame = lazy_frame(data)
    if frame is None:
        return
    names = [given] if isinstance(given, str) else given
    if not are_names(names):
        raise InputTypeError("features", "names of columns of the lazy frame", given)
    known = list(read_schema(frame))
    for name in names:
        if name not in known:
            raise unknown_name("features", f"a column of {argument('data')}", name, known)


def _make_feature(name: str, column: Column, count: Integers | None, bands: int) -> Feature:
    values, index = list(column.values), column.indices()
    counts = np.bincount(index, count, len(values))
    missing = np.fromiter(map(is_missing, values), bool, len(values))
    present = [i for i in np.flatnonzero(counts).tolist() if not missing[i]]
    are_numbers = all(_is_number(values[i]) for i in present)
    if are_numbers:
        values = [_as_plain_number(value) for value in values]
    present.sort(key=lambda i: values[i] if are_numbers else sort_key(values[i]))
    level = np.full(len(values), len(present), np.int64)
    levels: list[object] = [values[i] for i in present]
    bounds = None
    if are_numbers and present:
        ordered = [values[i] for i in present]
        place = cut_at_quantiles(counts[present], bands)
        level[present] = place
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        stops = np.append(starts[1:], len(place)) - 1
        bounds = tuple((ordered[i], ordered[j]) for i, j in zip(starts, stops, strict=True))
        levels = [_name_level(bounds, i) for i in range(len(bounds))]
    else:
        level[present] = np.arange(len(present))
    if counts[missing].any():
        level[missing] = len(levels)
        levels.append(None)
    codes = level[index]
    made = replace(column, codes=codes, low=0, values=range(len(levels)))
    return Feature(name, made, tuple(levels), bounds)


def _is_number(value: Hashable) -> bool:
    return isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, _NAMES)


def _as_plain_number(value: Any) -> Any:
    """Return a number of any type, decimals and fractions too, as an int or a float."""
    if not _is_number(value):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def cut_at_quantiles(counts: NDArray[Any], bands: int) -> Places:
    """Return the band of each of the ascending distinct numbers, which occur so often."""
    # A band ends at a quantile of the rows; equal numbers are never separated. Each of at most
    # ``bands`` numbers is a band of its own.
    if len(counts) <= bands:
        return np.arange(len(counts))
    reached = np.cumsum(counts)
    wanted = np.arange(1, bands) / bands * reached[-1]
    cuts = np.unique(np.searchsorted(reached, wanted))
    cuts = cuts[cuts < len(counts) - 1]
    place: Places = np.searchsorted(cuts, np.arange(len(counts)))
    return place


def _name_level(bounds: Sequence[tuple[float, float]], place: int) -> object:
    low, high = bounds[place]
    if low == high:
        return low
    return Band(None if place == 0 else low, None if place == len(bounds) - 1 else high)


def describe(conditions: Mapping[str, object]) -> str:
    """Return the conditions in words.

    Examples
    --------
    >>> describe({"age": Band(None, 25), "race": None, "sex": "Female"})
    'age at most 25 and race missing and sex = Female'
    """
    return " and ".join(
        f"{format_name(name)} {_describe_condition(value)}" for name, value in conditions.items()
    )


def _describe_condition(value: object) -> str:
    if value is None:
        return "missing"
    if isinstance(value, Band):
        return str(value)
    return f"= {format_name(_write_number(value) if isinstance(value, float) else value)}"


def _write_number(number: float) -> str:
    """Return a number with six digits, or with all those before the decimal point.

    Examples
    --------
    >>> _write_number(0.12345678), _write_number(12345678), _write_number(1e300)
    ('0.123457', '12345678', '1e+300')
    """
    if isinstance(number, numbers.Integral):
        return f"{number:d}"
    return f"{number:.0f}" if _LARGE <= abs(number) < _HUGE else f"{number:.6g}"
