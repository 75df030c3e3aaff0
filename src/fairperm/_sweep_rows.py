"""What a plot of a sweep draws and tells at each threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairperm._chart_parts import finite, packed, tidy, told, told_p

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NO_TEST = {
    "trivial": "Every row of both groups is predicted alike: there is nothing to test.",
    "undefined": "The metric has no value in one of the groups: there is no test.",
}
TOLD = {
    "threshold": "threshold",
    "metric": "metric",
    "first_told": "first group",
    "second_told": "second group",
    "gap_told": "gap",
    "narrow_told": "band of this threshold",
    "wide_told": "band of all thresholds",
    "p_told": "p",
    "adjusted_told": "p, adjusted for all thresholds",
    "verdict": "in words",
}


def line_at(
    row: Mapping[str, Any], names: Sequence[str], alpha: float, letters: int
) -> dict[str, Any]:
    """Return what is drawn and told at one threshold, in lines of so many letters."""
    gap, p, adjusted = (finite(row[key]) for key in ("difference", "pvalue", "adjusted_pvalue"))
    bands = {
        name: (finite(row[f"{column}_lower"]), finite(row[f"{column}_upper"]))
        for name, column in (("narrow", "pointwise"), ("wide", "simultaneous"))
    }
    narrow, wide = (_band(*limits) for limits in bands.values())
    kind = _kind(gap, p, adjusted, alpha)
    first, second = names
    values = told(row["value_first"]), told(row["value_second"])
    threshold = float(row["threshold"])
    verdict = _verdict(kind, str(row["status"]), narrow, wide, is_joint=adjusted is not None)
    numbers = [f"{first} {values[0]},", f"{second} {values[1]},", f"gap {told(gap, '+')}"]
    return {
        "threshold": threshold,
        "metric": tidy(row["metric"]),
        "kind": kind,
        "gap": gap,
        **{f"{name}_low": low for name, (low, _) in bands.items()},
        **{f"{name}_high": high for name, (_, high) in bands.items()},
        "first_told": f"{values[0]} ({first})",
        "second_told": f"{values[1]} ({second})",
        "gap_told": told(gap, "+"),
        "narrow_told": narrow,
        "wide_told": wide,
        "p_told": told_p(p),
        "adjusted_told": told_p(adjusted),
        "verdict": verdict,
        "at_lines": "\n".join(packed([f"At {threshold:.6g}:", *numbers], letters)),
        "verdict_lines": "\n".join(packed(verdict.split(), letters)),
    }


def _kind(gap: float | None, p: float | None, adjusted: float | None, alpha: float) -> str:
    """Return how far out the gap is: within its bands, beyond one of them or both; or no test."""
    if gap is None or p is None:
        return "none"
    if adjusted is not None and adjusted <= alpha:
        return "outside"
    return "maybe" if p <= alpha else "inside"


def _verdict(kind: str, status: str, narrow: str, wide: str, *, is_joint: bool) -> str:
    """Say so in words; a threshold that is not joint has no part in the band of all."""
    if kind == "none":
        return _NO_TEST.get(status, "There is no test at this threshold.")
    if kind == "outside":
        return f"Beyond what chance explains, even over all thresholds ({wide})."
    if kind == "maybe":
        if not is_joint:
            return f"Beyond chance ({narrow}) at this threshold; too sparse for the joint band."
        chosen = f"Beyond chance if this threshold was chosen beforehand ({narrow})"
        return f"{chosen}, not if it was searched for ({wide})."
    if not is_joint:
        return f"Chance alone can explain it ({narrow}); too sparse for the joint band."
    return f"Chance alone can explain it ({narrow} here, {wide} over all)."


def _band(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "–"
    is_even = abs(low + high) <= 1e-9 * abs(high - low)
    return f"±{told(high)}" if is_even else f"{told(low, '+')} to {told(high, '+')}"
