"""``fairperm periods``: test whether the gap changed from one period to another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairperm.cli.command import command
from fairperm.cli.running import Run

if TYPE_CHECKING:
    import click


@command(
    "periods",
    "files label prediction score threshold group@one period metric@one",
    "pair periods against pos_label control stratum_weights cluster split_clusters weight missing "
    "score_bins scheme variance alternative resamples bootstraps confidence_level seed jobs "
    "table sql where format_ delimiter decimal encoding skip na "
    "json csv raw_names quiet config debug",
    example="fairperm periods predictions.csv --label repaid --prediction approved \\\n"
    "    --group sex --period quarter --metric fpr",
)
def periods(ctx: click.Context) -> int:
    """Test whether the gap between two groups changed between periods, sites or versions."""
    import fairperm

    run = Run(ctx)
    run.need(metric="; `fairperm metrics` lists them", period=": the column of periods")
    run.read([run.given["metric"]])
    found: fairperm.PeriodComparisonResult = run.call(fairperm.compare_periods)
    settings = run.settings(seed=found.seed)
    run.write(found.to_dict, settings, lambda: found.to_frame("pyarrow").to_pylist())
    is_exact = all(one.exact for one in found.changes)
    unseen = replace(found, notes=run.unseen(found.notes))
    run.say(repr(unseen), None if is_exact else found.seed)
    return 0
