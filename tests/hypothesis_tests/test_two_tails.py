"""Two-sided tests by twice the smaller tail: scipy's, their level and power.

The settings were fixed beforehand; those of the first table are from section 2.7 of the design.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import fairperm
from fairperm.data.arguments import Alternative
from fairperm.inference.null import Null, pvalue
from studies import simulate
from tests.support.simulations import at_least, at_most

LEVEL = 0.05
Population = simulate.Scores | simulate.Regression | simulate.Rates


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_unstudentized_pvalues_are_scipys(alternative: Alternative) -> None:
    """Its two-sided p-value is twice the smaller one-sided one, over all permutations."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        first, second = rng.exponential(size=3), rng.exponential(size=6)
        error = np.concatenate([first, second])
        known = stats.permutation_test(
            (first, second),
            lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
            vectorized=True,
            n_resamples=np.inf,
            alternative=alternative,
        )
        result = fairperm.permutation_test(
            np.zeros(9),
            error,
            sensitive_features=np.repeat(["a", "b"], [3, 6]),
            metric="mean_error",
            variance=None,
            alternative=alternative,
        )
        assert result.exact
        assert result.pvalue == pytest.approx(known.pvalue, rel=1e-9)


# -- Level and power -----------------------------------------------------------------------------


def pvalues(
    population: Population, metric: str, n: int, n_resamples: int, **options: Any
) -> NDArray[np.float64]:
    """Return the two-sided and the symmetric p-value of every data set."""
    rng = np.random.default_rng(2027)
    found = np.empty((n, 2))
    for seed in range(n):
        columns: dict[str, Any] = {**population.draw(rng)}
        group = columns.pop("group")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fairperm.FairpermWarning)  # of few rows
            result = fairperm.permutation_test(
                **columns,
                sensitive_features=group,
                metric=metric,
                n_resamples=n_resamples,
                rng=seed,
                progress=False,
                **options,
            )
        assert result.ordering == "two-sided"
        log_probability = None
        if result.null_probabilities is not None:
            with np.errstate(divide="ignore"):
                log_probability = np.log(result.null_probabilities)
        null = Null(result.null_distribution, log_probability)
        symmetric = pvalue(null, result.statistic, "symmetric", 1e-12, 0.95)
        found[seed] = result.pvalue, symmetric.value
    return found


def auc(n: tuple[int, int], values: tuple[float, float], **more: Any) -> Population:
    return simulate.Scores(n, more.pop("base_rate", (0.5, 0.5)), auc=values, **more)


def errors(n: tuple[int, int], ratio: float, *kurtosis: float) -> Population:
    shapes = (kurtosis[0], kurtosis[-1]) if kurtosis else (3.0, 3.0)
    return simulate.Regression(n, mean_squared_error=(ratio, 1.0), kurtosis=shapes)


def rates(
    n: tuple[int, int], right: tuple[float, float], base_rate: tuple[float, float] = (0.5, 0.5)
) -> Population:
    return simulate.Rates(n, base_rate, true_positive_rate=right, true_negative_rate=right)


# What the test must find in one group, the small one first; the symmetric test misses the worse.
# Balanced accuracy within labels is not among them: draws without their skewness have equal tails.
WORSE: dict[str, tuple[Population, str]] = {
    "AUC 60/600, 0.69 v 0.87": (auc((60, 600), (0.69, 0.87)), "roc_auc"),
    "AUC 200/2000, 0.72 v 0.80": (auc((200, 2000), (0.72, 0.80)), "roc_auc"),
    "MSE 30/300, twice": (errors((30, 300), 2.0), "mean_squared_error"),
    "MSE 200/2000, 1.5 times, kurtosis 6": (errors((200, 2000), 1.5, 6.0), "mean_squared_error"),
}
BETTER: dict[str, tuple[Population, str]] = {
    "AUC 60/600, 0.95 v 0.83": (auc((60, 600), (0.95, 0.83)), "roc_auc"),
    "AUC 200/2000, 0.88 v 0.80": (auc((200, 2000), (0.88, 0.80)), "roc_auc"),
    "MSE 30/300, half": (errors((30, 300), 0.5), "mean_squared_error"),
    "MSE 200/2000, 0.67 times, kurtosis 6": (errors((200, 2000), 0.67, 6.0), "mean_squared_error"),
    "balanced accuracy 80/800, 0.92 v 0.82": (
        rates((80, 800), (0.92, 0.82)),
        "balanced_accuracy",
    ),
}
DESIGN: dict[str, tuple[Population, str]] = {
    "AUC 200/200, base rates 0.8 and 0.2": (
        auc((200, 200), (0.85, 0.85), base_rate=(0.8, 0.2)),
        "roc_auc",
    ),
    "AUC 60/600": (auc((60, 600), (0.85, 0.85)), "roc_auc"),
    "AUC 30/300, spreads 3 and 1": (
        auc((30, 300), (0.85, 0.85), spread=(3.0, 1.0)),
        "roc_auc",
    ),
    "MSE 30/300": (errors((30, 300), 1.0), "mean_squared_error"),
    "MSE 200/2000, kurtosis 3 and 9": (errors((200, 2000), 1.0, 3.0, 9.0), "mean_squared_error"),
    "balanced accuracy 80/800, base rates 0.2 and 0.8": (
        rates((80, 800), (0.82, 0.82), (0.2, 0.8)),
        "balanced_accuracy",
    ),
}
LIBERAL: dict[str, tuple[Population, str]] = {  # named in docs/dev/levels.md
    "MSE 200/2000, kurtosis 9 and 3": (errors((200, 2000), 1.0, 9.0, 3.0), "mean_squared_error"),
}
OWN: dict[str, tuple[Population, str]] = {
    "AUC 40/400, 0.8": (auc((40, 400), (0.8, 0.8)), "roc_auc"),
    "AUC 100/100, base rates 0.3 and 0.7": (
        auc((100, 100), (0.75, 0.75), base_rate=(0.3, 0.7)),
        "roc_auc",
    ),
    "AUC 300/100, 0.65": (auc((300, 100), (0.65, 0.65)), "roc_auc"),
    "AUC 100/500, spreads 1 and 2": (
        auc((100, 500), (0.8, 0.8), spread=(1.0, 2.0)),
        "roc_auc",
    ),
    "MSE 50/500": (errors((50, 500), 1.0), "mean_squared_error"),
    "MSE 100/100, kurtosis 4 and 3": (errors((100, 100), 1.0, 4.0, 3.0), "mean_squared_error"),
    "MSE 400/100, kurtosis 6": (errors((400, 100), 1.0, 6.0), "mean_squared_error"),
    "MAE 40/400": (errors((40, 400), 1.0), "mean_absolute_error"),
    "mean error 30/300": (errors((30, 300), 3.0), "mean_error"),
    "balanced accuracy 60/600, base rates 0.3 and 0.6": (
        rates((60, 600), (0.8, 0.8), (0.3, 0.6)),
        "balanced_accuracy",
    ),
    "Matthews 100/400": (rates((100, 400), (0.8, 0.8)), "matthews_corrcoef"),
    "F1 120/360": (rates((120, 360), (0.8, 0.8)), "f1_score"),
}


def rejections(setting: tuple[Population, str], n: int, n_resamples: int) -> tuple[int, int]:
    """Count the data sets in which the two-sided and the symmetric test reject."""
    population, metric = setting
    options = {"scheme": "pooled"} if metric == "f1_score" else {}  # by default exact
    two_sided, symmetric = (pvalues(population, metric, n, n_resamples, **options) <= LEVEL).T
    return int(two_sided.sum()), int(symmetric.sum())


@pytest.mark.validate
@pytest.mark.parametrize("setting", WORSE.values(), ids=WORSE)
def test_a_small_group_that_does_worse_is_found_more_often(setting: Any) -> None:
    """By 0.05 of the data sets at least; 1,500 of each setting are in docs/method.md."""
    n = 300
    two_sided, symmetric = rejections(setting, n, 499)
    assert two_sided - symmetric >= at_least(0.05, n)


@pytest.mark.validate
@pytest.mark.parametrize("setting", BETTER.values(), ids=BETTER)
def test_a_small_group_that_does_better_is_found_a_little_less_often(setting: Any) -> None:
    n = 200
    two_sided, symmetric = rejections(setting, n, 499)
    assert symmetric - two_sided <= at_most(0.15, n)


@pytest.mark.validate
@pytest.mark.parametrize("setting", (DESIGN | OWN).values(), ids=DESIGN | OWN)
def test_twice_the_smaller_tail_holds_its_level(setting: Any) -> None:
    n = 600
    assert rejections(setting, n, 319)[0] <= at_most(LEVEL, n)


@pytest.mark.validate
@pytest.mark.parametrize("setting", LIBERAL.values(), ids=LIBERAL)
def test_where_the_level_is_liberal_it_is_not_more_so_than_by_size(setting: Any) -> None:
    n = 600
    two_sided, symmetric = rejections(setting, n, 319)
    assert two_sided <= at_most(0.07, n)
    assert two_sided <= symmetric + at_most(0.01, n)
