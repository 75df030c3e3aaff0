"""The gap in the false negative rate: one call against the loops people write.

`make bench` runs this file. A loop that would take hours is timed for a few draws, and its
time multiplied up to 9,999; its name is then marked with ~.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import recall_score

import fairperm
from fairperm.inference import unconditional

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.conftest import Report

SIZES = [10**3, 10**4, 10**5, 10**6, 10**7]
DRAWS = 9_999
_FEW = {10**3: 200, 10**4: 50, 10**5: 10, 10**6: 3, 10**7: 1}


def _data(n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(n)
    y_true = rng.integers(0, 2, n)
    y_pred = rng.random(n) < np.where(y_true == 1, 0.8, 0.3)
    return y_true, y_pred, rng.integers(0, 2, n)


def _rates(y_true: Any, y_pred: Any, group: Any, names: tuple[Any, Any] = (0, 1)) -> list[float]:
    """Make the NumPy pass: a mask of the group's positives, and the mean of their predictions."""
    return [1 - y_pred[(group == name) & (y_true == 1)].mean() for name in names]


def _counted_rates(y_true: Any, y_pred: Any, group: Any) -> list[float]:
    """Make the fastest pass we know in NumPy: masks and counts only."""
    rates: list[float] = []
    for name in (0, 1):
        positives = (group == name) & (y_true == 1)
        rates.append(1 - np.count_nonzero(positives & y_pred) / np.count_nonzero(positives))
    return rates


def _numpy_loop(y_true: Any, y_pred: Any, group: Any, draws: int) -> float:
    rng = np.random.default_rng(0)
    first, second = _rates(y_true, y_pred, group)
    observed = abs(first - second)
    shuffled = (_rates(y_true, y_pred, rng.permutation(group)) for _ in range(draws))
    return float(np.mean([abs(a - b) >= observed for a, b in shuffled]))


def _sklearn_loop(y_true: Any, y_pred: Any, group: Any, draws: int) -> float:
    rng = np.random.default_rng(0)

    def gap(group: Any) -> float:
        first, second = (recall_score(y_true[group == g], y_pred[group == g]) for g in (0, 1))
        return float(first - second)

    observed = abs(gap(group))
    return float(np.mean([abs(gap(rng.permutation(group))) >= observed for _ in range(draws)]))


def _scipy_test(y_true: Any, y_pred: Any, group: Any, draws: int) -> float:
    def gap(group: Any) -> float:
        first, second = _rates(y_true, y_pred, group)
        return first - second

    result = stats.permutation_test(
        (group,), gap, permutation_type="pairings", n_resamples=draws, rng=0
    )
    return float(result.pvalue)


def _test(y_true: Any, y_pred: Any, group: Any, **options: Any) -> Any:
    """Test one data set, without what an earlier test of the same table has left in memory."""
    for remembered in (unconditional._pvalue, unconditional._critical, unconditional.log_ways):
        remembered.cache_clear()
    return fairperm.permutation_test(
        y_true,
        y_pred,
        sensitive_features=group,
        metric="false_negative_rate",
        n_resamples=DRAWS,
        rng=0,
        **options,
    )


def _time(
    benchmark: Any,
    report: Report,
    name: str,
    n: int,
    call: Callable[[], Any],
    scale: float = 1.0,
) -> None:
    rounds = 1 if scale > 1 else max(3, min(50, 10**7 // n))
    benchmark.pedantic(call, rounds=rounds, warmup_rounds=0 if scale > 1 else 1)
    report.seconds[name, n] = benchmark.stats.stats.min * scale


@pytest.mark.parametrize("n", SIZES)
def test_one_numpy_pass(benchmark: Any, report: Report, n: int) -> None:
    data = _data(n)
    _time(benchmark, report, "one NumPy pass (mask, mean)", n, lambda: _rates(*data))


@pytest.mark.parametrize("n", SIZES)
def test_one_counting_pass(benchmark: Any, report: Report, n: int) -> None:
    data = _data(n)
    _time(benchmark, report, "one NumPy pass (mask, count)", n, lambda: _counted_rates(*data))


@pytest.mark.parametrize("n", SIZES)
def test_fairperm(benchmark: Any, report: Report, n: int) -> None:
    data = _data(n)
    _time(benchmark, report, "fairperm (default)", n, lambda: _test(*data))


@pytest.mark.parametrize("n", SIZES)
def test_fairperm_pooled(benchmark: Any, report: Report, n: int) -> None:
    data = _data(n)
    _time(benchmark, report, "fairperm (pooled)", n, lambda: _test(*data, scheme="pooled"))


@pytest.mark.parametrize("kind", ["U", "object"])
def test_string_groups(benchmark: Any, report: Report, kind: str) -> None:
    n = 10**6
    y_true, y_pred, group = _data(n)
    names = np.array(["female", "male"])[group].astype(kind)
    _time(
        benchmark, report, f"fairperm (default), {kind} groups", n,
        lambda: _test(y_true, y_pred, names),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["U", "object"])
def test_one_numpy_pass_of_strings(benchmark: Any, report: Report, kind: str) -> None:
    n = 10**6
    y_true, y_pred, group = _data(n)
    names = np.array(["female", "male"])[group].astype(kind)
    _time(
        benchmark, report, f"one NumPy pass (mask, mean), {kind} groups", n,
        lambda: _rates(y_true, y_pred, names, ("female", "male")),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "loop", "n"),
    [
        *(("~ NumPy loop", _numpy_loop, n) for n in SIZES),
        *(("~ scikit-learn loop", _sklearn_loop, n) for n in SIZES),
        # one of its draws of 10⁷ rows takes minutes
        *(("~ scipy.stats.permutation_test", _scipy_test, n) for n in SIZES[:-1]),
    ],
)
def test_loops(
    benchmark: Any,
    report: Report,
    name: str,
    loop: Callable[..., float],
    n: int,
) -> None:
    data = _data(n)
    _time(benchmark, report, name, n, lambda: loop(*data, _FEW[n]), DRAWS / _FEW[n])


def test_speed_bars(report: Report) -> None:
    n = 10**6
    report.bar(
        "default test / one NumPy pass (mask, mean), 10⁶ rows",
        report.ratio("fairperm (default)", "one NumPy pass (mask, mean)", n),
        "≤",
        1.5,
    )
    for kind in ("U", "object"):
        report.bar(
            f"the same, {kind} groups",
            report.ratio(
                f"fairperm (default), {kind} groups",
                f"one NumPy pass (mask, mean), {kind} groups",
                n,
            ),
            "≤",
            2,
        )
    loop_of_999 = report.seconds["~ NumPy loop", n] * 999 / DRAWS
    speedup = loop_of_999 / report.seconds["fairperm (default)", n]
    report.bar("NumPy loop of 999 draws / default test, 10⁶ rows", speedup, "≥", 500)


def test_denominators_bar(report: Report) -> None:
    """The whole test: counting 20,000 rows, the p-value and the interval."""
    n = 10**4
    selected, group = np.repeat([1, 0, 1, 0], [3000, 7000, 3130, 6870]), np.repeat([0, 1], n)
    data = np.ones(2 * n, np.int64), selected, group

    def seconds() -> float:
        start = time.process_time()
        _test(*data)
        return time.process_time() - start

    fastest = min(seconds() for _ in range(20))
    report.bar("CPU seconds for a rate with denominators of 10⁴ and 10⁴", fastest, "≤", 0.02)


_MEMORY = """
import re, numpy as np, fairperm
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
small = np.arange(10) % 2
fairperm.permutation_test(small, small, sensitive_features=[0] * 5 + [1] * 5, metric="accuracy")
before = peak()
n = 10**7
y_true = np.empty(n, np.int64)
y_pred = np.empty(n, bool)
group = np.empty(n, np.int64)
rng = np.random.default_rng(0)
for start in range(0, n, 10**5):  # in pieces, so that making the data leaves no peak of its own
    rows = slice(start, start + 10**5)
    y_true[rows], group[rows] = rng.integers(0, 2, (2, 10**5))
    y_pred[rows] = rng.random(10**5) < 0.5
columns = y_true.nbytes + y_pred.nbytes + group.nbytes
fairperm.permutation_test(y_true, y_pred, sensitive_features=group, metric="fnr", rng=0)
print((peak() - before) / columns)
"""

_IMPORT = """
import sys, time
start = time.perf_counter()
import fairperm
print(time.perf_counter() - start)
heavy = {"numba", "duckdb", "pyarrow", "pandas", "altair"} & set(sys.modules)
assert not heavy, heavy
"""


def _printed(script: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def test_memory_bar(report: Report) -> None:
    claim = "peak memory / input columns (columns included), 10⁷ rows"
    report.bar(claim, _printed(_MEMORY), "≤", 2)


def test_import_bar(report: Report) -> None:
    seconds = min(_printed(_IMPORT) for _ in range(5))
    report.bar("seconds to import fairperm", seconds, "≤", 0.3)
