"""The study of small groups: level and power of the default test of a gap, and of its peers.

The grid of designs was fixed before the sharper tests were measured, and all of it is shown. The
default is measured by public calls alone, the peers by :mod:`studies.calibration.peers`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import fairperm
from fairperm._utils.progress import show_progress
from fairperm.inference.null import clopper_pearson
from studies.calibration import charts
from studies.calibration.designs import DESIGNS
from studies.calibration.peers import PEERS, S, run_peers
from studies.calibration.rivals import DEFAULT
from studies.calibration.scenarios import SCENARIOS
from studies.simulating import simulate_blocks, simulate_data_sets
from studies.study import CONFIDENCE, LEVEL, Row, Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from studies.calibration.designs import Design, Units

    Array = NDArray[np.float64]
    Columns = dict[str, list[Any]]

TESTS = (DEFAULT, *PEERS)
HIGH, HIGHER, HIGHEST = 0.065, 0.08, 0.11  # levels at nominal 0.05
_FULL, _QUICK = (600, 200, 300), (4, 2, 2)  # data sets without a gap, with one, of a scenario
_N_RESAMPLES = 299
_CHUNK = 50  # data sets that share the peers' draws
_PURPOSE, _SCENARIO_PURPOSE = 4000, 5000
DIRECTIONS = {"level": 0, "power up": 1, "power down": -1}


@dataclass(frozen=True, slots=True)
class Tally:
    """P-values of the tests in a design, by direction of the gap, and what was noted."""

    design: Design
    found: dict[str, Array] = field(repr=False)  # default's p, whether noted; peers' p

    def share(self, test: str, of: str = "level") -> float:
        """Return the share of data sets in which a test rejects."""
        column = 0 if test == DEFAULT else 2 + PEERS.index(test)
        return float((self.found[of][:, column] <= LEVEL).mean())

    @property
    def noted(self) -> float:
        """Share of data sets whose result has a note."""
        return float(self.found["level"][:, 1].mean())

    @property
    def unnoted_level(self) -> float | None:
        """Level among data sets without a note; None if almost all have one."""
        plain = self.found["level"][self.found["level"][:, 1] == 0]
        return float((plain[:, 0] <= LEVEL).mean()) if len(plain) >= _CHUNK else None

    def cells(self) -> dict[str, Any]:
        """Return all that was measured, one value for each column of a table."""
        cells: dict[str, Any] = {
            "kind": self.design.kind,
            "design": self.design.name,
            "known": self.design.known,
            "data sets": len(self.found["level"]),
            "noted": self.noted,
            "level without a note": self.unnoted_level,
        }
        return cells | {
            f"{of}: {test}": self.share(test, of) for of in DIRECTIONS for test in TESTS
        }


def small_groups(
    *,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
    n_data_sets: int | None = None,
) -> Study:
    """Measure the level and the power of the default test of a gap in small groups."""
    sizes = [min(one, n_data_sets or one) for one in (_QUICK if quick else _FULL)]
    options: dict[str, Any] = {"seed": seed, "n_jobs": n_jobs, "progress": False}
    numbered = list(enumerate(DESIGNS))
    tallies = [
        Tally(one, _run_design(one, number, sizes, options))
        for number, one in show_progress(numbered, len(numbered), progress)
    ]
    scenarios = {
        name: simulate_data_sets(
            partial(_run_scenario, name),
            sizes[2],
            purpose=_SCENARIO_PURPOSE + i,
            in_processes=True,
            **options,
        )
        for i, name in enumerate(SCENARIOS)
    }
    table: Columns = {}
    for tally in tallies:
        for name, cell in tally.cells().items():
            table.setdefault(name, []).append(cell)
    return Study(
        name="small-groups",
        title="Small groups: what a level of 0.05 really is",
        about=_ABOUT,
        rows=tuple(_list_rows(tallies, scenarios)),
        settings={
            "designs": len(tallies),
            "data sets of each": sizes[0],
            "data sets of each with a gap": sizes[1],
            "data sets of each scenario": sizes[2],
            "permutations and bootstrap samples": _N_RESAMPLES,
            "seed": seed,
        },
        notes=tuple(_describe(tallies)),
        highlights=("summary",),
        tables={"summary": _summarize(tallies), "designs": table},
        charts={
            "levels": charts.draw_designs(
                [
                    {
                        "kind": one.design.kind,
                        "design": one.design.name,
                        "test": test,
                        "level": level,
                    }
                    for one in tallies
                    for test in (DEFAULT, S)
                    for level in (one.share(test),)
                ]
            ),
            "power": charts.draw_power_pairs(
                [
                    {
                        "design": one.design.name,
                        "direction": of,
                        S: one.share(S, of),
                        "default": one.share(DEFAULT, of),
                    }
                    for one in tallies
                    for of in ("power up", "power down")
                    if one.share(S) <= HIGH
                ]
            ),
        },
    )


def _run_design(
    design: Design, number: int, sizes: Sequence[int], options: dict[str, Any]
) -> dict[str, Array]:
    """Return the p-values of the default, whether it has a note, and the p-values of the peers."""
    return {
        of: simulate_blocks(
            partial(_run_chunk, design, direction),
            sizes[1 if direction else 0],
            size=_CHUNK,
            purpose=_PURPOSE + 3 * number + i,
            in_processes=True,
            **options,
        )
        for i, (of, direction) in enumerate(DIRECTIONS.items())
    }


def _run_chunk(design: Design, direction: int, n: int, rng: np.random.Generator) -> Array:
    data_sets = [design.draw(rng, direction) for _ in range(n)]
    default = [run_default(design, units, rng) for units in data_sets]
    return np.concatenate([default, run_peers(data_sets, _N_RESAMPLES, rng)], axis=1)


def run_default(design: Design, units: Units, rng: np.random.Generator) -> tuple[float, bool]:
    """Return the default's p-value, and whether its result has a note."""
    compare = compare_models if design.kind == "models" else compare_means
    try:
        result = compare(design, units, rng)
    except fairperm.UndefinedMetricError:
        return 1.0, True  # an error warns of it
    return result.pvalue, bool(result.notes)


def compare_means(design: Design, units: Units, rng: np.random.Generator) -> Any:
    """Compare means of rows; a cluster's rows have its mean."""
    value, group = units.total / units.weight, units.group
    options: dict[str, Any] = {}
    if design.kind == "weights":
        options["sample_weight"] = units.weight
    elif design.kind == "strata":
        options["control_features"] = units.stratum
    elif design.kind == "clusters":
        size = units.weight.astype(int)
        value, group = np.repeat(value, size), np.repeat(group, size)
        options["cluster"] = np.repeat(np.arange(len(size)), size)
    return fairperm.permutation_test(
        value, sensitive_features=group, metric="mean_outcome", **_common(rng), **options
    )


def compare_models(design: Design, units: Units, rng: np.random.Generator) -> Any:
    """Compare the accuracies of two models; totals of ±1 are rows that become right or wrong."""
    del design
    outcome = rng.integers(2, size=len(units.total))
    is_right = np.where(units.total == 0, rng.random(len(outcome)) < 0.8, units.total < 0)
    is_right_now = np.where(units.total == 0, is_right, units.total > 0)
    old, new = (np.where(right, outcome, 1 - outcome) for right in (is_right, is_right_now))
    return fairperm.compare_models(
        outcome, old, new, sensitive_features=units.group, metric="accuracy", **_common(rng)
    )


def _common(rng: np.random.Generator) -> dict[str, Any]:
    seed = int(rng.integers(2**53))
    return {"n_resamples": _N_RESAMPLES, "rng": seed, "n_jobs": 1, "progress": False}


def _run_scenario(name: str, rng: np.random.Generator) -> Array:
    try:
        return np.array(SCENARIOS[name](rng), float)
    except fairperm.UndefinedMetricError:
        return np.array([0.0, 1.0])


def _list_rows(tallies: Sequence[Tally], scenarios: dict[str, Array]) -> Iterator[Row]:
    """Yield the default's level in every design and scenario."""
    for one in tallies:
        without = "" if one.unnoted_level is None else f", {one.unnoted_level:.3f} without a note"
        remark = f"S {one.share(S):.3f}; {one.noted:.0%} noted{without}"
        name = f"{one.design.kind}: {one.design.name}"
        yield _make_row(name, one.share(DEFAULT), len(one.found["level"]), remark)
    for name, every in scenarios.items():
        noted = f"{every[:, 1].mean():.0%} noted"
        yield _make_row(name, float(every[:, 0].mean()), len(every), noted)


def _make_row(quantity: str, share: float, n: int, remark: str) -> Row:
    interval = clopper_pearson(round(share * n), n, CONFIDENCE)
    return Row(quantity=quantity, paper=None, ours=share, interval=interval, remark=remark)


def _summarize(tallies: Sequence[Tally]) -> Columns:
    """Return by kind of design and test the highest level, and how many are high."""
    table: Columns = {}
    for kind in dict.fromkeys(one.design.kind for one in tallies):
        mine = [one for one in tallies if one.design.kind == kind]
        for test in TESTS:
            levels = np.array([one.share(test) for one in mine])
            powers = [one.share(test, of) for one in mine for of in DIRECTIONS if of != "level"]
            line = {
                "kind": kind,
                "test": test,
                "designs": len(mine),
                f"above {HIGH}": int((levels > HIGH).sum()),
                f"above {HIGHER}": int((levels > HIGHER).sum()),
                "highest level": float(levels.max()),
                "mean power": float(np.mean(powers)),
            }
            for name, cell in line.items():
                table.setdefault(name, []).append(cell)
    return table


def _describe(tallies: Sequence[Tally]) -> Iterator[str]:
    """Yield the findings in sentences."""
    plain = [one for one in tallies if one.design.kind not in {"weights", "clusters"}]
    other = [one for one in tallies if one.design.kind in {"weights", "clusters"}]
    unnoted = [one for one in plain if (one.unnoted_level or 0) > HIGHER]
    yield (
        f"Of {len(plain)} designs of plain rows {_count_above(plain, HIGH)} have a level above "
        f"{HIGH} and {_count_above(plain, HIGHER)} above {HIGHER}; in {len(unnoted)} the level "
        f"among data sets without a note is above {HIGHER}."
    )
    yield (
        f"Of {len(other)} designs with weights or clusters {_count_above(other, HIGHER)} have a "
        f"level above {HIGHER} and {_count_above(other, HIGHEST)} above {HIGHEST}."
    )
    for of in ("power up", "power down"):
        lost = [
            one.share(S, of) - one.share(DEFAULT, of) for one in tallies if one.share(S) <= HIGH
        ]
        yield (
            f"Where S holds its level (at most {HIGH}), the default's {of} is {np.mean(lost):.3f} "
            f"lower on average, and at most {np.max(lost):.3f} lower."
        )


def _count_above(tallies: Sequence[Tally], level: float) -> int:
    return sum(one.share(DEFAULT) > level for one in tallies)


_ABOUT = (
    "Two groups with the same mean are compared, in designs that small groups of an audit have: "
    "sizes from 20 to 3,200, spreads of 1:1 to 30:1, values that are normal, uniform, skewed, "
    "heavy-tailed, rare or ±1, weights, clusters, strata, and changes of models. For power the "
    "first group is 2.5 standard errors higher, or lower. S is the studentized permutation test "
    "by twice the smaller tail, |S| that of the paper; the others are Welch's t test (with weights "
    "and clusters by linearized variances), Hall's transformed t with normal quantiles, and the "
    "basic and the studentized bootstrap. The scenarios at the end are no means."
)
