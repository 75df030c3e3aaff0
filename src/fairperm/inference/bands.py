"""Critical bands and p-values of many statistics from one set of draws, singly and jointly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm.inference.null import MANY_UNDEFINED, tie_tolerance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_ROUNDING = 1e-9  # of a number of draws


@dataclass(frozen=True, slots=True)
class Bands:
    """P-values and critical gaps of each statistic, singly and jointly.

    Attributes
    ----------
    pvalue, adjusted_pvalue
        P-value of each statistic, and by single-step max-T among those tested jointly.
    reach, joint_reach
        Largest gap that is not significant, singly and jointly.
    joint
        Whether each statistic is tested jointly.
    global_pvalue
        P-value of the largest of these.
    largest
        The largest of these in every draw.
    size, error, slack
        Size and standard error of the observed statistics, and by how much ties may differ.
    """

    pvalue: Array
    adjusted_pvalue: Array
    reach: Array
    joint_reach: Array
    joint: NDArray[np.bool_]
    global_pvalue: float
    largest: Array
    size: Array
    error: Array
    slack: float


def bands(sizes: Array, statistic: Array, error: Array, scale: Array, alpha: float) -> Bands:
    """Compare observed statistics with their sizes |S| in every draw (axis 0).

    ``error`` is the standard error of the observed gaps, ``scale`` the size of the metric's values.
    A statistic that is undefined (NaN) in the sample is not tested. An undefined draw counts as
    extreme; statistics that are undefined in more than 1 % of the draws are only tested singly.
    (Their choice is the same for all permutations of the sample, so it does not affect the level.)
    The draws, which can be many, are not copied but reordered in place.
    """
    tested = ~np.isnan(statistic)
    # with more undefined draws, these alone would decide the maximum
    joint = tested & (np.isnan(sizes).mean(axis=0) <= MANY_UNDEFINED)
    tolerance = np.array(
        [
            tie_tolerance(float(one), scale, np.array([over]))
            for one, over in zip(statistic, error, strict=True)
        ]
    )
    largest = sizes.max(axis=1, initial=0.0, where=joint)[:, None]
    slack, size = float(tolerance[joint].max(initial=0.0)), np.abs(statistic)
    adjusted = np.where(joint, _pvalues(largest, size - slack), np.nan)
    single = np.where(tested, _pvalues(sizes, size - tolerance), np.nan)
    return Bands(
        pvalue=single,
        adjusted_pvalue=adjusted,
        reach=_reach(tested, _critical(sizes, alpha) + tolerance, error),
        joint_reach=_reach(joint, _critical(largest.copy(), alpha) + slack, error),
        joint=joint,
        global_pvalue=float(adjusted[joint].min()) if joint.any() else math.nan,
        largest=largest,
        size=size,
        error=error,
        slack=slack,
    )


def join_bands(every: Sequence[Bands], alpha: float) -> list[tuple[Array, Array]]:
    """Return p-values and critical gaps by max-T over several sets of statistics of the same draws.

    Statistics that are only tested singly in their own set have none.
    """
    largest = np.max([one.largest for one in every], axis=0)
    slack = max(one.slack for one in every)
    critical = _critical(largest.copy(), alpha) + slack
    return [
        (
            np.where(one.joint, _pvalues(largest, one.size - slack), np.nan),
            _reach(one.joint, critical, one.error),
        )
        for one in every
    ]


def _pvalues(sizes: Array, least: Array) -> Array:
    """Return (b + 1)/(B + 1) for b draws that are undefined or at least ``least``."""
    n = len(sizes)
    if sizes.shape[1] == 1:  # one maximum for all
        ascending = np.sort(sizes[:, 0])  # NaN last: undefined is extreme
        extreme = n - np.searchsorted(ascending, least)
    else:
        extreme = n - np.count_nonzero(sizes < least, axis=0)
    return (extreme + 1) / (n + 1)


def _critical(sizes: Array, alpha: float) -> Array:
    """Return the size that a statistic must exceed for its p-value to be at most ``alpha``."""
    n = len(sizes)
    most = math.floor(alpha * (n + 1) + _ROUNDING)  # extreme draws, including the sample
    if most == 0:
        return np.full(sizes.shape[1], math.inf)
    sizes.partition(n - most, axis=0)  # NaN last: undefined is extreme
    critical = sizes[n - most]
    return np.where(np.isnan(critical), math.inf, critical)


def _reach(shown: NDArray[np.bool_], critical: Array, error: Array) -> Array:
    with np.errstate(invalid="ignore"):  # an infinite one has no finite reach even over no error
        reach = np.where(np.isfinite(critical), critical * error, math.inf)
    return np.where(shown, reach, np.nan)
