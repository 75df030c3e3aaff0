"""The omnibus test of whether a metric is the same in all of several groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm import _draws as draws
from fairperm import _options as options
from fairperm._inputs import Inputs
from fairperm._omnibus_test import compare_all
from fairperm._plan import planned
from fairperm.errors import warn_of

if TYPE_CHECKING:
    import numpy as np

    from fairperm._omnibus_result import OmnibusTestResult


def omnibus_test(
    y_true: object,
    y_pred: object = None,
    *,
    y_score: object = None,
    sensitive_features: object,
    metric: object,
    data: object = None,
    groups: object = None,
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
    cluster, sample_weight, missing, score_bins, sample_rows, scheme, n_resamples
        As in :func:`fairperm.permutation_test`.
    confidence_level, rng, n_jobs, progress
        As in :func:`fairperm.permutation_test`.
    variance : {"auto", "score", "wald", "delta", "delong", "fast_bootstrap"} or None
        As in :func:`fairperm.permutation_test`. None weighs the groups by their numbers of rows
        (of clusters, if there are any) alone: such a test is not valid when base rates differ.

    Returns
    -------
    OmnibusTestResult

    Notes
    -----
    The statistic is Σ (θ_g − θ̄)²/V_g, with θ̄ the mean of the groups' values weighted by 1/V_g, in
    the sample and in every permutation of the labels over all groups. For a rate with the score
    variance this is Pearson's chi-square; of two groups it is the square of their studentized gap.
    A group in which the metric shows no variance (no error among few rows, say) is given that of
    all rows together, for its size.

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
    (381.7, 0.0001)
    """
    resampling = draws.Resampling.checked(n_resamples, rng, n_jobs, progress)
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
        seed=resampling.seed,
    )
    table, plan, chosen = planned(
        inputs, metric, scheme, variance, lambda table: table.choose_several(groups)
    )
    result = compare_all(
        table,
        plan,
        groups=chosen,
        stratum_weights=stratum_weights,
        resampling=resampling,
        confidence_level=options.fraction("confidence_level", confidence_level),
    )
    warn_of(note for note in result.notes if note not in table.notes)
    return result
