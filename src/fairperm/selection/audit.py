"""The audit of selection: how often groups are selected against the group selected most.

No labels are needed: a column says who was selected, or a score of which the upper half counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils import checks
from fairperm._utils.formatting import UNNAMED_ATTRIBUTE, format_count, format_level, format_name
from fairperm._utils.sorting import sort_key
from fairperm.data.arguments import Inputs
from fairperm.data.columns import are_names, as_copies, columns_of_frame, library_of
from fairperm.data.indexes import check_indexes
from fairperm.data.lazy.backends import lazy_frame
from fairperm.data.reading import MISSING_GROUP, read_table
from fairperm.errors import InputError, InputTypeError, argument, rename_arguments, shown
from fairperm.metrics.registry import get_metric
from fairperm.selection.impact import Evidence, Group, applicants_to_decide, compare_with_best
from fairperm.selection.result import SelectionAudit, SelectionRow, UnknownCount

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from numpy.typing import NDArray

    from fairperm.data.arguments import Column, Columns, Frame, Label
    from fairperm.data.columns import CountedRows
    from fairperm.data.sample import Sample

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

MEDIAN = "median"
UNKNOWN = ("unknown",)
_MUST_KEEP = "Everybody who is compared was selected or not: fill them in, or leave these rows out."


def selection_audit(
    selected: Column | None = None,
    *,
    score: Column | None = None,
    sensitive_features: Columns,
    count: Column | None = None,
    data: Frame | None = None,
    threshold: float | str = MEDIAN,
    pos_label: Label = None,
    intersections: bool = True,
    unknown: Sequence[Hashable] = UNKNOWN,
    minimum_share: float = 0.02,
    four_fifths: float = 0.8,
    confidence_level: float = 0.95,
    ignore_index: bool = False,
) -> SelectionAudit:
    """Compare how often groups are selected with the group that is selected most.

    Parameters
    ----------
    selected : array-like or str, optional
        Whether each applicant was selected: 0/1, False/True, or two values of which ``pos_label``
        means selected.
    score : array-like or str, optional
        A score of each applicant, instead: selected are those above the ``threshold``.
    sensitive_features : array-like, frame, mapping, str or list of str
        One protected attribute or several, as in :func:`fairperm.audit`.
    count : array-like or str, optional
        How many applicants each row stands for, in a table of counts: whole numbers from 0 on. The
        result is that of as many copies of the row.
    data : frame, optional
        Then the arguments above may be names of its columns.
    threshold : "median" or float, optional
        Of scores: those above the median of all, or above a number, count as selected.
    pos_label : optional
        The value of ``selected`` that means selected.
    intersections : bool, optional
        Whether combinations of all attributes are compared, too.
    unknown : sequence, optional
        Names of groups, in any case, that mean that a group is not known. These applicants are
        counted by attribute, as those with missing values are, and compared with nobody.
    minimum_share : float, optional
        Groups with a smaller share of the applicants are listed with their numbers and left out of
        the ratios.
    four_fifths : float, optional
        The bound of impact ratios.
    confidence_level : float, optional
        The level of the intervals, which hold for all groups of an attribute at once.
    ignore_index : bool, optional
        Match rows of pandas columns by position although their indexes differ.

    Returns
    -------
    SelectionAudit
        A row for each group of each attribute.

    Notes
    -----
    The impact ratio of a group is its selection rate over the highest of all groups. The data pick
    that group, so that the ratios of equal groups are below 1 by chance. The intervals allow for
    it: they hold at once for all groups, whichever is truly selected most. A ratio's ``evidence``
    is read off its interval: "below" the bound, "at least" the bound, or "undecided". The p-values
    are of equality with the best group, exact and adjusted for all pairs by Holm's method. They
    may be small where the interval still reaches 1, because an interval spends half of its error
    on its lower end.

    Thresholds are options, because rules change; no number here says that a rule is kept.

    Examples
    --------
    >>> import fairperm
    >>> hired = [1] * 48 + [0] * 32 + [1] * 12 + [0] * 28
    >>> sex = ["men"] * 80 + ["women"] * 40
    >>> found = fairperm.selection_audit(hired, sensitive_features={"sex": sex})
    >>> row = found.rows[1]
    >>> row.group, row.impact_ratio, row.evidence, round(row.shortfall)
    ('women', 0.5, 'undecided', 12)
    >>> print(found.answer)
    sex: women's selection rate is 0.500 times that of men (30.0 % v 60.0 %); its interval, 0.254 to
    0.847, leaves open whether the ratio is below 0.8.
    """
    if (selected is None) == (score is None):
        got = "neither" if selected is None else "both"
        raise InputError(f"Pass {argument('selected')} or {argument('score')}; got {got}.")
    if score is None and threshold != MEDIAN:
        raise InputError(f"{argument('threshold')} needs {argument('score')}.")
    share = checks.number("minimum_share", minimum_share)
    if not 0 <= share < 1:
        raise InputError("minimum_share", "from 0 to below 1", minimum_share)
    bound = checks.fraction("four_fifths", four_fifths)
    level = checks.fraction("confidence_level", confidence_level)
    if checks.switch("intersections", intersections) is None:
        raise InputTypeError("intersections", "True or False", intersections)
    spelled = _spell(unknown)
    inputs = Inputs(
        y_pred=selected,
        y_score=score,
        sensitive_features=sensitive_features,
        pos_label=pos_label,
        missing="group",
        data=data,
        must_keep=_MUST_KEEP,
        ignore_index=ignore_index,
    )
    if count is not None:
        inputs = replace(inputs, data=_count_copies(inputs, count))
    with rename_arguments({"y_pred": "selected", "y_score": "score"}):
        table = read_table(inputs, get_metric("selection_rate" if score is None else "mean_score"))
    cut = None if score is None else _find_cut(table, threshold)
    is_selected = table.columns["y_pred"] if cut is None else table.columns["y_score"] > cut
    names = _name_attributes(table, sensitive_features, in_data=data is not None)
    rows: list[SelectionRow] = []
    unknowns: list[UnknownCount] = []
    notes = list(table.notes)
    for name, members, is_combined in _list_attributes(table, names, intersections=intersections):
        groups, n_unknown = _count(table, is_selected, members, spelled)
        unknowns.append(UnknownCount(name, n_unknown))
        compared = _choose_compared(name, groups, share, is_combined=is_combined)
        made = list(_make_rows(name, groups, compared, bound, level))
        rows += made if cut is None else _add_differences(made, table, members)
        notes += _note_left_out(name, groups, compared, n_unknown, share)
    return SelectionAudit(
        rows=tuple(rows),
        unknown=tuple(unknowns),
        applicants=int(table.count.sum()),
        selected=int(table.count[is_selected].sum()),
        threshold=cut,
        minimum_share=share,
        four_fifths=bound,
        confidence_level=level,
        notes=tuple(notes),
        library=library_of(data),
    )


def _count_copies(inputs: Inputs, count: object) -> CountedRows:
    """Return the data with the number of applicants that each row stands for."""
    frame = lazy_frame(inputs.data)
    data = inputs.data if frame is None else frame.collect().to_native()  # it has few rows
    columns = {
        "selected": inputs.y_pred,
        "score": inputs.y_score,
        "sensitive_features": inputs.sensitive_features,
        "count": count,
    }
    check_indexes(columns, data, inputs.ignore_index)
    return as_copies(data, count)


def _find_cut(table: Sample, threshold: object) -> float:
    """Return the score above which an applicant counts as selected."""
    scores, counts = table.columns["y_score"], table.count
    is_median = isinstance(threshold, str) and threshold == MEDIAN
    if isinstance(threshold, str) and not is_median:
        raise InputError("threshold", f"{shown(MEDIAN)} or a number", threshold)
    cut = _median(scores, counts) if is_median else checks.number("threshold", threshold)
    low, high = float(scores.min()), float(scores.max())
    if not low <= cut < high:
        rule = f"at least the lowest score ({low:g}) and below the highest ({high:g})"
        hint = "No score would be above it." if cut >= high else "Every score would be above it."
        raise InputError("threshold", rule, cut if is_median else threshold, hint)
    return cut


def _median(values: Array, counts: Counts) -> float:
    """Return the median of values that occur so many times each."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(counts[order])
    n = int(reached[-1])
    middle = np.searchsorted(reached, [(n - 1) // 2 + 1, n // 2 + 1])
    return float(values[order][middle].mean())


def _name_attributes(table: Sample, features: object, *, in_data: bool) -> tuple[str, ...]:
    """Return the names of the attributes that the table's groups are combinations of."""
    if in_data and are_names(features):
        return tuple(features)
    if isinstance(features, Mapping) or nw.dependencies.is_into_dataframe(features):
        return tuple(map(str, columns_of_frame("sensitive_features", features)))
    first = table.groups[0]
    if isinstance(first, tuple):
        return tuple(f"attribute {place + 1}" for place in range(len(first)))
    name = features if in_data else getattr(features, "name", None)
    return (name if isinstance(name, str) else UNNAMED_ATTRIBUTE,)


def _list_attributes(
    table: Sample, names: Sequence[str], *, intersections: bool
) -> Iterator[tuple[str, list[Hashable], bool]]:
    """Yield each attribute with the group of each of the table's groups, then all together.

    The last value is True for all together.
    """
    if len(names) == 1:
        yield names[0], list(table.groups), False
        return
    combinations: list[Any] = list(table.groups)
    for place, name in enumerate(names):
        yield name, [one[place] for one in combinations], False
    if intersections:
        yield " × ".join(names), combinations, True


def _count(
    table: Sample,
    is_selected: NDArray[np.bool_],
    members: list[Hashable],
    unknown: frozenset[Hashable],
) -> tuple[dict[Hashable, Group], int]:
    """Return the applicants of each group, and the number of those whose group is not known."""
    applicants = np.bincount(table.group, table.count, len(members))
    chosen = np.bincount(table.group, table.count * is_selected, len(members))
    groups: dict[Hashable, list[int]] = {}
    n_unknown = 0
    for member, n, k in zip(members, applicants.tolist(), chosen.tolist(), strict=True):
        if _is_unknown(member, unknown):
            n_unknown += int(n)
            continue
        total = groups.setdefault(member, [0, 0])
        total[0] += int(k)
        total[1] += int(n)
    ordered = sorted(groups, key=sort_key)
    return {name: Group(*groups[name]) for name in ordered}, n_unknown


def _spell(unknown: object) -> frozenset[Hashable]:
    """Return the names that mean an unknown group, spelled in one way."""
    if isinstance(unknown, str) or not isinstance(unknown, Sequence):
        raise InputTypeError("unknown", "a list of names", unknown)
    return frozenset(_fold(one) for one in unknown)


def _fold(name: Hashable) -> Hashable:
    return name.strip().casefold() if isinstance(name, str) else name


def _is_unknown(group: Hashable, unknown: frozenset[Hashable]) -> bool:
    """Return whether a group, or one of those that are combined, is not known."""
    if isinstance(group, tuple):
        return any(_is_unknown(one, unknown) for one in group)
    name = _fold(group)
    # rows without a group are called "missing*" where a group is called "missing"
    is_missing = isinstance(name, str) and (not name or name.rstrip("*") == MISSING_GROUP)
    return is_missing or name in unknown


def _choose_compared(
    attribute: str, groups: dict[Hashable, Group], share: float, *, is_combined: bool
) -> dict[Hashable, Group]:
    """Return the groups that are large enough to be compared.

    Raises InputError if they cannot be; combinations of attributes may be too small.
    """
    total = sum(group.applicants for group in groups.values())
    compared = {name: group for name, group in groups.items() if group.applicants >= share * total}
    is_possible = len(compared) > 1 and any(one.selected for one in compared.values())
    if is_possible or is_combined:
        return compared if is_possible else {}
    if len(compared) > 1:
        hint = f"Pass {argument('pos_label')} if another value means selected."
        raise InputError(f"Nobody is selected in the groups of {shown(attribute)}. {hint}")
    rule = "two or more known groups"
    if len(groups) > 1:
        rule += f" with at least {format_level(share)} of the applicants each"
    name = f"{argument('sensitive_features')} ({format_name(attribute)})"
    got = ", ".join(map(shown, compared)) or "none"
    many = f" of {len(groups):,} groups" if len(groups) > 1 else ""
    raise InputError(f"{name} must have {rule}; got {got}{many}.")


def _make_rows(
    attribute: str,
    groups: dict[Hashable, Group],
    compared: dict[Hashable, Group],
    bound: float,
    level: float,
) -> Iterator[SelectionRow]:
    """Yield a row for each group of an attribute."""
    members = list(compared.values())
    found = compare_with_best(members, bound=bound, level=level) if members else []
    impacts = dict(zip(compared, found, strict=True))
    places = {name: place for place, name in enumerate(compared)}
    for name, group in groups.items():
        impact, needed = impacts.get(name), None
        if impact is not None and impact.evidence == Evidence.UNDECIDED:
            needed = applicants_to_decide(members, places[name], bound, level)
        yield SelectionRow.of(attribute, name, group, impact, needed)


def _add_differences(
    rows: Sequence[SelectionRow], table: Sample, members: Sequence[Hashable]
) -> Iterator[SelectionRow]:
    """Yield the rows with standardized differences of mean scores from the group selected most.

    Equal scores are added up in the order of their values, so that counts and copies of rows give
    the same sums.
    """
    values, place = np.unique(table.columns["y_score"], return_inverse=True)
    scaled = values / np.abs(values).max()  # of which squares are finite
    n_each = np.bincount(place, table.count)
    centred = scaled - (n_each * scaled).sum() / n_each.sum()
    spread = np.sqrt((n_each * centred**2).sum() / n_each.sum())
    means = {}
    for row in rows:
        is_own = np.array([one == row.group for one in members])[table.group]
        n_own = np.bincount(place, table.count * is_own, len(values))
        means[row.group] = float((n_own * centred).sum() / (row.applicants * spread))
    compared = [row for row in rows if row.impact_ratio is not None]
    best = max(compared, key=lambda row: (row.rate, row.applicants), default=None)
    for row in rows:
        known = best is not None and row.impact_ratio is not None
        difference = means[row.group] - means[best.group] if best and known else None
        yield replace(row, standardized_difference=difference)


def _note_left_out(
    attribute: str,
    groups: dict[Hashable, Group],
    compared: dict[Hashable, Group],
    n_unknown: int,
    share: float,
) -> Iterator[str]:
    """Yield notes on applicants who are compared with nobody."""
    name = format_name(attribute)
    small = [one for one in groups if one not in compared]
    if small and compared:
        have = format_count(len(small), "group has", "groups have")
        few = f"less than {format_level(share)} of the applicants"
        yield f"{name}: {have} {few}, and no impact ratio."
    elif small:
        yield f"{name}: no impact ratios, because fewer than two groups can be compared."
    if n_unknown:
        have = format_count(n_unknown, "applicant has", "applicants have")
        yield f"{name}: {have} no known group, and count in no rate."
