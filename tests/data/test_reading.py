"""Valid data in every form: neither the container nor the spelling changes a number."""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairperm import PermutationTestResult, permutation_test

RNG = np.random.default_rng(20200823)
N = 240
SCORE = RNG.integers(0, 11, N) / 10  # many are just 0.7
TABLE: dict[str, list[Any]] = {
    "label": RNG.integers(0, 2, N).tolist(),
    "prediction": (SCORE >= 0.7).astype(int).tolist(),
    "score": SCORE.tolist(),
    "sex": RNG.choice(["Female", "Male"], N).tolist(),
    "age": RNG.choice([25, 45], N).tolist(),
}
NAMES = {"y_true": "label", "y_pred": "prediction", "sensitive_features": "sex"}
COLUMNS = {argument: TABLE[name] for argument, name in NAMES.items()}
FEMALE = np.array(TABLE["sex"]) == "Female"
LABEL = np.array(TABLE["label"])

SERIES: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy object": lambda values: np.array(values, object),
    "pandas": pd.Series,
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "pandas index": pd.Index,
    "pandas array": pd.array,
    "pandas pyarrow": lambda values: pd.Series(
        pa.array(values), dtype=pd.ArrowDtype(pa.array(values).type)
    ),
    "polars": pl.Series,
    "pyarrow": lambda values: pa.chunked_array([values[:100], values[100:]]),
    "pyarrow array": pa.array,
}
FRAMES: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "mapping": OrderedDict,
    "numpy": lambda table: {name: np.array(values) for name, values in table.items()},
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def run(**changes: Any) -> PermutationTestResult:
    """Test by random draws, not by enumeration: any change of order would show."""
    options: dict[str, Any] = {
        "metric": "false_negative_rate",
        "scheme": "pooled",
        "variance": "wald",
        "n_resamples": 199,
        "rng": 7,
    }
    return permutation_test(**{**COLUMNS, **options, **changes})


def same(result: PermutationTestResult, expected: PermutationTestResult) -> bool:
    """Whether two results are equal to the last bit."""
    mine, theirs = result.null_distribution, expected.null_distribution
    return result.to_dict() == expected.to_dict() and mine.tobytes() == theirs.tobytes()


@pytest.fixture(scope="module")
def expected() -> PermutationTestResult:
    """The result of plain lists, whose counts are those of a plain loop."""
    result = run()
    assert not result.exact
    positive = [row for row in zip(*COLUMNS.values(), strict=True) if row[0] == 1]
    for sex in ("Female", "Male"):
        predicted = [prediction for _, prediction, group in positive if group == sex]
        assert result.counts[sex]["numerator"] == predicted.count(0)
        assert result.counts[sex]["denominator"] == len(predicted)
    return result


# What holds the columns


@pytest.fixture(params=SERIES.values(), ids=list(SERIES))
def column(request: pytest.FixtureRequest) -> Callable[[Sequence[Any]], Any]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=FRAMES.values(), ids=list(FRAMES))
def frame(request: pytest.FixtureRequest) -> Callable[[Mapping[str, Any]], Any]:
    return request.param  # type: ignore[no-any-return]


def test_columns_of_every_library(
    column: Callable[[Sequence[Any]], Any], expected: PermutationTestResult
) -> None:
    assert same(run(**{name: column(values) for name, values in COLUMNS.items()}), expected)


def test_scores_of_every_library_make_the_predictions(
    column: Callable[[Sequence[Any]], Any], expected: PermutationTestResult
) -> None:
    assert same(run(y_pred=None, y_score=column(TABLE["score"]), threshold=0.7), expected)


def test_names_in_frames_of_every_library(
    frame: Callable[[Mapping[str, Any]], Any], expected: PermutationTestResult
) -> None:
    assert same(run(data=frame(TABLE), **NAMES), expected)
    mixed = run(data=frame(TABLE), y_true="label", sensitive_features=np.array(TABLE["sex"]))
    assert same(mixed, expected)
    scored = {**NAMES, "y_pred": None, "y_score": "score", "threshold": 0.7}
    assert same(run(data=frame(TABLE), **scored), expected)


def test_several_columns_make_groups_and_strata_in_every_form(
    frame: Callable[[Mapping[str, Any]], Any],
) -> None:
    pairs = list(zip(TABLE["sex"], TABLE["age"], strict=True))
    groups = (("Male", 25), ("Female", 45))
    by_groups = run(sensitive_features=pairs, groups=groups)
    by_strata = run(control_features=pairs, sensitive_features=[i % 3 == 0 for i in range(N)])
    assert by_groups.groups == groups
    assert by_strata.n_strata == 4
    both = {name: TABLE[name] for name in ("sex", "age")}
    objects = np.array(pairs, object)
    by_columns = run(sensitive_features=both, groups=groups)
    assert "Female × age = 45" in by_columns.answer  # only columns tell what a number is
    assert "Female × 45" in by_groups.answer
    assert by_columns.to_dict() | {"answer": by_groups.answer} == by_groups.to_dict()
    for form, expected in ((frame(both), by_columns), (both, by_columns), (objects, by_groups)):
        assert same(run(sensitive_features=form, groups=groups), expected)
        strata = run(control_features=form, sensitive_features=[i % 3 == 0 for i in range(N)])
        assert same(strata, by_strata)
    for names in (["sex", "age"], ("sex", "age")):
        named = run(data=frame(TABLE), **{**NAMES, "sensitive_features": names}, groups=groups)
        assert same(named, by_columns)


def test_one_column_in_a_frame_is_that_column(expected: PermutationTestResult) -> None:
    assert same(run(sensitive_features=pd.DataFrame({"sex": TABLE["sex"]})), expected)
    assert same(run(sensitive_features=np.array(TABLE["sex"])[:, None]), expected)
    assert same(run(data=TABLE, sensitive_features=["sex"]), expected)


def test_index_order_of_columns_and_order_of_rows_do_not_matter(
    expected: PermutationTestResult,
) -> None:
    shuffled = pd.DataFrame(TABLE).sample(frac=1, random_state=1)
    shuffled = shuffled[sorted(shuffled.columns)]
    assert same(run(data=shuffled, **NAMES), expected)
    assert same(run(data=shuffled.set_index(np.zeros(N)), **NAMES), expected)
    columns = {name: shuffled[column] for name, column in NAMES.items()}
    columns["y_pred"] = columns["y_pred"].to_numpy()  # by position, never by index
    assert same(run(**columns), expected)


def test_a_frame_may_have_columns_whose_names_are_not_text(
    expected: PermutationTestResult,
) -> None:
    others: dict[Any, list[Any]] = {0: TABLE["age"], ("a", "b"): TABLE["age"]}
    assert same(run(data=pd.DataFrame({**others, **TABLE}), **NAMES), expected)


# What the labels are spelt like


def spelt(negative: object, positive: object) -> list[Any]:
    return [positive if one else negative for one in TABLE["label"]]


BINARY: dict[str, tuple[Any, object]] = {
    "bool": (LABEL == 1, None),
    "Python bool": (spelt(False, True), None),
    "int8": (LABEL.astype(np.int8), None),
    "uint64": (LABEL.astype(np.uint64), None),
    "big-endian": (LABEL.astype(">i4"), None),
    "-1 and 1": (2 * LABEL - 1, None),
    "int8 -1 and 1": ((2 * LABEL - 1).astype(np.int8), None),
    "float": (LABEL.astype(float), None),
    "float16": (LABEL.astype(np.float16), None),
    "big-endian float": ((2 * LABEL - 1).astype(">f8"), None),
    "longdouble": (LABEL.astype(np.longdouble), None),
    "Decimal": (spelt(Decimal(0), Decimal("1.0")), None),
    "NumPy scalars": (spelt(np.int8(0), np.float32(1)), None),
    "True and 1 and 1.0": ([True if one and i % 2 else one for i, one in enumerate(LABEL)], None),
    "1 and 2": (LABEL + 1, 2),
    "2 and 1": (2 - LABEL, 1),
    "wide": (LABEL * 10**12, 10**12),
    "int8 from -128 to 127": (np.where(LABEL, 127, -128).astype(np.int8), 127),
    "uint64 above 2**63": (LABEL.astype(np.uint64) + np.uint64(2**63), 2**63 + 1),
    "large floats": (LABEL * 1e6, 1e6),
    "text": (spelt("no", "yes"), "yes"),
    "NumPy text": (np.array(spelt("no", "yes")), "yes"),
    "NumPy pos_label": (np.array(spelt("no", "yes")), np.str_("yes")),
    "bytes": (np.array(spelt(b"no", b"yes")), b"yes"),
    "tuples": (spelt(("no",), ("yes",)), ("yes",)),
    "pandas Int64": (pd.Series(LABEL, dtype="Int64"), None),
    "pandas boolean": (pd.Series(LABEL, dtype="boolean"), None),
    "pandas Float32": (pd.Series(LABEL, dtype="Float32"), None),
    "pandas string": (pd.Series(spelt("no", "yes"), dtype="string"), "yes"),
    "pandas category": (pd.Series(spelt("no", "yes"), dtype="category"), "yes"),
    "pandas category of int": (pd.Series(LABEL, dtype="category"), None),
    "pandas categorical": (pd.Categorical(spelt("no", "yes"), ["yes", "maybe", "no"]), "yes"),
    "polars Categorical": (pl.Series(spelt("no", "yes"), dtype=pl.Categorical), "yes"),
    "polars Enum": (pl.Series(spelt("no", "yes"), dtype=pl.Enum(["yes", "no", "other"])), "yes"),
    "polars Boolean": (pl.Series(LABEL == 1), None),
    "polars UInt8": (pl.Series(LABEL, dtype=pl.UInt8), None),
    "polars Int128": (pl.Series(LABEL, dtype=pl.Int128), None),
    "polars Decimal": (pl.Series(spelt(Decimal(0), Decimal(1))), None),
    "pyarrow dictionary": (pa.array(spelt("no", "yes")).dictionary_encode(), "yes"),
    "pyarrow bool": (pa.chunked_array([LABEL == 1]), None),
    "pyarrow large string": (pa.array(spelt("no", "yes"), pa.large_string()), "yes"),
}


@pytest.mark.parametrize(("labels", "pos_label"), BINARY.values(), ids=BINARY)
def test_labels_and_predictions_in_every_spelling(
    labels: Any, pos_label: object, expected: PermutationTestResult
) -> None:
    scored = run(y_true=labels, y_pred=None, y_score=SCORE, threshold=0.7, pos_label=pos_label)
    assert same(scored, expected)
    perfect = run(y_true=labels, y_pred=labels, pos_label=pos_label, metric="accuracy")
    assert set(perfect.values.values()) == {1.0}
    assert same(perfect, run(y_pred=TABLE["label"], metric="accuracy"))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4", "longdouble"])
def test_scores_are_compared_in_their_own_precision(dtype: str) -> None:
    scores = SCORE.astype(dtype)
    for threshold in (0.1, 0.3, 0.7):
        by_hand = scores >= scores.dtype.type(threshold)
        assert by_hand.sum() == (threshold <= SCORE).sum()
        scored = run(y_pred=None, y_score=scores, threshold=threshold)
        assert same(scored, run(y_pred=by_hand))


def test_one_half_is_the_threshold_of_probabilities_which_rounding_may_carry_above_one() -> None:
    scores = SCORE.astype(np.float32)
    scores[scores.argmax()] = np.nextafter(np.float32(1), np.float32(2))
    assert same(run(y_pred=None, y_score=scores), run(y_pred=scores >= 0.5))


SCORES: dict[str, Any] = {
    "integers": (100 * SCORE).round().astype(int),
    "Python integers": (100 * SCORE).round().astype(int).tolist(),
    "big-endian": (100 * SCORE).round().astype(">u2"),
    "Decimal": [Decimal(round(100 * score)) for score in TABLE["score"]],
    "object": (100 * SCORE).round().astype(object),
}


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_scores_of_every_type(scores: Any, expected: PermutationTestResult) -> None:
    assert same(run(y_pred=None, y_score=scores, threshold=70), expected)


def test_a_metric_of_the_labels_alone_needs_no_prediction() -> None:
    with_prediction = run(metric="base_rate")
    assert same(run(metric="base_rate", y_pred=None), with_prediction)


# What the groups are called


DAYS = (dt.date(2020, 8, 23), dt.date(2020, 8, 27))
GROUPS: dict[str, tuple[Any, tuple[Hashable, Hashable]]] = {
    "bool": (~FEMALE, (False, True)),
    "int": (np.where(FEMALE, -5, 7), (-5, 7)),
    "int8": (np.where(FEMALE, -128, 127).astype(np.int8), (-128, 127)),
    "wide int": (np.where(FEMALE, -(2**63), 2**63 - 1), (-(2**63), 2**63 - 1)),
    "above 2**53": (np.where(FEMALE, 2**53, 2**53 + 1), (2**53, 2**53 + 1)),
    "above 2**63": (
        np.where(FEMALE, np.uint64(2**63), np.uint64(2**63 + 1)),
        (2**63, 2**63 + 1),
    ),
    "above 2**64": ([2**64 if one else 2**64 + 1 for one in FEMALE], (2**64, 2**64 + 1)),
    "float": (np.where(FEMALE, 0.25, 0.5), (0.25, 0.5)),
    "whole float": (np.where(FEMALE, 1.0, 2.0), (1.0, 2.0)),
    "infinite": (np.where(FEMALE, -np.inf, np.inf), (-np.inf, np.inf)),
    "Decimal": ([Decimal(9) if one else Decimal(10) for one in FEMALE], (Decimal(9), Decimal(10))),
    "tuple": ([("a", 1) if one else ("a", 2) for one in FEMALE], (("a", 1), ("a", 2))),
    "number and text": ([1 if one else "1" for one in FEMALE], (1, "1")),
    "bytes and text": ([b"a" if one else "a" for one in FEMALE], (b"a", "a")),
    "date": ([DAYS[0] if one else DAYS[1] for one in FEMALE], DAYS),
    "polars date": (pl.Series([DAYS[0] if one else DAYS[1] for one in FEMALE]), DAYS),
    "pyarrow date": (pa.array([DAYS[0] if one else DAYS[1] for one in FEMALE]), DAYS),
    "datetime64[ns]": (
        np.where(FEMALE, *np.array(DAYS, "M8[ns]")),
        (np.datetime64(DAYS[0], "ns"), np.datetime64(DAYS[1], "ns")),
    ),
    "timedelta64": (
        np.where(FEMALE, *np.array([1, 2], "m8[h]")),
        (np.timedelta64(1, "h"), np.timedelta64(2, "h")),
    ),
    "pandas time zone": (
        pd.Series(np.where(FEMALE, *np.array(DAYS, "M8[s]"))).dt.tz_localize("UTC"),
        tuple(pd.Timestamp(day, tz="UTC") for day in DAYS),
    ),
    "pandas category": (
        pd.Categorical(np.where(FEMALE, "b", "c"), ["d", "c", "b", "a"], ordered=True),
        ("b", "c"),
    ),
}


@pytest.mark.parametrize(("column", "groups"), GROUPS.values(), ids=GROUPS)
def test_groups_of_every_type(
    column: Any, groups: tuple[Any, Any], expected: PermutationTestResult
) -> None:
    result = run(sensitive_features=column)
    assert result.groups == groups
    assert [type(group) for group in result.groups] == [type(group) for group in groups]
    assert result.difference == expected.difference
    assert result.null_distribution.tobytes() == expected.null_distribution.tobytes()
    again = run(sensitive_features=column, groups=list(groups))
    assert same(again, result)


# What is not known

DROPPED = {"label": [3, 50], "prediction": [3, 4, 200], "sex": [7], "score": [3, 4, 200]}
MISSING: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "pandas nullable": lambda table: pd.DataFrame(table).convert_dtypes(),
    "pandas pyarrow": lambda table: pd.DataFrame(table).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "NA": lambda table: {name: replaced(values, pd.NA) for name, values in table.items()},
    "nan": lambda table: {name: replaced(values, float("nan")) for name, values in table.items()},
    "object": lambda table: {name: np.array(values, object) for name, values in table.items()},
}


def replaced(values: list[Any], missing: object) -> list[Any]:
    return [missing if value is None else value for value in values]


@pytest.mark.parametrize("form", MISSING.values(), ids=MISSING)
@pytest.mark.parametrize("prediction", ["y_pred", "y_score"])
def test_dropping_is_dropping_by_hand(
    form: Callable[[dict[str, list[Any]]], Any], prediction: str
) -> None:
    table = {
        name: [None if i in DROPPED.get(name, []) else value for i, value in enumerate(values)]
        for name, values in TABLE.items()
    }
    names = {**NAMES, "y_pred": None, prediction: NAMES.get(prediction, "score")}
    options: dict[str, Any] = {"threshold": 0.7 if prediction == "y_score" else None, **names}
    result = run(data=form(table), missing="drop", **options)
    kept = [i for i in range(N) if i not in {3, 4, 7, 50, 200}]
    by_hand = {name: [values[i] for i in kept] for name, values in TABLE.items()}
    expected = run(data=by_hand, **options)
    assert result.n_dropped == 5
    assert same(replace(result, n_dropped=0), expected)


def test_a_float32_score_keeps_its_precision_where_another_is_missing() -> None:
    score = pl.Series(SCORE, dtype=pl.Float32)
    score[0] = None
    result = run(y_pred=None, y_score=score, threshold=0.7, missing="drop")
    prediction = [None, *TABLE["prediction"][1:]]
    assert same(result, run(y_pred=prediction, missing="drop"))


def test_missing_integers_do_not_round_the_others() -> None:
    big = [2**53 + 1 if one else 2**53 + 2 for one in FEMALE]
    for form in (pa.array, pl.Series, lambda values: pd.array(values, dtype="Int64")):
        result = run(sensitive_features=form([*big[:-1], None]), missing="drop")
        assert result.groups == (2**53 + 1, 2**53 + 2)


def test_many_whole_numbers_as_labels_are_amounts() -> None:
    with pytest.raises(ValueError, match=r"For numbers name metrics such as 'mean_error'"):
        permutation_test(
            np.arange(40), [0, 1] * 20, metric="fpr", sensitive_features=["a", "b"] * 20
        )
