"""Evidence that the gap between two groups lies within a margin, or on one side of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Required, TypedDict

from fairperm._utils import checks
from fairperm._utils.checks import number
from fairperm._utils.formatting import (
    format_interval,
    format_level,
    format_name,
    format_number,
    format_pvalue,
    name_of_gap,
    state_pvalue,
)
from fairperm.errors import (
    InputError,
    InputTypeError,
    did_you_mean,
    listed,
    warn_of,
)
from fairperm.hypothesis_tests.margins.one_sided import (
    Difference,
    MarginTest,
    Ratio,
    margin_pvalues,
    ratio_interval,
)
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.results.gaps import json_ready
from fairperm.hypothesis_tests.results.text import state_draws, write_result

if TYPE_CHECKING:
    from typing import Unpack

    from fairperm.data.argument_types import (
        Column,
        Columns,
        Frame,
        Groups,
        Label,
        MetricLike,
        Missing,
        SchemeName,
        Seed,
        StratumWeights,
    )
    from fairperm.hypothesis_tests.margins.one_sided import Scale
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult


__all__ = [
    "EquivalenceTestResult",
    "MarginTest",
    "PermutationOptions",
    "equivalence_test",
    "margin_pvalues",
    "noninferiority",
    "ratio_interval",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EquivalenceTestResult:
    """The result of :func:`fairperm.equivalence_test` and :func:`fairperm.noninferiority`.

    Attributes
    ----------
    permutation : PermutationTestResult
        The test of no gap that everything here is made from, with values, counts and draws.
    scale : str
        What has the margin: "difference" (first group less second) or "ratio" (first over second).
    bounds : tuple of float
        The margin's ends; infinite (or a ratio of 0) where there is none.
    estimate : float
        The difference or ratio in the sample.
    confidence_interval : tuple of float
        The differences or ratios that neither one-sided test rejects at 1 − `confidence_level`,
        so that it lies between the bounds just when ``pvalue`` is below that. Each end is a bound
        at `confidence_level`; both together are an interval at 2 · `confidence_level` − 1.
    confidence_level : float
        Of each end of ``confidence_interval``, and of the intervals of the p-values and the ratio.
    lower, upper : MarginTest or None
        The tests that the difference or ratio is above the lower, and below the upper bound, each
        with its ``statistic`` and ``pvalue``; None where there is no bound.
    pvalue, pvalue_interval, pvalue_interval_wilson
        The larger p-value of the two: both must speak for the margin. With its intervals for the
        p-value that infinitely many draws would give.
    ratio, ratio_interval : float and tuple of float, or None
        The ratio of the groups' values and its two-sided interval on the log scale, on whichever
        scale the margin is; None where there is no ratio.
    validity : str
        For which null the p-value is valid, and in which sense.
    notes : tuple of str
        What else must be known to read the result rightly.
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
        """Tell whether, at this level, there is evidence that the margin holds."""
        return self.pvalue <= checks.fraction("alpha", alpha)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values, the permutation test as a dict of its own."""
        plain = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, MarginTest):
                value = asdict(value)
            plain[part.name] = json_ready(value) if part.name != "permutation" else value.to_dict()
        return plain

    def __repr__(self) -> str:
        groups, signed = self.permutation.groups, self.scale == "difference"
        gap = name_of_gap(*groups) if signed else " / ".join(map(format_name, groups))
        interval = format_interval(self.confidence_interval, signed=signed)
        level = format_level(2 * self.confidence_level - 1)
        estimate = format_number(self.estimate, signed=signed)
        margin = ", ".join(
            f"{side} {format_number(test.bound, signed=signed)} ({state_pvalue(test.pvalue)})"
            for side, test in (("above", self.lower), ("below", self.upper))
            if test is not None
        )
        lines = [
            *((format_name(group), self.permutation.describe(group)) for group in groups),
            (self.scale, f"{estimate}  {level} interval {interval}"),
            ("margin", margin),
            ("p-value", f"{format_pvalue(self.pvalue)}  {self._draws()}"),
            ("validity", self.validity),
        ]
        title = f"{type(self).__name__}: {self.permutation.metric}, {gap}"
        notes = (*self.notes, *self.permutation.notes)
        return write_result(title, lines, self.permutation.n_dropped, notes)

    def _draws(self) -> str:
        if self.permutation.exact:
            return "exact: all permutations counted"
        if self.permutation.n_resamples == 0:
            return "normal limit"
        n_resamples = self.permutation.n_resamples
        return state_draws(n_resamples, self.confidence_level, self.pvalue_interval)


def equivalence_test(
    y_true: Column,
    y_pred: Column | None = None,
    *,
    margin: float | tuple[float, float] | None = None,
    ratio: float | None = None,
    **options: Unpack[PermutationOptions],
) -> EquivalenceTestResult:
    """Test whether the gap between two groups lies within a margin.

    A gap that is not significant may still be large: the sample may be small. This test turns the
    burden of proof round. Its null hypothesis is that the gap is as large as the margin or
    larger, and a small p-value is evidence that it is not.

    Parameters
    ----------
    y_true, y_pred : array-like or str
        As in :func:`fairperm.permutation_test`.
    margin : float or pair of float, optional
        The largest difference that does not matter, above 0; or how far the first group's value
        may lie below (a negative number) and above the second's.
    ratio : float, optional
        Instead of `margin`: the smallest ratio of either group's value to the other's, between 0
        and 1. Of selection rates, 0.8 is the four-fifths rule: the ratio of the first group to
        the second must lie between 0.8 and 1.25.
    options : keyword arguments
        All others of :func:`fairperm.permutation_test`, `sensitive_features` and `metric` first,
        but for `alternative`, `variance` and `n_bootstrap`.

    Returns
    -------
    EquivalenceTestResult

    Notes
    -----
    Two one-sided tests (Schuirmann, 1987): that the gap is above the lower bound, and that it is
    below the upper one. Each divides the distance of the sample from its bound by a standard
    error that holds where the gap *is* the bound, and compares it with the permuted statistics of
    :func:`fairperm.permutation_test`, which spread as it does there. The p-value is the larger of
    the two. It is never below the normal one, nor below that of a single labelling of the rows.

    For rates and f1_score (without strata, weights or clusters) the error is that of the likeliest
    two which differ by the bound (Farrington and Manning, 1990); for everything else, the gap's own
    error. A ratio r is tested by first − r · second, for rates with the error of the likeliest
    two of that ratio, else with √(V_A + r² V_B). Where the error is zero, nothing is known of how
    far chance goes, and the p-value is 1.

    The level is held asymptotically. Among few rows with heavy tails it is not: of a group of 200
    with squared Laplace errors against one of 800 with squared normal errors, 0.08 were called
    within a margin they lay on, where 0.05 are due (of 400 and 1,600, 0.064; trials of 1,500 data
    sets each).

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
    EquivalenceTestResult: selection_rate, f / m
      f         0.460  230 of 500
      m         0.480  240 of 500
      ratio     0.958  90 % interval 0.858 to 1.070
      margin    above 0.800 (p = 0.0037), below 1.250 (p < 0.0001)
      p-value   0.0037  exact: all permutations counted
      validity  Asymptotically valid for the null that the groups' ratio in selection_rate
                lies on the margin's edge or beyond; base rates may differ.
    >>> result.holds_at(0.05)
    True
    """
    scale, bounds = read_bounds(margin, ratio)
    result = _tested(permutation_test(y_true, y_pred, **read_options(options)), scale, bounds)
    warn_of(result.notes)
    return result


def noninferiority(
    y_true: Column,
    y_pred: Column | None = None,
    *,
    margin: float | None = None,
    ratio: float | None = None,
    higher_is_better: bool = True,
    **options: Unpack[PermutationOptions],
) -> EquivalenceTestResult:
    """Test whether the first group fares no worse than the second, but for a margin.

    One half of :func:`equivalence_test`: evidence that the first group's value is not more than
    `margin` below the second's, or not less than `ratio` times it. That it may be better does not
    count against it.

    Parameters
    ----------
    y_true, y_pred : array-like or str
        As in :func:`fairperm.permutation_test`.
    margin : float, optional
        The largest difference to the first group's harm that does not matter, above 0.
    ratio : float, optional
        Instead of `margin`: the smallest ratio of the first group's value to the second's,
        between 0 and 1; if lower is better, of the second's to the first's.
    higher_is_better : bool
        Whether high values are good; not so for error rates and losses, whose first value must
        then not be more than `margin` above the second.
    options : keyword arguments
        All others of :func:`fairperm.permutation_test`, `sensitive_features` and `metric` first,
        and `groups` if the first group is not the one that comes first in order; but for
        `alternative`, `variance` and `n_bootstrap`.

    Returns
    -------
    EquivalenceTestResult
        With a test on one side only.

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
    EquivalenceTestResult: false_negative_rate, a − b
      a           0.100  30 of 300
      b           0.110  33 of 300
      difference  −0.010  90 % interval −0.054 to +0.034
      margin      below +0.050 (p = 0.0095)
      p-value     0.0095  exact: all permutations counted
      validity    Asymptotically valid for the null that the groups' difference in
                  false_negative_rate lies on the margin's edge or beyond; base rates may
                  differ.
    """
    if not isinstance(higher_is_better, bool):
        raise InputTypeError("higher_is_better", "True or False", higher_is_better)
    if isinstance(margin, (tuple, list)):
        hint = "The other side has no margin."
        raise InputTypeError("margin", "a number above 0", margin, hint)
    scale, (low, high) = read_bounds(margin, ratio)
    none_below = 0.0 if scale == "ratio" else -math.inf
    bounds = (low, math.inf) if higher_is_better else (none_below, high)
    result = _tested(permutation_test(y_true, y_pred, **read_options(options)), scale, bounds)
    warn_of(result.notes)
    return result


def _tested(
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
    by_ratio = ratio_interval(result)
    return EquivalenceTestResult(
        permutation=result,
        scale=scale_name,
        bounds=bounds,
        estimate=scale.estimate,
        confidence_interval=scale.interval(),
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
            "lies on the margin's edge or beyond; base rates may differ."
        ),
        notes=_notes(result, tests),
    )


def _notes(result: PermutationTestResult, tests: list[MarginTest]) -> tuple[str, ...]:
    """Say so if the rows do not vary, which makes every distance infinitely significant."""
    if not any(math.isnan(test.statistic) for test in tests):
        return ()
    return (
        f"The standard error of {result.metric} is zero in this sample, which then says nothing "
        "of how far chance goes: the p-value is 1.",
    )


_DECIDED = ("alternative", "variance", "n_bootstrap")


class PermutationOptions(TypedDict, total=False):
    """What :func:`fairperm.permutation_test` takes, but for what a margin decides.

    A margin has its direction, so that there is no ``alternative``; and an error that holds away
    from equality is called for, so that there is no choice of ``variance``.
    """

    y_score: Column | None
    sensitive_features: Required[Columns]
    metric: Required[MetricLike]
    data: Frame | None
    groups: Groups | None
    threshold: float | None
    pos_label: Label
    control_features: Columns | None
    stratum_weights: StratumWeights | None
    cluster: Columns | None
    sample_weight: Column | None
    missing: Missing
    score_bins: int | None
    sample_rows: int | None
    scheme: SchemeName
    n_resamples: int
    confidence_level: float
    rng: Seed
    n_jobs: int | None
    progress: bool | None


def read_options(options: PermutationOptions) -> PermutationOptions:
    """Return the options if permutation_test takes all of them, and none that a margin decides."""
    known = PermutationOptions.__annotations__
    for name in options:
        if name not in known:
            rule = f"keyword arguments out of {listed(known, most=len(known))}"
            hint = "The margin decides that." if name in _DECIDED else did_you_mean(name, known)
            raise InputTypeError("options", rule, name, hint)
    for name in ("sensitive_features", "metric"):
        if name not in options:
            rule = f"keyword arguments with {name!r} among them"
            raise InputTypeError("options", rule, [*options])
    return options


def read_bounds(margin: object, ratio: object) -> tuple[str, tuple[float, float]]:
    """Return what has the margin, a difference or a ratio, and its two ends."""
    if (margin is None) == (ratio is None):
        rule = "given, or else ratio: one of them, and not both"
        raise InputError("margin", rule, {"margin": margin, "ratio": ratio})
    if ratio is None:
        return "difference", _ends(margin)
    rule = "a number strictly between 0 and 1"
    share = number("ratio", ratio, rule)
    if 0 < share < 1:
        return "ratio", (share, 1 / share)
    hint = f"For {share:g} pass {1 / share:g}: it bounds the ratio both ways." if share > 1 else ""
    raise InputError("ratio", rule, ratio, hint)


def _ends(margin: object) -> tuple[float, float]:
    """Return how far below and how far above the second group's value the first's may lie."""
    rule = "a number above 0, or a pair of one below and one above 0"
    if isinstance(margin, (tuple, list)) and len(margin) == 2:
        low, high = (number("margin", end, rule) for end in margin)
    else:
        high = number("margin", margin, rule)
        low = -high
    if not low < 0 < high:
        raise InputError("margin", rule, margin)
    return low, high
