"""Write down what a fixed set of calls returns, to see whether a change of code moves any number.

    python scripts/snapshot.py OUT.json                  # run all calls
    python scripts/snapshot.py --compare A.json B.json   # list what differs; exit code 1 if any
    python scripts/snapshot.py --compare A.json B.json --numbers   # without regard to wording
    python scripts/snapshot.py --compare A.json B.json --tolerance 1e-12   # nor to rounding

The calls use only what is public (``fairperm``, ``fairperm.metrics``, ``plots``, ``datasets`` and
``testing``) and the command ``fairperm``, so that the script runs on commits whose private modules
have other names. "numbers" has the numbers, names and verdicts of each call, floats with all their
digits; "texts" has its sentences: the repr, the notes, the message of an error, what a command
prints. Versions, paths and times are left out. A call that raises is recorded by the class of its
error. Arrays of more than a few numbers, such as all draws of a test, are recorded by their hash,
and by their sum and range, which tell how far apart they are.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import hashlib
import io
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
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
from fairperm import datasets, metrics, plots
from fairperm.testing import assert_no_disparity

Call = Callable[..., Any]
Cases = Iterator[tuple[str, Call]]

SENTENCES = {"validity", "reason", "null", "meaning", "needs", "notes"}
CIRCUMSTANCES = {"versions", "command", "options", "inputs", "library", "frame_library"}
ARRAYS = ("null_distribution", "null_probabilities")
PARTS = ("permutation", "comparisons", "changes", "rows", "omnibus", "result", "change")
LEVELS = (0.05, 0.2, 0.5, 0.8, 0.99)
ALTERNATIVES = ("two-sided", "symmetric", "greater", "less")
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
CLASS_SCORES: dict[str, Any] = {
    "y_true": "colour",
    "y_score": {"blue": "p_blue", "green": "p_green", "red": "p_red"},
    "sensitive_features": "group",
}
SCORED_ALONE: dict[str, Any] = {"y_true": "y", "y_score": "score"}
USERS: dict[str, Any] = {
    "relevance": "relevance",
    "score": "score",
    "query": "query",
    "sensitive_features": "kind",
}
ITEMS: dict[str, Any] = USERS | {"sensitive_features": "maker"}
NEW_BINARY: dict[str, Any] = BINARY | {"y_pred_new": "pred_new"}
NEW_SCORED: dict[str, Any] = SCORED | {"y_score_new": "score_new"}
NEW_AMOUNTS: dict[str, Any] = AMOUNTS | {"y_pred_new": "forecast_new"}
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
    weight = (0.5 + rng.random(n)).round(2)
    colour_pred = np.where(is_right, colour, colours[rng.integers(0, 3, n)])
    forecast = (amount * np.exp(rng.normal(0, 0.3, n))).round(3) + 0.001
    score_new = np.clip(score + rng.normal(0.03, 0.1, n), 0, 1).round(2)
    chances = rng.random((n, 3)) + 0.6 * (colour[:, None] == colours)
    chances = (chances / chances.sum(axis=1, keepdims=True)).round(3)
    return {
        "person": person,
        "group": group,
        "region": region,
        "stratum": stratum,
        "y": y,
        "score": score,
        "pred": (score >= 0.5).astype(int),
        "weight": weight,
        "colour": colour,
        "colour_pred": colour_pred,
        "amount": amount,
        "forecast": forecast,
        "score_new": score_new,
        "pred_new": (score_new >= 0.5).astype(int),
        "forecast_new": (forecast * np.exp(rng.normal(0, 0.1, n))).round(3) + 0.001,
        "p_blue": chances[:, 0],
        "p_green": chances[:, 1],
        "p_red": chances[:, 2],
        "period": np.array(["2021", "2022", "2023"])[rng.integers(0, 3, people)][person],
        "age": rng.integers(18, 80, people)[person],
    }


ROWS = draw_rows()
FEW_ROWS = {name: column[:12] for name, column in draw_rows(48, seed=3).items()} | {
    "group": np.array(list("aabbabababba"))
}


def draw_sets(n: int = 120, seed: int = 11) -> dict[str, Any]:
    """Return matched sets: each has two rows or more of some of three groups."""
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 5, n)
    matched = np.repeat(np.arange(n), size)
    rows = len(matched)
    place = np.concatenate([np.arange(one) for one in size])
    group = np.array(["a", "b", "c"])[(place + rng.integers(0, 2, rows) * (place > 1)) % 3]
    y = (rng.random(n) < 0.6).astype(int)[matched]
    score = np.clip(rng.normal(0.4 + 0.2 * y + 0.06 * (group == "a"), 0.2), 0, 1).round(2)
    amount = np.exp(rng.normal(size=n)).round(2)[matched] + 0.01
    return {
        "matched": matched,
        "group": group,
        "y": y,
        "score": score,
        "pred": (score >= 0.5).astype(int),
        "amount": amount,
        "forecast": (amount * np.exp(rng.normal(0, 0.4, rows))).round(3) + 0.001,
    }


def draw_lists(n: int = 60, seed: int = 13) -> dict[str, Any]:
    """Return ranked lists of five to eight items; queries, and items, are of two groups or more."""
    rng = np.random.default_rng(seed)
    size = rng.integers(5, 9, n)
    query = np.repeat(np.arange(n), size)
    rows = len(query)
    user = (np.arange(n) // 2)[query]
    kind = np.array(["new", "old"])[rng.integers(0, 2, n // 2)][user]
    relevance = rng.integers(0, 4, rows)
    maker = np.array(["large", "small"])[rng.integers(0, 2, rows)]
    score = rng.normal(0.5 * relevance + 0.4 * (kind == "old") - 0.3 * (maker == "small")).round(6)
    order = np.lexsort([-score, query])
    rank = np.empty(rows, int)
    rank[order] = np.concatenate([np.arange(1, one + 1) for one in size])
    return {
        "query": query,
        "user": user,
        "kind": kind,
        "country": np.array(["de", "fr", "it"])[rng.integers(0, 3, n // 2)][user],
        "topic": np.array(["arts", "news"])[rng.integers(0, 2, n // 2)][user],
        "maker": maker,
        "brand": np.array(["r", "s", "t"])[rng.integers(0, 3, rows)],
        "relevance": relevance,
        "relevant": (relevance >= 2).astype(int),
        "score": score,
        "rank": rank,
    }


SETS = draw_sets()
FEW_SETS = {name: column[SETS["matched"] < 9] for name, column in SETS.items()}
MATCHED: dict[str, Any] = {"data": SETS, "matched": "matched", "groups": ("a", "b")}
LISTS = draw_lists()
FEW_LISTS = {name: column[LISTS["query"] < 8] for name, column in LISTS.items()}


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
    if is_result(value):
        drawn = list_draws(value)
        return plain(value.to_dict()) | ({"draws": drawn} if drawn else {})
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
    return plain(nw.from_native(value, eager_only=True).to_dict(as_series=False))


def is_result(value: object) -> bool:
    """Return whether a value is a result of fairperm."""
    return hasattr(value, "to_dict") and type(value).__module__.startswith("fairperm")


def list_draws(result: object) -> dict[str, Any]:
    """Return the draws of a result and of its parts, which its dictionary does not have."""
    found = {name: plain(getattr(result, name)) for name in ARRAYS if hasattr(result, name)}
    for name in PARTS:
        part = getattr(result, name, None)
        several = part if isinstance(part, (list, tuple)) else [part]
        drawn = [list_draws(one) for one in several if is_result(one)]
        if any(drawn):
            found[name] = drawn
    return found


def texts(value: Any) -> dict[str, Any]:
    """Return the sentences of what a call gives: representations, notes, reasons."""
    if is_result(value):
        said = list(dict.fromkeys(sentences(value.to_dict())))
        return {"repr": without_addresses(repr(value)), "sentences": said}
    if isinstance(value, Mapping):
        found = {str(key): texts(one) for key, one in value.items()}
        return {key: one for key, one in found.items() if one}
    return {}


def sentences(value: Any, *, is_said: bool = False) -> Iterator[str]:
    """Yield the sentences in a dictionary."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from sentences(one, is_said=is_said or key in SENTENCES)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from sentences(one, is_said=is_said)
    elif is_said and isinstance(value, str):
        yield without_addresses(value)


def without_addresses(text: str) -> str:
    """Return a text without the addresses of functions in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def plain_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping without its sentences; of settings only numbers, of notes their number."""
    found: dict[str, Any] = {}
    for key, one in value.items():
        if key == "notes":
            found["n_notes"] = len(one)
        elif key in SENTENCES or key in CIRCUMSTANCES:
            continue
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
        "sum": math.fsum(numbers[np.isfinite(numbers)].tolist()),
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
    names = fairperm.metric_names()
    for name, (kind, columns) in itertools.product(names, readings.items()):
        if not (name.endswith("_macro") and kind == "amounts"):  # every amount would be a class
            yield f"metric/{name}/{kind}", partial(gap_test, **columns, metric=name)
    shares = BINARY | {"y_true": ROWS["score"] / 2, "y_pred": "score"}  # benefits above zero
    yield "metric/theil_l_index/shares", partial(gap_test, **shares, metric="theil_l_index")
    for name in ("accuracy", "error_rate", "recall_macro", "precision_macro", "f1_macro"):
        yield f"metric/{name}/classes", partial(gap_test, **CLASSES, metric=name)
    made: dict[str, tuple[dict[str, Any], Any]] = {
        "recall_of": (CLASSES, "recall[red]"),
        "precision_of": (CLASSES, "precision[red]"),
        "entropy_2": (BINARY, metrics.generalized_entropy_index()),
        "entropy_half": (AMOUNTS, metrics.generalized_entropy_index(0.5)),
        "atkinson": (AMOUNTS, metrics.atkinson_index()),
        "alias": (BINARY, metrics.get_metric("recall")),
        "pinball": (AMOUNTS, metrics.pinball_loss(0.9)),
        "function": (BINARY, miss_rate),
        "function_weights": (BINARY, weighted_error),
        "ovr": (CLASS_SCORES, "roc_auc_ovr"),
        "ovr_weighted": (CLASS_SCORES, "roc_auc_ovr_weighted"),
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
        )
        return gap_test(**AMOUNTS, metric="snapshot_quartic")

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
    schemes = ("auto", "pooled", "within_label", "denominator", "unconditional")
    variances = ("score", "wald", "delta", "delong", "bootstrap", "fast_bootstrap", None)
    small = {"n_resamples": 49, "n_bootstrap": 20}
    for name, given in tested.items():
        for scheme, variance in itertools.product(schemes, variances):
            options = given | small | {"scheme": scheme, "variance": variance}
            yield f"plan/{name}/{scheme}/{variance}", partial(gap_test, **options)
        for side in ALTERNATIVES[1:]:
            sided = given | {"alternative": side}
            yield f"alternative/{name}/{side}", partial(gap_test, **sided)
            yield f"limit/{name}/{side}", partial(gap_test, **(sided | {"n_resamples": 0}))
            yield f"exact/{name}/{side}", partial(gap_test, **(sided | {"data": FEW_ROWS}))
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
    holes = np.where(ROWS["group"] == "b", None, ROWS["group"])
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
        "missing_group": fnr | {"sensitive_features": holes, "missing": "group"},
        "split_clusters": fnr | {"cluster": ROWS["person"] // 2, "split_clusters": True},
        "ignore_index": fnr | {"y_pred": pd.Series(ROWS["pred"])[::-1], "ignore_index": True},
        "seed": auc | {"rng": 12345},
        "many": auc | {"n_resamples": 4999},
        "jobs_rate": fnr | {"scheme": "pooled", "n_jobs": 2, "n_resamples": 4999},
        "jobs_auc": auc | {"n_jobs": 2, "n_resamples": 4999},
        "jobs_function": BINARY | {"metric": miss_rate, "n_jobs": 2},
        "defaults": fnr | {"n_resamples": 9999, "scheme": "within_label"},
    }
    for name, options in cases.items():
        yield f"detail/{name}", partial(gap_test, **options)


def make_frames(columns: Mapping[str, Any] = ROWS) -> dict[str, Any]:
    """Return columns as a frame of each library, eager and lazy."""
    table = pa.table(columns)
    return {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "pyarrow": table,
        "polars_lazy": pl.DataFrame(columns).lazy(),
        "duckdb": duckdb.from_arrow(table),
    }


def frame_cases() -> Cases:
    """Yield the same tests over every kind of frame, and what only lazy frames can do."""
    for name, frame in make_frames().items():
        for metric, columns in (
            ("fnr", BINARY),
            ("roc_auc", SCORED),
            ("mean_squared_error", AMOUNTS),
            ("f1_macro", CLASSES),
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
    """Yield what only lazy frames can do: bins, sums, designs counted in place."""
    squared = AMOUNTS | {"metric": "mean_squared_error"}
    auc = SCORED | {"metric": "roc_auc"}
    cases: dict[str, dict[str, Any]] = {
        "score_bins": auc | {"score_bins": 16},
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
    """Yield equivalence, non-inferiority and correlation tests, and sweeps."""
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
        "matched": BINARY | {"metric": "fnr"} | MATCHED,
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
    for (name, given), draws in itertools.product(tested.items(), (199, 0, "auto")):
        if name == "function" and draws != 199:
            continue
        for kind, level in itertools.product(
            margins, (0.55, 0.8, 0.99) if draws == 199 else (0.6, 0.95)
        ):
            options = SEEDED | {"data": ROWS} | given | margins[kind]
            options |= {"n_resamples": draws, "confidence_level": level}
            case = f"{name}/{kind}/{draws}/{level}"
            yield f"equivalence/{case}", partial(fairperm.equivalence_test, **options)
            if kind != "pair" and draws == 0:
                yield f"noninferiority/{case}", partial(fairperm.noninferiority, **options)


def correlate(data: Any = None, **options: Any) -> Any:
    """Run a test of a correlation."""
    return fairperm.correlation_test(data=ROWS if data is None else data, **(SEEDED | options))


def correlation_cases() -> Cases:
    """Yield tests of correlations."""
    pair: dict[str, Any] = {"x": "amount", "y": "score", "data": ROWS}
    few = {"x": "amount", "y": "score", "data": {k: v[:7] for k, v in ROWS.items()}}
    for method, studentized in itertools.product(("pearson", "spearman"), (True, False)):
        given = SEEDED | {"method": method, "variance": "auto" if studentized else None}
        name = f"correlation/{method}/{studentized}"
        yield name, partial(fairperm.correlation_test, **(pair | given))
        more = given | few | {"n_resamples": 9999}
        yield f"{name}/exact", partial(fairperm.correlation_test, **more)
        for side in ALTERNATIVES[1:]:
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
        "jobs": {"metric": "fnr", "alpha": 0.2, "n_jobs": 2},
        **{f"alpha/{level}": {"metric": rates, "alpha": level} for level in LEVELS},
        **{f"side/{side}": {"metric": rates, "alternative": side} for side in ALTERNATIVES[1:]},
    }
    for name, options in cases.items():
        yield f"sweep/{name}", partial(sweep, **(SCORED | options))


def audit(data: Any = None, **options: Any) -> Any:
    """Run an audit, and return it with its frame."""
    data = ROWS if data is None else data
    given = SEEDED | {"sensitive_features": ["group", "region"], "min_group_size": 20} | options
    result = fairperm.audit(data=data, **given)
    return {"audit": result, "frame": drop_reasons(result.to_frame("pyarrow"))}


def read_again(result: Any) -> Any:
    """Return an audit that was written and read."""
    return fairperm.Audit.from_dict(json.loads(json.dumps(result.to_dict())))


def drop_reasons(table: Any) -> Any:
    """Return a table without the column of sentences."""
    return table.drop_columns(["reason"])


def audit_cases() -> Cases:
    """Yield audits with every adjustment, comparison, margin and design."""
    both = {"y_true": "y", "y_pred": "pred", "y_score": "score"}
    names = ["selection_rate", "fnr", "f1_score", "roc_auc"]
    reference = {"compare": "reference", "reference": {"group": "b", "region": "west"}}
    cases: dict[str, dict[str, Any]] = {
        **{f"adjust/{one}": {"adjust": one} for one in ("holm", "bh", "by", None)},
        **{f"compare/{one}": {"compare": one} for one in ("pairs", "reference", "rest")},
        **{f"design/{name}": extra for name, extra in DESIGNS.items()},
        "reference": reference,
        "margin": {"margin": 0.15},
        "margins": {"margin": {"fnr": 0.2, "roc_auc": 0.1}, "adjust": "bh"},
        "ratio": {"ratio": 0.8, "metrics": ["selection_rate", "fnr"]},
        "ratios": {"ratio": {"selection_rate": 0.8}, "margin": {"fnr": 0.1}},
        "attribute": {"family": "attribute"},
        "size_by_rows": {"group_size_by": "rows", "min_group_size": 100},
        "auto": {"n_resamples": "auto"},
        "split_clusters": {"cluster": ROWS["person"] // 2, "split_clusters": True},
        "intersections": {"intersections": True, "compare": "rest", "margin": 0.2},
        "small": {"intersections": True, "min_group_size": 90},
        "limit": {"n_resamples": 0},
        **{f"side/{side}": {"alternative": side} for side in ALTERNATIVES[1:]},
        **{f"alpha/{level}": {"alpha": level, "margin": 0.2} for level in LEVELS},
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
    classes = CLASS_SCORES | {"y_pred": "colour_pred", "metrics": ["roc_auc_ovr", "accuracy"]}
    yield "audit/classes", lambda: audit(**classes | {"sensitive_features": ["group", "region"]})
    found = {"metrics": names, "margin": 0.2}
    yield "audit/to_metrics", lambda: audit(**both | found)["audit"].to_metrics()
    yield "audit/from_dict", lambda: read_again(audit(**both | found)["audit"])
    for verdict in ("disparity", "inconclusive"):
        asked = both | {"metrics": names, "fail_on": verdict, "data": ROWS} | SEEDED
        asked |= {"sensitive_features": "region"}
        yield f"audit/assert/{verdict}", partial(assert_no_disparity, asked.pop("y_true"), **asked)
    yield "audit/where", lambda: audit(**both | filtered)["audit"].where(metric="fnr")


# --- Levels, alternatives and stopping of every kind of test ------------------------------------


def every_test() -> dict[str, Call]:
    """Return one call of every kind of test that has a confidence level, by name."""
    fnr = BINARY | {"metric": "fnr"}
    f1_score = BINARY | {"metric": "f1_score"}
    auc = SCORED | {"metric": "roc_auc"}
    squared = AMOUNTS | {"metric": "mean_squared_error"}
    pooled = {"scheme": "pooled"}
    gaps: dict[str, dict[str, Any]] = {
        "rate": fnr,
        "rate_strata": fnr | STRATA,
        "rate_weighted_strata": fnr | WEIGHTED_STRATA,
        "rate_pooled": fnr | pooled,
        "rate_within": fnr | {"scheme": "within_label"},
        "rate_wald": fnr | pooled | {"variance": "wald"},
        "rate_clusters": fnr | {"cluster": "person"},
        "rate_weights": fnr | {"sample_weight": "weight"},
        "rate_few": fnr | {"data": FEW_ROWS},
        "selection_few": BINARY | {"metric": "selection_rate", "data": FEW_ROWS},
        "f1_score": f1_score,
        "f1_score_few": f1_score | {"data": FEW_ROWS},
        "f1_score_plain": f1_score | {"variance": None},
        "auc": auc,
        "auc_few": auc | {"data": FEW_ROWS},
        "auc_clusters": auc | {"cluster": "person"},
        "squared": squared,
        "squared_strata": squared | WEIGHTED_STRATA,
        "average_precision": SCORED | {"metric": "average_precision"},
        "function": BINARY | {"metric": miss_rate, "n_resamples": 99},
        "matched_rate": fnr | MATCHED,
        "matched_mean": AMOUNTS | {"metric": "mean_absolute_error"} | MATCHED,
        "matched_few": fnr | MATCHED | {"data": FEW_SETS},
    }
    found: dict[str, Call] = {name: partial(gap_test, **given) for name, given in gaps.items()}
    found |= {
        f"models_{name}": partial(models, **given)
        for name, given in {
            "rate": NEW_BINARY | {"metric": "fnr"},
            "f1_score": NEW_BINARY | {"metric": "f1_score"},
            "auc": NEW_SCORED | {"metric": "roc_auc"},
            "squared": NEW_AMOUNTS | {"metric": "mean_squared_error"},
            "few": NEW_BINARY | {"metric": "accuracy", "data": FEW_ROWS},
        }.items()
    }
    found |= {
        f"periods_{name}": partial(periods, **given)
        for name, given in {"rate": fnr, "f1_score": f1_score, "auc": auc}.items()
    }
    found["ranking_quality"] = partial(ranking, **USERS, metric="ndcg@5")
    found["ranking_items"] = partial(ranking, **ITEMS, metric="exposure")
    found["correlation"] = partial(correlate, x="amount", y="score")
    found["correlation_spearman"] = partial(correlate, x="amount", y="score", method="spearman")
    return found


def level_cases() -> Cases:
    """Yield every kind of test at low and high levels, with every alternative, and with auto."""
    tests = every_test()
    levels = {"low": 0.05, "high": 0.99}
    for name, test in tests.items():
        for level in LEVELS:
            yield f"level/{name}/{level}", partial(test, confidence_level=level)
        for side, (kind, level) in itertools.product(ALTERNATIVES[1:], levels.items()):
            sided = partial(test, alternative=side, confidence_level=level)
            yield f"side/{name}/{side}/{kind}", sided
        if "function" not in name:
            yield f"auto/{name}", partial(test, n_resamples="auto")
        if not name.startswith(("function", "ranking", "correlation", "f1_score_plain")):
            yield f"normal/{name}", partial(test, n_resamples=0)
            low_normal = partial(test, n_resamples=0, confidence_level=0.2)
            yield f"normal/{name}/low", low_normal
    without_side: dict[str, Call] = {
        "odds": partial(gap_test, **BINARY, metric="equalized_odds"),
        "omnibus_rate": partial(several, **BINARY, metric="fnr"),
        "omnibus_auc": partial(several, **SCORED, metric="roc_auc"),
        "distance": partial(distance, "score"),
        "ndkl": partial(ranking, **ITEMS, metric="ndkl"),
        "audit": partial(audit, **BINARY | {"metrics": ["fnr", "f1_score"], "margin": 0.2}),
    }
    for name, test in without_side.items():
        for level in LEVELS:
            yield f"level/{name}/{level}", partial(test, confidence_level=level)
        yield f"auto/{name}", partial(test, n_resamples="auto")
    yield from table_cases()


def table_cases() -> Cases:
    """Yield the rates of many small tables, at every level and with every alternative."""
    tables = list(itertools.product((0, 1, 5, 8), (8,), (0, 3, 14, 15), (15,)))
    tables += [(12, 60, 25, 55), (30, 60, 28, 55), (1, 60, 9, 55), (199, 200, 30, 31)]
    for level, side in itertools.product((*LEVELS, 0.95), ALTERNATIVES):
        options = {"confidence_level": level, "alternative": side}
        yield f"tables/{side}/{level}", partial(rates_of_tables, tables, **options)


def rates_of_tables(tables: list[tuple[int, int, int, int]], **options: Any) -> list[Any]:
    """Return p-value and interval of the difference of two rates, of each table."""
    found = []
    for first, n_first, second, n_second in tables:
        chosen = np.zeros(n_first + n_second, int)
        chosen[:first] = chosen[n_first : n_first + second] = 1
        given: dict[str, Any] = SEEDED | options | {"metric": "selection_rate"}
        group = np.repeat(["a", "b"], [n_first, n_second])
        one = fairperm.permutation_test(y_pred=chosen, sensitive_features=group, **given)
        found.append([one.pvalue, *one.confidence_interval])
    return found


# --- Matched sets, models, periods, distances, rankings, subgroups --------------------------------


def matched_cases() -> Cases:
    """Yield tests of matched sets."""
    tested: dict[str, dict[str, Any]] = {
        **{name: BINARY | {"metric": name} for name in ("fnr", "selection_rate", "f1_score")},
        "log_loss": SCORED | {"metric": "log_loss"},
        "mean_score": SCORED | {"metric": "mean_score"},
        "mean_error": AMOUNTS | {"metric": "mean_error"},
    }
    for name, given in tested.items():
        yield f"matched/{name}", partial(gap_test, **(given | MATCHED))
        few = given | MATCHED | {"data": FEW_SETS}
        yield f"matched/{name}/few", partial(gap_test, **few)
        yield f"matched/{name}/plain", partial(gap_test, **(given | MATCHED | {"variance": None}))
        three = given | {"data": SETS, "matched": "matched"} | SEEDED
        yield f"matched/{name}/omnibus", partial(fairperm.omnibus_test, **three)
    given = {"y_true": "y", "y_pred": "pred", "sensitive_features": "group", "matched": "matched"}
    both = given | {"metrics": ["fnr", "selection_rate"], "margin": 0.15}
    yield "matched/audit", partial(audit, SETS, **both)
    close = BINARY | {"metric": "fnr"} | MATCHED | SEEDED
    yield "matched/margin", partial(fairperm.equivalence_test, **close, margin=0.2)
    yield "matched/limit", partial(gap_test, **(close | {"n_resamples": 0}))


def models(data: Any = None, **options: Any) -> Any:
    """Compare two models of the rows."""
    return fairperm.compare_models(data=ROWS if data is None else data, **(SEEDED | options))


def model_cases() -> Cases:
    """Yield comparisons of two models, and audits of them."""
    tested: dict[str, dict[str, Any]] = {
        **{
            name: NEW_BINARY | {"metric": name}
            for name in ("fnr", "accuracy", "f1_score", "balanced_accuracy", "ppv")
        },
        **{name: NEW_SCORED | {"metric": name} for name in ("roc_auc", "log_loss", "mean_score")},
        "threshold": NEW_SCORED | {"metric": "fnr", "threshold": 0.4, "threshold_new": 0.5},
        "mean_squared_error": NEW_AMOUNTS | {"metric": "mean_squared_error"},
        "r2_score": NEW_AMOUNTS | {"metric": "r2_score"},
    }
    for name, given in tested.items():
        yield f"models/{name}", partial(models, **given)
    for name in ("fnr", "f1_score", "roc_auc", "mean_squared_error"):
        for design, extra in DESIGNS.items():
            yield f"models/{name}/{design}", partial(models, **(tested[name] | extra))
    rate = tested["fnr"]
    for scheme, variance in (("pooled", "delta"), ("within_label", None)):
        options = rate | {"scheme": scheme, "variance": variance}
        yield f"models/{scheme}/{variance}", partial(models, **options)
    for margin in (0.1, (-0.05, math.inf)):
        yield f"models/margin/{margin}", partial(change_margin, rate, margin)
    yield from model_audit_cases()


def change_margin(given: dict[str, Any], margin: Any) -> Any:
    """Test whether a gap changed by less than a margin, by draws and in the normal limit."""
    limit = given | {"n_resamples": 0}
    return {
        "drawn": models(**given).test_margin(margin),
        "limit": models(**limit).test_margin(margin),
        "low": models(**given, confidence_level=0.6).test_margin(margin),
    }


def model_audit_cases() -> Cases:
    """Yield audits of two models."""
    given = NEW_BINARY | {"metrics": ["fnr", "fpr", "accuracy"]}
    cases: dict[str, dict[str, Any]] = {
        "plain": {},
        "scores": NEW_SCORED | {"metrics": ["roc_auc", "fnr"], "y_pred": None, "y_pred_new": None},
        "margin": {"margin": 0.1},
        "ratio": {"ratio": 0.8, "metrics": ["selection_rate", "accuracy"]},
        "rest": {"compare": "rest", "adjust": "bh"},
        "clusters": {"cluster": "person"},
        "strata": STRATA,
        "attribute": {"family": "attribute", "intersections": True},
        "auto": {"n_resamples": "auto"},
        "limit": {"n_resamples": 0},
    }
    for name, options in cases.items():
        asked = given | {"sensitive_features": ["group", "region"]} | options
        yield f"model_audit/{name}", partial(audit, **asked)


def periods(data: Any = None, **options: Any) -> Any:
    """Compare the periods of the rows."""
    given = SEEDED | {"period": "period"} | options
    result = fairperm.compare_periods(data=ROWS if data is None else data, **given)
    return {"result": result, "frame": result.to_frame("pyarrow")}


def period_cases() -> Cases:
    """Yield comparisons of periods."""
    tested: dict[str, dict[str, Any]] = {
        "fnr": BINARY | {"metric": "fnr"},
        "accuracy": BINARY | {"metric": "accuracy"},
        "f1_score": BINARY | {"metric": "f1_score"},
        "roc_auc": SCORED | {"metric": "roc_auc"},
        "mean_squared_error": AMOUNTS | {"metric": "mean_squared_error"},
        "function": BINARY | {"metric": miss_rate, "n_resamples": 49},
    }
    for name, given in tested.items():
        yield f"periods/{name}", partial(periods, **given)
        yield f"periods/{name}/first", partial(periods, **given, against="first")
    for name in ("fnr", "f1_score", "roc_auc", "mean_squared_error"):
        for design, extra in DESIGNS.items():
            yield f"periods/{name}/{design}", partial(periods, **(tested[name] | extra))
    rate = tested["fnr"]
    for scheme, variance in (("pooled", "delta"), ("within_label", None)):
        options = rate | {"scheme": scheme, "variance": variance}
        yield f"periods/{scheme}/{variance}", partial(periods, **options)
    two = rate | {"periods": ("2023", "2021")}
    yield "periods/two", partial(periods, **two)
    yield "periods/margin", lambda: periods(**rate)["result"].changes[0].test_margin(0.2)
    pair = rate | {"sensitive_features": "region", "groups": ("west", "east")}
    yield "periods/region", partial(periods, **pair)


def distance(values: Any, data: Any = None, **options: Any) -> Any:
    """Test the distance between the distributions of groups."""
    given = SEEDED | {"sensitive_features": "group"} | options
    result = fairperm.distance_test(values, data=ROWS if data is None else data, **given)
    return {"result": result, "frame": result.to_frame("pyarrow")}


def distance_cases() -> Cases:
    """Yield tests of every distance, with every design, and audits of them."""
    numbers = ("ks", "wasserstein", "demographic_parity")
    categories = (
        "total_variation",
        "infinity_norm",
        "jensen_shannon",
        "kullback_leibler",
        "skew",
    )
    kinds = dict.fromkeys(numbers, "score") | dict.fromkeys(categories, "colour_pred")
    for name, column in kinds.items():
        one = partial(distance, column, distance=name)
        yield f"distance/{name}", one
        yield f"distance/{name}/label", partial(one, y_true="y")
        yield f"distance/{name}/weights", partial(one, sample_weight="weight")
        yield f"distance/{name}/clusters", partial(one, cluster="person")
        yield f"distance/{name}/strata", partial(one, control_features="stratum")
        yield f"distance/{name}/few", partial(one, FEW_ROWS)
        yield f"distance/{name}/region", partial(one, sensitive_features="region")
    for pairing in ("reference", "rest"):
        region = {"sensitive_features": "region", "compare": pairing, "adjust": "bh"}
        yield f"distance/{pairing}", partial(distance, "score", **region)
    asked = SCORED | {"metrics": ["roc_auc"], "distances": ["ks", "wasserstein"]}
    regions = {"sensitive_features": ["group", "region"]}
    yield "distance/audit", partial(audit, **(asked | regions))
    yield "distance/audit/clusters", partial(audit, **(asked | regions), cluster="person")
    classes = CLASSES | {"metrics": ["accuracy"], "distances": "total_variation"}
    yield "distance/audit/classes", partial(audit, **(classes | regions))


def ranking(data: Any = None, **options: Any) -> Any:
    """Test ranked lists."""
    result = fairperm.ranking_test(data=LISTS if data is None else data, **(SEEDED | options))
    return {"result": result, "frame": result.to_frame("pyarrow")}


def ranking_cases() -> Cases:
    """Yield tests of every metric of ranked lists, and audits of them."""
    quality = ("precision", "recall", "average_precision", "reciprocal_rank", "hit_rate")
    for name in ("ndcg", "ndcg@3", *quality):
        binary = {} if name.startswith("ndcg") else {"relevance": "relevant"}
        one = partial(ranking, **(USERS | binary), metric=name, k=3)
        yield f"ranking/{name}", one
        yield f"ranking/{name}/clusters", partial(one, cluster="user")
        yield f"ranking/{name}/strata", partial(one, control_features="topic")
        yield f"ranking/{name}/three", partial(one, sensitive_features="country")
        yield f"ranking/{name}/few", partial(one, FEW_LISTS)
    for name in ("exposure", "exposure_per_relevance", "top_k_share", "skew", "ndkl"):
        one = partial(ranking, **ITEMS, metric=name, k=3)
        yield f"ranking/{name}", one
        yield f"ranking/{name}/clusters", partial(one, cluster="user")
        yield f"ranking/{name}/strata", partial(one, control_features="relevant")
        yield f"ranking/{name}/three", partial(one, sensitive_features="brand")
        yield f"ranking/{name}/few", partial(one, FEW_LISTS)
    placed = {"relevance": "relevance", "rank": "rank", "query": "query"}
    yield "ranking/rank", partial(ranking, **placed, sensitive_features="kind")
    for pairing in ("reference", "rest"):
        options = USERS | {
            "sensitive_features": "country",
            "compare": pairing,
            "adjust": "by",
            "k": 4,
        }
        yield f"ranking/{pairing}", partial(ranking, **options)
    lists: dict[str, Any] = {"y_true": "relevance", "y_score": "score", "query": "query"}
    users = {"sensitive_features": ["kind", "country"], "rankings": ["ndcg"], "k": 3}
    items = {"sensitive_features": ["maker", "brand"], "rankings": ["exposure", "skew"], "k": 3}
    yield "ranking/audit/users", partial(audit, LISTS, **lists, **users)
    yield "ranking/audit/items", partial(audit, LISTS, **lists, **items)
    yield "ranking/audit/margin", partial(audit, LISTS, **lists, **users, margin=0.3)


def search(data: Any = None, **options: Any) -> Any:
    """Search for subgroups, and return all of them."""
    given: dict[str, Any] = SEEDED | {"features": ["region", "stratum", "age"], "max_depth": 2}
    data = ROWS if data is None else data
    result = fairperm.find_subgroups(data=data, **(given | options))
    return {"result": result, "all": result.to_frame("pyarrow", which="all")}


def subgroup_cases() -> Cases:
    """Yield searches for subgroups."""
    given: dict[str, dict[str, Any]] = {
        "fnr": {"y_true": "y", "y_pred": "pred"},
        "selection_rate": {"y_pred": "pred"},
        "f1_score": {"y_true": "y", "y_pred": "pred"},
        "roc_auc": {"y_true": "y", "y_score": "score"},
        "log_loss": {"y_true": "y", "y_score": "score"},
        "mean_squared_error": {"y_true": "amount", "y_pred": "forecast"},
    }
    designs: dict[str, dict[str, Any]] = {
        "strata": {"control_features": "group"},
        "clusters": {"cluster": "person"},
        "weights": {"sample_weight": "weight"},
    }
    for metric, columns in given.items():
        one = partial(search, **columns, metric=metric)
        yield f"subgroups/{metric}", one
        for design, extra in designs.items():
            yield f"subgroups/{metric}/{design}", partial(one, **extra)
    one = partial(search, **given["fnr"], metric="fnr")
    for adjust in ("maxt", "holm", "bh", "by"):
        yield f"subgroups/adjust/{adjust}", partial(one, adjust=adjust, alpha=0.3)
    for side in ALTERNATIVES[1:]:
        yield f"subgroups/side/{side}", partial(one, alternative=side)
    for level in LEVELS:
        yield f"subgroups/alpha/{level}", partial(one, alpha=level)
    yield "subgroups/deep", partial(one, max_depth=3, min_rows=15, bands=3)
    yield "subgroups/confirm", partial(one, confirm=0.4, alpha=0.5)


def pair_sweeps(data: Any = None, **options: Any) -> Any:
    """Sweep the thresholds of every two regions."""
    given = SEEDED | SCORED | {"thresholds": 9, "sensitive_features": "region"} | options
    result = fairperm.sweep_pairs(data=ROWS if data is None else data, **given)
    return {"result": result, "frame": result.to_frame("pyarrow")}


def pair_sweep_cases() -> Cases:
    """Yield sweeps of every two groups."""
    cases: dict[str, dict[str, Any]] = {
        "rates": {"metric": ["fnr", "selection_rate"]},
        "smooth": {"metric": "f1_score"},
        "strata": {"metric": "fnr"} | WEIGHTED_STRATA,
        "given": {"metric": "ppv", "thresholds": [0.3, 0.5]},
        **{f"side/{side}": {"metric": "fnr", "alternative": side} for side in ALTERNATIVES[1:]},
        **{f"alpha/{level}": {"metric": "fnr", "alpha": level} for level in LEVELS},
    }
    for name, options in cases.items():
        yield f"pair_sweeps/{name}", partial(pair_sweeps, **options)


def engine_cases() -> Cases:
    """Yield every function over every kind of frame."""
    tables = {"rows": ROWS, "sets": SETS, "lists": LISTS}
    frames = {name: make_frames(table) for name, table in tables.items()}
    calls: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "omnibus": ("rows", lambda data: several(data, **BINARY, metric="fnr")),
        "odds": ("rows", lambda data: gap_test(data, **BINARY, metric="equalized_odds")),
        "classes": ("rows", lambda data: gap_test(data, **CLASS_SCORES, metric="roc_auc_ovr")),
        "precision": ("rows", lambda data: gap_test(data, **SCORED, metric="average_precision")),
        "margin": ("rows", margin_of),
        "correlation": ("rows", lambda data: correlate(data, x="amount", y="score")),
        "models": ("rows", lambda data: models(data, **NEW_BINARY, metric="fnr")),
        "models_auc": ("rows", lambda data: models(data, **NEW_SCORED, metric="roc_auc")),
        "periods": ("rows", lambda data: periods(data, **SCORED, metric="roc_auc")),
        "distance": ("rows", lambda data: distance("score", data)),
        "subgroups": ("rows", lambda data: search(data, **SCORED_ALONE, metric="fnr")),
        "sweep": ("rows", lambda data: sweep(data, **SCORED, metric="fnr")),
        "pair_sweeps": ("rows", lambda data: pair_sweeps(data, metric="fnr")),
        "model_audit": ("rows", lambda data: audit(data, **NEW_BINARY, metrics=["fnr"])),
        "matched": (
            "sets",
            lambda data: gap_test(**(BINARY | MATCHED | {"data": data}), metric="fnr"),
        ),
        "users": ("lists", lambda data: ranking(data, **USERS, metric="ndcg@5")),
        "items": ("lists", lambda data: ranking(data, **ITEMS, metric="exposure")),
    }
    for name, (table, call) in calls.items():
        for engine, frame in frames[table].items():
            yield f"engine/{name}/{engine}", partial(call, frame)
    columns = {name: ROWS[name] for name in ("y", "pred", "score", "group")}
    rate = {key: columns[name] for key, name in BINARY.items()}
    auc = {key: columns[name] for key, name in SCORED.items()}
    yield "engine/arrays/fnr", partial(fairperm.permutation_test, **rate, metric="fnr", **SEEDED)
    yield "engine/arrays/auc", partial(fairperm.permutation_test, **auc, metric="roc_auc", **SEEDED)
    series = {key: pd.Series(one) for key, one in rate.items()}
    yield "engine/series/fnr", partial(fairperm.permutation_test, **series, metric="fnr", **SEEDED)


def margin_of(data: Any) -> Any:
    """Test a margin of a rate."""
    return fairperm.equivalence_test(data=data, **BINARY, metric="fnr", margin=0.2, **SEEDED)


# --- Planning, data, charts and errors --------------------------------------------------------


def planning_cases() -> Cases:
    """Yield power, sample sizes and detectable gaps, by formula and by simulation."""
    designs: dict[str, tuple[Any, ...]] = {
        "fnr": ("fnr", (0.1, 0.2), (0.8, 0.2)),
        "selection_rate": ("selection_rate", (0.5, 0.4), None),
        "ppv": ("ppv", (0.7, 0.6), 0.5),
        "jaccard_score": ("jaccard_score", (0.5, 0.4), 0.6),
        "roc_auc": ("roc_auc", (0.85, 0.8), 0.3),
        "recall_of": ("recall[red]", (0.8, 0.6), 0.3),
    }
    for name, (metric, values, rates) in designs.items():
        sides = ALTERNATIVES if name in {"fnr", "roc_auc"} else ALTERNATIVES[:1]
        for side in sides:
            given = {"metric": metric, "base_rates": rates, "alternative": side}
            yield from planned_cases(f"{name}/auto/{side}", given, values)
    for name, alpha in (("fnr", 0.01), ("roc_auc", 0.2), ("selection_rate", 0.5)):
        metric, values, rates = designs[name]
        uneven = {"metric": metric, "base_rates": rates, "share": 0.3, "alpha": alpha}
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
    few: dict[str, Any] = SEEDED | {"n_simulations": 20, "n_resamples": 59, "data": ROWS}
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


def data_cases() -> Cases:
    """Yield the names of metrics, and the data that come with fairperm."""
    names = fairperm.metric_names()
    yield "names/metrics", lambda: {name: name for name in names}
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
    yield "chart/models", lambda: draw(models(**NEW_BINARY, metric="fnr").plot())
    yield "chart/periods", lambda: draw(periods(**BINARY, metric="fnr")["result"].plot())
    yield "chart/distance", lambda: draw(distance("score")["result"].plot())
    subgroups: dict[str, Any] = {"y_true": "y", "y_pred": "pred", "metric": "fnr", "alpha": 0.5}
    yield "chart/subgroups", lambda: draw(search(**subgroups)["result"].plot())
    yield "chart/slope", lambda: draw(plots.slope({"a": (0.31, 0.52), "b": (0.42, 0.17)}))
    yield "report/subgroups", lambda: report_numbers(search(**subgroups)["result"].to_html())
    yield "report/pairs", lambda: report_numbers(pair_sweeps(metric="fnr")["result"].to_html())
    changed: dict[str, Any] = NEW_BINARY | {"metrics": ["fnr"], "margin": 0.2}
    yield "report/models", lambda: report_numbers(audit(**changed)["audit"].to_html())
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
        "matched": fnr | MATCHED | {"sample_weight": "score"},
        "limit": BINARY | {"metric": miss_rate, "n_resamples": 0},
    }
    for name, options in wrong.items():
        yield f"error/{name}", partial(gap_test, **options)
    yield "error/adjust", lambda: audit(**BINARY, metrics=["fnr"], adjust="bonferoni")
    yield "error/margin", lambda: fairperm.equivalence_test(data=ROWS, **fnr, **SEEDED)
    low = SEEDED | fnr | {"data": ROWS, "margin": 0.2, "confidence_level": 0.5}
    yield "error/low_level", lambda: fairperm.equivalence_test(**low)
    yield "error/matched_auc", lambda: gap_test(**(SCORED | MATCHED), metric="roc_auc")
    yield "error/models_gini", lambda: models(**NEW_SCORED, metric="gini")
    yield "error/power", lambda: fairperm.power("mean_squared_error", values=(1, 2), n=100)


# --- Calls of the command ---------------------------------------------------------------------


def write_files(folder: Path) -> None:
    """Write the rows in every format that the command reads."""
    table = pa.table(ROWS)
    frame = pl.DataFrame(ROWS)
    frame.write_csv(folder / "rows.csv")
    pl.DataFrame(SETS).filter(pl.col("group") != "c").write_csv(folder / "sets.csv")
    pl.DataFrame(LISTS).write_csv(folder / "lists.csv")
    frame.write_csv(folder / "rows.tsv", separator="\t")
    frame.write_ndjson(folder / "rows.jsonl")
    pq.write_table(table, folder / "rows.parquet")
    with duckdb.connect(str(folder / "rows.duckdb")) as database:
        database.register("made", table)
        database.execute("CREATE TABLE rows AS SELECT * FROM made")


def command_lines() -> dict[str, str]:
    """Return the commands to run; OUT stands for a folder of each command's own."""
    both = "--label y --prediction pred --score score"
    audited = f"{both} --group group --group region --seed 1 --resamples 199 --min-group-size 20"
    drawn = "--seed 1 --resamples 199"
    tested = f"--label y --score score --group group {drawn}"
    names = "--metric fnr --metric fpr --metric roc_auc"
    out = "--json OUT/out.json"
    all_out = f"{out} --csv OUT/out.csv --markdown OUT/out.md"
    all_csv = f"{out} --csv OUT/out.csv"
    classes = "--class-score blue=p_blue --class-score green=p_green --class-score red=p_red"
    lists = f"lists.csv --relevance relevance --score score --query query {drawn}"
    searched = f"rows.csv --label y --prediction pred --metric fnr --max-depth 2 {drawn}"
    return {
        "audit/csv": f"audit rows.csv {audited} {names} {all_out} --report OUT/out.html",
        "audit/jsonl": f"audit rows.jsonl {audited} {all_out} --margin 0.2 --compare rest",
        "audit/fail": f"audit rows.duckdb --table rows {audited} {out} --intersections"
        " --fail-on inconclusive --cluster person",
        "audit/reference": f"audit rows.tsv {audited} {out} --reference region=west --adjust bh"
        " --reference group=b --weight weight --control stratum",
        "audit/where": f"audit rows.parquet {audited} {out} --where amount>1 --ratio 0.8"
        " --metric fnr --metric selection_rate --distance ks",
        "test/margin": f"test rows.csv {tested} {out} --metric fpr --margin 0.2 --better lower"
        " --confidence-level 0.8",
        "test/parquet": f"test rows.parquet {tested} {out} --metric roc_auc --score-bins 16"
        " --alternative symmetric",
        "test/matched": f"test sets.csv {tested} {out} --metric fnr --matched matched",
        "test/classes": f"test rows.csv --label colour {classes} --group group"
        f" --metric roc_auc_ovr {drawn} {out}",
        "test/duckdb": f"test rows.duckdb --table rows {tested} {out} --metric roc_auc"
        " --control stratum --stratum-weights x=1 --stratum-weights y=2 --stratum-weights z=0.5",
        "test/pair": "test rows.jsonl --label amount --prediction forecast --group region"
        f" --pair west east --metric mean_squared_error {drawn} {out}",
        "compare": f"compare rows.csv {audited} --prediction-new pred_new"
        f" --score-new score_new {names} {all_out} --report OUT/out.html --margin 0.02"
        " --fail-on inconclusive",
        "report": "report audit-csv/out.json --report OUT/out.html --short",
        "sweep": f"sweep rows.duckdb {tested} {all_csv} --thresholds 0.2,0.5 --metric accuracy",
        "discover": f"discover {searched} --feature region --feature age {all_csv} --alpha 0.5",
        "ranking/users": f"ranking {lists} --group kind --metric ndcg@5 {all_csv}",
        "ranking/items": f"ranking {lists} --group brand --metric exposure {out} --compare rest",
        "periods": "periods rows.csv --label y --prediction pred --group group --period period"
        f" --metric fnr {drawn} {all_csv} --against first",
        "power/n": f"power --metric fnr --first 0.1 --second 0.2 --base-rate 0.5 {out}",
        "power/power": f"power --metric roc_auc --first 0.85 --second 0.8 --n 900"
        f" --base-rate 0.3 --base-rate 0.4 {out}",
        "power/gap": f"power --metric selection_rate --second 0.2 --n 400 --share 0.3 {out}",
        "metrics": "metrics fnr roc_auc log_loss equalized_odds r2_score --json OUT/out.json",
        "demo": "demo --report OUT/out.html",
        "error/file": f"audit nowhere.csv {audited}",
        "error/option": "power --metrik fnr",
    }


def run_command(name: str, line: str, folder: Path) -> tuple[Any, Any]:
    """Run one command, and return the numbers that it wrote and the text that it printed."""
    out = folder / name.replace("/", "-")
    out.mkdir()
    words = [word.replace("OUT", str(out)) for word in line.split()]
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "fairperm", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
    )
    found: dict[str, Any] = {"exit_code": done.returncode}
    if name == "demo":
        found["table"] = demo_numbers(done.stdout.decode())
    said = done.stderr if done.returncode == 2 else done.stdout
    text = re.sub(r"\s+", " ", said.decode().replace(str(out), "OUT"))  # paths wrap lines
    found |= {path.suffix[1:]: read_output(path) for path in sorted(out.iterdir())}
    return found, {"printed": text}


def read_output(path: Path) -> Any:
    """Return the numbers in a file that the command wrote."""
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        return plain(json.loads(text))
    if path.suffix == ".csv":
        names, *rows = csv.reader(io.StringIO(text))
        columns = zip(names, zip(*rows, strict=True), strict=True) if rows else ()
        return {name: column for name, column in columns if name != "reason"}
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
    yield from level_cases()
    yield from frame_cases()
    yield from engine_cases()
    yield from many_group_cases()
    yield from other_test_cases()
    yield from audit_cases()
    yield from matched_cases()
    yield from model_cases()
    yield from period_cases()
    yield from distance_cases()
    yield from ranking_cases()
    yield from subgroup_cases()
    yield from pair_sweep_cases()
    yield from planning_cases()
    yield from data_cases()
    yield from chart_cases()
    yield from error_cases()
    yield from registered_cases()


def record(call: Call) -> tuple[Any, Any]:
    """Return the numbers and the texts of a call, or the error that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call()
            return plain(result), texts(result)
        except Exception as error:  # a bug in one call must not hide the others
            said = without_addresses(str(error))
            return {"raises": type(error).__name__}, {"message": said}


def take_snapshot() -> dict[str, dict[str, Any]]:
    """Run every call and every command, and return their numbers and texts by name."""
    found: dict[str, tuple[Any, Any]] = {}
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(1) as pool:
        folder = Path(name)
        write_files(folder)
        runs = {
            f"command/{case}": pool.submit(run_command, case, line, folder)
            for case, line in command_lines().items()
        }
        for case, call in all_cases():
            if case in found:
                raise ValueError(case)
            found[case] = record(call)
        found |= {case: run.result() for case, run in runs.items()}
    return {
        "numbers": {case: one for case, (one, _) in found.items()},
        "texts": {case: one for case, (_, one) in found.items() if one},
    }


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every number and name of a snapshot with the path that leads to it."""
    if isinstance(value, (dict, list)) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            yield from flatten(one, f"{path} > {key}" if path else str(key))
    else:
        yield path, value


def differences(first: Any, second: Any, tolerance: float) -> Iterator[tuple[str, str]]:
    """Yield the call and a line for every path whose values differ, or that one file lacks."""
    for call in dict.fromkeys([*first, *second]):
        if call not in first or call not in second:
            yield call, f"only in the {'first' if call in first else 'second'} file"
            continue
        before, after = (dict(flatten(one[call])) for one in (first, second))
        for path in dict.fromkeys([*before, *after]):
            if path not in before or path not in after:
                yield call, f"{path}: only in the {'first' if path in before else 'second'} file"
            elif not is_same(path, before[path], after[path], tolerance):
                yield call, f"{path}: {describe_change(before[path], after[path])}"


def is_same(path: str, before: Any, after: Any, tolerance: float) -> bool:
    """Return whether two values are equal, to the relative tolerance if there is one."""
    if repr(before) == repr(after):
        return True
    if not tolerance:
        return False
    if path.endswith("sha256"):  # the sum and the range of the array are compared instead
        return True
    numbers = isinstance(before, (int, float)) and isinstance(after, (int, float))
    return numbers and math.isclose(before, after, rel_tol=tolerance, abs_tol=tolerance)


def describe_change(before: Any, after: Any) -> str:
    """Return how a value changed; of a text of several lines, the lines that did."""
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
        return "\n" + "\n".join(f"    {line}" for line in list(lines)[2:] if line[0] in "+-")
    return f"{before!r} became {after!r}"


def compare(paths: list[Path], tolerance: float, *, numbers_only: bool) -> bool:
    """Print what differs between two files, and return whether anything does."""
    first, second = (json.loads(path.read_text("utf-8")) for path in paths)
    moved = list(differences(first["numbers"], second["numbers"], tolerance))
    for call, line in moved:
        print(f"{call} > {line}")
    n_calls, n_moved = len(first["numbers"]), len({call for call, _ in moved})
    print(f"{len(moved):,} differences in the numbers of {n_moved:,} of {n_calls:,} calls")
    if numbers_only:
        return bool(moved)
    reworded: dict[str, list[str]] = {}  # one new wording may be that of many calls
    for call, line in differences(first["texts"], second["texts"], 0.0):
        reworded.setdefault(line, []).append(call)
    for line, calls in reworded.items():
        others = f" (and {len(calls) - 1:,} others)" if len(calls) > 1 else ""
        print(f"{calls[0]}{others} > {line}")
    n_reworded = len({call for calls in reworded.values() for call in calls})
    print(f"{len(reworded):,} differences in the texts of {n_reworded:,} calls")
    return bool(moved or reworded)


def main() -> None:
    """Take a snapshot, or compare two."""
    parser = argparse.ArgumentParser(description="Record the numbers of a fixed set of calls.")
    parser.add_argument("out", nargs="?", type=Path, help="the file to write")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"), help="two files")
    parser.add_argument("--numbers", action="store_true", help="ignore texts in --compare")
    parser.add_argument("--tolerance", type=float, default=0.0, help="relative, in --compare")
    given = parser.parse_args()
    if given.compare:
        sys.exit(compare(given.compare, given.tolerance, numbers_only=given.numbers))
    if given.out is None:
        parser.error("name the file to write, or two files after --compare")
    found = take_snapshot()
    given.out.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", "utf-8")
    numbers = found["numbers"]
    raised = sum(isinstance(one, dict) and "raises" in one for one in numbers.values())
    print(f"{len(numbers):,} calls, of which {raised:,} raise, written to {given.out}")


if __name__ == "__main__":
    main()
