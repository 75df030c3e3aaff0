"""Tables of counts: every row stands for so many copies of it.

Such a table gives the results of its copies, to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairperm.data.columns import LARGEST_INTEGER, MAX_REPEATED, Source, as_floats
from fairperm.data.indexes import check_indexes
from fairperm.data.lazy.backends import BinnableRows, check_column, fetch, lazy_frame, stage
from fairperm.errors import InputError, InputTypeError, Shown, argument

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from fairperm.data.arguments import Inputs

    I = TypeVar("I", bound=Inputs)  # noqa: E741
    Counts = NDArray[np.int64]


def count_copies(inputs: I, given: object, name: str = "count") -> I:
    """Return the inputs with the number of copies that each row stands for."""
    if inputs.score_bins is not None:
        raise InputError(f"{argument('score_bins')} cannot be used with {argument(name)}.")
    data = collect_table(inputs, {name: given})
    return replace(inputs, data=as_copies(data, given))


def collect_table(inputs: Inputs, counts: Mapping[str, object]) -> object:
    """Return the data, which has few rows if they are counted, after a look at the indexes."""
    frame = lazy_frame(inputs.data)
    columns = {one.name: getattr(inputs, one.name) for one in fields(inputs)}
    del columns["data"]
    columns |= counts
    data = inputs.data.rows if isinstance(inputs.data, BinnableRows) else inputs.data
    if frame is not None:
        known = frame.collect_schema()
        for name, given in counts.items():
            check_column(name, given, frame, known)
        names = dict.fromkeys(one for given in columns.values() for one in _list_names(given))
        with stage("reading a table of counts", frame):
            kept = frame.select([one for one in names if one in known])
            rows = fetch(kept.head(MAX_REPEATED + 1))
        if len(rows) > MAX_REPEATED:
            rule = f"for tables of at most {MAX_REPEATED:,} rows"
            raise InputError(next(iter(counts)), rule, Shown("more"), "Group equal rows first.")
        data = rows.to_native()
    check_indexes(columns, data, inputs.ignore_index)
    return data


def _list_names(given: object) -> Iterator[str]:
    """Yield the texts of an argument, of which some are names of columns."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, (list, tuple, dict)):
        for one in given.values() if isinstance(given, dict) else given:
            yield from _list_names(one)


def as_copies(data: object, given: object) -> Source:
    """Return the data with a count of copies for each row, from one of their columns or another."""
    # raises InputError for counts that are missing, negative or fractional
    source = Source.of(data)
    if isinstance(given, str) and data is None:
        raise InputTypeError("count", "an array of whole numbers without data", given)
    name, values = source.find("count", given)
    counts: Any = as_floats(name, values)
    is_count = (counts >= 0) & np.isfinite(counts) & (np.floor(counts) == counts)
    if not is_count.all():
        bad = float(counts[~is_count][0])
        got = Shown("a missing value") if math.isnan(bad) else bad
        is_weight = math.isfinite(bad) and bad % 1
        hint = "A number that says how much a row counts is a weight." if is_weight else ""
        raise InputError(name, "made of whole numbers from 0 on", got, hint)
    if counts.sum() > LARGEST_INTEGER:
        raise InputError(name, "at most 2**53 together", float(counts.sum()))
    return Source(data, count=counts.astype(np.int64), are_copies=True)


def count_each(data: object, given: object, n_rows: int) -> Counts:
    """Return how often each of so many rows is to be repeated in memory."""
    counts = as_copies(data, given).count
    assert counts is not None  # noqa: S101
    if len(counts) != n_rows:
        rule = f"as long as the other columns ({n_rows:,} rows)"
        raise InputError("count", rule, len(counts), "Pass columns of one length.")
    if counts.sum() > MAX_REPEATED:
        raise InputError("count", f"at most {MAX_REPEATED:,} together", int(counts.sum()))
    return counts
