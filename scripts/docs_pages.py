"""The pages generated from the program itself: metrics and commands."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import get_scorer_names

import fairperm
from fairperm.cli.main import app
from fairperm.cli.options import ARGUMENTS
from fairperm.metrics import get_metric, metric_names
from fairperm.metrics.inequality import INEQUALITY_METRICS
from scripts.docs_formulas import FORMULAS, as_mathml

if TYPE_CHECKING:
    from fairperm import PermutationTestResult
    from fairperm.cli.command import Command
    from fairperm.cli.options import Option

_SECTIONS = {  # by the kinds that the registry knows
    "Labels and predictions": ("binary", "labels", "classes"),
    "Labels and scores": ("score", "probability", "class_scores"),
    "Outcomes and predictions": ("regression",),
}
_COLUMNS = ("y_true", "y_pred", "y_score")

_METRICS_HEAD = """\
# Metrics

This page is generated from the registry of metrics. TP, FP, FN and TN count the rows of a group; n
is the number of its rows, y the label or outcome, ŷ the prediction and s the score. [condition] is
1 if the condition is true and 0 otherwise. The tests evaluate every formula and compare it with
the value that fairperm returns. Pass any of the names as `metric=`; `fairperm metrics` lists them
in a terminal.

"Default" is the [scheme](../method.md#schemes-what-is-exchanged) and the
[variance](../method.md#variances-how-the-gap-is-studentized) that `auto` selects without weights
and clusters.
"""
_METRICS_FOOT = """
## Notes

- `roc_auc_ovr` and `roc_auc_ovr_weighted` have a column of scores for each class k, of n_k rows;
  AUC_k is the `roc_auc` of class k against all other classes.
- `accuracy`, `error_rate` and the means over classes, such as `f1_macro`, accept any number K of
  classes. `recall[cat]`, and the same of any other metric of binary labels, is that of
  [one class](../how-to/classes.md); TP_k, FP_k and FN_k are the counts with class k as positive.
- `log_loss` clips scores to [ε, 1 − ε] with ε = 2.2·10⁻¹⁶, and `mean_absolute_percentage_error`
  replaces smaller absolute outcomes by that ε, both like scikit-learn.
- `pinball_loss` is that of the median, as in scikit-learn; `pinball_loss(0.9)` is that of the
  quantile 0.9, and so on. The deviances need predictions above 0, and
  outcomes above 0 (gamma) or not below 0 (Poisson).
- Inequality indices are computed from the benefit b = ŷ − y + 1 (Speicher et al., 2018). For other
  exponents and benefits use
  [`generalized_entropy_index`][fairperm.metrics.generalized_entropy_index] and
  [`atkinson_index`][fairperm.metrics.atkinson_index].
- `equalized_odds` is one test of two rates: its p-value is for the larger of both studentized gaps.
- To add your own metric, use [`register_metric`][fairperm.register_metric] or pass any function.
"""
_SCORERS = """
## Names of scikit-learn's scorers

They are accepted wherever a metric is named. A name with `neg_` is that of an error: its value has
a minus sign, its p-value is the error's.

- These are metrics of this page: {own}.
- Of these scikit-learn computes the values, and a bootstrap the standard error: {others}.
"""


def metrics_page() -> str:
    """Return the reference of metrics, as Markdown."""
    parts = [_METRICS_HEAD]
    unequal = [metric.name for metric in INEQUALITY_METRICS]
    sections = {
        title: [name for name in metric_names() if get_metric(name).kind in kinds]
        for title, kinds in _SECTIONS.items()
    }
    for title, names in {**sections, "Inequality inside a group": unequal}.items():
        parts.append(f"\n## {title}\n")
        parts.append("| metric | formula | default |\n|---|---|---|")
        parts += [_metric_row(name) for name in names if names is unequal or name not in unequal]
    return "\n".join([*parts, _list_scorers(), _METRICS_FOOT])


def _list_scorers() -> str:
    # without those for rows that have several labels
    names = [name for name in get_scorer_names() if not name.endswith("_samples")]
    others = [name for name in names if get_metric(name).is_function]
    own = (name for name in names if name not in others)
    return _SCORERS.format(
        own=", ".join(map(_name_scorer, own)), others=", ".join(f"`{one}`" for one in others)
    )


def _name_scorer(name: str) -> str:
    full = get_metric(name).name
    return f"`{name}`" if full == name else f"`{name}` (`{full}`)"


def _metric_row(name: str) -> str:
    metric, result = get_metric(name), _sample_result(name)
    also = f"<br><small>also {', '.join(f'`{one}`' for one in metric.aliases)}</small>"
    about = f"`{name}`{{ #{name} }}<br>{metric.meaning}{also if metric.aliases else ''}"
    test = f"`{result.scheme}`<br>`{result.variance}`"
    return f"| {about} | {as_mathml(FORMULAS[name])} | {test} |"


def _sample_result(name: str) -> PermutationTestResult:
    """Return a test of the metric on made-up data by `auto`."""
    metric, rng = get_metric(name), np.random.default_rng(0)
    is_regression = metric.kind == "regression"
    columns: dict[str, Any] = {
        "y_true": rng.uniform(1, 2, 200) if is_regression else rng.random(200) < 0.5,
        "y_pred": rng.uniform(1, 2, 200) if is_regression else rng.random(200) < 0.5,
        "y_score": rng.random(200),
    }
    if metric.kind == "class_scores":
        columns["y_score"] = rng.random((200, 2))
    needed = {column: columns[column] for column in _COLUMNS if column in metric.columns}
    needed.setdefault("y_true", columns["y_true"])
    groups = ["a", "b"] * 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        return fairperm.permutation_test(
            **needed, sensitive_features=groups, metric=name, n_resamples=19, rng=0
        )


_COMMANDS_HEAD = """\
# Command line

This page is generated from the program. An option with … may be given several times, and each may
also be called as in Python: `--n-resamples` for `--resamples`.
[Shells complete them](../how-to/files.md#shell-completion). Options can also be in `fairperm.toml`,
or in `[tool.fairperm]` of `pyproject.toml` ([how](../how-to/ci-gate.md#options-in-a-file)). Exit
codes: 0 for success, 1 if a comparison has a `--fail-on` verdict, 2 for an error.
"""


def commands_page() -> str:
    """Return the reference of the command line, as Markdown."""
    return "\n".join([_COMMANDS_HEAD, *(_command(*one) for one in app.commands.items())])


def _command(name: str, command: Command) -> str:
    lines = [f"\n## fairperm {name}\n", f"{' '.join((command.help or '').split())}\n"]
    files = "".join(f" {one.value}" for one in command.options if one.name in ARGUMENTS)
    lines.append(f"```text\nfairperm {name}{files} [options]\n```\n")
    lines.append("| option | meaning |\n|---|---|")
    lines += [f"| {_option(one)} | {_cell(one.full_text)} |" for one in command.options]
    return "\n".join(lines)


def _option(option: Option) -> str:
    if option.name in ARGUMENTS:
        return f"<small>{option.value}</small>"
    names = ", ".join(f"`{name}`" for name in (*option.short, option.spelt))
    return f"{names} <small>{_cell(option.value)}</small>" if option.value else names


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "&#124;")
