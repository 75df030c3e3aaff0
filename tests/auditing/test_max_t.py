"""Joint draws: statistics are those of the gap tests, and the metrics of a pair share draws."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fairperm.auditing.max_t import Family, max_t
from fairperm.data.arguments import Inputs
from fairperm.data.reading import read_table
from fairperm.engines.resampling.blocks import Resampling
from fairperm.inference.multiplicity import two_tailed_max_t
from fairperm.metrics import get_metric
from fairperm.metrics.definition import JointMetric, Kind
from tests.support.simulations import Group, Procedure, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

METRICS = ("true_positive_rate", "accuracy", "f1_score")
GROUPS = ("a", "b", "c")
PAIRS = tuple(itertools.combinations(GROUPS, 2))


def counts(seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    groups = (Group(200, 0.6, 0.8), Group(120, 0.4, 0.7), Group(90, 0.3, 0.85))
    return np.stack([group.draw(1, rng)[0] for group in groups])[None]


def adjusted(
    table: Any,
    pairs: Sequence[tuple[Any, Any]],
    metrics: Sequence[str] = METRICS,
    alternative: str = "two-sided",
    **changes: Any,
) -> Any:
    """Return the p-values by pair and metric."""
    options = {"n_resamples": 499, "seed": 1, "n_jobs": 1, "progress": False, **changes}
    parts: Any = tuple(get_metric(name).parts for name in metrics)
    families = [Family(table, pair, parts) for pair in pairs]
    resampling = Resampling(**options)
    found = max_t(families, stratum_weights=None, resampling=resampling, alternative=alternative)
    return found.reshape(len(pairs), len(metrics))


def test_a_single_hypothesis_is_the_pooled_gap_test() -> None:
    two = counts()[:, :2]
    for metric, alternative in itertools.product(METRICS, ("two-sided", "symmetric")):
        options: dict[str, Any] = {"alternative": alternative, "n_resamples": 4999}
        found = adjusted(table_of(two), [("a", "b")], [metric], **options)
        alone = Procedure(metric, "pooled", **options)(two)
        exact = alone.pvalue
        error = math.sqrt(2 * exact * (1 - exact) / 5000) * (1 if alone.exact else math.sqrt(2))
        if alone.ordering == alternative:  # exact tests of rates are always by size
            assert found[0, 0] == pytest.approx(exact, abs=5 * error + 2 / 5000)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the step-down procedure is given, in the upper tail."""
    kept: dict[str, Any] = {}

    def spy(observed: Any, permuted: Any, rounding: Any) -> Any:
        np.testing.assert_array_equal(observed[1], -observed[0])
        np.testing.assert_array_equal(permuted[1], -permuted[0])
        kept.update(observed=observed[0], permuted=permuted[0])
        return two_tailed_max_t(observed, permuted, rounding)

    monkeypatch.setattr("fairperm.auditing.max_t.two_tailed_max_t", spy)
    return kept


def test_metrics_share_their_draws(seen: dict[str, Any]) -> None:
    """Observed statistics are the gap tests', and complements' draws are the same draws."""
    metrics = ("true_positive_rate", "false_negative_rate", "f1_score")
    adjusted(table_of(counts(), GROUPS), PAIRS, metrics)
    permuted = seen["permuted"].reshape(-1, len(PAIRS), len(metrics))
    np.testing.assert_allclose(permuted[..., 0], permuted[..., 1], atol=1e-9)
    for place, (pair, metric) in enumerate(itertools.product(PAIRS, metrics)):
        sides = [GROUPS.index(one) for one in pair]
        alone = Procedure(metric, "pooled", n_resamples=9)(counts()[:, sides])
        sign = -1 if metric == "false_negative_rate" else 1  # as its complement, whose gap is −gap
        assert seen["observed"][place] == pytest.approx(sign * alone.statistic, rel=1e-9)


def test_metrics_of_a_pair_depend_and_pairs_do_not(seen: dict[str, Any]) -> None:
    adjusted(table_of(counts(), GROUPS), PAIRS, n_resamples=4999)
    correlation = np.corrcoef(seen["permuted"].T)
    same_pair = np.kron(np.eye(len(PAIRS)), np.ones((3, 3))) > 0
    limit = 5 / math.sqrt(4999)
    assert correlation[same_pair].min() > limit
    assert np.abs(correlation[~same_pair]).max() < limit


def test_other_groups_have_no_part_in_a_pair(seen: dict[str, Any]) -> None:
    """A third group, however large and unlike, changes no draw of the other two."""
    adjusted(table_of(counts()[:, :2], GROUPS[:2]), PAIRS[:1])
    alone = seen["permuted"]
    many = counts()
    many[:, 2] *= 100
    adjusted(table_of(many, GROUPS), PAIRS)
    np.testing.assert_array_equal(seen["permuted"][:, :3], alone)


def test_a_complement_costs_nothing() -> None:
    table = table_of(counts(), GROUPS)
    one = adjusted(table, PAIRS, ["true_positive_rate"])
    both = adjusted(table, PAIRS, ["true_positive_rate", "false_negative_rate"])
    np.testing.assert_allclose(both, np.hstack([one, one]))


def test_joint_hypotheses_are_the_larger_of_their_parts() -> None:
    table = table_of(counts(), GROUPS)
    parts = ["true_positive_rate", "false_positive_rate"]
    together = adjusted(table, [("a", "b")], ["equalized_odds"], "symmetric")
    apart = adjusted(table, [("a", "b")], parts, "symmetric")
    assert together[0, 0] == pytest.approx(apart.min())


def test_threads_change_no_number() -> None:
    table = table_of(counts(), GROUPS)
    expected = adjusted(table, PAIRS, n_resamples=2500)
    np.testing.assert_array_equal(adjusted(table, PAIRS, n_resamples=2500, n_jobs=2), expected)


def test_ranks_and_totals_together_in_strata() -> None:
    rng = np.random.default_rng(3)
    n = 300
    label = rng.integers(0, 2, n)
    parts: Any = tuple(get_metric(name).parts[0] for name in ("roc_auc", "brier_score"))
    joint: Any = JointMetric(name="both", meaning="", parts=parts, kind=Kind.PROBABILITY)
    data: dict[str, Any] = {
        "y_true": label,
        "y_score": 1 / (1 + np.exp(-rng.normal(label))),
        "sensitive_features": np.array(list("abc"))[rng.integers(3, size=n)],
        "control_features": rng.integers(2, size=n),
    }
    table = read_table(Inputs(**data), joint)
    found = adjusted(table, PAIRS, ["roc_auc", "brier_score"], n_resamples=99)
    assert ((found > 0) & (found <= 1)).all()
