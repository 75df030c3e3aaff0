"""The permutation test of the gap between two groups."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from fairperm import _draws as draws
from fairperm import _options as options
from fairperm._comparison import Comparison
from fairperm._enumeration import enumerate_permutations
from fairperm._inference import Null, extreme, gap_interval, pvalue, tie_tolerance
from fairperm._intake import Inputs, read_table
from fairperm._plan import Plan
from fairperm._statistic import Gaps, GapStatistic, concatenate
from fairperm.errors import FairpermWarning, InputError, problem
from fairperm.metrics import get_metric
from fairperm.results import PermutationTestResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm._metric import AnyMetric
    from fairperm._sample import Cells, Table

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
    metric : str
        A name or alias out of :func:`fairperm.metric_names`.
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
    cluster, sample_weight : optional
        Not supported yet.
    missing : {"error", "drop"}
        Whether missing values are an error or their rows are left out, and counted in the result.
    scheme : {"auto", "pooled", "within_label", "denominator"}
        Among which rows group labels are exchanged: all; those of equal label; those in the
        rate's denominator. "auto" is "denominator" for rates, "within_label" for
        equalized_odds (either is exact), and "pooled" for the rest.
    variance : {"auto", "score", "wald", "delta", "bootstrap", "fast_bootstrap"} or None
        What the gap is divided by in every permutation. "auto" is "score" for rates and "delta"
        for the rest. None does not studentize: such a test is not valid when base rates differ.
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
        Threads; -1 for all cores.
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

    The interval is difference ± q·SE with q the quantile of |S| over the permutations and SE the
    wald or delta-method error (for the bootstrap variances, the bootstrap error).

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
      difference  -0.1000  0.95 interval [-0.2396, +0.0396]
      p-value     0.1016  two-sided, exact
      validity    Exact for the weak null (equal false_negative_rate; base rates may differ)
                  at every sample size, given the rates' denominators.
    """
    _refuse("cluster", cluster)
    _refuse("sample_weight", sample_weight)
    chosen = get_metric(metric)
    plan = Plan.choose(chosen, scheme, variance)
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
    )
    return compare(
        read_table(inputs, needs_prediction=chosen.uses_prediction),
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
    comparison = Comparison.of(table, plan.metric, groups, stratum_weights)
    sample = comparison.sample(plan.block())
    statistic = GapStatistic(plan.metric, sample, plan.variance, n_bootstrap)

    observed = statistic(sample.counts[None], draws.stream(resampling.seed, draws.OBSERVED))
    permuted, log_probability = _permutations(sample, statistic, plan, resampling)
    if plan.variance == "fast_bootstrap":
        observed = observed.over(_bootstrap_error(sample, statistic, resampling))
        permuted = permuted.over(permuted.spread())

    spans = np.array([part.span for part in plan.metric.parts])
    null = Null(permuted.studentized(spans), log_probability)
    studentized = _defined(observed.studentized(spans)[0], plan)
    tolerance = tie_tolerance(studentized, spans, observed.standard_error[0])
    is_extreme = extreme(null.statistic, studentized, alternative, tolerance)
    p = pvalue(null, is_extreme, confidence_level)

    _warn_of_undefined(null)
    gap, error = observed.difference[0], _reported_error(statistic, observed)
    worst = int(np.abs(gap).argmax())
    unit = np.ones_like(error) if plan.variance is None else error
    return PermutationTestResult(
        metric=plan.metric.name,
        groups=comparison.groups,
        values=comparison.values(),
        counts=comparison.totals(),
        difference=float(gap[0] if len(gap) == 1 else abs(gap[worst])),
        standard_error=float(error[worst]),
        confidence_interval=gap_interval(
            null, gap, unit, alternative, confidence_level, float(spans.max())
        ),
        confidence_level=confidence_level,
        statistic=studentized,
        pvalue=p.value,
        pvalue_interval=p.interval,
        pvalue_interval_wilson=p.wilson_interval,
        alternative=alternative,
        n_resamples=len(null.statistic),
        n_undefined=int(null.undefined.sum()),
        n_strata=len(sample.counts),
        n_dropped=table.n_dropped,
        seed=resampling.seed,
        validity=plan.validity(strata=len(sample.counts) > 1),
        scheme=plan.scheme,
        variance=plan.variance,
        exact=log_probability is not None,
        null_distribution=null.statistic,
        null_probabilities=None if log_probability is None else np.exp(log_probability),
    )


def _permutations(
    sample: Cells, statistic: GapStatistic, plan: Plan, resampling: draws.Resampling
) -> tuple[Gaps, NDArray[np.float64] | None]:
    """Return the gaps of every permutation with its log-probability, or of random ones."""
    if plan.variance in {"score", "wald", "delta", None}:
        by_sum = plan.depends_on_sum and sample.weights is None
        every = enumerate_permutations(sample, resampling.n_resamples, by_sum=by_sum)
        if every is not None:
            tables, log_probability = every
            return statistic(
                tables, draws.stream(resampling.seed, draws.PERMUTATIONS)
            ), log_probability
    blocks = resampling.in_blocks(
        lambda n, rng: statistic(draws.permute(sample, n, rng), rng), draws.PERMUTATIONS
    )
    return concatenate(blocks), None


def _bootstrap_error(
    sample: Cells, statistic: GapStatistic, resampling: draws.Resampling
) -> NDArray[np.float64]:
    blocks = resampling.in_blocks(
        lambda n, rng: statistic(draws.bootstrap_sample(sample, n, rng), rng), draws.BOOTSTRAP
    )
    return concatenate(blocks).spread()


def _reported_error(statistic: GapStatistic, observed: Gaps) -> NDArray[np.float64]:
    """Return the error of the gap without the null: pooling both groups would assume it."""
    if statistic.variance in {"score", None}:
        free = statistic.with_variance("delta")
        observed = free(statistic.sample.counts[None], draws.stream(0, draws.OBSERVED))
    error: NDArray[np.float64] = observed.standard_error[0]
    return error


def _defined(statistic: float, plan: Plan) -> float:
    """Return the observed statistic, which is NaN if no bootstrap sample of a group is defined."""
    if math.isnan(statistic):
        rule = f"one whose standard error of {plan.metric.name} is defined in both groups"
        raise InputError(problem("variance", rule, plan.variance, "The groups are too small."))
    return float(statistic)


def _alternative(value: object, metric: AnyMetric) -> str:
    alternative = options.choice("alternative", value, options.ALTERNATIVES)
    if len(metric.parts) > 1 and alternative != "two-sided":
        hint = "A joint test has no direction; test its parts one by one."
        rule = f"'two-sided' for {metric.name}"
        raise InputError(problem("alternative", rule, value, hint))
    return alternative


def _refuse(name: str, value: object) -> None:
    if value is not None:
        hint = "A test that ignored it would be wrong."
        raise InputError(problem(name, "left out: it is not supported yet", type(value), hint))


def _warn_of_undefined(null: Null) -> None:
    share = null.share(null.undefined)
    if share > _MANY_UNDEFINED:
        message = (
            f"The metric is undefined in {share:.1%} of the permutations, each of which counts as "
            "extreme: the p-value errs upwards. The groups are small for this metric."
        )
        warnings.warn(message, FairpermWarning, stacklevel=4)
