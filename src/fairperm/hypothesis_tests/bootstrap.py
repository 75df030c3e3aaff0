"""The basic bootstrap test: widely used, and included for comparison only."""

from __future__ import annotations

from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, cast

import numpy as np

from fairperm._utils import checks, streams
from fairperm._utils.formatting import format_count
from fairperm.data.arguments import Inputs
from fairperm.engines.estimates import join_gaps
from fairperm.errors import InputError, shown, warn_of
from fairperm.hypothesis_tests import small_groups
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.comparison_checks import check_strata, check_values
from fairperm.hypothesis_tests.plan import Options, Plan, plan_test
from fairperm.hypothesis_tests.results.gaps import BootstrapTestResult
from fairperm.inference.null import (
    Null,
    nearer_to_null,
    note_undefined,
    pvalue,
    tie_tolerance,
)
from fairperm.metrics.definition import Scheme

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from numpy.typing import NDArray

    from fairperm.data.arguments import (
        Alternative,
        BootstrapMethod,
        Column,
        Columns,
        Frame,
        Groups,
        Label,
        MetricLike,
        Missing,
        Seed,
        StratumWeights,
    )
    from fairperm.data.reading import Table
    from fairperm.engines.choice import JackknifeEngine
    from fairperm.engines.estimates import Gaps
    from fairperm.metrics.definition import AnyMetric

    Array = NDArray[np.float64]

_ENOUGH_IN_STRATUM = 10  # rows of a group; the variance of resampled rows lacks one in so many
METHODS = ("BCa", "percentile", "basic")
_OF_OTHERS = " Standard error and interval come from the other samples, and may be too small."
_VALIDITY = (
    "Asymptotically valid for the weak null; not exact for any null, and in small or unequal "
    "groups it can reject far too often: permutation_test holds its level better."
)


def bootstrap_test(
    y_true: Column | None = None,
    y_pred: Column | None = None,
    *,
    y_score: Columns | None = None,
    sensitive_features: Columns,
    metric: MetricLike,
    data: Frame | None = None,
    groups: Groups | None = None,
    threshold: float | None = None,
    pos_label: Label = None,
    control_features: Columns | None = None,
    stratum_weights: StratumWeights | None = None,
    missing: Missing = "error",
    ignore_index: bool = False,
    score_bins: int | None = None,
    sample_rows: int | None = None,
    alternative: Alternative = "two-sided",
    n_resamples: int = 9999,
    confidence_level: float = 0.95,
    method: BootstrapMethod = "BCa",
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> BootstrapTestResult:
    """Test the gap between two groups by the basic bootstrap; prefer permutation_test.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, metric, data, groups, threshold, pos_label
        As in :func:`fairperm.permutation_test`.
    control_features, stratum_weights, missing, ignore_index, score_bins, sample_rows
        As in :func:`fairperm.permutation_test`.
    alternative, n_resamples, confidence_level, rng, n_jobs, progress
        As in :func:`fairperm.permutation_test`.
    method : {"BCa", "percentile", "basic"}
        Method of the interval for the gap, as in scipy. All are two-sided.

    Returns
    -------
    BootstrapTestResult

    Notes
    -----
    Each group is resampled with replacement (within its strata). With T the observed gap and T*
    that of a bootstrap sample, T* − T stands for the gap that chance makes where there is none,
    so the p-value is the share of samples with |T* − T| ≥ |T|, counted as (b + 1)/(B + 1).
    "two-sided" and "symmetric" are the same here: twice the smaller tail would reject even more
    often (0.090 instead of 0.080 at nominal level 0.05 in the paper's section 4.2).

    A sample in which the metric is undefined counts as extreme, and is left out of standard error
    and interval. BCa's acceleration is the skewness of the jackknife, divided by six; a group (or
    stratum) without a jackknife, as it has only one positive, does not contribute.

    Examples
    --------
    >>> import fairperm
    >>> compas = fairperm.datasets.load_compas()
    >>> result = fairperm.bootstrap_test(
    ...     "two_year_recid", y_score="decile_score", threshold=5, sensitive_features="sex",
    ...     metric="false_positive_rate", data=compas, rng=1,
    ... )
    >>> round(result.difference, 4), round(result.pvalue, 4)
    (-0.0011, 0.9536)
    """
    options = Options.check(
        scheme=Scheme.POOLED,
        variance=None,
        alternative=alternative,
        stratum_weights=stratum_weights,
        n_resamples=n_resamples,
        or_auto=False,
        confidence_level=confidence_level,
        rng=rng,
        n_jobs=n_jobs,
        progress=progress,
    )
    inputs = Inputs(
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        sensitive_features=sensitive_features,
        control_features=control_features,
        data=data,
        threshold=threshold,
        pos_label=pos_label,
        missing=missing,
        ignore_index=ignore_index,
        score_bins=score_bins,
        sample_rows=sample_rows,
        seed=options.seed,
    )
    table, plan, pair = plan_test(
        inputs, metric, options, lambda table: table.choose_groups(groups)
    )
    if plan.metric.is_joint:
        hint = "Use permutation_test, or test its parts one by one."
        raise InputError("metric", "a single metric", plan.metric.name, hint)
    plan.metric.check_studentized()
    chosen_method = checks.choice("method", method, METHODS)
    result = compare(table, plan.metric, pair, options, chosen_method)
    warn_of(note for note in result.notes if note not in table.notes)
    return result


def compare(
    table: Table,
    metric: AnyMetric,
    groups: tuple[Hashable, ...],
    options: Options,
    method: str = "BCa",
) -> BootstrapTestResult:
    """Test the gap in a table of distinct rows: resample, recentre, count."""
    plan, resampling = Plan(metric, Scheme.POOLED, None), options.resampling
    comparison = Comparison.of(table, plan, groups, options.stratum_weights)
    # a bootstrap test takes neither weights nor clusters
    engine = cast("JackknifeEngine", comparison.engine(None))

    observed = engine.observed(options.seed)
    values = comparison.merge_strata(observed, None).value[:, 0, 0]
    check_values(comparison.whole, values)
    notes = check_strata(comparison, observed.value[:, 0], observed.size[:, 0], engine.weights)
    scale, span = comparison.scale(observed), metric.parts[0].span
    gap = float(observed.gaps(engine.weights).drop_rounding(scale).difference[0, 0])
    blocks = resampling.run_blocks(
        partial(_gaps, engine),
        streams.BOOTSTRAP,
        engine.block_size,
        through_joblib=metric.is_function,
    )
    resampled = join_gaps(blocks)
    distribution, error = resampled.difference[:, 0], resampled.spread()

    null = Null(distribution - gap)
    tolerance = tie_tolerance(gap, scale, np.ones(1))
    bins = comparison.binning_errors()
    hidden = 0.0 if bins is None else float(bins.sum())
    seen = nearer_to_null(gap, hidden, options.alternative)
    is_directed = options.alternative in checks.DIRECTIONS
    ordering = options.alternative if is_directed else "symmetric"
    p = pvalue(null, seen, ordering, tolerance, options.confidence_level)
    low, high = _interval(engine, gap, distribution, tolerance, options.confidence_level, method)
    return BootstrapTestResult(
        metric=metric.name,
        attribute=table.attribute,
        groups=(groups[0], groups[1]),
        values=comparison.by_group(values),
        counts=comparison.whole.totals(),
        difference=gap,
        part=None,
        standard_error=float(error[0]),
        confidence_interval=(max(low - hidden, -span), min(high + hidden, span)),
        confidence_level=options.confidence_level,
        statistic=gap,
        pvalue=p.value,
        pvalue_interval=p.interval,
        pvalue_interval_wilson=p.wilson_interval,
        alternative=options.alternative,
        n_resamples=len(distribution),
        n_undefined=int(null.undefined.sum()),
        n_strata=comparison.n_strata,
        n_dropped=table.n_dropped,
        seed=options.seed,
        validity=_VALIDITY,
        notes=(
            *notes,
            *_note_small_strata(comparison),
            *([small_groups.note_zero_error(metric.name)] if error[0] == 0 else []),
            *note_undefined(null, "bootstrap samples", _OF_OTHERS),
            *comparison.note_bins(bins, error),
            *table.notes,
        ),
        method=method,
        null_distribution=null.statistic,
        bootstrap_distribution=distribution,
    )


def _note_small_strata(comparison: Comparison) -> Iterator[str]:
    """Yield a note for a group with so few rows in a stratum that variances are understated."""
    rows = comparison.rows
    if rows.n_strata == 1:
        return
    sizes = np.zeros((rows.n_strata, len(comparison.groups)))
    np.add.at(sizes, (rows.stratum, rows.group), rows.count)
    fewest = sizes[(sizes > 0).all(axis=1)].min(axis=0).astype(int).tolist()
    for group, n in zip(comparison.groups, fewest, strict=True):
        if n < _ENOUGH_IN_STRATUM:
            yield (
                f"Group {shown(group)} has only {format_count(n, 'row')} in a stratum: with fewer "
                f"than {_ENOUGH_IN_STRATUM}, bootstrap intervals are too narrow and p-values too "
                "small. Use permutation_test."
            )


def _gaps(engine: JackknifeEngine, n: int, rng: np.random.Generator) -> Gaps:
    """Return the gaps of bootstrap samples, in the user's order of the groups."""
    return engine.bootstrapped(n, rng).gaps(engine.weights)


def _interval(
    engine: JackknifeEngine,
    gap: float,
    distribution: Array,
    tolerance: float,
    confidence_level: float,
    method: str,
) -> tuple[float, float]:
    """Return the bootstrap interval, from the samples in which the gap is defined."""
    defined = distribution[~np.isnan(distribution)]
    tails = np.array([1 - confidence_level, 1 + confidence_level]) / 2
    if method == "BCa":
        tails = _bca_tails(tails, gap, defined, tolerance, _acceleration(engine))
    low, high = np.quantile(defined, tails).tolist()
    return (2 * gap - high, 2 * gap - low) if method == "basic" else (low, high)


def _bca_tails(
    tails: Array, gap: float, distribution: Array, tolerance: float, acceleration: float
) -> Array:
    """Return Efron's tails: corrected for bias and for an error that changes with the gap."""
    normal = NormalDist()
    ties = np.abs(distribution - gap) <= tolerance
    below = ((distribution < gap) & ~ties).mean() + ties.mean() / 2
    least = 0.5 / len(distribution)
    bias = normal.inv_cdf(min(max(below, least), 1 - least))
    shifted = [bias + normal.inv_cdf(tail) for tail in tails]
    return np.array([normal.cdf(bias + z / (1 - acceleration * z)) for z in shifted])


def _acceleration(engine: JackknifeEngine) -> float:
    """Return the skewness of the jackknife's influences, over six.

    Groups (and strata) are samples of their own, as in scipy.
    """
    squares = cubes = 0.0
    for estimates, multiplicity in engine.jackknife():
        gaps = estimates.gaps(engine.weights).difference[:, 0]
        if not gaps.size or np.isnan(gaps).any():
            continue  # a sample this small has no jackknife, and hardly a weight
        n = multiplicity.sum()
        influence = (n - 1) * ((gaps * multiplicity).sum() / n - gaps)
        squares += (multiplicity * influence**2).sum() / n**2
        cubes += (multiplicity * influence**3).sum() / n**3
    return float(cubes / (6 * squares**1.5)) if squares > 0 else 0.0
