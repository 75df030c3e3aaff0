"""Which files are read: names, globs and standard input, their formats and their hashes."""

from __future__ import annotations

import glob
import hashlib
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairperm.cli.options import Format
from fairperm.errors import InputError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ENDINGS = {
    **dict.fromkeys((".csv", ".txt"), "csv"),
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".duckdb", ".ddb"), "duckdb"),
    **dict.fromkeys((".sqlite", ".sqlite3"), "sqlite"),
}
_COMPRESSED = (".gz", ".zst", ".bz2")
_DATABASES = ("duckdb", "sqlite")
_PLAIN_NAME = frozenset("*?[]")  # DuckDB would look for other files by these


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file as the user named it, and where its bytes are."""

    name: str
    path: Path
    format: str

    def described(self) -> dict[str, Any]:
        """Return what a later reader needs to tell whether it has the same file."""
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return {
            "path": self.name,
            "format": self.format,
            "bytes": self.path.stat().st_size,
            "sha256": digest.hexdigest(),
        }


def found(names: Sequence[str], given_format: str | None, folder: Path) -> list[InputFile]:
    """Return the files that are meant; ``folder`` is ours, for copies of what cannot be read twice.

    Parameters
    ----------
    names
        Files, globs, or "-" for standard input.
    given_format
        What the user says they are; else it is told by their names and first bytes.
    folder
        A temporary folder that goes when the command ends.
    """
    if names.count("-") > 1:
        raise InputError("FILE may be '-', standard input, only once.")
    files = [one for name in names for one in _expanded(name, given_format, folder)]
    formats = sorted({one.format for one in files})
    if len(formats) > 1:
        raise InputError(f"all files must be of one format; got {listed(formats)}.")
    if formats[0] in _DATABASES and len(files) > 1:
        raise InputError(f"one database can be read at a time; got {len(files)} files.")
    return files


def check_kept(files: Sequence[InputFile], outputs: Mapping[str, str]) -> None:
    """Refuse to write a result, by the option that names it, over the data that it is of."""
    for option, name in outputs.items():
        path = Path(name)
        if any(file.name != "-" and path.exists() and path.samefile(file.name) for file in files):
            raise InputError(f"{option} must be another file than the data; got {shown(name)}.")


def _expanded(name: str, given_format: str | None, folder: Path) -> Iterator[InputFile]:
    if name == "-":
        path = _spooled(folder)
        yield InputFile("-", path, given_format or _told_by_bytes(path) or "csv")
        return
    if "\0" in name:
        raise InputError(f"FILE must be the name of a file; got {shown(name)}.")
    paths = [Path(name)]
    if not paths[0].exists():
        matches = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 (may be absolute)
        paths = [one for one in map(Path, matches) if not one.is_dir()]
    if not paths:
        raise InputError(
            f"FILE must be a file that exists; got {shown(name)}. {_near(name)}".rstrip()
        )
    for path in paths:
        if path.is_dir():
            hint = "Name its files, such as " + shown(str(path / "*.parquet")) + "."
            raise InputError(f"FILE must be a file; got the folder {shown(str(path))}. {hint}")
        yield InputFile(str(path), _readable(path, folder), given_format or _format(path))


def _near(name: str) -> str:
    folder = Path(name).parent
    try:
        return (
            did_you_mean(Path(name).name, sorted(one.name for one in folder.iterdir()))
            if folder.is_dir()
            else ""
        )
    except OSError:
        return ""


def _readable(path: Path, folder: Path) -> Path:
    """Return a path that means this file and no other, and that can be read more than once."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be read: {error.strerror}.") from error
    if not path.is_file():  # a pipe, as in <(…)
        copy = folder / f"{len(list(folder.iterdir()))}.pipe"
        with path.open("rb") as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        return copy
    whole = path.resolve()
    if _PLAIN_NAME.isdisjoint(str(whole)):
        return whole
    link = folder / f"{len(list(folder.iterdir()))}{''.join(whole.suffixes[-2:])}"
    if not _PLAIN_NAME.isdisjoint(link.name):
        link = folder / f"{len(list(folder.iterdir()))}.link"
    link.symlink_to(whole)
    return link


def _spooled(folder: Path) -> Path:
    """Copy standard input to a file, so that it can be read twice and need not fit into memory."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("FILE '-' is standard input, and nothing is piped into it.")
    path = folder / "stdin"
    with path.open("wb") as target:
        shutil.copyfileobj(sys.stdin.buffer, target, 1 << 20)
    return path


def _format(path: Path) -> str:
    """Tell the format by the first bytes where they say it, else by the name."""
    if told := _told_by_bytes(path):
        return told
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in _ENDINGS:
        return _ENDINGS[last]
    if last == ".db" and not path.stat().st_size:
        return "sqlite"
    if path.is_file() and not last:
        return "csv"
    hint = f"Say what it is with --format ({', '.join(Format)})."
    raise InputError(f"the format of {shown(str(path))} cannot be told by its name. {hint}")


def _told_by_bytes(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if head[8:12] == b"DUCK":
        return "duckdb"
    return "jsonl" if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[") else None


def private_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder that only this user can read."""
    return tempfile.TemporaryDirectory(prefix="fairperm-", ignore_cleanup_errors=True)
