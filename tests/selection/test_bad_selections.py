"""What is wrong with an audit of selection is said in words, with a way out."""

from __future__ import annotations

from typing import Any

from fairperm import selection_audit
from tests.support.refusals import Refusal, check_wording, each, table

N = 20
HIRED, SEX = [1, 0, 0, 1] * 5, ["a", "b"] * 10
GOOD: dict[str, Any] = {"selected": HIRED, "sensitive_features": {"sex": SEX}}
BINARY = "binary (0/1, -1/1 or False/True; or two other values and pos_label)"
GAP = [None, *HIRED[1:]]
REFUSALS = table(
    selection_audit,
    GOOD,
    globals(),
    """
selected=None → Pass selected or score; got neither.
score=HIRED → Pass selected or score; got both.
selected=['yes', 'no'] * 10 →
    selected must be {BINARY}; got the values 'no', 'yes'. Pass pos_label='no' or pos_label='yes',
    whichever means yes.
selected=['yes'] * N → selected must be {BINARY}; got the values 'yes'.
selected=[0, 1, 2, 3] * 5 → selected must be {BINARY}; got the values 0, 1, 2, 3.
selected=[0.5, *HIRED[1:]] → selected must be {BINARY}; got the values 0, 0.5, 1.
selected=HIRED, pos_label=7 → pos_label must be
selected=[0] * N → Nobody is selected in the groups of 'sex'. Pass pos_label if another value
selected=GAP →
    selected has 1 missing value (row 0 of 20). Everybody who is compared was selected or not:
    fill them in, or leave these rows out (in a terminal by --where).
selected=HIRED[1:] → sensitive_features column 'sex' must be as long as selected (19 rows); got 20.
selected=[] → sensitive_features column 'sex' must be as long as selected (0 rows); got 20.
selected=[[1], [0]] * 10 → TypeError: selected must be made of hashable values
selected='hired' → TypeError: selected must be a list, a NumPy array or a data frame's column
selected='hired', data={'sex': SEX} → selected must be a column of data ('sex'); got 'hired'.
selected=np.ones((N, 2)) → selected must be one-dimensional; got (20, 2).
sensitive_features=None → TypeError: sensitive_features must be given; got None.
sensitive_features={} → sensitive_features must have at least one column; got none.
sensitive_features={'sex': ['a'] * N} →
    sensitive_features (sex) must have two or more known groups; got 'a'.
sensitive_features={'sex': ['a'] * 19 + [None]} →
    sensitive_features (sex) must have two or more known groups; got 'a'.
sensitive_features={'sex': ['unknown', ''] * 10} →
    sensitive_features (sex) must have two or more known groups; got none.
sensitive_features={'sex': SEX}, minimum_share=0.6 →
    sensitive_features (sex) must have two or more known groups with at least 60 % of the
    applicants each; got none of 2 groups.
sensitive_features={'age': list(range(N))}, minimum_share=0.1 →
    sensitive_features (age) must have two or more known groups with at least 10 % of the
    applicants each; got none of 20 groups.
sensitive_features='race', data={'sex': SEX, 'hired': HIRED}, selected='hired' →
    sensitive_features must be a column of data ('sex', 'hired'); got 'race'.
threshold=0.5 → threshold needs score.
selected=None, score=[1.0] * N →
    threshold must be at least the lowest score (1) and below the highest (1); got 1.0.
selected=None, score=[1] * 9 + [2] * 11 →
    threshold must be at least the lowest score (1) and below the highest (2); got 2.0. No score
    would be above it.
selected=None, score=HIRED, threshold=-1 →
    threshold must be at least the lowest score (0) and below the highest (1); got -1. Every score
    would be above it.
selected=None, score=HIRED, threshold=1 →
    threshold must be at least the lowest score (0) and below the highest (1); got 1.
selected=None, score=HIRED, threshold='mean' → threshold must be 'median' or a number; got 'mean'.
selected=None, score=HIRED, threshold=np.nan → threshold must be a finite number; got nan.
selected=None, score=HIRED, threshold=True → TypeError: threshold must be a finite number; got True.
selected=None, score=HIRED, pos_label=1 → pos_label cannot be used
selected=None, score=['a'] * N → TypeError: score must be made of real numbers; got 'a'.
selected=None, score=[np.inf, *HIRED[1:]] → score must be finite; got inf.
selected=None, score=GAP → score has 1 missing value (row 0 of 20). Everybody who is compared
selected=None, score={'x': HIRED} → TypeError: score must be one column of scores
count=[1] * 19 → count must be as long as selected (20 rows); got 19.
count=[1.5] * N →
    count must be made of whole numbers from 0 on; got 1.5. A number that says how much a row
    counts is a weight.
count=[-1] * N → count must be made of whole numbers from 0 on; got -1.0.
count=[None] + [1] * 19 → count must be made of whole numbers from 0 on; got a missing value.
count=[np.inf] * N → count must be made of whole numbers from 0 on; got inf.
count=[0] * N → selected must have at least one row; got none.
count=['1'] * N → TypeError: count must be made of real numbers; got '1'.
count=[2**53] * N → count must be at most 2**53 together
count='n', data={'hired': HIRED, 'sex': SEX} →
    count must be a column of data ('hired', 'sex'); got 'n'.
count=pd.Series([1] * N, range(1, 21)), selected=pd.Series(HIRED) →
    count must be a pandas column with the index of selected; got an index that shares 19 of 20
    labels with it.
applicants=[1] * N, count=[1] * N → count cannot be used with applicants.
applicants=[1] * N, selected=None, score=HIRED → score cannot be used with applicants.
applicants=[1] * N, pos_label=1 → pos_label cannot be used with applicants.
applicants=[0, *[1] * 19] → selected must be at most applicants; got 1 of 0 in row 0. Did you swap
applicants=[1.5] * N → applicants must be made of whole numbers from 0 on; got 1.5.
applicants=[-1] * N → applicants must be made of whole numbers from 0 on; got -1.0.
applicants=[2] * N, selected=[-1, *HIRED[1:]] →
    selected must be made of whole numbers from 0 on; got -1.0.
applicants=[2] * N, selected=['yes'] * N → TypeError: selected must be made of real numbers
applicants=[2] * 19 → selected must be as long as applicants and
applicants=[0] * N, selected=[0] * N → selected must have at least one row; got none.
control_features=['a'] * 19 → control_features must be as long as selected (20 rows); got 19.
control_features=[None, *'abcd' * 4, *'abc'] → control_features has 1 missing value (row 0 of 20).
control_features=SEX →
    control_features must be strata with applicants of every group of 'sex'; got none in which
    somebody is selected.
source=3 → TypeError: source must be text; got 3.
end=2025 → TypeError: end must be text; got 2025.
ignore_index=1 → TypeError: ignore_index must be True or False; got 1.
unknown='unknown' → TypeError: unknown must be a list of names; got 'unknown'.
unknown=3 → TypeError: unknown must be a list of names; got 3.
minimum_share=1 → minimum_share must be from 0 to below 1; got 1.
minimum_share=-0.1 → minimum_share must be from 0 to below 1; got -0.1.
minimum_share='2 %' → TypeError: minimum_share must be a finite number; got '2 %'.
four_fifths=80 → four_fifths must be a number strictly between 0 and 1; got 80. Did you mean 0.8?
four_fifths=1 → four_fifths must be a number strictly between 0 and 1; got 1.
four_fifths=None → TypeError: four_fifths must be a number strictly between 0 and 1; got None.
confidence_level=95 →
    confidence_level must be a number strictly between 0 and 1; got 95. Did you mean 0.95?
intersections=None → TypeError: intersections must be True or False; got None.
intersections='yes' → TypeError: intersections must be True, False or None; got 'yes'.
data=3, selected='x' → TypeError: data must be
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)
