"""One tool, one question, one size, in a process of its own: seconds and memory."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers.questions import question
from benchmarks.peers.tools import OURS, TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DRAWS = 999
LIMIT = 60.0  # seconds after which a tool is stopped
_COMPARED_ROWS = 10**4  # up to which all tools must find the same gap
_FEW = 2  # permutations of the first, careful call: fewer have no standard deviation
_SHORT = 0.1  # seconds under which the shortest of three calls counts

Found = dict[str, Any]


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return b of seconds ≈ a · sizeᵇ, by least squares on logarithms; NaN of fewer than two."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def total_seconds(timed: dict[int, float], draws: int) -> float:
    """Return the time of so many draws: measured, or on the line through first and last."""
    if draws in timed:
        return timed[draws]
    last = max(timed)
    return timed[last] + slope_of(timed) * (draws - last)


def slope_of(timed: dict[int, float]) -> float:
    """Return the seconds of one draw more; 0 if there is but one time."""
    first, last = min(timed), max(timed)
    return max(0.0, timed[last] - timed[first]) / max(1, last - first)


def measure(name: str, metric: str, n: int, budget: float, each: float = 0.0) -> Found:
    """Return what one tool takes for one question, in this process.

    ``each`` is what a permutation is expected to take, if that is known.
    """
    tool, asked = TOOLS[name], question(metric, n)
    small = question(metric, 1_000)
    tool.run(small, _FEW)  # imports, compiled kernels: the second table has them
    before = _peak()

    def seconds(draws: int) -> float:
        taken: list[float] = []
        while not taken or (taken[0] < _SHORT and len(taken) < 3):
            start = time.perf_counter()
            tool.run(asked, draws)
            taken.append(time.perf_counter() - start)
        return min(taken)

    timed = {DRAWS: seconds(DRAWS)} if tool.package == OURS else _timed(seconds, budget, each)
    return {
        "tool": name,
        "metric": metric,
        "rows": n,
        "seconds": total_seconds(timed, DRAWS),
        "draws": max(timed),
        "each": slope_of(timed),
        "least": min(timed.values()),  # what cannot be had for less
        "memory": (_peak() - before) / 1e6,
        "gap": tool.run(asked, _FEW).gap if n <= _COMPARED_ROWS else None,
    }


def _peak() -> float:
    """Return the most memory that this process ever had, in bytes."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _timed(seconds: Callable[[int], float], budget: float, each: float) -> dict[int, float]:
    """Return seconds by draws: more of them until the draws alone took half of the budget.

    What the call costs before its first draw is not counted in: it can be most of the time, and
    draws must take a part of it to be seen beside it.
    """
    timed = {_FEW: seconds(_FEW)}
    budget = max(budget, timed[_FEW] / 4)
    # an expected time is trusted; one of few draws may be mostly what comes before them
    most, draws, each = DRAWS if each else 8 * _FEW, _FEW, each or timed[_FEW] / _FEW
    while draws < DRAWS and timed[draws] - timed[_FEW] < budget / 2:
        more = max(1, min(int(budget / max(each, 1e-9)), most))
        draws = DRAWS if each * DRAWS < 2 * budget else min(DRAWS, draws + more)
        timed[draws] = seconds(draws)
        most, each = 8 * draws, (timed[draws] - timed[_FEW]) / (draws - _FEW)
        if sum(timed.values()) > LIMIT / 2:
            break
    return timed


def in_new_process(
    name: str, metric: str, n: int, budget: float, each: float = 0.0
) -> Found | None:
    """Return what ``measure`` finds in a process of its own; None if it had to be stopped."""
    asked = [name, metric, str(n), str(budget), str(each)]
    command = [sys.executable, "-m", "benchmarks.bench_peers", "--one", *asked]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT + 10,
            cwd=Path(__file__).parents[2],
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        sys.exit(f"{name}, {metric} of {n:,} rows failed:\n{done.stderr[-3000:]}")
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def measure_sizes(name: str, metric: str, sizes: Sequence[int], budget: float) -> list[Found]:
    """Return one tool's findings at every size; what would be too long is extrapolated in rows."""
    run: list[Found] = []
    for n in sorted(sizes):
        if len(run) >= 2 and _projected(run, n, "least") > LIMIT / 2:
            break
        each = run[-1]["each"] * n / run[-1]["rows"] if run else 0.0
        found = in_new_process(name, metric, n, budget, each)
        if found is None:
            break
        run.append(found)
        print(json.dumps(found), flush=True)
    if not run:
        sys.exit(f"{name}, {metric}: not even {min(sizes):,} rows could be run in {LIMIT:g} s")
    beyond = [
        {
            "tool": name,
            "metric": metric,
            "rows": n,
            # what a call costs once and what a draw costs grow differently
            "seconds": _projected(run, n, "least") + (DRAWS - _FEW) * _projected(run, n, "each"),
        }
        for n in sorted(sizes)[len(run) :]
    ]
    return run + beyond


def _projected(run: list[Found], n: int, what: str) -> float:
    """Return a time at a larger size, by the growth between the two largest that were run."""
    last = run[-2:]
    rows, seconds = [one["rows"] for one in last], [one[what] for one in last]
    growth = exponent(rows, seconds) if len(last) > 1 and min(seconds) > 0 else 1.0
    return float(seconds[-1] * (n / rows[-1]) ** growth)
