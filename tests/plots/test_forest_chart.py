"""The forest plot: every comparison with its numbers, and room for its names."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest

from fairperm import plots
from fairperm._utils.formatting import format_pvalue
from fairperm.auditing.result import Audit
from fairperm.hypothesis_tests.results.answers.audits import unit_of_row
from fairperm.plots.forest_chart import _space_ticks
from fairperm.plots.parts import SHAPES, as_layers, draw_rows, number
from tests.support.charts import compas_audit, compas_specs, data_with, drawn, spec_of


@pytest.fixture(scope="module")
def audit() -> Audit:
    return compas_audit()


@pytest.fixture(scope="module")
def specs() -> dict[str, Any]:
    return compas_specs()


def test_forest_shows_every_row_with_its_numbers(audit: Audit, specs: dict[str, Any]) -> None:
    lines = data_with(specs["forest"], "gap_interval", "reason")
    assert len(lines) == len(audit.rows)
    by_key = {(one["attribute"], one["metric"], one["first"], one["second"]): one for one in lines}
    for row in audit.rows:
        line = by_key[row.attribute, row.metric, str(row.groups[0]), str(row.groups[1])]
        assert row.result is not None
        assert row.confidence_interval is not None
        unit = unit_of_row(row)
        interval = unit.interval(row.confidence_interval)
        assert (
            line["gap_interval"]
            == f"{unit.signed(row.difference).removesuffix(' points')} ({interval})"
        )
        assert line["p"] == format_pvalue(row.pvalue)
        assert line["adjusted_p"] == format_pvalue(row.adjusted_pvalue)
        assert line["verdict"] == row.verdict
        assert line["reason"] == row.reason
        counts = row.result.counts[row.groups[0]]
        if "denominator" in counts:
            assert f"{counts['numerator']:,} of {counts['denominator']:,}" in line["first_value"]
        assert f"({row.sizes[0]:,} rows)" in line["first_value"]


def test_forest_marks_are_at_their_gaps(audit: Audit, specs: dict[str, Any]) -> None:
    spec = specs["forest"]
    marks = [
        layer
        for panel in spec["vconcat"]
        for layer in panel["layer"]
        if layer["mark"].get("shape") in SHAPES.values()
    ]
    shown = {}
    for layer in marks:
        name = {shape: verdict for verdict, shape in SHAPES.items()}[layer["mark"]["shape"]]
        assert layer["mark"]["style"] == f"fp-{name.replace(' ', '-')}-mark"
        assert layer["mark"]["filled"] == (name in {"disparity", "equivalent"})
        for row in spec["datasets"][layer["data"]["name"]]:
            shown[row["gap"]] = name
    expected = {row.difference: row.verdict for row in audit.rows}
    assert set(shown.items()) <= set(expected.items())
    assert {row.difference for row in audit.rows if row.verdict != "too small"} <= set(shown)


def test_forest_shades_the_margin_of_its_metric_only(specs: dict[str, Any]) -> None:
    spec = specs["forest"]
    (name,) = (
        layer["data"]["name"]
        for layer in spec["vconcat"][0]["layer"]
        if layer["mark"].get("style") == "fp-margin"
    )
    shades = spec["datasets"][name]
    assert [(one["from"], one["to"]) for one in shades] == [(-0.1, 0.1)] * 2  # sex and race
    assert any("margin" in line for line in spec["title"]["subtitle"])


def test_rates_share_an_axis_and_other_metrics_have_their_own(specs: dict[str, Any]) -> None:
    spec = specs["forest"]
    titles = [
        layer["encoding"]["x"]["axis"]["title"]
        for panel in spec["vconcat"]
        for layer in panel["layer"]
        if (layer["encoding"].get("x", {}).get("axis") or {}).get("title")
    ]
    assert len(titles) == len(spec["vconcat"]) == 2
    assert "in points" in titles[0]
    assert "in points" not in titles[1]


def test_forest_without_comparisons() -> None:
    spec = spec_of(plots.forest([]))
    assert spec["title"]["text"] == "No comparisons to show"
    assert drawn(spec)


def test_forest_of_one_row(audit: Audit) -> None:
    spec = spec_of(plots.forest([audit.rows[0].cells()]))
    assert "1 comparison: " in spec["title"]["subtitle"][0]
    assert len(data_with(spec, "gap_interval")) == 1


def test_rows_without_a_value_stay(audit: Audit) -> None:
    nothing = dict.fromkeys(
        ("difference", "difference_low", "difference_high", "pvalue", "adjusted_pvalue")
    )
    rows = [row.cells() | nothing | {"verdict": "too small"} for row in audit.rows]
    spec = spec_of(plots.forest(rows))
    assert len(data_with(spec, "none")) == len(rows)
    assert drawn(spec).count("no value") == len(rows)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None])
def test_forest_survives_numbers_that_are_none(bad: float | None, audit: Audit) -> None:
    columns = ("difference", "difference_low", "difference_high", "pvalue", "margin", "first_value")
    rows = [audit.rows[0].cells() | {column: bad} for column in columns]
    spec = plots.forest(rows).to_dict(validate=False)
    json.dumps(spec, allow_nan=False)
    assert len(data_with(spec, "gap_interval")) == len(rows)


def test_open_and_far_intervals_end_in_arrows(audit: Audit) -> None:
    row = audit.rows[0].cells()
    rows = [row, row | {"difference_low": -math.inf, "difference_high": math.inf}]
    spec = spec_of(plots.forest(rows))
    pointing = [
        (layer["mark"]["shape"], len(spec["datasets"][layer["data"]["name"]]))
        for layer in spec["vconcat"][0]["layer"]
        if str(layer["mark"].get("shape")).startswith("triangle-")
        and layer["mark"]["shape"] != "triangle-up"
    ]
    assert sorted(one for one in pointing if one[1]) == [
        ("triangle-left", 1),
        ("triangle-right", 1),
    ]
    intervals = {one["gap_interval"].partition(" ")[2] for one in data_with(spec, "gap_interval")}
    assert "(−∞ to +∞)" in intervals


def test_charts_have_no_limit_of_rows() -> None:
    layer = draw_rows(({"at": i} for i in range(6_000)), "point", {"x": number("at")})
    assert len(data_with(as_layers({"layer": [layer]}).to_dict(), "at")) == 6_000


@pytest.mark.parametrize("width", [352])
def test_forest_of_any_width(width: int, audit: Audit) -> None:
    svg = drawn(spec_of(audit.plot(width=width)))
    assert ("adjusted p" in svg) == (width >= 640)
    assert "verdict" in svg


def test_one_sided_intervals_do_not_stretch_the_axis(audit: Audit) -> None:
    row = audit.rows[0].cells() | {"difference_high": 1.0, "verdict": "disparity"}
    row |= {"difference": 0.04, "difference_low": 0.02, "margin": None}
    spec = spec_of(plots.forest([row]))
    high = max(
        layer["encoding"]["x"]["scale"]["domain"][1]
        for layer in spec["vconcat"][0]["layer"]
        if "scale" in layer["encoding"].get("x", {})
    )
    assert high < 0.2


def test_plot_null_of_a_row(audit: Audit) -> None:
    row = audit.rows[1]
    spec = spec_of(audit.plot_null(1))
    assert row.result is not None
    assert spec == spec_of(row.result.plot()) == spec_of(audit.plot_null(row))
    assert next(one["observed"] for one in data_with(spec, "observed")) == row.result.statistic


@pytest.mark.parametrize(("width", "is_whole"), [(900, True), (700, True), (352, False)])
def test_names_are_whole_where_there_is_room(audit: Audit, width: int, is_whole: bool) -> None:
    names = ["Native Hawaiian or other Pacific", "White, not Hispanic or Latino"]
    row = audit.rows[0].cells() | {"first_group": names[0], "second_group": names[1]}
    spec = spec_of(plots.forest([row], width=width))
    labels = [one["label"] for one in data_with(spec, "label", "place")]
    assert (names[0] in labels and f"− {names[1]}" in labels) == is_whole
    assert any("…" in label for label in labels) != is_whole
    size = re.match(r'<svg [^>]*?width="(\d+)"', drawn(spec))
    assert size is not None
    assert int(size[1]) <= width + 12


def test_names_are_not_cut_in_wide_fonts(audit: Audit) -> None:
    per_letter = 6.2  # pixels, of DejaVu Sans in the charts' size
    pairs = [("Native American", "African-American"), ("Native American", "Other")]
    rows = [
        audit.rows[0].cells() | {"first_group": first, "second_group": second}
        for first, second in pairs
    ]
    for width in (900, 640):
        spec = spec_of(plots.forest(rows, width=width))
        names = {row["label"] for row in data_with(spec, "label", "place")}
        (limit,) = {
            layer["mark"]["limit"]
            for layer in spec["vconcat"][0]["layer"]
            if layer["mark"].get("style") == "fp-text" and layer["mark"]["align"] == "left"
        }
        labels = {name for name in names if "·" not in name}
        assert not any("…" in label for label in labels)
        assert all(len(label) * per_letter <= limit for label in labels)


def test_short_names_are_on_one_line(audit: Audit) -> None:
    row = audit.rows[0].cells() | {"first_group": "young", "second_group": "old"}
    spec = spec_of(plots.forest([row]))
    assert "young − old" in [one["label"] for one in data_with(spec, "label", "place")]


@pytest.mark.parametrize("reach", [0.03, 0.2, 0.35, 7.0])
@pytest.mark.parametrize("width", [110, 200, 500])
def test_numbers_on_the_axis_do_not_touch(reach: float, width: int) -> None:
    low, high = -reach, 1.3 * reach
    found = _space_ticks(low, high, width)
    assert 0.0 in found
    assert 3 <= len(found) <= 8
    assert low <= found[0] < 0 < found[-1] <= high
    assert min(np.diff(found)) / (high - low) * width >= 30


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.19, 0.19, [-0.15, 0.0, 0.15]),  # the round numbers 0.1 would touch, 0.2 are beyond
        (-0.01, 0.19, [0.0, 0.15]),
        (-0.18, 0.09, [-0.15, 0.0, 0.08]),
        (-0.0999999999999999999, 0.1, [-0.1, 0.0, 0.1]),
    ],
)
def test_narrow_axes_have_numbers_at_their_ends(
    low: float, high: float, expected: list[float]
) -> None:
    assert _space_ticks(low, high, 96) == expected


def test_groups_that_are_numbers_and_joint_gaps_are_named_as_in_tables() -> None:
    row = compas_audit().rows[0].cells()
    numbers = row | {"attribute": "male", "first_group": "0", "second_group": 1}
    joint = numbers | {"metric": "equalized_odds", "part": "true_positive_rate", "difference": 0.2}
    joint |= {"first_denominator": None, "difference_low": 0.1, "difference_high": 0.3}
    text = json.dumps(spec_of(plots.forest([numbers, joint])), ensure_ascii=False)
    assert "male = 0 − male = 1" in text
    assert "male = 0 and male = 1" in text
    assert "0.200 (TPR)" in text
    assert "+0.200" not in text
    assert "Largest absolute gap" in text
