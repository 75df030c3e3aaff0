"""The populations in which groups are made equal: that they are, and nothing else changes much.

Values are computed by scikit-learn, or by hand; the nearest weights by a general minimizer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn import metrics as sklearn

from fairperm import metric_names
from fairperm.data.sample import Sample
from fairperm.hypothesis_tests.plan import check_resampling
from fairperm.metrics import get_metric
from fairperm.planning import equal_groups
from fairperm.planning.equal_groups import UnreachableError, compute_values, impose_gap
from fairperm.planning.populations import select_units
from fairperm.planning.repeated_tests import RepeatedTest
from tests.support.helpers import rows

Array = NDArray[np.float64]

N = 240
OF_BENEFIT = {
    *("generalized_entropy_index", "theil_t_index", "theil_l_index", "atkinson_index"),
    "coefficient_of_variation",
}


@cache
def data(metric: str) -> dict[str, Any]:
    """Return groups that differ in everything, in the columns that the metric is made of."""
    rng = np.random.default_rng(7)
    group = np.repeat([0, 1], [100, 140])
    label = rng.random(N) < np.where(group, 0.7, 0.3)
    hit = rng.random(N) < np.where(group, 0.85, 0.7)
    columns: dict[str, Any] = {"y_true": label, "y_pred": label == hit}
    kind = get_metric(metric).kind
    if kind in {"score", "probability"}:
        logit = np.where(label, 1, -1) * np.where(group, 1.5, 0.8) + rng.normal(size=N)
        columns = {"y_true": label, "y_score": np.round(1 / (1 + np.exp(-logit)), 2)}
    elif metric in OF_BENEFIT:
        columns = {"y_true": rng.uniform(0, 0.9, N), "y_pred": rng.uniform(0, 1 + group / 2)}
    elif kind == "regression":
        outcome = rng.normal(2, 0.5, N)
        predicted = outcome + rng.normal(0.1, 0.3 + group / 4)
        if metric.endswith("deviance"):
            outcome, predicted = np.abs(outcome), np.abs(predicted)
        columns = {"y_true": outcome, "y_pred": predicted}
    elif metric == "f1_macro":
        right = rng.random(N) < np.where(group, 0.7, 0.5)
        cat = rng.integers(0, 3, N)
        columns = {"y_true": cat, "y_pred": np.where(right, cat, rng.integers(0, 3, N))}
    elif kind == "class_scores":
        cat = rng.integers(0, 3, N)
        scores = np.eye(3)[cat] * (1 + group)[:, None] + rng.normal(size=(N, 3))
        columns = {"y_true": cat, "y_score": np.round(scores, 2)}
    return {**columns, "sensitive_features": group, "metric": metric, "variance": None}


def clustered(metric: str) -> dict[str, Any]:
    """Return the same rows in clusters of one to four."""
    sizes = np.random.default_rng(5).integers(1, 5, 150)
    first, second = np.repeat(np.arange(60), sizes[:60]), np.repeat(np.arange(90), sizes[60:])
    return {**data(metric), "cluster": np.r_[first[:100], 1000 + second[:140]]}


def weighted(metric: str) -> dict[str, Any]:
    return {**data(metric), "sample_weight": np.random.default_rng(3).uniform(0.5, 2, N)}


def repeat_test(given: dict[str, Any]) -> RepeatedTest:
    return RepeatedTest.of(given, check_resampling(9, 1, None, False), 0.95)


def of_rows(table: Sample, chance: Array) -> Array:
    """Return the weight of each row of the table if clusters have these chances."""
    if table.cluster is None:
        return chance
    assert table.alike is not None
    weight: Array = chance[table.cluster] * table.count / table.alike
    weight /= weight.sum()
    return weight


every_kind = pytest.mark.parametrize(
    "make",
    [
        weighted,
        pytest.param(data, marks=pytest.mark.validate),
        pytest.param(clustered, marks=pytest.mark.validate),
    ],
)


@every_kind
@pytest.mark.parametrize("metric", metric_names())
def test_groups_are_made_equal_in_every_metric(
    metric: str, make: Callable[[str], dict[str, Any]]
) -> None:
    made = repeat_test(make(metric))
    parts, own = made.plan.metric.parts, made.shares()
    for gap in (0.0, 0.01) if len(parts) == 1 and make is not clustered else (0.0,):
        found = impose_gap(made.table, parts, own, gap)
        first, second = (np.array(compute_values(made.table, parts, one)) for one in found)
        assert first - second == pytest.approx(gap, rel=0, abs=1e-9)
        before = np.array([compute_values(made.table, parts, one) for one in own])
        if gap == 0 and make is not clustered:
            assert np.all((before.min(axis=0) <= first) & (first <= before.max(axis=0)))
        for side, (one, of) in enumerate(zip(found, own, strict=True)):
            assert one.sum() == pytest.approx(1, abs=1e-12)
            assert not one[select_units(made.table).group != side].any()
            label = made.table.columns.get("y_true", np.zeros(0))
            if label.dtype != np.float64 and metric not in {"base_rate", "mean_score"}:
                weights = (of_rows(made.table, chance) for chance in (one, of))
                shares = [np.bincount(label.astype(int), weight) for weight in weights]
                assert shares[0] == pytest.approx(shares[1], abs=1e-9)


SKLEARN: dict[str, Callable[..., Any]] = {
    "true_positive_rate": sklearn.recall_score,
    "positive_predictive_value": sklearn.precision_score,
    "accuracy": sklearn.accuracy_score,
    "f1_score": sklearn.f1_score,
    "matthews_corrcoef": sklearn.matthews_corrcoef,
    "f1_macro": lambda *columns, **weights: sklearn.f1_score(*columns, average="macro", **weights),
    "roc_auc": sklearn.roc_auc_score,
    "log_loss": sklearn.log_loss,
    "mean_squared_error": sklearn.mean_squared_error,
    "r2_score": sklearn.r2_score,
}


@pytest.mark.parametrize("make", [data, clustered])
@pytest.mark.parametrize("metric", SKLEARN)
def test_scikit_learn_finds_them_equal(metric: str, make: Callable[[str], dict[str, Any]]) -> None:
    made = repeat_test(make(metric))
    found = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    columns = [made.table.columns[name] for name in made.plan.metric.columns]
    first, second = (
        SKLEARN[metric](*columns, sample_weight=of_rows(made.table, one)) for one in found
    )
    assert first == pytest.approx(second, rel=0, abs=1e-9)


def test_a_rate_becomes_that_of_both_groups_together() -> None:
    # misses: 10 of 50 and 30 of 150, then 20 of 150
    made = repeat_test({**rows(((40, 10, 10, 40), (20, 30, 20, 130))), "metric": "fnr"})
    first, second = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    cells = 2 * made.table.columns["y_true"] + made.table.columns["y_pred"]
    rate = 30 / 200
    expected = ([0.4, 0.1, 0.5 * rate, 0.5 * (1 - rate)], [0.1, 0.15, 0.75 * rate, 0.75 * 0.85])
    assert np.bincount(cells, first) == pytest.approx(expected[0], abs=1e-12)
    assert np.bincount(cells, second) == pytest.approx(expected[1], abs=1e-12)
    first, second = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.08)
    assert np.bincount(cells, first)[2] == pytest.approx(0.5 * (rate + 0.08 * 0.75), abs=1e-12)
    assert np.bincount(cells, second)[2] == pytest.approx(0.75 * (rate - 0.08 * 0.25), abs=1e-12)


def divergence(chance: Array, own: Array) -> float:
    there = own > 0
    return float(np.sum(chance[there] * np.log(chance[there] / own[there])))


@pytest.mark.parametrize("metric", ["roc_auc", "matthews_corrcoef", "f1_macro", "ppv", "r2_score"])
def test_no_other_weights_are_nearer(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the bound on what one row bears, which has a test of its own."""
    monkeypatch.setattr(equal_groups, "_STRONGEST", 1e12)
    given = {**data(get_metric(metric).name)}
    few = {"roc_auc": np.r_[0:24, 100:124], "r2_score": np.r_[0:12, 100:112]}
    some = few.get(metric, np.arange(N))
    for name in ("y_true", "y_pred", "y_score", "sensitive_features"):
        if name in given:
            given[name] = given[name][some]
    made = repeat_test(given)
    parts, own = made.plan.metric.parts, made.shares()[0]
    found = impose_gap(made.table, parts, made.shares(), 0.0)[0]
    target = compute_values(made.table, parts, found)[0]
    mine = own > 0
    labels = [
        made.table.columns["y_true"] == one for one in np.unique(made.table.columns["y_true"])
    ]
    held = labels if metric != "r2_score" else [np.ones(len(own), bool)]

    def whole(free: Array) -> Array:
        chance = np.zeros_like(own)
        chance[mine] = free
        return chance

    best = minimize(
        lambda free: divergence(whole(free), own),
        own[mine],
        method="SLSQP",
        bounds=[(1e-9, 1)] * mine.sum(),
        constraints=[
            {
                "type": "eq",
                "fun": lambda free: compute_values(made.table, parts, whole(free))[0] - target,
            },
            *(
                {"type": "eq", "fun": lambda free, of=one: (whole(free) - own)[of].sum()}
                for one in held
            ),
        ],
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert best.success
    assert divergence(found, own) > 1e-4
    assert divergence(found, own) == pytest.approx(best.fun, rel=1e-5)
    assert found[mine] == pytest.approx(best.x, abs=1e-4)


def test_rows_beyond_all_others_do_not_bear_the_whole_change() -> None:
    rng = np.random.default_rng(2)
    error = np.r_[rng.standard_t(3, 150), rng.uniform(-1, 1, 150)]
    given = {"y_true": np.zeros(300), "y_pred": error, "sensitive_features": [0] * 150 + [1] * 150}
    made = repeat_test({**given, "metric": "mean_squared_error"})
    found = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    square = made.table.columns["y_pred"] ** 2
    means = [float(one @ square) for one in found]
    assert means[0] == pytest.approx(means[1], rel=1e-12)
    assert means[0] == pytest.approx(np.mean(error**2), rel=1e-12)
    mine = np.flatnonzero(made.table.group == 0)
    weight = 150 * found[0][mine[np.argsort(square[mine])]]
    assert np.all(np.diff(weight) <= 1e-12)  # the larger the error, the less it counts
    size = np.mean(np.abs(square[mine] - means[0]))
    far = int((square[mine] > means[0] + 3.5 * size).sum())
    assert far >= 3
    assert weight[-far:] == pytest.approx(weight[-1], rel=1e-9)
    assert 0.1 < weight[-1] < 1


def test_rows_are_borrowed_where_a_group_has_none_to_weigh() -> None:
    # no misses of 50, and 20 of 100: of both together 20 of 150
    made = repeat_test({**rows(((40, 10, 0, 50), (20, 30, 20, 80))), "metric": "fnr"})
    first, second = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    cells = 2 * made.table.columns["y_true"] + made.table.columns["y_pred"]
    assert np.bincount(cells, first) == pytest.approx([0.4, 0.1, 0.5 * 2 / 15, 0.5 * 13 / 15])
    assert first[made.table.group == 1].sum() > 0.05
    assert second[made.table.group == 0].sum() == 0


def test_perfect_scores_borrow_too() -> None:
    given = {
        "y_true": [0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1],
        "y_score": [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6],
        "sensitive_features": list("aaaaabbbbbb"),
        "metric": "roc_auc",
    }
    made = repeat_test(given)
    first, second = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    label, score = made.table.columns["y_true"], made.table.columns["y_score"]
    expected = (5 * 1 + 6 * 6 / 9) / 11
    for one in (first, second):
        auc = sklearn.roc_auc_score(label, score, sample_weight=one)
        assert auc == pytest.approx(expected, rel=0, abs=1e-9)
    assert first[label == 1].sum() == pytest.approx(0.4, abs=1e-12)


def test_every_stratum_is_made_equal_by_itself() -> None:
    strata = (((20, 5, 5, 20), (10, 10, 8, 12)), ((30, 2, 9, 9), (15, 5, 2, 18)))
    made = repeat_test({**rows(*strata), "metric": "tpr"})
    found = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    table = made.table
    for stratum, rate in enumerate(((20 + 12) / (25 + 20), (9 + 18) / (18 + 20))):
        inside = (table.stratum == stratum) & table.columns["y_true"]
        for one, own in zip(found, made.shares(), strict=True):
            hits = one[inside & table.columns["y_pred"]].sum()
            assert hits / one[inside].sum() == pytest.approx(rate, abs=1e-12)
            assert one[table.stratum == stratum].sum() == pytest.approx(
                own[table.stratum == stratum].sum()
            )


def test_strata_without_a_gap_stay_as_they_are() -> None:
    # the second stratum has no positives of group b, the third no rows of a
    strata = (
        ((20, 5, 5, 20), (10, 10, 8, 12)),
        ((30, 2, 9, 9), (15, 5, 0, 0)),
        ((0, 0, 0, 0), (9, 9, 1, 9)),
    )
    made = repeat_test({**rows(*strata), "metric": "tpr"})
    found = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    for one, own in zip(found, made.shares(), strict=True):
        assert np.array_equal(one[made.table.stratum > 0], own[made.table.stratum > 0])
        assert not np.allclose(one, own)


def test_what_no_weights_can_make_is_said() -> None:
    made = repeat_test({**rows(((40, 10, 10, 40), (20, 30, 20, 130))), "metric": "fnr"})
    with pytest.raises(UnreachableError, match=r"^no weights of units"):
        impose_gap(made.table, made.plan.metric.parts, made.shares(), 1.5)


def test_numbers_of_any_size_are_made_equal() -> None:
    given = data("mean_error")
    for size in (1e-8, 1e8):
        made = repeat_test(
            {**given, "y_true": given["y_true"] * size, "y_pred": given["y_pred"] * size}
        )
        parts = made.plan.metric.parts
        found = impose_gap(made.table, parts, made.shares(), 0.0)
        first, second = (compute_values(made.table, parts, one)[0] for one in found)
        assert abs(first - second) <= 1e-12 * size
