"""Rows by ascending score, and the units that change groups: rows, or clusters of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.sorting import run_starts

if TYPE_CHECKING:
    from fairperm._utils.arrays import Array, Booleans, Codes, Integers


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows by stratum and ascending score; rows of one tie stand together."""

    unit: Integers  # the cluster of each row: whose word says in which group the row is
    # of each row
    positive: Booleans
    weight: Array
    tie_starts: Integers  # where runs of equal scores start in each stratum, and the number of rows
    first_tie: Integers  # the first run of each stratum, and the number of runs
    n_units: int
    clustered: bool  # whether units have several rows

    @classmethod
    def of(
        cls,
        score: Array,
        positive: Booleans,
        weight: Array,
        unit: Integers,
        stratum: Codes,
        n_strata: int,
        *,
        clustered: bool,
    ) -> SortedRows:
        """Find the ties of rows that are sorted by stratum and score."""
        starts = run_starts(stratum, score)
        return cls(
            unit=unit,
            positive=positive,
            weight=weight,
            tie_starts=np.append(starts, len(score)),
            first_tie=np.searchsorted(stratum[starts], np.arange(n_strata + 1)),
            n_units=int(unit.max()) + 1,
            clustered=clustered,
        )
