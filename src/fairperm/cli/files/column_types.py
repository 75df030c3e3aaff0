"""The types of columns: numbers, booleans or text. In text files the values decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairperm.cli.files.sql import quote_text
from fairperm.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Roles: scores and weights are numbers however they are written. Labels with leading zeros are
# codes, not numbers; and groups, strata and clusters with more digits than a float has are names.
NUMBER, LABEL, NAME = "number", "label", "name"
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_PLAIN = (*_INTEGERS, "UBIGINT", "BOOLEAN", "FLOAT", "DOUBLE", "VARCHAR", "DATE")


def null_if_missing(field: str, missing: Sequence[str]) -> str:
    """Return SQL for a text that is NULL if it is one of the words for a missing value."""
    words = ", ".join(quote_text(word) for word in missing)
    return f"(CASE WHEN {field} IN ({words}) THEN NULL ELSE {field} END)" if missing else field


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
            f"count_if(length({value}) > 16)" if role == NAME else "0",
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
        if known and integers == known:
            found[one] = f"CAST(trim({number}) AS BIGINT)"
        elif known and numbers == known and not is_code:
            found[one] = f"CAST(trim({number}) AS DOUBLE)"
        elif known and booleans == known and role != NUMBER:
            found[one] = f"CAST(trim({value}) AS BOOLEAN)"
        elif not known and role == NUMBER:
            found[one] = f"CAST({value} AS DOUBLE)"
        else:
            found[one] = value
    return found


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
        hint = "Pass --decimal ',' for decimal commas." if decimal == "." and "," in wrong else ""
        raise InputError(called, "made of real numbers", wrong, hint)


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


def cast_to_plain(option: str, name: str, kind: str, field: str) -> str:
    """Return SQL that casts a column to a type that the tests accept."""
    if kind in _PLAIN or kind.startswith("TIMESTAMP"):
        return field
    if kind.startswith("DECIMAL") or kind in {"REAL", "HUGEINT", "UHUGEINT", "BIGNUM"}:
        return f"CAST({field} AS DOUBLE)"
    if kind.startswith("ENUM") or kind in {"UUID", "TIME", "INTERVAL"}:
        return f"CAST({field} AS VARCHAR)"
    if kind in {'"NULL"', "NULL"}:
        return f"CAST({field} AS BIGINT)"
    if kind == "JSON":
        raise InputError(
            f"{option} must have values of one type; column {shown(name)} has several."
        )
    raise InputError(
        f"{option} must be made of numbers, booleans or text; column {shown(name)} has the type "
        f"{shown(kind)}."
    )
