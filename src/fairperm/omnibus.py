"""The omnibus test of whether a metric is the same in all of several groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm import _draws as draws
from fairperm import _options as options
from fairperm._callable import CallableMetric
from fairperm._comparison import Comparison
from fairperm._estimates import variance_of_defined
from fairperm._inference import Null, extreme, pvalue
from fairperm._intake import Inputs
from fairperm._many_groups import MOST_GROUPS, many_groups
from fairperm._plan import planned
from fairperm._progress import waiting
from fairperm._rank import RankMetric
from fairperm.errors import InputError, UndefinedMetricError, problem, shown, warn_of
from fairperm.results import PlainResult

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from numpy.typing import NDArray

    from fairperm._engines import Engine
    from fairperm._estimates import Estimates
    from fairperm._many_groups import ManyGroups
    from fairperm._plan import Plan
    from fairperm._sample import Table

    Array = NDArray[np.float64]

_TIE = 1e-11  # of a statistic, plus one: what rounding may make of equal ones
_ZERO_GAP = 1e-12  # of the metric's size: a smaller gap over no variance is rounding


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class OmnibusTestResult(PlainResult):
    """The result of :func:`fairperm.omnibus_test`.

    Attributes
    ----------
    metric : str
        The metric's full name.
    groups : tuple
        The groups compared.
    values, standard_errors, counts : dict
        Of each group: the metric, its standard error, and the totals it is made of.
    mean : float
        The groups' values averaged, each weighted by the inverse of its variance. NaN for a joint
        metric.
    statistic : float
        The sum over the groups of (value − mean)² / variance; of the parts of a joint metric, the
        largest.
    pvalue : float
        The share of permutations with a statistic at least as large; never zero.
    pvalue_interval, pvalue_interval_wilson : tuple of float
        For the p-value that infinitely many permutations would give.
    validity : str
        For which null the p-value is valid, and in which sense.
    notes : tuple of str
        What else must be known to read the result rightly.
    null_distribution : numpy.ndarray
        The statistic under each permutation.
    """

    metric: str
    groups: tuple[Hashable, ...]
    values: Mapping[Hashable, Any]
    standard_errors: Mapping[Hashable, Any]
    counts: Mapping[Hashable, Mapping[str, float]]
    mean: float
    statistic: float
    pvalue: float
    pvalue_interval: tuple[float, float]
    pvalue_interval_wilson: tuple[float, float]
    confidence_level: float
    scheme: str
    variance: str | None
    n_resamples: int
    n_undefined: int
    n_strata: int
    n_dropped: int
    seed: int
    validity: str
    notes: tuple[str, ...]
    null_distribution: NDArray[np.float64] = field(repr=False)

    def __repr__(self) -> str:
        low, high = self.pvalue_interval
        width = max(len(shown(group)) for group in self.groups)
        width = max(width, len("statistic"))
        lines = [f"OmnibusTestResult: {self.metric} in {len(self.groups)} groups"]
        for group in self.groups:
            value, n_rows = self.values[group], self.counts[group]["rows"]
            parts = value.items() if isinstance(value, dict) else [("", value)]
            text = ", ".join(f"{name} {one:.4f}".strip() for name, one in parts)
            lines.append(f"  {shown(group):<{width}}  {text}  of {n_rows:,} rows")
        lines += [
            f"  {'statistic':<{width}}  {self.statistic:.4g}",
            f"  {'p-value':<{width}}  {self.pvalue:.4g}  {self.n_resamples:,} draws, "
            f"{self.confidence_level:.4g} interval [{low:.4g}, {high:.4g}]",
            f"  {'validity':<{width}}  {self.validity}",
        ]
        return "\n".join(lines)


def omnibus_test(
    y_true: object,
    y_pred: object = None,
    *,
    y_score: object = None,
    sensitive_features: object,
    metric: object,
    data: object = None,
    groups: object = None,
    threshold: float = 0.5,
    pos_label: object = None,
    control_features: object = None,
    stratum_weights: object = None,
    cluster: object = None,
    sample_weight: object = None,
    missing: str = "error",
    scheme: str = "auto",
    variance: str | None = "auto",
    n_resamples: int = 9999,
    confidence_level: float = 0.95,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> OmnibusTestResult:
    """Test whether a metric is the same in all of several groups.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, metric, data, threshold, pos_label
        As in :func:`fairperm.permutation_test`.
    groups : sequence, optional
        Two groups or more; without it, all there are.
    control_features, stratum_weights
        As in :func:`fairperm.permutation_test`; a stratum's weight is 1/(1/m_A + 1/m_B + …), and a
        group's value the mean of its strata's with these weights.
    cluster, sample_weight, missing, scheme, n_resamples, confidence_level, rng, n_jobs, progress
        As in :func:`fairperm.permutation_test`.
    variance : {"auto", "score", "wald", "delta", "delong", "fast_bootstrap"} or None
        As in :func:`fairperm.permutation_test`. None weighs the groups by their sizes alone: such
        a test is not valid when base rates differ.

    Returns
    -------
    OmnibusTestResult

    Notes
    -----
    The statistic is Σ (θ_g − θ̄)²/V_g, with θ̄ the mean of the groups' values weighted by 1/V_g, in
    the sample and in every permutation of the labels over all groups. For a rate with the score
    variance this is Pearson's chi-square.

    Examples
    --------
    >>> import fairperm
    >>> compas = fairperm.datasets.load_compas()
    >>> result = fairperm.omnibus_test(
    ...     "two_year_recid", y_score="decile_score", threshold=5, sensitive_features="race",
    ...     groups=("African-American", "Caucasian", "Hispanic"), metric="selection_rate",
    ...     data=compas, rng=1,
    ... )
    >>> round(result.statistic, 1), result.pvalue
    (478.6, 0.0001)
    """
    inputs = Inputs(
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        sensitive_features=sensitive_features,
        control_features=control_features,
        cluster=cluster,
        sample_weight=sample_weight,
        data=data,
        threshold=threshold,
        pos_label=pos_label,
        missing=missing,
    )
    table, plan, chosen = planned(
        inputs, metric, scheme, variance, lambda table: table.choose_several(groups)
    )
    result = compare_all(
        table,
        plan,
        groups=chosen,
        stratum_weights=stratum_weights,
        resampling=draws.Resampling.checked(n_resamples, rng, n_jobs, progress),
        confidence_level=options.fraction("confidence_level", confidence_level),
    )
    warn_of(result.notes)
    return result


def compare_all(
    table: Table,
    plan: Plan,
    *,
    groups: tuple[Hashable, ...],
    stratum_weights: object = None,
    resampling: draws.Resampling,
    confidence_level: float = 0.95,
) -> OmnibusTestResult:
    """Test the groups of a table of distinct rows, wherever it came from."""
    comparison = Comparison.of(table, plan, groups, stratum_weights)
    _check(plan, groups, comparison.rows.n_strata)
    with waiting("preparing (the first time on a machine, compiling)", resampling.progress):
        engine = many_groups(comparison, plan.variance)
        estimates = engine.observed(draws.stream(resampling.seed, draws.OBSERVED))
    values = comparison.values(_alone(comparison, estimates))
    notes = comparison.check_strata(estimates, engine.weights)

    blocks = resampling.in_blocks(
        partial(_permuted, engine),
        draws.PERMUTATIONS,
        engine.block_size,
        through_joblib=isinstance(plan.metric, CallableMetric),
    )
    observed, permuted = _Values.of(estimates, engine.weights), _Values.joined(blocks)
    if plan.variance == "fast_bootstrap":
        observed = observed.with_variance(_bootstrap_variance(table, plan, groups, resampling))
        permuted = permuted.with_variance(permuted.spread())
    elif plan.variance is None:
        observed, permuted = (one.with_variance(1 / one.size) for one in (observed, permuted))
    scale = comparison.scale(estimates)
    statistic = observed.statistic(scale)[0]
    if math.isnan(statistic):
        rule = f"one whose standard error of {plan.metric.name} is defined"
        hint = "The groups are too small for it."
        raise UndefinedMetricError(problem("variance", rule, plan.variance, hint))
    null = Null(permuted.statistic(scale))
    tolerance = 0.0 if math.isinf(statistic) else _TIE * (1 + statistic)
    p = pvalue(null, extreme(null.statistic, statistic, "greater", tolerance), confidence_level)
    mean = observed.mean()
    return OmnibusTestResult(
        metric=plan.metric.name,
        groups=groups,
        values=values,
        standard_errors=comparison.by_group(np.sqrt(observed.variance[:, 0])),
        counts=comparison.totals(),
        mean=float(mean[0, 0]) if len(mean) == 1 else math.nan,
        statistic=float(statistic),
        pvalue=p.value,
        pvalue_interval=p.interval,
        pvalue_interval_wilson=p.wilson_interval,
        confidence_level=confidence_level,
        scheme=plan.scheme,
        variance=plan.variance,
        n_resamples=len(null.statistic),
        n_undefined=int(null.undefined.sum()),
        n_strata=comparison.rows.n_strata,
        n_dropped=table.n_dropped,
        seed=resampling.seed,
        validity=plan.validity(strata=comparison.rows.n_strata > 1),
        notes=(*notes, *comparison.few_of_a_label()),
        null_distribution=null.statistic,
    )


@dataclass(frozen=True, slots=True)
class _Values:
    """Values, variances and sizes by part, draw and group, the strata combined."""

    value: Array
    variance: Array
    size: Array

    @classmethod
    def of(cls, estimates: Estimates, weights: Array | None) -> _Values:
        value, variance = estimates.standardized(weights)
        return cls(value, variance, estimates.size.sum(axis=-2))

    @classmethod
    def joined(cls, blocks: list[_Values]) -> _Values:
        every = ([getattr(block, name) for block in blocks] for name in cls.__slots__)
        return cls(*(np.concatenate(arrays, axis=1) for arrays in every))

    def with_variance(self, variance: Array) -> _Values:
        return _Values(self.value, np.broadcast_to(variance, self.value.shape), self.size)

    def spread(self) -> Array:
        """Return the variance of every part and group over the draws."""
        return variance_of_defined(np.moveaxis(self.value, 1, -1))[:, None]

    def mean(self) -> Array:
        """Return the groups' mean by inverse variance; of those without variance, if there are."""
        with np.errstate(divide="ignore", invalid="ignore"):
            certain = self.variance == 0
            weight = np.where(certain.any(axis=-1, keepdims=True), certain, 1 / self.variance)
            mean: Array = (weight * self.value).sum(axis=-1) / weight.sum(axis=-1)
        return mean

    def statistic(self, scale: Array) -> Array:
        """Return the statistic of every draw, the largest of the parts.

        A group without variance adds nothing if it is at the mean, else it makes it infinite.
        """
        deviation = self.value - self.mean()[..., None]
        nothing = np.abs(deviation) <= _ZERO_GAP * scale[:, None, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where((self.variance == 0) & nothing, 0.0, deviation**2 / self.variance)
        largest: Array = terms.sum(axis=-1).max(axis=0)
        return largest


def _alone(comparison: Comparison, estimates: Estimates) -> Estimates:
    """Return the estimates of all strata as one."""
    if comparison.rows.n_strata == 1:
        return estimates
    engine = many_groups(comparison.unstratified(), None)
    return engine.observed(draws.stream(0, draws.OBSERVED))


def _permuted(engine: ManyGroups, n: int, rng: np.random.Generator) -> _Values:
    return _Values.of(engine.permuted(n, rng), engine.weights)


def _bootstrap_variance(
    table: Table, plan: Plan, groups: tuple[Hashable, ...], resampling: draws.Resampling
) -> Array:
    """Return every group's bootstrap variance: two groups at a time, as in a test of their gap."""
    variances: dict[Hashable, Array] = {}
    for i in range(0, len(groups), 2):
        pair = (groups[i], groups[i + 1 if i + 1 < len(groups) else 0])
        engine = Comparison.of(table, plan, pair, None).engine(None)
        blocks = resampling.in_blocks(
            partial(_resampled, engine),
            draws.BOOTSTRAP,
            engine.block_size,
            through_joblib=isinstance(plan.metric, CallableMetric),
        )
        both = variance_of_defined(np.concatenate(blocks, axis=-1))
        variances |= dict(zip(pair, np.moveaxis(both, 1, 0), strict=True))
    return np.stack([variances[group] for group in groups], axis=-1)[:, None]


def _resampled(engine: Engine, n: int, rng: np.random.Generator) -> Array:
    """Return values by part, group and draw."""
    estimates = engine.bootstrapped(n, rng).in_order(swapped=engine.swapped)
    return np.moveaxis(estimates.value[:, :, 0], 1, -1)


def _check(plan: Plan, groups: tuple[Hashable, ...], n_strata: int) -> None:
    """Refuse what a test of many groups cannot do."""
    if len(groups) > MOST_GROUPS:
        hint = "Merge small groups, or compare some of them."
        raise InputError(problem("groups", f"at most {MOST_GROUPS}", len(groups), hint))
    if isinstance(plan.metric, RankMetric) and (plan.weighted or plan.clustered):
        which = "sample_weight" if plan.weighted else "cluster"
        hint = "Compare two groups at a time with permutation_test."
        raise InputError(problem(which, f"left out for {plan.metric.name}", "both", hint))
    if plan.variance == "bootstrap":
        hint = "Use 'auto'."
        raise InputError(problem("variance", "another for many groups", "bootstrap", hint))
    if plan.variance == "fast_bootstrap" and n_strata > 1:
        hint = "Compare two groups at a time with permutation_test."
        rule = f"left out for {plan.metric.name}, whose variance is found by bootstrap"
        raise InputError(problem("control_features", rule, f"{n_strata} strata", hint))
