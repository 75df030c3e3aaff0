"""Each row of an audit is a test by itself."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

from fairperm import Audit, FairpermWarning, audit, omnibus_test, permutation_test
from fairperm.auditing import comparisons
from fairperm.hypothesis_tests.results.audits import AuditRow
from fairperm.hypothesis_tests.run import run
from tests.support.audits import DATA, N, quietly, twice_accuracy

METRICS: dict[str, tuple[Any, str]] = {  # a metric of each kind, and the column it reads
    "rate": ("false_positive_rate", "y_pred"),
    "rate of labels": ("accuracy", "y_pred"),
    "rate of no prediction": ("base_rate", "y_pred"),
    "table": ("f1_score", "y_pred"),
    "joint": ("equalized_odds", "y_pred"),
    "AUC": ("roc_auc", "y_score"),
    "probability": ("brier_score", "y_score"),
    "regression": ("mean_squared_error", "y_pred"),
    "classes": ("f1_macro", "y_pred"),
    "function": (twice_accuracy, "y_pred"),
}


# Each row is what permutation_test says


def alone(data: dict[str, Any], kind: str, **options: Any) -> Any:
    metric, column = METRICS[kind]
    given = {name: data[name] for name in ("y_true", column, "sensitive_features")}
    return permutation_test(**{**given, "metric": metric, "n_resamples": 99, "rng": 5, **options})


def same(row: AuditRow, expected: Any) -> bool:
    """Tell whether two results are equal to the last bit."""
    assert row.result is not None
    mine, theirs = row.result.null_distribution, expected.null_distribution
    return bool(row.result.to_dict() == expected.to_dict() and mine.tobytes() == theirs.tobytes())


@pytest.fixture(scope="module", params=DATA.values(), ids=list(DATA))
def data(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param  # type: ignore[no-any-return]


def everything(data: dict[str, Any], **options: Any) -> Audit:
    asked = {kind: metric for kind, (metric, _) in METRICS.items()}
    return quietly(**{**data, "metrics": asked, "n_resamples": 99, "rng": 5, **options})


def test_pairs_are_as_if_tested_alone(data: dict[str, Any]) -> None:
    rows = list(everything(data))
    asked = list(itertools.product(METRICS, itertools.combinations("xyz", 2)))
    assert [(row.metric, row.groups) for row in rows] == asked
    for row, (kind, pair) in zip(rows, asked, strict=True):
        assert same(row, alone(data, kind, groups=pair)), kind


def test_a_reference_is_the_second_group_of_every_pair(data: dict[str, Any]) -> None:
    rows = list(everything(data, compare="reference", reference="y"))
    asked = list(itertools.product(METRICS, [("x", "y"), ("z", "y")]))
    assert [(row.metric, row.groups) for row in rows] == asked
    for row, (kind, pair) in zip(rows, asked, strict=True):
        assert same(row, alone(data, kind, groups=pair)), kind


def test_the_reference_is_the_largest_group_unless_named() -> None:
    rows = everything(DATA["few scores"], compare="reference")
    assert {row.groups for row in rows} == {("y", "x"), ("z", "x")}


def test_the_rest_are_all_others(data: dict[str, Any]) -> None:
    rows = list(everything(data, compare="rest"))
    asked = list(itertools.product(METRICS, "xyz"))
    assert [(row.metric, row.groups) for row in rows] == [
        (kind, (group, "all others")) for kind, group in asked
    ]
    for row, (kind, group) in zip(rows, asked, strict=True):
        others = np.where(data["sensitive_features"] == group, group, "all others")
        expected = alone(data, kind, sensitive_features=others, groups=(group, "all others"))
        assert same(row, expected), kind


def test_the_rest_have_a_name_that_no_group_has() -> None:
    group = np.where(DATA["few scores"]["sensitive_features"] == "x", "all others", "y")
    group[:100] = "z"
    rows = list(everything(DATA["few scores"], compare="rest", sensitive_features=group))
    assert rows[0].groups == ("all others", "all others*")
    assert rows[0].sizes == ((group == "all others").sum(), (group != "all others").sum())


def test_two_groups_have_no_rest() -> None:
    group = np.where(DATA["few scores"]["sensitive_features"] == "x", "x", "y")
    rows = list(everything(DATA["few scores"], compare="rest", sensitive_features=group))
    assert {row.groups for row in rows} == {("x", "y")}


@pytest.mark.parametrize(
    "options",
    [
        {"alternative": "greater"},
        {"scheme": "pooled"},
        {"variance": "wald"},
        {"variance": None},
        {"confidence_level": 0.8},
        {"n_jobs": 2},
        {"control_features": np.arange(N) % 3},
        {"control_features": np.arange(N) % 2, "stratum_weights": {0: 1, 1: 3}},
        {"cluster": np.arange(N) // 2, "sensitive_features": np.repeat(list("xyz"), N // 3)},
        {"sample_weight": np.arange(N) % 4 + 0.5},
    ],
    ids=lambda options: " ".join(options),
)
def test_options_reach_every_test(options: dict[str, Any]) -> None:
    given = DATA["few scores"]
    rows = quietly(**{**given, "metrics": "fpr", "n_resamples": 99, "rng": 5, **options})
    for row in rows:
        assert same(row, alone(given, "rate", groups=row.groups, **options))


def test_few_scores_with_predictions_of_their_own_and_weights() -> None:
    """Rows that are equal but for what a metric does not read must not change its draws."""
    weight = np.arange(N) % 2 + 1
    rows = quietly(
        **DATA["few scores"],
        metrics=["fpr", "roc_auc", "brier_score"],
        sample_weight=weight,
        n_resamples=99,
        rng=5,
    )
    for row in rows:
        kind = {"false_positive_rate": "rate", "roc_auc": "AUC"}.get(row.metric, "probability")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)
            expected = alone(DATA["few scores"], kind, groups=row.groups, sample_weight=weight)
        assert row.pvalue == expected.pvalue
        assert row.difference == pytest.approx(expected.difference, abs=1e-12)


def test_omnibus_is_as_if_tested_alone(data: dict[str, Any]) -> None:
    for one in everything(data).omnibus:
        metric, column = METRICS[one.metric]
        given = {name: data[name] for name in ("y_true", column, "sensitive_features")}
        expected = omnibus_test(**given, metric=metric, n_resamples=99, rng=5)
        assert one.result is not None
        assert one.result.to_dict() == expected.to_dict(), one.metric


def test_predictions_are_cut_from_scores_if_there_are_none() -> None:
    given = {name: value for name, value in DATA["unique scores"].items() if name != "y_pred"}
    rows = quietly(**given, metrics=["fpr", "roc_auc"], threshold=0.7, n_resamples=99, rng=5)
    for row in rows:
        metric = row.metric
        options: dict[str, Any] = {"threshold": 0.7} if metric != "roc_auc" else {}
        expected = permutation_test(
            **given, metric=metric, groups=row.groups, n_resamples=99, rng=5, **options
        )
        assert same(row, expected)


def test_the_bar_of_a_single_comparison_counts_its_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[bool | None] = []

    def permute(tests: Any, resampling: Any) -> Any:
        shown.append(resampling.progress)
        return run(tests, resampling)

    monkeypatch.setattr(comparisons, "run", permute)
    group = np.tile(["a", "b"], 60)
    for attributes in ({"x": group}, {"x": group, "y": np.repeat(["c", "d"], 60)}):
        audit(
            y_true=np.arange(120) % 3 > 0,
            y_pred=np.arange(120) % 5 > 0,
            sensitive_features=attributes,
            metrics=["balanced_accuracy"],
            n_resamples=99,
            min_group_size=10,
            progress=True,
            rng=1,
        )
    assert shown == [True, False, False]
