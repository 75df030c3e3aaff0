"""Inputs of a model, and their copies with another value of an attribute."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils import checks
from fairperm._utils.arrays import Places
from fairperm.data.columns import as_column, as_narwhals, frame_of, is_missing
from fairperm.errors import (
    InputError,
    InputTypeError,
    Shown,
    argument,
    listed,
    shown,
    unknown_name,
)

MAX_VALUES = 20
_MAX_ROWS = 10**7  # generated


@dataclass(frozen=True, slots=True)
class Copies:
    """Rows, in the order in which they are used, and the columns that a value changes."""

    frame: nw.DataFrame[Any]
    feature: str
    values: tuple[Hashable, ...]
    proxies: Mapping[str, Mapping[Hashable, object]]

    def rows(self, chosen: Places) -> nw.DataFrame[Any]:
        """Return these rows as they are."""
        return self.frame[chosen.tolist(), :]

    def copy(self, chosen: Places, value: Hashable) -> Any:
        """Return these rows with one value of the attribute, and with what it does to proxies."""
        changed = {self.feature: value} | {name: of[value] for name, of in self.proxies.items()}
        frame = self.rows(chosen)
        return frame.with_columns(
            self._repeat(name, one, len(chosen)) for name, one in changed.items()
        ).to_native()

    def notes(self) -> list[str]:
        """Return a note if the data do not have one of the values."""
        new = [one for one in self.values if not (self.frame[self.feature] == one).any()]
        return [f"No row has {shown(self.feature)} {listed(new)}."] if new else []

    def _repeat(self, name: str, value: object, n: int) -> Any:
        """Return a column of one value, taken from the data if it occurs: its type then stays."""
        column = self.frame[name]
        places = np.flatnonzero((column == value).fill_null(value=False).to_numpy())
        return (
            column[[int(places[0])] * n] if len(places) else nw.lit(cast("Any", value)).alias(name)
        )


def read_copies(data: object, feature: object, values: object, proxies: object) -> Copies:
    """Return the rows of a frame and the values to copy them with."""
    frame = as_narwhals("data", frame_of(data, None, None) if isinstance(data, Mapping) else data)
    if isinstance(frame, nw.LazyFrame):
        raise InputTypeError("data", "a frame in memory", type(data), "Collect it first.")
    if not isinstance(frame, nw.DataFrame):
        raise InputTypeError("data", "a frame, or a mapping of names to columns", type(data))
    if not len(frame):
        raise InputError("data", "a frame with rows", Shown("none"))
    for name, option in ((feature, "feature"), *((one, "proxies") for one in _as_proxies(proxies))):
        if name not in frame.columns:
            raise unknown_name(option, f"a column of {argument('data')}", name, frame.columns)
    chosen = _read_values(frame, str(feature), values)
    copies = Copies(frame, str(feature), chosen, _read_proxies(proxies, str(feature), chosen))
    for value in chosen:
        _check_types(copies, value)
    return copies


def _check_types(copies: Copies, value: Hashable) -> None:
    """Raise InputError if a copy would have columns of other kinds: texts instead of numbers."""
    first = np.zeros(1, np.intp)
    before = copies.rows(first)
    try:
        after = nw.from_native(copies.copy(first, value), eager_only=True)
        fits = all(_kind(before[one]) == _kind(after[one]) for one in before.columns)
    except Exception:
        fits = False
    if not fits:
        rule = "values that its column can have, as those of proxies must be"
        raise InputError("values", rule, value)


def _kind(column: nw.Series[Any]) -> str:
    dtype = column.dtype
    return "number" if dtype.is_numeric() else "boolean" if dtype == nw.Boolean else "other"


def _read_values(frame: nw.DataFrame[Any], feature: str, values: object) -> tuple[Hashable, ...]:
    if values is None:
        column = as_column("feature", frame[feature])
        known = [one for one in column.values if not is_missing(one)]
        if len(known) > MAX_VALUES:
            rule = f"given if {argument('feature')} has more than {MAX_VALUES} values"
            raise InputError("values", rule, Shown(f"{len(known):,} values of {shown(feature)}"))
        values = sorted(known, key=lambda one: (str(type(one)), one))
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InputTypeError("values", "a list of values", values)
    chosen = tuple(one.item() if isinstance(one, np.generic) else one for one in values)
    if not all(isinstance(one, Hashable) for one in chosen) or any(map(is_missing, chosen)):
        raise InputError("values", "values that are not missing", chosen)
    if not 2 <= len(chosen) <= MAX_VALUES or len(set(chosen)) < len(chosen):
        rule = f"2 to {MAX_VALUES} different values"
        hint = f"{shown(feature)} has no other in the data." if len(chosen) < 2 else ""
        raise InputError("values", rule, list(chosen), hint)
    return chosen


def _as_proxies(proxies: object) -> Mapping[str, Any]:
    if proxies is None:
        return {}
    if not isinstance(proxies, Mapping) or not all(
        isinstance(one, Mapping) for one in proxies.values()
    ):
        rule = "a mapping of columns to a mapping of each value to the column's value"
        hint = 'Such as {"title": {"male": "Mr", "female": "Ms"}}.'
        raise InputTypeError("proxies", rule, proxies, hint)
    return proxies


def _read_proxies(
    proxies: object, feature: str, values: tuple[Hashable, ...]
) -> Mapping[str, Mapping[Hashable, object]]:
    found = _as_proxies(proxies)
    for name, of in found.items():
        if name == feature:
            raise InputError("proxies", f"columns other than {argument('feature')}", name)
        if set(of) != set(values):
            rule = f"a value of {shown(name)} for each of {listed(values)}"
            raise InputError("proxies", rule, list(of))
    return found


def generate(schema: object, n: int, seed: int) -> dict[str, Any]:
    """Return rows drawn at random from a schema, each column by itself."""
    # A list has categories, a ``range`` whole numbers, a pair the ends of numbers: all are equally
    # likely
    if not isinstance(schema, Mapping) or not schema:
        raise InputTypeError("schema", "a mapping of names to lists, ranges or pairs", schema)
    if n > _MAX_ROWS:
        raise InputError("n", f"at most {_MAX_ROWS:,} with {argument('schema')}", n)
    rng = np.random.default_rng([seed, 1])
    return {str(name): _draw(str(name), one, n, rng) for name, one in schema.items()}


def _draw(name: str, values: object, n: int, rng: np.random.Generator) -> Any:
    if isinstance(values, tuple) and len(values) == 2:
        low, high = (checks.number("schema", one) for one in values)
        if low < high:
            return rng.uniform(low, high, n)
    elif isinstance(values, (list, range)) and len(values):
        chosen: Sequence[object] = values
        return [chosen[place] for place in rng.integers(len(chosen), size=n).tolist()]
    rule = "a list of categories, a range of whole numbers, or a pair (low, high) of numbers"
    raise InputError(f"schema[{name!r}]", rule, values)
