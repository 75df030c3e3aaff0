"""One-sided tests at a margin, and intervals of the gap and the ratio, from a permutation test.

Everything here is a function of a result: no data are read and nothing is drawn again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import cast

import numpy as np

from fairperm._utils.checks import DIRECTIONS
from fairperm.errors import InputError, argument
from fairperm.hypothesis_tests.margins.restricted_rates import Rates, halved
from fairperm.hypothesis_tests.reaches import ErrorReach, restore_both_ways
from fairperm.hypothesis_tests.results.equivalence import MarginTest
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.run import Tested
from fairperm.inference.null import agree, nearer_to_null, tie_tolerance
from fairperm.inference.reference import NormalLimit, Reference, margin_critical, margin_pvalue
from fairperm.inference.skewness import remove_skewness
from fairperm.metrics.definition import Scheme

Interval = tuple[float, float]


def margin_pvalues(
    result: PermutationTestResult, margin: float | Interval
) -> tuple[MarginTest, MarginTest]:
    """Test that the gap lies above −margin, and that it lies below +margin."""
    # With a pair ``(low, high)``: above low, and below high. The p-value of a gap within the margin
    # is the larger of the two.
    low, high = margin if isinstance(margin, tuple) else (-margin, margin)
    gap = Difference(result)
    return gap.test(low, "greater"), gap.test(high, "less")


def exceedance_pvalue(result: PermutationTestResult, margin: float) -> float:
    """Return the p-value of a gap beyond the margin, on the side or sides of the alternative.

    Its null hypothesis is a gap from −margin to margin. On two sides it is twice the smaller of
    the p-values at both ends. A gap beyond the margin is a gap, so it is never below the p-value
    of no gap.
    """
    gap = Difference(result)
    ends = {"greater": [margin], "less": [-margin]}.get(result.alternative, [margin, -margin])
    smallest = min(gap.test(end, "greater" if end > 0 else "less").pvalue for end in ends)
    return max(min(len(ends) * smallest, 1.0), result.pvalue)


def ratio_pvalues(result: PermutationTestResult, bound: float) -> tuple[float, float]:
    """Return the p-values of a ratio beyond the bound, and of one within it."""
    # Within is from the bound, a number below 1, to its inverse: whichever group is divided by the
    # other. Beyond it, sides count as in :func:`exceedance_pvalue`.
    ratio = Ratio(result)
    ends = {"greater": [1 / bound], "less": [bound]}.get(result.alternative, [bound, 1 / bound])
    smallest = min(ratio.test(end, "greater" if end > 1 else "less").pvalue for end in ends)
    beyond = max(min(len(ends) * smallest, 1.0), result.pvalue)
    within = max(ratio.test(bound, "greater").pvalue, ratio.test(1 / bound, "less").pvalue)
    return beyond, within


def ratio_interval(result: PermutationTestResult) -> tuple[float, Interval] | None:
    """Return the ratio of first to second group with its interval; None if there is no ratio.

    The interval of an unconditional test inverts it. Others are on the log scale, where errors of
    ratios are nearly symmetric (Katz et al., 1978), with the quantile of the gap's interval. If a
    rate is 0 or 1, ½ is added to all counts of both groups, and the interval then includes the
    observed ratio: it begins at 0 if the first rate is 0, and is unbounded if the second is. It
    excludes 1 exactly if the test rejects.
    """
    if result.is_joint or result.variance is None or _lack_of_ratio(result) is not None:
        return None
    ratio = Ratio(result).estimate
    rates, tested = _plain_rates(result), _tested(result)
    if rates is not None and tested.observed.reach is rates:
        level = result.confidence_level
        inverted = rates.invert_ratio(tested.observed.ordering, level)
        low, high = inverted or rates.ratio_interval(tested.critical(level))
    else:
        low, high = _log_interval(result)
    return ratio, agree(
        (min(low, ratio), max(high, ratio)),
        result.pvalue,
        result.alternative,
        result.confidence_level,
        ratio,
        equal=1.0,
    )


def _log_interval(result: PermutationTestResult) -> Interval:
    """Return the interval on the log scale."""
    centre, error = _log_ratio(result)
    low, high = 0.0, math.inf  # rows that do not vary do not show how far chance goes
    if error > 0:
        reach = ErrorReach(
            np.array([centre]),
            np.array([error]),
            math.inf,
            _log_blur(result),
            _log_skewness(result, error),
        )
        logs = reach.interval(_tested(result).critical(result.confidence_level))
        with np.errstate(over="ignore"):
            low, high = (float(end) for end in np.exp(logs))
    return low, high


def _log_ratio(result: PermutationTestResult) -> tuple[float, float]:
    """Return the logarithm of the ratio, and its standard error by the delta method."""
    first, second = (float(result.values[group]) for group in result.groups)
    errors: Interval = tuple(result.standard_errors[group] for group in result.groups)
    rates = _plain_rates(result)
    if rates is not None:
        rates = rates.with_half()
        first, second = rates.values()
        errors = rates.errors((first, second))
    return math.log(first / second), _combine(result, errors, (1 / first, 1 / second))


def _log_skewness(result: PermutationTestResult, error: float) -> float:
    """Return the skewness of the log ratio, 0 if it is left in; taking logarithms removes some.

    A logarithm L of a value with relative variance v has the third cumulant of the value over its
    cube, less 3v² that come from its curvature; and L varies with its error by 2v² less. Of the two
    terms that Hall's transformation takes out for a mean, together they leave ∓ 3v²/2.
    """
    cumulants = _tested(result).observed.cumulants
    if cumulants is None:
        return 0.0
    parts = [
        third / result.values[group] ** 3
        - 1.5 * (result.standard_errors[group] / result.values[group]) ** 4
        for group, third in zip(result.groups, cumulants, strict=True)
    ]
    return float((parts[0] - parts[1]) / error**3)


def _combine(result: PermutationTestResult, errors: Interval, factors: Interval) -> float:
    """Return the standard error of a difference of both values, each times its factor."""
    # groups have no row in common, but matched sets or ranked lists: there their values depend on
    # each other
    first, second = (one * factor for one, factor in zip(errors, factors, strict=True))
    if result.scheme in {*Scheme}:
        return math.hypot(first, second)
    covariance = (errors[0] ** 2 + errors[1] ** 2 - result.standard_error**2) / 2
    variance = first**2 + second**2 - 2 * factors[0] * factors[1] * covariance
    return math.sqrt(max(variance, 0.0))


def _log_blur(result: PermutationTestResult) -> float:
    """Return how far bins of scores may have moved the logarithm of the ratio."""
    hidden = result.binning_errors or {}
    shares = [error / result.values[group] for group, error in hidden.items()]
    return sum(-math.log1p(-share) if share < 1 else math.inf for share in shares)


class Scale(ABC):
    """The quantity that is compared with a bound: the groups' difference, or their ratio."""

    def __init__(self, result: PermutationTestResult) -> None:
        _check_single(result)
        first, second = result.groups
        self.result = result
        values = _tested(result).observed.compared_values
        self.values: tuple[float, float] = values or (result.values[first], result.values[second])
        self.rates = _plain_rates(result)
        self.reference: Reference = _tested(result).reference
        hidden = result.binning_errors or {}  # of each group's AUC
        self.hidden = hidden.get(first, 0.0), hidden.get(second, 0.0)

    @property
    @abstractmethod
    def estimate(self) -> float:
        """Return the difference or ratio in the sample."""

    @abstractmethod
    def excess(self, bound: float) -> float:
        """Return the first group's value minus its value at the bound."""

    @abstractmethod
    def blur(self, bound: float) -> float:
        """Return how much of the excess bins of scores may have made."""

    @abstractmethod
    def size(self, bound: float) -> float:
        """Return the size of the terms of the excess, to which rounding errors are relative."""

    @abstractmethod
    def error(self, bound: float) -> float:
        """Return the standard error of the excess, were the bound the truth."""

    @abstractmethod
    def skewness(self, bound: float) -> float:
        """Return the skewness of the excess; 0 if the statistic leaves it in."""

    @abstractmethod
    def interval(self) -> Interval:
        """Return the bounds that neither of the one-sided tests rejects."""

    def statistic(self, bound: float, alternative: str) -> float:
        """Return how many standard errors the excess is; NaN if it is not zero but they are."""
        # NaN without a standard error, too
        excess = nearer_to_null(self.excess(bound), self.blur(bound), alternative)
        error = self.error(bound)
        studentized = excess / error if error > 0 else math.nan
        if excess == 0 and not math.isnan(error):
            studentized = 0.0
        return float(remove_skewness(np.array(studentized), np.array(self.skewness(bound))))

    def test(self, bound: float, alternative: str) -> MarginTest:
        """Test that the difference or ratio is greater, or less, than the bound."""
        statistic = self.statistic(bound, alternative)
        size, error = np.array([self.size(bound)]), np.array([self.error(bound)])
        tolerance = tie_tolerance(statistic, size, error, self.skewness(bound))
        level = self.result.confidence_level
        p = margin_pvalue(self.reference, statistic, alternative, tolerance, level)
        return MarginTest(
            bound=bound,
            statistic=statistic,
            pvalue=p.value,
            pvalue_interval=p.interval,
            pvalue_interval_wilson=p.wilson_interval,
        )

    def criticals(self) -> Interval:
        """Return the distances at which the tests above and below begin to reject."""
        level = self.result.confidence_level
        above, below = (margin_critical(self.reference, side, level) for side in DIRECTIONS)
        return above, below

    def _ends(
        self, inside: float, limits: Interval, bound_at: Callable[[float], float]
    ) -> Interval:
        """Return where both tests begin to reject, in a coordinate that ``bound_at`` reads."""
        above, below = self.criticals()
        return (
            halved(
                lambda at: not self.statistic(bound_at(at), "greater") > above, inside, limits[0]
            ),
            halved(lambda at: not -self.statistic(bound_at(at), "less") > below, inside, limits[1]),
        )


class Difference(Scale):
    """First group's value minus the second's."""

    def __init__(self, result: PermutationTestResult) -> None:
        super().__init__(result)
        reach, variance = _tested(result).observed.reach, result.gap_variance
        self._most = math.inf if reach is None else reach.span  # the largest possible gap
        self._is_rate = variance is not None and not variance.reason
        if variance is not None and variance.is_paired:
            # permutations of few changed rows would not do: in most, a small group has none
            self.reference = NormalLimit()

    @property
    def estimate(self) -> float:
        return self.result.difference

    def test(self, bound: float, alternative: str) -> MarginTest:
        """Test that the gap is greater, or less, than the bound."""
        if abs(bound) >= self._most:
            hint = "Rates are numbers from 0 to 1, not percentages." if self._is_rate else ""
            rule = f"below {self._most:g} for {self.result.metric}"
            raise InputError("margin", rule, abs(bound), hint)
        return super().test(bound, alternative)

    def excess(self, bound: float) -> float:
        return self.result.difference - bound

    def blur(self, bound: float) -> float:
        del bound
        return sum(self.hidden)

    def size(self, bound: float) -> float:
        return sum(map(abs, self.values)) + abs(bound)

    def error(self, bound: float) -> float:
        """Return Farrington and Manning's error for rates, Sato's in strata, else the gap's own."""
        # the change of a rate's gap between two models has Tango's, and one that few rows show none
        if self.result.gap_variance is not None:
            return self.result.gap_variance.standard_error(bound)
        return self.result.standard_error

    def skewness(self, bound: float) -> float:
        """Return that of the gap; errors that depend on the bound have none."""
        del bound
        if self.result.gap_variance is not None:
            return 0.0
        return _tested(self.result).observed.skewness

    def interval(self) -> Interval:
        if self._is_rate:
            return self._ends(self.estimate, (-self._most, self._most), lambda gap: gap)
        error = self.error(self.estimate)
        if not error > 0:
            return -self._most, self._most
        above, below = self.criticals()
        blur = sum(self.hidden)
        skewness = self.skewness(self.estimate)
        above, below = (
            restore_both_ways(above, skewness)[0],
            restore_both_ways(below, skewness)[1],
        )
        low, high = self.estimate - above * error - blur, self.estimate + below * error + blur
        return max(low, -self._most), min(high, self._most)


class Ratio(Scale):
    """First group's value over the second's."""

    def __init__(self, result: PermutationTestResult) -> None:
        super().__init__(result)
        lack = _lack_of_ratio(result)
        if lack is not None:
            raise InputError("ratio", *lack, f"Pass {argument('margin')}, a difference, instead.")

    @property
    def estimate(self) -> float:
        """Return the ratio; infinite if the second rate is zero."""
        first, second = self.values
        return first / second if second > 0 else math.inf

    def excess(self, bound: float) -> float:
        first, second = self.values
        return first - bound * second

    def blur(self, bound: float) -> float:
        return self.hidden[0] + bound * self.hidden[1]

    def size(self, bound: float) -> float:
        first, second = self.values
        return first + bound * second

    def error(self, bound: float) -> float:
        """Return Farrington and Manning's error for rates, otherwise Fieller's."""
        if self.rates is None:
            first, second = (self.result.standard_errors[one] for one in self.result.groups)
            return _combine(self.result, (first, second), (1.0, bound))
        one, other = self.rates.errors(self.rates.with_ratio(bound))
        return math.hypot(one, bound * other)

    def skewness(self, bound: float) -> float:
        cumulants, error = _tested(self.result).observed.cumulants, self.error(bound)
        if cumulants is None or not error > 0:
            return 0.0
        return (cumulants[0] - bound**3 * cumulants[1]) / error**3

    def interval(self) -> Interval:
        # they are searched by their share u = first / (first + second), from 0 to 1
        inside = self.values[0] / sum(self.values)
        low, high = self._ends(inside, (0.0, 1.0), lambda u: u / (1 - u))
        return low / (1 - low), high / (1 - high) if high < 1 else math.inf


def _tested(result: PermutationTestResult) -> Tested:
    if result.tested is None:
        raise InputError("The draws of this result were not written to the file it is from.")
    return result.tested


def _plain_rates(result: PermutationTestResult) -> Rates | None:
    """Return both groups' counts if they are binomial: without strata, weights and clusters."""
    variance = result.gap_variance
    return cast("Rates", variance) if variance is not None and variance.has_trials else None


def _check_single(result: PermutationTestResult) -> None:
    """Raise InputError without a signed gap over its standard error."""
    if result.is_joint:
        rule = "a single metric"
        hint = (
            "Test its parts one by one: if every test rejects, all gaps are within the margin, "
            "without adjusting p-values."
        )
        raise InputError("metric", rule, result.metric, hint)
    if result.variance is None:
        rule = "that of a studentized test: an un-studentized one is not valid at a margin"
        raise InputError("variance", rule, None)


def _lack_of_ratio(result: PermutationTestResult) -> tuple[str, object] | None:
    """Return the rule that a metric without a ratio breaks, and the value that breaks it."""
    if result.n_strata > 1:
        features = argument("control_features")
        return f"left out with {features}, whose gap is a mean of differences", "strata"
    values = dict(result.values)
    rates = _plain_rates(result)
    if rates is not None:
        nothing = rates.first[0] == rates.second[0] == 0
        return ("one of rates that are not both 0", values) if nothing else None
    if any(not value > 0 for value in values.values()):
        return f"one of values above 0 ({result.metric})", values
    if not all(math.isfinite(error) for error in result.standard_errors.values()):
        return f"one of values with standard errors ({result.metric})", result.standard_errors
    return None
