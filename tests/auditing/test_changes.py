"""Audits of two models: verdicts follow from tests, and no two numbers contradict each other."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pytest

import fairperm
from fairperm import (
    FairpermWarning,
    InputError,
    InputTypeError,
    audit,
    compare_models,
    equivalence_test,
)
from fairperm.auditing.changes import add_changes
from fairperm.auditing.comparisons import Settings, compare_pairs, make_pairs
from fairperm.auditing.markdown import as_markdown
from fairperm.auditing.questions import Question
from fairperm.auditing.verdicts import judge_pairs
from fairperm.cli.terminal import write_message
from fairperm.data.sample import Sample
from fairperm.engines.resampling.blocks import Resampling
from fairperm.metrics import get_metric
from tests.support.audits import quietly
from tests.support.commands import run
from tests.support.simulations import at_least, at_most

if TYPE_CHECKING:
    from pathlib import Path

    from fairperm.hypothesis_tests.results.changes import GapChange

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* shows? how the change", "ignore:.*is zero in this", "ignore:.*(has|have) notes"
)

# Rows that neither model selects, the new one alone, the old one alone, and both.
Cells = tuple[int, int, int, int]


def models(*groups: Cells) -> dict[str, Any]:
    """Return the decisions of two models for groups 0, 1, … with these cells."""
    counts = np.array(groups)
    cell = np.tile(np.arange(4), len(groups)).repeat(counts.ravel())
    return {
        "y_pred": cell >= 2,
        "y_pred_new": cell % 2 == 1,
        "sensitive_features": np.arange(len(groups)).repeat(counts.sum(axis=1)),
        "rng": 1,
        "n_resamples": 499,
    }


def one_change(*groups: Cells, **options: Any) -> GapChange:
    (row,) = quietly(**models(*groups), metrics="selection_rate", **options)
    assert row.change is not None
    return row.change


LARGE = (500, 10, 200, 290), (700, 10, 10, 280)  # +0.20 to +0.01
FEW_CHANGED = (30, 3, 0, 27), (1600, 0, 0, 400)  # by 0.05, which 6 rows would have made 0.10
SMALLER = (500, 10, 100, 390), (700, 10, 10, 280)  # +0.20 to +0.11


@pytest.mark.parametrize(
    ("groups", "margin", "verdict", "reason"),
    [
        (LARGE, None, "narrowed", r"^shown to be smaller with the new model \(adjusted p = 0.004"),
        (
            LARGE,
            0.06,
            "closed",
            r"^shown to be smaller, and now smaller than 6.0 points \(adjusted p = ",
        ),
        (SMALLER, 0.05, "narrowed", "^shown to be smaller with the new model"),
        (
            SMALLER,
            0.12,
            "unchanged within margin",
            r"^shown to change by less than 12.0 points \(adjusted",
        ),
        (
            ((500, 110, 10, 380), (700, 10, 10, 280)),  # +0.10 to +0.20
            None,
            "widened",
            "^shown to be larger with the new model",
        ),
        (
            ((450, 20, 120, 410), (550, 20, 20, 410)),  # +0.10 to 0, and the mean is not 0
            None,
            "narrowed",
            "shown to be smaller",
        ),
        (
            ((450, 10, 110, 430), (500, 10, 10, 480)),  # +0.05 to −0.05: changed sides
            None,
            "changed",
            r"^the gap changed by more than chance explains \(adjusted p = .*is undecided",
        ),
        (LARGE[:1] * 2, None, "inconclusive", "^not decided: chance could explain this change"),
        (
            ((500, 0, 0, 500), (700, 0, 0, 300)),
            None,
            "inconclusive",
            "^not decided: the standard error of the change is zero in this sample, which",
        ),
        (
            ((500, 0, 0, 500), (700, 0, 0, 300)),
            0.2,
            "unchanged within margin",  # three rows in a thousand might have changed
            "^shown to change by less than 20.0 points",
        ),
        (FEW_CHANGED, 0.1, "widened", "^shown to be larger with the new model"),
        (((20, 1, 9, 15), LARGE[1]), None, "too small", "has only 45 rows; the minimum is 50"),
    ],
)
def test_verdicts(groups: tuple[Cells, Cells], margin: float, verdict: str, reason: str) -> None:
    change = one_change(*groups, margin=margin)
    assert change.verdict == verdict
    assert re.search(reason, change.reason), change.reason


def people(n: int = 900) -> dict[str, Any]:
    """Return rows with labels, and scores and decisions of two models that mostly agree."""
    rng = np.random.default_rng(3)
    group = rng.choice(["a", "b", "c"], n)
    label = rng.random(n) < np.where(group == "a", 0.6, 0.4)
    old = np.round(1 / (1 + np.exp(-rng.normal(label - 0.5 * (group == "a"), 1))), 2)
    new = np.round(np.clip(old + 0.1 * (group == "a") + rng.normal(0, 0.05, n), 0, 1), 2)
    rows = {"label": label, "group": group, "old": old, "new": new}
    return {**rows, "old_decision": old > 0.5, "new_decision": new > 0.5}


ROWS = people()
OF_BOTH: dict[str, Any] = {"y_score": ROWS["old"], "y_score_new": ROWS["new"], "threshold": 0.5}
LABELS: dict[str, Any] = {"y_true": ROWS["label"], "sensitive_features": ROWS["group"]}
DRAWN: dict[str, Any] = {"n_resamples": 199, "rng": 5}


@pytest.fixture(scope="module")
def audited() -> fairperm.Audit:
    metrics = ["selection_rate", "tpr", "precision", "brier_score", "equalized_odds"]
    margins = {"selection_rate": 0.1, "brier_score": 0.2}
    return quietly(**LABELS, **OF_BOTH, **DRAWN, metrics=metrics, margin=margins)


def test_each_change_is_that_of_compare_models(audited: fairperm.Audit) -> None:
    for row in audited:
        assert row.change is not None
        alone = compare_models(**LABELS, **OF_BOTH, **DRAWN, metric=row.metric, groups=row.groups)
        assert row.change.result is not None
        assert row.change.result.to_dict() == alone.to_dict()


def test_the_new_model_has_the_verdicts_of_its_own_audit(audited: fairperm.Audit) -> None:
    given = {"metrics": audited.settings["metrics"], "margin": audited.settings["margin"]}
    alone = quietly(**LABELS, **DRAWN, **given, y_score=ROWS["new"], threshold=0.5)
    found = [row.change for row in audited if row.change is not None]
    assert [one.verdict_new for one in found] == [row.verdict for row in alone]
    expected = [row.adjusted_pvalue for row in alone]
    assert [one.adjusted_pvalue_new for one in found] == pytest.approx(expected)
    assert {one.verdict_new for one in found} >= {"disparity", "inconclusive"}


def test_the_size_is_shown_by_the_change_and_by_the_sum(audited: fairperm.Audit) -> None:
    (row,) = (one for one in audited.where(metric="brier_score") if one.groups == ("a", "b"))
    assert row.change is not None
    errors = ((ROWS[one] - ROWS["label"]) ** 2 for one in ("old", "new"))
    summed = fairperm.permutation_test(
        y_score=sum(errors),
        sensitive_features=ROWS["group"],
        groups=("a", "b"),
        metric="mean_score",
        **DRAWN,
    )
    assert summed.difference == pytest.approx(sum(row.change.gaps))
    assert row.change.pvalue is not None
    assert row.change.size_pvalue == max(row.change.pvalue, summed.pvalue)


def test_no_two_numbers_contradict_each_other(audited: fairperm.Audit) -> None:
    rng = np.random.default_rng(8)
    for trial in range(6):
        cells = rng.multinomial(rng.integers(80, 600), rng.dirichlet([3, 1, 1, 3], 3))
        given = models(*map(tuple, cells.tolist()))
        adjust = ("holm", "bh", None)[trial % 3]
        found = quietly(**given, metrics="selection_rate", margin=0.1, adjust=adjust)
        for row in found:
            change = row.change
            assert change is not None
            assert change.adjusted_interval is not None
            assert change.adjusted_pvalue is not None
            assert change.adjusted_size_pvalue is not None
            assert change.adjusted_closing_pvalue is not None
            assert change.adjusted_equivalence_pvalue is not None
            low, high = change.adjusted_interval
            old, new = change.gaps
            is_changed, is_sized = change.adjusted_pvalue <= 0.05, change.verdict in SIZED
            assert is_changed == (not low <= 0 <= high)
            assert (change.adjusted_equivalence_pvalue <= 0.05) == (-0.1 < low <= high < 0.1)
            assert change.adjusted_pvalue <= change.adjusted_size_pvalue
            assert change.adjusted_size_pvalue <= change.adjusted_closing_pvalue
            if is_sized:
                assert is_changed
                assert (abs(new) < abs(old)) == (change.verdict != "widened")
    assert {row.change.verdict for row in audited if row.change} >= {"inconclusive"}


SIZED = {"closed", "narrowed", "widened"}


def test_swapping_the_models_swaps_narrowed_and_widened() -> None:
    here = one_change(*LARGE)
    back = one_change(*((a, c, b, d) for a, b, c, d in LARGE))
    assert (here.verdict, back.verdict) == ("narrowed", "widened")
    assert here.adjusted_size_pvalue == back.adjusted_size_pvalue
    assert here.gaps == back.gaps[::-1]


def test_an_undefined_new_value_is_too_small_to_judge() -> None:
    rows = models((40, 0, 60, 0), (40, 0, 40, 60))
    rows["y_true"] = np.arange(len(rows["y_pred"])) % 2
    (row,) = quietly(**rows, metrics="precision", min_group_size=20)
    assert row.verdict != "too small"
    assert row.change is not None
    assert row.change.verdict == "too small"
    assert row.change.reason.startswith("metric must be defined in every group")


@pytest.mark.parametrize(
    ("first", "second", "few"),
    [
        ((100, 100, 100, 100), (130, 20, 250, 0), "20 predicted positives"),
        ((100, 400, 100, 100), (130, 20, 250, 0), "20 predicted positives"),  # models are swapped
        ((100, 100, 100, 100), (300, 1, 100, 0), "1 predicted positive"),
    ],
)
def test_the_reason_names_the_model_with_few_rows(first: Cells, second: Cells, few: str) -> None:
    rows = models(first, second)
    rows["y_true"] = np.arange(len(rows["y_pred"])) % 2
    (row,) = quietly(**rows, metrics="precision")
    assert row.change is not None
    reason = f"group 1 has only {few} with the new model; the minimum is 50."
    assert row.change.reason == reason


def test_complements_with_margins_of_their_own_are_closed_only_if_shown_to_be_smaller() -> None:
    # p = 0.03 is 0.045 for 3 hypotheses of which 2 are shown, and 0.06 for 2 of which 1 is shown
    changed = models((200, 40, 75, 100), (200, 40, 40, 20))
    alike = models((100, 10, 10, 100), (100, 10, 10, 100))
    names = ("y_pred", "y_pred_new", "sensitive_features")
    rows: dict[str, Any] = {one: np.append(changed[one], alike[one]) for one in names}
    rows["y_true"] = np.repeat([0, 1], [len(changed["y_pred"]), len(alike["y_pred"])])
    margins = {"fpr": 0.27, "tnr": 0.28}
    given = {"metrics": ["fpr", "tnr", "tpr"], "margin": margins, "adjust": "bh", "n_resamples": 0}
    for row in list(quietly(**rows, **given))[:2]:
        assert row.change is not None
        assert row.change.closing_pvalue == pytest.approx(0.0316, abs=1e-4)
        assert row.change.adjusted_closing_pvalue == row.change.adjusted_size_pvalue
        assert row.change.verdict != "closed"


def test_a_gap_is_closed_by_the_new_gap_that_is_shown() -> None:
    # by rows the new gap is −0.2; by predicted positives it is −0.004, within the margin
    cells = [(0, 0, 0), (1, 1, 0), (0, 1, 0), (1, 0, 1), (0, 0, 1)]  # label, old and new decision
    counts = np.array(
        [
            [3880, 10, 90, 10, 10],
            [3880, 90, 10, 18, 2],
            [0, 300, 1700, 1000, 1000],
            [0, 1700, 300, 1000, 1000],
            [9, 9, 9, 9, 9],  # a stratum of one group
        ]
    )
    label, old, new = np.tile(cells, (5, 1)).repeat(counts.ravel(), axis=0).T
    block = np.arange(5).repeat(counts.sum(axis=1))
    strata = 2 - block // 2
    rows: dict[str, Any] = {
        "y_true": label,
        "y_pred": old,
        "y_pred_new": new,
        "sensitive_features": block % 2,
    }
    options = {"margin": 0.1, "min_group_size": 10, "n_resamples": 199, "rng": 1}
    found = quietly(**rows, control_features=strata, metrics=["ppv", "tpr"], **options)
    change = found.rows[0].change
    assert change is not None
    assert change.gaps == pytest.approx((-0.75, -0.2))
    rows["y_pred"] = rows.pop("y_pred_new")
    drawn: dict[str, Any] = {
        "margin": 0.1,
        "n_resamples": 199,
        "rng": 1,
        "stratum_weights": {0: 0, 1: 1, 2: 1},
    }
    within = equivalence_test(**rows, control_features=strata, metric="ppv", **drawn)
    assert change.closing_pvalue == within.pvalue
    assert change.verdict == "narrowed"
    assert any(one.startswith("The change of 1 gap starts from another") for one in found.notes)


def test_a_claim_that_few_rows_cannot_bear_does_not_silence_a_gate(tmp_path: Path) -> None:
    change, path = one_change(*FEW_CHANGED, margin=0.1), tmp_path / "rows.csv"
    assert change.adjusted_equivalence_pvalue is not None
    assert change.adjusted_equivalence_pvalue > 0.05
    assert change.adjusted_interval is not None
    assert change.adjusted_interval[1] >= 0.1  # not within the margin, either
    rows = models(*FEW_CHANGED)
    names = ("y_pred", "y_pred_new", "sensitive_features")
    pl.DataFrame({name: rows[name] for name in names}).write_csv(path)
    given = ("--prediction", "y_pred", "--prediction-new", "y_pred_new", "--resamples", 499)
    options = ("--group", "sensitive_features", "--margin", 0.1, "--fail-on", "widened", "-q")
    assert run("compare", path, *given, *options, "--metric", "selection_rate").returncode == 1


@pytest.mark.parametrize(("n_changed", "few"), [(6, "only about 6 rows"), (0, "no row")])
def test_why_no_claim_is_made_on_a_margin(n_changed: int, few: str) -> None:
    # predictive values: the models disagree on so many predicted positives of the first group
    label = np.tile([0, 1], 1000)
    old = np.ones(2000, bool)
    new = old.copy()
    new[1 : 2 * n_changed : 2] = False
    new[600::9] = False
    group = np.repeat(["a", "b"], [400, 1600])
    found = quietly(
        y_true=label, y_pred=old, y_pred_new=new, sensitive_features=group,
        metrics=["ppv", "selection_rate"], margin=0.4, rng=1, n_resamples=199,
    )  # fmt: skip
    silent, claimed = (row.change for row in found)
    assert silent is not None
    assert claimed is not None
    assert silent.equivalence_pvalue == silent.adjusted_equivalence_pvalue == 1
    assert silent.verdict != "unchanged within margin"
    says = rf"by less than 40.0 points is not tested: {few} of group 'a' shows? how"
    assert re.search(says, silent.reason), silent.reason
    if silent.adjusted_interval is not None:
        assert max(map(abs, silent.adjusted_interval)) >= 0.4
    assert claimed.verdict == "unchanged within margin"
    assert "not tested" not in claimed.reason
    assert "(Tango, 1998), joined by MOVER" in found.to_html()


def test_a_gate_of_several_gaps_at_once_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    pl.DataFrame(ROWS).write_csv(path)
    given = ("--label", "label", "--prediction", "new_decision", "--prediction-new", "old_decision")
    options = ("--group", "group", "--metric", "equalized_odds", "--resamples", 99)
    done = run("compare", path, *given, *options, "--fail-on", "widened")
    assert done.returncode == 2
    assert b"--fail-on widened cannot be evaluated for equalized_odds" in done.stderr
    assert run("compare", path, *given, *options, "--fail-on", "inconclusive").returncode in {0, 1}


def test_a_gap_that_was_equivalent_is_not_closed() -> None:
    # from +0.02 to −0.00, both within the margin
    change = one_change((60_000, 100, 2_100, 37_800), (62_000, 100, 100, 37_800), margin=0.1)
    assert change.adjusted_closing_pvalue is not None
    assert change.adjusted_closing_pvalue <= 0.05
    assert change.verdict == "unchanged within margin"


def test_json_frame_metrics_and_text(audited: fairperm.Audit) -> None:
    back = fairperm.Audit.from_dict(json.loads(json.dumps(audited.to_dict())))
    assert back.to_dict() == audited.to_dict()
    assert repr(back) == repr(audited)
    frame = audited.to_frame("pandas")
    assert list(frame["change_verdict"]) == [row.change.verdict for row in audited if row.change]
    assert np.allclose(frame["gap_new"].dropna() - frame["gap_old"].dropna(), frame["change"][:12])
    tracked = audited.to_metrics()
    assert tracked["sensitive_features/selection_rate/a vs b/change"] == frame["change"][0]
    assert tracked["changes/inconclusive"] == (frame["change_verdict"] == "inconclusive").sum()
    assert " of 15 gaps changed " in repr(audited)
    assert "first_value_new" not in quietly(**LABELS, y_score=ROWS["old"]).to_frame("pandas")


@pytest.mark.validate  # a file is a relation of DuckDB: the test of the command is quicker
@pytest.mark.parametrize("lazy", [lambda: pl.DataFrame(ROWS).lazy(), lambda: _in_duckdb()])
def test_counts_of_a_lazy_frame_give_the_same_changes(lazy: Any) -> None:
    names = {"y_true": "label", "sensitive_features": "group", "metrics": ["tpr", "precision"]}
    decided = {"y_pred": "old_decision", "y_pred_new": "new_decision", **DRAWN}
    eager, counted = (quietly(data=one, **names, **decided) for one in (ROWS, lazy()))
    assert counted.to_dict()["rows"] == eager.to_dict()["rows"]


def _in_duckdb() -> Any:
    rows = pl.DataFrame(ROWS).to_arrow()  # noqa: F841 (DuckDB finds it by its name)
    return duckdb.sql("SELECT * FROM rows")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"alternative": "less"},
            "alternative must be 'two-sided' or 'symmetric' with y_score_new",
        ),
        ({"score_bins": 5}, "score_bins cannot be used with y_score_new"),
        ({"y_score_new": None, "threshold_new": 0.5}, "threshold_new needs y_score_new"),
        ({"y_score_new": None, "y_pred_new": ROWS["new"] > 0.5}, "y_score_new must be given for"),
        ({"y_score_new": ROWS["new"][:-1]}, "y_score_new must be as long as y_true"),
        ({"distances": "wasserstein"}, "y_score_new cannot be used with distances"),
        ({"scheme": "denominator"}, "scheme must"),
        ({"variance": "score"}, "variance must"),
    ],
)
def test_bad_arguments(given: dict[str, Any], says: str) -> None:
    call = {**LABELS, **OF_BOTH, **DRAWN, "metrics": "roc_auc", **given}
    with pytest.raises((InputError, InputTypeError), match=says):
        audit(**call)


@pytest.mark.parametrize(
    ("n_changed", "note"),
    [(8, "Only about 8 rows of group 0 show how the change"), (0, "is zero in this sample")],
)
def test_notes_of_changes_are_notes_of_the_audit(n_changed: int, note: str) -> None:
    rows = models((600, 0, n_changed, 400 - n_changed), (800, 0, 0, 200))
    found = quietly(**rows, metrics="selection_rate")
    (change,) = (row.change for row in found)
    assert change is not None
    assert found.notes[0].startswith("1 change has notes, in the rows' change.result.notes.")
    assert note in found.to_html()
    assert "Note: 1 change has notes, in --json and --report. " in as_markdown(
        found, map(write_message, found.notes), changes=True
    )
    has_interval = n_changed > 0
    assert (change.adjusted_interval is not None) == has_interval
    assert (change.interval_text != "–") == has_interval


def test_few_draws_are_noted() -> None:
    rows = {**models(*LARGE, LARGE[0]), "n_resamples": 99}  # enough for one hypothesis, not three
    with pytest.warns(FairpermWarning, match="called narrowed or widened .*n_resamples=119"):
        audit(**rows, metrics="selection_rate")


def test_command(tmp_path: Path) -> None:
    path, target = tmp_path / "rows.csv", tmp_path / "changes.md"
    pl.DataFrame(ROWS).write_csv(path)
    given = ("--label", "label", "--prediction", "new_decision", "--prediction-new", "old_decision")
    options = ("--group", "group", "--metric", "tpr", "--seed", 5, "--resamples", 199)
    done = run("compare", path, *given, *options, "--fail-on", "widened", "--markdown", target)
    said = done.stdout.decode()
    assert done.returncode == 1
    assert " of 3 gaps widened" in said
    assert "failed: " in done.stderr.decode()
    assert "**widened** ✗ |" in target.read_text()
    document = json.loads(run("compare", path, *given, *options, "--json", "-").stdout)
    assert document["schema"] == "fairperm.compare"
    names = {"y_pred": "new_decision", "y_pred_new": "old_decision", "metrics": "tpr"}
    alone = quietly(y_true="label", data=ROWS, sensitive_features="group", **names, **DRAWN)
    changes = [row.change.to_dict() for row in alone if row.change]
    assert [row["change"] for row in document["result"]["rows"]] == changes
    lacking = run("compare", path, *given[:4], *options)
    assert lacking.returncode == 2
    assert b"--prediction-new or --score-new must be given" in lacking.stderr
    narrow = run("compare", path, *given, *options, COLUMNS="40").stdout.decode()
    assert "    verdict   widened" in narrow


LEVEL, DATA_SETS = 0.05, 300


def draw_rows(gap: tuple[float, float], rng: np.random.Generator) -> Sample:
    """Return 400 and 300 rows: the second group's rates are 0.4, the first one's higher by gaps."""
    counts = []
    for n, (old, new) in ((400, (0.4 + gap[0], 0.4 + gap[1])), (300, (0.4, 0.4))):
        apart = abs(new - old) + 0.1  # share of rows on which the models disagree
        added, taken = (apart + new - old) / 2, (apart + old - new) / 2
        counts.append(rng.multinomial(n, [1 - old - added, added, taken, old - taken]))
    group, cell = np.nonzero(counts)
    columns = {"y_pred": cell >= 2, "y_pred_new": cell % 2 == 1, "y_true": cell < 0}
    count = np.array(counts)[group, cell]
    stratum = np.zeros(len(count), np.uint8)
    names = ("a", "b")
    return Sample(
        columns=columns, group=group, stratum=stratum, count=count, groups=names, strata=("all",)
    )


def judge(gap: tuple[float, float], margin: float | None, seed: int) -> list[GapChange]:
    """Return the changes of simulated data sets."""
    rng = np.random.default_rng(seed)
    settings = Settings(
        compare="pairs", reference=None, adjust=None, family="audit", alpha=LEVEL,
        margins={} if margin is None else {"selection_rate": margin}, ratios={},
        min_group_size=1, group_size_by="rows", n_attributes=1,
        resampling=Resampling(199, seed, 1, False),
    )  # fmt: skip
    metric = get_metric("selection_rate")
    found = []
    for _ in range(DATA_SETS):
        both = draw_rows(gap, rng)
        table = both.keep_columns({"y_true", "y_pred"})
        question = Question("g", "selection_rate", metric, table, table, both)
        pairs = compare_pairs(make_pairs([question], settings), settings)
        rows, _ = judge_pairs(pairs, settings)
        (row,) = add_changes(rows, pairs, settings)
        assert row.change is not None
        found.append(row.change)
    return found


@pytest.mark.validate
@pytest.mark.parametrize(
    ("gap", "margin", "wrong"),
    [
        ((0.15, 0.15), None, {"narrowed", "widened"}),
        ((0.1, -0.1), None, {"narrowed", "widened"}),  # changed sides, of one size
        ((0.0, 0.0), None, {"narrowed", "widened"}),
        ((0.05, -0.08), None, {"narrowed"}),
        ((0.3, 0.1), 0.1, {"closed"}),  # on the margin
        ((0.3, 0.2), 0.1, {"unchanged within margin"}),  # changed by the margin
    ],
)
def test_wrong_verdicts_are_rare(
    gap: tuple[float, float], margin: float | None, wrong: set[str]
) -> None:
    found = judge(gap, margin, seed=int(100 * (gap[0] + 2 * gap[1]) + 1000))
    n_wrong = sum(one.verdict in wrong for one in found)
    assert n_wrong <= at_most(LEVEL, DATA_SETS)
    if gap == (0.1, -0.1):
        # control: the change is shown almost always, and is no evidence of a smaller gap
        naive = sum(one.pvalue <= LEVEL for one in found if one.pvalue is not None)
        assert naive >= at_least(0.9, DATA_SETS)
    if gap == (0.3, 0.1):
        assert sum(one.verdict == "narrowed" for one in found) >= at_least(0.9, DATA_SETS)
