"""The audit: many metrics and many groups in one table, with a verdict for each gap."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import checks
from fairperm.auditing.changes import add_changes, check_models, note_weights
from fairperm.auditing.comparisons import (
    Settings,
    compare_all_groups,
    compare_pairs,
    make_pairs,
)
from fairperm.auditing.picked import PICKED_NOTE, add_spreads, is_picked, keep_picked
from fairperm.auditing.questions import (
    Attribute,
    check_reference,
    choose_default_metrics,
    describe_argument,
    list_attributes,
    list_distance_columns,
    list_ranking_columns,
    name_classes,
    name_distances,
    name_metrics,
    name_rankings,
    note_ratings,
    read_distances,
    read_questions,
    read_rankings,
)
from fairperm.auditing.result import Audit
from fairperm.auditing.verdicts import (
    draw_enough,
    judge_pairs,
    note_reversed_scores,
    write_notes,
)
from fairperm.data.arguments import Inputs, ModelPair
from fairperm.data.columns import Source, are_names, library_of, parse_threshold
from fairperm.data.names import MIN_NAMES
from fairperm.data.proxies import check_proxies, name_attribute
from fairperm.errors import (
    InputError,
    InputTypeError,
    Note,
    argument,
    did_you_mean,
    listed,
    warn_of,
)
from fairperm.hypothesis_tests.comparison import count_clusters
from fairperm.hypothesis_tests.matched import check_matched
from fairperm.hypothesis_tests.pairs import check_pairing
from fairperm.hypothesis_tests.results.answers.audits import describe_joint_findings
from fairperm.hypothesis_tests.results.audits import GroupSummary, RowCounts

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from fairperm.auditing.comparisons import ComparedPair
    from fairperm.auditing.questions import Question
    from fairperm.data.arguments import (
        Adjustment,
        Alternative,
        Column,
        Columns,
        Family,
        Frame,
        GroupSize,
        Label,
        MetricLike,
        Missing,
        Pairing,
        ProxyAssumption,
        Resamples,
        SchemeName,
        Seed,
        StratumWeights,
        VarianceName,
    )
    from fairperm.data.sample import Sample
    from fairperm.metrics.definition import AnyMetric
    from fairperm.metrics.rankings import RankingMetric

ADJUSTMENTS = ("holm", "bh", "by", None)
FAMILIES = ("audit", "attribute")
GROUP_SIZES = ("metric", "rows")
_SETTINGS = (  # that a result tells, in this order
    *("metrics", "distances", "distances_of", "rankings", "rankings_of", "query", "attributes"),
    *("combinations", "reference", "margin", "ratio", "threshold", "pos_label", "intersections"),
    *("control_features", "stratum_weights", "cluster", "split_clusters", "matched", "names"),
    *("group_probabilities", "proxy_assumption", "proxy"),
    *("sample_weight", "count", "scheme", "variance", "alternative", "n_resamples"),
    *("n_bootstrap", "confidence_level", "missing", "score_bins"),
)
_MIN_ROWS = 50  # of a group that is judged
_MIN_SETS = 20  # whose skewed differences hold the level (tests/hypothesis_tests/test_matched.py)
_NO_MAX_T = (
    "Max-T over metrics is valid only if they depend on each other alike in both groups, which an "
    f"audit cannot know. Use {argument('adjust', 'holm')}."
)


def audit(
    y_true: Column | None = None,
    y_pred: Column | None = None,
    *,
    y_score: Columns | None = None,
    y_pred_new: Column | None = None,
    y_score_new: Column | None = None,
    sensitive_features: Columns | None = None,
    group_probabilities: Columns | None = None,
    proxy_assumption: ProxyAssumption = "outcome_given_group",
    proxy: Columns | None = None,
    metrics: MetricLike | Sequence[MetricLike] | Mapping[str, MetricLike] | None = None,
    distances: str | Sequence[str] | None = None,
    rankings: str | Sequence[str] | None = None,
    query: Column | None = None,
    k: int = 10,
    data: Frame | None = None,
    compare: Pairing = "pairs",
    reference: Hashable | Mapping[str, Hashable] = None,
    intersections: bool = False,
    adjust: Adjustment = "holm",
    family: Family = "audit",
    alpha: float = 0.05,
    margin: float | Mapping[str, float] | None = None,
    ratio: float | Mapping[str, float] | None = None,
    min_group_size: int | None = None,
    group_size_by: GroupSize = "metric",
    threshold: float | None = None,
    threshold_new: float | None = None,
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
) -> Audit:
    """Test every gap between groups, adjust for multiple comparisons, and give each a verdict.

    Parameters
    ----------
    y_true, y_pred, y_score, data
        As in :func:`fairperm.permutation_test`. You may pass both predictions and scores: metrics
        of predictions use `y_pred` or, without it, `y_score` cut at `threshold`.
    y_pred_new, y_score_new : array-like or str, optional
        Predictions or scores of a new model for the same rows: each row then has a ``change``, the
        result of :func:`fairperm.compare_models` with a verdict of its own. All other results are
        those of the old model.
    sensitive_features : array-like, frame, mapping, str or list of str
        One protected attribute or several: the columns of a frame, or names of columns of `data`.
        A tuple in a list of names is the combinations of its columns:
        ``["sex", ("sex", "race")]``.
    group_probabilities, proxy_assumption, proxy
        As in :func:`fairperm.permutation_test`: one attribute whose groups are known only as
        probabilities, instead of `sensitive_features`.
    metrics : str, callable, sequence or mapping, optional
        Metrics as in :func:`fairperm.permutation_test`; a mapping gives them names, as in
        Fairlearn's MetricFrame. By default selection_rate, false_positive_rate and
        false_negative_rate; without labels, selection_rate; with more than two classes, accuracy,
        recall_macro, precision_macro and the recall of each class (`recall_per_class`); with scores
        of each class alone, roc_auc_ovr and the AUC of each; with `distances` or `rankings`, none.
    distances : str or sequence of str, optional
        Distances between the groups' distributions of `y_score`, or of `y_pred` without scores, as
        in :func:`fairperm.distance_test`: "ks" and so on. "ks_given_label" compares rows of equal
        label only. Their rows have the distance as gap, and no interval.
    rankings : str or sequence of str, optional
        Metrics of ranked lists, as in :func:`fairperm.ranking_test`: "ndcg" of the top `k`,
        "ndcg@5", "exposure" and so on. Rows of the data are then items: `y_true` is their
        relevance, and `y_score` the score by which they are ranked. All are metrics of queries,
        each of one group, or all are metrics of items, whose groups differ within a list. Metrics
        and distances of rows can be tested beside those of queries, with a `cluster`: rows of one
        list are not independent.
    query : array-like or str, optional
        The query whose list an item is in, for `rankings`.
    k : int
        How many items from the top of a list count, for `rankings` without "@".
    compare : {"pairs", "reference", "rest"}
        Whether to compare every two groups, every group with the reference, or every group with
        all other groups together.
    reference : optional
        The reference group, by default the largest. With several attributes, a mapping of their
        names to groups. "best" and "worst" are the group with the best or the worst value of each
        metric (of metrics that are neither better nor worse if higher, the highest or the lowest):
        every two groups are tested and adjusted for, because the data pick that group.
    intersections : bool
        Whether to add the combinations of all attributes as one more attribute.
    adjust : {"holm", "bh", "by"} or None
        How p-values are adjusted for the number of hypotheses in their `family`. "holm" bounds the
        probability of any false disparity, "bh" and "by" the expected share of false disparities
        among all. No adjusted p-value is below that of the test alone.
    family : {"audit", "attribute"}
        Whether all hypotheses are adjusted together, or those of each attribute by themselves. By
        attribute, the error rates hold for each attribute, and not for the whole audit.
    alpha : float
        The level of the verdicts.
    margin : float or mapping, optional
        The largest gap that does not matter in practice: one for all metrics, or by their names.
        A disparity is then a gap that is shown to exceed it.
    ratio : float or mapping, optional
        The smallest ratio of either group's value to the other's that is acceptable: one for all
        metrics, or by their names. 0.8 is the four-fifths rule. The rows' ``ratio_verdict`` says
        whether the rule is shown to be met or not. Strata and joint metrics have no ratio.
    min_group_size : int, optional
        Smaller groups stay in the table but are not judged: by default those of fewer than 50
        rows, of 20 matched sets, or of 4 `names`.
    group_size_by : {"metric", "rows"}
        What `min_group_size` counts: the rows that the metric's value rests on, or all rows of the
        group. The value of a rate rests on its denominator (positives, for a true positive rate);
        that of roc_auc, average_precision, balanced_accuracy and equalized_odds on positives or
        negatives, whichever are fewer; that of roc_auc_ovr on the rarest class; that of other
        metrics on all rows. With `sample_weight` or `cluster`, Kish's effective number of rows or
        clusters counts. Of `rankings`, queries count; of those of items, queries with items of both
        groups.
    threshold, threshold_new, pos_label, control_features, stratum_weights
        As in :func:`fairperm.permutation_test`, and in :func:`fairperm.compare_models`.
    cluster, split_clusters, sample_weight, count
        As in :func:`fairperm.permutation_test`.
    matched : array-like or str, optional
        Matched sets, as in :func:`fairperm.permutation_test`: every gap is tested inside them, and
        `min_group_size` counts sets. A set counts in the comparisons of the groups that it has.
    names : array-like or str, optional
        As in :func:`fairperm.permutation_test`; `min_group_size` counts names.
    missing, ignore_index, score_bins
        As in :func:`fairperm.permutation_test`. A row with a missing value is dropped from all
        metrics that are read together with that column.
    scheme, variance, alternative, n_resamples, n_bootstrap, confidence_level
        As in :func:`fairperm.permutation_test`; by default the best test for each metric. With
        `n_resamples` 0, all tests use the normal limit, and none tests all groups at once.
    rng, n_jobs, progress
        As in :func:`fairperm.permutation_test`. All tests use the same seed: each gives the same
        p-value as :func:`fairperm.permutation_test` alone, with as many permutations.

    Returns
    -------
    Audit

    Notes
    -----
    The verdict of a comparison is

    - "disparity" if its adjusted p-value is at most `alpha`; with a margin, if the gap is shown to
      exceed it: ``adjusted_exceedance_pvalue`` is at most `alpha`;
    - "equivalent" if the gap is shown to be within the margin: ``adjusted_equivalence_pvalue``, of
      two one-sided tests, is at most `alpha`;
    - "too small" if a group is smaller than `min_group_size`, or the metric is undefined in it;
    - "inconclusive" otherwise. With a margin, the row's ``reason`` tells a gap of which it is not
      settled whether it exceeds the margin from no gap that is shown. The row's
      ``detectable_gap`` is the smallest gap that a sample like this one would detect.

    The verdict on a ``change``, from the old model's gap to the new one's, is

    - "closed" if the gap is shown to be smaller in size, and the new one to be within the margin
      (and the old one is not equivalent): ``adjusted_closing_pvalue`` is at most `alpha`;
    - "unchanged within margin" if it is shown to change by less than the margin:
      ``adjusted_equivalence_pvalue`` is at most `alpha`;
    - "narrowed" or "widened" if it is shown to be smaller or larger in size:
      ``adjusted_size_pvalue`` is at most `alpha`;
    - "changed" if it is shown to change, and not whether it is smaller or larger in size: it may
      have changed sides;
    - "too small" or "inconclusive" otherwise.

    A gap is smaller in size exactly if its change and the sum of both gaps have different signs;
    ``size_pvalue`` is the larger of their p-values. Each of these verdicts is a family of
    hypotheses: with "holm", the probability of giving it wrongly to any gap is at most `alpha`.

    The gap is shown to exceed the margin by a one-sided test at each end of the margin, with twice
    the smaller of the two p-values (with `alternative` "greater" or "less", by one test). No test
    at a margin exists for a joint metric, such as equalized_odds, or without a standard error:
    with a margin these are neither a disparity nor equivalent.

    A metric and its complement (such as true positive and false negative rate) are one hypothesis
    and count once. Comparisons of groups that are too small do not count.

    A p-value from n random permutations is at least 1/(n + 1). With `n_resamples` "auto", as many
    are drawn as adjustment needs to reach `alpha`, up to 99,999. If they are too few, a warning
    (and the result's ``notes``) says how many are enough.

    Examples
    --------
    >>> import fairperm
    >>> compas = fairperm.datasets.load_compas()
    >>> audit = fairperm.audit(
    ...     "two_year_recid", y_score="decile_score", threshold=5, data=compas,
    ...     sensitive_features="sex", metrics=["false_positive_rate", "precision"], rng=1,
    ... )
    >>> [(row.metric, row.verdict) for row in audit]
    [('false_positive_rate', 'inconclusive'), ('positive_predictive_value', 'disparity')]
    """
    given = locals()  # every argument travels under its own name
    measured = name_distances(distances)
    ranked = name_rankings(rankings, k)
    with _call_them_metrics():
        named = {} if metrics is None else name_metrics(metrics)
    for kind, others in (("distances", measured), ("rankings", ranked)):
        for name in others.keys() & named.keys():
            raise InputError("metrics", f"named unlike the {kind}", name)
    if not isinstance(intersections, bool):
        raise InputTypeError("intersections", "True or False", intersections)
    inputs = _read_inputs(given)
    if group_probabilities is None:
        attributes = list_attributes(data, sensitive_features, intersections=intersections)
    else:
        _refuse_with(
            argument("group_probabilities"),
            y_pred_new=inputs.new_model is not None,
            distances=bool(measured),
            rankings=bool(ranked),
            intersections=intersections,
            stratum_weights=stratum_weights is not None,
            compare=str(compare) == "rest",
        )
        check_proxies(inputs)
        attributes = [Attribute(name_attribute(inputs), None)]
    remarks: tuple[Note, ...] = ()
    with _call_them_metrics():
        if metrics is None and not measured and not ranked:
            chosen = choose_default_metrics(inputs, attributes[0])
            named = name_metrics(chosen)
            remarks = note_ratings(inputs, chosen)
        named = name_classes(named, inputs, attributes[0])
    attribute_names = [attribute.name for attribute in attributes]
    no_max_t = _NO_MAX_T if str(adjust) == "maxt" else ""
    settings = Settings.check(
        given,
        fewest=0,
        compare=check_pairing(compare, reference),
        reference=reference,
        adjust=checks.choice("adjust", adjust, ADJUSTMENTS, no_max_t),
        family=checks.choice("family", family, FAMILIES),
        alpha=checks.fraction("alpha", alpha),
        margins=_name_bounds("margin", "a number above 0", math.inf, margin, named | ranked),
        ratios=_name_bounds(
            "ratio", "a number strictly between 0 and 1", 1.0, ratio, named | ranked
        ),
        min_group_size=default_min_group_size(given)
        if min_group_size is None
        else checks.integer("min_group_size", min_group_size, 1, 10**12),
        group_size_by=checks.choice("group_size_by", group_size_by, GROUP_SIZES),
        n_attributes=len(attributes),
    )
    check_reference(reference, attribute_names)
    if measured:
        no_metrics = not named and not ranked
        _refuse_with(
            argument("distances"),
            n_resamples=settings.is_limit,
            stratum_weights=stratum_weights is not None,
            y_pred_new=y_pred_new is not None,
            y_score_new=y_score_new is not None,
            matched=matched is not None,
        )
        _refuse_with(
            f"{argument('distances')} alone; it is for {argument('metrics')}",
            margin=no_metrics and margin is not None,
            ratio=no_metrics and ratio is not None,
            threshold=no_metrics and threshold is not None,
            pos_label=no_metrics and pos_label is not None,
            score_bins=no_metrics and score_bins is not None,
            scheme=no_metrics and scheme != "auto",
            variance=no_metrics and variance not in {"auto", None},
        )
    if settings.is_limit and inputs.new_model is None and matched is None:
        inputs = replace(inputs, sums_suffice=True)
    of_rows = {"metrics": [*named], "distances": [*measured]}
    _check_rankings(inputs, query, ranked, settings, of_rows)
    check_models(inputs, settings)
    if matched is not None and names is None:
        check_matched(inputs, settings)
    with _call_them_metrics():
        questions = read_questions(inputs, attributes, named)
        questions += read_distances(inputs, attributes, measured)
        questions += read_rankings(inputs, attributes, ranked, query)
        questions.sort(key=lambda one: attribute_names.index(one.attribute))
        asked = make_pairs(questions, settings)  # checks all options before any work
        settings = draw_enough(asked, settings)
        pairs = compare_pairs(asked, settings)
    rows, families = judge_pairs(pairs, settings)
    if inputs.new_model is not None:
        rows = add_changes(rows, pairs, settings)
    every = pairs
    if is_picked(reference):
        rows, pairs = keep_picked(rows, pairs)
    reading_notes = tuple(dict.fromkeys(note for one in questions for note in one.table.notes))
    known = (*reading_notes, *(note for pair in pairs for note in pair.remarks))
    notes = write_notes(rows, max(families.values()), settings, known=known)
    draws = settings.resampling
    computed = {
        "metrics": list(named),
        "distances": list(measured) or None,
        "distances_of": list_distance_columns(inputs, measured) or None,
        "rankings": list(ranked) or None,
        "rankings_of": list_ranking_columns(ranked) or None,
        "attributes": attribute_names,
        "combinations": {one.name: list(one.combines) for one in attributes if one.combines}
        or None,
        "threshold": parse_threshold(threshold) if _is_threshold_used(inputs, named) else None,
        "proxy_assumption": None if group_probabilities is None else proxy_assumption,
        "n_resamples": "auto" if draws.stops_early else draws.n_resamples,
    }
    result = Audit(
        rows=tuple(rows),
        omnibus=tuple(add_spreads(compare_all_groups(questions, every, settings), every, settings)),
        groups=tuple(_summarize_groups(questions, settings.min_group_size)),
        row_counts=tuple(_count_rows(questions)),
        alpha=settings.alpha,
        adjust=settings.adjust,
        compare=settings.compare,
        n_hypotheses=sum(families.values()),
        families=families if settings.family == "attribute" else {},
        min_group_size=settings.min_group_size,
        group_size_by=settings.group_size_by,
        n_dropped=max(question.table.n_dropped for question in questions),
        seed=settings.seed,
        settings={
            **_name_columns(y_true=y_true, y_pred=y_pred, y_score=y_score),
            **_describe_new_model(inputs, named),
            **{
                name: computed[name] if name in computed else describe_argument(given[name])
                for name in _SETTINGS
            },
        },
        notes=(
            *notes,
            *note_weights(rows, pairs),
            *note_reversed_scores(rows),
            *_list_bounds(pairs),
            *([PICKED_NOTE] if is_picked(reference) else []),
            *reading_notes,
            *remarks,
        ),
        library=library_of(data) or library_of(sensitive_features),
    )
    warn_of(notes)
    # no warnings: what the test of all groups at once adds to the comparisons
    return replace(result, notes=(*result.notes, *describe_joint_findings(result).values()))


def _list_bounds(pairs: Sequence[ComparedPair]) -> Iterator[str]:
    """Yield the bounds on the gaps of groups that are known only as probabilities."""
    for pair in pairs:
        if pair.question.table.probabilities is not None:
            yield from pair.remarks


def default_min_group_size(given: Mapping[str, object]) -> int:
    """Return the smallest group that is judged by default: so many rows, matched sets or names."""
    if given.get("names") is not None:
        return MIN_NAMES
    return _MIN_ROWS if given.get("matched") is None else _MIN_SETS


def _refuse_with(others: str, **is_used: bool) -> None:
    """Raise InputError for an option that these other tests do not have."""
    for name, used in is_used.items():
        if used:
            value = {"n_resamples": 0, "compare": "rest"}.get(name)
            given = argument(name) if value is None else argument(name, value)
            raise InputError(f"{given} cannot be used with {others}.")


def _check_rankings(
    inputs: Inputs,
    query: object,
    rankings: Mapping[str, RankingMetric],
    settings: Settings,
    of_rows: Mapping[str, Sequence[str]],
) -> None:
    """Raise InputError for arguments that have no meaning with rankings, or that they lack.

    ``of_rows`` has the names of the metrics and distances of rows.
    """
    if not rankings and query is None:
        return
    name = argument("rankings")
    if not rankings:
        raise InputError(f"{argument('query')} needs {name}.")
    if query is None or inputs.y_score is None:
        lacking, what = "y_score", "the scores by which items are ranked"
        if query is None:
            lacking, what = "query", "the queries whose lists the items are in"
        raise InputTypeError(f"{name} needs {argument(lacking)}: {what}.")
    _refuse_with(
        name,
        y_pred_new=getattr(inputs, "y_pred_new", None) is not None,
        y_score_new=getattr(inputs, "y_score_new", None) is not None,
        matched=inputs.matched is not None,
        sample_weight=inputs.sample_weight is not None,
        count=isinstance(inputs.data, Source),
        score_bins=inputs.score_bins is not None,
    )
    if inputs.pos_label is not None and not of_rows["metrics"]:
        raise InputError(
            f"{argument('pos_label')} cannot be used with {name}: {argument('y_true')} is the "
            "relevance of items, which must be numbers, such as 0 and 1."
        )
    first = next(iter(rankings.values()))
    if first.of_items:
        _refuse_with(
            f"{argument('rankings', first.name)}, which compares items of one list",
            n_resamples=settings.is_limit,
            stratum_weights=settings.stratum_weights is not None,
            split_clusters=bool(inputs.split_clusters),
            scheme=settings.scheme != "auto",
            variance=settings.variance not in {"auto", "delta"},
            **{kind: bool(names) for kind, names in of_rows.items()},
        )
    rows = [name for names in of_rows.values() for name in names]
    if rows and inputs.cluster is None:
        raise InputError(
            f"{listed(rows)} cannot be tested beside {name} without {argument('cluster')}: rows of "
            f"one list are not independent. Pass the {argument('query')} as the "
            f"{argument('cluster')}, or audit rankings by themselves."
        )


@contextmanager
def _call_them_metrics() -> Iterator[None]:
    """Rename the argument ``metric`` of an error, which is ``metrics`` in an audit."""
    try:
        yield
    except (InputError, InputTypeError) as error:
        if error.argument == "metric":
            error.argument = "metrics"
        raise


def _name_columns(**given: object) -> dict[str, Any]:
    """Return the names of columns of ``data``, perhaps by class; None for other columns."""
    found: dict[str, Any] = {}
    for name, one in given.items():
        of_classes = list(one.values()) if isinstance(one, Mapping) else one
        is_name = isinstance(one, str) or (name == "y_score" and are_names(of_classes))
        found[name] = describe_argument(one) if is_name else None
    return found


def _read_inputs(given: Mapping[str, Any]) -> Inputs:
    """Return the data arguments of one model, or of two."""
    if given["y_pred_new"] is not None or given["y_score_new"] is not None:
        return ModelPair.of(given)
    if given["threshold_new"] is not None:
        raise InputError(f"{argument('threshold_new')} needs {argument('y_score_new')}.")
    return Inputs.of(given)


def _describe_new_model(inputs: Inputs, metrics: Mapping[str, AnyMetric]) -> dict[str, object]:
    """Return the settings of the new model, if there is one."""
    new = inputs.new_model
    if new is None:
        return {}
    is_used = _is_threshold_used(new, metrics)
    return {
        **_name_columns(y_pred_new=new.y_pred, y_score_new=new.y_score),
        "threshold_new": parse_threshold(new.threshold) if is_used else None,
    }


def _is_threshold_used(inputs: Inputs, metrics: Mapping[str, AnyMetric]) -> bool:
    """Whether a metric uses predictions that the threshold makes of scores."""
    are_made = inputs.y_pred is None and inputs.y_score is not None
    return are_made and any(
        one.kind.makes_predictions and "y_pred" in one.columns for one in metrics.values()
    )


def _name_bounds(
    option: str, rule: str, below: float, given: object, metrics: Mapping[str, AnyMetric]
) -> dict[str, float]:
    """Return the margin or ratio of every metric that has one, by its name in the audit."""
    if given is None:
        return {}
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(metrics, given)
    bounds: dict[str, float] = {}
    for name, value in by_name.items():
        aliases = (label for label, one in metrics.items() if name in {one.name, *one.aliases})
        meant = [name] if name in metrics else list(aliases)
        if not meant:
            known = f"given for metrics of the audit ({listed(metrics)})"
            raise InputError(option, known, name, did_you_mean(name, metrics))
        bound = checks.number(option, value, rule)
        if not 0 < bound < below:
            raise InputError(option, rule, value)
        if not bounds.keys().isdisjoint(meant):
            raise InputError(option, "given once for every metric", name)
        bounds |= dict.fromkeys(meant, bound)
    return bounds


def _summarize_groups(questions: Sequence[Question], least: int) -> Iterator[GroupSummary]:
    """Yield every group of every attribute, from a metric of binary labels if there is one."""
    chosen: dict[str, Question] = {}
    for question in sorted(questions, key=lambda one: not _is_binary(one.reading)):
        chosen.setdefault(question.attribute, question)
    for name in dict.fromkeys(question.attribute for question in questions):
        table = chosen[name].reading
        label = table.columns.get("y_true")
        is_binary = _is_binary(table)
        counted = label if is_binary and label is not None else np.ones(1)
        positives = table.sum_by_group(counted).round().astype(int)
        clusters = count_clusters(table, len(table.groups))
        for (group, rows), n, n_clusters in zip(
            table.sizes().items(), positives.tolist(), clusters, strict=True
        ):
            yield GroupSummary(
                attribute=name,
                group=group,
                rows=rows,
                positives=n if is_binary else None,
                is_small=rows < least,
                clusters=n_clusters,
                units=chosen[name].units,
            )


def _count_rows(questions: Sequence[Question]) -> Iterator[RowCounts]:
    """Yield how many rows were read, dropped and used for every attribute."""
    for name in dict.fromkeys(question.attribute for question in questions):
        mine = [one for one in questions if one.attribute == name]
        of_rows = [one for one in mine if one.units != "queries"]
        counts = {(int(one.reading.count.sum()), one.reading.n_dropped) for one in of_rows or mine}
        yield RowCounts(
            attribute=name,
            read=max(map(sum, counts)) if of_rows else None,
            dropped=max(dropped for _, dropped in counts),
            used=min(used for used, _ in counts),
            by_metric=len(counts) > 1,
            units=(of_rows or mine)[0].units,
        )


def _is_binary(table: Sample) -> bool:
    label = table.columns.get("y_true")
    return label is not None and label.dtype == np.bool_
