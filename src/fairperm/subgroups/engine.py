"""The engine of a search: every candidate against the rest, in the sample and in permutations.

Outcomes are permuted against features: within strata, and among the rows that the metric's scheme
exchanges. Rows of one stratum and block with equal features are a *place*: a permutation changes
only which outcomes are at each place. Totals over candidates are products of a sparse matrix with
the totals of the places; for an AUC, 64 candidates walk up the scores at a time.

A candidate in a draw is handled like a draw of two groups elsewhere: the same code gives values,
variances and the gaps of strata.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import streams
from fairperm._utils.sorting import order_by, run_numbers, run_starts
from fairperm.engines.moments import Moments
from fairperm.engines.resampling.draws import random_subset
from fairperm.metrics.definition import Metric, Variance, is_of_totals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from fairperm._utils.arrays import Array, Integers, Places
    from fairperm.data.sample import Sample
    from fairperm.engines.estimates import Estimates
    from fairperm.engines.resampling.blocks import Resampling
    from fairperm.metrics.ranks import RankMetric

_CHUNK_SIZE = 1 << 17  # candidates times draws, or rows times draws, that are handled together
_MAX_DRAWS = 64  # of a block
_SHUFFLED = 20  # rows that are shuffled in the time in which one count is drawn
_MAX_SHUFFLED = 1 << 24  # rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgroupEngine(ABC):
    """Estimates of candidates, each as a draw of two groups: its rows and all others."""

    members: csr_array  # the cells of each candidate, as a matrix of ones
    # what is permuted, by unit: the number of its kind of outcome, or for an AUC its cell
    outcome: NDArray[np.int32]
    # the units of each set within which outcomes are exchanged
    exchanged: tuple[Places | slice, ...]

    @abstractmethod
    def observed(self, variance: Variance | None = None) -> Estimates:
        """Return the estimates of the sample; with another variance than permutations have."""

    @abstractmethod
    def permuted(self, n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` random permutations, candidate by candidate."""

    def statistics(self, scale: Array, resampling: Resampling) -> Array:
        """Return the studentized gaps by permutation and candidate."""
        largest = max(self.members.shape[0], len(self.outcome) // 8)
        size = max(1, min(_MAX_DRAWS, _CHUNK_SIZE // largest))

        def draw(n: int, rng: np.random.Generator) -> Array:
            return self.permuted(n, rng).gaps(None).studentized(scale).reshape(-1, n).T

        return np.concatenate(resampling.run_blocks(draw, streams.PERMUTATIONS, size))

    def shuffled(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Return the outcome of every unit in ``n`` permutations."""
        drawn = np.empty((n, len(self.outcome)), np.int32)
        for units in self.exchanged:
            mine = self.outcome[units]
            drawn[:, units] = rng.permuted(np.broadcast_to(mine, (n, len(mine))), axis=1)
        return drawn


def make_engine(
    metric: Metric | RankMetric, variance: Variance, rows: Sample, members: csr_array
) -> SubgroupEngine:
    """Return the engine of a metric for rows whose group is their cell of features."""
    if is_of_totals(metric):
        return TotalsOfSubgroups.from_rows(metric, variance, rows, members)
    from fairperm.subgroups.rank_engine import RanksOfSubgroups

    return RanksOfSubgroups.from_rows(rows, members)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsOfSubgroups(SubgroupEngine):
    """Estimates from totals of contributions."""

    variance: Variance
    moments: Moments  # of the kinds of outcomes
    # the different columns of the moments, by column and kind; which of them each column is
    columns: Array
    copies: Places
    starts: Places  # the first unit of each place; units are sorted by place
    count: Integers
    # the places of each stratum, and which of them belong to each candidate
    strata: tuple[tuple[slice, csr_array], ...]
    sizes: Array  # units of the candidates and their rests, by candidate, stratum and side
    # by set that is exchanged, the units of each place and each kind, if counts are drawn
    counts: tuple[_Counts, ...]

    @classmethod
    def from_rows(
        cls, metric: Metric, variance: Variance, rows: Sample, members: csr_array
    ) -> TotalsOfSubgroups:
        """Sort by stratum, block, cell and outcome: the user's order of rows must not matter."""
        values = list(rows.contributions.T)
        rows = rows.take(order_by([rows.stratum, rows.block, rows.group, *values]))
        kind, kinds = _number_kinds(rows)
        moments = Moments.of(
            (metric,),
            kinds,
            np.arange(len(kinds)),
            has_strata=rows.n_strata > 1,
            has_thirds=variance == Variance.HALL,
        )
        columns, copies = _find_distinct(moments.columns.T)
        place_starts = run_starts(rows.stratum, rows.block, rows.group)
        cell, stratum = rows.group[place_starts], rows.stratum[place_starts]
        ends = np.searchsorted(stratum, np.arange(rows.n_strata + 1))
        strata = _split_members(members, cell, ends)
        n_units = np.add.reduceat(rows.count, place_starts).astype(np.float64)
        mine = np.stack([inside @ n_units[places] for places, inside in strata], axis=1)
        whole = np.array([n_units[places].sum() for places, _ in strata])
        counts: tuple[_Counts, ...] = ()
        n_kinds, n_places, n = len(kinds), len(place_starts), int(rows.count.sum())
        if n > _MAX_SHUFFLED or n > _SHUFFLED * n_places * n_kinds:
            counts = tuple(_Counts.of(rows, kind, place_starts))
        elif n > len(rows.count):
            again = np.repeat(np.arange(len(rows.count)), rows.count)
            kind = kind[again]
            rows = replace(rows.take(again), count=np.ones(n, np.int64))
            place_starts = run_starts(rows.stratum, rows.block, rows.group)
        sets = np.append(run_starts(rows.stratum, rows.block), len(rows.count))
        return cls(
            members=members,
            outcome=kind.astype(np.int32),
            exchanged=tuple(itertools.starmap(slice, itertools.pairwise(sets.tolist()))),
            variance=variance,
            moments=moments,
            columns=columns,
            copies=copies,
            starts=place_starts,
            count=rows.count,
            strata=strata,
            sizes=np.stack([mine, whole - mine], axis=-1),
            counts=counts,
        )

    def observed(self, variance: Variance | None = None) -> Estimates:
        by_place = self._add_up(self.outcome[None], self.count)
        return self._estimates(by_place, variance or self.variance)

    def permuted(self, n: int, rng: np.random.Generator) -> Estimates:
        if not self.counts:
            return self._estimates(self._add_up(self.shuffled(n, rng)), self.variance)
        by_place = np.zeros((len(self.columns), n, len(self.starts)))
        for one in self.counts:
            by_place[:, :, one.places] = one.draw(n, rng, self.columns)
        return self._estimates(by_place, self.variance)

    def _add_up(self, outcome: NDArray[np.int32], count: Integers | int = 1) -> Array:
        """Return the totals of every column and draw at each place."""
        totals = np.empty((len(self.columns), len(outcome), len(self.starts)))
        for one, total in zip(self.columns, totals, strict=True):
            np.add.reduceat(one[outcome] * count, self.starts, axis=1, out=total)
        return totals

    def _estimates(self, by_place: Array, variance: Variance) -> Estimates:
        n_columns, n_draws, _ = by_place.shape
        n_subgroups, n_strata, _ = self.sizes.shape
        totals = np.zeros((n_subgroups, n_draws, n_strata, 2, self.moments.n_columns))
        for s, (places, inside) in enumerate(self.strata):
            here = by_place[:, :, places]
            flat = here.reshape(n_columns * n_draws, here.shape[-1]).T
            mine = (inside @ flat).reshape(n_subgroups, n_columns, n_draws)
            mine = np.moveaxis(mine, 1, -1)[..., self.copies]
            whole = np.moveaxis(here.sum(axis=-1), 0, -1)[..., self.copies]
            totals[:, :, s, 0, self.moments.moving] = mine
            totals[:, :, s, 1, self.moments.moving] = whole - mine
        sizes = np.broadcast_to(self.sizes[:, None], totals.shape[:-1])
        flat_totals = totals.reshape(-1, n_strata, 2, self.moments.n_columns)
        return self.moments.estimates(flat_totals, sizes.reshape(-1, n_strata, 2), variance)


@dataclass(frozen=True, slots=True)
class _Counts:
    """The outcomes of one set within which they are exchanged, as counts.

    ``sizes`` are the units at each of the ``places``, ``kinds`` the numbers of the kinds, the most
    frequent one last, and ``frequency`` their units.
    """

    places: slice
    sizes: Integers
    kinds: Places
    frequency: Integers

    @classmethod
    def of(cls, rows: Sample, kind: Places, place_starts: Places) -> Iterator[_Counts]:
        """Yield the counts of every set of rows, which are sorted."""
        sets = np.append(run_starts(rows.stratum, rows.block), len(rows.count))
        sizes = np.add.reduceat(rows.count, place_starts)
        ends = np.searchsorted(place_starts, sets)
        for s, (start, stop) in enumerate(itertools.pairwise(sets.tolist())):
            kinds, index = np.unique(kind[start:stop], return_inverse=True)
            frequency = np.zeros(len(kinds), np.int64)
            np.add.at(frequency, index.ravel(), rows.count[start:stop])
            order = np.argsort(frequency, kind="stable")
            places = slice(int(ends[s]), int(ends[s + 1]))
            yield cls(places, sizes[places], kinds[order], frequency[order])

    def draw(self, n: int, rng: np.random.Generator, columns: Array) -> Array:
        """Return the totals of every column and draw at each place."""
        left = self.sizes
        totals = np.zeros((len(columns), n, len(self.sizes)))
        for kind, size in zip(self.kinds[:-1], self.frequency[:-1].tolist(), strict=True):
            drawn = random_subset(left, size, n, rng)
            totals += columns[:, kind, None, None] * drawn
            left = left - drawn
        return totals + columns[:, self.kinds[-1], None, None] * left


def _split_members(
    members: csr_array, cell: NDArray[Any], ends: Places
) -> tuple[tuple[slice, csr_array], ...]:
    """Return the places of each stratum, and which of them belong to each candidate."""
    # members may take most of the memory: they are copied only if needed
    if len(ends) == 2:
        are_cells = np.array_equal(cell, np.arange(members.shape[1]))
        return ((slice(0, len(cell)), members if are_cells else members[:, cell]),)
    by_cell = members.tocsc()
    return tuple(
        (slice(start, stop), by_cell[:, cell[start:stop]].tocsr())
        for start, stop in itertools.pairwise(ends.tolist())
    )


def _number_kinds(rows: Sample) -> tuple[Places, Array]:
    """Return the number of each row's kind of outcome, and the contributions of every kind."""
    keys = [rows.stratum, rows.block, *rows.contributions.T]
    order = order_by(keys)
    starts = run_starts(*(key[order] for key in keys))
    kind = np.empty_like(order)
    kind[order] = run_numbers(starts, len(order))
    return kind, rows.contributions[order[starts]]


def _find_distinct(columns: Array) -> tuple[Array, Places]:
    """Return the different ones among some arrays, and which of them each array is."""
    places: dict[bytes, int] = {}
    copies = [places.setdefault(column.tobytes(), len(places)) for column in columns]
    chosen = [copies.index(place) for place in range(len(places))]
    return np.ascontiguousarray(columns[chosen]), np.array(copies, np.intp)
