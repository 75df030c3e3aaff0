"""The memory of a test of many rows, besides its columns."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm._utils import pieces

N = 1 << 18


@pytest.mark.parametrize("metric", ["roc_auc", "mean_squared_error"])
def test_rows_are_not_copied_many_times(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times the columns, and a little for what does not grow with them or is never used."""
    monkeypatch.setattr(pieces, "SIZE", 1 << 14)  # in proportion to millions of rows
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "y_true": rng.normal(size=N),
        "y_pred": rng.normal(size=N),
        "sensitive_features": (rng.random(N) < 0.3).astype(np.int8),
    }
    if metric == "roc_auc":
        columns |= {"y_true": rng.integers(0, 2, N), "y_score": columns.pop("y_pred")}

    def run() -> None:
        fairperm.permutation_test(**columns, metric=metric, n_resamples=64, rng=1, n_jobs=1)

    run()  # compiles
    tracemalloc.start()
    try:
        run()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # of errors: centred values, their squares and their cubes
    assert peak <= 3.7 * sum(column.nbytes for column in columns.values())
