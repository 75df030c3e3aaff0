"""The types of columns: numbers, booleans or text. In text files the values decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairperm.cli.files.sql import quote_text
from fairperm.errors import InputError, shown

# Roles: scores and weights are numbers however they are written. Labels with leading zeros are
# codes, not numbers. Groups, strata and clusters are names unless each of them is another number:
# "1.1" and "1.10" are two names.
NUMBER, LABEL, NAME = "number", "label", "name"
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
LONGEST_NUMBER = 16  # characters of names that are numbers
_TOO_LONG = {  # for a float: names, and labels that are no integers of 64 bits
    NAME: f"count_if(length({{0}}) > {LONGEST_NUMBER})",
    LABEL: "count_if(regexp_full_match(trim({0}), '[+-]?[0-9]{{17,}}'))",
}
_LARGE = ("HUGEINT", "UHUGEINT", "BIGNUM")
_PLAIN = (*_INTEGERS, "UBIGINT", "BOOLEAN", "FLOAT", "DOUBLE", "VARCHAR", "DATE")


def null_if_missing(field: str, missing: Sequence[str]) -> str:
    """Return SQL for a text that is NULL if it is one of the words for a missing value."""
    # DuckDB makes a join of IN, and planning those of 100 columns takes it seconds
    words = ", ".join(quote_text(word) for word in missing)
    is_missing = f"array_position([{words}], {field}) > 0"
    return f"(CASE WHEN {is_missing} THEN NULL ELSE {field} END)" if missing else field


def infer_types(
    connection: Any,
    source: str,
    fields: Mapping[str, str],
    missing: Sequence[str],
    decimal: str,
) -> dict[str, str]:
    """Return SQL that casts each column of a text file to the type of all of its values.

    ``fields`` are the roles of columns by their SQL; numbers have this ``decimal`` mark.
    """
    if not fields:
        return {}
    counts, values = [], []
    for i, (one, role) in enumerate(fields.items()):
        value, number = f"v{i}", f"d{i}"
        values += [
            f"{_with_dot(null_if_missing(one, missing), role, decimal)} AS {value}",
            f"TRY_CAST({value} AS DOUBLE) AS {number}",  # NULL if it is not a number
        ]
        integer = f"trim({value}) = CAST(TRY_CAST({value} AS BIGINT) AS VARCHAR)"
        zeros = f"regexp_full_match(ltrim(trim({value}), '+-'), '0[0-9].*')"
        counts += [
            f"count({value})",
            f"count_if(NOT isnan({number}) AND NOT contains({value}, '_'))",
            f"count_if(CASE WHEN {number} = floor({number}) THEN {integer} ELSE false END)",
            f"count_if(CASE WHEN starts_with(ltrim({value}, ' +-'), '0') THEN {zeros} END)",
            _TOO_LONG.get(role, "0").format(value),
            f"count_if(CASE WHEN {number} IS NULL THEN {_is_boolean(value)} END)",
        ]
    row = connection.execute(
        f"SELECT {', '.join(counts)} FROM (SELECT {', '.join(values)} FROM {source})"
    ).fetchall()[0]
    found = {}
    for i, (one, role) in enumerate(fields.items()):
        known, numbers, integers, codes, long, booleans = (
            int(n or 0) for n in row[6 * i : 6 * i + 6]
        )
        value = null_if_missing(one, missing)
        number = _with_dot(value, role, decimal)
        is_code = (codes > 0 and role != NUMBER) or long > 0
        is_double = known > 0 and numbers == known and not is_code
        if known and integers == known:
            found[one] = f"CAST(trim({number}) AS BIGINT)"
        elif is_double and (role != NAME or are_distinct(connection, source, f"trim({value})")):
            found[one] = f"CAST(trim({number}) AS DOUBLE)"
        elif known and booleans == known and role != NUMBER:
            found[one] = f"CAST(trim({value}) AS BOOLEAN)"
        elif not known and role == NUMBER:
            found[one] = f"CAST({value} AS DOUBLE)"
        else:
            found[one] = value
    return found


def are_distinct(connection: Any, source: str, value: str) -> bool:
    """Whether different values are different numbers in double precision."""
    different, numbers = connection.execute(
        f"SELECT count(DISTINCT {value}), count(DISTINCT CAST({value} AS DOUBLE)) FROM {source}"
    ).fetchall()[0]
    return bool(different == numbers)


def check_numbers(
    connection: Any,
    source: str,
    field: str,
    missing: Sequence[str],
    decimal: str,
    *,
    called: str,
) -> None:
    """Raise InputError, under the name ``called``, if a column of a text file has other values."""
    value = null_if_missing(field, missing)
    number = f"TRY_CAST({_with_dot(value, NUMBER, decimal)} AS DOUBLE)"
    is_number = f"coalesce(NOT isnan({number}) AND NOT contains({value}, '_'), false)"
    (wrong,) = connection.execute(
        f"SELECT min({value}) FROM {source} WHERE NOT {is_number}"
    ).fetchall()[0]
    if wrong is not None:
        raise not_real(called, wrong, decimal)


def not_real(called: str, wrong: str, decimal: str) -> InputError:
    """Return the error for a text in a column of numbers."""
    hint = "Pass --decimal ',' for decimal commas." if decimal == "." and "," in wrong else ""
    return InputError(called, "made of real numbers", wrong, hint)


def _with_dot(value: str, role: str, decimal: str) -> str:
    """Return SQL for a number with a decimal dot; a dot among decimal commas is an error."""
    return f"translate({value}, ',.', '.,')" if role == NUMBER and decimal == "," else value


def _is_boolean(value: str) -> str:
    return f"lower(trim({value})) IN ('true', 'false')"


def is_number(kind: str) -> bool:
    """Return whether a type of DuckDB is numeric."""
    return kind in {*_INTEGERS, "UBIGINT", "FLOAT", "DOUBLE", "HUGEINT", "UHUGEINT"} or (
        kind.startswith("DECIMAL")
    )


def cast_to_plain(
    connection: Any, source: str, field: str, kind: str, *, role: str, called: str
) -> str:
    """Return SQL that casts a column to a type that the tests accept.

    Raises InputError, under the name ``called``, without one, and if it would round integers.
    """
    if kind in _PLAIN or kind.startswith("TIMESTAMP"):
        return field
    if kind.startswith("DECIMAL") or kind in {"REAL", *_LARGE}:
        if role == NAME and not are_distinct(connection, source, field):
            return f"CAST({field} AS VARCHAR)"
        if role != NAME and kind in _LARGE:
            _check_exact(connection, source, field, called)
        return f"CAST({field} AS DOUBLE)"
    if kind.startswith("ENUM") or kind in {"UUID", "TIME", "INTERVAL"}:
        return f"CAST({field} AS VARCHAR)"
    if kind in {'"NULL"', "NULL"}:
        return f"CAST({field} AS BIGINT)"
    if kind == "JSON":
        raise InputError(f"{called} must have values of one type; it has several.")
    raise InputError(
        f"{called} must be made of numbers, booleans or text; it has the type {shown(kind)}."
    )


def _check_exact(connection: Any, source: str, field: str, called: str) -> None:
    """Raise InputError for integers that a float may not hold."""
    (wrong,) = connection.execute(
        f"SELECT any_value({field}) FROM {source} WHERE abs(CAST({field} AS DOUBLE)) > {2**53}"
    ).fetchall()[0]
    if wrong is not None:
        hint = "Subtract a common offset; or CAST to DOUBLE by --sql if rounding does not matter."
        raise InputError(called, "made of integers up to 2**53", int(wrong), hint)
