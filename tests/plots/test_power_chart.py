"""The power curve, and round numbers for axes."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import fairperm
from fairperm import plots
from fairperm.errors import InputError
from fairperm.plots.parts import round_ticks
from tests.support.charts import data_with, drawn, spec_of


def test_power_curve_of_a_function() -> None:
    @functools.cache
    def power(n: int) -> float:
        assert isinstance(n, int)
        return fairperm.power("selection_rate", values=(0.5, 0.4), n=n)

    sizes = range(100, 1501, 100)
    spec = spec_of(plots.power_curve(sizes, power))
    (points,) = (rows for rows in spec["datasets"].values() if len(rows) == len(sizes))
    assert points == [{"at": n, "power": power(n)} for n in sizes]
    (found,) = data_with(spec, "foot")
    needed = fairperm.sample_size("selection_rate", values=(0.5, 0.4))
    assert found["at"] == pytest.approx(needed, rel=0.03)
    assert found["power"] == 0.8
    same = spec_of(plots.power_curve(sizes, [power(n) for n in sizes]))
    assert same["datasets"] == spec["datasets"]


def test_power_curve_of_gaps() -> None:
    marked = fairperm.minimum_detectable_gap("selection_rate", value=0.4, n=2000)
    chart = plots.power_curve(
        np.linspace(0, 0.2, 21),
        lambda gap: fairperm.power("selection_rate", values=(0.4 + gap, 0.4), n=2000),
        over="gap",
        marked=marked,
        subject="selection rate",
    )
    spec = spec_of(chart)
    assert [one["at"] for one in data_with(spec, "foot")] == [marked]
    assert spec["title"]["subtitle"] == [
        "selection rate",
        f"Gaps of at least {marked:.3g} are detected with 80 % power or more.",
    ]


@pytest.mark.parametrize(
    ("at", "power", "expected"),
    [
        ([1, 2, 3], [0.1, 0.2, 0.3], None),
        ([1, 2, 3], [0.85, 0.9, 0.95], 1),
        ([3, 1, 2], [0.9, 0.5, 0.7], 2.5),
        ([1, 2, 3, 4], [0.9, 0.7, 0.9, 1], 2.5),
        ([1, 2], [math.nan, math.inf], None),
        ([], [], None),
        ([5], [0.9], 5),
        ([10, 100_000], [0.1, 0.9], 10 + 0.875 * 99_990),
    ],
)
def test_power_curve_finds_where_the_target_is_reached(
    at: list[float], power: list[float], expected: float | None
) -> None:
    spec = spec_of(plots.power_curve(at, power))
    found = [one["at"] for one in data_with(spec, "foot")]
    assert found == ([] if expected is None else [pytest.approx(expected)])
    assert "NaN" not in drawn(spec)


def test_power_curve_refuses() -> None:
    with pytest.raises(InputError, match=r"power must be as many as at \(2\); got 1"):
        plots.power_curve([1, 2], [0.5])
    with pytest.raises(InputError, match="over must be one of 'rows', 'gap'; got 'n'"):
        plots.power_curve([1, 2], [0.5, 0.6], over="n")


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 0.013), (-1e-9, 3e-9), (5, 12_345)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    found = round_ticks(low, high)
    assert 2 <= len(found) <= 8
    assert all(low <= one <= high for one in found)
    assert np.allclose(np.diff(found), found[1] - found[0])
