"""Which results say that a group has too few of what its metric counts, and what they add to it."""

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
    count_influential,
    labels,
)
from fairperm.metrics import get_metric
from tests.support.auc_designs import few_clusters, few_positives, rare_misses, uneven_weights
from tests.support.helpers import Pair, rows

FEW: Pair = ((25, 1, 1, 3), (80, 20, 20, 80))
UNITS = ("sample_weight", "cluster")


def effective(metric: str, **given: Any) -> Any:
    """Return the effective number of each group."""
    inputs = Inputs(**given)
    plan = Plan.choose(
        get_metric(metric),
        "auto",
        "auto",
        weighted=inputs.sample_weight is not None,
        clustered=inputs.cluster is not None,
        stratified=inputs.control_features is not None,
    )
    groups = tuple(np.unique(given["sensitive_features"]))
    comparison = Comparison.of(read_table(inputs, plan.metric), plan, groups, None)
    (found,) = count_influential(comparison, rates=True)
    return found.effective


def of_influences(influence: Any) -> float:
    squares = np.square(influence)
    return float(squares.sum() ** 2 / (squares**2).sum())


def noted(**given: Any) -> tuple[str, ...]:
    """Return the notes of a test, which warns of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        return fairperm.permutation_test(**{"n_resamples": 99, "rng": 1, **given}).notes


# -- Effective numbers -----------------------------------------------------------------------------


def test_rows_of_tables_matter_by_their_influences() -> None:
    """By hand: of F1, d/dtp = 2(fp + fn)/D² and d/dfp = d/dfn = −2tp/D², and tn has none."""
    expected = [
        of_influences([2 * (fp + fn)] * tp + [-2 * tp] * (fp + fn)) for _, fp, fn, tp in FEW
    ]
    assert effective("f1_score", **rows(FEW)) == pytest.approx(expected)
    alike: Pair = ((25, 25, 25, 25), (10, 10, 10, 10))
    assert effective("balanced_accuracy", **rows(alike)) == pytest.approx([100, 40])
    certain: Pair = ((30, 0, 0, 50), (30, 20, 20, 30))
    assert effective("f1_score", **rows(certain))[0] == 0


AUC_ROWS = 400


def auc_rows(seed: int) -> dict[str, Any]:
    """Return rows of two groups whose scores of positives and negatives are normal."""
    rng, label = np.random.default_rng(seed), np.tile([1, 0], AUC_ROWS // 2)
    group = np.repeat(["a", "b"], [AUC_ROWS // 4, 3 * AUC_ROWS // 4])
    score = rng.normal(size=AUC_ROWS) + label
    return {"y_true": label, "y_score": score, "sensitive_features": group}


def of_auc(label: Any, score: Any, weight: Any = None, cluster: Any = None) -> tuple[float, Any]:
    """Return the AUC and the influence of each row or cluster, from all pairs of rows.

    With weights or clusters it is, by label, that of leaving the unit out, times √((n − 1)/n).
    """
    is_plain = weight is None and cluster is None
    weight = np.ones(len(label)) if weight is None else weight
    cluster = np.arange(len(label)) if cluster is None else cluster
    wins = np.sign(score[:, None] - score) / 2 + 0.5  # of row i over row j
    pairs = np.outer(weight * label, weight * (1 - label))
    auc = (pairs * wins).sum() / pairs.sum()
    unit = np.unique(cluster, return_inverse=True)[1]
    found: Any = 0.0
    for one, axis in ((1, 1), (0, 0)):
        of_row = (pairs * (wins - auc)).sum(axis=axis) / pairs.sum()
        share = np.bincount(unit, weight * (label == one)) / weight[label == one].sum()
        n = (share > 0).sum()
        alone = 1 if is_plain else np.sqrt((n - 1) / n) / (1 - share)
        found = found + np.bincount(unit, of_row) * alone
    return auc, found


@pytest.mark.parametrize("option", ["plain", "ties", "sample_weight", "cluster"])
def test_rows_that_matter_to_the_auc(option: str) -> None:
    given, rng = auc_rows(1), np.random.default_rng(2)
    if option == "ties":
        given["y_score"] = np.round(given["y_score"])
    units = {"sample_weight": rng.gamma(1, 1, AUC_ROWS), "cluster": np.arange(AUC_ROWS) // 4}
    chosen = {name: units[name] for name in UNITS if name == option}
    for name, n in zip(("a", "b"), effective("roc_auc", **given, **chosen), strict=True):
        mine = given["sensitive_features"] == name
        columns = (given["y_true"], given["y_score"], *map(chosen.get, UNITS))
        one = [None if column is None else column[mine] for column in columns]
        assert n == pytest.approx(of_influences(of_auc(*one)[1]))


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision", "mean_outcome"])
def test_a_row_with_most_of_the_weight_leaves_few_that_matter(metric: str) -> None:
    given = auc_rows(1)
    given["sample_weight"] = np.where(np.arange(AUC_ROWS) == 0, 1000.0, 1.0)
    if metric == "mean_outcome":
        given["y_true"] = given.pop("y_score")
    first, second = effective(metric, **given)
    assert first < 2 < 10 < second


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
    (every,) = count_influential(comparison, rates=False)
    assert variance * n * (n - 1) / 4 <= every.effective.min()
    found = InfluentialRows.count(comparison, plan, observed).effective
    assert np.isinf(found).all() == (variance * n * (n - 1) / 4 >= MIN_INFLUENTIAL_ROWS)


def strata_of_errors(sizes: list[tuple[int, int]], seed: int = 6) -> dict[str, Any]:
    """Return errors of strata that have so many rows of each group."""
    stratum = np.repeat(np.arange(len(sizes)), [sum(pair) for pair in sizes])
    group = np.concatenate([np.repeat(["a", "b"], pair) for pair in sizes])
    error = np.random.default_rng(seed).normal(size=len(group)) ** 3 + 10 * stratum
    columns = {"y_true": 0 * error, "y_pred": error}
    return {**columns, "sensitive_features": group, "control_features": stratum}


def test_strata_count_by_their_shares() -> None:
    """Three rows of a group make half of the gap; a stratum without the other group makes none."""
    given, expected = strata_of_errors([(3, 40), (40, 3), (30, 0)]), []
    for group in ("a", "b"):
        errors = [
            given["y_pred"][
                (given["sensitive_features"] == group) & (given["control_features"] == stratum)
            ]
            for stratum in range(2)
        ]  # the shares of strata are equal
        expected.append(of_influences(np.concatenate([(e - e.mean()) / len(e) for e in errors])))
    assert max(expected) < 5
    assert effective("mean_error", **given) == pytest.approx(expected)
    one = auc_rows(3)
    both: dict[str, Any] = {name: np.tile(column, 2) for name, column in one.items()}
    both["control_features"] = np.repeat([0, 1], AUC_ROWS)
    assert effective("roc_auc", **both) == pytest.approx(2 * effective("roc_auc", **one))


def test_strata_with_one_unit_of_a_group_count_as_units() -> None:
    """Pairs, of which all that the two rows have in common cancels: their gaps vary."""
    given = strata_of_errors([(1, 1)] * 30)
    gap = given["y_pred"][::2] - given["y_pred"][1::2]
    assert effective("mean_error", **given) == pytest.approx([of_influences(gap - gap.mean())] * 2)
    score = np.array([[2, 1, 3, 0]] * 15 + [[1, 2, 3, 0]] * 5 + [[3, 0, 1, 2]] * 10)
    pairs = {"y_true": np.tile([1, 0], 60), "y_score": score.ravel()}
    gap = np.repeat([0, -1, 1], [15, 5, 10])  # of AUCs of 0 and 1
    found = effective(
        "roc_auc",
        **pairs,
        sensitive_features=np.tile(["a", "a", "b", "b"], 30),
        control_features=np.repeat(np.arange(30), 4),
    )
    assert found == pytest.approx([of_influences(gap - gap.mean())] * 2)


def test_single_clusters_have_the_variance_between_strata() -> None:
    """One cluster of each group in every stratum: the paired test of the clusters' means."""
    one = strata_of_errors([(1, 1)] * 9)
    given: dict[str, Any] = {name: np.repeat(column, 2) for name, column in one.items()}
    options: dict[str, Any] = {"metric": "mean_error", "n_resamples": 19, "rng": 1}
    with pytest.warns(fairperm.FairpermWarning, match="clusters of group"):
        result = fairperm.permutation_test(**given, cluster=np.arange(36) // 2, **options)
    gap = given["y_pred"][::4] - given["y_pred"][2::4]
    assert result.standard_error**2 == pytest.approx(gap.var(ddof=1) / 9)


# -- Notes -----------------------------------------------------------------------------------------


def test_every_small_group_is_noted_with_its_number() -> None:
    rng = np.random.default_rng(1)
    error, group = rng.normal(size=50), np.repeat(["a", "b"], [30, 20])
    with pytest.warns(fairperm.FairpermWarning, match="standard error is unreliable") as caught:
        result = fairperm.permutation_test(
            np.zeros(50), error, sensitive_features=group, metric="mean_squared_error", rng=1
        )
    assert len(caught) == len(result.notes) == 2
    for name, note in zip(("a", "b"), result.notes, strict=True):
        squares = error[group == name] ** 2
        n = of_influences(squares - squares.mean())
        assert f"Only about {n:.0f} rows of group '{name}' show how" in note


LARGE: Pair = ((200, 50, 50, 200), (80, 20, 20, 80))
PERFECT: Pair = ((30, 0, 0, 50), (80, 20, 20, 80))
PAIRS = np.arange(230) // 2
TABLES: dict[str, tuple[Pair, str, dict[str, Any], str]] = {
    **{
        f"exact {metric}": (FEW, metric, {}, "")
        for metric in ("true_positive_rate", "accuracy", "jaccard_score", "f1_score")
    },
    "equalized odds": (FEW, "equalized_odds", {}, ""),
    "large groups": (LARGE, "balanced_accuracy", {}, ""),
    "no variance": (PERFECT, "balanced_accuracy", {}, "No row of group 'a' shows how"),
    "clusters": (FEW, "f1_score", {"cluster": PAIRS}, "clusters of group 'a' show how"),
    "clusters of a rate": (FEW, "tpr", {"cluster": PAIRS}, "how true_positive_rate"),
    "weights of a rate": (FEW, "tpr", {"sample_weight": PAIRS + 1}, "how true_positive_rate"),
}


@pytest.mark.parametrize(("pair", "metric", "option", "note"), TABLES.values(), ids=TABLES)
def test_tables_are_noted_unless_their_test_is_exact(
    pair: Pair, metric: str, option: dict[str, Any], note: str
) -> None:
    given = rows(pair)
    cut = {name: column[: len(given["y_true"])] for name, column in option.items()}
    found = noted(**given, metric=metric, **cut)
    assert bool(found) == bool(note)
    assert note in " ".join(found)


@pytest.mark.parametrize("setting", [rare_misses, uneven_weights, few_clusters, few_positives])
def test_few_placements_are_noted(setting: Any) -> None:
    """With DeLong's own error these reject 0.11 to 0.23 at nominal level 0.05."""
    for seed in range(3):
        found = noted(**{"n_resamples": 19, **setting(np.random.default_rng(seed))})
        assert "of group 0 show" in found[0]


def test_placements_that_suffice_are_not_noted() -> None:
    """Here the level is right: an AUC of 0.85 with 60 positives and 60 negatives in a group."""
    for seed in range(5):
        label = np.tile([1, 0], 120)
        score = np.random.default_rng(seed).normal(size=240) + 1.466 * label
        group = np.arange(240) // 120
        assert noted(y_true=label, y_score=score, sensitive_features=group, metric="roc_auc") == ()


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


# -- What is added ---------------------------------------------------------------------------------


def few_rows(option: str) -> dict[str, Any]:
    """Return 28 rows, 14 a group, which make about 2 to 9 influential ones in each."""
    rng, label = np.random.default_rng(5), np.tile([1, 0, 0, 1], 7)
    given = {
        "y_true": label,
        "y_score": rng.normal(size=28) + 1.5 * label,
        "sensitive_features": np.repeat(["a", "b"], 14),
    }
    if "weight" in option:
        given["sample_weight"] = rng.gamma(1, 1, 28)
    if "cluster" in option:
        given["cluster"] = np.arange(28) // 2
    return given


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("limit", [False, True])
@pytest.mark.parametrize("option", ["plain", "weight", "cluster", "weight and cluster"])
def test_few_influential_rows_widen_the_error_of_an_auc(option: str, limit: bool) -> None:
    """The jackknife's variance, if larger, plus (influence of one more miss)²/(1 + e)³."""
    given = few_rows(option)
    options: dict[str, Any] = {"metric": "roc_auc", "n_resamples": 0 if limit else 99, "rng": 1}
    wide = fairperm.permutation_test(**given, **options)
    plain = fairperm.permutation_test(**given, **options, variance="delong")
    for group in ("a", "b"):
        mine = given["sensitive_features"] == group
        label = given["y_true"][mine]
        units = [given[name][mine] if name in given else None for name in UNITS]
        auc, influence = of_auc(label, given["y_score"][mine], *units)
        e, variance = of_influences(influence), plain.standard_errors[group] ** 2
        if option != "plain":
            variance = max(variance, np.square(influence).sum())
        for one in (0, 1):  # Kish's number of units of the label
            weight = np.ones(14) if units[0] is None else units[0]
            cluster = np.arange(14) if units[1] is None else units[1]
            size = np.bincount(cluster[label == one], weight[label == one])
            n = size.sum() ** 2 / (size**2).sum()
            variance += (max(auc, 1 - auc) / n) ** 2 / (1 + e) ** 3
        assert wide.standard_errors[group] ** 2 == pytest.approx(variance)
    assert wide.standard_error == pytest.approx(np.hypot(*wide.standard_errors.values()))
    assert wide.statistic == pytest.approx(wide.difference / wide.standard_error)
    assert wide.pvalue >= plain.pvalue
    assert np.array_equal(wide.null_distribution, plain.null_distribution)
    assert all("unreliable, even widened" in note for note in wide.notes)
    assert all("unreliable, and" in note for note in plain.notes)


def test_groups_without_a_miss_have_an_error_and_an_interval() -> None:
    """One more row, missed, would have moved each group's AUC by 1/30."""
    label, group = np.tile([0, 1], 60), np.repeat(["a", "b"], 60)
    given: dict[str, Any] = {"y_score": label, "sensitive_features": group, "metric": "roc_auc"}
    with pytest.warns(fairperm.FairpermWarning, match="No row of group 'a' shows how"):
        result = fairperm.permutation_test(label, **given, n_resamples=0)
    assert result.standard_errors == pytest.approx(dict.fromkeys("ab", np.sqrt(2) / 30))
    assert result.confidence_interval == pytest.approx((-1.96 / 15, 1.96 / 15), rel=1e-4)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_few_influential_rows_widen_the_omnibus_test() -> None:
    options: dict[str, Any] = {**few_rows("plain"), "metric": "roc_auc", "rng": 1}
    wide = fairperm.omnibus_test(**options, n_resamples=99)
    gap = fairperm.permutation_test(**options, n_resamples=99, scheme="pooled")
    assert wide.statistic == pytest.approx(gap.statistic**2)
    assert wide.standard_errors == pytest.approx(gap.standard_errors)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_the_normal_limit_of_an_average_precision_needs_many(label: int) -> None:
    """A heavy positive or negative decides it; the errors of an AUC and of means allow for it."""
    rng, y_true = np.random.default_rng(1), np.tile([label, 1 - label], 60)
    given: dict[str, Any] = {"y_true": y_true, "y_score": y_true + rng.normal(size=120)}
    given |= {"sensitive_features": np.repeat(["a", "b"], 60), "n_resamples": 0}
    given["sample_weight"] = np.where(np.arange(120) == 0, 1000.0, 1.0)
    with pytest.raises(fairperm.UndefinedMetricError, match="few rows or clusters show how aver"):
        fairperm.permutation_test(**given, metric="average_precision")
    for metric in ("roc_auc", "balance_positive_class", "balance_negative_class"):
        assert fairperm.permutation_test(**given, metric=metric).pvalue > 0.05
