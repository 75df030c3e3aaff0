"""Which groups are compared: each two, each with a reference, or each with all others."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence

from fairperm._utils.checks import choice
from fairperm._utils.formatting import UNNAMED_ATTRIBUTE
from fairperm.data.arguments import Pairing
from fairperm.data.sample import MAX_NUMBERS, Sample
from fairperm.errors import InputError, argument, shown, unknown_name

_MAX_COMPARISONS = 10_000  # of one metric and attribute: more are a mistake, and take hours
_PAIRINGS: tuple[Pairing, ...] = ("pairs", "reference", "rest")


def check_pairing(compare: object, reference: object) -> Pairing:
    """Return which groups to compare. Raises InputError for a reference that is not used."""
    pairing = choice("compare", compare, _PAIRINGS)
    if reference is not None and pairing != "reference":
        raise InputError(
            f"{argument('reference')} can only be used with {argument('compare', 'reference')}; "
            f"got {argument('compare', pairing)}."
        )
    return pairing


def find_reference(
    table: Sample, groups: Sequence[Hashable], given: object, rule: str = "one of the groups"
) -> Hashable:
    """Return the group given as reference, by default the one with most rows."""
    if given is None:
        sizes = table.sizes()
        return max(groups, key=lambda group: sizes[group])
    try:
        hash(given)  # raises for arrays and frames
        return groups[groups.index(given)]
    except (ValueError, TypeError):
        raise unknown_name("reference", rule, given, groups) from None


def list_pairs(
    table: Sample,
    groups: Sequence[Hashable],
    compare: Pairing,
    reference: Hashable,
    attribute: str,
) -> Iterable[tuple[Hashable, Hashable]]:
    """Return the pairs to compare; the second one may be a name for all other groups."""
    # raises InputError for more groups than can be meant
    _check_number(table, groups, compare, shown(attribute or UNNAMED_ATTRIBUTE))
    if compare == "reference":
        return ((group, reference) for group in groups if group != reference)
    if compare == "rest" and len(groups) > 2:
        rest = "all others"
        while rest in table.groups:
            rest += "*"
        return ((group, rest) for group in groups)
    return itertools.combinations(groups, 2)


def _check_number(
    table: Sample, groups: Sequence[Hashable], compare: Pairing, attribute: str
) -> None:
    features, n = argument("sensitive_features"), len(groups)
    if table.has_measurements and n == len(table.groups):
        raise InputError(
            f"{features} must have at most {MAX_NUMBERS} groups named by numbers; got {n:,} in "
            f"{attribute}. Cut numbers into bands, or use {argument('correlation_test')}; numbers "
            f"that are names can be {argument('passed as text')}."
        )
    if (n * (n - 1) // 2 if compare == "pairs" else n) > _MAX_COMPARISONS:
        raise InputError(
            f"{features} must make at most {_MAX_COMPARISONS:,} comparisons; got {n:,} groups in "
            f"{attribute}. Merge groups, or use {argument('compare', 'rest')}."
        )
