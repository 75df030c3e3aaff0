"""The mean AUC of each class against the rest: values of scikit-learn, errors by hand, levels."""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import softmax
from scipy.stats import binom, norm
from sklearn.metrics import roc_auc_score

import fairperm
from tests.support.number_data import auc
from tests.support.refusals import Refusal, check_wording, each, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

METRICS = {"roc_auc_ovr": "macro", "roc_auc_ovr_weighted": "weighted"}
CLOSE = 1e-9
by_metric = pytest.mark.parametrize("metric", METRICS)


def draw(n: int, seed: int, n_classes: int = 3, decimals: int = 9) -> dict[str, Any]:
    """Return rows whose scores hardly repeat, or are tied across classes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1) / (n_classes * (n_classes + 1) / 2))
    raw = rng.normal(size=(n, n_classes)) + np.eye(n_classes)[y]
    return {
        "y_true": y,
        "y_score": softmax(raw, axis=1) if decimals > 6 else np.round(raw, decimals),
        "sensitive_features": np.array(["a", "b"])[rng.integers(0, 2, n)],
        "metric": "roc_auc_ovr",
        "n_resamples": 9,
        "rng": 1,
    }


def run(data: dict[str, Any], **options: Any) -> fairperm.PermutationTestResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        return fairperm.permutation_test(**{**data, **options})


def value(metric: str, y: Array, scores: Array, weight: Array | None = None) -> float:
    """Return the mean AUC from all pairs of rows; ties count one half."""
    weight = np.ones(len(y)) if weight is None else weight
    aucs, shares = [], []
    for i, one in enumerate(np.unique(y)):
        own = y == one
        wins = np.sign(np.subtract.outer(scores[own, i], scores[~own, i])) / 2 + 0.5
        aucs.append(np.average(wins, weights=np.outer(weight[own], weight[~own])))
        shares.append(weight[own].sum())
    return float(np.average(aucs, weights=shares if metric.endswith("weighted") else None))


DESIGNS: dict[str, Callable[[int], dict[str, Any]]] = {
    "plain": lambda _: {},
    "weights": lambda n: {"sample_weight": np.random.default_rng(7).uniform(0.5, 2, n)},
    "clusters": lambda n: {
        "cluster": np.arange(n) // 4,
        "sensitive_features": np.array(["a", "b", "b"])[np.arange(n) // 4 % 3],
    },
}


@by_metric
def test_values_are_those_of_scikit_learn(metric: str) -> None:
    data = draw(200, 1) | {"metric": metric}
    weight = np.random.default_rng(2).uniform(0.5, 2, 200)
    for given in ({}, {"sample_weight": weight}):
        for group, found in run(data, **given).values.items():
            mine = data["sensitive_features"] == group
            expected = roc_auc_score(
                data["y_true"][mine],
                data["y_score"][mine],
                multi_class="ovr",
                average=METRICS[metric],
                sample_weight=weight[mine] if given else None,
            )
            assert found == pytest.approx(expected, rel=CLOSE)


def error_by_hand(data: dict[str, Any]) -> float:
    """Return the standard error of the gap from numerical derivatives.

    Influences of the rows of a class in a cluster are added up. Their squares have the factor
    m/(m - 1) of the m clusters with such rows, products of classes that of all clusters.
    """
    y, scores, group = (np.asarray(data[k]) for k in ("y_true", "y_score", "sensitive_features"))
    weight = np.asarray(data.get("sample_weight", np.ones(len(y))), float)
    cluster = np.asarray(data.get("cluster", np.arange(len(y))))
    step, variance = 1e-5, 0.0
    for one in "ab":
        mine = group == one
        found = np.empty(mine.sum())
        for i in range(mine.sum()):
            moved = [weight[mine].copy(), weight[mine].copy()]
            moved[0][i] *= 1 + step
            moved[1][i] *= 1 - step
            up, down = (value(data["metric"], y[mine], scores[mine], w) for w in moved)
            found[i] = (up - down) / (2 * step)
        unit = np.unique(cluster[mine], return_inverse=True)[1]
        sums = np.zeros((unit.max() + 1, y.max() + 1))
        np.add.at(sums, (unit, y[mine]), found)
        has = np.zeros(sums.shape, bool)
        has[unit, y[mine]] = True
        factor = len(sums) / (len(sums) - 1)
        own = has.sum(axis=0) / (has.sum(axis=0) - 1)
        variance += factor * (sums.sum(axis=1) ** 2).sum()
        variance += ((own - factor) * (sums**2).sum(axis=0)).sum()
    return float(np.sqrt(variance))


@by_metric
@pytest.mark.parametrize("decimals", [9, 0], ids=["no ties", "ties"])
@pytest.mark.parametrize("design", DESIGNS)
def test_errors_are_those_of_derivatives(design: str, decimals: int, metric: str) -> None:
    data = draw(60, 3, decimals=decimals) | {"metric": metric}
    data |= DESIGNS[design](60)
    chosen = run(data, variance="delta")  # a variance that is chosen is not widened
    assert chosen.standard_error == pytest.approx(error_by_hand(data), rel=1e-5)
    weight = data.get("sample_weight", np.ones(60))
    for group, found in chosen.values.items():
        mine = data["sensitive_features"] == group
        columns = data["y_true"][mine], data["y_score"][mine], weight[mine]
        assert found == pytest.approx(value(metric, *columns), rel=CLOSE)


def test_of_two_classes_it_is_the_auc_with_the_error_of_delong() -> None:
    for design in DESIGNS.values():
        data = draw(90, 4, n_classes=2) | design(90)
        one = {**data, "metric": "roc_auc", "y_score": data["y_score"][:, 1], "scheme": "pooled"}
        both, single = run(data, variance="delta"), run(one, variance="delong")
        assert both.values == pytest.approx(single.values, rel=CLOSE)
        assert both.standard_error == pytest.approx(single.standard_error, rel=CLOSE)


def studentize_by_hand(metric: str, y: Array, scores: Array, first: NDArray[np.bool_]) -> float:
    """Return the gap over its error from all pairs of rows; NaN without some class in a group."""
    values, variances = [], []
    for mine in (first, ~first):
        label, score = y[mine], scores[mine]
        sizes = np.bincount(label, minlength=scores.shape[1])
        if sizes.min() == 0:
            return np.nan
        n = len(label)
        share = sizes / n if metric.endswith("weighted") else np.full(len(sizes), 1 / len(sizes))
        psi, aucs = np.zeros(n), []
        for c, size in enumerate(sizes):
            own = label == c
            aucs.append(auc(own.astype(float), score[:, c]))
            wins = np.sign(np.subtract.outer(score[own, c], score[~own, c])) / 2 + 0.5
            psi[own] += share[c] * (wins.mean(axis=1) - aucs[c]) / size
            psi[~own] += share[c] * (wins.mean(axis=0) - aucs[c]) / (n - size)
        values.append(share @ aucs)
        if metric.endswith("weighted"):
            psi += (np.array(aucs)[label] - values[-1]) / n
        psi[np.abs(psi) < 1e-14] = 0.0
        with np.errstate(divide="ignore"):
            factor = sizes / (sizes - 1)
        variances.append((psi**2 * factor[label]).sum() if sizes.min() > 1 else np.nan)
    gap, error = values[0] - values[1], np.sqrt(sum(variances))
    return 0.0 if error == 0 and abs(gap) < 1e-12 else gap / error


@by_metric
def test_small_samples_are_enumerated(metric: str) -> None:
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    scores = np.array(
        [[2, 0, 1]] * 3 + [[0, 1, 2]] + [[1, 2, 0]] * 3 + [[2, 1, 2]] + [[0, 1, 2]] * 5
    )
    data = draw(13, 1) | {"y_true": y, "y_score": scores, "n_resamples": 9999, "metric": metric}
    data["sensitive_features"] = np.array(list("aabbaabbaabbb"))
    with np.errstate(divide="ignore"):
        result = run(data, alternative="symmetric", variance="delta")
        size = int((data["sensitive_features"] == "a").sum())
        found = np.array(
            [
                studentize_by_hand(metric, y, scores, np.isin(np.arange(13), chosen))
                for chosen in itertools.combinations(range(13), size)
            ]
        )
    assert result.exact
    assert np.isnan(found).any()  # draws without a class, or with one row of it, are extreme
    extreme = np.isnan(found) | (np.abs(found) >= abs(result.statistic) - 1e-9)
    assert result.pvalue == pytest.approx(extreme.mean())


@by_metric
@pytest.mark.parametrize("strata", [1, 2])
def test_permutations_are_those_of_a_loop(metric: str, strata: int) -> None:
    """The same statistic, permuted by NumPy: both distributions have equal quantiles."""
    data = draw(160, 8) | {"metric": metric, "n_resamples": 1999}
    given = {"control_features": np.arange(160) // 80} if strata == 2 else {}
    result = run(data, **given)
    rng, found = np.random.default_rng(9), []
    first = data["sensitive_features"] == "a"
    if strata == 1:
        assert result.statistic == pytest.approx(
            studentize_by_hand(metric, data["y_true"], data["y_score"], first), rel=CLOSE
        )
        for _ in range(1000):
            mixed = rng.permutation(first)
            found.append(studentize_by_hand(metric, data["y_true"], data["y_score"], mixed))
        quantiles = [0.05, 0.25, 0.5, 0.75, 0.95]
        mine, other = (np.quantile(one, quantiles) for one in (result.null_distribution, found))
        assert mine == pytest.approx(other, abs=0.2)
    else:
        halves = [slice(0, 80), slice(80, 160)]
        gaps = [
            value(metric, data["y_true"][h][first[h]], data["y_score"][h][first[h]])
            - value(metric, data["y_true"][h][~first[h]], data["y_score"][h][~first[h]])
            for h in halves
        ]
        shares = [1 / (1 / first[h].sum() + 1 / (~first[h]).sum()) for h in halves]
        assert result.difference == pytest.approx(np.average(gaps, weights=shares), rel=CLOSE)


def test_columns_can_be_given_in_many_ways() -> None:
    data = draw(150, 12)
    scores, names = data["y_score"], np.array(["cat", "dog", "owl"])
    label, group = names[data["y_true"]], data["sensitive_features"]
    expected = run(data, n_resamples=99).pvalue
    swapped = {"owl": scores[:, 2], "cat": scores[:, 0], "dog": scores[:, 1]}
    frame = pd.DataFrame({"y": label, "g": group, **{f"p_{k}": v for k, v in swapped.items()}})
    by_name = {name: f"p_{name}" for name in swapped}
    ways: list[dict[str, Any]] = [
        {"y_true": label, "y_score": scores},
        {"y_true": label, "y_score": swapped},
        {"y_true": label, "y_score": pd.DataFrame(swapped)},
        {"y_true": data["y_true"], "y_score": pl.DataFrame(scores, schema=["0", "1", "2"])},
    ]
    named = {"y_true": "y", "sensitive_features": "g"}
    for of_data in (frame, pl.DataFrame(dict(frame.items())), pl.LazyFrame(dict(frame.items()))):
        ways.append({**named, "data": of_data, "y_score": by_name})
        ways.append({**named, "data": of_data, "y_score": ["p_cat", "p_dog", "p_owl"]})
    for way in ways:
        assert run({**data, **way}, n_resamples=99).pvalue == expected


def test_missing_scores_are_dropped_or_refused() -> None:
    data = draw(80, 13)
    data["y_score"][3, 1] = np.nan
    with pytest.raises(fairperm.InputError, match=r"y_score\[:, 1\] has 1 missing value \(row 3"):
        run(data)
    found = run(data, missing="drop")
    assert found.n_dropped == 1
    kept = {
        name: np.delete(one, 3, axis=0) if isinstance(one, np.ndarray) else one
        for name, one in data.items()
    }
    assert found.pvalue == run(kept).pvalue


def test_an_audit_has_both_means() -> None:
    data = draw(400, 9)
    rows = fairperm.audit(
        data["y_true"],
        y_score=data["y_score"],
        sensitive_features=data["sensitive_features"],
        metrics=[*METRICS],
        n_resamples=199,
        min_group_size=10,
        rng=1,
    ).rows
    for row in rows:
        alone = run(data, metric=row.metric, n_resamples=199)
        assert row.values == pytest.approx([alone.values["a"], alone.values["b"]], rel=CLOSE)
        assert row.pvalue == alone.pvalue


def test_an_audit_takes_predictions_beside_scores_of_classes() -> None:
    data = draw(400, 9)
    predicted = data["y_score"].argmax(axis=1)
    found = fairperm.audit(
        data["y_true"],
        predicted,
        y_score=data["y_score"],
        sensitive_features=data["sensitive_features"],
        metrics=["accuracy", "f1_macro", "roc_auc_ovr", "recall"],
        pos_label=2,
        min_group_size=10,
        n_resamples=199,
        rng=1,
    )
    assert [row.metric for row in found.rows][2] == "roc_auc_ovr"
    assert found.rows[2].pvalue == run(data, n_resamples=199).pvalue


def test_an_audit_counts_the_rarest_class() -> None:
    data = draw(400, 9)
    rare = min(np.sum((data["sensitive_features"] == one) & (data["y_true"] == 0)) for one in "ab")
    for least, verdict in ((rare, False), (rare + 1, True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fairperm.FairpermWarning)
            found = fairperm.audit(
                data["y_true"],
                y_score=data["y_score"],
                sensitive_features=data["sensitive_features"],
                metrics="roc_auc_ovr",
                min_group_size=int(least),
                n_resamples=99,
                rng=1,
            )
        assert (found.rows[0].verdict == "too small") == verdict
    assert "rows of class 0" in found.rows[0].reason


@by_metric
@pytest.mark.parametrize("design", DESIGNS)
def test_scores_without_a_mistake_have_no_error(design: str, metric: str) -> None:
    data = draw(90, 2) | DESIGNS[design](90) | {"metric": metric}
    for scores in (np.eye(3)[data["y_true"]] + 1e-3 * data["y_score"], np.zeros((90, 3))):
        result = run({**data, "y_score": scores}, variance="delta")
        assert (result.statistic, result.standard_error, result.pvalue) == (0, 0, 1)
        allowed = run({**data, "y_score": scores})  # for a mistake that may come
        assert allowed.standard_error > 0
        assert allowed.pvalue == 1


def test_a_group_without_a_mistake_may_have_one_in_the_next_row() -> None:
    data = draw(300, 2)
    mine = data["sensitive_features"] == data["sensitive_features"][0]
    labels = data["y_true"][mine]
    data["y_score"][mine] = np.eye(3)[labels] + 1e-3 * data["y_score"][mine]
    group = data["sensitive_features"][0]
    assert run(data, variance="delta").standard_errors[group] == 0
    unseen = np.sqrt(((1 / 3 / np.bincount(labels)) ** 2).sum())  # a row of each class at the end
    assert run(data).standard_errors[group] == pytest.approx(unseen)


def test_few_influential_rows_are_warned_of() -> None:
    data = draw(60, 3)
    data["y_score"] = np.eye(3)[data["y_true"]] + 1e-3 * data["y_score"]  # no mistakes but one
    data["y_score"][0] = data["y_score"][0][::-1]
    with pytest.warns(fairperm.FairpermWarning, match="how roc_auc_ovr varies: with fewer than 10"):
        fairperm.permutation_test(**data)


def test_rows_of_a_rare_class_count_also_if_they_are_ranked_alike() -> None:
    """They had no influence, and did not count; (Σ1/m)²/Σ1/m³ of 3, 37 and 20 rows is 4.5."""
    data = draw(600, 3) | {"y_true": np.arange(600) % 3}
    rare, group = np.isin(np.arange(600), [0, 3, 6]), np.where(np.arange(600) < 60, "a", "b")
    data["y_true"][(group == "a") & (data["y_true"] == 0) & ~rare] = 1
    data["y_score"][rare, 0] = 0.8  # equal scores
    data |= {"sensitive_features": group, "n_resamples": 99}
    with pytest.warns(fairperm.FairpermWarning, match="Only about 5 rows of group 'a' show how"):
        macro = fairperm.permutation_test(**data)
    assert macro.standard_error > run(data, variance="delta").standard_error
    # the row of a rare class counts no more than others if classes count by their rows
    assert run(data, metric="roc_auc_ovr_weighted").notes == ()


def test_negated_scores_flip_the_gap_and_keep_the_pvalue() -> None:
    """A group in which all ranks are wrong had no allowance for one that is right."""
    data = draw(300, 2) | {"n_resamples": 99}
    mine = data["sensitive_features"] == "a"
    data["y_score"][mine] = np.eye(3)[data["y_true"][mine]] + 1e-3 * data["y_score"][mine]
    right, wrong = run(data), run({**data, "y_score": -data["y_score"]})
    assert wrong.difference == pytest.approx(-right.difference, rel=CLOSE)
    assert wrong.standard_error == pytest.approx(right.standard_error, rel=CLOSE)


def test_columns_named_by_their_classes_may_come_in_any_order() -> None:
    """They were taken in the order of the list: values were those of other classes."""
    named = FRAME.rename(columns={"p0": "0", "p1": "1", "p2": "2"})
    given = {**GOOD, "y_true": "y", "sensitive_features": "g", "data": named}
    found = run({**given, "y_score": ["2", "0", "1"]})
    assert found.values == run(GOOD).values
    with pytest.raises(
        fairperm.InputError, match=r"named by the classes of y_true .*got 'extra'. Pass a mapping"
    ):
        run({**given, "data": named.assign(extra=0.0), "y_score": ["0", "1", "extra"]})


# -- Bad inputs -------------------------------------------------------------------------------

GOOD = draw(60, 1)
SCORES = GOOD["y_score"]
TEXT = np.array(["cat", "dog", "owl"])[GOOD["y_true"]]
FRAME = pd.DataFrame(SCORES, columns=["p0", "p1", "p2"]).assign(
    y=GOOD["y_true"], g=GOOD["sensitive_features"]
)
NAMED = {"y_true": "y", "sensitive_features": "g", "data": FRAME}
ALL_OF_1_IN_A = np.where(GOOD["y_true"] == 1, "a", GOOD["sensitive_features"])
FIRST_OF_1 = np.arange(60) == np.argmax(GOOD["y_true"] == 1)

REFUSALS = table(
    fairperm.permutation_test,
    GOOD,
    globals(),
    """
y_score=SCORES[:, 0] →
    TypeError: y_score must be several columns of scores for roc_auc_ovr; got <class
    'numpy.ndarray'>. Pass an array with a column for each class
y_score=None → TypeError: y_score must be several columns of scores for roc_auc_ovr
y_score=None, y_pred=GOOD['y_true'] →
    TypeError: y_score must be several columns of scores for roc_auc_ovr; got None.
**NAMED, y_score='p0' →
    TypeError: y_score must be several columns of scores for roc_auc_ovr; got 'p0'. Pass a list
    of columns of data
y_score=SCORES[:, :2] → y_score must be one column for each of 3 classes (0, 1, 2); got 2 columns.
y_true=TEXT, y_score={'cat': SCORES[:, 0], 'dig': SCORES[:, 1]} →
    y_score must be named by the classes of y_true ('cat', 'dog', 'owl'); got 'dig'. Did you
    mean 'dog'?
y_true=TEXT, y_score={'cat': SCORES[:, 0], 'dog': SCORES[:, 1]} →
    y_score must be one column for each of 3 classes ('cat', 'dog', 'owl'); got none for 'owl'.
y_score={0: SCORES[:, 0], '0': SCORES[:, 0], 1: SCORES[:, 1], 2: SCORES[:, 2]} →
    y_score must be one column for each of 3 classes (0, 1, 2); got two for 0.
y_true=np.zeros(60, int) →
    y_true must be made of two classes or more; got 0. roc_auc_ovr compares each class
**NAMED, y_score=['p0', 'p1', 'p3'] →
    y_score[2] must be a column of data ('p0', 'p1', 'p2', 'y', 'g'); got 'p3'.
y_score={0: SCORES[:, 0], 1: TEXT, 2: SCORES[:, 2]} →
    TypeError: y_score[1] must be made of real numbers; got 'owl'. Labels are not scores.
y_score=SCORES > 0.5 →
    TypeError: y_score[:, 0] must be made of real numbers; got False. Labels are not scores.
y_score=np.where(np.arange(60)[:, None] == 7, np.inf, SCORES) →
    y_score[:, 0] must be finite; got inf.
y_score=SCORES[1:] → y_score[:, 0] must be as long as y_true
threshold=0.5 → threshold must be left out for roc_auc_ovr; got 0.5.
pos_label=1 → pos_label must be left out for roc_auc_ovr; got 1.
scheme='within_label' → scheme must be 'pooled' for roc_auc_ovr; got 'within_label'.
y_score=FRAME[['p0', 'p1', 'p2']].set_axis([0, 1, 2], axis=1).iloc[::-1], y_true=FRAME['y'] →
    y_score must be a pandas column with the index of y_true
matched=np.arange(60) // 2 →
    metric must be a rate, a mean or another function of totals with matched; got 'roc_auc_ovr
**NAMED, data=pl.LazyFrame(dict(FRAME.items())), y_score=['p0', 'p1', 'p2'], score_bins=9 →
    score_bins cannot be used for roc_auc_ovr
**NAMED, data=pl.LazyFrame(dict(FRAME.items())) →
    TypeError: y_score must be the name of a column of data, which is a lazy frame
**NAMED, y_score=['p2', 'p0', 'p1'] →
    y_score must be in the order of the sorted classes (0, 1, 2); got 'p2', 'p0', 'p1'. Pass a
    mapping of classes to columns
sensitive_features=ALL_OF_1_IN_A →
    UndefinedMetricError: metric must be defined in every group; got roc_auc_ovr of group 'b',
    which has no rows of class 1.
sensitive_features=np.where(FIRST_OF_1, 'b', ALL_OF_1_IN_A) →
    UndefinedMetricError: metric must be one whose standard error is defined, and not zero; got
    roc_auc_ovr with group 'b' of 18 rows, 1 of them of class 1.
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)


def test_no_other_function_takes_scores_of_classes() -> None:
    data = draw(60, 1)
    each = "got 'roc_auc_ovr'. Use metric='roc_auc' for each class: pos_label is the class, and"
    with pytest.raises(fairperm.InputError, match=f"whose change has a standard error; {each}"):
        fairperm.compare_models(**data, y_score_new=data["y_score"])
    with pytest.raises(fairperm.InputError, match="metric must be a rate or roc_auc"):
        fairperm.power("roc_auc_ovr", values=(0.6, 0.7), n=200)
    with pytest.raises(fairperm.InputError, match="metric must be a metric of labels and binary"):
        fairperm.threshold_sweep(
            data["y_true"] > 0, SCORES[:, 0], sensitive_features="ab" * 30, metric="roc_auc_ovr"
        )
    group = data.pop("sensitive_features")
    with pytest.raises(fairperm.InputError, match=f"whose subgroups can be searched; {each}"):
        fairperm.find_subgroups(**data, features={"site": group})


def test_an_audit_has_one_score_or_one_for_each_class() -> None:
    with pytest.raises(fairperm.InputError, match="metrics must be all of one score, or all of"):
        fairperm.audit(
            GOOD["y_true"],
            y_score=SCORES,
            sensitive_features=GOOD["sensitive_features"],
            metrics=["roc_auc_ovr", "roc_auc"],
        )


# -- Levels -----------------------------------------------------------------------------------

# Sizes, shares of the classes, and spread of the scores of a class among its own rows. All scores
# of other classes are standard normal, so every AUC is 0.8, whatever the shares.
Setting = tuple[tuple[int, int], tuple[list[float], list[float]], tuple[float, float]]
SETTINGS: dict[str, Setting] = {
    "shares": ((200, 200), ([0.8, 0.1, 0.1], [0.2, 0.3, 0.5]), (1.0, 1.0)),
    "small group": ((100, 600), ([0.15, 0.15, 0.7], [0.4, 0.3, 0.3]), (1.0, 1.0)),
    "large group": ((600, 150), ([0.1, 0.1, 0.1, 0.1, 0.6], [0.2] * 5), (0.5, 2.0)),
    "rare class": ((60, 600), ([0.05, 0.45, 0.5], [0.4, 0.3, 0.3]), (1.0, 1.0)),
}
N = 300


def draw_labels(rng: np.random.Generator, size: int, share: list[float]) -> NDArray[np.int64]:
    """Draw the classes of a group, again if one has fewer than two rows: there is no test then."""
    while True:
        y = rng.choice(len(share), size, p=share)
        if np.bincount(y, minlength=len(share)).min() > 1:
            return y


def count_rejections(setting: str, n: int, **options: Any) -> int:
    sizes, shares, spreads = SETTINGS[setting]
    rng, rejected = np.random.default_rng(24), 0
    group = np.repeat([0, 1], sizes)
    spread = np.repeat(spreads, sizes)
    shift = norm.ppf(0.8) * np.sqrt(1 + spread**2)
    for seed in range(n):
        pairs = zip(sizes, shares, strict=True)
        y = np.concatenate([draw_labels(rng, *pair) for pair in pairs])
        scores = rng.normal(size=(len(y), len(shares[0])))
        rows = np.arange(len(y))
        scores[rows, y] = shift + spread * scores[rows, y]
        data = {"y_true": y, "y_score": scores, "sensitive_features": group, "rng": seed}
        result = run({**data, "n_resamples": 319, "progress": False, **options})
        rejected += result.pvalue <= 0.05
    return rejected


@pytest.mark.validate
@by_metric
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_level_holds_where_groups_are_equal_in_it_only(setting: str, metric: str) -> None:
    assert count_rejections(setting, N, metric=metric) <= binom.ppf(0.999, N, 0.05)


@pytest.mark.validate
@by_metric
def test_without_studentizing_the_level_does_not_hold(metric: str) -> None:
    rejected = count_rejections("shares", N, metric=metric, variance=None)
    assert rejected > binom.ppf(0.999, N, 0.05)
