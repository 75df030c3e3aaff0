"""The answer of a flip test."""

from __future__ import annotations

from typing import Any

from fairperm._utils.formatting import (
    format_count,
    format_level,
    format_percent,
    join_words,
    name_group,
)
from fairperm.hypothesis_tests.results.answers.words import isolate


def answer_flips(result: Any) -> str:
    """Return how often decisions change, and what their test says of the direction."""
    values = [isolate(name_group("", one)) for one in result.groups]
    named = " or ".join(values) if len(values) == 2 else join_words(values)
    low, high = map(format_percent, result.interval)
    level = format_level(result.confidence_level)
    rows = f"{result.n_changed:,} of {format_count(result.n, 'row')}"
    cause = f"Setting {isolate(result.feature)} to {named}"
    if not result.feature:
        cause = f"What differs between {' and '.join(values)}"
    head = (
        f"{cause} changes the decision for "
        f"{format_percent(result.share_changed)} of rows ({rows}; {level} interval {low} to {high})"
    )
    return f"{head}." if result.test is None else f"{head}. {result.test.answer}"
