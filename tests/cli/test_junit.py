"""What --fail-on decides, as the tests that a CI system shows."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.commands import as_text, run, sample

ASKED = ("--prediction", "p", "--group", "g", "--metric", "selection_rate", "--seed", "1")
UNLIKE = [(0, int(i < (60 if g == "a" else 20)), g) for g in "ab" for i in range(100)]
COMMANDS: dict[str, tuple[str, ...]] = {
    "audit": (*ASKED, "--fail-on", "disparity"),
    "compare": (*ASKED, "--prediction-new", "y", "--fail-on", "widened"),
    "selection": ("--selected", "p", "--group", "g", "--fail-on", "below"),
    "periods": (*ASKED, "--period", "y", "--fail-on", "widened"),
}


def read(folder: Path, command: str, *options: str) -> tuple[int, ET.Element, list[str]]:
    """Return the exit code, the suite, and how each of its tests ended."""
    done = run(command, "x.csv", *options, "--junit", "x.xml", "--quiet", cwd=folder)
    suite = ET.parse(folder / "x.xml").getroot()  # noqa: S314
    cases = [case[0].tag if len(case) else "passed" for case in suite]
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    assert {name: suite.get(name) for name in kinds} == {
        name: str(cases.count(kind)) for name, kind in kinds.items()
    }
    assert suite.get("tests") == str(len(cases))
    return done.returncode, suite, cases


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_the_file_says_what_the_exit_code_says(tmp_path: Path, command: str) -> None:
    (tmp_path / "x.csv").write_text(as_text(sample(600)))
    code, suite, cases = read(tmp_path, command, *COMMANDS[command])
    assert (code, "failure" in cases) == (0, False)
    assert (suite.get("name"), "passed" in cases) == (f"fairperm {command}", True)


def test_a_failure_has_its_reason_and_too_small_groups_are_skipped(tmp_path: Path) -> None:
    rows = [*UNLIKE, *((0, 1, "<c>\x0b\ufffe") for _ in range(3))]
    (tmp_path / "x.csv").write_text(as_text(rows))
    code, suite, cases = read(tmp_path, "audit", *COMMANDS["audit"])
    assert (code, cases) == (1, ["skipped", "skipped", "failure"])
    assert suite[2].attrib == {"classname": "fairperm.g", "name": "selection_rate: a − b"}
    assert suite[2][0].get("message") == "disparity"
    assert "larger than chance explains" in str(suite[2][0].text)
    code, _, cases = read(tmp_path, "selection", *COMMANDS["selection"])
    assert (code, "failure" in cases) == (1, True)


def test_a_gate_that_cannot_be_evaluated_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(as_text(UNLIKE[95:105]))
    code, suite, cases = read(tmp_path, "audit", *COMMANDS["audit"])
    assert (code, cases) == (2, ["skipped", "error"])
    said = "--fail-on disparity cannot be evaluated: in every comparison a group is too small"
    assert str(suite[1][0].get("message")).startswith(said)
    done = run("audit", "x.csv", *ASKED, "--junit", "y.xml", cwd=tmp_path)
    assert done.stderr == (b"fairperm: error: --junit needs --fail-on, the verdicts that fail.\n")
