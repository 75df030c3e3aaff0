"""Populations from which samples are drawn, row by row or in whole clusters.

Equal rows, or equal clusters, are one unit with a count and a chance of being drawn. Units are
sorted by their contents alone: one seed draws one sample, in any row order.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from fairperm._utils.arrays import Array, Codes, Integers, Places
from fairperm._utils.sorting import order_by, run_numbers, run_starts
from fairperm.data.sample import Sample


def sort_units(table: Sample, groups: tuple[Hashable, Hashable]) -> Sample:
    """Return the rows of two groups sorted by their values, with equal clusters merged."""
    first, second = (table.group == table.groups.index(group) for group in groups)
    weight = [] if table.weight is None else [table.weight]
    keys = [*table.columns.values(), table.stratum, *weight, second]
    order = order_by(keys)
    rows = order[(first | second)[order]]
    found = replace(table.take(rows), group=second[rows].astype(np.intp), groups=groups)
    if found.cluster is None:
        return found
    kind = run_numbers(run_starts(*(key[rows] for key in keys)), len(rows))
    return _merge_equal_clusters(found, found.cluster, kind)


def _merge_equal_clusters(table: Sample, cluster: Codes, kind: Places) -> Sample:
    """Return one cluster for all with the same content, sorted by it; ``alike`` counts them."""
    order = order_by([cluster, kind])
    starts = run_starts(cluster[order], kind[order])
    rows = table.take(order[starts])
    each = np.add.reduceat(count_rows_per_unit(table)[order], starts)
    heads = run_starts(cluster[order[starts]])
    content = np.empty(len(heads), object)  # numpy's own byte strings drop zeros at the end
    pieces = np.split(np.stack([kind[order[starts]], each], axis=1), heads[1:])
    content[:] = [piece.tobytes() for piece in pieces]
    _, chosen, which = np.unique(content, return_index=True, return_inverse=True)
    copies = np.ones(len(heads)) if rows.alike is None else rows.alike[heads]
    alike = np.bincount(which.ravel(), copies).astype(np.int64)
    index, number = _expand_clusters(heads, len(each), chosen)
    return replace(
        rows.take(index),
        count=each[index] * alike[number],
        cluster=number,
        clusters=tuple(range(len(alike))),
        alike=alike[number],
    )


def count_rows_per_unit(table: Sample) -> Integers:
    """Return the count of each row in one cluster; without clusters, in all."""
    return table.count if table.alike is None else table.count // table.alike


def select_units(table: Sample) -> Sample:
    """Return one row for each unit, with the count of such units."""
    if table.cluster is None or table.alike is None:
        return table
    first = table.take(run_starts(table.cluster))
    return replace(first, count=table.alike[run_starts(table.cluster)])


@dataclass(frozen=True, slots=True)
class Population:
    """Rows, the number of units to draw for each group, and the chance of each unit in it."""

    table: Sample
    sizes: tuple[int, int]
    chances: tuple[Array, Array]

    def sample(self, rng: np.random.Generator) -> Sample:
        """Draw the units of both groups; a cluster drawn twice counts as two clusters."""
        drawn = [rng.multinomial(*one) for one in zip(self.sizes, self.chances, strict=True)]
        kinds = [np.flatnonzero(count) for count in drawn]
        index = np.concatenate(kinds)
        group = np.repeat([0, 1], [len(one) for one in kinds])
        times = np.concatenate([count[one] for count, one in zip(drawn, kinds, strict=True)])
        if self.table.cluster is None:
            return replace(self.table.take(index), group=group, count=times)
        rows, number = _expand_clusters(
            run_starts(self.table.cluster), len(self.table.count), index
        )
        return replace(
            self.table.take(rows),
            group=group[number],
            count=count_rows_per_unit(self.table)[rows] * times[number],
            cluster=number,
            alike=times[number],
        )


def _expand_clusters(starts: Places, n_rows: int, chosen: Places) -> tuple[Places, Places]:
    """Return the rows of the chosen clusters, and each row's place among the chosen."""
    sizes = np.diff(np.append(starts, n_rows))[chosen]
    number = np.repeat(np.arange(len(chosen)), sizes)
    within = np.arange(len(number)) - (np.cumsum(sizes) - sizes)[number]
    return starts[chosen][number] + within, number
