"""The test of many groups with bootstrapped variances, of metrics and of functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fairperm import UndefinedMetricError
from tests.support.callables import accuracy, plain_accuracy
from tests.support.omnibus_data import SURE, confused, run, run_two, same_pvalue, scored


def test_fast_bootstrap_of_two_groups_is_the_gap_tests() -> None:
    """Permuted gaps are over the deviation of the gaps: groups vary less by themselves.

    3,999 draws know a variance to 2.2 %, so that two statistics differ by less than five times √2
    of that; p-values of about 0.1 by as much of their slope, and five errors of 0.0067.
    """
    data = scored(400, groups=2, seed=11)
    data["y_score"] += 0.25 * data["y_true"] * (data["sensitive_features"] == 0)
    options: dict[str, Any] = {"variance": "fast_bootstrap", "n_resamples": 3999}
    ours, theirs = run(data, "roc_auc", **options), run_two(data, "roc_auc", **options)
    rel = 5 * math.sqrt(2) * 0.022
    assert ours.statistic == pytest.approx(theirs.statistic**2, rel=rel)
    slope = stats.chi2.pdf(theirs.statistic**2, 1) * theirs.statistic**2
    assert ours.pvalue == pytest.approx(theirs.pvalue, abs=rel * slope + 5 * 0.0067)
    assert 0.02 < theirs.pvalue < 0.3  # where twice the statistic would be seen
    null = stats.ks_2samp(ours.null_distribution, theirs.null_distribution**2)
    assert null.pvalue > SURE


@pytest.mark.parametrize("metric", ["roc_auc", "brier_score"])
def test_fast_bootstrap_is_on_the_scale_of_closed_forms(metric: str) -> None:
    """With the wrong scale (a group's own permuted variance), draws would be a third too large."""
    data = scored(900, groups=3, seed=3)
    if metric == "brier_score":
        data["y_score"] = 1 / (1 + np.exp(-data["y_score"]))
    closed = run(data, metric, n_resamples=1999)
    fast = run(data, metric, variance="fast_bootstrap", n_resamples=1999)
    # 1,999 draws know a variance to 3.2 %; a bootstrap of 300 rows is 1/300 too small
    assert fast.statistic == pytest.approx(closed.statistic, rel=5 * 0.032 + 0.01)
    means = [one.null_distribution.mean() for one in (closed, fast)]
    assert means == pytest.approx([2, 2], abs=5 * 2 / math.sqrt(2000))  # of chi-square on 2


def test_functions_are_tested_as_the_metrics_that_they_compute() -> None:
    data = confused(400, groups=3)
    options: dict[str, Any] = {"variance": "fast_bootstrap", "n_resamples": 499}
    built_in = run(data, "accuracy", scheme="pooled", **options)
    for function in (accuracy, plain_accuracy):
        ours = run(data, function, n_resamples=499)
        assert ours.variance == "fast_bootstrap"
        assert ours.values == pytest.approx(built_in.values)
        # variances of 499 draws are known to 6.3 %: two of them, five deviations
        assert ours.statistic == pytest.approx(built_in.statistic, rel=5 * 0.09)
        null = stats.ks_2samp(np.round(ours.null_distribution, 9), built_in.null_distribution)
        assert null.pvalue > SURE


def test_functions_without_studentizing() -> None:
    data = confused(300, groups=3)
    ours = run(data, accuracy, variance=None, n_resamples=299)
    theirs = run(data, "accuracy", scheme="pooled", variance=None, n_resamples=999)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-10)
    for group in ours.groups:
        errors = ours.standard_errors[group], theirs.standard_errors[group]
        assert errors[0] == pytest.approx(errors[1], rel=5 / math.sqrt(2 * 299))
    same_pvalue(ours, theirs)


def test_functions_in_strata_without_studentizing() -> None:
    data = {**confused(300, groups=3), "control_features": np.arange(300) % 2}
    ours = run(data, accuracy, variance=None, n_resamples=199)
    theirs = run(data, "accuracy", scheme="pooled", variance=None, n_resamples=999)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-10)
    same_pvalue(ours, theirs)


def test_a_group_whose_bootstrap_does_not_vary_is_refused() -> None:
    """It would outweigh all others, and make any difference among them significant."""
    data = confused(200, groups=3)
    data["y_pred"] = np.where(
        data["sensitive_features"] == "v", data["y_true"], data["y_pred"]
    )  # all right in one group
    with pytest.raises(UndefinedMetricError, match="is defined, and not zero"):
        run(data, accuracy, n_resamples=49)
    with pytest.raises(UndefinedMetricError, match="is defined, and not zero"):
        run(data, "accuracy", variance="fast_bootstrap", n_resamples=49)


def test_no_variance_and_no_differences() -> None:
    data = {**confused(60, groups=3), "y_pred": np.ones(60, int)}
    for options in ({}, {"variance": "wald"}, {"variance": "fast_bootstrap"}, {"variance": None}):
        result = run(data, "selection_rate", n_resamples=49, **options)
        assert (result.statistic, result.pvalue) == (0, 1)
    assert run(data, accuracy_of_ones, n_resamples=49).pvalue == 1


def accuracy_of_ones(y_true: Any, y_pred: Any) -> float:
    return 1.0 + 0 * float(np.sum(y_true) + np.sum(y_pred))
