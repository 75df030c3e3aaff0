"""``fairperm test``: test one metric in two groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairperm.cli.command import command
from fairperm.cli.running import Run
from fairperm.errors import InputError

if TYPE_CHECKING:
    import click


@command(
    "test",
    "files label prediction score threshold group@one pair metric@one",
    "margin@one ratio@one better class_score pos_label control stratum_weights cluster "
    "split_clusters matched names weight count missing score_bins scheme variance alternative "
    "resamples bootstraps confidence_level seed jobs "
    "table sql where format_ delimiter decimal encoding skip na json quiet config debug",
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
