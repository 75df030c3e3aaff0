"""An audit as a Spark job: ``python -m fairperm.spark_job --config audit.toml``.

``spark-submit`` runs it too, by the path of this file.

The file has the input, the arguments of :func:`fairperm.audit` and the outputs::

    [input]
    table = "lending.scored"        # or: path = "hdfs:///scored", format = "parquet"
    where = "year = 2026"           # optional, in SQL

    [audit]
    y_true = "repaid"
    y_score = "score"
    sensitive_features = ["sex", "region"]
    metrics = ["selection_rate", "false_negative_rate", "roc_auc"]
    rng = 1

    [output]
    json = "audit.json"
    report = "audit.html"
    table = "audit.parquet"

All outputs are made before the first is written, and every file is written whole or not at all.
The exit code is 0, or 2 with one sentence about the error.
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairperm._utils.files import read_toml, write_whole
from fairperm._utils.optional import optional
from fairperm.auditing.audit import audit
from fairperm.auditing.result import Audit
from fairperm.data.lazy.backends import stage
from fairperm.errors import (
    FairpermError,
    InputError,
    InputTypeError,
    Shown,
    did_you_mean,
    listed,
    shown,
)

__all__ = ["main", "run"]

_INPUT = ("table", "path", "format", "where")
_OUTPUT = ("json", "report", "table")
_AUDIT = tuple(name for name in inspect.signature(audit).parameters if name != "data")
# Calls of Java methods, also by a name that IDENTIFIER('ref' || 'lect') makes; and subqueries,
# which read other tables and run scripts (TRANSFORM … USING). Words in quotes count too: a check
# that tried to tell them apart could be deceived.
_SPACE = r"(?:\s|/\*.*?\*/|--.*?\n)*"
_NO_CONDITION = re.compile(
    r"\b(?:(?:try_)?reflect|java_method|select|using)\b"
    rf"|\bidentifier{_SPACE}\(|\({_SPACE}(?:from|table|values|with)\b",
    re.IGNORECASE | re.DOTALL,
)
_MAY_BE_NONE = ("adjust", "variance")  # TOML has no word for None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job of a config file, in the session of ``spark-submit`` or a new one."""
    parser = argparse.ArgumentParser(
        prog="python -m fairperm.spark_job", description="Audit a table with Spark."
    )
    parser.add_argument("--config", required=True, help="TOML: [input], [audit] and [output]")
    try:
        config = read_toml(Path(parser.parse_args(arguments).config))
        session, is_new = _open_session()
        try:
            result = run(config, session)
        finally:
            if is_new:
                session.stop()
    except FairpermError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(result)
    return 0


def run(config: Mapping[str, Any], session: Any) -> Audit:
    """Run the job of these settings in a Spark session, and return the audit."""
    _check_config(config)
    paths = _find_outputs(config["output"])
    arguments: dict[str, Any] = {
        name: None if name in _MAY_BE_NONE and value == "none" else value
        for name, value in config["audit"].items()
    }
    if "sensitive_features" not in arguments:
        raise InputTypeError("audit.sensitive_features", "given", None)
    result = audit(data=_open_rows(config["input"], session), **arguments)
    source = {key: shown(value) for key, value in config["input"].items()}
    contents = {name: _make_output(name, result, source) for name in paths}
    for name, content in contents.items():
        write_whole(paths[name], content)
    return result


def _open_session() -> tuple[Any, bool]:
    """Return a session, and whether it is new."""
    with optional("A job on Spark"):
        from pyspark.sql import SparkSession
    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    with stage("starting Spark", None):
        return SparkSession.builder.appName("fairperm").getOrCreate(), True


def _check_config(config: Mapping[str, Any]) -> None:
    """Raise InputError for unknown keys and missing tables."""
    known = {"input": _INPUT, "audit": _AUDIT, "output": _OUTPUT}
    _check_known("config", config, tuple(known))
    for name, keys in known.items():
        part = config.get(name)
        if not isinstance(part, dict) or not part:
            raise InputError(name, f"a table of the config, [{name}]", part)
        _check_known(name, part, keys)


def _check_known(where: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            rule = f"made of {listed(known, most=30)}"
            raise InputError(where, rule, key, did_you_mean(key, known))


def _find_outputs(given: Mapping[str, Any]) -> dict[str, Path]:
    """Return the paths of the outputs, which must differ."""
    paths = {name: _check_path(f"output.{name}", one) for name, one in given.items()}
    if len({path.resolve() for path in paths.values()}) < len(paths):
        raise InputError("output", "made of different files", list(given.values()))
    return paths


def _check_path(name: str, given: object) -> Path:
    """Return the path of an output. Raises InputError, before any work, if it cannot be written."""
    if not isinstance(given, str) or not given:
        raise InputTypeError(name, "the name of a file", given)
    if "://" in given:
        hint = "Write it to the driver's disk, and copy it from there."
        raise InputError(name, "a file on the driver's own disk", given, hint)
    path = Path(given)
    if not path.parent.is_dir():
        raise InputError(name, "in a folder that exists", given)
    if path.is_dir():
        raise InputError(name, "the name of a file, not of a folder", given)
    if (path.is_file() or not path.exists()) and not os.access(path.parent, os.W_OK):
        raise InputError(name, "in a folder that can be written to", given)
    return path


def _open_rows(given: Mapping[str, Any], session: Any) -> Any:
    """Return the rows to audit as a lazy Spark frame."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise InputTypeError(f"input.{name}", "a string", value)
    if ("table" in given) == ("path" in given):
        raise InputError("input", "made of either a table or a path", sorted(given))
    if "table" in given and "format" in given:
        raise InputError("input.format cannot be used with input.table: a table knows its format.")
    with stage(f"opening {shown(given.get('table') or given.get('path'))}", None):
        if "table" in given:
            rows = session.table(given["table"])
        else:
            rows = session.read.format(given.get("format", "parquet")).load(given["path"])
        return rows.where(_check_where(given["where"])) if "where" in given else rows


def _check_where(condition: str) -> str:
    """Return the condition. Raises InputError if it may run programs or read other tables."""
    if found := _NO_CONDITION.search(condition):
        rule = "a condition on columns, without subqueries and methods of Java"
        raise InputError("input.where", rule, Shown(shown(found[0])))
    return condition


def _make_output(name: str, result: Audit, source: Mapping[str, str]) -> str | bytes:
    """Return the content of an output."""
    if name == "json":
        plain = result.to_dict() | {"input": dict(source)}
        return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
    if name == "report":
        return result.to_html(provenance=source)
    with optional("A Parquet file"):
        import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(result.to_frame("pyarrow"), file)
    return file.getvalue()


if __name__ == "__main__":
    sys.exit(main())
