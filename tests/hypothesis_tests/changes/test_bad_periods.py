"""Comparisons of periods that cannot be: each is refused by name, with the rule and the value."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from fairperm import InputError, compare_periods
from tests.support.refusals import GOOD, Refusal, check_wording, each, table

YEARS = [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]
TWICE: dict[str, Any] = {
    **{name: one * 2 if isinstance(one, list) else one for name, one in GOOD.items()},
    "y_pred": [1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0],
    "period": YEARS,
}
REFUSALS = table(
    compare_periods,
    TWICE,
    globals(),
    """
period=None → TypeError: period must be given; got None.
period=[3] * 16 → period must be a column of at least two periods; got 1 (3).
period=YEARS[:-1] → period must be as long as y_true (16 rows); got 15.
period=[None, *YEARS[1:]] → period has 1 missing value (row 0 of 16)
y_true=[0, 1] * 202, y_pred=[0, 1] * 202, sensitive_features=[*'aabb'] * 101,
period=np.repeat(np.arange(101), 4) →
    period must be a column of at most 100 periods; got 101. Round dates to months or years, or
    choose some by periods.
periods=[1, 3] → periods must be made of values of period (1, 2); got 3.
period=['march'] * 8 + ['may'] * 8, periods=['march', 'mai'] →
    periods must be made of values of period; got 'mai'. Did you mean 'may'?
periods=[1] →
    periods must be two or more different periods; got [1]. Leave it out to compare all periods.
periods=[1, 1] → periods must be two or more different periods
periods='both' → periods must be made of values of period (1, 2); got 'both'
period=[1] * 12 + [2] * 4, sensitive_features=[*'aaaabbbb', *'aaaa', *'aaaa'] →
    UndefinedMetricError: period must be a column of periods that all have positives of both
    groups; got no positives of group 'b' in period 2. Leave the period out by periods, or take
    longer ones.
y_true=[1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0] →
    UndefinedMetricError: period must be a column of periods that all have positives of both
    groups; got no positives of group 'a' in period 2.
metric='roc_auc', y_pred=None, y_score=np.linspace(0, 1, 16), y_true=[1, 1, 0, 0, 1, 1, 0, 0, 0,
0, 0, 0, 1, 1, 0, 0] →
    UndefinedMetricError: metric must be defined in every group; got roc_auc of group 'a', which
    has no positives. Compare another metric, or groups with more rows. This is period 2.
control_features=YEARS →
    UndefinedMetricError: control_features must be strata of which one has positives of both
    groups in every period; got 2 strata without. Use coarser strata.
control_features=['x', 'y'] * 8, y_true=[1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0],
stratum_weights={'x': 1, 'y': 1} →
    UndefinedMetricError: period must be a column of periods that all have positives of both
    groups; got no positives of group 'a' in period 2 and stratum 'y'.
metric='roc_auc', y_pred=None, y_score=np.linspace(0, 1, 16) % 0.3, y_true=[1, 1, 0, 0, 1, 1, 0,
0, 1, 0, 0, 0, 1, 1, 0, 0], control_features=['x', 'y'] * 8 →
    UndefinedMetricError: control_features must give weight to strata in which roc_auc is
    defined in every group, and to no other; got weight on 2 strata, 1 of them without a gap.
    Use coarser strata, or stratum_weights of 0. This is period 2.
metric='selection_rate', y_pred=[1] * 4 + [0] * 12 →
    UndefinedMetricError: metric must be one whose change has a standard error above 0; got
    selection_rate from period 1 to 2. A standard error is 0 if no group varies in the metric
    within a period.
sensitive_features=['a'] * 16 → sensitive_features has 1 group ('a')
cluster=[*range(8)] * 2 →
    cluster must be of one group and one period: whole clusters are exchanged between periods;
    got 8 clusters with rows of several, such as 0. split_clusters=True makes a cluster of its
    rows of each.
y_true=pd.Series(TWICE['y_true']), period=pd.Series(YEARS, index=range(1, 17)) →
    period must be a pandas column with the index of y_true
against='last' → against must be one of 'previous', 'first'; got 'last'
scheme='unconditional' →
    scheme must be one of 'auto', 'pooled', 'within_label', 'denominator'; got 'unconditional'
variance='score' → variance must be one of 'auto', 'delta'
metric='equalized_odds', alternative='less', y_pred=[1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0,
1] →
    alternative must be 'two-sided' for equalized_odds; got 'less'.
metric='selection_rate', scheme='within_label' →
    scheme must be 'denominator' or 'pooled' for selection_rate; got 'within_label'.
metric='fnrr' → metric must be
score_bins=10 → score_bins is for lazy frames
n_resamples=-1 → n_resamples must be
""",
)


@each(REFUSALS)
@pytest.mark.filterwarnings("ignore:.* of group .* shows? how", "ignore:.*is zero in this")
def test_bad_periods_are_refused(refusal: Refusal) -> None:
    check_wording(refusal)


def test_a_column_that_a_lazy_frame_lacks_is_refused() -> None:
    frame = pl.LazyFrame({"y": [1, 0], "g": ["a", "b"]})
    names: dict[str, Any] = {"sensitive_features": "g", "period": "when", "metric": "accuracy"}
    with pytest.raises(InputError, match="period must be"):
        compare_periods("y", "y", data=frame, **names)
