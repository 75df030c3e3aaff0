"""Rankings of large lazy frames, whose items are fetched."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import fairperm
from fairperm.data.lazy import lists
from fairperm.hypothesis_tests.rankings import lists as ranked_lists

QUALITY = ("ndcg", "precision", "recall", "average_precision", "reciprocal_rank", "hit_rate")
UNTIED = ("reciprocal_rank", "hit_rate")


def items() -> pl.DataFrame:
    """Return lists of 1 to 14 items with tied scores, in three groups and two strata."""
    rng = np.random.default_rng(24)
    query = np.repeat(np.arange(120), rng.integers(1, 15, 120))
    n = len(query)
    frame = pl.DataFrame(
        {
            "query": [f"q{one}" for one in query],
            "tied": np.round(rng.normal(size=n), 1),
            "score": rng.normal(size=n),
            "relevant": (rng.random(n) < 0.3).astype(int),
            "grade": rng.integers(0, 4, n),
            "kind": np.array(list("abc"))[rng.integers(0, 3, 120)[query]],
            "item": rng.integers(0, 2, n),
            "site": rng.integers(0, 2, 120)[query],
        }
    )
    rank = 2 * pl.col("score").rank("ordinal", descending=True).over("query") - 1  # with gaps
    return frame.with_columns(rank=rank, user=pl.Series(query // 2))


ITEMS = items()
FORMS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "duckdb": lambda frame: duckdb.arrow(frame.to_arrow()),
    "polars": lambda frame: frame.lazy(),
}
by_form = pytest.mark.parametrize(
    "form", ["duckdb", pytest.param("polars", marks=pytest.mark.validate)]
)


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every lazy frame for a large one."""
    monkeypatch.setattr(ranked_lists, "MAX_KINDS", 100)


def run(data: Any, **given: Any) -> fairperm.RankingTestResult:
    options = {"query": "query", "k": 5, "n_resamples": 99, "rng": 1, "data": data}
    return fairperm.ranking_test(**{**options, **given})


@by_form
@pytest.mark.parametrize("source", ["score", "rank"])
@pytest.mark.parametrize("metric", QUALITY)
def test_quality_is_that_of_rows_in_memory(form: str, metric: str, source: str) -> None:
    columns = {"score": "score" if metric in UNTIED else "tied"}
    given = {
        "relevance": "grade" if metric == "ndcg" else "relevant",
        "sensitive_features": "kind",
        "control_features": "site",
        "metric": metric,
        "compare": "rest",
        **(columns if source == "score" else {"rank": "rank"}),
    }
    here, there = run(ITEMS, **given), run(FORMS[form](ITEMS), **given)
    assert there.to_dict() == here.to_dict()


def test_the_reference_has_most_queries_though_not_most_items() -> None:
    """In memory it was the group with most items, so that the engine changed what was compared."""
    number = pl.col("query").str.slice(1).cast(int)
    kind = pl.when(number < 50).then(pl.lit("long")).otherwise(pl.lit("many"))
    data = ITEMS.with_columns(kind=kind).filter((number < 50) | (pl.col("rank") <= 2))
    given = {"relevance": "grade", "rank": "rank", "sensitive_features": "kind"}
    for one in (data, FORMS["duckdb"](data)):
        found = run(one, **given, compare="reference")
        assert found.largest.groups == ("long", "many")


@by_form
def test_exposure_is_that_of_rows_in_memory(form: str) -> None:
    given = {"score": "tied", "metric": "exposure", "sensitive_features": "item", "cluster": "user"}
    here, there = run(ITEMS, **given), run(FORMS[form](ITEMS), **given)
    assert there.largest.to_dict() == here.largest.to_dict()


def test_the_order_of_all_groups_is_that_of_rows_in_memory() -> None:
    given = {"score": "score", "metric": "ndkl", "sensitive_features": "grade"}
    here, there = run(ITEMS, **given), run(FORMS["duckdb"](ITEMS), **given)
    assert there.to_dict() == here.to_dict()


def test_clusters_and_dropped_items_are_counted() -> None:
    whole = ITEMS.with_columns(kind=pl.when(pl.col("user") % 3 > 0).then(1).otherwise(0))
    holes = pl.when(pl.int_range(pl.len()) % 50 == 0).then(None).otherwise(pl.col("grade"))
    data = whole.with_columns(grade=holes)
    given = {"relevance": "grade", "rank": "rank", "sensitive_features": "kind"}
    given |= {"cluster": "user", "missing": "drop"}
    here, there = run(data, **given), run(FORMS["duckdb"](data), **given)
    assert there.largest.n_dropped == here.largest.n_dropped > 0
    assert there.largest.pvalue == here.largest.pvalue
    with pytest.raises(fairperm.InputError, match=r"relevance .* has \d+ missing values"):
        run(FORMS["duckdb"](data), **{**given, "missing": "error"})
    del given["rank"]
    with pytest.raises(fairperm.InputError, match=r"Items cannot be dropped from lists .* score"):
        run(FORMS["duckdb"](data), **given, score="score")


@by_form
def test_queries_without_a_group_may_be_one(form: str) -> None:
    data = ITEMS.with_columns(kind=pl.col("kind").replace("c", None))
    given = {"relevance": "grade", "score": "tied", "sensitive_features": "kind"}
    here, there = (run(one, **given, missing="group") for one in (data, FORMS[form](data)))
    assert there.groups == here.groups == ("a", "b", "missing")
    assert there.pvalue == here.pvalue


def test_integers_that_floats_would_tie_are_refused() -> None:
    data = ITEMS.with_columns(large=2**60 - pl.col("rank").cast(int))
    given = {"relevance": "grade", "sensitive_features": "kind", "score": "large"}
    with pytest.raises(fairperm.InputError, match=r"score .* integers that a float can hold"):
        run(FORMS["duckdb"](data), **given)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "group that varies": (
        {"sensitive_features": "item"},
        "sensitive_features must be the same for all items of a query for ndcg",
    ),
    "no relevance": ({"relevance": None}, "relevance must be given for ndcg; got None"),
    "no such column": ({"query": "search"}, "query must be a column of data"),
    "words for scores": ({"score": "kind"}, "score (column 'kind') must be made of real numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_lists_are_named(name: str) -> None:
    options, match = BAD[name]
    data = FORMS["duckdb"](ITEMS)
    given = {"relevance": "grade", "score": "tied", "sensitive_features": "kind", **options}
    with pytest.raises((fairperm.InputError, fairperm.InputTypeError), match=re.escape(match)):
        run(data, **given)


def test_more_items_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MAX_ITEMS", 200)
    with pytest.raises(fairperm.InputError, match="data must have at most 200 items for exposure"):
        run(FORMS["duckdb"](ITEMS), score="tied", metric="exposure", sensitive_features="item")
