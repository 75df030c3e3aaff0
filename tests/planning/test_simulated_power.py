"""Predicted power against that of simulated tests, and power by simulation.

Bounds are 99.9 % quantiles of the binomial distribution at the predicted power.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from fairperm import permutation_test
from fairperm.hypothesis_tests.plan import check_resampling
from fairperm.planning.power import power
from fairperm.planning.repeated_tests import RepeatedTest
from fairperm.planning.simulated_power import _mix_groups, simulated_power
from tests.support.helpers import rate_rows, rows
from tests.support.simulations import Group, Procedure, at_most, between, draw_counts

LEVEL = 0.05
N_RESAMPLES = 319  # (b + 1)/320 reaches 0.05 exactly
DATA_SETS = 600

Columns = dict[str, Any]

# Groups of 240 and 160 rows with unequal base rates, and gaps in every rate.
GROUPS = (Group(240, 0.6, 0.75, 0.80), Group(160, 0.3, 0.55, 0.65))
VALUES = {
    "true_positive_rate": (0.75, 0.55),
    "false_positive_rate": (0.20, 0.35),
    "selection_rate": (0.6 * 0.75 + 0.4 * 0.20, 0.3 * 0.55 + 0.7 * 0.35),
}


@pytest.mark.validate
@pytest.mark.parametrize("metric", VALUES)
def test_power_of_a_rate_is_that_of_simulated_tests(metric: str) -> None:
    base_rates = None if metric == "selection_rate" else (0.6, 0.3)
    predicted = power(metric, values=VALUES[metric], n=400, share=0.6, base_rates=base_rates)
    assert 0.2 < predicted < 0.95
    pvalues = Procedure(metric).pvalues(draw_counts([GROUPS], DATA_SETS, seed=7))
    low, high = between(predicted, predicted, DATA_SETS)
    assert low <= (pvalues <= LEVEL).sum() <= high


@pytest.mark.validate
def test_power_of_a_predictive_value_is_that_of_simulated_tests() -> None:
    """The number of predicted positives varies between data sets; in `power` it does not."""
    groups = Group(320, 0.5, 0.8, 0.6), Group(200, 0.4, 0.6, 0.6)
    predicted = power("ppv", values=(2 / 3, 0.5), n=520, share=8 / 13, base_rates=(0.6, 0.48))
    assert 0.5 < predicted < 0.95
    pvalues = Procedure("ppv").pvalues(draw_counts([groups], DATA_SETS, seed=8))
    low, high = between(predicted, predicted, DATA_SETS)
    assert low <= (pvalues <= LEVEL).sum() <= high


def rejections(draw: Callable[[np.random.Generator], Columns], data_sets: int) -> int:
    rng = np.random.default_rng(2020)
    pvalues = [
        permutation_test(**draw(rng), rng=seed, n_resamples=N_RESAMPLES, progress=False).pvalue
        for seed in range(data_sets)
    ]
    return sum(one <= LEVEL for one in pvalues)


def binormal(rng: np.random.Generator) -> Columns:
    """Return scores with an AUC of 0.9 in 300 rows and of 0.8 in 200, half and 0.3 positive."""
    group = np.repeat([0, 1], [300, 200])
    label = rng.random(500) < np.where(group == 0, 0.5, 0.3)
    shift = np.sqrt(2) * norm.ppf(np.where(group == 0, 0.9, 0.8))
    score = rng.normal(size=500) + shift * label
    return {"y_true": label, "y_score": score, "sensitive_features": group, "metric": "roc_auc"}


def errors(rng: np.random.Generator, n: int = 600, share: float = 0.5) -> Columns:
    """Return errors that spread differently: mean squares of 1 and of 1.3."""
    group = np.repeat([0, 1], [round(n * share), n - round(n * share)])
    deviation = np.sqrt(np.where(group == 0, 1.0, 1.3))
    return {
        "y_true": np.zeros(n),
        "y_pred": deviation * rng.uniform(-np.sqrt(3), np.sqrt(3), size=n),
        "sensitive_features": group,
        "metric": "mean_squared_error",
    }


@pytest.mark.validate
def test_power_from_a_pilot_is_that_of_simulated_tests() -> None:
    # the pilot is large, so that its own error does not count, and has other shares
    pilot = permutation_test(
        **errors(np.random.default_rng(5), n=100_000, share=0.2), n_resamples=99, rng=1
    )
    predicted = power(pilot=pilot, values=(1.0, 1.3), n=600, share=0.5)
    assert 0.5 < predicted < 0.99
    low, high = between(predicted, predicted, DATA_SETS)
    assert low <= rejections(errors, DATA_SETS) <= high


# By simulation from rows.

ROWS = rows(((48, 12, 18, 42), (56, 24, 16, 24)))  # false positive rates of 0.2 and 0.3


@pytest.mark.validate
def test_simulated_power_is_the_exact_power_where_there_is_one() -> None:
    for share in (None, 0.5):
        found = simulated_power(
            **ROWS, metric="selection_rate", n=150, share=share, n_simulations=DATA_SETS, rng=4
        )
        exact = power("selection_rate", values=(54 / 120, 48 / 120), n=150, share=share)
        low, high = between(exact, exact, DATA_SETS)
        assert low <= found.power * DATA_SETS <= high


@pytest.mark.validate
def test_the_effect_shrinks_the_gap() -> None:
    wide = rate_rows((90, 100, 100, 200))  # rates of 0.9 and 0.5, together 190 of 300
    found = simulated_power(
        **wide, metric="selection_rate", n=150, effect=0.5, n_simulations=DATA_SETS, rng=4
    )
    assert found.sizes == (50, 100)
    both = 190 / 300
    exact = power("selection_rate", values=((0.9 + both) / 2, (0.5 + both) / 2), n=150, share=1 / 3)
    low, high = between(exact, exact, DATA_SETS)
    assert low <= found.power * DATA_SETS <= high


def test_rows_are_mixed_in_from_both_groups_together() -> None:
    # predicted positive: 90 of 100 and 100 of 200, 190 of 300 together
    test = RepeatedTest.of(
        {**rows(((10, 90, 0, 0), (100, 100, 0, 0))), "metric": "selection_rate"},
        check_resampling(99, 1, None, False),
        0.95,
    )
    population = _mix_groups(test, n=30_000, share=None, effect=0.25)
    sample = population.sample(np.random.default_rng(8))
    for group, (size, own) in enumerate([(10_000, 0.9), (20_000, 0.5)]):
        counts = sample.count * (sample.group == group)
        mixed = 0.25 * own + 0.75 * 190 / 300
        low, high = between(mixed, mixed, size)
        assert counts.sum() == size
        assert low <= counts[sample.columns["y_pred"]].sum() <= high


@pytest.mark.validate
@pytest.mark.parametrize("metric", ["false_positive_rate", "f1_score"])
def test_simulated_power_without_an_effect_is_at_most_the_level(metric: str) -> None:
    found = simulated_power(
        **ROWS, metric=metric, n=200, effect=0, n_simulations=500, n_resamples=N_RESAMPLES, rng=2
    )
    assert found.power * 500 <= at_most(LEVEL, 500)
    assert found.effect == 0


@pytest.mark.validate
def test_simulated_power_of_an_auc_is_near_the_predicted_one() -> None:
    found = simulated_power(
        **binormal(np.random.default_rng(1)),
        n=500,
        n_simulations=300,
        n_resamples=N_RESAMPLES,
        rng=3,
    )
    observed = permutation_test(**binormal(np.random.default_rng(1)), n_resamples=99, rng=1)
    predicted = power(pilot=observed, n=500)
    low, high = between(predicted, predicted, 300)
    assert low <= found.power * 300 <= high


def scored_rows() -> Columns:
    """Return 90 and 210 rows with scores and with predictions."""
    rng = np.random.default_rng(11)
    group = np.repeat([0, 1], [90, 210])
    label = rng.random(300) < np.where(group == 0, 0.5, 0.35)
    score = rng.normal(size=300) + np.where(group == 0, 0.9, 1.6) * label
    return {"y_true": label, "y_score": score, "y_pred": score > 0.5, "sensitive_features": group}


@pytest.mark.validate
@pytest.mark.parametrize(
    ("metric", "used", "size"), [("roc_auc", "y_score", 200), ("ppv", "y_pred", 80)]
)
def test_simulated_power_is_that_of_brute_force(metric: str, used: str, size: int) -> None:
    """Draw rows by their numbers, and call the public test."""
    given, n, alpha = scored_rows(), 400, 0.1
    columns = {name: given[name] for name in ("y_true", used, "sensitive_features")}
    shared: Columns = {"metric": metric, "n_resamples": 99}
    found = simulated_power(
        **columns, **shared, n=size, share=0.4, alpha=alpha, n_simulations=n, rng=5
    )
    rng = np.random.default_rng(6)
    members = [np.flatnonzero(given["sensitive_features"] == side) for side in (0, 1)]
    rejected = 0
    for seed in range(n):
        drawn = np.append(
            rng.choice(members[0], 2 * size // 5), rng.choice(members[1], 3 * size // 5)
        )
        sample = {name: one[drawn] for name, one in columns.items()}
        rejected += permutation_test(**sample, **shared, rng=seed).pvalue <= alpha
    assert 0.2 < found.power < 0.95
    both = (found.power + rejected / n) / 2
    assert abs(found.power - rejected / n) <= 3.3 * np.sqrt(2 * both * (1 - both) / n)


def mean_gap(y_true: Any, y_pred: Any) -> float:
    return float(np.mean(y_pred) - np.mean(y_true))


@pytest.mark.parametrize(
    "changes",
    [
        {"metric": "equalized_odds"},
        {"metric": "f1_macro"},
        {"metric": mean_gap},
        {"metric": "accuracy", "sample_weight": np.linspace(1, 2, 240)},
        {
            "metric": "tpr",
            "control_features": ["x", "y"] * 120,
            "stratum_weights": {"x": 1, "y": 2},
        },
        {"metric": "tpr", "variance": "bootstrap", "n_bootstrap": 20},
        {"metric": "tpr", "alternative": "less", "scheme": "pooled"},
    ],
    ids=["joint", "macro", "function", "weights", "strata", "bootstrap", "one side"],
)
def test_simulated_power_takes_what_the_test_takes(changes: Columns) -> None:
    found = simulated_power(
        **ROWS, **changes, n=5000, n_simulations=20, n_resamples=99, rng=1, progress=False
    )
    expected = permutation_test(**ROWS, **changes, n_resamples=99, rng=1)
    assert found.metric == expected.metric
    assert found.groups == expected.groups
    low, high = found.confidence_interval
    assert 0 <= low <= found.power <= high <= 1


def test_an_alternative_has_its_side() -> None:
    shared: Columns = {**ROWS, "metric": "fpr", "n": 2000, "n_simulations": 50, "rng": 1}
    assert simulated_power(**shared, alternative="less").power > 0.9
    assert simulated_power(**shared, alternative="greater").power == 0


def test_one_seed_gives_one_power_on_any_number_of_processes() -> None:
    shared: Columns = {**ROWS, "metric": "f1_score", "n": 100, "n_simulations": 40}
    one = simulated_power(**shared, n_resamples=99, rng=11)
    two = simulated_power(**shared, n_resamples=99, rng=11, n_jobs=2)
    assert one.to_dict() == two.to_dict()
    assert one.seed == 11
    expected = binomtest(round(one.power * 40), 40).proportion_ci(0.95, method="exact")
    assert one.confidence_interval == pytest.approx((expected.low, expected.high))


def test_samples_without_a_metric_do_not_count_as_rejected() -> None:
    rare = rows(((50, 30, 1, 1), (40, 40, 1, 1)))
    found = simulated_power(**rare, metric="tpr", n=40, n_simulations=200, rng=1)
    # with 20 rows and 2 of 82 positive, a group has none with this probability
    none = (80 / 82) ** 20
    low, high = between(1 - (1 - none) ** 2, 1 - (1 - none) ** 2, 200)
    assert low <= found.n_undefined <= high
    assert found.power == 0


def test_simulated_power_is_shown_on_a_few_lines() -> None:
    found = simulated_power(**ROWS, metric="fpr", n=200, n_simulations=10, effect=0.5, rng=1)
    text = repr(replace(found, power=0.25, confidence_interval=(0.1, 0.5)))
    assert text == (
        "With 100 rows of a and 100 rows of b the test detects 50.0 % of the observed gap in\n"
        "false positive rate with 25.0 % power.\n"
        "  power  0.250  95 % interval 0.100 to 0.500, 10 simulations\n"
        "  level  5 %"
    )
