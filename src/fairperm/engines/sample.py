"""The sample of a comparison: its rows, and the cells that equal rows are counted in.

A permutation of group labels changes only how many rows of each cell are in each group, so for a
rate a small table of counts is all that a test needs of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairperm._utils.arrays import Array, Codes, Integers, Places
from fairperm._utils.sorting import content_keys, order_by, ranks, run_numbers, run_starts
from fairperm.data.sample import Sample


def order_strata(rows: Sample, weights: Array | None) -> tuple[Sample, Array | None]:
    """Return the rows and weights with the strata ordered by their rows, never by their names."""
    if rows.n_strata == 1:
        return rows, weights
    rows = rows.take(order_by([rows.stratum, rows.block, *rows.contributions.T, rows.count]))
    order = _order_parts(rows, rows.stratum, [] if weights is None else [np.abs(weights)])
    rank = np.argsort(order)
    return replace(rows, stratum=rank[rows.stratum]), None if weights is None else weights[order]


def order_blocks(rows: Sample) -> Sample:
    """Return the rows with the blocks ordered by their rows, never by their names."""
    rows = rows.take(order_by([rows.block, *rows.contributions.T, rows.count]))
    block = ranks(rows.block)
    return replace(rows, block=np.argsort(_order_parts(rows, block, []))[block])


def _order_parts(rows: Sample, part: Codes, first_keys: list[Array]) -> Places:
    """Return the order of consecutive parts by given keys, then by their rows."""
    starts = run_starts(part)
    sizes = np.zeros((len(starts), rows.n_groups), np.int64)
    np.add.at(sizes, (part, rows.group), rows.count)
    count = sizes.sum(axis=1)
    unlike = count**2 - (sizes**2).sum(axis=1)  # ordered pairs of rows of different groups
    # scaled by a power of two, which changes no digit: no square overflows
    exponent = np.frexp(np.abs(rows.contributions).max(initial=0.0))[1]
    scaled = np.ldexp(rows.contributions.T, -exponent)
    moments = (scaled, scaled**2)
    totals = [np.add.reduceat(one, starts) for moment in moments for one in moment]
    keys = [*first_keys, count, unlike, *totals]
    order = order_by(keys)
    if len(run_starts(*(key[order] for key in keys))) == len(order):
        return order
    # parts with equal totals may have other rows: labels and predictions that agree more often
    by_row = order_by([*rows.contributions.T])
    kind = np.empty(len(by_row), np.intp)
    kind[by_row] = run_numbers(run_starts(*rows.contributions[by_row].T), len(by_row))
    each = np.repeat(np.arange(len(part)), rows.count)
    contents = content_keys(part[each].astype(np.intp), kind[each].astype(np.float64))
    return order_by([*keys, *contents])


@dataclass(frozen=True, slots=True)
class Cells:
    """Counts of the rows that are equal to a metric and its scheme."""

    # Rows by stratum, group and cell. Groups and strata are ordered by their counts, never by their
    # names: swapping or renaming them changes no random draw.
    counts: Integers
    contributions: Array  # contributions of one row of each cell to the metric's totals
    block: Codes  # labels are exchanged among cells of equal block only
    # The weight of each stratum, or None for Mantel–Haenszel weights. A sign changes no order.
    weights: Array | None
    order: tuple[int, ...]  # the user's groups in the order of ``counts``
    are_sums: bool = False  # whether the rows are weighted, or clusters

    @classmethod
    def from_rows(cls, rows: Sample, weights: Array | None, *, many: bool = False) -> Cells:
        """Count the rows that are equal to metric and scheme; order groups and strata by counts."""
        return cls.count(rows, weights).arrange(many=many)

    @classmethod
    def count(cls, rows: Sample, weights: Array | None) -> Cells:
        """Count the rows that are equal to metric and scheme, groups and strata as they are."""
        counts, contributions, block = _count_cells(rows)
        order = tuple(range(rows.n_groups))
        return cls(counts, contributions, block, weights, order, rows.are_sums)

    def arrange(self, *, many: bool) -> Cells:
        """Order groups and strata by counts, which takes long if there are many cells."""
        arrange = _arrange_many if many else _arrange_two
        counts, weights, order = arrange(self.counts, self.weights)
        return replace(self, counts=np.ascontiguousarray(counts), weights=weights, order=order)

    def blocks(self) -> Sequence[Places]:
        """Return the cells of each exchangeable block."""
        return [np.flatnonzero(self.block == b) for b in np.unique(self.block)]


def _count_cells(rows: Sample) -> tuple[Integers, Array, Codes]:
    """Return the counts by stratum, group and cell, and each cell's contributions and block."""
    # sorted by their values: the order of the user's rows must not matter
    rows = rows.take(order_by(list(rows.columns.values())))
    keys = [rows.block, *rows.contributions.T]
    order = order_by(keys)
    starts = run_starts(*(key[order] for key in keys))
    first = np.minimum.reduceat(order, starts)
    # cells in the order of their first rows: equal cells get equal draws
    rank = np.argsort(np.argsort(first))
    cell = np.empty_like(order)
    cell[order] = rank[run_numbers(starts, len(order))]
    counts = np.zeros((rows.n_strata, rows.n_groups, len(first)), np.int64)
    np.add.at(counts, (rows.stratum, rows.group, cell), rows.count)
    keep = np.sort(first)
    return counts, rows.contributions[keep], rows.block[keep]


def _arrange_many(
    counts: Integers, weights: Array | None
) -> tuple[Integers, Array | None, tuple[int, ...]]:
    """Return the counts with strata and groups ordered by their counts, and the groups' order."""
    in_any_group = np.sort(counts, axis=1).reshape(len(counts), -1)
    given = [] if weights is None else [weights]
    strata = order_by([*given, (counts**2).sum(axis=(1, 2)), *in_any_group.T])
    counts = counts[strata]
    by_group = np.moveaxis(counts, 1, 0).reshape(counts.shape[1], -1)
    groups = order_by([by_group.sum(axis=1), *by_group.T])
    return counts[:, groups], None if weights is None else weights[strata], tuple(groups.tolist())


def _arrange_two(
    counts: Integers, weights: Array | None
) -> tuple[Integers, Array | None, tuple[int, ...]]:
    """Return the same for two groups, whose strata depend on which group comes first."""
    # the smaller group comes first: drawing its rows is the cheaper half of every permutation
    views = []
    for groups in ((0, 1), (1, 0)):
        view = counts[:, groups]
        keys = view.reshape(len(view), -1).T
        order = np.zeros(1, np.intp)
        if len(view) > 1:  # one stratum's counts may be thousands, each of them a key
            order = np.lexsort(keys if weights is None else [*keys, np.abs(weights)])
        views.append((view[order], None if weights is None else weights[order], groups))
    first, second = views
    if first[0][:, 0].sum() != first[0][:, 1].sum():
        chosen = min(views, key=lambda view: int(view[0][:, 0].sum()))
    else:
        chosen = min(first, second, key=lambda view: view[0].ravel().tolist())
    return chosen
