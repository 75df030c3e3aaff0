"""``fairperm compare``: test what a new model does to the gaps of an old one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairperm.cli.command import command
from fairperm.cli.commands.audit import AUDITS, run_audit
from fairperm.errors import InputError

if TYPE_CHECKING:
    import click


@command(
    "compare",
    "files new id label prediction prediction_new group metric margin report",
    f"score score_new threshold threshold_new matched names {AUDITS} fail_on@changes",
    example="fairperm compare predictions.csv --label repaid --prediction old \\\n"
    "    --prediction-new new --group sex --metric fpr --report changes.html",
)
def compare(ctx: click.Context) -> int:
    """Test whether gaps between groups changed from an old model to a new one of the same rows.

    Verdicts: closed, narrowed, unchanged within margin, widened, changed,
    inconclusive or too small.
    """
    given = ctx.params
    if given["new"] is None and given["id"]:
        raise InputError("--id needs --new, the file of the new model.")
    if given["new"] is not None and given["prediction_new"] is given["score_new"] is None:
        given |= {"prediction_new": given["prediction"], "score_new": given["score"]}
    if given["prediction_new"] is None and given["score_new"] is None:
        raise InputError(
            "--prediction-new or --score-new must be given: a column of the new model's output."
        )
    if "widened" in given["fail_on"]:
        _check_single(given["metric"])
    return run_audit(ctx)


def _check_single(names: Iterable[str]) -> None:
    """Raise InputError if one of the metrics has several gaps, whose size is never judged."""
    from fairperm.metrics.registry import get_metric

    joint = [name for name in names if get_metric(name).is_joint]
    if joint:
        raise InputError(
            f"--fail-on widened cannot be evaluated for {joint[0]}: it has several gaps, and which "
            "of them are larger is not tested. Compare its parts one by one."
        )
