"""The answer of an audit of selection."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fairperm._utils.formatting import (
    format_beside,
    format_name,
    format_percent,
    isolate_direction,
    join_words,
)
from fairperm.hypothesis_tests.results.answers.words import isolate, own


def answer_impact(
    attribute: str,
    names: tuple[object, object],
    rates: tuple[float, float],
    interval: tuple[float, float],
    evidence: Mapping[str, int],
    bound: float,
    to_decide: float | None,
) -> str:
    """Return how the group selected least stands beside the group selected most."""
    # ``evidence`` is the number of compared groups by what their intervals say of the bound
    low, best = (isolate_direction(format_name(one)) for one in names)
    ratio, limit = format_beside(rates[0] / rates[1], bound)
    n, are_equal = sum(evidence.values()), rates[0] == rates[1]
    head = f"{isolate(attribute)}: "
    if are_equal:
        head += f"all groups have the same selection rate ({format_percent(rates[0])}); "
    else:
        values = " v ".join(map(format_percent, rates))
        head += f"{own(low, 'selection rate')} is {ratio} times that of {best} ({values}); "
    whole = "the lowest interval, " if are_equal else "its interval, "
    whole += " to ".join(format_beside(end, bound)[0] for end in interval)
    if interval[1] < bound:
        found = f"{whole}, lies below {limit}"
    elif interval[0] >= bound:
        found = f"{whole}, does not go below {limit}"
    else:
        found = f"{whole}, leaves open whether the ratio is below {limit}"
        if to_decide is not None and math.isfinite(to_decide):
            people = float(f"{to_decide:.2g}")
            found += f" (about {people:,.0f} applicants with these rates would decide)"
    if n == 2:
        return f"{head}{found}."
    counts = [
        f"{number} {'is' if number == 1 else 'are'} {_EVIDENCE[word].format(limit)}"
        for word, number in evidence.items()
    ]
    if len(counts) == 1:
        return f"{head}{found}. All {counts[0].replace(' is ', ' are ')}."
    return f"{head}{found}. Of its {n} groups, {join_words(counts)}."


_EVIDENCE = {
    "below": "shown to be below {}",
    "at least": "shown to be at least {}",
    "undecided": "undecided",
}
