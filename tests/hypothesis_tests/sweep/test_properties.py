"""What must not change a sweep: the order of rows, names, threads, the scale of scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
from tests.support.examples import examples
from tests.support.sweeps import METRICS

ARRAYS = ("difference", "standard_error", "statistic", "pvalue", "adjusted_pvalue", "status")
metrics = st.sampled_from(METRICS)


@st.composite
def data_sets(draw: st.DrawFn) -> dict[str, Any]:
    """Draw rows with few distinct scores, and with both labels in each group and stratum."""
    n = draw(st.integers(0, 30))
    row = st.tuples(st.booleans(), st.integers(0, 6), st.sampled_from("ab"), st.integers(0, 1))
    rows = draw(st.lists(row, min_size=n, max_size=n))
    rows += itertools.product((False, True), (2, 4), "ab", (0, 1))  # so that metrics are defined
    y_true, y_score, group, stratum = zip(*rows, strict=True)
    columns = {
        "y_true": np.array(y_true, np.int64),
        "y_score": np.array(y_score) / 8,
        "sensitive_features": np.array(group),
    }
    stratified = draw(st.booleans())
    return {**columns, "control_features": np.array(stratum)} if stratified else columns


def sweep(data: dict[str, Any], metric: str, **options: Any) -> ThresholdSweepResult:
    usual = {"thresholds": "scores", "n_resamples": 39, "rng": 5}
    return threshold_sweep(**data, metric=metric, **{**usual, **options})


def assert_same(
    one: ThresholdSweepResult,
    other: ThresholdSweepResult,
    names: Iterable[str] = ARRAYS,
    *,
    flipped: bool = False,
) -> None:
    (first,), (second,) = one.curves.values(), other.curves.values()
    for name in (*names, "global_pvalue"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for band in ("pointwise_band", "simultaneous_band"):
        low, high = getattr(second, band)
        ends = (-high, -low) if flipped else (low, high)
        np.testing.assert_array_equal(getattr(first, band), ends)


@examples(40)
@given(data_sets(), metrics, st.randoms(use_true_random=False))
def test_row_order_changes_nothing(data: dict[str, Any], metric: str, random: Any) -> None:
    order = list(range(len(data["y_true"])))
    random.shuffle(order)
    shuffled = {name: column[order] for name, column in data.items()}
    assert_same(sweep(data, metric), sweep(shuffled, metric))


@examples(40)
@given(data_sets(), metrics)
def test_swapping_the_groups_flips_the_sign(data: dict[str, Any], metric: str) -> None:
    one, other = (sweep(data, metric, groups=pair) for pair in (("a", "b"), ("b", "a")))
    (curve,) = one.curves.values()
    names = ["standard_error", "pvalue", "adjusted_pvalue", "status"]
    # groups with the same rows have the same draws, whichever is first
    assert_same(one, other, names, flipped=bool(np.nan_to_num(curve.difference).any()))
    (first,), (second,) = one.curves.values(), other.curves.values()
    np.testing.assert_array_equal(first.difference, -second.difference)
    np.testing.assert_array_equal(first.statistic, -second.statistic)
    np.testing.assert_array_equal(first.values["a"], second.values["a"])


@examples(40)
@given(data_sets(), metrics)
def test_scores_and_thresholds_may_be_on_any_scale(data: dict[str, Any], metric: str) -> None:
    thresholds = np.arange(-1, 9) / 8
    stretched = {**data, "y_score": np.exp(3 * data["y_score"]) - 9}
    one = sweep(data, metric, thresholds=thresholds)
    assert_same(one, sweep(stretched, metric, thresholds=np.exp(3 * thresholds) - 9))


def test_complements_have_opposite_gaps_and_the_same_pvalues() -> None:
    rng = np.random.default_rng(0)
    data = {
        "y_true": rng.integers(0, 2, 300),
        "y_score": rng.random(300),
        "sensitive_features": rng.integers(0, 2, 300),
    }
    pairs = (("tpr", "fnr"), ("accuracy", "error_rate"))
    for one, other in pairs:
        first, second = (
            next(iter(sweep(data, name, scheme="pooled").curves.values())) for name in (one, other)
        )
        np.testing.assert_allclose(first.difference, -second.difference, atol=1e-14)
        np.testing.assert_array_equal(first.pvalue, second.pvalue)
        np.testing.assert_array_equal(first.adjusted_pvalue, second.adjusted_pvalue)
