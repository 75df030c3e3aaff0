"""Functions of the user's own: what a test costs beyond calling them, and two processes at work.

`make bench` runs this file. The bare cost is that of calling the function as often, on samples
of the same size. Every call that a test makes has a bare call beside it, so that whoever else uses
the machine disturbs both alike.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.metrics import f1_score, log_loss, roc_auc_score

import fairperm

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.conftest import Report

N = 10**5
DRAWS = 48
CALLS = 2 * (1 + 2 * DRAWS)  # on both groups: of the sample, of permutations, of bootstrap samples


def f1_of_rows(y_true: Any, y_pred: Any) -> float:
    """Take no weights, so that it must be given rows."""
    return float(f1_score(y_true, y_pred))


def slow(y_true: Any, y_score: Any) -> float:
    """Take about 10 ms on half of the rows."""
    return float(roc_auc_score(y_true, y_score))


def _data(n: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    y_true = rng.integers(0, 2, n)
    y_score = np.clip(rng.normal(0.35 + 0.3 * y_true, 0.2), 0.01, 0.99)
    return {"y_true": y_true, "y_score": y_score, "sensitive_features": rng.integers(0, 2, n)}


def _predicted(data: dict[str, Any]) -> dict[str, Any]:
    return {
        "y_true": data["y_true"],
        "y_pred": (data["y_score"] >= 0.5).astype(int),
        "sensitive_features": data["sensitive_features"],
    }


DATA = _data()
CASES: dict[str, tuple[Callable[..., float], dict[str, Any]]] = {
    "f1_score of rows": (f1_of_rows, _predicted(DATA)),
    "f1_score of counts": (f1_score, _predicted(DATA)),
    "roc_auc_score": (roc_auc_score, DATA),
    "log_loss": (log_loss, DATA),
}


def _test(metric: Any, data: dict[str, Any], draws: int = DRAWS, n_jobs: int = 1) -> Any:
    return fairperm.permutation_test(
        **data, metric=metric, n_resamples=draws, rng=0, n_jobs=n_jobs, progress=False
    )


def _groups(data: dict[str, Any]) -> list[tuple[Any, Any]]:
    y_true, other, group = data.values()
    return [(y_true[group == g], other[group == g]) for g in (0, 1)]


def _bare(metric: Any, data: dict[str, Any], draws: int) -> None:
    """Call the function on both groups: of the sample, of permutations, of bootstrap samples."""
    groups = _groups(data)
    for _ in range(1 + 2 * draws):
        for columns in groups:
            metric(*columns)


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _overhead(metric: Any, data: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds of as many bare calls as a test makes, and those of the test."""
    groups = _groups(data)
    bare: list[float] = []

    @functools.wraps(metric)
    def beside(*columns: Any, **options: Any) -> float:
        bare.append(_seconds(lambda: metric(*groups[len(bare) % 2])))
        return float(metric(*columns, **options))

    whole = _seconds(lambda: _test(beside, data))
    return float(np.mean(bare)) * CALLS, whole - sum(bare)


@pytest.mark.parametrize("name", CASES)
def test_overhead(report: Report, name: str) -> None:
    metric, data = CASES[name]
    _test(metric, data, 2)
    pairs = [_overhead(metric, data) for _ in range(5)]
    bare, ours = sorted(pairs, key=lambda pair: pair[1] / pair[0])[2]  # the median of the ratios
    report.seconds[f"{name}: bare calls", N] = bare
    report.seconds[f"{name}: {DRAWS} draws", N] = ours
    report.bar(f"test / bare calls, {name}, 10⁵ rows", ours / bare, "≤", 1.15)


def test_two_processes(report: Report) -> None:
    draws = 320
    _test(slow, DATA, 64, n_jobs=2)  # starts the processes
    pairs = [
        tuple(_seconds(lambda n=n: _test(slow, DATA, draws, n)) for n in (1, 2))  # type: ignore[misc]
        for _ in range(3)
    ]
    one, two = (min(times) for times in zip(*pairs, strict=True))
    report.seconds[f"slow metric: {draws} draws, one process", N] = one
    report.seconds[f"slow metric: {draws} draws, two processes", N] = two
    alone, together = (
        _seconds(lambda n=n: Parallel(n)(delayed(_bare)(slow, DATA, 4) for _ in range(8)))  # type: ignore[misc]
        for n in (1, 2)
    )
    report.notes.append(f"one process / two for joblib itself: {alone / together:.2f}")
    call = _seconds(lambda: _bare(slow, DATA, 5)) / 22
    report.notes.append(f"one call of the slow metric takes {1000 * call:.1f} ms")
    assert call >= 0.005
    report.bar("one process / two, a function of over 5 ms", one / two, "≥", 1.6)
