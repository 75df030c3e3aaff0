"""What a statistic is compared with: p-values and critical values that agree."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fairperm.inference.null import Null
from fairperm.inference.reference import Permutations

NARROW = Permutations(Null(np.linspace(-1, 1, 999)))  # hardly varies
WIDE = Permutations(Null(np.linspace(-9, 9, 999)))


def floored(reference: Permutations) -> Permutations:
    """Return the permutations with the normal limit as their floor."""
    return replace(reference, are_at_least_normal=True)


@pytest.mark.parametrize("z", [2.5, -2.5])
def test_normal_floor_by_tail(z: float) -> None:
    tail = stats.norm.sf(2.5)
    side, other = ("greater", "less") if z > 0 else ("less", "greater")
    narrow, wide = floored(NARROW), floored(WIDE)
    assert narrow.pvalue(z, side, 0.0, 0.95).value == pytest.approx(tail)
    assert narrow.pvalue(z, other, 0.0, 0.95).value == pytest.approx(1.0)
    assert narrow.pvalue(z, "two-sided", 0.0, 0.95).value == pytest.approx(2 * tail)
    assert narrow.pvalue(z, "symmetric", 0.0, 0.95).value == pytest.approx(2 * tail)
    for ordering in (side, "two-sided", "symmetric"):
        assert wide.pvalue(z, ordering, 0.0, 0.95) == WIDE.pvalue(z, ordering, 0.0, 0.95)
        assert wide.critical(ordering, 0.95) == WIDE.critical(ordering, 0.95)


def test_normal_floor_takes_the_tails_apart() -> None:
    """Each tail has its own floor, before the smaller one is taken."""
    skewed = floored(Permutations(Null(np.linspace(-9, 1, 999))))
    lower, upper = skewed.critical("two-sided", 0.95)
    assert upper == pytest.approx(stats.norm.isf(0.025))
    assert lower < -8


@pytest.mark.parametrize("reference", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("ordering", ["two-sided", "symmetric", "greater", "less"])
def test_floor_agrees_with_critical_values(reference: Permutations, ordering: str) -> None:
    at_least = floored(reference)
    lower, upper = at_least.critical(ordering, 0.95)
    for z in np.linspace(-10, 10, 401):
        is_rejected = at_least.pvalue(z, ordering, 0.0, 0.95).value <= 0.05
        assert is_rejected == (not lower <= z <= upper)
    assert math.isinf(lower) == (ordering == "greater")
