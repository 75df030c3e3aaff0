"""Damaged Parquet files: a clear error or what pandas reads, never a crash."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import QUIET, succeeded
from tests.support.damaged_files import COLUMNS, write_files

CHILD = (sys.executable, "-W", "ignore", "-m", "tests.support.damaged_files")
QUICK, ALL = 120, 1_000


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
    assert [one for one in endings if " wrong: " in one] == []
    answered = sum(" 0 " in one for one in endings)
    assert 0.1 < answered / len(endings) < 0.9  # the damage is neither always fatal nor never


def test_some_hundred_damaged_files(tmp_path: Path) -> None:
    check_mutations(0, QUICK, tmp_path)


@pytest.mark.validate
def test_a_thousand_damaged_files(tmp_path: Path) -> None:
    check_mutations(QUICK, QUICK + ALL, tmp_path)


def test_undamaged_files_are_read(tmp_path: Path) -> None:
    for name, content in write_files().items():
        (tmp_path / name).write_bytes(content)
        succeeded("audit", tmp_path / name, *COLUMNS, "-q")
