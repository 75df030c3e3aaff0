"""What can be done with the result of an audit."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairperm import Audit, FairpermWarning, InputError, audit
from fairperm._utils.formatting import format_pvalue
from fairperm.auditing.tables import as_table
from fairperm.hypothesis_tests.results.audits import VERDICTS
from tests.support.audit_tables import (
    ARRAYS,
    COLUMNS,
    FEATURES,
    FRAMES,
    LIBRARY,
    METRICS,
    TABLE,
    audit_of_arrays,
    run,
)
from tests.support.audits import DATA_OF_TWO


@pytest.fixture
def expected() -> Audit:
    return audit_of_arrays()


@pytest.mark.parametrize("library", LIBRARY)
def test_frames_of_the_users_own_library(library: str, expected: Audit) -> None:
    make = FRAMES[library]
    by_data = run(**COLUMNS, data=make(TABLE), sensitive_features=["sex", "race"])
    assert isinstance(by_data.to_frame(), LIBRARY[library])
    assert isinstance(run(sensitive_features=make(FEATURES)).to_frame(), LIBRARY[library])
    assert isinstance(expected.to_frame(library), LIBRARY[library])


def test_columns_of_the_users_own_library() -> None:
    assert isinstance(run(sensitive_features=pl.Series(TABLE["sex"])).to_frame(), pl.DataFrame)


def test_frames_of_arrays_are_pandas(expected: Audit) -> None:
    assert isinstance(expected.to_frame(), pd.DataFrame)


@pytest.mark.parametrize("library", LIBRARY)
def test_frames_have_a_row_for_each_comparison(library: str, expected: Audit) -> None:
    frame = expected.to_frame(library)
    table = {"pandas": lambda: frame.to_dict("list"), "polars": lambda: frame.to_dict(as_series=0)}
    columns = table.get(library, lambda: frame.to_pydict())()
    assert columns["metric"] == [row.metric for row in expected]
    assert columns["first_group"] == [row.groups[0] for row in expected]
    assert columns["pvalue"] == [row.pvalue for row in expected]
    assert columns["verdict"] == [row.verdict for row in expected]
    assert columns["second_rows"] == [row.sizes[1] for row in expected]


@pytest.mark.parametrize("library", LIBRARY)
def test_frames_of_sums_of_weights(library: str) -> None:
    """Some are whole and some are not: one column all the same."""
    result = run(sample_weight=TABLE["weight"], metrics=["fpr", "selection_rate"])
    totals = [row.cells()["first_weight"] for row in result]
    assert {type(one) for one in totals} == {int, float}
    column = result.to_frame(library)["first_weight"]
    assert (column.to_pylist() if library == "pyarrow" else column.to_list()) == totals


@pytest.mark.parametrize("library", LIBRARY)
def test_frames_without_rows(library: str, expected: Audit) -> None:
    nothing = expected.where(verdict="equivalent")
    assert len(nothing) == 0
    assert list(nothing.to_frame("pandas").columns) == list(expected.to_frame("pandas").columns)
    assert nothing.to_frame(library).shape[0] == 0


def test_strict_json_of_every_verdict() -> None:
    """With an undefined metric, an infinite ratio and groups that are tuples."""
    y_true = np.tile([1, 0], 200)
    group = np.repeat([1, 2, 3, 4], 100)
    y_true[group == 2] = 0
    y_pred = np.where(group == 3, 0, np.tile([1, 1, 0, 0], 100))
    result = audit(
        y_true,
        y_pred,
        sensitive_features={"one": group, "two": np.repeat([0, 1], 200)},
        intersections=True,
        metrics=["tpr", "selection_rate", "equalized_odds"],
        margin=0.3,
        control_features=None,
        rng=1,
    )
    assert {row.verdict for row in result} >= {"disparity", "too small", "equivalent"}
    assert any(row.ratio == np.inf for row in result)
    assert any(row.result is None for row in result)
    plain = result.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert len(plain["rows"]) == len(result)
    for row, one in zip(result, plain["rows"], strict=True):
        assert one["verdict"] == row.verdict
        assert (one["test"] is None) == (row.result is None)
    assert {
        *("alpha", "adjust", "compare", "n_hypotheses", "min_group_size", "n_dropped", "seed"),
        *("settings", "notes", "groups", "omnibus", "rows"),
    } <= set(plain)
    repr(result)
    for library in LIBRARY:
        result.to_frame(library)


def test_iteration_and_length(expected: Audit) -> None:
    assert len(expected) == (1 + 3) * 3
    assert list(expected) == list(expected.rows)


def test_filters(expected: Audit) -> None:
    for row in expected.where(attribute="race", metric="roc_auc"):
        assert (row.attribute, row.metric) == ("race", "roc_auc")
    parts = [expected.where(verdict=verdict) for verdict in VERDICTS]
    assert sum(map(len, parts)) == len(expected)
    assert expected.where().rows == expected.rows
    some = expected.where(attribute="sex")
    assert some.n_hypotheses == expected.n_hypotheses
    assert isinstance(some, Audit)


def test_filters_one_after_another(expected: Audit) -> None:
    """No row left is an answer, not a mistake."""
    nothing = expected.where(verdict="equivalent")
    assert len(nothing.where(metric="roc_auc").where(attribute="race")) == 0
    assert "0 comparisons" in repr(nothing)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"verdict": "disparities"}, r"verdict must be one of 'disparity', .*mean 'disparity'\?$"),
        ({"metric": "roc_au"}, r"metric must be one of 'false_.*mean 'roc_auc'\?$"),
        ({"attribute": "Race"}, r"attribute must be one of 'sex', 'race'; .*mean 'race'\?$"),
    ],
)
def test_filters_by_what_is_not_there(given: dict[str, str], message: str, expected: Audit) -> None:
    with pytest.raises(InputError, match=message):
        expected.where(**given)


def test_frames_of_an_unknown_library(expected: Audit) -> None:
    with pytest.raises(InputError, match=r"^library must be one of 'pandas', .*mean 'polars'\?$"):
        expected.to_frame("polar")


def test_the_table_in_a_terminal(expected: Audit) -> None:
    text = repr(expected)
    assert "12 comparisons" in text
    for name in (*METRICS, "sex", "race", "Female", "Male"):
        assert name in text
    assert "fair" not in text.lower()


def test_one_of_a_kind_is_counted_in_the_singular() -> None:
    labels = [None, *ARRAYS["y_true"][1:]]
    text = repr(run(y_true=labels, sensitive_features=TABLE["sex"], metrics="fpr", missing="drop"))
    assert "\n1 comparison: " in text
    assert "for 1 hypothesis. " in text
    n = len(labels)
    assert text.endswith(f" {n - 1} of {n} rows used, 1 left out for missing values.")


def test_names_in_narrow_tables_are_cut_not_wrapped() -> None:
    """Beside a second line of the first group's name there would be the second group's value."""
    names = np.where(np.array(TABLE["sex"]) == "Female", "a" * 50, "b")
    result = run(sensitive_features=names, metrics="fpr")
    lines = print_in(100, result)
    (place,) = (i for i, line in enumerate(lines) if line.startswith("  aaaa"))
    first, second = result.rows[0].value_texts
    assert f"a…{'a' * 10}  {first} " in lines[place]
    assert lines[place + 1].split()[:2] == ["b", second]


def print_in(width: int, result: Audit) -> list[str]:
    return str(as_table(result, width)).splitlines()


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("options", [{}, {"margin": 0.1}])
def test_narrow_tables_keep_values_gap_interval_p_and_verdict(
    width: int, options: dict[str, Any]
) -> None:
    sex = np.repeat(["African-American", "Native American"], 120)
    result = small_audit({"race": sex}, metrics=["fpr", "equalized_odds"], **options)
    lines = print_in(width, result)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for row in result:
        assert row.verdict != "too small"  # it would be folded
        shown = [*row.names, *row.value_texts, row.gap_text, row.adjusted_interval_text]
        shown += [format_pvalue(row.adjusted_pvalue), row.verdict]
        for one in shown:
            assert one in text


@pytest.mark.parametrize("width", [80, 100, 200])
def test_every_table_has_the_ratio_rule_that_was_asked_for(width: int) -> None:
    race = np.repeat(["African-American", "Native American"], 120)
    result = small_audit({"race": race}, metrics="selection_rate", ratio=0.8)
    text = "\n".join(print_in(width, result))
    for one in result.rows[0].ratio_text.split(", "):
        assert one in text


def test_the_text_below_a_table_says_what_its_numbers_are() -> None:
    groups = np.repeat(["a", "b"], 120)
    result = small_audit(groups, metrics="equalized_odds")
    assert "Values of equalized_odds: TPR, FPR; its gap is the largest absolute one." in repr(
        result
    )
    assert "predicted positive" not in repr(result)
    y = np.arange(240) % 2
    options: dict[str, Any] = {"sensitive_features": groups, "metrics": "fpr", "rng": 1}
    options |= {"y_score": np.arange(240) * 7 % 240 / 240, "min_group_size": 1}
    assert "Scores of at least 0.5 are predicted positive." in repr(audit(y, **options))
    new: dict[str, Any] = {"y_score_new": np.arange(240) * 11 % 240 / 240, "threshold_new": 0.25}
    text = repr(audit(y, **options, **new))
    assert text.count("Scores of at least 0.5 (new model: 0.25) are predicted positive.") == 2


@pytest.mark.filterwarnings("ignore:Nothing was judged")
def test_the_text_below_a_table_says_why_groups_are_too_small() -> None:
    text = repr(small_audit(np.repeat(["a", "b"], 120), min_group_size=100))
    assert "\nLevel 0.05. Groups with fewer than" in text
    assert "\n  1 too small: 'a' has only 60 positives, 'b' has only 60 positives\n" in text


def test_comparisons_that_are_too_small_are_one_line_of_their_section() -> None:
    race = np.repeat(["a", "b", "c"], [110, 110, 20])
    result = small_audit(race, metrics="fpr", min_group_size=20)
    folded, whole = (str(as_table(result, 80, shows_small=one)) for one in (False, True))
    assert "\n  2 too small: 'c' has only 10 negatives\n" in folded + "\n"
    assert (folded.count("too small"), whole.count("too small")) == (1, 2)


def test_names_are_shown_as_they_are_and_cut_with_a_sign() -> None:
    names = np.where(np.array(TABLE["sex"]) == "Female", "it's a\\b", "x" * 100)
    names[0] = ""
    text = repr(run(sensitive_features=names, metrics="fpr"))
    assert "\n  it's a\\b − " in text
    assert f"{'x' * 44}…{'x' * 15}" in text
    assert "2 too small: metric must be defined in every group; got" in text


def test_metrics_are_found_by_their_aliases(expected: Audit) -> None:
    assert expected.where(metric="fpr").rows == expected.where(metric="false_positive_rate").rows


def test_a_name_in_the_audit_goes_before_an_alias() -> None:
    result = run(metrics={"fpr": "selection_rate", "false_positive_rate": "false_positive_rate"})
    assert {row.metric for row in result.where(metric="fpr")} == {"fpr"}


def test_results_are_frozen(expected: Audit) -> None:
    with pytest.raises(AttributeError, match="cannot assign"):
        expected.alpha = 0.1  # type: ignore[misc]


# Names and numbers as text.


def small_audit(groups: Any, **options: Any) -> Audit:
    y = np.arange(240) % 2
    options = {"metrics": "tpr", "min_group_size": 1, "n_resamples": 99, "rng": 1, **options}
    y_pred = np.where(np.arange(240) < 80, y, np.arange(240) % 3 == 0)
    return audit(y, y_pred, sensitive_features=groups, **options)


def test_groups_that_are_numbers_are_named_with_their_attribute() -> None:
    male = (np.arange(240) < 120).astype(int)
    result = small_audit({"male": male, "old": male == 0}, intersections=False)
    assert "\n  (male = 0) − (male = 1) " in repr(result)
    assert "\n  (old = False) − (old = True) " in repr(result)
    assert "group 0 − group 1 " in repr(small_audit(male))
    (row,) = small_audit({"male": male, "x": np.where(male, "a", "b")}, intersections=True).rows[2:]
    assert row.gap_name == "(male = 0 × b) − (male = 1 × a)"
    assert "<bdi>male = 0</bdi>" in result._repr_html_()


def test_a_row_is_one_readable_line() -> None:
    row = small_audit({"sex": np.repeat(["f", "m"], 120)}).rows[0]
    assert repr(row) == (
        "f's true positive rate is 45.0 points higher than m's (78.3 % v 33.3 %); "
        "chance does not explain it (p < 0.0001)."
    )


def test_the_gap_of_a_joint_metric_is_absolute_and_names_its_part() -> None:
    result = small_audit({"sex": np.repeat(["m", "f"], 120)}, metrics="equalized_odds")
    (row,) = result
    assert row.part == "true_positive_rate"
    assert row.difference is not None
    assert row.difference > 0
    text = repr(result)
    assert "0.450 (TPR)" in text
    assert not re.search("[+−]", text.replace("first − second group", ""))
    assert row.answer.startswith("f and m differ in equalized odds by up to 45.0 points (true pos")
    assert ">45.0 points (TPR)<" in result._repr_html_()


# From a file.


def test_audit_is_the_same_after_a_file(expected: Audit) -> None:
    plain = json.loads(json.dumps(expected.to_dict(), allow_nan=False))
    read = Audit.from_dict(plain)
    assert read.to_dict() == expected.to_dict()
    assert repr(read) == repr(expected)
    assert [row.groups for row in read] == [row.groups for row in expected]
    with pytest.raises(InputError, match="draws of this result were not written to the file"):
        read.plot_null(0)


@pytest.mark.parametrize("plain", [{}, {"rows": []}, [], None, {"rows": [{"test": {}}]}])
def test_values_that_are_no_audit_raise(plain: Any) -> None:
    with pytest.raises(InputError, match=r"plain must be what Audit\.to_dict\(\) returns; got "):
        Audit.from_dict(plain)


def test_settings_of_a_file_are_no_code(expected: Audit) -> None:
    """A report shows a call with the settings as arguments, which readers paste."""
    plain = expected.to_dict()
    plain["settings"] |= {"x=print(1), y": 1}
    with pytest.raises(InputError, match=r"plain must be what Audit\.to_dict\(\) returns"):
        Audit.from_dict(plain)


def test_metrics_are_a_flat_dict(expected: Audit) -> None:
    found = expected.to_metrics()
    assert all(isinstance(one, float) and np.isfinite(one) for one in found.values())
    assert all(re.fullmatch(r"[\w.\- :/]+", key) for key in found)  # what MLflow allows
    row = next(iter(expected.where(attribute="race", metric="roc_auc")))
    name = f"race/roc_auc/{row.groups[0]} vs {row.groups[1]}"
    assert found[f"{name}/difference"] == row.difference
    assert found[f"{name}/adjusted_pvalue"] == row.adjusted_pvalue
    assert sum(found[key] for key in found if key.startswith("verdicts/")) == len(expected)


def test_integers_that_pandas_reads_as_floats_are_integers_in_keys_and_notes() -> None:
    given = {"SEX": np.repeat([1.0, 2.0], [60, 12])}
    with pytest.warns(FairpermWarning, match="row of group 1 shows how roc_auc"):
        found = audit(
            np.tile([0, 1], 36),
            y_score=np.tile([0.2, 0.8], 36),
            sensitive_features=given,
            metrics="roc_auc",
            min_group_size=1,
            n_resamples=99,
            rng=1,
        )
    assert "SEX/roc_auc/1 vs 2/difference" in found.to_metrics()


def test_names_of_metrics_stay_apart() -> None:
    group = np.repeat(["é", "è", "a"], 60)
    given: dict[str, Any] = {"y_pred": np.tile([0, 1], 90), "sensitive_features": group}
    found = audit(**given, metrics="selection_rate").to_metrics()
    assert {key for key in found if key.endswith("/pvalue")} == {
        f"sensitive_features/selection_rate/{pair}/pvalue"
        for pair in ("a vs _", "a vs __", "_ vs _")
    }


def test_names_of_metrics_are_no_paths_and_not_too_long() -> None:
    given = {"..": DATA_OF_TWO["sensitive_features"], "a" * 300: [0, 1] * 200}
    found = audit(**DATA_OF_TWO | {"sensitive_features": given}, metrics="accuracy").to_metrics()
    assert {key.partition("/")[0] for key in found} == {"verdicts", "_", "a" * 200}
    assert max(map(len, found)) <= 250
