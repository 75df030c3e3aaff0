"""A sweep over thresholds, tested, against one sweep of the observed gaps by a NumPy loop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.conftest import Report

SIZES = [10**4, 10**5, 10**6]
DRAWS = 9_999
THRESHOLDS = 101
RATES = ["true_positive_rate", "false_positive_rate"]
_LOOP = "one NumPy sweep of TPR and FPR, no test"
_SWEEPS: dict[str, dict[str, Any]] = {
    "threshold_sweep, TPR and FPR": {"metric": RATES},
    "threshold_sweep, TPR and FPR, 2 threads": {"metric": RATES, "n_jobs": 2},
    "threshold_sweep, PPV": {"metric": "positive_predictive_value"},
    "threshold_sweep, F1": {"metric": "f1_score"},
}


def _data(n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(n)
    y_true = rng.integers(0, 2, n)
    y_score = 1 / (1 + np.exp(-(1.5 * y_true - 0.75 + rng.normal(size=n))))
    return y_true, y_score, rng.integers(0, 2, n)


def _loop(y_true: Any, y_score: Any, group: Any) -> list[list[float]]:
    """Make the gaps of the sample alone: predictions at each threshold, masks and means."""
    gaps = []
    for threshold in np.linspace(0, 1, THRESHOLDS):
        y_pred = y_score >= threshold
        rates = [
            [y_pred[(group == name) & (y_true == label)].mean() for label in (1, 0)]
            for name in (0, 1)
        ]
        gaps.append([first - second for first, second in zip(*rates, strict=True)])
    return gaps


def _sweep(data: tuple[Any, Any, Any], options: dict[str, Any]) -> Any:
    y_true, y_score, group = data
    return threshold_sweep(
        y_true,
        y_score,
        sensitive_features=group,
        thresholds=THRESHOLDS,
        n_resamples=DRAWS,
        rng=0,
        **options,
    )


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@pytest.mark.parametrize("n", SIZES)
def test_sweeps(report: Report, n: int) -> None:
    data = _data(n)
    calls: dict[str, Callable[[], Any]] = {_LOOP: lambda: _loop(*data)}
    for name, options in _SWEEPS.items():
        calls[name] = lambda options=options: _sweep(data, options)  # type: ignore[misc]
    # in turns, so that what else the machine does slows all of them alike
    rounds = [{name: _seconds(call) for name, call in calls.items()} for _ in range(8)]
    for name in calls:
        report.seconds[name, n] = min(one[name] for one in rounds)


def test_sweep_bars(report: Report) -> None:
    for name in list(_SWEEPS)[:2]:
        ratio = report.ratio(name, _LOOP, 10**5)
        report.bar(f"{name} / {_LOOP}, 10⁵ rows", ratio, "≤", 2)
