"""Invalid scores and outcomes: each raises an error with its name, the rule and the value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairperm import InputError, InputTypeError, permutation_test
from tests.support.refusals import Refusal, check_wording, each

INF, NAN = float("inf"), float("nan")
SCORES = [0.9, 0.4, 0.6, 0.1, 0.8, 0.7, 0.3, 0.2]
OUTCOMES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
GOOD: dict[str, Any] = {"sensitive_features": list("aaaabbbb"), "n_resamples": 99, "rng": 1}
SCORED: dict[str, Any] = {**GOOD, "y_true": [1, 1, 0, 0, 1, 1, 0, 0], "y_score": SCORES}
FITTED: dict[str, Any] = {
    **GOOD,
    "y_true": OUTCOMES,
    "y_pred": [1.5, 2.5, 2.0, 5.0, 5.0, 5.0, 8.0, 8.5],
}
FROM_0_TO_1 = "y_score must be from 0 to 1 for"


def instead(column: list[Any], row: int, value: object) -> list[Any]:
    """Return the column with another value in one row."""
    return [value if i == row else one for i, one in enumerate(column)]


def scored(name: str, says: str, metric: str, **changes: Any) -> Refusal:
    return Refusal(name, says, {**SCORED, "metric": metric, **changes})


def scored_kind(name: str, says: str, metric: str, **changes: Any) -> Refusal:
    return Refusal(name, says, {**SCORED, "metric": metric, **changes}, InputTypeError)


def fitted(name: str, says: str, metric: str = "mean_squared_error", **changes: Any) -> Refusal:
    return Refusal(name, says, {**FITTED, "metric": metric, **changes})


def fitted_kind(name: str, says: str, metric: str = "mse", **changes: Any) -> Refusal:
    return Refusal(name, says, {**FITTED, "metric": metric, **changes}, InputTypeError)


NOT_GIVEN = [
    scored_kind(
        "no score", "y_score must be given for roc_auc; got None.", "roc_auc", y_score=None
    ),
    scored_kind(
        "score as y_pred",
        "y_score must be given for roc_auc; got None. Pass it as y_score, not as y_pred.",
        "roc_auc",
        y_score=None,
        y_pred=SCORES,
    ),
    fitted_kind(
        "prediction as y_score",
        "y_pred must be given for mean_squared_error; got None. Pass it as y_pred, not as y_score.",
        y_pred=None,
        y_score=SCORES,
    ),
    fitted_kind(
        "no prediction", "y_pred must be given for mean_squared_error; got None.", y_pred=None
    ),
    fitted_kind(
        "no outcome", "y_true must be given for mean_squared_error; got None.", y_true=None
    ),
    scored(
        "score that is no column",
        "y_score must be a column of data; got 'skore'. Did you mean 'score'?",
        "roc_auc",
        y_true="y",
        y_score="skore",
        data={"y": SCORED["y_true"], "score": SCORES},
    ),
    scored_kind(
        "scores of several classes",
        "y_score must be one column of scores; got ['s', 't']. Several, one for each class, are "
        "for roc_auc_ovr and roc_auc_ovr_weighted.",
        "roc_auc",
        y_true="y",
        y_score=["s", "t"],
        data={"y": SCORED["y_true"], "s": SCORES, "t": SCORES},
    ),
]

NO_NUMBERS = [
    scored_kind(
        f"score of {name}", f"y_score must be made of real numbers; got {shown}.", metric, y_score=s
    )
    for name, shown, metric, s in [
        ("text", "'0.9'", "roc_auc", list(map(str, SCORES))),
        ("NumPy text", "'0.9'", "brier_score", np.array(SCORES).astype(str)),
        ("booleans", "True", "roc_auc", [one > 0.5 for one in SCORES]),
        ("NumPy booleans", "True", "log_loss", np.array(SCORES) > 0.5),
        ("complex numbers", "0.9j", "mean_score", np.array(SCORES) * 1j),
    ]
] + [
    scored(
        f"score {shown}",
        f"y_score must be finite; got {shown}.",
        "roc_auc",
        y_score=instead(SCORES, 2, value),
    )
    for shown, value in [("inf", INF), ("-inf", -INF)]
]
NO_NUMBERS += (
    [
        scored(
            f"score missing: {value}",
            "y_score has 1 missing value (row 2 of 8).",
            metric,
            y_score=instead(SCORES, 2, value),
        )
        for value, metric in [(NAN, "roc_auc"), (None, "brier_score")]
    ]
    + [
        scored(
            f"score missing in a column, for {metric}",
            "y_score (column 'points') has 1 missing value (row 2 of 8).",
            metric,
            data={"points": instead(SCORES, 2, None), "group": list("aaaabbbb")},
            y_score="points",
            sensitive_features="group",
        )
        for metric in ("roc_auc", "brier_score", "true_positive_rate")
    ]
    + [
        scored(
            "score of 10**400", "y_score must be finite; got inf.", "auc", y_score=[10**400] * 8
        ),
        fitted_kind(
            "text as outcome",
            "y_true must be made of real numbers; got 'a'.",
            y_true=list("abcdefgh"),
        ),
        fitted(
            "outcome missing",
            "y_true has 2 missing values (rows 1, 3 of 8).",
            y_true=instead(instead(OUTCOMES, 1, NAN), 3, None),
        ),
        fitted("outcome inf", "y_true must be finite; got inf.", y_true=instead(OUTCOMES, 1, INF)),
        fitted("prediction -inf", "y_pred must be finite; got -inf.", y_pred=[-INF] * 8),
    ]
)

OUT_OF_RANGE = [
    scored(
        f"{metric} of a score of {shown}",
        f"{FROM_0_TO_1} this metric; got {shown}. Scale the scores to probabilities first.",
        metric,
        y_score=instead(SCORES, 0, value),
    )
    for metric, value, shown in [
        ("brier_score", 1.2, "1.2"),
        ("log_loss", -0.1, "-0.1"),
        ("expected_calibration_error", 90, "90.0"),
        ("calibration_in_the_large", 2, "2.0"),
    ]
]

SHAPES = [
    scored(
        "score too short",
        "y_score must be as long as y_true (8 rows); got 7.",
        "roc_auc",
        y_score=SCORES[:-1],
    ),
    fitted(
        "prediction too long",
        "y_pred must be as long as y_true (8 rows); got 16.",
        y_pred=OUTCOMES * 2,
    ),
    scored(
        "score of both classes",
        "y_score must be one-dimensional; got (8, 2).",
        "roc_auc",
        y_score=np.array([SCORES, SCORES]).T,
    ),
    scored(
        "no rows",
        "y_true must have at least one row; got none.",
        "roc_auc",
        y_true=[],
        y_score=[],
        sensitive_features=[],
    ),
    scored(
        "three classes",
        "y_true must be binary (0/1, -1/1 or False/True; or two other values and pos_label); "
        "got the values 0, 1, 2.",
        "roc_auc",
        y_true=[0, 1, 2, 0, 1, 2, 0, 1],
    ),
]

UNDEFINED = [
    scored(
        f"{metric} of a group with {lack}",
        f"metric must be defined in every group; got {metric} of group 'a', which has ",
        metric,
        y_true=labels,
    )
    for metric, lack, labels in [
        ("roc_auc", "positives only", [1, 1, 1, 1, 1, 1, 0, 0]),
        ("roc_auc", "negatives only", [0, 0, 0, 0, 1, 1, 0, 0]),
        ("mean_score_positives", "no positives", [0, 0, 0, 0, 1, 1, 0, 0]),
        ("mean_score_negatives", "no negatives", [1, 1, 1, 1, 1, 1, 0, 0]),
    ]
] + [
    scored(
        "DeLong's variance of one positive",
        "metric must be one whose standard error is defined, and not zero; got roc_auc with group "
        "'a' of 4 rows, 1 of them positive. The groups are too small for it",
        "roc_auc",
        y_true=[1, 0, 0, 0, 1, 1, 0, 0],
    ),
    scored(
        "DeLong's variance of one positive, asked for",
        "variance must be one whose standard error of roc_auc is defined, and not zero; "
        "got 'delong'. The groups are too small for it.",
        "roc_auc",
        y_true=[1, 0, 0, 0, 1, 1, 0, 0],
        variance="delong",
    ),
]

UNFIT = [
    scored(
        "within_label for brier_score",
        "scheme must be 'pooled' for brier_score; got 'within_label'.",
        "brier_score",
        scheme="within_label",
    ),
    fitted(
        "within_label for mean_squared_error",
        "scheme must be 'pooled' for mean_squared_error; got 'within_label'.",
        scheme="within_label",
    ),
    scored(
        "denominator for roc_auc",
        "scheme must be 'pooled' or 'within_label' for roc_auc, which has no single denominator; "
        "got 'denominator'.",
        "roc_auc",
        scheme="denominator",
    ),
]
BOOTSTRAPS = "'bootstrap', 'fast_bootstrap', None"
UNFIT += [
    scored(
        f"variance {variance} for {metric}",
        f"variance must be 'auto' or one of {fitting} for {metric}; got '{variance}'.",
        metric,
        variance=variance,
    )
    for metric, variance, fitting in [
        ("roc_auc", "score", f"'delong', {BOOTSTRAPS}"),
        ("roc_auc", "delta", f"'delong', {BOOTSTRAPS}"),
        ("accuracy", "delong", f"'score', 'wald', 'delta', {BOOTSTRAPS}"),
    ]
] + [
    fitted(
        f"variance {variance} for mean_squared_error",
        f"variance must be 'auto' or one of 'delta', {BOOTSTRAPS} for mean_squared_error; "
        f"got '{variance}'.",
        variance=variance,
    )
    for variance in ("wald", "delong")
]

REFUSALS = [*NOT_GIVEN, *NO_NUMBERS, *OUT_OF_RANGE, *SHAPES, *UNDEFINED, *UNFIT]


@each(REFUSALS)
def test_a_bad_number_is_refused_in_a_full_sentence_that_names_it(refusal: Refusal) -> None:
    check_wording(refusal)


def test_missing_scores_are_dropped_if_asked_for() -> None:
    given = {**SCORED, "y_score": [NAN, *SCORES], "y_true": [1, *SCORED["y_true"]]}
    given["sensitive_features"] = ["a", *GOOD["sensitive_features"]]
    dropped = permutation_test(**given, metric="brier_score", missing="drop")
    plain = permutation_test(**SCORED, metric="brier_score")
    assert dropped.to_dict() == {**plain.to_dict(), "n_dropped": 1}


def test_an_error_of_zero_is_no_fast_bootstrap() -> None:
    """Permuted gaps over the deviation of all of them are never infinite; S would be."""
    says = "^variance must be one .* accuracy is defined, and not zero; got 'fast_bootstrap'"
    with pytest.raises(InputError, match=says):
        permutation_test(
            [1] * 4,
            [1, 1, 0, 0],
            sensitive_features=list("aabb"),
            metric="accuracy",
            variance="fast_bootstrap",
        )
