"""Tests that the gap between two groups lies within a margin, or on one side of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Unpack

from fairperm._utils.checks import number
from fairperm._utils.signatures import complete, shares
from fairperm.data.arguments import Column, Columns, ModelArguments, ProxyAssumption
from fairperm.errors import (
    InputError,
    InputTypeError,
    argument,
    warn_of,
)
from fairperm.hypothesis_tests.cautions import note_zero_error
from fairperm.hypothesis_tests.margins.one_sided import (
    Difference,
    Ratio,
    Scale,
    ratio_interval,
)
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.results.changes import ChangeResult
from fairperm.hypothesis_tests.results.equivalence import EquivalenceTestResult, MarginTest
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.inference.null import agree


class MarginArguments(ModelArguments, total=False):
    """Arguments of :func:`fairperm.permutation_test` that a margin does not decide.

    A margin has a direction, which replaces ``alternative``, and a standard error that holds
    away from equality, which replaces ``variance``.
    """

    matched: Columns | None
    group_probabilities: Columns | None
    proxy_assumption: ProxyAssumption
    proxy: Columns | None
    names: Column | None
    score_bins: int | None


@shares(permutation_test, MarginArguments)
def equivalence_test(
    y_true: Column | None = None,
    y_pred: Column | None = None,
    *,
    margin: float | tuple[float, float] | None = None,
    ratio: float | None = None,
    **given: Unpack[MarginArguments],
) -> EquivalenceTestResult:
    """Test whether the gap between two groups lies within a margin.

    A gap that is not significant may still be large if the sample is small. This test reverses
    the burden of proof: its null hypothesis is a gap as large as the margin or larger, and a small
    p-value is evidence of a smaller one.

    Parameters
    ----------
    margin : float or pair of float, optional
        The largest difference that does not matter, above 0; or how far the first group's value
        may lie below (a negative number) and above the second's.
    ratio : float, optional
        Instead of `margin`: the smallest ratio of either group's value to the other's, between 0
        and 1. Of selection rates, 0.8 is the four-fifths rule: the ratio of the first group to
        the second must lie between 0.8 and 1.25.
    **given
        All others are those of :func:`fairperm.permutation_test`. The margin decides
        `alternative`, `variance` and `n_bootstrap`.

    Returns
    -------
    EquivalenceTestResult

    Notes
    -----
    Two one-sided tests (Schuirmann, 1987): that the gap is above the lower bound, and that it is
    below the upper one. Each divides the distance of the sample from its bound by a standard
    error that holds where the gap *is* the bound, and compares it with the permuted statistics of
    :func:`fairperm.permutation_test`, which spread as it does there. The p-value is the larger of
    the two. It is never below the normal p-value, nor below that of a single labelling of the rows.

    For rates and f1_score (without strata, weights or clusters) the standard error is that of the
    most likely two values that differ by the bound (Farrington and Manning, 1990); for all other
    metrics it is the gap's own. A ratio r is tested by first − r · second, for rates with the error
    of the most likely two values of that ratio, otherwise with √(V_A + r² V_B). If the error is
    zero, the sample does not show how far chance goes, and the p-value is 1.

    The level is held asymptotically, but not with few rows and heavy tails: with 200 squared
    Laplace errors against 800 squared normal errors and a gap on the margin, 0.08 of the tests
    rejected at nominal level 0.05 (with 400 and 1,600 rows 0.064; 1,500 data sets each).

    References
    ----------
    Schuirmann. A comparison of the two one-sided tests procedure and the power approach for
    assessing the equivalence of average bioavailability. Journal of Pharmacokinetics and
    Biopharmaceutics 15, 1987.

    Farrington, Manning. Test statistics and sample size formulae for comparative binomial trials
    with null hypothesis of non-zero risk difference or non-unity relative risk. Statistics in
    Medicine 9, 1990.

    Examples
    --------
    Of 500 women 230 are selected, and of 500 men 240. Do the selection rates keep to the
    four-fifths rule?

    >>> from fairperm import equivalence_test
    >>> people = dict(
    ...     y_true=[1] * 1000,
    ...     y_pred=[1] * 230 + [0] * 270 + [1] * 240 + [0] * 260,
    ...     sensitive_features=["f"] * 500 + ["m"] * 500,
    ... )
    >>> result = equivalence_test(**people, metric="selection_rate", ratio=0.8)
    >>> result
    f's selection rate is 0.958 times m's (46.0 % v 48.0 %); the ratio is shown to lie
    between 0.800 and 1.250 (p = 0.0038).
      f         0.460  230 of 500
      m         0.480  240 of 500
      ratio     0.958  90 % interval 0.857 to 1.072
      margin    above 0.800 (p = 0.0038), below 1.250 (p < 0.0001)
      p-value   0.0038  no Monte Carlo error
      verdict   equivalence established at level 0.05
      validity  Asymptotically valid for the null that the groups' ratio in selection_rate
                lies on the margin's edge or beyond; the groups may differ in other ways.
      rows      1,000 used, 0 left out for missing values
    >>> result.holds_at(0.05)
    True
    """
    _read_bounds(margin, ratio)  # before the test takes its time
    result = compare_with_margin(
        permutation_test(y_true, y_pred, **complete(equivalence_test, given)), margin, ratio
    )
    warn_of(note for note in result.notes if note not in result.permutation.notes)
    return result


@shares(permutation_test, MarginArguments)
def noninferiority(
    y_true: Column | None = None,
    y_pred: Column | None = None,
    *,
    margin: float | None = None,
    ratio: float | None = None,
    higher_is_better: bool = True,
    **given: Unpack[MarginArguments],
) -> EquivalenceTestResult:
    """Test whether the first group is worse than the second by less than a margin.

    One half of :func:`equivalence_test`: evidence that the first group's value is at most `margin`
    below the second's, or at least `ratio` times it. A better value does not count against it.

    Parameters
    ----------
    margin : float, optional
        The largest disadvantage of the first group that does not matter, above 0.
    ratio : float, optional
        Instead of `margin`: the smallest ratio of the first group's value to the second's,
        between 0 and 1; if lower is better, of the second's to the first's.
    higher_is_better : bool
        Whether high values are good. False for error rates and losses: the first value must then
        be at most `margin` above the second.
    groups : pair, optional
        The first and the second group; by default the only two, in sorted order.
    **given
        All others are those of :func:`fairperm.permutation_test`. The margin decides
        `alternative`, `variance` and `n_bootstrap`.

    Returns
    -------
    EquivalenceTestResult
        With one test only, on one side.

    Examples
    --------
    >>> from fairperm import noninferiority
    >>> noninferiority(
    ...     y_true=[1] * 600,
    ...     y_pred=[0] * 30 + [1] * 270 + [0] * 33 + [1] * 267,
    ...     sensitive_features=["a"] * 300 + ["b"] * 300,
    ...     metric="false_negative_rate",
    ...     margin=0.05,
    ...     higher_is_better=False,
    ... )
    b's false negative rate is 1.0 points higher than a's (11.0 % v 10.0 %); a − b is shown
    to lie below +5.0 points (p = 0.0096).
      a           0.100  30 of 300
      b           0.110  33 of 300
      difference  −0.010  90 % interval −0.052 to +0.032
      margin      below +0.050 (p = 0.0096)
      p-value     0.0096  no Monte Carlo error
      verdict     margin established at level 0.05
      validity    Asymptotically valid for the null that the groups' difference in
                  false_negative_rate lies on the margin's edge or beyond; the groups may
                  differ in other ways.
      rows        600 used, 0 left out for missing values
    """
    if not isinstance(higher_is_better, bool):
        raise InputTypeError("higher_is_better", "True or False", higher_is_better)
    if isinstance(margin, (tuple, list)):
        hint = "The other side has no margin."
        raise InputTypeError("margin", "a number above 0", margin, hint)
    _read_bounds(margin, ratio)
    result = compare_with_margin(
        permutation_test(y_true, y_pred, **complete(noninferiority, given)),
        margin,
        ratio,
        better="higher" if higher_is_better else "lower",
    )
    warn_of(note for note in result.notes if note not in result.permutation.notes)
    return result


def test_change_margin(result: ChangeResult, margin: object) -> EquivalenceTestResult:
    """Test whether a change of the gap lies within a margin, of which one end may be infinite."""
    within = _test_margin(result, "difference", _ends(margin, infinite=True))
    found = replace(within, ratio=None, ratio_interval=None)  # a ratio of changes means nothing
    if (
        result.gap_variance and result.gap_variance.is_paired
    ):  # its interval needs no error of the sample
        without = note_zero_error(result.metric)
        found = replace(found, notes=tuple(note for note in found.notes if note != without))
    warn_of(note for note in found.notes if note not in result.notes)
    return found


def compare_with_margin(
    result: PermutationTestResult,
    margin: float | tuple[float, float] | None,
    ratio: float | None,
    better: str | None = None,
) -> EquivalenceTestResult:
    """Test whether the gap of a test lies within the margin."""
    # if "higher" or "lower" values are ``better``, only a worse first group has a margin
    scale, (low, high) = _read_bounds(margin, ratio)
    none_below = 0.0 if scale == "ratio" else -math.inf
    bounds = {"higher": (low, math.inf), "lower": (none_below, high), None: (low, high)}[better]
    return _test_margin(result, scale, bounds)


def _agree(
    interval: tuple[float, float], scale: Scale, test: MarginTest, alternative: str
) -> tuple[float, float]:
    """Return the interval with the bound inside exactly if the test does not reject it."""
    level = scale.result.confidence_level
    return agree(interval, test.pvalue, alternative, level, scale.estimate, equal=test.bound)


def _test_margin(
    result: PermutationTestResult, scale_name: str, bounds: tuple[float, float]
) -> EquivalenceTestResult:
    """Test on which side of each finite bound the gap or ratio lies."""
    if result.confidence_level <= 0.5:
        rule = "above 0.5: each end of the interval is a bound at this level"
        raise InputError("confidence_level", rule, result.confidence_level)
    scale: Scale = Ratio(result) if scale_name == "ratio" else Difference(result)
    low, high = bounds
    lower = scale.test(low, "greater") if low not in {0, -math.inf} else None
    upper = scale.test(high, "less") if high < math.inf else None
    tests = [test for test in (lower, upper) if test is not None]
    worse = max(tests, key=lambda test: test.pvalue)
    by_ratio, (lowest, highest) = ratio_interval(result), scale.interval()
    if lower is not None:
        lowest, _ = _agree((lowest, math.inf), scale, lower, "greater")
    if upper is not None:
        _, highest = _agree((-math.inf, highest), scale, upper, "less")
    return EquivalenceTestResult(
        permutation=result,
        scale=scale_name,
        bounds=bounds,
        estimate=scale.estimate,
        confidence_interval=(lowest, highest),
        confidence_level=result.confidence_level,
        lower=lower,
        upper=upper,
        pvalue=worse.pvalue,
        pvalue_interval=worse.pvalue_interval,
        pvalue_interval_wilson=worse.pvalue_interval_wilson,
        ratio=by_ratio[0] if by_ratio else None,
        ratio_interval=by_ratio[1] if by_ratio else None,
        validity=(
            f"Asymptotically valid for the null that the groups' {scale_name} in {result.metric} "
            "lies on the margin's edge or beyond; the groups may differ in other ways."
        ),
        notes=(*_notes(result, tests), *result.notes),
    )


def _notes(result: PermutationTestResult, tests: list[MarginTest]) -> tuple[str, ...]:
    """Return a note if the rows do not vary: every distance would be infinitely significant."""
    # or if too few rows of a group changed
    if result.gap_variance and result.gap_variance.reason:
        return (
            f"Whether the {result.metric} is within the margin is not tested: "
            f"{result.gap_variance.reason}. The p-value is 1.",
        )
    if not any(math.isnan(test.statistic) for test in tests):
        return ()
    return (
        f"The standard error of {result.metric} is zero in this sample, which therefore does not "
        "show how far chance goes: the p-value is 1.",
    )


def _read_bounds(margin: object, ratio: object) -> tuple[str, tuple[float, float]]:
    """Return the scale of the margin, "difference" or "ratio", and its two bounds."""
    if (margin is None) == (ratio is None):
        rule = f"given, or {argument('ratio')} instead, but not both"
        raise InputError("margin", rule, {"margin": margin, "ratio": ratio})
    if ratio is None:
        return "difference", _ends(margin)
    rule = "a number strictly between 0 and 1"
    share = number("ratio", ratio, rule)
    if 0 < share < 1:
        return "ratio", (share, 1 / share)
    hint = f"For {share:g} pass {1 / share:g}: it bounds the ratio both ways." if share > 1 else ""
    raise InputError("ratio", rule, ratio, hint)


def _ends(margin: object, *, infinite: bool = False) -> tuple[float, float]:
    """Return the lowest and the highest difference within the margin."""
    rule = "a number above 0, or a pair of one below and one above 0"
    if isinstance(margin, (tuple, list)) and len(margin) == 2:
        if infinite and tuple(margin) == (-math.inf, math.inf):
            raise InputError("margin", "a pair with a finite end", margin)
        low, high = (
            end if infinite and end in {-math.inf, math.inf} else number("margin", end, rule)
            for end in margin
        )
    else:
        high = number("margin", margin, rule)
        low = -high
    if not low < 0 < high:
        raise InputError("margin", rule, margin)
    return low, high
