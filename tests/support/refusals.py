"""One bad argument in an otherwise good call, and what the reader must be told of it."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from fairperm import FairpermError, InputError, InputTypeError, permutation_test

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
    says: str
    given: Mapping[str, Any]
    error: type[FairpermError] = InputError
    function: Callable[..., Any] = permutation_test

    def message(self) -> str:
        """Return what the call raises."""
        with pytest.raises(self.error, match=re.escape(self.says)) as caught:
            self.function(**self.given)
        assert isinstance(caught.value, FairpermError)
        assert isinstance(caught.value, TypeError if self.error is InputTypeError else ValueError)
        return str(caught.value)


def value(name: str, says: str, **changes: Any) -> Refusal:
    """Return a good call of permutation_test with changes that make for an InputError."""
    return Refusal(name, says, {**GOOD, **changes})


def kind(name: str, says: str, **changes: Any) -> Refusal:
    """Return a good call of permutation_test with changes that make for an InputTypeError."""
    return Refusal(name, says, {**GOOD, **changes}, InputTypeError)


def each(refusals: Sequence[Refusal]) -> pytest.MarkDecorator:
    """Run a test for each of the refusals, by its name."""
    ids = [refusal.name for refusal in refusals]
    assert len(set(ids)) == len(ids), "every refusal needs a name of its own"
    return pytest.mark.parametrize("refusal", refusals, ids=ids)


def check_wording(refusal: Refusal) -> None:
    """Check that the message names an argument, on one line of full sentences."""
    message = refusal.message()
    assert message.startswith(refusal.says)
    words = set(re.findall(r"\w+", refusal.says))
    assert words & set(inspect.signature(refusal.function).parameters)
    assert message[-1] in ".?"
    assert "\n" not in message
    assert ".." not in message.replace("…", "")
