"""Bets on blocks: what they win on average, by enumeration, and how often they ever alarm."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest

from fairperm.monitoring.eprocess import Wealth, shuffle

Array = NDArray[np.float64]

ALPHA = 0.05


def outcomes(successes: int, trials: int) -> Array:
    return np.repeat([0.0, 1.0], [trials - successes, successes])


def add(wealth: Wealth, first: Array, second: Array, rng: np.random.Generator) -> Wealth:
    return wealth.add(shuffle(first, rng), shuffle(second, rng))


def start(*batches: tuple[tuple[int, int], tuple[int, int]], seed: int = 0) -> Wealth:
    """Return the wealth after batches of (successes, trials) of both groups."""
    wealth = Wealth.start(0.0)
    for number, (first, second) in enumerate(batches):
        rng = np.random.default_rng([seed, number])
        wealth = add(wealth, outcomes(*first), outcomes(*second), rng)
    return wealth


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("trials", [(1, 1), (2, 1)])
def test_wealth_is_one_on_average_by_enumeration(rate: float, trials: tuple[int, int]) -> None:
    """Of equal rates, over all outcomes of three batches, whatever was bet."""
    mean = 0.0
    every = itertools.product(range(trials[0] + 1), range(trials[1] + 1))
    for path in itertools.product(every, repeat=3):
        chance = math.prod(
            math.comb(n, k) * rate**k * (1 - rate) ** (n - k)
            for both in path
            for k, n in zip(both, trials, strict=True)
        )
        wealth = start(*(((a, trials[0]), (b, trials[1])) for a, b in path))
        none = (wealth.cells.low == 0) & (wealth.cells.high == 0)
        mean += chance * math.exp(wealth.log_now[none][0])
        assert wealth.log_evalue <= wealth.log_now[none][0]
    assert mean == pytest.approx(1.0, abs=1e-12)


def test_the_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random(40), rng.random(55)
    one, other = (
        add(Wealth.start(0.0), a, b, np.random.default_rng(1))
        for a, b in ((first, second), (first[::-1], np.sort(second)))
    )
    assert one.to_dict() == other.to_dict()


def test_swapping_groups_mirrors_the_interval() -> None:
    batches = [((i % 2, 1), (i % 3 == 0, 1)) for i in range(60)]
    found = start(*batches).interval(ALPHA)
    turned = start(*((second, first) for first, second in batches)).interval(ALPHA)
    assert found
    assert turned == pytest.approx((-found[1], -found[0]))


def test_rows_of_one_group_wait_for_the_other() -> None:
    waiting = start(((3, 10), (0, 0)), ((2, 4), (0, 0)))
    assert (waiting.blocks, waiting.pending[0].rows, waiting.pending[0].total) == (0, 14, 5.0)
    assert waiting.log_most_evalue == 0.0
    found = waiting.add(outcomes(0, 0), outcomes(1, 1))
    assert found.blocks == 1
    assert found.total == pytest.approx(5 / 14 - 1)


def test_the_wealth_is_as_before_once_written_and_read() -> None:
    wealth = start(((3, 10), (5, 12)), ((7, 9), (0, 0)))
    plain = json.loads(json.dumps(wealth.to_dict()))
    assert Wealth.from_dict(plain, 0.0).to_dict() == wealth.to_dict()
    assert len(json.dumps(plain)) < 20_000


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_an_alarm_is_an_interval_beyond_the_margin(margin: float) -> None:
    rng = np.random.default_rng(3)
    wealth, alarms = Wealth.start(margin), []
    for rates in [(0.2, 0.4)] * 150 + [(0.4, 0.2)] * 300:  # then no one gap fits all batches
        first, second = (outcomes(rng.binomial(9, rate), 9) for rate in rates)
        wealth = add(wealth, first, second, rng)
        found = wealth.interval(ALPHA)
        alarm = wealth.log_most_evalue >= -math.log(ALPHA)
        if found:
            assert alarm == (found[0] > margin or found[1] < -margin)
        alarms.append(alarm)
    assert not alarms[0]
    assert alarms[149]
    assert wealth.interval(ALPHA) is None


def test_a_gap_that_moves_within_the_margin_does_not_alarm() -> None:
    """Though no one gap fits all batches."""
    rng = np.random.default_rng(0)
    wealth = Wealth.start(0.1)
    for gap in [-0.09] * 40 + [0.09] * 80:
        first, second = (outcomes(rng.binomial(300, p), 300) for p in (0.4 + gap, 0.4))
        wealth = add(wealth, first, second, rng)
        found = wealth.interval(ALPHA)
        assert found is None or (found[0] <= 0.1 and found[1] >= -0.1)
    assert found is None
    assert wealth.log_most_evalue < 0.5


def test_a_gap_inside_the_margin_never_alarms_however_many_rows_there_are() -> None:
    """Bets against single gaps of a grid would: the true one lies between two of them."""
    rng = np.random.default_rng(0)
    wealth = Wealth.start(0.1)
    for _ in range(40):
        first, second = (outcomes(rng.binomial(50_000, p), 50_000) for p in (0.4814, 0.4))
        wealth = add(wealth, first, second, rng)
    found = wealth.interval(ALPHA)
    assert found
    assert found[0] < 0.0814 < found[1] < 0.1
    assert wealth.log_most_evalue < -math.log(ALPHA)


@pytest.mark.validate
@pytest.mark.parametrize(
    ("rate", "sizes", "batches"),
    [
        (0.01, (20, 20), 150),
        (0.1, (5, 100), 100),
        (0.3, (200, 10), 100),
    ],
)
def test_alarms_ever_raised_by_equal_groups(
    rate: float, sizes: tuple[int, int], batches: int
) -> None:
    """Looked at after every batch; a z test that is looked at as often fails beside it."""
    rng, reps = np.random.default_rng(sizes), 300
    alarms = naive = 0
    for _ in range(reps):
        hits = rng.binomial(sizes, rate, (batches, 2))
        wealth = Wealth.start(0.0)
        for first, second in hits:
            wealth = add(wealth, outcomes(first, sizes[0]), outcomes(second, sizes[1]), rng)
        alarms += wealth.log_most_evalue >= -math.log(ALPHA)
        k, n = np.cumsum(hits, axis=0), np.outer(np.arange(1, batches + 1), sizes)
        pooled = k.sum(axis=1) / n.sum(axis=1)
        error = np.sqrt(pooled * (1 - pooled) * (1 / n).sum(axis=1))
        z = np.divide(k[:, 0] / n[:, 0] - k[:, 1] / n[:, 1], error, where=error > 0, out=error * 0)
        naive += bool((np.abs(z) > 1.96).any())
    assert binomtest(alarms, reps, ALPHA, "greater").pvalue > 1e-3
    assert binomtest(naive, reps, ALPHA, "greater").pvalue < 1e-3
