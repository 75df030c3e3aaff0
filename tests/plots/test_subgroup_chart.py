"""The tree of subgroups."""

from __future__ import annotations

from typing import Any

from fairperm import plots
from tests.subgroups.test_search import RATE, find, make_data
from tests.support.charts import HOSTILE, data_with, drawn, spec_of


def row(*conditions: str, gap: float = 0.2) -> dict[str, Any]:
    numbers = {"n": 90, "value": 0.5, "rest": 0.3, "gap": gap, "low": gap - 0.1, "high": gap + 0.1}
    return {"conditions": list(conditions), **numbers, "adjusted_pvalue": 0.002}


def test_subgroups_stand_below_those_with_fewer_of_their_conditions() -> None:
    rows = [row("a = 1", "b = 2"), row("c = 3"), row("a = 1"), row("a = 1", "b = 2", "d = 4")]
    spec = spec_of(plots.subgroups(rows, metric="roc_auc", confidence_level=0.95))
    labels = sorted(data_with(spec, "label"), key=lambda one: one["place"])
    assert [one["label"] for one in labels] == ["c = 3", "a = 1", "and b = 2", "and d = 4"]
    assert spec["title"]["text"] == "Subgroups in ROC AUC: gaps to the rest, with 95 % intervals"
    assert "and d = 4" in drawn(spec)


def test_names_from_data_are_data_only() -> None:
    spec = spec_of(plots.subgroups([row(name) for name in HOSTILE]))
    assert len(data_with(spec, "label")) == len(HOSTILE)
    assert drawn(spec)


def test_result_draws_what_it_lists() -> None:
    result = find(make_data(1500), **RATE, n_resamples=199)
    spec = spec_of(result.plot(mode="dark"))
    assert len(data_with(spec, "gap")) == len(result.listed) > 0
    assert drawn(spec_of(plots.subgroups([])))
