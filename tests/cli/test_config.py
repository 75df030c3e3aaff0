"""Options in a file: what wins, and what is said of keys that are none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.commands import as_text, failed, run, sample, succeeded

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = 'files = ["x.csv"]\nlabel = "y"\nprediction = "p"\ngroup = "g"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.csv").write_text(as_text(sample()))
    return tmp_path


def options(folder: Path, *arguments: object) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        succeeded("audit", *arguments, "--json", "-", cwd=folder)
    )["options"]
    return found


def test_file_gives_defaults_and_the_command_line_wins(folder: Path) -> None:
    (folder / "fairperm.toml").write_text(
        COLUMNS
        + 'metric = ["fpr", "fnr"]\nseed = 5\nmin-group-size = 10\nalpha = 0.1\n'
        + "margin = {false_positive_rate = 0.2}\n[audit]\nalpha = 0.2\n[power]\nn = 10\n"
    )
    found = options(folder)
    assert found["metric"] == ["fpr", "fnr"]
    assert (found["seed"], found["alpha"], found["min_group_size"]) == (5, 0.2, 10)
    assert found["margin"] == ["false_positive_rate=0.2"]
    found = options(folder, "--metric", "accuracy", "--seed", 6, "--margin", 0.1)
    assert (found["metric"], found["seed"], found["alpha"]) == (["accuracy"], 6, 0.2)


def test_a_list_of_one_is_one_value_and_of_several_is_for_who_takes_several(folder: Path) -> None:
    (folder / "fairperm.toml").write_text(COLUMNS + 'metric = ["fpr"]\nalpha = [0.01]\n')
    assert (options(folder)["alpha"], options(folder)["metric"]) == (0.01, ["fpr"])
    assert "false_positive_rate" in succeeded("test", cwd=folder)
    (folder / "fairperm.toml").write_text(COLUMNS + 'metric = ["fpr", "fnr"]\n')
    assert "--metric must be given" in failed("test", cwd=folder)


def test_pyproject_and_given_file(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.fairperm]\nfiles = "x.csv"\nlabel = "y"\nprediction = "p"\ngroup = ["g"]\nseed = 1\n'
    )
    assert options(folder)["seed"] == 1
    (folder / "fairperm.toml").write_text(COLUMNS + "seed = 2\n")
    assert options(folder)["seed"] == 2
    (folder / "other.toml").write_text(COLUMNS + "seed = 3\n")
    assert options(folder, "--config", "other.toml")["seed"] == 3
    assert options(folder, "--config", "pyproject.toml")["seed"] == 1


def test_pyproject_of_others_is_left_alone(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    arguments = ("--label", "y", "--prediction", "p", "--group", "g")
    succeeded("audit", "x.csv", *arguments, "-q", cwd=folder)
    (folder / "pyproject.toml").write_text("this is not TOML")
    succeeded("audit", "x.csv", *arguments, "-q", cwd=folder)


def test_gate_in_the_file(folder: Path) -> None:
    (folder / "fairperm.toml").write_text(COLUMNS + 'fail-on = ["inconclusive"]\nquiet = true\n')
    assert run("audit", cwd=folder).returncode == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (COLUMNS + 'labell = "y"\n', "unknown key, 'labell'. Did you mean 'label'?"),
        (COLUMNS + "[audit]\nsed = 1\n", "unknown key, 'audit.sed'. Did you mean 'seed'?"),
        (COLUMNS + "[audits]\nseed = 1\n", "unknown key, 'audits'. Did you mean 'audit'?"),
        (COLUMNS + "alpha = 'x'\n", "alpha"),
        (COLUMNS + "[audit]\nalpha = [1, 2]\n", "alpha in 'fairperm.toml' must be one value"),
        (COLUMNS + "alpha = [0.1, 0.2]\n", "alpha in 'fairperm.toml' must be one value"),
        (COLUMNS + "alpha = []\n", "alpha in 'fairperm.toml' must be one value"),
        (COLUMNS + "seed = 'x'\n", "--seed must be a whole number; got 'x' in the file of"),
        ("label = \n", "'fairperm.toml' is not TOML"),
    ],
)
def test_wrong_files(folder: Path, text: str, said: str) -> None:
    (folder / "fairperm.toml").write_text(text)
    assert said in failed("audit", cwd=folder)


def test_missing_file(folder: Path) -> None:
    assert "'none.toml' cannot be read" in failed("audit", "--config", "none.toml", cwd=folder)
