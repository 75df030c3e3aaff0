"""The audit of periods: the tests behind its rows, its level, and its verdicts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import fairperm
from fairperm import InputError, InputTypeError, audit_periods, compare_periods, permutation_test

ALPHA = 0.05


def make(rates: dict[tuple[str, int], float], n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return rows of each group and period, n of each, that are predicted at these rates."""
    cells = [(group, period, rng.random(n) < rate) for (group, period), rate in rates.items()]
    return {
        "y": np.zeros(n * len(cells), int),
        "p": np.concatenate([hits.astype(int) for *_, hits in cells]),
        "g": np.repeat([group for group, *_ in cells], n),
        "when": np.repeat([period for _, period, _ in cells], n),
    }


def audit(data: dict[str, Any], **options: Any) -> fairperm.PeriodAudit:
    given: dict[str, Any] = {
        "metrics": "fpr",
        "sensitive_features": "g",
        "period": "when",
        "rng": 1,
    }
    return audit_periods("y", "p", data=data, **given | options)


STEADY = {("a", 1): 0.2, ("a", 2): 0.25, ("b", 1): 0.4, ("b", 2): 0.45}


@pytest.mark.parametrize(
    "extra",
    [{}, {"control_features": "s"}, {"cluster": "c", "split_clusters": True}],
    ids=["plain", "strata", "clusters"],
)
def test_rows_are_the_tests_of_single_changes(extra: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    rates = STEADY | {("a", 3): 0.3, ("b", 3): 0.35}
    data = make(rates, 300, rng)
    n = len(data["y"])
    data |= {"y": rng.integers(0, 2, n), "s": rng.integers(0, 2, n), "c": np.arange(n) // 2}
    given: dict[str, Any] = {"rng": 1, "n_resamples": 499, **extra}
    found = audit(data, metrics=["fpr", "accuracy"], **given)
    assert len(found) == 2 * 2 * 3
    for row in found:
        alone: fairperm.PermutationTestResult
        if row.is_gap:
            change = compare_periods(
                "y", "p", data=data, sensitive_features="g", groups=row.groups,
                metric=row.metric, period="when", periods=row.periods, **given,
            ).changes[0]  # fmt: skip
            assert (row.before, row.after) == (change.gap_old, change.gap_new)
            alone = change
        else:
            mine = data["g"] == row.groups[0]
            mine &= np.isin(data["when"], np.array(row.periods))
            rows = {name: column[mine] for name, column in data.items()}
            alone = permutation_test(
                "y", "p", data=rows, sensitive_features="when", groups=row.periods[::-1],
                metric=row.metric, **given,
            )  # fmt: skip
            assert row.difference == pytest.approx(alone.difference)
        assert row.pvalue == alone.pvalue


@pytest.mark.parametrize("control", [None, "s"])
def test_the_size_of_a_gap_rests_on_the_sum_over_periods(control: str | None) -> None:
    rng = np.random.default_rng(1)
    data = make({("a", 1): 0.3, ("a", 2): 0.5, ("b", 1): 0.25, ("b", 2): 0.3}, 200, rng)
    data["s"] = rng.integers(0, 2, 800) if control else np.zeros(800, int)
    row = audit(data, control_features=control).rows[0]
    weights = {
        (period, s): float(np.prod([(1.0 * (data["s"] == s) * (data["g"] == g)).sum()
                                    for g in "ab"]) / (data["s"] == s).sum())
        for period in (1, 2) for s in ({0, 1} if control else {0})
    }  # fmt: skip
    total = permutation_test(
        "y", "p", data=data, sensitive_features="g", control_features=["when", "s"],
        stratum_weights=weights, metric="fpr", rng=1,
    )  # fmt: skip
    assert row.size_pvalue == pytest.approx(max(total.pvalue, row.pvalue or 1.0), rel=0.05)
    assert row.size_pvalue is not None
    assert row.size_pvalue >= (row.pvalue or 1.0)


def test_a_group_can_get_worse_though_no_gap_is_shown_to_widen() -> None:
    """The false positive rate of one group rises from 0.018 to 0.044, that of the other, too."""
    rng = np.random.default_rng(5)
    data = make({("F", 1): 0.018, ("F", 2): 0.044, ("M", 1): 0.03, ("M", 2): 0.04}, 2000, rng)
    found = audit(data)
    verdicts = {row.who: row.verdict for row in found}
    assert verdicts == {"F − M": "inconclusive", "F": "worse", "M": "inconclusive"}
    assert found.answer.startswith("1 group got worse, of 3 changes. The clearest: from 1 to 2 ")
    assert [row.who for row in found.find_failed(["worse"])] == ["F"]
    assert found.find_failed(["widened"]) == []


@pytest.mark.parametrize(
    ("rates", "gap", "groups"),
    [
        ({("a", 1): 0.2, ("a", 2): 0.5, ("b", 1): 0.2, ("b", 2): 0.2}, "widened", "worse"),
        ({("a", 1): 0.5, ("a", 2): 0.2, ("b", 1): 0.2, ("b", 2): 0.2}, "narrowed", "better"),
        ({("a", 1): 0.2, ("a", 2): 0.6, ("b", 1): 0.4, ("b", 2): 0.4}, "changed", "worse"),
    ],
)
def test_verdicts(rates: dict[tuple[str, int], float], gap: str, groups: str) -> None:
    found = audit(make(rates, 800, np.random.default_rng(2)))
    assert [row.verdict for row in found] == [gap, groups, "inconclusive"]
    for row in found:
        assert row.interval is not None
        assert row.adjusted_pvalue is not None
        shown = row.interval[0] > 0 or row.interval[1] < 0
        assert shown == (row.adjusted_pvalue <= ALPHA) == (row.verdict != "inconclusive")
    rose = audit(make(rates, 800, np.random.default_rng(2)), metrics="selection_rate").rows[1]
    assert rose.verdict == {"worse": "rose", "better": "fell"}[groups]


def test_a_metric_and_its_complement_count_once() -> None:
    data = make(STEADY, 300, np.random.default_rng(3))
    one, both = (audit(data, metrics=names) for names in (["fpr"], ["fpr", "tnr"]))
    assert one.n_hypotheses == both.n_hypotheses == 3
    assert [row.adjusted_pvalue for row in both][:3] == [row.adjusted_pvalue for row in one]


def test_small_groups_get_no_verdict() -> None:
    rng = np.random.default_rng(4)
    data = make(STEADY, 300, rng)
    few = make({("c", 1): 0.1, ("c", 2): 0.9}, 20, rng)
    data = {name: np.concatenate([column, few[name]]) for name, column in data.items()}
    data["y"] = np.where((data["g"] == "c") & (data["when"] == 1), 1, data["y"])  # no negatives
    found = audit(data)
    by_name = {row.who: row for row in found}
    assert {name for name, row in by_name.items() if row.verdict == "too small"} == {
        "a − c", "b − c", "c",
    }  # fmt: skip
    assert found.n_hypotheses == 3
    with pytest.warns(fairperm.FairpermWarning, match="Nothing was judged"):
        nothing = audit(data, min_group_size=10_000)
    assert nothing.answer.startswith("No change could be judged")
    assert "Nothing was judged" in nothing.notes[0]


def test_numbers_go_to_frames_files_and_pages() -> None:
    data = make({**STEADY, ("a", 3): 0.6, ("b", 3): 0.4}, 300, np.random.default_rng(6))
    data["g"] = np.where(data["g"] == "a", "<i>", "b")
    found = audit(data, against="first")
    frame = found.to_frame("pyarrow").to_pylist()
    assert [row["verdict"] for row in frame] == [row.verdict for row in found]
    plain = json.loads(json.dumps(found.to_dict()))
    assert [row["adjusted_pvalue"] for row in plain["rows"]] == [
        row.adjusted_pvalue for row in found
    ]
    assert {row.periods for row in found} == {(1, 2), (1, 3)}
    page = found.to_html()
    for text in (page, found._repr_html_()):
        assert "&lt;i&gt;" in text
        assert "<i>" not in text
    reference = audit(data, reference="b")
    assert [row.groups for row in reference if row.is_gap] == [("<i>", "b")] * 2


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        ({"period": None}, InputTypeError, "period must be given"),
        ({"metrics": []}, InputError, "at least one metric"),
        ({"metrics": "equalized_odds"}, InputError, "Its parts are true_positive_rate"),
        ({"metrics": ["fpr", "fpr"]}, InputError, "different metrics"),
        ({"against": "last"}, InputError, "against must be"),
        ({"alpha": 0}, InputError, "alpha must be"),
        ({"min_group_size": 0}, InputError, "min_group_size must be"),
        ({"reference": "z"}, InputError, "reference must be one of the groups"),
        ({"periods": [1]}, InputError, "two or more different periods"),
        ({"sensitive_features": "y"}, InputError, "at least two groups"),
        ({"metric": "fpr"}, InputTypeError, "unexpected keyword argument 'metric'"),
    ],
)
def test_refusals(changed: dict[str, Any], kind: type[Exception], message: str) -> None:
    data = make(STEADY, 60, np.random.default_rng(7))
    with pytest.raises(kind, match=message):
        audit(data, **changed)


@pytest.mark.validate
def test_false_claims_of_change_and_of_size_are_rare() -> None:
    """Both groups move alike, so that no gap changes; then the gap changes sides only.

    The sample's sizes, taken as they are once a change is shown, are the control that must fail.
    """
    runs, changed, sized, naive = 300, 0, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([11, seed])
        steady = make({**STEADY, ("c", 1): 0.1, ("c", 2): 0.15}, 150, rng)
        found = audit(steady, n_resamples=999)
        changed += any(row.verdict in {"changed", "widened", "narrowed"} for row in found)
        turned = {("a", 1): 0.2, ("a", 2): 0.4, ("b", 1): 0.3, ("b", 2): 0.3}
        gap = audit(make(turned, 500, rng), n_resamples=999).rows[0]
        sized += gap.verdict in {"widened", "narrowed"}
        naive += gap.adjusted_pvalue is not None and gap.adjusted_pvalue <= ALPHA
    assert binomtest(changed, runs, ALPHA, "greater").pvalue > 1e-3
    assert binomtest(sized, runs, ALPHA, "greater").pvalue > 1e-3
    assert binomtest(naive, runs, ALPHA, "greater").pvalue < 1e-3
