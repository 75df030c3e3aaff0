"""The engine of many groups whose rows hardly repeat: all their labels are permuted at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils import streams
from fairperm._utils.arrays import Array, Codes, Integers, Places, Words
from fairperm._utils.sorting import order_by, run_numbers, run_starts
from fairperm.data.sample import Sample
from fairperm.engines.estimates import Estimates
from fairperm.engines.leave_one_out import LeaveOneOut
from fairperm.engines.moments import Moments
from fairperm.engines.resampling.shared_labels import SharedLabels
from fairperm.errors import InputError
from fairperm.metrics.definition import (
    Metric,
    Variance,
    WalkKind,
    by_part,
    is_of_totals,
    metrics_of_totals,
)
from fairperm.metrics.ranks import RankMetric

if TYPE_CHECKING:
    from fairperm.engines.kernels.totals import Terms
    from fairperm.engines.sorted_rows import GroupWalk

    Part = Metric | RankMetric

MAX_GROUPS = 254


def check_group_count(groups: tuple[Hashable, ...], hint: str) -> None:
    """Raise InputError if there are more groups than a byte can number."""
    if len(groups) > MAX_GROUPS:
        rule = f"made of at most {MAX_GROUPS} groups to permute together"
        raise InputError("sensitive_features", rule, len(groups), hint)


@dataclass(frozen=True, slots=True)
class ManyGroupsEngine(SharedLabels):
    """Estimates from a group label for each unit, in every permutation.

    Units are sorted by stratum, block and, for metrics of ranks, label and score; ``labels`` and
    ``tied`` are those of ``AucLayout.labels``. Metrics of influences have ``walks``, by their
    places among the parts, and weighted rows and clusters leave-one-out influences (``alone``).
    """

    parts: tuple[Part, ...]
    weights: Array | None
    variance: Variance | None
    group: NDArray[np.uint8]
    place: Places
    sizes: Array
    block_sizes: Integers
    wanted: Integers
    stratum_starts: Integers
    moments: Moments
    alone: LeaveOneOut | None
    labels: NDArray[np.uint8]
    tied: Integers
    walks: Mapping[int, GroupWalk]

    block_size = 8  # few, as a block of many rows takes a while
    counts_per_draw = math.inf
    draw_error = 0.0

    @classmethod
    def from_rows(
        cls, parts: tuple[Part, ...], rows: Sample, weights: Array | None, variance: Variance | None
    ) -> ManyGroupsEngine:
        """Sort the rows, and order the groups by their rows: names must not change a draw."""
        variance = Variance.DELTA if variance == Variance.WALD else variance  # the same for a rate
        order, contributions, labels, tied = _sort_units(parts, rows)
        moments = Moments.of(
            metrics_of_totals(parts), contributions, order, has_strata=rows.n_strata > 1
        )
        alone = LeaveOneOut.of(moments, contributions, order) if rows.are_sums else None
        stratum, block = rows.stratum[order], _number_runs(rows.stratum[order], rows.block[order])
        kind = _number_runs(block, *(column[order] for column in rows.contributions.T))
        group, place = _order_groups(rows.group[order], kind, rows.n_groups)
        # equal rows by their groups: the user's order of rows must not change how sums are rounded
        group = group[np.lexsort((group, kind))]
        return cls(
            parts=parts,
            weights=weights,
            variance=variance,
            group=group,
            place=place,
            sizes=_count_pairs(stratum, group, len(place)).astype(float),
            block_sizes=np.bincount(block),
            wanted=_count_pairs(block, group, len(place)),
            stratum_starts=np.searchsorted(stratum, np.arange(rows.n_strata + 1)),
            moments=moments,
            alone=alone,
            labels=labels,
            tied=tied,
            walks=_make_walks(parts, rows, order),
        )

    @property
    def order(self) -> tuple[int, ...]:
        return tuple(np.argsort(self.place).tolist())

    def observed(self, seed: int = 0) -> Estimates:
        return self.of_labels(self.group[None], 1, streams.stream(seed, streams.OBSERVED))

    @property
    def label_key(self) -> bytes:
        return np.column_stack([self.block_sizes, self.wanted]).tobytes() + bytes([len(self.place)])

    def random_labels(self, n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        from fairperm.engines.kernels.group_labels import random_groups

        seeds = rng.integers(2**64, size=n, dtype=np.uint64)
        return random_groups(self.block_sizes, self.wanted, seeds)

    def pooled(self) -> Estimates:
        one = replace(
            self,
            group=np.zeros_like(self.group),
            place=np.zeros(1, np.intp),
            sizes=self.sizes.sum(axis=1, keepdims=True),
        )
        return one.observed()

    def of_labels(self, labels: NDArray[np.uint8], n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of every part, from ranks or from totals."""
        del n, rng  # the labels say everything
        by_totals = self._by_totals(labels)
        found = []
        for place, part in enumerate(self.parts):
            if is_of_totals(part):
                found.append(next(by_totals))
            else:
                walk = self.walks.get(place)
                both = self._auc(labels) if walk is None else self._by_walk(walk, labels)
                value, variance = part.of_walk(*both)
                size = self.sizes[..., self.place]
                found.append((value, variance, np.broadcast_to(size, value.shape)))
        return Estimates(*(np.stack(arrays) for arrays in zip(*found, strict=True)))

    def _by_totals(self, groups: NDArray[np.uint8]) -> Iterator[tuple[Array, ...]]:
        from fairperm.engines.kernels.totals import subset_totals

        if not self.moments.parts:
            return
        starts, wanted = self.stratum_starts, self.moments.n_wanted(self._summed)
        totals = np.zeros((len(groups), *self.sizes.shape, self.moments.n_columns))
        totals[..., self.moments.moving[:wanted]] = self._in_lanes(
            groups, lambda words, *_: subset_totals(words, self.moments.columns, starts, wanted)
        )
        sizes = self.sizes[..., self.place]
        estimates = self.moments.estimates(totals[..., self.place, :], sizes, self._summed)
        alone = self.alone
        if alone is not None and self.variance == Variance.DELTA:
            counts = self._in_lanes(
                groups, lambda words, *_: subset_totals(words, alone.counted, starts)
            )
            square = partial(self._square, groups)
            variance = alone.variances(totals, self.sizes, counts, starts, square)
            estimates = replace(estimates, variance=variance[..., self.place])
        yield from zip(estimates.value, estimates.variance, estimates.size, strict=True)

    @property
    def _summed(self) -> Variance | None:
        """The variance that sums of products make."""
        return None if self.alone and self.variance == Variance.DELTA else self.variance

    def _square(self, groups: NDArray[np.uint8], terms: Terms, lines: Array) -> Array:
        """Return the sums of squared influences by draw, stratum and group."""
        from fairperm.engines.kernels.kernel import LANES
        from fairperm.engines.kernels.totals import squared_influences

        def find(words: Words, drawn: slice, some: slice) -> Array:
            mine = np.moveaxis(lines[:, drawn, :, some], 2, 0)
            of_group = mine.reshape(*mine.shape[:2], -1)
            both = np.zeros((*mine.shape[:2], 2, LANES))  # those of all other groups do not count
            both[:, :, 0, : of_group.shape[-1]] = of_group
            return squared_influences(words, terms, both)[:, 0].T

        return self._in_lanes(groups, find)

    def _in_lanes(
        self, groups: NDArray[np.uint8], find: Callable[[Words, slice, slice], Array]
    ) -> Array:
        """Return by draw, stratum and group what is found in the lanes of words (first axis).

        A lane has the units of one group in one draw; ``find`` is told which draws and groups.
        """
        from fairperm.engines.kernels.group_labels import words_of_groups
        from fairperm.engines.kernels.kernel import LANES

        n_groups = len(self.place)
        width = min(LANES, n_groups)  # groups, and draws of each, side by side
        rows = []
        for start in range(0, len(groups), LANES // width):
            drawn, found = slice(start, min(start + LANES // width, len(groups))), []
            for first in range(0, n_groups, width):
                some = slice(first, min(first + width, n_groups))
                words = words_of_groups(groups[drawn], first, _count(some))
                lanes = find(words, drawn, some)[: _count(drawn) * _count(some)]
                found.append(lanes.reshape(_count(drawn), _count(some), *lanes.shape[1:]))
            rows.append(np.hstack(found))
        return np.moveaxis(np.concatenate(rows), 1, 2)

    def _auc(self, groups: NDArray[np.uint8]) -> tuple[Array, Array]:
        from fairperm.engines.kernels.group_labels import group_ranks

        n_groups = len(self.place)
        sums = group_ranks(groups, self.labels, self.tied, self.stratum_starts, n_groups)
        return auc_of_sums(sums[:, :, self.place])

    def _by_walk(self, walk: GroupWalk, groups: NDArray[np.uint8]) -> tuple[Array, Array]:
        def find(words: Words, drawn: slice, some: slice) -> Array:
            found = walk.find_one(words, lanes=_count(drawn) * _count(some))
            return np.stack(found, axis=-1)

        value, squares = np.moveaxis(self._in_lanes(groups, find)[..., self.place, :], -1, 0)
        return value, walk.find_variance(squares, self.sizes[..., self.place])


def _count(places: slice) -> int:
    return int(places.stop - places.start)


def _sort_units(
    parts: tuple[Part, ...], rows: Sample
) -> tuple[Places, Array, NDArray[np.uint8], Integers]:
    """Return the order of the units, the contributions to totals, and the labels for ranks."""
    from fairperm.engines.kernels.auc import AucLayout

    label, score, contributions = _split_columns(parts, rows.contributions)
    if label is None or score is None:
        order = order_by([rows.stratum, rows.block, *rows.contributions.T])
        return order, contributions, np.empty(0, np.uint8), np.empty((0, 3), np.int64)
    layout = AucLayout.build(score, label > 0, rows.stratum, rows.n_strata)
    order = layout.order.astype(np.intp)
    return order, contributions, *layout.labels()


def _make_walks(parts: tuple[Part, ...], rows: Sample, order: Places) -> dict[int, GroupWalk]:
    """Return the walks of units in this order, by the places of the parts that have one."""
    from fairperm.engines.sorted_rows import GROUP_WALKS, GroupWalk

    found = {}
    for i, (part, place) in enumerate(by_part(parts)):
        if part.walk in GROUP_WALKS:
            own = replace(rows, contributions=rows.contributions[:, place]).take(order)
            found[i] = GroupWalk.of(part, own, np.arange(len(order)))
    return found


def _split_columns(
    parts: tuple[Part, ...], contributions: Array
) -> tuple[Array | None, Array | None, Array]:
    """Return the labels and scores of a part of ranks, if there is one, and all other columns."""
    label = score = None
    columns: list[int] = []
    for part, place in by_part(parts):
        if part.has_totals:
            columns.extend(range(place.start, place.stop))
        elif part.walk is not WalkKind.ONE_VERSUS_REST:  # that has several scores
            label, score = contributions[:, place].T
    return label, score, contributions[:, np.array(columns, np.intp)]


def _order_groups(group: Codes, kind: Places, n_groups: int) -> tuple[NDArray[np.uint8], Places]:
    """Return each row's group, ordered by sizes and rows, and the places of the user's groups."""
    # ``kind`` numbers the distinct rows in order
    # big-endian: their bytes sort like the numbers
    kinds = kind[np.argsort(group, kind="stable")].astype(">i8")
    ends = np.cumsum(np.bincount(group, minlength=n_groups)).tolist()
    rows = [kinds[start:end] for start, end in itertools.pairwise([0, *ends])]
    order = sorted(range(n_groups), key=lambda g: (len(rows[g]), rows[g].tobytes()))
    place = np.argsort(order)
    return place.astype(np.uint8)[group], place


def _number_runs(*columns: NDArray[Any]) -> Places:
    """Return for each of the sorted rows the number of its run of equal rows."""
    return run_numbers(run_starts(*columns), len(columns[0]))


def _count_pairs(row: Codes, group: Codes, n_groups: int) -> Integers:
    """Return the number of units with each number and group."""
    n_rows = int(row.max()) + 1
    flat = np.bincount(row.astype(np.intp) * n_groups + group, minlength=n_rows * n_groups)
    return flat.reshape(n_rows, n_groups)


def auc_of_sums(sums: Array) -> tuple[Array, Array]:
    """Return AUC and DeLong's variance from counts and sums (see ``group_ranks``)."""
    positives, negatives, below, below_squared, above_squared = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        auc = below / (positives * negatives)
        # a negative's component is the share of positives above it: 1 - y / positives, where all
        # y add up to what the x leave of the pairs
        above = positives * negatives - below
        of_positives = below_squared / negatives**2 - positives * auc**2
        of_negatives = (
            negatives - 2 * above / positives + above_squared / positives**2 - negatives * auc**2
        )
        variance = of_positives / (positives - 1) / positives
        variance += of_negatives / (negatives - 1) / negatives
        known = (positives > 1) & (negatives > 1)
        return auc, np.where(known, np.maximum(variance, 0.0), np.nan)
