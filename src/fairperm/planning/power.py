"""Compute power, sample size or the smallest detectable gap, before the data or after."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from fairperm._utils import checks
from fairperm._utils.formatting import format_level, format_metric, format_percent
from fairperm.errors import InputError, InputTypeError, argument
from fairperm.hypothesis_tests.results.answers.words import join_values, unit_of
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.metrics.confusion import F1_TOTALS, f1_of_jaccard, jaccard_of_f1
from fairperm.metrics.definition import Scheme
from fairperm.metrics.registry import get_metric
from fairperm.planning.designs import (
    AUCDesign,
    Level,
    PilotDesign,
    RateDesign,
    normal_gap,
    rate_power,
)
from fairperm.planning.searches import smallest_gap, smallest_n

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairperm.data.arguments import Alternative, MetricLike
    from fairperm.planning.designs import Design, Pair

__all__ = ["detectable_gap", "minimum_detectable_gap", "power", "sample_size"]

MAX_ROWS = 10**12
_ROUNDING = 1e-9  # of a value that is 0 or 1
_DIRECTION_HINT = {
    "greater": "The first group must be above the second.",
    "less": "The first group must be below the second.",
}
_NEGATIVES = ("negatives", "predicted negatives")
_MAX_TABLES = 2_500  # of exact tests for each row of an audit: about 50 rows in a group


class _Answers:
    """A number that prints its answer. In a format, in JSON and in sums it is the number."""

    answer: str

    def __repr__(self) -> str:
        return self.answer

    def __str__(self) -> str:
        return self.answer

    def _repr_html_(self) -> str:
        return f"<p><strong>{escape(self.answer)}</strong></p>"


class PlannedNumber(_Answers, float):
    """A power, or a detectable gap.

    Examples
    --------
    >>> found = PlannedNumber(0.8, "The power is 80 %.")
    >>> found
    The power is 80 %.
    >>> f"{found}", found + 0.1, round(found, 2)
    ('0.8', 0.9, 0.8)
    """

    def __new__(cls, value: float, answer: str) -> PlannedNumber:
        found = super().__new__(cls, value)
        found.answer = answer
        return found

    def __format__(self, spec: str) -> str:
        return format(float(self), spec)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return float(self), self.answer


class PlannedCount(_Answers, int):
    """A number of rows."""

    def __new__(cls, value: int, answer: str) -> PlannedCount:
        found = super().__new__(cls, value)
        found.answer = answer
        return found

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return int(self), self.answer


def power(
    metric: MetricLike | None = None,
    *,
    values: Pair | None = None,
    n: int,
    share: float | None = None,
    base_rates: float | Pair | None = None,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    pilot: PermutationTestResult | None = None,
) -> PlannedNumber:
    """Compute the power of a permutation test: the probability that it detects a gap.

    Parameters
    ----------
    metric : str
        A rate or the AUC. For every other metric pass a `pilot` instead, or see
        :func:`fairperm.simulated_power`.
    values : pair of float
        The assumed metric in the first and in the second group. With a `pilot` only their
        difference matters, which is by default the pilot's own. The power for that gap says
        little: it is high where the pilot's p-value is low. Pass a gap that would matter to you.
    n : int
        Rows of both groups together. With a `pilot` of matched sets: sets, with as many rows each
        as in the pilot.
    share : float, optional
        The first group's share of them, by default one half, or that in the `pilot`.
    base_rates : float or pair of float
        The share of positives among the rows, in both groups or in each. For predictive values,
        false discovery and false omission rates: the share of predicted positives. For
        ``recall[cat]`` and ``precision[cat]``: the share of rows in the class, or predicted as it.
        For jaccard_score: the share of rows that are positive or predicted positive. Not for rates
        of all rows, nor with a `pilot`.
    alpha : float
        The test rejects if its p-value is at most this.
    alternative : {"two-sided", "symmetric", "greater", "less"}
        As in :func:`fairperm.permutation_test`.
    pilot : PermutationTestResult, optional
        A test of an earlier sample, or of this one, in any metric except a joint one. The result of
        :func:`fairperm.compare_models`, or a change of :func:`fairperm.compare_periods`, plans for
        a change of the gap: `values` are then the groups' changes, and `n` counts the rows of both
        periods.

    Returns
    -------
    PlannedNumber
        A float that prints its answer, a sentence.

    Notes
    -----
    *Rates.* Groups of n·share and n·(1 − share) rows have the expected number of rows in the rate's
    denominator. The power is exact, for rounded denominators: the probability of all tables that
    the test rejects. (A denominator counts as at most 200 times the other.) With more than about
    25,000 rows in both, or 1,500 in one and 200 times as many in the other, it is that of the
    normal limit, which there is within 0.002 of the exact one in equal groups, and within 0.01
    (one-sided 0.03) in such unequal ones.

    *AUC.* Scores of each label are normal with equal spread, or can be transformed to be so; those
    of negatives have the same distribution in both groups. The power allows for the skewness of the
    gap, of its standard error and of their permutations, by their third cumulants. In simulated
    tests with 30 rows or more of each label in each group it was mostly within 0.02 of their power;
    the normal limit was off by up to 0.17. Numbers of positives vary from sample to sample.

    *Pilot.* The studentized gap is normal in large samples, whatever the metric, and its
    standard error is the pilot's times √(n_pilot/n). For another `share` each group's part of it
    is scaled separately. In small groups of unequal sizes the power of the test is another one,
    because the studentized gap is skewed: see :func:`fairperm.simulated_power`.

    Examples
    --------
    >>> import fairperm
    >>> import numpy as np
    >>> from fairperm import power
    >>> round(power("fnr", values=(0.1, 0.2), n=400, base_rates=(0.8, 0.2)), 3)
    0.422
    >>> round(power("roc_auc", values=(0.85, 0.8), n=2000, base_rates=0.3), 3)
    0.713
    >>> errors = np.random.default_rng(1).normal(size=200)
    >>> pilot = fairperm.permutation_test(
    ...     errors, np.zeros(200), sensitive_features=["a"] * 80 + ["b"] * 120,
    ...     metric="mean_squared_error", rng=1,
    ... )
    >>> round(power(pilot=pilot, values=(1.2, 1.0), n=2000), 3)
    0.917
    """
    level = _check_level(alpha, alternative)
    design = _make_design(metric, pilot, share, base_rates)
    first, second = _check_values(values, pilot)
    found, n = design.at(_check_n(n, design), level)(first, second), _check_n(n, design)
    assumed = _assume(metric, pilot, (first, second))
    return PlannedNumber(
        found,
        f"With {design.state(n)} the test detects {assumed} with {format_percent(found)} power.",
    )


def sample_size(
    metric: MetricLike | None = None,
    *,
    values: Pair | None = None,
    power: float = 0.8,
    share: float | None = None,
    base_rates: float | Pair | None = None,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    pilot: PermutationTestResult | None = None,
) -> PlannedCount:
    """Return the number of rows, of both groups together, that a test needs to detect a gap.

    With a `pilot` of matched sets: the number of sets, such as prompts.

    Parameters
    ----------
    metric, values, share, base_rates, alpha, alternative, pilot
        As in :func:`fairperm.power`.
    power : float
        The probability with which the test should detect it.

    Returns
    -------
    PlannedCount
        An int that prints its answer, a sentence.

    Notes
    -----
    It is the smallest n with which the test has the power. The power of an exact test is a
    saw-tooth: with a few rows more than this n it may fall slightly short again. All n that have up
    to 50 rows less in the denominators are tried.

    Examples
    --------
    >>> from fairperm import sample_size
    >>> sample_size("fnr", values=(0.1, 0.2), base_rates=(0.8, 0.2))
    You need 1,138 rows in total for 80 % power to detect a false negative rate of 10.0 % v
    20.0 %.
    >>> sample_size("selection_rate", values=(0.5, 0.4), alternative="greater")
    You need 618 rows in total for 80 % power to detect a selection rate of 50.0 % v 40.0 %.
    """
    level = _check_level(alpha, alternative)
    target = _check_power(power, level)
    design = _make_design(metric, pilot, share, base_rates)
    assumed = _check_values(values, pilot)

    def is_enough(n: int) -> bool:
        return design.at(n, level)(*assumed) >= target

    found = smallest_n(is_enough, design.fewest, MAX_ROWS)
    if found is None:
        name, one, gap = (
            ("pilot", "a test", assumed[0]) if values is None else ("values", "a pair", values)
        )
        rule = f"{one} whose gap can be detected in {MAX_ROWS:,} rows"
        raise InputError(name, rule, gap, _DIRECTION_HINT.get(alternative, ""))
    rows = next(filter(is_enough, design.smaller(found, level)), found)
    return PlannedCount(
        rows,
        f"You need {design.state(rows)} in total for {format_level(target)} power to detect "
        f"{_assume(metric, pilot, assumed)}.",
    )


def minimum_detectable_gap(
    metric: MetricLike | None = None,
    *,
    value: float | None = None,
    moves: Literal["first", "second"] = "first",
    n: int,
    power: float = 0.8,
    share: float | None = None,
    base_rates: float | Pair | None = None,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    pilot: PermutationTestResult | None = None,
) -> PlannedNumber:
    """Return the smallest gap that a test of n rows detects with this power.

    Parameters
    ----------
    metric, n, share, base_rates, alpha, alternative, pilot
        As in :func:`fairperm.power`.
    value : float
        The assumed metric in the group that does not move. Not with a `pilot`, whose standard error
        is taken to be the same for every value.
    moves : {"first", "second"}
        The group whose metric moves away from `value` until the gap is detected. Unless the groups
        have equal numbers of rows, the other one needs a different gap. Not with a `pilot`.
    power : float
        The probability with which the test should detect the gap.

    Returns
    -------
    PlannedNumber
        The size of the gap, a float that prints its answer in a sentence. A two-sided test detects
        every larger gap for which there is room between 0 and 1 with at least this power, whether
        the group moves up or down; the result is that of the direction which needs more. With
        "greater" and "less" the group moves in the direction of the alternative only. Infinite if
        no gap is large enough.

    Examples
    --------
    >>> from fairperm import minimum_detectable_gap
    >>> round(minimum_detectable_gap("fnr", value=0.2, n=400, base_rates=0.5), 3)
    0.179
    >>> round(minimum_detectable_gap("roc_auc", value=0.8, n=2000, base_rates=0.3), 3)
    0.064

    A fifth of the rows is in the first group. If its rate moves away from 0.2, and if that of the
    other group does:

    >>> shared = {"value": 0.2, "n": 500, "share": 0.2}
    >>> round(minimum_detectable_gap("selection_rate", **shared), 3)
    0.135
    >>> round(minimum_detectable_gap("selection_rate", moves="second", **shared), 3)
    0.141
    """
    level = _check_level(alpha, alternative)
    target = _check_power(power, level)
    design = _make_design(metric, pilot, share, base_rates)
    n = _check_n(n, design)
    checks.choice("moves", moves, ("first", "second"))
    if isinstance(design, PilotDesign):
        same = "its standard error is the same for every value"
        for name, given in (("value", value), ("moves", None if moves == "first" else moves)):
            if given is not None:
                raise InputError(f"{argument(name)} cannot be used with pilot: {same}.")
        enough = 2 * normal_gap(design.error(n), level, target)
        fixed, limits = 0.0, (-enough, enough)
    else:
        if value is None:
            raise InputTypeError(f"Pass {argument('value')} or pilot.")
        fixed, limits = _check_unit_interval("value", value), (0.0, 1.0)
    power_of = design.at(n, level)
    sides = level.sides if moves == "first" else tuple(-side for side in level.sides)

    def power_at(one: float) -> float:
        return power_of(*((one, fixed) if moves == "first" else (fixed, one)))

    gap = smallest_gap(power_at, fixed, sides, target, limits)
    reached = [] if pilot is not None else [fixed + side * gap for side in sides]
    reached = [min(max(one, 0.0), 1.0) for one in reached if -_ROUNDING <= one <= 1 + _ROUNDING]
    name = _name(metric, pilot)
    return PlannedNumber(gap, _say_detectable(gap, design.state(n), target, name, fixed, reached))


def _assume(metric: MetricLike | None, pilot: PermutationTestResult | None, values: Pair) -> str:
    """Return the values of two groups that planning assumes, in words."""
    name, (first, second) = _name(metric, pilot), map(float, values)
    if pilot is not None:
        return _say_gap(name, first - second)
    word, values_text = format_metric(name), join_values(unit_of(name), (first, second))
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word} of {values_text}"


def _say_gap(metric: str, gap: float) -> str:
    return f"a gap of {unit_of(metric).size(gap)} in {format_metric(metric)}"


def _say_detectable(
    gap: float, rows: str, power: float, metric: str, value: float, reached: Iterable[float]
) -> str:
    """Return the smallest gap that a sample size detects, and the values that it is reached at."""
    level = format_level(power)
    if math.isinf(gap):
        return f"With {rows} the test detects no gap in {format_metric(metric)} with {level} power."
    unit = unit_of(metric)
    ends = [f"{unit.value(one)} or {'more' if one > value else 'less'}" for one in reached]
    values = f": {', and '.join(ends)}, against {unit.value(value)}" if ends else ""
    gap_text = _say_gap(metric, gap)
    return f"With {rows} the test detects {gap_text} with {level} power{values}."


def _name(metric: MetricLike | None, pilot: PermutationTestResult | None) -> str:
    return pilot.metric if pilot is not None else get_metric(metric).name


def detectable_gap(
    result: PermutationTestResult, alpha: float, power: float = 0.8, most: float = math.inf
) -> float:
    """Return the smallest gap that the test of a sample like this one detects.

    For a plain rate it is that of :func:`minimum_detectable_gap` (with more than about 50 rows in
    each denominator, of its normal form) for the observed denominators and a second group with the
    rate of both together; for f1_score it is about the same, from the rate of which it is a
    function. For all other metrics it is the standard error times the sum of the normal quantiles
    of `alpha` and `power` (alpha is divided among the parts of a joint metric). NaN if the standard
    error is zero or unknown; infinite if no gap up to `most` is large enough.

    Examples
    --------
    >>> import fairperm
    >>> from fairperm.planning.power import detectable_gap
    >>> compas = fairperm.datasets.load_compas()
    >>> result = fairperm.permutation_test(
    ...     "two_year_recid", y_score="decile_score", threshold=5, sensitive_features="sex",
    ...     metric="false_positive_rate", data=compas,
    ... )
    >>> round(detectable_gap(result, alpha=0.05), 3)
    0.054
    """
    level = _check_level(alpha, result.alternative)
    target = _check_power(power, level)
    if result.variance == "score" and result.n_strata == 1 and not result.is_joint:
        return _detectable_gap_of_rate(result, level, target)
    if not 0 < result.standard_error < math.inf:
        return math.nan
    if result.is_joint:
        level = Level(alpha / len(result.values[result.groups[0]]))
    gap = normal_gap(result.standard_error, level, target)
    return gap if gap <= most else math.inf


def _detectable_gap_of_rate(result: PermutationTestResult, level: Level, target: float) -> float:
    """Return the detectable gap of a rate, or of a one-to-one function of one."""
    counts = [result.counts[group] for group in result.groups]
    is_rate = "denominator" in counts[0]
    top, bottom = ("numerator", "denominator") if is_rate else F1_TOTALS
    sizes = counts[0][bottom], counts[1][bottom]
    both = sum(one[top] for one in counts) / sum(sizes)
    most_tables = _MAX_TABLES if result.scheme == Scheme.UNCONDITIONAL else 0
    power_of_rates = rate_power(sizes, level, most_tables)

    def power_of(first: float) -> float:
        return power_of_rates(first if is_rate else jaccard_of_f1(first), both)

    value = both if is_rate else f1_of_jaccard(both)
    return smallest_gap(power_of, value, level.sides, target, (0.0, 1.0))


def _make_design(metric: object, pilot: object, share: object, base_rates: object) -> Design:
    """Return the design of a test, from the theory of a metric or from a pilot."""
    if (metric is None) == (pilot is None):
        both = "" if metric is None else ", not both"
        raise InputTypeError(f"Pass {argument('metric')} or pilot{both}.")
    if pilot is not None:
        return _make_pilot_design(pilot, share, base_rates)
    chosen = get_metric(metric)
    is_rank = chosen.is_auc
    if not (chosen.is_rate or is_rank):
        hint = "Pass a pilot of this metric, or use simulated_power."
        raise InputError("metric", "a rate or roc_auc", chosen.name, hint)
    groups = _check_share(0.5 if share is None else share)
    among = chosen.parts[0].among
    if not is_rank and among == "rows":
        if base_rates is not None:
            given = argument("base_rates")
            raise InputError(f"{given} cannot be used with {chosen.name}, a rate of all rows.")
        return RateDesign(groups)
    bases = _check_base_rates(base_rates, chosen.name)
    positives = groups[0] * bases[0], groups[1] * bases[1]
    negatives = groups[0] - positives[0], groups[1] - positives[1]
    if is_rank:
        return AUCDesign(positives, negatives)
    return RateDesign(negatives if among in _NEGATIVES else positives)


def _make_pilot_design(pilot: object, share: object, base_rates: object) -> PilotDesign:
    """Return a design with the variance of the pilot's gap, scaled by the rows as in the paper."""
    rule = "a PermutationTestResult"
    if not isinstance(pilot, PermutationTestResult):
        raise InputTypeError("pilot", rule, type(pilot))
    if base_rates is not None:
        given = argument("base_rates")
        raise InputError(f"{given} cannot be used with pilot, which has its own.")
    if pilot.is_joint:
        hint = "Plan for its parts one by one."
        raise InputError("pilot", f"{rule} of a single metric", pilot.metric, hint)
    if not 0 < pilot.standard_error < math.inf:
        rule = f"{rule} whose standard error is finite and above 0"
        raise InputError("pilot", rule, pilot.standard_error)
    rows = [pilot.counts[group]["rows"] for group in pilot.groups]
    if sets := pilot.counts[pilot.groups[0]].get("sets"):
        if share is not None:
            raise InputError(f"{argument('share')} cannot be used with a pilot of matched sets.")
        return PilotDesign((1, 1), pilot.standard_error**2 * sets, sum(rows) / sets)
    if share is None:
        shares = rows[0] / sum(rows), rows[1] / sum(rows)
        return PilotDesign(shares, pilot.standard_error**2 * sum(rows))
    if pilot.n_strata > 1:
        raise InputError(
            f"{argument('share')} cannot be used with a pilot that has strata: it changes their "
            "weights."
        )
    shares = _check_share(share)
    errors = [pilot.standard_errors[group] for group in pilot.groups]
    parts = (error**2 * m / one for error, m, one in zip(errors, rows, shares, strict=True))
    return PilotDesign(shares, sum(parts))


def _check_level(alpha: object, alternative: object) -> Level:
    side = checks.choice("alternative", alternative, checks.ALTERNATIVES)
    return Level(checks.fraction("alpha", alpha), side)


def _check_power(power: object, level: Level) -> float:
    target = checks.fraction("power", power)
    if target <= level.alpha:
        rule = f"above {argument('alpha')} ({level.alpha:g})"
        raise InputError("power", rule, power, "A test has that much power without a gap.")
    return target


def _check_n(n: object, design: Design) -> int:
    hint = "With fewer rows there is no test." if design.fewest > 2 else ""
    return checks.integer("n", n, design.fewest, MAX_ROWS, hint)


def _check_values(values: object, pilot: PermutationTestResult | None) -> Pair:
    """Return the assumed values, which are from 0 to 1 for rates and the AUC."""
    if values is None and pilot is not None:
        return pilot.difference, 0.0
    pair = _check_pair("values", values, "a pair (first, second) of the groups' values")
    if pilot is not None:
        return checks.number("values", pair[0]), checks.number("values", pair[1])
    return _check_unit_interval("values", pair[0]), _check_unit_interval("values", pair[1])


def _check_base_rates(base_rates: object, metric: str) -> Pair:
    rule = f"a number or a pair of numbers for {metric}"
    if base_rates is None:
        raise InputTypeError(
            f"{argument('base_rates')} must be given for {metric}: the share of positives among a "
            "group's rows, one for both groups or one for each."
        )
    if isinstance(base_rates, (list, tuple)):
        pair = _check_pair("base_rates", base_rates, rule)
        return checks.fraction("base_rates", pair[0]), checks.fraction("base_rates", pair[1])
    both = checks.fraction("base_rates", base_rates)
    return both, both


def _check_pair(name: str, given: object, rule: str, hint: str = "") -> tuple[object, object]:
    if isinstance(given, (list, tuple)) and len(given) == 2:
        return given[0], given[1]
    raise InputTypeError(name, rule, given, hint)


def _check_unit_interval(name: str, given: object) -> float:
    rule = "from 0 to 1"
    value = checks.number(name, given, rule)
    if not 0 <= value <= 1:
        raise InputError(name, rule, given)
    return value


def _check_share(share: object) -> Pair:
    first = checks.fraction("share", share)
    return first, 1 - first
