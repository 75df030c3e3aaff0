"""Every table's probability, against scipy and against integers of any size."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from fairperm import PermutationTestResult, permutation_test
from fairperm.engines.resampling import enumeration
from fairperm.engines.resampling.blocks import Resampling
from fairperm.engines.resampling.enumeration import enumerate_permutations
from fairperm.engines.sample import Cells
from fairperm.hypothesis_tests.groups import compare
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.metrics import get_metric
from tests.support.helpers import Counts, Pair, rate_rows, rows, table


def sample(*strata: Sequence[Sequence[int]], block: Sequence[int] | None = None) -> Cells:
    """Return counts of two groups as they are; what rows contribute plays no part here."""
    counts = np.array(strata, np.int64)
    cells = counts.shape[-1]
    blocks = np.zeros(cells, np.intp) if block is None else np.array(block)
    return Cells(counts, np.eye(cells), blocks, None, order=(0, 1))


def compared(
    *strata: Pair,
    metric: str = "selection_rate",
    scheme: str = "denominator",
    variance: str | None = "auto",
    alternative: str = "two-sided",
    n_resamples: int = 9999,
    seed: int = 1,
) -> PermutationTestResult:
    rows = table(*strata)
    resampling = Resampling(n_resamples, seed, 1, progress=False)
    options = Options(resampling=resampling, alternative=alternative)
    return compare(rows, Plan.choose(get_metric(metric), scheme, variance), rows.groups, options)


def selected(k_a: int, n_a: int, k_b: int, n_b: int) -> Pair:
    return (n_a - k_a, k_a, 0, 0), (n_b - k_b, k_b, 0, 0)


def exact_tail(k_a: int, n_a: int, k_b: int, n_b: int) -> float:
    """Return P(K ≥ k_a) of the hypergeometric distribution in integers, rounded once."""
    k, n = k_a + k_b, n_a + n_b
    ways = sum(math.comb(k, i) * math.comb(n - k, n_a - i) for i in range(k_a, min(k, n_a) + 1))
    return float(Fraction(ways, math.comb(n, n_a)))


# Among the tables whose tails are skipped, p-values go down to 10⁻²⁰⁰ and below.
LARGE = {
    "p near 1": (480, 2000, 760, 3000),
    "p near 0.05": (540, 2000, 740, 3000),
    "p near 1e-10": (640, 2000, 720, 3000),
    "p near 1e-50": (900, 2000, 720, 3000),
    "p near 1e-200": (1400, 2000, 750, 3000),
    "rare": (25, 2000, 3, 3000),
    "a small group": (12, 20, 500, 4980),
    "all but a few": (1998, 2000, 2950, 3000),
}


@pytest.mark.parametrize("counts", LARGE.values(), ids=LARGE)
def test_skipped_tails_change_no_pvalue(counts: tuple[int, int, int, int]) -> None:
    expected = exact_tail(*counts)
    result = compared(selected(*counts), alternative="greater")
    rounding = 1e-14 * abs(math.log(expected))  # an error relative to the logarithm
    assert result.exact
    assert result.pvalue == pytest.approx(expected, rel=1e-12 + rounding, abs=0)
    assert result.null_probabilities is not None
    assert result.null_probabilities.sum() == pytest.approx(1, abs=1e-12)


def test_tails_are_skipped() -> None:
    """Else the test above would not test what it says."""
    k_a, n_a, k_b, n_b = LARGE["p near 0.05"]
    assert compared(selected(k_a, n_a, k_b, n_b)).n_resamples < min(k_a + k_b, n_a) / 2


@pytest.mark.parametrize("variance", ["score", "wald", None])
@pytest.mark.parametrize("more", [0, 20, 60], ids="{} more".format)
def test_skipped_tails_of_three_cells(variance: str | None, more: int) -> None:
    """Pooled: the sum over all counts of false negatives and true positives, in integers."""
    a, b = (60, 0, 20 + more, 120), (150, 0, 10, 40)
    result = compared(
        (a, b), metric="fnr", scheme="pooled", variance=variance, alternative="symmetric"
    )
    fn, tp, other, n_a = a[2] + b[2], a[3] + b[3], a[0] + b[0], sum(a)
    observed = _size(a[2], a[3], fn, tp, variance)
    ways = 0
    for i in range(min(fn, n_a) + 1):
        for j in range(max(0, n_a - other - i), min(tp, n_a - i) + 1):
            size = _size(i, j, fn, tp, variance)
            if math.isnan(size) or size >= observed - 1e-9:
                ways += math.comb(fn, i) * math.comb(tp, j) * math.comb(other, n_a - i - j)
    expected = float(Fraction(ways, math.comb(fn + tp + other, n_a)))
    assert result.exact
    assert result.pvalue == pytest.approx(expected, rel=1e-12, abs=0)


def _size(fn_a: int, tp_a: int, fn: int, tp: int, variance: str | None) -> float:
    """Return |S| for the false negative rate."""
    k_a, m_a, k_b, m_b = fn_a, fn_a + tp_a, fn - fn_a, fn + tp - fn_a - tp_a
    if m_a == 0 or m_b == 0:
        return math.nan
    gap = abs(k_a / m_a - k_b / m_b)
    if variance is None:
        return gap
    p = fn / (fn + tp)
    wald = k_a * (m_a - k_a) / m_a**3 + k_b * (m_b - k_b) / m_b**3
    v = p * (1 - p) * (1 / m_a + 1 / m_b) if variance == "score" else wald
    return gap / math.sqrt(v) if v else math.inf if gap else 0.0


@pytest.mark.parametrize("k_a", [100_000, 100_400, 102_000], ids="{:,}".format)
def test_a_million_rows(k_a: int) -> None:
    """scipy's logarithms of gamma functions of a million are good to about 1e-9."""
    counts = (k_a, 400_000, 149_800, 600_000)
    scipys = stats.hypergeom(1_000_000, k_a + 149_800, 400_000).sf(k_a - 1)
    result = compared(selected(*counts), alternative="greater")
    assert result.exact
    assert result.pvalue == pytest.approx(scipys, rel=1e-9, abs=0)


STRATA = (
    selected(30, 70, 25, 90),
    selected(12, 20, 40, 80),
    selected(3, 50, 2, 60),
    selected(0, 10, 0, 7),
    selected(22, 40, 11, 30),
)


@pytest.mark.parametrize("more", [0, 20, 35], ids="{} more".format)
def test_convolution_is_exact(more: int) -> None:
    """Against the convolution of the strata's hypergeometric distributions in integers."""
    k_a, n_a, k_b, n_b = 30 + more, 70, 25, 90
    strata = (selected(k_a, n_a, k_b, n_b), *STRATA[1:])
    ways, total = [1], 1
    for a, b in strata:
        k, n, size = a[1] + b[1], sum(a) + sum(b), sum(a)
        stratum = [math.comb(k, i) * math.comb(n - k, size - i) for i in range(size + 1)]
        ways = [
            sum(ways[i] * stratum[j - i] for i in range(len(ways)) if 0 <= j - i <= size)
            for j in range(len(ways) + size)
        ]
        total *= math.comb(n, size)
    expected = float(Fraction(sum(ways[sum(a[1] for a, _ in strata) :]), total))
    result = compared(*strata, alternative="greater")
    assert result.exact
    assert result.pvalue == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("given", [(1.0, 1.0), (1.0, 0.25)], ids=["equal", "unequal"])
def test_given_weights_are_never_summed_up(
    monkeypatch: pytest.MonkeyPatch, given: tuple[float, float]
) -> None:
    """With weights of one's own the gap depends on each stratum's count."""
    monkeypatch.setattr(enumeration, "POINTS_PER_DRAW", 0)
    weights = dict(enumerate(given))
    data = rate_rows((3, 9, 6, 11), (4, 8, 3, 9))
    result = permutation_test(**data, metric="selection_rate", stratum_weights=weights, rng=1)
    assert not result.exact


def test_drawing_where_there_are_too_many_tables() -> None:
    a: Counts = (300, 200, 100, 400)
    assert enumerate_permutations(sample((a, a)), 9999, by_sum=False) is None
    assert not permutation_test(**rows((a, a)), metric="mcc", n_resamples=99, rng=1).exact


@pytest.mark.parametrize("strata", [1, 2])
def test_a_pvalue_is_never_zero(strata: int) -> None:
    result = compared(*[selected(0, 900, 900, 900)] * strata)
    assert result.exact
    assert result.pvalue == sys.float_info.min  # the true one is below 10⁻⁵⁰⁰
