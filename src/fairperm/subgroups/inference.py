"""P-values, simultaneous intervals and standard errors of all candidates of a search.

P-values and intervals are from the same permutations. Errors of candidates whose gaps rest on few
influential rows are wider, or these candidates are counted. As in single tests, only the observed
errors are widened: in permutations candidates hold mixed rows, whose variance is estimated well. So
p-values can only grow. Those of means of plain rows are not widened.

Influential rows are counted as in single tests, candidate by candidate, unless a bound shows that
there are enough: (Σψ²)²/Σψ⁴ is at least Σψ², the variance, over the largest ψ².
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.arrays import Array, Booleans
from fairperm.engines.estimates import Estimates
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.small_groups import (
    MIN_INFLUENTIAL_ROWS,
    InfluentialRows,
    effective_rows,
    widening_factor,
)
from fairperm.inference.bands import bands
from fairperm.inference.multiplicity import adjust_pvalues, max_t
from fairperm.inference.null import agree, normal_quantile
from fairperm.metrics.definition import is_of_totals, metrics_of_totals

if TYPE_CHECKING:
    from fairperm.data.sample import Sample
    from fairperm.metrics.definition import Metric
    from fairperm.subgroups.candidates import Candidates
    from fairperm.subgroups.sample import SearchedRows


@dataclass(frozen=True, slots=True)
class Judgement:
    """What permutations say of every candidate."""

    # by itself, and adjusted for all candidates; NaN for a candidate that is not tested
    pvalue: Array
    adjusted_pvalue: Array
    # the limits of simultaneous intervals of the gaps
    low: Array
    high: Array


def judge(
    sample: SearchedRows,
    observed: Estimates,
    scale: Array,
    permuted: Array,
    *,
    alternative: str,
    adjust: str | None,
    alpha: float,
) -> Judgement:
    """Compare the observed gaps with those of permutations (by draw and candidate)."""
    gaps = observed.gaps(None).drop_rounding(scale)
    gap, error = gaps.difference[:, 0], gaps.standard_error[:, 0]
    statistic = gaps.studentized(scale)
    skewness = None if gaps.skewness is None else gaps.skewness[:, 0]
    found = bands(
        permuted,
        statistic,
        error,
        scale,
        alpha,
        alternative,
        skewness,
        has_normal_floor=sample.plan.removes_skewness,
    )
    tested = found.joint  # the others are undefined in too many permutations
    adjusted = np.full(len(statistic), np.nan)
    if adjust == "maxt":
        with np.errstate(divide="ignore", invalid="ignore"):
            rounding = np.where(error > 0, scale[0] / error, 0.0)
        adjusted[tested] = max_t(
            statistic[tested], permuted[:, tested], rounding[tested], alternative
        )
        if sample.plan.removes_skewness:  # draws that hardly vary do not show how far chance goes
            adjusted[tested] = np.maximum(adjusted, found.pvalue)[tested]
    else:
        adjusted[tested] = adjust_pvalues(found.pvalue[tested], adjust)
    with np.errstate(divide="ignore", invalid="ignore"):
        below, above = (limit / error for limit in found.joint_band)
    reach = _reaches(sample, observed, gap, above, alpha)[0]
    low = np.maximum(gap - reach, -sample.metric.span)
    reach = _reaches(sample, observed, gap, -below, alpha)[1]
    high = np.minimum(gap + reach, sample.metric.span)
    if adjust == "maxt":
        ends = zip(low, high, adjusted, gap, strict=True)
        agreed = [agree((a, b), p, alternative, 1 - alpha, t) for a, b, p, t in ends]
        low, high = np.array(agreed).T
    return Judgement(found.pvalue, adjusted, low, high)


def _reaches(
    sample: SearchedRows, observed: Estimates, gap: Array, quantile: Array, alpha: float
) -> tuple[Array, Array]:
    """Return how far below and above its gap each interval extends for these quantiles."""
    # as for a single test: Newcombe's interval for rates and Mantel and Haenszel's in strata, with
    # quantiles that are at least normal, because permutations of rates may hardly vary
    bounded = np.where(np.isfinite(quantile), quantile, 0.0)
    has_strata = observed.value.shape[2] > 1
    if sample.plan.is_binomial:
        bounded = np.maximum(bounded, normal_quantile(1 - alpha))
    below = above = bounded * observed.gaps(None).standard_error[:, 0]
    if sample.plan.is_binomial and not has_strata:
        by_candidate = observed.each(lambda array: np.moveaxis(array, 0, 1))
        rates = metrics_of_totals([sample.metric]) * len(gap)
        below, above = by_candidate.rate_reaches(rates, bounded[:, None, None])
    elif sample.plan.is_binomial and sample.metric.is_rate:
        variances = observed.mantel_haenszel_variances(0)
        triples = zip(variances, gap, bounded, strict=True)
        low, high = np.array([one.interval(t, q) for one, t, q in triples]).T
        below, above = gap - low, high - gap
    infinite = ~np.isfinite(quantile)
    return np.where(infinite, np.inf, below), np.where(infinite, np.inf, above)


def widen_errors(
    sample: SearchedRows, candidates: Candidates, observed: Estimates
) -> tuple[Estimates, Booleans]:
    """Return the estimates with wider variances, and which candidates have them."""
    plan, is_wider = sample.plan, np.zeros(len(candidates), bool)
    of_totals = is_of_totals(sample.metric)
    if of_totals and not (plan.weighted or plan.clustered):
        return observed, is_wider
    variance = observed.variance.copy()
    for i in np.flatnonzero(_may_rest_on_few(sample, candidates, observed)).tolist():
        comparison = _compare_with_rest(sample, candidates, i)
        if of_totals:
            factor = widening_factor(effective_rows(comparison, rates=True))
            variance[:, i] *= factor[:, None]
            is_wider[i] = (factor > 1).any()
        else:
            one = observed.each(lambda array, i=i: array[:, [i]])  # type: ignore[misc]
            influential = InfluentialRows.count(comparison, plan, one)
            variance[:, [i]] = influential.widen(one, None).variance
            is_wider[i] = influential.widens
    return replace(observed, variance=variance), is_wider


def rest_on_few(sample: SearchedRows, candidates: Candidates, observed: Estimates) -> Booleans:
    """Return the candidates whose means of plain rows rest on few influential rows.

    As in a single test, which notes it: rates are not counted.
    """
    plan, part, few = sample.plan, sample.metric, np.zeros(len(candidates), bool)
    if not is_of_totals(part) or part.has_denominator or plan.weighted or plan.clustered:
        return few
    for i in np.flatnonzero(_may_rest_on_few(sample, candidates, observed)).tolist():
        effective = effective_rows(_compare_with_rest(sample, candidates, i))
        few[i] = (effective < MIN_INFLUENTIAL_ROWS).any()
    return few


def _may_rest_on_few(sample: SearchedRows, candidates: Candidates, observed: Estimates) -> Booleans:
    """Return the candidates whose influential rows must be counted one by one."""
    part, units = sample.metric, sample.units
    if units.n_strata > 1:
        return np.ones(len(candidates), bool)
    if is_of_totals(part):
        squares, largest = observed.variance, _bound_influences(part, units, candidates)
    elif units.weight is None and units.cluster is None:
        # A component differs from the AUC by no more than the AUC, or one minus it. Squares of
        # the n rows of a label add up to 1 − 1/n of their part in DeLong's variance.
        by_label = np.stack([*part.base_rows(units.contributions).values()]) * units.count
        of_cell = np.stack([np.bincount(units.group, one, units.n_groups) for one in by_label])
        mine = (candidates.members @ of_cell.T).T
        n = np.stack([mine, of_cell.sum(axis=1)[:, None] - mine], axis=-1).min(axis=0)
        squares, largest = observed.variance * (1 - 1 / n)[:, None], observed.value[0, :, 0]
        largest = np.maximum(largest, 1 - largest) / n
    else:
        return np.ones(len(candidates), bool)
    enough = squares[0, :, 0] >= MIN_INFLUENTIAL_ROWS * largest**2
    return np.asarray(~enough.all(axis=1))


def _bound_influences(part: Metric, units: Sample, candidates: Candidates) -> Array:
    """Return what no influence exceeds in size, by candidate and side.

    A row's influence is the sum of its contributions times their slopes, each between its values at
    the smallest and the largest contribution of the cells: so millions of rows need not be read for
    each candidate.
    """
    u = units.contributions
    totals = np.zeros((units.n_groups, u.shape[1]))
    np.add.at(totals, units.group, units.count[:, None] * u)
    lowest, highest = np.full_like(totals, np.inf), np.full_like(totals, -np.inf)
    np.minimum.at(lowest, units.group, u)
    np.maximum.at(highest, units.group, u)
    largest = np.empty((len(candidates), 2))
    for i in range(len(candidates)):
        mine = np.zeros(units.n_groups, bool)
        mine[candidates.members[[i]].indices] = True
        for side, cells in enumerate((mine, ~mine)):
            largest[i, side] = part.bound_influences(
                totals[cells].sum(axis=0), lowest[cells].min(axis=0), highest[cells].max(axis=0)
            )
    return largest


def _compare_with_rest(sample: SearchedRows, candidates: Candidates, place: int) -> Comparison:
    """Return the comparison of a candidate with all other units."""
    units = sample.units
    outside = np.ones(units.n_groups, np.uint8)
    outside[candidates.members[[place]].indices] = 0
    rows = replace(units, group=outside[units.group], groups=("subgroup", "rest"))
    return Comparison(sample.plan.metric, rows, None)
