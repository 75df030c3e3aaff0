"""Critical bands and p-values of many statistics from one set of draws, singly and jointly.

Jointly, each tail is compared with the largest statistic of every draw (max-T), each over a
quantile of its own: see ``multiplicity``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm.inference.multiplicity import order_tails, scale_tails
from fairperm.inference.null import MANY_UNDEFINED, tie_tolerance

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_ROUNDING = 1e-9  # of a number of draws
_AT_ONCE = 1 << 17  # statistics that are compared together: as many as a cache holds
_OUTWARDS: Mapping[str, Mapping[str, np.ufunc]] = {  # by alternative, what is large in each tail
    "two-sided": {"above": np.positive, "below": np.negative},
    "symmetric": {"both": np.abs},
    "greater": {"above": np.positive},
    "less": {"below": np.negative},
}


@dataclass(frozen=True, slots=True)
class Bands:
    """P-values and critical gaps of each statistic, singly and jointly.

    Attributes
    ----------
    pvalue, adjusted_pvalue
        P-value of each statistic, and by single-step max-T among those tested jointly.
    band, joint_band
        The lowest and the highest gap that is not significant, singly and jointly.
    joint
        Whether each statistic is tested jointly.
    global_pvalue
        The smallest of the adjusted p-values.
    tails
        The tails that are compared: "above", "below", these two, or "both" for sizes.
    error
        Standard error of the observed gaps.
    """

    pvalue: Array
    adjusted_pvalue: Array
    band: tuple[Array, Array]
    joint_band: tuple[Array, Array]
    joint: NDArray[np.bool_]
    global_pvalue: float
    tails: Mapping[str, _Tail]
    error: Array


@dataclass(frozen=True, slots=True)
class _Tail:
    """One tail of every statistic, outwards: S above zero, −S below it, or |S|.

    Attributes
    ----------
    observed
        The statistics of the sample.
    tolerance
        By how much ties may differ.
    scale
        What each statistic is divided by for the largest of a draw.
    single_pvalue, critical
        One-sided p-value of each statistic, and what it must exceed, by itself.
    largest
        The largest scaled statistic of those tested jointly, for each draw.
    """

    observed: Array
    tolerance: Array
    scale: Array
    single_pvalue: Array
    critical: Array
    largest: Array

    def slack(self, joint: NDArray[np.bool_]) -> float:
        """Return by how much scaled ties may differ."""
        return float((self.tolerance / self.scale)[joint].max(initial=0.0))


def bands(
    draws: Array, statistic: Array, error: Array, span: Array, alpha: float, alternative: str
) -> Bands:
    """Compare observed statistics with those of every draw (axis 0).

    ``error`` is the standard error of the observed gaps, ``span`` the size of the metric's values.
    A two-sided p-value is twice that of the smaller tail; a symmetric one compares sizes. A
    statistic that is undefined (NaN) in the sample is not tested. An undefined draw counts as
    extreme; statistics that are undefined in more than 1 % of the draws are only tested singly.
    (Their choice is the same for all permutations of the sample, so it does not affect the level.)
    """
    tested = ~np.isnan(statistic)
    # with more undefined draws, these alone would decide the maximum
    joint = tested & (np.isnan(draws).mean(axis=0) <= MANY_UNDEFINED)
    pairs = zip(statistic, error, strict=True)
    tolerance = np.array([tie_tolerance(float(s), span, np.array([e])) for s, e in pairs])
    outwards = _OUTWARDS[alternative]
    tails = {
        side: _make_tail(draws, of_side, statistic, tolerance, joint, alpha / len(outwards))
        for side, of_side in outwards.items()
    }
    ((adjusted, joint_band),) = _join([joint], [tails], [error], alpha)
    single = _combine([tail.single_pvalue for tail in tails.values()])
    critical = {side: tail.critical + tail.tolerance for side, tail in tails.items()}
    return Bands(
        pvalue=np.where(tested, single, np.nan),
        adjusted_pvalue=adjusted,
        band=_band(tested, critical, error),
        joint_band=joint_band,
        joint=joint,
        global_pvalue=float(adjusted[joint].min()) if joint.any() else math.nan,
        tails=tails,
        error=error,
    )


def join_bands(every: Sequence[Bands], alpha: float) -> list[tuple[Array, tuple[Array, Array]]]:
    """Return p-values and bands by max-T over several sets of statistics of the same draws.

    Statistics that are only tested singly in their own set have none.
    """
    return _join(
        [one.joint for one in every],
        [one.tails for one in every],
        [one.error for one in every],
        alpha,
    )


def _join(
    joint: Sequence[NDArray[np.bool_]],
    tails: Sequence[Mapping[str, _Tail]],
    error: Sequence[Array],
    alpha: float,
) -> list[tuple[Array, tuple[Array, Array]]]:
    """Return p-values and bands by the largest of all sets in each tail."""
    pvalues: list[list[Array]] = [[] for _ in joint]
    critical: list[dict[str, Array]] = [{} for _ in joint]
    for side in tails[0]:
        sets = [of_set[side] for of_set in tails]
        largest = np.max([tail.largest for tail in sets], axis=0)
        slack = max(tail.slack(which) for tail, which in zip(sets, joint, strict=True))
        limit = _critical(np.sort(largest)[None], alpha / len(tails[0]))[0] + slack
        for place, tail in enumerate(sets):
            least = tail.observed / tail.scale - slack
            pvalues[place].append(_pvalues(np.sort(largest), least))
            critical[place][side] = limit * tail.scale
    return [
        (np.where(which, _combine(p), np.nan), _band(which, limits, e))
        for which, p, limits, e in zip(joint, pvalues, critical, error, strict=True)
    ]


def _make_tail(
    draws: Array,
    outwards: np.ufunc,
    statistic: Array,
    tolerance: Array,
    joint: NDArray[np.bool_],
    alpha: float,
) -> _Tail:
    observed = outwards(statistic)
    pvalue, critical, scale = (np.empty(len(statistic)) for _ in range(3))
    largest = np.full(len(draws), -math.inf)
    for some in _split(draws):
        values = outwards(draws[:, some].T, order="C")
        # undefined is extreme
        extreme = len(draws) - (values < (observed - tolerance)[some, None]).sum(axis=1)
        pvalue[some] = (extreme + 1) / (len(draws) + 1)
        ascending = order_tails(values, len(draws) - _count_extreme(len(draws), alpha))
        critical[some] = _critical(ascending, alpha)
        scale[some] = scale_tails(ascending, observed[some]) if outwards is not np.abs else 1.0
        values /= scale[some, None]
        np.maximum(largest, values[joint[some]].max(axis=0, initial=-math.inf), out=largest)
    return _Tail(observed, tolerance, scale, pvalue, critical, largest)


def _split(draws: Array) -> Iterator[slice]:
    """Yield some columns after the other: few enough for a copy of them."""
    n, columns = draws.shape
    step = max(1, _AT_ONCE // max(n, 1))
    for start in range(0, columns, step):
        yield slice(start, min(start + step, columns))


def _pvalues(ascending: Array, least: Array) -> Array:
    """Return (b + 1)/(B + 1) for b draws that are undefined or at least ``least``."""
    n = len(ascending)
    return (n - np.searchsorted(ascending, least) + 1) / (n + 1)


def _combine(pvalues: Sequence[Array]) -> Array:
    """Return the smallest p-value of the tails times their number, at most 1."""
    smallest: Array = np.min(pvalues, axis=0)
    return np.minimum(1.0, len(pvalues) * smallest)


def _count_extreme(n: int, alpha: float) -> int:
    """Return how many of n draws and the sample may be extreme for a p-value of ``alpha``."""
    return math.floor(alpha * (n + 1) + _ROUNDING)


def _critical(ascending: Array, alpha: float) -> Array:
    """Return the value that a statistic must exceed for its p-value to be at most ``alpha``."""
    n = ascending.shape[1]
    most = _count_extreme(n, alpha)
    if most == 0:
        return np.full(len(ascending), math.inf)
    critical = ascending[:, n - most]
    return np.where(np.isnan(critical), math.inf, critical)


def _band(
    shown: NDArray[np.bool_], critical: Mapping[str, Array], error: Array
) -> tuple[Array, Array]:
    """Return the band around zero from the critical values of its sides."""
    everywhere = critical.get("both", np.full_like(error, math.inf))
    with np.errstate(invalid="ignore"):  # an infinite one has no finite reach even over no error
        below, above = (
            np.where(shown, np.where(np.isfinite(one), one * error, math.inf), np.nan)
            for one in (critical.get(side, everywhere) for side in ("below", "above"))
        )
    return -below, above
