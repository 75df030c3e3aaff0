"""Expressions of lazy columns from functions that are written for NumPy arrays.

Contributions to a metric are defined once, by NumPy's functions. Called with column expressions,
the same definition becomes an expression that the engine of a lazy frame computes. Operations that
engines compute differently from NumPy, or from each other, are not supported: sums of booleans
(NumPy's is "or"), and comparisons of undefined values (above all numbers, or missing).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import narwhals.stable.v2 as nw
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

_NUMBERS: dict[Any, Callable[..., Any]] = {
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
    np.maximum: lambda a, b: nw.max_horizontal(*_expressions(a, b)),
    np.minimum: lambda a, b: nw.min_horizontal(*_expressions(a, b)),
}
_COMPARISONS: dict[Any, Callable[..., Any]] = {
    np.greater: lambda a, b: a > b,
    np.greater_equal: lambda a, b: a >= b,
    np.less: lambda a, b: a < b,
    np.less_equal: lambda a, b: a <= b,
    np.equal: lambda a, b: a == b,
    np.not_equal: lambda a, b: a != b,
}
_LOGIC: dict[Any, Callable[..., Any]] = {
    np.bitwise_and: lambda a, b: a & b,
    np.bitwise_or: lambda a, b: a | b,
    np.invert: lambda a: ~a,
}
_WHOLE = (2.0, 3.0, 4.0)  # powers that are products
_ORDERED = {*_COMPARISONS, np.maximum, np.minimum}


class ColumnExpression(NDArrayOperatorsMixin):
    """A column of a lazy frame to which NumPy's functions of numbers can be applied.

    ``may_be_undefined`` is True if some rows may have no number: then it can be added up, which
    shows in the sum, but not compared with anything.
    """

    def __init__(
        self, expression: nw.Expr, *, is_boolean: bool = False, may_be_undefined: bool = False
    ) -> None:
        self.expression = expression
        self.is_boolean = is_boolean
        self.may_be_undefined = may_be_undefined

    def number(self) -> nw.Expr:
        """Return the expression, with booleans as 0 and 1."""
        return self.expression.cast(nw.Float64) if self.is_boolean else self.expression

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Return the expression that computes the function, if engines agree on it."""
        are_boolean = all(map(_is_boolean, inputs))
        undefined = any(map(_may_be_undefined, inputs))
        if method != "__call__" or options or (undefined and ufunc in _ORDERED):
            return NotImplemented
        if ufunc in _LOGIC and are_boolean:
            columns = (one.expression if _is_column(one) else one for one in inputs)
            return ColumnExpression(_LOGIC[ufunc](*columns), is_boolean=True)
        numbers = map(_number, inputs)
        if ufunc in _COMPARISONS:
            return ColumnExpression(_COMPARISONS[ufunc](*numbers), is_boolean=True)
        if ufunc in _NUMBERS and not are_boolean:
            undefined = undefined or _is_partial(ufunc, inputs)
            return ColumnExpression(_NUMBERS[ufunc](*numbers), may_be_undefined=undefined)
        return NotImplemented

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        """Return the expression for ``np.where`` or ``np.clip``; no other function is supported."""
        del types
        if function is np.where and len(given) == 3 and not options:
            return _where(*given)
        if function is np.clip and len(given) == 3 and not options:
            return np.minimum(np.maximum(given[0], given[1]), given[2])
        return NotImplemented


def _is_column(value: Any) -> TypeGuard[ColumnExpression]:
    """Whether an argument of NumPy's functions is a column; others are constants."""
    return isinstance(value, ColumnExpression)


def _is_boolean(value: Any) -> bool:
    if _is_column(value):
        return value.is_boolean
    return isinstance(value, (bool, np.bool_))


def _may_be_undefined(value: Any) -> bool:
    return _is_column(value) and value.may_be_undefined


def _is_partial(ufunc: Any, inputs: Any) -> bool:
    """Whether the function is undefined for some numbers."""
    if ufunc is np.true_divide:
        return _is_column(inputs[1]) or float(inputs[1]) == 0.0
    if ufunc is np.power:
        return _is_column(inputs[1]) or float(inputs[1]) not in _WHOLE
    return ufunc in {np.sqrt, np.log, np.log1p}


def _number(value: Any) -> Any:
    """Return an expression or a number, with booleans as 0 and 1."""
    return value.number() if _is_column(value) else float(value)


def _expressions(*values: Any) -> list[Any]:
    return [one if isinstance(one, nw.Expr) else nw.lit(one) for one in values]


def _where(condition: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` if the condition holds, else ``no``; the condition may be a constant."""
    if not _is_column(condition):
        return yes if condition else no
    if not condition.is_boolean:
        condition = condition != 0.0
    first, second = _expressions(_number(yes), _number(no))
    chosen = nw.when(condition.expression).then(first).otherwise(second)
    undefined = _may_be_undefined(yes) or _may_be_undefined(no)
    return ColumnExpression(chosen, may_be_undefined=undefined)


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; small whole exponents by products, which all engines round alike."""
    if isinstance(exponent, float) and exponent in _WHOLE:
        product = base * base
        return {2.0: product, 3.0: product * base, 4.0: product * product}[exponent]
    return base**exponent
