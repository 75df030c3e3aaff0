"""Metrics of labels of any number of classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.sorting import order_by
from fairperm.metrics.definition import NEW, AnyMetric, Kind, Metric, name_change

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.metrics.definition import Function, GroupedColumns


def label_rate(
    name: str,
    meaning: str,
    counts: Function,
    denominator: Function = lambda: 1.0,
    *,
    kind: Kind = Kind.LABELS,
    **options: Any,
) -> Metric:
    """Define a rate by what of the labels it counts, and among which rows."""
    return Metric(
        name=name,
        meaning=meaning,
        contributions={"numerator": counts, "denominator": denominator},
        value=lambda numerator, denominator: numerator / denominator,
        kind=kind,
        **options,
    )


def recall_of(label: Hashable) -> Metric:
    """Define the recall of one class: how many of its rows are predicted to be of it.

    Parameters
    ----------
    label
        The class.

    Examples
    --------
    >>> from fairperm.metrics import recall_of
    >>> recall_of("cat").name
    "recall_of('cat')"
    """
    return label_rate(
        f"recall_of({label!r})",
        f"share of rows of class {label!r} predicted as such",
        partial(_hits, label=label),
        lambda y_true: are_of_class(y_true, label),
        kind=Kind.CLASSES,
        given="label",
        among=f"rows of class {label!r}",
    )


def precision_of(label: Hashable) -> Metric:
    """Define the precision of one class: how many rows predicted to be of it are.

    Parameters
    ----------
    label
        The class.

    Examples
    --------
    >>> from fairperm.metrics import precision_of
    >>> precision_of("cat").name
    "precision_of('cat')"
    """
    return label_rate(
        f"precision_of({label!r})",
        f"share of rows predicted as class {label!r} that are",
        partial(_hits, label=label),
        lambda y_pred: are_of_class(y_pred, label),
        kind=Kind.CLASSES,
        given="prediction",
        among=f"rows predicted as class {label!r}",
    )


def are_of_class(column: NDArray[Any], label: Hashable) -> NDArray[np.bool_]:
    """Return which rows have the label, one by one: NumPy would take a tuple for an array."""
    return np.fromiter((one == label for one in column.tolist()), bool, len(column))


def _hits(y_true: Any, y_pred: Any, *, label: Hashable) -> Any:
    return are_of_class(y_true, label) & are_of_class(y_pred, label)


def _misses(y_true: Any, y_pred: Any, *, label: Hashable) -> Any:
    return are_of_class(y_true, label) != are_of_class(y_pred, label)


def _macro_f1(*totals: Any) -> Any:
    pairs = zip(totals[0::2], totals[1::2], strict=True)
    scores = [2 * hits / (2 * hits + misses) for hits, misses in pairs]
    return sum(scores) / len(scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroF1(AnyMetric):
    """The mean F1 score over the classes, which are known only when the data are."""

    name: str = "macro_f1"
    meaning: str = "mean over the classes of the harmonic mean of precision and recall"
    aliases: tuple[str, ...] = ("f1_macro",)
    kind: Kind = Kind.CLASSES
    columns: tuple[str, ...] = ("y_true", "y_pred")
    parts: tuple[Metric, ...] = ()  # none before the classes are known
    given: None = None
    complement: None = None

    def for_table(self, table: GroupedColumns, groups: Sequence[Hashable]) -> Metric:
        """Return the metric for the classes that occur in these groups of a table."""
        contributions = {}
        for label in labels_of(table.columns_of(groups)):
            contributions[f"hits of {label!r}"] = partial(_hits, label=label)
            contributions[f"misses of {label!r}"] = partial(_misses, label=label)
        return Metric(
            name=self.name,
            meaning=self.meaning,
            contributions=contributions,
            value=_macro_f1,
            kind=self.kind,
        )

    def change(self, *, old: int = -1) -> MacroF1:
        """Return the change from the old model to the new one; with ``old`` 1, their sum."""
        from fairperm.metrics.changes import MacroF1Change  # which waits for the classes, too

        columns = (*self.columns, f"y_pred{NEW}")
        return MacroF1Change(columns=columns, old=old, **name_change(self))


def labels_of(columns: Mapping[str, NDArray[Any]]) -> list[Hashable]:
    """Return the labels that occur, as label or as prediction."""
    names = [name for name in ("y_true", "y_pred", f"y_pred{NEW}") if name in columns]
    every = (columns[name][order_by([columns[name]])].tolist() for name in names)
    return list(dict.fromkeys(label for labels in every for label in labels))
