"""Distances between distributions as rows of an audit, and on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm import Audit, audit, distance_test
from fairperm.inference.multiplicity import adjust_pvalues
from tests.support.commands import run
from tests.support.refusals import Refusal, check_wording, each, table
from tests.support.simulations import at_most

RNG = np.random.default_rng(24)
N = 600
GROUP = RNG.choice(["a", "b", "c"], N)
LABEL = (RNG.random(N) < 0.4).astype(int)
DATA: dict[str, Any] = {
    "y": LABEL,
    "s": np.round(1 / (1 + np.exp(-LABEL - RNG.normal(size=N) - 0.8 * (GROUP == "a"))), 2),
    "g": GROUP,
    "sex": RNG.choice(["f", "m"], N),
    "person": np.repeat(np.arange(N // 2), 2),
    "site": RNG.choice(["x", "y"], N),
}
ASKED: dict[str, Any] = {
    "y_true": "y",
    "y_score": "s",
    "data": DATA,
    "sensitive_features": ["g", "sex"],
    "n_resamples": 499,
    "rng": 3,
}


def test_rows_are_those_of_the_distance_test() -> None:
    found = audit(**ASKED, metrics="roc_auc", distances=["ks", "JS_DIVERGENCE_GIVEN_LABEL"])
    names = [row.metric for row in found if row.attribute == "sex"]
    assert names == ["roc_auc", "kolmogorov_smirnov", "jensen_shannon_given_label"]
    for attribute in ("g", "sex"):
        for name, labels in (("ks", None), ("js", "y")):
            alone = distance_test(
                "s",
                sensitive_features=attribute,
                distance=name,
                y_true=labels,
                data=DATA,
                n_resamples=499,
                rng=3,
            )
            metric = f"{alone.distance}{'_given_label' if labels else ''}"
            rows = [row for row in found if (row.attribute, row.metric) == (attribute, metric)]
            assert [(row.groups, row.difference, row.pvalue, row.expected) for row in rows] == [
                (one.groups, one.distance, one.pvalue, one.expected) for one in alone
            ]
    # gaps and distances are one family
    raw = [row.pvalue for row in found]
    adjusted = adjust_pvalues(np.array(raw, float), "holm").tolist()
    assert [row.adjusted_pvalue for row in found] == adjusted
    assert found.n_hypotheses == len(found) == 12


@pytest.mark.parametrize("given", [{"control_features": "site"}, {"sample_weight": "s"}])
def test_strata_and_weights_are_passed_on(given: dict[str, str]) -> None:
    asked = {**ASKED, "data": {**DATA, "s": DATA["s"] + 0.1}, "sensitive_features": "sex", **given}
    (row,) = audit(**asked, distances="ks")
    del asked["y_true"], asked["y_score"]
    alone = distance_test("s", **asked).largest
    assert (row.difference, row.pvalue) == (alone.distance, alone.pvalue)


def test_clusters_of_other_sizes_are_no_disparity() -> None:
    """Independent rows, in 60 clusters of 2 and 300 of 20: 0.97 were called a disparity."""
    rng, found = np.random.default_rng(4), []
    person = np.repeat(np.arange(360), np.repeat([2, 20], [60, 300]))
    for seed in range(12):
        (row,) = audit(
            y_score=rng.random(len(person)),
            sensitive_features=person < 60,
            cluster=person,
            distances="ks",
            n_resamples=99,
            rng=seed,
        )
        found.append(row.verdict)
    assert found.count("disparity") <= at_most(0.05, 12)
    assert row.result is not None
    assert row.result.validity == (
        "Asymptotic, for groups of many clusters, if they have equal distributions of values; "
        "never liberal if those of their clusters are equal too."
    )


@pytest.mark.parametrize(
    "given",
    [{"compare": "rest"}, {"compare": "reference"}, {"compare": "reference", "reference": "a"}],
)
def test_predictions_are_compared_without_scores(given: dict[str, str]) -> None:
    data = {**DATA, "class": np.round(3 * DATA["s"]).astype(str)}
    asked: dict[str, Any] = {"data": data, "sensitive_features": "g", "rng": 3, **given}
    found = audit(y_pred="class", distances="tv", **asked)
    alone = distance_test("class", distance="tv", **asked)
    assert [(row.groups, row.pvalue) for row in found] == [
        (one.groups, one.pvalue) for one in alone
    ]
    assert found.where(metric="tv").rows == found.rows


def test_small_groups_and_strata_without_both_groups_are_not_judged() -> None:
    data = {**DATA, "g": np.where(np.arange(N) < 9, "d", GROUP), "half": np.arange(N) < N // 2}
    asked = {**ASKED, "data": data, "sensitive_features": "g", "distances": "ks"}
    verdicts = {row.groups: (row.verdict, row.reason) for row in audit(**asked)}
    assert verdicts["a", "d"] == ("too small", "'d' has only 9 rows; the minimum is 50.")
    verdicts = {
        row.groups: (row.verdict, row.reason)
        for row in audit(**{**asked, "control_features": np.where(data["g"] == "d", 0, 1)})
    }
    assert "control_features must have a value that rows of both" in verdicts["a", "d"][1]


def test_an_audit_is_written_read_and_reported(tmp_path: Path) -> None:
    found = audit(**ASKED, metrics="roc_auc", distances=["ks", "ks_given_label"])
    again = Audit.from_dict(json.loads(json.dumps(found.to_dict())))
    assert repr(again) == repr(found)
    page = found.to_html(tmp_path / "report.html")
    assert "Kolmogorov–Smirnov distance given the label" in page
    assert "largest difference between the cumulative shares given the label" in page
    assert re.search(r"a distance of 0\.\d+; by chance alone it is 0\.\d+ on average", page)
    assert "distances=[&#39;kolmogorov_smirnov&#39;" in page
    assert "distances_of=" not in page
    assert "Tests of metrics are studentized" in page
    assert "the whole distribution of their scores (<" in page
    assert re.search(r"; given the label, among rows with the same label \(<\w+[^>]*>y<", page)
    options = {**ASKED, "metrics": None, "n_resamples": "auto"}
    alone = audit(**options, distances="ks").to_html()
    assert "drawing stopped where 20" in alone
    assert "No comparison is inconclusive" not in alone  # as those of "sex" are
    assert "For distances between distributions no detectable gap is computed." in alone
    for word in (
        "studentized",
        "weak null",
        "Confidence interval</dt>",
        "Margin</dt>",
        "(in each tail",
    ):
        assert word not in alone  # which has none of them
    assert "Distances between distributions are not divided by a standard error" in alone
    assert "They have no confidence interval: a distance of samples is above 0" in alone
    assert len(found.plot().to_dict()["datasets"])  # of the AUC alone
    row = found.where(metric="ks").rows[0]
    assert (row.gap_name, row.values) == ("a and b", (None, None))
    assert row.interval_text == f"{row.expected:.3f} by chance"
    assert row.interval_text in repr(found)
    assert "distance between a and b is" in repr(row.result)  # without a direction
    cells = row.cells()
    assert cells["difference_low"] is cells["standard_error"] is cells["first_value"] is None


def test_the_note_on_few_draws_counts_tests_of_two_tails_alone() -> None:
    """A distance has one tail: 199 draws are enough for six hypotheses."""
    asked = {**ASKED, "sensitive_features": "g", "n_resamples": 199}
    with pytest.warns(fairperm.FairpermWarning, match="199 resamples is at least 0.01 "):
        found = audit(**asked, metrics="roc_auc", distances="ks")
    assert {row.verdict for row in found.where(metric="ks")} == {"disparity", "inconclusive"}
    assert "3 comparisons might not be called a disparity" in found.notes[0]


def test_the_command_line(tmp_path: Path) -> None:
    lines = zip(*(DATA[name] for name in ("y", "s", "g")), strict=True)
    text = "\n".join(["y,s,g", *(",".join(map(str, line)) for line in lines)])
    (tmp_path / "d.csv").write_text(text)
    columns = ("audit", "d.csv", "--score", "s", "--group", "g", "--resamples", 499, "--seed", 3)
    done = run(*columns, "--distance", "ks", "--json", "-", "--fail-on", "disparity", cwd=tmp_path)
    result = json.loads(done.stdout)["result"]
    expected = audit(
        **{**ASKED, "y_true": None, "sensitive_features": "g"}, distances="ks"
    ).to_dict()
    assert [row["test"]["pvalue"] for row in result["rows"]] == [
        row["test"]["pvalue"] for row in expected["rows"]
    ]
    assert done.returncode == 1
    assert b"disparity: g, kolmogorov_smirnov, a and b, gap 0." in done.stderr
    given = ("--distance", "ks given label", "--label", "y", "--markdown", "-")
    done = run(*columns, *given, "--report", "r.html", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "| g | kolmogorov_smirnov_given_label | a and b | – | 0." in done.stdout.decode()
    assert "--distance &#39;ks given label&#39;" in (tmp_path / "r.html").read_text()
    done = run(*columns, "--distance", "kss", cwd=tmp_path)
    assert done.returncode == 2
    assert b"--distance must be one of" in done.stderr


def test_a_list_of_predictions_is_no_list_of_columns() -> None:
    asked = {**ASKED, "y_true": None, "y_score": None, "y_pred": DATA["site"].tolist()}
    by_name = audit(**{**asked, "y_pred": "site"}, distances="total_variation")
    assert audit(**asked, distances="total_variation").rows[0].pvalue == by_name.rows[0].pvalue


PLAIN: dict[str, Any] = {**ASKED, "distances": "ks"}
REFUSALS = table(
    audit,
    PLAIN,
    globals(),
    """
distances='kss' →
    distances must be one of 'kolmogorov_smirnov', 'wasserstein', 'demographic_parity',
    'total_variation', 'infinity_norm', 'jensen_shannon', 'kullback_leibler',
    'skew'; got 'kss'. Did you mean 'ks'?
y_score=['s', 'y'], metrics='roc_auc_ovr' →
    TypeError: y_score must be one column of scores; got ['s', 'y']. Several, one for each
    class, are
distances=[max] → TypeError: distances must be names of distances
distances=['ks', 'kolmogorov_smirnov'] → distances must be different
n_resamples=0 → n_resamples=0 cannot be used with distances.
alternative='less' →
    alternative must be 'two-sided' for kolmogorov_smirnov; got 'less'. A distance has no
    direction.
margin=0.1 → margin cannot be used with distances alone; it is for metrics.
ratio=0.8 → ratio cannot be used with distances
threshold=0.5 → threshold cannot be used with distances
pos_label=1 → pos_label cannot be used with distances
score_bins=64 → score_bins cannot be used with distances
scheme='within_label' → scheme cannot be used with distances
variance='delta' → variance cannot be used with distances
control_features='site', stratum_weights={'x': 1, 'y': 1} →
    stratum_weights cannot be used with distances.
y_true=None, distances='ks_given_label' →
    TypeError: y_true must be given for kolmogorov_smirnov_given_label
y_score=None → TypeError: distances needs y_score or y_pred
y_score='g' → TypeError: y_score (column 'g') must be made of real numbers
y_score='r', data={**DATA, 'r': RNG.random(N)}, distances='tv' →
    y_score must be made of at most 100 different numbers for total_variation, which takes them
    as categories; got 600. Put them into bins, or use distances='ks'.
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)
