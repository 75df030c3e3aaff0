"""Which two of several groups are furthest apart."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from fairperm._utils.formatting import name_group
from fairperm.hypothesis_tests.results.answers.words import isolate

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult


def furthest_apart(
    result: OmnibusTestResult,
) -> tuple[tuple[str, float], tuple[str, float]] | None:
    """Return the groups with the lowest and the highest value; None for a joint metric."""
    values = {group: one for group, one in result.values.items() if isinstance(one, (int, float))}
    if len(values) < len(result.groups):
        return None

    def name(group: Hashable) -> str:
        return isolate(name_group(result.attribute, group))

    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return (name(low), values[low]), (name(high), values[high])
