"""Scorers: every name that scikit-learn has, and its own that measures a gap."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline

import fairperm
from fairperm import InputError, make_gap_scorer
from fairperm.metrics import get_metric
from fairperm.metrics.registry import find_named
from fairperm.metrics.scorers import SCORERS, find_scorer

if TYPE_CHECKING:
    from collections.abc import Iterator

RNG = np.random.default_rng(1)
N = 240
GROUPS = RNG.choice(["a", "b"], N)
X = pd.DataFrame({"x": RNG.normal(size=N), "z": RNG.normal(size=N), "group": GROUPS == "a"})
Y = (X["x"] + 0.8 * X["group"] + RNG.normal(size=N) > 0).astype(int).to_numpy()
AMOUNTS = np.exp(X["x"] / 2 + RNG.normal(size=N) / 2).to_numpy()
REGRESSORS = ["explained_variance", "max_error", "d2_absolute", "mean_", "median_", "r2", "squared"]
NOT_HERE = {
    f"{one}_samples" for one in ("f1", "jaccard", "precision", "recall")
}  # of several labels


class Half(LinearRegression):  # type: ignore[misc]
    """Predicts amounts above zero, as some scorers need."""

    def predict(self, x: Any) -> Any:
        return np.exp(super().predict(x) / 2)


MODELS = {
    True: Half().fit(X[["x", "z"]], AMOUNTS),
    False: LogisticRegression().fit(X[["x", "z"]], Y),
}


@pytest.mark.parametrize("name", sorted({*get_scorer_names()} - NOT_HERE))
def test_every_scorer_is_a_metric_with_its_sign(name: str) -> None:
    is_regression = any(one in name for one in REGRESSORS)
    y = AMOUNTS if is_regression else Y
    columns = X[["x", "z"]]
    model = MODELS[is_regression]
    scorer = get_scorer(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [scorer(model, columns[one == GROUPS], y[one == GROUPS]) for one in "ab"]
        output: dict[str, Any] = {"y_pred": model.predict(columns)}
        if scorer._response_method != "predict":
            output = {"y_score": model.predict_proba(columns)[:, 1]}
        if name.startswith("roc_auc_ovr") or name == "top_k_accuracy":
            pytest.skip("of several classes: tests/metrics has one_versus_rest")
        result = fairperm.permutation_test(
            y, **output, sensitive_features=GROUPS, metric=name, n_resamples=19, rng=1
        )
    assert [result.values[one] for one in "ab"] == pytest.approx(expected)


def test_the_list_of_others_has_what_this_version_lacks_here() -> None:
    known = {one for one in get_scorer_names() if find_named(one)}
    lacking = {one for one in get_scorer_names() if get_metric(one).is_function}
    assert lacking <= {*SCORERS}
    assert not known & {*SCORERS}


def test_a_scorer_and_its_error_are_one_hypothesis() -> None:
    names = ["mean_squared_error", "neg_mean_squared_error"]
    found = fairperm.audit(
        AMOUNTS, X["x"], sensitive_features=GROUPS, metrics=names, n_resamples=99, rng=1
    )
    one, other = found
    assert found.n_hypotheses == 1
    assert one.difference == -(other.difference or 0)
    assert one.adjusted_pvalue == other.adjusted_pvalue


def test_names_need_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_metric("neg_log_loss").name == "neg_log_loss"
    find_scorer.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    said = "needs scikit-learn, which is not installed: pip install scikit-learn"
    with pytest.raises(fairperm.MissingPartError, match=f"v_measure_score {said}"):
        get_metric("v_measure_score")
    with pytest.raises(fairperm.MissingPartError, match=f"make_gap_scorer {said}"):
        make_gap_scorer("fpr", column="group")


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def gap(y: Any, output: Any, groups: Any, name: str) -> float:
    values = [get_scorer(name)._score_func(y[groups == one], output[groups == one]) for one in "ab"]
    return -float(abs(values[0] - values[1]))


@pytest.mark.parametrize("name", ["recall", "roc_auc", "neg_brier_score"])
@pytest.mark.usefixtures("routing")
def test_groups_are_routed_or_a_column(name: str) -> None:
    model, frame = LogisticRegression(), X[["x", "z"]]
    routed = cross_validate(
        model, frame, Y, scoring=make_gap_scorer(name), params={"sensitive_features": GROUPS}
    )
    with_groups = frame.assign(group=GROUPS)
    model.fit(frame, Y)
    output = model.predict(frame) if name == "recall" else model.predict_proba(frame)[:, 1]
    expected = gap(Y, output, GROUPS, name)

    keep = make_column_transformer(("passthrough", ["x", "z"]))
    pipeline = make_pipeline(keep, LogisticRegression())
    scorer = make_gap_scorer(name, column="group")
    assert scorer(pipeline.fit(with_groups, Y), with_groups, Y) == pytest.approx(expected)
    folds = cross_validate(pipeline, with_groups, Y, scoring=scorer)
    assert folds["test_score"] == pytest.approx(routed["test_score"])


def test_a_search_finds_the_model_with_the_smallest_gap() -> None:
    search = GridSearchCV(
        DummyClassifier(constant=1),
        {"strategy": ["constant", "stratified"]},
        scoring=make_gap_scorer("selection_rate", column=2),
    )
    search.fit(X.to_numpy(float), Y)
    assert (search.best_params_, search.best_score_) == ({"strategy": "constant"}, 0.0)


def test_bad_scorers() -> None:
    with pytest.raises(InputError, match=r"groups as metadata need sklearn\.set_config"):
        make_gap_scorer("fpr")
    with pytest.raises(InputError, match="metric must be one that"):
        make_gap_scorer("fprr", column="group")
    with pytest.raises(InputError, match="metric must be a metric with one gap"):
        make_gap_scorer("equalized_odds", column="group")
    model = DummyClassifier().fit(X, Y)
    with pytest.raises(InputError, match="column must be the name of a column of X; got 'sex'"):
        make_gap_scorer("fpr", column="sex")(model, X, Y)
    with pytest.raises(InputError, match="column must be the place of a column of X; got 'sex'"):
        make_gap_scorer("fpr", column="sex")(model, X.to_numpy(), Y)
    assert repr(make_gap_scorer("fpr", column="sex")) == (
        "make_gap_scorer('false_positive_rate', column='sex')"
    )
