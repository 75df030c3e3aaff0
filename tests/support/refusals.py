"""Bad arguments in otherwise good calls, as a table, and what the reader must be told of each."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairperm import FairpermError, InputTypeError, errors

GOOD: Mapping[str, Any] = {
    "y_true": [1, 1, 0, 0, 1, 1, 0, 0],
    "y_pred": [1, 0, 1, 0, 1, 1, 0, 0],
    "sensitive_features": list("aaaabbbb"),
    "metric": "false_negative_rate",
    "n_resamples": 99,
    "rng": 1,
}


@dataclass(frozen=True)
class Refusal:
    """A call that must fail, and how the message must begin: with the argument and its rule."""

    name: str
    function: Callable[..., Any]
    given: Mapping[str, Any]
    says: str
    error: type[FairpermError] = errors.InputError

    def message(self) -> str:
        """Return what the call raises."""
        with pytest.raises(self.error, match=re.escape(self.says)) as caught:
            self.function(**self.given)
        assert isinstance(caught.value, TypeError if self.error is InputTypeError else ValueError)
        return str(caught.value)


def table(
    function: Callable[..., Any], good: Mapping[str, Any], names: Mapping[str, Any], text: str
) -> list[Refusal]:
    """Read a table with a call in each line, an arrow, and how the message begins.

    Of a call, the arguments are written that differ from those of the ``good`` call. Lines that
    continue a message are indented. An error that is no ``InputError`` stands before its message:
    ``TypeError`` for an ``InputTypeError``. Calls may use ``np``, ``pd``, ``pl`` and the ``names``,
    and messages ``{RULE}`` of them.
    """
    cases: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") or (cases and "→" not in cases[-1]):
            cases[-1] += f" {line.strip()}"
        elif line:
            cases.append(line)
    found = []
    for case in cases:
        call, says = (one.strip() for one in case.split("→"))
        says = re.sub(r"\{([A-Z][A-Z_0-9]*)\}", lambda rule: str(names[rule[1]]), says)
        error, colon, rest = says.partition("Error: ")
        if not colon or not error.isalpha():
            error, rest = "Input", says
        kind = getattr(errors, error.replace("Type", "InputType") + "Error")
        found.append(Refusal(call, function, {**good, **_arguments(call, names)}, rest, kind))
    return found


def _arguments(call: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate ``**names, argument=value``, where later arguments replace earlier ones."""
    found: dict[str, Any] = {}
    parsed: Any = ast.parse(f"f({call})", mode="eval").body
    for keyword in parsed.keywords:
        value = eval(ast.unparse(keyword.value), {"np": np, "pd": pd, "pl": pl, **names})  # noqa: S307
        found |= value if keyword.arg is None else {keyword.arg: value}
    return found


def each(refusals: Iterable[Refusal]) -> pytest.MarkDecorator:
    """Run a test for each of the refusals, by its call."""
    every = list(refusals)
    return pytest.mark.parametrize("refusal", every, ids=[one.name for one in every])


def check_wording(refusal: Refusal) -> None:
    """Check that the message names an argument, on one line of full sentences."""
    message = refusal.message()
    assert message.startswith(refusal.says)
    words = set(re.findall(r"\w+", refusal.says))
    assert words & {*inspect.signature(refusal.function).parameters, *refusal.given}
    assert message[-1] in ".?"
    assert "\n" not in message
    assert ".." not in message.replace("…", "")
