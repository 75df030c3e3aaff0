"""Text files: their encoding, delimiter and header, found before DuckDB reads them.

DuckDB's own sniffer looks at a sample, renames columns that differ only in case and takes broken
quotes for text. Here every file is read by one strict dialect, under the names of its header.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from typing import TYPE_CHECKING

from fairperm.cli.files.sql import quote_text
from fairperm.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fairperm.cli.files.inputs import InputFile

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")
MOST_COLUMNS = 20_000
ENCODING_HINT = "Pass --encoding (such as latin-1 or windows-1252)."
_DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1 << 26
_BYTE_ORDER_MARKS = (  # the longer first: that of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def scan_text_files(
    files: Sequence[InputFile], folder: Path, delimiter: str | None, encoding: str | None
) -> tuple[str, list[str], list[Path]]:
    """Return SQL that reads the files, with columns c0, c1, …; their names; the paths it reads."""
    by_header: dict[tuple[str, tuple[str, ...]], list[Path]] = {}
    first: tuple[str, ...] = ()
    paths = []
    for file in files:
        path = _convert_to_utf8(file, folder, encoding)
        mark, names = _read_header(file, path, delimiter)
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
            f"read_csv([{', '.join(quote_text(str(path)) for path in same)}], auto_detect=false, "
            f"header=true, delim={quote_text(mark)}, quote='\"', escape='\"', strict_mode=true, "
            f"nullstr='', columns={{{columns}}})"
        )
        order = _find_places(first, names)
        parts.append(
            f"SELECT {', '.join(f'c{j} AS c{i}' for i, j in enumerate(order))} FROM {read}"
        )
    return " UNION ALL ".join(parts), list(first), paths


def _find_places(wanted: Sequence[str], names: Sequence[str]) -> Iterator[int]:
    """Yield the place of each wanted name; names that occur twice keep their order."""
    left: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        left.setdefault(name, []).append(i)
    for name in wanted:
        yield left[name].pop(0)


def _convert_to_utf8(file: InputFile, folder: Path, encoding: str | None) -> Path:
    """Return the path of the text in UTF-8: the file itself, or a copy."""
    try:
        with _open(file.path) as stream:
            head = stream.read(4)
    except OSError as error:
        raise InputError(f"{shown(file.name)} cannot be read: {error}.") from error
    if not head:
        raise InputError(f"{shown(file.name)} is empty.")
    name = encoding or next(
        (one for mark, one in _BYTE_ORDER_MARKS if head.startswith(mark)), "utf-8"
    )
    try:
        name = codecs.lookup(name).name
    except LookupError:
        hint = "Common ones are utf-8, latin-1, windows-1252 and utf-16."
        raise InputError("--encoding", "an encoding", name, hint) from None
    if name in {"utf-8", "ascii", "utf-8-sig"}:
        return file.path
    copy = folder / f"{len(list(folder.iterdir()))}.txt"
    try:
        with (
            _open(file.path) as stream,
            io.TextIOWrapper(stream, name, newline="") as source,
            copy.open("w", encoding="utf-8", newline="") as target,
        ):
            while text := source.read(1 << 20):
                target.write(text)
    except UnicodeError as error:
        raise InputError(f"{shown(file.name)} is not in the encoding {name}: {error}.") from error
    return copy


def _open(path: Path) -> io.BufferedReader:
    """Open a file for reading, and decompress it if needed."""
    import pyarrow as pa

    try:
        return io.BufferedReader(pa.input_stream(str(path), compression="detect"))
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be read: {error}.") from error


def _read_header(file: InputFile, path: Path, delimiter: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter and the names of the columns."""
    name = shown(file.name)
    try:
        with _open(path) as stream:
            raw = stream.read(1 << 16)
            while len(raw) < _LONGEST_HEADER and not _has_record(raw):
                more = stream.read(1 << 20)
                if not more:
                    break
                raw += more
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error}.") from error
    # the last character that was read may be incomplete
    text = codecs.getincrementaldecoder("utf-8-sig")("strict")
    try:
        record = _first_record(text.decode(raw, final=False))
    except UnicodeDecodeError as error:
        where = f"byte {error.start:,}"
        raise InputError(f"{name} is not in UTF-8 ({where}). {ENCODING_HINT}") from error
    if "\0" in record:
        raise InputError(f"{name} is not a text file: its first line contains zero bytes.")
    if not record.strip():
        raise InputError(f"{name} must begin with a line of column names; its first line is empty.")
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in '\r\n"':
            raise InputError("--delimiter", "one character, no quote or line end", delimiter)
    mark = delimiter or ("\t" if file.format == "tsv" else _likely_delimiter(file, record))
    names = _split(file, record, mark)
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{name} has {len(names):,} columns; at most {MOST_COLUMNS:,} can be read. Keep the "
            "columns that the audit needs."
        )
    return mark, tuple(names)


def _has_record(raw: bytes) -> bool:
    return any(raw[:at].count(b'"') % 2 == 0 for end in b"\n\r" if (at := raw.find(end)) >= 0)


def _first_record(text: str) -> str:
    """Return the text up to the first line end outside quotes."""
    quoted = False
    for i, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character in "\r\n" and not quoted:
            return text[:i]
    return text


def _likely_delimiter(file: InputFile, record: str) -> str:
    """Return the delimiter that splits the header into most columns; if equal, the most usual."""
    return max(_DELIMITERS, key=lambda mark: len(_split(file, record, mark)))


def _split(file: InputFile, record: str, mark: str) -> list[str]:
    limit = csv.field_size_limit(_LONGEST_HEADER)
    try:
        return next(csv.reader(io.StringIO(record, newline=""), delimiter=mark))
    except csv.Error as error:
        raise InputError(f"the first line of {shown(file.name)} is not CSV: {error}.") from error
    finally:  # the limit is global
        csv.field_size_limit(limit)
