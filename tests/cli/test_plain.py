"""Text files without DuckDB: what it reads, Python reads to the same numbers, or says why not."""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairperm.cli.files.loading import read_columns
from fairperm.errors import FairpermError
from tests.cli.test_hostile import ASKED, RIGHT, ROWS, WRONG, Here, expected
from tests.support.commands import as_text, failed

HINT = "which is not installed: pip install 'fairperm[files]'"
SCORED = "y,p,g,s,c\n" + "".join(
    f"{y},{p},{g},0.{i * 7919 % 1000:03},{i % 40}\n" for i, (y, p, g) in enumerate(ROWS)
)
# other commands, and metrics that need every row
COMMANDS: dict[str, tuple[str, ...]] = {
    "scores": ("audit", "--label", "y", "--score", "s", "--group", "g", "--metric", "roc_auc"),
    "clusters": (
        "audit",
        "--prediction",
        "p",
        "--group",
        "g",
        "--cluster",
        "c",
        "--split-clusters",
    ),
    "a report": (*("audit", "--label", "y", "--score", "s", "--group", "g"), "--report", "r.html"),
    "selection": ("selection", "--selected", "p", "--group", "g", "--control", "c"),
    "sweep": ("sweep", "--label", "y", "--score", "s", "--group", "g", "--metric", "fpr"),
    "monitor": (
        *("monitor", "--label", "y", "--prediction", "p", "--group", "g", "--metric", "fpr"),
        *("--state", "state.json", "--batch", "1"),
    ),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path, monkeypatch)


def block(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(sys.modules, "duckdb", None)
    patch.setitem(sys.modules, "pyarrow", None)


def read_both(here: Here, content: str | bytes, *asked: object) -> list[tuple[Any, str]]:
    """Return the JSON and the message with DuckDB and without."""
    (here.folder / "x.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    found = []
    for blocked in (False, True):
        (here.folder / "state.json").unlink(missing_ok=True)
        with here.monkeypatch.context() as patch:
            if blocked:
                block(patch)
            code, out, err = here.run(asked[0], "x.csv", *asked[1:], "--json", "-")
        assert "should not happen" not in err
        found.append((json.loads(out) if code == 0 else None, err))
    return found


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_answer(here: Here, name: str) -> None:
    block(here.monkeypatch)
    assert here.right(RIGHT[name]) == expected()


@pytest.mark.parametrize("name", WRONG)
def test_the_same_error(here: Here, name: str) -> None:
    block(here.monkeypatch)
    # rows in memory have numbers
    said = WRONG[name][1].removesuffix(" (of 302 rows). Pass --missing drop")
    assert said in here.wrong(WRONG[name][0])


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_the_same_json_of_other_commands(here: Here, name: str) -> None:
    seeded = () if name == "selection" else ("--seed", "1")
    (one, said), (other, _) = read_both(here, SCORED, *COMMANDS[name], *seeded)
    assert one is not None, said
    assert one == other


def make_text(chance: random.Random) -> str:
    """Return a text of values that look alike, or of pieces that may not be CSV."""
    end, n = chance.choice(["\n", "\n", "\r\n", "\r"]), chance.randint(1, 6)
    if chance.random() < 0.5:
        cells: tuple[str, ...] = (
            "1",
            "01",
            "1.0",
            "-0",
            "+1",
            "1e2",
            " 2",
            "true",
            "TRUE",
            "NA",
            "",
            "inf",
            "nan",
        )
        cells += ("1_0", "+-1", "9" * 19, "0.1", '"1"', '"a ""b"', "é", "9223372036854775808")
        kinds = [chance.sample(cells, 3) for _ in "ypg"]
        lines = [",".join(chance.choice(one) for one in kinds) for _ in range(n)]
    else:
        pieces = ("1", "a", ",", ",", '"', '""', " ", "é", "\0", end, end)
        lines = ["".join(chance.choices(pieces, k=chance.randint(1, 9))) for _ in range(n)]
    return end.join(["y,p,g", *lines, ""])


def read(path: Path) -> Any:
    """Return the columns that a label, a score and a group are read to; or why they are not."""
    asked = {"files": [str(path)], "label": "y", "score": "p", "group": ["g"], "quiet": True}
    try:
        with read_columns(asked, ["roc_auc"], with_hashes=False) as loaded:
            return loaded.data
    except FairpermError as error:
        return str(error)


def test_texts_that_are_hardly_csv_never_have_another_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fixture of this folder compares what both read. What is not read has an error."""
    chance, seen = random.Random(1), Counter[str]()
    for _ in range(40):
        text = make_text(chance)
        (tmp_path / "x.csv").write_bytes(text.encode())
        one = read(tmp_path / "x.csv")
        with monkeypatch.context() as patch:
            block(patch)
            other = read(tmp_path / "x.csv")
        failures = isinstance(one, str), isinstance(other, str)
        if failures == (False, True):  # a quote beside a space
            assert "quote" in other or "columns; the header has" in other, text
        seen[str(failures)] += 1
    assert seen["(False, False)"] > 7
    assert seen["(True, True)"] > 7
    assert seen["(False, True)"] < 3


def test_only_a_quote_after_the_space_that_a_value_starts_with_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spaces and quotes within quotes are text like any other."""
    path = tmp_path / "x.csv"
    values = ('"say ""no"""', '"""nein"""', '" ""x"""', '"a\n ""b"""')
    lines = ["y,p,g,h", *(f'{i % 2},0.{i},{one},"""x"""' for i, one in enumerate(values, 1)), ""]
    path.write_text("\n".join(lines))
    assert not isinstance(read(path), str)
    block(monkeypatch)
    assert not isinstance(read(path), str)
    path.write_text("\n".join([*lines[:-1], '1,0.5, "a",b', ""]))
    assert "quote that opens or closes is out of place" in str(read(path))


def test_compressed_files_and_workbooks_need_no_more(here: Here) -> None:
    block(here.monkeypatch)
    text = as_text(ROWS)
    assert here.right(gzip.compress(text.encode()), name="x.csv.gz") == expected()
    assert "CRC check failed" in here.wrong(
        gzip.compress(text.encode())[:-8] + bytes(8), name="x.csv.gz"
    )
    assert "line is longer than 2 MB" in here.wrong(text + "1,1," + "0" * (3 << 20))
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (("y", "p", "g"), *ROWS):
        book.active.append(row)
    book.save(here.folder / "x.xlsx")
    assert here.right((here.folder / "x.xlsx").read_bytes(), name="x.xlsx") == expected()


def test_what_needs_duckdb_says_how_to_install_it(here: Here) -> None:
    block(here.monkeypatch)
    (here.folder / "x.csv").write_text(as_text(ROWS))
    (here.folder / "x.jsonl").write_text('{"y": 1}\n')
    commands: tuple[tuple[object, ...], ...] = (
        ("x.csv", "--where", "p = 1"),
        ("x.csv", "--score-bins", 9),
        ("x.jsonl",),
    )
    for asked in commands:
        said = failed("audit", *asked, *ASKED, cwd=here.folder)
        why = " with these options" if len(asked) > 1 else ""
        assert said == f"Reading {asked[0]!r}{why} needs duckdb, {HINT}"
    here.folder.joinpath("x.csv.zst").write_bytes(b"")
    said = failed("audit", "x.csv.zst", *ASKED, cwd=here.folder)
    assert said == f"A file that Zstandard compressed needs pyarrow, {HINT}"
