"""What a file looks like: how to read it, its columns and its first rows, each guess with a reason.

The guesses become options of the command line, so nothing here changes how a file is read.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairperm.cli.files import column_types as types
from fairperm.cli.files.formats import (
    BYTE_ORDER_MARKS,
    DELIMITERS,
    MISSING,
    TEXTS,
    ReadOptions,
    explain_reason,
    find_files,
    list_sheets,
    open_bytes,
    open_relation,
)
from fairperm.cli.files.loading import name_files_in_errors
from fairperm.cli.files.sql import connect
from fairperm.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairperm.cli.files.formats import InputFile, Relation

MAX_COLUMNS = 400
MAX_VALUES = 60  # of a column whose values are listed
Values = tuple[tuple[str, int], ...]
_SHOWN_ROWS = 6
_COUNTED_AT_ONCE = 30  # columns
_MAX_ODD = 3  # words among the numbers of a column
_HEAD = 1 << 18  # bytes
_HEAD_LINES = 40
_MAX_TITLES = 15  # lines above the header
_SHARE_OF_NUMBERS = 0.8  # from which on words among them are taken for missing values
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+")
_DOT_NUMBER = re.compile(r"[+-]?\d*\.\d+")
_UNKNOWN_WORDS = (
    "?|-|--|.|n.a.|missing|not available|not known|not stated|k.a.|k. a.|keine angabe|"
    "nicht bekannt|unbekannt|inconnu"
)
_UNKNOWN = frozenset(_UNKNOWN_WORDS.split("|"))


@dataclass(frozen=True, slots=True)
class Source:
    """A file: the folder in which commands run, and its name there, or its whole path."""

    folder: Path
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a file is read, in the command line's words; ``why`` says what was guessed.

    ``marked`` is the encoding that its first bytes show.
    """

    table: str | None = None
    skip: int = 0
    delimiter: str | None = None
    decimal: str = "."
    encoding: str | None = None
    marked: str | None = None
    na: tuple[str, ...] = ()
    why: tuple[str, ...] = ()

    def options(self) -> dict[str, Any]:
        """Return what differs from the command line's defaults, by option."""
        given = {one: getattr(self, one) for one in ("table", "skip", "encoding")}
        given["decimal"] = "," if self.decimal == "," else None
        given["na"] = [*MISSING[1:], *self.na] if self.na else None
        return {name: value for name, value in given.items() if value}

    def for_python(self) -> dict[str, Any]:
        """Return what reading the file with pandas takes."""
        mark = None if self.delimiter == "," else self.delimiter
        code = self.encoding or self.marked
        return self.options() | {"delimiter": mark, "encoding": code, "na": [*self.na]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its kind ("number", "text", "yes/no"), and its values if they are few."""

    name: str
    kind: str
    n_distinct: int
    n_missing: int
    low: float | None = None
    high: float | None = None
    values: Values = ()
    odd: Values = ()

    @property
    def texts(self) -> list[str]:
        """Its values, if they are few."""
        return [text for text, _ in self.values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A file as the page shows it."""

    name: str
    format: str
    n_rows: int
    reading: Reading
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | None, ...], ...]  # the first ones, as they are written
    sheets: tuple[str, ...] = ()
    n_more: int = 0
    odd: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_text(self) -> bool:
        """Whether cells are texts, of which types are made."""
        return self.format in TEXTS

    @property
    def unknown_words(self) -> list[str]:
        """Words that seem to stand for a missing value, whether they are taken for one or not."""
        return [*dict.fromkeys((*self.reading.na, *self.odd))]


def look(name: str, folder: Path, given: Mapping[str, Any]) -> Look:
    """Return what a file looks like; ``given`` corrects how it is read."""
    (file,) = find_files([name], None, folder)
    try:
        with name_files_in_errors([file], folder):
            return _look(file, folder, given)
    except OSError as error:  # a compressed file is damaged
        raise InputError(f"{shown(file.name)} cannot be read: {explain_reason(error)}.") from error


def _look(file: InputFile, folder: Path, given: Mapping[str, Any]) -> Look:
    sheets: tuple[str, ...] = ()
    if file.format == "xlsx":
        heads = list_sheets(file, _HEAD_LINES)
        sheets = tuple(heads)
        reading = _guess_sheet(heads, given.get("table"))
    elif file.format in TEXTS:
        reading = _guess_text(file, given.get("encoding"))
    else:
        reading = Reading(table=given.get("table"))
    found = _describe(file, folder, replace(reading, **given))
    odd = {one: n for column in found.columns for one, n in column.odd}
    if odd and "na" not in given:
        found = _describe(file, folder, replace(found.reading, na=tuple(odd)))
    return replace(found, sheets=sheets, odd=odd)


def _guess_sheet(heads: dict[str, list[list[str]]], chosen: str | None) -> Reading:
    """Return the sheet with most cells at its beginning, and where its header is."""
    sizes = {name: sum(map(len, rows)) for name, rows in heads.items()}
    table = chosen if chosen in heads else max(sizes, key=lambda one: sizes[one])
    skip, decimal = _find_header(heads[table]), _guess_decimal(heads[table])
    why = _explain_skip(skip)
    if len(heads) > 1:
        why.insert(0, f"the sheet “{table}” has the largest table" if not chosen else "")
    if decimal == ",":
        why.append(_COMMA)
    named = table if len(heads) > 1 else None
    return Reading(table=named, skip=skip, decimal=decimal, why=tuple(filter(None, why)))


_COMMA = "numbers are written with a decimal comma"


def _guess_text(file: InputFile, chosen: str | None) -> Reading:
    """Return how a text is written: its encoding, header, delimiter and decimal mark."""
    with open_bytes(file.path) as stream:
        head = stream.read(_HEAD)
    marked = next((one for mark, one in BYTE_ORDER_MARKS if head.startswith(mark)), None)
    encoding = chosen or (None if marked or _is_utf8(file.path) else "windows-1252")
    text = head.decode(encoding or marked or "utf-8", errors="replace").lstrip("\ufeff")
    if len(head) == _HEAD:  # the last line may be cut
        text = text.rpartition("\n")[0]
    lines = text.splitlines()[:_HEAD_LINES]
    marks = "\t" if file.format == "tsv" else DELIMITERS
    tables = {mark: _split(lines, mark) for mark in marks}
    mark = max(tables, key=lambda one: _usual_width(tables[one]))
    rows = tables[mark]
    skip, decimal = _find_header(rows), _guess_decimal(rows)
    why = _explain_skip(skip)
    if encoding and not chosen:
        why.append("it is not in UTF-8, so it is read as Windows-1252, as Excel writes it")
    if decimal == ",":
        why.append(_COMMA)
    return Reading(
        skip=skip, delimiter=mark, decimal=decimal, encoding=encoding, marked=marked, why=tuple(why)
    )


def _explain_skip(skip: int) -> list[str]:
    if not skip:
        return []
    what = "line is a title" if skip == 1 else f"{skip} lines are titles"
    return [f"the first {what} above the names of the columns"]


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open_bytes(path) as stream:
            while block := stream.read(1 << 20):
                decoder.decode(block)
    except UnicodeDecodeError:
        return False
    return True


def _split(lines: Sequence[str], mark: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO("\n".join(lines)), delimiter=mark))
    except csv.Error:
        return [line.split(mark) for line in lines]


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of cells that most rows have."""
    widths = Counter(len(row) for row in rows if row)
    return max(widths, key=lambda one: (widths[one], one), default=0)


def _find_header(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows are above the header: the first one that is as wide as most."""
    width = _usual_width(rows)
    for i, row in enumerate(rows[: _MAX_TITLES + 1]):
        if len(row) == width and sum(map(bool, map(str.strip, row))) > width / 2:
            return i
    return 0


def _guess_decimal(rows: Sequence[Sequence[str]]) -> str:
    cells = [one.strip() for row in rows for one in row]
    commas = sum(_COMMA_NUMBER.fullmatch(one) is not None for one in cells)
    dots = sum(_DOT_NUMBER.fullmatch(one) is not None for one in cells)
    return "," if commas > dots else "."


def _describe(file: InputFile, folder: Path, reading: Reading) -> Look:
    """Return the columns and the first rows of a file that is read in this way."""
    missing = (*MISSING, *reading.na)
    options = ReadOptions(
        table=reading.table,
        skip=int(reading.skip),
        decimal=reading.decimal,
        encoding=reading.encoding,
        missing_words=missing,
    )
    connection = connect(folder)
    try:
        connection.execute("SET preserve_insertion_order = true")
        relation = open_relation(connection, [file], folder, options, [])
        wide = len(relation.names)
        relation = replace(
            relation, names=relation.names[:MAX_COLUMNS], fields=relation.fields[:MAX_COLUMNS]
        )
        columns, n_rows = _describe_columns(connection, relation, missing, reading.decimal)
        shown = [relation.fields[relation.names.index(one.name)] for one in columns]
        casts = ", ".join(f"CAST({one} AS VARCHAR)" for one in shown) or "NULL"
        rows = connection.execute(
            f"SELECT {casts} FROM {relation.source} LIMIT {_SHOWN_ROWS}"
        ).fetchall()
    finally:
        connection.close()
    if not n_rows:
        raise InputError(f"{Path(file.name).name} has no rows below the names of its columns.")
    return Look(
        name=Path(file.name).name,
        format=file.format,
        n_rows=n_rows,
        reading=reading,
        columns=tuple(columns),
        rows=tuple(map(tuple, rows)),
        n_more=wide - len(columns),
    )


def _describe_columns(
    connection: Any, relation: Relation, missing: Sequence[str], decimal: str
) -> tuple[list[Column], int]:
    fields = dict.fromkeys(relation.fields, types.NUMBER)
    typed = {one: one for one in fields}
    if relation.is_text:
        typed = types.infer_types(connection, relation.source, fields, missing, decimal)
    listing = ", ".join(f"{typed[one]} AS v{i}" for i, one in enumerate(relation.fields))
    view = f"(SELECT {listing} FROM {relation.source})"
    kinds = [str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {view}").fetchall()]
    counts = ["count(*)"]
    for i, kind in enumerate(kinds):
        number = f"CAST(v{i} AS DOUBLE)" if types.is_number(kind) else "CAST(NULL AS DOUBLE)"
        text = f"translate(CAST(v{i} AS VARCHAR), ',', '.')"
        counts += [
            f"count(v{i})",
            f"approx_count_distinct(CAST(v{i} AS VARCHAR))",
            f"min({number})",
            f"max({number})",
            f"count(TRY_CAST({text} AS DOUBLE))",
        ]
    n_rows, *row = connection.execute(f"SELECT {', '.join(counts)} FROM {view}").fetchall()[0]
    few = [i for i in range(len(kinds)) if row[5 * i + 1] <= MAX_VALUES]
    values = _count_values(connection, view, few)
    names = Counter(relation.names)
    columns = []
    for i, (name, kind) in enumerate(zip(relation.names, kinds, strict=True)):
        known, about, low, high, numbers = row[5 * i : 5 * i + 5]
        is_nested = kind.endswith(("]", ")")) and not kind.startswith("DECIMAL")
        if not name.strip() or names[name] > 1 or is_nested:
            continue  # it cannot be named, or holds no plain values
        is_number = types.is_number(kind)
        found = Column(
            name=name,
            kind="number" if is_number else "yes/no" if kind == "BOOLEAN" else "text",
            n_distinct=len(values[i]) if i in values else about,
            n_missing=n_rows - known,
            low=low,
            high=high,
            values=values.get(i, ()),
        )
        if relation.is_text and not is_number:
            share = numbers / max(known, 1)
            found = replace(found, odd=_find_odd(connection, view, i, found, share))
        columns.append(found)
    return columns, n_rows


def _count_values(connection: Any, view: str, places: Sequence[int]) -> dict[int, Values]:
    """Return the values of columns with their counts, the most frequent first."""
    found: dict[int, Values] = {}
    for first in range(0, len(places), _COUNTED_AT_ONCE):
        some = places[first : first + _COUNTED_AT_ONCE]
        texts = [f"t{i}" for i in some]
        casts = ", ".join(f"CAST(v{i} AS VARCHAR) AS t{i}" for i in some)
        place = " ".join(f"WHEN grouping(t{i}) = 0 THEN {i}" for i in some)
        rows = connection.execute(
            f"SELECT CASE {place} END, coalesce({', '.join(texts)}) AS t, count(*) "
            f"FROM (SELECT {casts} FROM {view}) "
            f"GROUP BY GROUPING SETS ({', '.join(f'({one})' for one in texts)}) ORDER BY 3 DESC, 2"
        ).fetchall()
        for i in some:
            found[i] = tuple((text, n) for j, text, n in rows if j == i and text is not None)
    return found


def _find_odd(connection: Any, view: str, i: int, column: Column, share: float) -> Values:
    """Return the words of a column that seem to stand for a missing value."""
    if column.values:
        words = [one for one in column.values if one[0].strip().casefold() in _UNKNOWN]
        return tuple(words) if len(words) < len(column.values) else ()
    if share < _SHARE_OF_NUMBERS:
        return ()
    found = connection.execute(
        f"SELECT v{i}, count(*) FROM {view} WHERE v{i} IS NOT NULL AND "
        f"TRY_CAST(translate(v{i}, ',', '.') AS DOUBLE) IS NULL "
        f"GROUP BY 1 ORDER BY 2 DESC LIMIT {_MAX_ODD + 1}"
    ).fetchall()
    return tuple(found) if len(found) <= _MAX_ODD else ()
