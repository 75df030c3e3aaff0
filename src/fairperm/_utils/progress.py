"""Progress of work that takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeVar

T = TypeVar("T")

_PROGRESS_DELAY_S = 1.0  # seconds of silence before a bar appears
COMPILING = "fairperm: compiling for this machine, once; this takes a few seconds."
_compiling_is_said = threading.Event()
_listeners: list[Callable[[int, int], None]] = []


def show_progress(steps: Iterable[T], total: int, progress: bool | None) -> Iterator[T]:
    """Yield the steps, at most ``total``, and after a second show a bar of how many are done."""
    # ``progress`` True shows the bar, False does not, None shows it on a terminal or in a notebook
    if _listeners:
        for done, step in enumerate(steps, 1):
            yield step
            for tell in _listeners:
                tell(done, total)
        return
    if not _is_wanted(progress):
        yield from steps
        return
    started = time.monotonic()
    steps = iter(steps)
    done = 0
    for step in steps:
        yield step
        done += 1
        if time.monotonic() - started >= _PROGRESS_DELAY_S and done < total:
            break
    else:
        return
    yield from _show_bar(steps, done, total)


def listen(tell: Callable[[int, int], None]) -> None:
    """From now on tell how many of how many steps are done, and show no bar."""
    _listeners.append(tell)


@contextmanager
def waiting(message: str, progress: bool | None) -> Iterator[None]:
    """Show a message after a second, until the work is done."""
    if not _is_wanted(progress):
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(message)
    timer = threading.Timer(_PROGRESS_DELAY_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def say_compiling() -> None:
    """Say once that kernels are compiled, on standard error: also where nobody sees a bar."""
    # in a notebook, which shows standard error as an error, it is said on standard output
    if not _compiling_is_said.is_set():
        _compiling_is_said.set()
        out = sys.stdout if "ipykernel" in sys.modules else sys.stderr
        print(COMPILING, file=out, flush=True)


def keep_silent() -> None:
    """Never say that kernels are compiled."""
    _compiling_is_said.set()


def _show_bar(steps: Iterator[T], done: int, total: int) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=console.is_terminal) as bar:
        task = bar.add_task("resampling", total=total, completed=done)
        for step in steps:
            yield step
            bar.advance(task)
        bar.update(task, completed=total)  # draws may stop early


def _is_wanted(progress: bool | None) -> bool:
    # in a notebook a bar is a widget
    in_notebook = "ipykernel" in sys.modules and find_spec("ipywidgets") is not None
    is_watched = sys.stderr.isatty() or in_notebook
    return is_watched if progress is None else progress
