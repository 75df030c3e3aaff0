"""Write down the numbers of a fixed set of calls, to see whether a change of code moves any.

    python scripts/snapshot.py OUT.json               # run all calls
    python scripts/snapshot.py --compare A.json B.json   # list what differs; exit code 1 if any

The calls use only what is public (``fairperm``, ``fairperm.metrics``, ``plots``, ``datasets`` and
``simulate``) and the command ``fairperm``, so that the script runs on commits whose private modules
have other names. The file has numbers, names and verdicts, floats with all their digits. Sentences
are left out (notes are counted), and so are versions, paths and times: English may change, numbers
may not. A call that raises is recorded by the class of its error. Arrays of more than a few
numbers are recorded by their hash, and by their sum and range, which tell how far apart they are.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import itertools
import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import fairperm
from fairperm import datasets, metrics, plots, simulate

Call = Callable[[], Any]
Cases = Iterator[tuple[str, Call]]

SENTENCES = {"validity", "reason", "null", "meaning", "needs"}
CIRCUMSTANCES = {"versions", "command", "options", "inputs", "library", "frame_library"}
ARRAYS = ("null_distribution", "null_probabilities", "bootstrap_distribution")
FEW = 40  # numbers of an array that are written one by one
SEEDED: dict[str, Any] = {"rng": 1, "progress": False, "n_resamples": 199}
BINARY: dict[str, Any] = {"y_true": "y", "y_pred": "pred", "sensitive_features": "group"}
SCORED: dict[str, Any] = {"y_true": "y", "y_score": "score", "sensitive_features": "group"}
AMOUNTS: dict[str, Any] = {
    "y_true": "amount",
    "y_pred": "forecast",
    "sensitive_features": "group",
}
CLASSES: dict[str, Any] = {
    "y_true": "colour",
    "y_pred": "colour_pred",
    "sensitive_features": "group",
}
STRATA: dict[str, Any] = {"control_features": "stratum"}
WEIGHTED_STRATA: dict[str, Any] = {**STRATA, "stratum_weights": {"x": 1.0, "y": 2.0, "z": 0.5}}
DESIGNS: dict[str, dict[str, Any]] = {
    "strata": STRATA,
    "stratum_weights": WEIGHTED_STRATA,
    "weights": {"sample_weight": "weight"},
    "clusters": {"cluster": "person"},
    "weighted_clusters": {"sample_weight": "weight", "cluster": "person"},
    "clusters_in_strata": {"cluster": "person", **STRATA},
    "everything": {"sample_weight": "weight", "cluster": "person", **WEIGHTED_STRATA},
}


def draw_rows(n: int = 480, seed: int = 7) -> dict[str, Any]:
    """Return columns of every kind; four rows are of one person, in one group and stratum."""
    rng = np.random.default_rng(seed)
    people = n // 4
    person = np.repeat(np.arange(people), 4)
    group = np.array(["a", "b"])[(rng.random(people) < 0.45).astype(int)][person]
    region = np.array(["east", "north", "west"])[rng.integers(0, 3, people)][person]
    stratum = np.array(["x", "y", "z"])[rng.integers(0, 3, people)][person]
    y = (rng.random(n) < np.where(group == "a", 0.55, 0.4)).astype(int)
    score = np.clip(rng.normal(0.35 + 0.25 * y + 0.05 * (group == "a"), 0.2), 0, 1).round(2)
    colours = np.array(["blue", "green", "red"])
    colour = colours[rng.integers(0, 3, n)]
    is_right = rng.random(n) < 0.7
    amount = np.exp(rng.normal(size=n)).round(3) + 0.001
    return {
        "person": person,
        "group": group,
        "region": region,
        "stratum": stratum,
        "y": y,
        "score": score,
        "pred": (score >= 0.5).astype(int),
        "weight": (0.5 + rng.random(n)).round(2),
        "colour": colour,
        "colour_pred": np.where(is_right, colour, colours[rng.integers(0, 3, n)]),
        "amount": amount,
        "forecast": (amount * np.exp(rng.normal(0, 0.3, n))).round(3) + 0.001,
    }


ROWS = draw_rows()
FEW_ROWS = {name: column[:12] for name, column in draw_rows(48, seed=3).items()} | {
    "group": np.array(list("aabbabababba"))
}


def miss_rate(y_true: Any, y_pred: Any) -> float:
    """Return the false negative rate, as a function of the user's own."""
    positive = np.asarray(y_true) == 1
    return float((np.asarray(y_pred)[positive] == 0).mean()) if positive.any() else math.nan


def weighted_error(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    """Return the error rate, as a function that takes weights."""
    wrong = np.asarray(y_true) != np.asarray(y_pred)
    return float(np.average(wrong, weights=sample_weight))


# --- From results to plain values -------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a result as JSON values: numbers, names and verdicts, without sentences."""
    if hasattr(value, "to_dict") and hasattr(value, "seed"):
        found = plain(value.to_dict())
        return found | {
            name: plain(getattr(value, name)) for name in ARRAYS if hasattr(value, name)
        }
    if isinstance(value, Mapping):
        return plain_mapping(value)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain_array(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (str, int, float, type(None))):
        return value
    if hasattr(value, "to_dict") and not hasattr(value, "columns"):
        return plain(value.to_dict())
    return plain(nw.from_native(value, eager_only=True).to_dict(as_series=False))


def plain_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping without its sentences; of settings only numbers, of notes their number."""
    found: dict[str, Any] = {}
    for key, one in value.items():
        if key in SENTENCES or key in CIRCUMSTANCES:
            continue
        if key == "notes":
            found["n_notes"] = len(one)
        elif key == "settings":
            found[key] = {name: plain(one[name]) for name in one if is_number(one[name])}
        else:
            found[str(key)] = plain(one)
    return found


def is_number(value: object) -> bool:
    """Return whether a value is a number, a boolean or None."""
    return value is None or isinstance(value, (int, float))


def plain_array(array: Any) -> Any:
    """Return a short array as a list, and a long one as its hash, sum and range."""
    if array.size <= FEW or array.dtype.kind not in "fiub":
        values = array.tolist()
        return plain(values) if array.size <= FEW else {"sha256": digest(repr(values))}
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    ends = [float(numbers.min()), float(numbers.max())]
    return {
        "sha256": digest(numbers.tobytes()),
        "size": array.size,
        "sum": plain(math.fsum(numbers.ravel().tolist())),
        "range": plain(ends),
    }


def digest(content: str | bytes) -> str:
    """Return the SHA-256 of a text or of bytes."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def chart_numbers(*specifications: Any) -> Any:
    """Return the numbers in the data of charts, in ascending order; integers may be places."""
    found: list[float] = []
    for one in specifications:
        collect_data(one, found)
    return plain_array(np.array(sorted(found)))


def collect_data(node: Any, found: list[float]) -> None:
    """Collect all fractions in the rows that a Vega-Lite specification embeds."""
    if isinstance(node, Mapping):
        for key, one in node.items():
            if key == "datasets":
                rows = list(itertools.chain.from_iterable(one.values()))
            elif key == "values" and isinstance(one, list):
                rows = [row for row in one if isinstance(row, Mapping)]
            else:
                collect_data(one, found)
                continue
            numbers = (number for row in rows for number in row.values())
            found += [x for x in numbers if isinstance(x, float) and not x.is_integer()]
    elif isinstance(node, list):
        for one in node:
            collect_data(one, found)


def draw(chart: Any) -> Any:
    """Return the numbers in a chart of Altair."""
    return chart_numbers(chart.to_dict())


# --- Calls from Python ------------------------------------------------------------------------


def gap_test(data: Any = None, **options: Any) -> Any:
    """Run a permutation test of the rows."""
    return fairperm.permutation_test(data=ROWS if data is None else data, **(SEEDED | options))


def metric_cases() -> Cases:
    """Yield every metric with predictions, with scores, with both and with amounts."""
    readings = {"pred": BINARY, "score": SCORED, "both": SCORED | BINARY, "amounts": AMOUNTS}
    for name, (kind, columns) in itertools.product(fairperm.metric_names(), readings.items()):
        if (name, kind) != ("macro_f1", "amounts"):  # every amount would be a class
            yield f"metric/{name}/{kind}", partial(gap_test, **columns, metric=name)
    shares = BINARY | {"y_true": ROWS["score"] / 2, "y_pred": "score"}  # benefits above zero
    yield "metric/theil_l_index/shares", partial(gap_test, **shares, metric="theil_l_index")
    for name in ("accuracy", "error_rate", "macro_f1"):
        yield f"metric/{name}/classes", partial(gap_test, **CLASSES, metric=name)
    made: dict[str, tuple[dict[str, Any], Any]] = {
        "recall_of": (CLASSES, metrics.recall_of("red")),
        "precision_of": (CLASSES, metrics.precision_of("red")),
        "entropy_2": (BINARY, metrics.generalized_entropy_index()),
        "entropy_half": (AMOUNTS, metrics.generalized_entropy_index(0.5)),
        "atkinson": (AMOUNTS, metrics.atkinson_index()),
        "alias": (BINARY, metrics.get_metric("recall")),
        "function": (BINARY, miss_rate),
        "function_weights": (BINARY, weighted_error),
    }
    for name, (columns, metric) in made.items():
        yield f"metric/made/{name}", partial(gap_test, **columns, metric=metric)


def registered_cases() -> Cases:
    """Yield tests of metrics that the user registers; after all that list the metrics."""

    def register() -> Any:
        fairperm.register_metric(
            "snapshot_quartic",
            contributions={"e4": lambda y_true, y_pred: (y_pred - y_true) ** 4},
            value=lambda e4: e4**0.25,
            aliases=("snapshot_q",),
        )
        return gap_test(**AMOUNTS, metric="snapshot_q")

    yield "registered/quartic", register
    yield "registered/omnibus", lambda: several(**AMOUNTS, metric="snapshot_quartic")


def option_cases() -> Cases:
    """Yield all schemes, variances and alternatives, and all designs, of several metrics."""
    tested: dict[str, dict[str, Any]] = {
        "fnr": BINARY | {"metric": "fnr"},
        "f1_score": BINARY | {"metric": "f1_score"},
        "balanced_accuracy": BINARY | {"metric": "balanced_accuracy"},
        "equalized_odds": BINARY | {"metric": "equalized_odds"},
        "roc_auc": SCORED | {"metric": "roc_auc"},
        "mean_squared_error": AMOUNTS | {"metric": "mean_squared_error"},
        "function": BINARY | {"metric": miss_rate, "n_resamples": 99},
    }
    schemes = ("pooled", "within_label", "denominator")
    variances = ("score", "wald", "delta", "delong", "bootstrap", "fast_bootstrap", None)
    small = {"n_resamples": 49, "n_bootstrap": 20}
    for name, given in tested.items():
        for scheme, variance in itertools.product(schemes, variances):
            options = given | small | {"scheme": scheme, "variance": variance}
            yield f"plan/{name}/{scheme}/{variance}", partial(gap_test, **options)
        for side in ("greater", "less"):
            options = given | {"alternative": side}
            yield f"alternative/{name}/{side}", partial(gap_test, **options)
        for design, extra in DESIGNS.items():
            yield f"design/{name}/{design}", partial(gap_test, **(given | extra))
        yield f"limit/{name}", partial(gap_test, **(given | {"n_resamples": 0}))
        few = given | {"data": FEW_ROWS}
        yield f"exact/{name}", partial(gap_test, **few)


def detail_cases() -> Cases:
    """Yield what else a permutation test can be given: groups, labels, missing values, threads."""
    words = np.where(ROWS["y"] == 1, "yes", "no")
    signs = {"y": 2 * ROWS["y"] - 1, "pred": 2 * ROWS["pred"] - 1, "group": ROWS["group"]}
    gaps = np.where(np.arange(len(words)) % 17 == 0, np.nan, ROWS["score"])
    fnr = BINARY | {"metric": "fnr"}
    auc = SCORED | {"metric": "roc_auc"}
    crossed = fnr | {"sensitive_features": ["group", "region"]}
    cases: dict[str, dict[str, Any]] = {
        "groups": fnr | {"sensitive_features": "region", "groups": ("west", "east")},
        "swapped": fnr | {"groups": ("b", "a")},
        "crossed": crossed | {"groups": (("a", "east"), ("b", "west"))},
        "pos_label": fnr | {"y_true": words, "y_pred": words[::-1], "pos_label": "yes"},
        "signs": fnr | {"data": signs},
        "booleans": fnr | {"y_true": ROWS["y"] == 1, "y_pred": ROWS["pred"] == 1},
        "threshold": SCORED | {"metric": "fpr", "threshold": 0.4},
        "two_controls": fnr | {"control_features": ["stratum", "region"]},
        "missing_auc": auc | {"y_score": gaps, "missing": "drop"},
        "missing_rate": SCORED | {"metric": "fnr", "y_score": gaps, "missing": "drop"},
        "confidence_level": fnr | {"confidence_level": 0.8},
        "seed": auc | {"rng": 12345},
        "many": auc | {"n_resamples": 4999},
        "jobs_rate": fnr | {"scheme": "pooled", "n_jobs": 2, "n_resamples": 4999},
        "jobs_auc": auc | {"n_jobs": 2, "n_resamples": 4999},
        "jobs_function": BINARY | {"metric": miss_rate, "n_jobs": 2},
        "defaults": fnr | {"n_resamples": 9999, "scheme": "within_label"},
    }
    for name, options in cases.items():
        yield f"detail/{name}", partial(gap_test, **options)


def make_frames() -> dict[str, Any]:
    """Return the rows as a frame of each library, eager and lazy."""
    table = pa.table(ROWS)
    return {
        "pandas": pd.DataFrame(ROWS),
        "polars": pl.DataFrame(ROWS),
        "pyarrow": table,
        "polars_lazy": pl.DataFrame(ROWS).lazy(),
        "duckdb": duckdb.from_arrow(table),
    }


def frame_cases() -> Cases:
    """Yield the same tests over every kind of frame, and what only lazy frames can do."""
    for name, frame in make_frames().items():
        for metric, columns in (
            ("fnr", BINARY),
            ("roc_auc", SCORED),
            ("mean_squared_error", AMOUNTS),
            ("macro_f1", CLASSES),
        ):
            given = columns | {"metric": metric}
            yield f"frame/{name}/{metric}", partial(gap_test, frame, **given)
        if name in {"polars_lazy", "duckdb"}:
            yield from lazy_cases(name, frame)
    drop: dict[str, Any] = {"metric": "fnr", "missing": "drop"}
    holes = {**ROWS, "pred": [None if i % 11 == 0 else x for i, x in enumerate(ROWS["pred"])]}
    frames: dict[str, Any] = {"pandas": pd.DataFrame(holes), "polars": pl.DataFrame(holes)}
    frames["lazy"] = frames["polars"].lazy()
    for name, frame in frames.items():
        yield f"missing/{name}", partial(gap_test, frame, **BINARY, **drop)


def lazy_cases(name: str, frame: Any) -> Cases:
    """Yield what only lazy frames can do: bins, samples, sums, designs counted in place."""
    squared = AMOUNTS | {"metric": "mean_squared_error"}
    auc = SCORED | {"metric": "roc_auc"}
    cases: dict[str, dict[str, Any]] = {
        "score_bins": auc | {"score_bins": 16},
        "sample_rows": squared | {"sample_rows": 100},
        "sample_clusters": squared | {"sample_rows": 100, "cluster": "person"},
        "sums": squared | {"n_resamples": 0},
        "sums_strata": squared | {"n_resamples": 0} | WEIGHTED_STRATA,
        "clusters": BINARY | {"metric": "fnr", "cluster": "person"},
        "weights": BINARY | {"metric": "fnr", "sample_weight": "weight"},
        "strata": auc | WEIGHTED_STRATA,
        "threshold": SCORED | {"metric": "fpr", "threshold": 0.4},
        "function": BINARY | {"metric": miss_rate},
    }
    for case, options in cases.items():
        yield f"lazy/{name}/{case}", partial(gap_test, frame, **options)
    grid = {"metric": ["fnr", "selection_rate"], "thresholds": 9}
    yield f"lazy/{name}/sweep", partial(sweep, frame, **(SCORED | grid))
    names = {"metrics": ["fnr", "roc_auc"], "sensitive_features": ["group", "region"]}
    yield f"lazy/{name}/audit", partial(audit, frame, **(SCORED | names))


def several(data: Any = None, **options: Any) -> Any:
    """Run an omnibus test of three regions."""
    given = SEEDED | options | {"sensitive_features": "region"}
    return fairperm.omnibus_test(data=ROWS if data is None else data, **given)


def bootstrap(data: Any = None, **options: Any) -> Any:
    """Run a bootstrap test of the rows."""
    return fairperm.bootstrap_test(data=ROWS if data is None else data, **(SEEDED | options))


def sweep(data: Any = None, **options: Any) -> Any:
    """Run a sweep over thresholds, and return it with its frame."""
    options = SEEDED | {"thresholds": 11} | options
    result = fairperm.threshold_sweep(data=ROWS if data is None else data, **options)
    return {"result": result, "frame": result.to_frame("pyarrow")}


def many_group_cases() -> Cases:
    """Yield omnibus tests of every kind."""
    tested: dict[str, dict[str, Any]] = {
        "fnr": BINARY | {"metric": "fnr"},
        "matthews_corrcoef": BINARY | {"metric": "matthews_corrcoef"},
        "equalized_odds": BINARY | {"metric": "equalized_odds"},
        "roc_auc": SCORED | {"metric": "roc_auc"},
        "r2_score": AMOUNTS | {"metric": "r2_score"},
        "function": BINARY | {"metric": miss_rate, "n_resamples": 49},
    }
    for name, given in tested.items():
        yield f"omnibus/{name}", partial(several, **given)
        for design, extra in DESIGNS.items():
            yield f"omnibus/{name}/{design}", partial(several, **(given | extra))
        for scheme in ("pooled", "within_label", "denominator"):
            options = given | {"scheme": scheme}
            yield f"omnibus/{name}/{scheme}", partial(several, **options)
        for variance in ("score", "wald", "delta", "delong", "fast_bootstrap", None):
            options = given | {"variance": variance}
            yield f"omnibus/{name}/{variance}", partial(several, **options)
    pair = BINARY | {"metric": "fnr", "groups": ("east", "west")}
    yield "omnibus/pair", lambda: several(**pair)
    yield "omnibus/jobs", lambda: several(**SCORED, metric="roc_auc", n_jobs=2, n_resamples=999)


def other_test_cases() -> Cases:
    """Yield bootstrap, equivalence, non-inferiority, correlation tests and sweeps."""
    for method, metric in itertools.product(("BCa", "percentile", "basic"), ("fnr", "f1_score")):
        given = BINARY | {"metric": metric, "method": method}
        yield f"bootstrap/{method}/{metric}", partial(bootstrap, **given)
    for name, columns in (("roc_auc", SCORED), ("mean_absolute_error", AMOUNTS)):
        yield f"bootstrap/{name}", partial(bootstrap, **columns, metric=name)
        given = columns | WEIGHTED_STRATA | {"metric": name, "alternative": "greater"}
        yield f"bootstrap/{name}/strata", partial(bootstrap, **given)
    yield "bootstrap/function", lambda: bootstrap(**BINARY, metric=miss_rate, n_jobs=2)
    yield from margin_cases()
    yield from correlation_cases()
    yield from sweep_cases()


def margin_cases() -> Cases:
    """Yield tests of margins and ratios."""
    margins: dict[str, dict[str, Any]] = {
        "margin": {"margin": 0.2},
        "pair": {"margin": (-0.1, 0.3)},
        "ratio": {"ratio": 0.8},
    }
    tested: dict[str, dict[str, Any]] = {
        "selection_rate": BINARY | {"metric": "selection_rate"},
        "fnr": BINARY | {"metric": "fnr"},
        "accuracy_strata": BINARY | {"metric": "accuracy"} | WEIGHTED_STRATA,
        "f1_score": BINARY | {"metric": "f1_score"},
        "roc_auc": SCORED | {"metric": "roc_auc"},
        "mean_absolute_error": AMOUNTS | {"metric": "mean_absolute_error"},
        "clusters": BINARY | {"metric": "fnr", "cluster": "person"},
        "function": BINARY | {"metric": miss_rate},
        "few": BINARY | {"metric": "accuracy", "data": FEW_ROWS},
    }
    for (name, given), (kind, margin) in itertools.product(tested.items(), margins.items()):
        options = SEEDED | {"data": ROWS} | given | margin
        yield f"equivalence/{name}/{kind}", partial(fairperm.equivalence_test, **options)
        if kind == "pair":
            continue
        for better in (True, False):
            one_sided = options | {"higher_is_better": better}
            call = f"noninferiority/{name}/{kind}/{better}"
            yield call, partial(fairperm.noninferiority, **one_sided)


def correlation_cases() -> Cases:
    """Yield tests of correlations."""
    pair: dict[str, Any] = {"x": "amount", "y": "score", "data": ROWS}
    few = {"x": "amount", "y": "score", "data": {k: v[:7] for k, v in ROWS.items()}}
    for method, studentize in itertools.product(("pearson", "spearman"), (True, False)):
        given = SEEDED | {"method": method, "studentize": studentize}
        name = f"correlation/{method}/{studentize}"
        yield name, partial(fairperm.correlation_test, **(pair | given))
        more = given | few | {"n_resamples": 9999}
        yield f"{name}/exact", partial(fairperm.correlation_test, **more)
        for side in ("greater", "less"):
            sided = given | pair | {"alternative": side}
            yield f"{name}/{side}", partial(fairperm.correlation_test, **sided)
    frame = SEEDED | pair | {"data": pd.DataFrame(ROWS), "n_jobs": 2, "n_resamples": 999}
    yield "correlation/pandas", lambda: fairperm.correlation_test(**frame)


def sweep_cases() -> Cases:
    """Yield sweeps over thresholds."""
    rates = ["selection_rate", "fnr", "fpr"]
    cases: dict[str, dict[str, Any]] = {
        "rates": {"metric": rates},
        "within_label": {"metric": ["fnr", "fpr"]},
        "denominator": {"metric": "fnr", "scheme": "denominator"},
        "smooth": {"metric": ["f1_score", "balanced_accuracy"]},
        "scores": {"metric": "accuracy", "thresholds": "scores"},
        "given": {"metric": "ppv", "thresholds": [0.2, 0.5, 0.8]},
        "wald": {"metric": rates, "variance": "wald"},
        "plain": {"metric": rates, "variance": None, "scheme": "pooled"},
        "strata": {"metric": rates} | WEIGHTED_STRATA,
        "alpha": {"metric": "fnr", "alpha": 0.2, "n_jobs": 2},
    }
    for name, options in cases.items():
        yield f"sweep/{name}", partial(sweep, **(SCORED | options))


def audit(data: Any = None, **options: Any) -> Any:
    """Run an audit, and return it with its frame."""
    data = ROWS if data is None else data
    given = SEEDED | {"sensitive_features": ["group", "region"], "min_group_size": 20} | options
    result = fairperm.audit(data=data, **given)
    return {"audit": result, "frame": drop_reasons(result.to_frame("pyarrow"))}


def drop_reasons(table: Any) -> Any:
    """Return a table without the column of sentences."""
    return table.drop_columns(["reason"])


def audit_cases() -> Cases:
    """Yield audits with every adjustment, comparison, margin and design."""
    both = {"y_true": "y", "y_pred": "pred", "y_score": "score"}
    names = ["selection_rate", "fnr", "f1_score", "roc_auc"]
    reference = {"compare": "reference", "reference": {"group": "b", "region": "west"}}
    cases: dict[str, dict[str, Any]] = {
        **{f"adjust/{one}": {"adjust": one} for one in ("holm", "bh", "by", "maxt", None)},
        **{f"compare/{one}": {"compare": one} for one in ("pairs", "reference", "rest")},
        **{f"design/{name}": extra for name, extra in DESIGNS.items()},
        "reference": reference,
        "margin": {"margin": 0.15},
        "margins": {"margin": {"fnr": 0.2, "roc_auc": 0.1}, "adjust": "bh"},
        "maxt_margin": {"margin": 0.2, "adjust": "maxt", "compare": "rest"},
        "maxt_intersections": {"adjust": "maxt", "intersections": True},
        "intersections": {"intersections": True, "compare": "rest", "margin": 0.2},
        "small": {"intersections": True, "min_group_size": 90},
        "limit": {"n_resamples": 0},
        "less": {"alternative": "less"},
        "pooled": {"scheme": "pooled", "metrics": ["fnr", "roc_auc"]},
        "levels": {"alpha": 0.2, "confidence_level": 0.9},
        "joint": {"metrics": ["equalized_odds", "accuracy"]},
        "functions": {"metrics": {"miss": miss_rate, "error": weighted_error}, "y_score": None},
        "amounts": AMOUNTS | {"metrics": ["r2_score", "mean_squared_error"], "y_score": None},
        "jobs": {"n_jobs": 2, "n_resamples": 999},
    }
    for name, options in cases.items():
        given = both | {"metrics": names} | options
        yield f"audit/{name}", partial(audit, **given)
    for name, frame in make_frames().items():
        given = both | {"metrics": names, "missing": "drop"}
        yield f"audit/frame/{name}", partial(audit, frame, **given)
    filtered = {"metrics": names, "sensitive_features": "region"}
    yield "audit/where", lambda: audit(**both | filtered)["audit"].where(metric="fnr")


def planning_cases() -> Cases:
    """Yield power, sample sizes and detectable gaps, by formula and by simulation."""
    designs: dict[str, tuple[Any, ...]] = {
        "fnr": ("fnr", (0.1, 0.2), (0.8, 0.2)),
        "selection_rate": ("selection_rate", (0.5, 0.4), None),
        "ppv": ("ppv", (0.7, 0.6), 0.5),
        "jaccard_score": ("jaccard_score", (0.5, 0.4), 0.6),
        "roc_auc": ("roc_auc", (0.85, 0.8), 0.3),
        "recall_of": (metrics.recall_of("red"), (0.8, 0.6), 0.3),
    }
    for name, (metric, values, rates) in designs.items():
        for scheme, side in itertools.product(("auto", "pooled"), ("two-sided", "greater")):
            given = {"metric": metric, "base_rates": rates, "scheme": scheme, "alternative": side}
            case = f"{name}/{scheme}/{side}"
            yield from planned_cases(case, given, values)
        uneven = {"metric": metric, "base_rates": rates, "share": 0.3, "alpha": 0.01}
        yield from planned_cases(f"{name}/share", uneven, values)
    yield from pilot_cases()
    yield from simulation_cases()


def planned_cases(case: str, given: dict[str, Any], values: tuple[float, float]) -> Cases:
    """Yield power, sample size and detectable gap of one design."""
    yield f"power/{case}", lambda: fairperm.power(**given, values=values, n=400)
    yield f"power/{case}/many", lambda: fairperm.power(**given, values=values, n=20_000)
    yield f"sample_size/{case}", lambda: fairperm.sample_size(**given, values=values)
    gap = fairperm.minimum_detectable_gap
    yield f"detectable/{case}", lambda: gap(**given, value=values[1], n=500)


def pilot_cases() -> Cases:
    """Yield plans from a test of an earlier sample."""

    def plan(metric: str, columns: dict[str, Any]) -> dict[str, float]:
        pilot = gap_test(**columns, metric=metric)
        gap = fairperm.minimum_detectable_gap(pilot=pilot, n=1000, share=0.3)
        return {
            "power": fairperm.power(pilot=pilot, n=2000),
            "sample_size": fairperm.sample_size(pilot=pilot),
            "gap": gap,
        }

    for metric, columns in (("mean_squared_error", AMOUNTS), ("roc_auc", SCORED)):
        yield f"pilot/{metric}", partial(plan, metric, columns)


def simulation_cases() -> Cases:
    """Yield simulated power and calibration."""
    few: dict[str, Any] = SEEDED | {"n_simulations": 40, "n_resamples": 59, "data": ROWS}
    for name, given in {
        "fnr": BINARY | {"metric": "fnr"},
        "roc_auc": SCORED | {"metric": "roc_auc"},
        "strata": BINARY | {"metric": "accuracy"} | STRATA,
        "mean_squared_error": AMOUNTS | {"metric": "mean_squared_error"},
    }.items():
        options = few | given
        sized = options | {"n": 200, "effect": 0.7, "share": 0.4}
        yield f"simulated_power/{name}", partial(fairperm.simulated_power, **sized)
        yield f"calibrate/{name}", partial(fairperm.calibrate, **options)
    apart = few | BINARY | {"metric": "fnr", "gap": 0.1, "cluster": "person"}
    yield "calibrate/clusters", lambda: fairperm.calibrate(**apart)
    naive = few | BINARY | {"metric": "fnr", "scheme": "pooled", "variance": None}
    yield "calibrate/naive", lambda: fairperm.calibrate(**naive)


def population_cases() -> Cases:
    """Yield populations of known truth, and the data that come with fairperm."""
    populations: dict[str, Any] = {
        "rates": simulate.Rates(n=(200, 150), base_rate=(0.8, 0.2), true_positive_rate=(0.9, 0.7)),
        "scores": simulate.Scores(n=(200, 150), base_rate=(0.3, 0.4), spread=(3.0, 1.0)),
        "regression": simulate.Regression(n=(200, 150), kurtosis=(3.0, 9.0)),
        "clusters": simulate.Clusters(n=(40, 30), correlation=0.2),
        "correlation": simulate.Correlation(300, "exponential", power=1, slope=1.0),
        "paper_fnr": simulate.PAPER_FNR,
        **{f"paper_{name}": one for name, one in simulate.PAPER_TABLE1.items()},
    }
    for name, one in populations.items():
        yield f"simulate/{name}", partial(one.draw, 3)
        if not name.startswith(("rates", "paper")):
            yield f"simulate/{name}/truth", one.truth
    rates = populations["rates"]
    for metric in ("fnr", "selection_rate", "f1_score"):
        yield f"simulate/rates/truth/{metric}", partial(rates.truth, metric)
    yield "simulate/rates/counts", lambda: rates.counts(5, 1)
    yield "simulate/scores/at", lambda: populations["scores"].at(1.0).truth("recall")
    yield "names/metrics", lambda: {name: name for name in fairperm.metric_names()}
    yield "names/public", lambda: {name: name for name in fairperm.__all__}
    yield "compas/columns", datasets.load_compas
    for backend in ("pandas", "polars", "pyarrow"):
        yield f"compas/{backend}", partial(compas_test, backend)
    yield "compas/fpr", lambda: compas_test(metric="fpr", threshold=5)


def compas_test(backend: Any = None, **options: Any) -> Any:
    """Test the gap between black and white defendants."""
    given: dict[str, Any] = {
        "y_true": "two_year_recid",
        "y_score": "decile_score",
        "sensitive_features": "race",
        "groups": ("African-American", "Caucasian"),
        "metric": "roc_auc",
        "data": datasets.load_compas(backend),
    }
    return fairperm.permutation_test(**(given | SEEDED | options))


def chart_cases() -> Cases:
    """Yield the numbers in every kind of chart, and in the charts of a report."""
    yield "chart/null", lambda: draw(gap_test(**SCORED, metric="roc_auc").plot())
    yield "chart/exact", lambda: draw(gap_test(**BINARY, metric="fnr").plot())
    yield "chart/sweep", lambda: draw(sweep(**SCORED, metric="fnr")["result"].plot(slider=True))
    yield "chart/power", lambda: draw(plots.power_curve([100, 200, 400], [0.31, 0.52, 0.83]))
    found: dict[str, Any] = BINARY | {"metrics": ["fnr", "fpr"], "margin": 0.2}
    yield "chart/forest", lambda: draw(audit(**found)["audit"].plot())
    yield "chart/audit_null", lambda: draw(audit(**found)["audit"].plot_null(0))
    yield "chart/report", lambda: report_numbers(audit(**found)["audit"].to_html())


def report_numbers(page: str) -> Any:
    """Return the numbers in the charts of a report."""
    blocks = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    return chart_numbers(*map(json.loads, blocks))


def error_cases() -> Cases:
    """Yield calls that must raise; the class of the error is recorded."""
    fnr = BINARY | {"metric": "fnr"}
    wrong: dict[str, dict[str, Any]] = {
        "metric": BINARY | {"metric": "fnrr"},
        "metric_type": BINARY | {"metric": 3},
        "column": fnr | {"y_pred": "prediction"},
        "both": SCORED | {"y_pred": "pred", "metric": "fnr", "threshold": 0.5},
        "three_groups": fnr | {"sensitive_features": "region"},
        "group": fnr | {"groups": ("a", "nobody")},
        "resamples": fnr | {"n_resamples": -1},
        "level": fnr | {"confidence_level": 1.5},
        "scheme": fnr | {"scheme": "all"},
        "lengths": fnr | {"y_true": [0, 1], "y_pred": [0, 1, 1], "sensitive_features": ["a", "b"]},
        "undefined": fnr | {"y_true": np.zeros(len(ROWS["y"]), int)},
        "joint_side": BINARY | {"metric": "equalized_odds", "alternative": "less"},
        "weights": fnr | {"sample_weight": -ROWS["weight"]},
        "missing": fnr | {"y_pred": np.where(ROWS["y"] == 1, np.nan, 0.0)},
        "strata": fnr | STRATA | {"stratum_weights": {"x": 1.0}},
    }
    for name, options in wrong.items():
        yield f"error/{name}", partial(gap_test, **options)
    yield "error/adjust", lambda: audit(**BINARY, metrics=["fnr"], adjust="bonferoni")
    yield "error/margin", lambda: fairperm.equivalence_test(data=ROWS, **fnr, **SEEDED)
    yield "error/power", lambda: fairperm.power("mean_squared_error", values=(1, 2), n=100)


# --- Calls of the command ---------------------------------------------------------------------


def write_files(folder: Path) -> None:
    """Write the rows in every format that the command reads."""
    table = pa.table(ROWS)
    frame = pl.DataFrame(ROWS)
    frame.write_csv(folder / "rows.csv")
    frame.write_csv(folder / "rows.tsv", separator="\t")
    frame.write_ndjson(folder / "rows.jsonl")
    pq.write_table(table, folder / "rows.parquet")
    with pa.ipc.new_file(str(folder / "rows.arrow"), table.schema) as writer:
        writer.write_table(table)
    with duckdb.connect(str(folder / "rows.duckdb")) as database:
        database.register("made", table)
        database.execute("CREATE TABLE rows AS SELECT * FROM made")
    with closing(sqlite3.connect(folder / "rows.sqlite")) as connection:
        pd.DataFrame(ROWS).to_sql("rows", connection, index=False)


def command_lines() -> dict[str, str]:
    """Return the commands to run; OUT stands for a folder of each command's own."""
    both = "--label y --prediction pred --score score"
    audited = f"{both} --group group --group region --seed 1 --resamples 199 --min-group-size 20"
    tested = "--label y --score score --group group --seed 1 --resamples 199"
    names = "--metric fnr --metric fpr --metric roc_auc"
    out = "--quiet --json OUT/out.json"
    all_out = f"{out} --csv OUT/out.csv --markdown OUT/out.md"
    return {
        "audit/csv": f"audit rows.csv {audited} {names} {all_out} --report OUT/out.html",
        "audit/parquet": f"audit rows.parquet {audited} {names} {all_out} --adjust maxt",
        "audit/jsonl": f"audit rows.jsonl {audited} {all_out} --margin 0.2 --compare rest",
        "audit/sqlite": f"audit rows.sqlite --table rows {audited} {out} --intersections",
        "audit/fail": f"audit rows.csv {audited} --quiet --fail-on inconclusive --cluster person",
        "audit/reference": f"audit rows.tsv {audited} {out} --reference region=west --adjust bh"
        " --reference group=b --weight weight --control stratum",
        "audit/where": f"audit rows.arrow {audited} {out} --where amount>1 --margin fpr=0.1",
        "test/csv": f"test rows.csv {tested} {out} --metric fnr --threshold 0.4",
        "test/parquet": f"test rows.parquet {tested} {out} --metric roc_auc --score-bins 16",
        "test/sample": f"test rows.parquet {tested} {out} --metric log_loss --sample-rows 100",
        "test/duckdb": f"test rows.duckdb --table rows {tested} {out} --metric roc_auc"
        " --control stratum --stratum-weights x=1 --stratum-weights y=2 --stratum-weights z=0.5",
        "test/pair": "test rows.jsonl --label amount --prediction forecast --group region"
        f" --pair west east --metric mean_squared_error --seed 1 --resamples 199 {out}",
        "sweep/csv": f"sweep rows.csv {tested} {out} --csv OUT/out.csv --thresholds 11",
        "sweep/sqlite": f"sweep rows.sqlite {tested} {out} --thresholds 0.2,0.5 --metric accuracy",
        "power/n": f"power --metric fnr --first 0.1 --second 0.2 --base-rate 0.5 {out}",
        "power/power": f"power --metric roc_auc --first 0.85 --second 0.8 --n 900"
        f" --base-rate 0.3 --base-rate 0.4 {out}",
        "power/gap": f"power --metric selection_rate --second 0.2 --n 400 --share 0.3 {out}",
        "metrics": "metrics --json OUT/out.json",
        "demo": "demo --report OUT/out.html",
        "error/file": f"audit nowhere.csv {audited}",
        "error/column": f"test rows.csv {tested} --metric fnr --control nobody",
        "error/option": "power --metrik fnr",
    }


def run_command(name: str, line: str, folder: Path) -> dict[str, Any]:
    """Run one command, and return its exit code and the numbers that it wrote."""
    out = folder / name.replace("/", "-")
    out.mkdir()
    program = Path(sys.executable).with_name("fairperm")
    words = [word.replace("OUT", str(out)) for word in line.split()]
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(  # noqa: S603
        [program, *words], cwd=folder, env=environment, capture_output=True, check=False
    )
    found: dict[str, Any] = {"exit_code": done.returncode}
    if name == "demo":
        found["table"] = demo_numbers(done.stdout.decode())
    return found | {path.suffix[1:]: read_output(path) for path in sorted(out.iterdir())}


def read_output(path: Path) -> Any:
    """Return the numbers in a file that the command wrote."""
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        return plain(json.loads(text))
    if path.suffix == ".csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        return {name: [row[name] for row in rows] for name in rows[0] if name != "reason"}
    if path.suffix == ".md":
        return [numbers_in(line) for line in text.splitlines() if line.startswith("|")]
    return report_numbers(text)


def numbers_in(line: str) -> list[str]:
    """Return the decimal numbers in a line, without regard to how a minus is written."""
    return re.findall(r"[-+]?\d+\.\d+", line.replace("−", "-"))


def demo_numbers(text: str) -> list[list[str]]:
    """Return the numbers in the lines of the demo that compare two groups."""
    lines = (line for line in text.splitlines() if re.search(r"(Caucasian|Male) .*\d\.\d", line))
    return [numbers_in(line) for line in lines]


# --- Running and comparing --------------------------------------------------------------------


def all_cases() -> Cases:
    """Yield every call from Python, by name."""
    yield from metric_cases()
    yield from option_cases()
    yield from detail_cases()
    yield from frame_cases()
    yield from many_group_cases()
    yield from other_test_cases()
    yield from audit_cases()
    yield from planning_cases()
    yield from population_cases()
    yield from chart_cases()
    yield from error_cases()
    yield from registered_cases()


def record(call: Call) -> Any:
    """Return what a call gives as plain values, or the class of the error that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call()
        except Exception as error:  # a bug in one call must not hide the others
            return {"raises": type(error).__name__}
    return plain(result)


def take_snapshot() -> dict[str, Any]:
    """Run every call and every command, and return what they give by name."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        for case, call in all_cases():
            found[case] = record(call)
        write_files(folder)
        runs = {
            f"command/{case}": pool.submit(run_command, case, line, folder)
            for case, line in command_lines().items()
        }
        return found | {case: run.result() for case, run in runs.items()}


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every number and name of a snapshot with the path that leads to it."""
    if isinstance(value, (dict, list)) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            yield from flatten(one, f"{path} > {key}" if path else str(key))
    else:
        yield path, value


def differences(first: Any, second: Any) -> Iterator[str]:
    """Yield a line for every path whose values differ, or that only one snapshot has."""
    before, after = dict(flatten(first)), dict(flatten(second))
    for path in [*before, *(path for path in after if path not in before)]:
        if path not in before or path not in after:
            yield f"{path}: only in the {'first' if path in before else 'second'} file"
        elif repr(before[path]) != repr(after[path]):
            yield f"{path}: {before[path]!r} became {after[path]!r}"


def main() -> None:
    """Take a snapshot, or compare two."""
    parser = argparse.ArgumentParser(description="Record the numbers of a fixed set of calls.")
    parser.add_argument("out", nargs="?", type=Path, help="the file to write")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"), help="two files")
    given = parser.parse_args()
    if given.compare:
        first, second = (json.loads(path.read_text("utf-8")) for path in given.compare)
        lines = list(differences(first, second))
        print("\n".join([*lines, f"{len(lines):,} differences in {len(first):,} calls"]))
        sys.exit(1 if lines else 0)
    if given.out is None:
        parser.error("name the file to write, or two files after --compare")
    found = take_snapshot()
    given.out.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", "utf-8")
    raised = sum(isinstance(one, dict) and "raises" in one for one in found.values())
    print(f"{len(found):,} calls, of which {raised:,} raise, written to {given.out}")


if __name__ == "__main__":
    main()
