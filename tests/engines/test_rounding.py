"""Data of very different sizes, and data without any variation: no number may be rounding."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

import fairperm

GROUP = np.repeat(["a", "b"], 200)


def errors(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y_true = rng.integers(1, 10, 400).astype(np.float64)
    return y_true, y_true + rng.normal(size=400)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # few rows matter
@pytest.mark.parametrize("test", [fairperm.permutation_test, fairperm.omnibus_test])
@pytest.mark.parametrize("at", [0, 399])
@pytest.mark.parametrize("size", [1e5, 1e7, 1e9])
def test_one_large_error_leaves_the_other_group_as_it_is(test: Any, at: int, size: float) -> None:
    y_true, y_pred = errors()
    y_pred[at] = size
    result = test(y_true, y_pred, sensitive_features=GROUP, metric="mse", n_resamples=99, rng=1)
    for group in "ab":
        mine = group == GROUP
        squares = (y_true - y_pred)[mine] ** 2
        assert result.values[group] == pytest.approx(squares.mean(), rel=1e-12)
        error = squares.std() / np.sqrt(len(squares))
        assert result.standard_errors[group] == pytest.approx(error, rel=1e-9)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # few rows matter
@pytest.mark.parametrize("at", [0, 399])
def test_one_outcome_of_zero_leaves_the_other_groups_percentage_error(at: int) -> None:
    y_true, y_pred = errors()
    y_true[at] = 0.0
    result = fairperm.permutation_test(
        y_true, y_pred, sensitive_features=GROUP, metric="mape", n_resamples=99, rng=1
    )
    for group in "ab":
        mine = group == GROUP
        expected = sklearn_metrics.mean_absolute_percentage_error(y_true[mine], y_pred[mine])
        assert result.values[group] == pytest.approx(expected, rel=1e-12)


def test_draws_with_a_large_row_are_those_of_its_rows() -> None:
    """Compare every permutation of few rows with its own sums, which the large row is not in."""
    y_pred = np.array([1e8, 1.0, 2.0, 4.0, 7.0, 3.0, 5.0, 9.0, 6.0, 8.5])
    group = np.repeat(["a", "b"], 5)
    result = fairperm.permutation_test(
        np.zeros(10),
        y_pred,
        sensitive_features=group,
        metric="mean_prediction",
        variance="delta",
        n_resamples=9999,
        rng=1,
    )
    by_hand = []
    for chosen in itertools.combinations(range(10), 5):
        first = np.isin(np.arange(10), chosen)
        one, other = y_pred[first], y_pred[~first]
        error = np.sqrt(one.var() / 5 + other.var() / 5)
        by_hand.append((one.mean() - other.mean()) / error)
    assert np.sort(result.null_distribution) == pytest.approx(np.sort(by_hand), rel=1e-9)


@pytest.mark.parametrize("constant", [0.1, 2.5, 3.0, 7.0, 100.3])
def test_outcomes_that_do_not_vary_have_no_r2(constant: float) -> None:
    rng = np.random.default_rng(0)
    y_true = np.append(np.full(60, constant), rng.normal(size=60))
    with pytest.raises(fairperm.UndefinedMetricError, match=r"r2_score of group 'a'.*too similar"):
        fairperm.permutation_test(
            y_true,
            y_true + rng.normal(size=120),
            sensitive_features=np.repeat(["a", "b"], 60),
            metric="r2_score",
            rng=1,
        )


@pytest.mark.filterwarnings("ignore:The standard error of .* is zero")
@pytest.mark.parametrize("metric", ["atkinson_index", "theil_t_index", "theil_l_index"])
@pytest.mark.parametrize("benefits", [(0.75, 0.0), (0.37, 0.21), (0.3, 0.1)])
def test_equal_benefits_are_not_unequal_by_rounding(
    metric: str, benefits: tuple[float, float]
) -> None:
    result = fairperm.permutation_test(
        np.zeros(80),
        np.repeat(benefits, 40),
        sensitive_features=np.repeat(["a", "b"], 40),
        metric=metric,
        rng=1,
    )
    assert result.values == {"a": 0.0, "b": 0.0}
    assert result.statistic == 0.0
    assert result.pvalue == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # few positives, many undefined
def test_the_scale_of_weights_changes_no_auc_and_no_pvalue() -> None:
    """Permutations that leave a group one row of a label have no variance, in any scale."""
    rng = np.random.default_rng(2)
    y_true = rng.permutation([0] * 6 + [1] * 6)
    y_score = rng.integers(0, 9, 12) / 8
    group = np.isin(np.arange(12), rng.permutation(12)[:5]).astype(int)
    weight = rng.random(12) + 0.2
    found = [
        fairperm.permutation_test(
            y_true,
            y_score=y_score,
            sensitive_features=group,
            metric="roc_auc",
            scheme="pooled",
            sample_weight=scale * weight,
            n_resamples=999,
            rng=1,
        )
        for scale in (0.1, 1.0, 3.0, 10.0)
    ]
    unweighted = [np.isin(np.arange(12), rows) for rows in itertools.combinations(range(12), 5)]
    lacking = np.mean([_lacks_a_label(y_true, mine) for mine in unweighted])
    assert len({one.pvalue for one in found}) == 1
    undefined = {one.n_undefined for one in found}
    assert len(undefined) == 1
    # of 999 draws, within what is seen of a binomial once in a million times
    assert abs(undefined.pop() - 999 * lacking) < 4.9 * np.sqrt(999 * lacking * (1 - lacking))


def _lacks_a_label(y_true: Any, mine: Any) -> bool:
    counts = [np.bincount(y_true[side], minlength=2).min() for side in (mine, ~mine)]
    return bool(min(counts) < 2)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few rows
def test_a_value_of_zero_has_no_variance_of_rounding() -> None:
    """Both rows of "m" are off by as much as the outcomes: R² is 0, whatever their weights."""
    whole = np.array([1.0, 7.0, 7.0, 7.0, 1.0, 7.0, 2.0])  # no sum of which is rounded
    exact, *others = (
        fairperm.omnibus_test(
            np.array([2.0, 2.0, 1.0, 0.0, 0.0, 0.0, 3.0]),
            np.array([0.0, 1.0, 3.0, -1.0, -1.0, 1.0, 4.0]),
            sensitive_features=["z", "m", "z", "m", "z", "z", "z"],
            sample_weight=scale * whole,
            metric="r2_score",
            n_resamples=99,
            rng=1,
        )
        for scale in (1, 0.5, 4 / 7, 1.55, 1e3)
    )
    assert exact.values["m"] == exact.standard_errors["m"] == 0.0
    for result in others:
        assert result.standard_errors["m"] == 0.0
        assert result.statistic == pytest.approx(exact.statistic, rel=1e-12)
        assert result.pvalue == exact.pvalue


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few rows
def test_permutations_with_a_group_without_errors_are_extreme_for_its_root_mean_square() -> None:
    error = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 5.0, 0.0, 3.0, 1.0, 4.0])
    mine = (0, 1, 3, 5)

    def studentized(chosen: tuple[int, ...]) -> float:
        values, variance = [], 0.0
        for squares in (error[list(chosen)] ** 2, np.delete(error, chosen) ** 2):
            if not squares.any():
                return math.inf
            values.append(math.sqrt(squares.mean()))
            variance += squares.var() / len(squares) / (4 * squares.mean())
        return (values[0] - values[1]) / math.sqrt(variance)

    every = [studentized(chosen) for chosen in itertools.combinations(range(10), 4)]
    assert every.count(math.inf) == 1  # 0, 1, 2 and 6
    group = np.where(np.isin(np.arange(10), mine), "a", "b")
    result = fairperm.permutation_test(
        np.zeros(10),
        error,
        sensitive_features=group,
        metric="root_mean_squared_error",
        variance="delta",
    )
    assert result.statistic == pytest.approx(studentized(mine))
    above = np.array(every) >= studentized(mine) - 1e-9
    below = np.isinf(every) | (np.array(every) <= studentized(mine) + 1e-9)
    assert result.exact
    assert result.pvalue == pytest.approx(min(1, 2 * above.mean(), 2 * below.mean()))
    assert result.n_undefined == 1
