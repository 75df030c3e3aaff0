"""The units engine: rows that differ from one another, permuted 64 times at once."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairperm._utils.sorting import run_numbers, run_starts
from fairperm.engines.estimates import Estimates, variance_of_defined
from fairperm.engines.kernels.kernel import LANES
from fairperm.engines.kernels.subsets import (
    STATE_WORDS,
    lane_bits,
    random_subsets,
    same_in_all_lanes,
)
from fairperm.engines.resampling.shared_labels import SharedLabels
from fairperm.metrics.variances import Variance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Layout:
    """Units in an order that is theirs alone, in consecutive blocks of exchangeable ones.

    The smaller group is the one that is drawn: "first" here, whatever the user calls it. The
    ``sizes`` of the groups in each stratum are the same in every permutation.
    """

    in_first: NDArray[np.bool_]
    stratum: NDArray[np.integer[Any]]
    n_strata: int
    block_sizes: NDArray[np.int64]
    wanted: NDArray[np.int64]
    sizes: Array
    order: tuple[int, ...]

    @classmethod
    def of(
        cls,
        side: NDArray[np.uint8],
        stratum: NDArray[np.integer[Any]],
        block: NDArray[np.integer[Any]],
        n_strata: int,
        values: Callable[[], Array],
    ) -> Layout:
        """Lay out units that are sorted by stratum, block and their values."""
        swapped = _second_comes_first(side, values)
        in_first = side == int(swapped)
        starts = run_starts(stratum, block)
        return cls(
            in_first=in_first,
            stratum=stratum,
            n_strata=n_strata,
            block_sizes=np.diff(np.append(starts, len(in_first))),
            wanted=np.add.reduceat(in_first, starts, dtype=np.int64),
            sizes=_sizes(in_first, stratum, n_strata).astype(float),
            order=(1, 0) if swapped else (0, 1),
        )

    def subsets(self, rng: np.random.Generator) -> NDArray[np.uint64]:
        """Return 64 random choices of the first group, as bits of a word for each unit."""
        state = rng.integers(2**64, size=STATE_WORDS, dtype=np.uint64)
        return random_subsets(self.block_sizes, self.wanted, state)

    def members(self, in_first: NDArray[np.bool_]) -> Iterator[tuple[int, int, NDArray[np.intp]]]:
        """Yield the units of every stratum and group."""
        order = np.lexsort([~in_first, self.stratum])
        sizes = _sizes(in_first, self.stratum, self.n_strata).ravel()
        for i, members in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            yield i // 2, i % 2, members


def ties_in_order(
    order: NDArray[np.intp], side: NDArray[np.uint8], columns: Sequence[NDArray[Any]]
) -> NDArray[np.intp]:
    """Return an order by these columns with the first group's of equal rows before the second's.

    Sums of fractions then are rounded in one way, whatever order the rows came in.
    """
    varying = [column for column in columns if (column != column[:1]).any()] or columns[:1]
    ordered = [column[order] for column in varying]
    starts = run_starts(*ordered)
    if len(starts) == len(order):
        return order
    swapped = _second_comes_first(side[order], lambda: np.stack(ordered, axis=1))
    run = run_numbers(starts, len(order))
    return order[np.lexsort([side[order] != int(swapped), run])]


def _sizes(
    in_first: NDArray[np.bool_], stratum: NDArray[np.integer[Any]], n_strata: int
) -> NDArray[np.intp]:
    """Return the number of units by stratum and group."""
    if n_strata == 1:
        n_first = np.count_nonzero(in_first)
        return np.array([[n_first, len(in_first) - n_first]])
    whole = np.bincount(stratum, minlength=n_strata)
    first = np.bincount(stratum[in_first], minlength=n_strata)
    return np.stack([first, whole - first], axis=1)


def _second_comes_first(side: NDArray[np.uint8], values: Callable[[], Array]) -> bool:
    """Tell whether the user's second group is the smaller, or of equal ones has smaller values.

    What the groups are called has no part in it, so that swapping them changes no draw.
    """
    n_second = int(side.sum())
    if 2 * n_second != len(side):
        return 2 * n_second < len(side)
    every = values()
    first, second = every[side == 0], every[side == 1]
    unlike = np.argwhere(first != second)
    return bool(unlike.size and second[tuple(unlike[0])] < first[tuple(unlike[0])])


@dataclass(frozen=True, slots=True)
class UnitsEngine(SharedLabels):
    """What totals and ranks of units have in common: who is drawn, and how often."""

    layout: Layout
    weights: Array | None
    variance: Variance | None
    n_bootstrap: int

    block_size = LANES

    @property
    def order(self) -> tuple[int, ...]:
        """Return the user's groups by their sizes and rows."""
        return self.layout.order

    def with_variance(self, variance: Variance | None) -> Self:
        """Return the same engine with another variance."""
        return replace(self, variance=variance)

    def observed(self, rng: np.random.Generator) -> Estimates:
        """Return the estimates of the sample itself: a block of one."""
        return self.of_labels(same_in_all_lanes(self.layout.in_first), 1, rng)

    @property
    def label_key(self) -> bytes | None:
        """Return the sizes of the blocks, and how many of each are drawn.

        None with a bootstrap variance, which goes on with the same random numbers.
        """
        if self.variance == Variance.BOOTSTRAP:
            return None
        return np.stack([self.layout.block_sizes, self.layout.wanted]).tobytes()

    def random_labels(self, n: int, rng: np.random.Generator) -> NDArray[np.uint64]:
        """Return 64 random choices of the first group, as bits of a word for each unit."""
        del n  # it is never more
        return self.layout.subsets(rng)

    def of_labels(self, labels: NDArray[np.uint64], n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` choices of the first group."""
        every = self._of_words(labels, n)
        estimates = Estimates(every.value[:, :n], every.variance[:, :n], every.size[:, :n])
        if self.variance != Variance.BOOTSTRAP:
            return estimates.in_order(self.order)
        variances = []
        for in_first in lane_bits(labels)[:n]:
            values = self._resampled(in_first, self.n_bootstrap, rng).value
            variances.append(variance_of_defined(np.moveaxis(values, 1, -1)))
        estimates = replace(estimates, variance=np.stack(variances, axis=1))
        return estimates.in_order(self.order)

    def bootstrapped(self, n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` bootstrap samples."""
        return self._resampled(self.layout.in_first, n, rng).in_order(self.order)

    def enumerated(
        self, n_resamples: int, *, by_sum: bool, rng: np.random.Generator
    ) -> tuple[Estimates, Array] | None:
        """Return None: samples that can be enumerated are left to the counts engine."""
        del n_resamples, by_sum, rng
        return None

    @abstractmethod
    def _of_words(self, words: NDArray[np.uint64], lanes: int) -> Estimates:
        """Return the estimates of 64 choices of the first group; of so many, if that is faster."""

    @abstractmethod
    def _resampled(
        self, in_first: NDArray[np.bool_], n: int, rng: np.random.Generator
    ) -> Estimates:
        """Return the estimates of ``n`` bootstrap samples of one choice of the first group."""
