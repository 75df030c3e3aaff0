"""A monitor that is fed every day: the time of an update, and the size of what is kept."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import numpy as np

import fairperm

if TYPE_CHECKING:
    from benchmarks.conftest import Report

UPDATES, ROWS = 10_000, 1_000


def test_monitor(report: Report) -> None:
    """One metric, two groups: years of days."""
    rng = np.random.default_rng(43)
    days = [
        {name: rng.integers(0, 2, ROWS) for name in ("label", "decided", "group")}
        for _ in range(20)
    ]
    monitor = fairperm.Monitor(
        y_true="label",
        y_pred="decided",
        sensitive_features="group",
        metrics=["false_positive_rate"],
    )
    start = time.perf_counter()
    for number in range(UPDATES):
        monitor.update(days[number % len(days)])
    seconds = time.perf_counter() - start
    size = len(json.dumps(monitor.state))
    report.notes.append(f"{UPDATES:,} updates of {ROWS:,} rows: {seconds:.1f} s, {size:,} bytes")
    report.bar("seconds of 10,000 updates of 1,000 rows", seconds, "≤", 20.0)
    report.bar("bytes of the state", size, "≤", 20_000)
