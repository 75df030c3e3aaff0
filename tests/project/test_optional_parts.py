"""Without an optional package answers are the same, or one sentence names what installs it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from fairperm._utils.optional import EXTRA_OF, install_command

ROOT = Path(__file__).parents[2]
NEEDED = {  # by the calls of tests/support/newcomer_calls.py
    "JSON lines": {"duckdb", "pyarrow"},
    "Parquet": {"duckdb", "pyarrow"},
    "SQL": {"duckdb", "pyarrow"},
    "Excel": {"openpyxl"},
    "workbook": {"openpyxl"},
    "Python: chart": {"altair"},
    "Python: picture": {"altair", "vl_convert"},
    "Python: log_to_mlflow": {"mlflow"},
}
TOGETHER = ("mlflow", "pyspark", "starlette", "uvicorn")  # none of which another call needs


def run(*command: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, chance = tmp_path_factory.mktemp("files"), random.Random(1)
    rows = [
        {"y": chance.randint(0, 1), "p": chance.randint(0, 1), "g": chance.choice("ab")}
        | {"s": round(chance.random(), 2), "c": i % 2}
        for i in range(400)
    ]
    frame = pd.DataFrame(rows)
    frame.to_csv(made / "x.csv", index=False)
    frame.to_json(made / "x.jsonl", orient="records", lines=True)
    frame.to_parquet(made / "x.parquet")
    frame.to_excel(made / "x.xlsx", index=False)
    return made


@pytest.fixture(scope="module")
def whole(folder: Path) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = json.loads(run("tests.support.newcomer_calls", folder))
    assert {name for name, (code, _) in found.items() if code} <= {"Python: log_to_mlflow"}
    return found


@pytest.mark.validate
@pytest.mark.xdist_group("optional parts")
@pytest.mark.parametrize("blocked", [*sorted({*EXTRA_OF} - {*TOGETHER}), ",".join(TOGETHER)])
def test_answers_without_a_package(
    blocked: str, folder: Path, whole: dict[str, tuple[int, str]]
) -> None:
    printed = run("tests.support.blocked", blocked, "tests.support.newcomer_calls", folder)
    missing = {*blocked.split(",")}
    for name, (code, said) in json.loads(printed).items():
        needed = NEEDED.get(name, set()) & missing
        if needed:
            (package,) = needed
            hint = f"needs {package}, which is not installed: {install_command(EXTRA_OF[package])}"
            assert (code, said.strip().endswith(hint)) == (2, True), (name, said)
            assert said.strip().count("\n") == 0
        elif name != "Python: log_to_mlflow":  # which the tests' environment lacks
            assert (code, said) == (whole[name][0], whole[name][1]), name


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("starlette", ("fairperm", "app")),
        ("uvicorn", ("fairperm", "app")),
        ("pyspark", ("fairperm.spark_job", "--config", "job.toml")),
    ],
)
def test_commands_without_a_package(package: str, command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text('[input]\ntable = "x"\n')
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.blocked", package, *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    hint = f"needs {package}, which is not installed: {install_command(EXTRA_OF[package])}"
    assert (done.returncode, done.stderr.strip().endswith(hint)) == (2, True), done.stderr
    assert "Traceback" not in done.stderr
