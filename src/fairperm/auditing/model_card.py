"""An audit in a model card: a section in Markdown, and results that programs read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import drop_decimals, format_metric, format_name
from fairperm.auditing.markdown import describe_gaps
from fairperm.errors import InputError, MissingPartError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from fairperm.hypothesis_tests.results.audits import AuditData

_LIMITS = (
    "A verdict is about chance in this sample. It says nothing about causes, and *inconclusive* "
    "does not mean that groups are treated alike."
)


def as_model_card(audit: AuditData) -> str:
    """Return a section without its heading."""
    _check(audit)
    made = f"Made with fairperm {metadata.version('fairperm')}, seed {audit.seed}."
    return "\n".join([describe_gaps(audit, audit.notes), _LIMITS, "", made, ""])


def as_eval_results(audit: AuditData, **about: str | None) -> list[Any]:
    """Return an EvalResult for the value of each metric in each group."""
    _check(audit)
    try:
        from huggingface_hub import EvalResult
    except ModuleNotFoundError as error:
        raise MissingPartError(
            "to_eval_results needs huggingface_hub, which is not installed: "
            "pip install huggingface_hub"
        ) from error
    return [
        EvalResult(
            **about,
            dataset_config=f"{format_name(attribute)}={format_name(drop_decimals(group))}",
            metric_type=metric,
            metric_name=format_metric(metric),
            metric_value=value,
        )
        for attribute, group, metric, value in _list_values(audit)
    ]


def _list_values(audit: AuditData) -> Iterator[tuple[str, Hashable, str, float]]:
    """Yield the attribute, the group, the metric and its value for groups that are large enough."""
    for one in audit.groups:
        values: dict[str, Any] = {}
        for row in audit.rows:
            is_of_it = row.attribute == one.attribute and one.group in row.groups
            if is_of_it and row.verdict != "too small":
                value = row.values[row.groups.index(one.group)]
                values |= value if isinstance(value, Mapping) else {row.metric: value}
        for metric, value in values.items():
            if value is not None and math.isfinite(value):
                yield one.attribute, one.group, metric, float(value)


def _check(audit: AuditData) -> None:
    if audit.compares_models:
        raise InputError("A model card is about one model: audit the new model by itself.")
