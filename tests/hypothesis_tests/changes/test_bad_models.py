"""Comparisons of models that cannot be: each is refused by name, with the rule and the value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairperm import FairpermError, compare_models
from tests.support.refusals import GOOD, Refusal, check_wording, each, table

PAIR = {**GOOD, "y_pred_new": [1, 1, 1, 0, 1, 0, 0, 0]}
SCORES = {
    "y_pred": None,
    "y_pred_new": None,
    "y_score": [0.9, 0.2, 0.7, 0.1, 0.8, 0.6, 0.3, 0.4],
    "y_score_new": [0.8, 0.6, 0.7, 0.2, 0.9, 0.1, 0.3, 0.4],
}


def share_alike(y_true: Any, y_pred: Any) -> float:
    return float(np.mean(y_true == y_pred))


REFUSALS = table(
    compare_models,
    PAIR,
    globals(),
    """
y_pred_new=None →
    TypeError: y_pred_new must be given for this metric; got None. Or pass y_score_new with
    threshold_new.
y_pred=None →
    TypeError: y_pred must be given for this metric; got None. Or pass y_score with threshold.
**SCORES, metric='roc_auc', y_score_new=None →
    TypeError: y_score_new must be given for change in roc_auc; got None.
**SCORES, metric='roc_auc', y_score_new=None, y_pred_new=[0] * 8 →
    TypeError: y_score_new must be given for change in roc_auc; got None. Pass it as
    y_score_new, not as y_pred_new.
**SCORES, metric='roc_auc', y_score=None →
    TypeError: y_score must be given for change in roc_auc; got None.
y_score_new=[0.5] * 8 → Pass y_pred_new or y_score_new, not both.
y_score=[0.5] * 8 → Pass y_pred or y_score, not both.
y_pred_new=[1] * 7 →
    y_pred_new must be as long as y_true (8 rows); got 7. Pass columns of one length.
y_pred_new=['yes', 'no'] * 4 →
    y_pred_new must be binary (0/1, -1/1 or False/True; or two other values and pos_label); got
    the values 'no', 'yes'. Pass pos_label='no' or pos_label='yes', whichever means yes.
y_pred_new=[0.2, 0.7] * 4 →
    y_pred_new must be binary (0/1, -1/1 or False/True; or two other values and pos_label); got
    the values 0.2, 0.7. Pass scores as y_score, with a threshold.
y_pred_new=[0, 1, 2, 0, 1, 2, 0, 1] → y_pred_new must be binary
y_pred_new=[1, 1, None, 0, 1, 0, 0, 0] →
    y_pred_new has 1 missing value (row 2 of 8). Pass missing='drop' to drop these rows; the
    result counts them.
y_pred_new=np.zeros((8, 2)) →
    y_pred_new must be one-dimensional; got (8, 2). Take one column, such as [:, 1] for the
    probability of the second class.
y_pred_new={1} →
    TypeError: y_pred_new must be a list, a NumPy array or a data frame's column; got {1}.
y_pred_new='new' →
    TypeError: y_pred_new must be a list, a NumPy array or a data frame's column; got 'new'.
    Column names need data=frame.
data={'g': PAIR['sensitive_features'], 'p': PAIR['y_pred'], 'q': PAIR['y_pred_new'], 'y':
PAIR['y_true']}, y_true='y', y_pred='p', y_pred_new='r', sensitive_features='g' →
    y_pred_new must be a column of data ('g', 'p', 'q', 'y'); got 'r'.
metric='accuracy', y_true=['yes', 'no'] * 4, y_pred=['yes', 'no'] * 4, y_pred_new=['Yes', 'no'] *
4 →
    y_pred_new must be made of the labels of y_true ('no', 'yes'); got 'Yes'. Did you mean
    'yes'?
**SCORES, metric='roc_auc', y_score_new=[np.inf] + [0.1] * 7 → y_score_new must be finite; got inf.
**SCORES, metric='roc_auc', y_score_new=list('abababab') →
    TypeError: y_score_new must be made of real numbers; got 'a'. Labels are not scores.
**SCORES, metric='brier_score', y_score_new=[7.0] + [0.1] * 7 →
    y_score_new must be from 0 to 1 for this metric; got 7.0. Scale the scores to probabilities
    first.
**SCORES, threshold_new=0.95 →
    threshold_new must be above the lowest score (0.1) and not above the highest (0.9); got
    0.95. It would predict every row as negative.
**SCORES, threshold_new='x' → TypeError: threshold_new must be a finite number; got 'x'.
**SCORES, y_score_new=[-2, 3] * 4 →
    threshold_new must be given if y_score_new is not between 0 and 1; got scores from -2 to 3.
    The default of 0.5 is for probabilities.
threshold=0.4 → threshold cannot be used with y_pred: it only turns y_score into predictions.
threshold_new=0.4 →
    threshold_new cannot be used with y_pred_new: it only turns y_score_new into predictions.
sensitive_features=['a'] * 8 → sensitive_features has 1 group ('a'); a comparison needs two
sensitive_features=list('aabbccaa') →
    sensitive_features has 3 groups ('a', 'b', 'c'); a comparison needs two
groups=('a', 'c') → groups must be made of groups in sensitive_features ('a', 'b'); got 'c'.
variance='score' →
    variance must be 'auto' or one of 'hall', 'delta', 'bootstrap', 'fast_bootstrap', None for
    change in false_negative_rate; got 'score'.
scheme='denominator' →
    scheme must be 'pooled' or 'within_label' for change in false_negative_rate, which has no
    single denominator; got 'denominator'. Use scheme='pooled'.
scheme='unconditional' →
    scheme must be 'pooled' or 'within_label' for change in false_negative_rate, which has no
    single denominator; got 'unconditional'.
metric='ppv', scheme='within_label' →
    scheme must be 'pooled' for change in positive_predictive_value; got 'within_label'.
metric='equalized_odds', alternative='less' →
    alternative must be 'two-sided' for change in equalized_odds; got 'less'. A joint test has
    no direction; test its parts one by one.
**SCORES, metric='average_precision' →
    metric must be one whose change has a standard error; got 'average_precision'.
metric='fairness' → metric must be one that metric_names() lists; got 'fairness'.
cluster=[1, 1, 2, 2, 1, 3, 3, 3] →
    cluster must keep to one group: whole clusters are exchanged; got cluster 1
y_true=[0, 0, 0, 0, 1, 1, 0, 0] →
    UndefinedMetricError: metric must be defined in every group; got change in
    false_negative_rate of group 'a', which has no positives.
metric=share_alike, n_resamples=0 → n_resamples must be at least 1 for
**SCORES, metric=share_alike, threshold_new=0.5 →
    threshold must be left out for a function, which gets scores as they are; got 0.5.
metric=share_alike, threshold=0.5 →
    threshold must be left out for a function, which gets scores as they are; got 0.5. Pass
    y_pred=scores >= threshold.
""",
)


@each(REFUSALS)
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
