"""The input files: names, globs and standard input, their formats and hashes."""

from __future__ import annotations

import glob
import hashlib
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fairperm.cli.options import Format
from fairperm.errors import InputError, Shown, did_you_mean, listed, shown

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
_COMPRESSED = (".gz", ".zst")
_DATABASES = ("duckdb", "sqlite")
_WILDCARDS = frozenset("*?[]")  # DuckDB would look for other files


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file: its name from the user, the path of its bytes, and its format."""

    name: str
    path: Path
    format: str

    def describe(self) -> dict[str, Any]:
        """Return what identifies the file: name, format, size and hash."""
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


def find_files(names: Sequence[str], given_format: str | None, folder: Path) -> list[InputFile]:
    """Return the files of these names.

    Parameters
    ----------
    names
        Files, globs, or "-" for standard input.
    given_format
        Format of all files; by default their names and first bytes decide.
    folder
        Temporary folder for copies of what cannot be read twice.
    """
    if names.count("-") > 1:
        raise InputError("FILE can be '-', standard input, only once.")
    files = [one for name in names for one in _expand(name, given_format, folder)]
    formats = sorted({one.format for one in files})
    if len(formats) > 1:
        raise InputError(f"all files must have the same format; got {listed(formats)}.")
    if formats[0] in _DATABASES and len(files) > 1:
        raise InputError(f"only one database can be read at a time; got {len(files)} files.")
    return files


def check_outputs_spare(files: Sequence[InputFile], outputs: Mapping[str, str]) -> None:
    """Raise InputError if an output, given by its option, would overwrite the data."""
    for option, name in outputs.items():
        path = Path(name)
        if any(file.name != "-" and path.exists() and path.samefile(file.name) for file in files):
            raise InputError(option, "another file than the data", name)


def _expand(name: str, given_format: str | None, folder: Path) -> Iterator[InputFile]:
    if name == "-":
        path = _save_stdin(folder)
        yield InputFile("-", path, given_format or _read_signature(path) or "csv")
        return
    if "\0" in name:
        raise InputError("FILE", "the name of a file", name)
    paths = [Path(name)]
    if not paths[0].exists():
        matches = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 (may be absolute)
        paths = [one for one in map(Path, matches) if not one.is_dir()]
    if not paths:
        raise InputError("FILE", "a file that exists", name, _suggest(name))
    for path in paths:
        if path.is_dir():
            hint = f"Name its files, such as {shown(str(path / '*.parquet'))}."
            raise InputError("FILE", "a file", Shown(f"the folder {shown(str(path))}"), hint)
        yield InputFile(str(path), _make_readable(path, folder), given_format or _find_format(path))


def _suggest(name: str) -> str:
    try:
        siblings = sorted(one.name for one in Path(name).parent.iterdir())
    except OSError:
        return ""
    return did_you_mean(Path(name).name, siblings)


def _make_readable(path: Path, folder: Path) -> Path:
    """Return a path without wildcards to a file that can be read more than once."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be read: {error.strerror}.") from error
    n_copies = len(list(folder.iterdir()))
    if not path.is_file():  # a pipe, as in <(…)
        copy = folder / f"{n_copies}.pipe"
        with path.open("rb") as source:
            _copy(source, copy)
        return copy
    with path.open("rb") as file:
        if file.read(3) == b"BZh":
            hint = "Compress it with gzip or zstd, or not at all."
            raise InputError(f"{shown(str(path))} is compressed with bzip2. {hint}")
    whole = path.resolve()
    if _WILDCARDS.isdisjoint(str(whole)):
        return whole
    suffixes = "".join(whole.suffixes[-2:])
    link = folder / f"{n_copies}{suffixes if _WILDCARDS.isdisjoint(suffixes) else '.link'}"
    link.symlink_to(whole)
    return link


def _save_stdin(folder: Path) -> Path:
    """Copy standard input to a file, which can be read twice and need not fit into memory."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("FILE '-' is standard input, but nothing is piped into it.")
    path = folder / "stdin"
    _copy(sys.stdin.buffer, path)
    return path


def _copy(source: BinaryIO, path: Path) -> None:
    try:
        with path.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
    except OSError as error:
        raise InputError(describe_full_folder(path.parent, error)) from error


def describe_full_folder(folder: Path, error: OSError) -> str:
    """Return a sentence about the temporary folder, which could not be written to."""
    where = shown(str(folder.parent))
    reason = error.strerror or error
    return (
        f"the temporary folder {where} cannot be written: {reason}. Set TMPDIR to another folder."
    )


def _find_format(path: Path) -> str:
    """Return the format by the first bytes if they show it, else by the name."""
    if signature := _read_signature(path):
        return signature
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
    hint = f"Pass --format ({', '.join(Format)})."
    raise InputError(f"the name of {shown(str(path))} does not show its format. {hint}")


def _read_signature(path: Path) -> str | None:
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


def make_private_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder that only this user can read."""
    return tempfile.TemporaryDirectory(prefix="fairperm-", ignore_cleanup_errors=True)
