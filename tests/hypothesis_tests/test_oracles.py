"""Every p-value against oracles written from the definitions, not from fairperm's pieces."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fairperm import (
    FairpermWarning,
    PermutationTestResult,
    UndefinedMetricError,
    permutation_test,
)
from fairperm.data.arguments import Alternative, SchemeName, VarianceName
from fairperm.hypothesis_tests.margins.one_sided import ratio_interval
from tests.support.helpers import (
    CELLS,
    GIVEN_LABEL,
    JOINT,
    OF_RATES,
    OTHERS,
    RATES,
    Counts,
    Pair,
    delta_variance,
    rate,
    rate_rows,
    rows,
    value,
    variance_over_strata,
)

ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "symmetric", "greater", "less")
TIE = 1e-9  # far above rounding, far below any true difference between so few rows


def exactly(pvalue: float) -> object:
    return pytest.approx(pvalue, rel=1e-9, abs=0)


# -- The exact table in section 2.3 of the design, from a prototype that enumerated every split --
# By |S|. FN_A of P_A, FN_B of P_B, n_A, n_B; ties and permutations without positives are extreme.
FIRST: Pair = ((40, 0, 16, 144), (160, 0, 8, 32))
SECOND: Pair = ((40, 0, 5, 55), (250, 0, 12, 38))


@pytest.mark.parametrize(
    ("pair", "scheme", "variance", "expected"),
    [
        pytest.param(FIRST, "pooled", "wald", 0.141686, id="16/160 8/40 pooled wald"),
        pytest.param(FIRST, "pooled", "score", 0.085267, id="16/160 8/40 pooled score"),
        pytest.param(FIRST, "pooled", None, 0.030346, id="16/160 8/40 pooled none"),
        pytest.param(FIRST, "denominator", "score", 0.101629, id="16/160 8/40 denominator"),
        pytest.param(SECOND, "pooled", "wald", 0.048444, id="5/60 12/50 pooled wald"),
        pytest.param(SECOND, "pooled", "score", 0.021339, id="5/60 12/50 pooled score"),
        pytest.param(SECOND, "pooled", None, 0.047805, id="5/60 12/50 pooled none"),
        pytest.param(SECOND, "denominator", "score", 0.033301, id="5/60 12/50 denominator"),
    ],
)
def test_designs_exact_table(
    pair: Pair, scheme: SchemeName, variance: VarianceName, expected: float
) -> None:
    result = permutation_test(
        **rows(pair), metric="fnr", scheme=scheme, variance=variance, alternative="symmetric"
    )
    assert result.exact
    assert result.pvalue == pytest.approx(expected, abs=5e-7)


# -- Brute force: every permutation of the rows' labels ------------------------------------------


def _variance(metric: str, variance: str, a: Counts, b: Counts, *, stratified: bool) -> float:
    """Return the variance of a stratum's gap; of several strata unbiased, NaN if there is none."""
    if variance == "score":
        (k_a, m_a), (k_b, m_b) = rate(metric, a), rate(metric, b)
        n = m_a + m_b
        p = (k_a + k_b) / n
        slope = 2 / (1 + p) ** 2 if metric == "f1_score" else 1.0  # F1 is 2p/(1 + p)
        bias = n / (n - 1) if stratified else 1.0
        return slope**2 * p * (1 - p) * (1 / m_a + 1 / m_b) * bias
    total = 0.0
    for one in (a, b):  # of a rate: wald
        n = _rows_that_count(metric, one)
        if stratified and n == 1:
            return math.nan
        total += delta_variance(metric, one) * (n / (n - 1) if stratified else 1.0)
    return total


def _rows_that_count(metric: str, one: Counts) -> int:
    """Return the number of rows that a metric's variance is made of: the fewest, if of two."""
    if metric in {*RATES, *OF_RATES}:
        return rate(metric, one)[1]
    if metric in GIVEN_LABEL:
        return min(one[0] + one[1], one[2] + one[3])
    return sum(one)


def _mantel_haenszel(metric: str, a: Counts, b: Counts) -> float:
    of_rate = metric in {*RATES, *OF_RATES}
    m_a, m_b = (rate(metric, one)[1] if of_rate else sum(one) for one in (a, b))
    return m_a * m_b / (m_a + m_b) if m_a + m_b else 0.0


def _one_statistic(
    metric: str, variance: str | None, strata: Sequence[Pair], weights: Sequence[float] | None
) -> float:
    if weights is None:
        weights = [_mantel_haenszel(metric, a, b) for a, b in strata]
    used = [(w / sum(weights), pair) for w, pair in zip(weights, strata, strict=True) if w > 0]
    gap = sum(w * (value(metric, a) - value(metric, b)) for w, (a, b) in used)
    if not used or math.isnan(gap):
        return math.nan
    if variance is None:
        return gap
    squared_error = variance_over_strata(
        [w for w, _ in used],
        [value(metric, a) - value(metric, b) for _, (a, b) in used],
        [_variance(metric, variance, a, b, stratified=len(strata) > 1) for _, (a, b) in used],
    )
    if math.isnan(squared_error):
        return math.nan
    if squared_error < 1e-14:
        return 0.0 if abs(gap) < TIE else math.copysign(math.inf, gap)
    return gap / math.sqrt(squared_error)


def _statistic(
    metric: str,
    variance: str | None,
    strata: Sequence[Pair],
    weights: Sequence[float] | None = None,
) -> float:
    if metric not in JOINT:
        return _one_statistic(metric, variance, strata, weights)
    parts = [_one_statistic(part, variance, strata, weights) for part in JOINT[metric]]
    return math.nan if any(map(math.isnan, parts)) else max(map(abs, parts))


def _exchangeable(scheme: str, metric: str) -> list[set[int]]:
    """Return the sets of cells (tn, fp, fn, tp) among which labels are exchanged."""
    if scheme == "pooled":
        return [{0, 1, 2, 3}]
    if scheme == "within_label":
        return [{0, 1}, {2, 3}]
    return [{CELLS.index(cell) for cell in RATES[OF_RATES.get(metric, metric)][1].split()}]


def _splits(pair: Pair, blocks: Iterable[set[int]]) -> Counter[Pair]:
    """Return the tables that exchanging labels inside the blocks makes, and how often each."""
    cell_of = [cell for counts in pair for cell in range(4) for _ in range(counts[cell])]
    in_a = [True] * sum(pair[0]) + [False] * sum(pair[1])
    ways = []
    fixed = set(range(len(cell_of)))
    for block in blocks:
        members = [row for row in fixed if cell_of[row] in block]
        fixed -= set(members)
        ways.append(list(itertools.combinations(members, sum(in_a[row] for row in members))))
    found: Counter[Pair] = Counter()
    for chosen in itertools.product(*ways):
        first = {row for row in fixed if in_a[row]}.union(*chosen)
        found[_table(cell_of, first), _table(cell_of, set(range(len(cell_of))) - first)] += 1
    return found


def _table(cell_of: Sequence[int], members: Iterable[int]) -> Counts:
    n = Counter(cell_of[row] for row in members)
    return n[0], n[1], n[2], n[3]


def _brute_force(
    metric: str,
    scheme: str,
    variance: str | None,
    strata: Sequence[Pair],
    weights: Sequence[float] | None = None,
) -> list[tuple[float, Fraction]]:
    """Return the statistic of every permutation of all strata, with its probability."""
    splits = [_splits(pair, _exchangeable(scheme, metric)) for pair in strata]
    n = math.prod(split.total() for split in splits)
    return [
        (
            _statistic(metric, variance, [table for table, _ in chosen], weights),
            Fraction(math.prod(times for _, times in chosen), n),
        )
        for chosen in itertools.product(*(split.items() for split in splits))
    ]


def _is_by_size(metric: str, scheme: str) -> bool:
    """Whether a two-sided test compares |S|: a joint test, or one that fixes the denominator."""
    if metric in JOINT:
        return True
    if metric not in {*RATES, *OF_RATES}:
        return False
    return _exchangeable("denominator", metric)[0] in _exchangeable(scheme, metric)


def _share_extreme(
    null: Sequence[tuple[float, Fraction]], observed: float, alternative: str
) -> float:
    if alternative == "two-sided":
        return min(1.0, 2 * min(_share_extreme(null, observed, one) for one in ("greater", "less")))

    def size(s: float) -> float:
        return abs(s) if alternative == "symmetric" else s if alternative == "greater" else -s

    return float(sum(p for s, p in null if math.isnan(s) or size(s) >= size(observed) - TIE))


def _pvalues(
    metric: str, strata: Sequence[Pair], **options: Any
) -> Iterator[tuple[PermutationTestResult, bool]]:
    """Yield the test with each alternative, and whether it warned of undefined permutations."""
    for alternative in ALTERNATIVES[:2] if metric in JOINT else ALTERNATIVES:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = permutation_test(
                **rows(*strata), metric=metric, alternative=alternative, **options
            )
        assert all(w.category is FairpermWarning for w in caught)
        yield result, any("undefined" in str(w.message) for w in caught)


def _check(
    metric: str,
    scheme: str,
    variance: str | None,
    strata: Sequence[Pair],
    weights: Mapping[int, float] | None = None,
) -> None:
    given = None if weights is None else [weights[s] for s in range(len(strata))]
    every = strata
    if given is None:
        strata = [pair for pair in strata if _can_be_compared(metric, scheme, pair)]
    observed = _statistic(metric, variance, strata, given)
    if len(strata) > 1 and not math.isfinite(observed):  # no standard error: no test
        with pytest.raises(UndefinedMetricError, match="standard error"):
            next(_pvalues(metric, every, scheme=scheme, variance=variance, stratum_weights=weights))
        return
    null = _brute_force(metric, scheme, variance, strata, given)
    undefined = sum(p for s, p in null if math.isnan(s))
    for result, warned in _pvalues(
        metric, every, scheme=scheme, variance=variance, stratum_weights=weights
    ):
        assert result.exact
        assert result.statistic == pytest.approx(observed, rel=1e-9, abs=1e-12)
        is_centred = metric != "f1_score" or len(strata) == 1
        is_by_size = result.alternative == "two-sided" and _is_by_size(metric, scheme)
        ordering = "symmetric" if is_by_size and is_centred else result.alternative
        assert result.pvalue == exactly(_share_extreme(null, observed, ordering))
        _check_agreement(result)
        assert warned == (undefined > 0.01)
        assert (result.n_undefined > 0) == (undefined > 0)


def _can_be_compared(metric: str, scheme: str, pair: Pair) -> bool:
    """Whether some permutation gives both groups a value, as all do of metrics that are no rate."""
    parts = JOINT.get(metric, [metric])
    if not {*parts} <= {*RATES, *OF_RATES}:
        return True
    splits = _splits(pair, _exchangeable(scheme, metric))
    return any(
        not math.isnan(_one_statistic(part, None, [table], None))
        for part in parts
        for table in splits
    )


def _check_agreement(result: PermutationTestResult) -> None:
    """Assert that the interval excludes 0, and that of the ratio 1, exactly if the test rejects."""
    rejects, (low, high) = result.pvalue <= 0.05, result.confidence_interval
    assert (not low <= 0 <= high) == rejects
    found = ratio_interval(result)
    if found is not None:
        ratio, (low, high) = found
        assert (not low <= 1 <= high) == rejects
        assert low <= ratio <= high


def _small_tables(metric: str, number: int, n_strata: int = 1) -> list[list[Pair]]:
    """Return random tables of 6 to 9 rows (with strata, 4 to 6) in which the metric is defined."""
    rng = random.Random(f"{metric} {n_strata}")
    sizes = (6, 9) if n_strata == 1 else (4, 6)
    found: list[list[Pair]] = []
    while len(found) < number:
        strata = [_random_pair(rng, rng.randint(*sizes)) for _ in range(n_strata)]
        if not math.isnan(_statistic(metric, None, strata)):
            found.append(strata)
    return found


def _random_pair(rng: random.Random, n: int) -> Pair:
    cells = [rng.randrange(4) for _ in range(n)]
    n_a = rng.randint(2, n - 2)
    return _table(cells, range(n_a)), _table(cells, range(n_a, n))


def _cases() -> Iterator[tuple[str, str, str | None]]:
    for metric in (*RATES, *OTHERS, *JOINT):
        schemes = ["pooled"]
        schemes += ["within_label"] if metric in GIVEN_LABEL else []
        schemes += ["denominator"] if metric in {*RATES, *OF_RATES} else []
        closed = ["delta"] if metric in OTHERS else ["score", "wald", "delta"]
        closed += ["score"] if metric in OF_RATES else []
        yield from itertools.product([metric], schemes, [*closed, None])


CASES = list(_cases())


@pytest.mark.parametrize(
    "chosen", [slice(3), pytest.param(slice(3, 8), marks=pytest.mark.validate)]
)
@pytest.mark.parametrize(("metric", "scheme", "variance"), CASES)
def test_every_permutation_of_few_rows(
    metric: str, scheme: str, variance: str | None, chosen: slice
) -> None:
    for strata in _small_tables(metric, number=8)[chosen]:
        _check(metric, scheme, variance, strata)


@pytest.mark.parametrize(("metric", "scheme", "variance"), CASES)
def test_every_permutation_within_strata(metric: str, scheme: str, variance: str | None) -> None:
    for strata in _small_tables(metric, number=2, n_strata=2):
        _check(metric, scheme, variance, strata)


@pytest.mark.validate
@pytest.mark.parametrize(("metric", "scheme", "variance"), CASES)
def test_every_permutation_within_strata_of_given_weight(
    metric: str, scheme: str, variance: str | None
) -> None:
    weights = {0: 0.3, 1: 1.7}
    for strata in _small_tables(metric, number=8, n_strata=2):
        if not math.isnan(_statistic(metric, None, strata, list(weights.values()))):
            _check(metric, scheme, variance, strata, weights)


def test_small_tables_hold_what_is_hard() -> None:
    """The oracle tests above would say little if no table had these."""
    nulls = [
        [s for s, _ in _brute_force(metric, "pooled", "delta", strata)]
        for metric in (*RATES, *OTHERS, *JOINT)
        for strata in _small_tables(metric, number=3)
    ]
    assert sum(any(map(math.isnan, null)) for null in nulls) >= 10
    assert sum(any(map(math.isinf, null)) for null in nulls) >= 10


@pytest.mark.parametrize(
    ("metric", "scheme"),
    [("false_negative_rate", "denominator"), ("false_negative_rate", "within_label")],
)
def test_rows_of_one_label_only(metric: str, scheme: str) -> None:
    _check(metric, scheme, "score", [((0, 0, 1, 3), (0, 0, 3, 1))])


@pytest.mark.filterwarnings("ignore:The standard error of .* is zero")
def test_rounding_is_no_variance() -> None:
    """An F1 of 1 against 0 has no variance, and S = ∞; so has the exchange of both groups."""
    pair = ((0, 0, 0, 11), (0, 5, 6, 0))
    result = permutation_test(**rows(pair), metric="f1", scheme="pooled", variance="delta")
    assert result.exact
    assert result.statistic == math.inf
    assert result.pvalue == exactly(2 / math.comb(22, 11))


# -- Tests of others -----------------------------------------------------------------------------

TABLES = {
    "few": (1, 9, 6, 11),
    "none": (0, 12, 4, 10),
    "all": (15, 15, 9, 14),
    "unequal": (5, 60, 12, 50),
    "many": (480, 5000, 610, 5000),
}  # k_a of n_a, k_b of n_b
by_table = pytest.mark.parametrize("counts", TABLES.values(), ids=TABLES)


@by_table
@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("variance", ["score", "wald", None])
def test_one_sided_is_fishers(
    counts: tuple[int, int, int, int], alternative: Alternative, variance: VarianceName | None
) -> None:
    """For fixed margins every statistic grows with k_a, as in scipy.stats.fisher_exact."""
    k_a, n_a, k_b, n_b = counts
    result = permutation_test(
        **rate_rows(counts),
        metric="selection_rate",
        scheme="denominator",
        alternative=alternative,
        variance=variance,
    )
    fisher = stats.fisher_exact([[k_a, n_a - k_a], [k_b, n_b - k_b]], alternative)
    assert result.pvalue == exactly(
        fisher.pvalue,
    )


@by_table
def test_two_sided_sums_the_hypergeometric_by_gap(counts: tuple[int, int, int, int]) -> None:
    k_a, n_a, k_b, n_b = counts
    k = np.arange(max(0, k_a + k_b - n_b), min(n_a, k_a + k_b) + 1)
    size = np.abs(k * n_b - (k_a + k_b - k) * n_a)  # of the gap, in integers
    pmf = stats.hypergeom(n_a + n_b, k_a + k_b, n_a).pmf(k)
    result = permutation_test(**rate_rows(counts), metric="selection_rate", scheme="denominator")
    expected = pmf[size >= abs(k_a * n_b - k_b * n_a)].sum()
    assert result.pvalue == exactly(
        expected,
    )


# Agresti (1990), pages 231-237, as in the help of R's mantelhaen.test: rabbits cured by
# penicillin given at once and 1.5 hours later, at five levels. It prints p = 0.040 for
# mantelhaen.test(Rabbits, exact=TRUE), and 0.020 with alternative="greater".
RABBITS = ((0, 6, 0, 5), (3, 6, 0, 6), (6, 6, 2, 6), (5, 6, 6, 6), (2, 2, 5, 5))


@pytest.mark.parametrize("variance", ["score", None])
def test_strata_are_the_exact_mantel_haenszel_test(variance: VarianceName) -> None:
    pmf = [Fraction(1)]  # of the number cured at once, over all levels, by direct convolution
    for k_a, n_a, k_b, n_b in RABBITS:
        ways = [
            math.comb(k_a + k_b, k) * math.comb(n_a + n_b - k_a - k_b, n_a - k)
            for k in range(n_a + 1)
        ]
        level = [Fraction(way, math.comb(n_a + n_b, n_a)) for way in ways]
        pmf = [
            sum(
                (pmf[i] * level[j - i] for i in range(len(pmf)) if 0 <= j - i < len(level)),
                Fraction(0),
            )
            for j in range(len(pmf) + len(level) - 1)
        ]
    expected = float(sum(pmf[16:]))
    assert round(expected, 3) == 0.020
    result = permutation_test(
        **rate_rows(*RABBITS), metric="selection_rate", variance=variance, alternative="greater"
    )
    assert result.pvalue == exactly(
        expected,
    )
    two_sided = permutation_test(**rate_rows(*RABBITS), metric="selection_rate", variance=variance)
    assert round(two_sided.pvalue, 3) == 0.040
