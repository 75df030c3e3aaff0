"""What is wrong with the arguments of a search is said in words, with a way out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairperm

N = 60
Y, P = [0, 1] * 30, [0, 0, 1] * 20
GOOD: dict[str, Any] = {
    "y_true": Y,
    "y_pred": P,
    "features": {"a": ["x", "y", "z"] * 20, "b": list(range(60))},
    "metric": "accuracy",
    "min_rows": 5,
    "n_resamples": 39,
    "rng": 1,
}
LAZY = pl.LazyFrame({"a": Y})
MISSING = [None, *Y[1:]]
CASES: list[tuple[dict[str, Any], str]] = [
    ({"y_true": None}, "y_true must be given"),
    ({"y_true": Y[1:]}, "y_pred must be as long as y_true .59 rows."),
    ({"y_true": MISSING}, "y_true has 1 missing value"),
    ({"y_true": [2, *Y[1:]], "metric": "fpr"}, "y_true must be binary"),
    ({"y_pred": None}, "y_pred must be given"),
    ({"y_pred": P, "threshold": 0.5}, "threshold cannot be used with y_pred"),
    ({"y_pred": P, "y_score": P}, "Pass y_pred or y_score, not both"),
    ({"y_pred": [0.5, *P[1:]]}, "y_pred must be binary"),
    ({"features": None}, "features must be given"),
    ({"features": {}}, "features must have at least one column"),
    ({"features": {"a": ["x"] * N}}, "features must be at least one column of different values"),
    ({"features": {"a": ["x", "y"]}}, "features column 'a' must be as long as"),
    ({"features": "a"}, "features must be a list, a NumPy array"),
    ({"features": {"a": [[1], [2]] * 30}}, "features column 'a' must be made of hashable"),
    ({"features": ["a", "c"], "data": {"a": Y}}, "features must be a column of data"),
    ({"features": {1: Y, "1": Y}}, "features must be columns with different names"),
    ({"features": np.zeros((N, 0))}, "features must have at least one column"),
    ({"metric": "nothing"}, "metric must be one that metric_names"),
    ({"metric": "equalized_odds"}, "metric must be a single metric.*true_positive_rate"),
    (
        {"metric": lambda y_true, y_pred: max(y_true) - max(y_pred)},
        "standard error has a closed form.*register_metric",
    ),
    ({"metric": "expected_calibration_error", "y_pred": None, "y_score": [0.5, 0.2] * 30}, "bias"),
    ({"metric": "roc_auc"}, "y_score must be given for roc_auc"),
    ({"cluster": [1] * N}, "cluster must keep to one group.*rows of 'a = "),
    ({"sample_weight": [0.0] * N}, "sample_weight must be made of numbers above 0"),
    ({"max_depth": 0}, "max_depth must be an integer from 1"),
    ({"max_depth": 1.5}, "max_depth must be an integer"),
    ({"min_rows": 1}, "min_rows must be an integer from 2"),
    ({"min_rows": 31}, "min_rows must be at most .* 60"),
    ({"bands": 1}, "bands must be an integer from 2"),
    ({"alternative": "both"}, "alternative must be one of"),
    ({"adjust": "bonferroni"}, "adjust must be one of 'maxt', 'holm', 'bh', 'by'"),
    ({"adjust": None}, "adjust must be one of"),
    ({"alpha": 5}, "alpha must be .* Did you mean 0.05"),
    ({"confirm": 1}, "confirm must be a number strictly between 0 and 1"),
    ({"confirm": True}, "confirm must be a number strictly between 0 and 1"),
    ({"n_resamples": 0}, "n_resamples must be an integer from 1"),
    ({"n_jobs": 0}, "n_jobs must be"),
    ({"rng": -1}, "rng must be"),
    ({"features": ["a", "c"], "data": LAZY}, "features must be a column of data"),
    ({"features": {"a": Y}, "data": LAZY}, "features must be names of columns of the lazy frame"),
    ({"score_bins": 9}, "score_bins is for lazy frames"),
    ({"missing": "skip"}, "missing must be one of"),
    (
        {"y_true": pd.Series(Y), "features": {"a": pd.Series(P, index=range(1, N + 1))}},
        "features .* index",
    ),
    ({"n_resamples": 4_000_000}, "at most 5 subgroups.*Raise min_rows.*max_depth.*bands.*features"),
]


@pytest.mark.parametrize(("change", "message"), CASES)
def test_bad_arguments_are_named(change: dict[str, Any], message: str) -> None:
    arguments = {**GOOD, **change}
    with pytest.raises((fairperm.InputError, fairperm.InputTypeError), match=f"(?s){message}"):
        fairperm.find_subgroups(**arguments)


def test_subgroups_of_too_many_combinations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairperm.subgroups.candidates.MAX_MEMBERS", 100)
    with pytest.raises(fairperm.InputError, match=r"at most 100 distinct.*min_rows"):
        fairperm.find_subgroups(**GOOD)


def test_too_few_permutations_are_warned_of() -> None:
    with pytest.warns(fairperm.FairpermWarning, match="19 permutations cannot find a single one"):
        result = fairperm.find_subgroups(**{**GOOD, "n_resamples": 19})
    assert len(result.notes) == 1
    with pytest.warns(fairperm.FairpermWarning, match=r"adjust='bh'\. Use n_resamples="):
        fairperm.find_subgroups(**{**GOOD, "adjust": "bh"})
