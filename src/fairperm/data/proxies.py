"""Groups known only as probabilities: a column for each group, made from a proxy.

The proxy is an address or a surname, say. What the probabilities say of a group rests on an
assumption that the data cannot check. The two sentences that say so stand in every result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.sorting import sort_key
from fairperm.data.columns import are_names, columns_of_frame
from fairperm.data.lazy.backends import is_lazy
from fairperm.errors import InputError, InputTypeError, Shown, argument, listed, shown

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from fairperm._utils.arrays import Array
    from fairperm.data.arguments import Inputs
    from fairperm.data.columns import Column, Source

NAME = "group_probabilities"
_OTHERS = (
    *("sensitive_features", "control_features", "split_clusters", "matched", "names"),
    *("sample_weight", "score_bins"),
)
_ROUNDED = 0.01  # published probabilities have three decimals: sums so near to 1 are divided out
_MAX_GROUPS = 20
_MIN_CONDITION = 1e-10  # smallest over largest eigenvalue of the groups' correlations


class Assumption(StrEnum):
    """What the gap between groups that are known only as probabilities rests on."""

    OUTCOME_GIVEN_GROUP = "outcome_given_group"
    """Within a group the outcome does not depend on the proxy: least squares."""
    GROUP_GIVEN_PROXY = "group_given_proxy"
    """Among people of equal proxy the outcome does not depend on the group: weighting."""

    @property
    def sentences(self) -> str:
        """What is assumed, and what happens if that fails."""
        if self == Assumption.OUTCOME_GIVEN_GROUP:
            return (
                "Groups are known only as probabilities, and this rests on an assumption: within a "
                "group, the outcome does not depend on the proxy (outcome_given_group, least "
                "squares). If it does, as where neighbourhoods matter within a group, the gap may "
                "be too large, too small, or on the wrong side."
            )
        return (
            "Groups are known only as probabilities, and this rests on an assumption: among people "
            "with the same proxy, the outcome does not depend on the group (group_given_proxy, "
            "weighting). If it does, as where two groups in one neighbourhood are treated "
            "differently, most of that gap is missed, and a third group can make one between two "
            "that are equal."
        )

    def __repr__(self) -> str:
        return repr(self.value)  # as users pass it, and as messages show it


def name_proxies(given: object, *, in_data: bool) -> tuple[str, dict[Hashable, object]]:
    """Return the name of the attribute, or "", and what was given for each group."""
    parts: Mapping[Any, Any]
    if in_data and are_names(given):
        parts = {name: name for name in given}
    elif isinstance(given, Mapping) or nw.dependencies.is_into_dataframe(given):
        parts = columns_of_frame(NAME, given)
        if len(parts) == 1:
            ((name, inner),) = parts.items()
            is_frame = nw.dependencies.is_into_dataframe(inner)
            if isinstance(inner, Mapping) or is_frame or (in_data and are_names(inner)):
                return str(name), name_proxies(inner, in_data=in_data)[1]
    else:
        rule = "a mapping of groups to columns of probabilities, or a frame of such columns"
        hint = f"With {argument('data')}, a list of column names will do."
        raise InputTypeError(NAME, rule, type(given), hint)
    if not 2 <= len(parts) <= _MAX_GROUPS:
        hint = "The probabilities of all groups add up to 1: pass a column for each of them."
        rule = f"given for 2 to {_MAX_GROUPS} groups"
        raise InputError(NAME, rule, Shown(listed(parts) or "none"), hint)
    return "", {name: parts[name] for name in sorted(parts, key=sort_key)}


def name_attribute(inputs: Inputs) -> str:
    """Return the name of the attribute, for tables."""
    name, _ = name_proxies(inputs.group_probabilities, in_data=inputs.names_columns)
    return name or NAME


def check_proxies(inputs: Inputs) -> None:
    """Raise InputError for arguments that have no meaning with probabilities, or need them."""
    if inputs.group_probabilities is None:
        raise InputError(f"{argument('proxy')} needs {argument(NAME)}.")
    for name in _OTHERS:
        given = getattr(inputs, name)
        if given is not None and given is not False:
            raise InputError(f"{argument(name)} cannot be used with {argument(NAME)}.")
    if inputs.missing == "group":
        rule, hint = f"'error' or 'drop' with {argument(NAME)}", "There is no group to name."
        raise InputError("missing", rule, inputs.missing, hint)
    if is_lazy(inputs.data):
        hint = "Collect the columns that the test needs."
        raise InputError("data", f"in memory with {argument(NAME)}", type(inputs.data), hint)


def read_probabilities(inputs: Inputs, source: Source) -> dict[Hashable, Column]:
    """Return the column of every group, in the order of their names."""
    _, given = name_proxies(inputs.group_probabilities, in_data=inputs.names_columns)
    found = {}
    for group, one in given.items():
        column = source.numbers(NAME, one)
        is_named = inputs.names_columns and isinstance(one, str)
        name = column.name if is_named else f"{argument(NAME)} of group {shown(group)}"
        found[group] = replace(column, name=name)
    return found


def check_probabilities(names: Sequence[str], groups: Sequence[Hashable], found: Array) -> Array:
    """Return the rows' probabilities, which add up to one. Raises InputError if they say nothing.

    ``names`` are those of the groups' columns in messages.
    """
    for name, column in zip(names, found.T, strict=True):
        outside = column[(column < 0) | (column > 1)]
        if outside.size:
            hint = "Divide percentages by 100." if outside.max() > 1 else ""
            raise InputError(name, "made of probabilities, from 0 to 1", float(outside[0]), hint)
    sums = found.sum(axis=1)
    if (off := np.abs(sums - 1) > _ROUNDED).any():
        rule = "made of probabilities that add up to 1 in every row"
        where = f"the first of {int(off.sum()):,} such sums in {len(sums):,} distinct rows"
        got = Shown(f"{sums[off][0]:.4g}, {where}")
        raise InputError(NAME, rule, got, "Add a column for all other groups.")
    found = found / sums[:, None]
    for group, column in zip(groups, found.T, strict=True):
        if not column.any():
            raise InputError(NAME, "above 0 for somebody in every group", group, "Leave it out.")
    scaled = found / np.sqrt((found**2).sum(axis=0))
    eigenvalues = np.linalg.eigvalsh(scaled.T @ scaled)
    if eigenvalues[0] <= _MIN_CONDITION * eigenvalues[-1]:
        rule = "different enough to tell the groups apart"
        text = "the same probabilities in every row"
        if np.ptp(found, axis=0).max() > 0:
            text = "columns of which one follows from the others"
        raise InputError(NAME, rule, Shown(text), "Merge groups, or use a better proxy.")
    return np.asarray(found)
