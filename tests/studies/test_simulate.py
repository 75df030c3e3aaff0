"""Populations against their truths: exact ones by other formulas, drawn ones by large samples.

Bounds of drawn means are four standard errors (a right generator misses one in 16,000).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

import fairperm
from studies import simulate
from studies.simulate import Clusters, Correlation, Rates, Regression, Scores

MANY = 200_000


def within(values: NDArray[Any], truth: float) -> bool:
    """Tell whether the mean of independent values is within four standard errors of the truth."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    return bool(abs(np.mean(values) - truth) <= 4 * error)


def by_group(data: dict[str, NDArray[Any]], values: NDArray[Any]) -> list[NDArray[Any]]:
    return [values[data["group"] == group] for group in ("a", "b")]


# Rates.

UNEQUAL = Rates((MANY, MANY), (0.8, 0.2), (0.9, 0.7), (0.6, 0.95))


def test_true_rates_are_those_of_bayes_formula() -> None:
    assert UNEQUAL.truth("false_negative_rate") == {"a": 0.1, "b": 0.3}
    assert UNEQUAL.truth("selection_rate") == pytest.approx({"a": 0.8, "b": 0.18})
    precision = {"a": 0.72 / 0.80, "b": 0.14 / 0.18}
    assert UNEQUAL.truth("precision") == pytest.approx(precision)
    f1 = {"a": 2 * 0.9 * 0.9 / 1.8, "b": 2 * 0.7 * 0.14 / (0.7 * 0.18 + 0.14)}
    assert UNEQUAL.truth("f1_score") == pytest.approx(f1)


@pytest.mark.parametrize("metric", ["fnr", "fpr", "selection_rate", "precision", "accuracy"])
def test_drawn_rates_come_to_the_true_ones(metric: str) -> None:
    data = UNEQUAL.draw(1)
    y_true, y_pred = data["y_true"], data["y_pred"]
    everyone = np.ones_like(y_true)
    among, counted = {
        "fnr": (y_true, ~y_pred),
        "fpr": (~y_true, y_pred),
        "selection_rate": (everyone, y_pred),
        "precision": (y_pred, y_true),
        "accuracy": (everyone, y_true == y_pred),
    }[metric]
    truths = UNEQUAL.truth(metric).values()
    cases = zip(by_group(data, counted), by_group(data, among), truths, strict=True)
    for rows, of_denominator, truth in cases:
        assert within(rows[of_denominator], truth)


def test_counts_are_those_of_many_data_sets() -> None:
    population = Rates((50, 30), (0.8, 0.2))
    counts = population.counts(4000, 2)
    assert counts.shape == (4000, 2, 4)
    np.testing.assert_array_equal(counts.sum(axis=2), [[50, 30]] * 4000)
    for group, cell in np.ndindex(2, 4):
        n, p = population.n[group], float(population.cells()[group, cell])
        drawn = counts[:, group, cell]
        assert within(drawn, n * p)
        assert within((drawn - n * p) ** 2, n * p * (1 - p))


def test_the_papers_setting_is_a_weak_null_and_not_a_strong_one() -> None:
    first, second = simulate.PAPER_FNR.truth("fnr").values()
    assert first == second == 0.1
    assert simulate.PAPER_FNR.truth("selection_rate") == {"a": 0.74, "b": 0.26}


# Scores.

SPREAD = Scores((1000, 3000), (0.3, 0.5), (0.85, 0.7), (3.0, 0.5))


@pytest.mark.parametrize("group", [0, 1])
def test_shift_gives_the_auc(group: int) -> None:
    positive = stats.norm(SPREAD.shift[group], SPREAD.spread[group])
    auc, _ = integrate.quad(lambda s: positive.pdf(s) * stats.norm.cdf(s), -30, 30, limit=200)
    assert auc == pytest.approx(SPREAD.auc[group], abs=1e-9)


def test_drawn_aucs_come_to_the_true_ones() -> None:
    gaps: dict[str, list[float]] = {"a": [], "b": []}
    rng = np.random.default_rng(3)
    for _ in range(100):
        data = SPREAD.draw(rng)
        result = fairperm.permutation_test(
            "y_true",
            y_score="y_score",
            sensitive_features="group",
            metric="roc_auc",
            data=data,
            n_resamples=1,
            rng=0,
        )
        for group, value in result.values.items():
            gaps[str(group)].append(value)
    for group, truth in SPREAD.truth().items():
        assert within(np.array(gaps[group]), truth)


def test_scores_at_a_threshold_have_the_rates_of_that_population() -> None:
    population = Scores((MANY, MANY), (0.3, 0.5), (0.85, 0.7), (3.0, 0.5))
    data = population.draw(4)
    predicted = data["y_score"] >= 0.8
    truths = population.at(0.8)
    for label, metric in ((True, "recall"), (False, "fpr")):
        for drawn, labels, truth in zip(
            by_group(data, predicted),
            by_group(data, data["y_true"]),
            truths.truth(metric).values(),
            strict=True,
        ):
            assert within(drawn[labels == label], truth)


# Regression.

HEAVY = Regression((MANY, MANY), (2.0, 0.5), (3.0, 9.0))


def test_drawn_errors_have_the_moments_that_were_asked_for() -> None:
    data = HEAVY.draw(5)
    errors = by_group(data, data["y_pred"] - data["y_true"])
    absolute = HEAVY.truth("mae").values()
    cases = zip(errors, HEAVY.mean_squared_error, HEAVY.kurtosis, absolute, strict=True)
    for error, mse, kurtosis, mae in cases:
        assert within(error, 0)
        assert within(error**2, mse)
        assert within(error**4, kurtosis * mse**2)
        assert within(np.abs(error), mae)


def test_errors_of_kurtosis_three_are_normal() -> None:
    data = Regression((20_000, 10), (2.0, 1.0)).draw(6)
    error = (data["y_pred"] - data["y_true"])[data["group"] == "a"]
    assert stats.kstest(error, stats.norm(scale=math.sqrt(2)).cdf).pvalue > 1e-4


def test_root_of_the_mean_squared_error() -> None:
    assert HEAVY.truth("rmse") == pytest.approx({"a": math.sqrt(2), "b": math.sqrt(0.5)})


# Clusters.


def test_rows_of_a_cluster_are_correlated_as_asked() -> None:
    population = Clusters((20_000, 20_000), 4, (0.3, 0.6), 0.25)
    data = population.draw(7)
    np.testing.assert_array_equal(np.bincount(data["cluster"]), 4)
    for rows, rate in zip(by_group(data, data["y_pred"]), (0.3, 0.6), strict=True):
        by_cluster = rows.reshape(-1, 4)
        variance = rate * (1 - rate)
        assert within(by_cluster.mean(axis=1), rate)
        products = (by_cluster[:, 0] - rate) * (by_cluster[:, 1] - rate)
        assert within(products, 0.25 * variance)
        squares = (by_cluster.mean(axis=1) - rate) ** 2
        assert within(squares, variance / 4 * population.design_effect)


# Correlation.

ATTRIBUTES = {"uniform": stats.uniform(0.1, 0.9), "exponential": stats.expon(1)}


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("k", [-4, -2, -1, 0, 1, 2, 3])
def test_moments_of_the_attribute(attribute: str, k: int) -> None:
    expected = ATTRIBUTES[attribute].expect(lambda x: x ** float(k))
    assert Correlation(10, attribute, low=0.1).moment(k) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("slope", [0.0, -2.0])
def test_drawn_correlations_come_to_the_true_one(attribute: str, slope: float) -> None:
    population = Correlation(4000, attribute, power=1, slope=slope, low=0.1)
    rng = np.random.default_rng(8)
    draws = [population.draw(rng) for _ in range(200)]
    found = np.array([np.corrcoef(data["x"], data["error"])[0, 1] for data in draws])
    assert within(found, population.truth())
    assert np.sign(population.truth()) == np.sign(slope)


def test_the_rows_of_table_1() -> None:
    rng = np.random.default_rng(9)
    x = {name: one.draw(rng)["x"] for name, one in simulate.PAPER_TABLE1.items()}
    assert 1e-5 <= x["uncorrelated"].min() < x["uncorrelated"].max() <= 1
    assert x["independent"].min() >= 1
    assert within(x["independent"], 2)
    for one in simulate.PAPER_TABLE1.values():
        assert one.truth() == 0
        assert one.n == 2000


# Seeds and refusals.

POPULATIONS = [
    Rates((20, 30), (0.5, 0.2)),
    Scores((20, 30), (0.5, 0.2)),
    Regression((20, 30)),
    Clusters((5, 6)),
    Correlation(30),
]


@pytest.mark.parametrize("population", POPULATIONS, ids=lambda one: type(one).__name__)
def test_one_seed_gives_one_data_set(population: Any) -> None:
    first, again, other = (population.draw(seed) for seed in (1, 1, 2))
    assert all((first[name] == again[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)


@pytest.mark.parametrize("population", POPULATIONS[:4], ids=lambda one: type(one).__name__)
def test_only_known_truths_are_returned(population: Any) -> None:
    with pytest.raises(fairperm.InputError, match=r"metric must be"):
        population.truth("log_loss")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rates((20, 0), (0.5, 0.5)), r"n must be an integer from 1"),
        (lambda: Rates((20, 20), (0.5, 1.5)), r"base_rate must be .* 0 to 1"),
        (lambda: Rates((20, 20), (0.5, float("nan"))), r"base_rate must be"),
        (lambda: Scores((20, 20), (0.5, 0.5), auc=(1.0, 0.5)), r"auc must be"),
        (lambda: Scores((20, 20), (0.5, 0.5), spread=(0.0, 1.0)), r"spread must be"),
        (lambda: Regression((20, 20), kurtosis=(1.0, 3.0)), r"kurtosis must be .* 1.001 to"),
        (lambda: Clusters((20, 20), rows=0), r"rows must be an integer from 1"),
        (lambda: Clusters((20, 20), correlation=1.0), r"correlation must be .* 0 and 1"),
        (lambda: Correlation(20, "normal"), r"attribute must be one of 'uniform', 'exponential'"),
        (lambda: Correlation(20, power=-1), r"power must be an integer from 0"),
        (lambda: Correlation(20, low=0.0), r"low must be"),
    ],
)
def test_impossible_populations_raise(make: Any, message: str) -> None:
    with pytest.raises(fairperm.InputError, match=message):
        make()


@pytest.mark.parametrize("n", [20, [20, 20], (20,), (20, 20, 20), (20.0, 20.0)])
def test_a_parameter_that_is_no_pair_raises(n: Any) -> None:
    with pytest.raises(fairperm.InputTypeError, match=r"n must be"):
        Rates(n, (0.5, 0.5))
