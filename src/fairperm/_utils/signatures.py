"""Parameters that several public functions share: declared, given defaults and described once.

A function takes them as ``**given: Unpack[Shared]``, where ``Shared`` is a TypedDict. Their
defaults, types and texts are those of a model function; what the function's own docstring says
of a parameter stays.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from fairperm.errors import InputTypeError, did_you_mean, listed, shown

F = TypeVar("F", bound="Callable[..., Any]")
Given = TypeVar("Given", bound="Mapping[str, Any]")

_SECTION = re.compile(r"(?<=\nParameters\n----------\n).*?(?=\n\n\w[^\n]*\n---|\Z)", re.DOTALL)
_ENTRIES = re.compile(r"^(?=\S)", re.MULTILINE)  # every entry begins where a line does


def shares(model: Callable[..., Any], shared: type | None = None) -> Callable[[F], F]:
    """Give a function the signature and the docstring with the parameters of a model's."""
    # ``shared`` is the TypedDict of ``**given``. Without one, only texts are taken from the model.
    known = inspect.signature(model).parameters

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind != one.VAR_KEYWORD]
        if shared is not None:
            taken = [known[name] for name in known if name in keys_of(shared)]
            named = [one.replace(kind=one.KEYWORD_ONLY) for one in taken]
            signature = signature.replace(parameters=[*own, *named])
            function.__signature__ = signature  # type: ignore[attr-defined]
        function.__doc__ = _describe(function, model, signature.parameters)
        return function

    return decorate


def keys_of(shared: type) -> frozenset[str]:
    """Return the keys of a TypedDict."""
    kind = cast("Any", shared)
    return cast("frozenset[str]", kind.__required_keys__ | kind.__optional_keys__)


def complete(function: Callable[..., Any], given: Given) -> Given:
    """Return what was given to a function as ``**given``, with the defaults of its signature."""
    # raises InputTypeError for unknown and missing arguments, as Python does for plain signatures
    name, arguments = f"{function.__name__}()", inspect.signature(function).parameters
    shared = {one: arguments[one].default for one in arguments if one not in _own_names(function)}
    for one in given:
        if one not in shared:
            known = f"It takes {listed(arguments, most=len(arguments))}."
            text = f"{name} got an unexpected keyword argument {shown(one)}."
            raise InputTypeError(f"{text} {did_you_mean(one, arguments) or known}")
    full: dict[str, Any] = {**shared, **given}
    for one, value in full.items():
        if value is inspect.Parameter.empty:
            raise InputTypeError(one, f"given to {name}", None)
    return cast("Given", full)


def _own_names(function: Callable[..., Any]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _describe(
    function: Callable[..., Any], model: Callable[..., Any], names: Iterable[str]
) -> str | None:
    """Return the docstring with an entry for every parameter: its own, or else the model's."""
    text = inspect.getdoc(function)
    if text is None:  # python -OO
        return None
    own, shared = _read_entries(text), _read_entries(inspect.getdoc(model) or "")
    entries = dict.fromkeys(own.get(name, shared.get(name)) for name in names)
    described = "".join(f"{entry.rstrip()}\n" for entry in entries if entry is not None)
    return _SECTION.sub(lambda _: described.rstrip(), text, count=1)


def _read_entries(text: str) -> dict[str, str]:
    """Return the entry of each parameter in a docstring of numpydoc; several may share one."""
    section = _SECTION.search(text)
    entries = _ENTRIES.split(section[0]) if section is not None else []
    heads = ((entry.partition("\n")[0].partition(" : ")[0], entry) for entry in entries)
    return {name: entry for head, entry in heads for name in head.split(", ")}
