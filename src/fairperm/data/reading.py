"""From the data arguments to the table of distinct rows, with their groups, strata and counts.

A permutation of group labels changes only how many rows of each kind fall in each group, so
this small table is all that a test of a rate needs.

Values are checked after counting, when few distinct rows are left: whether labels are binary, which
values are missing and which groups there are then costs nothing per row.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args
from unicodedata import normalize

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.checks import choice
from fairperm._utils.formatting import format_count, format_name
from fairperm._utils.sorting import sort_key
from fairperm.data.arguments import ProxyAssumption
from fairperm.data.columns import (
    Column,
    Index,
    Source,
    are_names,
    check_one_score,
    columns_of_frame,
    models_of,
    parse_threshold,
)
from fairperm.data.indexes import check_input_indexes
from fairperm.data.lazy.backends import BinnableRows, lazy_frame
from fairperm.data.lazy.choice import collect_rows
from fairperm.data.names import check_names, exchange_names
from fairperm.data.proxies import (
    Assumption,
    check_probabilities,
    check_proxies,
    name_proxies,
    read_probabilities,
)
from fairperm.data.sample import MAX_NUMBERS, Sample
from fairperm.errors import (
    InputError,
    InputTypeError,
    Note,
    Shown,
    argument,
    did_you_mean,
    listed,
    shown,
)
from fairperm.metrics.definition import NEW, Kind

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from fairperm._utils.arrays import Array, Booleans, Codes, Integers, Places
    from fairperm.data.arguments import Inputs
    from fairperm.data.columns import IndexedColumn
    from fairperm.metrics.definition import AnyMetric


MISSING_GROUP = "missing"
_PREDICTIONS = ("y_pred", f"y_pred{NEW}")
_ROWS_NAMED = 5
_MAX_COUNTED = 1 << 16  # rows that may be a table of counts
_MAX_KEYS = 1 << 62  # possible combinations that can be numbered
_NORMALIZE = "unicodedata.normalize('NFC', text) makes them one."


def read_table(inputs: Inputs, metric: AnyMetric, source: Source | None = None) -> Sample:
    """Count the distinct rows of the columns that the metric needs, with their groups and strata.

    A ``source`` keeps the columns that it has read, for the next metric.
    """
    given = inputs
    missing = choice("missing", inputs.missing, ("error", "drop", "group"))
    choice("proxy_assumption", inputs.proxy_assumption, get_args(ProxyAssumption))
    if inputs.group_probabilities is not None or inputs.proxy is not None:
        check_proxies(inputs)
    for one, suffix in models_of(inputs):
        _check_columns_given(one, metric, suffix)
    check_input_indexes(inputs)
    if inputs.names is not None:
        check_names(inputs)
    if source is None:
        inputs, source = open_source(inputs, metric)
    measured = source.measured(inputs, metric)
    probabilities: Mapping[Hashable, Column] = {}
    if inputs.group_probabilities is None:
        features = source.features("sensitive_features", inputs.sensitive_features)
    else:
        features, probabilities = [], read_probabilities(inputs, source)
    attributes = {
        "sensitive_features": features,
        "group_probabilities": [*probabilities.values()],
        "proxy": source.features("proxy", inputs.proxy),
        "control_features": source.features("control_features", inputs.control_features),
        "sample_weight": source.weights(inputs.sample_weight),
        "cluster": source.features("cluster", inputs.cluster),
        "matched": source.features("matched", inputs.matched),
        "names": source.features("names", inputs.names),
        "period": source.features("period", getattr(inputs, "period", None)),
    }
    if missing == "group":
        attributes["sensitive_features"] = [_name_missing(one) for one in features]
    named = [*measured.items(), *((name, one) for name in attributes for one in attributes[name])]
    columns = [column for _, column in named]
    rows, counts, alike = source.count_kinds(columns)

    known = np.ones(len(counts), bool)
    for column, index in zip(columns, rows, strict=True):
        known &= ~column.find_missing()[index]
    if (missing != "drop" or inputs.must_keep) and not known.all():
        has_rows = source.count is None
        found = _describe_missing(columns, rows, counts, name_rows=has_rows)
        drop = f"Pass {argument('missing', 'drop')} to drop these rows; the result counts them."
        text = f"{found}. {inputs.must_keep or drop}"
        if missing != "group" and any(
            one.find_missing().any() for one in attributes["sensitive_features"]
        ):
            grouped = argument("missing", "group")
            text += f" {grouped} makes a group of rows without {argument('sensitive_features')}."
        raise InputError(text)
    if not known.any():
        drop = argument("missing", "drop")
        hint = f" {drop} dropped all {counts.sum():,} rows." if counts.size else ""
        raise InputError(f"{columns[0].name} must have at least one row; got none.{hint}")
    n_dropped = 0
    if not known.all():
        n_dropped = int(counts[~known].sum())
        counts = counts[known]
        alike = None if alike is None else alike[known]
        rows = [np.flatnonzero(known) if isinstance(one, slice) else one[known] for one in rows]

    def indexed(name: str) -> list[IndexedColumn]:
        pairs = zip(named, rows, strict=True)
        return [(column, index) for (one, column), index in pairs if one == name]

    columns_of_metric = {name: indexed(name)[0] for name in measured}
    values = _interpret(columns_of_metric, metric.kind, inputs.pos_label)
    groups, group = _name_groups(indexed("sensitive_features"), len(counts))
    strata, stratum = _name_groups(indexed("control_features"), len(counts))
    clusters, cluster = _name_groups(indexed("cluster"), len(counts))
    _, matched = _name_groups(indexed("matched"), len(counts))
    periods, period = _name_groups(indexed("period"), len(counts))
    weights = [_index_numbers(*one) for one in indexed("sample_weight")]
    table = Sample(
        columns=values,
        attribute=_name_attribute(inputs),
        group=group,
        stratum=stratum,
        count=counts,
        groups=groups,
        strata=strata,
        weight=weights[0] if weights else None,
        cluster=None if inputs.cluster is None else cluster,
        clusters=clusters,
        matched=None if inputs.matched is None else matched,
        period=period if attributes["period"] else None,
        periods=periods,
        alike=alike,
        n_dropped=n_dropped,
        bins=source.bins,
        contributions=_choose_contributions(source, values.get("y_true"), known),
        notes=(
            *([Assumption(str(inputs.proxy_assumption)).sentences] if probabilities else []),
            *source.notes,
            *_note_classes(columns_of_metric, metric.kind, inputs.pos_label),
            *_note_names(attributes),
            *_note_perfect(values, counts),
            *_note_counts(named, rows, counts),
        ),
    )
    if probabilities:
        numbers = [_index_numbers(*one) for one in indexed("group_probabilities")]
        called = [column.name for column in probabilities.values()]
        shares = check_probabilities(called, [*probabilities], np.stack(numbers, axis=1))
        proxy = None if inputs.proxy is None else _name_groups(indexed("proxy"), len(counts))[1]
        chosen = str(inputs.proxy_assumption)
        table = table.with_probabilities(tuple(probabilities), shares, chosen, proxy)
    if isinstance(given.data, BinnableRows) and not table.has_fine_bins(metric):
        return read_table(replace(given, data=given.data.rows), metric)
    if is_split(inputs):
        table = split_and_note(table)
    if inputs.names is not None:
        names, name = _name_groups(indexed("names"), len(counts))
        return exchange_names(table, name, names).drop_alike()
    return table if metric.is_ranking or inputs.matched is not None else table.drop_alike()


def _name_attribute(inputs: Inputs) -> str:
    """Return the name of the column of groups, or of several; "" if they have none."""
    given = inputs.sensitive_features
    if inputs.group_probabilities is not None:
        return name_proxies(inputs.group_probabilities, in_data=inputs.names_columns)[0]
    if isinstance(given, Mapping) or nw.dependencies.is_into_dataframe(given):
        return " × ".join(map(str, columns_of_frame("sensitive_features", given)))
    if inputs.names_columns and are_names(given):
        return " × ".join(given)
    name = given if inputs.names_columns else getattr(given, "name", None)
    return name if isinstance(name, str) else ""


def is_split(inputs: Inputs) -> bool:
    """Whether clusters are to be split. Raises InputError if there are none."""
    if not isinstance(inputs.split_clusters, bool):
        raise InputTypeError("split_clusters", "True or False", inputs.split_clusters)
    if inputs.split_clusters and inputs.cluster is None:
        raise InputError(f"{argument('split_clusters')} needs {argument('cluster')}.")
    return inputs.split_clusters


def split_and_note(table: Sample) -> Sample:
    """Return the table with split clusters, and a note on how many were split."""
    split = table.split_clusters()
    if split.cluster is None or split.whole_cluster is None:
        return split
    whole, _ = np.unique(np.stack([split.whole_cluster, split.cluster]), axis=1)
    n_split = int((np.bincount(whole) > 1).sum())
    if not n_split:
        return split
    have = format_count(n_split, "cluster has", "clusters have")
    where = "groups" if len(table.strata) == 1 else "groups or strata"
    where += "" if table.period is None else " or periods"
    note = f"{have} rows of several {where}; the rows of each are a cluster of their own."
    return replace(split, notes=(*split.notes, note))


def _name_missing(column: Column) -> Column:
    """Return a column of groups with a name in place of missing values."""
    name = MISSING_GROUP
    while name in column.values:
        name += "*"
    pairs = zip(column.values, column.find_missing(), strict=True)
    return replace(column, values=[name if lacks else value for value, lacks in pairs])


def open_source(inputs: Inputs, metric: AnyMetric) -> tuple[Inputs, Source]:
    """Return where columns are read, and the inputs: of a lazy frame, with its rows counted."""
    frame = None if inputs.data is None else lazy_frame(inputs.data)
    if frame is not None:
        inputs = collect_rows(inputs, metric, frame)
    else:
        check_not_lazy(inputs)
    return inputs, Source.of(inputs.data)


def check_not_lazy(inputs: Inputs) -> None:
    """Raise InputError if an option for lazy frames is given."""
    if inputs.score_bins is not None:
        name = argument("score_bins")
        raise InputError(f"{name} is for lazy frames: all rows are in memory.")


def _check_columns_given(inputs: Inputs, metric: AnyMetric, suffix: str = "") -> None:
    """Raise an error if a column that the metric needs is absent, or is given in two ways."""
    # the ``suffix`` ends the names of a second model's arguments
    if "y_score" in metric.columns or ("y_pred" in metric.columns and inputs.y_pred is None):
        check_one_score(f"y_score{suffix}", inputs.y_score, in_data=inputs.names_columns)
    if not metric.kind.needs_labels:
        _check_each(inputs, metric, suffix)
    else:
        _check_labels(inputs, metric)
        _check_predictions(inputs, metric, suffix)
        if metric.kind == Kind.SEVERAL and "y_score" in metric.columns and inputs.y_score is None:
            first = next(one.name for one in metric.parts if "y_score" in one.columns)
            name = f"y_score{suffix}"
            hint = f"Pass it as {argument(name)}." if inputs.y_pred is not None else ""
            raise InputTypeError(name, f"given for {first}", None, hint)
    if inputs.sensitive_features is None and inputs.group_probabilities is None:
        raise InputTypeError("sensitive_features", "given", None)


def _check_labels(inputs: Inputs, metric: AnyMetric) -> None:
    if inputs.y_true is None and "y_true" in metric.columns:
        name = next((one.name for one in metric.parts if "y_true" in one.columns), metric.name)
        hint = "Without labels, selection_rate can be tested."
        raise InputTypeError("y_true", f"given for {name}", None, hint)


def _check_each(inputs: Inputs, metric: AnyMetric, suffix: str) -> None:
    for name in metric.columns:
        if name.endswith(NEW) or inputs.find(name) is not None:
            continue
        hint = ""
        other = {"y_score": "y_pred", "y_pred": "y_score"}.get(name)
        if other is None:
            raise InputTypeError(name, f"given for {metric.name}", None)
        if getattr(inputs, other) is not None:
            hint = f"Pass it as {argument(name + suffix)}, not as {argument(other + suffix)}."
        raise InputTypeError(name + suffix, f"given for {metric.name}", None, hint)


def _check_predictions(inputs: Inputs, metric: AnyMetric, suffix: str) -> None:
    if inputs.threshold is not None:
        parse_threshold(inputs.threshold, suffix)
    if inputs.y_pred is not None and inputs.y_score is None and inputs.threshold is None:
        return
    prediction, score, threshold = (
        argument(name + suffix) for name in ("y_pred", "y_score", "threshold")
    )
    if inputs.y_pred is not None and inputs.threshold is not None:
        raise InputError(
            f"{threshold} cannot be used with {prediction}: it only turns {score} into predictions."
        )
    if inputs.y_pred is not None and inputs.y_score is not None and metric.kind != Kind.SEVERAL:
        raise InputError(f"Pass {prediction} or {score}, not both.")
    if inputs.y_pred is None and inputs.y_score is None and "y_pred" in metric.columns:
        hint = f"Or pass {score} with {threshold}."
        raise InputTypeError(f"y_pred{suffix}", "given for this metric", None, hint)


def _interpret(
    measured: Mapping[str, IndexedColumn], kind: Kind, pos_label: object
) -> dict[str, NDArray[Any]]:
    """Return the rows' labels as booleans and their numbers as floats."""
    # metrics of any values, or of named classes, get the values unchanged
    if kind in {Kind.CLASSES, Kind.CLASS_SCORES}:
        labels = {name: one for name, one in measured.items() if not kind.reads_numbers(name)}
        check_spelling(labels)
    keeps_values = kind.keeps_values
    if kind == Kind.LABELS and pos_label is None:
        keeps_values = has_named_classes(measured)
    if keeps_values:
        return {name: values_as_array(column)[index] for name, (column, index) in measured.items()}
    labels = {name: one for name, one in measured.items() if name not in kind.number_columns}
    if pos_label is not None and not labels:
        raise InputError(f"{argument('pos_label')} cannot be used: this metric has no labels.")
    result: dict[str, NDArray[Any]] = dict(find_positives(labels, pos_label))
    for name, (column, index) in measured.items():
        if name not in labels:
            result[name] = _index_numbers(column, index)
    return result


def _index_numbers(column: Column, index: Index) -> Array:
    return np.asarray(column.values, np.float64)[index]


def _choose_contributions(rows: Source, label: NDArray[Any] | None, known: Booleans) -> Array:
    """Return the contributions that an engine has added up, for the rows' own labels."""
    if rows.contributions is None:
        return np.empty((0, 0))
    positive, other = (one[known] for one in rows.contributions)
    if label is None or label.dtype != np.bool_:
        return other
    return np.where(label[:, None], positive, other)


def _describe_missing(
    columns: Sequence[Column], rows: Sequence[Index], counts: Integers, *, name_rows: bool
) -> str:
    parts = []
    for column, index in zip(columns, rows, strict=True):
        is_missing = column.find_missing()
        n_missing = int(counts[is_missing[index]].sum())
        if n_missing:
            plural = "" if n_missing == 1 else "s"
            where = f"of {counts.sum():,} rows"
            if name_rows:
                first = column.find_rows(is_missing, _ROWS_NAMED)
                more = ", …" if n_missing > len(first) else ""
                where = f"row{plural} {', '.join(map(str, first))}{more} of {counts.sum():,}"
            parts.append(f"{column.name} has {n_missing:,} missing value{plural} ({where})")
    return "; ".join(dict.fromkeys(parts))  # scores and the predictions made from them are one


def _note_classes(
    measured: Mapping[str, IndexedColumn], kind: Kind, pos_label: object
) -> list[str]:
    """Return a note if there are more than two classes, of which all but one are negative."""
    if pos_label is None or kind.keeps_values:
        return []
    classes = {
        value
        for name, (column, index) in measured.items()
        if name not in kind.number_columns and not column.from_scores
        for value in _distinct_values(column, index)
    }
    if len(classes) <= 2:
        return []
    others = listed(sorted((one for one in classes if one != pos_label), key=sort_key))
    return [f"Of {len(classes)} classes, {shown(pos_label)} is positive; {others} are negative."]


def _note_perfect(values: Mapping[str, NDArray[Any]], counts: Integers) -> list[str]:
    """Return a note if predictions or scores are the labels themselves."""
    labels = values.get("y_true")
    return [
        Note(
            f"{argument(name)} equals {argument('y_true')} in all {counts.sum():,} rows. Check "
            "that the columns are not the same."
        )
        for name in ("y_pred", "y_score")
        if labels is not None and name in values and np.array_equal(values[name], labels)
    ]


def _note_counts(
    named: Sequence[tuple[str, Column]], rows: Sequence[Index], counts: Integers
) -> list[str]:
    """Return a note if weights may be counts: whole numbers of rows that are all different."""
    weights, others = np.empty(0), []
    for (name, column), index in zip(named, rows, strict=True):
        if name == "sample_weight":
            weights = _index_numbers(column, index)
        elif isinstance(index, slice):
            return []
        else:
            others.append(index)
    if not 0 < len(weights) <= _MAX_COUNTED or (counts > 1).any():
        return []
    if (weights % 1).any() or weights.max() <= 1:
        return []
    if len(np.unique(np.stack(others), axis=1).T) < len(weights):
        return []
    return [
        Note(
            f"{argument('sample_weight')} has whole numbers, and no two rows are alike. If it "
            f"counts equal rows, pass it as {argument('count')}: as weights they have no power."
        )
    ]


def _note_names(attributes: Mapping[str, Sequence[Column]]) -> list[str]:
    """Return notes on names of groups, strata and clusters that are easily confused."""
    columns = [one for name, some in attributes.items() if name != "sample_weight" for one in some]
    found = (note for one in columns for note in (*one.notes, *_note_unicode_forms(one)))
    return list(dict.fromkeys(found))


def _name_groups(
    columns: Sequence[IndexedColumn], n_rows: int
) -> tuple[tuple[Hashable, ...], Codes]:
    """Return the sorted names of the groups (or strata) and each row's index among them."""
    if not columns:
        return ("all",), np.zeros(n_rows, np.uint8)
    shape = [len(column.values) for column, _ in columns]
    distinct, inverse = _find_combinations([index for _, index in columns], shape)
    names: list[Hashable] = []
    for row in zip(*distinct, strict=True):
        values = tuple(column.values[i] for (column, _), i in zip(columns, row, strict=True))
        names.append(values if len(values) > 1 else values[0])
    order = sorted(range(len(names)), key=lambda i: sort_key(names[i]))
    narrow: type[np.integer[Any]] = np.uint8 if len(names) <= 256 else np.intp
    rank = np.argsort(order).astype(narrow)
    return tuple(names[i] for i in order), rank[inverse]


def _find_combinations(
    rows: Sequence[Any], shape: Sequence[int]
) -> tuple[tuple[Places, ...], Places]:
    """Return the combinations that occur, by column, and each row's index among them."""
    if math.prod(shape) > _MAX_KEYS:  # first those of all columns but the last
        first, index = _find_combinations(rows[:-1], shape[:-1])
        (place, last), inverse = _find_combinations([index, rows[-1]], [len(first[0]), shape[-1]])
        return (*(one[place] for one in first), last), inverse
    keys = rows[0] if len(rows) == 1 else np.ravel_multi_index(tuple(rows), shape)
    if math.prod(shape) > len(keys) + 2**16:
        distinct, inverse = np.unique(keys, return_inverse=True)
        return np.unravel_index(distinct, shape), inverse.ravel()
    occurs = np.bincount(keys, minlength=math.prod(shape)) > 0
    return np.unravel_index(np.flatnonzero(occurs), shape), (np.cumsum(occurs) - 1)[keys]


def find_positives(labels: Mapping[str, IndexedColumn], pos_label: object) -> dict[str, Booleans]:
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
            is_prediction = name in _PREDICTIONS
            _check_conventional(labels[name][0].name, distinct, is_prediction=is_prediction)
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
    """Whether labels and predictions are names of classes, not 0/1, -1/1 or False/True."""
    # predictions made from scores are binary, and numbers with fractions are scores
    values = {name: _distinct_values(*one) for name, one in labels.items()}
    if all(_is_conventional(distinct) for distinct in values.values()):
        return False
    if any(column.from_scores for column, _ in labels.values()):
        return False
    predicted = [one for name in _PREDICTIONS for one in values.get(name, [])]
    if any(isinstance(one, float) and one % 1 for one in predicted):
        return False
    check_spelling(labels)
    return True


def check_spelling(labels: Mapping[str, IndexedColumn]) -> None:
    """Raise InputError if a predicted label differs from a true one by case, spaces or type."""
    # labels that differ only in Unicode form look alike, in one column or in both
    values = {name: _distinct_values(*one) for name, one in labels.items()}
    forms: dict[str, str] = {}
    for name, distinct in values.items():
        for text in (one for one in distinct if isinstance(one, str)):
            similar = forms.setdefault(normalize("NFC", text), text)
            if similar != text:
                rule = f"made of labels in one Unicode form ({similar!a})"
                raise InputError(name, rule, Shown(ascii(text)), _NORMALIZE)
    truths = {str(one).strip().casefold(): one for one in values.get("y_true", [])}
    for name in _PREDICTIONS:
        for one in values.get(name, []):
            other = truths.get(str(one).strip().casefold(), one)
            if other != one:
                rule = f"made of the labels of {argument('y_true')} ({listed(values['y_true'])})"
                raise InputError(name, rule, one, f"Did you mean {shown(other)}?")


def _note_unicode_forms(column: Column) -> list[str]:
    """Return a note if names of a column look alike but differ in Unicode form."""
    forms: dict[str, set[str]] = {}
    if not isinstance(column.values, (range, np.ndarray)):
        for text in column.values:
            if isinstance(text, str) and not text.isascii():
                forms.setdefault(normalize("NFC", text), set()).add(text)
    alike = [form for form, texts in forms.items() if len(texts) > 1]
    if not alike:
        return []
    different = "names that look alike but differ in Unicode form, and count as different"
    return [Note(f"{column.name} has {different}: {listed(alike)}. {_NORMALIZE}")]


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
        hint = (
            f"Pass scores as {argument('y_score')}, with a {argument('threshold')}. For ratings or "
            "amounts name metrics of numbers, such as 'mean_prediction'."
        )
    elif _are_scores(values) and (
        len(values) > MAX_NUMBERS or any(one % 1 for one in values)  # type: ignore[operator]
    ):
        hint = "For numbers name metrics such as 'mean_error' or 'mean_absolute_error'."
    elif len(values) == 2:
        either = " or ".join(argument("pos_label", one) for one in values)
        hint = f"Pass {either}, whichever means yes."
    else:
        hint = (
            f"Pass {argument('pos_label')}: that value means yes, and all others no. Or name "
            f"metrics of classes, such as 'recall_macro' or 'recall[{format_name(values[0], 20)}]'."
        )
        if _are_scores(values):
            hint += " For ratings name 'mean_error' or 'mean_absolute_error'."
    rule = f"binary (0/1, -1/1 or False/True; or two other values and {argument('pos_label')})"
    raise InputError(name, rule, Shown(f"the values {listed(values)}"), hint)


def _are_scores(values: Sequence[Hashable]) -> bool:
    """Whether these look like scores: numbers, and more than two or with fractions."""
    found: list[Any] = [
        one
        for one in values
        if isinstance(one, numbers.Real) and not isinstance(one, np.timedelta64)  # NumPy's Integral
    ]
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
    if len(every) > max(2, *map(len, values)):  # of more classes, all others are negative
        got = Shown(" and ".join(listed(distinct) for distinct in values))
        hint = "Use the same values for labels and predictions."
        raise InputError(" and ".join(names), "made of the same classes", got, hint)
    return pos_label
