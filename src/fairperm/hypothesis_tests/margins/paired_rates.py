"""How far the change of a gap is from a margin, if few rows of a group changed.

The standard error of the sample rests on the rows that changed. Where few did by chance, it is far
too small, and a change as large as the margin seems many errors away from it. So the error is that
of the likeliest changes whose gap lies on the margin. Each group has Tango's score interval for the
difference of two paired rates; both are joined as MOVER joins intervals.

Tango, Equivalence test and confidence interval for the difference in proportions for the
paired-sample design, Statistics in Medicine 17, 1998; Zou and Donner, Construction of confidence
limits about effect measures: a general approach, ibidem 27, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from fairperm._utils.formatting import drop_decimals, format_count
from fairperm.errors import shown
from fairperm.hypothesis_tests.margins.restricted_rates import halved
from fairperm.inference.errors_by_gap import ErrorsByGap

MIN_CHANGED_ROWS = 20  # of each group, for a claim by the sample's own standard error
_MAX_DISTANCE = 100.0  # standard errors: no level asks for more


@dataclass(frozen=True, slots=True)
class PairedRate:
    """A group's rows that only the new model counts, those that only the old one does, and all."""

    up: float
    down: float
    n: float

    @property
    def change(self) -> float:
        """The rate of the new model minus that of the old one."""
        return (self.up - self.down) / self.n

    def error(self, change: float) -> float:
        """Return the standard error of the change, were this the true one."""
        # the likeliest rate q of rows that go against the change solves a quadratic equation; the
        # variance of a row's change d is then 2q + d − d²
        up, down = (self.up, self.down) if change >= 0 else (self.down, self.up)
        d = abs(change)
        half = ((2 * self.n - up + down) * d - up - down) / 2
        last = 2 * self.n * down * d * (1 - d)
        root = math.sqrt(half**2 + last)
        # of two equal forms, the one that loses no digits
        q = (root - half) / (2 * self.n) if half <= 0 else last / (root + half) / (2 * self.n)
        return math.sqrt(max(2 * q + d * (1 - d), 0.0) / self.n)

    def distance(self, change: float) -> float:
        """Return by how many of these errors the sample differs from a true change."""
        if abs(change) > 1:
            return math.inf
        excess = abs(self.change - change)
        if excess == 0:
            return 0.0
        error = self.error(change)
        return excess / error if error > 0 else math.inf


@dataclass(frozen=True, slots=True)
class PairedRates(ErrorsByGap):
    """Both groups' changes of a rate whose denominator the models share."""

    first: PairedRate
    second: PairedRate
    is_paired: ClassVar[bool] = True

    def standard_error(self, gap: float) -> float:
        """Return the standard error of the change of the gap, were this the true one.

        MOVER's limit lies √((a − a₀)² + (b − b₀)²) beyond the estimate, where a and b are the
        limits of both groups at one level, and a₀ and b₀ their estimates. The error is such that
        the limit of z errors lies on the gap: a and b are searched on that quarter of a circle.
        """
        before = self.first.change - self.second.change
        reach = gap - before
        if reach == 0:
            return math.hypot(
                self.first.error(self.first.change), self.second.error(self.second.change)
            )

        def distances(angle: float) -> tuple[float, float]:
            return (
                self.first.distance(self.first.change + reach * math.cos(angle)),
                self.second.distance(self.second.change - reach * math.sin(angle)),
            )

        def is_first_farther(angle: float) -> bool:
            first, second = distances(angle)
            return first > second

        crossing = halved(is_first_farther, 0.0, math.pi / 2)
        # a group in which all rows changed is nowhere near its limit, or on it
        sides = (crossing, math.nextafter(crossing, 0.0))
        distance = max(min(distances(angle)) for angle in sides)
        return abs(reach) / min(distance, _MAX_DISTANCE)


@dataclass(frozen=True, slots=True)
class FewChangedRows(ErrorsByGap):
    """The reason for which a change is not tested at a margin: too few rows of a group show it."""

    metric: str
    group: Hashable
    n_rows: float
    unit: str

    def standard_error(self, gap: float) -> float:
        """Return none: the sample's own is unreliable, and no other one is known."""
        del gap
        return math.nan

    @property
    def reason(self) -> str:
        n = min(round(self.n_rows), MIN_CHANGED_ROWS - 1)
        rows = f"only about {format_count(n, self.unit)}" if n else f"no {self.unit}"
        return (
            f"{rows} of group {shown(drop_decimals(self.group))} "
            f"show{'s' if n < 2 else ''} how the {self.metric} varies, and this needs "
            f"{MIN_CHANGED_ROWS}"
        )
