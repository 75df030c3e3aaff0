"""The unconditional test: scipy's exact tests, all tables of two samples, and its largest size.

Sizes are sums over all tables at many rates, bounded between them as the test itself bounds
probabilities; the bound is checked by itself on a far finer grid.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import xlogy
from scipy.stats import barnard_exact, binom, boschloo_exact, hypergeom, norm

from fairperm.inference import unconditional
from fairperm.inference.unconditional import TwoBinomials

Array = NDArray[np.float64]
ALTERNATIVES = ("two-sided", "greater", "less")
LARGER = [
    *((61, 61), (70, 70), (80, 20), (100, 100), (120, 15), (160, 40), (20, 200), (60, 300)),
    *((5, 400), (2, 500), (1, 300), (150, 150), (90, 110), (33, 250), (75, 150), (10, 350)),
    *((45, 180), (128, 64), (12, 144), (200, 50)),
]


def statistics(m: int, n: int) -> Array:
    """Return z of all tables: z² = (p − q)² / (π(1 − π)(1/m + 1/n)) with the pooled rate π."""
    a, b = np.arange(m + 1)[:, None], np.arange(n + 1)
    rate = (a + b) / (m + n)
    error = np.sqrt(rate * (1 - rate) * (1 / m + 1 / n))
    return np.where(error > 0, (a / m - b / n) / np.where(error > 0, error, 1), 0.0)


def is_extreme(z: Array, observed: float, alternative: str) -> NDArray[np.bool_]:
    if alternative == "two-sided":
        return np.abs(z) >= abs(observed) - 1e-10
    sign = 1 if alternative == "greater" else -1
    return sign * z >= sign * observed - 1e-10


def probabilities(chosen: Array, rates: Array) -> Array:
    """Return the probability of the chosen tables at each rate, by summing them all."""
    m, n = chosen.shape[0] - 1, chosen.shape[1] - 1
    first = binom.pmf(np.arange(m + 1), m, rates[:, None])
    second = binom.pmf(np.arange(n + 1), n, rates[:, None])
    return np.asarray(np.einsum("ra,ab,rb->r", first, chosen, second, optimize=True))


def largest(chosen: NDArray[np.bool_]) -> float:
    """Return the largest probability of the chosen tables over all rates, bounded between rates.

    The logarithm of the probability, plus N·log(1 + e^θ), is convex in the log-odds θ of the rate.
    """
    n = sum(chosen.shape) - 2
    rates = np.sin(np.linspace(0, math.pi / 2, 100 * math.isqrt(n) + 202)[1:-1]) ** 2
    found = probabilities(chosen.astype(float), rates)
    steps = np.diff(np.log(rates) - np.log1p(-rates))
    widest = (rates * (1 - rates)).clip(max=0.25)
    rise = np.exp(n * np.maximum(widest[1:], widest[:-1]) * 1.0001 * steps**2 / 8)
    near_ends = 1 - (1 - rates[0]) ** n  # neither no success nor only successes are ever rejected
    return float(max((np.maximum(found[1:], found[:-1]) * rise).max(), near_ends))


def pvalues(m: int, n: int, alternative: str = "two-sided") -> Array:
    found = np.ones((m + 1, n + 1))
    for a in range(m + 1):
        for b in range(n + 1):
            one = TwoBinomials(m, n, a + b)
            found[a, b] = one.probability(one.statistic(a), alternative)
    return found


@pytest.mark.parametrize(
    ("m", "n"),
    [
        (1, 1),
        (2, 5),
        (5, 3),
        *(pytest.param(*one, marks=pytest.mark.validate) for one in ((9, 9), (4, 21))),
    ],
)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_pvalue_is_the_largest_probability_of_all_extreme_tables(
    m: int, n: int, alternative: str
) -> None:
    z, found = statistics(m, n), pvalues(m, n, alternative)
    for (a, b), p in np.ndenumerate(found):
        successes, total = a + b, m + n
        if successes in {0, total} or (alternative == "two-sided" and z[a, b] == 0):
            assert p == 1
            continue
        extreme = is_extreme(z, float(z[a, b]), alternative).astype(float)
        expected = smallest_alpha(extreme, a + b)
        assert p == pytest.approx(min(1, expected), rel=2e-3)


def smallest_alpha(extreme: Array, successes: int) -> float:
    """Return the smallest α that is at least the largest probability in its interval of rates."""
    failures = sum(extreme.shape) - 2 - successes
    rates = np.linspace(1e-6, 1 - 1e-6, 4001)
    found = probabilities(extreme, rates)

    # Chernoff: N times the divergence is beyond log(2/γ) with probability γ at most
    divergence = xlogy(successes, successes / (successes + failures) / rates) + xlogy(
        failures, failures / (successes + failures) / (1 - rates)
    )

    def excess(alpha: float) -> float:
        inside = divergence <= math.log(2 / (1e-3 * alpha))
        return float(found[inside].max() / (1 - 1e-3) - alpha)

    return float(brentq(excess, 1e-12, 1.01, rtol=1e-4))


@pytest.mark.parametrize("successes", [1, 3, 20, 72])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_pvalue_falls_with_the_statistic(successes: int, alternative: str) -> None:
    one, sign = TwoBinomials(15, 60, successes), -1 if alternative == "less" else 1
    p = [one.probability(sign * z, alternative) for z in np.linspace(0, 6, 61)]
    assert all(later <= sooner * (1 + 1e-5) for sooner, later in itertools.pairwise(p))


@pytest.fixture
def without_interval(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Search all rates, as scipy does, instead of an interval."""
    monkeypatch.setattr(unconditional, "rate_interval", lambda *_: (1e-9, 1 - 1e-9))
    monkeypatch.setattr(unconditional, "SHARE", 1e-300)
    unconditional._pvalue.cache_clear()
    yield
    unconditional._pvalue.cache_clear()


def check_against_scipy(m: int, n: int, a: int, b: int, pvalue: float) -> None:
    """One-sided. Scipy's maximum is searched for; ours is bounded from above, within 0.01 %."""
    one = TwoBinomials(m, n, a + b)
    assert pvalue * (1 - 1e-6) <= one.probability(one.statistic(a), "greater") <= pvalue * 1.0001


SCIPYS = [(3, 4), (12, 12), (20, 7), (50, 50), (35, 18), (49, 50), (7, 43)]


@pytest.mark.validate
@pytest.mark.usefixtures("without_interval")
@pytest.mark.parametrize(("m", "n"), SCIPYS)
def test_without_an_interval_it_is_barnards(m: int, n: int) -> None:
    rng = np.random.default_rng(m * n)
    for a, b in zip(rng.integers(0, m + 1, 12), rng.integers(0, n + 1, 12), strict=True):
        if a + b not in {0, m + n}:
            table = [[a, b], [m - a, n - b]]
            theirs = barnard_exact(table, alternative="greater", pooled=True, n=512)
            check_against_scipy(m, n, int(a), int(b), theirs.pvalue)


@pytest.mark.validate
@pytest.mark.usefixtures("without_interval")
@pytest.mark.parametrize(("m", "n"), SCIPYS)
def test_without_an_interval_it_is_boschloos_where_both_order_alike(m: int, n: int) -> None:
    """Boschloo orders tables by Fisher's p-value: compare where the same tables are extreme."""
    z = statistics(m, n)
    a, b = np.indices(z.shape)
    fisher = hypergeom.sf(a - 1, m + n, a + b, m)
    alike = [
        (int(one), int(other))
        for one, other in np.argwhere(z > 0)
        if np.array_equal(
            is_extreme(z, float(z[one, other]), "greater"),
            fisher <= fisher[one, other] * (1 + 1e-9),
        )
    ]
    assert alike
    for one, other in alike[:: math.ceil(len(alike) / 6)]:
        table = [[one, other], [m - one, n - other]]
        theirs = boschloo_exact(table, alternative="greater", n=512)
        check_against_scipy(m, n, one, other, theirs.pvalue)


@pytest.mark.parametrize(("m", "n", "a", "b"), [(11, 23, 5, 4), (30, 300, 5, 20), (40, 40, 3, 9)])
def test_bound_between_rates_is_above_all_of_them(m: int, n: int, a: int, b: int) -> None:
    """The p-value is the largest of the smaller of two curves, on a far finer grid."""
    one, share = TwoBinomials(m, n, a + b), (a + b) / (m + n)
    z = statistics(m, n)
    rates = np.linspace(1e-4, 0.6, 10_001)
    level = probabilities(is_extreme(z, float(z[a, b]), "two-sided").astype(float), rates)
    divergence = xlogy(share, share / rates) + xlogy(1 - share, (1 - share) / (1 - rates))
    most = 2 * np.exp(-(m + n) * divergence) / 1e-3
    truth = np.minimum(level / (1 - 1e-3), most).max()
    assert truth <= one.probability(one.statistic(a), "two-sided") <= truth * 1.0001


@pytest.mark.parametrize(("m", "n", "a", "b"), [(7, 3, 2, 3), (30, 300, 9, 40), (5, 5, 1, 4)])
def test_groups_and_outcomes_may_be_exchanged(m: int, n: int, a: int, b: int) -> None:
    one, swapped, failures = (
        TwoBinomials(m, n, a + b),
        TwoBinomials(n, m, a + b),
        TwoBinomials(m, n, m + n - a - b),
    )
    z, mirrored = one.statistic(a), {"greater": "less", "less": "greater"}
    for alternative in ALTERNATIVES:
        p = one.probability(z, alternative)
        other = mirrored.get(alternative, alternative)
        assert swapped.probability(-z, other) == failures.probability(-z, other) == p
        critical = one.critical_distance(0.05, alternative)
        for turned in (swapped, failures):
            assert turned.critical_distance(0.05, other) == critical


def test_far_tails_keep_their_digits() -> None:
    one = TwoBinomials(200, 200, 200)
    # all against none: one table each way, at the rate ½ that the data suggest
    assert one.probability(one.statistic(200), "two-sided") == pytest.approx(2 * 0.5**400, rel=3e-3)
    assert 0 < TwoBinomials(5000, 5000, 5000).probability(100.0, "two-sided") < 1e-300


def compare_methods(
    sizes: tuple[int, int], rate: float, z: float, alternative: str, patch: pytest.MonkeyPatch
) -> float:
    """Return how far the p-value near z is from the one of summed probabilities, as a share."""
    m, n = sizes
    successes, direction = round(rate * (m + n)), -1 if alternative == "less" else 1
    one = TwoBinomials(m, n, successes)
    spread = math.sqrt(successes * (1 - rate) * m * n) / (m + n)
    statistic = one.statistic(round(rate * m + direction * z * spread))
    found = []
    for most in (unconditional._MAX_COUNTS, 1 << 15):
        patch.setattr(unconditional, "_MAX_COUNTS", most)
        unconditional._pvalue.cache_clear()
        found.append(one.probability(statistic, alternative))
    patch.undo()
    unconditional._pvalue.cache_clear()
    assert found[0] != found[1]  # another method was used
    return found[0] / found[1] - 1


@pytest.mark.parametrize(
    ("z", "sizes", "most"),
    [
        (2.0, (675_000, 987_800, 9_795_000, 135_450), 0.01),
        pytest.param(3.3, (533_700, 814_950, 8_075_000, 114_750), 0.02, marks=pytest.mark.validate),
        pytest.param(4.7, (405_500, 644_500, 6_385_000, 93_200), 0.04, marks=pytest.mark.validate),
    ],
)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_large_samples_do_not_jump_where_the_normal_limit_begins(
    z: float,
    sizes: tuple[int, ...],
    most: float,
    alternative: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Just beyond the border: one-sided p-values of unequal groups depend on their skewness."""
    designs = ((1, 0.01), (10, 0.01), (10, 0.001), (100, 0.1))
    for m, (times, rate) in zip(sizes, designs, strict=True):
        excess = compare_methods((m, times * m), rate, z, alternative, monkeypatch)
        assert -0.005 < excess < most, (m, times, rate)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_a_large_group_does_not_jump_where_its_tails_become_normal(
    alternative: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sizes, rate, z in (((30, 28_500), 0.5, 2.0), ((10_000, 35_000), 0.5, 3.3)):
        assert abs(compare_methods(sizes, rate, z, alternative, monkeypatch)) < 0.001


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_critical_value_of_large_samples_has_the_pvalue_alpha(
    alternative: str, alpha: float
) -> None:
    one, sign = TwoBinomials(10**7, 10**8, 10**7), -1 if alternative == "less" else 1
    p = one.probability(sign * one.critical_distance(alpha, alternative), alternative)
    assert p == pytest.approx(alpha, rel=1e-4)


@pytest.mark.parametrize(("m", "n"), [(20, 20), (15, 60), (45, 9)])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_critical_value_is_where_the_pvalue_falls_to_alpha(
    m: int, n: int, alternative: str
) -> None:
    sign = -1 if alternative == "less" else 1
    for successes in (1, 4, (m + n) // 2, m + n - 3):
        one = TwoBinomials(m, n, successes)
        critical = one.critical_distance(0.05, alternative)
        assert one.probability(sign * (critical + 2e-3), alternative) <= 0.05 * 1.001
        assert one.probability(sign * (critical - 0.15), alternative) > 0.05


@pytest.mark.parametrize(
    ("m", "n", "successes", "alternative"),
    [(19, 498, 13, "two-sided"), (7, 48, 10, "greater"), (145, 5, 107, "greater")],
)
def test_critical_value_is_found_where_pvalues_jump(
    m: int, n: int, successes: int, alternative: str
) -> None:
    """Few tables have statistics near the level: a small change of z reaches the same tables."""
    one = TwoBinomials(m, n, successes)
    critical = one.critical_distance(0.05, alternative)
    assert one.probability(critical + 2e-3, alternative) <= 0.05
    assert one.probability(critical - 2e-3, alternative) > 0.05


def find_rejected(m: int, n: int, alpha: float) -> NDArray[np.bool_]:
    """Return the tables with p ≤ alpha. Only those near the border of the z test are in doubt."""
    z = np.abs(statistics(m, n))
    rejected = np.zeros(z.shape, bool)
    for total in range(1, m + n):
        a = np.arange(max(0, total - n), min(total, m) + 1)
        one = TwoBinomials(m, n, total)
        by_distance = a[np.argsort(z[a, total - a], kind="stable")]
        # the p-value falls with |z|: halve the tables until the border is found
        low, high = 0, len(a)
        while low < high:
            middle = (low + high) // 2
            p = one.probability(one.statistic(int(by_distance[middle])), "two-sided")
            low, high = (low, middle) if p <= alpha else (middle + 1, high)
        rejected[by_distance[low:], total - by_distance[low:]] = True
    return rejected


def largest_size(m: int, n: int, alpha: float) -> float:
    return largest(find_rejected(m, n, alpha))


@pytest.mark.parametrize(("m", "n"), [(1, 9), (8, 8), (13, 4)])
def test_size_is_below_the_level(m: int, n: int) -> None:
    assert all(largest_size(m, n, alpha) <= alpha for alpha in (0.01, 0.05, 0.1))


def test_size_of_the_normal_test_is_above_the_level() -> None:
    assert largest(np.abs(statistics(20, 200)) >= 1.96) > 0.05


LONG = pytest.mark.validate


@pytest.mark.parametrize(
    ("m", "n", "first", "second", "power"),
    [
        (30, 30, 0.1, 0.2, 0.167),
        pytest.param(100, 100, 0.1, 0.2, 0.502, marks=LONG),
        pytest.param(160, 40, 0.2, 0.1, 0.293, marks=LONG),
        pytest.param(160, 40, 0.1, 0.2, 0.422, marks=LONG),
        pytest.param(20, 200, 0.1, 0.2, 0.126, marks=LONG),
        pytest.param(20, 200, 0.2, 0.1, 0.307, marks=LONG),
        pytest.param(60, 300, 0.3, 0.45, 0.577, marks=LONG),
    ],
)
def test_power_is_that_of_the_best_ordering_by_z(
    m: int, n: int, first: float, second: float, power: float
) -> None:
    """The values were computed by other code, on a grid of rates with a fixed γ of 10⁻⁴."""
    table = binom.pmf(np.arange(m + 1), m, first)[:, None] * binom.pmf(np.arange(n + 1), n, second)
    assert table[find_rejected(m, n, 0.05)].sum() == pytest.approx(power, abs=0.0015)


@pytest.mark.validate
@pytest.mark.parametrize(("m", "n"), [*((m, 7 * m % 60 + 1) for m in range(1, 61)), *LARGER[::2]])
def test_size_of_many_pairs_is_below_the_level(m: int, n: int) -> None:
    assert largest_size(m, n, 0.05) <= 0.05


def fisher_pvalues(m: int, n: int) -> Array:
    """Return the p-values of Fisher's test, ordered by the gap."""
    pvalues = np.ones((m + 1, n + 1))
    for total in range(m + n + 1):
        a = np.arange(max(0, total - n), min(total, m) + 1)
        gap, probability = np.abs(a / m - (total - a) / n), hypergeom.pmf(a, m + n, total, m)
        pvalues[a, total - a] = (gap >= gap[:, None] - 1e-10) @ probability
    return pvalues


@pytest.mark.validate
def test_sizes_and_powers_of_the_page_which_test() -> None:
    """Its paragraph on z and Fisher, with the numbers in the order of the text."""
    page = Path(__file__).parents[2] / "docs" / "which-test.md"
    stated = page.read_text().partition("**Why not the z test")[2].partition("\n\n")[0]
    powers = []
    for m, n, first, second in ((30, 30, 0.1, 0.2), (160, 40, 0.2, 0.1), (20, 200, 0.2, 0.1)):
        fisher, default = fisher_pvalues(m, n) <= 0.05 + 1e-12, find_rejected(m, n, 0.05)
        z = np.abs(statistics(m, n)) >= norm.isf(0.025)
        assert max(largest(fisher), largest(default)) <= 0.05 < largest(z)
        chance = binom.pmf(np.arange(m + 1), m, first)[:, None] * binom.pmf(
            np.arange(n + 1), n, second
        )
        powers.append([chance[one].sum() for one in (default, fisher)])
        assert powers[-1][1] < powers[-1][0]
    assert [float(one) for one in re.findall(r"0\.\d{3}", stated)] == pytest.approx(
        powers[0], abs=6e-4
    )
