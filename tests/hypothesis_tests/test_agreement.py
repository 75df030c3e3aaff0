"""p-values and intervals of one result never contradict each other."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm.data.arguments import Alternative
from fairperm.hypothesis_tests.margins.one_sided import ratio_interval
from fairperm.metrics import get_metric

SAMPLES, PARTS = 20_000, 4
INEQUALITY = {"generalized_entropy_index", "theil_t_index", "theil_l_index", "atkinson_index"}
RANKS = {"roc_auc", "gini", "average_precision", "roc_auc_ovr", "roc_auc_ovr_weighted"}
UNMATCHED = {*RANKS, "equalized_odds"}
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "symmetric", "greater", "less")
DESIGNS = (
    *("rows", "weights", "clusters", "weighted clusters", "strata"),
    *("matched", "matched strata"),
)
DRAWS = (0, 39, 59, 63, "auto")  # 0 is the normal limit


def draw_columns(metric: str, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return n rows of two groups, with many ties."""
    group = (rng.random(n) < rng.uniform(0.2, 0.8)).astype(int)
    label, kind = rng.integers(0, 2, n), get_metric(metric).kind
    columns: dict[str, Any]
    if kind in {"binary", "labels"}:
        columns = {"y_true": label, "y_pred": rng.integers(0, 2, n)}
    elif kind == "classes":
        columns = {"y_true": rng.integers(0, 3, n), "y_pred": rng.integers(0, 3, n)}
    elif kind == "class_scores":
        columns = {"y_true": rng.integers(0, 3, n), "y_score": rng.integers(1, 8, (n, 3))}
    elif kind in {"score", "probability"}:
        columns = {"y_true": label, "y_score": rng.integers(1, 8, n) / 8}
    else:
        outcome = rng.integers(1, 9, n)
        is_benefit = metric in INEQUALITY  # which is not negative
        prediction = outcome + rng.integers(0, 8, n) if is_benefit else rng.integers(1, 9, n)
        columns = {"y_true": outcome, "y_pred": prediction}
    return columns | {"sensitive_features": group}


def draw_design(design: str, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the weights, clusters, strata or matched sets of n rows."""
    options: dict[str, Any] = {}
    if design in {"weights", "weighted clusters"}:
        options["sample_weight"] = rng.integers(1, 5, n)
    if design in {"clusters", "weighted clusters"}:
        options |= {"cluster": rng.integers(0, n // 2, n), "split_clusters": True}
    if design == "strata":
        options["control_features"] = rng.integers(0, 2, n)
    if design.startswith("matched"):
        options["matched"] = rng.integers(0, n // 2, n)
    if design == "matched strata":
        options["control_features"] = options["matched"] % 2
    return options


def draw_options(metric: str, design: str, rng: np.random.Generator) -> dict[str, Any]:
    """Return a scheme or a variance that the metric has, or the defaults; and how many draws."""
    options: dict[str, Any] = {"n_resamples": DRAWS[rng.choice(5, p=(0.05, 0.3, 0.3, 0.3, 0.05))]}
    if design == "rows" and rng.random() < 0.1:
        return options | {"variance": None, "n_bootstrap": 20, "scheme": "pooled"}
    has_schemes = get_metric(metric).kind in {"binary", "labels"} and design in {"rows", "strata"}
    if has_schemes and rng.random() < 0.5:
        options["scheme"] = str(rng.choice(["pooled", "denominator"]))
    return options


@pytest.mark.validate
@pytest.mark.parametrize("part", range(PARTS))
def test_pvalues_and_intervals_never_contradict_each_other(part: int) -> None:
    """Of the difference and of the ratio, for every metric and design, in all directions."""
    rng = np.random.default_rng(part)
    rejected = ratios = 0
    tested: Counter[tuple[str, str]] = Counter()
    for metric in itertools.cycle(fairperm.metric_names()):
        if tested.total() == SAMPLES // PARTS:
            break
        n, level = int(rng.integers(10, 50)), float(rng.choice([0.6, 0.8, 0.9, 0.95]))
        if get_metric(metric).kind == "class_scores":
            n *= 2  # of each class, every group and stratum needs rows
        design = str(rng.choice(DESIGNS))
        alternative = ALTERNATIVES[int(rng.integers(2 if metric == "equalized_odds" else 4))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fairperm.FairpermWarning)
            try:
                result = fairperm.permutation_test(
                    **draw_columns(metric, n, rng),
                    **draw_design(design, n, rng),
                    **draw_options(metric, design, rng),
                    metric=metric,
                    alternative=alternative,
                    confidence_level=level,
                    rng=tested.total(),
                )
            except fairperm.InputError:  # undefined in so few rows, or not offered
                continue
        tested[metric, design] += 1
        rejects = result.pvalue <= 1 - level + 1e-12
        low, high = result.confidence_interval
        assert (not low <= 0 <= high) == rejects, (metric, design, result)
        # a skewed null distribution may reject one-sidedly a small gap on the other side
        is_one_sided = alternative in {"greater", "less"}
        assert is_one_sided or low <= result.difference <= high
        found = ratio_interval(result)
        if found is not None:
            ratio, (low, high) = found
            assert (not low <= 1 <= high) == rejects, (metric, design, result)
            assert is_one_sided or low <= ratio <= high
            ratios += 1
        rejected += rejects
    assert min(rejected, tested.total() - rejected, ratios) > tested.total() / 10
    wanted = set(itertools.product(fairperm.metric_names(), DESIGNS))
    assert wanted - set(tested) == {
        (metric, design) for metric in UNMATCHED for design in ("matched", "matched strata")
    }
