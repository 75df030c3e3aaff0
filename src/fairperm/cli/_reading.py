"""From files to what the tests read: counted rows where that is enough, else columns of Arrow."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairperm.cli import _typing as typing_of
from fairperm.cli._inputs import found, private_folder
from fairperm.cli._relation import ReadOptions, Relation, opened
from fairperm.cli._sql import check_condition, check_select, connected, first_line, quoted
from fairperm.errors import FairpermError, InputError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_BATCH = 1 << 20
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The columns that a test needs, by the options that name them."""

    label: str
    prediction: str | None
    score: str | None
    groups: tuple[str, ...]
    controls: tuple[str, ...] = ()
    cluster: str | None = None
    weight: str | None = None
    cut_at: float | None = None  # if the score matters only by whether it reaches this
    rows: bool = False  # whether rows are needed one by one, and counts are not enough
    drop_missing: bool = False

    def columns(self) -> dict[str, tuple[str, str]]:
        """Return every column's option and role."""
        asked = [
            ("--label", typing_of.LABEL, self.label),
            ("--prediction", typing_of.LABEL, self.prediction),
            ("--score", typing_of.NUMBER, self.score),
            *(("--group", typing_of.NAME, name) for name in self.groups),
            *(("--control", typing_of.NAME, name) for name in self.controls),
            ("--cluster", typing_of.NAME, self.cluster),
            ("--weight", typing_of.NUMBER, self.weight),
        ]
        columns: dict[str, tuple[str, str]] = {}
        for option, role, name in asked:
            if name is not None:
                columns.setdefault(name, (option, role))
        return columns


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read: ``data`` for the tests, the distinct values of columns, and the files."""

    data: Any
    table: Any
    n_rows: int
    files: list[dict[str, Any]]

    def if_read(self, column: str | None) -> str | None:
        """Return a column's name if it was needed."""
        return column if column in self.table.column_names else None

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


def _means(text: str, value: float) -> bool:
    """Tell whether a text says this truth value or number in other words: true, 1.0."""
    if isinstance(value, bool):
        return text.strip().casefold() == str(value).casefold()
    try:
        return float(text) == value
    except ValueError:
        return False


def load(
    names: Sequence[str],
    format_: str | None,
    options: ReadOptions,
    wanted: Wanted,
    *,
    with_hashes: bool,
) -> Loaded:
    """Read the columns that are wanted."""
    with private_folder() as name:
        folder = Path(name)
        files = found(names, format_, folder)
        with _clear_errors([(str(file.path), file.name) for file in files]):
            connection = connected(folder)
            try:
                relation = opened(connection, files, folder, options, list(wanted.columns()))
                source, fields = _selected(connection, relation, options, wanted)
                loaded = _fetched(connection, source, fields, wanted)
            finally:
                connection.close()
        described = [file.described() for file in files] if with_hashes else []
    data, table, n_rows = loaded
    return Loaded(data, table, n_rows, described)


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
        if "Maximum line size" in line or "maximum line size" in line.lower():
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


def _typed(
    connection: Any, relation: Relation, roles: Mapping[str, str], options: ReadOptions
) -> dict[str, str]:
    if not relation.is_text:
        return {field: field for field in roles}
    return typing_of.text_types(connection, relation.source, roles, options.missing_words)


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
        raise InputError(f"{option} cannot be run: {first_line(error)}") from error


def _fetched(
    connection: Any, source: str, fields: Mapping[str, str], wanted: Wanted
) -> tuple[Any, Any, int]:
    import numpy as np

    from fairperm._source import Counted

    names = list(fields)
    if wanted.rows:
        selected = ", ".join(f"{field} AS v{i}" for i, field in enumerate(fields.values()))
        table = _arrow(connection, f"SELECT {selected} FROM {source}", names)
        _check_rows(table, wanted, None)
        return table, table, table.num_rows
    if wanted.score is not None and wanted.cut_at is not None:
        fields = {**fields, wanted.score: _sides(connection, source, fields[wanted.score], wanted)}
    selected = ", ".join(f"{field} AS v{i}" for i, field in enumerate(fields.values()))
    groups = ", ".join(f"v{i}" for i in range(len(fields)))
    query = (
        f"SELECT {groups}, count(*) AS n FROM (SELECT {selected} FROM {source}) GROUP BY {groups}"
    )
    # groups come in no order of their own; in one that the values have, runs are alike
    table = _arrow(connection, f"SELECT * FROM ({query}) ORDER BY ALL", [*names, ""])
    counts = np.asarray(table[""].to_numpy(), np.int64)
    table = table.drop_columns([""])
    _check_rows(table, wanted, counts)
    return Counted(table, counts), table, int(counts.sum())


def _sides(connection: Any, source: str, field: str, wanted: Wanted) -> str:
    """Return SQL for the lowest score where a score is below the threshold, else the highest.

    What else the score is does not matter, and then equal rows can be counted.
    """
    kind = str(connection.execute(f"SELECT typeof({field}) FROM {source} LIMIT 1").fetchall()[0][0])
    if kind in {"VARCHAR", "BOOLEAN", "DATE"} or kind.startswith("TIMESTAMP"):
        return field  # the test will say what is wrong with it
    known = f"SELECT {field} AS s FROM {source}"
    low, high = connection.execute(
        f"SELECT min(s), max(s) FROM ({known}) WHERE s IS NOT NULL AND NOT isnan(s::DOUBLE)"
    ).fetchall()[0]
    if low is None:
        return field
    cut = f"CAST({wanted.cut_at!r} AS {'FLOAT' if kind == 'FLOAT' else 'DOUBLE'})"
    return (
        f"(CASE WHEN {field} IS NULL OR isnan(CAST({field} AS DOUBLE)) THEN NULL "
        f"WHEN {field} = {_number(low)}::{kind} THEN {_number(low)}::{kind} "
        f"WHEN {field} >= {cut} THEN {_number(high)}::{kind} ELSE {_number(low)}::{kind} END)"
    )


def _number(value: float) -> str:
    return f"'{value!r}'"


def _arrow(connection: Any, query: str, names: Sequence[str]) -> Any:
    """Return a query's rows as Arrow; text as codes, so that no row becomes a string of Python."""
    import pyarrow as pa

    relation = connection.sql(query)
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    reader = read(_BATCH)
    text = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema(
        [
            pa.field(f"v{i}", text if _is_text(one.type) else one.type)
            for i, one in enumerate(reader.schema)
        ]
    )
    batches = [
        pa.record_batch(
            [
                column.cast(pa.string()).dictionary_encode() if _is_text(column.type) else column
                for column in batch.columns
            ],
            schema=schema,
        )
        for batch in reader
    ]
    table = pa.Table.from_batches(batches, schema).unify_dictionaries()
    return table.rename_columns(list(names))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _check_rows(table: Any, wanted: Wanted, counts: Any) -> None:
    """Say so if there are no rows, or missing values that nobody said to drop."""
    if not table.num_rows:
        raise InputError("the data must have at least one row; there are none.")
    if wanted.drop_missing:
        return
    holes = {}
    for name in table.column_names:
        unknown = table[name].is_null(nan_is_null=True)
        if n := int(counts[unknown.to_numpy()].sum() if counts is not None else _count(unknown)):
            holes[name] = n
    if holes:
        total = table.num_rows if counts is None else int(counts.sum())
        found_in = ", ".join(
            f"{shown(name)} ({n:,})" for name, n in list(holes.items())[:_MOST_NAMES]
        )
        raise InputError(
            f"the columns must be without missing values; of {total:,} rows some have none in "
            f"{found_in}. Pass --missing drop to leave such rows out; the result will say how many."
        )


def _count(truths: Any) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(truths).as_py() or 0)


__all__ = ["Loaded", "ReadOptions", "Wanted", "load"]
