"""What the test of many groups refuses, and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairperm import omnibus_test
from tests.support.callables import accuracy
from tests.support.refusals import GOOD, Refusal, check_wording, each, table

THREE: dict[str, Any] = {
    **GOOD,
    "y_true": [1, 1, 0, 0] * 3,
    "y_pred": [1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1],
    "sensitive_features": list("aaaabbbbcccc"),
}
STRATA = {"metric": accuracy, "control_features": [0, 1] * 6}
AUC: dict[str, Any] = {"metric": "roc_auc", "y_pred": None, "y_score": np.linspace(0, 1, 12)}
REFUSALS = table(
    omnibus_test,
    THREE,
    globals(),
    """
sensitive_features=['a'] * 12 → sensitive_features has 1 group ('a')
groups=('a', 'x') → groups must be made of groups in
groups=['a'] → groups must be two or more different groups
groups=['a', 'b', 'a'] → groups must be two or more different
groups='ab' → groups must be two or more different groups
y_true=[0, 1] * 300, y_pred=[0, 1] * 300, sensitive_features=np.repeat(np.arange(300), 2) →
    sensitive_features must be made of at most 254 groups to permute together; got 300
variance='bootstrap' → variance must be another for many
variance='jackknife' → variance must be one of
variance='delong' → variance must be 'auto' or one of
scheme='within_label', metric='accuracy' → scheme must be
scheme='paired' → scheme must be one of
**AUC, sample_weight=np.arange(1, 13) → sample_weight must be left out for
**AUC, cluster=np.arange(12) // 2 → cluster must be left out for
**STRATA → control_features must be left out for
y_true=[1, 1, 0, 0] * 2 + [0] * 4 →
    UndefinedMetricError: metric must be defined in every group; got false_negative_rate of
    group 'c'
**AUC, y_true=[1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0] →
    UndefinedMetricError: metric must be one whose standard error is defined, and not zero; got
    roc_auc with group 'c' of 4 rows, 1 of them positive. The groups are too small
control_features=list('xxxxxxxxyyyy') →
    UndefinedMetricError: control_features must have a stratum with rows of every group
n_resamples=0 → n_resamples must be
confidence_level=1 → confidence_level must be
metric='fnrr' → metric must be
metric=7 → TypeError: metric must be
rng='one' → TypeError: rng must be
y_pred=[1, 0] → y_pred
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)
