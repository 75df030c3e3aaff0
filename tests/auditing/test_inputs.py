"""Audits of data in every form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairperm import (
    Audit,
    InputError,
    InputTypeError,
    audit,
)
from fairperm.report.rerun import write_call
from tests.support.audit_tables import (
    ARRAYS,
    COLUMNS,
    FEATURES,
    FRAMES,
    METRICS,
    TABLE,
    N,
    audit_of_arrays,
    numbers,
    run,
)


@pytest.fixture
def expected() -> Audit:
    return audit_of_arrays()


# Sensitive features


@pytest.fixture(params=FRAMES.values(), ids=list(FRAMES))
def frame(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return request.param  # type: ignore[no-any-return]


def test_frames_of_features(frame: Callable[[Any], Any], expected: Audit) -> None:
    assert run(sensitive_features=frame(FEATURES)).to_dict() == expected.to_dict()


@pytest.mark.parametrize("kind", [list, tuple])
def test_names_in_frames(
    frame: Callable[[Any], Any], kind: Callable[[Any], Any], expected: Audit
) -> None:
    result = run(**COLUMNS, data=frame(TABLE), sensitive_features=kind(["sex", "race"]))
    assert {name: result.settings[name] for name in COLUMNS} == COLUMNS
    unnamed = {**result.settings, **dict.fromkeys(COLUMNS)}
    assert {**result.to_dict(), "settings": unnamed} == expected.to_dict()


def test_names_of_columns_by_other_names(frame: Callable[[Any], Any]) -> None:
    """A mapping to names of columns, some of which are called as the mapping's keys are."""
    options = {**COLUMNS, "data": frame(TABLE), "intersections": True}
    result = run(**options, sensitive_features={"race": "sex", "Race": "race"})
    assert result.settings["attributes"] == ["race", "Race", "race × Race"]
    straight = run(**options, sensitive_features=["sex", "race"])
    assert numbers(result) == numbers(straight)


def test_names_and_values_of_columns_side_by_side(expected: Audit) -> None:
    features = {"sex": "sex", "race": TABLE["race"]}
    result = run(**COLUMNS, data=TABLE, sensitive_features=features, intersections=True)
    of_all = dict.fromkeys(
        ("adjusted_pvalue", "adjusted_interval", "detectable_gap", "reason", "answer")
    )
    assert result.rows[0].to_dict() | of_all == expected.rows[0].to_dict() | of_all
    assert len(result.where(attribute="sex × race")) == 15 * len(METRICS)


def test_columns_of_an_array(expected: Audit) -> None:
    result = run(sensitive_features=np.column_stack(list(FEATURES.values())))
    assert result.settings["attributes"] == ["column 0", "column 1"]
    assert numbers(result) == numbers(expected)


@pytest.mark.parametrize(
    ("series", "name"),
    [
        (pd.Series(TABLE["race"], name="race"), "race"),
        (pl.Series("race", TABLE["race"]), "race"),
        (pd.Series(TABLE["race"], name=7), "sensitive_features"),
        (pd.Categorical(TABLE["race"]), "sensitive_features"),
        (TABLE["race"].tolist(), "sensitive_features"),
        (pa.array(TABLE["race"]), "sensitive_features"),
    ],
    ids=["pandas", "polars", "number", "categorical", "list", "pyarrow"],
)
def test_one_column_by_its_name(series: Any, name: str) -> None:
    result = run(sensitive_features=series)
    assert result.settings["attributes"] == [name]
    assert {row.attribute for row in result} == {name}
    assert numbers(result) == numbers(run(sensitive_features=TABLE["race"]))


def test_intersections_are_groups_of_tuples() -> None:
    result = run(intersections=True).where(attribute="sex × race", metric="roc_auc")
    pairs = sorted(set(zip(TABLE["sex"].tolist(), TABLE["race"].tolist(), strict=True)))
    assert {group for row in result for group in row.groups} == set(pairs)
    assert len(result) == 15


def test_intersections_of_numbers_and_words() -> None:
    result = run(sensitive_features={"age": TABLE["age"], "sex": TABLE["sex"]}, intersections=True)
    assert result.where(attribute="age × sex").rows[0].groups == ((25, "Female"), (25, "Male"))


def test_a_reference_of_every_attribute() -> None:
    reference = {"sex": "Male", "race": "b", "sex × race": ("Male", "a")}
    result = run(compare="reference", reference=reference, intersections=True)
    for row in result:
        assert row.groups[1] == reference[row.attribute]
    some = run(compare="reference", reference={"race": "c"})
    assert {row.groups[1] for row in some.where(attribute="race")} == {"c"}


# Order and kind of data change nothing


def test_lazy_frames() -> None:
    """Scores of few values: what is counted elsewhere is what would be read."""
    result = run(**COLUMNS, data=pl.LazyFrame(TABLE), sensitive_features=["sex", "race"])
    straight = run(**COLUMNS, data=pl.DataFrame(TABLE), sensitive_features=["sex", "race"])
    assert [row.pvalue for row in result] == [row.pvalue for row in straight]
    assert isinstance(result.to_frame(), pl.DataFrame)


@pytest.mark.parametrize(
    "metrics",
    [
        tuple(METRICS),
        np.array(METRICS),
        pd.Series(METRICS),
        dict(zip(METRICS, METRICS, strict=True)),
        dict.fromkeys(METRICS).keys(),
        (name for name in METRICS),
        ["fpr", "f1", "AUC"],
    ],
    ids=["tuple", "array", "series", "mapping", "keys", "generator", "aliases"],
)
def test_metrics_in_every_form(metrics: Any, expected: Audit) -> None:
    assert run(metrics=metrics).to_dict() == expected.to_dict()


def test_a_set_of_metrics_comes_in_one_order() -> None:
    result = run(metrics=set(METRICS))
    assert result.settings["metrics"] == sorted(METRICS)


# Predictions and scores


@pytest.mark.parametrize("threshold", [4, 6.5, np.int64(8)])
def test_a_threshold_makes_the_predictions(threshold: Any) -> None:
    cut = run(y_pred=None, threshold=threshold)
    made = run(y_pred=(TABLE["score"] >= threshold).astype(int))
    assert [row.to_dict() for row in cut] == [row.to_dict() for row in made]
    assert cut.settings["threshold"] == threshold
    assert isinstance(cut.to_dict()["settings"]["threshold"], (int, float))
    assert made.settings["threshold"] is None


def test_a_missing_score_is_told_once() -> None:
    """Of the ranks, and of the predictions that are made of it."""
    data = {"points": [None, *TABLE["score"][1:]]}
    said = r"^y_score \(column 'points'\) has 1 missing value \(row 0 of 400\)\. Pass"
    with pytest.raises(InputError, match=said):
        run(y_pred=None, y_score="points", data=data, threshold=5, metrics=["fpr", "roc_auc"])


def test_ranks_of_scores_need_no_threshold() -> None:
    assert run(y_pred=None, metrics="roc_auc").settings["threshold"] is None


def test_words_with_a_positive_label(expected: Audit) -> None:
    words = {name: np.array(["no", "yes"])[ARRAYS[name]] for name in ("y_true", "y_pred")}
    result = run(**words, pos_label="yes")
    assert [row.to_dict() for row in result] == [row.to_dict() for row in expected]
    assert result.settings["pos_label"] == "yes"
    assert result.groups == expected.groups


def test_the_other_positive_label() -> None:
    straight = run(metrics=["tpr"], y_score=None)
    other = run(metrics=["tnr"], y_score=None, pos_label=0)
    assert [row.values for row in straight] == [row.values for row in other]


# Strata, clusters, weights, missing values


def test_missing_values_are_counted() -> None:
    label, race = TABLE["label"].astype(float), TABLE["race"].astype(object)
    label[:7] = np.nan
    race[5:10] = None
    with pytest.raises(
        InputError, match=r"y_true has 7 missing .* of 400\); sensitive_features has 5"
    ):
        run(y_true=label, sensitive_features=race)
    result = run(y_true=label, sensitive_features=race, missing="drop")
    rest = run(
        **{name: column[10:] for name, column in ARRAYS.items()},
        sensitive_features=TABLE["race"][10:],
    )
    assert result.n_dropped == 10
    assert [row.values for row in result] == [row.values for row in rest]
    assert [row.pvalue for row in result] == [row.pvalue for row in rest]
    assert result.groups == rest.groups
    assert "390 of 400 rows used, 10 left out for missing values." in repr(result)


def test_a_missing_feature_costs_no_row_of_another() -> None:
    race = TABLE["race"].astype(object)
    race[:20] = None
    result = run(sensitive_features={"sex": TABLE["sex"], "race": race}, missing="drop")
    rows = {one.attribute: 0 for one in result.groups}
    for one in result.groups:
        rows[one.attribute] += one.rows
    assert rows == {"sex": N, "race": N - 20}
    assert result.n_dropped == 20
    said = (
        "Sex: 400 of 400 rows used, 0 left out; race: 380 of 400 rows used, 20 left out, "
        "all for missing values."
    )
    assert said in repr(result)


def test_one_reference_for_all_metrics_though_values_are_missing() -> None:
    score = TABLE["score"].astype(float)
    score[np.flatnonzero(TABLE["race"] == "a")[:150]] = np.nan
    result = run(
        sensitive_features=TABLE["race"],
        y_score=score,
        y_pred=TABLE["prediction"],
        metrics=["mse", "roc_auc"],
        compare="reference",
        missing="drop",
    )
    assert result.where(metric="roc_auc").rows[0].sizes[1] < 100
    assert {row.groups[1] for row in result} == {"a"}


def test_positives_are_counted_if_any_metric_knows_them(expected: Audit) -> None:
    assert run(metrics=["mse", "fpr"]).groups == expected.groups
    assert {one.positives for one in run(metrics="mse").groups} == {None}


def test_settings_are_kept_without_the_data() -> None:
    result = run(control_features=TABLE["age"], stratum_weights={25: 1, 45: 2}, cluster=None)
    assert result.settings["control_features"] == "400 values (ndarray)"
    assert result.settings["stratum_weights"] == {"25": 1, "45": 2}
    assert result.settings["cluster"] is None
    assert result.settings["n_resamples"] == 99


# Without labels, without metrics


def test_decisions_need_no_labels() -> None:
    labelled, alone = (
        run(metrics="selection_rate", y_score=None, **given) for given in ({}, {"y_true": None})
    )
    assert [row.to_dict() for row in alone] == [row.to_dict() for row in labelled]
    assert {one.positives for one in alone.groups} == {None}
    with pytest.raises(InputTypeError, match=r"^y_true must be given for true_positive_rate; got"):
        run(metrics=["selection_rate", "tpr"], y_score=None, y_true=None)


def test_default_metrics() -> None:
    names = ["selection_rate", "false_positive_rate", "false_negative_rate"]
    assert run(metrics=None, y_score=None).settings["metrics"] == names
    assert run(metrics=None, y_score=None, y_true=None).settings["metrics"] == names[:1]


# People without a recorded group


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_missing_groups_are_a_group_on_request(nothing: object) -> None:
    lacks = np.arange(N) % 5 == 0
    sex = np.where(lacks, "unknown", TABLE["sex"]).astype(object)
    named = run(sensitive_features={"sex": sex, "race": TABLE["race"]})
    unnamed = sex.copy()
    unnamed[lacks] = nothing
    given = {"sensitive_features": {"sex": unnamed, "race": TABLE["race"]}}
    found = run(**given, missing="group")
    assert {row.groups for row in found.where(attribute="sex")} == {
        ("Female", "Male"),
        *(("Female", "missing"), ("Male", "missing")),
    }
    assert [row.pvalue for row in found] == [row.pvalue for row in named]
    with pytest.raises(InputError, match=r"missing='group' makes a group of rows without sensi"):
        run(**given)


def test_a_group_called_missing_stays_apart() -> None:
    sex = [None, "missing", "m", "f"] * 100
    found = run(sensitive_features=sex, missing="group", metrics="selection_rate", y_score=None)
    assert {one.group for one in found.groups} == {"f", "m", "missing", "missing*"}


def test_other_missing_values_are_no_group() -> None:
    label = [None, *TABLE["label"][1:]]
    with pytest.raises(InputError, match=r"^y_true has 1 missing value \(row 0 of 400\)"):
        run(y_true=label, missing="group")


def test_lazy_clusters_have_no_missing_group() -> None:
    given = {**COLUMNS, "y_score": None, "metrics": "selection_rate", "sensitive_features": "sex"}
    frame = pl.DataFrame(TABLE).lazy()
    with pytest.raises(InputError, match=r"^missing='group' cannot be used with cluster in a lazy"):
        run(**given, data=frame, cluster="age", missing="group")
    holes = pl.DataFrame(TABLE).with_columns(sex=pl.when(pl.col("age") == 45).then("sex"))
    read = run(**given, data=holes, missing="group")
    assert numbers(run(**given, data=holes.lazy(), missing="group")) == numbers(read)


# Classes, combinations


def test_one_class_is_compared_with_all_others() -> None:
    classes = np.array(["a", "b", "c"])
    label, said = classes[np.random.default_rng(4).integers(0, 3, (2, N))]
    given = {"y_score": None, "metrics": ["tpr", "fpr"]}
    for some in (said, np.where(said == "c", "a", said)):  # some class may never be predicted
        found = run(y_true=label, y_pred=some, pos_label="b", **given)
        expected = run(y_true=label == "b", y_pred=some == "b", **given)
        assert [row.pvalue for row in found] == [row.pvalue for row in expected]
        assert found.notes[-1] == "Of 3 classes, 'b' is positive; 'a', 'c' are negative."
    with pytest.raises(InputError, match=r"^y_true and y_pred must be made of the same classes"):
        run(y_true=label, y_pred=np.where(said == "c", "d", said), pos_label="b", **given)


def test_combinations_of_some_columns() -> None:
    given = {**COLUMNS, "data": pd.DataFrame(TABLE)}
    some = run(**given, sensitive_features=["sex", ("sex", "race")])
    every = run(**given, sensitive_features=["sex", "race"], intersections=True)
    assert some.settings["attributes"] == ["sex", "sex × race"]
    assert "sensitive_features=['sex', ('sex', 'race')]," in write_call(some)
    for attribute in some.settings["attributes"]:
        mine, other = (one.where(attribute=attribute) for one in (some, every))
        assert [(row.groups, row.pvalue) for row in mine] == [
            (row.groups, row.pvalue) for row in other
        ]
    with pytest.raises(InputError, match=r"must be names of single columns for intersections"):
        run(**given, sensitive_features=["sex", ("sex", "race")], intersections=True)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize(
    ("label", "prediction", "metrics"),
    [
        pytest.param(None, [0, 1], ["selection_rate"], id="decisions"),
        pytest.param(None, [1, 2, 3, 4, 5], ["mean_prediction"], id="ratings"),
        pytest.param(None, [0.5, 12.25], ["mean_prediction"], id="amounts"),
        pytest.param(
            [0.5, 1.5, 7.25],
            [0.5, 2.5, 4.0, 8.0],
            ["mean_error", "mean_absolute_error", "root_mean_squared_error"],
            id="regression",
        ),
    ],
)
def test_metrics_that_nobody_names_fit_the_data(
    label: list[float] | None, prediction: list[float], metrics: list[str]
) -> None:
    def column(values: list[float]) -> Any:
        return np.resize(values, 240)

    found = audit(
        None if label is None else column(label),
        column(prediction),
        sensitive_features=np.repeat(["a", "b"], 120),
        n_resamples=99,
        rng=1,
    )
    assert found.settings["metrics"] == metrics
