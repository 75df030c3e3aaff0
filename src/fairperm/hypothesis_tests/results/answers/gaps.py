"""The answer of a gap between two groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_metric, format_number
from fairperm.hypothesis_tests.results.answers.words import (
    Names,
    are_raw_values,
    isolate,
    join_values,
    judge,
    level_of,
    own,
    say_open,
    sentence,
    state_p,
    than,
    unit_of_gap,
    within,
)

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.gaps import GapResult


def answer_gap(result: GapResult) -> str:
    """Return the gap of a single test, and whether chance explains it."""
    adjusted = getattr(result, "adjusted_pvalue", result.pvalue)
    p = state_p(result.pvalue, adjusted, result)
    judged = judge(
        result,
        "it",
        p,
        is_shown=adjusted <= level_of(result),
        open_end=say_open(result, result.confidence_interval),
    )
    return sentence(f"{describe_gap(result, result.names)}{judged}")


def describe_gap(result: GapResult, names: Names) -> str:
    """Return which group has the higher value, by how much, and both values."""
    metric, unit = format_metric(result.metric), unit_of_gap(result)
    first, second = map(isolate, names)
    start = within(result)
    overall = "not standardized, over all strata: " if are_raw_values(result) else ""
    if result.is_joint and result.part is None:  # a distance
        distance = format_number(result.difference)
        return f"{start}the {metric} between {first} and {second} is {distance}"
    if result.part is not None:
        parts = (result.values[group][result.part] for group in result.groups)
        values = f"{overall}{format_metric(result.part)}: {join_values(unit, parts)}"
        size = unit.size(result.difference)
        return f"{start}{first} and {second} differ in {metric} by up to {size} ({values})"
    if any("weight" in one for one in result.counts.values()):
        metric = f"weighted {metric}"
    order = (0, 1) if result.difference >= 0 else (1, 0)
    both = join_values(unit, (result.values[result.groups[place]] for place in order))
    values = f"{overall}{both}"
    if result.difference == 0:
        return f"{start}{first} and {second} have the same {metric} ({values})"
    high, low = ((first, second)[place] for place in order)
    size = unit.size(result.difference)
    mean = " on average" if result.n_strata > 1 else ""
    return f"{start}{own(high, metric)} is {size} higher{than(low)}{mean} ({values})"
