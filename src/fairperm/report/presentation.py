"""What its reader decides about a report: heading, author, words for the case, and length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairperm.errors import InputError, unknown_name
from fairperm.report.plain_words import find_case

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.audits import AuditData


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """How a report presents an audit.

    ``title``, ``author``, ``note : str or None``: The heading, who wrote the report, and a remark
    at its beginning.

    ``positive_means : str or None``: What a positive label means, to complete "people who …":
    "repaid the loan".

    ``negative_means : str or None``: What any other label means, in the same way: "did not repay
    the loan".

    ``rename : mapping or None``: Names for groups, by attribute and value: ``{"sex": {"M":
    "men"}}``.

    ``short : bool``: Whether to leave out everything but summary, findings, data, chart and how to
    repeat it.
    """

    title: str | None = None
    author: str | None = None
    note: str | None = None
    positive_means: str | None = None
    negative_means: str | None = None
    rename: Mapping[str, Mapping[Any, str]] | None = None
    short: bool = False

    def find_names(self, audit: AuditData) -> dict[tuple[str, str], str]:
        """Return the names by attribute and value. Raises InputError for unknown ones."""
        known: dict[str, list[str]] = {}
        for one in audit.groups:
            known.setdefault(one.attribute, []).append(str(one.group))
        names: dict[tuple[str, str], str] = {}
        for attribute, by_value in (self.rename or {}).items():
            values = known.get(attribute)
            if values is None:
                rule = "given for attributes of the audit"
                raise unknown_name("rename", rule, attribute, known)
            for value, name in by_value.items():
                if str(value) not in values:
                    rule = f"given for groups of {attribute!r}"
                    raise unknown_name("rename", rule, value, values)
                names[attribute, str(value)] = name
        return names

    def check(self, audit: AuditData) -> None:
        """Raise InputError if a positive label is explained, and nothing is positive."""
        are_binary = any(one.positives is not None for one in audit.groups)
        has_rates = any(find_case(row.metric, None) for row in audit.rows)
        for name in ("positive_means", "negative_means"):
            if getattr(self, name) and not are_binary and not has_rates:
                hint = "No metric of this audit counts positives."
                raise InputError(name, "left out", getattr(self, name), hint)
