"""The answers of distances between distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_metric, format_number, name_group
from fairperm.hypothesis_tests.results.answers.words import (
    clearest_of,
    count_first,
    isolate,
    judge,
    level_of,
    sentence,
    state_p,
    within_strata,
)

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.distances import DistanceComparison, DistanceTestResult


def answer_distance(result: DistanceTestResult, one: DistanceComparison) -> str:
    """Return the distance between two groups, and whether chance explains it."""
    first, second = (isolate(name_group(result.attribute, group)) for group in one.groups)
    given = " given the label" if one.by_label is not None else ""
    head = (
        f"{within_strata(result.n_strata)}the {format_metric(result.distance)}{given} between "
        f"{first} and {second} is {format_number(one.distance)}, where chance alone makes "
        f"{format_number(one.expected)} on average"
    )
    stated = state_p(one.pvalue, one.adjusted_pvalue, one)
    is_shown = one.adjusted_pvalue <= level_of(result)
    end = "; a difference of the distributions is not ruled out"
    return sentence(head + judge(result, "it", stated, is_shown=is_shown, open_end=end))


def answer_distances(result: DistanceTestResult) -> str:
    """Return how many pairs of groups differ, and the clearest."""
    n = sum(one.adjusted_pvalue <= level_of(result) for one in result.comparisons)
    what = format_metric(result.distance)
    return count_first(
        n, len(result.comparisons), what, answer_distance(result, clearest_of(result.comparisons))
    )
