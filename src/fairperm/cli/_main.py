"""Where the command begins, and where everything that goes wrong becomes a sentence."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from fairperm.cli import _state
from fairperm.cli._audit import audit
from fairperm.cli._demo import demo
from fairperm.cli._metrics import metrics
from fairperm.cli._pair import one_test
from fairperm.cli._power import power
from fairperm.cli._reproduce import reproduce
from fairperm.cli._screen import complain
from fairperm.cli._sweep import sweep
from fairperm.cli._words import in_options
from fairperm.errors import FairpermError

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
    except (BrokenPipeError, _state.NobodyReadsError):
        return BROKEN_PIPE
    except (KeyboardInterrupt, typer.Abort):
        complain("fairperm: interrupted")
        return INTERRUPTED
    except Exception as error:
        if _state.debug:
            raise
        complain(f"fairperm: error: {_sentence(error)}")
        return WRONG


def _sentence(error: Exception) -> str:
    """Return what went wrong in one sentence, or two with a hint."""
    usage = getattr(error, "format_message", None)
    if usage is not None:  # typer's own
        context = getattr(error, "ctx", None)
        name = context.command_path if context is not None else "fairperm"
        told = str(usage()).removesuffix(".")
        return f"{told}{'' if told.endswith('?') else '.'} `{name} --help` lists what there is."
    if isinstance(error, FairpermError):
        return in_options(str(error))
    if isinstance(error, MemoryError):
        return "the memory is not enough for these data."
    text = " ".join(str(error).split())
    if isinstance(error, OSError):
        return f"{error.strerror or text}{f': {error.filename}' if error.filename else ''}."
    return f"{type(error).__name__}: {text} (this should not happen; --debug shows where)"
