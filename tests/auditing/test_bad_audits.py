"""What an audit refuses, and what it says then."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairperm import FairpermError, InputError, audit
from tests.support.refusals import Refusal, check_wording, each, table

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

REFUSALS = table(
    audit,
    GOOD,
    globals(),
    """
score_bins=64 → score_bins is for lazy frames
metrics=5 → TypeError: {NAME} 5.
metrics=int → TypeError: {NAME} <class 'int'>. Pass an object of it.
metrics=[['tpr']] → TypeError: {NAME} ['tpr'].
metrics={'mine': None} → TypeError: {NAME} None.
metrics=[] → metrics must be at least one metric; got []. Try
metrics={} → metrics must be at least one metric; got {}.
metrics='accurate' → metrics must be one that metric_names() lists
metrics=['tpr', 'fprr'] → metrics must be one that metric_names() lists
metrics=['tpr', 'recall'] →
    metrics must be different metrics; got 'true_positive_rate'. Use a mapping
metrics={1: 'tpr'} → TypeError: metrics must be a mapping of names to metrics; got 1.
metrics=one_column →
    TypeError: metrics must be a function that can be called as metric(y_true, y_pred); got
    <function
metrics=no_weights, sample_weight=[1.0, 2.0] * 6 →
    TypeError: metrics must be a function with a parameter sample_weight if weights are given;
    got
metrics=words →
    TypeError: metrics must be a function that returns a real number; got 'high' from words in
metrics=fails → metrics must be a function that has a value in every sample; got ZeroDivisionError
metrics='auc' → TypeError: y_score must be given for roc_auc; got None. Pass it as
metrics=['tpr', 'auc', 'brier_score'] →
    TypeError: y_score must be given for roc_auc; got None. Pass it as
metrics=['mse', 'mae'], y_pred=None, y_score=SCORE →
    TypeError: y_pred must be given for mean_squared_error; got None. Pass it as y_pred, not as
    y_score.
y_pred=None →
    TypeError: y_pred must be given for this metric; got None. Or pass y_score with threshold.
metrics=['auc', 'brier_score'], y_score=SCORE * 2 →
    y_score must be from 0 to 1 for this metric; got 1.0
y_true=[0, 1, 2] * 4, metrics=['accuracy', 'tpr'] → y_true must be binary
compare='pair' → compare must be one of 'pairs', 'reference', 'rest'; got 'pair'. Did
compare=None → compare must be one of 'pairs', 'reference', 'rest'; got None.
reference='a' → reference can only be used with compare='reference'; got compare='pairs'.
compare='rest', reference='a' →
    reference can only be used with compare='reference'; got compare='rest'.
**IN_FRAME, sensitive_features='race', compare='reference', reference='A' →
    reference must be a group of race; got 'A'. Did you mean 'a'?
compare='reference', reference=np.array(['a', 'b']) →
    reference must be a group of sensitive_features ('a', 'b', 'c'); got array
compare='reference', reference=pd.NA →
    reference must be a group of sensitive_features ('a', 'b', 'c'); got <NA>.
**BOTH, compare='reference', reference='a' →
    TypeError: reference must be a mapping of attributes to groups if there are several
    attributes; got
**BOTH, compare='reference', reference={'Sex': 'f'} →
    reference must be given for attributes of the audit; got 'Sex'. Did you mean 'sex'?
**BOTH, compare='reference', reference={'sex': 'a'} →
    reference must be a group of sex ('f', 'm'); got 'a'.
**BOTH, intersections=True, compare='reference', reference={'race × sex': 'a'} →
    reference must be a group of race × sex (('a', 'f'), ('a', 'm'),
adjust='Holm' → adjust must be one of 'holm', 'bh', 'by', None; got 'Holm'. Did
adjust=False → adjust must be one of 'holm', 'bh', 'by', None; got False.
adjust='maxt' →
    adjust must be one of 'holm', 'bh', 'by', None; got 'maxt'. Max-T over metrics is valid only
    if they depend on each other alike in both groups, which an audit cannot know. Use
    adjust='holm'.
alpha=5 → alpha {SHARE} 5. Did you mean 0.05?
alpha=0 → alpha {SHARE} 0.
alpha='5%' → TypeError: alpha {SHARE} '5%'.
alpha=None → TypeError: alpha {SHARE} None.
confidence_level=95 → confidence_level {SHARE} 95. Did you mean 0.95?
ratio=0.8, control_features=list('ab' * 6) →
    ratio must be left out with control_features, whose gap is a mean of differences; got
ratio=0.8, metrics='equalized_odds' →
    ratio must be left out for equalized_odds; got 0.8. It has several ratios; audit its
ratio=0.8, variance=None →
    ratio must be left out with variance=None, whose test is not valid at a bound; got 0.8.
margin=0 → margin must be a number above 0; got 0.
margin=-0.1 → margin must be a number above 0; got -0.1.
margin=np.inf → margin must be a number above 0; got inf.
margin='0.1' → TypeError: margin must be a number above 0; got '0.1'.
margin=[0.1, 0.2] → TypeError: margin must be a number above 0; got [0.1, 0.2].
margin=5 → margin must be below 1 for selection_rate; got 5.0. Rates are numbers from 0 to 1, not
metrics={'mine': 'mcc'}, margin={'mine': 2.5} → margin must be below 2 for mine; got 2.5.
margin={'selection_rat': 0.1} →
    margin must be given for metrics of the audit ('selection_rate'); got 'selection_rat'. Did
    you mean 'selection_rate'?
metrics=['tpr'], margin={'tpr': 0.1, 'recall': 0.2} →
    margin must be given once for every metric; got 'recall'.
margin={'selection_rate': None} → TypeError: margin must be a number above 0; got None.
min_group_size=0 → min_group_size {WHOLE} 0.
min_group_size=1.5 → TypeError: min_group_size {WHOLE} 1.5.
min_group_size='50' → TypeError: min_group_size {WHOLE} '50'.
intersections=1 → TypeError: intersections must be True or False; got 1.
intersections=None → TypeError: intersections must be True or False; got None.
intersections=True →
    sensitive_features must be several columns for intersections; got 'sensitive_features'. Pass
    a frame, or a list of column names with data.
**IN_FRAME, sensitive_features=['race', 'race'] →
    sensitive_features must be columns with different names; got ['race', 'race']. A list of
    strings names columns of data; pass values as an array.
**IN_FRAME, sensitive_features=['Race', 'sex'] →
    sensitive_features must be a column of data; got 'Race'. Did you mean 'race'?
**IN_FRAME, sensitive_features={'r': 'rac', 's': 'sex'} →
    sensitive_features must be a column of data; got 'rac'. Did you mean 'race'?
sensitive_features=None → TypeError: sensitive_features must be given; got None.
sensitive_features='race' →
    TypeError: sensitive_features must be a list, a NumPy array or a data frame's column; got
    'race'. Column names need data=frame.
sensitive_features=pl.LazyFrame({'race': GOOD['sensitive_features']}) →
    TypeError: sensitive_features must be one column of values; got <class 'polars.lazyframe
sensitive_features={} → sensitive_features must have at least one column; got none.
sensitive_features=np.zeros((N, 0)) → sensitive_features must have at least one column; got none.
sensitive_features=np.zeros((N, 2, 2)) → sensitive_features must be one-dimensional; got (12, 2, 2).
sensitive_features={'race': list('aaaabbbbcccc'), 'sex': list('fmfmf')} →
    sensitive_features must be as long as y_true (12 rows); got 5. Pass columns of one
sensitive_features={'race': list('aaaabbbbcccc'), 'sex': ['f'] * N} →
    sensitive_features must have two groups or more in 'sex'; got one, 'f'. Pass the rows of
y_true=[0, 1] * 21, y_pred=[0, 1] * 21, sensitive_features={'sex': list('fm') * 21, 'age':
np.arange(42) // 2} →
    sensitive_features must have at most 20 groups named by numbers; got 21 in 'age'. Cut
    numbers into bands, or use correlation_test; numbers that are names can be passed as
y_true=[0, 1] * 200, y_pred=[0, 1] * 200, sensitive_features=[f'school {i // 2}' for i in
range(400)] →
    sensitive_features must make at most 10,000 comparisons; got 200 groups in
    'sensitive_features'. Merge groups, or use compare='rest'.
family='atribute' →
    family must be one of 'audit', 'attribute'; got 'atribute'. Did you mean 'attribute'?
missing='dropp' → missing must be one of 'error', 'drop', 'group'; got 'dropp'. Did
metrics=['tpr', 'equalized_odds'], alternative='greater' →
    alternative must be 'two-sided' for equalized_odds; got 'greater'. A joint test has no
metrics=['tpr', 'balanced_accuracy'], scheme='denominator' →
    scheme must be 'pooled' or 'within_label' for balanced_accuracy, which has no single
metrics=['tpr', 'auc'], y_score=SCORE, variance='score' →
    variance must be 'auto' or one of 'delong', 'bootstrap', 'fast_bootstrap', None for
metrics=['tpr', no_weights], y_pred=None, y_score=SCORE, threshold=0.3 →
    threshold must be left out for a function, which gets scores as they are; got 0.3. Pass
metrics=['tpr', no_weights], pos_label=1 →
    pos_label must be left out for a function, which gets labels as they are; got 1. Fix it
n_resamples=-1 → n_resamples must be 'auto' or an integer from 0 to 100,000,000; got -1.
n_jobs=0 → n_jobs must be a positive or negative integer, or None; got 0.
progress=3 → TypeError: progress must be True, False or None; got 3.
rng='one' → TypeError: rng must be an integer from 0 to 2**128 - 1, a numpy Generator
data=5 → TypeError: data must be a pandas, Polars or pyarrow frame, or a mapping
""",
)


@each(REFUSALS)
def test_wording(refusal: Refusal) -> None:
    check_wording(refusal)


def test_the_good_call_is_good() -> None:
    assert len(audit(**GOOD)) == 3
    assert len(audit(**{**GOOD, **BOTH}, intersections=True)) == 3 + 1 + 15


ODD: dict[str, Any] = {
    "None": None,
    "truth": True,
    "zero": 0,
    "negative": -3,
    "nan": float("nan"),
    "infinite": float("inf"),
    "huge": 10**400,
    "complex": 1j,
    "word": "word",
    "empty": "",
    "bytes": b"x",
    "list": [1, "a"],
    "no rows": [],
    "tuple": (),
    "mapping": {"a": object()},
    "set": {1, 2},
    "array": np.array([[1, 2], [3, 4]]),
    "scalar": np.array(0.3),
    "objects": np.array([None, object()], object),
    "frame": FRAME,
    "polars": pl.DataFrame({"a": [1]}),
    "series": pd.Series([pd.NA, pd.NaT]),
    "class": dict,
    "function": len,
    "object": object(),
}
ARGUMENTS = (
    *("y_true", "y_pred", "y_score", "sensitive_features", "metrics", "data", "compare"),
    *("reference", "intersections", "adjust", "alpha", "margin", "min_group_size", "threshold"),
    *("pos_label", "control_features", "stratum_weights", "cluster", "sample_weight", "missing"),
    *("scheme", "variance", "alternative", "n_resamples", "n_bootstrap", "confidence_level"),
    *("rng", "n_jobs", "progress"),
)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_anything_for_any_argument_is_taken_or_refused_in_words(argument: str) -> None:
    """Whatever comes, no other error than fairperm's own reaches the user."""
    calls = itertools.cycle(
        [GOOD, {**GOOD, "compare": "reference"}, {**GOOD, "metrics": no_weights}]
    )
    for (name, odd), good in zip(ODD.items(), calls, strict=False):
        try:
            audit(**{**good, argument: odd})
        except FairpermError as error:
            message = str(error)
            assert message[-1] in ".?", (name, message)
            assert "\n" not in message, (name, message)
        except Exception as error:
            raise AssertionError(f"{argument}={name}") from error


def test_refusals_come_before_any_work() -> None:
    """What does not fit the last metric is said before the first is tested."""
    calls = []

    def counted(y_true: Any, y_pred: Any) -> float:
        calls.append(len(y_true))
        return float(np.mean(y_true == y_pred))

    bad: list[dict[str, Any]] = [
        {"margin": {"tpr": 2}},
        {"alternative": "greater", "metrics": {"f": counted, "e": "equalized_odds"}},
        {"scheme": "within_label"},
        {"compare": "reference", "reference": "z"},
    ]
    for options in bad:
        given = {**GOOD, "metrics": {"f": counted, "t": "tpr", "p": "ppv"}, **options}
        with pytest.raises(InputError, match="must be"):
            audit(**given)
    assert calls == []
