"""The paper's section 4.2: equal false negative rates, unequal base rates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.resampling.blocks import Resampling
from fairperm.hypothesis_tests import groups
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.inference.null import Null, pvalue, tie_tolerance
from fairperm.metrics.registry import get_metric
from studies import bootstrap, charts
from studies.calibration.rivals import tabulate_counts
from studies.simulate import GROUPS, PAPER_FNR
from studies.simulating import simulate_data_sets
from studies.study import LEVEL, Row, Study

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from studies.simulate import Rates

_FULL = (10_000, 1000)  # data sets (as in the paper), bootstrap samples
_QUICK = (500, 500)
_PURPOSE = 200
_ENOUGH = 9999
_BINS = 20  # the first bar has the p-values up to 0.05
_ROUNDING = 1e-12

PERMUTATION_TESTS = {  # scheme and variance
    "un-studentized": ("pooled", None),
    "studentized, score": ("pooled", "score"),
    "studentized, wald": ("pooled", "wald"),
    "denominator": ("denominator", "auto"),
    "unconditional (our default)": ("unconditional", "auto"),
}
BOOTSTRAP_TESTS = ("bootstrap, one-sided", "bootstrap, |T* − T|", "bootstrap, equal tails")
PAPER = {
    "un-studentized": 0.1216,
    "studentized, score": 0.0486,
    "studentized, wald": 0.0486,
    **dict.fromkeys(BOOTSTRAP_TESTS, 0.1078),
}
_REMARKS = {
    "studentized, score": "standard error from the pooled rate: reproduces the paper's value",
    "studentized, wald": "the standard error printed in the paper, from each group's own rate",
    "denominator": "not in the paper; exact at every sample size, and discrete",
    "unconditional (our default)": "not in the paper; exact at every sample size",
    "bootstrap, one-sided": "T* − T at least T: closest to the paper's value",
    "bootstrap, |T* − T|": "as in studies.bootstrap",
    "bootstrap, equal tails": "twice the smaller one-sided p-value",
}
_ABOUT = (
    "Two groups of 200 rows with 80 % and 20 % positives. In both, 10 % of the positives are "
    "missed, so the false negative rates are equal, and a test should reject in 5 % of the data"
    " sets. Permutation p-values are exact, and permutations are compared by |S|, as in the "
    "paper."
)
_NOTES = (
    "The paper prints a variance from each group's own rate (wald), but with it the test does "
    "not reject 0.0486 of the data sets. With a variance from the pooled rate of both groups "
    "(score), which the null hypothesis allows, it does.",
    "The p-value of a basic bootstrap can be defined in three ways; the one-sided one gives the"
    " paper's value.",
)


def fnr(
    *,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
    n_data_sets: int | None = None,
    n_resamples: int | None = None,
) -> Study:
    """Run the paper's section 4.2 again: the level of tests of equal false negative rates."""
    default_sets, default_resamples = _QUICK if quick else _FULL
    n_data_sets = n_data_sets or default_sets
    n_resamples = n_resamples or default_resamples
    results = simulate_data_sets(
        partial(_compute_pvalues, PAPER_FNR, n_resamples),
        n_data_sets,
        seed=seed,
        purpose=_PURPOSE,
        n_jobs=n_jobs,
        progress=progress,
    )
    pvalues = dict(zip((*PERMUTATION_TESTS, *BOOTSTRAP_TESTS), results.T, strict=True))
    edges = np.linspace(0, 1, _BINS + 1).round(12)
    counts = {test: np.histogram(p - _ROUNDING, edges)[0].tolist() for test, p in pvalues.items()}
    rows = tuple(_make_row(test, int((p <= LEVEL).sum()), len(p)) for test, p in pvalues.items())
    return Study(
        name="fnr",
        title="Section 4.2: equal false negative rates, unequal base rates",
        about=_ABOUT,
        rows=rows,
        notes=_NOTES,
        settings={
            "data sets": n_data_sets,
            "bootstrap samples": n_resamples,
            "rows": sum(PAPER_FNR.n),
            "seed": seed,
        },
        tables={"pvalues": {"from": edges[:-1].tolist(), "to": edges[1:].tolist(), **counts}},
        charts={
            "pvalues": charts.draw_histograms(
                counts, title="p-values where there is no gap", edges=edges.tolist()
            ),
            "rejections": charts.draw_agreement(
                rows, title="Rejections at 0.05", axis="share of data sets", level=LEVEL
            ),
        },
    )


def _compute_pvalues(
    population: Rates, n_resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the p-values of all tests for one data set."""
    table = tabulate_counts(population.counts(1, rng)[0])
    metric = get_metric("false_negative_rate")
    seed = int(rng.integers(2**53))
    every = Resampling(_ENOUGH, seed, None, False)  # all permutations are counted
    options = Options(resampling=every, alternative="symmetric")
    permuted = [
        groups.compare(table, Plan.choose(metric, scheme, variance), GROUPS, options).pvalue
        for scheme, variance in PERMUTATION_TESTS.values()
    ]
    some = Resampling(n_resamples, seed, None, False)
    result = bootstrap.compare(table, metric, GROUPS, Options(resampling=some))
    pvalues = _bootstrap_pvalues(result.difference, result.bootstrap_distribution)
    return np.array([*permuted, *pvalues])


def _bootstrap_pvalues(gap: float, resampled: NDArray[np.float64]) -> list[float]:
    """Return the three p-values that one bootstrap distribution gives."""
    null = Null(resampled - gap)
    tolerance = tie_tolerance(gap, np.ones(1), np.ones(1))
    return [
        pvalue(null, gap, alternative, tolerance, 0.95).value
        for alternative in ("greater", "symmetric", "two-sided")
    ]


def _make_row(test: str, hits: int, n_data_sets: int) -> Row:
    return Row.of_share(
        test,
        hits,
        n_data_sets,
        PAPER.get(test),
        _FULL[0] if test in PAPER else None,
        _REMARKS.get(test, "not valid for the weak null"),
    )
