"""Reports as files: what they say, how they are built, and that names from data are only text."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import time
from functools import cache
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pytest

import fairperm
from fairperm._utils.formatting import (
    format_name,
    format_pvalue,
    state_pvalue,
)
from fairperm.hypothesis_tests.results.answers.audits import unit_of_row
from fairperm.report.page import MAX_COMPACT_ROWS
from tests.support.report_pages import (
    HOSTILE,
    Page,
    compas_audit,
    compas_page,
    hostile_audit,
    hostile_data,
    hostile_page,
)

if TYPE_CHECKING:
    from pathlib import Path

# One worker makes the pages, once, where pytest-xdist knows how (--dist loadgroup).
pytestmark = pytest.mark.xdist_group("report")

PAGES = [pytest.param(compas_page, id="compas"), pytest.param(hostile_page, id="hostile")]


# What it says.


def test_verdicts_come_first_and_in_words() -> None:
    page = Page(compas_page())
    tally = {
        verdict: sum(row.verdict == verdict for row in compas_audit())
        for verdict in ("disparity", "inconclusive", "too small")
    }
    judged = tally["disparity"] + tally["inconclusive"]
    opening = page.text[:400]
    assert f"{tally['disparity']} of {judged} judged gaps " in opening
    assert (
        f"{tally['inconclusive']} are undecided: gaps beyond the margin are not ruled out"
        in opening
    )
    assert f"{tally['too small']} could not be judged." in opening


def test_largest_disparity_has_its_counts_and_interval() -> None:
    text = Page(compas_page()).text
    assert (
        "African-American 57.6 % (1,829 of 3,175), Other 20.4 % (70 of 343): a gap of 37.2 "
        "percentage points (adjusted interval" in text
    )
    for row in compas_audit().where(verdict="disparity", metric="selection_rate"):
        assert row.names[0] in text.partition("race · selection rate")[2]


def test_every_comparison_has_its_row_with_all_numbers() -> None:
    audit = compas_audit()
    cells = table_cells(compas_page())
    assert len(cells) == len(audit)
    for row, texts in zip(audit, cells, strict=True):
        joined, ends = " ".join(texts), unit_of_row(row).interval
        for group in row.groups:
            assert str(group) in texts[0]
        assert row.difference is not None
        for wanted in (
            unit_of_row(row).signed(row.difference),
            ends(row.confidence_interval).removesuffix(" points"),
            ends(row.adjusted_interval).removesuffix(" points"),
            format_pvalue(row.pvalue),
            format_pvalue(row.adjusted_pvalue),
            row.verdict,
        ):
            assert wanted in joined
        assert row.result is not None
        for group, counts in row.result.counts.items():
            if "denominator" in counts:
                low, high = row.result.value_intervals[group] or (0.0, 0.0)
                assert f"{100 * low:.1f} to {100 * high:.1f} %" in joined
                assert f"{counts['numerator']:,} of {counts['denominator']:,}" in joined


def table_cells(html: str) -> list[list[str]]:
    """Return the texts of the cells of every comparison."""
    start = html.index('<table class="comparisons')
    table = html[start : html.index("</table>", start) + len("</table>")]
    found: list[list[str]] = [[]]
    for tag in Page(table).tags:
        if tag.name == "tr":
            found.append([])
        elif tag.name in {"td", "th"}:
            found[-1].append(" ".join(tag.text.split()))
    return [cells for cells in found[2:] if len(cells) > 1]


def test_p_values_have_one_spelling_in_text_and_charts() -> None:
    page = Page(compas_page())
    everything = page.text + page.all("script")[0].text.replace("\\u003c", "<")
    assert "< 0.0001" in everything
    assert not re.search(r"<0\.0|\bp\b[^.]{0,12}\de-\d", everything)


def test_data_omnibus_power_method_and_settings() -> None:
    audit, text = compas_audit(), Page(compas_page()).text
    for one in audit.groups:
        assert one.positives is not None
        assert f"{one.rows:,}" in text
        assert f"{100 * one.positives / one.rows:.1f} %" in text
    assert "6,172 of 6,172 rows used, 0 left out for missing values." in text
    omnibus = audit.omnibus[0].result
    assert omnibus is not None
    assert f"All groups at once: {state_pvalue(omnibus.pvalue)}" in text
    assert "Gaps that this sample would detect" in text
    assert "Exact for the weak null (equal metric; base rates may differ)" in text
    assert "Asymptotically valid for the weak null (equal roc_auc; base rates may differ)" in text
    assert f"seed (rng) {audit.seed}" in text
    assert f"fairperm {fairperm_version()}" in text
    for note in {note for row in audit if row.result for note in row.result.notes}:
        assert note in text


def fairperm_version() -> str:
    from importlib.metadata import version

    return version("fairperm")


def test_dropped_rows_are_counted() -> None:
    audit = fairperm.audit(
        [1, 0, None, 1] * 60,
        [1, 0, 1, 0] * 60,
        sensitive_features=["a", "a", "b", "b"] * 60,
        metrics="accuracy",
        missing="drop",
        rng=1,
    )
    said = "180 of 240 rows used, 60 left out for missing values."
    assert Page(audit.to_html()).text.count(said) == 2  # at the beginning, and with the groups


@pytest.mark.parametrize("order", [("sex", "race"), ("race", "sex")])
def test_rows_are_counted_for_every_attribute(order: tuple[str, str]) -> None:
    columns = {"sex": ["f", "m", None, "m"] * 60, "race": ["a", "b", "b", None, "a", "b"] * 40}
    audit = fairperm.audit(
        y_pred=[1, 0, 1, 0] * 60,
        sensitive_features={name: columns[name] for name in order},
        missing="drop",
        rng=1,
    )
    counts = {one.attribute: (one.read, one.dropped, one.used) for one in audit.row_counts}
    assert counts == {"sex": (240, 60, 180), "race": (240, 40, 200)}
    assert fairperm.Audit.from_dict(audit.to_dict()).row_counts == audit.row_counts
    said = {"sex": "180 of 240 rows used, 60 left out", "race": "200 of 240 rows used, 40 left out"}
    parts = "; ".join(f"{one}: {said[one]}" for one in order)
    text = f"{parts[0].upper()}{parts[1:]}, all for missing values."
    assert text in Page(audit.to_html()).text
    assert f"240 people (one row each). {text}" in Page(audit.to_html()).text
    assert text in repr(audit)


def test_rows_that_only_some_metrics_lack() -> None:
    rows = 4 * 60
    audit = fairperm.audit(
        [1, 0, 1, 0] * 60,
        [1, 0, 1, 0] * 60,
        y_score=[None, *np.linspace(0, 1, rows - 1)],
        sensitive_features=["a", "a", "b", "b"] * 60,
        metrics="accuracy",
        distances="ks",
        missing="drop",
        n_resamples=199,
        rng=1,
    )
    (one,) = audit.row_counts
    assert (one.read, one.dropped, one.used, one.by_metric) == (240, 1, 239, True)
    assert "At least 239 of 240 rows used, up to 1 left out for missing values." in repr(audit)


def test_what_is_not_significant_is_never_called_fair_or_equal() -> None:
    rng = np.random.default_rng(2)
    audit = fairperm.audit(
        rng.random(400) < 0.5,
        rng.random(400) < 0.5,
        sensitive_features=["a", "b"] * 200,
        metrics=["selection_rate", "accuracy"],
        rng=1,
    )
    assert {row.verdict for row in audit} == {"inconclusive"}
    for html in (audit.to_html(), f"<main>{audit._repr_html_()}</main>"):
        text = Page(html).text
        assert "None of 2 judged gaps are larger than chance explains." in text
        assert "2 are undecided: real gaps are not ruled out." in text
        text = text.replace("(equal metric; base rates may differ)", "").replace(
            "the claim that the metric is equal in both groups", ""
        )
        assert not re.search(r"\b(fair|unbiased|equal|no gap|no difference)\b", text, re.I)


def test_glossary_has_at_most_five_terms() -> None:
    html = compas_page()
    words = html[html.index('<dl class="words">') :]
    assert words[: words.index("</dl>")].count("<dt>") <= 5


# Kinds of audits.


@cache
def audits() -> dict[str, fairperm.Audit]:
    rng = np.random.default_rng(2)
    n = 600
    y, p = rng.random(n) < 0.5, rng.random(n) < 0.5
    a, b = rng.choice(["u", "v", "w"], n), rng.choice([0, 1], n)
    common: dict[str, Any] = {"rng": 1, "n_resamples": 199}

    def own(y_true: Any, y_pred: Any) -> float:
        return float(np.mean(y_true == y_pred))

    with pytest.warns(fairperm.errors.FairpermWarning, match="Nothing was judged"):
        too_small = fairperm.audit(
            y, p, sensitive_features=a, metrics="fpr", min_group_size=10**6, **common
        )

    return {
        "intersections": fairperm.audit(
            y, p, sensitive_features={"a": a, "b": b}, metrics="fpr", intersections=True, **common
        ),
        "joint": fairperm.audit(y, p, sensitive_features=a, metrics="equalized_odds", **common),
        "numbers": fairperm.audit(
            rng.random(n), rng.random(n), sensitive_features=a, metrics="r2_score", **common
        ),
        "own metric": fairperm.audit(
            y, p, sensitive_features=b, metrics={"<own>": own}, n_bootstrap=20, **common
        ),
        "strata": fairperm.audit(
            y, p, sensitive_features=a, metrics="fpr", control_features=b, **common
        ),
        "one-sided": fairperm.audit(
            y, p, sensitive_features=b, metrics="fpr", alternative="greater", **common
        ),
        "not studentized": fairperm.audit(
            y, p, sensitive_features=b, metrics="fpr", variance=None, **common
        ),
        "too small": too_small,
        "not adjusted": fairperm.audit(
            y, p, sensitive_features=a, metrics="fpr", adjust=None, compare="rest", **common
        ),
        "equivalent": fairperm.audit(
            y, p, sensitive_features=b, metrics="accuracy", margin=0.5, **common
        ),
        "undefined": fairperm.audit(
            y & (a != "u"), p, sensitive_features=a, metrics="tpr", **common
        ),
        "no rows": compas_audit().where(verdict="equivalent"),
    }


@pytest.mark.validate
def test_every_kind_of_audit_has_a_report() -> None:
    for kind, audit in audits().items():
        html = audit.to_html()
        text = Page(html).text
        assert "StrictUndefined" not in html, kind
        assert not re.search(r"\b(nan|(?<!=)None(?! of)|inf)\b", text), kind
        assert len(table_cells(html)) == len(audit), kind
        Page(audit._repr_html_())
        read = fairperm.Audit.from_dict(json.loads(json.dumps(audit.to_dict(), allow_nan=False)))
        assert read.to_dict() == audit.to_dict(), kind
        assert repr(read) == repr(audit), kind


def test_one_sided_and_plain_tests_are_called_so() -> None:
    text = Page(audits()["one-sided"].to_html()).text
    assert "Only one direction counts: the first group above the second." in text
    assert "All tests are studentized: every gap is divided by its standard error" in text
    plain = Page(audits()["not studentized"].to_html()).text
    assert "studentized" not in plain
    assert "The gaps were not divided by a standard error." in plain


def test_reference_is_named() -> None:
    assert "The reference is the largest group." in Page(hostile_page()).text


def test_groups_of_intersections_are_named_by_their_parts() -> None:
    assert "u × b = 1" in Page(audits()["intersections"].to_html()).text


# How it is built.


@pytest.mark.parametrize("made", PAGES)
def test_nothing_is_loaded_and_only_these_scripts_run(made: Any) -> None:
    page = Page(made())
    for tag in page.tags:
        assert not {"src", "srcset", "action", "formaction", "data", "poster"} & set(tag.attributes)
        assert not [name for name in tag.attributes if name.startswith("on")]
        href = tag.attributes.get("href")
        assert href is None or href.startswith("#")
    assert not page.all("img", "link", "iframe", "object", "embed", "base", "form")
    data, *scripts = page.all("script")
    assert data.attributes == {"type": "application/json", "id": "charts"}
    assert [script.attributes for script in scripts] == [{}, {}]
    (policy,) = [tag for tag in page.all("meta") if "http-equiv" in tag.attributes]
    rules = policy.attributes["content"] or ""
    assert rules.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in rules[: rules.index("style-src")]
    for script in scripts:
        digest = hashlib.sha256(script.text.encode()).digest()
        assert f"'sha256-{base64.b64encode(digest).decode()}'" in rules
    assert page.comments == []


@pytest.mark.parametrize("made", PAGES)
def test_structure_can_be_read_aloud(made: Any) -> None:
    page = Page(made())
    levels = [int(tag.name[1]) for tag in page.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    (root,) = page.all("html")
    assert root.attributes["lang"] == "en"
    ids = [tag.attributes["id"] for tag in page.tags if "id" in tag.attributes]
    assert len(ids) == len(set(ids))
    for tag in page.tags:
        if "aria-labelledby" in tag.attributes:
            assert tag.attributes["aria-labelledby"] in ids
        if (tag.attributes.get("href") or "").startswith("#"):
            assert (tag.attributes["href"] or "")[1:] in ids
        if tag.attributes.get("role") in {"img", "region"}:
            assert (tag.attributes["aria-label"] or "").strip()
        if tag.name == "th":
            assert tag.attributes["scope"] in {"col", "row", "rowgroup"}
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(tag.text.strip() for tag in page.all("caption", "summary", "h1", "h2", "h3"))


@pytest.mark.parametrize("made", PAGES)
def test_charts_are_valid_and_described(made: Any) -> None:
    page = Page(made())
    charts = json.loads(page.all("script")[0].text)["charts"]
    places = {
        tag.attributes["id"]: tag for tag in page.tags if tag.attributes.get("class") == "chart"
    }
    assert set(charts) == set(places)
    assert set(charts) == {"forest", "sweep-1", "null"}
    for key in charts:
        assert len(places[key].attributes["aria-label"] or "") > 60
    for key in charts:  # they are made without checks, which take long
        alt.Chart.from_dict(list(charts[key].values())[-1], validate=True)


def test_charts_are_made_without_objects_of_altair(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("objects take a hundred times longer than dictionaries")

    monkeypatch.setattr(alt.Chart, "__init__", refuse)
    assert '"vconcat"' in compas_audit().where(attribute="sex").to_html()


@pytest.mark.validate
def test_report_is_written_in_less_time_than_the_audit_takes() -> None:
    def audit() -> fairperm.Audit:
        return fairperm.audit(
            "two_year_recid",
            y_score="decile_score",
            threshold=5,
            data=fairperm.datasets.load_compas(),
            sensitive_features=["race", "sex"],
            metrics=["false_positive_rate", "roc_auc"],
            n_resamples=9999,
            rng=1,
        )

    audit().to_html()  # compiles kernels, and makes the script of the charts
    times = [time.process_time()]
    made = audit()
    times.append(time.process_time())
    made.to_html()
    times.append(time.process_time())
    assert len(made) == 2 * (15 + 1)
    assert times[2] - times[1] <= 2 * (times[1] - times[0])


def test_audit_that_was_read_from_a_file_has_the_same_report() -> None:
    audit = compas_audit()
    read = fairperm.Audit.from_dict(json.loads(json.dumps(audit.to_dict())))
    texts = [Page(one.to_html()).text for one in (audit, read)]
    start, end = (texts[0].index(one) for one in ("What chance alone", "Method and validity"))
    whole = texts[0][:start] + texts[0][end:]
    assert texts[1] == whole.replace("What chance explains ", "")


# Names from data.


def test_hostile_names_are_text_everywhere() -> None:
    html = hostile_page()
    page = Page(html)
    plain = {tag.name for tag in Page(compas_page()).tags} | {"ul", "li", "em", "dd", "dl", "dt"}
    assert {tag.name for tag in page.tags} <= plain
    assert not page.all("i", "s", "u", "img")
    for group in HOSTILE:
        assert " ".join(format_name(group).split()) in page.text
    (title,) = page.all("title")
    assert title.text == "<title></title><script>alert(6)</script>"
    assert "</code><script>alert(7)</script>" in page.text
    assert '<b>group</b> & "co" · <i>rate</i>' in page.text


def test_inline_json_cannot_be_ended_by_a_name() -> None:
    html = hostile_page()
    start = html.index('id="charts">') + len('id="charts">')
    text = html[start : html.index("</script>", start)]
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert "<script>alert(1)</script>" in json.dumps(json.loads(text), ensure_ascii=False)


def test_notebook_form_escapes_names_too() -> None:
    html = hostile_audit()._repr_html_()
    page = Page(f"<main>{html}</main>")
    assert not page.all("script", "img", "i", "s", "u")
    assert "<script>alert(1)</script>" in page.text
    assert "x" * 61 not in html


# Files.


def test_report_is_written_whole_and_returned(tmp_path: Path) -> None:
    audit = compas_audit().where(attribute="sex")
    path = tmp_path / "report.html"
    html = audit.to_html(path, title="Sex")
    assert path.read_text(encoding="utf-8") == html
    assert html.startswith("<!doctype html>")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_half_a_character_can_be_written(tmp_path: Path) -> None:
    data = hostile_data()
    group = np.where(data["group"] == HOSTILE[0], "\ud800 half", "b")
    audit = fairperm.audit(data["y"], data["y"], sensitive_features=group, metrics="accuracy")
    audit.to_html(tmp_path / "report.html", title="\udfff")
    assert "half" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(fairperm.errors.InputError, match=r"is a folder; give the name of a file\."):
        compas_audit().where(attribute="sex").to_html(tmp_path)


def test_notebook_form_is_bounded_and_has_no_scripts() -> None:
    audit = compas_audit()
    html = audit._repr_html_()
    page = Page(f"<main>{html}</main>")
    judged = tuple(row for row in audit if row.verdict != "too small")
    assert len(table_cells(html)) == len(judged)
    assert "9 too small: 'Asian' has only 31 rows, " in page.text
    assert not page.all("script", "link", "img")
    assert "judged gaps " in page.text
    rows = judged * (1 + MAX_COMPACT_ROWS // len(judged))
    from dataclasses import replace

    long = replace(audit, rows=rows)
    assert len(table_cells(long._repr_html_())) == MAX_COMPACT_ROWS
    assert f"{len(rows) - MAX_COMPACT_ROWS} more comparison" in long._repr_html_()
