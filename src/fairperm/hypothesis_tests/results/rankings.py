"""The result of the test of rankings. No computing here."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_number,
    name_of_gap,
    state_pvalue,
)
from fairperm.data.columns import frame_of
from fairperm.hypothesis_tests.results.gaps import GapResult, PlainResult, json_ready
from fairperm.hypothesis_tests.results.text import write_result

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RankingComparison", "RankingTestResult"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RankingComparison(GapResult):
    """The gap between two groups, one comparison of a :class:`RankingTestResult`.

    Attributes
    ----------
    design : str
        "queries" if each query is of one group: queries are compared, and exchanged. "items" if
        groups vary within queries: items are compared, and exchanged within each query.
    k : int or None
        How many items from the top of a list count; None if all do.
    exact : bool
        Whether all permutations were counted.
    adjusted_pvalue : float
        The p-value adjusted for the number of comparisons.
    null_distribution : numpy.ndarray
        The statistic under each permutation.
    """

    design: str
    k: int | None
    exact: bool
    adjusted_pvalue: float
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RankingTestResult(PlainResult):
    """The result of :func:`fairperm.ranking_test`.

    Attributes
    ----------
    metric : str
        The metric's full name.
    groups : tuple
        The groups compared.
    comparisons : tuple of RankingComparison
        Each pair of groups, or each group and the reference or the rest.
    pvalue : float
        The smallest adjusted p-value: that of no gap between any groups, if the adjustment is
        "holm".
    adjust : str or None
        How p-values are adjusted for the number of comparisons.
    notes : tuple of str
        Remarks that matter for reading the result.
    """

    metric: str
    groups: tuple[Hashable, ...]
    comparisons: tuple[RankingComparison, ...]
    pvalue: float
    adjust: str | None
    notes: tuple[str, ...]
    frame_library: str | None = field(repr=False)

    @property
    def largest(self) -> RankingComparison:
        """The comparison with the largest absolute gap."""
        return max(self.comparisons, key=lambda one: abs(one.difference))

    def __iter__(self) -> Iterator[RankingComparison]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values, without null distributions."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        del plain["frame_library"]
        plain["comparisons"] = [one.to_dict() for one in self.comparisons]
        ready: dict[str, Any] = json_ready(plain)
        return ready

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with a row for each comparison.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame: by default that of `data`, or pandas.
        """
        rows: list[dict[str, Any]] = []
        for one in self:
            first, second = one.groups
            low, high = one.confidence_interval
            rows.append(
                {
                    "metric": one.metric,
                    "first_group": str(first),
                    "second_group": str(second),
                    "first_value": one.values[first],
                    "second_value": one.values[second],
                    "first_queries": one.counts[first]["queries"],
                    "second_queries": one.counts[second]["queries"],
                    "difference": one.difference,
                    "difference_low": low,
                    "difference_high": high,
                    "standard_error": one.standard_error,
                    "pvalue": one.pvalue,
                    "adjusted_pvalue": one.adjusted_pvalue,
                }
            )
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return frame_of(columns, library, self.frame_library)

    def __repr__(self) -> str:
        if len(self.comparisons) == 1:
            text = repr(self.comparisons[0])
            return text.replace(RankingComparison.__name__, type(self).__name__, 1)
        lines = []
        for one in self:
            gap = format_number(one.difference, signed=True)
            level = format_level(one.confidence_level)
            interval = format_interval(one.confidence_interval, signed=True)
            values = " / ".join(format_number(one.values[group]) for group in one.groups)
            p = state_pvalue(one.adjusted_pvalue)
            text = f"{values}, gap {gap} ({level} interval {interval}), {p}"
            lines.append((name_of_gap(*one.names), text))
        if self.adjust is not None:
            lines.append(("adjusted by", self.adjust))
        first = self.comparisons[0]
        lines.append(("validity", first.validity))
        title = f"RankingTestResult: {self.metric} of {len(self.groups)} groups"
        return write_result(title, lines, first.n_dropped, self.notes)
