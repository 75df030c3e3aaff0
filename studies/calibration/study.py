"""The calibration study: level and power of the default tests and of their rivals.

The grid of settings was fixed before anything was run, and all of it is shown. The settings at the
bound of what counts as enough rows are only for the default test.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.progress import show_progress
from fairperm.hypothesis_tests.small_groups import MIN_INFLUENTIAL_ROWS
from fairperm.inference.null import clopper_pearson
from studies.calibration import charts
from studies.calibration.grid import METRICS, bound_settings, gap_settings, null_settings
from studies.calibration.rivals import (
    COUNT,
    DEFAULT,
    TESTS,
    WARNED,
    list_tests,
    run_tests,
)
from studies.simulating import simulate_data_sets
from studies.study import CONFIDENCE, LEVEL, Row, Study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from studies.calibration.grid import Setting

    Array = NDArray[np.float64]
    Columns = dict[str, list[Any]]

TOLERATED = 0.055  # a level above this is too high at nominal level 0.05
SURE = 0.998  # level of the interval that has to be above it: one in a thousand by chance
OK, UNDECIDED = "ok", "undecided"
NOTED, UNNOTED = "excess with warning", "EXCESS WITHOUT WARNING"
# data sets without a gap, with a gap, and at the bound; permutations of each
_FULL = (2000, 500, 4000, 499)
_QUICK = (20, 20, 20, 199)
_QUICK_ROWS = 400  # a quick run skips settings with more rows
_PURPOSE, _GAP_PURPOSE, _BOUND_PURPOSE = 1000, 2000, 3000
_SLOW = ("roc_auc", "mean_squared_error")  # metrics of rows, not of a few cells


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The results of the tests in the data sets of one setting."""

    setting: Setting
    found: Array

    @property
    def trials(self) -> int:
        """Number of data sets."""
        return len(self.found)

    def hits(self, test: str) -> int:
        """Return the number of data sets in which a test rejects; an undefined test does not."""
        return int((self.found[:, TESTS.index(test)] <= LEVEL).sum())

    def share(self, test: str) -> float:
        """Return the share of data sets in which a test rejects."""
        return self.hits(test) / self.trials

    def exceeds(self, test: str) -> bool:
        """Whether a test rejects too often, beyond what chance explains."""
        return _exceeds(self.hits(test), self.trials)

    @property
    def fewest(self) -> float:
        """Median count of the smaller group's rows that matter for the metric."""
        return float(np.median(self.found[:, COUNT]))

    @property
    def warned(self) -> float:
        """Share of data sets in which the default's result has a warning."""
        return float(self.found[:, WARNED].mean())

    @property
    def unnoted(self) -> int:
        """Number of data sets in which the default rejects without a warning."""
        rejected = self.found[:, TESTS.index(DEFAULT)] <= LEVEL
        return int((rejected & (self.found[:, WARNED] == 0)).sum())

    @property
    def verdict(self) -> str:
        """Whether the default's level holds and, if not, whether its result warns of it."""
        low, high = clopper_pearson(self.hits(DEFAULT), self.trials, SURE)
        if low <= TOLERATED:
            return OK if high <= TOLERATED else UNDECIDED
        return UNNOTED if _exceeds(self.unnoted, self.trials) else NOTED


def calibration(
    *,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
    n_data_sets: int | None = None,
) -> Study:
    """Measure the level and the power of the default tests and of their rivals."""
    *sets, n_resamples = _QUICK if quick else _FULL
    null_sets, gap_sets, bound_sets = (min(one, n_data_sets or one) for one in sets)
    run_settings = partial(
        _run_settings,
        most_rows=_QUICK_ROWS if quick else None,
        n_resamples=n_resamples,
        seed=seed,
        n_jobs=n_jobs,
        progress=progress,
    )
    nulls = run_settings(null_settings(), null_sets, _PURPOSE)
    gaps = run_settings(gap_settings(), gap_sets, _GAP_PURPOSE)
    bound = run_settings(bound_settings(), bound_sets, _BOUND_PURPOSE, rivals=False)
    powers, averages = _tabulate_power(gaps, nulls), _tabulate_averages(gaps, nulls)
    return Study(
        name="calibration",
        title="Calibration: what a level of 0.05 really is, and what it finds",
        about=_ABOUT,
        rows=tuple(_make_row(tally) for tally in nulls),
        settings={
            "settings without a gap": len(nulls),
            "settings with a gap": len(gaps),
            "settings at the bound": len(bound),
            "data sets of each": null_sets,
            "data sets of each with a gap": gap_sets,
            "data sets of each at the bound": bound_sets,
            "permutations and bootstrap samples": n_resamples,
            "seed": seed,
        },
        notes=(*_describe_findings(nulls, bound, powers), *_NOTES),
        highlights=("worst", "excesses", "bound", "averages", "power"),
        tables={
            "worst": _tabulate_worst(nulls),
            "excesses": _tabulate_default([tally for tally in nulls if tally.exceeds(DEFAULT)]),
            "bound": _tabulate_default(bound),
            "averages": averages,
            "power": powers,
            "levels": _tabulate_levels(nulls),
            "powers": _tabulate_levels(gaps),
        },
        charts={
            **{
                metric: charts.draw_levels(
                    metric, _collect_levels(nulls, metric), list_tests(metric)
                )
                for metric in METRICS
            },
            "power": charts.draw_powers(powers),
        },
    )


def _run_settings(
    settings: Sequence[Setting],
    n: int,
    purpose: int,
    *,
    rivals: bool = True,
    most_rows: int | None,
    n_resamples: int,
    seed: int,
    n_jobs: int | None,
    progress: bool | None,
) -> list[Tally]:
    """Run the tests in many data sets of every setting, each setting with its own random stream."""
    wanted = [
        (purpose + number, setting)
        for number, setting in enumerate(settings)
        if most_rows is None or sum(setting.n) <= most_rows
    ]
    return [
        Tally(
            setting,
            simulate_data_sets(
                partial(run_tests, setting, n_resamples, rivals=rivals),
                count_data_sets(setting, n) if rivals else n,
                seed=seed,
                purpose=number,
                n_jobs=n_jobs,
                progress=False,
                in_processes=True,
            ),
        )
        for number, setting in show_progress(wanted, len(wanted), progress)
    ]


def count_data_sets(setting: Setting, n: int) -> int:
    """Return the number of data sets of a setting: a half or a quarter if each takes long."""
    rows = sum(setting.n) if setting.metric in _SLOW else 0
    return max(1, n // (1 if rows <= 500 else 2 if rows <= 2500 else 4))


def _exceeds(hits: int, trials: int) -> bool:
    return clopper_pearson(hits, trials, SURE)[0] > TOLERATED


def _collect_levels(tallies: Sequence[Tally], metric: str) -> dict[str, dict[str, float]]:
    """Return the levels of a metric's tests in all of its settings."""
    return {
        tally.setting.place: {test: tally.share(test) for test in list_tests(metric)}
        for tally in tallies
        if tally.setting.metric == metric
    }


def _make_row(tally: Tally) -> Row:
    hits = tally.hits(DEFAULT)
    return Row(
        quantity=tally.setting.name,
        paper=None,
        ours=hits / tally.trials,
        interval=clopper_pearson(hits, tally.trials, CONFIDENCE),
        agrees=not tally.exceeds(DEFAULT),
        remark=f"{tally.verdict} in {tally.trials} data sets; the smaller group counts "
        f"{tally.fewest:.0f}; {tally.warned:.0%} of the results warn",
    )


def _tabulate_levels(tallies: Sequence[Tally]) -> Columns:
    """Return every test's share of rejections in every setting."""
    table: Columns = {}
    for tally in tallies:
        for test in list_tests(tally.setting.metric):
            hits = tally.hits(test)
            low, high = clopper_pearson(hits, tally.trials, CONFIDENCE)
            line = {
                "metric": tally.setting.metric,
                "rows_a": tally.setting.n[0],
                "rows_b": tally.setting.n[1],
                "contrast": tally.setting.contrast,
                "counted": round(tally.fewest, 1),
                "test": test,
                "data_sets": tally.trials,
                "rejections": hits,
                "share": hits / tally.trials,
                "low": low,
                "high": high,
                "warned": tally.warned if test == DEFAULT else None,
                "verdict": tally.verdict if test == DEFAULT and tally.setting.is_null else None,
            }
            _append(table, line)
    return table


def _tabulate_worst(nulls: Sequence[Tally]) -> Columns:
    """Return for every test the number of settings with too high a level, and the worst one."""
    table: Columns = {}
    for test in TESTS:
        mine = [tally for tally in nulls if test in list_tests(tally.setting.metric)]
        large = [tally for tally in mine if tally.fewest >= MIN_INFLUENTIAL_ROWS]
        worst = max(mine, key=lambda tally: tally.share(test))
        line = {
            "test": test,
            "settings": len(mine),
            "too high": sum(tally.exceeds(test) for tally in mine),
            f"of those with {MIN_INFLUENTIAL_ROWS} or more": sum(
                tally.exceeds(test) for tally in large
            ),
            "worst level": worst.share(test),
            "where": worst.setting.name,
        }
        _append(table, line)
    return table


def _tabulate_default(tallies: Sequence[Tally]) -> Columns:
    """Return the default's level, and whether it is too high, in these settings."""
    names = ("setting", "data sets", "level", "low", "high", "counted", "warned", "verdict")
    table: Columns = {name: [] for name in names}
    for tally in tallies:
        low, high = clopper_pearson(tally.hits(DEFAULT), tally.trials, CONFIDENCE)
        first = (tally.setting.name, tally.trials, tally.share(DEFAULT), low, high)
        cells = (*first, round(tally.fewest, 1), tally.warned, tally.verdict)
        for name, cell in zip(names, cells, strict=True):
            table[name].append(cell)
    return table


def _tabulate_power(gaps: Sequence[Tally], nulls: Sequence[Tally]) -> Columns:
    """Return the default's power beside that of the best rival whose level holds.

    It holds in the same setting without the gap, or in all of the metric's settings.
    """
    table: Columns = {}
    for tally in gaps:
        metric, place = tally.setting.metric, tally.setting.place
        mine = [null for null in nulls if null.setting.metric == metric]
        here = [null for null in mine if null.setting.place == place]
        rivals = [test for test in list_tests(metric) if test != DEFAULT]
        line: dict[str, Any] = {
            "setting": tally.setting.name,
            "data sets": tally.trials,
            DEFAULT: tally.share(DEFAULT),
        }
        for where, settings in (("here", here), ("everywhere", mine)):
            valid = _list_valid(rivals, settings)
            best = max(valid, key=tally.share, default=None)
            line[f"best other valid {where}"] = best
            line[f"power of that valid {where}"] = None if best is None else tally.share(best)
        invalid = [test for test in rivals if here[0].exceeds(test)]
        line["not valid here"] = ", ".join(invalid)
        _append(table, line)
    return table


def _tabulate_averages(gaps: Sequence[Tally], nulls: Sequence[Tally]) -> Columns:
    """Return each metric's average power beside that of the best rival valid in all settings."""
    table: Columns = {}
    for metric in METRICS:
        mine = [null for null in nulls if null.setting.metric == metric]
        shown = [gap for gap in gaps if gap.setting.metric == metric]
        if not shown:
            continue
        power = {
            test: float(np.mean([gap.share(test) for gap in shown])) for test in list_tests(metric)
        }
        valid = _list_valid([test for test in power if test != DEFAULT], mine)
        best = max(valid, key=power.__getitem__, default=None)
        line = {
            "metric": metric,
            "settings": len(shown),
            DEFAULT: power[DEFAULT],
            "best other valid everywhere": best,
            "power of that": None if best is None else power[best],
            "difference": None if best is None else power[DEFAULT] - power[best],
        }
        _append(table, line)
    return table


def _list_valid(tests: Sequence[str], nulls: Sequence[Tally]) -> list[str]:
    """Return the tests whose level is too high in none of the settings."""
    return [test for test in tests if not any(null.exceeds(test) for null in nulls)]


def _append(table: Columns, line: Mapping[str, Any]) -> None:
    for name, cell in line.items():
        table.setdefault(name, []).append(cell)


def _describe_findings(
    nulls: Sequence[Tally], bound: Sequence[Tally], powers: Columns
) -> list[str]:
    """Return the findings in sentences."""
    above = [tally.setting.name for tally in bound if tally.exceeds(DEFAULT)]
    shares = [tally.share(DEFAULT) for tally in bound]
    large = [tally for tally in nulls if tally.fewest >= MIN_INFLUENTIAL_ROWS]
    wrong = [tally.setting.name for tally in large if tally.exceeds(DEFAULT)]
    open_ones = sum(tally.verdict == UNDECIDED for tally in large)
    verdicts = [tally.verdict for tally in nulls if tally.fewest < MIN_INFLUENTIAL_ROWS]
    return [
        f"The default's level is too high in {len(wrong)} of the {len(large)} settings with counts "
        f"of {MIN_INFLUENTIAL_ROWS} or more in every group"
        + (f": {'; '.join(wrong)}." if wrong else ".")
        + f" In {open_ones} of them it is undecided: more data sets would be needed to tell.",
        f"In the {len(verdicts)} settings with smaller counts it is too high in "
        f"{verdicts.count(NOTED) + verdicts.count(UNNOTED)}, of which {verdicts.count(UNNOTED)} "
        f"without a warning, and undecided in {verdicts.count(UNDECIDED)}.",
        f"In the {len(bound)} settings at the bound, with effective numbers of rows just above "
        f"{MIN_INFLUENTIAL_ROWS}, it is too high in {len(above)}"
        + (f": {'; '.join(above)}." if above else ".")
        + f" {sum(share > TOLERATED for share in shares)} of them have a level above {TOLERATED}, "
        f"at most {max(shares):.4f}: more data sets might show that these are too high.",
        *(_compare_power(powers, where) for where in ("here", "everywhere")),
    ]


def _compare_power(powers: Columns, where: str) -> str:
    """Return a sentence on the default's power against that of the best valid rival."""
    other = powers[f"power of that valid {where}"]
    lost = [b - a for a, b in zip(powers[DEFAULT], other, strict=True) if b is not None]
    which = {"here": "in the same setting", "everywhere": "in all settings of the metric"}[where]
    if not lost:
        return f"No other test is valid {which}."
    return (
        f"Compared with the best other test that is valid {which}, the default's power is "
        f"{abs(np.mean(lost)):.3f} {'lower' if np.mean(lost) > 0 else 'higher'} on average; at "
        f"most it is {max(lost):.3f} lower and {-min(lost):.3f} higher."
    )


_ABOUT = (
    "Every metric is compared in groups of 30 to 5,000 rows, of equal size or one ten times the"
    " other, with base rates (or spreads, or kurtosis) that are equal or not. In one part of "
    "the settings the metric is the same in both groups, and a test should reject 5 % of the "
    "data sets; in the other it differs. The grid was fixed beforehand. The default test is "
    "compared with permutation tests without studentizing and with the wald standard error "
    "(among all rows, by |S|), LiFT's shortcut, bootstrap tests, and textbook tests. None stops"
    " early here."
)
_NOTES = (
    f"A level is too high if the lower limit of its {SURE:.1%} Clopper–Pearson interval is above"
    f" {TOLERATED}, ok if the upper limit is not, and undecided otherwise. The count of a metric"
    " is the denominator of a rate (for F1, the rows that are positive or predicted positive), "
    "the rarer label of an AUC, and else the effective number of rows of the variance, "
    "(Σψ²)²/Σψ⁴ for the influences ψ of the rows.",
    "The warning's bound on the effective number of rows was chosen after first trials had "
    "shown where tests fail. The settings at the bound, fixed after it, test that choice.",
    "The best valid other test is the one with the highest power among those whose level is not"
    " too high in the same setting without the gap, or in none of the metric's settings.",
)
