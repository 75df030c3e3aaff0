"""An audit as a Spark job: what it reads, writes, and says when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairperm
from fairperm import spark_job
from fairperm._utils.files import read_toml
from tests.support.lazy_data import sample

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets to the Java process
]

CONFIG = """
[input]
path = "{folder}/rows.parquet"
where = "region <> 'west'"

[audit]
y_true = "label"
y_score = "score"
sensitive_features = ["sex", "region"]
metrics = ["false_negative_rate", "roc_auc"]
adjust = "none"
n_resamples = 99
rng = 3

[output]
json = "{folder}/audit.json"
report = "{folder}/audit.html"
table = "{folder}/audit.parquet"
"""
OUTPUTS = ("audit.json", "audit.html", "audit.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(sample(1_000), tmp_path / "rows.parquet")
    (tmp_path / "audit.toml").write_text(CONFIG.format(folder=tmp_path))
    return tmp_path


def test_a_job(spark: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark_job.main(["--config", str(folder / "audit.toml")]) == 0
    assert "roc_auc" in capsys.readouterr().out
    table = sample(1_000).to_pandas().query("region != 'west'")
    options: dict[str, Any] = {"y_score": "score", "sensitive_features": ["sex", "region"]}
    options |= {"metrics": ["false_negative_rate", "roc_auc"], "adjust": None}
    expected = fairperm.audit("label", data=table, n_resamples=99, rng=3, **options)
    found = json.loads((folder / "audit.json").read_text())
    assert found.pop("input")["where"] == repr("region <> 'west'")
    assert found == json.loads(json.dumps(expected.to_dict()))
    assert (folder / "audit.html").read_text().lstrip().lower().startswith("<!doctype html>")
    assert pq.read_table(folder / "audit.parquet").num_rows == len(expected)


def test_a_table(spark: Any, folder: Path) -> None:
    spark.read.parquet(str(folder / "rows.parquet")).createOrReplaceTempView("scored")
    text = (folder / "audit.toml").read_text()
    text = text.replace(f'path = "{folder}/rows.parquet"', 'table = "scored"')
    (folder / "audit.toml").write_text(text)
    assert spark_job.main(["--config", str(folder / "audit.toml")]) == 0
    assert all((folder / name).exists() for name in OUTPUTS)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rows.parquet", "nowhere.parquet", "failed while opening '.*nowhere.parquet'"),
        ('y_true = "label"', 'y_true = "labels"', "Did you mean 'label'?"),
        ("region <> 'west'", "region < > 'west'", "failed while opening"),
        ("region <> 'west'", "1 / (id - id) = 1", "failed while opening"),
        ("region <> 'west'", "raise_error('no disk') = 1", "pyspark failed while "),
    ],
)
def test_a_failed_job_leaves_nothing(
    spark: Any, folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    text = (folder / "audit.toml").read_text().replace(old, new)
    (folder / "audit.toml").write_text(text)
    assert spark_job.main(["--config", str(folder / "audit.toml")]) == 2
    error = capsys.readouterr().err.splitlines()[-1]  # before it, PySpark may have its own say
    assert error.startswith("error: ")
    assert said.split(".*")[0] in error
    assert not any((folder / name).exists() for name in OUTPUTS)


CHANGES: list[tuple[str, str, str]] = [
    ("[input]", "[inputs]", "config must be made of 'input', 'audit', 'output'; got 'inputs'"),
    ("path =", "paths =", "input must be made of .* Did you mean 'path'"),
    ("metrics =", "metric =", "audit must be made of .* Did you mean 'metrics'"),
    ("json =", "jsn =", "output must be made of .* Did you mean 'json'"),
    ("sensitive_features =", "y_pred =", "audit.sensitive_features must be given; got None"),
    ("where =", "table =", "input must be made of either a table or a path"),
    ("/audit.json", "/no/such/audit.json", "output.json must be in a folder that exists"),
    ('json = "', 'json = "s3://', "output.json must be a file on the driver's own disk"),
    ("where = \"region <> 'west'\"", "where = 3", "input.where must be a string; got 3"),
    ("[input]", "[input", "is not TOML"),
    ("/audit.html", "/audit.json", "output must be made of different files"),
    ("/audit.json", "", "output.json must be the name of a file, not of a folder"),
]


@pytest.mark.parametrize(("old", "new", "said"), CHANGES)
def test_a_config_that_is_refused(folder: Path, old: str, new: str, said: str) -> None:
    path = folder / "audit.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(fairperm.FairpermError, match=said):
        spark_job.run(read_toml(path), None)
    assert not any((folder / name).exists() for name in OUTPUTS)


def test_decisions_without_labels_and_default_metrics(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is required is for the audit to say."""
    rows = {"p": [0, 1] * 100, "g": list("aabb") * 50}
    monkeypatch.setattr(spark_job, "_open_rows", lambda *_: pa.table(rows))
    config = {"input": {"table": "t"}, "output": {"json": str(folder / "audit.json")}}
    found = spark_job.run({**config, "audit": {"y_pred": "p", "sensitive_features": "g"}}, None)
    assert [row.metric for row in found.rows] == ["selection_rate"]


def test_a_config_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert spark_job.main(["--config", "/no/such/file.toml"]) == 2
    assert "'/no/such/file.toml' cannot be read" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    with pytest.raises(
        fairperm.FairpermError, match=r"output\.json must be in a folder that can be"
    ):
        spark_job.run(read_toml(folder / "audit.toml"), None)


@pytest.mark.parametrize(
    "condition",
    [
        *(
            f"{name} ('java.lang.Runtime', 'getRuntime') = 'x'"
            for name in ("reflect", "java_method", "try_reflect", "REFLECT", "`reflect`")
        ),
        "IDENTIFIER('ref' || 'lect')('java.lang.Runtime', 'getRuntime') = 'x'",
        "identifier /* ( */ -- (\n ('java_' || 'method')('java.lang.Runtime', 'getRuntime') = 'x'",
        "sex IN (SELECT TRANSFORM (sex) USING 'sh -c id' AS (y) FROM t)",
        "sex IN (FROM t MAP sex USING 'sh -c id' AS (y))",
        "exists(select 1 from csv.`/etc/passwd`)",
        "exists( /* x */ TABLE csv.`/etc/passwd`)",
    ],
)
def test_conditions_run_no_programs(condition: str) -> None:
    """Spark has run some of these; the others are forms of them."""
    with pytest.raises(fairperm.errors.InputError, match=r"input\.where must be a condition"):
        spark_job._check_where(condition)


@pytest.mark.parametrize("name", ["reflected", "identifier", "selected", "using_app"])
def test_columns_with_names_like_these(name: str) -> None:
    assert spark_job._check_where(f"{name} = 1 AND (sex = 'f') AND extract(YEAR FROM day) = 2026")
