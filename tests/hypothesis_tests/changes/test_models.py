"""The change of the gap between two models, against brute force and against what it consists of."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar

from fairperm import FairpermWarning, compare_models, metric_names, permutation_test
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* shows? how the change",
    "ignore:.*is zero in this",
    "ignore:.* clusters have rows of several",
)


def people(n: int = 120, seed: int = 7) -> dict[str, Array]:
    """Return labels, and decisions and scores of two models that agree on most rows."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n, p=[0.4, 0.6])
    label = rng.random(n) < np.where(group == "a", 0.6, 0.4)
    old = np.round(1 / (1 + np.exp(-rng.normal(label - 0.3, 1))), 2)
    new = np.round(np.clip(old + rng.normal(0, 0.08, n), 0.01, 0.99), 2)
    return {"label": label, "group": group, "old": old, "new": new, "region": group == group[::-1]}


def arguments(metric: Any, rows: dict[str, Array], **more: Any) -> dict[str, Any]:
    """Return the call for this metric: scores where it reads them, otherwise predictions."""
    old, new = rows["old"], rows["new"]
    given: dict[str, Any] = {
        "y_true": rows["label"],
        "sensitive_features": rows["group"],
        "metric": metric,
    }
    name = "y_pred"
    if not callable(metric):
        kind = get_metric(metric).kind
        name = "y_score" if "y_score" in get_metric(metric).columns else "y_pred"
        if kind.is_categorical or metric == "equalized_odds":
            old, new = old > 0.5, new > 0.5
        if kind == Kind.REGRESSION:
            given["y_true"] = rows["label"] / 2 + 0.5  # no error is relative to 0
    return {**given, name: old, f"{name}_new": new, "n_resamples": 99, "rng": 3, **more}


def one_model(call: dict[str, Any], suffix: str) -> dict[str, Any]:
    """Return the call of a test of one of the models."""
    kept = {name: one for name, one in call.items() if not name.endswith("_new")}
    for name in ("y_pred", "y_score"):
        if name in kept:
            kept[name] = call[name + suffix]
    return kept


REFUSED = {"average_precision", "gini"}
REFUSED |= {"roc_auc_ovr", "roc_auc_ovr_weighted"}
EVERY = [one for one in metric_names() if one not in REFUSED]


def median_error(y_true: Array, y_pred: Array) -> float:
    return float(np.median(np.abs(y_true - y_pred)))


@pytest.mark.parametrize("metric", [*EVERY, median_error])
def test_every_metric_changes_as_its_gaps_do_and_swapping_the_models_changes_the_sign_only(
    metric: Any,
) -> None:
    call = arguments(metric, people())
    result = compare_models(**call)
    old, new = (permutation_test(**one_model(call, suffix)) for suffix in ("", "_new"))
    swapped = {**call}
    for name in ("y_pred", "y_score"):
        if name in call:
            swapped[name], swapped[f"{name}_new"] = call[f"{name}_new"], call[name]
    back = compare_models(**swapped)
    assert back.pvalue == result.pvalue
    if result.is_joint:
        for part in result.gap_old:
            gaps = [one.values["a"][part] - one.values["b"][part] for one in (old, new)]
            assert [result.gap_old[part], result.gap_new[part]] == pytest.approx(gaps, abs=1e-12)
        return
    assert (result.gap_old, result.gap_new) == pytest.approx(
        (old.difference, new.difference), abs=1e-12
    )
    assert result.difference == pytest.approx(result.gap_new - result.gap_old, abs=1e-12)
    assert back.difference == -result.difference
    assert back.confidence_interval == pytest.approx(
        tuple(-end for end in result.confidence_interval[::-1]), rel=1e-12
    )
    for group in ("a", "b"):
        change = result.group_changes[group]
        assert (change.old, change.new) == pytest.approx(
            (old.values[group], new.values[group]), abs=1e-12
        )
        assert change.change == pytest.approx(change.new - change.old, abs=1e-12)


@pytest.mark.parametrize("metric", ["selection_rate", "false_positive_rate", "equalized_odds"])
@pytest.mark.parametrize("of", ["rows", "strata", "clusters"])
def test_swapping_keeps_p_if_as_many_rows_move_up_as_down(metric: str, of: str) -> None:
    """The order of the models must be decided by more than the rows' contributions."""
    label = np.tile([False, False, True], 100)
    cell = np.concatenate([np.full(150, 0), np.full(70, 1), np.full(70, 2), np.full(10, 3)])
    given: dict[str, Any] = {"y_true": label, "metric": metric, "n_resamples": 19, "rng": 1}
    if of == "strata":
        given["control_features"] = np.arange(300) % 7 % 2
    for seed in range(4):
        group = np.random.default_rng(seed).choice(["a", "b"], 300, p=[0.3, 0.7])
        if of == "clusters":
            given["cluster"] = np.char.add(group, (np.arange(300) // 4).astype(str))
        found = set()
        for groups in (("a", "b"), ("b", "a")):
            for old, new in ((cell % 2, cell // 2), (cell // 2, cell % 2)):
                call = {**given, "y_pred": old, "y_pred_new": new, "groups": groups}
                found.add(compare_models(**call, sensitive_features=group).pvalue)
        assert len(found) == 1


def test_models_may_have_different_numbers_of_distinct_rows_of_clusters() -> None:
    """Sums over clusters can tell more rows apart for one order of the models than the other."""
    old, new = [0, 0, 1, 1, 0, 1, 1, 0], [0, 1, 0, 1, 1, 1, 0, 0]
    given: dict[str, Any] = {
        "y_true": [1, 1, 1, 1, 1, 0, 1, 1],
        "sensitive_features": list("ababaabb"),
        "cluster": ["a1", "b1", "a2", "b1", "a0", "a2", "b1", "b0"],
        "metric": "f1_score",
        "rng": 1,
    }
    one, other = (
        compare_models(**given, y_pred=first, y_pred_new=second)
        for first, second in ((old, new), (new, old))
    )
    assert one.pvalue == other.pvalue
    assert one.difference == pytest.approx(-other.difference)


def test_counts_are_those_of_the_models_as_given() -> None:
    rows = people()
    mine = (rows["group"] == "a") & rows["label"]
    for first, second in (("old", "new"), ("new", "old")):
        old, new = (rows[one] > 0.5 for one in (first, second))
        call = arguments("ppv", rows, y_pred=old, y_pred_new=new)
        counts = compare_models(**call).counts["a"]
        hits = {"numerator": (old & mine).sum(), "numerator_new": (new & mine).sum()}
        assert {name: counts[name] for name in hits} == hits
        moved = compare_models(**{**call, "metric": "tpr"}).counts["a"]["change of numerator"]
        assert moved == hits["numerator_new"] - hits["numerator"]


def test_rows_of_other_groups_change_no_p() -> None:
    rows, more = people(150), people(100, seed=2)
    more["group"][:] = "c"
    more["old"], more["new"] = more["new"] * 0, more["old"]
    both = {name: np.concatenate([one, more[name]]) for name, one in rows.items()}
    for metric in ("ppv", "roc_auc", "mse", median_error):
        alone = compare_models(**arguments(metric, rows))
        beside = compare_models(**arguments(metric, both, groups=("a", "b")))
        assert beside.pvalue == alone.pvalue


@pytest.mark.parametrize("metric", ["tpr", "ppv", "roc_auc", "mse", median_error])
def test_equal_models_have_no_change(metric: Any) -> None:
    call = arguments(metric, people(60))
    call |= {f"{name}_new": call[name] for name in ("y_pred", "y_score") if name in call}
    result = compare_models(**call)
    assert (result.difference, result.pvalue) == (0, 1)
    assert all(one.pvalue == 1 for one in result.group_changes.values())


@pytest.mark.parametrize("n_resamples", [20, 200])  # random draws, and all permutations
def test_a_rate_of_a_fixed_denominator_is_tested_by_the_differences_to_the_last_bit(
    n_resamples: int,
) -> None:
    rows = people(400)
    old, new = rows["old"] > 0.5, rows["new"] > 0.55
    moved = new.astype(float) - old
    for metric, among in (("selection_rate", ...), ("true_positive_rate", rows["label"])):
        options: dict[str, Any] = {"rng": 5, "n_resamples": n_resamples, "variance": "delta"}
        group = rows["group"]
        result = compare_models(
            rows["label"], old, new, sensitive_features=group, metric=metric, **options
        )
        assert result.exact == (n_resamples == 200)
        found = {}
        for sign in (1, -1):  # either model may come first
            test = permutation_test(
                moved[among],
                sign * moved[among],
                metric="mean_prediction",
                sensitive_features=group[among],
                **options,
            )
            assert sign * test.statistic == result.statistic
            assert test.standard_error == result.standard_error
            found[tuple(np.sort(sign * test.null_distribution))] = test.pvalue
        assert result.pvalue == found[tuple(np.sort(result.null_distribution))]


def differences(rows: dict[str, Array], metric: str) -> Callable[[Array], tuple[float, float]]:
    """Return the change of a group's value and its variance, from formulas for single rows."""
    label, old, new = rows["label"], rows["old"] > 0.5, rows["new"] > 0.5

    def precision(mine: Array) -> tuple[float, float]:
        influence, change = np.zeros(mine.sum()), 0.0
        for sign, model in ((1, new[mine]), (-1, old[mine])):
            value = label[mine][model].sum() / model.sum()
            change += sign * value
            influence += sign * model * (label[mine] - value) / model.sum()
        return change, (influence**2).sum()

    def recall(mine: Array) -> tuple[float, float]:
        moved = (new.astype(float) - old)[mine & label]
        n = np.float64(len(moved))
        return moved.sum() / n, ((moved**2).sum() / n - (moved.sum() / n) ** 2) / n

    return precision if metric == "ppv" else recall


@pytest.mark.filterwarnings("ignore:The metric is undefined")
@pytest.mark.parametrize("metric", ["tpr", "ppv"])
def test_all_relabellings_of_a_small_sample_are_counted(metric: str) -> None:
    rows = people(14, seed=36)
    change = differences(rows, metric)
    first, label = rows["group"] == "a", rows["label"]
    places = [np.flatnonzero(label), np.flatnonzero(~label)] if metric == "tpr" else [np.arange(14)]
    chosen = [itertools.combinations(place, int(first[place].sum())) for place in places]

    def statistic(mine: Array) -> float:
        with np.errstate(all="ignore"):
            (x, v), (y, w) = change(mine), change(~mine)
            gap, error = x - y, math.sqrt(v + w)
            return 0.0 if error == 0 and abs(gap) < 1e-12 else gap / error

    draws = []
    for parts in itertools.product(*chosen):
        mine = np.zeros(14, bool)
        mine[list(itertools.chain(*parts))] = True
        draws.append(statistic(mine))
    null, observed = np.array(draws), statistic(first)
    result = compare_models(**arguments(metric, rows, variance="delta", n_resamples=20_000))
    assert result.statistic == pytest.approx(observed)
    undefined = np.isnan(null)
    tails = [np.mean(undefined | (sign * null >= sign * observed - 1e-9)) for sign in (1, -1)]
    assert result.exact
    assert result.pvalue == pytest.approx(min(1, 2 * min(tails)))


def delong(label: Array, scores: Array, weight: Array, cluster: Array) -> tuple[float, float]:
    """Return the change of the AUC and its variance, from all pairs of rows."""
    influence, change = np.zeros(len(label)), 0.0
    for sign, score in zip((-1, 1), scores, strict=True):
        beats = np.where(label[:, None] > label, score[:, None] > score, score[:, None] < score)
        share = beats + 0.5 * (score[:, None] == score)
        other = weight * (label[:, None] != label)
        component = (share * other).sum(axis=1) / other.sum(axis=1)
        value = np.average(component[label], weights=weight[label])
        own = np.where(label, weight[label].sum(), weight[~label].sum())
        influence += sign * weight * (component - value) / own
        change += sign * value
    if (np.bincount(cluster) <= 1).all():
        parts = [
            (influence[side] ** 2).sum() * (n := side.sum()) / (n - 1) for side in (label, ~label)
        ]
        return change, sum(parts)
    x, y = (np.bincount(cluster, influence * side) for side in (label, ~label))
    counts = [len(set(cluster[side])) for side in (label, ~label)] + [len(set(cluster))]
    a, b, c = (n / (n - 1) for n in counts)
    return change, a * (x**2).sum() + b * (y**2).sum() + 2 * c * (x * y).sum()


@pytest.mark.parametrize("of", ["rows", "weights", "clusters"])
def test_the_change_of_the_auc_has_delongs_paired_variance(of: str) -> None:
    rows = people(60)
    n = len(rows["label"])
    weight = np.random.default_rng(2).random(n) + 0.5 if of == "weights" else np.ones(n)
    cluster = np.arange(n)
    if of == "clusters":
        order = np.argsort(rows["group"], kind="stable")
        cluster[order] = np.arange(n) // 3 + 100 * (rows["group"][order] == "b")
    more: dict[str, dict[str, Any]] = {
        "weights": {"sample_weight": weight},
        "clusters": {"cluster": cluster},
    }
    # chosen, the variance is not widened for few influential rows
    call = arguments("roc_auc", rows, variance="delong", **more.get(of, {}))
    result = compare_models(**call)
    found = {}
    for group in ("a", "b"):
        mine = rows["group"] == group
        scores = np.stack([rows["old"][mine], rows["new"][mine]])
        found[group] = delong(rows["label"][mine], scores, weight[mine], cluster[mine])
        change = result.group_changes[group]
        assert (change.change, change.standard_error**2) == pytest.approx(found[group])
    assert result.standard_error == pytest.approx(math.sqrt(found["a"][1] + found["b"][1]))
    assert abs(result.null_distribution).max() > 0.5


def test_draws_of_the_auc_agree_with_all_relabellings() -> None:
    rng = np.random.default_rng(1)
    label, first = np.arange(14) < 7, np.isin(np.arange(14), [0, 1, 2, 7, 8, 9, 10])
    old = np.round(rng.normal(label, 1), 1)
    scores = np.stack([old, np.round(old + rng.normal(0, 0.7, 14), 1)])

    def statistic(mine: Array) -> float:
        rows = np.ones(7), np.arange(7)
        (x, v), (y, w) = (delong(label[one], scores[:, one], *rows) for one in (mine, ~mine))
        is_zero = abs(x - y) < 1e-12
        return (
            0.0
            if is_zero
            else (x - y) / math.sqrt(v + w)
            if v + w > 1e-12
            else math.copysign(math.inf, x - y)
        )

    draws = [
        statistic(np.isin(np.arange(14), positives + negatives))
        for positives in itertools.combinations(range(7), 3)
        for negatives in itertools.combinations(range(7, 14), 4)
    ]
    result = compare_models(
        label,
        y_score=scores[0],
        y_score_new=scores[1],
        sensitive_features=np.where(first, "a", "b"),
        metric="roc_auc",
        variance="delong",
        n_resamples=4999,
        rng=1,
    )
    assert result.statistic == pytest.approx(statistic(first))
    tails = [np.mean(sign * np.array(draws) >= sign * result.statistic - 1e-9) for sign in (1, -1)]
    low, high = result.pvalue_interval
    assert low <= 2 * min(tails) <= high


def test_few_rows_that_change_the_auc_are_noted() -> None:
    rows = people(400)
    moved = np.flatnonzero(rows["group"] == "a")[:3]
    few = rows["old"].copy()
    few[moved] = rows["new"][moved]
    few[rows["group"] == "b"] = rows["new"][rows["group"] == "b"]
    with pytest.warns(FairpermWarning, match="rows? of group 'a' shows? how the change in roc"):
        result = compare_models(**arguments("roc_auc", {**rows, "new": few}))
    assert not any("group 'b'" in note for note in result.notes)


def test_the_change_of_a_groups_rate_is_mcnemars_exact_test() -> None:
    rows = people(200)
    old, new = rows["old"] > 0.5, rows["new"] > 0.52
    result = compare_models(**arguments("fpr", rows, y_pred=old, y_pred_new=new))
    for group in ("a", "b"):
        mine = (rows["group"] == group) & ~rows["label"]
        table = [[np.sum(mine & (old == i) & (new == j)) for j in (0, 1)] for i in (0, 1)]
        change = result.group_changes[group]
        assert change.exact
        assert change.pvalue == pytest.approx(mcnemar(np.array(table), exact=True).pvalue)


def test_strata_weights_clusters_and_thresholds_keep_their_meaning() -> None:
    rows = people(200)
    n = len(rows["label"])
    for metric in ("tpr", "ppv", "roc_auc", "mse"):
        result = compare_models(**arguments(metric, rows, control_features=rows["region"]))
        assert result.n_strata == 2
        assert result.difference == pytest.approx(result.gap_new - result.gap_old, abs=1e-12)
        pooled = compare_models(**arguments(metric, rows, scheme="pooled"))
        for same in ({"cluster": np.arange(n)}, {"sample_weight": np.full(n, 2.0)}):
            other = compare_models(**arguments(metric, rows, **same, variance=pooled.variance))
            assert other.statistic == pytest.approx(pooled.statistic)
    by_score = arguments("tpr", rows, threshold=0.5, threshold_new=0.6)
    del by_score["y_pred"], by_score["y_pred_new"]
    by_score |= {"y_score": rows["old"], "y_score_new": rows["new"]}
    given = arguments("tpr", rows, y_pred=rows["old"] >= 0.5, y_pred_new=rows["new"] >= 0.6)
    mixed = {**by_score, "y_score_new": None, "y_pred_new": given["y_pred_new"]}
    del mixed["threshold_new"]
    results = [compare_models(**one) for one in (by_score, given, mixed)]
    assert len({one.pvalue for one in results}) == 1


def test_clusters_can_be_split_by_group() -> None:
    rows = people(200)
    shared = np.arange(200) // 3
    own = np.char.add(rows["group"], shared.astype(str))
    whole = compare_models(**arguments("tpr", rows, cluster=own))
    split = compare_models(**arguments("tpr", rows, cluster=shared, split_clusters=True))
    assert (split.pvalue, split.standard_error) == (whole.pvalue, whole.standard_error)
    assert "clusters have rows of several groups" in split.notes[-1]


def test_a_margin_of_the_change() -> None:
    result = compare_models(**arguments("fpr", people(300)))
    both, one = result.test_margin(0.3), result.test_margin((-math.inf, 0.3))
    assert both.lower is not None
    assert both.upper is not None
    assert one.lower is None
    assert one.pvalue == both.upper.pvalue
    assert both.pvalue == max(both.lower.pvalue, both.upper.pvalue)
    assert both.ratio is None
    assert both.holds_at(0.05)
    assert not result.test_margin(1e-6).holds_at(0.05)


def test_the_result_reads_well_and_becomes_json() -> None:
    result = compare_models(
        [0] * 400,
        [1] * 30 + [0] * 170 + [1] * 20 + [0] * 180,
        [1] * 18 + [0] * 182 + [1] * 21 + [0] * 179,
        sensitive_features=["a"] * 200 + ["b"] * 200,
        metric="fpr",
    )
    lines = repr(result).splitlines()
    assert lines[0].startswith(
        "With the new model the gap in false positive rate, a − b, goes from"
    )
    assert result.answer.endswith(
        f" from +5.0 to −1.5 points; chance does not explain the change (p = {result.pvalue:.4f})."
    )
    assert lines[2] == "  a           0.150 → 0.090  p = 0.0005, exact"
    assert lines[4] == "  gap         +0.050 → −0.015"
    plain = result.to_dict()
    assert plain["group_changes"][0]["new"] == 0.09
    assert (plain["gap_old"], plain["difference"]) == pytest.approx((0.05, -0.065))
