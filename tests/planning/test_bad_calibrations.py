"""Calls of calibrate that must fail, and what the reader must be told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairperm import UndefinedMetricError, calibrate
from tests.support.helpers import rows
from tests.support.refusals import Refusal, check_wording, each, table

GOOD: dict[str, Any] = {
    **rows(((36, 4, 16, 144), (144, 16, 8, 32))),
    "metric": "false_negative_rate",
    "n_simulations": 2,
    "n_resamples": 99,
    "rng": 1,
}
SHARE = "must be a number strictly between 0 and 1"


def cost(y_true: Any, y_pred: Any) -> float:
    return float(np.mean(y_true != y_pred))


REFUSALS = table(
    calibrate,
    GOOD,
    globals(),
    """
alpha=0 → alpha {SHARE}; got 0.
alpha=5 → alpha {SHARE}; got 5. Did you mean 0.05?
n_simulations=0 → n_simulations must be an integer from 1 to 1,000,000; got 0.
n_resamples=18 →
    n_resamples must be at least 19 for alpha=0.05; got 18. With fewer random permutations no
    p-value is small enough.
n_resamples=-1 → n_resamples must be an integer from 0 to
metric='equalized_odds', n_resamples=0 →
    n_resamples must be at least 1 for equalized_odds with variance='score'; got 0.
variance=None, n_resamples=0 →
    n_resamples must be at least 1 for false_negative_rate with variance=None; got 0.
confidence_level=95 → confidence_level {SHARE}; got 95.
gap=0 → gap must be a number other than 0; got 0. The level is the power without a gap.
gap=float('inf') → gap must be a number other than 0; got inf.
gap=-0.99 →
    gap must be a gap that weights of rows can make in false_negative_rate; got -0.99. The
    groups have 0.100 and 0.200, which limits gaps around their mean.
metric='equalized_odds', gap=0.1 → gap cannot be used with equalized_odds, which has several gaps.
metric=cost →
    metric must be a metric by name: the influence of a row on a function is not known; got
    'cost'. register_metric makes a metric of a function of means.
metric='fnrr' → metric must be one that metric_names() lists
scheme='labels' → scheme must be one of
variance='delong' → variance must be 'auto' or one of
alternative='both' → alternative must be one of
groups=('a', 'c') → groups must be made of groups in sensitive_features
**rows(((10, 0, 10, 20), (0, 20, 0, 0))), metric='ppv' →
    metric must be a metric that weights of rows can make equal in both groups; got
    'positive_predictive_value'. The groups have too few different rows.
cluster=[0] * 400 →
    cluster must keep to one group: whole clusters are exchanged; got cluster 0 with rows of
    'a', 'b'. Use a finer cluster. Tests of metrics and audits can make one per
y_true=[0, 1] * 10 + [0, 0, 0, 1] * 5, y_pred=[0, 1] * 10 + [0, 0, 0, 1] * 5,
sensitive_features=['a'] * 20 + ['b'] * 20, cluster=[i // 3 for i in range(20)] + [7 + i // 3 for
i in range(20)], metric='selection_rate' →
    metric must be a metric that weights of clusters can make equal in both groups; got
    'selection_rate'. The groups have too few different clusters.
gap='large' → TypeError: gap must be a number other than 0; got 'large'.
n_simulations=10.0 → TypeError: n_simulations must be an integer from 1 to 1,000,000; got 10.0.
progress='yes' → TypeError: progress must be True, False or None; got 'yes'.
y_pred=None → TypeError: y_pred must be given for this metric; got None.
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'studentize'"):
        calibrate(**GOOD, studentize=True)


def test_samples_of_which_none_has_a_test_are_no_answer() -> None:
    # one positive of 400 rows in each group: a sample of both has one each hardly ever
    rare = rows(((399, 0, 0, 1), (399, 0, 1, 0)))
    with pytest.raises(UndefinedMetricError, match=r"^metric must be a metric that is defined"):
        calibrate(**rare, metric="tpr", n_simulations=1, rng=1)
