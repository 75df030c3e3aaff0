"""P-values and simultaneous intervals of all candidates from the same permutations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.arrays import Array
from fairperm.engines.estimates import Estimates
from fairperm.inference.bands import bands
from fairperm.inference.multiplicity import adjust_pvalues, max_t
from fairperm.inference.null import agree, normal_quantile
from fairperm.metrics.definition import metrics_of_totals

if TYPE_CHECKING:
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
