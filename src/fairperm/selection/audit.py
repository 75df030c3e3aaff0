"""The audit of selection: how often groups are selected against the group selected most.

No labels are needed: a column says who was selected, or a score of which the upper half counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, starmap
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils import checks
from fairperm._utils.arrays import Array, Booleans, Integers
from fairperm._utils.formatting import UNNAMED_ATTRIBUTE, format_count, format_level, format_name
from fairperm._utils.sorting import sort_key
from fairperm.data.arguments import Column, Columns, Frame, Inputs, Label, ProxyAssumption
from fairperm.data.columns import Column as CodedColumn
from fairperm.data.columns import (
    Source,
    are_names,
    columns_of_frame,
    library_of,
)
from fairperm.data.copies import as_copies, collect_table, count_copies
from fairperm.data.proxies import name_attribute
from fairperm.data.reading import MISSING_GROUP, read_table
from fairperm.data.sample import Sample
from fairperm.errors import InputError, InputTypeError, Shown, argument, rename_arguments, shown
from fairperm.hypothesis_tests.small_groups import MIN_INFLUENTIAL_ROWS
from fairperm.metrics.registry import get_metric
from fairperm.selection.impact import (
    Applicants,
    Evidence,
    Group,
    applicants_to_decide,
    compare_with_best,
    find_best,
)
from fairperm.selection.proxies import NORMAL, LikelyGroup
from fairperm.selection.result import Details, SelectionAudit, SelectionRow, UnknownCount
from fairperm.selection.strata import StratifiedGroup, homogeneity_pvalue, weigh_strata

A = TypeVar("A", bound=Applicants)
MEDIAN = "median"
_UNKNOWN = re.compile(
    r"(un|not )(known|disclosed|stated|specified|reported|declared)|not (provided|given|answered)|"
    r"no (answer|response)|"
    r"(i )?((prefer|choose|chose)(s|red)? not|(do not|don't) (wish|want)) to .*|"
    r"(i )?(did not|didn't) (answer|say|state|disclose|respond|self identify).*|"
    r"(i )?(decline|refuse)[sd]? to .*|unbekannt|keine angabe"
)
_MUST_KEEP = (
    "Everybody who is compared was selected or not: fill them in, or leave these rows out (in a "
    "terminal by --where)."
)


def selection_audit(
    selected: Column | None = None,
    *,
    score: Column | None = None,
    sensitive_features: Columns | None = None,
    group_probabilities: Columns | None = None,
    proxy_assumption: ProxyAssumption = "outcome_given_group",
    control_features: Columns | None = None,
    count: Column | None = None,
    applicants: Column | None = None,
    data: Frame | None = None,
    threshold: float | str = MEDIAN,
    pos_label: Label = None,
    intersections: bool = True,
    unknown: Sequence[Hashable] | None = None,
    minimum_share: float = 0.02,
    four_fifths: float = 0.8,
    confidence_level: float = 0.95,
    source: str | None = None,
    start: str | None = None,
    end: str | None = None,
    why_excluded: str | None = None,
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
    group_probabilities, proxy_assumption
        As in :func:`fairperm.permutation_test`: one attribute whose groups are known only as
        probabilities, instead of `sensitive_features`. Intervals and p are then those of the normal
        limit, and groups that say no more than 20 applicants of known groups have no ratio.
    control_features : array-like, frame, mapping, str or list of str, optional
        Strata, such as requisitions: rates are standardized to the strata of all applicants.
    count : array-like or str, optional
        How many applicants each row stands for, in a table of counts: whole numbers from 0 on. The
        result is that of as many copies of the row.
    applicants : array-like or str, optional
        How many applicants each row of a summary has, such as one row for each group: ``selected``
        is then how many of them were selected.
    data : frame, optional
        Then the arguments above may be names of its columns.
    threshold : "median" or float, optional
        Of scores: those above the median of all, or above a number, count as selected.
    pos_label : optional
        The value of ``selected`` that means selected.
    intersections : bool, optional
        Whether combinations of all attributes are compared, too.
    unknown : sequence, optional
        Names of groups, in any case, that mean that a group is not known; by default "Unknown",
        "Not disclosed", "Prefer not to say", "Declined to answer" and the like. These applicants
        are counted by attribute, as those with missing values are, and compared with nobody. A
        note names them.
    minimum_share : float, optional
        Groups with a smaller share of the applicants are listed with their numbers and left out of
        the ratios.
    four_fifths : float, optional
        The bound of impact ratios.
    confidence_level : float, optional
        The level of the intervals, which hold for all groups of an attribute at once.
    source, start, end, why_excluded : str, optional
        Where the data are from, their first and last day, and why small groups are left out: for
        the tables and the page.
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

    With strata, ratios are of standardized rates, and p is exact, of equal rates in every stratum.
    ``homogeneity_pvalue`` (Breslow and Day) is of one odds ratio in all of them.

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
    0.847, leaves open whether the ratio is below 0.8 (about 160 applicants with these rates would
    decide).
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
    is_unknown = _make_unknown(unknown)
    details = Details.check(source=source, start=start, end=end, why_excluded=why_excluded)
    inputs = Inputs(
        y_pred=selected,
        y_score=score,
        sensitive_features=sensitive_features,
        group_probabilities=group_probabilities,
        proxy_assumption=proxy_assumption,
        control_features=control_features,
        pos_label=pos_label,
        missing="group" if group_probabilities is None else "error",
        data=data,
        must_keep=_MUST_KEEP,
        ignore_index=ignore_index,
    )
    if applicants is not None:
        _refuse_with_applicants(
            count=count, score=score, pos_label=pos_label, group_probabilities=group_probabilities
        )
        inputs = _expand_summary(inputs, applicants)
    with rename_arguments({"y_pred": "selected", "y_score": "score"}):
        if applicants is None and count is not None:
            inputs = count_copies(inputs, count)
        table = read_table(inputs, get_metric("selection_rate" if score is None else "mean_score"))
    cut = None if score is None else _find_cut(table, threshold)
    is_selected = table.columns["y_pred"] if cut is None else table.columns["y_score"] > cut
    rows: list[SelectionRow] = []
    unknowns: list[UnknownCount] = []
    notes = list(table.notes)
    names: tuple[str, ...] = ()
    if table.probabilities is None:
        names = _name_attributes(table, sensitive_features, in_data=data is not None)
    else:
        name, likely = name_attribute(inputs), LikelyGroup.list_all(table, is_selected)
        sure = {one: each for one, each in likely.items() if each.effective >= MIN_INFLUENTIAL_ROWS}
        with rename_arguments({"sensitive_features": "group_probabilities"}):
            some = _choose_compared(name, sure, share, is_combined=False)
        rows += _make_rows(name, likely, some, bound, level)
        notes += [NORMAL, *_note_left_out(name, likely, some, share)]
    for name, members, is_combined in _list_attributes(table, names, intersections=intersections):
        unnamed = [is_unknown(one) for one in members]
        found, n_unknown = _count(table, is_selected, members, unnamed)
        groups = {one: _add_up(parts) for one, parts in found.items()}
        unknowns.append(UnknownCount(name, n_unknown))
        compared = _choose_compared(name, groups, share, is_combined=is_combined)
        chosen: dict[Hashable, Applicants] = {**compared}
        if len(table.strata) > 1 and compared:
            chosen = _stratify(name, {one: found[one] for one in compared}, is_combined=is_combined)
            notes += _note_strata(name, chosen)
        made = list(_make_rows(name, groups, chosen, bound, level))
        rows += made if cut is None else _add_differences(made, table, members)
        notes += _note_left_out(name, groups, chosen, share)
        if n_unknown:
            who = [] if is_combined else compress(members, unnamed)
            notes.append(_note_unknown(name, n_unknown, who))
    return SelectionAudit(
        rows=tuple(rows),
        unknown=tuple(unknowns),
        applicants=int(table.count.sum()),
        selected=int(table.count[is_selected].sum()),
        threshold=cut,
        minimum_share=share,
        four_fifths=bound,
        confidence_level=level,
        n_strata=len(table.strata),
        proxy_assumption=table.assumption or None,
        details=details,
        notes=tuple(notes),
        frame_library=library_of(data),
    )


def _refuse_with_applicants(**others: object) -> None:
    for name, given in others.items():
        if given is not None:
            raise InputError(f"{argument(name)} cannot be used with {argument('applicants')}.")


def _expand_summary(inputs: Inputs, applicants: object) -> Inputs:
    """Return inputs with two rows in place of each: those who were selected, and the others."""
    data = collect_table(inputs, {"applicants": applicants})
    source = Source.of(data)
    n = _read_counts(source, "applicants", applicants)
    k = _read_counts(source, "selected", inputs.y_pred)
    features = source.features("sensitive_features", inputs.sensitive_features)
    controls = source.features("control_features", inputs.control_features)
    for column in (*features, *controls):
        if not len(n) == len(k) == len(column):
            lengths = Shown(f"{len(k):,}, {len(n):,} and {len(column):,} rows")
            rule = f"as long as {argument('applicants')} and {column.name}"
            raise InputError("selected", rule, lengths)
    if (k > n).any():
        row = int(np.flatnonzero(k > n)[0])
        rule = f"at most {argument('applicants')}"
        got = Shown(f"{k[row]:,} of {n[row]:,} in row {row}")
        raise InputError("selected", rule, got, "Did you swap both columns?")
    return replace(
        inputs,
        y_pred=np.repeat([True, False], len(n)),
        sensitive_features=[_double(one) for one in features],
        control_features=[_double(one) for one in controls] or None,
        data=Source(count=np.concatenate([k, n - k]), are_copies=True),
    )


def _read_counts(source: Source, name: str, given: object) -> Integers:
    with rename_arguments({"count": name}):
        found = as_copies(source.columns, given).count
    assert found is not None  # noqa: S101
    return found


def _double(column: CodedColumn) -> CodedColumn:
    if isinstance(column.values, np.ndarray):
        return replace(column, values=np.tile(column.values, 2))
    return replace(column, codes=np.tile(column.codes, 2))


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


def _median(values: Array, counts: Integers) -> float:
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
    """Yield each attribute with the group of each of the table's groups, then all together."""
    # the last value is True for all together
    if not names:
        return
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
    is_selected: Booleans,
    members: list[Hashable],
    is_unknown: Sequence[bool],
) -> tuple[dict[Hashable, tuple[Group, ...]], int]:
    """Return the applicants of each group by stratum, and how many have no known group."""
    shape = len(members), len(table.strata)
    cell = table.group.astype(np.intp) * shape[1] + table.stratum
    applicants = np.bincount(cell, table.count, math.prod(shape)).reshape(shape)
    chosen = np.bincount(cell, table.count * is_selected, math.prod(shape)).reshape(shape)
    groups: dict[Hashable, Integers] = {}
    n_unknown = 0
    for member, n, k, unnamed in zip(members, applicants, chosen, is_unknown, strict=True):
        if unnamed:
            n_unknown += int(n.sum())
            continue
        total = groups.setdefault(member, np.zeros((2, shape[1]), np.int64))
        total += np.array([k, n], np.int64)
    ordered = sorted(groups, key=sort_key)
    parts = {name: tuple(starmap(Group, groups[name].T.tolist())) for name in ordered}
    return parts, n_unknown


def _add_up(parts: Sequence[Group]) -> Group:
    return Group(sum(one.selected for one in parts), sum(one.applicants for one in parts))


def _stratify(
    attribute: str, found: Mapping[Hashable, tuple[Group, ...]], *, is_combined: bool
) -> dict[Hashable, Applicants]:
    """Return the groups with standardized rates; none if no stratum has all, or nobody selected."""
    counts = np.array([[one.applicants for one in parts] for parts in found.values()], np.float64)
    weights = weigh_strata(counts)
    groups = {name: StratifiedGroup(parts, weights) for name, parts in found.items()}
    if any(one.rate for one in groups.values()):
        return {**groups}
    if is_combined:
        return {}
    rule = f"strata with applicants of every group of {shown(attribute)}"
    hint = "Use fewer strata, larger groups, or a higher " + argument("minimum_share") + "."
    raise InputError("control_features", rule, Shown("none in which somebody is selected"), hint)


def _note_strata(attribute: str, groups: Mapping[Hashable, Applicants]) -> Iterator[str]:
    """Yield a note on the applicants in strata that lack a compared group."""
    stratified = [one for one in groups.values() if isinstance(one, StratifiedGroup)]
    if not stratified:
        return
    weights = stratified[0].weights
    left_out = sum(
        part.applicants
        for one in stratified
        for part, weight in zip(one.parts, weights, strict=True)
        if not weight
    )
    if left_out:
        strata = format_count(weights.count(0.0), "stratum lacks", "strata lack")
        yield (
            f"{format_name(attribute)}: {strata} a compared group; "
            f"{format_count(left_out, 'applicant', 'applicants')} there count in p, but in no "
            "standardized rate."
        )


def _make_unknown(unknown: object) -> Callable[[Hashable], bool]:
    """Return what says whether a group, or one of those that are combined, is not known."""
    if isinstance(unknown, str) or not isinstance(unknown, Sequence | None):
        raise InputTypeError("unknown", "a list of names", unknown)
    names = None if unknown is None else {_fold(one) for one in unknown}

    def is_unknown(group: Hashable) -> bool:
        if isinstance(group, tuple):
            return any(map(is_unknown, group))
        name = _fold(group)
        if names is None and isinstance(name, str) and _UNKNOWN.fullmatch(name):
            return True
        return _is_missing(name) or name in (names or ())

    return is_unknown


def _fold(name: Hashable) -> Hashable:
    """Return a name as it is compared: in one case, with spaces for hyphens and underscores."""
    return re.sub(r"[\s_-]+", " ", name).strip().casefold() if isinstance(name, str) else name


def _is_missing(name: Hashable) -> bool:
    # rows without a group are called "missing*" where a group is called "missing"
    return isinstance(name, str) and (not name or name.rstrip("*") == MISSING_GROUP)


def _choose_compared(
    attribute: str, groups: Mapping[Hashable, A], share: float, *, is_combined: bool
) -> dict[Hashable, A]:
    """Return the groups that are large enough to be compared."""
    # raises InputError if they cannot be; combinations of attributes may be too small
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
    groups: Mapping[Hashable, Applicants],
    compared: Mapping[Hashable, Applicants],
    bound: float,
    level: float,
) -> Iterator[SelectionRow]:
    """Yield a row for each group of an attribute."""
    members = list(compared.values())
    best = members[find_best(members)] if members else None
    found = compare_with_best(members, bound=bound, level=level) if members else []
    impacts = dict(zip(compared, found, strict=True))
    places = {name: place for place, name in enumerate(compared)}
    for name, group in groups.items():
        impact, needed = impacts.get(name), None
        if impact is not None and impact.evidence == Evidence.UNDECIDED:
            needed = applicants_to_decide(members, places[name], bound, level)
        own = compared.get(name, group)
        row = SelectionRow.of(attribute, name, group, impact, needed, own.rate_interval(level))
        if isinstance(own, StratifiedGroup) and isinstance(best, StratifiedGroup):
            alike = None if own is best else homogeneity_pvalue(own, best)
            row = replace(row, standardized_rate=own.rate, homogeneity_pvalue=alike)
        yield row


def _add_differences(
    rows: Sequence[SelectionRow], table: Sample, members: Sequence[Hashable]
) -> Iterator[SelectionRow]:
    """Yield the rows with standardized differences of mean scores from the group selected most."""
    # equal scores are added up in the order of their values, so that counts and copies of rows give
    # the same sums
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
    best = max(compared, key=lambda row: (row.impact_ratio, row.applicants), default=None)
    for row in rows:
        known = best is not None and row.impact_ratio is not None
        difference = means[row.group] - means[best.group] if best and known else None
        yield replace(row, standardized_difference=difference)


def _note_left_out(
    attribute: str,
    groups: Mapping[Hashable, Applicants],
    compared: Mapping[Hashable, Applicants],
    share: float,
) -> Iterator[str]:
    """Yield a note on groups that are compared with nobody."""
    name = format_name(attribute)
    small = [one for one in groups if one not in compared]
    if small and compared:
        have = format_count(len(small), "group has", "groups have")
        few = f"less than {format_level(share)} of the applicants"
        if any(isinstance(groups[one], LikelyGroup) for one in small):
            few += f", or fewer than {MIN_INFLUENTIAL_ROWS} effective ones"
        yield f"{name}: {have} {few}, and no impact ratio."
    elif small:
        yield f"{name}: no impact ratios, because fewer than two groups can be compared."


def _note_unknown(attribute: str, n: int, groups: Iterable[Hashable]) -> str:
    """Return a note on applicants whose group is not known, with the names that say so."""
    have = format_count(n, "applicant has", "applicants have")
    names = sorted({"missing" if _is_missing(_fold(one)) else shown(one) for one in groups})
    said = f" ({', '.join(names)})" if names else ""
    return f"{format_name(attribute)}: {have} no known group{said}, and count in no rate."
