"""Which labels are positive, and how values of any kind are ordered."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm.errors import InputError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.data.columns import Column, Index


def binary_columns(
    labels: Mapping[str, tuple[Column, Index]], pos_label: object
) -> dict[str, NDArray[np.bool_]]:
    """Return for each column of labels which of the rows are positive."""
    taken = {
        name: _taken(column, index)
        for name, (column, index) in labels.items()
        # predictions made from scores are True and False whatever the labels are called
        if not _made_from_scores(column)
    }
    target: object = 1
    if pos_label is None:
        for name, values in taken.items():
            _check_conventional(labels[name][0].name, values)
    else:
        names = [labels[name][0].name for name in taken]
        target = _check_named(names, list(taken.values()), pos_label)
    positive = {}
    for name, (column, index) in labels.items():
        wanted = target if name in taken else 1
        meaning = np.fromiter((value == wanted for value in column.values), bool)
        positive[name] = meaning[index]
    return positive


def as_they_came(column: Column) -> NDArray[Any]:
    """Return a column's values as an array that makes no text of numbers, no table of tuples."""
    if isinstance(column.values, np.ndarray):
        return column.values
    kinds = {isinstance(value, (numbers.Number, np.generic)) for value in column.values}
    if len(kinds) == 1 and not any(isinstance(value, tuple) for value in column.values):
        return np.array(column.values)
    objects = np.empty(len(column.values), object)
    objects[:] = column.values
    return objects


def many_classes(labels: Mapping[str, tuple[Column, Index]]) -> bool:
    """Tell whether labels and predictions are of any classes, not 0 and 1 by some other name.

    Predictions made from scores are of two classes, and numbers with fractions are scores.
    """
    taken = {name: _taken(*one) for name, one in labels.items()}
    if all(_is_conventional(values) for values in taken.values()):
        return False
    if any(_made_from_scores(column) for column, _ in labels.values()):
        return False
    if any(isinstance(one, float) and one % 1 for one in taken.get("y_pred", [])):
        return False
    check_spelling(labels)
    return True


def _made_from_scores(column: Column) -> bool:
    return column.name.startswith("y_score")  # and then perhaps the name in data


def check_spelling(labels: Mapping[str, tuple[Column, Index]]) -> None:
    """Say so if a predicted label differs from a true one in case, spaces or type alone."""
    taken = {name: _taken(*one) for name, one in labels.items()}
    truths = {str(one).strip().casefold(): one for one in taken.get("y_true", [])}
    for one in taken.get("y_pred", []):
        alike = truths.get(str(one).strip().casefold(), one)
        if alike != one:
            rule = f"made of the labels of y_true ({listed(taken['y_true'])})"
            raise InputError("y_pred", rule, one, f"Did you mean {shown(alike)}?")


def _taken(column: Column, index: Index) -> list[Hashable]:
    occurs = np.zeros(len(column.values), bool)
    occurs[index] = True
    return sorted((column.values[i] for i in np.flatnonzero(occurs).tolist()), key=sort_key)


def _is_conventional(taken: Sequence[Hashable]) -> bool:
    return set(taken) <= {0, 1} or set(taken) <= {-1, 1}


def _check_conventional(name: str, taken: Sequence[Hashable]) -> None:
    if _is_conventional(taken):
        return
    if name.startswith("y_pred") and _are_scores(taken):
        hint = "Pass scores as y_score=, with a threshold."
    elif len(taken) == 2:
        hint = f"Pass pos_label={shown(taken[1])} if that is the positive one."
    else:
        hint = "Turn it into two classes first, such as y == 'wanted class'."
    rule = "binary (0/1, -1/1 or False/True; or two other values and pos_label)"
    raise InputError(f"{name} must be {rule}; got the values {listed(taken)}. {hint}")


def _are_scores(taken: Sequence[Hashable]) -> bool:
    """Tell whether these look like scores: numbers, and more than two or with fractions."""
    found: list[Any] = [one for one in taken if isinstance(one, numbers.Real)]
    return len(found) == len(taken) and (len(found) > 2 or any(one % 1 for one in found))


def _check_named(
    names: Sequence[str], taken: Sequence[Sequence[Hashable]], pos_label: object
) -> Hashable:
    every = list(dict.fromkeys(value for values in taken for value in values))
    try:
        pos_label = every[every.index(pos_label)]
    except (ValueError, TypeError):  # not there; or an array or NA, which are equal to nothing
        rule, hint = f"one of the labels ({listed(every)})", did_you_mean(pos_label, every)
        raise InputError("pos_label", rule, pos_label, hint) from None
    if len(every) > 2:
        where = " and ".join(names)
        others = listed(value for value in every if value != pos_label)
        raise InputError(
            f"{where} must be made of pos_label and one other value; "
            f"got {shown(pos_label)} and {others}. Write labels and predictions with the same two "
            "values; turn more classes into two first."
        )
    return pos_label


def sort_key(name: Hashable) -> tuple[Any, ...]:
    """Order numbers by value and all else by kind and text, so that any mixture can be sorted."""
    if isinstance(name, tuple):
        return (2, *map(sort_key, name))
    if isinstance(name, (numbers.Real, Decimal)):
        return (0, name)
    return (1, type(name).__name__, str(name))
