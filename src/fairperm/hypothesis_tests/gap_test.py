"""The paper's algorithm: the studentized gap of two groups against its permutations."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import streams
from fairperm.engines.binned import BinnedEngine
from fairperm.engines.choice import counts_in_a_draw
from fairperm.engines.estimates import (
    Estimates,
    Gaps,
    is_contrast,
    join_gaps,
    unbiased,
    variance_of_defined,
)
from fairperm.engines.resampling.blocks import Stop
from fairperm.engines.resampling.shared_labels import PermutationRequest, permute
from fairperm.hypothesis_tests import small_groups
from fairperm.hypothesis_tests.comparison import Comparison, observe
from fairperm.hypothesis_tests.comparison_checks import (
    check_strata,
    check_values,
    note_reversed_scores,
)
from fairperm.hypothesis_tests.margins.restricted_rates import F1Scores, Rates, WeightedStrata
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.small_groups import InfluentialRows
from fairperm.inference.null import (
    TIE,
    Null,
    PValue,
    agree,
    gap_interval,
    nearer_to_null,
    normal_limit,
    normal_pvalue,
    normal_quantile,
    note_undefined,
    pvalue,
    tie_tolerance,
)
from fairperm.inference.stopping import StoppingRule, count_least
from fairperm.metrics.definition import Scheme, Variance, metrics_of_totals

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.data.reading import Table
    from fairperm.engines.choice import PairEngine
    from fairperm.engines.resampling.blocks import Resampling
    from fairperm.hypothesis_tests.plan import Options, Plan
    from fairperm.inference.mantel_haenszel import GapVariance

    Array = NDArray[np.float64]

_BIASED = 0.25  # of the standard error
_SURELY = 4.0  # standard errors of a mean of random draws
_KNOWN = 20  # draws, from which on they show their own standard error


def compare(
    table: Table, plan: Plan, groups: tuple[Hashable, ...], options: Options
) -> PermutationTestResult:
    """Test the gap between two groups of a table: the paper's algorithm."""
    test = GapTest.of(table, plan, groups, options)
    (null,) = null_distributions([test], options.resampling)
    return test.result(null)


@dataclass(frozen=True, slots=True)
class GapIntervals:
    """The intervals of a gap at all levels: they need its permutations, but no rows.

    Bins of scores may hide so much of the gap (``hidden``). Plain ``rates`` have intervals of
    their own, which invert the unconditional test.
    """

    plan: Plan
    alternative: str
    ordering: str
    null: Null
    gap: Array
    error: Array
    variances: tuple[GapVariance, ...]
    estimates: Estimates
    weights: Array | None
    hidden: float
    rates: Rates | None
    is_limit: bool

    def at(self, level: float) -> tuple[float, float]:
        """Return the interval at a confidence level."""
        if self.rates is not None:
            return self.rates.difference_interval(self.alternative, level)
        # permutations of rates may hardly vary: the interval is at least the normal one
        has_normal_bound = self.plan.is_binomial or self.is_limit
        least = max(0.0, normal_quantile(level, self.alternative)) if has_normal_bound else 0.0
        return gap_interval(
            self.null,
            self.gap,
            lambda quantile: self._reaches(max(quantile, least)),
            self.ordering,
            level,
            max(part.span for part in self.plan.metric.parts) * (1 + is_contrast(self.weights)),
        )

    def _reaches(self, quantile: float) -> tuple[Array, Array]:
        """Return how far below and above the gap the interval goes for this quantile."""
        if self.plan.variance is None:
            reach = np.full_like(self.error, quantile + self.hidden)
            return reach, reach
        if self.variances:
            pairs = zip(self.variances, self.gap, strict=True)
            ends = np.array([variance.interval(gap, quantile) for variance, gap in pairs])
            # where all rows of each stratum are alike, all strata together say how far chance goes
            is_alike = np.array([variance.at_zero == 0 for variance in self.variances])
            rates = metrics_of_totals(self.plan.metric.parts)
            below, above = self.estimates.merge_strata().rate_reaches(rates, quantile)
            return (
                np.where(is_alike, below, self.gap - ends[:, 0]),
                np.where(is_alike, above, ends[:, 1] - self.gap),
            )
        has_one_stratum = self.estimates.value.shape[2] == 1
        if self.plan.is_binomial and (has_one_stratum or self.weights is not None):
            rates = metrics_of_totals(self.plan.metric.parts)
            return self.estimates.rate_reaches(rates, quantile, self.weights)
        reach = np.where(np.isnan(self.error), math.inf, quantile * self.error + self.hidden)
        return reach, reach


@dataclass(frozen=True, slots=True, kw_only=True)
class GapTest:
    """The studentized gap of the sample, before its permutations.

    ``sample`` has the fields of the result that do not depend on them. Bins of scores may hide so
    much of the gap (``hidden``); what is left of the statistic then is ``compared`` with draws.
    """

    plan: Plan
    options: Options
    comparison: Comparison
    engine: PairEngine
    estimates: Estimates
    gap: Array
    error: Array
    variances: tuple[GapVariance, ...]
    scale: Array
    statistic: float
    compared: float
    hidden: float
    tolerance: float
    rates: Rates | None
    notes: tuple[str, ...]
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls, table: Table, plan: Plan, groups: tuple[Hashable, ...], options: Options
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
        table: Table,
        options: Options,
    ) -> GapTest:
        """Studentize the gap of a comparison of rows of this table."""
        if options.is_limit:
            plan.check_limit()
            small_groups.check_limit_rows(comparison, plan.metric)
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
        check_values(comparison, merged.value[:, 0, 0])
        notes = check_strata(comparison, estimates, weights)
        scale, bins = comparison.scale(estimates), comparison.binning_errors()

        gaps = _gaps(engine, plan, estimates)
        error = free.gaps(weights).standard_error[0]
        errors = np.sqrt(merged.variance[:, 0, 0])
        if plan.is_bootstrapped_once or not (plan.variance or closed):
            error, errors = _bootstrap_errors(engine, plan, free, options)
        variances = _mantel_haenszel_variances(engine, plan, estimates)
        if variances:
            pairs = zip(variances, gaps.difference[0], strict=True)
            error = np.array([variance.standard_error(gap) for variance, gap in pairs])
        if plan.is_bootstrapped_once:
            gaps = gaps.over(error)
        statistic = _check_statistic(gaps.studentized(scale)[0], comparison, plan, options)

        rates = None
        if plan.scheme == Scheme.UNCONDITIONAL and not options.is_limit:
            rates = Rates.of(*(comparison.totals()[group] for group in groups))
            statistic = rates.statistic
        compared, hidden = statistic, 0.0
        if bins is not None:
            if isinstance(engine, BinnedEngine):  # draws are off by a share of the standard error
                bins = bins + engine.error * error[0] / len(bins)
            hidden = float(bins.sum())
            least = nearer_to_null(float(gaps.difference[0, 0]), hidden, options.alternative)
            seen = Gaps(np.array([[least]]), gaps.standard_error)
            compared = float(seen.studentized(scale)[0])

        weighted = _weigh_strata(engine, plan, estimates)
        gap = gaps.difference[0]
        worst = int(np.abs(gap).argmax())
        notes += [
            *influential.notes(),
            *note_reversed_scores(comparison, merged.value[:, 0, 0]),
            *small_groups.note_outcomes_apart(comparison, options.alternative),
            *_note_zero_error(plan, error[worst]),
            *comparison.note_bins(bins, error[:1]),
            *table.notes,
        ]
        sample = {
            "metric": plan.metric.name,
            "attribute": table.attribute,
            "groups": groups,
            "values": comparison.by_group(merged.value[:, 0, 0]),
            "counts": comparison.totals(),
            "difference": float(gap[0] if len(gap) == 1 else abs(gap[worst])),
            "part": None if len(gap) == 1 else comparison.parts[worst].name,
            "standard_error": float(error[worst]),
            "standard_errors": comparison.by_group(errors),
            "statistic": statistic,
            "scheme": plan.scheme.value,
            "variance": plan.variance_name,
            "n_strata": comparison.rows.n_strata,
            "n_dropped": table.n_dropped,
            "validity": plan.validity(strata=comparison.rows.n_strata > 1, limit=options.is_limit),
            "gap_variance": variances[0] if len(variances) == 1 else weighted,
            "binning_errors": None if bins is None else comparison.by_group(bins[None]),
        }
        return cls(
            plan=plan,
            options=options,
            comparison=comparison,
            engine=engine,
            estimates=estimates,
            gap=gap,
            error=error,
            variances=variances,
            scale=scale,
            statistic=statistic,
            compared=compared,
            hidden=hidden,
            tolerance=tie_tolerance(statistic, scale, gaps.standard_error[0]),
            rates=rates,
            notes=tuple(notes),
            sample=sample,
        )

    def intervals(self, null: Null | None) -> GapIntervals:
        """Return the gap's intervals at all levels, from its permutations or the normal limit."""
        return GapIntervals(
            plan=self.plan,
            alternative=self.options.alternative,
            ordering=self._ordering(),
            null=normal_limit() if null is None else null,
            gap=self.gap,
            error=self.error,
            variances=self.variances,
            estimates=self.estimates,
            weights=self.engine.weights,
            hidden=self.hidden,
            rates=self.rates,
            is_limit=null is None,
        )

    def result(self, null: Null | None) -> PermutationTestResult:
        """Compare the gap with its permutations; without any, with their normal limit."""
        alternative, level = self.options.alternative, self.options.confidence_level
        intervals, rates = self.intervals(null), self.rates
        null = intervals.null
        n_resamples = len(null.statistic)
        if rates is not None:
            value = rates.binomials.pvalue(self.statistic, alternative)
            p = PValue(value, (value, value), (value, value))
            n_resamples = (rates.binomials.first + 1) * (rates.binomials.second + 1)
        elif intervals.is_limit:
            p, n_resamples = normal_pvalue(self.compared, alternative), 0
        else:
            p = pvalue(null, self.compared, intervals.ordering, self.tolerance, level)
        interval = intervals.at(level)
        if rates is None or level > 0.5:
            # the variance of permutations is not quite that of the interval; numbers are rounded
            interval = agree(interval, p.value, alternative, level, self.sample["difference"])
        probability = null.log_probability
        notes = () if rates is not None else (*note_undefined(null), *self._note_bias(null))
        return PermutationTestResult(
            **self.sample,
            alternative=alternative,
            ordering=intervals.ordering,
            confidence_level=level,
            confidence_interval=interval,
            pvalue=p.value,
            pvalue_interval=p.interval,
            pvalue_interval_wilson=p.wilson_interval,
            n_resamples=n_resamples,
            stopped_early=null.stopped_early,
            n_undefined=int(null.undefined.sum()),
            seed=self.options.seed,
            notes=(*self.notes, *notes),
            exact=n_resamples > 0 and probability is not None,
            null_distribution=null.statistic,
            null_probabilities=None if probability is None else np.exp(probability),
        )

    def request(self, resampling: Resampling) -> PermutationRequest[Gaps]:
        """Return what to permute, until the p-value is clear."""
        rule = self._stopping_rule(resampling)
        return PermutationRequest(
            self.engine,
            partial(_gaps, self.engine, self.plan),
            self.plan.metric.is_function,
            Stop(rule.least, lambda blocks: self._count(join_gaps(blocks), rule) is not None),
            counts_in_a_draw(self.engine),
        )

    def draw(self, permuted: Gaps, resampling: Resampling) -> Null:
        """Return the studentized gaps of random permutations, as many as the p-value needs."""
        if not resampling.stops_early:
            return self.null(permuted)
        n = self._count(permuted, self._stopping_rule(resampling))
        return replace(self.null(permuted.first(n)), stopped_early=n is not None)

    def _stopping_rule(self, resampling: Resampling) -> StoppingRule:
        least = count_least(self.options.confidence_level, slow=self.plan.is_slow)
        least = max(least, resampling.least or 0)
        return StoppingRule(self.compared, self._ordering(), self.tolerance, least)

    def _count(self, permuted: Gaps, rule: StoppingRule) -> int | None:
        """Return how many permutations the p-value needs; None if more than these.

        Permuted gaps that share a standard deviation are given that of the first ones, which does
        not change as drawing goes on.
        """
        if self.plan.is_bootstrapped_once:
            permuted = permuted.over(permuted.first(rule.least).spread())
        return rule.count(permuted.studentized(self.scale))

    def _ordering(self) -> str:
        has_strata = self.estimates.value.shape[2] > 1
        return self.plan.ordering(self.options.alternative, strata=has_strata)

    def null(self, permuted: Gaps, log_probability: Array | None = None) -> Null:
        """Return the studentized gaps of permutations."""
        if self.plan.is_bootstrapped_once:
            permuted = permuted.over(permuted.spread())
        is_defined = ~np.isnan(permuted.difference[:, 0])
        gaps, centre, centre_error = permuted.difference[is_defined, 0], 0.0, 0.0
        if len(gaps) and log_probability is not None:
            centre = float(np.average(gaps, weights=np.exp(log_probability[is_defined])))
        elif len(gaps):
            centre, centre_error = float(gaps.mean()), math.inf
            if len(gaps) >= _KNOWN:
                centre_error = float(gaps.std(ddof=1) / len(gaps) ** 0.5)
        return Null(permuted.studentized(self.scale), log_probability, centre, centre_error)

    def enumerate(self, resampling: Resampling) -> Null | None:
        """Return every permutation with its log-probability, if they are few enough.

        An unconditional test needs none: its distribution is that of two binomial samples.
        """
        if self.rates is not None:
            return self.rates.binomials.null()
        by_sum = self.plan.depends_on_sum and self.engine.weights is None
        found = self.engine.enumerated(resampling.n_resamples, by_sum=by_sum)
        if found is None:
            return None
        estimates, log_probability = found
        return self.null(_gaps(self.engine, self.plan, estimates), log_probability)

    def _note_bias(self, null: Null) -> list[str]:
        """Return a note if small strata bias a metric that is no mean: permuted gaps show it."""
        if len(self.gap) > 1 or self.estimates.value.shape[2] == 1:
            return []
        doubt = max(_BIASED * self.error[0], _SURELY * null.centre_error)
        if not abs(null.centre) > doubt + TIE * self.scale[0]:
            return []
        return [small_groups.note_bias_of_strata(self.plan.metric, null.centre)]


def null_distributions(tests: Sequence[GapTest], resampling: Resampling) -> list[Null | None]:
    """Return all permutations of each test, or random ones; None for the normal limit."""
    if resampling.n_resamples == 0:
        return [None for _ in tests]
    nulls = [test.enumerate(resampling) for test in tests]
    random = [place for place, null in enumerate(nulls) if null is None]
    if not random:
        return nulls
    blocks = permute([tests[place].request(resampling) for place in random], resampling)
    for place, gaps in zip(random, blocks, strict=True):
        nulls[place] = tests[place].draw(join_gaps(gaps), resampling)
    return nulls


def _gaps(engine: PairEngine, plan: Plan, estimates: Estimates) -> Gaps:
    """Return the gaps; without a variance, over a standard error of 1."""
    gaps = estimates.gaps(engine.weights)
    has_errors = plan.variance is not None and not plan.is_bootstrapped_once
    return gaps if has_errors else gaps.over(np.ones(1))


def _bootstrap_errors(
    engine: PairEngine, plan: Plan, free: Estimates, options: Options
) -> tuple[Array, Array]:
    """Return the bootstrap error of each part's gap, and of its value in each group.

    An error by which nothing is divided is only reported, and needs few samples.
    """
    resampling = options.bootstrap
    if not plan.is_bootstrapped_once:
        few = min(resampling.n_resamples, options.n_bootstrap)
        resampling = replace(resampling, n_resamples=few)
    blocks = resampling.run_blocks(
        partial(_resampled, engine),
        streams.BOOTSTRAP,
        engine.block_size,
        through_joblib=plan.metric.is_function,
        counts=counts_in_a_draw(engine),
    )
    gaps, values = zip(*blocks, strict=True)
    variance = variance_of_defined(np.concatenate(values, axis=-1))
    if variance.shape[1] == 1:
        return join_gaps(gaps).spread(), np.sqrt(variance[:, 0])
    # the groups of all strata together are not resampled as one: their values have no errors
    size = free.size
    by_stratum = Estimates(free.value, unbiased(variance[:, None], size, size, size), size)
    return by_stratum.gaps(engine.weights).standard_error[0], np.full_like(variance[:, 0], np.nan)


def _resampled(engine: PairEngine, n: int, rng: np.random.Generator) -> tuple[Gaps, Array]:
    """Return gaps and values (by part, stratum, group and draw) of bootstrap samples."""
    estimates = engine.bootstrapped(n, rng)
    return estimates.gaps(engine.weights), np.moveaxis(estimates.value, 1, -1)


def _mantel_haenszel_variances(
    engine: PairEngine, plan: Plan, estimates: Estimates
) -> tuple[GapVariance, ...]:
    """Return the variance of each part's gap over strata, if all parts are plain rates."""
    parts = plan.metric.parts
    if engine.weights is None and plan.is_binomial and all(part.is_rate for part in parts):
        found = (estimates.mantel_haenszel_variances(part) for part in range(len(parts)))
        return tuple(itertools.chain.from_iterable(found))
    return ()


def _weigh_strata(engine: PairEngine, plan: Plan, estimates: Estimates) -> WeightedStrata | None:
    """Return the counts of a rate or F1 in strata with given weights, for tests at a margin."""
    weights, parts = engine.weights, metrics_of_totals(plan.metric.parts)
    if weights is None or len(parts) != 1 or not plan.is_binomial:
        return None
    kind, used = Rates if parts[0].is_rate else F1Scores, weights > 0
    size = estimates.size[0, 0, used]
    hits = parts[0].rate_of(estimates.value[0, 0, used]) * size
    counts = np.stack([hits, size], axis=-1).tolist()  # by stratum and group
    strata = (kind(tuple(first), tuple(second)) for first, second in counts)
    return WeightedStrata(tuple((weights / weights.sum())[used].tolist()), tuple(strata))


def _note_zero_error(plan: Plan, error: float) -> list[str]:
    """Return a note if the interval is made of a standard error of zero, unlike that of rates."""
    by_error = plan.variance is not None and not plan.is_binomial
    return [small_groups.note_zero_error(plan.metric.name)] if by_error and error == 0 else []


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
        raise small_groups.missing_error(comparison, plan)
    return float(statistic)
