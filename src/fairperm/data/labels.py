"""Labels: which are positive, and the order of values of any type."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm.errors import InputError, Shown, argument, did_you_mean, listed, shown

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.data.columns import Column, Index, IndexedColumn


def find_positives(
    labels: Mapping[str, IndexedColumn], pos_label: object
) -> dict[str, NDArray[np.bool_]]:
    """Return for each column of labels which of the rows are positive."""
    values = {
        name: _distinct_values(column, index)
        for name, (column, index) in labels.items()
        # predictions made from scores are True and False, whatever the labels are called
        if not column.from_scores
    }
    target: object = 1
    if pos_label is None:
        for name, distinct in values.items():
            _check_conventional(labels[name][0].name, distinct, is_prediction=name == "y_pred")
    else:
        names = [labels[name][0].name for name in values]
        target = _match_label(names, list(values.values()), pos_label)
    positive = {}
    for name, (column, index) in labels.items():
        wanted = target if name in values else 1
        is_positive = np.fromiter((value == wanted for value in column.values), bool)
        positive[name] = is_positive[index]
    return positive


def values_as_array(column: Column) -> NDArray[Any]:
    """Return a column's values as an array, without turning numbers to text or tuples to rows."""
    if isinstance(column.values, np.ndarray):
        return column.values
    kinds = {isinstance(value, (numbers.Number, np.generic)) for value in column.values}
    if len(kinds) == 1 and not any(isinstance(value, tuple) for value in column.values):
        return np.array(column.values)
    objects = np.empty(len(column.values), object)
    objects[:] = column.values
    return objects


def has_named_classes(labels: Mapping[str, IndexedColumn]) -> bool:
    """Whether labels and predictions are names of classes, not 0/1, -1/1 or False/True.

    Predictions made from scores are binary, and numbers with fractions are scores.
    """
    values = {name: _distinct_values(*one) for name, one in labels.items()}
    if all(_is_conventional(distinct) for distinct in values.values()):
        return False
    if any(column.from_scores for column, _ in labels.values()):
        return False
    if any(isinstance(one, float) and one % 1 for one in values.get("y_pred", [])):
        return False
    check_spelling(labels)
    return True


def check_spelling(labels: Mapping[str, IndexedColumn]) -> None:
    """Raise InputError if a predicted label differs from a true one by case, spaces or type."""
    values = {name: _distinct_values(*one) for name, one in labels.items()}
    truths = {str(one).strip().casefold(): one for one in values.get("y_true", [])}
    for one in values.get("y_pred", []):
        similar = truths.get(str(one).strip().casefold(), one)
        if similar != one:
            rule = f"made of the labels of {argument('y_true')} ({listed(values['y_true'])})"
            raise InputError("y_pred", rule, one, f"Did you mean {shown(similar)}?")


def _distinct_values(column: Column, index: Index) -> list[Hashable]:
    occurs = np.zeros(len(column.values), bool)
    occurs[index] = True
    return sorted((column.values[i] for i in np.flatnonzero(occurs).tolist()), key=sort_key)


def _is_conventional(values: Sequence[Hashable]) -> bool:
    return set(values) <= {0, 1} or set(values) <= {-1, 1}


def _check_conventional(name: str, values: Sequence[Hashable], *, is_prediction: bool) -> None:
    if _is_conventional(values):
        return
    if is_prediction and _are_scores(values):
        hint = f"Pass scores as {argument('y_score')}, with a {argument('threshold')}."
    elif len(values) == 2:
        hint = f"Pass {argument('pos_label', values[1])} if that is the positive one."
    else:
        hint = "Turn it into two classes first, such as y == 'wanted class'."
    rule = f"binary (0/1, -1/1 or False/True; or two other values and {argument('pos_label')})"
    raise InputError(name, rule, Shown(f"the values {listed(values)}"), hint)


def _are_scores(values: Sequence[Hashable]) -> bool:
    """Whether these look like scores: numbers, and more than two or with fractions."""
    found: list[Any] = [one for one in values if isinstance(one, numbers.Real)]
    return len(found) == len(values) and (len(found) > 2 or any(one % 1 for one in found))


def _match_label(
    names: Sequence[str], values: Sequence[Sequence[Hashable]], pos_label: object
) -> Hashable:
    """Return the one of the labels that equals ``pos_label``. Raises InputError without one."""
    every = list(dict.fromkeys(value for distinct in values for value in distinct))
    try:
        pos_label = every[every.index(pos_label)]
    except (ValueError, TypeError):  # not there; or an array or NA, which are equal to nothing
        rule, hint = f"one of the labels ({listed(every)})", did_you_mean(pos_label, every)
        raise InputError("pos_label", rule, pos_label, hint) from None
    if len(every) > 2:
        others = listed(value for value in every if value != pos_label)
        raise InputError(
            " and ".join(names),
            f"made of {argument('pos_label')} and one other value",
            Shown(f"{shown(pos_label)} and {others}"),
            "Use the same two values for labels and predictions; turn more classes into two first.",
        )
    return pos_label


def sort_key(name: Hashable) -> tuple[Any, ...]:
    """Order numbers by value, and all else by type and text: any mixture can be sorted."""
    if isinstance(name, tuple):
        return (2, *map(sort_key, name))
    if isinstance(name, (numbers.Real, Decimal)):
        return (0, name)
    return (1, type(name).__name__, str(name))
