"""How many rows the value of each group rests on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm.metrics.definition import by_part

if TYPE_CHECKING:
    from fairperm._utils.arrays import Array
    from fairperm.hypothesis_tests.comparison import Comparison


def base_sizes(comparison: Comparison) -> dict[str, list[float]]:
    """Return the numbers of :func:`count_base_rows` with their unit before their names."""
    unit = ""
    if comparison.rows.cluster is not None:
        unit = "effective clusters of "
    elif comparison.rows.weight is not None:
        unit = "effective "
    found, units = count_base_rows(comparison), comparison.rows.units
    if "rows" in found and units != "rows":
        found[units] = found.pop("rows")
    return {f"{unit}{name}": numbers.tolist() for name, numbers in found.items()}


def count_base_rows(comparison: Comparison) -> dict[str, Array]:
    """Return the numbers of rows that the value of each group rests on, by what they are.

    These are a rate's denominator, positives and negatives for a metric given the label, and else
    all rows. With weights or clusters it is Kish's effective number (Σb)²/Σb², where b is what a
    row or a cluster adds to the number. Strata in which some group has none do not count.
    """
    rows, n_groups = comparison.rows, len(comparison.groups)
    found: dict[str, Array] = {}
    for part, place in by_part(comparison.parts):
        for name, base in part.base_rows(rows.contributions[:, place]).items():
            units = replace(rows, contributions=base[:, None]).sum_units()
            added = units.contributions[:, 0]
            if rows.n_strata > 1:
                in_stratum = np.zeros((rows.n_strata, n_groups), bool)
                in_stratum[units.stratum[added > 0], units.group[added > 0]] = True
                counts = np.asarray(in_stratum.all(axis=1))
                added = np.where(counts[units.stratum], added, 0.0)
            total = np.bincount(units.group, units.count * added, n_groups)
            squares = np.bincount(units.group, units.count * added**2, n_groups)
            number = np.zeros(n_groups)
            np.divide(total**2, squares, where=squares > 0, out=number)
            found[name] = np.round(number, 6)  # equal weights count one each
    return found
