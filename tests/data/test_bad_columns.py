"""Invalid columns: each raises an error with its name, the rule, the value and a hint."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from fairperm import permutation_test
from fairperm.errors import InputError
from tests.support.refusals import GOOD, Refusal, check_wording, each, table

COLUMN = "must be a list, a NumPy array or a data frame's column"
BINARY = "must be binary (0/1, -1/1 or False/True; or two other values and pos_label)"
FRAME = "must be a pandas, Polars or pyarrow frame, or a mapping of names to columns"
TABLE: dict[str, list[Any]] = {
    "label": GOOD["y_true"],
    "prediction": GOOD["y_pred"],
    "sex": GOOD["sensitive_features"],
}
TWICE = pd.DataFrame(np.ones((8, 2)), columns=["sex", "sex"])
FRAMED = {"y_true": "label", "y_pred": "prediction", "sensitive_features": "sex", "data": TABLE}
SCORES = [0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6]
YES_NO = ["yes", "no"] * 4
SCORED = {"y_pred": None, "y_score": SCORES}
NO_SCORES = "y_score must be made of real numbers; got"
LABELS = "pos_label must be one of the labels (0, 1); got"
SPARSE = sparse.csr_array(np.array([[1, 0]]))
LENGTH = "must be as long as y_true (8 rows); got 7. Pass columns of one length."

NOTHING = {  # a column of 0 and 1 whose rows 2 and 5 are not known, in every form
    "None": [1, 0, None, 0, 1, None, 0, 1],
    "nan": [1, 0, float("nan"), 0, 1, float("nan"), 0, 1],
    "Decimal": [1, 0, Decimal("NaN"), 0, 1, Decimal("NaN"), 0, 1],
    "NumPy nan": np.array([1, 0, np.nan, 0, 1, np.nan, 0, 1]),
    "NumPy object": np.array([1, 0, np.nan, 0, 1, None, 0, 1], object),
    "pandas NA": [1, 0, pd.NA, 0, 1, pd.NA, 0, 1],
    "pandas NaT": [1, 0, pd.NaT, 0, 1, pd.NaT, 0, 1],
    "pandas Int64": pd.Series([1, 0, None, 0, 1, None, 0, 1], dtype="Int64"),
    "pandas boolean": pd.Series([1, 0, None, 0, 1, None, 0, 1], dtype="boolean"),
    "pandas category": pd.Series([1, 0, None, 0, 1, None, 0, 1], dtype="category"),
    "pandas array": pd.array([1, 0, None, 0, 1, None, 0, 1], dtype="Int64"),
    "Polars null": pl.Series([1, 0, None, 0, 1, None, 0, 1]),
    "Polars nan": pl.Series([1.0, 0.0, np.nan, 0.0, 1.0, np.nan, 0.0, 1.0]),
    "pyarrow null": pa.chunked_array([[1, 0, None, 0, 1, None, 0, 1]]),
    "pyarrow array": pa.array([1, 0, None, 0, 1, None, 0, 1]),
}

UNKNOWN = [
    Refusal(
        f"{column} missing: {form}",
        permutation_test,
        {**GOOD, "y_pred": None if column == "y_score" else GOOD["y_pred"], column: values},
        f"{column} has 2 missing values (rows 2, 5 of 8). Pass missing='drop' to drop these rows; "
        "the result counts them.",
    )
    for form, values in NOTHING.items()
    for column in ("y_true", "y_pred", "y_score", "sensitive_features", "control_features")
    if not (column == "y_score" and form == "pandas boolean")
]
REFUSALS = UNKNOWN + table(
    permutation_test,
    GOOD,
    globals(),
    """
y_pred=GOOD["y_pred"][:7] → y_pred {LENGTH}
**SCORED, y_score=SCORES[:7] → y_score {LENGTH}
sensitive_features=list("aaaabbb") → sensitive_features {LENGTH}
control_features=list("xyxyxyx") → control_features {LENGTH}
**FRAMED, data={**TABLE, 'prediction': [1] * 9} →
    y_pred (column 'prediction') must be as long as y_true (column 'label') (8 rows); got 9.
sensitive_features=[] → sensitive_features must be as long as y_true (8 rows); got 0.
y_true=None →
    TypeError: y_true must be given for false_negative_rate; got None. Without labels,
    selection_rate
y_true=1 → TypeError: y_true {COLUMN}; got 1.
y_true='label' → TypeError: y_true {COLUMN}; got 'label'. Column names need data=
y_true=b'1100' → TypeError: y_true {COLUMN}; got b'1100'.
y_true={'a': 1} → TypeError: y_true {COLUMN}; got {'a': 1}.
y_pred={0, 1} → TypeError: y_pred {COLUMN}; got {0, 1}.
y_pred=(i for i in [1, 0]) → TypeError: y_pred {COLUMN}; got <generator
y_true=SPARSE →
    TypeError: y_true {COLUMN}; got <Compressed Sparse Row sparse
y_true=np.array(1) → y_true must be one-dimensional; got ().
y_pred=np.ones((8, 1)) →
    y_pred must be one-dimensional; got (8, 1). Use .ravel() to make it one column.
y_pred=np.ones((8, 2)) →
    y_pred must be one-dimensional; got (8, 2). Take one column, such as [:, 1] for the
sensitive_features=np.ones((8, 1, 1)) → sensitive_features must be one-d
y_true=pd.DataFrame(TABLE) →
    TypeError: y_true must be one column of values; got <class 'pandas.DataFrame'>. Pass one of
    its columns, or data=frame and the column's name.
sensitive_features=pl.LazyFrame(TABLE) →
    TypeError: sensitive_features must be one column of values; got <class 'polars.
y_true=np.ma.array(GOOD['y_true']) →
    TypeError: y_true must be a column without a mask; got <class 'numpy.ma.MaskedArray'>. Use
    .filled()
sensitive_features=None → TypeError: sensitive_features must be given; got None.
sensitive_features=[['a']] * 8 →
    TypeError: sensitive_features must be made of hashable values; got "unhashable type:
    'list'". Turn lists into tuples or strings first.
sensitive_features=[['a']] * 8, data=TABLE →
    TypeError: sensitive_features must be made of hashable values; got
sensitive_features=pl.Series([{'sex': 'a'}] * 4 + [{'sex': 'b'}] * 4) →
    TypeError: sensitive_features must be made of hashable values; got "unhashable type:
    'dict'".
sensitive_features={} → sensitive_features must have at least one column; got none.
control_features=np.ones((8, 0)) → control_features must have at least one column; got none.
**FRAMED, data='table.csv' → TypeError: data {FRAME}; got <class 'str'>.
**FRAMED, data=np.ones((8, 2)) → TypeError: data {FRAME}; got <class 'numpy.nd
**FRAMED, data=pd.Series([1, 2]) → TypeError: data {FRAME}; got <class 'pandas.Se
**FRAMED, y_true='Label' → y_true must be a column of data; got 'Label'. Did you mean 'label'?
**FRAMED, y_pred=None, y_score='score' →
    y_score must be a column of data ('label', 'prediction', 'sex'); got 'score'.
**FRAMED, control_features=['label', 'sexx'] →
    control_features must be a column of data; got 'sexx'. Did you mean 'sex'?
**FRAMED, sensitive_features=list('aaaabbbb') →
    sensitive_features must be a column of data ('label', 'prediction', 'sex'); got 'a'. A list
    of strings means columns of data; pass values as an array.
**FRAMED, data={} → y_true must be a column of data (); got 'label'.
**FRAMED, data=TWICE → data must have different column names: Expected unique column names
y_true=TWICE → y_true must have different column names:
sensitive_features=TWICE → sensitive_features must have different column names:
y_true=[], y_pred=[], sensitive_features=[] → y_true must have at least one row; got none.
y_true=[None] * 8, missing='drop' →
    y_true must have at least one row; got none. missing='drop' dropped all 8 rows.
y_true=[2, 1, 0, 0, 1, 1, 0, 0] →
    y_true {BINARY}; got the values 0, 1, 2. Pass pos_label: that value means yes
y_true=[1, 2] * 4 →
    y_true {BINARY}; got the values 1, 2. Pass pos_label=1 or pos_label=2, whichever means yes.
y_true=YES_NO →
    y_true {BINARY}; got the values 'no', 'yes'. Pass pos_label='no' or pos_label='yes', whichever
y_pred=SCORES →
    y_pred {BINARY}; got the values 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9. Pass scores as
    y_score, with a threshold.
y_pred=[0.25, 0.75] * 4 →
    y_pred {BINARY}; got the values 0.25, 0.75. Pass scores as y_score, with a threshold.
y_true=YES_NO, y_pred=YES_NO, pos_label='Yes' →
    pos_label must be one of the labels ('no', 'yes'); got 'Yes'. Did you mean 'yes'?
pos_label='1' → pos_label must be one of the labels (0, 1); got '1'. Did you mean 1?
y_true=YES_NO, y_pred=['Yes', 'no'] * 4, pos_label='yes' →
    y_true and y_pred must be made of the same classes; got 'no', 'yes' and 'Yes', 'no'. Use the
    same values for labels and predictions.
y_pred=['0', '1'] * 4, pos_label=1 →
    y_true and y_pred must be made of the same classes; got 0, 1 and '0', '1'. Use
y_score=SCORES → Pass y_pred or y_score, not both.
y_pred=None →
    TypeError: y_pred must be given for this metric; got None. Or pass y_score with threshold.
**SCORED, y_score=np.ones((8, 2)) → y_score must be one-dimensional; got (8, 2).
**SCORED, y_score=[np.inf, 0.1] * 4 → y_score must be finite; got inf. Replace
**SCORED, y_score=[-np.inf, 0.1] * 4 → y_score must be finite; got -inf. Replace
**SCORED, y_score=[10 ** 400, 0.1] * 4 → y_score must be finite; got inf. Replace
**SCORED, threshold=0.1 →
    threshold must be above the lowest score (0.1) and not above the highest (0.9); got 0.1. It
    would predict every row as positive.
**SCORED, threshold=50 →
    threshold must be above the lowest score (0.1) and not above the highest (0.9); got 50. It
    would predict every row as negative.
**SCORED, y_score=np.array(SCORES, np.float16), threshold=1000000.0 →
    threshold must be above the lowest score (0.0999756) and not above the highest (0.899902);
    got 1000000.0.
**SCORED, y_score=[0.4, 90, 20, 30, 40, 50, 60, 70] →
    threshold must be given if y_score is not between 0 and 1; got scores from 0.4 to 90. The
    default of 0.5 is for probabilities.
**SCORED, y_score=[-2, 0.9] * 4 →
    threshold must be given if y_score is not between 0 and 1; got scores from -2 to 0.9.
threshold=0.5 → threshold cannot be used with y_pred: it only turns y_score into predictions.
pos_label=[1] → {LABELS} [1].
pos_label=pd.NA → {LABELS} <NA>.
pos_label=np.nan → {LABELS} nan.
pos_label=np.array([0, 1]) → {LABELS} array([0, 1]).
**SCORED, y_score=["0.1", "0.9"] * 4 → TypeError: {NO_SCORES} '0.1'. Labels are not scores.
**SCORED, y_score=[None, "a"] * 4 → TypeError: {NO_SCORES} 'a'. Labels are not scores.
**SCORED, y_score=[True, False] * 4 → TypeError: {NO_SCORES} True. Labels are not scores.
**SCORED, y_score=np.array([True, False] * 4) →
    TypeError: {NO_SCORES} True. Labels are not scores.
**SCORED, y_score=[0.5, True] * 4 → TypeError: {NO_SCORES} True. Labels are not scores.
**SCORED, y_score=np.array([1j, 0.5] * 4) → TypeError: {NO_SCORES} 1j.
**SCORED, y_score=np.array(["2020-01-01"] * 8, "M8[D]") →
    TypeError: {NO_SCORES} np.datetime64('2020-01-01').
**SCORED, y_score=[[0.1], [0.9]] * 4 → TypeError: {NO_SCORES} [0.1].
**SCORED, y_score=[[0.1], [0.9, 1]] * 4 → TypeError: {NO_SCORES} [0.1].
sensitive_features=np.array(["2020-01-01", "2021-01-01"] * 3 + ["2020-01-01", "NaT"], "M8[D]") →
    sensitive_features has 1 missing value (row 7 of 8). Pass missing='drop'
sensitive_features=[("a", np.nan)] * 4 + [("b", 1.0)] * 4 →
    sensitive_features has 4 missing values (rows 0, 1, 2, 3 of 8). Pass missing='drop'
y_true=[None] * 8, sensitive_features=pd.DataFrame({"age": [1] * 8, "sex": [None, *"aaabbbb"]}) →
    y_true has 8 missing values (rows 0, 1, 2, 3, 4, … of 8); sensitive_features column 'sex' has
    1 missing value (row 0 of 8). Pass
**FRAMED, data=pl.DataFrame(TABLE).with_columns(label=pl.Series([None, *GOOD["y_true"][1:]])) →
    y_true (column 'label') has 1 missing value (row 0 of 8).
sample_weight=[-1.0] + [1.0] * 7 → sample_weight must be made of numbers above 0; got -1.0.
sample_weight=[0.0] + [1.0] * 7 → sample_weight must be made of numbers above 0; got 0.0.
sample_weight=[np.nan] + [1.0] * 7 → sample_weight has 1 missing value (row 0 of 8).
sample_weight=[np.inf] + [1.0] * 7 → sample_weight must be finite; got inf.
sample_weight=["heavy"] + [1.0] * 7 → TypeError: sample_weight must be made of real numbers; got
sample_weight=[1.0] → sample_weight must be as long as y_true (8 rows); got 1.
""",
)


@each(REFUSALS)
def test_bad_data_are_refused_in_a_full_sentence_that_names_the_argument(refusal: Refusal) -> None:
    check_wording(refusal)


def test_durations_are_no_predictions() -> None:
    durations = np.array([0, 1] * 60, "m8[s]")
    with pytest.raises(InputError, match="y_pred must be binary"):
        permutation_test([0, 1] * 60, durations, sensitive_features=["a", "b"] * 60, metric="fpr")
