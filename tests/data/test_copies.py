"""A table of counts gives what its copies give, to the last bit, whatever reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairperm
from tests.support.refusals import Refusal, check_wording, each, table

pytestmark = pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")

MODEL = {"y_true": "y", "y_pred": "p", "metric": "accuracy"}
GROUPS: dict[str, Any] = {"sensitive_features": "g", "rng": 1, "n_resamples": 99}
PAIR = GROUPS | {"groups": ("a", "b")}


def difference(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    return float(np.mean(y_true != y_pred))


CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "rate": (fairperm.permutation_test, MODEL | PAIR),
    "auc": (
        fairperm.permutation_test,
        PAIR | {"y_true": "y", "y_score": "s", "metric": "roc_auc"},
    ),
    "numbers": (
        fairperm.permutation_test,
        PAIR | {"y_true": "x", "y_pred": "s", "metric": "mean_squared_error"},
    ),
    "strata": (fairperm.permutation_test, MODEL | PAIR | {"control_features": "st"}),
    "clusters": (
        fairperm.permutation_test,
        MODEL | PAIR | {"cluster": "cl", "split_clusters": True},
    ),
    "weights": (fairperm.permutation_test, MODEL | PAIR | {"sample_weight": "w"}),
    "matched": (fairperm.permutation_test, MODEL | PAIR | {"matched": "cl"}),
    "function": (fairperm.permutation_test, MODEL | PAIR | {"metric": difference}),
    "margin": (fairperm.equivalence_test, MODEL | PAIR | {"margin": 0.2}),
    "audit": (
        fairperm.audit,
        GROUPS | {"y_true": "y", "y_pred": "p", "min_group_size": 1, "n_resamples": "auto"},
    ),
    "omnibus": (fairperm.omnibus_test, MODEL | GROUPS),
    "models": (fairperm.compare_models, MODEL | PAIR | {"y_pred_new": "p2"}),
    "periods": (fairperm.compare_periods, MODEL | PAIR | {"period": "cl"}),
    "audit of periods": (
        fairperm.audit_periods,
        GROUPS | {"y_true": "y", "y_pred": "p", "period": "st", "min_group_size": 1},
    ),
    "sweep": (fairperm.threshold_sweep, PAIR | {"y_true": "y", "y_score": "s", "metric": "tpr"}),
    "sweeps": (fairperm.sweep_pairs, GROUPS | {"y_true": "y", "y_score": "s", "metric": "tpr"}),
    "search": (
        fairperm.find_subgroups,
        MODEL | {"features": ["g", "st"], "n_resamples": 99, "rng": 1, "min_rows": 5},
    ),
    "correlation": (fairperm.correlation_test, {"x": "x", "y": "s", "rng": 1, "n_resamples": 99}),
    "distance": (fairperm.distance_test, PAIR | {"values": "s"}),
    "selection": (
        fairperm.selection_audit,
        {"selected": "p", "sensitive_features": "g", "control_features": "st"},
    ),
}


def make_table(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(6, 30))
    return {
        "g": rng.choice(np.array(["a", "b", "c"], object), n),
        "y": rng.integers(0, 2, n),
        "p": rng.integers(0, 2, n),
        "p2": rng.integers(0, 2, n),
        "s": np.round(rng.random(n), int(rng.integers(1, 4))),
        "x": rng.normal(size=n),
        "st": rng.choice(["u", "v"], n),
        "cl": rng.integers(0, 6, n),
        "w": rng.integers(1, 4, n) + 0.5,
        "n": rng.integers(0, 12, n),  # rows that stand for none, and rows that are repeated
    }


def answer(function: Callable[..., Any], given: dict[str, Any]) -> str:
    try:
        plain = function(**given).to_dict()
    except fairperm.InputError as error:
        return str(error)
    plain.pop("settings", None)
    return json.dumps(plain, default=str)


@pytest.mark.parametrize("name", CALLS)
def test_tables_of_counts_are_their_copies(name: str) -> None:
    """Four random tables of each of twenty tests."""
    rng = np.random.default_rng(len(name))
    function, options = CALLS[name]
    for _ in range(4):
        counts = make_table(rng)
        copies = {one: np.repeat(column, counts["n"]) for one, column in counts.items()}
        expected = answer(function, options | {"data": copies})
        assert answer(function, options | {"data": counts, "count": "n"}) == expected


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pl.DataFrame,
        pl.LazyFrame,
        pa.table,
        lambda counts: duckdb.from_arrow(pa.table(counts)),
    ],
)
@pytest.mark.parametrize("name", ["audit", "auc", "search"])
def test_tables_of_counts_of_any_library(make: Callable[..., Any], name: str) -> None:
    counts = make_table(np.random.default_rng(7))
    function, options = CALLS[name]
    expected = answer(function, options | {"data": counts, "count": "n"})
    assert answer(function, options | {"data": make(counts), "count": "n"}) == expected


def test_counts_without_data() -> None:
    hired, sex, n = [1, 0, 1, 0], ["m", "m", "f", "f"], [48, 32, 12, 28]
    found = fairperm.permutation_test(
        y_pred=hired, sensitive_features=sex, metric="selection_rate", count=n, rng=1
    )
    copies = fairperm.permutation_test(
        y_pred=np.repeat(hired, n),
        sensitive_features=np.repeat(sex, n),
        metric="selection_rate",
        rng=1,
    )
    assert found.to_dict() == copies.to_dict()


def test_weights_that_look_like_counts_get_a_hint() -> None:
    hired, sex = [1, 0, 1, 0], ["m", "m", "f", "f"]

    def notes(weights: list[float], times: int = 1) -> tuple[str, ...]:
        return fairperm.permutation_test(
            y_pred=hired * times,
            sensitive_features=sex * times,
            metric="selection_rate",
            sample_weight=weights * times,
        ).notes

    hint = (
        "sample_weight has whole numbers, and no two rows are alike. If it counts equal rows, pass "
        "it as count: as weights they have no power."
    )
    assert hint in notes([48, 32, 12, 28])
    assert hint not in notes([48, 32, 12.5, 28])
    assert hint not in notes([48, 32, 12, 28], times=2)


N = 8
GOOD: dict[str, Any] = {
    "y_pred": [1, 0] * 4,
    "sensitive_features": ["a", "a", "b", "b"] * 2,
    "metric": "selection_rate",
    "count": [1] * N,
}
REFUSALS = table(
    fairperm.permutation_test,
    GOOD,
    globals(),
    """
count=[1.5] * N →
    count must be made of whole numbers from 0 on; got 1.5. A number that says how much a row
    counts is a weight.
count=[-1] * N → count must be made of whole numbers from 0 on; got -1.0.
count=[None] * N → count must be made of whole numbers from 0 on; got a missing value.
count=[0] * N → y_pred must have at least one row; got none.
count='n' → TypeError: count must be an array of whole numbers without data; got 'n'.
count=[1] * 7 → count must be as long as y_pred (8 rows); got 7.
count=[2**53] * N → count must be at most 2**53 together
score_bins=100 → score_bins cannot be used with count.
data=pl.LazyFrame({'n': [1]}), count=[1] → TypeError: count must be the name of a column of data
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)
