"""The options and the plan of a test: which labels are exchanged, which variance studentizes it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairperm._utils import checks
from fairperm._utils.checks import choice
from fairperm.data.reading import read_table
from fairperm.engines.resampling.blocks import Resampling
from fairperm.errors import InputError, argument, listed
from fairperm.hypothesis_tests.comparison_checks import find_compared_strata, read_stratum_weights
from fairperm.inference.stopping import MAX_DRAWS
from fairperm.metrics.definition import Kind, Scheme, Variance
from fairperm.metrics.registry import get_metric

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from fairperm.data.arguments import Inputs
    from fairperm.data.sample import Sample
    from fairperm.metrics.definition import AnyMetric

Groups = TypeVar("Groups", bound=tuple[Hashable, ...])


def check_resampling(
    n_resamples: object,
    rng: object,
    n_jobs: object,
    progress: object,
    *,
    fewest: int = 1,
    or_auto: bool = False,
) -> Resampling:
    """Check these options of a public function; ``fewest`` 0 allows for no draws."""
    checks.jobs(n_jobs)
    number = checks.resamples(n_resamples, fewest, or_auto=or_auto)
    return Resampling(
        MAX_DRAWS if number is None else number,
        checks.seed(rng),
        n_jobs,  # type: ignore[arg-type]  # None and -1 have a meaning to joblib
        checks.switch("progress", progress),
        min_draws=0 if number is None else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to test: draws, scheme, variance, direction and levels.

    A :class:`fairperm.hypothesis_tests.plan.Plan` resolves ``scheme`` and ``variance``, the strata
    of a table give ``stratum_weights`` their meaning; the others are checked.
    """

    resampling: Resampling
    scheme: object = "auto"
    variance: object = "auto"
    alternative: str = "two-sided"
    stratum_weights: object = None
    n_bootstrap: int = 500
    confidence_level: float = 0.95

    @classmethod
    def check(
        cls, given: Mapping[str, Any], *, fewest: int = 1, or_auto: bool = True, **others: Any
    ) -> Self:
        """Return the options among what a function was given. Raises InputError for a bad one."""
        # ``fewest`` and ``or_auto`` are about the number of permutations
        drawing = {name: given[name] for name in ("n_resamples", "rng", "n_jobs", "progress")}
        resampling = check_resampling(**drawing, fewest=fewest, or_auto=or_auto)
        chosen = {one.name: given.get(one.name, one.default) for one in fields(Options)[1:]}
        words, bootstraps = checks.ALTERNATIVES, chosen["n_bootstrap"]
        chosen["alternative"] = checks.choice("alternative", chosen["alternative"], words)
        chosen["n_bootstrap"] = checks.integer("n_bootstrap", bootstraps, 2, 100_000)
        level = checks.fraction("confidence_level", chosen["confidence_level"])
        return cls(resampling=resampling, **chosen | {"confidence_level": level} | others)

    @property
    def is_limit(self) -> bool:
        """Whether nothing is permuted: p-values are those of the normal limit."""
        return self.resampling.n_resamples == 0

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return self.resampling.seed

    @property
    def bootstrap(self) -> Resampling:
        """The bootstrap samples of a standard error that is computed once."""
        # as many as there are permutations, whose number ``n_bootstrap`` stands for if it is not
        # fixed
        if not self.resampling.stops_early:
            return self.resampling
        return replace(self.resampling, n_resamples=self.n_bootstrap, min_draws=None)

    def quiet(self) -> Self:
        """Return the options of one test among many, without a progress bar of its own."""
        return replace(self, resampling=replace(self.resampling, progress=False))


SCHEMES = ("auto", *Scheme)
VARIANCES = ("auto", *Variance, None)
_LINEARIZED = {Variance.DELTA, Variance.DELONG}
_WITHOUT_BASE_RATES = {Kind.CLASSES, Kind.REGRESSION, Kind.ANY}  # labels need not be two


@dataclass(frozen=True, slots=True)
class Plan:
    """A scheme and a variance that fit the metric and the rows: plain, weighted or clustered."""

    metric: AnyMetric
    scheme: Scheme
    variance: Variance | None
    weighted: bool = False
    clustered: bool = False
    is_chosen: bool = False  # whether the user chose this variance
    # the variance as the plain text that results show
    variance_name: str | None = field(init=False)
    is_binomial: bool = field(init=False)  # whether the variance is that of rates
    # whether the observed gap has a bootstrap error, and permuted gaps share their own
    is_bootstrapped_once: bool = field(init=False)
    has_closed_form: bool = field(init=False)  # whether the variance has a formula
    # Whether labels are exchanged only among the rows of each rate's denominator. Each of those
    # rows is a Bernoulli trial: equal rates are equal distributions.
    fixes_denominators: bool = field(init=False)
    # Whether no p-value is below that of the normal limit: draws need not show how far chance goes
    # where units weigh differently, or where skewness is removed
    has_normal_floor: bool = field(init=False)
    # whether a Mantel–Haenszel gap depends only on the sum of the strata's counts
    depends_on_sum: bool = field(init=False)

    @classmethod
    def choose(
        cls,
        metric: AnyMetric,
        scheme: object,
        variance: object,
        *,
        weighted: bool = False,
        clustered: bool = False,
        stratified: bool = False,
    ) -> Plan:
        """Resolve "auto". Raises InputError for a scheme or variance that does not fit."""
        asked = choice("scheme", scheme, SCHEMES)
        chosen = choice("variance", variance, VARIANCES)
        plain_rows = not (weighted or clustered)
        if asked == "auto":
            used = Scheme.POOLED if clustered else Scheme.best_for(metric)
            is_one_rate = used == Scheme.DENOMINATOR and plain_rows and not stratified
            if is_one_rate and chosen in {"auto", Variance.SCORE}:
                used = Scheme.UNCONDITIONAL
        else:
            used = Scheme(asked)
        used.check(metric, clustered=clustered)
        best, *others = metric.fitting_variances(plain_rows=plain_rows)
        if used == Scheme.UNCONDITIONAL:
            _check_binomial(chosen, plain=plain_rows and not stratified)
        if chosen == "auto":
            return cls(metric, used, best, weighted, clustered)
        if chosen not in (best, *others):
            which = "" if plain_rows else " with weights or clusters"
            rule = f"'auto' or one of {listed([best, *others])} for {metric.name}{which}"
            raise InputError("variance", rule, chosen)
        studentizing = None if chosen is None else Variance(chosen)
        return cls(metric, used, studentizing, weighted, clustered, is_chosen=True)

    @classmethod
    def for_table(
        cls, metric: AnyMetric, table: Sample, groups: tuple[Hashable, ...], options: Options
    ) -> Plan:
        """Return the plan of a test of these groups of a table."""
        # strata that cannot be compared do not make a test stratified
        compared, n_strata = table, table.count_strata(groups)
        if n_strata > 1:
            weights = None
            if options.stratum_weights is not None:
                weights = read_stratum_weights(table, options.stratum_weights)
            scheme = Scheme.POOLED if table.cluster is not None else Scheme.best_for(metric)
            found = find_compared_strata(table, metric, scheme, groups, weights)
            rows = table.take(np.flatnonzero(found[table.stratum])) if not found.all() else table
            if rows.count_strata(groups):
                compared, n_strata = rows, rows.count_strata(groups)
        plan = cls.choose(
            metric.for_table(compared, groups),
            options.scheme,
            options.variance,
            weighted=table.weight is not None,
            clustered=table.cluster is not None,
            stratified=n_strata > 1,
        )
        return plan.with_skewness() if options.is_limit else plan

    def __post_init__(self) -> None:
        """Compute what follows from the choices."""
        variance = self.variance
        is_denominator = self.scheme.fixes_denominator
        given = "label" if self.scheme == Scheme.WITHIN_LABEL else None  # None: all rows
        fixed = not (self.weighted or self.clustered) and all(
            part.has_denominator and (is_denominator or part.given == given)
            for part in self.metric.parts
        )
        by_sum = fixed and self.metric.is_rate and variance in {Variance.SCORE, None}
        derived = {
            "variance_name": None if variance is None else variance.value,
            "is_binomial": variance is not None and variance.is_binomial,
            "is_bootstrapped_once": variance == Variance.FAST_BOOTSTRAP,
            "has_closed_form": variance is not None and variance.is_closed_form,
            "fixes_denominators": fixed,
            "has_normal_floor": variance == Variance.HALL
            or (variance in _LINEARIZED and (self.weighted or self.clustered)),
            "depends_on_sum": by_sum,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def is_slow(self) -> bool:
        """Whether a permutation calls a function, or takes bootstrap samples."""
        return self.metric.is_function or self.variance == Variance.BOOTSTRAP

    @property
    def removes_skewness(self) -> bool:
        """Whether the statistic is without the skewness of the gap."""
        return self.variance == Variance.HALL

    def with_permutations(self) -> Plan:
        """Return the plan of a test that exchanges labels, whatever the best of two groups is."""
        if self.scheme != Scheme.UNCONDITIONAL:
            return self.with_skewness()
        return replace(self, scheme=Scheme.DENOMINATOR)

    def with_skewness(self) -> Plan:
        """Return the plan of a test that leaves skewness in, unless the user chose otherwise."""
        if self.is_chosen or not self.removes_skewness:
            return self
        return replace(self, variance=Variance.DELTA)

    def check_limit(self) -> None:
        """Raise InputError if the normal limit is not that of one gap over a closed-form error."""
        if self.metric.is_joint or not self.has_closed_form or self.removes_skewness:
            rule = f"at least 1 for {self.metric.name} with {argument('variance', self.variance)}"
            hint = "0 is the normal limit of one gap over its closed-form standard error."
            raise InputError("n_resamples", rule, 0, hint)

    def check_direction(self, alternative: str) -> None:
        """Raise InputError for a direction of a joint metric, which has none."""
        if alternative in checks.DIRECTIONS and self.metric.is_joint:
            hint = "A joint test has no direction; test its parts one by one."
            rule = f"'two-sided' for {self.metric.name}"
            raise InputError("alternative", rule, alternative, hint)

    def ordering(self, alternative: str, *, strata: bool) -> str:
        """Return the alternative by which draws are compared with the sample.

        A statistic without a direction is compared by its size, and so are exact tests of rates:
        they hold their level however skewed the distribution is. F1 in strata is compared by its
        tails: it is not centred at zero there.
        """
        is_centred = self.metric.is_joint or self.metric.is_rate or not strata
        is_exact = self.fixes_denominators and not self.is_bootstrapped_once and is_centred
        is_by_size = alternative == "two-sided" and (is_exact or self.metric.is_joint)
        return "symmetric" if is_by_size else alternative

    def validity(self, *, strata: bool, limit: bool = False) -> str:
        """Return for which null the p-value is valid, and whether exactly or asymptotically."""
        # with ``limit`` it is the p-value of the normal limit, without permutations
        name = self.metric.name
        where = " within every stratum" if strata else ""
        may_differ = "base rates may differ"
        if self.metric.kind in _WITHOUT_BASE_RATES or self.metric.columns == ("y_true",):
            may_differ = "the groups may differ in other ways"
        weak = f"the weak null (equal {name}{where}; {may_differ})"
        is_given_label = self.scheme == Scheme.WITHIN_LABEL
        same = "predictions given the label" if is_given_label else "all columns"
        strong = f"the strong null (the groups have equal distributions of {same}{where})"
        if limit:
            return f"Asymptotically valid for {weak}: the normal limit, without permutations."
        if self.is_bootstrapped_once:
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
        without = "; the statistic is without its skewness" if self.removes_skewness else ""
        return f"Asymptotically valid for {weak}, and exact for {strong}{without}."


def _check_binomial(variance: object, *, plain: bool) -> None:
    """Raise InputError if an unconditional test cannot have this variance or these rows."""
    if not plain:
        rows = f"{argument('control_features')} or {argument('sample_weight')}"
        rule = f"'auto', 'denominator' or 'pooled' with {rows}"
        raise InputError("scheme", rule, Scheme.UNCONDITIONAL)
    if variance not in {"auto", Variance.SCORE}:
        rule = f"'auto' or {Variance.SCORE!r} with {argument('scheme', Scheme.UNCONDITIONAL)}"
        raise InputError("variance", rule, variance)


def plan_test(
    inputs: Inputs, metric: object, options: Options, choose_groups: Callable[[Sample], Groups]
) -> tuple[Sample, Plan, Groups]:
    """Read the columns that the metric needs, choose the groups, and plan the test."""
    chosen = get_metric(metric).for_arguments(inputs)
    table = read_table(inputs, chosen)
    groups = choose_groups(table)
    return table, Plan.for_table(chosen, table, groups, options), groups
