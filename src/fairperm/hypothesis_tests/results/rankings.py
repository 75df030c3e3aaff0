"""The result of the test of rankings. No computing here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_count, format_number
from fairperm.hypothesis_tests.results.gaps import GapResult

if TYPE_CHECKING:
    from collections.abc import Hashable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RankingTestResult"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RankingTestResult(GapResult):
    """The result of :func:`fairperm.ranking_test`.

    Attributes
    ----------
    design : str
        "queries" if each query is of one group: queries are compared, and exchanged. "items" if
        groups vary within queries: items are compared, and exchanged within each query.
    k : int or None
        How many items from the top of a list count; None if all do.
    exact : bool
        Whether all permutations were counted.
    null_distribution : numpy.ndarray
        The statistic under each permutation.
    """

    design: str
    k: int | None
    exact: bool
    null_distribution: NDArray[np.float64] = field(repr=False)

    def describe(self, group: Hashable) -> str:
        """Return the value of a group, with the queries or items that it is made of."""
        counts = self.counts[group]
        of = format_count(counts["queries"], "query", "queries")
        if self.design == "items":
            of = f"{format_count(counts['items'], 'item')} in {of}"
        return f"{format_number(self.values[group])}  of {of}"

    def _draws(self) -> str:
        return "exact" if self.exact else GapResult._draws(self)
