"""Any function ``metric(y_true, y_pred)``, as scikit-learn and Fairlearn write them."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array
from fairperm._utils.sorting import ranks
from fairperm.errors import InputError, InputTypeError, Shown, shown
from fairperm.metrics.definition import Kind, SingleMetric

_SCORES = {"y_score", "y_scores", "y_prob", "y_proba", "probas_pred", "score", "scores"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableMetric(SingleMetric):
    """A user's function of two columns, evaluated anew in every sample."""

    name: str
    function: Callable[..., object]
    # ``y_true``, and ``y_score`` if the second parameter is named like scores, else ``y_pred``
    columns: tuple[str, ...]
    # Whether it has a parameter ``sample_weight``. A row of weight k must count as k rows do; a
    # function for which it does not is never given counts as weights.
    takes_weight: bool
    meaning: str = "metric of the user's own making"

    is_function: ClassVar[bool] = True
    has_counts: ClassVar[bool] = False
    kind: ClassVar[Kind] = Kind.ANY
    aliases: ClassVar[tuple[str, ...]] = ()
    contributions: ClassVar[tuple[str, ...]] = ()
    given: ClassVar[None] = None
    complement: ClassVar[None] = None
    span: ClassVar[float] = math.inf
    among: ClassVar[str] = "rows"
    smooth: ClassVar[bool] = False

    @classmethod
    def of(cls, function: Callable[..., object]) -> CallableMetric:
        """Read from a function's parameters what it wants."""
        second, takes_weight = "y_pred", False
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # written in C: its parameters are not to be seen
            signature = None
        if signature is not None:
            _check_call(function, signature)
            second = [*signature.bind("y_true", "y_pred").arguments][-1]
            fixed = function.keywords if isinstance(function, functools.partial) else {}
            takes_weight = "sample_weight" not in fixed and _takes_weight(signature)
        columns = ("y_true", "y_score" if second.lower() in _SCORES else "y_pred")
        return cls(
            name=_name(function), function=function, columns=columns, takes_weight=takes_weight
        )

    @property
    def identity(self) -> object:
        return id(self.function), self.columns

    def for_arguments(self, inputs: Any) -> CallableMetric:
        """Return the metric of the column that was given: predictions or scores.

        Only the user knows whether a parameter ``y_pred`` expects predictions or probabilities, as
        in scikit-learn's ``log_loss``. The column that was given is therefore passed on, and the
        name of the parameter decides only if both were given.
        """
        if inputs.pos_label is not None:
            hint = f"Fix it: functools.partial({self.name}, pos_label={shown(inputs.pos_label)})."
            rule = "left out for a function, which gets labels as they are"
            raise InputError("pos_label", rule, inputs.pos_label, hint)
        if inputs.threshold is not None:
            rule = "left out for a function, which gets scores as they are"
            hint = "Pass y_pred=scores >= threshold."
            raise InputError("threshold", rule, inputs.threshold, hint)
        if inputs.sample_weight is not None and not self.takes_weight:
            rule = "a function with a parameter sample_weight if weights are given"
            raise InputTypeError("metric", rule, self.function)
        if (inputs.y_pred is None) == (inputs.y_score is None):
            return self
        return replace(self, columns=("y_true", "y_pred" if inputs.y_score is None else "y_score"))

    def change(self, *, old: int = -1) -> CallableMetric:
        from fairperm.metrics.changes import FunctionChange  # which is a function, too

        return FunctionChange.between_models(self, old)

    def matrix(self, columns: Mapping[str, NDArray[Any]]) -> Array:
        """Return what tells rows apart: the ranks of their values."""
        return np.column_stack([ranks(columns[name]) for name in self.columns]).astype(np.float64)

    def value(self, columns: Sequence[NDArray[Any]], weight: Array | None, where: str) -> float:
        """Return the function's value in a sample; NaN if it is undefined or not finite."""
        options = {} if weight is None else {"sample_weight": weight}
        try:
            result = self.function(*columns, **options)
        except Exception as error:
            hint = "Return NaN where the metric is undefined."
            rule = "a function that has a value in every sample"
            raise InputError("metric", rule, self._result(error, where), hint) from error
        if getattr(result, "shape", None) == () and not isinstance(result, np.ma.MaskedArray):
            result = result.item()  # type: ignore[attr-defined]
        if isinstance(result, bool) or not isinstance(result, numbers.Real):
            rule = "a function that returns a real number"
            raise InputTypeError("metric", rule, self._result(result, where))
        number = float(result)
        return number if math.isfinite(number) else math.nan

    def _result(self, got: object, where: str) -> Shown:
        return Shown(f"{shown(got)} from {self.name} in {where}")


def _check_call(function: Callable[..., object], signature: inspect.Signature) -> None:
    try:
        signature.bind("y_true", "y_pred")
    except TypeError as error:
        rule = "a function that can be called as metric(y_true, y_pred)"
        hint = "Fix its other arguments with functools.partial."
        got = Shown(f"{shown(function)} ({error})")
        raise InputTypeError("metric", rule, got, hint) from error


def _takes_weight(signature: inspect.Signature) -> bool:
    parameter = signature.parameters.get("sample_weight")
    if parameter is None or parameter.kind is parameter.VAR_KEYWORD:
        return False
    try:
        signature.bind("y_true", "y_pred", sample_weight="weight")
    except TypeError:  # it is the first or the second parameter, or has no name for callers
        return False
    return True


def _name(function: object) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))
