"""Columns that are elsewhere, for functions that are written for NumPy arrays.

What rows contribute to a metric is defined once, by NumPy's functions. Called with these columns,
the same definition becomes an expression that the engine of a lazy frame computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

if TYPE_CHECKING:
    from collections.abc import Callable

_UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.true_divide: lambda a, b: a / b,
    np.power: lambda a, b: _power(a, b),
    np.square: lambda a: a * a,
    np.negative: lambda a: 0.0 - a,
    np.positive: lambda a: a,
    np.absolute: lambda a: a.abs(),
    np.sqrt: lambda a: a.sqrt(),
    np.exp: lambda a: a.exp(),
    np.log: lambda a: a.log(),
    np.log1p: lambda a: (a + 1.0).log(),
    np.floor: lambda a: a.floor(),
    np.greater: lambda a, b: a > b,
    np.greater_equal: lambda a, b: a >= b,
    np.less: lambda a, b: a < b,
    np.less_equal: lambda a, b: a <= b,
    np.equal: lambda a, b: a == b,
    np.not_equal: lambda a, b: a != b,
    np.bitwise_and: lambda a, b: a & b,
    np.bitwise_or: lambda a, b: a | b,
    np.invert: lambda a: ~a,
    np.maximum: lambda a, b: nw.max_horizontal(*_expressions(a, b)),
    np.minimum: lambda a, b: nw.min_horizontal(*_expressions(a, b)),
}


class Elsewhere(NDArrayOperatorsMixin):
    """A column of a lazy frame that NumPy's functions of numbers can be applied to."""

    def __init__(self, expression: nw.Expr) -> None:
        self.expression = expression

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Return what an engine computes as the function would."""
        if method != "__call__" or options or ufunc not in _UFUNCS:
            return NotImplemented
        return Elsewhere(_UFUNCS[ufunc](*map(_plain, inputs)))

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        """Return a choice or a clipped column; what else NumPy has is not computed elsewhere."""
        del types
        if function is np.where and len(given) == 3 and not options:
            return _where(*given)
        if function is np.clip and len(given) == 3 and not options:
            column, low, high = map(_plain, given)
            return Elsewhere(column.clip(low, high))
        return NotImplemented


def _plain(value: Any) -> Any:
    """Return an expression, or a number; truths are numbers, as in NumPy's sums."""
    if isinstance(value, Elsewhere):
        return value.expression
    return float(value)


def _expressions(*values: Any) -> list[Any]:
    return [one if isinstance(one, nw.Expr) else nw.lit(one) for one in values]


def _where(condition: Any, yes: Any, no: Any) -> Any:
    """Return one value where the condition holds and another elsewhere; or that of a constant."""
    if not isinstance(condition, Elsewhere):
        return yes if condition else no
    first, second = _expressions(_plain(yes), _plain(no))
    return Elsewhere(nw.when(condition.expression).then(first).otherwise(second))


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; small whole ones by products, which no engine rounds otherwise."""
    if isinstance(exponent, float) and exponent in {2.0, 3.0, 4.0}:
        product = base * base
        return {2.0: product, 3.0: product * base, 4.0: product * product}[exponent]
    return base**exponent
