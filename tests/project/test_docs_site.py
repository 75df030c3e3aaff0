"""What the site is made from: true formulas, all public names, links that lead somewhere."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripts import docs_pictures, levels
from scripts.docs_formulas import FORMULAS, as_mathml, value_of
from scripts.docs_links import problems, repository_problems
from scripts.docs_pages import commands_page, metrics_page
from sklearn.metrics import get_scorer_names

import fairperm
from fairperm.metrics import get_metric, metric_names
from tests.support.number_data import auc

ROOT = Path(__file__).parents[2]
DEV = ROOT / "docs" / "dev"  # for maintainers: not on the site
SITE_PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if DEV not in page.parents]
MODULES = ("datasets", "metrics", "plots", "testing")


def rows(kind: str, n: int = 2000) -> dict[str, Any]:
    """Return columns that suit metrics of this kind, in two groups."""
    rng = np.random.default_rng(3)
    group = np.array(["A", "B"])[rng.integers(2, size=n)]
    if kind == "regression":
        both = rng.uniform(1, 2, (2, n))
    else:
        both = rng.integers(3 if "class" in kind else 2, size=(2, n)).astype(float)
    return {
        "y": both[0],
        "p": both[1],
        "s": np.round(rng.uniform(0.05, 0.95, (n, 3) if kind == "class_scores" else n), 2),
        "group": group,
    }


def known(data: dict[str, Any]) -> dict[str, Any]:
    """Return everything that a formula may speak of, for the rows of one group."""
    y, p, s = data["y"], data["p"], data["s"]
    labels = np.unique(y)[:, None]
    cells = {"TP": (1, 1), "FP": (0, 1), "FN": (1, 0), "TN": (0, 0)}
    return {
        **{name: ((y == label) & (p == one)).sum() for name, (label, one) in cells.items()},
        "TP_k": ((labels == y) & (labels == p)).sum(axis=1),
        "FP_k": ((labels != y) & (labels == p)).sum(axis=1),
        "FN_k": ((labels == y) & (labels != p)).sum(axis=1),
        "n_k": (labels == y).sum(axis=1),
        "AUC_k": np.array([auc(y == k, s[:, k]) for k in range(3)]) if s.ndim == 2 else None,
        "y": y,
        "p": p,
        "s": s,
        "b": p - y + 1.0,
        "n": len(y),
        "TP_i": (s[y == 1] >= s[y == 1][:, None]).sum(axis=1),
        "FP_i": (s[y == 0] >= s[y == 1][:, None]).sum(axis=1),
        "s_i": s[y == 1][:, None],
        "s_j": s[y == 0][None, :],
    }


def result_of(name: str, data: dict[str, Any]) -> fairperm.PermutationTestResult:
    columns = {"y_true": data["y"], "y_pred": data["p"], "y_score": data["s"]}
    needed = {one: columns[one] for one in columns if one in get_metric(name).columns}
    needed.setdefault("y_true", data["y"])
    return fairperm.permutation_test(
        **needed,
        sensitive_features=data["group"],
        metric=name,
        n_resamples=9,
        rng=0,
    )


@pytest.mark.parametrize("name", [name for name in FORMULAS if name != "equalized_odds"])
def test_a_formula_is_what_is_computed(name: str) -> None:
    data = rows(get_metric(name).kind)
    result = result_of(name, data)
    for group, value in result.values.items():
        inside = {key: column[data["group"] == group] for key, column in data.items()}
        assert value_of(FORMULAS[name], **known(inside)) == pytest.approx(value, rel=1e-9)


def test_the_formula_of_equalized_odds() -> None:
    data = rows("binary")
    rates = {
        f"{short}_{group}": value
        for short, long in (("TPR", "true_positive_rate"), ("FPR", "false_positive_rate"))
        for group, value in result_of(long, data).values.items()
    }
    gap = abs(result_of("equalized_odds", data).difference)
    assert value_of(FORMULAS["equalized_odds"], **rates) == pytest.approx(gap, rel=1e-9)


def test_every_metric_has_a_formula_and_a_place() -> None:
    assert set(FORMULAS) == set(metric_names())
    page = metrics_page()
    assert all(page.count(f"{{ #{name} }}") == 1 for name in metric_names())
    assert "<mfrac>" in as_mathml("TP / (TP + FN)")
    assert "`recall` (`true_positive_rate`)" in page
    assert all(f"`{name}`" in page for name in get_scorer_names() if "_samples" not in name)


def test_every_command_and_option_is_on_its_page() -> None:
    page = commands_page()
    for name in ("audit", "test", "sweep", "power", "metrics", "demo"):
        assert f"## fairperm {name}\n" in page
    assert "`--fail-on`" in page


def public_names() -> set[str]:
    found = {f"fairperm.{name}" for name in fairperm.__all__}
    for module in MODULES:
        names = importlib.import_module(f"fairperm.{module}").__all__
        found |= {f"fairperm.{module}.{name}" for name in names}
    shown_at_the_top = {f"fairperm.metrics.{name}" for name in fairperm.__all__}
    return found - {f"fairperm.{module}" for module in MODULES} - shown_at_the_top


def test_every_public_name_is_in_the_reference() -> None:
    text = "\n".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    listed = set(re.findall(r"(?m)^::: (\S+)", text))
    for module, members in re.findall(r"::: (\S+)\n(?: +.*\n)*? +members: \[(.*)\]", text):
        listed |= {f"{module}.{name.strip()}" for name in members.split(",")}
    assert public_names() <= listed


def test_the_pictures_can_be_drawn() -> None:
    found = docs_pictures.levels(1)
    assert {row["test"] for row in found} == set(docs_pictures.TESTS)
    for panel, rows_of in _by_panel(docs_pictures.spreads(500)).items():
        shares = [row["share"] for row in rows_of]
        assert sum(shares) == pytest.approx(2, abs=0.02), panel  # two distributions
    chart = docs_pictures.level_chart(found, 1, "dark").to_dict()
    assert "1 data sets" in chart["title"]["subtitle"]
    for rows in (docs_pictures.spreads(50), docs_pictures.skewed(50)):
        chart = docs_pictures.spread_chart(rows, "title", "subtitle", "light").to_dict()
        assert len(chart["hconcat"]) == 2
    chart = docs_pictures.inferred_chart(docs_pictures.inferred(800), "light").to_dict()
    assert len(chart["hconcat"]) == 2
    schemes = docs_pictures.exchange_chart("light").to_dict()["hconcat"]
    assert [one["title"]["text"] for one in schemes] == list(docs_pictures.SCHEMES)


def _by_panel(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    names = dict.fromkeys(row["panel"] for row in rows)
    return {name: [row for row in rows if row["panel"] == name] for name in names}


def test_links_lead_somewhere_in_the_bare_repository() -> None:
    assert repository_problems(ROOT) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a](other.md#here-it-is), [b](#page), [c](https://a.org), `[d](none.md)`", None),
        ("[a](none.md)", "no such file"),
        ("[a](other.md#there)", "no such heading"),
        ('<img src="none.svg">', "no such file"),
    ],
)
def test_links_of_markdown_are_checked(text: str, said: str | None, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(f"# Page\n\n{text}\n")
    (tmp_path / "other.md").write_text("# `Here` it is\n")
    found = repository_problems(tmp_path)
    assert (said in found[0]) if said else found == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in SITE_PAGES:
        assert str(page.relative_to(ROOT / "docs")) in navigation, page


def test_decisions_are_short_and_dated() -> None:
    decisions = sorted((DEV / "decisions").iterdir())
    for decision in decisions:
        assert re.fullmatch(r"20\d\d-\d\d-\d\d(-[a-z0-9]+)+\.md", decision.name), decision.name
        assert len(decision.read_text("utf-8").splitlines()) <= 20, decision.name
    assert decisions


def test_levels_are_those_of_the_script_which_names_what_measures_them() -> None:
    assert levels.PAGE.read_text("utf-8") == levels.page(), "run python -m scripts.levels"
    for row in (row for rows in levels.ROWS.values() for row in rows):
        assert row.measured_by == levels.TRIAL or levels.path_of(row.measured_by).exists(), row


class TestTheLinkCheck:
    @staticmethod
    def site(folder: Path, body: str) -> list[str]:
        (folder / "index.html").write_text(f"<html><body>{body}</body></html>")
        (folder / "other.html").write_text("<html><body><h1 id='here'></h1></body></html>")
        return problems(folder)

    def test_good_links_pass(self, tmp_path: Path) -> None:
        good = "<a href='other.html#here'></a><a href='#'></a><a href='https://a.org'></a>"
        assert self.site(tmp_path, good) == []

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ("<a href='nowhere.html'></a>", "no such file"),
            ("<a href='other.html#there'></a>", "no such place"),
            ("<img src='missing.svg'>", "no such file"),
            ("<script src='https://a.org/x.js'></script>", "another host"),
            ("<link rel='stylesheet' href='//a.org/x.css'>", "another host"),
        ],
    )
    def test_bad_links_are_told(self, tmp_path: Path, body: str, said: str) -> None:
        (one,) = self.site(tmp_path, body)
        assert said in one

    def test_styles_load_nothing_from_elsewhere(self, tmp_path: Path) -> None:
        (tmp_path / "x.css").write_text("a { background: url(https://a.org/x.png) }")
        assert "another host" in self.site(tmp_path, "")[0]

    def test_no_site_is_no_success(self, tmp_path: Path) -> None:
        assert problems(tmp_path) == [f"{tmp_path}: no pages"]
