"""Critical bands and p-values of many statistics from one set of draws, singly and jointly.

Jointly, each tail is compared with the largest statistic of every draw (max-T), each over a
quantile of its own: see ``multiplicity``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm.inference.multiplicity import OUTWARDS, order_tails, scale_tails
from fairperm.inference.null import MANY_UNDEFINED, normal_pvalue, normal_quantile, tie_tolerance
from fairperm.inference.skewness import restore_skewness

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairperm._utils.arrays import Array, Booleans

_ROUNDING = 1e-9  # of a number of draws
_CHUNK_SIZE = 1 << 17  # statistics that are compared together: as many as a cache holds


@dataclass(frozen=True, slots=True)
class Bands:
    """P-values and critical gaps of each statistic, singly and jointly."""

    # P-value of each statistic, and by single-step max-T among those tested jointly
    pvalue: Array
    adjusted_pvalue: Array
    # the lowest and the highest gap that is not significant, singly and jointly
    band: tuple[Array, Array]
    joint_band: tuple[Array, Array]
    joint: Booleans  # whether each statistic is tested jointly
    global_pvalue: float  # the smallest of the adjusted p-values
    # the tails that are compared: "above", "below", these two, or "both" for sizes
    tails: Mapping[str, _Tail]
    # standard error of the observed gaps, and the skewness that the statistics are without
    error: Array
    skewness: Array


@dataclass(frozen=True, slots=True)
class _Tail:
    """One tail of every statistic, outwards: S above zero, −S below it, or |S|."""

    observed: Array  # the statistics of the sample
    tolerance: Array  # by how much ties may differ
    # no p-value of a statistic is smaller, and no critical value less far out
    least_pvalue: Array
    least_critical: float
    scale: Array  # what each statistic is divided by for the largest of a draw
    # one-sided p-value of each statistic, and what it must exceed, by itself
    single_pvalue: Array
    critical: Array
    largest: Array  # the largest scaled statistic of those tested jointly, for each draw

    def slack(self, joint: Booleans) -> float:
        """Return by how much scaled ties may differ."""
        return float((self.tolerance / self.scale)[joint].max(initial=0.0))


def bands(
    draws: Array,
    statistic: Array,
    error: Array,
    span: Array,
    alpha: float,
    alternative: str,
    skewness: Array | None = None,
    *,
    has_normal_floor: bool = False,
) -> Bands:
    """Compare observed statistics with those of every draw (axis 0).

    ``error`` is the standard error of the observed gaps, ``span`` the size of the metric's values,
    ``skewness`` what the statistics are without. With ``has_normal_floor`` no tail has a p-value
    below the normal one.
    A two-sided p-value is twice that of the smaller tail; a symmetric one compares sizes. A
    statistic that is undefined (NaN) in the sample is not tested. An undefined draw counts as
    extreme; statistics that are undefined in more than 1 % of the draws are only tested singly.
    (Their choice is the same for all permutations of the sample, so it does not affect the level.)
    """
    tested = ~np.isnan(statistic)
    # with more undefined draws, these alone would decide the maximum
    joint = tested & (np.isnan(draws).mean(axis=0) <= MANY_UNDEFINED)
    skewness = np.zeros(len(statistic)) if skewness is None else skewness
    triples = zip(statistic, error, skewness, strict=True)
    tolerance = np.array(
        [tie_tolerance(float(s), span, np.array([e]), float(k)) for s, e, k in triples]
    )
    outwards = OUTWARDS[alternative]
    tails = {
        side: _make_tail(
            draws,
            of_side,
            statistic,
            tolerance,
            joint,
            alpha / len(outwards),
            side if has_normal_floor else None,
        )
        for side, of_side in outwards.items()
    }
    ((adjusted, joint_band),) = _join([joint], [tails], [error], [skewness], alpha)
    single = _combine([tail.single_pvalue for tail in tails.values()])
    critical = {side: tail.critical + tail.tolerance for side, tail in tails.items()}
    return Bands(
        pvalue=np.where(tested, single, np.nan),
        adjusted_pvalue=adjusted,
        band=_band(tested, critical, error, skewness),
        joint_band=joint_band,
        joint=joint,
        global_pvalue=float(adjusted[joint].min()) if joint.any() else math.nan,
        tails=tails,
        error=error,
        skewness=skewness,
    )


def join_bands(every: Sequence[Bands], alpha: float) -> list[tuple[Array, tuple[Array, Array]]]:
    """Return p-values and bands by max-T over several sets of statistics of the same draws."""
    # statistics that are only tested singly in their own set have none
    return _join(
        [one.joint for one in every],
        [one.tails for one in every],
        [one.error for one in every],
        [one.skewness for one in every],
        alpha,
    )


def _join(
    joint: Sequence[Booleans],
    tails: Sequence[Mapping[str, _Tail]],
    error: Sequence[Array],
    skewness: Sequence[Array],
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
            p = _pvalues(np.sort(largest), least)
            pvalues[place].append(np.maximum(p, tail.least_pvalue))
            critical[place][side] = np.maximum(limit * tail.scale, tail.least_critical)
    return [
        (np.where(which, _combine(p), np.nan), _band(which, limits, e, k))
        for which, p, limits, e, k in zip(joint, pvalues, critical, error, skewness, strict=True)
    ]


def _make_tail(
    draws: Array,
    outwards: np.ufunc,
    statistic: Array,
    tolerance: Array,
    joint: Booleans,
    alpha: float,
    floor: str | None,
) -> _Tail:
    """Return one tail; its ``floor`` is the normal limit of that side, if there is one."""
    observed = outwards(statistic)
    least_pvalue, least_critical = np.zeros(len(observed)), -math.inf
    if floor is not None:
        ordering = "symmetric" if floor == "both" else "greater"  # it is already outwards
        least_pvalue = np.array([normal_pvalue(float(s), ordering).value for s in observed])
        least_critical = normal_quantile(1 - alpha, ordering)
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
    return _Tail(
        observed,
        tolerance,
        least_pvalue,
        least_critical,
        scale,
        np.maximum(pvalue, least_pvalue),
        np.maximum(critical, least_critical),
        largest,
    )


def _split(draws: Array) -> Iterator[slice]:
    """Yield some columns after the other: few enough for a copy of them."""
    n, columns = draws.shape
    step = max(1, _CHUNK_SIZE // max(n, 1))
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
    shown: Booleans, critical: Mapping[str, Array], error: Array, skewness: Array
) -> tuple[Array, Array]:
    """Return the band around zero: the sides' critical values, which get their skewness back."""
    everywhere = critical.get("both", np.full_like(error, math.inf))
    with np.errstate(invalid="ignore"):  # an infinite one has no finite reach even over no error
        below, above = (
            np.where(shown, np.where(np.isfinite(one), one * error, math.inf), np.nan)
            for one in (
                _restore(critical.get("below", everywhere), -skewness),
                _restore(critical.get("above", everywhere), skewness),
            )
        )
    return -below, above


def _restore(critical: Array, skewness: Array) -> Array:
    return np.where(skewness == 0, critical, restore_skewness(critical, skewness))
