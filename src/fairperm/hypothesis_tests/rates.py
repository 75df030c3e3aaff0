"""The test of a plain rate: two binomial samples, and nothing to permute."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fairperm.data.sample import Sample
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.comparison_checks import (
    check_defined_in_strata,
    note_strata,
    read_stratum_weights,
    undefined_in,
)
from fairperm.hypothesis_tests.margins.restricted_rates import Rates
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.run import Observed, PermutationTest, Tested
from fairperm.inference.unconditional import TwoBinomials
from fairperm.metrics.definition import Metric, metrics_of_totals


@dataclass(frozen=True, slots=True)
class RateTest(PermutationTest[NoReturn]):
    """The score statistic of two rates (or F1 scores), whose reference is known.

    ``sample`` has the fields of the result that do not depend on it.
    """

    observed: Observed
    rates: Rates
    among: str
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls, table: Sample, plan: Plan, groups: tuple[Hashable, ...], options: Options
    ) -> RateTest:
        """Count the rows. Raises UndefinedMetricError for a rate of none."""
        (part,) = metrics_of_totals(plan.metric.parts)
        counts = {group: _count(table, part, group) for group in groups}
        rates = of_all = Rates.of(*counts.values())
        n_strata, notes = table.count_strata(groups), table.notes
        if n_strata > 1:  # all but one cannot be compared
            comparison = Comparison.of(table, plan, groups, options.stratum_weights)
            table = table.take(np.flatnonzero(np.isin(table.stratum, comparison.strata)))
            notes = (*note_strata(comparison, comparison.weights), *notes)
            rates = Rates.of(*(_count(table, part, group) for group in groups))
        for group, (_, size) in zip(groups, (rates.first, rates.second), strict=True):
            if size == 0:
                raise undefined_in(group, part.name, f"no {part.among}")
        if options.stratum_weights is not None:
            _check_weights(table, part, groups, options.stratum_weights)
        values = rates.values()
        error, difference = math.hypot(*rates.errors(values)), values[0] - values[1]
        errors = of_all.errors(of_all.values())
        observed = Observed(
            statistic=rates.statistic,
            alternative=options.alternative,
            ordering=plan.ordering(options.alternative, strata=False),
            tolerance=0.0,
            estimate=difference,
            level=options.confidence_level,
            min_draws=0,
            reach=rates,
            compared_values=None if n_strata == 1 else values,
        )
        sample = {
            "metric": plan.metric.name,
            "attribute": table.attribute,
            "groups": groups,
            "values": dict(zip(groups, of_all.values(), strict=True)),
            "counts": counts,
            "difference": difference,
            "part": None,
            "standard_error": error,
            "standard_errors": dict(zip(groups, errors, strict=True)),
            "scheme": plan.scheme.value,
            "variance": plan.variance_name,
            "n_strata": n_strata,
            "n_dropped": table.n_dropped,
            "seed": options.seed,
            "validity": plan.validity(strata=n_strata > 1),
            "gap_variance": rates,
            "binning_errors": None,
            "notes": notes,
        }
        return cls(observed, rates, part.among, sample)

    def result(self, tested: Tested) -> PermutationTestResult:
        return tested.result(PermutationTestResult, **self.sample)

    def base_sizes(self) -> dict[str, list[float]]:
        return {self.among: [self.rates.first[1], self.rates.second[1]]}

    def known_reference(self) -> TwoBinomials:
        return self.rates.binomials


def _count(table: Sample, part: Metric, group: Hashable) -> dict[str, int]:
    """Return the number of a group's rows, and the totals that its rate is made of."""
    mine = np.flatnonzero(table.group == table.groups.index(group))
    count = table.count[mine]
    if not table.contributions.size:
        columns = {name: column[mine] for name, column in table.columns.items()}
        contributions = part.checked_matrix(columns)
    else:
        contributions = table.contributions[mine]
    totals = zip(part.contributions, count @ contributions, strict=True)
    return {"rows": int(count.sum())} | {name: int(total) for name, total in totals}


def _check_weights(
    table: Sample, part: Metric, groups: tuple[Hashable, ...], given: object
) -> None:
    """Raise an error for weights of strata that do not fit the only one that has rows."""
    weights = read_stratum_weights(table, given)
    present = np.isin(table.group, [table.groups.index(group) for group in groups])
    used = weights[np.unique(table.stratum[present])]
    defined = np.ones((1, 2))
    check_defined_in_strata(part.name, defined, defined, used)
