"""Adjusted intervals show the verdicts of an audit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fairperm.hypothesis_tests.margins.restricted_rates import Rates
from fairperm.inference.multiplicity import adjust_pvalues, interval_level
from fairperm.inference.null import agree_at_margin
from tests.support.audits import DATA, check_agreement, quietly, selected

METRICS = ["selection_rate", "false_negative_rate", "f1_score", "balanced_accuracy", "roc_auc"]
COUNTS = [(150, 200), (100, 200), (95, 190), (82, 160), (30, 60)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"adjust": "bh"},
        {"adjust": "by", "alternative": "less"},
        {"adjust": None, "alpha": 0.2},
        {"margin": 0.05, "alternative": "greater"},
        {"margin": {"roc_auc": 0.3, "selection_rate": 0.02}},
    ],
    ids=str,
)
def test_adjusted_intervals_agree_with_verdicts(options: dict[str, Any]) -> None:
    metrics = METRICS if "alternative" in options else [*METRICS, "equalized_odds"]
    given = DATA["few scores"] | {"metrics": metrics, "rng": 3, "n_resamples": 199}
    check_agreement(quietly(**given, **options))


@pytest.mark.parametrize("margin", [None, 0.02, 0.2])
@pytest.mark.parametrize("adjust", ["holm", "bh", "by", None])
def test_adjusted_intervals_of_rates_agree_with_verdicts(
    adjust: str | None, margin: float | None
) -> None:
    given = selected(*COUNTS) | {"metrics": "selection_rate", "rng": 3}
    check_agreement(quietly(**given, adjust=adjust, margin=margin))


def test_levels_of_adjusted_intervals() -> None:
    given = selected((150, 200), (100, 200), (95, 190)) | {"metrics": "selection_rate", "rng": 3}
    rows = quietly(**given).rows
    for row, ((k, m), (j, n)) in zip(
        rows, [(COUNTS[0], COUNTS[1]), (COUNTS[0], COUNTS[2]), (COUNTS[1], COUNTS[2])], strict=True
    ):
        rates = Rates((k, m), (j, n))
        critical = rates.binomials.critical("two-sided", 1 - 0.05 / 3)
        expected = rates.interval(critical)
        assert row.adjusted_interval == pytest.approx(expected)
    assert all(
        row.adjusted_interval == row.confidence_interval for row in quietly(**given, adjust=None)
    )
    assert {"adjusted_low", "adjusted_high"} <= set(rows[0].cells())
    assert rows[0].to_dict()["adjusted_interval"] == list(rows[0].adjusted_interval or ())


def test_intervals_of_false_discovery_rates_have_the_level_of_the_last_rejection() -> None:
    pvalues = np.array([0.001, 0.01, 0.02, 0.3, 0.9])
    assert interval_level(pvalues, "bh", 0.05) == pytest.approx(1 - 0.05 * 3 / 5)
    harmonic = sum(1 / rank for rank in range(1, 6))
    n_rejected = int((adjust_pvalues(pvalues, "by") <= 0.05).sum())
    assert interval_level(pvalues, "by", 0.05) == pytest.approx(
        1 - 0.05 * n_rejected / 5 / harmonic
    )
    # a hypothesis is rejected exactly if an interval at that level excludes 0
    rng = np.random.default_rng(1)
    for _ in range(200):
        pvalues = rng.beta(0.5, 2, rng.integers(1, 12))
        for method in ("bh", "by"):
            is_rejected = adjust_pvalues(pvalues, method) <= 0.1
            level = interval_level(pvalues, method, 0.1)
            if is_rejected.any():
                np.testing.assert_array_equal(pvalues <= 1 - level + 1e-12, is_rejected)


def test_too_few_draws_leave_the_widest_interval() -> None:
    audit = quietly(**DATA["few scores"], metrics="roc_auc", rng=1, n_resamples=19)
    assert [row.adjusted_interval for row in audit] == [(-1.0, 1.0)] * 3


@pytest.mark.parametrize(
    ("interval", "estimate", "is_beyond", "is_within", "expected"),
    [
        ((0.05, 0.3), 0.2, True, False, (math.nextafter(0.1, 1), 0.3)),
        ((-0.3, -0.05), -0.2, True, False, (-0.3, -math.nextafter(0.1, 1))),
        ((0.12, 0.3), 0.2, False, False, (0.1, 0.3)),
        ((-0.05, 0.08), 0.02, False, False, (-0.05, 0.1)),
        ((-0.2, 0.08), 0.02, False, False, (-0.2, 0.08)),
        ((-0.08, 0.05), -0.02, False, False, (-0.1, 0.05)),
        ((-0.2, 0.2), 0.0, False, True, (math.nextafter(-0.1, 0), math.nextafter(0.1, 0))),
    ],
)
def test_agreement_at_a_margin(
    interval: tuple[float, float],
    estimate: float,
    is_beyond: bool,
    is_within: bool,
    expected: tuple[float, float],
) -> None:
    found = agree_at_margin(interval, 0.1, estimate, is_beyond=is_beyond, is_within=is_within)
    assert found == expected
