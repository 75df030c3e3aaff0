"""Sweeps over thresholds against single tests, brute force over rows, and by definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ks_2samp

import fairperm
from fairperm._utils import streams
from fairperm.data.arguments import Alternative
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
from tests.support.simulations import at_most, between
from tests.support.sweeps import METRICS, every_assignment, scored, statistics, sweep

# The sample, against a single test at each threshold.


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("strata", [1, 3])
def test_gaps_are_those_of_single_tests(metric: str, strata: int) -> None:
    data = scored(400, strata=strata)
    thresholds = [0.3, 0.5, 0.62]
    options: dict[str, Any] = {"scheme": "pooled", "n_resamples": 19, "rng": 1}
    swept = sweep(data, metric, thresholds=thresholds, **options)
    for k, threshold in enumerate(thresholds):
        single = fairperm.permutation_test(**data, metric=metric, threshold=threshold, **options)
        assert swept.variance == single.variance
        assert {group: swept.values[group][k] for group in "ab"} == single.values
        if strata == 1:
            assert swept.difference[k] == single.difference
        # totals are the same integers, but cells and strata are added up in another order
        assert swept.difference[k] == pytest.approx(single.difference, abs=1e-14)
        assert swept.standard_error[k] == pytest.approx(single.standard_error, rel=1e-13)
        assert swept.statistic[k] == pytest.approx(single.statistic, abs=1e-12)


@pytest.mark.parametrize("variance", ["score", "wald", "delta", None])
@pytest.mark.parametrize("scheme", ["pooled", "within_label", "denominator"])
@pytest.mark.parametrize(
    ("n", "strata"),
    [
        (60, {}),
        (30, {"strata": 2}),
        (30, {"strata": 2, "weights": {0: 3, 1: 1}}),
    ],
    ids=["one", "two", "weighted"],
)
@pytest.mark.filterwarnings("ignore:The metric is undefined in")  # which a few draws should be
def test_pvalues_are_those_of_single_tests(
    scheme: str, variance: str | None, n: int, strata: dict[str, Any]
) -> None:
    weights = strata.get("weights")
    data = scored(n, seed=3, decimals=1, strata=strata.get("strata", 1))
    options: dict[str, Any] = {
        "metric": "false_positive_rate",
        "stratum_weights": weights,
        "scheme": scheme,
        "variance": variance,
        "n_resamples": 9999,
        "rng": 1,
    }
    # exact tests of rates compare sizes, where a sweep has two tails for all metrics
    alternative: Alternative = "two-sided" if scheme == "pooled" else "symmetric"
    swept = sweep(data, thresholds=[0.4, 0.6], alternative=alternative, **options)
    for k, threshold in enumerate([0.4, 0.6]):
        single = fairperm.permutation_test(
            **data, threshold=threshold, alternative=alternative, **options
        )
        assert single.exact
        assert swept.difference[k] == pytest.approx(single.difference, abs=1e-14)
        assert swept.statistic[k] == pytest.approx(single.statistic, abs=1e-12)
        tails = 2 if scheme == "pooled" else 1
        fewest, most = between(single.pvalue / tails, single.pvalue / tails, 9999)
        extreme = round(swept.pvalue[k] / tails * 10_000)
        assert extreme <= most + 1
        assert fewest + 1 <= extreme or swept.pvalue[k] == 1


# The p-values, against brute force over rows.


@pytest.mark.parametrize(
    ("metric", "variance", "within_label"),
    [
        ("true_positive_rate", "score", True),
        ("true_positive_rate", "score", False),
        ("false_negative_rate", None, False),
        ("true_negative_rate", "wald", True),
        ("selection_rate", "score", False),
        ("accuracy", "score", False),
        ("positive_predictive_value", "score", False),
        ("balanced_accuracy", "delta", True),
        ("f1_score", "delta", False),
    ],
)
def test_pvalues_are_those_of_every_assignment_of_rows(
    metric: str, variance: str | None, within_label: bool
) -> None:
    data = scored(12, seed=8, decimals=1)
    y_true, in_first = data["y_true"], data["sensitive_features"] == "a"
    scheme = "within_label" if within_label else "pooled"
    n = 4999
    options: dict[str, Any] = {"scheme": scheme, "variance": variance, "n_resamples": n}
    swept = sweep(data, metric, thresholds="scores", alternative="symmetric", **options)
    two_tailed = sweep(data, metric, thresholds="scores", **options)
    thresholds = np.unique(data["y_score"]).tolist()
    signed = statistics(data, metric, variance, in_first, thresholds)
    draws = np.array(
        [
            statistics(data, metric, variance, chosen, thresholds)
            for chosen in every_assignment(y_true, in_first, within_label=within_label)
        ]
    )
    observed, null = np.abs(signed), np.abs(draws)
    tested = ~np.isnan(swept.pvalue)
    assert tested.sum() >= 4
    assert (tested == ~np.isnan(observed) & (np.arange(len(thresholds)) > 0)).all()
    joint = tested & (np.isnan(null).mean(axis=0) <= 0.01)
    assert (swept.status[tested & ~joint] == "sparse").all()
    largest = null[:, joint].max(axis=1, initial=0)
    for k in np.flatnonzero(tested):
        share = float((~(null[:, k] < observed[k] - 1e-9)).mean())
        fewest, most = between(share, share, n)
        assert fewest + 1 <= round(swept.pvalue[k] * (n + 1)) <= most + 1
        above, below = (
            float((~(sign * draws[:, k] < sign * signed[k] - 1e-9)).mean()) for sign in (1, -1)
        )
        fewest, most = between(min(above, below), min(above, below), n)
        extreme = round(two_tailed.pvalue[k] / 2 * (n + 1))
        assert extreme <= most + 1
        assert fewest + 1 <= extreme or two_tailed.pvalue[k] == 1
        if joint[k]:
            share = float((~(largest < observed[k] - 1e-9)).mean())
            fewest, most = between(share, share, n)
            assert fewest + 1 <= round(swept.adjusted_pvalue[k] * (n + 1)) <= most + 1


def test_over_all_scores_the_unstudentized_test_is_that_of_kolmogorov_and_smirnov() -> None:
    n = 4999
    for seed in range(4):
        data = scored(150, seed)
        swept = sweep(
            data, thresholds="scores", variance=None, n_resamples=n, alternative="symmetric"
        )
        positive, in_first = data["y_true"] == 1, data["sensitive_features"] == "a"
        a, b = (data["y_score"][positive & side] for side in (in_first, ~in_first))
        known = ks_2samp(a, b, method="exact")
        assert np.abs(swept.difference).max() == pytest.approx(known.statistic)
        fewest, most = between(known.pvalue, known.pvalue, n)
        assert fewest + 1 <= round(swept.global_pvalue * (n + 1)) <= most + 1


@pytest.mark.parametrize("alternative", ["two-sided", "symmetric", "greater", "less"])
@pytest.mark.parametrize("metric", ["true_positive_rate", "balanced_accuracy"])
def test_results_are_those_of_the_same_draws_by_definition(
    metric: str, alternative: Alternative
) -> None:
    data = scored(80, seed=2, decimals=1)
    n, alpha = 199, 0.1
    variance = "score" if metric == "true_positive_rate" else "delta"
    swept = sweep(
        data,
        metric,
        thresholds="scores",
        scheme="within_label",
        variance=variance,
        n_resamples=n,
        alpha=alpha,
        alternative=alternative,
    )
    thresholds = np.unique(data["y_score"])
    in_first = data["sensitive_features"] == "a"
    flip = 1 if in_first.sum() < (~in_first).sum() else -1  # draws are of the smaller group
    draws = (
        flip
        * np.array(
            [
                statistics(data, metric, variance, chosen, thresholds.tolist())
                for chosen in _same_draws(data, thresholds, n)
            ]
        )[:, 1:]
    )
    observed = statistics(data, metric, variance, in_first, thresholds.tolist())[1:]
    some = swept.statistic[1:] != 0
    error = np.abs(swept.difference[1:][some] / swept.statistic[1:][some])
    sides: dict[str, list[Any]] = {
        "two-sided": [np.positive, np.negative],
        "symmetric": [np.abs],
        "greater": [np.positive],
        "less": [np.negative],
    }
    single, jointly = [], []
    for outwards in sides[alternative]:
        null, mine = outwards(draws), outwards(observed)
        single.append(((null >= mine - 1e-9).sum(axis=0) + 1) / (n + 1))
        # of 199 draws and the sample, the 195th is the 0.975 quantile
        quantile = np.sort(np.vstack([null, mine]), axis=0)[195 - 1]
        scale = 1.0 if alternative == "symmetric" else np.where(quantile > 0, quantile, 1.0)
        largest = (null / scale).max(axis=1)
        jointly.append(((largest[:, None] >= mine / scale - 1e-9).sum(axis=0) + 1) / (n + 1))
        # 20 are a tenth: the band is where the 20th largest draw lies, or the 10th of each tail
        most = -20 // len(sides[alternative])
        upper = outwards is not np.negative
        pointwise, simultaneous = (
            (band[1] if upper else -band[0])[1:][some]
            for band in (swept.pointwise_band, swept.simultaneous_band)
        )
        assert pointwise == pytest.approx(np.sort(null, axis=0)[most, some] * error)
        critical = (np.sort(largest)[most] * scale * np.ones(null.shape[1]))[some]
        assert simultaneous == pytest.approx(np.minimum(critical * error, 1.0))
    tails = len(single)
    expected = np.minimum(1, tails * np.min(single, axis=0))
    assert swept.pvalue[1:] == pytest.approx(expected)
    expected = np.minimum(1, tails * np.min(jointly, axis=0))
    assert swept.adjusted_pvalue[1:] == pytest.approx(expected)
    assert swept.global_pvalue == np.nanmin(swept.adjusted_pvalue)
    for band in (swept.pointwise_band, swept.simultaneous_band):
        one_sided = {"greater": (0, -1.0), "less": (1, 1.0)}.get(alternative)
        if one_sided is not None:
            assert (band[one_sided[0]][1:] == one_sided[1]).all()


def _same_draws(
    data: dict[str, Any], thresholds: NDArray[np.float64], n: int
) -> list[NDArray[np.bool_]]:
    """Return assignments of rows that have the counts which the sweep draws from its seed."""
    rng = streams.stream(1, streams.PERMUTATIONS)
    in_first = data["sensitive_features"] == "a"
    smaller = in_first if in_first.sum() < (~in_first).sum() else ~in_first
    chosen = np.zeros((n, len(in_first)), bool)
    for label in (0, 1):
        kinds = [
            np.flatnonzero((data["y_true"] == label) & (data["y_score"] == score))
            for score in thresholds
        ]
        size = int(smaller[data["y_true"] == label].sum())
        counts = rng.multivariate_hypergeometric([len(kind) for kind in kinds], size, n)
        for draw in range(n):
            for kind, count in zip(kinds, counts[draw], strict=True):
                chosen[draw, kind[:count]] = True
    return list(chosen)


@pytest.mark.parametrize("alternative", ["two-sided", "symmetric", "greater", "less"])
@pytest.mark.parametrize("variance", ["auto", "wald", None])
@pytest.mark.parametrize("metric", ["fnr", "selection_rate"])
def test_gaps_lie_outside_the_bands_just_where_pvalues_are_small(
    metric: str, variance: str | None, alternative: Alternative
) -> None:
    seen = set()
    options: dict[str, Any] = {"variance": variance, "alternative": alternative}
    for seed in range(8):
        curve = sweep(scored(150, seed), metric, n_resamples=99, alpha=0.1, **options)
        tested = ~np.isnan(curve.pvalue)
        for (lower, upper), p in (
            (curve.pointwise_band, curve.pvalue),
            (curve.simultaneous_band, curve.adjusted_pvalue),
        ):
            outside = (curve.difference < lower) | (curve.difference > upper)
            assert np.array_equal(outside[tested], p[tested] <= 0.1 + 1e-12)
            if alternative == "symmetric":
                assert np.array_equal(lower, -upper, equal_nan=True)
            seen |= set(outside[tested].tolist())
        assert (curve.adjusted_pvalue[tested] >= curve.pvalue[tested]).all()
    assert seen == {False, True}


def test_too_few_draws_for_the_level_have_bands_that_no_gap_can_leave() -> None:
    curve = sweep(scored(), n_resamples=9, alpha=0.05)
    assert set(curve.pointwise_band[1][~np.isnan(curve.pvalue)]) == {1.0}


# One set of draws for everything.


def test_metrics_share_their_draws() -> None:
    data = scored()
    names = ["true_positive_rate", "false_negative_rate", "balanced_accuracy"]
    together = threshold_sweep(**data, metric=names, rng=1, n_resamples=199)
    assert together.scheme == "within_label"
    for name in names:
        alone = sweep(data, name, scheme="within_label", n_resamples=199)
        assert np.array_equal(together.curves[name].pvalue, alone.pvalue, equal_nan=True)
    first, second = (together.curves[name] for name in names[:2])
    assert np.array_equal(first.adjusted_pvalue, second.adjusted_pvalue, equal_nan=True)


@pytest.mark.parametrize(
    ("metric", "scheme"),
    [
        (["tpr", "fpr"], "within_label"),
        (["tpr", "ppv"], "pooled"),
        ("f1", "pooled"),
        (("selection_rate", "accuracy"), "pooled"),
    ],
)
def test_one_scheme_suits_every_metric(metric: Any, scheme: str) -> None:
    result = threshold_sweep(**scored(), metric=metric, thresholds=5, n_resamples=9, rng=1)
    assert result.scheme == scheme


def test_validity_is_said_for_each_metric() -> None:
    result = threshold_sweep(
        **scored(), metric=["selection_rate", "tpr"], thresholds=5, n_resamples=9, rng=1
    )
    exact, asymptotic = (curve.validity for curve in result.curves.values())
    assert exact.startswith("Exact for the weak null (equal selection_rate")
    assert exact.endswith("The same holds for the simultaneous band.")
    assert asymptotic.startswith("Asymptotically valid for the weak null")
    assert "approximate" in asymptotic
    naive = sweep(scored(), thresholds=5, scheme="pooled", variance=None, n_resamples=9)
    assert "Not valid for the weak null" in naive.validity
    assert naive.validity.endswith("The same holds for the simultaneous band.")


def test_a_registered_metric_can_be_swept() -> None:
    fairperm.register_metric(
        "hit_share", contributions={"hit": lambda y_true, y_pred: y_true * y_pred}, kind="binary"
    )
    data = scored()
    curve = sweep(data, "hit_share", thresholds=[0.5], n_resamples=99)
    hits = (data["y_true"] == 1) & (data["y_score"] >= 0.5)
    assert curve.values["a"][0] == hits[data["sensitive_features"] == "a"].mean()


def test_the_joint_band_is_that_of_all_metrics() -> None:
    data, metrics = scored(400, seed=4), ["tpr", "fpr", "selection_rate"]
    options: dict[str, Any] = {"thresholds": 11, "n_resamples": 199, "rng": 1}
    together = threshold_sweep(**data, metric=metrics, scheme="pooled", **options).curves.values()
    for curve in together:
        tested = ~np.isnan(curve.adjusted_pvalue)
        assert (curve.joint_pvalue[tested] >= curve.adjusted_pvalue[tested]).all()
        lower, upper = curve.joint_band
        inside = (lower <= curve.difference) & (curve.difference <= upper)
        assert ((curve.joint_pvalue > 0.05) == inside)[tested].all()
        assert np.isnan(curve.joint_band[1]).tolist() == (~tested).tolist()
    ratios = [curve.joint_band[1] / curve.simultaneous_band[1] for curve in together]
    assert all(np.nanmin(ratio) >= 1 for ratio in ratios)
    (alone,) = threshold_sweep(**data, metric="tpr", scheme="pooled", **options).curves.values()
    for one, other in zip(alone.joint_band, alone.simultaneous_band, strict=True):
        assert np.array_equal(one, other, equal_nan=True)
    assert np.array_equal(alone.joint_pvalue, alone.adjusted_pvalue, equal_nan=True)


@pytest.mark.validate
def test_the_joint_band_is_left_as_seldom_as_it_says() -> None:
    """Three metrics, and no gap in any: some gap leaves a simultaneous band in 0.15 of samples."""
    samples, joint, simultaneous = 300, 0, 0
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        label = rng.integers(0, 2, 300)
        curves = threshold_sweep(
            label,
            rng.random(300) / 2 + label / 4,
            sensitive_features=np.arange(300) % 2,
            metric=["tpr", "fpr", "ppv"],
            thresholds=np.linspace(0.3, 0.6, 5),
            n_resamples=199,
            rng=seed,
        ).curves.values()
        joint += any((curve.joint_pvalue <= 0.05).any() for curve in curves)
        simultaneous += any((curve.adjusted_pvalue <= 0.05).any() for curve in curves)
    assert joint <= at_most(0.05, samples)
    assert simultaneous > at_most(0.05, samples)
