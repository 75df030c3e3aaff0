"""Bounds on the gap without an assumption: sharp by linear programming, and exact where known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from fairperm import permutation_test

Array = NDArray[Any]
SHARE = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6], [0.5, 0.4, 0.1]])
KINDS = np.array([[0.3, 0.3, 0.4], [0.55, 0.25, 0.2], [0.2, 0.6, 0.2], [0.35, 0.05, 0.6]])
ROWS = 200  # of each cell


def sample() -> tuple[dict[str, Any], Array, Array]:
    """Return cells with shares of hits, misses and rows outside of a rate's denominator."""
    counts = (KINDS * ROWS).round().astype(int)
    kind = np.concatenate([np.repeat(np.arange(3), one) for one in counts])
    cell = np.repeat(np.arange(len(SHARE)), ROWS)
    columns = {"y_true": (kind == 2).astype(int), "y_pred": (kind == 0).astype(int)}
    return columns, cell, counts / ROWS


def largest_excess(kinds: Array, values: tuple[float, float], side: int) -> float:
    """Return by how much the gap may exceed that of these values, in all distributions.

    A distribution splits every kind in every cell among three groups. It maximizes the first
    group's Σ(a − θ b) and minimizes the second's: both are 0 at their extremes, so that a larger
    sum is a larger gap.
    """
    n_cells, n_groups = SHARE.shape
    size = n_cells * n_groups * 3
    gain = np.zeros((n_cells, n_groups, 3))
    for group, (value, sign) in enumerate(zip(values, (side, -side), strict=True)):
        gain[:, group] = sign * np.array([1 - value, -value, 0.0])
    rows, totals = [], []
    for cell in range(n_cells):
        for kind in range(3):
            row = np.zeros((n_cells, n_groups, 3))
            row[cell, :, kind] = 1
            rows.append(row.ravel())
            totals.append(kinds[cell, kind])
        for group in range(n_groups):
            row = np.zeros((n_cells, n_groups, 3))
            row[cell, group] = 1
            rows.append(row.ravel())
            totals.append(SHARE[cell, group])
    found = linprog(-gain.ravel(), A_eq=np.array(rows), b_eq=totals, bounds=[(0, 1)] * size)
    assert found.success
    return float(-found.fun)


def test_bounds_on_a_rate_are_those_of_all_distributions() -> None:
    columns, cell, kinds = sample()
    shares = {name: SHARE[cell, g] for g, name in enumerate("abc")}
    found: Any = permutation_test(
        **columns,
        metric="false_positive_rate",
        group_probabilities=shares,
        proxy=cell,
        groups=("a", "b"),
        rng=1,
    )
    hit, miss, outside = kinds.T

    def extreme(w: Array, side: int) -> float:
        """Return the value if a group takes as many of one kind, and as few of the other."""
        good = hit if side > 0 else miss
        most = np.minimum(good, w).sum()
        least = np.maximum(0, w - good - outside).sum()
        return float(most / (most + least) if side > 0 else least / (most + least))

    ends = []
    for side in (-1, 1):
        values = extreme(SHARE[:, 0], side), extreme(SHARE[:, 1], -side)
        assert largest_excess(kinds, values, side) == pytest.approx(0, abs=1e-9)
        ends.append(values[0] - values[1])
    assert found.bounds == pytest.approx(ends)
    low, high = found.bounds_interval
    assert low < ends[0] < ends[1] < high
    assert found.notes[-1].startswith("Without the assumption, the gap in false_positive_rate")


@pytest.mark.parametrize("metric", ["selection_rate", "mean_prediction"])
def test_certain_cells_leave_no_doubt(metric: str) -> None:
    rng = np.random.default_rng(2)
    group = np.repeat([0.0, 1.0], 60)
    y = rng.integers(0, 2, 120) if metric == "selection_rate" else rng.normal(size=120)
    found: Any = permutation_test(
        y_true=y,
        y_pred=y,
        metric=metric,
        group_probabilities={"a": group, "b": 1 - group},
        proxy=group,
        rng=1,
    )
    assert found.bounds == pytest.approx((found.difference, found.difference))


def test_bounds_on_a_mean_take_the_highest_and_the_lowest_rows() -> None:
    rng = np.random.default_rng(3)
    n, share = 4000, 0.3
    y = rng.normal(size=2 * n)
    shares = np.repeat([share, 0.6], n)
    found: Any = permutation_test(
        y_true=y,
        y_pred=y,
        metric="mean_prediction",
        group_probabilities={"a": shares, "b": 1 - shares},
        proxy=shares,
        rng=1,
    )
    first, second = np.sort(y[:n]), np.sort(y[n:])
    low, high = round(share * n), round(0.6 * n)
    mine = (first[-low:].sum() + second[-high:].sum()) / (low + high)
    others = (first[:-low].sum() + second[:-high].sum()) / (2 * n - low - high)
    assert found.bounds[1] == pytest.approx(mine - others, abs=0.01)
