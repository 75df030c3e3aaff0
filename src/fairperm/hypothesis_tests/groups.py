"""The design of two groups: the studentized gap, and the gaps of permuted group labels."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import streams
from fairperm._utils.arrays import Array
from fairperm.engines.estimates import (
    Estimates,
    Gaps,
    is_contrast,
    join_gaps,
    largest_ties,
    unbiased,
    variance_of_defined,
)
from fairperm.engines.resampling.shared_labels import PermutationRequest
from fairperm.hypothesis_tests import cautions
from fairperm.hypothesis_tests.base_rows import base_sizes
from fairperm.hypothesis_tests.comparison import Comparison, observe
from fairperm.hypothesis_tests.comparison_checks import (
    check_strata,
    check_values,
    note_reversed_scores,
)
from fairperm.hypothesis_tests.margins.restricted_rates import F1Scores, Rates, WeightedStrata
from fairperm.hypothesis_tests.rates import RateTest
from fairperm.hypothesis_tests.reaches import ErrorReach, StrataReach, WilsonReach
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.run import Observed, PermutationTest, run
from fairperm.hypothesis_tests.small_groups import InfluentialRows
from fairperm.inference.null import (
    TIE,
    nearer_to_null,
    note_undefined,
    share_of_a_labelling,
    tie_tolerance,
)
from fairperm.inference.reference import NormalLimit
from fairperm.inference.stopping import min_draws_for
from fairperm.metrics.definition import Scheme, Variance, metrics_of_totals

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from fairperm.data.sample import Sample
    from fairperm.engines.choice import Engine
    from fairperm.engines.resampling.blocks import Stop
    from fairperm.hypothesis_tests.plan import Options, Plan
    from fairperm.hypothesis_tests.run import Reach, Tested
    from fairperm.inference.errors_by_gap import GapVariance
    from fairperm.inference.null import Null

_MAX_BIAS_IN_SE = 0.25
_Z_CLEARLY_BIASED = 4.0
_MIN_DRAWS_FOR_SE = 20


def compare(
    table: Sample, plan: Plan, groups: tuple[Hashable, ...], options: Options
) -> PermutationTestResult:
    """Test the gap between two groups of a table."""
    test = make_test(table, plan, groups, options)
    (tested,) = run([test], options.resampling)
    return test.result(tested)


def make_test(
    table: Sample, plan: Plan, groups: tuple[Hashable, ...], options: Options
) -> RateTest | GapTest:
    """Return the test of two groups, before any permutation; a plain rate needs none."""
    if plan.scheme == Scheme.UNCONDITIONAL and not options.is_limit:
        return RateTest.of(table, plan, groups, options)
    return GapTest.of(table, plan, groups, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class GapTest(PermutationTest[Gaps]):
    """The studentized gap of two groups, before its permutations.

    ``sample`` has the fields of the result that do not depend on them, ``effective`` the effective
    number of rows behind each part's variance in each group.
    """

    observed: Observed
    plan: Plan
    comparison: Comparison
    engine: Engine
    effective: Array
    scale: Array
    error: Array
    has_few_rows: bool
    is_limit: bool
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls, table: Sample, plan: Plan, groups: tuple[Hashable, ...], options: Options
    ) -> GapTest:
        """Studentize the observed gap. Raises UndefinedMetricError without a standard error."""
        comparison = Comparison.of(table, plan, groups, options.stratum_weights)

        def count(observed: Estimates) -> InfluentialRows:
            return InfluentialRows.count(comparison, plan, observed, limit=options.is_limit)

        return cls.of_comparison(comparison, count, plan, table, options)

    @classmethod
    def of_comparison(
        cls,
        comparison: Comparison,
        count_influential: Callable[[Estimates], InfluentialRows],
        plan: Plan,
        table: Sample,
        options: Options,
    ) -> GapTest:
        """Studentize the gap of a comparison of rows of this table."""
        if options.is_limit:
            plan.check_limit()
        groups = comparison.groups
        engine, estimates = observe(
            lambda: comparison.engine(plan.variance, options.n_bootstrap), options.resampling
        )
        influential = count_influential(estimates)
        estimates = influential.widen(estimates, engine.weights)
        weights, closed, free = engine.weights, plan.metric.closed_variance, estimates
        if plan.variance in {Variance.SCORE, None} and closed is not None:
            free = engine.with_variance(closed).observed()  # variances that do not pool the groups
        merged = comparison.merge_strata(free, closed)
        whole = comparison.whole
        check_values(whole, merged.value[:, 0, 0])
        notes = check_strata(comparison, estimates.value[:, 0], estimates.size[:, 0], weights)
        scale, bins = comparison.scale(estimates), comparison.binning_errors()

        gaps = _gaps(engine, plan, estimates).drop_rounding(scale)
        error = free.gaps(weights).standard_error[0]
        errors = np.sqrt(merged.variance[:, 0, 0])
        ties = np.zeros(errors.shape)
        if plan.is_bootstrapped_once or not (plan.variance or closed):
            error, errors, ties = _bootstrap_errors(engine, plan, free, options)
            if comparison.n_strata > 1:  # all strata together are not resampled as one
                errors = np.full_like(errors, np.nan)
        elif plan.variance == Variance.BOOTSTRAP:
            ties = _bootstrap_errors(engine.with_variance(None), plan, free, options)[2]
        variances = _mantel_haenszel_variances(engine, plan, estimates)
        if variances:
            pairs = zip(variances, gaps.difference[0], strict=True)
            error = np.array([variance.standard_error(gap) for variance, gap in pairs])
        if plan.is_bootstrapped_once:
            gaps = gaps.over(error)
        statistic = _check_statistic(gaps.studentized(scale)[0], comparison, plan, options)

        compared, binning_error = statistic, 0.0
        if bins is not None:
            if engine.draw_error > 0:  # draws are off by a share of the standard error
                bins = bins + engine.draw_error * error[0] / len(bins)
            binning_error = float(bins.sum())
            worst_case_gap = nearer_to_null(
                float(gaps.difference[0, 0]), binning_error, options.alternative
            )
            worst_case = replace(gaps, difference=np.array([[worst_case_gap]]))
            compared = float(worst_case.studentized(scale)[0])

        gap = gaps.difference[0]
        worst = int(np.abs(gap).argmax())
        has_strata = comparison.rows.n_strata > 1
        skewness = 0.0 if gaps.skewness is None else float(gaps.skewness[0, 0])
        observed = Observed(
            statistic=compared,
            alternative=options.alternative,
            ordering=plan.ordering(options.alternative, strata=has_strata),
            tolerance=tie_tolerance(statistic, scale, gaps.standard_error[0], skewness),
            estimate=float(gap[0] if len(gap) == 1 else abs(gap[worst])),
            level=options.confidence_level,
            min_draws=min_draws_for(options.confidence_level, slow=plan.is_slow),
            reach=_reach(plan, gap, error, variances, estimates, weights, binning_error, skewness),
            has_normal_floor=plan.has_normal_floor,
            has_normal_critical=plan.is_binomial,
            compared_values=_compared_values(comparison, closed),
            skewness=skewness,
            cumulants=_cumulants(estimates),
        )
        notes += [
            *influential.notes(),
            *note_reversed_scores(comparison, merged.value[:, 0, 0]),
            *cautions.note_outcomes_apart(comparison, options.alternative),
            *_note_zero_error(plan, error[worst]),
            *(cautions.note_ties(comparison, ties) if plan.variance and error[worst] else []),
            *comparison.note_bins(bins, error[:1]),
            *table.notes,
        ]
        sample = {
            "metric": plan.metric.name,
            "attribute": table.attribute,
            "groups": groups,
            "values": comparison.by_group(merged.value[:, 0, 0]),
            "counts": whole.totals(),
            "difference": observed.estimate,
            "part": None if len(gap) == 1 else comparison.parts[worst].name,
            "standard_error": float(error[worst]),
            "standard_errors": comparison.by_group(errors),
            "statistic": statistic,
            "scheme": plan.scheme.value,
            "variance": plan.variance_name,
            "n_strata": comparison.n_strata,
            "n_dropped": table.n_dropped,
            "seed": options.seed,
            "validity": plan.validity(strata=comparison.n_strata > 1, limit=options.is_limit),
            "gap_variance": _gap_variance(comparison, plan, estimates, variances, weights),
            "binning_errors": None if bins is None else comparison.by_group(bins[None]),
            "notes": tuple(notes),
        }
        return cls(
            observed=observed,
            plan=plan,
            comparison=comparison,
            engine=engine,
            effective=influential.effective,
            scale=scale,
            error=error,
            has_few_rows=any(influential.notes()),
            is_limit=options.is_limit,
            sample=sample,
        )

    def result(self, tested: Tested) -> PermutationTestResult:
        return tested.result(PermutationTestResult, **self.sample)

    def base_sizes(self) -> dict[str, list[float]]:
        return base_sizes(self.comparison)

    def known_reference(self) -> NormalLimit | None:
        return NormalLimit(self.smallest()) if self.is_limit else None

    def enumerated(self, most: int) -> tuple[Gaps, Array] | None:
        by_sum = self.plan.depends_on_sum and self.engine.weights is None
        found = self.engine.enumerated(most, by_sum=by_sum)
        if found is None:
            return None
        estimates, log_probability = found
        return _gaps(self.engine, self.plan, estimates), log_probability

    def request(self, stop: Stop[Gaps]) -> PermutationRequest[Gaps]:
        return PermutationRequest(
            self.engine,
            partial(_gaps, self.engine, self.plan),
            self.plan.metric.is_function,
            stop,
            self.engine.counts_per_draw,
        )

    def statistics(self, blocks: Sequence[Gaps], first: int | None) -> Array:
        """Return the studentized gaps; those of a function share the ``first`` ones' deviation."""
        permuted = join_gaps(blocks)
        if self.plan.is_bootstrapped_once:
            permuted = permuted.over(permuted.first(first).spread())
        return permuted.studentized(self.scale)

    def smallest(self) -> float:
        """Return the probability of one choice of the first group's rows or clusters."""
        rates, counts = self.sample["gap_variance"], self.comparison.totals().values()
        if rates is not None and rates.has_trials:
            return share_of_a_labelling(rates.first[1], rates.second[1])
        return share_of_a_labelling(*(one.get("clusters") or one["rows"] for one in counts))

    def notes(self, null: Null, blocks: Sequence[Gaps]) -> tuple[str, ...]:
        """Return notes on undefined permutations, and on small strata that bias a metric."""
        return (*note_undefined(null), *(self._note_bias(null, blocks) if blocks else ()))

    def _note_bias(self, null: Null, blocks: Sequence[Gaps]) -> list[str]:
        """Return a note if small strata bias a metric that is no mean: permuted gaps show it."""
        if len(self.error) > 1 or self.comparison.rows.n_strata == 1:
            return []
        gaps = join_gaps(blocks).difference[: len(null.statistic), 0]
        is_defined = ~np.isnan(gaps)
        gaps, centre_error = gaps[is_defined], 0.0
        if not len(gaps):
            return []
        if null.log_probability is not None:
            centre = float(np.average(gaps, weights=np.exp(null.log_probability[is_defined])))
        elif len(gaps) < _MIN_DRAWS_FOR_SE:
            return []
        else:
            centre, centre_error = float(gaps.mean()), float(gaps.std(ddof=1) / len(gaps) ** 0.5)
        doubt = max(_MAX_BIAS_IN_SE * self.error[0], _Z_CLEARLY_BIASED * centre_error)
        if not abs(centre) > doubt + TIE * self.scale[0]:
            return []
        few = self.has_few_rows
        return [cautions.note_bias_of_strata(self.plan, centre, has_few_rows=few)]


def _gaps(engine: Engine, plan: Plan, estimates: Estimates) -> Gaps:
    """Return the gaps; without a variance, over a standard error of 1."""
    gaps = estimates.gaps(engine.weights)
    has_errors = plan.variance is not None and not plan.is_bootstrapped_once
    return gaps if has_errors else gaps.over(np.ones(1))


def _bootstrap_errors(
    engine: Engine, plan: Plan, free: Estimates, options: Options
) -> tuple[Array, Array, Array]:
    """Return the bootstrap error of each part's gap, and of its value in each group.

    Then the share of bootstrap samples in which a group's value is the same. An error by which
    nothing is divided is only reported, and needs few samples.
    """
    resampling = options.bootstrap
    if plan.variance == Variance.BOOTSTRAP:
        resampling = replace(resampling, n_resamples=options.n_bootstrap)
    elif not plan.is_bootstrapped_once:
        few = min(resampling.n_resamples, options.n_bootstrap)
        resampling = replace(resampling, n_resamples=few)
    blocks = resampling.run_blocks(
        partial(_resampled, engine),
        streams.BOOTSTRAP,
        engine.block_size,
        through_joblib=plan.metric.is_function,
        counts=engine.counts_per_draw,
    )
    gaps, values, sides = zip(*blocks, strict=True)
    ties = largest_ties(np.moveaxis(np.concatenate(sides, axis=1), 1, -1)).max(axis=1)
    variance = variance_of_defined(np.concatenate(values, axis=-1))
    errors = np.sqrt(variance[:, 0])
    if variance.shape[1] == 1:
        return join_gaps(gaps).spread(), errors, ties
    size = free.size
    by_stratum = Estimates(free.value, unbiased(variance[:, None], size, size, size), size)
    return by_stratum.gaps(engine.weights).standard_error[0], errors, ties


def _resampled(engine: Engine, n: int, rng: np.random.Generator) -> tuple[Gaps, Array, Array]:
    """Return gaps, values (by part, stratum, group and draw) and sides of bootstrap samples."""
    estimates, weights = engine.bootstrapped(n, rng), engine.weights
    values = np.moveaxis(estimates.value, 1, -1)
    return estimates.gaps(weights), values, estimates.side_values(weights)


def _mantel_haenszel_variances(
    engine: Engine, plan: Plan, estimates: Estimates
) -> tuple[GapVariance, ...]:
    """Return the variance of each part's gap over strata, if all parts are plain rates."""
    parts = plan.metric.parts
    if engine.weights is None and plan.is_binomial and all(part.is_rate for part in parts):
        found = (estimates.mantel_haenszel_variances(part) for part in range(len(parts)))
        return tuple(itertools.chain.from_iterable(found))
    return ()


def _reach(
    plan: Plan,
    gap: Array,
    error: Array,
    variances: tuple[GapVariance, ...],
    estimates: Estimates,
    weights: Array | None,
    binning_error: float,
    skewness: float,
) -> Reach:
    """Return how far the interval of the gap goes."""
    span = max(part.span for part in plan.metric.parts) * (1 + is_contrast(weights))
    if plan.variance is None:
        return ErrorReach(gap, np.ones_like(error), span, binning_error)
    if variances:
        rates = metrics_of_totals(plan.metric.parts)
        return StrataReach(gap, variances, estimates, rates, span)
    if plan.is_binomial and (estimates.value.shape[2] == 1 or weights is not None):
        return WilsonReach(gap, estimates, metrics_of_totals(plan.metric.parts), weights, span)
    return ErrorReach(gap, error, span, binning_error, skewness)


def _cumulants(estimates: Estimates) -> tuple[float, float] | None:
    """Return the third cumulants of the groups' values; None in strata, or if they are unknown."""
    if estimates.third is None or estimates.third.shape[2] > 1:
        return None
    first, second = estimates.third[0, 0, 0].tolist()
    return first, second


def _gap_variance(
    comparison: Comparison,
    plan: Plan,
    estimates: Estimates,
    variances: tuple[GapVariance, ...],
    weights: Array | None,
) -> Rates | GapVariance | WeightedStrata | None:
    """Return what says the error of a rate's or F1's gap as a function of the true gap."""
    parts = metrics_of_totals(plan.metric.parts)
    if len(variances) == 1:
        return variances[0]
    if len(parts) != 1 or not plan.is_binomial:
        return None
    kind = Rates if parts[0].is_rate else F1Scores
    if comparison.rows.n_strata == 1:
        return Rates.of(*comparison.totals().values())
    if weights is None:
        return None
    used = weights > 0
    size = estimates.size[0, 0, used]
    hits = parts[0].rate_of(estimates.value[0, 0, used]) * size
    counts = np.stack([hits, size], axis=-1).tolist()  # by stratum and group
    strata = (kind(tuple(first), tuple(second)) for first, second in counts)
    return WeightedStrata(tuple((weights / weights.sum())[used].tolist()), tuple(strata))


def _compared_values(
    comparison: Comparison, variance: Variance | None
) -> tuple[float, float] | None:
    """Return a single metric's values in the strata that are compared; None if all are."""
    if comparison.every is None or len(comparison.parts) > 1:
        return None
    engine = replace(comparison, every=None).unstratified().engine(variance)
    first, second = engine.observed().value[0, 0, 0].tolist()
    return first, second


def _note_zero_error(plan: Plan, error: float) -> list[str]:
    """Return a note if the interval is made of a standard error of zero, unlike that of rates."""
    by_error = plan.variance is not None and not plan.is_binomial
    return [cautions.note_zero_error(plan.metric.name)] if by_error and error == 0 else []


def _check_statistic(
    statistic: float, comparison: Comparison, plan: Plan, options: Options
) -> float:
    """Return the observed statistic. Raises UndefinedMetricError if it cannot be compared.

    It is NaN if no bootstrap sample of a group is defined, and infinite over an error of zero.
    Permuted gaps over the deviation of all of them are never infinite, nor is a normal deviate;
    and in strata an error of zero means that there are too few rows, not that chance does nothing.
    """
    has_strata = comparison.rows.n_strata > 1
    needs_error = plan.is_bootstrapped_once or options.is_limit or has_strata
    is_lost = math.isinf(statistic) and needs_error
    if math.isnan(statistic) or is_lost:
        raise cautions.missing_error(comparison, plan)
    return float(statistic)
