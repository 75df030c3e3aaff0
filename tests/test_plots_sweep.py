"""Sweeps over thresholds: gaps, bands, and what the slider tells."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from charts import compas_specs, compas_sweep, data_with, drawn, spec_of, swept
from fairperm import plots
from fairperm._chart_parts import finite, told
from fairperm.errors import InputError

if TYPE_CHECKING:
    from fairperm.sweep import ThresholdSweepResult


@pytest.fixture(scope="module")
def sweep() -> ThresholdSweepResult:
    return compas_sweep()


@pytest.fixture(scope="module")
def specs() -> dict[str, Any]:
    return compas_specs()


def test_sweep_shows_its_numbers(sweep: ThresholdSweepResult, specs: dict[str, Any]) -> None:
    rows = data_with(specs["sweep"], "first_told", "wide_high")
    assert len(rows) == 2 * len(sweep.thresholds)
    for name, curve in sweep.curves.items():
        some = [row for row in rows if row["metric"] == name]
        assert [row["threshold"] for row in some] == sweep.thresholds.tolist()
        for key, expected in {
            "gap": curve.difference,
            "first": curve.values["Female"],
            "second": curve.values["Male"],
            "narrow_low": curve.pointwise_band[0],
            "narrow_high": curve.pointwise_band[1],
            "wide_low": curve.simultaneous_band[0],
            "wide_high": curve.simultaneous_band[1],
            "p": curve.pvalue,
            "adjusted": curve.adjusted_pvalue,
        }.items():
            assert [row[key] for row in some] == [finite(one) for one in expected], key
        assert [row["status"] for row in some] == curve.status.tolist()
        kinds = np.array([row["kind"] for row in some])
        assert (kinds == "none").tolist() == np.isnan(curve.pvalue).tolist()
        assert (kinds == "outside").tolist() == (curve.adjusted_pvalue <= sweep.alpha).tolist()


def test_sweep_of_one_metric(sweep: ThresholdSweepResult) -> None:
    spec = spec_of(sweep.plot("true_positive_rate"))
    assert {row["metric"] for row in data_with(spec, "metric")} == {"true_positive_rate"}
    assert "params" not in spec
    with pytest.raises(InputError, match=r"metric must be one of .*Did you mean 'true_positive_r"):
        sweep.plot("true_positive_rat")


def test_slider_tells_the_numbers_of_its_threshold(sweep: ThresholdSweepResult) -> None:
    spec = spec_of(sweep.plot("true_positive_rate", slider=True))
    (param,) = spec["params"]
    assert param["bind"] == {"input": "range", "max": 10, "min": 1, "name": "Threshold ", "step": 1}
    curve = sweep.curves["true_positive_rate"]
    for i in (0, 6, 9):
        param["value"] = sweep.thresholds[i] + 0.3 * (i == 6)  # between two, the nearer
        svg = drawn(spec)
        at, first, second = (
            f"At {sweep.thresholds[i]:g}:",
            f"Female {curve.values['Female'][i]:.3f}",
            f"Male {curve.values['Male'][i]:.3f}",
        )
        assert all(text in svg for text in (at, first, second, told(curve.difference[i], "+")))
        assert svg.count("At ") == 1


@pytest.mark.parametrize(("start", "expected"), [(None, 0.5), (0.25, 0.25), (7, 1.0), (-7, 0.0)])
def test_slider_starts_where_asked(start: float | None, expected: float) -> None:
    chart = plots.threshold_sweep(swept(), groups=("a", "b"), slider=True, start=start)
    assert spec_of(chart)["params"][0]["value"] == expected


@pytest.mark.parametrize("n", [1, 2])
def test_sweep_of_few_thresholds(n: int) -> None:
    assert drawn(spec_of(plots.threshold_sweep(swept(n), groups=("a", "b"), slider=True)))


def test_sweep_of_many_thresholds_shows_some_and_says_so() -> None:
    spec = plots.threshold_sweep(swept(2500), groups=("a", "b")).to_dict(validate=False)
    at = [row["threshold"] for row in data_with(spec, "first_told")]
    assert len(at) == 1000
    assert (at[0], at[-1]) == (0, 1)
    assert "Some of 2,500 thresholds" in spec["title"]["subtitle"][1]


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
        ({"adjusted_pvalue": 0.01}, "even over all thresholds (±0.200)"),
        ({}, "chosen beforehand (±0.050), not if it was searched for (±0.200)"),
        ({"adjusted_pvalue": math.nan}, "too sparse for the joint band"),
        ({"pvalue": 0.2}, "Chance alone can explain it (±0.050 here, ±0.200 over all)"),
        ({"pvalue": 0.2, "adjusted_pvalue": math.nan}, "it (±0.050); too sparse for the joint"),
        ({"pvalue": math.nan, "status": "trivial"}, "predicted alike"),
        ({"pvalue": math.nan, "status": "undefined"}, "has no value"),
        ({"pointwise_lower": -0.01}, "−0.010 to +0.050"),
    ],
)
def test_sweep_says_what_a_gap_means(numbers: dict[str, Any], words: str) -> None:
    spec = spec_of(plots.threshold_sweep(swept(**numbers), groups=("a", "b")))
    assert all(words in row["verdict"] for row in data_with(spec, "verdict"))
