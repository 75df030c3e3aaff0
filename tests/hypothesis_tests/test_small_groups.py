"""Which results say that a group has too few of what its metric counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.plan import Plan
from fairperm.hypothesis_tests.small_groups import ENOUGH, effective_rows
from fairperm.metrics import get_metric
from tests.support.helpers import Pair, rows, table

FEW: Pair = ((25, 1, 1, 3), (80, 20, 20, 80))


def effective(metric: str, *strata: Pair) -> Any:
    plan = Plan.choose(get_metric(metric), "auto", "auto")
    comparison = Comparison.of(table(*strata), plan, ("a", "b"), None)
    return effective_rows(comparison, rates=True)


def test_as_many_rows_matter_as_there_are_if_they_matter_alike() -> None:
    # of the balanced accuracy of such a group, every row moves it as much as every other
    found = effective("balanced_accuracy", ((25, 25, 25, 25), (10, 10, 10, 10)))
    assert found["balanced_accuracy"].tolist() == pytest.approx([100, 40])


def test_rows_that_matter_to_f1() -> None:
    # influences by hand: d/dtp = 2(fp + fn)/D², d/dfp = d/dfn = −2tp/D², and tn has none
    expected = []
    for _, fp, fn, tp in FEW:
        influences = [2 * (fp + fn)] * tp + [-2 * tp] * (fp + fn)
        squares = np.array(influences, float) ** 2
        expected.append(squares.sum() ** 2 / (squares**2).sum())
    assert effective("f1_score", FEW)["f1_score"].tolist() == pytest.approx(expected)


def test_rows_that_matter_to_a_mean() -> None:
    rng = np.random.default_rng(1)
    error, group = rng.normal(size=50), np.repeat(["a", "b"], [30, 20])
    with pytest.warns(fairperm.FairpermWarning, match="standard error is unreliable") as caught:
        result = fairperm.permutation_test(
            np.zeros(50), error, sensitive_features=group, metric="mean_squared_error", rng=1
        )
    assert len(caught) == len(result.notes) == 2
    for name, note in zip(("a", "b"), result.notes, strict=True):
        deviation = error[group == name] ** 2 - (error[group == name] ** 2).mean()
        n = (deviation**2).sum() ** 2 / (deviation**4).sum()
        assert n < ENOUGH
        assert f"Only about {n:.0f} rows of group '{name}' can change" in note


def test_no_variance_rests_on_no_rows() -> None:
    found = effective("f1_score", ((30, 0, 0, 50), (30, 20, 20, 30)))["f1_score"]
    assert found[0] == 0
    assert found[1] >= ENOUGH


@pytest.mark.parametrize(
    "metric", ["true_positive_rate", "accuracy", "jaccard_score", "f1_score", "equalized_odds"]
)
def test_exact_tests_of_rates_need_no_warning(metric: str) -> None:
    result = fairperm.permutation_test(**rows(FEW), metric=metric, rng=1)
    assert result.notes == ()


def test_large_groups_need_no_warning() -> None:
    large = ((200, 50, 50, 200), (80, 20, 20, 80))
    assert fairperm.permutation_test(**rows(large), metric="balanced_accuracy", rng=1).notes == ()


def test_the_omnibus_test_warns_too() -> None:
    with pytest.warns(fairperm.FairpermWarning, match="of group 'a' can change matthews_corrcoef"):
        fairperm.omnibus_test(**rows(FEW), metric="mcc", rng=1, n_resamples=99)


def test_what_does_not_vary_at_all() -> None:
    perfect: Pair = ((30, 0, 0, 50), (80, 20, 20, 80))
    with pytest.warns(fairperm.FairpermWarning, match="No row of group 'a' can change"):
        fairperm.permutation_test(
            **rows(perfect), metric="balanced_accuracy", rng=1, n_resamples=99
        )


def test_clusters_are_counted_as_clusters() -> None:
    given = rows(FEW)
    cluster = np.arange(len(given["y_true"])) // 2  # of two rows; group a has 30
    with pytest.warns(fairperm.FairpermWarning, match="clusters of group 'a' can change"):
        fairperm.permutation_test(
            **given, metric="f1_score", cluster=cluster, rng=1, n_resamples=99
        )


@pytest.mark.parametrize("option", ["sample_weight", "cluster"])
def test_weights_and_clusters_make_tests_of_rates_inexact(option: str) -> None:
    given = rows(FEW)
    option_values: dict[str, Any] = {option: np.arange(len(given["y_true"])) // 2 + 1}
    with pytest.warns(fairperm.FairpermWarning, match="of group 'a' can change true_positive_rate"):
        fairperm.permutation_test(
            **given, metric="true_positive_rate", rng=1, n_resamples=99, **option_values
        )


@pytest.mark.parametrize("other", [1, -1])
def test_an_error_of_zero_is_noted(other: int) -> None:
    """Scores without a mistake, and with nothing else: no interval can be made of that."""
    label, group = np.tile([0, 1], 60), np.repeat(["a", "b"], 60)
    score = np.where(group == "a", 1, other) * (2 * label - 1)
    with pytest.warns(fairperm.FairpermWarning, match="confidence interval is meaningless"):
        result = fairperm.permutation_test(
            label, y_score=score, sensitive_features=group, metric="roc_auc", n_resamples=99, rng=1
        )
    low, high = result.confidence_interval
    assert low == high == result.difference == (1 - other) / 2
    assert len(result.notes) == 1


def test_an_interval_of_a_rate_needs_no_error() -> None:
    label, group = np.tile([0, 1], 60), np.repeat(["a", "b"], 60)
    result = fairperm.permutation_test(label, label, sensitive_features=group, metric="fpr")
    assert result.standard_error == 0
    assert result.notes == ()
    assert result.confidence_interval[1] > 0.05


@pytest.mark.parametrize("n_groups", [129, 254])
def test_groups_are_named_rightly_however_many_there_are(n_groups: int) -> None:
    """Numbers of groups in eight bits are not doubled in eight bits."""
    group = np.repeat(np.arange(n_groups), 60)
    y_true = np.tile(np.arange(60) % 2, n_groups)
    y_true[group == 128] = np.arange(60) % 6 == 0
    score = np.random.default_rng(4).random(len(group))
    with pytest.warns(fairperm.FairpermWarning, match="may reject too often") as caught:
        fairperm.omnibus_test(
            y_true, y_score=score, sensitive_features=group, metric="roc_auc", n_resamples=9, rng=1
        )
    assert [str(one.message)[:26] for one in caught] == ["Group 128 has 10 positives"]
