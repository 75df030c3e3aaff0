"""What an audit refuses, and what it says then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairperm import FairpermError, InputError, audit
from tests.support.audit_refusals import BOTH, FRAME, GOOD, REFUSALS, no_weights
from tests.support.refusals import Refusal, check_wording, each


@each(REFUSALS)
def test_wording(refusal: Refusal) -> None:
    check_wording(refusal)


def test_the_good_call_is_good() -> None:
    assert len(audit(**GOOD)) == 3
    assert len(audit(**{**GOOD, **BOTH}, intersections=True)) == 3 + 1 + 15


def test_there_are_enough_refusals() -> None:
    assert len(REFUSALS) >= 30


ODD: dict[str, Any] = {
    "None": None,
    "truth": True,
    "zero": 0,
    "negative": -3,
    "nan": float("nan"),
    "infinite": float("inf"),
    "huge": 10**400,
    "complex": 1j,
    "word": "word",
    "empty": "",
    "bytes": b"x",
    "list": [1, "a"],
    "no rows": [],
    "tuple": (),
    "mapping": {"a": object()},
    "set": {1, 2},
    "array": np.array([[1, 2], [3, 4]]),
    "scalar": np.array(0.3),
    "objects": np.array([None, object()], object),
    "frame": FRAME,
    "polars": pl.DataFrame({"a": [1]}),
    "series": pd.Series([pd.NA, pd.NaT]),
    "class": dict,
    "function": len,
    "object": object(),
}
ARGUMENTS = (
    *("y_true", "y_pred", "y_score", "sensitive_features", "metrics", "data", "compare"),
    *("reference", "intersections", "adjust", "alpha", "margin", "min_group_size", "threshold"),
    *("pos_label", "control_features", "stratum_weights", "cluster", "sample_weight", "missing"),
    *("scheme", "variance", "alternative", "n_resamples", "n_bootstrap", "confidence_level"),
    *("rng", "n_jobs", "progress"),
)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_anything_for_any_argument_is_taken_or_refused_in_words(argument: str) -> None:
    """Whatever comes, no other error than fairperm's own reaches the user."""
    for name, odd in ODD.items():
        for good in (GOOD, {**GOOD, "compare": "reference"}, {**GOOD, "metrics": no_weights}):
            try:
                audit(**{**good, argument: odd})
            except FairpermError as error:
                message = str(error)
                assert message[-1] in ".?", (name, message)
                assert "\n" not in message, (name, message)
            except Exception as error:
                raise AssertionError(f"{argument}={name}") from error


def test_refusals_come_before_any_work() -> None:
    """What does not fit the last metric is said before the first is tested."""
    calls = []

    def counted(y_true: Any, y_pred: Any) -> float:
        calls.append(len(y_true))
        return float(np.mean(y_true == y_pred))

    bad: list[dict[str, Any]] = [
        {"margin": {"tpr": 2}},
        {"alternative": "greater", "metrics": {"f": counted, "e": "equalized_odds"}},
        {"scheme": "within_label"},
        {"compare": "reference", "reference": "z"},
    ]
    for options in bad:
        given = {**GOOD, "metrics": {"f": counted, "t": "tpr", "p": "ppv"}, **options}
        with pytest.raises(InputError, match="must be"):
            audit(**given)
    assert calls == []
