"""From files to what the tests read: counted rows where that is enough, else columns of Arrow."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairperm.cli.files import column_types as typing_of
from fairperm.cli.files import fetching
from fairperm.cli.files.fetching import Wanted
from fairperm.cli.files.inputs import check_kept, found, private_folder
from fairperm.cli.files.relation import ReadOptions, Relation, opened
from fairperm.cli.files.sql import check_condition, check_select, connected, first_line, quoted
from fairperm.errors import FairpermError, InputError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Loaded", "ReadOptions", "Wanted", "load"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read: ``data`` for the tests, its columns, their values in ``table``, the files."""

    data: Any
    columns: tuple[str, ...]
    table: Any
    n_rows: int
    files: list[dict[str, Any]]

    def if_read(self, column: str | None) -> str | None:
        """Return a column's name if it was needed."""
        return column if column in self.columns else None

    def value(self, column: str, text: str) -> object:
        """Return the value of a column that the user means by this text."""
        values = self.table[column].unique().to_pylist()
        for value in values:
            if str(value) == text and value is not None:
                return value
        for value in values:
            if isinstance(value, (bool, int, float)) and _means(text, value):
                return value
        return text  # the test itself says that there is no such value, and which there are

    def combinations(self, columns: Sequence[str]) -> list[tuple[object, ...]]:
        """Return the combinations of values that these columns have."""
        distinct = self.table.select(list(columns)).group_by(list(columns)).aggregate([])
        return [tuple(row[name] for name in columns) for row in distinct.to_pylist()]


def _means(text: str, value: float) -> bool:
    """Tell whether a text says this truth value or number in other words: true, 1.0."""
    if isinstance(value, bool):
        return text.strip().casefold() == str(value).casefold()
    try:
        return float(text) == value
    except ValueError:
        return False


@contextmanager
def load(
    names: Sequence[str],
    format_: str | None,
    options: ReadOptions,
    wanted: Wanted,
    *,
    outputs: Mapping[str, str],
    with_hashes: bool,
) -> Iterator[Loaded]:
    """Read the columns that are wanted; the database is open as long as rows are left in it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(private_folder()))
        files = found(names, format_, folder)
        check_kept(files, outputs)
        with _clear_errors([(str(file.path), file.name) for file in files]):
            connection = connected(folder)
            stack.callback(connection.close)
            relation = opened(connection, files, folder, options, list(wanted.columns()))
            source, fields = _selected(connection, relation, options, wanted)
            if wanted.all_numbers:
                fields = _with_numbers(connection, relation, options, source, fields)
            read = fetching.left_there if wanted.lazy else fetching.fetched
            data, table, n_rows = read(connection, source, fields, wanted)
        described = [file.described() for file in files] if with_hashes else []
        if not wanted.lazy:
            stack.close()
        yield Loaded(data, tuple(fields), table, n_rows, described)


@contextmanager
def _clear_errors(paths: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Turn what DuckDB says into one sentence that names the user's files."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except FairpermError:
        raise
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(_told(error, paths)) from error


def _told(error: Exception, paths: Sequence[tuple[str, str]]) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = first_line(error)
    for path, name in paths:
        text = text.replace(path, name)
    where = (
        f"{shown(paths[0][1])} cannot be read" if len(paths) == 1 else "the files cannot be read"
    )
    for line in lines:
        if line.startswith("Expected Number of Columns"):
            expected, got = (one.strip() for one in line.split(":", 1)[1].split("Found:"))
            place = text.removeprefix("CSV Error on Line: ")
            return f"{where}: line {place} has {got} columns where the header has {expected}."
        if "unterminated quote" in line:
            place = text.removeprefix("CSV Error on Line: ")
            return f"{where}: a quote that is opened or closed on line {place} is out of place."
        if "nicode" in line or "utf-8" in line.lower():
            hint = "Say what it is with --encoding (latin-1 or windows-1252, say)."
            return f"{where}: it is not in UTF-8. {hint}"
        if "invalid state" in line:
            return f"{where} as CSV: line ends may be mixed, or quotes out of place."
        if "maximum line size" in line.lower():
            return f"{where}: a line is longer than 2 MB; is a quote left open?"
    return f"{where}: {text}"


def _selected(
    connection: Any, relation: Relation, options: ReadOptions, wanted: Wanted
) -> tuple[str, dict[str, str]]:
    """Return what to select from, and SQL for each wanted column, in plain types."""
    columns = wanted.columns()
    if options.sql is None:  # then names must be there before anything is read
        for name, (option, _) in columns.items():
            relation.place(option, name)
    if options.sql is None and options.where is None:
        places = {name: relation.place(option, name) for name, (option, _) in columns.items()}
        roles = {relation.fields[i]: columns[name][1] for name, i in places.items()}
        fields = _typed(connection, relation, roles, options)
        source = relation.source
        types = {name: relation.types[i] for name, i in places.items()}
        chosen = {name: fields[relation.fields[i]] for name, i in places.items()}
    else:
        source = _filtered(connection, relation, options, columns)
        result = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        types = {str(row[0]): str(row[1]) for row in result}
        chosen = {}
        for name, (option, _) in columns.items():
            if name not in types:
                rule = f"a column that --sql returns ({listed(types)})"
                hint = did_you_mean(name, types)
                raise InputError(f"{option} must be {rule}; got {shown(name)}. {hint}".rstrip())
            chosen[name] = quoted(name)
    if relation.is_text and options.sql is None and options.where is None:
        return source, chosen
    return source, {
        name: typing_of.plain(columns[name][0], name, types[name], chosen[name]) for name in columns
    }


def _with_numbers(
    connection: Any,
    relation: Relation,
    options: ReadOptions,
    source: str,
    fields: Mapping[str, str],
) -> dict[str, str]:
    """Return SQL for these columns and all others of numbers, in the order of the data."""
    if options.sql is None and options.where is None:
        unclear = {*relation.ambiguous(), ""}
        order = relation.names
        places = {
            name: relation.fields[i]
            for i, name in enumerate(order)
            if name not in unclear and name not in fields
        }
        roles = dict.fromkeys(places.values(), typing_of.NUMBER)
        typed = _typed(connection, relation, roles, options)
        others = {name: typed[field] for name, field in places.items()}
    else:
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        order = [str(row[0]) for row in described]
        others = {name: quoted(name) for name in order if name not in fields}
    every = {name: fields.get(name) or others[name] for name in order if name in {*fields, *others}}
    selected = ", ".join(every.values())
    described = connection.execute(f"DESCRIBE SELECT {selected} FROM {source}").fetchall()
    return {
        name: field
        for (name, field), row in zip(every.items(), described, strict=True)
        if name in fields or typing_of.is_number(str(row[1]))
    }


def _typed(
    connection: Any, relation: Relation, roles: Mapping[str, str], options: ReadOptions
) -> dict[str, str]:
    if not relation.is_text:
        return {field: field for field in roles}
    missing, decimal = options.missing_words, options.decimal
    return typing_of.text_types(connection, relation.source, roles, missing, decimal)


def _filtered(
    connection: Any,
    relation: Relation,
    options: ReadOptions,
    columns: Mapping[str, tuple[str, str]],
) -> str:
    """Return the rows that the user's SQL leaves, as something to select from."""
    spoken = f"{options.sql or ''} {options.where or ''}".casefold()
    unclear = relation.ambiguous()
    kept = [i for i, name in enumerate(relation.names) if name not in unclear and name]
    for name, (option, _) in columns.items():
        if name in unclear and options.sql is None:
            same = listed(sorted(one for one in unclear if one.casefold() == name.casefold()))
            raise InputError(f"{option} cannot be told from others in SQL: the data have {same}.")
    roles = {
        relation.fields[i]: columns.get(relation.names[i], ("", typing_of.NAME))[1]
        for i in kept
        if relation.names[i] in columns or relation.names[i].casefold() in spoken
    }
    typed = _typed(connection, relation, roles, options)
    if kept:
        selected = ", ".join(
            f"{typed.get(relation.fields[i], relation.fields[i])} AS {quoted(relation.names[i])}"
            for i in kept
        )
        view = f"SELECT * FROM (SELECT {selected} FROM {relation.source})"
        if options.where is not None:
            view += f" AS data WHERE (\n{check_condition(options.where)}\n)"
        _checked(connection, "--where" if options.where else "the data", f"DESCRIBE {view}")
        connection.execute(f"CREATE TEMP VIEW data AS {view}")
    elif options.where is not None:
        raise InputError("--where needs --table, where SQL names the tables of a database.")
    if options.sql is None:
        return "data"
    query = check_select(options.sql)
    _checked(connection, "--sql", f"DESCRIBE {query}")
    return f"(\n{query}\n)"


def _checked(connection: Any, option: str, query: str) -> None:
    import duckdb

    try:
        connection.execute(query).fetchall()
    except duckdb.Error as error:
        text = first_line(error)
        hint = "Text stands in 'single quotes'." if "column" in text and "not found" in text else ""
        raise InputError(f"{option} cannot be run: {text} {hint}".rstrip()) from error
