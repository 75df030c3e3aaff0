"""True null hypotheses of metrics that are no means, of audits and of searches.

Each returns whether anything was rejected, and whether the result has a note on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import fairperm
from studies.study import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Outcome = tuple[bool, bool]

_OPTIONS: dict[str, Any] = {"n_resamples": 299, "n_jobs": 1, "progress": False}


def _groups(*n: int) -> NDArray[np.intp]:
    return np.repeat(np.arange(len(n)), n)


def _judge(result: Any) -> Outcome:
    return result.pvalue <= LEVEL, bool(result.notes)


def _calibration(alternative: str, rng: np.random.Generator) -> Outcome:
    """Compare two calibrated groups with base rates of 0.5 and 0.01."""
    group = _groups(100, 5000)
    score = np.where(group == 0, rng.beta(4, 4, len(group)), rng.beta(0.5, 49.5, len(group)))
    outcome = (rng.random(len(group)) < score).astype(int)
    return _judge(
        fairperm.permutation_test(
            outcome,
            y_score=score,
            sensitive_features=group,
            metric="calibration_in_the_large",
            alternative=alternative,  # type: ignore[arg-type]
            rng=rng,
            **_OPTIONS,
        )
    )


def _balanced_accuracy(rng: np.random.Generator) -> Outcome:
    group = _groups(60, 1000)
    outcome = rng.random(len(group)) < np.where(group == 0, 0.1, 0.5)
    outcome[[0, 60]], outcome[[1, 61]] = True, False  # both labels in both groups
    predicted = outcome ^ (rng.random(len(group)) < 0.2)
    return _judge(
        fairperm.permutation_test(
            outcome.astype(int),
            predicted.astype(int),
            sensitive_features=group,
            metric="balanced_accuracy",
            rng=rng,
            **_OPTIONS,
        )
    )


def _r2(rng: np.random.Generator) -> Outcome:
    group = _groups(60, 600)
    predicted = rng.normal(size=len(group)) * np.where(group == 0, 2.0, 1.0)
    outcome = predicted + rng.normal(size=len(group)) * np.where(group == 0, 2.0, 1.0)
    return _judge(
        fairperm.permutation_test(
            outcome, predicted, sensitive_features=group, metric="r2_score", rng=rng, **_OPTIONS
        )
    )


def _auc(rng: np.random.Generator) -> Outcome:
    """Compare AUCs of 0.76; the smaller group has 15 positives, and spreads are 3:1."""
    group = _groups(60, 600)
    label = np.concatenate([_groups(45, 15), _groups(450, 150)])
    spread = np.where(label == 1, np.where(group == 0, 3.0, 1.0), 1.0)
    mean = label * np.where(group == 0, np.sqrt(10), np.sqrt(2)) * 0.70710678
    return _judge(
        fairperm.permutation_test(
            label,
            y_score=mean + spread * rng.normal(size=len(group)),
            sensitive_features=group,
            metric="roc_auc",
            rng=rng,
            **_OPTIONS,
        )
    )


def _correlation(rng: np.random.Generator) -> Outcome:
    x = _groups(1170, 30)
    y = rng.normal(size=len(x)) * np.where(x == 1, 20.0, 1.0)
    return _judge(fairperm.correlation_test(x.astype(float), y, rng=rng, **_OPTIONS))


def _audit(rng: np.random.Generator) -> Outcome:
    """Compare three small noisy groups with a large one, by Holm's method."""
    group = _groups(1000, 50, 50, 50)
    value = rng.normal(size=len(group)) * np.where(group == 0, 1.0, 10.0)
    found = fairperm.audit(
        value,
        sensitive_features=group,
        metrics=["mean_outcome"],
        compare="reference",
        reference=0,
        min_group_size=1,
        rng=rng,
        **_OPTIONS,
    )
    judged = [(row.adjusted_pvalue or 1.0, row.result and row.result.notes) for row in found.rows]
    return any(p <= LEVEL for p, _ in judged), any(notes for _, notes in judged)


def _models(rng: np.random.Generator) -> Outcome:
    """Audit a new model that changes the predictions of a tenth of the small group only."""
    group = _groups(100, 2000)
    outcome = rng.random(len(group)) < 0.5
    old = outcome ^ (rng.random(len(group)) < 0.2)
    # among changed rows as many become right as wrong: of each outcome, old errors are drawn anew
    redrawn = (group == 0) & (rng.random(len(group)) < 0.3)
    new = np.where(redrawn, outcome ^ (rng.random(len(group)) < 0.2), old)
    found = fairperm.audit(
        outcome.astype(int),
        old.astype(int),
        y_pred_new=new.astype(int),
        sensitive_features=group,
        metrics=["accuracy", "true_positive_rate", "false_positive_rate"],
        min_group_size=1,
        rng=rng,
        **_OPTIONS,
    )
    changes = [row.change for row in found.rows if row.change is not None]
    is_wrong = any(change.verdict in {"narrowed", "widened"} for change in changes)
    return is_wrong, any(change.result and change.result.notes for change in changes)


def _search(rng: np.random.Generator) -> Outcome:
    """Search among 24 subgroups, one of which is small and noisy."""
    features = {f"f{i}": rng.integers(2, size=1000) for i in range(3)}
    features["small"] = (np.arange(1000) < 50).astype(int)
    value = rng.normal(size=1000) * np.where(features["small"] == 1, 10.0, 1.0)
    found = fairperm.find_subgroups(
        value, features=features, metric="mean_outcome", max_depth=2, rng=rng, **_OPTIONS
    )
    return bool(found.found), bool(found.notes)


SCENARIOS: dict[str, Callable[[np.random.Generator], Outcome]] = {
    "calibration in the large, 100 / 5,000, base rates 0.5 and 0.01, greater": (
        lambda rng: _calibration("greater", rng)
    ),
    "calibration in the large, 100 / 5,000, base rates 0.5 and 0.01, less": (
        lambda rng: _calibration("less", rng)
    ),
    "balanced accuracy, 60 / 1,000, base rates 0.1 and 0.5": _balanced_accuracy,
    "R², 60 / 600, spreads 2:1": _r2,
    "AUC, 15 of 60 / 150 of 600 positive, spreads 3:1": _auc,
    "correlation with 30 of 1,200 rows, spreads 20:1": _correlation,
    "audit: 50, 50, 50 / 1,000, spreads 10:1, Holm": _audit,
    "audit of two models: 100 (changed) / 2,000, three metrics": _models,
    "search: 50 of 1,000 of spread 10": _search,
}
