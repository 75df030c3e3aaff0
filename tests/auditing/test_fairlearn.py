"""Audits as users of Fairlearn and scikit-learn write them, against Fairlearn's own numbers."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fairlearn
from sklearn import metrics as sklearn

from fairperm import Audit, FairpermWarning, audit
from fairperm.metrics import get_metric

N = 500
RNG = np.random.default_rng(11)
FRAME = pd.DataFrame(
    {
        "label": RNG.integers(0, 2, N),
        "sex": RNG.choice(["Female", "Male"], N),
        "race": RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2]),
        "weight": RNG.choice([0.5, 1.0, 2.5], N),
    }
)
FRAME["score"] = 1 / (1 + np.exp(-(FRAME["label"] * 2 - 1 + RNG.normal(size=N))))
FRAME["prediction"] = (FRAME["score"] > 0.4).astype(int)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "selection rate": fairlearn.selection_rate,
    "FPR": fairlearn.false_positive_rate,
    "recall": sklearn.recall_score,
    "F2": functools.partial(sklearn.fbeta_score, beta=2),
    "accuracy": sklearn.accuracy_score,
}
OURS = {  # by name, the function of theirs that it must equal
    "selection_rate": fairlearn.selection_rate,
    "true_positive_rate": fairlearn.true_positive_rate,
    "false_negative_rate": fairlearn.false_negative_rate,
    "true_negative_rate": fairlearn.true_negative_rate,
    "false_positive_rate": fairlearn.false_positive_rate,
    "positive_predictive_value": sklearn.precision_score,
    "accuracy": sklearn.accuracy_score,
    "error_rate": sklearn.zero_one_loss,
    "balanced_accuracy": sklearn.balanced_accuracy_score,
    "f1_score": sklearn.f1_score,
    "matthews_corrcoef": sklearn.matthews_corrcoef,
    "mean_squared_error": sklearn.mean_squared_error,
}


def run(metrics: Any, **options: Any) -> Audit:
    given: dict[str, Any] = {
        "y_true": FRAME["label"],
        "y_pred": FRAME["prediction"],
        "sensitive_features": FRAME[["sex", "race"]],
        "n_resamples": 2,  # theirs take a millisecond each, and only values are looked at
        "rng": 1,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)  # so few resamples
        return audit(**{**given, **options}, metrics=metrics)


def frame_of(functions: Mapping[str, Any], features: Any, column: str = "prediction") -> Any:
    return fairlearn.MetricFrame(
        metrics=dict(functions),
        y_true=FRAME["label"],
        y_pred=FRAME[column],
        sensitive_features=features,
    ).by_group


def check(rows: Audit, functions: Mapping[str, Any], column: str = "prediction") -> None:
    """Check every value against MetricFrame's table of the same groups."""
    tables = {
        "sex": frame_of(functions, FRAME["sex"], column),
        "race": frame_of(functions, FRAME["race"], column),
        "sex × race": frame_of(functions, FRAME[["sex", "race"]], column),
    }
    assert len(rows) > 0
    for row in rows:
        expected = [tables[row.attribute].loc[group, row.metric] for group in row.groups]
        assert row.values == pytest.approx(expected)
        assert row.difference == pytest.approx(expected[0] - expected[1])


def test_a_dict_of_functions_and_a_frame_of_features() -> None:
    rows = run(FUNCTIONS)
    assert [row.metric for row in rows if row.attribute == "sex"] == list(FUNCTIONS)
    check(rows, FUNCTIONS)


def test_metrics_by_name_are_theirs() -> None:
    check(run(list(OURS), intersections=True), OURS)


def test_scores_by_name_are_theirs() -> None:
    functions = {
        "roc_auc": sklearn.roc_auc_score,
        "brier_score": sklearn.brier_score_loss,
        "log_loss": sklearn.log_loss,
    }
    rows = run(list(functions), y_pred=None, y_score=FRAME["score"])
    check(rows, functions, "score")


def test_functions_of_predictions_and_of_scores_side_by_side() -> None:
    """The name of the second parameter decides: precision_score(y_pred), roc_auc_score(y_score)."""
    functions = {"precision": sklearn.precision_score, "AUC": sklearn.roc_auc_score}
    rows = run({**functions, "named": "roc_auc"}, y_score=FRAME["score"])
    check(rows.where(metric="precision"), {"precision": sklearn.precision_score})
    check(rows.where(metric="AUC"), {"AUC": sklearn.roc_auc_score}, "score")
    named = {(row.attribute, row.groups): row.values for row in rows.where(metric="named")}
    for row in rows.where(metric="AUC"):
        assert named[row.attribute, row.groups] == pytest.approx(row.values)


@pytest.mark.parametrize("sequence", [list, tuple])
def test_functions_without_names_of_their_own(sequence: Any) -> None:
    rows = run(sequence([FUNCTIONS["selection rate"], FUNCTIONS["F2"]]))
    assert rows.settings["metrics"] == ["selection_rate", "fbeta_score"]


def test_one_function() -> None:
    rows = run(sklearn.recall_score)
    check(rows, {"recall_score": sklearn.recall_score})


def test_weights_reach_their_functions() -> None:
    functions = {
        "selection rate": fairlearn.selection_rate,
        "FPR": fairlearn.false_positive_rate,
        "accuracy": sklearn.accuracy_score,
    }
    frame = fairlearn.MetricFrame(
        metrics=functions,
        y_true=FRAME["label"],
        y_pred=FRAME["prediction"],
        sensitive_features=FRAME["race"],
        sample_params={name: {"sample_weight": FRAME["weight"]} for name in functions},
    )
    rows = run(functions, sensitive_features=FRAME["race"], sample_weight=FRAME["weight"])
    for row in rows:
        expected = [frame.by_group.loc[group, row.metric] for group in row.groups]
        assert row.values == pytest.approx(expected)
    unweighted = run(functions, sensitive_features=FRAME["race"])
    assert any(
        row.values != pytest.approx(other.values)
        for row, other in zip(rows, unweighted, strict=True)
    )


def test_control_features_are_conditional_as_theirs() -> None:
    """Of conditional groups, the gap is the mean of MetricFrame's gaps, weighted as asked."""
    frame = fairlearn.MetricFrame(
        metrics=fairlearn.selection_rate,
        y_true=FRAME["label"],
        y_pred=FRAME["prediction"],
        sensitive_features=FRAME["sex"],
        control_features=FRAME["race"],
    ).by_group
    weights = {"a": 1, "b": 2, "c": 5}
    (row,) = run(
        "selection_rate",
        sensitive_features=FRAME["sex"],
        control_features=FRAME["race"],
        stratum_weights=weights,
    )
    gaps = {race: frame[race, "Female"] - frame[race, "Male"] for race in weights}
    expected = sum(weights[race] * gaps[race] for race in weights) / 8
    assert row.difference == pytest.approx(expected)


def test_positive_labels_are_fixed_by_partial() -> None:
    words = FRAME[["label", "prediction"]].replace({0: "no", 1: "yes"})
    recall = functools.partial(sklearn.recall_score, pos_label="yes")
    rows = run({"recall": recall}, y_true=words["label"], y_pred=words["prediction"])
    expected = run({"recall": sklearn.recall_score})
    assert [row.values for row in rows] == [row.values for row in expected]
    named = run(
        {"recall": "recall"}, y_true=words["label"], y_pred=words["prediction"], pos_label="yes"
    )
    for row, other in zip(named, expected, strict=True):
        assert row.values == pytest.approx(other.values)


def test_differences_are_those_of_a_metric_frame() -> None:
    frame = fairlearn.MetricFrame(
        metrics=fairlearn.selection_rate,
        y_true=FRAME["label"],
        y_pred=FRAME["prediction"],
        sensitive_features=FRAME["race"],
    )
    rows = run("selection_rate", sensitive_features=FRAME["race"])
    largest = max(abs(row.difference or 0.0) for row in rows)
    assert largest == pytest.approx(frame.difference())
    smallest = min(min(row.ratio or 0.0, 1 / (row.ratio or 1.0)) for row in rows)
    assert smallest == pytest.approx(frame.ratio())


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("demographic_parity_difference", "selection_rate"),
        ("equal_opportunity_difference", "true_positive_rate"),
        ("equalized_odds_difference", "equalized_odds"),
    ],
)
def test_their_names_of_differences_are_aliases(name: str, metric: str) -> None:
    assert hasattr(fairlearn, name)
    assert get_metric(name) is get_metric(metric)
