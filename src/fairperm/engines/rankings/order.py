"""The engine of shares at the top of lists: labels of all groups are exchanged within each list.

The divergence of a list does not depend on which group is which, so groups are numbered anew in
each list, by their items. Then neither the names of groups, queries and strata nor the order of
rows change a draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Codes, Places
from fairperm._utils.sorting import content_keys, order_by, run_numbers, run_starts

if TYPE_CHECKING:
    from fairperm.engines.kernels.divergences import WalkedLists


@dataclass(frozen=True, slots=True)
class DivergenceEngine:
    """Lists, their mean divergence, and the labels of their items, ascending in each block.

    Draws start from ascending labels, so that it does not matter which of two lists with the same
    numbers of labels comes first.
    """

    lists: WalkedLists
    observed: float
    labels: NDArray[np.uint32]

    block_size = 64  # draws

    @classmethod
    def of(cls, query: Codes, stratum: Codes, group: Codes, weight: Array) -> DivergenceEngine:
        """Order the lists by their items, which are sorted by query and from the top of its list.

        ``weight`` is that of the shares of groups among the items down to each.
        """
        from fairperm.engines.kernels.divergences import list_divergences

        starts = run_starts(query)
        which = run_numbers(starts, len(query))
        block = _number_within(which, stratum, lambda first, _: [first])
        label = _number_within(
            which, group, lambda first, pair: [which[first], *content_keys(pair, block + 1.0)]
        )
        place = np.arange(len(which)) - starts[which]
        keys = content_keys(which, place * (block.max() + 1.0) + block)
        keys += content_keys(which, block * (label.max() + 1.0) + label)
        keys.append(list_divergences(*_walk_lists(which, block, label, weight)))
        rank = np.argsort(order_by(keys))[which]
        order = np.argsort(rank, kind="stable")
        lists, labels = _walk_lists(rank[order], block[order], label[order], weight[order])
        # one by one, as in the draws: NumPy's sum would round in another way
        total = np.cumsum(list_divergences(lists, labels))[-1]
        of_label = np.repeat(np.arange(len(lists.block_starts) - 1), np.diff(lists.block_starts))
        return cls(lists, float(total / len(keys[0])), labels[np.lexsort((labels, of_label))])

    @property
    def n_lists(self) -> int:
        """The number of lists."""
        return len(self.lists.starts) - 1

    def permuted(self, n: int, rng: np.random.Generator) -> Array:
        """Return the mean divergence of ``n`` random permutations."""
        from fairperm.engines.kernels.divergences import random_divergences

        state = rng.integers(2**64, size=4, dtype=np.uint64)
        return random_divergences(self.lists, self.labels, n, state) / self.n_lists

    def enumerated(self, most: int) -> Array | None:
        """Return the same for every permutation, if there are no more than ``most``."""
        from fairperm.engines.kernels.divergences import all_divergences

        sizes = np.diff(self.lists.block_starts)
        starts = run_starts(np.repeat(np.arange(len(sizes)), sizes), self.labels)
        counts = np.diff(np.append(starts, len(self.labels)))
        ways, alike = (math.fsum(map(math.lgamma, (one + 1.0).tolist())) for one in (sizes, counts))
        if ways - alike > math.log(most + 0.5):
            return None
        permutations = round(math.exp(ways - alike))
        return all_divergences(self.lists, self.labels, permutations) / self.n_lists


def _number_within(
    which: Places, values: Codes, make_keys: Callable[[Places, Places], list[NDArray[Any]]]
) -> Places:
    """Return the values as numbers from 0 in each list."""
    # ``which`` numbers the lists. Pairs of a list and a value are put in the order of the keys that
    # are made of their first items and of the pair of each item.
    _, first, pair = np.unique(
        which * (int(values.max()) + 1) + values, return_index=True, return_inverse=True
    )
    rank = np.argsort(order_by(make_keys(first, pair)))
    number: Places = rank[pair] - run_starts(which[first])[which]
    return number


def _walk_lists(
    which: Places, block: Places, label: Places, weight: Array
) -> tuple[WalkedLists, NDArray[np.uint32]]:
    """Return the lists, and the labels of their items, block by block."""
    from fairperm.engines.kernels.divergences import WalkedLists, sum_weights

    n_items = len(which)
    starts = np.append(run_starts(which), n_items)
    sizes = np.diff(starts)
    by_block = np.lexsort((block, which))
    blocks = run_starts(which[by_block], block[by_block])
    n_groups = int(label.max()) + 1
    pairs, counts = np.unique(which * n_groups + label, return_counts=True)
    numbers = np.arange(sizes.max() + 1)
    logs = np.log(np.maximum(numbers, 1))
    below, constant = sum_weights(np.ascontiguousarray(weight), starts, logs)
    lists = WalkedLists(
        weight=below,
        constant=constant,
        label=np.argsort(by_block).astype(np.uint64),
        starts=starts,
        block_starts=np.append(blocks, n_items),
        first_blocks=np.searchsorted(blocks, starts),
        log_shares=logs[counts] - logs[sizes[pairs // n_groups]],
        first_groups=np.append(run_starts(pairs // n_groups), len(pairs)),
        steps=np.diff(numbers * logs),
    )
    return lists, label[by_block].astype(np.uint32)
