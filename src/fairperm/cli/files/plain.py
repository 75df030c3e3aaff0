"""Text files read by Python alone, where DuckDB is not installed: the same values, more slowly.

``column_types`` has the same rules as SQL.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fairperm.cli.files.column_types import LABEL, LONGEST_NUMBER, NAME, NUMBER, not_real
from fairperm.cli.files.formats import (
    ENCODING_HINT,
    LONG_LINE,
    LONGEST_LINE,
    SKIP_HINT,
    TEXTS,
    InputFile,
    ReadOptions,
    Relation,
    TextFile,
    lay_out,
    open_bytes,
)
from fairperm.cli.files.sql import Memory
from fairperm.errors import InputError, shown

Column = list[Any] | np.ndarray[Any, Any]

_BATCH = 1 << 16  # rows
_BYTES = 8, 100  # of one more row in a column, and of one more text
_SPACES = r"[ \t\n\v\f\r]*"
_DIGITS = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?"
_FLOAT = re.compile(rf"{_SPACES}(\+?-?(?:{_DIGITS}|inf|infinity)){_SPACES}", re.IGNORECASE)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_CODE = re.compile(r"[+-]*0[0-9].*")
_LONG_INTEGER = re.compile(r"[+-]?[0-9]{17,}")
_LARGEST = 2**63
_SPACED_QUOTE = re.compile(' +"')
_TRUTHS = {"true": True, "false": False}


def can_read(files: Sequence[InputFile], options: ReadOptions) -> bool:
    """Whether these are texts that no SQL has to select from."""
    return files[0].format in TEXTS and options.sql is None and options.where is None


def read_texts(
    files: Sequence[InputFile],
    folder: Path,
    options: ReadOptions,
    wanted: Mapping[str, tuple[str, str]],
) -> dict[str, Column]:
    """Return the wanted columns, given with their options and roles, by name."""
    memory = Memory(None)
    names, texts = lay_out(files, folder, options, memory)
    relation = Relation("", [*names], [*names], [], is_text=True)
    places = [relation.place(option, name) for name, (option, _) in wanted.items()]
    columns: list[list[str | None]] = [[] for _ in places]
    for one in texts:
        with _clear_errors(one):
            _read_rows(one, [one.places[i] for i in places], columns, options, memory)
    return {
        name: _convert(column, role, options.decimal, f"{option} (column {shown(name)})")
        for column, (name, (option, role)) in zip(columns, wanted.items(), strict=True)
    }


def _read_rows(
    text: TextFile,
    places: Sequence[int],
    columns: Sequence[list[str | None]],
    options: ReadOptions,
    memory: Memory,
) -> None:
    """Append the rows of a text to the columns; equal texts are one object."""
    known: dict[str, str | None] = dict.fromkeys(options.missing_words)
    width, n_known = len(text.places), len(known)
    hint = "Install fairperm[files], which counts rates without keeping rows."
    with (
        open_bytes(text.path) as file,
        io.TextIOWrapper(file, "utf-8-sig", newline="") as stream,
    ):
        lines = _Lines(stream, text.mark)
        rows = csv.reader(lines, delimiter=text.mark, strict=True)
        next(rows)
        end = lines.end
        for number, row in enumerate(rows):
            if lines.end not in {end, ""}:
                raise csv.Error("line ends may be mixed.")
            if not row:
                if width > 1:
                    continue
                row = [""]
            while len(row) > width and not row[-1]:
                row.pop()
            if len(row) != width:
                title = f" {SKIP_HINT}" if width == 1 else ""
                raise InputError(
                    f"{shown(text.file.name)} cannot be read: line {rows.line_num} has {len(row)} "
                    f"columns; the header has {width}.{title}"
                )
            if lines.has_spaced_quote and any(map(_SPACED_QUOTE.match, row)):
                raise csv.Error("a quote follows a space")
            lines.has_spaced_quote = False
            for column, i in zip(columns, places, strict=True):
                column.append(known.setdefault(row[i], row[i]))
            if number % _BATCH == 0:
                per_row, per_text = _BYTES
                size = per_row * _BATCH * len(places) + per_text * (len(known) - n_known)
                memory.add(size, hint)
                n_known = len(known)


class _Lines:
    """The lines of a text, with what the last one ended in, and whether a space preceded a quote.

    Python and DuckDB disagree about a value that starts so outside quotes.
    """

    def __init__(self, stream: io.TextIOWrapper, mark: str) -> None:
        self._stream, self.end, self.has_spaced_quote = stream, "", False
        self._find = re.compile(rf"(?:^|{re.escape(mark)}){_SPACED_QUOTE.pattern}").search

    def __iter__(self) -> Iterator[str]:
        while line := self._stream.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise csv.Error(LONG_LINE)
            self.end = line[len(line.rstrip("\r\n")) :]
            self.has_spaced_quote |= ' "' in line and self._find(line) is not None
            yield line


@contextmanager
def _clear_errors(text: TextFile) -> Iterator[None]:
    """Turn what Python says into one sentence with the user's name of the file."""
    where = f"{shown(text.file.name)} cannot be read"
    limit = csv.field_size_limit(LONGEST_LINE)
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: it is not in UTF-8. {ENCODING_HINT}") from error
    except csv.Error as error:
        said = str(error)
        if "field limit" in said:
            said = LONG_LINE
        elif any(one in said for one in ("expected after", "unexpected end", "follows")):
            said = "a quote that opens or closes is out of place."
        raise InputError(f"{where}: {said}") from error
    except OSError as error:
        raise InputError(f"{where}: {error.strerror or error}.") from error
    finally:  # the limit is global
        csv.field_size_limit(limit)


def _convert(column: list[str | None], role: str, decimal: str, called: str) -> Column:
    """Return a column in the type of all of its values: the rules of ``infer_types``."""
    texts = dict.fromkeys(one for one in column if one is not None)
    swapped = str.maketrans(",.", ".,") if role == NUMBER and decimal == "," else {}
    spelt = {one: one.translate(swapped) for one in texts}
    floats = {one: _as_float(text) for one, text in spelt.items()}
    if role == NUMBER:
        wrong = min((one for one, number in floats.items() if number is None), default=None)
        if wrong is not None:
            raise not_real(called, wrong, decimal)
    are_floats = None not in floats.values()
    trimmed = {one: text.strip(" ") for one, text in spelt.items()}
    if texts and all(map(_is_integer, trimmed.values())):
        return _as_array(column, {one: int(text) for one, text in trimmed.items()}, np.int64)
    if role != NUMBER:
        is_code = any(map(_CODE.fullmatch, trimmed.values()))
        is_long = role == LABEL and any(map(_LONG_INTEGER.fullmatch, trimmed.values()))
        are_floats &= not (is_code or is_long)
    if role == NAME:
        is_long = any(len(one) > LONGEST_NUMBER for one in texts)
        are_floats &= not is_long and len({*trimmed.values()}) == len({*floats.values()})
    if are_floats and (texts or role == NUMBER):
        return _as_array(column, floats | {None: np.nan}, np.float64)
    truths = {one: _TRUTHS.get(text.lower()) for one, text in trimmed.items()}
    if texts and role != NUMBER and None not in truths.values():
        return _as_array(column, truths, np.bool_)
    return column


def _as_float(text: str) -> float | None:
    """Return the number that a text is; None if it is none, or no real one."""
    found = _FLOAT.fullmatch(text)
    return None if found is None else float(found[1].removeprefix("+"))


def _is_integer(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and -_LARGEST <= int(text) < _LARGEST


def _as_array(column: list[str | None], values: Mapping[Any, Any], kind: type) -> Column:
    """Return the values of texts; as an array unless one is missing, for which it has no value."""
    found = [*map(values.get, column)]
    return found if None in values.values() or None in found else np.array(found, kind)
