"""How the rows of a lazy frame become data that fit into memory, as exactly as the metric allows.

Equal rows are counted; or equal clusters; or rows by bins of their scores; or what rows contribute
is added up; or a sample of them is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm._utils.checks import integer
from fairperm.data.lazy import counting as lazy
from fairperm.data.lazy.backends import lazy_frame
from fairperm.data.lazy.clusters import MOST_CELLS, counted_clusters
from fairperm.data.lazy.counting import Reading
from fairperm.data.lazy.moments import summed
from fairperm.data.lazy.sampling import sampled
from fairperm.errors import InputError

if TYPE_CHECKING:
    from fairperm.data.arguments import Inputs
    from fairperm.metrics.definition import AnyMetric

_MOST_SAMPLED = 1 << 27
_LAZY_ONLY = {"score_bins": "scores are kept as they are", "sample_rows": "all rows are there"}
_HINT = (
    "Pass sample_rows=1_000_000 to test a sample of them; permutation_test and audit have the "
    "normal limit of all rows, too (n_resamples=0)."
)


def counted(inputs: Inputs, metric: AnyMetric) -> Inputs:
    """Return the inputs with data that are not lazy: counted, as far as that can be done."""
    frame = lazy_frame(inputs.data)
    if frame is None:
        _check_eager(inputs)
        return inputs
    n_sampled = None
    if inputs.sample_rows is not None:
        n_sampled = integer("sample_rows", inputs.sample_rows, 2, _MOST_SAMPLED)
    bins = _bins(inputs, metric)
    reading = Reading.of(inputs, metric, frame)
    if bins is not None:
        return _binned(reading, metric, bins)
    if inputs.cluster is not None:
        clusters = counted_clusters(reading)
        if clusters is not None:
            return clusters
    found = reading.few_kinds()
    if found is not None:
        return reading.inputs(found)
    if _ranks(metric):
        return _binned(reading, metric, lazy.DEFAULT_BINS)
    if n_sampled is not None:
        return sampled(inputs, metric, frame, n_sampled)
    if inputs.cluster is not None:
        raise _too_many_clusters()
    if inputs.sums_suffice:
        return summed(reading, metric)
    raise lazy.too_many(metric, _HINT)


def _binned(reading: Reading, metric: AnyMetric, bins: int) -> Inputs:
    binned = reading.binned(*reading.ends(), bins)
    if reading.given.cluster is not None:
        clusters = counted_clusters(binned, bins)
        if clusters is not None:
            return clusters
    found = binned.grouped("counting rows by bins of the score")
    if len(found) > lazy.MOST_KINDS:
        raise _too_many_clusters() if reading.given.cluster else lazy.too_many(metric, _HINT)
    return binned.inputs(found, bins)


def _check_eager(inputs: Inputs) -> None:
    """Refuse what is for lazy frames only."""
    for name, why in _LAZY_ONLY.items():
        value = getattr(inputs, name)
        if value is not None:
            raise InputError(name, f"left out: data is not lazy, so that {why}", value)


def _bins(inputs: Inputs, metric: AnyMetric) -> int | None:
    """Return how many bins were asked for; refuse metrics that need the scores themselves."""
    if inputs.score_bins is None:
        return None
    if not _ranks(metric):
        rule = f"left out: {metric.name} is not made of ranks of scores"
        raise InputError("score_bins", rule, inputs.score_bins)
    return integer("score_bins", inputs.score_bins, 2, lazy.MOST_KINDS)


def _ranks(metric: AnyMetric) -> bool:
    """Tell whether all that the metric makes of scores are ranks."""
    scored = [part for part in metric.parts if "y_score" in part.columns]
    return bool(scored) and all(part.is_rank for part in scored)


def _too_many_clusters() -> InputError:
    return InputError(
        f"cluster must make at most {lazy.MOST_KINDS:,} distinct clusters (by group, stratum and "
        f"their numbers of rows of at most {MOST_CELLS} kinds), each in one group and stratum, "
        "where they are counted lazily; got others. Pass sample_rows=1_000_000 to test clusters "
        "drawn at random."
    )
