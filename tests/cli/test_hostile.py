"""Files that are not what they should be: a clear error or the right answer, never a wrong one.

Most run inside this process, which is what the installed command does, without its start.
"""

from __future__ import annotations

import bz2
import encodings.aliases
import gzip
import io
import json
import random
import re
import resource
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import commands
from tests.support.commands import as_text, cells, sample

pa = pytest.importorskip("pyarrow")
ROWS = sample()
ASKED = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "selection_rate")


def expected(first: str = "a", second: str = "b") -> list[tuple[str, str, str]]:
    """Return the groups' names, rows and positive predictions, counted here and now."""
    found = []
    for name, group in ((first, "a"), (second, "b")):
        mine = [p for _, p, g in ROWS if g == group]
        found.append((name, str(len(mine)), str(sum(mine))))
    return found


class Here(commands.Here):
    """The command, run in this process, on what a file holds."""

    def __call__(self, content: str | bytes, *options: object, name: str = "x.csv") -> Any:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.run("audit", path, *ASKED, *options, "--csv", "-")

    def right(self, content: str | bytes, *options: object, name: str = "x.csv") -> Any:
        code, out, err = self(content, *options, name=name)
        assert code == 0, err
        row = cells(out)[0]
        places = ("first", "second")
        return [
            tuple(row[f"{one}_{of}"] for of in ("group", "rows", "numerator")) for one in places
        ]

    def wrong(self, content: str | bytes, *options: object, name: str = "x.csv") -> str:
        code, out, err = self(content, *options, name=name)
        assert (code, out) == (2, ""), (code, out)
        assert "should not happen" not in err
        assert err.count("\n") == 1
        return str(err)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    return Here(tmp_path, monkeypatch)


RIGHT: dict[str, str | bytes] = {
    "plain": as_text(ROWS),
    "no last line end": as_text(ROWS).rstrip("\n"),
    "CRLF": as_text(ROWS, end="\r\n"),
    "CR": as_text(ROWS, end="\r"),
    "byte order mark": b"\xef\xbb\xbf" + as_text(ROWS).encode(),
    "UTF-16": as_text(ROWS).encode("utf-16"),
    "UTF-16, big end first": b"\xfe\xff" + as_text(ROWS).encode("utf-16-be"),
    "UTF-32": as_text(ROWS).encode("utf-32"),
    "semicolons": as_text(ROWS, "y;p;g", "{};{};{}"),
    "tabs": as_text(ROWS, "y\tp\tg", "{}\t{}\t{}"),
    "pipes": as_text(ROWS, "y|p|g", "{}|{}|{}"),
    "quoted": as_text(ROWS, '"y","p","g"', '"{}","{}","{}"'),
    "trailing comma": as_text(ROWS, line="{},{},{},"),
    "blank lines": as_text(ROWS, end="\n\n"),
    "numbers with spaces": as_text(ROWS, line=" {} ,{} ,{}"),
    "numbers with decimals": as_text(ROWS, line="{}.0,{}.00,{}"),
    "other columns twice": as_text(ROWS, "z,y,p,g,z", "1,{},{},{},2"),
    "other columns called the same but for case": as_text(ROWS, "Y,G,y,p,g", "0,0,{},{},{}"),
    "other columns without names": as_text(ROWS, ",y,p,g,", "1,{},{},{},2"),
    "hostile column names": as_text(ROWS, '"\'); DROP TABLE data; --",y,p,g', "1,{},{},{}"),
    "three thousand columns": as_text(
        ROWS, "y,p,g," + ",".join(f"c{i}" for i in range(3000)), "{},{},{}" + ",1" * 3000
    ),
    "a line end in quotes": as_text(ROWS, 'y,p,g,"z\nz"', '{},{},{},"1\n2"'),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answer(here: Here, name: str) -> None:
    assert here.right(RIGHT[name]) == expected()


WRONG: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty"),
    "only a header": ("y,p,g\n", "at least one row"),
    "no header": (as_text(ROWS).split("\n", 1)[1], "--label must be a column"),
    "first line empty": ("\n" + as_text(ROWS), "first line is empty. --skip LINES skips"),
    "only spaces": ("   \n\n", "first line is empty"),
    "a row too long": (
        as_text(ROWS) + "1,1,a,4\n",
        "line 302 has 4 columns; the header has 3",
    ),
    "a row too short": (as_text(ROWS) + "1,1\n", "line 302 has 2 columns"),
    "label twice": (as_text(ROWS, "y,p,g,y", "{},{},{},1"), "2 are called 'y'"),
    "name in other case": (as_text(ROWS, "Y,p,g"), "Did you mean 'Y'?"),
    "name with a space": (as_text(ROWS, "y, p,g"), "Did you mean ' p'?"),
    "Latin-1": (as_text(ROWS).replace("a\n", "é\n").encode("latin-1"), "--encoding"),
    "Latin-1 header": (as_text(ROWS, "y,p,g,é", "{},{},{},1").encode("latin-1"), "--encoding"),
    "Latin-1 at the end": (as_text(sample(40_000)).encode() + b"1,1,\xe9\n", "not in UTF-8"),
    "open quote": (as_text(ROWS) + '1,1,"a\n', "quote"),
    "open quote in the header": (as_text(ROWS, 'y,p,"g'), "--group must be a column"),
    "mixed line ends": (as_text(ROWS).replace("\n", "\r\n", 40), "line ends may be mixed"),
    "zero bytes": (b"y,p,g\0\n1,1,a\n", "zero bytes"),
    "bytes": (random.Random(2).randbytes(3000), "not in UTF-8"),
    "a million columns": (
        as_text([], "y,p,g," + ",".join(f"c{i}" for i in range(10**6))),
        "has 1,000,003 columns",
    ),
    "labels of three kinds": (as_text(ROWS) + "maybe,1,a\n", "got the values '0', '1', 'maybe'"),
    "labels with leading zeros": (as_text(ROWS, line="0{},{},{}"), "'00', '01'"),
    "missing values": (
        as_text(ROWS) + "NA,1,a\n,1,b\n",
        "--label (column 'y') has 2 missing values (of 302 rows). Pass --missing drop",
    ),
    "missing groups": (
        as_text(ROWS) + "1,1,NA\n",
        "--group (column 'g') has 1 missing value ",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_clear_error(here: Here, name: str) -> None:
    content, said = WRONG[name]
    assert said in here.wrong(content)


def test_header_of_another_row(here: Here) -> None:
    """Without a header, the first row is one; that no column has the name is said."""
    assert "got 'y'" in here.wrong("1,1,a\n0,1,b\n")


def test_truth_values(here: Here) -> None:
    def spelt(yes: str, no: str) -> str:
        rows = [(yes if y else no, yes if p else no, g) for y, p, g in ROWS]
        return "y,p,g\n" + "".join(f"{y},{p},{g}\n" for y, p, g in rows)

    assert here.right(spelt("True", "False")) == expected()
    assert here.right(spelt("TRUE", "false")) == expected()
    assert "--pos-label yes, whichever means yes" in here.wrong(spelt("yes", "no"))
    assert here.right(spelt("yes", "no"), "--pos-label", "yes") == expected()
    assert here.right(spelt("1", "-1")) == expected()
    assert here.right(spelt("2", "1"), "--pos-label", "2") == expected()
    assert "must be one of the labels" in here.wrong(spelt("yes", "no"), "--pos-label", "y")
    scores = as_text(ROWS, line="{},0.{}5,{}")
    assert "--score" in here.wrong(scores)


def test_missing_values(here: Here) -> None:
    more = as_text(ROWS) + "NA,1,a\n,1,b\n1,1,N/A\n0,null,a\n"
    assert here.right(more, "--missing", "drop") == expected()
    text = as_text(ROWS).replace("a\n", "NA\n")
    assert here.right(text, "--na", "") == expected("NA", "b")
    assert here.right(text.replace("NA", "?") + "1,1,-\n", "--na", "-", "--missing", "drop") == (
        expected("?", "b")
    )


def test_names_that_look_like_numbers(here: Here) -> None:
    def called(first: str, second: str) -> str:
        return as_text([(y, p, first if g == "a" else second) for y, p, g in ROWS])

    assert here.right(called("01", "1")) == expected("01", "1")
    assert here.right(called("9", "10")) == expected("9", "10")  # by value, as numbers are
    long = "12345678901234567890", "12345678901234567891"
    assert here.right(called(*long)) == expected(*long)
    digits = "0.12345678901234567", "0.12345678901234568"
    assert here.right(called(*digits)) == expected(*digits)
    assert here.right(called("1_000", "2_000")) == expected("1_000", "2_000")
    assert here.right(called("1e2", "x")) == expected("1e2", "x")


def test_encodings_and_delimiters(here: Here) -> None:
    text = as_text([(y, p, "é" if g == "b" else g) for y, p, g in ROWS])
    assert here.right(text.encode("latin-1"), "--encoding", "latin-1") == expected("a", "é")
    assert here.right(text.encode("cp1252"), "--encoding", "windows-1252") == expected("a", "é")
    assert "--encoding must be an encoding" in here.wrong(text, "--encoding", "klingon")
    assert "is not in the encoding utf-16" in here.wrong("abc", "--encoding", "utf-16")
    hashes = as_text(ROWS, "y#p#g", "{}#{}#{}")
    assert here.right(hashes, "--delimiter", "#") == expected()
    assert "--delimiter must be one character" in here.wrong(hashes, "--delimiter", "##")


@pytest.mark.parametrize("name", ["base64", "hex", "zlib", "bz2", "rot13", "uu", "quopri", "a\0b"])
def test_codecs_that_are_no_encodings(here: Here, name: str) -> None:
    assert "--encoding must be an encoding; got" in here.wrong(as_text(ROWS), "--encoding", name)


@pytest.mark.validate
def test_every_encoding_of_python(here: Here) -> None:
    text = as_text(ROWS)
    for name in sorted(
        {*encodings.aliases.aliases.values(), "idna", "undefined", "unicode_escape"}
    ):
        code, _, err = here(text, "--encoding", name)
        assert "should not happen" not in err, (name, err)
        assert (code, err.count("\n")) in {(0, 0), (2, 1)}, (name, err)


def test_names_of_files(here: Here) -> None:
    text = as_text(ROWS)
    for name in ("x'; DROP TABLE data; --.csv", "x[1]*?.csv", 'x"y.csv', "é \n.csv", "-x.csv"):
        assert here.right(text, name=name) == expected()
    assert here.right(gzip.compress(text.encode()), name="x.csv.gz") == expected()
    assert "cannot be read" in here.wrong(b"\x1f\x8babc", name="x.csv.gz")
    assert "Pass --format (csv" in here.wrong(text, name="x.dat")
    assert here.right(text, "--format", "csv", name="x.dat") == expected()


@pytest.mark.parametrize("name", ["x.csv.gz", "x.jsonl.gz"])
def test_checksum_of_a_compressed_file(here: Here, name: str) -> None:
    """A file whose bytes changed can still be decompressed, to other rows."""
    lines = [json.dumps({"y": y, "p": p, "g": g}) for y, p, g in ROWS]
    content = gzip.compress((as_text(ROWS) if "csv" in name else "\n".join(lines)).encode())
    assert here.right(content, name=name) == expected()
    damaged = content[:-8] + bytes(4) + content[-4:]
    assert "cannot be read: CRC check failed" in here.wrong(damaged, name=name)


def test_json(here: Here) -> None:
    def lines(make: Callable[[int, int, str], Any]) -> str:
        return "".join(json.dumps(make(*row)) + "\n" for row in ROWS)

    def plain(y: int, p: int, g: str) -> dict[str, Any]:
        return {"y": y, "p": bool(p), "g": g}

    assert here.right(lines(plain), name="x.jsonl") == expected()
    array = json.dumps([plain(*row) for row in ROWS])
    assert here.right(array, name="x.json") == expected()
    dates = {"a": "2020-01-01", "b": "2020-1-2"}
    found = here.right(lines(lambda y, p, g: {"y": y, "p": p, "g": dates[g]}), name="x.jsonl")
    assert found == expected(*dates.values())
    mixed = lines(lambda y, p, g: {"y": y, "p": p, "g": g if g == "a" else 7})
    assert "has several" in here.wrong(mixed, name="x.jsonl")
    nested = lines(lambda y, p, g: {"y": y, "p": p, "g": [g]})
    assert "--group (column 'g') must be made of numbers" in here.wrong(nested, name="x.jsonl")
    assert "cannot be read" in here.wrong(lines(plain) + '{"y": 1,', name="x.jsonl")
    assert "--label must be a column" in here.wrong("1\n2\n", name="x.jsonl")
    holes = lines(lambda y, p, g: {"y": y, "p": p, "g": g} if p else {"y": y, "g": g})
    assert "has 150 missing values" in here.wrong(holes, name="x.jsonl")


def test_parquet_whose_names_differ_in_case(here: Here, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    y, p, g = (list(column) for column in zip(*ROWS, strict=True))
    table = pa.table({"P": [0] * len(p), "y": y, "p": p, "g": pa.array(g).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    assert here.right(content, name="x.parquet") == expected()
    assert "the data have 'P', 'p'" in here.wrong(content, "--where", "y = 1", name="x.parquet")
    assert "cannot be read" in here.wrong(content[:-100], name="x.parquet")
    assert "cannot be read" in here.wrong(b"hello", name="y.parquet")


def test_broken_databases(here: Here) -> None:
    assert "cannot be opened" in here.wrong(bytes(8) + b"DUCK" + bytes(99), name="x.duckdb")


def test_files_that_differ(here: Here, tmp_path: Path) -> None:
    one, two = tmp_path / "1.csv", tmp_path / "2.csv"
    one.write_text(as_text(ROWS))
    two.write_text(as_text(ROWS, "y,p,h"))
    said = here.run("audit", one, two, *ASKED)[2]
    assert "differ in 'g'" in said
    two.with_suffix(".jsonl").write_text('{"y": 1}\n')
    assert "the same format" in here.run("audit", one, two.with_suffix(".jsonl"), *ASKED)[2]
    assert "got the folder" in here.run("audit", tmp_path, *ASKED)[2]


@pytest.mark.parametrize("option", ["--json", "--report", "--markdown"])
def test_results_are_not_written_over_their_data(here: Here, option: str) -> None:
    data = as_text(ROWS)
    same = here.folder / "." / "x.csv"
    assert f"{option} must be another file than the data" in here.wrong(data, option, same)
    assert same.read_text(encoding="utf-8") == data


@pytest.mark.parametrize("command", ["audit", "test", "sweep"])
def test_scores_of_no_rows(here: Here, command: str) -> None:
    path = here.folder / "x.csv"
    path.write_text("y,s,g\n", encoding="utf-8")
    columns = ("--label", "y", "--score", "s", "--group", "g", "--metric", "fpr")
    code, out, err = here.run(command, path, *columns)
    assert (code, out) == (2, "")
    assert "must have at least one row" in err


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", " =1", "＝1"]


@pytest.mark.parametrize("name", FORMULAS)
def test_names_are_no_formulas_in_csv(here: Here, name: str) -> None:
    rows = [(y, p, name if g == "a" else g) for y, p, g in ROWS]
    content = json.dumps([{"y": y, "p": p, "g": g} for y, p, g in rows])
    (first, second) = here.right(content, name="x.json")
    written = name.replace("\r", "\\r").replace("\t", "\t'")
    assert {first[0], second[0]} == {f"'{written}", "b"}
    (first, second) = here.right(content, "--raw-names", name="x.json")
    assert {first[0], second[0]} == {name, "b"}


SPLIT = ["a;=1+1;", "a\t@SUM(1)", "a|+1", "a\n-2+3", 'a; "=1+1";', "a;＝1", "=1;=1", "a;b|=1\t=1"]


@pytest.mark.parametrize("name", SPLIT)
def test_names_are_no_formulas_where_a_spreadsheet_splits_at_others(here: Here, name: str) -> None:
    """Such as at semicolons, which do not begin a quoted cell of a file with commas."""
    rows = [{"y": y, "p": p, "g": name if g == "a" else g} for y, p, g in ROWS]
    path = here.folder / "x.json"
    path.write_text(json.dumps(rows))
    code, out, err = here.run("audit", path, *ASKED, "--csv", "-")
    assert code == 0, err
    pieces = re.split(r"[;\t|\n]", out)
    assert not [one for one in pieces if re.match(r'[\s"]*[=+\-@＝](?![\d.])', one)]
    assert any("1" in one and re.match(r"[\s\"]*'[=+\-@＝]", one) for one in pieces)
    assert name in [
        row["first_group"]
        for row in cells(here.run(*("audit", path, *ASKED, "--csv", "-", "--raw-names"))[1])
    ]


# Every command that writes a table, on groups, periods, features and items with hostile names.
COLUMNS = ("--label", "y", "--prediction", "p", "--metric", "selection_rate")
TABLES: dict[str, tuple[object, ...]] = {
    "audit": (*COLUMNS, "--group", "=g", "--distance", "kolmogorov_smirnov", "--resamples", 99),
    "compare": (*COLUMNS, "--group", "=g", "--prediction-new", "y"),
    "sweep": ("--label", "y", "--score", "p", *COLUMNS[4:], "--group", "+t", "--resamples", 99),
    "discover": (*COLUMNS, "--feature", "=g", "--resamples", 99),
    "ranking": ("--metric", "exposure", "--rank", "rank", "--query", "@q", "--group", "=g"),
    "periods": (*COLUMNS, "--group", "=g", "--period", "+t"),
    "selection": ("--selected", "p", "--group", "=g", "--group", "+t"),
}
NAMES = "=1+1", "@x\x1b[1m\x9b\u202e", "-y"


@pytest.mark.parametrize("command", TABLES)
def test_names_are_harmless_in_the_outputs_of_every_command(here: Here, command: str) -> None:
    rows = [
        {"y": y, "p": 1 if g == "a" else p, "=g": NAMES[g == "b"], "+t": NAMES[i % 3]}
        | {"@q": f"=q{i // 4}", "rank": i % 4 + 1}
        for i, (y, p, g) in enumerate(ROWS)
    ]
    path = here.folder / "x.json"
    path.write_text(json.dumps(rows))
    printed = {}
    for output in (("--csv", "-"), ("--csv", "-", "--raw-names"), ("--json", "-"), ()):
        seed = () if command == "selection" else ("--seed", 1)
        code, out, err = here.run(command, path, *TABLES[command], *output, *seed)
        assert code == 0, err
        assert "--raw-names" in output or not {*"\x1b\x9b\r\u202e"} & {*out, *err}
        printed[output] = out
    texts = [one for row in cells(printed["--csv", "-"]) for one in row.values()]
    assert any("1+1" in one for one in texts)
    assert not [one for one in texts if re.match(r"\s*[=+@-](?![\d.])", one)]
    if command != "discover":  # which describes subgroups in words
        raw = [one for row in cells(printed["--csv", "-", "--raw-names"]) for one in row.values()]
        assert {*NAMES[:2]} <= {*raw}


@pytest.mark.parametrize("name", ["-1", "+1.5", "-.5e3", "- ", "a=b", "'=1"])
def test_numbers_and_other_names_stay_in_csv(here: Here, name: str) -> None:
    from fairperm.cli.outputs import as_csv

    (row,) = cells(as_csv([{"name": name, "gap": -0.5, "none": None}]))
    assert row == {"name": f"'{name}" if name == "- " else name, "gap": "-0.5", "none": ""}


def test_control_characters_in_outputs(here: Here) -> None:
    """No output commands a terminal: neither a title, nor a colour, nor a carriage return."""
    name = "\x1b]0;title\x07\x9b31m\r\u202ea"
    content = json.dumps([{"y": y, "p": p, "g": name if g == "a" else g} for y, p, g in ROWS])
    path = here.folder / "x.json"
    path.write_text(content)
    for option in ("--csv", "--json", "--markdown"):
        code, out, err = here.run("audit", path, *ASKED, option, "-")
        assert code == 0, err
        assert not {*"\x1b\x07\x9b\r\u202e"} & {*out, *err}
        if option == "--json":
            groups = json.loads(out)["result"]["groups"]
            assert name in [one["group"] for one in groups]
    code, out, err = here.run("audit", path, *ASKED)
    assert not {*"\x1b\x07\x9b\r\u202e"} & {*out, *err}
    code, out, err = here.run("audit", here.folder / "\x1b[31m.csv", *ASKED)
    assert (code, "\x1b" in err) == (2, False)


@pytest.mark.parametrize("other", ["a ", " a", "a\u200b", "a\u200d", "a\ufe0f", "a\u3164", "a\xad"])
def test_names_that_differ_in_invisible_characters_are_shown_differently(
    here: Here, other: str
) -> None:
    content = json.dumps([{"y": y, "p": p, "g": other if g == "a" else "a"} for y, p, g in ROWS])
    path = here.folder / "x.json"
    path.write_text(content)
    for options, names in (
        ((), r"\n  (\S+) − (\S+) "),
        (("--markdown", "-"), r"(\S+) − (\S+)"),
    ):
        code, out, err = here.run("audit", path, *ASKED, *options)
        assert code == 0, err
        pair = re.search(names, out)
        assert pair is not None
        assert sorted(map(len, pair.groups())) != [1, 1]
        assert not ({*other} - {*"a "}) & {*out}


@pytest.mark.parametrize("number", ["12345678901234567890123", "28446744073709551612", "1e400"])
def test_json_numbers_that_a_float_cannot_tell_apart(here: Here, number: str) -> None:
    groups = {"a": number, "b": number[:-1] + "4"}
    lines = "".join(f'{{"y": {y}, "p": {p}, "g": {groups[g]}}}\n' for y, p, g in ROWS)
    assert "that 64 bits cannot represent" in here.wrong(lines, name="x.jsonl")
    quoted = "".join(f'{{"y": {y}, "p": {p}, "g": "{groups[g]}"}}\n' for y, p, g in ROWS)
    assert here.right(quoted, name="x.jsonl") == expected(*groups.values())


def test_columns_of_json(here: Here) -> None:
    def wide(n: int) -> str:
        more = {f"c{i}": 1 for i in range(n)}
        return "".join(json.dumps({"y": y, "p": p, "g": g, **more}) + "\n" for y, p, g in ROWS)

    assert here.right(wide(400), name="x.jsonl") == expected()
    one = json.dumps({f"c{i}": 1 for i in range(20_001)})
    assert "the data have 20,001 columns; at most 20,000" in here.wrong(one, name="x.jsonl")
    # 80,000 take DuckDB more than a minute
    many = "".join(f'{{"k{i}": 1}}\n' for i in range(200_000))
    assert "the data have 200,000 columns; at most" in here.wrong(many, name="x.jsonl")


@pytest.mark.parametrize("options", [(), ("--format", "csv")])
def test_bzip2(here: Here, options: tuple[str, ...]) -> None:
    content = bz2.compress(as_text(ROWS).encode())
    assert "is compressed with bzip2" in here.wrong(content, *options, name="x.csv.bz2")


@pytest.mark.parametrize(
    ("name", "rest"),
    [("x.csv", "\n1,1,b\n"), ("x.csv", "\r\n\n"), ("x.csv", ""), ("x.csv.gz", "\n")],
)
def test_line_longer_than_the_buffer(here: Here, name: str, rest: str) -> None:
    """Also the last line, which DuckDB drops without an error."""
    content = (as_text(ROWS) + "1,1," + "0" * (40 << 20) + rest).encode()
    content = gzip.compress(content, 1) if name.endswith("gz") else content
    said = here.wrong(content, name=name)
    assert "cannot be read: a line is longer than 2 MB. Is a quote left open?" in said


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_are_named_or_skipped(here: Here, name: str, end: str) -> None:
    """DuckDB dropped the row after 12 MB of them, and a line was said to be longer than 2 MB."""

    def blank(n_bytes: int, after: str) -> bytes:
        text = as_text(ROWS, end=end)
        at = text.index(end, len(text) // 3) if after == "third" else len(text)
        content = (text[:at] + end * (n_bytes // len(end)) + text[at:]).encode()
        return gzip.compress(content, 1) if name.endswith("gz") else content

    for n_bytes in (1 << 20, 3 << 20, 12 << 20):
        for after in ("third", "last"):
            said = here.wrong(blank(n_bytes, after), name=name)
            assert "cannot be read: it has more than 0.5 MB of blank lines in a row." in said
    for after in ("third", "last"):
        assert here.right(blank((1 << 19) - 2, after), name=name) == expected()


def test_quote_left_open_in_a_header_of_blank_lines(here: Here) -> None:
    """It took half a minute to split this header at each of the delimiters."""
    said = here.wrong(b'"y,p,g\n' + b"\n" * (60 << 20))
    assert "cannot be read: a line is longer than 2 MB. Is a quote left open?" in said


def test_skipped_line_and_object_without_an_end(here: Here) -> None:
    title = gzip.compress(b"t" * (3 << 20) + b"\n" + as_text(ROWS).encode(), 1)
    said = here.wrong(title, "--skip", 1, name="x.csv.gz")
    assert "cannot be read: a line is longer than 2 MB." in said
    value = gzip.compress(b'{"y": 1, "p": 1, "g": "' + b"a" * (34 << 20) + b'"}', 1)
    assert "an object of JSON is longer than 16 MB" in here.wrong(value, name="x.jsonl.gz")


def test_rows_larger_than_the_memory(here: Here) -> None:
    """Rates need no rows in memory, the AUC does: a compressed file can hold any number of them."""
    here.monkeypatch.setattr("fairperm.cli.files.sql._SHARE_OF_ROWS", 1e-9)
    rows = gzip.compress(as_text(sample(5_000)).encode())
    assert len(here.right(rows, name="x.csv.gz")) == 2
    said = here.wrong(rows, "--metric", "roc_auc", "--score", "p", name="x.csv.gz")
    assert re.search(r"are too large: they take more than 0 MB, half of the memory.", said)


def test_workbooks_larger_than_the_memory(here: Here) -> None:
    """A workbook is compressed: its parts are not read beyond the sizes that it states."""
    openpyxl = pytest.importorskip("openpyxl")
    here.monkeypatch.setattr("fairperm.cli.files.sql._SHARE_OF_ROWS", 1e-9)
    book = openpyxl.Workbook()
    for row in (("y", "p", "g"), *ROWS):
        book.active.append(row)
    book.save(sheet := io.BytesIO())
    said = here.wrong(sheet.getvalue(), name="x.xlsx")
    assert "half of the memory. Save the sheet as CSV." in said


def workbook(cells: dict[tuple[int, int], Any], *above: tuple[str, ...], **edits: str) -> bytes:
    """Return the rows as a workbook with further cells; texts of its XML may be replaced."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (*above, ("y", "p", "g"), *ROWS):
        book.active.append(row)
    for place, value in cells.items():
        book.active.cell(*place, value).number_format = "0.0"  # else an empty cell is not written
    book.save(out := io.BytesIO())
    with (
        zipfile.ZipFile(out) as source,
        zipfile.ZipFile(changed := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for part in source.namelist():
            content = source.read(part).decode()
            for before, after in edits.items():
                content = content.replace(before, after)
            target.writestr(part, content)
    return changed.getvalue()


@pytest.mark.parametrize("value", [1, None])
def test_cell_at_the_end_of_a_sheet(here: Here, value: int | None) -> None:
    """It was not read within a minute: all cells before it were filled in."""
    content = workbook({(1_048_576, 16_384): value})
    assert len(content) < 9_000
    assert here.right(content, name="x.xlsx") == expected()


def test_cells_of_a_sheet_beyond_its_header(here: Here) -> None:
    notes = workbook({(1, 9): None, (7, 9): "a note", (400, 5): "another"})
    assert here.right(notes, name="x.xlsx") == expected()
    titles = workbook({}, ("A title",))
    assert here.right(titles, "--skip", 1, name="x.xlsx") == expected()


def test_dimensions_of_a_sheet_are_a_claim(here: Here) -> None:
    """Rows beyond them were dropped."""
    few = workbook({}, **{'ref="A1:C301"': 'ref="A1:B9"'})
    assert here.right(few, name="x.xlsx") == expected()
    many = workbook({}, **{'ref="A1:C301"': 'ref="A1:XFD1048576"'})
    assert here.right(many, name="x.xlsx") == expected()


def test_cells_of_a_sheet_without_an_end(here: Here) -> None:
    far = workbook({}, **{'<row r="301"': '<row r="99999999999"'})
    assert "the sheet has more than 1,048,576 rows" in here.wrong(far, name="x.xlsx")
    wide = workbook({(1, 16_384): "z", (1_048_576, 1): 1})
    assert "more than 1,048,576 rows or 100,000,000 cells" in here.wrong(wide, name="x.xlsx")


def test_two_outputs_are_two_files(here: Here) -> None:
    path = here.folder / "x.csv"
    path.write_text(as_text(ROWS))
    (here.folder / "link").symlink_to(here.folder / "out")
    (here.folder / "sub").mkdir()
    (here.folder / "out").touch()
    (here.folder / "hard").hardlink_to(here.folder / "out")
    for other in ("link", "./out", "sub/../out", "hard"):
        outputs = ("--json", here.folder / "out", "--csv", f"{here.folder}/{other}")
        code, _, err = here.run("audit", path, *ASKED, *outputs)
        assert (code, "two outputs cannot be the same file" in err) == (2, True)


class Pipe:
    """Standard input."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)

    def isatty(self) -> bool:
        return False


def test_full_temporary_folder(here: Here) -> None:
    here.monkeypatch.setattr("sys.stdin", Pipe(as_text(ROWS).encode()))
    here.monkeypatch.setattr("tempfile.tempdir", str(here.folder))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        code, _, err = here.run("audit", "-", *ASKED)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    said = f"the temporary folder '{here.folder}' cannot be written: File too large. Set TMPDIR"
    assert (code, said in err) == (2, True)


def test_numbers_of_bins(here: Here) -> None:
    path = here.folder / "x.csv"
    path.write_text(as_text(ROWS))
    columns = ("--label", "y", "--score", "p", "--group", "g", "--metric", "roc_auc")
    code, _, err = here.run("audit", path, *columns, "--score-bins", -1)
    assert (code, "--score-bins must be an integer from 2 to" in err) == (2, True)


@pytest.mark.parametrize("kind", ["device", "stdin", "utf-16", "skip", "xlsx"])
def test_copies_leave_half_of_the_temporary_folder(here: Here, kind: str) -> None:
    """Of data without an end, and of small files that are large when decompressed."""
    here.monkeypatch.setattr("fairperm.cli.files.formats._MAX_SHARE_OF_FREE_SPACE", 1e-20)
    here.monkeypatch.setattr("tempfile.tempdir", str(here.folder))
    here.monkeypatch.setattr("sys.stdin", Pipe(as_text(ROWS).encode()))
    text = as_text(ROWS)
    if kind == "device":
        if not Path("/dev/zero").exists():
            pytest.skip("this system has no endless device")
        code, _, said = here.run("audit", "/dev/zero", *ASKED, "--format", "csv")
        assert code == 2
    elif kind == "stdin":
        code, _, said = here.run("audit", "-", *ASKED)
        assert code == 2
    elif kind == "utf-16":
        said = here.wrong(gzip.compress(text.encode("utf-16")), name="x.csv.gz")
    elif kind == "skip":
        said = here.wrong(gzip.compress(b"title\n" + text.encode()), "--skip", 1, name="x.csv.gz")
    else:
        said = here.wrong(workbook({}), name="x.xlsx")
    assert re.search(r" is too large: a copy takes more than half of the free space \(", said)
    assert f"of the temporary folder '{here.folder}'. Set TMPDIR to another" in said
    assert {one.name for one in here.folder.iterdir()} <= {"x.csv.gz", "x.xlsx"}


@pytest.mark.parametrize("option", ["--config", "report"])
def test_files_that_are_read_into_memory_have_a_limit(here: Here, option: str) -> None:
    path = here.folder / "x"
    with path.open("wb") as file:
        file.truncate(65 << 20)
    arguments = ("report", path) if option == "report" else ("audit", "--config", path)
    code, _, err = here.run(*arguments)
    assert (code, f"'{path}' is too large: it has more than" in err) == (2, True), err


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="this system has no such file")
@pytest.mark.parametrize("command", [("audit", *ASKED), ("report",), ("audit", "--config")])
def test_file_that_cannot_be_read_is_named(here: Here, command: tuple[str, ...]) -> None:
    code, _, err = here.run(*command, "/proc/self/mem")
    assert code == 2
    assert err == "fairperm: error: '/proc/self/mem' cannot be read: Input/output error.\n"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ImportError, "libscipy_openblas.so: failed to map segment from shared object"),
        (OSError, "Could not find/load shared object file 'libllvmlite.so' from resource location"),
        (RuntimeError, "can't start new thread"),
    ],
)
def test_library_that_the_limit_of_memory_excludes(
    here: Here, kind: type[Exception], text: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise kind(text)

    here.monkeypatch.setattr("fairperm.audit", fail)
    here.monkeypatch.setattr("resource.getrlimit", lambda _: (1 << 30, 1 << 30))
    said = here.wrong(as_text(ROWS))
    assert "not enough memory to load a library or to start a thread: 1,024 MB of ad" in said
    assert "(ulimit -v)" in said


SYSTEM_FILE = Path("/proc/kmsg")  # regular by its mode, of no size, and waits for messages


def test_file_of_the_system_ends_by_a_signal(tmp_path: Path) -> None:
    try:
        with SYSTEM_FILE.open("rb"):
            Path("/dev/kmsg").write_text("fairperm: a message for its test\n")  # the first bytes
    except OSError as error:
        pytest.skip(f"this user has no access to the messages of the kernel: {error.strerror}")
    with subprocess.Popen(
        [commands.COMMAND, "audit", SYSTEM_FILE, *ASKED, "--format", "csv"],
        stderr=subprocess.PIPE,
        env={**commands.QUIET, "TMPDIR": str(tmp_path)},
    ) as process:
        try:
            while not any(tmp_path.iterdir()) and process.poll() is None:
                time.sleep(0.02)
            time.sleep(0.5)  # until it waits for more
            process.terminate()
            said = process.communicate(timeout=10)[1]
        finally:
            process.kill()
    assert (process.returncode, said) == (128 + signal.SIGTERM, b"fairperm: interrupted\n")
    assert [*tmp_path.iterdir()] == []


MEASURED = """
import resource, sys
from fairperm.cli import main
code = main._run()
print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.validate
@pytest.mark.parametrize("kind", ["line", "bomb", "header", "rows"])
def test_huge_files_are_read_in_bounded_memory(tmp_path: Path, kind: str) -> None:
    """Files of 2 GB, and 1.5 GB in compressed ones: an error or a count under 1 GB of memory."""
    path, out = tmp_path / ("x.csv.gz" if kind in {"bomb", "rows"} else "x.csv"), tmp_path / "out"
    if kind == "bomb":
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(b"y,p,g\n1,1,a\n")
            for _ in range(1500):
                file.write(b"0" * (1 << 20))
            file.write(b"\n1,1,b\n")
    elif kind == "rows":  # a compressed file may have several parts
        rows = gzip.compress(as_text(ROWS, line="{},{},{}," + "0" * 5000, end="\n")[6:].encode())
        path.write_bytes(gzip.compress(b"y,p,g,z\n") + rows * 1000)
    else:
        with path.open("wb") as file:
            file.write(b"y,p,g" + (b"\n1,1,a" if kind == "line" else b""))
            file.seek(2 << 30)  # zeros that take no room on the disk
            file.write(b"\n1,1,b\n")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURED, "audit", path, *ASKED, "-q", "--csv", out],
        capture_output=True,
        text=True,
        env=commands.QUIET,
        timeout=300,
        check=False,
    )
    code, megabytes = map(int, done.stdout.split())
    assert (code, megabytes < 1024) == (0 if kind == "rows" else 2, True), done
    said = {"line": "longer than 2 MB", "bomb": "longer than 2 MB", "header": "zero bytes"}
    assert said.get(kind, "") in done.stderr
    if kind == "rows":
        (row,) = cells(out.read_text())
        assert int(row["first_rows"]) + int(row["second_rows"]) == 1000 * len(ROWS)


# a file of more than 1 MB cannot be written, and DuckDB has little memory
SPILLING = """
import resource, sys
from fairperm.cli import main
from fairperm.cli.files import loading
def connect(folder, connect=loading.connect):
    connection = connect(folder)
    connection.execute("SET memory_limit = '40MB'")
    return connection
loading.connect = connect
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
sys.exit(main._run())
"""


@pytest.mark.validate
@pytest.mark.parametrize("asked", [("--metric", "selection_rate"), ("--metric", "roc_auc")])
def test_full_disk_while_duckdb_sorts(tmp_path: Path, asked: tuple[str, ...]) -> None:
    """Whether rows are counted where they are or read."""
    (tmp_path / "x.csv").write_text(as_text(ROWS))
    sql = "SELECT i % 2 AS y, i % 3 % 2 AS p, g FROM data, range(6000) AS t(i) ORDER BY hash(i, g)"
    columns = ("--label", "y", "--score", "p", "--group", "g", *asked, "--sql")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SPILLING, "audit", "x.csv", *columns, sql],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**commands.QUIET, "TMPDIR": str(tmp_path)},
        timeout=300,
        check=False,
    )
    said = f"the temporary folder '{tmp_path}' cannot be written: File too large. Set TMPDIR to"
    assert (done.returncode, said in done.stderr) == (2, True), done
