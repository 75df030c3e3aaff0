"""COMPAS by race and by sex × race: every number of the audit, calculated here by other means."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd
import pytest
from scipy import stats

import fairperm
from fairperm import Audit
from fairperm.hypothesis_tests.results.audits import AuditRow
from fairperm.inference.unconditional import TwoBinomials

ALPHA = 0.05
LEAST = 50
COMPAS = pd.DataFrame(fairperm.datasets.load_compas()).assign(
    label=lambda frame: frame["two_year_recid"] == 1,
    high=lambda frame: frame["decile_score"] >= 5,
    both=lambda frame: list(zip(frame["sex"], frame["race"], strict=True)),
)
COLUMN = {"sex": "sex", "race": "race", "sex × race": "both"}
RATES: dict[str, tuple[Any, Any]] = {  # what a rate counts, and among which rows
    "selection_rate": (COMPAS.high, COMPAS.label | True),
    "true_positive_rate": (COMPAS.high, COMPAS.label),
    "false_negative_rate": (~COMPAS.high, COMPAS.label),
    "false_positive_rate": (COMPAS.high, ~COMPAS.label),
    "positive_predictive_value": (COMPAS.label, COMPAS.high),
    "accuracy": (COMPAS.label == COMPAS.high, COMPAS.label | True),
}
SAME = {"false_negative_rate": "true_positive_rate"}  # one hypothesis


def run(**options: Any) -> Audit:
    given: dict[str, Any] = {
        "y_true": "two_year_recid",
        "y_score": "decile_score",
        "threshold": 5,
        "data": COMPAS[["two_year_recid", "decile_score", "sex", "race"]],
        "rng": 1,
    }
    return fairperm.audit(**{**given, **options})


@pytest.fixture(scope="module")
def by_race() -> Audit:
    return run(sensitive_features="race", metrics=[*RATES, "roc_auc"], n_resamples=1999)


@pytest.fixture(scope="module")
def by_both() -> Audit:
    return run(
        sensitive_features=["sex", "race"],
        intersections=True,
        metrics=list(RATES),
        group_size_by="rows",
    )


@pytest.fixture(params=["by_race", pytest.param("by_both", marks=pytest.mark.validate)])
def audit(request: pytest.FixtureRequest) -> Audit:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


@functools.cache
def counts(attribute: str, metric: str, group: Hashable) -> tuple[int, int]:
    counted, among = RATES[metric]
    mine = COMPAS[COLUMN[attribute]].map(lambda one: one == group) & among
    return int((counted & mine).sum()), int(mine.sum())


def unconditional(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Return the p-value of two rates; tests/inference compares it with sums over all tables."""
    (k, m), (j, n) = first, second
    both = TwoBinomials(m, n, k + j)
    return both.probability(both.statistic(k), "two-sided")


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values, by the definition."""
    return [
        max(
            min(1.0, p * sum(other >= p for other in pvalues)) for p in sorted(pvalues) if p <= mine
        )
        for mine in pvalues
    ]


@functools.cache
def sizes(attribute: str) -> dict[Hashable, int]:
    return COMPAS.groupby(COLUMN[attribute]).size().to_dict()  # type: ignore[no-any-return]


def is_small(row: AuditRow) -> bool:
    return min(sizes(row.attribute)[group] for group in row.groups) < LEAST


def raw_pvalue(row: AuditRow) -> float | None:
    """Return the p-value of a row from its counts; None if a denominator is empty."""
    if row.metric == "roc_auc":
        return row.pvalue
    first, second = (counts(row.attribute, row.metric, group) for group in row.groups)
    return unconditional(first, second) if first[1] and second[1] else None


# Nothing is dropped


def test_groups_of_compas() -> None:
    """The premise: six races, two of them tiny."""
    assert sorted(sizes("race").values()) == [11, 31, 343, 509, 2103, 3175]
    assert sorted(sizes("sex × race").values())[:5] == [2, 2, 9, 29, 58]


def test_every_pair_of_every_metric_is_there(audit: Audit) -> None:
    attributes = audit.settings["attributes"]
    expected = [
        (attribute, metric, pair)
        for attribute in attributes
        for metric in audit.settings["metrics"]
        for pair in itertools.combinations(sorted(sizes(attribute)), 2)  # type: ignore[type-var]
    ]
    assert [(row.attribute, row.metric, row.groups) for row in audit] == expected


@pytest.mark.validate
def test_number_of_rows(by_race: Audit, by_both: Audit) -> None:
    assert len(by_race) == 15 * 7
    assert len(by_both) == (1 + 15 + 66) * 6


def test_every_group_is_counted(audit: Audit) -> None:
    expected = {
        (attribute, group): (n, int(COMPAS.label[COMPAS[COLUMN[attribute]] == group].sum()))
        if not isinstance(group, tuple)
        else (n, int(COMPAS.label[COMPAS["both"].map(lambda one, g=group: one == g)].sum()))
        for attribute in audit.settings["attributes"]
        for group, n in sizes(attribute).items()
    }
    found = {(one.attribute, one.group): (one.rows, one.positives) for one in audit.groups}
    assert found == expected
    assert {(one.attribute, one.group) for one in audit.groups if one.is_small} == {
        key for key, (n, _) in expected.items() if n < LEAST
    }
    assert audit.n_dropped == 0


# Values


def test_values_and_counts(audit: Audit) -> None:
    for row in audit:
        if row.metric not in RATES:
            continue
        both = [counts(row.attribute, row.metric, group) for group in row.groups]
        assert row.sizes == tuple(sizes(row.attribute)[group] for group in row.groups)
        if not all(n for _, n in both):
            assert row.result is None
            assert row.values == (None, None)
            continue
        assert row.result is not None
        assert row.values == pytest.approx([k / n for k, n in both], abs=1e-15)
        assert row.difference == pytest.approx(both[0][0] / both[0][1] - both[1][0] / both[1][1])
        cells = row.cells()
        for place, (k, n) in zip(("first", "second"), both, strict=True):
            assert (cells[f"{place}_numerator"], cells[f"{place}_denominator"]) == (k, n)
        if both[1][0]:
            ratio = both[0][0] / both[0][1] / (both[1][0] / both[1][1])
            assert row.ratio == pytest.approx(ratio)


def test_pvalues_of_rates_are_those_of_their_counts(audit: Audit) -> None:
    for row in audit:
        if row.metric in RATES:
            expected = raw_pvalue(row)
            if expected is None:
                assert row.pvalue is None
            else:
                assert row.pvalue == pytest.approx(expected, rel=1e-9, abs=1e-14), row.groups


# Adjustment and verdicts


def test_adjusted_pvalues_are_holms_of_the_judged_hypotheses(audit: Audit) -> None:
    judged = [row for row in audit if not is_small(row) and raw_pvalue(row) is not None]
    raw = {
        (row.attribute, row.groups, SAME.get(row.metric, row.metric)): raw_pvalue(row) or 0.0
        for row in judged
    }
    expected = dict(zip(raw, holm(list(raw.values())), strict=True))
    assert audit.n_hypotheses == len(raw)
    for row in audit:
        key = (row.attribute, row.groups, SAME.get(row.metric, row.metric))
        if key in expected:
            assert row.adjusted_pvalue == pytest.approx(expected[key], rel=1e-9, abs=1e-13)
        else:
            assert row.adjusted_pvalue is None


@pytest.mark.validate
def test_number_of_hypotheses(by_race: Audit, by_both: Audit) -> None:
    """Four of six races and eight of twelve intersections have 50 rows; FNR and TPR are one."""
    assert by_race.n_hypotheses == 6 * 6
    assert by_both.n_hypotheses == (1 + 6 + 28) * 5


def test_verdicts_follow_from_their_definition(audit: Audit) -> None:
    seen = set()
    for row in audit:
        if is_small(row) or raw_pvalue(row) is None:
            expected = "too small"
        else:
            assert row.adjusted_pvalue is not None
            expected = "disparity" if row.adjusted_pvalue <= ALPHA else "inconclusive"
        assert row.verdict == expected
        seen.add(expected)
    assert seen == {"too small", "disparity", "inconclusive"}


def test_the_known_disparity(by_race: Audit) -> None:
    """ProPublica's finding: twice the false positive rate among African-American defendants."""
    (row,) = (
        row
        for row in by_race.where(metric="false_positive_rate")
        if row.groups == ("African-American", "Caucasian")
    )
    assert row.verdict == "disparity"
    assert row.ratio == pytest.approx(641 / 1514 / (282 / 1281))


def test_tiny_groups_say_why(audit: Audit) -> None:
    for row in audit.where(verdict="too small"):
        tiny = [group for group in row.groups if sizes(row.attribute)[group] < LEAST]
        assert tiny
        if row.result is None:
            assert "which has no " in row.reason
        else:
            for group in tiny:
                n = sizes(row.attribute)[group]
                if audit.group_size_by == "metric" and row.metric in RATES:
                    n = counts(row.attribute, row.metric, group)[1]
                name = " × ".join(group) if isinstance(group, tuple) else repr(group)
                assert row.metric == "roc_auc" or f"{name} has only {n} " in row.reason
            assert row.reason.endswith("; the minimum is 50.")


def test_omnibus_is_of_the_groups_that_are_judged(by_race: Audit) -> None:
    judged = tuple(sorted(group for group, n in sizes("race").items() if n >= LEAST))  # type: ignore[type-var]
    for one in by_race.omnibus:
        assert one.result is not None
        assert one.result.groups == judged
        if one.metric in RATES:  # Pearson's chi-square of groups by outcome
            table = [counts("race", one.metric, group) for group in judged]
            chi = stats.chi2_contingency([(k, n - k) for k, n in table], correction=False)
            assert one.result.statistic == pytest.approx(chi.statistic)


@pytest.mark.validate
def test_omnibus_of_two_groups_says_why_there_is_none(by_both: Audit) -> None:
    for one in by_both.omnibus:
        if one.attribute == "sex":
            assert one.result is None
            assert one.reason == "There are two groups; a test of all groups at once needs three."
        else:
            assert one.result is not None
