"""Columns that are elsewhere, for functions that are written for NumPy arrays.

What rows contribute to a metric is defined once, by NumPy's functions. Called with these columns,
the same definition becomes an expression that the engine of a lazy frame computes. What engines
compute unlike NumPy, or unlike each other, is not done: truths are numbers to them where NumPy
takes "or" for a sum, and what is undefined is above all numbers, or missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

if TYPE_CHECKING:
    from collections.abc import Callable

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


class Elsewhere(NDArrayOperatorsMixin):
    """A column of a lazy frame that NumPy's functions of numbers can be applied to.

    ``is_truth`` tells that it is made of truths, and ``has_gaps`` that it may be undefined in some
    rows: it can be added up, and then shows, but not be compared with anything.
    """

    def __init__(
        self, expression: nw.Expr, *, is_truth: bool = False, has_gaps: bool = False
    ) -> None:
        self.expression = expression
        self.is_truth = is_truth
        self.has_gaps = has_gaps

    def number(self) -> nw.Expr:
        """Return the expression, truths as 0 and 1."""
        return self.expression.cast(nw.Float64) if self.is_truth else self.expression

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Return what an engine computes as the function would."""
        truths, gaps = all(map(_is_truth, inputs)), any(map(_has_gaps, inputs))
        if method != "__call__" or options or (gaps and ufunc in _ORDERED):
            return NotImplemented
        if ufunc in _LOGIC and truths:
            columns = (one.expression if isinstance(one, Elsewhere) else one for one in inputs)
            return Elsewhere(_LOGIC[ufunc](*columns), is_truth=True)
        numbers = map(_number, inputs)
        if ufunc in _COMPARISONS:
            return Elsewhere(_COMPARISONS[ufunc](*numbers), is_truth=True)
        if ufunc in _NUMBERS and not truths:
            gaps = gaps or _makes_gaps(ufunc, inputs)
            return Elsewhere(_NUMBERS[ufunc](*numbers), has_gaps=gaps)
        return NotImplemented

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        """Return a choice or a clipped column; what else NumPy has is not computed elsewhere."""
        del types
        if function is np.where and len(given) == 3 and not options:
            return _where(*given)
        if function is np.clip and len(given) == 3 and not options:
            return np.minimum(np.maximum(given[0], given[1]), given[2])
        return NotImplemented


def _is_truth(value: Any) -> bool:
    return value.is_truth if isinstance(value, Elsewhere) else isinstance(value, (bool, np.bool_))


def _has_gaps(value: Any) -> bool:
    return isinstance(value, Elsewhere) and value.has_gaps


def _makes_gaps(ufunc: Any, inputs: Any) -> bool:
    """Tell whether a function of numbers is undefined for some."""
    if ufunc is np.true_divide:
        return isinstance(inputs[1], Elsewhere) or float(inputs[1]) == 0.0
    if ufunc is np.power:
        return isinstance(inputs[1], Elsewhere) or float(inputs[1]) not in _WHOLE
    return ufunc in {np.sqrt, np.log, np.log1p}


def _number(value: Any) -> Any:
    """Return an expression, or a number; truths are numbers, as in NumPy's sums."""
    return value.number() if isinstance(value, Elsewhere) else float(value)


def _expressions(*values: Any) -> list[Any]:
    return [one if isinstance(one, nw.Expr) else nw.lit(one) for one in values]


def _where(condition: Any, yes: Any, no: Any) -> Any:
    """Return one value where the condition holds and another elsewhere; or that of a constant."""
    if not isinstance(condition, Elsewhere):
        return yes if condition else no
    if not condition.is_truth:
        condition = condition != 0.0
    first, second = _expressions(_number(yes), _number(no))
    chosen = nw.when(condition.expression).then(first).otherwise(second)
    return Elsewhere(chosen, has_gaps=_has_gaps(yes) or _has_gaps(no))


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; small whole ones by products, which no engine rounds otherwise."""
    if isinstance(exponent, float) and exponent in _WHOLE:
        product = base * base
        return {2.0: product, 3.0: product * base, 4.0: product * product}[exponent]
    return base**exponent
