"""What a monitor says of a gap, and of two monitors. No computing here."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fairperm._utils.formatting import format_metric, format_name

Verdict = Literal["disparity", "equivalent", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredGap:
    """The gap between two groups in one metric, first minus second, after the batches so far.

    Attributes
    ----------
    metric, groups
        What is compared.
    rows, values
        The rows of each group in the metric's denominator, and its value in them.
    gap
        The difference of the values: None if a group has no rows yet.
    evalue
        Today's evidence against a gap within the margin in every batch: wealth that began at 1.
    pvalue
        One over the largest that it has been, times the number of comparisons, and at most 1.
    interval
        The confidence sequence: gaps that fit all batches, if the gap is the same in all. None if
        there is no such gap, because it changed.
    verdict
        "disparity" if the gap is shown to have been beyond the margin: then no gap within it is in
        the interval. "equivalent" if the interval lies within the margin and has the gap of all
        rows. Else "inconclusive".
    """

    metric: str
    groups: tuple[Hashable, Hashable]
    rows: tuple[int, int]
    values: tuple[float | None, float | None]
    gap: float | None
    evalue: float
    pvalue: float
    interval: tuple[float, float] | None
    verdict: Verdict

    @property
    def name(self) -> str:
        """What is compared, in words."""
        first, second = map(format_name, self.groups)
        return f"{format_metric(self.metric)}, {first} − {second}"

    @property
    def seems_changed(self) -> bool:
        """Whether the gap of all rows does not fit all batches: then it has probably changed."""
        if self.gap is None:
            return False
        return self.interval is None or not self.interval[0] <= self.gap <= self.interval[1]

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON can store."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Whether a gap differs between two monitors.

    Attributes
    ----------
    metric, groups
        What is compared.
    before, now
        The intervals of the gap in the reference monitor and in this one, both wider than their
        own, so that together they have the level; None as in :class:`fairperm.MonitoredGap`.
    drifted
        Whether no gap is in both.
    """

    metric: str
    groups: tuple[Hashable, Hashable]
    before: tuple[float, float] | None
    now: tuple[float, float] | None
    drifted: bool

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON can store."""
        return asdict(self)
