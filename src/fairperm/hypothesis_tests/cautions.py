"""Notes and errors on samples that do not show well how far chance goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.formatting import count_units, drop_decimals, format_percent, singular
from fairperm.engines.estimates import is_contrast
from fairperm.errors import Note, Shown, UndefinedMetricError, argument, shown
from fairperm.hypothesis_tests.small_groups import labels

if TYPE_CHECKING:
    from fairperm._utils.arrays import Array
    from fairperm.hypothesis_tests.comparison import Comparison
    from fairperm.hypothesis_tests.plan import Plan

_MAX_SD_BETWEEN_OUTCOMES = 2.0  # standard deviations between mean outcomes
_HEAVY_TIES = 0.5  # share of a group's bootstrap samples that have one value


def missing_error(comparison: Comparison, plan: Plan) -> UndefinedMetricError:
    """Return the error for groups without a studentized gap."""
    name = plan.metric.name
    if plan.is_chosen:
        rule = f"one whose standard error of {name} is defined, and not zero"
        closed = plan.has_closed_form
        hint = "The groups are too small for it." if closed else "Use 'auto', or larger groups."
        return UndefinedMetricError("variance", rule, plan.variance, hint)
    sizes = [counts["rows"] for counts in comparison.totals().values()]
    least, few = int(np.argmin(sizes)), ""
    if plan.metric.is_rank:
        of_label = labels(comparison)
        least = int(of_label.min(axis=1).argmin())
        few = f", {of_label[least, 1]:,} of them positive"
        if plan.metric.classes:
            rarest = int(of_label[least].argmin())
            of_class = shown(plan.metric.classes[rarest])
            few = f", {of_label[least, rarest]:,} of them of class {of_class}"
    units, name_of_group = comparison.rows.units, shown(drop_decimals(comparison.groups[least]))
    group = f"group {name_of_group} of {count_units(sizes[least], units)}{few}"
    rule = "one whose standard error is defined, and not zero"
    hint = "The groups are too small for it, or do not vary in it."
    if comparison.rows.n_strata > 1:
        hint = (
            f"One stratum with a single {singular(units)} of a group that counts has no variance, "
            f"and neither have {units} that do not vary: use coarser strata."
        )
    return UndefinedMetricError("metric", rule, Shown(f"{name} with {group}"), hint)


def note_outcomes_apart(comparison: Comparison, alternative: str) -> list[str]:
    """Return a note if outcomes of the groups are too far apart for the tails of a test of R².

    Permuted groups mix the outcomes of both, and their R² is then skewed in another way.
    """
    if comparison.metric.name != "r2_score" or alternative == "symmetric":
        return []
    rows = comparison.units()
    _, outcomes, squares, n = (
        np.bincount(rows.group, rows.count * column, len(comparison.groups))
        for column in rows.contributions.T
    )
    means = outcomes / n
    apart = np.ptp(means) / np.sqrt(max(squares / n - means**2))
    if not apart > _MAX_SD_BETWEEN_OUTCOMES:
        return []
    return [
        Note(
            f"The groups' mean outcomes are {apart:.1f} standard deviations apart: permuted values "
            "of r2_score are then skewed in another way, and the test may reject too often. "
            f"Use {argument('alternative', 'symmetric')}."
        )
    ]


def note_zero_error(metric: str) -> str:
    """Return the note on a standard error of zero."""
    return (
        f"The standard error of {metric} is zero in this sample, which therefore does not show how "
        "far chance goes: the confidence interval is meaningless."
    )


def note_ties(comparison: Comparison, ties: Array) -> list[str]:
    """Return a note if much the same bootstrap values make a group's standard error.

    ``ties`` are the shares of bootstrap samples with the most common value, by part and group.
    """
    part, side = np.unravel_index(int(ties.argmax()), ties.shape)
    share = float(ties[part, side])
    if share < _HEAVY_TIES:
        return []
    of_group = f"of group {shown(drop_decimals(comparison.groups[side]))}"
    if is_contrast(comparison.weights):
        of_group = "of a group"
    metric = comparison.parts[part]
    the = "the " if metric.compares_models else ""
    return [
        f"{the.capitalize()}{metric.name} has one and the same value in {format_percent(share)} of "
        f"the bootstrap samples {of_group}: with half or more its standard error is unreliable, "
        "and the test may reject too often, or hardly ever."
    ]


def note_bias_of_strata(plan: Plan, bias: float, *, has_few_rows: bool) -> str:
    """Return the note on a gap whose permutations are not centred at zero.

    With weights or clusters it is few of them that make the bias, which exchanging them does not
    show as it is.
    """
    metric = plan.metric
    if plan.weighted or plan.clustered:
        units = "weights" if plan.weighted else "cluster sizes"
        return (
            f"Permuted gaps in {metric.name} are centred at about {bias:+.2g}, not at 0: {units} "
            "differ too much within strata, and the test may reject too often."
        )
    allowed = " The p-value and the interval allow for it, the difference does not."
    instead = (
        " Test jaccard_score instead: it has no such bias, and groups that are equal in it are "
        "equal in f1_score."
    )
    return (
        f"Strata are small and groups differ in size there, which biases the gap in {metric.name} "
        f"by about {bias:+.2g}.{'' if has_few_rows else allowed}"
        f"{instead if metric.name == 'f1_score' else ''}"
    )
