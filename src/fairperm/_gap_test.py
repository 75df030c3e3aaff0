"""The paper's algorithm: the studentized gap of two groups against its permutations."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairperm import _draws as draws
from fairperm import _small_groups as small_groups
from fairperm._callable import CallableMetric
from fairperm._comparison import Comparison
from fairperm._estimates import concatenate, variance_of_defined
from fairperm._inference import (
    Null,
    extreme,
    gap_interval,
    many_undefined,
    normal_limit,
    normal_pvalue,
    normal_quantile,
    pvalue,
    tie_tolerance,
)
from fairperm._progress import waiting
from fairperm.results import PermutationTestResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm._engines import Engine
    from fairperm._estimates import Estimates, Gaps
    from fairperm._plan import Plan
    from fairperm._sample import Table

    Array = NDArray[np.float64]


def compare(
    table: Table,
    plan: Plan,
    *,
    groups: object = None,
    stratum_weights: object = None,
    alternative: str = "two-sided",
    resampling: draws.Resampling,
    n_bootstrap: int = 500,
    confidence_level: float = 0.95,
) -> PermutationTestResult:
    """Test the gap in a table of distinct rows, wherever it came from: the paper's algorithm."""
    drawn = resampling.n_resamples > 0
    if not drawn:
        plan.check_limit()
    pair = table.choose_groups(groups)
    comparison = Comparison.of(table, plan, pair, stratum_weights)
    with waiting("preparing (the first time on a machine, compiling)", resampling.progress):
        engine = comparison.engine(plan.variance, n_bootstrap)
        estimates = engine.observed(draws.stream(resampling.seed, draws.OBSERVED))
    free = _free_of_null(engine, plan, estimates)
    alone = comparison.together(free.in_order(swapped=engine.swapped), plan.own_variance)
    values = comparison.values(alone)
    notes = comparison.check_strata(estimates, engine.weights)
    observed = _gaps(engine, plan, estimates)
    error, errors = _errors(engine, plan, free, alone, resampling)
    if plan.variance == "fast_bootstrap":
        observed = observed.over(error)

    scale = comparison.scale(estimates)
    null = _null(engine, plan, resampling, scale) if drawn else normal_limit()
    studentized = _defined(observed.studentized(scale)[0], comparison, plan, drawn=drawn)
    tolerance = tie_tolerance(studentized, scale, observed.standard_error[0])
    is_extreme = extreme(null.statistic, studentized, alternative, tolerance)
    p = normal_pvalue(studentized, alternative)
    if drawn:
        p = pvalue(null, is_extreme, confidence_level)

    bins = comparison.binning_errors()
    gap = observed.difference[0]
    worst = int(np.abs(gap).argmax())
    # of rates, permutations may hardly vary: what is not known then is left to the normal quantile
    is_normal = plan.variance in {"score", "wald"} or not drawn
    least = normal_quantile(confidence_level, alternative) if is_normal else 0.0
    return PermutationTestResult(
        metric=plan.metric.name,
        groups=pair,
        values=values,
        counts=comparison.totals(),
        difference=float(gap[0] if len(gap) == 1 else abs(gap[worst])),
        standard_error=float(error[worst]),
        standard_errors=comparison.by_group(errors),
        confidence_interval=gap_interval(
            null,
            gap,
            lambda quantile: _reaches(engine, plan, estimates, error, max(quantile, least)),
            alternative,
            confidence_level,
            max(part.span for part in plan.metric.parts),
        ),
        confidence_level=confidence_level,
        statistic=studentized,
        pvalue=p.value,
        pvalue_interval=p.interval,
        pvalue_interval_wilson=p.wilson_interval,
        alternative=alternative,
        n_resamples=len(null.statistic) if drawn else 0,
        n_undefined=int(null.undefined.sum()),
        n_strata=comparison.rows.n_strata,
        n_dropped=table.n_dropped,
        seed=resampling.seed,
        validity=plan.validity(strata=comparison.rows.n_strata > 1, limit=not drawn),
        notes=(
            *notes,
            *small_groups.notes(comparison, plan, limit=not drawn),
            *_without_width(plan, error[worst]),
            *many_undefined(null),
            *comparison.binned(error[:1]),
            *table.notes,
        ),
        binning_errors=None if bins is None else comparison.by_group(bins[None]),
        scheme=plan.scheme,
        variance=plan.variance,
        exact=drawn and null.log_probability is not None,
        null_distribution=null.statistic,
        null_probabilities=None if null.log_probability is None else np.exp(null.log_probability),
    )


def _null(engine: Engine, plan: Plan, resampling: draws.Resampling, scale: Array) -> Null:
    """Return the studentized gaps of the permutations."""
    permuted, log_probability = _permutations(engine, plan, resampling)
    if plan.variance == "fast_bootstrap":
        permuted = permuted.over(permuted.spread())
    return Null(permuted.studentized(scale), log_probability)


def _gaps(engine: Engine, plan: Plan, estimates: Estimates) -> Gaps:
    """Return the gaps in the user's order of the groups, over an error of one if asked for none."""
    gaps = estimates.gaps(engine.weights).times(-1 if engine.swapped else 1)
    return gaps.over(np.ones(1)) if plan.variance in {None, "fast_bootstrap"} else gaps


def _permutations(
    engine: Engine, plan: Plan, resampling: draws.Resampling
) -> tuple[Gaps, Array | None]:
    """Return the gaps of every permutation with its log-probability, or of random ones."""
    by_sum = plan.depends_on_sum and engine.weights is None
    rng = draws.stream(resampling.seed, draws.PERMUTATIONS)
    every = engine.enumerated(resampling.n_resamples, by_sum=by_sum, rng=rng)
    if every is not None:
        return _gaps(engine, plan, every[0]), every[1]
    blocks = resampling.in_blocks(
        partial(_permuted_gaps, engine, plan),
        draws.PERMUTATIONS,
        engine.block_size,
        through_joblib=isinstance(plan.metric, CallableMetric),
    )
    return concatenate(blocks), None


def _permuted_gaps(engine: Engine, plan: Plan, n: int, rng: np.random.Generator) -> Gaps:
    return _gaps(engine, plan, engine.permuted(n, rng))


def _free_of_null(engine: Engine, plan: Plan, estimates: Estimates) -> Estimates:
    """Return the sample's estimates with variances that do not pool the groups."""
    if plan.variance in {"score", None} and plan.own_variance is not None:
        return engine.with_variance(plan.own_variance).observed(draws.stream(0, draws.OBSERVED))
    return estimates


def _errors(
    engine: Engine, plan: Plan, free: Estimates, alone: Estimates, resampling: draws.Resampling
) -> tuple[Array, Array]:
    """Return the error of each part's gap, and of its value in each group."""
    gap, by_group = free.gaps(engine.weights).standard_error[0], np.sqrt(alone.variance[:, 0, 0])
    if plan.variance == "fast_bootstrap" or plan.variance is plan.own_variance is None:
        blocks = resampling.in_blocks(
            partial(_resampled, engine),
            draws.BOOTSTRAP,
            engine.block_size,
            through_joblib=isinstance(plan.metric, CallableMetric),
        )
        gaps, values = zip(*blocks, strict=True)
        gap = concatenate(gaps).spread()
        by_group = np.sqrt(variance_of_defined(np.concatenate(values, axis=-1)))
    return gap, by_group


def _resampled(engine: Engine, n: int, rng: np.random.Generator) -> tuple[Gaps, Array]:
    """Return gaps and values (by part, group and draw) of bootstrap samples.

    With strata there are no values: the groups of all strata together are not resampled as one.
    """
    estimates = engine.bootstrapped(n, rng).in_order(swapped=engine.swapped)
    values = np.moveaxis(estimates.value[:, :, 0], 1, -1)
    if estimates.value.shape[2] > 1:
        values = np.full_like(values, np.nan)
    return estimates.gaps(engine.weights), values


def _reaches(
    engine: Engine, plan: Plan, estimates: Estimates, error: Array, quantile: float
) -> tuple[Array, Array]:
    """Return how far below and above the gap the interval goes for this quantile."""
    if plan.variance is None:
        return np.full_like(error, quantile), np.full_like(error, quantile)
    if plan.variance in {"score", "wald"}:
        below, above = estimates.rate_reaches(engine.weights, quantile)
        return (above, below) if engine.swapped else (below, above)
    return quantile * error, quantile * error


def _without_width(plan: Plan, error: float) -> list[str]:
    """Return a note if the interval is made of an error of zero; those of rates have others."""
    by_error = plan.variance not in {"score", "wald", None}
    return [small_groups.no_error(plan.metric.name)] if by_error and error == 0 else []


def _defined(statistic: float, comparison: Comparison, plan: Plan, *, drawn: bool) -> float:
    """Return the observed statistic, if there is one that permuted ones can be compared with.

    It is NaN if no bootstrap sample of a group is defined. Over an error of zero it is infinite;
    permuted gaps over the deviation of all of them never are, and nor is a normal deviate.
    """
    lost = math.isinf(statistic) and (plan.variance == "fast_bootstrap" or not drawn)
    if math.isnan(statistic) or lost:
        raise small_groups.without_error(comparison, plan)
    return float(statistic)
