"""Invalid columns: each raises an error with its name, the rule, the value and a hint."""

from __future__ import annotations

import functools
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
from tests.support.refusals import GOOD, Refusal, check_wording, each, kind, value

COLUMN = "must be a list, a NumPy array or a data frame's column"
BINARY = "must be binary (0/1, -1/1 or False/True; or two other values and pos_label)"
FRAME = "must be a pandas, Polars or pyarrow frame, or a mapping of names to columns"
TABLE: dict[str, list[Any]] = {
    "label": GOOD["y_true"],
    "prediction": GOOD["y_pred"],
    "sex": GOOD["sensitive_features"],
}
TWICE = pd.DataFrame(np.ones((8, 2)), columns=["sex", "sex"])
SCORES = [0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6]
YES_NO = ["yes", "no"] * 4

framed_value = functools.partial(
    value, data=TABLE, y_true="label", y_pred="prediction", sensitive_features="sex"
)
framed_kind = functools.partial(kind, y_true="label", y_pred="prediction", sensitive_features="sex")
score_value = functools.partial(value, y_pred=None, y_score=SCORES)
score_kind = functools.partial(kind, y_pred=None)

LENGTHS = [
    value(
        f"{name} too short",
        f"{name} must be as long as y_true (8 rows); got 7. Pass columns of one length.",
        **{"y_pred": None if name == "y_score" else GOOD["y_pred"], name: column[:7]},
    )
    for name, column in {
        "y_pred": GOOD["y_pred"],
        "y_score": SCORES,
        "sensitive_features": GOOD["sensitive_features"],
        "control_features": list("xyxyxyxy"),
    }.items()
] + [
    framed_value(
        "a mapping's column too long",
        "y_pred (column 'prediction') must be as long as y_true (column 'label') (8 rows); got 9.",
        data={**TABLE, "prediction": [1] * 9},
    ),
    value(
        "an empty list of groups",
        "sensitive_features must be as long as y_true (8 rows); got 0.",
        sensitive_features=[],
    ),
]

KINDS = [
    kind(
        "y_true None",
        "y_true must be given for false_negative_rate; got None. Without labels, selection_rate",
        y_true=None,
    ),
    kind("scalar", f"y_true {COLUMN}; got 1.", y_true=1),
    kind("name", f"y_true {COLUMN}; got 'label'. Column names need data=", y_true="label"),
    kind("bytes", f"y_true {COLUMN}; got b'1100'.", y_true=b"1100"),
    kind("dict", f"y_true {COLUMN}; got {{'a': 1}}.", y_true={"a": 1}),
    kind("set", f"y_pred {COLUMN}; got {{0, 1}}.", y_pred={0, 1}),
    kind("generator", f"y_pred {COLUMN}; got <generator", y_pred=(i for i in [1, 0])),
    kind(
        "sparse",
        f"y_true {COLUMN}; got <Compressed Sparse Row sparse",
        y_true=sparse.csr_array(np.array([[1, 0]])),
    ),
    value("0-D", "y_true must be one-dimensional; got ().", y_true=np.array(1)),
    value(
        "2-D",
        "y_pred must be one-dimensional; got (8, 1). Use .ravel() to make it one column.",
        y_pred=np.ones((8, 1)),
    ),
    value(
        "predict_proba",
        "y_pred must be one-dimensional; got (8, 2). Take one column, such as [:, 1] for the",
        y_pred=np.ones((8, 2)),
    ),
    value("3-D", "sensitive_features must be one-d", sensitive_features=np.ones((8, 1, 1))),
    kind(
        "frame as a column",
        "y_true must be one column of values; got <class 'pandas.DataFrame'>. "
        "Pass one of its columns, or data=frame and the column's name.",
        y_true=pd.DataFrame(TABLE),
    ),
    kind(
        "lazy frame as a column",
        "sensitive_features must be one column of values; got <class 'polars.",
        sensitive_features=pl.LazyFrame(TABLE),
    ),
    kind(
        "masked",
        "y_true must be a column without a mask; got <class 'numpy.ma.MaskedArray'>. Use .filled()",
        y_true=np.ma.array(GOOD["y_true"]),
    ),
    kind("no groups", "sensitive_features must be given; got None.", sensitive_features=None),
    kind(
        "groups in lists",
        "sensitive_features must be made of hashable values; got \"unhashable type: 'list'\". "
        "Turn lists into tuples or strings first.",
        sensitive_features=[["a"]] * 8,
    ),
    kind(
        "groups in lists, with data",
        "sensitive_features must be made of hashable values; got",
        sensitive_features=[["a"]] * 8,
        data=TABLE,
    ),
    kind(
        "groups in records",
        "sensitive_features must be made of hashable values; got \"unhashable type: 'dict'\".",
        sensitive_features=pl.Series([{"sex": "a"}] * 4 + [{"sex": "b"}] * 4),
    ),
    value(
        "no columns in a dict",
        "sensitive_features must have at least one column; got none.",
        sensitive_features={},
    ),
    value(
        "no columns in an array",
        "control_features must have at least one column; got none.",
        control_features=np.ones((8, 0)),
    ),
]

FRAMES = [
    framed_kind("data path", f"data {FRAME}; got <class 'str'>.", data="table.csv"),
    framed_kind("data array", f"data {FRAME}; got <class 'numpy.nd", data=np.ones((8, 2))),
    framed_kind("data series", f"data {FRAME}; got <class 'pandas.Se", data=pd.Series([1, 2])),
    framed_value(
        "name misspelt",
        "y_true must be a column of data; got 'Label'. Did you mean 'label'?",
        y_true="Label",
    ),
    framed_value(
        "name of a score",
        "y_score must be a column of data ('label', 'prediction', 'sex'); got 'score'.",
        y_pred=None,
        y_score="score",
    ),
    framed_value(
        "one of several names misspelt",
        "control_features must be a column of data; got 'sexx'. Did you mean 'sex'?",
        control_features=["label", "sexx"],
    ),
    framed_value(
        "values where names are meant",
        "sensitive_features must be a column of data ('label', 'prediction', 'sex'); got 'a'. "
        "A list of strings means columns of data; pass values as an array.",
        sensitive_features=list("aaaabbbb"),
    ),
    framed_value("no columns", "y_true must be a column of data (); got 'label'.", data={}),
    framed_value(
        "names twice in data",
        "data must have different column names: Expected unique column names",
        data=TWICE,
    ),
    value(
        "names twice in a column",
        "y_true must have different column names:",
        y_true=TWICE,
    ),
    value(
        "names twice in features",
        "sensitive_features must have different column names:",
        sensitive_features=TWICE,
    ),
]

LABELS = [
    value(
        "no rows",
        "y_true must have at least one row; got none.",
        y_true=[],
        y_pred=[],
        sensitive_features=[],
    ),
    value(
        "all rows dropped",
        "y_true must have at least one row; got none. missing='drop' dropped all 8 rows.",
        y_true=[None] * 8,
        missing="drop",
    ),
    value(
        "three classes",
        f"y_true {BINARY}; got the values 0, 1, 2. Pass pos_label to compare one class",
        y_true=[2, 1, 0, 0, 1, 1, 0, 0],
    ),
    value(
        "two classes that are not 0 and 1",
        f"y_true {BINARY}; got the values 1, 2. Pass pos_label=2 if that is the positive one.",
        y_true=[1, 2] * 4,
    ),
    value(
        "text without pos_label",
        f"y_true {BINARY}; got the values 'no', 'yes'. Pass pos_label='yes' if that is",
        y_true=YES_NO,
    ),
    value(
        "predictions that are scores",
        f"y_pred {BINARY}; got the values 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9. "
        "Pass scores as y_score, with a threshold.",
        y_pred=SCORES,
    ),
    value(
        "two scores",
        f"y_pred {BINARY}; got the values 0.25, 0.75. Pass scores as y_score, with a threshold.",
        y_pred=[0.25, 0.75] * 4,
    ),
    value(
        "pos_label unknown",
        "pos_label must be one of the labels ('no', 'yes'); got 'Yes'. Did you mean 'yes'?",
        y_true=YES_NO,
        y_pred=YES_NO,
        pos_label="Yes",
    ),
    *(
        value(
            f"pos_label {name}",
            f"pos_label must be one of the labels (0, 1); got {shown}.",
            pos_label=pos_label,
        )
        for name, pos_label, shown in [
            ("list", [1], "[1]"),
            ("NA", pd.NA, "<NA>"),
            ("nan", np.nan, "nan"),
            ("array", np.array([0, 1]), "array([0, 1])"),
        ]
    ),
    value(
        "pos_label of another type",
        "pos_label must be one of the labels (0, 1); got '1'. Did you mean 1?",
        pos_label="1",
    ),
    value(
        "labels that do not match",
        "y_true and y_pred must be made of the same classes; got 'no', 'yes' and 'Yes', 'no'. Use "
        "the same values for labels and predictions.",
        y_true=YES_NO,
        y_pred=["Yes", "no"] * 4,
        pos_label="yes",
    ),
    value(
        "numbers and text",
        "y_true and y_pred must be made of the same classes; got 0, 1 and '0', '1'. Use",
        y_pred=["0", "1"] * 4,
        pos_label=1,
    ),
]

SCORED = [
    value(
        "predictions and scores",
        "Pass y_pred or y_score, not both.",
        y_score=SCORES,
    ),
    kind(
        "neither",
        "y_pred must be given for this metric; got None. Or pass y_score with threshold.",
        y_pred=None,
    ),
    *(
        score_kind(
            f"scores of {name}",
            f"y_score must be made of real numbers; got {shown}",
            y_score=scores,
        )
        for name, scores, shown in [
            ("text", ["0.1", "0.9"] * 4, "'0.1'. Labels are not scores."),
            ("text and None", [None, "a"] * 4, "'a'. Labels are not scores."),
            ("booleans", [True, False] * 4, "True. Labels are not scores."),
            ("NumPy booleans", np.array([True, False] * 4), "True. Labels are not scores."),
            ("some booleans", [0.5, True] * 4, "True. Labels are not scores."),
            ("complex numbers", np.array([1j, 0.5] * 4), "1j."),
            ("dates", np.array(["2020-01-01"] * 8, "M8[D]"), "np.datetime64('2020-01-01')."),
            ("lists", [[0.1], [0.9]] * 4, "[0.1]."),
            ("lists of all lengths", [[0.1], [0.9, 1]] * 4, "[0.1]."),
        ]
    ),
    score_value(
        "2-D scores", "y_score must be one-dimensional; got (8, 2).", y_score=np.ones((8, 2))
    ),
    score_value("inf", "y_score must be finite; got inf. Replace", y_score=[np.inf, 0.1] * 4),
    score_value("-inf", "y_score must be finite; got -inf. Replace", y_score=[-np.inf, 0.1] * 4),
    score_value("10**400", "y_score must be finite; got inf. Replace", y_score=[10**400, 0.1] * 4),
    score_value(
        "threshold too low",
        "threshold must be above the lowest score (0.1) and not above the highest (0.9); got 0.1. "
        "It would predict every row as positive.",
        threshold=0.1,
    ),
    score_value(
        "threshold too high",
        "threshold must be above the lowest score (0.1) and not above the highest (0.9); got 50. "
        "It would predict every row as negative.",
        threshold=50,
    ),
    score_value(
        "threshold too high for 16 bits",
        "threshold must be above the lowest score (0.0999756) and not above the highest "
        "(0.899902); got 1000000.0.",
        y_score=np.array(SCORES, np.float16),
        threshold=1e6,
    ),
    score_value(
        "percentages without a threshold",
        "threshold must be given if y_score is not between 0 and 1; got scores from 0.4 to 90. "
        "The default of 0.5 is for probabilities.",
        y_score=[0.4, 90, 20, 30, 40, 50, 60, 70],
    ),
    score_value(
        "log-odds without a threshold",
        "threshold must be given if y_score is not between 0 and 1; got scores from -2 to 0.9.",
        y_score=[-2, 0.9] * 4,
    ),
    value(
        "a threshold for predictions",
        "threshold cannot be used with y_pred: it only turns y_score into predictions.",
        threshold=0.5,
    ),
]

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
    value(
        f"{column} missing: {form}",
        f"{column} has 2 missing values (rows 2, 5 of 8). Pass missing='drop' to drop these rows; "
        "the result counts them.",
        **{"y_pred": None if column == "y_score" else GOOD["y_pred"], column: values},
    )
    for form, values in NOTHING.items()
    for column in ("y_true", "y_pred", "y_score", "sensitive_features", "control_features")
    if not (column == "y_score" and form == "pandas boolean")
] + [
    value(
        "NumPy NaT",
        "sensitive_features has 1 missing value (row 7 of 8). Pass missing='drop'",
        sensitive_features=np.array(
            ["2020-01-01", "2021-01-01"] * 3 + ["2020-01-01", "NaT"], "M8[D]"
        ),
    ),
    value(
        "in a tuple",
        "sensitive_features has 4 missing values (rows 0, 1, 2, 3 of 8). Pass missing='drop'",
        sensitive_features=[("a", np.nan)] * 4 + [("b", 1.0)] * 4,
    ),
    value(
        "many, in several columns",
        "y_true has 8 missing values (rows 0, 1, 2, 3, 4, … of 8); "
        "sensitive_features column 'sex' has 1 missing value (row 0 of 8). Pass",
        y_true=[None] * 8,
        sensitive_features=pd.DataFrame({"age": [1] * 8, "sex": [None, *"aaabbbb"]}),
    ),
    framed_value(
        "in a named column",
        "y_true (column 'label') has 1 missing value (row 0 of 8).",
        data=pl.DataFrame(TABLE).with_columns(label=pl.Series([None, 1, 0, 0, 1, 1, 0, 0])),
    ),
]

REFUSALS = [*LENGTHS, *KINDS, *FRAMES, *LABELS, *SCORED, *UNKNOWN]


@each(REFUSALS)
def test_bad_data_are_refused_in_a_full_sentence_that_names_the_argument(refusal: Refusal) -> None:
    check_wording(refusal)


def test_durations_are_no_predictions() -> None:
    durations = np.array([0, 1] * 60, "m8[s]")
    with pytest.raises(InputError, match="y_pred must be binary"):
        permutation_test([0, 1] * 60, durations, sensitive_features=["a", "b"] * 60, metric="fpr")
