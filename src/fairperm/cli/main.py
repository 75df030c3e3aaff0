"""Where the command begins, and where everything that goes wrong becomes a sentence."""

from __future__ import annotations

import io
import os
import re
import sys
from typing import Annotated, Any

import typer

from fairperm.cli import state
from fairperm.cli.commands.audit import audit
from fairperm.cli.commands.demo import demo
from fairperm.cli.commands.metrics import metrics
from fairperm.cli.commands.power import power
from fairperm.cli.commands.reproduce import reproduce
from fairperm.cli.commands.sweep import sweep
from fairperm.cli.commands.test import one_test
from fairperm.cli.terminal import complain
from fairperm.cli.words import in_options
from fairperm.errors import FairpermError, shown

WRONG, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # exit codes; 1 is that of a --fail-on verdict

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(audit)
app.command("test")(one_test)
for command in (sweep, power, metrics, reproduce, demo):
    app.command()(command)


def _version(value: bool) -> None:
    if value:
        from importlib import metadata

        print(f"fairperm {metadata.version('fairperm')}")
        raise typer.Exit


@app.callback()
def _fairperm(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Tell whether gaps between groups, in a model's metrics, are real or chance.

    Exit codes: 0 all is well, 1 a --fail-on verdict was found, 2 an error.
    """


def main() -> None:
    """Run the command, and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name from data cannot stop us
    code = _run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = BROKEN_PIPE
    if code == BROKEN_PIPE:  # nobody reads any more; nor should Python try to flush at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _run() -> int:
    try:
        result: Any = app(standalone_mode=False, prog_name="fairperm")
        return result if isinstance(result, int) else 0
    except (BrokenPipeError, state.NobodyReadsError):
        return BROKEN_PIPE
    except (KeyboardInterrupt, typer.Abort):
        complain("fairperm: interrupted")
        return INTERRUPTED
    except Exception as error:
        if state.debug:
            raise
        complain(f"fairperm: error: {_sentence(error)}")
        return WRONG


def _command(error: Any) -> str:
    """Return the command that could not be understood."""
    if getattr(error, "ctx", None) is not None:
        return str(error.ctx.command_path)
    known = (one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands)
    return next((f"fairperm {name}" for name in known if name in sys.argv[1:2]), "fairperm")


def _of_parser(error: Any) -> str:
    """Return what typer says; of values that are no numbers, in our words."""
    told = str(error.format_message()).replace("Value error, ", "")
    wrong = re.search(r"Invalid value for '(--[\w-]+)'.*valid (integer|number|float)", told)
    if wrong is None:
        return told
    # newer versions of typer ask pydantic, which knows what came
    said: list[Any] = getattr(error.__cause__, "errors", list)()
    quoted = re.search(r": '(.*)' is not", told)
    value = said[0]["input"] if said else quoted[1] if quoted else ""
    kind = "a whole number" if wrong[2] == "integer" else "a number"
    source = error.ctx.get_parameter_source(error.param.name) if error.ctx else None
    where = " in the file of options" if source is not None and source.name == "DEFAULT_MAP" else ""
    return f"{wrong[1]} must be {kind}; got {shown(value)}{where}"


def _sentence(error: Exception) -> str:
    """Return what went wrong in one sentence, or two with a hint."""
    if hasattr(error, "format_message"):
        told = _of_parser(error).removesuffix(".")
        mark = "" if told.endswith("?") else "."
        return f"{told}{mark} `{_command(error)} --help` lists what there is."
    if isinstance(error, FairpermError):
        return in_options(str(error))
    if isinstance(error, MemoryError):
        return "the memory is not enough for these data."
    text = " ".join(str(error).split())
    if isinstance(error, OSError):
        return f"{error.strerror or text}{f': {error.filename}' if error.filename else ''}."
    return f"{type(error).__name__}: {text} (this should not happen; --debug shows where)"
