"""The engines of ranked lists, whose labels are exchanged within each list.

Of items of two groups, the metric gives the value of either group and the influence of each query.
The gap of the values is studentized by the variance of the influences over queries, or over
clusters of queries. Of shares at the top of lists, it gives one divergence for all groups.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Booleans, Codes, Integers, Places
from fairperm._utils.sorting import content_keys, order_by, run_numbers, run_starts
from fairperm.metrics.rankings import ListSums

if TYPE_CHECKING:
    from fairperm.engines.kernels.distances import SortedRows
    from fairperm.engines.kernels.divergences import WalkedLists


@dataclass(frozen=True, slots=True)
class ListsEngine:
    """Lists, each of which has items of both groups.

    There are ``rows`` for each value of an item. ``is_second`` if the user's second group is drawn:
    it is the smaller one.
    """

    rows: tuple[SortedRows, ...]
    sizes: Integers
    wanted: Integers
    in_first: Booleans
    cluster: Codes
    is_second: bool
    of_group: Callable[[ListSums], tuple[Array, Array]]

    block_size = 64  # the lanes of a word

    @classmethod
    def of(
        cls,
        query: Codes,
        value: Array,
        group: Codes,
        cluster: Codes,
        of_group: Callable[[ListSums], tuple[Array, Array]],
    ) -> ListsEngine:
        """Order queries and items by their values, never by their names."""
        # ``value`` has an axis of values and one of items
        from fairperm.engines.kernels.distances import SortedRows

        by_value = order_by([*value])  # no sum may depend on the user's order of items
        query, value, group = query[by_value], value[:, by_value], group[by_value]
        is_second = _should_swap(query, value, group)
        in_first = group == int(is_second)
        sums_of = [np.ones(len(query)), in_first]
        for one in value:
            sums_of += [one, one * in_first, one**2]
        sums = [np.bincount(query, one).astype(np.float64) for one in sums_of]
        kinds = 2.0 * run_numbers(run_starts(*value), len(query)) + in_first + 1
        # lists of equal sums may still have other items
        keys = [*sums, *content_keys(query.astype(np.intp), kinds)]
        by_keys = order_by(keys)
        kind = np.empty(len(by_keys), np.intp)
        kind[by_keys] = run_numbers(run_starts(*(key[by_keys] for key in keys)), len(by_keys))
        of_query = np.empty(len(kind), np.intp)
        of_query[query] = np.unique(cluster[by_value], return_inverse=True)[1].ravel()
        # equal queries in the order of their clusters, which their other queries tell apart
        place = np.argsort(order_by(content_keys(of_query, kind + 1.0)))
        rank = np.argsort(order_by([kind, place[of_query]]))
        order = order_by([rank[query], *value, in_first])
        query, starts = rank[query][order], run_starts(np.sort(rank[query]))
        sizes = np.diff(np.append(starts, len(query)))
        rows = tuple(
            SortedRows(
                unit=np.arange(len(query)),
                weight=np.ascontiguousarray(one[order]),
                cell=query.astype(np.int64),
                step=np.empty(0),
                starts=np.append(starts, len(query)),
                totals=np.add.reduceat(one[order], starts),
            )
            for one in value
        )
        wanted = np.add.reduceat(in_first[order], starts, dtype=np.int64)
        whose = place[of_query][np.argsort(rank)]
        return cls(rows, sizes, wanted, in_first[order], whose, is_second, of_group)

    def observed(self) -> tuple[Array, Array]:
        """Return both groups' values and the standard error of their gap: a block of one."""
        return self._estimate(self._observed_sums())

    def observed_errors(self) -> tuple[float, float]:
        """Return the standard errors of both groups' values."""
        (_, first), (_, second) = self._value_groups(self._observed_sums())
        return float(self._error(first)[0]), float(self._error(second)[0])

    def observed_influences(self) -> Array:
        """Return the influence of each query, or cluster of queries, on the gap."""
        (_, first), (_, second) = self._value_groups(self._observed_sums())
        return self._sum_clusters(first - second)[:, 0]

    def permuted(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return values and standard errors of ``n`` random permutations, at most 64."""
        from fairperm.engines.kernels.distances import weigh_cells
        from fairperm.engines.kernels.subsets import STATE_WORDS, random_subsets

        state = rng.integers(2**64, size=STATE_WORDS, dtype=np.uint64)
        words = random_subsets(self.sizes, self.wanted, state)
        first = [weigh_cells(words, one, one.cell, len(self.sizes))[:, :n] for one in self.rows]
        return self._estimate(np.stack(first))

    def enumerated(self, most: int) -> tuple[Array, Array] | None:
        """Return the same for every permutation, if there are no more than ``most``."""
        pairs = list(zip(self.sizes.tolist(), self.wanted.tolist(), strict=True))
        # logarithms, as the numbers themselves have millions of digits in long lists
        ways = math.fsum(
            math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for n, k in pairs
        )
        if ways > math.log(most + 0.5):
            return None
        first = []
        for rows in self.rows:
            parts = []
            for start, (n, k) in zip(rows.starts.tolist(), pairs, strict=False):
                mine = rows.weight[start : start + n].tolist()
                parts.append([sum(chosen) for chosen in itertools.combinations(mine, k)])
            first.append(np.array(list(itertools.product(*parts))).T)
        return self._estimate(np.stack(first))

    def _observed_sums(self) -> Array:
        """Return the sums of the group that is drawn, in the sample."""
        return np.stack(
            [
                np.add.reduceat(one.weight * self.in_first, one.starts[:-1])[:, None]
                for one in self.rows
            ]
        )

    def _estimate(self, first: Array) -> tuple[Array, Array]:
        """Return values by group and draw, and errors, from the sums of the group that is drawn."""
        (one, own), (other, others) = self._value_groups(first)
        return np.stack([one, other]), self._error(own - others)

    def _value_groups(self, first: Array) -> list[tuple[Array, Array]]:
        """Return both groups' values, and the influences of lists on them."""
        totals = np.stack([one.totals for one in self.rows])[:, :, None]
        n, sizes = self.wanted[:, None], self.sizes[:, None]
        drawn = self.of_group(ListSums(first, totals, n, sizes))
        other = self.of_group(ListSums(totals - first, totals, sizes - n, sizes))
        return [other, drawn] if self.is_second else [drawn, other]

    def _error(self, influence: Array) -> Array:
        """Return the standard error of a value with these influences of lists: the jackknife's."""
        sums = self._sum_clusters(influence)
        n, factor = len(sums), len(sums) / max(len(sums) - 1, 1)
        if 1 < n < len(influence):  # larger clusters are missed more
            of_whole = np.bincount(self.cluster) / len(influence)
            sums = sums * ((1 - 1 / n) / (1 - of_whole))[:, None]
        error: Array = np.sqrt(factor * (sums**2).sum(axis=0)) / len(influence)
        return error

    def _sum_clusters(self, influence: Array) -> Array:
        """Return the influences of clusters from those of their lists."""
        if int(self.cluster.max()) + 1 == len(influence):
            return influence
        order = np.argsort(self.cluster, kind="stable")
        sums: Array = np.add.reduceat(influence[order], run_starts(self.cluster[order]))
        return sums


def _should_swap(query: Codes, value: Array, group: Codes) -> bool:
    """Whether the user's second group has fewer items, smaller values, or less of some list."""
    # names do not matter: swapping the groups changes no draw
    columns = (np.ones(len(query)), *value)
    sums = [np.stack([np.bincount(query, one * (group == g)) for one in columns]) for g in (0, 1)]
    totals = [one.sum(axis=1).tolist() for one in (np.sort(sums[0]), np.sort(sums[1]))]
    if totals[0] != totals[1]:
        return bool(totals[1] < totals[0])
    both = sums[0] + sums[1]
    ordered = [one[:, order_by([*both, *one])] for one in sums]
    unlike = np.argwhere(ordered[0] != ordered[1])
    return bool(unlike.size and ordered[1][tuple(unlike[0])] < ordered[0][tuple(unlike[0])])


@dataclass(frozen=True, slots=True)
class DivergenceEngine:
    """Lists, their mean divergence, and the labels of their items, ascending in each block.

    Labels of all groups are exchanged within each list. The divergence of a list does not depend on
    which group is which, so groups are numbered anew in each list, by their items. Then neither the
    names of groups, queries and strata nor the order of rows change a draw.

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
