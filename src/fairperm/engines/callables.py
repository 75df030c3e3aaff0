"""The engine of callables: a user's function is tried on every sample, permutation and resample."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairperm._utils import streams
from fairperm._utils.sorting import content_keys, order_by, run_numbers, run_starts
from fairperm.engines.estimates import Estimates, variance_of_defined
from fairperm.engines.resampling import draws
from fairperm.metrics.variances import Variance

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from fairperm.engines.sample import Rows
    from fairperm.metrics.callables import CallableMetric

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]
    Pair = tuple["Sample | Clusters", "Sample | Clusters"]
    Samples = tuple["Sample | Clusters", ...]

_KIND_COST = 10  # rows that are drawn in the time of drawing the count of one kind of row
_ROWS_TRIED = 100_000  # on which counts as weights are compared with as many rows
_MOST_LEFT_OUT = 1000  # rows of a group that the jackknife leaves out, one at a time


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows of one group, as places among the kinds of row; listed, or counted by kind."""

    rows: NDArray[np.intp]
    count: Counts | None = None

    @classmethod
    def listed(cls, rows: NDArray[np.intp], count: Counts) -> Sample:
        """Return every row as often as it counts."""
        return cls(np.repeat(rows, count))

    def __len__(self) -> int:
        return len(self.rows) if self.count is None else int(self.count.sum())

    def split(self, size: int, rng: np.random.Generator) -> Pair:
        """Return a random subset of this size, and the rest."""
        if self.count is not None:
            taken = draws.random_subset(self.count, size, 1, rng)[0]
            return Sample(self.rows, taken), Sample(self.rows, self.count - taken)
        taken = np.zeros(len(self.rows), bool)
        taken[rng.choice(len(taken), size, replace=False, shuffle=False)] = True
        return self._at(np.flatnonzero(taken)), self._at(np.flatnonzero(~taken))

    def resampled(self, rng: np.random.Generator) -> Sample:
        """Return as many rows, drawn with replacement."""
        n = len(self)
        if n == 0:
            return self
        if self.count is None:
            return self._at(rng.integers(n, size=n))
        present = self.count > 0
        return Sample(self.rows[present], rng.multinomial(n, self.count[present] / n))

    def without_one(self) -> Iterator[tuple[Sample, int]]:
        """Yield the sample without each of its rows, and how many rows that is the same for.

        Of very many kinds of row, some at equal distances stand for their neighbours.
        """
        count = np.ones(len(self.rows), np.int64) if self.count is None else self.count
        places = np.flatnonzero(count)
        multiplicity = count[places]
        if len(places) > _MOST_LEFT_OUT:
            edges = np.linspace(0, len(self), _MOST_LEFT_OUT + 1).astype(np.int64)
            places = np.searchsorted(np.cumsum(count), edges[:-1], side="right")
            multiplicity = np.diff(edges)
        for place, same in zip(places, multiplicity, strict=True):
            if self.count is None:
                yield Sample(np.delete(self.rows, place)), int(same)
            else:
                yield Sample(self.rows, count - (np.arange(len(count)) == place)), int(same)

    def _at(self, places: NDArray[np.intp]) -> Sample:
        return Sample(self.rows.take(places))


@dataclass(frozen=True, slots=True)
class Clusters:
    """The rows of one group in clusters, which are drawn as a whole."""

    members: tuple[NDArray[np.intp], ...]

    count: ClassVar[None] = None

    @property
    def rows(self) -> NDArray[np.intp]:
        """Return the rows of all clusters."""
        return np.concatenate([np.empty(0, np.intp), *self.members])

    def __len__(self) -> int:
        return len(self.members)

    def split(self, size: int, rng: np.random.Generator) -> Pair:
        """Return a random subset of this size, and the rest."""
        taken = np.zeros(len(self), bool)
        taken[rng.choice(len(taken), size, replace=False, shuffle=False)] = True
        return self._at(np.flatnonzero(taken)), self._at(np.flatnonzero(~taken))

    def resampled(self, rng: np.random.Generator) -> Clusters:
        """Return as many clusters, drawn with replacement."""
        return self._at(rng.integers(len(self), size=len(self))) if self.members else self

    def without_one(self) -> Iterator[tuple[Clusters, int]]:
        """Yield the sample without each of its clusters, some for their neighbours."""
        edges = np.linspace(0, len(self), min(len(self), _MOST_LEFT_OUT) + 1).astype(np.intp)
        for place, after in itertools.pairwise(edges.tolist()):
            yield Clusters(self.members[:place] + self.members[place + 1 :]), after - place

    def _at(self, places: NDArray[np.intp]) -> Clusters:
        return Clusters(tuple(self.members[place] for place in places))


@dataclass(frozen=True, slots=True)
class Stratum:
    """The groups, and all their rows together, whose labels are exchanged."""

    groups: Samples
    pool: Sample | Clusters

    def permuted(self, rng: np.random.Generator) -> Samples:
        """Return a random choice of who is in which group."""
        chosen: list[Sample | Clusters] = []
        left = self.pool
        for sample in self.groups[:-1]:
            taken, left = left.split(len(sample), rng)
            chosen.append(taken)
        return (*chosen, left)

    def resampled(self, rng: np.random.Generator) -> Samples:
        """Return a bootstrap sample of every group."""
        return tuple(sample.resampled(rng) for sample in self.groups)


@dataclass(frozen=True, slots=True)
class CallableEngine:
    """Values of a user's function in samples of the distinct rows, the kinds.

    If the function takes weights and rows repeat, a sample is a count of every kind, passed as
    ``sample_weight``; otherwise it is a list of rows. Kinds are in the order of their values, and
    groups in that of their sizes (``order`` has the user's places), so that neither the order of
    rows nor that of groups changes a draw. "bootstrap" resamples the groups of every draw,
    ``n_bootstrap`` times.
    """

    metric: CallableMetric
    columns: tuple[NDArray[Any], ...]
    row_weight: Array | None
    strata: tuple[Stratum, ...]
    weights: Array | None
    order: tuple[int, ...]
    variance: Variance | None
    n_bootstrap: int
    names: tuple[str, ...]

    block_size = 16  # few, so that slow functions show progress and share their work evenly

    @classmethod
    def from_rows(
        cls,
        metric: CallableMetric,
        rows: Rows,
        weights: Array | None,
        variance: Variance | None,
        n_bootstrap: int,
        names: tuple[str, ...],
    ) -> CallableEngine:
        """Merge equal rows, and count or list them, whichever is faster; list clusters."""
        strata: Iterable[Stratum]
        if rows.cluster is not None:
            kinds, strata, order = _clustered(rows, rows.cluster)
        else:
            kinds, counts, order = _kinds(rows)
        engine = cls(
            metric=metric,
            columns=tuple(kinds.columns[name] for name in metric.columns),
            row_weight=kinds.weight,
            strata=(),
            weights=weights,
            order=order,
            variance=variance,
            n_bootstrap=n_bootstrap,
            names=tuple(names[group] for group in order),
        )
        if rows.cluster is None:
            counted = engine._can_count(counts.sum(axis=0))
            bounds = np.searchsorted(kinds.stratum, np.arange(rows.n_strata + 1))
            strata = (
                _stratum(start, counts[:, start:stop], counted=counted)
                for start, stop in itertools.pairwise(bounds.tolist())
            )
        return replace(engine, strata=tuple(strata))

    @property
    def swapped(self) -> bool:
        """Tell whether the engine's first group is the user's second."""
        return self.order == (1, 0)

    def with_variance(self, variance: Variance | None) -> CallableEngine:
        """Return the same engine with another variance."""
        return replace(self, variance=variance)

    def observed(self, rng: np.random.Generator) -> Estimates:
        """Return the estimates of the sample itself: a block of one."""
        return self._estimates([[stratum.groups for stratum in self.strata]], "", rng)

    def permuted(self, n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` random permutations."""
        samples = ([stratum.permuted(rng) for stratum in self.strata] for _ in range(n))
        return self._estimates(samples, "permutation", rng)

    def bootstrapped(self, n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` bootstrap samples."""
        samples = ([stratum.resampled(rng) for stratum in self.strata] for _ in range(n))
        return self._estimates(samples, "bootstrap sample", rng)

    def enumerated(
        self, n_resamples: int, *, by_sum: bool, rng: np.random.Generator
    ) -> tuple[Estimates, Array] | None:
        """Return None: functions are tried on random permutations."""
        del n_resamples, by_sum, rng
        return None

    def left_out(self) -> Iterator[tuple[Estimates, Counts]]:
        """Yield for each stratum's group the estimates without one of its rows."""
        rng = streams.stream(0, streams.OBSERVED)
        whole = self.with_variance(None).observed(rng)
        for s, stratum in enumerate(self.strata):
            for g, sample in enumerate(stratum.groups):
                values, multiplicity = [], []
                for others, same in sample.without_one():
                    values.append(self._value(others, f"{self.names[g]} less one row"))
                    multiplicity.append(same)
                value = np.repeat(whole.value, len(values), axis=1)
                value[0, :, s, g] = values
                size = np.repeat(whole.size, len(values), axis=1)
                size[0, :, s, g] -= 1
                yield (
                    Estimates(value, np.zeros(value.shape), size),
                    np.array(multiplicity, np.int64),
                )

    def _estimates(
        self, samples: Iterable[Sequence[Samples]], what: str, rng: np.random.Generator
    ) -> Estimates:
        """Try the function on the groups of every stratum, draw by draw."""
        values, variances = [], []
        before = streams.block_of(rng) * self.block_size
        for number, strata in enumerate(samples, before + 1):
            at = f" of {what} {number:,}" if what else ""
            tried = [
                (sample, name + at) for groups in strata for sample, name in self._named(groups)
            ]
            values.append([self._value(*one) for one in tried])
            variances.append([self._variance(*one, rng) for one in tried])
        shape = (1, len(values), len(self.strata), len(self.order))
        sizes = [[len(sample) for sample in stratum.groups] for stratum in self.strata]
        return Estimates(
            np.array(values, np.float64).reshape(shape),
            np.array(variances, np.float64).reshape(shape),
            np.broadcast_to(np.array(sizes, np.float64), shape),
        )

    def _named(self, groups: Samples) -> Iterable[tuple[Sample | Clusters, str]]:
        return zip(groups, self.names, strict=True)

    def _variance(self, sample: Sample | Clusters, where: str, rng: np.random.Generator) -> float:
        if self.variance != Variance.BOOTSTRAP:
            return 0.0
        where = f"a bootstrap sample of {where}"
        values = [self._value(sample.resampled(rng), where) for _ in range(self.n_bootstrap)]
        return float(variance_of_defined(np.array(values)))

    def _value(self, sample: Sample | Clusters, where: str) -> float:
        """Return the function's value in one sample; NaN without rows."""
        rows, weight = sample.rows, None
        if sample.count is not None:
            present = np.flatnonzero(sample.count)
            rows, weight = rows[present], sample.count[present].astype(np.float64)
        if not rows.size:
            return math.nan
        if self.row_weight is not None:
            weight = self.row_weight[rows] * (1.0 if weight is None else weight)
        return self.metric.value([column.take(rows) for column in self.columns], weight, where)

    def _can_count(self, count: Counts) -> bool:
        """Tell whether counts can stand for rows, and are drawn in less time.

        The function is asked: some that take weights mean something else by them, or ignore them.
        """
        if not self.metric.takes_weight or _KIND_COST * len(count) > count.sum():
            return False
        rows = np.arange(len(count))
        some = np.ceil(count * min(1.0, _ROWS_TRIED / count.sum())).astype(np.int64)
        samples = Sample(rows, some), Sample.listed(rows, some)
        by_weight, by_row = (self._value(sample, "all groups together") for sample in samples)
        return bool(np.isclose(by_weight, by_row, rtol=1e-9, atol=0, equal_nan=True))


def _kinds(rows: Rows) -> tuple[Rows, Counts, tuple[int, ...]]:
    """Return the distinct rows in order, their counts in each group, and the groups' order."""
    keys = [rows.stratum, *rows.contributions.T]
    if rows.weight is not None:
        keys.append(rows.weight)
    order = order_by(keys)
    starts = run_starts(*(key[order] for key in keys))
    counts = np.zeros((rows.n_groups, len(starts)), np.int64)
    kind = run_numbers(starts, len(order))
    np.add.at(counts, (rows.side[order], kind), rows.count[order])
    groups = sorted(range(rows.n_groups), key=lambda g: (counts[g].sum(), counts[g].tolist()))
    return rows.take(order[starts]), counts[groups], tuple(groups)


def _stratum(start: int, counts: Counts, *, counted: bool) -> Stratum:
    """Return the groups of the kinds from ``start`` on, and all of them together."""
    rows = np.arange(start, start + counts.shape[1])
    make = Sample if counted else Sample.listed
    return Stratum(tuple(make(rows, one) for one in counts), make(rows, counts.sum(axis=0)))


def _clustered(
    rows: Rows, cluster: NDArray[np.integer[Any]]
) -> tuple[Rows, list[Stratum], tuple[int, ...]]:
    """Return the rows in order, the strata's clusters of them, and the groups' order.

    Clusters are ordered by the ranks of their rows, as in the other engines: neither names nor the
    order of rows have a part in it.
    """
    cluster = np.repeat(cluster, rows.count)
    rows = rows.expanded()
    weight = [] if rows.weight is None else [rows.weight]
    order = order_by([rows.stratum, *rows.contributions.T, *weight])
    rows, cluster = rows.take(order), cluster[order]
    weight = [] if rows.weight is None else [rows.weight]
    starts = run_starts(rows.stratum, *rows.contributions.T, *weight)
    rank = run_numbers(starts, len(rows.side))
    _, first, of_row = np.unique(cluster, return_index=True, return_inverse=True)
    members = np.split(np.argsort(of_row, kind="stable"), np.cumsum(np.bincount(of_row))[:-1])
    keys = content_keys(of_row, rank.astype(np.float64))
    order = order_by([rows.stratum[first], *keys])
    side, stratum = rows.side[first[order]], rows.stratum[first[order]]
    every = range(rows.n_groups)
    content = [tuple(zip(*(key[order][side == g] for key in keys), strict=True)) for g in every]
    groups = sorted(every, key=lambda g: (len(content[g]), content[g]))
    strata = []
    for s in range(rows.n_strata):
        chosen = [order[(stratum == s) & (side == g)] for g in groups]
        made = [Clusters(tuple(members[i] for i in one)) for one in (*chosen, order[stratum == s])]
        strata.append(Stratum(tuple(made[:-1]), made[-1]))
    return rows, strata, tuple(groups)
