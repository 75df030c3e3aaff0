"""Groups and strata that cannot be compared, and those of which the reader is warned."""

from __future__ import annotations

import re

import pytest

from fairperm import FairpermWarning, permutation_test
from tests.support.refusals import GOOD, Refusal, check_wording, each, table

WHOLE = {**GOOD, "metric": "accuracy", "scheme": "denominator"}
ONE_MORE = {  # the same rows, and a stratum that has a row of one group only
    **WHOLE,
    "y_true": [*GOOD["y_true"], 1],
    "y_pred": [*GOOD["y_pred"], 1],
    "sensitive_features": [*GOOD["sensitive_features"], "a"],
    "control_features": list("xxxxxxxxy"),
}

PAIR = "groups must be a pair (first, second) of two different groups"
UNDEFINED = "metric must be defined in every group; got"
ANOTHER = "Compare another metric, or groups with more rows."
REFUSALS = table(
    permutation_test,
    GOOD,
    globals(),
    """
sensitive_features=['a'] * 8 →
    sensitive_features has 1 group ('a'); a comparison needs two: pass the rows of both
sensitive_features=list('aaabbbcc') →
    sensitive_features has 3 groups ('a', 'b', 'c'); a comparison needs two: pass groups=('a',
    'b'), or use audit() to compare all groups.
y_true=[0, 1] * 21, y_pred=[0, 1] * 21, sensitive_features=np.arange(42) // 2 →
    sensitive_features has 21 groups (0, 1, 2, 3, 4, 5, 6, 7 and 13 more); a comparison needs
    two: pass groups=(0, 1), or cut numbers into bands, or use correlation_test.
groups=('a', 'B') → groups must be made of groups in sensitive_features; got 'B'. Did you mean 'b'?
sensitive_features=[0, 1] * 4, groups=('0', '1') →
    groups must be made of groups in sensitive_features; got '0'. Did you mean 0?
groups=np.array('a') → groups must be a pair (first, second) of two different groups; got [
groups=np.array([['a', 'b'], ['a', 'b']]) →
    groups must be made of groups in sensitive_features ('a', 'b'); got array(['a', 'b']
sensitive_features=list('abcabcab'), y_true=[1] * 8, groups=('a', 'b'),
control_features=list('xxyxxyxx'), stratum_weights={'x': 0, 'y': 1} →
    stratum_weights must give weight to strata in which false_negative_rate is defined in every
    group, and to no other; got weight on 0 strata, 0 of them without a gap.
control_features=list('xxxxyyyy') →
    control_features must have a stratum with rows of every group; got 2 strata with rows of
    only some. Use coarser strata.
y_true=[1, 1, 0, 0, 0, 0, 1, 1], control_features=list('xxyyxxyy') →
    control_features must have a stratum in which false_negative_rate is defined in every group;
    got 2 strata without one. Use coarser strata.
metric='balanced_accuracy', y_true=[1, 0, 0, 0, 1, 0, 0, 0], y_pred=[1, 0, 0, 0, 1, 1, 0, 0],
control_features=list('xxyyxxyy') →
    control_features must give weight to strata in which balanced_accuracy is defined in every
    group, and to no other; got weight on 2 strata, 1 of them without a gap.
y_true=[0] * 4 + [1] * 4, sample_weight=[1, 2] * 4 →
    metric must be defined in every group; got false_negative_rate of group 'a', which has
groups='ab' → {PAIR}; got 'ab'. Use groups=(first, second).
groups=('a',) → {PAIR}; got ('a',). Use groups=(first, second).
groups=('a', 'b', 'a') → {PAIR}; got ('a', 'b', 'a'). Use groups=(first, second).
groups=('a', 'a') → {PAIR}; got ('a', 'a'). Use groups=(first, second).
groups=[] → {PAIR}; got []. Use groups=(first, second).
groups={'a'} → {PAIR}; got {'a'}. Use groups=(first, second).
groups=3 → {PAIR}; got 3. Use groups=(first, second).
groups=('a', pd.NA) → groups must be made of groups in sensitive_features ('a', 'b'); got <NA>.
groups=('a', np.nan) → groups must be made of groups in sensitive_features ('a', 'b'); got nan.
groups=('a', np.array([1, 2])) →
    groups must be made of groups in sensitive_features ('a', 'b'); got array([1, 2]).
groups=('a', ['b']) → groups must be made of groups in sensitive_features ('a', 'b'); got ['b'].
metric='false_negative_rate', y_true=[0] * 4 + [1] * 4, y_pred=[0, 1] * 4 →
    {UNDEFINED} false_negative_rate of group 'a', which has no positives. {ANOTHER}
metric='false_positive_rate', y_true=[1] * 4 + [0] * 4, y_pred=[0, 1] * 4 →
    {UNDEFINED} false_positive_rate of group 'a', which has no negatives. {ANOTHER}
metric='positive_predictive_value', y_true=[0, 1] * 4, y_pred=[0] * 4 + [1] * 4 →
    {UNDEFINED} positive_predictive_value of group 'a', which has no predicted positives. {ANOTHER}
metric='false_omission_rate', y_true=[0, 1] * 4, y_pred=[1] * 4 + [0] * 4 →
    {UNDEFINED} false_omission_rate of group 'a', which has no predicted negatives. {ANOTHER}
metric='f1_score', y_true=[0] * 4 + [1] * 4, y_pred=[0] * 8 →
    {UNDEFINED} f1_score of group 'a', which has no rows that are positive or predicted
    positive. {ANOTHER}
metric='matthews_corrcoef', y_true=[0, 1] * 4, y_pred=[0] * 8 →
    {UNDEFINED} matthews_corrcoef of group 'a', which has too few rows of some kind that it
    needs, or rows that are too similar. {ANOTHER}
y_true=[0] * 4 + [1] * 4, sample_weight=[1, 2] * 4 → {UNDEFINED} false_negative_rate of group 'a',
    which has
""",
)


@each(REFUSALS)
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
