"""Engines of distances between the distributions of two groups, in the sample and in every draw.

A section is a stratum, or a label of it: labels are exchanged only inside. Engines return a
distance for each section that has rows of both groups.

Rows of equal weight can be exchanged if the groups have equal distributions. Clusters and weighted
rows cannot: their sizes, weights or dependence may still differ. They have two references.
Permutations are divided by their standard error, and are exact if units can be exchanged after all.
Random signs of the units' deviations from the other units keep every unit in its group: they are
right for unlike groups of many units, where permutations have the wrong shape.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fairperm._utils.sorting import order_by, run_numbers, run_starts
from fairperm.engines.choice import COUNT_COST, MAX_ROWS, MERGEABLE
from fairperm.engines.resampling.blocks import BLOCK
from fairperm.engines.resampling.draws import permute
from fairperm.engines.resampling.enumeration import enumerate_permutations
from fairperm.engines.sample import Cells, order_strata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairperm._utils.arrays import Array, Codes, Integers, Places, Words
    from fairperm.data.sample import Sample
    from fairperm.engines.kernels.distances import SortedRows
    from fairperm.engines.units import Layout
    from fairperm.metrics.distances import Distance

_FEW_COUNTS = 128  # so few are always drawn
_CHUNK_SIZE = 1 << 22  # counts that are drawn at a time


class DistanceEngine(Protocol):
    """Distances by draw and section; of each section, its label and what it weighs."""

    @property
    def labels(self) -> Codes:
        """Return the label of each section."""

    @property
    def weights(self) -> Array:
        """Return m_A·m_B/(m_A + m_B) of each section, from its numbers of rows or clusters."""

    @property
    def block_size(self) -> int:
        """Return how many draws are made at a time."""

    def observed(self) -> Array:
        """Return the distances of the sample: a block of one."""

    def scales(self) -> Array:
        """Return by section what permutations divide the sample's distances by."""

    def permuted(self, n: int, rng: np.random.Generator) -> Array:
        """Return the distances of ``n`` random permutations, divided by their scales."""

    @property
    def deviations(self) -> Deviations | None:
        """Return the units' deviations from each other; None if units can be exchanged."""

    def signed(self, n: int, rng: np.random.Generator) -> Array:
        """Return the distances that ``n`` random choices of signs make of the deviations."""

    def enumerated(self, n_resamples: int) -> tuple[Array, Array] | None:
        """Return the distances of every permutation and its log-probability, if few enough."""


def choose_distance_engine(distance: Distance, rows: Sample) -> DistanceEngine:
    """Return the counts engine if rows repeat or are few, else an engine of units."""
    n, n_kinds = rows.count.sum(), len(rows.count)
    must_count = n > max(MAX_ROWS, 2 * n_kinds)
    is_plain = rows.weight is None and rows.cluster is None
    if is_plain and (must_count or n_kinds <= MERGEABLE or COUNT_COST * n_kinds <= n):
        by_content = {"value": rows.contributions[:, 0], "block": rows.block}
        order = order_by([*by_content.values()])
        n_cells = len(run_starts(*(one[order] for one in by_content.values())))
        size = rows.n_strata * rows.n_groups * n_cells  # known before memory is taken for it
        if must_count or size <= _FEW_COUNTS or COUNT_COST * size <= n:
            cells = Cells.from_rows(replace(rows, columns=by_content), None)
            return _CountsEngine.of(distance, cells)
    return _UnitsEngine.from_rows(distance, rows)


@dataclass(frozen=True, slots=True)
class _CountsEngine:
    """Distances from counts of equal rows."""

    distance: Distance
    cells: Cells
    sections: tuple[tuple[int, Places], ...]  # stratum, and cells by ascending value

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
    def labels(self) -> Codes:
        return np.array([self.cells.block[mine[0]] for _, mine in self.sections], np.int64)

    @property
    def weights(self) -> Array:
        counts = [self.cells.counts[s][:, mine].sum(axis=1) for s, mine in self.sections]
        return np.array([n.prod() / n.sum() for n in np.array(counts, np.float64).reshape(-1, 2)])

    @property
    def block_size(self) -> int:
        return max(1, min(BLOCK, _CHUNK_SIZE // self.cells.counts.size))

    def observed(self) -> Array:
        return self._of_tables(self.cells.counts[None])

    def scales(self) -> Array:
        return np.ones(len(self.sections))

    def permuted(self, n: int, rng: np.random.Generator) -> Array:
        return self._of_tables(permute(self.cells, n, rng))

    @property
    def deviations(self) -> None:
        """Return None: rows can be exchanged."""

    def signed(self, n: int, rng: np.random.Generator) -> Array:
        raise NotImplementedError  # never asked for

    def enumerated(self, n_resamples: int) -> tuple[Array, Array] | None:
        found = enumerate_permutations(self.cells, n_resamples, by_sum=False)
        if found is None:
            return None
        tables, log_probability = found
        return self._of_tables(tables), log_probability

    def _of_tables(self, tables: Integers) -> Array:
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
    labels: Codes
    sizes: tuple[Array, Array] | None  # of both groups by section, if units are plain rows
    weights: Array
    unit_weight: Array
    section: Integers  # of each unit
    deviations: Deviations | None

    block_size = 64  # the lanes of a word

    @classmethod
    def from_rows(cls, distance: Distance, rows: Sample) -> _UnitsEngine:
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
        sorted_rows = SortedRows(
            unit=unit.astype(np.int64),
            weight=weight,
            cell=run_numbers(cells, len(value)).astype(np.int64),
            step=step,
            starts=np.append(starts, len(value)).astype(np.int64),
            totals=np.add.reduceat(weight, starts),
        )
        section = np.repeat(np.arange(len(starts)), layout.block_sizes)
        is_alike = is_plain or (
            len(section) == len(unit)
            and bool((weight == weight[starts][sorted_rows.section]).all())
        )
        return cls(
            distance=distance,
            layout=layout,
            rows=sorted_rows,
            values=value[cells],
            labels=rows.block[starts],
            sizes=(sizes, both - sizes) if is_plain else None,
            weights=sizes * (both - sizes) / both,
            unit_weight=np.bincount(unit, weight).astype(np.float64),
            section=section,
            deviations=None
            if is_alike
            else Deviations.of(sorted_rows, section, layout, of_numbers=distance.of_numbers),
        )

    def observed(self) -> Array:
        from fairperm.engines.kernels.subsets import same_in_all_lanes

        return self._of_words(same_in_all_lanes(self.layout.in_first))[:1]

    def scales(self) -> Array:
        from fairperm.engines.kernels.subsets import same_in_all_lanes

        if self.deviations is None:
            return np.ones(len(self.weights))
        words = same_in_all_lanes(self.layout.in_first)
        weights = self._sum_units(words, self.unit_weight)
        scales: Array = self._scales(self.deviations, words, weights)[0]
        return scales

    def permuted(self, n: int, rng: np.random.Generator) -> Array:
        words = self.layout.subsets(rng)
        if self.deviations is None:
            return self._of_words(words)[:n]
        weights = self._sum_units(words, self.unit_weight)
        scales = self._scales(self.deviations, words, weights)
        return (self._of_words(words, weights) / scales)[:n]

    def signed(self, n: int, rng: np.random.Generator) -> Array:
        from fairperm.engines.kernels.distances import walk_gaps, weigh_cells

        if self.deviations is None:
            raise NotImplementedError  # never asked for
        deviations, rows = self.deviations, self.deviations.rows
        words = rng.integers(2**64, size=len(self.unit_weight), dtype=np.uint64)
        if self.distance.of_numbers:
            drift = np.subtract(*self._sum_units(words, deviations.unit_weight))
            one = np.ones_like(drift)
            gaps = walk_gaps(words, rows, one, one, deviations.shares[rows.cell], drift)
            return self._of_gaps(gaps)[:n]
        n_cells = len(self.values)
        place = rows.cell + n_cells * ~self.layout.in_first[rows.unit]
        total = np.bincount(place, rows.weight, 2 * n_cells)
        signed = 2 * weigh_cells(words, rows, place, 2 * n_cells) - total[:, None]
        return self._of_cells(deviations.add_to_shares(signed.reshape(2, n_cells, -1)))[:n]

    def enumerated(self, n_resamples: int) -> None:
        """Return None: samples that can be enumerated are left to the counts engine."""
        del n_resamples

    def _scales(self, deviations: Deviations, words: Words, weights: Array) -> Array:
        """Return the standard errors of gaps by lane and section, to the power of the distance."""
        # They are relative to those of groups in which all units are represented equally.
        # ``weights`` are those of the groups by section and lane.
        scatter = self._sum_units(words, deviations.scatter)
        both = scatter.sum(axis=0)
        even = both / weights.sum(axis=0) ** 2 * (self.layout.block_sizes / self.weights)[:, None]
        with np.errstate(invalid="ignore"):
            ratio = (scatter / weights**2).sum(axis=0) / even
        scales: Array = np.where(both > 0, ratio, 1.0).T ** (self.distance.degree / 2)
        return scales

    def _sum_units(self, words: Words, each: Array) -> Array:
        """Return the sums over the units of both groups by group, section and lane."""
        from fairperm.engines.kernels.distances import weigh_units

        return weigh_units(words, each, self.section, len(self.weights))

    def _of_words(self, words: Words, weights: Array | None = None) -> Array:
        """Return the distances by lane and section."""
        # ``weights`` are those of the groups by section and lane, if known
        from fairperm.engines.kernels.distances import walk_gaps, weigh_cells
        from fairperm.engines.kernels.kernel import LANES

        if self.distance.of_numbers:
            if self.sizes is not None:
                weights = np.repeat(np.stack(self.sizes)[:, :, None], LANES, axis=2)
            elif weights is None:
                weights = self._sum_units(words, self.unit_weight)
            return self._of_gaps(walk_gaps(words, self.rows, *weights))
        rows, n_cells = self.rows, len(self.values)
        return self._of_cells([weigh_cells(of, rows, rows.cell, n_cells) for of in (words, ~words)])

    def _of_gaps(self, gaps: Array) -> Array:
        """Return the distances by lane and section from what a walk along the gaps found."""
        largest, area, signed = np.moveaxis(gaps, 1, 0)
        return np.asarray(self.distance.value(largest, area, signed)).T

    def _of_cells(self, sides: Sequence[Array] | Array) -> Array:
        """Return the distances by lane and section from both groups' weights by cell and lane."""
        bounds = np.append(self.rows.cell[self.rows.starts[:-1]], len(self.values))
        found = np.empty((sides[0].shape[1], len(self.weights)))
        for s, (low, high) in enumerate(itertools.pairwise(bounds.tolist())):
            own, other = (sides[g][low:high].T for g in np.argsort(self.layout.order))
            found[:, s] = self.distance.of_counts(own, other, self.values[low:high])
        return found


@dataclass(frozen=True, slots=True)
class Deviations:
    """How the units of each section differ from all others of it.

    ``rows`` have as weight the one of their group's share, larger by the unit's leverage: a
    deviation from all other units is larger than one from all units. ``unit_weight`` are its sums.
    ``shares`` are those of the section's rows up to each value or, of categories, in each.
    ``group_weight`` is by group and section. ``scatter`` is the sum over all values of a unit's
    squared deviation. ``effective`` is Kish's number of units of the user's groups.
    """

    rows: SortedRows
    unit_weight: Array
    shares: Array
    group_weight: Array
    scatter: Array
    largest_leverage: float
    effective: Array

    @classmethod
    def of(
        cls, rows: SortedRows, section: Integers, layout: Layout, *, of_numbers: bool
    ) -> Deviations:
        """Compare each unit with all others of its section."""
        own = np.bincount(rows.unit, rows.weight).astype(np.float64)
        total = rows.totals[section]
        leverage = total / np.maximum(total - own, np.finfo(np.float64).eps * total)
        place = section + len(rows.totals) * ~layout.in_first
        group_weight = np.bincount(place, own, 2 * len(rows.totals)).astype(np.float64)
        factor = leverage / group_weight[place]
        sides = [own[layout.in_first == (side == layout.order[0])] for side in (0, 1)]
        of_cell = rows.section[run_starts(rows.cell)]
        shares = np.bincount(rows.cell, rows.weight) / rows.totals[of_cell]
        if of_numbers:
            shares = np.cumsum(shares) - of_cell  # each section's add up to 1
        return cls(
            rows=rows._replace(weight=rows.weight * factor[rows.unit]),
            unit_weight=own * factor,
            shares=shares,
            group_weight=group_weight.reshape(2, -1),
            scatter=leverage**2 * _scatter(rows, section, own, shares, of_numbers=of_numbers),
            largest_leverage=float(leverage.max()),
            effective=np.array([one.sum() ** 2 / (one**2).sum() for one in sides]),
        )

    def add_to_shares(self, signed: Array) -> Array:
        """Return weights by group, cell and lane from sums of deviations with random signs."""
        of_cell = self.rows.section[run_starts(self.rows.cell)]
        drift = np.add.reduceat(signed, run_starts(of_cell), axis=1)[:, of_cell]
        shares: Array = np.maximum(self.shares[:, None] * (1 - drift) + signed, 0.0)
        return shares * self.group_weight[:, of_cell, None]


def _scatter(
    rows: SortedRows, section: Integers, own: Array, shares: Array, *, of_numbers: bool
) -> Array:
    """Return Σ_t (S(t) − W·F(t))² of each unit, with S its weight up to the value t, and W in all.

    F are the shares of all units. For its rows i and j that is Σ w_i·w_j·(n_ij − h_i − h_j + ΣF²):
    n_ij counts the values from the larger row's on, and h_i adds up F from row i's on. Of
    categories, S and F are of each: n_ij is 1 for rows of the same.
    """
    starts, order = rows.cell[rows.starts[:-1]], np.argsort(rows.unit, kind="stable")
    unit, weight, cell = rows.unit[order], rows.weight[order], rows.cell[order]
    if of_numbers:
        ends = np.append(starts[1:], len(shares))[rows.section]
        summed = np.append(0.0, np.cumsum(shares))
        n, h = ends - rows.cell, summed[ends] - summed[rows.cell]
        runs = run_starts(unit)
    else:
        n, h = np.ones_like(rows.cell), shares[rows.cell]
        runs = run_starts(unit, cell)
    before = np.cumsum(weight) - weight
    before = before - before[runs][run_numbers(runs, len(unit))]
    pairs = np.bincount(unit, weight * n[order] * (2 * before + weight))
    squares = np.add.reduceat(shares**2, starts)[section]
    found = pairs - 2 * own * np.bincount(rows.unit, rows.weight * h) + own**2 * squares
    return np.maximum(found, 0.0)


def _shared_sections(rows: Sample) -> Sample:
    """Return the rows of sections that have rows of both groups."""
    section = number_sections(rows)
    counts = np.bincount(2 * section + rows.group, minlength=2 * int(section.max()) + 2)
    is_shared = counts.reshape(-1, 2).min(axis=1) > 0
    if is_shared[counts.reshape(-1, 2).any(axis=1)].all():
        return rows
    return rows.take(np.flatnonzero(is_shared[section]))


def number_sections(rows: Sample) -> Integers:
    """Return a number for each row's section: its stratum and label."""
    return rows.stratum.astype(np.int64) * (int(rows.block.max()) + 1) + rows.block
