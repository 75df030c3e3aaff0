"""What a sweep over thresholds refuses, and what it says then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairperm import InputError
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
from tests.support.refusals import Refusal, check_wording, each, table

GOOD: dict[str, Any] = {
    "y_true": [1, 1, 0, 0, 1, 1, 0, 0],
    "y_score": [0.9, 0.2, 0.6, 0.1, 0.8, 0.7, 0.3, 0.4],
    "sensitive_features": list("aaaabbbb"),
    "metric": "true_positive_rate",
    "n_resamples": 99,
    "rng": 1,
}


PREDICTIONS = "metric must be a metric of labels and binary predictions; got "
NUMBERS = "thresholds must be an integer above 1, an array of finite numbers or 'scores'; got "
REFUSALS = table(
    threshold_sweep,
    GOOD,
    globals(),
    """
y_true=None → TypeError: y_true must be given; got None.
y_score=None → TypeError: y_score must be given; got None.
sensitive_features=None → TypeError: sensitive_features must be given; got None.
y_score=[True, False] * 4 →
    TypeError: y_score must be made of real numbers; got True. Labels are not scores.
y_score=[*GOOD['y_score'][:-1], np.inf] → y_score must be finite; got inf.
y_score=[*GOOD['y_score'][:-1], np.nan] →
    y_score has 1 missing value (row 7 of 8). Pass missing='drop'
y_score=GOOD['y_score'][:-1] → y_score must be as long as y_true (8 rows); got 7.
y_true=[0, 1, 2, 0, 1, 2, 0, 1] → y_true must be binary
sensitive_features=list('aaabbbcc') →
    sensitive_features has 3 groups ('a', 'b', 'c'); a comparison needs two
data={'s': [1]}, y_score='t' → y_score must be a column of data
control_features=[0, 1] * 4, stratum_weights={2: 1} →
    stratum_weights must be a mapping with strata of control_features
metric='truth' → metric must be one that metric_names() lists
metric=None → TypeError: metric must be the name of a metric or a function; got None.
metric=[] → metric must be a metric, or a list of different metrics; got [].
metric=['tpr', 'recall'] →
    metric must be a metric, or a list of different metrics; got ['tpr', 'recall'].
metric='equalized_odds' →
    {PREDICTIONS}'equalized_odds'. Pass a list of its parts: ['true_positive_rate',
    'false_positive_rate'].
metric='base_rate' → {PREDICTIONS}'base_rate'. This metric does not depend on the threshold.
metric='roc_auc' → {PREDICTIONS}'roc_auc'. Only metrics of
metric='mean_squared_error' → {PREDICTIONS}'mean_squared_error'.
metric='f1_macro' → {PREDICTIONS}'f1_macro'.
metric=np.mean → {PREDICTIONS}'mean'.
y_true=[0, 0, 0, 0, 1, 1, 0, 0] →
    metric must be defined in both groups at some threshold; got true_positive_rate
thresholds='score' → {NUMBERS}'score'. Did you mean 'scores'?
thresholds=1 → thresholds must be an integer from 2 to 1,000,000; got 1.
thresholds=True → TypeError: thresholds must be an integer from 2 to 1,000,000
thresholds=0.5 → TypeError: thresholds must be a list, a NumPy array or
thresholds=['low'] → TypeError: thresholds must be made of real numbers; got 'low'.
thresholds=[] → {NUMBERS}[].
thresholds=[np.inf, 0.5] → {NUMBERS}[inf, 0.5]. Leave out
thresholds=[np.nan, 0.5] → {NUMBERS}[nan, 0.5].
thresholds=np.ones((2, 2)) → thresholds must be one-dimensional
thresholds=[5, 6] → thresholds must include one between the lowest and the highest score
y_score=[0.5] * 8 → thresholds must include one between the lowest and the highest score
thresholds=700, n_resamples=100000 →
    thresholds must be at most 671 for 100,000 permutations of 1 metric, to fit into 1 GiB of
    memory; got 700.
scheme='outcome' → scheme must be one of 'auto'
metric=['tpr', 'selection_rate'], scheme='within_label' →
    scheme must be 'denominator' or 'pooled' for selection_rate; got 'within_label'.
metric='mcc', scheme='denominator' →
    scheme must be 'pooled' or 'within_label' for matthews_corrcoef, which has no single
    denominator
metric='ppv', scheme='denominator' →
    scheme must be 'pooled' for positive_predictive_value, whose denominator changes with the
    threshold; got 'denominator'.
metric='f1', scheme='denominator' →
    scheme must be 'pooled' for f1_score, whose denominator changes with the threshold
metric=['tpr', 'selection_rate'], scheme='denominator' →
    scheme must be 'pooled' for rates with different denominators
variance='bootstrap' → variance must be one of 'auto', 'score', 'wald'
metric=['tpr', 'mcc'], variance='score' → variance must be 'auto' or one of 'hall', 'delta'
alpha=5 → alpha must be a number strictly between 0 and 1; got 5.
alpha='0.05' → TypeError: alpha must be a number strictly between 0 and 1; got '0.05'.
n_resamples=0 → n_resamples must be an integer from 1
n_jobs=0 → n_jobs must be a positive or negative integer
rng='1' → TypeError: rng must be an integer
missing='ignore' → missing must be one of 'error', 'drop'
""",
)


@each(REFUSALS)
def test_refusal_names_the_argument_and_its_rule(refusal: Refusal) -> None:
    check_wording(refusal)


def test_the_good_call_is_good() -> None:
    threshold_sweep(**GOOD)


def test_many_strata_need_memory_too() -> None:
    n = 3000
    data: dict[str, Any] = {
        "y_true": np.arange(n) % 2,
        "y_score": np.arange(n),
        "sensitive_features": np.arange(n) // 2 % 2,
        "control_features": np.arange(n),
    }
    with pytest.raises(InputError, match=r"^thresholds must be at most .* got 10000\."):
        threshold_sweep(**data, metric="tpr", thresholds=10_000, n_resamples=9)
