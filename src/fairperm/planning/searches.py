"""Searches for the number of rows or the gap at which power reaches a target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairperm.planning.designs import Pair

_STEPS = 200  # at most, to find a root


def smallest_n(is_enough: Callable[[int], bool], fewest: int, most: int) -> int | None:
    """Return an n that is enough while n − 1 is not; None if ``most`` is not enough."""
    low, high = fewest - 1, fewest
    while not is_enough(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def smallest_gap(
    power: Callable[[float], float],
    value: float,
    sides: tuple[int, ...],
    target: float,
    limits: Pair,
) -> float:
    """Return the smallest gap beyond which all possible gaps have the power, or infinity.

    One group has ``value``. The other moves away from it on these sides, as far as the limits; the
    power is a function of its value.
    """

    def excess(moved: float) -> float:
        return power(moved) - target

    ends = {end: excess(end) >= 0 for end in (limits[side > 0] for side in sides)}
    if not any(ends.values()):
        return math.inf
    # in a direction in which no gap has the power, every possible gap is smaller than the result
    found = [find_root(excess, value, end) if enough else end for end, enough in ends.items()]
    return max(abs(moved - value) for moved in found)


def find_root(
    excess: Callable[[float], float], low: float, high: float, *, close: float = 1e-12
) -> float:
    """Return the root of an excess that is negative at ``low`` and not at ``high``.

    The method is false position in the Illinois form: if an end stays twice, its value is halved.
    """
    below, above = excess(low), excess(high)
    stayed = 0  # −1: the low end stayed, 1: the high end
    for _ in range(_STEPS):
        if above == 0 or abs(high - low) < close * max(1.0, abs(low)):
            break
        middle = (low * above - high * below) / (above - below)
        found = excess(middle)
        if found >= 0:
            high, above = middle, found
            below *= 0.5 if stayed == -1 else 1.0
            stayed = -1
        else:
            low, below = middle, found
            above *= 0.5 if stayed == 1 else 1.0
            stayed = 1
    return high
