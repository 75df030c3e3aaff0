"""The engine of items in lists: labels are exchanged within each list, the variance is over lists.

Every query has a gap: the mean of its items of the first group minus that of the second. Their mean
is studentized by the variance of the gaps over queries, or over clusters of queries.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.sorting import content_keys, order_by, run_numbers, run_starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.engines.kernels.distances import SortedRows

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ListsEngine:
    """Gaps of lists, each of which has items of both groups.

    ``sign`` is −1 if the user's second group is drawn: it is the smaller one.
    """

    rows: SortedRows
    sizes: NDArray[np.int64]
    wanted: NDArray[np.int64]
    in_first: NDArray[np.bool_]
    cluster: NDArray[np.integer[Any]]
    sign: float

    block_size = 64  # the lanes of a word

    @classmethod
    def of(
        cls,
        query: NDArray[np.integer[Any]],
        value: Array,
        group: NDArray[np.integer[Any]],
        cluster: NDArray[np.integer[Any]],
    ) -> ListsEngine:
        """Order queries and items by their values, never by their names."""
        from fairperm.engines.kernels.distances import SortedRows

        sums = np.bincount(group, minlength=2), np.bincount(group, value, 2)
        is_second = tuple(one[1] for one in sums) < tuple(one[0] for one in sums)
        in_first = group == int(is_second)
        sums_of = (np.ones(len(query)), in_first, value, value * in_first, value**2)
        keys = [np.bincount(query, one) for one in sums_of]
        by_keys = order_by(keys)
        kind = np.empty(len(by_keys), np.intp)
        kind[by_keys] = run_numbers(run_starts(*(key[by_keys] for key in keys)), len(by_keys))
        of_query = np.empty(len(kind), np.intp)
        of_query[query] = np.unique(cluster, return_inverse=True)[1].ravel()
        # equal queries in the order of their clusters, which their other queries tell apart
        place = np.argsort(order_by(content_keys(of_query, kind + 1.0)))
        rank = np.argsort(order_by([kind, place[of_query]]))
        order = order_by([rank[query], value, in_first])
        query, starts = rank[query][order], run_starts(np.sort(rank[query]))
        sizes = np.diff(np.append(starts, len(query)))
        rows = SortedRows(
            unit=np.arange(len(query)),
            weight=np.ascontiguousarray(value[order]),
            cell=query.astype(np.int64),
            step=np.empty(0),
            starts=np.append(starts, len(query)),
            totals=np.add.reduceat(value[order], starts),
        )
        wanted = np.add.reduceat(in_first[order], starts, dtype=np.int64)
        whose = place[of_query][np.argsort(rank)]
        return cls(rows, sizes, wanted, in_first[order], whose, -1.0 if is_second else 1.0)

    def observed(self) -> tuple[Array, Array]:
        """Return the mean gap and its standard error: a block of one."""
        first = np.add.reduceat(self.rows.weight * self.in_first, self.rows.starts[:-1])
        return self._studentize(self._gaps(first[:, None]))

    def permuted(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return mean gaps and standard errors of ``n`` random permutations, at most 64."""
        from fairperm.engines.kernels.distances import weigh_cells
        from fairperm.engines.kernels.subsets import STATE_WORDS, random_subsets

        state = rng.integers(2**64, size=STATE_WORDS, dtype=np.uint64)
        words = random_subsets(self.sizes, self.wanted, state)
        first = weigh_cells(words, self.rows, self.rows.cell, len(self.sizes))
        return self._studentize(self._gaps(first[:, :n]))

    def enumerated(self, most: int) -> tuple[Array, Array] | None:
        """Return the same for every permutation, if there are no more than ``most``."""
        pairs = list(zip(self.sizes.tolist(), self.wanted.tolist(), strict=True))
        if math.fsum(math.log(math.comb(n, k)) for n, k in pairs) > math.log(most) + 1e-9:
            return None
        parts = []
        for start, (n, k) in zip(self.rows.starts.tolist(), pairs, strict=False):
            mine = self.rows.weight[start : start + n].tolist()
            parts.append([sum(chosen) for chosen in itertools.combinations(mine, k)])
        first = np.array(list(itertools.product(*parts))).T
        return self._studentize(self._gaps(first))

    def _gaps(self, first: Array) -> Array:
        """Return the gaps by query and draw, from the sums of the group that is drawn."""
        wanted, rest = self.wanted[:, None], (self.sizes - self.wanted)[:, None]
        second = self.rows.totals[:, None] - first
        return self.sign * (first / wanted - second / rest)

    def _studentize(self, gaps: Array) -> tuple[Array, Array]:
        mean = gaps.mean(axis=0)
        n_clusters = int(self.cluster.max()) + 1
        influence = gaps - mean
        if n_clusters < len(gaps):
            order = np.argsort(self.cluster, kind="stable")
            influence = np.add.reduceat(influence[order], run_starts(self.cluster[order]))
        factor = n_clusters / max(n_clusters - 1, 1)
        error: Array = np.sqrt(factor * (influence**2).sum(axis=0)) / len(gaps)
        return mean, error
