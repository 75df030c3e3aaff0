"""A small table in every form, and its audit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from fairperm import Audit, FairpermWarning, audit

N = 400
RNG = np.random.default_rng(8)
TABLE: dict[str, Any] = {
    "label": RNG.integers(0, 2, N),
    "score": RNG.integers(1, 11, N),
    "sex": RNG.choice(["Female", "Male"], N),
    "race": RNG.choice(["a", "b", "c"], N, p=[0.5, 0.35, 0.15]),
    "age": RNG.choice([25, 45], N),
    "weight": RNG.choice([0.5, 1.0], N),
}
TABLE["prediction"] = (TABLE["score"] + RNG.normal(size=N) >= 6).astype(int)
METRICS = ["false_positive_rate", "f1_score", "roc_auc"]
COLUMNS = {"y_true": "label", "y_pred": "prediction", "y_score": "score"}
ARRAYS = {argument: TABLE[name] for argument, name in COLUMNS.items()}
FEATURES = {name: TABLE[name] for name in ("sex", "race")}
FRAMES: dict[str, Callable[[Any], Any]] = {
    "dict": lambda table: {name: list(column) for name, column in table.items()},
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
LIBRARY = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


def run(**changes: Any) -> Audit:
    given = {**ARRAYS, "sensitive_features": FEATURES, "metrics": METRICS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)  # so few resamples
        return audit(**{**given, "n_resamples": 99, "rng": 3, **changes})


def numbers(result: Audit) -> dict[str, Any]:
    """Return all that the audit found, but not what its attributes are called."""
    plain = result.to_dict()
    del plain["settings"], plain["notes"]
    for part in ("rows", "omnibus", "groups", "row_counts"):
        for one in plain[part]:
            del one["attribute"]
    return plain


@cache
def audit_of_arrays() -> Audit:
    """Return the audit of plain arrays, whose counts are those of a plain loop."""
    result = run()
    for row in result.where(metric="false_positive_rate"):
        for group in row.groups:
            mine = (FEATURES[row.attribute] == group) & (TABLE["label"] == 0)
            assert row.result is not None
            assert row.result.counts[group]["numerator"] == TABLE["prediction"][mine].sum()
            assert row.result.counts[group]["denominator"] == mine.sum()
    return result
