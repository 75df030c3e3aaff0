"""From decisions on the same rows with several values to shares that change, and their test."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairperm._utils import checks
from fairperm._utils.arrays import Array, Places
from fairperm._utils.formatting import format_count
from fairperm.counterfactual.result import FlipPair, FlipTestResult
from fairperm.data.columns import as_column
from fairperm.errors import FairpermWarning, InputError, Note, Shown, argument, listed
from fairperm.hypothesis_tests.matched import ABOUT_NAMES
from fairperm.hypothesis_tests.omnibus import omnibus_test
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
from fairperm.inference.null import anytime_interval, clopper_pearson

_MANY_NUMBERS = 20  # distinct decisions that are not whole: then they are scores
_VALID = {False: "exact (Clopper–Pearson)", True: "valid whenever one stops"}
_SCORES = Note(
    "Decisions are numbers with decimals, of which any difference counts as a change: "
    f"{argument('threshold')} makes decisions of scores."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of decisions, and how it is tested."""

    threshold: float | None
    pos_label: object
    confidence_level: float
    n_resamples: object
    seed: int

    @classmethod
    def of(
        cls,
        threshold: object,
        pos_label: object,
        confidence_level: object,
        n_resamples: object,
        rng: object,
    ) -> Question:
        """Check the arguments of a function."""
        return cls(
            threshold=None if threshold is None else checks.number("threshold", threshold),
            pos_label=pos_label,
            confidence_level=checks.fraction("confidence_level", confidence_level),
            n_resamples=checks.resamples(n_resamples, 99, or_auto=True) or "auto",
            seed=checks.seed(rng),
        )


def judge_pairs(
    before: object,
    after: object,
    question: Question,
    *,
    feature: str | None,
    values: tuple[Sequence[Hashable], Sequence[Hashable]] | None,
    rows: Places,
    n_dropped: int,
    inputs: object,
) -> FlipTestResult:
    """Return how often decisions made elsewhere change, before and after a change of each item.

    ``values`` has each item's two values of the attribute, in which all items must be alike; by
    default it was one value before, and another one after. ``rows`` are the places of the items in
    the data, of which ``n_dropped`` more were left out.
    """
    n = len(rows)
    decisions = [read_decisions(name, one, n, question.threshold)
                 for name, one in (("before", before), ("after", after))]  # fmt: skip
    if n < 2:
        raise InputError("before", "decisions on two items or more", Shown(str(n)))
    check_pos_label(decisions, question.pos_label)
    groups: tuple[Hashable, ...] = ("before", "after")
    if values is not None:
        known = sorted({*values[0], *values[1]}, key=str)
        if len(known) != 2 or any(one == other for one, other in zip(*values, strict=True)):
            rule = "one of two values before, and the other one after"
            got = Shown(f"{listed(known)}{', with equal ones' if len(known) == 2 else ''}")
            raise InputError("group", rule, got)
        sides = zip(*decisions, values[0], strict=True)
        ordered = [(a, b) if one == known[0] else (b, a) for a, b, one in sides]
        decisions, groups = [list(same) for same in zip(*ordered, strict=True)], tuple(known)
    return judge(
        decisions,
        question,
        feature=feature or "",
        values=groups,
        rows=rows,
        inputs=inputs,
        sampled="sampled at random",
        notes=[f"{format_count(n_dropped, 'item')} without both decisions left out."]
        if n_dropped
        else [],
        frame_library="pyarrow",
    )


def read_decisions(name: str, given: object, n: int, threshold: float | None) -> list[Hashable]:
    """Return a decision for each of n rows. Raises InputError for other numbers, or missing ones.

    ``name`` is how messages call what decided.
    """
    column = as_column(name, given)
    if len(column) != n:
        raise InputError(name, f"decisions of all {n:,} rows", Shown(f"{len(column):,} of them"))
    missing = column.find_missing()
    if len(rows := column.find_rows(missing, 3)):
        raise InputError(name, "without missing decisions", Shown(f"one at row {rows[0]:,}"))
    values: list[Any] = list(column.values)
    if threshold is not None:
        if not all(isinstance(one, (int, float)) for one in values):
            raise InputError(name, f"scores with {argument('threshold')}", values[0])
        values = [one >= threshold for one in values]
    return [values[place] for place in column.indices()] if not column.is_unique else values


def check_pos_label(decisions: Sequence[Sequence[Hashable]], pos_label: object) -> None:
    """Raise InputError for a positive decision that never occurs."""
    known = {one for same in decisions for one in same}
    if pos_label is not None and pos_label not in known:
        raise InputError("pos_label", f"one of the decisions ({listed(known)})", pos_label)


def judge(
    decisions: Sequence[Sequence[Hashable]],
    question: Question,
    *,
    feature: str,
    values: tuple[Hashable, ...],
    rows: Places,
    inputs: object,
    sampled: str,
    is_anytime: bool = False,
    notes: Sequence[str] = (),
    frame_library: str | None,
) -> FlipTestResult:
    """Return how often decisions change. ``decisions`` has those of all rows for every value."""
    level, n = question.confidence_level, len(rows)
    codes, known = _number(decisions)
    changed = (codes != codes[0]).any(axis=0)
    n_changed = int(changed.sum())
    amounts, metric = _as_amounts(codes, known, question.pos_label)
    more = list(notes)
    if amounts is None:
        more.append(
            Note(
                f"Decisions are {len(known):,} texts: {argument('pos_label')} says which "
                "of them to test for a direction."
            )
        )
    elif metric == "mean_prediction" and _are_scores(known):
        more.append(_SCORES)
    interval = anytime_interval if is_anytime else clopper_pearson
    test = None
    if amounts is not None and n > 1:
        test = _test(amounts, metric, feature, values, question)
    return FlipTestResult(
        feature=feature,
        groups=values,
        n=n,
        n_changed=n_changed,
        share_changed=n_changed / n,
        interval=interval(n_changed, n, level),
        is_anytime=is_anytime,
        confidence_level=level,
        pairs=tuple(_count_pairs(codes, amounts, values)),
        test=test,
        seed=question.seed,
        validity=f"The interval of the share is {_VALID[is_anytime]}, for rows {sampled}.",
        notes=(*more, *(test.notes if test is not None else ())),
        rows=rows,
        decisions=tuple(tuple(one) for one in decisions),
        inputs=inputs,
        frame_library=frame_library,
    )


def _number(
    decisions: Sequence[Sequence[Hashable]],
) -> tuple[Places, list[Hashable]]:
    """Return a number for every decision, and the decisions in the order of these numbers."""
    places: dict[Hashable, int] = {}
    codes = [[places.setdefault(one, len(places)) for one in same] for same in decisions]
    return np.array(codes, np.intp), list(places)


def _as_amounts(codes: Places, known: Sequence[Any], pos_label: object) -> tuple[Array | None, str]:
    """Return decisions as numbers, whose means are compared, and the metric; None for texts."""
    if pos_label is not None:
        amounts = np.array([float(one == pos_label) for one in known])
        return amounts[codes], "selection_rate"
    if not all(isinstance(one, (bool, int, float)) for one in known):
        return None, ""
    metric = "selection_rate" if {*known} <= {0, 1} else "mean_prediction"
    return np.array(known, float)[codes], metric


def _are_scores(known: Sequence[Any]) -> bool:
    return len(known) > _MANY_NUMBERS and any(float(one) % 1 for one in known)


def _count_pairs(codes: Places, amounts: Array | None, values: Sequence[Hashable]) -> Any:
    for i, j in itertools.combinations(range(len(values)), 2):
        n_changed = int((codes[i] != codes[j]).sum())
        higher = lower = None
        if amounts is not None:
            higher = int((amounts[i] > amounts[j]).sum())
            lower = int((amounts[i] < amounts[j]).sum())
        yield FlipPair(
            groups=(values[i], values[j]), n_changed=n_changed, n_higher=higher, n_lower=lower
        )


def _test(
    amounts: Array,
    metric: str,
    feature: str,
    values: tuple[Hashable, ...],
    question: Question,
) -> PermutationTestResult | OmnibusTestResult:
    """Return the test of the gaps: values are exchanged among the copies of each row."""
    k, n = amounts.shape
    groups = np.empty(k, object)
    groups[:] = values
    given: dict[str, Any] = {
        "y_pred": amounts.ravel(),
        "data": {feature: np.repeat(groups, n)},
        "sensitive_features": feature,
        "groups": values,
        "matched": np.tile(np.arange(n), k),
        "metric": metric,
        "n_resamples": question.n_resamples,
        "confidence_level": question.confidence_level,
        "rng": question.seed,
        "progress": False,
    }
    with warnings.catch_warnings():  # its notes are those of the result
        warnings.simplefilter("ignore", FairpermWarning)
        test = permutation_test(**given) if k == 2 else omnibus_test(**given)
    return replace(test, notes=tuple(one for one in test.notes if one != ABOUT_NAMES))
