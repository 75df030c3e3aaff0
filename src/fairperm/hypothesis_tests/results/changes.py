"""Results of tests of a change of the gap. No computing here."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import format_number, state_pvalue
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult, json_ready

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.equivalence import EquivalenceTestResult

__all__ = ["GroupChange", "ModelComparisonResult"]


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


def _describe(change: GroupChange) -> str:
    return f"{format_number(change.old)} → {format_number(change.new)}"


def _plain(change: Any) -> Any:
    if isinstance(change, Mapping):
        return {name: asdict(one) for name, one in change.items()}
    return asdict(change)
