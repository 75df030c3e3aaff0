"""AUC of weighted and clustered rows: Obuchowski's variance by hand, and variances of zero."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fairperm
from fairperm._utils.sorting import order_by
from fairperm.engines.kernels.subsets import lane_bits, random_subsets
from fairperm.engines.kernels.weighted_auc import WeightedRows, weighted_auc_by_lane
from tests.support.kernel_runs import seeded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

pytestmark = pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few rows


def obuchowski(label: Ints, score: Floats, weight: Floats, cluster: Ints) -> tuple[float, float]:
    """Return AUC and variance by Obuchowski (1997), weights put in where she counts rows.

    With X and Y the positives' and negatives' sums of deviations in each cluster, m and n their
    weights: S10/m + S01/n + 2 S11/(mn), each S with a factor I/(I − 1) for the clusters it is of.
    """
    first, second = np.flatnonzero(label == 1), np.flatnonzero(label == 0)
    wins = (score[first][:, None] > score[second]) + 0.5 * (score[first][:, None] == score[second])
    m, n = weight[first].sum(), weight[second].sum()
    auc = weight[first] @ wins @ weight[second] / (m * n)
    of_positives = weight[first] * (wins @ weight[second] / n - auc)
    of_negatives = weight[second] * (weight[first] @ wins / m - auc)
    every = np.unique(cluster)
    x = np.array([of_positives[cluster[first] == one].sum() for one in every])
    y = np.array([of_negatives[cluster[second] == one].sum() for one in every])
    i10, i01 = len(np.unique(cluster[first])), len(np.unique(cluster[second]))
    s10 = i10 / (i10 - 1) / m * (x**2).sum()
    s01 = i01 / (i01 - 1) / n * (y**2).sum()
    s11 = len(every) / (len(every) - 1) * (x * y).sum()
    return float(auc), float(s10 / m + s01 / n + 2 * s11 / (m * n))


def clustered(seed: int, n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    cluster = 100 * group + rng.integers(12, size=n)
    y_true = rng.integers(2, size=n)
    return {
        "y_true": y_true,
        "y_score": np.round(y_true + rng.normal(size=n) + 0.1 * (cluster % 100), 1),
        "sensitive_features": group,
        "cluster": cluster,
        "sample_weight": np.round(rng.uniform(0.5, 2, n), 1),
    }


@pytest.mark.parametrize("spread", [0.0, 0.5, 9.0], ids=["ones", "alike", "wide"])
@pytest.mark.parametrize("decimals", [0, 1, 9], ids=["many ties", "some", "untied"])
@pytest.mark.parametrize("is_clustered", [False, True])
def test_every_lane_is_the_definition(is_clustered: bool, decimals: int, spread: float) -> None:
    """The last weights differ by factors of 10¹⁵: no sum of one group may round away the other."""
    rng = np.random.default_rng(5)
    n, n_units = 90, 30 if is_clustered else 90
    unit = rng.permutation(np.arange(n) % n_units)
    of_unit = (np.arange(n_units) >= n_units // 3).astype(int)  # two strata
    label = rng.integers(2, size=n)
    score = np.round(label + rng.normal(size=n), decimals)
    weight = np.exp(spread * rng.normal(size=n))
    order = order_by([of_unit[unit], score, label, weight])
    unit, label, score, weight = unit[order], label[order], score[order], weight[order]
    rows = WeightedRows.build(
        score, label > 0, weight, unit, of_unit[unit], 2, is_clustered=is_clustered
    )
    assert rows.is_wide == (spread == 9.0)
    sizes = np.bincount(of_unit)
    words = random_subsets(sizes, sizes // 2, seeded(2))
    expected = np.empty((2, 64, 2, 2))
    for lane, in_a in enumerate(lane_bits(words)):
        for s, g in np.ndindex(2, 2):
            mine = (of_unit[unit] == s) & (in_a[unit] == (g == 0))
            units = unit[mine] if is_clustered else np.arange(n)[mine]
            expected[:, lane, s, g] = obuchowski(label[mine], score[mine], weight[mine], units)
    value, variance = weighted_auc_by_lane(words, rows)
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(variance, expected[1], rtol=1e-9, atol=1e-20)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("left_out", ["", "sample_weight", "cluster"])
def test_variance_is_obuchowskis(seed: int, left_out: str) -> None:
    data = {name: column for name, column in clustered(seed).items() if name != left_out}
    result = fairperm.permutation_test(
        **data, metric="roc_auc", variance="delong", n_resamples=9, rng=1
    )
    n = len(data["y_true"])
    for group in (0, 1):
        mine = data["sensitive_features"] == group
        weight, cluster = data.get("sample_weight", np.ones(n)), data.get("cluster", np.arange(n))
        auc, variance = obuchowski(
            data["y_true"][mine], data["y_score"][mine], weight[mine], cluster[mine]
        )
        assert result.values[group] == pytest.approx(auc, rel=1e-12)
        assert result.standard_errors[group] == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_clusters_of_one_row_are_rows() -> None:
    data = {**clustered(4), "cluster": None, "sample_weight": None}
    options: dict[str, Any] = {"metric": "roc_auc", "n_resamples": 9, "rng": 1}
    options["variance"] = "delong"
    rows = fairperm.permutation_test(**data, **options, scheme="pooled")
    alone = fairperm.permutation_test(**{**data, "cluster": np.arange(60)}, **options)
    assert alone.statistic == pytest.approx(rows.statistic, rel=1e-12)
    assert alone.standard_errors == pytest.approx(rows.standard_errors, rel=1e-12)


def separated(seed: int) -> dict[str, Any]:
    """Return groups whose positives are all above, and all below, their negatives."""
    rng = np.random.default_rng(seed)
    return {
        "y_true": np.array([1, 1, 1, 0, 0, 0] * 2),
        "y_score": [0.9, 0.8, 0.7, 0.6, 0.5, 0.55, 0.1, 0.15, 0.2, 0.3, 0.35, 0.4],
        "sensitive_features": ["a"] * 6 + ["b"] * 6,
        "sample_weight": rng.integers(1, 30, 12) / 10,
        "metric": "roc_auc",
        "variance": "delong",
        "rng": 1,
    }


@pytest.mark.parametrize("seed", range(20))
def test_a_variance_of_zero_is_zero_whatever_the_weights_are_rounded_to(seed: int) -> None:
    data = separated(seed)
    options: dict[str, Any] = {"scheme": "within_label", "n_resamples": 999}
    tenths = fairperm.permutation_test(**data, **options)
    exact = np.round(data["sample_weight"] * 10) / 8  # no sum of which is rounded
    eighths = fairperm.permutation_test(**{**data, "sample_weight": exact}, **options)
    assert tenths.standard_errors == {"a": 0.0, "b": 0.0}
    assert tenths.statistic == math.inf
    assert tenths.pvalue == eighths.pvalue
    assert np.array_equal(np.isinf(tenths.null_distribution), np.isinf(eighths.null_distribution))


@pytest.mark.parametrize("seed", range(5))
def test_no_error_is_no_evidence_of_equivalence(seed: int) -> None:
    data = {name: one for name, one in separated(seed).items() if name != "variance"}
    apart = np.where(data["y_true"] == 1, 1.0, 0.0) + np.arange(12) / 100
    result = fairperm.equivalence_test(**{**data, "y_score": apart}, margin=0.1, n_resamples=99)
    assert result.pvalue > 0.3


def test_without_permutations_no_error_is_refused() -> None:
    with pytest.raises(fairperm.UndefinedMetricError, match="roc_auc is defined, and not zero"):
        fairperm.permutation_test(**separated(0), n_resamples=0)


def test_clusters_without_variance_tie_with_all_others_like_them() -> None:
    """Compare with all ways to share out six clusters."""
    score = np.array([0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.15, 0.85, 0.25, 0.75, 0.35, 0.65])
    cluster = np.repeat(np.arange(6), 2)
    label = np.array([1, 0] * 6)
    weight = np.tile([0.1, 0.7, 0.3, 0.3, 0.7, 0.1], 2)
    chosen = fairperm.permutation_test(
        label,
        y_score=score,
        sensitive_features=np.where(cluster < 3, "a", "b"),
        cluster=cluster,
        sample_weight=weight,
        metric="roc_auc",
        variance="delong",
        n_resamples=4999,
        rng=1,
    )
    assert chosen.statistic == math.inf
    infinite = 0
    for members in itertools.combinations(range(6), 3):
        first = np.isin(cluster, members)
        (auc, variance), (other, its) = (
            obuchowski(label[one], score[one], weight[one], cluster[one]) for one in (first, ~first)
        )
        infinite += variance + its < 1e-25 and abs(auc - other) > 1e-9
    share = infinite / math.comb(6, 3)
    error = math.sqrt(share * (1 - share) / 4999)
    assert abs(chosen.pvalue - share) < 4 * error + 1 / 5000


@pytest.mark.parametrize(
    ("label", "score", "group", "cluster"),
    [
        (
            [1, 0, 1, 1, 0, 0, 0, 1, 0, 1, 1],
            [0.32, 0.24, 0.74, 0.39, 0.44, 0.64, 0.96, 0.1, 0.33, 0.37, 0.45],
            *("baabbabaaba", "23300543525"),
        ),
        (
            [1, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0],
            [1.0, 1.0, 0.0, 0.5, 0.75, 0.25, 0.0, 0.0, 0.25, 0.25, 0.75],
            *("aabbbabaaba", "54103434405"),
        ),
    ],
)
def test_influences_that_cancel_out_within_clusters_leave_no_variance(
    label: list[int], score: list[float], group: str, cluster: str
) -> None:
    """Positives and negatives of each cluster of "a" move the AUC by as much, up and down."""
    result = fairperm.permutation_test(
        label,
        y_score=score,
        sensitive_features=list(group),
        cluster=list(cluster),
        metric="roc_auc",
        variance="delong",
        n_resamples=99,
        rng=1,
    )
    assert result.standard_errors == {"a": 0.0, "b": 0.0}
    assert abs(result.statistic) == math.inf
