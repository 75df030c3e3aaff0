"""Matched sets: against McNemar's and scipy's sign flips, and what must not change."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import cochrans_q

from fairperm import (
    FairpermError,
    PermutationTestResult,
    equivalence_test,
    omnibus_test,
    permutation_test,
)
from tests.support.simulations import between

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* shows? how the gap",
    "ignore:.* left out; ",
    "ignore:The metric is undefined",
    "ignore:.*is zero in this",
    "ignore:y_pred equals y_true",
)


def pairs(first: Any, second: Any, **more: Any) -> PermutationTestResult:
    """Test pairs of outcomes."""
    n = len(first)
    given: dict[str, Any] = {
        "y_pred": np.concatenate([first, second]),
        "sensitive_features": ["a"] * n + ["b"] * n,
        "matched": np.tile(np.arange(n), 2),
        "metric": "selection_rate",
        "n_resamples": 999,
        "rng": 1,
        **more,
    }
    given.setdefault("y_true", np.ones(2 * n))
    return permutation_test(**given)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize(
    ("up", "down", "same"), [(9, 2, 30), (0, 5, 3), (300, 340, 5000), (3, 3, 0)]
)
def test_binary_pairs_are_mcnemars_exact_test(
    up: int, down: int, same: int, alternative: Any
) -> None:
    first = np.repeat([1, 0, 1], [up, down, same])
    second = np.repeat([0, 1, 1], [up, down, same])
    result = pairs(first, second, alternative=alternative)
    exact = stats.binomtest(up, up + down, alternative=alternative).pvalue
    assert result.exact
    assert result.pvalue == pytest.approx(exact)
    assert result.difference == pytest.approx((up - down) / len(first))
    low, high = result.confidence_interval
    assert (low > 0 or high < 0) == (result.pvalue <= 0.05)


def test_pairs_that_do_not_vary_have_no_interval_to_trust() -> None:
    same, apart = pairs(np.ones(7), np.ones(7)), pairs(np.ones(7), np.zeros(7))
    assert (same.pvalue, same.difference) == (1, 0)
    assert (apart.pvalue, apart.difference) == (2 * 0.5**7, 1)
    for result in (same, apart):
        assert any("the confidence interval is meaningless" in note for note in result.notes)


def test_numbers_are_tested_by_sign_flips() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(0.5, 1, 10), rng.normal(0, 1, 10)
    result = pairs(first, second, metric="mean_prediction")
    moved = first - second
    assert result.statistic == pytest.approx(hall(moved[None])[0])
    studentized = pairs(first, second, metric="mean_prediction", variance="delta")
    assert studentized.statistic == pytest.approx(stats.ttest_rel(first, second).statistic)
    for found, statistic in (
        (result, hall),
        (studentized, lambda x: stats.ttest_1samp(x, 0, axis=1).statistic),
    ):
        flips = stats.permutation_test(
            (moved,),
            lambda x, axis, one=statistic: one(np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])),
            permutation_type="samples",
            vectorized=True,
            n_resamples=np.inf,
        )
        floor = 2 * stats.norm.sf(abs(result.statistic)) if found is result else 0.0
        assert found.exact
        assert found.pvalue == pytest.approx(max(flips.pvalue, floor))


def hall(differences: Any) -> Any:
    """Return the statistic without skewness of sets' differences, by draw, written out."""
    n = differences.shape[1]
    t = stats.ttest_1samp(differences, 0, axis=1).statistic
    shrunk = ((n - 1) / n) ** 1.5  # the standard error has n − 1
    k = stats.skew(differences, axis=1) / math.sqrt(n) * shrunk
    return ((1 + k * t / 3) ** 3 - 1) / k + k / 6


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less", "symmetric"])
def test_sets_whose_groups_can_be_exchanged_are_rejected_as_often_as_the_level_says(
    alternative: Any,
) -> None:
    """Under the strong null all exchanges are equally likely: P(p ≤ α) ≤ α, by enumeration."""
    sides = np.array([[0.1, 2.0], [0.5, 0.4], [3.0, 9.0], [1.0, 1.2], [0.0, 0.7], [5.0, 4.0]])
    p = []
    for flips in itertools.product([0, 1], repeat=len(sides)):
        first, second = np.where(np.array(flips)[:, None], sides[:, ::-1], sides).T
        result = pairs(first, second, metric="mean_prediction", alternative=alternative)
        p.append(result.pvalue)
        low, high = result.confidence_interval
        assert alternative == "symmetric" or (low > 0 or high < 0) == (result.pvalue <= 0.05)
    found, times = np.unique(np.round(p, 12), return_counts=True)
    assert (times.cumsum() / len(p) <= found + 1e-11).all()


def test_the_normal_limit_leaves_skewness_in() -> None:
    first, second = np.random.default_rng(3).exponential(size=(2, 20))
    given: dict[str, Any] = {"metric": "mean_prediction"}
    limit = pairs(first, second, n_resamples=0, **given)
    assert limit.statistic == pairs(first, second, variance="delta", **given).statistic
    with pytest.raises(FairpermError, match=r"^n_resamples must be at least 1 with variance='hall"):
        pairs(first, second, n_resamples=0, variance="hall", **given)


def test_precision_has_the_variance_over_sets_in_every_exchange() -> None:
    rng = np.random.default_rng(5)
    n = 8
    label = rng.random((2, n)) < 0.6
    predicted = rng.random((2, n)) < 0.7
    result = pairs(*predicted, y_true=label.ravel(), metric="ppv")

    def statistic(flips: Any) -> float:
        swap = np.array(flips, bool)
        y, p = (np.where(swap, one[::-1], one) for one in (label, predicted))
        with np.errstate(all="ignore"):
            value = (y & p).sum(axis=1) / p.sum(axis=1)
            influence = p * (y - value[:, None]) / p.sum(axis=1)[:, None]
            error = math.sqrt(((influence[0] - influence[1]) ** 2).sum() * n / (n - 1))
            gap = value[0] - value[1]
            return 0.0 if error == 0 and abs(gap) < 1e-12 else gap / error

    null = np.array([statistic(flips) for flips in itertools.product([0, 1], repeat=n)])
    observed = statistic([0] * n)
    undefined = np.isnan(null)
    tails = [np.mean(undefined | (sign * null >= sign * observed - 1e-9)) for sign in (1, -1)]
    assert result.statistic == pytest.approx(observed)
    assert result.pvalue == pytest.approx(min(1, 2 * min(tails)))


def prompts(seed: int = 0, n: int = 60) -> dict[str, Any]:
    """Return answers to prompts, one to three for each name, some prompts with one name only."""
    rng = np.random.default_rng(seed)
    prompt, name, score = [], [], []
    for one in range(n):
        level = rng.normal()
        for who in ("a", "b") if one % 10 else ("a",):
            for _ in range(rng.integers(1, 4)):
                prompt.append(one)
                name.append(who)
                score.append(level + rng.normal(0, 0.5))
    return {"matched": prompt, "sensitive_features": name, "y_pred": np.array(score)}


def run(rows: dict[str, Any], **more: Any) -> PermutationTestResult:
    given: dict[str, Any] = {
        "y_true": np.zeros(len(rows["y_pred"])),
        "metric": "mean_prediction",
        **rows,
    }
    return permutation_test(**{**given, "rng": 4, "n_resamples": 499, **more})


def test_answers_of_a_prompt_are_averaged_and_their_number_and_order_do_not_matter() -> None:
    rows = prompts()
    result = run(rows)
    twice = {name: np.concatenate([one, one]) for name, one in rows.items()}
    order = np.random.default_rng(1).permutation(len(rows["matched"]))
    mixed = {name: np.asarray(one)[order] for name, one in rows.items()}
    assert not result.exact
    assert run(twice).pvalue == run(mixed).pvalue == result.pvalue
    back = run(rows, groups=("b", "a"))
    assert (back.pvalue, back.difference) == (result.pvalue, -result.difference)
    assert result.counts["a"]["sets"] == 54
    assert any(note.startswith("6 sets without rows of both groups") for note in result.notes)
    prompt, name = (np.array(rows[key]) for key in ("matched", "sensitive_features"))
    means = {
        key: [
            rows["y_pred"][(prompt == one) & (name == key)].mean() for one in range(60) if one % 10
        ]
        for key in ("a", "b")
    }
    assert result.values["a"] == pytest.approx(np.mean(means["a"]))
    moved = np.array(means["a"]) - means["b"]
    assert result.statistic == pytest.approx(hall(moved[None])[0])


@pytest.mark.parametrize("times", [2, 3, 7])
def test_repeating_answers_breaks_no_ties_by_rounding(times: int) -> None:
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {
        "matched": np.arange(40).repeat(6),
        "sensitive_features": np.tile(["a", "a", "a", "b", "b", "b"], 40),
        "y_pred": rng.choice([0.1, 0.2, 0.3, 0.7], 240),
    }
    again = {name: np.repeat(one, times) for name, one in rows.items()}
    given: dict[str, Any] = {"metric": "mean_prediction", "rng": 1, "n_resamples": 39}
    for test in (permutation_test, omnibus_test):
        results = [
            test(y_true=np.zeros(len(one["y_pred"])), **one, **given) for one in (rows, again)
        ]
        assert results[0].pvalue == results[1].pvalue
        assert not results[0].stopped_early


def test_swapping_the_groups_keeps_p_if_some_sets_have_equal_sides() -> None:
    first, second = np.random.default_rng(1).integers(0, 6, (2, 60))
    assert (first == second).any()
    for seed in range(4):
        options: dict[str, Any] = {"metric": "mean_prediction", "n_resamples": 39, "rng": seed}
        here, there = (
            pairs(first, second, groups=groups, **options) for groups in (("a", "b"), ("b", "a"))
        )
        assert not here.exact
        assert (here.pvalue, here.difference) == (there.pvalue, -there.difference)


def test_margins_and_the_normal_limit() -> None:
    rows = prompts()
    limit = run(rows, n_resamples=0)
    assert limit.pvalue == pytest.approx(2 * stats.norm.sf(abs(limit.statistic)))
    within = equivalence_test(
        np.zeros(len(rows["y_pred"])), metric="mean_prediction", margin=2.0, rng=4, **rows
    )
    assert within.holds_at(0.05)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"scheme": "pooled"}, "scheme must be one of 'auto'; got 'pooled'"),
        (
            {"variance": "score"},
            "variance must be one of 'auto', 'hall', 'delta', None; got 'score'",
        ),
        ({"metric": "equalized_odds"}, "metric must be a rate, a mean or another function of"),
        ({"metric": lambda y, p: float(np.mean(y == p))}, "metric must be a rate, a mean or"),
        ({"matched": [1, 2, 3, 4]}, "matched must be names of at least two sets with rows of 'a'"),
        ({"matched": [1, 2, 1, 3]}, "matched must be names of at least two sets with rows of 'a'"),
        ({"matched": [1, 2, 1]}, "matched must be as long as y_true"),
        ({"matched": [1, None, 1, 2]}, "matched has 1 missing value"),
        ({"matched": "pair"}, "matched must be a list, a NumPy array or a data frame's column"),
        ({"metric": "ppv", "y_pred": [0, 0, 1, 0]}, "metric must be defined in every group; got"),
    ],
)
def test_bad_sets_are_refused(given: dict[str, Any], says: str) -> None:
    good: dict[str, Any] = {
        "y_true": [1, 0, 1, 0],
        "y_pred": [1, 0, 0, 1],
        "sensitive_features": list("aabb"),
        "matched": [1, 2, 1, 2],
        "metric": "selection_rate",
    }
    with pytest.raises(FairpermError, match=f"^{re.escape(says)}"):
        permutation_test(**{**good, **given})


@pytest.mark.parametrize("test", [permutation_test, omnibus_test])
def test_a_perfect_group_has_no_standard_error_of_rmse(test: Any) -> None:
    """Its statistic is NaN: p was 0.016, as few exchanges of the eight sets are undefined."""
    error = np.arange(1.0, 9.0)
    given: dict[str, Any] = {
        "y_true": np.zeros(16),
        "y_pred": np.concatenate([error, 0 * error]),
        "sensitive_features": ["a"] * 8 + ["b"] * 8,
        "matched": np.tile(np.arange(8), 2),
    }
    assert test(**given, metric="mean_squared_error").pvalue < 0.05
    with pytest.raises(FairpermError, match="standard error over sets is defined, and not zero"):
        test(**given, metric="root_mean_squared_error")


def triples(n: int, seed: int, *, spread: tuple[float, float, float] = (1, 1, 1)) -> Any:
    """Return answers to prompts with three names, equal on average."""
    rng = np.random.default_rng(seed)
    noise = [rng.exponential(one, n) - one for one in spread]
    score = rng.normal(0, 2, n)[:, None] + np.stack(noise, axis=1)
    return {
        "y_pred": score.ravel(),
        "y_true": np.zeros(3 * n),
        "sensitive_features": np.tile(["a", "b", "c"], n),
        "matched": np.arange(n).repeat(3),
        "metric": "mean_prediction",
    }


def test_three_groups_are_compared_by_their_covariance_over_sets() -> None:
    rows = triples(4, seed=5)
    result = omnibus_test(**rows, rng=1, n_resamples=3999)
    score = rows["y_pred"].reshape(4, 3)

    def statistic(answers: Any) -> float:
        apart = answers[:, 1:] - answers[:, :1]
        mean = apart.mean(axis=0)
        return float(mean @ np.linalg.solve(np.cov(apart.T) / 4, mean))

    observed = statistic(score)
    assert result.statistic == pytest.approx(observed)
    every = list(itertools.permutations(range(3)))
    null = [
        statistic(np.stack([one[list(way)] for one, way in zip(score, ways, strict=True)]))
        for ways in itertools.product(every, repeat=4)
    ]
    exact = np.mean(np.array(null) >= observed - 1e-9)
    low, high = stats.binom.ppf([0.0005, 0.9995], 4000, exact) / 4000
    assert low <= result.pvalue <= high + 1 / 4000


def test_binary_outcomes_without_studentizing_are_cochrans_q() -> None:
    rng = np.random.default_rng(2)
    hired = (rng.random((400, 3)) < rng.random((400, 1)) * [0.8, 0.9, 0.9]).astype(int)
    result = omnibus_test(
        y_pred=hired.ravel(),
        sensitive_features=np.tile(["a", "b", "c"], 400),
        matched=np.arange(400).repeat(3),
        metric="selection_rate",
        variance=None,  # Q is this sum of squares over a number that no exchange changes
        n_resamples=9999,
        rng=1,
    )
    low, high = result.pvalue_interval
    assert low < cochrans_q(hired).pvalue < high


def test_names_order_and_repeated_answers_change_no_omnibus_p() -> None:
    rows = triples(30, seed=6)
    result = omnibus_test(**rows, rng=2, n_resamples=199)
    order = np.random.default_rng(1).permutation(90).repeat(2)
    other: dict[str, Any] = {
        name: np.asarray(one)[order] for name, one in rows.items() if name != "metric"
    }
    names = {"a": "z", "b": "y", "c": "x"}
    other["sensitive_features"] = [names[one] for one in other["sensitive_features"]]
    again = omnibus_test(**other, metric="mean_prediction", rng=2, n_resamples=199)
    assert again.pvalue == result.pvalue
    assert again.statistic == pytest.approx(result.statistic)


def test_two_groups_at_once_are_the_square_of_their_gap() -> None:
    rows = triples(40, seed=7)
    two = omnibus_test(**rows, groups=("a", "b"), rng=1, n_resamples=199)
    given: dict[str, Any] = {"groups": ("a", "b"), "variance": "delta"}
    gap = permutation_test(**rows, **given, rng=1, n_resamples=199)
    assert two.statistic == pytest.approx(gap.statistic**2)
    rows["y_pred"][1::3] = rows["y_pred"][0::3] - 1.0  # a gap without variance
    apart = omnibus_test(**rows, groups=("a", "b"), rng=1, n_resamples=199)
    assert math.isinf(apart.statistic)
    assert apart.pvalue == 1 / 200
    rows["y_pred"][:] = 1.0
    assert omnibus_test(**rows, rng=1, n_resamples=99).pvalue == 1


def test_sets_without_all_groups_are_left_out_of_tests_of_all() -> None:
    rows = triples(30, seed=8)
    kept: dict[str, Any] = {
        name: np.asarray(one)[:-1] for name, one in rows.items() if name != "metric"
    }
    result = omnibus_test(**kept, metric="mean_prediction", rng=1, n_resamples=99)
    assert result.counts["a"] == {"rows": 29, "sets": 29}
    assert result.notes[0] == "1 set without rows of all groups was left out; 29 remain."


def test_a_ratio_knows_that_groups_share_their_sets() -> None:
    rng = np.random.default_rng(3)
    first = rng.gamma(5, 1, 80)
    second = first * 1.1 + rng.normal(0, 0.1, 80)
    result = equivalence_test(
        y_pred=np.concatenate([first, second]),
        y_true=np.zeros(160),
        sensitive_features=["a"] * 80 + ["b"] * 80,
        matched=np.tile(np.arange(80), 2),
        metric="mean_prediction",
        ratio=0.8,
        n_resamples=199,
        rng=1,
    )
    assert result.lower is not None
    excess = first - 0.8 * second
    t = stats.ttest_1samp(excess, 0).statistic
    assert result.lower.statistic == pytest.approx(t)


@pytest.mark.validate
@pytest.mark.parametrize(("n", "spread"), [(60, (1.0, 1.0, 3.0)), (100, (0.5, 1.0, 2.0))])
def test_the_level_of_the_omnibus_test_holds_if_groups_are_equal_on_average_only(
    n: int, spread: tuple[float, float, float]
) -> None:
    found = 0
    for seed in range(400):
        rows = triples(n, seed, spread=spread)
        found += omnibus_test(**rows, rng=seed, n_resamples=99).pvalue <= 0.05
    low, high = between(0.03, 0.08, 400)
    assert low <= found <= high


@pytest.mark.validate
@pytest.mark.parametrize(("n", "spreads"), [(30, (1.0, 3.0)), (100, (0.5, 2.0)), (60, (1.0, 1.0))])
def test_the_level_holds_if_groups_are_equal_on_average_only(
    n: int, spreads: tuple[float, float]
) -> None:
    rng = np.random.default_rng(n)
    found = 0
    for seed in range(400):
        level = rng.normal(0, 2, n)
        first, second = (level + rng.exponential(one, n) - one for one in spreads)
        found += (
            pairs(first, second, metric="mean_prediction", rng=seed, n_resamples=199).pvalue <= 0.05
        )
    low, high = between(0.03, 0.08, 400)
    assert low <= found <= high


@pytest.mark.validate
def test_skewed_differences_need_their_skewness_removed() -> None:
    """Of 40 sets with log-normal differences, studentizing alone rejects 0.10."""
    rng = np.random.default_rng(40)
    times = 1000
    rejected = {"hall": 0, "delta": 0}
    for seed in range(times):
        first, second = rng.lognormal(size=40) - math.exp(0.5), np.zeros(40)
        for variance in rejected:
            given: dict[str, Any] = {"metric": "mean_prediction", "n_resamples": 199}
            p = pairs(first, second, variance=variance, rng=seed, **given).pvalue
            rejected[variance] += p <= 0.05
    _, high = between(0.03, 0.065, times)
    assert rejected["hall"] <= high < rejected["delta"]
