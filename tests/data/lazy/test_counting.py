"""Lazy frames: counted rows give the same numbers as rows that are read."""

from __future__ import annotations

import threading
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fairperm
from fairperm import InputError
from fairperm.data import columns
from fairperm.data.lazy import counting as lazy
from fairperm.data.lazy.backends import stage
from fairperm.engines import choice
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
from tests.support.lazy_data import EAGER, LAZY, by_engine, run, same, sample, with_gaps

FORMS = {**{f"{name} eager": form for name, form in EAGER.items()}, **LAZY}
RATE = {"metric": "false_negative_rate", "scheme": "pooled"}

# metric and options of a test: random draws, and the exact test of rates
CASES: dict[str, dict[str, Any]] = {
    "rate": RATE,
    "exact rate": {"metric": "false_negative_rate"},
    "rate of predictions": {**RATE, "y_pred": "predicted", "y_score": None},
    "joint": {"metric": "equalized_odds"},
    "f1": {"metric": "f1_score"},
    "auc": {"metric": "roc_auc"},
    "auc in strata": {"metric": "roc_auc", "control_features": "region"},
    "brier": {"metric": "brier_score_loss"},
    "log loss": {"metric": "log_loss"},
    "calibration": {"metric": "calibration_in_the_large"},
    "regression": {"metric": "mean_squared_error", "y_pred": "score", "y_score": None},
    "strata": {**RATE, "control_features": "region"},
    "strata of two columns": {**RATE, "control_features": ["region", "predicted"]},
    "groups of two columns": {
        "metric": "accuracy",
        "sensitive_features": ["sex", "region"],
        "groups": (("Female", "north"), ("Male", "west")),
        "scheme": "pooled",
    },
    "weights": {"metric": "accuracy", "sample_weight": "weight"},
    "weighted auc": {"metric": "roc_auc", "sample_weight": "weight"},
    "bootstrap": {"metric": "f1_score", "variance": "fast_bootstrap"},
    "one column twice": {**RATE, "control_features": "region", "sensitive_features": "region",
                         "groups": ("north", "south"), "scheme": "pooled"},
    "label as prediction": {"metric": "accuracy", "y_pred": "label", "y_score": None},
    "score as label": {"metric": "mean_absolute_error", "y_pred": "score", "y_score": None},
}  # fmt: skip
DEFINED = [name for name in CASES if name != "one column twice"]


@pytest.mark.parametrize(
    "n",
    [
        pytest.param(400, id="few rows"),
        pytest.param(30_000, id="many rows", marks=pytest.mark.validate),
    ],
)
@pytest.mark.parametrize("case", DEFINED)
def test_who_counts_changes_nothing(case: str, n: int) -> None:
    table = sample(n)
    expected = run(table, **CASES[case])
    for name, form in FORMS.items():
        if name != "dask" or n > 400 or case in {"rate", "auc in strata", "weights"}:  # it is slow
            assert same(run(form(table), **CASES[case]), expected), name


@pytest.mark.parametrize("metric", ["roc_auc", "brier_score_loss"])
@pytest.mark.parametrize("n", [400, 30_000])
def test_scores_that_hardly_repeat(metric: str, n: int) -> None:
    table = sample(n, decimals=None)
    expected = run(table, metric)
    for name, form in LAZY.items():
        assert same(run(form(table), metric), expected), name


@pytest.mark.parametrize("distinct", [100, 120, 150, 200, 290, 310, 500, 1000])
@pytest.mark.parametrize("metric", ["roc_auc", "brier_score_loss"])
def test_the_same_engine_draws_however_often_scores_repeat(metric: str, distinct: int) -> None:
    """Whether rows are drawn one by one or by kinds must not depend on who counted them."""
    rng = np.random.default_rng(distinct)
    n = 30_000
    place = rng.integers(0, distinct, n)
    # every score has one label only: there are few kinds of rows
    table = pa.table(
        {"label": place % 2, "score": place / distinct, "sex": rng.choice(["a", "b"], n)}
    )
    assert same(run(LAZY["duckdb"](table), metric), run(table, metric))


@by_engine
def test_audits(form: str) -> None:
    table = sample(1000)
    options: dict[str, Any] = {
        "y_score": "score",
        "sensitive_features": ["sex", "region"],
        "metrics": ["selection_rate", "roc_auc", "brier_score_loss"],
        "n_resamples": 399,
        "rng": 3,
        "adjust": None,
        "intersections": form == "duckdb",
    }
    first = fairperm.audit("label", data=table, **options)
    second = fairperm.audit("label", data=LAZY[form](table), **options)
    assert first.to_dict() == second.to_dict()


# Scores and labels of every kind.


@by_engine
@pytest.mark.parametrize("threshold", [0.7, 0.1, 0.3])
def test_a_threshold_has_the_precision_of_the_scores(form: str, threshold: float) -> None:
    table = sample(400)
    single = table.set_column(1, "score", table["score"].cast(pa.float32()))
    expected = run(single, threshold=threshold, **RATE)
    assert same(run(LAZY[form](single), threshold=threshold, **RATE), expected)
    by_hand = pa.array(np.round(table["score"].to_numpy(), 2) >= threshold)
    table = single.set_column(2, "predicted", by_hand)
    assert same(run(table, y_pred="predicted", y_score=None, **RATE), expected)


@by_engine
@pytest.mark.parametrize("score", ["integers", "decimals"])
def test_scores_need_not_be_floats(form: str, score: str) -> None:
    table = sample(400)
    cents = (table["score"].to_numpy() * 100).round().astype(np.int64)
    kind = pa.array(cents) if score == "integers" else pa.array(cents).cast(pa.decimal128(38, 2))
    table = table.set_column(1, "score", kind)
    for metric, options in (("roc_auc", {}), ("accuracy", {"threshold": 40})):
        expected = run(table, metric, **options)
        assert same(run(LAZY[form](table), metric, **options), expected)


@pytest.mark.parametrize("form", LAZY)
@pytest.mark.parametrize("metric", ["accuracy", "roc_auc", "brier_score_loss"])
def test_missing_values(form: str, metric: str) -> None:
    table = with_gaps()
    options: dict[str, Any] = {"control_features": "region", "missing": "drop"}
    expected = run(table, metric, **options)
    result = run(LAZY[form](table), metric, **options)
    assert result.n_dropped == 9
    assert same(result, expected)
    said = r"'label'\) has 2 missing values .*; y_score \(column 'score'\) has 3 .*; sensitive_"
    with pytest.raises(InputError, match=said):
        run(LAZY[form](table), metric, control_features="region")


@by_engine
def test_labels_of_any_kind(form: str) -> None:
    table = sample(400)
    is_one = table["label"].to_numpy() == 1
    for labels, pos_label in (
        (is_one, None),
        (np.where(is_one, 1, -1), None),
        (np.where(is_one, "yes", "no"), "yes"),
        (np.where(is_one, "yes", "no"), "no"),
    ):
        changed = table.set_column(0, "label", pa.array(labels))
        for metric in ("true_positive_rate", "roc_auc"):
            expected = run(changed, metric, pos_label=pos_label)
            assert same(run(LAZY[form](changed), metric, pos_label=pos_label), expected)


@pytest.mark.parametrize("form", LAZY)
def test_infinite_scores_are_refused(form: str) -> None:
    table = sample(400)
    scores = table["score"].to_numpy().copy()
    scores[5] = np.inf
    table = table.set_column(1, "score", pa.array(scores))
    for metric in ("accuracy", "roc_auc", "brier_score_loss"):
        with pytest.raises(InputError, match=r"y_score \(column 'score'\) must be finite; got inf"):
            run(LAZY[form](table), metric)


@pytest.mark.parametrize("name", ["a.b", "a b", "a`b", 'a"b', "ä", "select", "rows", "prediction"])
@by_engine
def test_names_of_columns_can_be_anything(form: str, name: str) -> None:
    table = sample(400)
    renamed = table.rename_columns({"sex": name, "score": f"{name} score", "label": f"{name}?"})
    options: dict[str, Any] = {"sensitive_features": name, "y_score": f"{name} score"}
    options |= {"metric": "accuracy"}
    options |= {"rng": 1, "n_resamples": 99}
    expected = fairperm.permutation_test(f"{name}?", data=renamed, **options)
    result = fairperm.permutation_test(f"{name}?", data=LAZY[form](renamed), **options)
    assert same(result, expected)


# What is refused, before anything is counted.


@pytest.mark.parametrize("form", LAZY)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sensitive_features": "Sex"}, r"got 'Sex'. Did you mean 'sex'\?"),
        ({"y_score": "scores"}, r"y_score must be a column .* Did you mean 'score'\?"),
        ({"control_features": ["sex", "regio"]}, r"Did you mean 'region'\?"),
        ({"y_score": "sex"}, r"y_score \(column 'sex'\) must be made of real numbers"),
        ({"sensitive_features": np.zeros(400)}, "sensitive_features must be the name of a column"),
        ({"sensitive_features": [[0] * 400]}, "sensitive_features must be the name of a column"),
        ({"y_score": [0.5] * 400}, "y_score must be the name of a column"),
        ({"cluster": {"a": [1]}}, "cluster must be the name of a column of data, which is a lazy"),
        ({"sensitive_features": None}, "sensitive_features must be given; got None"),
        ({"y_score": None}, "y_pred must be given for this metric; got None"),
        ({"y_pred": "predicted"}, "Pass y_pred or y_score, not both"),
        ({"threshold": 2}, r"threshold must be above the lowest score .* as negative"),
        ({"threshold": -1}, r"threshold must be above the lowest score .* as positive"),
        ({"threshold": "high"}, "threshold must be a finite number; got 'high'"),
        ({"pos_label": 3}, "pos_label must be one of the labels"),
        ({"score_bins": 100}, "score_bins cannot be used for accuracy: it is no AUC"),
        ({"metric": "roc_auc", "score_bins": 1}, "score_bins must be an integer from 2"),
        ({"metric": "mean_squared_error"}, "y_pred must be given for mean_squared_error"),
    ],
)
def test_refusals(form: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(fairperm.FairpermError, match=said):
        run(LAZY[form](sample(400)), **{"metric": "accuracy", **options})


@pytest.mark.parametrize("form", LAZY)
@pytest.mark.parametrize("metric", ["accuracy", "roc_auc", "brier_score_loss"])
def test_no_rows(form: str, metric: str) -> None:
    with pytest.raises(InputError, match="must have at least one row; got none"):
        run(LAZY[form](sample(400).slice(0, 0)), metric)


@pytest.mark.parametrize("form", LAZY)
def test_all_scores_missing(form: str) -> None:
    table = sample(400).set_column(1, "score", pa.array([None] * 400, pa.float64()))
    for metric in ("accuracy", "roc_auc"):
        with pytest.raises(InputError, match="dropped all 400 rows"):
            run(LAZY[form](table), metric, missing="drop")


def test_too_many_distinct_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "MAX_KINDS", 50)
    data = LAZY["duckdb"](sample(400, decimals=None))
    with pytest.raises(
        InputError, match=r"at most 50 distinct rows for .*Pass a random sample of the rows"
    ):
        run(data, "average_precision")


@pytest.mark.parametrize("metric", ["roc_auc", "brier_score"])
def test_very_many_rows_are_counted_in_memory_as_in_an_engine(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One seed has one p-value: rows that repeat are drawn by kind, wherever they are."""
    table = sample(3_000)
    monkeypatch.setattr(choice, "MAX_ROWS", 1_000)
    monkeypatch.setattr(choice, "_MAX_KINDS", 600)
    monkeypatch.setattr(columns, "MAX_REPEATED", 1_000)
    monkeypatch.setattr(choice, "MERGEABLE", 0)
    expected = run(LAZY["duckdb"](table), metric)
    assert same(run(table, metric), expected)
    assert same(run(LAZY["polars"](table), metric), expected)
    options: dict[str, Any] = {"sensitive_features": "region", "n_resamples": 99, "rng": 1}
    first, second = (
        fairperm.omnibus_test("label", y_score="score", metric=metric, data=data, **options)
        for data in (table, LAZY["duckdb"](table))
    )
    assert same(first, second)
    with monkeypatch.context() as patch:
        patch.setattr(choice, "_MAX_KINDS", 100)  # more are distinct: rows are drawn one by one
        drawn = run(table, metric)
    assert drawn.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert not np.array_equal(drawn.null_distribution, expected.null_distribution)


# Engines that fail.


def failing_duckdb() -> Any:
    table = sample(400)
    con = duckdb.connect()
    return con.from_arrow(table).project("*, error('no such disk') as label2")


def test_a_failure_of_the_engine_is_one_error() -> None:
    with pytest.raises(
        fairperm.FairpermError, match=r"duckdb failed while counting equal rows: .*no such disk"
    ) as caught:
        fairperm.permutation_test(
            "label2", y_score="score", sensitive_features="sex", metric="accuracy",
            data=failing_duckdb(),
        )  # fmt: skip
    assert isinstance(caught.value.__cause__, duckdb.Error)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(fairperm.FairpermError, match="failed while reading the names of the col"):
        run(pl.scan_parquet("/nowhere/at/all.parquet"), "accuracy")


# Sweeps.


@pytest.mark.parametrize("most", [lazy.MAX_KINDS, 500], ids=["scores", "intervals"])
@by_engine
@pytest.mark.parametrize(
    "options",
    [
        {"metric": "f1_score"},
        {"metric": ["true_positive_rate", "selection_rate"], "thresholds": [0.25, 0.5, 0.9]},
        {"metric": "accuracy", "control_features": "region", "thresholds": 20},
        {"metric": "accuracy", "sensitive_features": "region", "groups": ("west", "north"),
         "thresholds": 7},
        {"metric": "accuracy", "missing": "drop", "thresholds": 10},
    ],
    ids=["101", "list", "strata", "groups", "missing"],
)  # fmt: skip
def test_sweeps(
    form: str, options: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = sample(1500, decimals=None)
    if "missing" in options:
        table = with_gaps(1500)
        scores = table["score"].to_numpy() * 5 - 2  # the range is not 0 to 1
        table = table.set_column(
            1, "score", pa.array(scores, mask=table["score"].is_null().to_numpy())
        )
    rest: dict[str, Any] = {"sensitive_features": "sex", "n_resamples": 99, "rng": 3}
    rest |= options
    expected = threshold_sweep("label", "score", data=table, **rest)
    monkeypatch.setattr(lazy, "MAX_KINDS", most)
    result = threshold_sweep("label", "score", data=LAZY[form](table), **rest)
    assert repr(result.to_dict()) == repr(expected.to_dict())


def test_sweeps_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    table = sample(1500)
    table = table.set_column(1, "score", table["score"].cast(pa.float32()))
    options: dict[str, Any] = {"sensitive_features": "sex", "n_resamples": 99, "rng": 3}
    options |= {"metric": "f1_score", "thresholds": [0.1, 0.3, 0.7, 0.71]}
    expected = threshold_sweep("label", "score", data=table, **options)
    for most in (lazy.MAX_KINDS, 30):
        monkeypatch.setattr(lazy, "MAX_KINDS", most)
        for name, form in LAZY.items():
            result = threshold_sweep("label", "score", data=form(table), **options)
            assert repr(result.to_dict()) == repr(expected.to_dict()), name


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"thresholds": "scores"}, "at most 300 distinct"),
        ({"thresholds": 1001}, "thresholds must be at most 1,000 for a lazy frame"),
        ({"thresholds": [2.0, 3.0]}, "thresholds must include one between the lowest and the"),
        ({"groups": ("a", "b")}, "groups must be made of groups in sensitive_features"),
    ],
)
def test_sweeps_that_are_refused(
    options: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy, "MAX_KINDS", 300)
    data = LAZY["duckdb"](sample(1500, decimals=None))
    chosen: dict[str, Any] = {"sensitive_features": "sex", "metric": "accuracy"} | options
    with pytest.raises(InputError, match=said):
        threshold_sweep("label", "score", data=data, **chosen)


def test_interrupted_queries_are_no_errors_of_the_data() -> None:
    """Ctrl-C while DuckDB counts; it has two errors for that."""
    query = """SELECT hash(a.i * b.i) % 2 AS y, hash(a.i + b.i) % 2 AS g
        FROM range(1_000_000) AS a(i), range(1_000_000) AS b(i)"""
    connection = duckdb.connect()
    rows = connection.sql(query)
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.1):
            connection.interrupt()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        fairperm.permutation_test(
            "y", data=rows, sensitive_features="g", metric="base_rate", groups=(0, 1)
        )
    ended.set()
    with pytest.raises(KeyboardInterrupt, match=r"^$"), stage("counting", None):
        raise RuntimeError("Query interrupted")


@pytest.mark.parametrize("first", ["An error occurred while calling o45.collect.", "… Trace:"])
def test_what_java_says_is_named(first: str) -> None:
    kind = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})
    text = f"{first}\n: java.lang.OutOfMemoryError: Java heap space\n\tat java.base/x.Y(Y.java:1)\n"
    with (
        pytest.raises(fairperm.FairpermError, match=r"Error: java\.lang\.OutOfMemoryError: Java h"),
        stage("counting", None),
    ):
        raise kind(text)
