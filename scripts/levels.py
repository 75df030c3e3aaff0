"""Write docs/dev/levels.md, on where tests and intervals err: ``python -m scripts.levels``.

A level is the share of true nulls that are rejected at nominal level 0.05; a coverage is that of
nominal 95 % intervals. Whoever changes a test measures its rows again, and deletes those that no
longer hold. "Measured by" is a test that repeats the setting or one like it, or "a trial": a run
by hand, whose figure no command repeats.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "docs" / "dev" / "levels.md"
TRIAL = "a trial"
_TESTS = "hypothesis_tests/"


class Row(NamedTuple):
    """One setting: what was found in it, whether a note says so, and what to do."""

    setting: str
    level: str
    noted: str
    remedy: str
    measured_by: str


ROWS: dict[str, list[Row]] = {
    "Rates and F1": [
        Row(
            "any plain rate, any sizes (exact)",
            "at most 0.04995",
            "–",
            "–",
            "scripts/rate_test_sizes.py",
        ),
        Row(
            "coverage of its interval, 4 to 60 rows a group",
            "0.949 (gaps), 0.945 (ratios), lowest of 625 pairs of rates",
            "no",
            "–",
            _TESTS + "test_rate_intervals.py",
        ),
        Row(
            "at a margin: 4 and 31 rows · 6 and 19 · 10 and 60 · 13 and 13 · 20 and 20",
            "0.126 · 0.083 · 0.091 · 0.095 · 0.074",
            "no",
            "more rows before a claim at a margin",
            TRIAL,
        ),
        Row(
            'scheme="pooled": 160 and 40 positives, rate 0.99',
            "0.089",
            "no",
            'scheme="auto"',
            TRIAL,
        ),
        Row(
            "strata of one or two rows: coverage of F1's interval",
            "0.90 to 0.95",
            "a bias of more than 1/4 error",
            "jaccard_score",
            _TESTS + "test_small_strata.py",
        ),
        Row(
            "rates 0.08 and 0.02, one large stratum and 50 of 2 to 7 rows: intervals miss",
            "0.054; upper limits 0.068",
            "no",
            "–",
            _TESTS + "test_small_strata.py",
        ),
        Row(
            "ratio of 0.2 at its bound, rates 0.06 and 0.3, 60 and 600 rows",
            "0.07 to 0.085",
            "no",
            "a margin on the gap",
            TRIAL,
        ),
        Row(
            "weights, 55 effective rows of 150, rates 0.90 and 0.95, at a margin",
            "0.08",
            "few influential rows",
            "more rows",
            TRIAL,
        ),
    ],
    "Means, losses and functions of them": [
        Row(
            "mean squared error, 30 rows of kurtosis 9, 300 of 3 (variance: delta)",
            "0.114",
            "few influential rows",
            'the default, "hall"',
            "studies/calibration",
        ),
        Row(
            "rare costs: 1.5 of 50 rows are not zero, 500 normal",
            "0.20",
            "few influential rows",
            "more rows; a rate of costs above a bound",
            "studies/calibration",
        ),
        Row(
            "mean squared error, 200 rows of kurtosis 9, 2,000 of 3",
            "0.071",
            "no",
            "mean_absolute_error",
            _TESTS + "test_two_tails.py",
        ),
        Row(
            "one-sided, exponential and uniform errors, 175 and 100 rows · 25 strata · single rows",
            "0.062 · 0.071 · 0.082",
            "no",
            "two-sided: 0.049",
            TRIAL,
        ),
        Row(
            "mean squared error: coverage of upper limits, 4 of 10 settings",
            "0.893 to 0.927",
            "no",
            "mean_absolute_error",
            _TESTS + "test_coverage.py",
        ),
        Row(
            "at a margin: squared Laplace errors, 200 and 800 rows",
            "0.08",
            "few influential rows",
            "mean_absolute_error",
            TRIAL,
        ),
        Row(
            "r2_score, mean outcomes five deviations apart, 200 and 2,000 rows",
            "0.066; one-sided 0.077",
            "from two deviations on",
            'alternative="symmetric": 0.041',
            TRIAL,
        ),
        Row(
            "balanced accuracy, omnibus, groups of 1,000 down to 60 rows, pooled",
            "0.095",
            "few influential rows",
            'scheme="within_label"',
            TRIAL,
        ),
        Row(
            "three strata of 1 and 40 rows, six of 3 and 3, spreads 3:1",
            "0.078",
            "few single-row strata",
            "merge strata",
            _TESTS + "test_small_strata.py",
        ),
        Row(
            "medians of errors rounded to 1/4 to 1 deviation, 60 and 300 rows",
            "0 to 0.31",
            "if half of the samples tie",
            "the mean, or values as measured",
            TRIAL,
        ),
        Row(
            "expected calibration error, base rates 0.05 and 0.5",
            "0.41 to 0.43",
            "an error",
            "calibration_in_the_large, brier_score",
            TRIAL,
        ),
    ],
    "Ranks": [
        Row(
            "AUC, 30 positives with log-normal weights",
            "0.08",
            "few influential rows",
            "calibrate",
            _TESTS + "test_small_group_levels.py",
        ),
        Row(
            "AUC 0.95, 20 positives whose scores vary three times as much",
            "0.10; n_resamples=0: 0.16",
            "few influential rows",
            "permutations; more positives",
            _TESTS + "test_small_group_levels.py",
        ),
        Row(
            "average precision, 8 and 80 positives · 6 and 300, spreads 2:1",
            "0.07 · 0.08",
            "few influential rows",
            "more positives",
            "metrics/test_average_precision.py",
        ),
        Row(
            "average precision, 30 positives with log-normal weights",
            "0.083",
            "few influential rows",
            "trim weights",
            TRIAL,
        ),
        Row(
            "roc_auc_ovr, 3 of 60 rows in a class, spreads 2:1 · 6 of 300 and 120 of 300",
            "0.080 · 0.090",
            "few influential rows",
            "roc_auc_ovr_weighted",
            "metrics/test_one_versus_rest.py",
        ),
    ],
    "Weights, clusters, distances": [
        Row(
            "designs of weights and clusters (20 of 27 measured); 8 v 80 uneven clusters",
            "at most 0.065 but for 8 v 80 clusters; 0.105 to 0.115",
            "below 20 influential ones",
            "calibrate with the same options",
            "tests/studies/test_small_groups.py",
        ),
        Row(
            "mean error, three strata, one weight of 100 · 300 · 1,000",
            "0.08 · 0.13 · 0.12",
            "few influential rows",
            "look at the largest weights; trim them",
            TRIAL,
        ),
        Row(
            "distances, 30 clusters of 2 rows and 300 of 20, correlation 0.5",
            "0.08 (0.35 if merely permuted)",
            "below 20 clusters",
            "–",
            _TESTS + "test_distances.py",
        ),
        Row(
            "distances of five categories, 8 clusters of 10 equal rows, 80 of 2",
            "0.12 (Jensen–Shannon), 0.11 (Kullback–Leibler)",
            "below 20 clusters",
            "total_variation",
            TRIAL,
        ),
        Row(
            "distances, weights that depend on the values, 61 of 100 rows effective",
            "0.06 to 0.09",
            "no",
            "–",
            TRIAL,
        ),
    ],
    "Rankings": [
        Row(
            "exposure, 100 lists of 10 of 40 · of 2,000 items that return",
            "0.53 · 0.09",
            "no",
            "items as clusters: 0.04 · 0.065",
            TRIAL,
        ),
        Row(
            "exposure_per_relevance, one-sided, 60 lists, 18 relevant items of a group",
            "0.088 (two-sided 0.059)",
            "no",
            "two-sided; more lists",
            TRIAL,
        ),
        Row(
            "exposure_per_relevance, about 13 of 40 lists have the group",
            "0.073",
            "few queries",
            "more lists",
            _TESTS + "rankings/test_rankings.py",
        ),
    ],
    "Changes": [
        Row(
            "two models, 30 and 9 rows on which they disagree · 13 and 6 in ten strata",
            "0.073 · 0.077",
            "below 20",
            "more rows",
            _TESTS + "changes/test_model_levels.py",
        ),
        Row(
            "the same with 12 to 36 and 2: coverage · at a margin",
            "0.92 · 0.09",
            "below 20",
            "more rows",
            TRIAL,
        ),
        Row(
            "two models, AUC with 60 negatives in a group",
            "0.079 (0.052 of others)",
            "no",
            "–",
            _TESTS + "changes/test_model_levels.py",
        ),
        Row(
            "PPV at a margin, 30 of 300 · 100 predictions change",
            "0.075 · 0.062",
            "below 20",
            "a rate of a fixed denominator",
            TRIAL,
        ),
        Row(
            "power from a pilot with below 20 changed rows: planned and found",
            "0.57 and 0.45; 0.81 and 0.95",
            "no",
            "simulated_power",
            TRIAL,
        ),
        Row(
            "matched sets: 60 and 100 sets, three groups, spreads of 1 to 6",
            "0.068 · 0.055 (omnibus)",
            "no",
            "–",
            _TESTS + "test_matched.py",
        ),
    ],
    "Searches, sweeps, correlation, planning": [
        Row(
            "subgroups, rare costs in a tenth of 1,000 rows: any false finding",
            "0.37 to 0.39",
            "counted in a note",
            "a larger min_rows",
            TRIAL,
        ),
        Row(
            "subgroups, some affected: simultaneous coverage",
            "0.928 to 0.943",
            "no",
            "confirm=0.5",
            "subgroups/test_family_error.py",
        ),
        Row(
            "three metrics in a sweep, any gap outside its simultaneous band",
            "0.15 to 0.18",
            "no",
            "joint_band: at most 0.05",
            _TESTS + "sweep/test_levels.py",
        ),
        Row(
            "correlation, 30 of 1,200 rows have x = 1, spreads 20:1",
            "0.03 (0.15 studentized alone)",
            "no",
            "–",
            _TESTS + "test_correlation_level.py",
        ),
        Row(
            "correlation, y = x², 30 · 100 rows",
            "0.05 · 0.04 (0.10 · 0.06 studentized alone)",
            "below 5 effective rows",
            "–",
            _TESTS + "test_correlation_level.py",
        ),
        Row(
            "calibrate, heavy tails in a small group: total intervals that contain the level",
            "15 of 20",
            "no",
            "a larger pilot",
            "planning/test_simulated_share.py",
        ),
    ],
}

_HEAD = """\
# Where levels were measured to err

Written by `python -m scripts.levels`; do not edit. A level is the share of true nulls that are
rejected at nominal 0.05; coverage is that of nominal 95 % intervals. Settings that hold their level
are on [another page](../calibration.md). Whoever changes a test measures its rows again and deletes
those that no longer hold.
"""


def page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    for title, rows in ROWS.items():
        parts.append(f"\n## {title}\n")
        parts.append("| setting | level | noted | remedy | measured by |\n|---|---|---|---|---|")
        parts += ["| " + " | ".join((*row[:4], _linked(row.measured_by))) + " |" for row in rows]
    return "\n".join([*parts, ""])


def path_of(measured_by: str) -> Path:
    """Return the file or folder that measures a row."""
    inside_tests = measured_by.split("/")[0] not in ("scripts", "studies", "tests")
    return PAGE.parents[2] / ("tests" if inside_tests else "") / measured_by


def _linked(measured_by: str) -> str:
    if measured_by == TRIAL:
        return TRIAL
    path = path_of(measured_by)
    return f"[{path.stem}](../../{path.relative_to(PAGE.parents[2])})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
