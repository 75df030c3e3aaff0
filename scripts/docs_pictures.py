"""Draw the pictures of the documentation: ``python -m scripts.docs_pictures`` (some minutes).

One is the audit of docs/tutorial.md. Two are for docs/concepts.md: both groups have the same false
negative rate, 0.1, and 200 rows, and their base rates differ. So the weak null holds, and every
rejection is a false alarm. Two more are for docs/method.md: what each scheme exchanges, and two
groups that have the same mean, of which the smaller one varies more. The last is for
docs/how-to/inferred-groups.md: a gap of groups whose members are known, and what is found if not.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

import fairperm
from fairperm import plots
from fairperm.inference.skewness import remove_skewness, skewness
from studies import simulate

SEED = 2020
TESTS: dict[str, dict[str, Any]] = {
    "shuffle, not studentized": {"scheme": "pooled", "variance": None},
    "shuffle, studentized": {"scheme": "pooled"},
    "fairperm's default": {},
}
_COLOURS = {
    "light": ["#c04a00", "#0072b2", "#007a58"],
    "dark": ["#f28c45", "#56b4e9", "#2dbf94"],
}
_BINS = 24


def population(gap: float) -> simulate.Rates:
    """Return groups whose base rates are this far apart, and whose error rates are the same."""
    return simulate.Rates(n=(200, 200), base_rate=(0.5 + gap / 2, 0.5 - gap / 2))


def test(columns: dict[str, Any], **options: Any) -> fairperm.PermutationTestResult:
    """Test the gap of the false negative rate."""
    return fairperm.permutation_test(
        *("y_true", "y_pred"),
        sensitive_features="group",
        metric="false_negative_rate",
        data=columns,
        n_resamples=999,
        rng=SEED,
        **options,
    )


def levels(data_sets: int) -> list[dict[str, Any]]:
    """Return how often each test rejects at 0.05, by the gap between base rates."""
    rows = []
    for gap in (0.0, 0.2, 0.4, 0.6, 0.7):
        rng = np.random.default_rng(SEED)
        drawn = [population(gap).draw(rng) for _ in range(data_sets)]
        for name, options in TESTS.items():
            rejected = sum(test(one, **options).pvalue <= 0.05 for one in drawn)
            rows.append({"gap": gap, "test": name, "rejected": rejected / data_sets})
    return rows


def spreads(data_sets: int) -> list[dict[str, Any]]:
    """Return how the gap varies between samples, and how it varies when labels are shuffled."""
    rng, many = np.random.default_rng(SEED), population(0.6)
    tn_fp_fn_tp = many.counts(data_sets, rng)
    misses, positives = tn_fp_fn_tp[..., 2], tn_fp_fn_tp[..., 2:].sum(axis=-1)
    gaps = (misses / positives) @ [1, -1]
    pooled = misses.sum(axis=1) / positives.sum(axis=1)
    errors = np.sqrt(pooled * (1 - pooled) * (1 / positives).sum(axis=1))
    sample = many.draw(rng)
    rows = []
    for title, real, options, reach in (
        ("Gap", gaps, {"variance": None}, 0.2),
        ("Gap divided by its standard error", gaps / errors, {}, 4.0),
    ):
        result = test(sample, scheme="pooled", **options)
        rows += compared(title, real, result, np.linspace(-reach, reach, _BINS + 1))
    return rows


def compared(
    title: str, real: Any, result: fairperm.PermutationTestResult, edges: Any
) -> list[dict[str, Any]]:
    """Return the shares between edges of a statistic of repeated samples, and of permutations."""
    rows = []
    for name, values, weights in (
        ("over repeated samples (true distribution)", real, None),
        ("over shuffled group labels", result.null_distribution, result.null_probabilities),
    ):
        share, _ = np.histogram(values, edges, weights=weights)
        share = share / (len(values) if weights is None else weights.sum())
        rows += [
            {"panel": title, "of": name, "low": low, "high": high, "share": one}
            for low, high, one in zip(edges, edges[1:], share, strict=False)
        ]
    return rows


def skewed(data_sets: int) -> list[dict[str, Any]]:
    """Return how S and H vary between samples of skewed values, and when labels are shuffled."""
    rng, sizes = np.random.default_rng(SEED), (40, 400)

    def draw(*shape: int) -> list[Any]:
        small, large = ((*shape, n) for n in sizes)
        return [rng.exponential(size=small) - 1, rng.normal(size=large)]

    gap, variance, third = 0.0, 0.0, 0.0
    for sign, side in zip((1, -1), draw(data_sets), strict=True):
        n, mean = side.shape[-1], side.mean(axis=-1, keepdims=True)
        gap = gap + sign * mean[:, 0]
        variance = variance + ((side - mean) ** 2).mean(axis=-1) / n
        third = third + sign * ((side - mean) ** 3).mean(axis=-1) / n**2
    error = np.sqrt(variance)
    s = gap / error
    h = remove_skewness(s, skewness(np.asarray(third), error))
    sample, rows = np.concatenate(draw()), []
    for title, variance_name, real in (
        ("S: the gap divided by its standard error", "delta", s),
        ("H: S without its skewness", "hall", h),
    ):
        result = fairperm.permutation_test(
            sample,
            sensitive_features=np.repeat(["small", "large"], sizes),
            groups=("small", "large"),
            metric="mean_outcome",
            variance=variance_name,  # type: ignore[arg-type]
            n_resamples=19_999,
            rng=SEED,
        )
        rows += compared(title, real, result, np.linspace(-4.5, 4.5, _BINS + 1))
    return rows


def level_chart(rows: list[dict[str, Any]], data_sets: int, mode: str) -> Any:
    """Draw how often each test rejects."""
    colour = alt.Color(
        "test:N",
        scale=alt.Scale(domain=list(TESTS), range=_COLOURS[mode]),
        legend=alt.Legend(title=None, orient="top-left"),
    )
    x = alt.X(
        "gap:Q",
        title="Base rate of the first group minus that of the second",
        axis=alt.Axis(grid=False, values=[0, 0.2, 0.4, 0.6], format=".1f"),
    )
    y = alt.Y(
        "rejected:Q", title="False alarms at level 0.05", axis=alt.Axis(format="%", tickCount=5)
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y, color=colour)
    marks = base.encode(shape=alt.Shape("test:N", scale=alt.Scale(domain=list(TESTS))))
    subtitle = f"Share of {data_sets:,} data sets that each test rejects. Dashed: level 0.05."
    nominal = alt.Chart(alt.InlineData(values=[{"rejected": 0.05}]))
    return alt.layer(
        nominal.mark_rule(strokeDash=[4, 4], color="#808080").encode(y="rejected:Q"),
        base.mark_line(strokeWidth=2),
        marks.mark_point(filled=True, size=70, opacity=1),
        title=alt.Title(
            "False alarms when the false negative rates are equal",
            subtitle=subtitle,
        ),
        width=560,
        height=260,
        config=plots.theme(mode),
    )


def spread_chart(
    rows: list[dict[str, Any]], title: str, subtitle: str, mode: str
) -> alt.HConcatChart:
    """Draw the two distributions that must agree, of one statistic and of a better one."""
    names = list(dict.fromkeys(row["of"] for row in rows))
    colour = alt.Color(
        "of:N",
        scale=alt.Scale(domain=names, range=_COLOURS[mode][1::-1]),
        legend=alt.Legend(title=None, orient="top", direction="vertical"),
    )
    panels = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        shown = [row for row in rows if row["panel"] == panel]
        chart = alt.Chart(alt.InlineData(values=shown)).encode(
            x=alt.X("low:Q", bin="binned", title=panel, axis=alt.Axis(grid=False, tickCount=5)),
            x2="high:Q",
            y=alt.Y("share:Q", stack=None, title=None, axis=alt.Axis(format="%", tickCount=4)),
            color=colour,
        )
        bars = chart.mark_bar(opacity=0.55, binSpacing=0)
        panels.append(bars.properties(width=265, height=200))
    return alt.hconcat(
        *panels,
        title=alt.Title(title, subtitle=subtitle),
        config=plots.theme(mode),
    )


def inferred(n: int) -> list[dict[str, Any]]:
    """Return the gap in loans between groups, known and inferred, with its interval or bounds."""
    rng = np.random.default_rng(1)
    area = rng.integers(0, 20, n)
    black = ((area + 0.5) / 20) ** 2
    race = np.where(rng.random(n) < black, "black", "white")
    rows = []
    for panel, chance in (
        ("Approval depends on race alone", np.where(race == "black", 0.5, 0.7)),
        ("Approval depends on the area alone", 0.8 - 0.4 * black),
    ):
        approved = rng.random(n) < chance
        truth = chance[race == "black"].mean() - chance[race == "white"].mean()
        likely: dict[str, Any] = {"group_probabilities": {"black": black, "white": 1 - black}}
        ways: dict[str, dict[str, Any]] = {
            "race is known": {"sensitive_features": race},
            "likelier race": {"sensitive_features": np.where(black > 0.5, "black", "white")},
            "weighting": likely | {"proxy_assumption": "group_given_proxy"},
            "least squares": likely | {"proxy": area},
        }
        for name, options in ways.items():
            options |= {"y_pred": approved, "metric": "selection_rate", "rng": SEED}
            result: Any = fairperm.permutation_test(**options)
            low, high = result.confidence_interval
            found = {"gap": result.difference, "low": low, "high": high}
            rows.append({"panel": panel, "of": name, "truth": truth, **found})
        low, high = result.bounds_interval
        rows.append({"panel": panel, "of": "bounds", "low": low, "high": high})
    return rows


def inferred_chart(rows: list[dict[str, Any]], mode: str) -> alt.HConcatChart:
    """Draw what each way of inferring groups finds beside the gap of known groups."""
    names, panels = list(dict.fromkeys(row["of"] for row in rows)), []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        shown = [row for row in rows if row["panel"] == panel]
        base = alt.Chart(alt.InlineData(values=shown)).encode(
            y=alt.Y("of:N", sort=names, title=None, axis=alt.Axis(grid=False)),
            color=alt.value(_COLOURS[mode][1]),
        )
        across = alt.X(
            "low:Q",
            title="Gap in loans approved: black − white",
            scale=alt.Scale(domain=[-0.8, 0.4]),
            axis=alt.Axis(format="+.1f", values=[-0.8, -0.4, 0, 0.4]),
        )
        truth = alt.Chart(alt.InlineData(values=shown[:1])).mark_rule(strokeDash=[4, 4])
        panels.append(
            alt.layer(
                truth.encode(x="truth:Q", color=alt.value("#808080")),
                base.mark_rule(strokeWidth=3).encode(x=across, x2="high:Q"),
                base.mark_point(filled=True, size=70, opacity=1).encode(x="gap:Q"),
                title=panel,
                width=230,
                height=150,
            )
        )
    return alt.hconcat(*panels, config=plots.theme(mode))


SCHEMES = {  # what is inside a frame is exchanged; what is faded is not looked at
    "pooled": ("among all rows", [(-0.6, 3.6)], None),
    "within_label": ("among rows of one label", [(-0.6, 1.45), (1.55, 3.6)], None),
    "denominator": ("among the positives", [(-0.6, 1.45)], 2),
    "unconditional": ("not at all: two coins", [], 2),
}


def exchange_chart(mode: str) -> alt.HConcatChart:
    """Draw which rows each scheme exchanges groups among, for a true positive rate."""
    positives = {"A": 8, "B": 4}
    rows: list[dict[str, Any]] = []
    for group, first in (("A", 0), ("B", 6)):
        for number in range(12):
            label = "positive" if number < positives[group] else "negative"
            place = number if label == "positive" else number - positives[group]
            x, y = first + place % 4, place // 4 + (0 if label == "positive" else 2)
            rows.append({"group": group, "label": label, "x": x, "y": y})
    across = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-1, 10]))
    down = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[3.8, -0.8]))
    panels = []
    for name, (among, frames, faded_from) in SCHEMES.items():
        seen = [one | {"seen": faded_from is None or one["y"] < faded_from} for one in rows]
        dots = (
            alt.Chart(alt.InlineData(values=seen))
            .mark_point(filled=True, size=95)
            .encode(
                x=across,
                y=down,
                color=alt.Color(
                    "group:N",
                    scale=alt.Scale(range=_COLOURS[mode][1::-1]),
                    legend=alt.Legend(orient="top", title="group"),
                ),
                shape=alt.Shape(
                    "label:N",
                    scale=alt.Scale(domain=["positive", "negative"], range=["circle", "diamond"]),
                    legend=alt.Legend(orient="top", title="label"),
                ),
                opacity=alt.Opacity(
                    "seen:N", scale=alt.Scale(domain=[True, False], range=[1, 0.2]), legend=None
                ),
            )
        )
        ends = [{"x": -0.7, "x2": 9.7, "y": low, "y2": high} for low, high in frames]
        frame = (
            alt.Chart(alt.InlineData(values=ends))
            .mark_rect(filled=False, stroke="#808080", strokeDash=[4, 3], cornerRadius=6)
            .encode(x=across, x2="x2:Q", y=down, y2="y2:Q")
        )
        panels.append(
            alt.layer(
                frame, dots, title=alt.Title(name, subtitle=among), width=150, height=110
            ).resolve_scale(color="shared")
        )
    return alt.hconcat(*panels, spacing=14, config=plots.theme(mode))


def compas() -> fairperm.Audit:
    """Return the audit of docs/tutorial.md."""
    return fairperm.audit(
        "two_year_recid",
        y_score="decile_score",
        threshold=5,
        sensitive_features=["race", "sex"],
        metrics=["false_positive_rate", "false_negative_rate"],
        compare="reference",
        margin=0.05,
        data=fairperm.datasets.load_compas(),
        rng=1,
    )


def main() -> None:
    """Write all pictures, for light and for dark pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "images")
    parser.add_argument("--data-sets", type=int, default=2000)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    audit, found, spread = compas(), levels(given.data_sets), spreads(100_000)
    two_skewed, likely = skewed(20_000), inferred(6000)
    for mode in ("light", "dark"):
        audit.plot(mode=mode).save(given.out / f"compas-{mode}.svg")
        inferred_chart(likely, mode).save(given.out / f"inferred-{mode}.svg")
        exchange_chart(mode).save(given.out / f"exchange-{mode}.svg")
        level_chart(found, given.data_sets, mode).save(given.out / f"level-{mode}.svg")
        spread_chart(
            spread,
            "Distribution of the gap when the true gap is zero",
            "Base rates 0.8 and 0.2, false negative rates 0.1 and 0.1, 200 rows a group.",
            mode,
        ).save(given.out / f"spread-{mode}.svg")
        spread_chart(
            two_skewed,
            "Distribution of the statistic when the true gap is zero",
            "The same mean and spread: 40 exponential values against 400 normal ones.",
            mode,
        ).save(given.out / f"skewness-{mode}.svg")
    for row in found:
        print(f"{row['gap']:.1f}  {row['rejected']:.4f}  {row['test']}")


if __name__ == "__main__":
    main()
