"""What the tests return: frozen, with the same names as scipy's results. No computing here."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm.errors import shown

if TYPE_CHECKING:
    from altair import LayerChart
    from numpy.typing import NDArray

__all__ = ["BootstrapTestResult", "PermutationTestResult"]


_LINE = 88  # characters
_BY_GROUP = {"values", "counts", "standard_errors", "binning_errors"}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlainResult:
    """What all results have in common: that they can be written down."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values, without the null distribution's draws.

        Values and counts are lists in the order of ``groups``, whose names need not be strings.
        Undefined numbers are None, infinite ones the strings "Infinity" and "-Infinity".
        """
        plain = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, np.ndarray):
                continue
            if part.name in _BY_GROUP:
                value = value and [value[group] for group in self.groups]  # type: ignore[attr-defined]
            plain[part.name] = json_ready(value)
        return plain


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class GapResult(PlainResult):
    """The gap between two groups, and how likely chance alone makes one as large.

    Attributes
    ----------
    metric : str
        The metric's full name.
    groups : tuple
        The two groups; every difference is the first less the second.
    values : dict
        The metric in each group (with strata: over all strata together). For a joint metric,
        a dict of its parts.
    counts : dict
        In each group, the number of rows and the totals that the value is made of.
    difference : float
        The gap: first group less second; with strata, the weighted mean of the strata's gaps.
        For a joint metric, the largest absolute gap of its parts.
    standard_error : float
        Of the difference.
    confidence_interval : tuple of float
        For the difference.
    statistic : float
        What is compared with its null distribution.
    pvalue : float
        Never zero.
    pvalue_interval, pvalue_interval_wilson : tuple of float
        Clopper–Pearson (at least the confidence level) and Wilson (the confidence level on
        average) intervals for the p-value that infinitely many draws would give.
    n_undefined : int
        Draws in which the statistic is undefined; each counts as extreme.
    n_dropped : int
        Rows left out for missing values.
    seed : int
        Passing it as ``rng`` gives the same result again.
    validity : str
        For which null the p-value is valid, and in which sense.
    notes : tuple of str
        What else must be known to read the result rightly.
    """

    metric: str
    groups: tuple[Hashable, Hashable]
    values: Mapping[Hashable, Any]
    counts: Mapping[Hashable, Mapping[str, float]]
    difference: float
    standard_error: float
    confidence_interval: tuple[float, float]
    confidence_level: float
    statistic: float
    pvalue: float
    pvalue_interval: tuple[float, float]
    pvalue_interval_wilson: tuple[float, float]
    alternative: str
    n_resamples: int
    n_undefined: int
    n_strata: int
    n_dropped: int
    seed: int
    validity: str
    notes: tuple[str, ...]

    @property
    def is_joint(self) -> bool:
        """Tell whether the metric is a joint one, of which each group has several values."""
        return isinstance(self.values[self.groups[0]], Mapping)

    def __repr__(self) -> str:
        first, second = self.groups
        width = max(len(shown(first)), len(shown(second)), 10)
        lines = [f"{type(self).__name__}: {self.metric}, {shown(first)} less {shown(second)}"]
        lines += [f"  {shown(group):<{width}}  {self._described(group)}" for group in self.groups]
        low, high = self.confidence_interval
        lines += [
            f"  {'difference':<{width}}  {self.difference:+z.4f}"
            f"  {self.confidence_level:.4g} interval [{low:+z.4f}, {high:+z.4f}]",
            f"  {'p-value':<{width}}  {self.pvalue:.4g}  {self.alternative}, {self._how()}",
            f"  {'validity':<{width}}  {self.validity}",
            *left_out(self.n_dropped, width),
            *noted(self.notes, width),
        ]
        return "\n".join(lines)

    def _described(self, group: Hashable) -> str:
        value, counts = self.values[group], self.counts[group]
        if self.is_joint:
            return ", ".join(f"{name} {one:z.4f}" for name, one in value.items())
        if "denominator" in counts:
            return f"{value:z.4f}  {counts['numerator']:,} of {counts['denominator']:,}"
        return f"{value:z.4f}  of {counts['rows']:,} rows"

    def _how(self) -> str:
        low, high = self.pvalue_interval
        level = f"{self.confidence_level:.4g}"
        return f"{self.n_resamples:,} draws, {level} interval [{low:.4g}, {high:.4g}]"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PermutationTestResult(GapResult):
    """The result of :func:`fairperm.permutation_test`.

    Attributes
    ----------
    standard_errors : dict
        Of the values, in the same form; NaN where it is not known (functions with strata).
    scheme, variance : str
        What was exchanged, and what the gap was divided by (None: nothing).
    binning_errors : dict or None
        How far off each group's AUC can be because scores were put into bins, which happens only
        in a lazy frame with very many distinct scores; None if they were not.
    exact : bool
        Whether every permutation was counted, so that the p-value has no Monte Carlo error.
    null_distribution : numpy.ndarray
        The statistic under each permutation; with ``n_resamples`` 0, points of the normal limit.
    null_probabilities : numpy.ndarray or None
        Their probabilities if ``exact``, and of those points; None if they are equally likely
        random draws.
    """

    standard_errors: Mapping[Hashable, Any]
    scheme: str
    variance: str | None
    exact: bool
    binning_errors: Mapping[Hashable, float] | None
    null_distribution: NDArray[np.float64] = field(repr=False)
    null_probabilities: NDArray[np.float64] | None = field(repr=False)

    def plot(self, *, width: int = 700, height: int = 220, mode: str = "auto") -> LayerChart:
        """Draw the null distribution with the observed statistic in it.

        `mode` is "light" or "dark", as the page is, or "auto" for both; see
        :func:`fairperm.plots.null_distribution`.
        """
        from fairperm import plots

        return plots.null_distribution(
            self.null_distribution,
            self.statistic,
            probabilities=self.null_probabilities,
            alternative=self.alternative,
            pvalue=self.pvalue,
            metric=self.metric,
            groups=self.groups,
            studentized=self.variance is not None,
            width=width,
            height=height,
            mode=mode,
        )

    def _how(self) -> str:
        if self.n_resamples == 0:
            return "normal limit"
        return "exact" if self.exact else GapResult._how(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class BootstrapTestResult(GapResult):
    """The result of :func:`fairperm.bootstrap_test`.

    Attributes
    ----------
    method : str
        How the confidence interval was made.
    bootstrap_distribution : numpy.ndarray
        The gap in each bootstrap sample.
    """

    method: str
    bootstrap_distribution: NDArray[np.float64] = field(repr=False)


def left_out(n: int, width: int = 0) -> list[str]:
    """Return the line that says how many rows were left out, or none if there were none."""
    rows = "1 row" if n == 1 else f"{n:,} rows"
    return [f"  {'left out':<{width}}  {rows} with missing values"] if n else []


def noted(notes: Iterable[str], width: int = 0) -> list[str]:
    """Return the lines that say what else must be known to read a result rightly."""
    indent = " " * (width + 4)
    lines = []
    for note in notes:
        lines += textwrap.wrap(
            note,
            max(_LINE, len(indent) + _LINE // 2),  # names of groups may be long
            initial_indent=f"  {'note':<{width}}  ",
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def json_ready(value: Any) -> Any:
    """Return a value as strict JSON has it: no NaN, no infinity, and keys that are strings."""
    if isinstance(value, Mapping):
        return {str(key): json_ready(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
