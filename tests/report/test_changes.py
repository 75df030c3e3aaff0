"""The part of a report that is about a new model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fairperm.report.changes import ChangesPart, write_change
from fairperm.report.rerun import write_call
from fairperm.report.view import AuditView
from tests.support.audits import quietly
from tests.support.report_pages import HOSTILE, Page

if TYPE_CHECKING:
    import fairperm


@cache
def audited(*, in_data: bool = True) -> fairperm.Audit:
    rng = np.random.default_rng(2)
    n = 1200
    group = np.array([HOSTILE[0], "b", "c"])[rng.integers(3, size=n)]
    old = rng.random(n) < np.where(group == "b", 0.5, 0.3)
    new = old & ~((group == "b") & (rng.random(n) < 0.3))
    data = {"old": old, "new": new, "group": group, "label": np.arange(n) % 2}
    names = {"y_true": "label", "y_pred": "old", "y_pred_new": "new", "sensitive_features": "group"}
    given = names if in_data else {name: data[one] for name, one in names.items()}
    return quietly(
        **given,
        **({"data": data} if in_data else {}),
        metrics=["selection_rate", "equalized_odds"],
        n_resamples=499,
        rng=1,
    )


def test_report_has_every_change_and_a_chart_of_every_metric_with_one_value() -> None:
    page = Page(audited().to_html())
    (section,) = (tag for tag in page.all("section") if tag.attributes.get("id") == "changes")
    said = " ".join(section.text.split())
    for row in audited():
        assert row.change is not None
        assert row.change.reason in said
        texts = write_change(row)  # both metrics, and the joint one's parts, are rates
        assert all(text in said for text in texts.values())
        assert all(texts[name].endswith(" points") for name in ("gaps", "change"))
    charts = [tag.attributes for tag in page.all("div") if tag.attributes.get("class") == "chart"]
    slopes = [one for one in charts if str(one["id"]).startswith("slope-")]
    assert len(slopes) == 1
    assert "b 4" in str(slopes[0]["aria-label"])
    assert "All other parts of this report are about the old model." in said
    assert "From the old to the new model, 2 of 6 gaps narrowed" in page.text
    n_open = sum(
        row.change is not None and row.change.verdict == "inconclusive" for row in audited()
    )
    assert f" {n_open} may or may not have changed" in page.text
    assert 'id="changes"' in audited().to_html(short=True)
    assert "What the new model changes: 6 gaps: " in audited()._repr_html_()


@pytest.mark.parametrize(
    ("adjust", "says"),
    [
        ("holm", "any gap is wrongly called narrowed is at most 5 %, and the same bound"),
        ("by", "expected share of wrong ones among the gaps called narrowed is at most 5 %"),
        (None, "Each of these claims is wrong for a single gap at most 5 % of the time."),
    ],
)
def test_errors_are_those_of_the_adjustment(adjust: str | None, says: str) -> None:
    part = ChangesPart.of(AuditView.of(replace(audited(), adjust=adjust)))
    assert part is not None
    assert says in part.method[-1]


def test_an_undefined_change_is_not_put_down_to_few_rows() -> None:
    group, old = np.repeat(["a", "b"], 400), np.arange(800) % 2
    new, label = np.where(group == "b", 0, old), np.arange(800) % 3 > 0
    predicted = {"y_true": label, "y_pred": old, "y_pred_new": new}
    found = quietly(**predicted, sensitive_features=group, metrics="ppv", n_resamples=99, rng=1)
    part = ChangesPart.of(AuditView.of(found))
    assert part is not None
    assert part.meanings["too small"].endswith("too few rows, or the metric has no value")


def test_one_model_has_no_changes() -> None:
    one = quietly(y_pred=np.arange(200) % 3 > 0, sensitive_features=np.arange(200) % 2)
    assert 'id="changes"' not in one.to_html(short=True)


def test_the_call_names_both_models() -> None:
    assert "y_pred_new='new'" in write_call(audited())
    assert "y_pred_new=y_pred_new" in write_call(audited(in_data=False))
