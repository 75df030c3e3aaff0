"""``fairperm sweep``: test the gap at every threshold of a score."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairperm.cli.command import command
from fairperm.cli.running import Run
from fairperm.cli.terminal import write_message
from fairperm.data.arguments import DEFAULT_METRICS

if TYPE_CHECKING:
    import click

    from fairperm.auditing.pair_sweeps import PairSweeps


@command(
    "sweep",
    "files label score group@one metric@sweep thresholds report",
    "pair pos_label control stratum_weights count missing alternative alpha scheme variance "
    "resamples@sweep seed jobs table sql where format_ delimiter decimal encoding skip na "
    "json csv raw_names quiet config debug",
    example="fairperm sweep predictions.csv --label repaid --score score --group sex \\\n"
    "    --metric fpr --report sweep.html",
)
def sweep(ctx: click.Context) -> int:
    """Test the gap between two groups at every threshold of a score, one by one and jointly.

    Of more than two groups every pair is tested, at a level that holds for all pairs together.
    """
    import fairperm

    run = Run(ctx)
    run.need(score=": the column of scores", label=": the column of true labels")
    names = [*run.given["metric"]] or [*DEFAULT_METRICS]
    run.read(names, rows=True)
    found: PairSweeps = run.call(fairperm.sweep_pairs, metric=names)
    reasons = {names: write_message(reason) for names, reason in found.not_swept.items()}
    unseen = run.unseen(found.notes)
    found = replace(found, not_swept=reasons, notes=tuple(map(write_message, found.notes)))
    first = found.sweeps[0]
    shown = first if found.n_pairs == 1 else found  # the only pair is a sweep like any other
    settings = run.settings(metric=names, seed=first.seed)
    if run.given["report"] is not None:
        found.to_html(run.given["report"], provenance=run.describe(settings))
    run.write(
        shown.to_dict,
        settings,
        lambda: [_leave_out_nan(row) for row in shown.to_frame("pyarrow").to_pylist()],
    )
    run.say(repr(shown if shown is first else replace(found, notes=unseen)), first.seed)
    return 0


def _leave_out_nan(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(one, float) and one != one else one for name, one in row.items()
    }
