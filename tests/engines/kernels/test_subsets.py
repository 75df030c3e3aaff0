"""Random subsets: every subset of the wanted size equally likely, in every lane and block.

Seeds are fixed. A chi-square test fails a right sampler once in 10,000 seeds, a bound of five
standard deviations once in 1,700,000 for each number compared.
"""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from fairperm.engines.kernels import subsets
from fairperm.engines.kernels.subsets import (
    SMALL_BLOCK,
    lane_bits,
    random_subsets,
    same_in_all_lanes,
)
from tests.support.kernel_runs import seeded

THINNED, BY_UNIT = 0, SMALL_BLOCK  # the largest block that is filled unit by unit


def equal_blocks(size: int, wanted: int, blocks: int, seed: int, method: int) -> NDArray[np.bool_]:
    """Return ``64 * blocks`` subsets of ``size`` units, a row each."""
    words = subsets._fill(np.full(blocks, size), np.full(blocks, wanted), seeded(seed), method)
    return lane_bits(words).reshape(-1, size)


@pytest.mark.parametrize("method", [THINNED, BY_UNIT])
@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        *[(6, wanted) for wanted in (1, 3, 4)],
        (8, 7),
        (2, 1),
        (3, 2),
        (40, 38),
        (64, 1),
    ],
)
def test_every_subset_is_equally_likely(size: int, wanted: int, method: int) -> None:
    subsets = equal_blocks(size, wanted, 4000, seed=size * 100 + wanted, method=method)
    assert_uniform(subsets, wanted)


@pytest.mark.parametrize("wanted", [1, 299])
def test_probabilities_below_the_resolution_of_thinning(wanted: int) -> None:
    # 1/300 < 1/256: thinning starts from nobody (or everybody), corrections do all the work.
    assert_uniform(equal_blocks(300, wanted, 4000, seed=wanted, method=THINNED), wanted)


def assert_uniform(subsets: NDArray[np.bool_], wanted: int) -> None:
    """Compare how often each subset was drawn with the uniform distribution."""
    draws, size = subsets.shape
    assert draws >= 200_000
    assert (subsets.sum(axis=1) == wanted).all()
    few = subsets if 2 * wanted <= size else ~subsets
    chosen = np.nonzero(few)[1].reshape(draws, -1)
    number = {subset: i for i, subset in enumerate(combinations(range(size), chosen.shape[1]))}
    distinct, times = np.unique(chosen, axis=0, return_counts=True)
    observed = np.zeros(comb(size, wanted))
    observed[[number[tuple(subset)] for subset in distinct]] = times
    expected = draws / observed.size
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, observed.size - 1) > 1e-4


def test_the_chi_square_test_sees_a_small_bias() -> None:
    subsets = equal_blocks(6, 3, 4000, seed=1, method=BY_UNIT)
    subsets[:2000] = subsets[0]  # 0.8 % of the draws are one subset
    with pytest.raises(AssertionError, match="assert"):
        assert_uniform(subsets, 3)


@pytest.mark.parametrize("wanted", [7, 300, 500, 877, 998])
def test_halves_and_pairs_of_large_blocks_are_hypergeometric(wanted: int) -> None:
    n = 1000
    subsets = equal_blocks(n, wanted, 400, seed=wanted, method=THINNED)
    draws = len(subsets)

    share = wanted / n
    half = subsets[:, : n // 2].sum(axis=1)
    variance = share * (1 - share) * n**2 / (n - 1) / 4  # hypergeometric
    z = (half - wanted / 2) / np.sqrt(variance)
    assert abs(z.mean()) < 5 / np.sqrt(draws)
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / draws)  # its kurtosis is at most 3

    pairs = n // 2  # disjoint pairs of neighbours; how many lie in the subset
    both = (subsets[:, 0::2] & subsets[:, 1::2]).sum(axis=1)
    two, four = falling_share(wanted, n, 2), falling_share(wanted, n, 4)
    sd = np.sqrt(pairs * two + pairs * (pairs - 1) * four - (pairs * two) ** 2)
    assert abs(both.mean() - pairs * two) < 5 * sd / np.sqrt(draws)

    inclusion = subsets.mean(axis=0)  # of every unit
    sd = np.sqrt(share * (1 - share) / draws)
    assert np.abs(inclusion - share).max() < 5 * sd


def falling_share(wanted: int, n: int, k: int) -> float:
    """Return the probability that k given units are all in the subset."""
    return float(np.prod([(wanted - i) / (n - i) for i in range(k)]))


def test_lanes_are_independent() -> None:
    n, wanted = 20_000, 6_000
    bits = lane_bits(random_subsets(np.array([n]), np.array([wanted]), seeded(3)))
    overlap = (bits.astype(np.float64) @ bits.T)[np.triu_indices(64, 1)]
    share = wanted / n
    variance = wanted * share * (1 - share) * (n - wanted) / (n - 1)  # hypergeometric
    z = (overlap - wanted * share) / np.sqrt(variance)
    assert np.abs(z).max() < 5
    # Overlaps are independent in pairs, so that z² (variance 2) averages as independent ones do.
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / z.size)


def test_totals_are_exact_in_every_block_and_lane() -> None:
    rng = np.random.default_rng(4)
    sizes = np.concatenate(
        [rng.integers(0, 5, 300), rng.integers(5, 700, 60), [64, 65, 2040, 2041, 2047, 10_000, 0]]
    )
    wanted = rng.integers(0, sizes + 1)
    wanted[:3], wanted[-6:-1] = 0, [65, 1, 2040, 2047, 9_999]
    assert (wanted <= sizes).all()
    bits = lane_bits(random_subsets(sizes, wanted, seeded(4)))
    ends = np.cumsum(sizes)
    for b, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        assert (bits[:, end - size : end].sum(axis=1) == wanted[b]).all()


def test_blocks_are_independent() -> None:
    # Both of two neighbouring blocks choose their first unit: 1/4 of 64 x 2000 pairs of blocks.
    first = equal_blocks(2, 1, 4000, seed=5, method=BY_UNIT)[:, 0].reshape(64, 2000, 2)
    draws = first[..., 0].size
    assert abs(first.all(axis=-1).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / draws)


def test_a_stream_gives_its_words_and_no_others() -> None:
    sizes, wanted = np.array([500, 30]), np.array([200, 10])
    state = seeded(6)
    words = random_subsets(sizes, wanted, state)
    np.testing.assert_array_equal(words, random_subsets(sizes, wanted, state))
    np.testing.assert_array_equal(state, seeded(6))
    assert np.mean(words == random_subsets(sizes, wanted, seeded(7))) < 0.01


def test_the_generator_is_xoshiro256plusplus() -> None:
    # The first words from the state 1, 2, 3, 4: the test vector of Rust's rand_xoshiro, from the
    # authors' C code.
    state = np.repeat(np.arange(1, 5, dtype=np.uint64)[:, None], 8, axis=1)
    pool = np.empty(80, np.uint64)
    subsets._refill(state, pool)
    expected = [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
        14011001112246962877,
        12406186145184390807,
        15849039046786891736,
        10450023813501588000,
    ]
    for stream in range(8):
        assert pool[stream::8].tolist() == expected


def test_words_of_a_given_group_and_back() -> None:
    in_a = np.array([True, False, True])
    np.testing.assert_array_equal(
        lane_bits(same_in_all_lanes(in_a)), np.broadcast_to(in_a, (64, 3))
    )
    assert lane_bits(np.array([5], np.uint64))[:, 0].nonzero()[0].tolist() == [0, 2]


def test_nobody_to_choose_from() -> None:
    none = np.array([], np.int64)
    assert random_subsets(none, none, seeded(10)).size == 0
