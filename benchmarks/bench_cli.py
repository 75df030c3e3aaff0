"""The command line: ten million rows of Parquet, the demo, and what ``--help`` costs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

import fairperm

if TYPE_CHECKING:
    from benchmarks.conftest import Report

N = 10**7
COMMAND = str(Path(sys.executable).with_name("fairperm"))
_RUN = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20)
"""

_FIRST = """
import time, numpy, fairperm
rng = numpy.random.default_rng(0)
y, s, g = rng.integers(0, 2, 30000), rng.random(30000), rng.integers(0, 2, 30000)
for _ in range(2):
    start = time.process_time()
    fairperm.permutation_test(
        y, y_score=s, sensitive_features=g, metric="roc_auc", n_resamples=999, rng=1
    )
    print(time.process_time() - start)
"""


def _run(*arguments: str, cwd: Path) -> tuple[float, float]:
    """Return the seconds that a command takes, and the gibibytes that it needs at its peak."""
    start = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-c", _RUN, COMMAND, *arguments],
        check=True,
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    return time.perf_counter() - start, float(result.stdout)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"""copy (select (hash(range) % 10 < 4)::int as label,
            case when hash(range + 7) % 10 < 3 then 'a' else 'b' end as team,
            (hash(2 * range + 1) % 1099511627776 / 1099511627776.0
             + case when hash(range) % 10 < 4 then 0.2 else 0 end) / 1.2 as score
            from range({N})) to '{path}' (format parquet)"""  # noqa: S608
        )
    return path


def test_ten_million_rows(report: Report, parquet: Path, tmp_path: Path) -> None:
    """Two rates and the AUC, with 999 permutations."""
    asked = ["--label", "label", "--score", "score", "--group", "team", "--resamples", "999"]
    metrics = ["--metric", "fpr", "--metric", "fnr"]
    for name, more in (("2 rates", []), ("2 rates and AUC", ["--metric", "roc_auc"])):
        seconds, peak = _run("audit", str(parquet), *asked, *metrics, *more, cwd=tmp_path)
        report.seconds[f"fairperm audit of a Parquet file, {name}", N] = seconds
        report.bar(f"peak GiB of `fairperm audit`, 10⁷ rows, {name}", peak, "≤", 2)


def test_scores_of_a_large_file(report: Report, parquet: Path, tmp_path: Path) -> None:
    """Bins of scores against all rows: AUC and Brier score, 9,999 permutations, 5 million rows."""
    half = tmp_path / "half.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"copy (from '{parquet}' limit {N // 2}) to '{half}' (format parquet)")
        rows = connection.sql(f"from '{half}'").to_arrow_table()
    asked = ["--label", "label", "--score", "score", "--group", "team", "--resamples", "9999"]
    metrics = ["roc_auc", "brier_score"]
    given = [word for metric in metrics for word in ("--metric", metric)]
    seconds, _ = _run("audit", str(half), *asked, *given, cwd=tmp_path)
    report.bar("seconds of `fairperm audit`, AUC and Brier score, 5·10⁶ rows", seconds, "≤", 20)
    times = []
    for data in (rows, duckdb.connect().from_arrow(rows)):
        start = time.process_time()
        fairperm.audit(
            "label", y_score="score", sensitive_features="team", metrics=metrics, data=data,
            n_resamples=9999, rng=1, progress=False,
        )  # fmt: skip
        times.append(time.process_time() - start)
    report.bar("CPU time of bins / of all rows, 5·10⁶ rows", times[1] / times[0], "≤", 0.4)


def test_start(report: Report, tmp_path: Path) -> None:
    best = min(_run("--help", cwd=tmp_path)[0] for _ in range(5))
    empty = min(_seconds_of_python(tmp_path) for _ in range(5))
    report.bar("seconds of `fairperm --help`", best - empty, "≤", 0.3)
    _run("demo", cwd=tmp_path)
    seconds = min(_run("demo", cwd=tmp_path)[0] for _ in range(2))
    report.bar("seconds of `fairperm demo`, the second time", seconds, "≤", 5)


def test_first_use(report: Report, tmp_path: Path) -> None:
    """The first AUC on a machine, for which kernels are compiled; the second takes no time."""
    done = subprocess.run(
        [sys.executable, "-c", _FIRST],
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "compiling for this machine" in done.stderr
    first, second = map(float, done.stdout.split())
    report.bar("CPU seconds of compiling for a first AUC", first - second, "≤", 5)


def _seconds_of_python(folder: Path) -> float:
    """Return what the measuring process itself takes."""
    program = shutil.which("true") or sys.executable
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", _RUN, program], check=True, cwd=folder, capture_output=True
    )
    return time.perf_counter() - start
