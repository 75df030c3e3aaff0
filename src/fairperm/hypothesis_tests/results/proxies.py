"""The result of a test of groups that are known only as probabilities. No computing here."""

from __future__ import annotations

from dataclasses import dataclass

from fairperm.data.proxies import Assumption
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult

__all__ = ["ProxyTestResult"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ProxyTestResult(PermutationTestResult):
    """The result of :func:`fairperm.permutation_test` with ``group_probabilities``.

    Attributes
    ----------
    proxy_assumption : str
        What the gap rests on: "outcome_given_group" (least squares) or "group_given_proxy"
        (weighting).
    bounds : tuple of float or None
        With ``proxy``: the smallest and the largest gap that the data allow, whatever the
        assumption. None without.
    bounds_interval : tuple of float or None
        An interval that holds both bounds, and so the true gap.
    """

    proxy_assumption: str
    bounds: tuple[float, float] | None = None
    bounds_interval: tuple[float, float] | None = None

    @property
    def rests_on(self) -> str:
        """What is assumed, and what happens if that fails, to follow an answer."""
        return f" {Assumption(self.proxy_assumption).sentences}"
