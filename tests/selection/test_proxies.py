"""An audit of selection whose groups are known only as probabilities."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairperm import selection_audit

Array = NDArray[Any]
RNG = np.random.default_rng(4)
N = 3000
SHARES = RNG.dirichlet([0.3, 0.5, 0.8], N)
GROUP = (RNG.random((N, 1)) > SHARES.cumsum(axis=1)[:, :-1]).sum(axis=1)
SELECTED = RNG.random(N) < np.array([0.3, 0.45, 0.5])[GROUP]


def audit_shares(shares: Array, **given: Any) -> Any:
    probabilities = {"race": dict(zip("abc", shares.T, strict=True))}
    return selection_audit(SELECTED, group_probabilities=probabilities, **given)


def test_ratios_have_fiellers_limits_from_refits_without_each_applicant() -> None:
    found = audit_shares(SHARES)
    rate = np.linalg.lstsq(SHARES, SELECTED.astype(float), rcond=None)[0]
    assert [row.rate for row in found] == pytest.approx(rate)
    assert [row.applicants for row in found] == SHARES.sum(axis=0).round().tolist()
    gram = np.linalg.inv(SHARES.T @ SHARES)
    hat = np.einsum("ij,jk,ik->i", SHARES, gram, SHARES)
    moved = SHARES @ gram * ((SELECTED - SHARES @ rate) / (1 - hat))[:, None]
    # the ratio of a to c, which is best: two groups of three, so that level 1 - 0.05/(2·3·2)
    ratio = rate[0] / rate[2]
    limit = found.rows[0].interval[1]
    at_limit = rate[0] - limit * rate[2]
    error = math.sqrt(((moved[:, 0] - limit * moved[:, 2]) ** 2).sum())
    assert -at_limit / error == pytest.approx(NormalDist().inv_cdf(1 - 0.05 / 12), rel=1e-6)
    assert found.rows[0].impact_ratio == pytest.approx(ratio)
    contrast = moved[:, 0] - moved[:, 2]
    z = (rate[0] - rate[2]) / math.sqrt((contrast**2).sum())
    assert found.rows[0].standard_deviations == pytest.approx(z)
    assert found.rows[0].pvalue == pytest.approx(3 * 2 * NormalDist().cdf(z))
    assert found.rows[2].pvalue == 1
    assert found.proxy_assumption == "outcome_given_group"
    assert "race: a's selection rate is" in found.answer


@pytest.mark.parametrize("assumption", ["outcome_given_group", "group_given_proxy"])
def test_certain_probabilities_give_nearly_the_audit_of_known_groups(assumption: str) -> None:
    likely = audit_shares(np.eye(3)[GROUP], proxy_assumption=assumption)
    known = selection_audit(SELECTED, sensitive_features={"race": np.array([*"abc"])[GROUP]})
    for one, other in zip(likely, known, strict=True):
        assert (one.applicants, one.selected) == (other.applicants, other.selected)
        assert one.impact_ratio == pytest.approx(other.impact_ratio)
        assert one.interval == pytest.approx(other.interval, abs=0.01)
        assert one.shortfall == pytest.approx(other.shortfall)


def test_groups_of_few_effective_applicants_have_no_ratio() -> None:
    shares = SHARES.copy()
    shares[:, 0] = np.arange(N) < 15
    rest = shares[:, 1:].sum(axis=1)
    shares[:, 1:] *= ((1 - shares[:, 0]) / rest)[:, None]
    found = audit_shares(shares, minimum_share=0)
    assert [row.impact_ratio is None for row in found] == [True, False, False]


@pytest.mark.validate
def test_simultaneous_intervals_hold_together() -> None:
    rates, data_sets, missed = np.array([0.3, 0.45, 0.5]), 1000, 0
    rng = np.random.default_rng(9)
    for _ in range(data_sets):
        shares = rng.dirichlet([0.3, 0.5, 0.8], 1500)
        group = (rng.random((1500, 1)) > shares.cumsum(axis=1)[:, :-1]).sum(axis=1)
        found = selection_audit(
            rng.random(1500) < rates[group],
            group_probabilities=dict(zip("abc", shares.T, strict=True)),
        )
        inside = [
            row.interval is not None and row.interval[0] <= truth <= row.interval[1]
            for row, truth in zip(found, rates / rates.max(), strict=True)
        ]
        missed += not all(inside)
    assert missed <= 73  # 0.999 quantile of the binomial at 0.05
