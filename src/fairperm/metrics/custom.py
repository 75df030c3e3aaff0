"""Metrics that users define: a few contributions of each row, and a function of their means."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from fairperm._utils.checks import choice
from fairperm.errors import InputError, InputTypeError, did_you_mean, listed
from fairperm.metrics.definition import Kind, Metric, mean_function
from fairperm.metrics.registry import _BY_ALIAS, _BY_NAME, _word

_COLUMNS_OF_KIND = {
    Kind.REGRESSION: ("y_true", "y_pred"),
    Kind.SCORE: ("y_true", "y_score"),
    Kind.PROBABILITY: ("y_true", "y_score"),
    Kind.BINARY: ("y_true", "y_pred"),
}


def register_metric(
    name: str,
    *,
    contributions: Mapping[str, Callable[..., Any]],
    value: Callable[..., Any] = lambda mean: mean,
    kind: Literal["regression", "score", "probability", "binary"] = "regression",
    meaning: str = "",
) -> Metric:
    """Register a metric of your own under a name; all functions then accept that name.

    Parameters
    ----------
    name : str
        Name of the metric.
    contributions : mapping of str to function
        Functions of whole columns that return one number for each row. Their parameters name the
        columns: ``y_true`` and ``y_pred``, or ``y_true`` and ``y_score`` for kinds of scores.
    value : function
        Returns the metric, given the means of the contributions in their order. It must be smooth
        and work for complex numbers (no ``abs``, no comparisons), because the delta method takes
        its derivative by a complex step.
    kind : {"regression", "score", "probability", "binary"}
        How columns are read: as numbers; as 0/1 labels with scores, or with scores from 0 to 1;
        as 0/1 labels and predictions.
    meaning : str
        What it measures, in plain words.

    Examples
    --------
    >>> import fairperm
    >>> metric = fairperm.register_metric(
    ...     "quartic_error",
    ...     contributions={"e4": lambda y_true, y_pred: (y_pred - y_true) ** 4},
    ...     value=lambda e4: e4**0.25,
    ... )
    >>> result = fairperm.permutation_test(
    ...     [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.5, 2.5, 2.0, 4.5, 5.5, 7.0],
    ...     sensitive_features=list("aababb"), metric="quartic_error",
    ... )
    >>> round(result.difference, 3), round(result.pvalue, 3)
    (-0.411, 0.4)
    """
    read_as = choice("kind", kind, tuple(_COLUMNS_OF_KIND))
    if not isinstance(name, str) or not name.strip():
        raise InputTypeError("name", "a word", name)
    word = _word(name)
    if word in _BY_NAME or word in _BY_ALIAS:
        raise InputError("name", "a name that no metric has yet", word)
    _check_contributions(contributions, read_as)
    _check_value(value, len(contributions))
    metric = mean_function(word, contributions, value, kind=read_as, meaning=meaning or name)
    _BY_NAME[metric.name] = metric
    return metric


def _check_contributions(contributions: object, kind: Kind) -> None:
    rule = "a mapping of names to functions of columns"
    if not isinstance(contributions, Mapping) or not contributions:
        raise InputTypeError("contributions", rule, contributions)
    known = _COLUMNS_OF_KIND[kind]
    used: set[str] = set()
    for name, function in contributions.items():
        if not isinstance(name, str) or name == "rows":
            hint = "'rows' is the number of rows." if name == "rows" else ""
            raise InputError("contributions", f"{rule}, named by other words", name, hint)
        if not callable(function):
            raise InputTypeError("contributions", rule, function)
        used |= _columns_of(function, known)
    if not used:
        raise InputError("contributions", f"functions of {listed(known)}", "no columns")
    if kind == Kind.PROBABILITY and "y_score" not in used:
        raise InputError("contributions", "functions of y_score for this kind", sorted(used))


def _columns_of(contribution: Callable[..., Any], known: Sequence[str]) -> set[str]:
    """Return the columns that a user's function reads. Raise InputError for unknown ones."""
    rule = f"functions of {listed(known)}"
    try:
        parameters = inspect.signature(contribution).parameters
    except (TypeError, ValueError) as error:
        raise InputTypeError("contributions", rule, contribution) from error
    for name, one in parameters.items():
        if name not in known or one.kind is one.KEYWORD_ONLY:
            raise InputError("contributions", rule, name, did_you_mean(name, known))
    return set(parameters)


def _check_value(value: object, n_contributions: int) -> None:
    rule = f"a function of {n_contributions} means, one for each contribution"
    if not callable(value):
        raise InputTypeError("value", rule, value)
    try:
        inspect.signature(value).bind(*range(n_contributions))
    except TypeError as error:
        raise InputTypeError("value", rule, value) from error
    except ValueError:
        return  # written in C: its parameters are unknown
