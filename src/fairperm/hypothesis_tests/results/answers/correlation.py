"""The answer of a correlation."""

from __future__ import annotations

from typing import Any

from fairperm._utils.formatting import format_interval, format_number
from fairperm.hypothesis_tests.results.answers.words import judge, level_of, sentence, state_p


def answer_correlation(method: str, correlation: float, result: Any) -> str:
    """Return a correlation, and whether chance explains it."""
    names = {"pearson": "Pearson's", "spearman": "Spearman's"}
    r = format_number(correlation, signed=True)
    rest = format_interval(result.confidence_interval, signed=True)
    return sentence(
        f"{names[method]} correlation of the {result.n:,} rows is {r}"
        + judge(
            result,
            "it",
            state_p(result.pvalue, result.pvalue, result),
            is_shown=result.pvalue <= level_of(result),
            open_end=f"; correlations from {rest} are not ruled out",
        )
    )
