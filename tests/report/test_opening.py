"""The beginning of a report: who, when and what, the case in five lines, and names of its own."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
import pytest

import fairperm
from fairperm._utils.formatting import format_beside
from fairperm.metrics import pinball_loss
from fairperm.metrics.registry import metric_names
from fairperm.report.plain_words import READINGS, find_case
from fairperm.report.presentation import Presentation
from fairperm.report.rerun import write_call
from tests.support.report_pages import Page, compas_audit, compas_page

pytestmark = pytest.mark.xdist_group("report")


def small_audit(y_pred: Any = None, **options: Any) -> fairperm.Audit:
    """Return an audit of 400 people: of 100 women who passed the model fails 60, of 100 men 20."""
    y_true = np.repeat([1, 0], 200)
    fails = np.r_[np.repeat([0, 1], [60, 40]), np.repeat([0, 1], [20, 80]), np.zeros(200)]
    given: dict[str, Any] = {
        "sensitive_features": {"sex": np.tile(np.repeat(["F", "M"], 100), 2)},
        "metrics": ["fnr", "selection_rate"],
        "rng": 1,
        **options,
    }
    return fairperm.audit(y_true, fails if y_pred is None else y_pred, **given)


def opening(audit: fairperm.Audit, **options: Any) -> str:
    """Return the page up to its findings."""
    text = Page(audit.to_html(**options)).text
    return text[: text.index("What was found What was asked")]


# The case in a few lines.


def test_case_is_in_its_own_words() -> None:
    names = {"sex": {"F": "women", "M": "men"}}
    text = opening(small_audit(), rename=names, positive_means="passed the exam")
    assert (
        "Among people who passed the exam, the model missed 60.0 % of women and "
        "20.0 % of men; at the rate of men, about 40 fewer women. Chance "
        "alone does not explain this gap (adjusted p < 0.0001)."
    ) in text
    assert "the model predicted “passed the exam” for 40.0 % of men and 20.0 % of women" in text


def test_four_fifths_rule_has_its_ratio() -> None:
    text = opening(small_audit())
    assert re.search(
        r"Four-fifths rule .*: sex: F’s rate is 0\.500 times that of M \(95 % interval 0\.\d+ to "
        r"0\.\d+\), clearly below 0\.8\.",
        text,
    )
    assert "Four-fifths" not in opening(small_audit(metrics="fnr"))
    told = "F’s rate is 0.500 times that of M, which breaks the bound of 0.8 beyond chance."
    assert told in opening(small_audit(ratio={"selection_rate": 0.8}))
    fewer = np.tile(np.repeat([0, 1], 50), 4)
    assert "clearly at least 0.8." in opening(small_audit(fewer))
    fewer[50:60] = 0
    assert "at least 0.8 here, but the true ratio may not be." in opening(small_audit(fewer))
    fewer[60:75] = 0
    assert "below 0.8 here, but the true ratio may not be." in opening(small_audit(fewer))


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.79996, "0.79996"), (0.8, "0.800"), (0.8004, "0.8004"), (0.81, "0.810"), (0.0, "0.000")],
)
def test_ratios_show_on_which_side_of_four_fifths_they_are(ratio: float, text: str) -> None:
    assert format_beside(ratio, 0.8)[0] == text


def test_four_fifths_rule_applies_to_a_group_of_which_nobody_is_selected() -> None:
    people = np.repeat(["a", "b", "c"], 100)
    chosen = np.r_[np.zeros(100), np.arange(200) % 2]
    given: dict[str, Any] = {"sensitive_features": {"g": people}, "metrics": "selection_rate"}
    text = opening(fairperm.audit(None, chosen, **given))
    assert "g: a’s rate is 0.000 times that of b" in text
    assert "were not compared" not in text
    text = opening(fairperm.audit(None, chosen, **given, compare="reference", reference="b"))
    assert "Groups that were not compared may have smaller ratios." in text


def test_summary_has_at_most_five_lines() -> None:
    html = compas_page()
    lines = html[html.index('<ol class="lines">') :]
    assert 2 <= lines[: lines.index("</ol>")].count("<li>") <= 5
    assert "whether a difference is lawful." in lines


def test_favourable_rates_count_those_who_have_fewer() -> None:
    text = opening(small_audit(metrics="tpr"))
    assert "the model rightly flagged 80.0 % of M and 40.0 % of F people" in text
    assert "at the rate of M, about 40 more F people." in text


def test_rates_and_their_complements_are_one_line() -> None:
    text = opening(small_audit(metrics=["fnr", "tpr"]))
    assert "the model missed" in text
    assert "rightly flagged" not in text


def test_what_is_not_decided_is_not_counted_in_people() -> None:
    equal = np.tile(np.repeat([0, 1], 50), 4)
    text = opening(small_audit(equal, metrics="fnr"))
    assert "These data do not decide whether there is a real gap." in text
    assert "people of" not in text
    with_margin = opening(small_audit(equal, metrics="fnr", margin=0.4))
    assert "The gap is within the margin of 40.0 points." in with_margin


def test_gaps_that_are_shown_come_before_those_within_the_margin() -> None:
    sex, fails = np.tile(np.repeat(["a", "b", "c"], 100), 2), [60, 20, 20]
    fails = np.r_[*(np.arange(100) >= n for n in fails), np.zeros(300)]
    audit = fairperm.audit(
        np.repeat([1, 0], 300), fails, sensitive_features={"sex": sex}, metrics="fnr", margin=0.38
    )
    assert {row.verdict for row in audit} == {"inconclusive", "equivalent"}
    assert (
        "missed 60.0 % of a and 20.0 % of b people; at the rate of b, about 40 fewer a people. "
        "Chance alone does not explain this gap (adjusted p < 0.0001), but these data do not "
        "decide whether the gap exceeds the margin of 38.0 points."
    ) in opening(audit)


@pytest.mark.parametrize(("adjust", "name"), [(None, "p"), ("holm", "adjusted p")])
def test_pvalues_are_called_adjusted_only_if_they_are(
    adjust: Literal["holm"] | None, name: str
) -> None:
    sex, fails = np.tile(np.repeat(["a", "b", "c"], 100), 2), [60, 20, 20]
    fails = np.r_[*(np.arange(100) >= n for n in fails), np.zeros(300)]
    audit = fairperm.audit(
        np.repeat([1, 0], 300), fails, sensitive_features=sex, metrics="fnr", adjust=adjust
    )
    assert f"Chance alone does not explain this gap ({name} < 0.0001)." in opening(audit)


def test_decisions_without_labels_have_no_positives_but_predicted_ones() -> None:
    decisions = {"sex": np.repeat(["F", "M"], 100), "hired": np.tile(["yes", "no"], 100)}
    audit = fairperm.audit(
        y_pred="hired", data=decisions, sensitive_features="sex", pos_label="yes", rng=1
    )
    text = Page(audit.to_html()).text
    assert "Predicted positive hired = yes In short" in text
    assert "It does not show their causes or whether a difference is lawful." in text
    assert "Predicted positive: hired = yes. " in text
    assert "all groups at once" not in text  # there are two
    assert "whether the labels are right, or whether" in opening(small_audit())


def test_weighted_and_clustered_rows_are_not_people() -> None:
    for options in ({"sample_weight": np.ones(400)}, {"cluster": np.arange(400) // 2}):
        text = opening(small_audit(**options))
        assert "Data 400 rows" in text
        assert "people of" not in text


def test_every_metric_has_a_sentence_for_everyone() -> None:
    assert set(READINGS) == set(metric_names())
    assert all(text.endswith(".") for text in READINGS.values())
    assert "1 is perfect, 0.5 is a coin toss." in Page(compas_page()).text


def test_cases_without_words_of_their_own() -> None:
    case = find_case("fpr", None)
    assert case is None  # an alias is no registered name
    case = find_case("false_positive_rate", None)
    assert case is not None
    told = "Among people who have a negative label, the model wrongly flagged"
    assert case.text == told


# Who, when, which file.


def test_page_begins_with_who_when_and_what() -> None:
    audit = small_audit()
    text = opening(
        audit,
        title="The case",
        author="<b>A. Author</b>",
        note="A <i>note</i>.",
        positive_means="passed",
        provenance={"file": "people.csv"},
    )
    assert text.index("The case") < text.index("A <i>note</i>.") < text.index("In short")
    for told in (
        "Author <b>A. Author</b>",
        "Data people.csv: 400 people (one row each)",
        "Predicted positive a prediction of 1",
        "Positive a true label of 1, that is, people who passed",
    ):
        assert told in text
    assert re.search(r"Date \d{4}-\d\d-\d\d", text)


def test_meaning_of_positives_needs_positives() -> None:
    numbers = np.arange(400) / 7
    audit = small_audit(numbers, metrics="mean_prediction")
    with pytest.raises(fairperm.InputError, match="positive_means must be left out; got 'paid'"):
        audit.to_html(positive_means="paid")


# Names of groups.


def test_names_are_used_everywhere_and_the_data_keep_theirs() -> None:
    html = small_audit().to_html(rename={"sex": {"F": "<women>"}})
    page = Page(html)
    assert "<women> (F in the data)" in page.text
    assert "\\u003cwomen\\u003e \\u2212 M" in html  # in the chart
    assert not page.all("women")
    cells = [tag.text for tag in page.all("th") if "groups" in (tag.attributes.get("class") or "")]
    assert cells
    assert all(one.split() == ["<women>", "M"] for one in cells)


def test_names_of_intersections_are_made_of_their_parts() -> None:
    old = np.tile([0, 1], 200)
    sex = np.tile(np.repeat(["F", "M"], 100), 2)
    audit = small_audit(sensitive_features={"sex": sex, "old": old}, intersections=True)
    text = Page(audit.to_html(rename={"sex": {"F": "women"}, "old": {0: "young"}})).text
    assert "women × young" in text


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        (
            {"sexx": {}},
            r"for attributes of the audit; got 'sexx'. Did you mean 'sex'",
        ),
        ({"sex": {"f": "x"}}, r"given for groups of 'sex'; got 'f'. Did you mean 'F'"),
    ],
)
def test_unknown_names_raise(rename: Any, message: str) -> None:
    with pytest.raises(fairperm.InputError, match=message):
        Presentation(rename=rename).find_names(small_audit())


# A short form.


def test_short_form_leaves_out_what_a_reader_can_do_without() -> None:
    audit = compas_audit()
    whole, short = (Page(audit.to_html(short=one)) for one in (False, True))
    assert {tag.text for tag in whole.all("h2")} - {tag.text for tag in short.all("h2")} >= {
        "Method and validity",
        "What chance alone explains",
    }
    assert not [tag for tag in short.all("table") if tag.attributes.get("class") == "comparisons"]
    assert "The full report has a table of all comparisons" in short.text
    assert "1 is perfect, 0.5 is a coin toss." in short.text
    assert len(short.text) < len(whole.text) / 3


# Run it again.


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"variance": None, "adjust": None, "alternative": "greater"},
        {"pos_label": 0, "n_resamples": 0},
        {"control_features": "age", "margin": {"fpr": 0.1}, "missing": "drop"},
        {"compare": "reference", "reference": {"sex": "M"}, "intersections": True},
    ],
)
def test_code_can_be_pasted(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    data = {
        "it's": rng.integers(0, 2, 240),
        "p": rng.integers(0, 2, 240),
        "sex": rng.choice(["F", "M"], 240),
        "old": rng.choice(["no", "yes"], 240),
        "age": rng.choice(["a", "b"], 240),
    }
    audit = fairperm.audit(
        "it's",
        "p",
        data=data,
        sensitive_features=["sex", "old"],
        metrics=["fpr", "accuracy"],
        **options,
    )
    code = write_call(audit)
    again = eval(code.removeprefix("import fairperm\n\n"), {"fairperm": fairperm, "data": data})  # noqa: S307
    assert again.to_dict() == audit.to_dict()
    shown = Page(audit.to_html()).text.partition("import fairperm ")[2].partition(", ) ")[0]
    again = eval(f"{shown})", {"fairperm": fairperm, "data": data})  # noqa: S307
    assert again.to_dict() == audit.to_dict()  # without the arguments that have their defaults
    assert "confidence_level" not in shown


def test_code_names_data_that_have_no_name() -> None:
    audit = small_audit(sample_weight=np.ones(400))
    code = write_call(audit)
    assert "y_true=y_true, y_pred=y_pred, sensitive_features=sensitive_features," in code
    assert "sample_weight=sample_weight," in code
    named = small_audit(metrics={"own": "fnr"})
    assert "metrics=metrics," in write_call(named)


def test_a_quantile_is_known_by_its_name() -> None:
    """Its pinball loss was "a metric defined by the user", whose code could not be pasted."""
    audit = small_audit(metrics=[pinball_loss(0.9)])
    assert "metrics=['pinball_loss(0.9)']," in write_call(audit)
    text = Page(audit.to_html()).text
    assert "mean loss of predictions of the quantile 0.9. 0 is perfect; it has the unit" in text
