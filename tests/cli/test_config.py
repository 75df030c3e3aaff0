"""Options in a file: what wins, and what is said of keys that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairperm.cli import config
from fairperm.cli.main import app
from tests.support.commands import as_text, run, sample, succeeded

COLUMNS = 'files = ["x.csv"]\nlabel = "y"\nprediction = "p"\ngroup = "g"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.csv").write_text(as_text(sample()))
    return tmp_path


def failed(*arguments: object, cwd: Path) -> str:
    """Return the line in which the command says what is wrong; another may name the file used."""
    done = run(*arguments, cwd=cwd)
    assert (done.returncode, done.stdout) == (2, b"")
    *notes, said = done.stderr.decode().splitlines()
    assert len(notes) <= 1
    assert all(one.startswith("fairperm: note: options from ") for one in notes)
    return said.removeprefix("fairperm: error: ")


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
        (COLUMNS + 'file = "y.csv"\n', "unknown key, 'file'. Did you mean 'files'?"),
        (
            COLUMNS + '[ranking]\nfail-on = "disparity"\n',
            "`fairperm ranking --help` lists those of ranking.",
        ),
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


def test_file_used_is_always_named(folder: Path) -> None:
    (folder / "fairperm.toml").write_text(COLUMNS)
    for arguments in ((), ("-q",), ("--config", "fairperm.toml", "-q")):
        said = run("audit", *arguments, cwd=folder).stderr.decode()
        assert "fairperm: note: options from 'fairperm.toml'\n" in said
    (folder / "fairperm.toml").write_text("[sweep]\nseed = 1\n")
    columns = ("--label", "y", "--prediction", "p", "--group", "g")
    assert run("audit", "x.csv", *columns, "-q", cwd=folder).stderr == b""


KEYS = ("files", "report", "json", "csv", "markdown")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("table", ["", "[audit]\n"])
def test_file_found_unasked_stays_in_its_folder(folder: Path, key: str, table: str) -> None:
    inside = folder / "inside"
    inside.mkdir()
    target = folder / "x.csv"
    before = target.read_bytes()
    (inside / "x.csv").write_bytes(before)
    (inside / "link").symlink_to(target)
    (inside / "links").symlink_to(folder)
    columns = "" if key == "files" else COLUMNS
    for name in ("../x.csv", str(target), "link", "links/x.csv", "../*.csv", "sub/../../x.csv"):
        (inside / "fairperm.toml").write_text(f'{columns}{table}{key} = "{name}"\n')
        said = failed("audit", cwd=inside)
        assert said.startswith(f"{key} in 'fairperm.toml' must be inside the folder of that file")
        assert said.endswith("If you trust the file, pass --config fairperm.toml.")
        assert target.read_bytes() == before


def test_glob_that_leads_outside(folder: Path) -> None:
    inside = folder / "inside"
    inside.mkdir()
    (inside / "links").symlink_to(folder)
    (inside / "fairperm.toml").write_text(COLUMNS.replace("x.csv", "*/x.csv"))
    assert "must be inside the folder" in failed("audit", cwd=inside)


def test_outputs_inside_and_trusted_files(folder: Path) -> None:
    inside = folder / "inside"
    inside.mkdir()
    (inside / "x.csv").write_text(as_text(sample()))
    (inside / "fairperm.toml").write_text(COLUMNS + 'json = "./x.json"\ncsv = "-"\n')
    assert succeeded("audit", cwd=inside).startswith("attribute,")
    assert (inside / "x.json").is_file()
    (inside / "fairperm.toml").write_text(COLUMNS + 'json = "../x.json"\n')
    succeeded("audit", "--config", "fairperm.toml", cwd=inside)
    assert (folder / "x.json").is_file()


def test_file_found_unasked_lets_no_formula_through(folder: Path) -> None:
    columns = COLUMNS + 'csv = "-"\n'
    (folder / "fairperm.toml").write_text(columns + "raw-names = true\n")
    said = failed("audit", cwd=folder)
    assert said.startswith("raw-names in 'fairperm.toml' must be false in a file that you did not")
    assert said.endswith("If you trust the file, pass --config fairperm.toml.")
    succeeded("audit", "--config", "fairperm.toml", cwd=folder)
    (folder / "fairperm.toml").write_text(columns + "raw-names = false\n")
    succeeded("audit", "--raw-names", cwd=folder)


def test_every_path_of_every_command_is_checked() -> None:
    commands = app.commands
    paths = {
        option.name
        for command in commands.values()
        if any(option.name == "config" for option in command.params)
        for option in command.params
        if option.metavar in {"PATH", "FILE", "DIR", "FILE..."} and option.name != "config"
    }
    assert {"files", "report", "json", "csv", "markdown"} <= paths <= config._PATHS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool]\nfairperm = 3\n", "tool.fairperm in 'pyproject.toml' must be a table; got 3"),
        ("tool = 1\n", "FILE must be given"),  # other tools report it
    ],
)
def test_pyproject_without_tables(folder: Path, text: str, said: str) -> None:
    (folder / "pyproject.toml").write_text(text)
    assert said in failed("audit", cwd=folder)


@pytest.mark.parametrize("mark", ["[", "9"])
def test_toml_that_python_cannot_read(folder: Path, mark: str) -> None:
    (folder / "fairperm.toml").write_text(f"a = {mark * 10_000}")
    assert "'fairperm.toml' is not TOML: " in failed("audit", cwd=folder)
