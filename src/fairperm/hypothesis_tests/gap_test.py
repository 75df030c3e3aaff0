"""The paper's algorithm: the studentized gap of two groups against its permutations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils import streams
from fairperm._utils.progress import waiting
from fairperm.engines.choice import counts_in_a_draw
from fairperm.engines.estimates import concatenate, variance_of_defined
from fairperm.engines.resampling.shared_labels import Asked, permute
from fairperm.hypothesis_tests import small_groups
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.inference.intervals import gap_interval, normal_quantile
from fairperm.inference.null import (
    Null,
    extreme,
    many_undefined,
    normal_limit,
    normal_pvalue,
    pvalue,
    tie_tolerance,
)
from fairperm.metrics.definition import metrics_of_totals
from fairperm.metrics.variances import Variance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairperm.data.table import Table
    from fairperm.engines.choice import PairEngine
    from fairperm.engines.estimates import Estimates, Gaps
    from fairperm.engines.resampling import blocks
    from fairperm.hypothesis_tests.plan import Plan

    Array = NDArray[np.float64]


def compare(
    table: Table,
    plan: Plan,
    *,
    groups: object = None,
    stratum_weights: object = None,
    alternative: str = "two-sided",
    resampling: blocks.Resampling,
    n_bootstrap: int = 500,
    confidence_level: float = 0.95,
) -> PermutationTestResult:
    """Test the gap in a table of distinct rows, wherever it came from: the paper's algorithm."""
    test = GapTest.of(
        table,
        plan,
        groups=groups,
        stratum_weights=stratum_weights,
        alternative=alternative,
        resampling=resampling,
        n_bootstrap=n_bootstrap,
        confidence_level=confidence_level,
    )
    (null,) = null_distributions([test], resampling)
    return test.result(null)


@dataclass(frozen=True, slots=True, kw_only=True)
class GapTest:
    """The studentized gap of the sample, before its permutations.

    ``known`` holds all of the result that they have no part in, and makes it from the rest.
    """

    plan: Plan
    engine: PairEngine
    estimates: Estimates
    gap: Array
    error: Array
    scale: Array
    statistic: float
    tolerance: float
    alternative: str
    confidence_level: float
    notes: tuple[str, ...]
    known: Callable[..., PermutationTestResult]

    @classmethod
    def of(
        cls,
        table: Table,
        plan: Plan,
        *,
        groups: object,
        stratum_weights: object,
        alternative: str,
        resampling: blocks.Resampling,
        n_bootstrap: int,
        confidence_level: float,
    ) -> GapTest:
        """Divide the gap by its error; say so if there is none."""
        drawn = resampling.n_resamples > 0
        if not drawn:
            plan.check_limit()
        pair = table.choose_groups(groups)
        comparison = Comparison.of(table, plan, pair, stratum_weights)
        with waiting("preparing (the first time on a machine, compiling)", resampling.progress):
            engine = comparison.engine(plan.variance, n_bootstrap)
            estimates = engine.observed(streams.stream(resampling.seed, streams.OBSERVED))
        free = _free_of_null(engine, plan, estimates)
        alone = comparison.together(free, plan.metric.closed_variance)
        values = comparison.values(alone)
        notes = comparison.check_strata(estimates, engine.weights)
        observed = _gaps(engine, plan, estimates)
        error, errors = _errors(engine, plan, free, alone, resampling)
        if plan.is_bootstrapped_once:
            observed = observed.over(error)
        scale = comparison.scale(estimates)
        statistic = _defined(observed.studentized(scale)[0], comparison, plan, drawn=drawn)

        gap, bins = observed.difference[0], comparison.binning_errors()
        worst = int(np.abs(gap).argmax())
        return cls(
            plan=plan,
            engine=engine,
            estimates=estimates,
            gap=gap,
            error=error,
            scale=scale,
            statistic=statistic,
            tolerance=tie_tolerance(statistic, scale, observed.standard_error[0]),
            alternative=alternative,
            confidence_level=confidence_level,
            notes=(
                *notes,
                *small_groups.notes(comparison, plan, limit=not drawn),
                *_without_width(plan, error[worst]),
                *comparison.binned(bins, error[:1]),
                *table.notes,
            ),
            known=partial(
                PermutationTestResult,
                metric=plan.metric.name,
                groups=pair,
                values=values,
                counts=comparison.totals(),
                difference=float(gap[0] if len(gap) == 1 else abs(gap[worst])),
                standard_error=float(error[worst]),
                standard_errors=comparison.by_group(errors),
                confidence_level=confidence_level,
                statistic=statistic,
                alternative=alternative,
                n_strata=comparison.rows.n_strata,
                n_dropped=table.n_dropped,
                seed=resampling.seed,
                validity=plan.validity(strata=comparison.rows.n_strata > 1, limit=not drawn),
                binning_errors=None if bins is None else comparison.by_group(bins[None]),
                scheme=plan.scheme.value,
                variance=plan.variance_name,
            ),
        )

    def result(self, null: Null | None) -> PermutationTestResult:
        """Compare the gap with its permutations; without any, with their normal limit."""
        limit = null is None
        null = normal_limit() if null is None else null
        is_extreme = extreme(null.statistic, self.statistic, self.alternative, self.tolerance)
        p = normal_pvalue(self.statistic, self.alternative)
        if not limit:
            p = pvalue(null, is_extreme, self.confidence_level)
        # of rates, permutations may hardly vary: what is not known then is left to the normal one
        is_normal = self.plan.is_binomial or limit
        normal = normal_quantile(self.confidence_level, self.alternative)
        least = max(0.0, normal) if is_normal else 0.0
        probability = null.log_probability
        return self.known(
            confidence_interval=gap_interval(
                null,
                self.gap,
                lambda quantile: self._reaches(max(quantile, least)),
                self.alternative,
                self.confidence_level,
                max(part.span for part in self.plan.metric.parts),
            ),
            pvalue=p.value,
            pvalue_interval=p.interval,
            pvalue_interval_wilson=p.wilson_interval,
            n_resamples=0 if limit else len(null.statistic),
            n_undefined=int(null.undefined.sum()),
            notes=(*self.notes, *many_undefined(null)),
            exact=not limit and probability is not None,
            null_distribution=null.statistic,
            null_probabilities=None if probability is None else np.exp(probability),
        )

    def null(self, permuted: Gaps, log_probability: Array | None = None) -> Null:
        """Return the studentized gaps of permutations."""
        if self.plan.is_bootstrapped_once:
            permuted = permuted.over(permuted.spread())
        return Null(permuted.studentized(self.scale), log_probability)

    def enumerated(self, resampling: blocks.Resampling) -> Null | None:
        """Return every permutation with its log-probability, if they are few enough."""
        by_sum = self.plan.depends_on_sum and self.engine.weights is None
        rng = streams.stream(resampling.seed, streams.PERMUTATIONS)
        every = self.engine.enumerated(resampling.n_resamples, by_sum=by_sum, rng=rng)
        return every and self.null(_gaps(self.engine, self.plan, every[0]), every[1])

    def _reaches(self, quantile: float) -> tuple[Array, Array]:
        """Return how far below and above the gap the interval goes for this quantile."""
        if self.plan.variance is None:
            return np.full_like(self.error, quantile), np.full_like(self.error, quantile)
        if self.plan.is_binomial:
            rates = metrics_of_totals(self.plan.metric.parts)
            return self.estimates.rate_reaches(rates, self.engine.weights, quantile)
        return quantile * self.error, quantile * self.error


def null_distributions(
    tests: Sequence[GapTest], resampling: blocks.Resampling
) -> list[Null | None]:
    """Return every permutation of each test, or random ones; None if none are asked for."""
    if resampling.n_resamples == 0:
        return [None for _ in tests]
    nulls = [test.enumerated(resampling) for test in tests]
    random = [place for place, null in enumerate(nulls) if null is None]
    blocks = permute([_asked(tests[place]) for place in random], resampling)
    for place, gaps in zip(random, blocks, strict=True):
        nulls[place] = tests[place].null(concatenate(gaps))
    return nulls


def _asked(test: GapTest) -> Asked[Gaps]:
    kept = partial(_gaps, test.engine, test.plan)
    return Asked(test.engine, kept, test.plan.metric.is_function, counts_in_a_draw(test.engine))


def _gaps(engine: PairEngine, plan: Plan, estimates: Estimates) -> Gaps:
    """Return the gaps in the user's order of the groups, over an error of one if asked for none."""
    gaps = estimates.gaps(engine.weights)
    has_errors = plan.variance is not None and not plan.is_bootstrapped_once
    return gaps if has_errors else gaps.over(np.ones(1))


def _free_of_null(engine: PairEngine, plan: Plan, estimates: Estimates) -> Estimates:
    """Return the sample's estimates with variances that do not pool the groups."""
    if plan.variance in {Variance.SCORE, None} and plan.metric.closed_variance is not None:
        return engine.with_variance(plan.metric.closed_variance).observed(
            streams.stream(0, streams.OBSERVED)
        )
    return estimates


def _errors(
    engine: PairEngine, plan: Plan, free: Estimates, alone: Estimates, resampling: blocks.Resampling
) -> tuple[Array, Array]:
    """Return the error of each part's gap, and of its value in each group."""
    gap, by_group = free.gaps(engine.weights).standard_error[0], np.sqrt(alone.variance[:, 0, 0])
    if plan.is_bootstrapped_once or plan.variance is plan.metric.closed_variance is None:
        blocks = resampling.in_blocks(
            partial(_resampled, engine),
            streams.BOOTSTRAP,
            engine.block_size,
            through_joblib=plan.metric.is_function,
            counts=counts_in_a_draw(engine),
        )
        gaps, values = zip(*blocks, strict=True)
        gap = concatenate(gaps).spread()
        by_group = np.sqrt(variance_of_defined(np.concatenate(values, axis=-1)))
    return gap, by_group


def _resampled(engine: PairEngine, n: int, rng: np.random.Generator) -> tuple[Gaps, Array]:
    """Return gaps and values (by part, group and draw) of bootstrap samples.

    With strata there are no values: the groups of all strata together are not resampled as one.
    """
    estimates = engine.bootstrapped(n, rng)
    values = np.moveaxis(estimates.value[:, :, 0], 1, -1)
    if estimates.value.shape[2] > 1:
        values = np.full_like(values, np.nan)
    return estimates.gaps(engine.weights), values


def _without_width(plan: Plan, error: float) -> list[str]:
    """Return a note if the interval is made of an error of zero; those of rates have others."""
    by_error = plan.variance is not None and not plan.is_binomial
    return [small_groups.no_error(plan.metric.name)] if by_error and error == 0 else []


def _defined(statistic: float, comparison: Comparison, plan: Plan, *, drawn: bool) -> float:
    """Return the observed statistic, if there is one that permuted ones can be compared with.

    It is NaN if no bootstrap sample of a group is defined. Over an error of zero it is infinite;
    permuted gaps over the deviation of all of them never are, and nor is a normal deviate.
    """
    lost = math.isinf(statistic) and (plan.is_bootstrapped_once or not drawn)
    if math.isnan(statistic) or lost:
        raise small_groups.without_error(comparison, plan)
    return float(statistic)
