"""What an audit costs against its dearest metric, and against its tests one by one.

Of twelve metrics and five groups, against one AUC test for each pair of groups and against an audit
of the AUC alone; of eight errors of two groups, all of which exchange the same labels; and of rates
of a few thousand rows, whose unconditional tests are the dearest part.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import fairperm
from fairperm.hypothesis_tests.margins import restricted_rates
from fairperm.inference import unconditional

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.conftest import Report

N = 10**6
DRAWS = 999
GROUPS = "abcde"
REMEMBERED = (
    *(unconditional._pvalue, unconditional._critical),
    *(restricted_rates._difference_interval, restricted_rates._ratio_interval),
)
TABLE_METRICS = [
    *("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy"),
    *("positive_predictive_value", "negative_predictive_value", "f1_score"),
    *("balanced_accuracy", "jaccard_score", "matthews_corrcoef", "base_rate"),
]
METRICS = ["roc_auc", *TABLE_METRICS]
ERRORS = [
    *("mean_error", "mean_absolute_error", "mean_squared_error", "root_mean_squared_error"),
    *("r2_score", "mean_absolute_percentage_error", "mean_prediction", "mean_outcome"),
]
PAIRS = list(itertools.combinations(GROUPS, 2))


def _data() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    group = rng.choice(list(GROUPS), N, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    y_true = (rng.random(N) < 0.3 + 0.1 * (group == "a")).astype(np.int64)
    y_score = 1 / (1 + np.exp(-(1.8 * y_true - 0.9 + rng.normal(size=N))))
    return {"y_true": y_true, "y_score": y_score, "sensitive_features": group}


def _seconds(call: Callable[[int], Any]) -> float:
    start = time.perf_counter()
    call(DRAWS)
    return time.perf_counter() - start


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few resamples
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_audit(report: Report, n_jobs: int) -> None:
    threads = f"{n_jobs} thread{'s' * (n_jobs - 1)}"
    alone, whole = f"one AUC test for each of 10 pairs, {threads}", f"audit, {threads}"
    dearest = f"audit of the AUC alone, {threads}"
    data = {**_data(), "n_jobs": n_jobs, "rng": 0}
    calls: dict[str, Callable[[int], Any]] = {
        alone: lambda draws: [
            fairperm.permutation_test(**data, metric="roc_auc", groups=pair, n_resamples=draws)
            for pair in PAIRS
        ],
        whole: lambda draws: fairperm.audit(**data, metrics=METRICS, n_resamples=draws),
        dearest: lambda draws: fairperm.audit(**data, metrics="roc_auc", n_resamples=draws),
        f"audit of the 11 metrics of a confusion table, {threads}": lambda draws: fairperm.audit(
            **data, metrics=TABLE_METRICS, n_resamples=draws
        ),
        f"audit with brier_score as a 13th metric, {threads}": lambda draws: fairperm.audit(
            **data, metrics=[*METRICS, "brier_score"], n_resamples=draws
        ),
    }
    _measure(report, calls)
    ratio = report.ratio(whole, alone, N)
    claim = f"audit of 12 metrics, 5 groups, all pairs / one AUC test for each pair, {threads}"
    report.bar(claim, ratio, "≤", 3)
    claim = f"audit of 12 metrics, 5 groups, all pairs / audit of its dearest metric, {threads}"
    report.bar(claim, report.ratio(whole, dearest, N), "≤", 1.5)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few resamples
def test_audit_of_errors(report: Report) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.normal(5, 1, N)
    data: dict[str, Any] = {
        "y_true": y_true,
        "y_pred": y_true + rng.normal(size=N),
        "sensitive_features": rng.choice(["a", "b"], N, p=[0.7, 0.3]),
        "n_jobs": 2,
        "rng": 0,
    }
    alone, whole = f"the {len(ERRORS)} tests one by one", f"audit of {len(ERRORS)} errors"
    calls: dict[str, Callable[[int], Any]] = {
        alone: lambda draws: [
            fairperm.permutation_test(**data, metric=metric, n_resamples=draws) for metric in ERRORS
        ],
        whole: lambda draws: fairperm.audit(**data, metrics=ERRORS, n_resamples=draws),
    }
    _measure(report, calls)
    claim = f"audit of {len(ERRORS)} errors, 2 groups / the same tests one by one, 2 threads"
    report.bar(claim, report.ratio(whole, alone, N), "≤", 1)


def test_small_audit(report: Report) -> None:
    """Rates of a few thousand rows: the default test, and the conditional one."""
    rng, n = np.random.default_rng(0), 7000
    y_true = rng.integers(0, 2, n)
    data: dict[str, Any] = {
        "y_true": y_true,
        "y_pred": rng.random(n) < np.where(y_true == 1, 0.7, 0.3),
        "sensitive_features": rng.choice(list("abcdef"), n, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01]),
        "metrics": TABLE_METRICS[:6],
        "rng": 0,
    }
    names = {one: f"audit of 90 rates, {one}" for one in ("unconditional", "denominator")}
    seconds: dict[str, list[float]] = {one: [] for one in names}
    for _ in range(4):
        for scheme, found in seconds.items():
            for remembered in REMEMBERED:
                remembered.cache_clear()
            start = time.perf_counter()
            fairperm.audit(**data | {"scheme": scheme})
            found.append(time.perf_counter() - start)
    for scheme, name in names.items():
        report.seconds[name, n] = min(seconds[scheme])
    claim = "audit of 90 rates of 7,000 rows, unconditional / conditional tests"
    ratio = report.ratio(names["unconditional"], names["denominator"], n)
    report.bar(claim, ratio, "≤", 3)


def _measure(report: Report, calls: dict[str, Callable[[int], Any]]) -> None:
    """Record the shortest of three times of every call."""
    for call in calls.values():  # kernels are compiled the first time
        call(9)
    # in turns, so that what else the machine does slows all of them alike
    rounds = [{name: _seconds(call) for name, call in calls.items()} for _ in range(3)]
    for name in calls:
        report.seconds[name, N] = min(one[name] for one in rounds)
