"""The choice of how the rows of a lazy frame are reduced to data that fit into memory.

Equal clusters or equal rows are counted if they are few. If not, rows are counted by bins of their
scores, unless a metric needs exact numbers, or the user asked for the normal limit, which needs
only sums of the rows' contributions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairperm._utils.checks import integer
from fairperm.data.arguments import Inputs
from fairperm.data.lazy import counting
from fairperm.data.lazy.backends import BinnableRows
from fairperm.data.lazy.clusters import MAX_CELLS, count_clusters
from fairperm.data.lazy.moments import has_sums, sum_contributions
from fairperm.data.score_bins import BINNED, takes_bins
from fairperm.errors import InputError, argument
from fairperm.metrics.definition import AnyMetric, WalkKind

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


def collect_rows(inputs: Inputs, metric: AnyMetric, frame: nw.LazyFrame[Any]) -> Inputs:
    """Return the inputs with data in memory: counted rows in place of the lazy frame."""
    if isinstance(inputs.data, BinnableRows) and inputs.sums_suffice:  # nothing is drawn
        return replace(inputs, data=inputs.data.rows)
    if inputs.missing == "group" and inputs.cluster is not None:
        raise InputError(
            f"{argument('missing', 'group')} cannot be used with {argument('cluster')} in a lazy "
            "frame. Fill the missing values with a name first."
        )
    n_bins = _parse_bins(inputs, metric)
    rows = counting.LazyRows.select(inputs, metric, frame)
    if n_bins is not None:
        return _count_by_bins(rows, metric, n_bins)
    if inputs.cluster is not None:
        clusters = count_clusters(rows)
        if clusters is not None:
            return clusters
    counted = rows.count_if_few()
    if counted is not None:
        return rows.make_inputs(counted)
    if _is_auc_only(metric):
        return _choose_bins(rows, metric)
    if inputs.cluster is not None:
        raise _too_many_clusters()
    if inputs.sums_suffice:
        return sum_contributions(rows, metric)
    if takes_bins(metric) and inputs.sample_weight is None:
        return _choose_bins(rows, metric)
    raise _too_many_rows(rows, metric)


def _choose_bins(rows: counting.LazyRows, metric: AnyMetric) -> Inputs:
    """Return the inputs with as many bins as can be counted, and a note that says so."""
    counted = _count_by_bins(rows, metric, rows.choose_bins())
    data: Any = counted.data
    return replace(counted, data=replace(data, notes=(BINNED,)))


def _count_by_bins(rows: counting.LazyRows, metric: AnyMetric, n_bins: int) -> Inputs:
    binned = rows.bin_scores(n_bins)
    if rows.inputs.cluster is not None:
        clusters = count_clusters(binned)
        if clusters is not None:
            return clusters
    counted = binned.count("counting rows by bins of the score")
    if len(counted) > counting.MAX_KINDS:
        raise _too_many_clusters() if rows.inputs.cluster else _too_many_rows(rows, metric)
    return binned.make_inputs(counted)


def _parse_bins(inputs: Inputs, metric: AnyMetric) -> int | None:
    """Return the requested number of bins. Raises InputError if the metric needs exact scores."""
    if inputs.score_bins is None:
        return None
    if not takes_bins(metric):
        exact = [one.name for one in metric.parts if "y_score" in one.columns]
        unfit = [one.name for one in metric.parts if one.name in exact and not takes_bins(one)]
        name = unfit[0] if unfit else metric.name
        raise InputError(
            f"{argument('score_bins')} cannot be used for {name}: it is no AUC of one score, and "
            "does not rise or fall with the score."
        )
    return integer("score_bins", inputs.score_bins, 2, counting.MAX_KINDS)


def _is_auc_only(metric: AnyMetric) -> bool:
    """Whether the metric uses scores for nothing but an AUC."""
    scored = [part for part in metric.parts if "y_score" in part.columns]
    return bool(scored) and all(part.walk is WalkKind.AUC for part in scored)


def _too_many_rows(rows: counting.LazyRows, metric: AnyMetric) -> InputError:
    hint = "Pass a random sample of the rows"
    if has_sums(rows, metric):
        normal = f"the normal limit of all rows ({argument('n_resamples', 0)})"
        hint = f"{hint}; permutation_test and audit can also use {normal}"
    return counting.too_many_rows(metric, f"{hint}.")


def _too_many_clusters() -> InputError:
    return InputError(
        f"{argument('cluster')} must have at most {counting.MAX_KINDS:,} distinct clusters (by "
        f"group, stratum and number of rows of each of at most {MAX_CELLS} kinds) in a lazy "
        "frame, each in one group and one stratum; it does not. Pass a random sample of the "
        "clusters."
    )
