"""The result of the test of rankings. No computing here."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_metric,
    format_number,
    format_pvalue,
    name_group,
    name_of_gap,
    state_pvalue,
)
from fairperm.hypothesis_tests.results.answers.words import (
    clearest_of,
    count_first,
    judge,
    level_of,
    sentence,
    state_p,
)
from fairperm.hypothesis_tests.results.gaps import (
    GapResult,
    ResultOfComparisons,
    ResultWithPValue,
)
from fairperm.hypothesis_tests.results.text import count_rows, state_rows

__all__ = ["ListDivergence", "RankingComparison", "RankingTestResult"]


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
    """

    design: str
    k: int | None
    exact: bool
    adjusted_pvalue: float

    def to_row(self) -> dict[str, Any]:
        """Return the comparison as a row of a frame."""
        first, second = self.groups
        low, high = self.confidence_interval
        return {
            "metric": self.metric,
            "first_group": str(first),
            "second_group": str(second),
            "first_value": self.values[first],
            "second_value": self.values[second],
            "first_queries": self.counts[first]["queries"],
            "second_queries": self.counts[second]["queries"],
            "difference": self.difference,
            "difference_low": low,
            "difference_high": high,
            "standard_error": self.standard_error,
            "pvalue": self.pvalue,
            "adjusted_pvalue": self.adjusted_pvalue,
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ListDivergence(ResultWithPValue):
    """How far all groups' shares at the top of lists are from their shares of the whole lists.

    The only comparison of a :class:`RankingTestResult` of "ndkl".

    Attributes
    ----------
    metric : str
        "ndkl".
    attribute : str
        The name of the column of groups, or "".
    groups : tuple
        All groups; shares are among their items.
    value : float
        The mean over queries, in nats.
    expected : float
        Its mean over the permutations: the value of lists of these items in random order.
    counts : dict
        The number of items of each group.
    n_queries : int
        The number of lists that have items of several groups, of which the value is the mean.
    adjusted_pvalue : float
        Equal to the p-value: it is one comparison.
    exact : bool
        Whether all permutations were counted.
    n_strata : int
        The number of strata of items.
    """

    metric: str
    attribute: str
    groups: tuple[Hashable, ...]
    value: float
    expected: float
    counts: Mapping[Hashable, int]
    n_queries: int
    adjusted_pvalue: float
    exact: bool
    n_strata: int

    def to_row(self) -> dict[str, Any]:
        """Return the comparison as a row of a frame."""
        return {
            "metric": self.metric,
            "groups": ", ".join(map(str, self.groups)),
            "value": self.value,
            "expected": self.expected,
            "queries": self.n_queries,
            "pvalue": self.pvalue,
            "adjusted_pvalue": self.adjusted_pvalue,
        }

    @property
    def answer(self) -> str:
        """How far the tops of lists are from the groups' shares, and whether chance explains it."""
        head = (
            "At the top of the lists groups have other shares than in the whole lists: "
            f"{format_metric(self.metric)} is {format_number(self.value)} "
            f"({format_number(self.expected)} expected in random order)"
        )
        stated = state_p(self.pvalue, self.pvalue, self)
        is_shown = self.pvalue <= level_of(self)
        end = "; a difference is not ruled out"
        return sentence(head + judge(self, "it", stated, is_shown=is_shown, open_end=end))

    def _lines(self) -> list[tuple[str, str]]:
        value, chance = format_number(self.value), format_number(self.expected)
        of = format_count(self.n_queries, "query", "queries")
        return [
            (self.metric, f"{value}  by chance {chance}, of {of}"),
            *(
                (name_group(self.attribute, group), format_count(self.counts[group], "item"))
                for group in self.groups
            ),
            ("p-value", f"{format_pvalue(self.pvalue)}  {self._draws()}"),
            ("validity", self.validity),
            state_rows(sum(self.counts.values()), self.n_dropped, "items"),
        ]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RankingTestResult(ResultOfComparisons["RankingComparison | ListDivergence"]):
    """The result of :func:`fairperm.ranking_test`.

    Attributes
    ----------
    metric : str
        The metric's full name.
    groups : tuple
        The groups compared.
    comparisons : tuple of RankingComparison, or of one ListDivergence
        Each pair of groups, or each group and the reference or the rest; for "ndkl", all groups
        together.
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
    pvalue: float
    adjust: str | None
    notes: tuple[str, ...]

    @property
    def largest(self) -> RankingComparison | ListDivergence:
        """The comparison with the largest absolute gap; for "ndkl", the only one."""
        return max(self._gaps, key=lambda one: abs(one.difference), default=self.comparisons[0])

    @property
    def _gaps(self) -> list[RankingComparison]:
        return [one for one in self.comparisons if isinstance(one, RankingComparison)]

    def columns(self) -> dict[str, list[Any]]:
        """Return a column of an entry for each comparison, by name."""
        rows = [one.to_row() for one in self]
        return {name: [row[name] for row in rows] for name in rows[0]}

    @property
    def answer(self) -> str:
        """How many gaps are larger than chance explains, and the clearest."""
        clearest = clearest_of(self.comparisons)
        n = sum(one.adjusted_pvalue <= level_of(one) for one in self.comparisons)
        return count_first(n, len(self.comparisons), format_metric(self.metric), clearest.answer)

    def _lines(self) -> list[tuple[str, str]]:
        first = self.comparisons[0]
        if len(self.comparisons) == 1:
            return first._lines()
        lines = []
        for one in self._gaps:
            gap = format_number(one.difference, signed=True)
            level = format_level(one.confidence_level)
            interval = format_interval(one.confidence_interval, signed=True)
            values = " / ".join(format_number(one.values[group]) for group in one.groups)
            p = state_pvalue(one.adjusted_pvalue, "p" if self.adjust is None else "adjusted p")
            text = f"{values}, gap {gap} ({level} interval {interval}), {p}"
            lines.append((name_of_gap(*one.names), text))
        if self.adjust is not None:
            lines.append(("adjusted by", f"{self.adjust}; each interval is of its gap alone"))
        counts = {group: n for one in self._gaps for group, n in one.counts.items()}
        if not counts.keys() <= {*self.groups}:  # a group and all others
            counts = dict(self._gaps[0].counts)
        return [
            *lines,
            ("validity", first.validity),
            count_rows(counts.values(), first.n_dropped),
        ]
