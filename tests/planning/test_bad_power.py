"""Questions about power that cannot be answered: each is refused with what to put right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fairperm import InputError, InputTypeError, permutation_test
from fairperm.planning.power import detectable_gap, minimum_detectable_gap, power, sample_size
from fairperm.planning.simulated_power import simulated_power
from tests.support.helpers import rate_rows, rows
from tests.support.refusals import GOOD, Refusal, check_wording, each

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = rows(((30, 10, 20, 40), (50, 30, 25, 15)))
PILOT = permutation_test(**TABLE, metric="f1_score", n_resamples=99, rng=1)
STRATA = permutation_test(**rate_rows((9, 30, 5, 20), (3, 20, 9, 30)), metric="selection_rate")
SHARE = "must be a number strictly between 0 and 1"
PAIR = "values must be a pair (first, second) of the groups' values"
RATE: dict[str, Any] = {"metric": "tpr", "values": (0.9, 0.8), "n": 400, "base_rates": 0.5}
FROM_PILOT: dict[str, Any] = {"pilot": PILOT, "n": 400}
SIMULATED: dict[str, Any] = {**GOOD, "n": 100, "n_simulations": 10}


def refused(
    name: str,
    says: str,
    given: dict[str, Any],
    function: Callable[..., Any] = power,
    error: type[InputError | InputTypeError] = InputError,
) -> Refusal:
    return Refusal(name, says, given, error, function)


def kind(
    name: str, says: str, given: dict[str, Any], function: Callable[..., Any] = power
) -> Refusal:
    return refused(name, says, given, function, InputTypeError)


def without(given: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}


WHAT = [
    kind(
        "neither metric nor pilot",
        "Pass metric or pilot.",
        without(RATE, "metric"),
    ),
    kind(
        "metric and pilot",
        "Pass metric or pilot, not both.",
        {**RATE, "pilot": PILOT},
    ),
    refused(
        "metric without a closed form",
        "metric must be a rate or roc_auc; got 'f1_score'. Pass a pilot of this "
        "metric, or use simulated_power.",
        {**RATE, "metric": "f1"},
    ),
    refused(
        "joint metric",
        "metric must be a rate or roc_auc; got 'equalized_odds'.",
        {**RATE, "metric": "equalized_odds"},
    ),
    refused(
        "metric misspelt",
        "metric must be one that metric_names()",
        {**RATE, "metric": "trp"},
    ),
    kind(
        "pilot of another kind",
        "pilot must be a PermutationTestResult; got <class 'float'>.",
        {**FROM_PILOT, "pilot": 0.1},
    ),
    refused(
        "joint pilot",
        "pilot must be a PermutationTestResult of a single metric; got 'equalized_odds'. "
        "Plan for its parts one by one.",
        {**FROM_PILOT, "pilot": permutation_test(**TABLE, metric="equalized_odds")},
    ),
    refused(
        "pilot without an error",
        "pilot must be a PermutationTestResult whose standard error is finite and above 0; "
        "got 0.0.",
        {**FROM_PILOT, "pilot": replace(PILOT, standard_error=0.0)},
    ),
    refused(
        "share of strata",
        "share cannot be used with a pilot that has strata: it changes their weights.",
        {**FROM_PILOT, "pilot": STRATA, "share": 0.5},
    ),
    refused(
        "base rates of a pilot",
        "base_rates cannot be used with pilot, which has its own.",
        {**FROM_PILOT, "base_rates": 0.5},
    ),
    refused(
        "scheme of a pilot",
        "scheme cannot be used with pilot, which has its own.",
        {**FROM_PILOT, "scheme": "pooled"},
    ),
    refused(
        "value of a pilot",
        "value cannot be used with pilot: ",
        {**FROM_PILOT, "value": 0.5},
        minimum_detectable_gap,
    ),
]

NUMBERS = [
    kind("values missing", f"{PAIR}; got None.", without(RATE, "values")),
    kind("one value", f"{PAIR}; got 0.9.", {**RATE, "values": 0.9}),
    kind("three values", f"{PAIR}; got (0.9, 0.8, 0.7).", {**RATE, "values": (0.9, 0.8, 0.7)}),
    refused(
        "value above one", "values must be from 0 to 1; got 1.2.", {**RATE, "values": (1.2, 0.8)}
    ),
    kind("value is a word", "values must be from 0 to 1; got 'a'.", {**RATE, "values": (0.9, "a")}),
    refused(
        "value of a pilot infinite",
        "values must be a finite number; got inf.",
        {**FROM_PILOT, "values": (float("inf"), 0)},
    ),
    kind(
        "base rates missing",
        "base_rates must be given for true_positive_rate: the share of positives among a group's "
        "rows, one for both groups or one for each.",
        without(RATE, "base_rates"),
    ),
    kind(
        "three base rates",
        "base_rates must be a number or a pair of numbers for true_positive_rate; "
        "got (0.1, 0.2, 0.3).",
        {**RATE, "base_rates": (0.1, 0.2, 0.3)},
    ),
    refused(
        "base rate in percent",
        f"base_rates {SHARE}; got 50. Did you mean 0.5?",
        {**RATE, "base_rates": 50},
    ),
    refused(
        "base rates of all rows",
        "base_rates cannot be used with selection_rate, a rate of all rows.",
        {**RATE, "metric": "selection_rate"},
    ),
    refused(
        "scheme that does not fit",
        "scheme must be 'denominator' or 'pooled' for positive_predictive_value; "
        "got 'within_label'.",
        {**RATE, "metric": "ppv", "scheme": "within_label"},
    ),
    refused("share of one", f"share {SHARE}; got 1.", {**RATE, "share": 1}),
    refused("alpha in percent", f"alpha {SHARE}; got 5. Did you mean 0.05?", {**RATE, "alpha": 5}),
    refused("alternative", "alternative must be one of ", {**RATE, "alternative": "larger"}),
    kind(
        "n is no integer",
        "n must be an integer from 4 to 1,000,000,000,000; got 400.0.",
        {**RATE, "n": 400.0},
    ),
    refused(
        "no row in a denominator",
        "n must be an integer from 200 to 1,000,000,000,000; got 100. "
        "With fewer rows there is no test.",
        {**RATE, "base_rates": (0.5, 0.01), "n": 100},
    ),
    refused(
        "power below alpha",
        "power must be above alpha (0.05); got 0.05. A test has that much power without a gap.",
        {**without(RATE, "n"), "power": 0.05},
        sample_size,
    ),
    refused(
        "no gap",
        "values must be a pair whose gap can be detected in 1,000,000,000,000 rows; got (0.8",
        {**without(RATE, "n"), "values": (0.8, 0.8)},
        sample_size,
    ),
    refused(
        "gap on the other side",
        "values must be a pair whose gap can be detected in 1,000,000,000,000 rows; got "
        "(0.9, 0.8). The first group must be below the second.",
        {**without(RATE, "n"), "alternative": "less"},
        sample_size,
    ),
    refused(
        "pilot without a gap",
        "pilot must be a test whose gap can be detected in 1,000,000,000,000 rows; got 0.0.",
        {"pilot": replace(PILOT, difference=0.0)},
        sample_size,
    ),
    kind(
        "value missing",
        "Pass value or pilot.",
        without(RATE, "values"),
        minimum_detectable_gap,
    ),
    refused(
        "power in percent",
        f"power {SHARE}; got 80. Did you mean 0.8?",
        {"result": PILOT, "alpha": 0.05, "power": 80},
        detectable_gap,
    ),
]

SIMULATIONS = [
    refused(
        "effect above one",
        "effect must be a number from 0 to 1; got 1.5. 1 keeps the observed difference.",
        {**SIMULATED, "effect": 1.5},
        simulated_power,
    ),
    refused(
        "too few simulations",
        "n_simulations must be an integer from 1 to 1,000,000; got 0.",
        {**SIMULATED, "n_simulations": 0},
        simulated_power,
    ),
    refused(
        "one row",
        "n must be an integer from 2 to 1,000,000,000; got 1.",
        {**SIMULATED, "n": 1},
        simulated_power,
    ),
    refused("share", f"share {SHARE}; got 0.", {**SIMULATED, "share": 0}, simulated_power),
    refused("alpha", f"alpha {SHARE}; got 0.", {**SIMULATED, "alpha": 0}, simulated_power),
]


@each([*WHAT, *NUMBERS, *SIMULATIONS])
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)


def test_clusters_are_not_simulated() -> None:
    with pytest.raises(
        InputError, match=r"^simulated_power does not support cluster: .* See calibrate"
    ):
        simulated_power(**SIMULATED, cluster=list(range(8)))


def test_what_the_test_refuses_is_refused() -> None:
    with pytest.raises(InputError, match=r"^scheme must be one of .* Did you mean 'pooled'\?"):
        simulated_power(**SIMULATED, scheme="poled")
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        simulated_power(**SIMULATED, colour="blue")
