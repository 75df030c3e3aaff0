"""The result of the test of distances between distributions. No computing here."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairperm._utils.arrays import Array
from fairperm._utils.formatting import (
    format_count,
    format_metric,
    format_name,
    format_number,
    format_pvalue,
    format_value,
    name_group,
    name_of_gap,
    state_pvalue,
)
from fairperm.errors import InputError, listed
from fairperm.hypothesis_tests.results.answers.words import (
    clearest_of,
    count_first,
    isolate,
    judge,
    level_of,
    sentence,
    state_p,
    within_strata,
)
from fairperm.hypothesis_tests.results.gaps import PlainResult, ResultOfComparisons
from fairperm.hypothesis_tests.results.text import state_draws, state_rows

if TYPE_CHECKING:
    from altair import LayerChart


__all__ = ["DistanceComparison", "DistanceTestResult"]


@dataclass(frozen=True, slots=True)
class Curves:
    """The distributions of two groups: shares of categories, or cumulative shares at numbers."""

    values: tuple[Hashable, ...]
    first: Array
    second: Array
    cumulative: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class DistanceComparison(PlainResult):
    """The distance between two groups, one comparison of a :class:`DistanceTestResult`.

    Attributes
    ----------
    groups : tuple
        The two groups.
    distance : float
        The distance between their distributions; with labels or strata, the mean of the distances
        inside them, weighted by m_A·m_B/(m_A + m_B).
    expected : float
        The mean of the null distribution: the distance of groups of these sizes if their
        distributions are equal.
    by_label : dict or None
        The distance given each label, if labels were passed.
    counts : dict
        The number of rows of each group.
    at : object
        The value at which the cumulative shares differ most, or the category whose shares do; with
        labels or strata, that of the mean of the differences inside them, weighted as the distance.
    gap_at : float
        That difference, first group minus second.
    pvalue, adjusted_pvalue : float
        The share of draws with a distance at least as large, never zero; and adjusted for the
        number of comparisons.
    pvalue_interval, pvalue_interval_wilson : tuple of float
        For the p-value that infinitely many draws would give.
    n_resamples : int
        Draws that were counted.
    stopped_early : bool
        Whether drawing stopped because 20 draws had a distance at least as large.
    exact : bool
        Whether these are all permutations.
    null_distribution : numpy.ndarray
        The distance in each permutation. With clusters or unequal weights: in each permutation,
        at the standard error of the sample, or for each random choice of signs, whichever has the
        larger p-value.
    null_probabilities : numpy.ndarray or None
        Their probabilities if ``exact``; random draws are equally likely.
    """

    groups: tuple[Hashable, Hashable]
    distance: float
    expected: float
    by_label: Mapping[Hashable, float] | None
    counts: Mapping[Hashable, float]
    at: Hashable
    gap_at: float
    pvalue: float
    adjusted_pvalue: float
    pvalue_interval: tuple[float, float]
    pvalue_interval_wilson: tuple[float, float]
    n_resamples: int
    stopped_early: bool
    exact: bool
    null_distribution: Array = field(repr=False)
    null_probabilities: Array | None = field(repr=False)

    @property
    def answer(self) -> str:
        """The distance of these two groups beside that of chance, with its p-value."""
        pair = name_of_gap(*self.groups, absolute=True)
        name = "p" if self.adjusted_pvalue == self.pvalue else "adjusted p"
        distance, chance = format_number(self.distance), format_number(self.expected)
        p = state_pvalue(self.adjusted_pvalue, name)
        return f"{pair}: a distance of {distance}, by chance {chance} on average ({p})."

    def _lines(self) -> list[tuple[str, str]]:
        gap = format_number(self.gap_at, signed=True)
        return [("largest gap", f"{gap} at {format_value(self.at)}")]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class DistanceTestResult(ResultOfComparisons[DistanceComparison]):
    """The result of :func:`fairperm.distance_test`.

    Attributes
    ----------
    distance : str
        The distance's full name.
    groups : tuple
        The groups compared.
    attribute : str
        The name of the column of groups, or "".
    comparisons : tuple of DistanceComparison
        Each pair of groups, or each group and the reference or the rest.
    pvalue : float
        The smallest adjusted p-value: that of equal distributions in all groups, if the adjustment
        is "holm".
    adjust : str or None
        How p-values are adjusted for the number of comparisons.
    validity : str
        For which null the p-values are valid, and in which sense.
    notes : tuple of str
        Remarks that matter for reading the result.
    """

    distance: str
    groups: tuple[Hashable, ...]
    pvalue: float
    adjust: str | None
    confidence_level: float
    n_strata: int
    n_dropped: int
    seed: int
    validity: str
    notes: tuple[str, ...]
    curves: Mapping[tuple[Hashable, Hashable], Curves] = field(repr=False)
    attribute: str = ""

    @property
    def largest(self) -> DistanceComparison:
        """The comparison with the largest distance."""
        return max(self.comparisons, key=lambda one: one.distance)

    def columns(self) -> dict[str, list[Any]]:
        """Return a column of an entry for each comparison, by name."""
        names = ("distance", "expected", "gap_at", "pvalue", "adjusted_pvalue", "n_resamples")
        return {
            "first_group": [str(one.groups[0]) for one in self],
            "second_group": [str(one.groups[1]) for one in self],
            "at": [str(one.at) for one in self],
            **{name: [getattr(one, name) for one in self] for name in names},
        }

    def plot(
        self,
        groups: Sequence[Hashable] | None = None,
        *,
        width: int = 700,
        height: int = 220,
        mode: str = "auto",
    ) -> LayerChart:
        """Draw the distributions of two groups, with the place where they differ most.

        `groups` are those of a comparison, by default of the one with the largest distance. See
        :func:`fairperm.plots.distributions`.
        """
        from fairperm import plots

        chosen = self.largest
        if groups is not None:
            pair = tuple(groups) if isinstance(groups, Iterable) else groups
            pairs = [one.groups for one in self]
            if pair not in pairs:
                rule = f"two groups that were compared ({listed(pairs)})"
                raise InputError("groups", rule, groups)
            chosen = self.comparisons[pairs.index(pair)]
        curves = self.curves[chosen.groups]
        return plots.distributions(
            curves.values,
            curves.first,
            curves.second,
            groups=self._name_groups(chosen),
            cumulative=curves.cumulative,
            at=chosen.at,
            distance=self.distance + ("" if chosen.by_label is None else "_given_label"),
            value=chosen.distance,
            pvalue=chosen.adjusted_pvalue,
            adjusted=self.adjust is not None and len(self) > 1,
            width=width,
            height=height,
            mode=mode,
        )

    @property
    def answer(self) -> str:
        """How many distances are larger than chance explains, and the clearest."""
        n = sum(one.adjusted_pvalue <= level_of(self) for one in self.comparisons)
        clearest = self._answer(clearest_of(self.comparisons))
        return count_first(n, len(self.comparisons), format_metric(self.distance), clearest)

    def _answer(self, one: DistanceComparison) -> str:
        """Return the distance between two groups, and whether chance explains it."""
        first, second = map(isolate, self._name_groups(one))
        given = " given the label" if one.by_label is not None else ""
        head = (
            f"{within_strata(self.n_strata)}the {format_metric(self.distance)}{given} between "
            f"{first} and {second} is {format_number(one.distance)} "
            f"({format_number(one.expected)} expected by chance)"
        )
        stated = state_p(one.pvalue, one.adjusted_pvalue, one)
        is_shown = one.adjusted_pvalue <= level_of(self)
        end = "; a difference of the distributions is not ruled out"
        return sentence(head + judge(self, "it", stated, is_shown=is_shown, open_end=end))

    def _lines(self) -> list[tuple[str, str]]:
        is_one = len(self.comparisons) == 1
        lines = []
        for one in self.comparisons:
            counts = " and ".join(format_count(one.counts[group]) for group in one.groups)
            text = f"{format_number(one.distance)}  by chance {format_number(one.expected)}"
            if not is_one:
                name = "p" if self.adjust is None else "adjusted p"
                text += f", {state_pvalue(one.adjusted_pvalue, name)}"
            pair = name_of_gap(*self._name_groups(one), absolute=True)
            lines.append((pair, f"{text}, {counts} rows"))
        lines += self._describe_one(self.comparisons[0]) if is_one else []
        if not is_one and self.adjust is not None:
            lines.append(("adjusted by", self.adjust))
        sizes = {group: n for one in self.comparisons for group, n in one.counts.items()}
        if not sizes.keys() <= {*self.groups}:  # a group and all others
            sizes = dict(self.comparisons[0].counts)
        rows = state_rows(sum(sizes.values()), self.n_dropped)
        return [*lines, ("validity", self.validity), rows]

    def _name_groups(self, one: DistanceComparison) -> tuple[str, str]:
        """Return the groups as text; one that is a number with its column."""
        first, second = (name_group(self.attribute, group) for group in one.groups)
        return first, second

    def _describe_one(self, one: DistanceComparison) -> list[tuple[str, str]]:
        lines = [
            (f"given {format_name(label)}", format_number(value))
            for label, value in (one.by_label or {}).items()
        ]
        gap = format_number(one.gap_at, signed=True)
        average = "" if one.by_label is None else ", on average over the labels"
        lines.append(("largest gap", f"{gap} at {format_value(one.at)}{average}"))
        draws = state_draws(
            one.n_resamples,
            self.confidence_level,
            one.pvalue_interval,
            stopped_early=one.stopped_early,
        )
        p = format_pvalue(one.pvalue)
        lines.append(("p-value", f"{p}  {'exact' if one.exact else draws}"))
        return lines
