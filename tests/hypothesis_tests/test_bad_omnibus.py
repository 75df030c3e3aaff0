"""What the test of many groups refuses, and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairperm import InputError, InputTypeError, UndefinedMetricError, omnibus_test
from tests.support.callables import accuracy
from tests.support.refusals import GOOD, Refusal, check_wording, each

THREE: dict[str, Any] = {
    **GOOD,
    "y_true": [1, 1, 0, 0] * 3,
    "y_pred": [1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1],
    "sensitive_features": list("aaaabbbbcccc"),
}


def refused(name: str, says: str, error: type[Any] = InputError, **changes: Any) -> Refusal:
    return Refusal(name, says, {**THREE, **changes}, error, omnibus_test)


AUC: dict[str, Any] = {"metric": "roc_auc", "y_pred": None, "y_score": np.linspace(0, 1, 12)}
REFUSALS = [
    refused("one group", "sensitive_features has 1 group ('a')", sensitive_features=["a"] * 12),
    refused("an unknown group", "groups must be made of groups in", groups=("a", "x")),
    refused("one group asked for", "groups must be two or more different groups", groups=["a"]),
    refused("a group twice", "groups must be two or more different", groups=["a", "b", "a"]),
    refused("a text as groups", "groups must be two or more different groups", groups="ab"),
    refused(
        "more groups than a byte can tell",
        "sensitive_features must be made of at most 254 groups to permute together; got 300",
        y_true=[0, 1] * 300,
        y_pred=[0, 1] * 300,
        sensitive_features=np.repeat(np.arange(300), 2),
    ),
    refused("a nested bootstrap", "variance must be another for many", variance="bootstrap"),
    refused("an unknown variance", "variance must be one of", variance="jackknife"),
    refused("a variance for ranks", "variance must be 'auto' or one of", variance="delong"),
    refused("a scheme by label", "scheme must be", scheme="within_label", metric="accuracy"),
    refused("an unknown scheme", "scheme must be one of", scheme="paired"),
    refused(
        "weights of ranks", "sample_weight must be left out for", **AUC, sample_weight=np.ones(12)
    ),
    refused("clusters of ranks", "cluster must be left out for", **AUC, cluster=np.arange(12)),
    refused(
        "strata of a bootstrapped variance",
        "control_features must be left out for",
        metric=accuracy,
        control_features=[0, 1] * 6,
    ),
    refused(
        "a metric without a value",
        "metric must be defined in every group; got false_negative_rate of group 'c'",
        UndefinedMetricError,
        y_true=[1, 1, 0, 0] * 2 + [0] * 4,
    ),
    refused(
        "too few for an error",
        "metric must be one whose standard error is defined, and not zero; got roc_auc with group "
        "'c' of 4 rows, 1 of them positive. The groups are too small",
        UndefinedMetricError,
        **{**AUC, "y_true": [1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0]},
    ),
    refused(
        "strata with rows of only some",
        "control_features must have a stratum with rows of every group",
        UndefinedMetricError,
        control_features=list("xxxxxxxxyyyy"),
    ),
    refused("no resamples", "n_resamples must be", n_resamples=0),
    refused("a level of one", "confidence_level must be", confidence_level=1),
    refused("an unknown metric", "metric must be", metric="fnrr"),
    refused("no metric", "metric must be", InputTypeError, metric=7),
    refused("a seed that is none", "rng must be", InputTypeError, rng="one"),
    refused("labels of another length", "y_pred", y_pred=[1, 0]),
]


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)
