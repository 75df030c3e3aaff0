"""How often each tool calls a gap real where there is none, though groups differ otherwise.

``make bench-levels`` runs this in an environment with the newest version of every tool.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binomtest

from benchmarks.peers.page import table, told_seconds
from benchmarks.peers.questions import SEED

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]

ALPHA, DRAWS = 0.05, 999
BOOTSTRAP = 200  # samples of Fairlearn, which takes seconds for them
RATE, MEAN = "true positive rate", "mean error"
ABOUT = {
    RATE: "200 and 200 rows, base rates 0.8 and 0.2; 90 % of the positives of both are found",
    MEAN: "60 rows of spread 10 and 1,000 rows of spread 1; errors of both have mean 0",
}
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- begin: make bench-levels -->", "<!-- end: make bench-levels -->"


@dataclass(frozen=True)
class Rows:
    """Two groups whose metric is equal. ``y_pred`` are decisions, or values."""

    metric: str
    y_true: Array
    y_pred: Array
    group: Array

    def sides(self) -> tuple[Array, Array]:
        """Return each group's numbers, whose mean is the metric."""
        kept, numbers = np.ones(len(self.group), bool), self.y_pred - self.y_true
        if self.metric == RATE:
            kept, numbers = self.y_true == 1, self.y_pred
        return numbers[kept & (self.group == 0)], numbers[kept & (self.group == 1)]


def draw(metric: str, rng: np.random.Generator) -> Rows:
    """Return rows without a gap in the metric."""
    if metric == RATE:
        group = np.repeat([0, 1], 200)
        label = (rng.random(400) < np.where(group == 1, 0.2, 0.8)).astype(np.int64)
        return Rows(metric, label, np.where(rng.random(400) < 0.9, label, 1 - label), group)
    group = np.repeat([0, 1], [60, 1000])
    outcome = rng.normal(size=1060)
    errors = rng.normal(size=1060) * np.where(group == 0, 10.0, 1.0)
    return Rows(metric, outcome, outcome + errors, group)


def _gap(first: Array, second: Array) -> float:
    return abs(float(first.mean() - second.mean()))


def run_fairperm(rows: Rows, seed: int) -> bool:
    import fairperm

    result = fairperm.permutation_test(
        rows.y_true,
        rows.y_pred,
        sensitive_features=rows.group,
        metric=rows.metric.replace(" ", "_"),
        n_resamples=DRAWS,
        rng=seed,
        progress=False,
    )
    return result.pvalue <= ALPHA


def run_shuffle(rows: Rows, seed: int) -> bool:
    """Shuffle the column of groups, and compare plain gaps."""
    rng = np.random.default_rng(seed)

    def gap(group: Array) -> float:
        shuffled = Rows(rows.metric, rows.y_true, rows.y_pred, group)
        return _gap(*shuffled.sides())

    observed = gap(rows.group)
    extreme = sum(gap(rng.permutation(rows.group)) >= observed for _ in range(DRAWS))
    return (extreme + 1) / (DRAWS + 1) <= ALPHA


def run_scipy(rows: Rows, seed: int) -> bool:
    from scipy import stats

    result = stats.permutation_test(
        rows.sides(), _gap, n_resamples=DRAWS, alternative="greater", rng=seed
    )
    return bool(result.pvalue <= ALPHA)


def run_mlxtend(rows: Rows, seed: int) -> bool:
    from mlxtend.evaluate import permutation_test

    p = permutation_test(
        *rows.sides(), func=_gap, method="approximate", num_rounds=DRAWS, seed=seed
    )
    return bool(p <= ALPHA)


def run_vfairness(rows: Rows, seed: int) -> bool:
    from vfairness.evaluation.vfairness_metrics import robustness

    options: dict[str, Any] = {"n_permutations": DRAWS, "random_state": seed}
    if rows.metric == RATE:
        result = robustness.permutation_test_equal_opportunity(
            rows.y_true, rows.y_pred, rows.group, **options
        )
    else:
        result = robustness.permutation_test(
            rows.y_pred - rows.y_true,
            rows.group,
            lambda errors, group: _gap(errors[group == 0], errors[group == 1]),
            **options,
        )
    return bool(result.p_value <= ALPHA)


def run_fairlearn(rows: Rows, seed: int) -> bool:
    """Return whether the interval of the difference is above 0."""
    from fairlearn.metrics import MetricFrame, true_positive_rate

    def mean_error(y_true: Array, y_pred: Array) -> float:
        return float(np.mean(y_pred - y_true))

    frame = MetricFrame(
        metrics=true_positive_rate if rows.metric == RATE else mean_error,
        y_true=rows.y_true,
        y_pred=rows.y_pred,
        sensitive_features=rows.group,
        n_boot=BOOTSTRAP,
        ci_quantiles=[ALPHA / 2, 1 - ALPHA / 2],
        random_state=seed,
    )
    return bool(frame.difference_ci()[0] > 0)


def run_aequitas(rows: Rows, _: int) -> bool:
    import pandas as pd
    from aequitas.bias import Bias
    from aequitas.group import Group

    frame = pd.DataFrame(
        {
            "score": rows.y_pred.astype(float),
            "label_value": rows.y_true,
            "group": np.where(rows.group == 0, "a", "b"),
        }
    )
    counts, _ = Group().get_crosstabs(frame, attr_cols=["group"])
    found = Bias().get_disparity_predefined_groups(
        counts,
        original_df=frame,
        ref_groups_dict={"group": "a"},
        check_significance=True,
        mask_significance=False,
        selected_significance=["tpr"],
    )
    p = found.loc[found["attribute_value"] == "b", "tpr_significance"]
    return bool(p.iloc[0] <= ALPHA)


def run_glassbox(rows: Rows, _: int) -> bool:
    from glassbox.audit.stats import fisher_exact_2x2

    (a, m), (b, n) = ((int(side.sum()), len(side)) for side in rows.sides())
    return bool(fisher_exact_2x2(a, m - a, b, n - b).p_value <= ALPHA)


def run_divexplorer(rows: Rows, _: int) -> bool:
    """Return whether some group has |t| above 1.96, from everyone's rate."""
    import pandas as pd
    from divexplorer import DivergenceExplorer

    found = np.where(rows.y_true == 1, rows.y_pred.astype(float), np.nan)
    frame = pd.DataFrame({"group": np.where(rows.group == 0, "a", "b"), "found": found})
    patterns = DivergenceExplorer(frame).get_pattern_divergence(
        min_support=0.01, attributes=["group"], boolean_outcomes=["found"]
    )
    return bool((patterns["found_t"] > 1.96).any())


@dataclass(frozen=True)
class Peer:
    """A tool: what of it is called, and for which metrics it says whether a gap is real."""

    package: str
    module: str
    says: str
    run: Callable[[Rows, int], bool] | None
    metrics: tuple[str, ...] = (RATE, MEAN)
    is_slow: bool = False


PEERS = (
    Peer("fairperm", "fairperm", "p of `permutation_test`", run_fairperm),
    Peer("numpy", "numpy", "p of a loop that shuffles the column of groups", run_shuffle),
    Peer("scipy", "scipy", "p of `stats.permutation_test` of one number per row", run_scipy),
    Peer("mlxtend", "mlxtend", "p of `evaluate.permutation_test`, likewise", run_mlxtend),
    Peer("vfairness", "vfairness", "p of `permutation_test…`", run_vfairness),
    Peer(
        "fairlearn",
        "fairlearn",
        "`MetricFrame.difference_ci()` is above 0",
        run_fairlearn,
        is_slow=True,
    ),
    Peer("aequitas", "aequitas", "`tpr_significance` of `Bias`", run_aequitas, (RATE,)),
    Peer("glassbox-hiring", "glassbox", "p of `fisher_exact_2x2`", run_glassbox, (RATE,)),
    Peer("DivExplorer", "divexplorer", "some group's `t` is above 1.96", run_divexplorer, (RATE,)),
    Peer("jurity", "jurity", "nothing: it prints gaps alone", None, ()),
)


def measure(peer: Peer, metric: str, n: int) -> tuple[int, float]:
    """Return in how many data sets a tool says that there is a gap, and its median seconds."""
    assert peer.run is not None
    hits, taken = 0, []
    for seed in range(n):
        rows = draw(metric, np.random.default_rng([SEED, seed]))
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hits += peer.run(rows, seed)
        taken.append(time.perf_counter() - start)
    return hits, float(np.median(taken))


def describe(n: int, n_slow: int) -> str:
    """Return the table."""
    lines = []
    for peer in PEERS:
        if util.find_spec(peer.module) is None:
            continue
        cells = []
        for metric in ABOUT:
            if metric not in peer.metrics:
                cells += ["–", "–"]
                continue
            sets = n_slow if peer.is_slow else n
            hits, seconds = measure(peer, metric, sets)
            low, high = binomtest(hits, sets).proportion_ci(0.95)
            share = f"{hits / sets:.3f} ({low:.3f} to {high:.3f})"
            is_off = not low <= ALPHA <= high and hits / sets > ALPHA
            cells += [f"**{share}**" if is_off else share, told_seconds(seconds)]
        line = [f"{peer.package} {metadata.version(peer.package)}", peer.says, *cells]
        print(" | ".join(line), flush=True)
        lines.append(line)
    head = ["tool", "what it says", *(one for metric in ABOUT for one in (metric, "time"))]
    settings = "\n".join(f"- {name}: {about}." for name, about in ABOUT.items())
    return (
        f"In how many of {n:,} data sets ({n_slow} of Fairlearn's) a tool calls the gap real at "
        f"{ALPHA}, with its 95 % interval; bold if that is shown to be more often. No gap is real, "
        f"but groups differ otherwise:\n\n{settings}\n\n{table(head, lines, words=2)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--slow", type=int, default=200, help="data sets of slow tools")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    given = parser.parse_args()
    text = describe(given.sets, given.slow)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        start, stop = page.index(BEGIN) + len(BEGIN), page.index(END)
        PAGE.write_text(f"{page[:start]}\n\n{text}\n\n{page[stop:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
