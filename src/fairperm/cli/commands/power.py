"""``fairperm power``: compute power, sample size or the smallest detectable gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from fairperm.cli import outputs
from fairperm.cli.command import command
from fairperm.cli.options import collect_settings
from fairperm.cli.terminal import print_text, wrap
from fairperm.cli.values import find_metric
from fairperm.errors import InputError

if TYPE_CHECKING:
    import click


@command(
    "power",
    "metric@power first second n power share base_rate alpha alternative json quiet config debug",
    example="fairperm power --metric fpr --first 0.2 --second 0.25 --base-rate 0.5",
)
def power(ctx: click.Context) -> int:
    """Compute power, sample size or the smallest detectable gap.

    With --first, --second and --n: the power. With --first and --second: the sample size. With --n
    and one of the two: the smallest detectable gap between it and the other group.
    """
    from fairperm.hypothesis_tests.results.gaps import json_ready

    given, options = ctx.params, ctx.command.options  # type: ignore[attr-defined]
    json, rates = given["json"], given["base_rate"]
    outputs.check_outputs({"--json": json})
    if given["metric"] is None:
        raise InputError("--metric must be given: a rate, or roc_auc.")
    if len(rates) > 2:
        raise InputError(f"--base-rate must be given once or twice; got {len(rates)}.")
    shared = {name: given[name] for name in ("share", "alpha", "alternative")}
    shared["base_rates"] = rates if len(rates) > 1 else next(iter(rates), None)
    asked = {name: given[name] for name in ("metric", "first", "second", "n", "power")}
    result, answer = _compute(**asked, shared=shared)
    if json is not None:
        settings = collect_settings(options, given)
        result = json_ready({"answer": answer, **result})
        text = outputs.as_json("power", result, options=settings, files=[], rows=None)
        outputs.write_output(json, text)
    if not given["quiet"] and json != "-":
        print_text(wrap(answer))
    return 0


def _compute(
    metric: str,
    first: float | None,
    second: float | None,
    n: int | None,
    power: float,
    shared: dict[str, Any],
) -> tuple[dict[str, Any], str]:
    """Return the quantity that was not given, by its name, and a sentence that states it."""
    import fairperm

    find_metric(metric)  # its error says which option is wrong
    if first is None or second is None:
        value = first if second is None else second
        moves: Literal["first", "second"] = "second" if second is None else "first"
        if value is None or n is None:
            raise InputError("--first and --second, or one of them and --n, must be given.")
        gap = fairperm.minimum_detectable_gap(
            metric, value=value, moves=moves, n=n, power=power, **shared
        )
        return {"minimum_detectable_gap": gap, "moves": moves}, gap.answer
    if n is None:
        rows = fairperm.sample_size(metric, values=(first, second), power=power, **shared)
        return {"sample_size": rows}, rows.answer
    chance = fairperm.power(metric, values=(first, second), n=n, **shared)
    return {"power": chance}, chance.answer
