"""SQL that no name from a file or command line can break out of, and the tables it may name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairperm.errors import InputError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    if "\0" in name:
        raise InputError(f"a name cannot hold a zero byte; got {shown(name)}.")
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL string."""
    if "\0" in text:
        raise InputError(f"a text cannot hold a zero byte; got {shown(text)}.")
    return "'" + text.replace("'", "''") + "'"


def check_select(sql: str) -> str:
    """Return the user's ``--sql`` if it is one SELECT and nothing else."""
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise InputError(f"--sql is not SQL: {first_line(error)}") from error
    query = sql.strip().rstrip(";")
    is_select = len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT
    if is_select:
        try:  # older versions take a PRAGMA for a SELECT; none stands in parentheses
            duckdb.extract_statements(f"SELECT * FROM (\n{query}\n)")
        except duckdb.Error:
            is_select = False
    if not is_select:
        raise InputError(f"--sql must be one SELECT; got {shown(sql)}.")
    return query


def check_condition(where: str) -> str:
    """Return the user's ``--where`` if it is one condition and nothing else."""
    import duckdb

    # in parentheses and without them: "a) OR (b" is none
    for query in (f"SELECT 1 FROM data WHERE {where}\n", f"SELECT 1 FROM data WHERE (\n{where}\n)"):
        try:
            statements = duckdb.extract_statements(query)
        except duckdb.Error as error:
            raise InputError(f"--where is not a condition: {first_line(error)}") from error
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InputError(f"--where must be one condition; got {shown(where)}.")
    return where


def chosen_table(given: str | None, tables: Sequence[str], known: Sequence[str]) -> str:
    """Return the table that is meant: the one named, or the only one."""
    if given is None:
        if len(tables) == 1:
            return tables[0]
        raise InputError(f"--table must name one of the database's tables ({listed(tables)}).")
    if given in known:
        return given
    hint = did_you_mean(given, known)
    rule = f"one of the database's tables ({listed(tables)})"
    raise InputError(f"--table must be {rule}; got {shown(given)}. {hint}".rstrip())


def first_line(error: Exception) -> str:
    """Return the first line of a database's error, without its kind."""
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    kind, mark, rest = line.partition(" Error: ")
    return (
        rest if (mark and " " not in kind.strip()) or (mark and kind.istitle()) else line
    ).strip()


def connected(folder: Path) -> Any:
    """Return a DuckDB that is in memory, spills into our folder and loads nothing by itself."""
    import duckdb

    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": str(folder / "spill"),
            "preserve_insertion_order": "false",
        }
    )
    connection.execute("SET enable_progress_bar = false")
    return connection


def lock(connection: Any, paths: list[Path], folder: Path) -> None:
    """Let SQL read these files and no others from here on, and change no setting."""
    allowed = ", ".join(literal(str(path)) for path in paths)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute(f"SET allowed_directories = [{literal(str(folder) + '/')}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
