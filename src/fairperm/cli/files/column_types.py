"""What the columns' values are: numbers, truths or text. Text files do not say; they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairperm.cli.files.sql import literal
from fairperm.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Scores and weights are numbers however they are written. Labels with leading zeros are codes,
# not numbers; and groups, strata and clusters with more digits than a float holds are names.
NUMBER, LABEL, NAME = "number", "label", "name"
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_AS_THEY_ARE = (*_INTEGERS, "UBIGINT", "BOOLEAN", "FLOAT", "DOUBLE", "VARCHAR", "DATE")


def present(field: str, missing: Sequence[str]) -> str:
    """Return SQL for a text that is NULL where it is one of the words for a missing value."""
    words = ", ".join(literal(word) for word in missing)
    return f"(CASE WHEN {field} IN ({words}) THEN NULL ELSE {field} END)" if missing else field


def text_types(
    connection: Any,
    source: str,
    fields: Mapping[str, str],
    missing: Sequence[str],
    decimal: str,
) -> dict[str, str]:
    """Return SQL for each column of a text file, by what all of its values look like.

    ``fields`` has the column's SQL for its role: every value is looked at, not a sample.
    Numbers are written with the ``decimal`` mark.
    """
    if not fields:
        return {}
    counts, values = [], []
    for i, (one, role) in enumerate(fields.items()):
        value, number = f"v{i}", f"d{i}"
        values += [
            f"{_written(present(one, missing), role, decimal)} AS {value}",
            f"TRY_CAST({value} AS DOUBLE) AS {number}",  # NULL where it is no number
        ]
        integer = f"trim({value}) = CAST(TRY_CAST({value} AS BIGINT) AS VARCHAR)"
        zeros = f"regexp_full_match(ltrim(trim({value}), '+-'), '0[0-9].*')"
        counts += [
            f"count({value})",
            f"count_if(NOT isnan({number}) AND NOT contains({value}, '_'))",
            f"count_if(CASE WHEN {number} = floor({number}) THEN {integer} ELSE false END)",
            f"count_if(CASE WHEN starts_with(ltrim({value}, ' +-'), '0') THEN {zeros} END)",
            f"count_if(length({value}) > 16)" if role == NAME else "0",
            f"count_if(CASE WHEN {number} IS NULL THEN {_is_truth(value)} END)",
        ]
    row = connection.execute(
        f"SELECT {', '.join(counts)} FROM (SELECT {', '.join(values)} FROM {source})"
    ).fetchall()[0]
    found = {}
    for i, (one, role) in enumerate(fields.items()):
        known, numbers, integers, codes, long, truths = (
            int(n or 0) for n in row[6 * i : 6 * i + 6]
        )
        value = present(one, missing)
        number = _written(value, role, decimal)
        is_code = (codes > 0 and role != NUMBER) or long > 0
        if known and integers == known:
            found[one] = f"CAST(trim({number}) AS BIGINT)"
        elif known and numbers == known and not is_code:
            found[one] = f"CAST(trim({number}) AS DOUBLE)"
        elif known and truths == known and role != NUMBER:
            found[one] = f"CAST(trim({value}) AS BOOLEAN)"
        else:
            found[one] = value
    return found


def _written(value: str, role: str, decimal: str) -> str:
    """Return SQL for a number as SQL writes it. A dot among decimal commas makes it none."""
    return f"translate({value}, ',.', '.,')" if role == NUMBER and decimal == "," else value


def _is_truth(value: str) -> str:
    return f"lower(trim({value})) IN ('true', 'false')"


def is_number(kind: str) -> bool:
    """Tell whether values of this type are numbers."""
    return kind in {*_INTEGERS, "UBIGINT", "FLOAT", "DOUBLE", "HUGEINT", "UHUGEINT"} or (
        kind.startswith("DECIMAL")
    )


def plain(option: str, name: str, kind: str, field: str) -> str:
    """Return SQL for a column in a type that the tests understand."""
    if kind in _AS_THEY_ARE or kind.startswith("TIMESTAMP"):
        return field
    if kind.startswith("DECIMAL") or kind in {"REAL", "HUGEINT", "UHUGEINT", "BIGNUM"}:
        return f"CAST({field} AS DOUBLE)"
    if kind.startswith("ENUM") or kind in {"UUID", "TIME", "INTERVAL"}:
        return f"CAST({field} AS VARCHAR)"
    if kind in {'"NULL"', "NULL"}:
        return f"CAST({field} AS BIGINT)"
    if kind == "JSON":
        raise InputError(
            f"{option} must hold values of one kind; column {shown(name)} holds several."
        )
    raise InputError(
        f"{option} must be made of numbers, truth values or text; column {shown(name)} is of type "
        f"{shown(kind)}."
    )
