"""Flip tests against models whose true shares are known, binomial intervals and McNemar's test."""

from __future__ import annotations

import functools
import itertools
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from scipy.special import betaln
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fairperm
from fairperm import FlipTestResult, PredictError, flip_test
from fairperm.inference.null import anytime_interval, clopper_pearson
from tests.support.simulations import between

pytestmark = pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
SCHEMA: dict[str, Any] = {
    "sex": ["female", "male"],
    "income": (20, 80),
    "age": range(18, 90),
    "title": ["Ms", "Mr"],
}


sequence = functools.cache(functools.partial(anytime_interval, confidence_level=0.95))
flips_interval = functools.cache(functools.partial(clopper_pearson, confidence_level=0.95))


def predict(rows: Any) -> Any:
    """Women need a higher income; old people do not."""
    is_woman = rows["sex"].to_numpy() == "female"
    return rows["income"].to_numpy() >= 40 + 6 * (is_woman & (rows["age"].to_numpy() < 54))


def ask(model: Any = predict, **given: Any) -> FlipTestResult:
    known: dict[str, Any] = {"schema": SCHEMA, "feature": "sex", "n": 400, "rng": 1}
    if "data" in given:
        known = {name: one for name, one in known.items() if name not in {"schema", "n"}}
    return flip_test(model, **{**known, **given})


def test_two_values_have_a_binomial_interval_and_mcnemars_test() -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"group": rng.choice(["a", "b"], 300), "u": rng.uniform(size=300)})

    def model(one: Any) -> Any:
        noise = np.where(one["group"] == "a", one["u"] > 0.9, one["u"] < 0.05)
        return (noise ^ (one["u"] > 0.5)).astype(int)

    result = flip_test(model, rows, feature="group", rng=1)
    first, second = (model(rows.assign(group=one)) for one in "ab")
    up, down = ((first > second).sum(), (first < second).sum())
    expected = stats.binomtest(int(up + down), 300)
    assert (result.n, result.n_changed) == (300, up + down)
    low, high = expected.proportion_ci(0.95, "exact")
    assert result.interval == pytest.approx((low, high))
    assert (result.pairs[0].n_higher, result.pairs[0].n_lower) == (up, down)
    assert result.test is not None
    assert result.test.pvalue == pytest.approx(stats.binomtest(int(up), int(up + down)).pvalue)
    assert list(result.rows) == list(range(300))
    assert result.to_frame()["decision"].tolist() == [*first, *second]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_every_library_give_one_result(make: Any) -> None:
    rng = np.random.default_rng(2)
    columns = {"sex": ["female", "male"] * 50, "income": rng.uniform(20, 80, 100)}
    columns["age"] = np.arange(100)
    result = ask(data=make(columns), batch_size=7)
    again = ask(data=columns, batch_size=1000)
    assert (result.n_changed, result.test.pvalue) == (again.n_changed, again.test.pvalue)  # type: ignore[union-attr]
    assert 0 < result.n_changed < 100
    assert type(result.to_frame()) is type(make(columns))
    assert len(result.find_subgroups(["age"], n_resamples=99).all) > 0


def test_estimators_get_columns_of_their_own_types() -> None:
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(
        {"sex": pd.Categorical(rng.choice(["f", "m"], 200)), "x": rng.normal(size=200)}
    )
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    model.fit(rows[["sex"]], rows["sex"] == "m")

    def score(one: pd.DataFrame) -> Any:
        assert one.dtypes.equals(rows.dtypes)
        assert list(one["sex"].cat.categories) == ["f", "m"]
        return model.predict_proba(one[["sex"]])[:, 1]

    assert ask(score, data=rows, threshold=0.5).share_changed == 1
    assert flip_test(model, rows[["sex"]], feature="sex").share_changed == 1


def test_proxies_change_with_the_value() -> None:
    def by_title(rows: Any) -> Any:
        return rows["title"] == "Mr"

    proxies = {"title": {"female": "Ms", "male": "Mr"}}
    assert ask(by_title).n_changed == 0
    assert ask(by_title, proxies=proxies).n_changed == 400


def test_several_values_have_cochrans_test_and_every_pair() -> None:
    rows = pd.DataFrame({"name": ["x", "y", "z"] * 20, "u": np.arange(60) / 60})
    cuts = {"x": 0.3, "y": 0.5, "z": 0.5}

    def model(one: Any) -> Any:
        return one["u"] > one["name"].map(cuts)

    result = flip_test(model, rows, feature="name", rng=1)
    assert result.test is not None
    assert result.test.metric == "selection_rate"
    assert [one.n_changed for one in result.pairs] == [12, 12, 0]
    assert result.n_changed == 12
    assert "Setting name to x, y and z changes the decision for 20.0 % of rows (12 of 60" in repr(
        result
    )


def test_ratings_and_texts() -> None:
    ratings = ask(lambda rows: (rows["age"] // 20 + (rows["sex"] == "male")).astype(float))
    assert ratings.test is not None
    assert ratings.test.metric == "mean_prediction"
    assert ratings.pairs[0].n_lower == 400

    def words(rows: Any) -> Any:
        return [
            "refused" if age > 80 and sex == "male" else "yes" if age > 50 else "no"
            for age, sex in zip(rows["age"], rows["sex"], strict=True)
        ]

    texts = ask(words)
    assert texts.test is None
    assert "pos_label says which of them to test for a direction" in " ".join(repr(texts).split())
    refused = ask(words, pos_label="refused")
    assert refused.test is not None
    assert refused.n_changed == texts.n_changed == refused.pairs[0].n_lower
    scores = ask(lambda rows: rows["income"] + (rows["sex"] == "male"))
    assert any("threshold makes decisions of scores" in note for note in scores.notes)


def test_who_is_affected_is_found() -> None:
    found = ask(n=2000).find_subgroups(["age", "income"], max_depth=1)
    assert {*found.listed[0].conditions} <= {"age", "income"}
    assert found.metric == "share_changed"
    assert all(one.value > one.rest for one in found.listed[:1])


def test_results_are_json_and_html() -> None:
    result = ask()
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["n_changed"] == result.n_changed
    assert plain["pairs"][0]["groups"] == ["female", "male"]
    assert plain["test"]["pvalue"] == result.test.pvalue  # type: ignore[union-attr]
    assert "changes the decision" in result._repr_html_()
    assert "they are not people" in " ".join(repr(result).split())


def test_no_change_and_every_change_have_one_sided_limits() -> None:
    none = ask(lambda rows: [1] * len(rows), n=50)
    assert none.interval == pytest.approx((0, 1 - 0.025 ** (1 / 50)))
    assert none.test is not None
    assert none.test.pvalue == 1
    assert "0.0 % of rows (0 of 50 rows" in none.answer


def test_a_half_width_stops_early_with_an_interval_that_allows_it() -> None:
    result = ask(n=None, half_width=0.05, batch_size=50)
    assert result.is_anytime
    assert result.interval[1] - result.interval[0] <= 0.1
    before = anytime_interval(int(result.changed()[:-50].sum()), result.n - 50, 0.95)
    assert before[1] - before[0] > 0.1
    assert result.interval == anytime_interval(result.n_changed, result.n, 0.95)
    few = ask(n=60, half_width=0.01, batch_size=50)
    assert (few.n, few.notes[0]) == (
        60,
        "The rows ended before the interval was as narrow as ± 0.01.",
    )


def test_the_sequence_is_the_inverted_mixture() -> None:
    for k, n in ((0, 1), (3, 40), (20, 40), (40, 40), (7, 5000)):
        low, high = anytime_interval(k, n, 0.9)
        for end in {low, high} - {0.0, 1.0}:
            mean = betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5)
            assert mean - k * np.log(end) - (n - k) * np.log1p(-end) == pytest.approx(np.log(10))
        exact = stats.binomtest(k, n).proportion_ci(0.9, "exact")
        assert low <= exact.low + 1e-9
        assert high >= exact.high - 1e-9


def test_the_sequence_covers_at_every_n_with_the_mixtures_probability() -> None:
    """Exact: every path of 10 outcomes, and the chance that any interval misses the share."""
    interval = functools.cache(functools.partial(anytime_interval, confidence_level=0.8))
    for share in (0.05, 0.3, 0.5):
        missed = 0.0
        for path in itertools.product([0, 1], repeat=10):
            ups = np.cumsum(path)
            ends = (interval(int(k), n) for n, k in enumerate(ups, 1))
            if any(not low <= share <= high for low, high in ends):
                missed += share ** ups[-1] * (1 - share) ** (10 - ups[-1])
        assert missed <= 0.2


class Broken:
    """A model that works until one of its calls."""

    def __init__(self, at: int, breaks: Any) -> None:
        self.calls, self.at, self.breaks = 0, at, breaks

    def predict(self, rows: Any) -> Any:
        self.calls += 1
        if self.calls < self.at:
            return [1] * len(rows)
        return self.breaks(rows) if callable(self.breaks) else self.breaks


def fail(rows: Any) -> Any:
    raise TimeoutError("no connection")


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        (
            fail,
            "predict must be able to decide on rows like these; got TimeoutError: no connection",
        ),
        ([1], "predict must be decisions of all 10 rows; got 1 of them."),
        ([1.0] * 9 + [np.nan], "predict must be without missing decisions; got one"),
        ([None] * 10, "predict must be without missing decisions; got one at row 0"),
        (None, "predict must be a list, a NumPy array or a data frame's column; got"),
        ("yes", "predict must be a list, a NumPy array or a data frame's column; got"),
        (np.ones((10, 2)), "predict must be one-dimensional; got (10, 2). Take one"),
        (lambda rows: rows, "predict must be one column of values; got"),
        ([[1]] * 10, "predict must be"),
    ],
)
def test_a_model_that_breaks_loses_nothing(breaks: Any, says: str) -> None:
    with pytest.raises(PredictError, match=f"^{re.escape(says)}") as caught:
        ask(Broken(6, breaks), n=40, batch_size=10)
    error: Any = caught.value
    assert "The error's outcomes have the 50 decisions made before." in str(error)
    assert error.outcomes["row"].tolist() == [*range(30), *range(20)]
    assert set(error.outcomes["decision"]) == {1}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": 5}, "predict must be a function of rows, or a fitted estimator; got 5"),
        ({"model": LogisticRegression}, "predict must be a function of rows, or a fitted"),
        ({"schema": None}, "Pass data or schema."),
        ({"data": SCHEMA, "schema": SCHEMA}, "Pass data or schema, not both."),
        ({"data": 5}, "data must be a frame, or a mapping of names to columns; got <class 'int'>"),
        ({"data": pl.LazyFrame({"sex": ["f"]})}, "data must be a frame in memory"),
        ({"data": pd.DataFrame({"sex": []})}, "data must be a frame with rows; got none."),
        ({"feature": "gender"}, "feature must be a column of data ('sex', 'income', 'age'"),
        ({"feature": "Sex"}, "feature must be a column of data; got 'Sex'. Did you mean 'sex'?"),
        ({"feature": "age"}, "values must be given if feature has more than 20 values; got"),
        ({"values": ["male"]}, "values must be 2 to 20 different values; got ['male']"),
        ({"values": ["male", "male"]}, "values must be 2 to 20 different values; got"),
        ({"values": "male"}, "values must be a list of values; got 'male'"),
        ({"values": ["male", None]}, "values must be values that are not missing; got"),
        ({"values": ["male", []]}, "values must be values that are not missing; got"),
        (
            {"data": pl.DataFrame({"sex": ["f", "m"]}), "values": [1, 2]},
            "values must be values that its column can have, as those of proxies must be; got 1",
        ),
        ({"proxies": {"title": "Mr"}}, "proxies must be a mapping of columns to a mapping of each"),
        ({"proxies": {"name": {}}}, "proxies must be a column of data"),
        ({"proxies": {"sex": {"male": 1, "female": 2}}}, "proxies must be columns other than"),
        ({"proxies": {"title": {"male": "Mr"}}}, "proxies must be a value of 'title' for each of"),
        ({"n": None}, "n must be given with schema, or half_width; got None"),
        ({"n": 1}, "n must be an integer from 2 to"),
        ({"n": 10**8}, "n must be at most 10,000,000 with schema; got 100000000"),
        ({"data": pd.DataFrame({"sex": ["f", "m"]}), "n": 3}, "n must be at most the 2 rows of"),
        ({"schema": {"sex": []}}, "schema['sex'] must be a list of categories, a range of"),
        ({"schema": {"sex": (3, 3)}}, "schema['sex'] must be a list of categories, a range of"),
        ({"schema": {"sex": ("f", "m")}}, "schema must be a finite number; got 'f'"),
        ({"schema": ["sex"]}, "schema must be a mapping of names to lists, ranges or pairs"),
        ({"half_width": 0.5}, "half_width must be above 0 and below 0.5; got 0.5"),
        ({"half_width": "narrow"}, "half_width must be above 0 and below 0.5; got 'narrow'"),
        ({"batch_size": 0}, "batch_size must be an integer from 1 to"),
        ({"threshold": "high"}, "threshold must be a finite number; got 'high'"),
        ({"threshold": 0.5, "model": lambda rows: ["yes"] * len(rows)}, "predict must be scores"),
        ({"pos_label": "yes"}, "pos_label must be one of the decisions (False, True); got 'yes'"),
        ({"confidence_level": 95}, "confidence_level must be a number strictly between 0 and 1"),
        ({"n_resamples": 5}, "n_resamples must be 'auto' or an integer from 99"),
        ({"rng": -1}, "rng must be an integer"),
        ({"progress": "yes"}, "progress must be True, False or None"),
        ({"cluster": "age"}, "flip_test() got an unexpected keyword argument 'cluster'"),
    ],
)
def test_bad_input_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(fairperm.FairpermError, match=f"^{re.escape(says)}"):
        ask(**given)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_intervals_cover_the_true_share(share: float) -> None:
    """At a fixed size by the binomial distribution, and on paths that stop when it is narrow.

    The negative control looks as often at Clopper and Pearson's interval, until it leaves the true
    share out.
    """
    n = np.arange(201)
    kept = [flips_interval(int(k), 200)[0] <= share <= flips_interval(int(k), 200)[1] for k in n]
    assert stats.binom.pmf(n, 200, share)[kept].sum() >= 0.95
    times, size, covered, peeking = 2000, 20, 0, 0
    rng = np.random.default_rng(7)
    for ups in rng.binomial(size, share, (times, 60)).cumsum(axis=1):
        for look, k in enumerate(ups.tolist(), 1):
            low, high = sequence(k, look * size)
            if high - low <= 0.16:
                break
        covered += low <= share <= high
        ends = (flips_interval(k, look * size) for look, k in enumerate(ups.tolist(), 1))
        peeking += all(low <= share <= high for low, high in ends)
    assert covered >= between(0.95, 1, times)[0]
    assert peeking < between(0.95, 1, times)[0]
