"""The chart of two distributions: what it draws, in which styles, and names from data."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from fairperm import InputError, plots
from tests.support.charts import HOSTILE, data_with, drawn, spec_of


@pytest.mark.parametrize("mode", ["auto", "light", "dark"])
def test_curves_have_a_line_at_the_largest_gap(mode: str) -> None:
    chart = plots.distributions(
        [1, 2, 3], [0.2, 0.7, 1.0], [0.1, 0.3, 1.0], groups=("a", "b"), cumulative=True, at=2,
        distance="kolmogorov_smirnov", value=0.4, pvalue=0.01, mode=mode,
    )  # fmt: skip
    spec = spec_of(chart)
    assert data_with(spec, "to") == [{"value": 2, "share": 0.3, "to": 0.7}]
    said = " ".join(spec["title"]["subtitle"])
    for part in ("0.400 (p = 0.0100)", "Solid: a. Dashed: b.", "They differ most at 2."):
        assert part in said
    shown = json.dumps({key: one for key, one in spec.items() if key not in {"config", "datasets"}})
    assert not re.search(r"#[0-9a-fA-F]{6}\b", shown)
    assert set(re.findall(r'"style": "(.*?)"', shown)) <= set(plots.theme(mode)["style"])


def test_bars_have_the_shares_of_both_groups() -> None:
    spec = spec_of(plots.distributions(["x", "y"], [0.7, 0.3], [0.5, 0.5], groups=(0, 1)))
    bars = {(one["value"], one["side"]): one["share"] for one in data_with(spec, "side")}
    assert bars == {("x", 0): 0.7, ("y", 0): 0.3, ("x", 1): 0.5, ("y", 1): 0.5}
    with pytest.raises(InputError, match=r"first and second must be as many as values \(2\)"):
        plots.distributions(["x", "y"], [1.0], [0.5, 0.5], groups=("a", "b"))


def test_categories_whose_short_names_are_equal_have_bars_of_their_own() -> None:
    long = [f"{'x' * 20}{i}{'y' * 20}" for i in range(3)]
    spec = spec_of(
        plots.distributions(
            [*long, 1, "1"], [0.2] * 5, [0.2] * 5, groups=(long[0], long[1]), at="1"
        )
    )
    names = [one["value"] for one in data_with(spec, "side") if one["side"] == 0]
    short = f"{'x' * 17}…{'y' * 6}"
    assert names == [short, f"{short} (2)", f"{short} (3)", "1", "1 (2)"]
    said = " ".join(spec["title"]["subtitle"])
    assert (
        f"Left and blue: {short}. Right and grey: {short} (2). They differ most at 1 (2)." in said
    )


@pytest.mark.validate
def test_any_name_can_be_drawn() -> None:
    shares = [1 / len(HOSTILE)] * len(HOSTILE)
    for first, second in itertools.pairwise(HOSTILE):
        chart = plots.distributions(HOSTILE, shares, shares, groups=(first, second), at=first)
        assert "<script" not in drawn(spec_of(chart))
