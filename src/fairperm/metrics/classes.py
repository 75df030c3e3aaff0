"""Metrics of labels of any number of classes: a binary metric of one class against the rest.

``recall[cat]`` is the binary metric of one class, ``recall_macro`` its mean over the classes, and
in an audit ``recall_per_class`` is one metric for each class.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Booleans
from fairperm._utils.sorting import order_by
from fairperm.errors import InputError, Shown, argument, did_you_mean, listed, shown
from fairperm.metrics.definition import NEW, AnyMetric, Kind, Metric, name_change

if TYPE_CHECKING:
    from fairperm.metrics.definition import Function, GroupedColumns

    Columns = Mapping[str, NDArray[Any]]

_AMONG_CLASS = {  # what the rows that a binary metric rests on are called, by their binary names
    "positives": "rows of class {}",
    "negatives": "rows of classes other than {}",
    "predicted positives": "rows predicted as class {}",
    "predicted negatives": "rows predicted as classes other than {}",
    "rows that are positive or predicted positive": "rows of class {} or predicted as such",
}

CLASSES = Metric(
    name="classes",
    meaning="classes of the rows",
    contributions={"rows": lambda y_true: np.ones(len(y_true))},
    value=lambda rows: rows / rows,
    kind=Kind.CLASSES,
)
"""What reads the labels of the rows alone."""


def label_rate(
    name: str, meaning: str, counts: Function, denominator: Function = lambda: 1.0, **options: Any
) -> Metric:
    """Define a rate by what of the labels it counts, and among which rows."""
    return Metric(
        name=name,
        meaning=meaning,
        contributions={"numerator": counts, "denominator": denominator},
        value=lambda numerator, denominator: numerator / denominator,
        kind=Kind.LABELS,
        **options,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMetric(Metric):
    """A binary metric of one class against the rest, such as ``recall[cat]``."""

    single: Metric  # the binary metric
    label: Hashable  # the class, or its name as text

    @classmethod
    def of(cls, single: Metric, word: str, label: Hashable) -> ClassMetric:
        """Define the metric of a class, which users call by ``word``."""
        kept = {one.name: getattr(single, one.name) for one in fields(Metric)}
        own = {
            "name": name_of_class(word, label),
            "meaning": f"{single.meaning}, where only class {shown(label)} is positive",
            "kind": Kind.CLASSES,
            "aliases": (),
            "complement": single.complement and name_of_class(single.complement, label),
            "among": class_rows(single.among, label),
        }
        return cls(**{**kept, **own}, single=single, label=label)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that classes are read from, whichever of them it counts."""
        return ("y_true", "y_pred")

    @property
    def identity(self) -> object:
        return self.single.identity, self.label

    @property
    def listed_name(self) -> str:
        return self.single.name

    def matrix(self, columns: Columns) -> Array:
        """Return what each row contributes: its labels are those of the class, or others."""
        is_of = {name: are_of_class(columns[name], self.label) for name in self.columns}
        return Metric.matrix(self.single, is_of)

    def exchanged_label(self, columns: Columns) -> NDArray[Any]:
        """Return whether each row is of the class: rows of all other classes are exchanged."""
        return are_of_class(columns["y_true"], self.label)

    def bases(self) -> dict[str, Array]:
        return {
            class_rows(name, self.label): coefficients
            for name, coefficients in self.single.bases().items()
        }

    def for_arguments(self, inputs: Any) -> ClassMetric:
        """Raise InputError for a positive label: the class is that."""
        refuse_arguments(self.name, inputs, "pos_label")
        return self

    def for_table(self, table: GroupedColumns, groups: Sequence[Hashable]) -> ClassMetric:
        """Return the metric for the class of a table that has this name."""
        del groups  # a group without the class has no value, and is named by the error for that
        return replace(self, label=find_class(self.name, self.label, labels_of(table.columns)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroMetric(AnyMetric):
    """The mean of a binary metric over the classes, which are known only when the data are."""

    name: str
    meaning: str
    single: Metric  # the binary metric
    word: str  # what users call it
    # none; in a change from an old model −1, and 1 in the sum of both models
    old: int | None = None
    aliases: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("y_true", "y_pred")

    kind: ClassVar[Kind] = Kind.CLASSES
    parts: ClassVar[tuple[Metric, ...]] = ()  # none before the classes are known
    complement: ClassVar[None] = None

    @classmethod
    def of(cls, single: Metric, word: str, meaning: str) -> MacroMetric:
        """Define the mean over the classes."""
        return cls(name=f"{word}_macro", meaning=meaning, single=single, word=word)

    @property
    def given(self) -> str | None:
        return "label" if self.single.given == "label" else None

    def for_arguments(self, inputs: Any) -> MacroMetric:
        """Raise InputError for a positive label: every class is that in turn."""
        refuse_arguments(self.name, inputs, "pos_label")
        return self

    def for_table(self, table: GroupedColumns, groups: Sequence[Hashable]) -> Metric:
        """Return the mean over the classes for which all compared rows together have a value."""
        columns = table.columns_of(groups)
        every = [ClassMetric.of(self.single, self.word, label) for label in labels_of(columns)]
        models = [columns]
        if f"y_pred{NEW}" in columns:
            models.append({**columns, "y_pred": columns[f"y_pred{NEW}"]})
        known = tuple(one for one in every if any(_has_value(one, model) for model in models))
        if len(known) < 2:
            got = Shown(listed(one.label for one in known))
            hint = f"{self.name} is a mean over classes, each against the rest."
            raise InputError("y_true", "made of two classes or more", got, hint)
        bound = _Mean.of(self, known)
        return bound if self.old is None else bound.change(old=self.old)

    def change(self, *, old: int = -1) -> MacroMetric:
        columns = (*self.columns, f"y_pred{NEW}")
        return replace(self, columns=columns, old=old, **name_change(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mean(Metric):
    """The mean of the metrics of some classes."""

    of_classes: tuple[ClassMetric, ...]

    @classmethod
    def of(cls, macro: MacroMetric, of_classes: tuple[ClassMetric, ...]) -> _Mean:
        single, n = macro.single, len(macro.single.contributions)
        contributions = {
            f"{name} of class {shown(one.label)}": function
            for one in of_classes
            for name, function in one.contributions.items()
        }

        def value(*totals: Any) -> Any:
            starts = range(0, len(totals), n)
            return sum(single.value(*totals[one : one + n]) for one in starts) / len(starts)

        return cls(
            name=f"{macro.word}_macro",
            meaning=macro.meaning,
            contributions=contributions,
            value=value,
            kind=Kind.CLASSES,
            given=macro.given,
            span=single.span,
            own=single.own,
            of_classes=of_classes,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return ("y_true", "y_pred")

    def matrix(self, columns: Columns) -> Array:
        return np.hstack([one.matrix(columns) for one in self.of_classes])

    def bases(self) -> dict[str, Array]:
        """Return by which coefficients contributions add up to numbers of rows of each class."""
        # A row of one class that is predicted as another may count in the metrics of both: then the
        # value rests on all rows
        if self.of_classes[0].given not in {"label", "prediction"}:
            return {"rows": np.zeros(len(self.contributions))}
        found, start = {}, 0
        for one in self.of_classes:
            stop = start + len(one.contributions)
            for name, coefficients in one.bases().items():
                found[name] = np.zeros(len(self.contributions))
                found[name][start:stop] = coefficients
            start = stop
        return found

    def find_lacking(self, contributions: Array) -> str:
        """Return the class that has no value among these rows; "" if all have."""
        blocks = np.split(contributions.sum(axis=0), len(self.of_classes))
        with np.errstate(divide="ignore", invalid="ignore"):
            lacking = [
                f"no {one.among}"
                for one, totals in zip(self.of_classes, blocks, strict=True)
                if np.isnan(one.estimate(totals))
            ]
        return next(iter(lacking), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PerClass(AnyMetric):
    """A metric of each class: an audit makes it a metric for every class of the data."""

    name: str
    kind: Kind
    make: Callable[[Hashable], AnyMetric]

    is_per_class: ClassVar[bool] = True
    meaning: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[str, ...]] = ("y_true", "y_pred")
    parts: ClassVar[tuple[Metric, ...]] = ()
    given: ClassVar[None] = None
    complement: ClassVar[None] = None

    def of_class(self, label: Hashable) -> AnyMetric:
        return self.make(label)

    def for_arguments(self, inputs: Any) -> AnyMetric:
        del inputs
        rule = f"one metric outside of {argument('audit()')}"
        raise InputError(
            "metric", rule, self.name, f"Name a class: {shown(self.make('cat').name)}."
        )


def refuse_arguments(metric: str, inputs: Any, *names: str) -> None:
    """Raise InputError for arguments that a metric of classes has no use for."""
    for name in names:
        given = getattr(inputs, name)
        if given is not None:
            hint = "It compares each class that it is of with the rest."
            raise InputError(name, f"left out for {metric}", given, hint)


def class_rows(binary: str, label: Hashable) -> str:
    """Return what rows are called where one class is positive, by what binary metrics call them."""
    return _AMONG_CLASS.get(binary, binary).format(shown(label))


def name_of_class(word: str, label: Hashable) -> str:
    """Return the name of the metric of a class."""
    return f"{word}[{label}]"


def are_of_class(column: NDArray[Any], label: Hashable) -> Booleans:
    """Return which rows have the label, or else the label of this name."""
    # they are compared one by one: NumPy would take a tuple for an array
    values = column.tolist()
    is_of = {one: one == label for one in set(values)}
    if not any(is_of.values()):
        is_of = {one: is_called(one, label) for one in is_of}
    return np.fromiter(map(is_of.__getitem__, values), bool, len(values))


def is_called(label: Hashable, name: Hashable) -> bool:
    """Whether a text names the label: ``"1"`` names 1 and 1.0."""
    if isinstance(label, float) and label.is_integer():
        return name in {str(label), str(int(label))}
    return name == str(label)


def find_class(metric: str, name: Hashable, labels: Sequence[Hashable]) -> Hashable:
    """Return the label that a metric is of. Raise InputError if there is none of this name."""
    for is_meant in (lambda one: one == name, partial(is_called, name=name)):
        found = [one for one in labels if is_meant(one)]
        if len(found) > 1:
            rule = "made of classes with different names"
            raise InputError("y_true", rule, Shown(listed(found)))
        if found:
            return found[0]
    word = metric.partition("[")[0]
    hint = did_you_mean(metric, [name_of_class(word, one) for one in labels])
    raise InputError("metric", f"of a class that occurs ({listed(labels)})", metric, hint)


def labels_of(columns: Columns) -> list[Hashable]:
    """Return the labels that occur, as label or as prediction."""
    names = [name for name in ("y_true", "y_pred", f"y_pred{NEW}") if name in columns]
    every = (columns[name][order_by([columns[name]])].tolist() for name in names)
    return list(dict.fromkeys(label for labels in every for label in labels))


def _has_value(metric: ClassMetric, columns: Columns) -> bool:
    with np.errstate(divide="ignore", invalid="ignore"):
        return bool(np.isfinite(metric.estimate(metric.matrix(columns).sum(axis=0))))
