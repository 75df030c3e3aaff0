"""An evaluator for ``mlflow.models.evaluate``, which finds it by its entry point."""

from __future__ import annotations

from inspect import signature
from typing import Any

import mlflow
from mlflow.models.evaluation import EvaluationResult, ModelEvaluator

_OUTPUTS = ("y_pred", "y_score")
_FROM_MLFLOW = ("y_true", "data")


class FairpermEvaluator(ModelEvaluator):
    """Audits the predictions of a model, and logs metrics, JSON and the report.

    ``evaluator_config`` has ``sensitive_features`` and other arguments of :func:`fairperm.audit`.
    Names are of columns of the evaluated data. ``output`` says what the predictions are: "y_pred",
    which is the default, or "y_score" for scores and probabilities of the positive class.

    Examples
    --------
    .. code-block:: python

        mlflow.models.evaluate(
            model, data, targets="label", model_type="classifier", evaluators="fairperm",
            evaluator_config={"sensitive_features": "sex", "metrics": ["fpr", "fnr"], "rng": 1},
        )
    """

    @classmethod
    def can_evaluate(cls, *, evaluator_config: dict[str, Any] | None, **_: Any) -> bool:
        """Whether groups are named: without evaluators=, MLflow asks all that are installed."""
        return "sensitive_features" in (evaluator_config or {})

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: str,
        evaluator_config: dict[str, Any],
        model: Any = None,
        predictions: str | None = None,
        **_: Any,
    ) -> EvaluationResult:
        """Audit what a model predicts, or the predictions that the data have."""
        from mlflow.models.evaluation.artifacts import (
            JsonEvaluationArtifact,
            TextEvaluationArtifact,
        )

        from fairperm import audit
        from fairperm._utils.checks import choice
        from fairperm.errors import InputError, did_you_mean

        options = dict(evaluator_config)
        output = choice("output", options.pop("output", "y_pred"), _OUTPUTS)
        known = {*signature(audit).parameters} - {*_FROM_MLFLOW, output}
        for name in {*options} - known:
            rule = "arguments of fairperm.audit that MLflow does not pass, or output"
            raise InputError("evaluator_config", rule, name, did_you_mean(name, known))
        features = dataset.features_data
        if model is None:
            options[output] = dataset.predictions_data
        else:
            options[output] = _select(model.predict(features.copy()), predictions)
        if not hasattr(features, "columns"):
            features = dict(zip(dataset.feature_names, features.T, strict=True))
        found = audit(dataset.labels_data, data=features, **options)
        found.log_to_mlflow()
        uri = mlflow.get_artifact_uri("fairperm/audit")
        artifacts = {
            "fairperm_audit": JsonEvaluationArtifact(f"{uri}.json", found.to_dict()),
            "fairperm_report": TextEvaluationArtifact(f"{uri}.html", found.to_html()),
        }
        return EvaluationResult(found.to_metrics(), artifacts, run_id)


def _select(output: Any, name: str | None) -> Any:
    """Return the column of predictions, where the model returns a frame."""
    from fairperm.errors import InputError, listed

    if not hasattr(output, "columns"):
        return output
    names = list(output.columns)
    if name is None and len(names) == 1:
        (name,) = names
    if name not in names:
        rule = f"a column of what the model returns ({listed(names)})"
        raise InputError("predictions", rule, name)
    return output[name]
