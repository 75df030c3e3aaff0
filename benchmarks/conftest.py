"""Collects what one benchmark run measured, prints it as ratios and judges the bars.

Times of different runs or machines are never compared: every ratio is of two times of one run.
"""

from __future__ import annotations

from typing import Any

import pytest

Measured = dict[tuple[str, int], float]


class Report:
    """Seconds by contender and number of rows, and the bars that they must meet."""

    def __init__(self) -> None:
        self.seconds: Measured = {}
        self.notes: list[str] = []
        self.bars: list[tuple[str, float, str, float]] = []

    def bar(self, claim: str, measured: float, relation: str, limit: float) -> None:
        """Record a bar; the run fails if the bar does not hold."""
        self.bars.append((claim, measured, relation, limit))
        holds = measured <= limit if relation == "≤" else measured >= limit
        assert holds, f"{claim}: {measured:.3g} is not {relation} {limit:g}"

    def ratio(self, numerator: str, denominator: str, n: int) -> float:
        """Return how many times longer the first contender took than the second."""
        return self.seconds[numerator, n] / self.seconds[denominator, n]


_REPORT = Report()


@pytest.fixture(scope="session")
def report() -> Report:
    return _REPORT


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not (_REPORT.seconds or _REPORT.bars or _REPORT.notes):
        return
    sizes = sorted({n for _, n in _REPORT.seconds})
    contenders = list(dict.fromkeys(name for name, _ in _REPORT.seconds))
    write = terminalreporter.write_line
    write("")
    write("Seconds for one test by number of rows (extrapolated times marked ~)")
    write("| contender | " + " | ".join(f"{n:,}" for n in sizes) + " |")
    write("|---|" + "---:|" * len(sizes))
    for name in contenders:
        times = [_REPORT.seconds.get((name, n)) for n in sizes]
        cells = ["" if time is None else f"{time:.2g}" for time in times]
        write(f"| {name} | " + " | ".join(cells) + " |")
    write("")
    write("| bar | measured | limit |")
    write("|---|---:|---:|")
    for claim, measured, relation, limit in _REPORT.bars:
        write(f"| {claim} | {measured:.3g} | {relation} {limit:g} |")
    for note in _REPORT.notes:
        write(note)
