"""The null distribution of a statistic, with the observed statistic."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.arrays import Array, Booleans, Places
from fairperm._utils.checks import ALTERNATIVES, choice
from fairperm._utils.formatting import (
    format_interval,
    format_metric,
    format_name,
    format_number,
    format_percent,
    name_of_gap,
    state_pvalue,
)
from fairperm.errors import InputError
from fairperm.inference.null import find_tail
from fairperm.plots.parts import (
    as_finite,
    as_layers,
    charted,
    draw_rows,
    fit_plot,
    head_chart,
    number,
    pixels,
    text,
    tooltip,
)

if TYPE_CHECKING:
    from fairperm.plots.parts import Numbers, Spec

_BINS = 60
_NEAR = 1e-9  # for drawing, ties may be a bit apart


@charted(as_layers)
def null_distribution(
    statistics: Numbers,
    observed: float,
    *,
    probabilities: Numbers | None = None,
    alternative: str = "two-sided",
    pvalue: float | None = None,
    metric: str = "",
    groups: tuple[object, object] | None = None,
    studentized: bool = True,
    draws: str = "permutations",
    title: str | None = None,
    width: int = 700,
    height: int = 220,
    mode: str = "auto",
) -> Spec:
    """Draw the null distribution of a statistic, with the observed statistic.

    Parameters
    ----------
    statistics : array-like
        The statistic of each permutation. Values that are not finite are not drawn; the text
        counts them.
    observed : float
        The statistic of the sample.
    probabilities : array-like, optional
        Probabilities of the permutations, if they are not equally likely.
    alternative : {"two-sided", "symmetric", "greater", "less"}
        Which draws are coloured: those of the smaller tail, whose share is doubled; of both
        tails, as far from zero as the observed statistic; or of one side.
    pvalue, metric, groups
        For the text, if given.
    studentized : bool
        Whether the statistic is the gap divided by its standard error, or the gap itself.
    draws : str
        What the statistics are of, in the plural.
    title : str, optional
        Title in place of the default one.
    width, height : int
        Width of the whole chart and height of the plot, in pixels.
    mode : {"auto", "light", "dark"}
        Colours of the page; see :func:`theme`.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> import fairperm
    >>> chart = fairperm.plots.null_distribution([-1.2, -0.3, 0.4, 1.1], 1.1, pvalue=0.5)
    """
    choice("alternative", alternative, ALTERNATIVES)
    values = np.asarray(statistics, dtype=np.float64).ravel()
    weights = np.full(len(values), 1 / max(len(values), 1))
    if probabilities is not None:
        weights = np.asarray(probabilities, dtype=np.float64).ravel()
        if len(weights) != len(values):
            rule = f"as many as statistics ({len(values):,})"
            raise InputError("probabilities", rule, len(weights))
    drawn, place = np.isfinite(values), as_finite(observed)
    near = _NEAR * (1 + abs(place or 0.0))
    is_tail = find_tail(values, observed, alternative, near, lambda one: float(weights[one].sum()))
    limits = _choose_limits(values[drawn], weights[drawn], place)
    edges = _choose_edges(limits, place, alternative)
    bars = _make_bars(values[drawn], weights[drawn], is_tail[drawn], edges)
    statistic = "gap divided by its standard error" if studentized else "gap"
    x: Spec = {
        "scale": {"domain": list(limits), "nice": False, "zero": False},
        "axis": {
            "title": f"Statistic ({statistic}) if only chance acts",
            "grid": False,
            "tickCount": 9,
        },
    }
    total = sum(float(weights[one].sum()) for one in (is_tail & drawn, ~is_tail & drawn))
    top = max((one["to_share"] for one in bars), default=total) or 1.0
    encoding = {
        "x": number("from", **x),
        "x2": {"field": "to"},
        "y": number(
            "from_share",
            scale={"domain": [0, 1.05 * top], "nice": False},
            axis={"title": f"Share of {draws}", "format": "~%", "tickCount": 4},
        ),
        "y2": {"field": "to_share"},
        "tooltip": tooltip({"span": "statistic", "share": "share"}),
    }
    layers = [
        draw_rows(
            (one for one in bars if one["kind"] == kind), "rect", encoding, style=f"fp-{kind}"
        )
        for kind in ("bar", "tail")
    ]
    layers += _mark_observed(place, limits, alternative, number("at", **x))
    n = "all" if probabilities is not None else f"{len(values):,} random"
    p = "" if as_finite(pvalue) is None else f" ({state_pvalue(pvalue)})"
    subject = [format_name(format_metric(metric), 50)] if metric else []
    subject += [name_of_gap(*groups, 24)] if groups else []
    tails, lost = (float(weights[one].sum()) for one in (is_tail, ~drawn))
    share = format_percent(tails)
    if tails == 0:  # all permutations: the tail is too small for the sum, but not empty
        share = "none" if probabilities is None else format_percent(np.finfo(float).tiny)
    is_doubled = alternative == "two-sided"
    rule = "p is twice that" if is_doubled else ""
    if is_doubled and probabilities is None:
        rule += ", counting the observed data"
    undrawn = "undefined" if np.isnan(observed) else "infinite"
    head = head_chart(
        mode,
        title or "Could chance alone explain this gap?",
        ", ".join(subject),
        f"Coloured: {share} of {n} {draws}, at least as extreme as the "
        f"observed statistic{' on its side' if is_doubled else p}.",
        f"{rule}{p}." if is_doubled else "",
        f"{format_percent(lost)} have no finite statistic and are not drawn." if lost else "",
        f"The observed statistic is {undrawn}." if place is None else "",
    )
    return {"layer": layers, **head, "width": fit_plot(width), "height": height}


def _choose_limits(values: Array, weights: Array, observed: float | None) -> tuple[float, float]:
    """Return the ends of the axis: most statistics and the observed one, unless it is far away."""
    if not len(values):
        reach = max(abs(observed or 0.0), 1.0)
        return -1.1 * reach, 1.1 * reach
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    ends = np.searchsorted(reached, np.array([0.0005, 0.9995]) * reached[-1])
    low, high = (float(one) for one in values[order[np.minimum(ends, len(values) - 1)]])
    if observed is not None:
        far = 2 * max(high - low, abs(low), abs(high))
        low, high = min(low, max(observed, -far)), max(high, min(observed, far))
    edge = 0.06 * (high - low) or 0.5
    return low - edge, high + edge


def _choose_edges(limits: tuple[float, float], observed: float | None, alternative: str) -> Array:
    """Return the edges of the bars, which if possible are also those of the tails."""
    low, high = limits
    step, start = (high - low) / _BINS, 0.0
    if observed is None or not low <= observed <= high:
        pass
    elif alternative != "symmetric":
        start = observed
    elif 2 * abs(observed) >= step:
        step = 2 * abs(observed) / round(2 * abs(observed) / step)
        start = abs(observed)
    first, last = np.floor((low - start) / step), np.ceil((high - start) / step)
    edges: Array = np.clip(start + np.arange(first, last + 1) * step, low, high)
    return edges


def _make_bars(
    values: Array, weights: Array, is_tail: Booleans, edges: Array
) -> list[dict[str, Any]]:
    """Return a histogram whose bars have their part in the tails at the bottom."""
    rounded = values.round(9)
    atoms = np.unique(rounded)
    atoms = atoms[(atoms >= edges[0]) & (atoms <= edges[-1])]
    if 0 < len(atoms) <= _BINS or _is_lattice(atoms):
        spans, bar_of = _group_atoms(atoms, (edges[-1] - edges[0]) / _BINS)
        place = bar_of[np.clip(np.searchsorted(atoms, rounded), 0, len(atoms) - 1)]
    else:
        spans = [(float(a), float(b)) for a, b in itertools.pairwise(edges)]
        place = np.clip(np.searchsorted(edges, values, "right") - 1, 0, len(spans) - 1)
    names = [format_interval(span, signed=True) for span in spans]
    if len(spans) > 1:
        names[0] = f"below {format_number(spans[0][1], signed=True)}"
        names[-1] = f"above {format_number(spans[-1][0], signed=True)}"
    tails = np.bincount(place, weights * is_tail, len(spans))
    totals = np.bincount(place, weights, len(spans))
    bars = []
    for i, (a, b) in enumerate(spans):
        parts = {"tail": (0.0, float(tails[i])), "bar": (float(tails[i]), float(totals[i]))}
        texts = {"span": names[i], "share": format_percent(float(totals[i]))}
        bars += [
            {"from": a, "to": b, "kind": kind, "from_share": bottom, "to_share": top, **texts}
            for kind, (bottom, top) in parts.items()
            if top - bottom > 1e-15
        ]
    return bars


def _is_lattice(atoms: Array) -> bool:
    """Whether values are equally spaced: then bars of another width would be uneven."""
    steps = np.diff(atoms)
    return 0 < len(steps) <= 10_000 and bool(steps.max() <= 1.2 * steps.min())


def _group_atoms(atoms: Array, step: float) -> tuple[list[tuple[float, float]], Places]:
    """Return bars of one value each, or of several neighbours, and the bar of each value."""
    per_bar = -(-len(atoms) // (2 * _BINS))
    bar_of = np.arange(len(atoms)) // per_bar
    half = 0.45 * min(float(np.diff(atoms).min(initial=np.inf)), 3 * step)
    half = max(half, 0.1 * step)
    ends = [atoms[bar_of == i][[0, -1]] for i in range(int(bar_of[-1]) + 1)]
    return [(float(a) - half, float(b) + half) for a, b in ends], bar_of


def _mark_observed(
    place: float | None, limits: tuple[float, float], alternative: str, x: Spec
) -> list[Spec]:
    """Return the line of the observed statistic, and its mirror image if sizes count."""
    if place is None:
        return []
    low, high = limits
    at = min(max(place, low), high)
    arrow = " →" if place > high else " ←" if place < low else ""
    share = (at - low) / (high - low)
    align = "right" if share > 0.8 else "left" if share < 0.2 else "center"
    label = f"observed {format_number(place, signed=True)}{arrow}"
    rows = [{"at": at, "observed": place, "label": label}]
    mirrored = [{"at": -place}] if alternative == "symmetric" and low <= -place <= high else []
    word = {"x": x, "y": pixels(-9), "text": text("label")}
    return [
        draw_rows(mirrored, "rule", {"x": x}, style="fp-mirror"),
        draw_rows(rows, "rule", {"x": x}, style="fp-observed"),
        draw_rows(rows, "text", word, style="fp-head", align=align),
    ]
