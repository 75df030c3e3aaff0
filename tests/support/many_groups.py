"""Engines of many groups, made of data whose rows repeat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairperm._utils import streams
from fairperm.data.arguments import Inputs
from fairperm.data.reading import read_table
from fairperm.engines import choice
from fairperm.engines.choice import Engine
from fairperm.engines.counts import CellsEngine
from fairperm.engines.estimates import Estimates, join_estimates
from fairperm.engines.many_groups import ManyGroupsEngine
from fairperm.engines.resampling import blocks
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.plan import Plan
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Scheme, Variance
from tests.support.number_data import SCORES, arguments

ENGINES = {  # thresholds at which every sample goes one way
    "counts": {"_FEW_COUNTS": 10**9, "MERGEABLE": 10**9},
    "units": {"_FEW_COUNTS": -1, "MERGEABLE": -1, "COUNT_COST": 10**12},
}
KINDS = {"counts": CellsEngine, "units": ManyGroupsEngine}


def force(patch: pytest.MonkeyPatch, engine: str) -> None:
    for name, number in ENGINES[engine].items():
        patch.setattr(choice, name, number)


def build(
    engine: str,
    data: dict[str, Any],
    metric: str,
    scheme: str,
    variance_name: str | None,
) -> Engine:
    chosen = get_metric(metric)
    variance = None if variance_name is None else Variance(variance_name)
    table = read_table(Inputs(**data), chosen)
    comparison = Comparison.of(table, Plan(chosen, Scheme(scheme), variance), table.groups, None)
    with pytest.MonkeyPatch.context() as patch:
        force(patch, engine)
        found = comparison.engine(variance, many=True)
    assert isinstance(found, KINDS[engine])
    return found


def observed(engine: Engine) -> Estimates:
    return engine.observed()


def permuted(engine: Engine, n: int, seed: int = 1) -> Estimates:
    """Return draws in the blocks that a test would make."""
    resampling = blocks.Resampling(n, seed, 1, False)
    found = resampling.run_blocks(engine.permuted, streams.PERMUTATIONS, engine.block_size)
    return join_estimates(found)


GROUPS = np.array(["d", "a", "c", "b"])


def repeating(metric: str, n: int = 400, *, strata: bool = False, seed: int = 1) -> dict[str, Any]:
    """Return numbers that repeat, in four groups of unequal sizes."""
    rng = np.random.default_rng([seed, n])
    if metric in SCORES:
        data = arguments(metric, rng.integers(0, 2, n), rng.integers(1, 10, n) / 10)
    elif get_metric(metric).kind == "regression":
        data = arguments(metric, rng.integers(1, 6, n), rng.integers(1, 6, n))
    else:
        data = {"y_true": rng.integers(0, 2, n), "y_pred": rng.integers(0, 2, n)}
    data["sensitive_features"] = GROUPS[rng.choice(4, n, p=[0.1, 0.4, 0.2, 0.3])]
    if strata:
        data["control_features"] = rng.integers(0, 3, n)
    return data
