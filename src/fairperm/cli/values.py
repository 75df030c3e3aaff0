"""What the texts of options mean: numbers, columns, and values of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairperm.errors import InputError, rename_arguments, shown, unknown_name

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def parse_numbers(option: str, given: Sequence[str] | None) -> Any:
    """Return one number, or numbers by name from NAME=NUMBER."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return parse_number(option, given[0])
    return parse_pairs(option, given, "NUMBER or NAME=NUMBER", "With several, each needs a name.")


def parse_pairs(option: str, given: Sequence[str], rule: str, hint: str = "") -> dict[str, float]:
    """Return numbers by name from NAME=NUMBER."""
    found: dict[str, float] = {}
    for text in given:
        name, mark, value = text.rpartition("=")
        if not mark or not name.strip():
            raise InputError(option, rule, text, hint)
        if name.strip() in found:
            raise InputError(f"{option} must be given only once for {shown(name.strip())}.")
        found[name.strip()] = parse_number(option, value)
    return found


def parse_columns(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """Return columns by the classes whose scores they have, from CLASS=COLUMN."""
    found: dict[str, str] = {}
    for text in given or ():
        name, mark, column = text.rpartition("=")
        if not mark or not name or not column:
            raise InputError(option, "CLASS=COLUMN", text)
        if name in found:
            raise InputError(f"{option} must be given only once for {shown(name)}.")
        found[name] = column
    return found


def name_scores(of_classes: Sequence[str] | None) -> AbstractContextManager[None]:
    """Name the scores in errors by the option that they were given by."""
    return rename_arguments({"y_score": "class_score"} if of_classes else {})


def parse_number(option: str, text: str) -> float:
    """Return a text as a number."""
    try:
        return float(text)
    except ValueError:
        raise InputError(option, "a number", text) from None


def split_columns(text: str) -> str | tuple[str, ...]:
    """Return the column of a ``--group``, or several that are combined.

    Examples
    --------
    >>> split_columns("sex"), split_columns("sex,race"), split_columns('"age, years"')
    ('sex', ('sex', 'race'), 'age, years')
    """
    names = list_columns(text)
    return names if len(names) > 1 else names[0]


def list_columns(text: str) -> tuple[str, ...]:
    """Return the columns that commas separate; quotes, as in CSV, keep a name with commas whole."""
    import csv

    try:
        (names,) = csv.reader([text], strict=True)
    except (csv.Error, ValueError):  # a quote that is a part of the name
        names = text.split(",")
    return tuple(names) or (text,)


def join_columns(names: Sequence[str]) -> str:
    """Return the text of which :func:`list_columns` makes these columns."""
    import csv
    import io

    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(names)
    return out.getvalue()


def find_metric(name: str, option: str = "--metric") -> Any:
    """Return the metric of this name."""
    from fairperm.metrics.registry import get_metric

    try:
        return get_metric(name)
    except InputError as error:
        rule = "one that `fairperm metrics` lists"
        raise InputError(option, rule, name, error.hint) from None


def find_groups(value: Sequence[str], given: Mapping[str, Any], data: Any) -> Any:
    """Return the columns of groups; a single one as it is."""
    groups = [split_columns(one) for one in value]
    if not groups:
        return None
    return groups[0] if len(groups) == 1 and isinstance(groups[0], str) else groups


def parse_probabilities(text: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the attribute of NAME=COLUMNS, and its columns of probabilities."""
    if not text:
        return "", ()
    name, mark, columns = text.partition("=")
    if not mark or not name.strip() or not columns:
        raise InputError("--group-probability", "NAME=COLUMNS, such as race=black,white", text)
    return name.strip(), list_columns(columns)


def find_probabilities(value: str | None, given: Mapping[str, Any], data: Any) -> Any:
    """Return the columns of probabilities by the name of their attribute."""
    name, columns = parse_probabilities(value)
    return {name: [*columns]} if columns else None


def find_references(value: Sequence[str], given: Mapping[str, Any], data: Any) -> Any:
    """Return the reference group, or the reference groups by attribute."""
    if not value:
        return None
    if tuple(value) in {("best",), ("worst",)}:  # what the data pick; a group is COLUMN=best
        return value[0]
    if given.get("group_probability"):  # whose groups are named by their columns
        return value[0].removeprefix(f"{parse_probabilities(given['group_probability'])[0]}=")
    columns = {one: list_columns(one) for one in given["group"]}
    if given["intersections"]:
        columns[",".join(given["group"])] = tuple(
            one for names in columns.values() for one in names
        )
    found: dict[str, object] = {}
    for text in value:
        named = [one for one in columns if text.startswith(f"{one}=")]
        if not named and len(columns) > 1:
            rule = "COLUMN=GROUP with a column of --group, if there are several"
            raise unknown_name("--reference", rule, text.partition("=")[0], columns)
        name = max(named or columns, key=len)
        if (attribute := " × ".join(columns[name])) in found:
            raise InputError(f"--reference must be given only once for {shown(name)}.")
        group = text.removeprefix(f"{name}=") if named else text
        found[attribute] = _find_group(columns[name], group, data)
    is_word = any(one in ("best", "worst") for one in found.values())
    return found if len(columns) > 1 or is_word else next(iter(found.values()))


def _find_group(columns: Sequence[str], text: str, data: Any) -> object:
    """Return the value of a column, or the combination of values of several."""
    if len(columns) == 1:
        return data.find_value(columns[0], text)
    known = {",".join(map(str, values)): values for values in data.distinct_rows(columns)}
    if text not in known:
        raise unknown_name("--reference", f"a group of {','.join(columns)}", text, sorted(known))
    return known[text]


def find_pair(value: Sequence[str] | None, given: Mapping[str, Any], data: Any) -> Any:
    """Return the two groups that the texts mean."""
    if given["group"] is None:  # groups are named by their columns of probabilities
        return value and tuple(value)
    return value and tuple(data.find_value(given["group"], one) for one in value)


def find_pos_label(value: str | None, given: Mapping[str, Any], data: Any) -> Any:
    """Return the label that a text means."""
    return data.find_value(given.get("label") or given.get("prediction"), value)


def find_periods(value: Sequence[str], given: Mapping[str, Any], data: Any) -> Any:
    """Return the periods that the texts mean."""
    return [data.find_value(given["period"], one) for one in value] or None


def find_score(value: str | None, given: Mapping[str, Any], data: Any) -> Any:
    """Return the column of scores, or one for each class."""
    return data.find_scores(given["label"], value, given.get("class_score"))


def find_pairing(value: str | None, given: Mapping[str, Any], data: Any) -> str:
    """Return which groups are compared."""
    return value or ("reference" if given["reference"] else "pairs")


def parse_thresholds(text: str, given: Mapping[str, Any], data: Any) -> object:
    """Return the number of thresholds, the thresholds, or "scores"."""
    if text == "scores":
        return text
    if text.isdigit():
        return int(text)
    return [parse_number("--thresholds", one) for one in text.split(",")]


def as_switch(value: object, given: Mapping[str, Any], data: Any) -> object:
    """Return True for "yes" and False for "no"."""
    return {"yes": True, "no": False}.get(str(value), value)


def parse_cut(text: str, given: Mapping[str, Any], data: Any) -> object:
    """Return the number above which scores count as selected, or "median"."""
    return text if text == "median" else parse_number("--threshold", str(text))


def as_list(value: Sequence[str], given: Mapping[str, Any], data: Any) -> Any:
    """Return the values as a list; None without any."""
    return [*value] or None


def as_word(value: str, given: Mapping[str, Any], data: Any) -> str | None:
    """Return the word, or None for "none"."""
    return None if value.strip().lower() == "none" else value


def by_name(option: str) -> Callable[[Any, Mapping[str, Any], Any], Any]:
    """Return what makes one number, or numbers by name, of an option."""
    return lambda value, given, data: parse_numbers(option, value)
