"""Rows that are never read: one group-by where they are, and the time after it.

``python benchmarks/bench_scale.py [--most 1e8] [--spark 1e7] [--write]``; ``--write`` puts the
table into docs/scale.md. Every size runs in a process of its own, whose peak memory is measured.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

DRAWS = 999
MAX_MEMORY = 2.0  # GB of the process that runs the test (for DuckDB, of all)
FLAT = 3.0  # times the shortest that the time after the aggregation may take at any size
DOCS = Path(__file__).parent.parent / "docs" / "scale.md"
CLUSTERS, LIMIT = "rate, clusters of 4", "log loss, normal limit"
ASKED: dict[str, dict[str, Any]] = {
    "rate": {"metric": "false_negative_rate", "scheme": "pooled", "threshold": 0.5},
    "AUC, 16,384 bins": {"metric": "roc_auc", "score_bins": 1 << 14},
    CLUSTERS: {"metric": "false_negative_rate", "cluster": "member", "of": "member_sex"},
    LIMIT: {"metric": "log_loss", "n_resamples": 0},
}
# with fewer rows than that, rows are drawn one by one, which is faster
FLAT_FROM = {"rate": 10**6, "AUC, 16,384 bins": 10**7,
             CLUSTERS: 10**6, LIMIT: 10**7}  # fmt: skip
MAX_ROWS = {CLUSTERS: 10**7}  # a group-by of more takes too long on two cores
BEGIN, END = "<!-- begin: make bench-scale -->", "<!-- end: make bench-scale -->"
# a row is what hashing its number makes of it: two groups, labels, and scores that go with them
SQL = """
select cast(h % 10 < 3 as integer) as sex, label, i as number, i // 4 as member,
       cast((i // 4) % 10 < 3 as integer) as member_sex,
       (((h // 1000) % 1000003) / 1000003.0 * 0.8 + 0.2 * label) as score
from (select i, h, cast((h // 10) % 100 < (case when h % 10 < 3 then 40 else 60 end) as integer)
      as label from (select {number} as i, {hash} as h from {rows}))
"""


def duckdb_rows(n: int) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("set memory_limit = '1GB'")
    rows = f"range({n}) as r(i)"
    hashed = "cast(hash(i) >> 1 as bigint)"
    return connection.sql(SQL.format(number="i", hash=hashed, rows=rows))


def spark_rows(n: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master(os.environ.get("FAIRPERM_SPARK", "local-cluster[2,1,1024]"))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    atexit.register(_stop, session, session.sparkContext.applicationId)
    text = SQL.replace("//", "div")
    rows = f"range(0, {n}, 1, 16)"
    hashed = "shiftrightunsigned(xxhash64(id), 1)"
    return session.sql(text.format(number="id", hash=hashed, rows=rows))


def _stop(session: Any, application: str) -> None:
    """Stop Spark, and take away what its workers leave in its own folder."""
    import pyspark

    session.stop()
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    shutil.rmtree(Path(home, "work", application), ignore_errors=True)


ENGINES = {"DuckDB": duckdb_rows, "Spark": spark_rows}


def measure(engine: str, n: int) -> dict[str, Any]:
    """Return seconds of counting and of all that follows, for a rate and for AUCs."""
    import narwhals.stable.v2 as nw

    import fairperm

    warnings.simplefilter("ignore", fairperm.FairpermWarning)  # of bins; the table shows it
    rows = ENGINES[engine](n)
    _warm_up(rows)
    found: dict[str, Any] = {"engine": engine, "rows": n}
    frame: Any = nw.LazyFrame
    collect = frame.collect

    def timed(self: Any, *given: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = collect(self, *given, **options)
        found["counting"] += time.perf_counter() - start
        found["cells"] = len(result)
        return result

    frame.collect = timed
    lazy = nw.from_native(rows)
    for name, options in ASKED.items():
        if n > MAX_ROWS.get(name, n):
            continue
        found["counting"] = 0.0
        start = time.perf_counter()
        given = {"n_resamples": DRAWS, **options}
        sex = given.pop("of", "sex")
        result = fairperm.permutation_test(
            "label", y_score="score", sensitive_features=sex, data=lazy, rng=1, progress=False,
            **given,
        )  # fmt: skip
        whole = time.perf_counter() - start
        found[f"{name} counting"] = found.pop("counting")
        found[f"{name} after"] = whole - found[f"{name} counting"]
        found[f"{name} cells"] = found.pop("cells")
        found[f"{name} p"] = result.pvalue
        assert sum(one["rows"] for one in result.counts.values()) == n
        if result.binning_errors is not None:
            bound = sum(result.binning_errors.values())
            found[f"{name} bound"] = bound
            found[f"{name} of SE"] = bound / result.standard_error
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return found


def _warm_up(rows: Any) -> None:
    """Load, compile and start all there is, on few rows."""
    import fairperm

    generator = np.random.default_rng(0)
    label, score, sex = generator.integers(0, 2, (3, 50_000))
    for metric, y_score in (("accuracy", score), ("roc_auc", generator.random(50_000))):
        fairperm.permutation_test(
            label, y_score=y_score, sensitive_features=sex, metric=metric, n_resamples=64, rng=1
        )
    small = rows.limit(1_000)
    small.fetchall() if hasattr(small, "fetchall") else small.collect()


def table_of(found: list[dict[str, Any]]) -> str:
    head = "| engine | rows | test | counting | after | cells | bound on the gap | memory |"
    lines = [head, "|---|---:|---|---:|---:|---:|---:|---:|"]
    of_engine = {engine: [one for one in found if one["engine"] == engine] for engine in ENGINES}
    for one in found:
        if one not in (of_engine[one["engine"]][0], of_engine[one["engine"]][-1]):
            continue  # the page has the smallest and the largest run
        for name in ASKED:
            if f"{name} after" not in one:
                continue
            bound = ""
            if f"{name} bound" in one:
                bound = f"{one[f'{name} bound']:.1e} ({one[f'{name} of SE']:.2g} SE)"
            lines.append(
                f"| {one['engine']} | {one['rows']:.0e} | {name} | {one[f'{name} counting']:.2f} s "
                f"| {one[f'{name} after']:.2f} s | {one[f'{name} cells']:,} | {bound} "
                f"| {one['memory']:.2f} GB |"
            )
    when = time.strftime("%Y-%m-%d")
    where = f"{os.cpu_count()} cores, Python {platform.python_version()}, {when}"
    notes = (
        f'{DRAWS} draws; {where}. "Counting" is the time of the engine (including a look at the '
        'first rows, and for the AUC a range query), "after" is the rest. Memory is that of the '
        "process that runs the test: it includes the engine for DuckDB, but not the executors "
        "for Spark."
    )
    return "\n".join([*lines, "", notes])


def in_new_process(engine: str, n: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", engine, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{engine} with {n:.0e} rows failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def judged(found: list[dict[str, Any]]) -> list[str]:
    """Return the bars that do not hold."""
    bad = [
        f"{one['engine']} with {one['rows']:.0e} rows took {one['memory']:.2f} GB"
        for one in found
        if one["memory"] > MAX_MEMORY
    ]
    for engine in ENGINES:
        for name, least in FLAT_FROM.items():
            mine = [one for one in found if one["engine"] == engine and one["rows"] >= least]
            times = [one[f"{name} after"] for one in mine if f"{name} after" in one]
            # what takes less than a tenth of a second is noise
            if times and max(times) > FLAT * max(min(times), 0.1):
                bad.append(f"{engine}: the time after counting, {name}, is not flat in n: {times}")
    return bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=1e8, help="rows of the largest DuckDB run")
    parser.add_argument(
        "--spark", type=float, default=1e7, help="of the largest Spark run; 0: none"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/scale.md")
    parser.add_argument("--one", nargs=2, metavar=("ENGINE", "ROWS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], int(given.one[1]))))
        return
    found = []
    for engine, most in (("DuckDB", given.most), ("Spark", given.spark)):
        sizes = [10**k for k in range(6, 13) if 10**k <= most]
        for n in sizes or [int(most)] * (most >= 1):
            found.append(in_new_process(engine, n))
            print(json.dumps(found[-1]), flush=True)
    text = table_of(found)
    print(text)
    if bad := judged(found):
        sys.exit("bars that do not hold; nothing was written:\n" + "\n".join(bad))
    if given.write:
        page = DOCS.read_text(encoding="utf-8")
        start, stop = page.index(BEGIN) + len(BEGIN), page.index(END)
        DOCS.write_text(f"{page[:start]}\n{text}\n{page[stop:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
