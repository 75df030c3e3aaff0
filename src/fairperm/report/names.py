"""Names of groups: short ones that no two groups share, and those that are easily confused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_name
from fairperm.errors import listed, shown

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from fairperm.hypothesis_tests.results.audits import GroupSummary


class ShortNames:
    """Short names of groups or attributes, no two of them equal."""

    def __init__(self, names: Iterable[Hashable]) -> None:
        self._short: dict[tuple[type, Hashable], str] = {}
        taken: set[str] = set()
        for key in dict.fromkeys((type(one), one) for one in names):
            text = unique = format_name(key[1])
            n = 2
            while unique in taken:
                unique, n = f"{text} ({n})", n + 1
            taken.add(unique)
            self._short[key] = unique

    def __getitem__(self, name: Hashable) -> str:
        key = (type(name), name)
        return self._short[key] if key in self._short else format_name(name)


def find_look_alikes(groups: Iterable[GroupSummary]) -> list[str]:
    """Return a note on the groups of an attribute whose names differ only in case or spaces."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in groups:
        if isinstance(one.group, str):
            key = one.attribute, " ".join(one.group.casefold().split())
            alike.setdefault(key, []).append(one.group)
    return [
        f"Groups of {shown(attribute)} have names that differ only in case or spaces; they are "
        f"treated as different groups: {listed(same)}."
        for (attribute, _), same in alike.items()
        if len(same) > 1
    ]
