"""No interval goes beyond what is possible, and a gap of zero is zero.

Metrics are read from the registry, so that a new one inherits both properties.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm.hypothesis_tests.margins.one_sided import ratio_interval
from fairperm.metrics import get_metric
from tests.hypothesis_tests.test_agreement import (
    ALTERNATIVES,
    DESIGNS,
    UNMATCHED,
    draw_columns,
    draw_design,
)

METRICS = fairperm.metric_names()
BOUNDED = [
    name for name in METRICS if all(np.isfinite(part.span) for part in get_metric(name).parts)
]
UNCHANGED = {"gini", "average_precision", "roc_auc_ovr", "roc_auc_ovr_weighted"}


def pair_with(metrics: Sequence[str], designs: Sequence[str]) -> list[tuple[str, str]]:
    """Return each metric with each design that it has: matched sets have no ranks."""
    pairs = itertools.product(metrics, designs)
    return [(one, how) for one, how in pairs if "matched" not in how or one not in UNMATCHED]


def span_of(metric: str) -> float:
    return max((part.span for part in get_metric(metric).parts), default=1.0)


def add_new_model(columns: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the columns with the predictions or scores of a second model.

    They are those of the first in another order, and of numbers somewhat larger.
    """
    (name,) = (one for one in ("y_pred", "y_score") if one in columns)
    old = columns[name]
    is_number = old.dtype.kind == "f" and old.max() > 1
    return columns | {f"{name}_new": old * 1.1 if is_number else rng.permutation(old)}


def copy_model(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns with the old model as the new one."""
    (name,) = (one for one in ("y_pred", "y_score") if one in columns)
    return columns | {f"{name}_new": columns[name]}


def list_intervals(
    metric: str, design: str, rng: np.random.Generator
) -> Iterator[tuple[float, float, tuple[float, float], float, float | None]]:
    """Yield the largest possible gap, the level, the interval, the estimate and the p-value."""
    n, k = int(rng.integers(16, 36)), int(rng.integers(2, 5))
    n *= 3 if get_metric(metric).kind in {"class_scores", "classes"} else 1
    columns, more = draw_columns(metric, n, rng), draw_design(design, n, rng)
    columns["sensitive_features"] = np.arange(n) % k == 0
    if "matched" in more:
        more["matched"] = np.arange(n) // k
    if design == "matched strata":
        more["control_features"] = more["matched"] % 2
    level = float(rng.choice([0.8, 0.95, 0.999]))
    given: dict[str, Any] = {"metric": metric, "confidence_level": level, "rng": 1, **more}
    given["n_resamples"] = int(rng.choice([39, 199]))
    span, single = span_of(metric), metric != "equalized_odds"
    any_way = rng.choice(ALTERNATIVES if single else ALTERNATIVES[:2])
    result = fairperm.permutation_test(**columns, **given, alternative=any_way)
    yield span, level, result.confidence_interval, result.difference, result.pvalue
    ratio = ratio_interval(result)
    if ratio is not None:
        assert 0 <= ratio[1][0] <= ratio[1][1]
    if single:
        margin = fairperm.equivalence_test(**columns, **given, margin=0.9 * span)
        yield span, level, margin.confidence_interval, margin.estimate, None
    if "matched" in more:
        return
    period = np.arange(n) // k % 2
    if "cluster" not in more:
        periods = fairperm.compare_periods(**columns, **given, period=period)
        for gap in periods.gaps.values():
            yield span, level, gap.confidence_interval, gap.difference, gap.pvalue
        (change,) = periods.changes
        yield 2 * span, level, change.confidence_interval, change.difference, change.pvalue
        if single:
            within = change.test_margin(1.5 * span)
            yield 2 * span, level, within.confidence_interval, within.estimate, None
    if metric in UNCHANGED:
        return
    models = fairperm.compare_models(**add_new_model(columns, rng), **given)
    yield 2 * span, level, models.confidence_interval, models.difference, models.pvalue
    if single:
        within = models.test_margin(1.5 * span)
        yield 2 * span, level, within.confidence_interval, within.estimate, None


@pytest.mark.parametrize("most", [2, pytest.param(4, marks=pytest.mark.validate)])
@pytest.mark.parametrize(("metric", "design"), pair_with(BOUNDED, DESIGNS))
def test_intervals_stay_within_what_is_possible(metric: str, design: str, most: int) -> None:
    tested = set()
    for seed in range(4):
        rng = np.random.default_rng([seed, len(metric), DESIGNS.index(design)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                for span, level, (low, high), estimate, p in list_intervals(metric, design, rng):
                    tested.add(seed)
                    assert -span <= low <= high <= span
                    assert math.copysign(1, estimate) == 1 or estimate < 0
                    if p is not None:
                        assert (p <= 1 - level + 1e-12) == (not low <= 0 <= high)
            except fairperm.UndefinedMetricError:
                continue
        if len(tested) == most:
            return
    assert tested


def test_a_margin_beyond_all_possible_gaps_is_refused() -> None:
    rng = np.random.default_rng(0)
    label, score, group = rng.integers(0, 2, 400), rng.random(400), rng.integers(0, 2, 400)
    message = "margin must be below 1 for roc_auc; got 1.5"
    with pytest.raises(fairperm.InputError, match=message):
        fairperm.equivalence_test(
            label, y_score=score, sensitive_features=group, metric="roc_auc", margin=1.5, rng=1
        )


def repeat_rows(columns: dict[str, Any], design: str, rng: np.random.Generator) -> dict[str, Any]:
    """Return the rows as group a, and three times as group b, in any order."""
    n = len(columns["sensitive_features"])
    row = np.concatenate([np.arange(n), rng.permutation(np.tile(np.arange(n), 3))])
    repeated = {name: np.asarray(one)[row] for name, one in columns.items()}
    more = draw_design(design, n, rng)
    if "matched" in more:
        more = {"matched": row}
    if "control_features" in more:
        more["control_features"] = more["control_features"][row]
    if design == "weights":
        more = {"sample_weight": (1 + np.arange(n) % 3)[row] / 7}
    repeated["sensitive_features"] = np.repeat(["a", "b"], [n, 3 * n])
    return repeated | more


def make_noisy(metric: str, columns: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return numbers whose sums are rounded."""
    if get_metric(metric).kind == "regression":
        for name in ("y_true", "y_pred"):
            columns[name] = columns[name] + rng.random(len(columns[name])) / 3
    return columns


def assert_zero(value: float) -> None:
    assert (value, math.copysign(1, value)) == (0, 1)


K_OVER_SIX = 0.1  # the statistic of a gap of zero without skewness k is k/6: small, but not zero
ROUNDED = ("rows", "weights", "strata", "matched")


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.validate)])
@pytest.mark.parametrize(("metric", "design"), pair_with(METRICS, ROUNDED))
@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_groups_with_the_same_rows_have_a_gap_of_zero(metric: str, design: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(metric)])
    given: dict[str, Any] = {"metric": metric, "n_resamples": 9, "rng": 1}
    columns = make_noisy(metric, draw_columns(metric, 40, rng), rng)
    rows = repeat_rows(columns, design, rng)
    result = fairperm.permutation_test(**rows, **given)
    assert_zero(result.difference)
    if result.variance == "hall":
        assert abs(result.statistic) < K_OVER_SIX
    else:
        assert_zero(result.statistic)
    if design == "matched":
        return
    if design != "strata":
        half: dict[str, Any] = {name: np.concatenate([one, one]) for name, one in rows.items()}
        period = np.repeat([1, 2], len(half["sensitive_features"]) // 2)
        periods = fairperm.compare_periods(**half, **given, period=period)
        assert_zero(periods.changes[0].difference)
        for gap in periods.gaps.values():
            assert_zero(gap.difference)
    if metric not in UNCHANGED:
        both = repeat_rows(add_new_model(columns, rng), design, rng)
        models = fairperm.compare_models(**both, **given)
        assert_zero(models.difference)
        if metric != "equalized_odds":
            assert_zero(models.gap_old)
            assert_zero(models.gap_new)
        if design == "rows":
            same = fairperm.compare_models(**copy_model(both), **given)
            assert_zero(same.difference)


def test_searches_sweeps_and_correlations_have_no_rounding_errors_for_gaps() -> None:
    rng = np.random.default_rng(0)
    outcome, copies = rng.normal(size=50), np.repeat(["a", "b"], [50, 150])
    found = fairperm.find_subgroups(
        np.tile(outcome, 4), features={"copy": copies}, metric="mean_outcome", n_resamples=39, rng=1
    )
    for one in found.all:
        assert_zero(one.gap)
        assert abs(one.statistic) < K_OVER_SIX
    score = np.tile(rng.random(50), 4)
    label = np.tile(rng.integers(0, 2, 50), 4)
    sweep = fairperm.threshold_sweep(
        label, score, sensitive_features=copies, metric="balanced_accuracy", n_resamples=19, rng=1
    )
    (curve,) = sweep.curves.values()
    for gap in curve.difference[~np.isnan(curve.difference)]:
        assert_zero(gap)
    x, y = rng.normal(size=(2, 30))
    pairs = np.tile(x, 2), np.concatenate([y, -y])
    assert_zero(fairperm.correlation_test(*pairs, n_resamples=19, rng=1).correlation)
