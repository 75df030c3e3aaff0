"""Files and tables of a database as one relation: its columns by name, and SQL for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairperm.cli.files import sqlite
from fairperm.cli.files.sql import chosen_table, first_line, literal, lock, quoted
from fairperm.cli.files.text import scan_of
from fairperm.errors import InputError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fairperm.cli.files.inputs import InputFile

_JSON_TYPES = ("BIGINT", "UBIGINT", "HUGEINT", "DOUBLE", "BOOLEAN", "JSON")


@dataclass(frozen=True, slots=True)
class Relation:
    """What SQL reads the rows from.

    ``names`` are the columns as the file spells them, ``fields`` the SQL for each and ``types``
    DuckDB's types. In a text file (``is_text``) all are VARCHAR, whatever they mean.
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
        """Return which column has this name."""
        places = self._places.get(name, [])
        if len(places) == 1:
            return places[0]
        if places:
            raise InputError(
                f"{option} must be a column whose name no other has; {len(places)} are called "
                f"{shown(name)}."
            )
        hint = did_you_mean(name, self.names)
        rule = f"a column of the data ({listed(self.names)})"
        raise InputError(f"{option} must be {rule}; got {shown(name)}. {hint}".rstrip())

    def ambiguous(self) -> set[str]:
        """Return the names that SQL cannot tell from others: it does not know upper from lower."""
        seen: dict[str, list[str]] = {}
        for name in self.names:
            seen.setdefault(name.casefold(), []).append(name)
        return {name for same in seen.values() if len(same) > 1 for name in same}

    def ambiguous_copies(self) -> bool:
        """Tell whether a name may be one that DuckDB made up, to tell it from another."""
        known = {name.casefold() for name in self.names}
        return any(
            base.casefold() in known
            for base, _, number in (name.rpartition("_") for name in self.names)
            if number.isdigit()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How the user says that files are to be read."""

    table: str | None = None
    sql: str | None = None
    where: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    encoding: str | None = None
    missing_words: tuple[str, ...]


def opened(
    connection: Any,
    files: Sequence[InputFile],
    folder: Path,
    options: ReadOptions,
    wanted: Sequence[str],
) -> Relation:
    """Return the files as a relation; from here on the database reads nothing else."""
    kind = files[0].format
    if options.table is not None and kind not in {"duckdb", "sqlite"}:
        raise InputError(f"--table is for databases; {shown(files[0].name)} is a {kind} file.")
    paths = [file.path for file in files]
    if kind in {"csv", "tsv"}:
        scan, names, paths = scan_of(files, folder, options.delimiter, options.encoding)
        lock(connection, paths, folder)
        fields = [f"c{i}" for i in range(len(names))]
        return Relation(f"({scan})", names, fields, ["VARCHAR"] * len(names), is_text=True)
    if kind == "duckdb":
        return _duckdb_table(connection, files[0], options)
    if kind == "sqlite":
        lock(connection, [], folder)
        return _described(connection, sqlite.registered(connection, files[0], options, wanted))
    if kind == "arrow":
        lock(connection, [], folder)
        connection.register("_arrow", _arrow(files))
        return _described(connection, "_arrow")
    lock(connection, paths, folder)
    listing = f"[{', '.join(literal(str(path)) for path in paths)}]"
    if kind == "jsonl":
        return _json(connection, listing)
    return _parquet(connection, files, listing)


def _described(connection: Any, source: str) -> Relation:
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    except Exception as error:
        raise InputError(f"the data cannot be read: {first_line(error)}") from error
    names = [str(row[0]) for row in rows]
    return Relation(source, names, [quoted(name) for name in names], [str(row[1]) for row in rows])


def _parquet(connection: Any, files: Sequence[InputFile], listing: str) -> Relation:
    import pyarrow.parquet as pq

    source = f"read_parquet({listing}, hive_partitioning=false)"
    found = _described(connection, source)
    try:
        names = [str(name) for name in pq.read_schema(files[0].path).names]
    except Exception as error:
        raise InputError(f"{shown(files[0].name)} cannot be read: {first_line(error)}") from error
    if len(names) != len(found.names):
        return found
    return Relation(source, names, found.fields, found.types)  # as spelt in the file


def _json(connection: Any, listing: str) -> Relation:
    """Return JSON lines: numbers and truths as such, all else as the text that it is."""
    source = f"read_json({listing}, format='auto', sample_size=-1)"
    found = _described(connection, source)
    types = [
        one if one in _JSON_TYPES or "(" in one or "[" in one else "VARCHAR" for one in found.types
    ]
    columns = ", ".join(
        f"{literal(name)}: {literal(one)}" for name, one in zip(found.names, types, strict=True)
    )
    if found.names == ["json"] and found.types == ["JSON"]:
        raise InputError("a JSON file must have an object of columns and values on every line.")
    if types == found.types or found.ambiguous_copies():
        return found
    source = f"read_json({listing}, format='auto', columns={{{columns}}})"
    return Relation(source, found.names, found.fields, types)


def _arrow(files: Sequence[InputFile]) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        with files[0].path.open("rb") as file:
            is_stream = not file.read(6).startswith(b"ARROW1")
        if is_stream:
            return pa.concat_tables([pa.ipc.open_stream(file.path).read_all() for file in files])
        found = ds.dataset([str(file.path) for file in files], format="feather")
        for name in set(found.schema.names):
            found.schema.field(name)
        return found
    except (pa.ArrowException, OSError, KeyError) as error:
        raise InputError(f"{shown(files[0].name)} cannot be read: {first_line(error)}") from error


def _duckdb_table(connection: Any, file: InputFile, options: ReadOptions) -> Relation:
    try:
        connection.execute(f"ATTACH {literal(str(file.path))} AS input (READ_ONLY)")
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
    chosen = chosen_table(options.table, [name for _, name in tables], list(by_name))
    schema, name = by_name[chosen]
    return _described(connection, f"input.{quoted(schema)}.{quoted(name)}")
