"""The formula of every metric, once for readers and for tests: as Python, and as MathML.

``tests/project/test_docs_site.py`` evaluates each formula on data and compares it with what
fairperm returns, so that a page cannot show another formula than the one that is computed.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

# n rows; y the label or outcome, p the prediction, s the score, b = p − y + 1 the benefit.
FORMULAS = {
    "selection_rate": "(TP + FP) / n",
    "base_rate": "(TP + FN) / n",
    "true_positive_rate": "TP / (TP + FN)",
    "false_negative_rate": "FN / (TP + FN)",
    "true_negative_rate": "TN / (TN + FP)",
    "false_positive_rate": "FP / (TN + FP)",
    "positive_predictive_value": "TP / (TP + FP)",
    "false_discovery_rate": "FP / (TP + FP)",
    "negative_predictive_value": "TN / (TN + FN)",
    "false_omission_rate": "FN / (TN + FN)",
    "accuracy": "mean(y == p)",
    "error_rate": "mean(y != p)",
    "f1_score": "2 * TP / (2 * TP + FP + FN)",
    "balanced_accuracy": "(TP / (TP + FN) + TN / (TN + FP)) / 2",
    "jaccard_score": "TP / (TP + FP + FN)",
    "matthews_corrcoef": (
        "(TP * TN - FP * FN) / sqrt((TP + FP) * (TP + FN) * (TN + FP) * (TN + FN))"
    ),
    "recall_macro": "classes(TP_k / (TP_k + FN_k))",
    "precision_macro": "classes(TP_k / (TP_k + FP_k))",
    "f1_macro": "classes(2 * TP_k / (2 * TP_k + FP_k + FN_k))",
    "roc_auc": "pairs((s_i > s_j) + (s_i == s_j) / 2)",
    "gini": "2 * pairs((s_i > s_j) + (s_i == s_j) / 2) - 1",
    "average_precision": "positives(TP_i / (TP_i + FP_i))",
    "roc_auc_ovr": "classes(AUC_k)",
    "roc_auc_ovr_weighted": "rows_of_classes(n_k * AUC_k) / n",
    "brier_score": "mean((s - y) ** 2)",
    "log_loss": "-mean(y * log(s) + (1 - y) * log(1 - s))",
    "mean_score": "mean(s)",
    "mean_score_positives": "sum(y * s) / sum(y)",
    "mean_score_negatives": "sum((1 - y) * s) / sum(1 - y)",
    "calibration_in_the_large": "mean(s - y)",
    "mean_error": "mean(p - y)",
    "mean_absolute_error": "mean(abs(p - y))",
    "mean_squared_error": "mean((p - y) ** 2)",
    "root_mean_squared_error": "sqrt(mean((p - y) ** 2))",
    "r2_score": "1 - sum((p - y) ** 2) / sum((y - mean(y)) ** 2)",
    "mean_absolute_percentage_error": "mean(abs(p - y) / abs(y))",
    "pinball_loss": "mean(abs(p - y)) / 2",
    "mean_poisson_deviance": "2 * mean(y * log(y / p) - y + p)",
    "mean_gamma_deviance": "2 * mean(log(p / y) + y / p - 1)",
    "mean_prediction": "mean(p)",
    "mean_outcome": "mean(y)",
    "generalized_entropy_index": "mean((b / mean(b)) ** 2 - 1) / 2",
    "theil_t_index": "mean(b / mean(b) * log(b / mean(b)))",
    "theil_l_index": "mean(log(mean(b) / b))",
    "atkinson_index": "1 - mean(sqrt(b)) ** 2 / mean(b)",
    "coefficient_of_variation": "sqrt(mean((b - mean(b)) ** 2)) / mean(b)",
    "equalized_odds": "max(abs(TPR_A - TPR_B), abs(FPR_A - FPR_B))",
}

_ROWS = {"y": "y", "p": "ŷ", "s": "s", "b": "b"}
_SIGNS = {
    ast.Add: "+",
    ast.Sub: "−",
    ast.Eq: "=",
    ast.NotEq: "≠",
    ast.Gt: "&gt;",
}
_SUMS = {  # by function: what is before the sum, and what is below its sign
    "mean": ("n", "i"),
    "sum": ("", "i"),
    "classes": ("K", "k"),
    "rows_of_classes": ("", "k"),
    "pairs": ("n₁n₀", "i: y=1, j: y=0"),
    "positives": ("n₁", "i: y=1"),
}


def value_of(formula: str, **known: Any) -> float:
    """Return what a formula is for these columns and counts."""
    functions: dict[str, Any] = dict.fromkeys(("mean", "classes", "pairs", "positives"), np.mean)
    functions |= {"sum": np.sum, "rows_of_classes": np.sum}
    functions |= {"sqrt": np.sqrt, "log": np.log, "abs": np.abs}
    scope: dict[str, Any] = {"__builtins__": {}, "max": max, **functions, **known}
    return float(eval(formula, scope))  # noqa: S307 (our own words, a few lines above)


def as_mathml(formula: str) -> str:
    """Return a formula as MathML, which browsers show without a script."""
    return f'<math displaystyle="true">{_shown(ast.parse(formula, mode="eval").body)}</math>'


def _shown(node: ast.expr) -> str:
    match node:
        case ast.Constant():
            return f"<mn>{node.value!r}</mn>"
        case ast.Name():
            return _name(node.id)
        case ast.UnaryOp(op=ast.USub()):
            return f"<mrow><mo>−</mo>{_shown(node.operand)}</mrow>"
        case ast.Compare(left=left, ops=[relation], comparators=[right]):
            inside = f"{_shown(left)}<mo>{_SIGNS[type(relation)]}</mo>{_shown(right)}"
            return f"<mrow><mo>[</mo>{inside}<mo>]</mo></mrow>"
        case ast.BinOp(op=ast.Div()):
            return f"<mfrac>{_row(node.left)}{_row(node.right)}</mfrac>"
        case ast.BinOp(op=ast.Pow()):
            return f"<msup>{_inside(node.left)}{_shown(node.right)}</msup>"
        case ast.BinOp(op=ast.Mult()):
            sign = "<mo>&#8290;</mo>" if isinstance(node.left, ast.Constant) else "<mo>·</mo>"
            return f"<mrow>{_factor(node.left)}{sign}{_factor(node.right)}</mrow>"
        case ast.BinOp():
            sign = _SIGNS[type(node.op)]
            return f"<mrow>{_shown(node.left)}<mo>{sign}</mo>{_shown(node.right)}</mrow>"
        case ast.Call(func=ast.Name(id=function)):
            return _call(function, node.args)
    raise TypeError(f"no way to show {ast.dump(node)}")


def _call(function: str, given: list[ast.expr]) -> str:
    inside = "<mo>,</mo>".join(map(_shown, given))
    if function == "sqrt":
        return f"<msqrt>{inside}</msqrt>"
    if function == "abs":  # a bar would end the cell of a Markdown table
        return f"<mrow><mo>&#124;</mo>{inside}<mo>&#124;</mo></mrow>"
    if function == "mean" and isinstance(given[0], ast.Name):
        return f"<mover><mi>{_ROWS[given[0].id]}</mi><mo>¯</mo></mover>"
    if function in _SUMS:
        over, below = _SUMS[function]
        before = f"<mfrac><mn>1</mn><mi>{over}</mi></mfrac>" if over else ""
        sign = f"<munder><mo>∑</mo><mtext>{below}</mtext></munder>"
        return f"<mrow>{before}{sign}{_factor(given[0])}</mrow>"
    return f"<mrow><mi>{function}</mi><mo>(</mo>{inside}<mo>)</mo></mrow>"


def _name(name: str) -> str:
    word, _, index = name.partition("_")
    if word in _ROWS:
        index = index or "i"
    word = f"<mi>{_ROWS.get(word, word)}</mi>"
    return f"<msub>{word}<mi>{index}</mi></msub>" if index else word


def _row(node: ast.expr) -> str:
    return f"<mrow>{_shown(node)}</mrow>"


def _inside(node: ast.expr) -> str:
    """Return a part as one thing, in parentheses unless it is a name."""
    if isinstance(node, ast.Name) or _is_bar(node):
        return _shown(node)
    return f"<mrow><mo>(</mo>{_shown(node)}<mo>)</mo></mrow>"


def _factor(node: ast.expr) -> str:
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub))
    return _inside(node) if is_sum else _shown(node)


def _is_bar(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "mean"
        and isinstance(node.args[0], ast.Name)
    )
