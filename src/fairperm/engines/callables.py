"""The engine of callables: a user's function is called on the sample and on every draw."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils import streams
from fairperm._utils.arrays import Array, Codes, Integers, Places
from fairperm._utils.sorting import content_keys, order_by, run_numbers, run_starts
from fairperm.data.sample import Sample
from fairperm.engines.estimates import Estimates, variance_of_defined
from fairperm.engines.resampling import draws
from fairperm.errors import shown
from fairperm.metrics.callables import CallableMetric
from fairperm.metrics.definition import Variance

_KIND_COST = 10  # rows that are drawn in the time of drawing one count
_ROWS_TRIED = 100_000  # rows on which weights are compared with repeated rows


@dataclass(frozen=True, slots=True)
class GroupSample:
    """The units of one group: places of distinct rows or of clusters, listed or with counts."""

    places: Places
    count: Integers | None = None

    @classmethod
    def listed(cls, places: Places, count: Integers) -> GroupSample:
        """Return every place as often as it counts."""
        return cls(np.repeat(places, count))

    def __len__(self) -> int:
        return len(self.places) if self.count is None else int(self.count.sum())

    def split(self, size: int, rng: np.random.Generator) -> tuple[GroupSample, GroupSample]:
        """Return a random subset of this size, and the rest."""
        if self.count is not None:
            taken = draws.random_subset(self.count, size, 1, rng)[0]
            return GroupSample(self.places, taken), GroupSample(self.places, self.count - taken)
        taken = np.zeros(len(self.places), bool)
        taken[rng.choice(len(taken), size, replace=False, shuffle=False)] = True
        return GroupSample(self.places[taken]), GroupSample(self.places[~taken])

    def resample(self, rng: np.random.Generator) -> GroupSample:
        """Return as many units, drawn with replacement."""
        n = len(self)
        if n == 0:
            return self
        if self.count is None:
            return GroupSample(self.places.take(rng.integers(n, size=n)))
        present = self.count > 0
        return GroupSample(self.places[present], rng.multinomial(n, self.count[present] / n))


@dataclass(frozen=True, slots=True)
class StratumSample:
    """The groups of one stratum, and the pool of all their units, whose labels are exchanged."""

    groups: tuple[GroupSample, ...]
    pool: GroupSample

    def permute(self, rng: np.random.Generator) -> tuple[GroupSample, ...]:
        """Return groups of the same sizes, drawn from the pool without replacement."""
        chosen = []
        left = self.pool
        for sample in self.groups[:-1]:
            taken, left = left.split(len(sample), rng)
            chosen.append(taken)
        return (*chosen, left)

    def resample(self, rng: np.random.Generator) -> tuple[GroupSample, ...]:
        """Return a bootstrap sample of every group."""
        return tuple(sample.resample(rng) for sample in self.groups)


@dataclass(frozen=True, slots=True)
class CallableEngine:
    """Values of a user's function in samples of the distinct rows, or of clusters of rows.

    If the function takes weights and rows repeat, a sample is a count of every distinct row, passed
    as ``sample_weight``; otherwise it is a list of rows. Distinct rows are ordered by their values
    and groups by their sizes: neither the user's order of rows nor that of groups changes a draw. A
    bootstrap variance takes ``n_bootstrap`` samples of each group in every draw.
    """

    metric: CallableMetric
    columns: tuple[NDArray[Any], ...]
    row_weight: Array | None
    clusters: tuple[Places, ...] | None
    strata: tuple[StratumSample, ...]
    weights: Array | None
    order: tuple[int, ...]
    variance: Variance | None
    n_bootstrap: int
    names: tuple[str, ...]

    block_size = 16  # few: slow functions then show progress and share their work evenly
    label_key = None
    counts_per_draw = math.inf
    draw_error = 0.0

    @classmethod
    def from_rows(
        cls,
        metric: CallableMetric,
        rows: Sample,
        weights: Array | None,
        variance: Variance | None,
        n_bootstrap: int,
        groups: tuple[Hashable, ...],
    ) -> CallableEngine:
        """Count equal rows or list them, whichever is faster; list clusters."""
        clusters = None
        strata: Iterable[StratumSample] = ()
        if rows.cluster is not None:
            kinds, clusters, strata, order = _list_clusters(rows, rows.cluster)
        else:
            kinds, counts, order = _count_kinds(rows)
        engine = cls(
            metric=metric,
            columns=tuple(kinds.columns[name] for name in metric.columns),
            row_weight=kinds.weight,
            clusters=clusters,
            strata=tuple(strata),
            weights=weights,
            order=order,
            variance=variance,
            n_bootstrap=n_bootstrap,
            names=tuple(f"group {shown(groups[place])}" for place in order),
        )
        if clusters is not None:
            return engine
        sample = GroupSample if engine._can_count(counts.sum(axis=0)) else GroupSample.listed
        bounds = np.searchsorted(kinds.stratum, np.arange(rows.n_strata + 1))
        strata = []
        for start, stop in itertools.pairwise(bounds.tolist()):
            places, mine = np.arange(start, stop), counts[:, start:stop]
            samples = tuple(sample(places, one) for one in mine)
            strata.append(StratumSample(samples, sample(places, mine.sum(axis=0))))
        return replace(engine, strata=tuple(strata))

    def with_variance(self, variance: Variance | None) -> CallableEngine:
        return replace(self, variance=variance)

    def observed(self, seed: int = 0) -> Estimates:
        rng = streams.stream(seed, streams.OBSERVED)
        return self._estimates([[stratum.groups for stratum in self.strata]], "", rng)

    def permuted(self, n: int, rng: np.random.Generator) -> Estimates:
        samples = ([stratum.permute(rng) for stratum in self.strata] for _ in range(n))
        return self._estimates(samples, "permutation", rng)

    def bootstrapped(self, n: int, rng: np.random.Generator) -> Estimates:
        samples = ([stratum.resample(rng) for stratum in self.strata] for _ in range(n))
        return self._estimates(samples, "bootstrap sample", rng)

    def enumerated(self, n_resamples: int, *, by_sum: bool) -> tuple[Estimates, Array] | None:
        """Return None: functions are called on random permutations only."""
        del n_resamples, by_sum
        return None

    def pooled(self) -> Estimates:
        """Return NaN: a function's variance has no closed form."""
        unknown = np.full((1, 1, len(self.strata), 1), np.nan)
        return Estimates(unknown, unknown, unknown)

    def _estimates(
        self,
        samples: Iterable[Sequence[tuple[GroupSample, ...]]],
        what: str,
        rng: np.random.Generator,
    ) -> Estimates:
        """Call the function on the groups of every stratum, draw by draw."""
        values, variances = [], []
        before = streams.block_of(rng) * self.block_size
        for number, strata in enumerate(samples, before + 1):
            at = f" of {what} {number:,}" if what else ""
            named = [
                (sample, name + at)
                for groups in strata
                for sample, name in zip(groups, self.names, strict=True)
            ]
            values.append([self._value(*one) for one in named])
            variances.append([self._variance(*one, rng) for one in named])
        shape = (1, len(values), len(self.strata), len(self.order))
        sizes = [[len(sample) for sample in stratum.groups] for stratum in self.strata]
        return Estimates(
            np.array(values, np.float64).reshape(shape),
            np.array(variances, np.float64).reshape(shape),
            np.broadcast_to(np.array(sizes, np.float64), shape),
        ).in_order(self.order)

    def _variance(self, sample: GroupSample, where: str, rng: np.random.Generator) -> float:
        if self.variance != Variance.BOOTSTRAP:
            return 0.0
        where = f"a bootstrap sample of {where}"
        values = [self._value(sample.resample(rng), where) for _ in range(self.n_bootstrap)]
        return float(variance_of_defined(np.array(values)))

    def _value(self, sample: GroupSample, where: str) -> float:
        """Return the function's value in one sample; NaN without rows."""
        rows, weight = sample.places, None
        if self.clusters is not None:
            rows = np.concatenate([np.empty(0, np.intp), *(self.clusters[i] for i in rows)])
        elif sample.count is not None:
            present = np.flatnonzero(sample.count)
            rows, weight = rows[present], sample.count[present].astype(np.float64)
        if not rows.size:
            return math.nan
        if self.row_weight is not None:
            weight = self.row_weight[rows] * (1.0 if weight is None else weight)
        return self.metric.value([column.take(rows) for column in self.columns], weight, where)

    def _can_count(self, count: Integers) -> bool:
        """Whether counts can stand for rows, and are drawn faster."""
        # some functions give weights another meaning, or ignore them, so their values are compared
        if not self.metric.takes_weight or _KIND_COST * len(count) > count.sum():
            return False
        rows = np.arange(len(count))
        some = np.ceil(count * min(1.0, _ROWS_TRIED / count.sum())).astype(np.int64)
        samples = GroupSample(rows, some), GroupSample.listed(rows, some)
        by_weight, by_row = (self._value(sample, "all groups together") for sample in samples)
        return bool(np.isclose(by_weight, by_row, rtol=1e-9, atol=0, equal_nan=True))


def _count_kinds(rows: Sample) -> tuple[Sample, Integers, tuple[int, ...]]:
    """Return the distinct rows in order, their counts in each group, and the groups' order."""
    keys = [rows.stratum, *rows.contributions.T]
    if rows.weight is not None:
        keys.append(rows.weight)
    order = order_by(keys)
    starts = run_starts(*(key[order] for key in keys))
    counts = np.zeros((rows.n_groups, len(starts)), np.int64)
    kind = run_numbers(starts, len(order))
    np.add.at(counts, (rows.group[order], kind), rows.count[order])
    groups = sorted(range(rows.n_groups), key=lambda g: (counts[g].sum(), counts[g].tolist()))
    return rows.take(order[starts]), counts[groups], tuple(groups)


def _list_clusters(
    rows: Sample, cluster: Codes
) -> tuple[Sample, tuple[Places, ...], list[StratumSample], tuple[int, ...]]:
    """Return the rows in order, each cluster's rows, the strata's clusters and the groups' order.

    Clusters are ordered by the ranks of their rows, as in the other engines: names and the order
    of rows change nothing.
    """
    cluster = np.repeat(cluster, rows.count)
    rows = rows.expand()
    weight = [] if rows.weight is None else [rows.weight]
    order = order_by([rows.stratum, *rows.contributions.T, *weight])
    rows, cluster = rows.take(order), cluster[order]
    weight = [] if rows.weight is None else [rows.weight]
    starts = run_starts(rows.stratum, *rows.contributions.T, *weight)
    rank = run_numbers(starts, len(rows.group))
    _, first, of_row = np.unique(cluster, return_index=True, return_inverse=True)
    members = np.split(np.argsort(of_row, kind="stable"), np.cumsum(np.bincount(of_row))[:-1])
    keys = content_keys(of_row, rank.astype(np.float64))
    order = order_by([rows.stratum[first], *keys])
    group, stratum = rows.group[first[order]], rows.stratum[first[order]]
    every = range(rows.n_groups)
    content = [tuple(zip(*(key[order][group == g] for key in keys), strict=True)) for g in every]
    groups = sorted(every, key=lambda g: (len(content[g]), content[g]))
    strata = []
    for s in range(rows.n_strata):
        chosen = tuple(GroupSample(order[(stratum == s) & (group == g)]) for g in groups)
        strata.append(StratumSample(chosen, GroupSample(order[stratum == s])))
    return rows, tuple(members), strata, tuple(groups)
