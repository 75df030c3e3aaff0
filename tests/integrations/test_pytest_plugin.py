"""The plugin in real runs of pytest, in a folder with a table of options."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from tests.support.commands import as_text, sample

TABLE = """
[tool.fairperm]
files = ["x.csv"]
label = "y"
prediction = "p"
group = ["g"]
metric = ["selection_rate"]
seed = 1
"""
TESTS = """
import csv
import fairperm
import pytest

ROWS = [*csv.DictReader(open("x.csv"))]
OTHERS = {"y": [0, 1] * 100, "p": [0] * 100 + [1] * 100, "g": ["a"] * 100 + ["b"] * 100}
ALIKE = OTHERS | {"p": [0, 1] * 100}

def test_the_files_of_the_table(assert_no_disparity, fairperm_audit):
    assert assert_no_disparity() is fairperm_audit
    assert isinstance(fairperm_audit, fairperm.Audit)

def test_other_data(assert_no_disparity):
    assert_no_disparity(data=ALIKE)

def test_other_data_that_differ(assert_no_disparity):
    assert_no_disparity(data=OTHERS)

def test_arrays_and_other_verdicts(assert_no_disparity):
    assert_no_disparity(
        ALIKE["y"], ALIKE["p"], sensitive_features=ALIKE["g"], fail_on="inconclusive"
    )

def test_an_audit(assert_no_disparity, fairperm_audit):
    with pytest.raises(AssertionError, match="have the verdict inconclusive"):
        assert_no_disparity(fairperm_audit, fail_on="inconclusive")
"""


def run(folder: Path, *options: str) -> tuple[int, str]:
    """Run pytest as a user would, with the plugin by its entry point."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_gates_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(TABLE)
    (tmp_path / "x.csv").write_text(as_text(sample()))
    (tmp_path / "test_gaps.py").write_text(TESTS)
    code, said = run(tmp_path, "-v", "test_gaps.py")
    assert code == 1
    for name in ("the_files_of_the_table", "other_data", "an_audit"):
        assert f"test_{name} PASSED" in said
    assert "2 failed, 3 passed" in said
    answer = "b's selection rate is 100.0 points higher than a's"
    assert f"E       AssertionError: {answer}" in said
    assert "g · selection_rate" in said  # the table
    assert "1 of 1 comparisons have the verdict disparity." in said
    assert "testing.py" not in said, "the traceback ends in the user's test"


def test_a_table_with_a_mistake(tmp_path: Path) -> None:
    text = "def test_it(assert_no_disparity):\n    assert_no_disparity()\n"
    (tmp_path / "test_gaps.py").write_text(text)
    for table, said in {
        TABLE.replace("metric", "metrik"): "has an unknown key, 'metrik'. Did you mean 'metric'?",
        TABLE + 'fail-on = ["nothing"]': "'--fail-on'",
        TABLE: "FILE must be a file that exists; got 'x.csv'.",
    }.items():
        (tmp_path / "pyproject.toml").write_text(table)
        code, output = run(tmp_path, "-q")
        assert code == 1
        assert said in output, output


def test_the_plugin_starts_at_once() -> None:
    (entry,) = metadata.entry_points(group="pytest11", name="fairperm")
    code = (
        "import sys, time, pytest; before = {*sys.modules}; start = time.process_time(); "
        f"import {entry.value}; print(time.process_time() - start, *({{*sys.modules}} - before))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    seconds, *modules = min((one.stdout.split() for one in runs), key=lambda one: float(one[0]))
    assert {*modules} == {"fairperm", "fairperm.integrations", entry.value}
    assert float(seconds) < 0.005
