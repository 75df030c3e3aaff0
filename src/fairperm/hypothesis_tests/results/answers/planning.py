"""The answers of planning: power, sample sizes, detectable gaps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fairperm._utils.formatting import (
    format_level,
    format_metric,
    format_percent,
)
from fairperm.hypothesis_tests.results.answers.words import join_values, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def answer_power(power: float, rows: str, assumed: str) -> str:
    """Return the power of a sample size for a gap that is ``assumed``, in words."""
    return f"With {rows} the test detects {assumed} with {format_percent(power)} power."


def answer_rows(rows: str, power: float, assumed: str) -> str:
    """Return the sample size that a power takes."""
    return f"You need {rows} in total for {format_level(power)} power to detect {assumed}."


def answer_detectable(
    gap: float, rows: str, power: float, metric: str, value: float, reached: Iterable[float]
) -> str:
    """Return the smallest gap that a sample size detects, and the values that it is reached at."""
    level = format_level(power)
    if math.isinf(gap):
        return f"With {rows} the test detects no gap in {format_metric(metric)} with {level} power."
    unit = unit_of(metric)
    ends = [f"{unit.value(one)} or {'more' if one > value else 'less'}" for one in reached]
    values = f": {', and '.join(ends)}, against {unit.value(value)}" if ends else ""
    gap_text = assume(metric, (gap, 0.0), is_gap=True)
    return f"With {rows} the test detects {gap_text} with {level} power{values}."


def assume(metric: str, values: tuple[float, float], *, is_gap: bool = False) -> str:
    """Return the values of two groups that planning assumes, in words.

    Examples
    --------
    >>> assume("false_negative_rate", (0.1, 0.2))
    'a false negative rate of 10.0 % v 20.0 %'
    >>> assume("mean_absolute_error", (3.0, 0.0), is_gap=True)
    'a gap of 3.000 in mean absolute error'
    """
    name = format_metric(metric)
    if is_gap:
        return f"a gap of {unit_of(metric).size(values[0] - values[1])} in {name}"
    article = "an" if name[0] in "aeiou" else "a"
    return f"{article} {name} of {join_values(unit_of(metric), values)}"
