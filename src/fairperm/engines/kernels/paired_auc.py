"""Change of the AUC between two scores of the same rows, with DeLong's paired variance.

A row's influence on the change is that on the new AUC minus that on the old one, and the variance
is the sum of their squares, added up over each cluster first. The rows are sorted by either score
once, and every lane walks up both, as for one score (see ``weighted_auc``). What group A has passed
is kept by run: a row then compares what it beats by the new score with what it beats by the old.
Where both scores order the rows alike, the influences cancel exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairperm._utils.arrays import Array, Integers, Places, Words
from fairperm.engines.kernels.kernel import LANES, choose, inlined, kernel
from fairperm.engines.kernels.weighted_auc import (
    MEAN,
    SIDE,
    SLOPE,
    SQUARES,
    STATE_ROWS,
    WEIGHTS,
    WINS,
    Clusters,
    Steps,
    WeightedRows,
    add_clusters,
    count_units,
    fill_strata,
    set_influences,
    set_variances,
    walk_up,
)


@dataclass(frozen=True, slots=True)
class PairedRows:
    """The walks up both scores, and the rows of each cluster in both."""

    # The walks. Their runs are numbered together in each stratum: the new ones come first.
    new: WeightedRows
    old: WeightedRows
    # by cluster, each row in the new walk, and then in the old one, with minus its weight
    run_of_row: Integers
    weight_of_row: Array
    passed: Array  # the weight of the other label that each run has passed, in both groups together

    @classmethod
    def build(
        cls, new: WeightedRows, old: WeightedRows, by_new: Places, by_old: Places
    ) -> PairedRows:
        """Find each row in both walks, which are of rows in these orders."""
        run = np.empty(len(by_new), np.int64)
        run[by_new[new.by_cluster]] = new.clusters.run_of_row
        n_new, n_old = np.diff(new.first_run), np.diff(old.first_run)
        rows_by_stratum = old.clusters.starts[2 * old.first_unit]
        offset = np.repeat(n_new, np.diff(rows_by_stratum))
        runs = np.stack([run[by_old[old.by_cluster]], offset + old.clusters.run_of_row], axis=1)
        is_new = np.repeat(
            np.tile([True, False], len(n_new)), np.stack([n_new, n_old], axis=1).ravel()
        )
        passed = np.empty(len(is_new))
        passed[is_new], passed[~is_new] = new.steps.passed, old.steps.passed
        return cls(
            new=new,
            old=old,
            run_of_row=runs.ravel(),
            weight_of_row=np.outer(old.clusters.weight_of_row, [1.0, -1.0]).ravel(),
            passed=passed,
        )


def auc_changes_by_lane(words: Words, rows: PairedRows) -> tuple[Array, Array]:
    """Return the change of the AUC and its variance by permutation, stratum and group."""
    new, old = rows.new, rows.old
    first_run = new.first_run + old.first_run
    levels = np.empty((int(np.diff(first_run).max()), SIDE))

    def fill(s: int, words: Words, value: Array, variance: Array) -> None:
        clusters = old.clusters_of(s)._replace(
            run_of_row=rows.run_of_row, weight_of_row=rows.weight_of_row
        )
        _fill(
            words,
            new.steps_of(s),
            old.steps_of(s),
            clusters,
            rows.passed[first_run[s] : first_run[s + 1]],
            old.totals[s],
            levels,
            old.is_clustered,
            value,
            variance,
        )

    return fill_strata(words, old, fill)


@kernel
def _fill(
    words: Words,
    new: Steps,
    old: Steps,
    clusters: Clusters,
    passed: Array,
    totals: Array,
    levels: Array,
    is_clustered: bool,
    value: Array,
    variance: Array,
) -> None:
    """Fill in the estimates of a stratum."""
    flat = np.empty(STATE_ROWS * SIDE)
    state = flat.reshape(STATE_ROWS, SIDE)
    n_new = len(new.passed)
    n_rows = clusters.starts[-1] - clusters.starts[0]
    n_units = count_units(words, clusters)
    for start in range(0, LANES, SIDE):
        shift = np.uint64(start)
        lanes = slice(start, start + SIDE)
        state[:] = 0.0
        walk_up(words, old, shift, flat, levels[n_new:])
        wins = state[WINS : WINS + 2].copy()
        state[:] = 0.0
        walk_up(words, new, shift, flat, levels[:n_new])
        state[WINS : WINS + 2] -= wins
        set_influences(state, totals, n_units[:, :, lanes], 0.0, value[:, lanes])
        state[:SLOPE] = 0.0
        if is_clustered:
            add_clusters(words, _in_pairs(clusters), passed, levels, shift, flat)
        else:
            _add_rows(words, clusters, passed, levels, shift, flat)
        set_variances(state, totals, n_units[:, :, lanes], n_rows, is_clustered, variance[:, lanes])


@kernel
def _in_pairs(clusters: Clusters) -> Clusters:
    """Return the clusters with each row twice: in the new walk, and in the old one."""
    unit, starts, weights, run_of_row, weight_of_row = clusters
    return Clusters(unit, 2 * starts, weights, run_of_row, weight_of_row)


@kernel
def _add_rows(
    words: Words, clusters: Clusters, passed: Array, levels: Array, shift: np.uint64, state: Array
) -> None:
    """Add up the squared influences of rows that are units, and the squares of their weights."""
    unit, starts, weights, run_of_row, _ = clusters
    for u in range(unit.size):
        i, label = 2 * starts[2 * u], int(starts[2 * u + 1] == starts[2 * u])
        new, old = run_of_row[i], run_of_row[i + 1]
        word, weight = words[unit[u]] >> shift, weights[2 * u + label]
        both = passed[new] - passed[old]
        if label == 1:
            _add_row(word, weight * weight, both, levels[new], levels[old], 1, state)
        else:
            _add_row(word, weight * weight, both, levels[new], levels[old], 0, state)


@inlined
def _add_row(
    word: np.uint64, square: float, both: float, new: Array, old: Array, label: int, state: Array
) -> None:
    """Add the squares of one row; ``both`` is what it beats more often, in both groups together."""
    for lane in range(SIDE):
        a = new[lane] - old[lane]
        of_a = a * state[SLOPE * SIDE + lane] - state[(MEAN + 2 * label) * SIDE + lane]
        of_b = (both - a) * state[(SLOPE + 1) * SIDE + lane] - state[
            (MEAN + 2 * label + 1) * SIDE + lane
        ]
        mine = choose(word, lane, square, 0.0)
        state[(SQUARES + 2 * label) * SIDE + lane] += mine * (of_a * of_a)
        state[(SQUARES + 2 * label + 1) * SIDE + lane] += (square - mine) * (of_b * of_b)
        state[(WEIGHTS + 2 * label) * SIDE + lane] += mine
        state[(WEIGHTS + 2 * label + 1) * SIDE + lane] += square - mine
