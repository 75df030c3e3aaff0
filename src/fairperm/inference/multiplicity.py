"""P-values adjusted for multiple tests."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from fairperm._utils.arrays import Array
from fairperm.inference.null import TIE, snap_pvalue

_SCALING_LEVEL = 0.975  # of the quantile that a tail is divided by
_ROUNDING = 1e-9  # of a number of draws
OUTWARDS: Mapping[str, Mapping[str, np.ufunc]] = {  # by alternative, what is large in each tail
    "two-sided": {"above": np.positive, "below": np.negative},
    "symmetric": {"both": np.abs},
    "greater": {"above": np.positive},
    "less": {"below": np.negative},
}


def adjust_pvalues(pvalues: Array, method: str | None) -> Array:
    """Return adjusted p-values: rejecting those up to alpha controls the method's error rate.

    "holm" (Holm 1979) controls the probability of any false rejection, "bh" (Benjamini and
    Hochberg 1995) the expected share of false ones among the rejections if the tests are
    independent or positively dependent, "by" (Benjamini and Yekutieli 2001) that share under any
    dependence. None adjusts nothing.
    """
    n = len(pvalues)
    if method is None or n == 0:
        return pvalues
    order = np.argsort(pvalues, kind="stable")
    ordered = pvalues[order]
    rank = np.arange(1, n + 1)
    if method == "holm":
        ordered = np.maximum.accumulate((n - rank + 1) * ordered)
    else:
        factor = np.sum(1 / rank) if method == "by" else 1.0
        ordered = np.minimum.accumulate((factor * n / rank * ordered)[::-1])[::-1]
    result = np.empty(n)
    result[order] = [min(snap_pvalue(one), 1.0) for one in ordered.tolist()]
    return result


def interval_level(pvalues: Array, method: str | None, alpha: float) -> float:
    """Return the level of intervals that agree with adjusted p-values.

    For "holm" it is Bonferroni's: all intervals together miss a value with probability
    alpha at most. For "bh" and "by" it depends on the number of rejections: among the intervals of
    rejected hypotheses, the expected share that miss is alpha at most (Benjamini and Yekutieli,
    False discovery rate-adjusted multiple confidence intervals, JASA 100, 2005).
    """
    n = max(len(pvalues), 1)
    if method is None:
        return 1 - alpha
    if method not in {"bh", "by"}:
        return 1 - alpha / n
    factor = float(np.sum(1 / np.arange(1, n + 1))) if method == "by" else 1.0
    n_rejected = int((adjust_pvalues(pvalues, method) <= alpha).sum())
    return 1 - alpha * max(n_rejected, 1) / (n * factor)


def order_tails(draws: Array, *places: int) -> Array:
    """Return draws (axis 1) ascending at ``places`` and where `scale_tails` reads; NaN last."""
    n = draws.shape[1]
    rank = _scaling_rank(n)
    read = [place for place in (rank - 2, rank - 1, *places) if 0 <= place < n]
    ordered: Array = np.partition(draws, read, axis=1)
    return ordered


def scale_tails(ascending: Array, observed: Array) -> Array:
    """Return what each statistic (axis 0) is divided by before the largest of a draw is taken.

    It is a high quantile of the draws (axis 1, from `order_tails`) and the sample together, and
    hence the same for all permutations of the sample; 1 if that is no positive number. Without it,
    those with the longest tails would set the critical value for all, and a small group that does
    worse would hardly be found.
    """
    n = ascending.shape[1]
    rank = _scaling_rank(n)
    below = ascending[:, rank - 2] if rank >= 2 else np.full(len(ascending), -math.inf)
    above = ascending[:, rank - 1] if rank <= n else np.full(len(ascending), math.inf)
    quantile = np.where(np.isnan(above), math.inf, np.fmin(np.fmax(observed, below), above))
    return np.where(np.isfinite(quantile) & (quantile > 0), quantile, 1.0)


def _scaling_rank(n: int) -> int:
    return math.ceil(_SCALING_LEVEL * (n + 1) - _ROUNDING)  # among n draws and the sample


def max_t(statistic: Array, permuted: Array, rounding: Array, alternative: str) -> Array:
    """Return p-values by step-down max-T: of both tails, twice the smaller."""
    # S, −S or both are scaled by a quantile of their own; |S| has one tail
    pvalues = []
    for outwards in OUTWARDS[alternative].values():
        mine, drawn, scale = outwards(statistic), outwards(permuted), np.ones_like(statistic)
        if outwards is not np.abs:
            scale = scale_tails(order_tails(drawn.T), mine)
        pvalues.append(step_down_max_t(mine / scale, drawn / scale, rounding / scale))
    smallest: Array = np.min(pvalues, axis=0)
    return np.minimum(1.0, len(pvalues) * smallest)


def step_down_max_t(observed: Array, permuted: Array, rounding: Array) -> Array:
    """Return the p-values of Westfall and Young's (1993) step-down max-T.

    ``observed`` are the statistics of the hypotheses, large ones extreme, ``permuted`` those of the
    same draws for all of them (axis 0 the draws). The largest statistic is compared with the
    largest of every draw, the next with the largest of those left, and so on. Undefined draws
    count as infinite. A hypothesis whose own statistic is undefined is not tested: its p-value is
    1, and no other depends on it. Rounding errors are relative to the statistics or to
    ``rounding``, the size of the metric in standard errors, whichever is larger.
    """
    result = np.ones(len(observed))
    tested = np.flatnonzero(~np.isnan(observed))
    order = tested[np.argsort(-observed[tested], kind="stable")]
    ordered = observed[order]
    draws = np.where(np.isnan(permuted), np.inf, permuted)[:, order]
    largest_left = np.maximum.accumulate(draws[:, ::-1], axis=1)[:, ::-1]
    tolerance = np.where(np.isfinite(ordered), TIE * (1 + np.abs(ordered) + rounding[order]), 0.0)
    exceeding = (largest_left >= ordered - tolerance).sum(axis=0)
    result[order] = np.maximum.accumulate((exceeding + 1) / (len(draws) + 1))
    return result
