"""Every metric and every function in every design against the AUC of plain rows: no cliffs.

`make bench` runs this file and prints two tables. A ratio above ``MAX_RATIO`` fails the run unless
``SLOW`` names the metric or the function, with a bound of its own and the reason.
``python -m benchmarks.bench_cliffs`` prints the tables alone, also for an older tree.
"""

from __future__ import annotations

import math
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import fairperm
from fairperm.errors import FairpermWarning, InputError
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Kind
from studies.bootstrap import bootstrap_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from benchmarks.conftest import Report

N = 20_000
DRAWS = 999
REPEATS = 3
SLOW_CALL_S = 2.0  # is timed once
MAX_RATIO = 8.0
DESIGNS: Mapping[str, tuple[str, ...]] = {
    "plain": (),
    "weights": ("weights",),
    "clusters": ("clusters",),
    "20 strata": ("strata",),
    "weights, clusters": ("weights", "clusters"),
    "weights, strata": ("weights", "strata"),
    "clusters, strata": ("clusters", "strata"),
}
MANY_GROUPS = "5 groups"
_CLASSES = "a walk for each of three classes and each group, with an influence of each row"
_SEARCH = "all of 124 subgroups in every draw"
_RESAMPLES = "every bootstrap sample is a multinomial draw of rows, and walks through all of them"
_ONE_BY_ONE = "several sums of each row, which labels of many groups add one by one"
_ALONE = "with weights an influence of each row is computed in every draw, and stratum by stratum"
_PRODUCTS = "two totals of each of three classes, and all their products, in 20 strata"
SLOW: Mapping[str, tuple[float, str]] = {
    "roc_auc_ovr": (60.0, _CLASSES),
    "roc_auc_ovr_weighted": (60.0, _CLASSES),
    "recall_macro": (11.0, _PRODUCTS),
    "precision_macro": (11.0, _PRODUCTS),
    "f1_macro": (11.0, _PRODUCTS),
    "average_precision": (13.0, "five groups walk through all rows, with a division at each"),
    "r2_score": (12.0, _ONE_BY_ONE),
    "coefficient_of_variation": (12.0, _ONE_BY_ONE),
    "omnibus_test, mean": (18.0, _ALONE),
    "compare_models, mean": (11.0, _ALONE),
    "compare_periods, mean": (12.0, _ALONE),
    "studies.bootstrap_test, mean": (11.0, _RESAMPLES),
    "compare_models, AUC": (13.0, "a walk up either score in each of 20 strata"),
    "studies.bootstrap_test, AUC": (70.0, _RESAMPLES),
    "threshold_sweep, 101": (25.0, "101 thresholds in each of 20 strata"),
    "find_subgroups, rate": (900.0, _SEARCH),
    "find_subgroups, mean": (1000.0, _SEARCH),
}


def _data(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    y_true = rng.integers(0, 2, n)
    outcome = rng.gamma(3.0, 0.1, n)
    classes = rng.integers(0, 3, n)
    household = np.arange(n) // 5
    return {
        "group": rng.integers(0, 2, n),
        "group of cluster": rng.integers(0, 2, n)[household],
        "5 groups": rng.integers(0, 5, n),
        "strata": rng.integers(0, 20, n),
        "strata of cluster": rng.integers(0, 20, n)[household],
        "weights": rng.uniform(0.5, 2.0, n),
        "clusters": household,
        "y_true": y_true,
        "y_score": 1 / (1 + np.exp(1 - 2 * y_true + rng.normal(size=n))),
        "y_score_new": y_true + rng.normal(size=n),
        "y_pred": np.where(rng.random(n) < 0.8, y_true, 1 - y_true),
        "classes": classes,
        "scores of classes": rng.normal(size=(n, 3)) + np.eye(3)[classes],
        "predicted classes": np.where(rng.random(n) < 0.7, classes, rng.integers(0, 3, n)),
        "outcome": outcome,
        "prediction": outcome * rng.gamma(20.0, 0.05, n),
        "prediction_new": outcome * rng.gamma(30.0, 0.03, n),
        "features": {f"feature {i}": rng.integers(0, 4, n) for i in range(3)},
    }


def _columns(metric: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that the metric is made of."""
    definition = get_metric(metric)
    names = {"y_true": "y_true", "y_pred": "y_pred", "y_score": "y_score"}
    if definition.kind is Kind.REGRESSION:
        names |= {"y_true": "outcome", "y_pred": "prediction"}
    if definition.kind is Kind.CLASS_SCORES:
        names |= {"y_true": "classes", "y_score": "scores of classes"}
    if definition.kind is Kind.CLASSES:
        names |= {"y_true": "classes", "y_pred": "predicted classes"}
    return {name: data[names[name]] for name in {"y_true", *definition.columns}}


def _rows(design: tuple[str, ...], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the groups, and what the design says of rows."""
    is_clustered = "clusters" in design
    rows = {"sensitive_features": data["group of cluster" if is_clustered else "group"]}
    if is_clustered:
        rows["cluster"] = data["clusters"]
    if "strata" in design:
        rows["control_features"] = data["strata of cluster" if is_clustered else "strata"]
    if "weights" in design:
        rows["sample_weight"] = data["weights"]
    return rows


def _options(metric: str, draws: int = DRAWS) -> dict[str, Any]:
    of_draws: dict[str, Any] = {"n_resamples": draws, "rng": 0, "n_jobs": 1, "progress": False}
    return of_draws | {"metric": metric}


def _test(
    metric: str, design: tuple[str, ...], data: Mapping[str, Any], draws: int = DRAWS
) -> Callable[[], Any]:
    options = _columns(metric, data) | _rows(design, data) | _options(metric, draws)
    return lambda: fairperm.permutation_test(**options)


def _test_many_groups(metric: str, data: Mapping[str, Any]) -> Callable[[], Any]:
    groups = {"sensitive_features": data["5 groups"]}
    options = _columns(metric, data) | groups | _options(metric)
    return lambda: fairperm.omnibus_test(**options)


def _functions(data: Mapping[str, Any]) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Yield every function that draws, with its arguments other than those of the design."""
    auc = _columns("roc_auc", data) | _options("roc_auc")
    mean = _columns("mean_squared_error", data) | _options("mean_squared_error")
    rate = _columns("true_positive_rate", data) | _options("true_positive_rate")
    once = {"rng": 0, "n_jobs": 1, "progress": False}
    pairs = {"matched": np.arange(N) // 2, "sensitive_features": np.arange(N) % 2}
    yield "equivalence_test, AUC", fairperm.equivalence_test, auc | {"margin": 0.1}
    yield "equivalence_test, mean", fairperm.equivalence_test, mean | {"margin": 0.1}
    yield "noninferiority, AUC", fairperm.noninferiority, auc | {"margin": 0.1}
    yield "compare_models, rate", fairperm.compare_models, rate | {"y_pred_new": data["y_true"]}
    new = {"y_pred_new": data["prediction_new"]}
    yield "compare_models, mean", fairperm.compare_models, mean | new
    new = {"y_score_new": data["y_score_new"]}
    yield "compare_models, AUC", fairperm.compare_models, auc | new
    period = {"period": np.arange(N) % 2}
    for name, one in {"AUC": auc, "mean": mean}.items():
        yield f"compare_periods, {name}", fairperm.compare_periods, one | period
    for name, one in {"AUC": auc, "mean": mean}.items():
        yield f"permutation_test, matched {name}", fairperm.permutation_test, one | pairs
    for name, one in {"AUC": auc, "mean": mean}.items():
        sampled = {key: value for key, value in one.items() if key != "progress"}
        yield f"studies.bootstrap_test, {name}", bootstrap_test, sampled
    yield "omnibus_test, AUC", fairperm.omnibus_test, auc
    yield "omnibus_test, mean", fairperm.omnibus_test, mean
    columns = {"x": data["outcome"], "y": data["prediction"]}
    yield "correlation_test", fairperm.correlation_test, columns | once | {"n_resamples": DRAWS}
    for distance in ("ks", "wasserstein"):
        column = {"values": data["y_score"], "distance": distance, "n_resamples": DRAWS}
        yield f"distance_test, {distance}", fairperm.distance_test, column | once
    yield "threshold_sweep, 101", fairperm.threshold_sweep, auc | {"metric": "true_positive_rate"}
    features = {"features": data["features"], "sensitive_features": None}
    yield "find_subgroups, rate", fairperm.find_subgroups, rate | features
    yield "find_subgroups, mean", fairperm.find_subgroups, mean | features
    audited = {name: one for name, one in auc.items() if name != "metric"}
    yield "audit, AUC", fairperm.audit, audited | {"metrics": "roc_auc"}


def _seconds(call: Callable[[], Any]) -> float:
    """Return the CPU time of one thread, which other programs disturb little."""
    start = time.process_time()
    call()
    return time.process_time() - start


def _ratio(call: Callable[[], Any], reference: Callable[[], Any]) -> float | None:
    """Return the shortest time of some over that of the plain AUC; None if it is refused."""
    try:
        first = _seconds(call)  # kernels are compiled the first time
    except (InputError, TypeError):
        return None
    repeats = REPEATS if first < SLOW_CALL_S else 1
    pairs = [(_seconds(reference), _seconds(call)) for _ in range(repeats)]
    plain, mine = (min(times) for times in zip(*pairs, strict=True))
    return float(mine / plain)


def measure_metrics() -> Iterator[tuple[str, dict[str, float | None]]]:
    """Yield the times of a test of every metric by design, in plain AUCs."""
    data = _data(N)
    reference = _test("roc_auc", (), data)
    reference()
    for metric in fairperm.metric_names():
        calls = {name: _test(metric, design, data) for name, design in DESIGNS.items()}
        calls[MANY_GROUPS] = _test_many_groups(metric, data)
        yield metric, {name: _ratio(call, reference) for name, call in calls.items()}


def measure_functions() -> Iterator[tuple[str, dict[str, float | None]]]:
    """Yield the times of every function by design, in plain AUCs."""
    data = _data(N)
    reference = _test("roc_auc", (), data)
    reference()
    for name, function, options in _functions(data):
        found: dict[str, float | None] = {}
        for label, design in DESIGNS.items():
            rows = _rows(design, data)
            if "x" in options:  # an attribute of numbers, and rows without a design
                del rows["sensitive_features"]
            given = {key: one for key, one in (rows | options).items() if one is not None}
            found[label] = _ratio(partial(function, **given), reference)
        yield name, found


def table_of(found: Iterable[tuple[str, Mapping[str, float | None]]], title: str) -> Iterator[str]:
    """Yield a table of ratios, as lines of Markdown."""
    for place, (name, ratios) in enumerate(found):
        if not place:
            yield f"| {title} | " + " | ".join(ratios) + " |"
            yield "|---|" + "---:|" * len(ratios)
        cells = ("not offered" if one is None else f"{one:.2g}" for one in ratios.values())
        yield f"| {name} | " + " | ".join(cells) + " |"


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few resamples
@pytest.mark.parametrize("title", ["metric", "function"])
def test_no_cliffs(report: Report, title: str) -> None:
    """Times are the shortest of some, each with one of the plain AUC beside it."""
    found = dict(measure_metrics() if title == "metric" else measure_functions())
    report.notes += [
        "",
        f"Cliffs: times relative to the AUC of plain rows, {N:,} rows, {DRAWS} permutations",
        *table_of(found.items(), title),
        *(f"{name}, up to {limit:g}: {why}" for name, (limit, why) in SLOW.items()),
    ]
    for name, ratios in found.items():
        largest = max((one for one in ratios.values() if one is not None), default=0.0)
        limit, _ = SLOW.get(name, (MAX_RATIO, ""))
        report.bar(f"{name}, any design / AUC of plain rows", largest, "≤", limit)


@pytest.mark.parametrize("design", ["plain", "weights", "clusters", "20 strata"])
@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few resamples
def test_growth(report: Report, design: str) -> None:
    """Eight times the rows, or the permutations, take about eight times as long."""
    small, large = _data(50_000), _data(400_000)
    calls = {
        "both": _test("roc_auc", DESIGNS[design], small),
        "rows": _test("roc_auc", DESIGNS[design], large),
        "permutations": _test("roc_auc", DESIGNS[design], small, 8 * DRAWS),
    }
    calls["both"]()
    rounds = [{name: _seconds(call) for name, call in calls.items()} for _ in range(REPEATS)]
    best = {name: min(one[name] for one in rounds) for name in calls}
    for name in ("rows", "permutations"):
        exponent = math.log(best[name] / best["both"], 8)
        report.bar(f"exponent of {name} in the time of an AUC, {design}", exponent, "≤", 1.2)


if __name__ == "__main__":
    warnings.simplefilter("ignore", FairpermWarning)
    for line in table_of(measure_functions(), "function"):
        print(line, flush=True)
    for line in table_of(measure_metrics(), "metric"):
        print(line, flush=True)
