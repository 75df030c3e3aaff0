"""What the work on speed changed: the same figures of an older commit and of today, side by side.

``make bench-before`` runs this. Every figure has a process of its own, first with the old source
and then with today's. Times are CPU times of one thread, so that other programs disturb them
little; kernels are compiled before, but for the first AUC.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
_ALWAYS: dict[str, Any] = {"rng": 1, "n_jobs": 1, "progress": False}
_PEAK = 10**7  # rows of which the memory is measured
_PIECE = 10**5


def _test(**options: Any) -> None:
    import fairperm

    fairperm.permutation_test(**options, **_ALWAYS)


def _rows(n: int, n_groups: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    y_true = rng.integers(0, 2, n)
    y_score = 1 / (1 + np.exp(1 - 2 * y_true + rng.normal(size=n)))
    return {
        "y_true": y_true,
        "y_score": y_score,
        "sensitive_features": rng.choice(n_groups, n, p=[0.3, 0.7] if n_groups == 2 else None),
    }


def _cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _auc(design: dict[str, Any]) -> float:
    asked = {**_rows(47_000), "metric": "roc_auc", **design}
    _test(**asked, n_resamples=9)
    return _cpu(lambda: _test(**asked, n_resamples=999))


def clustered_auc() -> float:
    cluster = np.arange(47_000) // 5
    return _auc({"cluster": cluster, "sensitive_features": cluster % 3 // 2})


def weighted_auc() -> float:
    return _auc({"sample_weight": np.random.default_rng(1).uniform(0.5, 2.0, 47_000)})


def _nanoseconds(asked: dict[str, Any]) -> float:
    """Return the time of a row and a permutation, without what is done once."""
    few, more = 64, 512
    _test(**asked, n_resamples=few)
    pairs = [
        [_cpu(lambda n=n: _test(**asked, n_resamples=n)) for n in (few, few + more)]  # type: ignore[misc]
        for _ in range(3)
    ]
    return min(both - one for one, both in pairs) / more / len(asked["y_true"]) * 1e9


def auc_of_rows() -> float:
    return _nanoseconds({**_rows(10**6), "metric": "roc_auc"})


def error_of_rows() -> float:
    rows = _rows(10**6)
    rng = np.random.default_rng(2)
    columns = {"y_true": rng.normal(size=10**6), "y_pred": rng.normal(size=10**6)}
    groups = rows["sensitive_features"]
    return _nanoseconds({**columns, "sensitive_features": groups, "metric": "mean_squared_error"})


def _weighted(metric: str, **design: Any) -> float:
    n = 200_000
    rng = np.random.default_rng(3)
    asked: dict[str, Any] = {"y_true": rng.normal(size=n), "y_pred": rng.normal(size=n)}
    groups = _rows(n)["sensitive_features"]
    if not design:
        design = {"sample_weight": rng.lognormal(size=n)}
    asked |= {"sensitive_features": groups, "metric": metric} | design
    _test(**asked, n_resamples=9)
    return _cpu(lambda: _test(**asked, n_resamples=999))


def weighted_error() -> float:
    return _weighted("mean_squared_error")


def weighted_r2() -> float:
    return _weighted("r2_score")


def clustered_error() -> float:
    cluster = np.random.default_rng(4).integers(0, 50_000, 200_000)
    return _weighted("mean_squared_error", cluster=cluster, sensitive_features=cluster % 3 // 2)


def weighted_rate() -> float:
    return _weighted(
        "accuracy",
        y_true=_rows(200_000)["y_true"],
        y_pred=np.random.default_rng(5).integers(0, 2, 200_000),
        sample_weight=np.random.default_rng(6).choice([1.0, 2.0, 5.0], 200_000),
    )


def weighted_groups() -> float:
    import fairperm

    rng = np.random.default_rng(3)
    n = 20_000
    asked: dict[str, Any] = {"y_true": rng.normal(size=n), "sample_weight": rng.lognormal(size=n)}
    asked |= {"sensitive_features": _rows(n, 5)["sensitive_features"], "metric": "mean_outcome"}
    fairperm.omnibus_test(**asked, n_resamples=9, **_ALWAYS)
    return _cpu(lambda: fairperm.omnibus_test(**asked, n_resamples=999, **_ALWAYS))


def five_groups() -> float:
    import fairperm

    asked = {"metrics": "roc_auc", **_ALWAYS}
    fairperm.audit(**_rows(2_000, 5), **asked, n_resamples=99)
    return _cpu(lambda: fairperm.audit(**_rows(100_000, 5), **asked))


def calls_of_function() -> float:
    calls: list[int] = []

    def distance(y_true: Any, y_pred: Any) -> float:
        calls.append(1)
        return float(np.median(np.abs(y_true - y_pred)))

    rng = np.random.default_rng(3)
    columns = {"y_true": rng.normal(size=500), "y_pred": rng.normal(size=500)}
    _test(**columns, sensitive_features=rng.integers(0, 2, 500), metric=distance)
    return len(calls)


def _large_file(n: int) -> float:
    import duckdb
    import pyarrow as pa

    from fairperm.cli.main import main as command_line

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        rows = {name: column.tolist() for name, column in _rows(n).items()}
        duckdb.from_arrow(pa.table(rows)).write_parquet(str(path))
        del rows
        columns = ["--label", "y_true", "--score", "y_score", "--group", "sensitive_features"]
        metrics = ["--metric", "roc_auc", "--metric", "brier_score"]
        sys.argv = ["fairperm", "audit", str(path), *columns, *metrics]
        sys.argv += ["--resamples", "9999", "--jobs", "1"]

        def run() -> None:
            with suppress(SystemExit):
                command_line()

        return _cpu(run)


def large_file() -> float:
    return _large_file(1_200_000)


def larger_file() -> float:
    return _large_file(5_000_000)


def first_auc() -> float:
    """Return the time of compiling: that of a first test minus that of a second."""
    asked = {**_rows(30_000), "metric": "roc_auc", "n_resamples": 999}
    return _cpu(lambda: _test(**asked)) - _cpu(lambda: _test(**asked))


def _memory(metric: str) -> float:
    """Return the peak of a test over the size of its columns, which are not counted."""
    rng = np.random.default_rng(0)
    columns = np.empty(_PEAK, np.int64), np.empty(_PEAK), np.empty(_PEAK, np.int8)
    y_true, other, groups = columns
    if metric == "mean_squared_error":
        y_true = y_true.view(np.float64)
    for start in range(0, _PEAK, _PIECE):  # in pieces: making the data leaves no peak of its own
        rows = slice(start, start + _PIECE)
        is_number = y_true.dtype == np.float64
        y_true[rows] = rng.normal(size=_PIECE) if is_number else rng.integers(0, 2, _PIECE)
        other[rows], groups[rows] = rng.random(_PIECE), rng.random(_PIECE) < 0.3
    name = "y_pred" if metric == "mean_squared_error" else "y_score"

    def test(n: int) -> None:
        asked = {"y_true": y_true[:n], name: other[:n], "sensitive_features": groups[:n]}
        _test(**asked, metric=metric, n_resamples=128)

    test(_PIECE)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    before = _status("VmRSS")
    test(_PEAK)
    return (_status("VmHWM") - before) / sum(column.nbytes for column in columns)


def _status(name: str) -> float:
    found = re.search(rf"{name}:\s*(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found is not None
    return 1024.0 * int(found[1])


def memory_of_auc() -> float:
    return _memory("roc_auc")


def memory_of_error() -> float:
    return _memory("mean_squared_error")


FIGURES: dict[str, tuple[Callable[[], float], str]] = {
    "AUC, 47,000 rows in 9,400 clusters, 999 permutations": (clustered_auc, "s"),
    "AUC, 47,000 rows with weights, 999 permutations": (weighted_auc, "s"),
    "AUC, a row and a permutation": (auc_of_rows, "ns"),
    "mean squared error, a row and a permutation": (error_of_rows, "ns"),
    "mean squared error, 200,000 rows with weights, 999 permutations": (weighted_error, "s"),
    "R², 200,000 rows with weights, 999 permutations": (weighted_r2, "s"),
    "mean squared error, 200,000 rows in 50,000 clusters, 999 permutations": (clustered_error, "s"),
    "accuracy, 200,000 rows of three weights, 999 permutations": (weighted_rate, "s"),
    "omnibus test, 20,000 rows with weights in five groups, 999 permutations": (
        weighted_groups,
        "s",
    ),
    "audit of the AUC, 100,000 rows in five groups, default draws": (five_groups, "s"),
    "calls of a user's function, default draws, no gap": (calls_of_function, "calls"),
    "`fairperm audit`, Parquet of 1.2 million rows, AUC and Brier score": (large_file, "s"),
    "`fairperm audit`, Parquet of 5 million rows, AUC and Brier score": (larger_file, "s"),
    "first AUC on a machine: compiling": (first_auc, "s"),
    "peak memory of an AUC of 10⁷ rows / its columns": (memory_of_auc, "×"),
    "peak memory of a mean squared error of 10⁷ rows / its columns": (memory_of_error, "×"),
}


def measure(figure: str, source: Path) -> float:
    """Return a figure of the library in this folder."""
    with tempfile.TemporaryDirectory() as cache:
        compiled = {"NUMBA_CACHE_DIR": cache} if FIGURES[figure][0] is first_auc else {}
        done = subprocess.run(
            [sys.executable, __file__, "--one", figure],
            env={**os.environ, **_ONE_THREAD, **compiled, "PYTHONPATH": str(source)},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return float(done.stdout.split()[-1])


def _extract(commit: str, folder: Path) -> Path:
    """Return the source of a commit."""
    archive = folder / "old.tar"
    subprocess.run(["git", "archive", "-o", archive, commit, "src"], check=True, cwd=ROOT)  # noqa: S607
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", default="b888749", help="the commit to compare with")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the figure that this process measures
    given = parser.parse_args()
    if given.one:
        warnings.simplefilter("ignore")
        print(FIGURES[given.one][0]())
        return
    lines = [f"| | {given.old} | today | ratio |", "| --- | ---: | ---: | ---: |"]
    with tempfile.TemporaryDirectory() as folder:
        sources = _extract(given.old, Path(folder)), ROOT / "src"
        for figure, (_, unit) in FIGURES.items():
            old, new = (measure(figure, source) for source in sources)
            shown = (f"{one:,.0f}" if one >= 100 else f"{one:.2g}" for one in (old, new))
            cells = " | ".join(f"{one} {unit}" for one in shown)
            lines.append(f"| {figure} | {cells} | {new / old:.2g} |")
            print(lines[-1], file=sys.stderr)
    versions = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    print("\n".join([*lines, "", f"`python benchmarks/before_after.py`, one thread; {versions}."]))


if __name__ == "__main__":
    main()
