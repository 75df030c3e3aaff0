"""The command for audits of selection gives what the function gives, and gates on it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from openpyxl import Workbook, load_workbook

from fairperm import selection_audit
from tests.support.commands import run

PEOPLE = {("m", "x"): (90, 60), ("m", "y"): (90, 54), ("w", "x"): (90, 15), ("w", "y"): (90, 50)}
ROWS = [
    (sex, race, "yes" if i < hired else "no", i % 7)
    for (sex, race), (n, hired) in PEOPLE.items()
    for i in range(n)
]
DATA = dict(
    zip(("sex", "race", "hired", "points"), map(list, zip(*ROWS, strict=True)), strict=True)
)
HIRED = ("--selected", "hired", "--pos-label", "yes")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [",".join(DATA), *(",".join(map(str, row)) for row in ROWS)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    return tmp_path


def test_the_command_is_the_function(folder: Path) -> None:
    given = ("selection", "a.csv", *HIRED, "--group", "sex", "--group", "race")
    expected = selection_audit(
        "hired", sensitive_features=["sex", "race"], pos_label="yes", data=DATA
    )
    done = run(*given, "--json", "-", cwd=folder)
    document = json.loads(done.stdout)
    assert (done.returncode, document["schema"]) == (0, "fairperm.selection")
    assert document["result"] == expected.to_dict()
    assert document["rows_read"] == len(ROWS)
    shown = run(*given, cwd=folder)
    assert shown.stdout.decode().rstrip() == repr(expected)
    lines = run(*given, "--csv", "-", cwd=folder).stdout.decode().splitlines()
    assert [line.split(",")[:2] for line in lines[1:3]] == [["sex", "m"], ["sex", "w"]]
    assert len(lines) == 1 + len(expected)
    alone = run(*given, "--intersections", "no", "--markdown", "-", cwd=folder).stdout.decode()
    assert alone.count("\n| sex | ") == alone.count("\n| race | ") == 2
    assert "×" not in alone


def test_scores_and_thresholds(folder: Path) -> None:
    given = ("selection", "a.csv", "--score", "points", "--group", "sex", "--json", "-")
    for threshold in ("median", 4.0):
        done = run(*given, "--threshold", threshold, cwd=folder)
        expected = selection_audit(
            score="points", threshold=threshold, sensitive_features=["sex"], data=DATA
        )
        assert json.loads(done.stdout)["result"] == expected.to_dict()


def test_counts_are_copies_of_rows(folder: Path) -> None:
    lines = ["sex,race,hired,n"]
    for (sex, race), (n, hired) in PEOPLE.items():
        lines += [f"{sex},{race},yes,{hired}", f"{sex},{race},no,{n - hired}"]
    (folder / "n.csv").write_text("\n".join(lines))
    groups = (*HIRED, "--group", "sex", "--group", "race")
    counted = run("selection", "n.csv", *groups, "--count", "n", "--csv", "-", cwd=folder)
    assert counted.returncode == 0
    assert counted.stdout == run("selection", "a.csv", *groups, "--csv", "-", cwd=folder).stdout
    (folder / "n.csv").write_text("\n".join([*lines, "m,x,yes,-3"]))
    refused = run("selection", "n.csv", *groups, "--count", "n", cwd=folder)
    assert b"--count (column 'n') must be made of whole numbers" in refused.stderr


def test_summaries_and_strata(folder: Path) -> None:
    lines = [
        "sex,race,hired,n",
        *(f"{sex},{race},{k},{n}" for (sex, race), (n, k) in PEOPLE.items()),
    ]
    (folder / "s.csv").write_text("\n".join(lines))
    groups = ("--group", "sex", "--group", "race", "--csv", "-")
    given = ("--selected", "hired", "--applicants", "n")
    summed = run("selection", "s.csv", *given, *groups, cwd=folder)
    assert summed.stdout == run("selection", "a.csv", *HIRED, *groups, cwd=folder).stdout
    strata = ("--group", "sex", "--control", "race", "--json", "-")
    done = run("selection", "a.csv", *HIRED, *strata, cwd=folder)
    expected = selection_audit(
        "hired", sensitive_features=["sex"], control_features=["race"], pos_label="yes", data=DATA
    )
    assert json.loads(done.stdout)["result"] == expected.to_dict()


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_counts_of_any_file_are_copies_of_rows(folder: Path, ending: str) -> None:
    counts = {"sex": ["m", "m", "w", "w"], "hired": [1, 0, 1, 0], "n": [114, 66, 65, 115]}
    frame = pd.DataFrame(counts)
    write = {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}[ending]
    write(folder / f"n.{ending}", index=False)
    options = ("--selected", "hired", "--group", "sex", "--count", "n", "--csv", "-")
    counted = run("selection", f"n.{ending}", *options, cwd=folder)
    whole = ("selection", "a.csv", *HIRED, "--group", "sex", "--csv", "-")
    assert counted.stdout == run(*whole, cwd=folder).stdout
    for command in ("test", "audit"):
        text = "--prediction hired --metric selection_rate --group sex --seed 1 --json -"
        given = text.split()
        of_counts = run(command, f"n.{ending}", *given, "--count", "n", cwd=folder)
        of_rows = run(command, "a.csv", *given, "--pos-label", "yes", cwd=folder)
        found, expected = (json.loads(one.stdout)["result"] for one in (of_counts, of_rows))
        for one in (found, expected):
            one.pop("settings", None)
        assert found == expected


def test_a_title_above_the_header_is_skipped_and_a_page_and_a_workbook_written(
    folder: Path,
) -> None:
    book = Workbook()
    for row in (["Applicants 2026"], [], [*DATA], *ROWS):
        book.active.append(row)
    book.save(folder / "a.xlsx")
    given = ("selection", "a.xlsx", *HIRED, "--group", "sex", "--group", "race", "-q")
    assert b"--skip 1" in run(*given, cwd=folder).stderr
    outputs = ("--report", "a.html", "--xlsx", "out.xlsx", "--from", "2025-01-01")
    done = run(*given, "--skip", "2", *outputs, cwd=folder)  # as the sheet numbers its rows
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    page = (folder / "a.html").read_text()
    assert "2025-01-01" in page
    assert "fairperm selection a.xlsx --selected hired" in page  # how to make it again
    assert "sha256 of a.xlsx" in page
    assert load_workbook(folder / "out.xlsx").sheetnames == ["About", "sex", "race", "sex × race"]
    same = run(*given, "--skip", "1", "--xlsx", "a.xlsx", cwd=folder)
    assert same.returncode == 2
    assert run(*given, "--skip", "1", "--xlsx", "-", cwd=folder).returncode == 2


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--fail-on", "below"), 1, "failed: 2 of 8 groups"),
        (("--fail-on", "estimate"), 1, "failed: 3 of 8 groups"),
        (("--fail-on", "estimate", "--intersections", "no"), 1, "sex, w: impact ratio 0.570"),
        (("--fail-on", "below", "--four-fifths", "0.1"), 0, ""),
        (("--fail-on", "estimate", "--four-fifths", "0.1", "--minimum-share", "0.3"), 2, "judge"),
    ],
)
def test_gates(folder: Path, options: tuple[str, ...], code: int, said: str) -> None:
    groups = ("--group", "sex", "--group", "race", "-q")
    done = run("selection", "a.csv", *HIRED, *groups, *options, cwd=folder)
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.stderr.decode()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--group", "sex"), "--selected or --score must be given"),
        ((*HIRED, "--score", "points", "--group", "sex"), "--selected or --score must be given"),
        (HIRED, "--group must be given"),
        (
            ("--selected", "hired", "--group", "sex"),
            "Pass --pos-label no or --pos-label yes,",
        ),
        ((*HIRED, "--group", "sx"), "Did you mean 'sex'?"),
        ((*HIRED, "--group", "sex", "--threshold", "3"), "--threshold needs --score."),
        (("--score", "points", "--group", "sex", "--threshold", "x"), "--threshold must be"),
        (("--score", "points", "--group", "sex", "--threshold", "9"), "No score would be above"),
        ((*HIRED, "--group", "sex", "--intersections", "maybe"), "--intersections must be"),
        ((*HIRED, "--group", "sex", "--minimum-share", "2"), "--minimum-share must be from 0"),
    ],
)
def test_mistakes_are_told_in_the_words_of_the_command(
    folder: Path, options: tuple[str, ...], said: str
) -> None:
    done = run("selection", "a.csv", *options, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert done.stdout == b""
