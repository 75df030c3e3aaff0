"""Searches for the number of rows or the gap at which power reaches a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    """Return the smallest gap beyond which all possible gaps have the power, or infinity."""
    # One group has ``value``. The other moves away from it on these sides, as far as the limits;
    # the power is a function of its value.

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
    """Return the root of an excess that is negative at ``low`` and not at ``high``."""
    # the method is false position in the form of Anderson and Björck (1973): if an end stays twice,
    # its value is reduced by as much as the other's was, or halved
    below, above = excess(low), excess(high)
    stayed = 0  # −1: the low end stayed, 1: the high end
    for _ in range(_STEPS):
        if above == 0 or abs(high - low) < close * max(1.0, abs(low)):
            break
        middle = (low * above - high * below) / (above - below)
        found = excess(middle)
        if found >= 0:
            below *= _reduce(found, above) if stayed == -1 else 1.0
            high, above, stayed = middle, found, -1
        else:
            above *= _reduce(found, below) if stayed == 1 else 1.0
            low, below, stayed = middle, found, 1
    return high


def _reduce(found: float, before: float) -> float:
    """Return the factor for an end that stayed, from the values of the end that moved."""
    factor = 1 - found / before
    return factor if factor > 0 else 0.5
