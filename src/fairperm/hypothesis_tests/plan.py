"""Which labels may be exchanged, which error studentizes, and what the p-value then means."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairperm._utils.checks import choice
from fairperm._utils.sorting import ranks
from fairperm.data.reading import read_table
from fairperm.engines.variances import Variance
from fairperm.errors import InputError, listed
from fairperm.metrics.callables import CallableMetric
from fairperm.metrics.classes import MacroF1, labels_of
from fairperm.metrics.ranks import RankMetric
from fairperm.metrics.registry import AnyMetric, get_metric

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.data.arguments import Inputs
    from fairperm.data.table import Table
    from fairperm.metrics.registry import AnyMetric


SCHEMES = ("auto", "pooled", "within_label", "denominator")
CLOSED_FORMS = tuple(one for one in Variance if one.is_closed_form)
VARIANCES = ("auto", *Variance, None)


@dataclass(frozen=True, slots=True)
class Plan:
    """A scheme and a variance that fit the metric, and the rows: alone, weighted or clustered.

    ``is_asked`` tells that the user asked for this variance.
    """

    metric: AnyMetric
    scheme: str
    variance: Variance | None
    weighted: bool = False
    clustered: bool = False
    is_asked: bool = False

    @classmethod
    def choose(
        cls,
        metric: AnyMetric,
        scheme: object,
        variance: object,
        *,
        weighted: bool = False,
        clustered: bool = False,
    ) -> Plan:
        """Resolve "auto", and refuse what would not answer the question asked."""
        scheme = choice("scheme", scheme, SCHEMES)
        asked = choice("variance", variance, VARIANCES)
        alone = not (weighted or clustered)
        if scheme == "auto":
            scheme = _best_scheme(metric) if alone else "pooled"
        _check_scheme(metric, scheme, clustered=clustered)
        fitting = _fitting_variances(metric, alone=alone)
        is_asked = asked != "auto"
        if is_asked and asked not in fitting:
            which = "" if alone else " with weights or clusters"
            rule = f"'auto' or one of {listed(fitting)} for {metric.name}{which}"
            raise InputError("variance", rule, asked)
        chosen = fitting[fitting.index(asked) if is_asked else 0]
        return cls(metric, scheme, chosen, weighted, clustered, is_asked)

    def block(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.integer[Any]]:
        """Return for each row the block within which its label may be exchanged."""
        if self.scheme == "within_label":
            label = columns["y_true"]
            is_binary = label.dtype == np.bool_
            return label.view(np.uint8) if is_binary else ranks(label)
        if self.scheme == "denominator":
            denominator = self.metric.parts[0].matrix(columns)[:, 1]
            return denominator.astype(np.uint8)
        return np.zeros(len(next(iter(columns.values()))), np.uint8)

    @property
    def fixes_denominators(self) -> bool:
        """Tell whether labels are exchanged just among the rows of each rate's denominator.

        Each of those rows is a Bernoulli trial, so that equal rates are equal distributions.
        """
        exchanged_given = {"within_label": "label", "pooled": None}
        return not (self.weighted or self.clustered) and all(
            part.has_denominator
            and (self.scheme == "denominator" or part.given == exchanged_given[self.scheme])
            for part in self.metric.parts
        )

    @property
    def variance_name(self) -> str | None:
        """Return the variance as the plain text that results show."""
        return None if self.variance is None else self.variance.value

    @property
    def own_variance(self) -> Variance | None:
        """Return the closed form that assumes no null and pools nothing, if there is one."""
        if isinstance(self.metric, RankMetric):
            return Variance.DELONG
        return Variance.DELTA if all(part.smooth for part in self.metric.parts) else None

    def check_limit(self) -> None:
        """Refuse to take the normal limit where no closed form of the variance leads to it."""
        if len(self.metric.parts) > 1 or self.variance not in CLOSED_FORMS:
            rule = f"at least 1 for {self.metric.name} with variance {self.variance!r}"
            hint = "0 is the normal limit of one gap over its closed-form error."
            raise InputError("n_resamples", rule, 0, hint)

    @property
    def depends_on_sum(self) -> bool:
        """Tell whether a Mantel–Haenszel gap depends on the sum of the strata's counts alone."""
        return self.metric.is_rate and self.fixes_denominators and self.variance in {"score", None}

    def validity(self, *, strata: bool, limit: bool = False) -> str:
        """Say for which null the p-value holds, and whether exactly or asymptotically.

        With ``limit`` it is not that of permutations but of the normal limit.
        """
        name = self.metric.name
        where = " within every stratum" if strata else ""
        weak = f"the weak null (equal {name}{where}; base rates may differ)"
        same = "predictions given the label" if self.scheme == "within_label" else "all columns"
        strong = f"the strong null (the groups have equal distributions of {same}{where})"
        if limit:
            return f"Asymptotically valid for {weak}: the normal limit, without permutations."
        if self.variance == "fast_bootstrap":
            return f"Asymptotically valid for {weak}; not exact for any null."
        if self.fixes_denominators:
            given = "the rates' denominators"
            if not all(part.is_rate for part in self.metric.parts):
                given = f"the number of {self.metric.parts[0].among}"
            return f"Exact for {weak} at every sample size, given {given}."
        if self.variance is None:
            return (
                f"Exact for {strong}. Not valid for {weak}: "
                "un-studentized, it can reject far too often."
            )
        return f"Asymptotically valid for {weak}, and exact for {strong}."


Groups = TypeVar("Groups", bound="tuple[Hashable, ...]")


def planned(
    inputs: Inputs,
    metric: object,
    scheme: object,
    variance: object,
    choose: Callable[[Table], Groups],
) -> tuple[Table, Plan, Groups]:
    """Read the columns that the metric needs, choose the groups, and plan the test."""
    chosen = get_metric(metric)
    if isinstance(chosen, CallableMetric):
        chosen = chosen.reading(inputs)
    table = read_table(inputs, chosen)
    groups = choose(table)
    plan = Plan.choose(
        settled(chosen, table, groups),
        scheme,
        variance,
        weighted=inputs.sample_weight is not None,
        clustered=inputs.cluster is not None,
    )
    return table, plan, groups


def _best_scheme(metric: AnyMetric) -> str:
    if metric.has_denominator:
        return "denominator"
    # given the label, rates tested together are Bernoulli trials as a single rate is; and for an
    # AUC, groups that keep their few positives hold the level where pooled ones do not
    joint = len(metric.parts) > 1
    return "within_label" if joint or isinstance(metric, RankMetric) else "pooled"


def _check_scheme(metric: AnyMetric, scheme: str, *, clustered: bool) -> None:
    of_rates = all(part.has_denominator for part in metric.parts)
    if clustered and scheme != "pooled":
        hint = "Whole clusters are exchanged, whatever the labels of their rows."
        raise InputError("scheme", "'pooled' with cluster", scheme, hint)
    if scheme == "denominator" and not metric.has_denominator:
        hint = "Use scheme='within_label'." if of_rates else "Use scheme='pooled'."
        rule = f"'pooled' or 'within_label' for {metric.name}, which has no single denominator"
        raise InputError("scheme", rule, scheme, hint)
    if scheme == "within_label" and metric.given != "label":
        other = "'denominator' or 'pooled'" if of_rates else "'pooled'"
        hint = "Groups with different base rates would differ in it by that alone."
        raise InputError("scheme", f"{other} for {metric.name}", scheme, hint)


def _fitting_variances(metric: AnyMetric, *, alone: bool) -> tuple[Variance | None, ...]:
    """Return the variances that fit the metric and its rows, the best one first."""
    free = (Variance.BOOTSTRAP, Variance.FAST_BOOTSTRAP, None)
    if isinstance(metric, RankMetric):
        return (Variance.DELONG, *free)
    if all(part.is_rate for part in metric.parts) and alone:
        return (Variance.SCORE, Variance.WALD, Variance.DELTA, *free)
    if metric.has_denominator and alone:
        return (Variance.SCORE, Variance.DELTA, *free)
    if all(part.smooth for part in metric.parts):
        return (Variance.DELTA, *free)
    return (Variance.FAST_BOOTSTRAP, Variance.BOOTSTRAP, None)


def settled(metric: AnyMetric, table: Table, groups: Sequence[Hashable]) -> AnyMetric:
    """Return the metric as the groups' data make it: some need to know which labels there are."""
    if not isinstance(metric, MacroF1):
        return metric
    rows = np.isin(table.group, [table.groups.index(group) for group in groups])
    return metric.for_labels(
        labels_of({name: column[rows] for name, column in table.columns.items()})
    )
