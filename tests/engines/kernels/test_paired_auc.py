"""Changes of the AUC: DeLong's paired variance by brute force, and variances of zero."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fairperm._utils.sorting import order_by
from fairperm.engines.kernels.paired_auc import PairedRows, auc_changes_by_lane
from fairperm.engines.kernels.subsets import lane_bits, random_subsets
from fairperm.engines.kernels.weighted_auc import WeightedRows
from tests.support.kernel_runs import seeded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

N = 90


def brute_force(label: Ints, scores: Floats, weight: Floats, cluster: Ints) -> tuple[float, float]:
    """Return the change of the AUC and its variance, from all pairs of a positive and a negative.

    Influences of clusters on the change are squared as Obuchowski's are on one AUC.
    """
    first, second = np.flatnonzero(label == 1), np.flatnonzero(label == 0)
    if not (first.size and second.size):
        return np.nan, np.nan
    over = np.sign(scores[:, first][:, :, None] - scores[:, second][:, None])
    wins = (over[1] - over[0]) / 2  # one more or one less; a half from or to a tie
    m, n = weight[first].sum(), weight[second].sum()
    change = weight[first] @ wins @ weight[second] / (m * n)
    influence = np.zeros(len(label))
    influence[first] = weight[first] / m * (wins @ weight[second] / n - change)
    influence[second] = weight[second] / n * (weight[first] @ wins / m - change)
    every = np.unique(cluster)
    x, y = (
        np.array([influence[one][cluster[one] == unit].sum() for unit in every])
        for one in (first, second)
    )
    i, j = (len(np.unique(cluster[one])) for one in (first, second))
    if min(i, j) < 2:
        return change, np.nan
    both = len(every) / (len(every) - 1) * 2 * (x * y).sum()
    return change, i / (i - 1) * (x**2).sum() + j / (j - 1) * (y**2).sum() + both


def walked(
    label: Ints,
    scores: Floats,
    weight: Floats,
    unit: Ints,
    stratum: Ints,
    words: Words,
    *,
    is_clustered: bool,
) -> tuple[Floats, Floats]:
    """Return what the kernel finds."""
    by_old, by_new = (order_by([stratum, score, label, weight, unit]) for score in scores)
    old, new = (
        WeightedRows.build(
            score[order],
            label[order] > 0,
            weight[order],
            unit[order],
            stratum[order],
            2,
            is_clustered=is_clustered,
        )
        for score, order in zip(scores, (by_old, by_new), strict=True)
    )
    return auc_changes_by_lane(words, PairedRows.build(new, old, by_new, by_old))


@pytest.mark.parametrize("spread", [0.0, 0.5, 9.0], ids=["ones", "alike", "wide"])
@pytest.mark.parametrize("decimals", [0, 1, 9], ids=["many ties", "some", "untied"])
@pytest.mark.parametrize("is_clustered", [False, True])
def test_every_lane_is_the_definition(is_clustered: bool, decimals: int, spread: float) -> None:
    rng = np.random.default_rng(5)
    n_units = 30 if is_clustered else N
    unit = rng.permutation(np.arange(N) % n_units)
    of_unit = (np.arange(n_units) >= n_units // 3).astype(int)  # two strata
    label = rng.integers(2, size=N)
    scores = np.round(label + rng.normal(size=(2, N)), decimals)
    weight = np.exp(spread * rng.normal(size=N))
    sizes = np.bincount(of_unit)
    words = random_subsets(sizes, sizes // 2, seeded(2))
    stratum = of_unit[unit]
    value, variance = walked(label, scores, weight, unit, stratum, words, is_clustered=is_clustered)
    for lane, in_a in enumerate(lane_bits(words)):
        for s, g in np.ndindex(2, 2):
            mine = (stratum == s) & (in_a[unit] == (g == 0))
            found = brute_force(label[mine], scores[:, mine], weight[mine], unit[mine])
            assert value[lane, s, g] == pytest.approx(found[0], abs=1e-12, nan_ok=True)
            assert variance[lane, s, g] == pytest.approx(
                found[1], rel=1e-10, abs=1e-18, nan_ok=True
            )


@pytest.mark.parametrize("is_clustered", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_scores_that_order_rows_alike_cancel_exactly(is_weighted: bool, is_clustered: bool) -> None:
    """No rounding error of weights may pass for a standard error."""
    rng = np.random.default_rng(6)
    n_units = 30 if is_clustered else N
    unit, label = rng.permutation(np.arange(N) % n_units), rng.integers(2, size=N)
    score = np.round(label + rng.normal(size=N), 1)
    weight = rng.uniform(0.5, 2.0, N) if is_weighted else np.ones(N)
    of_unit = (np.arange(n_units) >= n_units // 3).astype(int)
    sizes = np.bincount(of_unit)
    words = random_subsets(sizes, sizes // 2, seeded(3))
    value, variance = walked(
        label,
        np.stack([score, np.exp(score)]),
        weight,
        unit,
        of_unit[unit],
        words,
        is_clustered=is_clustered,
    )
    assert (value == 0).all()
    assert (variance == 0).all()
