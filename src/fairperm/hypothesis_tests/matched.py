"""The test of the gap inside matched sets: pairs, or the same prompt with another name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.arrays import Array
from fairperm._utils.checks import choice
from fairperm._utils.formatting import format_count
from fairperm.engines.estimates import Gaps, join_gaps
from fairperm.engines.many_groups import check_group_count
from fairperm.engines.matched_sets import ManyMatchedSets, MatchedSets
from fairperm.engines.resampling.shared_labels import PermutationRequest
from fairperm.errors import InputError, Note, Shown, UndefinedMetricError, argument, shown
from fairperm.hypothesis_tests import cautions, small_groups
from fairperm.hypothesis_tests.matched_sides import read_sides
from fairperm.hypothesis_tests.reaches import ErrorReach
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
from fairperm.hypothesis_tests.run import Observed, PermutationTest
from fairperm.inference.null import tie_tolerance
from fairperm.inference.reference import NormalLimit
from fairperm.inference.stopping import MIN_DRAWS, min_draws_for
from fairperm.metrics.definition import Variance, is_of_totals

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from fairperm.data.arguments import Inputs
    from fairperm.data.sample import Sample
    from fairperm.engines.resampling.blocks import Stop
    from fairperm.hypothesis_tests.matched_sides import SidesOfSets
    from fairperm.hypothesis_tests.plan import Options
    from fairperm.hypothesis_tests.run import Tested
    from fairperm.metrics.definition import AnyMetric, Metric

_MIN_INFLUENTIAL_SETS = 5  # sets; from 30 sets of skewed differences on, simulated levels hold
_TIED = 1e-10  # relative rounding error of a statistic of several groups, with room
MATCHED = "matched"  # the scheme in results
ABOUT_NAMES = Note(
    "If names stand for the groups, the result is about these names: pass "
    f"{argument('names')} to ask about the groups."
)
_VARIANCES = ("auto", Variance.HALL.value, Variance.DELTA.value, None)


def check_matched(inputs: Inputs, options: Options) -> None:
    """Raise InputError for arguments that have no meaning with matched sets."""
    if inputs.split_clusters:
        raise InputError(
            f"{argument('split_clusters')} cannot be used with {argument('matched')}: clusters "
            "contain whole sets."
        )
    if options.stratum_weights is not None and inputs.control_features is None:
        raise InputError(f"{argument('stratum_weights')} needs {argument('control_features')}.")
    if options.is_limit and options.variance == Variance.HALL:
        rule = f"at least 1 with {argument('variance', 'hall')}"
        raise InputError("n_resamples", rule, 0, "The normal limit leaves skewness in.")
    choice_of = (("scheme", options.scheme, ("auto",)), ("variance", options.variance, _VARIANCES))
    for name, given, allowed in choice_of:
        choice(name, given, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedTest(PermutationTest[Gaps]):
    """The gap inside matched sets, before its permutations.

    ``n_sets`` is the number of sets that each group's value rests on.
    """

    observed: Observed
    sets: MatchedSets
    scale: Array
    read: SidesOfSets
    n_sets: tuple[int, int]
    is_limit: bool
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls, table: Sample, metric: AnyMetric, groups: tuple[Hashable, Hashable], options: Options
    ) -> MatchedTest:
        """Studentize the observed gap. Raises UndefinedMetricError without a standard error."""
        part = choose_matched(table, metric, groups)
        return cls.of_sides(
            table, part, groups, options, read_sides(table, part, groups, options.stratum_weights)
        )

    @classmethod
    def of_sides(
        cls,
        table: Sample,
        part: Metric,
        groups: tuple[Hashable, Hashable],
        options: Options,
        read: SidesOfSets,
    ) -> MatchedTest:
        """Studentize the observed gap of sets that were read."""
        variance = _choose_variance(part, options, read)
        sets = MatchedSets.of(part, read.sides, variance)
        with np.errstate(divide="ignore", invalid="ignore"):
            values, errors = sets.values()
        check_values(part, groups, values)
        scale = np.array([part.span if np.isfinite(part.span) else np.abs(values).max()])
        gaps = sets.observed().drop_rounding(scale)
        # rounding must not carry a gap beyond what is possible: its interval ends there
        gap = np.clip(gaps.difference[0], -part.span, part.span)
        error = gaps.standard_error[0]
        if variance is None:
            error = replace(sets, variance=Variance.DELTA).observed().standard_error[0]
        skewness = 0.0 if gaps.skewness is None else float(gaps.skewness[0, 0])
        statistic = float(gaps.studentized(scale)[0])
        check_statistic(part, statistic, options)
        observed = Observed(
            statistic=statistic,
            alternative=options.alternative,
            ordering=options.alternative,
            tolerance=tie_tolerance(statistic, scale, gaps.standard_error[0], skewness),
            estimate=float(gap[0]),
            level=options.confidence_level,
            min_draws=min_draws_for(options.confidence_level),
            reach=ErrorReach(gap, gaps.standard_error[0], part.span, skewness=skewness),
            has_normal_floor=variance == Variance.HALL
            or (variance is not None and read.sides.leaves_one_out),
            skewness=skewness,
        )
        sample = _sample(table, part, groups, options, (values, errors), read)
        n_sets = read.base_sizes(part).tolist()
        sample |= {
            "part": None,
            "variance": None if variance is None else variance.value,
            "difference": float(gap[0]),
            "standard_error": float(error[0]),
            "binning_errors": None,
            "notes": (
                *read.notes(),
                ABOUT_NAMES,
                *_note_few(small_groups.effective_number(*sets.influences()), part),
                *table.notes,
            ),
        }
        return cls(
            observed=observed,
            sets=sets,
            scale=scale,
            read=read,
            n_sets=(n_sets[0], n_sets[1]),
            is_limit=options.is_limit,
            sample=sample,
        )

    def result(self, tested: Tested) -> PermutationTestResult:
        return tested.result(PermutationTestResult, **self.sample)

    @property
    def remarks(self) -> tuple[str, ...]:
        return (ABOUT_NAMES,)

    def base_sizes(self) -> dict[str, tuple[int, int]]:
        return {"clusters" if self.read.is_clustered else "sets": self.n_sets}

    def known_reference(self) -> NormalLimit | None:
        return NormalLimit(self.smallest()) if self.is_limit else None

    def enumerated(self, most: int) -> tuple[Gaps, Array] | None:
        return self.sets.enumerated(most)

    def request(self, stop: Stop[Gaps]) -> PermutationRequest[Gaps]:
        return PermutationRequest.of(self.sets.permuted, stop, counts=self.sets.n_kinds)

    def statistics(self, blocks: Sequence[Gaps], first: int | None) -> Array:
        del first
        return join_gaps(blocks).studentized(self.scale)

    def smallest(self) -> float:
        return float(0.5**self.sets.n_sets)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyMatchedTest(PermutationTest[Array]):
    """The distance between the values of several groups of the same sets."""

    observed: Observed
    sets: ManyMatchedSets
    scale: float
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls, table: Sample, metric: AnyMetric, groups: tuple[Hashable, ...], options: Options
    ) -> ManyMatchedTest:
        """Compute the observed statistic. Raises UndefinedMetricError if there is none."""
        check_group_count(groups, "Merge small groups, or compare some of them.")
        part = choose_matched(table, metric, groups)
        read = read_sides(table, part, groups, options.stratum_weights)
        sets = ManyMatchedSets.of(part, read.sides, is_studentized=options.variance is not None)
        values, errors = sets.values()
        check_values(part, groups, values)
        scale = float(part.span if np.isfinite(part.span) else np.abs(values).max())
        statistic = sets.observed(scale)
        check_statistic(part, statistic, options)
        observed = Observed(
            statistic=statistic,
            alternative="greater",
            ordering="greater",
            tolerance=_TIED * (1 + statistic) if np.isfinite(statistic) else 0.0,
            estimate=statistic,
            level=options.confidence_level,
            min_draws=MIN_DRAWS,
        )
        sample = _sample(table, part, groups, options, (values, errors), read)
        sample |= {
            "mean": float(values.mean()),
            "notes": (
                *read.notes(),
                ABOUT_NAMES,
                *_note_few(float(sets.n_unlike), part),
                *table.notes,
            ),
        }
        return cls(observed=observed, sets=sets, scale=scale, sample=sample)

    @property
    def remarks(self) -> tuple[str, ...]:
        return (ABOUT_NAMES,)

    def result(self, tested: Tested) -> OmnibusTestResult:
        return tested.result(OmnibusTestResult, **self.sample)

    def request(self, stop: Stop[Array]) -> PermutationRequest[Array]:
        draw = partial(self.sets.permuted, scale=self.scale)
        return PermutationRequest.of(draw, stop, counts=self.sets.n_numbers)

    def statistics(self, blocks: Sequence[Array], first: int | None) -> Array:
        del first
        return np.concatenate(blocks)


def _sample(
    table: Sample,
    part: Metric,
    groups: tuple[Hashable, ...],
    options: Options,
    values_and_errors: tuple[Array, Array],
    read: SidesOfSets,
) -> dict[str, Any]:
    """Return the fields that results of two and of several groups have."""
    values, errors = values_and_errors
    return {
        "metric": part.name,
        "attribute": table.attribute,
        "groups": groups,
        "values": dict(zip(groups, values.tolist(), strict=True)),
        "standard_errors": dict(zip(groups, errors.tolist(), strict=True)),
        "counts": {
            group: {"rows": int(n)} | read.counts
            for group, n in zip(groups, read.n_rows, strict=True)
        },
        "scheme": MATCHED,
        "variance": None if options.variance is None else Variance.DELTA.value,
        "n_strata": read.n_strata,
        "n_dropped": table.n_dropped,
        "seed": options.seed,
        "validity": state_validity(part, options, read),
    }


def _choose_variance(part: Metric, options: Options, read: SidesOfSets) -> Variance | None:
    """Return what studentizes. The normal limit leaves skewness in, and rates are as good as exact.

    Sets whose outcomes differ in one of two ways have McNemar's test. Skewness estimated from units
    that weigh differently is none.
    """
    leaves_one_out = read.sides.leaves_one_out
    if leaves_one_out and options.variance == Variance.HALL:
        rule = f"'auto', 'delta' or None with {argument('cluster')} or {argument('sample_weight')}"
        raise InputError("variance", rule, options.variance)
    if options.variance == "auto":
        keeps_skewness = part.has_denominator or options.is_limit or leaves_one_out
        return Variance.DELTA if keeps_skewness else Variance.HALL
    return None if options.variance is None else Variance(str(options.variance))


def choose_matched(table: Sample, metric: AnyMetric, groups: tuple[Hashable, ...]) -> Metric:
    """Return the metric for these groups. Raises InputError if sets cannot be averaged in it."""
    chosen = metric.for_table(table, groups)
    if not is_of_totals(chosen):
        rule = f"a rate, a mean or another function of totals with {argument('matched')}"
        raise InputError("metric", rule, metric.name)
    return chosen


def check_values(metric: Metric, groups: tuple[Hashable, ...], values: Array) -> None:
    """Raise UndefinedMetricError if the metric has no value in a group."""
    for group, value in zip(groups, values, strict=True):
        if np.isnan(value):
            got = Shown(f"{metric.name} of group {shown(group)}")
            hint = "Compare another metric, or more sets."
            raise UndefinedMetricError("metric", "defined in every group", got, hint)


def check_statistic(metric: Metric, statistic: float, options: Options) -> None:
    """Raise UndefinedMetricError for a statistic that cannot be compared."""
    # it is NaN if a group has a value without a standard error (an RMSE of zero), and infinite over
    # an error of zero, which no normal deviate is
    if np.isnan(statistic) or (options.is_limit and np.isinf(statistic)):
        rule = "one whose standard error over sets is defined, and not zero"
        raise UndefinedMetricError("metric", rule, metric.name)


def state_validity(metric: Metric, options: Options, read: SidesOfSets) -> str:
    """Return for which null the p-value is valid, and whether exactly or asymptotically."""
    over = "sets" if read.n_strata == 1 else "sets of each stratum, weighted"
    weak = f"the weak null (equal {metric.name} over the {over})"
    if options.is_limit:
        return f"Asymptotically valid for {weak}: the normal limit, without permutations."
    exact = "the groups can be exchanged inside every set"
    if read.is_clustered:
        exact = "the groups can be exchanged in all sets of a cluster at once"
    if options.variance is None:
        return f"Exact if {exact}. Not valid for {weak}: un-studentized."
    return f"Asymptotically valid for {weak}, and exact if {exact}."


def _note_few(effective: float, metric: Metric) -> list[str]:
    if effective >= _MIN_INFLUENTIAL_SETS:
        return []
    if effective == 0:
        return [cautions.note_zero_error(metric.name)]
    few = format_count(min(max(round(effective), 1), _MIN_INFLUENTIAL_SETS - 1), "set")
    return [
        f"Only about {few} {'shows' if few == '1 set' else 'show'} how the gap in {metric.name} "
        f"varies: with fewer than {_MIN_INFLUENTIAL_SETS} its standard error is unreliable."
    ]
