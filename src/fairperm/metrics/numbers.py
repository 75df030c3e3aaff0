"""Definitions of the metrics of scores and of regressions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.checks import fraction
from fairperm._utils.formatting import format_parameter
from fairperm.errors import InputError
from fairperm.metrics.definition import Kind, Metric
from fairperm.metrics.ranks import AreaUnderCurve, AveragePrecision, RankMetric

if TYPE_CHECKING:
    from fairperm.metrics.definition import Function

_UNBOUNDED = float("inf")
# scikit-learn's: log loss takes scores from here to 1 − here
_CLIP = float(np.finfo(np.float64).eps)
_ROUNDING = 1e-10  # of squares: a variance below it has hardly a digit that is right


def mean_metric(name: str, meaning: str, of: Function, **options: Any) -> Metric:
    """Define a metric as the mean of one number for each row."""
    return Metric(
        name=name,
        meaning=meaning,
        contributions={"total": of, "rows": lambda: 1.0},
        value=lambda total, rows: total / rows,
        **options,
    )


def regression_mean(name: str, meaning: str, of: Function, *aliases: str) -> Metric:
    """Define the mean of a number of each row of a regression."""
    return mean_metric(name, meaning, of, kind=Kind.REGRESSION, span=_UNBOUNDED, aliases=aliases)


def _log_loss(y_true: Any, y_score: Any) -> Any:
    score = np.clip(y_score, _CLIP, 1 - _CLIP)
    return -np.where(y_true, np.log(score), np.log1p(-score))


def _r_squared(errors: Any, sums: Any, squares: Any, rows: Any) -> Any:
    """Return R²; NaN of outcomes that differ by no more than rounding, seen from the origin."""
    variance = squares - sums**2 / rows
    known = np.real(variance) > _ROUNDING * np.real(squares)
    return np.where(known, 1 - errors / np.where(known, variance, 1.0), np.nan)


def _mean_score(label: str, name: str, is_of: Function) -> Metric:
    """Define the mean score of the rows of one label."""
    return Metric(
        name=f"mean_score_{label}",
        meaning=f"mean score of the {label}",
        contributions={
            "total": lambda y_true, y_score: np.where(is_of(y_true), y_score, 0.0),
            label: is_of,
        },
        value=lambda total, rows: total / rows,
        kind=Kind.SCORE,
        is_monotone=True,
        aliases=(f"balance_{name}_class",),
        given="label",
        span=_UNBOUNDED,
    )


def pinball_loss(alpha: float = 0.5) -> Metric:
    """Define the pinball loss of predicted quantiles: α·(y − ŷ) below y, (1 − α)·(ŷ − y) above.

    Parameters
    ----------
    alpha : float
        The level of the predicted quantile, between 0 and 1.

    Examples
    --------
    >>> from fairperm.metrics import pinball_loss
    >>> pinball_loss(0.9).name
    'pinball_loss(0.9)'
    """
    alpha = fraction("alpha", alpha)

    def loss(y_true: Any, y_pred: Any) -> Any:
        short = y_true - y_pred
        return np.maximum(alpha * short, (alpha - 1) * short)

    return regression_mean(
        f"pinball_loss({format_parameter(alpha)})",
        f"mean loss of predictions of the quantile {format_parameter(alpha)}",
        loss,
    )


def _poisson_deviance(y_true: Any, y_pred: Any) -> Any:
    _check_sign("mean_poisson_deviance", y_true, y_pred, zero_outcomes=True)
    is_positive = y_true > 0
    logs = np.where(is_positive, np.log(np.where(is_positive, y_true, 1.0) / y_pred), 0.0)
    return 2 * (y_true * logs - y_true + y_pred)


def _gamma_deviance(y_true: Any, y_pred: Any) -> Any:
    _check_sign("mean_gamma_deviance", y_true, y_pred, zero_outcomes=False)
    return 2 * (np.log(y_pred / y_true) + y_true / y_pred - 1)


def _check_sign(metric: str, y_true: Any, y_pred: Any, *, zero_outcomes: bool) -> None:
    """Raise InputError for numbers that have no deviance."""
    for name, column, may_be_zero in (("y_true", y_true, zero_outcomes), ("y_pred", y_pred, False)):
        lowest = float(np.min(column))
        if lowest < 0 or (lowest == 0 and not may_be_zero):
            rule = f"{'not negative' if may_be_zero else 'above 0'} for {metric}"
            raise InputError(name, rule, lowest)


SCORE_METRICS: tuple[Metric | RankMetric, ...] = (
    AreaUnderCurve(
        name="roc_auc",
        meaning="probability that a positive has a higher score than a negative",
        aliases=("auc", "roc_auc_score", "auroc", "c_statistic"),
    ),
    AreaUnderCurve(
        name="gini",
        meaning="twice the area under the ROC curve, minus one",
        aliases=("gini_coefficient", "somers_d"),
        slope=2.0,
        offset=-1.0,
    ),
    AveragePrecision(
        name="average_precision",
        meaning="mean over the positives of the precision among rows with at least their score",
        aliases=("ap", "average_precision_score", "auprc", "pr_auc"),
    ),
    mean_metric(
        "brier_score",
        "mean squared difference of score and label",
        lambda y_true, y_score: (y_score - y_true) ** 2,
        kind=Kind.PROBABILITY,
        is_monotone=True,
        aliases=("brier", "brier_score_loss"),
    ),
    mean_metric(
        "log_loss",
        "mean negative log-likelihood of the labels",
        _log_loss,
        kind=Kind.PROBABILITY,
        is_monotone=True,
        aliases=("cross_entropy",),
        span=_UNBOUNDED,
    ),
    mean_metric(
        "mean_score",
        "mean score",
        lambda y_score: y_score,
        kind=Kind.SCORE,
        is_monotone=True,
        span=_UNBOUNDED,
    ),
    _mean_score("positives", "positive", lambda y_true: y_true),
    _mean_score("negatives", "negative", lambda y_true: 1.0 - y_true),
    mean_metric(
        "calibration_in_the_large",
        "mean score minus the base rate",
        lambda y_true, y_score: y_score - y_true,
        kind=Kind.PROBABILITY,
        is_monotone=True,
        aliases=("calibration_error_mean",),
        span=2.0,
    ),
)

REGRESSION_METRICS = (
    regression_mean(
        "mean_error",
        "mean of prediction minus outcome",
        lambda y_true, y_pred: y_pred - y_true,
        "bias",
    ),
    regression_mean(
        "mean_absolute_error",
        "mean absolute difference of prediction and outcome",
        lambda y_true, y_pred: np.abs(y_pred - y_true),
        "mae",
    ),
    regression_mean(
        "mean_squared_error",
        "mean squared difference of prediction and outcome",
        lambda y_true, y_pred: (y_pred - y_true) ** 2,
        "mse",
    ),
    Metric(
        name="root_mean_squared_error",
        meaning="root of the mean squared difference of prediction and outcome",
        contributions={
            "squares": lambda y_true, y_pred: (y_pred - y_true) ** 2,
            "rows": lambda: 1.0,
        },
        value=lambda squares, rows: np.sqrt(squares / rows),
        kind=Kind.REGRESSION,
        aliases=("rmse",),
        span=_UNBOUNDED,
    ),
    Metric(
        name="r2_score",
        meaning="share of the outcome's variance that the prediction explains",
        contributions={
            "squared_errors": lambda y_true, y_pred: (y_pred - y_true) ** 2,
            # from any fixed origin; near the middle no digits are lost
            "outcomes": lambda y_true: y_true - np.median(y_true),
            "squared_outcomes": lambda y_true: (y_true - np.median(y_true)) ** 2,
            "rows": lambda: 1.0,
        },
        value=_r_squared,
        kind=Kind.REGRESSION,
        aliases=("r2", "coefficient_of_determination"),
        span=_UNBOUNDED,
    ),
    regression_mean(
        "mean_absolute_percentage_error",
        "mean absolute difference of prediction and outcome, relative to the outcome",
        lambda y_true, y_pred: np.abs(y_pred - y_true) / np.maximum(np.abs(y_true), _CLIP),
        "mape",
    ),
    replace(
        pinball_loss(0.5),
        name="pinball_loss",
        meaning="mean loss of predicted medians: half the mean absolute error",
        aliases=("mean_pinball_loss", "quantile_loss"),
    ),
    regression_mean(
        "mean_poisson_deviance",
        "mean deviance of predicted counts from the outcomes",
        _poisson_deviance,
        "poisson_deviance",
    ),
    regression_mean(
        "mean_gamma_deviance",
        "mean deviance of predicted amounts from the outcomes, relative to both",
        _gamma_deviance,
        "gamma_deviance",
    ),
    regression_mean("mean_prediction", "mean prediction", lambda y_pred: y_pred),
    regression_mean("mean_outcome", "mean outcome", lambda y_true: y_true),
)
