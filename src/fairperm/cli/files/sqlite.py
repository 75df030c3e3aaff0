"""SQLite databases, read by Python's own sqlite3: DuckDB's extension may not be installed."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fairperm.cli.files.sql import choose_table, first_line, quote_name
from fairperm.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairperm.cli.files.inputs import InputFile
    from fairperm.cli.files.relation import ReadOptions

_BATCH = 65_536


def register_tables(
    connection: Any, file: InputFile, options: ReadOptions, wanted: Sequence[str]
) -> str:
    """Register tables of the database with DuckDB, and return the name of the one to read.

    Only columns that are wanted, or named in the user's SQL, are read.
    """
    try:
        database = sqlite3.connect(f"file:{quote(str(file.path))}?mode=ro", uri=True)
        tables = [
            str(row[0])
            for row in database.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
            )
        ]
    except sqlite3.Error as error:
        raise InputError(f"{shown(file.name)} cannot be opened: {error}.") from error
    spoken = f"{options.sql or ''} {options.where or ''}".casefold()
    try:
        if options.sql is not None and options.table is None:
            for name in tables:
                if name.casefold() in spoken:
                    connection.register(name, _read_table(database, name, None))
            return "(SELECT 1)"
        chosen = choose_table(options.table, tables, tables)
        needed = None if "*" in spoken else [*wanted]
        connection.register("_sqlite", _read_table(database, chosen, needed, spoken))
    except sqlite3.Error as error:
        raise InputError(f"{shown(file.name)} cannot be read: {error}.") from error
    finally:
        database.close()
    return "_sqlite"


def _read_table(
    database: sqlite3.Connection, name: str, wanted: Sequence[str] | None, spoken: str = ""
) -> Any:
    """Return a table as Arrow; columns that are not needed contain only missing values."""
    import pyarrow as pa

    described = database.execute(f"SELECT * FROM {quote_name(name)} LIMIT 0").description
    names = [str(one[0]) for one in described]
    read = [
        one for one in names if wanted is None or one in wanted or one.casefold() in spoken
    ] or names[:1]
    cursor = database.execute(f"SELECT {', '.join(map(quote_name, read))} FROM {quote_name(name)}")
    chunks = {one: [pa.table([pa.nulls(0)], [one])] for one in read}
    columns, column = {}, ""
    try:
        while rows := cursor.fetchmany(_BATCH):
            for column, values in zip(read, zip(*rows, strict=True), strict=True):
                chunks[column].append(pa.table([pa.array(values)], [column]))
        for column in read:  # integers become floats if there are both
            columns[column] = pa.concat_tables(chunks[column], promote_options="permissive")[column]
    except pa.ArrowException as error:
        rule = "must have values of one type that 64 bits can represent"
        raise InputError(f"column {shown(column)} {rule}: {first_line(error)}.") from error
    empty = pa.nulls(len(columns[column]))
    return pa.table({one: columns.get(one, empty) for one in names})
