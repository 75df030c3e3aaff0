"""The indexes of pandas columns: rows are matched by position, so the indexes must agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from fairperm.data.columns import are_names
from fairperm.errors import InputError, InputTypeError, Shown, argument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairperm.data.arguments import Inputs

_COLUMNS = (
    *("values", "y_true", "y_pred", "y_score", "sensitive_features"),
    *("control_features", "cluster", "sample_weight", "matched", "names", "period"),
    *("group_probabilities", "proxy"),
    *("y_pred_new", "y_score_new"),
)


def check_input_indexes(inputs: Inputs) -> None:
    """Raise InputError if pandas columns of the inputs have different indexes."""
    columns = {name: getattr(inputs, name, None) for name in _COLUMNS}
    check_indexes(columns, inputs.data, inputs.ignore_index)


def check_indexes(columns: Mapping[str, object], data: object, ignore_index: object) -> None:
    """Raise InputError if the columns, or the frame that some of them name, differ in index."""
    if not isinstance(ignore_index, bool):
        raise InputTypeError("ignore_index", "True or False", ignore_index)
    pandas = nw.dependencies.get_pandas()
    if pandas is None or ignore_index:
        return
    first: tuple[str, Any] | None = None
    for name, given in columns.items():
        for one in _list_natives(given, data):
            if not isinstance(one, (pandas.Series, pandas.DataFrame)):
                continue
            if first is None:
                first = name, one.index
            elif not first[1].equals(one.index):
                _compare(*first, name, one.index)


def _list_natives(given: object, data: object) -> Iterator[object]:
    """Yield the objects that hold the columns of an argument."""
    if isinstance(given, Mapping):
        for one in given.values():
            yield from _list_natives(one, data)
    elif data is not None and (isinstance(given, str) or are_names(given)):
        if isinstance(data, Mapping):
            names = [given] if isinstance(given, str) else given
            yield from (data[name] for name in names if name in data)
        else:
            yield nw.to_native(data, pass_through=True)
    else:
        yield nw.to_native(given, pass_through=True)


def _compare(first: str, index: Any, name: str, other: Any) -> None:
    """Raise InputError unless the columns differ in length, which has an error of its own."""
    if len(index) != len(other):
        return
    n_shared = int(other.isin(index).sum())
    got = f"an index that shares {n_shared:,} of {len(index):,} labels with it"
    if n_shared == 0:
        got = "an index that shares no label with it"
    elif n_shared == len(index) and index.isin(other).all():
        got = "the same labels in another order"
    raise InputError(
        name,
        f"a pandas column with the index of {argument(first)}",
        Shown(got),
        f"Rows are matched by position: reorder them, or pass {argument('ignore_index', True)} if "
        "they match already.",
    )
