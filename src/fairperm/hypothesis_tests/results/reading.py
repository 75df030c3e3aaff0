"""Results and audits read back from the JSON-ready values that they were written as."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from fairperm.hypothesis_tests.results.audits import (
    AuditData,
    AuditRow,
    GroupSummary,
    OmnibusRow,
    RowCounts,
    Spread,
)
from fairperm.hypothesis_tests.results.changes import GapChange, GroupChange, ModelComparisonResult
from fairperm.hypothesis_tests.results.gaps import BY_GROUP, PermutationTestResult
from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
from fairperm.hypothesis_tests.results.proxies import ProxyTestResult

_Audit = TypeVar("_Audit", bound=AuditData)
_Result = TypeVar("_Result", PermutationTestResult, ModelComparisonResult, OmnibusTestResult)
_NOT_WRITTEN: dict[str, Any] = {
    "null_distribution": np.empty(0),
    "null_probabilities": np.empty(0),
}
_INFINITE = {"Infinity": math.inf, "-Infinity": -math.inf}


def read_audit(kind: type[_Audit], plain: Mapping[str, Any]) -> _Audit:
    """Return an audit from what its ``to_dict()`` returned; null distributions are empty."""
    if not all(map(str.isidentifier, plain["settings"])):  # a report writes them as Python code
        raise ValueError("settings must be arguments")
    known = {part.name for part in fields(kind)}
    values = {name: one for name, one in plain.items() if name in known}
    values["notes"] = tuple(plain["notes"])
    values["rows"] = tuple(map(_read_row, plain["rows"]))
    values["omnibus"] = tuple(map(_read_omnibus, plain["omnibus"]))
    values["groups"] = tuple(
        GroupSummary(**{**one, "group": _read_group(one["group"])}) for one in plain["groups"]
    )
    values["row_counts"] = tuple(RowCounts(**one) for one in plain["row_counts"])
    return kind(**values)


def _read_row(plain: Mapping[str, Any]) -> AuditRow:
    unread = {"answer", "test", "change"}
    values = {name: _read_numbers(one) for name, one in plain.items() if name not in unread}
    values["groups"] = _read_group(plain["groups"])
    if "change" in plain:
        values["change"] = _read_change(plain["change"])
    of_proxies = "proxy_assumption" in (plain["test"] or {})
    kind = ProxyTestResult if of_proxies else PermutationTestResult
    return AuditRow(result=_read_test(kind, plain["test"]), **values)


def _read_change(plain: Mapping[str, Any]) -> GapChange:
    values = {
        name: _read_numbers(one) for name, one in plain.items() if name not in {"answer", "test"}
    }
    result = _read_test(ModelComparisonResult, plain["test"])
    if result is not None:
        changes = {group: _read_group_change(one) for group, one in result.group_changes.items()}
        result = replace(result, group_changes=changes)
    return GapChange(result=result, **values)


def _read_group_change(plain: Mapping[str, Any]) -> Any:
    """Return the change of a group; of a joint metric, by the names of its parts."""
    if any(isinstance(one, dict) for one in plain.values()):
        return {name: GroupChange(**one) for name, one in plain.items()}
    return GroupChange(**plain)


def _read_omnibus(plain: Mapping[str, Any]) -> OmnibusRow:
    values = {name: one for name, one in plain.items() if name != "test"}
    if (spread := plain["spread"]) is not None:
        numbers = {name: _read_numbers(one) for name, one in spread.items()}
        values["spread"] = Spread(**numbers | {"groups": _read_group(spread["groups"])})
    return OmnibusRow(result=_read_test(OmnibusTestResult, plain["test"]), **values)


def _read_test(kind: type[_Result], plain: Mapping[str, Any] | None) -> _Result | None:
    if plain is None:
        return None
    groups = tuple(map(_read_group, plain["groups"]))
    values: dict[str, Any] = {}
    for part in fields(kind):
        name = part.name
        if name not in plain:
            values |= {name: _NOT_WRITTEN[name]} if name in _NOT_WRITTEN else {}
        elif name == "groups":
            values[name] = groups
        elif name in BY_GROUP and plain[name] is not None:
            read = (_read_numbers(one, missing=math.nan) for one in plain[name])
            values[name] = dict(zip(groups, read, strict=True))
        else:
            missing = math.nan if part.type in {"float", "tuple[float, float]"} else None
            values[name] = _read_numbers(plain[name], missing)
    return kind(**values)


def _read_numbers(value: Any, missing: float | None = None) -> Any:
    """Return a value with its infinite and missing numbers, and tuples in place of lists."""
    if isinstance(value, dict):
        return {name: _read_numbers(one, missing) for name, one in value.items()}
    if isinstance(value, list):
        return tuple(_read_numbers(one, missing) for one in value)
    return missing if value is None else _INFINITE.get(value, value)


def _read_group(group: Any) -> Hashable:
    """Return a group, which of several attributes is a tuple."""
    return tuple(map(_read_group, group)) if isinstance(group, list) else group
