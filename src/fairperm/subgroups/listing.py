"""Which of the subgroups found are listed: the few that explain the others.

If women under 25 are affected, so are women, people under 25, and women under 25 of every town. The
subgroup with the largest statistic is listed first. From then on, candidates are compared with the
rest among rows that are alike in the subgroups listed so far, as in strata, and the one with the
largest statistic comes next. The list ends when none is significant, by Bonferroni's bound for the
number of subgroups found, or at a largest length. So a part of a listed subgroup is listed only if
it differs from the remainder of that subgroup, and a larger subgroup only if it differs also
outside the listed part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.checks import DIRECTIONS
from fairperm.inference.null import normal_quantile
from fairperm.subgroups.engine import make_engine
from fairperm.subgroups.sample import number_strata

if TYPE_CHECKING:
    from fairperm._utils.arrays import Array, Places
    from fairperm.subgroups.candidates import Candidates
    from fairperm.subgroups.sample import SearchedRows

MAX_LISTED = 20
_CHUNK_SIZE = 1 << 19  # candidates times strata
_ROUNDING = 1e-9  # of a statistic


@dataclass(frozen=True, slots=True)
class Listing:
    """The places of the candidates to list, and whether these explain all others found."""

    places: Places
    is_complete: bool


def choose_listed(
    sample: SearchedRows,
    candidates: Candidates,
    statistic: Array,
    scale: Array,
    *,
    alternative: str,
    alpha: float,
) -> Listing:
    """Return the candidates to list, given all that were found."""
    kind = alternative if alternative in DIRECTIONS else "two-sided"
    critical = normal_quantile(1 - alpha / max(1, len(candidates)), kind)
    sign = np.sign(statistic)
    depth = np.array([len(one) for one in candidates.conditions])
    pattern = np.zeros(len(sample.levels), np.intp)
    listed: list[int] = []
    size = np.abs(statistic)
    while len(listed) < len(candidates):
        largest = np.nanmax(size, initial=-np.inf)
        if listed and not largest > critical:
            break
        if len(listed) == MAX_LISTED:
            return Listing(np.array(listed, np.intp), is_complete=False)
        nearly = np.flatnonzero(size >= largest * (1 - _ROUNDING))
        best = int(nearly[np.argmin(depth[nearly])])  # of equal ones the most general
        listed.append(best)
        pattern *= 2
        pattern[candidates.members[[best]].indices] += 1
        pattern = np.unique(pattern, return_inverse=True)[1].ravel()
        size = sign * _compare_alike(sample, candidates, pattern, scale)
        size[listed] = np.nan
    return Listing(np.array(listed, np.intp), is_complete=True)


def _compare_alike(
    sample: SearchedRows, candidates: Candidates, pattern: Places, scale: Array
) -> Array:
    """Return the studentized gap of each candidate among rows that are alike in a pattern."""
    units = sample.units
    n_patterns = int(pattern.max()) + 1
    rows = number_strata(units, units.stratum.astype(np.intp) * n_patterns + pattern[units.group])
    step = max(1, _CHUNK_SIZE // rows.n_strata)
    parts = []
    for start in range(0, len(candidates), step):
        members = candidates.members[start : start + step]
        engine = make_engine(sample.metric, sample.variance, rows, members)
        parts.append(engine.observed().gaps(None).studentized(scale))
    return np.concatenate(parts)
