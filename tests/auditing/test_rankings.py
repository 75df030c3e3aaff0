"""Metrics of ranked lists as rows of an audit, and on the command line."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fairperm
from fairperm import Audit, FairpermWarning, audit, ranking_test
from fairperm.hypothesis_tests.results.audits import AuditRow
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.report.rerun import write_call
from tests.support.audits import check_agreement, quietly
from tests.support.commands import run, start
from tests.support.refusals import Refusal, check_wording, each, table
from tests.support.simulations import at_least, at_most

Array = NDArray[Any]


def lists(seed: int, n: int = 90) -> dict[str, Any]:
    """Return lists of 4 to 8 items; every fifth query has no relevant one."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n), rng.integers(4, 9, n))
    country, seller = rng.choice(["at", "ch", "de"], n)[query], rng.choice(["l", "s"], len(query))
    relevant = (rng.random(len(query)) < 0.4) & (query % 5 > 0)
    score = relevant * np.where(country == "at", 0.2, 1.5) + rng.normal(size=len(query))
    return {
        "relevant": relevant.astype(int),
        "score": score - 0.5 * (seller == "s"),
        "query": query,
        "country": country,
        "seller": seller,
        "brand": rng.choice(["x", "y", "z"], len(query)),
        "user": query // 2 * 10 + (country == "at") + 2 * (country == "ch"),
        "site": rng.choice(["p", "q"], n)[query],
    }


DATA = lists(24)
ASKED: dict[str, Any] = {
    "y_true": "relevant",
    "y_score": "score",
    "query": "query",
    "data": DATA,
    "min_group_size": 5,
    "n_resamples": 499,
    "rng": 3,
}
QUALITY = {"sensitive_features": "country", "rankings": ["ndcg@3", "map"]}
ITEMS: dict[str, Any] = {
    "sensitive_features": "seller",
    "rankings": ["exposure", "exposure_per_relevance", "top_k_share", "skew"],
    "k": 3,
}


def ask(**given: Any) -> Audit:
    return quietly(**{**ASKED, **given})


def alone(row: AuditRow, **options: Any) -> fairperm.RankingComparison:
    """Return the comparison by itself."""
    name, _, k = row.metric.partition("@")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        found = ranking_test(
            "relevant",
            score="score",
            query="query",
            sensitive_features=row.attribute,
            metric=name,
            k=int(k or 10),
            data=DATA,
            n_resamples=499,
            rng=3,
            **options,
        )
    gaps = {one.groups: one for one in found if isinstance(one, fairperm.RankingComparison)}
    return gaps[row.groups]


@pytest.mark.parametrize("asked", [QUALITY, ITEMS], ids=["queries", "items"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"control_features": "site", "alternative": "greater"},
        {"cluster": "user", "compare": "rest"},
    ],
    ids=str,
)
def test_rows_are_those_of_the_test_of_rankings(
    asked: dict[str, Any], options: dict[str, Any]
) -> None:
    found = ask(**asked, **options, adjust="bh")
    for row in found:
        assert row.result is not None
        one = alone(row, **options)
        assert row.units == one.design
        same = ("difference", "pvalue", "confidence_interval", "standard_error", "validity")
        assert [getattr(row.result, name) for name in same] == [getattr(one, name) for name in same]
        assert [row.result.counts[group] for group in row.groups] == [*one.counts.values()]
    adjusted = adjust_pvalues(np.array([row.pvalue for row in found], float), "bh")
    assert [row.adjusted_pvalue for row in found] == adjusted.tolist()


def test_rankings_distances_and_metrics_are_one_family() -> None:
    found = ask(**QUALITY, metrics="roc_auc", distances="ks", cluster="user")
    assert [row.metric for row in found][::3] == [
        *("roc_auc", "kolmogorov_smirnov", "ndcg@3", "average_precision"),
    ]
    assert [row.units for row in found] == ["rows"] * 6 + ["queries"] * 6
    assert found.units == "rows"
    adjusted = adjust_pvalues(np.array([row.pvalue for row in found], float), "holm")
    assert [row.adjusted_pvalue for row in found] == adjusted.tolist()
    assert found.n_hypotheses == 12
    at_once = [one.metric for one in found.omnibus if one.result]
    assert at_once == ["ndcg@3", "average_precision"]


@pytest.mark.parametrize("asked", [QUALITY, ITEMS], ids=["queries", "items"])
def test_pvalues_intervals_and_verdicts_agree(asked: dict[str, Any]) -> None:
    verdicts = set()
    for seed in range(12):
        options: dict[str, Any] = {
            "alternative": ("two-sided", "greater", "less", "symmetric")[seed % 4],
            "adjust": ("holm", "bh", None)[seed % 3],
            "margin": (None, 0.03, 0.3)[seed % 3],
            "ratio": 0.8,
        }
        if asked is ITEMS:  # but for skew, a logarithm
            options["ratio"] = dict.fromkeys(("exposure", "exposure_per_relevance"), 0.8)
        found = ask(**asked, **options, data=lists(seed, 60))
        check_agreement(found)
        for row in found:
            assert row.result is not None
            assert row.pvalue is not None
            low, high = row.result.confidence_interval
            assert low <= row.result.difference <= high
            assert (low > 0 or high < 0) == (row.pvalue <= 0.05)
            if row.ratio_interval is not None:
                low, high = row.ratio_interval
                assert (low > 1 or high < 1) == (row.pvalue <= 0.05)
            verdicts |= {row.verdict, row.ratio_verdict}
    assert verdicts >= {"disparity", "equivalent", "inconclusive", "met", "undecided"}


def means_of_lists(data: dict[str, Any], values: Array) -> Array:
    """Return the means of both kinds of sellers in each list that has both."""
    sides = [data["seller"] == one for one in ("l", "s")]
    found = [
        [values[side & (data["query"] == query)].mean() for side in sides]
        for query in np.unique(data["query"])
        if all((side & (data["query"] == query)).any() for side in sides)
    ]
    return np.array(found)


def tail(statistic: float, null: Array) -> float:
    """Return the p-value of a large statistic, at least the normal one."""
    share = (1 + (null >= statistic - 1e-9).sum()) / (1 + len(null))
    return max(float(share), math.erfc(statistic / math.sqrt(2)) / 2)


def excess(values: Array, covariance: Array, bound: float) -> float:
    """Return Fieller's statistic of a ratio above the bound."""
    contrast = np.array([1, -bound])
    return float(contrast @ values / np.sqrt(contrast @ covariance @ contrast))


def test_margins_and_ratios_of_items_by_hand() -> None:
    position = np.empty(len(DATA["query"]))
    for query in np.unique(DATA["query"]):
        mine = np.flatnonzero(DATA["query"] == query)
        position[mine[np.argsort(-DATA["score"][mine])]] = np.arange(1, len(mine) + 1)
    exposure = means_of_lists(DATA, 1 / np.log2(position + 1))
    relevance = means_of_lists(DATA, DATA["relevant"])
    value = exposure.mean(axis=0) / relevance.mean(axis=0)
    influences = {
        "exposure": exposure - exposure.mean(axis=0),
        "exposure_per_relevance": (exposure - value * relevance) / relevance.mean(axis=0),
    }
    found = ask(**ITEMS, margin=0.02, ratio=dict.fromkeys(influences, 0.85), adjust=None)
    for name, influence in influences.items():
        (row,) = found.where(metric=name)
        result = row.result
        assert result is not None
        covariance = np.cov(influence.T) / len(influence)
        errors = [result.standard_errors[group] for group in row.groups]
        assert errors == pytest.approx(np.sqrt(np.diag(covariance)))
        assert result.standard_error**2 == pytest.approx(np.array([1, -1]) @ covariance @ [1, -1])
        values = exposure.mean(axis=0) if name == "exposure" else value
        assert [result.values[group] for group in row.groups] == pytest.approx(values)
        null, gap, error = result.null_distribution, result.difference, result.standard_error
        beyond = [tail((gap - 0.02) / error, null), tail((-gap - 0.02) / error, -null)]
        within = [tail((gap + 0.02) / error, null), tail((0.02 - gap) / error, -null)]
        assert row.exceedance_pvalue == pytest.approx(max(2 * min(beyond), result.pvalue))
        assert row.equivalence_pvalue == pytest.approx(max(within))
        met = [tail(excess(values, covariance, 0.85), null)]
        met.append(tail(-excess(values, covariance, 1 / 0.85), -null))
        assert row.adjusted_ratio_equivalence_pvalue == pytest.approx(max(met))


def test_small_groups_and_undefined_values_are_not_judged() -> None:
    few = ask(**QUALITY, min_group_size=30)
    reasons = {row.groups: row.reason for row in few if row.metric == "ndcg@3"}
    assert "'at' has only 2" in reasons["at", "ch"]
    assert reasons["at", "ch"].endswith(" queries; the minimum is 30.")
    (row,) = ask(**ITEMS | {"rankings": "exposure"}, min_group_size=500)
    n = alone(row).counts["l"]["queries"]
    assert row.reason == f"only {n} queries with items of both groups; the minimum is 500."
    assert row.result is not None
    (row,) = ask(**ITEMS | {"rankings": "exposure"}, min_group_size=500, cluster="user")
    assert "effective clusters with items of both groups" in row.reason
    (row,) = ask(**ITEMS | {"rankings": "exposure"}, min_group_size=500, group_size_by="rows")
    assert row.reason.startswith("'l' has only")
    assert "items and 's' has only" in row.reason
    none = {**DATA, "relevant": np.where(DATA["country"] == "at", 0, DATA["relevant"])}
    row = ask(**QUALITY, data=none).rows[0]
    assert (row.verdict, row.result) == ("too small", None)
    assert row.reason == "y_true must be above 0 for some item of group 'at'; got 'none'."
    apart = {**DATA, "brand": np.where(DATA["query"] % 2, "x", DATA["brand"])}
    apart["brand"] = np.where(
        (DATA["query"] % 2 == 0) & (DATA["brand"] == "x"), "y", apart["brand"]
    )
    apart["brand"][DATA["query"] == 1] = "w"
    apart["brand"][0] = "w"
    rows = ask(**ITEMS | {"rankings": "exposure", "sensitive_features": "brand"}, data=apart).rows
    undefined = {row.groups: row.reason for row in rows if row.result is None}
    assert undefined["w", "x"] == (
        "sensitive_features must vary within a query for exposure, which compares items of one "
        "list; got no query with items of 'w', 'x' in 'brand'."
    )


def test_an_audit_is_written_read_and_reported() -> None:
    found = {name: ask(**asked) for name, asked in (("queries", QUALITY), ("items", ITEMS))}
    pages = {}
    for name, one in found.items():
        again = Audit.from_dict(json.loads(json.dumps(one.to_dict())))
        assert repr(again) == repr(one)
        assert {row.units for row in again} == {group.units for group in again.groups} == {name}
        namespace: dict[str, Any] = {"data": DATA}
        code = write_call(one).replace("fairperm.audit(", "found = fairperm.audit(")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)
            exec(code, namespace)  # noqa: S102
        assert repr(namespace["found"]) == repr(one)
        assert set(one.to_frame()["units"]) == {name}
        assert len(one.plot().to_dict()["datasets"])
        pages[name] = one.to_html()
        text = re.sub("<(script|style)[^>]*>.*?</(script|style)>", "", pages[name], flags=re.S)
        assert not re.search("people|person|rows of|its rows|predict|percentage", text)
    assert len(found["queries"].where(metric="ndcg")) == len(found["queries"].where(metric="map"))
    assert len(found["items"].where(metric="skew@3")) == len(found["items"].where(metric="skew"))
    assert "fewer than 5 relevant queries" in repr(found["queries"])
    assert "fewer than 5 queries with items of both groups" in repr(found["items"])
    assert "21 queries have no relevant item, and no ndcg: left out." in repr(found["queries"])
    for text in (
        "90 queries used, 0 items left out for missing values.",
        "Group labels were exchanged among all queries of both groups.",
        "normalized discounted cumulative gain of the top 3; the mean over queries",
        "mean precision at the relevant items of the whole list",  # not that of rows
        "Each query has one value",
        "may have too few queries",
    ):
        assert text in pages["queries"]
    for text in (
        f"{len(DATA['query']):,} items used, 0 left out for missing values.",
        "Group labels were exchanged among the items of each list.",
        "with items of both groups.",
        "the items of each list could exchange their groups",
    ):
        assert text in pages["items"]
    assert "It cannot show whether the relevance is right, what causes" in pages["queries"]
    without = ask(**ITEMS | {"rankings": "exposure"}).to_html()
    assert "It cannot show what causes a gap" in without
    assert "relevance is right" not in without
    assert "90 queries" in found["queries"].to_html(short=True)
    within = ask(**ITEMS, control_features="site").to_html()
    assert "exchanged within each stratum, among the items of each list." in within
    assert "the items of each stratum of a list could exchange their groups" in within
    assert "Each gap is the value of the first group minus" in within
    mixed = ask(**QUALITY, metrics="roc_auc", cluster="user").to_html()
    assert "In rankings, each query has one value" in mixed
    assert "clusters are compared, not rows" in mixed


def test_margins_by_names_of_rankings() -> None:
    found = ask(**QUALITY, margin={"ndcg": 0.1, "average_precision": 0.2})
    assert {row.metric: row.margin for row in found} == {"ndcg@3": 0.1, "average_precision": 0.2}
    both = ask(**ITEMS | {"rankings": ["skew", "skew@2"]}, margin={"skew": 0.1}, metrics=None)
    assert [(row.metric, row.margin) for row in both] == [("skew@3", 0.1), ("skew@2", 0.1)]
    assert both.n_hypotheses == 2


def test_the_normal_limit_and_weights_of_strata_are_for_queries() -> None:
    found = ask(**QUALITY, n_resamples=0)
    assert {row.result.n_resamples for row in found if row.result} == {0}
    weights = {"p": 1, "q": 3}
    found = ask(**QUALITY, control_features="site", stratum_weights=weights)
    assert {row.result.n_strata for row in found if row.result} == {2}
    users = np.asarray(DATA["query"]) // 2
    split = ask(**QUALITY, cluster=users, split_clusters=True)
    assert any("clusters have rows of several groups" in note for note in split.notes)


def test_the_command_line(tmp_path: Path) -> None:
    names = ("relevant", "score", "query", "country", "seller")
    lines = zip(*(DATA[name] for name in names), strict=True)
    text = "\n".join([",".join(names), *(",".join(map(str, line)) for line in lines)])
    (tmp_path / "d.csv").write_text(text)
    columns = ("audit", "d.csv", "--label", "relevant", "--score", "score", "--query", "query")
    options = ("--min-group-size", 5, "--resamples", 499, "--seed", 3, "--quiet")
    asked = ("--ranking", "ndcg", "--ranking", "map", "--k", 3, "--group", "country")
    done = start(*columns, *options, *asked, "--json", "-", "--fail-on", "disparity", cwd=tmp_path)
    result = json.loads(done.stdout)["result"]
    expected = ask(**QUALITY).to_dict()
    assert result["rows"] == json.loads(json.dumps(expected["rows"]))
    assert done.returncode == 1
    assert b"disparity: country, ndcg@3, at \xe2\x88\x92 de, gap" in done.stderr
    (tmp_path / "c.toml").write_text('ranking = ["exposure", "skew"]\nk = 3\ngroup = "seller"\n')
    files = ("--csv", "-", "--report", "r.html")
    done = run(*columns, *options, *files, "--config", "c.toml", cwd=tmp_path)
    assert done.returncode == 0
    assert b"\nseller,skew@3,l," in done.stdout
    page = (tmp_path / "r.html").read_text()
    assert "--ranking exposure --ranking skew" in page
    assert "was not tested over all thresholds" not in page
    for given, said in {
        ("--ranking", "ndgc"): b"--ranking must be one of",
        ("--ranking", "ndkl"): b"use `fairperm ranking` with --metric ndkl.",
        ("--ranking", "ndcg", "--pos-label", "1"): b"--pos-label cannot be used with --ranking",
        ("--ranking", "mrr@2", "--score", "relevant"): b"Pass minus the position as --score",
        ("--ranking", "map", "--label", "score"): b"--label must be not negative",
    }.items():
        others = {"--label": "relevant", "--score": "score", "--query": "query"}
        others |= dict(zip(given[::2], given[1::2], strict=True))
        words = [word for option in others.items() for word in option]
        done = run("audit", "d.csv", *options, "--group", "country", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr


LATTER = {"rankings": "exposure", "sensitive_features": "seller"}
PLAIN: dict[str, Any] = {**ASKED, "sensitive_features": "country", "rankings": "ndcg", "k": 4}
REFUSALS = table(
    audit,
    PLAIN,
    globals(),
    """
rankings='ndgc' →
    rankings must be one of 'ndcg', 'precision', 'recall', 'average_precision',
    'reciprocal_rank', 'hit_rate', 'exposure', 'exposure_per_relevance' and 3 more; got 'ndgc'.
    Did you mean 'ndcg'?
rankings=[max] → TypeError: rankings must be names of metrics of rankings
**LATTER, rankings='skew', ratio=0.8 →
    ratio must be left out for skew@4; got 0.8. It is a logarithm; use margin
rankings=['ndcg', 'ndkl'] →
    rankings must be metrics with a gap between two groups; got 'ndkl'. It compares all groups
    at once: use ranking_test() with metric='ndkl'.
rankings=['ndcg', 'ndcg@4'] → rankings must be different metrics; got 'ndcg@4'.
rankings=['ndcg', 'exposure'] →
    rankings must be metrics of queries or of items, not both; got ['ndcg@4', 'exposure'].
rankings='ndcg@0' → rankings must be ndcg@ and a number of items from 1
rankings=f"ndcg@{'9' * 5000}" → rankings must be ndcg@ and a number
y_true=np.where(DATA['relevant'], 'yes', 'no'), pos_label='yes' →
    pos_label cannot be used with rankings: y_true is the relevance of items, which must be
    numbers
metrics='ndcg', cluster='query' →
    metrics must be one that metric_names() lists; got 'ndcg'. It is a metric of rankings: pass
    rankings='ndcg' to aud
rankings='map@3' → rankings must be average_precision without '@'
k=2.5 → TypeError: k must be an integer
k=9 → k must be at most the longest list (8 items); got 9.
rankings=None → query needs rankings.
query=None → TypeError: rankings needs query: the queries whose lists
y_score=None → TypeError: rankings needs y_score: the scores by which
y_true=None → TypeError: y_true must be given for ndcg
y_true='score' → y_true must be not negative
y_true=DATA['relevant'] * 2, rankings='map' →
    y_true must be 0 or 1 for average_precision; got 2.0. Graded relevance needs
    rankings='ndcg'.
y_score='relevant', rankings='mrr' →
    y_score must be made of different numbers within a query for reciprocal_rank; got equal
    scores. Pass minus the position as y_score to say
y_score='seller' → TypeError: y_score (column 'seller') must be made of real numbers
query=[None, *DATA['query'][1:]] → query has 1 missing value
sensitive_features=['country', 'seller'] →
    sensitive_features must be the same for all items of a query for ndcg, which compares
    queries; got query 0 with several in 'seller'. To compare kinds of items within lists, use
    rankings='exposure'.
**LATTER, sensitive_features=['seller', 'country'] →
    UndefinedMetricError: sensitive_features must vary within a query for exposure, which
    compares items of one list; got no query with items of several groups in 'country'.
cluster='seller' → cluster must be the same for all items of a
metrics='roc_auc' → 'roc_auc' cannot be tested beside rankings without cluster
distances='ks' → 'kolmogorov_smirnov' cannot be tested beside rankings
**LATTER, metrics='roc_auc', cluster='query' →
    metrics cannot be used with rankings='exposure', which compares items of one list.
**LATTER, distances='ks', cluster='query' →
    distances cannot be used with rankings='exposure', which compares items of one list.
metrics='average_precision', rankings='map', cluster='user' →
    metrics must be named unlike the rankings; got 'average_precision'.
matched='user' → matched cannot be used with rankings.
sample_weight='query' → sample_weight cannot be used with rankings.
y_score_new='score' → y_score_new cannot be used with rankings.
**LATTER, n_resamples=0 → n_resamples=0 cannot be used with rankings='exposure'
**LATTER, variance=None → variance cannot be used with rankings='exposure'
**LATTER, scheme='pooled' → scheme cannot be used with rankings='exposure'
**LATTER, control_features='site', stratum_weights={'p': 1, 'q': 1} →
    stratum_weights cannot be used with rankings='exposure'
margin=2 → margin must be below 1 for ndcg@4; got 2.
margin={'skew': 0.1} → margin must be given for metrics of the audit
min_group_size=0 → min_group_size must be an integer from 1
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)


# Levels at a margin.

DATA_SETS = 200
SECOND = 1 / np.log2(3)  # the exposure of the second place
TRUE_GAP = 0.5 * (1 - SECOND)
TRUE_RATIO = (0.25 + 0.75 * SECOND) / (0.75 + 0.25 * SECOND)


def pairs_of_items(rng: np.random.Generator) -> dict[str, Any]:
    """Return lists of two items of users who see group a first always, or every other time."""
    user = np.repeat(np.arange(40), rng.integers(1, 9, 40))
    first = rng.random(len(user)) < np.where(rng.random(40) < 0.5, 1.0, 0.5)[user]
    return {
        "query": np.repeat(np.arange(len(user)), 2),
        "user": np.repeat(user, 2),
        "group": np.tile(["a", "b"], len(user)),
        "score": np.column_stack([first, ~first]).ravel().astype(float),
    }


@pytest.mark.validate
def test_level_at_a_margin_of_items() -> None:
    """A gap at the margin, or a ratio at its bound, is rarely called beyond or within it.

    It often is if clusters are not given.
    """
    rng = np.random.default_rng(5)
    found = np.zeros((2, 4), int)
    for seed in range(DATA_SETS):
        data = pairs_of_items(rng)
        for place, cluster in enumerate(("user", None)):
            (row,) = quietly(
                y_score="score",
                query="query",
                sensitive_features="group",
                rankings="exposure",
                data=data,
                cluster=cluster,
                margin=TRUE_GAP,
                ratio=TRUE_RATIO,
                min_group_size=5,
                n_resamples=199,
                rng=seed,
            )
            pvalues = (
                *(row.exceedance_pvalue, row.equivalence_pvalue),
                *(row.adjusted_ratio_exceedance_pvalue, row.adjusted_ratio_equivalence_pvalue),
            )
            found[place] += np.array(pvalues, float) <= 0.05
    assert (found[0, ::2] <= at_most(0.05, DATA_SETS)).all()
    assert (found[0, 1::2] <= at_most(0.05, DATA_SETS)).all()
    assert (found[1, :2] + found[1, 2:] > at_least(0.15, DATA_SETS)).all()
