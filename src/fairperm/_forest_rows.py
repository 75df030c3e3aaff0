"""What a forest plot draws and tells of each comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairperm._chart_parts import LONGEST_TOLD, SHAPES, finite, tidy, told, told_p

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Row = Mapping[str, Any]

TOLD = {
    "attribute": "attribute",
    "metric": "metric",
    "first": "first group",
    "second": "second group",
    "first_told": "first group's value",
    "second_told": "second group's value",
    "gap_told": "gap [interval]",
    "p_told": "p",
    "adjusted_told": "adjusted p",
    "margin_told": "margin",
    "detectable_told": "detectable gap (80 % power)",
    "verdict": "verdict",
    "reason": "reason",
}


def reach_of(row: Row) -> Iterator[float]:
    """Yield how far a gap reaches; not the side on which an interval is open, or all but open."""
    gap = finite(row["difference"])
    margin = finite(row.get("margin")) or 0.0
    yield from (-margin, margin)
    if gap is None:
        return
    ends = finite(row["difference_low"]), finite(row["difference_high"])
    reaches = [abs(gap - one) for one in ends if one is not None]
    yield gap
    for end in ends:
        if end is not None and abs(end - gap) <= 8 * min(reaches) + abs(gap):
            yield end


def line_of(row: Row, low: float, high: float) -> dict[str, Any]:
    """Return what is drawn and told of a comparison."""
    first, second = names_of(row)
    gap, verdict = finite(row["difference"]), str(row["verdict"])
    limits = row["difference_low"], row["difference_high"]
    ends = [
        far if finite(end) is None else min(max(float(end), low), high)
        for end, far in zip(limits, (low, high), strict=True)
    ]
    interval = f" [{told(limits[0], '+')}, {told(limits[1], '+')}]"
    is_inside = gap is not None and low <= gap <= high
    beyond = [
        name
        for name, end, drawn in zip(("from", "to"), limits, ends, strict=True)
        if gap is not None and finite(end) != drawn
    ]
    return {
        "attribute": tidy(row["attribute"]),
        "metric": tidy(row["metric"]),
        "first": first,
        "second": second,
        "gap": gap,
        "from": ends[0],
        "to": ends[1],
        "is_inside": is_inside,
        "open": beyond,
        "verdict": tidy(verdict, 40),
        "style": verdict if verdict in SHAPES else "too small",
        "reason": tidy(row["reason"], 2 * LONGEST_TOLD) if row["reason"] else "",
        "gap_short": told(gap, "+", small=2),
        "gap_told": "no value" if gap is None else told(gap, "+") + interval,
        "p_told": told_p(row["pvalue"]),
        "adjusted_told": told_p(row["adjusted_pvalue"]),
        "margin_told": told(row.get("margin")),
        "detectable_told": told(row.get("detectable_gap")),
        **{f"{place}_told": _value(row, place) for place in ("first", "second")},
    }


def _value(row: Row, place: str) -> str:
    """Return a group's value with what it was counted among."""
    value = told(row[f"{place}_value"])
    top, among = finite(row.get(f"{place}_numerator")), finite(row.get(f"{place}_denominator"))
    rows = finite(row.get(f"{place}_rows"))
    if top is not None and among is not None:
        value += f" = {top:,.6g} of {among:,.6g}"
    return value if rows is None else f"{value} ({rows:,.0f} rows)"


def _name(group: object) -> str:
    return ", ".join(map(str, group)) if isinstance(group, tuple) else str(group)


def names_of(row: Row) -> tuple[str, str]:
    """Return what the two groups are called."""
    return tidy(_name(row["first_group"])), tidy(_name(row["second_group"]))
