"""Every metric that scikit-learn has is, in each group, what scikit-learn says it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics as sk

from fairperm import permutation_test
from fairperm.metrics import pinball_loss

N = 400


@dataclass(frozen=True)
class Pair:
    """A metric of ours, scikit-learn's function, and which columns they take."""

    metric: Any
    theirs: Callable[..., float]
    columns: str

    @property
    def name(self) -> str:
        """Return the id of the test."""
        name = getattr(self.metric, "name", self.metric)
        return f"{name}-{self.columns}"


MACRO = {"recall": sk.recall_score, "precision": sk.precision_score, "f1": sk.f1_score}
BINARY = {
    "accuracy": sk.accuracy_score,
    "zero_one_loss": sk.zero_one_loss,
    "recall": sk.recall_score,
    "specificity": partial(sk.recall_score, pos_label=0),
    "precision": sk.precision_score,
    "npv": partial(sk.precision_score, pos_label=0),
    "f1": sk.f1_score,
    "jaccard": sk.jaccard_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
    "mcc": sk.matthews_corrcoef,
    **{f"{name}_macro": partial(theirs, average="macro") for name, theirs in MACRO.items()},
}
SCORE = {
    "roc_auc": sk.roc_auc_score,
    "gini": lambda *columns, **weights: 2 * sk.roc_auc_score(*columns, **weights) - 1,
    "average_precision": sk.average_precision_score,
    "brier_score_loss": sk.brier_score_loss,
    "log_loss": sk.log_loss,
}
REGRESSION = {
    "mae": sk.mean_absolute_error,
    "mse": sk.mean_squared_error,
    "rmse": sk.root_mean_squared_error,
    "r2_score": sk.r2_score,
    "mape": sk.mean_absolute_percentage_error,
    "mean_pinball_loss": sk.mean_pinball_loss,
    "mean_poisson_deviance": sk.mean_poisson_deviance,
    "mean_gamma_deviance": sk.mean_gamma_deviance,
}


def of_class(function: Callable[..., Any], label: object) -> Callable[..., float]:
    """Return scikit-learn's metric of one class of several."""

    def one(y_true: Any, y_pred: Any, **weights: Any) -> float:
        return float(function(y_true, y_pred, labels=[label], average=None, **weights)[0])

    return one


def classes(*labels: object) -> list[tuple[object, Callable[..., float]]]:
    """Return the metrics of several classes, some of one of these."""
    pairs: list[tuple[object, Callable[..., float]]] = [
        ("accuracy", sk.accuracy_score),
        ("error_rate", sk.zero_one_loss),
        *((f"{name}_macro", partial(theirs, average="macro")) for name, theirs in MACRO.items()),
    ]
    for label in labels:
        pairs.append((f"recall[{label}]", of_class(sk.recall_score, label)))
        pairs.append((f"precision[{label}]", of_class(sk.precision_score, label)))
        pairs.append((f"f1[{label}]", of_class(sk.f1_score, label)))
        pairs.append((f"jaccard[{label}]", of_class(sk.jaccard_score, label)))
    return pairs


PAIRS = [
    *(Pair(ours, theirs, "binary") for ours, theirs in BINARY.items()),
    *(
        Pair(ours, theirs, columns)
        for columns in ("continuous", "tied", "with 0 and 1")
        for ours, theirs in SCORE.items()
    ),
    *(
        Pair(ours, theirs, columns)
        for columns in ("outcomes", "tied outcomes", "far from zero")
        for ours, theirs in REGRESSION.items()
    ),
    Pair(pinball_loss(0.9), partial(sk.mean_pinball_loss, alpha=0.9), "outcomes"),
    Pair("mean_poisson_deviance", sk.mean_poisson_deviance, "counts"),
    *(Pair(ours, theirs, "words") for ours, theirs in classes("cat", "dog", "emu")),
    *(Pair(ours, theirs, "integers") for ours, theirs in classes(0, 1, 2)),
]


def columns_of(kind: str) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    y: NDArray[Any]
    pred: NDArray[Any]
    if kind in {"words", "integers"}:
        y = rng.integers(0, 3, N)
        pred = np.where(rng.random(N) < 0.6, y, rng.integers(0, 3, N))
        names = np.array(["cat", "dog", "emu"] if kind == "words" else [0, 1, 2])
        return {"y_true": names[y], "y_pred": names[pred]}
    if kind == "counts":  # many of them zero
        pred = rng.gamma(2.0, 0.5, N)
        return {"y_true": rng.poisson(pred), "y_pred": pred}
    if "outcomes" in kind or kind == "far from zero":
        y = rng.gamma(4.0, size=N) + 1
        pred = 0.7 * y + 1 + rng.normal(size=N)
        if kind == "tied outcomes":
            y, pred = np.round(y), np.round(pred)
        pred = np.maximum(pred, 0.5)  # deviances are of predictions above zero
        shift = 1000.0 if kind == "far from zero" else 0.0
        return {"y_true": y + shift, "y_pred": pred + shift}
    y = (rng.random(N) < 0.4).astype(int)
    score = 1 / (1 + np.exp(-(2 * y - 1 + rng.normal(size=N))))
    if kind == "binary":
        return {"y_true": y, "y_pred": (score > 0.5).astype(int)}
    if kind == "tied":
        score = np.clip(np.round(score, 1), 0.1, 0.9)
    elif kind == "with 0 and 1":
        score = np.clip(np.round(score * 1.4 - 0.2, 1), 0.0, 1.0)
    return {"y_true": y, "y_score": score}


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("pair", PAIRS, ids=[pair.name for pair in PAIRS])
def test_values_are_those_of_scikit_learn(pair: Pair, weighted: bool) -> None:
    columns = columns_of(pair.columns)
    rng = np.random.default_rng(8)
    group = np.where(rng.random(N) < 0.4, "a", "b")
    weight = rng.uniform(0.5, 3, N)
    result = permutation_test(
        **columns,
        sensitive_features=group,
        metric=pair.metric,
        sample_weight=weight if weighted else None,
        n_resamples=19,
        rng=1,
    )
    assert set(result.values) == {"a", "b"}
    for name, value in result.values.items():
        rows = group == name
        weights = {"sample_weight": weight[rows]} if weighted else {}
        theirs = pair.theirs(*(column[rows] for column in columns.values()), **weights)
        assert value == pytest.approx(theirs, rel=1e-12, abs=1e-12)


def test_the_scores_tie_where_they_should() -> None:
    assert len(np.unique(columns_of("continuous")["y_score"])) == N
    assert len(np.unique(columns_of("tied")["y_score"])) == 9
    assert {0.0, 1.0} < set(columns_of("with 0 and 1")["y_score"].tolist())
