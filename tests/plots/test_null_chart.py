"""The null distribution: its tails are the p-value."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from fairperm import plots
from fairperm.errors import InputError
from tests.support.charts import a_test, data_with, spec_of


def tail_and_total(spec: dict[str, Any]) -> tuple[float, float]:
    bars = {(one["from"], one["kind"]): one for one in data_with(spec, "from_share")}.values()
    sizes = [(one["kind"], one["to_share"] - one["from_share"]) for one in bars]
    return sum(n for kind, n in sizes if kind == "tail"), sum(n for _, n in sizes)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize(("metric", "n"), [("fnr", 200), ("fnr", 3000), ("fnr", 12)])
def test_exact_tails_are_the_pvalue(metric: str, n: int, alternative: str) -> None:
    result = a_test(metric, alternative=alternative, n=n, scheme="denominator")
    assert result.exact
    tail, total = tail_and_total(spec_of(result.plot()))
    assert total == pytest.approx(1)
    assert tail == pytest.approx(result.pvalue)


@pytest.mark.parametrize(
    ("metric", "alternative"),
    [
        ("roc_auc", "two-sided"),
        ("roc_auc", "symmetric"),
        ("roc_auc", "greater"),
        ("roc_auc", "less"),
    ],
)
def test_random_tails_are_the_share_of_extreme_draws(metric: str, alternative: str) -> None:
    result = a_test(metric, alternative=alternative, n_resamples=999)
    assert not result.exact
    tail, total = tail_and_total(spec_of(result.plot()))
    assert total == pytest.approx(1)
    n_tails = 2 if alternative == "two-sided" else 1  # only the smaller is coloured
    assert n_tails * (999 * tail + 1) / 1000 == pytest.approx(result.pvalue)


def test_null_shows_its_numbers() -> None:
    result = a_test("roc_auc", n_resamples=99)
    spec = spec_of(result.plot())
    title = spec["title"]
    assert title["text"] == "Could chance alone explain this gap?"
    assert spec["description"].startswith("Could chance alone explain this gap? ROC AUC, a − b. ")
    assert title["subtitle"][0] == "ROC AUC, a − b"
    assert "of 99 random permutations" in title["subtitle"][1]
    assert f"(p = {result.pvalue:.4f})" in title["subtitle"][2]


def test_tail_of_an_extreme_gap_is_not_zero_percent() -> None:
    """The probability of so large a gap is lost in a sum of probabilities, but it is not zero."""
    statistics, observed = [-1.0, 0.0, 1.0], 40.0
    exact = plots.null_distribution(statistics, observed, probabilities=[0.25, 0.5, 0.25])
    assert exact.to_dict()["title"]["subtitle"][0].startswith("Coloured: < 0.01 % of all ")
    drawn = plots.null_distribution(statistics, observed)
    assert drawn.to_dict()["title"]["subtitle"][0].startswith("Coloured: none of 3 random ")


@pytest.mark.parametrize("observed", [math.nan, math.inf, 0.0, 1e300, -57.0])
@pytest.mark.parametrize(
    "draws",
    [
        [],
        [1.0] * 50,
        [math.nan, 1.0, -1.0, math.inf],
        np.random.default_rng(1).normal(size=500),
        np.random.default_rng(1).standard_cauchy(size=500),
        np.repeat(np.arange(500.0), 2),
    ],
)
def test_null_survives_any_numbers(observed: float, draws: Any) -> None:
    spec = plots.null_distribution(draws, observed).to_dict(validate=False)
    json.dumps(spec, allow_nan=False)
    share = np.isfinite(draws).mean() if len(draws) else 0
    assert tail_and_total(spec)[1] == pytest.approx(share)
    if 0 < share < 1:
        assert any("no finite statistic" in line for line in spec["title"]["subtitle"])
    if not math.isfinite(observed):
        assert "The observed statistic is" in spec["title"]["subtitle"][-1]
    limits = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert limits[0] < limits[1]
    bars = data_with(spec, "from_share")
    assert all(limits[0] - 1 <= one["from"] < one["to"] <= limits[1] + 1 for one in bars)


def test_null_refuses_other_probabilities() -> None:
    rule = r"probabilities must be as many as statistics \(2\); got 1"
    with pytest.raises(InputError, match=rule):
        plots.null_distribution([1.0, 2.0], 1.0, probabilities=[1.0])
    with pytest.raises(InputError, match=r"alternative must be one of .*; got 'both'"):
        plots.null_distribution([1.0, 2.0], 1.0, alternative="both")
