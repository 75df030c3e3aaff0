"""Values of groups with an old and with a new model."""

from __future__ import annotations

import math
from itertools import pairwise

from fairperm import plots
from tests.support.charts import HOSTILE, data_with, drawn, spec_of


def test_lines_run_from_old_to_new_and_labels_do_not_overlap() -> None:
    values = {"a": (0.4, 0.1), "b": (0.2, 0.1), "c": (0.2, 0.1), "d": (math.nan, 0.1)}
    spec = spec_of(plots.slope(values, metric="false_positive_rate"))
    lines = {one["name"]: one for one in data_with(spec, "old_place")}
    assert [*lines] == ["a", "b", "c"]
    assert lines["a"]["old_place"] < lines["b"]["old_place"] < lines["b"]["new_place"]
    assert lines["b"]["new_place"] == lines["c"]["new_place"]
    places = sorted(one["new_text"] for one in lines.values())
    assert min(high - low for low, high in pairwise(places)) >= 16
    assert spec["height"] >= places[-1]
    assert spec["title"]["text"] == "False positive rate: old and new model"
    assert "0.100  b" in drawn(spec)


def test_names_from_data_are_data_only() -> None:
    spec = spec_of(plots.slope(dict.fromkeys(HOSTILE, (0.1, 0.2)), mode="dark"))
    assert len(data_with(spec, "old_place")) == len(HOSTILE)
    assert drawn(spec)
    assert drawn(spec_of(plots.slope({})))
