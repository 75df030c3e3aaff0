"""The answer of a search for subgroups."""

from __future__ import annotations

from fairperm._utils.formatting import format_count, format_metric, state_pvalue
from fairperm.hypothesis_tests.results.answers.words import join_values, unit_of


def answer_subgroups(
    n_found: int,
    n_all: int,
    metric: str,
    clearest: tuple[str, float, float, float, float] | None,
) -> str:
    """Return how many subgroups differ from the rest, and the clearest."""
    # that has a description, its value, that of all other rows, the gap and an adjusted p-value
    name = format_metric(metric)
    verb = "differs" if n_all == 1 else "differ"
    head = (
        f"{n_found:,} of {format_count(n_all, 'subgroup')} {verb} from all other rows in {name} by "
        "more than chance explains"
    )
    if clearest is None:
        return f"{head}; real gaps are not ruled out."
    description, value, rest, gap, p = clearest
    unit = unit_of(metric)
    values = join_values(unit, (value, rest))
    side = "higher" if gap > 0 else "lower"
    stated = state_pvalue(p, "adjusted p")
    return f"{head}. The clearest: {description}, {unit.size(gap)} {side} ({values}; {stated})."
