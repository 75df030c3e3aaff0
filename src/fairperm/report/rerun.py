"""The call that makes an audit again, as code that can be pasted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairperm.metrics.definition import NEW
from fairperm.metrics.registry import find_named
from fairperm.plots.parts import wrap_parts

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.audits import AuditData

_COLUMNS = (
    *("query", "control_features", "stratum_weights", "cluster", "matched", "names"),
    *("sample_weight", "count", "group_probabilities", "proxy"),
)
_LINE = 84  # characters
_NONE = object()


def write_call(audit: AuditData, defaults: Mapping[str, object] | None = None) -> str:
    """Return Python code with every argument of the audit that is not its default."""
    # Columns of `data` are named. Data that were passed as they are, and functions, are variables
    # of the arguments' names, which the reader sets first.
    settings = dict(audit.settings)
    names, attributes = settings.pop("metrics"), settings.pop("attributes")
    combined = settings.pop("combinations", None) or {}
    for name in ("distances_of", "rankings_of"):
        settings.pop(name, None)
    are_known = all(map(find_named, names))
    columns = ("y_true", "y_pred", "y_score", "y_pred_new", "y_score_new")
    given = {name: settings.get(name) for name in columns}
    arguments = {name: repr(one) for name, one in given.items() if one is not None}
    in_data = bool(arguments)
    if not in_data:
        arguments = {name: name for name in find_used_columns(audit)}
    if settings.pop("intersections"):
        attributes = [name for name in attributes if " × " not in name]
        arguments["intersections"] = "True"
    arguments |= {
        "sensitive_features": repr(
            [tuple(combined[name]) if name in combined else name for name in attributes]
        )
        if in_data
        else "sensitive_features",
        **({"metrics": repr(names) if are_known else "metrics"} if names else {}),
        **({"data": "data"} if in_data else {}),
        "compare": repr(audit.compare),
        "adjust": repr(audit.adjust),
        "variance": repr(settings.pop("variance")),
        "alpha": repr(audit.alpha),
        "min_group_size": repr(audit.min_group_size),
        "group_size_by": repr(audit.group_size_by),
        **({"family": repr("attribute")} if audit.families else {}),
    }
    for name, value in settings.items():
        if name not in columns and value is not None:
            is_variable = name in _COLUMNS and not (in_data and _is_name(value))
            arguments[name] = name if is_variable else repr(value)
    if "group_probabilities" in arguments:
        del arguments["sensitive_features"]
    arguments["rng"] = repr(audit.seed)
    return f"import fairperm\n\n{_write_arguments('audit', arguments, defaults or {})}"


def write_script(
    function: str,
    arguments: Mapping[str, object],
    defaults: Mapping[str, object],
    path: str,
    reading: Mapping[str, Any],
) -> str:
    """Return Python code that reads a file with pandas, and calls a function of the library.

    ``reading`` has the format of the file, and how it is read, as options of the command line.
    """
    texts = {name: repr(one) for name, one in arguments.items()} | {"data": "data"}
    call = _write_arguments(function, texts, defaults)
    read = _write_reading(path, **reading)
    return f"import fairperm\nimport pandas\n\ndata = {read}\n{call}"


def _write_reading(
    path: str,
    *,
    format: str,  # noqa: A002
    table: str | None = None,
    skip: int = 0,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
    na: Sequence[str] = (),
) -> str:
    options: dict[str, object] = {"skiprows": skip, "na_values": [*na]}
    if format == "xlsx":
        options |= {"sheet_name": table}
    else:
        options |= {"sep": delimiter, "encoding": encoding}
    options["decimal"] = None if decimal == "." else decimal
    name = {"xlsx": "read_excel", "tsv": "read_csv"}.get(format, f"read_{format}")
    if format == "jsonl":
        name, options = "read_json", {"lines": True}
    elif format not in {"xlsx", "csv", "tsv"}:
        options = {}
    given = [f"{one}={value!r}" for one, value in options.items() if value]
    return f"pandas.{name}({', '.join([repr(path), *given])})"


def _write_arguments(
    function: str, arguments: Mapping[str, str], defaults: Mapping[str, object]
) -> str:
    """Return a call with every argument that is not its default."""
    given = (f"{x}={one}," for x, one in arguments.items() if one != repr(defaults.get(x, _NONE)))
    lines = "\n".join(f"    {line}" for line in wrap_parts(given, _LINE))
    return f"fairperm.{function}(\n{lines}\n)"


def find_used_columns(audit: AuditData) -> list[str]:
    """Return the arguments that the metrics of the audit use."""
    found = [*filter(None, map(find_named, audit.settings["metrics"]))]
    used = {column for metric in found for column in metric.columns}
    for name in ("distances_of", "rankings_of"):
        used |= set(audit.settings.get(name) or ())
    used |= {"y_true", "y_pred"} if len(found) < len(audit.settings["metrics"]) else set()

    def of_model(suffix: str) -> list[str]:
        is_cut = audit.settings[f"threshold{suffix}"] is not None
        columns = used - {"y_pred"} | {"y_score"} if is_cut else used
        return [name + suffix for name in ("y_pred", "y_score") if name in columns]

    labels = [name for name in ("y_true",) if name in used]
    return [*labels, *of_model(""), *(of_model(NEW) if audit.compares_models else [])]


def _is_name(value: Any) -> bool:
    """Whether a value names columns; what holds data is described by its size."""
    if isinstance(value, Mapping):
        return all(map(_is_name, value.values()))
    names = value if isinstance(value, list) else [value]
    return all(isinstance(one, str) and " values (" not in one for one in names)
