"""Two groups of a table, side by side: what every test starts from and every result reports."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm import _options as options
from fairperm._sample import Cells
from fairperm.errors import (
    FairpermWarning,
    InputError,
    InputTypeError,
    did_you_mean,
    listed,
    problem,
    shown,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm._metric import AnyMetric, Metric
    from fairperm._sample import Table

_ROWS_OF: dict[tuple[str, ...], str] = {
    ("fn", "tp"): "positives",
    ("tn", "fp"): "negatives",
    ("fp", "tp"): "predicted positives",
    ("tn", "fn"): "predicted negatives",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The confusion table of two groups in every stratum, and the metric to compare."""

    metric: AnyMetric
    groups: tuple[Hashable, Hashable]
    counts: NDArray[np.int64]
    weights: NDArray[np.float64] | None

    @classmethod
    def of(
        cls, table: Table, metric: AnyMetric, groups: object, stratum_weights: object
    ) -> Comparison:
        """Pick the two groups; say so if the metric cannot be compared between them."""
        pair = table.choose_groups(groups)
        counts, weights = table.counts(pair), _weights(table, stratum_weights)
        present = counts.any(axis=(1, 2))
        weights = None if weights is None else weights[present]
        comparison = cls(metric, pair, counts[present], weights)
        comparison._check_defined()
        comparison._check_strata()
        return comparison

    def sample(self, block: NDArray[np.intp]) -> Cells:
        """Return the counts as the resampling needs them."""
        contributions = np.hstack([part.matrix() for part in self.metric.parts])
        return Cells.from_counts(self.counts, contributions, block, self.weights)

    def values(self) -> dict[Hashable, Any]:
        """Return the metric in each group, strata taken together."""
        by_part = {part.name: self._value(part) for part in self.metric.parts}
        if len(by_part) == 1:
            return dict(zip(self.groups, *by_part.values(), strict=True))
        return {
            group: {name: value[side] for name, value in by_part.items()}
            for side, group in enumerate(self.groups)
        }

    def totals(self) -> dict[Hashable, dict[str, int]]:
        """Return each group's number of rows, and the totals that the values are made of."""
        tables = self.counts.sum(axis=0)
        result: dict[Hashable, dict[str, int]] = {}
        for group, table in zip(self.groups, tables, strict=True):
            result[group] = {"rows": int(table.sum())}
            for part in self.metric.parts:
                prefix = f"{part.name} " if len(self.metric.parts) > 1 else ""
                totals = table @ part.matrix().astype(np.int64)
                for name, total in zip(part.contributions, totals.tolist(), strict=True):
                    result[group][prefix + name] = total
        return result

    def _value(self, part: Metric) -> list[float]:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = part.estimate(self.counts.sum(axis=0).astype(float), part.matrix())
        return [float(value) for value in values]

    def _check_defined(self) -> None:
        for part in self.metric.parts:
            for group, value in zip(self.groups, self._value(part), strict=True):
                if math.isnan(value):
                    kind = part.contributions.get("denominator")
                    lack = "too few classes" if kind is None else f"no {_ROWS_OF.get(kind, 'rows')}"
                    raise InputError(
                        f"metric must be defined in both groups; got {part.name} of group "
                        f"{shown(group)}, which has {lack}. "
                        "Compare another metric, or groups with more rows."
                    )

    def _check_strata(self) -> None:
        shared = (self.counts.sum(axis=2) > 0).all(axis=1)
        if not shared.any():
            raise InputError(
                "control_features must have a stratum with rows of both groups; got "
                f"{len(shared):,} strata with rows of only one. Use coarser strata."
            )
        for part in self.metric.parts:
            self._check_defined_in_strata(part, shared)
        if self.weights is None and not shared.all():
            message = (
                f"{(~shared).sum():,} of {len(shared):,} strata have rows of only one group and "
                "say nothing of the gap; their rows carry no weight."
            )
            warnings.warn(message, FairpermWarning, stacklevel=5)

    def _check_defined_in_strata(self, part: Metric, shared: NDArray[np.bool_]) -> None:
        """Say so if a stratum that has weight, or every stratum, has no gap."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = part.estimate(self.counts.astype(float), part.matrix())
        defined = np.isnan(values).sum(axis=1) == 0
        where = f"in which {part.name} is defined in both groups"
        if not defined.any():
            raise InputError(
                f"control_features must have a stratum {where}; got {len(defined):,} strata "
                "and none such. Use coarser strata."
            )
        mantel_haenszel = defined if part.is_rate else shared
        used = mantel_haenszel if self.weights is None else self.weights > 0
        if not used.any() or not defined[used].all():
            name = "control_features" if self.weights is None else "stratum_weights"
            raise InputError(
                f"{name} must give weight to strata {where}, and to no others; got "
                f"{(used & ~defined).sum():,} others among {used.sum():,} strata with weight. "
                "Use coarser strata, or stratum_weights of 0."
            )


def _weights(table: Table, given: object) -> NDArray[np.float64] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        rule = "a mapping of strata to weights"
        raise InputTypeError(problem("stratum_weights", rule, given))
    for stratum in given:
        if stratum not in table.strata:
            rule = f"a mapping with strata of control_features ({listed(table.strata)}) as keys"
            hint = did_you_mean(stratum, table.strata)
            raise InputError(problem("stratum_weights", rule, stratum, hint))
    missing = [stratum for stratum in table.strata if stratum not in given]
    if missing:
        rule = f"a mapping with a weight for every stratum, and {listed(missing)} has none"
        hint = "Give strata that should not count a weight of 0."
        raise InputError(problem("stratum_weights", rule, given, hint))
    number = "a mapping of strata to finite numbers"
    weights = [options.number("stratum_weights", given[one], number) for one in table.strata]
    if min(weights) < 0 or max(weights) <= 0:
        rule = "made of weights that are not negative, and not all zero"
        raise InputError(problem("stratum_weights", rule, given))
    # a power of two rounds nothing, and then no sum of weights overflows or vanishes
    scaled: NDArray[np.float64] = np.ldexp(weights, -np.frexp(max(weights))[1])
    return scaled
