"""The test of many groups: against Pearson's chi-square, two groups, and by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fairperm
from tests.hypothesis_tests.test_agreement import draw_columns
from tests.support.helpers import RATES
from tests.support.omnibus_data import (
    SURE,
    agree,
    confused,
    numbers,
    run,
    run_two,
    same_pvalue,
    scored,
)

# -- The statistic --------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", RATES)
def test_of_a_rate_it_is_pearsons_chi_square(metric: str) -> None:
    data = confused()
    result = run(data, metric, n_resamples=99)
    counted, among = (cells.split() for cells in RATES[metric])
    names = np.array(["tn", "fp", "fn", "tp"])[2 * data["y_true"] + data["y_pred"]]
    table = [
        [
            (np.isin(names, counted) & (data["sensitive_features"] == group)).sum(),
            (np.isin(names, among) & (data["sensitive_features"] == group)).sum(),
        ]
        for group in result.groups
    ]
    k, m = np.array(table).T
    expected = stats.chi2_contingency([k, m - k], correction=False)
    assert result.variance == "score"
    assert result.scheme == "denominator"
    assert result.statistic == pytest.approx(expected.statistic, rel=1e-10)
    assert result.mean == pytest.approx(k.sum() / m.sum(), rel=1e-12)
    assert result.values == pytest.approx(dict(zip(result.groups, k / m, strict=True)))
    p = k / m
    own = dict(zip(result.groups, np.sqrt(p * (1 - p) / m), strict=True))
    assert result.standard_errors == pytest.approx(own)


def test_pvalues_of_large_samples_are_those_of_chi_square() -> None:
    data = confused(4000)
    for metric in ("selection_rate", "true_positive_rate", "f1_score"):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            data["sensitive_features"] = rng.permutation(data["sensitive_features"])
            result = run(data, metric, n_resamples=999)
            expected = stats.chi2.sf(result.statistic, 4)
            extremes = round(result.pvalue * 1000) - 1
            # the distribution of 4,000 rows is not quite that of infinitely many
            assert stats.binomtest(extremes, 999, expected).pvalue > SURE


def test_it_is_the_weighted_sum_of_squares_by_hand() -> None:
    """Means of squares 2, 5 and 1 with variances 1, 4/2 and 0.5 over sizes, written out."""
    y_pred = np.sqrt([1, 3, 1, 3, 3, 7, 3, 7, 0.5, 1.5])
    group = list("aaaabbbbcc")
    result = run(
        {"y_true": np.zeros(10), "y_pred": y_pred, "sensitive_features": group},
        "mean_squared_error",
        n_resamples=9,
    )
    theta, variance = np.array([2, 5, 1]), np.array([1 / 4, 4 / 4, 0.25 / 2])
    mean = (theta / variance).sum() / (1 / variance).sum()
    assert result.mean == pytest.approx(mean)
    assert result.statistic == pytest.approx(((theta - mean) ** 2 / variance).sum())
    assert list(result.standard_errors.values()) == pytest.approx(np.sqrt(variance))


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("metric", fairperm.metric_names())
def test_groups_have_the_values_and_errors_of_tests_of_two(metric: str) -> None:
    data = draw_columns(metric, 240, np.random.default_rng(8))
    data |= {"sensitive_features": np.arange(240) % 3, "metric": metric}
    every = fairperm.omnibus_test(**data, n_resamples=9, rng=1)
    two = fairperm.permutation_test(**data, n_resamples=9, rng=1, groups=(0, 1))
    for group in (0, 1):
        assert every.values[group] == pytest.approx(two.values[group], rel=1e-9)
        error = two.standard_errors.get(group, every.standard_errors[group])
        assert every.standard_errors[group] == pytest.approx(error, rel=1e-9)


TWO = [
    ("selection_rate", {"scheme": "denominator"}),
    ("true_positive_rate", {"scheme": "pooled"}),
    ("true_positive_rate", {"scheme": "pooled", "variance": "wald"}),
    ("true_positive_rate", {"scheme": "pooled", "variance": "delta"}),
    ("f1_score", {"scheme": "denominator"}),
    ("equalized_odds", {}),
    ("balanced_accuracy", {"scheme": "within_label", "variance": "delta"}),
]


@pytest.mark.parametrize("strata", [False, True], ids=["all rows", "strata"])
@pytest.mark.parametrize(("metric", "options"), TWO)
def test_of_two_groups_it_is_the_gap_tests(
    metric: str, options: dict[str, Any], strata: bool
) -> None:
    data = confused(240, groups=2)
    if strata:
        data["control_features"] = np.arange(240) % 3
    ours = run(data, metric, **options, n_resamples=1999)
    theirs = run_two(data, metric, **options, n_resamples=1999)
    agree(ours, theirs)


@pytest.mark.parametrize(
    ("metric", "data", "options"),
    [
        ("roc_auc", scored(groups=2), {}),
        ("roc_auc", scored(groups=2), {"scheme": "pooled"}),
        ("mean_score", scored(groups=2), {"variance": "delta"}),
        ("mean_squared_error", numbers(groups=2), {"variance": "delta"}),
        ("r2_score", numbers(groups=2), {"variance": "delta"}),
        ("mean_squared_error", {**numbers(groups=2), "sample_weight": np.arange(300) + 1.0}, {}),
    ],
)
def test_of_two_groups_of_numbers_too(metric: str, data: Any, options: dict[str, Any]) -> None:
    agree(
        run(data, metric, **options, n_resamples=1999),
        run_two(data, metric, **options, n_resamples=1999),
    )


@pytest.mark.parametrize("metric", ["true_positive_rate", "positive_predictive_value", "f1_score"])
def test_of_two_groups_it_is_the_plain_gaps_if_nothing_is_studentized(metric: str) -> None:
    """Groups are weighted by rows, which no permutation changes: squared gaps, times a number."""
    data = confused(240, groups=2)
    options: dict[str, Any] = {"scheme": "pooled", "variance": None, "n_resamples": 1999}
    ours, theirs = run(data, metric, **options), run_two(data, metric, **options)
    sizes = [one["rows"] for one in ours.counts.values()]
    weight = math.prod(sizes) / sum(sizes)
    assert ours.statistic == pytest.approx(weight * theirs.difference**2)
    same_pvalue(ours, theirs)


def test_of_two_groups_of_clusters_too() -> None:
    data = confused(240, groups=2)
    data["cluster"] = np.unique(data["sensitive_features"], return_inverse=True)[1] * 100
    data["cluster"] += np.arange(240) % 40
    agree(run(data, "f1_score", n_resamples=999), run_two(data, "f1_score", n_resamples=1999))


# -- Joint metrics, strata, groups ----------------------------------------------------------------


def test_a_joint_metric_is_the_larger_of_its_parts() -> None:
    data = confused()
    joint = run(data, "equalized_odds", n_resamples=999)
    parts = [
        run(data, metric, scheme="within_label", n_resamples=999)
        for metric in ("true_positive_rate", "false_positive_rate")
    ]
    assert joint.statistic == pytest.approx(max(part.statistic for part in parts))
    assert math.isnan(joint.mean)
    for group in joint.groups:
        assert joint.values[group] == pytest.approx({p.metric: p.values[group] for p in parts})
        errors = {p.metric: p.standard_errors[group] for p in parts}
        assert joint.standard_errors[group] == pytest.approx(errors)
    both = 1 - math.prod(stats.chi2.cdf(joint.statistic, 4) for _ in parts)  # independent
    extremes = round(joint.pvalue * 1000) - 1
    assert stats.binomtest(extremes, 999, both).pvalue > SURE
    assert "Exact for the weak null" in joint.validity


def test_strata_are_combined_with_the_same_weights_in_every_group() -> None:
    """By hand: weights 1/(1/m + 1/m′ + …), variances of permutations within strata."""
    data = {**confused(500, groups=3), "control_features": np.arange(500) % 4 % 3}
    result = run(data, "selection_rate", n_resamples=199)
    names = sorted(set(data["sensitive_features"]))
    m, k = np.zeros((3, 3)), np.zeros((3, 3))
    for s, g in itertools.product(range(3), range(3)):
        here = (data["control_features"] == s) & (data["sensitive_features"] == names[g])
        m[s, g], k[s, g] = here.sum(), data["y_pred"][here].sum()
    weight = 1 / (1 / m).sum(axis=1)
    share = (weight / weight.sum())[:, None]
    p = (k.sum(axis=1) / m.sum(axis=1))[:, None]
    theta = (share * k / m).sum(axis=0)
    n = m.sum(axis=1)[:, None]
    variance = (share**2 * p * (1 - p) / m * n / (n - 1)).sum(axis=0)
    mean = (theta / variance).sum() / (1 / variance).sum()
    assert result.statistic == pytest.approx(((theta - mean) ** 2 / variance).sum(), rel=1e-10)
    assert result.mean == pytest.approx(mean)
    assert result.n_strata == 3
    overall = k.sum(axis=0) / m.sum(axis=0)
    assert list(result.values.values()) == pytest.approx(overall)
    error = np.sqrt(overall * (1 - overall) / m.sum(axis=0))
    assert list(result.standard_errors.values()) == pytest.approx(error)


def test_stratum_weights() -> None:
    data = {**confused(500, groups=3), "control_features": np.arange(500) % 2}
    one = run(data, "f1_score", stratum_weights={0: 1, 1: 0}, n_resamples=9)
    half = {name: np.asarray(column)[::2] for name, column in data.items()}
    alone = run({**half, "control_features": None}, "f1_score", n_resamples=9)
    assert (one.statistic, one.pvalue) == (alone.statistic, alone.pvalue)


def test_simpsons_paradox_is_no_difference() -> None:
    """Rates depend on the stratum alone, and groups live in different strata."""
    rng = np.random.default_rng(4)
    group = rng.integers(3, size=3000)
    stratum = (rng.random(3000) < 0.2 + 0.3 * group).astype(int)
    y_pred = (rng.random(3000) < 0.2 + 0.6 * stratum).astype(int)
    data = {"y_true": y_pred, "y_pred": y_pred, "sensitive_features": group}
    assert run(data, "selection_rate", n_resamples=199).pvalue == 1 / 200
    within = run({**data, "control_features": stratum}, "selection_rate", n_resamples=199)
    assert within.pvalue > 0.01


def test_only_the_groups_asked_for_in_the_order_asked_for() -> None:
    data = confused()
    some = run(data, "accuracy", groups=("z", "v", "x"), n_resamples=99)
    kept = np.isin(data["sensitive_features"], ["z", "v", "x"])
    alone = run({name: column[kept] for name, column in data.items()}, "accuracy", n_resamples=99)
    assert some.groups == ("z", "v", "x")
    assert list(some.values) == ["z", "v", "x"]
    assert dict(some.values) == dict(alone.values)
    assert some.pvalue == alone.pvalue
    assert some.statistic == pytest.approx(alone.statistic)
    assert sum(one["rows"] for one in some.counts.values()) == kept.sum()


def test_a_difference_is_found() -> None:
    data = confused(600)
    rng = np.random.default_rng(5)
    worse = (data["sensitive_features"] == "y") & (rng.random(600) < 0.5)
    data["y_pred"] = np.where(worse, 1 - data["y_true"], data["y_pred"])
    for metric in ("accuracy", "true_positive_rate", "f1_score", "equalized_odds"):
        assert run(data, metric, n_resamples=199).pvalue == 1 / 200


def test_what_the_result_says() -> None:
    result = run(confused(), "false_negative_rate", n_resamples=99)
    text = repr(result)
    assert text.startswith("The 5 groups have false negative rates from ")
    assert "99 draws" in text
    assert "Exact for the weak null" in text
    assert result.pvalue_interval[0] <= result.pvalue <= result.pvalue_interval[1]
    joint = repr(run(confused(), "equalized_odds", n_resamples=9))
    assert "true_positive_rate 0." in joint
