"""How the command ends if its streams are closed, full or broken, or a signal comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.commands import QUIET, as_text, cells, sample, succeeded

COMMAND = (sys.executable, "-W", "ignore", "-m", "fairperm")
COLUMNS = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "selection_rate")
FULL = "/dev/full"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "x.csv"
    path.write_text(as_text(sample()))
    return path


def in_shell(redirection: str, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, *map(str, arguments)],
        capture_output=True,
        env=QUIET,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(not Path(FULL).exists(), reason="this system has no full device")
@pytest.mark.parametrize("redirection", [f">{FULL}", ">&-"])
def test_standard_output_that_cannot_be_written(data: Path, redirection: str) -> None:
    out = data.with_name("out.csv")
    for more in ((), ("--json", "-")) if redirection == f">{FULL}" else ((),):
        done = in_shell(redirection, "audit", data, *COLUMNS, "--csv", out, *more)
        assert done.returncode == 2, done
        said = done.stderr.decode()
        assert "fairperm: error: standard output cannot be written: " in said
        assert "Traceback" not in said
        assert len(cells(out.read_text())) == 1
        out.unlink()
    done = in_shell(redirection, "audit", data, *COLUMNS, "--csv", out, "-q")
    assert (done.returncode, done.stderr) == (0, b"")  # nothing was to be printed
    assert len(cells(out.read_text())) == 1


@pytest.mark.parametrize("arguments", [("audit", "--help"), ("--version",)])
def test_help_that_nobody_reads(arguments: tuple[str, ...]) -> None:
    """Exit code 1 would mean a verdict."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=QUIET,
        timeout=120,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path(FULL).exists(), reason="this system has no full device")
@pytest.mark.parametrize("redirection", [f"2>{FULL}", "2>&-"])
def test_standard_error_that_cannot_be_written(data: Path, redirection: str) -> None:
    done = in_shell(redirection, "audit", data, *COLUMNS)
    assert (done.returncode, b"selection" in done.stdout) == (0, True)
    assert in_shell(redirection, "audit", data.with_name("none"), *COLUMNS).returncode == 2
    gate = ("--fail-on", "inconclusive", "--fail-on", "disparity")
    assert in_shell(redirection, "audit", data, *COLUMNS, *gate).returncode == 1


def test_all_streams_closed(data: Path) -> None:
    out = data.with_name("out.csv")
    done = in_shell("<&- >&- 2>&-", "audit", data, *COLUMNS, "-q", "--csv", out)
    assert done.returncode == 0
    assert len(cells(out.read_text())) == 1
    assert data.read_text() == as_text(sample())


def test_error_shown_by_debug_is_no_verdict(data: Path) -> None:
    done = in_shell("", "audit", data, "--label", "no", *COLUMNS[2:], "--debug")
    assert done.returncode == 2
    assert b"Traceback" in done.stderr


# says when it has begun to import, to read or to count, and takes its time then
SLOW = """
import ctypes, sys, time
from fairperm.cli import start
when = sys.argv.pop(1)
if when == "imports":
    class Slow:
        def find_spec(self, name, path=None, target=None):
            if name == "click":
                print("working", flush=True)
                time.sleep(60)
    sys.meta_path.insert(0, Slow())
elif when == "counting":
    import fairperm
    def say(*arguments, audit=fairperm.audit, **options):
        print("working", flush=True)
        return audit(*arguments, **options)
    fairperm.audit = say
else:
    from fairperm.cli.files import loading
    def wait(*_):
        print("working", flush=True)
        time.sleep(60)
    class Finalized:
        __del__ = wait
    def swallow(*_):
        Finalized() if when == "finalizer" else ctypes.CFUNCTYPE(None)(wait)()
        if when == "failing callback":
            raise RuntimeError("no compiled object yet")
        time.sleep(60)
    loading.open_relation = wait if when == "reading" else swallow
start()
"""


NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONG = """SELECT hash(a.i * b.i) % 2 AS y, hash(a.i + b.i) % 2 AS p, hash(a.i - b.i) % 2 AS g
FROM range(1_000_000) AS a(i), range(1_000_000) AS b(i)"""


@pytest.mark.parametrize(
    ("when", "number"),
    [
        ("imports", signal.SIGTERM),
        *(("reading", number) for number in NUMBERS),
        ("counting", signal.SIGINT),
        # Python prints exceptions that it cannot raise there, and goes on; so does the compiler's
        ("finalizer", signal.SIGINT),
        ("callback", signal.SIGINT),
        ("failing callback", signal.SIGINT),
    ],
)
def test_signal(data: Path, when: str, number: signal.Signals) -> None:
    """Its own exit code, no traceback, and no row of data is left in the temporary folder."""
    folder = data.with_name("temporary")
    folder.mkdir()
    query = ("--sql", LONG) if when == "counting" else ()
    with (
        data.open("rb") as source,
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SLOW, when, "audit", "-", *COLUMNS, *query],
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**QUIET, "TMPDIR": str(folder)},
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL) and None,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"working\n"
        assert (when != "imports") == any(folder.iterdir())
        time.sleep(0.3 if query else 0)  # until DuckDB counts, for some hours
        process.send_signal(number)
        sent = time.monotonic()
        said = process.stderr.read()
        assert time.monotonic() - sent < 30  # it would wait for a minute
    assert process.returncode == 128 + number
    assert said == b"fairperm: interrupted\n"
    assert [*folder.iterdir()] == []


def start_reading(data: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Return a process that has copied the data to the temporary folder."""
    with data.open("rb") as source:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SLOW, "reading", "audit", "-", *COLUMNS],
            stdin=source,
            stdout=subprocess.PIPE,
            env={**QUIET, "TMPDIR": str(folder)},
        )
    assert process.stdout is not None
    assert process.stdout.readline() == b"working\n"
    return process


def test_folder_of_a_killed_command_is_swept_by_the_next(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that of a command that still runs, nor what only has a similar name."""
    folder = data.with_name("temporary")
    other = folder / "fairperm-other"
    other.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with start_reading(data, folder) as killed:
        (left,) = {*folder.iterdir()} - {other}
        killed.kill()
    assert "y,p,g" in (left / "stdin").read_text()
    with start_reading(data, folder) as running:
        (kept,) = {*folder.iterdir()} - {other}
        assert kept != left
        succeeded("audit", data, *COLUMNS, "-q")
        assert {*folder.iterdir()} == {kept, other}
        assert (kept / "stdin").exists()
        running.kill()
    succeeded("audit", data, *COLUMNS, "-q")
    assert [*folder.iterdir()] == [other]


def test_signal_that_is_ignored(data: Path) -> None:
    """A command under nohup outlives its terminal."""
    with subprocess.Popen(
        [*COMMAND, "audit", data, *COLUMNS],
        stdout=subprocess.PIPE,
        env=QUIET,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None,
    ) as process:
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGHUP)
        process.communicate()
    assert process.returncode == 0
