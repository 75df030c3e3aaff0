"""Results of tests of a change of the gap. No computing here."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.formatting import (
    NONE,
    format_interval,
    format_level,
    format_name,
    format_number,
    format_pvalue,
    state_pvalue,
)
from fairperm.hypothesis_tests.results.answers.changes import (
    answer_change,
    answer_gap_change,
    answer_period_change,
    answer_periods,
)
from fairperm.hypothesis_tests.results.gaps import (
    PermutationTestResult,
    ResultWithFrame,
    json_ready,
    without_answer,
)
from fairperm.hypothesis_tests.results.text import count_rows

if TYPE_CHECKING:
    from altair import LayerChart

    from fairperm.hypothesis_tests.results.equivalence import EquivalenceTestResult

__all__ = [
    "GapChange",
    "GroupChange",
    "ModelComparisonResult",
    "PeriodChange",
    "PeriodComparisonResult",
]

_MIDNIGHT = re.compile(r"[ T]00:00:00(\.0+)?$")
CHANGE_VERDICTS = (
    *("closed", "narrowed", "unchanged within margin", "widened", "changed"),
    *("inconclusive", "too small"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """The change of one group's value, with a test of its own.

    Attributes
    ----------
    old, new : float
        The value with the old and with the new model, or in the old and in the new period.
    change : float
        New minus old.
    standard_error : float
        Of the change; the rows of two models are paired.
    pvalue : float
        Two-sided. For a rate of plain rows McNemar's exact test, if two models share its
        denominator, or the exact unconditional test of two periods; otherwise the normal test of
        the change over its standard error, of clusters (and names) Student's t. NaN without one.
    exact : bool
        Whether it is one of the exact tests.
    """

    old: float
    new: float
    change: float
    standard_error: float
    pvalue: float
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ChangeResult(PermutationTestResult):
    """The change of the gap between two groups: fields that models and periods have in common."""

    gap_old: Any
    gap_new: Any
    group_changes: Mapping[Hashable, Any]

    def test_margin(self, margin: float | tuple[float, float]) -> EquivalenceTestResult:
        """Test whether the gap changed by less than a margin.

        Its null hypothesis is a change as large as the margin or larger: a small p-value is
        evidence that the gap stayed. Nothing is drawn again. The change of a rate between two
        models has score intervals, which hold where few rows changed. Other changes between models
        are not tested with fewer than 20 changed rows in a group: the p-value is 1, with a note.

        Parameters
        ----------
        margin : float or pair of float
            The largest change that does not matter, above 0; or how far the gap may fall (a
            negative number) and grow. An infinite end has no test: ``(-math.inf, 0.02)`` tests
            that a gap above 0 did not grow by 0.02 or more.

        Returns
        -------
        EquivalenceTestResult
            ``lower`` and ``upper`` are the one-sided tests of each end.
        """
        from fairperm.hypothesis_tests.margins.equivalence import test_change_margin

        return test_change_margin(self, margin)

    def _value_lines(self) -> list[tuple[str, str]]:
        lines = PermutationTestResult._value_lines(self)
        if self.is_joint:
            return lines
        both = (format_number(one, signed=True) for one in (self.gap_old, self.gap_new))
        return [*lines, ("gap", " → ".join(both))]

    def describe(self, group: Hashable) -> str:
        """Return the old and the new value of a group, and the p-value of its change."""
        change = self.group_changes[group]
        if isinstance(change, Mapping):
            return ", ".join(f"{name} {_describe(one)}" for name, one in change.items())
        test = ", exact" if change.exact else ""
        return f"{_describe(change)}  {state_pvalue(change.pvalue)}{test}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GapChange:
    """What a new model does to a gap in an audit of two models.

    Attributes
    ----------
    result : ModelComparisonResult or None
        The test of the change by itself; None if the metric has no value in one of the groups.
    adjusted_pvalue : float or None
        The p-value of no change, adjusted for all comparisons of the audit.
    adjusted_interval : tuple of float or None
        The interval of the change, adjusted in the same way: it excludes 0 exactly if the adjusted
        p-value is at most the audit's level, and lies within the margin exactly if the adjusted
        equivalence p-value is. None if the standard error is zero.
    size_pvalue, adjusted_size_pvalue : float or None
        The p-value of a new gap that is not smaller in size than the old one or, if the estimate
        is larger, not larger: the larger of the p-values of no change and of gaps that add up to
        zero. None for joint metrics.
    equivalence_pvalue, adjusted_equivalence_pvalue : float or None
        The p-value of a change as large as the margin or larger; 1 if too few rows changed to test
        it, as the reason then says.
    closing_pvalue, adjusted_closing_pvalue : float or None
        The p-value of a new gap that is not smaller, or not within the margin.
    verdict_new, adjusted_pvalue_new : str, float or None
        The verdict on the new gap in an audit of the new model alone, and its p-value.
    verdict : str
        "closed", "narrowed", "unchanged within margin", "widened", "changed" (by more than chance
        explains, but whether the gap is smaller or larger is undecided), "inconclusive" or "too
        small".
    reason : str
        Why, in plain words.
    """

    result: ModelComparisonResult | None
    adjusted_pvalue: float | None = None
    adjusted_interval: tuple[float, float] | None = None
    size_pvalue: float | None = None
    adjusted_size_pvalue: float | None = None
    equivalence_pvalue: float | None = None
    adjusted_equivalence_pvalue: float | None = None
    closing_pvalue: float | None = None
    adjusted_closing_pvalue: float | None = None
    verdict_new: str = ""
    adjusted_pvalue_new: float | None = None
    verdict: str = ""
    reason: str = ""

    def __repr__(self) -> str:
        return self.answer

    @property
    def answer(self) -> str:
        """The old and the new gap, and the verdict on its change."""
        return answer_gap_change(self)

    @property
    def gaps(self) -> tuple[Any, Any]:
        """Return the gap with the old and with the new model; None without a value."""
        return (None, None) if self.result is None else (self.result.gap_old, self.result.gap_new)

    @property
    def gap_texts(self) -> tuple[str, str]:
        """Return both gaps as text; a joint metric has several."""
        several = (one.values() if isinstance(one, Mapping) else [one] for one in self.gaps)
        old, new = (", ".join(format_number(one, signed=True) for one in gaps) for gaps in several)
        return old, new

    @property
    def value_texts(self) -> tuple[str, str]:
        """Return the values of both groups with both models as text."""
        if self.result is None:
            return NONE, NONE
        changes = (self.result.group_changes[group] for group in self.result.groups)
        several = (one.values() if isinstance(one, Mapping) else [one] for one in changes)
        first, second = (", ".join(map(_describe, parts)) for parts in several)
        return first, second

    @property
    def change_text(self) -> str:
        """Return the change of the gap as text."""
        return format_number(self.difference, signed=self._has_sign)

    @property
    def interval_text(self) -> str:
        """Return the interval of the change as text."""
        return format_interval(self.confidence_interval, signed=self._has_sign)

    @property
    def adjusted_interval_text(self) -> str:
        """Return the interval that the verdict rests on, which is adjusted like the p-value."""
        interval = self.adjusted_interval or self.confidence_interval
        return format_interval(interval, signed=self._has_sign)

    @property
    def _has_sign(self) -> bool:
        return self.result is not None and not self.result.is_joint

    @property
    def difference(self) -> float | None:
        """Return the change of the gap."""
        return None if self.result is None else self.result.difference

    @property
    def confidence_interval(self) -> tuple[float, float] | None:
        """Return the interval of the change; None if it is made of a standard error of zero."""
        if self.result is None or self.result.standard_error == 0:
            return None
        return self.result.confidence_interval

    @property
    def pvalue(self) -> float | None:
        """Return the p-value of no change, by itself."""
        return None if self.result is None else self.result.pvalue

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON-ready values."""
        plain: dict[str, Any] = {"answer": self.answer}
        plain |= {
            name: json_ready(getattr(self, name)) for name in self.__slots__ if name != "result"
        }
        plain["test"] = without_answer(self.result)
        return plain

    def cells(self) -> dict[str, Any]:
        """Return the change as flat values, for a frame."""
        low, high = self.confidence_interval or (None, None)
        adjusted_low, adjusted_high = self.adjusted_interval or (None, None)
        flat: dict[str, Any] = {}
        for place, side in (("first", 0), ("second", 1)):
            change = None
            if self.result is not None and not self.result.is_joint:
                change = self.result.group_changes[self.result.groups[side]]
            flat[f"{place}_value_new"] = None if change is None else change.new
            flat[f"{place}_change_pvalue"] = None if change is None else change.pvalue
        old, new = (one if isinstance(one, float) else None for one in self.gaps)
        return flat | {
            "gap_old": old,
            "gap_new": new,
            "change": self.difference,
            "change_low": low,
            "change_high": high,
            "change_adjusted_low": adjusted_low,
            "change_adjusted_high": adjusted_high,
            "change_pvalue": self.pvalue,
            "change_adjusted_pvalue": self.adjusted_pvalue,
            "size_pvalue": self.size_pvalue,
            "adjusted_size_pvalue": self.adjusted_size_pvalue,
            "change_equivalence_pvalue": self.equivalence_pvalue,
            "change_adjusted_equivalence_pvalue": self.adjusted_equivalence_pvalue,
            "closing_pvalue": self.closing_pvalue,
            "adjusted_closing_pvalue": self.adjusted_closing_pvalue,
            "verdict_new": self.verdict_new,
            "adjusted_pvalue_new": self.adjusted_pvalue_new,
            "change_verdict": self.verdict,
            "change_reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ModelComparisonResult(ChangeResult):
    """The result of :func:`fairperm.compare_models`.

    All fields of :class:`fairperm.PermutationTestResult` are about the change: ``values`` are the
    changes of the groups' values, ``difference`` is the change of the gap with its
    ``standard_error``, ``confidence_interval`` and ``pvalue``, and ``metric`` is "change in …".

    Attributes
    ----------
    gap_old, gap_new : float
        The gap (first group minus second) with either model; ``difference`` is new minus old. For
        a joint metric, a dict of its parts.
    group_changes : dict
        The :class:`fairperm.GroupChange` of each group; for a joint metric, a dict of its parts.
    """

    @property
    def answer(self) -> str:
        """The gap with the old and the new model, and whether chance explains the change."""
        return answer_change(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PeriodChange(ChangeResult):
    """The change of the gap from one period to another, as :func:`fairperm.compare_periods` has it.

    All fields of :class:`fairperm.PermutationTestResult` are about the change: ``values`` are the
    changes of the groups' values, ``difference`` is the change of the gap with its
    ``standard_error``, ``confidence_interval`` and ``pvalue``, and ``metric`` is "change in …".

    Attributes
    ----------
    periods : tuple
        The old and the new period.
    gap_old, gap_new : float
        The gap (first group minus second) in either period; ``difference`` is new minus old. For a
        joint metric, a dict of its parts.
    group_changes : dict
        The :class:`fairperm.GroupChange` of each group; for a joint metric, a dict of its parts.
    adjusted_pvalue : float
        Adjusted by Holm's method for all changes that were tested.
    """

    periods: tuple[Hashable, Hashable]
    adjusted_pvalue: float

    @property
    def answer(self) -> str:
        """The gap in both periods, and whether chance explains the change."""
        old, new = map(name_period, self.periods)
        return answer_period_change(self, (old, new))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PeriodComparisonResult(ResultWithFrame):
    """The result of :func:`fairperm.compare_periods`.

    Attributes
    ----------
    metric : str
        The metric's full name.
    attribute : str
        The name of the column of groups, or "".
    groups : tuple
        The two groups; every gap is the first minus the second.
    periods : tuple
        In their order.
    against : str
        Whether changes are from the "previous" or from the "first" period.
    gaps : dict
        The :class:`fairperm.PermutationTestResult` of the gap in each period.
    changes : tuple
        A :class:`fairperm.PeriodChange` for each period but the first.
    n_dropped : int
        Rows left out because of missing values.
    seed : int
        Passing it as ``rng`` gives the same result again.
    notes : tuple of str
        Remarks that matter for reading the result; those of a single change are its own.
    """

    metric: str
    attribute: str
    groups: tuple[Hashable, Hashable]
    periods: tuple[Hashable, ...]
    against: str
    gaps: Mapping[Hashable, PermutationTestResult]
    changes: tuple[PeriodChange, ...]
    n_dropped: int
    seed: int
    notes: tuple[str, ...]

    def columns(self) -> dict[str, list[Any]]:
        """Return a column of an entry for each period, by name.

        They are period, gap, gap_lower, gap_upper (the gap's confidence interval), compared_with
        (the old period), change, change_lower, change_upper, pvalue and adjusted_pvalue; those of
        the change are missing in the first period.
        """
        gaps = [self.gaps[period] for period in self.periods]
        changes = (None, *self.changes)
        old = [None if one is None else _as_value(one.periods[0]) for one in changes]

        def of_changes(name: str, end: int = 0) -> list[float]:
            found = (math.nan if one is None else getattr(one, name) for one in changes)
            return [one[end] if isinstance(one, tuple) else one for one in found]

        return {
            "period": [_as_value(period) for period in self.periods],
            "gap": [gap.difference for gap in gaps],
            "gap_lower": [gap.confidence_interval[0] for gap in gaps],
            "gap_upper": [gap.confidence_interval[1] for gap in gaps],
            "compared_with": old,
            "change": of_changes("difference"),
            "change_lower": of_changes("confidence_interval"),
            "change_upper": of_changes("confidence_interval", end=1),
            "pvalue": of_changes("pvalue"),
            "adjusted_pvalue": of_changes("adjusted_pvalue"),
        }

    def plot(
        self,
        *,
        alpha: float = 0.05,
        width: int = 700,
        height: int = 220,
        mode: str = "auto",
    ) -> LayerChart:
        """Draw the gap in each period with its interval.

        Changes whose adjusted p-value is at most `alpha` are marked. `mode` is "light" or "dark",
        as the page is, or "auto" for both; see :func:`fairperm.plots.gap_over_time`.
        """
        from fairperm import plots

        columns = self.columns()
        first = self.gaps[self.periods[0]]
        return plots.gap_over_time(
            [name_period(period) for period in self.periods],
            columns["gap"],
            columns["gap_lower"],
            columns["gap_upper"],
            pvalues=columns["adjusted_pvalue"],
            against=self.against,
            metric=self.metric,
            groups=first.names,
            absolute=first.is_joint,
            confidence_level=first.confidence_level,
            alpha=alpha,
            width=width,
            height=height,
            mode=mode,
        )

    @property
    def answer(self) -> str:
        """In how many periods the gap changed by more than chance explains, and the clearest."""
        return answer_periods(self, [name_period(one) for one in self.periods])

    def _lines(self) -> list[tuple[str, str]]:
        first = self.gaps[self.periods[0]]
        level = format_level(first.confidence_level)
        lines = [
            (name_period(period), f"gap {_with_interval(gap, level)}")
            for period, gap in self.gaps.items()
        ]
        for change in self.changes:
            name = " → ".join(map(name_period, change.periods))
            text = f"{_with_interval(change, level)}  {state_pvalue(change.pvalue)}"
            if len(self.changes) > 1:
                text += f", adjusted {format_pvalue(change.adjusted_pvalue)}"
            lines.append((name, text))
        counts = [one for gap in self.gaps.values() for one in gap.counts.values()]
        return [
            *lines,
            ("validity", self.changes[0].validity),
            count_rows(counts, self.n_dropped),
        ]


def _with_interval(result: PermutationTestResult, level: str) -> str:
    signed = not result.is_joint
    interval = format_interval(result.confidence_interval, signed=signed)
    return f"{format_number(result.difference, signed=signed)}  {level} interval {interval}"


def _as_value(name: Hashable) -> Any:
    """Return a name that a column of any data frame can hold: text, a number, a date."""
    is_plain = isinstance(name, (str, int, float, date, np.generic))
    return name if is_plain else format_name(name)


def name_period(period: Hashable) -> str:
    """Return the name of a period as text; a day needs no time."""
    return _MIDNIGHT.sub("", format_name(period))


def _describe(change: GroupChange) -> str:
    return f"{format_number(change.old)} → {format_number(change.new)}"
