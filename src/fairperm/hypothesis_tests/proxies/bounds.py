"""Sharp bounds on the gap of groups known as probabilities, without an assumption.

In a cell of equal proxies a share w of the rows belongs to a group; which of them is not known. The
group's value is largest if these are the rows that raise it most (Kallus, Mao and Zhou, 2020). For
rates and means both groups can have their extremes at once, so the bounds on the gap are sharp.

The rows that are taken lie above a threshold. Chosen by the same rows, it would make the bounds too
narrow; any other one makes them wider (weak duality). Each half of a cell therefore has its
threshold c from the other half. A row then adds w·u_c, and u_i − u_c where it lies above c. These
are terms of an ordinary mean, with its standard error.
"""

from __future__ import annotations

import numpy as np

from fairperm._utils.arrays import Array, Codes
from fairperm._utils.formatting import format_count
from fairperm._utils.sorting import run_starts
from fairperm.errors import InputError, Shown, argument
from fairperm.hypothesis_tests.small_groups import MIN_INFLUENTIAL_ROWS
from fairperm.inference.null import normal_quantile
from fairperm.metrics.definition import Metric

Interval = tuple[float, float]
_ALIKE = 1e-6  # probabilities so near to each other are equal


def bound_gap(
    metric: Metric,
    shares: Array,
    contributions: Array,
    cell: Codes,
    cluster: Codes | None,
    level: float,
    rng: np.random.Generator,
) -> tuple[Interval, Interval]:
    """Return the bounds on the gap of two groups, and an interval that holds them at this level."""
    _check_cells(metric, shares, contributions, cell)
    raises = contributions @ metric.gradient(contributions.sum(axis=0))
    mixed = np.lexsort([rng.random(len(cell)), cell])
    half = np.empty(len(cell), np.int64)
    half[mixed] = np.arange(len(cell)) % 2
    order = np.lexsort([-raises, half, cell])
    starts = run_starts(cell[order], half[order])
    raises, contributions = raises[order], contributions[order]
    ends, reaches = [], []
    for sides in ((-1, 1), (1, -1)):
        (first, moves_first), (second, moves_second) = (
            _extreme(metric, share[order], raises, contributions, starts, side)
            for share, side in zip(shares, sides, strict=True)
        )
        moved = moves_first - moves_second
        if cluster is not None:
            moved = np.bincount(cluster[order], moved).astype(np.float64)
        ends.append(first - second)
        reaches.append(normal_quantile(level) * float(np.sqrt((moved**2).sum())))
    low, high = max(ends[0], -metric.span), min(ends[1], metric.span)
    return (low, high), (
        max(low - reaches[0], -metric.span),
        min(high + reaches[1], metric.span),
    )


def _check_cells(metric: Metric, shares: Array, contributions: Array, cell: Codes) -> None:
    """Raise InputError for a metric without bounds, or cells that are unlike or too small."""
    is_mean = contributions.shape[1] == 2 and bool((contributions[:, 1] == 1).all())
    if not (is_mean or metric.has_denominator):
        rule = f"a rate or the mean of a number of each row with {argument('proxy')}"
        raise InputError("metric", rule, metric.name, f"Leave out {argument('proxy')}.")
    order = np.argsort(cell, kind="stable")
    starts = run_starts(cell[order])
    sizes = np.diff(np.append(starts, len(cell)))
    shares = shares[:, order]
    ranges = np.maximum.reduceat(shares, starts, 1) - np.minimum.reduceat(shares, starts, 1)
    hint = "Round the probabilities, and name cells by what is left of them."
    if n := int((ranges > _ALIKE).any(axis=0).sum()):
        got = Shown(f"different ones in {format_count(n, 'cell')} of {len(starts):,}")
        raise InputError("proxy", "a column of cells of equal probabilities", got, hint)
    if n := int((sizes < MIN_INFLUENTIAL_ROWS).sum()):
        got = Shown(f"{format_count(n, 'cell')} of {len(starts):,} with fewer")
        rule = f"a column of cells of at least {MIN_INFLUENTIAL_ROWS} rows"
        raise InputError("proxy", rule, got, hint)


def _extreme(
    metric: Metric, share: Array, raises: Array, contributions: Array, starts: Codes, side: int
) -> tuple[float, Array]:
    """Return a group's largest (``side`` 1) or smallest value, and the rows' influences on it.

    Every two runs of rows are the halves of a cell, with those that raise the value most first.
    """
    n = len(share)
    stops = np.append(starts[1:], n)
    sizes = stops - starts
    # the last of its rows that the group takes, which the other half has as its threshold
    last = np.clip(np.ceil(share[starts] * sizes) - 1, 0, sizes - 1).astype(np.intp)
    place = starts + last if side > 0 else stops - 1 - last
    threshold = np.repeat(place.reshape(-1, 2)[:, ::-1].ravel(), sizes)
    above = side * (raises - raises[threshold]) > 0
    limit = contributions[threshold]
    added = share[:, None] * limit + np.where(above[:, None], contributions - limit, 0.0)
    is_known = (share == 0) | (share == 1)
    added[is_known] = share[is_known, None] * contributions[is_known]
    totals = added.sum(axis=0)
    return float(metric.estimate(totals)), np.asarray(added @ metric.gradient(totals))
