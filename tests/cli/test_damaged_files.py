"""Damaged Arrow, Feather and Parquet files: a clear error or what pandas reads, never a crash."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import QUIET, failed, succeeded
from tests.support.damaged_files import COLUMNS, FORMATS, write_files

CHILD = (sys.executable, "-W", "ignore", "-m", "tests.support.damaged_files")
QUICK, ALL, PARTS = 240, 2_000, 2
# DuckDB reads codes beyond the end of a page whose length is damaged, and gives other rows; pandas
# refuses the file, which has no checksums.
UNNOTICED = {"2237"}


def count_crashes(first: int, end: int, folder: Path) -> tuple[list[str], list[str]]:
    """Return the mutations that ended the process, and how the command ended on the others."""
    crashes, endings = [], []
    while first < end:
        done = subprocess.run(
            [*CHILD, str(first), str(end), str(folder)],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            env=QUIET,
            timeout=300,
            check=False,
        )
        lines = done.stdout.splitlines()
        assert lines, done.stderr
        if done.returncode != 0:
            crashes.append(lines.pop() + done.stderr[-500:])
        endings += lines
        first += len(lines) + (done.returncode != 0)
    return crashes, endings


def check_mutations(first: int, end: int, folder: Path) -> None:
    crashes, endings = count_crashes(first, end, folder)
    assert crashes == []
    assert len(endings) == end - first
    assert all(re.match(r"\d+ \S+ [02] ", one) for one in endings)
    faults = [one for one in endings if re.search("should not happen|duckdb failed|too slow", one)]
    assert faults == []
    wrong = [one for one in endings if " wrong: " in one]
    assert [one for one in wrong if one.split()[0] not in UNNOTICED] == []
    answered = sum(" 0 " in one for one in endings)
    assert 0.1 < answered / len(endings) < 0.9  # the damage is neither always fatal nor never


def test_some_hundred_damaged_files(tmp_path: Path) -> None:
    check_mutations(0, QUICK, tmp_path)


@pytest.mark.validate
@pytest.mark.parametrize("part", range(PARTS))
def test_two_thousand_damaged_files(tmp_path: Path, part: int) -> None:
    each = ALL // PARTS
    check_mutations(QUICK + part * each, QUICK + (part + 1) * each, tmp_path)


def test_undamaged_files_are_read(tmp_path: Path) -> None:
    for name, content in write_files().items():
        (tmp_path / name).write_bytes(content)
        succeeded("audit", tmp_path / name, *COLUMNS, "-q")


@pytest.mark.parametrize("name", [one for one in FORMATS if "parquet" not in one])
def test_text_that_is_not_utf8_is_named(tmp_path: Path, name: str) -> None:
    import pyarrow as pa

    broken = pa.array([b"ok", b"\xff\xfe"], pa.binary()).view(pa.string())
    if name.startswith("dictionary"):
        broken = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), broken)
    table = pa.table({"y": [0, 1], "p": [0, 1], "g": broken})
    new = pa.ipc.new_stream if name.endswith("arrows") else pa.ipc.new_file
    with new(str(tmp_path / name), table.schema) as writer:
        writer.write_table(table)
    said = failed("audit", name, *COLUMNS, cwd=tmp_path)
    assert re.search(f"'{name}' cannot be read: (In column|Column) 2.*Invalid UTF8 sequence", said)


@pytest.mark.parametrize("number", [10_000_000, -1])
def test_offsets_and_codes_out_of_bounds(tmp_path: Path, number: int) -> None:
    import pyarrow as pa

    wrong = struct.pack("<3i", 0, number, 4)
    text = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(wrong), pa.py_buffer(b"abcd")])
    codes = pa.Array.from_buffers(pa.int32(), 2, [None, pa.py_buffer(wrong)])
    coded = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)
    for column in (text, coded):
        table = pa.table({"y": [0, 1], "p": [0, 1], "g": column})
        path = tmp_path / "x.arrow"
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
        said = failed("audit", "x.arrow", *COLUMNS, cwd=tmp_path)
        assert "'x.arrow' cannot be read: In column 2" in said


def test_streams_and_files_together(tmp_path: Path) -> None:
    content = write_files()
    (tmp_path / "1.arrow").write_bytes(content["x.arrow"])
    (tmp_path / "2.arrow").write_bytes(content["x.arrows"])
    said = failed("audit", tmp_path / "1.arrow", tmp_path / "2.arrow", *COLUMNS)
    assert said == "Arrow files and Arrow streams cannot be read together."
