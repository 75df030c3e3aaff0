"""The answer of all groups together."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_metric, name_group
from fairperm.hypothesis_tests.results.answers.words import (
    are_raw_values,
    isolate,
    judge,
    level_of,
    pluralize,
    sentence,
    state_p,
    unit_of,
    within,
)

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult


def answer_omnibus(result: OmnibusTestResult) -> str:
    """Return whether groups differ, and which two are furthest apart."""
    stated = state_p(result.pvalue, result.pvalue, result)
    what = "the differences"
    end = "; a difference is not ruled out"
    is_shown = result.pvalue <= level_of(result)
    judged = judge(result, what, stated, is_shown=is_shown, open_end=end)
    return sentence(f"{describe_groups(result)}{judged}")


def describe_groups(result: OmnibusTestResult) -> str:
    """Return how far groups are apart, and the names of the two that are furthest."""
    metric = format_metric(result.metric)
    among = f"{within(result)}the {len(result.groups)} groups"
    ends = furthest_apart(result)
    if ends is None:
        return f"{among} differ in {metric}"
    (low, least), (high, most) = ends
    unit = unit_of(result.metric, result.counts.values())
    weighted = any("weight" in one for one in result.counts.values())
    return (
        f"{among} have {'weighted ' if weighted else ''}{pluralize(metric)} from "
        f"{unit.value(least)} ({low}) to {unit.value(most)} ({high})"
        f"{', not standardized over strata' if are_raw_values(result) else ''}"
    )


def furthest_apart(
    result: OmnibusTestResult,
) -> tuple[tuple[str, float], tuple[str, float]] | None:
    """Return the groups with the lowest and the highest value; None for a joint metric."""
    values = {group: one for group, one in result.values.items() if isinstance(one, (int, float))}
    if len(values) < len(result.groups):
        return None

    def name(group: Hashable) -> str:
        return isolate(name_group(result.attribute, group))

    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return (name(low), values[low]), (name(high), values[high])
