"""``fairperm power``: compute power, sample size or the smallest detectable gap."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import typer

from fairperm._utils.formatting import (
    format_count,
    format_level,
    format_metric,
    format_number,
    format_percent,
)
from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.terminal import print_text, wrap
from fairperm.errors import InputError

_PANEL = "Assumptions"
_ROUNDING = 1e-9  # of a value that is 0 or 1


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

    With --first, --second and --n: the power. With --first and --second: the sample size. With --n
    and one of the two: the smallest detectable gap between it and the other group.
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
    second: float | None,
    n: int | None,
    power: float,
    shared: dict[str, Any],
) -> tuple[dict[str, Any], str]:
    """Return the quantity that was not given, by its name, and a sentence that states it."""
    import fairperm

    name, level = format_metric(arg.find_metric(metric).name), f"{format_level(power)} power"
    if first is None or second is None:
        value = first if second is None else second
        moves: Literal["first", "second"] = "second" if second is None else "first"
        if value is None or n is None:
            raise InputError("--first and --second, or one of them and --n, must be given.")
        gap = fairperm.minimum_detectable_gap(
            metric, value=value, moves=moves, n=n, power=power, **shared
        )
        found = _describe_gap(gap, name, value, moves, shared["alternative"])
        sentence = f"{format_count(n, 'row')} detect {found} with {level}."
        return {"minimum_detectable_gap": gap, "moves": moves}, sentence
    values = f"{_add_article(name)} of {format_number(first)} against {format_number(second)}"
    if n is None:
        rows = fairperm.sample_size(metric, values=(first, second), power=power, **shared)
        return {"sample_size": rows}, f"{format_count(rows, 'row')} detect {values} with {level}."
    chance = fairperm.power(metric, values=(first, second), n=n, **shared)
    sentence = f"{format_count(n, 'row')} detect {values} with {format_percent(chance)} power."
    return {"power": chance}, sentence


def _describe_gap(gap: float, name: str, value: float, moves: str, alternative: str) -> str:
    """Return in words which values of the group that moves are detected."""
    other = "second" if moves == "first" else "first"
    against = f"in the {moves} group against {format_number(value)} in the {other}"
    if gap == math.inf:
        return f"no {name} {against}"
    upwards, downwards = ("greater", "less") if moves == "first" else ("less", "greater")
    ends = []
    if alternative != downwards and value + gap <= 1 + _ROUNDING:
        ends.append(f"at least {format_number(value + gap)}")
    if alternative != upwards and value - gap >= -_ROUNDING:
        ends.append(f"at most {format_number(value - gap)}")
    values = f"{_add_article(name)} of {' or '.join(ends)}"
    return f"a gap of {format_number(gap)} ({values} {against})"


def _add_article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
