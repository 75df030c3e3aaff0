"""Groups and strata that cannot be compared, and those of which the reader is warned."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from fairperm import FairpermWarning, permutation_test
from tests.support.refusals import GOOD, Refusal, check_wording, each, value

NO_PAIRS: list[object] = ["ab", ("a",), ("a", "b", "a"), ("a", "a"), [], {"a"}, 3]
WHOLE = {**GOOD, "metric": "accuracy", "scheme": "denominator"}
ONE_MORE = {  # the same rows, and a stratum that has a row of one group only
    **WHOLE,
    "y_true": [*GOOD["y_true"], 1],
    "y_pred": [*GOOD["y_pred"], 1],
    "sensitive_features": [*GOOD["sensitive_features"], "a"],
    "control_features": list("xxxxxxxxy"),
}

GROUPS = [
    value(
        "one group",
        "sensitive_features has 1 group ('a'); a comparison needs two: pass the rows of both",
        sensitive_features=["a"] * 8,
    ),
    value(
        "three groups",
        "sensitive_features has 3 groups ('a', 'b', 'c'); a comparison needs two: "
        "pass groups=('a', 'b'), or use audit() to compare all groups.",
        sensitive_features=list("aaabbbcc"),
    ),
    *(
        value(
            f"groups={groups!r}",
            f"groups must be a pair (first, second) of two different groups; got {groups!r}. "
            "Use groups=(first, second).",
            groups=groups,
        )
        for groups in NO_PAIRS
    ),
    value(
        "ages",
        "sensitive_features has 21 groups (0, 1, 2, 3, 4, 5, 6, 7 and 13 more); a comparison needs "
        "two: pass groups=(0, 1), or cut numbers into bands, or use correlation_test.",
        y_true=[0, 1] * 21,
        y_pred=[0, 1] * 21,
        sensitive_features=np.arange(42) // 2,
    ),
    value(
        "unknown group",
        "groups must be made of groups in sensitive_features; got 'B'. Did you mean 'b'?",
        groups=("a", "B"),
    ),
    *(
        value(
            f"group {name}",
            f"groups must be made of groups in sensitive_features ('a', 'b'); got {shown}.",
            groups=("a", one),
        )
        for name, one, shown in [
            ("NA", pd.NA, "<NA>"),
            ("nan", np.nan, "nan"),
            ("array", np.array([1, 2]), "array([1, 2])"),
            ("list", ["b"], "['b']"),
        ]
    ),
    value(
        "group of another type",
        "groups must be made of groups in sensitive_features; got '0'. Did you mean 0?",
        sensitive_features=[0, 1] * 4,
        groups=("0", "1"),
    ),
    value(
        "groups in a 0-D array",
        "groups must be a pair (first, second) of two different groups; got [",
        groups=np.array("a"),
    ),
    value(
        "groups in a 2-D array",
        "groups must be made of groups in sensitive_features ('a', 'b'); got array(['a', 'b']",
        groups=np.array([["a", "b"], ["a", "b"]]),
    ),
    value(
        "weight for a third group's stratum alone",
        "stratum_weights must give weight to strata in which false_negative_rate is defined in "
        "every group, and to no other; got weight on 0 strata, 0 of them without a gap.",
        sensitive_features=list("abcabcab"),
        y_true=[1] * 8,
        groups=("a", "b"),
        control_features=list("xxyxxyxx"),
        stratum_weights={"x": 0, "y": 1},
    ),
    value(
        "no shared stratum",
        "control_features must have a stratum with rows of every group; got 2 strata with rows "
        "of only some. Use coarser strata.",
        control_features=list("xxxxyyyy"),
    ),
    value(
        "no stratum with positives of both groups",
        "control_features must have a stratum in which false_negative_rate is defined in every "
        "group; got 2 strata without one. Use coarser strata.",
        y_true=[1, 1, 0, 0, 0, 0, 1, 1],
        control_features=list("xxyyxxyy"),
    ),
    value(
        "balanced_accuracy undefined in a stratum",
        "control_features must give weight to strata in which balanced_accuracy is defined in "
        "every group, and to no other; got weight on 2 strata, 1 of them without a gap.",
        metric="balanced_accuracy",
        y_true=[1, 0, 0, 0, 1, 0, 0, 0],
        y_pred=[1, 0, 0, 0, 1, 1, 0, 0],
        control_features=list("xxyyxxyy"),
    ),
]

UNDEFINED = [
    value(
        f"{metric} undefined",
        f"metric must be defined in every group; got {metric} of group 'a', "
        f"which has {lack}. Compare another metric, or groups with more rows.",
        metric=metric,
        y_true=y_true,
        y_pred=y_pred,
    )
    for metric, y_true, y_pred, lack in [
        ("false_negative_rate", [0] * 4 + [1] * 4, [0, 1] * 4, "no positives"),
        ("false_positive_rate", [1] * 4 + [0] * 4, [0, 1] * 4, "no negatives"),
        ("positive_predictive_value", [0, 1] * 4, [0] * 4 + [1] * 4, "no predicted positives"),
        ("false_omission_rate", [0, 1] * 4, [1] * 4 + [0] * 4, "no predicted negatives"),
        (
            "f1_score",
            [0] * 4 + [1] * 4,
            [0] * 8,
            "no rows that are positive or predicted positive",
        ),
        (
            "matthews_corrcoef",
            [0, 1] * 4,
            [0] * 8,
            "too few rows of some kind that it needs, or rows that are too similar",
        ),
    ]
]


WEIGHTED = value(
    "weighted rate undefined",
    "metric must be defined in every group; got false_negative_rate of group 'a', which has",
    y_true=[0] * 4 + [1] * 4,
    sample_weight=[1, 2] * 4,
)


@each([*GROUPS, *UNDEFINED, WEIGHTED])
def test_bad_groups_are_refused_in_a_full_sentence_that_names_the_argument(
    refusal: Refusal,
) -> None:
    check_wording(refusal)


def test_strata_with_one_group_only_are_warned_of_and_do_not_change_the_gap() -> None:
    whole = permutation_test(**WHOLE)
    says = (
        "1 of 2 strata have no rows of some group: they say nothing about the gap, and their "
        "rows (1 of group 'a') carry no weight."
    )
    with pytest.warns(FairpermWarning, match=re.escape(says)) as caught:
        result = permutation_test(**ONE_MORE)
    assert caught[0].filename == __file__
    assert (result.difference, result.pvalue) == (whole.difference, whole.pvalue)


def test_there_is_no_warning_of_strata_that_the_user_gives_no_weight() -> None:
    result = permutation_test(**ONE_MORE, stratum_weights={"x": 1, "y": 0})
    assert result.pvalue == permutation_test(**WHOLE).pvalue
