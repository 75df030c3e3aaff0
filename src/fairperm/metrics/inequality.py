"""How unequally a benefit is spread inside a group: generalized entropy, Theil, Atkinson."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.arrays import Array
from fairperm._utils.checks import number
from fairperm._utils.formatting import format_parameter
from fairperm.errors import InputError, InputTypeError
from fairperm.metrics.definition import Kind, Metric

if TYPE_CHECKING:
    from fairperm.metrics.definition import Function

_ROUNDING = 1e-14  # of squares: what is left of equal benefits
_NO_INEQUALITY = 1e-13  # an index below it is what rounding leaves of equal benefits


def benefit(y_true: Any, y_pred: Any) -> Any:
    """Return the benefit of Speicher et al. (2018): above 1 for generous predictions."""
    return y_pred - y_true + 1.0


def generalized_entropy_index(alpha: float = 2.0, *, of: Function = benefit) -> Metric:
    """Define the generalized entropy index: the inequality of benefit inside a group.

    Parameters
    ----------
    alpha : float
        0 makes Theil's L (the mean log deviation), 1 Theil's T, and 2 half the squared
        coefficient of variation.
    of : function of columns
        What is spread: by default ``y_pred - y_true + 1`` (Speicher et al., 2018).
        ``lambda y_pred: y_pred`` takes whatever column is passed as `y_pred`.

    Examples
    --------
    >>> from fairperm.metrics import generalized_entropy_index
    >>> generalized_entropy_index(1).name
    'generalized_entropy_index(1)'
    """
    alpha = number("alpha", alpha)
    name = f"generalized_entropy_index({format_parameter(alpha)})"
    if alpha == 0:
        return _spread(name, _log, lambda logs, b, n: np.log(b / n) - logs / n, of)
    if alpha == 1:
        return _spread(name, _x_log_x, lambda xlogx, b, n: xlogx / b - np.log(b / n), of)
    scale = alpha * (alpha - 1)
    return _spread(
        name,
        partial(_power, alpha),
        lambda powers, b, n: (powers / n / (b / n) ** alpha - 1) / scale,
        of,
    )


def atkinson_index(epsilon: float = 0.5, *, of: Function = benefit) -> Metric:
    """Define Atkinson's index: the share of benefit that equality would save at equal welfare.

    Parameters
    ----------
    epsilon : float
        Aversion to inequality, above 0.
    of : function of columns
        As in :func:`generalized_entropy_index`.

    Examples
    --------
    >>> from fairperm.metrics import atkinson_index
    >>> atkinson_index(1).name
    'atkinson_index(1)'
    """
    epsilon = number("epsilon", epsilon)
    if epsilon <= 0:
        raise InputError("epsilon", "a number above 0", epsilon)
    name = f"atkinson_index({format_parameter(epsilon)})"
    if epsilon == 1:
        return _spread(name, _log, lambda logs, b, n: 1 - np.exp(logs / n) / (b / n), of)
    return _spread(
        name,
        partial(_power, 1 - epsilon),
        lambda powers, b, n: 1 - (powers / n) ** (1 / (1 - epsilon)) / (b / n),
        of,
    )


def _spread(name: str, function: Function, value: Function, of: Function) -> Metric:
    """Define a metric of the totals of some function of the benefit, the benefit, and rows."""
    known = {"y_true", "y_pred", "y_score"}
    if not callable(of) or not set(inspect.signature(of).parameters) <= known:
        raise InputTypeError("of", "a function of y_true, y_pred or y_score", of)
    return Metric(
        name=name,
        meaning="inequality of benefit",
        contributions={
            "_function": _composed(function, of),
            "_benefit": _composed(lambda b, unit: b / unit, of),
            "rows": lambda: 1.0,
        },
        value=partial(_index, value),
        kind=Kind.REGRESSION,
        span=float("inf"),
    )


def _index(value: Function, *totals: Any) -> Any:
    """Return the index, which is never negative; 0 where all benefits are equal."""
    found = value(*totals)
    return np.where(np.real(found) <= _NO_INEQUALITY, 0.0, found)


def _composed(outer: Function, inner: Function) -> Function:
    """Return ``outer`` of benefits and their unit, with the parameters of ``inner``: the columns.

    An index does not depend on the unit. In one near the benefits' own size no power overflows,
    and no logarithm is so large that the index loses its digits.
    """

    def composed(**columns: Any) -> Any:
        b = np.asarray(inner(**columns), np.float64)
        size = np.abs(b)
        units = (float(np.median(size)), float(size.max(initial=0.0)), 1.0)
        return outer(b, next(unit for unit in units if unit > 0))

    composed.__signature__ = inspect.signature(inner)  # type: ignore[attr-defined]
    return composed


def _x_log_x(b: Array, unit: float) -> Array:
    _check(b, "not negative", (b < 0).any())
    share = b / unit
    return np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0)), 0.0)


def _log(b: Array, unit: float) -> Array:
    _check(b, "above 0", (b <= 0).any())
    return np.log(b / unit)


def _power(exponent: float, b: Array, unit: float) -> Array:
    if exponent < 0:
        _check(b, "above 0", (b <= 0).any())
    _check(b, "not negative", (b < 0).any())
    return np.asarray((b / unit) ** exponent)


def _check(b: Array, rule: str, broken: bool | np.bool_) -> None:
    if broken:
        hint = "Choose another index, or another benefit."
        raise InputError("metric", f"of benefits that are {rule}", float(b.min()), hint)


def _variation(squares: Any, sums: Any, b: Any, n: Any) -> Any:
    variance = squares / n - (sums / n) ** 2
    # where all benefits are equal there is none, and no root of what rounding leaves
    none = np.real(variance) <= _ROUNDING * np.real(squares / n)
    mean = np.where(np.real(b) == 0, np.nan, b / n)  # over a mean of zero it is undefined
    return np.sqrt(np.where(none, 0.0, variance)) / mean


def _named(metric: Metric, name: str, meaning: str, *aliases: str) -> Metric:
    return replace(metric, name=name, meaning=meaning, aliases=aliases)


INEQUALITY_METRICS = (
    _named(
        generalized_entropy_index(2),
        "generalized_entropy_index",
        "inequality of benefit: half its squared coefficient of variation",
    ),
    _named(
        generalized_entropy_index(1),
        "theil_t_index",
        "inequality of benefit: Theil's T",
        *("theil_index", "theil_t"),
    ),
    _named(
        generalized_entropy_index(0),
        "theil_l_index",
        "inequality of benefit: Theil's L, the mean log deviation",
        *("theil_l", "mean_log_deviation"),
    ),
    _named(atkinson_index(0.5), "atkinson_index", "inequality of benefit: Atkinson's index"),
    Metric(
        name="coefficient_of_variation",
        meaning="inequality of benefit: its standard deviation over its mean",
        contributions={
            # from any fixed origin; near the middle no digits are lost
            "_squares": _composed(lambda b, unit: ((b - np.median(b)) / unit) ** 2, benefit),
            "_deviations": _composed(lambda b, unit: (b - np.median(b)) / unit, benefit),
            "_benefit": _composed(lambda b, unit: b / unit, benefit),
            "rows": lambda: 1.0,
        },
        value=_variation,
        kind=Kind.REGRESSION,
        span=float("inf"),
    ),
)
