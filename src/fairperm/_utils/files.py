"""Files: writing one whole or not at all, and reading settings."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from fairperm.errors import InputError, shown

try:
    import fcntl
except ImportError:  # Windows, whose files have other locks
    fcntl = None  # type: ignore[assignment]


__all__ = ["check_target", "hold_lock", "read_limited", "read_toml", "write_whole"]

_MAX_SETTINGS = 1 << 20  # bytes


def read_toml(path: Path) -> dict[str, Any]:
    """Return the settings of a TOML file."""
    try:
        with path.open("rb") as file:
            content = read_limited(file, str(path), _MAX_SETTINGS)
        return tomllib.loads(content.decode())
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # also numbers of too many digits
        raise InputError(f"{shown(str(path))} is not TOML: {error}.") from error


def read_limited(file: BinaryIO, name: str, most: int) -> bytes:
    """Return the content of a file. Raises InputError if it has more bytes than this, or no end."""
    content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"{shown(name)} is too large: it has more than {most >> 20} MB.")
    return content


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Put `content` (text as UTF-8) into the file at `path`, and return its path.

    It is written to a temporary name in the same folder and moved into place: readers find the old
    file or the new one, never a part, even if this process is killed. A killed process may leave
    the temporary file, ``.NAME.….tmp``, which nothing reads and which can be removed.
    """
    target = check_target(path)
    content = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)  # /dev/stdout, a pipe: there is nothing to move
            return target
        _replace(target.resolve(), content)  # a link stays a link
    except OSError as error:
        raise InputError(_describe_failure(target, error)) from error
    return target


@contextlib.contextmanager
def hold_lock(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let only one process at a time work on a file; others wait."""
    # The lock is on ``NAME.lock`` beside it, which stays: the file itself is replaced. It ends with
    # the process, however that ends.
    target = check_target(path)
    beside = target.with_name(f"{target.name}.lock")
    try:
        with beside.open("ab") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            else:
                _lock_on_windows(file)
            yield
    except OSError as error:
        raise InputError(_describe_failure(beside, error)) from error


def _lock_on_windows(file: BinaryIO) -> None:
    import msvcrt

    while True:
        with contextlib.suppress(OSError):  # it gives up after ten seconds
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
            return


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file to write. Raises InputError if it is a folder or has none."""
    target = Path(path)
    try:
        if target.is_dir():
            raise InputError(f"{shown(str(target))} is a folder; give the name of a file.")
        if not target.parent.is_dir():
            raise FileNotFoundError
    except OSError as error:
        raise InputError(_describe_failure(target, error)) from error
    return target


def _replace(target: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(
        prefix=f".{target.name[:80]}.", suffix=".tmp", dir=target.parent
    )
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode(target))
        temporary.replace(target)
    except BaseException:  # Ctrl-C too
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _mode(target: Path) -> int:
    """Return the permissions of the file that is replaced, or those a new file would have."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _describe_failure(target: Path, error: OSError) -> str:
    folder = target.parent
    name = shown(str(target))
    if not folder.exists():
        return f"{name} cannot be written: the folder {shown(str(folder))} does not exist."
    if not folder.is_dir():
        return f"{name} cannot be written: {shown(str(folder))} is not a folder."
    if isinstance(error, PermissionError):
        return f"{name} cannot be written: no permission to write to {shown(str(folder))}."
    return f"{name} cannot be written: {error.strerror or error}."
