"""Evaluate with MLflow and write model cards, which an environment of its own has the packages for.

``python use_cards.py FOLDER PAGE`` fails where something is not as it should be, or not as the page
says.
"""

from __future__ import annotations

import doctest
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from mlflow.models import EvaluationResult
from sklearn.linear_model import LogisticRegression
from skops.card import Card

import fairperm

N = 600
GROUPS = ("../women|", "men #1", "日本 <b>", "x" * 300)
RNG = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "sex": pd.Series(RNG.choice(["f", "m"], N), dtype=object),
        "age": RNG.integers(0, 3, N),
    }
)
FRAME["y"] = (FRAME["x"] + RNG.normal(size=N) > 0).astype(float)
ASKED = {"sensitive_features": ["sex", "age"], "metrics": ["fpr", "selection_rate"], "rng": 1}


def decide(rows: Any) -> Any:
    return ((rows["x"] + 0.9 * (rows["sex"] == "m")) > 0).astype(int)


def score(rows: Any) -> Any:
    return 1 / (1 + np.exp(-rows["x"].to_numpy()))


def audit(**given: Any) -> fairperm.Audit:
    return fairperm.audit("y", data=FRAME, **{**ASKED, **given})


def evaluate(model: Any, frame: Any = FRAME, **given: Any) -> Any:
    asked = {"targets": "y", "model_type": "classifier", "evaluators": "fairperm"}
    return mlflow.models.evaluate(model, frame, **{**asked, "evaluator_config": ASKED, **given})


def fails(says: str, call: Callable[..., object], *arguments: Any, **options: Any) -> None:
    said = "nothing"
    try:
        call(*arguments, **options)
    except (fairperm.FairpermError, mlflow.exceptions.MlflowException) as error:
        said = str(error)
    assert says in said


def check_run(run: str, found: fairperm.Audit) -> None:
    """Compare what a run keeps with an audit."""
    kept: Mapping[str, float] = mlflow.get_run(run).data.metrics
    assert kept == found.to_metrics()
    folder = Path(mlflow.artifacts.download_artifacts(run_id=run, artifact_path="fairperm"))
    assert {one.name for one in folder.iterdir()} == {"audit.json", "audit.html"}
    text = mlflow.artifacts.load_dict(f"runs:/{run}/fairperm/audit.json")
    assert repr(fairperm.Audit.from_dict(text)) == repr(found)
    assert (folder / "audit.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def use_evaluator(folder: Path) -> None:
    decisions = audit(y_pred=decide(FRAME))
    assert decisions.where(verdict="disparity").rows
    with mlflow.start_run() as run:
        found = evaluate(decide)
    check_run(run.info.run_id, decisions)
    assert found.metrics == decisions.to_metrics()
    found.save(folder / "saved")
    read = EvaluationResult.load(folder / "saved").artifacts
    assert read["fairperm_audit"].content["rows"] == decisions.to_dict()["rows"]
    assert "<html" in read["fairperm_report"].content

    made = FRAME.assign(made=decide(FRAME))
    assert evaluate(None, made, predictions="made").metrics == decisions.to_metrics()
    data = mlflow.data.from_pandas(made, targets="y", predictions="made")
    assert evaluate(None, data, targets=None).metrics == decisions.to_metrics()

    def return_frame(rows: Any) -> Any:
        return pd.DataFrame({"made": decide(rows), "why": "so"})

    assert evaluate(return_frame, predictions="made").metrics == decisions.to_metrics()
    fails("predictions must be a column of what the model", evaluate, return_frame)

    scored = ASKED | {"output": "y_score", "threshold": 0.6}
    expected = audit(y_score=score(FRAME), threshold=0.6)
    assert evaluate(score, evaluator_config=scored).metrics == expected.to_metrics()
    columns = FRAME[["x", "y"]].to_numpy()
    arrays = ASKED | {"sensitive_features": {"sex": FRAME["sex"], "age": FRAME["age"]}}
    found = evaluate(
        lambda rows: (rows[:, 0] > 0).astype(int),
        columns[:, :1],
        targets=columns[:, 1],
        evaluator_config=arrays,
    )
    assert found.metrics == audit(y_pred=(FRAME["x"] > 0).astype(int)).to_metrics()


def use_logged_model() -> None:
    model = LogisticRegression().fit(FRAME[["x"]], FRAME["y"])
    with mlflow.start_run() as run:
        logged = mlflow.sklearn.log_model(model, name="model", input_example=FRAME[["x"]][:2])
        evaluate(logged.model_uri)
    expected = audit(y_pred=model.predict(FRAME[["x"]]))
    check_run(run.info.run_id, expected)
    kept = mlflow.get_logged_model(logged.model_id).metrics
    assert {one.key: one.value for one in kept} == expected.to_metrics()


def use_beside_others() -> None:
    numbers = FRAME.drop(columns="sex").astype(float)
    asked = ASKED | {"sensitive_features": "age"}

    def above(rows: Any) -> Any:
        return (rows["x"] > 0).astype(float)

    config = {"fairperm": asked, "default": {"log_explainer": False, "log_model_explainability": 0}}
    found = evaluate(above, numbers, evaluators=["default", "fairperm"], evaluator_config=config)
    assert found.metrics.keys() >= {"accuracy_score", "verdicts/inconclusive"}
    alone = evaluate(above, numbers, evaluators=None, evaluator_config=config["default"])
    assert "verdicts/inconclusive" not in alone.metrics


def refuse() -> None:
    for config, says in (
        ({"metric": "fpr"}, "got 'metric'. Did you mean 'metrics'?"),
        ({"data": FRAME}, "that MLflow does not pass, or output; got 'data'."),
        ({"output": "score"}, "output must be one of 'y_pred', 'y_score'; got 'score'."),
        ({"sensitive_features": "sexx"}, "a column of data; got 'sexx'. Did you mean 'sex'?"),
        ({"metrics": ["roc_auc"]}, "y_score must be given"),
    ):
        fails(says, evaluate, decide, evaluator_config={**ASKED, **config})
    fails("could not be evaluated", evaluate, decide, evaluator_config={"metrics": "fpr"})


def log_without_a_model() -> None:
    rows = pd.Series(RNG.choice(GROUPS, N))
    for found in (
        audit(y_pred=decide(FRAME), sensitive_features={"a/../b": rows, "..": rows}),
        audit(y_pred=decide(FRAME), sensitive_features=FRAME.index % 20, min_group_size=5),
    ):
        with mlflow.start_run() as run:
            found.log_to_mlflow()
        check_run(run.info.run_id, found)
    assert len(found.to_metrics()) > 1000  # more than MLflow takes at once


def write_cards(folder: Path) -> None:
    found = audit(y_pred=decide(FRAME), metrics=["fpr", "equalized_odds"], adjust=None)
    about = {"task_type": "tabular-classification", "dataset_type": "me/loans"}
    results = found.to_eval_results(**about, dataset_name="Loans", dataset_split="test")
    assert all(isinstance(one, EvalResult) for one in results)
    data = ModelCardData(model_name="loans", eval_results=results)
    section = found.to_model_card()
    text = f"---\n{data.to_yaml()}\n---\n\n# Loans\n\n## Fairness\n\n{section}"
    card = ModelCard(text)
    assert card.data.eval_results == results
    values = {
        (one.dataset_config, one.metric_type): one.metric_value for one in card.data.eval_results
    }
    assert len(values) == 5 * 2
    made, labels = decide(FRAME).to_numpy(), FRAME["y"].to_numpy()
    for group in "fm":
        for name, label in (("false_positive_rate", 0), ("true_positive_rate", 1)):
            rows = (FRAME["sex"].to_numpy() == group) & (labels == label)
            assert abs(values[f"sex={group}", name] - made[rows].mean()) < 1e-12
    card.save(folder / "README.md")
    assert ModelCard.load(folder / "README.md").data.eval_results == results

    small = audit(y_pred=decide(FRAME), min_group_size=10**6)
    assert small.to_eval_results(**about, dataset_name="Loans") == []
    both = audit(y_pred=decide(FRAME), y_pred_new=1 - decide(FRAME))
    fails("A model card is about one model", both.to_model_card)
    fails("A model card is about one model", both.to_eval_results, **about, dataset_name="Loans")

    skops = Card(LogisticRegression(), model_diagram=False)
    skops.add(**{"Evaluation/Fairness": section})
    rendered = skops.render()
    assert "\n## Fairness\n" in rendered
    assert section.strip() in rendered
    assert not re.search(r"(?m)^#+ \d+ comparisons", section)


if __name__ == "__main__":
    target, page = (Path(one).resolve() for one in sys.argv[1:])
    os.chdir(target)
    warnings.simplefilter("ignore")
    mlflow.set_tracking_uri(f"sqlite:///{target / 'runs.db'}")
    use_evaluator(target)
    use_logged_model()
    use_beside_others()
    refuse()
    log_without_a_model()
    write_cards(target)
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert found.attempted > 10
    assert not found.failed
