"""Sums of powers of the influences of matched sets, for a block of draws."""

from __future__ import annotations

import numpy as np

from fairperm._utils.arrays import Array
from fairperm.engines.kernels.kernel import kernel

_SETS = 512  # whose influences stay in the cache
_UNROLL = 8  # sums that are added up side by side


def sum_powers(
    mine: Array, count: Array, sides: tuple[Array, Array], gradients: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return the sums of the squares and cubes of the influences of all sets on a gap, by draw.

    ``mine`` says by draw how many of the ``count`` sets of each kind have their higher side in the
    first group. ``sides`` are the higher and the lower side of each kind, by contribution (axis 1);
    ``gradients``, by draw and contribution, the derivatives of both groups' values.
    """
    sums = np.empty((len(mine), 2))
    high, low = (np.ascontiguousarray(side.T) for side in sides)
    of_first, of_second = (np.ascontiguousarray(one) for one in gradients)
    _fill(mine, count, high, low, of_first, of_second, sums)
    return sums[:, 0], sums[:, 1]


@kernel
def _add(high: Array, low: Array, first: float, second: float, up: Array, down: Array) -> None:
    """Add a contribution to the influences of sets with the higher side first, and second."""
    for k in range(len(high)):
        up[k] += first * high[k] - second * low[k]
        down[k] += first * low[k] - second * high[k]


@kernel
def _raise(mine: Array, count: Array, up: Array, down: Array) -> None:
    """Replace the influences of each kind by the sums of their cubes, and of their squares."""
    for k in range(len(mine)):
        plus = mine[k] * up[k] * up[k]
        minus = (count[k] - mine[k]) * down[k] * down[k]
        up[k] = plus * up[k] + minus * down[k]
        down[k] = plus + minus


@kernel
def _fill(
    mine: Array,
    count: Array,
    high: Array,
    low: Array,
    of_first: Array,
    of_second: Array,
    sums: Array,
) -> None:
    n_kinds = len(count)
    up, down = np.empty(_SETS), np.empty(_SETS)
    squares, cubes = np.empty(_UNROLL), np.empty(_UNROLL)
    for draw in range(len(mine)):
        squares[:] = cubes[:] = 0.0
        for start in range(0, n_kinds, _SETS):
            stop = min(start + _SETS, n_kinds)
            up[:] = down[:] = 0.0
            for j in range(len(high)):
                first, second = of_first[draw, j], of_second[draw, j]
                _add(high[j, start:stop], low[j, start:stop], first, second, up, down)
            _raise(mine[draw, start:stop], count[start:stop], up, down)
            for k in range(0, _SETS, _UNROLL):
                for lane in range(_UNROLL):
                    squares[lane] += down[k + lane]
                    cubes[lane] += up[k + lane]
        sums[draw, 0], sums[draw, 1] = squares.sum(), cubes.sum()
