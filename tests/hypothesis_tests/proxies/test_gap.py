"""The gap of groups known as probabilities, against least squares, leaving out, all permutations.

The oracles share no code with the package: NumPy's ``lstsq``, refits without each row or cluster,
and loops over every order of seven rows.
"""

from __future__ import annotations

import html
import itertools
import json
import math
import warnings
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import fairperm
from fairperm import FairpermWarning, audit, equivalence_test, permutation_test
from tests.support.simulations import only_monte_carlo

Array = NDArray[Any]
WEIGHTING, LEAST_SQUARES = "group_given_proxy", "outcome_given_group"
both = pytest.mark.parametrize("assumption", [WEIGHTING, LEAST_SQUARES])
RNG = np.random.default_rng(5)
N = 240
SHARES = RNG.dirichlet([0.5, 0.4, 0.8], N)
LABEL, PREDICTED = RNG.integers(0, 2, (2, N))
LOSS = RNG.exponential(size=N)
CLUSTER = RNG.integers(0, 40, N)


def shares_of(matrix: Array, names: str = "abc") -> dict[str, Array]:
    return dict(zip(names, matrix.T, strict=False))


def gap_test(**given: Any) -> Any:
    options: dict[str, Any] = {"rng": 1, "metric": "selection_rate"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        return permutation_test(**options | given)


def values_of(shares: Array, numbers: Array, assumption: str) -> Array:
    """Return each group's value: the ratio of means of the numbers' two columns."""
    if assumption == LEAST_SQUARES:
        means = np.linalg.lstsq(shares, numbers, rcond=None)[0]
    else:
        means = shares.T @ numbers / shares.sum(axis=0)[:, None]
    return np.asarray(means[:, 0] / means[:, 1])


METRICS: dict[str, tuple[dict[str, Array], Array]] = {
    "false_positive_rate": (
        {"y_true": LABEL, "y_pred": PREDICTED},
        np.stack([(1 - LABEL) * PREDICTED, 1 - LABEL], axis=1),
    ),
    "mean_absolute_error": (
        {"y_true": np.zeros(N), "y_pred": LOSS},
        np.stack([LOSS, np.ones(N)], axis=1),
    ),
}


@both
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("clusters", [None, CLUSTER])
def test_three_groups_have_the_values_and_the_error_of_refits(
    metric: str, assumption: str, clusters: Array | None
) -> None:
    columns, numbers = METRICS[metric]
    found = gap_test(
        **columns,
        metric=metric,
        group_probabilities=shares_of(SHARES),
        groups=("a", "c"),
        proxy_assumption=assumption,
        cluster=clusters,
    )
    value = values_of(SHARES, numbers, assumption)
    assert [*found.values.values()] == pytest.approx(value[[0, 2]], abs=1e-12)
    assert found.difference == pytest.approx(value[0] - value[2], abs=1e-12)
    units = np.arange(N) if clusters is None else clusters
    # the change of the means, along the gradient of their ratio
    whole = means_of(SHARES, numbers, assumption)
    gradient = np.stack([1 / whole[:, 1], -whole[:, 0] / whole[:, 1] ** 2], axis=1)
    moved = [
        (
            (whole - means_of(SHARES[units != one], numbers[units != one], assumption)) * gradient
        ).sum(axis=1)
        for one in np.unique(units)
    ]
    gaps = np.array(moved)[:, 0] - np.array(moved)[:, 2]
    assert found.standard_error == pytest.approx(math.sqrt((gaps**2).sum()), rel=1e-9)
    z = found.difference / found.standard_error
    assert found.n_resamples == 0
    assert found.pvalue == pytest.approx(2 * NormalDist().cdf(-abs(z)), rel=1e-9)
    reach = NormalDist().inv_cdf(0.975) * found.standard_error
    assert found.confidence_interval == pytest.approx(
        (found.difference - reach, found.difference + reach)
    )


def means_of(shares: Array, numbers: Array, assumption: str) -> Array:
    if assumption == LEAST_SQUARES:
        return np.asarray(np.linalg.lstsq(shares, numbers, rcond=None)[0])
    return np.asarray(shares.T @ numbers / shares.sum(axis=0)[:, None])


def studentized(share: Array, y: Array, assumption: str) -> float:
    """Return the gap of two groups in a mean over its error, by loops."""
    shares = np.stack([share, 1 - share], axis=1)
    if assumption == LEAST_SQUARES:
        means = np.linalg.lstsq(shares, y, rcond=None)[0]
        residual = np.repeat((y - shares @ means)[:, None], 2, axis=1)
        weights = shares @ np.linalg.inv(shares.T @ shares)
    else:
        means = shares.T @ y / shares.sum(axis=0)
        residual = y[:, None] - means
        weights = shares / shares.sum(axis=0)
    moved = weights * residual
    gap, error = means[0] - means[1], math.sqrt(((moved[:, 0] - moved[:, 1]) ** 2).sum())
    return float(gap / error)


@both
def test_two_groups_have_the_pvalue_of_all_permutations(assumption: str) -> None:
    share = np.array([0.9, 0.85, 0.7, 0.3, 0.2, 0.15, 0.6])
    y = np.array([2.0, 1.0, 3.5, -1.0, 0.4, 0.0, 0.7])
    found = gap_test(
        y_true=np.zeros(7),
        y_pred=y,
        metric="mean_prediction",
        group_probabilities={"a": share, "b": 1 - share},
        proxy_assumption=assumption,
        n_resamples=9999,
    )
    every = np.array(
        [studentized(share[[*order]], y, assumption) for order in itertools.permutations(range(7))]
    )
    own = studentized(share, y, assumption)
    assert found.statistic == pytest.approx(own)
    tail = min((every >= own - 1e-9).mean(), (every <= own + 1e-9).mean())
    extreme = round(found.pvalue * 10_000 / 2) - 1
    low, high = binom.interval(0.9999, 9999, tail)
    assert low <= extreme <= high


@both
@pytest.mark.parametrize("metric", ["false_positive_rate", "selection_rate", "f1_score"])
def test_certain_probabilities_give_the_pooled_test_of_known_groups(
    metric: str, assumption: str
) -> None:
    group = RNG.integers(0, 2, N)
    columns = {"y_true": LABEL, "y_pred": PREDICTED}
    known = gap_test(
        **columns,
        metric=metric,
        sensitive_features=np.array([*"ab"])[group],
        scheme="pooled",
        variance="delta",
    )
    found = gap_test(
        **columns,
        metric=metric,
        group_probabilities={"b": group, "a": 1 - group},
        proxy_assumption=assumption,
        n_resamples=9999,
    )
    for name in ("difference", "standard_error", "statistic"):
        assert getattr(found, name) == pytest.approx(getattr(known, name), abs=1e-10)
    assert found.values == pytest.approx(known.values)
    assert {one: counts["rows"] for one, counts in found.counts.items()} == {
        one: counts["rows"] for one, counts in known.counts.items()
    }
    extreme = round(found.pvalue * 10_000 / 2) - 1
    low, high = binom.interval(0.9999, 9999, known.pvalue / 2)
    assert low <= extreme <= high


@both
def test_rows_threads_names_and_copies_change_nothing(assumption: str) -> None:
    share, order = SHARES[:, 0].round(2), RNG.permutation(N)
    cell = (share * 4).astype(int)
    shares = {"a": (cell + 0.5) / 5, "b": 1 - (cell + 0.5) / 5}
    given = {"y_pred": PREDICTED, "proxy_assumption": assumption, "n_resamples": 2999}
    with only_monte_carlo():
        whole = gap_test(**given, group_probabilities=shares, proxy=cell)
        moved = {name: one[order] for name, one in shares.items()}
        others = [
            gap_test(**given, group_probabilities=shares, proxy=cell, n_jobs=2),
            gap_test(
                **given | {"y_pred": PREDICTED[order]}, group_probabilities=moved, proxy=cell[order]
            ),
            gap_test(**given, group_probabilities={"b": shares["b"], "a": shares["a"]}, proxy=cell),
        ]
        swapped = gap_test(**given, group_probabilities=shares, groups=("b", "a"))
        count = RNG.integers(0, 3, N)
        counted = gap_test(**given, group_probabilities=shares, count=count)
        copied = gap_test(
            **given | {"y_pred": np.repeat(PREDICTED, count)},
            group_probabilities={name: np.repeat(one, count) for name, one in shares.items()},
        )
    for one in others:
        assert one.pvalue == whole.pvalue
        assert one.bounds == pytest.approx(whole.bounds)
        assert one.bounds_interval == pytest.approx(whole.bounds_interval)
    assert swapped.pvalue == whole.pvalue
    assert swapped.difference == pytest.approx(-whole.difference)
    assert counted.pvalue == copied.pvalue


@both
def test_a_frame_a_mapping_and_names_of_columns_say_the_same(assumption: str) -> None:
    columns = shares_of(SHARES)
    given = {"groups": ("a", "b"), "proxy_assumption": assumption, "n_resamples": 0}
    data = {**columns, "y": PREDICTED}
    found = [
        gap_test(**given, y_pred=PREDICTED, group_probabilities=columns),
        gap_test(**given, y_pred="y", data=data, group_probabilities=[*"cab"]),
        gap_test(**given, y_pred="y", data=data, group_probabilities={"race": [*"abc"]}),
        gap_test(**given, y_pred="y", data=data, group_probabilities={one: one for one in "abc"}),
    ]
    assert len({one.pvalue for one in found}) == 1
    assert [one.attribute for one in found] == ["", "", "race", ""]


@both
def test_every_result_says_what_it_rests_on_and_what_happens_if_that_fails(assumption: str) -> None:
    given: dict[str, Any] = {
        "y_pred": PREDICTED,
        "group_probabilities": {"race": shares_of(SHARES)},
        "proxy_assumption": assumption,
    }
    single = gap_test(**given, groups=("a", "b"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        many = audit(**given, metrics="selection_rate", rng=1, min_group_size=1)
        margin = equivalence_test(**given, groups=("a", "b"), metric="selection_rate", margin=0.5)
        read = fairperm.Audit.from_dict(json.loads(json.dumps(many.to_dict())))
    of_selection: Any = {"proxy_assumption": assumption}
    selection = fairperm.selection_audit(
        PREDICTED, group_probabilities=shares_of(SHARES), **of_selection
    )
    answers = [one.answer for one in (single, many, margin, read, selection)]
    for text in (*answers, repr(single), many.to_html(), selection.to_html(), repr(many)):
        flat = " ".join(text.split())
        assert f"({assumption}, " in flat
        assert "this rests on an assumption" in flat
        assert "If it does, as where" in flat
    again: Any = read.rows[0].result
    assert again.proxy_assumption == assumption
    assert many.rows[0].pvalue == pytest.approx(single.pvalue)
    call = f"proxy_assumption='{assumption}'"
    assert (call in html.unescape(many.to_html())) == (assumption != LEAST_SQUARES)
    assert [row.reason for row in many.omnibus] == [
        "A test of all groups at once needs groups that are known, not group_probabilities."
    ]


def test_effective_sizes_decide_which_groups_are_judged() -> None:
    share = np.clip(SHARES[:, 0], 0.45, 0.55)  # next to no information
    with pytest.warns(FairpermWarning, match="Nothing was judged"):
        (row,) = audit(
            y_pred=PREDICTED,
            group_probabilities={"a": share, "b": 1 - share},
            metrics="selection_rate",
            rng=1,
        )
    assert row.verdict == "too small"
    assert "effective rows; the minimum is 50" in row.reason
    gram = np.stack([share, 1 - share]) @ np.stack([share, 1 - share]).T
    few = 1 / np.diagonal(np.linalg.inv(gram)).max()  # 1/Σω² of weights ω = W(W'W)⁻¹
    assert f"{math.floor(few):,} effective row" in row.reason


def test_a_rate_that_cannot_be_and_few_influential_rows_are_noted() -> None:
    rare = np.zeros(N)
    rare[:3] = 1
    with (
        pytest.warns(FairpermWarning, match="rows? of groups 'a' and 'b' shows? how the gap"),
        pytest.warns(FairpermWarning, match="is not between 0 and 1: there are too few rows"),
    ):
        permutation_test(
            y_pred=rare,
            group_probabilities=shares_of(SHARES),
            groups=("a", "b"),
            metric="selection_rate",
        )
