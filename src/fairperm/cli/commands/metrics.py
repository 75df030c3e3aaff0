"""``fairperm metrics``: list the metrics and their meanings."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.terminal import format_pairs, print_text

_NEEDS = {
    "y_true": "labels",
    "y_pred": "predictions",
    "y_score": "scores",
}


def metrics(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names of metrics. Default: all.", metavar="NAME", show_default=False),
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
    """List the metrics with their meanings and other names."""
    import json as json_module

    from fairperm.metrics.registry import metric_names

    chosen = [arg.find_metric(name, "NAME") for name in names or metric_names()]
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
