"""Engines of units, which are rows that hardly repeat, or clusters: permuted 64 times at once."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Booleans, Codes, Integers, Places, Words
from fairperm._utils.sorting import content_keys, order_by, run_numbers, run_starts
from fairperm._utils.streams import OBSERVED, stream
from fairperm.data.sample import Sample
from fairperm.engines.estimates import Estimates, variance_of_defined
from fairperm.engines.kernels.kernel import LANES
from fairperm.engines.kernels.subsets import (
    STATE_WORDS,
    lane_bits,
    random_subsets,
    same_in_all_lanes,
)
from fairperm.engines.resampling.shared_labels import SharedLabels
from fairperm.metrics.definition import Variance

_FEW_BLOCKS = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """Units sorted by their values, in consecutive blocks inside which labels are exchanged.

    The smaller group is drawn: it is "first" here, whatever the user's order. The ``sizes`` of the
    groups in each stratum are the same in every permutation.
    """

    in_first: Booleans
    stratum: Codes
    n_strata: int
    block_sizes: Integers
    wanted: Integers
    sizes: Array
    order: tuple[int, ...]

    @classmethod
    def of(
        cls, group: Codes, stratum: Codes, block: Codes, n_strata: int, values: Callable[[], Array]
    ) -> Layout:
        """Lay out units that are sorted by stratum, block and their values."""
        swapped = _should_swap(group, values)
        in_first = group == int(swapped)
        starts = run_starts(stratum, block)
        return cls(
            in_first=in_first,
            stratum=stratum,
            n_strata=n_strata,
            block_sizes=np.diff(np.append(starts, len(in_first))),
            wanted=_count_by_block(in_first, starts),
            sizes=_sizes(in_first, stratum, n_strata).astype(float),
            order=(1, 0) if swapped else (0, 1),
        )

    def subsets(self, rng: np.random.Generator) -> Words:
        """Return 64 random choices of the first group, as bits of a word for each unit."""
        state = rng.integers(2**64, size=STATE_WORDS, dtype=np.uint64)
        return random_subsets(self.block_sizes, self.wanted, state)

    def members(self, in_first: Booleans) -> Iterator[tuple[int, int, Places]]:
        """Yield the units of every stratum and group."""
        order = np.lexsort([~in_first, self.stratum])
        sizes = _sizes(in_first, self.stratum, self.n_strata).ravel()
        for i, members in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            yield i // 2, i % 2, members


def order_ties(order: Places, group: Codes, columns: Sequence[NDArray[Any]]) -> Places:
    """Return an order by these columns in which equal rows of the first group come first."""
    # sums of fractions are then rounded the same way, whatever the order of the user's rows
    varying = [column for column in columns if (column != column[:1]).any()] or columns[:1]
    ordered = [column[order] for column in varying]
    starts = run_starts(*ordered)
    if len(starts) == len(order):
        return order
    swapped = _should_swap(group[order], lambda: np.stack(ordered, axis=1))
    run = run_numbers(starts, len(order))
    return order[np.lexsort([group[order] != int(swapped), run])]


def resample_units(n_units: int, rng: np.random.Generator) -> Array:
    """Return how often each of the units is in a bootstrap sample."""
    drawn = rng.integers(n_units, size=n_units)
    return np.bincount(drawn, minlength=n_units).astype(float)


def _count_by_block(in_first: Booleans, starts: Places) -> Integers:
    """Return how many units of each block are in the first group."""
    if len(starts) <= _FEW_BLOCKS:  # without a copy as integers: there may be millions of units
        blocks = np.split(in_first, starts[1:])
        return np.array([np.count_nonzero(block) for block in blocks], np.int64)
    return np.add.reduceat(in_first, starts, dtype=np.int64)


def _sizes(in_first: Booleans, stratum: Codes, n_strata: int) -> Places:
    """Return the number of units by stratum and group."""
    if n_strata == 1:
        n_first = np.count_nonzero(in_first)
        return np.array([[n_first, len(in_first) - n_first]])
    whole = np.bincount(stratum, minlength=n_strata)
    first = np.bincount(stratum[in_first], minlength=n_strata)
    return np.stack([first, whole - first], axis=1)


def _should_swap(group: Codes, values: Callable[[], Array]) -> bool:
    """Whether the user's second group is smaller or, if of equal size, has smaller values."""
    # names do not matter: swapping the groups changes no draw
    n_second = int(group.sum())
    if 2 * n_second != len(group):
        return 2 * n_second < len(group)
    every = values()
    first, second = every[group == 0], every[group == 1]
    unlike = np.argwhere(first != second)
    return bool(unlike.size and second[tuple(unlike[0])] < first[tuple(unlike[0])])


@dataclass(frozen=True, slots=True)
class UnitsEngine(SharedLabels):
    """The draws of units that engines of totals and of ranks share."""

    layout: Layout
    weights: Array | None
    variance: Variance | None
    n_bootstrap: int

    block_size = LANES
    counts_per_draw = math.inf
    draw_error = 0.0

    @property
    def order(self) -> tuple[int, ...]:
        return self.layout.order

    def with_variance(self, variance: Variance | None) -> Self:
        return replace(self, variance=variance)

    def observed(self, seed: int = 0) -> Estimates:
        return self.of_labels(same_in_all_lanes(self.layout.in_first), 1, stream(seed, OBSERVED))

    @property
    def label_key(self) -> bytes | None:
        # none with a bootstrap variance, which continues the same random stream
        if self.variance == Variance.BOOTSTRAP:
            return None
        return np.stack([self.layout.block_sizes, self.layout.wanted]).tobytes()

    def random_labels(self, n: int, rng: np.random.Generator) -> Words:
        """Return 64 random choices of the first group, as bits of a word for each unit."""
        del n  # at most 64
        return self.layout.subsets(rng)

    def of_labels(self, labels: Words, n: int, rng: np.random.Generator) -> Estimates:
        every = self._of_words(labels, n)
        estimates = every.each(lambda array: array[:, :n])
        if self.variance != Variance.BOOTSTRAP:
            return estimates.in_order(self.order)
        variances = []
        for in_first in lane_bits(labels)[:n]:
            values = self._resampled(in_first, self.n_bootstrap, rng).value
            variances.append(variance_of_defined(np.moveaxis(values, 1, -1)))
        estimates = replace(estimates, variance=np.stack(variances, axis=1))
        return estimates.in_order(self.order)

    def bootstrapped(self, n: int, rng: np.random.Generator) -> Estimates:
        return self._resampled(self.layout.in_first, n, rng).in_order(self.order)

    def enumerated(self, n_resamples: int, *, by_sum: bool) -> tuple[Estimates, Array] | None:
        """Return None: samples that can be enumerated are left to the counts engine."""
        del n_resamples, by_sum
        return None

    @abstractmethod
    def _of_words(self, words: Words, lanes: int) -> Estimates:
        """Return the estimates of 64 choices of the first group, or at least of ``lanes``."""

    @abstractmethod
    def _resampled(self, in_first: Booleans, n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` bootstrap samples of one choice of the first group."""


def order_units(
    rows: Sample, weight: Array, cluster: Codes
) -> tuple[Integers, Places, list[Array]]:
    """Return each row's unit, each unit's first row, and the keys that order the units."""
    # units are ordered by stratum, block, the ranks of their rows, and group: names of units and
    # the user's order of rows change nothing
    starts = run_starts(rows.stratum, *rows.contributions.T, weight)
    rank = run_numbers(starts, len(weight)) + 1.0
    _, first, of_row = np.unique(cluster, return_index=True, return_inverse=True)
    of_row = of_row.ravel()
    keys = content_keys(of_row, rank)
    order = order_by([rows.stratum[first], rows.block[first], *keys, rows.group[first]])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[of_row], first[order], [key[order] for key in keys]
