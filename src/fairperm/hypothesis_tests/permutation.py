"""The permutation test of the gap between two groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm.data.arguments import Inputs
from fairperm.errors import warn_of
from fairperm.hypothesis_tests.gap_test import compare
from fairperm.hypothesis_tests.options import Options
from fairperm.hypothesis_tests.plan import plan_test

if TYPE_CHECKING:
    from fairperm.data.argument_types import (
        Alternative,
        Column,
        Columns,
        Frame,
        Groups,
        Label,
        MetricLike,
        Missing,
        SchemeName,
        Seed,
        StratumWeights,
        VarianceName,
    )
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult


def permutation_test(
    y_true: Column,
    y_pred: Column | None = None,
    *,
    y_score: Column | None = None,
    sensitive_features: Columns,
    metric: MetricLike,
    data: Frame | None = None,
    groups: Groups | None = None,
    threshold: float | None = None,
    pos_label: Label = None,
    control_features: Columns | None = None,
    stratum_weights: StratumWeights | None = None,
    cluster: Columns | None = None,
    sample_weight: Column | None = None,
    missing: Missing = "error",
    score_bins: int | None = None,
    sample_rows: int | None = None,
    scheme: SchemeName = "auto",
    variance: VarianceName = "auto",
    alternative: Alternative = "two-sided",
    n_resamples: int = 9999,
    n_bootstrap: int = 500,
    confidence_level: float = 0.95,
    rng: Seed = None,
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
        Then the arguments above may be names of its columns. Of a lazy frame (DuckDB, Spark,
        Polars, and what else narwhals knows) they must be: its rows are counted where they are.
    groups : pair, optional
        The first and the second group; not needed when there are exactly two, which are then
        taken in sorted order. Rows of other groups take no part.
    threshold : float, optional
        See `y_score`. One half if left out, for scores from 0 to 1; others need one.
    pos_label : optional
        Which label is the positive one.
    control_features : array-like, str or list of str, optional
        Strata: labels are exchanged only inside them, and the gap is the weighted mean of their
        gaps. (The gap of all rows together is not centred at zero there: Simpson's paradox.)
    stratum_weights : mapping, optional
        A weight for every stratum, instead of Mantel–Haenszel's m_A·m_B/(m_A + m_B), where m is
        the size of the denominator of a rate or f1_score (with `sample_weight`, its weight), or
        else the number of the group's rows (with `cluster`, of its clusters; weights do not count).
    cluster : array-like or str, optional
        Which rows belong together (several rows of one person, say). Whole clusters change
        groups, and variances allow for whatever a cluster's rows have in common.
    sample_weight : array-like or str, optional
        How much each row counts, above 0. Weights stay with their rows, and variances allow for
        them: they are not numbers of copies.
    missing : {"error", "drop"}
        Whether missing values are an error or their rows are left out, and counted in the result.
    score_bins : int, optional
        Into how many bins of equal width the scores of a lazy frame are put, for the AUC. By
        default 16,384 if it has more than 1,048,576 distinct rows, and none otherwise. The result
        says how much this can matter.
    sample_rows : int, optional
        Of a lazy frame with more distinct rows than that, and a metric that needs them (a squared
        error, log loss, a function), how many rows are drawn at random and tested. Which rows is
        decided by all the numbers in a row and the seed, so that engine and row order have no part
        in it; with `cluster`, whole clusters are drawn. Not used where rows can be counted.
    scheme : {"auto", "pooled", "within_label", "denominator"}
        Among which rows group labels are exchanged: all; those of equal label; those in the
        rate's denominator. "auto" is "denominator" for rates and f1_score (a function of one),
        "within_label" for equalized_odds (all of which are exact) and for roc_auc (it holds its
        level with few positives), "pooled" for the rest and wherever there are weights or
        clusters.
    variance : {"auto", "score", "wald", "delta", "bootstrap", "fast_bootstrap"} or None
        What the gap is divided by in every permutation. "auto" is "score" for rates and
        f1_score, "delong" for the AUC, "delta" for other smooth metrics and "fast_bootstrap" for
        functions: the observed gap over its bootstrap deviation, permuted gaps over the deviation
        of them all.
        "bootstrap" resamples the groups of every permutation, as in the paper's Algorithm 1.
        None does not studentize: such a test is not valid when base rates differ.
    alternative : {"two-sided", "greater", "less"}
        Whether the first group's value differs from, is greater or is less than the second's.
    n_resamples : int
        Random permutations, unless enumerating every one of them is faster. 0 permutes nothing:
        p-value and interval are those of the normal limit, for which of a lazy frame the engine's
        means and variances suffice, however many distinct rows it has.
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

    The interval has the quantile q of |S| over the permutations: for rates and f1_score it is
    Newcombe's, made of Wilson limits at q; else difference ± q·SE with the delta-method or
    DeLong's error (for the bootstrap variances, the bootstrap error).

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
    PermutationTestResult: false_negative_rate, a − b
      a           0.100  16 of 160
      b           0.200  8 of 40
      difference  −0.100  95 % interval −0.261 to +0.015
      p-value     0.1016  two-sided, exact
      validity    Exact for the weak null (equal false_negative_rate; base rates may differ)
                  at every sample size, given the rates' denominators.
    """
    options = Options.check(
        scheme=scheme,
        variance=variance,
        alternative=alternative,
        stratum_weights=stratum_weights,
        n_resamples=n_resamples,
        fewest_resamples=0,
        n_bootstrap=n_bootstrap,
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
        cluster=cluster,
        sample_weight=sample_weight,
        data=data,
        threshold=threshold,
        pos_label=pos_label,
        missing=missing,
        score_bins=score_bins,
        sample_rows=sample_rows,
        seed=options.seed,
        sums_suffice=options.is_limit,
    )
    table, plan, pair = plan_test(
        inputs, metric, options, lambda table: table.choose_groups(groups)
    )
    plan.check_direction(options.alternative)
    result = compare(table, plan, pair, options)
    warn_of(note for note in result.notes if note not in table.notes)
    return result
