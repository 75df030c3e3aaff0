"""Clusters of a lazy frame: counting them gives the same numbers as reading their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fairperm
from fairperm import InputError
from fairperm.data.lazy import choice as counting
from fairperm.data.lazy import clusters
from fairperm.data.lazy import counting as lazy
from tests.support.lazy_data import LAZY, by_engine, clustered, number_bins, run, same

WITH = {"cluster": "person"}
CASES: dict[str, dict[str, Any]] = {
    "rate": {"metric": "false_negative_rate"},
    "f1 in strata": {"metric": "f1_score", "control_features": "region"},
    "predictions": {"metric": "accuracy", "y_pred": "predicted", "y_score": None},
    "joint": {"metric": "equalized_odds"},
    "auc of few scores": {"metric": "roc_auc"},
    "brier of few scores": {"metric": "brier_score_loss"},
    "bootstrap": {"metric": "accuracy", "variance": "fast_bootstrap"},
    "normal limit": {"metric": "accuracy", "n_resamples": 0},
}


@pytest.fixture(params=[True, False], ids=["counted", "fetched"])
def is_counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let clusters be counted in the engine and nowhere else; or not at all."""
    if request.param:
        monkeypatch.setattr(lazy.LazyRows, "count_if_few", lambda _: None)
    else:
        monkeypatch.setattr(counting, "count_clusters", lambda *_: None)
    return bool(request.param)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", ["duckdb", "polars"])
def test_who_counts_clusters_changes_nothing(form: str, case: str, is_counted: bool) -> None:
    table = clustered(900, 3)
    options = {**CASES[case], **WITH}
    assert same(run(LAZY[form](table), **options), run(table, **options))


@pytest.mark.parametrize("per", [2, 5])
def test_many_clusters(per: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than rows are looked at one by one: equal ones are drawn by their number."""
    table = clustered(60_000, per)
    monkeypatch.setattr(lazy.LazyRows, "count_if_few", lambda _: None)
    for metric in ("accuracy", "f1_score"):
        expected = run(table, metric, **WITH)
        assert same(run(LAZY["duckdb"](table), metric, **WITH), expected)
        assert expected.counts["Male"]["clusters"] > 5_000


def test_equal_clusters_are_one_row_and_little_leaves_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched: list[int] = []
    module: Any = clusters
    fetch = module.fetch

    def seen(rows: Any) -> Any:
        found = fetch(rows)
        fetched.append(len(found))
        return found

    monkeypatch.setattr(clusters, "fetch", seen)
    run(LAZY["duckdb"](clustered(20_000, 2)), "accuracy", **WITH)
    assert max(fetched) <= 20  # 10 kinds of two rows in four cells, for each group
    assert fetched[0] == 0  # clusters in several groups


def test_other_tests_and_functions(is_counted: bool) -> None:
    table = clustered(1_500, 3)

    def share(y_true: Any, y_pred: Any) -> float:
        return float(np.mean(y_true == (y_pred >= 0.5)))

    for data in (LAZY["duckdb"](table), LAZY["polars"](table)):
        assert same(run(data, share, **WITH), run(table, share, **WITH))
        options: dict[str, Any] = {"y_score": "score", "n_resamples": 99, "rng": 3, **WITH}
        asked = {"sensitive_features": "region", "metric": "accuracy", **options}
        one, other = (fairperm.omnibus_test("label", data=each, **asked) for each in (table, data))
        assert same(one, other)
        asked = {"sensitive_features": ["sex", "region"], "metrics": ["accuracy", "f1_score"]}
        audits = [
            fairperm.audit("label", data=each, adjust=None, **asked, **options)
            for each in (table, data)
        ]
        assert audits[0].to_dict() == audits[1].to_dict()


@by_engine
def test_missing_values(form: str) -> None:
    table = clustered(300, 3)
    columns = table.to_pydict()
    for name, rows in {"sex": [3, 50], "label": [8], "person": [9], "region": [10]}.items():
        for row in rows:
            columns[name][row] = None
    columns["score"][3] = columns["score"][77] = float("nan")
    table = pa.table(columns)
    options: dict[str, Any] = {**WITH, "control_features": "region", "missing": "drop"}
    expected = run(table, "accuracy", **options)
    assert expected.n_dropped == 6
    assert same(run(LAZY[form](table), "accuracy", **options), expected)
    said = (
        r"'label'\) has 1 .*'score'\) has 2 .*'sex'\) has 2 .*'region'\) has 1 .*'person'\) has 1"
    )
    with pytest.raises(InputError, match=said):
        run(LAZY[form](table), "accuracy", control_features="region", **WITH)


@pytest.mark.parametrize(
    ("rows", "match"), [(0, "must have at least one row"), (3, r"'person'\) has 3 missing values")]
)
def test_no_complete_row(rows: int, match: str) -> None:
    table = clustered(900, 3).slice(0, rows)
    place = table.column_names.index("person")
    data = table.set_column(place, "person", pa.nulls(rows, table["person"].type))
    with pytest.raises(InputError, match=match):
        run(LAZY["duckdb"](data), "accuracy", **WITH)


def test_bins_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    table = clustered(900, 3, decimals=None)
    place = number_bins(table["score"].to_numpy(), 8)
    by_hand = run(table.set_column(1, "score", pa.array(place)), "roc_auc", **WITH)
    with pytest.warns(fairperm.FairpermWarning, match="put into bins"):
        result = run(LAZY["duckdb"](table), "roc_auc", score_bins=8, **WITH)
    assert np.array_equal(result.null_distribution, by_hand.null_distribution)
    assert result.binning_errors is not None


def test_a_cluster_in_two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    table = clustered(300, 3)
    sex = table["sex"].to_pylist()
    sex[0] = "Male" if sex[0] == "Female" else "Female"
    data = LAZY["duckdb"](table.set_column(3, "sex", pa.array(sex)))
    with pytest.raises(InputError, match="cluster must keep to one group"):
        run(data, "accuracy", **WITH)
    monkeypatch.setattr(lazy.LazyRows, "count_if_few", lambda _: None)
    with pytest.raises(InputError, match=r"cluster must have at most 1,048,576 .*; it does not"):
        run(data, "accuracy", **WITH)


@pytest.mark.parametrize("options", [{}, {"score_bins": 40}])
def test_too_many_clusters(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "MAX_KINDS", 40)
    data = LAZY["duckdb"](clustered(900, 9, decimals=None))
    metric = "roc_auc" if options else "accuracy"
    with pytest.raises(
        InputError, match=r"at most 40 distinct clusters .*Pass a random sample of the clusters"
    ):
        run(data, metric, **options, **WITH)


def test_no_row_is_lost_whose_value_comes_back_as_another() -> None:
    """Nanoseconds are lost on the way from DuckDB: the value that came is found in no row."""
    table = clustered(600, 3)
    times = np.array(["2020-01-01", "2021-01-01T00:00:00.000000007"], "datetime64[ns]")
    for at, name in ((0, "label"), (2, "predicted")):
        table = table.set_column(at, name, pa.array(times[table[name].to_numpy()]))
    options: dict[str, Any] = {
        "y_pred": "predicted", "sensitive_features": "sex", "cluster": "person", "n_resamples": 99,
        "metric": lambda y_true, y_pred: float(np.mean(y_true == y_pred)), "rng": 1,
    }  # fmt: skip
    expected, result = (
        fairperm.permutation_test("label", data=data, **options)
        for data in (pl.DataFrame(table), LAZY["duckdb"](table))
    )
    assert result.counts == expected.counts
    assert (result.values, result.pvalue) == (expected.values, expected.pvalue)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@by_engine
def test_clusters_that_are_also_outcomes(form: str) -> None:
    table = clustered(300, 15)
    options: dict[str, Any] = {"y_pred": "label", "sensitive_features": "sex"}
    options |= {"metric": "mean_error", "cluster": "person", "n_resamples": 99, "rng": 1}
    eager = fairperm.permutation_test("person", data=table, **options)
    lazily = fairperm.permutation_test("person", data=LAZY[form](table), **options)
    assert lazily.values == eager.values
    assert lazily.pvalue == eager.pvalue
