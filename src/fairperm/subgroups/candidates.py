"""Candidates: the conjunctions of conditions on different features that enough rows meet.

Rows that agree in all features form a cell, and a candidate is a set of cells. Conjunctions are
extended one feature at a time; those with too few rows need not be, for more conditions never
leave more rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Places
from fairperm.errors import InputError, Shown, argument

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from fairperm.subgroups.features import Feature, Item

    Cells = NDArray[np.int32]
    Condition = tuple[int, Item]  # the place of a feature, and an item of it

MAX_MEMBERS = 100_000_000  # cells of all candidates: 2 GB


@dataclass(frozen=True, slots=True)
class Candidates:
    """Conjunctions of conditions, and the cells that each of them consists of.

    Of conjunctions with the same cells the most general one is kept: it has the fewest conditions.
    """

    features: Sequence[Feature]
    conditions: Sequence[tuple[Condition, ...]]
    members: csr_array

    def __len__(self) -> int:
        return len(self.conditions)

    def describe(self, place: int) -> dict[str, object]:
        """Return the conditions of a candidate by the names of the features."""
        return {self.features[f].name: item.condition for f, item in self.conditions[place]}

    def take(self, places: Places) -> Candidates:
        """Return some of the candidates."""
        some = [self.conditions[place] for place in places.tolist()]
        return Candidates(self.features, some, self.members[places])


def find_candidates(
    features: Sequence[Feature],
    levels: Places,
    sizes: Array,
    *,
    max_depth: int,
    min_rows: int,
    most: int,
) -> Candidates:
    """Return all conjunctions of up to ``max_depth`` conditions with enough rows in and outside."""
    # ``levels`` has the level of every cell in each feature, ``sizes`` the numbers of rows that the
    # metric's value rests on, by cell: of each number the candidate and the rest need ``min_rows``
    from scipy.sparse import csr_array

    whole = sizes.sum(axis=0)
    every = np.arange(len(levels), dtype=np.int32)
    found: dict[bytes, tuple[tuple[Condition, ...], Cells]] = {}
    level: list[tuple[tuple[Condition, ...], Cells]] = [((), every)]
    n_members = 0
    for _ in range(max_depth):
        longer = []
        for conditions, cells in level:
            for condition, mine in _extend(features, levels, sizes, conditions, cells, min_rows):
                one = (*conditions, condition), mine
                if (whole - sizes[mine].sum(axis=0) >= min_rows).all():
                    found.setdefault(blake2b(mine.data, digest_size=16).digest(), one)
                if len(mine) < len(cells):  # else later features extend the shorter one likewise
                    longer.append(one)
                n_members += len(mine)
                if len(found) > most or n_members > MAX_MEMBERS:
                    raise _too_many_error(most, len(one[0]))
        level = longer
    if not found:
        raise InputError(
            "min_rows",
            "at most the number of rows that the metric rests on in some subgroup and in the rest",
            min_rows,
            f"The sample has {' and '.join(f'{n:,.0f}' for n in whole)} of them.",
        )
    pairs = list(found.values())
    starts = np.cumsum([0, *(len(cells) for _, cells in pairs)])
    index = np.concatenate([cells for _, cells in pairs])
    shape = (len(pairs), len(levels))
    members = csr_array((np.ones(len(index)), index, starts), shape=shape)
    return Candidates(features, [conditions for conditions, _ in pairs], members)


def _extend(
    features: Sequence[Feature],
    levels: Places,
    sizes: Array,
    conditions: tuple[Condition, ...],
    cells: Cells,
    min_rows: int,
) -> Iterator[tuple[Condition, Cells]]:
    """Yield the conditions on later features that leave enough rows of these cells."""
    first = conditions[-1][0] + 1 if conditions else 0
    for f in range(first, len(features)):
        mine = levels[cells, f]
        n_levels = len(features[f].levels)
        below = np.zeros((n_levels + 1, sizes.shape[1]))
        for j in range(sizes.shape[1]):
            below[1:, j] = np.cumsum(np.bincount(mine, sizes[cells, j], n_levels))
        for item in features[f].items():
            if (below[item.last + 1] - below[item.first] >= min_rows).all():
                inside = (mine >= item.first) & (mine <= item.last)
                yield (f, item), cells[inside]


def _too_many_error(most: int, depth: int) -> InputError:
    ways = [argument("max_depth"), argument("bands"), argument("features")]
    return InputError(
        "max_depth and min_rows",
        f"such that there are at most {most:,} subgroups to test with this many permutations, and "
        f"at most {MAX_MEMBERS:,} distinct combinations of features in all of them together",
        Shown(f"more with {depth} condition{'s' if depth > 1 else ''}"),
        f"Raise {argument('min_rows')}, or use a smaller {ways[0]}, fewer {ways[1]} or fewer "
        f"{ways[2]}.",
    )
