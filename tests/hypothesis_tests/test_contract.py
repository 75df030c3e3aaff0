"""What must hold for every design of a test: one p-value for one seed, whatever else changes.

A design is one entry of ``DESIGNS``. How metrics are tested is in ``test_properties.py``.
"""

from __future__ import annotations

import functools
import json
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import fairperm
from fairperm import FairpermWarning
from fairperm.engines.resampling.blocks import BLOCK
from tests.support.callables import plain_accuracy
from tests.support.many_groups import force
from tests.support.simulations import only_monte_carlo

Array = NDArray[Any]

N = 240
RNG = np.random.default_rng(6)
QUERY = np.repeat(np.arange(N // 6), 6)
LABEL = RNG.integers(0, 2, N)
SCORE = (RNG.normal(size=N) + LABEL).round(2)
COLUMNS: dict[str, Array] = {
    "y_true": LABEL,
    "y_pred": (SCORE > 0.4).astype(int),
    "y_score": SCORE,
    "y_pred_new": (SCORE + RNG.normal(size=N) > 0.4).astype(int),
    "y_score_new": SCORE[::-1].copy(),
    "score": SCORE,
    "relevance": LABEL,
    "values": SCORE,
    "x": SCORE,
    "y": LABEL * 2 + SCORE.round(),
    "sensitive_features": np.array([*"abb"])[np.arange(N) % 3],
    "by_cluster": np.array([*"abb"])[np.arange(N) // 4 % 3],
    "by_query": np.array([*"abb"])[QUERY % 3],
    "sides": np.array([*"ab"])[np.arange(N) % 2],
    "many": np.array([*"abcd"])[np.arange(N) % 4],
    "period": np.repeat([2023, 2024], [100, 140]),
    "control_features": np.arange(N) // 3 % 3,
    "cluster": np.arange(N) // 4,
    "matched": np.arange(N) // 2,
    "strata_of_sets": np.arange(N) // 2 % 3,
    "weight_of_sets": np.repeat(RNG.uniform(0.5, 2, N // 2).round(3), 2),
    "query": QUERY,
    "users": QUERY // 2,
    "sample_weight": RNG.uniform(0.5, 2, N).round(3),
}
LABELS = "y_true y_pred"
SEVERAL_BLOCKS = 2 * BLOCK + 100  # of the designs whose blocks are large


@dataclass(frozen=True)
class Design:
    """A call: of which function, with which columns, and what is not a column."""

    test: Callable[..., Any]
    columns: str  # by name, or as name:column
    options: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    swaps: bool = True  # whether the groups of a gap can be asked for in another order

    def rows(self) -> dict[str, Array]:
        pairs = (one.partition(":") for one in self.columns.split())
        return {name: COLUMNS[other or name] for name, _, other in pairs}

    def run(self, rows: Mapping[str, Any], **more: Any) -> Any:
        """Return the result of drawn permutations."""
        given = {"n_resamples": 199, "rng": 5, **self.options, **more}
        with warnings.catch_warnings(), only_monte_carlo(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore", FairpermWarning)
            if self.engine:
                force(patch, self.engine)
            return self.test(**rows, **given)


def design(test: Callable[..., Any], columns: str, groups: str = "", **options: Any) -> Design:
    """Return a design with gaps of groups."""
    columns += f" sensitive_features:{groups or 'sensitive_features'}"
    return Design(test, columns, options, swaps=groups != "many")


gap = functools.partial(design, fairperm.permutation_test)
lists = functools.partial(design, fairperm.ranking_test)
distance = functools.partial(design, fairperm.distance_test)


def of_many(engine: str, columns: str = LABELS, **options: Any) -> Design:
    return replace(design(fairperm.omnibus_test, columns, "many", **options), engine=engine)


DESIGNS = {
    "rates": gap(LABELS, metric="tpr", scheme="denominator"),
    "strata": gap(f"{LABELS} control_features", metric="f1_score", n_resamples=SEVERAL_BLOCKS),
    "weights": gap(f"{LABELS} sample_weight", metric="tpr"),
    "clusters": gap(f"{LABELS} cluster", "by_cluster", metric="tpr"),
    "weighted clusters": gap("y_true y_score cluster sample_weight", "by_cluster", metric="auc"),
    "a function": gap(LABELS, metric=plain_accuracy, n_bootstrap=5),
    "a function in strata": gap(f"{LABELS} control_features", metric=plain_accuracy),
    "a nested bootstrap": gap(
        LABELS, metric=plain_accuracy, variance="bootstrap", n_resamples=40, n_bootstrap=5
    ),
    "a function without an error": gap(LABELS, metric=plain_accuracy, variance=None),
    "matched sets": gap(f"{LABELS} matched", "sides", metric="accuracy"),
    "matched sets in strata": gap(
        f"{LABELS} matched control_features:strata_of_sets", "sides", metric="accuracy"
    ),
    "clusters of weighted sets": gap(
        f"{LABELS} matched cluster sample_weight:weight_of_sets", "sides", metric="precision"
    ),
    "models of matched sets": design(
        fairperm.compare_models, f"{LABELS} y_pred_new matched", "sides", metric="precision"
    ),
    "equivalence": design(fairperm.equivalence_test, LABELS, metric="tpr", margin=0.1),
    "models": design(fairperm.compare_models, f"{LABELS} y_pred_new", metric="tpr"),
    "models by score": design(
        fairperm.compare_models,
        "y_true y_score y_score_new control_features",
        metric="f1",
        threshold=0.4,
        threshold_new=0.6,
    ),
    "periods": design(fairperm.compare_periods, f"{LABELS} period", metric="tpr"),
    "a sweep": design(fairperm.threshold_sweep, "y_true y_score", metric="tpr"),
    "many groups, counted": of_many("counts", metric="tpr", n_resamples=SEVERAL_BLOCKS),
    "many groups": of_many("units", metric="tpr"),
    "many groups in strata": of_many("units", f"{LABELS} control_features", metric="tpr"),
    "many groups by score": of_many("units", "y_true y_score", metric="auc"),
    "queries": lists("score query relevance", "by_query", k=4),
    "items": lists("score query", metric="exposure"),
    "items by relevance": lists("score query relevance", metric="exposure_per_relevance"),
    "items in clusters": lists("score query cluster:users", metric="skew", k=4),
    "ndkl": replace(lists("score query", metric="ndkl"), swaps=False),
    "distances": distance("values"),
    "distances given labels": distance("values y_true", distance="wasserstein"),
    "distances of clusters": distance("values cluster", "by_cluster"),
    "weighted distances": distance("values sample_weight"),
    "correlation": Design(
        fairperm.correlation_test, "x y", {"n_resamples": SEVERAL_BLOCKS}, swaps=False
    ),
    "an audit": replace(design(fairperm.audit, LABELS, metrics=["tpr", "f1"]), swaps=False),
}
every_design = pytest.mark.parametrize("design", DESIGNS.values(), ids=[*DESIGNS])


def parts(result: Any) -> list[Any]:
    """Return the single tests of a result."""
    for name in ("comparisons", "rows", "changes", "curves"):
        if hasattr(result, name):
            found = getattr(result, name)
            return [*(found.values() if name == "curves" else found)]
    return [result]


def numbers(result: Any) -> list[Any]:
    """Return every p-value and every draw: what chance and the sample decide together."""
    names = ("pvalue", "pvalue_interval", "global_pvalue", "null_distribution")
    found = [getattr(one, name, None) for one in parts(result) for name in names]
    return [np.asarray(one, float) for one in found if one is not None]


def assert_same(one: Any, other: Any, *, rounding: float = 0.0) -> None:
    """Numbers may be added up in another order, but draws and ties stay what they are."""
    assert numbers(one)
    for mine, others in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_allclose(mine, others, rtol=rounding, atol=rounding)


@every_design
def test_rows_and_threads_change_nothing(design: Design) -> None:
    rows, order = design.rows(), np.random.default_rng(1).permutation(N)
    whole = design.run(rows)
    assert_same(design.run(rows, n_jobs=2), whole)
    assert_same(design.run({k: one[order] for k, one in rows.items()}), whole, rounding=1e-9)


@every_design
def test_names_change_nothing(design: Design) -> None:
    rows = design.rows()
    names: dict[str, Array] = {
        name: 999 - rows[name] for name in ("cluster", "query", "matched") if name in rows
    }
    if "control_features" in rows:
        names["control_features"] = np.array([*"zax"])[rows["control_features"]]
    if "sensitive_features" in rows:
        groups = rows["sensitive_features"]
        names["sensitive_features"] = np.char.add("group ", groups)
        if design.engine:  # of many groups no one is the first
            names["sensitive_features"] = np.array([*"dbca"])[np.searchsorted([*"abcd"], groups)]
    assert_same(design.run(rows | names), design.run(rows), rounding=1e-9)


@every_design
def test_one_seed_gives_one_result_and_another_seed_another(design: Design) -> None:
    rows = design.rows()
    one, again, other, unseeded = (design.run(rows, rng=rng) for rng in (1, 1, 2, None))
    assert_same(again, one)
    rng = np.random.default_rng(1)
    moved = [design.run(rows, rng=generator) for generator in (rng, rng, np.random.default_rng(1))]
    assert_same(moved[2], moved[0])
    for result, part in ((unseeded, parts(unseeded)[0]), (moved[1], parts(moved[1])[0])):
        seed = part.seed if hasattr(part, "seed") else result.to_dict().get("seed")
        if seed is not None:
            assert_same(design.run(rows, rng=seed), result)
    if not getattr(parts(one)[0], "exact", False):
        draws = (numbers(each)[-1] for each in (one, other))
        assert not np.array_equal(*draws) or "null_distribution" not in dir(parts(one)[0])


@pytest.mark.parametrize(
    "design",
    [one for one in DESIGNS.values() if one.swaps],
    ids=[name for name, one in DESIGNS.items() if one.swaps],
)
def test_the_groups_can_be_swapped(design: Design) -> None:
    rows = design.rows()
    results = [design.run(rows, groups=pair) for pair in (("a", "b"), ("b", "a"))]
    for one, other in zip(*map(parts, results), strict=True):
        np.testing.assert_allclose(one.pvalue, other.pvalue, rtol=1e-9)
        if hasattr(one, "difference"):
            np.testing.assert_allclose(one.difference, np.negative(other.difference), atol=1e-12)


@every_design
def test_no_pvalue_is_zero(design: Design) -> None:
    for one in parts(design.run(design.rows())):
        pvalue = np.asarray(one.pvalue, float)
        pvalue = pvalue[~np.isnan(pvalue)]
        assert ((pvalue > 0) & (pvalue <= 1)).all()
        low, high = getattr(one, "pvalue_interval", (0, 1))
        assert ((low <= pvalue) & (pvalue <= high)).all()


@every_design
def test_frames_and_databases_give_the_same(design: Design) -> None:
    rows, order = design.rows(), np.random.default_rng(2).permutation(N)
    names, whole = {name: name for name in rows}, design.run(rows)
    frame = pd.DataFrame(rows).iloc[order]
    table = pa.table(rows)
    lazy = (pl.DataFrame(table).lazy(), duckdb.connect().from_arrow(table))
    for data in (frame, table, *(lazy if design.test is not fairperm.correlation_test else ())):
        found = design.run(names, data=data)
        assert_same(found, whole, rounding=1e-9)
        assert type(found) is type(whole)


@every_design
def test_rows_with_a_missing_value_are_left_out_on_request(design: Design) -> None:
    if design.test is fairperm.ranking_test:
        return  # without an item, those below it would move up
    rows = design.rows()
    more = {name: [*one.tolist(), *one[:4].tolist()] for name, one in rows.items()}
    first = next(iter(rows))
    more[first][N:] = [None, math.nan, None, math.nan]
    with pytest.raises(fairperm.InputError, match=f"missing values in {first}|{first} has 4 miss"):
        design.run(more)
    found = design.run(more, missing="drop")
    assert_same(found, design.run(rows), rounding=1e-9)
    assert found.to_dict().get("n_dropped", 4) == 4


@every_design
def test_results_are_json_and_call_nothing_fair(design: Design) -> None:
    result = design.run(design.rows())
    plain = result.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False))
    assert "fair" not in repr(result).lower().replace("fairperm", "")


@every_design
def test_intervals_exclude_zero_where_tests_reject(design: Design) -> None:
    if design.test in {fairperm.equivalence_test, fairperm.threshold_sweep}:
        return  # whose intervals are about margins, and about thresholds
    for level in (0.2, 0.6, 0.95):
        for one in parts(design.run(design.rows(), confidence_level=level)):
            if hasattr(one, "difference") and hasattr(one, "confidence_interval"):
                low, high = one.confidence_interval
                assert (one.pvalue <= 1 - level + 1e-12) == (not low <= 0 <= high)
