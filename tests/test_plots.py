"""Charts: valid, true to the numbers, and safe with any name."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pytest
import vl_convert

import fairperm
from fairperm import plots
from fairperm._chart_parts import SHAPES, finite, table, ticks, tidy, told
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairperm.audit_result import Audit
    from fairperm.results import PermutationTestResult
    from fairperm.sweep import ThresholdSweepResult

HOSTILE = [
    "<script>alert(1)</script>",
    "a\"b'c.d[e]:Q\\",
    "datum.gap} + ${window}",
    "x" * 10_000,
    "\u202eעברית شخص\u202c",
    "👩🏽‍🔬 and 👨‍👩‍👧",
    "new\nline\ttab\x00",
    "",
    "漢字" * 60,
    "half \ud800 pair",
]


@pytest.fixture(scope="module")
def compas() -> dict[str, Any]:
    return dict(fairperm.datasets.load_compas())


@pytest.fixture(scope="module")
def audit(compas: dict[str, Any]) -> Audit:
    return fairperm.audit(
        "two_year_recid",
        y_score="decile_score",
        threshold=5,
        data=compas,
        sensitive_features=["sex", "race"],
        metrics=["false_positive_rate", "positive_predictive_value", "roc_auc"],
        compare="reference",
        margin={"false_positive_rate": 0.1},
        n_resamples=499,
        rng=1,
    )


@pytest.fixture(scope="module")
def sweep(compas: dict[str, Any]) -> ThresholdSweepResult:
    return fairperm.threshold_sweep(
        "two_year_recid",
        "decile_score",
        sensitive_features="sex",
        thresholds="scores",
        metric=["true_positive_rate", "positive_predictive_value"],
        data=compas,
        n_resamples=199,
        rng=1,
    )


def a_test(metric: str, **options: Any) -> PermutationTestResult:
    rng = np.random.default_rng(1)
    n = options.pop("n", 200)
    return fairperm.permutation_test(
        rng.random(n) < 0.5,
        y_score=rng.random(n),
        sensitive_features=np.where(rng.random(n) < 0.4, "a", "b"),
        metric=metric,
        rng=1,
        **options,
    )


def spec_of(chart: Any) -> dict[str, Any]:
    """Return a chart's specification, which must be strict JSON, checked against the schema."""
    spec: dict[str, Any] = chart.to_dict(validate=True)
    json.dumps(spec, allow_nan=False)
    return spec


def data_with(spec: dict[str, Any], *keys: str) -> list[dict[str, Any]]:
    """Return the rows of all data that have these columns."""
    return [
        row for rows in spec["datasets"].values() for row in rows if set(keys) <= set(row.keys())
    ]


def drawn(spec: dict[str, Any]) -> str:
    """Return the picture, as SVG."""
    svg: str = vl_convert.vegalite_to_svg(spec)
    return svg


def rows_named(names: list[str], audit: Audit) -> list[dict[str, Any]]:
    """Return comparisons of groups, attributes and metrics of such names."""
    rows = [row.cells() for row in audit.rows if row.result is not None]
    return [
        rows[i % len(rows)]
        | {"first_group": name, "second_group": names[i - 1], "attribute": name, "metric": name}
        for i, name in enumerate(names)
    ]


# All charts.


@pytest.fixture(scope="module")
def specs(audit: Audit, sweep: ThresholdSweepResult) -> dict[str, Any]:
    charts = {
        "forest": audit.plot(),
        "null": a_test("roc_auc", n_resamples=199).plot(),
        "sweep": sweep.plot(),
        "slider": sweep.plot(slider=True),
        "power": plots.power_curve([100, 200, 400], [0.3, 0.6, 0.9]),
    }
    return {name: spec_of(chart) for name, chart in charts.items()}


CHARTS = ("forest", "null", "sweep", "slider", "power")


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
    lines = data_with(spec, "first", "gap")
    assert lines[0]["first"] == "x" * 199 + "…"
    assert all(len(row["label"]) <= 90 for row in data_with(spec, "label"))
    assert len(json.dumps(spec)) < 60_000


def test_groups_of_several_attributes_are_told_in_words(audit: Audit) -> None:
    row = audit.rows[0].cells() | {"first_group": ("Female", "Asian"), "second_group": "rest"}
    labels = [one["label"] for one in data_with(spec_of(plots.forest([row])), "label")]
    assert "Female, Asian less rest" in labels


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", "plain"),
        ("a\nb\r\n\tc", "a b c"),
        ("\u202eabc\u202c\u200f", "abc"),
        ("", "(blank)"),
        (" \n ", "(blank)"),
        (None, "None"),
        (3, "3"),
        ("a\ud800", "a\ufffd"),
        ("abcdefghijklm", "abcdefghi…"),
        ("漢字漢字漢字漢字", "漢字漢字…"),
        ("abcdefghi klm", "abcdefghi…"),
    ],
)
def test_tidy(name: object, expected: str) -> None:
    assert tidy(name, 10) == expected


# The forest plot.


def test_forest_shows_every_row_with_its_numbers(audit: Audit, specs: dict[str, Any]) -> None:
    lines = data_with(specs["forest"], "gap", "low", "reason")
    assert len(lines) == len(audit.rows)
    by_key = {(one["attribute"], one["metric"], one["first"], one["second"]): one for one in lines}
    for row in audit.rows:
        line = by_key[row.attribute, row.metric, str(row.groups[0]), str(row.groups[1])]
        assert row.result is not None
        assert line["gap"] == row.difference
        assert (line["low"], line["high"]) == row.confidence_interval
        assert line["p"] == row.pvalue
        assert line["adjusted"] == row.adjusted_pvalue
        assert line["verdict"] == row.verdict
        assert line["reason"] == row.reason
        counts = row.result.counts[row.groups[0]]
        if "denominator" in counts:
            assert f"{counts['numerator']:,} of {counts['denominator']:,}" in line["first_told"]
        assert f"({row.sizes[0]:,} rows)" in line["first_told"]


def test_forest_marks_are_at_their_gaps(audit: Audit, specs: dict[str, Any]) -> None:
    spec = specs["forest"]
    marks = [
        layer
        for panel in spec["vconcat"]
        for layer in panel["layer"]
        if layer["mark"].get("shape") in SHAPES.values()
    ]
    shown = {}
    for layer in marks:
        name = {shape: verdict for verdict, shape in SHAPES.items()}[layer["mark"]["shape"]]
        assert layer["mark"]["style"] == f"fp-{name.replace(' ', '-')}-mark"
        assert layer["mark"]["filled"] == (name in {"disparity", "equivalent"})
        for row in spec["datasets"][layer["data"]["name"]]:
            shown[row["gap"]] = name
    expected = {row.difference: row.verdict for row in audit.rows}
    assert set(shown.items()) <= set(expected.items())
    assert {row.difference for row in audit.rows if row.verdict != "too small"} <= set(shown)


def test_forest_shades_the_margin_of_its_metric_only(specs: dict[str, Any]) -> None:
    spec = specs["forest"]
    (name,) = (
        layer["data"]["name"]
        for layer in spec["vconcat"][0]["layer"]
        if layer["mark"].get("style") == "fp-margin"
    )
    shades = spec["datasets"][name]
    assert [(one["from"], one["to"]) for one in shades] == [(-0.1, 0.1)] * 2  # sex and race
    assert any("margin" in line for line in spec["title"]["subtitle"])


def test_rates_share_an_axis_and_other_metrics_have_their_own(specs: dict[str, Any]) -> None:
    spec = specs["forest"]
    titles = [
        layer["encoding"]["x"]["axis"]["title"]
        for panel in spec["vconcat"]
        for layer in panel["layer"]
        if (layer["encoding"].get("x", {}).get("axis") or {}).get("title")
    ]
    assert len(titles) == len(spec["vconcat"]) == 2
    assert "percentage points" in titles[0]
    assert "percentage points" not in titles[1]


def test_forest_of_nothing_says_so() -> None:
    spec = spec_of(plots.forest([]))
    assert spec["title"]["text"] == "No comparisons to show"
    assert drawn(spec)


def test_forest_of_one_row(audit: Audit) -> None:
    spec = spec_of(plots.forest([audit.rows[0].cells()]))
    assert "1 comparison: " in spec["title"]["subtitle"][0]
    assert len(data_with(spec, "gap", "low")) == 1


def test_rows_without_a_value_stay(audit: Audit) -> None:
    nothing = dict.fromkeys(
        ("difference", "difference_low", "difference_high", "pvalue", "adjusted_pvalue")
    )
    rows = [row.cells() | nothing | {"verdict": "too small"} for row in audit.rows]
    spec = spec_of(plots.forest(rows))
    assert len(data_with(spec, "none")) == len(rows)
    assert drawn(spec).count("no value") == len(rows)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None])
def test_forest_survives_numbers_that_are_none(bad: float | None, audit: Audit) -> None:
    columns = ("difference", "difference_low", "difference_high", "pvalue", "margin", "first_value")
    rows = [audit.rows[0].cells() | {column: bad} for column in columns]
    spec = plots.forest(rows).to_dict(validate=False)
    json.dumps(spec, allow_nan=False)
    assert len(data_with(spec, "gap", "low")) == len(rows)


def test_open_and_far_intervals_end_in_arrows(audit: Audit) -> None:
    row = audit.rows[0].cells()
    rows = [row, row | {"difference_low": -math.inf, "difference_high": math.inf}]
    spec = spec_of(plots.forest(rows))
    pointing = [
        (layer["mark"]["shape"], len(spec["datasets"][layer["data"]["name"]]))
        for layer in spec["vconcat"][0]["layer"]
        if str(layer["mark"].get("shape")).startswith("triangle-")
        and layer["mark"]["shape"] != "triangle-up"
    ]
    assert sorted(one for one in pointing if one[1]) == [
        ("triangle-left", 1),
        ("triangle-right", 1),
    ]
    told_of = {one["gap_told"].partition(" ")[2] for one in data_with(spec, "gap_told")}
    assert "[−∞, ∞]" in told_of


def test_forest_of_many_rows(audit: Audit) -> None:
    rows = [audit.rows[i % len(audit.rows)].cells() for i in range(100)]
    spec = plots.forest(rows).to_dict(validate=False)
    assert len(data_with(spec, "gap", "low")) == 100


def test_charts_have_no_limit_of_rows() -> None:
    chart = alt.Chart(table({"at": i} for i in range(6_000))).mark_point()
    assert len(data_with(chart.to_dict(), "at")) == 6_000


@pytest.mark.parametrize("width", [352])
def test_forest_of_any_width(width: int, audit: Audit) -> None:
    svg = drawn(spec_of(audit.plot(width=width)))
    assert ("adjusted p" in svg) == (width >= 640)
    assert "verdict" in svg


def test_one_sided_intervals_do_not_stretch_the_axis(audit: Audit) -> None:
    row = audit.rows[0].cells() | {"difference_high": 1.0, "verdict": "disparity"}
    row |= {"difference": 0.04, "difference_low": 0.02, "margin": None}
    spec = spec_of(plots.forest([row]))
    high = max(
        layer["encoding"]["x"]["scale"]["domain"][1]
        for layer in spec["vconcat"][0]["layer"]
        if "scale" in layer["encoding"].get("x", {})
    )
    assert high < 0.2


def test_plot_null_of_a_row(audit: Audit) -> None:
    row = audit.rows[1]
    spec = spec_of(audit.plot_null(1))
    assert row.result is not None
    assert spec == spec_of(row.result.plot()) == spec_of(audit.plot_null(row))
    assert next(one["observed"] for one in data_with(spec, "observed")) == row.result.statistic


# The null distribution.


def tail_and_total(spec: dict[str, Any]) -> tuple[float, float]:
    bars = {(one["from"], one["kind"]): one for one in data_with(spec, "from_share")}.values()
    sizes = [(one["kind"], one["to_share"] - one["from_share"]) for one in bars]
    return sum(n for kind, n in sizes if kind == "tail"), sum(n for _, n in sizes)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize(("metric", "n"), [("fnr", 200), ("fnr", 3000), ("fnr", 12)])
def test_exact_tails_are_the_pvalue(metric: str, n: int, alternative: str) -> None:
    result = a_test(metric, alternative=alternative, n=n)
    assert result.exact
    tail, total = tail_and_total(spec_of(result.plot()))
    assert total == pytest.approx(1)
    assert tail == pytest.approx(result.pvalue)


@pytest.mark.parametrize(
    ("metric", "alternative"),
    [
        ("roc_auc", "two-sided"),
        ("roc_auc", "greater"),
        ("roc_auc", "less"),
    ],
)
def test_random_tails_are_the_share_of_extreme_draws(metric: str, alternative: str) -> None:
    result = a_test(metric, alternative=alternative, n_resamples=999)
    assert not result.exact
    tail, total = tail_and_total(spec_of(result.plot()))
    assert total == pytest.approx(1)
    assert (999 * tail + 1) / 1000 == pytest.approx(result.pvalue)


def test_null_tells_its_numbers() -> None:
    result = a_test("roc_auc", n_resamples=99)
    title = spec_of(result.plot())["title"]
    assert title["text"] == "Could chance alone have made this gap?"
    assert title["subtitle"][0] == "roc auc, a less b"
    assert "of 99 random regroupings" in title["subtitle"][1]
    assert f"(p = {result.pvalue:.4f})" in title["subtitle"][1]


@pytest.mark.parametrize("observed", [math.nan, math.inf, 0.0, 1e300, -57.0])
@pytest.mark.parametrize(
    "draws",
    [
        [],
        [1.0] * 50,
        [math.nan, 1.0, -1.0, math.inf],
        np.random.default_rng(1).normal(size=500),
        np.random.default_rng(1).standard_cauchy(size=500),
        np.repeat(np.arange(500.0), 2),
    ],
)
def test_null_survives_any_numbers(observed: float, draws: Any) -> None:
    spec = plots.null_distribution(draws, observed).to_dict(validate=False)
    json.dumps(spec, allow_nan=False)
    share = np.isfinite(draws).mean() if len(draws) else 0
    assert tail_and_total(spec)[1] == pytest.approx(share)
    if 0 < share < 1:
        assert any("no finite statistic" in line for line in spec["title"]["subtitle"])
    if not math.isfinite(observed):
        assert "The observed statistic is" in spec["title"]["subtitle"][-1]
    limits = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert limits[0] < limits[1]
    bars = data_with(spec, "from_share")
    assert all(limits[0] - 1 <= one["from"] < one["to"] <= limits[1] + 1 for one in bars)


def test_null_refuses_other_probabilities() -> None:
    rule = r"probabilities must be as many as statistics \(2\); got 1"
    with pytest.raises(InputError, match=rule):
        plots.null_distribution([1.0, 2.0], 1.0, probabilities=[1.0])
    with pytest.raises(InputError, match=r"alternative must be one of .*; got 'both'"):
        plots.null_distribution([1.0, 2.0], 1.0, alternative="both")


# The sweep.


def swept(n: int = 5, **other: Any) -> dict[str, Any]:
    """Return columns of a sweep."""
    at = np.linspace(0, 1, n)
    numbers = {
        name: np.full(n, value)
        for name, value in {
            "value_first": 0.5,
            "value_second": 0.4,
            "difference": 0.1,
            "pointwise_lower": -0.05,
            "pointwise_upper": 0.05,
            "simultaneous_lower": -0.2,
            "simultaneous_upper": 0.2,
            "pvalue": 0.01,
            "adjusted_pvalue": 0.3,
        }.items()
    }
    columns = {"metric": ["m"] * n, "threshold": at, "status": ["tested"] * n, **numbers}
    return columns | {
        name: [value] * n if np.ndim(value) == 0 else value for name, value in other.items()
    }


def test_sweep_shows_its_numbers(sweep: ThresholdSweepResult, specs: dict[str, Any]) -> None:
    rows = data_with(specs["sweep"], "first_told", "wide_high")
    assert len(rows) == 2 * len(sweep.thresholds)
    for name, curve in sweep.curves.items():
        some = [row for row in rows if row["metric"] == name]
        assert [row["threshold"] for row in some] == sweep.thresholds.tolist()
        for key, expected in {
            "gap": curve.difference,
            "first": curve.values["Female"],
            "second": curve.values["Male"],
            "narrow_low": curve.pointwise_band[0],
            "narrow_high": curve.pointwise_band[1],
            "wide_low": curve.simultaneous_band[0],
            "wide_high": curve.simultaneous_band[1],
            "p": curve.pvalue,
            "adjusted": curve.adjusted_pvalue,
        }.items():
            assert [row[key] for row in some] == [finite(one) for one in expected], key
        assert [row["status"] for row in some] == curve.status.tolist()
        kinds = np.array([row["kind"] for row in some])
        assert (kinds == "none").tolist() == np.isnan(curve.pvalue).tolist()
        assert (kinds == "outside").tolist() == (curve.adjusted_pvalue <= sweep.alpha).tolist()


def test_sweep_of_one_metric(sweep: ThresholdSweepResult) -> None:
    spec = spec_of(sweep.plot("true_positive_rate"))
    assert {row["metric"] for row in data_with(spec, "metric")} == {"true_positive_rate"}
    assert "params" not in spec
    with pytest.raises(InputError, match=r"metric must be one of .*Did you mean 'true_positive_r"):
        sweep.plot("true_positive_rat")


def test_slider_tells_the_numbers_of_its_threshold(sweep: ThresholdSweepResult) -> None:
    spec = spec_of(sweep.plot("true_positive_rate", slider=True))
    (param,) = spec["params"]
    assert param["bind"] == {"input": "range", "max": 10, "min": 1, "name": "Threshold ", "step": 1}
    curve = sweep.curves["true_positive_rate"]
    for i in (0, 6, 9):
        param["value"] = sweep.thresholds[i] + 0.3 * (i == 6)  # between two, the nearer
        svg = drawn(spec)
        at, first, second = (
            f"At {sweep.thresholds[i]:g}:",
            f"Female {curve.values['Female'][i]:.3f}",
            f"Male {curve.values['Male'][i]:.3f}",
        )
        assert all(text in svg for text in (at, first, second, told(curve.difference[i], "+")))
        assert svg.count("At ") == 1


@pytest.mark.parametrize(("start", "expected"), [(None, 0.5), (0.25, 0.25), (7, 1.0), (-7, 0.0)])
def test_slider_starts_where_asked(start: float | None, expected: float) -> None:
    chart = plots.threshold_sweep(swept(), groups=("a", "b"), slider=True, start=start)
    assert spec_of(chart)["params"][0]["value"] == expected


@pytest.mark.parametrize("n", [1, 2])
def test_sweep_of_few_thresholds(n: int) -> None:
    assert drawn(spec_of(plots.threshold_sweep(swept(n), groups=("a", "b"), slider=True)))


def test_sweep_of_many_thresholds_shows_some_and_says_so() -> None:
    spec = plots.threshold_sweep(swept(2500), groups=("a", "b")).to_dict(validate=False)
    at = [row["threshold"] for row in data_with(spec, "first_told")]
    assert len(at) == 1000
    assert (at[0], at[-1]) == (0, 1)
    assert "Some of 2,500 thresholds" in spec["title"]["subtitle"][1]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_sweep_survives_numbers_that_are_none(bad: float) -> None:
    columns = swept(9)
    for i, name in enumerate(("difference", "pvalue", "simultaneous_upper", "value_first")):
        columns[name] = columns[name].copy()
        columns[name][2 * i + 1] = bad
    spec = plots.threshold_sweep(columns, groups=("a", "b"), slider=True).to_dict(validate=False)
    json.dumps(spec, allow_nan=False)
    assert "NaN" not in drawn(spec)
    nothing: dict[str, Any] = {
        name: [bad] * 5 for name in swept() if name not in {"metric", "threshold"}
    }
    nothing = swept() | nothing
    chart = plots.threshold_sweep(nothing, groups=("a", "b"))
    json.dumps(chart.to_dict(validate=False), allow_nan=False)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"adjusted_pvalue": 0.01}, "even over all thresholds (±0.200)"),
        ({}, "chosen beforehand (±0.050), not if it was searched for (±0.200)"),
        ({"adjusted_pvalue": math.nan}, "too sparse for the joint band"),
        ({"pvalue": 0.2}, "Chance alone can explain it (±0.050 here, ±0.200 over all)"),
        ({"pvalue": 0.2, "adjusted_pvalue": math.nan}, "it (±0.050); too sparse for the joint"),
        ({"pvalue": math.nan, "status": "trivial"}, "predicted alike"),
        ({"pvalue": math.nan, "status": "undefined"}, "has no value"),
        ({"pointwise_lower": -0.01}, "−0.010 to +0.050"),
    ],
)
def test_sweep_says_what_a_gap_means(numbers: dict[str, Any], words: str) -> None:
    spec = spec_of(plots.threshold_sweep(swept(**numbers), groups=("a", "b")))
    assert all(words in row["verdict"] for row in data_with(spec, "verdict"))


# The power curve.


def test_power_curve_of_a_function() -> None:
    def power(n: int) -> float:
        assert isinstance(n, int)
        return fairperm.power("selection_rate", values=(0.5, 0.4), n=n)

    sizes = range(100, 1501, 100)
    spec = spec_of(plots.power_curve(sizes, power))
    (points,) = (rows for rows in spec["datasets"].values() if len(rows) == len(sizes))
    assert points == [{"at": n, "power": power(n)} for n in sizes]
    (found,) = data_with(spec, "foot")
    needed = fairperm.sample_size("selection_rate", values=(0.5, 0.4))
    assert found["at"] == pytest.approx(needed, rel=0.03)
    assert found["power"] == 0.8
    same = spec_of(plots.power_curve(sizes, [power(n) for n in sizes]))
    assert same["datasets"] == spec["datasets"]


def test_power_curve_of_gaps() -> None:
    marked = fairperm.minimum_detectable_gap("selection_rate", value=0.4, n=2000)
    chart = plots.power_curve(
        np.linspace(0, 0.2, 21),
        lambda gap: fairperm.power("selection_rate", values=(0.4 + gap, 0.4), n=2000),
        over="gap",
        marked=marked,
        subject="selection rate",
    )
    spec = spec_of(chart)
    assert [one["at"] for one in data_with(spec, "foot")] == [marked]
    assert spec["title"]["subtitle"] == [
        "selection rate",
        f"Gaps of at least {marked:.3g} are found with 80 % power or more.",
    ]


@pytest.mark.parametrize(
    ("at", "power", "expected"),
    [
        ([1, 2, 3], [0.1, 0.2, 0.3], None),
        ([1, 2, 3], [0.85, 0.9, 0.95], 1),
        ([3, 1, 2], [0.9, 0.5, 0.7], 2.5),
        ([1, 2, 3, 4], [0.9, 0.7, 0.9, 1], 2.5),
        ([1, 2], [math.nan, math.inf], None),
        ([], [], None),
        ([5], [0.9], 5),
        ([10, 100_000], [0.1, 0.9], 10 + 0.875 * 99_990),
    ],
)
def test_power_curve_finds_where_the_target_is_reached(
    at: list[float], power: list[float], expected: float | None
) -> None:
    spec = spec_of(plots.power_curve(at, power))
    found = [one["at"] for one in data_with(spec, "foot")]
    assert found == ([] if expected is None else [pytest.approx(expected)])
    assert "NaN" not in drawn(spec)


def test_power_curve_refuses() -> None:
    with pytest.raises(InputError, match=r"power must be as many as at \(2\); got 1"):
        plots.power_curve([1, 2], [0.5])
    with pytest.raises(InputError, match="over must be one of 'rows', 'gap'; got 'n'"):
        plots.power_curve([1, 2], [0.5, 0.6], over="n")


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 0.013), (-1e-9, 3e-9), (5, 12_345)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 2 <= len(found) <= 8
    assert all(low <= one <= high for one in found)
    assert np.allclose(np.diff(found), found[1] - found[0])
