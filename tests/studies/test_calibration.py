"""The calibration study: its grid, every test in it against its own definition, its verdicts."""

from __future__ import annotations

import csv
import math
import re
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportions_ztest

import fairperm
import studies
from studies import runner
from studies import simulate as populations
from studies.calibration import grid, rivals, study
from studies.calibration.grid import Setting
from studies.calibration.study import NOTED, OK, UNDECIDED, UNNOTED, Tally
from studies.simulating import simulate_data_sets
from tests.support.simulations import at_most, between

NULLS, GAPS, BOUND = grid.null_settings(), grid.gap_settings(), grid.bound_settings()
FNR = Setting("false_negative_rate", (200, 200), "the paper's", populations.PAPER_FNR)
SMALL: dict[str, Any] = {
    "true_positive_rate": populations.Rates((60, 90), (0.7, 0.4), (0.8, 0.7)),
    "f1_score": populations.Rates((60, 90), (0.7, 0.4), (0.8, 0.7)),
    "balanced_accuracy": populations.Rates((60, 90), (0.7, 0.4), (0.8, 0.7)),
    "roc_auc": populations.Scores((60, 90), (0.5, 0.4), (0.85, 0.75)),
    "mean_squared_error": populations.Regression((60, 90), (1.0, 1.4)),
}

# The grid.


def test_grid_is_large_enough_and_has_what_it_says() -> None:
    assert len(NULLS) >= 60
    assert len(GAPS) >= 30
    assert all(setting.is_null for setting in NULLS)
    assert not any(setting.is_null for setting in GAPS)
    assert {(one.metric, one.place) for one in GAPS} <= {(one.metric, one.place) for one in NULLS}
    assert len({one.name for one in NULLS + GAPS}) == len(NULLS + GAPS)
    for metric in grid.METRICS:
        sizes = {one.n for one in NULLS if one.metric == metric}
        assert min(map(min, sizes)) == 30
        assert max(map(max, sizes)) == 5000
        assert any(first * 10 == second for first, second in sizes)


@pytest.mark.parametrize("setting", NULLS + GAPS + BOUND, ids=lambda one: one.name)
def test_truths_are_those_that_were_wanted(setting: Setting) -> None:
    first, second = setting.population.truth(setting.metric).values()
    wanted = grid.TRUTHS[setting.metric]
    if setting not in GAPS:
        assert (first, second) == pytest.approx((wanted[0], wanted[0]))
    else:
        assert pytest.approx((first, second)) in (wanted, wanted[::-1])


def test_gaps_go_both_ways() -> None:
    truths = [one.population.truth(one.metric).values() for one in GAPS if one.n == (200, 2000)]
    assert sum(first > second for first, second in truths) == len(truths) / 2


@pytest.mark.validate
def test_settings_at_the_bound_have_just_enough_rows_and_are_not_in_the_grid() -> None:
    assert not {one.name for one in BOUND} & {one.name for one in NULLS}
    rng = np.random.default_rng(1)
    for setting in BOUND:
        found = [rivals.run_tests(setting, 1, rng, rivals=False)[rivals.COUNT] for _ in range(101)]
        assert 19 <= np.median(found) <= 28, setting.name


# Every test against its own definition.


def sample(metric: str, n_resamples: int, seed: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the rows of a data set, and the p-values that the study has of it."""
    setting = Setting(metric, (60, 90), "", SMALL[metric])
    table = rivals.draw_table(setting.population, np.random.default_rng(seed))
    columns = {name: np.repeat(one, table.count) for name, one in table.columns.items()}
    columns["group"] = np.repeat(np.array(table.groups)[table.group], table.count)
    found = rivals.run_tests(setting, n_resamples, np.random.default_rng(seed))
    return columns, dict(zip(rivals.TESTS, found, strict=False))


def asked(metric: str, columns: dict[str, Any], **options: Any) -> float:
    """Return the p-value of the public function."""
    options |= {name: name for name in columns if name != "group"}
    options |= {"metric": metric, "rng": 3, "progress": False, "data": columns}
    return fairperm.permutation_test(sensitive_features="group", **options).pvalue


def close(p: float, expected: float, draws: int, others: int = 10**9) -> bool:
    """Tell whether counting draws explains the difference of two p-values."""
    p_less = max(expected, 1 / draws)
    error = math.sqrt(p_less * (1 - min(p_less, 0.5)) * (1 / draws + 1 / others))
    return abs(p - expected) <= 4 * error + 1 / draws


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("metric", SMALL)
def test_permutation_tests(metric: str) -> None:
    n = 1999
    columns, found = sample(metric, n, 5)
    pooled = partial(asked, metric, columns, scheme="pooled", n_resamples=20_000)
    assert close(found[rivals.PLAIN], pooled(variance=None), n, 20_000)
    wald = {"true_positive_rate": "wald", "f1_score": "delta", "roc_auc": "delong"}.get(metric)
    if wald:
        assert close(found[rivals.WALD], pooled(variance=wald), n, 20_000)
    else:
        assert math.isnan(found[rivals.WALD])
    assert close(found[rivals.DEFAULT], asked(metric, columns, n_resamples=20_000), n, 20_000)


@pytest.mark.parametrize("metric", ["true_positive_rate", "mean_squared_error"])
def test_bootstrap_tests_by_loops(metric: str) -> None:
    n = 1999
    columns, found = sample(metric, n, 6)
    rng = np.random.default_rng(1)
    if metric == "true_positive_rate":
        value, weight = columns["y_true"] & columns["y_pred"], columns["y_true"]
    else:
        value, weight = (columns["y_true"] - columns["y_pred"]) ** 2, np.ones(150)
    first = columns["group"] == "a"

    def gap(mine: Any, rest: Any) -> float:
        means = [value[rows].sum() / weight[rows].sum() for rows in (mine, rest)]
        return float(means[0] - means[1])

    mine, rest = np.flatnonzero(first), np.flatnonzero(~first)
    observed = gap(mine, rest)
    resampled = np.array([gap(rng.choice(mine, 60), rng.choice(rest, 90)) for _ in range(n)])
    order = [rng.permutation(150) for _ in range(n)]
    shuffled = np.array([gap(one[:60], one[60:]) for one in order])
    basic = (np.abs(resampled - observed) >= abs(observed)).mean()
    percentile = 2 * min((resampled <= 0).mean(), (resampled >= 0).mean())
    statistic = abs(observed) / resampled.std(ddof=1)
    lift = (np.abs(shuffled) / shuffled.std(ddof=1) >= statistic).mean()
    assert close(found[rivals.BASIC], basic, n, n)
    assert abs(found[rivals.PERCENTILE] - percentile) <= 2 * (4 * 0.5 / math.sqrt(n))
    # both deviations are known up to one part in √(2n), which moves the p-value too
    room = 4 * 2 * stats.norm.pdf(statistic) * statistic * 2 / math.sqrt(2 * n)
    assert abs(found[rivals.LIFT] - lift) <= 4 * math.sqrt(0.5 / n * lift) + room + 1 / n


def test_percentile_pvalue_is_that_of_the_interval() -> None:
    rng = np.random.default_rng(2)
    for shift in (0.5, 1.5, 1.9, 2.1, 3.0):
        resampled = rng.normal(shift, 1, 4001)
        low, high = np.quantile(resampled, [0.025, 0.975])
        assert (rivals.percentile_pvalue(resampled) <= 0.05) == (not low <= 0 <= high)
    assert rivals.percentile_pvalue(np.zeros(99)) == 1
    assert rivals.percentile_pvalue(np.full(99, np.nan)) == 1


def test_tests_of_two_proportions() -> None:
    columns, found = sample("true_positive_rate", 99, 7)
    positive, first = columns["y_true"], columns["group"] == "a"
    k = [int((columns["y_pred"] & positive & mine).sum()) for mine in (first, ~first)]
    m = [int((positive & mine).sum()) for mine in (first, ~first)]
    assert found[rivals.Z] == pytest.approx(proportions_ztest(k, m)[1])
    chances = stats.hypergeom(sum(m), sum(k), m[0]).pmf(np.arange(m[0] + 1))
    as_unlikely = chances <= chances[k[0]] * (1 + 1e-7)
    assert found[rivals.FISHER] == pytest.approx(chances[as_unlikely].sum())
    assert rivals.z_pvalue([0, 0], [5, 9]) == 1


def test_welchs_test_by_its_formula() -> None:
    columns, found = sample("mean_squared_error", 99, 8)
    square, first = (columns["y_true"] - columns["y_pred"]) ** 2, columns["group"] == "a"
    parts = [(square[mine].var(ddof=1) / mine.sum(), mine.sum()) for mine in (first, ~first)]
    total = sum(v for v, _ in parts)
    freedom = total**2 / sum(v**2 / (n - 1) for v, n in parts)
    t = (square[first].mean() - square[~first].mean()) / math.sqrt(total)
    assert found[rivals.WELCH] == pytest.approx(2 * stats.t(freedom).sf(abs(t)))


def test_delongs_test_by_all_pairs() -> None:
    columns, found = sample("roc_auc", 99, 9)
    values, variance = [], 0.0
    for group in ("a", "b"):
        mine = columns["group"] == group
        label, score = columns["y_true"][mine], columns["y_score"][mine]
        wins = score[label][:, None] > score[~label][None, :]
        values.append(wins.mean())
        for axis in (0, 1):
            component = wins.mean(axis=axis)
            variance += component.var(ddof=1) / len(component)
    z = (values[0] - values[1]) / math.sqrt(variance)
    assert found[rivals.DELONG] == pytest.approx(2 * stats.norm.sf(abs(z)))


def test_aucs_of_samples_by_all_pairs() -> None:
    rng = np.random.default_rng(10)
    positive = rng.random(12) < 0.4
    rows = rng.integers(12, size=(40, 12), dtype=np.int32)
    rows[0] = np.flatnonzero(positive)[0]
    expected = [
        (one[positive[one]][:, None] > one[~positive[one]][None, :]).mean()
        if 0 < positive[one].sum() < 12
        else math.nan
        for one in rows
    ]
    found = rivals.compute_aucs(positive, rows)
    assert math.isnan(found[0])
    np.testing.assert_allclose(found, expected)


# Levels.


@pytest.mark.validate
def test_the_default_holds_its_level_where_others_do_not() -> None:
    n = 600
    found = simulate_data_sets(
        partial(rivals.run_tests, FNR, 199), n, seed=1, purpose=1, n_jobs=None, progress=False
    )
    tally = Tally(FNR, found)
    assert tally.hits(rivals.DEFAULT) <= at_most(0.05, n)
    assert not tally.exceeds(rivals.DEFAULT)
    assert tally.warned == 0
    assert tally.hits(rivals.PLAIN) > at_most(0.05, n)
    long_runs = {rivals.WALD: (0.075, 0.075), rivals.LIFT: (0.076, 0.076)}  # of the design
    long_runs[rivals.BASIC] = (0.076, 0.082)
    for test, rates in long_runs.items():
        fewest, most = between(*rates, n)
        assert fewest <= tally.hits(test) <= most, test


def test_a_group_without_positives_is_rejected_by_nobody() -> None:
    never = populations.Rates((5, 5), (0.0, 0.5))
    setting = Setting("true_positive_rate", (5, 5), "none", never)
    found = rivals.run_tests(setting, 19, np.random.default_rng(1))
    assert np.isnan(found[: len(rivals.TESTS)]).all()
    tally = Tally(setting, found[None])
    assert (tally.hits(rivals.DEFAULT), tally.fewest, tally.warned) == (0, 0, 1)


def test_processes_change_no_number() -> None:
    setting = Setting("f1_score", (60, 90), "", SMALL["f1_score"])
    one, two = (
        simulate_data_sets(
            partial(rivals.run_tests, setting, 19),
            20,
            seed=4,
            purpose=3,
            n_jobs=jobs,
            progress=False,
            in_processes=True,
        )
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


# Verdicts.


def tally_of(rejected: int, unnoted: int, n: int = 2000) -> Tally:
    found = np.full((n, len(rivals.TESTS) + 2), np.nan)
    found[:, 0] = 1.0
    found[:rejected, 0] = 0.01
    found[:, rivals.WARNED] = True
    found[:unnoted, rivals.WARNED] = False
    found[:, rivals.COUNT] = 7
    return Tally(NULLS[0], found)


def test_verdicts() -> None:
    # the least number of 2,000 whose one-sided 99.9 % limit is above 0.055
    least = next(k for k in range(2000) if stats.binomtest(k, 2000, 0.055, "greater").pvalue < 1e-3)
    assert tally_of(least - 1, least - 1).verdict == UNDECIDED
    most = next(k for k in range(2000) if stats.binomtest(k, 2000, 0.055, "less").pvalue > 1e-3)
    assert tally_of(most, most).verdict == UNDECIDED
    assert tally_of(most - 1, most - 1).verdict == OK
    assert tally_of(least, 0).verdict == NOTED
    assert tally_of(least, least - 1).verdict == NOTED
    assert tally_of(least, least).verdict == UNNOTED


# What is written.


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = partial(study.calibration, n_data_sets=1)
    monkeypatch.setattr(runner, "get_study", {"calibration": quick}.__getitem__)


@pytest.mark.validate
@pytest.mark.usefixtures("tiny")
def test_page_and_tables_are_written(tmp_path: Path) -> None:
    out, page = tmp_path / "figures", tmp_path / "calibration.md"
    (study,) = studies.run("calibration", out, markdown=page, quick=True, progress=False)
    assert len(study.rows) == sum(sum(one.n) <= 400 for one in NULLS) >= 60
    text = page.read_text("utf-8")
    assert text.startswith("# Calibration")
    assert "`make reproduce STUDY=calibration`" in text
    assert f"fairperm {version('fairperm')}" in text
    assert "quick run" in text
    charts = re.findall(r"!\[.*\]\((.*)\)", text)
    assert len(charts) == len(grid.METRICS) + 1
    for chart in charts:
        assert (tmp_path / chart).stat().st_size < 300_000
    index = (out / "index.html").read_text("utf-8")
    assert all(row.quantity in index for row in study.rows)
    assert "best other valid here" in index
    with (out / "calibration-levels.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["test"] for line in lines} == set(rivals.TESTS)
    defaults = [line for line in lines if line["test"] == rivals.DEFAULT]
    assert len(defaults) == len(study.rows)
    assert all(line["verdict"] in {OK, UNDECIDED, NOTED, UNNOTED} for line in defaults)
