"""AUC, DeLong's variance and the unpaired z of R's pROC, as its repository publishes them.

The data are those of pROC's examples, ``aSAH``: 113 patients, of whom 72 had a good outcome and 41
a poor one, and three markers. The rows themselves are not needed: a ROC curve's points say how
many patients of either outcome have each level of the marker, and ranks are all that AUC knows.

Paths are of https://github.com/xrobin/pROC. By tests/testthat/helper-rocs.R, ``r.wfns`` is
``roc(aSAH$outcome, aSAH$wfns, quiet = TRUE)``, and ``r.s100b`` and ``r.ndka`` likewise.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from fairperm import FairpermWarning, PermutationTestResult, permutation_test
from fairperm.engines import choice


def digits(text: str) -> list[int]:
    return [int(digit) for digit in text]


# Patients of a good and of a poor outcome at each level of the marker, from the lowest up: by how
# much 72 times the specificity, and 41 times the sensitivity, change from one threshold to the
# next in tests/testthat/helper-roc-expected.R, expected.roc$<marker>$forward$`<`, which holds
# roc(aSAH$outcome, aSAH[[marker]], levels = c("Good", "Poor"), direction = "<", quiet = TRUE).
# Those of s100b stand as counts ("tn", "tp") in tests/testthat/helper-coords-expected.R, too.
LEVELS = {
    "wfns": ([37, 20, 3, 8, 4], [2, 12, 1, 8, 18]),
    "s100b": (
        digits("05326667403443212001000101110101011210200000000000"),
        digits("10003122112101000110111011101010200011011112111111"),
    ),
    "ndka": (
        digits(
            "1011000111111111011111100110121011111011011111100010110"
            "111110111101100100111001110111100001101110000110101010"
        ),
        digits(
            "0100111000000000100000011001000110000100100000011101001"
            "000001010010011011001110001000011110010001111001010101"
        ),
    ),
}

# tests/testthat/helper-roc-expected.R, expected.roc$<marker>$forward$`<`$auc
AUC = {
    "wfns": 0.82367886178861793,  # auc(r.wfns)
    "s100b": 0.73136856368563685,  # auc(r.s100b)
    "ndka": 0.61195799457994582,  # auc(r.ndka)
}

# tests/testthat/test-var.R
VARIANCE = {
    "wfns": 0.00146991470882363,  # var(r.wfns)
    "s100b": 0.00266868245717244,  # var(r.s100b)
    "ndka": 0.0031908105493913,  # var(r.ndka)
}


# tests/testthat/test-roc.test.R, the statistic "D"
UNPAIRED_Z = {
    ("wfns", "s100b"): 1.43490640926908,  # roc.test(r.wfns, r.s100b, paired = FALSE)$statistic
    ("wfns", "ndka"): 3.10125096778969,  # roc.test(r.wfns, r.ndka, paired = FALSE)$statistic
    ("ndka", "s100b"): -1.55995743389685,  # roc.test(r.ndka, r.s100b, paired = FALSE)$statistic
}

PRINTED = 5e-15  # relative: R printed 15 digits or more
ENGINES = {  # thresholds at which every sample goes one way
    "counts": {"_FEW_CELLS": 10**9, "MERGEABLE": 10**9},
    "units": {"_FEW_CELLS": -1, "MERGEABLE": -1, "COUNT_COST": 10**12},
}

pytestmark = pytest.mark.parametrize("engine", ENGINES)


def compared(engine: str, first: str, second: str) -> PermutationTestResult:
    """Test two groups of patients, scored by one marker each."""
    columns: dict[str, list[Any]] = {"y_true": [], "y_score": [], "sensitive_features": []}
    for name, marker in (("first", first), ("second", second)):
        for poor, counts in enumerate(LEVELS[marker]):
            columns["y_true"] += [poor] * sum(counts)
            columns["y_score"] += np.repeat(range(len(counts)), counts).tolist()
            columns["sensitive_features"] += [name] * sum(counts)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)  # of a test with so few permutations
        for name, number in ENGINES[engine].items():
            patch.setattr(choice, name, number)
        return permutation_test(
            columns["y_true"],
            y_score=columns["y_score"],
            sensitive_features=columns["sensitive_features"],
            metric="roc_auc",
            groups=("first", "second"),
            n_resamples=9,
            rng=1,
        )


@pytest.mark.parametrize("marker", LEVELS)
def test_auc_and_variance(marker: str, engine: str) -> None:
    """Both groups are the same patients, so that the gap has twice their variance."""
    assert [sum(counts) for counts in LEVELS[marker]] == [72, 41]
    result = compared(engine, marker, marker)
    assert result.values["first"] == pytest.approx(AUC[marker], rel=PRINTED)
    assert result.values["second"] == result.values["first"]
    assert result.standard_error**2 / 2 == pytest.approx(VARIANCE[marker], rel=PRINTED)


@pytest.mark.parametrize("markers", UNPAIRED_Z)
def test_unpaired_z(markers: tuple[str, str], engine: str) -> None:
    result = compared(engine, *markers)
    assert result.variance == "delong"
    assert list(result.values.values()) == pytest.approx([AUC[one] for one in markers], rel=PRINTED)
    variance = sum(VARIANCE[one] for one in markers)
    assert result.standard_error == pytest.approx(math.sqrt(variance), rel=PRINTED)
    assert result.statistic == pytest.approx(UNPAIRED_Z[markers], rel=PRINTED)
