"""Permuted counts of many groups: their distribution by enumeration, and by its moments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fairperm._utils import streams
from fairperm.engines.resampling import draws
from fairperm.engines.sample import Cells


def tables_of(sample: NDArray[np.int64]) -> dict[bytes, float]:
    """Return every table with these margins (groups by cells) and its probability."""
    sizes, totals = sample.sum(axis=1).tolist(), sample.sum(axis=0).tolist()
    n = math.factorial(sum(sizes))
    ways = math.prod(math.factorial(x) for x in (*sizes, *totals))
    found = {}
    ranges = (range(min(a, b) + 1) for a in sizes for b in totals)
    for entries in itertools.product(*ranges):
        table = np.array(entries, np.int64).reshape(sample.shape)
        if (table.sum(axis=1) == sizes).all() and (table.sum(axis=0) == totals).all():
            found[table.tobytes()] = ways / n / math.prod(math.factorial(x) for x in entries)
    assert sum(found.values()) == pytest.approx(1)
    return found


def cells_of(sample: NDArray[np.int64]) -> Cells:
    kinds = sample.shape[1]
    return Cells(sample[None], np.eye(kinds), np.zeros(kinds, np.int64), None, order=(0, 1))


@pytest.mark.parametrize("thinned", [False, True], ids=["by kind", "thinned"])
@pytest.mark.parametrize(
    "counts",
    [
        [[1, 2], [2, 0], [1, 1]],
        [[1, 0, 1], [0, 2, 1], [2, 1, 0]],
        [[1, 1], [0, 1], [1, 0], [2, 1]],
        [[0, 0], [2, 1], [1, 2]],
    ],
    ids=str,
)
def test_permuted_tables_are_multivariate_hypergeometric(
    counts: list[list[int]], thinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if thinned:
        monkeypatch.setattr(draws, "_NUMPY_LIMIT", 2)
    sample, n = np.array(counts), 20_000
    drawn = draws.permute(cells_of(sample), n, streams.stream(1, streams.PERMUTATIONS))[:, 0]
    chance = tables_of(sample)
    place = {table: i for i, table in enumerate(chance)}
    times = np.bincount([place[one.tobytes()] for one in drawn], minlength=len(chance))
    expected = n * np.array(list(chance.values()))
    assert expected.min() >= 5
    assert stats.chisquare(times, expected).pvalue > 1e-4


def test_counts_of_billions_are_permuted() -> None:
    """Beyond NumPy's limit: exact margins, hypergeometric means and covariances."""
    sample = np.array([[3, 1, 2], [5, 4, 1], [1, 2, 6]]) * 10**9
    n = 4000
    drawn = draws.permute(cells_of(sample), n, streams.stream(2, streams.PERMUTATIONS))[:, 0]
    sizes, totals = sample.sum(axis=1), sample.sum(axis=0)
    assert (drawn.sum(axis=2) == sizes).all()
    assert (drawn.sum(axis=1) == totals).all()
    population = int(sizes.sum())
    for g, c in itertools.product(range(3), range(3)):
        share, kind = sizes[g] / population, totals[c] / population
        variance = population * share * (1 - share) * kind * (1 - kind)
        z = (drawn[:, g, c] - population * share * kind) / math.sqrt(variance)
        assert abs(z.mean()) < 5 / math.sqrt(n)
        assert abs((z**2).mean() - 1) < 5 * math.sqrt(2 / n)
    # two groups' counts of one cell: their correlation is -sqrt(odds · odds) of the shares
    odds = [sizes[g] / (population - sizes[g]) for g in (0, 1)]
    rho = -math.sqrt(odds[0] * odds[1])
    found = np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 0])[0, 1]
    assert abs(found - rho) < 5 * (1 - rho**2) / math.sqrt(n)
