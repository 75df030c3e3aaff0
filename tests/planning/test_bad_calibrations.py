"""Calls of calibrate that must fail, and what the reader must be told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairperm import InputTypeError, UndefinedMetricError, calibrate
from tests.support.helpers import rows
from tests.support.refusals import Refusal, each

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


def value(name: str, says: str, **changes: Any) -> Refusal:
    return Refusal(name, says, {**GOOD, **changes}, function=calibrate)


def kind(name: str, says: str, **changes: Any) -> Refusal:
    return Refusal(name, says, {**GOOD, **changes}, InputTypeError, calibrate)


REFUSALS = [
    value("alpha of zero", f"alpha {SHARE}; got 0.", alpha=0),
    value("alpha in percent", f"alpha {SHARE}; got 5. Did you mean 0.05?", alpha=5),
    value(
        "no simulations",
        "n_simulations must be an integer from 1 to 1,000,000; got 0.",
        n_simulations=0,
    ),
    value(
        "too few permutations to reject",
        "n_resamples must be at least 19 for alpha=0.05; got 18. With fewer random "
        "permutations no p-value is small enough.",
        n_resamples=18,
    ),
    value("less than none", "n_resamples must be an integer from 0 to", n_resamples=-1),
    value(
        "a normal limit of several gaps",
        "n_resamples must be at least 1 for equalized_odds with variance='score'; got 0.",
        metric="equalized_odds",
        n_resamples=0,
    ),
    value(
        "a normal limit without an error",
        "n_resamples must be at least 1 for false_negative_rate with variance=None; got 0.",
        variance=None,
        n_resamples=0,
    ),
    value("a level in percent", f"confidence_level {SHARE}; got 95.", confidence_level=95),
    value(
        "no gap",
        "gap must be a number other than 0; got 0. The level is the power without a gap.",
        gap=0,
    ),
    value("an endless gap", "gap must be a number other than 0; got inf.", gap=float("inf")),
    value(
        "a gap that there is no room for",
        "gap must be a gap that weights of rows can make in false_negative_rate; got -0.99. The "
        "groups have 0.100 and 0.200, which limits gaps around their mean.",
        gap=-0.99,
    ),
    value(
        "a gap of a joint metric",
        "gap cannot be used with equalized_odds, which has several gaps.",
        metric="equalized_odds",
        gap=0.1,
    ),
    value(
        "a function",
        "metric must be a metric by name: the influence of a row on a function is not known; got "
        "'cost'. register_metric makes a metric of a function of means.",
        metric=cost,
    ),
    value("an unknown metric", "metric must be one that metric_names() lists", metric="fnrr"),
    value("an unknown scheme", "scheme must be one of", scheme="labels"),
    value("a variance that does not fit", "variance must be 'auto' or one of", variance="delong"),
    value("an unknown side", "alternative must be one of", alternative="both"),
    value(
        "groups that are not there",
        "groups must be made of groups in sensitive_features",
        groups=("a", "c"),
    ),
    value(
        "nothing to weigh",
        "metric must be a metric that weights of rows can make equal in both groups; got "
        "'positive_predictive_value'. The groups have too few different rows.",
        **rows(((10, 0, 10, 20), (0, 20, 0, 0))),
        metric="ppv",
    ),
    value(
        "clusters in two groups",
        "cluster must keep to one group: whole clusters are exchanged; got cluster 0 with rows of "
        "'a', 'b'. Use a finer cluster. Tests of metrics and audits can make one per",
        cluster=[0] * 400,
    ),
    value(
        "clusters whose labels are predictions",
        "metric must be a metric that weights of clusters can make equal in both groups; got "
        "'selection_rate'. The groups have too few different clusters.",
        y_true=[0, 1] * 10 + [0, 0, 0, 1] * 5,
        y_pred=[0, 1] * 10 + [0, 0, 0, 1] * 5,
        sensitive_features=["a"] * 20 + ["b"] * 20,
        cluster=[i // 3 for i in range(20)] + [7 + i // 3 for i in range(20)],
        metric="selection_rate",
    ),
    kind("a gap in words", "gap must be a number other than 0; got 'large'.", gap="large"),
    kind(
        "samples that cannot be counted",
        "n_simulations must be an integer from 1 to 1,000,000; got 10.0.",
        n_simulations=10.0,
    ),
    kind("progress", "progress must be True, False or None; got 'yes'.", progress="yes"),
    kind("no predictions", "y_pred must be given for this metric; got None.", y_pred=None),
]


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    message = refusal.message()
    assert message.startswith(refusal.says)
    assert message[-1] in ".?"
    assert "\n" not in message


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'studentize'"):
        calibrate(**GOOD, studentize=True)


def test_samples_of_which_none_has_a_test_are_no_answer() -> None:
    # one positive of 400 rows in each group: a sample of both has one each hardly ever
    rare = rows(((399, 0, 0, 1), (399, 0, 1, 0)))
    with pytest.raises(UndefinedMetricError, match=r"^metric must be a metric that is defined"):
        calibrate(**rare, metric="tpr", n_simulations=1, rng=1)
