"""The mean over classes of the AUC of each class against the rest.

A row is one of its own class in one AUC, and one of the rest in all others. Its influences on all
of them add up to that on the mean, so the variance allows for what the AUCs have in common.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Booleans
from fairperm._utils.sorting import run_numbers
from fairperm.errors import InputError, Shown, argument, did_you_mean, listed, shown
from fairperm.metrics.classes import (
    are_of_class,
    class_rows,
    find_class,
    is_called,
    labels_of,
    name_of_class,
    refuse_arguments,
)
from fairperm.metrics.definition import AnyMetric, Kind, WalkKind
from fairperm.metrics.ranks import AreaUnderCurve, RankInfluences, RankMetric, SortedCells

if TYPE_CHECKING:
    from fairperm.metrics.definition import GroupedColumns

_ROUNDING = 1e-12  # smaller influences, relative to their terms, are rounding errors
_ONE_CLASS_HINT = (
    f"Use {argument('metric', 'roc_auc')} for each class: {argument('pos_label')} is the class, "
    f"and {argument('y_score')} its scores."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneVersusRest(RankMetric):
    """The mean AUC of each class against all others, whose rows have a score for every class.

    The AUC of a class depends on the mix of the others, which differs between groups.
    """

    is_weighted: bool  # whether classes count by the weight of their rows, or all alike
    # names of the columns of scores; none before the arguments of a test are known
    scores: tuple[str, ...] = ()
    # the classes that the user named the columns by; None if they are in the order of the labels
    names: tuple[Hashable, ...] | None = None
    # Names of columns of data in a list. If one of them is a class, they are ``names``.
    column_names: tuple[Hashable, ...] = ()
    # the classes, in the order of ``scores``; none before the data are known
    classes: tuple[Hashable, ...] = ()

    kind: ClassVar[Kind] = Kind.CLASS_SCORES
    given: ClassVar[None] = None  # it depends on the shares of classes: all rows are exchanged
    walk: ClassVar[WalkKind] = WalkKind.ONE_VERSUS_REST

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("y_true", *(self.scores or ("y_score",)))

    @property
    def contributions(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the columns of the matrix: which class a row is of, and its scores."""
        return (*map(_name_rows, self.classes), *(f"_{one}" for one in self.scores))

    @property
    def identity(self) -> object:
        return self.name

    @property
    def one_class_hint(self) -> str:
        return _ONE_CLASS_HINT

    def for_arguments(self, inputs: Any) -> OneVersusRest:
        refuse_arguments(self.name, inputs, "threshold", "pos_label")
        columns, names = inputs.split_scores(self.name)
        given = tuple(one for one in columns.values() if names is None and isinstance(one, str))
        return replace(self, scores=tuple(columns), names=names, column_names=given)

    def for_table(self, table: GroupedColumns, groups: Sequence[Hashable]) -> OneVersusRest:
        """Return the metric for the classes of a table: those of all its groups."""
        del groups
        labels = labels_of({"y_true": table.columns["y_true"]})
        if len(labels) < 2:
            hint = f"{self.name} compares each class with the rest."
            raise InputError("y_true", "made of two classes or more", Shown(listed(labels)), hint)
        scores, names = self.scores, self.names
        if {*map(str, labels)} & {*self.column_names}:
            names = self.column_names
        if names is not None:
            scores = tuple(scores[one] for one in _find_columns(names, labels))
        elif len(scores) != len(labels):
            rule = f"one column for each of {len(labels)} classes ({listed(labels)})"
            raise InputError("y_score", rule, Shown(_count_columns(len(scores))))
        else:
            _check_order(self.column_names, labels)
        return replace(self, scores=scores, classes=tuple(labels))

    def matrix(self, columns: Mapping[str, NDArray[Any]]) -> Array:
        label = columns["y_true"]
        is_of = [are_of_class(label, one) for one in self.classes]
        return np.column_stack([*is_of, *(columns[one] for one in self.scores)]).astype(np.float64)

    def label_rows(self, contributions: Array) -> dict[str, Array]:
        rows = contributions[:, : len(self.classes)].T
        return dict(zip(map(_name_rows, self.classes), rows, strict=True))

    def estimate(self, counts: Array, cells: Array) -> tuple[Array, Array]:
        # the squared influences of a class of m rows have a factor m/(m − 1): with two classes this
        # is DeLong's variance
        value, *_, influences = self._influences(counts, cells)
        is_of = cells[:, : len(self.classes)]
        squares, n = (counts * influences**2) @ is_of, counts @ is_of
        factor = n / np.maximum(n - 1, 1)
        variance = (squares * factor).sum(axis=-1)
        return value, np.where((n > 1).all(axis=-1), variance, np.nan)

    def analyze(self, counts: Array, cells: Array) -> RankInfluences:
        """Return what the value rests on: all classes, of which one more row may be missed."""
        value, share, aucs, influence = self._influences(counts, cells)
        is_of = cells[:, : len(self.classes)]
        with np.errstate(divide="ignore", invalid="ignore"):
            each = is_of @ np.nan_to_num(share / (counts @ is_of))
        return RankInfluences(value, influence, each, share * np.maximum(aucs, 1 - aucs))

    def _influences(self, counts: Array, cells: Array) -> tuple[Array, Array, Array, Array]:
        """Return the value, the share and AUC of each class, and the influence of cells' rows."""
        n_classes = len(self.classes)
        is_of = cells[:, :n_classes]
        totals: Array = counts @ is_of
        whole = totals.sum(axis=-1)
        aucs, influence, size = np.empty_like(totals), np.zeros_like(counts), np.zeros_like(counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = totals / whole[..., None] if self.is_weighted else 1 / n_classes + 0 * totals
            for c in range(n_classes):
                cell = SortedCells.of(cells[:, [c, n_classes + c]])
                parts = cell.components(counts)
                tie = np.empty(len(cells), np.intp)
                tie[cell.order] = run_numbers(cell.starts, len(cells))
                own = is_of[:, c] > 0
                component = np.where(
                    own, parts.of_positives[..., tie], parts.of_negatives[..., tie]
                )
                aucs[..., c] = parts.value()
                rows = np.where(own, totals[..., c, None], (whole - totals[..., c])[..., None])
                scale = share[..., c, None] / rows
                influence += scale * (component - aucs[..., c, None])
                size += scale
            value: Array = (share * aucs).sum(axis=-1)
            if self.is_weighted:  # one more row of a class gives its AUC more weight
                influence += (aucs @ is_of.T - value[..., None]) / whole[..., None]
            influence = np.where(np.abs(influence) <= _ROUNDING * size, 0.0, influence)
        return value, share, aucs, influence


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCurve(AreaUnderCurve):
    """The AUC of one class against all others, or a function of it, such as ``roc_auc[cat]``."""

    single: AreaUnderCurve  # the AUC, or the function of it
    label: Hashable  # the class, or its name as text
    scores: OneVersusRest  # the metric that reads the columns of scores
    column: str = ""  # the column of the class; "" before the data are known

    kind: ClassVar[Kind] = Kind.CLASS_SCORES

    @classmethod
    def of(cls, single: AreaUnderCurve, word: str, label: Hashable) -> ClassCurve:
        """Define the metric of a class, which users call by ``word``."""
        name = name_of_class(word, label)
        return cls(
            name=name,
            meaning=f"{single.meaning}, where only class {shown(label)} is positive",
            slope=single.slope,
            offset=single.offset,
            single=single,
            label=label,
            scores=OneVersusRest(name=name, meaning="", is_weighted=False),
        )

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("y_true", self.column) if self.column else self.scores.columns

    @property
    def identity(self) -> object:
        return self.single.identity, self.label

    @property
    def listed_name(self) -> str:
        return self.single.name

    @property
    def one_class_hint(self) -> str:
        return _ONE_CLASS_HINT

    def for_arguments(self, inputs: Any) -> ClassCurve:
        return replace(self, scores=self.scores.for_arguments(inputs))

    def for_table(self, table: GroupedColumns, groups: Sequence[Hashable]) -> ClassCurve:
        """Return the metric for the class of a table that has this name, and for its column."""
        if self.column:
            return self
        scores = self.scores.for_table(table, groups)
        label = find_class(self.name, self.label, scores.classes)
        column = scores.scores[scores.classes.index(label)]
        return replace(self, label=label, column=column)

    def matrix(self, columns: Mapping[str, NDArray[Any]]) -> Array:
        is_of = self.exchanged_label(columns)
        return np.column_stack([is_of, columns[self.column]]).astype(np.float64)

    def exchanged_label(self, columns: Mapping[str, NDArray[Any]]) -> Booleans:
        return are_of_class(columns["y_true"], self.label)

    def label_rows(self, contributions: Array) -> dict[str, Array]:
        binary = AreaUnderCurve.label_rows(self, contributions)
        return {class_rows(name, self.label): rows for name, rows in binary.items()}

    def change(self, *, old: int = -1) -> AnyMetric:
        """Raise InputError: a second model has one column of scores."""
        return AnyMetric.change(self, old=old)


def _find_columns(names: Sequence[Hashable], labels: Sequence[Hashable]) -> list[int]:
    """Return the place of each label's column; a text may stand for a number."""
    of_names = [
        one
        if one in labels
        else next(
            (label for label in labels if isinstance(one, str) and is_called(label, one)), one
        )
        for one in names
    ]
    for name, label in zip(names, of_names, strict=True):
        if label not in labels:
            rule = f"named by the classes of {argument('y_true')} ({listed(labels)})"
            hint = did_you_mean(name, labels) or "Pass a mapping of classes to columns."
            raise InputError("y_score", rule, name, hint)
    missing = [label for label in labels if label not in of_names]
    if missing or len(set(of_names)) < len(of_names):
        rule = f"one column for each of {len(labels)} classes ({listed(labels)})"
        got = f"none for {listed(missing)}" if missing else f"two for {shown(names[0])}"
        raise InputError("y_score", rule, Shown(got))
    return [of_names.index(label) for label in labels]


def _check_order(names: Sequence[Hashable], labels: Sequence[Hashable]) -> None:
    """Raise InputError for columns such as "p_yes", "p_no": labels are sorted, these are not."""
    inside = [[one for one in labels if str(one).lower() in str(name).lower()] for name in names]
    order = [one for found in inside if len(found) == 1 for one in found]
    if order != labels and len(order) == len(names) and set(order) == set(labels):
        rule = f"in the order of the sorted classes ({listed(labels)})"
        hint = "Pass a mapping of classes to columns, in any order."
        raise InputError("y_score", rule, Shown(listed(names)), hint)


def _name_rows(label: Hashable) -> str:
    return f"rows of class {shown(label)}"


def _count_columns(n: int) -> str:
    return "1 column" if n == 1 else f"{n} columns"


ONE_VERSUS_REST = (
    OneVersusRest(
        name="roc_auc_ovr",
        meaning="mean over the classes of the AUC of each class against the rest",
        is_weighted=False,
    ),
    OneVersusRest(
        name="roc_auc_ovr_weighted",
        meaning="mean over the rows of the AUC of their class against the rest",
        is_weighted=True,
    ),
)
