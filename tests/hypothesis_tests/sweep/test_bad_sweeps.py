"""What a sweep over thresholds refuses, and what it says then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairperm import InputError, InputTypeError
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
from tests.support.refusals import Refusal, check_wording, each

GOOD: dict[str, Any] = {
    "y_true": [1, 1, 0, 0, 1, 1, 0, 0],
    "y_score": [0.9, 0.2, 0.6, 0.1, 0.8, 0.7, 0.3, 0.4],
    "sensitive_features": list("aaaabbbb"),
    "metric": "true_positive_rate",
    "n_resamples": 99,
    "rng": 1,
}


def value(name: str, says: str, **changes: Any) -> Refusal:
    return Refusal(name, says, {**GOOD, **changes}, InputError, threshold_sweep)


def kind(name: str, says: str, **changes: Any) -> Refusal:
    return Refusal(name, says, {**GOOD, **changes}, InputTypeError, threshold_sweep)


PREDICTIONS = "metric must be a metric of labels and binary predictions; got "
NUMBERS = "thresholds must be an integer above 1, an array of finite numbers or 'scores'; got "

REFUSALS = [
    # data
    kind("no labels", "y_true must be given; got None.", y_true=None),
    kind("no scores", "y_score must be given; got None.", y_score=None),
    kind("no groups", "sensitive_features must be given; got None.", sensitive_features=None),
    kind(
        "labels as scores",
        "y_score must be made of real numbers; got True. Labels are not scores.",
        y_score=[True, False] * 4,
    ),
    value(
        "infinite score",
        "y_score must be finite; got inf.",
        y_score=[*GOOD["y_score"][:-1], np.inf],
    ),
    value(
        "missing score",
        "y_score has 1 missing value (row 7 of 8). Pass missing='drop'",
        y_score=[*GOOD["y_score"][:-1], np.nan],
    ),
    value(
        "short scores",
        "y_score must be as long as y_true (8 rows); got 7.",
        y_score=GOOD["y_score"][:-1],
    ),
    value(
        "three labels",
        "y_true must be binary",
        y_true=[0, 1, 2, 0, 1, 2, 0, 1],
    ),
    value(
        "three groups",
        "sensitive_features has 3 groups ('a', 'b', 'c'); a comparison needs two",
        sensitive_features=list("aaabbbcc"),
    ),
    value("unknown column", "y_score must be a column of data", data={"s": [1]}, y_score="t"),
    value(
        "unknown stratum",
        "stratum_weights must be a mapping with strata of control_features",
        control_features=[0, 1] * 4,
        stratum_weights={2: 1},
    ),
    # metrics
    value("unknown metric", "metric must be one that metric_names() lists", metric="truth"),
    kind("no metric", "metric must be the name of a metric or a function; got None.", metric=None),
    value(
        "empty list", "metric must be a metric, or a list of different metrics; got [].", metric=[]
    ),
    value(
        "the same twice",
        "metric must be a metric, or a list of different metrics; got ['tpr', 'recall'].",
        metric=["tpr", "recall"],
    ),
    value(
        "joint metric",
        f"{PREDICTIONS}'equalized_odds'. Pass a list of its parts: ['true_positive_rate', "
        "'false_positive_rate'].",
        metric="equalized_odds",
    ),
    value(
        "no predictions in it",
        f"{PREDICTIONS}'base_rate'. This metric does not depend on the threshold.",
        metric="base_rate",
    ),
    value("a score's metric", f"{PREDICTIONS}'roc_auc'. Only metrics of", metric="roc_auc"),
    value("a regression's", f"{PREDICTIONS}'mean_squared_error'.", metric="mean_squared_error"),
    value("many classes", f"{PREDICTIONS}'macro_f1'.", metric="macro_f1"),
    value("a function", f"{PREDICTIONS}'mean'.", metric=np.mean),
    value(
        "undefined everywhere",
        "metric must be defined in both groups at some threshold; got true_positive_rate",
        y_true=[0, 0, 0, 0, 1, 1, 0, 0],
    ),
    # thresholds
    value("another word", f"{NUMBERS}'score'. Did you mean 'scores'?", thresholds="score"),
    value("one", "thresholds must be an integer from 2 to 1,000,000; got 1.", thresholds=1),
    kind("truth", "thresholds must be an integer from 2 to 1,000,000", thresholds=True),
    kind("a number", "thresholds must be a list, a NumPy array or", thresholds=0.5),
    kind("text", "thresholds must be made of real numbers; got 'low'.", thresholds=["low"]),
    value("none", f"{NUMBERS}[].", thresholds=[]),
    value("infinite", f"{NUMBERS}[inf, 0.5]. Leave out", thresholds=[np.inf, 0.5]),
    value("unknown", f"{NUMBERS}[nan, 0.5].", thresholds=[np.nan, 0.5]),
    value("two dimensions", "thresholds must be one-dimensional", thresholds=np.ones((2, 2))),
    value(
        "all trivial",
        "thresholds must include one between the lowest and the highest score",
        thresholds=[5, 6],
    ),
    value(
        "all scores equal",
        "thresholds must include one between the lowest and the highest score",
        y_score=[0.5] * 8,
    ),
    value(
        "too much memory",
        "thresholds must be at most 671 for 100,000 permutations of 1 metric, to fit into 1 GiB of "
        "memory; got 700.",
        thresholds=700,
        n_resamples=100_000,
    ),
    # options
    value("scheme", "scheme must be one of 'auto'", scheme="outcome"),
    value(
        "labels do not decide it",
        "scheme must be 'denominator' or 'pooled' for selection_rate; got 'within_label'.",
        metric=["tpr", "selection_rate"],
        scheme="within_label",
    ),
    value(
        "no denominator",
        "scheme must be 'pooled' or 'within_label' for matthews_corrcoef, which has no single "
        "denominator",
        metric="mcc",
        scheme="denominator",
    ),
    value(
        "a denominator that changes",
        "scheme must be 'pooled' for positive_predictive_value, whose denominator changes with "
        "the threshold; got 'denominator'.",
        metric="ppv",
        scheme="denominator",
    ),
    value(
        "a denominator of either",
        "scheme must be 'pooled' for f1_score, whose denominator changes with the threshold",
        metric="f1",
        scheme="denominator",
    ),
    value(
        "two kinds of denominator",
        "scheme must be 'pooled' for rates with different denominators",
        metric=["tpr", "selection_rate"],
        scheme="denominator",
    ),
    value("bootstrap", "variance must be one of 'auto', 'score', 'wald'", variance="bootstrap"),
    value(
        "variance of a rate",
        "variance must be 'auto' or one of 'delta'",
        metric=["tpr", "mcc"],
        variance="score",
    ),
    value("percent", "alpha must be a number strictly between 0 and 1; got 5.", alpha=5),
    kind("alpha", "alpha must be a number strictly between 0 and 1; got '0.05'.", alpha="0.05"),
    value("no draws", "n_resamples must be an integer from 1", n_resamples=0),
    value("no threads", "n_jobs must be a positive or negative integer", n_jobs=0),
    kind("seed", "rng must be an integer", rng="1"),
    value("missing", "missing must be one of 'error', 'drop'", missing="ignore"),
]


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
