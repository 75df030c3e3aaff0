"""The test of many groups: against Pearson's chi-square, two groups, and every arrangement."""

from __future__ import annotations

import itertools
import math
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import fairperm
from callables import accuracy, plain_accuracy
from fairperm import FairpermWarning, InputError, InputTypeError, UndefinedMetricError, omnibus_test
from helpers import RATES
from refusals import GOOD, Refusal, check_wording, each
from test_engines import delong, mean_squared_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TIE = 1e-9
SURE = 1e-4  # of a comparison of Monte Carlo numbers: how seldom a right one fails


def run(data: dict[str, Any], metric: Any, **options: Any) -> fairperm.OmnibusTestResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)  # of small groups and undefined draws
        return omnibus_test(**data, **{"metric": metric, "rng": 1, "progress": False, **options})


def run_two(data: dict[str, Any], metric: Any, **options: Any) -> fairperm.PermutationTestResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        options = {"metric": metric, "rng": 1, "progress": False, **options}
        return fairperm.permutation_test(**data, **options)


def confused(n: int = 600, groups: int = 5, seed: int = 1) -> dict[str, Any]:
    """Return labels and predictions of groups with unequal sizes and base rates."""
    rng = np.random.default_rng(seed)
    chance = np.arange(1, groups + 1) / np.arange(1, groups + 1).sum()
    group = rng.choice(groups, n, p=chance)
    y = rng.random(n) < 0.2 + 0.6 * group / groups
    return {
        "y_true": y.astype(int),
        "y_pred": (rng.random(n) < np.where(y, 0.75, 0.3)).astype(int),
        "sensitive_features": np.array(list("vwxyz"))[group],
    }


def scored(n: int = 300, groups: int = 3, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return {
        "y_true": y,
        "y_score": rng.normal(y),
        "sensitive_features": rng.integers(groups, size=n),
    }


def numbers(n: int = 300, groups: int = 3, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    pred = y + rng.normal(size=n)
    return {"y_true": y, "y_pred": pred, "sensitive_features": rng.integers(groups, size=n)}


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


TWO = [
    ("selection_rate", {}),
    ("true_positive_rate", {"scheme": "pooled"}),
    ("true_positive_rate", {"scheme": "pooled", "variance": "wald"}),
    ("true_positive_rate", {"scheme": "pooled", "variance": "delta"}),
    ("f1_score", {}),
    ("equalized_odds", {}),
    ("balanced_accuracy", {"scheme": "within_label"}),
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
        ("mean_score", scored(groups=2), {}),
        ("mean_squared_error", numbers(groups=2), {}),
        ("r2_score", numbers(groups=2), {}),
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


def agree(ours: Any, theirs: Any, rel: float = 1e-9) -> None:
    """Compare statistics and errors exactly, p-values as samples of one binomial."""
    assert ours.statistic == pytest.approx(theirs.statistic**2, rel=rel)
    assert ours.values == theirs.values or ours.values == pytest.approx(theirs.values, rel=1e-12)
    for group in ours.groups:
        assert ours.standard_errors[group] == pytest.approx(theirs.standard_errors[group], rel=1e-9)
    same_pvalue(ours, theirs)


def same_pvalue(ours: Any, theirs: Any) -> None:
    extremes = round(ours.pvalue * (ours.n_resamples + 1)) - 1
    if getattr(theirs, "exact", False):
        assert stats.binomtest(extremes, ours.n_resamples, theirs.pvalue).pvalue > SURE
        return
    others = round(theirs.pvalue * (theirs.n_resamples + 1)) - 1
    table = [[extremes, ours.n_resamples - extremes], [others, theirs.n_resamples - others]]
    assert stats.fisher_exact(table).pvalue > SURE


# -- Bootstrapped variances -----------------------------------------------------------------------


def test_fast_bootstrap_of_two_groups_is_the_gap_tests() -> None:
    """Permuted gaps are over the deviation of the gaps: groups vary less by themselves.

    3,999 draws know a variance to 2.2 %, so that two statistics differ by less than five times √2
    of that; p-values of about 0.1 by as much of their slope, and five errors of 0.0067.
    """
    data = scored(400, groups=2, seed=11)
    data["y_score"] += 0.25 * data["y_true"] * (data["sensitive_features"] == 0)
    options: dict[str, Any] = {"variance": "fast_bootstrap", "n_resamples": 3999}
    ours, theirs = run(data, "roc_auc", **options), run_two(data, "roc_auc", **options)
    rel = 5 * math.sqrt(2) * 0.022
    assert ours.statistic == pytest.approx(theirs.statistic**2, rel=rel)
    slope = stats.chi2.pdf(theirs.statistic**2, 1) * theirs.statistic**2
    assert ours.pvalue == pytest.approx(theirs.pvalue, abs=rel * slope + 5 * 0.0067)
    assert 0.02 < theirs.pvalue < 0.3  # where twice the statistic would be seen
    null = stats.ks_2samp(ours.null_distribution, theirs.null_distribution**2)
    assert null.pvalue > SURE


@pytest.mark.parametrize("metric", ["roc_auc", "brier_score"])
def test_fast_bootstrap_is_on_the_scale_of_closed_forms(metric: str) -> None:
    """With the wrong scale (a group's own permuted variance), draws would be a third too large."""
    data = scored(900, groups=3, seed=3)
    if metric == "brier_score":
        data["y_score"] = 1 / (1 + np.exp(-data["y_score"]))
    closed = run(data, metric, n_resamples=1999)
    fast = run(data, metric, variance="fast_bootstrap", n_resamples=1999)
    # 1,999 draws know a variance to 3.2 %; a bootstrap of 300 rows is 1/300 too small
    assert fast.statistic == pytest.approx(closed.statistic, rel=5 * 0.032 + 0.01)
    means = [one.null_distribution.mean() for one in (closed, fast)]
    assert means == pytest.approx([2, 2], abs=5 * 2 / math.sqrt(2000))  # of chi-square on 2


def test_functions_are_tested_as_the_metrics_that_they_compute() -> None:
    data = confused(400, groups=3)
    options: dict[str, Any] = {"variance": "fast_bootstrap", "n_resamples": 499}
    built_in = run(data, "accuracy", scheme="pooled", **options)
    for function in (accuracy, plain_accuracy):
        ours = run(data, function, n_resamples=499)
        assert ours.variance == "fast_bootstrap"
        assert ours.values == pytest.approx(built_in.values)
        # variances of 499 draws are known to 6.3 %: two of them, five deviations
        assert ours.statistic == pytest.approx(built_in.statistic, rel=5 * 0.09)
        null = stats.ks_2samp(np.round(ours.null_distribution, 9), built_in.null_distribution)
        assert null.pvalue > SURE


def test_functions_without_studentizing() -> None:
    data = confused(300, groups=3)
    ours = run(data, accuracy, variance=None, n_resamples=299)
    theirs = run(data, "accuracy", scheme="pooled", variance=None, n_resamples=999)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-10)
    for group in ours.groups:
        errors = ours.standard_errors[group], theirs.standard_errors[group]
        assert errors[0] == pytest.approx(errors[1], rel=5 / math.sqrt(2 * 299))
    same_pvalue(ours, theirs)


def test_functions_in_strata_without_studentizing() -> None:
    data = {**confused(300, groups=3), "control_features": np.arange(300) % 2}
    ours = run(data, accuracy, variance=None, n_resamples=199)
    theirs = run(data, "accuracy", scheme="pooled", variance=None, n_resamples=999)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-10)
    same_pvalue(ours, theirs)


def test_a_group_whose_bootstrap_does_not_vary_is_refused() -> None:
    """It would outweigh all others, and make any difference among them significant."""
    data = confused(200, groups=3)
    data["y_pred"] = np.where(
        data["sensitive_features"] == "v", data["y_true"], data["y_pred"]
    )  # all right in one group
    with pytest.raises(UndefinedMetricError, match="is defined, and not zero, in every group"):
        run(data, accuracy, n_resamples=49)
    with pytest.raises(UndefinedMetricError, match="is defined, and not zero, in every group"):
        run(data, "accuracy", variance="fast_bootstrap", n_resamples=49)


def test_no_variance_and_no_differences() -> None:
    data = {**confused(60, groups=3), "y_pred": np.ones(60, int)}
    for options in ({}, {"variance": "wald"}, {"variance": "fast_bootstrap"}, {"variance": None}):
        result = run(data, "selection_rate", n_resamples=49, **options)
        assert (result.statistic, result.pvalue) == (0, 1)
    assert run(data, accuracy_of_ones, n_resamples=49).pvalue == 1


def accuracy_of_ones(y_true: Any, y_pred: Any) -> float:
    return 1.0 + 0 * float(np.sum(y_true) + np.sum(y_pred))


# -- Every arrangement of few rows ----------------------------------------------------------------


def arrangements(group: NDArray[np.int64], block: NDArray[np.int64]) -> Iterator[Any]:
    """Yield every assignment to groups that keeps their numbers in each block, and how often."""
    ways = []
    for one in np.unique(block):
        members = np.flatnonzero(block == one)
        ways.append([(members, labels) for labels in _distinct(tuple(sorted(group[members])))])
    for chosen in itertools.product(*ways):
        assigned = np.empty(len(group), np.int64)
        for members, labels in chosen:
            assigned[members] = labels
        yield assigned


@cache
def _distinct(labels: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the distinct orders of labels."""
    if not labels:
        return [()]
    found = []
    for first in sorted(set(labels)):
        left = list(labels)
        left.remove(first)
        found += [(first, *others) for others in _distinct(tuple(left))]
    return found


def statistic_of(
    estimate: Callable[[bytes], tuple[float, float]], matters: NDArray[np.bool_], assigned: Any
) -> float:
    """Return the sum of squared deviations over variances, which no group is without.

    A group that shows none is given that of all rows, for its number of rows that matter.
    """
    members = [assigned == g for g in range(assigned.max() + 1)]
    values, variances = np.array([estimate(one.tobytes()) for one in members]).T
    if np.isnan(values + variances).any():
        return math.nan
    sizes = np.array([matters[one].sum() for one in members])
    of_all = estimate(np.ones(len(assigned), bool).tobytes())[1]
    variances = np.where(variances < 1e-14, of_all * matters.sum() / sizes, variances)
    mean = (values / variances).sum() / (1 / variances).sum()
    return float(((values - mean) ** 2 / variances).sum())


def true_positive_rate(y: Array, x: Array) -> tuple[float, float]:
    m = (y == 1).sum()
    if m == 0:
        return math.nan, math.nan
    p = x[y == 1].mean()
    return float(p), float(p * (1 - p) / m)


SMALL: list[tuple[str, str, str, Any]] = [
    ("true_positive_rate", "pooled", "wald", true_positive_rate),
    ("true_positive_rate", "within_label", "wald", true_positive_rate),
    ("roc_auc", "pooled", "delong", delong),
    ("roc_auc", "within_label", "delong", delong),
    ("mean_squared_error", "pooled", "delta", mean_squared_error),
]


def few_rows(metric: str, ties: bool) -> tuple[Any, ...]:
    rng = np.random.default_rng([len(metric), ties])
    group = np.repeat([0, 1, 2], [2, 3, 4] if metric != "roc_auc" else [4, 4, 4])
    n = len(group)
    y = np.tile([1.0, 0.0], n)[:n]
    if metric == "true_positive_rate":
        y, x = (rng.random(n) < 0.7).astype(float), rng.integers(0, 2, n).astype(float)
        y[[0, 2, 5]] = 1
    elif ties:
        x = rng.integers(0, 4, n) / 4
    else:
        x = rng.random(n)
    return group, y, x


@pytest.mark.parametrize("ties", [False, True], ids=["unlike", "ties"])
@pytest.mark.parametrize(("metric", "scheme", "variance", "oracle"), SMALL)
def test_every_arrangement_of_few_rows(
    metric: str, scheme: str, variance: str, oracle: Any, ties: bool
) -> None:
    group, y, x = few_rows(metric, ties)
    block = y.astype(np.int64) if scheme == "within_label" else np.zeros(len(y), np.int64)

    @cache
    def estimate(members: bytes) -> tuple[float, float]:
        chosen = np.frombuffer(members, bool)
        found: tuple[float, float] = oracle(y[chosen], x[chosen])
        return found

    matters = y == 1 if metric == "true_positive_rate" else np.ones(len(y), bool)
    observed = statistic_of(estimate, matters, group)
    null = np.array([statistic_of(estimate, matters, one) for one in arrangements(group, block)])
    extreme = np.isnan(null) | (null >= observed - TIE)
    column = "y_score" if metric == "roc_auc" else "y_pred"
    data = {"y_true": y, column: x, "sensitive_features": group}
    n = 9999
    result = run(data, metric, scheme=scheme, variance=variance, n_resamples=n)
    assert result.statistic == pytest.approx(observed, rel=1e-9)
    extremes = round(result.pvalue * (n + 1)) - 1
    assert stats.binomtest(extremes, n, float(extreme.mean())).pvalue > SURE
    share = float(np.isnan(null).mean())
    assert stats.binomtest(result.n_undefined, n, share).pvalue > SURE


def test_un_studentized_and_score_statistics_of_few_rows() -> None:
    group = np.repeat([0, 1, 2], [2, 3, 4])
    x = np.array([1, 1, 0, 1, 0, 0, 0, 1, 0])
    every = list(arrangements(group, np.zeros(9, np.int64)))
    sizes = np.array([2, 3, 4])
    means = np.array([[x[one == g].mean() for g in range(3)] for one in every])
    plain = (sizes * (means - x.mean()) ** 2).sum(axis=1)
    observed = (sizes * ([x[group == g].mean() for g in range(3)] - x.mean()) ** 2).sum()
    data = {"y_true": np.ones(9), "y_pred": x, "sensitive_features": group}
    exact = float((plain >= observed - TIE).mean())
    for variance, scale in ((None, 1), ("score", x.mean() * (1 - x.mean()))):
        result = run(data, "selection_rate", variance=variance, n_resamples=9999)
        assert result.statistic == pytest.approx(observed / scale)
        extremes = round(result.pvalue * 10_000) - 1
        assert stats.binomtest(extremes, 9999, exact).pvalue > SURE


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_ties_are_seen_through_the_rounding_of_large_values(offset: float) -> None:
    """Three pairs far apart: of 90 arrangements the 6 that keep them are extreme."""
    x = np.array([0.13, 0.32, 0.71, 0.92, 1.53, 1.74]) + offset
    data = {"y_true": x, "y_pred": x, "sensitive_features": list("aabbcc")}
    result = run(data, "mean_prediction", n_resamples=9999)
    extremes = round(result.pvalue * 10_000) - 1
    assert stats.binomtest(extremes, 9999, 6 / 90).pvalue > SURE


# -- Undefined ------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", ["score", "wald", None])
def test_undefined_permutations_are_extreme_and_noted(variance: str | None) -> None:
    y = np.zeros(60, int)
    y[[0, 1, 20, 21, 40, 41, 42]] = 1
    rng = np.random.default_rng(0)
    data: dict[str, Any] = {
        "y_true": y,
        "y_pred": rng.integers(2, size=60),
        "sensitive_features": np.repeat([0, 1, 2], 20),
    }
    with pytest.warns(FairpermWarning, match="The metric is undefined in"):
        result = omnibus_test(
            **data,
            metric="true_positive_rate",
            scheme="pooled",
            variance=variance,
            n_resamples=999,
            rng=1,
        )
    null = result.null_distribution
    assert result.n_undefined == np.isnan(null).sum() > 10
    at_least = np.isnan(null) | (null >= result.statistic - TIE)
    assert result.pvalue == (at_least.sum() + 1) / 1000
    # a group has no positives: 40 of 60 rows have all seven, less where two groups have none
    some = 3 * math.comb(40, 7) - 3 * math.comb(20, 7)
    assert stats.binomtest(result.n_undefined, 999, some / math.comb(60, 7)).pvalue > SURE


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
    """By hand: weights 1/(1/m + 1/m′ + …), score variances within strata."""
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
    variance = (share**2 * p * (1 - p) / m).sum(axis=0)
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
    assert one.statistic == pytest.approx(alone.statistic)


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
    assert text.startswith("OmnibusTestResult: false_negative_rate in 5 groups\n")
    assert "99 draws" in text
    assert "Exact for the weak null" in text
    assert result.pvalue_interval[0] <= result.pvalue <= result.pvalue_interval[1]
    joint = repr(run(confused(), "equalized_odds", n_resamples=9))
    assert "true_positive_rate 0." in joint


# -- Refusals -------------------------------------------------------------------------------------


def numbers_of_rows(y_true: Any, y_pred: Any) -> float:
    return float(len(y_true))


THREE: dict[str, Any] = {
    **GOOD,
    "y_true": [1, 1, 0, 0] * 3,
    "y_pred": [1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1],
    "sensitive_features": list("aaaabbbbcccc"),
}


def refused(name: str, says: str, error: type[Any] = InputError, **changes: Any) -> Refusal:
    return Refusal(name, says, {**THREE, **changes}, error, omnibus_test)


AUC: dict[str, Any] = {"metric": "roc_auc", "y_pred": None, "y_score": np.linspace(0, 1, 12)}
REFUSALS = [
    refused("one group", "sensitive_features has 1 group ('a')", sensitive_features=["a"] * 12),
    refused("an unknown group", "groups must be made of groups in", groups=("a", "x")),
    refused("one group asked for", "groups must be two or more different groups", groups=["a"]),
    refused("a group twice", "groups must be two or more different", groups=["a", "b", "a"]),
    refused("a text as groups", "groups must be two or more different groups", groups="ab"),
    refused(
        "more groups than a byte can tell",
        "sensitive_features must be made of at most 254 groups to permute together; got 300",
        y_true=[0, 1] * 300,
        y_pred=[0, 1] * 300,
        sensitive_features=np.repeat(np.arange(300), 2),
    ),
    refused("a nested bootstrap", "variance must be another for many", variance="bootstrap"),
    refused("an unknown variance", "variance must be one of", variance="jackknife"),
    refused("a variance for ranks", "variance must be 'auto' or one of", variance="delong"),
    refused("a scheme by label", "scheme must be", scheme="within_label", metric="accuracy"),
    refused("an unknown scheme", "scheme must be one of", scheme="paired"),
    refused(
        "weights of ranks", "sample_weight must be left out for", **AUC, sample_weight=np.ones(12)
    ),
    refused("clusters of ranks", "cluster must be left out for", **AUC, cluster=np.arange(12)),
    refused(
        "strata of a bootstrapped variance",
        "control_features must be left out for",
        metric=accuracy,
        control_features=[0, 1] * 6,
    ),
    refused(
        "a metric without a value",
        "metric must be defined in every group; got false_negative_rate of group 'c'",
        UndefinedMetricError,
        y_true=[1, 1, 0, 0] * 2 + [0] * 4,
    ),
    refused(
        "too few for an error",
        "variance must be one whose standard error of roc_auc is defined",
        UndefinedMetricError,
        **{**AUC, "y_true": [1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0]},
    ),
    refused(
        "strata with rows of only some",
        "control_features must have a stratum with rows of every group",
        UndefinedMetricError,
        control_features=list("xxxxxxxxyyyy"),
    ),
    refused("no resamples", "n_resamples must be", n_resamples=0),
    refused("a level of one", "confidence_level must be", confidence_level=1),
    refused("an unknown metric", "metric must be", metric="fnrr"),
    refused("no metric", "metric must be", InputTypeError, metric=7),
    refused("a seed that is none", "rng must be", InputTypeError, rng="one"),
    refused("labels of another length", "y_pred", y_pred=[1, 0]),
]


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)
