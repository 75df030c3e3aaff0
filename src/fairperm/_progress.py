"""A progress bar for work that takes longer than a second."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

_PATIENCE = 1.0  # seconds of silence before a bar appears


def counted(steps: Iterable[T], total: int, progress: bool | None) -> Iterator[T]:
    """Yield the steps, showing after a second how many of them are done.

    ``progress`` True shows the bar, False does not, None does on a terminal or in a notebook.
    """
    if progress is False or (progress is None and not _someone_watches()):
        yield from steps
        return
    started = time.monotonic()
    steps = iter(steps)
    done = 0
    for step in steps:
        yield step
        done += 1
        if time.monotonic() - started >= _PATIENCE and done < total:
            break
    else:
        return
    yield from _shown(steps, done, total)


def _shown(steps: Iterator[T], done: int, total: int) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("resampling", total=total, completed=done)
        for step in steps:
            yield step
            bar.advance(task)


def _someone_watches() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
