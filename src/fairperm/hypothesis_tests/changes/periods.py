"""The test of a change of the gap between periods, sites or versions, which have different rows.

The groups are strata of the engines here, and the periods are their groups: period labels are
exchanged within each group, and the change of the gap is the change in the first group minus that
in the second, a contrast of two strata.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import checks
from fairperm._utils.arrays import Array
from fairperm._utils.formatting import format_count, format_name
from fairperm._utils.signatures import complete, shares
from fairperm.data.arguments import ChangeArguments, PeriodInputs
from fairperm.data.columns import library_of
from fairperm.data.period_order import declared_orders, sort_periods
from fairperm.data.reading import read_table
from fairperm.errors import (
    InputError,
    InputTypeError,
    Shown,
    UndefinedMetricError,
    argument,
    listed,
    shown,
    unknown_name,
    warn_of,
)
from fairperm.hypothesis_tests.changes.group_changes import compare_values
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.comparison_checks import read_stratum_weights
from fairperm.hypothesis_tests.groups import GapTest, compare
from fairperm.hypothesis_tests.margins.restricted_rates import Rates
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.results.changes import (
    GroupChange,
    PeriodChange,
    PeriodComparisonResult,
)
from fairperm.hypothesis_tests.run import run
from fairperm.hypothesis_tests.small_groups import InfluentialRows
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.metrics.definition import Scheme, Variance
from fairperm.metrics.registry import get_metric

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from fairperm.data.arguments import Column, Columns, Groups
    from fairperm.data.sample import Sample
    from fairperm.engines.estimates import Estimates
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from fairperm.metrics.definition import AnyMetric

    Pair = tuple[Hashable, Hashable]

AGAINST = ("previous", "first")
_MAX_PERIODS = 100
_SCHEMES = ("auto", *(one for one in Scheme if one != Scheme.UNCONDITIONAL))
_VARIANCES = ("auto", *(one for one in Variance if not one.is_binomial), None)


class PeriodArguments(ChangeArguments, total=False):
    """Arguments of :func:`fairperm.permutation_test` that a comparison of periods has, too."""

    score_bins: int | None


@shares(permutation_test, PeriodArguments)
def compare_periods(
    y_true: Column | None = None,
    y_pred: Column | None = None,
    *,
    period: Columns,
    periods: Groups | None = None,
    against: str = "previous",
    **given: Unpack[PeriodArguments],
) -> PeriodComparisonResult:
    """Test whether the gap between two groups changed from one period to another.

    Periods have different rows; sites or versions of a model that decided on different people are
    compared in the same way. If two models predict the same rows, use
    :func:`fairperm.compare_models`, which has far more power.

    Parameters
    ----------
    period : array-like or str
        The period of each row, of any hashable type.
    periods : sequence, optional
        The periods to compare, in their order. By default all, in the order of an ordered
        categorical or enumeration, or else sorted. Text with months, quarters or weeks, unless
        after their year, or with numbers of different lengths does not sort by time, and needs it.
        Rows of other periods are ignored.
    against : {"previous", "first"}
        Whether each period is compared with the one before it or with the first.
    control_features, stratum_weights
        Strata, as in :func:`fairperm.permutation_test`. They have the same weights in all periods:
        the change of the gap does not come from their sizes. By default a stratum has the
        Mantel–Haenszel weight of its rows of all periods, or none if some group has no rows in it
        in some period.
    cluster, split_clusters
        As in :func:`fairperm.permutation_test`. Whole clusters are exchanged between periods, so
        one with rows of several periods is an error unless clusters are split; rows of one cluster
        in several periods then count as independent.
    scheme : {"auto", "pooled", "within_label", "denominator"}
        Among which rows of a group periods are exchanged. "auto" is "denominator" for rates and
        f1_score, "within_label" for other metrics that depend only on the distribution given the
        label, such as roc_auc and balanced_accuracy, and "pooled" for all other metrics, and with
        clusters.
    variance : {"auto", "hall", "delta", "delong", "bootstrap", "fast_bootstrap"} or None
        "auto" is DeLong's variance for the AUC, "fast_bootstrap" for functions, "delta" for rates,
        and "hall" for all other metrics. Each group has a variance of its own in each period.
    alternative : {"two-sided", "symmetric", "greater", "less"}
        Whether the gap (first group minus second) differs between the periods, is greater in the
        later one, or is less.
    confidence_level : float
        As in :func:`fairperm.permutation_test`. Intervals are not adjusted for several changes.
    **given
        All others are those of :func:`fairperm.permutation_test`.

    Returns
    -------
    PeriodComparisonResult
        ``changes`` has a :class:`fairperm.PeriodChange` for each period but the first: its
        ``difference`` is the change of the gap, its ``adjusted_pvalue`` is adjusted by Holm's
        method for all of them, and :meth:`~fairperm.PeriodChange.test_margin` tests whether the
        change is within a margin. ``gaps`` has the test of the gap in each period.

    Notes
    -----
    The change of the gap is D = (θ_A^new − θ_A^old) − (θ_B^new − θ_B^old). Periods are exchanged
    within each group, among the rows of the denominator for rates, and D is studentized in every
    permutation by the variances of all four values.

    The null hypothesis is an equal change in both groups: the gap stays, whatever the groups'
    values and sizes in either period.

    Examples
    --------
    The false positive rate of group a falls from 15 % to 9 %, that of group b stays at 10 %.

    >>> import fairperm
    >>> fairperm.compare_periods(
    ...     y_true=[0] * 4000,
    ...     y_pred=([1] * 150 + [0] * 850 + [1] * 100 + [0] * 900)
    ...     + ([1] * 90 + [0] * 910 + [1] * 100 + [0] * 900),
    ...     sensitive_features=(["a"] * 1000 + ["b"] * 1000) * 2,
    ...     period=[2023] * 2000 + [2024] * 2000,
    ...     metric="false_positive_rate",
    ...     rng=0,
    ... )
    From 2023 to 2024 the gap in false positive rate, a − b, goes from +5.0 to −1.0 points;
    chance does not explain the change (p = 0.0016).
      2023         gap +0.050  95 % interval +0.021 to +0.079
      2024         gap −0.010  95 % interval −0.036 to +0.016
      2023 → 2024  −0.060  95 % interval −0.098 to −0.022  p = 0.0016
      validity     Asymptotically valid for the weak null (equal change in
                   false_positive_rate in both groups), and exact if false_positive_rate
                   changed in neither group.
      rows         4,000 used, 0 left out for missing values
    """
    given = complete(compare_periods, given)
    checks.choice("scheme", given["scheme"], _SCHEMES)
    checks.choice("variance", given["variance"], _VARIANCES)
    options = Options.check(given, fewest=0)
    checks.choice("against", against, AGAINST)
    if period is None:
        raise InputTypeError("period", "given", None)
    inputs = PeriodInputs.of(given, y_true=y_true, y_pred=y_pred, period=period)
    data, chosen = given["data"], get_metric(given["metric"]).for_arguments(inputs)
    table = read_table(inputs, chosen)
    pair = table.choose_groups(given["groups"])
    order = choose_periods(table, periods, declared_orders(data, period))
    result = compare_tables(table, chosen, pair, order, against, options)
    warn_of(note for note in result.notes if note not in table.notes)
    return replace(result, frame_library=library_of(data))


def choose_periods(
    table: Sample, given: object, orders: Sequence[Sequence[Hashable] | None]
) -> tuple[Hashable, ...]:
    """Return the periods to compare, in their order. Raises InputError for bad ones.

    Columns of periods may declare ``orders``.
    """
    known = table.periods
    if given is None:
        chosen = known
    else:
        found: list[Hashable] = []
        for one in given if isinstance(given, (list, tuple, np.ndarray)) else (given,):
            if one not in known:
                rule = f"made of values of {argument('period')}"
                raise unknown_name("periods", rule, one, known)
            found.append(known[known.index(one)])
        chosen = tuple(found)
        if len(chosen) < 2 or len(set(chosen)) < len(chosen):
            hint = "Leave it out to compare all periods."
            raise InputError("periods", "two or more different periods", given, hint)
    if len(chosen) < 2:
        got = Shown(f"1 ({listed(chosen)})")
        raise InputError("period", "a column of at least two periods", got)
    if len(chosen) > _MAX_PERIODS:
        hint = f"Round dates to months or years, or choose some by {argument('periods')}."
        rule = f"a column of at most {_MAX_PERIODS} periods"
        raise InputError("period", rule, Shown(f"{len(chosen):,}"), hint)
    return chosen if given is not None else tuple(sort_periods(chosen, orders))


def compare_tables(
    table: Sample,
    metric: AnyMetric,
    groups: Pair,
    periods: Sequence[Hashable],
    against: str,
    options: Options,
) -> PeriodComparisonResult:
    """Test the changes of the gap in a metric of a table whose rows have periods."""
    sample = PeriodSample.of(table, metric, groups, periods, options)
    gaps = {period: sample.test_gap(period) for period in periods}
    firsts = itertools.repeat(periods[0]) if against == "first" else periods
    pairs = [*zip(firsts, periods[1:], strict=False)]
    results = [sample.test_change(old, new) for old, new in pairs]
    adjusted = adjust_pvalues(np.array([one.pvalue for one in results]), "holm").tolist()
    changes = tuple(
        PeriodChange(
            **{one.name: getattr(result, one.name) for one in fields(result)}
            | sample.describe_change(result, pair, gaps),
            adjusted_pvalue=p,
        )
        for result, pair, p in zip(results, pairs, adjusted, strict=True)
    )
    return PeriodComparisonResult(
        metric=sample.metric.name,
        attribute=table.attribute,
        groups=groups,
        periods=tuple(periods),
        against=against,
        gaps=gaps,
        changes=changes,
        n_dropped=table.n_dropped,
        seed=options.seed,
        notes=_join_notes(changes),
        frame_library=None,
    )


@dataclass(frozen=True, slots=True)
class ChangePlan(Plan):
    """The plan of a test of a change, of which no scheme makes the weak null exact."""

    def ordering(self, alternative: str, *, strata: bool) -> str:
        del strata
        is_by_size = alternative == "two-sided" and self.metric.is_joint
        return "symmetric" if is_by_size else alternative


@dataclass(frozen=True, slots=True)
class PeriodSample:
    """The rows of two groups in the chosen periods, in strata that have rows of all of them.

    The strata have the same ``weights`` in every period.
    """

    table: Sample
    metric: AnyMetric
    groups: Pair
    periods: Sequence[Hashable]
    weights: Array
    options: Options
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        table: Sample,
        metric: AnyMetric,
        groups: Pair,
        periods: Sequence[Hashable],
        options: Options,
    ) -> PeriodSample:
        """Choose the rows. Raises UndefinedMetricError if a group has none in some period."""
        metric = metric.for_table(table, groups)
        side = _find_places(table.group, table.groups, groups)
        when = _find_places(_periods_of(table), table.periods, periods)
        kept = np.flatnonzero((side >= 0) & (when >= 0))
        table = replace(table.take(kept), groups=groups, periods=tuple(periods))
        table = replace(table, group=side[kept].astype(np.uint8), period=when[kept])
        _check_clusters(table)
        rows = _count_rows(table, metric)
        is_whole: NDArray[np.bool_] = np.asarray((rows > 0).all(axis=(1, 2)))
        used = is_whole
        if options.stratum_weights is not None:
            weights = read_stratum_weights(table, options.stratum_weights)
            used = weights > 0
        if not used.any() or not is_whole[used].all():
            raise _lack_rows(rows, used & ~is_whole, table, metric)
        if options.stratum_weights is None:
            with np.errstate(invalid="ignore"):
                first, second = rows.sum(axis=2).T
                weights = first * second / (first + second)
        notes = _note_strata(used, _rows_of(metric)) if options.stratum_weights is None else ()
        rank = np.cumsum(used) - 1
        table = table.take(np.flatnonzero(used[table.stratum]))
        strata = tuple(itertools.compress(table.strata, used.tolist()))
        table = replace(table, stratum=rank[table.stratum], strata=strata)
        return cls(table, metric, groups, periods, weights[used], options, notes)

    def test_gap(self, period: Hashable) -> PermutationTestResult:
        """Test the gap in one period."""
        table, options = self._of_period(period), self.options
        if options.alternative in checks.DIRECTIONS:
            options = replace(options, alternative="two-sided")  # only the change has a direction
        options = replace(options, stratum_weights=self._stratum_weights()).quiet()
        try:
            plan = Plan.for_table(self.metric, table, self.groups, options)
            return compare(table, plan, self.groups, options)
        except UndefinedMetricError as error:
            text = error.marked_text()
            if self.options.stratum_weights is None:  # the user gave strata, not their weights
                text = text.replace(argument("stratum_weights"), argument("control_features"), 1)
            raise UndefinedMetricError(f"{text} This is period {shown(period)}.") from error

    def test_change(self, old: Hashable, new: Hashable) -> PermutationTestResult:
        """Test the change of the gap: exchange the periods within each group."""
        table, options = self._by_period(), self.options
        plan = self._plan_change(table, (new, old))
        plan.check_direction(options.alternative)
        comparison = Comparison.of(table, plan, (new, old), None, all_strata=True)
        signs = (-1.0, 1.0) if self._is_second_smaller else (1.0, -1.0)
        weights = np.concatenate([sign * self.weights for sign in signs])
        count = partial(self._count_influential, plan, (old, new))
        comparison = replace(comparison, weights=weights)
        try:
            test = GapTest.of_comparison(comparison, count, plan, table, options)
        except UndefinedMetricError as error:  # the values are defined: the gaps were tested
            rule = "one whose change has a standard error above 0"
            got = Shown(f"{plan.metric.name} from period {shown(old)} to {shown(new)}")
            hint = "A standard error is 0 if no group varies in the metric within a period."
            raise UndefinedMetricError("metric", rule, got, hint) from error
        (tested,) = run([test], options.resampling)
        notes = (*self.notes, *test.sample["notes"])
        return replace(test, sample={**test.sample, "notes": notes}).result(tested)

    def test_sum(self) -> PermutationTestResult:
        """Test whether the gaps of all periods add up to zero: periods are strata that weigh alike.

        A gap h is larger in size than a gap g exactly if h − g and h + g have the same sign.
        """
        table, n = self.table, len(self.table.strata)
        strata = tuple(itertools.product(self.periods, table.strata))
        stratum = _periods_of(table).astype(np.intp) * n + table.stratum
        both = replace(table, stratum=stratum, strata=strata, period=None)
        weights = np.tile(self.weights, len(self.periods)).tolist()
        options = replace(self.options, stratum_weights=dict(zip(strata, weights, strict=True)))
        plan = Plan.for_table(self.metric, both, self.groups, options)
        return compare(both, plan, self.groups, options)

    def describe_change(
        self,
        result: PermutationTestResult,
        periods: Pair,
        gaps: Mapping[Hashable, PermutationTestResult],
    ) -> dict[str, Any]:
        """Return the fields of a change that are about the groups."""
        old, new = (gaps[period] for period in periods)
        changes = {group: self._changes(group, old, new) for group in self.groups}
        return {
            "metric": f"change in {self.metric.name}",
            "attribute": self.table.attribute,
            "groups": self.groups,
            "values": {group: _field(one, "change") for group, one in changes.items()},
            "standard_errors": {
                group: _field(one, "standard_error") for group, one in changes.items()
            },
            "counts": {
                group: {name: n + new.counts[group][name] for name, n in old.counts[group].items()}
                for group in self.groups
            },
            "n_strata": len(self.table.strata),
            "validity": self._validity(result),
            "binning_errors": None,
            "gap_old": self._gap(periods[0], old),
            "gap_new": self._gap(periods[1], new),
            "periods": periods,
            "group_changes": changes,
        }

    @property
    def _is_second_smaller(self) -> bool:
        """Whether the second group has fewer rows, in all or in its largest period.

        Names decide only if both are equal: their order changes no draw of a function.
        """
        sizes = np.zeros((2, len(self.periods)))
        np.add.at(sizes, (self.table.group, _periods_of(self.table)), self.table.count)
        first, second = (
            (one.sum(), one.max(), str(name)) for one, name in zip(sizes, self.groups, strict=True)
        )
        return second < first

    def _stratum_weights(self) -> Mapping[Hashable, float] | None:
        if len(self.table.strata) == 1:
            return None
        return dict(zip(self.table.strata, self.weights.tolist(), strict=True))

    def _of_period(self, period: Hashable) -> Sample:
        when = self.periods.index(period)
        return replace(
            self.table.take(np.flatnonzero(_periods_of(self.table) == when)), period=None
        )

    def _by_period(self) -> Sample:
        """Return the table with the periods as groups, and strata of each group by itself."""
        table, n = self.table, len(self.table.strata)
        side = table.group.astype(np.intp)
        side = 1 - side if self._is_second_smaller else side
        order = self.groups[::-1] if self._is_second_smaller else self.groups
        return replace(
            table,
            group=_periods_of(table).astype(np.uint8),
            groups=tuple(self.periods),
            stratum=side * n + table.stratum,
            strata=tuple(itertools.product(order, table.strata)),
            period=None,
        )

    def _plan_change(self, table: Sample, periods: Pair) -> ChangePlan:
        """Return the plan; a variance of one rate in both periods would not fit the weak null."""
        options = replace(self.options, stratum_weights=None)  # these are of other strata
        plan = Plan.for_table(self.metric, table, periods, options)
        variance = plan.metric.closed_variance if plan.is_binomial else plan.variance
        return ChangePlan(
            plan.metric, plan.scheme, variance, plan.weighted, plan.clustered, plan.is_chosen
        )

    def _count_influential(
        self, plan: ChangePlan, periods: Pair, observed: Estimates
    ) -> InfluentialRows:
        """Count the influential rows of each group in each of two periods; nothing is widened."""
        table = self.table
        names = [
            Shown(f"{shown(group)} in {shown(period)}")
            for group in self.groups
            for period in self.periods
        ]
        place = table.group.astype(np.intp) * len(self.periods) + _periods_of(table)
        chosen = tuple(
            names[side * len(self.periods) + self.periods.index(period)]
            for side in range(2)
            for period in periods
        )
        cells = replace(table, group=place, groups=tuple(names), period=None)
        comparison = Comparison.of(cells, plan, chosen, None)
        limit = self.options.is_limit or not plan.metric.is_rank  # counts the rows of rates too
        plan = replace(plan, is_chosen=True)
        return InfluentialRows.count(comparison, plan, observed, limit=limit)

    def _gap(self, period: Hashable, result: PermutationTestResult) -> Any:
        """Return the gap in one period; of a joint metric, that of each part."""
        if not result.is_joint:
            return result.difference
        table = self._of_period(period)
        weights = self._stratum_weights()
        options = replace(self.options, variance=None, stratum_weights=weights)
        plan = Plan.for_table(self.metric, table, self.groups, options)
        comparison = Comparison.of(table, plan, self.groups, weights)
        engine = comparison.engine(None)
        observed = engine.observed()
        gaps = observed.gaps(engine.weights).drop_rounding(comparison.scale(observed))
        names = (part.name for part in self.metric.parts)
        return dict(zip(names, gaps.difference[0].tolist(), strict=True))

    def _changes(
        self, group: Hashable, old: PermutationTestResult, new: PermutationTestResult
    ) -> Any:
        """Return the change of a group's value; of a joint metric, that of each part."""
        if not old.is_joint:
            both = [
                (one.values[group], one.standard_errors[group], one.counts[group])
                for one in (old, new)
            ]
            return self._change(self.metric.parts[0], *both)
        found = {}
        for part in self.metric.parts:
            both = []
            for one in (old, new):
                counts = {
                    name.removeprefix(f"{part.name} "): n for name, n in one.counts[group].items()
                }
                value, error = one.values[group][part.name], one.standard_errors[group][part.name]
                both.append((value, error, counts))
            found[part.name] = self._change(part, *both)
        return found

    def _change(self, part: Any, old: tuple[Any, ...], new: tuple[Any, ...]) -> GroupChange:
        """Return the change of one value, from values, errors and counts of both periods."""
        is_plain = self.table.weight is None and self.table.cluster is None
        exact = None
        if part.has_denominator and is_plain and len(self.table.strata) == 1:
            rates = Rates.of(new[2], old[2])
            exact = rates.binomials.probability(rates.statistic, "two-sided")
        return compare_values(part.span, old[0], new[0], math.hypot(old[1], new[1]), exact)

    def _validity(self, result: PermutationTestResult) -> str:
        """Return for which null the p-value is valid, and whether exactly or asymptotically."""
        name = self.metric.name
        where = " within every stratum" if len(self.table.strata) > 1 else ""
        weak = f"the weak null (equal change in {name} in both groups{where})"
        same = "the distribution of all columns"
        if result.scheme == Scheme.DENOMINATOR:
            same = name
        elif result.scheme == Scheme.WITHIN_LABEL:
            same = "the distribution of predictions given the label"
        if result.n_resamples == 0:
            return f"Asymptotically valid for {weak}: the normal limit, without permutations."
        if result.variance == Variance.FAST_BOOTSTRAP:
            return f"Asymptotically valid for {weak}; not exact for any null."
        exact = f"if {same} changed in neither group{where}"
        if result.variance is None:
            return (
                f"Exact {exact}. Not valid for {weak}: un-studentized, it can reject far too often."
            )
        is_hall = result.variance == Variance.HALL
        without = "; the statistic is without its skewness" if is_hall else ""
        return f"Asymptotically valid for {weak}, and exact {exact}{without}."


def split_by_period(table: Sample, group: Hashable, periods: Sequence[Hashable]) -> Sample:
    """Return the rows of one group, with the periods as groups."""
    place = _find_places(_periods_of(table), table.periods, periods)
    kept = np.flatnonzero((table.group == table.groups.index(group)) & (place >= 0))
    return replace(
        table.take(kept), group=place[kept].astype(np.uint8), groups=tuple(periods), period=None
    )


def _field(change: Any, name: str) -> Any:
    """Return a field of a group's change; of a joint metric, that of each part."""
    if isinstance(change, dict):
        return {part: getattr(one, name) for part, one in change.items()}
    return getattr(change, name)


def _periods_of(table: Sample) -> NDArray[np.integer[Any]]:
    if table.period is None:
        raise TypeError("the table was read without periods")
    return table.period


def _find_places(
    index: NDArray[np.integer[Any]], names: Sequence[Hashable], chosen: Sequence[Hashable]
) -> NDArray[np.intp]:
    """Return each row's place among the chosen names, and -1 for others."""
    place = np.full(len(names), -1, np.intp)
    place[[names.index(one) for one in chosen]] = np.arange(len(chosen))
    found: NDArray[np.intp] = place[index]
    return found


def _count_rows(table: Sample, metric: AnyMetric) -> Array:
    """Return the rows by stratum, group and period: those of a rate's denominator.

    With weights it is their sum.
    """
    counted = table.count.astype(np.float64)
    if table.weight is not None:
        counted = counted * table.weight
    if metric.sizes_groups:
        counted = counted * metric.parts[0].matrix(table.columns)[:, 1]
    rows = np.zeros((len(table.strata), 2, len(table.periods)))
    np.add.at(rows, (table.stratum, table.group, _periods_of(table)), counted)
    return rows


def _lack_rows(
    rows: Array, lacking: NDArray[np.bool_], table: Sample, metric: AnyMetric
) -> UndefinedMetricError:
    """Return the error for groups without rows in some period."""
    among = _rows_of(metric)
    hint = f"Leave the period out by {argument('periods')}, or take longer ones."
    if len(table.strata) > 1 and not lacking.any():
        rule = f"strata of which one has {among} of both groups in every period"
        got = Shown(f"{len(rows):,} strata without")
        return UndefinedMetricError("control_features", rule, got, "Use coarser strata.")
    stratum = int(np.flatnonzero(lacking)[0]) if lacking.any() else 0
    side, when = np.argwhere(rows[stratum] == 0)[0]
    where = f" and stratum {shown(table.strata[stratum])}" if len(table.strata) > 1 else ""
    got = Shown(
        f"no {among} of group {shown(table.groups[side])} in period "
        f"{shown(table.periods[when])}{where}"
    )
    rule = f"a column of periods that all have {among} of both groups"
    return UndefinedMetricError("period", rule, got, hint)


def _rows_of(metric: AnyMetric) -> str:
    """Return what :func:`_count_rows` counts."""
    return metric.parts[0].among if metric.sizes_groups else "rows"


def _note_strata(used: NDArray[np.bool_], among: str) -> tuple[str, ...]:
    n = int((~used).sum())
    if n == 0:
        return ()
    return (
        f"{n:,} of {len(used):,} strata {'has' if n == 1 else 'have'} no {among} of some group in "
        "some period. Strata weigh the same in all periods, so "
        f"{'it counts' if n == 1 else 'they count'} in none.",
    )


def _join_notes(changes: Sequence[PeriodChange]) -> tuple[str, ...]:
    """Return the notes of a single change; of several, those that all have, and one on the rest."""
    if len(changes) == 1:
        return changes[0].notes
    shared = [note for note in changes[0].notes if all(note in one.notes for one in changes)]
    own = [note for one in changes for note in one.notes if note not in shared]
    if not own:
        return tuple(shared)
    n = sum(any(note not in shared for note in one.notes) for one in changes)
    have = "has" if n == 1 else "have"
    return (*shared, f"{n} of {len(changes)} changes {have} notes, such as: {own[0]}")


def _check_clusters(table: Sample) -> None:
    """Raise InputError if a cluster has rows of several groups or periods."""
    if table.cluster is None:
        return
    cells = np.stack([table.cluster, table.group, _periods_of(table)]).astype(np.intp)
    which = np.unique(cells, axis=1)[0]
    split = np.unique(which[1:][which[1:] == which[:-1]])
    if split.size:
        rule = "of one group and one period: whole clusters are exchanged between periods"
        number = format_count(len(split), "cluster")
        name = table.clusters[split[0]] if table.clusters else split[0]
        got = Shown(f"{number} with rows of several, such as {format_name(name)}")
        hint = f"{argument('split_clusters', True)} makes a cluster of its rows of each."
        raise InputError("cluster", rule, got, hint)
