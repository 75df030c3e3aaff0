"""Parameters that functions share have one default, one type and one text."""

from __future__ import annotations

import inspect
from typing import Any, TypedDict, Unpack

import pytest

from fairperm._utils.signatures import complete, shares
from fairperm.errors import InputTypeError


def model(first: int, *, size: int, colour: str = "red", n_jobs: int | None = None) -> None:
    """Do one thing.

    Parameters
    ----------
    first : int
        What comes first.
    size, colour
        How it looks.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    None
    """


class Shared(TypedDict, total=False):
    size: int
    colour: str


@shares(model, Shared)
def other(first: int, *, second: int = 2, **given: Unpack[Shared]) -> dict[str, Any]:
    """Do another thing.

    Parameters
    ----------
    second : int
        What comes
        then.
    **given
        All others are those of the model.

    Returns
    -------
    dict
    """
    return {"first": first, "second": second, **complete(other, given)}


def test_the_signature_has_the_models_parameters_after_its_own() -> None:
    assert str(inspect.signature(other)) == (
        "(first: 'int', *, second: 'int' = 2, size: 'int', colour: 'str' = 'red')"
        " -> 'dict[str, Any]'"
    )


def test_the_docstring_has_its_own_texts_and_else_the_models() -> None:
    assert inspect.getdoc(other) == (
        "Do another thing.\n\nParameters\n----------\n"
        "first : int\n    What comes first.\n"
        "second : int\n    What comes\n    then.\n"
        "size, colour\n    How it looks.\n\n"
        "Returns\n-------\ndict"
    )


def test_defaults_are_the_models() -> None:
    assert other(1, size=3) == {"first": 1, "second": 2, "size": 3, "colour": "red"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"size": 1, "color": "blue"}, r"^other\(\) got an unexpected keyword argument 'color'\. "
         r"Did you mean 'colour'\?$"),
        ({"size": 1, "n_jobs": 2}, r"argument 'n_jobs'\. It takes 'first', 'second', 'size', "
         r"'colour'\.$"),
        ({}, r"^size must be given to other\(\); got None\.$"),
    ],
)  # fmt: skip
def test_unknown_and_missing_arguments_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputTypeError, match=says):
        other(1, **given)
