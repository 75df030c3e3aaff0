"""The study of small groups: its grid, its peers against scipy, and what it writes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

import fairperm
from studies.calibration.designs import DESIGNS, FAMILIES, Design
from studies.calibration.peers import PEERS, WELCH, S, run_peers
from studies.calibration.rivals import DEFAULT
from studies.calibration.small_groups import DIRECTIONS, TESTS, Tally, run_default
from tests.support.simulations import at_most


def test_grid_has_twice_as_many_other_designs_as_known_ones() -> None:
    known = [one for one in DESIGNS if one.known]
    assert len(DESIGNS) >= 3 * len(known) >= 60
    assert len({(one.kind, one.name) for one in DESIGNS}) == len(DESIGNS)
    assert {one.kind for one in DESIGNS} == {"rows", "weights", "clusters", "strata", "models"}


@pytest.mark.parametrize("family", FAMILIES)
def test_families_have_mean_0_and_deviation_1(family: str) -> None:
    n = 400_000
    drawn = FAMILIES[family](np.random.default_rng(0), n)
    assert abs(drawn.mean()) < 4 / np.sqrt(n)
    assert drawn.std() == pytest.approx(1, abs=0.2)  # the squares of heavy tails vary


def test_welch_is_that_of_scipy() -> None:
    rng = np.random.default_rng(1)
    data_sets = [DESIGNS[0].draw(rng, 1) for _ in range(3)]
    found = run_peers(data_sets, 19, rng)[:, PEERS.index(WELCH)]
    for units, p in zip(data_sets, found, strict=True):
        sides = (units.total[units.group == g] for g in (0, 1))
        assert p == pytest.approx(stats.ttest_ind(*sides, equal_var=False).pvalue)


@pytest.mark.parametrize("kind", sorted({one.kind for one in DESIGNS}))
def test_default_finds_what_the_permutation_peer_finds(kind: str) -> None:
    """A gap of ten standard errors; one of two and a half where changes are rare."""
    rng = np.random.default_rng(2)
    design = next(one for one in reversed(DESIGNS) if one.kind == kind)
    units = design.draw(rng, 1 if kind == "models" else 4)
    p, _ = run_default(design, units, rng)
    assert p <= 0.05
    assert run_peers([units], 299, rng)[0, PEERS.index(S)] <= 0.05


@pytest.mark.validate
@pytest.mark.parametrize(
    "design",
    [
        one
        for one in DESIGNS
        if one.known and one.kind in {"weights", "clusters"} and "log-normal" not in one.name
    ],
    ids=lambda one: one.name,
)
def test_leave_one_out_errors_hold_levels_that_linear_ones_do_not(design: Design) -> None:
    """Few clusters or heavy rows still have about 0.1 at a nominal 0.05; S has linear errors."""
    n, most = 300, 0.06 if "one row" in design.name else 0.1
    rng = np.random.default_rng(11)
    data_sets = [design.draw(rng, 0) for _ in range(n)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        rejected = sum(run_default(design, one, rng)[0] <= 0.05 for one in data_sets)
    assert rejected <= at_most(most, n)
    linear = run_peers(data_sets, 299, rng)[:, PEERS.index(S)]
    assert (linear <= 0.05).sum() > at_most(0.05, n)
    assert (linear <= 0.05).sum() > rejected


def test_tally_counts_rejections_with_and_without_notes() -> None:
    noted = np.repeat([0.0, 1.0], [60, 40])
    p = np.where(np.arange(100) % 10 == 0, 0.01, 0.5)
    columns = np.column_stack([p, noted, np.full((100, len(PEERS)), 0.5)])
    tally = Tally(DESIGNS[0], dict.fromkeys(DIRECTIONS, columns))
    assert tally.share(DEFAULT) == 0.1
    assert tally.share(S) == 0
    assert tally.noted == 0.4
    assert tally.unnoted_level == 0.1
    assert {f"level: {test}" for test in TESTS} <= tally.cells().keys()
