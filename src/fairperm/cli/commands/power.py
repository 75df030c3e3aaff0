"""``fairperm power``: compute power, sample size or the smallest detectable gap."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairperm._utils.formatting import format_level, format_metric, format_percent
from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.terminal import print_text, wrap
from fairperm.errors import InputError

_PANEL = "Assumptions"


def _assumed(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=_PANEL, show_default=False)


Metric = Annotated[
    str | None,
    typer.Option(
        help="A rate, or roc_auc.", metavar="NAME", rich_help_panel=_PANEL, show_default=False
    ),
]
First = Annotated[float | None, _assumed("Value of the metric in the first group.")]
Second = Annotated[float | None, _assumed("Value of the metric in the second group.")]
Rows = Annotated[int | None, _assumed("Number of rows in both groups together.", "--n")]
Power = Annotated[float, _assumed("Probability of detecting the gap. Default: 0.8.", "--power")]
Share = Annotated[float | None, _assumed("Share of the rows in the first group. Default: 0.5.")]
BaseRate = Annotated[
    list[float] | None,
    _assumed("Share of positive labels in both groups; give it twice if they differ."),
]


def power(
    ctx: typer.Context,
    metric: Metric = None,
    first: First = None,
    second: Second = None,
    n: Rows = None,
    power: Power = 0.8,
    share: Share = None,
    base_rate: BaseRate = None,
    alpha: arg.Alpha = 0.05,
    alternative: arg.Alternative = "two-sided",
    scheme: arg.Scheme = "auto",
    json: arg.Json = None,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Compute power, sample size or the smallest detectable gap.

    With --first, --second and --n: the power. With --first and --second: the sample size. With
    --second and --n: the smallest detectable gap.
    """
    from fairperm.hypothesis_tests.results.gaps import json_ready

    outputs.check_outputs({"--json": json})
    if metric is None:
        raise InputError("--metric must be given: a rate, or roc_auc.")
    if base_rate and len(base_rate) > 2:
        raise InputError(f"--base-rate must be given once or twice; got {len(base_rate)}.")
    rates: Any = None
    if base_rate:
        rates = base_rate[0] if len(base_rate) == 1 else (base_rate[0], base_rate[1])
    if second is None:
        raise InputError("--second must be given: the value of the metric in the second group.")
    shared: dict[str, Any] = {
        "share": share,
        "base_rates": rates,
        "alpha": alpha,
        "alternative": alternative,
        "scheme": scheme,
    }
    result, sentence = _answer(metric, first, second, n, power, shared)
    if json is not None:
        text = outputs.as_json(
            "power",
            json_ready(result),
            options=arg.collect_settings(ctx.params),
            files=[],
            rows=None,
        )
        outputs.write_output(json, text)
    if not quiet and json != "-":
        print_text(wrap(sentence))
    return 0


def _answer(
    metric: str,
    first: float | None,
    second: float,
    n: int | None,
    power: float,
    shared: dict[str, Any],
) -> tuple[dict[str, Any], str]:
    """Return the quantity that was not given, by its name, and a sentence that states it."""
    import fairperm

    name = format_metric(arg.find_metric(metric).name)
    if first is None:
        if n is None:
            raise InputError("--first or --n must be given.")
        gap = fairperm.minimum_detectable_gap(metric, value=second, n=n, power=power, **shared)
        least = f"a gap of {gap:.4f}" if gap < float("inf") else "no gap"
        return {"minimum_detectable_gap": gap}, (
            f"{n:,} rows detect {least} in {name} from {second:g} with {format_level(power)} power."
        )
    gap_text = f"a {name} of {first:g} against {second:g}"
    if n is None:
        rows = fairperm.sample_size(metric, values=(first, second), power=power, **shared)
        return {
            "sample_size": rows
        }, f"{rows:,} rows detect {gap_text} with {format_level(power)} power."
    chance = fairperm.power(metric, values=(first, second), n=n, **shared)
    return {"power": chance}, f"{n:,} rows detect {gap_text} with {format_percent(chance)} power."
