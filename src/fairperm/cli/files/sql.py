"""SQL in which names and texts from users are safely quoted, and a locked DuckDB to run it."""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairperm.errors import InputError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from pathlib import Path

_SHARE_OF_ROWS = 0.5  # of the memory
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def quote_name(name: str) -> str:
    """Return a name as an SQL identifier."""
    if "\0" in name:
        raise InputError(f"a name cannot contain a zero byte; got {shown(name)}.")
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as an SQL string."""
    if "\0" in text:
        raise InputError(f"a text cannot contain a zero byte; got {shown(text)}.")
    return "'" + text.replace("'", "''") + "'"


def check_select(sql: str) -> str:
    """Return the user's ``--sql``; raise InputError if it is not a single SELECT."""
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise InputError(f"--sql is not SQL: {first_line(error)}") from error
    query = sql.strip().rstrip(";")
    is_select = len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT
    if is_select:
        try:  # older versions take a PRAGMA for a SELECT, but not in parentheses
            duckdb.extract_statements(f"SELECT * FROM (\n{query}\n)")
        except duckdb.Error:
            is_select = False
    if not is_select:
        raise InputError("--sql", "one SELECT", sql)
    return query


def check_condition(where: str) -> str:
    """Return the user's ``--where``; raise InputError if it is not a single condition."""
    import duckdb

    # with and without parentheses: "a) OR (b" is no condition
    for query in (f"SELECT 1 FROM data WHERE {where}\n", f"SELECT 1 FROM data WHERE (\n{where}\n)"):
        try:
            statements = duckdb.extract_statements(query)
        except duckdb.Error as error:
            raise InputError(f"--where is not a condition: {first_line(error)}") from error
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InputError("--where", "one condition", where)
    return where


def choose_table(given: str | None, tables: Sequence[str], known: Sequence[str]) -> str:
    """Return the given table, or the only one."""
    if given is None:
        if len(tables) == 1:
            return tables[0]
        raise InputError(f"--table must name one of the tables ({listed(tables)}).")
    if given in known:
        return given
    rule = f"one of the tables ({listed(tables)})"
    raise InputError("--table", rule, given, did_you_mean(given, known))


def first_line(error: BaseException) -> str:
    """Return the first line of a database's error, without the kind of error."""
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    kind, mark, rest = line.partition(" Error: ")
    is_kind = mark and (" " not in kind.strip() or kind.istitle())
    return (rest if is_kind else line).strip()


def connect(folder: Path) -> Any:
    """Return an in-memory DuckDB that spills into this folder and loads no extensions."""
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


@contextmanager
def interrupt_on_signal(connection: Any) -> Iterator[None]:
    """End the query if a signal comes: Python would not look at it before the query has ended."""
    if threading.current_thread() is not threading.main_thread():  # others get no signals
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def wait() -> None:
        with reader:
            while reader.recv(1):
                connection.interrupt()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writer.close()
        thread.join()  # before the connection is closed


class Memory:
    """The memory that rows take: at most half of what DuckDB may use, here or in a container.

    Without a connection to DuckDB, at most half of the machine's.
    """

    def __init__(self, connection: Any | None) -> None:
        if connection is not None:
            ((text,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
            number, unit = text.split()
            self.limit = float(number) * 1024 ** _UNITS.index(unit) * _SHARE_OF_ROWS
        elif hasattr(os, "sysconf"):
            pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            self.limit = pages * _SHARE_OF_ROWS
        else:  # Windows
            self.limit = math.inf
        self.size = 0

    def add(self, size: int, hint: str) -> None:
        """Count the bytes of more rows. Raises InputError beyond the limit."""
        self.size += size
        if self.size > self.limit:
            limit = f"{self.limit / 2**20:,.0f} MB"
            raise InputError(
                f"the data are too large: they take more than {limit}, half of the memory. {hint}"
            )


def lock(connection: Any, paths: list[Path], folder: Path) -> None:
    """Let SQL read only these files from here on, and change no setting."""
    allowed = ", ".join(quote_text(str(path)) for path in paths)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute(f"SET allowed_directories = [{quote_text(str(folder) + '/')}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
