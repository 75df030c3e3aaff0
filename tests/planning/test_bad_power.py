"""Questions about power that cannot be answered: each is refused with what to put right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairperm import InputError, permutation_test
from fairperm.planning.power import detectable_gap, minimum_detectable_gap, power, sample_size
from fairperm.planning.simulated_power import simulated_power
from tests.support.helpers import rate_rows, rows
from tests.support.refusals import GOOD, Refusal, check_wording, each, table

TABLE = rows(((30, 10, 20, 40), (50, 30, 25, 15)))
PILOT = permutation_test(**TABLE, metric="f1_score", n_resamples=99, rng=1)
ALIKE, AT_NULL = replace(PILOT, standard_error=0.0), replace(PILOT, difference=0.0)
STRATA = permutation_test(**rate_rows((9, 30, 5, 20), (3, 20, 9, 30)), metric="selection_rate")
SHARE = "must be a number strictly between 0 and 1"
PAIR = "values must be a pair (first, second) of the groups' values"
GAP: dict[str, Any] = {"metric": "tpr", "values": (0.9, 0.8), "base_rates": 0.5}
RATE: dict[str, Any] = {**GAP, "n": 400}
FROM_PILOT: dict[str, Any] = {"pilot": PILOT, "n": 400}
SIMULATED: dict[str, Any] = {**GOOD, "n": 100, "n_simulations": 10}

REFUSALS = (
    table(
        power,
        RATE,
        globals(),
        """
metric=None → TypeError: Pass metric or pilot.
pilot=PILOT → TypeError: Pass metric or pilot, not both.
metric='f1' →
    metric must be a rate or roc_auc; got 'f1_score'. Pass a pilot of this metric, or use
    simulated_power.
metric='average_precision' → metric must be a rate or roc_auc; got 'average_precision'.
metric='equalized_odds' → metric must be a rate or roc_auc; got 'equalized_odds'.
metric='trp' → metric must be one that metric_names()
values=None → TypeError: {PAIR}; got None.
values=0.9 → TypeError: {PAIR}; got 0.9.
values=(0.9, 0.8, 0.7) → TypeError: {PAIR}; got (0.9, 0.8, 0.7).
values=(1.2, 0.8) → values must be from 0 to 1; got 1.2.
values=(0.9, 'a') → TypeError: values must be from 0 to 1; got 'a'.
base_rates=None →
    TypeError: base_rates must be given for true_positive_rate: the share of positives among a
    group's rows, one for both groups or one for each.
base_rates=(0.1, 0.2, 0.3) →
    TypeError: base_rates must be a number or a pair of numbers for true_positive_rate; got
    (0.1, 0.2, 0.3).
base_rates=50 → base_rates {SHARE}; got 50. Did you mean 0.5?
metric='selection_rate' → base_rates cannot be used with selection_rate, a rate of all rows.
share=1 → share {SHARE}; got 1.
alpha=5 → alpha {SHARE}; got 5. Did you mean 0.05?
alternative='larger' → alternative must be one of
n=400.0 → TypeError: n must be an integer from 4 to 1,000,000,000,000; got 400.0.
base_rates=(0.5, 0.01), n=100 →
    n must be an integer from 200 to 1,000,000,000,000; got 100. With fewer rows there is no
    test.
""",
    )
    + table(
        power,
        FROM_PILOT,
        globals(),
        """
pilot=0.1 → TypeError: pilot must be a PermutationTestResult; got <class 'float'>.
pilot=permutation_test(**TABLE, metric='equalized_odds') →
    pilot must be a PermutationTestResult of a single metric; got 'equalized_odds'. Plan for its
    parts one by one.
pilot=ALIKE →
    pilot must be a PermutationTestResult whose standard error is finite and above 0; got 0.0.
pilot=STRATA, share=0.5 →
    share cannot be used with a pilot that has strata: it changes their weights.
base_rates=0.5 → base_rates cannot be used with pilot, which has its own.
values=(float('inf'), 0) → values must be a finite number; got inf.
""",
    )
    + table(
        sample_size,
        GAP,
        globals(),
        """
power=0.05 →
    power must be above alpha (0.05); got 0.05. A test has that much power without a gap.
values=(0.8, 0.8) →
    values must be a pair whose gap can be detected in 1,000,000,000,000 rows; got (0.8
alternative='less' →
    values must be a pair whose gap can be detected in 1,000,000,000,000 rows; got (0.9, 0.8).
    The first group must be below the second.
**{name: None for name in GAP}, pilot=AT_NULL →
    pilot must be a test whose gap can be detected in 1,000,000,000,000 rows; got 0.0.
""",
    )
    + table(
        minimum_detectable_gap,
        {},
        globals(),
        """
**FROM_PILOT, value=0.5 → value cannot be used with pilot:
metric='tpr', n=400, base_rates=0.5 → TypeError: Pass value or pilot.
""",
    )
    + table(
        detectable_gap,
        {},
        globals(),
        """
result=PILOT, alpha=0.05, power=80 → power {SHARE}; got 80. Did you mean 0.8?
""",
    )
    + table(
        simulated_power,
        SIMULATED,
        globals(),
        """
effect=1.5 →
    effect must be a number from 0 to 1; got 1.5. 1 keeps the observed difference.
n_simulations=0 → n_simulations must be an integer from 1 to 1,000,000; got 0.
n=1 → n must be an integer from 2 to 1,000,000,000; got 1.
share=0 → share {SHARE}; got 0.
alpha=0 → alpha {SHARE}; got 0.
""",
    )
)


@each(REFUSALS)
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
