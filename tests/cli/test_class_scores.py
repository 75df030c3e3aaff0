"""Scores of several classes on the command line, in files of options and in reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm.report.rerun import write_call
from tests.support.commands import run

N = 300
RNG = np.random.default_rng(4)
CODE = RNG.integers(0, 3, N)
SCORES = (RNG.normal(size=(N, 3)) + np.eye(3)[CODE]).round(3)
DATA: dict[str, Any] = {
    "animal": np.array(["cat", "dog", "owl"])[CODE],
    "code": CODE,
    "guess": np.array(["cat", "dog", "owl"])[SCORES.argmax(axis=1)],
    "site": RNG.choice(["a", "b"], N),
    **{f"p_{name}": SCORES[:, i] for i, name in enumerate(("cat", "dog", "owl"))},
}
OPTIONS = [f"--class-score={name}=p_{name}" for name in ("owl", "dog", "cat")]
CALL = ("d.csv", "--group", "site", "--metric", "roc_auc_ovr", "--seed", 1, "--resamples", 99)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [",".join(DATA), *(",".join(map(str, one)) for one in zip(*DATA.values(), strict=True))]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    return tmp_path


def expected() -> fairperm.PermutationTestResult:
    return fairperm.permutation_test(
        "animal",
        y_score=["p_cat", "p_dog", "p_owl"],
        sensitive_features="site",
        metric="roc_auc_ovr",
        data=DATA,
        n_resamples=99,
        rng=1,
    )


def test_the_command_is_the_function(folder: Path) -> None:
    done = run("test", *CALL, "--label", "animal", *OPTIONS, "--json", "-", cwd=folder)
    assert json.loads(done.stdout)["result"] == expected().to_dict()
    numbered = [f"--class-score={i}=p_{name}" for i, name in enumerate(("cat", "dog", "owl"))]
    done = run("test", *CALL, "--label", "code", *numbered, "--json", "-", cwd=folder)
    assert json.loads(done.stdout)["result"]["pvalue"] == expected().pvalue


def test_a_file_of_options_has_a_table_of_classes(folder: Path) -> None:
    (folder / "fairperm.toml").write_text(
        'label = "animal"\nclass-score = {cat = "p_cat", dog = "p_dog", owl = "p_owl"}\n'
    )
    done = run("test", *CALL, "--json", "-", cwd=folder)
    assert json.loads(done.stdout)["result"]["pvalue"] == expected().pvalue


def test_an_audit_has_a_report_with_a_call_that_makes_it_again(folder: Path) -> None:
    call = (*CALL, "--metric", "accuracy", "--label", "animal", "--prediction", "guess")
    done = run("audit", *call, *OPTIONS, "--json", "a.json", "--report", "r.html", cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    page = (folder / "r.html").read_text()
    assert "mean ROC AUC of the classes" in page
    assert "every class counts the same" in page
    audit = fairperm.Audit.from_dict(json.loads((folder / "a.json").read_text())["result"])
    assert audit.rows[0].pvalue == expected().pvalue
    code = write_call(audit)
    assert "y_score={'owl': 'p_owl', 'dog': 'p_dog', 'cat': 'p_cat'}" in code
    scope: dict[str, Any] = {"data": DATA}
    exec(code.replace("fairperm.audit(", "again = fairperm.audit("), scope)  # noqa: S102
    assert [row.pvalue for row in scope["again"].rows] == [row.pvalue for row in audit.rows]


REFUSED = {
    "no column": (["--class-score", "cat"], "--class-score must be CLASS=COLUMN; got 'cat'."),
    "twice": ([*OPTIONS, "--class-score", "cat=p_dog"], "must be given only once for 'cat'."),
    "none": (["--score", "p_cat"], "--class-score must be given for roc_auc_ovr: CLASS=COLUMN"),
    "both": ([*OPTIONS, "--score", "p_cat"], "Pass --score or --class-score, not both."),
    "an unknown class": (
        [*OPTIONS, "--class-score", "cow=p_cat"],
        "--class-score must be named by the classes of --label ('cat', 'dog', 'owl'); got 'cow'.",
    ),
    "a class without a column": (
        OPTIONS[1:],
        "--class-score must be one column for each of 3 classes ('cat', 'dog', 'owl'); got none "
        "for 'owl'.",
    ),
    "text": (
        [*OPTIONS[1:], "--class-score", "owl=guess"],
        "--class-score (column 'guess') must be made of real numbers; got",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, folder: Path) -> None:
    options, said = REFUSED[name]
    done = run("test", *CALL, "--label", "animal", *options, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr.decode().replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--metric", "accuracy"],
            "--class-score is for roc_auc_ovr, roc_auc_ovr_weighted and met",
        ),
        (["--distance", "ks"], "--distance cannot be used with --class-score: it needs one column"),
        (["--ranking", "ndcg"], "--ranking cannot be used with --class-score: it needs one column"),
    ],
)
def test_refusals_of_an_audit(options: list[str], said: str, folder: Path) -> None:
    done = run(
        "audit", "d.csv", "--group", "site", "--label", "animal", *OPTIONS, *options, cwd=folder
    )
    assert done.returncode == 2
    assert said in done.stderr.decode().replace("\n", " ")
