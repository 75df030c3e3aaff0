"""Two files with rows about the same items, such as the logs of two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairperm.errors import InputError, Shown, argument, listed, shown, warn_of

if TYPE_CHECKING:
    from fairperm.cli.files.loading import LoadedData

    Item = tuple[str, ...]

_SHOWN = 3  # items in a message
_RULE = "of items that both files have"


def join(
    read: Sequence[LoadedData], ids: Sequence[str], names: Sequence[str], *, drops: bool
) -> LoadedData:
    """Return the rows of the first file, with the columns of the second as ``of_second`` says.

    ``names`` are the files'. Raises InputError for an item with several rows in a file, and for one
    without a row in either file unless ``drops``: its values are then missing, or it is left out.
    """
    import pyarrow as pa

    first, second = read
    places = [_find_items(one, ids, name) for one, name in zip(read, names, strict=True)]
    alone = [[one for one in places[i] if one not in places[1 - i]] for i in (0, 1)]
    if len(alone[0]) == len(places[0]):
        raise InputError("id", _RULE, Shown("none"))
    for i in (0, 1) if not drops else ():
        if alone[i]:
            some = listed(map(_name, alone[i]), _SHOWN)
            got = Shown(f"{len(alone[i]):,} without a row in {shown(names[1 - i])} ({some})")
            raise InputError("id", _RULE, got, f"{argument('missing', 'drop')} leaves them out.")
    if alone[1]:
        n, (old, new) = len(alone[1]), map(shown, names)
        warn_of([f"{n:,} rows of {new} were left out: {old} does not have their items."])
    chosen = pa.array([places[1].get(one) for one in places[0]], pa.int64())
    table, of_second = first.data, {}
    for name in second.columns:
        if name not in ids:
            of_second[name] = _find_new_name(name, table.column_names)
            table = table.append_column(of_second[name], second.data[name].take(chosen))
    return replace(first, data=table, files=[*first.files, *second.files], of_second=of_second)


def _find_items(data: LoadedData, ids: Sequence[str], name: str) -> Mapping[Item, int]:
    """Return the row of each item; ids as text, for those of one file may all be numbers."""
    places: dict[Item, int] = {}
    columns = (data.data[one].to_pylist() for one in ids)
    for row, values in enumerate(zip(*columns, strict=True)):
        if None in values:
            raise InputError("id", f"without missing values in {shown(name)}", Shown("one"))
        item = tuple(map(str, values))
        if item in places:
            hint = "Name more columns, such as the epoch, or choose rows by --where."
            got = Shown(f"several of {_name(item)} in {shown(name)}")
            raise InputError("id", "columns with one row for each item", got, hint)
        places[item] = row
    return places


def _name(item: Item) -> Shown:
    return Shown(", ".join(map(shown, item)))


def _find_new_name(name: str, known: Sequence[str]) -> str:
    found = f"{name} (new)"
    while found in known:
        found += "'"
    return found
