"""The change of a rate between two models of a million rows, against the test of one model.

`make bench` runs this file. The test of one model needs no draws. That of a change stops drawing
where chance explains the change; a clear change takes all draws, and up to 3.5 times as long as the
test of one model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import fairperm
from fairperm.inference import unconditional

if TYPE_CHECKING:
    from benchmarks.conftest import Report

N = 10**6


def _data() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(N)
    label = rng.integers(0, 2, N)
    old = rng.random(N) < np.where(label == 1, 0.8, 0.3)
    return label, old, old ^ (rng.random(N) < 0.05), rng.integers(0, 2, N)


def _time(benchmark: Any, report: Report, name: str, call: Any) -> None:
    def fresh() -> Any:
        for remembered in (unconditional._pvalue, unconditional._critical, unconditional.log_ways):
            remembered.cache_clear()
        return call()

    benchmark.pedantic(fresh, rounds=30, warmup_rounds=1)
    report.seconds[name, N] = benchmark.stats.stats.min


def test_one_model(benchmark: Any, report: Report) -> None:
    label, old, _, group = _data()
    options: dict[str, Any] = {"metric": "fnr", "rng": 0}
    _time(
        benchmark,
        report,
        "permutation_test of a rate",
        lambda: fairperm.permutation_test(label, old, sensitive_features=group, **options),
    )


def test_two_models(benchmark: Any, report: Report) -> None:
    label, old, new, group = _data()
    options: dict[str, Any] = {"metric": "fnr", "rng": 0}
    _time(
        benchmark,
        report,
        "compare_models of a rate",
        lambda: fairperm.compare_models(label, old, new, sensitive_features=group, **options),
    )


def test_a_clear_change(benchmark: Any, report: Report) -> None:
    label, old, new, group = _data()
    options: dict[str, Any] = {"metric": "fnr", "rng": 0, "sensitive_features": group}
    new = np.where((group == 1) | (np.arange(N) % 2 == 1), new, old)
    _time(
        benchmark,
        report,
        "compare_models of a rate, a clear change",
        lambda: fairperm.compare_models(label, old, new, **options),
    )


def test_two_periods(benchmark: Any, report: Report) -> None:
    label, old, new, group = _data()
    options: dict[str, Any] = {"metric": "fnr", "rng": 0, "period": new}
    _time(
        benchmark,
        report,
        "compare_periods of a rate",
        lambda: fairperm.compare_periods(label, old, sensitive_features=group, **options),
    )


def test_cost_of_two_models(report: Report) -> None:
    ratio = report.ratio("compare_models of a rate", "permutation_test of a rate", N)
    report.bar("compare_models / permutation_test, a rate of 10⁶ rows", ratio, "≤", 3)
