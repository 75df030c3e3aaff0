"""Calls that an audit refuses, and what it says then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from fairperm import InputError, InputTypeError, audit
from tests.support.refusals import Refusal

GOOD: dict[str, Any] = {
    "y_true": [1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0],
    "y_pred": [1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0],
    "sensitive_features": list("aaaabbbbcccc"),
    "metrics": "selection_rate",
    "min_group_size": 1,
    "n_resamples": 99,
    "rng": 1,
}
N = len(GOOD["y_true"])
SCORE = np.linspace(0.1, 0.9, N)
FRAME = pd.DataFrame(
    {
        "label": GOOD["y_true"],
        "prediction": GOOD["y_pred"],
        "race": GOOD["sensitive_features"],
        "sex": list("fm" * 6),
    }
)
IN_FRAME = {"y_true": "label", "y_pred": "prediction", "data": FRAME}
BOTH = {**IN_FRAME, "sensitive_features": ["race", "sex"]}


def value(name: str, says: str, **changes: Any) -> Refusal:
    return Refusal(name, says, {**GOOD, **changes}, InputError, audit)


def kind(name: str, says: str, **changes: Any) -> Refusal:
    return Refusal(name, says, {**GOOD, **changes}, InputTypeError, audit)


def no_weights(y_true: Any, y_pred: Any) -> float:
    return float(np.mean(y_true == y_pred))


def one_column(y_true: Any) -> float:
    return 0.0


def words(y_true: Any, y_pred: Any) -> str:
    return "high"


def fails(y_true: Any, y_pred: Any) -> float:
    raise ZeroDivisionError("no rows")


SHARE = "must be a number strictly between 0 and 1; got"
WHOLE = "must be an integer from 1 to 1,000,000,000,000; got"
NAME = "metrics must be the name of a metric or a function; got"

REFUSALS = [
    value("bins of scores in memory", "score_bins is for lazy frames", score_bins=64),
    # metrics
    kind("a number for a metric", f"{NAME} 5.", metrics=5),
    kind("a class for a metric", f"{NAME} <class 'int'>. Pass an object of it.", metrics=int),
    kind("a list in a list", f"{NAME} ['tpr'].", metrics=[["tpr"]]),
    kind("nothing in a mapping", f"{NAME} None.", metrics={"mine": None}),
    value("no metrics", "metrics must be at least one metric; got []. Try", metrics=[]),
    value("no metrics named", "metrics must be at least one metric; got {}.", metrics={}),
    value("another word", "metrics must be one that metric_names() lists", metrics="accurate"),
    value(
        "one of them unknown",
        "metrics must be one that metric_names() lists",
        metrics=["tpr", "fprr"],
    ),
    value(
        "a metric and its alias",
        "metrics must be different metrics; got 'true_positive_rate'. Use a mapping",
        metrics=["tpr", "recall"],
    ),
    kind(
        "a numbered metric",
        "metrics must be a mapping of names to metrics; got 1.",
        metrics={1: "tpr"},
    ),
    kind(
        "a function of one column",
        "metrics must be a function that can be called as metric(y_true, y_pred); got <function",
        metrics=one_column,
    ),
    kind(
        "a function that takes no weights",
        "metrics must be a function with a parameter sample_weight if weights are given; got",
        metrics=no_weights,
        sample_weight=[1.0, 2.0] * 6,
    ),
    kind(
        "a function that returns words",
        "metrics must be a function that returns a real number; got 'high' from words in",
        metrics=words,
    ),
    value(
        "a function that fails",
        "metrics must be a function that has a value in every sample; got ZeroDivisionError",
        metrics=fails,
    ),
    kind("no scores", "y_score must be given for roc_auc; got None. Pass it as", metrics="auc"),
    kind(
        "scores for one of them",
        "y_score must be given for roc_auc; got None. Pass it as",
        metrics=["tpr", "auc", "brier_score"],
    ),
    kind(
        "no numbers",
        "y_pred must be given for mean_squared_error; got None. Pass it as y_pred, not as y_score.",
        metrics=["mse", "mae"],
        y_pred=None,
        y_score=SCORE,
    ),
    kind(
        "no predictions",
        "y_pred must be given for this metric; got None. Or pass y_score with threshold.",
        y_pred=None,
    ),
    value(
        "no probabilities",
        "y_score must be from 0 to 1 for this metric; got 1.0",
        metrics=["auc", "brier_score"],
        y_score=SCORE * 2,
    ),
    value(
        "many classes", "y_true must be binary", y_true=[0, 1, 2] * 4, metrics=["accuracy", "tpr"]
    ),
    # compare and reference
    value(
        "compare",
        "compare must be one of 'pairs', 'reference', 'rest'; got 'pair'. Did",
        compare="pair",
    ),
    value(
        "no compare", "compare must be one of 'pairs', 'reference', 'rest'; got None.", compare=None
    ),
    value(
        "a reference for pairs",
        "reference can only be used with compare='reference'; got compare='pairs'.",
        reference="a",
    ),
    value(
        "a reference for the rest",
        "reference can only be used with compare='reference'; got compare='rest'.",
        compare="rest",
        reference="a",
    ),
    value(
        "an unknown reference",
        "reference must be a group of race; got 'A'. Did you mean 'a'?",
        **{**IN_FRAME, "sensitive_features": "race"},
        compare="reference",
        reference="A",
    ),
    value(
        "an array as reference",
        "reference must be a group of sensitive_features ('a', 'b', 'c'); got array",
        compare="reference",
        reference=np.array(["a", "b"]),
    ),
    value(
        "a missing reference",
        "reference must be a group of sensitive_features ('a', 'b', 'c'); got <NA>.",
        compare="reference",
        reference=pd.NA,
    ),
    kind(
        "one reference for two attributes",
        "reference must be a mapping of attributes to groups if there are several attributes; got",
        **BOTH,
        compare="reference",
        reference="a",
    ),
    value(
        "a reference of no attribute",
        "reference must be given for attributes of the audit; got 'Sex'. Did you mean 'sex'?",
        **BOTH,
        compare="reference",
        reference={"Sex": "f"},
    ),
    value(
        "a reference of another attribute",
        "reference must be a group of sex ('f', 'm'); got 'a'.",
        **BOTH,
        compare="reference",
        reference={"sex": "a"},
    ),
    value(
        "half an intersection",
        "reference must be a group of race × sex (('a', 'f'), ('a', 'm'),",
        **BOTH,
        intersections=True,
        compare="reference",
        reference={"race × sex": "a"},
    ),
    # adjust, alpha
    value(
        "adjust",
        "adjust must be one of 'holm', 'bh', 'by', None; got 'Holm'. Did",
        adjust="Holm",
    ),
    value(
        "no adjustment",
        "adjust must be one of 'holm', 'bh', 'by', None; got False.",
        adjust=False,
    ),
    value(
        "joint draws",
        "adjust must be one of 'holm', 'bh', 'by', None; got 'maxt'. Max-T over metrics is valid "
        "only if they depend on each other alike in both groups, which an audit cannot know. Use "
        "adjust='holm'.",
        adjust="maxt",
    ),
    value("percent", f"alpha {SHARE} 5. Did you mean 0.05?", alpha=5),
    value("zero", f"alpha {SHARE} 0.", alpha=0),
    kind("a word for alpha", f"alpha {SHARE} '5%'.", alpha="5%"),
    kind("no alpha", f"alpha {SHARE} None.", alpha=None),
    value("confidence", f"confidence_level {SHARE} 95. Did you mean 0.95?", confidence_level=95),
    # ratio
    value(
        "a ratio in strata",
        "ratio must be left out with control_features, whose gap is a mean of differences; got",
        ratio=0.8,
        control_features=list("ab" * 6),
    ),
    value(
        "a ratio of several gaps",
        "ratio must be left out for equalized_odds; got 0.8. It has several ratios; audit its",
        ratio=0.8,
        metrics="equalized_odds",
    ),
    value(
        "a ratio without an error",
        "ratio must be left out with variance=None, whose test is not valid at a bound; got 0.8.",
        ratio=0.8,
        variance=None,
    ),
    # margin
    value("no margin", "margin must be a number above 0; got 0.", margin=0),
    value("negative margin", "margin must be a number above 0; got -0.1.", margin=-0.1),
    value("infinite margin", "margin must be a number above 0; got inf.", margin=np.inf),
    kind("a word for a margin", "margin must be a number above 0; got '0.1'.", margin="0.1"),
    kind("two margins", "margin must be a number above 0; got [0.1, 0.2].", margin=[0.1, 0.2]),
    value(
        "percent of margin",
        "margin must be below 1 for selection_rate; got 5.0. Rates are numbers from 0 to 1, not",
        margin=5,
    ),
    value(
        "percent of a function of rates",
        "margin must be below 2 for mine; got 2.5.",
        metrics={"mine": "mcc"},
        margin={"mine": 2.5},
    ),
    value(
        "margin of no metric",
        "margin must be given for metrics of the audit ('selection_rate'); got "
        "'selection_rat'. Did you mean 'selection_rate'?",
        margin={"selection_rat": 0.1},
    ),
    value(
        "margin of a metric under two names",
        "margin must be given once for every metric; got 'recall'.",
        metrics=["tpr"],
        margin={"tpr": 0.1, "recall": 0.2},
    ),
    kind(
        "margin of nothing",
        "margin must be a number above 0; got None.",
        margin={"selection_rate": None},
    ),
    # groups
    value("no group size", f"min_group_size {WHOLE} 0.", min_group_size=0),
    kind("half a row", f"min_group_size {WHOLE} 1.5.", min_group_size=1.5),
    kind("a word for a size", f"min_group_size {WHOLE} '50'.", min_group_size="50"),
    kind("no size", f"min_group_size {WHOLE} None.", min_group_size=None),
    kind("a number for a switch", "intersections must be True or False; got 1.", intersections=1),
    kind("no switch", "intersections must be True or False; got None.", intersections=None),
    value(
        "intersections of one",
        "sensitive_features must be several columns for intersections; got 'sensitive_features'. "
        "Pass a frame, or a list of column names with data.",
        intersections=True,
    ),
    value(
        "the same column twice",
        "sensitive_features must be columns with different names; got ['race', 'race']. A list of "
        "strings names columns of data; pass values as an array.",
        **{**IN_FRAME, "sensitive_features": ["race", "race"]},
    ),
    value(
        "an unknown column",
        "sensitive_features must be a column of data; got 'Race'. Did you mean 'race'?",
        **{**IN_FRAME, "sensitive_features": ["Race", "sex"]},
    ),
    value(
        "an unknown column in a mapping",
        "sensitive_features must be a column of data; got 'rac'. Did you mean 'race'?",
        **{**IN_FRAME, "sensitive_features": {"r": "rac", "s": "sex"}},
    ),
    kind("no features", "sensitive_features must be given; got None.", sensitive_features=None),
    kind(
        "a name without data",
        "sensitive_features must be a list, a NumPy array or a data frame's column; got 'race'. "
        "Column names need data=frame.",
        sensitive_features="race",
    ),
    kind(
        "a lazy frame",
        "sensitive_features must be one column of values; got <class 'polars.lazyframe",
        sensitive_features=pl.LazyFrame({"race": GOOD["sensitive_features"]}),
    ),
    value(
        "an empty frame",
        "sensitive_features must have at least one column; got none.",
        sensitive_features={},
    ),
    value(
        "an array without columns",
        "sensitive_features must have at least one column; got none.",
        sensitive_features=np.zeros((N, 0)),
    ),
    value(
        "a cube",
        "sensitive_features must be one-dimensional; got (12, 2, 2).",
        sensitive_features=np.zeros((N, 2, 2)),
    ),
    value(
        "columns of two lengths",
        "sensitive_features must be as long as y_true (12 rows); got 5. Pass columns of one",
        sensitive_features={"race": list("aaaabbbbcccc"), "sex": list("fmfmf")},
    ),
    value(
        "one group",
        "sensitive_features must have two groups or more in 'sex'; got one, 'f'. Pass the rows of",
        sensitive_features={"race": list("aaaabbbbcccc"), "sex": ["f"] * N},
    ),
    value(
        "numbers for groups",
        "sensitive_features must have at most 20 groups named by numbers; got 21 in 'age'. Cut "
        "numbers into bands, or use correlation_test; numbers that are names can be passed as",
        y_true=[0, 1] * 21,
        y_pred=[0, 1] * 21,
        sensitive_features={"sex": list("fm") * 21, "age": np.arange(42) // 2},
    ),
    value(
        "hundreds of groups",
        "sensitive_features must make at most 10,000 comparisons; got 200 groups in "
        "'sensitive_features'. Merge groups, or use compare='rest'.",
        y_true=[0, 1] * 200,
        y_pred=[0, 1] * 200,
        sensitive_features=[f"school {i // 2}" for i in range(400)],
    ),
    value(
        "an unknown family",
        "family must be one of 'audit', 'attribute'; got 'atribute'. Did you mean 'attribute'?",
        family="atribute",
    ),
    # what permutation_test refuses too
    value(
        "missing",
        "missing must be one of 'error', 'drop', 'group'; got 'dropp'. Did",
        missing="dropp",
    ),
    value(
        "a direction of a joint metric",
        "alternative must be 'two-sided' for equalized_odds; got 'greater'. A joint test has no",
        metrics=["tpr", "equalized_odds"],
        alternative="greater",
    ),
    value(
        "a scheme that fits only some",
        "scheme must be 'pooled' or 'within_label' for balanced_accuracy, which has no single",
        metrics=["tpr", "balanced_accuracy"],
        scheme="denominator",
    ),
    value(
        "a variance that fits only some",
        "variance must be 'auto' or one of 'delong', 'bootstrap', 'fast_bootstrap', None for",
        metrics=["tpr", "auc"],
        y_score=SCORE,
        variance="score",
    ),
    value(
        "a threshold for a function",
        "threshold must be left out for a function, which gets scores as they are; got 0.3. Pass",
        metrics=["tpr", no_weights],
        y_pred=None,
        y_score=SCORE,
        threshold=0.3,
    ),
    value(
        "a positive label for a function",
        "pos_label must be left out for a function, which gets labels as they are; got 1. Fix it",
        metrics=["tpr", no_weights],
        pos_label=1,
    ),
    value(
        "resamples",
        "n_resamples must be 'auto' or an integer from 0 to 100,000,000; got -1.",
        n_resamples=-1,
    ),
    value("threads", "n_jobs must be a positive or negative integer, or None; got 0.", n_jobs=0),
    kind("progress", "progress must be True, False or None; got 3.", progress=3),
    kind("rng", "rng must be an integer from 0 to 2**128 - 1, a numpy Generator", rng="one"),
    kind("data", "data must be a pandas, Polars or pyarrow frame, or a mapping", data=5),
]
