"""SQLite databases, read by Python's own sqlite3: DuckDB's extension may not be there."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fairperm.cli.files.sql import chosen_table, quoted
from fairperm.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairperm.cli.files.inputs import InputFile
    from fairperm.cli.files.relation import ReadOptions

_BATCH = 65_536


def registered(
    connection: Any, file: InputFile, options: ReadOptions, wanted: Sequence[str]
) -> str:
    """Make tables of the database known to DuckDB, and return the one that is asked for.

    Only the columns that are wanted, or that the user's SQL speaks of, are read.
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
                    connection.register(name, _table(database, name, None))
            return "(SELECT 1)"
        chosen = chosen_table(options.table, tables, tables)
        needed = None if "*" in spoken else [*wanted]
        connection.register("_sqlite", _table(database, chosen, needed, spoken))
    except sqlite3.Error as error:
        raise InputError(f"{shown(file.name)} cannot be read: {error}.") from error
    finally:
        database.close()
    return "_sqlite"


def _table(
    database: sqlite3.Connection, name: str, wanted: Sequence[str] | None, spoken: str = ""
) -> Any:
    """Return a table as Arrow; a column that is not needed as nothing but its name."""
    import pyarrow as pa

    described = database.execute(f"SELECT * FROM {quoted(name)} LIMIT 0").description
    names = [str(one[0]) for one in described]
    read = [
        one for one in names if wanted is None or one in wanted or one.casefold() in spoken
    ] or names[:1]
    columns = ", ".join(map(quoted, read))
    cursor = database.execute(f"SELECT {columns} FROM {quoted(name)}")
    chunks: list[list[Any]] = [[] for _ in read]
    kinds: list[set[type]] = [set() for _ in read]
    n_rows = 0
    while rows := cursor.fetchmany(_BATCH):
        n_rows += len(rows)
        for i, values in enumerate(zip(*rows, strict=True)):
            found = set(map(type, values)) - {type(None)}
            kinds[i] |= found
            chunks[i].append(_array(read[i], values, kinds[i]))
    made = {one: _joined(parts, kind) for one, parts, kind in zip(read, chunks, kinds, strict=True)}
    empty = pa.nulls(n_rows)
    return pa.table({one: made.get(one, empty) for one in names})


def _array(name: str, values: Sequence[Any], kinds: set[type]) -> Any:
    import pyarrow as pa

    if kinds <= {int, float}:
        try:
            return pa.array(values, pa.float64() if float in kinds else pa.int64())
        except (OverflowError, pa.ArrowInvalid) as error:
            raise InputError(f"column {shown(name)} holds numbers that are too large.") from error
    if kinds == {str}:
        return pa.array(values, pa.string()).dictionary_encode()
    held = " and ".join(
        sorted({int: "numbers", float: "numbers", str: "text"}.get(one, "bytes") for one in kinds)
    )
    raise InputError(f"column {shown(name)} must hold values of one kind; it holds {held}.")


def _joined(parts: Sequence[Any], kinds: set[type]) -> Any:
    import pyarrow as pa

    if not parts:
        return pa.nulls(0)
    if kinds == {str}:
        text = pa.dictionary(pa.int32(), pa.string())
        return pa.chunked_array([one.cast(text) for one in parts]).unify_dictionaries()
    kind = pa.float64() if float in kinds else pa.int64()
    return pa.chunked_array([one.cast(kind) for one in parts])
