"""Engines of distances between the distributions of two groups, in the sample and in every draw.

A section is a stratum, or a label of it: labels are exchanged only inside. Engines return a
distance for each section that has rows of both groups.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fairperm._utils.sorting import order_by, run_numbers, run_starts
from fairperm.engines.resampling.blocks import BLOCK
from fairperm.engines.resampling.draws import permute
from fairperm.engines.resampling.enumeration import enumerate_permutations
from fairperm.engines.sample import Cells, order_strata

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.engines.kernels.distances import SortedRows
    from fairperm.engines.sample import Rows
    from fairperm.engines.units import Layout
    from fairperm.metrics.distances import Distance

    Array = NDArray[np.float64]

_FEW_COUNTS = 128  # so few are always drawn
_MERGEABLE = 20_000  # rows among which looking for equal ones costs nothing
_COUNT_COST = 50  # rows that are visited in the time of drawing one count
_MOST_ROWS = 1 << 24  # of rows that repeat, no more are taken one by one
_ROOM = 1 << 22  # counts that are drawn at a time


class DistanceEngine(Protocol):
    """Distances by draw and section; of each section, its label and what it weighs."""

    @property
    def labels(self) -> NDArray[np.integer[Any]]:
        """Return the label of each section."""

    @property
    def weights(self) -> Array:
        """Return m_A·m_B/(m_A + m_B) of each section, from its numbers of rows or clusters."""

    @property
    def block_size(self) -> int:
        """Return how many draws are made at a time."""

    def observed(self) -> Array:
        """Return the distances of the sample: a block of one."""

    def permuted(self, n: int, rng: np.random.Generator) -> Array:
        """Return the distances of ``n`` random permutations."""

    def enumerated(self, n_resamples: int) -> tuple[Array, Array] | None:
        """Return the distances of every permutation and its log-probability, if few enough."""


def choose_distance_engine(distance: Distance, rows: Rows) -> DistanceEngine:
    """Return the counts engine if rows repeat or are few, else an engine of units."""
    n, n_kinds = rows.count.sum(), len(rows.count)
    must_count = n > max(_MOST_ROWS, 2 * n_kinds)
    is_plain = rows.weight is None and rows.cluster is None
    if is_plain and (must_count or n_kinds <= _MERGEABLE or _COUNT_COST * n_kinds <= n):
        by_content = {"value": rows.contributions[:, 0], "block": rows.block}
        order = order_by([*by_content.values()])
        n_cells = len(run_starts(*(one[order] for one in by_content.values())))
        size = rows.n_strata * rows.n_groups * n_cells  # known before memory is taken for it
        if must_count or size <= _FEW_COUNTS or _COUNT_COST * size <= n:
            cells = Cells.from_rows(replace(rows, columns=by_content), None)
            return _CountsEngine.of(distance, cells)
    return _UnitsEngine.from_rows(distance, rows)


@dataclass(frozen=True, slots=True)
class _CountsEngine:
    """Distances from counts of equal rows."""

    distance: Distance
    cells: Cells
    sections: tuple[tuple[int, NDArray[np.intp]], ...]  # stratum, and cells by ascending value

    @classmethod
    def of(cls, distance: Distance, cells: Cells) -> _CountsEngine:
        """List the sections that have rows of both groups."""
        ordered = [mine[np.argsort(cells.contributions[mine, 0])] for mine in cells.blocks()]
        sections = [
            (s, mine)
            for s, stratum in enumerate(cells.counts)
            for mine in ordered
            if stratum[:, mine].any(axis=1).all()
        ]
        return cls(distance, cells, tuple(sections))

    @property
    def labels(self) -> NDArray[np.integer[Any]]:
        return np.array([self.cells.block[mine[0]] for _, mine in self.sections], np.int64)

    @property
    def weights(self) -> Array:
        counts = [self.cells.counts[s][:, mine].sum(axis=1) for s, mine in self.sections]
        return np.array([n.prod() / n.sum() for n in np.array(counts, np.float64).reshape(-1, 2)])

    @property
    def block_size(self) -> int:
        return max(1, min(BLOCK, _ROOM // self.cells.counts.size))

    def observed(self) -> Array:
        return self._of_tables(self.cells.counts[None])

    def permuted(self, n: int, rng: np.random.Generator) -> Array:
        return self._of_tables(permute(self.cells, n, rng))

    def enumerated(self, n_resamples: int) -> tuple[Array, Array] | None:
        found = enumerate_permutations(self.cells, n_resamples, by_sum=False)
        if found is None:
            return None
        tables, log_probability = found
        return self._of_tables(tables), log_probability

    def _of_tables(self, tables: NDArray[np.int64]) -> Array:
        distances = np.empty((len(tables), len(self.sections)))
        for place, (s, mine) in enumerate(self.sections):
            own = tables[:, s][:, :, mine].astype(np.float64)
            # of one stratum's values, those that occur in it
            there = self.cells.counts[s][:, mine].any(axis=0)
            first, second = (own[:, g][:, there] for g in np.argsort(self.cells.order))
            values = self.cells.contributions[mine[there], 0]
            distances[:, place] = self.distance.of_counts(first, second, values)
        return distances


@dataclass(frozen=True, slots=True)
class _UnitsEngine:
    """Distances from a word for each unit, a row or a cluster: 64 permutations at once."""

    distance: Distance
    layout: Layout
    rows: SortedRows
    values: Array
    labels: NDArray[np.integer[Any]]
    sizes: tuple[Array, Array] | None  # of both groups by section, if units are plain rows
    weights: Array

    block_size = 64  # the lanes of a word

    @classmethod
    def from_rows(cls, distance: Distance, rows: Rows) -> _UnitsEngine:
        """Sort the rows by section and value; order units by their rows, not by their names."""
        from fairperm.engines.kernels.distances import SortedRows
        from fairperm.engines.units import Layout, order_units

        is_plain = rows.weight is None and rows.cluster is None
        rows = _shared_sections(order_strata(rows.separate_clusters().expand(), None)[0])
        weight = rows.weight_of_each() / rows.weight_of_each().max()  # no sum is infinite
        weight = weight / np.sort(weight).mean()  # the order of rows must not matter
        walk = order_by([rows.stratum, rows.block, rows.contributions[:, 0], weight, rows.group])
        rows, weight = rows.take(walk), weight[walk]
        unit, units, keys = np.arange(len(walk)), rows, [rows.contributions[:, 0]]
        if not is_plain:
            unit, first, keys = order_units(
                rows, weight, unit if rows.cluster is None else rows.cluster
            )
            units = rows.take(first)
            again = order_by([rows.stratum, rows.block, rows.contributions[:, 0], weight, unit])
            rows, weight, unit = rows.take(again), weight[again], unit[again]
        layout = Layout.of(
            units.group, units.stratum, units.block, rows.n_strata, lambda: np.stack(keys, axis=1)
        )
        value, starts = rows.contributions[:, 0], run_starts(rows.stratum, rows.block)
        cells = run_starts(rows.stratum, rows.block, value)
        step = np.full(len(value), np.nan)
        ends = np.append(cells[1:], len(value)) - 1
        nearby = np.append(np.diff(value[cells]), 0.0)
        nearby[np.searchsorted(cells, starts[1:]) - 1] = 0.0  # the last value of a section
        step[ends] = nearby
        sizes = layout.wanted.astype(np.float64)
        both = layout.block_sizes.astype(np.float64)
        return cls(
            distance=distance,
            layout=layout,
            rows=SortedRows(
                unit=unit.astype(np.int64),
                weight=weight,
                cell=run_numbers(cells, len(value)).astype(np.int64),
                step=step,
                starts=np.append(starts, len(value)).astype(np.int64),
                totals=np.add.reduceat(weight, starts),
            ),
            values=value[cells],
            labels=rows.block[starts],
            sizes=(sizes, both - sizes) if is_plain else None,
            weights=sizes * (both - sizes) / both,
        )

    def observed(self) -> Array:
        from fairperm.engines.kernels.subsets import same_in_all_lanes

        return self._of_words(same_in_all_lanes(self.layout.in_first))[:1]

    def permuted(self, n: int, rng: np.random.Generator) -> Array:
        return self._of_words(self.layout.subsets(rng))[:n]

    def enumerated(self, n_resamples: int) -> None:
        """Return None: samples that can be enumerated are left to the counts engine."""
        del n_resamples

    def _of_words(self, words: NDArray[np.uint64]) -> Array:
        """Return the distances by lane and section."""
        from fairperm.engines.kernels.distances import walk_gaps, weigh_cells
        from fairperm.engines.kernels.kernel import LANES

        rows, n_sections = self.rows, len(self.weights)
        if self.distance.of_numbers:
            if self.sizes is None:
                sides = [weigh_cells(of, rows, rows.section, n_sections) for of in (words, ~words)]
            else:
                sides = [np.repeat(n[:, None], LANES, axis=1) for n in self.sizes]
            largest, area, signed = np.moveaxis(walk_gaps(words, rows, *sides), 1, 0)
            return np.asarray(self.distance.value(largest, area, signed)).T
        n_cells = int(rows.cell[-1]) + 1
        sides = [weigh_cells(of, rows, rows.cell, n_cells) for of in (words, ~words)]
        bounds = np.append(rows.cell[rows.starts[:-1]], n_cells)
        found = np.empty((LANES, n_sections))
        for s, (low, high) in enumerate(itertools.pairwise(bounds.tolist())):
            own, other = (sides[g][low:high].T for g in np.argsort(self.layout.order))
            found[:, s] = self.distance.of_counts(own, other, self.values[low:high])
        return found


def _shared_sections(rows: Rows) -> Rows:
    """Return the rows of sections that have rows of both groups."""
    section = number_sections(rows)
    counts = np.bincount(2 * section + rows.group, minlength=2 * int(section.max()) + 2)
    is_shared = counts.reshape(-1, 2).min(axis=1) > 0
    if is_shared[counts.reshape(-1, 2).any(axis=1)].all():
        return rows
    return rows.take(np.flatnonzero(is_shared[section]))


def number_sections(rows: Rows) -> NDArray[np.int64]:
    """Return a number for each row's section: its stratum and label."""
    return rows.stratum.astype(np.int64) * (int(rows.block.max()) + 1) + rows.block
