"""Functions as metrics: the same answers as the built-in ones, and as the paper's algorithm."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fairperm.engines.callables import CallableEngine
from fairperm.metrics import get_metric
from fairperm.metrics.callables import CallableMetric
from tests.support.callables import (
    FAST,
    Accuracy,
    accuracy,
    agree,
    auc,
    engine_of,
    f1,
    labels,
    mean_absolute_error,
    numbers,
    plain_accuracy,
    run,
    scores,
    selection_rate,
    share_right_of_half,
)

# What a function wants.


def brier(y_true: Any, y_proba: Any) -> Any:
    return np.mean((y_true - y_proba) ** 2)


def of_any_columns(*columns: Any) -> float:
    return 0.0


def of_weights(y_true: Any, sample_weight: Any) -> float:
    return 0.0


def of_options(y_true: Any, y_pred: Any, **options: Any) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("function", "name", "second", "takes_weight"),
    [
        (accuracy, "accuracy", "y_pred", True),
        (plain_accuracy, "plain_accuracy", "y_pred", False),
        (selection_rate, "selection_rate", "y_pred", True),
        (f1, "fbeta", "y_pred", True),
        (functools.partial(f1, beta=2), "fbeta", "y_pred", True),
        (functools.partial(accuracy, sample_weight=None), "accuracy", "y_pred", False),
        (auc, "auc", "y_score", False),
        (brier, "brier", "y_score", False),
        (of_any_columns, "of_any_columns", "y_pred", False),
        (of_weights, "of_weights", "y_pred", False),
        (of_options, "of_options", "y_pred", False),
        (lambda a, b: a @ b, "<lambda>", "y_pred", False),
        (Accuracy(), "Accuracy", "y_pred", False),
        (Accuracy().__call__, "__call__", "y_pred", False),
        (np.vdot, "vdot", "y_pred", False),
    ],
)
def test_parameters_are_read(function: Any, name: str, second: str, *, takes_weight: bool) -> None:
    metric = get_metric(function)
    assert isinstance(metric, CallableMetric)
    assert (metric.name, metric.columns) == (name, ("y_true", second))
    assert metric.takes_weight is takes_weight
    assert get_metric(metric) is metric


def test_what_was_given_is_what_the_function_gets() -> None:
    both = {**labels(), "y_score": np.linspace(0, 1, 300)}
    seen: list[bool] = []

    def of_scores(y_true: Any, y_score: Any) -> float:
        seen.append(y_score.dtype == float)
        return float(y_score.mean())

    def of_predictions(y_true: Any, y_pred: Any) -> float:
        return of_scores(y_true, y_pred)

    for function, given, floats in [
        (of_scores, both, True),
        (of_predictions, both, False),
        (of_scores, labels(), False),
        (of_predictions, scores(), True),
    ]:
        seen.clear()
        run(given, function, n_resamples=9)
        assert set(seen) == {floats}


# The same as the built-in metrics.


@pytest.mark.parametrize(
    ("function", "name", "data"),
    [
        (accuracy, "accuracy", labels()),
        (plain_accuracy, "accuracy", labels()),
        (Accuracy(), "accuracy", labels()),
        (f1, "f1_score", labels()),
        (selection_rate, "selection_rate", labels()),
        (mean_absolute_error, "mean_absolute_error", numbers()),
        (auc, "roc_auc", scores()),
    ],
)
def test_agrees_with_the_built_in_metric(function: Any, name: str, data: dict[str, Any]) -> None:
    options = {"scheme": "pooled", "n_resamples": 1999}
    plain = (run(data, one, variance=None, **options) for one in (function, name))
    assert agree(*plain)
    options["variance"] = "fast_bootstrap"
    ours, built_in = run(data, function, **options), run(data, name, **options)
    assert ours.values == pytest.approx(built_in.values)
    assert ours.difference == pytest.approx(built_in.difference)
    assert ours.standard_error == pytest.approx(built_in.standard_error, rel=0.08)
    assert ours.confidence_interval == pytest.approx(built_in.confidence_interval, abs=0.05)
    assert agree(ours, built_in, FAST)
    assert (ours.scheme, ours.variance, ours.exact) == ("pooled", "fast_bootstrap", False)
    assert {group: counts["rows"] for group, counts in built_in.counts.items()} == {
        group: counts["rows"] for group, counts in ours.counts.items()
    }
    assert all(set(counts) == {"rows"} for counts in ours.counts.values())


@pytest.mark.parametrize("variance", ["fast_bootstrap", "bootstrap", None])
def test_counts_as_weights_give_what_rows_give(variance: str | None) -> None:
    options = {"variance": variance, "n_resamples": 999, "n_bootstrap": 30}
    by_count = run(labels(), accuracy, **options)
    by_row = run(labels(), plain_accuracy, **options)
    assert by_count.difference == pytest.approx(by_row.difference, abs=1e-12)
    assert by_count.standard_error == pytest.approx(by_row.standard_error, rel=0.4)
    assert agree(by_count, by_row, {"fast_bootstrap": FAST, "bootstrap": 0.4, None: 0}[variance])


@pytest.mark.parametrize(
    ("function", "data", "counted"),
    [
        (accuracy, labels(), True),
        (plain_accuracy, labels(), False),
        (mean_absolute_error, numbers(), False),
        (share_right_of_half, labels(), False),
    ],
)
def test_counts_stand_for_rows_where_they_can(
    function: Any, data: dict[str, Any], *, counted: bool
) -> None:
    engine = engine_of(data, function)
    assert isinstance(engine, CallableEngine)
    assert (engine.strata[0].pool.count is not None) is counted
    assert len(engine.strata[0].pool) == len(data["y_true"])


@pytest.mark.parametrize("function", [accuracy, plain_accuracy])
def test_draws_keep_the_rows_and_the_sizes(function: Any) -> None:
    data = labels()
    engine = engine_of(data, function)
    stratum = engine.strata[0]
    rng = np.random.default_rng(1)
    sizes = [len(group) for group in stratum.groups]
    assert sizes == sorted(sizes)

    def kinds(*samples: Any) -> list[int]:
        total = np.zeros(len(engine.columns[0]), int)
        for sample in samples:
            np.add.at(total, sample.places, 1 if sample.count is None else sample.count)
        return total.tolist()

    seen = []
    for _ in range(20):
        first, second = stratum.permute(rng)
        assert [len(first), len(second)] == sizes
        assert kinds(first, second) == kinds(stratum.pool)
        seen.append(kinds(first))
        assert [len(group) for group in stratum.resample(rng)] == sizes
    expected = np.array(kinds(stratum.pool)) * sizes[0] / sum(sizes)
    assert np.mean(seen, axis=0) == pytest.approx(expected, abs=4)
    assert len(set(map(tuple, seen))) > 10


# The paper's Algorithm 1.


def algorithm_1(
    metric: Any, a: Any, b: Any, n_permutations: int, n_bootstrap: int
) -> tuple[float, Any]:
    """Return the studentized gap and those of permutations, as DiCiccio et al. (2020) print it."""
    rng = np.random.default_rng(7)

    def studentized(a: Any, b: Any) -> float:
        variance = 0.0
        for group in (a, b):
            resampled = (
                group[rng.integers(len(group), size=len(group))] for _ in range(n_bootstrap)
            )
            variance += np.var([metric(*rows.T) for rows in resampled], ddof=1)
        return float((metric(*a.T) - metric(*b.T)) / math.sqrt(variance))

    pooled = np.concatenate([a, b])
    permuted = []
    for _ in range(n_permutations):
        shuffled = rng.permutation(pooled)
        permuted.append(studentized(shuffled[: len(a)], shuffled[len(a) :]))
    return studentized(a, b), np.array(permuted)


@pytest.mark.validate
@pytest.mark.parametrize("metric", [plain_accuracy, accuracy])
def test_bootstrap_variance_is_algorithm_1(metric: Any) -> None:
    data = labels(80, seed=4)
    rows = np.column_stack([data["y_true"], data["y_pred"]])
    a, b = (rows[data["sensitive_features"] == group] for group in "ab")
    draws, n_bootstrap = 400, 100
    statistic, permuted = algorithm_1(plain_accuracy, a, b, draws, n_bootstrap)
    result = run(data, metric, variance="bootstrap", n_resamples=draws, n_bootstrap=n_bootstrap)
    p = (1 + (np.abs(permuted) >= abs(statistic)).sum()) / (draws + 1)

    # either statistic has the error of its own bootstrap: about 1/sqrt(2·100)/sqrt(2) of it
    assert result.statistic == pytest.approx(statistic, rel=4 * 0.05 * math.sqrt(2))
    slope = 2 * stats.norm.pdf(statistic) * 0.05 * abs(statistic)
    error = math.sqrt(2 * p * (1 - p) / draws + 2 * slope**2)
    assert result.pvalue == pytest.approx(p, abs=4 * error)
    assert stats.ks_2samp(result.null_distribution, permuted).pvalue > 1e-3
    # studentized, draws are about standard normal; un-studentized, they are some tenths
    assert np.std(result.null_distribution) == pytest.approx(1, abs=0.2)
    assert result.validity.startswith("Asymptotically valid for the weak null")


@pytest.mark.validate
def test_level_where_the_un_studentized_test_fails() -> None:
    """Groups of equal mean, the smaller one more variable: the weak null, not the strong one."""

    def mean(y_true: Any, y_pred: Any) -> Any:
        return y_pred.mean()

    rejected = {"fast_bootstrap": 0, None: 0}
    sets, rng = 200, np.random.default_rng(1)
    for seed in range(sets):
        y_pred = np.concatenate([rng.normal(0, 3, 25), rng.normal(0, 1, 100)])
        data = {
            "y_true": np.zeros(125),
            "y_pred": y_pred,
            "sensitive_features": [0] * 25 + [1] * 100,
        }
        for variance in rejected:
            options = {"variance": variance, "n_resamples": 99, "n_bootstrap": 2, "rng": seed}
            rejected[variance] += run(data, mean, **options).pvalue <= 0.05
    assert stats.binomtest(rejected["fast_bootstrap"], sets, 0.06).pvalue > 0.001
    assert rejected[None] / sets > 0.2
