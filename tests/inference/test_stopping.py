"""Draws that stop early: the p-value is valid, and only the order of the draws decides it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import binom

import fairperm
from fairperm.auditing.comparisons import Settings
from fairperm.auditing.verdicts import draw_enough
from fairperm.engines.resampling import blocks
from fairperm.hypothesis_tests.plan import check_resampling
from fairperm.inference import stopping
from fairperm.inference.null import clopper_pearson, list_tails
from fairperm.inference.stopping import (
    MAX_DRAWS,
    MIN_DRAWS,
    MIN_EXTREME_DRAWS,
    StoppingRule,
    min_draws_for,
)
from tests.support.simulations import SURE, between

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ATOMS = {-1.0: 0.5, 0.0: 0.2, 2.0: 0.3}  # values of a statistic, with their probabilities


def with_ties() -> Iterator[tuple[float, tuple[float, ...], float]]:
    """Yield every sample and every six draws of few values, with their probabilities."""
    for observed, *draws in itertools.product(ATOMS, repeat=7):
        yield observed, (*draws,), ATOMS[observed] * math.prod(ATOMS[one] for one in draws)


def without_ties() -> Iterator[tuple[float, tuple[float, ...], float]]:
    """Yield on which side of the sample ten draws lie: every rank of the sample is as likely."""
    for draws in itertools.product((-1.0, 1.0), repeat=10):
        yield 0.0, draws, 1 / (11 * math.comb(10, draws.count(1.0)))


def ordinary(draws: Array, observed: float, alternative: str) -> float:
    """Return the p-value of all these draws."""
    tails = list_tails(draws, observed, alternative, 0.0)
    fewest = min(int(tail.sum()) for tail in tails)
    return min(1.0, len(tails) * (fewest + 1) / (len(draws) + 1))


def stopped(draws: Array, observed: float, alternative: str, least: int) -> float:
    n = StoppingRule(observed, alternative, 0.0, least).count(draws)
    return ordinary(draws[:n], observed, alternative)


def smallest(draws: Array, observed: float, alternative: str, least: int) -> float:
    """Return the smallest p-value on the way, which is not valid."""
    numbers = range(max(least, 1), len(draws) + 1)
    return min(ordinary(draws[:n], observed, alternative) for n in numbers)


def excess(
    outcomes: Callable[[], Iterator[tuple[float, tuple[float, ...], float]]],
    find: Callable[..., float],
    alternative: str,
    least: int,
) -> float:
    """Return the largest P(p ≤ α) − α, over every sample and every sequence of draws."""
    chances: dict[float, float] = {}
    for observed, draws, chance in outcomes():
        p = find(np.array(draws), observed, alternative, least)
        chances[p] = chances.get(p, 0.0) + chance
    levels = sorted(chances)
    return float((np.cumsum([chances[level] for level in levels]) - levels).max())


@pytest.mark.parametrize("outcomes", [with_ties, without_ties])
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("least", [0, 4])
def test_every_level_is_held(
    outcomes: Any, alternative: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "MIN_EXTREME_DRAWS", 2)
    assert excess(outcomes, stopped, alternative, least) < 1e-12
    if outcomes is without_ties:  # the smallest on the way is found out
        assert excess(outcomes, smallest, alternative, least) > 0.05


@pytest.mark.parametrize("least", [0, MIN_DRAWS, 1999])
def test_levels_at_the_numbers_in_use(least: int) -> None:
    """A further draw exceeds the sample with probability (b + 1)/(n + 2) if b of n did."""
    chances = {(b + 1) / (least + 1): 1 / (least + 1) for b in range(MIN_EXTREME_DRAWS, least + 1)}
    below = np.full(min(MIN_EXTREME_DRAWS, least + 1), 1 / (least + 1))
    below = np.append(below, np.zeros(MIN_EXTREME_DRAWS - len(below)))  # the chances of b < 20
    for n in range(least, MAX_DRAWS):
        moves = below * np.arange(1, MIN_EXTREME_DRAWS + 1) / (n + 2)
        below = below - moves + np.append(0.0, moves[:-1])
        if n + 1 >= MIN_EXTREME_DRAWS:
            chances[MIN_EXTREME_DRAWS / (n + 1)] = moves[-1]
    chances |= {(b + 1) / (MAX_DRAWS + 1): below[b] for b in range(MIN_EXTREME_DRAWS)}
    levels = sorted(chances)
    reached = np.cumsum([chances[level] for level in levels])
    np.testing.assert_allclose(reached, levels, rtol=1e-9)
    assert sum(chances.values()) == pytest.approx(1)


@pytest.mark.parametrize("share", [0.002, 0.01, 0.05])
def test_intervals_of_stopped_pvalues_cover(share: float) -> None:
    """Of the p-value that infinitely many draws would give, by the chances of every stop."""
    least, most, covered = 199, 4000, 0.0

    def covers(b: int, n: int) -> bool:
        low, high = clopper_pearson(b, n, 0.95)
        return low <= share <= high

    counts = np.arange(least + 1)
    chance = binom.pmf(counts, least, share)
    covered += sum(chance[b] for b in range(MIN_EXTREME_DRAWS, least + 1) if covers(b, least))
    below = chance[:MIN_EXTREME_DRAWS]
    for n in range(least, most):
        moves = below * share
        below = below - moves + np.append(0.0, moves[:-1])
        covered += moves[-1] * covers(MIN_EXTREME_DRAWS - 1, n)
    covered += sum(below[b] for b in range(MIN_EXTREME_DRAWS) if covers(b, most))
    assert 0.95 <= covered <= 0.99


@pytest.mark.parametrize(
    ("level", "slow", "least"),
    [
        (0.95, False, 1999),
        (0.95, True, 299),
        (0.99, False, 1999),
        (0.99, True, 999),
        (0.999, False, 9999),
        (0.9999, True, 9999),
    ],
)
def test_intervals_have_draws_beyond_their_ends(level: float, slow: bool, least: int) -> None:
    assert min_draws_for(level, slow=slow) == least


def count_by_hand(draws: Array, observed: float, alternative: str, least: int) -> int:
    """Return how many draws count, one after the other."""
    lower = upper = 0
    for n, draw in enumerate(draws, 1):
        upper += draw >= observed
        lower += draw <= observed
        fewest = upper if alternative == "greater" else min(lower, upper)
        if n >= max(least, 1) and fewest >= MIN_EXTREME_DRAWS:
            return least if n == least else n - 1
    return len(draws)


def numbers(shift: float) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    group = np.repeat(["a", "b"], [40, 60])
    y_pred = rng.normal(size=100) + shift * (group == "a")
    return {"y_true": rng.normal(size=100), "y_pred": y_pred, "sensitive_features": group}


def scores(shift: float) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    group, y_true = np.repeat(["a", "b"], [60, 80]), np.arange(140) % 2
    signal = np.where(group == "a", 1.0 + shift, 1.0)
    return {
        "y_true": y_true,
        "y_score": rng.normal(size=140) + signal * y_true,
        "sensitive_features": group,
    }


def slow(y_true: Array, y_pred: Array) -> float:
    """Return the mean prediction."""
    del y_true
    return float(y_pred.mean())


def run_numbers(shift: float, **options: Any) -> Any:
    given = {"variance": "delta", **options}  # no p-value is below the normal one without skewness
    return fairperm.permutation_test(**numbers(shift), metric="mean_prediction", rng=1, **given)


def run_scores(shift: float, **options: Any) -> Any:
    return fairperm.permutation_test(**scores(shift), metric="roc_auc", rng=1, **options)


def run_function(shift: float, **options: Any) -> Any:
    given = {"variance": "bootstrap", "n_bootstrap": 2, **options}
    return fairperm.permutation_test(**numbers(shift), metric=slow, rng=1, **given)


def run_omnibus(shift: float, **options: Any) -> Any:
    return fairperm.omnibus_test(**numbers(shift), metric="mean_prediction", rng=1, **options)


def run_correlation(shift: float, **options: Any) -> Any:
    x, y = np.random.default_rng(5).normal(size=(2, 80))
    given = {"variance": "delta", **options}
    return fairperm.correlation_test(x, y + shift * x, rng=1, **given)


@pytest.mark.parametrize(
    ("run", "shift", "least", "ends"),
    [
        (run_numbers, 0.0, 1999, "at once"),
        (run_numbers, 0.6, 1999, "later"),
        (run_numbers, 2.0, 1999, "never"),
        (run_scores, 1.0, 1999, "later"),
        (run_function, 0.6, MIN_DRAWS, "later"),
        (run_omnibus, 0.5, MIN_DRAWS, "later"),
        (run_correlation, 0.3, 1999, "later"),
    ],
)
def test_the_first_draws_of_all_are_used(
    run: Callable[..., Any], shift: float, least: int, ends: str
) -> None:
    n_all = 576 if run is run_function else MAX_DRAWS  # whole blocks of a slow function
    every, some = run(shift, n_resamples=n_all), run(shift)
    tail = "greater" if run is run_omnibus else "two-sided"
    n = count_by_hand(every.null_distribution, every.statistic, tail, least)
    assert {"at once": n == least, "later": least < n < n_all, "never": n == n_all}[ends]
    assert (some.n_resamples, some.stopped_early) == (n, n < n_all)
    np.testing.assert_array_equal(some.null_distribution, every.null_distribution[:n])
    assert some.pvalue == ordinary(some.null_distribution, some.statistic, tail)
    assert ("(stopped early)" in repr(some)) == (n < n_all)
    assert some.to_dict()["stopped_early"] == (n < n_all)


@pytest.mark.parametrize(
    ("run", "shift"), [(run_numbers, 0.6), (run_scores, 1.0), (run_omnibus, 0.5)]
)
def test_threads_and_blocks_at_a_time_change_nothing(
    run: Callable[..., Any], shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [run(shift, n_jobs=jobs) for jobs in (1, 2, 4)]
    for more in (1, 1000):  # twice as many blocks, or one at a time
        monkeypatch.setattr(blocks, "_MORE", more)
        results.append(run(shift))
    assert len({(one.pvalue, one.n_resamples) for one in results}) == 1


def test_joblib_changes_nothing() -> None:
    given = {**numbers(0.6), "metric": slow, "n_bootstrap": 99, "rng": 1}
    with parallel_config("threading"):
        results = [fairperm.permutation_test(**given, n_jobs=jobs) for jobs in (None, 4)]
    assert results[0].n_resamples > MIN_DRAWS
    assert len({(one.pvalue, one.confidence_interval, one.n_resamples) for one in results}) == 1


def test_metrics_that_share_draws_stop_by_themselves() -> None:
    metrics = ["mean_prediction", "mean_squared_error", "r2_score"]
    data = numbers(0.6)
    rows = fairperm.audit(**data, metrics=metrics, min_group_size=10, rng=1).rows
    numbers_drawn = []
    for row in rows:
        alone = fairperm.permutation_test(**data, metric=row.metric, rng=1)
        result: Any = row.result
        assert (result.pvalue, result.n_resamples) == (alone.pvalue, alone.n_resamples)
        assert result.confidence_interval == alone.confidence_interval
        numbers_drawn.append(alone.n_resamples)
    assert len({*numbers_drawn}) > 1


@dataclass
class Asked:
    """A hypothesis of an audit."""

    attribute: str
    number: int

    @property
    def question(self) -> Asked:
        return self

    def hypothesis(self, alternative: str) -> object:
        return self.attribute, self.number, alternative


@pytest.mark.parametrize(
    ("n_hypotheses", "options", "least", "most"),
    [
        (1, {}, 39, 9_999),
        (1, {"alternative": "less"}, 19, 9_999),
        (100, {}, 3_999, 9_999),
        (100, {"adjust": None}, 39, 9_999),
        (100, {"family": "attribute"}, 1_999, 9_999),
        (1000, {}, 9_999, 39_999),
        (1000, {"adjust": "by"}, 9_999, 99_999),
        (10_000, {}, 9_999, 99_999),
    ],
)
def test_audits_draw_enough_for_their_adjustment(
    n_hypotheses: int, options: dict[str, Any], least: int, most: int
) -> None:
    given = {"alternative": "two-sided", "adjust": "holm", "family": "audit", "margins": {}}
    settings: Any = Settings(
        compare="pairs",
        reference=None,
        alpha=0.05,
        ratios={},
        min_group_size=1,
        group_size_by="rows",
        n_attributes=2,
        resampling=check_resampling("auto", 1, 1, False, or_auto=True),
        **{**given, **options},
    )
    asked: Any = [Asked("sex" if i % 2 else "race", i) for i in range(n_hypotheses)]
    found = draw_enough([*asked, *asked], settings).resampling
    assert (found.min_draws, found.n_resamples) == (least, most)


def counted(rng: np.random.Generator, *sizes: int, spread: float = 0.0) -> dict[str, Any]:
    """Return rows of few kinds, which are counted, and too many tables to enumerate."""
    group = np.repeat(np.array(["a", "b", "c"])[: len(sizes)], sizes)
    share = np.repeat(0.5 + rng.normal(0, spread, len(sizes)), sizes)
    y_pred = rng.binomial(9, share).astype(float)
    return {"y_true": np.zeros(len(group)), "y_pred": y_pred, "sensitive_features": group}


@pytest.mark.validate
def test_level_of_stopped_tests() -> None:
    data_sets, rng = 1000, np.random.default_rng(11)
    results = [
        fairperm.permutation_test(**counted(rng, 60, 80), metric="mean_prediction", rng=seed)
        for seed in range(data_sets)
    ]
    assert np.mean([result.stopped_early for result in results]) > 0.98
    pvalues = np.array([result.pvalue for result in results])
    for alpha in (0.01, 0.05, 0.2, 0.5):
        fewest, most = between(alpha, alpha, data_sets)
        assert fewest <= (pvalues <= alpha).sum() <= most


@pytest.mark.validate
def test_verdicts_are_those_of_all_draws() -> None:
    """In 200 audits of gaps around the limit, verdicts differ only within Monte Carlo error."""
    rng = np.random.default_rng(12)
    n_differ = n_stopped = 0
    for seed in range(200):
        data = counted(rng, 60, 80, 70, spread=0.04)
        data |= {"metrics": "mean_prediction", "rng": seed}
        pairs = zip(
            fairperm.audit(**data), fairperm.audit(**data, n_resamples=MAX_DRAWS), strict=True
        )
        for some, every in pairs:
            result, full = cast("Any", some.result), cast("Any", every.result)
            n_stopped += result.stopped_early
            if some.verdict != every.verdict:
                n_differ += 1
                factor = cast("float", every.adjusted_pvalue) / full.pvalue
                n = result.n_resamples
                extreme = round(result.pvalue / 2 * (n + 1)) - 1
                low, high = (2 * factor * end for end in clopper_pearson(extreme, n, SURE))
                assert low <= 0.05 <= high
    assert n_stopped > 300
    assert n_differ < 20


@pytest.mark.validate
def test_a_null_heavy_audit_of_functions_takes_a_twentieth() -> None:
    calls: list[int] = []

    def count(power: float) -> Callable[[Array, Array], float]:
        def mean_error(y_true: Array, y_pred: Array) -> float:
            calls.append(1)
            return float(np.mean(np.abs(y_true - y_pred) ** power))

        return mean_error

    metrics = {f"error {power}": count(power) for power in (0.5, 0.75, 1.25, 1.5, 1.75, 2.5)}
    n_tests = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        data: dict[str, Any] = {"y_true": rng.normal(size=120), "y_pred": rng.normal(size=120)}
        audit = fairperm.audit(
            **data, sensitive_features=rng.permutation(120) % 2, metrics=metrics, rng=seed
        )
        n_tests += len(audit.rows)
    of_all = n_tests * 2 * 2 * MAX_DRAWS  # both groups, permutations and bootstrap samples
    assert 20 * len(calls) <= of_all
