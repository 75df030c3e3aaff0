"""Run commands on files that somebody made to hurt: ``python -m tests.support.hostile_files``.

Like tests/support/damaged_files.py, for texts, workbooks, devices, files of other users and every
command. Each line that is printed has the number of a mutation, its kind, how the command ended,
after how many seconds, and what was wrong, if anything. Plain pandas is the oracle.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import random
import re
import resource
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from fairperm.cli import main
from fairperm.cli.files import formats
from tests.support.commands import sample
from tests.support.damaged_files import damage

NOBODY = 65534
ROWS = sample(120)
FORMULAS = ("a;=1+1;", "b\t@x", "c|+1", 'd;"=1";', "e\n-2+3", "=1", "f;-1")
MARKS = [
    ",",
    ";",
    '"',
    '""',
    "\n",
    "\r\n",
    "\r",
    "\t",
    "|",
    "é",
    " ",
    "NA",
    "1",
    "0",
    "\0",
    "\ufeff",
]
ENCODINGS = ("utf-16", "latin-1", "cp1252", "utf-7", "base64", "rot13", "zlib", "hex", "utf-32")
COLUMNS = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "selection_rate")
COMMANDS: dict[str, tuple[str, ...]] = {
    "audit": COLUMNS,
    "test": (*COLUMNS, "--pair", "a", "b"),
    "compare": (*COLUMNS, "--prediction-new", "y"),
    "sweep": ("--label", "y", "--score", "p", *COLUMNS[4:], "--resamples", "9"),
    "discover": ("--feature", "g", *COLUMNS[:4], *COLUMNS[6:], "--resamples", "9"),
    "periods": (*COLUMNS, "--period", "t"),
    "ranking": ("--metric", "exposure", "--rank", "r", "--query", "q", "--group", "g"),
}


@dataclass
class Case:
    """A file, the command for it, and what pandas reads from it, if anything."""

    name: str
    content: bytes
    command: str = "audit"
    options: tuple[object, ...] = ()
    read: Callable[[], Any] | None = None
    clean_up: list[Callable[[], None]] = field(default_factory=list)


def write_text(chance: random.Random, end: str = "\n") -> str:
    """Return rows with the columns that all commands need."""
    names = chance.choice([("a", "b"), ("a", "b"), chance.sample(FORMULAS, 2)])
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end)
    writer.writerow(["y", "p", "g", "t", "r", "q"])
    for i, (y, p, g) in enumerate(ROWS):
        writer.writerow([y, p, names[g == "b"], i % 2, i % 4 + 1, i // 4])
    return out.getvalue()


def broken(text: str, chance: random.Random) -> str:
    """Return the text with one place changed, or none."""
    at = chance.randrange(len(text))
    changed = text[:at] + chance.choice(MARKS) + text[at + chance.randint(0, 2) :]
    return changed if chance.random() < 0.6 else text


def read_csv(content: bytes, **options: Any) -> Any:
    """Return what pandas reads; as for DuckDB, a line may end in one more delimiter."""
    options = {"encoding": "utf-8-sig", "dtype": str, "keep_default_na": False, **options}
    try:
        return pd.read_csv(io.BytesIO(content), **options)
    except pd.errors.ParserError:
        options |= {"engine": "python", "on_bad_lines": drop_empty_end}
        return pd.read_csv(io.BytesIO(content), **options)


def drop_empty_end(cells: list[str]) -> list[str]:
    if cells[-1]:
        raise ValueError("a line is longer than the header")
    return cells[:-1]


def make_text(chance: random.Random) -> Case:
    """Every command on a text that is whole, or broken at one place."""
    text = broken(write_text(chance), chance).encode()
    return Case("x.csv", text, chance.choice([*COMMANDS]), (), lambda: read_csv(text))


def make_formulas(chance: random.Random) -> Case:
    """Names that are formulas where a spreadsheet splits lines at them."""
    names = chance.sample(FORMULAS, 2)
    text = "".join(json.dumps({"y": y, "p": p, "g": names[g == "b"]}) + "\n" for y, p, g in ROWS)
    command = chance.choice(["audit", "compare", "discover"])
    return Case("x.jsonl", text.encode(), command, ("--csv", "-"))


def make_compressed(chance: random.Random) -> Case:
    """A compressed text, whole or damaged."""
    text = broken(write_text(chance), chance).encode()
    kind = chance.choice(["gz", "zst", "zst"])
    packed = (
        gzip.compress(text)
        if kind == "gz"
        else bytes(pa.Codec("zstd").compress(text, asbytes=True))
    )
    if chance.random() < 0.5:
        return Case(f"x.csv.{kind}", damage(packed, chance))
    return Case(f"x.csv.{kind}", packed, read=lambda: read_csv(text))


def make_encoded(chance: random.Random) -> Case:
    encoding = chance.choice(ENCODINGS)
    text = write_text(chance).replace("a", chance.choice("aéü"))
    is_text = encoding not in {"base64", "rot13", "zlib", "hex"}
    content = text.encode(encoding if is_text and chance.random() < 0.7 else "utf-8")
    options = ("--encoding", encoding)
    return Case(
        "x.csv", content, options=options, read=lambda: read_csv(content, encoding=encoding)
    )


def make_blank(chance: random.Random) -> Case:
    """Blank lines at some place, few or many."""
    end = chance.choice(["\n", "\r\n"])
    lines = write_text(random.Random(1), end).split(end)
    at = chance.randrange(1, len(lines))
    n = int(10 ** chance.uniform(0, 7.3))
    text = (end.join(lines[:at]) + end * n + end.join(lines[at:])).encode()
    kind = chance.choice(["x.csv", "x.csv.gz"])
    content = gzip.compress(text, 1) if kind.endswith("gz") else text
    return Case(kind, content, read=lambda: read_csv(text.replace(b"\r\n", b"\n")))


def make_sheet(chance: random.Random) -> Case:
    """A workbook with cells anywhere, false dimensions, or damaged XML."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in csv.reader(io.StringIO(write_text(random.Random(1)), newline="")):
        sheet.append([int(one) if one.isdigit() else one for one in row])
    is_near = chance.random() < 0.6
    for _ in range(chance.choice([0, 1, 3])):
        far = int(10 ** chance.uniform(0, 6.02)), chance.randint(8, 16_384)
        place = (chance.randint(1, 200), chance.randint(8, 60)) if is_near else far
        sheet.cell(*place, chance.choice([None, 1, "note"])).number_format = "0.0"
    book.save(out := io.BytesIO())
    claim = chance.choice([None, "A1:B9", "A1:XFD1048576", "A1", "B2:A1", "?"])
    with (
        zipfile.ZipFile(out) as source,
        zipfile.ZipFile(changed := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for part in source.namelist():
            content = source.read(part).decode()
            if part.endswith("sheet1.xml"):
                begin = content.index('<dimension ref="') + len('<dimension ref="')
                end = content.index('"', begin)
                content = content[:begin] + (claim or content[begin:end]) + content[end:]
                if chance.random() < 0.3:
                    content = broken(content, chance)
            target.writestr(part, content)
    packed = changed.getvalue()
    packed = damage(packed, chance) if chance.random() < 0.2 else packed
    # pandas fills in all cells before a far one
    return Case("x.xlsx", packed, read=(lambda: read_sheet(packed)) if is_near else None)


def read_sheet(content: bytes) -> Any:
    """Return the rows of a sheet that have something under the header's names."""
    frame = pd.read_excel(io.BytesIO(content), dtype=str)
    return frame[[one for one in frame if not one.startswith("Unnamed")]].dropna(how="all")


def make_wide(chance: random.Random) -> Case:
    """Ten thousand columns."""
    rows = [[*map(str, row), *["1"] * 9_997] for row in ROWS[:40]]
    names = ["y", "p", "g", *(f"c{i}" for i in range(9_997))]
    order = chance.sample(range(10_000), 10_000)
    if chance.random() < 0.5:
        table = pa.table({names[i]: [row[i] for row in rows] for i in order})
        pyarrow.parquet.write_table(table, out := io.BytesIO())
        content = out.getvalue()
        return Case("x.parquet", content, read=lambda: pd.read_parquet(io.BytesIO(content)))
    text = "\n".join(",".join(row[i] for i in order) for row in [names, *rows]).encode()
    return Case("x.csv", text, read=lambda: read_csv(text))


def make_json(chance: random.Random) -> Case:
    rows = csv.DictReader(io.StringIO(write_text(chance), newline=""))
    lines = [json.dumps({k: int(v) if v.isdigit() else v for k, v in row.items()}) for row in rows]
    text = broken("\n".join(lines), chance).encode()
    return Case(
        "x.jsonl", text, read=lambda: pd.read_json(io.BytesIO(text), lines=True, dtype=False)
    )


def make_settings(chance: random.Random) -> Case:
    """A file of options, of any types."""
    value = chance.choice(["1", '"y"', "[]", "{}", "[[1]]", "nan", "1e999", "9" * 5000, "[" * 5000])
    key = chance.choice(
        ["label", "group", "metric", "files", "audit", "alpha", "seed", "margin", "é"]
    )
    text = f"{key} = {value}\n".encode()
    return Case("x.toml", damage(text, chance) if chance.random() < 0.3 else text, "--config")


def make_report(chance: random.Random) -> Case:
    """JSON for ``report``, which is damaged or another's."""
    text = json.dumps({"schema": "fairperm.audit", "schema_version": 2, "result": {"rows": []}})
    return Case("x.json", damage(text.encode(), chance), "report")


def make_endless(chance: random.Random) -> Case:
    """A device without an end, or a file that cannot be read as its size says."""
    name = chance.choice(["/dev/zero", "/dev/urandom", "/proc/self/mem", "/proc/self/status"])
    command = chance.choice(["audit", "test", "report"])
    options = ("--format", chance.choice(["csv", "jsonl", "parquet", "xlsx", "duckdb"]))
    return Case(name, b"", command, () if command == "report" else options)


def make_foreign(chance: random.Random) -> Case:
    """Nobody's command on root's files: data, outputs and folders. Only root can try it."""
    text = write_text(random.Random(1)).encode()
    path = Path.cwd() / "foreign"
    path.mkdir(exist_ok=True)
    path.chmod(0o755)
    (path / "out").write_text("root's\n")
    (path / "out").chmod(0o644)
    private = chance.random() < 0.5
    output = chance.choice([(), ("--csv", path / "out"), ("--report", path / "new.html")])

    def stop() -> None:
        os.seteuid(0)
        assert (path / "out").read_text() == "root's\n"
        assert {one.name for one in path.iterdir()} == {"out"}

    case = Case("x.csv", text, chance.choice([*COMMANDS]), output, lambda: read_csv(text), [stop])
    Path("x.csv").write_bytes(text)
    Path("x.csv").chmod(0o600 if private else 0o644)
    return case


KINDS: dict[str, tuple[Callable[[random.Random], Case], int]] = {
    "text": (make_text, 260),
    "formulas": (make_formulas, 40),
    "compressed": (make_compressed, 160),
    "encoded": (make_encoded, 100),
    "blank": (make_blank, 40),
    "sheet": (make_sheet, 90),
    "wide": (make_wide, 6),
    "json": (make_json, 90),
    "settings": (make_settings, 80),
    "report": (make_report, 40),
    "endless": (make_endless, 24),
    "foreign": (make_foreign, 70),
}
NUMBERS = [(kind, make) for kind, (make, n) in KINDS.items() for _ in range(n)]


def find_fault(case: Case, code: int, out: str, err: str) -> str:
    """Return what is wrong with the end of a command; nothing if all is well."""
    if code not in {0, 1, 2}:
        return f"code {code}"
    if "Traceback" in err or "should not happen" in err or (code == 2 and err.count("\n") > 2):
        return f"said {err[-300:]!r}"
    if code != 2 and case.options == ("--csv", "-"):
        pieces = re.split(r"[;\t|\n]", out)
        wrong = [one for one in pieces if re.match(r'[\s"]*[=+\-@＝](?![\d.])', one)]
        return f"formulas {wrong}" if wrong else ""
    if code == 2 or case.read is None or not out.startswith("{"):
        return ""
    found = json.loads(out)
    try:
        frame = case.read()
    except Exception as error:
        return f"pandas cannot read it: {error!r}"
    frame = frame[frame["g"] != ""] if "g" in frame else frame
    if found["rows_read"] not in {None, len(frame)}:
        return f"{found['rows_read']} rows, pandas has {len(frame)}"
    groups = {
        str(one["group"]): one["rows"]
        for one in found["result"].get("groups", ())
        if one and isinstance(one, dict)
    }
    right = Counter(map(str, frame["g"]))
    return f"{groups}, pandas has {right}" if groups and groups != right else ""


def import_all() -> None:
    """Run every command once: another user may not be allowed to read this Python's modules."""
    text = "y,p,g,t,r,q\n" + "".join(
        f"{y},{p},{g},{i % 2},{i % 4 + 1},{i // 4}\n" for i, (y, p, g) in enumerate(ROWS)
    )
    Path("x.csv").write_text(text)
    for command, asked in COMMANDS.items():
        outputs = ("--csv", "x.out", "--report", "x.html") if command == "audit" else ()
        sys.argv = ["fairperm", command, "x.csv", *asked, *outputs, "-q"]
        with contextlib.redirect_stdout(io.StringIO()):
            assert main._run() == 0
    for name in ("x.csv", "x.out", "x.html"):
        Path(name).unlink()


def run(first: int, end: int, step: int, folder: Path) -> None:
    """Run the commands of these mutations."""
    os.chdir(folder)  # no file of options is there
    formats._MAX_SHARE_OF_FREE_SPACE = 1e-3
    told = sys.stdout
    import_all()
    for number in range(first, end, step):
        kind, make = NUMBERS[number]
        print(number, kind, end=" ", file=told, flush=True)
        if kind == "foreign" and os.getuid() != 0:
            print("skipped: only root can become another user", file=told, flush=True)
            continue
        case = make(random.Random(number))
        path = Path(case.name)
        if not path.is_absolute():
            path.write_bytes(case.content)
        if case.command == "--config":
            arguments: tuple[object, ...] = ("audit", "--config", path)
        elif case.command == "report":
            arguments = ("report", path, "--report", "x.html")
        else:
            printed = () if "--csv" in case.options else ("--json", "-")
            asked = COMMANDS[case.command]
            arguments = (case.command, path, *asked, *case.options, *printed, "-q", "--seed", 1)
        sys.argv = ["fairperm", *map(str, arguments)]
        out, err = io.StringIO(), io.StringIO()
        started = time.monotonic()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            if kind == "foreign":
                os.seteuid(NOBODY)
            try:
                code = main._run()
            finally:
                for one in case.clean_up:
                    one()
        seconds = time.monotonic() - started
        fault = find_fault(case, code, out.getvalue(), err.getvalue())
        print(code, f"{seconds:.1f}", fault or "well", file=told, flush=True)
        if not path.is_absolute():
            path.unlink()
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print("memory", megabytes, file=told, flush=True)


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
