"""Data of audits, and ways to ask for one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fairperm import Audit, FairpermWarning, audit
from fairperm.hypothesis_tests.results.audits import AuditRow

N = 600


def _data(distinct_scores: int | None) -> dict[str, Any]:
    """Return labels, scores and predictions of three groups with different base rates."""
    rng = np.random.default_rng(4)
    group = rng.choice(["x", "y", "z"], N, p=[0.4, 0.3, 0.3])
    y_true = (rng.random(N) < np.where(group == "x", 0.6, 0.4)).astype(int)
    noise = rng.normal(size=N) * np.where(group == "z", 2, 1)
    y_score = 1 / (1 + np.exp(-(2 * y_true - 1 + noise)))
    if distinct_scores is not None:
        y_score = np.round(y_score * distinct_scores) / distinct_scores
    y_pred = (y_score + rng.normal(size=N) / 10 > 0.4).astype(int)
    return {"y_true": y_true, "y_pred": y_pred, "y_score": y_score, "sensitive_features": group}


DATA_OF_TWO: dict[str, Any] = {
    "y_true": np.arange(400) % 2,
    "y_pred": np.arange(400) % 3 % 2,
    "sensitive_features": np.where(np.arange(400) < 180, "a", "b"),
}
DATA = {"few scores": _data(3), "unique scores": _data(None)}


def twice_accuracy(y_true: Any, y_pred: Any) -> float:
    return 2 * float(np.mean(y_true == y_pred))


def quietly(**options: Any) -> Audit:
    """Return an audit, its notes unheard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        return audit(**options)


def selected(*counts: tuple[int, int]) -> dict[str, Any]:
    """Return groups 0, 1, … with so many rows selected of so many."""
    y_pred = np.concatenate([np.arange(n) < k for k, n in counts]).astype(int)
    group = np.repeat(np.arange(len(counts)), [n for _, n in counts])
    return {"y_true": y_pred, "y_pred": y_pred, "sensitive_features": group}


def one_row(*counts: tuple[int, int], **options: Any) -> AuditRow:
    (row,) = audit(**selected(*counts), metrics="selection_rate", rng=1, **options)
    return row


def check_agreement(audit: Audit) -> None:
    """Check that every interval shows what the adjusted p-values say."""
    assert {row.verdict for row in audit} - {"too small"}
    for row in audit:
        assert row.adjusted_pvalue is not None
        assert row.adjusted_interval is not None
        low, high = row.adjusted_interval
        assert low <= high
        assert (low > 0 or high < 0) == (row.adjusted_pvalue <= audit.alpha)
        if row.margin is not None and row.adjusted_exceedance_pvalue is not None:
            is_beyond = low > row.margin or high < -row.margin
            is_within = -row.margin < low and high < row.margin
            assert (is_beyond, is_within) == (
                row.verdict == "disparity",
                row.verdict == "equivalent",
            )
