"""What results show, keep and promise."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import json
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import fairperm
from fairperm._utils.formatting import format_metric
from fairperm.errors import FairpermWarning, InputError
from fairperm.hypothesis_tests.plan import SCHEMES, VARIANCES, Plan
from fairperm.metrics import get_metric
from tests.support.number_data import NUMBER_METRICS, numbers_for
from tests.support.simulations import Procedure

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from fairperm.data.arguments import VarianceName

COUNTS = [[[30, 10, 6, 14], [20, 9, 12, 9]]]
NO_VARIANCE = [[[10, 0, 0, 10], [0, 10, 10, 0]]]  # one group all right, the other all wrong


def rows(first: Hashable = "a", second: Hashable = "b") -> dict[str, Any]:
    groups = np.empty(400, object)
    groups[:] = [first] * 200 + [second] * 200
    return {
        "y_true": [1] * 160 + [0] * 40 + [1] * 40 + [0] * 160,
        "y_pred": [0] * 16 + [1] * 184 + [0] * 8 + [1] * 192,
        "sensitive_features": groups,
        "groups": (first, second),
        "metric": "false_negative_rate",
        "rng": 1,
    }


@pytest.fixture
def result() -> Any:
    return fairperm.permutation_test(**rows(), n_resamples=99)


# Counts: of rows, also with weights, and of clusters.


def test_counts_with_weights_are_rows_and_values_are_called_weighted() -> None:
    weights = np.where(np.arange(400) % 2, 3000.5, 1000.0)
    plain = fairperm.permutation_test(**rows(), n_resamples=9)
    weighted = fairperm.permutation_test(**rows(), n_resamples=9, sample_weight=weights)
    for group in "ab":
        counts = weighted.counts[group]
        assert counts.items() >= plain.counts[group].items()
        ratio = counts["weighted numerator"] / counts["weighted denominator"]
        assert weighted.values[group] == pytest.approx(ratio)
    assert weighted.counts["a"]["weight"] == 100 * 3000.5 + 100 * 1000
    assert "\n  a           0.100 weighted  16 of 160 rows\n" in repr(weighted)


def test_clusters_are_counted_and_shown() -> None:
    clustered = {**rows(), "cluster": np.arange(400) // 4, "n_resamples": 9}
    with pytest.warns(FairpermWarning, match="Only about 3 clusters of group 'b'"):
        result = fairperm.permutation_test(**clustered)
    assert [result.counts[group]["clusters"] for group in "ab"] == [50, 50]
    assert "\n  a           0.100  16 of 160 rows, 50 clusters in the group\n" in repr(result)
    groups = np.repeat(["a", "b", "c"], [200, 100, 100])
    of_all = clustered | {"sensitive_features": groups, "groups": None, "metric": "accuracy"}
    with pytest.warns(FairpermWarning, match="clusters"):
        all_groups = fairperm.omnibus_test(**of_all)
    assert "\n  a          0.720  144 of 200 rows, 50 clusters\n" in repr(all_groups)


# Names.


def test_groups_that_are_numbers_are_named_with_their_column() -> None:
    plain = rows(0, 1)
    data: dict[str, Any] = {
        "y": plain["y_true"],
        "p": plain["y_pred"],
        "male": plain["sensitive_features"],
    }
    options: dict[str, Any] = {"metric": "fnr", "n_resamples": 9, "rng": 1}
    text = repr(
        fairperm.permutation_test("y", "p", sensitive_features="male", data=data, **options)
    )
    assert "of male = 0 " in text
    assert "\n  male = 0    0.100  16 of 160\n" in text
    series = pd.Series(data["male"], name="male")
    assert "male = 0" in repr(
        fairperm.permutation_test(data["y"], data["p"], sensitive_features=series, **options)
    )
    assert "of 1 is 10.0 points higher" in fairperm.permutation_test(**plain).answer
    margin = fairperm.noninferiority(
        "y", "p", sensitive_features="male", data=data, margin=0.2, **options
    )
    assert "\n  male = 0 " in repr(margin)
    data["male"] = np.arange(400) % 3
    omnibus = fairperm.omnibus_test("y", "p", sensitive_features="male", data=data, **options)
    assert "\n  male = 2 " in repr(omnibus)


def test_sweeps_distances_and_rankings_name_numbers_with_their_column() -> None:
    i = np.arange(400)
    data: dict[str, Any] = {"male": i // 200, "y": i % 2, "score": i / 400, "list": i // 4}
    data |= {"relevance": i * 7 % 5, "kind": (i * i % 7 < 4).astype(float)}  # as pandas reads them
    options: dict[str, Any] = {"data": data, "n_resamples": 9, "rng": 1}
    people = {"sensitive_features": "male", **options}
    sweep = fairperm.threshold_sweep("y", y_score="score", metric="fnr", thresholds=5, **people)
    assert "(male = 0) − (male = 1)" in sweep.answer
    distance = fairperm.distance_test("score", **people)
    assert "\n  male = 0 and male = 1  1.000 " in repr(distance)
    assert {"attribute"}.isdisjoint([*sweep.to_dict(), *distance.to_dict()])
    ranked = {"score": "score", "query": "list", **options}
    users = fairperm.ranking_test("relevance", k=2, sensitive_features="male", **ranked)
    assert "male = 0 and male = 1 have the same nDCG@2" in users.answer
    items = fairperm.ranking_test(metric="exposure", sensitive_features="kind", **ranked)
    assert "of kind = 0 " in items.answer


# Validity.


@pytest.mark.parametrize("name", ["mean_squared_error", "r2_score", "f1_macro", "base_rate"])
def test_base_rates_are_mentioned_only_with_predictions_of_two_labels(name: str) -> None:
    validity = Plan.choose(get_metric(name), "auto", "auto").validity(strata=False)
    assert f"(equal {name}; the groups may differ in other ways)" in validity
    assert "base rates may differ" in Plan.choose(get_metric("fnr"), "auto", "auto").validity(
        strata=False
    )


# Frozen.


@pytest.mark.parametrize("name", ["pvalue", "difference", "groups", "validity", "seed"])
def test_no_field_can_be_assigned_or_deleted(result: Any, name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"):
        setattr(result, name, 0)
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete field '{name}'"):
        delattr(result, name)


# JSON.


def fitting() -> Iterator[tuple[str, str, str | None]]:
    """Yield every metric by default, and a rate, F1 and a joint metric in all ways."""
    for name in fairperm.metric_names():
        if get_metric(name).kind in {"binary", "labels"}:
            yield name, "auto", "auto"
    examples = ("selection_rate", "f1_score", "equalized_odds")
    for name, scheme, variance in itertools.product(examples, SCHEMES, VARIANCES):
        try:
            Plan.choose(get_metric(name), scheme, variance)
        except InputError:
            continue
        yield name, scheme, variance


def through_json(plain: dict[str, Any]) -> Any:
    return json.loads(json.dumps(plain, allow_nan=False))


@pytest.mark.parametrize("counts", [COUNTS, NO_VARIANCE], ids=["ordinary", "infinite"])
@pytest.mark.parametrize(("metric", "scheme", "variance"), [*fitting()])
def test_dict_survives_json(
    metric: str, scheme: str, variance: str | None, counts: list[list[list[int]]]
) -> None:
    procedure = Procedure(metric, scheme, variance, 99, n_bootstrap=20)
    varies = counts is COUNTS or metric in {"selection_rate", "base_rate"}
    if variance == "fast_bootstrap" and not varies:
        with pytest.raises(InputError, match=r"variance must be one .* not zero; got 'fast_boot"):
            procedure(counts)
        return
    plain = procedure(counts).to_dict()
    assert through_json(plain) == plain


@pytest.mark.parametrize("variance", ["auto", "bootstrap", "fast_bootstrap", None])
@pytest.mark.parametrize("metric", NUMBER_METRICS)
def test_dict_of_a_metric_of_numbers_survives_json(metric: str, variance: VarianceName) -> None:
    data = numbers_for(metric, 200, seed=1)
    result = fairperm.permutation_test(
        **data, metric=metric, variance=variance, n_resamples=99, n_bootstrap=20, rng=1
    )
    plain = result.to_dict()
    assert through_json(plain) == plain
    assert f"{format_metric(metric)} is " in result.answer
    assert " of 100 rows\n" in repr(result)


@pytest.mark.parametrize(("groups", "shown"), [(("a", "b"), "Infinity"), (("b", "a"), "-Infinity")])
def test_infinite_statistics_are_named(groups: tuple[str, str], shown: str) -> None:
    procedure = Procedure("accuracy", "pooled", "wald")
    assert procedure(NO_VARIANCE, groups=groups).to_dict()["statistic"] == shown


@pytest.mark.parametrize("groups", [("a", "b"), ("b", "a")])
def test_no_gap_has_no_sign_whichever_group_comes_first(groups: tuple[str, str]) -> None:
    """The same rows three times in one group, and once in the other."""
    data: dict[str, Any] = {"y_true": [1, 1, 1, 0] * 16, "y_pred": [1, 0, 1, 1] * 16}
    sensitive = ["a"] * 16 + ["b"] * 48
    result = fairperm.permutation_test(
        **data,
        sensitive_features=sensitive,
        groups=groups,
        metric="true_positive_rate",
        rng=1,
        n_resamples=99,
    )
    plain = result.to_dict()
    assert [str(plain[name]) for name in ("difference", "statistic")] == ["0.0", "0.0"]


@pytest.mark.parametrize(
    ("first", "second", "plain"),
    [
        pytest.param(1, 2, [1, 2], id="int"),
        pytest.param(True, False, [True, False], id="bool"),
        pytest.param(0.5, 1.5, [0.5, 1.5], id="float"),
        pytest.param(("a", 1), ("b", 2), [["a", 1], ["b", 2]], id="tuple"),
        pytest.param(
            dt.date(2020, 1, 2),
            dt.date(2021, 1, 2),
            ["2020-01-02", "2021-01-02"],
            id="date",
        ),
    ],
)
def test_groups_need_not_be_strings(first: Hashable, second: Hashable, plain: list[Any]) -> None:
    result = fairperm.permutation_test(**rows(first, second))
    assert through_json(result.to_dict())["groups"] == plain
    assert result.values[first] == 0.1
    assert result.counts[second] == {"rows": 200, "numerator": 8, "denominator": 40}


def test_dict_lists_values_and_counts_in_the_order_of_groups() -> None:
    plain = fairperm.permutation_test(**rows("z", "a")).to_dict()
    assert plain["groups"] == ["z", "a"]
    assert plain["values"] == [0.1, 0.2]
    assert plain["counts"][0] == {"rows": 200, "numerator": 16, "denominator": 160}
    assert plain.keys().isdisjoint({"null_distribution", "null_probabilities"})


# Text.


def text(expected: str) -> str:
    return textwrap.dedent(expected).strip()


def test_repr_of_a_rate() -> None:
    # p-value of the design's table; q = 1.95123 by counting in integers, below 1.95996. Wilson's
    # limits are 0.0625 and 0.1563 for 16/160, 0.1050 and 0.3476 for 8/40
    assert repr(fairperm.permutation_test(**rows(), scheme="pooled")) == text("""
        b's false negative rate is 10.0 points higher than a's (20.0 % v 10.0 %); chance could
        explain it (p = 0.0853); gaps up to 25.2 points are not ruled out.
          a           0.100  16 of 160
          b           0.200  8 of 40
          difference  −0.100  95 % interval −0.252 to +0.010
          p-value     0.0853  two-sided, exact
          validity    Asymptotically valid for the weak null (equal false_negative_rate; base
                      rates may differ), and exact for the strong null (the groups have equal
                      distributions of all columns).
          rows        400 used, 0 left out for missing values
    """)


def test_repr_of_a_joint_metric() -> None:
    # no split of 3 misses has a smaller gap; q = 0.75/√(15/64 · 1/2). Wilson's limits at q are
    # 0.2660 and 0.9613 for 3/4, 0.1307 and 0.8693 for 2/4: 0.25 + √(0.2113² + 0.3693²)
    result = Procedure("equalized_odds")([[[3, 1, 1, 3], [2, 2, 2, 2]]])
    assert result.is_joint
    assert repr(result) == text("""
        a and b differ in equalized odds by up to 25.0 points (true positive rate: 75.0 % v
        50.0 %); chance could explain it (p = 1.0000); these data are too few to show any gap:
        the smallest p that they allow is 0.2653.
          a             true_positive_rate 0.750, false_positive_rate 0.250  of 8 rows
          b             true_positive_rate 0.500, false_positive_rate 0.500  of 8 rows
          absolute gap  0.250 (true_positive_rate, the largest)  95 % interval 0.000 to 0.675
          p-value       1.0000  two-sided, exact
          validity      Exact for the weak null (equal equalized_odds; base rates may differ) at
                        every sample size, given the rates' denominators.
          rows          16 used, 0 left out for missing values
    """)


TESTS: list[tuple[Any, dict[str, Any]]] = [
    (fairperm.permutation_test, {}),
    (fairperm.omnibus_test, {"n_resamples": 99}),
    (fairperm.equivalence_test, {"margin": 0.2}),
]


@pytest.mark.parametrize(
    ("test", "given"),
    TESTS,
)
def test_repr_says_how_many_rows_were_left_out(test: Any, given: dict[str, Any]) -> None:
    data = rows() | given
    assert "  400 used, 0 left out for missing values" in repr(test(**data))
    data["y_true"] = [None, None, *data["y_true"][2:]]
    last = repr(test(**data, missing="drop")).splitlines()[-1]
    assert last.split(maxsplit=1) == ["rows", "398 used, 2 left out for missing values"]


def test_repr_of_a_sweep_and_a_correlation_says_how_many_were_left_out() -> None:
    label, score = np.tile([0, 1], 20), [None, *np.linspace(0, 1, 39)]
    drawn: dict[str, Any] = {"n_resamples": 99, "missing": "drop", "rng": 1}
    sweep = fairperm.threshold_sweep(
        label, score, sensitive_features=np.repeat(["a", "b"], 20), metric="fpr", **drawn
    )
    correlation = fairperm.correlation_test(label, score, **drawn)
    for one in (sweep, correlation):
        assert repr(one).endswith("\n  rows         39 used, 1 left out for missing values")


def test_repr_of_random_draws_tells_their_error() -> None:
    drawn: dict[str, Any] = {"variance": "fast_bootstrap", "n_resamples": 999}
    lines = repr(fairperm.permutation_test(**rows(), **drawn)).splitlines()
    assert "two-sided, 999 draws, 95 % interval 0." in lines[5]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("two\nlines\r\n\u2028", r"two␊lines␍␊\u2028", id="newlines"),
        pytest.param("x" * 10_000, "x" * 44 + "…" + "x" * 15, id="long"),
        pytest.param("\x1b[31m\x00\x07", "␛[31m␀␇", id="control characters"),
        pytest.param("\u202egnp", r"\u202egnp", id="right to left"),
        pytest.param("<script>alert(1)</script>", "<script>alert(1)</script>", id="script"),
        pytest.param("", "''", id="empty"),
    ],
)
def test_hostile_names_stay_on_one_line(name: str, shown: str) -> None:
    result = fairperm.permutation_test(**rows(name, "b"))
    lines = repr(result).splitlines()
    assert any(line.startswith("  validity ") for line in lines)
    assert shown in result.answer
    assert any(line.startswith(f"  {shown} ") for line in lines)
    assert result.groups == (name, "b")


def test_repr_of_a_gap_of_zero_has_no_minus() -> None:
    result = dataclasses.replace(
        fairperm.permutation_test(**rows()), difference=-0.0, confidence_interval=(-2e-4, -0.0)
    )
    assert "difference  +0.000  95 % interval −0.0002 to +0.000" in repr(result)


@pytest.mark.parametrize(
    ("test", "given"),
    [
        *TESTS,
        (fairperm.calibrate, {"n_simulations": 10, "n_resamples": 99}),
    ],
)
def test_repr_ends_with_the_notes(test: Any, given: dict[str, Any]) -> None:
    options = rows() | given
    if test is not fairperm.omnibus_test:
        options["groups"] = ("a", "b")
    result = test(**options)
    assert "note" not in repr(result)
    notes = ("One of many words, " * 9 + "and of an end.", "Two.")
    noted = dataclasses.replace(result, notes=notes)
    before, after = repr(noted).split(" note ", 1)
    assert before.rstrip() == repr(result)
    assert " ".join(after.split()) == f"{notes[0]} note {notes[1]}"
    assert max(map(len, after.splitlines())) <= 88
    assert str(noted).endswith("Two.")


def test_an_equivalence_test_shows_its_notes() -> None:
    result = fairperm.equivalence_test(**rows(), margin=0.2)
    noted = dataclasses.replace(result, notes=("Rows were sampled.",))
    assert repr(noted).endswith("  Rows were sampled.")


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_hostile_names_in_notes_are_escaped() -> None:
    data = rows("\x1b[31m\n" + "x" * 99, "b") | {"metric": "roc_auc"}
    data["y_score"] = data.pop("y_pred")
    data["y_true"] = [0] * 190 + [1] * 10 + data["y_true"][200:]
    data["y_score"] = data["y_true"][:200] + data["y_score"][200:]
    result = fairperm.permutation_test(**data, n_resamples=99)
    assert result.notes
    _, told = repr(result).split(" note ", 1)
    assert " ".join(told.split()).startswith(r"No row of group '\x1b[31m\n" + "x" * 68 + "… shows")
    assert all(line.isprintable() for line in told.splitlines())


# What is promised.

WEAK = "the weak null (equal {}; base rates may differ)"
POOLED = "the strong null (the groups have equal distributions of all columns)"
BY_LABEL = "the strong null (the groups have equal distributions of predictions given the label)"
EXACT_WEAK = f"Exact for {WEAK} at every sample size, given the rates' denominators."
STUDENTIZED = f"Asymptotically valid for {WEAK}, and exact for {POOLED}."
NAIVE = f"Exact for {POOLED}. Not valid for {WEAK}: un-studentized, it can reject far too often."
FAST = f"Asymptotically valid for {WEAK}; not exact for any null."
STUDENTIZERS = ("score", "wald", "delta", "bootstrap")


def promises() -> Iterator[tuple[str, str, str | None, str]]:
    for variance in STUDENTIZERS:
        yield "false_negative_rate", "pooled", variance, STUDENTIZED
        yield "equalized_odds", "pooled", variance, STUDENTIZED
    for scheme, variance in itertools.product(("denominator", "within_label"), STUDENTIZERS):
        yield "false_negative_rate", scheme, variance, EXACT_WEAK
    for any_variance in (*STUDENTIZERS, None):
        yield "equalized_odds", "within_label", any_variance, EXACT_WEAK
        yield "selection_rate", "pooled", any_variance, EXACT_WEAK  # of which everyone is part
    for variance in ("delta", "bootstrap"):
        yield "f1_score", "pooled", variance, STUDENTIZED
        by_label = STUDENTIZED.replace(POOLED, BY_LABEL)
        yield "balanced_accuracy", "within_label", variance, by_label
    for metric in ("false_negative_rate", "f1_score", "equalized_odds"):
        yield metric, "pooled", None, NAIVE
    yield "balanced_accuracy", "within_label", None, NAIVE.replace(POOLED, BY_LABEL)
    yield "false_negative_rate", "denominator", None, EXACT_WEAK
    for scheme in ("pooled", "within_label", "denominator"):
        yield "true_positive_rate", scheme, "fast_bootstrap", FAST


@pytest.mark.parametrize(("metric", "scheme", "variance", "promise"), [*promises()])
def test_validity_names_the_null_and_the_sense(
    metric: str, scheme: str, variance: str | None, promise: str
) -> None:
    result = Procedure(metric, scheme, variance, 99, n_bootstrap=20)(COUNTS)
    assert result.validity == promise.format(metric)


def test_validity_is_of_every_stratum() -> None:
    validity = Procedure("f1_score", "pooled", "delta", 99)(COUNTS * 2).validity
    assert "(equal f1_score within every stratum; base rates may differ)" in validity
    assert "(the groups have equal distributions of all columns within every stratum)" in validity


# Undefined draws.

FEW_POSITIVES: dict[str, Any] = {
    "y_true": [1, 1] + [0] * 18,
    "y_pred": [1, 0] + [0] * 18,
    "sensitive_features": (["a", "b"] * 10),
    "metric": "false_negative_rate",
    "scheme": "pooled",
}


def test_undefined_draws_are_counted_as_extreme_with_a_warning() -> None:
    # both positives fall in one group with probability 2 · (10/20)(9/19)
    with pytest.warns(FairpermWarning, match=r"undefined in 47\.4% of the permutations"):
        result = fairperm.permutation_test(**FEW_POSITIVES)
    assert result.n_undefined == 2
    assert result.exact
    assert result.pvalue == pytest.approx(1)


def test_undefined_random_draws_are_counted_too() -> None:
    with (
        pytest.warns(FairpermWarning, match="false_negative_rate is zero"),
        pytest.warns(FairpermWarning, match="counts as extreme"),
    ):
        result = fairperm.permutation_test(
            **FEW_POSITIVES, variance="bootstrap", n_bootstrap=20, n_resamples=999, rng=1
        )
    assert result.n_undefined == np.isnan(result.null_distribution).sum()
    assert 400 < result.n_undefined < 600


def test_few_undefined_draws_bring_no_warning() -> None:
    result = Procedure("false_negative_rate", "pooled", "score")([[[20, 0, 2, 3], [20, 0, 2, 3]]])
    assert result.n_undefined > 0
    assert result.null_probabilities is not None
    share = result.null_probabilities[np.isnan(result.null_distribution)].sum()
    assert share < 0.01
