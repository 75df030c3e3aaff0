"""``fairperm monitor``: add a batch to a monitor whose state is a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.core import ParameterSource

from fairperm._utils.files import hold_lock, read_limited, write_whole
from fairperm.cli.command import command
from fairperm.cli.options import convert_values
from fairperm.cli.running import Run, print_failed
from fairperm.cli.terminal import print_error, write_message
from fairperm.errors import InputError, shown

if TYPE_CHECKING:
    import click

    from fairperm import Monitor
    from fairperm.cli.files.loading import LoadedData

_MAX_STATE_BYTES = 1 << 30


@command(
    "monitor",
    "files state batch label prediction score@monitor threshold group@one metric@monitor "
    "margin@monitor fail_on@monitor report",
    "known_group reference@monitor bounds count alpha@monitor seed READING json quiet config debug",
    example="fairperm monitor today.csv --state monitor.json --batch 2026-03-01 \\\n"
    "    --label repaid --prediction approved --group sex --metric fpr",
)
def monitor(ctx: click.Context) -> int:
    """Add a batch and test the gaps, as often as you like: looking costs no false alarms.

    The first batch needs the columns and metrics; later ones may leave them out. Rows count once
    their labels are known.
    """
    run = Run(ctx)
    run.need(state=": the file of what is known so far", batch=", such as 2026-03-01")
    path, batch = Path(run.given["state"]), _read_batch(run.given["batch"])
    asked = _list_asked(run)
    with hold_lock(path):
        found = _open(path, asked)
        given = {**run.given, **_columns_of(found)}
        loaded = run.use(_read(given, found, keeps_hashes=run.keeps_hashes))
        if batch == found.last_batch:
            print_error(f"fairperm: note: batch {shown(batch)} has been counted; nothing is added.")
        else:
            with loaded.clear_errors():
                found.update(_as_frame(loaded, given["group"]), batch=batch)
            write_whole(path, json.dumps(found.state, allow_nan=False))
        # inside the lock: outputs of two runs do not overtake each other
        settings = run.settings(**_columns_of(found), **_settings_of(found))
        run.report(found, settings)
        run.write(found.to_dict, settings)
    run.say(repr(found), None)
    return _report_failures(found, run.given["fail_on"])


def _read_batch(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


def _list_asked(run: Run) -> dict[str, Any]:
    """Return the arguments that the user gave: the state has all of them."""
    source = run.ctx.get_parameter_source
    given = [one for one in run.options if source(one.name) != ParameterSource.DEFAULT]
    return convert_values(given, run.given, None)


def _open(path: Path, asked: dict[str, Any]) -> Monitor:
    """Return the monitor of a state, or a new one if there is no file."""
    import fairperm

    if not path.exists():
        for name, option in (("sensitive_features", "group"), ("metrics", "metric")):
            if name not in asked:
                raise InputError(
                    f"--{option} must be given: {shown(str(path))} does not exist yet."
                )
        return fairperm.Monitor(**asked)
    try:
        with path.open("rb") as file:
            state = json.loads(read_limited(file, str(path), _MAX_STATE_BYTES))
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError("--state", "the state of a monitor, as JSON", str(path)) from error
    return fairperm.Monitor.from_state(state, **asked)


def _columns_of(found: Monitor) -> dict[str, str | None]:
    """Return the options that name columns, as the monitor has them."""
    question = found.question
    return {
        "label": question.y_true,
        "prediction": question.y_pred,
        "score": question.y_score,
        "group": question.sensitive_features,
        "count": question.count,
    }


def _settings_of(found: Monitor) -> dict[str, Any]:
    """Return the other options, as the monitor has them: they need not be given again."""
    asked = found.question
    return {
        "metric": [*asked.metrics],
        "alpha": asked.alpha,
        "margin": asked.margin,
        "bounds": asked.bounds and [*asked.bounds],
        "threshold": asked.threshold,
        "reference": asked.reference,
        "seed": asked.rng,
    }


def _read(given: dict[str, Any], found: Monitor, *, keeps_hashes: bool) -> Any:
    from fairperm.cli.files.loading import read_columns

    return read_columns(given, found.question.metrics, with_hashes=keeps_hashes, rows=True)


def _as_frame(loaded: LoadedData, group: str) -> Any:
    """Return the rows with groups as text: a file alone would decide whether 1 is a number."""
    table = loaded.data
    if isinstance(table, dict):
        texts = [None if one is None else str(one) for one in table[group]]
        return table | {group: texts}
    import pyarrow as pa

    place = table.column_names.index(group)
    return table.set_column(place, group, table[group].cast(pa.string()))


def _report_failures(found: Monitor, words: tuple[str, ...]) -> int:
    """Print what makes the command fail, and return the exit code.

    Raises InputError if nothing does, and a gap has no value that could.
    """
    failed = [one for one in found.comparisons if one.verdict in words]
    if failed:
        lines = [write_message(f"{one.verdict}: {one.name}") for one in failed]
        return print_failed(lines, len(found.comparisons), "comparisons", words)
    unknown = [one for one in found.comparisons if one.gap is None]
    if words and unknown:
        raise InputError(
            f"--fail-on {words[0]} cannot be evaluated for {unknown[0].name}: no row of some group "
            "is in the metric's denominator yet. The batch is counted."
        )
    return 0
