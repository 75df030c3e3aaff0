"""Every metric in every design against the AUC of plain rows: no combination is a cliff.

`make bench` runs this file and prints the table "cliffs". A ratio above 10 fails the run unless
``SLOW`` names it with the reason.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import fairperm
from fairperm.errors import InputError
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.conftest import Report

N = 50_000
DRAWS = 999
REPEATS = 3
MOST = 10.0
N_OF_MODELS = 20_000
MAX_OF_MODELS = {"plain": 6.0, "weights": 6.0, "clusters": 6.0, "strata": 8.0}
DESIGNS = ("plain", "weights", "clusters", "strata", "5 groups")
_BOOTSTRAP = "500 bootstrap samples, for the standard error it reports"
SLOW = {("expected_calibration_error", design): _BOOTSTRAP for design in DESIGNS}
_ONE_BY_ONE = "several sums of each row, which labels of many groups add one by one"
_INDICES = ("generalized_entropy_index", "theil_t_index", "theil_l_index", "atkinson_index")
_SUMS = ("r2_score", "coefficient_of_variation", "mean_score_positives", "mean_score_negatives")
SLOW |= {(metric, "5 groups"): _ONE_BY_ONE for metric in (*_INDICES, *_SUMS)}
_POSITIVES = "every group walks through all rows, with a division at each positive"
SLOW |= {("average_precision", design): _POSITIVES for design in DESIGNS}
_CLASSES = "a walk for each of three classes and two groups, with an influence of each row"
for _metric in ("roc_auc_ovr", "roc_auc_ovr_weighted"):
    SLOW |= {(_metric, design): _CLASSES for design in DESIGNS}


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
        "strata": rng.integers(0, 4, n),
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
    }


def _columns(metric: str, data: dict[str, Any]) -> dict[str, Any]:
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


def _options(metric: str, design: str, data: dict[str, Any], draws: int) -> dict[str, Any]:
    """Return the arguments of a test."""
    options = {**_columns(metric, data), "metric": metric, "n_resamples": draws, "rng": 0}
    options |= {"n_jobs": 1, "progress": False}
    if metric == "expected_calibration_error":
        options["variance"] = None
    of_design: dict[str, dict[str, Any]] = {
        "weights": {"sample_weight": data["weights"]},
        "clusters": {
            "cluster": data["clusters"],
            "sensitive_features": data["group of cluster"],
        },
        "strata": {"control_features": data["strata"]},
        "5 groups": {"sensitive_features": data["5 groups"]},
    }
    return options | {"sensitive_features": data["group"], **of_design.get(design, {})}


def _call(metric: str, design: str, data: dict[str, Any], draws: int) -> Callable[[], Any]:
    options = _options(metric, design, data, draws)
    test: Any = fairperm.omnibus_test if design == "5 groups" else fairperm.permutation_test
    return lambda: test(**options)


def _seconds(call: Callable[[], Any]) -> float:
    """Return the CPU time of one thread, which other programs disturb little."""
    start = time.process_time()
    call()
    return time.process_time() - start


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few resamples
def test_no_cliffs(report: Report) -> None:
    """Times are the shortest of some, each with one of the plain AUC beside it."""
    data = _data(N)
    reference = _call("roc_auc", "plain", data, DRAWS)
    reference()
    rows, largest = [], 0.0
    for metric in fairperm.metric_names():
        cells = []
        for design in DESIGNS:
            call = _call(metric, design, data, DRAWS)
            try:
                call()  # kernels are compiled the first time
            except InputError:
                cells.append("not offered")
                continue
            pairs = [(_seconds(reference), _seconds(call)) for _ in range(REPEATS)]
            plain, mine = (min(times) for times in zip(*pairs, strict=True))
            cells.append(f"{mine / plain:.2g}")
            if (metric, design) not in SLOW:
                largest = max(largest, mine / plain)
        rows.append(f"| {metric} | " + " | ".join(cells) + " |")
    report.notes += [
        "",
        f"Cliffs: times relative to the AUC of plain rows, {N:,} rows, {DRAWS} permutations",
        "| metric | " + " | ".join(DESIGNS) + " |",
        "|---|" + "---:|" * len(DESIGNS),
        *rows,
        *(f"{metric}, {design}: {reason}" for (metric, design), reason in SLOW.items()),
    ]
    report.bar("any metric and design / AUC of plain rows, 50,000 rows", largest, "≤", MOST)


@pytest.mark.parametrize("design", MAX_OF_MODELS)
@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few resamples
def test_two_models(report: Report, design: str) -> None:
    """Comparing two models walks up two scores, and sorts them: no more than a few plain AUCs."""
    data = _data(N_OF_MODELS)
    reference = _call("roc_auc", "plain", data, DRAWS)
    options = _options("roc_auc", design, data, DRAWS)

    def call() -> Any:
        return fairperm.compare_models(**options, y_score_new=data["y_score_new"])

    reference()
    call()
    pairs = [(_seconds(reference), _seconds(call)) for _ in range(REPEATS)]
    plain, mine = (min(times) for times in zip(*pairs, strict=True))
    name = f"change of the AUC / AUC of plain rows, 20,000 rows, {design}"
    report.bar(name, mine / plain, "≤", MAX_OF_MODELS[design])


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few resamples
def test_growth(report: Report, design: str) -> None:
    """Eight times the rows, or the permutations, take about eight times as long."""
    small, large = _data(N), _data(8 * N)
    calls = {
        "both": _call("roc_auc", design, small, DRAWS),
        "rows": _call("roc_auc", design, large, DRAWS),
        "permutations": _call("roc_auc", design, small, 8 * DRAWS),
    }
    calls["both"]()
    rounds = [{name: _seconds(call) for name, call in calls.items()} for _ in range(REPEATS)]
    best = {name: min(one[name] for one in rounds) for name in calls}
    for name in ("rows", "permutations"):
        exponent = math.log(best[name] / best["both"], 8)
        report.bar(f"exponent of {name} in the time of an AUC, {design}", exponent, "≤", 1.2)
