"""Docstrings are written for editors and terminals; this makes pages of the site of them.

A function begins with its sentence and its example; its signature is in groups, and parameters that
share a text are one entry. The attributes of a class, computed or not, are one table.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from importlib import import_module
from typing import Any

import griffe

import fairperm

_MODULES = ("metrics", "plots", "datasets")
_ROLE = re.compile(r":(?:func|meth|class|mod):`~?([\w.]+)`")
_TYPE = re.compile(r"(?m)^\s*[*\w, ]+ : .*-like.*$")  # a type, which is read as Python
_HEADING = re.compile(r"(?m)^([A-Z][A-Za-z ]+)\n-{3,}\n")
_ENTRY = re.compile(r"(?m)^(?=\S)")
_SESSION = re.compile(r"(?m)^>>> (?:.+\n?)+")  # up to an empty line
_KINDS = {  # the groups of a signature; what is in none of them comes first
    "data": """data groups control_features stratum_weights cluster split_clusters matched names
        sample_weight count missing ignore_index score_bins query threshold threshold_new pos_label
        unknown applicants""",
    "test": """compare reference adjust family alpha margin ratio min_group_size group_size_by
        scheme variance alternative n_resamples n_bootstrap confidence_level""",
    "run": "rng n_jobs progress n_simulations batch_size",
}
_UNLISTED = {"library", "heads", "footnotes", "frame_library"}
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

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Leave out the properties, which are in the table of attributes."""
        for name in [one for one, member in cls.members.items() if "property" in member.labels]:
            cls.del_member(name)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is None:
            return
        if obj.name in fairperm.__all__ and (obj.is_function or obj.is_class):
            public = getattr(fairperm, obj.name)
            if inspect.isfunction(public) and obj.is_function and obj.parent.is_module:
                obj.docstring.value = _write_function(public)
            elif inspect.isclass(public) and obj.is_class:
                obj.docstring.value = _write_class(public, obj.docstring.value)
        text = _ROLE.sub(lambda found: _linked(found[1], obj), obj.docstring.value)
        text = _TYPE.sub(lambda found: found[0].replace("-like", "_like"), text)
        text = _FOOTNOTE.sub(r"\1\2\\. ", text)
        obj.docstring.value = re.sub(r"\[(\d)\]_", r"[\1]", text)


def _write_function(function: Any) -> str:
    """Return the docstring that a function has when it runs, as Markdown up to its parameters."""
    text, sections = _split(inspect.getdoc(function) or "")
    sentence, _, more = text.partition("\n\n")
    example = _SESSION.sub(
        lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", sections.pop("Examples", "")
    )
    parameters = "\n\n".join(map(_write_entry, _list_entries(sections.pop("Parameters", ""))))
    signature = f"```python\n{_write_signature(function)}\n```"
    rest = (f"{name}\n{'-' * len(name)}\n{one}" for name, one in sections.items())
    return "\n\n".join([sentence, example, signature, more, parameters, *rest])


def _split(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text before the first heading, and the sections by their headings."""
    text, *parts = _HEADING.split(docstring)
    return text.strip(), dict(zip(parts[::2], (one.strip() for one in parts[1::2]), strict=True))


def _list_entries(section: str) -> list[str]:
    return [one for one in _ENTRY.split(section) if one]


def _write_entry(entry: str) -> str:
    """Return an entry of a section as an item of a definition list."""
    head, _, text = entry.partition("\n")
    names, _, kind = head.partition(" : ")
    named = ", ".join(f"`{one}`" for one in names.split(", "))
    kind = f" <small>{kind}</small>" if kind else ""
    return f"{named}{kind}\n:   {textwrap.indent(textwrap.dedent(text), '    ').strip()}"


def _write_signature(function: Any) -> str:
    """Return a signature with a group of parameters on each line, or some."""
    given = [*inspect.signature(function).parameters.values()]
    written = {one.name: str(one.replace(annotation=one.empty)) for one in given}
    kinds = {name: kind for kind, names in _KINDS.items() for name in names.split()}
    first = [one.name for one in given if one.kind is not one.KEYWORD_ONLY]
    groups = {"": [written.pop(name) for name in first]}
    if written:
        groups[""].append("*")
    for name, text in written.items():
        groups.setdefault(kinds.get(name, "question"), []).append(text)
    order = ["", "question", *_KINDS]
    lines = [
        line
        for kind in order
        if kind in groups
        for line in (
            *([f"# {kind}"] if kind else []),
            *textwrap.wrap(f"{', '.join(groups[kind])},", 84, break_long_words=False),
        )
    ]
    return "\n".join([f"{function.__name__}(", *(f"    {line}" for line in lines), ")"])


def _write_class(cls: Any, docstring: str) -> str:
    """Return a docstring whose section of attributes has the properties, too."""
    text, sections = _split(inspect.cleandoc(docstring))
    properties = [
        f"{name}\n    {_first_sentence(one)}"
        for name, one in inspect.getmembers(cls)
        if isinstance(one, property) and not name.startswith("_") and name not in _UNLISTED
    ]
    if properties:
        known = sections.get("Attributes", "")
        sections["Attributes"] = "\n".join([*([known] if known else []), *properties])
    rest = (f"{name}\n{'-' * len(name)}\n{one}" for name, one in sections.items())
    return "\n\n".join([text, *rest])


def _first_sentence(one: property) -> str:
    text = " ".join((inspect.getdoc(one) or "").partition("\n\n")[0].split())
    return text.removeprefix("Return ")


def _linked(name: str, obj: griffe.Object) -> str:
    """Return a link; a name without a dot is of the same class, or public."""
    if "." not in name and obj.parent is not None and obj.parent.is_class:
        full = f"{_HOMES.get(obj.parent.name, obj.parent.path)}.{name}"
    else:
        full = _HOMES.get(name, name)
    return f"[`{name}`][{full}]" if full.startswith("fairperm.") else f"`{name}`"
