"""Sweeps over thresholds: gaps, bands, and what the slider tells."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from fairperm import plots
from fairperm._utils.formatting import Unit, format_pvalue
from fairperm.errors import InputError
from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult
from tests.support.charts import compas_specs, compas_sweep, data_with, drawn, spec_of, swept

RATE = Unit(is_share=True)


@pytest.fixture(scope="module")
def sweep() -> ThresholdSweepResult:
    return compas_sweep()


@pytest.fixture(scope="module")
def specs() -> dict[str, Any]:
    return compas_specs()


def test_sweep_shows_its_numbers(sweep: ThresholdSweepResult, specs: dict[str, Any]) -> None:
    rows = data_with(specs["sweep"], "first_value", "wide_band")
    assert len(rows) == 2 * len(sweep.thresholds)
    for name, curve in sweep.curves.items():
        some = [row for row in rows if row["metric"] == name]
        assert [row["threshold"] for row in some] == sweep.thresholds.tolist()
        for key, expected in {
            "gap_label": [RATE.signed(one) for one in curve.difference],
            "first_value": [f"{RATE.value(one)} (Female)" for one in curve.values["Female"]],
            "second_value": [f"{RATE.value(one)} (Male)" for one in curve.values["Male"]],
            "p": [format_pvalue(one) for one in curve.pvalue],
            "adjusted_p": [format_pvalue(one) for one in curve.adjusted_pvalue],
        }.items():
            assert [row[key] for row in some] == expected, key


def test_sweep_draws_its_numbers_where_they_are(sweep: ThresholdSweepResult) -> None:
    for name, curve in sweep.curves.items():
        spec = spec_of(sweep.plot(name))
        by_style: dict[str, list[dict[str, Any]]] = {}
        for layer in spec["vconcat"][1]["layer"]:
            data = spec["datasets"][layer["data"]["name"]]
            by_style.setdefault(layer["mark"].get("style", ""), []).extend(data)
        at = sweep.thresholds
        assert drawn_at(by_style["fp-line"], "gap") == defined(at, curve.difference)
        for band, limits in (("narrow", curve.pointwise_band), ("wide", curve.simultaneous_band)):
            for end, values in zip(("low", "high"), limits, strict=True):
                rows = by_style[f"fp-{band}"]
                assert drawn_at(rows, f"{band}_{end}") == defined(at, values)
        no_test = {row["threshold"] for row in by_style.get("fp-missing", [])}
        assert no_test == set(at[np.isnan(curve.pvalue)])
        beyond = {row["threshold"] for row in by_style.get("fp-outside", [])}
        assert beyond == set(at[curve.pvalue <= sweep.alpha])


def drawn_at(rows: list[dict[str, Any]], key: str) -> dict[float, float]:
    return {row["threshold"]: row[key] for row in rows}


def defined(at: Any, values: Any) -> dict[float, float]:
    return {float(a): float(b) for a, b in zip(at, values, strict=True) if math.isfinite(b)}


@pytest.mark.parametrize("width", [340, 900])
def test_nothing_of_a_sweep_is_cut(width: int) -> None:
    groups = ("African-American", "Native Hawaiian")
    columns = swept(2, adjusted_pvalue=[0.3, 0.01])
    chart = plots.threshold_sweep(columns, groups=groups, slider=True, width=width)
    spec = spec_of(chart)
    texts = [row["label"] for row in data_with(spec, "label")]
    for row in data_with(spec, "at_lines"):
        texts += [row["at_lines"], row["verdict_lines"]]
        text = " ".join(row["at_lines"].split())
        assert text.endswith(": African-American 0.500, Native Hawaiian 0.400, gap +0.100")
    assert "gap beyond the band of its threshold only" in [" ".join(one.split()) for one in texts]
    room = spec["vconcat"][0]["width"]
    assert all(len(line) * 6.2 <= room for text in texts for line in text.split("\n"))
    assert any("\n" in text for text in texts) == (width == 340)
    assert "…" not in drawn(spec)
    entries = [
        layer["encoding"]["x"]["value"]
        for layer in spec["vconcat"][0]["layer"]
        if layer["mark"]["type"] == "text"
    ]
    assert len(set(entries)) == (1 if width == 340 else 2)  # columns


def test_sweep_of_one_metric(sweep: ThresholdSweepResult) -> None:
    spec = spec_of(sweep.plot("true_positive_rate"))
    assert {row["metric"] for row in data_with(spec, "metric")} == {"true_positive_rate"}
    assert "params" not in spec
    with pytest.raises(InputError, match=r"metric must be one of .*Did you mean 'true_positive_r"):
        sweep.plot("true_positive_rat")


def test_slider_shows_the_numbers_of_its_threshold(sweep: ThresholdSweepResult) -> None:
    spec = spec_of(sweep.plot("true_positive_rate", slider=True))
    (param,) = spec["params"]
    assert param["bind"] == {"input": "range", "max": 10, "min": 1, "name": "Threshold ", "step": 1}
    curve = sweep.curves["true_positive_rate"]
    for i in (0, 6, 9):
        param["value"] = sweep.thresholds[i] + 0.3 * (i == 6)  # between two, the nearer
        svg = drawn(spec)
        at, first, second = (
            f"At {sweep.thresholds[i]:g}:",
            f"Female {RATE.value(curve.values['Female'][i])}",
            f"Male {RATE.value(curve.values['Male'][i])}",
        )
        assert all(text in svg for text in (at, first, second, RATE.signed(curve.difference[i])))
        assert svg.count("At ") == 1


@pytest.mark.parametrize(("start", "expected"), [(None, 0.5), (0.25, 0.25), (7, 1.0), (-7, 0.0)])
def test_slider_starts_where_asked(start: float | None, expected: float) -> None:
    chart = plots.threshold_sweep(swept(), groups=("a", "b"), slider=True, start=start)
    assert spec_of(chart)["params"][0]["value"] == expected


@pytest.mark.parametrize("n", [1, 2])
def test_sweep_of_few_thresholds(n: int) -> None:
    assert drawn(spec_of(plots.threshold_sweep(swept(n), groups=("a", "b"), slider=True)))


def test_sweep_of_many_thresholds_shows_some() -> None:
    spec = plots.threshold_sweep(swept(2500), groups=("a", "b")).to_dict(validate=False)
    at = [row["threshold"] for row in data_with(spec, "first_value")]
    assert len(at) == 1000
    assert (at[0], at[-1]) == (0, 1)
    assert "1,000 of 2,500 thresholds" in spec["title"]["subtitle"][1]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_sweep_survives_numbers_that_are_none(bad: float) -> None:
    columns = swept(9)
    for i, name in enumerate(("difference", "pvalue", "simultaneous_upper", "value_first")):
        columns[name] = columns[name].copy()
        columns[name][2 * i + 1] = bad
    spec = plots.threshold_sweep(columns, groups=("a", "b"), slider=True).to_dict(validate=False)
    json.dumps(spec, allow_nan=False)
    assert "NaN" not in drawn(spec)
    nothing: dict[str, Any] = {
        name: [bad] * 5 for name in swept() if name not in {"metric", "threshold"}
    }
    nothing = swept() | nothing
    chart = plots.threshold_sweep(nothing, groups=("a", "b"))
    json.dumps(chart.to_dict(validate=False), allow_nan=False)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"adjusted_pvalue": 0.01}, "over all thresholds of this metric alone (±0.200)"),
        ({}, "by itself if this threshold was chosen beforehand (±0.050), not if it was searched"),
        ({"adjusted_pvalue": math.nan}, "too sparse for the joint band"),
        ({"pvalue": 0.2}, "Chance alone can explain it (±0.050 here, ±0.200 over all)"),
        ({"pvalue": 0.2, "adjusted_pvalue": math.nan}, "it (±0.050); too sparse for the joint"),
        ({"pvalue": math.nan, "status": "trivial"}, "have the same prediction"),
        ({"pvalue": math.nan, "status": "undefined"}, "is undefined in one"),
        ({"pointwise_lower": -0.01}, "−0.010 to +0.050"),
    ],
)
def test_sweep_says_what_a_gap_means(numbers: dict[str, Any], words: str) -> None:
    spec = spec_of(plots.threshold_sweep(swept(**numbers), groups=("a", "b")))
    assert all(words in row["verdict"] for row in data_with(spec, "verdict"))
