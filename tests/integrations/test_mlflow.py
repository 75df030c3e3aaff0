"""MLflow's evaluator and model cards, in an environment of its own; and what is said without."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fairperm import Audit, InputError, MissingPartError, audit
from tests.support.audits import DATA_OF_TWO
from tests.support.environments import run_in_environment

ROOT = Path(__file__).parents[2]
ABOUT = {"task_type": "tabular-classification", "dataset_type": "x", "dataset_name": "X"}
PAGE = ROOT / "docs" / "how-to" / "mlflow.md"


@pytest.mark.parametrize(
    ("module", "ask", "command"),
    [
        ("mlflow", lambda audit: audit.log_to_mlflow(), "pip install 'fairperm[mlflow]'"),
        ("huggingface_hub", lambda audit: audit.to_eval_results(**ABOUT), "huggingface_hub"),
    ],
)
def test_what_is_missing_is_named(
    module: str,
    ask: Callable[[Audit], object],
    command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    found = audit(**DATA_OF_TWO, metrics="accuracy")
    said = f"needs {module}, which is not installed: .*{re.escape(command)}$"
    with pytest.raises(MissingPartError, match=said):
        ask(found)


def test_the_section_of_a_model_card_needs_nothing_else() -> None:
    groups = np.where(DATA_OF_TWO["sensitive_features"] == "a", "<b>", "me@x")
    found = audit(**DATA_OF_TWO | {"sensitive_features": groups}, metrics="accuracy", rng=1)
    section = found.to_model_card()
    assert section.startswith("The accuracy of me&#64;x is 0.5 points higher than that of ")
    assert "| sensitive_features | accuracy | &#60;b&#62; − me&#64;x |" in section
    assert "*inconclusive* does not mean" in section
    assert "seed 1." in section
    with pytest.raises(InputError, match="A model card is about one model"):
        audit(**DATA_OF_TWO, y_pred_new=groups == "<b>", metrics="accuracy").to_model_card()


@pytest.mark.validate
def test_evaluators_and_cards_of_the_packages_of_today(tmp_path: Path) -> None:
    """Pip installs the extra, which MLflow finds by its entry point, and the group."""
    work = tmp_path / "work"
    work.mkdir()
    script = ROOT / "tests" / "support" / "use_cards.py"
    run_in_environment(tmp_path, "cards", script, work, PAGE, also=f"{ROOT}[mlflow]")
