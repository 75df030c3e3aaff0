"""``fairperm discover``: find the subgroups that are affected."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairperm.cli.command import command
from fairperm.cli.running import Run

if TYPE_CHECKING:
    import click


@command(
    "discover",
    "files label prediction score threshold feature metric@one report",
    "pos_label control cluster weight count missing score_bins max_depth min_rows bands confirm "
    "adjust@search alpha alternative resamples@search seed jobs "
    "table sql where format_ delimiter decimal encoding skip na json csv xlsx raw_names "
    "quiet config debug",
    example="fairperm discover predictions.csv --label repaid --prediction approved \\\n"
    "    --feature sex --feature race --feature age --metric fpr",
)
def discover(ctx: click.Context) -> int:
    """Find the subgroups in which a metric differs from that of all other rows."""
    import fairperm
    from fairperm.subgroups.result import as_text

    run = Run(ctx)
    run.need(metric="; `fairperm metrics` lists them")
    run.read([run.given["metric"]])
    found: fairperm.Subgroups = run.call(fairperm.find_subgroups)
    settings = run.settings(seed=found.seed)
    if run.given["report"] is not None:
        found.to_html(run.given["report"], provenance=run.describe(settings))
    run.write(found.to_dict, settings, lambda: found.to_frame("pyarrow", which="found").to_pylist())
    unseen = replace(found, notes=run.unseen(found.notes))
    run.say(as_text(unseen, "--csv and --report write all"), found.seed)
    return 0
