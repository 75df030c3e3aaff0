"""The test of a change of the gap between two models of the same rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Places
from fairperm._utils.signatures import complete, shares
from fairperm.data.arguments import ChangeArguments, Column, Columns, ModelPair
from fairperm.data.reading import read_table
from fairperm.data.sample import Sample
from fairperm.errors import warn_of
from fairperm.hypothesis_tests.changes.group_changes import compare_values, mcnemar
from fairperm.hypothesis_tests.changes.matched_models import (
    MatchedChangeTest,
    make_matched_sum_test,
)
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.comparison_checks import REVERSED_MODELS, note_reversed_models
from fairperm.hypothesis_tests.groups import GapTest
from fairperm.hypothesis_tests.margins.paired_rates import (
    MIN_CHANGED_ROWS,
    FewChangedRows,
    PairedRate,
    PairedRates,
)
from fairperm.hypothesis_tests.matched import ABOUT_NAMES, MatchedTest, check_matched
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.results.changes import GroupChange, ModelComparisonResult
from fairperm.hypothesis_tests.run import Tested, run
from fairperm.metrics.changes import Change, columns_of_model, is_swapped_first
from fairperm.metrics.definition import AnyMetric, JointMetric, by_part
from fairperm.metrics.registry import get_metric


class ModelChangeArguments(ChangeArguments, total=False):
    """Those that :func:`fairperm.permutation_test` has, too."""

    matched: Columns | None
    names: Column | None


@shares(permutation_test, ModelChangeArguments)
def compare_models(
    y_true: Column | None = None,
    y_pred: Column | None = None,
    y_pred_new: Column | None = None,
    *,
    y_score_new: Column | None = None,
    threshold_new: float | None = None,
    **given: Unpack[ModelChangeArguments],
) -> ModelComparisonResult:
    """Test whether the gap between two groups changed from one model to another.

    Both models predict the same rows, so each row is compared with itself. Comparing two separate
    tests of the gap loses almost all power.

    Parameters
    ----------
    y_true, y_pred, y_score : array-like or str
        Labels, and predictions or scores of the old model, as in
        :func:`fairperm.permutation_test`.
    y_pred_new, y_score_new : array-like or str
        Predictions or scores of the new model, for the same rows in the same order.
    threshold, threshold_new : float, optional
        Turn scores into predictions, as in :func:`fairperm.permutation_test`; by default the
        thresholds of both models are equal.
    control_features, stratum_weights
        As in :func:`fairperm.permutation_test`. The Mantel–Haenszel weight of a stratum counts the
        denominator of a rate if the models share it, and otherwise rows.
    scheme : {"auto", "pooled", "within_label"}
        Among which rows group labels are exchanged. "auto" is "within_label" for metrics that
        depend on the distribution given the label, such as error rates and roc_auc, and "pooled"
        for all others, and with clusters.
    variance : {"auto", "hall", "delta", "delong", "bootstrap", "fast_bootstrap"} or None
        "auto" is DeLong's paired variance for the AUC, "fast_bootstrap" (of rows with the
        predictions of both models) for functions, and "hall" for all other metrics ("delta" with
        weights or clusters).
    alternative : {"two-sided", "symmetric", "greater", "less"}
        Whether the gap (first group minus second) differs between the models, is greater with the
        new one, or is less.
    **given
        All others are those of :func:`fairperm.permutation_test`.

    Returns
    -------
    ModelComparisonResult
        ``difference`` is the change of the gap: the new model's minus the old one's.
        :meth:`~fairperm.ModelComparisonResult.test_margin` tests whether it is within a margin.

    Notes
    -----
    The change of the gap is D = (θ_A^new − θ_A^old) − (θ_B^new − θ_B^old), the gap between the
    groups in the change. Group labels are exchanged over rows, each with the predictions of both
    models, and D is studentized in every permutation by the variance of the rows' *differences* of
    influences. For rates of a denominator that the models share, this is the permutation test of
    the rows' differences; precision, F1 and others go through influences, the AUC through the
    paired variance of DeLong, DeLong and Clarke-Pearson.

    With `matched`, the change of a set is compared with that of the same set in the other group,
    and D is studentized by the variance over sets.

    The null hypothesis is an equal change in both groups. Their values, their changes and how
    often the models disagree may all differ.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson. Comparing the areas under two or more correlated receiver
    operating characteristic curves: a nonparametric approach. Biometrics 44, 1988.

    McNemar. Note on the sampling error of the difference between correlated proportions or
    percentages. Psychometrika 12, 1947.

    Examples
    --------
    The new model removes 60 of 150 false alarms in group a, and 22 of 100 in group b.

    >>> import fairperm
    >>> fairperm.compare_models(
    ...     y_true=[0] * 2000,
    ...     y_pred=[1] * 150 + [0] * 850 + [1] * 100 + [0] * 900,
    ...     y_pred_new=[1] * 90 + [0] * 910 + [1] * 78 + [0] * 922,
    ...     sensitive_features=["a"] * 1000 + ["b"] * 1000,
    ...     metric="false_positive_rate",
    ... )
    With the new model the gap in false positive rate, a − b, goes from +5.0 to +1.2 points;
    chance does not explain the change (p < 0.0001).
      a           0.150 → 0.090  p < 0.0001, exact
      b           0.100 → 0.078  p < 0.0001, exact
      gap         +0.050 → +0.012
      difference  −0.038  95 % interval −0.057 to −0.020
      p-value     < 0.0001  two-sided, exact
      validity    Asymptotically valid for the weak null (equal change in
                  false_positive_rate; base rates may differ), and exact for the strong null
                  (the groups have equal distributions of predictions given the label); the
                  statistic is without its skewness.
      rows        2,000 used, 0 left out for missing values
    """
    given = complete(compare_models, given)
    options = Options.check(given, fewest=0)
    inputs = ModelPair.of(
        given,
        y_true=y_true,
        y_pred=y_pred,
        y_pred_new=y_pred_new,
        y_score_new=y_score_new,
        threshold_new=threshold_new,
    )
    single = get_metric(given["metric"]).for_arguments(inputs)
    single.for_arguments(inputs.new_model)  # a function refuses a threshold
    if inputs.matched is not None and inputs.names is None:
        check_matched(inputs, options)
    table = read_table(inputs, single.change())
    pair = table.choose_groups(given["groups"])
    result = compare_tables(table, single, pair, options)
    warn_of(
        note for note in result.notes if note not in (*table.notes, *REVERSED_MODELS, ABOUT_NAMES)
    )
    return result


def compare_tables(
    table: Sample, metric: AnyMetric, groups: tuple[Hashable, Hashable], options: Options
) -> ModelComparisonResult:
    """Test the change of the gap in a metric of a table that has the columns of both models."""
    test = make_change_test(table, metric, groups, options)
    (tested,) = run([test.gap_test], options.resampling)
    return test.result(tested)


def make_change_test(
    table: Sample, metric: AnyMetric, groups: tuple[Hashable, Hashable], options: Options
) -> ChangeTest | MatchedChangeTest:
    """Return the test of the change, inside matched sets if the table has them."""
    kind = ChangeTest if table.matched is None else MatchedChangeTest
    return kind.of(table, metric, groups, options)


@dataclass(frozen=True, slots=True)
class ChangeTest:
    """The studentized change of the gap, before its permutations.

    ``old`` and ``new`` are the values (by part and group) and the gaps (by part) of both models.
    The ``counts`` have the models in the user's order.
    """

    gap_test: GapTest
    names: tuple[str, ...]
    old: tuple[Array, Array]
    new: tuple[Array, Array]
    counts: dict[Hashable, dict[str, float]]

    @classmethod
    def of(
        cls, table: Sample, metric: AnyMetric, groups: tuple[Hashable, Hashable], options: Options
    ) -> ChangeTest:
        """Studentize the observed change. Raises UndefinedMetricError without a standard error."""
        plan = Plan.for_table(metric.change(), table, groups, options)
        plan.check_direction(options.alternative)
        test = GapTest.of(*_orient(table, plan, groups, options), groups, options)
        old, new = (
            _estimate_model(table, metric, plan, groups, options, new=side)
            for side in (False, True)
        )
        names = tuple(part.name.removeprefix("change in ") for part in plan.metric.parts)
        counts = Comparison.of(table, plan, groups, options.stratum_weights).whole.totals()
        return cls(test, names, old, new, counts)

    @property
    def is_joint(self) -> bool:
        return self.gap_test.plan.metric.is_joint

    @property
    def has_error(self) -> bool:
        return self.gap_test.plan.variance is not None

    def weigh_strata(self, table: Sample) -> dict[Hashable, float] | None:
        """Return the weights of a table's strata; None if those of one model's gap are the same."""
        # they are made of numbers of rows or clusters where the models' denominators differ
        comparison = self.gap_test.comparison
        units, part = comparison.units(), comparison.parts[0]
        if units.n_strata == 1 or not part.has_two_denominators:
            return None
        sizes = np.zeros((units.n_strata, 2))
        np.add.at(sizes, (units.stratum, units.group), units.count)
        weights = np.zeros(len(table.strata))
        weights[comparison.strata] = sizes.prod(axis=1) / sizes.sum(axis=1)
        return dict(zip(table.strata, weights.tolist(), strict=True))

    def result(self, tested: Tested) -> ModelComparisonResult:
        sample, comparison = self.gap_test.sample, self.gap_test.comparison
        values = self.old[0], self.new[0]
        reversed_models = note_reversed_models(self.gap_test.plan.metric, *values)
        names, groups = [part.name for part in comparison.parts], comparison.groups
        changes = {
            group: _changes(comparison, sample, side, *values) for side, group in enumerate(groups)
        }
        return tested.result(
            ModelComparisonResult,
            **{
                **sample,
                "counts": self.counts,
                "gap_variance": self._variance_at_margins(),
                "values": {
                    group: _by_part(names, [one.change for one in parts])
                    for group, parts in changes.items()
                },
                "notes": (*sample["notes"], *reversed_models),
            },
            gap_old=_by_part(self.names, self.old[1].tolist()),
            gap_new=_by_part(self.names, self.new[1].tolist()),
            group_changes={group: _by_part(self.names, parts) for group, parts in changes.items()},
        )

    def _variance_at_margins(self) -> PairedRates | FewChangedRows | None:
        """Return what tests at a margin take for the error; None for the sample's own."""
        comparison = self.gap_test.comparison
        if len(comparison.parts) > 1:
            return None
        (part,), rows = comparison.parts, comparison.rows
        if _is_rate_of_rows(part, comparison) and rows.n_strata == 1:
            return PairedRates(*(_count_changes(comparison, side) for side in range(2)))
        numbers = np.minimum(self.gap_test.effective[0], _count_changed_rows(comparison))
        least = int(np.argmin(numbers))
        if numbers[least] >= MIN_CHANGED_ROWS:
            return None
        unit = "row" if rows.cluster is None else "cluster"
        return FewChangedRows(part.name, comparison.groups[least], float(numbers[least]), unit)


def make_sum_test(
    table: Sample, metric: AnyMetric, groups: tuple[Hashable, Hashable], options: Options
) -> GapTest | MatchedTest:
    """Return the test of the sum of both models' gaps, before its permutations."""
    if table.matched is not None:
        return make_matched_sum_test(table, metric, groups, options)
    plan = Plan.for_table(metric.change(old=1), table, groups, options)
    return GapTest.of(*_orient(table, plan, groups, options), groups, options)


def _orient(
    table: Sample, plan: Plan, groups: tuple[Hashable, Hashable], options: Options
) -> tuple[Sample, Plan]:
    """Return the rows and the plan with the models in an order that only the compared rows decide.

    Swapping the models then changes the sign of every draw (not that of sums), and nothing else.
    Rows are counted by their contributions, as if these had been passed.
    """
    metric: Any = plan.metric
    is_chosen = np.isin(table.group, [table.groups.index(one) for one in groups])
    if len(table.strata) > 1:
        strata = Comparison.of(table, plan, groups, options.stratum_weights).strata
        is_chosen &= np.isin(table.stratum, strata)
    chosen = np.flatnonzero(is_chosen)
    if metric.is_function:
        matrix = metric.matrix(table.columns)
        if not _is_swapped_first(table, plan, groups, chosen, matrix, metric.swap(matrix)):
            return table, plan
        truth, old, new = metric.columns
        columns = {
            truth: table.columns[truth],
            old: table.columns[new],
            new: table.columns[old],
        }
        metric = replace(metric, sign=metric.old)
        return replace(table, columns=columns), replace(plan, metric=metric)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        matrices = [part.checked_matrix(table.columns) for part in metric.parts]
    swapped = [part.swap(one) for part, one in zip(metric.parts, matrices, strict=True)]
    if _is_swapped_first(table, plan, groups, chosen, np.hstack(matrices), np.hstack(swapped)):
        matrices = swapped
        parts = tuple(replace(part, sign=part.old) for part in metric.parts)
        metric = replace(metric, parts=parts) if metric.is_joint else parts[0]
    contributions = np.hstack(matrices)
    columns = {f"contribution {j}": one for j, one in enumerate(contributions.T)}
    if "y_true" in table.columns:
        columns["y_true"] = table.columns["y_true"]
    return replace(table, columns=columns, contributions=contributions), replace(
        plan, metric=metric
    )


def _is_swapped_first(
    table: Sample,
    plan: Plan,
    groups: tuple[Hashable, Hashable],
    chosen: Places,
    matrix: Array,
    swapped: Array,
) -> bool:
    """Whether the chosen rows of these groups with swapped models come first."""
    # equal rows may differ in their weights, in the number of rows of their group with which they
    # are exchanged, in the places of stratum and group, and in their clusters
    count = table.count[chosen]
    stratum = np.unique(table.stratum[chosen], return_inverse=True)[1].ravel()
    is_second = table.group[chosen] == table.groups.index(groups[1])
    block = plan.scheme.block(plan.metric, table.columns)[chosen].astype(np.intp)
    cell = 2 * (block + (block.max() + 1) * stratum) + is_second
    shared: list[NDArray[Any]] = [np.bincount(cell, count)[cell], stratum, is_second]
    if table.weight is not None:
        shared.insert(0, table.weight[chosen])
    here, there = ([one[chosen], *shared] for one in (matrix, swapped))
    if table.cluster is not None:
        which = table.cluster[chosen]
        for columns in (here, there):
            of_rows = (columns[0] * count[:, None]).T
            columns += [np.bincount(which, one)[which] for one in of_rows]
    return is_swapped_first(here, there, count)


def _estimate_model(
    table: Sample,
    metric: AnyMetric,
    plan: Plan,
    groups: tuple[Hashable, Hashable],
    options: Options,
    *,
    new: bool,
) -> tuple[Array, Array]:
    """Return one model's values by part and group, and its gap by part, as the change weighs it."""
    columns = columns_of_model(table.columns, new=new)
    table = replace(table, columns=columns)
    single = metric.for_table(table, groups)
    changes: tuple[Any, ...] = plan.metric.parts
    parts = tuple(
        _weigh_by_rows(one.single) if one.has_two_denominators else one.single for one in changes
    )
    single = parts[0] if len(parts) == 1 else replace(cast("JointMetric", single), parts=parts)
    pooled = Plan.choose(single, "pooled", None, weighted=plan.weighted, clustered=plan.clustered)
    comparison = Comparison.of(table, pooled, groups, options.stratum_weights)
    engine = comparison.engine(None)
    estimates = engine.observed()
    values = comparison.merge_strata(estimates, None).value[:, 0, 0]
    gaps = estimates.gaps(engine.weights).drop_rounding(comparison.scale(estimates))
    return values, gaps.difference[0]


def _weigh_by_rows(metric: Any) -> Any:
    """Return a rate whose strata count by their rows, not by its denominator."""
    renamed = {f"{name} of one model": one for name, one in metric.contributions.items()}
    return replace(metric, contributions=renamed, rate=None)


def _changes(
    comparison: Comparison, sample: Mapping[str, Any], side: int, old: Array, new: Array
) -> list[GroupChange]:
    """Return the change of each part in a group, with a paired test of its own."""
    errors, rows = sample["standard_errors"][comparison.groups[side]], comparison.whole.rows
    mine, found = rows.group == side, []
    n_clusters = None if rows.cluster is None else len(np.unique(rows.cluster[mine]))
    for place, (part, columns) in enumerate(by_part(comparison.parts)):
        exact = None
        if _is_rate_of_rows(part, comparison):
            exact = mcnemar(rows.contributions[mine, columns.start], rows.count[mine])
        error = errors[part.name] if len(comparison.parts) > 1 else errors
        values = float(old[place, side]), float(new[place, side])
        found.append(compare_values(part.span, *values, float(error), exact, n_clusters))
    return found


def _is_rate_of_rows(part: Any, comparison: Comparison) -> bool:
    """Whether models share the denominator of a rate, and rows have no weights and clusters."""
    is_rate = part.is_mean and part.single.is_rate
    return is_rate and comparison.rows.weight is None and comparison.rows.cluster is None


def _count_changes(comparison: Comparison, side: int) -> PairedRate:
    """Return how many rows of a group's denominator changed, in either direction."""
    rows, part = comparison.rows, cast("Change", comparison.parts[0])
    mine = rows.group == side
    moved, among = rows.contributions[mine].T
    moved, count = part.sign * moved, rows.count[mine]
    return PairedRate(
        float(count[moved > 0].sum()), float(count[moved < 0].sum()), float(count @ among)
    )


def _count_changed_rows(comparison: Comparison) -> Array:
    """Return on how many rows, or in how many clusters, of each group the models disagree."""
    rows, part = comparison.rows, cast("Change", comparison.parts[0])
    if part.is_function:  # whose contributions are ranks among the values of one model
        _, old, new = (rows.columns[name] for name in comparison.metric.columns)
        is_changed = np.asarray(old != new)
    else:
        swapped = part.swap(rows.contributions)
        is_changed = np.asarray((swapped != rows.contributions).any(axis=1))
    found = []
    for side in range(2):
        chosen = is_changed & (rows.group == side)
        if rows.cluster is None:
            found.append(rows.count[chosen].sum())
        else:
            found.append(len(np.unique(rows.cluster[chosen])))
    return np.array(found, np.float64)


def _by_part(names: Sequence[str], values: Sequence[Any]) -> Any:
    """Return the only value, or those of a joint metric by the names of its parts."""
    return values[0] if len(values) == 1 else dict(zip(names, values, strict=True))
