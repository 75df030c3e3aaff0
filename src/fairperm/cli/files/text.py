"""Files of text: their encoding, delimiter and header, looked at before DuckDB reads them."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from typing import TYPE_CHECKING

from fairperm.cli.files.sql import literal
from fairperm.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fairperm.cli.files.inputs import InputFile

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")
MOST_COLUMNS = 20_000
_DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1 << 26
_MARKS = (  # the longer first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def scan_of(
    files: Sequence[InputFile], folder: Path, delimiter: str | None, encoding: str | None
) -> tuple[str, list[str], list[Path]]:
    """Return SQL that reads the files, with columns c0, c1, …; their names; the paths it reads."""
    by_header: dict[tuple[str, tuple[str, ...]], list[Path]] = {}
    first: tuple[str, ...] = ()
    paths = []
    for file in files:
        path = _in_utf8(file, folder, encoding)
        mark, names = _header(file, path, delimiter)
        first = first or names
        if Counter(names) != Counter(first):
            differing = sorted(set(names) ^ set(first)) or sorted(names)
            raise InputError(
                f"all files must have the same columns; {shown(file.name)} and "
                f"{shown(files[0].name)} differ in {shown(differing[0])}."
            )
        by_header.setdefault((mark, names), []).append(path)
        paths.append(path)
    parts = []
    for (mark, names), same in by_header.items():
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
        read = (
            f"read_csv([{', '.join(literal(str(path)) for path in same)}], auto_detect=false, "
            f"header=true, delim={literal(mark)}, quote='\"', escape='\"', strict_mode=true, "
            f"nullstr='', columns={{{columns}}})"
        )
        order = _places(first, names)
        parts.append(
            f"SELECT {', '.join(f'c{j} AS c{i}' for i, j in enumerate(order))} FROM {read}"
        )
    return " UNION ALL ".join(parts), list(first), paths


def _places(wanted: Sequence[str], names: Sequence[str]) -> Iterator[int]:
    """Yield where each wanted name is, those that occur twice in their order."""
    left: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        left.setdefault(name, []).append(i)
    for name in wanted:
        yield left[name].pop(0)


def _in_utf8(file: InputFile, folder: Path, encoding: str | None) -> Path:
    """Return a path to the text in UTF-8: the file itself, or a copy if it is in another code."""
    try:
        with _opened(file.path) as stream:
            head = stream.read(4)
    except OSError as error:
        raise InputError(f"{shown(file.name)} cannot be read: {error}.") from error
    if not head:
        raise InputError(f"{shown(file.name)} is empty.")
    name = encoding or next((one for mark, one in _MARKS if head.startswith(mark)), "utf-8")
    try:
        name = codecs.lookup(name).name
    except LookupError:
        hint = "Common ones are utf-8, latin-1, windows-1252 and utf-16."
        raise InputError(f"--encoding must be an encoding; got {shown(name)}. {hint}") from None
    if name in {"utf-8", "ascii", "utf-8-sig"}:
        return file.path
    copy = folder / f"{len(list(folder.iterdir()))}.txt"
    try:
        with (
            _opened(file.path) as stream,
            io.TextIOWrapper(stream, name, newline="") as source,
            copy.open("w", encoding="utf-8", newline="") as target,
        ):
            while text := source.read(1 << 20):
                target.write(text)
    except UnicodeError as error:
        raise InputError(f"{shown(file.name)} is not in the encoding {name}: {error}.") from error
    return copy


def _opened(path: Path) -> io.BufferedReader:
    """Open a file for reading, what is compressed uncompressed."""
    import pyarrow as pa

    try:
        stream = io.BufferedReader(pa.input_stream(str(path), compression="detect"))
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be read: {error}.") from error
    return stream


def _header(file: InputFile, path: Path, delimiter: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter and the names of the columns."""
    name = shown(file.name)
    try:
        with _opened(path) as stream:
            raw = stream.read(1 << 16)
            while len(raw) < _LONGEST_HEADER and not _has_record(raw):
                more = stream.read(1 << 20)
                if not more:
                    break
                raw += more
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error}.") from error
    # a character may be cut in two at the end of what was read
    text = codecs.getincrementaldecoder("utf-8-sig")("strict")
    try:
        record = _first_record(text.decode(raw, final=False))
    except UnicodeDecodeError as error:
        hint = "Say what it is with --encoding (latin-1 or windows-1252, say)."
        raise InputError(f"{name} is not in UTF-8 (byte {error.start:,}). {hint}") from error
    if "\0" in record:
        raise InputError(f"{name} is no text file: its first line holds zero bytes.")
    if not record.strip():
        raise InputError(f"{name} must begin with a line of column names; its first line is empty.")
    if delimiter is not None and len(delimiter) != 1:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1:
            raise InputError(f"--delimiter must be one character; got {shown(delimiter)}.")
    if delimiter is not None and delimiter in '\r\n"':
        raise InputError(f"--delimiter must not be a quote or line end; got {shown(delimiter)}.")
    mark = delimiter or ("\t" if file.format == "tsv" else _likely_delimiter(file, record))
    names = _parted(file, record, mark)
    if len(names) > MOST_COLUMNS:
        hint = "Keep the columns that the audit needs."
        raise InputError(
            f"{name} has {len(names):,} columns; at most {MOST_COLUMNS:,} can be read. {hint}"
        )
    return mark, tuple(names)


def _has_record(raw: bytes) -> bool:
    return any(raw[:at].count(b'"') % 2 == 0 for end in b"\n\r" if (at := raw.find(end)) >= 0)


def _first_record(text: str) -> str:
    """Return the text up to the first line end that is not inside quotes."""
    quoted = False
    for i, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character in "\r\n" and not quoted:
            return text[:i]
    return text


def _likely_delimiter(file: InputFile, record: str) -> str:
    """Return the mark that parts the header into most columns; of equals, the most usual."""
    return max(_DELIMITERS, key=lambda mark: len(_parted(file, record, mark)))


def _parted(file: InputFile, record: str, mark: str) -> list[str]:
    limit = csv.field_size_limit(_LONGEST_HEADER)
    try:
        return next(csv.reader(io.StringIO(record, newline=""), delimiter=mark))
    except csv.Error as error:
        raise InputError(f"the first line of {shown(file.name)} is not CSV: {error}.") from error
    finally:  # the limit is everybody's
        csv.field_size_limit(limit)
