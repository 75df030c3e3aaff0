"""Which questions each tool answers: a cell is a call that ran, or names that were searched.

``make compare-peers`` runs this in an environment with the newest version of every tool, and
writes ``docs/compared.md``. A call is shown to run, not to be right: how often tools err is on the
page of benchmarks. Where no call is listed, the names of the tool's functions, classes and methods
are searched for the question's words; without a match the cell is a dash, otherwise "not tried".
"""

from __future__ import annotations

import argparse
import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import levels
from benchmarks.peers.page import table

PAGE = Path(__file__).parents[2] / "docs" / "compared.md"
BEGIN, END = "<!-- begin: make compare-peers -->", "<!-- end: make compare-peers -->"
LEVEL = f"… how often wrongly at {levels.ALPHA}, if base rates differ?"
RAN, NO_NAME, NOT_TRIED = "✓", "–", "?"

QUESTIONS = {
    "How large is the gap?": "disparity|difference|divergence|parity",
    "Is it real or chance?": "p_?value|signific|permutation|fisher|z_test|t_value|welch",
    LEVEL: "weak_null|studenti[sz]ed",
    "… exactly, in small samples?": "exact|fisher|barnard|boschloo|unconditional",
    "How large may it be (interval)?": "interval|_ci\\b|quantile|bootstrap",
    "How many rows do I need?": "power|sample_size|detectable",
    "Is the gap small enough?": "equivalen|noninferior|tost|margin",
    "Which of many gaps are real?": "multiple|holm|bonferroni|fdr|benjamini|family",
    "Which subgroups are affected?": "subgroup|intersection|itemset|pattern",
    "Ratio to the best group?": "four_fifths|impact|ratio",
    "… allowing for the data picking it?": "simultaneous|best_group|picked",
    "Groups known as probabilities?": "prob.*member|member.*prob|surrogate|bisg|proxy_prob",
    "The same input with another group?": "counterfactual|matched|paired|flip|perturb",
    "Did the gap change?": "drift|change|period|compare_models",
    "Is there a gap by now (monitoring)?": "sequential|anytime|monitor|evalue|sprt|cusum",
    "Are ranked lists fair?": "rank|exposure|ndcg|ndkl",
    "Are whole distributions alike?": "wasserstein|kolmogorov|ks_|distance|mmd",
    "Rows in Spark": "spark",
    "Without code": "\\bapp\\b|\\bmain\\b|dashboard|cli",
    "A gate in CI": "gate|assert|pytest|junit|precommit",
    "Make the model fairer": "mitigat|reweigh|postprocess|threshold_optim|exponentiated",
    "Bayesian posterior of the gap": "bayes",
    "Share of each attribute in a gap": "shapley",
}
QUESTION = tuple(QUESTIONS)


@dataclass(frozen=True)
class Tool:
    """A package, what is imported from it, and the expressions that answer questions."""

    package: str
    module: str
    imports: str
    calls: Mapping[str, str]
    searched: str = ""  # where names are searched, if not in the whole package

    @property
    def is_installed(self) -> bool:
        return util.find_spec(self.module) is not None


_FAIR = 'sensitive_features="g", data=frame, progress=False'
_TEST = 'fairperm.permutation_test("y", "p", metric="tpr", ' + _FAIR
TOOLS = (
    Tool(
        "fairperm",
        "fairperm",
        "import fairperm, fairperm.cli, fairperm.spark_job, fairperm.testing",
        {
            QUESTION[0]: f"{_TEST}).difference",
            QUESTION[1]: f"{_TEST}).pvalue",
            QUESTION[3]: f"{_TEST}).exact",
            QUESTION[4]: f"{_TEST}).confidence_interval",
            QUESTION[5]: 'fairperm.sample_size("selection_rate", values=(0.8, 0.9))',
            QUESTION[6]: f'fairperm.equivalence_test("y", "p", metric="tpr", margin=0.2, {_FAIR})',
            QUESTION[7]: f'fairperm.audit("y", "p", metrics=["tpr", "fpr"], {_FAIR}).rows',
            QUESTION[8]: 'fairperm.find_subgroups("y", "p", metric="tpr", features=["g", "h"], '
            "data=frame, progress=False)",
            QUESTION[9]: 'fairperm.selection_audit("p", sensitive_features="g", data=frame).rows',
            QUESTION[10]: 'fairperm.selection_audit("p", sensitive_features="g", data=frame)'
            ".rows[0].interval",
            QUESTION[
                11
            ]: 'fairperm.permutation_test(None, "p", metric="selection_rate", data=frame, '
            'group_probabilities={"a": 1 - likely, "b": likely}, progress=False).proxy_assumption',
            QUESTION[12]: 'fairperm.flip_test(lambda rows: rows["p"], frame, feature="g").interval',
            QUESTION[13]: 'fairperm.compare_models("y", "p", y_pred_new="q", metric="tpr", '
            f"{_FAIR}).pvalue",
            QUESTION[14]: 'fairperm.Monitor(y_true="y", y_pred="p", sensitive_features="g", '
            'metrics=["tpr"]).update(frame)',
            QUESTION[15]: 'fairperm.ranking_test(score="s", metric="exposure", query="query", '
            f"{_FAIR}).pvalue",
            QUESTION[16]: f'fairperm.distance_test("s", distance="wasserstein", {_FAIR}).pvalue',
            QUESTION[17]: "fairperm.spark_job",
            QUESTION[18]: "fairperm.cli.start",
            QUESTION[19]: 'fairperm.testing.assert_no_disparity("y", "p", metrics=["tpr"], '
            f"margin=0.9, {_FAIR})",
        },
    ),
    Tool(
        "fairlearn",
        "fairlearn",
        "from fairlearn.metrics import MetricFrame, true_positive_rate\n"
        "from fairlearn.reductions import ExponentiatedGradient",
        {
            QUESTION[0]: "MetricFrame(metrics=true_positive_rate, y_true=y, y_pred=p, "
            "sensitive_features=g).difference()",
            QUESTION[4]: "MetricFrame(metrics=true_positive_rate, y_true=y, y_pred=p, "
            "sensitive_features=g, n_boot=20, ci_quantiles=[0.025, 0.975]).difference_ci()",
            QUESTION[8]: "MetricFrame(metrics=true_positive_rate, y_true=y, y_pred=p, "
            'sensitive_features=frame[["g", "h"]]).by_group',
            QUESTION[9]: "MetricFrame(metrics=true_positive_rate, y_true=y, y_pred=p, "
            "sensitive_features=g).ratio()",
            QUESTION[20]: "ExponentiatedGradient",
        },
    ),
    Tool(
        "scipy",
        "scipy",
        "from scipy import stats",
        {
            QUESTION[1]: "stats.permutation_test((a, b), gap, n_resamples=99).pvalue",
            QUESTION[3]: "stats.barnard_exact(counts).pvalue",
            QUESTION[4]: "stats.bootstrap((a, b), gap, n_resamples=99).confidence_interval",
            QUESTION[5]: "stats.power(stats.ttest_ind, (rng.normal, rng.normal), (20, 20), "
            "n_resamples=50).power",
            QUESTION[7]: "stats.false_discovery_control([0.01, 0.2])",
            QUESTION[16]: "stats.ks_2samp(a, b).pvalue",
        },
        "scipy.stats",
    ),
    Tool(
        "mlxtend",
        "mlxtend",
        "from mlxtend.evaluate import permutation_test, mcnemar, bootstrap",
        {
            QUESTION[1]: 'permutation_test(a, b, method="approximate", num_rounds=99)',
            QUESTION[3]: 'permutation_test(a[:5], b[:5], method="exact")',
            QUESTION[4]: "bootstrap(a, num_rounds=50, func=np.mean)",
            QUESTION[12]: "mcnemar(np.array([[30, 8], [15, 27]]))",
        },
    ),
    Tool(
        "DivExplorer",
        "divexplorer",
        "from divexplorer import DivergenceExplorer, DivergencePatternProcessor",
        {
            QUESTION[0]: "DivergenceExplorer(found).get_pattern_divergence(min_support=0.1, "
            'attributes=["g", "h"], boolean_outcomes=["found"])["found_div"]',
            QUESTION[1]: "DivergenceExplorer(found).get_pattern_divergence(min_support=0.1, "
            'attributes=["g", "h"], boolean_outcomes=["found"])["found_t"]',
            QUESTION[8]: "DivergenceExplorer(found).get_pattern_divergence(min_support=0.1, "
            'attributes=["g", "h"], boolean_outcomes=["found"])["itemset"]',
            QUESTION[22]: "DivergencePatternProcessor(DivergenceExplorer(found)"
            '.get_pattern_divergence(min_support=0.1, attributes=["g", "h"], '
            'boolean_outcomes=["found"]), "found").global_shapley_value()',
        },
    ),
    Tool(
        "aequitas",
        "aequitas",
        "from aequitas.bias import Bias\nfrom aequitas.group import Group",
        {
            QUESTION[0]: "Bias().get_disparity_predefined_groups(Group().get_crosstabs(crosstab, "
            'attr_cols=["g"])[0], original_df=crosstab, ref_groups_dict={"g": "a"})'
            '["tpr_disparity"]',
            QUESTION[1]: "Bias().get_disparity_predefined_groups(Group().get_crosstabs(crosstab, "
            'attr_cols=["g"])[0], original_df=crosstab, ref_groups_dict={"g": "a"}, '
            'check_significance=True, mask_significance=False, selected_significance=["tpr"])'
            '["tpr_significance"]',
            QUESTION[9]: "Bias().get_disparity_min_metric(Group().get_crosstabs(crosstab, "
            'attr_cols=["g"])[0], original_df=crosstab)["pprev_disparity"]',
        },
    ),
    Tool(
        "jurity",
        "jurity",
        "from jurity.fairness import BinaryFairnessMetrics\n"
        "from jurity.mitigation import BinaryMitigation",
        {
            QUESTION[0]: "BinaryFairnessMetrics.EqualOpportunity.get_score(y, p, member)",
            QUESTION[9]: "BinaryFairnessMetrics.DisparateImpact.get_score(p, member)",
            QUESTION[11]: "BinaryFairnessMetrics.StatisticalParity.get_score(p, "
            "np.stack([1 - likely, likely], axis=1).tolist(), query, [1])",
            QUESTION[20]: "BinaryMitigation.EqualizedOdds",
        },
    ),
    Tool(
        "vfairness",
        "vfairness",
        "from vfairness.evaluation.vfairness_metrics import _statistics, classification, "
        "intersectional, ranking, robustness\n"
        "from vfairness.llm.nondeterminism import NonDeterminismAnalyzer\n"
        "from vfairness.agents.correspondence import CorrespondenceTester\n"
        "from vfairness.operations.cicd.testing import FairnessTestSuite\n"
        "from vfairness.operations.monitoring.drift import FairnessDriftDetector\n"
        "from vfairness.post_processing import GroupThresholdOptimizer",
        {
            QUESTION[0]: "classification.equal_opportunity_difference(y, p, g)",
            QUESTION[1]: "robustness.permutation_test_equal_opportunity(y, p, g, "
            "n_permutations=99).p_value",
            QUESTION[3]: "_statistics.fisher_exact_test(4, 6, 1, 9)",
            QUESTION[4]: "classification.disparate_impact_ratio_with_ci(y, p, g)",
            QUESTION[6]: "NonDeterminismAnalyzer().equivalence_test(a, b)",
            QUESTION[7]: "_statistics.apply_multiple_testing_correction(np.array([0.01, 0.2]))",
            QUESTION[8]: "intersectional.intersectional_disparity_analysis(y, p, g)",
            QUESTION[9]: "classification.disparate_impact_ratio(y, p, g)",
            QUESTION[10]: "_statistics.simultaneous_disparity_bounds("
            '{"a": (40, 100), "b": (25, 100)})',
            QUESTION[12]: "CorrespondenceTester().analyze_outcomes(list(a[:30]), list(b[:30]))",
            QUESTION[13]: "FairnessDriftDetector().detect_drift_ks(series)",
            QUESTION[14]: "_statistics.sequential_fairness_test(a, b)",
            QUESTION[15]: "ranking.exposure_parity_difference(s, g)",
            QUESTION[19]: 'FairnessTestSuite(["g"]).test_predictions(y, p, g, '
            "raise_on_failure=False)",
            QUESTION[20]: "GroupThresholdOptimizer",
            QUESTION[21]: "_statistics.bayesian_difference_ci(20, 40, 30, 40)",
        },
    ),
    Tool(
        "glassbox-hiring",
        "glassbox",
        "from glassbox.audit.impact import adverse_impact\n"
        "from glassbox.audit.perturb import run_perturbation_audit\n"
        "from glassbox.audit.stats import fisher_exact_2x2, wilson_interval\n"
        "from glassbox import cli",
        {
            QUESTION[0]: 'adverse_impact({"a": (40, 100), "b": (25, 100)}).groups',
            QUESTION[1]: "fisher_exact_2x2(40, 60, 25, 75).p_value",
            QUESTION[3]: "fisher_exact_2x2(4, 6, 1, 9).p_value",
            QUESTION[4]: "wilson_interval(25, 100)",
            QUESTION[9]: 'adverse_impact({"a": (40, 100), "b": (25, 100)}).min_impact_ratio',
            QUESTION[12]: "run_perturbation_audit",
            QUESTION[18]: "cli.main",
        },
    ),
)


def _data() -> dict[str, Any]:
    """Return what the expressions use: one small table in the forms that the tools want."""
    import pandas as pd

    rng = np.random.default_rng(1)
    n = 400
    g = np.array(["a", "b"])[rng.integers(2, size=n)]
    y = rng.integers(2, size=n)
    s = rng.random(n).round(2)
    p, q = (s > 0.4).astype(int), (rng.random(n) > 0.5).astype(int)
    h = np.array(["x", "y"])[rng.integers(2, size=n)]
    query = np.repeat(np.arange(40), 10)
    frame = pd.DataFrame({"y": y, "p": p, "q": q, "s": s, "g": g, "h": h, "query": query})
    a, b = (p[(g == one) & (y == 1)].astype(float) for one in "ab")
    return {
        "np": np,
        "rng": rng,
        "frame": frame,
        "y": y,
        "p": p,
        "s": s,
        "g": g,
        "a": a,
        "b": b,
        "query": query,
        "gap": lambda one, other, axis=-1: np.mean(one, axis=axis) - np.mean(other, axis=axis),
        "counts": [[int(a.sum()), int(len(a) - a.sum())], [int(b.sum()), int(len(b) - b.sum())]],
        "found": frame[["g", "h"]].assign(found=np.where(y == 1, p, np.nan)),
        "crosstab": pd.DataFrame({"score": p.astype(float), "label_value": y, "g": g}),
        "likely": np.where(g == "b", 0.8, 0.2),
        "member": (g == "b").astype(int),
        "series": pd.Series(rng.normal(size=200)),
    }


def _names(module: str) -> Iterator[str]:
    """Yield the public names that a package defines, without importing it."""
    spec = util.find_spec(module)
    assert spec is not None
    assert spec.submodule_search_locations
    for folder in spec.submodule_search_locations:
        for path in Path(folder).rglob("*.py"):
            if "tests" in path.parts:
                continue
            yield path.stem
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_":
                    yield re.sub("(?<=[a-z])(?=[A-Z])", "_", node.name).lower()


def level(tool: Tool) -> str:
    """Return how often a tool calls a gap in a rate real that is not, as ``levels`` measured it."""
    page = levels.PAGE.read_text(encoding="utf-8").split(levels.BEGIN)[1].split(levels.END)[0]
    measured = re.search(rf"(?m)^\| {re.escape(tool.package)} [^|]*\|[^|]*\|\W*([\d.]+)", page)
    return measured[1] if measured else NO_NAME


def answers(tool: Tool) -> dict[str, str]:
    """Return, for each question, what was seen of a tool that is installed."""
    data, found = _data(), {}
    words = "\n".join({*_names(tool.searched or tool.module)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(tool.imports, data)  # noqa: S102 -- of this file
        for question, pattern in QUESTIONS.items():
            if question == LEVEL:
                found[question] = level(tool)
            elif question in tool.calls:
                eval(tool.calls[question], data)  # noqa: S307 -- of this file
                found[question] = RAN
            else:
                is_named = re.search(rf"(?m)(^|_)({pattern})", words)
                found[question] = NOT_TRIED if is_named else NO_NAME
    return found


def describe() -> str:
    """Return the table, and the calls behind it."""
    columns = [answers(tool) for tool in TOOLS]
    head = ["question", *(f"{one.package} {metadata.version(one.package)}" for one in TOOLS)]
    rows = [[question, *(found[question] for found in columns)] for question in QUESTIONS]
    calls = "\n".join(
        f"- **{tool.package}**: " + "; ".join(f"`{one}`" for one in tool.calls.values())
        for tool in TOOLS
        if tool.package != "fairperm"
    )
    return f"{table(head, rows, words=len(head))}\n\n## The calls\n\n{calls}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/compared.md")
    text = describe()
    if parser.parse_args().write:
        page = PAGE.read_text(encoding="utf-8")
        start, stop = page.index(BEGIN) + len(BEGIN), page.index(END)
        PAGE.write_text(f"{page[:start]}\n\n{text}\n\n{page[stop:]}", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
