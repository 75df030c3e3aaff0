"""Run the command, here or as a process of its own, and write the files that it reads."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairperm.cli import main

COMMAND = Path(sys.executable).with_name("fairperm")
QUIET = {
    name: value
    for name, value in os.environ.items()
    if name
    not in {"COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM", "LC_ALL", "LANG", "PYTHONIOENCODING"}
}


def start(
    *arguments: object,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[bytes]:
    """Return what the installed command printed, and its exit code."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        input=stdin if stdin is not None else b"",
        capture_output=True,
        cwd=cwd,
        env={**QUIET, **environment},
        timeout=120,
        check=False,
    )


def run(
    *arguments: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Return what the command printed, and its exit code.

    It runs in this process, and does what the installed one does, without its start.
    """
    printed = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(stream, encoding="utf-8") for stream in printed)
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(cwd or Path.cwd()):
        for name in {*os.environ} - {*QUIET}:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["fairperm", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            main.main()
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    for stream in (out, err):
        stream.flush()
    return subprocess.CompletedProcess([], code, *(one.getvalue() for one in printed))


class Here:
    """The command, run in this process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch

    def run(self, *arguments: object) -> tuple[int, str, str]:
        """Return the exit code, and what went to standard output and to standard error."""
        out, err = io.StringIO(), io.StringIO()
        with self.monkeypatch.context() as patch:
            patch.delenv("COLUMNS", raising=False)  # which the workers of pytest have
            patch.setattr(sys, "argv", ["fairperm", *map(str, arguments)])
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = main._run()
        return code, out.getvalue(), err.getvalue()


def succeeded(*arguments: object, **options: Any) -> str:
    """Return what the command printed to standard output; it must have gone well.

    With a standard input it is a process, which reads a pipe.
    """
    done = (start if "stdin" in options else run)(*arguments, **options)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()


def failed(*arguments: object, **options: Any) -> str:
    """Return the one line in which the command says what is wrong."""
    done = run(*arguments, **options)
    said = done.stderr.decode()
    assert done.returncode == 2, (done.returncode, said, done.stdout[:300])
    assert done.stdout == b""
    assert "Traceback" not in said
    assert "should not happen" not in said
    assert said.startswith("fairperm: error: ")
    assert said.count("\n") == 1
    return said.removeprefix("fairperm: error: ").strip()


def cells(text: str) -> list[dict[str, str]]:
    """Return the rows that --csv printed."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def sample(n: int = 300) -> list[tuple[int, int, str]]:
    """Return labels, predictions and groups, always the same."""
    chance = random.Random(1)
    return [(chance.randint(0, 1), chance.randint(0, 1), chance.choice("ab")) for _ in range(n)]


def as_text(
    rows: list[tuple[int, int, str]], header: str = "y,p,g", line: str = "{},{},{}", end: str = "\n"
) -> str:
    """Return rows as the text of a CSV file."""
    return end.join([header, *(line.format(*row) for row in rows), ""])
