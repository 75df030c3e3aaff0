"""False alarms, coverage and delays of the bets, with one look after every block.

Many monitors at once: the same bets as :class:`Wealth` makes, on one range of gaps for each run.
A monitor needs more than that to raise an alarm, so that the shares found here are upper bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest

import fairperm
from fairperm.monitoring.eprocess import Wealth, find_bets

Array = NDArray[np.float64]
Play = Callable[[int, Array, Array], tuple[Array | float, Array | float]]

ALPHA = 0.05
BLOCKS = 10_000_000  # of all runs: what fits into memory
NEVER = np.iinfo(np.int64).max


def draw(
    rng: np.random.Generator,
    rates: tuple[float, float],
    sizes: tuple[int, int],
    shape: tuple[int, int],
) -> Array:
    """Return differences of means of blocks with so many rows of each group."""
    first, second = (rng.binomial(n, p, shape) / n for n, p in zip(sizes, rates, strict=True))
    return np.asarray(first - second)


def play(low: float, high: float) -> Play:
    """Return the bets of a monitor against a range of gaps."""
    ends = np.array(low), np.array(high)
    return lambda n, total, squares: find_bets(n, total, squares, *ends)


def always(share: float) -> Play:
    """Return a bet of a fixed share of the wealth on gaps above 0."""
    return lambda *_: (0.0, share)


def first_alarms(differences: Array, bets: Play, alpha: float = ALPHA) -> NDArray[np.int64]:
    """Return after how many blocks (rows of the array) each run's wealth is 1/α, or NEVER."""
    runs = differences.shape[1]
    total, squares, log = np.zeros((3, runs))
    found = np.full(runs, NEVER)
    for n, d in enumerate(differences):
        against, bet = bets(n, total, squares)
        log = log + np.log1p(bet * (d - against))
        total, squares = total + d, squares + d**2
        found[(log >= -math.log(alpha)) & (found == NEVER)] = n + 1
    return found


def naive_alarms(differences: Array) -> NDArray[np.int64]:
    """Return when a z test that is looked at after every block from the 30th on rejects."""
    n = np.arange(1, len(differences) + 1)[:, None]
    mean = np.cumsum(differences, axis=0) / n
    error = np.sqrt(np.maximum(np.cumsum(differences**2, axis=0) / n - mean**2, 0) / n)
    rejects = (np.abs(mean) > 1.96 * error) & (error > 0) & (n > 30)
    return np.where(rejects.any(axis=0), rejects.argmax(axis=0) + 1, NEVER)


def at_most(hits: int, runs: int, level: float = ALPHA) -> bool:
    return bool(binomtest(hits, runs, level, "greater").pvalue > 1e-3)


def test_many_runs_at_once_bet_as_the_monitor_does() -> None:
    rng = np.random.default_rng(1)
    outcomes = rng.binomial(1, [0.4, 0.1], (300, 2)).astype(float)
    wealth = Wealth.start(0.0)
    at = int(np.flatnonzero((wealth.cells.low == 0) & (wealth.cells.high > 0))[0])
    logs = []
    for first, second in outcomes:
        wealth = wealth.add(np.array([first]), np.array([second]))
        logs.append(wealth.log_now[at])
    differences = outcomes[:, :1] - outcomes[:, 1:]
    bets = play(float(wealth.cells.low[at]), float(wealth.cells.high[at]))
    (found,) = first_alarms(differences, bets)
    assert found == 1 + int(np.argmax(np.array(logs) >= -math.log(ALPHA))) < 300


@pytest.mark.validate
@pytest.mark.parametrize(
    ("rate", "sizes"),
    [(0.01, (1, 1)), (0.5, (1, 1)), (0.1, (1, 4)), (0.01, (1, 20)), (0.3, (1, 20))],
)
def test_equal_rates_hardly_ever_alarm(rate: float, sizes: tuple[int, int]) -> None:
    """Up to 50,000 rows, with a look after every block of 1 + 1, 1 + 4 or 1 + 20 rows."""
    blocks = 50_000 // sum(sizes)
    runs = BLOCKS // blocks
    rng = np.random.default_rng([3, blocks, sizes[1]])
    differences = draw(rng, (rate, rate), sizes, (blocks, runs))
    assert at_most(int((first_alarms(differences, play(0, 0)) < NEVER).sum()), runs)
    assert not at_most(int((naive_alarms(differences) < NEVER).sum()), runs)


@pytest.mark.validate
@pytest.mark.parametrize("rates", [(0.3, 0.25), (0.05, 0.02), (0.9, 0.1)])
def test_the_true_gap_is_kept_at_all_times(rates: tuple[float, float]) -> None:
    """The interval has every range that was never given up, so it has the true gap."""
    blocks = 25_000 if rates == (0.3, 0.25) else 5000
    runs = BLOCKS // blocks
    cells = Wealth.start(0.0).cells
    gap = rates[0] - rates[1]
    at = int(np.flatnonzero((cells.low <= gap) & (gap <= cells.high))[0])
    bets = play(float(cells.low[at]), float(cells.high[at]))
    differences = draw(np.random.default_rng(4), rates, (1, 1), (blocks, runs))
    assert at_most(int((first_alarms(differences, bets) < NEVER).sum()), runs)


@pytest.mark.validate
@pytest.mark.parametrize(
    ("rates", "most"), [((0.2, 0.1), 1.4), ((0.1, 0.05), 1.4), ((0.45, 0.4), 1.8)]
)
def test_delays(rates: tuple[float, float], most: float) -> None:
    """Medians against the sample size of 80 % power.

    A fixed share of the wealth, of which half is bet on gaps below 0, suits some gaps only.
    """
    needed = int(fairperm.sample_size(metric="selection_rate", values=rates)) / 2
    blocks = math.ceil(3 * needed)
    differences = draw(np.random.default_rng(5), rates, (1, 1), (blocks, 300))
    assert np.median(first_alarms(differences, play(0, 1e-4))) / needed <= most
    fixed = np.median(first_alarms(differences, always(0.5), ALPHA / 2))
    assert (fixed == NEVER) == (rates == (0.45, 0.4))


@pytest.mark.validate
def test_blocks_in_the_order_of_a_file_alarm_for_nothing() -> None:
    """Files sorted by outcome, in opposite ways: the reason for the shuffle."""
    rng, runs, alarms = np.random.default_rng(6), 40, 0
    for _ in range(runs):
        first, second = np.sort(rng.binomial(1, 0.3, (2, 400)).astype(float))
        alarms += Wealth.start(0.0).add(first, second[::-1]).log_most_evalue >= -math.log(ALPHA)
    assert not at_most(alarms, runs)
