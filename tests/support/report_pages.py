"""Audits that reports are made of, and a reader of HTML that shares nothing with the templates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser

import numpy as np

import fairperm
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "</script><script>alert(3)</script><!--",
    "\u202eright to left\u2066",
    "x" * 10_000,
    "🦊 👩‍👩‍👧 é",
    "line\u2028break\x00\nand\ttab",
    "{{ 7 * 7 }} {% raw %}",
    "&lt;b&gt;&amp;",
    "النساء",
    "${alert(4)} datum['x'] javascript:alert(5)",
)
VOID = {"meta", "link", "img", "br", "input", "hr", "base"}


@dataclass
class Tag:
    """An element: its name and attributes, and all text inside it."""

    name: str
    attributes: dict[str, str | None]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """All elements of a page in the order in which they begin; unclosed ones are an error."""

    html: str
    tags: list[Tag] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[Tag] = []
        self.feed(self.html)
        self.close()
        assert not self._open, [tag.name for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), "an attribute is there twice"
        found = Tag(tag, dict(attrs))
        self.tags.append(found)
        if tag not in VOID:
            self._open.append(found)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, tag
        assert self._open.pop().name == tag

    def handle_data(self, data: str) -> None:
        for tag in self._open:
            tag.text += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def all(self, *names: str) -> list[Tag]:
        """Return the elements of these names."""
        return [tag for tag in self.tags if tag.name in names]

    @property
    def text(self) -> str:
        """Return what a reader sees, in one line."""
        (main,) = self.all("main")
        return " ".join(main.text.split())


@cache
def compas_audit() -> fairperm.Audit:
    return fairperm.audit(
        "two_year_recid",
        y_score="decile_score",
        threshold=5,
        data=fairperm.datasets.load_compas(),
        sensitive_features=["race", "sex"],
        metrics=["selection_rate", "true_positive_rate", "roc_auc"],
        margin=0.05,
        n_resamples=999,
        rng=1,
    )


@cache
def compas_page() -> str:
    sweep = threshold_sweep(
        "two_year_recid",
        "decile_score",
        data=fairperm.datasets.load_compas(),
        sensitive_features="sex",
        metric=["true_positive_rate", "selection_rate"],
        thresholds="scores",
        n_resamples=999,
        rng=1,
    )
    return compas_audit().to_html(sweep=sweep, title="COMPAS by race and sex")


@cache
def hostile_audit() -> fairperm.Audit:
    data = hostile_data()
    return fairperm.audit(
        data["y"],
        y_score=data["score"],
        sensitive_features={'<b>group</b> & "co"': data["group"]},
        metrics={"<i>rate</i>": "selection_rate", "</script><s>": "roc_auc"},
        compare="reference",
        group_size_by="rows",
        n_resamples=999,
        rng=1,
    )


@cache
def hostile_page() -> str:
    data = hostile_data()
    sweep = threshold_sweep(
        data["y"],
        data["score"],
        sensitive_features=data["group"],
        groups=HOSTILE[:2],
        metric="selection_rate",
        thresholds=5,
        n_resamples=999,
        rng=1,
    )
    return hostile_audit().to_html(
        sweep=[sweep],
        title="<title></title><script>alert(6)</script>",
        provenance={"<u>file</u>": "</code><script>alert(7)</script>"},
    )


def hostile_data() -> dict[str, np.ndarray[tuple[int], np.dtype[np.generic]]]:
    rng = np.random.default_rng(5)
    group = np.repeat(np.array(HOSTILE, dtype=object), 80)
    y = rng.random(len(group)) < 0.5
    score = np.clip(rng.random(len(group)) + (group == HOSTILE[0]) * 0.4, 0, 1).round(2)
    return {"y": y, "score": score, "group": group}
