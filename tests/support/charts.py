"""Charts to be looked at by tests, and what is in them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import vl_convert

import fairperm
from fairperm import plots
from fairperm.auditing.result import Audit
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult

HOSTILE = [
    "<script>alert(1)</script>",
    "a\"b'c.d[e]:Q\\",
    "datum.gap} + ${window}",
    "x" * 10_000,
    "\u202eעברית شخص\u202c",
    "👩🏽‍🔬 and 👨‍👩‍👧",
    "new\x00\nline\ttab",
    "",
    "漢字" * 60,
    "half \ud800 pair",
]
CHARTS = ("forest", "null", "sweep", "slider", "power")


@cache
def compas_audit() -> Audit:
    return fairperm.audit(
        "two_year_recid",
        y_score="decile_score",
        threshold=5,
        data=fairperm.datasets.load_compas(),
        sensitive_features=["sex", "race"],
        metrics=["false_positive_rate", "positive_predictive_value", "roc_auc"],
        compare="reference",
        margin={"false_positive_rate": 0.1},
        n_resamples=499,
        rng=1,
    )


@cache
def compas_sweep() -> ThresholdSweepResult:
    return fairperm.threshold_sweep(
        "two_year_recid",
        "decile_score",
        sensitive_features="sex",
        thresholds="scores",
        metric=["true_positive_rate", "positive_predictive_value"],
        data=fairperm.datasets.load_compas(),
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


@cache
def compas_specs() -> dict[str, Any]:
    """Return the specifications of a chart of each kind."""
    audit, sweep = compas_audit(), compas_sweep()
    charts = {
        "forest": audit.plot(),
        "null": a_test("roc_auc", n_resamples=199).plot(),
        "sweep": sweep.plot(),
        "slider": sweep.plot(slider=True),
        "power": plots.power_curve([100, 200, 400], [0.3, 0.6, 0.9]),
    }
    return {name: spec_of(chart) for name, chart in charts.items()}


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
