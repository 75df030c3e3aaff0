"""The paper's Figures 2 and 3: gaps of trained models over thresholds and over sample sizes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.progress import show_progress
from fairperm.errors import FairpermError
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
from fairperm.inference.null import normal_quantile
from fairperm.planning.designs import Level, rate_power
from fairperm.planning.searches import smallest_gap
from studies.paper import figure_charts as charts
from studies.paper.models import STRENGTH, compute_auc, load_tasks
from studies.study import CONFIDENCE, LEVEL, Row, Study

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairperm.data.arguments import SchemeName
    from fairperm.hypothesis_tests.results.sweeps import MetricSweep, ThresholdSweepResult
    from studies.paper.models import ScoredRows

    Array = NDArray[np.float64]
    Columns = dict[str, list[Any]]

PERMUTATIONS = 1000  # as in the paper
METRICS = {"FPR": "false_positive_rate", "recall": "true_positive_rate"}
GROUPS = ("Female", "Male")
# The paper's AUC, and the range that ours must be in: both are of random splits.
PAPER_AUC = {"COMPAS": (0.7005, (0.687, 0.773)), "Adult": (0.9087, (0.895, 0.915))}
POWER = 0.8
CUT = 0.5
SPLITS, QUICK_SPLITS = 100, 10
SAMPLES, QUICK_SAMPLES = 200, 30
SIZES = (950, 1250, 1500, 2000, 2500, 3000, 3500, 4000, 4500)
QUICK_SIZES = (950, 2000, 4500)
_SLACK = 0.05  # tolerance of the exponent −1/2: rates are not normal variates
_STREAMS = {"COMPAS": 1, "Adult": 2}


def thresholds(
    *,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Study:
    """Run Figure 2 again: gaps between women and men at every threshold."""
    n_splits = QUICK_SPLITS if quick else SPLITS
    rows: list[Row] = []
    table: Columns = {}
    aucs: Columns = {"data": [], "split": [], "auc": []}
    for name, task in load_tasks().items():
        each = [
            task.score_test_rows(np.random.default_rng([seed, _STREAMS[name], split]))
            for split in show_progress(range(n_splits), n_splits, progress)
        ]
        found = np.array([compute_auc(one) for one in each])
        sweep = _sweep(each[0], 101, "pooled", seed, n_jobs)
        exact = _sweep(each[0], 101, "within_label", seed, n_jobs)
        rows += [
            _make_auc_row(name, found, len(each[0].label)),
            *_make_sweep_rows(name, sweep, exact),
        ]
        _extend(table, _tabulate_sweep(name, sweep))
        _extend(aucs, {"data": [name] * n_splits, "split": [*range(n_splits)], "auc": [*found]})
    return Study(
        name="thresholds",
        title="Figure 2: gaps between women and men at every threshold",
        about=(
            "The paper trains logistic regressions with an L2 penalty on COMPAS and Adult (70 %"
            " training, 15 % validation, 15 % test) and compares false positive rates and "
            "recall of women and men in the test rows at every decision threshold with what "
            f"1,000 permutations call significant. Here likewise: C = {STRENGTH:g}, without sex "
            "and race among the features, pooled permutations compared by |S| and the score "
            "variance."
        ),
        rows=tuple(rows),
        settings=_list_settings(seed, n_splits=n_splits, n_thresholds=101),
        notes=(
            "The figure's curves are of one random split, so they can be compared in shape only.",
            "Our default, which exchanges labels among rows of equal outcome and is exact, "
            "comes to the same verdict at nearly all thresholds.",
        ),
        tables={"curves": table, "auc": aucs},
        charts={"gaps": charts.draw_gaps_by_threshold(table)},
    )


def sample_size(
    *,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Study:
    """Run Figure 3 again: the smallest detected gap by sample size."""
    n_samples, sizes = (QUICK_SAMPLES, QUICK_SIZES) if quick else (SAMPLES, SIZES)
    rows: list[Row] = []
    table: Columns = {}
    for name, task in load_tasks().items():
        if task.n < sizes[-1]:
            raise FairpermError(
                f"The study of sample sizes draws {sizes[-1]:,} rows of {name}; it has {task.n:,}."
            )
        everyone = task.cross_fit(np.random.default_rng([seed, _STREAMS[name]]))
        samples = [(n, i) for n in sizes for i in range(n_samples)]
        found = [
            _test_sample(everyone, n, [seed, _STREAMS[name], n, i], n_jobs)
            for n, i in show_progress(samples, len(samples), progress)
        ]
        by_size = {n: found[i * n_samples : (i + 1) * n_samples] for i, n in enumerate(sizes)}
        for label, metric in METRICS.items():
            tests = {n: np.array([one[metric] for one in each]) for n, each in by_size.items()}
            rows += _make_size_rows(name, label, tests)
            _extend(table, _tabulate_sizes(name, label, tests, everyone))
    return Study(
        name="sample-size",
        title="Figure 3: the smallest detected gap by sample size",
        about=(
            "The paper plots the smallest gap between women and men that the test detects "
            "against the number of rows. Here every row is scored by a logistic regression of "
            f"the four fifths that it is not in, and {n_samples} samples of each size are drawn "
            f"and tested at the threshold {CUT:g} with {PERMUTATIONS:,} pooled permutations. The"
            " critical gap is what a sample's gap must exceed, on average; beside it are the "
            "smallest detected gap, and the true gap that is found with a probability of "
            f"{POWER:g}."
        ),
        rows=tuple(rows),
        settings=_list_settings(seed, n_samples=n_samples, sizes=[*sizes], threshold=CUT),
        notes=(
            "In theory gaps are proportional to n to the power of −1/2: four times the rows for"
            " half the gap.",
        ),
        tables={"gaps": table},
        charts={"gaps": charts.draw_gaps_by_size(table)},
    )


# Figure 2.


def _sweep(
    scored: ScoredRows, cuts: ArrayLike, scheme: SchemeName, seed: int, n_jobs: int | None
) -> ThresholdSweepResult:
    return threshold_sweep(
        scored.label,
        scored.score,
        sensitive_features=scored.sex,
        groups=GROUPS,
        metric=[*METRICS.values()],
        thresholds=cuts,
        scheme=scheme,
        alternative="symmetric",
        alpha=LEVEL,
        n_resamples=PERMUTATIONS,
        rng=seed,
        n_jobs=n_jobs,
        progress=False,
    )


def _make_auc_row(name: str, aucs: Array, n_rows: int) -> Row:
    """Return the AUC of the first split, beside those of the other splits."""
    mean, spread = float(aucs.mean()), float(aucs.std(ddof=1))
    reach = normal_quantile(CONFIDENCE) * spread * math.sqrt(1 + 1 / len(aucs))
    interval = (mean - reach, mean + reach)
    paper, (low, high) = PAPER_AUC[name]
    remark = (
        f"{n_rows:,} test rows. Over {len(aucs)} splits {mean:.4f} ± {spread:.4f} (the interval "
        f"is for one split); {np.mean(aucs <= paper):.0%} of them are not above the paper's. Ours "
        f"must be in {low}–{high}, and the paper's in the interval."
    )
    return Row(
        quantity=f"{name}: AUC of the test rows",
        paper=paper,
        ours=float(aucs[0]),
        interval=interval,
        agrees=bool(interval[0] <= paper <= interval[1] and low <= aucs[0] <= high),
        remark=remark,
    )


def _make_sweep_rows(
    name: str, sweep: ThresholdSweepResult, exact: ThresholdSweepResult
) -> list[Row]:
    rows = []
    for label, metric in METRICS.items():
        curve = sweep.curves[metric]
        tested = ~np.isnan(curve.pvalue)
        outside = _is_rejected(curve) & tested
        worst = curve.largest()
        alike = np.mean((_is_rejected(exact.curves[metric]) == _is_rejected(curve))[tested])
        at = sweep.thresholds
        between = f"from {at[outside].min():.2f} to {at[outside].max():.2f}" if any(outside) else ""
        rows += [
            Row(
                quantity=f"{name}, {label}: largest gap",
                paper=None,
                ours=float(curve.difference[worst]),
                remark=(
                    f"Women minus men, at the threshold {at[worst]:.2f}; p = "
                    f"{curve.global_pvalue:.4f} for all thresholds together."
                ),
            ),
            Row(
                quantity=f"{name}, {label}: share of thresholds with a significant gap",
                paper=None,
                ours=float(outside.sum() / tested.sum()),
                remark=(
                    f"{outside.sum()} of {tested.sum()} {between}".rstrip()
                    + f"; the exact test says the same at {alike:.0%} of the thresholds."
                ),
            ),
        ]
    return rows


def _is_rejected(curve: MetricSweep) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray(curve.pvalue <= LEVEL)


def _tabulate_sweep(name: str, sweep: ThresholdSweepResult) -> Columns:
    columns: Columns = {}
    for label, metric in METRICS.items():
        curve = sweep.curves[metric]
        n = len(sweep.thresholds)
        part = {
            "data": [name] * n,
            "metric": [label] * n,
            "threshold": sweep.thresholds.tolist(),
            "women": _to_list(curve.values["Female"]),
            "men": _to_list(curve.values["Male"]),
            "gap": _to_list(curve.difference),
            "critical_gap": _to_list(curve.pointwise_band[1]),
            "simultaneous_gap": _to_list(curve.simultaneous_band[1]),
            "pvalue": _to_list(curve.pvalue),
            "adjusted_pvalue": _to_list(curve.adjusted_pvalue),
            "status": curve.status.tolist(),
        }
        _extend(columns, part)
    return columns


# Figure 3.


def _test_sample(
    everyone: ScoredRows, n: int, stream: list[int], n_jobs: int | None
) -> dict[str, tuple[float, float, float]]:
    """Return gap, critical gap and p-value of each metric in a random sample."""
    rng = np.random.default_rng(stream)
    rows = rng.choice(len(everyone.label), n, replace=False)
    sweep = _sweep(everyone.at(rows), [CUT], "pooled", int(rng.integers(2**53)), n_jobs)
    return {
        metric: (
            float(curve.difference[0]),
            float(curve.pointwise_band[1][0]),
            float(curve.pvalue[0]),
        )
        for metric, curve in sweep.curves.items()
    }


def _make_size_rows(name: str, label: str, tests: dict[int, Array]) -> list[Row]:
    """Return the critical gap of the smallest and largest samples, and its exponent of n."""
    rows = []
    z = normal_quantile(CONFIDENCE)
    for n in (min(tests), max(tests)):
        critical = tests[n][:, 1]
        mean, error = critical.mean(), critical.std(ddof=1) / math.sqrt(len(critical))
        rows.append(
            Row(
                quantity=f"{name}, {label}: critical gap at {n:,} rows",
                paper=None,
                ours=float(mean),
                interval=(float(mean - z * error), float(mean + z * error)),
                remark=_describe_detected(tests[n]),
            )
        )
    slope, error = _fit_slope(tests)
    rows.append(
        Row(
            quantity=f"{name}, {label}: exponent of n",
            paper=-0.5,
            ours=slope,
            interval=(slope - z * error, slope + z * error),
            agrees=abs(slope + 0.5) <= _SLACK,
            remark=f"Theory's value, as the paper's is a curve; ours may miss it by {_SLACK:g}.",
        )
    )
    return rows


def _fit_slope(tests: dict[int, Array]) -> tuple[float, float]:
    """Return the slope of log critical gap on log n, and its Monte Carlo error."""
    x = np.log([*tests])
    weight = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    means = np.array([one[:, 1].mean() for one in tests.values()])
    errors = np.array([one[:, 1].std(ddof=1) / math.sqrt(len(one)) for one in tests.values()])
    error = math.sqrt(((weight * errors / means) ** 2).sum())
    return float(weight @ np.log(means)), error


def _find_smallest(sample: Array) -> float | None:
    """Return the smallest detected gap; None if all gaps or none were detected."""
    is_detected = sample[:, 2] <= LEVEL
    if is_detected.all() or not is_detected.any():
        return None
    return float(np.abs(sample[is_detected, 0]).min())


def _describe_detected(sample: Array) -> str:
    smallest, n_detected = _find_smallest(sample), int((sample[:, 2] <= LEVEL).sum())
    text = f"{n_detected} of {len(sample)} samples had a significant gap"
    return f"{text}." if smallest is None else f"{text}, the smallest one {smallest:.4f}."


def _detect_pooled(sizes: tuple[float, float], value: float) -> float:
    """Return the gap that the pooled test detects, in its normal limit."""
    level = Level(LEVEL)
    power_of = rate_power(sizes, level, most_tables=0)
    return smallest_gap(lambda one: power_of(one, value), value, level.sides, POWER, (0.0, 1.0))


def _tabulate_sizes(
    name: str, label: str, tests: dict[int, Array], everyone: ScoredRows
) -> Columns:
    women = everyone.sex == GROUPS[0]
    bases = float(everyone.label[women].mean()), float(everyone.label[~women].mean())
    is_counted = everyone.label[~women] == (1 if label == "recall" else 0)
    value = float((everyone.score[~women][is_counted] >= CUT).mean())
    parts = [base if label == "recall" else 1 - base for base in bases]
    shares = float(women.mean()) * parts[0], float((~women).mean()) * parts[1]
    planned = [_detect_pooled((n * shares[0], n * shares[1]), value) for n in tests]
    return {
        "data": [name] * len(tests),
        "metric": [label] * len(tests),
        "rows": [*tests],
        "critical_gap": [float(one[:, 1].mean()) for one in tests.values()],
        "smallest_detected_gap": [_find_smallest(one) for one in tests.values()],
        "share_detected": [float(np.mean(one[:, 2] <= LEVEL)) for one in tests.values()],
        "mean_gap": [float(one[:, 0].mean()) for one in tests.values()],
        "detectable_gap": planned,
    }


# Both.


def _list_settings(seed: int, **more: Any) -> dict[str, Any]:
    return {"seed": seed, "n_resamples": PERMUTATIONS, "level": LEVEL, "C": STRENGTH, **more}


def _extend(columns: Columns, more: Columns) -> None:
    for name, values in more.items():
        columns.setdefault(name, []).extend(values)


def _to_list(values: Array) -> list[float | None]:
    return [float(one) if math.isfinite(one) else None for one in values]
