"""Lending over time: scores react to decisions, and somebody looks at the gap every week.

The environment is in the manner of ML-Fairness-Gym (D'Amour et al., Fairness is not static, FAT*
2020) and of Liu et al. (Delayed impact of fair machine learning, ICML 2018): every applicant has
a score, a bank lends to those whose score is high enough, and a loan that is repaid raises the
score of the people who took it, one that is not lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

import fairperm
from studies import charts
from studies.simulating import simulate_data_sets
from studies.study import LEVEL, Row, Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

WEEKS = 52
SIZES = {"north": 120, "south": 60}  # applicants in a week
LAYOFFS = "south"  # the group that repays less often from some week on
METHODS = ("monitor", "test, looked at every week", "test, looked at once")
_FULL, _QUICK = 500, 20  # years
_PURPOSE = 6000
_CUTOFF = 3  # the lowest of the scores 0 to 6 that gets a loan
_REPAYS = np.linspace(0.35, 0.95, 7)  # by score
_START = np.array([0.06, 0.10, 0.15, 0.20, 0.21, 0.16, 0.12])  # share of people by score
_MOVED = 0.08  # share of a group that a week's loans stand for
_NEVER = WEEKS + 1
_ABOUT = (
    "Each week 120 people of one group and 60 of another ask a bank for a loan, and those with a "
    "high enough score get one. A loan that is repaid raises scores, one that is not lowers them, "
    "in the manner of ML-Fairness-Gym. In the first world both groups are alike all year: their "
    "selection rates move, but together. In the second world, people of the smaller group are laid "
    "off in week 9 and repay less often: the bank changes nothing, but their scores fall, and a "
    "gap in the selection rate grows. Somebody looks every week at a monitor, or every week at the "
    "exact test of all rows so far, or at that test once, at the end of the year."
)
_NOTES = (
    "Whoever looks at the test every week finds the gap first, but also one that is not there, far "
    "more often than in 5 % of the years. The monitor keeps its promise, and usually finds the gap "
    "weeks before the end of the year.",
)


@dataclass(frozen=True, slots=True)
class World:
    """What differs between the groups, and from which week on."""

    name: str
    loss: float  # how much less often the smaller group repays
    week: int

    def rates(self) -> dict[str, Array]:
        """Return the share of each group that gets a loan, by week."""
        found = {}
        for group in SIZES:
            people, rates = _START, []
            for week in range(1, WEEKS + 1):
                is_hit = group == LAYOFFS and week >= self.week
                rates.append(people[_CUTOFF:].sum())
                people = _react(people, _REPAYS - (self.loss if is_hit else 0.0))
            found[group] = np.array(rates)
        return found


WORLDS = (World("groups alike", 0.0, 1), World("layoffs from week 9 on", 0.3, 9))


def lending(
    *,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
    n_years: int | None = None,
) -> Study:
    """Simulate years of lending, and find when each method says that there is a gap."""
    years = n_years or (_QUICK if quick else _FULL)
    weeks = {
        world: simulate_data_sets(
            partial(find_alarms, world.rates()),
            years,
            seed=seed,
            purpose=_PURPOSE + i,
            n_jobs=n_jobs,
            progress=progress,
            in_processes=True,
        )
        for i, world in enumerate(WORLDS)
    }
    return Study(
        name="lending",
        title="Lending over time: looking every week",
        about=_ABOUT,
        rows=tuple(_list_rows(weeks)),
        notes=_NOTES,
        settings={"years": years, "weeks": WEEKS, "seed": seed},
        highlights=("summary",),
        tables={
            "summary": _summarize(weeks),
            "alarms": _tabulate(weeks),
            "rates": _tabulate_rates(),
        },
        charts={"alarms": _draw_alarms(_tabulate(weeks))},
    )


def find_alarms(rates: Mapping[str, Array], rng: np.random.Generator) -> Array:
    """Return the first week of a year in which each method says that there is a gap."""
    monitor = fairperm.Monitor(
        y_pred="lent", sensitive_features="group", metrics=["selection_rate"], count="people"
    )
    lent = {group: rng.binomial(n, rates[group]) for group, n in SIZES.items()}
    so_far = dict.fromkeys(SIZES, 0)
    alarms = np.full(len(METHODS), _NEVER, float)
    for week in range(1, WEEKS + 1):
        monitor.update(_count({g: lent[g][week - 1] for g in SIZES}, 1), batch=week)
        so_far = {g: so_far[g] + int(lent[g][week - 1]) for g in SIZES}
        counts = _count(so_far, week)
        p = fairperm.permutation_test(
            y_pred=np.repeat(counts["lent"], counts["people"]),
            sensitive_features=np.repeat(counts["group"], counts["people"]),
            metric="selection_rate",
        ).pvalue
        says = (monitor.rejected, p <= LEVEL, week == WEEKS and p <= LEVEL)
        alarms[np.array(says) & (alarms == _NEVER)] = week
    return alarms


def _react(people: Array, repays: Array) -> Array:
    """Return the shares of a group by score after a week of loans."""
    moved = np.zeros_like(people)
    for score, share in enumerate(people):
        if score < _CUTOFF:
            moved[score] += share
        else:
            moved[min(score + 1, len(people) - 1)] += share * repays[score]
            moved[score - 1] += share * (1 - repays[score])
    return (1 - _MOVED) * people + _MOVED * moved


def _count(lent: Mapping[str, int], weeks: int) -> dict[str, list[Any]]:
    """Return the decisions of some weeks as a table of counts."""
    rows = [
        (group, decision, number)
        for group, n in SIZES.items()
        for decision, number in ((1, lent[group]), (0, weeks * n - lent[group]))
    ]
    return dict(zip(("group", "lent", "people"), map(list, zip(*rows, strict=True)), strict=True))


def _list_rows(weeks: Mapping[World, Array]) -> Iterator[Row]:
    """Yield how often each method finds a gap in a year."""
    for world, alarms in weeks.items():
        for method, found in zip(METHODS, alarms.T, strict=True):
            hits = int((found < _NEVER).sum())
            yield Row.of_share(f"{world.name}: {method}", hits, len(found))


def _summarize(weeks: Mapping[World, Array]) -> dict[str, list[Any]]:
    """Return the share of years with an alarm, and the week that half of them have it by."""
    table: dict[str, list[Any]] = {"who looks": [*METHODS]}
    for world, alarms in weeks.items():
        table[f"{world.name}: years with an alarm"] = (alarms < _NEVER).mean(axis=0).tolist()
        if world.loss:
            table["median week"] = np.median(alarms, axis=0).tolist()
    return table


def _tabulate(weeks: Mapping[World, Array]) -> dict[str, list[Any]]:
    """Return the share of years with an alarm by week."""
    rows = [
        (world.name, method, week, float((found <= week).mean()))
        for world, alarms in weeks.items()
        for method, found in zip(METHODS, alarms.T, strict=True)
        for week in range(1, WEEKS + 1)
    ]
    names = ("world", "method", "week", "share")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _tabulate_rates() -> dict[str, list[Any]]:
    """Return the selection rates of each world by week."""
    found = {world.name: world.rates() for world in WORLDS}
    columns = {
        f"{name}: {group}": one[group].tolist() for name, one in found.items() for group in one
    }
    return {"week": [*range(1, WEEKS + 1)], **columns}


def _draw_alarms(table: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Draw the share of years in which each method has said that there is a gap."""
    values = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    colours = alt.Scale(domain=[*METHODS], range=[charts.BLUE, charts.RED, charts.GREEN])
    shares = alt.Y("share:Q", title="share of years with an alarm", scale=alt.Scale(domain=[0, 1]))
    legend = alt.Legend(orient="top")
    worlds = alt.Facet("world:N", title=None, sort=[w.name for w in WORLDS], header=charts.HEADER)
    lines = (
        alt.Chart()
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("week:Q", title="week"),
            y=shares,
            color=alt.Color("method:N", title=None, scale=colours, legend=legend),
        )
    )
    level = alt.Chart().mark_rule(strokeDash=[5, 4], stroke=charts.GREY).encode(y=alt.datum(LEVEL))
    chart = (
        alt.layer(lines, level, data=alt.InlineData(values=values))
        .properties(width=250, height=180)
        .facet(worlds)
    )
    return charts.to_specification(chart)
