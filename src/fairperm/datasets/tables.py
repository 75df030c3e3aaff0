"""Columns out of a file's text, and data frames out of columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Integers
from fairperm._utils.checks import choice
from fairperm.errors import InputError, listed, shown

Columns = dict[str, NDArray[Any]]
Record = Mapping[str, str]

Backend = Literal["pandas", "polars", "pyarrow"]
_INTEGER = re.compile(r"-?\d{1,18}")


def check_backend(backend: object) -> Backend | None:
    """Return the backend. Raises InputError if it is not one of the three."""
    return choice("backend", backend, (None, *get_args(Backend)))


def make_frame(columns: Columns, backend: Backend | None) -> Any:
    """Return the columns as a data frame of the backend, or unchanged without a backend."""
    if backend is None:
        return columns
    lists = {name: column.tolist() for name, column in columns.items()}
    try:
        return nw.from_dict(lists, backend=backend).to_native()
    except ImportError as error:
        hint = f"Install {backend}, or leave backend out to get NumPy arrays."
        raise InputError("backend", "an installed package", backend, hint) from error


def read_records(
    content: bytes,
    file: str,
    needed: Iterable[str] = (),
    header: Sequence[str] = (),
    **dialect: Any,
) -> list[Record]:
    """Return the rows of a text file by column name; without a header, line 1 is the header."""
    # Blank lines and comments (|) are skipped. If a name is repeated, its first column counts.
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), **dialect)
        rows = [(reader.line_num, row) for row in reader if any(row) and row[0][:1] != "|"]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} must be a CSV file in UTF-8: {error}.") from error
    if not header and rows:
        header = rows.pop(0)[1]
    lacking = [name for name in needed if name not in header]
    if lacking:
        raise InputError(f"{file} must have a header with {listed(lacking)}.")
    if not rows:
        raise InputError(f"{file} must have rows; it has none.")
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(
                f"{file} must have {len(header)} values in every line; line {line:,} has "
                f"{len(row)}."
            )
    return [dict(zip(header[::-1], row[::-1], strict=True)) for _, row in rows]


def make_columns(
    records: Sequence[Record],
    file: str,
    names: Iterable[str],
    integers: Collection[str],
    missing: str = "",
) -> Columns:
    """Return columns of integers, and of strings with None for missing values."""
    columns: Columns = {}
    for name in names:
        texts = [record[name] for record in records]
        if name in integers:
            columns[name] = parse_integers(texts, name, file)
        else:
            columns[name] = np.array([None if t == missing else t for t in texts], object)
    return columns


def parse_integers(texts: Sequence[str], name: str, file: str) -> Integers:
    """Return a column of integers. Raises InputError if a value is not an integer."""
    wrong = next((text for text in texts if not _INTEGER.fullmatch(text)), None)
    if wrong is not None:
        raise InputError(f"{name} in {file} must be integers; got {shown(wrong)}.")
    return np.array([int(text) for text in texts], np.int64)


def decode(records: Iterable[Record], name: str, file: str, codes: Mapping[str, Any]) -> list[Any]:
    """Return the meanings of the codes in a column. Raises InputError for an unknown code."""
    try:
        return [codes[record[name]] for record in records]
    except KeyError as error:
        raise InputError(
            f"{name} in {file} must be one of {listed(codes)}; got {shown(error.args[0])}."
        ) from None
