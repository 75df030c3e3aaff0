"""The result of tests of a margin. No computing here."""

from __future__ import annotations

from dataclasses import dataclass

from fairperm._utils import checks
from fairperm._utils.formatting import (
    format_interval,
    format_level,
    format_metric,
    format_number,
    format_pvalue,
    name_of_gap,
    state_pvalue,
)
from fairperm.hypothesis_tests.results.answers.changes import describe_change
from fairperm.hypothesis_tests.results.answers.gaps import describe_gap
from fairperm.hypothesis_tests.results.answers.words import (
    has_clusters,
    is_word,
    isolate,
    join_values,
    level_of,
    own,
    possessive,
    sentence,
    state_p,
    unit_of_gap,
)
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult, PlainResult
from fairperm.hypothesis_tests.results.text import count_rows, state_draws

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginTest:
    """A one-sided test that the gap or ratio lies on one side of a bound.

    ``bound : float``: The difference or ratio of the null hypothesis.

    ``statistic : float``: Distance of the sample from the bound in standard errors; NaN if the
    error is zero.

    ``pvalue : float``: Never zero.

    ``pvalue_interval``, ``pvalue_interval_wilson : tuple of float``: Clopper–Pearson and Wilson
    intervals for the p-value of infinitely many draws.
    """

    bound: float
    statistic: float
    pvalue: float
    pvalue_interval: Interval
    pvalue_interval_wilson: Interval


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EquivalenceTestResult(PlainResult):
    """The result of :func:`fairperm.equivalence_test` and :func:`fairperm.noninferiority`.

    Attributes
    ----------
    permutation : PermutationTestResult
        The test of no gap that everything here is made from, with values, counts and draws.
    scale : str
        "difference" (first group minus second) or "ratio" (first over second): what has the margin.
    bounds : tuple of float
        The bounds of the margin; infinite (or a ratio of 0) on a side without one.
    estimate : float
        The difference or ratio in the sample.
    confidence_interval : tuple of float
        The differences or ratios that neither one-sided test rejects at 1 − `confidence_level`: it
        lies between the bounds if and only if ``pvalue`` is below that. Each end is a bound at
        `confidence_level`; both together are an interval at 2 · `confidence_level` − 1.
    confidence_level : float
        Level of each end of ``confidence_interval``, and of the intervals of p-values and ratio.
    lower, upper : MarginTest or None
        The tests that the difference or ratio is above the lower, and below the upper bound, each
        with its ``statistic`` and ``pvalue``; None where there is no bound.
    pvalue, pvalue_interval, pvalue_interval_wilson
        The larger p-value of the two, as both tests must reject, and intervals for the p-value of
        infinitely many draws.
    ratio, ratio_interval : float and tuple of float, or None
        The ratio of the groups' values and its two-sided interval on the log scale, for a margin
        of either kind; None without a ratio.
    validity : str
        For which null the p-value is valid, and in which sense.
    notes : tuple of str
        Remarks that matter for reading the result, with those of ``permutation``.
    """

    permutation: PermutationTestResult
    scale: str
    bounds: tuple[float, float]
    estimate: float
    confidence_interval: tuple[float, float]
    confidence_level: float
    lower: MarginTest | None
    upper: MarginTest | None
    pvalue: float
    pvalue_interval: tuple[float, float]
    pvalue_interval_wilson: tuple[float, float]
    ratio: float | None
    ratio_interval: tuple[float, float] | None
    validity: str
    notes: tuple[str, ...]

    def holds_at(self, alpha: float = 0.05) -> bool:
        """Whether there is evidence at this level that the gap lies within the margin."""
        return self.pvalue <= checks.fraction("alpha", alpha)

    @property
    def answer(self) -> str:
        """Whether the gap or ratio is shown to lie within its margin."""
        test = self.permutation
        unit = unit_of_gap(test)
        is_gap = self.scale == "difference"
        is_change = hasattr(test, "gap_old")
        names = [isolate(name) for name in test.names]
        if is_change:
            head, what = f"With the change, {describe_change(test, test.names)}", "the change"  # type: ignore[arg-type]
        elif is_gap:
            head, what = describe_gap(test, test.names), name_of_gap(*test.names)
        else:
            values = join_values(unit, (test.values[group] for group in test.groups))
            metric, ratio = format_metric(test.metric), format_number(self.estimate)
            head = f"{own(names[0], metric)} is {ratio} times {possessive(names[1])} ({values})"
            if not is_word(names[1]):
                head = f"{own(names[0], metric)} is {ratio} times that of {names[1]} ({values})"
            what = "the ratio"

        def write(limits: tuple[float, float]) -> str:
            return unit.interval(limits) if is_gap else format_interval(limits)

        low, high = self.bounds
        ends = f"between {write((low, high)).replace(' to ', ' and ')}"
        if is_gap and low == -high:
            ends = f"within ±{unit.size(high)}"
        if self.lower is None or self.upper is None:
            bound = high if self.lower is None else low
            one = unit.signed(bound) if is_gap else format_number(bound)
            ends = f"{'below' if self.lower is None else 'above'} {one}"
        stated = state_p(self.pvalue, self.pvalue, None)
        if has_clusters(test):
            stated += ", by clusters"
        if self.holds_at(level_of(self)):
            return sentence(f"{head}; {what} is shown to lie {ends} ({stated})") + test.rests_on
        claim = "equivalence" if self.lower and self.upper else "non-inferiority"
        interval = write(self.confidence_interval)
        level = format_level(2 * self.confidence_level - 1)
        text = sentence(
            f"{head}; {claim} not established ({stated}): the {level} interval of {what}, "
            f"{interval}, is not all {ends}"
        )
        return text + test.rests_on

    def _lines(self) -> list[tuple[str, str]]:
        names, signed = self.permutation.names, self.scale == "difference"
        interval = format_interval(self.confidence_interval, signed=signed)
        level = format_level(2 * self.confidence_level - 1)
        estimate = format_number(self.estimate, signed=signed)
        margin = ", ".join(
            f"{side} {format_number(test.bound, signed=signed)} ({state_pvalue(test.pvalue)})"
            for side, test in (("above", self.lower), ("below", self.upper))
            if test is not None
        )
        return [
            *(
                (name, self.permutation.describe(group))
                for name, group in zip(names, self.permutation.groups, strict=True)
            ),
            (self.scale, f"{estimate}  {level} interval {interval}"),
            ("margin", margin),
            ("p-value", f"{format_pvalue(self.pvalue)}  {self._draws()}"),
            ("verdict", self._verdict()),
            ("validity", self.validity),
            count_rows(self.permutation.counts.values(), self.permutation.n_dropped),
        ]

    def _verdict(self) -> str:
        alpha, what = level_of(self), "equivalence" if self.lower and self.upper else "margin"
        established = f"{what} {'' if self.holds_at(alpha) else 'not '}established"
        return f"{established} at level {alpha:g}"

    def _draws(self) -> str:
        variance = self.permutation.gap_variance
        if (variance and variance.is_paired) or self.permutation.n_resamples == 0:
            return "normal limit"
        if self.permutation.exact:
            return "no Monte Carlo error"
        return state_draws(
            self.permutation.n_resamples,
            self.confidence_level,
            self.pvalue_interval,
            stopped_early=self.permutation.stopped_early,
        )
