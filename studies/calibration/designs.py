"""The designs of the study of small groups, fixed before the sharper tests were measured.

In every design the first group is compared with the second, which has the same mean. Distributions
have mean 0 and standard deviation 1 before they are spread. The designs after which the tests were
made are "known"; about twice as many others are not. No design was removed for its result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Draw = Callable[[np.random.Generator, int], Array]

Kind = Literal["rows", "weights", "clusters", "strata", "models"]
GAP = 2.5  # standard errors, where power is measured
_COST_SHARE = 0.03  # of rows with rare costs


def _rare_costs(rng: np.random.Generator, n: int) -> Array:
    cost = rng.lognormal(size=n) * (rng.random(n) < _COST_SHARE)
    mean = _COST_SHARE * np.exp(0.5)
    return np.asarray((cost - mean) / np.sqrt(_COST_SHARE * np.exp(2.0) - mean**2))


FAMILIES: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, n) * np.sqrt(3),
    "t5": lambda rng, n: rng.standard_t(5, n) * np.sqrt(3 / 5),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "log-normal": lambda rng, n: (rng.lognormal(size=n) - np.exp(0.5)) / np.sqrt(np.e**2 - np.e),
    "rare costs": _rare_costs,
    "±1": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "−exponential": lambda rng, n: 1 - rng.exponential(size=n),
    "normal²": lambda rng, n: (rng.normal(size=n) ** 2 - 1) / np.sqrt(2),
    "t5²": lambda rng, n: (rng.standard_t(5, n) ** 2 * 3 / 5 - 1) / np.sqrt(8),
}


def _ones(rng: np.random.Generator, n: int) -> Array:
    del rng
    return np.ones(n)


def _one_heavy(weight: float, rng: np.random.Generator, n: int) -> Array:
    del rng
    return np.concatenate([[weight], np.ones(n - 1)])


def _some_heavy(share: float, weight: float, rng: np.random.Generator, n: int) -> Array:
    return np.where(rng.random(n) < share, weight, 1.0)


def _log_normal(deviation: float, rng: np.random.Generator, n: int) -> Array:
    return rng.lognormal(0.0, deviation, n)


def _up_to(most: int, rng: np.random.Generator, n: int) -> Array:
    return rng.integers(1, most + 1, n).astype(float)


def _equal(size: int, rng: np.random.Generator, n: int) -> Array:
    del rng
    return np.full(n, float(size))


def _geometric(mean: float, rng: np.random.Generator, n: int) -> Array:
    return rng.geometric(1 / mean, n).astype(float)


@dataclass(frozen=True, slots=True)
class Units:
    """A data set of units, which are rows or clusters: total, weight, group and stratum of each.

    A cluster's weight is its number of rows, its total that of their values.
    """

    total: Array
    weight: Array
    group: NDArray[np.intp]
    stratum: NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Two groups of units.

    Attributes
    ----------
    n
        Number of units by group, in every stratum.
    families, spreads
        The distribution of values and its standard deviation, by group; of clusters' means.
    weights
        How weights of rows, or sizes of clusters, are drawn, by group; ``weighting`` names it.
    changed
        Of a change of models, the shares of rows that are then right or wrong, by group.
    known
        Whether the tests were made after this design.
    """

    kind: Kind = "rows"
    n: tuple[int, int]
    families: tuple[str, str] = ("normal", "normal")
    spreads: tuple[float, float] = (1.0, 1.0)
    weights: tuple[Draw, Draw] = (_ones, _ones)
    weighting: str = ""
    n_strata: int = 1
    changed: tuple[float, float] | None = None
    known: bool = False

    @property
    def name(self) -> str:
        """Sizes, families, spreads, and what else there is."""
        unit = " clusters" if self.kind == "clusters" else ""
        strata = f" in each of {self.n_strata} strata" if self.n_strata > 1 else ""
        what = " v ".join(dict.fromkeys(self.families))
        what += f" {self.spreads[0]:g}:{self.spreads[1]:g}"
        if self.changed is not None:
            what = f"{self.changed[0]:.3g} and {self.changed[1]:.3g} changed"
        weighting = f", {self.weighting}" if self.weighting else ""
        return f"{self.n[0]:,} / {self.n[1]:,}{unit}{strata}, {what}{weighting}"

    def draw(self, rng: np.random.Generator, direction: int) -> Units:
        """Return a data set; in a ``direction`` of ±1 the first group has a gap, at 0 none."""
        group = np.tile(np.repeat([0, 1], self.n), self.n_strata)
        stratum = np.repeat(np.arange(self.n_strata), sum(self.n))
        weight, value, variance = np.empty(len(group)), np.empty(len(group)), 0.0
        of_group = [np.flatnonzero(group == g) for g in (0, 1)]
        for g, mine in enumerate(of_group):
            weight[mine] = self.weights[g](rng, len(mine))
            spread = self.spreads[g] if self.changed is None else np.sqrt(self.changed[g])
            value[mine] = self.spreads[g] * FAMILIES[self.families[g]](rng, len(mine))
            variance += spread**2 * (weight[mine] ** 2).sum() / weight[mine].sum() ** 2
        gap = direction * GAP * np.sqrt(variance)
        if self.changed is None:
            value[of_group[0]] += gap
        else:
            for g, mine in enumerate(of_group):
                better = 0.5 + (gap / (2 * self.changed[0]) if g == 0 else 0.0)
                sign = np.where(rng.random(len(mine)) < better, 1.0, -1.0)
                value[mine] = sign * (rng.random(len(mine)) < self.changed[g])
        return Units(weight * (value + stratum), weight, group, stratum)


def _rows() -> list[Design]:
    """Return the designs of plain rows: those known, families by sizes and spreads, and others."""
    log, square, heavy = ("log-normal", "normal"), ("normal²", "normal²"), ("t5²", "normal²")
    known = [
        Design(n=(60, 1000), spreads=(10, 1)),
        Design(n=(20, 400), spreads=(3, 1)),
        Design(n=(20, 400), spreads=(1, 3)),
        Design(n=(40, 400), families=log, spreads=(2.16, 1)),
        Design(n=(100, 1000), families=log, spreads=(2.16, 1)),
        Design(n=(1000, 100), families=log, spreads=(2.16, 1)),
        Design(n=(60, 1200), families=("uniform", "normal"), spreads=(1, 0.03)),
        Design(n=(40, 3200), families=("uniform", "normal"), spreads=(1, 0.001)),
        Design(n=(25, 2500), families=("±1", "normal"), spreads=(1, 0.001)),
        Design(n=(30, 300), families=square),
        Design(n=(200, 2000), families=heavy),
        Design(n=(2000, 200), families=heavy),
        Design(n=(300, 3000), families=("rare costs", "normal"), spreads=(3, 1)),
    ]
    others = [
        Design(n=n, families=pair, spreads=spreads)
        for family in ("normal", "uniform", "t5", "exponential", "log-normal", "rare costs", "±1")
        for n, pair, spreads in (
            ((50, 500), (family, "normal"), (1.0, 1.0)),
            ((500, 50), (family, "normal"), (1.0, 1.0)),
            ((50, 500), (family, family), (5.0, 1.0)),
            ((50, 500), (family, family), (1.0, 5.0)),
        )
        if n == (50, 500) or family != "normal"
    ]
    others += [
        Design(n=(50, 500), families=("−exponential", "exponential")),
        Design(n=(50, 50), families=("exponential", "normal")),
        Design(n=(30, 30), spreads=(30, 1)),
        Design(n=(100, 100), families=("log-normal", "log-normal"), spreads=(1, 30)),
        Design(n=(200, 200), families=("t5", "exponential")),
        Design(n=(100, 2000), spreads=(30, 1)),
        Design(n=(60, 1000), spreads=(1, 10)),
        Design(n=(30, 3000), families=("uniform", "uniform")),
        Design(n=(300, 3000), families=("rare costs", "rare costs")),
    ]
    return [*map(_mark, known), *others]


def _weighted() -> list[Design]:
    def make(
        n: tuple[int, int], weighting: str, first: Draw, second: Draw | None = None, **options: Any
    ) -> Design:
        weights = (first, second or first)
        return Design(kind="weights", n=n, weighting=weighting, weights=weights, **options)

    log, some = partial(partial, _log_normal), partial(partial, _some_heavy)
    known = [
        make((40, 200), "one row of weight 100", partial(_one_heavy, 100), _ones),
        make((60, 600), "one row of weight 1,000", partial(_one_heavy, 1000), _ones),
        make((100, 1000), "log-normal (1.5) weights of the smaller", log(1.5), _ones),
        make((100, 1000), "5 % of weight 50 of the smaller", some(0.05, 50), _ones),
    ]
    others = [
        make((100, 1000), "log-normal (1.5) weights", log(1.5)),
        make((100, 1000), "5 % of weight 50", some(0.05, 50)),
        make((100, 1000), "log-normal (1) weights", log(1.0)),
        make((100, 1000), "log-normal (1) weights", log(1.0), spreads=(5, 1)),
        make((100, 1000), "log-normal (1) weights", log(1.0), spreads=(1, 5)),
        make((50, 50), "log-normal (1) weights", log(1.0)),
        make((200, 200), "2 % of weight 20", some(0.02, 20)),
        make((60, 600), "weights 1 to 5", partial(_up_to, 5), spreads=(3, 1)),
        make((60, 600), "weights 1 to 5", partial(_up_to, 5), families=("exponential",) * 2),
        make((200, 40), "one row of weight 100", partial(_one_heavy, 100), _ones),
        make((60, 600), "log-normal (1) weights", log(1.0), families=("log-normal",) * 2),
        make((100, 1000), "log-normal (1) weights", log(1.0), families=("±1",) * 2),
        make((300, 3000), "log-normal (1.5) weights of the larger", _ones, log(1.5)),
    ]
    return [*map(_mark, known), *others]


def _clustered() -> list[Design]:
    def make(
        n: tuple[int, int], sizes: str, first: Draw, second: Draw | None = None, **options: Any
    ) -> Design:
        weights = (first, second or first)
        return Design(kind="clusters", n=n, weighting=sizes, weights=weights, **options)

    five, uneven = partial(_equal, 5), partial(_geometric, 6.0)
    known = [
        make((8, 80), "5 rows each", five, spreads=(1, 0.2)),
        make((8, 80), "geometric sizes", uneven, spreads=(1, 0.2)),
    ]
    others = [
        make((8, 80), "5 rows each", five),
        make((8, 80), "5 rows each", five, spreads=(0.2, 1)),
        make((20, 20), "geometric sizes", uneven),
        make((30, 300), "geometric sizes", uneven, spreads=(3, 1)),
        make((30, 300), "geometric sizes", uneven, families=("exponential",) * 2),
        make((15, 15), "5 rows each", five, families=("exponential", "normal")),
        make((8, 80), "1 to 40 rows", partial(_up_to, 40), spreads=(1, 0.2)),
        make((40, 40), "one of 100 rows", partial(_one_heavy, 100)),
    ]
    return [*map(_mark, known), *others]


def _stratified() -> list[Design]:
    make = partial(Design, kind="strata")
    return [
        make(n=(15, 150), n_strata=4, spreads=(10, 1)),
        make(n=(15, 150), n_strata=4, families=("exponential", "exponential")),
        make(n=(15, 150), n_strata=4, families=("log-normal", "normal")),
        make(n=(5, 20), n_strata=10, spreads=(3, 1)),
        make(n=(5, 20), n_strata=10, families=("exponential", "normal")),
        make(n=(50, 50), n_strata=2, families=("t5", "uniform"), spreads=(1, 3)),
    ]


def _models() -> list[Design]:
    known = [((100, 2000), (0.2, one)) for one in (0.0, 0.01, 0.025)] + [((60, 600), (0.05, 0.3))]
    others = [
        ((100, 2000), (0.1, 0.01)),
        ((100, 2000), (0.05, 0.05)),
        ((50, 500), (0.2, 0.02)),
        ((200, 200), (0.1, 0.02)),
        ((200, 2000), (0.02, 0.2)),
        ((500, 500), (0.05, 0.0)),
    ]
    return [
        Design(kind="models", n=n, changed=changed, known=(n, changed) in known)
        for n, changed in [*known, *others]
    ]


def _mark(design: Design) -> Design:
    return replace(design, known=True)


DESIGNS: tuple[Design, ...] = (
    *_rows(),
    *_weighted(),
    *_clustered(),
    *_stratified(),
    *_models(),
)
