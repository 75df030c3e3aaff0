"""Random tables: their distributions against scipy's, and their seeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fairperm import permutation_test
from fairperm._utils.streams import stream
from fairperm.engines.resampling.blocks import BLOCK, Resampling
from fairperm.engines.resampling.draws import (
    bootstrap,
    bootstrap_sample,
    random_subset,
    thinned_subset,
)
from fairperm.engines.sample import Cells
from fairperm.hypothesis_tests.groups import compare
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.metrics import get_metric
from tests.support.helpers import Pair, rows, table

Draw = Callable[[NDArray[np.int64], int, int, np.random.Generator], NDArray[np.int64]]

DRAWS = 20_000
MIN_PVALUE = 1e-4  # seeds are fixed: a right draw passes for ever, a wrong one has p near 0

by_draw = pytest.mark.parametrize("draw", [random_subset, thinned_subset])


def assert_distributed(
    drawn: NDArray[np.int64], pmf: Callable[[Sequence[Sequence[int]]], Any], most: Sequence[int]
) -> None:
    """Compare the draws' frequencies with their probabilities by a chi-square test."""
    total = int(drawn[0].sum())
    points = [p for p in itertools.product(*(range(m + 1) for m in most)) if sum(p) == total]
    expected = len(drawn) * np.asarray(pmf(points))
    assert expected.sum() == pytest.approx(len(drawn))
    codes = {point: i for i, point in enumerate(points)}
    seen = np.bincount([codes[tuple(row)] for row in drawn.tolist()], minlength=len(points))
    assert not seen[expected == 0].any()
    rare = expected < 5
    if rare.any():  # together, as the test's approximation needs
        seen = np.append(seen[~rare], seen[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    if len(expected) > 1:
        assert stats.chisquare(seen, expected).pvalue > MIN_PVALUE


SHAPES = {
    "two cells, one row": ([6, 5], 1),
    "two cells, half": ([6, 5], 5),
    "two cells, all but one": ([6, 5], 10),
    "two cells, none": ([6, 5], 0),
    "two cells, all": ([6, 5], 11),
    "a hundred rows, few": ([30, 70], 3),
    "a hundred rows, half": ([30, 70], 50),
    "a hundred rows, most": ([30, 70], 97),
    "three cells, two rows": ([4, 1, 7], 2),
    "three cells, half": ([4, 1, 7], 6),
    "three cells, all but two": ([4, 1, 7], 10),
    "four cells, half": ([3, 4, 2, 5], 7),
    "four cells, one empty": ([3, 0, 2, 5], 4),
    "four cells, all but one": ([3, 4, 2, 5], 13),
}


@by_draw
@pytest.mark.parametrize(("totals", "size"), SHAPES.values(), ids=SHAPES)
def test_subsets_are_hypergeometric(draw: Draw, totals: list[int], size: int) -> None:
    drawn = draw(np.array(totals), size, DRAWS, stream(1, 0))
    assert (drawn.sum(axis=1) == size).all()
    assert_distributed(drawn, stats.multivariate_hypergeom(totals, size).pmf, totals)


def test_a_subset_of_one_kind() -> None:
    assert (random_subset(np.array([7]), 3, 5, stream(1, 0)) == 3).all()


@by_draw
@pytest.mark.parametrize("population", [10**9, 10**10, 10**12], ids="{:.0e}".format)
@pytest.mark.parametrize("share", [1e-6, 0.4, 0.999], ids="share {}".format)
def test_large_populations(draw: Draw, population: int, share: float) -> None:
    """Mean n·K/N, variance n·K/N·(1 − K/N)·(N − n)/(N − 1), in 5 standard errors."""
    totals = np.array([population // 10, population // 2, 4 * population // 10])
    size = int(share * population)
    drawn = draw(totals, size, DRAWS, stream(2, 0))
    assert (drawn.sum(axis=1) == size).all()
    assert ((drawn >= 0) & (drawn <= totals)).all()
    for cell, total in enumerate(totals.tolist()):
        p = total / population
        mean, variance = size * p, size * p * (1 - p) * (population - size) / (population - 1)
        away = drawn[:, cell] - mean
        assert abs(away.mean()) < 5 * math.sqrt(variance / DRAWS)
        # the kurtosis is near the normal's 3
        assert abs((away**2).mean() - variance) < 5 * variance * math.sqrt(2 / DRAWS)


CELLS = Cells(
    counts=np.array([[[3, 1, 2, 0], [2, 2, 1, 3]], [[1, 0, 4, 2], [2, 2, 1, 1]]]),
    contributions=np.eye(4),
    block=np.array([0, 0, 1, 1]),
    weights=None,
    order=(0, 1),
)


def test_bootstrap_is_multinomial() -> None:
    drawn = bootstrap_sample(CELLS, DRAWS, stream(6, 0))
    assert drawn.shape == (DRAWS, *CELLS.counts.shape)
    for s, g in np.ndindex(2, 2):
        counts = CELLS.counts[s, g]
        pmf = stats.multinomial(counts.sum(), counts / counts.sum()).pmf
        assert_distributed(drawn[:, s, g], pmf, [int(counts.sum())] * 4)


def test_bootstrap_of_an_empty_stratum_is_empty() -> None:
    counts = np.array([[[0, 0, 0], [2, 3, 0]], [[4, 0, 0], [0, 0, 0]]])
    drawn = bootstrap(counts, 100, stream(7, 0))
    assert drawn.shape == (2, 2, 100, 3)
    assert not drawn[0, 0].any()
    assert not drawn[1, 1].any()
    assert (drawn[0, 1].sum(axis=-1) == 5).all()
    assert not drawn[0, 1, :, 2].any()
    assert (drawn[1, 0] == [4, 0, 0]).all()


@pytest.mark.parametrize("metric", ["selection_rate", "fnr", "f1", "mcc"])
def test_ten_billion_rows(metric: str) -> None:
    """Draws of so many rows are normal, so the p-value is the normal tail of the statistic."""
    n = 10**9
    pair: Pair = ((4 * n, 2 * n, 2 * n + 60_000, 6 * n), (2 * n, n + 70_000, n, 3 * n - 40_000))
    resampling = Resampling(n_resamples=1999, seed=8, n_jobs=1, progress=False)
    plan = Plan.choose(get_metric(metric), "pooled", "auto")
    result = compare(table(pair), plan, ("a", "b"), Options(resampling=resampling))
    normal = 2 * stats.norm.sf(abs(result.statistic))
    assert not result.exact
    assert 0.001 < normal < 0.999
    b = round(result.pvalue * 2000) - 1
    assert stats.binomtest(b, 1999, normal).pvalue > MIN_PVALUE


# -- Seeds ------------------------------------------------------------------------------------

DATA = rows(((20, 11, 9, 15), (17, 20, 12, 9)))


def drawn(**options: Any) -> Any:
    """Return a test that draws, over three blocks."""
    chosen = {"variance": "bootstrap", "n_bootstrap": 5, "n_resamples": 2 * BLOCK + 100, "rng": 1}
    result = permutation_test(**DATA, metric="f1", **{**chosen, **options})
    assert not result.exact
    return result


def draws_of(result: Any) -> NDArray[np.float64]:
    return np.asarray(result.null_distribution)


def test_blocks_have_streams_of_their_own() -> None:
    result = drawn(variance="fast_bootstrap")
    blocks = [draws_of(result)[start : start + 100] for start in (0, BLOCK, 2 * BLOCK)]
    assert all((a != b).any() for a, b in itertools.combinations(blocks, 2))


def test_more_draws_begin_with_the_same() -> None:
    few, many = drawn(n_resamples=BLOCK), drawn(n_resamples=2 * BLOCK)
    assert (draws_of(many)[:BLOCK] == draws_of(few)).all()
