"""P-values adjusted for multiple tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm.inference.null import TIE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


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
    result[order] = np.minimum(ordered, 1.0)
    return result


def step_down_max_t(observed: Array, permuted: Array, rounding: Array) -> Array:
    """Return the p-values of Westfall and Young's (1993) step-down max-T.

    ``observed`` are the absolute statistics of the hypotheses, ``permuted`` those of the same
    draws for all of them (axis 0 the draws). The largest statistic is compared with the largest
    of every draw, the next with the largest of those left, and so on. Undefined draws count as
    infinite. A hypothesis whose own statistic is undefined is not tested: its p-value is 1, and
    no other depends on it. Rounding errors are relative to the statistics or to ``rounding``, the
    size of the metric in standard errors, whichever is larger.
    """
    result = np.ones(len(observed))
    tested = np.flatnonzero(~np.isnan(observed))
    order = tested[np.argsort(-observed[tested], kind="stable")]
    ordered = observed[order]
    draws = np.where(np.isnan(permuted), np.inf, permuted)[:, order]
    largest_left = np.maximum.accumulate(draws[:, ::-1], axis=1)[:, ::-1]
    tolerance = np.where(np.isfinite(ordered), TIE * (1 + ordered + rounding[order]), 0.0)
    exceeding = (largest_left >= ordered - tolerance).sum(axis=0)
    result[order] = np.maximum.accumulate((exceeding + 1) / (len(draws) + 1))
    return result
