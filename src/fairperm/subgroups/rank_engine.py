"""The engine of a search with the AUC: 64 candidates walk up the scores at a time.

Rows are sorted by score once. A permutation gives every unit the cell of another one, and with it
the candidates that it is in: a word of 64 bits, as a unit's groups are in 64 permutations of a
single test. So the kernels of single tests compute every candidate and its rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Words
from fairperm._utils.sorting import order_by, run_starts
from fairperm.data.sample import Sample
from fairperm.engines.estimates import Estimates
from fairperm.engines.kernels.auc import AucLayout, auc_by_lane
from fairperm.engines.kernels.kernel import LANES
from fairperm.engines.kernels.weighted_auc import weighted_auc_by_lane
from fairperm.engines.sorted_rows import sort_rows, walk_weighted_rows
from fairperm.metrics.definition import Variance
from fairperm.subgroups.engine import SubgroupEngine

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Walk = Callable[[Words], tuple[Array, Array]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksOfSubgroups(SubgroupEngine):
    """Estimates of an AUC, 64 candidates at a time. ``outcome`` is the cell of every unit."""

    words: Words  # by 64 candidates and cell, the candidates that the cell is in, as bits
    walk: Walk  # returns AUC and variance by candidate, stratum and side for a word of every unit
    sizes: Array  # units of the candidates and their rests, by candidate, stratum and side

    @classmethod
    def from_rows(cls, rows: Sample, members: csr_array) -> RanksOfSubgroups:
        """Sort by stratum and score; equal rows by cell, equal clusters by their rows."""
        if rows.weight is None and rows.cluster is None:
            units, walk = _walk_plain_rows(rows, members.mean())
        else:
            units, walk = _walk_weighted_rows(rows)
        sets = np.append(run_starts(units.stratum, units.block), len(units.count))
        n_cells = members.shape[1]
        place = units.stratum.astype(np.intp) * n_cells + units.group
        n_units = np.bincount(place, minlength=units.n_strata * n_cells).reshape(-1, n_cells)
        mine = members @ n_units.T.astype(np.float64)
        return cls(
            members=members,
            outcome=units.group.astype(np.int32),
            exchanged=tuple(itertools.starmap(slice, itertools.pairwise(sets.tolist()))),
            words=_write_words(members),
            walk=walk,
            sizes=np.stack([mine, n_units.sum(axis=1) - mine], axis=-1),
        )

    def observed(self, variance: Variance | None = None) -> Estimates:
        del variance
        return self._estimates(self.outcome[None])

    def permuted(self, n: int, rng: np.random.Generator) -> Estimates:
        return self._estimates(self.shuffled(n, rng))

    def _estimates(self, cells: NDArray[np.int32]) -> Estimates:
        n_subgroups, n_strata, _ = self.sizes.shape
        value = np.empty((len(self.words) * LANES, len(cells), n_strata, 2))
        variance = np.empty_like(value)
        for d, cell in enumerate(cells):
            for k, words in enumerate(self.words):
                lanes = slice(k * LANES, (k + 1) * LANES)
                value[lanes, d], variance[lanes, d] = self.walk(words[cell])
        value, variance = value[:n_subgroups], variance[:n_subgroups]
        size = np.where(np.isnan(value), 0.0, self.sizes[:, None])
        arrays = (one.reshape(1, -1, n_strata, 2) for one in (value, variance, size))
        return Estimates(*arrays)


def _walk_plain_rows(rows: Sample, share: float) -> tuple[Sample, Walk]:
    """Return the rows in the order of their words; ``share`` is that of most candidates."""
    rows = rows.expand()
    label, score = rows.contributions.T
    rows = rows.take(order_by([rows.stratum, score, label, rows.group]))
    label, score = rows.contributions.T
    layout = AucLayout.build(score, label > 0, rows.stratum, rows.n_strata)
    walk = partial(auc_by_lane, layout=layout, centres=layout.centres(share))
    return rows.take(layout.order.astype(np.intp)), walk


def _walk_weighted_rows(rows: Sample) -> tuple[Sample, Walk]:
    """Return a row of each unit, in the order of their words."""
    rows, unit, units, _ = sort_rows(rows)
    return units, partial(weighted_auc_by_lane, rows=walk_weighted_rows(rows, unit))


def _write_words(members: csr_array) -> Words:
    """Return by 64 candidates and cell the candidates that the cell is in, as bits."""
    n_subgroups, n_cells = members.shape
    words = np.empty((-(-n_subgroups // LANES), n_cells), np.uint64)
    for k, start in enumerate(range(0, n_subgroups, LANES)):
        inside = np.zeros((n_cells, LANES), np.uint8)
        some = members[start : start + LANES].toarray()
        inside[:, : len(some)] = some.T
        words[k] = np.packbits(inside, axis=1, bitorder="little").view("<u8")[:, 0]
    return words
