"""Pandas columns whose indexes differ are an error, because rows are matched by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairperm
from fairperm.errors import InputError, InputTypeError

LABELS = pd.Series([0, 1, 1, 0, 1, 0, 0, 1], index=list("abcdefgh"))
PREDICTIONS = pd.Series([0, 1, 0, 0, 1, 1, 0, 1], index=LABELS.index)
SEX = pd.Series(list("fmfmfmfm"), index=LABELS.index)
REORDERED, DISJOINT = PREDICTIONS[::-1], PREDICTIONS.reset_index(drop=True)
SHIFTED = PREDICTIONS.set_axis(list("bcdefghi"))


def rate(y_pred: Any, **options: Any) -> fairperm.PermutationTestResult:
    given: dict[str, Any] = {
        "sensitive_features": SEX,
        "metric": "selection_rate",
        "n_resamples": 9,
    }
    return fairperm.permutation_test(LABELS, y_pred, **given | options)


@pytest.mark.parametrize(
    ("y_pred", "got"),
    [
        (REORDERED, "the same labels in another order"),
        (DISJOINT, "an index that shares no label with it"),
        (SHIFTED, "an index that shares 7 of 8 labels with it"),
    ],
)
def test_a_different_index_is_an_error_unless_it_is_ignored(y_pred: Any, got: str) -> None:
    message = (
        rf"^y_pred must be a pandas column with the index of y_true; got {got}\. Rows are matched "
        r"by position: reorder them, or pass ignore_index=True if they match already\.$"
    )
    with pytest.raises(InputError, match=message):
        rate(y_pred)
    assert rate(y_pred, ignore_index=True).values == rate(y_pred.to_numpy()).values


def test_equal_indexes_and_columns_without_one_are_matched() -> None:
    for y_pred in (PREDICTIONS, PREDICTIONS.to_numpy(), PREDICTIONS.tolist()):
        assert rate(y_pred).values == {"f": 0.25, "m": 0.75}


@pytest.mark.parametrize(
    "given",
    [
        {"sensitive_features": SEX[::-1]},
        {"sensitive_features": pd.DataFrame({"sex": SEX, "race": SEX})[::-1]},
        {"sensitive_features": {"sex": SEX[::-1]}},
        {"control_features": SEX[::-1]},
        {"sample_weight": REORDERED + 1},
        {"sensitive_features": "sex", "data": pd.DataFrame({"sex": SEX})[::-1]},
        {"sensitive_features": "sex", "data": {"sex": SEX[::-1]}},
    ],
)
def test_every_argument_is_compared(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"index of y_true; got the same labels in another order"):
        rate(PREDICTIONS, **given)


def test_sweeps_and_correlations_are_compared() -> None:
    scores = pd.Series(np.linspace(0, 1, 8), index=LABELS.index)
    with pytest.raises(InputError, match=r"^y_score must be a pandas column with the index of"):
        fairperm.threshold_sweep(
            LABELS, scores[::-1], sensitive_features=SEX, metric="tpr", n_resamples=9
        )
    with pytest.raises(InputError, match=r"^y must be a pandas column with the index of x"):
        fairperm.correlation_test(scores, scores[::-1])
    assert fairperm.correlation_test(scores, scores[::-1], ignore_index=True).correlation == -1
    with pytest.raises(InputTypeError, match=r"^ignore_index must be True or False; got 1"):
        fairperm.correlation_test(scores, scores, ignore_index=1)  # type: ignore[arg-type]
