"""Rows that samples are drawn from: one by one, or in whole clusters.

A kind of row, or of cluster, is one unit with a count and a chance. Units are in an order that
depends on nothing but what is in them, so that one seed draws one sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.sorting import order_by, run_numbers, run_starts

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from fairperm.data.table import Table

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]


def in_order(table: Table, groups: tuple[Hashable, Hashable]) -> Table:
    """Return the rows of two groups by their values; with clusters, each kind of cluster once."""
    first, second = (table.group == table.groups.index(group) for group in groups)
    weight = [] if table.weight is None else [table.weight]
    keys = [*table.columns.values(), table.stratum, *weight, second]
    order = order_by(keys)
    rows = order[(first | second)[order]]
    found = replace(table.take(rows), group=second[rows].astype(np.intp), groups=groups)
    if found.cluster is None:
        return found
    kind = run_numbers(run_starts(*(key[rows] for key in keys)), len(rows))
    return _by_kind(found, found.cluster, kind)


def _by_kind(table: Table, cluster: NDArray[np.integer[Any]], kind: Codes) -> Table:
    """Return a cluster of every kind, by what is in it, for all that are ``alike``."""
    order = order_by([cluster, kind])
    starts = run_starts(cluster[order], kind[order])
    rows = table.take(order[starts])
    each = np.add.reduceat(in_each(table)[order], starts)
    heads = run_starts(cluster[order[starts]])
    content = np.empty(len(heads), object)  # as bytes: numpy's own would lose zeros at the end
    pieces = np.split(np.stack([kind[order[starts]], each], axis=1), heads[1:])
    content[:] = [piece.tobytes() for piece in pieces]
    _, chosen, which = np.unique(content, return_index=True, return_inverse=True)
    copies = np.ones(len(heads)) if rows.alike is None else rows.alike[heads]
    alike = np.bincount(which.ravel(), copies).astype(np.int64)
    index, number = _members(heads, len(each), chosen)
    return replace(
        rows.take(index),
        count=each[index] * alike[number],
        cluster=number,
        clusters=tuple(range(len(alike))),
        alike=alike[number],
    )


def in_each(table: Table) -> NDArray[np.int64]:
    """Return how many such rows one cluster has, or just how many there are."""
    return table.count if table.alike is None else table.count // table.alike


def units(table: Table) -> Table:
    """Return one row for each unit, its count that of the units: of rows, all as they are."""
    if table.cluster is None or table.alike is None:
        return table
    first = table.take(run_starts(table.cluster))
    return replace(first, count=table.alike[run_starts(table.cluster)])


@dataclass(frozen=True, slots=True)
class Population:
    """Rows, how likely each unit of them is drawn for either group, and how many are drawn."""

    table: Table
    sizes: tuple[int, int]
    chances: tuple[Array, Array]

    def sample(self, rng: np.random.Generator) -> Table:
        """Draw the units of both groups; a cluster that is drawn twice is two clusters."""
        drawn = [rng.multinomial(*one) for one in zip(self.sizes, self.chances, strict=True)]
        kinds = [np.flatnonzero(count) for count in drawn]
        index = np.concatenate(kinds)
        group = np.repeat([0, 1], [len(one) for one in kinds])
        times = np.concatenate([count[one] for count, one in zip(drawn, kinds, strict=True)])
        if self.table.cluster is None:
            return replace(self.table.take(index), group=group, count=times)
        rows, number = _members(run_starts(self.table.cluster), len(self.table.count), index)
        return replace(
            self.table.take(rows),
            group=group[number],
            count=in_each(self.table)[rows] * times[number],
            cluster=number,
            alike=times[number],
        )


def _members(starts: Codes, n_rows: int, chosen: Codes) -> tuple[Codes, Codes]:
    """Return the rows of the chosen clusters, and the place of each row's cluster among them."""
    sizes = np.diff(np.append(starts, n_rows))[chosen]
    number = np.repeat(np.arange(len(chosen)), sizes)
    within = np.arange(len(number)) - (np.cumsum(sizes) - sizes)[number]
    return starts[chosen][number] + within, number
