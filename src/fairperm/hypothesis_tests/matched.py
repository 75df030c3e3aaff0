"""The test of the gap inside matched sets: pairs, or the same prompt with another name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.checks import choice
from fairperm._utils.formatting import format_count
from fairperm.engines.estimates import join_gaps
from fairperm.engines.matched_sets import MatchedSets
from fairperm.errors import InputError, Shown, UndefinedMetricError, argument, listed, shown
from fairperm.hypothesis_tests import small_groups
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.inference.null import (
    Null,
    agree,
    gap_interval,
    normal_limit,
    normal_pvalue,
    normal_quantile,
    note_undefined,
    pvalue,
    tie_tolerance,
)
from fairperm.inference.stopping import LEAST_FOR_INTERVAL, StoppingRule
from fairperm.metrics.definition import Metric, Variance

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from fairperm.data.arguments import Inputs
    from fairperm.data.reading import Table
    from fairperm.hypothesis_tests.plan import Options
    from fairperm.metrics.definition import AnyMetric

    Array = NDArray[np.float64]

_ENOUGH = 5  # sets; from 30 sets of skewed differences on, simulated levels hold
MATCHED = "matched"  # the scheme in results
_VARIANCES = ("auto", Variance.DELTA.value, None)


def check_matched(inputs: Inputs, options: Options) -> None:
    """Raise InputError for arguments that have no meaning with matched sets."""
    matched = argument("matched")
    for name in ("control_features", "cluster", "sample_weight"):
        if getattr(inputs, name) is not None:
            raise InputError(
                f"{argument(name)} cannot be used with {matched}: groups are exchanged inside "
                "each set, and every set counts once."
            )
    choice_of = (("scheme", options.scheme, ("auto",)), ("variance", options.variance, _VARIANCES))
    for name, given, allowed in choice_of:
        choice(name, given, allowed)


def compare_matched(
    table: Table, metric: AnyMetric, groups: tuple[Hashable, Hashable], options: Options
) -> PermutationTestResult:
    """Test the gap between two groups of the same sets."""
    metric = metric.for_table(table, groups)
    if not isinstance(metric, Metric) or not metric.smooth:
        rule = f"a rate, a mean or another function of totals with {argument('matched')}"
        raise InputError("metric", rule, metric.name)
    first, second, n_rows, n_left_out = _average_sides(table, metric, groups)
    n_sets = len(first)
    is_studentized = options.variance is not None
    sets = MatchedSets.of(metric, first, second, is_studentized=is_studentized)
    with np.errstate(divide="ignore", invalid="ignore"):
        values, errors = sets.values()
    for group, value in zip(groups, values, strict=True):
        if np.isnan(value):
            got = Shown(f"{metric.name} of group {shown(group)}")
            hint = "Compare another metric, or more sets."
            raise UndefinedMetricError("metric", "defined in every group", got, hint)
    gaps = sets.observed()
    scale = np.array([metric.span if np.isfinite(metric.span) else np.abs(values).max()])
    gap = gaps.difference[0]
    with_errors = MatchedSets.of(metric, first, second).observed()
    error = with_errors.standard_error[0]
    statistic = float(gaps.studentized(scale)[0])
    if options.is_limit and np.isinf(statistic):
        rule = "one whose standard error over sets is not zero"
        raise UndefinedMetricError("metric", rule, metric.name)
    level, alternative = options.confidence_level, options.alternative
    tolerance = tie_tolerance(statistic, scale, gaps.standard_error[0])
    stopping = StoppingRule(statistic, alternative, tolerance, LEAST_FOR_INTERVAL)
    null = _draw(sets, options, scale, stopping)
    n_resamples = 0 if options.is_limit else len(null.statistic)
    p = normal_pvalue(statistic, alternative)
    if n_resamples:
        p = pvalue(null, statistic, alternative, tolerance, level)
    least = 0.0 if n_resamples else max(0.0, normal_quantile(level, alternative))

    def reach(quantile: float) -> tuple[Array, Array]:
        width = max(quantile, least) * (error if is_studentized else np.ones(1))
        return width, width

    interval = gap_interval(null, gap, reach, alternative, level, metric.span)
    effective = small_groups.effective_number(*sets.influences())
    notes = [
        *_note_left_out(n_left_out, n_sets),
        *_note_few(effective, metric),
        *note_undefined(null),
        *table.notes,
    ]
    return PermutationTestResult(
        metric=metric.name,
        part=None,
        groups=groups,
        values=dict(zip(groups, values.tolist(), strict=True)),
        counts={
            group: {"rows": int(n), "sets": n_sets} for group, n in zip(groups, n_rows, strict=True)
        },
        difference=float(gap[0]),
        standard_error=float(error[0]),
        standard_errors=dict(zip(groups, errors.tolist(), strict=True)),
        statistic=statistic,
        scheme=MATCHED,
        variance=Variance.DELTA.value if is_studentized else None,
        n_strata=1,
        n_dropped=table.n_dropped,
        attribute=table.attribute,
        validity=_validity(metric, options),
        gap_variance=None,
        binning_errors=None,
        alternative=alternative,
        ordering=alternative,
        confidence_level=level,
        confidence_interval=agree(interval, p.value, alternative, level, float(gap[0])),
        pvalue=p.value,
        pvalue_interval=p.interval,
        pvalue_interval_wilson=p.wilson_interval,
        n_resamples=n_resamples,
        stopped_early=null.stopped_early,
        n_undefined=int(null.undefined.sum()),
        seed=options.seed,
        notes=tuple(notes),
        exact=n_resamples > 0 and null.log_probability is not None,
        null_distribution=null.statistic,
        null_probabilities=(None if null.log_probability is None else np.exp(null.log_probability)),
    )


def _draw(sets: MatchedSets, options: Options, scale: Array, rule: StoppingRule) -> Null:
    """Return the null distribution: all permutations, random ones, or the normal limit."""
    if options.is_limit:
        return normal_limit()
    every = sets.enumerated(options.resampling.n_resamples)
    if every is not None:
        gaps, log_probability = every
        return Null(gaps.studentized(scale), log_probability)
    return options.resampling.draw_null(
        sets.permuted,
        lambda parts: join_gaps(parts).studentized(scale),
        rule,
        counts=len(sets.count),
    )


def _average_sides(
    table: Table, metric: Metric, groups: tuple[Hashable, Hashable]
) -> tuple[Array, Array, NDArray[np.int64], int]:
    """Return the mean contributions of each group in every set that has both, in any order.

    Then each group's number of rows in these sets, and the number of sets that were left out.
    """
    place = [table.groups.index(group) for group in groups]
    chosen = np.flatnonzero(np.isin(table.group, place))
    if table.matched is None:
        raise TypeError("the table was read without matched sets")
    names, which = np.unique(table.matched[chosen], return_inverse=True)
    side = (table.group[chosen] == place[1]).astype(np.intp)
    count = table.count[chosen]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        columns = {name: one[chosen] for name, one in table.columns.items()}
        contributions = metric.checked_matrix(columns)
    if not np.isfinite(contributions).all():
        got = Shown(f"infinite or undefined ones of {metric.name}")
        raise InputError("metric", "made of finite numbers", got, "Are values too large for it?")
    at = 2 * which.ravel() + side
    n = np.bincount(at, count, 2 * len(names)).reshape(-1, 2)
    # sums of rows in the order of their values: the user's order of rows changes no digit
    order = np.lexsort([*contributions.T, at])
    totals = np.stack(
        [np.bincount(at[order], (count * one)[order], 2 * len(names)) for one in contributions.T],
        axis=-1,
    ).reshape(len(names), 2, -1)
    both = (n > 0).all(axis=1)
    if both.sum() < 2:
        rule = f"names of at least two sets with rows of {listed(groups)}"
        got = Shown(f"{format_count(int(both.sum()), 'set')} with both, of {len(names):,}")
        raise InputError("matched", rule, got, "Rows of one set have the same value in it.")
    means = totals[both] / n[both][..., None]
    n_rows = n[both].sum(axis=0).astype(np.int64)
    return means[:, 0], means[:, 1], n_rows, int((~both).sum())


def _validity(metric: Metric, options: Options) -> str:
    weak = f"the weak null (equal {metric.name} over the sets)"
    if options.is_limit:
        return f"Asymptotically valid for {weak}: the normal limit, without permutations."
    exact = "the groups can be exchanged inside every set"
    if options.variance is None:
        return f"Exact if {exact}. Not valid for {weak}: un-studentized."
    return f"Asymptotically valid for {weak}, and exact if {exact}."


def _note_left_out(n_left_out: int, n_sets: int) -> list[str]:
    if not n_left_out:
        return []
    were = "was" if n_left_out == 1 else "were"
    sets = format_count(n_left_out, "set")
    return [f"{sets} without rows of both groups {were} left out; {n_sets:,} remain."]


def _note_few(effective: float, metric: Metric) -> list[str]:
    if effective >= _ENOUGH:
        return []
    if effective == 0:
        return [small_groups.note_zero_error(metric.name)]
    few = format_count(min(max(round(effective), 1), _ENOUGH - 1), "set")
    return [
        f"Only about {few} can change the gap in {metric.name}: with fewer than {_ENOUGH} its "
        "standard error is unreliable."
    ]
