"""``fairperm power``: what a sample can see."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairperm.cli import common as running
from fairperm.cli import options as arg
from fairperm.cli.files.wanted_columns import metric_of
from fairperm.cli.terminal import say, wrapped
from fairperm.errors import InputError

_PANEL = "Assumptions"


def _assumed(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=_PANEL, show_default=False)


def power(
    ctx: typer.Context,
    metric: Annotated[
        str | None,
        typer.Option(
            help="A rate, or roc_auc.", metavar="NAME", rich_help_panel=_PANEL, show_default=False
        ),
    ] = None,
    first: Annotated[float | None, _assumed("The metric in the first group.")] = None,
    second: Annotated[float | None, _assumed("The metric in the second group.")] = None,
    n: Annotated[int | None, _assumed("Rows of both groups together.", "--n")] = None,
    power: Annotated[
        float, _assumed("How likely the gap should be found. Default: 0.8.", "--power")
    ] = 0.8,
    share: Annotated[
        float | None, _assumed("The first group's share of the rows. Default: one half.")
    ] = None,
    base_rate: Annotated[
        list[float] | None,
        _assumed("The share of positives, in both groups or (twice) in the first and the second."),
    ] = None,
    alpha: arg.Alpha = 0.05,
    alternative: arg.Alternative = "two-sided",
    scheme: arg.Scheme = "auto",
    json: arg.Json = None,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Tell what a sample can see, before there are data.

    With --first, --second and --n: how likely the gap is found. Without --n: how many rows that
    takes. With --second and --n: the smallest gap that is likely found.
    """
    from fairperm.cli.documents import as_json
    from fairperm.hypothesis_tests.results.gaps import json_ready

    running.check_outputs({"--json": json})
    if metric is None:
        raise InputError("--metric must be given: a rate, or roc_auc.")
    if base_rate and len(base_rate) > 2:
        raise InputError(f"--base-rate must be given once or twice; got {len(base_rate)}.")
    rates: Any = None
    if base_rate:
        rates = base_rate[0] if len(base_rate) == 1 else (base_rate[0], base_rate[1])
    if second is None:
        raise InputError("--second must be given: the metric in the second group.")
    shared: dict[str, Any] = {
        "share": share,
        "base_rates": rates,
        "alpha": alpha,
        "alternative": alternative,
        "scheme": scheme,
    }
    found, told = _answer(metric, first, second, n, power, shared)
    if json is not None:
        text = as_json(
            "power",
            json_ready(found),
            command="power",
            options=running.settings(ctx.params),
            files=[],
            rows=None,
        )
        running.write(json, text)
    if not quiet and json != "-":
        say(wrapped(told))
    return 0


def _answer(
    metric: str,
    first: float | None,
    second: float,
    n: int | None,
    power: float,
    shared: dict[str, Any],
) -> tuple[dict[str, Any], str]:
    """Return what was asked for by its name, and in a sentence: whichever was not given."""
    import fairperm

    name = metric_of(metric).name
    if first is None:
        if n is None:
            raise InputError("--first or --n must be given.")
        gap = fairperm.minimum_detectable_gap(metric, value=second, n=n, power=power, **shared)
        some = f"a gap of {gap:.4f}" if gap < float("inf") else "no gap"
        told = f"In {n:,} rows, {some} in {name} is found with {power:.0%} power."
        return {"minimum_detectable_gap": gap}, told
    both = f"{first:g} and {second:g} in {name}"
    if n is None:
        rows = fairperm.sample_size(metric, values=(first, second), power=power, **shared)
        return {"sample_size": rows}, f"{rows:,} rows find {both} apart with {power:.0%} power."
    chance = fairperm.power(metric, values=(first, second), n=n, **shared)
    return {"power": chance}, f"In {n:,} rows, {both} are found apart with {chance:.1%} power."
