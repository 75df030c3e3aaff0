"""The kernel of the mean AUC over classes: the metric's own estimates, lane by lane."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairperm.data.sample import Sample
from fairperm.engines.kernels.kernel import LANES
from fairperm.engines.kernels.one_versus_rest import ClassRows, one_versus_rest_by_lane
from fairperm.engines.kernels.subsets import lane_bits
from fairperm.metrics.one_versus_rest import ONE_VERSUS_REST, OneVersusRest


@pytest.mark.parametrize("metric", ONE_VERSUS_REST, ids=lambda one: one.name)
@pytest.mark.parametrize("decimals", [0, 1, 9])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_lanes_have_the_estimates_of_the_metric(
    metric: OneVersusRest, decimals: int, n_classes: int
) -> None:
    """Also without rows of some class (NaN), or with one (no variance)."""
    rng = np.random.default_rng(n_classes)
    n = 12 * n_classes
    label, scores = rng.integers(0, n_classes, n), rng.normal(size=(n, n_classes)).round(decimals)
    classes = tuple(range(n_classes))
    part = replace(metric, classes=classes, scores=tuple(map(str, classes)))
    nothing = np.zeros(n, np.uint8)
    rows = Sample(
        columns={},
        contributions=np.column_stack([np.eye(n_classes)[label], scores]),
        group=nothing,
        stratum=nothing,
        block=nothing,
        count=np.ones(n, np.int64),
        groups=(0, 1),
        strata=("all",),
    )
    words = rng.integers(2**64, size=(3, n), dtype=np.uint64)
    words = words[0] & words[1] & words[2]  # groups of an eighth of the rows
    walk = ClassRows.of(rows, np.arange(n))
    value, variance = one_versus_rest_by_lane(words, walk, weighted=part.is_weighted)
    expected = part.estimate(lane_bits(words).astype(float), rows.contributions)
    assert value.shape == variance.shape == (LANES, 1)
    assert value[:, 0] == pytest.approx(expected[0], nan_ok=True, rel=1e-12)
    assert variance[:, 0] == pytest.approx(expected[1], nan_ok=True, rel=1e-9, abs=1e-20)
    few = one_versus_rest_by_lane(words, walk, 3, weighted=part.is_weighted)[0]
    assert np.array_equal(few, value[:3], equal_nan=True)
    if n_classes == 3:
        assert np.isnan(value).any()
        assert (np.isnan(variance) & ~np.isnan(value)).any()
