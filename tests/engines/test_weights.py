"""Weights and clusters: right values, right variances, and whole clusters that move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fairperm
from fairperm.data.arguments import Inputs
from fairperm.data.reading import read_table
from fairperm.errors import InputError
from fairperm.metrics import get_metric

Floats = NDArray[np.float64]

N_CLUSTERS = 150


class Data:
    """Rows in clusters of three that have something in common, with weights."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.cluster = np.repeat(np.arange(N_CLUSTERS), 3)
        n = len(self.cluster)
        self.group = (rng.random(N_CLUSTERS) < 0.4).astype(int)[self.cluster]
        self.common = rng.normal(size=N_CLUSTERS)[self.cluster]
        self.y_true = (self.common + rng.normal(size=n) > 0).astype(int)
        self.y_score = np.round(self.y_true + 0.7 * self.common + rng.normal(size=n), 1)
        self.y_pred = (self.y_score > 0.5).astype(int)
        self.weight = rng.uniform(0.5, 3, n)

    def test(self, metric: Any, **options: Any) -> fairperm.PermutationTestResult:
        columns = {"roc_auc": "y_score", "mean_squared_error": "y_score"}
        second = getattr(self, columns.get(str(metric), "y_pred"))
        name = "y_score" if metric == "roc_auc" else "y_pred"
        return fairperm.permutation_test(
            self.y_true,
            **{name: second},
            sensitive_features=self.group,
            metric=metric,
            rng=1,
            **{"n_resamples": 99, **options},
        )


def value_by_hand(metric: str, data: Data, rows: NDArray[Any], weight: Floats) -> float:
    y, score, pred = data.y_true[rows], data.y_score[rows], data.y_pred[rows]
    if metric == "false_negative_rate":
        return float((weight * (y == 1) * (pred == 0)).sum() / (weight * (y == 1)).sum())
    if metric == "accuracy":
        return float((weight * (y == pred)).sum() / weight.sum())
    if metric == "mean_squared_error":
        return float((weight * (y - score) ** 2).sum() / weight.sum())
    wins = (score[:, None] > score) + 0.5 * (score[:, None] == score)
    pairs = weight[:, None] * weight * (y[:, None] == 1) * (y == 0)
    return float((wins * pairs).sum() / pairs.sum())


METRICS = ["false_negative_rate", "accuracy", "mean_squared_error", "roc_auc"]


@pytest.mark.parametrize("metric", METRICS)
def test_weighted_values_are_those_of_the_formulas(metric: str) -> None:
    data = Data()
    result = data.test(metric, sample_weight=data.weight)
    for group, value in result.values.items():
        rows = np.flatnonzero(data.group == group)
        assert value == pytest.approx(
            value_by_hand(metric, data, rows, data.weight[rows]), rel=1e-12
        )


@pytest.mark.validate
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("clustered", [False, True], ids=["rows", "clusters"])
def test_errors_are_those_of_a_bootstrap(metric: str, clustered: bool) -> None:
    """Against 4,000 bootstrap samples (of clusters), whose deviation is known to about 1.1 %."""
    data = Data()
    options = {"cluster": data.cluster} if clustered else {}
    variance_name = "delong" if metric == "roc_auc" else "delta"
    result = data.test(metric, sample_weight=data.weight, variance=variance_name, **options)
    rng = np.random.default_rng(7)
    unit = data.cluster if clustered else np.arange(len(data.group))
    variance = 0.0
    for group in (0, 1):
        units = np.unique(unit[data.group == group])
        rows_of = [np.flatnonzero(unit == one) for one in units]
        values = []
        for _ in range(4000):
            drawn = rng.integers(len(units), size=len(units))
            rows = np.concatenate([rows_of[i] for i in drawn])
            values.append(value_by_hand(metric, data, rows, data.weight[rows]))
        variance += float(np.var(values, ddof=1))
    # 5 %: four and a half deviations of the bootstrap's own error, for the delta method's bias none
    assert result.standard_error == pytest.approx(np.sqrt(variance), rel=0.05)


def test_whole_clusters_move() -> None:
    """Six clusters, two of them in A: the 15 ways to choose two are all there are."""
    cluster = np.repeat(np.arange(6), 4)
    y_pred = (np.arange(24) % 4 < np.repeat([0, 1, 2, 3, 4, 2], 4)).astype(int)
    group = np.repeat([0, 0, 1, 1, 1, 1], 4)
    result = fairperm.permutation_test(
        np.ones(24, int),
        y_pred,
        sensitive_features=group,
        cluster=cluster,
        metric="selection_rate",
        variance=None,
    )
    totals = np.array([0, 1, 2, 3, 4, 2])
    pairs = [(i, j) for i in range(6) for j in range(i)]
    gaps = [abs((totals[i] + totals[j]) / 8 - (12 - totals[i] - totals[j]) / 16) for i, j in pairs]
    assert result.exact
    assert result.pvalue == pytest.approx(np.mean(np.array(gaps) >= gaps[0] - 1e-12), rel=1e-12)


def weighted_accuracy(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
    return np.average(y_true == y_pred, weights=sample_weight)


@pytest.mark.parametrize("weighted", [False, True], ids=["alone", "weighted"])
def test_clusters_of_a_function_are_those_of_a_metric(weighted: bool) -> None:
    """Two samples of 1,999 draws of one p-value: four standard errors of their difference."""
    data = Data()
    options: dict[str, Any] = {"cluster": data.cluster, "variance": None, "n_resamples": 1999}
    if weighted:
        options["sample_weight"] = data.weight
    ours = data.test("accuracy", **options)
    theirs = data.test(weighted_accuracy, **options)
    assert theirs.values == pytest.approx(ours.values, rel=1e-12)
    error = np.sqrt(2 * ours.pvalue * (1 - ours.pvalue) / 2000)
    assert abs(theirs.pvalue - ours.pvalue) < 4 * error
    order = np.random.default_rng(3).permutation(len(data.group))
    for name in ("y_true", "y_pred", "group", "weight", "cluster"):
        setattr(data, name, getattr(data, name)[order])
    options["cluster"] = [f"person {(7 * one) % N_CLUSTERS}" for one in data.cluster]
    if weighted:
        options["sample_weight"] = data.weight
    assert data.test(weighted_accuracy, **options).pvalue == theirs.pvalue


def test_clusters_that_span_groups_are_split_on_request() -> None:
    data = Data()
    data.group[::50] = 1 - data.group[::50]
    with pytest.raises(InputError, match=r"with rows of 0, 1, and 8 more clusters like it\. Use"):
        data.test("accuracy", cluster=data.cluster)
    parts = [f"{one} {group}" for one, group in zip(data.cluster, data.group, strict=True)]
    expected = data.test("accuracy", cluster=parts)
    found = data.test("accuracy", cluster=data.cluster, split_clusters=True)
    assert (found.pvalue, found.counts) == (expected.pvalue, expected.counts)
    n_split = len(set(parts)) - len({*data.cluster.tolist()})
    assert n_split == 9
    note = "9 clusters have rows of several groups; the rows of each are a cluster of their own."
    assert found.notes == (*expected.notes, note)
    with pytest.raises(InputError, match=r"^split_clusters needs cluster\.$"):
        data.test("accuracy", split_clusters=True)


def test_all_other_groups_are_one_group_of_split_clusters() -> None:
    """Rows of two other groups that share a cluster stay together against the rest."""
    table = read_table(
        Inputs(
            y_pred=[0, 1, 1, 0],
            sensitive_features=list("abca"),
            cluster=[1, 2, 2, 2],
            split_clusters=True,
        ),
        get_metric("selection_rate"),
    )
    rest = table.against_rest("a", "others")
    assert table.cluster is not None
    assert rest.cluster is not None
    assert len(np.unique(table.cluster)) == 4
    assert len(np.unique(rest.cluster)) == 3
    assert len(np.unique(rest.cluster[rest.group == 1])) == 1


def test_clusters_that_span_strata() -> None:
    data = Data()
    stratum = np.arange(len(data.group)) % 2
    with pytest.raises(InputError, match=r"cluster must keep to one stratum.*got cluster 0 with"):
        data.test("accuracy", cluster=data.cluster, control_features=stratum)


@pytest.mark.parametrize("scheme", ["denominator", "within_label"])
def test_clusters_move_whatever_their_labels(scheme: str) -> None:
    data = Data()
    with pytest.raises(InputError, match="scheme must be 'pooled' with cluster; got"):
        data.test("false_negative_rate", cluster=data.cluster, scheme=scheme)


@pytest.mark.parametrize("variance", ["score", "wald"])
def test_variances_of_plain_rates_do_not_fit_weights(variance: str) -> None:
    data = Data()
    with pytest.raises(InputError, match=r"variance must be .* for accuracy with weights or"):
        data.test("accuracy", sample_weight=data.weight, variance=variance)


@pytest.mark.parametrize("given", ["weight", "cluster"])
def test_a_bootstrapped_error_is_that_of_resampled_people(given: str) -> None:
    """Two standard deviations of 400 draws each differ by 5 %: allowed are four times that."""
    data, rng, n = Data(3), np.random.default_rng(4), 400
    options = {"sample_weight" if given == "weight" else "cluster": getattr(data, given)}
    result = data.test(
        "roc_auc", variance="bootstrap", n_bootstrap=n, **{**options, "n_resamples": 9}
    )
    person = data.cluster if given == "cluster" else np.arange(len(data.cluster))
    weight = data.weight if given == "weight" else np.ones(len(person))
    rows_of = [np.flatnonzero(person == one) for one in range(person[-1] + 1)]
    for group in (0, 1):
        mine = np.unique(person[data.group == group])
        drawn = [
            np.concatenate([rows_of[k] for k in rng.choice(mine, len(mine))]) for _ in range(n)
        ]
        values = [value_by_hand("roc_auc", data, rows, weight[rows]) for rows in drawn]
        assert result.standard_errors[group] == pytest.approx(np.std(values, ddof=1), rel=0.2)


@pytest.mark.parametrize("level", [1e5, 1e7, 1e9])
@pytest.mark.parametrize("design", ["weights", "clusters", "both", "strata", "three groups"])
def test_outcomes_far_from_zero_keep_their_digits(design: str, level: float) -> None:
    """Centred only after weighting, squares of 10⁷ would leave no digit of a spread of 1."""
    rng = np.random.default_rng(3)
    n = 240
    group = np.array(["a", "b", "c"] if design == "three groups" else ["a", "b"])[
        rng.integers(3 if design == "three groups" else 2, size=n)
    ]
    outcome = rng.normal(size=n) + 0.4 * (group == "a")
    columns: dict[str, Any] = {"sensitive_features": group, "metric": "mean_outcome"}
    if design != "clusters":
        columns["sample_weight"] = rng.uniform(1, 5, n)
    if design in {"clusters", "both"}:
        columns["cluster"] = np.char.add(group, (np.arange(n) // 3).astype(str))
    if design == "strata":
        columns["control_features"] = np.arange(n) % 3
    test = fairperm.omnibus_test if design == "three groups" else fairperm.permutation_test
    near, far = (test(outcome + shift, **columns, n_resamples=99, rng=1) for shift in (0.0, level))
    assert far.statistic == pytest.approx(near.statistic, rel=1e-13 * level)
    assert far.pvalue == pytest.approx(near.pvalue, abs=0.1)  # other rows are drawn


def test_scores_far_from_zero_keep_their_digits() -> None:
    """Of the positives only: a row's label weighs its score."""
    rng = np.random.default_rng(4)
    label, group = rng.random(200) < 0.4, np.repeat(["a", "b"], 100)
    score = rng.normal(size=200) + 0.4 * (group == "a")
    near, far = (
        fairperm.permutation_test(
            label,
            y_score=score + shift,
            sensitive_features=group,
            metric="mean_score_positives",
            n_resamples=99,
            rng=1,
        )
        for shift in (0.0, 1e7)
    )
    assert far.statistic == pytest.approx(near.statistic, rel=1e-6)
    assert far.pvalue == pytest.approx(near.pvalue, abs=0.1)
