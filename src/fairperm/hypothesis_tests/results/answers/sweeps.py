"""The answers of sweeps over thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_count, format_metric, name_of_gap, state_pvalue
from fairperm.hypothesis_tests.results.answers.words import (
    CLEAREST,
    Names,
    embed,
    sentence,
    unit_of,
)

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.sweeps import MetricSweep, ThresholdSweepResult


def answer_sweep(result: ThresholdSweepResult) -> str:
    """Return at how many thresholds a gap is larger than chance explains, for each metric."""
    return " ".join(answer_curve(result, curve) for curve in result.curves.values())


def answer_curve(
    result: ThresholdSweepResult, curve: MetricSweep, names: Names | None = None
) -> str:
    """Return at how many thresholds the gap of one metric is larger than chance explains."""
    gap = name_of_gap(*(names or result.group_names))
    n = int((curve.adjusted_pvalue <= result.alpha).sum())
    unit, worst = unit_of(curve.metric), curve.largest()
    where = f"{n:,} of {len(result.thresholds):,} thresholds the gap"
    what = f"in {format_metric(curve.metric)}, {gap},"
    head = f"At {where} {what} is larger" if n else f"At no threshold is the gap {what} larger"
    return sentence(
        f"{head} than chance explains; the largest is "
        f"{unit.signed(float(curve.difference[worst]))} at {result.thresholds[worst]:.4g} "
        f"({state_pvalue(curve.global_pvalue)} for all thresholds together)"
    )


def answer_sweeps(sweeps: Sequence[ThresholdSweepResult]) -> str:
    """Return how many pairs of groups have a gap at some threshold, and the clearest."""
    pairs = [(one, curve) for one in sweeps for curve in one.curves.values()]
    if len(pairs) == 1:
        return answer_curve(*pairs[0])
    found = {id(one) for one, curve in pairs if (curve.adjusted_pvalue <= one.alpha).any()}
    clearest = min(pairs, key=lambda pair: _or_one(pair[1].global_pvalue))
    head = f"{len(found):,} of {format_count(len(sweeps), 'pair')} of groups"
    verb = "has" if len(found) == 1 else "have"
    return (
        f"{head} {verb} a gap that chance does not explain, at some threshold. "
        f"{CLEAREST[bool(found)]}: {embed(answer_curve(*clearest))}"
    )


def _or_one(p: float) -> float:
    return 1.0 if math.isnan(p) else p
