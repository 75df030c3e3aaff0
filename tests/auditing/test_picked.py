"""The best or worst group as the reference, and the largest gap: the data pick these groups."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import fairperm
from tests.support.commands import run
from tests.support.refusals import Refusal, check_wording, each, table

RATES = {"a": 0.5, "b": 0.3, "c": 0.62, "d": 0.4}


def make_rows(rates: dict[str, float], n: int = 100) -> dict[str, Any]:
    return {
        "g": [group for group in rates for _ in range(n)],
        "y": [int(i < round(rate * n)) for rate in rates.values() for i in range(n)],
    }


def audit(data: dict[str, Any], reference: object = None, **options: Any) -> fairperm.Audit:
    if reference is not None:
        options |= {"compare": "reference", "reference": reference}
    return fairperm.audit(
        y_pred="y", sensitive_features="g", data=data, **{"rng": 1, "n_resamples": 99} | options
    )


@pytest.mark.parametrize(
    ("metric", "word", "picked"),
    [
        ("selection_rate", "best", "c"),
        ("selection_rate", "worst", "b"),
        ("accuracy", "best", "c"),
        ("true_positive_rate", "worst", "b"),
        ("false_negative_rate", "best", "c"),  # the lowest
        ("mean_prediction", "worst", "b"),
    ],
)
def test_each_group_is_compared_with_the_one_that_the_data_pick(
    metric: str, word: str, picked: str
) -> None:
    data = make_rows(RATES) | {"one": [1] * 400}
    found = audit(data, word, y_true="one", metrics=metric)
    assert [row.groups[1] for row in found] == [picked] * 3
    every = audit(data, y_true="one", metrics=metric)
    assert found.n_hypotheses == every.n_hypotheses == 6
    pvalues = {frozenset(row.groups): row.adjusted_pvalue for row in every}
    assert [row.adjusted_pvalue for row in found] == [pvalues[frozenset(r.groups)] for r in found]
    assert any("picked by the data" in note for note in found.notes)


def test_tiny_groups_are_not_picked() -> None:
    data = make_rows(RATES)
    tiny = {"g": [*data["g"], "e"], "y": [*data["y"], 1]}
    assert {row.groups[1] for row in audit(tiny, "best")} == {"c"}
    assert {row.groups[1] for row in audit(tiny, "best", min_group_size=1)} == {"e"}


def test_the_largest_gap_by_hand() -> None:
    """Of two groups its limits are those of the gap, at 95 and at 97.5 %."""
    data = make_rows({"a": 0.5, "b": 0.3})
    found = audit(data)
    spread = found.omnibus[0].spread
    assert spread is not None
    assert spread.groups == ("a", "b")
    assert (spread.difference, spread.ratio) == pytest.approx((0.2, 0.6))
    (narrow,), (wide,) = audit(data, confidence_level=0.975), found
    assert narrow.confidence_interval is not None
    assert wide.confidence_interval is not None
    assert spread.interval == (narrow.confidence_interval[0], wide.confidence_interval[1])
    again = fairperm.Audit.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.omnibus[0].spread == spread
    assert audit(make_rows(RATES), compare="rest").omnibus[0].spread is None
    assert "largest gap 0.320" in repr(audit(make_rows(RATES)))


def test_intervals_of_equal_groups_have_equality() -> None:
    """Nearly always: their level is 95 %, half of which is on this side."""
    rng, n_without = np.random.default_rng(6), 0
    for seed in range(30):
        data = {"g": rng.integers(0, 4, 400), "y": rng.integers(0, 2, 400)}
        spread = audit(data, rng=seed).omnibus[0].spread
        assert spread is not None
        has_equality = (spread.interval[0], (spread.ratio_interval or (0, 0))[1]) == (0, 1)
        n_without += not has_equality
    assert binomtest(n_without, 30, 0.025, "greater").pvalue > 1e-3


@pytest.mark.validate
@pytest.mark.parametrize("rates", [(0.4,) * 5, (0.5, 0.4, 0.3, 0.3, 0.5)])
def test_no_more_errors_than_allowed(rates: tuple[float, ...]) -> None:
    """Intervals of the largest gap and of the smallest ratio, and p against the best group.

    The control takes the best group for one that was named beforehand.
    """
    rng, reps = np.random.default_rng(len(set(rates))), 200
    rate_of: dict[Hashable, float] = dict(enumerate(rates))
    names = np.repeat(np.arange(len(rates)), 120)
    gap, ratio = max(rates) - min(rates), min(rates) / max(rates)
    false = dict.fromkeys(("gap", "ratio", "best", "control"), 0)
    for seed in range(reps):
        data = {"g": names, "y": rng.binomial(1, np.repeat(rates, 120))}
        found = audit(data, "best", rng=seed)
        spread = found.omnibus[0].spread
        assert spread is not None
        assert spread.ratio_interval is not None
        false["gap"] += not spread.interval[0] <= gap <= spread.interval[1]
        false["ratio"] += not spread.ratio_interval[0] <= ratio <= spread.ratio_interval[1]
        equal = [row for row in found if rate_of[row.groups[0]] == rate_of[row.groups[1]]]
        false["best"] += any(row.verdict == "disparity" for row in equal)
        false["control"] += any((row.pvalue or 0) <= 0.05 for row in equal)
    for name in ("gap", "ratio", "best"):
        assert binomtest(false[name], reps, 0.05, "greater").pvalue > 1e-3, (name, false)
    if len(set(rates)) == 1:
        assert binomtest(false["control"], reps, 0.05, "greater").pvalue < 1e-3, false


GOOD: dict[str, Any] = {
    "y_pred": [0, 1] * 50,
    "sensitive_features": {"g": ["best", "a"] * 50},
    "compare": "reference",
}
REFUSALS = table(
    fairperm.audit,
    GOOD,
    globals(),
    """
reference='best' →
    reference='best' is unclear: 'g' has a group 'best'. Rename that group, or pass {'g': 'best'}
    (in a terminal g=best) if it is the reference.
reference='worst', metrics=None, distances='ks' → reference='worst' cannot be used with distances
reference='worst', matched=[i // 2 for i in range(100)] →
    reference='worst' cannot be used with distances, rankings and matched sets.
reference='worst', y_true=[1, 0] * 50, metrics='equalized_odds' →
    reference='worst' cannot be used with equalized_odds, which has several gaps.
reference='worst', compare='rest' → reference can only be used with compare='reference'
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)


def test_on_the_command_line(tmp_path: Any) -> None:
    data = make_rows(RATES) | {"h": ["best", "other"] * 200}
    lines = [",".join(data), *(",".join(map(str, row)) for row in zip(*data.values(), strict=True))]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    given = ("audit", "a.csv", "--prediction", "y", "--seed", 1, "--json", "-")
    done = run(*given, "--group", "g", "--reference", "best", cwd=tmp_path)
    assert {row["groups"][1] for row in json.loads(done.stdout)["result"]["rows"]} == {"c"}
    refused = run(*given, "--group", "h", "--reference", "best", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"(in a terminal h=best) if it is the reference" in refused.stderr
    named = run(*given, "--group", "h", "--reference", "h=best", cwd=tmp_path)
    assert json.loads(named.stdout)["result"]["rows"][0]["groups"] == ["other", "best"]
