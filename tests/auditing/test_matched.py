"""Audits inside matched sets."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fairperm import Audit, InputError, audit, omnibus_test, permutation_test
from tests.support.audits import quietly, twice_accuracy
from tests.support.commands import run
from tests.support.report_pages import Page

pytestmark = pytest.mark.filterwarnings("ignore:.* have notes", "ignore:.* left out; ")


@cache
def answers() -> dict[str, Any]:
    """Return decisions on 120 applications with three names; some lack a name."""
    rng = np.random.default_rng(4)
    application, name = np.arange(120).repeat(6), np.tile(np.repeat(["a", "b", "c"], 2), 120)
    kept = (application % 10 > 0) | (name != "c")
    level = rng.normal(0, 1, 120)[application] - 0.8 * (name == "a")
    score = level + rng.normal(0, 0.5, 720)
    rows = {"application": application, "name": name, "score": score, "hired": score > 0}
    return {key: one[kept] for key, one in rows.items()}


GIVEN: dict[str, Any] = {"sensitive_features": "name", "matched": "application", "rng": 2}


def run_audit(**more: Any) -> Audit:
    given = {"y_pred": "hired", "y_score": "score", "data": answers(), "n_resamples": 199}
    return quietly(**{**GIVEN, **given, "metrics": ["selection_rate", "mean_score"], **more})


def test_each_row_is_the_test_alone_and_all_groups_the_omnibus_test() -> None:
    found = run_audit(margin={"selection_rate": 0.1}, ratio=0.8)
    outputs: dict[str, Any] = {
        "selection_rate": {"y_pred": "hired"},
        "mean_score": {"y_score": "score"},
    }
    for row in found:
        alone = permutation_test(
            **GIVEN, **outputs[row.metric], data=answers(), metric=row.metric, groups=row.groups,
            n_resamples=199,
        )  # fmt: skip
        assert row.result is not None
        assert row.result.to_dict() == alone.to_dict()
        assert row.adjusted_interval is not None
        low, high = row.adjusted_interval
        assert (row.adjusted_pvalue or 0) <= 0.05 or low <= 0 <= high
    assert {row.verdict for row in found if "a" in row.groups} == {"disparity"}
    for one in found.omnibus:
        alone_of_all = omnibus_test(
            **GIVEN, **outputs[one.metric], data=answers(), metric=one.metric, n_resamples=199
        )
        assert one.result is not None
        assert one.result.to_dict() == alone_of_all.to_dict()
        assert one.result.counts["a"]["sets"] == 108


def test_groups_of_few_sets_are_not_judged() -> None:
    found = run_audit(min_group_size=110, metrics="selection_rate")
    reasons = {row.groups: row.reason for row in found if row.verdict == "too small"}
    assert [*reasons] == [("a", "c"), ("b", "c")]
    assert (
        reasons["a", "c"] == "'a' has only 108 sets and 'c' has only 108 sets; the minimum is 110."
    )
    assert "Groups with fewer than 110 matched sets get no verdict." in repr(found)
    by_rows = run_audit(min_group_size=217, metrics="selection_rate", group_size_by="rows")
    assert [row.verdict == "too small" for row in by_rows] == [False, True, True]


def test_report_says_what_is_compared_and_what_was_left_out() -> None:
    said = Page(run_audit().to_html()).text
    assert "Rows of one matched set ( application ) are compared" in said.replace(
        "(app", "( app"
    ).replace("tion)", "tion )")
    assert "The comparisons rest on 108 to 120 sets; sets without rows of both groups were" in said
    assert "Group labels were exchanged inside each matched set" in said
    assert "12 sets without rows of both groups were left out; 108 remain." in said
    assert "exchanged among the rows of each set" in said
    both = {name: one[answers()["name"] != "c"] for name, one in answers().items()}
    said = Page(run_audit(data=both).to_html()).text
    assert "The comparisons rest on 120 sets; no set was left out." in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"metrics": "roc_auc", "y_true": "hired"}, "metrics must be a rate, a mean or another"),
        ({"metrics": "equalized_odds", "y_true": "hired"}, "metrics must be a rate, a mean or"),
        ({"metrics": twice_accuracy, "y_true": "hired"}, "metrics must be a rate, a mean or"),
        ({"control_features": "hired"}, "control_features must be alike in all rows of one set"),
        ({"distances": "wasserstein"}, "matched cannot be used with distances"),
        ({"scheme": "pooled"}, "scheme must be one of 'auto'"),
    ],
)
def test_what_has_no_matched_sets_is_refused(given: dict[str, Any], says: str) -> None:
    call = {**GIVEN, "y_pred": "hired", "y_score": "score", "data": answers(), **given}
    with pytest.raises(InputError, match=says):
        audit(**{"metrics": "mean_score", **call})


def test_command(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    pl.DataFrame(answers()).write_csv(path)
    options = ("--prediction", "hired", "--group", "name", "--matched", "application", "--seed", 2)
    test = ("--metric", "selection_rate", "--resamples", 199, "--json", "-")
    done = run("audit", path, *options, *test)
    assert done.returncode == 0, done.stderr
    values = [row.pvalue for row in run_audit(metrics="selection_rate")]
    rows = json.loads(done.stdout)["result"]["rows"]
    assert [one["test"]["pvalue"] for one in rows] == values
