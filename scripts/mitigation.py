"""Compare a logistic regression of Adult with itself after a mitigation by Fairlearn.

``python -m scripts.mitigation`` prints what docs/how-to/mitigation.md shows. It needs Fairlearn,
scikit-learn and pandas, and Adult, which :func:`fairperm.datasets.fetch_adult` downloads.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairperm
from fairperm.datasets import fetch_adult

NOT_FEATURES = ["income", "sex", "race", "split", "fnlwgt"]


def predict_test_rows() -> pd.DataFrame:
    """Return the test rows with the predictions of the model before and after the mitigation."""
    adult = fetch_adult("pandas")
    features = pd.get_dummies(adult.drop(columns=NOT_FEATURES), dtype=float)
    is_train = adult["split"] == "train"
    seen, unseen = adult[is_train], adult[~is_train].copy()
    model: Any = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(features[is_train], seen["income"])
    mitigated = ThresholdOptimizer(
        estimator=model,
        constraints="equalized_odds",
        prefit=True,
        predict_method="predict_proba",
    )
    mitigated.fit(features[is_train], seen["income"], sensitive_features=seen["sex"])
    unseen["old"] = model.predict(features[~is_train])
    unseen["new"] = mitigated.predict(
        features[~is_train], sensitive_features=unseen["sex"], random_state=1
    )
    return unseen


def main() -> None:
    """Print the comparisons of the page."""
    rows = predict_test_rows()
    call: dict[str, Any] = {"data": rows, "sensitive_features": "sex", "rng": 1}
    print(fairperm.compare_models("income", "old", "new", metric="false_positive_rate", **call))
    metrics = ["false_positive_rate", "true_positive_rate", "selection_rate", "accuracy"]
    audit = fairperm.audit("income", "old", y_pred_new="new", metrics=metrics, margin=0.03, **call)
    for row in audit:
        if row.change is None:
            raise TypeError("an audit of two models has a change in every row")
        first, second = row.change.value_texts
        print(f"\n{row.metric}: Female {first}, Male {second}")
        print(f"  {row.change.verdict}: {row.change.reason}")


if __name__ == "__main__":
    main()
