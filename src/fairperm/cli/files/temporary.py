"""The private folder of a command: data in it are removed at its end, or at the next start."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]


_PREFIX = "fairperm-"
_LOCK = "lock"


@contextlib.contextmanager
def make_private_folder() -> Iterator[Path]:
    """Make a temporary folder that only this user can read, and remove it at the end.

    Folders that killed processes left are removed at the beginning: a process holds the lock of its
    folder as long as it lives, wherever its number may be seen.
    """
    _sweep()
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name,
        _hold(Path(name)),
    ):
        yield Path(name)


@contextlib.contextmanager
def _hold(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; others see its file only when it is locked."""
    handle = None
    if fcntl is not None:
        with contextlib.suppress(OSError):  # not every file system has locks
            new = folder / f"{_LOCK}.new"
            handle = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            new.rename(folder / _LOCK)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _sweep() -> None:
    """Remove the folders of this user whose processes are gone."""
    if fcntl is None:
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
