"""Reports in a real browser: nothing is asked for, all is drawn, and names are only text.

The browser is Debian's chromium, or the one that FAIRPERM_BROWSER names; ``scripts/browser.sh``
installs it where it can. Without one these tests are skipped, and the summary says so.
"""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fairperm import selection_audit
from tests.support.browser import find_browser
from tests.support.commands import succeeded
from tests.support.report_pages import (
    HOSTILE,
    compas_audit,
    compas_page,
    hostile_data,
    hostile_page,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# One worker has the browser and the pages: `pytest -n auto --dist loadgroup`.
pytestmark = pytest.mark.xdist_group("report")

FILE = "'\"><img src=x onerror=alert(8)>${alert(8)}.csv"
IMAGE = "<img src=x onerror=alert(9)>"
RATE = ("--label", "y", "--metric", "selection_rate")
# of every command that writes a report besides `audit`
COMMANDS = {
    "compare": (*RATE, "--prediction", "p", "--prediction-new", "p2", "--group", "<b>g"),
    "sweep": (*RATE, "--score", IMAGE, "--group", "<b>g", "--resamples", "99"),
    "discover": (*RATE, "--prediction", "p", "--feature", "<b>g", "--resamples", "99"),
}
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_browser()
    if path is None:
        pytest.skip("no browser: install chromium, or name one in FAIRPERM_BROWSER")
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install it")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports")
    pages = {"compas": compas_page(), "hostile": hostile_page(), "file": file_page(path)}
    pages["notebook"] = f"<!doctype html><meta charset=utf-8>{compas_audit()._repr_html_()}"
    for name, html in pages.items():
        (path / f"{name}.html").write_text(html, encoding="utf-8")
    return path


def file_page(folder: Path) -> str:
    """Return the command's report on a file with a hostile name, columns and groups."""
    write_hostile_file(folder)
    columns = ("--label", "y", "--score", IMAGE, "--group", "<b>g")
    report = folder / "command.html"
    metrics = ("--metric", "selection_rate", "--metric", "roc_auc", "--resamples", "99")
    succeeded("audit", folder / FILE, *columns, *metrics, "--report", report, "-q")
    return report.read_text(encoding="utf-8")


def write_hostile_file(folder: Path) -> None:
    data = hostile_data()
    with (folder / FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["y", IMAGE, "p", "p2", "<b>g"])
        for y, score, group in zip(*(data[name][:240] for name in data), strict=True):
            writer.writerow([y, score, score > 0.5, score > 0.3, group])


class Trouble(list[str]):
    """What a page should not have done."""


@contextlib.contextmanager
def opened(browser: Browser, path: Path, **options: Any) -> Iterator[tuple[Page, Trouble]]:
    """Open a page that may load only itself; at the end there must have been no trouble."""
    trouble = Trouble()
    context = browser.new_context(**({"viewport": WIDE} | options))
    page = context.new_page()
    page.set_default_timeout(20_000)

    def refuse(route: Any) -> None:
        if route.request.url == path.as_uri():
            route.continue_()
        else:
            trouble.append(f"asked for {route.request.url}")
            route.abort()

    def dismiss(dialog: Any) -> None:
        trouble.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.route("**/*", refuse)
    page.on("dialog", dismiss)
    page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.goto(path.as_uri())
    if path.stem != "notebook" and options.get("java_script_enabled", True):
        page.wait_for_function("document.documentElement.dataset.drawn")
        assert page.evaluate("document.documentElement.dataset.drawn") == "true", trouble
    yield page, trouble
    context.close()
    assert trouble == []


@pytest.mark.parametrize("name", ["compas", "hostile"])
def test_all_charts_are_drawn_and_nothing_is_asked_for(
    browser: Browser, folder: Path, name: str
) -> None:
    with opened(browser, folder / f"{name}.html") as (page, _):
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        charts = page.locator(".chart")
        assert charts.count() >= 3
        for i in range(charts.count()):
            box = charts.nth(i).locator("svg").bounding_box()
            assert box is not None
            assert box["width"] > 200
            assert box["height"] > 100
            assert charts.nth(i).locator("svg path").count() > 5


def test_slider_moves_the_sweep(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "compas.html") as (page, _):
        page.locator("#thresholds-title").click()
        slider = page.get_by_label("Threshold", exact=False).and_(page.locator("input[type=range]"))
        chart = page.locator("#sweep-1 svg")
        assert slider.input_value() == "5"
        assert "At 5:" in (chart.text_content() or "")
        slider.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("document.querySelector('#sweep-1').textContent.includes('At 6:')")
        assert slider.input_value() == "6"
        slider.fill("9")
        page.wait_for_function("document.querySelector('#sweep-1').textContent.includes('At 9:')")


def test_dark_pages_are_dark_and_follow_the_reader(browser: Browser, folder: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = (
        "getComputedStyle([...document.querySelectorAll('#forest svg text')]"
        ".find((one) => one.textContent.includes('selection rate'))).fill"
    )
    with opened(browser, folder / "compas.html", color_scheme="dark") as (page, _):
        assert brightness(page.evaluate(ground)) < 40
        assert brightness(page.evaluate(ink)) > 200
        for figure in page.locator("figure:has(svg:visible)").all():
            assert figure.locator("svg:visible").count() == 1  # that for paper is not seen
        page.emulate_media(color_scheme="light")
        page.wait_for_function(f"{ground} === 'rgb(252, 252, 251)'")
        page.wait_for_function(f"{ink} !== 'rgb(230, 237, 243)'")
        assert brightness(page.evaluate(ink)) < 60


def brightness(colour: str) -> float:
    parts = [float(one) for one in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(parts) / 3


@pytest.mark.parametrize("name", ["compas", "hostile"])
@pytest.mark.parametrize("width", [390, 768])
def test_narrow_pages_do_not_scroll_sideways(
    browser: Browser, folder: Path, name: str, width: int
) -> None:
    with opened(browser, folder / f"{name}.html", viewport=NARROW | {"width": width}) as (page, _):
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        table = page.locator(".rows .scroll")
        assert table.evaluate("(one) => one.scrollWidth <= one.clientWidth")
        for svg in page.locator(".chart[data-elastic] svg").all():
            box = svg.bounding_box()
            assert box is not None
            assert box["width"] <= width


def test_nothing_is_cut_on_a_narrow_page(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "compas.html", viewport=NARROW | {"width": 380}) as (page, _):
        assert "…" not in (page.locator("#sweep-1 svg").text_content() or "")
        box = page.locator(".rows .scroll")
        explained = page.get_by_text("Each gap is the value of the first group minus")
        box.evaluate("(one) => { one.scrollLeft = one.scrollWidth; }")
        for text in (explained, *page.locator(".comparisons .part .stay").all()):
            place = text.bounding_box()
            assert place is not None
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= 380
        page.locator("#thresholds-title").click()
        slider = page.locator("#sweep-1-controls input")
        value = page.locator("#sweep-1-controls input + *")
        boxes = slider.bounding_box(), value.bounding_box()
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[1]["y"] < boxes[0]["y"] + boxes[0]["height"]  # on one line


@pytest.mark.parametrize(("width", "least"), [(1200, 850), (768, 600)])
def test_gap_chart_has_the_width_of_the_page_and_whole_names(
    browser: Browser, folder: Path, width: int, least: int
) -> None:
    with opened(browser, folder / "compas.html", viewport=NARROW | {"width": width}) as (page, _):
        svg = page.locator("#forest svg")
        box = svg.bounding_box()
        assert box is not None
        assert box["width"] >= least
        assert "…" not in (svg.text_content() or "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_prints(browser: Browser, folder: Path, scheme: str) -> None:
    with opened(browser, folder / "compas.html", color_scheme=scheme) as (page, _):
        pdf = page.pdf(format="A4", prefer_css_page_size=True)
        assert pdf.startswith(b"%PDF")
        assert 5 <= pdf.count(b"/Type /Page\n") <= 40
        assert {*re.findall(rb"/MediaBox \[0 0 (\d+)", pdf)} == {b"595"}  # all pages upright
        page.emulate_media(media="print")
        assert brightness(page.evaluate("getComputedStyle(document.body).color")) < 60
        drawn = [svg for svg in page.locator("#forest-figure svg").all() if svg.is_visible()]
        assert len(drawn) == 1
        fill = "(one) => getComputedStyle(one.querySelector('text')).fill"
        assert brightness(drawn[0].evaluate(fill)) < 110
        page.set_viewport_size({"width": 680, "height": 900})  # A4 between its margins
        assert page.evaluate("document.documentElement.scrollWidth") <= 680


@pytest.mark.validate
def test_short_form_of_compas_prints_on_three_pages(browser: Browser, folder: Path) -> None:
    path = folder / "short.html"
    compas_audit().to_html(
        path,
        title="COMPAS by race and sex",
        author="A. Author",
        note="A note of one line.",
        positive_means="were arrested again within two years",
        short=True,
    )
    with opened(browser, path) as (page, _):
        for paper in ("A4", "Letter"):
            assert page.pdf(format=paper).count(b"/Type /Page\n") <= 3


@pytest.mark.validate
def test_page_of_a_selection_prints_on_three_pages(browser: Browser, folder: Path) -> None:
    """With strata, both sexes and seven groups; each table is as wide as the paper."""
    races = (
        *("Hispanic or Latino", "White", "Black or African American", "Asian", "Two or More Races"),
        *("Native Hawaiian or Other Pacific Islander", "American Indian or Alaska Native"),
    )
    people = [(sex, race, job) for sex in ("Female", "Male") for race in races for job in "AB"]
    path = folder / "selection.html"
    selection_audit(
        [20 + 3 * i for i in range(len(people))],
        applicants=[100 + 7 * i for i in range(len(people))],
        sensitive_features={
            "Gender": [one[0] for one in people],
            "Race": [one[1] for one in people],
        },
        control_features=[one[2] for one in people],
        source="applicant tracking system",
        start="2025-01-01",
        end="2025-12-31",
        why_excluded="fewer than 2 % of the applicants",
    ).to_html(path, author="A. Author", note="A note of one line.")
    with opened(browser, path) as (page, _):
        for paper in ("A4", "Letter"):
            assert page.pdf(format=paper).count(b"/Type /Page\n") <= 3
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 680, "height": 900})  # A4 between its margins
        widths = "Array.from(document.querySelectorAll('table')).map((one) => one.offsetWidth)"
        assert max(page.evaluate(widths)) <= 680


@pytest.mark.validate
def test_two_thousand_comparisons_open_in_two_seconds(browser: Browser, folder: Path) -> None:
    path, audit = folder / "many.html", compas_audit()
    replace(audit, rows=audit.rows * 42).to_html(path)
    assert len(audit.rows) * 42 > 2_000
    assert path.stat().st_size < 3_300_000  # of which 0.9 MB draw charts
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(120_000)
    clock = page.context.new_cdp_session(page)  # the time of its thread: others may be at work
    clock.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri())
    page.wait_for_function("document.documentElement.dataset.drawn")
    numbers = clock.send("Performance.getMetrics")["metrics"]
    page.close()
    assert {one["name"]: one["value"] for one in numbers}["TaskDuration"] < 2


def test_hostile_names_are_shown_as_text(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "hostile.html") as (page, _):
        text = page.locator("main").inner_text()
        for name in (*HOSTILE[:3], HOSTILE[4], "🦊 👩‍👩‍👧 é", "النساء", "{{ 7 * 7 }} {% raw %}"):
            assert name in text
        assert page.title() == "<title></title><script>alert(6)</script>"
        assert page.locator("main script, main img, main i, main s, main u").count() == 0
        assert "<script>alert(1)" in (page.locator("#forest svg").text_content() or "")


def try_everything(page: Page) -> list[str]:
    """Focus, toggle, slide and hover; return the tooltips, in which no name is an element."""
    tip = "document.querySelector('#vg-tooltip-element.visible')"
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    for one in page.locator("a, input, summary, [tabindex]").all():
        one.focus()
    for one in page.locator("input[type=checkbox]").all():
        one.uncheck()
        one.check()
    for slider in page.locator("input[type=range]").all()[:1]:
        before = slider.input_value()
        slider.focus()
        page.keyboard.press("ArrowRight")
        assert slider.input_value() != before
    seen = []
    for chart in page.locator(".chart svg:visible").all()[:4]:
        for mark in chart.locator(".mark-symbol path").all()[:6]:
            mark.hover(force=True)
            if page.evaluate(f"{tip} !== null"):
                seen.append(page.evaluate(f"{tip}.textContent"))
                assert page.evaluate(f"{tip}.querySelectorAll('script, img, i, s').length") == 0
    page.wait_for_timeout(100)
    return seen


@pytest.mark.parametrize("name", [pytest.param("hostile", marks=pytest.mark.validate), "file"])
def test_hover_focus_filters_and_slider_run_nothing(
    browser: Browser, folder: Path, name: str
) -> None:
    with opened(browser, folder / f"{name}.html") as (page, _):
        assert page.locator("input[type=checkbox]").count() > 0
        assert page.locator("input[type=range]").count() > 0
        assert any("<script>alert(1)</script>" in one for one in try_everything(page))
        if name == "file":
            assert FILE in page.locator("main").inner_text()


@pytest.mark.validate
@pytest.mark.parametrize("command", COMMANDS)
def test_hover_and_focus_run_nothing_in_other_reports(
    browser: Browser, tmp_path: Path, command: str
) -> None:
    write_hostile_file(tmp_path)
    report = tmp_path / "x.html"
    succeeded(command, tmp_path / FILE, *COMMANDS[command], "--report", report, "-q")
    with opened(browser, report) as (page, _):
        assert any("<script>alert(1)</script>" in one for one in try_everything(page))
        assert page.locator("main script, main img, main i").count() == 0
        assert FILE in page.locator("main").inner_text()


def test_all_can_be_done_by_keyboard(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "compas.html") as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to what was found"
        rows = page.locator("table.comparisons tr.too-small")
        assert not rows.first.is_visible()
        page.locator("#show-too-small").focus()
        page.keyboard.press("Space")
        assert rows.first.is_visible()
        page.locator("#thresholds-title").click()
        page.locator("details.numbers summary").first.focus()
        page.keyboard.press("Enter")
        assert page.locator("details.numbers table").first.is_visible()
        unnamed = page.evaluate(
            "[...document.querySelectorAll('input')].filter((one) => !one.labels.length).length"
        )
        assert unnamed == 0


def test_tables_can_be_read_without_scripts(browser: Browser, folder: Path) -> None:
    path = folder / "compas.html"
    with opened(browser, path, java_script_enabled=False) as (page, _):
        assert page.get_by_text("The chart needs JavaScript.").is_visible()
        assert page.locator("table.comparisons tr.disparity").first.is_visible()


def test_notebook_form_needs_no_scripts(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "notebook.html") as (page, _):
        assert page.locator("table.comparisons tr.disparity .badge").first.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDE["width"]


# Where there is little room, and where others set the style.

VERDICTS_AND_P = """() => [...document.querySelectorAll(".comparisons :is(.why, td:nth-child(6))")]
    .map((one) => one.getBoundingClientRect()).filter((one) => one.width > 0)
    .map((one) => [one.left, one.right])"""
# pairs of texts in a table that cover each other by more than a pixel
OVERLAPS = """() => {
  const texts = [...document.querySelectorAll(".comparisons tr")].map((row) => {
    const walk = document.createTreeWalker(row, NodeFilter.SHOW_TEXT), found = [];
    while (walk.nextNode()) {
      if (!walk.currentNode.data.trim()) continue;
      const range = document.createRange();
      range.selectNodeContents(walk.currentNode);
      found.push(...[...range.getClientRects()].filter((one) => one.width > 1));
    }
    return found;
  });
  const cover = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 6;
  const isCovered = (a, i, row) => row.some((b, j) => j > i && cover(a, b));
  return texts.flatMap((row) => row.filter(isCovered)).length;
}"""


STYLE = """(row) => [getComputedStyle(row.cells[0]).textAlign,
    getComputedStyle(row).backgroundColor, getComputedStyle(row.closest("table")).tableLayout]"""


@pytest.mark.validate
def test_verdicts_and_p_values_are_seen_on_a_phone(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "compas.html", viewport=NARROW) as (page, _):
        page.locator("#show-too-small").check()
        places = page.evaluate(VERDICTS_AND_P)
        assert len(places) == 2 * len(compas_audit().rows)
        assert all(left >= 0 and right <= NARROW["width"] for left, right in places)
        assert page.evaluate(OVERLAPS) == 0
        for table in page.locator(".data").all():
            assert table.evaluate("(one) => one.scrollWidth <= one.clientWidth")


def lab_styles() -> str:
    """Return JupyterLab's own stylesheets, which nbconvert has."""
    try:
        files = metadata.files("nbconvert") or []
    except metadata.PackageNotFoundError:
        pytest.skip("no nbconvert: pip install it")
    wanted = ("lab/static/index.css", "lab/static/theme-light.css")
    found = [one for one in files if str(one).endswith(wanted)]
    assert len(found) == 2
    return "".join(one.read_text(encoding="utf-8") for one in found)


# What notebooks in VS Code and Colab set for the tables of an output, in short.
VSCODE = """<style>
  body { margin: 0 14px; background: #1e1e1e; color: #d4d4d4; font: 13px/22px system-ui; }
  .output_container .output table, .output_container .output :is(thead, tbody, tr, th, td) {
    border: none; border-collapse: collapse; text-align: right; vertical-align: middle; }
  .output_container .output thead { background-color: rgba(130, 130, 130, .16); }
  .output_container .output :is(th, td) { padding: 4px 8px; white-space: nowrap; }
  .output_container .output tr:nth-child(even) { background-color: rgba(130, 130, 130, .08); }
  .output_container .output tbody th { font-weight: normal; }
</style><body><div class="output_container"><div class="output">"""
COLAB = """<style>
  :root { color-scheme: dark; }
  body { margin: 0; background: #383838; color: #e8eaed; font: 14px/20px Roboto, sans-serif; }
  .output_subarea.output_html table { table-layout: fixed; font-size: 12px; color: #000; }
  .output_subarea.output_html :is(tr, th, td) { text-align: right; padding: .5em; line-height: 1;
    max-width: 12ch; overflow: hidden; background: #fff; color: #000; }
  .output_subarea.output_html tbody tr:nth-child(odd) { background: #f5f5f5; }
  .output_subarea.output_html ul { list-style: disc; padding-left: 2em; }
</style><body><div class="output_area"><div class="output_subarea output_html rendered_html">"""
# the width of the narrowest row, as a share of its table's
NARROWEST = """() => Math.min(...[...document.querySelectorAll(".comparisons tbody tr")]
    .map((row) => row.getBoundingClientRect().width / row.closest("table").offsetWidth))"""
# the smallest contrast of a text with what is behind it
CONTRAST = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((one) => one / 255)
    .map((one) => one <= .04045 ? one / 12.92 : ((one + .055) / 1.055) ** 2.4)
    .reduce((sum, one, i) => sum + one * [.2126, .7152, .0722][i], 0);
  const behind = (node) => {
    const [r, g, b, a = 1] = parts(getComputedStyle(node).backgroundColor);
    if (a === 1 || !node.parentElement) return [r, g, b];
    return behind(node.parentElement).map((one, i) => a * [r, g, b][i] + (1 - a) * one);
  };
  const walk = document.createTreeWalker(document.querySelector(".fp"), NodeFilter.SHOW_TEXT);
  const found = [];
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || node.closest("style")) continue;
    const both = [parts(getComputedStyle(node).color), behind(node)].map(light).sort();
    found.push((Math.max(...both) + .05) / (Math.min(...both) + .05));
  }
  return Math.min(...found);
}"""


def open_in_host(browser: Browser, path: Path, start: str, width: int) -> dict[str, Any]:
    """Check the form inside a host at this width; return how it looks, and without an id's weight.

    Nothing overlaps or is cut, and every text can be read.
    """
    form = compas_audit()._repr_html_()
    looks = {}
    for kind, html in {"ours": form, "weak": form.replace(":is(.fp, #fp)", ".fp")}.items():
        path.write_text(f"<!doctype html><meta charset=utf-8>{start}{html}", encoding="utf-8")
        with opened(browser, path, viewport=WIDE | {"width": width}) as (page, _):
            looks[kind] = page.locator(".comparisons tr.disparity").first.evaluate(STYLE)
            if kind == "ours":
                assert page.evaluate(OVERLAPS) == 0
                assert page.evaluate(CONTRAST) >= 4.5
                assert page.evaluate(NARROWEST) > 0.9
                scroll = page.locator(".scroll")
                assert scroll.evaluate("(one) => one.scrollWidth <= one.clientWidth")
                places = page.evaluate(VERDICTS_AND_P)
                assert all(left >= 0 and right <= width for left, right in places)
    assert looks["ours"] == ["left", "rgba(0, 0, 0, 0)", "auto"]
    return looks


@pytest.mark.validate
@pytest.mark.parametrize("width", [1300, 1000, 640])
def test_notebook_form_in_jupyterlab(browser: Browser, tmp_path: Path, width: int) -> None:
    """JupyterLab sets fixed columns, text on the right, stripes and padding: with two classes."""
    start = (
        f"<style>{lab_styles()}</style>"
        '<body class="jp-Notebook" data-jp-theme-light="true"><div class="jp-OutputArea-child">'
        '<div class="jp-RenderedHTMLCommon jp-RenderedHTML jp-OutputArea-output">'
    )
    looks = open_in_host(browser, tmp_path / "notebook.html", start, width)
    assert looks["weak"][1].startswith("rgb(")  # stripes: JupyterLab's rules would win


@pytest.mark.validate
@pytest.mark.parametrize("start", [VSCODE, COLAB], ids=["VS Code", "Colab"])
def test_notebook_form_in_dark_hosts(browser: Browser, tmp_path: Path, start: str) -> None:
    open_in_host(browser, tmp_path / "notebook.html", start, 640)
    looks = open_in_host(browser, tmp_path / "notebook.html", start, 1300)
    assert looks["weak"][0] == "right"  # the host's rules would win
