"""The permutation test of the correlation with a continuous protected attribute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairperm._utils import checks
from fairperm._utils.arrays import Array
from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_number,
    format_pvalue,
)
from fairperm._utils.signatures import complete, shares
from fairperm.data.arguments import DrawArguments
from fairperm.data.columns import Source, as_floats
from fairperm.data.copies import count_each
from fairperm.data.indexes import check_indexes
from fairperm.engines.resampling.shared_labels import PermutationRequest
from fairperm.errors import InputError, warn_of
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.plan import Options
from fairperm.hypothesis_tests.reaches import ErrorReach
from fairperm.hypothesis_tests.results.answers.words import (
    judge,
    level_of,
    sentence,
    state_p,
)
from fairperm.hypothesis_tests.results.gaps import ResultWithPValue
from fairperm.hypothesis_tests.results.text import state_rows
from fairperm.hypothesis_tests.run import Observed, PermutationTest, run
from fairperm.hypothesis_tests.small_groups import effective_number
from fairperm.inference.null import drop_rounding, tie_tolerance
from fairperm.inference.skewness import remove_skewness, skewness
from fairperm.inference.stopping import min_draws_for
from fairperm.metrics.definition import Variance

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from fairperm._utils.arrays import Booleans
    from fairperm.data.arguments import (
        Alternative,
        Column,
        CorrelationMethod,
        CorrelationVariance,
        Frame,
        Resamples,
    )
    from fairperm.engines.kernels.shuffles import Margin
    from fairperm.engines.resampling.blocks import Stop

__all__ = ["CorrelationTestResult", "correlation_test"]

METHODS: tuple[CorrelationMethod, ...] = ("pearson", "spearman")
VARIANCES: tuple[CorrelationVariance, ...] = ("auto", "hall", "delta", None)
_STUDENTIZED = (
    "Exact under independence; asymptotically valid for zero correlation under dependence."
)
_PLAIN = "Exact under independence only: not valid for zero correlation under dependence."
# effective number of rows: with fewer the level can be 0.13 at nominal level 0.05
_MIN_INFLUENTIAL_ROWS = 5
_MIN_ROWS = 4  # of three, no pairing has a one-sided p-value below 1/3! = 0.17
_ROWS_NAMED = 5
_ROUNDING = 8 * np.finfo(np.float64).eps  # centred values below this share of the largest are zero
_NO_ERROR = 1e-14  # products of unit vectors whose root sum of squares is below this are zero


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class CorrelationTestResult(ResultWithPValue):
    """The result of :func:`fairperm.correlation_test`.

    Attributes
    ----------
    method : str
        Which correlation.
    correlation : float
        Between -1 and 1.
    standard_error : float
        The error of a correlation that is truly zero.
    confidence_interval : tuple of float
        For the correlation; approximate.
    statistic : float
        What is compared with its null distribution, as ``variance`` says.
    n : int
        Rows used.
    exact : bool
        Whether all permutations were counted: the p-value then has no Monte Carlo error.
    """

    method: str
    correlation: float
    standard_error: float
    confidence_interval: tuple[float, float]
    statistic: float
    alternative: str
    variance: str | None
    n: int
    exact: bool

    @property
    def answer(self) -> str:
        """The correlation, and whether chance explains it."""
        r = format_number(self.correlation, signed=True)
        rest = format_interval(self.confidence_interval, signed=True)
        p = state_p(self.pvalue, self.pvalue, self)
        end = f"; correlations from {rest} are not ruled out"
        judged = judge(self, "it", p, is_shown=self.pvalue <= level_of(self), open_end=end)
        method = f"{self.method.capitalize()}'s correlation"
        return sentence(f"{method} of the {self.n:,} rows is {r}{judged}")

    def _lines(self) -> list[tuple[str, str]]:
        correlation = format_number(self.correlation, signed=True)
        interval = format_interval(self.confidence_interval, signed=True)
        level = format_level(self.confidence_level)
        return [
            ("correlation", f"{correlation}  {level} interval {interval}"),
            ("p-value", f"{format_pvalue(self.pvalue)}  {self.alternative}, {self._draws()}"),
            ("validity", self.validity),
            state_rows(self.n, self.n_dropped),
        ]


class CorrelationArguments(DrawArguments, total=False):
    """Arguments of :func:`fairperm.permutation_test` that a test of a correlation has, too."""

    alternative: Alternative
    n_resamples: Resamples
    confidence_level: float
    ignore_index: bool
    count: Column | None


@shares(permutation_test, CorrelationArguments)
def correlation_test(
    x: Column,
    y: Column,
    *,
    data: Frame | None = None,
    method: CorrelationMethod = "pearson",
    variance: CorrelationVariance = "auto",
    missing: Literal["error", "drop"] = "error",
    **given: Unpack[CorrelationArguments],
) -> CorrelationTestResult:
    """Test whether a continuous protected attribute is uncorrelated with an error or a score.

    Parameters
    ----------
    x : array-like or str
        The protected attribute: numbers, such as age or income.
    y : array-like or str
        The error, score or outcome: numbers, or True and False.
    data : frame or mapping, optional
        Then `x` and `y` may be names of its columns.
    method : {"pearson", "spearman"}
        The correlation of the values or of their ranks, where ties share their mean rank.
    variance : {"auto", "hall", "delta"} or None
        "delta" divides the correlation by its error in every permutation, as the paper does;
        "hall" removes its skewness, too. "auto" is "hall" for values, and "delta" for ranks, which
        are hardly skewed. None compares the correlations themselves, and is not valid for zero
        correlation unless `x` and `y` are independent.
    alternative : {"two-sided", "symmetric", "greater", "less"}
        Whether the correlation differs from, is greater or is less than zero. "two-sided" is twice
        the smaller of the one-sided p-values; "symmetric" compares |S|.
    n_resamples : int or "auto"
        Random permutations, as in :func:`fairperm.permutation_test`; if there are no more than
        this (than 9,999 for "auto"), each of the n! is counted once.
    confidence_level : float
        Of the interval for the correlation and of those for the p-value.
    missing : {"error", "drop"}
        Whether missing values are an error or their rows are left out, and counted in the result.
    rng : int or numpy.random.Generator, optional
        One seed gives one p-value, for any `n_jobs`, row order and kind of data frame. Swapping
        `x` and `y` gives other draws, and so a p-value equal up to Monte Carlo error.
    **given
        All others are those of :func:`fairperm.permutation_test`.

    Returns
    -------
    CorrelationTestResult

    Notes
    -----
    With x and y centred, the studentized statistic is S = r / √τ, where r = Σxy / √(Σx² Σy²) and
    τ = Σw² / (Σx² Σy²), recomputed in every permutation of y. For Pearson's correlation w = xy
    (DiCiccio and Romano, 2017). The skewness k = Σψ³ / (Σw²)^{3/2} is removed in the sample and in
    every permutation, too: H = S + kS²/3 + k²S³/27 + k/6 (Hall, 1992). With x and y of length one,
    ψ = xy − r(x² + y²)/2 is a row's influence on r; Σw³ would count r itself as skewness. Each
    tail's p-value is then at least the normal one of H. Ranks depend on one another, so for
    Spearman's, of n rows, w = xy + Σⱼ h(x, xⱼ) yⱼ / n + Σⱼ h(y, yⱼ) xⱼ / n with x and y ranks over
    n and h(a, b) 1 if a < b, ½ if a = b and else 0: the correlation's influence function (Croux and
    Dehon, 2010).
    Without these terms the test would not hold its level where x and y are dependent. Since Σw
    is a multiple of Σxy, τ is zero only where r is, and then S = 0.

    A one-sided p-value from B random permutations, b of them at least as extreme as the sample, is
    (b + 1)/(B + 1); an enumerated one is their share. Ties are extreme. Rows must be independent
    of each other.

    The interval runs from r − q_high·√τ to r − q_low·√τ, with the values of S whose H are the
    quantiles of the permutations that the test has, within [-1, 1] ("delta": with those of S;
    None: with those of r alone). It
    excludes zero exactly where the test rejects, but it is approximate: √τ is the error of a
    correlation of zero, too large for most strong ones.

    The effective number of rows that carry the correlation is (Σw²)²/Σw⁴. If it is below 5, a
    warning appears: unless `x` and `y` are independent, the test may reject too often.

    References
    ----------
    Hall. On the removal of skewness by transformation. Journal of the Royal Statistical Society B
    54, 1992.

    DiCiccio, Romano. Robust permutation tests for correlation and regression coefficients.
    Journal of the American Statistical Association 112, 2017.

    Croux, Dehon. Influence functions of the Spearman and Kendall correlation measures.
    Statistical Methods & Applications 19, 2010.

    Examples
    --------
    >>> import fairperm
    >>> import numpy as np
    >>> rng = np.random.default_rng(3)
    >>> income = rng.uniform(0.1, 1, size=1000)
    >>> error = rng.normal(size=1000) / income**2  # uncorrelated, but larger for the poor
    >>> fairperm.correlation_test(income, error, rng=1)
    Pearson's correlation of the 1,000 rows is −0.076; chance could explain it (p = 0.1400);
    correlations from −0.175 to +0.026 are not ruled out.
      correlation  −0.076  95 % interval −0.175 to +0.026
      p-value      0.1400  two-sided, 1,999 draws (stopped early), 95 % interval 0.1295 to
                   0.1632
      validity     Exact under independence; asymptotically valid for zero correlation under
                   dependence.
      rows         1,000 used, 0 left out for missing values
    >>> plain = fairperm.correlation_test(income, error, variance=None, rng=1)
    >>> round(plain.pvalue, 4)  # not valid here
    0.0129
    """
    method = checks.choice("method", method, METHODS)
    chosen = _choose_variance(checks.choice("variance", variance, VARIANCES), method)
    given = complete(correlation_test, given)
    options = Options.check(given)
    count = given["count"]
    check_indexes({"x": x, "y": y, "count": count}, data, given["ignore_index"])
    pairs = _Pairs.read(x, y, data, missing, count)
    test = CorrelationTest.of(pairs, method, chosen, options.alternative, options.confidence_level)
    (tested,) = run([test], options.resampling)
    result = tested.result(
        CorrelationTestResult, **test.sample, n_dropped=pairs.n_dropped, seed=options.seed
    )
    warn_of(result.notes)
    return result


def _choose_variance(variance: str | None, method: str) -> Variance | None:
    """Return what studentizes. Raises InputError for ranks without their skewness."""
    is_ranked = method == "spearman"
    if variance == "auto":
        return Variance.DELTA if is_ranked else Variance.HALL
    if variance == Variance.HALL and is_ranked:
        rule = "'auto', 'delta' or None with method='spearman'"
        raise InputError("variance", rule, variance, "Ranks are hardly skewed.")
    return None if variance is None else Variance(variance)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationTest(PermutationTest[Array]):
    """The studentized correlation of the sample, before its permutations."""

    observed: Observed
    margins: tuple[Margin, Margin]
    variance: Variance | None
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        pairs: _Pairs,
        method: str,
        variance: Variance | None,
        alternative: str,
        level: float,
    ) -> CorrelationTest:
        """Compute the statistic of the sample."""
        from fairperm.engines.kernels.shuffles import sums  # loads Numba

        margins, order = pairs.margins(ranked=method == "spearman"), pairs.order()
        found, square, cube = sums(*margins, order)
        r = float(drop_rounding(np.array(found), 1.0))
        statistic = float(_statistic(np.array([[r], [square], [cube]]), variance)[0])
        error = math.sqrt(square) if math.sqrt(square) > _NO_ERROR else 0.0
        unit = np.ones(1)
        if variance is not None:
            unit[0] = error or 1 / math.sqrt(len(pairs.x))
        k = 0.0
        if variance == Variance.HALL:
            k = float(skewness(np.array(cube), np.array(error)))
        observed = Observed(
            statistic=statistic,
            alternative=alternative,
            ordering=alternative,
            tolerance=tie_tolerance(statistic, np.ones(1), unit, k),
            estimate=r,
            level=level,
            min_draws=min_draws_for(level),
            reach=ErrorReach(np.array([r]), unit, 1.0, skewness=k),
            skewness=k,
            has_normal_floor=variance == Variance.HALL,
        )
        sample = {
            "method": method,
            "correlation": min(max(r, -1.0), 1.0),
            "standard_error": error,
            "variance": None if variance is None else variance.value,
            "n": len(pairs.x),
            "validity": _PLAIN if variance is None else _STUDENTIZED,
            "notes": () if variance is None else tuple(_few_rows_matter(*margins, order)),
        }
        return cls(observed=observed, margins=margins, variance=variance, sample=sample)

    def enumerated(self, most: int) -> tuple[Array, Array] | None:
        from fairperm.engines.kernels.shuffles import all_sums

        n = len(self.margins[0].values)
        permutations = math.factorial(min(n, 20))  # 20! is more than anyone can ask for
        if permutations > most:
            return None
        sums = all_sums(*self.margins, permutations)
        return sums, np.full(permutations, -math.log(permutations))

    def request(self, stop: Stop[Array]) -> PermutationRequest[Array]:
        from fairperm.engines.kernels.shuffles import random_sums

        def draw(n: int, rng: np.random.Generator) -> Array:
            return random_sums(*self.margins, n, rng.integers(2**64, size=4, dtype=np.uint64))

        return PermutationRequest.of(draw, stop)

    def statistics(self, blocks: Sequence[Array], first: int | None) -> Array:
        del first
        return _statistic(np.concatenate(blocks, axis=1), self.variance)


def _statistic(sums: Array, variance: Variance | None) -> Array:
    """Return the statistic of every pairing, from its correlation, Σw² and Σψ³."""
    statistic: Array = sums[0].copy()
    if variance is None:
        return statistic
    error = np.sqrt(sums[1])
    known = error > _NO_ERROR
    statistic[known] /= error[known]
    statistic[~known] = 0.0
    if variance == Variance.HALL:
        return remove_skewness(statistic, skewness(sums[2], np.where(known, error, 0.0)))
    return statistic


def _few_rows_matter(x: Margin, y: Margin, order: NDArray[np.uint32]) -> Iterator[str]:
    """Yield a note if few rows carry the correlation, by their influences w in the test's notes."""
    y_of_x = y.values[order]
    influence = x.values * y_of_x
    if x.per_rank > 0:
        x_of_y = np.empty_like(y_of_x)
        x_of_y[order] = x.values
        influence += _sum_above(x, y_of_x) + _sum_above(y, x_of_y)[order]
    influence[np.abs(influence) <= _NO_ERROR] = 0.0
    n = effective_number(np.abs(influence), np.ones(len(order)))
    if n < _MIN_INFLUENTIAL_ROWS:
        few = f"Only about {min(max(round(n), 1), _MIN_INFLUENTIAL_ROWS - 1)}" if n else "None"
        yield (
            f"{few} of {format_count(len(order), 'row')} show how the correlation varies: with "
            f"fewer than {_MIN_INFLUENTIAL_ROWS} the test may reject too often, unless x and y "
            "are independent."
        )


def _sum_above(margin: Margin, partners: Array) -> Array:
    """Return the sum of the partners of larger values, and half of those of ties, in ranks."""
    above = np.append(np.cumsum(partners[::-1])[::-1], 0.0)
    total: Array = margin.per_rank * (above[margin.starts] + above[margin.stops])
    return total


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The rows, sorted by x and then y: their original order changes no number."""

    x: Array
    y: Array
    names: tuple[str, str]
    n_dropped: int

    @classmethod
    def read(
        cls, x: object, y: object, data: object, missing: object, count: object = None
    ) -> _Pairs:
        policy = checks.choice("missing", missing, ("error", "drop"))
        source = Source.of(data)
        found = source.find("x", x), source.find("y", y)
        x_name, y_name = names = found[0][0], found[1][0]
        with np.errstate(over="ignore"):
            columns = [as_floats(*one, booleans=True).astype(np.float64) for one in found]
        if len(columns[0]) != len(columns[1]):
            rule = f"as long as {x_name} ({len(columns[0]):,} rows)"
            raise InputError(y_name, rule, len(columns[1]), "Pass columns of one length.")
        if count is not None:
            counts = count_each(data, count, len(columns[0]))
            columns = [np.repeat(one, counts) for one in columns]
        unknown = np.isnan(columns)
        known = ~unknown.any(axis=0)
        if policy == "error" and not known.all():
            raise InputError(_where_missing(names, unknown))
        for name, column in zip(names, columns, strict=True):
            if (infinite := np.flatnonzero(np.isinf(column))).size:
                hint = f"Leave out row {infinite[0]}, or put in the number you mean."
                raise InputError(name, "finite", float(column[infinite[0]]), hint)
        if known.sum() < _MIN_ROWS:
            dropped = f", and {(~known).sum():,} with missing values" if not known.all() else ""
            raise InputError(
                f"x and y must have at least {_MIN_ROWS} rows; got {known.sum()}{dropped}."
            )
        x_known, y_known = columns[0][known], columns[1][known]
        order = np.lexsort((y_known, x_known))
        return cls(x_known[order], y_known[order], names, int((~known).sum()))

    def order(self) -> NDArray[np.uint32]:
        """Return which of the sorted values of y each sorted value of x is paired with."""
        order = np.empty(len(self.y), np.uint32)
        order[np.argsort(self.y, kind="stable")] = np.arange(len(self.y))
        return order

    def margins(self, *, ranked: bool) -> tuple[Margin, Margin]:
        """Return x and y separately: all that the permutations depend on."""
        x, y = (
            _margin(name, np.sort(values), ranked)
            for name, values in zip(self.names, (self.x, self.y), strict=True)
        )
        return x, y


def _margin(name: str, ascending: Array, ranked: bool) -> Margin:
    from fairperm.engines.kernels.shuffles import Margin

    edges = np.flatnonzero(np.r_[True, ascending[1:] != ascending[:-1], True])  # of runs of ties
    starts, stops = (np.repeat(side, np.diff(edges)) for side in (edges[:-1], edges[1:]))
    values = (starts + stops + 1) / 2 if ranked else ascending
    exponent = math.frexp(np.abs(values).max())[1]
    values = np.ldexp(values, -exponent)  # at most one: no square overflows, and nothing is lost
    largest = np.abs(values).max()
    for _ in range(2):  # the first mean is rounded
        values = values - values.mean()
    values[np.abs(values) <= _ROUNDING * largest] = 0.0
    length = math.sqrt(values @ values)
    if length == 0:
        rule = "made of numbers that differ (by more than rounding errors)"
        hint = "A constant is correlated with nothing."
        raise InputError(name, rule, float(ascending[0]), hint)
    per_rank = math.ldexp(0.5 / length, -exponent) if ranked else 0.0
    return Margin(values / length, per_rank, starts.astype(np.uint32), stops.astype(np.uint32))


def _where_missing(names: tuple[str, str], unknown: Booleans) -> str:
    parts = []
    for name, rows in zip(names, map(np.flatnonzero, unknown), strict=True):
        if rows.size:
            more = ", …" if rows.size > _ROWS_NAMED else ""
            some = ", ".join(map(str, rows[:_ROWS_NAMED]))
            parts.append(f"{name}: {rows.size:,} (rows {some}{more})")
    return (
        f"x and y must be without missing values; got missing values in {'; '.join(parts)}. "
        "Pass missing='drop' to leave these rows out; the result will say how many."
    )
