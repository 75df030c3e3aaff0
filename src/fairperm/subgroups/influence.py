"""Wider standard errors for candidates whose gaps rest on few influential rows, or a count of them.

As in single tests, only the observed errors are widened: in permutations candidates hold mixed
rows, whose variance is estimated well. So p-values can only grow. Those of means of plain rows are
not widened, and the candidates found that rest on few rows are counted instead.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.sorting import order_by, run_numbers, run_starts
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.small_groups import (
    MIN_INFLUENTIAL_ROWS,
    InfluentialRows,
    effective_rows,
    widening_factor,
)
from fairperm.metrics.definition import is_of_totals
from fairperm.metrics.ranks import Components, drop_rounding

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from fairperm.data.sample import Sample
    from fairperm.engines.estimates import Estimates
    from fairperm.metrics.definition import Metric
    from fairperm.subgroups.candidates import Candidates
    from fairperm.subgroups.sample import SearchedRows

    Array = NDArray[np.float64]

_CHUNK_SIZE = 1 << 19  # candidates times runs


def widen_errors(
    sample: SearchedRows, candidates: Candidates, observed: Estimates
) -> tuple[Estimates, NDArray[np.bool_]]:
    """Return the estimates with wider variances, and which candidates have them."""
    plan, part = sample.plan, sample.metric
    if not is_of_totals(part):
        return _widen_auc(sample, candidates, observed)
    if not (plan.weighted or plan.clustered):
        return observed, np.zeros(len(candidates), bool)
    step = max(1, _CHUNK_SIZE // len(sample.units.count))
    parts = [
        _count_effective(part, sample.units, candidates.members[start : start + step])
        for start in range(0, len(candidates), step)
    ]
    factor = widening_factor(np.concatenate(parts))
    wider = replace(observed, variance=observed.variance * factor[:, None])
    return wider, np.asarray((factor > 1).any(axis=1))


def rest_on_few(
    sample: SearchedRows, candidates: Candidates, observed: Estimates
) -> NDArray[np.bool_]:
    """Return the candidates whose means of plain rows rest on few influential rows.

    As in a single test, which notes it: rates are not counted.
    """
    plan, part, few = sample.plan, sample.metric, np.zeros(len(candidates), bool)
    if not is_of_totals(part) or part.has_denominator or plan.weighted or plan.clustered:
        return few
    may_have_few = _may_rest_on_few(part, sample.units, candidates, observed)
    for i in np.flatnonzero(may_have_few).tolist():
        effective = effective_rows(_compare_with_rest(sample, candidates, i))
        few[i] = (effective < MIN_INFLUENTIAL_ROWS).any()
    return few


def _may_rest_on_few(
    part: Metric, units: Sample, candidates: Candidates, observed: Estimates
) -> NDArray[np.bool_]:
    """Return the candidates whose influential rows must be counted one by one.

    (Σψ²)²/Σψ⁴ is at least Σψ² over the largest ψ². Σψ² is the variance, and a row's influence is
    the sum of its contributions times their slopes, each between its values at the smallest and
    the largest contribution of the cells: so millions of rows need not be read for each candidate.
    """
    if units.n_strata > 1:
        return np.ones(len(candidates), bool)
    u = units.contributions
    totals = np.zeros((units.n_groups, u.shape[1]))
    np.add.at(totals, units.group, units.count[:, None] * u)
    lowest, highest = np.full_like(totals, np.inf), np.full_like(totals, -np.inf)
    np.minimum.at(lowest, units.group, u)
    np.maximum.at(highest, units.group, u)
    few = np.zeros(len(candidates), bool)
    for i in range(len(candidates)):
        mine = np.zeros(units.n_groups, bool)
        mine[candidates.members[[i]].indices] = True
        for side, cells in enumerate((mine, ~mine)):
            largest = part.bound_influences(
                totals[cells].sum(axis=0), lowest[cells].min(axis=0), highest[cells].max(axis=0)
            )
            few[i] |= not observed.variance[0, i, 0, side] >= MIN_INFLUENTIAL_ROWS * largest**2
    return few


def _compare_with_rest(sample: SearchedRows, candidates: Candidates, place: int) -> Comparison:
    """Return the comparison of a candidate with all other units."""
    units = sample.units
    outside = np.ones(units.n_groups, np.uint8)
    outside[candidates.members[[place]].indices] = 0
    rows = replace(units, group=outside[units.group], groups=("subgroup", "rest"))
    return Comparison(sample.plan.metric, rows, None)


def _count_effective(part: Metric, units: Sample, members: csr_array) -> Array:
    """Return the effective number of units, (Σψ²)²/Σψ⁴, of each candidate and its rest.

    Strata count by their shares in the gap: none for those that lack the candidate or its rest.
    """
    inside = members.toarray().T[units.group]
    sides = [units.count[:, None] * inside, units.count[:, None] * (1 - inside)]
    influences = [np.zeros(inside.shape), np.zeros(inside.shape)]
    for stratum in range(units.n_strata):
        mine = np.flatnonzero(units.stratum == stratum)
        counts, u = [times[mine] for times in sides], units.contributions[mine]
        totals = [times.T @ u for times in counts]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = 1 / sum(
                1 / (total[:, 1] if part.sizes_groups else times.sum(axis=0))
                for total, times in zip(totals, counts, strict=True)
            )
            for influence, total, times in zip(influences, totals, counts, strict=True):
                moved = np.abs(part.influences_at(total, times.sum(axis=0), u).T)
                influence[mine] = np.where((times > 0) & (share > 0), moved * share, 0.0)
    found = []
    for influence, times in zip(influences, sides, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = (influence / influence.max(axis=0)) ** 2  # then nothing overflows
            effective = (times * squares).sum(axis=0) ** 2 / (times * squares**2).sum(axis=0)
        found.append(np.nan_to_num(effective))
    return np.stack(found, axis=1)


def _widen_auc(
    sample: SearchedRows, candidates: Candidates, observed: Estimates
) -> tuple[Estimates, NDArray[np.bool_]]:
    """Count the influential rows one by one for the candidates that may have few."""
    plan, units = sample.plan, sample.units
    variance, is_wider = observed.variance.copy(), np.zeros(len(candidates), bool)
    for i in np.flatnonzero(_may_have_few(units, candidates)).tolist():
        comparison = _compare_with_rest(sample, candidates, i)
        one = observed.each(lambda array, i=i: array[:, [i]])  # type: ignore[misc]
        influential = InfluentialRows.count(comparison, plan, one)
        variance[:, [i]] = influential.widen(one, None).variance
        is_wider[i] = influential.widens
    return replace(observed, variance=variance), is_wider


def _may_have_few(units: Sample, candidates: Candidates) -> NDArray[np.bool_]:
    """Return the candidates of an AUC whose influential rows must be counted one by one.

    Without clusters, the numbers of all candidates are found together.
    """
    few = np.ones(len(candidates), bool)
    if units.cluster is not None:
        return few
    runs = _ScoreRuns.of(units)
    step = max(1, _CHUNK_SIZE // runs.powers[0][0].shape[1])
    for start in range(0, len(candidates), step):
        some = slice(start, start + step)
        few[some] = runs.have_few(candidates.members[some])
    return few


@dataclass(frozen=True, slots=True)
class _ScoreRuns:
    """Rows by stratum and score, in runs that have passed the same rows of the other label.

    ``powers`` are, by cell and run, the sums of powers 0, 1, 2 and 4 of the weights of negatives
    and of positives; ``starts`` are those of the strata among the runs.
    """

    powers: tuple[tuple[csr_array, csr_array], ...]
    starts: NDArray[np.intp]
    is_weighted: bool

    @classmethod
    def of(cls, rows: Sample) -> _ScoreRuns:
        """Sort the rows, and add up their weights."""
        from scipy.sparse import csr_array

        rows = rows.take(order_by([rows.stratum, rows.contributions[:, 1]]))
        positive, score = rows.contributions[:, 0] > 0, rows.contributions[:, 1]
        tie = run_numbers(run_starts(rows.stratum, score), len(score))
        n_positives = np.bincount(tie, positive)
        has_both = (n_positives > 0) & (n_positives < np.bincount(tie))
        starts = run_starts(rows.stratum, np.where(has_both[tie], tie + 2, positive))
        run, shape = run_numbers(starts, len(score)), (rows.n_groups, len(starts))
        powers = []
        for power in (0, 1, 2, 4):
            each = rows.count * rows.weight_of_each() ** power
            both = (
                csr_array((each * one, (rows.group, run)), shape) for one in (~positive, positive)
            )
            powers.append(tuple(both))
        first = np.searchsorted(rows.stratum[starts], np.arange(rows.n_strata))
        return cls(tuple(powers), first, rows.weight is not None)

    def have_few(self, members: csr_array) -> NDArray[np.bool_]:
        """Return which candidates, or their rests, have few influential rows or may have.

        In a stratum with one row of each label, influences are those between strata.
        """
        mine = np.array([[(members @ one).toarray() for one in both] for both in self.powers])
        whole = np.array([[one.sum(axis=0) for one in both] for both in self.powers])
        sides = np.stack([mine, whole[:, :, None] - mine])
        labels = np.add.reduceat(
            sides[:, 0], self.starts, axis=-1
        )  # side, label, candidate, stratum
        with np.errstate(divide="ignore", invalid="ignore"):
            share = 1 / (1 / labels.sum(axis=1)).sum(axis=0)
            share /= share.sum(axis=-1, keepdims=True)
            effective = [self._count_effective(side, share) for side in sides]
        few = np.asarray(~(np.array(effective) >= MIN_INFLUENTIAL_ROWS).all(axis=0))
        if len(self.starts) > 1:
            few |= (labels == 1).all(axis=1).any(axis=(0, -1))
        return few

    def _count_effective(self, powers: Array, share: Array) -> Array:
        """Return the effective number of rows of each candidate, from sums by power and label.

        With weights it is at most that of the weights of each label, as in a single test.
        """
        squares, fourths = np.zeros((2, len(share)))
        limits = np.zeros((2, 2, len(share)))
        strata = itertools.pairwise([*self.starts.tolist(), powers.shape[-1]])
        for s, (start, stop) in enumerate(strata):
            _, first, second, fourth = powers[..., start:stop]
            parts = Components(first[1], first[0])
            for label, component in enumerate((parts.of_negatives, parts.of_positives)):
                apart = drop_rounding(component - parts.value()[:, None]) ** 2
                scale = (share[:, s] / first[label].sum(axis=-1)) ** 2
                v = scale * second[label].sum(axis=-1)
                limits[:, label] += np.nan_to_num([v, v * (v / share[:, s]) ** 2])
                squares += np.nan_to_num(scale * (second[label] * apart).sum(axis=-1))
                fourths += np.nan_to_num(scale**2 * (fourth[label] * apart**2).sum(axis=-1))
        effective: Array = squares**2 / fourths
        if self.is_weighted:
            effective = np.fmin(effective, (limits[0] ** 2 / limits[1]).min(axis=0))
        return effective
