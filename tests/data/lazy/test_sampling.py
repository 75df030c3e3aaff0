"""A sample of a lazy frame's rows: random, and the same on every engine and in any order."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import fairperm
from fairperm import InputError
from fairperm.data.lazy import counting as lazy
from fairperm.data.lazy.sampling import add_draws
from tests.support.lazy_data import LAZY, clustered, run, same, sample

N, TAKEN = 3_000, 600
RNG = np.random.default_rng(17)
BASE = RNG.random(20_000)
# numbers of every size, that hardly differ or differ in their last digits only
COLUMNS: dict[str, Any] = {
    "scores": BASE,
    "single precision": BASE.astype(np.float32),
    "grid": np.arange(20_000) / 20_000,
    "ids": np.arange(20_000),
    "large ids": np.arange(20_000) + 10**12,
    "even ids": 2 * np.arange(20_000) + 2**40,
    "signed": RNG.normal(size=20_000) * 1e6,
    "small": BASE * 1e-9,
    "large": BASE * 1e15,
    "last digits": 1 + np.arange(20_000) * 2.0**-52,
}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let distinct rows be too many to be counted."""
    monkeypatch.setattr(lazy, "MOST_KINDS", 200)


def draws_of(columns: dict[str, Any], seed: int, form: str = "polars") -> Any:
    """Return the two draws of each row."""
    frame = nw.from_native(LAZY[form](pa.table(columns)))
    assert isinstance(frame, nw.LazyFrame)
    found = add_draws(frame, frame.collect_schema(), seed, share=1.0).collect()
    return np.stack([found["first draw"].to_numpy(), found["second draw"].to_numpy()])


@pytest.mark.parametrize("name", COLUMNS)
def test_draws_are_uniform_and_independent(name: str) -> None:
    first, second = draws_of({name: COLUMNS[name]}, seed=1)
    n = len(first)
    for one in (first, second):
        assert 0 <= one.min() <= one.max() < 1
        assert stats.kstest(one, "uniform").pvalue > 1e-3
    other = draws_of({name: COLUMNS[name]}, seed=2)[0]
    # of neighbours, of both draws, of two seeds, and of a number with its own draw
    pairs = [(first[1:], first[:-1]), (first, second), (first, other), (first, np.arange(n)),
             (first[2:], first[:-2]), (first, COLUMNS[name] % 1)]  # fmt: skip
    for one, two in pairs:
        cells = np.histogram2d(one, stats.rankdata(two), bins=8)[0]
        if (cells.sum(axis=0) > 0).all():
            assert stats.chi2_contingency(cells).pvalue > 1e-4
    # runs of taken rows are as short as those of coin tosses
    taken = first < 0.1
    lengths = np.diff(np.flatnonzero(taken))
    expected = stats.geom(0.1).pmf(np.arange(1, 21))
    counts = np.bincount(np.minimum(lengths, 21), minlength=22)[1:]
    chances = np.append(expected, 1 - expected.sum()) * counts.sum()
    assert stats.chisquare(counts, chances).pvalue > 1e-4


def test_engines_and_orders_draw_the_same() -> None:
    n = 2_000
    rows = np.arange(n)
    columns = {name: COLUMNS[name][:n] for name in ("single precision", "large ids", "signed")}
    columns["missing"] = pa.array([None if i % 7 == 0 else i for i in range(n)])
    columns["not a number"] = np.where(rows % 5 == 0, np.nan, BASE[:n])
    columns["infinite"] = np.where(rows % 5 == 0, -np.inf, BASE[:n])
    expected = draws_of(columns, seed=3)
    assert np.isfinite(expected).all()
    for form in LAZY:
        assert np.array_equal(draws_of(columns, 3, form), expected), form
    order = np.random.default_rng(18).permutation(n)
    again = draws_of(pa.table(columns).take(order).to_pydict(), seed=3)
    assert np.array_equal(again, expected[:, order])


@pytest.mark.parametrize("metric", ["log_loss", "brier_score", "function"])
def test_the_test_is_that_of_the_sampled_rows(metric: Any, few: None) -> None:
    def distance(y_true: Any, y_pred: Any) -> float:
        return float(np.mean(np.abs(y_true - y_pred)))

    metric = distance if metric == "function" else metric
    table = sample(N, decimals=None)
    numeric = {name: table[name] for name in ("label", "score", "predicted", "weight", "person")}
    chosen = np.argsort(draws_of(numeric, seed=7)[0])[:TAKEN]
    expected = run(table.take(chosen), metric)
    shuffled = table.take(np.random.default_rng(19).permutation(N))
    note = f"Tested on a sample of {TAKEN} of 3,000 rows, drawn by seed 7."
    for data in (LAZY["duckdb"](table), LAZY["polars"](shuffled)):
        result = run(data, metric, sample_rows=TAKEN)
        assert result.notes[-1] == note
        assert sum(one["rows"] for one in result.counts.values()) == TAKEN
        assert result.pvalue == expected.pvalue
        assert np.array_equal(result.null_distribution, expected.null_distribution)
    assert run(LAZY["duckdb"](table), metric, sample_rows=TAKEN, rng=8).notes != (note,)


def test_rows_that_can_be_counted_are_not_sampled() -> None:
    table = sample(N)
    for metric in ("accuracy", "roc_auc", "brier_score"):
        sampled = run(LAZY["duckdb"](table), metric, sample_rows=TAKEN)
        assert same(sampled, run(table, metric))


def test_fewer_rows_than_wanted_are_all_of_them(few: None) -> None:
    table = sample(N, decimals=None)
    result = run(LAZY["duckdb"](table), "log_loss", sample_rows=10_000)
    assert result.pvalue == run(table, "log_loss").pvalue


def test_whole_clusters_are_drawn(few: None) -> None:
    table = clustered(N, 3, decimals=None)
    person = table["person"].to_numpy()
    draws = draws_of({"person": person}, seed=7)[0]
    limit = np.sort(draws)[TAKEN - 1]
    expected = run(table.filter(pa.array(draws <= limit)), "log_loss", cluster="person")
    result = run(LAZY["duckdb"](table), "log_loss", cluster="person", sample_rows=TAKEN)
    assert result.pvalue == expected.pvalue
    assert result.counts == expected.counts
    named = table.set_column(6, "person", pa.array([f"p{one}" for one in person]))
    with pytest.raises(InputError, match="cluster must be made of numbers with sample_rows"):
        run(LAZY["duckdb"](named), "log_loss", cluster="person", sample_rows=TAKEN)


@pytest.mark.parametrize("form", ["duckdb", "polars"])
def test_rows_without_a_cluster_are_no_cluster(form: str, few: None) -> None:
    """They were drawn all or none, and left hardly a row to test where they were drawn."""
    table = clustered(N, 3, decimals=None)
    person = [None if i % 3 == 0 else one for i, one in enumerate(table["person"].to_pylist())]
    table = table.set_column(6, "person", pa.array(person))
    options: dict[str, Any] = {"cluster": "person", "sample_rows": TAKEN}
    known = table.filter(table["person"].is_valid())
    for seed in range(4):
        expected = run(LAZY[form](known), "log_loss", **options, rng=seed)
        result = run(LAZY[form](table), "log_loss", **options, rng=seed, missing="drop")
        assert result.n_dropped == N // 3
        assert (result.pvalue, result.counts) == (expected.pvalue, expected.counts)
    with pytest.raises(InputError, match=r"'person'\) has 1,000 missing values"):
        run(LAZY[form](table), "log_loss", **options)


def test_equal_rows_are_refused(few: None) -> None:
    table = sample(N).select(["label", "score", "sex"])
    said = r"rows that differ in their numbers \(2 columns\) .*Add a column that numbers the rows"
    with pytest.raises(InputError, match=said):
        run(LAZY["duckdb"](table), "log_loss", sample_rows=TAKEN, sensitive_features="sex")
    numbered = table.append_column("row", pa.array(np.arange(N)))
    assert run(LAZY["duckdb"](numbered), "log_loss", sample_rows=TAKEN).notes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sample_rows": 1}, "sample_rows must be an integer from 2"),
        ({"sample_rows": 10.5}, "sample_rows must be an integer from 2"),
        ({"data": sample(50), "sample_rows": 10}, "sample_rows is for lazy frames"),
    ],
)
def test_refusals(options: dict[str, Any], said: str) -> None:
    given = {"data": pl.DataFrame(sample(50)).lazy(), "metric": "accuracy", **options}
    with pytest.raises(fairperm.FairpermError, match=said):
        run(**given)


def test_an_audit_samples_what_it_must(few: None) -> None:
    table = sample(N, decimals=None)
    options: dict[str, Any] = {"y_score": "score", "sensitive_features": "sex", "rng": 7}
    options |= {"metrics": ["selection_rate", "brier_score", "log_loss"], "n_resamples": 99}
    options |= {"adjust": None}
    audit = fairperm.audit("label", data=LAZY["duckdb"](table), sample_rows=TAKEN, **options)
    rows = {row.metric: row.result for row in audit}
    expected = {row.metric: row.result for row in fairperm.audit("label", data=table, **options)}
    assert rows["selection_rate"] is not None
    assert rows["selection_rate"].to_dict() == expected["selection_rate"].to_dict()  # type: ignore[union-attr]
    alone = run(LAZY["duckdb"](table), "log_loss", sample_rows=TAKEN)
    assert rows["log_loss"].pvalue == alone.pvalue  # type: ignore[union-attr]
    assert audit.notes[-1] == alone.notes[-1]
    assert audit.settings["sample_rows"] == TAKEN
