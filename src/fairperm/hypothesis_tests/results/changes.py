"""Results of tests of a change of the gap. No computing here."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    NONE,
    format_interval,
    format_number,
    format_pvalue,
    state_pvalue,
)
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult, json_ready

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.equivalence import EquivalenceTestResult

__all__ = ["GapChange", "GroupChange", "ModelComparisonResult"]

CHANGE_VERDICTS = (
    *("closed", "narrowed", "unchanged within margin", "widened", "inconclusive", "too small"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """The change of one group's value, with a paired test of its own.

    Attributes
    ----------
    old, new : float
        The value with the old and with the new model.
    change : float
        New minus old.
    standard_error : float
        Of the change; the rows are paired.
    pvalue : float
        Two-sided: McNemar's exact test of a rate of plain rows whose denominator the models share,
        otherwise the normal test of the change over its standard error. NaN without one.
    exact : bool
        Whether it is McNemar's.
    """

    old: float
    new: float
    change: float
    standard_error: float
    pvalue: float
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ModelComparisonResult(PermutationTestResult):
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

    gap_old: Any
    gap_new: Any
    group_changes: Mapping[Hashable, Any]

    def test_margin(self, margin: float | tuple[float, float]) -> EquivalenceTestResult:
        """Test whether the gap changed by less than a margin.

        Its null hypothesis is a change as large as the margin or larger: a small p-value is
        evidence that the gap stayed. Nothing is drawn again.

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

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values, without the null distribution's draws."""
        plain = PermutationTestResult.to_dict(self)
        changes = (self.group_changes[group] for group in self.groups)
        plain["group_changes"] = [json_ready(_plain(one)) for one in changes]
        return plain

    def _value_lines(self) -> list[tuple[str, str]]:
        lines = PermutationTestResult._value_lines(self)
        if self.is_joint:
            return lines
        both = (format_number(one, signed=True) for one in (self.gap_old, self.gap_new))
        return [*lines, ("gap", " → ".join(both))]

    def describe(self, group: Hashable) -> str:
        """Return the values of a group with both models, and the p-value of its change."""
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
        equivalence p-value is.
    size_pvalue, adjusted_size_pvalue : float or None
        The p-value of a new gap that is not smaller in size than the old one or, if the estimate
        is larger, not larger: the larger of the p-values of no change and of gaps that add up to
        zero. None for joint metrics.
    equivalence_pvalue, adjusted_equivalence_pvalue : float or None
        The p-value of a change as large as the margin or larger.
    closing_pvalue, adjusted_closing_pvalue : float or None
        The p-value of a new gap that is not smaller, or not within the margin.
    verdict : str
        "closed", "narrowed", "unchanged within margin", "widened", "inconclusive" or "too small".
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
    verdict: str = ""
    reason: str = ""

    def __repr__(self) -> str:
        old, new = self.gap_texts
        p = format_pvalue(self.adjusted_pvalue)
        return f"GapChange: {old} → {new}, adjusted p {p}: {self.verdict}"

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
    def _has_sign(self) -> bool:
        return self.result is not None and not self.result.is_joint

    @property
    def difference(self) -> float | None:
        """Return the change of the gap."""
        return None if self.result is None else self.result.difference

    @property
    def confidence_interval(self) -> tuple[float, float] | None:
        """Return the interval of the change."""
        return None if self.result is None else self.result.confidence_interval

    @property
    def pvalue(self) -> float | None:
        """Return the p-value of no change, by itself."""
        return None if self.result is None else self.result.pvalue

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON-ready values."""
        plain = {
            name: json_ready(getattr(self, name)) for name in self.__slots__ if name != "result"
        }
        plain["test"] = None if self.result is None else self.result.to_dict()
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
            "change_verdict": self.verdict,
            "change_reason": self.reason,
        }


def _describe(change: GroupChange) -> str:
    return f"{format_number(change.old)} → {format_number(change.new)}"


def _plain(change: Any) -> Any:
    if isinstance(change, Mapping):
        return {name: asdict(one) for name, one in change.items()}
    return asdict(change)
