"""Docstrings are written for editors and terminals; this makes links of their cross-references."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import griffe

import fairperm

_MODULES = ("metrics", "plots", "datasets")
_ROLE = re.compile(r":(?:func|meth|class|mod|attr):`~?([\w.]+)`")
_TYPE = re.compile(r"(?m)^\s*[*\w, ]+ : .*-like.*$")  # a type, which is read as Python
_FOOTNOTE = re.compile(r"(?m)^(\s*)\.\. \[(\d+)\] ")


def _homes() -> dict[str, str]:
    """Return the full name of every public name."""
    found = {
        name: f"fairperm.{module}.{name}"
        for module in _MODULES
        for name in import_module(f"fairperm.{module}").__all__
    }
    return found | {name: f"fairperm.{name}" for name in fairperm.__all__}


_HOMES = _homes()


class Roles(griffe.Extension):
    """Turn ``:func:`fairperm.audit``` into a link, and what is not ours into code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is None:
            return
        if obj.is_function and obj.name in fairperm.__all__:
            _show_shared_parameters(obj)
        text = _ROLE.sub(lambda found: _linked(found[1], obj), obj.docstring.value)
        text = _TYPE.sub(lambda found: found[0].replace("-like", "_like"), text)
        text = _FOOTNOTE.sub(r"\1\2\\. ", text)
        obj.docstring.value = re.sub(r"\[(\d)\]_", r"[\1]", text)


def _show_shared_parameters(obj: Any) -> None:
    """Show the signature and docstring that a function has when it runs."""
    function = getattr(fairperm, obj.name)
    obj.docstring.value = inspect.getdoc(function)
    obj.parameters = griffe.Parameters(
        *(
            griffe.Parameter(
                one.name,
                kind=griffe.ParameterKind(one.kind.description),
                default=None if one.default is one.empty else repr(one.default),
            )
            for one in inspect.signature(function).parameters.values()
        )
    )


def _linked(name: str, obj: griffe.Object) -> str:
    """Return a link; a name without a dot is of the same class, or public."""
    if "." not in name and obj.parent is not None and obj.parent.is_class:
        full = f"{_HOMES.get(obj.parent.name, obj.parent.path)}.{name}"
    else:
        full = _HOMES.get(name, name)
    return f"[`{name}`][{full}]" if full.startswith("fairperm.") else f"`{name}`"
