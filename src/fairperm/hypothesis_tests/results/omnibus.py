"""The result of the omnibus test. No computing here."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from fairperm._utils.formatting import format_metric, format_number, format_pvalue, name_group
from fairperm.hypothesis_tests.results.answers.words import (
    are_raw_values,
    furthest_apart,
    judge,
    level_of,
    pluralize,
    sentence,
    state_p,
    unit_of,
    within,
)
from fairperm.hypothesis_tests.results.gaps import ResultWithPValue
from fairperm.hypothesis_tests.results.text import count_rows, state_value


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class OmnibusTestResult(ResultWithPValue):
    """The result of :func:`fairperm.omnibus_test`.

    Attributes
    ----------
    metric : str
        The metric's full name.
    attribute : str
        The name of the column of groups, or "".
    groups : tuple
        The groups compared.
    values, standard_errors, counts : dict
        Of each group, all strata together: the metric, its standard error (assuming no null), and
        the totals it is made of.
    mean : float
        The groups' values averaged, each weighted by the inverse of its variance (with matched
        sets, all alike). NaN for a joint metric.
    statistic : float
        The sum over the groups of (value − mean)² / variance; of the parts of a joint metric, the
        largest. With the score variance, the groups' variances assume one rate. With matched sets,
        the squared distance between the groups' values, by their covariance over sets.
    """

    metric: str
    attribute: str = ""
    groups: tuple[Hashable, ...]
    values: Mapping[Hashable, Any]
    standard_errors: Mapping[Hashable, Any]
    counts: Mapping[Hashable, Mapping[str, float]]
    mean: float
    statistic: float
    scheme: str
    variance: str | None
    n_undefined: int
    n_strata: int

    @property
    def answer(self) -> str:
        """Whether the groups differ, and which two are furthest apart."""
        metric, ends = format_metric(self.metric), furthest_apart(self)
        head = f"{within(self)}the {len(self.groups)} groups differ in {metric}"
        if ends is not None:
            (low, least), (high, most) = ends
            unit = unit_of(self.metric, self.counts.values())
            weighted = any("weight" in one for one in self.counts.values())
            head = (
                f"{within(self)}the {len(self.groups)} groups have "
                f"{'weighted ' if weighted else ''}{pluralize(metric)} from "
                f"{unit.value(least)} ({low}) to {unit.value(most)} ({high})"
                f"{', not standardized over strata' if are_raw_values(self) else ''}"
            )
        stated = state_p(self.pvalue, self.pvalue, self)
        is_shown, end = self.pvalue <= level_of(self), "; a difference is not ruled out"
        return sentence(
            head + judge(self, "the differences", stated, is_shown=is_shown, open_end=end)
        )

    def _lines(self) -> list[tuple[str, str]]:
        return [
            *(
                (name_group(self.attribute, one), state_value(self.values[one], self.counts[one]))
                for one in self.groups
            ),
            ("statistic", format_number(self.statistic)),
            ("p-value", f"{format_pvalue(self.pvalue)}  {self._draws()}"),
            ("validity", self.validity),
            count_rows(self.counts.values(), self.n_dropped),
        ]
