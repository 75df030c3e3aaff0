"""``fairperm metrics``: list the metrics and their meanings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairperm.cli import outputs
from fairperm.cli.command import command
from fairperm.cli.terminal import format_pairs, print_text
from fairperm.cli.values import find_metric

if TYPE_CHECKING:
    import click

_NEEDS = {
    "y_true": "labels",
    "y_pred": "predictions",
    "y_score": "scores",
}


@command("metrics", "which json@metrics", example="fairperm metrics fpr roc_auc")
def metrics(ctx: click.Context) -> int:
    """List the metrics with their meanings and other names."""
    import json as json_module

    from fairperm.metrics.registry import metric_names

    names, json = ctx.params["which"], ctx.params["json"]
    chosen = [find_metric(name, "NAME") for name in names or metric_names()]
    found: list[dict[str, Any]] = [
        {
            "name": one.name,
            "meaning": one.meaning,
            "aliases": list(one.aliases),
            "needs": [_NEEDS[column] for column in one.columns if column in _NEEDS],
        }
        for one in chosen
    ]
    if json is not None:
        outputs.write_output(json, json_module.dumps(found, indent=2, ensure_ascii=False) + "\n")
        if json == "-":
            return 0
    lines = []
    for one in found:
        also = f" (also {', '.join(one['aliases'])})" if one["aliases"] else ""
        lines.append((one["name"], f"{one['meaning']}{also}"))
    print_text(format_pairs(lines))
    return 0
