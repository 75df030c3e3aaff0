"""Results of tests of a gap: frozen, with the names of scipy's results. No computing here."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from fairperm._utils.formatting import (
    format_interval,
    format_level,
    format_number,
    format_pvalue,
    name_group,
)
from fairperm.data.columns import frame_of
from fairperm.errors import InputError
from fairperm.hypothesis_tests.results.answers.gaps import answer_gap
from fairperm.hypothesis_tests.results.text import (
    ShownResult,
    count_rows,
    state_draws,
    state_value,
)
from fairperm.inference.null import clopper_pearson, normal_quantile
from fairperm.metrics.definition import Scheme

if TYPE_CHECKING:
    from collections.abc import Iterator

    from altair import LayerChart
    from numpy.typing import NDArray

    from fairperm.hypothesis_tests.run import Tested
    from fairperm.inference.errors_by_gap import ErrorsByGap

__all__ = ["PermutationTestResult"]

Compared = TypeVar("Compared", bound="PlainResult")
BY_GROUP = ("values", "counts", "standard_errors", "binning_errors", "group_changes")
_ORDER = {**dict.fromkeys(BY_GROUP, "groups"), "gaps": "periods"}  # of what is written as a list


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlainResult(ShownResult):
    """A result that shows itself, and can be written as JSON: its fields but those without repr."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values, without the null distribution's draws.

        Values and counts are lists in the order of ``groups``, whose names need not be strings.
        Undefined numbers are None, infinite ones the strings "Infinity" and "-Infinity".
        """
        plain: dict[str, Any] = {"answer": self.answer}
        for part in fields(self):
            # a column's name is the caller's, and no finding
            if not part.repr or part.name == "attribute":
                continue
            value = getattr(self, part.name)
            if part.name in _ORDER and value is not None:
                value = [value[one] for one in getattr(self, _ORDER[part.name])]
            plain[part.name] = json_ready(value)
        return plain


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ResultWithFrame(PlainResult):
    """A result whose :meth:`columns` are also a data frame.

    Attributes
    ----------
    frame_library : str or None
        The library of the frame that was passed as `data`, if one was.
    """

    frame_library: str | None = field(repr=False)

    def columns(self) -> Mapping[str, Any]:
        """Return the columns of the data frame."""
        raise NotImplementedError

    def to_frame(self, library: str | None = None) -> Any:
        """Return ``columns()`` as a data frame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Library of the frame: by default that of the frame passed as `data`, or pandas.
        """
        return frame_of(self.columns(), library, self.frame_library)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ResultOfComparisons(ResultWithFrame, Generic[Compared]):
    """A sequence of comparisons, of which ``largest`` has the largest gap or distance."""

    comparisons: tuple[Compared, ...]

    def __iter__(self) -> Iterator[Compared]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raise AttributeError; for what a comparison has, with a hint."""
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            # copies ask for private names, and for fields that are not set yet
            is_own = name.startswith("_") or name in {part.name for part in fields(self)}
            if not is_own and hasattr(self.largest, name):
                text += f", which belongs to a comparison: use result.largest.{name}"
            raise AttributeError(text, name=name, obj=self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ResultWithPValue(PlainResult):
    """What every test of one statistic finds.

    Attributes
    ----------
    pvalue : float
        Never zero.
    pvalue_interval, pvalue_interval_wilson : tuple of float
        Clopper–Pearson (at least the confidence level) and Wilson (the confidence level on
        average) intervals for the p-value that infinitely many draws would give.
    confidence_level : float
        The level of all intervals.
    n_resamples : int
        Draws that the p-value and the interval are made of.
    stopped_early : bool
        Whether drawing stopped because 20 draws were at least as extreme as the sample (in each
        tail of a two-sided test): more would hardly change the p-value.
    n_dropped : int
        Rows left out because of missing values.
    seed : int
        Passing it as ``rng`` gives the same result again.
    validity : str
        For which null the p-value is valid, and in which sense.
    notes : tuple of str
        Remarks that matter for reading the result.
    null_distribution : numpy.ndarray
        The statistic under each permutation.
    """

    pvalue: float
    pvalue_interval: tuple[float, float]
    pvalue_interval_wilson: tuple[float, float]
    confidence_level: float
    n_resamples: int
    stopped_early: bool = False
    n_dropped: int
    seed: int
    validity: str
    notes: tuple[str, ...]
    null_distribution: NDArray[np.float64] = field(repr=False)

    def _draws(self) -> str:
        if getattr(self, "exact", False):
            return "exact"
        return state_draws(
            self.n_resamples,
            self.confidence_level,
            self.pvalue_interval,
            stopped_early=self.stopped_early,
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class GapResult(ResultWithPValue):
    """The gap between two groups, and how likely chance alone is to make one as large.

    Attributes
    ----------
    metric : str
        The metric's full name.
    attribute : str
        The name of the column of groups, or "".
    groups : tuple
        The two groups; every difference is the first minus the second.
    values : dict
        The metric in each group (with strata: over all strata together). For a joint metric,
        a dict of its parts.
    counts : dict
        In each group, the number of rows (and of clusters) and the totals that the value is made
        of. With weights "numerator" and "denominator" are rows, "weighted numerator" and "weighted
        denominator" the sums of their weights, and "weight" that of the group.
    difference : float
        The gap: first group minus second; with strata, the weighted mean of the strata's gaps.
        For a joint metric, the largest absolute gap of its parts.
    part : str or None
        The part of a joint metric that has the largest absolute gap; None for other metrics.
    standard_error : float
        Standard error of the difference.
    confidence_interval : tuple of float
        For the difference.
    statistic : float
        The studentized gap, which is compared with its null distribution; without its skewness if
        the variance is "hall".
    n_undefined : int
        Draws in which the statistic is undefined; each counts as extreme.
    """

    metric: str
    attribute: str = ""
    groups: tuple[Hashable, Hashable]
    values: Mapping[Hashable, Any]
    counts: Mapping[Hashable, Mapping[str, float]]
    difference: float
    part: str | None
    standard_error: float
    confidence_interval: tuple[float, float]
    statistic: float
    alternative: str
    n_undefined: int
    n_strata: int

    @property
    def is_joint(self) -> bool:
        """Whether the metric is a joint one, with several values in each group."""
        return isinstance(self.values[self.groups[0]], Mapping)

    @property
    def names(self) -> tuple[str, str]:
        """The names of both groups as text; a number has its column's name before it."""
        first, second = (name_group(self.attribute, group) for group in self.groups)
        return first, second

    @property
    def answer(self) -> str:
        """Which group is higher, by how much, and whether chance explains it."""
        return f"{answer_gap(self)}{self.rests_on}"

    @property
    def rests_on(self) -> str:
        """What the gap is only known by, to follow an answer; "" if groups are known."""
        return ""

    def _lines(self) -> list[tuple[str, str]]:
        name, gap = "difference", format_number(self.difference, signed=not self.is_joint)
        if self.part is not None:
            name, gap = "absolute gap", f"{gap} ({self.part}, the largest)"
        interval = format_interval(self.confidence_interval, signed=not self.is_joint)
        level = format_level(self.confidence_level)
        return [
            *self._value_lines(),
            (name, f"{gap}  {level} interval {interval}"),
            ("p-value", f"{format_pvalue(self.pvalue)}  {self.alternative}, {self._draws()}"),
            ("validity", self.validity),
            count_rows(self.counts.values(), self.n_dropped),
        ]

    def _value_lines(self) -> list[tuple[str, str]]:
        return [
            (name, self.describe(group))
            for name, group in zip(self.names, self.groups, strict=True)
        ]

    def describe(self, group: Hashable) -> str:
        """Return the value of a group, with the rows that it is made of."""
        return state_value(self.values[group], self.counts[group])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PermutationTestResult(GapResult):
    """The result of :func:`fairperm.permutation_test`.

    Attributes
    ----------
    standard_errors : dict
        Standard errors of the values, in the same form; NaN if unknown (functions with strata).
    scheme, variance : str
        Among which rows labels were exchanged, and the variance that studentized the gap.
    ordering : str
        By which alternative draws are compared with the sample: `alternative`, or "symmetric" for
        a two-sided test that compares sizes, as exact tests of rates do.
    binning_errors : dict or None
        Bounds on the error of each group's value from putting scores into bins, which happens only
        in a lazy frame or file with very many distinct scores; None without bins.
    gap_variance : ErrorsByGap or None
        What says the standard error of a rate's gap, or of its change between models, as a function
        of the true one, for tests at a margin; or why a change has none. None for other metrics.
    tested : Tested or None
        The reference of the test, for tests at a margin; None if read from a file.
    exact : bool
        Whether all permutations, or all tables of an unconditional test, were counted: the p-value
        then has no Monte Carlo error.
    smallest_pvalue : float or None
        The smallest p-value that such data allow, if it is above 1 − ``confidence_level``: then no
        gap could have been significant. Else None.
    null_distribution : numpy.ndarray
        The statistic under each permutation; with ``n_resamples`` 0, points of the normal limit.
        Of an unconditional test, the statistic of each table, with its probability at the rate of
        both groups together; of more than 20,000 tables, points of the normal limit.
    null_probabilities : numpy.ndarray or None
        Their probabilities if ``exact``, or those of the points; None for random draws, which are
        equally likely.
    """

    standard_errors: Mapping[Hashable, Any]
    scheme: str
    variance: str | None
    ordering: str
    exact: bool
    binning_errors: Mapping[Hashable, float] | None
    gap_variance: ErrorsByGap | None = field(default=None, repr=False)
    smallest_pvalue: float | None = None
    tested: Tested | None = field(default=None, repr=False)
    null_probabilities: NDArray[np.float64] | None = field(repr=False)

    @property
    def value_intervals(self) -> dict[Hashable, tuple[float, float] | None]:
        """Each group's value has an interval of its own; None for joint metrics and distances.

        That of a rate of plain rows is Clopper and Pearson's; others are made of the standard
        error. Two intervals may overlap though the gap is significant.
        """
        return {group: self._find_interval(group) for group in self.groups}

    def _find_interval(self, group: Hashable) -> tuple[float, float] | None:
        value, counts, level = self.values[group], self.counts[group], self.confidence_level
        error = self.standard_errors[group]
        if isinstance(value, Mapping) or not math.isfinite(error):
            return None
        if "denominator" in counts and counts.keys().isdisjoint(("weight", "clusters", "sets")):
            found, n = counts["numerator"], counts["denominator"]
            if n and math.isclose(value, found / n):
                return clopper_pearson(found, n, level)
        reach = normal_quantile(level) * error
        return value - reach, value + reach

    def plot(self, *, width: int = 700, height: int = 220, mode: str = "auto") -> LayerChart:
        """Draw the null distribution with the observed statistic in it.

        `mode` is "light" or "dark", as the page is, or "auto" for both; see
        :func:`fairperm.plots.null_distribution`. Raises InputError for a result that was read from
        a file, which does not hold the draws.
        """
        from fairperm import plots

        if not len(self.null_distribution):
            raise InputError("The draws of this result were not written to the file it is from.")

        return plots.null_distribution(
            self.null_distribution,
            self.statistic,
            probabilities=self.null_probabilities,
            alternative=self.ordering,
            pvalue=self.pvalue,
            metric=self.metric,
            groups=None if self.is_joint else self.groups,
            studentized=self.variance is not None,
            draws="tables" if self.scheme == Scheme.UNCONDITIONAL else "permutations",
            width=width,
            height=height,
            mode=mode,
        )

    def _draws(self) -> str:
        return "normal limit" if self.n_resamples == 0 else GapResult._draws(self)


def without_answer(test: PlainResult | None) -> dict[str, Any] | None:
    """Return a test of an audit as JSON-ready values: the answer is that of its row."""
    if test is None:
        return None
    return {name: one for name, one in test.to_dict().items() if name != "answer"}


def json_ready(value: Any) -> Any:
    """Return a value in strict JSON: without NaN and infinity, and with strings as keys."""
    if isinstance(value, Mapping):
        return {str(key): json_ready(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(one) for one in value]
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return json_ready(asdict(value))
    if isinstance(value, np.ndarray):
        return json_ready(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
