"""Metrics that exchange the same labels draw them once, and find what each of them finds alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm.auditing import comparisons
from fairperm.engines.kernels.group_labels import random_groups
from fairperm.engines.kernels.subsets import random_subsets

N = 240
DRAWS = 130  # two whole blocks of 64, and a part of a third
REGRESSION = ["mean_squared_error", "mean_absolute_error", "mean_prediction", "r2_score"]
SCORES = ["roc_auc", "mean_score_positives", "brier_score", "log_loss", "mean_score"]

pytestmark = pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few resamples


def sample(n_groups: int, extra: str = "", **options: Any) -> dict[str, Any]:
    rng = np.random.default_rng(8)
    group = np.arange(N) % n_groups
    data = {
        "y_true": rng.integers(2, size=N),
        "y_score": rng.uniform(size=N),
        "sensitive_features": group,
        "sample_weight": rng.uniform(1, 2, N),
        "control_features": rng.integers(2, size=N),
        "cluster": 100 * group + rng.integers(30, size=N),
    }
    wanted = ("y_true", "y_score", "sensitive_features", extra)
    chosen = {name: column for name, column in data.items() if name in wanted}
    return {**chosen, "rng": 3, "n_resamples": DRAWS, **options}


def numbers(n_groups: int) -> dict[str, Any]:
    data = sample(n_groups)
    y_pred = data.pop("y_score")
    return {**data, "y_true": data["y_true"] + y_pred, "y_pred": y_pred}


def counting(calls: list[int], function: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return function(*arguments)

    return counted


@pytest.mark.parametrize(
    ("metrics", "data", "n_drawings"),
    [
        (REGRESSION, numbers(2), 1),
        (SCORES, sample(2), 2),  # the first two among rows of one label, the others among all
        (SCORES, sample(2, "sample_weight"), 2),
    ],
    ids=["regression", "scores", "weights"],
)
def test_two_groups_are_drawn_once(
    metrics: list[str], data: dict[str, Any], n_drawings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr("fairperm.engines.units.random_subsets", counting(calls, random_subsets))
    fairperm.audit(**data, metrics=metrics)
    assert len(calls) == n_drawings * 3  # blocks


@pytest.mark.parametrize(
    ("metrics", "data"),
    [
        (REGRESSION, numbers(2)),
        ([*SCORES, "accuracy"], sample(2)),
        (SCORES, sample(2, "control_features")),
        (SCORES, sample(2, "sample_weight")),
        (SCORES, sample(2, "cluster")),
        (SCORES[2:], sample(2, variance="bootstrap", n_bootstrap=10)),
    ],
    ids=["regression", "scores", "strata", "weights", "clusters", "bootstrap"],
)
def test_every_metric_has_its_own_permutations(metrics: list[str], data: dict[str, Any]) -> None:
    audit = fairperm.audit(**data, metrics=metrics)
    assert [row.metric for row in audit.rows] == metrics
    for row in audit.rows:
        alone = fairperm.permutation_test(**data, metric=row.metric)
        assert row.result is not None
        assert np.array_equal(row.result.null_distribution, alone.null_distribution)
        assert row.result.to_dict() == alone.to_dict()


@pytest.mark.parametrize(
    ("metrics", "data", "n_drawings"), [(REGRESSION, numbers(3), 1), (SCORES, sample(3), 2)]
)
def test_many_groups_are_drawn_once(
    metrics: list[str], data: dict[str, Any], n_drawings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(
        "fairperm.engines.kernels.group_labels.random_groups", counting(calls, random_groups)
    )
    audit = fairperm.audit(**data, metrics=metrics, group_size_by="rows")
    assert len(calls) == n_drawings * -(-DRAWS // 8)  # blocks
    for row in audit.omnibus:
        alone = fairperm.omnibus_test(**data, metric=row.metric)
        assert row.result is not None
        assert np.array_equal(row.result.null_distribution, alone.null_distribution)
        assert row.result.to_dict() == alone.to_dict()


def test_how_many_fit_into_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {**sample(3), "metrics": SCORES, "compare": "rest"}
    whole = fairperm.audit(**data)
    calls: list[int] = []
    monkeypatch.setattr("fairperm.engines.units.random_subsets", counting(calls, random_subsets))
    monkeypatch.setattr(comparisons, "_ROWS_AT_ONCE", 1)
    assert fairperm.audit(**data).to_dict() == whole.to_dict()
    assert len(calls) == 3 * len(SCORES) * 3  # pairs, metrics, blocks: nothing is shared


def test_a_function_that_fails_in_permutations_of_many_groups_spoils_no_other() -> None:
    data = sample(3)
    members = [set(data["y_score"][data["sensitive_features"] == one]) for one in range(3)]

    def choosy(y_true: Any, y_score: Any) -> float:
        if all(one & set(y_score) for one in members):
            raise ValueError("rows of three groups")
        return float(np.mean(y_true * y_score))

    audit = fairperm.audit(**data, metrics={"mean": "mean_score", "own": choosy})
    assert all(row.result is not None for row in audit.rows)
    mean, own = audit.omnibus
    assert mean.result is not None
    assert own.result is None
    assert "rows of three groups" in own.reason
