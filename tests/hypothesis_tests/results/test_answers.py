"""The first line of every result is a sentence that is true of it."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm._utils.formatting import state_pvalue

N = 240
RNG = np.random.default_rng(7)
GROUP = np.repeat(["North", "South"], N)
# the predictions of South are positive far more often; its errors are as large as North's
PREDICTED = np.r_[np.arange(N) % 10 < 2, np.arange(N) % 10 < 5].astype(int)
LABEL = np.tile([0, 0, 1], 2 * N)[: 2 * N]
NUMBER = RNG.normal(size=2 * N)
THREE = np.tile(["a", "b", "c"], N)[: 2 * N]
ROWS: dict[str, Any] = {"sensitive_features": GROUP, "rng": 1}
RATE: dict[str, Any] = {"y_pred": PREDICTED, "metric": "selection_rate", **ROWS}
ERRORS: dict[str, Any] = {"y_true": NUMBER, "y_pred": NUMBER + RNG.normal(size=2 * N), **ROWS}
SCORED: dict[str, Any] = {"y_true": LABEL, "y_score": NUMBER.round(1), **ROWS}
FEW: dict[str, Any] = {"n_resamples": 99}

SHOWN = r"chance does not explain (it|the change|the differences) \((one-sided )?(adjusted )?p [=<]"
OPEN = r"chance could explain (it|the change|the differences) \((one-sided )?(adjusted )?p [=<]"


def changes(**given: Any) -> Any:
    new = np.r_[PREDICTED[:N], np.arange(N) % 10 < 3].astype(int)
    return fairperm.compare_models(y_true=LABEL, y_pred_new=new, **RATE, **given)


RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "rate": (
        lambda: fairperm.permutation_test(**RATE),
        rf"^South's selection rate is 30\.0 points higher than North's \(50\.0 % v 20.*; {SHOWN}",
    ),
    "one-sided": (
        lambda: fairperm.permutation_test(**RATE, alternative="greater"),
        rf"South's .* 30\.0 points higher than North's .*; {OPEN}.*; no gap above zero is ruled",
    ),
    "number": (
        lambda: fairperm.permutation_test(**ERRORS, metric="mae", **FEW),
        rf"mean absolute error is 0\.\d+ higher than .*; {OPEN}.*; gaps up to 0\.\d+ are not ruled",
    ),
    "strata": (
        lambda: fairperm.permutation_test(**RATE, control_features=THREE),
        r"^Within 3 strata \(like with like\), South's .* points higher than North's on average "
        r"\(not standardized, over all strata: 50",
    ),
    "weights": (
        lambda: fairperm.permutation_test(**RATE, sample_weight=1 + np.arange(2 * N) % 2, **FEW),
        r"South's weighted selection rate is",
    ),
    "clusters": (
        lambda: fairperm.permutation_test(**RATE, cluster=np.arange(2 * N) // 4, **FEW),
        r"p [=<] [\d.]+, by clusters\)",
    ),
    "joint": (
        lambda: fairperm.permutation_test(y_true=LABEL, **RATE | {"metric": "equalized_odds"}),
        r"^North and South differ in equalized odds by up to [\d.]+ points \((true|false) pos",
    ),
    "all groups": (
        lambda: fairperm.omnibus_test(**RATE | {"sensitive_features": THREE}, **FEW),
        rf"^The 3 groups have selection rates from [\d.]+ % \(\w\) to [\d.]+ % \(\w\); {OPEN}",
    ),
    "equivalent": (
        lambda: fairperm.equivalence_test(**RATE, margin=0.5),
        r"North − South is shown to lie within ±50\.0 points \(p",
    ),
    "not equivalent": (
        lambda: fairperm.equivalence_test(**RATE, margin=0.3),
        r"equivalence not established \(p.*North − South, .*, is not all within ±30\.0 points",
    ),
    "ratio": (
        lambda: fairperm.equivalence_test(**RATE, ratio=0.8),
        r"^North's selection rate is 0\.400 times South's .*not established.* of the ratio",
    ),
    "non-inferiority": (
        lambda: fairperm.noninferiority(**RATE, margin=0.1),
        r"non-inferiority not established .*North − South, .*, is not all above −10\.0 points",
    ),
    "distance": (
        lambda: fairperm.distance_test(NUMBER, sensitive_features=THREE, rng=1, **FEW),
        r"^\d of 3 comparisons in Kolmogorov–Smirnov distance show.*: the Kolmogorov",
    ),
    "correlation": (
        lambda: fairperm.correlation_test(NUMBER, ERRORS["y_pred"], rng=1, **FEW),
        rf"^Pearson's correlation of the 480 rows is \+0\.\d+; {SHOWN}",
    ),
    "models": (
        changes,
        r"^With the new model the gap in selection rate, North − South, goes from −30\.0 to "
        rf"−10\.0 points; {SHOWN}",
    ),
    "periods": (
        lambda: fairperm.compare_periods(**RATE, period=np.arange(2 * N) % 3, **FEW),
        r"^\d of 2 changes of the gap in selection rate .*: from \d to \d the gap in",
    ),
    "thresholds": (
        lambda: fairperm.threshold_sweep(**SCORED, metric="fpr", thresholds=5, **FEW),
        r"^At (no threshold is|\d of 5 thresholds) the gap in false positive rate, North − South,",
    ),
    "ranking": (
        lambda: fairperm.ranking_test(
            score=NUMBER, query=np.arange(2 * N) // 8, metric="exposure", **FEW,
            sensitive_features=THREE, rng=1,
        ),
        r"^\d of 3 comparisons in exposure show more than chance explains\. The ",
    ),
    "subgroups": (
        lambda: fairperm.find_subgroups(
            LABEL, PREDICTED, features={"g": GROUP}, metric="selection_rate", rng=1, **FEW
        ),
        r"^\d of \d subgroups differ from all other rows in selection rate by more than chance",
    ),
    "audit": (
        lambda: fairperm.audit(y_pred=PREDICTED, sensitive_features=THREE, rng=1),
        r"^None of 3 judged gaps are larger than chance explains\. 3 are undecided: real gaps",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("kind", RESULTS)
def test_results_begin_with_their_answer(kind: str) -> None:
    run, sentence = RESULTS[kind]
    result = run()
    assert re.search(sentence, result.answer), result.answer
    assert " ".join(repr(result).split()).startswith(" ".join(result.answer.split()))
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["answer"] == result.answer
    assert "<" + result.answer.partition("'")[0].split(" (")[0][:20] not in result._repr_html_()
    assert "<table" in result._repr_html_()
    assert type(result).__name__ not in repr(result)
    assert not re.search(r"\b(fair|unbiased|equal|same)\b", result.answer)


def test_numbers_of_planning_print_their_answer_and_stay_numbers() -> None:
    rows = fairperm.sample_size("selection_rate", values=(0.5, 0.4))
    assert repr(rows) == str(rows) == rows.answer
    assert rows.answer.startswith(f"You need {rows:,} rows in total for 80 % power to detect a ")
    chance = fairperm.power("selection_rate", values=(0.5, 0.4), n=rows)
    assert (f"{chance:.1f}", json.dumps(round(chance, 1))) == ("0.8", "0.8")
    assert "with 80." in chance.answer
    gap = fairperm.minimum_detectable_gap("selection_rate", value=0.4, n=rows)
    assert "detects a gap of 10." in gap.answer
    for one in (rows, chance, gap):
        again = pickle.loads(pickle.dumps(one))  # noqa: S301
        assert (again + 0, again.answer) == (one + 0, one.answer)


def test_without_studentizing_chance_is_not_ruled_out() -> None:
    """Small p-values speak against equal distributions, not against equal values."""
    given: dict[str, Any] = {"y_true": NUMBER, "y_pred": NUMBER + (GROUP == "South"), **ROWS}
    plain = {"variance": None, **FEW}
    test = fairperm.permutation_test(**given, metric="mae", **plain)
    caveat = ", but chance may: the test is un-studentized."
    equal = r"; equal distributions do not explain it \(p = 0\.\d+\)"
    assert re.search(equal + re.escape(caveat), test.answer), test.answer
    audit = fairperm.audit(**given, metrics=["mae", "mse"], **plain)
    told = "larger than equal distributions explain; un-studentized, chance may"
    assert told in audit.answer
    assert all(told in row.reason for row in audit)
    correlated = fairperm.correlation_test(NUMBER, NUMBER, rng=1, **plain)
    assert "; independence does not explain it" in correlated.answer
    assert correlated.answer.endswith(caveat)
    # labels are exchanged among the rows of a rate's denominator: exact for equal rates
    assert re.search(SHOWN, fairperm.permutation_test(**RATE, variance=None).answer)


def test_names_that_are_no_words_come_after_of() -> None:
    ages = np.repeat(["18-25", "over 25"], N)
    answer = fairperm.permutation_test(**RATE | {"sensitive_features": ages}).answer
    assert answer.startswith(
        "The selection rate of over 25 is 30.0 points higher than that of 18-25"
    )


def test_a_test_that_nothing_could_make_significant_says_so() -> None:
    given: dict[str, Any] = {"sensitive_features": list("aabb"), "metric": "selection_rate"}
    few = fairperm.permutation_test(y_pred=[1, 1, 0, 0], **given)
    assert few.smallest_pvalue == few.pvalue > 0.05
    assert "too few to show any gap: the smallest p that they allow is" in few.answer
    assert fairperm.permutation_test(**RATE).smallest_pvalue is None
    even = np.arange(2 * N) % 2
    assert fairperm.permutation_test(**RATE | {"y_pred": even}).smallest_pvalue is None


def test_all_groups_differ_where_no_two_do() -> None:
    """Six groups of which none is far enough from the reference, and two are far apart."""
    rates = [30, 40, 50, 50, 60, 70]
    group = np.repeat(list("abcdef"), 100)
    chosen = np.concatenate([np.arange(100) < rate for rate in rates]).astype(int)
    audit = fairperm.audit(
        y_pred=chosen, sensitive_features={"g": group}, compare="reference", reference="c",
        adjust="holm", alpha=0.01, rng=1,
    )  # fmt: skip
    (test,) = audit.omnibus
    assert test.result is not None
    assert {row.verdict for row in audit} == {"inconclusive"}
    told = (
        f"All groups of g together differ in selection rate by more than chance explains "
        f"({state_pvalue(test.result.pvalue)}, not adjusted), but no comparison of two does; "
        "furthest apart are f (70.0 %) and a (30.0 %)."
    )
    assert told in audit.answer
    assert told in audit.notes
    assert told in audit.to_html()


def test_an_audit_names_the_largest_gap_only_among_gaps_of_one_unit() -> None:
    rng = np.random.default_rng(3)
    group = np.repeat(["a", "b", "c"], [400, 400, 60])
    error = rng.normal(np.repeat([0, 1, 6], [400, 400, 60]), np.repeat([2, 2, 12], [400, 400, 60]))
    y = rng.normal(100, 20, 860)

    def ask(metrics: list[str]) -> fairperm.Audit:
        return fairperm.audit(y, y + error, sensitive_features=group, metrics=metrics, rng=1)

    audit = ask(["mean_error"])
    first, second, _ = audit
    assert (first.adjusted_pvalue or 0) < (second.adjusted_pvalue or 0)
    assert "; the largest: c's mean error is 5.624 higher than a's" in audit.answer
    assert "; the clearest: " in ask(["mean_error", "mean_absolute_error"]).answer
