"""What a report says was asked: which rows are positive, and which groups are swept."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm.cli.commands.audit import make_sweeps
from fairperm.report import charts, sentences
from fairperm.report.page import as_html
from fairperm.report.sentences import describe_findings, mark_gap
from fairperm.report.view import AuditView
from tests.support.report_pages import Page, compas_audit, compas_page

pytestmark = pytest.mark.xdist_group("report")


def asked(html: str) -> str:
    """Return the definitions in "What was asked"."""
    text = Page(html).text
    return text[text.index("alone explains?") : text.index("Groups with fewer than")]


def test_what_is_positive_is_described() -> None:
    compas = fairperm.datasets.load_compas()
    options: dict[str, Any] = {"threshold": 5, "metrics": "fnr", "n_resamples": 99, "rng": 1}
    options["sensitive_features"] = compas["sex"]
    audit = fairperm.audit("two_year_recid", y_score="decile_score", data=compas, **options)
    told = "Predicted positive: decile_score of at least 5; positive: two_year_recid = 1."
    assert told in asked(audit.to_html())
    audit = fairperm.audit(compas["two_year_recid"], y_score=compas["decile_score"], **options)
    told = "Predicted positive: a score of at least 5; positive: a true label of 1."
    assert told in asked(audit.to_html())


def test_what_is_positive_is_described_for_predictions_and_other_labels() -> None:
    y = ["<b>yes</b>", "no"] * 180
    options: dict[str, Any] = {"metrics": "fpr", "pos_label": "<b>yes</b>", "rng": 1}
    options["sensitive_features"] = np.array(["a", "a", "b"] * 120)
    data = {"<i>truth</i>": y, "x" * 999: y[::-1]}
    html = fairperm.audit("<i>truth</i>", "x" * 999, data=data, **options).to_html()
    assert not Page(html).all("i")
    told = asked(html)
    assert told.count("x") < 100
    assert re.search(r"Predicted positive: x+…x+ = <b>yes</b>; positive: <i>truth</i> = <b>y", told)
    unnamed = "Predicted positive: a prediction of <b>yes</b>; positive: a true label of <b>yes</b>"
    assert unnamed in asked(fairperm.audit(y, y[::-1], **options).to_html())


def test_what_is_positive_is_left_out_where_nothing_is() -> None:
    rng = np.random.default_rng(1)
    groups = ["a", "b"] * 130
    numbers = fairperm.audit(
        rng.random(260), rng.random(260), sensitive_features=groups, metrics="r2_score", rng=1
    )
    assert "ositive:" not in asked(numbers.to_html())
    scores = fairperm.audit(
        rng.random(260) < 0.5,
        y_score=np.arange(260),
        sensitive_features=groups,
        metrics="roc_auc",
        n_resamples=99,
        rng=1,
    )
    told = asked(scores.to_html())
    assert "Positive: a true label of 1." in told
    assert "Predicted" not in told


def test_every_attribute_has_a_reference() -> None:
    data = {"a": np.repeat(["x", "y", "z"], 80), "b": np.tile([1, 2], 120), "p": [0, 1, 1] * 80}
    options: dict[str, Any] = {"sensitive_features": ["a", "b"], "compare": "reference"}
    audit = fairperm.audit(y_pred="p", data=data, reference={"b": 2}, **options)
    told = "The reference is the largest group for a, 2 for b."
    assert told in Page(audit.to_html()).text


def read_small_audit(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Page:
    """Return the report of an audit of 240 rows, without charts."""
    monkeypatch.setattr(charts, "draw_forest", lambda _, **__: None)
    monkeypatch.setattr(charts, "draw_null", lambda _: None)
    y = np.arange(240) % 3 == 0
    data = {"y": y, "p": np.arange(240) % 5 < 2 + y, "w": 2500.5 + np.arange(240) % 2}
    data |= {"sex": np.repeat(["f", "m"], 120), "who": np.arange(240) // 2}
    data["male"] = (data["sex"] == "m").astype(int)
    options = {"metrics": ["fnr", "accuracy"], "n_resamples": 99, "rng": 1, **options}
    options = {"sensitive_features": "sex"} | options
    return Page(fairperm.audit("y", "p", data=data, **options).to_html())


def test_method_says_which_tests_exchange_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    page = read_small_audit(monkeypatch, metrics=["fnr", "mse"])
    assert (
        "those of the tables that two groups with one rate can have (false negative rate), and "
        "those of permutations, in which rows exchange their group labels (mean squared error)."
    ) in page.text
    rates = read_small_audit(monkeypatch)
    assert "can have (false negative rate and accuracy). This controls" in rates.text
    assert "labels are exchanged" not in rates.text
    assert "p-value largest, in an interval that almost surely contains the common" in rates.text
    exchanged = read_small_audit(monkeypatch, scheme="pooled", margin=0.1)
    assert "in practice: comparisons also ask whether the gap exceeds the margin" in exchanged.text
    assert "permutation tests: group labels are exchanged among rows" in exchanged.text


@pytest.mark.parametrize(
    ("numbers", "stopped", "says"),
    [
        ([99, 99], [False, False], "99 random permutations were drawn."),
        ([9999], [False], "9,999 random permutations were drawn."),
        ([1999], [True], "1,999 random permutations were drawn: drawing stopped where 20 of them"),
        ([9999, 1999, 3000], [False, True, True], "1,999 to 9,999 random permutations were drawn"),
    ],
)
def test_method_says_how_many_were_drawn_and_why(
    numbers: list[int], stopped: list[bool], says: str
) -> None:
    results: Any = [
        SimpleNamespace(n_resamples=n, stopped_early=early, alternative="two-sided")
        for n, early in zip(numbers, stopped, strict=True)
    ]
    found = sentences._describe_draws(results)
    assert found.startswith(says)
    assert ("more would hardly change the p-value" in found) == any(stopped)


def test_weights_are_no_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    page = read_small_audit(monkeypatch, sample_weight="w", min_group_size=30)
    assert "Rows count by their weights (w): values of metrics are weighted." in page.text
    assert "– weighted share of positives predicted negative" in page.text
    assert "Groups with fewer than 30 effective relevant rows get no verdict." in page.text
    assert "weighted, 16 of 40 rows" in page.text
    assert "240 of 240 rows used, 0 left out for missing values." in page.text
    assert not re.search(r"\d,\d{3}[.,\d]* of \d", page.text)


def test_clusters_are_what_is_exchanged_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    page = read_small_audit(monkeypatch, cluster="who", min_group_size=10)
    assert "Rows of one cluster (who) belong together: clusters are compared" in page.text
    assert "Group labels were exchanged among the clusters of both groups" in page.text
    assert "among rows" not in page.text
    assert "all rows" not in page.text
    assert "16 of 40 rows, 60 clusters in the group" in page.text
    assert (
        "240 of 240 rows used, 0 left out for missing values. They are in 120 clusters."
        in page.text
    )
    assert [tag.text for tag in page.all("th") if tag.text in {"Group", "Clusters", "Rows"}] == [
        *("Group", "Clusters", "Rows")
    ]
    assert "Groups with fewer than 10 effective relevant clusters get no verdict." in page.text


def test_numbers_and_joint_metrics_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"metrics": ["fnr", "equalized_odds"], "min_group_size": 10}
    page = read_small_audit(monkeypatch, sensitive_features="male", **options)
    assert "male = 0: 40.0 % (16 of 40), male = 1: 40.0 % (16 of 40): a gap of" in page.text
    assert "male = 0 and male = 1: the largest absolute gap (" in page.text
    shown = [tag.text for tag in page.all("span") if tag.attributes.get("class") == "sub"]
    assert {"(male = 0) − (male = 1)", "male = 0 and male = 1"} <= set(shown)


def test_strata_without_a_name_have_no_number_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    page = read_small_audit(monkeypatch, control_features=np.arange(240) % 2, min_group_size=10)
    assert "Only rows of the same stratum are compared with each other." in page.text
    page = read_small_audit(monkeypatch, control_features="w", min_group_size=10)
    assert "Only rows of the same stratum (w) are compared with each other." in page.text


def test_a_metric_is_explained_by_one_of_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    people = "such as the share of people predicted positive."
    assert people in read_small_audit(monkeypatch, metrics=["mse", "fnr"]).text
    errors = read_small_audit(monkeypatch, metrics="mse", distances="tv").text
    assert "computed in each group, such as its mean squared error." in errors
    distances = read_small_audit(monkeypatch, metrics=None, distances="tv").text
    assert "A number that measures how much the distributions of two groups differ." in distances
    assert "Gap The distance between the distributions of two groups." in distances


def test_strata_are_where_labels_are_exchanged_and_gaps_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = read_small_audit(monkeypatch, control_features="w", metrics="mse")
    assert "Group labels were exchanged within each stratum, among all rows of both" in page.text
    assert "group labels are exchanged among the rows of each stratum, and" in page.text
    assert "Each gap is a weighted mean over the strata of the value of the first" in page.text
    assert "minus the metric in another, as a weighted mean over the strata." in page.text
    assert "Each gap is the value of" not in page.text


def test_no_sentence_denies_a_gap_that_a_row_shows() -> None:
    """With a margin a gap can be inconclusive that is there, but may be below the margin."""
    group = np.repeat(["a", "b", "c"], 400)
    y = np.tile(np.arange(400), 3) < np.repeat([160, 210, 190], 400)
    audit = fairperm.audit(y, sensitive_features=group, metrics="base_rate", margin=0.1, rng=1)
    assert any("there is a gap" in row.reason for row in audit)
    (finding,) = describe_findings(AuditView.of(audit))
    text = " ".join(finding.sentences)
    assert (
        "3 comparisons are inconclusive: whether a gap exceeds the margin is not settled." in text
    )
    assert "No disparity was found" not in text
    n_shown = text.count(" Chance does not explain it (adjusted p = ")
    assert n_shown == sum("there is a gap" in row.reason for row in audit)
    which = "all" if n_shown == 3 else n_shown
    assert audit.answer == (
        "None of 3 judged gaps is shown to exceed the margin. 3 are undecided: gaps beyond the "
        "margin are not "
        f"ruled out, and chance does not explain {which} of them."
    )


def test_gaps_within_the_margin_are_not_said_to_be_open() -> None:
    group = np.repeat(["a", "b", "c"], [2000, 2000, 60])
    audit = fairperm.audit(
        np.arange(4060) % 2, sensitive_features=group, metrics="base_rate", margin=0.1, rng=1
    )
    assert AuditView.of(audit).answer == (
        "None of 3 judged gaps is shown to exceed the margin. 1 is within the margin. 2 are "
        "undecided: gaps beyond the margin are not ruled out."
    )


def test_margins_are_those_of_their_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    own: dict[str, Any] = {"margin": {"accuracy": 0.5}, "min_group_size": 10}
    one = read_small_audit(monkeypatch, **own).text
    assert (
        "A gap of at most the margin (50.0 points in accuracy) is taken not to matter in practice: "
        "these comparisons also ask"
    ) in one
    assert (
        "1 equivalent The gap was shown to be within the margin. 1 inconclusive Not decided. "
        "Chance could explain the gap, and a real gap is possible."
    ) in one
    assert "Detectable gap above the margin" not in one
    own["margin"] = {"accuracy": 0.01}
    assert (
        "it exceeds the margin is not settled. In metrics without a margin: chance could explain "
        "the gap, and a real gap is possible."
    ) in read_small_audit(monkeypatch, **own).text
    assert "the margin (60.0 points in false negative rate; 50.0 points in accuracy) is taken" in (
        read_small_audit(monkeypatch, margin={"fnr": 0.6, "accuracy": 0.5}).text
    )


def test_margins_are_explained() -> None:
    text = Page(compas_page()).text
    assert "The gap was shown to exceed the margin." in text
    assert "there is a gap, but whether it exceeds the margin is not settled." in text
    assert (
        "probability of any false disparity at 5 % or below. The same bound holds for gaps that "
        "are wrongly called equivalent; for both kinds of error together it is 10 %."
    ) in text


def test_pages_name_no_arguments_or_attributes_of_python() -> None:
    rng = np.random.default_rng(1)
    group, y = np.arange(360) % 3, np.arange(360) % 2
    with pytest.warns(fairperm.FairpermWarning, match="comparisons have notes, in the rows"):
        audit = fairperm.audit(
            y,
            y_score=rng.random(360),
            sensitive_features={"g": np.array([*"abc"])[group]},
            cluster=np.arange(360) // 15 * 3 + group,
            metrics="roc_auc",
            min_group_size=2,
            n_resamples=199,
            rng=1,
        )
    text = Page(audit.to_html()).text
    assert "There is no p-value for all groups at once in g · ROC AUC: too few groups" in text
    assert "permutation_test" not in text
    assert "result.notes" not in text
    for row in audit:
        assert row.result is not None
        assert all(note in text for note in row.result.notes)


# Thresholds.


def test_attributes_without_a_sweep_have_a_reason() -> None:
    audit = compas_audit().where(attribute="sex")
    reasons = {"<b>race</b>": "the groups <i>are</i> too small.", "x" * 99: "no reason."}
    page = Page(as_html(audit, not_swept=reasons))
    assert not page.all("i")
    assert "race" not in [tag.text for tag in page.all("b")]
    told = "was not tested over all thresholds:"
    assert f"<b>race</b> {told} the groups <i>are</i> too small." in page.text
    assert f"xx {told} no reason." in page.text
    assert "Move the slider" not in page.text
    assert told not in Page(compas_page()).text


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ({}, ("Female", "Male")),
        ({"compare": "reference", "reference": "Female"}, ("Male", "Female")),
        ({"compare": "rest"}, ("Female", "Male")),
    ],
)
def test_sweeps_have_the_groups_in_the_order_of_the_table(
    options: dict[str, Any], groups: tuple[str, str]
) -> None:
    compas = fairperm.datasets.load_compas()
    given: dict[str, Any] = {"metrics": "fnr", "n_resamples": 99, "rng": 1, **options}
    audit = fairperm.audit(
        "two_year_recid",
        y_score="decile_score",
        threshold=5,
        data=compas,
        sensitive_features="sex",
        **given,
    )
    made = make_sweeps(
        *(audit, compas),
        label="two_year_recid",
        score="decile_score",
        attributes=["sex"],
        thresholds=[5],
    )
    (sweep,) = made.found
    assert sweep.groups == groups
    if options.get("compare") != "rest":
        assert audit.rows[0].groups == groups
        gap = sweep.curves["false_negative_rate"].difference[0]
        assert gap == pytest.approx(audit.rows[0].difference, abs=1e-12)


def test_names_of_gaps_in_headings_keep_apart() -> None:
    assert mark_gap("a", "b < c") == "<bdi>a</bdi> − <bdi>b &lt; c</bdi>"
    assert mark_gap("male = 0", "x") == "<bdi>(male = 0)</bdi> − <bdi>x</bdi>"


def test_a_sweep_says_which_family_it_is_about_and_what_the_audit_says() -> None:
    """Beyond all thresholds of its metric, and yet inconclusive among twenty comparisons."""
    rng = np.random.default_rng(4)
    n = 600
    score = np.repeat([3, 2, 1, 3, 2, 1], [122, 78, 100, 90, 110, 100])
    data = {"y": np.arange(n) % 2, "s": score, "g": np.repeat(["a", "b"], n // 2)}
    others = {f"x{i}": rng.choice(["u", "v"], n) for i in range(19)}
    audit = fairperm.audit(
        "y",
        y_score="s",
        threshold=3,
        sensitive_features=["g", *others],
        metrics="selection_rate",
        data=data | others,
        rng=1,
    )
    sweep = fairperm.threshold_sweep(
        "y", "s", sensitive_features="g", metric="selection_rate", data=data, thresholds=[2, 3],
        n_resamples=999, rng=1,
    )  # fmt: skip
    row = audit.rows[0]
    assert (row.verdict, sweep.curves["selection_rate"].adjusted_pvalue[1] <= 0.05) == (
        "inconclusive",
        True,
    )
    page = audit.to_html(sweep=sweep)
    assert "Beyond what chance explains, over all thresholds of this metric alone" in page
    assert "even over all thresholds" not in page
    text = Page(page).text
    assert (
        f"The audit of g · selection rate at its threshold of 3: inconclusive, {row.reason}" in text
    )
    assert "At the audit’s threshold, its verdict counts." in text
