"""Sums that no order of the rows rounds otherwise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_SMALLEST = math.ulp(0.0)


def exact_sums(place: NDArray[np.integer[Any]], values: Array, n_places: int) -> Array:
    """Return the sum of the values at each place, rounded once, as by ``math.fsum``.

    Values are cut into pieces, each a multiple of some power of two so large that sums of as many
    pieces are exact.
    """
    bits = 52 - len(values).bit_length()
    sums = []
    rest = values
    while (largest := max(rest.max(initial=0.0), -rest.min(initial=0.0))) > 0:
        unit = max(math.ldexp(1.0, math.frexp(largest)[1] - bits), _SMALLEST)
        piece = np.rint(rest / unit) * unit
        sums.append(np.bincount(place, piece, n_places))
        rest = rest - piece
    return np.array([math.fsum(one[i] for one in sums) for i in range(n_places)])
