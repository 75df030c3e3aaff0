"""Sorting rows by their values: the user's order of rows must change no result."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Places


def order_by(columns: Sequence[NDArray[Any]]) -> Places:
    """Return the order by the first column, ties by the second, and so on.

    Rows that are equal in all columns may come in any order. Constant columns and a first column
    that is sorted already cost little, and only rows that are tied in the first are sorted by the
    rest: many times faster than ``np.lexsort`` if numbers hardly repeat.
    """
    if len(columns[0]) < 2:  # there can be very many columns
        return np.arange(len(columns[0]))
    columns = [ranks(column) if column.dtype == object else column for column in columns]
    varying = [column for column in columns if (column != column[0]).any()]
    if not varying:
        return np.arange(len(columns[0]))
    first, *rest = varying
    order = np.arange(len(first)) if (first[1:] >= first[:-1]).all() else np.argsort(first)
    if not rest:
        return order
    ordered = first[order]
    is_new = np.append(True, ordered[1:] != ordered[:-1])
    tied = np.flatnonzero(~(is_new & np.append(is_new[1:], True)))
    if not tied.size:
        return order
    rows, run = order[tied], np.cumsum(is_new)[tied]
    order[tied] = rows[np.lexsort([*(column[rows] for column in rest[::-1]), run])]
    return order


def content_keys(of_row: Places, rank: NDArray[np.floating[Any]]) -> list[Array]:
    """Return keys that distinguish clusters by the ranks of their rows, in any order."""
    # they are the rows' number, sum, sum of squares and sum of scrambled ranks: without the last,
    # ranks 1, 5, 6 and 2, 3, 7 would have equal keys
    weights: list[Array] = [rank.astype(np.float64) ** power for power in (0, 1, 2)]
    bits = rank.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    weights.append((bits >> np.uint64(38)).astype(np.float64))  # 26 bits: sums of them are exact
    return [np.bincount(of_row, weight).astype(np.float64) for weight in weights]


def run_starts(*columns: NDArray[Any]) -> Places:
    """Return the places where runs of rows that are equal in all columns start."""
    is_new = np.zeros(len(columns[0]), bool)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(is_new)


def run_numbers(starts: Places, n_rows: int) -> Places:
    """Return for each row the number of its run, from where the runs start."""
    return np.repeat(np.arange(len(starts)), np.diff(np.append(starts, n_rows)))


def equate_close(values: Array, errors: Array) -> Array:
    """Return the values, with neighbours made equal that differ by at most an error of either."""
    order = np.argsort(values, axis=None)
    ordered, error = values.ravel()[order], errors.ravel()[order]
    is_new = np.diff(ordered) > np.maximum(error[1:], error[:-1])
    starts = np.flatnonzero(np.append(True, is_new))
    equated = np.empty_like(ordered)
    equated[order] = ordered[starts][run_numbers(starts, len(ordered))]
    return equated.reshape(values.shape)


def ranks(column: NDArray[Any]) -> Places:
    """Return each value's rank among the distinct values; see :func:`sort_key` for objects."""
    if column.dtype == object:
        rank = {value: i for i, value in enumerate(sorted({*column}, key=sort_key))}
        return np.fromiter((rank[value] for value in column), np.intp, len(column))
    return np.unique(column, return_inverse=True)[1].ravel()


def sort_key(name: Hashable) -> tuple[Any, ...]:
    """Order numbers by value, and all else by type and text: any mixture can be sorted."""
    if isinstance(name, tuple):
        return (2, *map(sort_key, name))
    if isinstance(name, (numbers.Real, Decimal)):
        return (0, name)
    return (1, type(name).__name__, str(name))
