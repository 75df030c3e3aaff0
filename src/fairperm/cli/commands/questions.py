"""Commands that ask one question: ``test``, ``sweep``, ``discover`` and ``ranking``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairperm.cli.command import command
from fairperm.cli.running import Run
from fairperm.cli.terminal import write_message
from fairperm.data.arguments import DEFAULT_METRICS
from fairperm.errors import InputError

if TYPE_CHECKING:
    import click

    from fairperm.auditing.pair_sweeps import PairSweeps


@command(
    "test",
    "files label prediction score threshold group@one pair metric@one",
    "margin@one ratio@one better class_score pos_label control stratum_weights cluster "
    "split_clusters group_probability proxy proxy_assumption matched names weight count missing "
    "score_bins scheme variance alternative resamples bootstraps confidence_level seed jobs "
    "READING json quiet config debug",
    example="fairperm test predictions.csv --label repaid --prediction approved \\\n"
    "    --group sex --metric fpr",
)
def test(ctx: click.Context) -> int:
    """Test whether the gap between two groups in one metric is real or due to chance.

    With --margin or --ratio, test whether it is small enough.
    """
    import fairperm
    from fairperm.hypothesis_tests.margins.equivalence import compare_with_margin

    run = Run(ctx)
    given = run.given
    run.need(metric="; `fairperm metrics` lists them")
    has_margin = given["margin"] is not None or given["ratio"] is not None
    _check_margin_options(has_margin, given)
    run.read([given["metric"]])
    limits = given["margin"], given["ratio"], given["better"]

    def decide(**options: Any) -> fairperm.PermutationTestResult | fairperm.EquivalenceTestResult:
        found = fairperm.permutation_test(**options)
        return compare_with_margin(found, *limits) if has_margin else found

    found = run.call(decide)
    tested = found.permutation if has_margin else found
    run.write(found.to_dict, run.settings(seed=tested.seed))
    unseen = replace(found, notes=run.unseen(found.notes))
    run.say(repr(unseen), None if tested.exact else tested.seed)
    return 0


def _check_margin_options(has_margin: bool, given: Mapping[str, Any]) -> None:
    """Raise InputError for options that a margin decides, or that need one."""
    if not has_margin and given["better"] is not None:
        raise InputError("--better needs --margin or --ratio.")
    for name, default in (("alternative", "two-sided"), ("variance", "auto")):
        if has_margin and given[name] != default:
            raise InputError(f"--{name} cannot be used with --margin or --ratio, which decide it.")


@command(
    "sweep",
    "files label score group@one metric@sweep thresholds report",
    "pair pos_label control stratum_weights count missing alternative alpha scheme variance "
    "resamples@sweep seed jobs READING json csv raw_names quiet config debug",
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
    run.report(found, settings)
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


@command(
    "discover",
    "files label prediction score threshold feature metric@one report",
    "pos_label control cluster weight count missing score_bins max_depth min_rows bands confirm "
    "adjust@search alpha alternative resamples@search seed jobs READING json csv xlsx raw_names "
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
    run.report(found, settings)
    run.write(found.to_dict, settings, lambda: found.to_frame("pyarrow", which="found").to_pylist())
    unseen = replace(found, notes=run.unseen(found.notes))
    run.say(as_text(unseen, "--csv and --report write all"), found.seed)
    return 0


@command(
    "ranking",
    "files relevance score@lists query group@one metric@lists k",
    "rank pair control cluster missing compare reference@one adjust alternative resamples "
    "confidence_level seed jobs READING json csv raw_names quiet config debug",
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
