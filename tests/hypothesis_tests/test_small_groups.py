"""Which results say that a group has too few of what its metric counts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm.data.arguments import Inputs
from fairperm.data.reading import read_table
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.plan import Plan
from fairperm.hypothesis_tests.small_groups import (
    MIN_INFLUENTIAL_ROWS,
    InfluentialRows,
    effective_rows,
    labels,
)
from fairperm.metrics import get_metric
from tests.support.auc_designs import few_clusters, few_positives, rare_misses, uneven_weights
from tests.support.helpers import Pair, rows, table

FEW: Pair = ((25, 1, 1, 3), (80, 20, 20, 80))


def effective(metric: str, *strata: Pair) -> Any:
    plan = Plan.choose(get_metric(metric), "auto", "auto")
    comparison = Comparison.of(table(*strata), plan, ("a", "b"), None)
    return effective_rows(comparison, rates=True)


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
        assert n < MIN_INFLUENTIAL_ROWS
        assert f"Only about {n:.0f} rows of group '{name}' show how" in note


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
    with pytest.warns(fairperm.FairpermWarning, match="of group 'a' shows? how matthews_corrcoef"):
        fairperm.omnibus_test(**rows(FEW), metric="mcc", rng=1, n_resamples=99)


def test_what_does_not_vary_at_all() -> None:
    perfect: Pair = ((30, 0, 0, 50), (80, 20, 20, 80))
    with pytest.warns(fairperm.FairpermWarning, match="No row of group 'a' shows how"):
        fairperm.permutation_test(
            **rows(perfect), metric="balanced_accuracy", rng=1, n_resamples=99
        )


def test_clusters_are_counted_as_clusters() -> None:
    given = rows(FEW)
    cluster = np.arange(len(given["y_true"])) // 2  # of two rows; group a has 30
    with pytest.warns(fairperm.FairpermWarning, match="clusters of group 'a' show how"):
        fairperm.permutation_test(
            **given, metric="f1_score", cluster=cluster, rng=1, n_resamples=99
        )


@pytest.mark.parametrize("option", ["sample_weight", "cluster"])
def test_weights_and_clusters_make_tests_of_rates_inexact(option: str) -> None:
    given = rows(FEW)
    option_values: dict[str, Any] = {option: np.arange(len(given["y_true"])) // 2 + 1}
    with pytest.warns(fairperm.FairpermWarning, match="of group 'a' shows? how true_positive_rate"):
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
            label,
            y_score=score,
            sensitive_features=group,
            metric="roc_auc",
            variance="delong",
            n_resamples=99,
            rng=1,
        )
    low, high = result.confidence_interval
    assert low == high == result.difference == (1 - other) / 2
    assert len(result.notes) == 3  # and one for each group, in which no row changes the AUC


def test_an_interval_of_a_rate_needs_no_error() -> None:
    label, group = np.tile([0, 1], 60), np.repeat(["a", "b"], 60)
    result = fairperm.permutation_test(label, label, sensitive_features=group, metric="fpr")
    assert result.standard_error == 0
    assert "standard error" not in " ".join(result.notes)
    assert result.confidence_interval[1] > 0.05


@pytest.mark.parametrize("n_groups", [129, 254])
def test_groups_are_named_rightly_however_many_there_are(n_groups: int) -> None:
    """Numbers of groups in eight bits are not doubled in eight bits."""
    group = np.repeat(np.arange(n_groups), 60)
    y_true = np.tile(np.arange(60) % 2, n_groups)
    y_true[group == 128] = np.arange(60) % 30 == 0
    score = np.random.default_rng(4).random(len(group))
    with pytest.warns(fairperm.FairpermWarning, match="group 128") as caught:
        fairperm.omnibus_test(
            y_true, y_score=score, sensitive_features=group, metric="roc_auc", n_resamples=9, rng=1
        )
    assert all("group 128" in str(one.message) for one in caught)


AUC_ROWS = 400


def auc_rows(seed: int, gap: float = 1.0) -> dict[str, Any]:
    """Return rows of two groups whose scores of positives and negatives are normal."""
    rng = np.random.default_rng(seed)
    label = np.tile([1, 0], AUC_ROWS // 2)
    return {
        "y_true": label,
        "y_score": rng.normal(size=AUC_ROWS) + gap * label,
        "sensitive_features": np.repeat(["a", "b"], [AUC_ROWS // 4, 3 * AUC_ROWS // 4]),
    }


def effective_by_hand(
    label: Any, score: Any, weight: Any = None, cluster: Any = None
) -> tuple[float, Any]:
    """Return the AUC and the effective number, from all pairs of rows.

    With weights or clusters it is at most that of the rows or clusters of each label.
    """
    is_plain = weight is None and cluster is None
    weight = np.ones(len(label)) if weight is None else weight
    cluster = np.arange(len(label)) if cluster is None else cluster
    wins = np.sign(score[:, None] - score) / 2 + 0.5  # of row i over row j
    pairs = np.outer(weight * label, weight * (1 - label))
    auc = (pairs * wins).sum() / pairs.sum()
    by_row = (pairs * (wins - auc)).sum(axis=1) + (pairs * (wins - auc)).sum(axis=0)
    total = np.bincount(np.unique(cluster, return_inverse=True)[1], by_row)
    effective = (total**2).sum() ** 2 / (total**4).sum()
    return auc, effective if is_plain else min(effective, *kish_by_hand(label, weight, cluster))


def kish_by_hand(label: Any, weight: Any, cluster: Any) -> list[float]:
    """Return Kish's effective number of rows or clusters of each label."""
    found = []
    for one in (0, 1):
        size = np.bincount(cluster[label == one], weight[label == one])
        found.append(size.sum() ** 2 / (size**2).sum())
    return found


@pytest.mark.parametrize("option", ["plain", "ties", "sample_weight", "cluster"])
def test_rows_that_matter_to_the_auc(option: str) -> None:
    given, rng = auc_rows(1), np.random.default_rng(2)
    if option == "ties":
        given["y_score"] = np.round(given["y_score"])
    weight = rng.gamma(1, 1, AUC_ROWS) if option == "sample_weight" else None
    cluster = np.arange(AUC_ROWS) // 4 if option == "cluster" else None
    plan = Plan.choose(
        get_metric("roc_auc"),
        "auto",
        "auto",
        weighted=weight is not None,
        clustered=cluster is not None,
    )
    inputs = Inputs(**given, sample_weight=weight, cluster=cluster)
    comparison = Comparison.of(read_table(inputs, plan.metric), plan, ("a", "b"), None)
    found = effective_rows(comparison)[0]
    for name, n in zip(("a", "b"), found, strict=True):
        mine = given["sensitive_features"] == name
        columns = (given["y_true"], given["y_score"], weight, cluster)
        one = [None if column is None else column[mine] for column in columns]
        assert n == pytest.approx(effective_by_hand(*one)[1])


@pytest.mark.parametrize("option", ["sample_weight", "cluster", "sample_weight in strata"])
def test_a_row_or_cluster_that_makes_the_auc_limits_the_number_of_rows(option: str) -> None:
    """All positives have one component, and no influence: 80 negatives are as good as 34."""
    label = np.tile(np.repeat([1, 0], [20, 80]), 2)
    score = np.tile(np.repeat([1, 2, 0], [20, 20, 60]), 2)
    group, row = np.repeat(["a", "b"], 100), np.arange(200)
    given: dict[str, Any] = {"y_true": label, "y_score": score, "sensitive_features": group}
    if option == "cluster":
        given["cluster"] = np.where(row < 15, 0, row)
        expected = 20**2 / (15**2 + 5)
    else:
        given["sample_weight"] = np.where(row == 0, 1000.0, 1.0)
        expected = 1019**2 / (1000**2 + 19)
    if "strata" in option:
        given = {name: np.tile(column, 2) for name, column in given.items()}
        given["sample_weight"][200:] = 1.0
        given["control_features"] = np.repeat([0, 1], 200)
        expected = (1 / expected + 1 / 20) ** 2 / (1 / expected**3 + 1 / 20**3)
    plan = Plan.choose(get_metric("roc_auc"), "auto", "auto", weighted=True)
    comparison = Comparison.of(read_table(Inputs(**given), plan.metric), plan, ("a", "b"), None)
    assert effective_rows(comparison)[0, 0] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(8))
def test_an_auc_whose_variance_shows_enough_rows_has_them(seed: int) -> None:
    """Not counting them changes nothing: the bound is below the effective number."""
    rng, n_rows = np.random.default_rng(seed), 3_000 * 5 ** (seed % 2)
    label = (rng.random(n_rows) < rng.uniform(0.2, 0.5)).astype(int)
    inputs = Inputs(
        y_true=label,
        y_score=np.round(rng.normal(size=n_rows) + rng.uniform(0, 3) * label, seed % 3),
        sensitive_features=np.tile(["a", "a", "b"], n_rows // 3),
    )
    plan = Plan.choose(get_metric("roc_auc"), "auto", "auto")
    comparison = Comparison.of(read_table(inputs, plan.metric), plan, ("a", "b"), None)
    observed = comparison.engine(plan.variance).observed(0)
    variance, n = observed.variance.min(), labels(comparison).min()
    assert variance * n * (n - 1) / 4 <= effective_rows(comparison).min()
    found = InfluentialRows.count(comparison, plan, observed).effective
    assert np.isinf(found).all() == (variance * n * (n - 1) / 4 >= MIN_INFLUENTIAL_ROWS)


def test_strata_with_one_row_of_each_label_count_as_rows() -> None:
    """The AUC of such a stratum is 0 or 1, as one outcome of a rate."""
    score = np.array([[2, 1, 3, 0]] * 15 + [[1, 2, 3, 0]] * 5 + [[3, 0, 1, 2]] * 10)
    columns: dict[str, Any] = {"y_true": np.tile([1, 0], 60), "y_score": score.ravel()}
    inputs = Inputs(
        **columns,
        sensitive_features=np.tile(["a", "a", "b", "b"], 30),
        control_features=np.repeat(np.arange(30), 4),
    )
    plan = Plan.choose(get_metric("roc_auc"), "auto", "auto", stratified=True)
    found = effective_rows(Comparison.of(read_table(inputs, plan.metric), plan, ("a", "b"), None))
    for share, n in zip((25 / 30, 20 / 30), found[0], strict=True):
        influence = np.repeat([1 - share, share], [round(30 * share), round(30 * (1 - share))])
        assert n == pytest.approx((influence**2).sum() ** 2 / (influence**4).sum())


def strata_of_errors(sizes: list[tuple[int, int]], seed: int = 6) -> dict[str, Any]:
    """Return errors of strata that have so many rows of each group."""
    stratum = np.repeat(np.arange(len(sizes)), [sum(pair) for pair in sizes])
    group = np.concatenate([np.repeat(["a", "b"], pair) for pair in sizes])
    error = np.random.default_rng(seed).normal(size=len(group)) ** 3 + 10 * stratum
    return {
        "y_true": 0 * error,
        "y_pred": error,
        "sensitive_features": group,
        "control_features": stratum,
    }


def effective_in_strata(given: dict[str, Any]) -> Any:
    plan = Plan.choose(get_metric("mean_error"), "auto", "auto", stratified=True)
    comparison = Comparison.of(
        read_table(Inputs(**given), plan.metric),
        plan,
        tuple(np.unique(given["sensitive_features"])),
        None,
    )
    return effective_rows(comparison)[0].tolist()


def test_rows_that_matter_to_a_mean_count_by_the_share_of_their_stratum() -> None:
    """Three rows of a group make half of the gap; a stratum without the other group makes none."""
    sizes = [(3, 40), (40, 3)]
    given, expected = strata_of_errors([*sizes, (30, 0)]), []
    for group in ("a", "b"):
        influences = []
        for stratum in range(len(sizes)):
            mine = (given["sensitive_features"] == group) & (given["control_features"] == stratum)
            error = given["y_pred"][mine]
            influences.append((error - error.mean()) / len(error))  # shares of strata are equal
        squares = np.concatenate(influences) ** 2
        expected.append(squares.sum() ** 2 / (squares**2).sum())
    assert max(expected) < 5
    assert effective_in_strata(given) == pytest.approx(expected)


def test_strata_with_one_row_of_a_group_count_as_rows() -> None:
    """Pairs, of which all that the two rows have in common cancels."""
    given = strata_of_errors([(1, 1)] * 30)
    gap = given["y_pred"][::2] - given["y_pred"][1::2]
    squares = (gap - gap.mean()) ** 2
    n = squares.sum() ** 2 / (squares**2).sum()
    assert effective_in_strata(given) == pytest.approx([n, n])


@pytest.mark.parametrize("setting", [rare_misses, uneven_weights, few_clusters, few_positives])
@pytest.mark.parametrize("seed", range(5))
def test_few_placements_are_noted(setting: Any, seed: int) -> None:
    """With DeLong's own error these reject 0.11 to 0.23 at nominal level 0.05."""
    given = {"n_resamples": 19, **setting(np.random.default_rng(seed))}
    with pytest.warns(fairperm.FairpermWarning, match="of group 0 shows? how roc_auc"):
        fairperm.permutation_test(**given, rng=1)


@pytest.mark.parametrize("seed", range(5))
def test_placements_that_suffice_are_not_noted(seed: int) -> None:
    """Here the level is right: an AUC of 0.85 with 60 positives and 60 negatives in a group."""
    rng = np.random.default_rng(seed)
    label = np.tile([1, 0], 120)
    result = fairperm.permutation_test(
        label,
        y_score=rng.normal(size=240) + 1.466 * label,
        sensitive_features=np.arange(240) // 120,
        metric="roc_auc",
        n_resamples=19,
        rng=1,
    )
    assert result.notes == ()


@pytest.mark.parametrize(
    ("apart", "alternative", "n_notes"),
    [(5, "less", 1), (5, "two-sided", 1), (5, "symmetric", 0), (1, "two-sided", 0)],
)
def test_outcomes_far_apart_are_noted_in_tests_of_r2_by_their_tails(
    apart: float, alternative: Any, n_notes: int
) -> None:
    """Five standard deviations apart, 200 against 2,000 rows: 0.065 to 0.077 at level 0.05.

    Two-sided 0.066, and symmetric 0.041 (of 700 data sets).
    """
    rng = np.random.default_rng(1)
    group = np.repeat([0, 1], [200, 1000])
    outcome = rng.normal(size=1200) + apart * group
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        result = fairperm.permutation_test(
            outcome,
            outcome + rng.normal(size=1200),
            sensitive_features=group,
            metric="r2_score",
            alternative=alternative,
            n_resamples=19,
            rng=1,
        )
    assert len(result.notes) == n_notes
    assert all("standard deviations apart: permuted values" in note for note in result.notes)


def unseen_by_hand(label: Any, auc: float, weight: Any, cluster: Any) -> float:
    """Return what one more row or cluster of each label would add at most to the variance."""
    return sum((max(auc, 1 - auc) / n) ** 2 for n in kish_by_hand(label, weight, cluster))


UNITS = ("sample_weight", "cluster")


def few_rows(option: str) -> dict[str, Any]:
    """Return 28 rows, 14 a group, which make about 2 to 9 influential ones in each."""
    rng = np.random.default_rng(5)
    label, cluster = np.tile([1, 0, 0, 1], 7), np.arange(28) // 2
    given = {
        "y_true": label,
        "y_score": rng.normal(size=28) + 1.5 * label,
        "sensitive_features": np.repeat(["a", "b"], 14),
    }
    if "weight" in option:
        given["sample_weight"] = rng.gamma(1, 1, 28)
    if "cluster" in option:
        given["cluster"] = cluster
    return given


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("limit", [False, True])
@pytest.mark.parametrize("option", ["plain", "weight", "cluster", "weight and cluster"])
def test_few_influential_rows_widen_the_error_of_an_auc(option: str, limit: bool) -> None:
    """V (1 + (3/e)² − (3/20)²) + (largest influence of one more)²/(1 + e)³, from all pairs."""
    given = few_rows(option)
    options: dict[str, Any] = {"metric": "roc_auc", "n_resamples": 0 if limit else 99, "rng": 1}
    wide = fairperm.permutation_test(**given, **options)
    plain = fairperm.permutation_test(**given, **options, variance="delong")
    for group in ("a", "b"):
        mine = given["sensitive_features"] == group
        label, score = given["y_true"][mine], given["y_score"][mine]
        units = [given[name][mine] if name in given else None for name in UNITS]
        auc, e = effective_by_hand(label, score, *units)
        weight = given.get("sample_weight", np.ones(28))[mine]
        cluster = given.get("cluster", np.arange(28))[mine]
        assert e < 10
        variance = plain.standard_errors[group] ** 2
        if option != "plain" or limit:
            variance *= 1 + 9 / e**2 - 9 / 20**2
        variance += unseen_by_hand(label, auc, weight, cluster) / (1 + e) ** 3
        assert wide.standard_errors[group] ** 2 == pytest.approx(variance)
    assert wide.standard_error == pytest.approx(np.hypot(*wide.standard_errors.values()))
    assert wide.statistic == pytest.approx(wide.difference / wide.standard_error)
    assert wide.pvalue >= plain.pvalue
    assert np.array_equal(wide.null_distribution, plain.null_distribution)
    assert all("unreliable, even widened" in note for note in wide.notes)
    assert all("unreliable, and" in note for note in plain.notes)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_few_influential_rows_widen_an_auc_in_strata_as_in_one() -> None:
    """Two strata of the same rows have half the variance of one; one more row a quarter."""
    given = few_rows("plain")
    twice: dict[str, Any] = {name: np.tile(column, 2) for name, column in given.items()}
    options: dict[str, Any] = {"metric": "roc_auc", "n_resamples": 9, "rng": 1}
    result = fairperm.permutation_test(**twice, control_features=np.arange(56) // 28, **options)
    plain = fairperm.permutation_test(**given, **options, variance="delong")
    expected = 0.0
    for group in ("a", "b"):
        mine = given["sensitive_features"] == group
        label = given["y_true"][mine]
        auc, e = effective_by_hand(label, given["y_score"][mine])
        extra = unseen_by_hand(label, auc, np.ones(14), np.arange(14)) / 4 / (1 + 2 * e) ** 3
        expected += plain.standard_errors[group] ** 2 / 2 + extra * (2 * e < 10)
    assert result.standard_error**2 == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_single_clusters_have_the_variance_between_strata() -> None:
    """One cluster of each group in every stratum: the paired test of the clusters' means."""
    rows = strata_of_errors([(1, 1)] * 9)
    given: dict[str, Any] = {name: np.repeat(one, 2) for name, one in rows.items()}
    options: dict[str, Any] = {"metric": "mean_error", "n_resamples": 19, "rng": 1}
    result = fairperm.permutation_test(**given, cluster=np.arange(36) // 2, **options)
    gap = given["y_pred"][::4] - given["y_pred"][2::4]
    assert result.standard_error**2 == pytest.approx(gap.var(ddof=1) / 9)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_groups_without_a_miss_have_an_error_and_an_interval() -> None:
    """One more row, missed, would have moved each group's AUC by 1/30."""
    label, group = np.tile([0, 1], 60), np.repeat(["a", "b"], 60)
    result = fairperm.permutation_test(
        label, y_score=label, sensitive_features=group, metric="roc_auc", n_resamples=0
    )
    assert result.standard_errors == pytest.approx(dict.fromkeys("ab", np.sqrt(2) / 30))
    assert result.confidence_interval == pytest.approx((-1.96 / 15, 1.96 / 15), rel=1e-4)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("option", ["plain", "cluster"])
def test_few_influential_rows_widen_the_omnibus_test(option: str) -> None:
    given = few_rows(option)
    if option == "cluster":
        given |= {"y_pred": 0 * given["y_score"], "y_true": given.pop("y_score")}
    metric = "roc_auc" if option == "plain" else "mean_error"
    options: dict[str, Any] = {"metric": metric, "n_resamples": 99, "rng": 1}
    wide = fairperm.omnibus_test(**given, **options)
    gap = fairperm.permutation_test(**given, **options, scheme="pooled")
    assert wide.statistic == pytest.approx(gap.statistic**2)
    assert wide.standard_errors == pytest.approx(gap.standard_errors)


@pytest.mark.parametrize("label", [0, 1])
def test_the_normal_limit_of_an_average_precision_needs_them_of_both_labels(label: int) -> None:
    """A heavy positive or negative decides it; the errors of an AUC and of means allow for it."""
    rng = np.random.default_rng(1)
    y_true = np.tile([label, 1 - label], 60)
    given: dict[str, Any] = {"y_true": y_true, "y_score": y_true + rng.normal(size=120)}
    given |= {"sensitive_features": np.repeat(["a", "b"], 60), "n_resamples": 0}
    given["sample_weight"] = np.where(np.arange(120) == 0, 1000.0, 1.0)
    with pytest.raises(fairperm.UndefinedMetricError, match=r"got 0 with 1\.1 in group 'a'"):
        fairperm.permutation_test(**given, metric="average_precision")
    for metric in ("roc_auc", "balance_positive_class", "balance_negative_class"):
        assert fairperm.permutation_test(**given, metric=metric).pvalue > 0.05


def median_error(y_true: Any, y_pred: Any) -> float:
    return float(np.median(np.abs(y_true - y_pred)))


def rounded_errors(step: float, n: int = 360) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    error = rng.normal(size=(2, n))
    if step:
        error = step * np.round(error / step)
    return {
        "y_true": np.zeros(n),
        "y_pred": error[0],
        "sensitive_features": np.repeat(["a", "b"], [60, n - 60]),
        "metric": median_error,
        "n_resamples": 199,
        "rng": 1,
    }


def of_ties(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if "one and the same value" in note]


TIES = r"has one and the same value in .* % of the bootstrap samples of group '[ab]'"


@pytest.mark.filterwarnings("ignore:Strata are small")
@pytest.mark.parametrize("strata", [1, 2])
@pytest.mark.parametrize("variance", ["auto", "bootstrap"])
def test_tied_bootstrap_values_are_noted(variance: Any, strata: int) -> None:
    given = rounded_errors(0.5) | {"variance": variance}
    if variance == "bootstrap":
        given |= {"n_resamples": 9, "n_bootstrap": 50}
    with pytest.warns(fairperm.FairpermWarning, match=TIES):
        result = fairperm.permutation_test(
            **given, control_features=np.arange(360) % strata if strata > 1 else None
        )
    (note,) = of_ties(result.notes)
    assert note in result.to_dict()["notes"]
    assert note in " ".join(repr(result).split())


def test_untied_few_and_unused_bootstrap_values_are_not_noted() -> None:
    assert of_ties(fairperm.permutation_test(**rounded_errors(0)).notes) == []
    few = rounded_errors(0.5) | {"n_resamples": 19}
    assert of_ties(fairperm.permutation_test(**few).notes) == []
    plain = rounded_errors(0.5) | {"variance": None}  # nothing is divided by a bootstrap error
    assert of_ties(fairperm.permutation_test(**plain).notes) == []


def test_tied_bootstrap_values_are_noted_wherever_functions_are_tested() -> None:
    given = rounded_errors(0.5)
    new, third = rounded_errors(1.0)["y_pred"], np.arange(360) % 3
    with pytest.warns(fairperm.FairpermWarning, match="one and the same value"):
        results: list[Any] = [
            fairperm.omnibus_test(**given | {"sensitive_features": third}),
            fairperm.compare_models(**given, y_pred_new=new),
            fairperm.compare_periods(**given, period=third > 0),
        ]
    for result in results:
        assert len(of_ties(result.notes)) == 1
    assert results[1].notes[0].startswith("The change in median_error has")
    given["metrics"] = given.pop("metric")
    with pytest.warns(fairperm.FairpermWarning, match="one and the same value"):
        audit = fairperm.audit(**given)
    assert of_ties(audit.notes)
    assert "one and the same value" in audit.to_html()
