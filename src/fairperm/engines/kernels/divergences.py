"""How far the groups' shares at the top of a list are from those of the whole list: NDKL.

Down to place i of a list, let group g have c_g items, and the share q_g of all items of the list.
The divergence of the shares down to i is

    Σ_g c_g/i · log(c_g/i / q_g) = S/i − log i,  with S = Σ_g (c_g log c_g − c_g log q_g),

and an item changes one term of S only: a walk down the list costs the same for any number of
groups. NDKL is the weighted mean over all places.

Labels are exchanged within blocks: lists, or strata of a list. A list goes through all draws before
the next one does, so that it stays in the processor's cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairperm.engines.kernels.kernel import kernel
from fairperm.engines.kernels.shuffles import shuffle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Places = NDArray[np.int64]
    Labels = NDArray[np.int32]  # the groups of a list are numbered from 0 in each list


class WalkedLists(NamedTuple):
    """Lists from the top, whatever the labels of their items.

    Starts are followed by an end: ``starts`` of lists among the items, ``block_starts`` of blocks
    among the labels, ``first_blocks`` and ``first_groups`` of lists among the blocks and their
    groups. The i-th item has the ``label[i]``-th label.
    """

    weight: Array  # of the shares down to each item
    label: Places
    starts: Places
    block_starts: Places
    first_blocks: Places
    log_shares: Array  # of the groups of each list
    first_groups: Places
    logs: Array  # of 0 (as 0), 1, 2, …
    steps: Array  # from c log c to (c + 1) log(c + 1)


@kernel
def _walk(lists: WalkedLists, which: int, labels: Labels, seen: Places) -> float:
    """Return the divergence of a list; ``seen`` is room to count its groups in."""
    start, first = lists.starts[which], lists.first_groups[which]
    seen[: lists.first_groups[which + 1] - first] = 0
    total = passed = 0.0
    for i in range(start, lists.starts[which + 1]):
        group = labels[lists.label[i]]
        passed += lists.steps[seen[group]] - lists.log_shares[first + group]
        seen[group] += 1
        place = i - start + 1
        total += lists.weight[i] * (passed / place - lists.logs[place])
    return total


@kernel
def list_divergences(lists: WalkedLists, labels: Labels) -> Array:
    """Return the divergence of each list."""
    seen = np.empty(np.diff(lists.first_groups).max(), np.int64)
    found = np.empty(len(lists.starts) - 1)
    for which in range(len(found)):
        found[which] = _walk(lists, which, labels, seen)
    return found


@kernel
def random_divergences(
    lists: WalkedLists, labels: Labels, draws: int, state: NDArray[np.uint64]
) -> Array:
    """Return the sum over lists in each of so many random permutations; ``state`` moves on."""
    seen = np.empty(np.diff(lists.first_groups).max(), np.int64)
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
    seen = np.empty(np.diff(lists.first_groups).max(), np.int64)
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
