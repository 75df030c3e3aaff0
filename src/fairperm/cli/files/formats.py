"""The formats of files: how each is recognized, and read as one relation of DuckDB."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import hashlib
import io
import itertools
import re
import shutil
import sys
import zipfile
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fairperm._utils.optional import optional
from fairperm.cli.files import inspect_logs
from fairperm.cli.files.sql import Memory, choose_table, first_line, lock, quote_name, quote_text
from fairperm.cli.options import Format
from fairperm.errors import InputError, Shown, did_you_mean, listed, shown, unknown_name

_NAMES = re.compile('"(?:[^"]|"")*"')  # in SQL
# a field of JSON and its type, if that is one which JSON itself does not have
_NO_JSON_TYPE = re.compile(
    r'(^|"(?:[^"]|"")*" |\w+ )(?:DATE|TIME|TIMESTAMP(?:_\w+)?|UUID)\b(?: WITH TIME ZONE)?'
)
_ENDINGS = {
    **dict.fromkeys((".csv", ".txt"), "csv"),
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".duckdb", ".ddb"), "duckdb"),
    **dict.fromkeys((".xlsx", ".xlsm"), "xlsx"),
    ".eval": "inspect",
}
_COMPRESSED = (".gz", ".zst")
_JSON = ("jsonl", "inspect")
TEXTS = ("csv", "tsv", "xlsx")  # spreadsheets are read as text
_WILDCARDS = frozenset("*?[]")  # DuckDB would look for other files
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")
MAX_COLUMNS = 20_000
SKIP_HINT = "Lines above the header can be skipped: --skip 1, or as many as there are."
ENCODING_HINT = "Pass --encoding (such as latin-1 or windows-1252)."
DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1 << 24  # of any number of columns: that there are too many is said
LONGEST_LINE = 1 << 21  # DuckDB's limit
_HEAD = 256  # bytes that show a format
_BLOCK = 1 << 19  # blank lines of twice this size are half of that limit
_BLANK_LINES = "it has more than 0.5 MB of blank lines in a row. Remove them."
LONG_LINE = "a line is longer than 2 MB. Is a quote left open?"
_LONG_OBJECT = "an object of JSON is longer than 16 MB. Is a quote left open?"
BYTE_ORDER_MARKS = (  # the longer first: that of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MAX_SHEET_ROWS = 1 << 20  # the limit of Excel
_MAX_CELLS = 100_000_000  # some seconds if all are empty; full, a file of gigabytes
_MAX_SHARE_OF_FREE_SPACE = 0.5  # in the temporary folder


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file: its name from the user, the path of its bytes, and its format."""

    name: str
    path: Path
    format: str

    def describe(self) -> dict[str, Any]:
        """Return what identifies the file: name, format, size and hash."""
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as file:
                for block in _read(file, self.name):
                    digest.update(block)
        except OSError as error:
            raise InputError(
                f"{shown(self.name)} cannot be read: {explain_reason(error)}."
            ) from error
        return {
            "path": self.name,
            "format": self.format,
            "bytes": self.path.stat().st_size,
            "sha256": digest.hexdigest(),
        }


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text that begins with its header: its delimiter, and the place of each column."""

    file: InputFile
    path: Path
    mark: str
    places: tuple[int, ...]


def find_files(names: Sequence[str], given_format: str | None, folder: Path) -> list[InputFile]:
    """Return the files of these names: files, globs, or "-" for standard input.

    Without a ``given_format`` of all, names and first bytes decide. Copies of what cannot be read
    twice are in the temporary ``folder``.
    """
    if names.count("-") > 1:
        raise InputError("FILE can be '-', standard input, only once.")
    files = [one for name in names for one in _expand(name, given_format, folder)]
    formats = sorted({one.format for one in files})
    if len(formats) > 1:
        raise InputError(f"all files must have the same format; got {listed(formats)}.")
    if formats[0] == "duckdb" and len(files) > 1:
        raise InputError(f"only one database can be read at a time; got {len(files)} files.")
    return files


def check_outputs_not_inputs(inputs: Sequence[str], outputs: Mapping[str, str]) -> None:
    """Raise InputError if an output, given by its option, would overwrite one of the inputs."""
    for option, name in outputs.items():
        path = Path(name)
        if any(one != "-" and path.exists() and path.samefile(one) for one in inputs):
            raise InputError(option, "another file than the data", name)


def _expand(name: str, given_format: str | None, folder: Path) -> Iterator[InputFile]:
    if name == "-":
        path = folder / "stdin"  # it can be read twice, and need not fit into memory
        _copy(_read(open_stdin(), "-"), path, "-")
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
        copy = _make_readable(path, folder)
        yield InputFile(str(path), copy, given_format or _find_format(path, copy))


def _suggest(name: str) -> str:
    try:
        siblings = sorted(one.name for one in Path(name).parent.iterdir())
    except OSError:
        return ""
    return did_you_mean(Path(name).name, siblings)


def _make_readable(path: Path, folder: Path) -> Path:
    """Return a path without wildcards to a file that can be read more than once.

    The first bytes are read here: a native reader would not end for a signal if there are none yet.
    """
    name, n_copies = str(path), len(list(folder.iterdir()))
    try:
        with path.open("rb") as source:
            head = source.peek(1)
            is_stream = not path.is_file() or (head and not path.stat().st_size)
            if is_stream:  # a pipe, as in <(…), a device, or a file of the system, as in /proc
                copy = folder / f"{n_copies}.pipe"
                _copy(_read(source, name), copy, name)
                return copy
    except OSError as error:
        raise InputError(f"{shown(name)} cannot be read: {explain_reason(error)}.") from error
    if head.startswith(b"BZh"):
        hint = "Compress it with gzip or zstd, or not at all."
        raise InputError(f"{shown(name)} is compressed with bzip2. {hint}")
    whole = path.resolve()
    if _WILDCARDS.isdisjoint(str(whole)):
        return whole
    suffixes = "".join(whole.suffixes[-2:])
    link = folder / f"{n_copies}{suffixes if _WILDCARDS.isdisjoint(suffixes) else '.link'}"
    link.symlink_to(whole)
    return link


def open_stdin() -> BinaryIO:
    """Return standard input. Raises InputError if nothing is piped into it."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("FILE '-' is standard input, but nothing is piped into it.")
    return sys.stdin.buffer


def _read(source: BinaryIO, name: str) -> Iterator[bytes]:
    try:
        while block := source.read(1 << 20):
            yield block
    except OSError as error:
        raise InputError(f"{shown(name)} cannot be read: {explain_reason(error)}.") from error


def explain_reason(error: OSError) -> str:
    """Return what went wrong, of which the libraries of compressed files give only a text."""
    return error.strerror or str(error).removesuffix(".")


def _copy(blocks: Iterable[bytes], path: Path, name: str) -> None:
    """Write blocks of the data called ``name`` to a file of the temporary folder.

    They may have no end: others need some of the space.
    """
    size, free = 0, shutil.disk_usage(path.parent).free
    try:
        with path.open("wb") as target:
            for block in blocks:
                size += len(block)
                if size > free * _MAX_SHARE_OF_FREE_SPACE:
                    raise InputError(
                        f"{shown(name)} is too large: a copy takes more than half of the free "
                        f"space ({free / 2**20:,.0f} MB) of the temporary folder "
                        f"{shown(str(path.parent.parent))}. Set TMPDIR to another folder."
                    )
                target.write(block)
    except OSError as error:
        raise InputError(describe_full_folder(path.parent, explain_reason(error))) from error


def describe_full_folder(folder: Path, reason: str) -> str:
    """Return a sentence about the temporary folder, which could not be written to."""
    where = shown(str(folder.parent))
    return (
        f"the temporary folder {where} cannot be written: {reason}. Set TMPDIR to another folder."
    )


def _find_format(path: Path, copy: Path) -> str:
    """Return the format by the first bytes of a copy if they show it, else by the name."""
    if signature := _read_signature(copy):
        return signature
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in _ENDINGS:
        return _ENDINGS[last]
    if path.is_file() and not last:
        return "csv"
    hint = f"Pass --format ({', '.join(Format)})."
    raise InputError(f"the name of {shown(str(path))} does not show its format. {hint}")


def _read_signature(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if inspect_logs.HEAD.match(head):
        return "inspect"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head[8:12] == b"DUCK":
        return "duckdb"
    return "jsonl" if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[") else None


@dataclass(frozen=True, slots=True)
class Relation:
    """The rows as SQL can select them.

    ``names`` are the columns as spelt in the file, ``fields`` the SQL for each and ``types``
    DuckDB's types. In a text file (``is_text``) all types are VARCHAR.
    """

    source: str
    names: list[str]
    fields: list[str]
    types: list[str]
    is_text: bool = False
    _places: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for i, name in enumerate(self.names):
            self._places.setdefault(name, []).append(i)

    def place(self, option: str, name: str) -> int:
        """Return the place of the column that an option names."""
        places = self._places.get(name, [])
        if len(places) == 1:
            return places[0]
        if places:
            raise InputError(
                f"{option} must be a column with a unique name; {len(places)} are called "
                f"{shown(name)}."
            )
        is_title = self.is_text and (len(self.names) == 1 or "" in self.names)
        raise unknown_name(
            option, "a column of the data", name, self.names, SKIP_HINT if is_title else ""
        )

    def ambiguous_names(self) -> set[str]:
        """Return the names that differ only in case: SQL cannot distinguish them."""
        seen: dict[str, list[str]] = {}
        for name in self.names:
            seen.setdefault(name.casefold(), []).append(name)
        return {name for same in seen.values() if len(same) > 1 for name in same}

    def has_made_up_names(self) -> bool:
        """Return whether DuckDB may have renamed a column whose name occurs twice."""
        known = {name.casefold() for name in self.names}
        return any(
            base.casefold() in known
            for base, _, number in (name.rpartition("_") for name in self.names)
            if number.isdigit()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The user's options for reading files."""

    table: str | None = None
    sql: str | None = None
    where: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    encoding: str | None = None
    skip: int = 0
    missing_words: tuple[str, ...]


def open_relation(
    connection: Any,
    files: Sequence[InputFile],
    folder: Path,
    options: ReadOptions,
    wanted: Sequence[str],
) -> Relation:
    """Return the files as a relation; from here on the connection reads no other files."""
    kind = files[0].format
    if options.table is not None and kind not in {"duckdb", "xlsx"}:
        raise InputError(f"--table is for databases; {shown(files[0].name)} is a {kind} file.")
    if options.skip and kind not in TEXTS:
        raise InputError(f"--skip is for text files; {shown(files[0].name)} is a {kind} file.")
    paths = [file.path for file in files]
    if kind == "inspect":
        memory = Memory(connection)
        for i, file in enumerate(files):
            paths[i] = _name_copy(folder)
            _copy(inspect_logs.read_samples(file, memory), paths[i], file.name)
    if kind in TEXTS:
        names, texts = lay_out(files, folder, options, Memory(connection))
        scan = _scan_text_files(texts)
        lock(connection, [one.path for one in texts], folder)
        fields = [f"c{i}" for i in range(len(names))]
        return Relation(f"({scan})", [*names], fields, ["VARCHAR"] * len(names), is_text=True)
    if kind == "duckdb":
        return _open_duckdb(connection, files[0], options)
    lock(connection, paths, folder)
    listing = f"[{', '.join(quote_text(str(path)) for path in paths)}]"
    if kind in _JSON:
        for file, path in zip(files, paths, strict=True):
            deque(_read_blocks(file, path), maxlen=0)  # checks the checksum
        return _open_json(connection, listing, wanted)
    return _open_parquet(connection, files, listing)


def _fetch(connection: Any, query: str) -> list[Any]:
    """Return the result of a query; it is the first one that reads the files."""
    try:
        rows: list[Any] = connection.execute(query).fetchall()
    except Exception as error:
        text = first_line(error)
        reason = _LONG_OBJECT if "maximum_object_size" in text else text
        raise InputError(f"the data cannot be read: {reason}") from error
    return rows


def _describe(connection: Any, source: str) -> Relation:
    """Return a relation with its columns, and with the fields inside them by their paths."""
    found = _describe_columns(connection, source)
    if not any(kind.startswith("STRUCT(") for kind in found.types):
        return found
    columns = {
        name: pair for name, *pair in zip(found.names, found.fields, found.types, strict=True)
    }
    rows = connection.sql(f"SELECT * FROM {source}")
    for name, kind in zip(rows.columns, rows.types, strict=True):
        for path, *pair in _list_fields((name,), kind):
            columns.setdefault(path, pair)
    fields, types = zip(*columns.values(), strict=True)
    return Relation(source, [*columns], [*fields], [*types])


def _describe_columns(connection: Any, source: str) -> Relation:
    rows = _fetch(connection, f"DESCRIBE SELECT * FROM {source}")
    names = [str(row[0]) for row in rows]
    return Relation(
        source, names, [quote_name(name) for name in names], [str(row[1]) for row in rows]
    )


def _list_fields(path: tuple[str, ...], kind: Any) -> Iterator[tuple[str, str, str]]:
    """Yield path, SQL and type of every field inside a column of this type."""
    for name, inner in kind.children if kind.id == "struct" else ():
        inside = (*path, name)
        yield ".".join(inside), ".".join(map(quote_name, inside)), str(inner)
        yield from _list_fields(inside, inner)


def _open_parquet(connection: Any, files: Sequence[InputFile], listing: str) -> Relation:
    import pyarrow.parquet as pq

    source = f"read_parquet({listing}, hive_partitioning=false)"
    found = _describe(connection, source)
    try:
        names = [str(name) for name in pq.read_schema(files[0].path).names]
    except Exception as error:
        raise InputError(f"{shown(files[0].name)} cannot be read: {first_line(error)}") from error
    if len(names) != len(found.names):
        return found
    return Relation(source, names, found.fields, found.types)  # spelt as in the file


def _open_json(connection: Any, listing: str, wanted: Sequence[str]) -> Relation:
    """Return JSON lines; values other than numbers and booleans stay text, dates too."""
    read = f"read_json({listing}, format='auto'"
    source = f"{read}, sample_size=-1, map_inference_threshold=-1)"
    # counted first: the time in which DuckDB describes them grows with the square of their number
    keys = f"SELECT unnest(json_keys(json)) AS k FROM read_json_objects({listing}, format='auto')"
    ((n_columns,),) = _fetch(connection, f"SELECT count(DISTINCT k) FROM ({keys})")
    if n_columns > MAX_COLUMNS:
        raise InputError(
            f"the data have {n_columns:,} columns; at most {MAX_COLUMNS:,} can be read. "
            "Keep the columns that the audit needs."
        )
    found = _describe_columns(connection, source)
    if found.names == ["json"] and found.types == ["JSON"]:
        raise InputError("a JSON file must have an object of columns and values on every line.")
    if not found.has_made_up_names():  # with their types, DuckDB need not infer them again
        types = [_NO_JSON_TYPE.sub(r"\1VARCHAR", one) for one in found.types]
        columns = ", ".join(
            f"{quote_text(name)}: {quote_text(one)}"
            for name, one in zip(found.names, types, strict=True)
        )
        source = f"{read}, columns={{{columns}}})"
    found = _describe(connection, source)
    for name, sql, one in zip(found.names, found.fields, found.types, strict=True):
        if one == "DOUBLE" and name in wanted:
            _check_json_numbers(connection, read, name, sql)
    return found


def _check_json_numbers(connection: Any, read: str, name: str, field: str) -> None:
    """Raise InputError for numbers of a JSON column that a float cannot distinguish."""
    column, *inside = _NAMES.findall(field)
    path = quote_text(".".join(["$", *inside]))
    text = f"CAST(json_extract({column}, {path}) AS VARCHAR)"
    column = quote_text(column[1:-1].replace('""', '"'))
    is_long = f"regexp_full_match({text}, '-?[0-9]{{17,}}')"
    is_too_large = f"coalesce(isinf(TRY_CAST({text} AS DOUBLE)), false)"
    (wrong,) = connection.execute(
        f"SELECT min({text}) FROM {read}, columns={{{column}: 'JSON'}}) "
        f"WHERE {is_long} OR {is_too_large}"
    ).fetchall()[0]
    if wrong is not None:
        raise InputError(
            f"column {shown(name)} has a number that 64 bits cannot represent, {wrong[:40]}. Write "
            "such numbers as text."
        )


def _open_duckdb(connection: Any, file: InputFile, options: ReadOptions) -> Relation:
    try:
        connection.execute(f"ATTACH {quote_text(str(file.path))} AS input (READ_ONLY)")
    except Exception as error:
        raise InputError(f"{shown(file.name)} cannot be opened: {first_line(error)}") from error
    lock(connection, [file.path], file.path.parent / ".none")
    tables = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = 'input' ORDER BY ALL"
    ).fetchall()
    connection.execute("USE input")
    by_name = {f"{schema}.{name}": (schema, name) for schema, name in tables}
    by_name |= {name: (schema, name) for schema, name in reversed(tables)}
    if options.sql is not None and options.table is None:
        return Relation("(SELECT 1)", [], [], [])  # the user's SQL names the tables
    chosen = choose_table(options.table, [name for _, name in tables], list(by_name))
    schema, name = by_name[chosen]
    return _describe(connection, f"input.{quote_name(schema)}.{quote_name(name)}")


def lay_out(
    files: Sequence[InputFile], folder: Path, options: ReadOptions, memory: Memory
) -> tuple[tuple[str, ...], list[TextFile]]:
    """Return the names of the columns of text files, and where each file has them."""
    first: tuple[str, ...] = ()
    found = []
    for file in files:
        path = _make_text(file, folder, options, memory)
        mark, names = _read_header(file, path, options.delimiter)
        first = first or names
        if Counter(names) != Counter(first):
            differing = sorted(set(names) ^ set(first)) or sorted(names)
            raise InputError(
                f"all files must have the same columns; {shown(file.name)} and "
                f"{shown(files[0].name)} differ in {shown(differing[0])}."
            )
        found.append(TextFile(file, path, mark, tuple(_find_places(first, names))))
    return first, found


def _scan_text_files(texts: Sequence[TextFile]) -> str:
    """Return SQL that reads the files, with columns c0, c1, ….

    DuckDB's own sniffer looks at a sample, renames columns that differ only in case and takes
    broken quotes for text. Here every file is read by one strict dialect, under the names of its
    header.
    """
    alike: dict[tuple[str, tuple[int, ...]], list[Path]] = {}
    for one in texts:
        _check_lines(one.file, one.path)
        alike.setdefault((one.mark, one.places), []).append(one.path)
    parts = []
    for (mark, places), paths in alike.items():
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(places)))
        read = (
            f"read_csv([{', '.join(quote_text(str(path)) for path in paths)}], auto_detect=false, "
            f"header=true, delim={quote_text(mark)}, quote='\"', escape='\"', strict_mode=true, "
            f"nullstr='', columns={{{columns}}})"
        )
        parts.append(
            f"SELECT {', '.join(f'c{j} AS c{i}' for i, j in enumerate(places))} FROM {read}"
        )
    return " UNION ALL ".join(parts)


def _check_lines(file: InputFile, path: Path) -> None:
    """Raise InputError for a last line that fills a buffer, or too many blank lines in a row.

    DuckDB drops the former, and counts the latter to the next row, which it may drop as well.
    """
    end: deque[bytes] = deque(maxlen=LONGEST_LINE // _BLOCK + 1)
    for block in _read_blocks(file, path):
        if len(block) == _BLOCK and block[:1] in b"\r\n" and not block.strip(b"\r\n"):
            raise InputError(f"{shown(file.name)} cannot be read: {_BLANK_LINES}")
        end.append(block)
    last = b"".join(end)[-LONGEST_LINE:]
    line = last.rstrip(b"\r\n")
    if len(last) == LONGEST_LINE and b"\n" not in line and b"\r" not in line:
        raise InputError(f"{shown(file.name)} cannot be read: {LONG_LINE}")


def _read_blocks(file: InputFile, path: Path) -> Iterator[bytes]:
    """Yield the blocks of a text; of one that is not compressed, blank ones and those of its end.

    Raises InputError if it is compressed and its checksum is wrong, which DuckDB does not check.
    """
    try:
        if path.suffix.lower() in _COMPRESSED:
            with open_bytes(path) as stream:
                while block := stream.read(_BLOCK):
                    yield block
            return
        end = max(0, path.stat().st_size - LONGEST_LINE) // _BLOCK * _BLOCK
        with path.open("rb") as text:
            for at in range(0, end, _BLOCK):
                text.seek(at)
                if not text.read(16).strip(b"\r\n"):
                    text.seek(at)
                    yield text.read(_BLOCK)
            text.seek(end)
            while block := text.read(_BLOCK):
                yield block
    except OSError as error:
        raise InputError(f"{shown(file.name)} cannot be read: {error}.") from error


def _find_places(wanted: Sequence[str], names: Sequence[str]) -> Iterator[int]:
    """Yield the place of each wanted name; names that occur twice keep their order."""
    left: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        left.setdefault(name, []).append(i)
    for name in wanted:
        yield left[name].pop(0)


def _make_text(file: InputFile, folder: Path, options: ReadOptions, memory: Memory) -> Path:
    """Return the path of the text that begins with the header: the file itself, or a copy."""
    if file.format == "xlsx":
        return _convert_sheet(file, folder, options.table, options.skip, memory)
    path = _convert_to_utf8(file, folder, options.encoding)
    return _skip_lines(file, path, folder, options.skip) if options.skip else path


def _convert_sheet(
    file: InputFile, folder: Path, table: str | None, skip: int, memory: Memory
) -> Path:
    """Return a sheet of a workbook as CSV, as wide as its header, without the rows above it."""
    copy = _name_copy(folder)
    with _open_workbook(file) as book:
        with zipfile.ZipFile(file.path) as parts:  # no part is read beyond this size
            memory.add(sum(part.file_size for part in parts.infolist()), "Save the sheet as CSV.")
        names = [sheet.title for sheet in book.worksheets]
        sheet = book[choose_table(table, names, names)]
        sheet.reset_dimensions()  # they are a claim of the file: too few rows, or too many columns
        head = next(_read_sheet(file, sheet, skip=skip), None)
        if head is None and skip:
            raise InputError("--skip", f"fewer than the lines of {file.name}", skip)
        width = 1 if head is None else _measure_width(head)
        _copy(map(_write_row, _read_sheet(file, sheet, width, skip)), copy, file.name)
    return copy


def list_sheets(file: InputFile, n_rows: int) -> dict[str, list[list[str]]]:
    """Return the first rows of each sheet of a workbook, as texts."""
    found = {}
    with _open_workbook(file) as book:
        for sheet in book.worksheets:
            sheet.reset_dimensions()
            rows = itertools.islice(_read_sheet(file, sheet), n_rows)
            texts = (["" if one is None else str(one) for one in row] for row in rows)
            found[str(sheet.title)] = list(texts)
    return found


@contextmanager
def _open_workbook(file: InputFile) -> Iterator[Any]:
    """Open a workbook; all that may be wrong with it is an InputError."""
    with optional(f"Reading the spreadsheet {shown(file.name)}"):
        from openpyxl import load_workbook
    try:
        book = load_workbook(file.path, read_only=True, data_only=True)
        yield book
        book.close()
    except InputError:
        raise
    except Exception as error:  # a workbook is a zip of XML, either of which may be damaged
        raise InputError(f"{shown(file.name)} cannot be read: {first_line(error)}.") from error


def _read_sheet(
    file: InputFile, sheet: Any, width: int | None = None, skip: int = 0
) -> Iterator[Sequence[Any]]:
    """Yield the rows that are not empty, each with so many cells or up to its last one.

    ``skip`` counts rows as the sheet numbers them, also empty ones.

    One cell at the end of a sheet makes openpyxl fill in all rows and columns before it.
    """
    n_cells = 0
    for number, row in enumerate(sheet.iter_rows(max_col=width, values_only=True), 1):
        n_cells += len(row)
        if number > _MAX_SHEET_ROWS or n_cells > _MAX_CELLS:
            raise InputError(
                f"{shown(file.name)} cannot be read: the sheet has more than "
                f"{_MAX_SHEET_ROWS:,} rows or {_MAX_CELLS:,} cells. Save it as CSV."
            )
        if number > skip and row.count(None) < len(row):
            yield row


def _write_row(cells: Sequence[Any]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue().encode()


def _measure_width(row: Sequence[Any]) -> int:
    """Return the number of cells up to the last one that is not empty."""
    return max(i for i, value in enumerate(row, 1) if value is not None)


def _skip_lines(file: InputFile, path: Path, folder: Path, n_lines: int) -> Path:
    """Return a copy of the text without its first lines."""
    copy = _name_copy(folder)
    try:
        with open_bytes(path) as stream:
            for _ in range(n_lines):
                line = stream.readline(LONGEST_LINE)
                if len(line) == LONGEST_LINE:
                    raise InputError(f"{shown(file.name)} cannot be read: {LONG_LINE}")
                if not line:
                    raise InputError("--skip", f"fewer than the lines of {file.name}", n_lines)
            _copy(_read(stream, file.name), copy, file.name)
    except OSError as error:
        raise InputError(f"{shown(file.name)} cannot be read: {error}.") from error
    return copy


def _name_copy(folder: Path) -> Path:
    return folder / f"{len(list(folder.iterdir()))}.txt"


def _convert_to_utf8(file: InputFile, folder: Path, encoding: str | None) -> Path:
    """Return the path of the text in UTF-8: the file itself, or a copy."""
    try:
        with open_bytes(file.path) as stream:
            head = stream.read(4)
    except OSError as error:
        raise InputError(f"{shown(file.name)} cannot be read: {error}.") from error
    if not head:
        raise InputError(f"{shown(file.name)} is empty.")
    name = encoding or next(
        (one for mark, one in BYTE_ORDER_MARKS if head.startswith(mark)), "utf-8"
    )
    try:
        io.TextIOWrapper(io.BytesIO(), name)  # base64, zlib and the like are codecs of bytes
        name = codecs.lookup(name).name
    except (LookupError, ValueError):
        hint = "Common ones are utf-8, latin-1, windows-1252 and utf-16."
        raise InputError("--encoding", "an encoding", name, hint) from None
    if name in {"utf-8", "ascii", "utf-8-sig"}:
        return file.path
    copy = _name_copy(folder)
    _copy(_read_as_utf8(file, name), copy, file.name)
    return copy


def _read_as_utf8(file: InputFile, encoding: str) -> Iterator[bytes]:
    try:
        with (
            open_bytes(file.path) as stream,
            io.TextIOWrapper(stream, encoding, newline="") as source,
        ):
            while text := source.read(1 << 20):
                yield text.encode()
    except UnicodeError as error:
        message = f"{shown(file.name)} is not in the encoding {encoding}: {error}."
        raise InputError(message) from error
    except OSError as error:
        raise InputError(f"{shown(file.name)} cannot be read: {explain_reason(error)}.") from error


def open_bytes(path: Path) -> io.BufferedReader:
    """Open a file for reading, and decompress it if needed."""
    try:
        if path.suffix.lower() == ".gz":
            return io.BufferedReader(_Unzipped(path))
        if path.suffix.lower() not in _COMPRESSED:
            return path.open("rb")
        with optional("A file that Zstandard compressed"):
            import pyarrow as pa
        return io.BufferedReader(pa.input_stream(str(path), compression="detect"))
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be read: {error}.") from error


class _Unzipped(io.RawIOBase):
    """The bytes of a file that gzip compressed; whatever is wrong with it is an OSError."""

    def __init__(self, path: Path) -> None:
        self._file = gzip.open(path)  # noqa: SIM115 (closed with this stream)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return self._file.readinto(buffer)
        except (EOFError, zlib.error) as error:
            raise OSError(str(error)) from error

    def close(self) -> None:
        self._file.close()
        super().close()


def _read_header(file: InputFile, path: Path, delimiter: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter and the names of the columns."""
    name = shown(file.name)
    try:
        with open_bytes(path) as stream:
            raw = stream.read(1 << 16)
            while len(raw) < _LONGEST_HEADER and not _has_record(raw):
                more = stream.read(1 << 20)
                if not more:
                    break
                raw += more
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error}.") from error
    # the last character that was read may be incomplete
    decoder = codecs.getincrementaldecoder("utf-8-sig")("strict")
    try:
        text = decoder.decode(raw, final=False)
    except UnicodeDecodeError as error:
        where = f"byte {error.start:,}"
        raise InputError(f"{name} is not in UTF-8 ({where}). {ENCODING_HINT}") from error
    record = _first_record(text)
    if "\0" in record:
        raise InputError(f"{name} is not a text file: its first line contains zero bytes.")
    if len(raw) >= _LONGEST_HEADER and len(record) == len(text):
        raise InputError(f"{name} cannot be read: {LONG_LINE}")
    if not record.strip():
        raise InputError(
            f"{name} must begin with a line of column names; its first line is empty. --skip LINES "
            "skips lines above the header."
        )
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in '\r\n"':
            raise InputError("--delimiter", "one character, no quote or line end", delimiter)
    mark = delimiter or ("\t" if file.format == "tsv" else _likely_delimiter(file, record))
    names = _split(file, record, mark)
    if len(names) > MAX_COLUMNS:
        raise InputError(
            f"{name} has {len(names):,} columns; at most {MAX_COLUMNS:,} can be read. Keep the "
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
    return max(DELIMITERS, key=lambda mark: len(_split(file, record, mark)))


def _split(file: InputFile, record: str, mark: str) -> list[str]:
    limit = csv.field_size_limit(_LONGEST_HEADER)
    try:
        return next(csv.reader(io.StringIO(record, newline=""), delimiter=mark))
    except csv.Error as error:
        raise InputError(f"the first line of {shown(file.name)} is not CSV: {error}.") from error
    finally:  # the limit is global
        csv.field_size_limit(limit)
