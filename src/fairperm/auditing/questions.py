"""The questions of an audit: which attributes, metrics, rows and pairs of groups to test."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sized
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils import checks
from fairperm._utils.formatting import UNNAMED_ATTRIBUTE
from fairperm.data.arguments import (
    CLASS_METRICS,
    CLASS_SCORE_METRICS,
    DECISION_METRICS,
    DEFAULT_METRICS,
    NUMBER_METRICS,
)
from fairperm.data.columns import Source, are_names, check_one_score, columns_of_frame
from fairperm.data.lazy.backends import (
    fetch,
    is_lazy,
    lazy_frame,
    quote_column,
    read_schema,
    to_floats,
)
from fairperm.data.reading import (
    check_not_lazy,
    is_split,
    read_table,
    split_and_note,
)
from fairperm.errors import (
    InputError,
    InputTypeError,
    Note,
    argument,
    rename_arguments,
    shown,
    unknown_name,
)
from fairperm.hypothesis_tests.pairs import find_reference
from fairperm.hypothesis_tests.rankings.lists import MAX_ITEMS, ReadLists
from fairperm.hypothesis_tests.rankings.rankings import average_queries, keep_valued
from fairperm.metrics.changes import columns_of_model
from fairperm.metrics.classes import CLASSES, labels_of, name_of_class
from fairperm.metrics.definition import NEW, JointMetric, Kind
from fairperm.metrics.distances import get_distance
from fairperm.metrics.rankings import find_ranking
from fairperm.metrics.registry import get_metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import TypeGuard

    from fairperm._utils.formatting import Units
    from fairperm.data.arguments import Inputs
    from fairperm.data.sample import Sample
    from fairperm.hypothesis_tests.rankings.lists import RankedItems
    from fairperm.metrics.definition import AnyMetric
    from fairperm.metrics.distances import Distance
    from fairperm.metrics.rankings import RankingMetric

GIVEN_LABEL = "_given_label"
_TIMES = " × "
_KINDS_READ_TOGETHER = {Kind.BINARY, Kind.SCORE, Kind.PROBABILITY, Kind.LABELS}
_KINDS_OF_NUMBERS = {Kind.SCORE, Kind.PROBABILITY, Kind.REGRESSION}
# what an audit calls the arguments of a test of rankings
_OF_RANKINGS = {
    "relevance": "y_true",
    "score": "y_score",
    "rank": "minus the position as y_score",
    "metric": "rankings",
}


@dataclass(frozen=True, slots=True)
class Attribute:
    """A protected attribute, and the value of ``sensitive_features`` that reads it.

    ``combines`` names the columns of ``data`` whose combinations a tuple asks for.
    """

    name: str
    given: object
    combines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """Whether a metric is the same in the groups of an attribute.

    ``label`` is the metric's name in the audit. ``table`` has the columns that the metric needs,
    ``reading`` those of all metrics that were read with it, ``both`` those of two models. Rows of
    the table are rows of the data; of rankings, ``units`` are queries, or ``items`` in their lists.
    """

    attribute: str
    label: str
    metric: AnyMetric
    table: Sample
    reading: Sample
    both: Sample | None = None
    units: Units = "rows"
    items: RankedItems | None = None

    def table_of(self, pair: tuple[Hashable, Hashable]) -> Sample:
        """Return a table with these two groups, of which the second may be all other groups."""
        return self.table.against_rest(*pair)

    def name_arguments(self) -> AbstractContextManager[None]:
        """Name the arguments of rankings in errors as those of an audit."""
        return nullcontext() if self.units == "rows" else rename_arguments(_OF_RANKINGS)

    def of_both_models(self) -> Question:
        """Return the question with the columns of both models."""
        if self.both is None:
            raise ValueError("the question is about one model")
        return replace(self, table=self.both)

    def of_new_model(self) -> Question:
        """Return the question about the new model."""
        both = self.of_both_models().table
        columns = columns_of_model(both.columns, new=True)
        return replace(self, table=replace(both, columns=columns).sort_by_score())


@dataclass(frozen=True, slots=True)
class _ReadingKey:
    """Metrics with equal keys share one reading of their columns.

    ``columns`` are those of a function. ``apart`` separates metrics of numbers in a lazy frame
    from those whose rows can be counted: they need sums.
    """

    kind: Kind
    columns: tuple[str, ...] = ()
    apart: str = ""


def list_attributes(data: object, given: object, *, intersections: bool) -> list[Attribute]:
    """Return every attribute; with ``intersections``, their combinations as one more."""
    if not is_lazy(data):
        Source.of(data)  # raises if it is no frame
    found = _split_attributes(data, given)
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        hint = ""
        if data is not None and isinstance(given, (list, tuple)):
            hint = "A list of strings names columns of data; pass values as an array."
        raise InputError("sensitive_features", "columns with different names", names, hint)
    if not intersections:
        return found
    if any(one.combines for one in found):
        rule = f"names of single columns for {argument('intersections')}"
        raise InputError("sensitive_features", rule, names, "List the combinations, or use it.")
    if len(found) == 1:
        rule = f"several columns for {argument('intersections')}"
        hint = f"Pass a frame, or a list of column names with {argument('data')}."
        raise InputError("sensitive_features", rule, names[0], hint)
    intersection = _TIMES.join(names)
    if intersection in names:
        rule = f"without a column named {shown(intersection)}, the name of the intersections"
        raise InputError("sensitive_features", rule, names)
    columns: object = {one.name: one.given for one in found}
    if data is not None and all(isinstance(one.given, str) for one in found):
        columns = [one.given for one in found]
    return [*found, Attribute(intersection, columns)]


def _split_attributes(data: object, given: object) -> list[Attribute]:
    if given is None:
        raise InputTypeError("sensitive_features", "given", None)
    if data is not None and isinstance(given, str):
        return [Attribute(given, given)]
    if data is not None and _are_columns(given):
        return [_name_attribute(one) for one in given]
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[1] > 0:
        return [Attribute(f"column {i}", column) for i, column in enumerate(given.T)]
    if isinstance(given, Mapping) or nw.dependencies.is_into_dataframe(given):
        columns = columns_of_frame("sensitive_features", given)
        if not columns:
            features = argument("sensitive_features")
            raise InputError(f"{features} must have at least one column; got none.")
        return [Attribute(str(name), column) for name, column in columns.items()]
    name = getattr(given, "name", None)
    return [Attribute(name if isinstance(name, str) else UNNAMED_ATTRIBUTE, given)]


def _are_columns(given: object) -> TypeGuard[Sequence[str | tuple[str, ...]]]:
    """Whether attributes are given by the names of columns, in tuples those of combinations."""
    return (
        isinstance(given, (list, tuple))
        and len(given) > 0
        and all(
            isinstance(one, str) or (isinstance(one, tuple) and are_names(one)) for one in given
        )
    )


def _name_attribute(given: str | tuple[str, ...]) -> Attribute:
    if isinstance(given, str):
        return Attribute(given, given)
    return Attribute(_TIMES.join(given), given, combines=given)


_MAX_CLASSES = 20  # of labels that are whole numbers; more are amounts


def choose_default_metrics(inputs: Inputs, attribute: Attribute) -> tuple[str, ...]:
    """Return the metrics of an audit that names none."""
    if inputs.y_true is None:
        has_numbers = inputs.pos_label is None and _count_numbers(inputs, "y_pred") > 2
        return DECISION_METRICS if has_numbers else DEFAULT_METRICS[:1]
    if inputs.y_pred is None:
        with suppress(InputTypeError):
            if inputs.split_scores(""):
                return CLASS_SCORE_METRICS
        return DEFAULT_METRICS
    n_labels = _count_numbers(inputs, "y_true")
    if n_labels > _MAX_CLASSES or (n_labels > 2 and _count_numbers(inputs, "y_pred") == np.inf):
        return NUMBER_METRICS
    if inputs.pos_label is None and len(_read_classes(inputs, attribute)) > 2:
        return CLASS_METRICS
    return DEFAULT_METRICS


def note_ratings(inputs: Inputs, chosen: Sequence[str]) -> tuple[Note, ...]:
    """Return a note if labels that may be ratings were taken as classes, for want of a metric."""
    if chosen != CLASS_METRICS or not (n := _count_numbers(inputs, "y_true")):
        return ()
    other = argument("metrics", "mean_absolute_error")
    return (
        Note(f"The labels are {n:g} whole numbers, taken as classes. For ratings pass {other}."),
    )


def _count_numbers(inputs: Inputs, name: str) -> float:
    """Return how many numbers a column has; infinity with fractions, 0 if it has other values.

    Of a lazy frame it counts no more than could be classes.
    """
    given = getattr(inputs, name)
    if given is None:
        return 0
    frame = lazy_frame(inputs.data)
    try:
        if frame is None:
            values = np.asarray(Source.of(inputs.data).column(name, given).values, np.float64)
        elif given in (schema := read_schema(frame)) and schema[given].is_numeric():
            column = frame.select(quote_column(given, frame).alias(given)).unique()
            values = to_floats(fetch(column.head(_MAX_CLASSES + 2))[given])
        else:
            return 0
    except (TypeError, ValueError):  # the reader of the metric says what is wrong
        return 0
    found = np.unique(values[np.isfinite(values)])
    return np.inf if (found % 1).any() else len(found)


def name_classes(
    metrics: Mapping[str, AnyMetric], inputs: Inputs, attribute: Attribute
) -> dict[str, AnyMetric]:
    """Return the metrics, with one for each class in place of those "per class"."""
    if not any(metric.is_per_class for metric in metrics.values()):
        return dict(metrics)
    if inputs.y_true is None:
        raise InputTypeError("y_true", "given for metrics of classes", None)
    classes, found = _read_classes(inputs, attribute), []
    for name, metric in metrics.items():
        if metric.is_per_class:
            every = [(one, metric.of_class(one)) for one in classes]
            own = name == metric.name
            found += [(of.name if own else name_of_class(name, one), of) for one, of in every]
        else:
            found.append((name, metric))
    return _name_once(found)


def _read_classes(inputs: Inputs, attribute: Attribute) -> list[Hashable]:
    """Return the classes that occur as labels, in their order."""
    own = replace(
        inputs,
        y_pred=None,
        y_score=None,
        sensitive_features=attribute.given,
        threshold=None,
        pos_label=None,
        score_bins=None,
    )
    return labels_of(read_table(own, CLASSES).columns)


def name_metrics(given: object) -> dict[str, AnyMetric]:
    """Return the metrics by their names in the audit: the keys of a mapping, or their own."""
    if isinstance(given, Mapping):
        for name in given:
            if not isinstance(name, str):
                raise InputTypeError("metrics", "a mapping of names to metrics", name)
        named = [(name, get_metric(metric)) for name, metric in given.items()]
    else:
        metrics = [get_metric(metric) for metric in _as_list(given)]
        if isinstance(given, (set, frozenset)):  # which have another order every time
            metrics.sort(key=lambda metric: metric.name)
        named = [(metric.name, metric) for metric in metrics]
    if not named:
        raise InputError("metrics", "at least one metric", given, "Try 'selection_rate'.")
    return _name_once(named)


def _name_once(named: Sequence[tuple[str, AnyMetric]]) -> dict[str, AnyMetric]:
    """Return the metrics by their names. Raise InputError if two have the same."""
    found: dict[str, AnyMetric] = {}
    for name, metric in named:
        if name in found:
            hint = "Use a mapping to give metrics of one name different names."
            raise InputError("metrics", "different metrics", name, hint)
        found[name] = metric
    return found


def name_distances(given: object) -> dict[str, Distance]:
    """Return the distances by their names in the audit, which say if they are given the label."""
    found: dict[str, Distance] = {}
    for one in [] if given is None else _as_list(given):
        if not isinstance(one, str):
            raise InputTypeError("distances", "names of distances", one)
        with rename_arguments({"distance": "distances"}):
            word = one.strip().lower().replace(" ", "_")
            distance = get_distance(word.removesuffix(GIVEN_LABEL))
        is_given = word.endswith(GIVEN_LABEL)
        name = f"{distance.name}{GIVEN_LABEL if is_given else ''}"
        if name in found:
            raise InputError("distances", "different distances", one)
        found[name] = distance.given_label() if is_given else distance
    return found


def name_rankings(given: object, k: object) -> dict[str, RankingMetric]:
    """Return the metrics of rankings by their names in the audit, such as "ndcg@10".

    All compare queries, or all compare items of one list: a group is constant within lists, or not.
    """
    top = checks.integer("k", k, 1, MAX_ITEMS)
    found: dict[str, RankingMetric] = {}
    for one in [] if given is None else _as_list(given):
        if not isinstance(one, str):
            raise InputTypeError("rankings", "names of metrics of rankings", one)
        with rename_arguments({"metric": "rankings"}):
            metric = find_ranking(one, top)
        if metric.of_all_groups:
            hint = (
                f"It compares all groups at once: use {argument('ranking_test()')} with "
                f"{argument('metric', metric.name)}."
            )
            raise InputError("rankings", "metrics with a gap between two groups", one, hint)
        if metric.full_name in found:
            raise InputError("rankings", "different metrics", one)
        found[metric.full_name] = metric
    if len({one.of_items for one in found.values()}) > 1:
        rule = "metrics of queries or of items, not both"
        hint = (
            "All items of a query are of one group for the former, and of several for the latter."
        )
        raise InputError("rankings", rule, list(found), hint)
    return found


def _as_list(given: object) -> list[object]:
    if isinstance(given, (str, bytes)) or callable(given) or not isinstance(given, Iterable):
        return [given]
    try:
        return list(given)
    except TypeError:  # an array without dimensions
        return [given]


def read_questions(
    inputs: Inputs, attributes: Sequence[Attribute], metrics: Mapping[str, AnyMetric]
) -> list[Question]:
    """Read the columns of all metrics, once for every attribute and kind of metric."""
    # lazy rows are counted again for each reading; those in memory are converted once for all
    _check_scores(inputs, metrics)
    source = None
    if not is_lazy(inputs.data):
        check_not_lazy(inputs)
        source = Source.of(inputs.data)
    found = {}
    for attribute in attributes:
        own = replace(inputs, sensitive_features=attribute.given)
        for joint, labels in _group_by_reading(own, metrics):
            reading = read_table(_select_inputs(own, joint), joint, source).sort_by_score()
            for label in labels:
                metric = _choose_columns(metrics[label], own)
                table = reading.keep_columns({"y_true", *metric.columns})
                both = None
                if inputs.new_model is not None:
                    both = reading.keep_columns({"y_true", *metric.change().columns})
                question = Question(attribute.name, label, metric, table, reading, both)
                found[attribute.name, label] = question
    return [found[attribute.name, label] for attribute in attributes for label in metrics]


def list_distance_columns(inputs: Inputs, distances: Mapping[str, Distance]) -> list[str]:
    """Return the columns that distances are of: scores, or predictions without them; and labels."""
    if not distances:
        return []
    is_given = any(one.given for one in distances.values())
    return ["y_pred" if inputs.y_score is None else "y_score", *["y_true"] * is_given]


def read_distances(
    inputs: Inputs, attributes: Sequence[Attribute], distances: Mapping[str, Distance]
) -> list[Question]:
    """Read the scores, or predictions without scores, for every attribute and distance."""
    source, *_ = list_distance_columns(inputs, distances) or [""]
    if distances and getattr(inputs, source) is None:
        raise InputTypeError(
            f"{argument('distances')} needs {argument('y_score')} or {argument('y_pred')}: the "
            "column whose distributions are compared."
        )
    if distances:
        check_one_score("y_score", inputs.y_score, in_data=inputs.names_columns)
    questions = []
    for attribute in attributes:
        for label, distance in distances.items():
            if distance.given and inputs.y_true is None:
                raise InputTypeError("y_true", f"given for {label}", None)
            own = replace(
                inputs,
                y_true=inputs.y_true if distance.given else None,
                y_pred=None,
                y_score=None,
                values=getattr(inputs, source),
                sensitive_features=attribute.given,
                threshold=None,
                pos_label=None,
                score_bins=None,
            )
            with rename_arguments({"values": source, "distance": "distances"}):
                table = read_table(own, distance)
                distance.checked_matrix(table.columns)  # raises before any work
            questions.append(Question(attribute.name, label, distance, table, table))
    return questions


def list_ranking_columns(rankings: Mapping[str, RankingMetric]) -> list[str]:
    """Return the columns that rankings are of: scores, and relevance if it counts."""
    if not rankings:
        return []
    needs_relevance = any(one.reads_relevance for one in rankings.values())
    return ["y_score", *["y_true"] * needs_relevance]


def read_rankings(
    inputs: Inputs,
    attributes: Sequence[Attribute],
    rankings: Mapping[str, RankingMetric],
    query: object,
) -> list[Question]:
    """Read the ranked lists for every attribute and metric: their items, or values of queries."""
    means = {label: average_queries(metric) for label, metric in rankings.items()}
    questions = []
    for attribute in attributes:
        own = replace(
            inputs,
            y_pred=inputs.y_score,
            y_score=None,
            sensitive_features=attribute.given,
            threshold=None,
            pos_label=None,
            split_clusters=False,
            sums_suffice=False,
        )
        for label, metric in rankings.items():
            with rename_arguments(_OF_RANKINGS):
                read = ReadLists.of(own, query, metric)
            if metric.of_items:
                table = replace(read.table, cluster=None)  # whose clusters are queries
                asked = Question(attribute.name, label, metric, table, table)
                questions.append(replace(asked, units="items", items=read.items))
            else:
                queries = split_and_note(read.table) if is_split(inputs) else read.table
                table = keep_valued(queries, metric)
                asked = Question(attribute.name, label, means[label], table, queries)
                questions.append(replace(asked, units="queries"))
    return questions


def _group_by_reading(
    inputs: Inputs, metrics: Mapping[str, AnyMetric]
) -> Iterator[tuple[AnyMetric, list[str]]]:
    """Yield metrics with the same reading as one joint metric, and their names in the audit."""
    labels_by_key: dict[_ReadingKey, list[str]] = {}
    for label, metric in metrics.items():
        labels_by_key.setdefault(_key_of_reading(inputs, label, metric), []).append(label)
    for key, labels in labels_by_key.items():
        alike = [_choose_columns(metrics[label], inputs) for label in labels]
        if inputs.new_model is not None:
            alike = [metric.change() for metric in alike]
        if len(alike) == 1 or key.columns or key.kind in {Kind.CLASSES, Kind.CLASS_SCORES}:
            yield alike[0], labels
        else:
            parts = tuple(part for metric in alike for part in metric.parts)
            only_labels = all(metric.kind == Kind.LABELS for metric in alike)
            kind = Kind.LABELS if only_labels else key.kind
            yield JointMetric(name=alike[0].name, meaning="", parts=parts, kind=kind), labels


def _key_of_reading(inputs: Inputs, label: str, metric: AnyMetric) -> _ReadingKey:
    if metric.is_function:
        return _ReadingKey(metric.kind, columns=_choose_columns(metric, inputs).columns)
    kind = Kind.SEVERAL if metric.kind in _KINDS_READ_TOGETHER else metric.kind
    has_numbers = metric.has_totals and metric.kind in _KINDS_OF_NUMBERS
    if has_numbers and is_lazy(inputs.data) and inputs.sums_suffice:
        return _ReadingKey(kind, apart=label)
    return _ReadingKey(kind)


def _check_scores(inputs: Inputs, metrics: Mapping[str, AnyMetric]) -> None:
    """Raise InputError if some metrics need one column of scores, and others one for each class."""
    if all(metric.kind != Kind.CLASS_SCORES for metric in metrics.values()):
        return
    for label, metric in metrics.items():
        if metric.kind == Kind.CLASS_SCORES or _select_inputs(inputs, metric).y_score is None:
            continue
        if metric.uses_threshold or "y_score" in _choose_columns(metric, inputs).columns:
            rule = "all of one score, or all of a score for each class"
            hint = "Audit one score by itself; metrics of predictions can use " + argument("y_pred")
            raise InputError("metrics", rule, label, f"{hint}.")


def _choose_columns(metric: AnyMetric, inputs: Inputs) -> AnyMetric:
    """Return the metric; a function with whichever of predictions and scores was given."""
    return metric.for_arguments(_select_inputs(inputs, metric))


def _select_inputs(inputs: Inputs, metric: AnyMetric) -> Inputs:
    """Return the inputs without those that only other metrics of the audit accept."""
    unused: dict[str, None] = {}
    for model in ("", NEW):
        if getattr(inputs, f"y_pred{model}", None) is None:
            continue
        if metric.kind.makes_predictions:
            unused[f"y_score{model}"] = None
        elif metric.is_function:
            unused[f"threshold{model}"] = None
        elif metric.kind in {Kind.CLASSES, Kind.CLASS_SCORES}:
            unused["pos_label"] = None
    return replace(inputs, **unused)  # type: ignore[arg-type]


def choose_reference(table: Sample, attribute: str, given: object, *, only: bool) -> Hashable:
    """Return the group given as reference for the attribute, by default the largest group."""
    if isinstance(given, Mapping):
        given = given.get(attribute)
    elif given is not None and not only:
        rule = "a mapping of attributes to groups if there are several attributes"
        raise InputTypeError("reference", rule, given)
    return find_reference(table, table.groups, given, f"a group of {attribute}")


def check_two_groups(question: Question) -> None:
    """Raise InputError for a single group."""
    groups = question.table.groups
    if len(groups) == 1:
        raise InputError(
            f"{argument('sensitive_features')} must have two groups or more in "
            f"{shown(question.attribute)}; got one, {shown(groups[0])}. Pass the rows of all "
            "groups."
        )


def check_reference(reference: object, names: Sequence[str]) -> None:
    """Raise InputError for a reference of no attribute."""
    if isinstance(reference, Mapping):
        for name in reference:
            if name not in names:
                rule = "given for attributes of the audit"
                raise unknown_name("reference", rule, name, names)


def describe_argument(value: object) -> Any:
    """Return an argument as JSON-ready values, with a count in place of data."""
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        value = value.item()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Mapping):
        return {str(key): describe_argument(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and len(value) <= 20:
        return [describe_argument(one) for one in value]
    if isinstance(value, Sized):
        return f"{len(value):,} values ({type(value).__name__})"
    return shown(value)
