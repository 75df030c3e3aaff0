"""AUC and DeLong's variance by lane, against their definitions computed pair by pair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairperm.engines.kernels.auc import AucLayout, auc_by_lane
from fairperm.engines.kernels.subsets import lane_bits, random_subsets, same_in_all_lanes
from tests.support.examples import examples
from tests.support.kernel_runs import seeded

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def by_pairs(scores: Floats, positive: Bools) -> tuple[float, float]:
    """Return AUC and DeLong variance from the matrix of all positive-negative pairs."""
    above, below = scores[positive][:, None], scores[~positive][None, :]
    m, n = above.size, below.size
    if m == 0 or n == 0:
        return np.nan, np.nan
    wins = (above > below) + 0.5 * (above == below)
    if m == 1 or n == 1:
        return wins.mean(), np.nan
    variance = wins.mean(axis=1).var(ddof=1) / m + wins.mean(axis=0).var(ddof=1) / n
    return wins.mean(), variance


def assert_matches_pairs(
    scores: Floats,
    positive: Bools,
    stratum: NDArray[np.int64],
    n_strata: int,
    layout: AucLayout,
    words: NDArray[np.uint64],
) -> None:
    value, variance = auc_by_lane(words, layout, layout.centres(0.4))
    assert value.shape == variance.shape == (64, n_strata, 2)
    expected = np.empty((2, *value.shape))
    for lane, bits in enumerate(lane_bits(words)):
        in_a = np.empty_like(bits)
        in_a[layout.order] = bits
        for s in range(n_strata):
            for g, group in enumerate((in_a, ~in_a)):
                rows = group & (stratum == s)
                expected[:, lane, s, g] = by_pairs(scores[rows], positive[rows])
    np.testing.assert_allclose(value, expected[0], rtol=1e-12, atol=0)
    # Where all structural components are equal, the definition itself rounds: to about 1e-32.
    np.testing.assert_allclose(variance, expected[1], rtol=1e-12, atol=1e-30)


def of_one_stratum(scores: Floats, positive: Bools) -> AucLayout:
    return AucLayout.build(scores, positive, np.zeros(scores.size, np.uint8), 1)


def permuted(layout: AucLayout, in_a: Bools, seed: int) -> NDArray[np.uint64]:
    block = np.repeat(np.arange(layout.sizes.size), layout.sizes)
    wanted = np.bincount(block[in_a[layout.order]], minlength=layout.sizes.size)
    return random_subsets(layout.sizes, wanted, seeded(seed))


@pytest.mark.parametrize("within_label", [False, True])
@pytest.mark.parametrize("n_strata", [1, 4])
@pytest.mark.parametrize("decimals", [None, 1, 0, -5], ids=["untied", "some", "many", "constant"])
def test_observed_and_permuted_lanes(
    decimals: int | None, n_strata: int, within_label: bool
) -> None:
    rng = np.random.default_rng(1)
    n = 250
    positive = rng.random(n) < 0.4
    scores = rng.normal(size=n) + positive
    if decimals is not None:
        scores = scores.round(decimals)
    stratum = rng.integers(0, n_strata, n)
    in_a = rng.random(n) < np.where(positive, 0.2, 0.6)
    layout = AucLayout.build(scores, positive, stratum, n_strata, within_label=within_label)
    for words in (permuted(layout, in_a, 1), same_in_all_lanes(in_a[layout.order])):
        assert_matches_pairs(scores, positive, stratum, n_strata, layout, words)


@st.composite
def samples(draw: st.DrawFn) -> tuple[Floats, Bools, NDArray[np.int64], NDArray[np.uint64]]:
    n = draw(st.integers(0, 25))

    def column(values: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(values, min_size=n, max_size=n))

    level = draw(st.sampled_from([st.integers(-2, 2), st.floats(-1e300, 1e300)]))
    return (
        np.array(column(level), np.float64),
        np.array(column(st.booleans()), np.bool_),
        np.array(column(st.integers(0, 2)), np.int64),
        np.array(column(st.integers(0, 2**64 - 1)), np.uint64),
    )


@examples(60)
@given(samples(), st.booleans())
def test_any_words(
    sample: tuple[Floats, Bools, NDArray[np.int64], NDArray[np.uint64]], within_label: bool
) -> None:
    # Lanes of different sizes, empty groups, empty strata, one label only.
    scores, positive, stratum, words = sample
    layout = AucLayout.build(scores, positive, stratum, 3, within_label=within_label)
    assert_matches_pairs(scores, positive, stratum, 3, layout, words)


@pytest.mark.parametrize("within_label", [False, True])
def test_blocks_and_order(within_label: bool) -> None:
    rng = np.random.default_rng(2)
    positive, stratum = rng.random(99) < 0.5, rng.integers(0, 3, 99)
    layout = AucLayout.build(rng.random(99), positive, stratum, 5, within_label=within_label)
    block = 2 * stratum + positive if within_label else stratum
    n_blocks = 10 if within_label else 5
    assert sorted(layout.order) == list(range(99))
    assert (np.diff(block[layout.order]) >= 0).all()
    np.testing.assert_array_equal(layout.sizes, np.bincount(block, minlength=n_blocks))
    assert layout.positives.sum() == positive.sum()
    assert layout.negatives.sum() == (~positive).sum()


def test_runs_are_as_few_as_can_be() -> None:
    # scores    1  2  2  3  4  4  5  6      one mixed tie (at 2), one tie of positives (at 4)
    # positive  -  -  +  -  +  +  +  -
    scores = np.array([1.0, 2, 2, 3, 4, 4, 5, 6])
    positive = np.array([0, 0, 1, 0, 1, 1, 1, 0], np.bool_)
    layout = of_one_stratum(scores, positive)
    assert layout.positives.tolist() == [0, 1, 0, 3, 0]
    assert layout.negatives.tolist() == [1, 1, 1, 0, 1]
    assert layout.first_run.tolist() == [0, 5]


def test_labels_by_score_and_where_both_tie() -> None:
    """Two strata: 1 is a tie of both labels, 2 and 3 a run of one; the second is one tie."""
    scores = np.array([1, 3, 1, 2, 1, 0, 3, 5, 5.0])
    positive = np.array([1, 1, 0, 1, 0, 0, 1, 1, 0], bool)
    stratum = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1], np.uint8)
    labels, tied = AucLayout.build(scores, positive, stratum, 2).labels()
    assert labels.tolist() == [0, 0, 0, 1, 1, 1, 1, 0, 1]
    assert tied.tolist() == [[1, 3, 4], [7, 8, 9]]


def test_perfect_separation_has_no_variance_at_all() -> None:
    rng = np.random.default_rng(3)
    positive = rng.random(100_000) < 0.3
    layout = of_one_stratum(positive + rng.random(positive.size) / 2, positive)
    value, variance = auc_by_lane(
        permuted(layout, rng.random(positive.size) < 0.4, 3), layout, layout.centres(0.4)
    )
    assert (value == 1).all()
    assert (variance == 0).all()


@pytest.mark.parametrize("separation", [1, 5.3])
def test_large_samples_agree_with_whole_number_arithmetic(separation: float) -> None:
    # The oracle is the same sums in Python's unlimited integers. The second score is nearly
    # perfect (AUC 0.9999): without centres its variance is off by 1.5e-11 of itself.
    rng = np.random.default_rng(5)
    n = 500_000
    positive = rng.random(n) < 0.5
    scores = rng.normal(size=n) + separation * positive
    layout = of_one_stratum(scores, positive)
    in_a = rng.random(n) < 0.5
    value, variance = auc_by_lane(
        same_in_all_lanes(in_a[layout.order]), layout, layout.centres(float(in_a.mean()))
    )
    for g, group in enumerate((in_a, ~in_a)):
        label = positive[group][np.argsort(scores[group])]
        wins = [int(w) for w in np.cumsum(~label)[label]]
        below = [int(v) for v in np.cumsum(label)[~label]]
        m, k = len(wins), len(below)
        expected = 0.0
        for numbers, others in ((wins, k), (below, m)):
            count = len(numbers)
            deviations = count * sum(w * w for w in numbers) - sum(numbers) ** 2
            expected += deviations / (count**2 * (count - 1) * others**2)
        assert value[7, 0, g] == pytest.approx(sum(wins) / (m * k), rel=1e-15, abs=0)
        assert variance[7, 0, g] == pytest.approx(expected, rel=1e-12, abs=0)


def test_one_positive_has_an_auc_but_no_variance() -> None:
    scores = np.array([0.1, 0.2, 0.3, 0.4])
    positive = np.array([False, True, False, False])
    layout = of_one_stratum(scores, positive)
    value, variance = auc_by_lane(
        same_in_all_lanes(np.ones(4, np.bool_)), layout, layout.centres(1.0)
    )
    assert value[0, 0, 0] == pytest.approx(1 / 3)
    assert np.isnan(variance[0, 0, 0])
    assert np.isnan(value[0, 0, 1])
    assert np.isnan(variance[0, 0, 1])
