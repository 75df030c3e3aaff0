"""What the page on gates says for CI systems, in real shells and in a real git repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.support.commands import QUIET, as_text, sample
from tests.support.doc_blocks import blocks, scripts

ROOT = Path(__file__).parents[2]
SNIPPETS = {
    one.title: yaml.safe_load(one.text)
    for one in blocks(ROOT / "docs" / "how-to" / "ci-gate.md")
    if one.language == "yaml"
}
OPTIONS = (
    'files = ["x.csv"]\nlabel = "y"\nprediction = "p"\ngroup = ["g"]\n'
    'metric = ["selection_rate"]\nseed = 1\n'
)
GATE = 'fail-on = ["disparity"]\n'
UNLIKE = [(0, int(i < (60 if g == "a" else 20)), g) for g in "ab" for i in range(100)]


def write(folder: Path, options: str, rows: list[tuple[int, int, str]]) -> None:
    (folder / "fairperm.toml").write_text(options)
    (folder / "x.csv").write_text(as_text(rows))


@pytest.mark.parametrize("name", [".gitlab-ci.yml", "azure-pipelines.yml"])
def test_scripts_of_ci_systems(name: str, tmp_path: Path) -> None:
    (script,) = scripts(SNIPPETS[name])
    install, _, command = script.partition("\n")
    assert install == "pip install 'fairperm[fast,files]'"  # tests/project/test_release.py
    assert {*re.findall(r"\w+\.(?:xml|html)", yaml.safe_dump(SNIPPETS[name]))} == {
        "fairness.xml",
        "fairness.html",
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for options, rows, code in (
        (OPTIONS + GATE, sample(), 0),
        (OPTIONS + GATE, UNLIKE, 1),
        (OPTIONS, UNLIKE, 2),
    ):
        write(tmp_path, options, rows)
        done = subprocess.run(
            ["bash", "-e", "-c", command],  # noqa: S607
            cwd=tmp_path,
            env={**QUIET, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        if code < 2:
            suite = ET.parse(tmp_path / "fairness.xml").getroot()  # noqa: S314
            assert suite.get("failures") == str(code)
            assert "<html" in (tmp_path / "fairness.html").read_text(encoding="utf-8")
        else:
            assert "--junit needs --fail-on, the verdicts that fail." in done.stderr


def test_the_workflow_has_inputs_of_the_action() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (job,) = SNIPPETS[".github/workflows/fairness.yml"]["jobs"].values()
    assert job["steps"][-1]["uses"].startswith("OWNER/fairperm@v")
    page = (ROOT / "docs" / "how-to" / "ci-gate.md").read_text(encoding="utf-8")
    rows = page.partition("| `with:` | |")[2].partition("\n\n")[0].splitlines()[2:]
    named = [row.split("`")[1].partition(":")[0] for row in rows]
    assert {*named} == {*action["inputs"]} - {"token"}


def git(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    names = {
        f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    clean = {name: one for name, one in QUIET.items() if not name.startswith(("GIT_", "PYTHON"))}
    return subprocess.run(
        ["git", *map(str, arguments)],  # noqa: S607
        cwd=folder,
        env={**clean, **names, "PRE_COMMIT_HOME": str(folder.parent / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.validate
def test_the_hook_refuses_a_commit(tmp_path: Path) -> None:
    """pre-commit itself installs the hook from this repository, and git runs it."""
    published, mine = tmp_path / "published", tmp_path / "mine"
    published.mkdir()
    mine.mkdir()
    known = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").stdout
    for name in filter(None, known.split("\0")):  # as it is here, committed or not
        if (ROOT / name).is_file():
            (published / name).parent.mkdir(parents=True, exist_ok=True)
            (published / name).write_bytes((ROOT / name).read_bytes())
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "x"), ("tag", "v0.1.0")):
        assert git(published, *command).returncode == 0
    config = SNIPPETS[".pre-commit-config.yaml"]
    config["repos"][0]["repo"] = str(published)
    del config["repos"][0]["hooks"][0]["additional_dependencies"]
    (mine / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(mine, "init", "-q")
    started = subprocess.run(
        [sys.executable, "-m", "pre_commit", "install"], cwd=mine, capture_output=True, check=False
    )
    assert started.returncode == 0, started.stderr

    def commit(options: str, rows: list[tuple[int, int, str]]) -> tuple[int, str]:
        write(mine, options, rows)
        git(mine, "add", "-A")
        done = git(mine, "commit", "-m", "x")
        return done.returncode, done.stdout + done.stderr

    code, said = commit(OPTIONS + GATE, sample())
    assert code == 0, said
    code, said = commit(OPTIONS + GATE, UNLIKE)
    assert code == 1
    assert "fairperm: failed: 1 of 1 comparisons (--fail-on disparity)" in said
    strict = 'fail-on = ["inconclusive", "disparity"]\n'
    assert commit(OPTIONS + strict, sample())[0] == 1
    code, said = commit(OPTIONS, UNLIKE)
    assert code == 1
    assert "needs --fail-on, the verdicts that fail." in said
    assert git(mine, "rev-list", "--count", "HEAD").stdout == "1\n"
