"""Hall's (1992) monotone transformation, which takes the skewness out of a studentized statistic.

With the skewness k of a gap T, its third cumulant over its standard error cubed, S = T/SE becomes

    H = S + k·S²/3 + k²·S³/27 + k/6.

With ``u = 1 + k·S/3`` its derivative by S is u², so H grows with S, and swapping the groups, which
flips the signs of S and k, flips that of H to the last bit.
"""

from __future__ import annotations

import numpy as np

from fairperm._utils.arrays import Array


def skewness(third: Array, error: Array) -> Array:
    """Return third cumulants over standard errors cubed; 0 over an error of zero or unknown."""
    # cumulants of independent parts add up, those of the second group with the opposite sign
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = third / error / error / error  # the cube of a small error might be zero
    return np.where((error > 0) & np.isfinite(found), found, 0.0)


def remove_skewness(statistic: Array, k: Array) -> Array:
    """Return H of studentized statistics with this skewness; infinite and NaN stay as they are."""
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite values
        v = k * statistic / 3
        found = statistic * (1 + v * (1 + v / 3)) + k / 6
    return np.where(np.isfinite(statistic), found, statistic)


def restore_skewness(transformed: Array, k: Array) -> Array:
    """Return the studentized statistics whose H, with this skewness, are these."""
    # S = 3/k·(∛(1 + x) − 1) with x = k·(H − k/6). A difference of cubes over that of their roots,
    # it needs no division by k, which may be 0.
    moved = transformed - k / 6
    with np.errstate(invalid="ignore", over="ignore"):
        root = np.cbrt(1 + k * moved)
        found = 3 * moved / (root * root + root + 1)
    return np.where(np.isfinite(transformed), found, transformed)
