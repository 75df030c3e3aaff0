"""Counts, units and trials of many groups: one answer.

Permutation distributions of different engines are compared by Kolmogorov and Smirnov's test and
by moments; a right engine fails one such comparison in 10,000.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fairperm import InputError
from fairperm.data.arguments import Inputs
from fairperm.data.reading import read_table
from fairperm.engines.callables import CallableEngine
from fairperm.engines.estimates import Estimates
from fairperm.engines.many_groups import check_group_count
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.plan import Plan
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Scheme
from tests.support.many_groups import ENGINES, build, observed, permuted, repeating

CASES = [
    ("selection_rate", "pooled", "score"),
    ("true_positive_rate", "denominator", "score"),
    ("true_positive_rate", "pooled", "wald"),
    ("positive_predictive_value", "pooled", "delta"),
    ("accuracy", Scheme.POOLED, None),
    ("f1_score", "pooled", "delta"),
    ("balanced_accuracy", "within_label", "delta"),
    ("equalized_odds", "within_label", "score"),
    ("roc_auc", "pooled", "delong"),
    ("roc_auc", "within_label", "delong"),
    ("brier_score", "pooled", "delta"),
    ("mean_score_positives", "within_label", "delta"),
    ("mean_squared_error", "pooled", "delta"),
    ("r2_score", "pooled", "delta"),
]


@pytest.mark.parametrize("strata", [False, True], ids=["all rows", "strata"])
@pytest.mark.parametrize(("metric", "scheme", "variance"), CASES)
def test_counts_and_units_agree(
    metric: str, scheme: str, variance: str | None, strata: bool
) -> None:
    data = repeating(metric, strata=strata)
    counts, units = (build(one, data, metric, scheme, variance) for one in ENGINES)
    assert observed(counts).value.shape[-1] == 4
    in_strata = by_content(observed(counts)), by_content(observed(units))
    for name in ("value", "variance", "size"):
        one, other = (getattr(estimates, name) for estimates in in_strata)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-13, err_msg=name)
    if not strata:
        same_distribution(permuted(counts, 1024), permuted(units, 1000), metric)


def by_content(estimates: Estimates) -> Estimates:
    """Return the estimates with the strata in the order of their sizes: engines have their own."""
    order = np.lexsort(estimates.size[0, 0].T)
    return type(estimates)(
        estimates.value[:, :, order], estimates.variance[:, :, order], estimates.size[:, :, order]
    )


def same_distribution(one: Estimates, other: Estimates, what: str) -> None:
    """Compare every group's permuted values and variances, and the gaps of neighbours."""
    for name in ("value", "variance"):
        first, second = (getattr(estimates, name)[:, :, 0] for estimates in (one, other))
        for part, group in itertools.product(range(len(first)), range(first.shape[-1])):
            a, b = (np.round(x[part, :, group], 10) for x in (first, second))
            assert stats.ks_2samp(a, b).pvalue > 1e-4, (what, name, part, group)
            if name == "value":
                after = (group + 1) % first.shape[-1]
                a, b = (
                    np.round(x[part, :, group] - x[part, :, after], 10) for x in (first, second)
                )
                assert stats.ks_2samp(a, b).pvalue > 1e-4, (what, "gap", part, group)


def mean_difference(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
    return np.average((y_pred - y_true) ** 2, weights=sample_weight)


@pytest.mark.parametrize("strata", [False, True])
def test_trials_agree_with_counts(strata: bool) -> None:
    data = repeating("mean_squared_error", strata=strata)
    function: Any = get_metric(mean_difference)
    inputs = Inputs(**data)
    table = read_table(inputs, function.for_arguments(inputs))
    plan = Plan(function.for_arguments(inputs), Scheme.POOLED, None)
    trials = Comparison.of(table, plan, table.groups, None).engine(None, many=True)
    assert isinstance(trials, CallableEngine)
    counts = build("counts", data, "mean_squared_error", Scheme.POOLED, None)
    ours, theirs = by_content(observed(trials)), by_content(observed(counts))
    np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-12)
    np.testing.assert_allclose(ours.size, theirs.size)
    if not strata:
        ours, theirs = permuted(trials, 512), permuted(counts, 1024)
        for group in range(4):
            a, b = (np.round(one.value[0, :, 0, group], 10) for one in (ours, theirs))
            assert stats.ks_2samp(a, b).pvalue > 1e-4


def test_labels_stay_in_their_blocks_and_strata() -> None:
    data = repeating("true_positive_rate", strata=True)
    for engine in ENGINES:
        made = build(engine, data, "true_positive_rate", "within_label", "score")
        found, sample = permuted(made, 32), observed(made)
        np.testing.assert_allclose(found.size, np.broadcast_to(sample.size, found.size.shape))
        pooled = permuted(build(engine, data, "true_positive_rate", "pooled", "score"), 32)
        assert (pooled.size != sample.size).any()


def test_more_groups_than_a_byte_can_tell_are_refused() -> None:
    check_group_count(tuple(range(254)), "")
    rule = r"sensitive_features must be made of at most 254 groups to permute together; got 255"
    with pytest.raises(InputError, match=rule):
        check_group_count(tuple(range(255)), "")


def test_as_many_groups_as_there_can_be() -> None:
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(254), 4)
    data = {"y_true": np.zeros(1016), "y_pred": rng.normal(size=1016), "sensitive_features": group}
    engine = build("units", data, "mean_squared_error", "pooled", "delta")
    found = observed(engine).value[0, 0, 0]
    np.testing.assert_allclose(found, (data["y_pred"] ** 2).reshape(254, 4).mean(axis=1))
    totals = permuted(engine, 8).value[0, :, 0].sum(axis=1)
    np.testing.assert_allclose(totals, found.sum())
