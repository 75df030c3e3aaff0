"""From the text of a file to columns, and from columns to the user's kind of frame."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Literal, get_args

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.checks import choice
from fairperm.errors import InputError, listed, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Columns = dict[str, NDArray[Any]]
    Record = Mapping[str, str]

Backend = Literal["pandas", "polars", "pyarrow"]


def checked_backend(backend: object) -> Backend | None:
    """Return the backend if it is one of those there are."""
    return choice("backend", backend, (None, *get_args(Backend)))


def framed(columns: Columns, backend: Backend | None) -> Any:
    """Return columns as a frame of the backend; without one, as they are."""
    if backend is None:
        return columns
    try:
        return nw.from_dict(
            {name: column.tolist() for name, column in columns.items()}, backend=backend
        ).to_native()
    except ImportError as error:
        hint = f"Install {backend}, or leave backend out to get NumPy arrays."
        raise InputError("backend", "an installed package", backend, hint) from error


def text_of(content: bytes, file: str) -> str:
    """Return the text of a file."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        rule = f"text in UTF-8; byte {error.start + 1:,} is not"
        raise InputError(f"{file} must be {rule}.") from None


def with_header(content: bytes, file: str, needed: Iterable[str]) -> list[Record]:
    """Return the rows of a CSV file by column name; of a repeated name, the first counts."""
    try:
        rows = list(csv.reader(io.StringIO(text_of(content, file), newline="")))
    except csv.Error as error:
        raise InputError(f"{file} must be a CSV file: {error}.") from error
    header = rows[0] if rows else []
    places = {name: header.index(name) for name in header}
    missing = [name for name in needed if name not in places]
    if missing:
        raise InputError(f"{file} must have a header with {listed(missing)}; it has not.")
    for number, row in enumerate(rows[1:], start=2):
        if row and len(row) != len(header):
            raise InputError(_wrong(file, number, len(header), len(row)))
    return [{name: row[at] for name, at in places.items()} for row in rows[1:] if row]


def without_header(
    content: bytes, file: str, names: Sequence[str], split: Callable[[str], list[str]]
) -> list[Record]:
    """Return the rows of a file that begins with them; blank lines and comments (|) are none."""
    records: list[Record] = []
    for number, line in enumerate(text_of(content, file).splitlines(), start=1):
        if not line.strip() or line.startswith("|"):
            continue
        values = split(line)
        if len(values) != len(names):
            raise InputError(_wrong(file, number, len(names), len(values)))
        records.append(dict(zip(names, values, strict=True)))
    return records


def numbers(records: Sequence[Record], name: str, file: str) -> NDArray[Any]:
    """Return a column of integers."""
    try:
        return np.array([int(one[name]) for one in records], dtype=np.int64)
    except (ValueError, OverflowError):
        wrong = next(one[name] for one in records if not _is_integer(one[name]))
        raise InputError(f"{name} in {file} must be integers; got {shown(wrong)}.") from None


def texts(records: Sequence[Record], name: str, missing: str) -> NDArray[Any]:
    """Return a column of strings, with None for what is missing."""
    return objects(None if one[name] == missing else one[name] for one in records)


def coded(records: Sequence[Record], name: str, file: str, codes: Mapping[str, Any]) -> list[Any]:
    """Return what the codes in a column stand for."""
    try:
        return [codes[one[name]] for one in records]
    except KeyError as error:
        rule = f"one of {listed(codes)}"
        raise InputError(f"{name} in {file} must be {rule}; got {shown(error.args[0])}.") from None


def objects(values: Iterable[Any]) -> NDArray[Any]:
    """Return values as they are, in an array."""
    values = list(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _is_integer(text: str) -> bool:
    try:
        return -(2**63) <= int(text) < 2**63
    except ValueError:
        return False


def _wrong(file: str, number: int, wanted: int, got: int) -> str:
    return f"{file} must have {wanted} values in every line; line {number:,} has {got}."
