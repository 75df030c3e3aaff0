"""A search for subgroups in data of the size of Adult's test half, and how its time grows.

Processor time is measured, which does not depend on other programs. Growth is measured with fewer
permutations, and fitted as a power.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import fairperm

if TYPE_CHECKING:
    from benchmarks.conftest import Report

ROWS = 16_281
# levels of ten features, and how often the first is: about as in Adult
LEVELS = {"age": (74, 0.0), "work": (9, 0.7), "years": (16, 0.3), "married": (7, 0.45)}
LEVELS |= {"job": (15, 0.13), "role": (6, 0.4), "race": (5, 0.85), "sex": (2, 0.67)}
LEVELS |= {"hours": (60, 0.45), "country": (40, 0.9)}
_MEMORY = "import sys; sys.path.insert(0, '.'); from benchmarks import bench_subgroups as one; "
_MEMORY += "import resource; one.search('{metric}'); "
_MEMORY += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"


def _data(n: int, n_features: int) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(n)
    kind = rng.normal(size=n)  # features that go together make few cells of them
    features = {}
    for name, (levels, share) in list(LEVELS.items())[:n_features]:
        place = np.argsort(np.argsort(kind + 0.7 * rng.normal(size=n))) / n
        value = np.where(place < share, 0, 1 + (place - share) / (1 - share) * (levels - 1))
        number = value.astype(np.int64)
        features[name] = number if levels > 50 else number.astype(str)
    y_true = rng.random(n) < 0.24
    y_score = 1 / (1 + np.exp(-(2 * y_true - 1 + rng.normal(size=n))))
    return y_true, y_score, features


def search(
    metric: str,
    n: int = ROWS,
    n_features: int = 10,
    max_depth: int = 3,
    draws: int = 999,
) -> fairperm.Subgroups:
    """Search made-up data for subgroups of about a thirtieth of the rows or more."""
    y_true, y_score, features = _data(n, n_features)
    return fairperm.find_subgroups(
        y_true,
        y_score=y_score,
        threshold=None if metric == "roc_auc" else 0.5,
        features=features,
        metric=metric,
        max_depth=max_depth,
        min_rows=n // (130 if metric == "roc_auc" else 30),  # of the rarer label for an AUC
        n_resamples=draws,
        rng=0,
        n_jobs=1,
        progress=False,
    )


@pytest.mark.parametrize(("metric", "limit"), [("error_rate", 10), ("roc_auc", 50)])
def test_search_of_adult_size(report: Report, metric: str, limit: int) -> None:
    search(metric, n=2_000, draws=39)  # compiles
    start = time.process_time()
    result = search(metric)
    seconds = time.process_time() - start
    name = f"{metric} of {len(result.all):,} subgroups"
    report.seconds[f"find_subgroups, {name}, processor time", ROWS] = seconds
    report.bar(f"processor seconds, {name}", seconds, "≤", limit)
    run = [sys.executable, "-c", _MEMORY.format(metric=metric)]
    memory = float(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    report.bar(f"megabytes, {name}", memory, "≤", 1000)


GROWTH: dict[str, list[dict[str, int]]] = {
    "rows": [{"n": n} for n in (4_000, 8_000, 16_000, 32_000)],
    "features": [{"n_features": k} for k in (4, 6, 8, 10)],
    "depth": [{"max_depth": depth} for depth in (1, 2, 3)],
}


@pytest.mark.parametrize("what", GROWTH)
def test_growth(report: Report, what: str) -> None:
    """Time grows with rows times subgroups, whatever makes them many."""
    work, seconds, sizes = [], [], []
    for options in GROWTH[what]:
        start = time.process_time()
        result = search("error_rate", **options, draws=199)
        seconds.append(time.process_time() - start)
        sizes.append(next(iter(options.values())))
        work.append(len(result.all) * options.get("n", ROWS))
    by_size = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    by_work = np.polyfit(np.log(work), np.log(seconds), 1)[0]
    shown = ", ".join(f"{size:,}: {one:.2g} s" for size, one in zip(sizes, seconds, strict=True))
    report.notes.append(f"find_subgroups by {what} ({shown}) grows as its power {by_size:.2f}")
    report.bar(f"power of rows × subgroups in seconds, by {what}", by_work, "≤", 1.1)
