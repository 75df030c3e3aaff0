"""The test of the gap inside matched sets: pairs, or the same prompt with another name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.checks import choice
from fairperm._utils.formatting import format_count
from fairperm._utils.sorting import equate_close
from fairperm.engines.estimates import Gaps, join_gaps
from fairperm.engines.many_groups import check_group_count
from fairperm.engines.matched_sets import ManyMatchedSets, MatchedSets
from fairperm.engines.resampling.shared_labels import PermutationRequest
from fairperm.errors import InputError, Shown, UndefinedMetricError, argument, listed, shown
from fairperm.hypothesis_tests import small_groups
from fairperm.hypothesis_tests.reaches import ErrorReach
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
from fairperm.hypothesis_tests.run import Observed, PermutationTest
from fairperm.inference.null import tie_tolerance
from fairperm.inference.reference import NormalLimit
from fairperm.inference.stopping import MIN_DRAWS, count_least
from fairperm.metrics.definition import Variance, is_of_totals

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from fairperm.data.arguments import Inputs
    from fairperm.data.sample import Sample
    from fairperm.engines.resampling.blocks import Stop
    from fairperm.hypothesis_tests.plan import Options
    from fairperm.hypothesis_tests.run import Tested
    from fairperm.metrics.definition import AnyMetric, Metric

Array = NDArray[np.float64]

_MIN_INFLUENTIAL_SETS = 5  # sets; from 30 sets of skewed differences on, simulated levels hold
_ROUNDING = 1e-13  # relative rounding error of a mean, with room
_TIED = 1e-10  # relative rounding error of a statistic of several groups, with room
MATCHED = "matched"  # the scheme in results
_VARIANCES = ("auto", Variance.HALL.value, Variance.DELTA.value, None)


def check_matched(inputs: Inputs, options: Options) -> None:
    """Raise InputError for arguments that have no meaning with matched sets."""
    matched = argument("matched")
    for name in ("control_features", "cluster", "sample_weight"):
        if getattr(inputs, name) is not None:
            raise InputError(
                f"{argument(name)} cannot be used with {matched}: groups are exchanged inside "
                "each set, and every set counts once."
            )
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
    n_sets: tuple[int, int]
    is_limit: bool
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls, table: Sample, metric: AnyMetric, groups: tuple[Hashable, Hashable], options: Options
    ) -> MatchedTest:
        """Studentize the observed gap. Raises UndefinedMetricError without a standard error."""
        part = choose_matched(table, metric, groups)
        sides, n_rows, n_left_out = average_sides(table, part, groups)
        first, second = np.moveaxis(sides, 1, 0)
        variance = _choose_variance(part, options)
        sets = MatchedSets.of(part, first, second, variance)
        with np.errstate(divide="ignore", invalid="ignore"):
            values, errors = sets.values()
        check_values(part, groups, values)
        scale = np.array([part.span if np.isfinite(part.span) else np.abs(values).max()])
        gaps = sets.observed().drop_rounding(scale)
        gap = gaps.difference[0]
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
            min_draws=count_least(options.confidence_level),
            reach=ErrorReach(gap, gaps.standard_error[0], part.span, skewness=skewness),
            has_normal_floor=variance == Variance.HALL,
            skewness=skewness,
        )
        sample = _sample(table, part, groups, options, (values, errors), (n_rows, len(first)))
        sample |= {
            "part": None,
            "variance": None if variance is None else variance.value,
            "difference": float(gap[0]),
            "standard_error": float(error[0]),
            "binning_errors": None,
            "notes": (
                *note_left_out(n_left_out, len(first), "both groups"),
                *_note_few(small_groups.effective_number(*sets.influences()), part),
                *table.notes,
            ),
        }
        return cls(
            observed=observed,
            sets=sets,
            scale=scale,
            n_sets=_count_bases(part, sides),
            is_limit=options.is_limit,
            sample=sample,
        )

    def result(self, tested: Tested) -> PermutationTestResult:
        """Return the result."""
        return tested.result(PermutationTestResult, **self.sample)

    def base_sizes(self) -> dict[str, tuple[int, int]]:
        """Return how many sets each group's value rests on."""
        return {"sets": self.n_sets}

    def known_reference(self) -> NormalLimit | None:
        """Return the normal limit if that was asked for."""
        return NormalLimit(self.smallest()) if self.is_limit else None

    def enumerated(self, most: int) -> tuple[Gaps, Array] | None:
        """Return all exchanges inside the sets with their log-probabilities, if they are few."""
        return self.sets.enumerated(most)

    def request(self, stop: Stop[Gaps]) -> PermutationRequest[Gaps]:
        """Return what to permute."""
        return PermutationRequest.of(self.sets.permuted, stop, counts=len(self.sets.count))

    def statistics(self, blocks: Sequence[Gaps], first: int | None) -> Array:
        """Return the studentized gaps."""
        del first
        return join_gaps(blocks).studentized(self.scale)

    def smallest(self) -> float:
        """Return the probability of one exchange of all sets."""
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
        sides, n_rows, n_left_out = average_sides(table, part, groups)
        sets = ManyMatchedSets.of(part, sides, is_studentized=options.variance is not None)
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
        sample = _sample(table, part, groups, options, (values, errors), (n_rows, len(sides)))
        sample |= {
            "mean": float(values.mean()),
            "notes": (
                *note_left_out(n_left_out, len(sides), "all groups"),
                *_note_few(float(sets.n_unlike), part),
                *table.notes,
            ),
        }
        return cls(observed=observed, sets=sets, scale=scale, sample=sample)

    def result(self, tested: Tested) -> OmnibusTestResult:
        """Return the result."""
        return tested.result(OmnibusTestResult, **self.sample)

    def request(self, stop: Stop[Array]) -> PermutationRequest[Array]:
        """Return what to permute."""
        draw = partial(self.sets.permuted, scale=self.scale)
        return PermutationRequest.of(draw, stop, counts=self.sets.sides.size)

    def statistics(self, blocks: Sequence[Array], first: int | None) -> Array:
        """Return the statistics, which is all that was kept."""
        del first
        return np.concatenate(blocks)


def _sample(
    table: Sample,
    part: Metric,
    groups: tuple[Hashable, ...],
    options: Options,
    values_and_errors: tuple[Array, Array],
    rows_and_sets: tuple[NDArray[np.int64], int],
) -> dict[str, Any]:
    """Return the fields that results of two and of several groups have."""
    values, errors = values_and_errors
    n_rows, n_sets = rows_and_sets
    return {
        "metric": part.name,
        "attribute": table.attribute,
        "groups": groups,
        "values": dict(zip(groups, values.tolist(), strict=True)),
        "standard_errors": dict(zip(groups, errors.tolist(), strict=True)),
        "counts": {
            group: {"rows": int(n), "sets": n_sets} for group, n in zip(groups, n_rows, strict=True)
        },
        "scheme": MATCHED,
        "variance": None if options.variance is None else Variance.DELTA.value,
        "n_strata": 1,
        "n_dropped": table.n_dropped,
        "seed": options.seed,
        "validity": state_validity(part, options),
    }


def _choose_variance(part: Metric, options: Options) -> Variance | None:
    """Return what studentizes. The normal limit leaves skewness in, and rates are as good as exact.

    Sets whose outcomes differ in one of two ways have McNemar's test.
    """
    if options.variance == "auto":
        keeps_skewness = part.has_denominator or options.is_limit
        return Variance.DELTA if keeps_skewness else Variance.HALL
    return None if options.variance is None else Variance(str(options.variance))


def choose_matched(table: Sample, metric: AnyMetric, groups: tuple[Hashable, ...]) -> Metric:
    """Return the metric for these groups. Raises InputError if sets cannot be averaged in it."""
    chosen = metric.for_table(table, groups)
    if not is_of_totals(chosen) or not chosen.smooth:
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
    """Raise UndefinedMetricError for a statistic that cannot be compared.

    It is NaN if a group has a value without a standard error (an RMSE of zero), and infinite over
    an error of zero, which no normal deviate is.
    """
    if np.isnan(statistic) or (options.is_limit and np.isinf(statistic)):
        rule = "one whose standard error over sets is defined, and not zero"
        raise UndefinedMetricError("metric", rule, metric.name)


def _count_bases(metric: Metric, sides: Array) -> tuple[int, int]:
    """Return the number of sets that each group's value rests on: of a rate, those in its base."""
    bases = [(sides @ base > 0).sum(axis=0) for base in metric.bases().values()]
    first, second = np.min(bases, axis=0) if bases else np.full(2, len(sides))
    return int(first), int(second)


def average_sides(
    table: Sample, metric: Metric, groups: tuple[Hashable, ...]
) -> tuple[Array, NDArray[np.int64], int]:
    """Return the mean contributions of each group (axis 1) in every set that has all, in any order.

    Then each group's number of rows in these sets, and the number of sets that were left out.
    """
    k = len(groups)
    place = np.full(len(table.groups), -1)
    place[[table.groups.index(group) for group in groups]] = np.arange(k)
    chosen = np.flatnonzero(place[table.group] >= 0)
    if table.matched is None:
        raise TypeError("the table was read without matched sets")
    names, which = np.unique(table.matched[chosen], return_inverse=True)
    count = table.count[chosen]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        of_chosen = {name: one[chosen] for name, one in table.columns.items()}
        contributions = metric.checked_matrix(of_chosen)
    if not np.isfinite(contributions).all():
        got = Shown(f"infinite or undefined ones of {metric.name}")
        raise InputError("metric", "made of finite numbers", got, "Are values too large for it?")
    at = k * which.ravel() + place[table.group[chosen]]
    n = np.bincount(at, count, k * len(names)).reshape(-1, k)
    # sums of rows in the order of their values: the user's order of rows changes no digit
    order = np.lexsort([*contributions.T, at])
    totals, sizes = (
        np.stack(
            [np.bincount(at[order], (count * one)[order], k * len(names)) for one in columns],
            axis=-1,
        ).reshape(len(names), k, -1)
        for columns in (contributions.T, np.abs(contributions.T))
    )
    whole = (n > 0).all(axis=1)
    if whole.sum() < 2:
        rule = f"names of at least two sets with rows of {listed(groups)}"
        every = "both" if k == 2 else "all"
        got = Shown(f"{format_count(int(whole.sum()), 'set')} with {every}, of {len(names):,}")
        raise InputError("matched", rule, got, "Rows of one set have the same value in it.")
    means, scales = (one[whole] / n[whole][..., None] for one in (totals, sizes))
    for j in range(means.shape[-1]):  # repeated answers change the last digits of a mean
        means[..., j] = equate_close(means[..., j], _ROUNDING * scales[..., j])
    return means, n[whole].sum(axis=0).astype(np.int64), int((~whole).sum())


def state_validity(metric: Metric, options: Options) -> str:
    """Return for which null the p-value is valid, and whether exactly or asymptotically."""
    weak = f"the weak null (equal {metric.name} over the sets)"
    if options.is_limit:
        return f"Asymptotically valid for {weak}: the normal limit, without permutations."
    exact = "the groups can be exchanged inside every set"
    if options.variance is None:
        return f"Exact if {exact}. Not valid for {weak}: un-studentized."
    return f"Asymptotically valid for {weak}, and exact if {exact}."


def note_left_out(n_left_out: int, n_sets: int, groups: str) -> list[str]:
    """Return a note on the sets that lack rows of a group."""
    if not n_left_out:
        return []
    were = "was" if n_left_out == 1 else "were"
    sets = format_count(n_left_out, "set")
    return [f"{sets} without rows of {groups} {were} left out; {n_sets:,} remain."]


def _note_few(effective: float, metric: Metric) -> list[str]:
    if effective >= _MIN_INFLUENTIAL_SETS:
        return []
    if effective == 0:
        return [small_groups.note_zero_error(metric.name)]
    few = format_count(min(max(round(effective), 1), _MIN_INFLUENTIAL_SETS - 1), "set")
    return [
        f"Only about {few} {'shows' if few == '1 set' else 'show'} how the gap in {metric.name} "
        f"varies: with fewer than {_MIN_INFLUENTIAL_SETS} its standard error is unreliable."
    ]
