"""The wanted columns out of DuckDB: counts where they are enough, else rows; or left in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairperm.cli.files import column_types as typing_of
from fairperm.cli.files.sql import quoted
from fairperm.errors import InputError, listed, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BATCH = 1 << 20
_MOST_NAMES = 5
_NO_ROWS = "the data must have at least one row; there are none."


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
    lazy: bool = False  # whether rows stay where they are, and are counted there
    all_numbers: bool = False  # whether other numbers are needed, by which rows are sampled

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


def left_there(
    connection: Any, source: str, fields: Mapping[str, str], wanted: Wanted
) -> tuple[Any, Any, int]:
    """Return the rows as a relation of DuckDB's, and of the values only those that have names."""
    unclear = [
        one for one in fields if sum(one.casefold() == name.casefold() for name in fields) > 1
    ]
    if unclear:
        raise InputError(
            f"columns of rows that stay in files are not told apart by case: {listed(unclear)}."
        )

    def select(names: Sequence[str]) -> str:
        return ", ".join(f"{fields[name]} AS {quoted(name)}" for name in names)

    relation = connection.sql(f"SELECT {select(list(fields))} FROM {source}")
    named = list(dict.fromkeys((wanted.label, *wanted.groups, *wanted.controls)))
    values = _arrow(connection, f"SELECT DISTINCT {select(named)} FROM {source}", named)
    n_rows = int(connection.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0])
    if not n_rows:
        raise InputError(_NO_ROWS)
    return relation, values, n_rows


def fetched(
    connection: Any, source: str, fields: Mapping[str, str], wanted: Wanted
) -> tuple[Any, Any, int]:
    """Return the data for the tests, a table with all values of columns, the number of rows."""
    import numpy as np

    from fairperm.data.sources import CountedRows

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
    return CountedRows(columns=table, count=counts), table, int(counts.sum())


def _sides(connection: Any, source: str, field: str, wanted: Wanted) -> str:
    """Return SQL for the lowest score where a score is below the threshold, else the highest.

    What else the score is does not matter, and then equal rows can be counted. Both stay what they
    are, so that a threshold that does not part them is refused with the scores there are.
    """
    kinds = connection.execute(f"SELECT typeof({field}) FROM {source} LIMIT 1").fetchall()
    if not kinds:
        return field  # the test will say that there are no rows
    kind = str(kinds[0][0])
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
        f"WHEN {field} >= {cut} OR {field} = {_number(high)}::{kind} THEN {_number(high)}::{kind} "
        f"ELSE {_number(low)}::{kind} END)"
    )


def _number(value: float) -> str:
    return f"'{value!r}'"


def _arrow(connection: Any, query: str, names: Sequence[str]) -> Any:
    """Return a query's rows as Arrow; text as codes, so that no row becomes a string of Python."""
    import pyarrow as pa

    read = getattr(connection.sql(query), "to_arrow_reader", None)
    if read is None:  # an older DuckDB
        read = connection.execute(query).fetch_record_batch
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
        raise InputError(_NO_ROWS)
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
            f"{found_in}. Pass --missing drop to leave such rows out; the result will say how "
            "many. (In text files words such as NA and None are missing values; --na names others.)"
        )


def _count(truths: Any) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(truths).as_py() or 0)
