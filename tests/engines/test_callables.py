"""Functions as metrics, wherever and however they run, on all kinds of data."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import joblib
import numpy as np
import pytest

from fairperm import permutation_test
from studies.bootstrap import Method, bootstrap_test
from tests.support.callables import (
    FAST,
    accuracy,
    agree,
    auc,
    labels,
    mean_absolute_error,
    numbers,
    plain_accuracy,
    run,
    scores,
    selection_rate,
    shuffled,
)

# However it runs.

KINDS = [(accuracy, labels()), (plain_accuracy, labels()), (auc, scores())]


@pytest.mark.parametrize(("metric", "data"), KINDS)
def test_processes_and_threads_change_nothing(metric: Any, data: dict[str, Any]) -> None:
    one = run(data, metric, n_jobs=1)
    assert np.array_equal(one.null_distribution, run(data, metric, n_jobs=2).null_distribution)
    for backend in ("threading", "multiprocessing"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            other = run(data, metric)
        assert np.array_equal(one.null_distribution, other.null_distribution)
        assert one.pvalue == other.pvalue


def test_lambdas_run_in_processes() -> None:
    metric = lambda y_true, y_pred: np.mean(y_true == y_pred)  # noqa: E731
    one, two = (run(labels(), metric, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.metric == "<lambda>"
    assert one.pvalue == two.pvalue


def test_an_active_joblib_context_is_used() -> None:
    asked: list[int] = []

    class Backend(joblib.parallel.ThreadingBackend):  # type: ignore[misc]
        supports_return_generator = False

        def effective_n_jobs(self, n_jobs: int) -> int:
            asked.append(n_jobs)
            return 2

    joblib.register_parallel_backend("fairperm-test", Backend)
    one = run(labels(), accuracy)
    with joblib.parallel_config(backend="fairperm-test", n_jobs=-1):
        other = run(labels(), accuracy)
    assert set(asked) == {-1}
    assert np.array_equal(one.null_distribution, other.null_distribution)


def test_progress_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[int] = []

    def show_bar(steps: Any, done: int, total: int) -> Any:
        bars.append(total)
        yield from steps

    monkeypatch.setattr("fairperm._utils.progress._PROGRESS_DELAY_S", 0.0)
    monkeypatch.setattr("fairperm._utils.progress._show_bar", show_bar)
    for n_jobs in (1, 2):
        run(labels(), plain_accuracy, progress=True, n_jobs=n_jobs)
    assert bars == [13] * 4  # blocks of 16 draws: of permutations and of bootstrap samples
    run(labels(), plain_accuracy, progress=False)
    assert len(bars) == 4


# Kinds of data.


def test_labels_arrive_as_they_came() -> None:
    data = labels()
    words = np.array(["no", "yes"])
    named = {**data, "y_true": words[data["y_true"]], "y_pred": words[data["y_pred"]]}
    rate = functools.partial(selection_rate, pos_label="yes")
    result = run(named, rate)
    assert result.values == run(data, selection_rate).values
    assert result.pvalue == run(data, selection_rate).pvalue
    listed = {name: column.tolist() for name, column in named.items()}
    assert run(listed, rate).pvalue == result.pvalue
    assert run(shuffled({**named, "y_true": named["y_true"].astype(object)}), rate).pvalue == (
        result.pvalue
    )


def test_strata() -> None:
    data = labels()
    data["control_features"] = np.where(np.arange(300) % 3, "x", "y")
    options = {"variance": "fast_bootstrap", "scheme": "pooled", "n_resamples": 1999}
    built_in = run(data, "accuracy", **options)
    for metric in (accuracy, plain_accuracy):
        result = run(data, metric, **options)
        assert result.difference == pytest.approx(built_in.difference)
        assert result.values == pytest.approx(built_in.values)
        assert result.n_strata == 2
        assert agree(result, built_in, FAST)


def test_user_weights_reach_the_function() -> None:
    data = labels()
    data["sample_weight"] = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 300)
    result = run(data, accuracy)
    for group in "ab":
        mine = data["sensitive_features"] == group
        given = (data[name][mine] for name in ("y_true", "y_pred"))
        weight = data["sample_weight"][mine]
        assert result.values[group] == pytest.approx(accuracy(*given, sample_weight=weight))
    built_in = run(data, "accuracy", variance="fast_bootstrap", scheme="pooled")
    assert agree(result, built_in, 3 * FAST)  # a tenth of the draws
    assert run(shuffled(data), accuracy).pvalue == result.pvalue


def test_undefined_draws_count_as_extreme() -> None:
    def ratio(y_true: Any, y_pred: Any) -> float:
        return math.inf if y_pred[y_true == 1].size < 5 else float(y_pred[y_true == 1].mean())

    data = {
        "y_true": [1] * 10 + [0] * 30,
        "y_pred": [1, 0] * 20,
        "sensitive_features": ([0] * 5 + [1] * 5) + [0, 1] * 15,
    }
    with pytest.warns(UserWarning, match="undefined in"):
        result = run(data, ratio)
    assert 0 < result.n_undefined < 199
    assert result.pvalue >= (result.n_undefined + 1) / 200


def test_warnings_of_the_function_are_seen() -> None:
    def loud(y_true: Any, y_pred: Any) -> float:
        warnings.warn("careful", RuntimeWarning, stacklevel=1)
        return float(plain_accuracy(y_true, y_pred))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        run(labels(), loud)
    assert [str(one.message) for one in caught] == ["careful"]


# The bootstrap test.


@pytest.mark.parametrize("method", ["percentile", "basic"])
@pytest.mark.parametrize(
    ("function", "name", "data"),
    [
        (accuracy, "accuracy", labels()),
        (plain_accuracy, "accuracy", labels()),
        (mean_absolute_error, "mean_absolute_error", numbers()),
    ],
)
def test_bootstrap_test(function: Any, name: str, data: dict[str, Any], method: Method) -> None:
    ours, built_in = (
        bootstrap_test(**data, metric=metric, method=method, n_resamples=1999, rng=1)
        for metric in (function, name)
    )
    assert ours.difference == pytest.approx(built_in.difference)
    assert ours.standard_error == pytest.approx(built_in.standard_error, rel=0.08)
    assert ours.confidence_interval == pytest.approx(built_in.confidence_interval, abs=0.03)
    assert agree(ours, built_in)
    swapped = bootstrap_test(
        **shuffled(data), metric=function, n_resamples=1999, rng=1, groups=("b", "a")
    )
    assert swapped.pvalue == ours.pvalue


@pytest.mark.parametrize("unit", [1.0, 2.0**-21])
def test_weights_that_a_function_ignores_are_no_counts(unit: float) -> None:
    def mean_square(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
        del sample_weight
        return float(np.mean((y_true - y_pred) ** 2))

    error = np.repeat([0.0, 1.0, 2.0], [200, 300, 100]) * unit
    group = np.where(np.arange(600) % 5 < 2, "a", "b")
    result = permutation_test(
        np.zeros(600), error, sensitive_features=group, metric=mean_square, n_resamples=19, rng=1
    )
    for one in ("a", "b"):
        assert result.values[one] / unit**2 == pytest.approx(700 / 600, rel=0.02)
