"""The chart of the gap over periods."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairperm import compare_periods, plots
from fairperm.errors import InputError
from tests.support.charts import HOSTILE, data_with, spec_of


def test_every_period_has_its_gap_and_interval_and_changes_are_marked() -> None:
    rng = np.random.default_rng(1)
    year, group = rng.integers(2020, 2023, 3000), rng.choice(["a", "b"], 3000)
    selected = rng.random(3000) < np.where((group == "a") & (year == 2022), 0.7, 0.4)
    result = compare_periods(
        y_pred=selected, sensitive_features=group, period=year, metric="selection_rate", rng=1
    )
    spec = spec_of(result.plot())
    rows = {one["name"]: one for one in data_with(spec, "low")}
    assert list(rows) == ["2020", "2021", "2022"]
    for period, gap in result.gaps.items():
        row = rows[str(period)]
        assert (row["gap"], row["low"], row["high"]) == (gap.difference, *gap.confidence_interval)
    assert [one["moved"] for one in rows.values()] == [False, False, True]
    assert spec["title"]["text"] == "The gap in selection rate over time"
    assert "changed from the previous period" in spec["title"]["subtitle"][1]


def test_names_are_data_and_as_many_as_there_is_room_for() -> None:
    numbers = np.zeros(len(HOSTILE))
    spec = spec_of(plots.gap_over_time(HOSTILE, numbers, numbers - 1, numbers + 1))
    assert {one["at"] for one in data_with(spec, "low")} == {*range(len(HOSTILE))}
    many = range(60)
    spec = spec_of(plots.gap_over_time(many, [0.1] * 60, [math.nan] * 60, [math.nan] * 60))
    labels = [layer for layer in spec["layer"] if layer["mark"].get("align") == "center"]
    shown = spec["datasets"][labels[0]["data"]["name"]]
    assert 10 < len(shown) < 60


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="gap, lower, upper, pvalues must be as many as periods"):
        plots.gap_over_time([1, 2], [0.1], [0.0, 0.0], [0.2, 0.2])
