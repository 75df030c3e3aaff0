"""What the page's processes do: look at a file, and run a command of the command line on it."""

from __future__ import annotations

import inspect
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fairperm
from fairperm.app.look import Look, Source, look
from fairperm.app.questions import OUTPUTS, Answer
from fairperm.cli.main import app
from fairperm.cli.presenting import write_command
from fairperm.cli.running import CALL
from fairperm.report.rerun import write_script

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "selection": fairperm.selection_audit,
    "audit": fairperm.audit,
    "compare": fairperm.audit,
    "discover": fairperm.find_subgroups,
}


def look_at(source: Source, given: dict[str, Any]) -> Look:
    """Return what a file looks like."""
    os.chdir(source.folder)
    with tempfile.TemporaryDirectory() as copies:
        return look(source.name, Path(copies), given)


def run(source: Source, command: str, options: Sequence[str], reading: Mapping[str, Any]) -> Answer:
    """Run a command on a file, and write its outputs into the folder of this process."""
    outputs = [f"--{name}={Path.cwd() / file}" for name, file in OUTPUTS.items()]
    os.chdir(source.folder)
    given = [command, *options, *outputs, "--quiet", "--", source.name]
    with app.make_context("fairperm", given) as context:
        app.invoke(context)
        call = context.meta[CALL]
    document = json.loads(Path(outputs[-1].partition("=")[2]).read_bytes())
    seed = document["options"].get("seed")
    arguments = {name: one for name, one in call.items() if name not in {"data", "progress"}}
    function = _FUNCTIONS[command]
    defaults = {x: one.default for x, one in inspect.signature(function).parameters.items()}
    return Answer(
        write_command(command, document["options"], document["inputs"]),
        write_script(
            function.__name__,
            arguments | ({} if seed is None else {"rng": seed}),
            defaults,
            source.name,
            {"format": document["inputs"][0]["format"], **reading},
        ),
        seed,
    )
