"""The answers of ranked lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_metric, format_number
from fairperm.hypothesis_tests.results.answers.words import (
    clearest_of,
    count_first,
    judge,
    level_of,
    sentence,
    state_p,
)

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.rankings import ListDivergence, RankingTestResult


def answer_ranking(result: RankingTestResult) -> str:
    """Return how many gaps are larger than chance explains, and the clearest."""
    clearest = clearest_of(result.comparisons)
    n = sum(one.adjusted_pvalue <= level_of(one) for one in result.comparisons)
    return count_first(n, len(result.comparisons), format_metric(result.metric), clearest.answer)


def answer_divergence(result: ListDivergence) -> str:
    """Return how far the tops of lists are from the groups' shares of them."""
    head = (
        "At the top of the lists groups have other shares than in the whole lists: "
        f"{format_metric(result.metric)} is {format_number(result.value)}, where random order "
        f"makes {format_number(result.expected)} on average"
    )
    stated = state_p(result.pvalue, result.pvalue, result)
    is_shown = result.pvalue <= level_of(result)
    end = "; a difference is not ruled out"
    return sentence(head + judge(result, "it", stated, is_shown=is_shown, open_end=end))
