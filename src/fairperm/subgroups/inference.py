"""P-values, simultaneous intervals and standard errors of all candidates of a search.

P-values and intervals are from the same permutations. As in single tests of ranks, only observed
errors are widened, so p-values can only grow: with weights or clusters they are the jackknife's.
Those of means of plain rows are not, and the candidates found that rest on few rows are counted.

Influential rows are counted candidate by candidate, unless a bound shows that there are enough:
(Σψ²)²/Σψ⁴ is at least Σψ², the variance, over the largest ψ².
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.arrays import Array, Booleans
from fairperm.engines.estimates import Estimates
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.small_groups import MIN_INFLUENTIAL_ROWS, InfluentialRows
from fairperm.inference.bands import bands
from fairperm.inference.multiplicity import adjust_pvalues, max_t
from fairperm.inference.null import agree, normal_quantile
from fairperm.metrics.definition import is_of_totals, metrics_of_totals

if TYPE_CHECKING:
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
        has_normal_floor=sample.plan.has_normal_floor,
    )
    tested = found.joint  # the others are undefined in too many permutations
    adjusted = np.full(len(statistic), np.nan)
    if adjust == "maxt":
        with np.errstate(divide="ignore", invalid="ignore"):
            rounding = np.where(error > 0, scale[0] / error, 0.0)
        adjusted[tested] = max_t(
            statistic[tested], permuted[:, tested], rounding[tested], alternative
        )
        if sample.plan.has_normal_floor:  # draws that hardly vary do not show how far chance goes
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


def is_widened(sample: SearchedRows) -> bool:
    """Whether errors of candidates may be widened: those of ranks, weights and clusters."""
    return sample.metric.is_rank or sample.plan.weighted or sample.plan.clustered


def widen_errors(
    sample: SearchedRows, candidates: Candidates, observed: Estimates
) -> tuple[Estimates, Booleans]:
    """Return the estimates with wider variances, and which candidates rest on few units."""
    variance, few = observed.variance.copy(), np.zeros(len(candidates), bool)
    for i in np.flatnonzero(_may_rest_on_few(sample, candidates, observed)).tolist():
        one = observed.each(lambda array, i=i: array[:, [i]])  # type: ignore[misc]
        comparison = _compare_with_rest(sample, candidates, i)
        found = InfluentialRows.count(comparison, sample.plan, one, linear=True)
        variance[:, [i]] = found.widen(one, None).variance
        few[i] = (found.effective < found.enough).any()
    return replace(observed, variance=variance), few


def _may_rest_on_few(sample: SearchedRows, candidates: Candidates, observed: Estimates) -> Booleans:
    """Return the candidates whose influential rows must be counted one by one."""
    part, plan, units = sample.metric, sample.plan, sample.units
    if plan.weighted or plan.clustered or units.n_strata > 1 or is_of_totals(part):
        return np.full(len(candidates), plan.weighted or plan.clustered or not part.has_denominator)
    # A component differs from the AUC by no more than the AUC, or one minus it. Squares of
    # the n rows of a label add up to 1 − 1/n of their part in DeLong's variance.
    by_label = np.stack([*part.base_rows(units.contributions).values()]) * units.count
    of_cell = np.stack([np.bincount(units.group, one, units.n_groups) for one in by_label])
    mine = (candidates.members @ of_cell.T).T
    n = np.stack([mine, of_cell.sum(axis=1)[:, None] - mine], axis=-1).min(axis=0)
    squares, largest = observed.variance[0, :, 0] * (1 - 1 / n), observed.value[0, :, 0]
    largest = np.maximum(largest, 1 - largest) / n
    return np.asarray(~(squares >= MIN_INFLUENTIAL_ROWS * largest**2).all(axis=1))


def _compare_with_rest(sample: SearchedRows, candidates: Candidates, place: int) -> Comparison:
    """Return the comparison of a candidate with all other units."""
    units = sample.units
    outside = np.ones(units.n_groups, np.uint8)
    outside[candidates.members[[place]].indices] = 0
    rows = replace(units, group=outside[units.group], groups=("subgroup", "rest"))
    return Comparison(sample.plan.metric, rows, None)
