"""Comparisons of models that cannot be: each is refused by name, with the rule and the value."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from fairperm import (
    FairpermError,
    InputError,
    InputTypeError,
    UndefinedMetricError,
    compare_models,
)
from tests.support.refusals import GOOD, Refusal, check_wording, each

PAIR = {**GOOD, "y_pred_new": [1, 1, 1, 0, 1, 0, 0, 0]}
SCORES = {name: one for name, one in PAIR.items() if not name.startswith("y_pred")} | {
    "y_score": [0.9, 0.2, 0.7, 0.1, 0.8, 0.6, 0.3, 0.4],
    "y_score_new": [0.8, 0.6, 0.7, 0.2, 0.9, 0.1, 0.3, 0.4],
}


def refused(
    name: str,
    says: str,
    error: type[FairpermError] = InputError,
    base: dict[str, Any] = PAIR,
    **given: Any,
) -> Refusal:
    """Return a refusal of otherwise good arguments."""
    return Refusal(name, says, {**base, **given}, error, compare_models)


by_score = functools.partial(refused, base=SCORES)


def share_alike(y_true: Any, y_pred: Any) -> float:
    return float(np.mean(y_true == y_pred))


COLUMNS = [
    refused(
        "no new model",
        "y_pred_new must be given for this metric; got None. Or pass y_score_new with "
        "threshold_new.",
        InputTypeError,
        y_pred_new=None,
    ),
    refused(
        "no old model",
        "y_pred must be given for this metric; got None. Or pass y_score with threshold.",
        InputTypeError,
        y_pred=None,
    ),
    by_score(
        "no new score",
        "y_score_new must be given for change in roc_auc; got None.",
        InputTypeError,
        metric="roc_auc",
        y_score_new=None,
    ),
    by_score(
        "predictions of the new model for the AUC",
        "y_score_new must be given for change in roc_auc; got None. Pass it as "
        "y_score_new, not as y_pred_new.",
        InputTypeError,
        metric="roc_auc",
        y_score_new=None,
        y_pred_new=[0] * 8,
    ),
    by_score(
        "no old score",
        "y_score must be given for change in roc_auc; got None.",
        InputTypeError,
        metric="roc_auc",
        y_score=None,
    ),
    refused(
        "both of the new model", "Pass y_pred_new or y_score_new, not both.", y_score_new=[0.5] * 8
    ),
    refused("both of the old model", "Pass y_pred or y_score, not both.", y_score=[0.5] * 8),
    refused(
        "new model too short",
        "y_pred_new must be as long as y_true (8 rows); got 7. Pass columns of one length.",
        y_pred_new=[1] * 7,
    ),
    refused(
        "new model of strings",
        "y_pred_new must be binary (0/1, -1/1 or False/True; or two other values and "
        "pos_label); got the values 'no', 'yes'. Pass pos_label='yes' if that is the "
        "positive one.",
        y_pred_new=["yes", "no"] * 4,
    ),
    refused(
        "new scores as predictions",
        "y_pred_new must be binary (0/1, -1/1 or False/True; or two other values and "
        "pos_label); got the values 0.2, 0.7. Pass scores as y_score, with a threshold.",
        y_pred_new=[0.2, 0.7] * 4,
    ),
    refused(
        "new model of three values",
        "y_pred_new must be binary",
        y_pred_new=[0, 1, 2, 0, 1, 2, 0, 1],
    ),
    refused(
        "missing predictions",
        "y_pred_new has 1 missing value (row 2 of 8). Pass missing='drop' to drop these "
        "rows; the result counts them.",
        y_pred_new=[1, 1, None, 0, 1, 0, 0, 0],
    ),
    refused(
        "two columns",
        "y_pred_new must be one-dimensional; got (8, 2). Take one column, such as [:, 1] "
        "for the probability of the second class.",
        y_pred_new=np.zeros((8, 2)),
    ),
    refused(
        "a set",
        "y_pred_new must be a list, a NumPy array or a data frame's column; got {1}.",
        InputTypeError,
        y_pred_new={1},
    ),
    refused(
        "a name without data",
        "y_pred_new must be a list, a NumPy array or a data frame's column; got 'new'. "
        "Column names need data=frame.",
        InputTypeError,
        y_pred_new="new",
    ),
    refused(
        "an unknown column",
        "y_pred_new must be a column of data ('g', 'p', 'q', 'y'); got 'r'.",
        data={
            "g": PAIR["sensitive_features"],
            "p": PAIR["y_pred"],
            "q": PAIR["y_pred_new"],
            "y": PAIR["y_true"],
        },
        y_true="y",
        y_pred="p",
        y_pred_new="r",
        sensitive_features="g",
    ),
    refused(
        "unlike spelling",
        "y_pred_new must be made of the labels of y_true ('no', 'yes'); got 'Yes'. Did you "
        "mean 'yes'?",
        metric="accuracy",
        y_true=["yes", "no"] * 4,
        y_pred=["yes", "no"] * 4,
        y_pred_new=["Yes", "no"] * 4,
    ),
    by_score(
        "infinite new score",
        "y_score_new must be finite; got inf.",
        metric="roc_auc",
        y_score_new=[np.inf] + [0.1] * 7,
    ),
    by_score(
        "new score of labels",
        "y_score_new must be made of real numbers; got 'a'. Labels are not scores.",
        InputTypeError,
        metric="roc_auc",
        y_score_new=list("abababab"),
    ),
    by_score(
        "new score beyond 1",
        "y_score_new must be from 0 to 1 for this metric; got 7.0. Scale the scores to "
        "probabilities first.",
        metric="brier_score",
        y_score_new=[7.0] + [0.1] * 7,
    ),
    by_score(
        "threshold_new above all",
        "threshold_new must be above the lowest score (0.1) and not above the highest "
        "(0.9); got 0.95. It would predict every row as negative.",
        threshold_new=0.95,
    ),
    by_score(
        "threshold_new of text",
        "threshold_new must be a finite number; got 'x'.",
        InputTypeError,
        threshold_new="x",
    ),
    by_score(
        "log-odds without a threshold",
        "threshold_new must be given if y_score_new is not between 0 and 1; got scores "
        "from -2 to 3. The default of 0.5 is for probabilities.",
        y_score_new=[-2, 3] * 4,
    ),
    refused(
        "threshold with predictions",
        "threshold cannot be used with y_pred: it only turns y_score into predictions.",
        threshold=0.4,
    ),
    refused(
        "threshold_new with predictions",
        "threshold_new cannot be used with y_pred_new: it only turns y_score_new into predictions.",
        threshold_new=0.4,
    ),
]

OPTIONS = [
    refused(
        "one group",
        "sensitive_features has 1 group ('a'); a comparison needs two",
        sensitive_features=["a"] * 8,
    ),
    refused(
        "three groups",
        "sensitive_features has 3 groups ('a', 'b', 'c'); a comparison needs two",
        sensitive_features=list("aabbccaa"),
    ),
    refused(
        "an unknown group",
        "groups must be made of groups in sensitive_features ('a', 'b'); got 'c'.",
        groups=("a", "c"),
    ),
    refused(
        "a variance of rates",
        "variance must be 'auto' or one of 'delta', 'bootstrap', 'fast_bootstrap', None "
        "for change in false_negative_rate; got 'score'.",
        variance="score",
    ),
    refused(
        "the denominator",
        "scheme must be 'pooled' or 'within_label' for change in false_negative_rate, "
        "which has no single denominator; got 'denominator'. Use scheme='pooled'.",
        scheme="denominator",
    ),
    refused(
        "unconditional",
        "scheme must be 'pooled' or 'within_label' for change in false_negative_rate, "
        "which has no single denominator; got 'unconditional'.",
        scheme="unconditional",
    ),
    refused(
        "within label",
        "scheme must be 'pooled' for change in positive_predictive_value; got 'within_label'.",
        metric="ppv",
        scheme="within_label",
    ),
    refused(
        "a direction of a joint metric",
        "alternative must be 'two-sided' for change in equalized_odds; got 'less'. A joint "
        "test has no direction; test its parts one by one.",
        metric="equalized_odds",
        alternative="less",
    ),
    by_score(
        "a biased metric",
        "metric must be one whose bias does not depend on a group's size and base rate; "
        "got 'change in expected_calibration_error'.",
        metric="expected_calibration_error",
    ),
    refused(
        "an unknown metric",
        "metric must be one that metric_names() lists; got 'fairness'.",
        metric="fairness",
    ),
    refused(
        "a split cluster",
        "cluster must keep to one group: whole clusters are exchanged; got cluster 1",
        cluster=[1, 1, 2, 2, 1, 3, 3, 3],
    ),
    refused(
        "no positives",
        "metric must be defined in every group; got change in false_negative_rate of group "
        "'a', which has no positives.",
        UndefinedMetricError,
        y_true=[0, 0, 0, 0, 1, 1, 0, 0],
    ),
    refused(
        "the normal limit of a function",
        "n_resamples must be at least 1 for",
        metric=share_alike,
        n_resamples=0,
    ),
    by_score(
        "a function with a new threshold",
        "threshold must be left out for a function, which gets scores as they are; got 0.5.",
        metric=share_alike,
        threshold_new=0.5,
    ),
    refused(
        "a function with a threshold",
        "threshold must be left out for a function, which gets scores as they are; got "
        "0.5. Pass y_pred=scores >= threshold.",
        metric=share_alike,
        threshold=0.5,
    ),
]


@each([*COLUMNS, *OPTIONS])
def test_bad_models_are_refused(refusal: Refusal) -> None:
    check_wording(refusal)


@pytest.mark.filterwarnings("ignore:.* shows? how the change", "ignore:.*is zero in this")
@pytest.mark.parametrize(
    ("margin", "says"),
    [
        (0, "margin must be a number above 0, or a pair of one below and one above 0; got 0."),
        ((0.1, 0.2), "margin must be a number above 0, or a pair"),
        ((-np.inf, np.inf), "margin must be a pair with a finite end"),
        ("2 %", "margin must be a number above 0"),
    ],
)
def test_bad_margins_are_refused(margin: Any, says: str) -> None:
    with pytest.raises(FairpermError, match=says.split("(")[0]):
        compare_models(**PAIR).test_margin(margin)
