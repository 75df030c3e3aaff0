"""Verdicts of audits follow from their definitions."""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from markupsafe import escape
from statsmodels.stats.multitest import multipletests

from fairperm import Audit, FairpermWarning, InputError, audit, equivalence_test
from fairperm.auditing.markdown import as_markdown
from fairperm.hypothesis_tests.margins.one_sided import ratio_pvalues
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.planning.power import detectable_gap
from fairperm.report.sentences import describe_ratio_rule
from fairperm.report.view import AuditView
from tests.support.audits import DATA_OF_TWO, one_row, quietly, selected

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fairperm.data.arguments import Adjustment


def warns_of_nothing_judged(expected: bool = True) -> AbstractContextManager[object]:
    says = r"Nothing was judged: every comparison has a group .* no evidence of anything\."
    return pytest.warns(FairpermWarning, match=says) if expected else contextlib.nullcontext()


@pytest.mark.parametrize(
    ("counts", "margin", "verdict", "reason"),
    [
        # no margin: significant or not
        (
            ((80, 100), (50, 100)),
            None,
            "disparity",
            r"larger than chance explains \(adjusted p < 0.0001\)\.$",
        ),
        (((52, 100), (50, 100)), None, "inconclusive", "a real one is not ruled out"),
        (
            ((500, 1000), (500, 1000)),
            None,
            "inconclusive",
            "^not decided: chance could explain this gap",
        ),
        # margin
        (
            ((80, 100), (50, 100)),
            0.1,
            "disparity",
            r"^shown to exceed the margin of 10.0 points \(adj",
        ),
        (((50, 100), (80, 100)), 0.1, "disparity", "^shown to exceed the margin of 10.0 points "),
        (
            ((6300, 10000), (6000, 10000)),
            0.1,
            "equivalent",
            "^shown to be smaller than 10.0 points ",
        ),
        (
            ((5000, 10000), (5000, 10000)),
            0.1,
            "equivalent",
            r"10.0 points \(adjusted p < 0.0001\)\.$",
        ),
        (((720, 1000), (600, 1000)), 0.1, "inconclusive", r"there is a gap \(.* is not settled\.$"),
        (
            ((690, 1000), (600, 1000)),
            0.1,
            "inconclusive",
            "it exceeds the margin of 10.0 points is not",
        ),
        (((50, 100), (50, 100)), 0.1, "inconclusive", "^not decided: no gap is shown "),
        (
            ((62, 100), (50, 100)),
            0.1,
            "inconclusive",
            "one beyond the margin of 10.0 points is not ruled",
        ),
        (((60, 100), (50, 100)), 0.1, "inconclusive", "no gap is shown"),  # just at the margin
        # size
        (((49, 49), (0, 100)), None, "too small", "0 has only 49 rows; the minimum is 50."),
        (((0, 100), (49, 49)), 0.1, "too small", "1 has only 49 rows; the minimum is 50."),
        (
            ((49, 49), (0, 1)),
            None,
            "too small",
            "group 0 has only 49 rows and group 1 has only 1",
        ),
        (((50, 50), (0, 50)), None, "disparity", "larger than chance explains"),
    ],
)
def test_verdicts(
    counts: tuple[tuple[int, int], tuple[int, int]],
    margin: float | None,
    verdict: str,
    reason: str,
) -> None:
    with warns_of_nothing_judged(verdict == "too small"):
        row = one_row(*counts, margin=margin)
    assert row.verdict == verdict
    assert re.search(reason, row.reason)
    assert row.margin == margin
    tested = verdict != "too small"
    assert row.adjusted_pvalue == (row.pvalue if tested else None)  # a single hypothesis
    for raw, adjusted in (
        (row.exceedance_pvalue, row.adjusted_exceedance_pvalue),
        (row.equivalence_pvalue, row.adjusted_equivalence_pvalue),
    ):
        assert raw == adjusted
        assert (raw is not None) == (tested and margin is not None)


def test_verdicts_by_the_definition_on_many_tables() -> None:
    """Gaps are as many standard errors beyond or within the margin as the verdicts need."""
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(40):
        n = int(rng.choice([60, 400, 3000]))
        rates = 0.5 + rng.choice([0, 0.04, 0.09, 0.3]) * np.array([0.5, -0.5])
        first, second = rng.binomial(n, rates).tolist()
        row = one_row((first, n), (second, n), margin=0.1)
        error = math.sqrt(sum(k / n * (1 - k / n) / n for k in (first, second)))
        beyond = (abs(first - second) / n - 0.1) / error
        least = {"disparity": beyond, "equivalent": -beyond}.get(row.verdict, -abs(beyond))
        quantile = {"disparity": 1.96, "equivalent": 1.645, "inconclusive": -2.0}[row.verdict]
        assert least > quantile - 0.1
        seen.add(row.verdict)
    assert seen == {"disparity", "equivalent", "inconclusive"}


def test_a_tiny_group_keeps_its_numbers() -> None:
    with warns_of_nothing_judged():
        row = one_row((9, 10), (100, 200))
    assert row.verdict == "too small"
    assert row.values == (0.9, 0.5)
    assert row.difference == pytest.approx(0.4)
    assert row.pvalue is not None
    assert row.detectable_gap is not None
    assert 0.2 < row.detectable_gap <= 0.5


def positives(*numbers: int) -> dict[str, Any]:
    """Return groups a, b, … of 100 rows with so many positives."""
    group = np.repeat([*"abcdef"[: len(numbers)]], 100)
    y_true = np.concatenate([np.arange(100) < n for n in numbers]).astype(int)
    y_pred = np.arange(100 * len(numbers)) % 3 % 2
    return {"y_true": y_true, "y_pred": y_pred, "sensitive_features": group}


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("tpr", "'b' has only 12 positives; the minimum is 50."),
        ("ppv", "'a' has only 33 predicted positives and 'b' has only 34 predicted positives; the"),
        ("balanced_accuracy", "'a' has only 40 negatives and 'b' has only 12 positives; the mini"),
        ("equalized_odds", "'a' has only 40 negatives and 'b' has only 12 positives; the minimum"),
        ("roc_auc", "'a' has only 40 negatives and 'b' has only 12 positives; the minimum is 50."),
        ("accuracy", ""),
        ("brier_score", ""),
    ],
)
def test_a_group_counts_by_what_the_metric_rests_on(metric: str, reason: str) -> None:
    data = positives(60, 12)
    if metric in {"roc_auc", "brier_score"}:
        data["y_score"] = np.linspace(0, 1, 200)
    options: dict[str, Any] = {"metrics": metric, "n_resamples": 99, "rng": 1}
    (row,) = quietly(**data, **options)
    assert row.reason.startswith(reason)
    assert (row.verdict == "too small") == bool(reason)
    (row,) = quietly(**data, **options, group_size_by="rows")
    assert row.verdict != "too small"


def test_weights_and_clusters_count_by_their_effective_number() -> None:
    """Kish's number: 100 positives of which ten have all but no weight, or 25 equal clusters."""
    data = positives(100, 100)
    options: dict[str, Any] = {"metrics": "tpr", "min_group_size": 90, "n_resamples": 99, "rng": 1}
    weight = np.where(np.arange(200) % 100 < 11, 1e-9, 1.0)
    (row,) = quietly(**data, sample_weight=weight, **options)
    few = "'a' has only 89 effective positives and 'b' has only 89 effective positives; "
    assert row.reason == f"{few}the minimum is 90."
    (row,) = quietly(**data, sample_weight=np.full(200, 0.1), **{**options, "min_group_size": 100})
    assert row.verdict == "inconclusive"
    (row,) = quietly(**data, cluster=np.arange(200) // 4, **options)
    assert row.reason.startswith("'a' has only 25 effective clusters of positives and 'b' has ")


def test_rows_of_strata_that_lack_a_group_do_not_count() -> None:
    """Of 100 positives of "a", 70 are in a stratum without positives of "b"."""
    stratum = np.where(np.arange(200) < 70, "only a", "both")
    options: dict[str, Any] = {"metrics": "tpr", "n_resamples": 99, "rng": 1}
    (row,) = quietly(**positives(100, 100), control_features=stratum, **options)
    assert row.reason == "'a' has only 30 positives; the minimum is 50."


@pytest.mark.parametrize(
    ("least", "verdict"), [(1, "disparity"), (40, "disparity"), (41, "too small")]
)
def test_min_group_size(least: int, verdict: str) -> None:
    with warns_of_nothing_judged(verdict == "too small"):
        assert one_row((39, 40), (50, 100), min_group_size=least).verdict == verdict


def test_small_groups_are_not_counted_as_hypotheses() -> None:
    rows = audit(**selected((30, 60), (50, 60), (3, 9)), metrics="selection_rate", rng=1)
    assert [row.verdict for row in rows] == ["disparity", "too small", "too small"]
    assert rows.n_hypotheses == 1
    assert rows.rows[0].adjusted_pvalue == rows.rows[0].pvalue
    assert [(one.group, one.rows, one.is_small) for one in rows.groups] == [
        (0, 60, False),
        (1, 60, False),
        (2, 9, True),
    ]


@pytest.mark.parametrize("adjust", ["holm", "by", None])
def test_nothing_to_judge(adjust: Adjustment) -> None:
    given = selected((3, 9), (2, 9), (1, 9))
    with warns_of_nothing_judged():
        rows = audit(**given, metrics=["selection_rate", "fpr"], adjust=adjust, rng=1)
    assert {row.verdict for row in rows} == {"too small"}
    assert rows.n_hypotheses == 0
    assert {one.reason for one in rows.omnibus} == {
        "No group has a comparison with a verdict; a test of all groups at once needs three."
    }


def test_a_metric_without_a_value_in_a_group() -> None:
    y_true = np.tile([1, 0], 150)
    group = np.repeat(["a", "b", "c"], 100)
    y_true[group == "b"] = 0  # no positives
    y_pred = np.tile([1, 1, 0], 100)
    rows = audit(y_true, y_pred, sensitive_features=group, metrics=["tpr", "selection_rate"], rng=1)
    by_pair = {row.groups: row for row in rows.where(metric="true_positive_rate")}
    for pair in (("a", "b"), ("b", "c")):
        row = by_pair[pair]
        assert row.verdict == "too small"
        assert row.result is None
        assert row.values == (None, None)
        for name in ("difference", "pvalue", "adjusted_pvalue", "confidence_interval"):
            assert getattr(row, name) is None
        assert row.sizes == (100, 100)
        assert "true_positive_rate of group 'b', which has no positives" in row.reason
    assert by_pair["a", "c"].verdict == "inconclusive"
    assert rows.n_hypotheses == 1 + 3


@pytest.mark.parametrize("adjust", ["holm", "bh", "by", None])
def test_gaps_are_detectable_at_the_adjusted_level(adjust: Adjustment) -> None:
    rows = audit(
        **selected((30, 60), (35, 70), (3, 9), (200, 300)),
        metrics="selection_rate",
        adjust=adjust,
        alpha=0.1,
        rng=1,
    )
    assert rows.n_hypotheses == 3
    for row in rows:
        assert row.result is not None
        level = 0.1 if adjust is None else 0.1 / 3
        assert row.detectable_gap == detectable_gap(row.result, level, 0.8)


def test_a_level_above_the_power_needs_no_gap() -> None:
    assert one_row((30, 60), (31, 60), alpha=0.9).detectable_gap == 0


# Margins


def test_no_gap_is_detectable_that_there_cannot_be() -> None:
    """Balanced accuracies are at most 1; gaps of so few rows would have to be larger."""
    y_true, y_pred = np.tile([1, 1, 0, 0], 7), np.tile([1, 0, 1, 0], 7)
    group = np.arange(28) % 14 > 6
    with pytest.warns(FairpermWarning, match="balanced_accuracy"):
        found = audit(
            y_true,
            y_pred,
            sensitive_features=group,
            metrics="balanced_accuracy",
            min_group_size=2,
            alpha=1e-9,
            rng=1,
        )
    (row,) = found
    assert row.result is not None
    assert detectable_gap(row.result, 1e-9) > 1
    assert row.detectable_gap == math.inf
    assert found.to_dict()["rows"][0]["detectable_gap"] == "Infinity"
    assert re.search(r"none +inconclusive$", repr(found), re.MULTILINE)
    assert "; none: too few to detect any gap." in repr(found)


def test_margins_of_single_metrics() -> None:
    rows = audit(
        **selected((6300, 10000), (6000, 10000)),
        metrics=["selection_rate", "base_rate"],
        margin={"selection_rate": 0.1},
        rng=1,
    )
    first, second = rows
    assert (first.margin, first.verdict) == (0.1, "equivalent")
    assert (second.margin, second.verdict) == (None, "disparity")
    assert second.equivalence_pvalue is None


def test_raw_and_adjusted_pvalues_at_margins() -> None:
    """All disparities that may be claimed are one family, equivalences another."""
    rows = audit(
        **selected((800, 1000), (650, 1000), (620, 1000)),
        metrics=["selection_rate", "base_rate"],
        margin={"selection_rate": 0.1},
        rng=1,
    ).rows
    margin, plain = rows[:3], rows[3:]
    within = [row.equivalence_pvalue for row in margin]
    claims = [*(row.exceedance_pvalue for row in margin), *(row.pvalue for row in plain)]
    assert [row.adjusted_equivalence_pvalue for row in margin] == pytest.approx(holm(within))
    adjusted = [row.adjusted_exceedance_pvalue for row in margin]
    adjusted += [row.adjusted_pvalue for row in plain]
    assert adjusted == pytest.approx(holm(claims))
    assert [row.verdict for row in margin] == ["disparity", "disparity", "equivalent"]
    for row in margin:
        assert row.result is not None
        assert row.exceedance_pvalue is not None
        assert row.result.pvalue <= row.exceedance_pvalue


def holm(pvalues: list[Any]) -> list[float]:
    return multipletests(pvalues, method="holm")[1].tolist()  # type: ignore[no-any-return]


def test_one_direction_is_one_test_at_the_margin() -> None:
    two = one_row((80, 100), (50, 100), margin=0.1).exceedance_pvalue
    above = one_row((80, 100), (50, 100), margin=0.1, alternative="greater").exceedance_pvalue
    below = one_row((80, 100), (50, 100), margin=0.1, alternative="less").exceedance_pvalue
    assert above is not None
    assert two == 2 * above
    assert below == pytest.approx(1)


@pytest.mark.parametrize("name", ["tpr", "recall", "true_positive_rate"])
def test_margins_by_any_name_of_a_metric(name: str) -> None:
    (row,) = audit(**DATA_OF_TWO, metrics=["tpr"], margin={name: 0.3}, rng=1)
    assert row.margin == 0.3


def test_complements_may_have_margins_of_their_own() -> None:
    """Each margin has its own p-value, though the hypothesis of no gap is one."""
    rows = audit(
        **DATA_OF_TWO,
        metrics=["tpr", "fnr"],
        margin={"tpr": 0.3, "fnr": 0.05},
        adjust=None,
        rng=1,
    )
    first, second = rows
    for row in rows:
        (single,) = audit(
            **DATA_OF_TWO, metrics=[row.metric], margin=row.margin, adjust=None, rng=1
        )
        assert row.equivalence_pvalue == single.equivalence_pvalue
        assert row.exceedance_pvalue == single.exceedance_pvalue
    assert first.equivalence_pvalue is not None
    assert second.equivalence_pvalue is not None
    assert first.equivalence_pvalue < second.equivalence_pvalue
    assert (first.verdict, second.verdict) == ("equivalent", "inconclusive")


def test_only_one_complement_has_a_margin() -> None:
    first, second = audit(**DATA_OF_TWO, metrics=["tpr", "fnr"], margin={"tpr": 0.3}, rng=1)
    assert first.equivalence_pvalue is not None
    assert (second.margin, second.equivalence_pvalue) == (None, None)


@pytest.mark.parametrize(
    ("options", "lack"),
    [
        ({"metrics": "equalized_odds"}, "for several gaps at once; audit them one by one"),
        ({"metrics": "selection_rate", "variance": None}, "without a standard error"),
    ],
)
def test_where_no_test_exists_at_a_margin(options: dict[str, Any], lack: str) -> None:
    y_true = np.arange(400) % 2
    y_pred = np.where(np.arange(400) < 200, 1, np.arange(400) % 4 > 1)
    group = np.where(np.arange(400) < 200, "a", "b")
    (row,) = audit(y_true, y_pred, sensitive_features=group, **options, margin=0.1, rng=1)
    assert row.verdict == "inconclusive"
    assert row.exceedance_pvalue is row.equivalence_pvalue is None
    assert row.reason.endswith(
        f"whether it exceeds the margin of 10.0 points cannot be tested {lack}."
    )


@pytest.mark.parametrize(("alternative", "counts"), [("greater", (10, 90)), ("less", (90, 10))])
def test_a_gap_in_the_direction_that_was_not_tested(
    alternative: str, counts: tuple[int, int]
) -> None:
    first, second = ((n, 100) for n in counts)
    row = one_row(first, second, alternative=alternative)
    assert row.verdict == "inconclusive"
    assert row.reason.startswith("not decided: the gap is on the other side of the alternative")
    other = one_row(second, first, alternative=alternative)
    assert other.verdict == "disparity"
    near = one_row((50, 100), (50, 100), alternative=alternative)
    assert "chance could explain this gap" in near.reason


def test_a_gap_that_only_the_adjustment_leaves_open_says_so() -> None:
    y_pred = np.r_[np.repeat([1, 0], [64, 36]), np.tile([1, 0], 100)]
    group = np.repeat(["a", "b", "c"], 100)
    (first, *_) = audit(None, y_pred, sensitive_features=group, metrics="selection_rate", rng=1)
    assert first.result is not None
    assert first.result.confidence_interval[0] > 0
    assert re.fullmatch(
        r"not decided: adjusted for the number of comparisons, chance could explain this gap "
        r"\(adjusted p = 0\.1\d+; by itself p = 0\.04\d+\), and a real one is not ruled out\.",
        first.reason,
    )


# Ratios


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((100, 1000), (400, 1000), "not met"),
        ((400, 1000), (100, 1000), "not met"),
        ((400, 1000), (410, 1000), "met"),
        ((40, 100), (45, 100), "undecided"),
    ],
)
def test_the_rule_of_a_ratio(
    first: tuple[int, int], second: tuple[int, int], expected: str
) -> None:
    given = selected(first, second)
    (row,) = rows = audit(**given, metrics="selection_rate", ratio=0.8)
    assert row.ratio_verdict == expected
    # one hypothesis is not adjusted: the p-values are those of the single tests
    shown = equivalence_test(**given, metric="selection_rate", ratio=0.8)
    assert row.adjusted_ratio_equivalence_pvalue == shown.pvalue
    assert (row.ratio_bound, row.cells()["ratio_verdict"]) == (0.8, expected)
    assert "Met: shown to lie between 0.8 and 1.25" in repr(rows)
    assert row.ratio_text.endswith(f", {expected}")
    assert str(escape(row.ratio_text)) in rows._repr_html_()
    assert row.ratio_text in repr(rows)
    assert "A ratio keeps to its bound (met)" in describe_ratio_rule(AuditView.of(rows))
    assert "shown to lie" not in repr(audit(**given, metrics="selection_rate"))


@pytest.mark.parametrize(
    ("first", "second", "options", "text", "estimate"),
    [
        ((30, 100), (40, 100), {}, "0.750 < 0.8, undecided", "not met"),
        ((40, 100), (30, 100), {}, "1.333 > 1.25, undecided", "not met"),
        ((40, 100), (30, 100), {"alternative": "less"}, "1.333 > 1.25, undecided", "met"),
        ((24, 100), (30, 100), {}, "0.800 ≥ 0.8, undecided", "met"),
        ((79_999, 100_000), (100_000, 100_000), {}, "0.79999 < 0.8, undecided", "not met"),
        ((3, 100), (0, 100), {}, "∞ > 1.25, undecided", "not met"),
        ((3, 10), (4, 10), {}, "0.750 < 0.8, not judged", None),
        ((71, 100), (50, 100), {"ratio": 0.7}, "1.420 ≤ 1.429, undecided", "met"),
    ],
)
def test_a_ratio_and_what_is_shown_of_it(
    first: tuple[int, int],
    second: tuple[int, int],
    options: dict[str, Any],
    text: str,
    estimate: str | None,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        rows = audit(
            **selected(first, second), metrics="selection_rate", **{"ratio": 0.8, **options}
        )
    (row,) = rows
    assert (row.ratio_text, row.ratio_estimate_verdict) == (text, estimate)
    assert row.cells()["ratio_estimate_verdict"] == estimate
    assert row.to_dict()["ratio_estimate_verdict"] == estimate
    (read,) = Audit.from_dict(rows.to_dict())
    assert (read.ratio_text, read.ratio_estimate_verdict) == (text, estimate)
    assert str(escape(text)) in rows.to_html()
    assert f"| {text} |" in as_markdown(rows, [])


def test_ratios_are_adjusted_for_their_number() -> None:
    given = selected((100, 400), (140, 400), (160, 400))
    rows = audit(**given, metrics=["selection_rate", "base_rate"], ratio={"selection_rate": 0.9})
    by_metric = {name: rows.where(metric=name) for name in ("selection_rate", "base_rate")}
    assert {row.ratio_verdict for row in by_metric["base_rate"]} == {None}
    raw = [ratio_pvalues(row.result, 0.9) for row in by_metric["selection_rate"] if row.result]
    for place, name in enumerate(("exceedance", "equivalence")):
        adjusted = adjust_pvalues(np.array([one[place] for one in raw]), "holm")
        found = [
            getattr(row, f"adjusted_ratio_{name}_pvalue") for row in by_metric["selection_rate"]
        ]
        assert found == pytest.approx(adjusted.tolist())


@pytest.mark.parametrize("ratio", [0, 1, 1.25, -1])
def test_bad_ratios(ratio: float) -> None:
    with pytest.raises(InputError, match=r"^ratio must be a number strictly between 0 and 1; got"):
        audit(**selected((3, 9), (2, 9)), metrics="selection_rate", ratio=ratio)
