"""The answers of changes of a gap: by a new model, or from one period to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_count, format_metric, name_of_gap
from fairperm.hypothesis_tests.results.answers.words import (
    CLEAREST,
    Names,
    are,
    embed,
    judge,
    level_of,
    say_open,
    sentence,
    state_p,
    unit_of_gap,
    within,
)

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.changes import (
        ChangeResult,
        GapChange,
        ModelComparisonResult,
        PeriodChange,
        PeriodComparisonResult,
    )


def answer_change(result: ModelComparisonResult) -> str:
    """Return how a new model changes the gap, and whether chance explains the change."""
    return _answer_change(result, "With the new model", result.pvalue)


def answer_period_change(result: PeriodChange, periods: Names) -> str:
    """Return how the gap changed from one period to another."""
    old, new = periods
    return _answer_change(result, f"From {old} to {new}", result.adjusted_pvalue)


def _answer_change(result: ChangeResult, when: str, adjusted: float) -> str:
    stated = state_p(result.pvalue, adjusted, result)
    judged = judge(
        result,
        "the change",
        stated,
        is_shown=adjusted <= level_of(result),
        open_end=say_open(result, result.confidence_interval, "change"),
    )
    return sentence(f"{when} {describe_change(result, result.names)}{judged}")


def describe_change(result: ChangeResult, names: Names) -> str:
    """Return the old and the new gap between two groups."""
    metric = format_metric(result.metric.removeprefix("change in "))
    unit = unit_of_gap(result)
    if result.part is not None:
        part = result.part.removeprefix("change in ")
        old, new = (one[part] for one in (result.gap_old, result.gap_new))
        metric = f"{metric} ({format_metric(part)})"
    else:
        old, new = result.gap_old, result.gap_new
    gap = name_of_gap(*names)
    start = within(result).lower()
    old_text, new_text = unit.signed(old).removesuffix(" points"), unit.signed(new)
    return f"{start}the gap in {metric}, {gap}, goes from {old_text} to {new_text}"


def answer_gap_change(change: GapChange) -> str:
    """Return what a new model does to a gap of an audit, and its verdict."""
    result = change.result
    if result is None or change.adjusted_pvalue is None:
        return sentence(f"The change is not judged: {change.reason}")
    text = f"With the new model {describe_change(result, result.names)}"
    stated = state_p(result.pvalue, change.adjusted_pvalue, result)
    if change.verdict == "inconclusive":
        interval = change.adjusted_interval
        open_end = "" if interval is None else say_open(result, interval, "change")
        judged = judge(result, "the change", stated, is_shown=False, open_end=open_end)
        return sentence(text + judged)
    return sentence(f"{text}; {change.reason}")


def answer_periods(result: PeriodComparisonResult, names: Sequence[str]) -> str:
    """Return in how many periods the gap changed; ``names`` are those of the periods."""
    first = result.gaps[result.periods[0]]
    by_period = dict(zip(result.periods, names, strict=True))

    def answer(change: PeriodChange) -> str:
        old, new = (by_period[one] for one in change.periods)
        return answer_period_change(change, (old, new))

    if len(result.changes) == 1:
        return answer(result.changes[0])
    shown = [one for one in result.changes if one.adjusted_pvalue <= level_of(first)]
    clearest = min(shown or result.changes, key=lambda one: one.adjusted_pvalue)
    n = format_count(len(result.changes), "change")
    gap = f"the gap in {format_metric(result.metric)}"
    head = f"{len(shown):,} of {n} of {gap} {are(len(shown))} more than chance explains"
    return f"{head}. {CLEAREST[bool(shown)]}: {embed(answer(clearest))}"
