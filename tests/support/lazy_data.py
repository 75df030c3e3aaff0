"""The same rows in every form: NumPy, eager frames, and frames whose rows are elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairperm

EAGER: dict[str, Callable[[pa.Table], Any]] = {
    "numpy": lambda table: {name: table[name].to_numpy() for name in table.column_names},
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
}
LAZY: dict[str, Callable[[pa.Table], Any]] = {
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
    "polars": lambda table: pl.DataFrame(table).lazy(),
    "dask": lambda table: dd.from_pandas(  # type: ignore[no-untyped-call]
        table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3
    ),
}

# Dask is slow: in ``make test`` it counts, and is refused, but does not try everything
by_engine = pytest.mark.parametrize(
    "form", ["duckdb", "polars", pytest.param("dask", marks=pytest.mark.validate)]
)


def sample(n: int, *, seed: int = 20200823, decimals: int | None = 2) -> pa.Table:
    """Return rows of two groups and three strata; scores of few distinct values, or of many."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    score = 1 / (1 + np.exp(-(1.2 * label - 0.5 + rng.normal(size=n))))
    return pa.table(
        {
            "label": label,
            "score": score if decimals is None else score.round(decimals),
            "predicted": (score >= 0.5).astype(np.int64),
            "sex": rng.choice(["Female", "Male"], n, p=[0.3, 0.7]),
            "region": rng.choice(["north", "south", "west"], n),
            "weight": rng.integers(1, 4, n).astype(np.float64),
            "person": np.arange(n) // 2 if n < 10_000 else np.arange(n) // 40,
        }
    )


def clustered(n: int, per: int, *, decimals: int | None = 1) -> pa.Table:
    """Return rows of which as many belong to one person, all in one group and stratum."""
    table = sample(n, decimals=decimals)
    rng = np.random.default_rng(per)
    person = rng.permutation(np.arange(n) // per)
    for at, name, names in (
        (3, "sex", ["Female", "Male"]),
        (4, "region", ["east", "north", "west"]),
    ):
        mine = rng.choice(names, person.max() + 1)
        table = table.set_column(at, name, pa.array(mine[person]))
    return table.set_column(6, "person", pa.array(person))


def with_gaps(n: int = 400) -> pa.Table:
    """Return rows of which some lack a label, a score (null or NaN) or a group."""
    table = sample(n)
    columns: dict[str, Any] = {}
    for at, name in enumerate(("label", "score", "sex", "region")):
        values = table[name].to_pylist()
        values[at + 3] = values[at + 30] = None
        columns[name] = values
    columns["score"][77] = float("nan")
    return pa.table({**columns, "predicted": table["predicted"]})


def number_bins(score: Any, n_bins: int) -> Any:
    """Return the bins of positive scores, with one width on the scale of fourth roots."""
    root = np.sqrt(np.sqrt(score))
    width = (root.max() - root.min()) / n_bins
    return np.floor((root - root.min()) / width).clip(0, n_bins - 1)


def run(data: Any, metric: Any, **options: Any) -> fairperm.PermutationTestResult:
    """Test by few draws; names of columns as in ``sample``."""
    given: dict[str, Any] = {"y_score": "score", "sensitive_features": "sex"}
    given |= {"n_resamples": 99, "rng": 7}
    return fairperm.permutation_test("label", metric=metric, data=data, **{**given, **options})


def same(first: Any, second: Any) -> bool:
    """Tell whether two results are equal to the last bit; NaN is the same as NaN."""
    draws = [getattr(one, "null_distribution", np.empty(0)) for one in (first, second)]
    return repr(first.to_dict()) == repr(second.to_dict()) and np.array_equal(
        draws[0], draws[1], equal_nan=True
    )
