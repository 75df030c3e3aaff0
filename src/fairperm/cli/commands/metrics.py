"""``fairperm metrics``: everything that can be compared, and what it means."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairperm.cli import common as running
from fairperm.cli.files.wanted_columns import metric_of
from fairperm.cli.terminal import pairs, say

_NEEDS = {
    "y_true": "labels",
    "y_pred": "predictions",
    "y_score": "scores",
}


def metrics(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Only these.", metavar="NAME", show_default=False),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(
            "--json",
            help="Write the list as JSON; '-' prints it.",
            metavar="PATH",
            show_default=False,
        ),
    ] = None,
) -> int:
    """List the metrics: name, meaning, other names."""
    import json as json_module

    from fairperm.metrics.registry import metric_names

    chosen = [metric_of(name, "NAME") for name in names or metric_names()]
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
        running.write(json, json_module.dumps(found, indent=2, ensure_ascii=False) + "\n")
        if json == "-":
            return 0
    lines = []
    for one in found:
        also = f" (also {', '.join(one['aliases'])})" if one["aliases"] else ""
        lines.append((one["name"], f"{one['meaning']}{also}"))
    say(pairs(lines))
    return 0
