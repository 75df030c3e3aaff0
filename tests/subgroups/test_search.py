"""Values, statistics and p-values of all subgroups against independent calculations."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairperm
from fairperm import Band
from fairperm.subgroups import engine
from tests.planning.test_equal_groups import data as columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairperm import Subgroup, Subgroups

RATE = {"y_pred": "pred", "metric": "false_positive_rate"}
WAYS: dict[str, dict[str, Any]] = {
    "rate": RATE,
    "f1": {"y_pred": "pred", "metric": "f1_score"},
    "balanced accuracy": {"y_pred": "pred", "metric": "balanced_accuracy"},
    "auc": {"y_score": "score", "metric": "roc_auc"},
    "auc with ties": {"y_score": "rounded", "metric": "roc_auc"},
    "brier": {"y_score": "score", "metric": "brier_score"},
    "squared error": {"y_pred": "score", "metric": "mean_squared_error"},
    "rate in strata": {**RATE, "control_features": "site"},
    "auc in strata": {"y_score": "rounded", "metric": "roc_auc", "control_features": "site"},
    "squared error in strata": {
        "y_pred": "score",
        "metric": "mean_squared_error",
        "control_features": "site",
    },
    "weighted rate": {**RATE, "sample_weight": "weight"},
    "clustered rate": {**RATE, "cluster": "person"},
    "weighted auc": {"y_score": "rounded", "metric": "roc_auc", "sample_weight": "weight"},
    "clustered auc": {"y_score": "rounded", "metric": "roc_auc", "cluster": "person"},
    "weighted clustered auc in strata": {
        "y_score": "score",
        "metric": "roc_auc",
        "sample_weight": "weight",
        "cluster": "person",
        "control_features": "site",
    },
    # standard errors that are widened for few influential rows
    "heavy rate": {**RATE, "sample_weight": "heavy"},
    "heavy rate in strata": {**RATE, "sample_weight": "heavy", "control_features": "site"},
    "heavy clustered rate": {**RATE, "sample_weight": "heavy", "cluster": "person"},
    "sharp auc": {"y_score": "sharp", "metric": "roc_auc"},
    "heavy auc": {"y_score": "rounded", "metric": "roc_auc", "sample_weight": "heavy"},
    "dominated auc in strata": {
        "y_score": "rounded",
        "metric": "roc_auc",
        "sample_weight": "one heavy",
        "control_features": "site",
    },
    "sharp auc in strata": {"y_score": "sharp", "metric": "roc_auc", "control_features": "site"},
}


def make_data(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Return rows in which women under 40 have more false alarms; features agree in clusters."""
    rng = np.random.default_rng(seed)
    person = rng.integers(n // 3, size=n)
    each = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "town": rng.choice(np.array(["a", "b", None]), n, p=[0.5, 0.3, 0.2]),
            "age": rng.integers(18, 80, n),
        }
    )
    data = each.iloc[person].reset_index(drop=True)
    data["person"], data["site"] = person, np.array(["s", "t"])[person % 2]
    data["y"] = rng.random(n) < 0.5
    noise = rng.random(n)
    affected = (data.sex == "f") & (data.age < 40)
    data["pred"] = np.where(data.y, noise < 0.8, noise < 0.2 + 0.4 * affected)
    data["score"] = np.clip(0.3 * data.y + 0.7 * rng.random(n), 0, 1)
    data["rounded"] = data.score.round(1)
    data["weight"] = rng.uniform(0.5, 2, n)
    data["heavy"] = rng.lognormal(0, 1.5, n)
    data["one heavy"] = np.where(np.arange(n) == 0, 1000.0, 1.0)
    data["sharp"] = np.where(rng.random(n) < 0.02, rng.random(n), data.y + data.score)
    return data


def find(data: Any, **options: Any) -> Subgroups:
    defaults = {"features": ["sex", "town", "age"], "data": data, "n_resamples": 39, "rng": 1}
    return fairperm.find_subgroups("y", **{**defaults, **options})


def rows_of(one: Subgroup, data: pd.DataFrame) -> NDArray[np.bool_]:
    """Return the rows that meet the conditions."""
    inside = np.ones(len(data), bool)
    for name, condition in one.conditions.items():
        column = data[name]
        if condition is None:
            inside &= column.isna().to_numpy()
        elif isinstance(condition, Band):
            inside &= np.array([value in condition for value in column])
        else:
            inside &= (column == condition).to_numpy()
    return inside


@pytest.mark.filterwarnings("ignore:The gaps of")  # some subgroups are small
@pytest.mark.parametrize("way", WAYS)
def test_every_subgroup_has_the_values_and_the_statistic_of_a_test_against_the_rest(
    way: str,
) -> None:
    # with few weights or clusters, a search widens its standard error
    n = 2500 if {"sample_weight", "cluster"} & WAYS[way].keys() else 400
    data, options = make_data(n), WAYS[way]
    result = find(data, max_depth=2, min_rows=n // 16, **options)
    assert {len(one.conditions) for one in result.all} == {1, 2}
    for one in result.all[:: max(1, len(result.all) // 6)]:
        inside = rows_of(one, data)
        group = np.where(inside, "in", "out")
        columns = {name: data[column] for name, column in options.items() if name != "metric"}
        single = fairperm.permutation_test(
            data.y,
            **columns,
            sensitive_features=group,
            groups=("in", "out"),
            metric=options["metric"],
            n_resamples=1,
            rng=1,
            scheme="denominator" if way in {"rate", "f1"} else "auto",
        )
        assert one.n == inside.sum()
        assert [one.value, one.rest] == pytest.approx([single.values["in"], single.values["out"]])
        assert one.gap == pytest.approx(single.difference)
        if single.variance == "delta" and n == 2500:  # leave-one-out errors, in single tests alone
            assert 0.7 < one.statistic / single.statistic < 1.1
        else:
            assert one.statistic == pytest.approx(single.statistic, rel=1e-9)


REFUSED = {"equalized_odds", "average_precision", "gini"}
REFUSED |= {"roc_auc_ovr", "roc_auc_ovr_weighted"}
SEARCHED = set(fairperm.metric_names()) - REFUSED


@pytest.mark.filterwarnings("ignore:The gaps of", "ignore:Only about")
@pytest.mark.parametrize("metric", sorted(SEARCHED))
def test_every_metric_can_be_searched(metric: str) -> None:
    given = {**columns_of(metric), "n_resamples": 39, "rng": 1}
    group = given.pop("sensitive_features")
    del given["variance"]
    one, other = fairperm.find_subgroups(**given, features={"g": group}).all
    single = fairperm.permutation_test(**given, sensitive_features=group)
    assert (one.conditions, other.conditions) == ({"g": 0}, {"g": 1})
    assert [one.value, one.rest] == pytest.approx([single.values[0], single.values[1]])
    assert [one.gap, -other.gap] == pytest.approx([single.difference] * 2)


def test_a_metric_of_the_user_can_be_searched() -> None:
    metric = fairperm.register_metric(
        "cost_of_a_search",
        contributions={
            "misses": lambda y_true, y_pred: y_true * (1 - y_pred),
            "alarms": lambda y_true, y_pred: y_pred * (1 - y_true),
        },
        value=lambda misses, alarms: 5 * misses + alarms,
        kind="binary",
        meaning="mean cost, where a miss costs five times a false alarm",
    )
    data = make_data()
    data["cost"] = 5 * (data.y & ~data.pred) + (data.pred & ~data.y)
    for one in find(data, y_pred="pred", metric=metric.name, max_depth=1).all:
        inside = rows_of(one, data)
        assert one.value == pytest.approx(data.cost[inside].mean())
        assert one.rest == pytest.approx(data.cost[~inside].mean())


@pytest.mark.parametrize("metric", ["accuracy", "false_positive_rate", "mean_squared_error"])
@pytest.mark.parametrize("extra", [{}, {"control_features": "site"}, {"cluster": "person"}])
def test_outcomes_that_are_all_equal_differ_nowhere(metric: str, extra: dict[str, str]) -> None:
    result = find(make_data(), y_pred="y", metric=metric, max_depth=1, min_rows=10, **extra)
    assert len(result.found) == 0
    for one in result.all:
        assert (one.gap, one.pvalue, one.adjusted_pvalue) == (0, 1, 1)
        assert one.confidence_interval[0] < 0 < one.confidence_interval[1]


def test_subgroups_that_cannot_be_tested_are_noted() -> None:
    strata = {**RATE, "control_features": "sex"}
    with pytest.warns(fairperm.FairpermWarning, match="2 subgroups could not be tested.*in strata"):
        result = find(make_data(), **strata, max_depth=1)
    untested = [one for one in result.all if math.isnan(one.adjusted_pvalue)]
    assert [one.conditions for one in untested] == [{"sex": "f"}, {"sex": "m"}]
    message = "metric must be defined in some subgroup and in its rest of the same stratum"
    with pytest.raises(fairperm.UndefinedMetricError, match=message):
        find(make_data(), **strata, features="sex")


def test_few_influential_rows_are_noted() -> None:
    message = "The gaps of .* subgroups? among those found rest on few influential rows"
    with pytest.warns(fairperm.FairpermWarning, match=message):
        find(make_data(2500), **WAYS["heavy rate"], max_depth=2, min_rows=156, alpha=0.999)


HEAVY: dict[str, dict[str, Any]] = {
    "mean": {"metric": "mean_outcome"},
    "squared error": {"metric": "mean_squared_error", "y_pred": "guess"},
    "r2": {"metric": "r2_score", "y_pred": "guess"},
    "mean in strata": {"metric": "mean_outcome", "control_features": "site"},
}


def make_heavy_data(n: int = 900, seed: int = 0) -> pd.DataFrame:
    """Return rows whose outcomes have heavy tails in one tenth of them."""
    rng = np.random.default_rng(seed)
    tenth, half = rng.integers(10, size=n), rng.integers(2, size=n)
    outcome = np.where(tenth == 0, rng.exponential(2, n), rng.uniform(0, 4, n)) + half
    guess = outcome + (1 + half) * rng.uniform(-2, 2, n) * np.where(tenth == 0, 1.5, 1)
    site = rng.integers(3, size=n)
    return pd.DataFrame(
        {"y": outcome, "guess": guess, "tenth": tenth.astype(str), "half": half, "site": site}
    )


@pytest.mark.parametrize("way", HEAVY)
def test_means_of_few_influential_rows_are_noted_as_in_single_tests(way: str) -> None:
    data, how = make_heavy_data(), HEAVY[way]
    with pytest.warns(fairperm.FairpermWarning, match="rest on few influential rows"):
        result = fairperm.find_subgroups(
            "y", data=data, features=["tenth", "half"], alpha=0.9, n_resamples=99, rng=1, **how
        )
    noted = 0
    for one in result.found:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            single = fairperm.permutation_test(
                "y",
                data=data,
                sensitive_features=rows_of(one, data),
                groups=(True, False),
                n_resamples=1,
                rng=1,
                **how,
            )
        noted += any("how " in note and " varies" in note for note in single.notes)
    assert noted > 0
    assert noted < len(result.found) or way == "r2"
    number = f"The gaps of {noted} subgroup"
    (note,) = (note for note in result.notes if note.startswith(number))
    assert "even widened" not in note
    assert note in result.to_dict()["notes"]
    assert number in repr(result)


def test_means_of_enough_rows_have_no_note() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(4, size=800)
    found = fairperm.find_subgroups(
        rng.normal(size=800) + (group == 0), features={"group": group.astype(str)},
        metric="mean_outcome", n_resamples=99, rng=1,
    )  # fmt: skip
    assert found.found
    assert found.notes == ()


def test_values_of_all_subgroups_are_those_of_a_group_by() -> None:
    data = make_data(600)
    data["error"] = (data.y != data.pred).astype(float)
    result = find(data, y_pred="pred", metric="error_rate", min_rows=5, bands=2)
    data["band"] = data.age > np.sort(data.age)[len(data) // 2 - 1]
    names = ["sex", "town", "band"]
    expected = set()
    for depth in (1, 2, 3):
        for some in itertools.combinations(names, depth):
            table = data.groupby(list(some), dropna=False).error.agg(["mean", "size"])
            large = table[(table["size"] >= 5) & (table["size"] <= len(data) - 5)]
            expected |= {(round(mean, 12), size) for mean, size in large.to_numpy().tolist()}
    assert {(round(one.value, 12), one.n) for one in result.all} == expected


@pytest.mark.validate
def test_auc_of_every_subgroup_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    data = make_data(500, seed=3)
    for one in find(data, y_score="rounded", metric="roc_auc").all:
        inside = rows_of(one, data)
        parts = [data[inside], data[~inside]]
        aucs = [roc_auc_score(part.y, part["rounded"]) for part in parts]
        assert [one.value, one.rest] == pytest.approx(aucs)
        assert one.counts == {"negatives": (~parts[0].y).sum(), "positives": parts[0].y.sum()}


def list_arrangements(outcome: NDArray[Any]) -> NDArray[np.int32]:
    """Return all different orders of some zeros and ones."""
    n, ones = len(outcome), int(outcome.sum())
    every = np.zeros((math.comb(n, ones), n), np.int32)
    for row, chosen in zip(every, itertools.combinations(range(n), ones), strict=True):
        row[list(chosen)] = 1
    return every


def count_max_t(
    y: NDArray[Any], subgroups: Sequence[NDArray[np.bool_]], alternative: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return step-down max-T and raw p-values by all arrangements, which join the sample."""

    def statistics(outcomes: NDArray[Any]) -> NDArray[np.float64]:
        p, columns = outcomes.mean(axis=1), []
        for inside in subgroups:
            gap = outcomes[:, inside].mean(axis=1) - outcomes[:, ~inside].mean(axis=1)
            columns.append(gap / np.sqrt(p * (1 - p) * (1 / inside.sum() + 1 / (~inside).sum())))
        return np.stack(columns, axis=1)

    # the sample is counted besides all arrangements: (b + 1)/(B + 1)
    every = np.concatenate([statistics(y[None]), statistics(list_arrangements(y))])
    outwards = {"symmetric": [np.abs(every)], "greater": [every], "two-sided": [every, -every]}
    adjusted, raw = [], []
    for tail in outwards[alternative]:
        raw.append((tail >= tail[0] - 1e-9).mean(axis=0))
        quantile = np.sort(tail, axis=0)[math.ceil(0.975 * len(tail)) - 1]
        scaled = tail if alternative == "symmetric" else tail / quantile
        pvalues, floor = np.empty(len(subgroups)), 0.0
        left = list(np.argsort(-scaled[0], kind="stable"))
        while left:
            share = (scaled[:, left].max(axis=1) >= scaled[0, left[0]] - 1e-9).mean()
            floor = pvalues[left[0]] = max(floor, share)
            left.pop(0)
        adjusted.append(pvalues)
    one, other = (np.minimum(1, len(tails) * np.min(tails, axis=0)) for tails in (adjusted, raw))
    return one, other


@pytest.mark.parametrize("alternative", ["two-sided", "symmetric", "greater"])
def test_pvalues_of_a_small_case_are_those_of_all_permutations(
    alternative: Literal["two-sided", "symmetric", "greater"], monkeypatch: pytest.MonkeyPatch
) -> None:
    y = np.repeat([1, 0], [5, 7])
    features = {"a": list("xxxxxyyyyyyy"), "b": list("uvuvuvuvuvuu")}
    every = list_arrangements(y)
    left = iter(every)

    def take(_: object, n: int, rng: object) -> NDArray[np.int32]:
        del rng
        return np.array(list(itertools.islice(left, n)))

    monkeypatch.setattr(engine.SubgroupEngine, "shuffled", take)
    result = fairperm.find_subgroups(
        y_pred=y,
        features=features,
        metric="selection_rate",
        max_depth=2,
        min_rows=2,
        alternative=alternative,
        n_resamples=len(every),
        n_jobs=1,
        rng=1,
    )
    assert next(left, None) is None
    subgroups = [rows_of(one, pd.DataFrame(features)) for one in result.all]
    adjusted, raw = count_max_t(y, subgroups, alternative)
    assert len(result.all) == 8
    assert adjusted.min() < 0.1
    assert [one.adjusted_pvalue for one in result.all] == pytest.approx(adjusted, rel=1e-12)
    assert [one.pvalue for one in result.all] == pytest.approx(raw, rel=1e-12)


@pytest.mark.parametrize("shuffled_in_the_time_of_a_count", [0, 10**6])
def test_draws_by_counts_and_by_rows_have_the_same_distribution(
    shuffled_in_the_time_of_a_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_SHUFFLED", shuffled_in_the_time_of_a_count)
    y, n = np.repeat([1, 0], [5, 7]), 10_000
    features = {"a": list("xxxxxyyyyyyy"), "b": list("uvuvuvuvuvuu")}
    result = fairperm.find_subgroups(
        y_pred=y,
        features=features,
        metric="selection_rate",
        max_depth=2,
        min_rows=2,
        alternative="symmetric",
        n_resamples=n,
        rng=1,
    )
    subgroups = [rows_of(one, pd.DataFrame(features)) for one in result.all]
    bound = 4 * math.sqrt(0.25 / n)
    for expected, name in zip(
        count_max_t(y, subgroups, "symmetric"), ("adjusted_pvalue", "pvalue"), strict=True
    ):
        found = [getattr(one, name) for one in result.all]
        assert found == pytest.approx(expected, abs=bound)


@pytest.mark.filterwarnings("ignore:The gaps of")
def test_order_of_rows_and_columns_jobs_and_library_change_nothing() -> None:
    data = make_data(300)
    first = find(data, **RATE, n_jobs=2)
    shuffled = data.sample(frac=1, random_state=1)
    again = find(shuffled, **RATE, features=["age", "town", "sex"])
    columns = {name: data[name].to_numpy() for name in ("sex", "town", "age")}
    other = find({"y": data.y.to_numpy(), "pred": data.pred.to_numpy()}, **RATE, features=columns)
    for one in (again, other):
        assert {**one.to_dict(), "features": None} == {**first.to_dict(), "features": None}
    table = pl.from_pandas(data)
    for frame in (table, table.to_arrow(), table.lazy(), duckdb.sql("SELECT * FROM data")):
        counted = find(frame, **RATE)
        assert counted.to_dict() == first.to_dict()
    assert find(data, **RATE, rng=2).to_dict() != first.to_dict()
    auc = WAYS["weighted clustered auc in strata"]
    assert find(shuffled, **auc).to_dict() == find(data, **auc).to_dict()


def test_spark_changes_nothing(spark: Any) -> None:
    data = make_data(300)[["y", "pred", "sex", "town", "age"]]
    rows = data.astype(object).where(data.notna(), None).to_numpy().tolist()
    schema = "y boolean, pred boolean, sex string, town string, age int"
    frame = spark.createDataFrame(rows, schema)
    assert find(frame, **RATE).to_dict() == find(data, **RATE).to_dict()
