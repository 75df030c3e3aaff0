"""Real Spark: a driver and two executor processes give the numbers that NumPy gives.

All tests are in one group: one process of a parallel run has the only session.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pyarrow as pa
import pytest
from joblibspark import register_spark
from pyspark.errors import PySparkException

import fairperm
from fairperm.data.lazy import counting as lazy
from fairperm.hypothesis_tests.rankings import lists as ranked_lists
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
from tests.support.audits import quietly
from tests.support.lazy_data import LAZY, clustered, run, same, sample, with_gaps

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets to the Java process
]
of_joblibspark = pytest.mark.filterwarnings(
    "ignore:Spark version does not support stage-level",
    "ignore:Spark session is not provided",
    "ignore:`apply_async` is deprecated",
)
N = 4_000


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    """Return the rows of ``sample`` in four partitions, kept where they are."""
    return spark.createDataFrame(sample(N)).repartition(4).cache()


def executor_finder() -> Callable[[], int]:
    """Return what finds, in a task, the process of the executor that the task belongs to."""

    def find() -> int:
        parent = Path(f"/proc/{os.getppid()}/stat").read_text()
        return int(parent.rsplit(")", 1)[1].split()[1])

    return find


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("false_negative_rate", {"scheme": "pooled"}),
        ("f1_score", {"y_pred": "predicted", "y_score": None, "control_features": "region"}),
        ("roc_auc", {}),
        ("brier_score_loss", {"sample_weight": "weight"}),
    ],
)
def test_spark_counts_as_we_do(rows: Any, metric: str, options: dict[str, Any]) -> None:
    assert same(run(rows, metric, **options), run(sample(N), metric, **options))


def test_spark_counts_the_rows_of_two_models_as_we_do(rows: Any) -> None:
    call: dict[str, Any] = {
        "y_true": "label",
        "y_score": "score",
        "threshold": 0.45,
        "y_pred_new": "predicted",
        "sensitive_features": "sex",
        "metrics": "f1_score",
        "rng": 2,
        "n_resamples": 99,
    }
    (there,), (here,) = (quietly(**call, data=data) for data in (rows, sample(N)))
    assert there.change is not None
    assert there.to_dict() == here.to_dict()


def test_spark_counts_the_rows_of_periods_as_we_do(rows: Any) -> None:
    call: dict[str, Any] = {"y_true": "label", "y_pred": "predicted", "sensitive_features": "sex"}
    call |= {"period": "region", "metric": "fnr", "rng": 2, "n_resamples": 99}
    there, here = (fairperm.compare_periods(**call, data=data) for data in (rows, sample(N)))
    assert there.to_dict() == here.to_dict()


def test_tables_of_counts(spark: Any) -> None:
    table = {"sex": ["m", "m", "f", "f"], "hired": [1, 0, 1, 0], "n": [96, 64, 24, 56]}
    there = spark.createDataFrame(pa.table(table).to_pylist())
    call: dict[str, Any] = {"metrics": "selection_rate", "sensitive_features": "sex", "count": "n"}
    audits = [fairperm.audit(y_pred="hired", data=data, rng=1, **call) for data in (table, there)]
    assert audits[0].to_dict() == audits[1].to_dict()
    del call["metrics"]
    found = [fairperm.selection_audit("hired", data=data, **call) for data in (table, there)]
    assert found[0].to_dict() == found[1].to_dict()


def test_other_tests(rows: Any) -> None:
    table = sample(N)
    options: dict[str, Any] = {"y_score": "score", "n_resamples": 99, "rng": 3}
    asked: dict[str, Any] = {"sensitive_features": ["sex", "region"], "adjust": None}
    asked |= {"metrics": ["selection_rate", "roc_auc"]}
    audits = [fairperm.audit("label", data=data, **asked, **options) for data in (table, rows)]
    assert audits[0].to_dict() == audits[1].to_dict()
    chosen = {"sensitive_features": "sex", "metric": "accuracy", **options}
    assert same(*(fairperm.omnibus_test("label", data=data, **chosen) for data in (table, rows)))


@pytest.mark.parametrize(
    ("values", "distance", "options"),
    [("score", "ks", {"y_true": "label"}), ("predicted", "js", {"control_features": "region"})],
)
def test_distances(rows: Any, values: str, distance: str, options: dict[str, Any]) -> None:
    options = {"sensitive_features": "sex", "n_resamples": 99, "rng": 3, **options}
    there, here = (
        fairperm.distance_test(values, distance=distance, data=data, **options)
        for data in (rows, sample(N))
    )
    assert there.to_dict() == here.to_dict()


def test_rankings(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark computes values of queries, and hands over the items for exposure."""
    monkeypatch.setattr(ranked_lists, "MAX_KINDS", 100)
    table = clustered(400, 8)  # a person is a query, whose items have tied scores
    rows = spark.createDataFrame(table).repartition(4).cache()
    options: dict[str, Any] = {"query": "person", "score": "score", "n_resamples": 99, "rng": 3}
    for metric in ("ndcg", "average_precision"):
        there, here = (
            fairperm.ranking_test(
                "label", sensitive_features="sex", metric=metric, k=3, data=data, **options
            ).largest
            for data in (rows, table)
        )
        assert isinstance(there, fairperm.RankingComparison)
        assert isinstance(here, fairperm.RankingComparison)
        assert there.values == pytest.approx(here.values, rel=1e-10)
        assert (there.pvalue, there.counts) == (here.pvalue, here.counts)
    options |= {"sensitive_features": "weight", "metric": "exposure"}
    one, other = (fairperm.ranking_test(data=data, **options) for data in (rows, table))
    assert one.to_dict() == other.to_dict()


def test_sweeps(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"sensitive_features": "sex", "metric": "f1_score"}
    options |= {"n_resamples": 99, "rng": 3, "thresholds": 21}
    expected = threshold_sweep("label", "score", data=sample(N), **options).to_dict()
    assert threshold_sweep("label", "score", data=rows, **options).to_dict() == expected
    monkeypatch.setattr(lazy, "MAX_KINDS", 100)
    assert threshold_sweep("label", "score", data=rows, **options).to_dict() == expected


def test_missing_values_single_precision_and_names_with_dots(spark: Any) -> None:
    table = with_gaps()
    table = table.set_column(1, "score", table["score"].cast(pa.float32()))
    table = table.rename_columns({"score": "model.score", "sex": "se`x"})
    options: dict[str, Any] = {"y_score": "model.score", "sensitive_features": "se`x"}
    options |= {"threshold": 0.7, "missing": "drop", "scheme": "pooled"}
    by_spark = run(spark.createDataFrame(table), "false_negative_rate", **options)
    assert by_spark.n_dropped > 0
    assert same(by_spark, run(table, "false_negative_rate", **options))


def test_binned_scores(spark: Any) -> None:
    """Skewed scores, whose bins are narrowed twice."""
    table = sample(N, decimals=None)
    score = (table["score"].to_numpy() - 0.5) ** 15
    table = table.set_column(1, "score", pa.array(score))
    with pytest.warns(fairperm.FairpermWarning, match="Scores were put into bins"):
        result, expected = (
            run(data, "roc_auc", score_bins=64)
            for data in (spark.createDataFrame(table), LAZY["polars"](table))
        )
    assert same(result, expected)
    assert result.binning_errors is not None
    assert max(result.binning_errors.values()) < 1 / 64


def test_clusters(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = clustered(N, 4)
    monkeypatch.setattr(lazy.LazyRows, "count_if_few", lambda _: None)  # counted, or not at all
    result = run(spark.createDataFrame(table), "accuracy", cluster="person")
    assert same(result, run(table, "accuracy", cluster="person"))


def test_sums(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "MAX_KINDS", 100)
    limits = [run(data, "log_loss", n_resamples=0) for data in (rows, sample(N))]
    assert limits[0].pvalue == pytest.approx(limits[1].pvalue, rel=1e-9)


@of_joblibspark
def test_functions_run_on_the_executors(rows: Any) -> None:
    """Let the metric of the smaller group be the process that computes it."""
    register_spark()
    smaller = min(np.unique(sample(N)["sex"], return_counts=True)[1])

    def process(y_true: Any, y_pred: Any) -> float:
        return float(os.getpid() * (len(y_true) == smaller))

    def share(y_true: Any, y_pred: Any) -> float:
        return float(np.mean(y_true == (y_pred >= 0.5)))

    with joblib.parallel_config(backend="spark", n_jobs=2):
        result = run(rows, share, n_resamples=30)
        by_spark = run(rows, process, n_resamples=30, variance=None)
    assert same(result, run(sample(N), share, n_resamples=30))
    assert abs(by_spark.statistic) == os.getpid()
    assert os.getpid() not in np.abs(by_spark.null_distribution)


def test_the_notebook(spark: Any, tmp_path: Path) -> None:
    """Run its cells in this session, whose two executors are no part of it."""
    path = Path(__file__).parents[3] / "docs" / "notebooks" / "spark.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    text = "\n".join(code).replace("range(200000)", "range(20000)")  # which takes less time
    (tmp_path / "notebook.py").write_text(text, encoding="utf-8")
    names = runpy.run_path(str(tmp_path / "notebook.py"))
    verdicts = {row.metric: row.verdict for row in names["audit"]}
    assert verdicts["selection_rate"] == "disparity"
    assert names["limit"].n_resamples == 0
    assert abs(names["drawn"].pvalue - names["limit"].pvalue) < 0.05


@pytest.mark.validate
def test_an_executor_is_killed_while_it_counts(spark: Any, tmp_path: Path) -> None:
    folder, find = str(tmp_path), executor_finder()

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        Path(folder, str(time.time_ns())).write_text(str(find()))
        time.sleep(0.6)
        yield from batches

    data = spark.createDataFrame(sample(N)).repartition(6)
    data = data.mapInArrow(slowly, data.schema)
    killed: list[int] = []

    def kill() -> None:
        """Kill the executor of the first task, once tasks of two executors have begun."""
        for _ in range(1200):
            begun = [path.read_text() for path in sorted(tmp_path.iterdir())]
            if all(begun) and len(set(begun)) == 2:
                os.kill(int(begun[0]), signal.SIGKILL)
                killed.append(int(begun[0]))
                return
            time.sleep(0.05)

    thread = threading.Thread(target=kill)
    thread.start()
    result = run(data, "accuracy")
    thread.join()
    assert killed
    assert not Path(f"/proc/{killed[0]}").exists()
    processes = {path.read_text() for path in tmp_path.iterdir()}
    assert len(processes - {str(killed[0])}) >= 1  # who did its work again
    assert len(list(tmp_path.iterdir())) > 6
    assert same(result, run(sample(N), "accuracy"))


def test_a_job_that_fails_is_one_error(spark: Any) -> None:
    def broken(batches: Iterator[Any]) -> Iterator[Any]:
        raise RuntimeError("the third disk is on fire")

    data = spark.createDataFrame(sample(40))
    data = data.mapInArrow(broken, data.schema)
    said = "pyspark failed while counting equal rows: .* the third disk is on fire"
    with pytest.raises(fairperm.FairpermError, match=said) as caught:
        run(data, "accuracy")
    assert isinstance(caught.value.__cause__, PySparkException)


CONNECT = """
import json
from pyspark.sql import SparkSession
from tests.support.lazy_data import run, sample
from tests.support.spark_session import QUICK
spark = (
    SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.extraJavaOptions", QUICK)
    .config("spark.sql.shuffle.partitions", "2").getOrCreate()
)
data = spark.createDataFrame(sample(400))
assert "connect" in type(data).__module__
found = [run(data, metric).to_dict() for metric in ("roc_auc",)]
print(json.dumps(found))
spark.stop()
"""


@pytest.mark.validate
def test_spark_connect(java: None) -> None:
    pytest.importorskip("grpc")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    done = subprocess.run(
        [sys.executable, "-c", CONNECT], capture_output=True, text=True, env=environment,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    expected = [run(sample(400), metric).to_dict() for metric in ("roc_auc",)]
    assert found == json.loads(json.dumps(expected))
