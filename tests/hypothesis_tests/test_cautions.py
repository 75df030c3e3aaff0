"""Notes on samples that do not show well how far chance goes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import fairperm


@pytest.mark.parametrize("other", [1, -1])
def test_an_error_of_zero_is_noted(other: int) -> None:
    """Scores without a mistake, and with nothing else: no interval can be made of that."""
    label, group = np.tile([0, 1], 60), np.repeat(["a", "b"], 60)
    score = np.where(group == "a", 1, other) * (2 * label - 1)
    with pytest.warns(fairperm.FairpermWarning, match="confidence interval is meaningless"):
        result = fairperm.permutation_test(
            label,
            y_score=score,
            sensitive_features=group,
            metric="roc_auc",
            variance="delong",
            n_resamples=99,
            rng=1,
        )
    low, high = result.confidence_interval
    assert low == high == result.difference == (1 - other) / 2
    assert len(result.notes) == 3  # and one for each group, in which no row changes the AUC


def test_an_interval_of_a_rate_needs_no_error() -> None:
    label, group = np.tile([0, 1], 60), np.repeat(["a", "b"], 60)
    result = fairperm.permutation_test(label, label, sensitive_features=group, metric="fpr")
    assert result.standard_error == 0
    assert "standard error" not in " ".join(result.notes)
    assert result.confidence_interval[1] > 0.05


@pytest.mark.parametrize(
    ("apart", "alternative", "n_notes"),
    [(5, "less", 1), (5, "two-sided", 1), (5, "symmetric", 0), (1, "two-sided", 0)],
)
def test_outcomes_far_apart_are_noted_in_tests_of_r2_by_their_tails(
    apart: float, alternative: Any, n_notes: int
) -> None:
    """Five standard deviations apart, 200 against 2,000 rows: 0.065 to 0.077 at level 0.05.

    Two-sided 0.066, and symmetric 0.041 (of 700 data sets).
    """
    rng = np.random.default_rng(1)
    group = np.repeat([0, 1], [200, 1000])
    outcome = rng.normal(size=1200) + apart * group
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        result = fairperm.permutation_test(
            outcome,
            outcome + rng.normal(size=1200),
            sensitive_features=group,
            metric="r2_score",
            alternative=alternative,
            n_resamples=19,
            rng=1,
        )
    assert len(result.notes) == n_notes
    assert all("standard deviations apart: permuted values" in note for note in result.notes)


def median_error(y_true: Any, y_pred: Any) -> float:
    return float(np.median(np.abs(y_true - y_pred)))


def rounded_errors(step: float, n: int = 360) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    error = rng.normal(size=(2, n))
    if step:
        error = step * np.round(error / step)
    return {
        "y_true": np.zeros(n),
        "y_pred": error[0],
        "sensitive_features": np.repeat(["a", "b"], [60, n - 60]),
        "metric": median_error,
        "n_resamples": 199,
        "rng": 1,
    }


def of_ties(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if "one and the same value" in note]


TIES = r"has one and the same value in .* % of the bootstrap samples of group '[ab]'"


@pytest.mark.filterwarnings("ignore:Strata are small")
@pytest.mark.parametrize("strata", [1, 2])
@pytest.mark.parametrize("variance", ["auto", "bootstrap"])
def test_tied_bootstrap_values_are_noted(variance: Any, strata: int) -> None:
    given = rounded_errors(0.5) | {"variance": variance}
    if variance == "bootstrap":
        given |= {"n_resamples": 9, "n_bootstrap": 50}
    with pytest.warns(fairperm.FairpermWarning, match=TIES):
        result = fairperm.permutation_test(
            **given, control_features=np.arange(360) % strata if strata > 1 else None
        )
    (note,) = of_ties(result.notes)
    assert note in result.to_dict()["notes"]
    assert note in " ".join(repr(result).split())


def test_untied_few_and_unused_bootstrap_values_are_not_noted() -> None:
    assert of_ties(fairperm.permutation_test(**rounded_errors(0)).notes) == []
    few = rounded_errors(0.5) | {"n_resamples": 19}
    assert of_ties(fairperm.permutation_test(**few).notes) == []
    plain = rounded_errors(0.5) | {"variance": None}  # nothing is divided by a bootstrap error
    assert of_ties(fairperm.permutation_test(**plain).notes) == []


def test_tied_bootstrap_values_are_noted_wherever_functions_are_tested() -> None:
    given = rounded_errors(0.5)
    new, third = rounded_errors(1.0)["y_pred"], np.arange(360) % 3
    with pytest.warns(fairperm.FairpermWarning, match="one and the same value"):
        results: list[Any] = [
            fairperm.omnibus_test(**given | {"sensitive_features": third}),
            fairperm.compare_models(**given, y_pred_new=new),
            fairperm.compare_periods(**given, period=third > 0),
        ]
    for result in results:
        assert len(of_ties(result.notes)) == 1
    assert results[1].notes[0].startswith("The change in median_error has")
    given["metrics"] = given.pop("metric")
    with pytest.warns(fairperm.FairpermWarning, match="one and the same value"):
        audit = fairperm.audit(**given)
    assert of_ties(audit.notes)
    assert "one and the same value" in audit.to_html()
