"""The result of a search as text, JSON and frames."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fairperm import Band
from fairperm.subgroups.result import as_text
from tests.subgroups.test_search import RATE, find, make_data


def test_result_is_a_sequence_with_text_json_and_frames() -> None:
    data = make_data(1500)
    result = find(data, **RATE, n_resamples=199)
    assert tuple(result) == result.found
    assert len(result) == sum(one.adjusted_pvalue <= 0.05 for one in result.all)
    assert set(map(id, result.listed)) < set(map(id, result))
    plain = result.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert [len(plain[name]) for name in ("listed", "found", "all")] == [
        len(result.listed),
        len(result),
        len(result.all),
    ]
    band = next(one for one in result.all if isinstance(one.conditions.get("age"), Band))
    assert band.to_dict()["conditions"]["age"].keys() == {"low", "high"}
    frame = result.to_frame(which="all")
    assert frame.adjusted_pvalue.tolist() == [one.adjusted_pvalue for one in result.all]
    assert list(result.to_frame("pyarrow").column_names) == [
        *("description", "depth", "n", "negatives", "value", "rest", "gap", "standard_error"),
        *("low", "high", "statistic", "pvalue", "adjusted_pvalue"),
    ]
    text = repr(result)
    assert f"{len(result.found)} of {len(result.all)} subgroups differ from all other rows" in text
    assert result.listed[0].description in text
    assert "step-down max-T at 5 %, 199 permutations" in text
    assert "found: --csv has all" in as_text(result, "--csv has all")


def test_weighted_values_are_called_weighted() -> None:
    weighted = find(make_data(300), **RATE, n_resamples=39, max_depth=1, sample_weight="weight")
    assert "note  Values are weighted; numbers of rows are not." in repr(weighted)


def test_intervals_exclude_zero_exactly_for_those_found() -> None:
    for options in ({}, {"alternative": "greater"}, {"control_features": "site"}):
        result = find(make_data(1500), **RATE, n_resamples=199, **options)
        for one in result.all:
            low, high = one.confidence_interval
            assert (one in result.found) == (not low <= 0 <= high)
            assert low <= one.gap <= high or math.isnan(one.gap)


@pytest.mark.parametrize("adjust", ["holm", "bh", "by"])
def test_other_adjustments_are_those_of_the_raw_pvalues(adjust: str) -> None:
    from scipy.stats import false_discovery_control

    data = make_data(600)
    result = find(data, **RATE, n_resamples=1999, adjust=adjust, max_depth=1)
    raw = [one.pvalue for one in result.all]
    adjusted = [one.adjusted_pvalue for one in result.all]
    if adjust != "holm":
        assert adjusted == pytest.approx(false_discovery_control(raw, method=adjust))
    assert all(p >= q for p, q in zip(adjusted, raw, strict=True))


def test_report_names_what_is_listed_and_escapes_names(tmp_path: Path) -> None:
    data = make_data(1500).replace({"sex": {"f": "<b>f</b>"}})
    result = find(data, **RATE, n_resamples=199)
    page = result.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    assert "sex = &lt;b&gt;f&lt;/b&gt;" in page
    assert "<b>f</b>" not in page
    assert "step-down max-T at 5 %, 199 permutations." in page
    assert result.validity in page
    among_alike = "also among rows that are alike in the subgroups above it"
    assert among_alike in page
    # which was not shown in the rows of a confirmation
    assert among_alike not in find(data, **RATE, n_resamples=59, confirm=0.5).to_html()
    nothing = find(data, **RATE, n_resamples=39, alpha=0.05, max_depth=1, features="town")
    assert "0 of 3 subgroups" in nothing.to_html()
