"""``fairperm ranking``: test rankings, by kind of user or by kind of item."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairperm.cli.command import command
from fairperm.cli.running import Run

if TYPE_CHECKING:
    import click


@command(
    "ranking",
    "files relevance score@lists query group@one metric@lists k",
    "rank pair control cluster missing compare reference@one adjust alternative resamples "
    "confidence_level seed jobs table sql where format_ delimiter decimal encoding skip na "
    "json csv raw_names quiet config debug",
    example="fairperm ranking results.csv --query user --score score --relevance clicked \\\n"
    "    --group sex --metric ndcg",
)
def ranking(ctx: click.Context) -> int:
    """Test whether rankings serve all kinds of users, or show all kinds of items, alike."""
    import fairperm
    from fairperm.cli.files.loading import read_rankings

    run = Run(ctx)
    run.need(
        query=": the column of queries, whose lists are ranked",
        group=": the column of a protected attribute",
    )
    run.use(read_rankings(run.given, with_hashes=run.keeps_hashes))
    found: fairperm.RankingTestResult = run.call(fairperm.ranking_test)
    first = found.comparisons[0]
    settings = run.settings(seed=first.seed)
    run.write(found.to_dict, settings, lambda: found.to_frame("pyarrow").to_pylist())
    alone = (replace(first, notes=run.unseen(first.notes)),)
    shown = alone if len(found) == 1 else found.comparisons
    unseen = replace(found, comparisons=shown, notes=run.unseen(found.notes))
    run.say(repr(unseen), None if all(one.exact for one in found) else first.seed)
    return 0
