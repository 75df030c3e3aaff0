"""Bins for more distinct scores than are fetched, and how much they can change a result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fairperm
from fairperm.data import sample as samples
from fairperm.data.lazy import counting as lazy
from fairperm.data.lazy.backends import BinnableRows
from fairperm.hypothesis_tests.comparison import Comparison
from tests.support.lazy_data import LAZY, by_engine, number_bins, run, same, sample

BINS = 50
RNG = np.random.default_rng(11)
N = 3_000


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order() -> Iterator[None]:
    """Begin every test with the same random numbers, whichever ran before it."""
    state = RNG.bit_generator.state
    yield
    RNG.bit_generator.state = state


def _label(score: Any) -> Any:
    """Return labels that go with the scores' ranks."""
    share = np.argsort(np.argsort(score)) / len(score)
    return (RNG.random(len(score)) < 0.2 + 0.6 * share).astype(np.int64)


def _random(i: int) -> tuple[Any, Any]:
    """Return scores of one of several shapes, with labels."""
    a, b = RNG.uniform(0.3, 4, 2)
    shapes: list[Callable[[], Any]] = [
        lambda: RNG.beta(a, b, N),
        lambda: RNG.normal(0, a, N),
        lambda: RNG.exponential(a, N) - b,
        lambda: RNG.standard_t(2, N),
        lambda: RNG.integers(0, int(40 * a) + 60, N) / 7,
    ]
    score = shapes[i % len(shapes)]()
    return score, _label(score)


def _one_bin() -> tuple[Any, Any]:
    score = np.append(0.5 + RNG.random(N - 2) * 1e-6, [0.0, 1.0])
    return score, _label(score)


def _alternating() -> tuple[Any, Any]:
    """Return in every bin the negatives just below the positives: the bins hide it all."""
    label = np.tile([0, 1], N // 2)
    place = np.repeat(np.arange(BINS), N // BINS)
    root = (place + 0.2 + 0.5 * label) / BINS
    root[[0, -1]] = 0, 1
    return root**4, label


def _ties() -> tuple[Any, Any]:
    score = RNG.choice([0.1, 0.11, 0.5, 0.9], N) + (RNG.random(N) < 0.02) * RNG.random(N) / 100
    return score, _label(score)


def _tiny() -> tuple[Any, Any]:
    score = 1 + RNG.integers(0, 400, N) * 2.0**-52
    return score, _label(score)


def _huge() -> tuple[Any, Any]:
    score = RNG.normal(size=N) * 1e300
    score[:2] = [-1.7e308, 1.7e308]
    return score, _label(score)


ADVERSARIAL = {"one bin": _one_bin, "alternating": _alternating, "ties": _ties, "tiny": _tiny,
               "huge": _huge}  # fmt: skip
DISTRIBUTIONS: dict[str, Callable[[], tuple[Any, Any]]] = {
    **{f"random {i}": partial(_random, i) for i in range(20)},
    **ADVERSARIAL,
}


def _quietly(*args: Any, **options: Any) -> fairperm.PermutationTestResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        return run(*args, **options)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bins_move_no_auc_by_more_than_their_bound(name: str) -> None:
    score, label = DISTRIBUTIONS[name]()
    sex = RNG.choice(["a", "b"], N, p=[0.3, 0.7])
    table = pa.table({"label": label, "score": score, "sex": sex})
    exact = run(table, "roc_auc")
    binned = _quietly(LAZY["duckdb"](table), "roc_auc", score_bins=BINS)
    assert exact.binning_errors is None
    assert binned.binning_errors is not None
    for group in ("a", "b"):
        moved = abs(binned.values[group] - exact.values[group])
        bound = binned.binning_errors[group]
        assert moved <= bound + 1e-12
        assert bound < 2 / BINS  # twice that of equally filled bins, and labels that differ
        if name == "alternating":
            assert moved == pytest.approx(bound, rel=0.01)  # no bound can be better
    total = sum(binned.binning_errors.values())
    is_noted = any("put into bins" in note for note in binned.notes)
    assert is_noted == (total > 0.1 * binned.standard_error)


@by_engine
def test_draws_over_bins_are_those_of_the_binned_scores(form: str) -> None:
    """Bins of smooth scores have equal width on the scale of fourth roots."""
    table = sample(2_000, decimals=None)
    score = table["score"].to_numpy() * 7 + 3
    place = pa.array(number_bins(score, 32))
    by_hand = run(table.set_column(1, "score", place), "roc_auc", scheme="pooled")
    binned = table.set_column(1, "score", pa.array(score))
    options: dict[str, Any] = {"score_bins": 32, "scheme": "pooled"}
    result = _quietly(LAZY[form](binned), "roc_auc", **options)
    left_out = {"answer", "notes", "binning_errors", "confidence_interval"}
    left_out |= {name for name in result.to_dict() if name.startswith("pvalue")}
    plain = [
        {name: one for name, one in each.to_dict().items() if name not in left_out}
        for each in (result, by_hand)
    ]
    assert plain[0] == plain[1]
    assert np.array_equal(result.null_distribution, by_hand.null_distribution)


@pytest.fixture(scope="module")
def skewed() -> pa.Table:
    """Return scores of which equal widths would put almost all into one bin."""
    rng = np.random.default_rng(5)
    n = 6_000
    label, sex = rng.integers(0, 2, n), rng.choice(["a", "b"], n)
    score = np.exp(4 * (rng.normal(size=n) + label * np.where(sex == "a", 1.0, 1.1)))
    score[rng.random(n) < 0.3] = 0  # one score that many share hides nothing
    return pa.table({"label": label, "score": score, "sex": sex})


@pytest.mark.parametrize("form", ["polars", pytest.param("dask", marks=pytest.mark.validate)])
def test_every_engine_bins_skewed_scores_alike_and_finely(form: str, skewed: pa.Table) -> None:
    exact = run(skewed, "roc_auc")
    first, other = (
        _quietly(LAZY[one](skewed), "roc_auc", score_bins=512) for one in ("duckdb", form)
    )
    assert same(first, other)
    assert first.binning_errors is not None
    hidden = sum(first.binning_errors.values())
    assert abs(first.difference - exact.difference) <= hidden < 2 / 512


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_interval_and_pvalue_allow_for_what_bins_hide(
    skewed: pa.Table, alternative: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interval is wider by the bound, and the p-value is that of a gap nearer to no gap."""
    options: dict[str, Any] = {"alternative": alternative, "n_resamples": 199, "score_bins": 64}
    binned = _quietly(LAZY["polars"](skewed), "roc_auc", **options)
    assert binned.binning_errors is not None
    hidden = sum(binned.binning_errors.values())
    monkeypatch.setattr(Comparison, "binning_errors", lambda _: None)
    plain = _quietly(LAZY["polars"](skewed), "roc_auc", **options)
    assert plain.statistic == binned.statistic
    wider = np.add(plain.confidence_interval, [-hidden, hidden])
    assert binned.confidence_interval == pytest.approx(np.clip(wider, -1, 1).tolist())
    assert binned.pvalue > plain.pvalue
    if alternative != "two-sided":
        sign = 1 if alternative == "greater" else -1
        left = (sign * plain.difference - hidden) / plain.standard_error
        assert binned.pvalue == ((sign * plain.null_distribution >= left).sum() + 1) / 200


def test_tests_at_a_margin_allow_for_what_bins_hide(skewed: pa.Table) -> None:
    options: dict[str, Any] = {"y_score": "score", "sensitive_features": "sex", "rng": 7}
    options |= {"metric": "roc_auc", "data": LAZY["duckdb"](skewed), "n_resamples": 99}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        coarse, fine = (
            fairperm.equivalence_test("label", margin=0.1, score_bins=bins, **options)
            for bins in (64, 4_096)
        )
        by_ratio = fairperm.equivalence_test("label", ratio=0.8, score_bins=64, **options)
    result = coarse.permutation
    assert result.binning_errors is not None
    hidden = sum(result.binning_errors.values())
    gap, error = result.difference, result.standard_error
    assert coarse.lower is not None
    assert coarse.upper is not None
    assert coarse.lower.statistic == pytest.approx((gap + 0.1 - hidden) / error)
    assert coarse.upper.statistic == pytest.approx((gap - 0.1 + hidden) / error)
    for one, other in (
        (coarse.confidence_interval, fine.confidence_interval),
        (coarse.ratio_interval, fine.ratio_interval),
    ):
        assert one is not None
        assert other is not None
        assert one[0] < other[0] < other[1] < one[1]
    assert by_ratio.lower is not None
    first, second = (result.values[group] for group in result.groups)
    blur = result.binning_errors["a"] + 0.8 * result.binning_errors["b"]
    errors = result.standard_errors["a"], 0.8 * result.standard_errors["b"]
    expected = (first - 0.8 * second - blur) / np.hypot(*errors)
    assert by_ratio.lower.statistic == pytest.approx(expected)


@by_engine
def test_single_precision_and_missing_scores_are_binned_alike(form: str) -> None:
    table = sample(2_000, decimals=None)
    values = table["score"].to_pylist()
    values[3], values[9] = None, float("nan")
    table = table.set_column(1, "score", pa.array(values, pa.float32()))
    kept = np.array(values, float)
    keep = np.flatnonzero(~np.isnan(kept))
    place = number_bins(kept[keep].astype(np.float32).astype(float), 32)
    by_hand = run(table.take(keep).set_column(1, "score", pa.array(place)), "roc_auc")
    result = _quietly(LAZY[form](table), "roc_auc", score_bins=32, missing="drop")
    assert result.n_dropped == 2
    assert np.array_equal(result.null_distribution, by_hand.null_distribution)


def test_bins_are_used_where_distinct_rows_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as can be counted: a thousand kinds of rows are 250 bins of two labels and sexes."""
    table = sample(2_000, decimals=None)
    data = LAZY["duckdb"](table)
    assert run(data, "roc_auc").binning_errors is None
    monkeypatch.setattr(lazy, "MAX_KINDS", 1_000)
    for most, n_bins in ((100, 100), (1_000, 250)):
        monkeypatch.setattr(lazy, "DEFAULT_BINS", most)
        chosen, requested = _quietly(data, "roc_auc"), _quietly(data, "roc_auc", score_bins=n_bins)
        assert any("so many scores are distinct" in note.lower() for note in chosen.notes)
        assert chosen.binning_errors == requested.binning_errors
        assert np.array_equal(chosen.null_distribution, requested.null_distribution)


PROBABILITIES = ("brier_score", "log_loss", "mean_score", "mean_score_positives",
                 "mean_score_negatives", "calibration_in_the_large")  # fmt: skip


@pytest.mark.parametrize("metric", PROBABILITIES)
@pytest.mark.parametrize("shape", [(0.3, 4), (1, 1), (8, 0.5)])
def test_bins_move_no_mean_by_more_than_their_bound(
    metric: str, shape: tuple[float, float]
) -> None:
    score = RNG.beta(*shape, N)
    sex, label = RNG.choice(["a", "b"], N, p=[0.3, 0.7]), RNG.random(N) < score
    table = pa.table({"label": label, "score": score, "sex": sex})
    exact = _quietly(table, metric, n_resamples=9)
    binned = _quietly(LAZY["duckdb"](table), metric, score_bins=400, n_resamples=9)
    assert binned.binning_errors is not None
    for group, bound in binned.binning_errors.items():
        assert 0 < abs(binned.values[group] - exact.values[group]) <= bound
        assert bound < exact.standard_errors[group]


@pytest.mark.parametrize("form", ["polars", pytest.param("dask", marks=pytest.mark.validate)])
def test_every_engine_bins_probabilities_alike(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "MAX_KINDS", 1_000)
    table = sample(2_000, decimals=None)
    results = [_quietly(LAZY[one](table), "brier_score") for one in ("duckdb", form)]
    assert same(*results)


def test_scores_out_of_range_are_found_in_bins() -> None:
    table = sample(400, decimals=None)
    score = table["score"].to_numpy().copy()
    score[score.argmax()] = 1 + 1e-9
    table = table.set_column(1, "score", pa.array(score))
    with pytest.raises(fairperm.InputError, match="must be from 0 to 1 for this metric"):
        run(LAZY["duckdb"](table), "brier_score", score_bins=10)


@pytest.mark.parametrize("metric", ["roc_auc", "brier_score"])
def test_rows_in_memory_are_binned_only_if_bins_hide_next_to_nothing(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy, "MAX_KINDS", 2_000)
    table = sample(2_500, decimals=None)
    data = BinnableRows(table, LAZY["duckdb"](table))
    assert same(run(data, metric), run(table, metric))
    monkeypatch.setattr(samples, "_NEXT_TO_NOTHING", 0.5)
    assert same(_quietly(data, metric), _quietly(LAZY["duckdb"](table), metric))
    limit = run(data, metric, n_resamples=0)
    assert limit.pvalue == run(table, metric, n_resamples=0).pvalue


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_scores_have_no_bin(bad: float) -> None:
    table = sample(400)
    score = table["score"].to_numpy().copy()
    score[7] = bad
    table = table.set_column(1, "score", pa.array(score))
    with pytest.raises(fairperm.InputError, match=r"y_score .* must be finite"):
        run(LAZY["duckdb"](table), "roc_auc", score_bins=10)


def test_equal_scores_are_one_bin() -> None:
    table = sample(400).set_column(1, "score", pa.array(np.full(400, 3.5)))
    result = _quietly(LAZY["duckdb"](table), "roc_auc", score_bins=10)
    assert result.values == {"Female": 0.5, "Male": 0.5}


def test_an_audit_has_predictions_beside_binned_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threshold is not where bins meet, and still no prediction is another."""
    table = sample(2_000, decimals=None)
    options: dict[str, Any] = {
        "y_score": "score", "threshold": 0.4321, "sensitive_features": "sex", "rng": 1,
        "metrics": ["false_positive_rate", "roc_auc"], "n_resamples": 399,
        "adjust": None,
    }  # fmt: skip
    expected = fairperm.audit("label", data=table, **options)
    monkeypatch.setattr(lazy, "MAX_KINDS", 1_000)
    monkeypatch.setattr(lazy, "DEFAULT_BINS", 64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        found = fairperm.audit("label", data=LAZY["duckdb"](table), **options)
    assert found.rows[0].to_dict() == expected.rows[0].to_dict()
    result = found.rows[1].result
    assert result is not None
    assert result.binning_errors is not None
    with pytest.raises(fairperm.InputError, match="threshold must be above the lowest score"):
        fairperm.audit("label", data=LAZY["duckdb"](table), **{**options, "threshold": 3})


def test_bounds_count_weights_and_cover_all_strata_together() -> None:
    """Positives of one stratum and negatives of another meet in a bin only when put together."""
    n = 200
    label = np.tile([0, 1], n)
    region = np.repeat(["x", "y"], n)
    place = np.where(region == "x", label, 1 - label)  # each stratum's bins have one label
    score = ((place + 0.2 + 0.5 * label) / 2) ** 4
    table = pa.table(
        {"label": label, "score": score, "region": region, "sex": np.tile(list("aabb"), n // 2),
         "weight": np.where(label == 1, 3.0, 1.0)}
    )  # fmt: skip
    exact = _quietly(table, "roc_auc", control_features="region")
    binned = _quietly(LAZY["duckdb"](table), "roc_auc", control_features="region", score_bins=2)
    assert binned.binning_errors is not None
    for group in ("a", "b"):
        moved = abs(binned.values[group] - exact.values[group])
        assert 0.1 < moved <= binned.binning_errors[group]
    weighted = _quietly(LAZY["duckdb"](table), "roc_auc", sample_weight="weight", score_bins=2)
    plain = _quietly(LAZY["duckdb"](table), "roc_auc", score_bins=2)
    assert weighted.binning_errors == pytest.approx(plain.binning_errors)


def test_a_test_of_all_groups_says_what_bins_may_have_moved() -> None:
    data = LAZY["duckdb"](sample(2_000, decimals=None))
    options: dict[str, Any] = {"y_score": "score", "metric": "roc_auc", "data": data, "rng": 1}
    options |= {"sensitive_features": "region", "n_resamples": 99}
    said = r"Scores were put into bins, which may have moved the value of group '\w+' by up to"
    with pytest.warns(fairperm.FairpermWarning, match=said):
        fairperm.omnibus_test("label", score_bins=16, **options)
    assert fairperm.omnibus_test("label", score_bins=4_096, **options).notes == ()


@by_engine
def test_a_column_of_bins_keeps_its_values_as_predictions_and_strata(form: str) -> None:
    table = sample(1_000, decimals=0)
    options: dict[str, Any] = {"y_true": "label", "y_pred": "score", "y_score": "score"}
    options |= {"sensitive_features": "sex", "control_features": "score", "n_resamples": 99}
    options |= {"metrics": ["accuracy", "selection_rate", "roc_auc"], "rng": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        eager = fairperm.audit(data=table, **options)
        lazily = fairperm.audit(data=LAZY[form](table), score_bins=7, **options)
    for one, other in zip(eager, lazily, strict=True):
        assert (one.values, one.pvalue) == (other.values, other.pvalue)
