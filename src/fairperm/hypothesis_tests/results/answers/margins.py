"""The answer of a test against a margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_interval, format_metric, format_number, name_of_gap
from fairperm.hypothesis_tests.results.answers.changes import describe_change
from fairperm.hypothesis_tests.results.answers.gaps import describe_gap
from fairperm.hypothesis_tests.results.answers.words import (
    has_clusters,
    is_word,
    isolate,
    join_values,
    level_of,
    own,
    possessive,
    sentence,
    state_p,
    unit_of_gap,
)

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.equivalence import EquivalenceTestResult


def answer_margin(result: EquivalenceTestResult) -> str:
    """Return whether a gap or ratio is shown to lie within its margin."""
    test = result.permutation
    unit = unit_of_gap(test)
    is_gap = result.scale == "difference"
    is_change = hasattr(test, "gap_old")
    names = [isolate(name) for name in test.names]
    if is_change:
        head, what = f"With the change, {describe_change(test, test.names)}", "the change"  # type: ignore[arg-type]
    elif is_gap:
        head, what = describe_gap(test, test.names), name_of_gap(*test.names)
    else:
        values = join_values(unit, (test.values[group] for group in test.groups))
        metric, ratio = format_metric(test.metric), format_number(result.estimate)
        head = f"{own(names[0], metric)} is {ratio} times {possessive(names[1])} ({values})"
        if not is_word(names[1]):
            head = f"{own(names[0], metric)} is {ratio} times that of {names[1]} ({values})"
        what = "the ratio"

    def write(limits: tuple[float, float]) -> str:
        return unit.interval(limits) if is_gap else format_interval(limits)

    low, high = result.bounds
    ends = f"between {write((low, high)).replace(' to ', ' and ')}"
    if is_gap and low == -high:
        ends = f"within ±{unit.size(high)}"
    if result.lower is None or result.upper is None:
        bound = high if result.lower is None else low
        one = unit.signed(bound) if is_gap else format_number(bound)
        ends = f"{'below' if result.lower is None else 'above'} {one}"
    stated = state_p(result.pvalue, result.pvalue, None)
    if has_clusters(test):
        stated += ", by clusters"
    if result.holds_at(level_of(result)):
        return sentence(f"{head}; {what} is shown to lie {ends} ({stated})")
    claim = "equivalence" if result.lower and result.upper else "non-inferiority"
    interval = write(result.confidence_interval)
    return sentence(
        f"{head}; {claim} not established: {what} is not shown to lie {ends} ({stated}), and "
        f"values of {interval} are not ruled out"
    )
