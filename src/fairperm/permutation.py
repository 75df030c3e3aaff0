"""The permutation test of the gap between two groups."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairperm import _draws as draws
from fairperm import _options as options
from fairperm._callable import CallableMetric
from fairperm._comparison import Comparison
from fairperm._estimates import Gaps, concatenate
from fairperm._inference import Null, extreme, gap_interval, normal_quantile, pvalue, tie_tolerance
from fairperm._intake import Inputs, read_table
from fairperm._plan import Plan
from fairperm._progress import waiting
from fairperm._rank import RankMetric
from fairperm.errors import FairpermWarning, InputError, problem
from fairperm.metrics import get_metric, settled
from fairperm.results import PermutationTestResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm._engines import Engine
    from fairperm._estimates import Estimates
    from fairperm._sample import Table
    from fairperm.metrics import AnyMetric

_MANY_UNDEFINED = 0.01


def permutation_test(
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
    alternative: str = "two-sided",
    n_resamples: int = 9999,
    n_bootstrap: int = 500,
    confidence_level: float = 0.95,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> PermutationTestResult:
    """Test whether the gap between two groups in a metric is real or chance.

    Parameters
    ----------
    y_true : array-like or str
        Labels: 0/1, -1/1, booleans, or two values of any kind with `pos_label`.
    y_pred : array-like or str, optional
        Predictions, in the same form.
    y_score : array-like or str, optional
        Scores instead of predictions: a row is predicted positive if its score is at least
        `threshold`.
    sensitive_features : array-like or str
        The protected attribute, of any hashable type. Several columns (a frame, or a list of
        names) make groups of their combinations, named by tuples.
    metric : str or callable
        A name or alias out of :func:`fairperm.metric_names`, or any function
        ``metric(y_true, y_pred)`` that returns a number, as those of scikit-learn and Fairlearn;
        fix its other arguments with :func:`functools.partial`. It gets the labels, and `y_pred`
        or `y_score`, whichever is given (if both are, the name of its second parameter decides),
        as they are: `threshold` and `pos_label` have no part in it. NaN means undefined. With a
        parameter ``sample_weight`` it is run on distinct rows, their counts as weights, which is
        fast where rows repeat.
    data : frame or mapping, optional
        Then the arguments above may be names of its columns.
    groups : pair, optional
        The first and the second group; not needed when there are exactly two, which are then
        taken in sorted order. Rows of other groups take no part.
    threshold : float
        See `y_score`.
    pos_label : optional
        Which label is the positive one.
    control_features : array-like, str or list of str, optional
        Strata: labels are exchanged only inside them, and the gap is the weighted mean of their
        gaps. (The gap of all rows together is not centred at zero there: Simpson's paradox.)
    stratum_weights : mapping, optional
        A weight for every stratum, instead of Mantel–Haenszel's m_A·m_B/(m_A + m_B), where m is
        the size of the rate's denominator, or of the group if the metric is not a rate.
    cluster : array-like or str, optional
        Which rows belong together (several rows of one person, say). Whole clusters change
        groups, and variances allow for whatever a cluster's rows have in common.
    sample_weight : array-like or str, optional
        How much each row counts, above 0. Weights stay with their rows, and variances allow for
        them: they are not numbers of copies.
    missing : {"error", "drop"}
        Whether missing values are an error or their rows are left out, and counted in the result.
    scheme : {"auto", "pooled", "within_label", "denominator"}
        Among which rows group labels are exchanged: all; those of equal label; those in the
        rate's denominator. "auto" is "denominator" for rates and "within_label" for
        equalized_odds (both are exact), "within_label" for roc_auc (it holds its level with few
        positives), "pooled" for the rest and wherever there are weights or clusters.
    variance : {"auto", "score", "wald", "delta", "bootstrap", "fast_bootstrap"} or None
        What the gap is divided by in every permutation. "auto" is "score" for rates, "delong"
        for the AUC, "delta" for other smooth metrics and "fast_bootstrap" for functions: the
        observed gap over its bootstrap deviation, permuted gaps over the deviation of them all.
        "bootstrap" resamples the groups of every permutation, as in the paper's Algorithm 1.
        None does not studentize: such a test is not valid when base rates differ.
    alternative : {"two-sided", "greater", "less"}
        Whether the first group's value differs from, is greater or is less than the second's.
    n_resamples : int
        Random permutations, unless enumerating every one of them is faster.
    n_bootstrap : int
        Bootstrap samples within each permutation, for ``variance="bootstrap"`` only.
    confidence_level : float
        Of the interval for the gap and of those for the p-value.
    rng : int or numpy.random.Generator, optional
        One seed gives one p-value, for any `n_jobs`, row order and kind of data frame.
    n_jobs : int, optional
        Threads; -1 for all cores. Functions run through joblib: in processes, or where
        :func:`joblib.parallel_config` says.
    progress : bool, optional
        Whether to show a bar when it takes over a second; None: on a terminal or in a notebook.

    Returns
    -------
    PermutationTestResult

    Notes
    -----
    The statistic is S = (θ_A − θ_B) / SE, its standard error recomputed in every permutation
    (DiCiccio et al., 2020). A p-value from B random permutations, b of them at least as extreme
    as the sample, is (b + 1)/(B + 1); an enumerated one is the probability of those
    permutations. Ties are extreme, and so are permutations that leave the metric undefined.
    The result's ``validity`` says for which null the p-value holds.

    The interval has the quantile q of |S| over the permutations: for rates it is Newcombe's, made
    of Wilson limits at q; else difference ± q·SE with the delta-method or DeLong's error (for the
    bootstrap variances, the bootstrap error).

    References
    ----------
    DiCiccio, Vasudevan, Basu, Kenthapadi, Agarwal. Evaluating Fairness Using Permutation Tests.
    KDD 2020.

    Examples
    --------
    >>> import fairperm
    >>> result = fairperm.permutation_test(
    ...     y_true=[1] * 160 + [0] * 40 + [1] * 40 + [0] * 160,
    ...     y_pred=[0] * 16 + [1] * 184 + [0] * 8 + [1] * 192,
    ...     sensitive_features=["a"] * 200 + ["b"] * 200,
    ...     metric="false_negative_rate",
    ... )
    >>> result
    PermutationTestResult: false_negative_rate, 'a' less 'b'
      'a'         0.1000  16 of 160
      'b'         0.2000  8 of 40
      difference  -0.1000  0.95 interval [-0.2614, +0.0154]
      p-value     0.1016  two-sided, exact
      validity    Exact for the weak null (equal false_negative_rate; base rates may differ)
                  at every sample size, given the rates' denominators.
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
    chosen = get_metric(metric)
    if isinstance(chosen, CallableMetric):
        chosen = chosen.reading(inputs)
    table = read_table(inputs, chosen)
    chosen = settled(chosen, table, groups)
    plan = Plan.choose(
        chosen,
        scheme,
        variance,
        weighted=sample_weight is not None,
        clustered=cluster is not None,
    )
    return compare(
        table,
        plan,
        groups=groups,
        stratum_weights=stratum_weights,
        alternative=_alternative(alternative, chosen),
        resampling=draws.Resampling.checked(n_resamples, rng, n_jobs, progress),
        n_bootstrap=options.integer("n_bootstrap", n_bootstrap, 2, 100_000),
        confidence_level=options.fraction("confidence_level", confidence_level),
    )


def compare(
    table: Table,
    plan: Plan,
    *,
    groups: object = None,
    stratum_weights: object = None,
    alternative: str = "two-sided",
    resampling: draws.Resampling,
    n_bootstrap: int = 500,
    confidence_level: float = 0.95,
) -> PermutationTestResult:
    """Test the gap in a table of distinct rows, wherever it came from: the paper's algorithm."""
    comparison = Comparison.of(table, plan, groups, stratum_weights)
    with waiting("preparing (the first time on a machine, compiling)", resampling.progress):
        engine = comparison.engine(plan.variance, n_bootstrap)
        estimates = engine.observed(draws.stream(resampling.seed, draws.OBSERVED))
    values = comparison.values(engine, estimates)
    comparison.check_strata(estimates, engine.weights)
    observed = _gaps(engine, plan, estimates)
    permuted, log_probability = _permutations(engine, plan, resampling)
    if plan.variance == "fast_bootstrap":
        observed = observed.over(_bootstrap_error(engine, plan, resampling))
        permuted = permuted.over(permuted.spread())

    scale = comparison.scale(estimates)
    null = Null(permuted.studentized(scale), log_probability)
    studentized = _defined(observed.studentized(scale)[0], plan)
    tolerance = tie_tolerance(studentized, scale, observed.standard_error[0])
    is_extreme = extreme(null.statistic, studentized, alternative, tolerance)
    p = pvalue(null, is_extreme, confidence_level)

    comparison.warn_if_small()
    _warn_of_undefined(null)
    gap, error = observed.difference[0], _reported_error(engine, plan, observed, resampling)
    worst = int(np.abs(gap).argmax())
    # of rates, permutations may hardly vary: what is not known then is left to the normal quantile
    of_rates = plan.variance in {"score", "wald"}
    least = normal_quantile(confidence_level, alternative) if of_rates else 0.0
    return PermutationTestResult(
        metric=plan.metric.name,
        groups=comparison.groups,
        values=values,
        counts=comparison.totals(),
        difference=float(gap[0] if len(gap) == 1 else abs(gap[worst])),
        standard_error=float(error[worst]),
        confidence_interval=gap_interval(
            null,
            gap,
            lambda quantile: _reaches(engine, plan, estimates, error, max(quantile, least)),
            alternative,
            confidence_level,
            max(part.span for part in plan.metric.parts),
        ),
        confidence_level=confidence_level,
        statistic=studentized,
        pvalue=p.value,
        pvalue_interval=p.interval,
        pvalue_interval_wilson=p.wilson_interval,
        alternative=alternative,
        n_resamples=len(null.statistic),
        n_undefined=int(null.undefined.sum()),
        n_strata=comparison.rows.n_strata,
        n_dropped=table.n_dropped,
        seed=resampling.seed,
        validity=plan.validity(strata=comparison.rows.n_strata > 1),
        scheme=plan.scheme,
        variance=plan.variance,
        exact=log_probability is not None,
        null_distribution=null.statistic,
        null_probabilities=None if log_probability is None else np.exp(log_probability),
    )


def _gaps(engine: Engine, plan: Plan, estimates: Estimates) -> Gaps:
    """Return the gaps in the user's order of the groups, over an error of one if asked for none."""
    gaps = estimates.gaps(engine.weights).times(-1 if engine.swapped else 1)
    return gaps.over(np.ones(1)) if plan.variance in {None, "fast_bootstrap"} else gaps


def _permuted_gaps(engine: Engine, plan: Plan, n: int, rng: np.random.Generator) -> Gaps:
    return _gaps(engine, plan, engine.permuted(n, rng))


def _bootstrapped_gaps(engine: Engine, plan: Plan, n: int, rng: np.random.Generator) -> Gaps:
    return _gaps(engine, plan, engine.bootstrapped(n, rng))


def _permutations(
    engine: Engine, plan: Plan, resampling: draws.Resampling
) -> tuple[Gaps, NDArray[np.float64] | None]:
    """Return the gaps of every permutation with its log-probability, or of random ones."""
    by_sum = plan.depends_on_sum and engine.weights is None
    rng = draws.stream(resampling.seed, draws.PERMUTATIONS)
    every = engine.enumerated(resampling.n_resamples, by_sum=by_sum, rng=rng)
    if every is not None:
        return _gaps(engine, plan, every[0]), every[1]
    blocks = resampling.in_blocks(
        partial(_permuted_gaps, engine, plan),
        draws.PERMUTATIONS,
        engine.block_size,
        through_joblib=isinstance(plan.metric, CallableMetric),
    )
    return concatenate(blocks), None


def _bootstrap_error(
    engine: Engine, plan: Plan, resampling: draws.Resampling
) -> NDArray[np.float64]:
    blocks = resampling.in_blocks(
        partial(_bootstrapped_gaps, engine, plan),
        draws.BOOTSTRAP,
        engine.block_size,
        through_joblib=isinstance(plan.metric, CallableMetric),
    )
    return concatenate(blocks).spread()


def _reported_error(
    engine: Engine, plan: Plan, observed: Gaps, resampling: draws.Resampling
) -> NDArray[np.float64]:
    """Return the error of the gap without the null: pooling both groups would assume it."""
    if plan.variance is None and not all(part.smooth for part in plan.metric.parts):
        return _bootstrap_error(engine, plan, resampling)
    if plan.variance in {"score", None}:
        own = "delong" if isinstance(plan.metric, RankMetric) else "delta"
        free = engine.with_variance(own).observed(draws.stream(0, draws.OBSERVED))
        observed = free.gaps(engine.weights)
    error: NDArray[np.float64] = observed.standard_error[0]
    return error


def _reaches(
    engine: Engine, plan: Plan, estimates: Estimates, error: NDArray[np.float64], quantile: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how far below and above the gap the interval goes for this quantile."""
    if plan.variance is None:
        return np.full_like(error, quantile), np.full_like(error, quantile)
    if plan.variance in {"score", "wald"}:
        below, above = estimates.rate_reaches(engine.weights, quantile)
        return (above, below) if engine.swapped else (below, above)
    return quantile * error, quantile * error


def _defined(statistic: float, plan: Plan) -> float:
    """Return the observed statistic, if there is one that permuted ones can be compared with.

    It is NaN if no bootstrap sample of a group is defined. Over a bootstrap deviation of zero it
    is infinite; permuted gaps over the deviation of all of them never are.
    """
    lost = math.isinf(statistic) and plan.variance == "fast_bootstrap"
    if math.isnan(statistic) or lost:
        rule = f"one whose standard error of {plan.metric.name} is defined, and not zero"
        closed = plan.variance in {"score", "wald", "delta", "delong"}
        hint = "The groups are too small for it." if closed else "Use 'auto', or larger groups."
        raise InputError(problem("variance", rule, plan.variance, hint))
    return float(statistic)


def _alternative(value: object, metric: AnyMetric) -> str:
    alternative = options.choice("alternative", value, options.ALTERNATIVES)
    if len(metric.parts) > 1 and alternative != "two-sided":
        hint = "A joint test has no direction; test its parts one by one."
        rule = f"'two-sided' for {metric.name}"
        raise InputError(problem("alternative", rule, value, hint))
    return alternative


def _warn_of_undefined(null: Null) -> None:
    share = null.share(null.undefined)
    if share > _MANY_UNDEFINED:
        message = (
            f"The metric is undefined in {share:.1%} of the permutations, each of which counts as "
            "extreme: the p-value errs upwards. The groups are small for this metric."
        )
        warnings.warn(message, FairpermWarning, stacklevel=4)
