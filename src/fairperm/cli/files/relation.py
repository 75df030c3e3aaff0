"""Files, or a table of a database, as one relation: its columns, and SQL for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairperm.cli.files import sqlite
from fairperm.cli.files.sql import choose_table, first_line, lock, quote_name, quote_text
from fairperm.cli.files.text import MOST_COLUMNS, scan_text_files
from fairperm.errors import InputError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fairperm.cli.files.inputs import InputFile

_JSON_TYPES = ("BIGINT", "UBIGINT", "HUGEINT", "DOUBLE", "BOOLEAN", "JSON")


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
        rule = f"a column of the data ({listed(self.names)})"
        raise InputError(option, rule, name, did_you_mean(name, self.names))

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
    if options.table is not None and kind not in {"duckdb", "sqlite"}:
        raise InputError(f"--table is for databases; {shown(files[0].name)} is a {kind} file.")
    paths = [file.path for file in files]
    if kind in {"csv", "tsv"}:
        scan, names, paths = scan_text_files(files, folder, options.delimiter, options.encoding)
        lock(connection, paths, folder)
        fields = [f"c{i}" for i in range(len(names))]
        return Relation(f"({scan})", names, fields, ["VARCHAR"] * len(names), is_text=True)
    if kind == "duckdb":
        return _open_duckdb(connection, files[0], options)
    if kind == "sqlite":
        lock(connection, [], folder)
        return _describe(connection, sqlite.register_tables(connection, files[0], options, wanted))
    if kind == "arrow":
        lock(connection, [], folder)
        connection.register("_arrow", _open_arrow(files))
        return _describe(connection, "_arrow")
    lock(connection, paths, folder)
    listing = f"[{', '.join(quote_text(str(path)) for path in paths)}]"
    if kind == "jsonl":
        return _open_json(connection, listing, wanted)
    return _open_parquet(connection, files, listing)


def _describe(connection: Any, source: str) -> Relation:
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    except Exception as error:
        raise InputError(f"the data cannot be read: {first_line(error)}") from error
    names = [str(row[0]) for row in rows]
    return Relation(
        source, names, [quote_name(name) for name in names], [str(row[1]) for row in rows]
    )


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
    found = _describe(connection, source)
    if len(found.names) > MOST_COLUMNS:
        raise InputError(
            f"the data have {len(found.names):,} columns; at most {MOST_COLUMNS:,} can be read. "
            "Keep the columns that the audit needs."
        )
    types = [
        one if one in _JSON_TYPES or "(" in one or "[" in one else "VARCHAR" for one in found.types
    ]
    columns = ", ".join(
        f"{quote_text(name)}: {quote_text(one)}"
        for name, one in zip(found.names, types, strict=True)
    )
    if found.names == ["json"] and found.types == ["JSON"]:
        raise InputError("a JSON file must have an object of columns and values on every line.")
    for name, one in zip(found.names, types, strict=True):
        if one == "DOUBLE" and name in wanted:
            _check_json_numbers(connection, read, name)
    if types == found.types or found.has_made_up_names():
        return found
    return Relation(f"{read}, columns={{{columns}}})", found.names, found.fields, types)


def _check_json_numbers(connection: Any, read: str, name: str) -> None:
    """Raise InputError for numbers of a JSON column that a float cannot distinguish."""
    text = f"CAST({quote_name(name)} AS VARCHAR)"
    is_long = f"regexp_full_match({text}, '-?[0-9]{{17,}}')"
    is_too_large = f"coalesce(isinf(TRY_CAST({text} AS DOUBLE)), false)"
    (wrong,) = connection.execute(
        f"SELECT min({text}) FROM {read}, columns={{{quote_text(name)}: 'JSON'}}) "
        f"WHERE {is_long} OR {is_too_large}"
    ).fetchall()[0]
    if wrong is not None:
        raise InputError(
            f"column {shown(name)} has a number that 64 bits cannot represent, {wrong[:40]}. Write "
            "such numbers as text."
        )


def _open_arrow(files: Sequence[InputFile]) -> Any:
    """Return Arrow files as one dataset, and streams as one table.

    Every batch is checked in full before anything else reads it: an offset, a code of a dictionary
    or a text that is out of bounds would make compiled code read any memory.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    name = files[0].name
    try:
        tables = []
        for file in files:
            name = file.name
            with pa.OSFile(str(file.path)) as source:  # a memory map of a cut file ends the process
                if source.read(6) == b"ARROW1":
                    _check_arrow_file(source)
                    continue
                source.seek(0)
                tables.append(pa.ipc.open_stream(source).read_all())
                tables[-1].validate(full=True)
        if 0 < len(tables) < len(files):
            raise InputError("Arrow files and Arrow streams cannot be read together.")
        if tables:
            return pa.concat_tables(tables)
        found = ds.dataset([str(file.path) for file in files], format="feather")
        for column in set(found.schema.names):
            found.schema.field(column)
        return found
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:
        raise InputError(f"{shown(name)} cannot be read: {first_line(error)}") from error


def _check_arrow_file(source: Any) -> None:
    import pyarrow as pa

    reader = pa.ipc.open_file(source)
    for i in range(reader.num_record_batches):
        reader.get_batch(i).validate(full=True)


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
