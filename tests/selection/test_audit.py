"""Audits of selection: what they count, say and write."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairperm
from fairperm import selection_audit
from fairperm.hypothesis_tests.results.answers.selection import answer_impact

HIRED = [1] * 48 + [0] * 32 + [1] * 12 + [0] * 28
SEX = ["men"] * 80 + ["women"] * 40


def audit(**options: Any) -> fairperm.SelectionAudit:
    return selection_audit(**{"selected": HIRED, "sensitive_features": {"sex": SEX}} | options)


def test_two_groups_by_hand() -> None:
    men, women = audit().rows
    assert (men.group, men.applicants, men.selected, men.rate) == ("men", 80, 48, 0.6)
    assert (women.impact_ratio, women.shortfall) == pytest.approx((0.5, 12))
    assert women.standard_deviations == pytest.approx(-(9.6**0.5))  # 0.3 / sqrt(0.25 (1/80 + 1/40))
    exact = fairperm.permutation_test(y_pred=HIRED, sensitive_features=SEX, metric="selection_rate")
    assert women.pvalue == pytest.approx(exact.pvalue, rel=1e-9)
    assert (men.pvalue, men.impact_ratio, men.shortfall) == (1.0, 1.0, 0.0)


def test_attributes_and_their_intersections() -> None:
    race = ["x", "y"] * 60
    found = audit(sensitive_features={"sex": SEX, "race": race})
    assert found.attributes == ("sex", "race", "sex × race")
    assert [row.applicants for row in found.rows] == [80, 40, 60, 60, 40, 40, 20, 20]
    assert found.rows[-1].name == "women × y"
    assert found.rows[:2] == audit().rows
    alone = audit(sensitive_features={"sex": SEX, "race": race}, intersections=False)
    assert alone.rows == found.rows[:4]


def test_unknown_groups_are_counted_and_compared_with_nobody() -> None:
    extra = [None, " ", "Unknown", "missing", "Decline to self-identify", "not-disclosed"]
    extra += ["I prefer not to say", "I don't wish to answer"]
    people: Any = {"selected": HIRED + [1] * 8, "sensitive_features": {"sex": SEX + extra}}
    found = audit(**people)
    assert found.rows == audit().rows
    assert (found.unknown[0].applicants, found.applicants, found.selected) == (8, 128, 68)
    (note,) = found.notes
    assert note.startswith("sex: 8 applicants have no known group (")
    assert "'not-disclosed', missing), and count in no rate" in note
    named = audit(**people, unknown=["DECLINE to self identify"])
    assert [row.applicants for row in named if row.impact_ratio is None] == [1, 1, 1, 1]
    assert named.unknown[0].applicants == 4
    known = ["Not Hispanic or Latino", "Declined", "Other"]
    assert len(audit(sensitive_features={"sex": SEX[:-3] + known})) == 5


def test_small_groups_are_listed_and_left_out() -> None:
    found = audit(selected=[*HIRED, 1], sensitive_features={"sex": [*SEX, "other"]})
    men, other, women = found.rows
    assert (men, women) == audit().rows
    assert (other.applicants, other.rate, other.impact_ratio, other.evidence) == (1, 1, None, None)
    assert found.notes == (
        "sex: 1 group has less than 2 % of the applicants, and no impact ratio.",
    )
    everybody = audit(
        selected=[*HIRED, 1], sensitive_features={"sex": [*SEX, "other"]}, minimum_share=0
    )
    assert [row.impact_ratio for row in everybody.rows] == pytest.approx([0.6, 1, 0.3])


def test_intersections_too_small_to_compare_are_listed() -> None:
    found = audit(
        selected=[0, 0, 1, 1] * 2,
        sensitive_features={"a": list("xxxxyyyy"), "b": list("ppqqppqq")},
        minimum_share=0.3,
    )
    assert [row.impact_ratio for row in found.rows[4:]] == [None] * 4
    assert found.notes == (
        "a × b: no impact ratios, because fewer than two groups can be compared.",
    )
    assert "a × b" not in found.answer


@pytest.mark.parametrize(
    ("scores", "median"), [([1, 2, 3, 4], 2.5), ([1, 2, 2, 9], 2.0), ([5, 1, 3, 3, 8], 3.0)]
)
def test_scores_above_the_median_count_as_selected(scores: list[float], median: float) -> None:
    groups = ["a", "b"] * 2 + ["a"] * (len(scores) - 4)
    found = selection_audit(score=scores, sensitive_features=groups)
    assert found.threshold == median
    same = selection_audit(np.array(scores) > median, sensitive_features=groups)
    plain = [replace(row, standardized_difference=None) for row in found.rows]
    assert plain == [*same.rows]
    assert (
        found.rows
        == selection_audit(score=scores, threshold=median, sensitive_features=groups).rows
    )


def test_standardized_differences_of_scores() -> None:
    scores, groups = np.array([1.0, 2, 3, 6, 8, 10]), np.array(list("aaabbb"))
    a, b = selection_audit(score=scores, sensitive_features=groups).rows
    assert a.standardized_difference == pytest.approx((2 - 8) / scores.std())
    assert b.standardized_difference == 0
    large = selection_audit(score=scores * 1e300, sensitive_features=groups).rows[0]
    assert large.standardized_difference == pytest.approx(a.standardized_difference)
    assert audit().rows[1].standardized_difference is None


def test_large_tables_of_scores_have_the_same_median() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.integers(0, 9, 5000), rng.integers(0, 2, 5000)
    found = selection_audit(score=scores, sensitive_features=groups)
    assert found.threshold == np.median(scores)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, dict])
def test_frames_of_any_library(make: Any) -> None:
    data = make({"hired": HIRED, "sex": SEX})
    found = selection_audit("hired", sensitive_features="sex", data=data)
    assert found.rows == audit().rows
    frame = found.to_frame("pyarrow").to_pylist()
    assert [row["impact_ratio"] for row in frame] == pytest.approx([1, 0.5])
    assert (frame[1]["interval_low"], frame[1]["interval_high"]) == found.rows[1].interval


def test_rows_in_another_order_give_the_same_audit() -> None:
    order = np.random.default_rng(2).permutation(len(HIRED))
    turned = selection_audit(
        np.array(HIRED)[order], sensitive_features={"sex": np.array(SEX)[order]}
    )
    assert turned.to_dict() == audit().to_dict()


def test_texts() -> None:
    found = audit(sensitive_features={"<b>": ["<i>" if one == "men" else "w" for one in SEX]})
    page = found._repr_html_()
    assert escape("<i>") in page
    assert "<i>" not in page
    assert escape(found.answer) in page
    assert repr(found).count("undecided") == 1
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert next(iter(plain)) == "answer"
    assert plain["rows"][1]["interval"] == list(found.rows[1].interval or ())


@pytest.mark.parametrize(
    ("rates", "interval", "evidence", "said"),
    [
        ((0.3, 0.6), (0.3, 0.7), {"below": 1, "at least": 1}, "0.300 to 0.700, lies below 0.8."),
        ((0.3, 0.6), (0.3, 0.79996), {"below": 1, "at least": 1}, "to 0.79996, lies below 0.8."),
        ((0.5, 0.5), (0.9, 1.0), {"at least": 2}, "the same selection rate (50.0 %)"),
        ((0.5, 0.6), (0.8, 1.0), {"at least": 2}, "0.800 to 1.000, does not go below 0.8."),
        (
            (0.3, 0.6),
            (0.3, 0.9),
            {"below": 1, "at least": 2, "undecided": 1},
            "is below 0.8 (about 7,800 applicants with these rates would decide). Of its "
            "4 groups, 1 is shown to be below 0.8, 2 are shown to be at least 0.8 and 1 is "
            "undecided.",
        ),
    ],
)
def test_answers_say_what_the_interval_says(
    rates: tuple[float, float], interval: tuple[float, float], evidence: Any, said: str
) -> None:
    assert said in answer_impact("sex", ("women", "men"), rates, interval, evidence, 0.8, 7762.5)


COUNTS = {"sex": ["men", "men", "women", "women"], "hired": [1, 0, 1, 0], "n": [48, 32, 12, 28]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, dict])
def test_counts_are_copies_of_rows(make: Any) -> None:
    found = selection_audit("hired", sensitive_features="sex", count="n", data=make(COUNTS))
    assert found.to_dict() == audit().to_dict()


def test_counts_of_duckdb() -> None:
    table = pa.table(COUNTS)
    relation = duckdb.from_arrow(table)
    found = selection_audit("hired", sensitive_features="sex", count="n", data=relation)
    assert found.to_dict() == audit().to_dict()


def test_random_tables_of_counts_equal_their_expanded_rows() -> None:
    """Rows may be repeated, stand for nobody, or have missing groups; scores likewise."""
    rng = np.random.default_rng(5)
    for i in range(60):
        n = int(rng.integers(8, 40))
        counts = rng.integers(0, 30, n)
        table = {
            "sex": rng.choice(np.array(["a", "b", "", "Unknown"], object), n),
            "outcome": np.round(rng.normal(size=n), 1) if i % 2 else rng.integers(0, 2, n),
        }
        copies = {name: np.repeat(column, counts) for name, column in table.items()}
        role = "score" if i % 2 else "selected"
        options: dict[str, Any] = {role: "outcome", "sensitive_features": "sex"}
        assert counted_or_refused(table | {"n": counts}, options | {"count": "n"}) == (
            counted_or_refused(copies, options)
        )


def counted_or_refused(data: Any, options: Any) -> object:
    try:
        return selection_audit(**options, data=data).to_dict()
    except fairperm.InputError as error:
        return str(error)
