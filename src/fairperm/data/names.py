"""Names as a sample of those of their groups: whole names are exchanged, as clusters are.

Every matched set is asked with every name, so that what sets have in common cancels out of the
difference of any two names. A name's answers to one set count as their mean, and sets count alike
or by their weights: each row has its set's weight over the number of its name's rows in the set.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from fairperm._utils.arrays import Array, Codes, Places
from fairperm._utils.formatting import format_count
from fairperm.data.arguments import Inputs
from fairperm.data.sample import Sample
from fairperm.errors import InputError, Shown, argument, shown

MIN_NAMES = 4  # of each group: 3 and 3 can be exchanged in 20 ways, and two-sided p is at least 0.1
_MIN_SETS = 2


def check_names(inputs: Inputs) -> None:
    """Raise InputError for arguments that have no meaning with names."""
    if inputs.matched is None:
        hint = "the sets, such as prompts, in which all names occur"
        raise InputError(f"{argument('names')} needs {argument('matched')}: {hint}.")
    for name in ("cluster", "control_features", "split_clusters"):
        given = getattr(inputs, name)
        if given is not None and given is not False:
            raise InputError(
                f"{argument(name)} cannot be used with {argument('names')}: whole names are "
                "exchanged between groups."
            )


def exchange_names(table: Sample, name: Codes, names: tuple[Hashable, ...]) -> Sample:
    """Return the rows of the sets that have all names, with names in place of clusters."""
    # ``name`` is each row's index into ``names``
    if table.matched is None:
        raise TypeError("the table was read without matched sets")
    _check_groups(table, name, names)
    k = len(names)
    of_sets, which = np.unique(table.matched, return_inverse=True)
    which = which.ravel()
    rows = np.bincount(k * which + name, table.count, k * len(of_sets)).reshape(-1, k)
    whole = np.asarray((rows > 0).all(axis=1))
    n_whole, n_left_out = int(whole.sum()), int((~whole).sum())
    if n_whole < _MIN_SETS:
        rule = f"names of at least two sets with rows of all {k:,} names"
        got = Shown(f"{format_count(n_whole, 'such set')} of {len(of_sets):,}")
        hint = (
            "Ask every question with every name. Names that share no questions are independent: "
            f"without {argument('matched')}, pass them as the {argument('cluster')}."
        )
        raise InputError("matched", rule, got, hint)
    kept = np.flatnonzero(whole[which])
    weight = table.weight_of_each()[kept]
    if table.weight is not None:
        _check_weights(weight, which[kept])
    left_out = ""
    if n_left_out:
        lack = "lacks" if n_left_out == 1 else "lack"
        were = "was" if n_left_out == 1 else "were"
        left_out = f" {format_count(n_left_out, 'set')} that {lack} a name {were} left out."
    return replace(
        table.take(kept),
        weight=weight / rows[which[kept], name[kept]],
        cluster=name[kept],
        clusters=names,
        matched=None,
        notes=(
            *table.notes,
            f"Clusters are names: whole names are exchanged between the groups, in the "
            f"{n_whole:,} sets that have all {k:,}.{left_out}",
        ),
    )


def _check_groups(table: Sample, name: Codes, names: tuple[Hashable, ...]) -> None:
    """Raise InputError if a name is in several groups, or a group has too few."""
    pairs = np.unique(np.stack([name, table.group]).astype(np.intp), axis=1)
    several = np.flatnonzero(np.bincount(pairs[0], minlength=len(names)) > 1)
    if several.size:
        rule = "of one group each"
        more = f", and {format_count(len(several) - 1, 'more')} like it" if len(several) > 1 else ""
        got = Shown(f"{shown(names[several[0]])} with rows of several{more}")
        raise InputError("names", rule, got)
    per_group = np.bincount(pairs[1], minlength=len(table.groups))
    least = int(per_group.argmin())
    if per_group[least] < MIN_NAMES:
        rule = f"at least {MIN_NAMES} of each group"
        few = format_count(int(per_group[least]), "name")
        got = Shown(f"{few} of {shown(table.groups[least])}")
        hint = (
            "Exchanging fewer cannot show a difference between the groups at level 0.05. Without "
            f"{argument('names')} the result is about these names."
        )
        raise InputError("names", rule, got, hint)


def _check_weights(weight: Array, which: Places) -> None:
    """Raise InputError if rows of one set weigh differently."""
    order = np.lexsort([weight, which])
    same = which[order][1:] == which[order][:-1]
    if n := len(np.unique(which[order][1:][same & (np.diff(weight[order]) > 0)])):
        rule = f"alike in all rows of one set of {argument('matched')}"
        got = Shown(f"several in {format_count(n, 'set')}")
        hint = "A weight says how much its set counts."
        raise InputError("sample_weight", rule, got, hint)
