"""What an audit asks: which attributes, which metrics, of which rows, between which groups."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm.data.lazy.backends import is_lazy
from fairperm.data.reading import read_table
from fairperm.data.sources import Source, are_names, columns_of_frame
from fairperm.errors import InputError, InputTypeError, did_you_mean, listed, shown
from fairperm.metrics.callables import CallableMetric
from fairperm.metrics.definition import JointMetric, Metric
from fairperm.metrics.kinds import Kind
from fairperm.metrics.registry import get_metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairperm.data.arguments import Inputs
    from fairperm.data.table import Table
    from fairperm.metrics.definition import AnyMetric

COMPARISONS = ("pairs", "reference", "rest")
MOST_COMPARISONS = 10_000  # in one metric of one attribute: more are a mistake, and take hours
_READ_TOGETHER = {"binary", "score", "probability", "labels"}  # kinds with labels in common


@dataclass(frozen=True, slots=True)
class Attribute:
    """A protected attribute, and the argument ``sensitive_features`` that reads it."""

    name: str
    given: object


@dataclass(frozen=True, slots=True)
class Question:
    """Whether a metric is the same in the groups of an attribute.

    ``table`` has the columns that the metric needs; ``reading`` those of all metrics that were
    read with it.
    """

    attribute: str
    label: str
    metric: AnyMetric
    table: Table
    reading: Table


def attributes(data: object, given: object, *, intersections: bool) -> list[Attribute]:
    """Return every attribute; with ``intersections``, their combinations as one more."""
    if not is_lazy(data):
        Source(data)  # says if it is none
    found = _separate(data, given)
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        rule = "made of columns with different names"
        by_name = data is not None and isinstance(given, (list, tuple))
        hint = "A list of strings means columns of data; pass values as an array." * by_name
        raise InputError("sensitive_features", rule, names, hint)
    if not intersections:
        return found
    if len(found) == 1:
        hint = "Pass a frame, or a list of column names with data."
        raise InputError("sensitive_features", "several columns for intersections", names[0], hint)
    together = " × ".join(names)
    if together in names:
        rule = f"without a column called {shown(together)}, as the intersections are"
        raise InputError("sensitive_features", rule, names)
    columns: object = {one.name: one.given for one in found}
    if data is not None and all(isinstance(one.given, str) for one in found):
        columns = [one.given for one in found]
    return [*found, Attribute(together, columns)]


def _separate(data: object, given: object) -> list[Attribute]:
    if given is None:
        raise InputTypeError("sensitive_features", "given", None)
    if data is not None and isinstance(given, str):
        return [Attribute(given, given)]
    if data is not None and are_names(given):
        return [Attribute(name, name) for name in given]
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[1] > 0:
        return [Attribute(f"column {i}", column) for i, column in enumerate(given.T)]
    if isinstance(given, Mapping) or nw.dependencies.is_into_dataframe(given):
        columns = columns_of_frame("sensitive_features", given)
        if not columns:
            raise InputError("sensitive_features must have at least one column; got none.")
        return [Attribute(str(name), column) for name, column in columns.items()]
    name = getattr(given, "name", None)
    return [Attribute(name if isinstance(name, str) else "sensitive_features", given)]


def named_metrics(given: object) -> dict[str, AnyMetric]:
    """Return the metrics by what they are called in the audit: as asked for, or as in a mapping."""
    asked: list[tuple[str | None, object]]
    if isinstance(given, Mapping):
        asked = [(_label(name), metric) for name, metric in given.items()]
    else:
        asked = [(None, metric) for metric in _one_or_several(given)]
    if not asked:
        raise InputError("metrics", "at least one metric", given, "Try 'selection_rate'.")
    named = [(name, _metric(one)) for name, one in asked]
    if isinstance(given, (set, frozenset)):  # which has another order every time
        named.sort(key=lambda one: one[1].name)
    found: dict[str, AnyMetric] = {}
    for name, metric in named:
        label = metric.name if name is None else name
        if label in found:
            hint = "Use a mapping to give functions of the same name names of their own."
            raise InputError("metrics", "different metrics", label, hint)
        found[label] = metric
    return found


def _one_or_several(given: object) -> list[object]:
    if isinstance(given, (str, bytes)) or callable(given) or not isinstance(given, Iterable):
        return [given]
    try:
        return list(given)
    except TypeError:  # an array of no dimension
        return [given]


def _metric(given: object) -> AnyMetric:
    """Return the metric, or say of which argument of an audit it is no part."""
    with named_in_audit():
        return get_metric(given)


@contextmanager
def named_in_audit() -> Iterator[None]:
    """Name in every message the argument of an audit, which is called otherwise elsewhere."""
    try:
        yield
    except (InputError, InputTypeError) as error:
        if error.argument != "metric":
            raise
        raise type(error)("metrics", error.rule, error.got, error.hint) from error


def _label(name: object) -> str:
    if not isinstance(name, str):
        raise InputTypeError("metrics", "a mapping of names to metrics", name)
    return name


def questions(
    inputs: Inputs, asked: Sequence[Attribute], metrics: Mapping[str, AnyMetric]
) -> list[Question]:
    """Read and sort the columns of all metrics, each kind of them once for every attribute."""
    # rows that are elsewhere are counted anew for each reading; others are read once for all
    source = None if is_lazy(inputs.data) else Source(inputs.data)
    found = []
    for attribute in asked:
        mine = replace(inputs, sensitive_features=attribute.given)
        for together, labels in _readings(mine, metrics):
            reading = read_table(_inputs_for(mine, together), together, source).by_score()
            for label in labels:
                metric = metrics[label]
                if isinstance(metric, CallableMetric):
                    metric = _with_columns(metric, mine)
                table = reading.only({"y_true", *metric.columns})
                found.append(Question(attribute.name, label, metric, table, reading))
    order = {label: place for place, label in enumerate(metrics)}
    places = {one.name: place for place, one in enumerate(asked)}
    return sorted(found, key=lambda one: (places[one.attribute], order[one.label]))


def _readings(
    inputs: Inputs, metrics: Mapping[str, AnyMetric]
) -> Iterator[tuple[AnyMetric, list[str]]]:
    """Yield metrics whose columns are read in the same way as one, with what they are called."""
    by_kind: dict[object, list[str]] = {}
    elsewhere = inputs.sums_suffice or inputs.sample_rows is not None
    elsewhere = elsewhere and is_lazy(inputs.data)
    for label, metric in metrics.items():
        kind: object = "several" if metric.kind in _READ_TOGETHER else metric.kind
        if elsewhere and _of_numbers(metric):
            # so that what can be counted is, though others need sums or a sample
            kind = (kind, label) if inputs.sums_suffice else (kind, "")
        if isinstance(metric, CallableMetric):
            kind = _with_columns(metric, inputs).columns
        by_kind.setdefault(kind, []).append(label)
    for kind, labels in by_kind.items():
        first, *others = (metrics[label] for label in labels)
        if isinstance(first, CallableMetric):
            yield _with_columns(first, inputs), labels
        elif not others or kind == "classes":
            yield first, labels
        else:
            parts = tuple(part for metric in (first, *others) for part in metric.parts)
            only_labels = all(metric.kind == "labels" for metric in (first, *others))
            together = (
                "labels" if only_labels else str(kind[0] if isinstance(kind, tuple) else kind)
            )
            yield JointMetric(name=first.name, meaning="", parts=parts, kind=Kind(together)), labels


def _of_numbers(metric: AnyMetric) -> bool:
    """Tell whether rows contribute numbers to the metric, of which there may be very many."""
    return isinstance(metric, Metric) and metric.kind in {"score", "probability", "regression"}


def _with_columns(metric: CallableMetric, inputs: Inputs) -> CallableMetric:
    with named_in_audit():
        return metric.for_arguments(_inputs_for(inputs, metric))


def _inputs_for(inputs: Inputs, metric: AnyMetric) -> Inputs:
    """Return the inputs without what the other metrics of an audit need and this one refuses."""
    if inputs.y_pred is None:
        return inputs
    if metric.kind in {"binary", "labels"}:
        return replace(inputs, y_score=None)
    if isinstance(metric, CallableMetric):
        return replace(inputs, threshold=None)
    return inputs


def reference_of(table: Table, attribute: str, given: object, *, alone: bool) -> Hashable:
    """Return the group that the others are compared with: the largest, unless one was named."""
    if isinstance(given, Mapping):
        given = given.get(attribute)
    elif given is not None and not alone:
        rule = "a mapping of attributes to groups, as there are several attributes"
        raise InputTypeError("reference", rule, given)
    if given is None:
        sizes = table.sizes()
        return max(table.groups, key=lambda group: sizes[group])
    try:
        hash(given)  # arrays and frames are equal to nothing
        return table.groups[table.groups.index(given)]
    except (ValueError, TypeError):
        rule = f"a group of {attribute} ({listed(table.groups)})"
        hint = did_you_mean(given, table.groups)
        raise InputError("reference", rule, given, hint) from None


def comparisons(
    question: Question, compare: str, reference: Hashable | None
) -> Iterable[tuple[Hashable, Hashable]]:
    """Return the pairs of groups to compare."""
    table, n = question.table, len(question.table.groups)
    if n == 1:
        raise InputError(
            f"sensitive_features must have two groups or more in {shown(question.attribute)}; got "
            f"one, {shown(table.groups[0])}. Pass the rows of all groups."
        )
    if (n * (n - 1) // 2 if compare == "pairs" else n) > MOST_COMPARISONS:
        raise InputError(
            f"sensitive_features must make at most {MOST_COMPARISONS:,} comparisons; got {n:,} "
            f"groups in {shown(question.attribute)}. Cut numbers into bands, or use compare='rest'."
        )
    if compare == "reference":
        return ((one, reference) for one in table.groups if one != reference)
    if compare == "rest" and n > 2:
        return ((one, _rest(table.groups)) for one in table.groups)
    return itertools.combinations(table.groups, 2)


def compared(question: Question, pair: tuple[Hashable, Hashable]) -> Table:
    """Return the table that has these groups, of which the second may be all others."""
    table = question.table
    return table if pair[1] in table.groups else table.against_rest(*pair)


def _rest(groups: Sequence[Hashable]) -> str:
    """Return what to call all other groups: a name that no group has."""
    name = "all others"
    while name in groups:
        name += "*"
    return name


def check_reference(reference: object, compare: str, names: Sequence[str]) -> None:
    """Refuse a reference that nothing is compared with."""
    if reference is None:
        return
    if compare != "reference":
        hint = "Use compare='reference'."
        raise InputError("reference", f"left out for compare={compare!r}", reference, hint)
    if isinstance(reference, Mapping):
        for name in reference:
            if name not in names:
                rule = f"a mapping with attributes ({listed(names)}) as keys"
                raise InputError("reference", rule, name, did_you_mean(name, names))


def described(value: object) -> Any:
    """Return an argument as a result can keep it: short, and without the data."""
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        value = value.item()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Mapping):
        return {str(key): described(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and len(value) <= 20:
        return [described(one) for one in value]
    if isinstance(value, Sized):
        return f"{len(value):,} values ({type(value).__name__})"
    return shown(value)
