"""The average precision: values of scikit-learn, variances by brute force, levels."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.stats import binom
from sklearn.metrics import average_precision_score

import fairperm
from fairperm.metrics.ranks import Precisions

Array = NDArray[np.float64]

CLOSE = 1e-9


def draw(n: int, seed: int, decimals: int = 6) -> dict[str, Any]:
    """Return rows whose scores hardly repeat, or are tied across both labels."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    return {
        "y_true": y,
        "y_score": np.round(y + rng.normal(size=n), decimals),
        "sensitive_features": np.array(["a", "b"])[rng.integers(0, 2, n)],
        "metric": "average_precision",
        "n_resamples": 9,
        "rng": 1,
    }


def run(data: dict[str, Any], **options: Any) -> fairperm.PermutationTestResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        return fairperm.permutation_test(**{**data, **options})


def influences(y: Array, score: Array, weight: Array) -> Array:
    """Return how the value of scikit-learn changes if each row weighs a little more."""
    step = 1e-6
    found = np.empty(len(y))
    for i in range(len(y)):
        up, down = weight.copy(), weight.copy()
        up[i] *= 1 + step
        down[i] *= 1 - step
        values = [average_precision_score(y, score, sample_weight=w) for w in (up, down)]
        found[i] = (values[0] - values[1]) / (2 * step)
    return found


def error_by_hand(data: dict[str, Any]) -> float:
    """Return the standard error of the gap from numerical derivatives, summed over clusters."""
    y, score, group = (np.asarray(data[k]) for k in ("y_true", "y_score", "sensitive_features"))
    weight = np.asarray(data.get("sample_weight", np.ones(len(y))), float)
    cluster = np.asarray(data.get("cluster", np.arange(len(y))))
    variance = 0.0
    for one in "ab":
        mine = group == one
        found = influences(y[mine], score[mine], weight[mine])
        sums = np.bincount(np.unique(cluster[mine], return_inverse=True)[1], found)
        variance += (sums**2).sum() * len(sums) / (len(sums) - 1)
    return float(np.sqrt(variance))


DESIGNS: dict[str, Callable[[int], dict[str, Any]]] = {
    "plain": lambda _: {},
    "weights": lambda n: {"sample_weight": np.random.default_rng(7).uniform(0.5, 2, n)},
    "clusters": lambda n: {
        "cluster": np.arange(n) // 4,
        "sensitive_features": np.array(["a", "b", "b"])[np.arange(n) // 4 % 3],
    },
}


@pytest.mark.parametrize("decimals", [6, 0], ids=["no ties", "ties"])
@pytest.mark.parametrize("design", DESIGNS)
def test_values_are_those_of_scikit_learn_and_errors_those_of_derivatives(
    design: str, decimals: int
) -> None:
    data = draw(120, 3, decimals)
    data |= DESIGNS[design](120)
    result = run(data)
    weight = data.get("sample_weight", np.ones(120))
    for group, value in result.values.items():
        mine = data["sensitive_features"] == group
        columns = (data["y_true"][mine], data["y_score"][mine])
        expected = average_precision_score(*columns, sample_weight=weight[mine])
        assert value == pytest.approx(expected, rel=CLOSE)
    # a variance that is chosen is not widened
    chosen = run(data, variance="delta")
    assert chosen.standard_error == pytest.approx(error_by_hand(data), rel=1e-6)


def gaps_by_hand(y: Array, score: Array, size: int) -> list[float]:
    """Return the studentized gap of every choice of the first group."""
    cells, found = np.column_stack([y, score]), []
    for chosen in itertools.combinations(range(len(y)), size):
        first = np.isin(np.arange(len(y)), chosen)
        sides = [Precisions.by_score(np.ones(k.sum()), cells[k]) for k in (first, ~first)]
        values, variances = zip(*((one.value(), one.variance()) for one in sides), strict=True)
        gap, error = values[0] - values[1], np.sqrt(sum(variances))
        if np.isnan(gap + error):
            found.append(np.inf)  # a draw with fewer than two positives counts as extreme
        else:
            found.append(0.0 if abs(gap) < 1e-12 else abs(gap) / error if error else np.inf)
    return found


def test_small_samples_are_enumerated() -> None:
    y = np.array([0, 1, 0, 0, 1, 1, 0, 1, 0, 1], float)
    score = np.array([1, 2, 2, 1, 3, 3, 3, 1, 2, 1], float)
    data = draw(10, 1) | {"y_true": y, "y_score": score, "n_resamples": 9999}
    data["sensitive_features"] = np.array(list("aabbabbbab"))
    result = run(data, alternative="symmetric", variance="delta")
    assert result.exact
    found = np.array(gaps_by_hand(y, score, 4))
    expected = np.mean(found >= abs(result.statistic) - 1e-9)
    assert result.pvalue == pytest.approx(expected)


@pytest.mark.parametrize("design", ["counts", "rows", "weights", "clusters"])
def test_positives_of_one_row_or_cluster_have_no_error(design: str) -> None:
    """Nothing shows how their scores vary: p was 0.0002."""
    n = 60
    y = np.arange(n) % 5 == 0
    group = np.where(np.arange(n) < 30, "a", "b")
    y[(group == "a") & (np.arange(n) > 9)] = False  # rows 0 and 5 of group a are left
    score = (np.arange(n) * 37 % 60 + 20.0 * y) // (10 if design == "counts" else 1)
    data = draw(n, 1) | {"y_true": y, "y_score": score, "sensitive_features": group}
    data |= {"sample_weight": 1 + np.arange(n) % 3} if design == "weights" else {}
    data |= {"cluster": np.arange(n) // 2} if design == "clusters" else {}
    assert 0 < run(data).pvalue <= 1
    together = np.where(np.arange(n) < 10, 0, 1 + np.arange(n) // 2)
    alone = {"cluster": together} if design == "clusters" else {"y_true": y & (np.arange(n) != 0)}
    with pytest.raises(fairperm.UndefinedMetricError, match="one whose standard error is defined"):
        run({**data, **alone})


def test_a_group_without_a_mistake_may_have_one_in_the_next_row() -> None:
    y, group = np.tile([1, 0, 0, 0], 60) > 0, np.repeat(["a", "b"], [20, 220])
    score = np.where(y, 2.0, 0.0) + np.random.default_rng(1).normal(size=240)
    score[group == "a"] = y[group == "a"] + np.arange(20) / 100  # all five positives above
    data = draw(240, 1) | {"y_true": y, "y_score": score, "sensitive_features": group}
    chosen = run(data, variance="delta")
    assert chosen.standard_errors["a"] == 0
    unseen = (1 - 1 / 4) / 5  # one more positive at the bottom, where precision is the base rate
    assert run(data).standard_errors["a"] == pytest.approx(unseen)
    assert run(data).pvalue > chosen.pvalue


@pytest.mark.parametrize("given", [{}, {"control_features": np.arange(240) % 3}])
def test_permutations_of_rows_are_studentized_one_by_one(given: dict[str, Any]) -> None:
    """Tied scores are counted, others walked through; both must have the same distribution."""
    data = draw(240, 5, 1)
    counted = run(data, n_resamples=4999, **given)
    tiny = np.argsort(np.argsort(data["y_score"], kind="stable")) * 1e-9
    walked = run({**data, "y_score": data["y_score"] + tiny}, n_resamples=4999, **given)
    assert walked.difference == pytest.approx(counted.difference, abs=0.02)
    near = stats.ks_2samp(counted.null_distribution, walked.null_distribution)
    assert near.statistic < 0.05


def test_gini_is_the_auc_in_another_unit() -> None:
    for design in DESIGNS.values():
        data = draw(160, 4) | design(160)
        auc, gini = (run(data, metric=name, n_resamples=99) for name in ("roc_auc", "gini"))
        assert gini.pvalue == auc.pvalue
        assert gini.values["a"] == pytest.approx(2 * auc.values["a"] - 1, rel=CLOSE)
        assert gini.standard_error == pytest.approx(2 * auc.standard_error, rel=CLOSE)
        assert gini.confidence_interval == pytest.approx(
            [2 * end for end in auc.confidence_interval], rel=CLOSE
        )


def test_an_audit_has_gini_in_its_own_unit() -> None:
    data = draw(400, 4)
    gini, auc = fairperm.audit(
        data["y_true"],
        y_score=data["y_score"],
        sensitive_features=data["sensitive_features"],
        metrics=["gini", "roc_auc"],
        margin={"gini": 0.2, "roc_auc": 0.1},
        n_resamples=99,
        min_group_size=10,
        rng=1,
    ).rows
    assert gini.pvalue == auc.pvalue
    assert auc.detectable_gap is not None
    assert gini.detectable_gap == pytest.approx(2 * auc.detectable_gap, rel=1e-3)
    assert gini.equivalence_pvalue == auc.equivalence_pvalue


# -- Levels -----------------------------------------------------------------------------------


def truth(base: float, shift: float, spread: float) -> float:
    """Return the average precision of positives N(shift, spread²) and negatives N(0, 1)."""
    share = (np.arange(20_000) + 0.5) / 20_000  # of the positives that score as high or higher
    score = shift + spread * stats.norm.isf(share)
    true, false = base * share, (1 - base) * stats.norm.sf(score)
    return float(np.mean(true / (true + false)))


# sizes, base rates and spreads of the positives' scores, and the value of both groups
SETTINGS = {
    "base rates": ((200, 200), (0.5, 0.2), (1.0, 1.0), 0.7),
    "spread": ((100, 1000), (0.3, 0.3), (0.5, 2.0), 0.6),
    "rare positives": ((500, 500), (0.05, 0.2), (1.0, 1.0), 0.4),
    "ten positives": ((40, 200), (0.25, 0.4), (1.0, 1.0), 0.7),
    "seven positives": ((30, 300), (0.25, 0.5), (1.0, 1.0), 0.7),
}
N = 300


def count_rejections(setting: str, n: int, **options: Any) -> int:
    sizes, bases, spreads, value = SETTINGS[setting]
    shifts = [
        brentq(lambda shift, b=b, spread=spread: truth(b, shift, spread) - value, -2, 12)
        for b, spread in zip(bases, spreads, strict=True)
    ]
    rng, rejected = np.random.default_rng(24), 0
    group = np.repeat([0, 1], sizes)
    base, shift, spread = (np.repeat(one, sizes) for one in (bases, shifts, spreads))
    for seed in range(n):
        y = rng.random(len(group)) < base
        normal = rng.normal(size=len(group))
        score = np.where(y, shift + spread * normal, normal)
        data = {"y_true": y, "y_score": score, "sensitive_features": group, "rng": seed}
        result = run(data, metric="average_precision", n_resamples=319, progress=False, **options)
        rejected += result.pvalue <= 0.05
    return rejected


@pytest.mark.validate
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_level_holds_where_groups_are_equal_in_it_only(setting: str) -> None:
    assert count_rejections(setting, N) <= binom.ppf(0.999, N, 0.05)


@pytest.mark.validate
def test_without_studentizing_the_level_does_not_hold() -> None:
    rejected = count_rejections("rare positives", N, variance=None)
    assert rejected > binom.ppf(0.999, N, 0.05)
