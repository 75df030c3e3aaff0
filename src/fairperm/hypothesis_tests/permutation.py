"""The permutation test of the gap between two groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm.data.arguments import Inputs
from fairperm.data.reading import read_table
from fairperm.errors import rename_arguments, warn_of
from fairperm.hypothesis_tests.comparison_checks import REVERSED_SCORES
from fairperm.hypothesis_tests.groups import compare
from fairperm.hypothesis_tests.matched import MatchedTest, check_matched
from fairperm.hypothesis_tests.plan import Options, plan_test
from fairperm.hypothesis_tests.proxies.gap import ProxyTest
from fairperm.hypothesis_tests.run import run
from fairperm.metrics.registry import get_metric

if TYPE_CHECKING:
    from fairperm.data.arguments import (
        Alternative,
        Column,
        Columns,
        Frame,
        Groups,
        Label,
        MetricLike,
        Missing,
        ProxyAssumption,
        Resamples,
        SchemeName,
        Seed,
        StratumWeights,
        VarianceName,
    )
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult


def permutation_test(
    y_true: Column | None = None,
    y_pred: Column | None = None,
    *,
    y_score: Columns | None = None,
    sensitive_features: Columns | None = None,
    group_probabilities: Columns | None = None,
    proxy_assumption: ProxyAssumption = "outcome_given_group",
    proxy: Columns | None = None,
    metric: MetricLike,
    data: Frame | None = None,
    groups: Groups | None = None,
    threshold: float | None = None,
    pos_label: Label = None,
    control_features: Columns | None = None,
    stratum_weights: StratumWeights | None = None,
    cluster: Columns | None = None,
    split_clusters: bool = False,
    matched: Columns | None = None,
    names: Column | None = None,
    sample_weight: Column | None = None,
    count: Column | None = None,
    missing: Missing = "error",
    ignore_index: bool = False,
    score_bins: int | None = None,
    scheme: SchemeName = "auto",
    variance: VarianceName = "auto",
    alternative: Alternative = "two-sided",
    n_resamples: Resamples = "auto",
    n_bootstrap: int = 500,
    confidence_level: float = 0.95,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> PermutationTestResult:
    """Test whether the gap between two groups in a metric is real or chance.

    Parameters
    ----------
    y_true : array-like or str, optional
        Labels: 0/1, -1/1, booleans, or two values of any kind with `pos_label`; numbers, for errors
        and deviances of predicted numbers. Decisions can be tested without labels: by
        selection_rate, of `y_pred` or `y_score` alone.
    y_pred : array-like or str, optional
        Predictions, in the same form.
    y_score : array-like, str, mapping, frame or list of str, optional
        Scores instead of predictions: a row is predicted positive if its score is at least
        `threshold`. For roc_auc_ovr, roc_auc[cat] and the like, a column for each class: an array
        with columns in the order of the sorted labels, a mapping of classes to columns, a frame
        whose columns are named by the classes, or a list of columns of `data`, in that order or
        named by the classes.
    sensitive_features : array-like or str
        The protected attribute, of any hashable type. Several columns (a frame, or a list of
        names) make groups of their combinations, named by tuples.
    group_probabilities : mapping, frame or list of str, optional
        Where groups are not known: for each group a column of the probabilities that a row belongs
        to it, which add up to 1, instead of `sensitive_features`. A list names columns of `data`,
        and ``{"race": {...}}`` names the attribute. For rates, means and losses.
    proxy_assumption : {"outcome_given_group", "group_given_proxy"}
        What the probabilities say of a gap. "outcome_given_group": within a group, outcomes do not
        depend on the proxy that the probabilities are made from; values are found by least squares.
        "group_given_proxy": among people with the same proxy, outcomes do not depend on the group;
        values are weighted by the probabilities. Every result says what it rests on.
    proxy : array-like or str, optional
        The cell of each row, of equal `group_probabilities`, with at least 20 rows: the result then
        has bounds on the gap that need no assumption.
    metric : str or callable
        A name or alias out of :func:`fairperm.metric_names`; with a class in brackets, such as
        "recall[cat]", the metric of this class against the rest; or any function
        ``metric(y_true, y_pred)`` that returns a number, such as those of scikit-learn and
        Fairlearn; fix its other arguments with :func:`functools.partial`. It is called with the
        labels and with `y_pred` or `y_score`, whichever is given (if both are, the name of its
        second parameter decides); `threshold` and `pos_label` do not apply. NaN means undefined.
        A function with a parameter ``sample_weight`` is called with distinct rows and their counts
        as weights, which is fast if rows repeat.
    data : frame or mapping, optional
        A frame whose column names the arguments above may be. With a lazy frame (DuckDB, Spark,
        Polars and others that narwhals supports) they must be: its engine counts the rows.
    groups : pair, optional
        The first and the second group; by default the only two, in sorted order. Rows of other
        groups are ignored.
    threshold : float, optional
        See `y_score`. By default 0.5 for scores from 0 to 1; required for other scores.
    pos_label : optional
        The positive label. Of more than two classes, all others are negative.
    control_features : array-like, str or list of str, optional
        Strata: labels are exchanged only within them, and the gap is the weighted mean of their
        gaps. (The gap of all rows is not centred at zero then: Simpson's paradox.)
    stratum_weights : mapping, optional
        A weight for every stratum, instead of Mantel–Haenszel's m_A·m_B/(m_A + m_B). There m is
        the size of the denominator of a rate or f1_score (with `sample_weight`, its weight), for
        other metrics the group's number of rows (with `cluster`, of clusters), whatever their
        weights.
    cluster : array-like or str, optional
        Rows that belong together, such as several rows of one person. Whole clusters are
        exchanged, and variances allow for the dependence of a cluster's rows.
    split_clusters : bool
        A cluster with rows of several groups (or strata) is an error. True makes a cluster of its
        rows of each group, as if these were independent; a note says how many were split.
    matched : array-like or str, optional
        Matched sets: pairs of similar people, or the same prompt with another name. Groups are
        exchanged inside each set, and variances are those over sets. Several rows of one group in
        a set (repeated answers to one prompt) count as their mean, and every set counts once. Sets
        without rows of both groups are left out, and a note counts them. For rates, means and
        other functions of totals; for pairs of binary outcomes this is McNemar's exact test.
    names : array-like or str, optional
        With `matched`: the names that stand for the groups, at least four of each, which occur in
        all sets. The question is then about the groups, of whose names these are a sample: whole
        names are exchanged between the groups, and variances are those over names. Without it, a
        test of matched sets is about these names.
    sample_weight : array-like or str, optional
        Weight of each row, above 0. Weights stay with their rows, and variances allow for them:
        they are not numbers of copies.
    count : array-like or str, optional
        How many equal rows each row stands for, in a table of counts: whole numbers from 0 on. The
        result is that of all these rows, to the last bit.
    missing : {"error", "drop", "group"}
        Whether missing values raise an error, or their rows are left out and counted in the
        result. "group" makes a group, called "missing", of the rows without a value in
        `sensitive_features`; other missing values raise an error.
    ignore_index : bool
        Rows are matched by position, and pandas columns with different indexes are an error. True
        ignores their indexes.
    score_bins : int, optional
        Number of bins for the scores of a lazy frame, for the AUC, the Brier score, log loss and
        means of scores; each holds about equally many rows. By default up to 131,072 if it has more
        than 1,048,576 distinct rows, and none otherwise. The result has bounds on the error, and
        its interval and p-value allow for them.
    scheme : {"auto", "pooled", "within_label", "denominator", "unconditional"}
        Among which rows group labels are exchanged: all rows, rows of equal label, or rows in the
        rate's denominator. "unconditional" exchanges none: it compares a rate with all tables of
        two binomial samples. "auto" is "unconditional" for rates and f1_score (a function of a
        rate), with `control_features` "denominator", and "within_label" for equalized_odds, whose
        tests are then exact; "within_label" for other metrics that depend only on the distribution
        given the label (roc_auc, gini, balanced_accuracy, mean_score_positives,
        mean_score_negatives), whose tests then hold their level with few positives; "pooled" for
        all other metrics, and with clusters. With weights, rates have "denominator", and no test
        is exact.
    variance : {"auto", "score", "wald", "hall", "delta", "delong", "bootstrap", …} or None
        The variance that studentizes the gap in every permutation. "auto" is "score" for rates and
        f1_score, "delong" for the AUC, "hall" for other smooth metrics ("delta" with weights or
        clusters, and with ``n_resamples=0``) and "fast_bootstrap" for functions. "delta" is the
        paper's statistic; "hall" also takes its skewness out, so that tests of small groups hold
        their level (see Notes). With "fast_bootstrap" the observed gap is divided by its bootstrap
        standard deviation, permuted gaps by the standard deviation of all of them. "bootstrap"
        resamples the groups of every
        permutation, as in the paper's Algorithm 1. None does not studentize: such a test is not
        valid if base rates differ. If few rows make the error of an AUC, or of a metric with
        weights or clusters, "auto" also widens the observed error, and a note warns of it.
    alternative : {"two-sided", "symmetric", "greater", "less"}
        Whether the first group's value differs from, is greater or is less than the second's.
        "two-sided" is twice the smaller of the one-sided p-values, as in scipy; "symmetric"
        compares |S|, as in the paper. Exact tests of rates and joint metrics, whose statistic has
        no direction, always compare |S| ("ordering" in the result).
    n_resamples : int or "auto"
        Number of random permutations, unless enumerating all permutations is faster. "auto" draws
        until 20 of them are at least as extreme as the sample, in each tail of a two-sided test:
        at most 9,999, and at least 1,999 for the interval (299 if the metric is a function, or
        with ``variance="bootstrap"``). With 0, p-value and interval are those of the normal limit.
        They need only means and variances, which the engine of a lazy frame computes from any
        number of distinct rows.
    n_bootstrap : int
        Number of bootstrap samples within each permutation, for ``variance="bootstrap"``; with
        ``n_resamples="auto"`` also those of "fast_bootstrap", which otherwise takes `n_resamples`.
        With ``variance=None``, those of the standard error that a metric without a closed form
        reports.
    confidence_level : float
        Confidence level of the intervals for the gap and for the p-value.
    rng : int or numpy.random.Generator, optional
        Seed. One seed gives one p-value, for any `n_jobs`, order of rows and type of frame.
    n_jobs : int, optional
        Number of threads; -1 for all cores. Functions run through joblib, in processes or on the
        backend of :func:`joblib.parallel_config`.
    progress : bool, optional
        Whether to show a progress bar after one second; by default on a terminal or in a notebook.

    Returns
    -------
    PermutationTestResult

    Notes
    -----
    The statistic is S = (θ_A − θ_B) / SE, with the standard error recomputed in every permutation
    (DiCiccio et al., 2020). If b of B random permutations are at least as extreme as the sample,
    the p-value is (b + 1)/(B + 1); if all permutations are enumerated, it is their probability.
    Twice the smaller tail is at least 2/(B + 1). Ties count as extreme, and so do permutations that
    leave the metric undefined. The result's ``validity`` states the null hypothesis for which the
    p-value is valid.

    With variance "hall", the default of means, losses and other smooth metrics, S is replaced by
    H = S + kS²/3 + k²S³/27 + k/6, where k is the skewness of the gap by the groups' influences, in
    the sample and in every permutation (Hall, 1992). No tail has a p-value below that of the normal
    distribution. The interval gets the skewness back.

    The interval has the quantiles of S that the test has: it runs from difference − q_high·SE to
    difference − q_low·SE, with the delta-method or DeLong's error (for the bootstrap variances, the
    bootstrap error). For rates and f1_score it inverts the unconditional test (in large groups, its
    score statistic); by other schemes it is Newcombe's, made of Wilson limits at the quantiles. It
    excludes 0 exactly if the p-value is at most 1 − `confidence_level`.

    References
    ----------
    DiCiccio, Vasudevan, Basu, Kenthapadi, Agarwal. Evaluating Fairness Using Permutation Tests.
    KDD 2020.

    Hall. On the removal of skewness by transformation. Journal of the Royal Statistical Society B,
    1992.

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
    b's false negative rate is 10.0 points higher than a's (20.0 % v 10.0 %); chance could
    explain it (p = 0.0840); gaps up to 25.6 points are not ruled out.
      a           0.100  16 of 160
      b           0.200  8 of 40
      difference  −0.100  95 % interval −0.256 to +0.011
      p-value     0.0840  two-sided, exact
      validity    Exact for the weak null (equal false_negative_rate; base rates may differ)
                  at every sample size, given the rates' denominators.
      rows        400 used, 0 left out for missing values
    """
    given = locals()  # every argument travels under its own name
    options = Options.check(given, fewest=0)
    inputs = Inputs.of(given, sums_suffice=options.is_limit and matched is None)
    remarks: tuple[str, ...] = (REVERSED_SCORES,)
    if matched is not None and names is None:
        check_matched(inputs, options)
        chosen = get_metric(metric).for_arguments(inputs)
        table = read_table(inputs, chosen)
        of_sets = MatchedTest.of(table, chosen, table.choose_groups(groups), options)
        (tested,) = run([of_sets], options.resampling)
        result, remarks = of_sets.result(tested), of_sets.remarks
    elif group_probabilities is not None:
        chosen = get_metric(metric).for_arguments(inputs)
        table = read_table(inputs, chosen)
        with rename_arguments({"sensitive_features": "group_probabilities"}):
            pair = table.choose_groups(groups)
        of_proxies = ProxyTest.of(table, chosen, pair, options)
        (tested,) = run([of_proxies], options.resampling)
        result, remarks = of_proxies.result(tested), of_proxies.remarks
    else:
        table, plan, pair = plan_test(
            inputs, metric, options, lambda table: table.choose_groups(groups)
        )
        plan.check_direction(options.alternative)
        result = compare(table, plan, pair, options)
    warn_of(note for note in result.notes if note not in (*table.notes, *remarks))
    return result
