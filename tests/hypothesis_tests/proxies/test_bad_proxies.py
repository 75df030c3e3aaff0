"""What is wrong with probabilities of groups is said in words, with a way out."""

from __future__ import annotations

from typing import Any

import numpy as np

import fairperm
from tests.support.refusals import Refusal, check_wording, each, table

N = 80
W = np.tile([0.9, 0.8, 0.2, 0.1], N // 4)
NAMED = {"a": W, "b": 1 - W}
THREE = {"a": W / 2, "b": W / 2, "c": 1 - W}
FRAME = {"p": W, "q": 1 - W, "y": [1, 0, 1, 1] * 20}
CELL = np.tile([1, 2, 3, 4], N // 4)
IN_DATA: dict[str, Any] = {"data": FRAME, "y_pred": "y"}
GOOD: dict[str, Any] = {
    "y_pred": [1, 0, 1, 1] * 20,
    "group_probabilities": NAMED,
    "metric": "selection_rate",
    "n_resamples": 99,
    "rng": 1,
}
AUDIT = {name: one for name, one in GOOD.items() if name != "metric"}
SELECTION = {"selected": GOOD["y_pred"], "group_probabilities": NAMED}


def _with(first: object) -> np.ndarray[Any, Any]:
    """Return the first group's probabilities with another one in row 0."""
    return np.array([first, *W[1:]], np.float64)


REFUSALS = table(
    fairperm.permutation_test,
    GOOD,
    globals(),
    """
group_probabilities=None → TypeError: sensitive_features must be given; got None.
group_probabilities=None, sensitive_features=list('ab') * 40, proxy=CELL →
    proxy needs group_probabilities.
sensitive_features=list('ab') * 40 → sensitive_features cannot be used with group_probabilities.
group_probabilities=W → TypeError: group_probabilities must be a mapping of groups to columns
group_probabilities=['p', 'q'] → TypeError: group_probabilities must be a mapping of groups to
group_probabilities='p', **IN_DATA → TypeError: group_probabilities must be a mapping of groups
group_probabilities=['p', 'x'], **IN_DATA →
    group_probabilities must be a column of data ('p', 'q', 'y'); got 'x'.
group_probabilities={} → group_probabilities must be given for 2 to 20 groups; got none.
group_probabilities={'a': W} →
    group_probabilities must be given for 2 to 20 groups; got 'a'. The probabilities of all groups
    add up to 1: pass a column for each of them.
group_probabilities={i: W for i in range(21)} → group_probabilities must be given for 2 to 20 groups
group_probabilities={'a': W, 'b': W} →
    group_probabilities must be made of probabilities that add up to 1 in every row; got 1.8,
    the first of
group_probabilities={'a': W, 'b': 0.8 - W} →
    group_probabilities of group 'b' must be made of probabilities
group_probabilities={'a': 100 * W, 'b': 100 - 100 * W} →
    group_probabilities of group 'a' must be made of probabilities, from 0 to 1; got 90.0. Divide
    percentages by 100.
group_probabilities={'a': _with(-0.1), 'b': 1 - _with(-0.1)} →
    group_probabilities of group 'a' must be made of probabilities, from 0 to 1; got -0.1.
group_probabilities={'a': _with(np.nan), 'b': 1 - W} →
    group_probabilities of group 'a' has 1 missing value (row 0 of 80). Pass missing='drop'
group_probabilities={'a': _with(np.inf), 'b': 1 - W} →
    group_probabilities must be finite; got inf.
group_probabilities={'a': ['x'] * N, 'b': 1 - W} →
    TypeError: group_probabilities must be made of real numbers; got 'x'.
group_probabilities={'a': W[1:], 'b': 1 - W[1:]} →
    group_probabilities of group 'a' must be as long as
group_probabilities={'a': np.ones(N), 'b': np.zeros(N)} →
    group_probabilities must be above 0 for somebody in every group; got 'b'. Leave it out.
group_probabilities={'a': np.full(N, 0.3), 'b': np.full(N, 0.7)} →
    group_probabilities must be different enough to tell the groups apart; got the same
    probabilities in every row.
group_probabilities=THREE, groups=('a', 'c') →
    group_probabilities must be different enough to tell the groups apart; got columns of which
group_probabilities={'a': W, 'b': (1 - W) * W, 'c': (1 - W) ** 2} →
    group_probabilities has 3 groups ('a', 'b', 'c'); a comparison needs two: pass
groups=('a', 'x') → groups must be made of groups in group_probabilities ('a', 'b'); got 'x'.
groups=('a', 'a') → groups must be a pair (first, second) of two different groups
proxy_assumption='both' →
    proxy_assumption must be one of 'outcome_given_group', 'group_given_proxy'; got 'both'.
proxy_assumption=None → proxy_assumption must be one of
proxy=CELL[1:] → proxy must be as long as
proxy=np.arange(N) → proxy must be a column of cells of at least 20 rows; got 80 cells of 80 with
proxy=np.zeros(N) → proxy must be a column of cells of equal probabilities; got different ones in
proxy=[None, *CELL[1:]] → proxy has 1 missing value (row 0 of 80).
proxy=CELL, y_true=GOOD['y_pred'], metric='balanced_accuracy' →
    metric must be a rate or the mean of a number of each row with proxy; got 'balanced_accuracy'.
metric='roc_auc', y_true=GOOD['y_pred'], y_score=W, y_pred=None →
    metric must be a rate, a mean or another function of totals with group_probabilities; got
metric='equalized_odds', y_true=GOOD['y_pred'] → metric must be a rate, a mean or another
control_features=CELL → control_features cannot be used with group_probabilities.
matched=CELL → matched cannot be used with group_probabilities.
sample_weight=W → sample_weight cannot be used with group_probabilities.
stratum_weights={1: 1.0} → stratum_weights cannot be used with group_probabilities.
cluster=CELL, split_clusters=True → split_clusters cannot be used with group_probabilities.
score_bins=5 → score_bins cannot be used with group_probabilities.
missing='group' → missing must be 'error' or 'drop' with group_probabilities; got 'group'.
scheme='pooled' → scheme must be one of 'auto'; got 'pooled'.
variance='wald' → variance must be one of 'auto', 'delta'; got 'wald'.
data=pl.LazyFrame(FRAME), y_pred='y', group_probabilities=['p', 'q'] →
    data must be in memory with group_probabilities; got
""",
)
REFUSALS += table(
    fairperm.audit,
    AUDIT,
    globals(),
    """
compare='rest' → compare='rest' cannot be used with group_probabilities.
intersections=True → intersections cannot be used with group_probabilities.
distances='ks' → distances cannot be used with group_probabilities.
y_pred_new=GOOD['y_pred'] → y_pred_new cannot be used with group_probabilities.
control_features=CELL → control_features cannot be used with group_probabilities.
""",
)
REFUSALS += table(
    fairperm.selection_audit,
    SELECTION,
    globals(),
    """
applicants=[2] * N → group_probabilities cannot be used with applicants.
control_features=CELL → control_features cannot be used with group_probabilities.
group_probabilities={'a': W / 50, 'b': 1 - W / 50} →
    group_probabilities (group_probabilities) must have two or more known groups
""",
)


@each(REFUSALS)
def test_a_message_names_the_argument_and_what_to_do(refusal: Refusal) -> None:
    check_wording(refusal)
