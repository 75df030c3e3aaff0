"""The normal limit: from rows, and from sums made by the engine of a lazy frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import fairperm
from fairperm import InputError
from fairperm.data.lazy import counting as lazy
from fairperm.data.lazy import numpy_expressions
from fairperm.metrics.definition import Kind, mean_function
from tests.support.lazy_data import LAZY, run, sample, with_gaps

if TYPE_CHECKING:
    from fairperm.data.arguments import Alternative

OF_PREDICTIONS = {"y_pred": "score", "y_score": None}
CASES: dict[str, dict[str, Any]] = {
    "brier_score": {},
    "log_loss": {},
    "mean_score": {},
    "mean_score_positives": {},
    "mean_score_negatives": {"alternative": "less"},
    "calibration_in_the_large": {"control_features": "region"},
    "mean_error": OF_PREDICTIONS,
    "mean_absolute_error": {**OF_PREDICTIONS, "alternative": "greater"},
    "mean_squared_error": {**OF_PREDICTIONS, "control_features": "region"},
    "root_mean_squared_error": OF_PREDICTIONS,
    "mean_absolute_percentage_error": {**OF_PREDICTIONS, "y_pred": "score"},
    "pinball_loss": OF_PREDICTIONS,
    "mean_prediction": OF_PREDICTIONS,
}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let distinct rows be too many to be counted."""
    monkeypatch.setattr(lazy, "MAX_KINDS", 200)


def numbers(result: fairperm.PermutationTestResult) -> list[float]:
    by_group = [*result.values.values(), *result.standard_errors.values()]
    return [result.difference, result.standard_error, result.statistic, result.pvalue,
            *result.confidence_interval, *by_group]  # fmt: skip


@pytest.mark.parametrize("metric", CASES)
def test_sums_say_what_rows_say(metric: str, few: None) -> None:
    table = sample(1_501, decimals=None)
    expected = run(table, metric, n_resamples=0, **CASES[metric])
    assert expected.n_resamples == 0
    assert not expected.exact
    assert "the normal limit, without permutations" in expected.validity
    for form in ("duckdb", "polars"):
        result = run(LAZY[form](table), metric, n_resamples=0, **CASES[metric])
        assert numbers(result) == pytest.approx(numbers(expected), rel=1e-9)
        assert result.validity == expected.validity
        assert [one["rows"] for one in result.counts.values()] == [
            one["rows"] for one in expected.counts.values()
        ]


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("form", ["duckdb", "polars"])
@pytest.mark.parametrize("metric", ["mean_squared_error", "mean_absolute_percentage_error"])
def test_sums_warn_of_few_rows_that_matter_as_rows_do(form: str, metric: str, few: None) -> None:
    rng = np.random.default_rng(1)
    error = rng.standard_t(5, 3_000)  # about as many rows matter to its square as are enough
    outcome = np.where(np.arange(3_000) == 7, 1e-9, 5.0)  # and one alone to the percentages
    data = {"y": outcome, "p": outcome + error, "g": np.where(np.arange(3_000) < 300, "a", "b")}
    table = pa.table(data)
    options: dict[str, Any] = {"sensitive_features": "g", "metric": metric, "n_resamples": 0}
    by_row = fairperm.permutation_test("y", "p", data=table, **options)
    by_sums = fairperm.permutation_test("y", "p", data=LAZY[form](table), **options)
    assert any(note.startswith("Only about") for note in by_row.notes)
    assert by_sums.notes == by_row.notes


def test_dask(few: None) -> None:
    table = sample(1_500, decimals=None)
    results = [run(data, "log_loss", n_resamples=0) for data in (table, LAZY["dask"](table))]
    assert numbers(results[1]) == pytest.approx(numbers(results[0]), rel=1e-9)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_against_scipy(alternative: Alternative) -> None:
    rng = np.random.default_rng(4)
    first, second = rng.gamma(2, 1, 300), rng.normal(1.9, 0.5, 120)
    result = fairperm.permutation_test(
        np.zeros(420), np.append(first, second), sensitive_features=["a"] * 300 + ["b"] * 120,
        metric="mean_error", n_resamples=0, alternative=alternative,
    )  # fmt: skip
    error = np.hypot(first.std() / np.sqrt(300), second.std() / np.sqrt(120))
    z = (first.mean() - second.mean()) / error
    tails = {"two-sided": 2 * stats.norm.sf(abs(z)), "greater": stats.norm.sf(z),
             "less": stats.norm.cdf(z)}  # fmt: skip
    assert result.statistic == pytest.approx(z, rel=1e-12)
    assert result.pvalue == pytest.approx(tails[alternative], rel=1e-12)
    assert result.pvalue_interval == (result.pvalue, result.pvalue)
    level = 0.975 if alternative == "two-sided" else 0.95
    reach = stats.norm.ppf(level) * error
    low, high = first.mean() - second.mean() - reach, first.mean() - second.mean() + reach
    low, high = {"greater": (low, np.inf), "less": (-np.inf, high)}.get(alternative, (low, high))
    assert result.confidence_interval == pytest.approx((low, high), rel=1e-9)


def test_of_a_rate_it_is_pearsons_chi_square() -> None:
    table = sample(500)
    result = run(table, "selection_rate", n_resamples=0)
    counts = [result.counts[group] for group in result.groups]
    cells = [[one["numerator"], one["denominator"] - one["numerator"]] for one in counts]
    assert result.pvalue == pytest.approx(stats.chi2_contingency(cells, correction=False).pvalue)


def test_permutations_agree_in_large_samples() -> None:
    table = sample(20_000, decimals=None)
    limit = run(table, "brier_score", n_resamples=0)
    drawn = run(table, "brier_score", variance="delta", n_resamples=9_999)
    assert drawn.statistic == limit.statistic
    assert stats.binomtest(round(drawn.pvalue * 10_000), 10_000, limit.pvalue).pvalue > 1e-3


def test_never_zero() -> None:
    result = fairperm.permutation_test(
        np.zeros(2_000), np.arange(2_000.0), sensitive_features=["a"] * 1_000 + ["b"] * 1_000,
        metric="mean_error", n_resamples=0,
    )  # fmt: skip
    assert 0 < result.pvalue < 1e-200


def test_a_metric_of_ones_own(few: None) -> None:
    def cost(y_true: Any, y_pred: Any) -> Any:
        late = np.minimum(np.abs(y_pred - y_true), 0.8) ** 3
        return np.where((y_pred > y_true) & (y_pred < 0.9), -late, np.exp(np.maximum(y_pred, 0.3)))

    own = mean_function(
        "own", {"cost": cost}, lambda cost: cost**0.5, kind=Kind.REGRESSION, meaning="cost"
    )
    table = sample(1_000, decimals=None)
    results = [
        run(data, own, n_resamples=0, **OF_PREDICTIONS) for data in (table, LAZY["duckdb"](table))
    ]
    assert numbers(results[1]) == pytest.approx(numbers(results[0]), rel=1e-9)


# What a row contributes, whether engines can add it up, and what is said if not.
COSTS: dict[str, tuple[Any, str | None]] = {
    "truth": (lambda y_pred: y_pred > 0.5, None),
    "truth times number": (lambda y_true, y_pred: (y_pred > 0.5) * 2.0 + y_true, None),
    "truths": (lambda y_true, y_pred: ~((y_pred > 0.5) & (y_true != 1)) | (y_pred < 0.1), None),
    "truth by truth": (lambda y_true, y_pred: (y_pred > 0.5) == (y_true > 0.5), None),
    "where a number is not 0": (lambda y_true, y_pred: np.where(y_true, y_pred, 0.5), None),
    "log of what it has": (
        lambda y_pred: np.where(y_pred > 0.5, np.log(y_pred - 0.5), 0.0),
        None,
    ),
    # NumPy's sum of truths is "or"
    "sum of truths": (lambda y_true, y_pred: (y_pred > 0.5) + (y_true > 0.5), "an engine can add"),
    # what is undefined is above all numbers in some engines, and missing in others
    "compared": (lambda y_pred: np.log(y_pred - 0.5) > 0.0, "an engine can add"),
    "at most": (lambda y_pred: np.minimum(np.log(y_pred - 0.5), 0), "an engine can add"),
    "clipped": (lambda y_true, y_pred: np.clip(y_pred / y_true, 0, 1), "an engine can add"),
    "undefined": (lambda y_pred: np.log(y_pred - 0.5), "metric must be made of finite"),
}


@pytest.mark.parametrize("what", COSTS)
def test_engines_compute_what_numpy_does_or_nothing(what: str, few: None) -> None:
    cost, said = COSTS[what]
    own = mean_function(
        "own", {"cost": cost}, lambda cost: cost, kind=Kind.REGRESSION, meaning="cost"
    )
    table = sample(1_000, decimals=None)
    options: dict[str, Any] = {**OF_PREDICTIONS, "n_resamples": 0}
    for form in ("duckdb", "polars"):
        if said is not None:
            with pytest.raises(InputError, match=said):
                run(LAZY[form](table), own, **options)
            continue
        result = run(LAZY[form](table), own, **options)
        assert numbers(result) == pytest.approx(numbers(run(table, own, **options)), rel=1e-9)


def test_rows_without_a_number_are_not_left_out(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SQL has it, where the logarithm of 0 is missing: a mean would be that of the others."""

    def of_positive(number: Any) -> Any:
        return nw.when(number > 0).then(number).log()

    monkeypatch.setitem(numpy_expressions._NUMBERS, np.log, of_positive)
    table = sample(1_000, decimals=None)
    for shift in (0.0, 0.3):
        own = mean_function(
            "own",
            {"cost": lambda y_pred, *, by=shift: np.log(y_pred - by)},
            lambda cost: cost,
            kind=Kind.REGRESSION,
            meaning="cost",
        )
        options: dict[str, Any] = {**OF_PREDICTIONS, "n_resamples": 0}
        if shift:
            with pytest.raises(InputError, match="metric must be made of finite numbers"):
                run(LAZY["duckdb"](table), own, **options)
        else:
            result = run(LAZY["duckdb"](table), own, **options)
            assert numbers(result) == pytest.approx(numbers(run(table, own, **options)), rel=1e-9)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_without_an_error_there_is_no_limit(alternative: Alternative) -> None:
    """Three rows each, without spread: all that permutations say is a p-value of 0.1."""
    with pytest.raises(fairperm.UndefinedMetricError, match="got mean_error with group"):
        fairperm.permutation_test(
            np.zeros(6), [0, 0, 0, 1, 1, 1], sensitive_features=list("aaabbb"),
            metric="mean_error", n_resamples=0, alternative=alternative,
        )  # fmt: skip


def test_the_limit_of_a_rate_of_few_rows_warns() -> None:
    rows: dict[str, Any] = {
        "sensitive_features": list("aaabbb"),
        "metric": "accuracy",
        "scheme": "denominator",
    }
    with pytest.warns(fairperm.FairpermWarning, match="with fewer than 20"):
        limit = fairperm.permutation_test([1] * 6, [1, 1, 1, 0, 0, 0], n_resamples=0, **rows)
    exact = fairperm.permutation_test([1] * 6, [1, 1, 1, 0, 0, 0], **rows)
    assert (len(limit.notes), exact.notes) == (2, ())
    assert limit.pvalue < 0.015 < exact.pvalue == pytest.approx(0.1)


def test_labels_and_missing_values(few: None) -> None:
    table = with_gaps(1_500)
    score = np.random.default_rng(2).random(1_500)
    scores = pa.array(np.where(table["score"].is_null().to_numpy(), np.nan, score))
    table = table.set_column(1, "score", scores)
    names = [
        "yes" if one == 1 else None if one is None else "no" for one in table["label"].to_pylist()
    ]
    table = table.set_column(0, "label", pa.array(names))
    options: dict[str, Any] = {"n_resamples": 0, "missing": "drop", "control_features": "region"}
    for positive in ("yes", "no"):
        expected = run(table, "brier_score", pos_label=positive, **options)
        result = run(LAZY["duckdb"](table), "brier_score", pos_label=positive, **options)
        assert result.n_dropped == expected.n_dropped > 5
        assert numbers(result) == pytest.approx(numbers(expected), rel=1e-9)
    with pytest.raises(InputError, match=r"'label'\) has 2 missing values"):
        run(LAZY["duckdb"](table), "brier_score", pos_label="yes", n_resamples=0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metric": "r2_score", "y_pred": "score"}, "metric must be one whose contributions"),
        ({"metric": "log_loss", "sample_weight": "weight"}, "sample_weight cannot be used"),
        ({"metric": "log_loss", "y_score": "over"}, "must be from 0 to 1 for this metric"),
        ({"metric": "mean_score", "y_score": "infinite"}, "must be finite; got inf"),
        ({"metric": "mean_squared_error", "y_pred": "sex"}, "must be made of real numbers"),
        ({"metric": "f1_score", "control_features": "person"}, "metric must be one whose contrib"),
        ({"metric": "equalized_odds"}, "n_resamples must be at least 1 for equalized_odds"),
        ({"metric": "accuracy", "variance": None}, "n_resamples must be at least 1 for accuracy"),
    ],
)  # fmt: skip
def test_refusals(options: dict[str, Any], said: str, few: None) -> None:
    table = sample(900, decimals=None)
    score = table["score"].to_numpy()
    table = table.append_column("over", pa.array(np.where(score > 0.9, 1.5, score)))
    table = table.append_column("infinite", pa.array(np.where(score > 0.9, np.inf, score)))
    if options.get("y_pred") == "score":
        options = {**options, "y_score": None}
    with pytest.raises(fairperm.FairpermError, match=said):
        run(LAZY["duckdb"](table), n_resamples=0, **options)


@pytest.mark.parametrize(
    ("metric", "y_pred", "is_hinted"),
    [
        ("mean_squared_error", "score", True),
        ("mean_gamma_deviance", "score", False),
        ("average_precision", None, False),
    ],
)
def test_the_limit_is_hinted_at_where_there_is_one(
    metric: str, y_pred: str | None, is_hinted: bool, few: None
) -> None:
    """It was hinted at for metrics of ranks and deviances, which it refuses."""
    given = {"y_pred": y_pred, "y_score": None} if y_pred else {}
    with pytest.raises(fairperm.InputError, match="Pass a random sample of the rows") as error:
        run(LAZY["duckdb"](sample(900, decimals=None)), metric, **given)
    assert ("n_resamples=0" in str(error.value)) == is_hinted


def test_margins_are_tested_by_the_normal_limit() -> None:
    table = sample(2_000, decimals=None)
    result = fairperm.equivalence_test(
        "label", y_score="score", sensitive_features="sex", metric="brier_score", margin=0.02,
        data=table, n_resamples=0,
    )  # fmt: skip
    gap = run(table, "brier_score", n_resamples=0)
    z = (0.02 - abs(gap.difference)) / gap.standard_error
    assert result.pvalue == pytest.approx(stats.norm.sf(z), rel=1e-9)
    assert "normal limit" in repr(result)


def test_a_test_of_all_groups_needs_permutations() -> None:
    with pytest.raises(InputError, match=r"n_resamples must be .*an integer from 1"):
        fairperm.omnibus_test("label", y_score="score", sensitive_features="sex", metric="accuracy",
                              data=sample(200), n_resamples=0)  # fmt: skip


def test_an_audit(few: None) -> None:
    table = sample(3_000, decimals=None)
    options: dict[str, Any] = {
        "y_score": "score",
        "sensitive_features": ["sex", "region"],
        "metrics": ["selection_rate", "brier_score", "log_loss"],
        "margin": {"brier_score": 0.05},
        "n_resamples": 0,
        "rng": 3,
    }
    first = fairperm.audit("label", data=table, **options)
    second = fairperm.audit("label", data=LAZY["duckdb"](table), **options)
    assert first.notes == second.notes == ()
    for one, other in zip(first, second, strict=True):
        assert (one.metric, one.verdict) == (other.metric, other.verdict)
        assert other.adjusted_pvalue == pytest.approx(one.adjusted_pvalue, rel=1e-9)
        assert one.result is not None
        if one.metric == "brier_score":  # the margin's tests are normal, too
            z = (0.05 - abs(one.result.difference)) / one.result.standard_error
            adjusted = one.equivalence_pvalue
            assert other.equivalence_pvalue == pytest.approx(adjusted, rel=1e-9)
            assert adjusted is not None
            assert adjusted >= stats.norm.sf(z) * (1 - 1e-9)
    assert {row.reason for row in first.omnibus if row.attribute == "region"} == {
        "A test of all groups at once needs permutations; got n_resamples=0."
    }
    assert "normal limit" in first.to_html()


def unlike_groups(rng: np.random.Generator) -> pa.Table:
    """Return errors of equal mean squares, which vary much in few rows and little in many."""
    error = np.append(rng.standard_t(12, 400) / np.sqrt(1.2), rng.choice([-1.0, 1.0], 1_200))
    small = rng.random(1_200) < 0.5
    error[400:] *= np.where(small, np.sqrt(0.9), np.sqrt(1.1))
    groups = ["few"] * 400 + ["many"] * 1_200
    return pa.table({"y": np.zeros(1_600), "error": error, "group": groups})


@pytest.mark.validate
def test_the_level_under_the_weak_null() -> None:
    """Hold the level by the normal limit; exchange labels without studentizing, and do not."""
    rng = np.random.default_rng(2020)
    data_sets, level = 500, 0.05
    rejected = {0: 0, 199: 0}
    for seed in range(data_sets):
        table = unlike_groups(rng)
        for n_resamples in rejected if seed < 100 else (0,):
            result = fairperm.permutation_test(
                "y", "error", data=table, sensitive_features="group", rng=seed,
                metric="mean_squared_error", n_resamples=n_resamples, progress=False,
                variance="auto" if n_resamples == 0 else None,
            )  # fmt: skip
            rejected[n_resamples] += result.pvalue <= level
    assert rejected[0] <= stats.binom.ppf(0.999, data_sets, level)
    assert rejected[0] >= stats.binom.ppf(0.001, data_sets, level)
    assert rejected[199] > stats.binom.ppf(0.999, 100, level)
