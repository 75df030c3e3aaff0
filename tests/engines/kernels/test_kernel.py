"""Compiled code: kept if it can be, compiled again if what was kept is damaged."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import UserProvidedCacheLocator

from fairperm._utils import progress
from fairperm.engines.kernels import compiled as compiling
from fairperm.errors import FairpermWarning
from tests.support.commands import QUIET, as_text, sample

SOURCE = Path(__file__).parents[3] / "src"


def twice(values: np.ndarray) -> float:
    return float(2 * values.sum())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def run() -> tuple[int, int]:
    """Return how many signatures came from files, and how many were compiled."""
    compiled = compiling.kernel(twice)
    assert compiled(np.arange(4.0)) == 12
    stats = compiled.stats  # type: ignore[attr-defined]
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


def test_code_is_kept(folder: Path) -> None:
    assert [run(), run()] == [(0, 1), (1, 0)]
    assert len([*folder.rglob("*.nbc")]) == 1


def test_compiling_is_said_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also without a terminal; and neither for code that is kept, nor if silence is wanted."""
    monkeypatch.setattr(progress, "_compiling_is_said", threading.Event())
    run()
    (path,) = folder.rglob("*.nbc")
    path.unlink()
    run()
    assert capsys.readouterr().err == f"{progress.COMPILING}\n"
    monkeypatch.setattr(progress, "_compiling_is_said", threading.Event())
    run()
    path.unlink()
    progress.keep_silent()
    run()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("content", [b"", b"abc", "cut", "flipped"])
def test_damaged_code_is_compiled_again(folder: Path, content: bytes | str) -> None:
    run()
    (path,) = folder.rglob("*.nbc")
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 4
    damaged = {"cut": whole[:-9], "flipped": bytes(flipped)}
    path.write_bytes(damaged[content] if isinstance(content, str) else content)
    assert [run(), run()] == [(0, 1), (1, 0)]


class Forged:
    """Compiled code that somebody else wrote: it runs as soon as it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("mode", [None, 0o720, 0o702])  # None: it is another user's
@pytest.mark.parametrize("of", ["file", "folder"])
def test_code_that_others_could_have_written_is_not_run(
    folder: Path, mode: int | None, of: str
) -> None:
    run()
    (path,) = folder.rglob("*.nbc")
    code = pickle.dumps(Forged(ran := folder / "ran"))
    path.write_bytes(hashlib.sha256(code).digest() + code)
    one = path if of == "file" else path.parent
    if mode is not None:
        one.chmod(mode)
    elif os.getuid() != 0:
        pytest.skip("only root can give a file to another user")
    else:
        os.chown(one, 65534, 65534)
    compiling._warn_of_open_cache.cache_clear()
    if of == "folder":
        with pytest.warns(FairpermWarning, match="belongs to another user or others can write"):
            assert [run(), run()] == [(0, 1), (0, 1)]
        assert path.read_bytes().endswith(code)  # what others left is not touched
    else:
        assert [run(), run()] == [(0, 1), (1, 0)]
    assert not ran.exists()


def test_folder_that_all_can_write_to(folder: Path) -> None:
    """Each user has a private folder in it."""
    folder.chmod(0o777)
    before = os.umask(0)
    try:
        assert [run(), run()] == [(0, 1), (1, 0)]
    finally:
        os.umask(before)
    (path,) = folder.rglob("*.nbc")
    assert [one.stat().st_mode & 0o777 for one in (path, path.parent)] == [0o600, 0o700]


def test_code_that_cannot_be_kept_any_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiling.kernel(twice)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiling, "write_whole", refuse)
    assert compiled(np.arange(4.0)) == 12
    assert [*folder.rglob("*.nbc")] == []


def test_no_folder_can_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(UserProvidedCacheLocator.__mro__[2], "ensure_cache_path", refuse)
    compiling._warn_of_no_cache.cache_clear()
    with pytest.warns(FairpermWarning, match="Set NUMBA_CACHE_DIR to a folder") as caught:
        first, second = compiling.kernel(twice), compiling.kernel(twice)
    assert len(caught) == 1
    assert first(np.arange(4.0)) == second(np.arange(4.0)) == 12
    compiling._warn_of_no_cache.cache_clear()


@pytest.mark.validate
def test_first_runs_at_the_same_time(tmp_path: Path) -> None:
    """Processes that compile for several signatures at once keep one file for each of them."""
    code = (
        "import sys, numpy as np\n"
        "from tests.engines.kernels.test_kernel import compiling, twice\n"
        "compiled = compiling.kernel(twice)\n"
        "kinds = ['i4', 'f4', 'i8', 'f8']\n"
        "for kind in kinds[int(sys.argv[1]):] + kinds:\n"
        "    assert compiled(np.arange(4, dtype=kind)) == 12\n"
    )
    environment = {**QUIET, "NUMBA_CACHE_DIR": str(tmp_path)}
    root = SOURCE.parent
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(i)], env=environment, cwd=root)
        for i in range(4)
    ]
    assert [one.wait(120) for one in processes] == [0] * 4
    assert len([*tmp_path.rglob("*.nbc")]) == 4


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that every user can write to; those of pytest are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.mark.validate
@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None, reason="only root can become nobody"
)
def test_locked_down_machine(open_folder: Path) -> None:
    """A user without a home, who can write to one folder only: rates, AUC and report."""
    data = open_folder / "x.csv"
    scored = [(y, i * 0.7919 % 1, g) for i, (y, _, g) in enumerate(sample())]
    data.write_text(as_text(scored, "y,s,g"))  # type: ignore[arg-type]
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    columns = ("--label", "y", "--score", "s", "--group", "g")
    options = ("--metric", "fpr", "--metric", "roc_auc", "--resamples", "99")
    outputs = ("--report", open_folder / "x.html", "--json", open_folder / "x.json")
    command = [*nobody, sys.executable, "-c", "from fairperm.cli.main import main; main()", "audit"]
    done = subprocess.run(
        [*command, data, *columns, *options, *outputs],
        env={"PATH": QUIET["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(SOURCE)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "note: No folder for compiled code can be written to" in done.stderr
    assert (open_folder / "x.html").stat().st_size > 0
