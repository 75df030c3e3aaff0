"""Invalid scores and outcomes: each raises an error with its name, the rule and the value."""

from __future__ import annotations

from typing import Any

import pytest

from fairperm import InputError, permutation_test
from tests.support.refusals import Refusal, check_wording, each, table

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
FROM_0_TO_1 = "y_score must be from 0 to 1 for this metric; got"
SCALE = "Scale the scores to probabilities first."
NO_NUMBERS = "y_score must be made of real numbers; got"
ONE_MISSING = "y_score (column 'points') has 1 missing value (row 2 of 8)."
UNDEFINED = "metric must be defined in every group; got"
BOOTSTRAPS = "'bootstrap', 'fast_bootstrap', None"


def instead(column: list[Any], row: int, value: object) -> list[Any]:
    """Return the column with another value in one row."""
    return [value if i == row else one for i, one in enumerate(column)]


POINTS = {
    "data": {"points": instead(SCORES, 2, None), "group": list("aaaabbbb")},
    "y_score": "points",
    "sensitive_features": "group",
}
REFUSALS = table(
    permutation_test,
    {**SCORED, "metric": "roc_auc"},
    globals(),
    """
y_score=None → TypeError: y_score must be given for roc_auc; got None.
y_score=None, y_pred=SCORES →
    TypeError: y_score must be given for roc_auc; got None. Pass it as y_score, not as y_pred.
y_true='y', y_score='skore', data={'y': SCORED['y_true'], 'score': SCORES} →
    y_score must be a column of data; got 'skore'. Did you mean 'score'?
y_score=SCORES[:-1] → y_score must be as long as y_true (8 rows); got 7.
y_score=np.array([SCORES, SCORES]).T →
    y_score must be one-dimensional; got (8, 2).
y_true=[], y_score=[], sensitive_features=[] →
    y_true must have at least one row; got none.
y_true=[0, 1, 2, 0, 1, 2, 0, 1] →
    y_true must be binary (0/1, -1/1 or False/True; or two other values and pos_label); got the
    values 0, 1, 2.
y_true=[1, 0, 0, 0, 1, 1, 0, 0] →
    metric must be one whose standard error is defined, and not zero; got roc_auc with group 'a'
    of 4 rows, 1 of them positive. The groups are too small for it
y_true=[1, 0, 0, 0, 1, 1, 0, 0], variance='delong' →
    variance must be one whose standard error of roc_auc is defined, and not zero; got 'delong'.
    The groups are too small for it.
scheme='denominator' →
    scheme must be 'pooled' or 'within_label' for roc_auc, which has no single denominator; got
    'denominator'.
y_score=list(map(str, SCORES)) → TypeError: {NO_NUMBERS} '0.9'.
y_score=[one > 0.5 for one in SCORES] → TypeError: {NO_NUMBERS} True.
y_score=instead(SCORES, 2, INF) → y_score must be finite; got inf.
y_score=instead(SCORES, 2, -INF) → y_score must be finite; got -inf.
y_score=instead(SCORES, 2, NAN) → y_score has 1 missing value (row 2 of 8).
**POINTS → {ONE_MISSING}
y_true=[1, 1, 1, 1, 1, 1, 0, 0] → {UNDEFINED} roc_auc of group 'a', which has
y_true=[0, 0, 0, 0, 1, 1, 0, 0] → {UNDEFINED} roc_auc of group 'a', which has
variance='score' →
    variance must be 'auto' or one of 'delong', {BOOTSTRAPS} for roc_auc; got 'score'.
variance='delta' →
    variance must be 'auto' or one of 'delong', {BOOTSTRAPS} for roc_auc; got 'delta'.
metric='accuracy', variance='delong' →
    variance must be 'auto' or one of 'score', 'wald', 'delta', {BOOTSTRAPS} for accuracy; got
    'delong'.
metric='brier_score', y_score=np.array(SCORES).astype(str) → TypeError: {NO_NUMBERS} '0.9'.
metric='log_loss', y_score=np.array(SCORES) > 0.5 → TypeError: {NO_NUMBERS} True.
metric='mean_score', y_score=np.array(SCORES) * 1j → TypeError: {NO_NUMBERS} 0.9j.
metric='brier_score', y_score=instead(SCORES, 2, None) → y_score has 1 missing value (row 2 of 8).
metric='brier_score', **POINTS → {ONE_MISSING}
metric='true_positive_rate', **POINTS → {ONE_MISSING}
metric='brier_score', y_score=instead(SCORES, 0, 1.2) → {FROM_0_TO_1} 1.2. {SCALE}
metric='log_loss', y_score=instead(SCORES, 0, -0.1) → {FROM_0_TO_1} -0.1. {SCALE}
metric='calibration_in_the_large', y_score=instead(SCORES, 0, 2) → {FROM_0_TO_1} 2.0. {SCALE}
metric='mean_score_positives', y_true=[0, 0, 0, 0, 1, 1, 0, 0] →
    {UNDEFINED} mean_score_positives of group 'a', which has
metric='mean_score_negatives', y_true=[1, 1, 1, 1, 1, 1, 0, 0] →
    {UNDEFINED} mean_score_negatives of group 'a', which has
y_true='y', y_score=['s', 't'], data={'y': SCORED['y_true'], 's': SCORES, 't': SCORES} →
    TypeError: y_score must be one column of scores; got ['s', 't']. Several, one for each
    class, are for metrics of classes, such as roc_auc_ovr.
metric='auc', y_score=[10 ** 400] * 8 → y_score must be finite; got inf.
metric='average_precision', scheme='within_label' →
    scheme must be 'pooled' for average_precision; got 'within_label'.
metric='brier_score', scheme='within_label' →
    scheme must be 'pooled' for brier_score; got 'within_label'.
""",
) + table(
    permutation_test,
    {**FITTED, "metric": "mse"},
    globals(),
    """
y_pred=None, y_score=SCORES →
    TypeError: y_pred must be given for mean_squared_error; got None. Pass it as y_pred, not as
    y_score.
y_pred=None → TypeError: y_pred must be given for mean_squared_error; got None.
y_true=None → TypeError: y_true must be given for mean_squared_error; got None.
y_true=list('abcdefgh') → TypeError: y_true must be made of real numbers; got 'a'.
y_true=instead(instead(OUTCOMES, 1, NAN), 3, None) →
    y_true has 2 missing values (rows 1, 3 of 8).
y_true=instead(OUTCOMES, 1, INF) → y_true must be finite; got inf.
y_pred=[-INF] * 8 → y_pred must be finite; got -inf.
y_pred=OUTCOMES * 2 → y_pred must be as long as y_true (8 rows); got 16.
scheme='within_label' →
    scheme must be 'pooled' for mean_squared_error; got 'within_label'.
metric='mean_poisson_deviance', y_true=instead(OUTCOMES, 0, -1) →
    y_true must be not negative for mean_poisson_deviance; got -1
metric='mean_poisson_deviance', y_pred=instead(OUTCOMES, 0, 0) →
    y_pred must be above 0 for mean_poisson_deviance; got 0
metric='mean_gamma_deviance', y_true=instead(OUTCOMES, 0, 0) →
    y_true must be above 0 for mean_gamma_deviance; got 0
metric='mean_gamma_deviance', y_pred=instead(OUTCOMES, 0, -2) →
    y_pred must be above 0 for mean_gamma_deviance; got -2
variance='wald' →
    variance must be 'auto' or one of 'hall', 'delta', {BOOTSTRAPS} for mean_squared_error; got
    'wald'.
variance='delong' →
    variance must be 'auto' or one of 'hall', 'delta', {BOOTSTRAPS} for mean_squared_error; got
    'delong'.
""",
)


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
