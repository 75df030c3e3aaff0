"""Runs of the test of many groups, and the data they are of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fairperm
from fairperm import FairpermWarning, omnibus_test

TIE = 1e-9
SURE = 1e-4  # of a comparison of Monte Carlo numbers: how seldom a right one fails


def run(data: dict[str, Any], metric: Any, **options: Any) -> fairperm.OmnibusTestResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)  # of small groups and undefined draws
        return omnibus_test(**data, **{"metric": metric, "rng": 1, "progress": False, **options})


def run_two(data: dict[str, Any], metric: Any, **options: Any) -> fairperm.PermutationTestResult:
    """Return the test that compares |S|, whose square is the omnibus statistic."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        options = {"metric": metric, "rng": 1, "progress": False, **options}
        options["alternative"] = "symmetric"
        return fairperm.permutation_test(**data, **options)


def confused(n: int = 600, groups: int = 5, seed: int = 1) -> dict[str, Any]:
    """Return labels and predictions of groups with unequal sizes and base rates."""
    rng = np.random.default_rng(seed)
    chance = np.arange(1, groups + 1) / np.arange(1, groups + 1).sum()
    group = rng.choice(groups, n, p=chance)
    y = rng.random(n) < 0.2 + 0.6 * group / groups
    return {
        "y_true": y.astype(int),
        "y_pred": (rng.random(n) < np.where(y, 0.75, 0.3)).astype(int),
        "sensitive_features": np.array(list("vwxyz"))[group],
    }


def scored(n: int = 300, groups: int = 3, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return {
        "y_true": y,
        "y_score": rng.normal(y),
        "sensitive_features": rng.integers(groups, size=n),
    }


def numbers(n: int = 300, groups: int = 3, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    pred = y + rng.normal(size=n)
    return {"y_true": y, "y_pred": pred, "sensitive_features": rng.integers(groups, size=n)}


def agree(ours: Any, theirs: Any, rel: float = 1e-9) -> None:
    """Compare statistics and errors exactly, p-values as samples of one binomial."""
    assert ours.statistic == pytest.approx(theirs.statistic**2, rel=rel)
    assert ours.values == theirs.values or ours.values == pytest.approx(theirs.values, rel=1e-12)
    for group in ours.groups:
        assert ours.standard_errors[group] == pytest.approx(theirs.standard_errors[group], rel=1e-9)
    same_pvalue(ours, theirs)


def same_pvalue(ours: Any, theirs: Any) -> None:
    extremes = round(ours.pvalue * (ours.n_resamples + 1)) - 1
    if getattr(theirs, "exact", False):
        assert stats.binomtest(extremes, ours.n_resamples, theirs.pvalue).pvalue > SURE
        return
    others = round(theirs.pvalue * (theirs.n_resamples + 1)) - 1
    table = [[extremes, ours.n_resamples - extremes], [others, theirs.n_resamples - others]]
    assert stats.fisher_exact(table).pvalue > SURE
