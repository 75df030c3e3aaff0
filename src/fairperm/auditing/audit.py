"""Many metrics and many groups in one table, with a verdict for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import checks
from fairperm.auditing.comparisons import Settings, omnibus, tested
from fairperm.auditing.questions import (
    COMPARISONS,
    attributes,
    check_reference,
    described,
    named_metrics,
    questions,
)
from fairperm.auditing.result import Audit
from fairperm.auditing.verdicts import check_max_t, notes_of, with_verdicts
from fairperm.data.arguments import Inputs, threshold_of
from fairperm.data.frames import library_of
from fairperm.engines.resampling import blocks
from fairperm.errors import InputError, InputTypeError, did_you_mean, listed, warn_of
from fairperm.hypothesis_tests.results.audits import GroupSummary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairperm.auditing.questions import Question
    from fairperm.data.table import Table

ADJUSTMENTS = ("holm", "bh", "by", "maxt", None)


def audit(
    y_true: object,
    y_pred: object = None,
    *,
    y_score: object = None,
    sensitive_features: object,
    metrics: object,
    data: object = None,
    compare: str = "pairs",
    reference: object = None,
    intersections: bool = False,
    adjust: str | None = "holm",
    alpha: float = 0.05,
    margin: object = None,
    min_group_size: int = 50,
    threshold: float | None = None,
    pos_label: object = None,
    control_features: object = None,
    stratum_weights: object = None,
    cluster: object = None,
    sample_weight: object = None,
    missing: str = "error",
    score_bins: int | None = None,
    sample_rows: int | None = None,
    scheme: str = "auto",
    variance: str | None = "auto",
    alternative: str = "two-sided",
    n_resamples: int = 9999,
    n_bootstrap: int = 500,
    confidence_level: float = 0.95,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Audit:
    """Compare groups in several metrics, and say of each gap what can be said.

    Parameters
    ----------
    y_true, y_pred, y_score, data
        As in :func:`fairperm.permutation_test`. Both predictions and scores may be given: metrics
        of predictions use `y_pred`, or `y_score` cut at `threshold` if there is none.
    sensitive_features : array-like, frame, mapping, str or list of str
        One protected attribute or several: the columns of a frame, or names of columns of `data`.
    metrics : str, callable, sequence or mapping
        Metrics as in :func:`fairperm.permutation_test`; a mapping gives them names, as in
        Fairlearn's MetricFrame.
    compare : {"pairs", "reference", "rest"}
        Every two groups; every group with the reference; or every group with all others together.
    reference : optional
        The group that others are compared with, by default the largest. With several attributes, a
        mapping of their names to groups.
    intersections : bool
        Whether to look also at the combinations of all attributes.
    adjust : {"holm", "bh", "by", "maxt"} or None
        How p-values are adjusted for the number of hypotheses in the whole audit. "holm" and
        "maxt" bound the probability of any false disparity, "bh" and "by" the expected share of
        false ones among all. "maxt" uses what the metrics have in common: one set of permutations
        for all metrics of a pair of groups; no adjusted p-value is below that of the test alone.
    alpha : float
        The level of the verdicts.
    margin : float or mapping, optional
        The largest gap that does not matter in practice: one for all metrics, or by their names.
    min_group_size : int
        Groups with fewer rows stay in the table but are not judged.
    threshold, pos_label, control_features, stratum_weights, cluster, sample_weight
        As in :func:`fairperm.permutation_test`.
    missing, score_bins, sample_rows
        As in :func:`fairperm.permutation_test`. Rows with a missing value take no part in any
        metric that is read with it; a sample is drawn for those metrics that need one.
    scheme, variance, alternative, n_resamples, n_bootstrap, confidence_level
        As in :func:`fairperm.permutation_test`; by default each metric has the test that is best
        for it. With `n_resamples` 0, all tests are by the normal limit, and there is none of
        all groups at once.
    rng, n_jobs, progress
        As in :func:`fairperm.permutation_test`. All tests use the same seed: each gives the same
        p-value as :func:`fairperm.permutation_test` does by itself.

    Returns
    -------
    Audit

    Notes
    -----
    The verdict of a comparison is

    - "disparity" if its adjusted p-value is at most `alpha` and, if a margin is given, the gap is
      beyond it;
    - "equivalent" if two one-sided tests show that the gap is within the margin, at `alpha` after
      adjustment;
    - "too small" if a group has fewer than `min_group_size` rows, or the metric has no value in it;
    - "inconclusive" otherwise. That a gap is not significant does not show that there is none; the
      row's ``detectable_gap`` says which gap a sample like this one would have shown.

    A metric and its complement (true positive and false negative rate, say) are one hypothesis and
    are counted once. Comparisons of groups that are too small are not counted.

    A p-value from n random permutations is at least 1/(n + 1). If adjusting it for so many
    hypotheses can take it above `alpha`, a warning (and the result's ``notes``) says how many it
    takes.

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
    named = named_metrics(metrics)
    if not isinstance(intersections, bool):
        raise InputTypeError("intersections", "True or False", intersections)
    asked_of = attributes(data, sensitive_features, intersections=intersections)
    settings = Settings(
        compare=checks.choice("compare", compare, COMPARISONS),
        reference=reference,
        adjust=checks.choice("adjust", adjust, ADJUSTMENTS),
        alpha=checks.fraction("alpha", alpha),
        margins=_margins(margin, named),
        min_group_size=checks.integer("min_group_size", min_group_size, 1, 10**12),
        scheme=scheme,
        variance=variance,
        alternative=checks.choice("alternative", alternative, checks.ALTERNATIVES),
        stratum_weights=stratum_weights,
        n_bootstrap=checks.integer("n_bootstrap", n_bootstrap, 2, 100_000),
        confidence_level=checks.fraction("confidence_level", confidence_level),
        resampling=blocks.Resampling.checked(n_resamples, rng, n_jobs, progress, least=0),
        n_attributes=len(asked_of),
    )
    check_reference(reference, settings.compare, [one.name for one in asked_of])
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
        seed=settings.resampling.seed,
        sums_suffice=settings.resampling.n_resamples == 0,
    )
    asked = questions(inputs, asked_of, named)
    if settings.adjust == "maxt":
        check_max_t(asked, settings)
    found = tested(asked, settings)
    rows, n_hypotheses = with_verdicts(found, settings)
    sampled = tuple(dict.fromkeys(note for one in asked for note in one.table.notes))
    notes = notes_of(rows, n_hypotheses, settings, but=sampled)
    result = Audit(
        rows=tuple(rows),
        omnibus=tuple(omnibus(asked, found, settings)),
        groups=tuple(_summaries(asked, settings.min_group_size)),
        alpha=settings.alpha,
        adjust=settings.adjust,
        compare=settings.compare,
        n_hypotheses=n_hypotheses,
        min_group_size=settings.min_group_size,
        n_dropped=max(question.table.n_dropped for question in asked),
        seed=settings.resampling.seed,
        settings={
            **_named_columns(y_true=y_true, y_pred=y_pred, y_score=y_score),
            "metrics": list(named),
            "attributes": [one.name for one in asked_of],
            "reference": described(reference),
            "margin": described(margin),
            "threshold": threshold_of(threshold) if _is_cut(inputs, named) else None,
            "pos_label": described(pos_label),
            "intersections": intersections,
            "control_features": described(control_features),
            "stratum_weights": described(stratum_weights),
            "cluster": described(cluster),
            "sample_weight": described(sample_weight),
            "scheme": scheme,
            "variance": variance,
            "alternative": alternative,
            "n_resamples": settings.resampling.n_resamples,
            "n_bootstrap": settings.n_bootstrap,
            "confidence_level": settings.confidence_level,
            "missing": missing,
            "score_bins": score_bins,
            "sample_rows": sample_rows,
        },
        notes=(*notes, *sampled),
        library=library_of(data) or library_of(sensitive_features),
    )
    warn_of(notes)
    return result


def _named_columns(**given: object) -> dict[str, str | None]:
    """Return the names of columns of ``data``; None for those that came by themselves."""
    return {name: one if isinstance(one, str) else None for name, one in given.items()}


def _is_cut(inputs: Inputs, metrics: Mapping[str, Any]) -> bool:
    """Tell whether predictions were made of scores, by the threshold."""
    made = inputs.y_pred is None and inputs.y_score is not None
    return made and any(
        one.kind in {"binary", "labels"} and "y_pred" in one.columns for one in metrics.values()
    )


def _margins(given: object, metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the margin of every metric that has one, named as asked for or by an alias."""
    if given is None:
        return {}
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(metrics, given)
    margins: dict[str, float] = {}
    for name, value in by_name.items():
        meant = [name] if name in metrics else _known_as(name, metrics)
        if not meant:
            rule = f"a mapping with metrics of the audit ({listed(metrics)}) as keys"
            raise InputError("margin", rule, name, did_you_mean(name, metrics))
        margin = checks.number("margin", value, "a number above 0")
        if margin <= 0:
            raise InputError("margin", "a number above 0", value)
        if not margins.keys().isdisjoint(meant):
            raise InputError("margin", "given once for every metric", name)
        margins |= dict.fromkeys(meant, margin)
    return margins


def _known_as(name: object, metrics: Mapping[str, Any]) -> list[str]:
    return [label for label, metric in metrics.items() if name in {metric.name, *metric.aliases}]


def _summaries(asked: Sequence[Question], least: int) -> Iterator[GroupSummary]:
    """Yield every group of every attribute, by its first metric, of binary labels if any is."""
    chosen: dict[str, Table] = {}
    for question in sorted(asked, key=lambda one: not _is_binary(one.reading)):
        chosen.setdefault(question.attribute, question.reading)
    for name in dict.fromkeys(question.attribute for question in asked):
        table = chosen[name]
        label = table.columns.get("y_true")
        is_binary = _is_binary(table)
        count = table.count * label if is_binary and label is not None else table.count
        positives = np.bincount(table.group, count, len(table.groups)).astype(int)
        for (group, rows), n in zip(table.sizes().items(), positives.tolist(), strict=True):
            yield GroupSummary(
                attribute=name,
                group=group,
                rows=rows,
                positives=n if is_binary else None,
                is_small=rows < least,
            )


def _is_binary(table: Table) -> bool:
    label = table.columns.get("y_true")
    return label is not None and label.dtype == np.bool_
