"""Which labels may be exchanged, which error studentizes, and what the p-value then means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._options import choice
from fairperm._sample import CELLS
from fairperm.errors import InputError, problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm._metric import AnyMetric

SCHEMES = ("auto", "pooled", "within_label", "denominator")
VARIANCES = ("auto", "score", "wald", "delta", "bootstrap", "fast_bootstrap", None)


@dataclass(frozen=True, slots=True)
class Plan:
    """A scheme and a variance that fit the metric."""

    metric: AnyMetric
    scheme: str
    variance: str | None

    @classmethod
    def choose(cls, metric: AnyMetric, scheme: object, variance: object) -> Plan:
        """Resolve "auto", and refuse what would not answer the question asked."""
        scheme = choice("scheme", scheme, SCHEMES)
        variance = choice("variance", variance, VARIANCES)
        is_rate = all(part.is_rate for part in metric.parts)
        if scheme == "auto":
            scheme = cls._best_scheme(metric)
        elif scheme == "denominator" and not metric.is_rate:
            hint = "Use scheme='within_label'." if is_rate else "Use scheme='pooled'."
            rule = f"'pooled' or 'within_label' for {metric.name}, which has no single denominator"
            raise InputError(problem("scheme", rule, scheme, hint))
        elif scheme == "within_label" and metric.given != "label":
            other = "'denominator' or 'pooled'" if is_rate else "'pooled'"
            hint = "Groups with different base rates would differ in it by that alone."
            raise InputError(problem("scheme", f"{other} for {metric.name}", scheme, hint))
        if variance == "auto":
            variance = "score" if is_rate else "delta"
        elif variance in {"score", "wald"} and not is_rate:
            hint = f"{metric.name} is not a simple rate; its closed form is variance='delta'."
            rule = "'auto', 'delta', 'bootstrap', 'fast_bootstrap' or None"
            raise InputError(problem("variance", rule, variance, hint))
        return cls(metric, scheme, variance)

    @staticmethod
    def _best_scheme(metric: AnyMetric) -> str:
        if metric.is_rate:
            return "denominator"
        # given the label, rates tested together are Bernoulli trials as a single rate is
        return "within_label" if len(metric.parts) > 1 else "pooled"

    def block(self) -> NDArray[np.intp]:
        """Return for each cell the block within which its labels may be exchanged."""
        if self.scheme == "within_label":
            return np.array([0, 0, 1, 1])
        if self.scheme == "denominator":
            return np.isin(CELLS, self.metric.parts[0].contributions["denominator"]).astype(np.intp)
        return np.zeros(len(CELLS), np.intp)

    @property
    def fixes_denominators(self) -> bool:
        """Tell whether labels are exchanged just among the rows of each rate's denominator.

        Each of those rows is a Bernoulli trial, so that equal rates are equal distributions.
        """
        block = self.block()
        blocks = [set(np.array(CELLS)[block == b].tolist()) for b in set(block.tolist())]
        return all(
            part.is_rate and set(part.contributions["denominator"]) in blocks
            for part in self.metric.parts
        )

    @property
    def depends_on_sum(self) -> bool:
        """Tell whether a Mantel–Haenszel gap depends on the sum of the strata's counts alone."""
        return self.metric.is_rate and self.fixes_denominators and self.variance in {"score", None}

    def validity(self, *, strata: bool) -> str:
        """Say for which null the p-value holds, and whether exactly or asymptotically."""
        name = self.metric.name
        where = " within every stratum" if strata else ""
        weak = f"the weak null (equal {name}{where}; base rates may differ)"
        same = "predictions given the label" if self.scheme == "within_label" else "all columns"
        strong = f"the strong null (the groups have equal distributions of {same}{where})"
        if self.variance == "fast_bootstrap":
            return f"Asymptotically valid for {weak}; not exact for any null."
        if self.fixes_denominators:
            return f"Exact for {weak} at every sample size, given the rates' denominators."
        if self.variance is None:
            return (
                f"Exact for {strong}. Not valid for {weak}: "
                "un-studentized, it can reject far too often."
            )
        return f"Asymptotically valid for {weak}, and exact for {strong}."
