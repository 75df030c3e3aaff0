"""What a tool costs before its first test: starting, importing, room on the disk."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

_TIMES = 3


def seconds_of(command: list[str]) -> float:
    """Return the shortest of a few runs of a command."""
    taken = []
    for _ in range(_TIMES):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return min(taken)


def start_seconds(statement: str) -> float:
    return seconds_of([sys.executable, "-c", statement])


def first_test_seconds(tool: str) -> float:
    """Return the time of a new process that makes one small test of an AUC."""
    statement = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
        "from benchmarks.peers.questions import question; "
        "from benchmarks.peers.tools import TOOLS; "
        f"TOOLS[{tool!r}].run(question('AUC', 1_000), 2)"
    )
    return start_seconds(statement)


def help_seconds() -> float:
    return seconds_of([str(Path(sys.executable).parent / "fairperm"), "--help"])


def closure(package: str) -> set[str]:
    """Return a package's name and those of all that it needs, as far as they are installed."""
    seen: set[str] = set()
    ahead = [package]
    while ahead:
        name = _normal(ahead.pop())
        if name in seen:
            continue
        try:
            needed = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # of another platform, or not needed after all
            continue
        seen.add(name)
        wanted = (Requirement(one) for one in needed)
        ahead += [
            one.name for one in wanted if not one.marker or one.marker.evaluate({"extra": ""})
        ]
    return seen


def megabytes(packages: set[str]) -> float:
    """Return the size of the installed files, without what Python compiled of them."""
    return sum(_size(metadata.distribution(name)) for name in packages) / 1e6


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _size(package: Any) -> float:
    paths = [Path(str(one.locate())) for one in package.files or []]
    if any(one.suffix == ".pth" for one in paths):  # editable: its files are where they are edited
        root = Path(__file__).parent.parent.parent / "src" / package.name
        paths += root.rglob("*")
    kept = (one for one in paths if one.suffix not in {".pyc", ".nbc", ".nbi"} and one.is_file())
    return float(sum(one.stat().st_size for one in kept))
