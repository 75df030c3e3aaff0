"""Power against oracles that share no code with it: brute force, scipy, statsmodels, pROC."""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import power_proportions_2indep

from fairperm import InputError, PermutationTestResult, compare_models, permutation_test
from fairperm.data.arguments import Alternative
from fairperm.planning.designs import MAX_TABLES, Level, rate_power
from fairperm.planning.power import detectable_gap, minimum_detectable_gap, power, sample_size
from fairperm.planning.rate_tests import UnconditionalTest
from tests.support.examples import examples
from tests.support.helpers import rate_rows, rows
from tests.support.simulations import Procedure

ALTERNATIVES = ("two-sided", "greater", "less")
SIDES = {"two-sided": "two-sided", "greater": "larger", "less": "smaller"}  # to statsmodels


def pilot_of(**changes: Any) -> PermutationTestResult:
    """Return a test of 30 rows in one group and 70 in the other, in a metric that is no rate."""
    rng = np.random.default_rng(3)
    result = permutation_test(
        rng.normal(size=100),
        rng.normal(size=100),
        sensitive_features=["a"] * 30 + ["b"] * 70,
        metric="mean_squared_error",
        n_resamples=99,
        rng=1,
    )
    return replace(result, **changes)


# The exact form.


def probability(
    outcome: tuple[int, int], sizes: tuple[int, int], rates: tuple[float, float]
) -> float:
    return float(np.prod(binom.pmf(outcome, sizes, rates)))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("sizes", [(6, 6), (8, 5), (1, 9)])
def test_exact_power_is_the_probability_of_what_the_test_rejects(
    sizes: tuple[int, int], alternative: Alternative
) -> None:
    test = Procedure("selection_rate", alternative=alternative)
    outcomes = list(itertools.product(*(range(size + 1) for size in sizes)))
    for alpha in (0.03, 0.2):
        rejected = [
            (a, b)
            for a, b in outcomes
            if test([[(sizes[0] - a, a, 0, 0), (sizes[1] - b, b, 0, 0)]]).pvalue <= alpha
        ]
        for rates in ((0.9, 0.2), (0.1, 0.6), (0.0, 1.0), (0.4, 0.4)):
            expected = sum(probability(outcome, sizes, rates) for outcome in rejected)
            found = power(
                "selection_rate",
                values=rates,
                n=sum(sizes),
                share=sizes[0] / sum(sizes),
                alpha=alpha,
                alternative=alternative,
            )
            assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [7, 9, 15])
def test_half_a_row_is_one_of_either_group(n: int) -> None:
    """Seven rows are four and three, not four and four."""
    rates = (0.95, 0.1)
    test, sizes = Procedure("selection_rate"), (round(n / 2), n - round(n / 2))
    assert power("selection_rate", values=rates, n=n) == pytest.approx(
        sum(
            probability((a, b), sizes, rates)
            for a, b in itertools.product(*(range(size + 1) for size in sizes))
            if test([[(sizes[0] - a, a, 0, 0), (sizes[1] - b, b, 0, 0)]]).pvalue <= 0.05
        ),
        abs=1e-12,
    )


@pytest.mark.parametrize(
    ("sizes", "rates"),
    [((22_000, 22_000), (0.3, 0.312)), ((22_000, 22_000), (0.013, 0.01))],
)
def test_the_normal_form_begins_where_the_exact_one_ends(
    sizes: tuple[int, int], rates: tuple[float, float]
) -> None:
    assert 0.8 * MAX_TABLES < UnconditionalTest.cost(sizes, 0.05) < MAX_TABLES
    exact = rate_power(sizes, Level(0.05))(*rates)
    normal = rate_power(sizes, Level(0.05), most_tables=0)(*rates)
    assert normal != exact
    assert normal == pytest.approx(exact, abs=0.002)


def test_a_far_larger_group_counts_as_large_enough() -> None:
    shared: dict[str, Any] = {"values": (0.12, 0.1), "alternative": "greater"}
    huge = power("selection_rate", **shared, n=10**9, share=1e-6)  # 1,000 rows
    assert huge == pytest.approx(
        power("selection_rate", **shared, n=151_000, share=1 / 151), abs=0.002
    )


# Denominators.


def test_denominators_follow_from_base_rates() -> None:
    same = power("selection_rate", values=(0.2, 0.5), n=100, share=0.3)  # 30 and 70 rows
    shares: dict[str, Any] = {"n": 200, "share": 0.3, "values": (0.2, 0.5)}
    for metric in ("tpr", "fnr", "ppv", "fdr", "recall[cat]"):
        assert power(metric, **shares, base_rates=0.5) == same
    uneven = power("tpr", values=(0.2, 0.5), n=200, base_rates=(0.3, 0.7))
    assert uneven == same
    for metric in ("fpr", "tnr", "npv", "for"):
        assert power(metric, values=(0.2, 0.5), n=200, base_rates=(0.7, 0.3)) == same


# The normal form.


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_normal_power_of_a_rate_is_that_of_statsmodels(
    share: float, alternative: Alternative
) -> None:
    for first, second, alpha in ((0.3, 0.2, 0.05), (0.05, 0.1, 0.01), (0.5, 0.5, 0.1)):
        positives = 400 * 0.6
        expected = power_proportions_2indep(
            first - second,
            second,
            nobs1=positives * share,
            ratio=(1 - share) / share,
            alpha=alpha,
            alternative=SIDES[alternative],
            return_results=False,
        )
        sizes = positives * share, positives * (1 - share)
        found = rate_power(sizes, Level(alpha, alternative), most_tables=0)(first, second)
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_power_from_a_pilot_is_that_of_statsmodels(alternative: Alternative) -> None:
    # 30 and 70 rows with a deviation of 2 in both groups
    pilot = pilot_of(standard_error=2 * math.sqrt(1 / 30 + 1 / 70))
    for gap, n in ((0.3, 1000), (-0.5, 400), (0.0, 100)):
        expected = NormalIndPower().power(
            gap / 2, nobs1=n * 0.3, alpha=0.05, ratio=7 / 3, alternative=SIDES[alternative]
        )
        found = power(pilot=pilot, values=(1 + gap, 1), n=n, alternative=alternative)
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_pilot_of_other_shares_is_scaled_group_by_group() -> None:
    pilot = pilot_of(
        standard_error=5.0, standard_errors={"a": 3.0, "b": 4.0}
    )  # deviations of 3·√30 and 4·√70
    error = math.sqrt(9 * 30 / 500 + 16 * 70 / 500)
    expected = norm.cdf(2 / error - norm.ppf(0.975)) + norm.cdf(-2 / error - norm.ppf(0.975))
    assert power(pilot=pilot, values=(2, 0), n=1000, share=0.5) == pytest.approx(expected)
    own = power(pilot=pilot, values=(2, 0), n=1000)
    assert power(pilot=pilot, values=(2, 0), n=1000, share=0.3) == pytest.approx(own)


def test_a_pilot_of_matched_sets_plans_sets_and_says_their_rows() -> None:
    prompt, name = np.repeat(np.arange(30), 6), np.tile(["a"] * 3 + ["b"] * 3, 30)
    pilot = permutation_test(
        y_pred=np.random.default_rng(5).normal(size=180),
        y_true=np.zeros(180),
        sensitive_features=name,
        matched=prompt,
        metric="mean_prediction",
        n_resamples=99,
        rng=1,
    )
    n = sample_size(pilot=pilot, values=(0.2, 0.0))
    quantiles = norm.ppf(0.975) + norm.ppf(0.8)
    assert n == math.ceil(30 * (quantiles * pilot.standard_error / 0.2) ** 2)
    assert n.answer.startswith(f"You need {n:,} sets ({6 * n:,} rows) in total for 80 % power to")
    assert "100 sets (600 rows)" in power(pilot=pilot, values=(0.2, 0.0), n=100).answer
    assert "100 sets (600 rows)" in minimum_detectable_gap(pilot=pilot, n=100).answer
    with pytest.raises(InputError, match="share cannot be used with a pilot of matched sets"):
        sample_size(pilot=pilot, values=(0.2, 0.0), share=0.3)


def test_a_pilot_is_taken_at_its_own_gap() -> None:
    pilot = pilot_of(difference=-0.4)
    assert power(pilot=pilot, n=300) == power(pilot=pilot, values=(0.6, 1.0), n=300)


# The level.


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("alpha", [0.01, 0.2])
def test_power_without_a_gap_is_the_level(alpha: float, alternative: Alternative) -> None:
    shared: dict[str, Any] = {"n": 150, "alpha": alpha, "alternative": alternative}
    of_positives = {**shared, "base_rates": (0.7, 0.2), "values": (0.3, 0.3)}
    assert power("roc_auc", **{**of_positives, "values": (0.8, 0.8)}) == pytest.approx(alpha)
    assert power(pilot=pilot_of(), values=(7, 7), **shared) == pytest.approx(alpha)
    assert power("tpr", **of_positives) <= alpha
    huge = {**of_positives, "n": 10**7}
    assert alpha * 0.99 < power("tpr", **huge) <= alpha + 1e-12


def test_rates_that_do_not_vary() -> None:
    shared: dict[str, Any] = {"n": 100, "base_rates": 0.5}
    assert power("tpr", values=(1, 0), **shared) == pytest.approx(1.0)
    assert power("tpr", values=(0, 0), **shared) == 0.0
    greater = power("tpr", values=(0, 1), **shared, alternative="greater")
    assert greater == pytest.approx(0.0)


# Sample size and smallest gap.

shares_of_one = st.floats(0.05, 0.95)
questions = st.fixed_dictionaries(
    {
        "share": st.floats(0.2, 0.8),
        "alpha": st.sampled_from([0.01, 0.05, 0.1]),
        "alternative": st.sampled_from(ALTERNATIVES),
    }
)
kinds = st.sampled_from(
    [
        ("selection_rate", {}),
        ("fpr", {"base_rates": 0.3}),
        ("tpr", {"base_rates": (0.3, 0.6)}),
        ("roc_auc", {"base_rates": (0.3, 0.6)}),
    ]
)


@examples(20)
@given(
    kind=kinds,
    question=questions,
    first=shares_of_one,
    second=shares_of_one,
    target=st.floats(0.3, 0.95),
)
def test_sample_size_is_where_power_reaches_the_target(
    kind: Any, question: dict[str, Any], first: float, second: float, target: float
) -> None:
    metric, details = kind
    if abs(first - second) < 0.02:
        first = second + 0.02
    if question["alternative"] != "two-sided":
        question = {**question, "alternative": "greater" if first > second else "less"}
    shared = {**question, **details, "values": (first, second)}
    n = sample_size(metric, power=target, **shared)
    assert power(metric, n=n, **shared) >= target
    with contextlib.suppress(InputError):  # fewer rows are no sample
        assert power(metric, n=n - 1, **shared) < target


@pytest.mark.parametrize(
    ("values", "share", "target"),
    [
        ((0.1, 0.5), 0.5, 0.9),
        ((0.05, 0.3), 0.3, 0.6),
        pytest.param((0.2, 0.5), 0.5, 0.9, marks=pytest.mark.validate),
        pytest.param((0.02, 0.1), 0.15, 0.5, marks=pytest.mark.validate),
    ],
)
def test_sample_size_is_the_smallest_of_all(
    values: tuple[float, float], share: float, target: float
) -> None:
    shared: dict[str, Any] = {"values": values, "share": share}
    enough = (
        n
        for n in range(math.ceil(1 / share), 1000)
        if power("selection_rate", n=n, **shared) >= target
    )
    assert sample_size("selection_rate", power=target, **shared) == next(enough)


@examples(40)
@given(
    kind=kinds,
    question=questions,
    value=shares_of_one,
    n=st.integers(60, 3000),
    target=st.floats(0.3, 0.95),
)
def test_the_smallest_gap_is_where_power_reaches_the_target(
    kind: Any, question: dict[str, Any], value: float, n: int, target: float
) -> None:
    metric, details = kind
    shared = {**question, **details}
    gap = minimum_detectable_gap(metric, value=value, n=n, power=target, **shared)
    sides = {"greater": (1,), "less": (-1,)}.get(question["alternative"], (1, -1))
    rooms = {side: 1 - value if side > 0 else value for side in sides}

    def found(side: int, size: float) -> float:
        first = min(1.0, max(0.0, value + side * size))
        return power(metric, values=(first, value), n=n, **shared)

    hopeless = [side for side in sides if found(side, rooms[side]) < target]
    if len(hopeless) == len(sides):
        assert gap == math.inf
        return
    # every larger gap that there is room for is found
    for side in sides:
        for larger in np.linspace(gap, rooms[side], 5)[1:] if gap < rooms[side] else []:
            assert found(side, larger) >= target - 1e-6
    # and a smaller one is not: on some side it falls short
    least = [found(side, gap) for side in sides if side not in hopeless and gap <= rooms[side]]
    room_of_hopeless = [rooms[side] for side in hopeless]
    assert gap == pytest.approx(max([0.0, *room_of_hopeless])) or min(least) == pytest.approx(
        target, abs=1e-6
    )


def test_a_side_without_a_detectable_gap_is_not_forgotten() -> None:
    # with 3 and 45 positives, no gap above 0.72 has this power, and a smaller one below it has
    shared: dict[str, Any] = {"n": 100, "base_rates": (0.06, 0.9)}
    assert power("tpr", values=(1.0, 0.72), **shared) < 0.1
    assert power("tpr", values=(0.72 - 0.27, 0.72), **shared) > 0.1
    gap = minimum_detectable_gap("tpr", value=0.72, power=0.1, **shared)
    assert gap == pytest.approx(1 - 0.72)


@examples(20)
@given(question=questions, gap=st.floats(0.05, 5), target=st.floats(0.15, 0.99))
def test_a_pilot_is_inverted_too(question: dict[str, Any], gap: float, target: float) -> None:
    pilot = pilot_of()
    sign = -1 if question["alternative"] == "less" else 1
    n = sample_size(pilot=pilot, values=(sign * gap, 0), power=target, **question)
    assert power(pilot=pilot, values=(sign * gap, 0), n=n, **question) >= target
    found = minimum_detectable_gap(pilot=pilot, n=n, power=target, **question)
    assert found <= gap * (1 + 1e-9)
    assert power(pilot=pilot, values=(sign * found, 0), n=n, **question) == pytest.approx(target)


# The gap that a sample could have shown.


def test_detectable_gap_of_a_rate_has_its_denominators() -> None:
    result = permutation_test(
        **rows(((30, 10, 20, 40), (50, 30, 25, 15))), metric="true_positive_rate"
    )
    expected = minimum_detectable_gap(
        "tpr", value=55 / 100, n=200, base_rates=(0.6, 0.4), power=0.9, alpha=0.01
    )
    assert detectable_gap(result, alpha=0.01, power=0.9) == pytest.approx(expected)
    conditional = replace(result, scheme="denominator")  # by the normal limit
    found = detectable_gap(conditional, alpha=0.01, power=0.9)
    assert found == pytest.approx(expected, rel=0.05)


def test_detectable_gap_knows_what_no_hits_at_all_can_tell() -> None:
    result = permutation_test(**rate_rows((0, 50, 0, 50)), metric="selection_rate")
    gap = detectable_gap(result, alpha=0.05)
    assert power("selection_rate", values=(gap, 0), n=100) == pytest.approx(0.8)
    few = permutation_test(**rate_rows((1, 2, 1, 2)), metric="selection_rate")
    assert detectable_gap(few, alpha=0.05) == math.inf


def test_detectable_gap_of_others_is_a_multiple_of_the_standard_error() -> None:
    pilot = pilot_of(standard_error=0.5)
    both = norm.ppf(0.975) + norm.ppf(0.8)
    assert detectable_gap(pilot, alpha=0.05) == pytest.approx(0.5 * both)
    one_sided = replace(pilot, alternative="less")
    assert detectable_gap(one_sided, alpha=0.025) == pytest.approx(0.5 * both)
    strata = permutation_test(**rate_rows((9, 30, 5, 20), (3, 20, 9, 30)), metric="selection_rate")
    assert detectable_gap(strata, 0.05) == pytest.approx(strata.standard_error * both)
    odds = permutation_test(**rows(((30, 10, 20, 40), (50, 30, 25, 15))), metric="equalized_odds")
    shared = norm.ppf(1 - 0.05 / 4) + norm.ppf(0.8)  # half of alpha for each of two rates
    assert detectable_gap(odds, 0.05) == pytest.approx(odds.standard_error * shared)
    assert math.isnan(detectable_gap(pilot_of(standard_error=0.0), 0.05))


def test_the_change_between_two_models_is_a_pilot() -> None:
    rng = np.random.default_rng(1)
    label, group = rng.integers(0, 2, 800), rng.choice(["a", "b"], 800)
    old = rng.random(800) < 0.2 + 0.5 * label
    new = old ^ (rng.random(800) < 0.2)
    pilot = compare_models(label, old, new, sensitive_features=group, metric="ppv", rng=1)
    reach = pilot.standard_error * math.sqrt(800 / 3200) * norm.ppf([0.975, 0.8]).sum()
    found = minimum_detectable_gap(pilot=pilot, n=3200)
    assert found == pytest.approx(reach, rel=1e-3)
    assert power(pilot=pilot, values=(0, found), n=3200) == pytest.approx(0.8, abs=1e-6)
