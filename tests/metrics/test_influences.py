"""What every metric must know: its influences, the rows it rests on, and its change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairperm.metrics import get_metric, metric_names
from fairperm.metrics.definition import Kind

N = 60
CLASSES = (0, 1, 2)
PARTS = sorted(
    {part.name for name in metric_names() for part in get_metric(name).parts if part.smooth}
    | {"recall_macro", "precision_macro", "f1_macro", "recall[0]", "balanced_accuracy[1]"}
    | {"f1[2]", "roc_auc[1]"}
)


def make_columns(kind: Kind) -> dict[str, Any]:
    """Return columns of two models; numbers are near enough for benefits above 0."""
    rng = np.random.default_rng(7)
    if kind == Kind.REGRESSION:
        names = ("y_true", "y_pred", "y_pred_new")
        return {name: rng.uniform(1.0, 1.9, N) for name in names}
    label = rng.integers(0, 3 if kind in {Kind.CLASSES, Kind.CLASS_SCORES} else 2, N)
    columns = {"y_true": label if label.max() > 1 else label > 0}
    for new in ("", "_new"):
        predicted = np.where(rng.uniform(size=N) < 0.6, label, rng.permutation(label))
        columns[f"y_pred{new}"] = predicted if label.max() > 1 else predicted > 0
        columns[f"y_score{new}"] = np.round(rng.uniform(0.05, 0.95, N), 1)
    return columns | {f"y_score[{one}]": rng.uniform(size=N) for one in CLASSES}


def prepare(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a metric that knows the classes of its columns, and the columns."""
    metric: Any = get_metric(name)
    columns = make_columns(metric.kind)
    if metric.kind == Kind.CLASS_SCORES:
        scores = {f"y_score[{one}]": None for one in CLASSES}
        given = {"threshold": None, "pos_label": None, "split_scores": lambda _: (scores, None)}
        metric = metric.for_arguments(SimpleNamespace(**given))
    table: Any = SimpleNamespace(columns=columns, columns_of=lambda _groups: columns)
    return metric.for_table(table, ()), columns


@pytest.mark.parametrize("name", PARTS)
def test_influences_are_the_derivative_of_the_value_by_the_counts(name: str) -> None:
    metric, columns = prepare(name)
    rows = metric.matrix(columns)
    counts = np.random.default_rng(3).uniform(0.5, 2.0, len(rows))
    found = metric.influences(counts, rows)
    step = 1e-5
    moved = [
        (metric.value_of(counts + one, rows) - metric.value_of(counts - one, rows)) / (2 * step)
        for one in step * np.eye(len(rows))
    ]
    np.testing.assert_allclose(found, moved, rtol=1e-5, atol=1e-8)
    assert abs(counts @ found) < 1e-9  # doubling all counts does not change the value


@pytest.mark.parametrize("name", PARTS)
def test_influences_do_not_depend_on_how_rows_are_counted(name: str) -> None:
    metric, columns = prepare(name)
    rows, counts = metric.matrix(columns), np.arange(N) % 3 + 1.0
    each = np.repeat(np.arange(N), counts.astype(int))
    found = metric.influences(np.ones(len(each)), rows[each])
    np.testing.assert_allclose(found, metric.influences(counts, rows)[each], atol=1e-12)


@pytest.mark.parametrize("name", PARTS)
def test_rows_that_the_value_rests_on_are_counted_once(name: str) -> None:
    metric, columns = prepare(name)
    bases = metric.base_rows(metric.matrix(columns))
    added = np.sum([*bases.values()], axis=0)
    assert set(np.unique(added)) <= {0.0, 1.0}
    assert metric.has_denominator or "rows" not in bases or (added == 1).all()


@pytest.mark.parametrize("name", [one for one in PARTS if get_metric(one).has_totals])
def test_a_change_is_the_difference_of_both_models(name: str) -> None:
    metric, columns = prepare(name)
    change: Any = metric.change()
    new = {**columns, **{k.removesuffix("_new"): v for k, v in columns.items() if "_new" in k}}
    ones = np.ones(N)
    old_value, new_value = (metric.value_of(ones, metric.matrix(one)) for one in (columns, new))
    found = change.value_of(ones, change.matrix(columns))
    assert found == pytest.approx(new_value - old_value, abs=1e-12)


def test_influences_on_a_changed_auc_are_differences() -> None:
    metric, columns = prepare("roc_auc")
    rows, ones = metric.change().matrix(columns), np.ones(N)
    found = metric.change().analyze(ones, rows)
    old, new = (metric.analyze(ones, rows[:, [0, score]]) for score in (1, 2))
    assert found.value == pytest.approx(new.value - old.value, abs=1e-12)
    np.testing.assert_allclose(found.influence, new.influence - old.influence, atol=1e-12)
