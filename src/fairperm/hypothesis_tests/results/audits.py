"""The rows of an audit: every comparison with its verdict. No computing here."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    Unit,
    Units,
    format_beside,
    format_gap,
    format_interval,
    format_number,
    name_group,
    name_of_gap,
)
from fairperm.data.proxies import Assumption
from fairperm.hypothesis_tests.results.answers.audits import answer_audit, answer_row
from fairperm.hypothesis_tests.results.gaps import json_ready, without_answer

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from fairperm.hypothesis_tests.results.changes import GapChange
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult

__all__ = ["AuditData", "AuditRow", "GroupSummary", "OmnibusRow", "RowCounts", "Spread"]

PLACES_OF_NOTES = ("the rows' result.notes", "the rows' change.result.notes")  # as notes say
_ROUNDING = 1e-12  # of a ratio: 0.24 / 0.3 is below 0.8 only by rounding
_LAST_CELLS = (  # of a row of a frame
    *("pvalue", "adjusted_pvalue", "margin", "exceedance_pvalue", "adjusted_exceedance_pvalue"),
    *("equivalence_pvalue", "adjusted_equivalence_pvalue", "ratio_bound"),
    *("adjusted_ratio_exceedance_pvalue", "adjusted_ratio_equivalence_pvalue"),
    *("ratio_estimate_verdict", "ratio_verdict", "expected", "detectable_gap", "verdict", "reason"),
)
VERDICTS = ("disparity", "equivalent", "inconclusive", "too small")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AuditRow:
    """One comparison of two groups in one metric.

    Attributes
    ----------
    attribute, metric : str
        The protected attribute, and the metric by the name it was asked for.
    groups : tuple
        The two groups; every difference is the first minus the second, every ratio the first over
        the second.
    sizes : tuple of int
        Their numbers of rows; of a ranking, of queries or items.
    units : str
        What these are: "rows", "queries" or "items".
    result : PermutationTestResult or None
        The test by itself; None if the metric has no value in one of the groups.
    ratio, ratio_interval
        The ratio of the values, with an interval on the log scale; None if there is none.
    adjusted_pvalue : float or None
        The p-value adjusted for all hypotheses of the audit; None if the groups are too small.
    adjusted_interval : tuple of float or None
        The gap's interval adjusted in the same way: it excludes 0 exactly if the adjusted p-value
        is at most the audit's level. With a margin it lies beyond the margin for a disparity, and
        within it for an equivalence. As wide as can be if there are too few permutations for it.
    margin : float or None
        The largest gap that does not matter in practice, if one was given.
    exceedance_pvalue, adjusted_exceedance_pvalue : float or None
        The p-value of the null hypothesis that the gap is within the margin: a small one shows
        that the gap exceeds it. Alone, and adjusted for all hypotheses.
    equivalence_pvalue, adjusted_equivalence_pvalue : float or None
        The p-value of the null hypothesis that the gap is at the margin or beyond: a small one
        shows that the gap is within it. Alone, and adjusted for all hypotheses.
    ratio_bound : float or None
        The smallest ratio of either group's value to the other's that is acceptable, if one was
        given.
    adjusted_ratio_exceedance_pvalue, adjusted_ratio_equivalence_pvalue : float or None
        The adjusted p-values of the null hypotheses that the ratio lies between the bound and its
        inverse, and that it does not.
    ratio_estimate_verdict : str or None
        "met" if the ratio itself lies between the bound and its inverse, else "not met", whatever
        chance may do; None where ``ratio_verdict`` is.
    ratio_verdict : str or None
        "met" if the ratio is shown to lie between the bound and its inverse, "not met" if it is
        shown to lie outside, else "undecided"; None without a bound, or without a ratio.
    expected : float or None
        For a distance between distributions, the mean distance of the permutations: what groups of
        these sizes have by chance. The gap is then the distance, and there are no values and no
        interval. None for metrics.
    detectable_gap : float or None
        The gap that a sample like this one detects with 80 % power, at the adjusted level, by the
        test of no gap (also with a margin); infinite if no gap that is possible is large enough.
    verdict : str
        "disparity", "equivalent", "inconclusive" or "too small".
    reason : str
        Why, in plain words.
    change : GapChange or None
        What the new model does to the gap, in an audit of two models.
    """

    attribute: str
    metric: str
    groups: tuple[Hashable, Hashable]
    sizes: tuple[int, int]
    units: Units = "rows"
    result: PermutationTestResult | None
    ratio: float | None = None
    ratio_interval: tuple[float, float] | None = None
    adjusted_pvalue: float | None = None
    adjusted_interval: tuple[float, float] | None = None
    margin: float | None = None
    exceedance_pvalue: float | None = None
    adjusted_exceedance_pvalue: float | None = None
    equivalence_pvalue: float | None = None
    adjusted_equivalence_pvalue: float | None = None
    ratio_bound: float | None = None
    adjusted_ratio_exceedance_pvalue: float | None = None
    adjusted_ratio_equivalence_pvalue: float | None = None
    ratio_estimate_verdict: str | None = None
    ratio_verdict: str | None = None
    expected: float | None = None
    detectable_gap: float | None = None
    verdict: str = ""
    reason: str = ""
    change: GapChange | None = None

    def __repr__(self) -> str:
        return self.answer

    @property
    def answer(self) -> str:
        """Which group is higher, by how much, and the verdict."""
        return answer_row(self)

    @property
    def part(self) -> str | None:
        """Return the part of a joint metric whose gap is the largest."""
        return None if self.result is None else self.result.part

    @property
    def is_distance(self) -> bool:
        """Whether distributions are compared, and not values of a metric."""
        return self.expected is not None

    @property
    def has_direction(self) -> bool:
        """Whether the gap is a difference, and has a sign."""
        return self.part is None and not self.is_distance

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of both groups as text."""
        first, second = (name_group(self.attribute, group) for group in self.groups)
        return first, second

    @property
    def gap_name(self) -> str:
        """Return which gap it is: "a − b", or "a and b" if it has no direction."""
        return name_of_gap(*self.names, absolute=not self.has_direction)

    @property
    def value_texts(self) -> tuple[str, str]:
        """Return the metric in both groups as text; a joint metric has several values in each."""
        values = (one.values() if isinstance(one, dict) else [one] for one in self.values)
        first, second = (", ".join(map(format_number, several)) for several in values)
        return first, second

    @property
    def values_text(self) -> str:
        """Return both values as text; a distance has none."""
        return "–" if self.is_distance else " / ".join(self.value_texts)

    @property
    def gap_text(self) -> str:
        """Return the gap as text."""
        if self.is_distance:
            return format_number(self.difference)
        return format_gap(self.difference, self.part)

    @property
    def interval_text(self) -> str:
        """Return the gap's interval as text; of a distance, how large it is by chance."""
        if self.is_distance:
            return f"{format_number(self.expected)} by chance"
        return format_interval(self.confidence_interval, signed=self.part is None)

    @property
    def adjusted_interval_text(self) -> str:
        """Return the interval that the verdict rests on, which is adjusted like the p-value."""
        if self.is_distance or self.adjusted_interval is None:
            return self.interval_text
        return format_interval(self.adjusted_interval, signed=self.part is None)

    @property
    def ratio_text(self) -> str:
        """Return the ratio as text: with a bound, on which side of it, and what the tests show."""
        if self.ratio is None or self.ratio_bound is None:
            return format_number(self.ratio)
        is_low = self.ratio <= 1
        end = self.ratio_bound if is_low else 1 / self.ratio_bound
        is_within = keeps_ratio(self.ratio, self.ratio_bound)
        sign = {(True, True): "≥", (True, False): "<", (False, True): "≤", (False, False): ">"}
        number, limit = format_beside(self.ratio, end)
        evidence = self.ratio_verdict or "not judged"
        return f"{number} {sign[is_low, is_within]} {limit}, {evidence}"

    @property
    def values(self) -> tuple[Any, Any]:
        """Return the metric in the first and in the second group; None if it has no value."""
        if self.result is None or self.is_distance:
            return None, None
        first, second = self.groups
        return self.result.values[first], self.result.values[second]

    @property
    def difference(self) -> float | None:
        """Return the gap."""
        return None if self.result is None else self.result.difference

    @property
    def confidence_interval(self) -> tuple[float, float] | None:
        """Return the gap's interval."""
        return None if self.result is None else self.result.confidence_interval

    @property
    def pvalue(self) -> float | None:
        """Return the p-value of this comparison by itself."""
        return None if self.result is None else self.result.pvalue

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON-ready values."""
        plain: dict[str, Any] = {"answer": self.answer}
        plain |= {
            name: json_ready(getattr(self, name))
            for name in self.__slots__
            if name not in {"result", "change"}
        }
        plain["test"] = without_answer(self.result)
        if self.change is not None:
            plain["change"] = self.change.to_dict()
        return plain

    def cells(self) -> dict[str, Any]:
        """Return the row as flat values, for a frame."""
        result = None if self.is_distance else self.result
        low, high = (None, None) if result is None else result.confidence_interval
        adjusted_low, adjusted_high = self.adjusted_interval or (None, None)
        ratio_low, ratio_high = self.ratio_interval or (None, None)
        flat: dict[str, Any] = {"attribute": self.attribute, "metric": self.metric}
        for place, group, size, value in zip(
            ("first", "second"), self.groups, self.sizes, self.values, strict=True
        ):
            counts: Mapping[str, float] = {} if self.result is None else self.result.counts[group]
            ends = (None, None) if result is None else result.value_intervals[group] or (None, None)
            flat |= {
                f"{place}_group": str(group),
                f"{place}_rows": size,
                f"{place}_value": value if isinstance(value, (float, int)) else None,
                f"{place}_low": ends[0],
                f"{place}_high": ends[1],
                f"{place}_numerator": counts.get("numerator"),
                f"{place}_denominator": counts.get("denominator"),
                f"{place}_weight": counts.get("weight"),
            }
        return flat | {
            "units": self.units,
            "part": self.part,
            "difference": self.difference,
            "difference_low": low,
            "difference_high": high,
            "adjusted_low": adjusted_low,
            "adjusted_high": adjusted_high,
            "standard_error": None if result is None else result.standard_error,
            "ratio": self.ratio,
            "ratio_low": ratio_low,
            "ratio_high": ratio_high,
            **{name: getattr(self, name) for name in _LAST_CELLS},
            **({} if self.change is None else self.change.cells()),
        }


def keeps_ratio(ratio: float, bound: float, alternative: str = "two-sided") -> bool:
    """Whether a ratio lies between the bound and its inverse, on the sides that count."""
    is_too_low = alternative != "greater" and ratio < bound * (1 - _ROUNDING)
    is_too_high = alternative != "less" and ratio * bound > 1 + _ROUNDING
    return not (is_too_low or is_too_high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far the values of several groups are apart: the largest gap, and the smallest ratio.

    Attributes
    ----------
    groups : tuple
        The groups with the highest and with the lowest value.
    difference, ratio : float
        Highest minus lowest, and lowest over highest; no ratio where the metric has none.
    interval, ratio_interval : tuple of float
        They allow for the groups being picked by the data: of equal groups, that of the difference
        begins at 0, and that of the ratio ends at 1.
    """

    groups: tuple[Hashable, Hashable]
    difference: float
    interval: tuple[float, float]
    ratio: float | None = None
    ratio_interval: tuple[float, float] | None = None

    def describe(self, unit: Unit) -> str:
        """Return both with their intervals, the gap in the unit of the metric."""
        size, ends = unit.size(self.difference), unit.interval(self.interval, signed=False)
        gap = f"{size}, interval {ends}"
        if self.ratio is None:
            return f"largest gap {gap}"
        ends = format_interval(self.ratio_interval)
        return f"largest gap {gap}; smallest ratio {format_number(self.ratio)}, interval {ends}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OmnibusRow:
    """Whether a metric is the same in all groups of an attribute that are large enough.

    ``result`` is None where there is no such test, and ``reason`` says why. ``spread`` is the
    largest gap and the smallest ratio, if every two groups were compared.
    """

    attribute: str
    metric: str
    result: OmnibusTestResult | None
    reason: str = ""
    spread: Spread | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON-ready values."""
        test = without_answer(self.result)
        return {
            "attribute": self.attribute,
            "metric": self.metric,
            "reason": self.reason,
            "spread": None if self.spread is None else json_ready(asdict(self.spread)),
            "test": test,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """How many rows a group has, and how many of them are positive if labels are binary.

    ``clusters`` is their number, or None without clusters. A group that ``is_small`` has too few
    rows for any metric. In an audit of rankings alone, ``rows`` are ``units``: queries, or items.
    """

    attribute: str
    group: Hashable
    rows: int
    positives: int | None
    is_small: bool
    clusters: int | None = None
    units: Units = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """How many rows were read for an attribute, dropped for missing values, and used.

    Metrics that read other columns may drop other rows. Then ``by_metric`` is True, ``dropped`` is
    the largest number over all metrics and ``used`` the smallest. In an audit of rankings alone,
    rows are items; ``units`` names what ``used`` counts. For queries, the number read is unknown.
    """

    attribute: str
    read: int | None
    dropped: int
    used: int
    by_metric: bool = False
    units: Units = "rows"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class AuditData:
    """What an audit found; :class:`fairperm.Audit` says what is what, and shows it."""

    rows: tuple[AuditRow, ...]
    omnibus: tuple[OmnibusRow, ...]
    groups: tuple[GroupSummary, ...]
    row_counts: tuple[RowCounts, ...]
    alpha: float
    adjust: str | None
    compare: str
    n_hypotheses: int
    min_group_size: int
    group_size_by: str
    n_dropped: int
    seed: int
    settings: Mapping[str, Any]
    families: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    library: str | None = None

    @property
    def answer(self) -> str:
        """How many gaps are larger than chance explains, the largest, and what stays open."""
        return answer_audit(self)

    @property
    def compares_models(self) -> bool:
        """Whether it is an audit of two models."""
        return any(row.change is not None for row in self.rows)

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.settings.get("sample_weight") is not None

    @property
    def has_plain_rows(self) -> bool:
        """Whether rows have no weights, and are not in clusters, matched sets or ranked lists.

        Nor are their groups known only as probabilities.
        """
        is_special = bool(self.settings.get("rankings")) or self.assumption is not None
        return not (self.is_weighted or self.is_clustered or self.is_matched or is_special)

    @property
    def assumption(self) -> Assumption | None:
        """What gaps rest on where groups are known only as probabilities."""
        given = self.settings.get("proxy_assumption")
        return None if given is None else Assumption(given)

    @property
    def units(self) -> Units:
        """Unit of the group counts: rows; in an audit of rankings alone, queries or items."""
        return self.groups[0].units if self.groups else "rows"

    @property
    def is_matched(self) -> bool:
        """Whether groups are compared inside matched sets."""
        return self.settings.get("matched") is not None and not self.has_names

    @property
    def is_stratified(self) -> bool:
        """Whether groups are compared within strata."""
        return self.settings.get("control_features") is not None

    @property
    def is_clustered(self) -> bool:
        """Whether rows are in clusters, which may be names."""
        return self.settings.get("cluster") is not None or self.has_names

    @property
    def has_names(self) -> bool:
        """Whether whole names are exchanged between the groups."""
        return self.settings.get("names") is not None
