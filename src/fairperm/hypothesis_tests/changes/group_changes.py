"""The change of the value of one group, with a test of its own."""

from __future__ import annotations

import math

import numpy as np

from fairperm._utils.arrays import Array, Integers
from fairperm.hypothesis_tests.results.changes import GroupChange
from fairperm.inference.null import drop_rounding, normal_pvalue


def compare_values(
    span: float,
    old: float,
    new: float,
    error: float,
    exact_pvalue: float | None = None,
    n_clusters: int | None = None,
) -> GroupChange:
    """Return the change with its exact p-value, or that of the change over its standard error.

    Clusters may be few, such as four names: theirs is Student's t, of one degree less.
    """
    size = span if math.isfinite(span) else max(abs(old), abs(new))
    change = float(drop_rounding(np.array(new - old), size))
    pvalue = math.nan
    if exact_pvalue is not None:
        pvalue = exact_pvalue
    elif change == 0 and error == 0:
        pvalue = 1.0
    elif error > 0 and n_clusters is not None:
        from scipy.special import stdtr  # rates load nothing heavy

        pvalue = float(2 * stdtr(max(n_clusters - 1, 1), -abs(change) / error))
    elif error > 0:
        pvalue = normal_pvalue(change / error, "two-sided").value
    return GroupChange(
        old=old,
        new=new,
        change=change,
        standard_error=error,
        pvalue=pvalue,
        exact=exact_pvalue is not None,
    )


def mcnemar(moved: Array, count: Integers) -> float:
    """Return the exact p-value of McNemar's test: rows change both ways alike."""
    from scipy.special import bdtr

    up, down = int(count[moved > 0].sum()), int(count[moved < 0].sum())
    return float(min(1.0, 2 * bdtr(min(up, down), up + down, 0.5)))  # binomial, symmetric
