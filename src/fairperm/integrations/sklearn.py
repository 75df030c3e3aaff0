"""A scorer of the gap between groups, for ``cross_validate`` and the searches of scikit-learn."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from fairperm.errors import FairpermWarning, InputError, MissingPartError, argument
from fairperm.hypothesis_tests.omnibus import omnibus_test
from fairperm.metrics.definition import Kind
from fairperm.metrics.registry import get_metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairperm.metrics.definition import AnyMetric


def make_gap_scorer(
    metric: str | Callable[..., float],
    *,
    column: str | int | None = None,
    response_method: str | tuple[str, ...] | None = None,
    pos_label: object = None,
) -> Callable[..., float]:
    """Make a scorer for scikit-learn: minus the largest gap between two groups in a metric.

    It answers: which of these models treats the groups most alike? As for every scorer, higher is
    better, and 0 is no gap. To learn whether a gap is more than chance, audit the chosen model.

    Parameters
    ----------
    metric : str or callable
        A metric by its name here or in scikit-learn, or a function of labels and predictions.
    column : str or int, optional
        The column of X with the groups: its name in a frame, or its place in an array. By default
        groups come as metadata, called sensitive_features.
    response_method : str or tuple of str, optional
        What of the model is scored, as in ``sklearn.metrics.make_scorer``: by default its
        predictions, or scores and probabilities if the metric is made of them.
    pos_label
        The positive label, where it is not 1.

    Returns
    -------
    callable
        To pass as ``scoring=``.

    Notes
    -----
    For metadata, ``sklearn.set_config(enable_metadata_routing=True)`` comes before this call. A
    fold in which a group has no value of the metric has no score; scikit-learn warns of it.

    Examples
    --------
    >>> import fairperm
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import KFold, cross_validate
    >>> compas = fairperm.datasets.load_compas()
    >>> X = np.column_stack([compas["decile_score"], compas["sex"] == "Male"])
    >>> y = compas["two_year_recid"]
    >>> scorer = fairperm.make_gap_scorer("false_positive_rate", column=1)
    >>> folds = KFold(3, shuffle=True, random_state=1)
    >>> found = cross_validate(LogisticRegression(), X, y, scoring=scorer, cv=folds)
    >>> found["test_score"].round(2)
    array([-0.14, -0.17, -0.23])
    """
    try:
        import sklearn
        from sklearn.metrics import make_scorer
    except ModuleNotFoundError as error:
        raise MissingPartError(
            "make_gap_scorer needs scikit-learn, which is not installed: pip install scikit-learn"
        ) from error
    found = get_metric(metric)
    if found.is_joint:
        raise InputError("metric", "a metric with one gap", found.name)
    score = partial(_score, found, pos_label)
    make = partial(make_scorer, response_method=response_method or _find_response(found))
    if column is not None:
        return _ScorerOfColumn(column, score, make)
    if not sklearn.get_config()["enable_metadata_routing"]:
        raise InputError(
            "groups as metadata need sklearn.set_config(enable_metadata_routing=True) before; "
            f"or pass {argument('column', 'sex')}, a column of X."
        )
    scorer: Callable[..., float] = make(score).set_score_request(sensitive_features=True)
    return scorer


class _ScorerOfColumn:
    """A scorer that takes groups from a column of X."""

    def __init__(self, column: str | int, score: Any, make: Any) -> None:
        self._column, self._score, self._make = column, score, make

    def __call__(self, estimator: Any, x: Any, y: Any) -> float:
        is_frame = hasattr(x, "columns")
        try:
            groups = x[self._column] if is_frame else x[:, self._column]
        except (LookupError, TypeError) as error:
            rule = "the name of a column of X" if is_frame else "the place of a column of X"
            raise InputError("column", rule, self._column) from error
        scorer = self._make(partial(self._score, sensitive_features=groups))
        return float(scorer(estimator, x, y))

    def __repr__(self) -> str:
        return f"make_gap_scorer({self._score.args[0].name!r}, column={self._column!r})"


def _find_response(metric: AnyMetric) -> str | tuple[str, ...]:
    if metric.kind == Kind.PROBABILITY:
        return "predict_proba"
    return ("decision_function", "predict_proba") if "y_score" in metric.columns else "predict"


def _score(
    metric: AnyMetric, pos_label: object, y_true: Any, output: Any, *, sensitive_features: Any
) -> float:
    """Return minus the largest gap between two groups."""
    name = "y_score" if "y_score" in metric.columns else "y_pred"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)  # they are about p-values
        found = omnibus_test(
            y_true,
            **{name: output},
            sensitive_features=sensitive_features,
            metric=metric,
            pos_label=pos_label,
            n_resamples=1,
            rng=0,
        )
    values = found.values.values()
    return float(min(values) - max(values))
