"""How far the groups' shares at the top of a list are from those of the whole list: NDKL.

Down to place i of a list, let group g have c_g items, and let q_g be its share of the whole list.
The divergence of the shares down to i is

    Σ_g c_g/i · log(c_g/i / q_g) = S_i/i − log i,  with S_i = Σ_g (c_g log c_g − c_g log q_g).

An item at place j, with c items of its group g before it, adds the term (c + 1) log(c + 1) −
c log c − log q_g to S_j and all later ones. With weights w_i of the places, NDKL is therefore the
sum over items of this term times Σ_{i≥j} w_i/i, minus Σ_i w_i log i: one product for each item, for
any number of groups.

Labels are exchanged within blocks: lists, or strata of a list. A list goes through all draws before
the next one does, so that it stays in the processor's cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Integers, Words
from fairperm.engines.kernels.kernel import kernel
from fairperm.engines.kernels.shuffles import shuffle

Labels = NDArray[np.uint32]  # the groups of a list are numbered from 0 in each list


class WalkedLists(NamedTuple):
    """Lists from the top, whatever the labels of their items.

    Starts are followed by an end: ``starts`` of lists among the items, ``block_starts`` of blocks
    among the labels, ``first_blocks`` and ``first_groups`` of lists among the blocks and groups.
    The i-th item has the ``label[i]``-th label.
    """

    weight: Array  # Σ_{i≥j} w_i/i of each item
    constant: Array  # Σ_i w_i log i of each list
    label: Words
    starts: Integers
    block_starts: Integers
    first_blocks: Integers
    log_shares: Array  # of the groups of each list
    first_groups: Integers
    steps: Array  # from c log c to (c + 1) log(c + 1)


@kernel
def sum_weights(weight: Array, starts: Integers, logs: Array) -> tuple[Array, Array]:
    """Return Σ_{i≥j} w_i/i of each item, and Σ_i w_i log i of each list."""
    below, constant = np.empty(len(weight)), np.zeros(len(starts) - 1)
    for which in range(len(constant)):
        total = 0.0
        for place in range(starts[which + 1] - starts[which], 0, -1):
            i = starts[which] + place - 1
            total += weight[i] / place
            below[i] = total
            constant[which] += weight[i] * logs[place]
    return below, constant


@kernel
def _walk(lists: WalkedLists, which: int, labels: Labels, seen: Words) -> float:
    """Return the divergence of a list; ``seen`` is room to count its groups in."""
    # unsigned numbers need no test for places that count from the end
    first = np.uint64(lists.first_groups[which])
    seen[: lists.first_groups[which + 1] - lists.first_groups[which]] = 0
    total: float = -lists.constant[which]
    for i in range(np.uint64(lists.starts[which]), np.uint64(lists.starts[which + 1])):
        group = np.uint64(labels[lists.label[i]])
        before = seen[group]
        total += lists.weight[i] * (lists.steps[before] - lists.log_shares[first + group])
        seen[group] = before + np.uint64(1)
    return total


@kernel
def _make_room(lists: WalkedLists) -> Words:
    """Return room to count the groups of any list in."""
    return np.empty(np.diff(lists.first_groups).max(), np.uint64)


@kernel
def list_divergences(lists: WalkedLists, labels: Labels) -> Array:
    """Return the divergence of each list."""
    seen = _make_room(lists)
    found = np.empty(len(lists.starts) - 1)
    for which in range(len(found)):
        found[which] = _walk(lists, which, labels, seen)
    return found


@kernel
def random_divergences(lists: WalkedLists, labels: Labels, draws: int, state: Words) -> Array:
    """Return the sum over lists in each of so many random permutations; ``state`` moves on."""
    seen = _make_room(lists)
    labels, found = labels.copy(), np.zeros(draws)
    for which in range(len(lists.starts) - 1):
        blocks = range(lists.first_blocks[which], lists.first_blocks[which + 1])
        for draw in range(draws):
            for b in blocks:
                shuffle(labels[lists.block_starts[b] : lists.block_starts[b + 1]], state)
            found[draw] += _walk(lists, which, labels, seen)
    return found


@kernel
def all_divergences(lists: WalkedLists, labels: Labels, permutations: int) -> Array:
    """Return the same for each permutation, from labels in ascending order in every block."""
    seen = _make_room(lists)
    labels, found = labels.copy(), np.zeros(permutations)
    for number in range(permutations):
        for which in range(len(lists.starts) - 1):
            found[number] += _walk(lists, which, labels, seen)
        for b in range(len(lists.block_starts) - 1):  # like the digits of a number
            if _advance(labels[lists.block_starts[b] : lists.block_starts[b + 1]]):
                break
    return found


@kernel
def _advance(labels: Labels) -> bool:
    """Move on to the next arrangement in lexical order; from the last to the first, and False."""
    last = len(labels) - 1
    i = last - 1
    while i >= 0 and labels[i] >= labels[i + 1]:
        i -= 1
    is_next = i >= 0
    if is_next:
        j = last
        while labels[j] <= labels[i]:
            j -= 1
        labels[i], labels[j] = labels[j], labels[i]
    low, high = i + 1, last
    while low < high:
        labels[low], labels[high] = labels[high], labels[low]
        low, high = low + 1, high - 1
    return is_next
