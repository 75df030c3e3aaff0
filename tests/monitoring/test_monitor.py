"""The monitor: what it says, what it keeps, what it refuses, and how often it alarms falsely."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest

from fairperm import InputError, InputTypeError, Monitor

ARGUMENTS: dict[str, Any] = {
    "y_true": "y",
    "y_pred": "p",
    "y_score": "s",
    "sensitive_features": "g",
    "metrics": ["false_positive_rate", "brier_score"],
}


def make(**changed: Any) -> Monitor:
    return Monitor(**ARGUMENTS | changed)


def batch(rng: np.random.Generator, n: int = 200, gap: float = 0.0) -> dict[str, Any]:
    """Return rows of the groups a and b, whose rates differ by the gap."""
    group = rng.choice(["a", "b"], n)
    return {
        "y": rng.integers(0, 2, n),
        "p": (rng.random(n) < 0.3 + gap * (group == "a")).astype(int),
        "s": rng.random(n),
        "g": group,
    }


def feed(monitor: Monitor, n_batches: int, gap: float = 0.0, seed: int = 0) -> Monitor:
    rng = np.random.default_rng(seed)
    for _ in range(n_batches):
        monitor.update(batch(rng, gap=gap))
    return monitor


def test_a_gap_is_found_and_described_in_all_ways_alike() -> None:
    found = feed(make(), 20, gap=0.3)
    rate, brier = found.comparisons
    assert (found.rejected, rate.verdict, brier.verdict) == (True, "disparity", "inconclusive")
    assert rate.groups == ("a", "b")
    assert rate.interval is not None
    assert 0 < rate.interval[0] < 0.3 < rate.interval[1]
    assert found.pvalue == rate.pvalue <= 0.05
    assert found.evalue == pytest.approx(rate.evalue / 2)
    assert found.confidence_sequence["false_positive_rate", "a", "b"] == rate.interval
    assert found.answer.startswith("Alarm after 20 batches: a gap in false positive rate, a − b,")
    assert json.loads(json.dumps(found.to_dict()))["comparisons"][0]["verdict"] == "disparity"


def test_values_are_those_of_all_rows() -> None:
    rng = np.random.default_rng(2)
    found, rows = make(), []
    for _ in range(3):
        one = batch(rng)
        found.update(one)
        rows.append(pd.DataFrame(one))
    every = pd.concat(rows)
    negatives = every[every.y == 0].groupby("g").p
    rate, brier = found.comparisons
    assert rate.values == pytest.approx(tuple(negatives.mean()))
    assert rate.rows == tuple(negatives.size())
    assert brier.values == pytest.approx(tuple(((every.s - every.y) ** 2).groupby(every.g).mean()))


def test_no_alarm_is_never_called_equal() -> None:
    assert "does not show that the groups are equal" in feed(make(), 2).answer
    assert make().answer == "No batch has been counted yet."


def test_a_margin_can_be_shown_to_hold() -> None:
    found = feed(make(metrics=["brier_score"], margin=0.1), 20)
    assert found.comparisons[0].verdict == "equivalent"
    says = "No gap is larger than 0.100, after 20 batches, if gaps have not changed."
    assert found.answer == says


def test_a_gap_that_turns_around_fits_no_one_gap() -> None:
    found = feed(feed(make(), 30, gap=0.4), 60, gap=-0.3)
    assert found.comparisons[0].interval is None
    assert [one.seems_changed for one in found.comparisons] == [True, False]
    assert found.comparisons[0].verdict == "disparity"
    assert "no one gap fits all batches" in repr(found)


@pytest.mark.parametrize("turn", ["reversed", "sorted"])
def test_the_order_of_rows_changes_nothing(turn: str) -> None:
    rows = pd.DataFrame(batch(np.random.default_rng(1)))
    turned = rows[::-1] if turn == "reversed" else rows.sort_values(["p", "y"])
    assert make().update(rows).state == make().update(turned).state


def test_any_frame_gives_the_same_numbers() -> None:
    rows = batch(np.random.default_rng(1))
    states = [make().update(one).state for one in (rows, pd.DataFrame(rows), pl.DataFrame(rows))]
    assert states[0] == states[1] == states[2]


def test_swapping_the_groups_turns_the_gap() -> None:
    one, other = (feed(make(reference=group), 5, gap=0.1).comparisons[0] for group in ("b", "a"))
    assert one.groups == other.groups[::-1]
    assert one.evalue == pytest.approx(other.evalue)
    assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]))  # type: ignore[index]


def test_counts_are_rows() -> None:
    given: dict[str, Any] = {"y_pred": "p", "sensitive_features": "g"}
    counted = Monitor(**given, metrics=["selection_rate"], count="n")
    counted.update({"p": [0, 1, 0, 1], "g": list("aabb"), "n": [30, 70, 50, 0]})
    rows = {"p": [1] * 70 + [0] * 80, "g": ["a"] * 100 + ["b"] * 50}
    single = Monitor(**given, metrics=["selection_rate"]).update(rows)
    assert counted.comparisons == single.comparisons


def test_a_state_goes_on_as_if_it_had_never_been_written() -> None:
    rng = np.random.default_rng(4)
    batches = [batch(rng) for _ in range(6)]
    whole = make()
    for one in batches:
        whole.update(one)
    parts = make()
    for one in batches:
        parts = Monitor.from_state(json.loads(json.dumps(parts.state)))
        parts.update(one)
    assert parts.state == whole.state
    assert repr(parts) == repr(whole)
    assert len(json.dumps(whole.state)) < 20_000 * 2  # two metrics of one pair


def test_drift_is_found_between_two_windows() -> None:
    before, now, same = (feed(make(), 40, gap, seed) for gap, seed in ((0, 1), (0.4, 2), (0, 3)))
    assert [one.drifted for one in now.drift(before)] == [True, False]
    assert not any(one.drifted for one in same.drift(before))
    assert now.drift(before)[0].to_dict()["drifted"] is True


ROWS = batch(np.random.default_rng(9))


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        ({"sensitive_features": None}, InputTypeError, "sensitive_features must be the name"),
        ({"sensitive_features": ["g", "h"]}, InputTypeError, "sensitive_features must be the name"),
        ({"y_true": [0, 1]}, InputTypeError, "y_true must be the name of a column"),
        ({"count": 3}, InputTypeError, "count must be the name of a column"),
        ({"metrics": []}, InputTypeError, "metrics must be a list of names"),
        ({"metrics": "fpr"}, InputTypeError, "metrics must be a list of names"),
        ({"metrics": ["fprr"]}, InputError, "Did you mean"),
        ({"metrics": ["fpr", "false_positive_rate"]}, InputError, "metrics must be different"),
        ({"metrics": ["roc_auc"]}, InputError, "permutation_test, looked at once"),
        ({"metrics": ["f1"]}, InputError, "jaccard_score asks the same"),
        ({"metrics": ["balanced_accuracy"]}, InputError, "metrics must be rates"),
        ({"metrics": ["mean_score"]}, InputTypeError, "bounds must be given for mean_score"),
        ({"metrics": ["mean_score"], "bounds": 1}, InputTypeError, "bounds must be the lowest"),
        ({"metrics": ["mean_score"], "bounds": (1, 0)}, InputError, "in this order"),
        ({"metrics": ["mean_score"], "bounds": (0, np.inf)}, InputError, "finite number"),
        ({"metrics": ["fpr"], "bounds": (0, 1)}, InputError, "bounds must be left out"),
        ({"alpha": 0}, InputError, "alpha must be a number strictly between 0 and 1"),
        ({"alpha": 5}, InputError, r"Did you mean 0\.05"),
        ({"margin": -0.1}, InputError, "margin must be a number from 0"),
        ({"margin": 1}, InputError, "margin must be a number from 0"),
        ({"margin": "0.1"}, InputTypeError, "margin must be a finite number"),
        ({"rng": -1}, InputError, "rng must be an integer"),
        ({"rng": None}, InputTypeError, "rng must be an integer"),
        ({"known_groups": "ab"}, InputTypeError, "known_groups must be a sequence"),
        ({"known_groups": ["a"]}, InputError, "at least two groups"),
        ({"known_groups": ["a", "b", "a"]}, InputError, "known_groups must be different"),
        ({"known_groups": ["a", None]}, InputTypeError, "known_groups must be made of text"),
        ({"known_groups": ["a", "b"], "reference": "c"}, InputError, "reference must be one of"),
    ],
)
def test_refused_questions(changed: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make(**changed)


@pytest.mark.parametrize(
    ("changed", "named", "kind", "message"),
    [
        ({"g": ["a"] * 200}, None, InputError, "sensitive_features must be of at least two groups"),
        ({"g": ["a", "c"] * 100}, 7, InputError, "made of monitored groups"),
        ({"y": [None, 1] * 100}, 7, InputError, "Rows count once their labels are known"),
        ({"g": [None, "a"] * 100}, 7, InputError, "missing value"),
        ({"y": [0, 2] * 100}, 7, InputError, "must be binary"),
        ({"s": [0.5, 1.5] * 100}, 7, InputError, "from 0 to 1"),
        ({"s": [0.5, np.inf] * 100}, 7, InputError, "finite"),
        ({"y": [0] * 100}, 7, InputError, "length"),
        ({one: [] for one in ROWS}, 7, InputError, "at least one row"),
        ({}, 5, InputError, "It has been counted"),
        ({}, 4, InputError, "batch must be after 5"),
        ({}, "6", InputTypeError, "batch must be like those before"),
        ({}, 6.5, InputTypeError, "batch must be a number or a text"),
        ({}, True, InputTypeError, "batch must be a number or a text"),
        ({}, "", InputTypeError, "batch must be a number or a text"),
    ],
)
def test_refused_batches_change_nothing(
    changed: dict[str, Any], named: Any, kind: type[Exception], message: str
) -> None:
    found = make()
    if named is not None:
        found.update(ROWS, batch=5)
    before = found.state
    with pytest.raises(kind, match=message):
        found.update(ROWS | changed, batch=named)
    assert found.state == before


def test_other_refusals() -> None:
    with pytest.raises(InputError, match="Did you mean 'p'"):
        make(y_pred="pp", metrics=["fpr"]).update(ROWS)
    with pytest.raises(InputTypeError, match="y_true must be given"):
        make(y_true=None).update(ROWS)
    with pytest.raises(InputError, match=r"mean_score is from 0 to 0\.5"):
        make(metrics=["mean_score"], bounds=(0, 0.5)).update(ROWS)
    with pytest.raises(InputError, match=r"'s'\) must be made of whole numbers"):
        make(count="s").update(ROWS)
    with pytest.raises(InputError, match="count must be a column"):
        make(count="n").update(ROWS)
    days = make().update(ROWS, batch="2026-03-02")
    with pytest.raises(InputTypeError, match="batch must be given"):
        days.update(ROWS)
    with pytest.raises(InputError, match="write dates as 2026-03-01"):
        days.update(ROWS, batch="2026-03-01")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"fairperm_monitor": 0}, "state must be of version 1"),
        ({"question": {}}, "damaged"),
        ({"wealth": []}, "damaged"),
        ({"wealth": [[0, "a", "b", {}]]}, "damaged"),
        ({"sums": 3}, "damaged"),
        ({"batches": -3}, "got fewer than no batches or rows. It is damaged"),
    ],
)
def test_refused_states(changed: dict[str, Any], message: str) -> None:
    state = make().update(ROWS).state
    with pytest.raises(InputError, match=message):
        Monitor.from_state(state | changed)


def test_states_of_another_question_are_refused() -> None:
    state = make(known_groups=["a", "b"]).state
    expected = {"alpha": 0.05, "metrics": ["fpr", "brier"], "known_groups": ["b", "a"]}
    assert Monitor.from_state(state, **expected).state == state
    for changed in (
        {"alpha": 0.1},
        {"metrics": ["fpr"]},
        {"y_pred": "q"},
        {"known_groups": ["a", "c"]},
    ):
        with pytest.raises(InputError, match="cannot be changed: begin a new one"):
            Monitor.from_state(state, **changed)
    with pytest.raises(InputError, match="an argument of the monitor"):
        Monitor.from_state(state, level=0.05)
    with pytest.raises(InputTypeError, match="state must be the state of a monitor"):
        Monitor.from_state({"y": 1})
    for other, kind, text in (
        (make(alpha=0.1), InputError, "a monitor with alpha=0.05"),
        (make(), InputError, "a monitor of the groups"),
        ("x", InputTypeError, "a Monitor"),
    ):
        with pytest.raises(kind, match=re.escape(text)):
            make(known_groups=["a", "b"]).drift(other)  # type: ignore[arg-type]


FAMILY = [
    "selection_rate",
    "base_rate",
    "true_positive_rate",
    "false_positive_rate",
    "positive_predictive_value",
    "accuracy",
]


@pytest.mark.validate
def test_a_family_of_six_metrics_and_five_groups_alarms_at_most_at_its_level() -> None:
    """Looked at after every batch of rows that are sorted by outcome, up to 50,000 rows."""
    reps, n, alarms = 80, 2000, 0
    for seed in range(reps):
        rng = np.random.default_rng([7, seed])
        found = make(metrics=FAMILY, y_score=None, rng=seed)
        for _ in range(25):
            label = np.sort(rng.random(n) < 0.4)
            decided = rng.random(n) < np.where(label, 0.7, 0.2)
            found.update({"y": label, "p": decided, "g": rng.permutation(np.arange(n) % 5)})
        assert len(found.comparisons) == 60
        alarms += found.rejected
    assert binomtest(alarms, reps, 0.05, "greater").pvalue > 1e-3


@pytest.mark.validate
def test_intervals_hold_the_gap_at_all_times() -> None:
    reps, missed = 150, 0
    for seed in range(reps):
        rng = np.random.default_rng([8, seed])
        found = make(metrics=["mean_score"], bounds=(0, 2), rng=seed)
        holds = True
        for _ in range(40):
            group = np.repeat([0, 1], [10, 40])
            score = rng.beta(0.5 + group, 1.5 - group) * 2  # means 0.5 and 1.5
            found.update({"y": group, "s": score, "g": group})
            interval = found.comparisons[0].interval
            holds &= interval is not None and interval[0] <= -1.0 <= interval[1]
        missed += not holds
    assert binomtest(missed, reps, 0.05, "greater").pvalue > 1e-3


def test_the_path_is_drawn_and_stays_small() -> None:
    found = make(known_groups=["a", "b<i>"])
    for seed in range(250):
        one = batch(np.random.default_rng(seed), n=40)
        found.update({**one, "g": np.where(one["g"] == "a", "a", "b<i>")})
    assert 50 <= len(found.path) < 100
    assert found.path[-1]["batch"] == 250
    rate = found.comparisons[0]
    assert found.path[-1]["gaps"][0] == pytest.approx([rate.gap, *(rate.interval or ())], abs=1e-5)
    assert len(json.dumps(found.state)) < 20_000 * 2  # two metrics of one pair
    drawn = found.plot("false_positive_rate").to_dict()
    assert any(layer["mark"]["type"] == "area" for layer in drawn["layer"])
    page = found.to_html()
    assert "b&lt;i&gt;" in page
    assert "b<i>" not in page
    with pytest.raises(InputError, match="metric, groups must be a comparison"):
        found.plot("accuracy")
    with pytest.raises(InputError, match="nothing to draw before the first batch"):
        make(known_groups=["a", "b"]).plot()
