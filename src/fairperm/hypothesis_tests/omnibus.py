"""The omnibus test of whether a metric is the same in all of several groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import streams
from fairperm._utils.arrays import Array
from fairperm._utils.signatures import complete, shares
from fairperm.data.arguments import Inputs, ModelArguments
from fairperm.data.reading import read_table
from fairperm.engines.estimates import ZERO_GAP, largest_ties, variance_of_defined
from fairperm.engines.many_groups import check_group_count
from fairperm.engines.resampling.shared_labels import PermutationRequest
from fairperm.errors import InputError, warn_of
from fairperm.hypothesis_tests import cautions
from fairperm.hypothesis_tests.comparison import Comparison, observe
from fairperm.hypothesis_tests.comparison_checks import (
    REVERSED_SCORES,
    check_strata,
    check_values,
    note_reversed_scores,
)
from fairperm.hypothesis_tests.matched import ManyMatchedTest, check_matched
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.plan import Options, plan_test
from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
from fairperm.hypothesis_tests.run import Observed, PermutationTest, run
from fairperm.hypothesis_tests.small_groups import InfluentialRows
from fairperm.inference.null import TIE
from fairperm.inference.stopping import MIN_DRAWS
from fairperm.metrics.definition import Scheme, Variance
from fairperm.metrics.registry import get_metric

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from typing import Unpack

    from fairperm.data.arguments import Column, Columns, VarianceName
    from fairperm.data.sample import Sample
    from fairperm.engines.choice import Engine
    from fairperm.engines.estimates import Estimates
    from fairperm.engines.resampling.blocks import Resampling, Stop
    from fairperm.hypothesis_tests.plan import Plan
    from fairperm.hypothesis_tests.run import Tested

_FREE_OF_NULL = {Variance.WALD, Variance.DELTA, Variance.DELONG}  # variances that pool no groups


class OmnibusArguments(ModelArguments, total=False):
    """Those that :func:`fairperm.permutation_test` has, too."""

    matched: Columns | None
    names: Column | None
    score_bins: int | None
    variance: VarianceName


@shares(permutation_test, OmnibusArguments)
def omnibus_test(
    y_true: Column | None = None, y_pred: Column | None = None, **given: Unpack[OmnibusArguments]
) -> OmnibusTestResult:
    """Test whether a metric is the same in all of several groups.

    Parameters
    ----------
    groups : sequence, optional
        Two groups or more; without it, all there are.
    control_features, stratum_weights
        As in :func:`fairperm.permutation_test`; a stratum's weight is 1/(1/m_A + 1/m_B + …), and a
        group's value the mean of its strata's with these weights.
    scheme : {"auto", "pooled", "within_label", "denominator"}
        As in :func:`fairperm.permutation_test`; labels are exchanged in every scheme.
    n_resamples : int or "auto"
        As in :func:`fairperm.permutation_test`; at least 1.
    variance : {"auto", "score", "wald", "delta", "delong", "fast_bootstrap"} or None
        As in :func:`fairperm.permutation_test`. None weighs the groups by their numbers of rows
        (of clusters, if there are any) alone: such a test is not valid when base rates differ.
    **given
        All others are those of :func:`fairperm.permutation_test`.

    Returns
    -------
    OmnibusTestResult

    Notes
    -----
    The statistic is Σ (θ_g − θ̄)²/V_g, with θ̄ the mean of the groups' values weighted by 1/V_g, in
    the sample and in every permutation of the labels over all groups. For a rate with the score
    variance this is Pearson's chi-square; of two groups it is the square of their studentized gap,
    and its test is the symmetric one.
    With `matched`, labels are exchanged inside each set, and the statistic is g′V⁻¹g, with the gaps
    g between the groups' values and their covariance V over sets. Sets without rows of all groups
    are left out.

    A group in which the metric shows no variance (no error among few rows, say) is given that of
    all rows together, for its size.

    Examples
    --------
    >>> import fairperm
    >>> compas = fairperm.datasets.load_compas()
    >>> result = fairperm.omnibus_test(
    ...     "two_year_recid", y_score="decile_score", threshold=5, sensitive_features="race",
    ...     groups=("African-American", "Caucasian", "Hispanic"), metric="selection_rate",
    ...     data=compas, rng=1,
    ... )
    >>> round(result.statistic, 1), result.pvalue
    (381.7, 0.0001)
    """
    given = complete(omnibus_test, given)
    options = Options.check(given)
    inputs = Inputs.of(given, y_true=y_true, y_pred=y_pred)
    if options.scheme == Scheme.UNCONDITIONAL:
        hint = "The unconditional test is one of two groups."
        raise InputError("scheme", "one that exchanges labels", options.scheme, hint)
    metric, groups = given["metric"], given["groups"]
    remarks: tuple[str, ...] = (REVERSED_SCORES,)
    if inputs.matched is not None and inputs.names is None:
        check_matched(inputs, options)
        single = get_metric(metric).for_arguments(inputs)
        table = read_table(inputs, single)
        of_sets = ManyMatchedTest.of(table, single, table.choose_several(groups), options)
        (tested,) = run([of_sets], options.resampling)
        result, remarks = of_sets.result(tested), of_sets.remarks
    else:
        table, plan, chosen = plan_test(
            inputs, metric, options, lambda table: table.choose_several(groups)
        )
        result = compare_all(table, plan, chosen, options)
    warn_of(note for note in result.notes if note not in (*table.notes, *remarks))
    return result


def compare_all(
    table: Sample, plan: Plan, groups: tuple[Hashable, ...], options: Options
) -> OmnibusTestResult:
    """Test whether a metric is the same in all of these groups of a table."""
    test = OmnibusTest.of(table, plan, groups, options)
    (tested,) = run([test], options.resampling)
    return test.result(tested)


@dataclass(frozen=True, slots=True, kw_only=True)
class OmnibusTest(PermutationTest["_Values"]):
    """The omnibus statistic of the sample, before its permutations.

    ``sample`` has the fields of the result that do not depend on them. Groups without variance
    borrow that of ``shared``. ``weighing`` are variances in place of the permutations' own.
    """

    observed: Observed
    plan: Plan
    engine: Engine
    shared: Estimates | None
    weighing: Array | None
    scale: Array
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls, table: Sample, plan: Plan, groups: tuple[Hashable, ...], options: Options
    ) -> OmnibusTest:
        """Compute the observed statistic. Raises UndefinedMetricError if there is none."""
        check_group_count(groups, "Merge small groups, or compare some of them.")
        plan = plan.with_permutations()
        comparison = Comparison.of(table, plan, groups, options.stratum_weights)
        _check(plan, comparison.n_strata)
        engine, estimates = observe(
            lambda: comparison.engine(plan.variance, many=True), options.resampling
        )
        merged = _merge_strata(comparison, plan, estimates)
        check_values(comparison.whole, merged.value[:, 0, 0])
        at_first = estimates.value[:, 0], estimates.size[:, 0]
        notes = check_strata(comparison, *at_first, engine.weights)

        shared = engine.pooled() if plan.has_closed_form else None
        influential = InfluentialRows.count(comparison, plan, estimates)
        variance, ties = merged.variance[:, :, 0], np.zeros(merged.value[:, 0, 0].shape)
        if merged is estimates:
            variance = influential.widen(estimates, engine.weights).variance[:, :, 0]
        if plan.is_bootstrapped_once or plan.metric.closed_variance is None:
            ordered = tuple(groups[place] for place in engine.order)
            variance, ties = _bootstrap_variance(table, plan, groups, ordered, options.bootstrap)
        observed, weighing = _Values.of(estimates, engine.weights, shared), None
        observed = observed.widen(influential)
        if plan.is_bootstrapped_once:
            observed = observed.with_variance(variance)
        elif plan.variance is None:
            weighing = 1 / _count_exchanged(comparison.totals())
            observed = observed.with_variance(weighing)
        scale = comparison.scale(estimates)
        statistic = _check_statistic(observed, scale, comparison, plan)
        mean = observed.mean()
        notes += [
            *influential.notes(),
            *note_reversed_scores(comparison, merged.value[:, 0, 0]),
            *(cautions.note_ties(comparison, ties) if plan.variance is not None else []),
            *comparison.note_bins(comparison.binning_errors(), np.sqrt(variance[0, 0])),
            *table.notes,
        ]
        sample = {
            "metric": plan.metric.name,
            "attribute": table.attribute,
            "groups": groups,
            "values": comparison.by_group(merged.value[:, 0, 0]),
            "standard_errors": comparison.by_group(np.sqrt(variance[:, 0])),
            "counts": comparison.whole.totals(),
            "mean": float(mean[0, 0]) if len(mean) == 1 else math.nan,
            "scheme": plan.scheme.value,
            "variance": plan.variance_name,
            "n_strata": comparison.n_strata,
            "n_dropped": table.n_dropped,
            "seed": options.seed,
            "validity": plan.validity(strata=comparison.n_strata > 1),
            "notes": tuple(notes),
        }
        seen = Observed(
            statistic=statistic,
            alternative="greater",
            ordering="greater",
            tolerance=observed.rounding(statistic, scale),
            estimate=statistic,
            level=options.confidence_level,
            min_draws=MIN_DRAWS,
        )
        return cls(
            observed=seen,
            plan=plan,
            engine=engine,
            shared=shared,
            weighing=weighing,
            scale=scale,
            sample=sample,
        )

    def result(self, tested: Tested) -> OmnibusTestResult:
        return tested.result(OmnibusTestResult, **self.sample)

    def request(self, stop: Stop[_Values]) -> PermutationRequest[_Values]:
        return PermutationRequest(
            self.engine,
            partial(_Values.of, weights=self.engine.weights, shared=self.shared),
            self.plan.metric.is_function,
            stop,
        )

    def statistics(self, blocks: Sequence[_Values], first: int | None) -> Array:
        """Return the statistic of each permutation; a covariance is that of the ``first`` ones."""
        permuted = _Values.joined(blocks)
        if self.plan.is_bootstrapped_once:
            return permuted.distance(permuted.first(first))
        if self.weighing is not None:
            permuted = permuted.with_variance(self.weighing)
        return permuted.statistic(self.scale)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values and variances by part, draw and group, the strata combined."""

    value: Array
    variance: Array

    @classmethod
    def of(cls, estimates: Estimates, weights: Array | None, shared: Estimates | None) -> _Values:
        """Combine the strata; a group without variance gets that of all rows as one group.

        As if it were certain, a small group without a single error would outweigh all groups, and
        the test would reject whenever there is one: far too often, where groups have fewer rows
        that matter than their permutations do.
        """
        value, variance = estimates.standardized(weights)
        if shared is not None and (variance == 0).any():
            with np.errstate(divide="ignore", invalid="ignore"):
                lent = replace(estimates, variance=shared.variance * shared.size / estimates.size)
            variance = np.where(variance == 0, lent.standardized(weights)[1], variance)
        return cls(value, variance)

    @classmethod
    def joined(cls, blocks: Sequence[_Values]) -> _Values:
        every = ([getattr(block, name) for block in blocks] for name in cls.__slots__)
        return cls(*(np.concatenate(arrays, axis=1) for arrays in every))

    def with_variance(self, variance: Array) -> _Values:
        return _Values(self.value, np.broadcast_to(variance, self.value.shape))

    def widen(self, influential: InfluentialRows) -> _Values:
        """Return the observed values with variances that allow for few influential rows."""
        return _Values(self.value, self.variance + influential.extra[:, None])

    def first(self, n: int | None) -> _Values:
        """Return the first ``n`` draws; all for None."""
        return _Values(self.value[:, :n], self.variance[:, :n])

    def distance(self, among: _Values) -> Array:
        """Return the statistic of every draw by the covariance among draws; largest of the parts.

        Permuted values vary less than independent ones do, and together, for the groups share out
        the same rows: not their own variances make the gaps' (as the bootstrap's do), but the
        covariance of the gaps. Of two groups it is the gap's square over its variance.
        """
        distances = []
        for value, others in zip(self.value, among.value, strict=True):
            gaps, apart = (one[:, 1:] - one[:, :1] for one in (value, others))
            defined = apart[~np.isnan(apart).any(axis=1)]
            if len(defined) < 2:
                distances.append(np.full(len(gaps), np.nan))
                continue
            covariance = np.cov(defined, rowvar=False).reshape(gaps.shape[1], -1)
            inverse = np.linalg.pinv(covariance, hermitian=True)
            distances.append(((gaps @ inverse) * gaps).sum(axis=1))
        largest: Array = np.max(distances, axis=0)
        return largest

    def mean(self) -> Array:
        """Return the inverse-variance mean of the groups, or of those with variance 0 if any."""
        with np.errstate(divide="ignore", invalid="ignore"):
            certain = self.variance == 0
            weight = np.where(certain.any(axis=-1, keepdims=True), certain, 1 / self.variance)
            mean: Array = (weight * self.value).sum(axis=-1) / weight.sum(axis=-1)
        return mean

    def statistic(self, scale: Array) -> Array:
        """Return the statistic of every draw, the largest of the parts.

        A group without variance adds nothing if it is at the mean, else it makes it infinite.
        """
        deviation = self.value - self.mean()[..., None]
        nothing = np.abs(deviation) <= ZERO_GAP * scale[:, None, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where((self.variance == 0) & nothing, 0.0, deviation**2 / self.variance)
        largest: Array = terms.sum(axis=-1).max(axis=0)
        return largest

    def rounding(self, statistic: float, scale: Array) -> float:
        """Return how far below the observed statistic a draw is still tied with it.

        Rounding errors of a value are relative to the metric's size, not to how far the value is
        from the mean; the statistic is made of squares.
        """
        if math.isinf(statistic):
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(self.variance > 0, scale[:, None, None] ** 2 / self.variance, 0.0)
        longest = math.sqrt(reach.sum(axis=-1).max())
        return TIE * (1 + statistic + 2 * math.sqrt(statistic) * longest) + (TIE * longest) ** 2


def _count_exchanged(totals: Mapping[Hashable, Mapping[str, float]]) -> Array:
    """Return the number of rows or clusters of each group, which no permutation changes."""
    return np.array([counts.get("clusters", counts["rows"]) for counts in totals.values()])


def _merge_strata(comparison: Comparison, plan: Plan, estimates: Estimates) -> Estimates:
    """Return the estimates of all strata as one, with variances that do not pool the groups."""
    of_one = comparison.n_strata == 1
    if of_one and (plan.metric.closed_variance is None or plan.variance in _FREE_OF_NULL):
        return estimates
    engine = comparison.unstratified().engine(plan.metric.closed_variance, many=True)
    return engine.observed()


def _check_statistic(observed: _Values, scale: Array, comparison: Comparison, plan: Plan) -> float:
    """Return the observed statistic. Raises UndefinedMetricError if it cannot be compared.

    A group whose bootstrap samples do not vary would outweigh all other groups, which no group
    does under permutation.
    """
    statistic = float(observed.statistic(scale)[0])
    is_lost = plan.is_bootstrapped_once and statistic > 0 and (observed.variance == 0).any()
    if math.isnan(statistic) or is_lost:
        raise cautions.missing_error(comparison, plan)
    return statistic


def _bootstrap_variance(
    table: Sample,
    plan: Plan,
    groups: tuple[Hashable, ...],
    ordered: tuple[Hashable, ...],
    resampling: Resampling,
) -> tuple[Array, Array]:
    """Return every group's bootstrap variance: two groups at a time, as in a test of their gap.

    Then the share of bootstrap samples in which a group's value is the same. Groups are paired in
    the engine's order, by their rows and not by their names.
    """
    variances: dict[Hashable, Array] = {}
    ties: dict[Hashable, Array] = {}
    for i in range(0, len(ordered), 2):
        pair = (ordered[i], ordered[i + 1 if i + 1 < len(ordered) else 0])
        engine = Comparison.of(table, plan, pair, None).unstratified().engine(None)
        blocks = resampling.run_blocks(
            partial(_resampled, engine),
            streams.BOOTSTRAP,
            engine.block_size,
            through_joblib=plan.metric.is_function,
        )
        values = np.moveaxis(np.concatenate(blocks, axis=-1), 1, 0)
        variances |= dict(zip(pair, variance_of_defined(values), strict=True))
        ties |= dict(zip(pair, largest_ties(values), strict=True))
    by_group = (
        np.stack([found[group] for group in groups], axis=-1) for found in (variances, ties)
    )
    variance, shares = by_group
    return variance[:, None], shares


def _resampled(engine: Engine, n: int, rng: np.random.Generator) -> Array:
    """Return values by part, group and draw."""
    estimates = engine.bootstrapped(n, rng)
    return np.moveaxis(estimates.value[:, :, 0], 1, -1)


def _check(plan: Plan, n_strata: int) -> None:
    """Raise InputError for options that a test of many groups does not support."""
    if plan.metric.is_rank and (plan.weighted or plan.clustered):
        which = "sample_weight" if plan.weighted else "cluster"
        raise InputError(
            f"{which} must be left out for {plan.metric.name} of many groups. "
            "Compare two groups at a time with permutation_test."
        )
    if plan.variance in {Variance.BOOTSTRAP, Variance.HALL}:
        hint = "Use 'auto'."
        raise InputError("variance", "another for many groups", plan.variance, hint)
    if plan.is_bootstrapped_once and n_strata > 1:
        hint = "Compare two groups at a time with permutation_test."
        rule = f"left out for {plan.metric.name}, whose variance is found by bootstrap"
        raise InputError("control_features", rule, f"{n_strata} strata", hint)
