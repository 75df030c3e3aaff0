"""Files made at random, odd, broken and hostile: each answer is right, or there is an error.

The oracle of the first test shares nothing with the command's reader: Python's csv module parts the
text, Python tells numbers from names, and the arrays go to ``fairperm.audit``. The oracle of the
second is plain pandas.
"""

from __future__ import annotations

import csv
import io
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import fairperm
from tests.support.commands import QUIET, Here, cells
from tests.support.hostile_files import NUMBERS

pytestmark = [pytest.mark.validate, pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")]
CASES = 100
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")
# how labels are spelt: yes, no, and which of them is positive if it must be said
SPELLINGS = [
    (["1"], ["0"], None),
    (["1", "1.0", " 1 ", "1e0", "+1"], ["0", "0.00", "-0", "0e5"], None),
    (["true", "True", "TRUE"], ["false", "False", " FALSE"], None),
    (["1"], ["-1"], None),
    (["yes"], ["no"], "yes"),
    (["2"], ["1"], "2"),
    (["J, a"], ['"nein"'], "J, a"),
    (["01"], ["00"], "01"),
    (["yes"], ["no"], None),  # an error: which is positive must be said
]
NAMES = [
    ("a", "b"),
    ("9", "10"),
    ("01", "1"),
    ("x,y", "x;y"),
    ('say "no"', "|"),
    ("two\nlines", "two lines"),
    (" a", "a"),
    ("é", "ü"),
    ("true", "false"),
    ("1.50", "2"),
    ("12345678901234567890", "12345678901234567891"),
    ("1_000", "#"),
    ("日本", "🦊"),
    ("-", "'"),
]
SCORES = ("{:.2f}", "{:.3e}", " {:.2f}", "+{:.2f}", "0{:.2f}", "{:g}")
MARKS = [",", ";", '"', '""', "\n", "\r\n", "\r", "\t", "|", "'", "é", "\0", " ", "NA", "1", "0"]
MARKS += ["-1", "a", "b", "y", "p", "g", "1.5", "1e5", "nan", "inf", "\ufeff", "{", "[", "\\", "_"]


@dataclass
class Case:
    """A file, the options that go with it, and how it is to be read."""

    text: str
    data: bytes
    options: list[str] = field(default_factory=list)
    delimiter: str | None = None
    missing: tuple[str, ...] = MISSING
    drop: bool = False
    positive: str | None = None
    has_scores: bool = False


def made(chance: random.Random) -> Case:
    """Return a file as people make them, or, one in four, broken."""
    yes, no, positive = chance.choice(SPELLINGS)
    names = chance.choice(NAMES)
    has_scores = chance.random() < 0.3
    holes = chance.choice([None, None, "", "NA", "null", "?"])

    def label(value: bool) -> str:
        return chance.choice(yes if value else no)

    table = []
    for _ in range(40):
        score = chance.random()
        second = chance.choice(SCORES).format(score) if has_scores else label(score < 0.5)
        row = [label(chance.random() < 0.5), second, chance.choice(names), str(chance.random())]
        if holes is not None and chance.random() < 0.1:
            row[chance.randrange(3)] = holes
        table.append(row)
    header = ["y", "p", "g", chance.choice(["z", "", "Y", "é", "z,z"])]
    if chance.random() < 0.3:
        header, table = [*header, header[3]], [[*row, "x"] for row in table]
    order = chance.sample(range(len(header)), len(header))
    delimiter = chance.choice([",", ",", ",", ";", "\t", "|", "#"])
    text = written([[row[i] for i in order] for row in [header, *table]], delimiter, chance)
    case = Case(text, b"", positive=positive, has_scores=has_scores)
    if delimiter == "#":
        case.options += ["--delimiter", "#"]
        case.delimiter = "#"
    if positive is not None:
        case.options += ["--pos-label", positive]
    if holes == "?":
        case.options += ["--na", "?"]
        case.missing = ("", "?")
    if holes is not None and chance.random() < 0.8:
        case.options += ["--missing", "drop"]
        case.drop = True
    if chance.random() < 0.25:
        case.text = broken(case.text, chance)
    encoding = chance.choice(["utf-8"] * 4 + ["utf-8-sig", "utf-16", "utf-16-le"])
    if encoding == "utf-16-le":
        case.options += ["--encoding", encoding]
    case.data = case.text.encode(encoding)
    return case


def written(table: list[list[str]], delimiter: str, chance: random.Random) -> str:
    """Return rows as CSV: quoted where they must be, or everywhere, or here and there."""
    rate, end = chance.choice([0.0, 0.2, 1.0]), chance.choice(["\n", "\n", "\r\n", "\r"])

    def cell(text: str) -> str:
        must = any(one in text for one in f'{delimiter}"\r\n,;|\t')
        return '"' + text.replace('"', '""') + '"' if must or chance.random() < rate else text

    text = end.join(delimiter.join(map(cell, row)) for row in table)
    return text + chance.choice([end, end, "", end + end])


def broken(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text))
    return text[:at] + chance.choice(MARKS) + text[at + chance.randint(0, 2) :]


def answer(case: Case) -> list[dict[str, str]]:
    """Return the right answer; an error if there is none."""
    text = case.text.removeprefix("\ufeff")
    first = text.splitlines()[0]
    mark = case.delimiter or max(
        ",;\t|", key=lambda one: len(next(csv.reader([first], delimiter=one)))
    )
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    rows = [row for row in rows if row]
    if any(len(row) != len(header) for row in rows):
        raise ValueError("ragged rows")
    places = [header.index(name) for name in "ypg"]
    if any(header.count(name) != 1 for name in "ypg"):
        raise ValueError("a column is not there once")
    kept = [[row[i] for i in places] for row in rows]
    if case.drop:
        kept = [row for row in kept if not set(row) & set(case.missing)]
    if any(one in case.missing for row in kept for one in row):
        raise ValueError("missing values")
    y, p, g = (understood(list(column)) for column in zip(*kept, strict=True))
    positive = case.positive
    if positive is not None:
        positive = next((one for one in y if str(one) == positive), positive)
    audit = fairperm.audit(
        y,
        None if case.has_scores else p,
        y_score=[float(one) for one in p] if case.has_scores else None,
        sensitive_features=g,
        metrics=["selection_rate", "false_negative_rate"],
        pos_label=positive,
        min_group_size=1,
        rng=1,
    )
    return [
        {name: "" if one is None else str(one) for name, one in row.cells().items()}
        for row in audit.rows
    ]


def understood(column: list[str]) -> list[Any]:
    """Return numbers if all are numbers, truths if all are, else names as they stand."""
    plain = [one.strip() for one in column]
    if any(one.lstrip("+-")[:1] == "0" and one.lstrip("+-")[1:2].isdigit() for one in plain):
        return column  # codes
    if any(len(one) > 16 or "_" in one for one in column):
        return column
    try:
        numbers = [float(one) for one in plain]
    except ValueError:
        words = [one.lower() for one in plain]
        return [one == "true" for one in words] if set(words) <= {"true", "false"} else column
    whole = all(one.removeprefix("-").isdecimal() and one == str(int(one)) for one in plain)
    return [int(one) for one in plain] if whole else numbers


def test_answers_are_right_or_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch)
    chance = random.Random(5)
    answered = 0
    for _ in range(CASES):
        case = made(chance)
        path = tmp_path / "x.csv"
        path.write_bytes(case.data)
        columns = ("--label", "y", "--score" if case.has_scores else "--prediction", "p")
        asked = ("--group", "g", "--metric", "selection_rate", "--metric", "fnr", "--seed", 1)
        code, out, err = here.run(
            *("audit", path, *columns, *asked, *case.options),
            *("--min-group-size", 1, "--csv", "-", "--raw-names"),
        )
        try:
            right: list[dict[str, str]] | None = answer(case)
        except (ValueError, csv.Error, fairperm.errors.FairpermError):
            right = None
        if code == 0:
            answered += 1
            found = [{**row, "attribute": "sensitive_features"} for row in cells(out)]
            assert found == right, (case, err)
        else:
            assert code == 2, (case, err)
            assert "should not happen" not in err, (case, err)
            assert err.count("\n") == 1
            assert right is None, (case, err)
    assert answered >= 0.4 * CASES


HOSTILE = (sys.executable, "-W", "ignore", "-m", "tests.support.hostile_files")
PARTS = 4
MAX_SECONDS, MAX_MEGABYTES = 30, 4096


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that every user can read; those of pytest are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_thousand_hostile_files(open_folder: Path, part: int) -> None:
    """With those above and the damaged files of Parquet, 2,000 mutations."""
    done = subprocess.run(
        [*HOSTILE, *map(str, (part, len(NUMBERS), PARTS)), open_folder],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        env=QUIET,
        timeout=600,
        check=False,
    )
    *lines, memory = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    assert len(lines) == len(range(part, len(NUMBERS), PARTS))
    skipped = [one for one in lines if " skipped: " in one]
    assert skipped == [] or os.getuid() != 0
    ended = [one.split(" ", 4) for one in lines if one not in skipped]
    assert [one for one in ended if one[4] != "well"] == []
    assert max(float(one[3]) for one in ended) < MAX_SECONDS
    assert int(memory.split()[1]) < MAX_MEGABYTES
    answered = sum(one[2] != "2" for one in ended)
    assert 0.2 < answered / len(ended) < 0.8  # neither always fatal nor never
