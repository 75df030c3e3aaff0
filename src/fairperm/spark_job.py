"""An audit as a Spark job: ``python -m fairperm.spark_job --config audit.toml``.

``spark-submit`` runs it too, by the path of this file.

The file says what to read, what to ask (the arguments of :func:`fairperm.audit`) and where to
write::

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

Everything is made before anything is written, and every file is written whole or not at all. The
job ends with 0, or with 2 and one sentence that says what is wrong.
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairperm._utils.files import read_toml, write_whole
from fairperm.auditing.audit import audit
from fairperm.data.lazy.backends import stage
from fairperm.errors import (
    FairpermError,
    InputError,
    InputTypeError,
    did_you_mean,
    listed,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairperm.auditing.result import Audit

__all__ = ["main", "run"]

_INPUT = ("table", "path", "format", "where")
_OUTPUT = ("json", "report", "table")
_AUDIT = tuple(name for name in inspect.signature(audit).parameters if name != "data")
_MAY_BE_NONE = ("adjust", "variance")  # TOML has no word for None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job that a file describes, in the session of ``spark-submit`` or a new one."""
    parser = argparse.ArgumentParser(
        prog="python -m fairperm.spark_job", description="Audit a table with Spark."
    )
    parser.add_argument("--config", required=True, help="TOML: [input], [audit] and [output]")
    try:
        config = read_toml(Path(parser.parse_args(arguments).config))
        session, is_mine = _session()
        try:
            found = run(config, session)
        finally:
            if is_mine:
                session.stop()
    except FairpermError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(found)
    return 0


def run(config: Mapping[str, Any], session: Any) -> Audit:
    """Run the job of these settings in a Spark session; return what it has written."""
    parts = _checked(config)
    outputs = _outputs(parts["output"])
    asked = dict(parts["audit"])
    for name in _MAY_BE_NONE:
        if asked.get(name) == "none":
            asked[name] = None
    for name in ("y_true", "sensitive_features", "metrics"):
        if name not in asked:
            raise InputTypeError(f"audit.{name}", "given", None)
    found = audit(asked.pop("y_true"), data=_rows(parts["input"], session), **asked)
    source = {key: shown(value) for key, value in parts["input"].items()}
    made = {name: _made(name, found, source) for name in outputs}
    for name, content in made.items():
        write_whole(outputs[name], content)
    return found


def _session() -> tuple[Any, bool]:
    """Return a session, and whether it is ours to stop."""
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        hint = "pip install 'fairperm[spark]', or run it by spark-submit."
        raise InputError(f"pyspark must be installed; got none. {hint}") from error
    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    with stage("starting Spark", None):
        return SparkSession.builder.appName("fairperm").getOrCreate(), True


def _checked(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the three tables; say so if something is not known, or not there."""
    known = {"input": _INPUT, "audit": _AUDIT, "output": _OUTPUT}
    _check_known("config", config, tuple(known))
    for name, keys in known.items():
        part = config.get(name)
        if not isinstance(part, dict) or not part:
            raise InputError(name, f"a table of the config, [{name}]", part)
        _check_known(name, part, keys)
    return {name: dict(config[name]) for name in known}


def _check_known(where: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            rule = f"made of {listed(known, most=30)}"
            raise InputError(where, rule, key, did_you_mean(key, known))


def _outputs(given: Mapping[str, Any]) -> dict[str, Path]:
    """Return where to write what, each to a file of its own."""
    found = {name: _local(f"output.{name}", one) for name, one in given.items()}
    if len({path.resolve() for path in found.values()}) < len(found):
        raise InputError("output", "made of different files", list(given.values()))
    return found


def _local(name: str, given: object) -> Path:
    """Return where to write, if that can be done: asked before the cluster starts to work."""
    if not isinstance(given, str) or not given:
        raise InputTypeError(name, "the name of a file", given)
    if "://" in given:
        hint = "Write it to the driver's disk and copy it from there."
        raise InputError(name, "a file on the driver's own disk", given, hint)
    path = Path(given)
    if not path.parent.is_dir():
        raise InputError(name, "in a folder that exists", given)
    if path.is_dir():
        raise InputError(name, "the name of a file, not of a folder", given)
    if (path.is_file() or not path.exists()) and not os.access(path.parent, os.W_OK):
        raise InputError(name, "in a folder that can be written to", given)
    return path


def _rows(given: Mapping[str, Any], session: Any) -> Any:
    """Return the rows to be audited, none of which is read yet."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise InputTypeError(f"input.{name}", "a string", value)
    if ("table" in given) == ("path" in given):
        raise InputError("input", "made of either a table or a path", sorted(given))
    if "table" in given and "format" in given:
        raise InputError("input.format", "left out for a table", given["format"])
    with stage(f"opening {shown(given.get('table') or given.get('path'))}", None):
        if "table" in given:
            rows = session.table(given["table"])
        else:
            rows = session.read.format(given.get("format", "parquet")).load(given["path"])
        return rows.where(given["where"]) if "where" in given else rows


def _made(name: str, found: Audit, source: Mapping[str, str]) -> str | bytes:
    """Return what goes into an output."""
    if name == "json":
        plain = found.to_dict() | {"input": dict(source)}
        return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
    if name == "report":
        return found.to_html(provenance=source)
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(found.to_frame("pyarrow"), file)
    return file.getvalue()


if __name__ == "__main__":
    sys.exit(main())
