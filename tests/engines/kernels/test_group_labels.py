"""Random groups: every arrangement equally likely; and what the groups add up to, by brute force.

Seeds are fixed. A chi-square test fails a right sampler once in 10,000 seeds, a bound of five
standard deviations once in 1,700,000 for each number compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, chi2

from fairperm.engines.kernels import group_labels
from fairperm.engines.kernels.group_labels import random_groups, words_of_groups
from fairperm.engines.kernels.subsets import lane_bits

Array = NDArray[np.float64]
Groups = NDArray[np.uint8]

DRAWS = 40_000


def drawn_once(sizes: NDArray[np.int64], wanted: NDArray[np.int64], seed: int) -> Groups:
    groups: Groups = random_groups(sizes, wanted, np.array([seed], np.uint64))[0]
    return groups


def equal_blocks(wanted: Sequence[int], blocks: int, seed: int) -> Groups:
    """Return an arrangement of each of many blocks, a row each."""
    sizes = np.full(blocks, sum(wanted))
    groups = drawn_once(sizes, np.tile(wanted, (blocks, 1)), seed)
    return groups.reshape(blocks, -1)


def arrangements(wanted: Sequence[int]) -> NDArray[np.uint8]:
    """Return every arrangement of the labels."""
    labels = np.repeat(np.arange(len(wanted)), wanted).tolist()
    return np.array(sorted(set(permutations(labels))), np.uint8)


def assert_uniform(drawn: Groups, wanted: Sequence[int]) -> None:
    """Compare how often each arrangement was drawn with the uniform distribution."""
    every = arrangements(wanted)
    ways = math.factorial(sum(wanted)) // math.prod(map(math.factorial, wanted))
    assert len(every) == ways
    base = len(wanted) ** np.arange(drawn.shape[1], dtype=np.int64)
    place = np.searchsorted(np.sort(every @ base), drawn @ base)
    observed = np.bincount(place, minlength=ways)
    expected = len(drawn) / ways
    assert expected >= 10
    assert chi2.sf(((observed - expected) ** 2 / expected).sum(), ways - 1) > 1e-4


@pytest.mark.parametrize(
    "wanted",
    [
        (1, 1),
        (3, 1),
        (2, 5),
        (4, 4),
        (1, 1, 1),
        (2, 1, 3),
        (4, 1, 1),
        (2, 2, 3),  # a block of seven: no word of random bytes is used up
        (1, 1, 7),  # of nine: one word, and one byte more
        (1, 2, 5),  # of eight: just one word
        (1, 1, 1, 1),
        (1, 2, 1, 2),
        (1, 1, 1, 4),
        (1, 1, 1, 1, 1),
        (2, 1, 1, 1, 2),
        (0, 2, 0, 3, 1),  # groups that a block has none of
    ],
    ids=str,
)
def test_every_arrangement_is_equally_likely(wanted: tuple[int, ...]) -> None:
    drawn = equal_blocks(wanted, DRAWS, seed=int("".join(map(str, wanted))))
    for group, n in enumerate(wanted):
        assert ((drawn == group).sum(axis=1) == n).all()
    assert_uniform(drawn, wanted)


@pytest.mark.parametrize("wanted", [(1, 1, 298), (298, 1, 1), (1, 299), (1, 0, 0, 99)], ids=str)
def test_shares_below_the_resolution_of_a_byte(wanted: tuple[int, ...]) -> None:
    """1/300 < 1/256: all units start in the largest group, corrections do all the work."""
    n = sum(wanted)
    drawn = equal_blocks(wanted, DRAWS, seed=n)
    single = [g for g, one in enumerate(wanted) if one == 1]
    place = np.stack([(drawn == g).argmax(axis=1) for g in single])
    for where in place:
        assert chi_square_uniform(where, n) > 1e-4
    if len(single) == 2:
        assert (place[0] != place[1]).all()
        between = (place[1] - place[0]) % n  # uniform on 1 to n - 1, whatever the first is
        assert chi_square_uniform(between - 1, n - 1) > 1e-4


def chi_square_uniform(numbers: NDArray[np.integer], n: int) -> float:
    observed = np.bincount(numbers, minlength=n)
    assert len(observed) == n
    expected = len(numbers) / n
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), n - 1))


def test_the_chi_square_test_sees_a_small_bias() -> None:
    wanted = (2, 1, 3)
    drawn = equal_blocks(wanted, DRAWS, seed=1)
    drawn[:600] = drawn[0]  # 1.5 % of the draws are one arrangement
    with pytest.raises(AssertionError, match="assert"):
        assert_uniform(drawn, wanted)


def test_a_correction_that_starts_at_the_front_is_seen() -> None:
    """What would be wrong: units to move are looked for in order, not at random."""
    wanted = np.array([2, 2, 3])
    state, table = np.array([5], np.uint64), np.empty(256, np.uint8)
    group_labels._set_chances(wanted, table)
    drawn = table[np.random.default_rng(5).integers(256, size=(DRAWS, 7))]
    right = drawn.copy()
    for block in right:
        group_labels._correct(block, wanted, state)
    assert_uniform(right, (2, 2, 3))
    for block in drawn:
        missing = wanted - np.bincount(block, minlength=3)
        for i, group in enumerate(block):
            if missing[group] < 0:
                short = int(np.argmax(missing > 0))
                missing[group] += 1
                missing[short] -= 1
                block[i] = short
    with pytest.raises(AssertionError, match="assert"):
        assert_uniform(drawn, (2, 2, 3))


@pytest.mark.parametrize(
    "wanted", [(500, 300, 203), (1, 7, 995), (250, 250, 250, 251), (990, 3, 3, 3, 3)], ids=str
)
def test_large_blocks_are_hypergeometric(wanted: tuple[int, ...]) -> None:
    n, draws = sum(wanted), 10_000
    drawn = equal_blocks(wanted, draws, seed=n)
    half = n // 2
    for group, size in enumerate(wanted):
        mine = drawn == group
        assert (mine.sum(axis=1) == size).all()
        share = size / n
        in_half = mine[:, :half].sum(axis=1)
        variance = size * half / n * (1 - half / n) * (n - size) / (n - 1)
        z = (in_half - half * share) / np.sqrt(variance)
        assert abs(z.mean()) < 5 / np.sqrt(draws)
        assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / draws)  # its kurtosis is at most 3
        times = mine.sum(axis=0)  # that each unit is in the group
        low, high = binom.ppf([1e-5 / n, 1 - 1e-5 / n], draws, share)
        assert low <= times.min()
        assert times.max() <= high
    # disjoint pairs of neighbours of which the first is of one group, the second of another
    for g, h in ((0, 1), (1, 0), (2, 2), (1, 2)):
        both = ((drawn[:, 0 : n - 1 : 2] == g) & (drawn[:, 1:n:2] == h)).sum(axis=1)
        pairs = n // 2
        two = falling([wanted[g], wanted[h]], same=g == h) / (n * (n - 1))
        four = (
            falling([wanted[g]] * 4, same=True)
            if g == h
            else falling([wanted[g]] * 2, same=True) * falling([wanted[h]] * 2, same=True)
        ) / math.prod(range(n - 3, n + 1))
        sd = math.sqrt(pairs * two + pairs * (pairs - 1) * four - (pairs * two) ** 2)
        assert abs(both.mean() - pairs * two) < 5 * sd / math.sqrt(draws) + 1e-12


def falling(sizes: Sequence[int], *, same: bool) -> int:
    """Return in how many ways units of these groups can be named: without repeats if the same."""
    return math.prod(size - i if same else size for i, size in enumerate(sizes))


def test_totals_are_exact_in_every_block() -> None:
    rng = np.random.default_rng(4)
    for n_groups in (2, 3, 17, 254):
        sizes = np.concatenate([rng.integers(1, 9, 60), rng.integers(9, 900, 20), [2048, 2047]])
        wanted = np.stack([rng.multinomial(n, rng.dirichlet(np.ones(n_groups))) for n in sizes])
        groups = drawn_once(sizes, wanted, n_groups)
        block = np.repeat(np.arange(len(sizes)), sizes)
        found = np.zeros_like(wanted)
        np.add.at(found, (block, groups), 1)
        np.testing.assert_array_equal(found, wanted)


def test_blocks_are_independent() -> None:
    """Neighbouring blocks are arranged in all 36 pairs of ways equally often; of all sizes."""
    drawn = equal_blocks((1, 1, 1), 2 * DRAWS, seed=5)
    number = drawn[:, 0] * 2 + (drawn[:, 1] > drawn[:, 2])
    assert chi_square_uniform(number[0::2].astype(np.int64) * 6 + number[1::2], 36) > 1e-4
    sizes, wanted = np.tile([3, 11], DRAWS), np.tile([[1, 2], [4, 7]], (DRAWS, 1))
    both = drawn_once(sizes, wanted, 6).reshape(DRAWS, 14)
    first, second = both[:, :3].argmin(axis=1), both[:, 3:].argmin(axis=1)
    chance = np.outer(np.full(3, 1 / 3), first_of(4, 11)).ravel() * DRAWS
    observed = np.bincount(first * 8 + second, minlength=24)
    assert chi2.sf(((observed - chance) ** 2 / chance).sum(), 23) > 1e-4


def first_of(size: int, n: int) -> Array:
    """Return the chances of where the first unit of a group stands."""
    return np.array([math.comb(n - 1 - i, size - 1) for i in range(n - size + 1)]) / math.comb(
        n, size
    )


def test_draws_of_different_seeds_are_independent() -> None:
    """Seeds come from a generator; even consecutive ones must not give related draws."""
    n, wanted = 3000, np.array([[1000, 700, 1300]])
    drawn = random_groups(np.array([n]), wanted, np.arange(60, dtype=np.uint64))
    for g, size in enumerate(wanted[0]):
        mine = (drawn == g).astype(float)
        overlap = (mine @ mine.T)[np.triu_indices(60, 1)]
        share = size / n
        z = (overlap - size * share) / np.sqrt(size * share * (1 - share) * (n - size) / (n - 1))
        assert np.abs(z).max() < 5
        assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / z.size)


def test_a_seed_gives_its_groups_and_no_others() -> None:
    sizes, wanted = np.array([500, 30]), np.array([[200, 300], [29, 1]])
    seeds = np.array([7, 7, 8], np.uint64)
    once, again, other = random_groups(sizes, wanted, seeds)
    np.testing.assert_array_equal(once, again)
    assert (once != other).any()
    np.testing.assert_array_equal(once, drawn_once(sizes, wanted, 7))  # whatever comes with it
    assert seeds.tolist() == [7, 7, 8]


def test_the_generator_is_splitmix64() -> None:
    """The first words from 1234567: Vigna's C code, as Rosetta Code prints its output."""
    state = np.array([1234567], np.uint64)
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert [int(group_labels._next(state)) for _ in expected] == expected


# -- What groups add up to ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "width", "n_draws"), [(0, 1, 64), (0, 7, 9), (2, 3, 2), (5, 64, 1)]
)
def test_words_of_groups(first: int, width: int, n_draws: int) -> None:
    groups = np.random.default_rng(width).integers(9, size=(n_draws, 200)).astype(np.uint8)
    bits = lane_bits(words_of_groups(groups, first, width))
    for draw, place in np.ndindex(n_draws, width):
        mine = groups[draw] == first + place
        np.testing.assert_array_equal(bits[draw * width + place], mine)
    assert not bits[n_draws * width :].any()
