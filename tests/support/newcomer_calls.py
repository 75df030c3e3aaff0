"""Ask what newcomers ask, and print how each call ended, as JSON.

``python -m tests.support.newcomer_calls FOLDER``; ``python -m tests.support.blocked altair
tests.support.newcomer_calls FOLDER`` asks without a package.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairperm
from tests.support.commands import run

ASKED = ("--group", "g", "--seed", "1")
RATES = ("--label", "y", "--prediction", "p", *ASKED)
SCORES = ("--label", "y", "--score", "s", *ASKED)
ONE = ("--metric", "fpr")
COMMANDS: dict[str, tuple[object, ...]] = {
    "rates": ("audit", "x.csv", *RATES, "--json", "-"),
    "all outputs": (
        *("audit", "x.csv", *RATES, "--report", "r.html", "--markdown", "r.md", "--csv", "r.csv"),
        *("--junit", "r.xml", "--fail-on", "disparity", "--margin", "0.9"),
    ),
    "workbook": ("audit", "x.csv", *RATES, "--xlsx", "r.xlsx"),
    "ranks": ("audit", "x.csv", *SCORES, "--metric", "roc_auc", "--resamples", "99", "--json", "-"),
    "means": ("test", "x.csv", *SCORES, "--metric", "brier_score", "--resamples", "99"),
    "JSON lines": ("audit", "x.jsonl", *RATES, "--json", "-"),
    "Parquet": ("audit", "x.parquet", *RATES, "--json", "-"),
    "Excel": ("audit", "x.xlsx", *RATES, "--json", "-"),
    "SQL": ("audit", "x.csv", *RATES, "--where", "s > 0.1", "--json", "-"),
    "two models": ("compare", "x.csv", *RATES, "--prediction-new", "y", *ONE, "--json", "-"),
    "selection": ("selection", "x.csv", "--selected", "p", "--group", "g", "--report", "s.html"),
    "sweep": ("sweep", "x.csv", *SCORES, *ONE, "--json", "-"),
    "subgroups": ("discover", "x.csv", *RATES[:4], "--feature", "g", *ONE, "--seed", "1"),
    "periods": ("periods", "x.csv", *RATES, *ONE, "--period", "c", "--json", "-"),
    "ranking": ("ranking", "x.csv", "--score", "s", "--group", "g", "--query", "c", "--seed", "1",
                "--metric", "exposure", "--json", "-"),
    "monitor": ("monitor", "x.csv", *RATES, *ONE, "--state", "state.json", "--batch", "1"),
    "power": ("power", "--metric", "selection_rate", "--first", "0.2", "--second", "0.3"),
    "metrics": ("metrics",),
    "demo": ("demo",),
    "help": ("--help",),
}  # fmt: skip


def ask_in_python() -> dict[str, Callable[[], object]]:
    """Return calls by what they are about."""
    compas = fairperm.datasets.load_compas()
    asked: dict[str, Any] = {"sensitive_features": "sex", "data": compas, "rng": 1}
    labels = "two_year_recid"
    audit = fairperm.audit(
        labels, y_score="decile_score", threshold=5, metrics=["fpr", "fnr"], **asked
    )

    def accuracy(y_true: Any, y_pred: Any) -> float:
        return float((y_true == y_pred).mean())

    decisions = [one >= 5 for one in compas["decile_score"]]
    slow = {**asked, "metric": accuracy, "n_resamples": 19}
    return {
        "print": lambda: audit,
        "to_html": lambda: len(audit.to_html()) > 10**5,
        "to_dict": lambda: audit.to_dict()["rows"],
        "to_model_card": audit.to_model_card,
        "to_metrics": audit.to_metrics,
        "chart": lambda: audit.plot().to_dict().keys(),
        "picture": lambda: audit.plot().save("r.svg"),
        "callable": lambda: fairperm.permutation_test(labels, decisions, **slow),
        "in processes": lambda: fairperm.permutation_test(labels, decisions, **slow, n_jobs=2),
        "log_to_mlflow": audit.log_to_mlflow,
        "power": lambda: fairperm.sample_size("fpr", values=(0.2, 0.3), base_rates=0.5),
    }


def main(folder: str) -> None:
    os.chdir(folder)
    warnings.simplefilter("ignore")
    found: dict[str, tuple[int, str]] = {}
    for name, command in COMMANDS.items():
        Path("state.json").unlink(missing_ok=True)
        done = run(*command)
        printed = done.stderr if done.returncode else done.stdout
        found[name] = done.returncode, printed.decode(errors="replace")
    for name, call in ask_in_python().items():
        try:
            found[f"Python: {name}"] = 0, repr(call())
        except fairperm.MissingPartError as error:
            found[f"Python: {name}"] = 2, str(error)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
