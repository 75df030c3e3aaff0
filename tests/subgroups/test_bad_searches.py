"""What is wrong with the arguments of a search is said in words, with a way out."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from fairperm import FairpermWarning, InputError, find_subgroups
from tests.support.refusals import Refusal, check_wording, each, table

N = 60
Y, P = [0, 1] * 30, [0, 0, 1] * 20
GOOD: dict[str, Any] = {
    "y_true": Y,
    "y_pred": P,
    "features": {"a": ["x", "y", "z"] * 20, "b": list(range(60))},
    "metric": "accuracy",
    "min_rows": 5,
    "n_resamples": 39,
    "rng": 1,
}
LAZY = pl.LazyFrame({"a": Y})
MISSING = [None, *Y[1:]]


def worst(y_true: Any, y_pred: Any) -> Any:
    return max(y_true) - max(y_pred)


TWICE = {1: Y, "1": Y}
REFUSALS = table(
    find_subgroups,
    GOOD,
    globals(),
    """
y_true=None → TypeError: y_true must be given for accuracy; got None.
y_true=Y[1:] → y_pred must be as long as y_true (59 rows); got 60.
y_true=MISSING → y_true has 1 missing value (row 0 of 60).
y_true=[2, *Y[1:]], metric='fpr' →
    y_true must be binary (0/1, -1/1 or False/True; or two other values and pos_label); got the
    values 0, 1, 2.
y_pred=None → TypeError: y_pred must be given for this metric; got None.
y_pred=P, threshold=0.5 →
    threshold cannot be used with y_pred: it only turns y_score into predictions.
y_pred=P, y_score=P → Pass y_pred or y_score, not both.
y_pred=[0.5, *P[1:]] →
    y_pred must be binary (0/1, -1/1 or False/True; or two other values and pos_label); got the
    values 0, 0.5, 1.
features=None → TypeError: features must be given; got None.
features={} → features must have at least one column; got none.
features={'a': ['x'] * N} → features must be at least one column of different values; got ['a'].
features={'a': ['x', 'y']} → features column 'a' must be as long as y_true (60 rows); got 2.
features='a' → TypeError: features must be a list, a NumPy array or a data frame's column; got 'a'.
features={'a': [[1], [2]] * 30} →
    TypeError: features column 'a' must be made of hashable values; got "unhashable type:
    'list'".
features=['a', 'c'], data={'a': Y} → features must be a column of data ('a'); got 'c'.
features=TWICE → features must be columns with different names; got ['1', '1'].
features=np.zeros((N, 0)) → features must have at least one column; got none.
metric='nothing' → metric must be one that metric_names() lists; got 'nothing'.
metric='equalized_odds' →
    metric must be a single metric; got 'equalized_odds'. Search with one of its parts:
    'true_positive_rate', 'false_positive_rate'.
metric=worst →
    metric must be one whose standard error has a closed form; got 'worst'. Define it with
    register_metric, as a function of means.
metric='average_precision', y_pred=None, y_score=[0.5, 0.2] * 30 →
    metric must be one whose subgroups can be searched; got 'average_precision'.
metric='roc_auc' → TypeError: y_score must be given for roc_auc; got None.
cluster=[1] * N →
    cluster must keep to one group: whole clusters are exchanged; got cluster 1 with rows of 'a
    = x and b at most 14', 'a = x and b 15 to 29'.
sample_weight=[0.0] * N → sample_weight must be made of numbers above 0; got 0.0.
max_depth=0 → max_depth must be an integer from 1 to 10; got 0.
max_depth=1.5 → TypeError: max_depth must be an integer from 1 to 10; got 1.5.
min_rows=1 → min_rows must be an integer from 2 to 1,000,000,000; got 1.
min_rows=31 →
    min_rows must be at most the number of rows that the metric rests on in some subgroup and in
    the rest; got 31.
bands=1 → bands must be an integer from 2 to 100; got 1.
alternative='both' →
    alternative must be one of 'two-sided', 'symmetric', 'greater', 'less'; got 'both'.
adjust='bonferroni' → adjust must be one of 'maxt', 'holm', 'bh', 'by'; got 'bonferroni'.
adjust=None → adjust must be one of 'maxt', 'holm', 'bh', 'by'; got None.
alpha=5 → alpha must be a number strictly between 0 and 1; got 5.
confirm=1 → confirm must be a number strictly between 0 and 1; got 1.
confirm=True → TypeError: confirm must be a number strictly between 0 and 1; got True.
n_resamples=0 → n_resamples must be an integer from 1 to 100,000,000; got 0.
n_jobs=0 → n_jobs must be a positive or negative integer, or None; got 0.
rng=-1 → rng must be an integer from 0 to 2**128 - 1, a numpy Generator or None; got -1.
features=['a', 'c'], data=LAZY → features must be a column of data ('a'); got 'c'.
features={'a': Y}, data=LAZY →
    TypeError: features must be names of columns of the lazy frame; got {'a': [0, 1, 0, 1, 0, 1,
    0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, ….
score_bins=9 → score_bins is for lazy frames: all rows are in memory.
missing='skip' → missing must be one of 'error', 'drop', 'group'; got 'skip'.
y_true=pd.Series(Y), features={'a': pd.Series(P, index=range(1, N + 1))} →
    features must be a pandas column with the index of y_true; got an index that shares 59 of 60
    labels with it.
n_resamples=4000000 →
    max_depth and min_rows must be such that there are at most 5 subgroups to test with this
    many permutations, and at most 100,000,000 distinct combinations of features in all of them
    together; got more with 1 condition. Raise min_rows, or use a smaller max_depth, fewer bands
    or fewer features.
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)


def test_subgroups_of_too_many_combinations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairperm.subgroups.candidates.MAX_MEMBERS", 100)
    with pytest.raises(InputError, match=r"at most 100 distinct.*min_rows"):
        find_subgroups(**GOOD)


def test_too_few_permutations_are_warned_of() -> None:
    with pytest.warns(FairpermWarning, match="19 permutations cannot find a single one"):
        result = find_subgroups(**{**GOOD, "n_resamples": 19})
    assert len(result.notes) == 1
    with pytest.warns(FairpermWarning, match=r"adjust='bh'\. Use n_resamples="):
        find_subgroups(**{**GOOD, "adjust": "bh"})
