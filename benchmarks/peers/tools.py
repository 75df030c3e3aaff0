"""Every tool as one call: a question and a number of permutations in, a gap and a p-value out.

What is imported only here is imported late: a tool that is not installed is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import util
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers.lift import lift
from benchmarks.peers.questions import METRICS, SEED, SORTED_VALUES, VALUES, Question, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

OURS = "fairperm"  # what the others are compared with
_SCIPY_BATCH = 10**7  # rows times permutations that scipy holds at once; its default holds all


@dataclass(frozen=True)
class Answer:
    """The absolute gap, and its two-sided p-value if the tool has one."""

    gap: float
    pvalue: float | None


@dataclass(frozen=True)
class Tool:
    """A contender: what is called, what its result is valid for, and what it does not do."""

    name: str
    package: str  # as it is installed
    module: str  # as it is imported
    run: Callable[[Question, int], Answer]
    call: str
    valid: str
    lacks: str

    @property
    def is_installed(self) -> bool:
        return util.find_spec(self.module.partition(".")[0]) is not None


def fairperm_default(asked: Question, draws: int) -> Answer:
    return _fairperm(asked, draws)


def fairperm_plain(asked: Question, draws: int) -> Answer:
    return _fairperm(asked, draws, scheme="pooled", variance=None)


def _fairperm(asked: Question, draws: int, **options: Any) -> Answer:
    import fairperm

    predicted = "y_score" if asked.metric == "AUC" else "y_pred"
    result = fairperm.permutation_test(
        asked.y_true,
        sensitive_features=asked.group,
        metric=METRICS[asked.metric],
        n_resamples=draws,
        rng=SEED,
        progress=False,
        **{predicted: asked.y_pred},
        **options,
    )
    return Answer(abs(float(result.difference)), float(result.pvalue))


def numpy_loop(asked: Question, draws: int) -> Answer:
    """Run the loop of someone who knows NumPy: one array, sorted once, and a shuffled mask."""
    rng = np.random.default_rng(SEED)
    rows, first = numbers(asked), asked.group == 0
    if asked.metric == "AUC":
        order = np.argsort(np.abs(rows))
        rows, first = rows[order], first[order]
    value = SORTED_VALUES[asked.metric]

    def gap(first: Any) -> float:
        return abs(value(rows[first]) - value(rows[~first]))

    observed = gap(first)
    extreme = sum(gap(rng.permutation(first)) >= observed for _ in range(draws))
    return Answer(observed, (extreme + 1) / (draws + 1))


def sklearn_loop(asked: Question, draws: int) -> Answer:
    from sklearn import metrics

    rng = np.random.default_rng(SEED)
    value = {
        "TPR": metrics.recall_score,
        "AUC": metrics.roc_auc_score,
        "MSE": metrics.mean_squared_error,
    }[asked.metric]

    def gap(group: Any) -> float:
        first, second = (value(asked.y_true[group == g], asked.y_pred[group == g]) for g in (0, 1))
        return abs(float(first - second))

    observed = gap(asked.group)
    extreme = sum(gap(rng.permutation(asked.group)) >= observed for _ in range(draws))
    return Answer(observed, (extreme + 1) / (draws + 1))


def _samples(asked: Question) -> tuple[Any, Any, Callable[[Any, Any], float]]:
    """Return the numbers of both groups, and the absolute gap of two such samples."""
    rows, value = numbers(asked), VALUES[asked.metric]

    def gap(first: Any, second: Any) -> float:
        return abs(value(first) - value(second))

    return rows[asked.group == 0], rows[asked.group == 1], gap


def scipy_test(asked: Question, draws: int) -> Answer:
    from scipy import stats

    first, second, gap = _samples(asked)
    result = stats.permutation_test(
        (first, second),
        gap,
        n_resamples=draws,
        batch=max(1, _SCIPY_BATCH // len(asked.group)),
        alternative="greater",
        random_state=np.random.default_rng(SEED),
    )
    return Answer(float(result.statistic), float(result.pvalue))


def mlxtend_test(asked: Question, draws: int) -> Answer:
    from mlxtend.evaluate import permutation_test

    first, second, gap = _samples(asked)
    p = permutation_test(first, second, func=gap, method="approximate", num_rounds=draws, seed=SEED)
    return Answer(gap(first, second), float(p))


def permute_test(asked: Question, draws: int) -> Answer:
    from permute.core import two_sample

    first, second, gap = _samples(asked)
    # keep_dist: without it, every statistic is computed twice
    p, observed, _ = two_sample(
        first, second, reps=draws, stat=gap, alternative="greater", keep_dist=True, seed=SEED
    )
    return Answer(float(observed), float(p))


def fairlearn_bootstrap(asked: Question, draws: int) -> Answer:
    from fairlearn.metrics import MetricFrame, true_positive_rate
    from sklearn.metrics import mean_squared_error, roc_auc_score

    frame = MetricFrame(
        metrics={"TPR": true_positive_rate, "AUC": roc_auc_score, "MSE": mean_squared_error}[
            asked.metric
        ],
        y_true=asked.y_true,
        y_pred=asked.y_pred,
        sensitive_features=asked.group,
        n_boot=draws,
        ci_quantiles=[0.025, 0.975],
        random_state=SEED,
    )
    return Answer(float(frame.difference()), None)


def lift_method(asked: Question, draws: int) -> Answer:
    rows, value = numbers(asked), VALUES[asked.metric]
    p, _ = lift(rows, asked.group, value, draws, np.random.default_rng(SEED))
    gap = value(rows[asked.group == 0]) - value(rows[asked.group == 1])
    return Answer(abs(gap), float(p))


_STRONG = "strong null only"
TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "fairperm",
            "fairperm",
            "fairperm",
            fairperm_default,
            "`permutation_test(…)`, all defaults",
            "weak null: TPR exactly, AUC and MSE in large samples; strong null exactly",
            "",
        ),
        Tool(
            "fairperm, not studentized",
            "fairperm",
            "fairperm",
            fairperm_plain,
            '`permutation_test(…, scheme="pooled", variance=None)`: the test of the loops below',
            _STRONG,
            "for comparison only",
        ),
        Tool(
            "NumPy loop",
            "numpy",
            "numpy",
            numpy_loop,
            "one number per row, sorted once for the AUC; a shuffled mask",
            _STRONG,
            "no standard errors, no interval; you must write and test all of it",
        ),
        Tool(
            "scikit-learn loop",
            "scikit-learn",
            "sklearn.metrics",
            sklearn_loop,
            "`recall_score`, `roc_auc_score`, `mean_squared_error` of shuffled groups",
            _STRONG,
            "no test: you must write the loop; no standard errors, no interval",
        ),
        Tool(
            "scipy",
            "scipy",
            "scipy.stats",
            scipy_test,
            "`stats.permutation_test` of one number per row; `batch` is set, because by default "
            "all permutations are in memory at once",
            _STRONG,
            "no metrics, no interval; counts all partitions first (a binomial coefficient with "
            "millions of digits for 10⁷ rows)",
        ),
        Tool(
            "mlxtend",
            "mlxtend",
            "mlxtend.evaluate",
            mlxtend_test,
            '`permutation_test(…, method="approximate")` of one number per row',
            _STRONG,
            "no metrics, no interval; returns only the p-value",
        ),
        Tool(
            "permute",
            "permute",
            "permute.core",
            permute_test,
            "statlab's `two_sample(…, keep_dist=True)` of one number per row",
            _STRONG,
            "no metrics, no interval; shuffles a Python list with a cryptographic generator",
        ),
        Tool(
            "Fairlearn",
            "fairlearn",
            "fairlearn.metrics",
            fairlearn_bootstrap,
            "`MetricFrame(…, n_boot=999, ci_quantiles=[0.025, 0.975])`",
            "interval only",
            "no p-value; the difference is the largest minus the smallest value; its interval "
            "never reaches below 0 and cannot serve as a test",
        ),
        Tool(
            "LiFT's method",
            "numpy",
            "numpy",
            lift_method,
            "transcribed to NumPy (`benchmarks/peers/lift.py`), on all rows; LiFT itself is Scala "
            "on Spark and takes a sample of 500,000",
            "weak null in large samples",
            "p can be 0; rejects 0.076 at nominal level 0.05 in the paper's setting "
            "([the method](method.md)); twice the work, because every permutation needs a "
            "bootstrap sample",
        ),
    )
}
