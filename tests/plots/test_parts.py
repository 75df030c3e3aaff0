"""Charts: valid, legible on light and dark pages, and safe with any name."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import altair as alt
import pytest
import vl_convert

from fairperm import plots
from fairperm.auditing.result import Audit
from fairperm.errors import InputError
from fairperm.plots.parts import SHAPES
from tests.support.charts import (
    CHARTS,
    HOSTILE,
    compas_audit,
    compas_specs,
    data_with,
    drawn,
    rows_named,
    spec_of,
    swept,
)


@pytest.fixture(scope="module")
def audit() -> Audit:
    return compas_audit()


@pytest.fixture(scope="module")
def specs() -> dict[str, Any]:
    return compas_specs()


@pytest.mark.parametrize("name", CHARTS)
def test_chart_is_valid_and_can_be_drawn(name: str, specs: dict[str, Any]) -> None:
    spec = specs[name]
    assert spec["config"]["background"] == "transparent"
    assert spec["description"].startswith(spec["title"]["text"])
    svg = drawn(spec | {"config": plots.theme("dark")})
    assert "NaN" not in svg
    assert "undefined" not in svg
    assert plots.theme("dark")["title"]["color"] in svg
    width = re.match(r'<svg [^>]*?width="(\d+)"', svg)
    assert width is not None
    assert 640 <= int(width[1]) <= 730
    png = vl_convert.vegalite_to_png(spec)
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5_000


@pytest.mark.parametrize("name", CHARTS)
def test_all_colours_are_in_the_theme(name: str, specs: dict[str, Any]) -> None:
    spec = {key: one for key, one in specs[name].items() if key != "config"}
    assert not re.search(r"#[0-9a-fA-F]{6}\b", json.dumps(spec))


def styles_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("style"), str):
            yield node["style"]
        for one in node.values():
            yield from styles_in(one)
    elif isinstance(node, list):
        for one in node:
            yield from styles_in(one)


@pytest.mark.parametrize("name", CHARTS)
def test_all_styles_are_in_the_theme(name: str, specs: dict[str, Any]) -> None:
    parts = [one for key, one in specs[name].items() if key not in {"config", "datasets"}]
    used = set(styles_in(parts))
    assert used
    assert used <= set(plots.theme()["style"])


def readers_in(node: Any, data: str = "") -> Iterator[tuple[str, str]]:
    """Yield the parts of a specification that draw data, each with the name of its data."""
    if isinstance(node, dict):
        data = node.get("data", {}).get("name", data)
        if "encoding" in node:
            yield data, json.dumps(node)
        for one in node.get("layer", []) + node.get("vconcat", []):
            yield from readers_in(one, data)


@pytest.mark.parametrize("name", ["forest", "sweep", "slider", "power"])
def test_data_have_no_column_that_nothing_reads(name: str, specs: dict[str, Any]) -> None:
    readers: dict[str, str] = {}
    for data, reader in readers_in(specs[name]):
        readers[data] = readers.get(data, "") + reader
    assert set(readers) == set(specs[name]["datasets"])
    for data, reader in readers.items():
        columns = {column for row in specs[name]["datasets"][data] for column in row}
        unread = {
            one
            for one in columns
            if f'"field": "{one}"' not in reader and not re.search(rf"datum\.{one}\b", reader)
        }
        assert unread == set(), reader


def contrast(colour: str, page: str) -> float:
    """Return the ratio that WCAG 2 defines."""

    def luminance(text: str) -> float:
        parts = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [
            one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(colour), luminance(page)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("mode", "page", "text", "mark"),
    [
        ("light", "#ffffff", 4.5, 3),
        ("dark", "#121212", 4.5, 3),
        ("auto", "#ffffff", 3.8, 3),
        ("auto", "#121212", 3.8, 3),
    ],
)
def test_colours_have_contrast(mode: str, page: str, text: float, mark: float) -> None:
    for name, style in plots.theme(mode)["style"].items():
        if name == "fp-ruler":  # only divides
            continue
        assert contrast(style["color"], page) >= (text if "fontSize" in style else mark), name


def test_verdicts_differ_without_colours() -> None:
    assert len(set(SHAPES.values())) == len(SHAPES)


def test_theme_refuses_other_pages() -> None:
    with pytest.raises(
        InputError, match=r"mode must be one of .*; got 'drak'. Did you mean 'dark'"
    ):
        plots.theme("drak")


def test_null_distributions_differ_in_nothing_but_their_width() -> None:
    # so a report needs only one of them, which its page stretches
    draw = partial(plots.null_distribution, [-1.0, 0.5, 2.0], 1.0, groups=("a" * 99, "b"))
    wide, narrow = (spec_of(draw(width=width)) for width in (900, 340))
    assert wide.pop("width") - narrow.pop("width") == 560
    assert wide == narrow


def test_altair_is_loaded_by_charts_only() -> None:
    code = "import sys, fairperm; assert 'altair' not in sys.modules; fairperm.plots; print('ok')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "ok\n"


# Names from data.


def names_in(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every string of a specification with where it is."""
    if isinstance(node, dict):
        for key, one in node.items():
            yield (*path, "key"), key
            yield from names_in(one, (*path, key))
    elif isinstance(node, list):
        for one in node:
            yield from names_in(one, path)
    elif isinstance(node, str):
        yield path, node


MARK = "Zq"  # in every name below, and nowhere else


def only_as_data(spec: dict[str, Any]) -> None:
    """Check that names are values of data, or of titles, and of nothing else."""
    found = [path for path, text in names_in(spec) if MARK in text]
    assert found
    for path in found:
        assert "key" not in path
        assert path[0] in {"datasets", "description"} or path == ("title", "subtitle"), path


def test_names_are_only_data_in_the_forest(audit: Audit) -> None:
    names = [f"{MARK} {text}" for text in HOSTILE]
    spec = spec_of(plots.forest(rows_named(names, audit)))
    only_as_data(spec)
    svg = drawn(spec)
    assert "<script" not in svg
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in svg
    assert svg.count(MARK) >= len(names)


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_only_data_in_other_charts(text: str) -> None:
    first, second = f"{MARK} {text}", f"{MARK}2 {text}"
    null = plots.null_distribution([1.0, 2.0], 1.0, metric=first, groups=(first, second))
    columns = swept(metric=first)
    sweep = plots.threshold_sweep(columns, groups=(first, second), slider=True)
    for spec in (null.to_dict(validate=False), sweep.to_dict(validate=False)):
        json.dumps(spec, allow_nan=False).encode()
        only_as_data(spec)
        if "script" in text or "\ud800" in text:
            assert "<script" not in drawn(spec)


def test_long_names_are_short_in_the_chart_and_longer_in_the_tooltip(audit: Audit) -> None:
    rows = rows_named(["x" * 10_000], audit)
    spec = spec_of(plots.forest(rows))
    lines = data_with(spec, "first", "gap_interval")
    assert lines[0]["first"] == "x" * 149 + "…" + "x" * 50
    assert all(len(row["label"]) <= 90 for row in data_with(spec, "label"))
    assert len(json.dumps(spec)) < 60_000


def test_groups_of_several_attributes_have_one_name(audit: Audit) -> None:
    row = audit.rows[0].cells() | {"first_group": ("Female", "Asian"), "second_group": "rest"}
    labels = [one["label"] for one in data_with(spec_of(plots.forest([row])), "label")]
    assert "Female × Asian − rest" in labels


def test_notebooks_show_pictures_that_need_no_network() -> None:
    chart: Any = plots.null_distribution([-1.2, -0.3, 0.4, 1.1], 1.1, pvalue=0.5)
    charts: list[Any] = [chart, chart.properties(title="mine"), plots.forest([])]
    for one in charts:
        bundle = one._repr_mimebundle_()
        assert set(bundle) == {"image/svg+xml", "text/plain"}
        assert bundle["image/svg+xml"].startswith("<svg")
        assert not re.search("<script|<image|href=|src=", bundle["image/svg+xml"])
    with alt.renderers.enable("html"):
        assert set(chart._repr_mimebundle_()) == {"text/html"}
