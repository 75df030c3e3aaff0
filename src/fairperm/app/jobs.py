"""Work in processes of its own: cancelled by ending them, and damage to one harms no other.

Processes are forked from one that has imported what they need, so that they start at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import pkgutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_TOLD_EVERY_S = 0.2
_DIED = "The work ended without a result. Was there not enough memory for these data?"


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of how many steps are done."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no result, in one sentence or two."""

    why: str


class Jobs:
    """Runs functions in processes, as many at a time as there are processors."""

    def __init__(self, *preloaded: str) -> None:
        can_fork = "forkserver" in multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("forkserver" if can_fork else "spawn")
        self._slots = asyncio.Semaphore(os.cpu_count() or 1)
        if can_fork:
            from multiprocessing.forkserver import ensure_running

            self._context.set_forkserver_preload(list(preloaded))
            ensure_running()

    async def run(self, function: str, folder: Path, *arguments: Any) -> AsyncGenerator[Any]:
        """Yield the progress of a function, and at the end what it returns, or Failed.

        It is named, as in "module:function": this process need not import it. That of the function
        ends when the caller stops asking.
        """
        async with self._slots:
            reader, writer = self._context.Pipe(duplex=False)
            process = self._context.Process(
                target=work, args=(writer, str(folder), function, arguments), daemon=True
            )
            await asyncio.to_thread(process.start)
            writer.close()
            try:
                message: Any = Progress(0, 0)
                while isinstance(message, Progress):
                    try:
                        message = await asyncio.to_thread(reader.recv)
                    except EOFError:
                        message = Failed(_DIED)
                    yield message
            finally:
                process.kill()  # a reader that still waits sees the end of its pipe
                process.join()


def work(writer: Connection, folder: str, function: str, arguments: tuple[Any, ...]) -> None:
    """Run a function in this process, in its folder, and send what it returns."""
    from fairperm._utils import progress
    from fairperm.cli.main import explain

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _close_outputs()
    tempfile.tempdir = folder
    os.chdir(folder)
    told = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told >= _TOLD_EVERY_S:
            told = time.monotonic()
            writer.send(Progress(done, total))

    progress.listen(tell)
    try:
        result = pkgutil.resolve_name(function)(*arguments)
    except Exception as error:
        result = Failed(explain(error))
    writer.send(result)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _close_outputs() -> None:
    """Print nothing: names and values of the data belong on the page alone."""
    sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    with contextlib.suppress(OSError):
        for number in (1, 2):
            os.dup2(sys.stdout.fileno(), number)
