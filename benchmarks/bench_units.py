"""The gap in the AUC and in the mean squared error, studentized: 999 permutations of rows.

Loops are timed for a few draws and multiplied up; their names are marked with ~.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import mean_squared_error, roc_auc_score

import fairperm
from benchmarks import before_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.conftest import Report

SIZES = [10**3, 10**4, 10**5, 10**6, 10**7]
DRAWS = 999
_FEW = {10**3: 50, 10**4: 20, 10**5: 5, 10**6: 2, 10**7: 1}


def _data(n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(n)
    y_true = rng.integers(0, 2, n)
    return y_true, 0.9 * y_true + rng.normal(size=n), (rng.random(n) < 0.3).astype(np.int64)


def _auc_test(data: tuple[Any, Any, Any], n_jobs: int, draws: int = DRAWS) -> Any:
    y_true, y_score, group = data
    return fairperm.permutation_test(
        y_true,
        y_score=y_score,
        sensitive_features=group,
        metric="roc_auc",
        scheme="pooled",
        n_resamples=draws,
        n_jobs=n_jobs,
        rng=0,
    )


def _mse_test(data: tuple[Any, Any, Any], n_jobs: int) -> Any:
    y_true, y_pred, group = data
    return fairperm.permutation_test(
        y_true,
        y_pred,
        sensitive_features=group,
        metric="mean_squared_error",
        n_resamples=DRAWS,
        n_jobs=n_jobs,
        rng=0,
    )


def _loop(data: tuple[Any, Any, Any], metric: Callable[..., float], draws: int) -> None:
    y_true, y_score, group = data
    rng = np.random.default_rng(0)
    for _ in range(draws):
        shuffled = rng.permutation(group)
        for g in (0, 1):
            metric(y_true[shuffled == g], y_score[shuffled == g])


def _rank_auc(y_true: Any, y_score: Any) -> float:
    ranks = stats.rankdata(y_score)
    m = np.count_nonzero(y_true)
    wins = ranks[y_true == 1].sum() - m * (m + 1) / 2
    return float(wins / (m * (len(y_true) - m)))


def _scipy_test(data: tuple[Any, Any, Any], draws: int) -> None:
    y_true, y_score, group = data

    def gap(group: Any) -> float:
        first, second = (_rank_auc(y_true[group == g], y_score[group == g]) for g in (0, 1))
        return first - second

    stats.permutation_test((group,), gap, permutation_type="pairings", n_resamples=draws, rng=0)


def _generate(n: int, draws: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(draws):
        rng.permutation(n)


def _time(
    benchmark: Any, report: Report, name: str, n: int, call: Callable[[], Any], scale: float = 1.0
) -> None:
    benchmark.pedantic(call, rounds=1 if scale > 1 else 3, warmup_rounds=0 if scale > 1 else 1)
    report.seconds[name, n] = benchmark.stats.stats.min * scale


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fairperm_auc(benchmark: Any, report: Report, n: int, n_jobs: int) -> None:
    data = _data(n)
    name = f"fairperm AUC, {n_jobs} thread{'s' * (n_jobs - 1)}"
    _time(benchmark, report, name, n, lambda: _auc_test(data, n_jobs))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fairperm_mse(benchmark: Any, report: Report, n: int, n_jobs: int) -> None:
    data = _data(n)
    name = f"fairperm MSE, {n_jobs} thread{'s' * (n_jobs - 1)}"
    _time(benchmark, report, name, n, lambda: _mse_test(data, n_jobs))


def test_ten_times_the_permutations(benchmark: Any, report: Report) -> None:
    n = 10**6
    data = _data(n)
    name = "fairperm AUC, 1 thread, 9,990 permutations"
    _time(benchmark, report, name, n, lambda: _auc_test(data, 1, 10 * DRAWS))


@pytest.mark.parametrize(
    ("name", "n", "call"),
    [
        *(
            ("~ scikit-learn loop, AUC", n, lambda data, draws: _loop(data, roc_auc_score, draws))
            for n in SIZES
        ),
        *(
            (
                "~ scikit-learn loop, MSE",
                n,
                lambda data, draws: _loop(data, mean_squared_error, draws),
            )
            for n in SIZES
        ),
        *(
            ("~ rankdata loop, AUC", n, lambda data, draws: _loop(data, _rank_auc, draws))
            for n in SIZES
        ),
        # one of its draws of 10⁷ rows takes minutes
        *(("~ scipy.stats.permutation_test, AUC", n, _scipy_test) for n in SIZES[:-1]),
        *(
            (
                "~ NumPy, only generating permutations",
                n,
                lambda data, draws: _generate(len(data[0]), draws),
            )
            for n in SIZES
        ),
    ],
)
def test_loops(
    benchmark: Any, report: Report, name: str, n: int, call: Callable[[Any, int], None]
) -> None:
    data = _data(n)
    _time(benchmark, report, name, n, lambda: call(data, _FEW[n]), DRAWS / _FEW[n])


def test_speed_bars(report: Report) -> None:
    n = 10**6
    for metric in ("AUC", "MSE"):
        ours = f"fairperm {metric}, 2 threads"
        loop = report.ratio("~ scikit-learn loop, AUC", ours, n)
        report.bar(f"scikit-learn AUC loop / {ours}, 10⁶ rows", loop, "≥", 600)
        generate = report.ratio("~ NumPy, only generating permutations", ours, n)
        report.bar(f"generating 999 permutations / {ours}, 10⁶ rows", generate, "≥", 20)
    times = [report.seconds["fairperm AUC, 1 thread", n] for n in SIZES[2:]]
    growth = float(np.polyfit(np.log(SIZES[2:]), np.log(times), 1)[0])
    report.bar("growth exponent of AUC in rows, 10⁵ to 10⁷", growth, "≤", 1.1)
    tenfold = report.seconds["fairperm AUC, 1 thread, 9,990 permutations", n]
    ratio = tenfold / report.seconds["fairperm AUC, 1 thread", n]
    report.bar("time of ten times the permutations, in times", ratio, "≤", 10.5)


_START = """
import time
start = time.perf_counter()
import numpy as np, fairperm
rng = np.random.default_rng(0)
fairperm.permutation_test(
    np.arange(500) % 2, y_score=rng.random(500), sensitive_features=np.arange(500) % 3 // 2,
    metric="roc_auc", n_resamples=999,
)
print(time.perf_counter() - start)
"""


def _printed(script: str, cache: Path) -> float:
    command, environment = [sys.executable, "-c", script], {"NUMBA_CACHE_DIR": str(cache)}
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(run.stdout)


def test_memory_bar(report: Report) -> None:
    for figure in before_after.FIGURES:
        if figure.startswith("peak memory"):
            source = before_after.ROOT / "src"
            report.bar(figure, before_after.measure(figure, source), "≤", 3)


def test_start_bar(report: Report) -> None:
    with tempfile.TemporaryDirectory() as cache:
        first = _printed(_START, Path(cache))
        report.notes.append(f"First AUC test on a machine, compiling its kernels: {first:.1f} s")
        second = min(_printed(_START, Path(cache)) for _ in range(3))
    report.bar("seconds of a small AUC test in a new process, kernels cached", second, "≤", 1.5)
